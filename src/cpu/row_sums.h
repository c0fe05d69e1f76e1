/* row_sums.h: the loops that add rows of a table to rows that indices name, compiled once for each
 * instruction set (src/cpu/kernels/row_sums.c). */
#ifndef LT_CPU_ROW_SUMS_H
#define LT_CPU_ROW_SUMS_H

#include "kernel.h"

/* Row to[i] of `out` is increased by factors[i] * row from[i] of `rows`, all of n dense elements.
 * Without `from`, row i is added; without factors, rows are added as they are. */
typedef struct lt_RowSums {
  int64_t n;
  void *out;
  const void *rows, *factors;
  const int64_t *from, *to;
} lt_RowSums;

/* Adds the rows i = own[0] ... own[count - 1], in this order. Every element is added alone, so
 * every instruction set gives the same bits. */
typedef void (*lt_RowSumsFn)(const lt_RowSums *s, const int64_t *own, int64_t count);

/* Returns the loop for a working dtype. */
lt_RowSumsFn lt_row_sums(lt_Dtype work);

#endif
