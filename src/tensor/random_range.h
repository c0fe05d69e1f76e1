/* random_range.h: what the random numbers of every device must agree on, beside philox.h: how a
 * dtype bounds them. */
#ifndef LT_RANDOM_RANGE_H
#define LT_RANDOM_RANGE_H

#include "lutra.h"

/* Uniform numbers on [from, to) in this dtype are at most this: the largest of its numbers below
 * `to`, so that rounding never gives `to` itself. */
double lt_random_top(double from, double to, lt_Dtype d);
/* Which of 32 random bits count: as many as the dtype's significand has. */
uint32_t lt_random_bits(lt_Dtype d);
/* The largest whole number up to which a dtype holds all of them. */
int64_t lt_random_whole(lt_Dtype d);

#endif
