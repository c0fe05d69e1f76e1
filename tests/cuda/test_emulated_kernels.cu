/* test_emulated_kernels.cu: kernels on the emulated device: threads, barriers, warps, atomics,
 * shared memory, and kernels that fail. */
#include "emulated.h"

/* ---- indices --------------------------------------------------------------------------------- */

__global__ void count_threads(int *counts) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  counts[block * blockDim.x * blockDim.y * blockDim.z + thread]++;
}

static void every_thread_runs_once() {
  Buffer<int> counts(std::vector<int>(3 * 4 * 5 * 6 * 7 * 2, 0));
  LAUNCH(count_threads, dim3(3, 4, 5), dim3(6, 7, 2), counts.data);
  int wrong = 0;
  for (int n : counts.get()) wrong += n != 1;
  CHECK_INT(wrong, 0);
}

struct Pair {
  double scale;
  int *out;
};
__global__ void by_value(Pair p, char c, long long l) {
  p.out[threadIdx.x] = (int)(p.scale * 2) + c + (int)l;
}

static void arguments_are_copied_with_their_types() {
  Buffer<int> out(1);
  Pair p = {1.5, out};
  LAUNCH(by_value, 1, 1, p, 10, 100);
  p.scale = 0;
  CHECK_INT(out.get()[0], 113);
}

/* ---- barriers -------------------------------------------------------------------------------- */

template <int N> __global__ void reverse(int *x) {
  __shared__ int s[N];
  unsigned i = threadIdx.x;
  s[i] = x[blockIdx.x * N + i];
  __syncthreads();
  x[blockIdx.x * N + i] = s[N - 1 - i];
}

static void a_barrier_orders_shared_memory() {
  std::vector<int> v(256 * 40);
  for (size_t i = 0; i < v.size(); i++) v[i] = (int)i;
  Buffer<int> x(v);
  LAUNCH(reverse<256>, 40, 256, x.data);
  std::vector<int> actual = x.get();
  int wrong = 0;
  for (int i = 0; i < (int)v.size(); i++)
    wrong += actual[(size_t)i] != i / 256 * 256 + 255 - i % 256;
  CHECK_INT(wrong, 0);
}

__global__ void sum_of_block(const int *x, int *out) {
  __shared__ int s[1024];
  unsigned i = threadIdx.x;
  s[i] = x[i];
  for (unsigned half = blockDim.x / 2; half; half /= 2) {
    __syncthreads();
    if (i < half) s[i] += s[i + half];
  }
  if (i == 0) *out = s[0];
}

static void many_barriers() {
  std::vector<int> v(1024);
  for (int i = 0; i < 1024; i++) v[(size_t)i] = i;
  Buffer<int> x(v), out(1);
  for (unsigned block : {2u, 32u, 256u, 1024u}) {
    LAUNCH(sum_of_block, 1, block, (const int *)x, out.data);
    CHECK_INT(out.get()[0], block * (block - 1) / 2);
  }
}

__global__ void votes(int *out) {
  int i = (int)threadIdx.x;
  out[i] = __syncthreads_count(i % 3 == 0) + 1000 * __syncthreads_and(i < 1000) +
           10000 * __syncthreads_and(i != 7) + 100000 * __syncthreads_or(i == 7) +
           1000000 * __syncthreads_or(i > 1000);
}

static void barriers_that_vote() {
  Buffer<int> out(100);
  LAUNCH(votes, 1, 100, out.data);
  int wrong = 0;
  for (int v : out.get()) wrong += v != 34 + 1000 + 100000;
  CHECK_INT(wrong, 0);
}

__global__ void some_return(int *out) {
  __shared__ int s;
  if (threadIdx.x == 5) s = 42;
  if (threadIdx.x % 2 == 0) return;
  __syncthreads();
  out[threadIdx.x] = s;
}

static void returned_threads_do_not_block_a_barrier() {
  Buffer<int> out(std::vector<int>(64, 0));
  LAUNCH(some_return, 1, 64, out.data);
  std::vector<int> actual = out.get();
  for (int i = 0; i < 64; i++) CHECK_INT(actual[(size_t)i], i % 2 ? 42 : 0);
}

/* ---- warps ----------------------------------------------------------------------------------- */

