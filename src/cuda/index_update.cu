/* index_update.cu: the kernels of index_update.h.
 *
 * Sums of halves are kept in float32, of integers in int64, and each is added up by one thread in
 * the order of the index: the result is what a loop on the CPU gives, bit for bit.
 */
#include "index_update.h"
#include "launch.cuh"
#include "places.cuh"

enum { THREADS = 256 };

static dim3 grid(int64_t n) { return grid_for(blocks_for(n, THREADS)); }

/* ---- which elements share a cell ------------------------------------------------------------- */

/* Where element e of the index lies: in its line, and the line's first element and step. */
struct Spot {
  int64_t line, j, first;
};
LT_DEVICE_INLINE Spot spot_of(const lt_CudaLines &l, int64_t e) {
  Spot s = {0, e, 0};
  if (l.outer == 1 && l.inner == 1) return s;
  int64_t in, outer = divide(divide(e, l.inner, &in), l.length, &s.j);
  s.line = outer * l.inner + in;
  s.first = outer * l.length * l.inner + in;
  return s;
}
LT_DEVICE_INLINE int64_t elements(const lt_CudaLines &l) { return l.outer * l.length * l.inner; }

static __global__ void keep_near_kernel(lt_CudaLines l, uint8_t *keep) {
  LT_EACH(e, elements(l)) {
    Spot s = spot_of(l, e);
    int64_t v = l.at[e];
    bool last = true;
    for (int64_t j = s.j + 1; j < l.length && last; j++) last = l.at[s.first + j * l.inner] != v;
    keep[e] = last;
  }
}

static __global__ void note_kernel(lt_CudaLines l, unsigned long long *notes) {
  LT_EACH(e, elements(l))
  atomicMax(&notes[spot_of(l, e).line * l.n + l.at[e]], (unsigned long long)e + 1);
}
static __global__ void keep_noted_kernel(lt_CudaLines l, const unsigned long long *notes,
                                         uint8_t *keep) {
  LT_EACH(e, elements(l))
  keep[e] = notes[spot_of(l, e).line * l.n + l.at[e]] == (unsigned long long)e + 1;
}

static __global__ void keep_ordered_kernel(const uint64_t *cells, const int64_t *order,
                                           int64_t count, uint8_t *keep) {
  LT_EACH(i, count) keep[order[i]] = i == count - 1 || cells[i + 1] != cells[i];
}

static __global__ void order_near_kernel(lt_CudaLines l, uint64_t *cells, int64_t *order) {
  LT_EACH(e, elements(l)) {
    Spot s = spot_of(l, e);
    int64_t v = l.at[e], rank = s.line * l.length;
    for (int64_t j = 0; j < l.length; j++) {
      int64_t w = l.at[s.first + j * l.inner];
      rank += w < v || (w == v && j < s.j);
    }
    cells[rank] = (uint64_t)(s.line * l.n + v);
    order[rank] = e;
  }
}

static __global__ void cells_kernel(lt_CudaLines l, uint64_t *cells, int64_t *number) {
  LT_EACH(e, elements(l)) {
    cells[e] = (uint64_t)(spot_of(l, e).line * l.n + l.at[e]);
    number[e] = e;
  }
}

static int64_t count_of(const lt_CudaLines *l) { return l->outer * l->length * l->inner; }

cudaError_t lt_cuda_launch_keep_near(const lt_CudaLines *l, uint8_t *keep, cudaStream_t stream) {
  return launch("keep_near", keep_near_kernel, grid(count_of(l)), dim3(THREADS), 0, stream, *l,
                keep);
}
cudaError_t lt_cuda_launch_keep_noted(const lt_CudaLines *l, unsigned long long *notes,
                                      uint8_t *keep, cudaStream_t stream) {
  cudaError_t status =
      launch("note", note_kernel, grid(count_of(l)), dim3(THREADS), 0, stream, *l, notes);
  if (status != cudaSuccess) return status;
  return launch("keep_noted", keep_noted_kernel, grid(count_of(l)), dim3(THREADS), 0, stream, *l,
                (const unsigned long long *)notes, keep);
}
cudaError_t lt_cuda_launch_keep_ordered(const uint64_t *cells, const int64_t *order, int64_t count,
                                        uint8_t *keep, cudaStream_t stream) {
  return launch("keep_ordered", keep_ordered_kernel, grid(count), dim3(THREADS), 0, stream, cells,
                order, count, keep);
}
cudaError_t lt_cuda_launch_order_near(const lt_CudaLines *l, uint64_t *cells, int64_t *order,
                                      cudaStream_t stream) {
  return launch("order_near", order_near_kernel, grid(count_of(l)), dim3(THREADS), 0, stream, *l,
                cells, order);
}
cudaError_t lt_cuda_launch_cells(const lt_CudaLines *l, uint64_t *cells, int64_t *number,
                                 cudaStream_t stream) {
  return launch("cells", cells_kernel, grid(count_of(l)), dim3(THREADS), 0, stream, *l, cells,
                number);
}

