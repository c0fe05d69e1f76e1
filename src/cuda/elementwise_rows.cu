/* elementwise_rows.cu: a kernel for each op, for floats and bytes in dense rows: a thread processes
 * LT_CUDA_GROUP consecutive elements, and loads and stores them 16 bytes at a time.
 *
 * Elements are fetched from all operands before any of them is converted, so that the loads are
 * issued together. Where that is not possible (the last block, memory that is not aligned),
 * elements are processed one at a time, neighbouring threads on neighbouring elements.
 */
#include "elementwise_begin.cuh"

#define T float
#define LT_IS_FLOAT
#include "elementwise_texts.h"

#define GROUP   LT_CUDA_GROUP
#define THREADS 128

/* ---- groups ---------------------------------------------------------------------------------- */

/* Loads the bytes of a group: 8 words of float32, 4 of halves, 2 of bytes. */
LT_DEVICE_INLINE void fetch(uint32_t (&w)[GROUP], const void *memory, int dtype, int64_t i) {
  if (dtype == LT_float32) {
    uint4 low = ((const uint4 *)memory)[i / 4], high = ((const uint4 *)memory)[i / 4 + 1];
    w[0] = low.x, w[1] = low.y, w[2] = low.z, w[3] = low.w;
    w[4] = high.x, w[5] = high.y, w[6] = high.z, w[7] = high.w;
  } else if (dtype >= LT_float16) {
    uint4 all = ((const uint4 *)memory)[i / 8];
    w[0] = all.x, w[1] = all.y, w[2] = all.z, w[3] = all.w;
  } else {
    uint2 all = ((const uint2 *)memory)[i / 8];
    w[0] = all.x, w[1] = all.y;
  }
}

/* Converts the bytes of a group to floats. */
LT_DEVICE_INLINE void unpack(float (&v)[GROUP], const uint32_t (&w)[GROUP], int dtype) {
  if (dtype == LT_float32) {
    for (int e = 0; e < GROUP; e++) v[e] = __uint_as_float(w[e]);
  } else if (dtype == LT_float16) {
    LT_VECTOR_LOOP
    for (int j = 0; j < GROUP / 2; j++) {
      v[2 * j] = __half2float(__ushort_as_half((unsigned short)(w[j] & 0xffffu)));
      v[2 * j + 1] = __half2float(__ushort_as_half((unsigned short)(w[j] >> 16)));
    }
  } else if (dtype == LT_bfloat16) {
    LT_VECTOR_LOOP
    for (int j = 0; j < GROUP / 2; j++) {
      v[2 * j] = __uint_as_float(w[j] << 16);
      v[2 * j + 1] = __uint_as_float(w[j] & 0xffff0000u);
    }
  } else {
    for (int e = 0; e < GROUP; e++) v[e] = (float)(w[e / 4] >> 8 * (e % 4) & 0xffu);
  }
}

/* Stores a group of 16-bit numbers, two to a word, the first in the low half. */
LT_DEVICE_INLINE void put_halves(void *memory, int64_t i, const uint32_t (&h)[GROUP]) {
  uint32_t w[GROUP / 2];
  LT_VECTOR_LOOP
  for (int j = 0; j < GROUP / 2; j++) w[j] = h[2 * j] | h[2 * j + 1] << 16;
  ((uint4 *)memory)[i / 8] = make_uint4(w[0], w[1], w[2], w[3]);
}

LT_DEVICE_INLINE uint32_t byte_of(float v, int dtype) {
  return dtype == LT_bool ? v != 0 : convert<uint8_t>(v);
}
LT_DEVICE_INLINE uint32_t four(const float *v, int dtype) {
  return byte_of(v[0], dtype) | byte_of(v[1], dtype) << 8 | byte_of(v[2], dtype) << 16 |
         byte_of(v[3], dtype) << 24;
}

/* Converts a group to the dtype and stores it. */
LT_DEVICE_INLINE void put(void *memory, int dtype, int64_t i, const float (&v)[GROUP]) {
  if (dtype == LT_float32) {
    float4 *to = (float4 *)memory + i / 4;
    to[0] = make_float4(v[0], v[1], v[2], v[3]);
    to[1] = make_float4(v[4], v[5], v[6], v[7]);
  } else if (dtype == LT_float16) {
    uint32_t h[GROUP];
    LT_VECTOR_LOOP
    for (int e = 0; e < GROUP; e++) h[e] = __half_as_ushort(half_of(v[e]));
    put_halves(memory, i, h);
  } else if (dtype == LT_bfloat16) {
    uint32_t h[GROUP];
    LT_VECTOR_LOOP
    for (int e = 0; e < GROUP; e++) h[e] = __bfloat16_as_ushort(bfloat16_of(v[e]));
    put_halves(memory, i, h);
  } else {
    ((uint2 *)memory)[i / 8] = make_uint2(four(v, dtype), four(v + 4, dtype));
  }
}

