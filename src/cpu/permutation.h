/* permutation.h: random permutations. */
#ifndef LT_CPU_PERMUTATION_H
#define LT_CPU_PERMUTATION_H

#include "kernel.h"
#include "philox.h"

/* Writes the permutation of 1..n that sorts them by their wide random numbers (philox.h); equal
 * numbers stay in order. Returns false with the error set when memory is out. After an interrupt
 * `out` is incomplete. */
bool lt_permutation(lt_Philox p, int64_t n, int64_t *out);

#endif
