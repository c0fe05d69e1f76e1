/* random_range.h: how a dtype limits random numbers. Used by the kernels of every device, so that
 * all give the same numbers. */
#ifndef LT_RANDOM_RANGE_H
#define LT_RANDOM_RANGE_H

#include "lutra.h"

/* Returns the largest number of a dtype below `to`: the upper limit of uniform numbers on
 * [from, to), so that rounding never gives `to` itself. */
double lt_random_top(double from, double to, lt_Dtype d);
/* Returns a mask of the random bits that are used: as many as the dtype's significand has. */
uint32_t lt_random_bits(lt_Dtype d);
/* Returns the largest integer n such that a dtype can represent all integers from 0 to n. */
int64_t lt_random_whole(lt_Dtype d);

#endif