/* ---- single elements ------------------------------------------------------------------------- */

static __device__ __noinline__ float get_one(const void *memory, int dtype, int64_t i) {
  return dtype >= LT_float16 ? load_float<float>(memory, dtype, i)
                             : (float)((const uint8_t *)memory)[i];
}
static __device__ __noinline__ void put_one(void *memory, int dtype, int64_t i, float v) {
  if (dtype >= LT_float16)
    store_float<float>(memory, dtype, i, v);
  else
    ((uint8_t *)memory)[i] = dtype == LT_bool ? v != 0 : convert<uint8_t>(v);
}

/* Returns the value of operand k, which is the same in the whole row. */
LT_DEVICE_INLINE float single(const lt_CudaRows &l, int k, int64_t row) {
  return l.source[k] == LT_CUDA_VALUE ? l.value[k] : get_one(l.data[k], l.dtype[k], row);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Computes a group at `at` of the rows that begin at row[k] in operand k. */
template <class Op>
LT_DEVICE_INLINE void do_group(const lt_CudaRows &l, int64_t at, const int64_t (&row)[4]) {
  uint32_t w[Op::inputs][GROUP];
  float v[3][GROUP], result[GROUP];
  for (int k = 0; k < Op::inputs; k++)
    if (l.source[k + 1] == LT_CUDA_DENSE)
      fetch(w[k], l.data[k + 1], l.dtype[k + 1], row[k + 1] + at);
  for (int k = 0; k < Op::inputs; k++) {
    if (l.source[k + 1] == LT_CUDA_DENSE) {
      unpack(v[k], w[k], l.dtype[k + 1]);
    } else {
      float same = single(l, k + 1, row[k + 1]);
      for (int e = 0; e < GROUP; e++) v[k][e] = same;
    }
  }
  LT_VECTOR_LOOP
  for (int e = 0; e < GROUP; e++)
    result[e] = Op::of(v[0][e], Op::inputs > 1 ? v[1][e] : 0, Op::inputs > 2 ? v[2][e] : 0, l.a,
                       l.b, l.limit);
  put(l.data[0], l.dtype[0], row[0] + at, result);
}

template <class Op> LT_DEVICE_INLINE void do_one(const lt_CudaRows &l, int64_t i) {
  float v[3] = {0, 0, 0};
  for (int k = 0; k < Op::inputs; k++)
    v[k] = l.source[k + 1] == LT_CUDA_DENSE ? get_one(l.data[k + 1], l.dtype[k + 1], i)
                                            : single(l, k + 1, 0);
  put_one(l.data[0], l.dtype[0], i, Op::of(v[0], v[1], v[2], l.a, l.b, l.limit));
}

/* Processes one group to a thread where groups are aligned, else one element at a time. */
template <class Op>
static __global__ void __launch_bounds__(THREADS) in_rows(const __grid_constant__ lt_CudaRows l) {
  int64_t first = (int64_t)blockIdx.x * (THREADS * GROUP);
  if (l.aligned && (l.outer || first + THREADS * GROUP <= l.numel)) {
    int64_t at = first + (int64_t)threadIdx.x * GROUP, row[4] = {0, 0, 0, 0};
    if (l.outer) {
      if (at >= l.numel) return;
      int64_t left = at;
      at = divmod(left, l.length);
      for (int d = l.outer - 1; d >= 0; d--) {
        int64_t position = d ? divmod(left, l.shape[d]) : left;
        for (int k = 0; k <= Op::inputs; k++) row[k] += position * l.strides[k][d];
      }
    }
    do_group<Op>(l, at, row);
    return;
  }
#pragma unroll 1
  for (int e = 0; e < GROUP; e++) {
    int64_t i = first + e * THREADS + threadIdx.x;
    if (i >= l.numel) return;
    do_one<Op>(l, i);
  }
}

#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  TEXT_##types(name, inputs, rule, ftext, itext)
#define LT_TEXT LT_OP_STRUCT
#include "ops.def"
#undef LT_TEXT

LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_rows(int op, const lt_CudaRows *rows,
                                                         cudaStream_t stream) {
  dim3 grid = grid_for(blocks_for(rows->numel, THREADS * GROUP));
  switch (op) {
#define LT_TEXT(name, count, result, text)                                                         \
  case LT_OP_##name:                                                                               \
    return launch(#name, in_rows<Op_##name>, grid, dim3(THREADS), 0, stream, *rows);
#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  TEXT_##types(name, inputs, rule, ftext, itext)
#include "ops.def"
  default:
    return cudaErrorInvalidValue;
  }
}
