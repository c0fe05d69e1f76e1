/* device.cuh: device functions that kernels share: loads and stores that convert elements of any
 * dtype, reductions over warps and blocks, offsets in strided tensors, reports of bad values.
 *
 * A kernel is instantiated for the type that it computes in (float for the floats up to float32,
 * double, int64_t), not for the type in memory: load and store switch on the dtype, which is the
 * same for all threads, so the branch costs next to nothing.
 */
#ifndef LT_CUDA_DEVICE_CUH
#define LT_CUDA_DEVICE_CUH

#include "kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>

#define LT_WARP 32
#define LT_FULL 0xffffffffu /* the mask of all lanes of a warp */

#define LT_DEVICE_INLINE static __device__ __forceinline__

/* Returns the size of an element in bytes. */
static __host__ __device__ __forceinline__ int dtype_size(int dtype) {
  switch (dtype) {
#define LT_DTYPE(name, storage, ...)                                                               \
  case LT_##name:                                                                                  \
    return (int)sizeof(storage);
#include "dtypes.def"
#undef LT_DTYPE
  }
  return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Converts a float to an integer: truncates; NaN becomes 0, and numbers out of range become the
 * smallest or largest integer, as on every device. */
template <class I> LT_DEVICE_INLINE I clip(double v, double low, double high, I lowest, I highest) {
  if (v != v) return 0;
  if (v >= high) return highest;
  if (v <= low) return lowest;
  return (I)v;
}
template <class I> LT_DEVICE_INLINE I to_integer(double v);
template <> __device__ __forceinline__ uint8_t to_integer<uint8_t>(double v) {
  return clip<uint8_t>(v, 0, 255, 0, 255);
}
template <> __device__ __forceinline__ int8_t to_integer<int8_t>(double v) {
  return clip<int8_t>(v, -128, 127, -128, 127);
}
template <> __device__ __forceinline__ int16_t to_integer<int16_t>(double v) {
  return clip<int16_t>(v, -32768, 32767, -32768, 32767);
}
template <> __device__ __forceinline__ int32_t to_integer<int32_t>(double v) {
  return clip<int32_t>(v, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX);
}
template <> __device__ __forceinline__ int64_t to_integer<int64_t>(double v) {
  return clip<int64_t>(v, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX);
}

/* Converts one number to another type: as C does, except for floats to integers. */
template <class To, class From> struct Converted {
  static __device__ __forceinline__ To of(From v) { return (To)v; }
};
#define LT_FROM_FLOATS(I)                                                                          \
  template <> struct Converted<I, float> {                                                         \
    static __device__ __forceinline__ I of(float v) { return to_integer<I>((double)v); }           \
  };                                                                                               \
  template <> struct Converted<I, double> {                                                        \
    static __device__ __forceinline__ I of(double v) { return to_integer<I>(v); }                  \
  };
LT_FROM_FLOATS(uint8_t)
LT_FROM_FLOATS(int8_t)
LT_FROM_FLOATS(int16_t)
LT_FROM_FLOATS(int32_t)
LT_FROM_FLOATS(int64_t)
/* Returns v converted to another type. */
template <class To, class From> LT_DEVICE_INLINE To convert(From v) {
  return Converted<To, From>::of(v);
}

/* Convert to float16 and bfloat16, rounding once, to nearest, ties to even, also from double. */
LT_DEVICE_INLINE __half half_of(float v) { return __float2half_rn(v); }
LT_DEVICE_INLINE __half half_of(double v) { return __double2half(v); }
LT_DEVICE_INLINE __nv_bfloat16 bfloat16_of(float v) { return __float2bfloat16_rn(v); }
LT_DEVICE_INLINE __nv_bfloat16 bfloat16_of(double v) { return __double2bfloat16(v); }
template <class T> LT_DEVICE_INLINE __half half_of(T v) { return half_of((float)v); }
template <class T> LT_DEVICE_INLINE __nv_bfloat16 bfloat16_of(T v) { return bfloat16_of((float)v); }

/* Returns element i of memory of any real dtype, converted to T. */
template <class T> LT_DEVICE_INLINE T load(const void *memory, int dtype, int64_t i) {
  switch (dtype) {
  case LT_bool:
    return (T)(((const uint8_t *)memory)[i] != 0);
  case LT_uint8:
    return (T)((const uint8_t *)memory)[i];
  case LT_int8:
    return (T)((const int8_t *)memory)[i];
  case LT_int16:
    return (T)((const int16_t *)memory)[i];
  case LT_int32:
    return (T)((const int32_t *)memory)[i];
  case LT_int64:
    return (T)((const int64_t *)memory)[i];
  case LT_float16:
    return convert<T>(__half2float(((const __half *)memory)[i]));
  case LT_bfloat16:
    return convert<T>(__bfloat162float(((const __nv_bfloat16 *)memory)[i]));
  case LT_float32:
    return convert<T>(((const float *)memory)[i]);
  default:
    return convert<T>(((const double *)memory)[i]);
  }
}

/* Converts v to the dtype and stores it as element i. */
template <class T> LT_DEVICE_INLINE void store(void *memory, int dtype, int64_t i, T v) {
  switch (dtype) {
  case LT_bool:
    ((uint8_t *)memory)[i] = v != (T)0;
    break;
  case LT_uint8:
    ((uint8_t *)memory)[i] = convert<uint8_t>(v);
    break;
  case LT_int8:
    ((int8_t *)memory)[i] = convert<int8_t>(v);
    break;
  case LT_int16:
    ((int16_t *)memory)[i] = convert<int16_t>(v);
    break;
  case LT_int32:
    ((int32_t *)memory)[i] = convert<int32_t>(v);
    break;
  case LT_int64:
    ((int64_t *)memory)[i] = convert<int64_t>(v);
    break;
  case LT_float16:
    ((__half *)memory)[i] = half_of(v);
    break;
  case LT_bfloat16:
    ((__nv_bfloat16 *)memory)[i] = bfloat16_of(v);
    break;
  case LT_float32:
    ((float *)memory)[i] = (float)v;
    break;
  default:
    ((double *)memory)[i] = (double)v;
    break;
  }
}

/* The same for floating dtypes only, where T is float or double: less code. */
template <class T> LT_DEVICE_INLINE T load_float(const void *memory, int dtype, int64_t i) {
  switch (dtype) {
  case LT_float16:
    return (T)__half2float(((const __half *)memory)[i]);
  case LT_bfloat16:
    return (T)__bfloat162float(((const __nv_bfloat16 *)memory)[i]);
  case LT_float32:
    return (T)((const float *)memory)[i];
  default:
    return (T)((const double *)memory)[i];
  }
}
template <class T> LT_DEVICE_INLINE void store_float(void *memory, int dtype, int64_t i, T v) {
  switch (dtype) {
  case LT_float16:
    ((__half *)memory)[i] = half_of(v);
    break;
  case LT_bfloat16:
    ((__nv_bfloat16 *)memory)[i] = bfloat16_of(v);
    break;
  case LT_float32:
    ((float *)memory)[i] = (float)v;
    break;
  default:
    ((double *)memory)[i] = (double)v;
    break;
  }
}

/* Loads or stores four consecutive elements of a floating dtype from element i on. i is a multiple
 * of 4 and memory is aligned to 16 bytes: the elements are one memory transaction. */
LT_DEVICE_INLINE void load_four(float (&v)[4], const void *memory, int dtype, int64_t i) {
  if (dtype == LT_float32) {
    float4 w = *(const float4 *)((const float *)memory + i);
    v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
  } else if (dtype == LT_float64) {
    const double *p = (const double *)memory + i;
    for (int k = 0; k < 4; k++) v[k] = (float)p[k];
  } else {
    uint2 w = *(const uint2 *)((const uint16_t *)memory + i);
    if (dtype == LT_float16) {
      v[0] = __half2float(__ushort_as_half((unsigned short)(w.x & 0xffffu)));
      v[1] = __half2float(__ushort_as_half((unsigned short)(w.x >> 16)));
      v[2] = __half2float(__ushort_as_half((unsigned short)(w.y & 0xffffu)));
      v[3] = __half2float(__ushort_as_half((unsigned short)(w.y >> 16)));
    } else {
      v[0] = __uint_as_float(w.x << 16);
      v[1] = __uint_as_float(w.x & 0xffff0000u);
      v[2] = __uint_as_float(w.y << 16);
      v[3] = __uint_as_float(w.y & 0xffff0000u);
    }
  }
}
LT_DEVICE_INLINE void store_four(void *memory, int dtype, int64_t i, const float (&v)[4]) {
  if (dtype == LT_float32) {
    *(float4 *)((float *)memory + i) = make_float4(v[0], v[1], v[2], v[3]);
  } else if (dtype == LT_float64) {
    double *p = (double *)memory + i;
    for (int k = 0; k < 4; k++) p[k] = (double)v[k];
  } else {
    unsigned h[4];
    for (int k = 0; k < 4; k++)
      h[k] = dtype == LT_float16 ? __half_as_ushort(half_of(v[k]))
                                 : __bfloat16_as_ushort(bfloat16_of(v[k]));
    *(uint2 *)((uint16_t *)memory + i) = make_uint2(h[0] | h[1] << 16, h[2] | h[3] << 16);
  }
}

/* ---- math functions by type: M(f) in the expressions of mathx.h is m_##f --------------------- */

/* Overloads, so that templates can use one name for float and double. Floats are never computed in
 * double. */
#define LT_MATHS_1(name)                                                                           \
  LT_DEVICE_INLINE float m_##name(float x) { return name##f(x); }                                  \
  LT_DEVICE_INLINE double m_##name(double x) { return name(x); }
#define LT_MATHS_2(name)                                                                           \
  LT_DEVICE_INLINE float m_##name(float x, float y) { return name##f(x, y); }                      \
  LT_DEVICE_INLINE double m_##name(double x, double y) { return name(x, y); }
LT_MATHS_1(exp)
LT_MATHS_1(exp2)
LT_MATHS_1(expm1)
LT_MATHS_1(log)
LT_MATHS_1(log2)
LT_MATHS_1(log10)
LT_MATHS_1(log1p)
LT_MATHS_1(sqrt)
LT_MATHS_1(sin)
LT_MATHS_1(cos)
LT_MATHS_1(tan)
LT_MATHS_1(asin)
LT_MATHS_1(acos)
LT_MATHS_1(atan)
LT_MATHS_1(sinh)
LT_MATHS_1(cosh)
LT_MATHS_1(tanh)
LT_MATHS_1(asinh)
LT_MATHS_1(acosh)
LT_MATHS_1(atanh)
LT_MATHS_1(erf)
LT_MATHS_1(erfc)
LT_MATHS_1(floor)
LT_MATHS_1(ceil)
LT_MATHS_1(rint)
LT_MATHS_1(trunc)
LT_MATHS_1(fabs)
LT_MATHS_2(fmod)
LT_MATHS_2(pow)
LT_MATHS_2(atan2)
LT_MATHS_2(hypot)
LT_MATHS_2(copysign)
LT_MATHS_2(fmax)
LT_MATHS_2(fmin)

/* ---- reductions over a warp and a block ------------------------------------------------------ */

/* Reduces over the lanes of a warp; every lane gets the result. `join` is a function object, T
 * operator()(T, T). Lanes are joined in a fixed order, so results are the same on every run. */
template <class T, class Join> LT_DEVICE_INLINE T warp_all(T v, Join join) {
  for (int step = LT_WARP / 2; step > 0; step /= 2) v = join(v, __shfl_xor_sync(LT_FULL, v, step));
  return v;
}

/* Reduces over a one-dimensional block whose size is a multiple of 32, up to 1024 threads.
 * `nothing` is the identity of `join`, and `scratch` is shared memory for 32 T. Every thread gets
 * the result; `scratch` may be reused at once. */
template <class T, class Join> LT_DEVICE_INLINE T block_all(T v, T nothing, Join join, T *scratch) {
  int lane = (int)(threadIdx.x % LT_WARP), warp = (int)(threadIdx.x / LT_WARP),
      warps = (int)(blockDim.x / LT_WARP);
  v = warp_all(v, join);
  if (warps == 1) return v;
  if (lane == 0) scratch[warp] = v;
  __syncthreads();
  v = warp_all(lane < warps ? scratch[lane] : nothing, join);
  __syncthreads();
  return v;
}

/* The sum of two numbers. */
struct Sum {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
/* The maximum, where NaN is larger than any number. */
struct Largest {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/* ---- strided tensors ------------------------------------------------------------------------- */

/* A shape and the strides of up to N operands, in elements. Passed to kernels by value. */
template <int N> struct Geometry {
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  int64_t strides[N][LT_MAX_DIMS];
};

/* Computes the offsets of element i (in row-major order of the shape) in each operand. */
template <int N>
LT_DEVICE_INLINE void offsets_at(const Geometry<N> &g, int64_t i, int64_t (&offset)[N]) {
  for (int k = 0; k < N; k++) offset[k] = 0;
  for (int d = g.ndim - 1; d >= 0; d--) {
    int64_t at;
    if (((uint64_t)i | (uint64_t)g.shape[d]) >> 32) {
      at = i % g.shape[d];
      i /= g.shape[d];
    } else { /* 32-bit division is several times faster */
      unsigned n = (unsigned)i, m = (unsigned)g.shape[d];
      at = n % m;
      i = n / m;
    }
    for (int k = 0; k < N; k++) offset[k] += at * g.strides[k][d];
  }
}

/* ---- bad values ------------------------------------------------------------------------------ */

/* Returns true when a bad value is already reported that is no later than this one: of an earlier
 * ticket, or of the same ticket at the same or an earlier position. It reads without the lock: the
 * position is written before its ticket, and decreases for a given ticket. */
LT_DEVICE_INLINE bool is_reported(const lt_CudaReport *report, unsigned long long ticket,
                                  long long position) {
  const volatile lt_CudaReport *r = report;
  unsigned long long reported = r->ticket;
  __threadfence();
  return reported != 0 && (reported < ticket || (reported == ticket && r->position <= position));
}

/* Reports to the host that `value`, at `position` of the argument that this ticket checks, is bad.
 * The first position of the first ticket is kept. Reports are rare, so a lock is fast enough. It is
 * taken and released within one iteration of the loop, so that lanes of one warp cannot deadlock; a
 * thread that waits for it stops as soon as its report is no longer needed. */
LT_DEVICE_INLINE void report_fault(const lt_CudaFault &fault, int64_t position, int64_t value) {
  volatile lt_CudaReport *r = fault.report;
  *(volatile int *)fault.bad = 1;
  while (!is_reported(fault.report, fault.ticket, position)) {
    if (atomicCAS(&fault.report->lock, 0, 1) != 0) continue;
    __threadfence();
    if (!is_reported(fault.report, fault.ticket, position)) {
      r->value = value;
      r->position = position;
      __threadfence();
      r->ticket = fault.ticket;
      *fault.raised = 1;
    }
    __threadfence();
    atomicExch(&fault.report->lock, 0);
  }
}

#endif
