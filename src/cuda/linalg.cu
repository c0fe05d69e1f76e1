/* linalg.cu: what decompositions need besides cuSOLVER: identities, determinants from LU
 * factors. */
#include "linalg.h"
#include "device.cuh"
#include "launch.cuh"

#define THREADS 128

static inline dim3 grid_of(int64_t n) { return grid_for(blocks_for(n, THREADS)); }

/* The loop over i = 0 .. n - 1, of all threads of the grid. */
#define FOR_EACH(i, n)                                                                             \
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < (n);                           \
       i += (int64_t)gridDim.x * THREADS)

/* ---- identities and addresses ---------------------------------------------------------------- */

/* `parts` is 2 for complex numbers: the imaginary parts are 0. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    identity(T *data, int64_t numel, int64_t n, int parts) {
  FOR_EACH(i, numel * parts) {
    int64_t element = i / parts;
    data[i] = (T)(i % parts == 0 && element % n == element / n % n);
  }
}

static bool is_double(int dtype) { return dtype == LT_float64 || dtype == LT_complex128; }
static int parts_of(int dtype) { return dtype == LT_complex64 || dtype == LT_complex128 ? 2 : 1; }

cudaError_t lt_cuda_launch_identity(void *data, int dtype, int64_t numel, int64_t n,
                                    cudaStream_t stream) {
  int parts = parts_of(dtype);
  if (is_double(dtype))
    return launch("identity", identity<double>, grid_of(numel * parts), dim3(THREADS), 0, stream,
                  (double *)data, numel, n, parts);
  return launch("identity", identity<float>, grid_of(numel * parts), dim3(THREADS), 0, stream,
                (float *)data, numel, n, parts);
}

static __global__ void __launch_bounds__(THREADS)
    addresses(void **to, char *first, int64_t step, int64_t count) {
  FOR_EACH(i, count) to[i] = first + i * step;
}

cudaError_t lt_cuda_launch_addresses(void **to, char *first, int64_t step, int64_t count,
                                     cudaStream_t stream) {
  return launch("addresses", addresses, grid_of(count), dim3(THREADS), 0, stream, to, first, step,
                count);
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* A thread for each matrix. Computes in float64, so that no partial product of float32 numbers
 * overflows. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    determinant(const T *lu, const int *pivots, int64_t n, int64_t count, int parts, T *sign,
                T *log_size) {
  FOR_EACH(at, count) {
    double re = 1, im = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
      const T *u = lu + (at * n * n + i * (n + 1)) * parts;
      double x = (double)u[0], y = parts == 2 ? (double)u[1] : 0;
      if (log_size) {
        double size = parts == 2 ? hypot(x, y) : fabs(x);
        total += log(size);
        if (parts == 2) {
          x = size == 0 ? 0 : x / size;
          y = size == 0 ? 0 : y / size;
        } else if (!isnan(size)) {
          x = (x > 0) - (x < 0);
        }
      }
      double next = parts == 2 ? re * x - im * y : re * x;
      im = parts == 2 ? re * y + im * x : 0;
      re = next;
      if (pivots[at * n + i] == i + 1) continue;
      re = -re;
      im = -im;
    }
    sign[at * parts] = (T)re;
    if (parts == 2) sign[at * parts + 1] = (T)im;
    if (log_size) log_size[at] = (T)total;
  }
}

cudaError_t lt_cuda_launch_determinant(const void *lu, int dtype, const int *pivots, int64_t n,
                                       int64_t count, void *sign, void *log, cudaStream_t stream) {
  int parts = parts_of(dtype);
  if (is_double(dtype))
    return launch("determinant", determinant<double>, grid_of(count), dim3(THREADS), 0, stream,
                  (const double *)lu, pivots, n, count, parts, (double *)sign, (double *)log);
  return launch("determinant", determinant<float>, grid_of(count), dim3(THREADS), 0, stream,
                (const float *)lu, pivots, n, count, parts, (float *)sign, (float *)log);
}

/* ---- permutations ---------------------------------------------------------------------------- */

/* A thread for each vector of pivots: every exchange depends on those before it. */
static __global__ void __launch_bounds__(THREADS)
    permutation(const int64_t *pivots, int64_t k, int64_t rows, int64_t count, int64_t *to) {
  FOR_EACH(at, count) {
    int64_t *order = to + at * rows;
    for (int64_t i = 0; i < rows; i++) order[i] = i + LT_INDEX_BASE;
    for (int64_t i = 0; i < k; i++) {
      int64_t other = pivots[at * k + i], row = order[other];
      order[other] = order[i];
      order[i] = row;
    }
  }
}

cudaError_t lt_cuda_launch_permutation(const int64_t *pivots, int64_t k, int64_t rows,
                                       int64_t count, int64_t *to, cudaStream_t stream) {
  return launch("permutation", permutation, grid_of(count), dim3(THREADS), 0, stream, pivots, k,
                rows, count, to);
}

/* ---- info ------------------------------------------------------------------------------------ */

template <class T>
static __global__ void __launch_bounds__(THREADS)
    mark_nan(const T *values, int64_t n, int64_t count, int *info) {
  FOR_EACH(at, count)
  for (int64_t i = 0; i < n; i++)
    if (info[at] == 0 && values[at * n + i] != values[at * n + i]) info[at] = 1;
}

cudaError_t lt_cuda_launch_mark_nan(const void *values, int dtype, int64_t n, int64_t count,
                                    int *info, cudaStream_t stream) {
  if (is_double(dtype))
    return launch("mark_nan", mark_nan<double>, grid_of(count), dim3(THREADS), 0, stream,
                  (const double *)values, n, count, info);
  return launch("mark_nan", mark_nan<float>, grid_of(count), dim3(THREADS), 0, stream,
                (const float *)values, n, count, info);
}

/* One block: each thread finds its first number, then the first thread the least of them. */
static __global__ void __launch_bounds__(THREADS)
    first_info(const int *info, int64_t count, int64_t *found) {
  __shared__ int64_t first[THREADS];
  int64_t i = threadIdx.x;
  while (i < count && info[i] == 0) i += THREADS;
  first[threadIdx.x] = i < count ? i : count;
  __syncthreads();
  if (threadIdx.x) return;
  int64_t least = count;
  for (int k = 0; k < THREADS; k++) least = first[k] < least ? first[k] : least;
  *found = least == count ? -1 : (int64_t)((uint64_t)least << 32 | (uint32_t)info[least]);
}

cudaError_t lt_cuda_launch_first_info(const int *info, int64_t count, int64_t *found,
                                      cudaStream_t stream) {
  return launch("first_info", first_info, dim3(1), dim3(THREADS), 0, stream, info, count, found);
}
