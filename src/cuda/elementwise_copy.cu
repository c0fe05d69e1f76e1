/* elementwise_copy.cu: copies of elements without conversion, and fills. They treat elements as
 * bytes, whatever the dtype.
 *
 * Transposed copies (source and target are dense in different dimensions) go through tiles in
 * shared memory, so that both sides are accessed in consecutive runs.
 */
#include "elementwise_begin.cuh"

#define THREADS 128
#define EACH    4 /* elements for each thread */
#define TILE    32
#define ROWS    8 /* rows of a tile at a time: a block is TILE x ROWS threads */

namespace {
template <int DIMS> struct Part {
  int ndim;
  int64_t shape[DIMS], to[DIMS], from[DIMS];
};
} // namespace

template <int DIMS> static Part<DIMS> part_of(const lt_CudaShape *s) {
  Part<DIMS> part = {};
  part.ndim = s->ndim;
  for (int d = 0; d < s->ndim; d++) {
    part.shape[d] = s->shape[d];
    part.to[d] = s->strides[0][d];
    part.from[d] = s->strides[1][d];
  }
  return part;
}

/* ---- any layout ------------------------------------------------------------------------------ */

/* Copies or fills any layout: EACH elements to a thread, THREADS apart. */
template <class E, int DIMS>
static __global__ void __launch_bounds__(THREADS)
    move_elements(E *to, const E *from, E value, int64_t numel,
                  const __grid_constant__ Part<DIMS> part) {
  int64_t first = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  for (int e = 0; e < EACH; e++) {
    int64_t left = first + e * THREADS, t = 0, f = 0;
    if (left >= numel) return;
#pragma unroll 1
    for (int d = DIMS > 1 ? part.ndim - 1 : 0; d > 0; d--) {
      int64_t at = divmod(left, part.shape[d]);
      t += at * part.to[d];
      f += at * part.from[d];
    }
    t += left * part.to[0];
    f += left * part.from[0];
    to[t] = from ? from[f] : value;
  }
}

template <class E> static inline E value(const uint64_t *bits) { return (E)*bits; }
template <> uint2 value<uint2>(const uint64_t *bits) {
  return make_uint2((unsigned)bits[0], (unsigned)(bits[0] >> 32));
}
template <> uint4 value<uint4>(const uint64_t *bits) {
  return make_uint4((unsigned)bits[0], (unsigned)(bits[0] >> 32), (unsigned)bits[1],
                    (unsigned)(bits[1] >> 32));
}

template <class E, int DIMS>
static cudaError_t move_any(const lt_CudaMove *m, const lt_CudaShape *s, cudaStream_t stream) {
  return launch(m->from ? "copy" : "fill", move_elements<E, DIMS>,
                grid_for(blocks_for(m->numel, THREADS * EACH)), dim3(THREADS), 0, stream,
                (E *)m->to, (const E *)m->from, value<E>(m->bits), m->numel, part_of<DIMS>(s));
}

/* ---- dense memory ---------------------------------------------------------------------------- */

/* Fills with a pattern of 16 bytes, 16 bytes at a time; the first `head` and the last few bytes one
 * by one. `head` is a multiple of the element's size, so that the pattern stays aligned with it. */
static __global__ void __launch_bounds__(THREADS)
    fill_bytes(uint8_t *to, uint64_t low, uint64_t high, int64_t head, int64_t quads,
               int64_t nbytes) {
  int64_t i = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  if (i < 16) {
    uint8_t byte = (uint8_t)((i < 8 ? low : high) >> 8 * (i % 8));
    int64_t tail = head + quads * 16 + i;
    if (i < head) to[i] = byte;
    if (tail < nbytes) to[tail] = byte;
  }
  for (int e = 0; e < EACH; e++, i += THREADS)
    if (i < quads)
      ((uint4 *)(to + head))[i] =
          make_uint4((unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32));
}

/* Fills contiguous memory: by cudaMemset where all bytes are equal, else with the repeated
 * pattern. */
