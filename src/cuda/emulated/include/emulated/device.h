/* device.h: what the code of a kernel uses: qualifiers, vector types, the built-in variables,
 * barriers and warp functions.
 *
 * A thread of a block runs on a context: its own stack, whose size is a power of two and whose
 * address is a multiple of the size. A record of one cache line near the stack's top holds the
 * built-in variables, so they are found from the stack pointer, without thread-local storage, which
 * would be slow or scarce in a shared object that is loaded at run time. A context never moves to
 * another system thread while it runs a CUDA thread.
 *
 * No header of the C library is included here, so that a kernel compiled at run time compiles fast.
 */
#ifndef LT_EMULATED_DEVICE_H
#define LT_EMULATED_DEVICE_H

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
#define LT_EMULATED  inline __attribute__((always_inline))

/* ---- vector types ---------------------------------------------------------------------------- */

#define LT_EMULATED_VECTOR(T, N, A2, A4)                                                           \
  struct N##1 {                                                                                    \
    T x;                                                                                           \
  };                                                                                               \
  struct alignas(A2) N##2 {                                                                        \
    T x, y;                                                                                        \
  };                                                                                               \
  struct N##3 {                                                                                    \
    T x, y, z;                                                                                     \
  };                                                                                               \
  struct alignas(A4) N##4 {                                                                        \
    T x, y, z, w;                                                                                  \
  };                                                                                               \
  LT_EMULATED N##1 make_##N##1(T x) { return {x}; }                                                \
  LT_EMULATED N##2 make_##N##2(T x, T y) { return {x, y}; }                                        \
  LT_EMULATED N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                \
  LT_EMULATED N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
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

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

static constexpr int warpSize = 32;

/* ---- the context ----------------------------------------------------------------------------- */

/* The threads of the block that have not started, shared by the block's contexts. Threads start in
 * the order x, y, z from `first` by `step` (1, or -1 for the reverse order) until each reaches
 * `stop`. */
struct lt_EmulatedBlock {
  unsigned started, threads, step;
  uint3 at, first, stop;
};

/* The record of a context: the built-in variables of the thread that it runs. */
struct alignas(64) lt_EmulatedContext {
  uint3 threadIdx, blockIdx, blockDim, gridDim;
  void *shared; /* the block's dynamic shared memory */
  lt_EmulatedBlock *block;
};
static_assert(sizeof(lt_EmulatedContext) == 64, "one cache line");

/* The records are spread over the upper part of the stacks, by the stack's number: at the same
 * offset all would share a few sets of the caches and of the TLB. At least half of the stack, 64
 * KiB, is left for a thread; sanitizers need more stack. */
#ifdef __SANITIZE_ADDRESS__
enum { LT_EMULATED_STACK = 1 << 19, LT_EMULATED_SPREAD = 1 << 16 };
#else
enum { LT_EMULATED_STACK = 1 << 17, LT_EMULATED_SPREAD = 1 << 16 };
#endif

/* Returns the record of the context whose stack contains this address. */
LT_EMULATED lt_EmulatedContext *lt_emulated_context(unsigned long address) {
  const unsigned long mask = LT_EMULATED_STACK - 1;
  unsigned long spread = address / LT_EMULATED_STACK * (4096 + 64) % LT_EMULATED_SPREAD;
  return (lt_EmulatedContext *)((address & ~mask) + LT_EMULATED_STACK - LT_EMULATED_SPREAD +
                                spread);
}