__global__ void shuffles(int *out) {
  int i = (int)threadIdx.x;
  out[i] = __shfl_sync(0xffffffffu, i, 3);
  out[32 + i] = __shfl_up_sync(0xffffffffu, i, 2);
  out[64 + i] = __shfl_down_sync(0xffffffffu, i, 5);
  out[96 + i] = __shfl_xor_sync(0xffffffffu, i, 9);
  out[128 + i] = __shfl_down_sync(0xffffffffu, i, 3, 8);
  out[160 + i] = __shfl_sync(0xffffffffu, i, 9, 8);
  out[192 + i] = (int)__shfl_xor_sync(0xffffffffu, i * 0.5, 1) * 2;
  out[224 + i] = (int)(__shfl_sync(0xffffffffu, (long long)i << 40, 31) >> 40);
  out[256 + i] = __shfl_up_sync(0xffffffffu, i, 1, 4);
}

static void shuffles_of_a_warp() {
  Buffer<int> out(32 * 9);
  LAUNCH(shuffles, 1, 32, out.data);
  std::vector<int> actual = out.get();
  int wrong[9] = {0};
  for (int i = 0; i < 32; i++) {
    const int expected[9] = {3,
                             i < 2 ? i : i - 2,
                             i > 26 ? i : i + 5,
                             i ^ 9,
                             i % 8 > 4 ? i : i + 3,
                             i / 8 * 8 + 1,
                             (i ^ 1) / 2 * 2,
                             31,
                             i % 4 ? i - 1 : i};
    for (int k = 0; k < 9; k++) wrong[k] += actual[(size_t)(k * 32 + i)] != expected[k];
  }
  for (int k = 0; k < 9; k++) CHECK_INT(wrong[k], 0);
}

__global__ void warp_votes(unsigned *out) {
  int i = (int)threadIdx.x;
  out[i] = __ballot_sync(0xffffffffu, i % 2);
  out[32 + i] = (unsigned)(__any_sync(0xffffffffu, i == 9) + 2 * __all_sync(0xffffffffu, i == 9) +
                           4 * __all_sync(0xffffffffu, i < 32));
  out[64 + i] = __match_any_sync(0xffffffffu, i % 3);
  out[96 + i] = __reduce_add_sync(0xffffffffu, (unsigned)i);
  out[128 + i] = (unsigned)__reduce_min_sync(0xffffffffu, i - 16);
  out[160 + i] = __reduce_max_sync(0xffffffffu, (unsigned)(i - 16));
}

static void votes_of_a_warp() {
  Buffer<unsigned> out(32 * 6);
  LAUNCH(warp_votes, 1, 32, out.data);
  std::vector<unsigned> actual = out.get();
  for (int i = 0; i < 32; i++) {
    unsigned same = 0;
    for (int j = i % 3; j < 32; j += 3) same |= 1u << j;
    CHECK_INT(actual[(size_t)i], 0xaaaaaaaau);
    CHECK_INT(actual[(size_t)(32 + i)], 5);
    CHECK_INT(actual[(size_t)(64 + i)], same);
    CHECK_INT(actual[(size_t)(96 + i)], 496);
    CHECK_INT((int)actual[(size_t)(128 + i)], -16);
    CHECK_INT(actual[(size_t)(160 + i)], 0xffffffffu);
  }
}

/* The lower and the upper lanes diverge, and the last warp has 8 lanes. */
__global__ void partial(int *out) {
  int i = (int)threadIdx.x, lane = i % 32;
  if (lane < 12) {
    int v = i;
    for (int d = 1; d < 12; d++) v += __shfl_sync(0xfffu, i, (lane + d) % 12);
    out[i] = v;
  } else {
    out[i] = __popc(__ballot_sync(0xfffff000u, 1));
  }
  __syncwarp();
}

static void masks_with_some_lanes() {
  Buffer<int> out(72);
  LAUNCH(partial, 1, 72, out.data);
  std::vector<int> actual = out.get();
  for (int i = 0; i < 64; i++)
    CHECK_INT(actual[(size_t)i], i % 32 < 12 ? i / 32 * 32 * 12 + 66 : 20);
}

__global__ void sums_by_warps(const float *x, float *out) {
  __shared__ float part[32];
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}

static void warps_and_barriers_together() {
  std::vector<float> v(100 * 512);
  for (size_t i = 0; i < v.size(); i++) v[i] = (float)(i % 7);
  Buffer<float> x(v), out(100);
  LAUNCH(sums_by_warps, 100, 512, (const float *)x, out.data);
  std::vector<float> actual = out.get();
  for (size_t b = 0; b < 100; b++) {
    double expected = 0;
    for (size_t i = 0; i < 512; i++) expected += v[b * 512 + i];
    CHECK_NEAR(actual[b], expected, 0);
  }
}

/* ---- atomics --------------------------------------------------------------------------------- */