static cudaError_t fill_dense(const lt_CudaMove *m, cudaStream_t stream) {
  uint64_t low = m->bits[0];
  for (int size = m->size; size < 8; size *= 2) low |= low << 8 * size;
  uint64_t high = m->size == 16 ? m->bits[1] : low;
  int64_t nbytes = m->numel * m->size;
  if (low == (low & 0xff) * 0x0101010101010101u && high == low)
    return lt_cuda_note_launch("fill", stream,
                               cudaMemsetAsync(m->to, (int)(low & 0xff), (size_t)nbytes, stream));
  int64_t head = (int64_t)(-(uintptr_t)m->to % 16);
  if (head > nbytes) head = nbytes;
  int64_t quads = (nbytes - head) / 16;
  return launch("fill", fill_bytes, grid_for(blocks_for(quads, THREADS * EACH)), dim3(THREADS), 0,
                stream, (uint8_t *)m->to, low, high, head, quads, nbytes);
}

/* ---- transposes ------------------------------------------------------------------------------ */

/* A transpose: dimension `across` is dense in `from`, the last one in `to`. */
namespace {
struct Tiles {
  int64_t across, tiles_across, tiles_last; /* sizes: of the dimensions, and in tiles */
  int64_t last;
  int64_t to_across, from_last; /* strides */
};
} // namespace

/* Transposes tiles in shared memory, whose rows are padded to avoid bank conflicts. */
template <class E, int DIMS>
static __global__ void __launch_bounds__(TILE *ROWS)
    move_tiles(E *to, const E *from, const __grid_constant__ Tiles t,
               const __grid_constant__ Part<DIMS> outer) {
  __shared__ E tile[TILE][TILE + (sizeof(E) < 4 ? 4 / sizeof(E) : 1)];
  int64_t left = (int64_t)blockIdx.x;
  int64_t last = divmod(left, t.tiles_last) * TILE, across = divmod(left, t.tiles_across) * TILE;
#pragma unroll 1
  for (int d = outer.ndim - 1; d >= 0; d--) {
    int64_t at = divmod(left, outer.shape[d]);
    to += at * outer.to[d];
    from += at * outer.from[d];
  }
  int x = (int)threadIdx.x, y = (int)threadIdx.y;
  for (int r = y; r < TILE; r += ROWS)
    if (across + x < t.across && last + r < t.last)
      tile[r][x] = from[(last + r) * t.from_last + across + x];
  __syncthreads();
  for (int r = y; r < TILE; r += ROWS)
    if (across + r < t.across && last + x < t.last)
      to[(across + r) * t.to_across + last + x] = tile[x][r];
}

/* Returns the dimension that is dense in `from` while the last one is dense in `to`; -1 for other
 * copies, and where tiles do not pay. */
static int transposed(const lt_CudaMove *m, const lt_CudaShape *s) {
  int last = s->ndim - 1;
  if (!m->from || s->strides[0][last] != 1 || s->strides[1][last] == 1) return -1;
  if (m->numel >= (int64_t)1 << 36) return -1; /* there may be more tiles than blocks in a grid */
  for (int d = 0; d < last; d++)
    if (s->strides[1][d] == 1 && s->shape[d] >= 8 && s->shape[last] >= 8) return d;
  return -1;
}

/* Launches a transpose of dimension `dim` with the last one; the other dimensions are outer. */
template <class E>
static cudaError_t transpose(const lt_CudaMove *m, const lt_CudaShape *s, int dim,
                             cudaStream_t stream) {
  int last = s->ndim - 1;
  Tiles t = {s->shape[dim],
             blocks_for(s->shape[dim], TILE),
             blocks_for(s->shape[last], TILE),
             s->shape[last],
             s->strides[0][dim],
             s->strides[1][last]};
  lt_CudaShape rest = *s;
  rest.ndim = 0;
  for (int d = 0; d < last; d++) {
    if (d == dim) continue;
    rest.shape[rest.ndim] = s->shape[d];
    rest.strides[0][rest.ndim] = s->strides[0][d];
    rest.strides[1][rest.ndim++] = s->strides[1][d];
  }
  int64_t blocks = t.tiles_across * t.tiles_last;
  for (int d = 0; d < rest.ndim; d++) blocks *= rest.shape[d];
  return rest.ndim <= 2
             ? launch("transpose", move_tiles<E, 2>, grid_for(blocks), dim3(TILE, ROWS), 0, stream,
                      (E *)m->to, (const E *)m->from, t, part_of<2>(&rest))
             : launch("transpose", move_tiles<E, LT_MAX_DIMS>, grid_for(blocks), dim3(TILE, ROWS),
                      0, stream, (E *)m->to, (const E *)m->from, t, part_of<LT_MAX_DIMS>(&rest));
}

