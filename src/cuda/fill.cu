/* fill.cu: each number is computed from its index alone and rounded once. Products and sums are
 * rounded separately, as on the CPU: no fused operations. */
#include "fill.h"
#include "device.cuh"
#include "launch.cuh"

#define THREADS 128
#define EACH    4 /* elements for each thread */

namespace {
/* The elements of an arange or linspace as function objects of the index. */
struct IntegerSequence {
  int64_t start, step;
  __device__ __forceinline__ int64_t operator()(int64_t i) const {
    return (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)step);
  }
};
struct FloatSequence {
  double start, step, scale;
  __device__ __forceinline__ double operator()(int64_t i) const {
    return scale * __dadd_rn(start, __dmul_rn((double)i, step));
  }
};
struct Linspace {
  double start, stop, step, scale;
  int64_t n;
  __device__ __forceinline__ double operator()(int64_t i) const {
    double value = i < (n + 1) / 2 ? __dadd_rn(start, __dmul_rn((double)i, step))
                                   : __dsub_rn(stop, __dmul_rn((double)(n - 1 - i), step));
    return scale * value;
  }
};
} // namespace

template <class T, class Number>
static __global__ void __launch_bounds__(THREADS)
    number_elements(void *to, int dtype, int64_t n, Number number) {
  int64_t i = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  for (int e = 0; e < EACH && i < n; e++, i += THREADS) store<T>(to, dtype, i, number(i));
}

template <class T, class Number>
static cudaError_t run(const char *name, void *to, int dtype, int64_t n, Number number,
                       cudaStream_t stream) {
  return launch(name, number_elements<T, Number>, grid_for(blocks_for(n, THREADS * EACH)),
                dim3(THREADS), 0, stream, to, dtype, n, number);
}

LT_C_LINKAGE cudaError_t lt_cuda_launch_arange_int(void *to, int dtype, int64_t n, int64_t start,
                                                   int64_t step, cudaStream_t stream) {
  return run<int64_t>("arange", to, dtype, n, IntegerSequence{start, step}, stream);
}

LT_C_LINKAGE cudaError_t lt_cuda_launch_arange_float(void *to, int dtype, int64_t n, double start,
                                                     double step, double scale,
                                                     cudaStream_t stream) {
  return run<double>("arange", to, dtype, n, FloatSequence{start, step, scale}, stream);
}

LT_C_LINKAGE cudaError_t lt_cuda_launch_linspace(void *to, int dtype, int64_t n, double start,
                                                 double stop, double step, double scale,
                                                 cudaStream_t stream) {
  return run<double>("linspace", to, dtype, n, Linspace{start, stop, step, scale, n}, stream);
}

static __global__ void __launch_bounds__(THREADS)
    put_ones(void *to, int dtype, int64_t n, int64_t columns) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) store<int64_t>(to, dtype, i * columns + i, 1);
}

LT_C_LINKAGE cudaError_t lt_cuda_launch_eye(void *to, int dtype, int64_t rows, int64_t columns,
                                            cudaStream_t stream) {
  size_t nbytes = (size_t)rows * (size_t)columns * (size_t)dtype_size(dtype);
  int64_t n = rows < columns ? rows : columns;
  cudaError_t status = lt_cuda_note_launch("fill", stream, cudaMemsetAsync(to, 0, nbytes, stream));
  return status != cudaSuccess ? status
                               : launch("eye", put_ones, grid_for(blocks_for(n, THREADS)),
                                        dim3(THREADS), 0, stream, to, dtype, n, columns);
}
