/* random.h: the launchers of random.cu: random numbers, permutations and draws by weight. */
#ifndef LT_CUDA_RANDOM_H
#define LT_CUDA_RANDOM_H

#include "kernels.h"

/* A part of a generator's sequence: numbers from `position` on. With `state`, of a graph, device
 * memory has the seed and a position, set for each replay, which is added to this one. */
typedef struct lt_CudaRandom {
  uint64_t seed, position;
  const uint64_t *state; /* NULL: not in a graph */
} lt_CudaRandom;

/* The distributions of lt_cuda_launch_draw. */
typedef enum lt_CudaDistribution {
  LT_CUDA_UNIFORM,     /* on [a, b) */
  LT_CUDA_NORMAL,      /* mean a, standard deviation b */
  LT_CUDA_EXPONENTIAL, /* rate a */
  LT_CUDA_INTEGERS,    /* `span` integers from `from` on; span 0 means 2^64 */
  LT_CUDA_BERNOULLI    /* 1 with probability a, or probability[i]; else 0 */
} lt_CudaDistribution;

/* The arguments of a fill with random numbers: a contiguous tensor of n elements (n > 0).
 * Integers and Bernoulli draws may have any dtype, the
 * others floating dtypes. */
typedef struct lt_CudaDraw {
  void *out;
  const void *probability; /* contiguous and floating, or NULL */
  const int *bad;          /* NULL, or device memory: nothing is written when it is set */
  lt_CudaRandom random;
  int64_t n, from;
  uint64_t span;
  double a, b;
  double top;    /* for uniform: lt_random_top */
  uint32_t keep; /* for uniform: lt_random_bits */
  int dtype, probability_dtype;
} lt_CudaDraw;

/* Fills d->out with draws from the distribution. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_draw(lt_CudaDistribution which, const lt_CudaDraw *d,
                                             cudaStream_t stream);

/* Reports values that are not probabilities. n > 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_check_probabilities(const void *probability, int dtype,
                                                            int64_t n, lt_CudaFault fault,
                                                            cudaStream_t stream);

/* Writes keys[i] = the 64 random bits of element i and values[i] = i + 1, for i < n; n > 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keys(const lt_CudaRandom *random, int64_t n, uint64_t *keys,
                                             int64_t *values, cudaStream_t stream);

/* Rows of n weights, contiguous and floating, from each of which k indices are drawn. */
typedef struct lt_CudaWeights {
  const void *weights;
  int dtype;
  int64_t rows, n, k;
  lt_CudaRandom random;
  double *sums;          /* rows x n running sums, or NULL */
  int64_t *last;         /* for each row, the index of the last weight that is not 0 */
  int64_t least;         /* the number of weights that must not be 0, in each row */
  lt_CudaFault one, all; /* the faults of a single weight, and of a row */
} lt_CudaWeights;

/* Checks the weights, and sums them one after the other, as the CPU does. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_sum_weights(const lt_CudaWeights *w, cudaStream_t stream);
/* Draws with replacement: out[row][0..k), from the running sums. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_draw_with_replacement(const lt_CudaWeights *w, int64_t *out,
                                                              cudaStream_t stream);
/* Draws without replacement, part one: keys[i] orders weight i of all rows by its arrival time;
 * values[i] = i. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_arrivals(const lt_CudaWeights *w, uint64_t *keys,
                                                 int64_t *values, cudaStream_t stream);
/* Writes keys[i] = the row of weight values[i]. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_row_keys(const lt_CudaWeights *w, const int64_t *values,
                                                 uint64_t *keys, cudaStream_t stream);
/* Writes out[row][0..k) = the first k of each row of sorted values. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_first(const lt_CudaWeights *w, const int64_t *values,
                                              int64_t *out, cudaStream_t stream);

#endif
