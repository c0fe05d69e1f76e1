/* pad.h: padding with elements of the tensor itself. */
#ifndef LT_EACH_PAD_H
#define LT_EACH_PAD_H

#include "each.h"

/* Which elements continue a dimension. */
typedef enum lt_PadMode {
  LT_PAD_REFLECT,   /* those before the border, in reverse order */
  LT_PAD_REPLICATE, /* the one at the border */
  LT_PAD_CIRCULAR   /* those at the other end */
} lt_PadMode;

/* Planes of in[0] x in[1] x in[2] elements become planes of out[0] x out[1] x out[2], with
 * before[d] elements before the first one; a negative number removes elements. Dimensions that a
 * call does not have come first, with size 1. */
typedef struct lt_Pad {
  int64_t in[3], out[3], before[3];
  int64_t mode;
} lt_Pad;

/* Returns the place in the input of element o of dim d; what is added has at most in[d] elements,
 * except for copies of the border. */
LT_EACH_FUNCTION int64_t lt_pad_place(LT_EACH_ARGS(lt_Pad) p, int d, int64_t o) {
  int64_t n = p->in[d], at = o - p->before[d];
  if (at >= 0 && at < n) return at;
  if (p->mode == LT_PAD_CIRCULAR) return at < 0 ? at + n : at - n;
  if (p->mode == LT_PAD_REFLECT) return at < 0 ? -at : 2 * (n - 1) - at;
  return at < 0 ? 0 : n - 1;
}

#endif
