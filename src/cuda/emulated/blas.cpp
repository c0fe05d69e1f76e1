/* blas.cpp: cuBLAS on top of the host's BLAS, which is loaded when first used; without one, plain
 * loops compute the products. */
#include "cublas_v2.h"
#include "cuda_runtime.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "runtime.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifndef LT_OPENBLAS_NAMES
#define LT_OPENBLAS_NAMES "libopenblas.so.0", "libopenblas.so"
#endif

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointers;
  cublasMath_t math;
};

using namespace emulated;

namespace {

/* ---- the host's library ---------------------------------------------------------------------- */

/* The values of CBLAS's enumerations. */
enum { COLUMN_MAJOR = 102, NO_TRANS = 111, TRANS = 112 };
typedef void (*Sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
typedef void (*Dgemm)(int, int, int, int, int, int, double, const double *, int, const double *,
                      int, double, double *, int);
struct Library {
  Sgemm sgemm;
  Dgemm dgemm;
};

/* Loads the first BLAS that has CBLAS's functions; its pointers are NULL where there is none. */
Library load_library() {
  for (const char *name : {LT_OPENBLAS_NAMES, "libcblas.so.3", "libblas.so.3"}) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    void *s = dlsym(library, "cblas_sgemm"), *d = dlsym(library, "cblas_dgemm");
    if (s && d) return {(Sgemm)s, (Dgemm)d};
    dlclose(library);
  }
  return {nullptr, nullptr};
}

const Library &library() {
  static const Library loaded = load_library();
  return loaded;
}

/* ---- products -------------------------------------------------------------------------------- */

/* A matrix, or the first of a batch, column-major. */
struct Matrix {
  const void *data;
  cudaDataType type;
  int ld;
  long long stride; /* elements from one matrix of the batch to the next */
  int rows, cols;   /* as stored, before op() transposes it */
};

/* The arguments of one call: C = alpha op(A) op(B) + beta C. */
struct Product {
  bool a_trans, b_trans;
  int m, n, k, count;
  Matrix a, b, c;
  double alpha, beta;
  const void *device_alpha, *device_beta; /* if not NULL: read when the operation runs */
  cudaDataType scalar;
};

size_t width(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

double get(const void *data, cudaDataType type, size_t i) {
  switch (type) {
  case CUDA_R_64F:
    return ((const double *)data)[i];
  case CUDA_R_32F:
    return ((const float *)data)[i];
  case CUDA_R_16F:
    return (float)((const __half *)data)[i];
  default:
    return (float)((const __nv_bfloat16 *)data)[i];
  }
}

void put(void *data, cudaDataType type, size_t i, float v) {
  if (type == CUDA_R_16F)
    ((__half *)data)[i] = __half(v);
  else if (type == CUDA_R_16BF)
    ((__nv_bfloat16 *)data)[i] = __nv_bfloat16(v);
  else
    ((float *)data)[i] = v;
}

/* Returns the number of bytes from the first element to the end of the last. */
size_t extent(const Matrix &x, int count) {
  if (x.rows == 0 || x.cols == 0 || count == 0) return 0;
  size_t one = (size_t)x.ld * (size_t)(x.cols - 1) + (size_t)x.rows;
  return ((size_t)x.stride * (size_t)(count - 1) + one) * width(x.type);
}

/* Returns the address of matrix i of the batch. */
char *matrix_address(const Matrix &x, long long i) {
  return (char *)x.data + (size_t)(i * x.stride) * width(x.type);
}

/* Copies matrix i to contiguous floats. */
void widen(const Matrix &x, long long i, std::vector<float> *out) {
  out->resize((size_t)x.rows * (size_t)x.cols);
  const void *data = matrix_address(x, i);
  float *to = out->data();
  for (int col = 0; col < x.cols; col++)
    for (int row = 0; row < x.rows; row++)
      *to++ = (float)get(data, x.type, (size_t)col * (size_t)x.ld + (size_t)row);
}

/* Stores contiguous floats as matrix i. */
void narrow(const Matrix &x, long long i, const std::vector<float> &from) {
  void *data = matrix_address(x, i);
  const float *v = from.data();
  for (int col = 0; col < x.cols; col++)
    for (int row = 0; row < x.rows; row++)
      put(data, x.type, (size_t)col * (size_t)x.ld + (size_t)row, *v++);
}

/* Computes C = alpha op(A) op(B) + beta C; C is not read where beta is 0. */
template <class T>
void plain_gemm(const Product &p, T alpha, const T *a, int lda, const T *b, int ldb, T beta, T *c,
                int ldc) {
  for (int j = 0; j < p.n; j++) {
    T *col = c + (size_t)j * (size_t)ldc;
    for (int i = 0; i < p.m; i++) col[i] = beta == 0 ? 0 : beta * col[i];
    for (int l = 0; l < p.k; l++) {
      T factor = alpha * (p.b_trans ? b[(size_t)l * (size_t)ldb + (size_t)j]
                                    : b[(size_t)j * (size_t)ldb + (size_t)l]);
      const T *from = p.a_trans ? a + l : a + (size_t)l * (size_t)lda;
      size_t step = p.a_trans ? (size_t)lda : 1;
      for (int i = 0; i < p.m; i++) col[i] += factor * from[(size_t)i * step];
    }
  }
}

void gemm(const Product &p, float alpha, const float *a, int lda, const float *b, int ldb,
          float beta, float *c, int ldc) {
  if (!library().sgemm || p.k == 0) return plain_gemm(p, alpha, a, lda, b, ldb, beta, c, ldc);
  library().sgemm(COLUMN_MAJOR, p.a_trans ? TRANS : NO_TRANS, p.b_trans ? TRANS : NO_TRANS, p.m,
                  p.n, p.k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void gemm(const Product &p, double alpha, const double *a, int lda, const double *b, int ldb,
          double beta, double *c, int ldc) {
  if (!library().dgemm || p.k == 0) return plain_gemm(p, alpha, a, lda, b, ldb, beta, c, ldc);
  library().dgemm(COLUMN_MAJOR, p.a_trans ? TRANS : NO_TRANS, p.b_trans ? TRANS : NO_TRANS, p.m,
                  p.n, p.k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T> void multiply_in_place(const Product &p, double alpha, double beta) {
  for (long long i = 0; i < p.count; i++)
    gemm(p, (T)alpha, (const T *)matrix_address(p.a, i), p.a.ld, (const T *)matrix_address(p.b, i),
         p.b.ld, (T)beta, (T *)matrix_address(p.c, i), p.c.ld);
}

/* Returns the leading dimension of a contiguous copy, which BLAS requires to be positive. */
int leading(const Matrix &x) { return x.rows > 0 ? x.rows : 1; }

/* Multiplies matrices of other types in float, by converted copies. */
void multiply_converted(const Product &p, float alpha, float beta) {
  std::vector<float> a, b, c;
  for (long long i = 0; i < p.count; i++) {
    widen(p.a, i, &a);
    widen(p.b, i, &b);
    if (beta != 0)
      widen(p.c, i, &c);
    else
      c.assign((size_t)p.m * (size_t)p.n, 0.0f);
    gemm(p, alpha, a.data(), leading(p.a), b.data(), leading(p.b), beta, c.data(), leading(p.c));
    narrow(p.c, i, c);
  }
}

/* Returns true when the matrices are in a live allocation or in pinned memory. */
bool is_accessible(const Matrix &x, int count) {
  size_t n = extent(x, count);
  Device *d = device_of(x.data);
  return n == 0 || (d ? is_live(&d->memory, x.data, n) : is_pinned(x.data, n));
}

/* Runs a queued product; illegal addresses are an error of the device, as for a kernel. */
void run(void *work) {
  Product &p = *(Product *)work;
  if (!is_accessible(p.a, p.count) || !is_accessible(p.b, p.count) ||
      !is_accessible(p.c, p.count)) {
    device(current_device()).sticky = cudaErrorIllegalAddress;
    return;
  }
  double alpha = p.device_alpha ? get(p.device_alpha, p.scalar, 0) : p.alpha;
  double beta = p.device_beta ? get(p.device_beta, p.scalar, 0) : p.beta;
  if (p.a.type == CUDA_R_64F)
    multiply_in_place<double>(p, alpha, beta);
  else if (p.a.type == CUDA_R_32F && p.c.type == CUDA_R_32F)
    multiply_in_place<float>(p, alpha, beta);
  else
    multiply_converted(p, (float)alpha, (float)beta);
}

/* ---- calls ----------------------------------------------------------------------------------- */

cudaDataType scalar_of(cublasComputeType_t compute) {
  switch (compute) {
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC:
    return CUDA_R_64F;
  case CUBLAS_COMPUTE_16F:
  case CUBLAS_COMPUTE_16F_PEDANTIC:
    return CUDA_R_16F;
  default:
    return CUDA_R_32F;
  }
}

/* Returns true for the combinations of types that cuBLAS supports. */
bool supported(const Product &p) {
  cudaDataType a = p.a.type, c = p.c.type;
  if (a != p.b.type) return false;
  switch (p.scalar) {
  case CUDA_R_64F:
    return a == CUDA_R_64F && c == CUDA_R_64F;
  case CUDA_R_16F:
    return a == CUDA_R_16F && c == CUDA_R_16F;
  default:
    return (a == CUDA_R_32F && c == CUDA_R_32F) ||
           ((a == CUDA_R_16F || a == CUDA_R_16BF) && (c == a || c == CUDA_R_32F));
  }
}

/* Checks a call as cuBLAS does and queues the product on the handle's stream. */
cublasStatus_t submit(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                      int k, const void *alpha, Matrix a, Matrix b, const void *beta, Matrix c,
                      int count, cublasComputeType_t compute) {
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (injected(Fault::BLAS)) return CUBLAS_STATUS_EXECUTION_FAILED;
  bool at = ta != CUBLAS_OP_N, bt = tb != CUBLAS_OP_N;
  if (m < 0 || n < 0 || k < 0 || count < 0 || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  a.rows = at ? k : m, a.cols = at ? m : k;
  b.rows = bt ? n : k, b.cols = bt ? k : n;
  c.rows = m, c.cols = n;
  if (a.ld < leading(a) || b.ld < leading(b) || c.ld < leading(c))
    return CUBLAS_STATUS_INVALID_VALUE;
  Product p = {at, bt, m, n, k, count, a, b, c, 0, 0, nullptr, nullptr, scalar_of(compute)};
  if (!supported(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
  if (h->pointers == CUBLAS_POINTER_MODE_DEVICE) {
    p.device_alpha = alpha;
    p.device_beta = beta;
  } else {
    p.alpha = get(alpha, p.scalar, 0);
    p.beta = get(beta, p.scalar, 0);
  }
  cudaError_t status = lt_emulated_enqueue(
      h->stream, run, [](void *work) { delete (Product *)work; }, new Product(p));
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

Matrix matrix(const void *data, cudaDataType type, int ld, long long stride = 0) {
  return {data, type, ld, stride, 0, 0};
}

} // namespace

cublasStatus_t cublasCreate(cublasHandle_t *out) {
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = nullptr;
  if (enter() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  library();
  *out = new cublasContext{nullptr, CUBLAS_POINTER_MODE_HOST, CUBLAS_DEFAULT_MATH};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t h) {
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete h;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int *version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : 0;
  return CUBLAS_STATUS_SUCCESS;
}

#define LT_FIELD(name, T, field)                                                                   \
  cublasStatus_t cublasSet##name(cublasHandle_t h, T value) {                                      \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                  \
    h->field = value;                                                                              \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }                                                                                                \
  cublasStatus_t cublasGet##name(cublasHandle_t h, T *value) {                                     \
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;                                                  \
    *value = h->field;                                                                             \
    return CUBLAS_STATUS_SUCCESS;                                                                  \
  }
LT_FIELD(Stream_v2, cudaStream_t, stream)
LT_FIELD(PointerMode_v2, cublasPointerMode_t, pointers)
LT_FIELD(MathMode, cublasMath_t, math)

cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *, size_t) {
  return h ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char *cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case CUBLAS_STATUS_MAPPING_ERROR:
    return "CUBLAS_STATUS_MAPPING_ERROR";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_INTERNAL_ERROR:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  case CUBLAS_STATUS_LICENSE_ERROR:
    return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "unknown cuBLAS status";
}

const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long a_stride, const void *b,
                                          cudaDataType b_type, int ldb, long long b_stride,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return submit(h, ta, tb, m, n, k, alpha, matrix(a, a_type, lda, a_stride),
                matrix(b, b_type, ldb, b_stride), beta, matrix(c, c_type, ldc, c_stride), count,
                compute);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType a_type,
                            int lda, const void *b, cudaDataType b_type, int ldb, const void *beta,
                            void *c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  return submit(h, ta, tb, m, n, k, alpha, matrix(a, a_type, lda), matrix(b, b_type, ldb), beta,
                matrix(c, c_type, ldc), 1, compute);
}

#define LT_GEMM(letter, T, type, compute)                                                          \
  cublasStatus_t cublas##letter##gemm_v2(                                                          \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,           \
      const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {    \
    return submit(h, ta, tb, m, n, k, alpha, matrix(a, type, lda), matrix(b, type, ldb), beta,     \
                  matrix(c, type, ldc), 1, compute);                                               \
  }                                                                                                \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                               \
      cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,           \
      const T *alpha, const T *a, int lda, long long a_stride, const T *b, int ldb,                \
      long long b_stride, const T *beta, T *c, int ldc, long long c_stride, int count) {           \
    return submit(h, ta, tb, m, n, k, alpha, matrix(a, type, lda, a_stride),                       \
                  matrix(b, type, ldb, b_stride), beta, matrix(c, type, ldc, c_stride), count,     \
                  compute);                                                                        \
  }
LT_GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
LT_GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
