/* cublas.cu: the rate of cuBLAS itself, for the products of bench/cuda.lua: calls on memory that is
 * there already, nothing else. `name <tab> seconds`.
 *
 *   nvcc -O2 bench/cublas.cu -lcublas -o cublas && ./cublas [scale]
 */
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

static double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void fail(const char *what) {
  fprintf(stderr, "cublas: %s failed\n", what);
  exit(1);
}

static void product(cublasHandle_t handle, const char *name, int n, cudaDataType type,
                    cublasComputeType_t compute) {
  size_t size = type == CUDA_R_16BF ? 2 : 4, bytes = (size_t)n * (size_t)n * size;
  void *a, *b, *c;
  if (cudaMalloc(&a, bytes) || cudaMalloc(&b, bytes) || cudaMalloc(&c, bytes)) fail("cudaMalloc");
  /* Not zeros, with which a GPU is quicker. */
  cudaMemset(a, 0x3c, bytes);
  cudaMemset(b, 0x3c, bytes);
  const float one = 1, none = 0;
  double best = 1e30;
  for (int run = 0; run < 8; run++) {
    cudaDeviceSynchronize();
    double start = seconds();
    for (int k = 0; k < 4; k++)
      if (cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, type, n, b, type, n,
                       &none, c, type, n, compute, CUBLAS_GEMM_DEFAULT))
        fail(name);
    cudaDeviceSynchronize();
    double took = (seconds() - start) / 4;
    if (run > 0 && took < best) best = took;
  }
  printf("matmul %s\t%.9g\n", name, best);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}

int main(int argc, char **argv) {
  double scale = argc > 1 ? atof(argv[1]) : 1;
  int n = (int)(8192 * scale) > 0 ? (int)(8192 * scale) : 1;
  cublasHandle_t handle;
  if (cublasCreate(&handle)) fail("cublasCreate");
  product(handle, "float32", n, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  product(handle, "tf32", n, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
  product(handle, "bfloat16", n, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
  cublasDestroy(handle);
  return 0;
}
