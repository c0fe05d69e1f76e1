/* mask.h: the arguments of the kernels for the true elements of a mask, in their order:
 * masked_select, nonzero, masked_scatter. Included by C and by kernels.
 *
 * A mask is contiguous bytes, 0 or 1. It is packed into words of 32 bits. The number of true
 * elements before each word, and the bits below an element's own, give its rank among the true
 * elements. The number before a word is that before its part of LT_MASK_PART words, plus that in
 * the part before the word. */
#ifndef LT_MPS_MASK_H
#define LT_MPS_MASK_H

#include "index_regions.h"

#define LT_MASK_WORD 32  /* elements of a word */
#define LT_MASK_PART 256 /* words of a part */

/* The arguments of all kernels: the elements, words and parts of the mask, and the layout of the
 * tensor that is read. */
typedef struct lt_MpsMask {
  int64_t n, words, parts;
  lt_IndexLayout layout;
} lt_MpsMask;

#endif
