/* blas.c: cuBLAS, loaded at the first product, since it is half a gigabyte that many programs never
 * need. Only GemmEx and its batched form are used.
 *
 * cuBLAS is column-major: a row-major matrix is its transpose there. So out = a @ b is computed as
 * out^T = b^T @ a^T: the factors are exchanged and no data is moved.
 */
#include "blas.h"
#include "libraries.h"

#include <cublas_v2.h>
#include <dlfcn.h>
#include <pthread.h>

#define BATCH_MAX 65535 /* matrices in one call: the limit of a grid's third dimension */

/* The functions for sizes past 2^31 are missing in libraries of toolkits before 12. */
typedef cublasStatus_t (*GemmFn)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                 int, const void *, const void *, cudaDataType, int, const void *,
                                 cudaDataType, int, const void *, void *, cudaDataType, int,
                                 cublasComputeType_t, cublasGemmAlgo_t);
typedef cublasStatus_t (*BatchFn)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void *, const void *, cudaDataType, int, long long,
                                  const void *, cudaDataType, int, long long, const void *, void *,
                                  cudaDataType, int, long long, int, cublasComputeType_t,
                                  cublasGemmAlgo_t);
typedef cublasStatus_t (*WideGemmFn)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t,
                                     int64_t, int64_t, const void *, const void *, cudaDataType,
                                     int64_t, const void *, cudaDataType, int64_t, const void *,
                                     void *, cudaDataType, int64_t, cublasComputeType_t,
                                     cublasGemmAlgo_t);
typedef cublasStatus_t (*WideBatchFn)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t,
                                      int64_t, int64_t, const void *, const void *, cudaDataType,
                                      int64_t, long long, const void *, cudaDataType, int64_t,
                                      long long, const void *, void *, cudaDataType, int64_t,
                                      long long, int64_t, cublasComputeType_t, cublasGemmAlgo_t);

static struct {
  cublasStatus_t (*create)(cublasHandle_t *);
  cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
  cublasStatus_t (*set_math)(cublasHandle_t, cublasMath_t);        /* may be NULL */
  cublasStatus_t (*set_workspace)(cublasHandle_t, void *, size_t); /* may be NULL */
  GemmFn gemm;                                                     /* NULL: no library */
  BatchFn batch;
  WideGemmFn wide_gemm; /* may be NULL */
  WideBatchFn wide_batch;
  char name[64], path[1000], why[300];
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- loading --------------------------------------------------------------------------------- */

#ifdef LT_CUDA_EMULATED
/* The emulation computes with the host's BLAS. The CPU backend goes first, since it chooses the
 * library that is best for this processor: both then use the same one. */
static void find_library(void) {
  const lt_Backend *cpu = lt_device_backend(LT_DEVICE_cpu);
  if (cpu) cpu->fact(0, "blas");
  blas.create = cublasCreate;
  blas.set_stream = cublasSetStream;
  blas.set_math = cublasSetMathMode;
  blas.set_workspace = cublasSetWorkspace;
  blas.gemm = cublasGemmEx;
  blas.batch = cublasGemmStridedBatchedEx;
  snprintf(blas.name, sizeof blas.name, "cuBLAS, emulated");
}
#else
/* ISO C does not allow the cast of a data pointer to a function pointer. */
#define FIND(field, symbol_name)                                                                   \
  do {                                                                                             \
    void *symbol = dlsym(library, symbol_name);                                                    \
    memcpy(&blas.field, &symbol, sizeof symbol);                                                   \
  } while (0)

/* Reads the library's functions; false when one that is required is missing. */
static bool load_functions(void *library) {
  FIND(create, "cublasCreate_v2");
  FIND(set_stream, "cublasSetStream_v2");
  FIND(set_math, "cublasSetMathMode");
  FIND(set_workspace, "cublasSetWorkspace_v2");
  FIND(gemm, "cublasGemmEx");
  FIND(batch, "cublasGemmStridedBatchedEx");
  FIND(wide_gemm, "cublasGemmEx_64");
  FIND(wide_batch, "cublasGemmStridedBatchedEx_64");
  if (blas.create && blas.set_stream && blas.gemm && blas.batch) return true;
  memset(&blas, 0, sizeof blas);
  return false;
}

/* Loads the toolkit's own version, or else any other that the machine has. */
static void find_library(void) {
  cublasStatus_t (*property)(libraryPropertyType, int *) = NULL;
  int version[3] = {0, 0, 0};
  char path[sizeof blas.path];
  void *library = lt_cuda_library_open(LT_LIBRARY_CUBLAS, CUDART_VERSION / 1000, load_functions,
                                       path, sizeof path);
  if (!library) {
    snprintf(blas.why, sizeof blas.why,
             "cannot multiply matrices: NVIDIA's library cuBLAS (libcublas.so.%d) was not "
             "found\nhint: pip install nvidia-cublas, or set CUDA_HOME to the folder of the "
             "toolkit or LD_LIBRARY_PATH to that of the library",
             CUDART_VERSION / 1000);
    return;
  }
  void *symbol = dlsym(library, "cublasGetProperty");
  memcpy(&property, &symbol, sizeof symbol);
  for (int i = 0; property && i < 3; i++) property((libraryPropertyType)i, &version[i]);
  snprintf(blas.name, sizeof blas.name, "cuBLAS %d.%d.%d", version[0], version[1], version[2]);
  memcpy(blas.path, path, sizeof path);
}
#endif

/* ---- handles --------------------------------------------------------------------------------- */

/* The handle of a device. Its user holds the lock, since a handle's stream is part of its state. */
typedef struct Handle {
  pthread_mutex_t lock;
  cublasHandle_t handle; /* NULL until first used */
} Handle;
static Handle handles[LT_ACCEL_MAX];

static void load(void) {
  find_library();
  for (int i = 0; i < LT_ACCEL_MAX; i++) pthread_mutex_init(&handles[i].lock, NULL);
}

const char *lt_cuda_blas_name(void) {
  pthread_once(&once, load);
  return blas.gemm ? blas.name : NULL;
}

static const char *status_text(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "initialization failed";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "out of memory for its workspace";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "invalid value";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "the GPU is not supported";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "a kernel failed";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "not supported";
  default:
    return "internal error";
  }
}

