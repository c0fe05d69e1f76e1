/* blocks.h: moves elements of an operand in any layout to dense blocks on the stack, and back. */
#ifndef LT_CPU_BLOCKS_H
#define LT_CPU_BLOCKS_H

#include "vector.h"

#define LT_BLOCK 8192 /* bytes: the blocks of four operands fit the first cache */

/* The elements of an operand, and the loads or stores of the type that blocks have. */
typedef struct lt_Elements {
  int ndim;
  const int64_t *shape;
  const lt_Operand *operand;
  const lt_Vectors *vectors;
  int64_t size; /* bytes of an element in a block */
  bool plain;   /* the elements in memory are of the type that blocks have */
} lt_Elements;

/* Loads n elements, at most LT_BLOCK bytes, from coordinates `from` on. `roomy`: the block has
 * LT_SPREAD_SLACK elements more. */
void lt_block_load(const lt_Elements *e, const int64_t *from, int64_t n, char *block, bool roomy);
/* Stores n elements from coordinates `from` on. */
void lt_block_store(const lt_Elements *e, const int64_t *from, int64_t n, const char *block);

#endif
