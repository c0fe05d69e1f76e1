/* index_update.cu: the kernels of index_update.h.
 *
 * Sums of halves are computed in float32, of integers in int64, and each one by a single thread in
 * the order of the index: the result is the same as that of a loop on the CPU, bit for bit.
 */
#include "index_update.h"
#include "index_regions.cuh"

/* ---- which elements share a cell ------------------------------------------------------------- */

/* The line of element e of the index, its index in the line, and the line's first element. */
struct LinePosition {
  int64_t line, j, first;
};
LT_DEVICE_INLINE LinePosition line_position(const lt_CudaLines &l, int64_t e) {
  LinePosition s = {0, e, 0};
  if (l.outer == 1 && l.inner == 1) return s;
  int64_t in, outer = divide(divide(e, l.inner, &in), l.length, &s.j);
  s.line = outer * l.inner + in;
  s.first = outer * l.length * l.inner + in;
  return s;
}
LT_DEVICE_INLINE int64_t elements(const lt_CudaLines &l) { return l.outer * l.length * l.inner; }

static __global__ void keep_near_kernel(lt_CudaLines l, uint8_t *keep) {
  LT_EACH_ALONE(e, elements(l)) {
    LinePosition s = line_position(l, e);
    int64_t v = l.at[e];
    bool last = true;
    for (int64_t j = s.j + 1; j < l.length && last; j++) last = l.at[s.first + j * l.inner] != v;
    keep[e] = last;
  }
}

static __global__ void note_kernel(lt_CudaLines l, unsigned long long *notes) {
  LT_EACH(e, elements(l))
  atomicMax(&notes[line_position(l, e).line * l.n + l.at[e]], (unsigned long long)e + 1);
}
static __global__ void keep_noted_kernel(lt_CudaLines l, const unsigned long long *notes,
                                         uint8_t *keep) {
  LT_EACH(e, elements(l))
  keep[e] = notes[line_position(l, e).line * l.n + l.at[e]] == (unsigned long long)e + 1;
}

static __global__ void keep_ordered_kernel(const uint64_t *cells, const int64_t *order,
                                           int64_t count, uint8_t *keep) {
  LT_EACH(i, count) keep[order[i]] = i == count - 1 || cells[i + 1] != cells[i];
}

/* Sorts by rank: the rank of an element is the number of elements of its line with a smaller cell,
 * or the same cell and before it. */
static __global__ void order_near_kernel(lt_CudaLines l, uint64_t *cells, int64_t *order) {
  LT_EACH_ALONE(e, elements(l)) {
    LinePosition s = line_position(l, e);
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
    cells[e] = (uint64_t)(line_position(l, e).line * l.n + l.at[e]);
    number[e] = e;
  }
}

static int64_t count_of(const lt_CudaLines *l) { return l->outer * l->length * l->inner; }

cudaError_t lt_cuda_launch_keep_near(const lt_CudaLines *l, uint8_t *keep, cudaStream_t stream) {
  return launch_each_alone("keep_near", keep_near_kernel, count_of(l), stream, *l, keep);
}
cudaError_t lt_cuda_launch_keep_noted(const lt_CudaLines *l, unsigned long long *notes,
                                      uint8_t *keep, cudaStream_t stream) {
  cudaError_t status = launch_each("note_cells", note_kernel, count_of(l), stream, *l, notes);
  if (status != cudaSuccess) return status;
  return launch_each("keep_noted", keep_noted_kernel, count_of(l), stream, *l,
                     (const unsigned long long *)notes, keep);
}
cudaError_t lt_cuda_launch_keep_ordered(const uint64_t *cells, const int64_t *order, int64_t count,
                                        uint8_t *keep, cudaStream_t stream) {
  return launch_each("keep_ordered", keep_ordered_kernel, count, stream, cells, order, count, keep);
}
cudaError_t lt_cuda_launch_order_near(const lt_CudaLines *l, uint64_t *cells, int64_t *order,
                                      cudaStream_t stream) {
  return launch_each_alone("order_near", order_near_kernel, count_of(l), stream, *l, cells, order);
}
cudaError_t lt_cuda_launch_cells(const lt_CudaLines *l, uint64_t *cells, int64_t *number,
                                 cudaStream_t stream) {
  return launch_each("cells", cells_kernel, count_of(l), stream, *l, cells, number);
}

/* ---- writing --------------------------------------------------------------------------------- */

