/* random.h: the arguments of the kernels of random numbers, permutations and draws by weight.
 * Included by C and by kernels. */
#ifndef LT_MPS_RANDOM_H
#define LT_MPS_RANDOM_H

#include "dtypes.h"

/* The distributions. */
enum {
  LT_MPS_UNIFORM,     /* on [a, a + b), at most `top` */
  LT_MPS_NORMAL,      /* mean a, standard deviation b */
  LT_MPS_EXPONENTIAL, /* -1 / rate is b */
  LT_MPS_INTEGERS,    /* `span` integers from `from` on; span 0 means 2^64 */
  LT_MPS_BERNOULLI    /* 1 where a word is below `limit`, or below 2^32 times a probability */
};

/* The arguments of a fill with random numbers: a contiguous tensor of n elements (n > 0), from
 * `position` on in the sequence of `seed`. */
typedef struct lt_MpsDraw {
  uint64_t seed, position;
  int64_t n, from;
  uint64_t span, limit;
  float a, b, top;
  uint32_t keep; /* for uniform: lt_random_bits */
} lt_MpsDraw;

/* Rows of n weights, from each of which k indices are drawn; at least `least` weights of a row must
 * not be 0. */
typedef struct lt_MpsWeights {
  uint64_t seed, position;
  int64_t rows, n, k, least;
} lt_MpsWeights;

#define LT_WEIGHTS_EACH 16 /* weights that a thread adds up at once */

#endif
