/* random.h: random numbers, permutations and draws. */
#ifndef LT_CUDA_RANDOM_H
#define LT_CUDA_RANDOM_H

#include "kernels.h"

typedef enum lt_CudaDistribution {
  LT_CUDA_UNIFORM,     /* on [a, b) */
  LT_CUDA_NORMAL,      /* mean a, standard deviation b */
  LT_CUDA_EXPONENTIAL, /* rate a */
  LT_CUDA_WHOLE,       /* `span` whole numbers from `from` on; span 0: 2^64 */
  LT_CUDA_COINS        /* 1 with probability a, or chance[i] */
} lt_CudaDistribution;

/* A contiguous tensor of n elements (n > 0) from a stretch of Philox's sequence. Whole numbers and
 * coins may have any dtype, the others floating ones. */
typedef struct lt_CudaDraw {
  void *out;
  const void *chance; /* contiguous and floating, or NULL */
  const int *bad;     /* NULL, or nothing is written when it is set */
  uint64_t seed, position;
  int64_t n, from;
  uint64_t span;
  double a, b;
  double top;    /* of uniform: lt_random_top */
  uint32_t keep; /* of uniform: lt_random_bits */
  int dtype, chance_dtype;
} lt_CudaDraw;

LT_C_LINKAGE cudaError_t lt_cuda_launch_draw(lt_CudaDistribution which, const lt_CudaDraw *d,
                                             cudaStream_t stream);

/* Reports what is not a probability. n > 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_check_chances(const void *chance, int dtype, int64_t n,
                                                      lt_CudaFault fault, cudaStream_t stream);

/* keys[i] = the 64 bits of element i, values[i] = i + 1, for i < n; n > 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keys(uint64_t seed, uint64_t position, int64_t n,
                                             uint64_t *keys, int64_t *values, cudaStream_t stream);

/* Rows of n weights, contiguous and floating, from which k numbers are drawn. */
typedef struct lt_CudaWeights {
  const void *weights;
  int dtype;
  int64_t rows, n, k;
  uint64_t seed, position;
  double *sums;          /* rows x n running sums, or NULL */
  int64_t *last;         /* of each row: the last weight that is not 0 */
  int64_t least;         /* how many weights of a row must not be 0 */
  lt_CudaFault one, all; /* for a bad weight, and for a row of bad ones */
} lt_CudaWeights;

/* Checks the weights, and adds them up one after the other, as the CPU does. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_weigh(const lt_CudaWeights *w, cudaStream_t stream);
/* With replacement: out[row][0..k), from the running sums. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_draw_again(const lt_CudaWeights *w, int64_t *out,
                                                   cudaStream_t stream);
/* Without: keys[i] sorts weight i of all by when it arrives; values[i] = i. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_arrivals(const lt_CudaWeights *w, uint64_t *keys,
                                                 int64_t *values, cudaStream_t stream);
/* keys[i] = the row of weight values[i]. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_row_keys(const lt_CudaWeights *w, const int64_t *values,
                                                 uint64_t *keys, cudaStream_t stream);
/* out[row][0..k) = the first k of each row of sorted values. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_first(const lt_CudaWeights *w, const int64_t *values,
                                              int64_t *out, cudaStream_t stream);

#endif