template <class U>
static __global__ void __launch_bounds__(LT_INDEX_THREADS)
    put_kernel(lt_IndexRegion p, U *to, const U *from, U value, const uint8_t *keep,
               const int *bad) {
  if (*bad) return;
  LT_ROUND(p.count) {
    int64_t self[LT_STEPS], selected[LT_STEPS];
    U v[LT_STEPS];
    bool kept[LT_STEPS];
    LT_STEP(k, i, p.count) {
      RegionOffsets at = region_offsets(p, i);
      self[k] = at.self;
      selected[k] = p.at[at.index];
      kept[k] = !keep || keep[at.index];
      v[k] = from ? from[at.other] : value;
    }
    LT_STEP(k, i, p.count) {
      if (kept[k]) to[self[k] + selected[k] * p.step] = v[k];
    }
  }
}

template <class U>
static cudaError_t put(const lt_IndexRegion *p, void *to, const void *from, const void *value,
                       const uint8_t *keep, const int *bad, cudaStream_t stream) {
  return launch_each("index_put", put_kernel<U>, p->count, stream, *p, (U *)to, (const U *)from,
                     *(const U *)value, keep, bad);
}

cudaError_t lt_cuda_launch_put(const lt_IndexRegion *p, void *to, const void *from,
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

/* Each operation is rounded separately, as on the CPU. */
LT_DEVICE_INLINE float add_scaled(float sum, float scale, float v) {
  return __fadd_rn(sum, __fmul_rn(scale, v));
}
LT_DEVICE_INLINE double add_scaled(double sum, double scale, double v) {
  return __dadd_rn(sum, __dmul_rn(scale, v));
}
LT_DEVICE_INLINE int64_t add_scaled(int64_t sum, int64_t scale, int64_t v) {
  return (int64_t)((uint64_t)sum + (uint64_t)scale * (uint64_t)v);
}

/* A storage dtype that is known at compile time removes the switch from the kernel's loop. */
enum { ANY_DTYPE = -1 };

/* W consecutive elements. */
template <class T, int W> struct Group { T v[W]; };
template <class T, int DTYPE, int W>
LT_DEVICE_INLINE Group<T, W> load_group(const void *p, int dtype, int64_t i) {
  Group<T, W> g;
  if constexpr (W == 4)
    load_four(g.v, p, DTYPE, i);
  else
    g.v[0] = load<T>(p, DTYPE == ANY_DTYPE ? dtype : DTYPE, i);
  return g;
}
template <class T, int DTYPE, int W>
LT_DEVICE_INLINE void store_group(void *p, int dtype, int64_t i, const Group<T, W> &g) {
  if constexpr (W == 4)
    store_four(p, DTYPE, i, g.v);
  else
    store(p, DTYPE == ANY_DTYPE ? dtype : DTYPE, i, g.v[0]);
}
template <class T, int W>
LT_DEVICE_INLINE void add_group(Group<T, W> &sum, T scale, const Group<T, W> &g) {
#pragma unroll
  for (int w = 0; w < W; w++) sum.v[w] = add_scaled(sum.v[w], scale, g.v[w]);
}

struct Offsets {
  int64_t self, other;
};
LT_DEVICE_INLINE Offsets pair_of(const lt_CudaPair &p, int64_t i) {
  Offsets at = {0, 0};
  for (int d = p.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, p.shape[d], &c);
    at.self += c * p.self[d];
    at.other += c * p.other[d];
  }
  return at;
}

/* Adds up column k of the run of equal cells that begins with the sorted line e. Does nothing where
 * the line is not the first of its run. */
template <class T, int DTYPE, int W>
LT_DEVICE_INLINE void add_run(const lt_CudaAdd &a, T scale, int64_t e, int64_t k) {
  enum { AHEAD = W == 4 ? 4 : 8 };
  uint64_t cell = a.order ? a.cells[e] : 0;
  if (a.order && e > 0 && a.cells[e - 1] == cell) return; /* another thread's run */
  int64_t line = a.order ? a.order[e] : e, selected = a.at[line];
  if (selected == a.skip) return;
  Offsets own = pair_of(a.lines, line), column = pair_of(a.columns, k);
  int64_t place = own.self + column.self + selected * a.step;
  Group<T, W> sum = load_group<T, DTYPE, W>(a.to, a.dtype, place);
  add_group(sum, scale, load_group<T, DTYPE, W>(a.from, a.dtype, own.other + column.other));
  while (a.order && e + 1 < a.lines.count && a.cells[e + 1] == cell) {
    Group<T, W> g[AHEAD]; /* loads several elements ahead, adds them in order */
    bool same[AHEAD];
#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
      e++;
      same[j] = e < a.lines.count && a.cells[e] == cell;
      if (same[j])
        g[j] = load_group<T, DTYPE, W>(a.from, a.dtype,
                                       pair_of(a.lines, a.order[e]).other + column.other);
    }
#pragma unroll
    for (int j = 0; j < AHEAD; j++)
      if (same[j]) add_group(sum, scale, g[j]);
  }
  store_group<T, DTYPE, W>(a.to, a.dtype, place, sum);
}