/* Returns the record of the running context. */
LT_EMULATED lt_EmulatedContext *lt_emulated_here() {
  unsigned long sp;
#if defined(__x86_64__)
  __asm__("movq %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
  __asm__("mov %0, sp" : "=r"(sp));
#else
  sp = (unsigned long)__builtin_frame_address(0);
#endif
  return lt_emulated_context(sp);
}

/* Loads and stores that the compiler does not combine: a wide load from an address that was just
 * stored to by narrow stores stalls the CPU for longer than everything else here takes. */
LT_EMULATED unsigned lt_emulated_get(const unsigned *p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
LT_EMULATED void lt_emulated_set(unsigned *p, unsigned v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Makes the running context run the block's next thread that has not started. Returns false when
 * there is none. */
LT_EMULATED bool lt_emulated_next(lt_EmulatedContext *c) {
  lt_EmulatedBlock &b = *c->block;
  unsigned n = lt_emulated_get(&b.started);
  if (n >= lt_emulated_get(&b.threads)) return false;
  lt_emulated_set(&b.started, n + 1);
  unsigned x = lt_emulated_get(&b.at.x);
  lt_emulated_set(&c->threadIdx.x, x);
  lt_emulated_set(&c->threadIdx.y, lt_emulated_get(&b.at.y));
  lt_emulated_set(&c->threadIdx.z, lt_emulated_get(&b.at.z));
  x += b.step;
  if (__builtin_expect(x == b.stop.x, 0)) {
    x = b.first.x;
    unsigned y = lt_emulated_get(&b.at.y) + b.step;
    if (y == b.stop.y) {
      y = b.first.y;
      lt_emulated_set(&b.at.z, lt_emulated_get(&b.at.z) + b.step);
    }
    lt_emulated_set(&b.at.y, y);
  }
  lt_emulated_set(&b.at.x, x);
  return true;
}

/* The built-in variables. These macros also replace the members of a launch configuration, so
 * cudaLaunchConfig_t has a member function lt_emulated_here that returns itself. */
#define threadIdx lt_emulated_here()->threadIdx
#define blockIdx  lt_emulated_here()->blockIdx
#define blockDim  lt_emulated_here()->blockDim
#define gridDim   lt_emulated_here()->gridDim

/* Declares `name` as a pointer to dynamic shared memory. launch.cuh's definition for nvcc uses
 * `extern __shared__`, which cannot work for a thread-local array whose size only the launch
 * knows. */
#define LT_DYNAMIC_SHARED(T, name) T *const name = (T *)lt_emulated_here()->shared

/* A loop over consecutive elements in one thread: vectorized for the CPU. */
#define LT_VECTOR_LOOP _Pragma("omp simd")

/* ---- barriers and warp functions ------------------------------------------------------------- */

enum lt_EmulatedVote { LT_EMULATED_NO_VOTE, LT_EMULATED_COUNT, LT_EMULATED_AND, LT_EMULATED_OR };
enum lt_EmulatedWarp {
  LT_EMULATED_SYNC,
  LT_EMULATED_SHUFFLE, /* from lane `argument` of the segment */
  LT_EMULATED_UP,
  LT_EMULATED_DOWN,
  LT_EMULATED_XOR,
  LT_EMULATED_BALLOT,
  LT_EMULATED_MATCH,
  LT_EMULATED_ADD,
  LT_EMULATED_MIN,
  LT_EMULATED_MAX,
  LT_EMULATED_UMIN,
  LT_EMULATED_UMAX,
  LT_EMULATED_BITAND,
  LT_EMULATED_BITOR,
  LT_EMULATED_BITXOR
};
extern "C" {
int lt_emulated_barrier(int predicate, lt_EmulatedVote vote);
unsigned long long lt_emulated_warp(unsigned mask, lt_EmulatedWarp what, unsigned long long value,
                                    /* The executor's functions (block.cpp), called by the code of
                                     * kernels. lt_emulated_barrier returns the result of the vote;
                                     * lt_emulated_warp returns the calling lane's result;
                                     * lt_emulated_trap ends the block with an error and does not
                                     * return. */
                                    int argument, int width);
void lt_emulated_trap(int error);
void lt_emulated_yield(void);
long long lt_emulated_clock(void); /* nanoseconds */
}

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
LT_EMULATED void __trap() { lt_emulated_trap(719); }
LT_EMULATED long long clock64() { return lt_emulated_clock(); }

#endif