struct Totals {
  int i, smallest, largest, exchanged;
  unsigned u, mask_and, mask_or, mask_xor, wrapped;
  unsigned long long ull, ull_max, cas;
  long long ll_min;
  float f;
  double d;
};

__global__ void atomics(Totals *t) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), n = (int)(gridDim.x * blockDim.x);
  atomicAdd(&t->i, 1);
  atomicMin(&t->smallest, -i);
  atomicMax(&t->largest, i);
  atomicExch(&t->exchanged, i);
  atomicAdd(&t->u, 2u);
  atomicAnd(&t->mask_and, ~(1u << (i % 16)));
  atomicOr(&t->mask_or, 1u << (i % 16));
  atomicXor(&t->mask_xor, 1u << (i % 16));
  atomicInc(&t->wrapped, 6);
  atomicAdd(&t->ull, 1ull << 40);
  atomicMax(&t->ull_max, (unsigned long long)i << 40);
  atomicMin(&t->ll_min, (long long)(i - n) * (1ll << 40));
  atomicAdd(&t->f, 0.5f);
  atomicAdd(&t->d, 0.25);
  unsigned long long seen = t->cas, was;
  do {
    was = seen;
    seen = atomicCAS(&t->cas, was, was + 3);
  } while (seen != was);
}

static void atomics_of_many_blocks() {
  Totals zero = {};
  zero.mask_and = 0xffffffffu;
  Buffer<Totals> t(std::vector<Totals>{zero});
  const int n = 200 * 128;
  LAUNCH(atomics, 200, 128, t.data);
  Totals actual = t.get()[0];
  CHECK_INT(actual.i, n);
  CHECK_INT(actual.smallest, 1 - n);
  CHECK_INT(actual.largest, n - 1);
  CHECK(actual.exchanged >= 0 && actual.exchanged < n);
  CHECK_INT(actual.u, 2 * n);
  CHECK_INT(actual.mask_and, 0xffff0000u);
  CHECK_INT(actual.mask_or, 0xffff);
  CHECK_INT(actual.mask_xor, 0); /* each bit n / 16 times, which is even */
  CHECK_INT(actual.wrapped, n % 7);
  CHECK_INT(actual.ull, (long long)n << 40);
  CHECK_INT(actual.ull_max, (long long)(n - 1) << 40);
  CHECK_INT(actual.ll_min, -((long long)n << 40));
  CHECK_NEAR(actual.f, n * 0.5, 0);
  CHECK_NEAR(actual.d, n * 0.25, 0);
  CHECK_INT(actual.cas, 3 * n);
}

__device__ static int ticket_of_blocks;
__global__ void last_block(const int *x, int *parts, int *out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    last = atomicAdd(&ticket_of_blocks, 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; i++) sum += parts[i];
  *out = sum;
}

static void the_last_block_sees_the_writes_of_all_others() {
  std::vector<int> v(500);
  for (int i = 0; i < 500; i++) v[(size_t)i] = i;
  Buffer<int> x(v), parts(500), out(1);
  LAUNCH(last_block, 500, 64, (const int *)x, parts.data, out.data);
  CHECK_INT(out.get()[0], 499 * 500 / 2);
}

/* ---- shared memory and the stack ------------------------------------------------------------- */