/* Adds the runs, one column to a thread, since runs may be long. */
template <class T, int DTYPE, int W> static __global__ void add_kernel(lt_CudaAdd a, T scale) {
  if (*a.bad) return;
  LT_EACH_ALONE(i, a.lines.count * a.columns.count) {
    int64_t e, k;
    if (a.lines_inside)
      k = divide(i, a.lines.count, &e);
    else
      e = divide(i, a.columns.count, &k);
    add_run<T, DTYPE, W>(a, scale, e, k);
  }
}

template <class T, int DTYPE, int W>
static cudaError_t add(const lt_CudaAdd *a, T scale, cudaStream_t stream) {
  return launch_each_alone("index_add", add_kernel<T, DTYPE, W>, a->lines.count * a->columns.count,
                           stream, *a, scale);
}
/* ---- other folds ----------------------------------------------------------------------------- */

LT_DEVICE_INLINE float times(float a, float b) { return __fmul_rn(a, b); }
LT_DEVICE_INLINE double times(double a, double b) { return __dmul_rn(a, b); }
LT_DEVICE_INLINE int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
template <class T> LT_DEVICE_INLINE T fold_two(int how, T a, T b) {
  if (how == LT_FOLD_PROD) return times(a, b);
  return (how == LT_FOLD_AMAX ? b > a : b < a) || b != b ? b : a;
}

/* Folds column k of the run of equal cells that begins with the sorted line e, as add_run does. */
template <class T>
LT_DEVICE_INLINE void fold_run(const lt_CudaAdd &a, int how, int64_t e, int64_t k) {
  uint64_t cell = a.order ? a.cells[e] : 0;
  if (a.order && e > 0 && a.cells[e - 1] == cell) return;
  int64_t line = a.order ? a.order[e] : e;
  Offsets own = pair_of(a.lines, line), column = pair_of(a.columns, k);
  int64_t place = own.self + column.self + a.at[line] * a.step;
  T value = load<T>(a.to, a.dtype, place);
  value = fold_two(how, value, load<T>(a.from, a.dtype, own.other + column.other));
  while (a.order && e + 1 < a.lines.count && a.cells[e + 1] == cell) {
    int64_t from = pair_of(a.lines, a.order[++e]).other + column.other;
    value = fold_two(how, value, load<T>(a.from, a.dtype, from));
  }
  store(a.to, a.dtype, place, value);
}

template <class T> static __global__ void fold_kernel(lt_CudaAdd a, int how) {
  if (*a.bad) return;
  LT_EACH_ALONE(i, a.lines.count * a.columns.count) {
    int64_t k, e = divide(i, a.columns.count, &k);
    fold_run<T>(a, how, e, k);
  }
}
template <class T> static cudaError_t fold(const lt_CudaAdd *a, int how, cudaStream_t stream) {
  return launch_each_alone("index_fold", fold_kernel<T>, a->lines.count * a->columns.count, stream,
                           *a, how);
}

cudaError_t lt_cuda_launch_fold(const lt_CudaAdd *a, int how, cudaStream_t stream) {
  if (a->dtype == LT_float64) return fold<double>(a, how, stream);
  bool small = a->dtype == LT_float32 || a->dtype == LT_float16 || a->dtype == LT_bfloat16;
  return small ? fold<float>(a, how, stream) : fold<int64_t>(a, how, stream);
}

/* ---- the launch of the addition -------------------------------------------------------------- */

template <int DTYPE> static cudaError_t add_floats(const lt_CudaAdd *a, cudaStream_t stream) {
  float scale = (float)a->scale;
  return a->by_four ? add<float, DTYPE, 4>(a, scale, stream)
                    : add<float, DTYPE, 1>(a, scale, stream);
}

cudaError_t lt_cuda_launch_add(const lt_CudaAdd *a, cudaStream_t stream) {
  switch (a->dtype) {
  case LT_float64:
    return add<double, LT_float64, 1>(a, a->scale, stream);
  case LT_float32:
    return add_floats<LT_float32>(a, stream);
  case LT_float16:
    return add_floats<LT_float16>(a, stream);
  case LT_bfloat16:
    return add_floats<LT_bfloat16>(a, stream);
  default:
    return add<int64_t, ANY_DTYPE, 1>(a, a->scale_int, stream);
  }
}
