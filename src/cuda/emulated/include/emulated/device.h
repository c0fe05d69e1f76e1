/* device.h: what the code of a CUDA kernel uses: qualifiers, vector types, the built-in variables,
 * barriers and warp functions. Like threads.h it includes no header of the C library.
 */
#ifndef LT_EMULATED_DEVICE_H
#define LT_EMULATED_DEVICE_H

#include "emulated/threads.h"

#define __CUDA_EMULATED__ 1
#define __global__
#define __device__
#define __host__
#define __constant__
/* A block stays on one system thread. At block scope thread_local implies static, and each instance
 * of a template has its own variable. */
#define __shared__ thread_local
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
/* Empty, because the C++ library uses __attribute__((__noinline__)). */
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

/* ---- vector types ---------------------------------------------------------------------------- */

#define LT_EMULATED_VECTOR_3(T, N)                                                                 \
  struct N##3 {                                                                                    \
    T x, y, z;                                                                                     \
  };
#define LT_EMULATED_VECTOR(T, N, A2, A4)                                                           \
  struct N##1 {                                                                                    \
    T x;                                                                                           \
  };                                                                                               \
  struct alignas(A2) N##2 {                                                                        \
    T x, y;                                                                                        \
  };                                                                                               \
  struct alignas(A4) N##4 {                                                                        \
    T x, y, z, w;                                                                                  \
  };                                                                                               \
  LT_EMULATED N##1 make_##N##1(T x) { return {x}; }                                                \
  LT_EMULATED N##2 make_##N##2(T x, T y) { return {x, y}; }                                        \
  LT_EMULATED N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                \
  LT_EMULATED N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
LT_EMULATED_VECTOR_3(signed char, char)
LT_EMULATED_VECTOR_3(unsigned char, uchar)
LT_EMULATED_VECTOR_3(short, short)
LT_EMULATED_VECTOR_3(unsigned short, ushort)
LT_EMULATED_VECTOR_3(int, int)
LT_EMULATED_VECTOR_3(long, long)
LT_EMULATED_VECTOR_3(unsigned long, ulong)
LT_EMULATED_VECTOR_3(long long, longlong)
LT_EMULATED_VECTOR_3(unsigned long long, ulonglong)
LT_EMULATED_VECTOR_3(float, float)
LT_EMULATED_VECTOR_3(double, double)
typedef lt_EmulatedIndex uint3;
LT_EMULATED_VECTOR(signed char, char, 2, 4)
LT_EMULATED_VECTOR(unsigned char, uchar, 2, 4)
LT_EMULATED_VECTOR(short, short, 4, 8)
LT_EMULATED_VECTOR(unsigned short, ushort, 4, 8)
LT_EMULATED_VECTOR(int, int, 8, 16)
LT_EMULATED_VECTOR(unsigned, uint, 8, 16)
LT_EMULATED_VECTOR(long, long, 16, 16)
LT_EMULATED_VECTOR(unsigned long, ulong, 16, 16)
LT_EMULATED_VECTOR(long long, longlong, 16, 16)
LT_EMULATED_VECTOR(unsigned long long, ulonglong, 16, 16)
LT_EMULATED_VECTOR(float, float, 8, 16)
LT_EMULATED_VECTOR(double, double, 16, 16)
#undef LT_EMULATED_VECTOR
#undef LT_EMULATED_VECTOR_3

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

static constexpr int warpSize = 32;

/* ---- built-in variables ---------------------------------------------------------------------- */

/* The built-in variables. These macros also replace the members of a launch configuration, so
 * cudaLaunchConfig_t has a member function lt_emulated_here that returns itself, and members of
 * these names. */
#define threadIdx lt_emulated_here()->thread_index
#define blockIdx  lt_emulated_here()->block_index
#define blockDim  lt_emulated_here()->block_size
#define gridDim   lt_emulated_here()->grid_size

/* Declares `name` as a pointer to dynamic shared memory. launch.cuh's definition for nvcc uses
 * `extern __shared__`, which cannot work for a thread-local array whose size only the launch
 * knows. */
#define LT_DYNAMIC_SHARED(T, name) T *const name = (T *)lt_emulated_here()->shared

/* ---- barriers and warp functions ------------------------------------------------------------- */

