/* loss.cu: the kernels of the negative log likelihood. Sums are computed in float64: a block adds
 * ROWS rows, then one block adds the blocks' sums, both in a fixed order. */
#include "device.cuh"
#include "launch.cuh"
#include "loss.h"

#define THREADS 256
#define ROWS    1024 /* rows for each block */

/* Returns the weight of row i, and writes its class, from 0, to *at; 0 and -1 for a row that does
 * not contribute. With `check`, reports a class out of range. */
LT_DEVICE_INLINE double weight_of(const lt_CudaNll &k, int64_t i, bool check, int64_t *at) {
  int64_t t = load<int64_t>(k.target, k.target_dtype, i);
  *at = -1;
  if (t == k.ignore) return 0;
  if (t < 1 || t > k.classes) {
    if (check) report_fault(k.fault, i, t);
    return 0;
  }
  *at = t - LT_INDEX_BASE;
  return k.weight ? load_float<double>(k.weight, k.weight_dtype, *at) : 1;
}

/* Stores the result from the total sums. Called by all threads of one block. */
LT_DEVICE_INLINE void finish(const lt_CudaNll &k, double sum, double all) {
  if (threadIdx.x > 0) return;
  if (!k.total) { /* backward reads this */
    k.part[0] = all;
    return;
  }
  if (k.reduction != LT_CUDA_EACH)
    store_float(k.out, k.dtype, 0, k.reduction == LT_CUDA_AVERAGE ? sum / all : sum);
  store_float(k.total, k.dtype, 0, all);
}

/* Sums the losses and weights of a block's rows. Without `total` (backward), only the weights:
 * forward's total may have been rounded to a half. */
__global__ void nll_rows(lt_CudaNll k) {
  __shared__ double scratch[LT_WARP];
  double sum = 0, all = 0;
  for (int64_t j = threadIdx.x; j < ROWS; j += THREADS) {
    int64_t i = (int64_t)blockIdx.x * ROWS + j, at;
    if (i >= k.n) break;
    double w = weight_of(k, i, true, &at), loss = 0;
    if (k.total && at >= 0) loss = -w * load_float<double>(k.x, k.dtype, i * k.classes + at);
    if (k.total && k.reduction == LT_CUDA_EACH) store_float(k.out, k.dtype, i, loss);
    sum += loss;
    all += w;
  }
  sum = block_all(sum, 0.0, Sum(), scratch);
  all = block_all(all, 0.0, Sum(), scratch);
  if (gridDim.x == 1) {
    finish(k, sum, all);
  } else if (threadIdx.x == 0) {
    k.part[1 + blockIdx.x] = sum;
    k.part[1 + gridDim.x + blockIdx.x] = all;
  }
}

/* Adds the blocks' sums. */
__global__ void nll_join(lt_CudaNll k, int64_t parts) {
  __shared__ double scratch[LT_WARP];
  double sum = 0, all = 0;
  for (int64_t i = threadIdx.x; i < parts; i += THREADS) {
    sum += k.part[1 + i];
    all += k.part[1 + parts + i];
  }
  sum = block_all(sum, 0.0, Sum(), scratch);
  all = block_all(all, 0.0, Sum(), scratch);
  finish(k, sum, all);
}

/* Stores the gradient of a row at its class, computed in T as on the CPU. The other elements are
 * already 0. */
template <class T> __global__ void nll_gradient(lt_CudaNll k) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, at;
  if (i >= k.n) return;
  double w = weight_of(k, i, false, &at);
  if (at < 0) return;
  T g = load_float<T>(k.grad, k.grad_dtype, k.reduction == LT_CUDA_EACH ? i : 0);
  if (k.reduction == LT_CUDA_AVERAGE) g = g / (T)k.part[0];
  store_float(k.out, k.dtype, i * k.classes + at, -g * (T)w);
}

/* ---- launches -------------------------------------------------------------------------------- */

int64_t lt_cuda_nll_parts(int64_t n) { return 1 + 2 * blocks_for(n, ROWS); }

cudaError_t lt_cuda_launch_nll(const lt_CudaNll *k, cudaStream_t stream) {
  int64_t parts = blocks_for(k->n, ROWS);
  cudaError_t status = launch("nll_loss", nll_rows, grid_for(parts), dim3(THREADS), 0, stream, *k);
  if (status != cudaSuccess || parts == 1) return status;
  return launch("nll_loss_join", nll_join, dim3(1), dim3(THREADS), 0, stream, *k, parts);
}

cudaError_t lt_cuda_launch_nll_backward(const lt_CudaNll *k, cudaStream_t stream) {
  cudaError_t status = lt_cuda_launch_nll(k, stream);
  if (status == cudaSuccess)
    status = cudaMemsetAsync(k->out, 0, (size_t)(k->n * k->classes) * k->size, stream);
  if (status != cudaSuccess) return status;
  return launch("nll_loss_backward",
                k->dtype == LT_float64 ? nll_gradient<double> : nll_gradient<float>,
                grid_for(blocks_for(k->n, THREADS)), dim3(THREADS), 0, stream, *k);
}
