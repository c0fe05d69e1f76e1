/* each.cu: the kernels of rows LT_EACH, whose bodies are shared with other devices
 * (each/each.h). */
#include "device.cuh"
#include "launch.cuh"
#include "opids.h"

#define LT_EACH_FUNCTION    LT_DEVICE_INLINE
#define LT_EACH_ARGS(type)  const type *
#define LT_EACH_LOCAL(type) type *
#include "each.h"

#define THREADS 128

template <class T> LT_DEVICE_INLINE bool is_nan(T) { return false; }
template <> __device__ __forceinline__ bool is_nan<float>(float v) { return isnan(v); }
template <> __device__ __forceinline__ bool is_nan<double>(double v) { return isnan(v); }
LT_DEVICE_INLINE float floor_of(float v) { return floorf(v); }
LT_DEVICE_INLINE double floor_of(double v) { return floor(v); }
LT_DEVICE_INLINE int64_t floor_of(int64_t v) { return v; }

#define LT_EACH_BODY(name)                                                                         \
  template <class T>                                                                               \
  LT_DEVICE_INLINE void body##name(const lt_each_##name##_args *p, const lt_CudaEach &e,           \
                                   int64_t i)
#define LT_EACH_OF_T       template <class T> LT_EACH_FUNCTION
#define LT_EACH_NAME(f)    f
#define LT_EACH_CALL(f)    f<T>
#define GET(k, j)          load<T>(e.in[k].data, e.in[k].dtype, j)
#define GET_INDEX(k, j)    (load<int64_t>(e.in[k].data, e.in[k].dtype, j) - LT_INDEX_BASE)
#define PUT(k, j, v)       store<T>(e.out[k].data, e.out[k].dtype, j, v)
#define PUT_INDEX(k, j, v) store<int64_t>(e.out[k].data, e.out[k].dtype, j, (v) + LT_INDEX_BASE)
#define IS_NAN(v)          is_nan<T>(v)
#define FLOOR(v)           floor_of((T)(v))
#include "each/bodies.h"

#define LT_EACH(name, ...)                                                                         \
  template <class T>                                                                               \
  static __global__ void __launch_bounds__(THREADS) each##name(                                    \
      const __grid_constant__ lt_each_##name##_args p, const __grid_constant__ lt_CudaEach e) {    \
    int64_t step = (int64_t)gridDim.x * THREADS;                                                   \
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < e.n; i += step)              \
      body##name<T>(&p, e, i);                                                                     \
  }
#include "ops.def"

cudaError_t lt_cuda_launch_each(lt_OpId op, int compute, const void *args, const lt_CudaEach *each,
                                cudaStream_t stream) {
  dim3 grid = grid_for(blocks_for(each->n, THREADS));
  switch (op) {
#define LT_EACH(name, ...)                                                                         \
  case LT_OP_##name: {                                                                             \
    const lt_each_##name##_args &p = *(const lt_each_##name##_args *)args;                         \
    return launch(#name,                                                                           \
                  compute == LT_float32   ? each##name<float>                                      \
                  : compute == LT_float64 ? each##name<double>                                     \
                                          : each##name<int64_t>,                                   \
                  grid, dim3(THREADS), 0, stream, p, *each);                                       \
  }
#include "ops.def"
  }
  return cudaErrorInvalidValue;
}
