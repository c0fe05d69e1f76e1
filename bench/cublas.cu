/* cublas.cu: measures cuBLAS alone for the matrix products of bench/device.lua, without allocation.
 * Prints `name <tab> seconds`. As in Lutra, the factors are normally distributed random numbers (a
 * GPU is faster with zeros or with equal numbers) and float16 is accumulated in float32.
 *
 *   make build/bench/cublas && build/bench/cublas [scale]
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

/* Fills with hashes of the index (splitmix64), transformed by the Box-Muller method. */
template <class T> static __global__ void fill(T *out, size_t n, unsigned long long seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    unsigned long long h = (i + seed) * 0x9e3779b97f4a7c15ull;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    h ^= h >> 31;
    float u = ((unsigned)h + 1.0f) * 0x1p-32f, v = (unsigned)(h >> 32) * 0x1p-31f;
    out[i] = (T)(sqrtf(-2 * logf(u)) * cospif(v));
  }
}

static void random(void *out, size_t n, size_t size, unsigned long long seed) {
  if (size == 2)
    fill<<<1024, 256>>>((__nv_bfloat16 *)out, n, seed);
  else
    fill<<<1024, 256>>>((float *)out, n, seed);
  if (cudaDeviceSynchronize()) fail("filling with random numbers");
}

static void product(cublasHandle_t handle, const char *name, int n, cudaDataType type,
                    cublasComputeType_t compute) {
  size_t size = type == CUDA_R_16BF ? 2 : 4, count = (size_t)n * (size_t)n, bytes = count * size;
  void *a, *b, *c;
  if (cudaMalloc(&a, bytes) || cudaMalloc(&b, bytes) || cudaMalloc(&c, bytes)) fail("cudaMalloc");
  random(a, count, size, 1);
  random(b, count, size, 1ull << 40);
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
  fflush(stdout);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}

int main(int argc, char **argv) {
  double scale = argc > 1 ? atof(argv[1]) : 1;
  int n = (int)(8192 * scale) > 0 ? (int)(8192 * scale) : 1;
  cublasHandle_t handle;
  if (cublasCreate(&handle)) fail("cublasCreate");
  if (cublasSetMathMode(handle, (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)))
    fail("cublasSetMathMode");
  product(handle, "float32", n, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  product(handle, "tf32", n, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
  product(handle, "bfloat16", n, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
  cublasDestroy(handle);
  return 0;
}