LT_EMULATED void __syncthreads() { lt_emulated_barrier(0, LT_EMULATED_NO_VOTE); }
LT_EMULATED int __syncthreads_count(int p) {
  return lt_emulated_barrier(p != 0, LT_EMULATED_COUNT);
}
LT_EMULATED int __syncthreads_and(int p) { return lt_emulated_barrier(p != 0, LT_EMULATED_AND); }
LT_EMULATED int __syncthreads_or(int p) { return lt_emulated_barrier(p != 0, LT_EMULATED_OR); }

template <class T>
LT_EMULATED T lt_emulated_shuffle(unsigned mask, lt_EmulatedWarp what, T value, int argument,
                                  int width) {
  static_assert(sizeof(T) <= 8, "expected a value of at most 8 bytes in a shuffle");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = lt_emulated_warp(mask, what, bits, argument, width);
  __builtin_memcpy((void *)&value, &bits, sizeof(T));
  return value;
}
template <class T>
LT_EMULATED T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  return lt_emulated_shuffle(mask, LT_EMULATED_SHUFFLE, value, lane, width);
}
template <class T>
LT_EMULATED T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return lt_emulated_shuffle(mask, LT_EMULATED_UP, value, (int)delta, width);
}
template <class T>
LT_EMULATED T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return lt_emulated_shuffle(mask, LT_EMULATED_DOWN, value, (int)delta, width);
}
template <class T>
LT_EMULATED T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  return lt_emulated_shuffle(mask, LT_EMULATED_XOR, value, lanes, width);
}
LT_EMULATED unsigned __ballot_sync(unsigned mask, int p) {
  return (unsigned)lt_emulated_warp(mask, LT_EMULATED_BALLOT, p != 0, 0, 32);
}
LT_EMULATED int __any_sync(unsigned mask, int p) {
  return lt_emulated_warp(mask, LT_EMULATED_BALLOT, p != 0, 0, 32) != 0;
}
LT_EMULATED int __all_sync(unsigned mask, int p) {
  return lt_emulated_warp(mask, LT_EMULATED_BALLOT, p == 0, 0, 32) == 0;
}
LT_EMULATED void __syncwarp(unsigned mask = 0xffffffffu) {
  lt_emulated_warp(mask, LT_EMULATED_SYNC, 0, 0, 32);
}
template <class T> LT_EMULATED unsigned __match_any_sync(unsigned mask, T value) {
  return (unsigned)lt_emulated_shuffle(mask, LT_EMULATED_MATCH, (unsigned long long)value, 0, 32);
}
#define LT_EMULATED_REDUCE(name, T, what)                                                          \
  LT_EMULATED T name(unsigned mask, T value) {                                                     \
    return (T)lt_emulated_warp(mask, what, (unsigned)value, 0, 32);                                \
  }
LT_EMULATED_REDUCE(__reduce_add_sync, int, LT_EMULATED_ADD)
LT_EMULATED_REDUCE(__reduce_add_sync, unsigned, LT_EMULATED_ADD)
LT_EMULATED_REDUCE(__reduce_min_sync, int, LT_EMULATED_MIN)
LT_EMULATED_REDUCE(__reduce_min_sync, unsigned, LT_EMULATED_UMIN)
LT_EMULATED_REDUCE(__reduce_max_sync, int, LT_EMULATED_MAX)
LT_EMULATED_REDUCE(__reduce_max_sync, unsigned, LT_EMULATED_UMAX)
LT_EMULATED_REDUCE(__reduce_and_sync, unsigned, LT_EMULATED_BITAND)
LT_EMULATED_REDUCE(__reduce_or_sync, unsigned, LT_EMULATED_BITOR)
LT_EMULATED_REDUCE(__reduce_xor_sync, unsigned, LT_EMULATED_BITXOR)
#undef LT_EMULATED_REDUCE

LT_EMULATED void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
LT_EMULATED void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
LT_EMULATED void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
LT_EMULATED void __nanosleep(unsigned) { lt_emulated_yield(); }
LT_EMULATED void __trap() { lt_emulated_trap(LT_EMULATED_FAILURE); }
LT_EMULATED long long clock64() { return lt_emulated_clock(); }

#endif
