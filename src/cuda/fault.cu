/* fault.cu: kernels that check index tensors and divisors. */
#include "device.cuh"
#include "fault.h"
#include "launch.cuh"

#define THREADS 256

/* Converts and checks the elements of an index tensor. */
static __global__ void check_indices_kernel(const void *index, int dtype, Geometry<1> g,
                                            int64_t count, int64_t n, bool negative, int64_t *out,
                                            lt_CudaFault fault) {
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
    int64_t offset[1];
    offsets_at(g, i, offset);
    int64_t value = load<int64_t>(index, dtype, offset[0]);
    bool before = value >= 1 && value <= n, behind = negative && value < 0 && value >= -n;
    out[i] = before ? value - LT_INDEX_BASE : behind ? value + n : 0;
    if (!before && !behind) report_fault(fault, i, value);
  }
}

/* Returns the tensor's geometry, as one dimension where it is contiguous, so that neighbouring
 * threads read neighbouring elements. */
static Geometry<1> geometry_of(int ndim, const int64_t *shape, const int64_t *strides,
                               int64_t count) {
  Geometry<1> g = {};
  int64_t dense = 1;
  bool is_dense = true;
  for (int d = ndim - 1; d >= 0; d--) {
    is_dense = is_dense && (shape[d] == 1 || strides[d] == dense);
    dense *= shape[d];
  }
  g.ndim = is_dense ? 1 : ndim;
  for (int d = 0; d < ndim && !is_dense; d++) {
    g.shape[d] = shape[d];
    g.strides[0][d] = strides[d];
  }
  if (is_dense) {
    g.shape[0] = count;
    g.strides[0][0] = 1;
  }
  return g;
}

cudaError_t lt_cuda_launch_check_indices(const void *index, int dtype, int ndim,
                                         const int64_t *shape, const int64_t *strides,
                                         int64_t count, int64_t n, bool negative, int64_t *out,
                                         lt_CudaFault fault, cudaStream_t stream) {
  Geometry<1> g = geometry_of(ndim, shape, strides, count);
  return launch("positions", check_indices_kernel, grid_for(blocks_for(count, THREADS)),
                dim3(THREADS), 0, stream, index, dtype, g, count, n, negative, out, fault);
}

static __global__ void divisor_kernel(const void *divisor, int dtype, Geometry<1> g, int64_t count,
                                      bool narrow, lt_CudaFault fault) {
  int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
    int64_t offset[1];
    offsets_at(g, i, offset);
    int64_t value = load<int64_t>(divisor, dtype, offset[0]);
    if ((narrow ? (int64_t)(int32_t)value : value) == 0) report_fault(fault, i, value);
  }
}

cudaError_t lt_cuda_launch_divisor(const void *divisor, int dtype, int ndim, const int64_t *shape,
                                   const int64_t *strides, int64_t count, bool narrow,
                                   lt_CudaFault fault, cudaStream_t stream) {
  Geometry<1> g = geometry_of(ndim, shape, strides, count);
  return launch("divisor", divisor_kernel, grid_for(blocks_for(count, THREADS)), dim3(THREADS), 0,
                stream, divisor, dtype, g, count, narrow, fault);
}
