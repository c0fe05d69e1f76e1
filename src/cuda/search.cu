/* search.cu: binary search for many values in sorted rows, a thread for each value. */
#include "search.h"
#include "binary_search.h"
#include "device.cuh"
#include "launch.cuh"

#define THREADS 128

template <class T>
static __global__ void __launch_bounds__(THREADS) search(const __grid_constant__ lt_CudaSearch s) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  for (; i < s.count; i += (int64_t)gridDim.x * THREADS) {
    int64_t first = s.one_row ? 0 : i / s.each * s.n, low = 0;
    T value = load<T>(s.values, s.dtype, i);
#define ELEMENT(k) load<T>(s.sorted, s.dtype, first + (k))
    LT_BINARY_SEARCH(int64_t, low, s.n, ELEMENT, value, s.right)
    s.out[i] = low + LT_INDEX_BASE;
  }
}

cudaError_t lt_cuda_launch_search(const lt_CudaSearch *s, cudaStream_t stream) {
  dim3 grid = grid_for(blocks_for(s->count, THREADS)), block(THREADS);
  if (s->dtype == LT_float64) return launch("search", search<double>, grid, block, 0, stream, *s);
  if (s->is_float) return launch("search", search<float>, grid, block, 0, stream, *s);
  return launch("search", search<int64_t>, grid, block, 0, stream, *s);
}
