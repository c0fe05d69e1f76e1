/* resample.h: interpolation along one dimension. */
#ifndef LT_EACH_RESAMPLE_H
#define LT_EACH_RESAMPLE_H

#include "each.h"

/* How an element of the result is computed from elements near it. The names are those of
 * F.interpolate; those that end in SMOOTH are its modes with antialias. */
typedef enum lt_ResampleMode {
  LT_RESAMPLE_NEAREST,
  LT_RESAMPLE_EXACT,
  LT_RESAMPLE_LINEAR,
  LT_RESAMPLE_CUBIC,
  LT_RESAMPLE_LINEAR_SMOOTH,
  LT_RESAMPLE_CUBIC_SMOOTH,
  /* added to one of these: the weights are multiples of a power of two, and the results rounded to
   * uint8, as PyTorch's are for it */
  LT_RESAMPLE_FIXED = 8,
  /* the weights are rounded to float16 or bfloat16, as PyTorch's are for those, except bilinear */
  LT_RESAMPLE_FLOAT16 = 16,
  LT_RESAMPLE_BFLOAT16 = 32
} lt_ResampleMode;

/* Lines of `in` elements, `inner` apart, become lines of `out`. Neighbours in the result are
 * `scale` apart. */
typedef struct lt_Resample {
  int64_t in, out, inner;
  int32_t mode, align_corners;
  float scale, narrow; /* in float's precision, and without align_corners' change, for `nearest` */
  float split;         /* rounds weights to 16-bit floats (resample_round); 0: does not */
  float fixed;         /* 0, or for uint8: weights are multiples of 1 / fixed */
#ifndef LT_NO_DOUBLE
  double wide; /* scale, for T double */
#endif
} lt_Resample;

#endif