/* Checks a status. A failure is often caused by an error of an earlier kernel, whose message says
 * more. */
static bool check_status(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  if (!lt_cuda_ok(cudaGetLastError(), "multiply matrices")) return false;
  lt_fail("cannot multiply matrices: cuBLAS error %d, %s", (int)status, status_text(status));
  return false;
}

/* Creates the handle. Products of halves must be summed in float32 also when they are split. */
static cublasStatus_t create(Handle *h) {
  cublasStatus_t status = blas.create(&h->handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    h->handle = NULL;
    return status;
  }
  if (blas.set_math)
    blas.set_math(h->handle, (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                                            CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  return status;
}

/* Gives cuBLAS memory of the graph that is captured on the device, if there is one, for captured
 * products: with its own they would use memory that other calls use at the same time. Setting the
 * stream has ended the use of a former graph's memory. The sizes are those of PyTorch. */
static bool set_workspace(Handle *h, int index, lt_Stream *stream) {
  lt_Graph *graph = lt_capture_of(&lt_cuda_backend, index);
  if (!graph || !blas.set_workspace) return true;
  size_t size = lt_cuda_facts(index)->major >= 9 ? (size_t)32 << 20 : (size_t)8320 << 10;
  void *memory = lt_capture_workspace(graph, stream, size);
  return memory && check_status(blas.set_workspace(h->handle, memory, size));
}

/* Creates the handle where needed and sets its stream. cuBLAS allocates from the driver, so cached
 * memory is freed when that fails. */
static bool prepare(Handle *h, int index, lt_Stream *stream) {
  if (!h->handle) {
    cublasStatus_t status = create(h);
    if (status != CUBLAS_STATUS_SUCCESS && lt_cuda_free_cached()) status = create(h);
    if (!check_status(status)) return false;
  }
  return check_status(blas.set_stream(h->handle, (cudaStream_t)lt_accel_native(stream))) &&
         set_workspace(h, index, stream);
}

/* ---- one product, or many -------------------------------------------------------------------- */

typedef struct Product {
  cudaDataType type;
  cublasComputeType_t compute;
  int64_t m, n, k; /* in cuBLAS's order: of the transposes */
  cublasOperation_t a_op, b_op;
  lt_CudaMatrix a, b;
  size_t size;              /* of an element */
  const void *alpha, *beta; /* float or double, by `compute` */
  char *out;
} Product;

/* Returns true when all sizes fit in an int. */
static bool is_narrow(const Product *p) {
  return p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX && p->a.lead <= INT32_MAX &&
         p->b.lead <= INT32_MAX;
}

static cublasStatus_t multiply(cublasHandle_t h, const Product *p) {
  cublasGemmAlgo_t algo = CUBLAS_GEMM_DEFAULT;
  if (is_narrow(p))
    return blas.gemm(h, p->a_op, p->b_op, (int)p->m, (int)p->n, (int)p->k, p->alpha, p->a.data,
                     p->type, (int)p->a.lead, p->b.data, p->type, (int)p->b.lead, p->beta, p->out,
                     p->type, (int)p->m, p->compute, algo);
  if (!blas.wide_gemm) return CUBLAS_STATUS_NOT_SUPPORTED;
  return blas.wide_gemm(h, p->a_op, p->b_op, p->m, p->n, p->k, p->alpha, p->a.data, p->type,
                        p->a.lead, p->b.data, p->type, p->b.lead, p->beta, p->out, p->type, p->m,
                        p->compute, algo);
}

/* Multiplies `count` matrices of the batch from number `first` on. */
static cublasStatus_t multiply_some(cublasHandle_t h, const Product *p, int64_t first, int count) {
  cublasGemmAlgo_t algo = CUBLAS_GEMM_DEFAULT;
  const char *a = (const char *)p->a.data + first * p->a.step * (int64_t)p->size;
  const char *b = (const char *)p->b.data + first * p->b.step * (int64_t)p->size;
  int64_t each = p->m * p->n;
  char *out = p->out + first * each * (int64_t)p->size;
  if (is_narrow(p))
    return blas.batch(h, p->a_op, p->b_op, (int)p->m, (int)p->n, (int)p->k, p->alpha, a, p->type,
                      (int)p->a.lead, p->a.step, b, p->type, (int)p->b.lead, p->b.step, p->beta,
                      out, p->type, (int)p->m, each, count, p->compute, algo);
  if (!blas.wide_batch) return CUBLAS_STATUS_NOT_SUPPORTED;
  return blas.wide_batch(h, p->a_op, p->b_op, p->m, p->n, p->k, p->alpha, a, p->type, p->a.lead,
                         p->a.step, b, p->type, p->b.lead, p->b.step, p->beta, out, p->type, p->m,
                         each, count, p->compute, algo);
}

/* Multiplies up to BATCH_MAX matrices of the batch from number `first` on. */
static cublasStatus_t multiply_part(cublasHandle_t h, const Product *p, int64_t batch,
                                    int64_t first) {
  int64_t left = batch - first;
  return batch == 1 ? multiply(h, p)
                    : multiply_some(h, p, first, (int)(left < BATCH_MAX ? left : BATCH_MAX));
}

/* Multiplies the whole batch. The library's kernels, too, are loaded on the device at their first
 * launch, and its status when the device is out of memory is not documented. After freeing cached
 * memory a second try with beta 0 gives the result that the first would have; with another beta,
 * `out` may already have been written, and the first status is reported. */
static bool run(Handle *h, const Product *p, int64_t batch) {
  bool repeatable = p->compute == CUBLAS_COMPUTE_64F ? *(const double *)p->beta == 0
                                                     : *(const float *)p->beta == 0;
  for (int64_t first = 0; first < batch; first += BATCH_MAX) {
    cublasStatus_t status = multiply_part(h->handle, p, batch, first);
    bool full =
        status == CUBLAS_STATUS_ALLOC_FAILED ||
        (status != CUBLAS_STATUS_SUCCESS && cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    if (full && repeatable && lt_cuda_free_cached())
      status = multiply_part(h->handle, p, batch, first);
    if (!check_status(status)) return false;
  }
  return true;
}

static cudaDataType type_of(lt_Dtype d) {
  switch (d) {
  case LT_float16:
    return CUDA_R_16F;
  case LT_bfloat16:
    return CUDA_R_16BF;
  case LT_float64:
    return CUDA_R_64F;
  default:
    return CUDA_R_32F;
  }
}

static atomic_int allow_tf32;

int lt_cuda_blas_option(const char *name, int value) {
  if (strcmp(name, "matmul.allow_tf32") != 0) return -1;
  return value < 0 ? atomic_load(&allow_tf32) : atomic_exchange(&allow_tf32, value != 0);
}

static cublasComputeType_t compute_of(lt_Dtype d) {
  if (d == LT_float64) return CUBLAS_COMPUTE_64F;
  return d == LT_float32 && atomic_load(&allow_tf32) ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                     : CUBLAS_COMPUTE_32F;
}

bool lt_cuda_gemm(const lt_Call *c, lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t batch,
                  double alpha, lt_CudaMatrix a, lt_CudaMatrix b, double beta, void *out) {
  float alpha32 = (float)alpha, beta32 = (float)beta;
  bool wide = dtype == LT_float64;
  Product p = {.type = type_of(dtype),
               .compute = compute_of(dtype),
               .m = n,
               .n = m,
               .k = k,
               .a_op = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
               .b_op = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
               .a = b,
               .b = a,
               .size = lt_dtype_size(dtype),
               .alpha = wide ? (const void *)&alpha : &alpha32,
               .beta = wide ? (const void *)&beta : &beta32,
               .out = out};
  pthread_once(&once, load);
  if (!blas.gemm) return lt_fail("%s", blas.why);
  int index = c->device.index;
  Handle *h = &handles[index];
  pthread_mutex_lock(&h->lock);
  cudaStream_t stream = lt_cuda_stream(c);
  bool ok = prepare(h, index, c->stream) && run(h, &p, batch) &&
            lt_cuda_launch_ok(lt_cuda_note_launch("gemm", stream, cudaSuccess));
  pthread_mutex_unlock(&h->lock);
  return ok;
}
