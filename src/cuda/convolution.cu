/* convolution.cu: kernels that lay out the elements of a convolution as columns, and add columns to
 * the elements that they were read from. A thread computes one element, so results do not depend on
 * an order of threads. */
#include "convolution.h"
#include "device.cuh"
#include "index_math.cuh"
#include "launch.cuh"

#define THREADS 128

template <class E>
static __global__ void __launch_bounds__(THREADS)
    columns_kernel(const __grid_constant__ lt_CudaColumns k, int64_t numel) {
  const lt_Convolution &g = k.g;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < numel;
       i += (int64_t)gridDim.x * THREADS) {
    int64_t left = i, source = 0, o[3], t[3];
    bool inside = true;
    for (int d = 2; d >= 0; d--) o[d] = divmod(left, g.out[d]);
    for (int d = 2; d >= 0; d--) t[d] = divmod(left, g.kernel[d]);
    for (int d = 0; d < 3; d++) {
      int64_t at = o[d] * g.stride[d] + t[d] * g.dilation[d] - g.padding[d];
      inside = inside && at >= 0 && at < g.in[d];
      source = source * g.in[d] + at;
    }
    /* left: image * channels + channel */
    ((E *)k.columns)[i] =
        inside ? ((const E *)k.in)[left * (g.in[0] * g.in[1] * g.in[2]) + source] : E();
  }
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    add_columns_kernel(const __grid_constant__ lt_CudaColumns k, int64_t numel) {
  const lt_Convolution &g = k.g;
  int64_t outs = g.out[0] * g.out[1] * g.out[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < numel;
       i += (int64_t)gridDim.x * THREADS) {
    int64_t left = i, at[3];
    for (int d = 2; d >= 0; d--) at[d] = divmod(left, g.in[d]);
    T sum = k.bias ? load<T>(k.bias, k.dtype, left % k.channels) : 0;
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t rest = tap, column = 0, t[3];
      bool inside = true;
      for (int d = 2; d >= 0; d--) t[d] = divmod(rest, g.kernel[d]);
      for (int d = 0; d < 3; d++) {
        int64_t from = at[d] + g.padding[d] - t[d] * g.dilation[d], o = from / g.stride[d];
        inside = inside && from >= 0 && o * g.stride[d] == from && o < g.out[d];
        column = column * g.out[d] + o;
      }
      if (inside) sum += load<T>(k.columns, k.dtype, (left * taps + tap) * outs + column);
    }
    store<T>(k.in, k.dtype, i, sum);
  }
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    bias_kernel(int dtype, void *x, const void *bias, int64_t channels, int64_t n, int64_t numel) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < numel;
       i += (int64_t)gridDim.x * THREADS)
    store<T>(x, dtype, i, load<T>(x, dtype, i) + load<T>(bias, dtype, i / n % channels));
}

#define LAUNCH(name, kernel, numel, ...)                                                           \
  launch(name, kernel, grid_for(blocks_for(numel, THREADS)), dim3(THREADS), 0, stream, __VA_ARGS__)

cudaError_t lt_cuda_launch_columns(const lt_CudaColumns *k, cudaStream_t stream) {
  const lt_Convolution *g = &k->g;
  int64_t numel = k->images * k->channels * lt_convolution_taps(g) * lt_convolution_out(g);
  switch (dtype_size(k->dtype)) {
  case 1:
    return LAUNCH("columns", columns_kernel<uint8_t>, numel, *k, numel);
  case 2:
    return LAUNCH("columns", columns_kernel<uint16_t>, numel, *k, numel);
  case 4:
    return LAUNCH("columns", columns_kernel<uint32_t>, numel, *k, numel);
  default:
    return LAUNCH("columns", columns_kernel<uint64_t>, numel, *k, numel);
  }
}

/* Calls with T as the type that a dtype is computed in. */
#define BY_DTYPE(dtype, call_float, call_double, call_integer)                                     \
  switch (dtype) {                                                                                 \
  case LT_float16:                                                                                 \
  case LT_bfloat16:                                                                                \
  case LT_float32:                                                                                 \
    return call_float;                                                                             \
  case LT_float64:                                                                                 \
    return call_double;                                                                            \
  default:                                                                                         \
    return call_integer;                                                                           \
  }

cudaError_t lt_cuda_launch_add_columns(const lt_CudaColumns *k, cudaStream_t stream) {
  int64_t numel = k->images * k->channels * lt_convolution_in(&k->g);
  BY_DTYPE(k->dtype, LAUNCH("add_columns", add_columns_kernel<float>, numel, *k, numel),
           LAUNCH("add_columns", add_columns_kernel<double>, numel, *k, numel),
           LAUNCH("add_columns", add_columns_kernel<int64_t>, numel, *k, numel))
}

cudaError_t lt_cuda_launch_bias(int dtype, void *x, const void *bias, int64_t planes,
                                int64_t channels, int64_t n, cudaStream_t stream) {
  int64_t numel = planes * n;
  BY_DTYPE(dtype, LAUNCH("bias", bias_kernel<float>, numel, dtype, x, bias, channels, n, numel),
           LAUNCH("bias", bias_kernel<double>, numel, dtype, x, bias, channels, n, numel),
           LAUNCH("bias", bias_kernel<int64_t>, numel, dtype, x, bias, channels, n, numel))
}