static cudaError_t move_transposed(const lt_CudaMove *m, const lt_CudaShape *s, int dim,
                                   cudaStream_t stream) {
  switch (m->size) {
  case 1:
    return transpose<uint8_t>(m, s, dim, stream);
  case 2:
    return transpose<uint16_t>(m, s, dim, stream);
  case 4:
    return transpose<uint32_t>(m, s, dim, stream);
  case 8:
    return transpose<uint64_t>(m, s, dim, stream);
  default:
    return transpose<uint4>(m, s, dim, stream);
  }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Treats elements as half as many of twice the size, as often as alignment and strides allow, up to
 * 16 bytes. */
static void widen(lt_CudaMove *m, lt_CudaShape *s) {
  int last = s->ndim - 1, operands = m->from ? 2 : 1;
  int64_t largest = m->from ? 16 : 8;
  for (int64_t size = 2 * m->size; size <= largest; size *= 2) {
    bool fits =
        s->shape[last] % 2 == 0 && ((uintptr_t)m->to | (uintptr_t)m->from) % (uintptr_t)size == 0;
    for (int k = 0; k < operands && fits; k++) {
      fits = s->strides[k][last] == 1;
      for (int d = 0; d < last; d++) fits &= s->strides[k][d] % 2 == 0;
    }
    if (!fits) return;
    if (!m->from) m->bits[0] |= m->bits[0] << 4 * size; /* half of the new size, in bits */
    m->size = (int)size;
    m->numel /= 2;
    s->shape[last] /= 2;
    for (int k = 0; k < operands; k++)
      for (int d = 0; d < last; d++) s->strides[k][d] /= 2;
  }
}

/* ---- choice of the kernel -------------------------------------------------------------------- */

template <class E>
static cudaError_t move_rows(const lt_CudaMove *m, const lt_CudaShape *s, cudaStream_t stream) {
  return s->ndim <= 4 ? move_any<E, 4>(m, s, stream) : move_any<E, LT_MAX_DIMS>(m, s, stream);
}

LT_C_LINKAGE cudaError_t lt_cuda_launch_move(const lt_CudaMove *m, const lt_CudaShape *s,
                                             cudaStream_t stream) {
  bool dense = s->ndim == 1 && s->strides[0][0] == 1;
  if (dense && !m->from) return fill_dense(m, stream);
  if (dense && s->strides[1][0] == 1 && m->to == m->from) return cudaSuccess;
  if (dense && s->strides[1][0] == 1)
    return lt_cuda_note_launch("copy", stream,
                               cudaMemcpyAsync(m->to, m->from, (size_t)(m->numel * m->size),
                                               cudaMemcpyDeviceToDevice, stream));
  int dim = transposed(m, s);
  if (dim >= 0) return move_transposed(m, s, dim, stream);
  lt_CudaMove wide = *m;
  lt_CudaShape shape = *s;
  widen(&wide, &shape);
  switch (wide.size) {
  case 1:
    return move_rows<uint8_t>(&wide, &shape, stream);
  case 2:
    return move_rows<uint16_t>(&wide, &shape, stream);
  case 4:
    return move_rows<uint32_t>(&wide, &shape, stream);
  case 8:
    return move_rows<uint2>(&wide, &shape, stream);
  default:
    return move_rows<uint4>(&wide, &shape, stream);
  }
}
