/* elementwise_flat.cu: a kernel for each op, for contiguous float32: the most frequent case,
 * limited by the memory's bandwidth alone.
 *
 * A thread processes two quads of four elements; neighbouring threads have neighbouring quads. Both
 * are loaded from all inputs before anything is stored, so that the loads are issued together.
 */
#include "elementwise_begin.cuh"

#define T float
#define LT_IS_FLOAT
#include "elementwise_texts.h"

#define THREADS 128

/* Returns quad i of input k. */
LT_DEVICE_INLINE float4 read(const lt_CudaFlat &l, int k, int64_t i) {
  if (l.source[k] == LT_CUDA_DENSE) return ((const float4 *)l.in[k])[i];
  float v = l.source[k] == LT_CUDA_VALUE ? l.value[k] : *l.in[k];
  return make_float4(v, v, v, v);
}

template <class Op>
LT_DEVICE_INLINE float4 compute_quad(const lt_CudaFlat &l, float4 x, float4 y, float4 z) {
  const float a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w}, c[4] = {z.x, z.y, z.z, z.w};
  float r[4];
  LT_VECTOR_LOOP
  for (int k = 0; k < 4; k++) r[k] = Op::of(a[k], b[k], c[k], l.a, l.b, l.limit);
  return make_float4(r[0], r[1], r[2], r[3]);
}

template <class Op>
LT_DEVICE_INLINE void write(const lt_CudaFlat &l, int64_t i, float4 x, float4 y, float4 z) {
  float4 v = compute_quad<Op>(l, x, y, z);
  if (Op::test && l.gives_bool)
    ((uchar4 *)l.out)[i] = make_uchar4(v.x != 0, v.y != 0, v.z != 0, v.w != 0);
  else
    ((float4 *)l.out)[i] = v;
}

/* Returns the last elements of input k, from i on; the last one is repeated. */
LT_DEVICE_INLINE float4 read_rest(const lt_CudaFlat &l, int k, int64_t i) {
  if (l.source[k] != LT_CUDA_DENSE) return read(l, k, 0);
  int64_t last = l.numel - 1;
  const float *in = l.in[k];
  return make_float4(in[i], in[i + 1 < last ? i + 1 : last], in[i + 2 < last ? i + 2 : last],
                     in[last]);
}

/* Processes the last elements, fewer than four. They are computed in the same way as the others, so
 * that an element's result does not depend on its index. */
template <class Op> LT_DEVICE_INLINE void rest(const lt_CudaFlat &l, int64_t i) {
  if (i >= l.numel) return;
  float4 none = make_float4(0, 0, 0, 0);
  float4 v = compute_quad<Op>(l, read_rest(l, 0, i), Op::inputs > 1 ? read_rest(l, 1, i) : none,
                              Op::inputs > 2 ? read_rest(l, 2, i) : none);
  const float r[4] = {v.x, v.y, v.z, v.w};
  for (int k = 0; k < 3; k++) {
    if (i + k >= l.numel) break;
    if (Op::test && l.gives_bool)
      ((uint8_t *)l.out)[i + k] = r[k] != 0;
    else
      ((float *)l.out)[i + k] = r[k];
  }
}

/* Processes two quads for each thread; the thread after the last quad processes the rest. */
template <class Op>
static __global__ void __launch_bounds__(THREADS) flat(const __grid_constant__ lt_CudaFlat l) {
  int64_t i = (int64_t)blockIdx.x * (2 * THREADS) + threadIdx.x, j = i + THREADS,
          quads = l.numel / 4;
  float4 none = make_float4(0, 0, 0, 0);
  if (j < quads) {
    float4 x = read(l, 0, i), x2 = read(l, 0, j);
    float4 y = Op::inputs > 1 ? read(l, 1, i) : none, y2 = Op::inputs > 1 ? read(l, 1, j) : none;
    float4 z = Op::inputs > 2 ? read(l, 2, i) : none, z2 = Op::inputs > 2 ? read(l, 2, j) : none;
    write<Op>(l, i, x, y, z);
    write<Op>(l, j, x2, y2, z2);
  } else if (i < quads) {
    write<Op>(l, i, read(l, 0, i), Op::inputs > 1 ? read(l, 1, i) : none,
              Op::inputs > 2 ? read(l, 2, i) : none);
  }
  if (i == quads || j == quads) rest<Op>(l, quads * 4);
}

#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  TEXT_##types(name, inputs, rule, ftext, itext)
#define LT_TEXT LT_OP_STRUCT
#include "ops.def"
#undef LT_TEXT

LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_flat(int op, const lt_CudaFlat *l,
                                                         cudaStream_t stream) {
  dim3 grid = grid_for(blocks_for(l->numel, 8 * THREADS));
  switch (op) {
#define LT_TEXT(name, count, result, text)                                                         \
  case LT_OP_##name:                                                                               \
    return launch(#name, flat<Op_##name>, grid, dim3(THREADS), 0, stream, *l);
#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  TEXT_##types(name, inputs, rule, ftext, itext)
#include "ops.def"
  default:
    return cudaErrorInvalidValue;
  }
}
