/* index.h: the elements that several index tensors select together, for reading (_index) and
 * writing (_index_put), and the number of elements that a mask selects. */
#ifndef LT_CPU_INDEX_H
#define LT_CPU_INDEX_H

#include "kernel_support.h"

/* The selected elements of self, in the order of the result: for each `lead` (dims before adjacent
 * indexed dims), each of `offsets`, each `mid` (dims between indexed dims that are not adjacent),
 * one block of consecutive elements (the dims after the last indexed one). Offsets count
 * elements. */
typedef struct lt_IndexBlocks {
  lt_Tensor *offsets; /* int64; the caller releases it */
  lt_Odometer leads, mids;
  int64_t lead, mid, block;
} lt_IndexBlocks;

/* Computes the blocks that the index tensors select along `dims`, which must ascend; the blocks of
 * self must be dense. Returns false with the error set when an index is out of range. The caller
 * releases p->offsets. */
bool lt_index_blocks_open(lt_IndexBlocks *p, lt_Tensor *self, const lt_Arg *indices,
                          const int64_t *dims);

/* Returns the number of ones among n bytes of a mask. */
int64_t lt_mask_count(const uint8_t *mask, int64_t n);

#endif