__global__ void dynamic_memory(int *out, int words) {
  LT_DYNAMIC_SHARED(int, s);
  for (int i = (int)threadIdx.x; i < words; i += (int)blockDim.x) s[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    long long sum = 0;
    for (int i = 0; i < words; i++) sum += s[i];
    *out = (int)(sum % 1000003);
  }
}
__global__ void dynamic_doubles(double *out) {
  LT_DYNAMIC_SHARED(double, s);
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

static cudaError_t use_dynamic(int *out, int bytes) {
  return launch("dynamic_memory", dynamic_memory, dim3(1), dim3(64), (size_t)bytes, (cudaStream_t)0,
                out, bytes / 4);
}

static void dynamic_shared_memory_and_its_limits() {
  Buffer<int> out(1);
  OK(use_dynamic(out, 4096));
  CHECK_INT(out.get()[0], 1023ll * 1024 / 2 % 1000003);
  Buffer<double> reversed(64);
  OK(launch("dynamic_doubles", dynamic_doubles, dim3(1), dim3(64), 512, (cudaStream_t)0,
            reversed.data));
  CHECK_NEAR(reversed.get()[0], 63, 0);
  FAILS(use_dynamic(out, 64 << 10), cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(dynamic_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  OK(use_dynamic(out, 100 << 10));
  CHECK_INT(out.get()[0], 25599ll * 25600 / 2 % 1000003);
  FAILS(use_dynamic(out, 101 << 10), cudaErrorInvalidValue);
  FAILS(
      cudaFuncSetAttribute(dynamic_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
      cudaErrorInvalidValue);
}

__global__ void on_the_stack(int *out) {
  volatile int local[4096];
  for (int i = 0; i < 4096; i++) local[i] = i + (int)threadIdx.x;
  __syncthreads();
  int wrong = 0;
  for (int i = 0; i < 4096; i++) wrong += local[i] != i + (int)threadIdx.x;
  out[threadIdx.x] = wrong;
}

static void sixteen_kilobytes_of_stack() {
  Buffer<int> out(256);
  LAUNCH(on_the_stack, 1, 256, out.data);
  for (int wrong : out.get()) CHECK_INT(wrong, 0);
}

/* ---- kernels that fail ----------------------------------------------------------------------- */

/* Invalid on purpose: UBSan must not report it first. */
#define INVALID __attribute__((no_sanitize("undefined", "address")))

INVALID __global__ void writes(int *p) { *p = 1; }
__global__ void unmet_barrier(int *out) {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __shfl_sync(0xffffffffu, 1, 0); /* its mask contains lanes that wait at the barrier */
  }
  *out = 1;
}
__global__ void outside_mask(int *out) { *out = __shfl_sync(1u, 1, 0); }
[[maybe_unused]] INVALID __global__ void divides(int *out, int by) { *out = 7 / by; }
__global__ void traps() { __trap(); }
INVALID __device__ static int deeper(volatile int *from, int n) {
  volatile int local[256];
  local[0] = *from + n;
  return n ? deeper(local, n + 1) + local[0] : 0;
}
__global__ void overflows(int *out) {
  volatile int start = 1;
  *out = deeper(&start, 1);
}

/* Checks that the error is reported when the kernel has run, is sticky, and is cleared by a
 * reset. */
static void check_sticky_error(cudaError_t launched, cudaError_t error, const char *words) {
  CHECK_INT(launched, cudaSuccess);
  CHECK_INT(cudaDeviceSynchronize(), error);
  CHECK_CONTAINS(cudaGetErrorString(error), words);
  int *p = nullptr;
  CHECK_INT(cudaMalloc(&p, 4), error);
  CHECK_INT(cudaGetLastError(), error);
  CHECK_INT(cudaGetLastError(), error);
  OK(cudaDeviceReset());
  OK(cudaGetLastError());
  Buffer<int> out(1);
  LAUNCH(writes, 1, 1, out.data);
  CHECK_INT(out.get()[0], 1);
}

static void kernel_errors_are_sticky() {
  Buffer<int> out(1);
  check_sticky_error(launch("writes", writes, dim3(2), dim3(4), 0, (cudaStream_t)0, (int *)nullptr),
                     cudaErrorIllegalAddress, "thread (");
  int *freed, *end;
  OK(cudaMalloc(&freed, 4096));
  OK(cudaMalloc(&end, 4096));
  OK(cudaFree(freed));
  check_sticky_error(launch("writes", writes, dim3(1), dim3(1), 0, (cudaStream_t)0, freed),
                     cudaErrorIllegalAddress, "emulated device cuda:0");
  OK(cudaMalloc(&end, 4096));
  check_sticky_error(launch("writes", writes, dim3(1), dim3(1), 0, (cudaStream_t)0, end + 1024),
                     cudaErrorIllegalAddress, "block (0, 0, 0), thread (0, 0, 0)");
  OK(cudaMalloc(&end, 4096));
  check_sticky_error(launch("unmet", unmet_barrier, dim3(1), dim3(32), 0, (cudaStream_t)0, end),
                     cudaErrorLaunchFailure, "never");
  OK(cudaMalloc(&end, 4096));
  check_sticky_error(launch("outside", outside_mask, dim3(1), dim3(32), 0, (cudaStream_t)0, end),
                     cudaErrorLaunchFailure, "outside its mask");
#ifdef __x86_64__ /* other processors give a number, as a GPU does */
  OK(cudaMalloc(&end, 4096));
  check_sticky_error(launch("divides", divides, dim3(1), dim3(1), 0, (cudaStream_t)0, end, 0),
                     cudaErrorLaunchFailure, "division by zero");
#endif
  check_sticky_error(launch("traps", traps, dim3(1), dim3(1), 0, (cudaStream_t)0),
                     cudaErrorLaunchFailure, "trap");
  OK(cudaMalloc(&end, 4096));
  check_sticky_error(launch("overflows", overflows, dim3(1), dim3(1), 0, (cudaStream_t)0, end),
                     cudaErrorIllegalAddress, "thread (0, 0, 0)");
  out.data = nullptr; /* freed by the first reset */
}

/* A fault while other threads of the block wait: later blocks start afresh. */
INVALID __global__ void faults_late(int *p) {
  __syncthreads();
  if (threadIdx.x == 77) *(volatile int *)nullptr = 1;
  __syncthreads();
  p[threadIdx.x] = 1;
}

static void a_fault_while_other_threads_wait() {
  int *p;
  for (int i = 0; i < 3; i++) {
    OK(cudaMalloc(&p, 4096));
    OK(launch("faults_late", faults_late, dim3(50), dim3(128), 0, (cudaStream_t)0, p));
    CHECK_INT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK_CONTAINS(cudaGetErrorString(cudaErrorIllegalAddress), "thread (77, 0, 0)");
    OK(cudaDeviceReset());
    a_barrier_orders_shared_memory();
  }
}

static void invalid_launches_are_refused() {
  Buffer<int> out(1);
  auto with = [&](dim3 grid, dim3 block) {
    return launch("writes", writes, grid, block, 0, (cudaStream_t)0, out.data);
  };
  FAILS(with(dim3(0), dim3(1)), cudaErrorInvalidConfiguration);
  FAILS(with(dim3(1), dim3(0)), cudaErrorInvalidConfiguration);
  FAILS(with(dim3(1), dim3(1025)), cudaErrorInvalidConfiguration);
  FAILS(with(dim3(1), dim3(32, 33)), cudaErrorInvalidConfiguration);
  FAILS(with(dim3(1), dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  FAILS(with(dim3(1, 65536), dim3(1)), cudaErrorInvalidConfiguration);
  FAILS(with(dim3(1, 1, 65536), dim3(1)), cudaErrorInvalidConfiguration);
  OK(with(dim3(1), dim3(32, 32)));
  OK(cudaDeviceSynchronize());
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

__global__ void intrinsics(long long *out) {
  int i = 0;
  out[i++] = __umulhi(0xfedcba98u, 0x12345678u);
  out[i++] = __mulhi(-5, 1 << 30);
  out[i++] = (long long)__umul64hi(0xfedcba9876543210ull, 0x0123456789abcdefull);
  out[i++] = __clz(1) + 100 * __clz(0) + 10000 * __clzll(1ll << 40);
  out[i++] = __popc(0xf0f0u) + 100 * __popcll(~0ull);
  out[i++] = __ffs(8) + 100 * __ffs(0);
  out[i++] = __brev(1u);
  out[i++] = __float_as_uint(1.0f);
  out[i++] = __double_as_longlong(1.0);
  out[i++] = max(3, min(7, 5)) + (long long)max(2.5f, 1.0f) + (long long)min(2.0, 1.0);
  out[i++] = (long long)(4 * rsqrtf(4.0f)) + __funnelshift_l(0x80000000u, 1, 1);
}

static void arithmetic_intrinsics() {
  Buffer<long long> out(11);
  LAUNCH(intrinsics, 1, 1, out.data);
  std::vector<long long> actual = out.get();
  const long long expected[11] = {
      0x121fa00a,
      -2,
      (long long)((unsigned __int128)0xfedcba9876543210ull * 0x0123456789abcdefull >> 64),
      31 + 3200 + 230000,
      8 + 6400,
      4,
      0x80000000ll,
      0x3f800000,
      0x3ff0000000000000ll,
      5 + 2 + 1,
      2 + 3};
  for (size_t i = 0; i < 11; i++) CHECK_INT(actual[i], expected[i]);
}

int main() {
  setenv("LUTRA_EMULATE", "cuda:2,memory=64MiB", 1);
  RUN(every_thread_runs_once);
  RUN(arguments_are_copied_with_their_types);
  RUN(a_barrier_orders_shared_memory);
  RUN(many_barriers);
  RUN(barriers_that_vote);
  RUN(returned_threads_do_not_block_a_barrier);
  RUN(shuffles_of_a_warp);
  RUN(votes_of_a_warp);
  RUN(masks_with_some_lanes);
  RUN(warps_and_barriers_together);
  RUN(atomics_of_many_blocks);
  RUN(the_last_block_sees_the_writes_of_all_others);
  RUN(dynamic_shared_memory_and_its_limits);
  RUN(sixteen_kilobytes_of_stack);
  RUN(kernel_errors_are_sticky);
  RUN(a_fault_while_other_threads_wait);
  RUN(invalid_launches_are_refused);
  RUN(arithmetic_intrinsics);
  return check_end();
}
