/* matmul.cu: products of integer matrices, which cuBLAS does not have. A block computes a square
 * tile of the result, tile by tile along the inner dimension. */
#include "device.cuh"
#include "launch.cuh"
#include "matmul.h"

#define TILE 16

static __global__ void integer_matmul_kernel(int dtype, int64_t blocks, int64_t across,
                                             int64_t down, int64_t m, int64_t n, int64_t k,
                                             int64_t alpha, lt_IntegerFactor a, lt_IntegerFactor b,
                                             int64_t beta, void *out) {
  __shared__ int64_t left[TILE][TILE], right[TILE][TILE];
  int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
  for (int64_t at = blockIdx.x; at < blocks; at += gridDim.x) {
    int64_t matrix = at / (across * down), tile = at % (across * down);
    int64_t i = tile / across * TILE + y, j = tile % across * TILE + x;
    int64_t row = matrix * a.step + i * a.row, column = matrix * b.step + j * b.column;
    uint64_t sum = 0; /* unsigned: wrapping is defined */
    for (int64_t from = 0; from < k; from += TILE) {
      left[y][x] =
          i < m && from + x < k ? load<int64_t>(a.data, dtype, row + (from + x) * a.column) : 0;
      right[y][x] =
          from + y < k && j < n ? load<int64_t>(b.data, dtype, column + (from + y) * b.row) : 0;
      __syncthreads();
      for (int p = 0; p < TILE; p++) sum += (uint64_t)left[y][p] * (uint64_t)right[p][x];
      __syncthreads();
    }
    if (i >= m || j >= n) continue;
    int64_t place = (matrix * m + i) * n + j;
    sum *= (uint64_t)alpha;
    if (beta != 0) sum += (uint64_t)beta * (uint64_t)load<int64_t>(out, dtype, place);
    store<int64_t>(out, dtype, place, (int64_t)sum);
  }
}

cudaError_t lt_cuda_launch_integer_matmul(int dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                                          int64_t alpha, lt_IntegerFactor a, lt_IntegerFactor b,
                                          int64_t beta, void *out, cudaStream_t stream) {
  int64_t across = blocks_for(n, TILE), down = blocks_for(m, TILE), blocks = batch * across * down;
  return launch("integer_matmul", integer_matmul_kernel, grid_for(blocks), dim3(TILE * TILE), 0,
                stream, dtype, blocks, across, down, m, n, k, alpha, a, b, beta, out);
}
