/* batch_norm.cu: the kernels of batch norm. A block computes the statistics, or the sums, of one
 * channel; sums are joined in a fixed order. Then each thread normalizes elements. */
#include "batch_norm.h"
#include "device.cuh"
#include "launch.cuh"

#define THREADS 256

/* Returns the offset of element i of channel c, in the order of images. */
LT_DEVICE_INLINE int64_t element(const lt_CudaBatchNorm &k, int64_t c, int64_t i) {
  return (i / k.n * k.channels + c) * k.n + i % k.n;
}

template <class T>
static __global__ void __launch_bounds__(THREADS) statistics_kernel(lt_CudaBatchNorm k) {
  __shared__ T scratch[LT_WARP];
  int64_t count = k.images * k.n;
  for (int64_t c = blockIdx.x; c < k.channels; c += gridDim.x) {
    T sum = 0, squares = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
      sum += load<T>(k.x, k.dtype, element(k, c, i));
    T mean = block_all(sum, (T)0, Sum(), scratch) / (T)(count > 0 ? count : 1);
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
      T off = load<T>(k.x, k.dtype, element(k, c, i)) - mean;
      squares += off * off;
    }
    squares = block_all(squares, (T)0, Sum(), scratch);
    if (threadIdx.x == 0) {
      ((T *)k.mean)[c] = mean;
      ((T *)k.var)[c] = squares / (T)(count > 0 ? count : 1);
    }
  }
}

template <class T>
static __global__ void __launch_bounds__(THREADS) sums_kernel(lt_CudaBatchNorm k) {
  __shared__ T scratch[LT_WARP];
  int64_t count = k.images * k.n;
  for (int64_t c = blockIdx.x; c < k.channels; c += gridDim.x) {
    T sum = 0, product = 0, mean = ((const T *)k.mean)[c];
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
      int64_t at = element(k, c, i);
      T g = load<T>(k.g, k.g_dtype, at);
      sum += g;
      product += g * (load<T>(k.x, k.dtype, at) - mean);
    }
    sum = block_all(sum, (T)0, Sum(), scratch);
    product = block_all(product, (T)0, Sum(), scratch);
    if (threadIdx.x == 0) {
      ((T *)k.dbias)[c] = sum;
      ((T *)k.dweight)[c] = product / (T)sqrt((double)((const T *)k.var)[c] + k.eps);
    }
  }
}

template <class T>
static __global__ void __launch_bounds__(THREADS) normalize_kernel(lt_CudaBatchNorm k) {
  int64_t numel = k.images * k.channels * k.n;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < numel;
       i += (int64_t)gridDim.x * THREADS) {
    int64_t c = i / k.n % k.channels;
    T a = (T)(1 / sqrt((double)((const T *)k.var)[c] + k.eps));
    T b = k.bias ? load<T>(k.bias, k.bias_dtype, c) : 0;
    if (k.weight) a *= load<T>(k.weight, k.weight_dtype, c);
    store<T>(k.y, k.dtype, i, a * (load<T>(k.x, k.dtype, i) - ((const T *)k.mean)[c]) + b);
  }
}

template <class T>
static __global__ void __launch_bounds__(THREADS) gradient_kernel(lt_CudaBatchNorm k) {
  int64_t numel = k.images * k.channels * k.n;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < numel;
       i += (int64_t)gridDim.x * THREADS) {
    int64_t c = i / k.n % k.channels;
    T rstd = (T)(1 / sqrt((double)((const T *)k.var)[c] + k.eps)), h = load<T>(k.g, k.g_dtype, i);
    if (k.training) {
      T count = (T)(k.images * k.n), x = load<T>(k.x, k.dtype, i) - ((const T *)k.mean)[c];
      h = h - ((const T *)k.dbias)[c] / count - x * rstd * (((const T *)k.dweight)[c] / count);
    }
    if (k.weight) h *= load<T>(k.weight, k.weight_dtype, c);
    store<T>(k.y, k.dtype, i, h * rstd);
  }
}

#define LAUNCH(name, kernel, blocks)                                                               \
  (k->dtype == LT_float64                                                                          \
       ? launch(name, kernel<double>, grid_for(blocks), dim3(THREADS), 0, stream, *k)              \
       : launch(name, kernel<float>, grid_for(blocks), dim3(THREADS), 0, stream, *k))

cudaError_t lt_cuda_launch_batch_norm(const lt_CudaBatchNorm *k, cudaStream_t stream) {
  cudaError_t status = cudaSuccess;
  if (k->training)
    status = LAUNCH("batch_norm_statistics", statistics_kernel, blocks_for(k->channels, 1));
  if (status != cudaSuccess) return status;
  return LAUNCH("batch_norm", normalize_kernel,
                blocks_for(k->images * k->channels * k->n, THREADS));
}

cudaError_t lt_cuda_launch_batch_norm_backward(const lt_CudaBatchNorm *k, cudaStream_t stream) {
  cudaError_t status = LAUNCH("batch_norm_sums", sums_kernel, blocks_for(k->channels, 1));
  if (status != cudaSuccess) return status;
  return LAUNCH("batch_norm_gradient", gradient_kernel,
                blocks_for(k->images * k->channels * k->n, THREADS));
}