/* ---- writing --------------------------------------------------------------------------------- */

template <class U>
static __global__ void put_kernel(lt_CudaPlaces p, U *to, const U *from, U value,
                                  const uint8_t *keep, const int *bad) {
  if (*bad) return;
  LT_EACH(i, p.count) {
    Place at = place_of(p, i);
    if (keep && !keep[at.index]) continue;
    to[at.self + p.at[at.index] * p.step] = from ? from[at.other] : value;
  }
}

template <class U>
static cudaError_t put(const lt_CudaPlaces *p, void *to, const void *from, const void *value,
                       const uint8_t *keep, const int *bad, cudaStream_t stream) {
  return launch("put", put_kernel<U>, grid(p->count), dim3(THREADS), 0, stream, *p, (U *)to,
                (const U *)from, *(const U *)value, keep, bad);
}

cudaError_t lt_cuda_launch_put(const lt_CudaPlaces *p, void *to, const void *from,
                               const void *value, int unit, const uint8_t *keep, const int *bad,
                               cudaStream_t stream) {
  switch (unit) {
  case 1:
    return put<uint8_t>(p, to, from, value, keep, bad, stream);
  case 2:
    return put<uint16_t>(p, to, from, value, keep, bad, stream);
  case 4:
    return put<uint32_t>(p, to, from, value, keep, bad, stream);
  case 8:
    return put<uint2>(p, to, from, value, keep, bad, stream);
  default:
    return put<uint4>(p, to, from, value, keep, bad, stream);
  }
}

/* Each operation is rounded by itself, as on the CPU. */
LT_DEVICE_INLINE float add_scaled(float sum, float scale, float v) {
  return __fadd_rn(sum, __fmul_rn(scale, v));
}
LT_DEVICE_INLINE double add_scaled(double sum, double scale, double v) {
  return __dadd_rn(sum, __dmul_rn(scale, v));
}
LT_DEVICE_INLINE int64_t add_scaled(int64_t sum, int64_t scale, int64_t v) {
  return (int64_t)((uint64_t)sum + (uint64_t)scale * (uint64_t)v);
}

/* A storage dtype that is known when the kernel is compiled takes the switch out of its loop. */
enum { ANY_DTYPE = -1, AHEAD = 8 };

template <class T, int DTYPE> static __global__ void add_kernel(lt_CudaAdd a, T scale) {
  if (*a.bad) return;
  const int dtype = DTYPE == ANY_DTYPE ? a.dtype : DTYPE;
  int64_t lines = a.lines.count, columns = a.columns.count;
  LT_EACH(i, lines * columns) {
    int64_t e, k; /* the line and the column */
    if (a.lines_inside)
      k = divide(i, lines, &e);
    else
      e = divide(i, columns, &k);
    uint64_t cell = a.order ? a.cells[e] : 0;
    if (a.order && e > 0 && a.cells[e - 1] == cell) continue; /* another thread's */
    Place line = place_of(a.lines, a.order ? a.order[e] : e), column = place_of(a.columns, k);
    int64_t position = a.lines.at[line.index];
    if (position == a.skip) continue;
    int64_t place = line.self + column.self + position * a.lines.step;
    T sum = add_scaled(load<T>(a.to, dtype, place), scale,
                       load<T>(a.from, dtype, line.other + column.other));
    while (a.order && e + 1 < lines && a.cells[e + 1] == cell) { /* loads ahead, adds in order */
      T v[AHEAD];
      bool own[AHEAD];
#pragma unroll
      for (int j = 0; j < AHEAD; j++) {
        e++;
        own[j] = e < lines && a.cells[e] == cell;
        v[j] = own[j] ? load<T>(a.from, dtype, place_of(a.lines, a.order[e]).other + column.other)
                      : (T)0;
      }
#pragma unroll
      for (int j = 0; j < AHEAD; j++)
        if (own[j]) sum = add_scaled(sum, scale, v[j]);
    }
    store(a.to, dtype, place, sum);
  }
}

template <class T, int DTYPE>
static cudaError_t add(const lt_CudaAdd *a, T scale, cudaStream_t stream) {
  return launch("add", add_kernel<T, DTYPE>, grid(a->lines.count * a->columns.count), dim3(THREADS),
                0, stream, *a, scale);
}

cudaError_t lt_cuda_launch_add(const lt_CudaAdd *a, cudaStream_t stream) {
  switch (a->dtype) {
  case LT_float64:
    return add<double, LT_float64>(a, a->scale, stream);
  case LT_float32:
    return add<float, LT_float32>(a, (float)a->scale, stream);
  case LT_float16:
    return add<float, LT_float16>(a, (float)a->scale, stream);
  case LT_bfloat16:
    return add<float, LT_bfloat16>(a, (float)a->scale, stream);
  default:
    return add<int64_t, ANY_DTYPE>(a, a->scale_int, stream);
  }
}
