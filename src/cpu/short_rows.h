/* short_rows.h: loops over many rows of few elements, for gather and scatter: with a loop for each
 * row, most of the time goes to the rows' ends.
 *
 * Elements are moved at index[i] * along + shift[i] bytes from an address that is the same for the
 * elements of several rows; the shifts repeat, so they are computed once. */
#ifndef LT_CPU_SHORT_ROWS_H
#define LT_CPU_SHORT_ROWS_H

#include "kernel_support.h"

enum {
  LT_SHORT_ROWS_LENGTH = 64,   /* most elements of a short row */
  LT_SHORT_ROWS_TOGETHER = 256 /* most elements that are moved in one loop */
};

typedef struct lt_ShortRows {
  lt_Odometer outer; /* the dims before `rows` */
  int64_t rows, n;   /* rows that are `step` bytes from each other, and the elements of each */
  int64_t step[2];   /* of both operands, in bytes */
  int64_t together;  /* rows that are moved in one loop */
  int64_t shift[LT_SHORT_ROWS_TOGETHER];
} lt_ShortRows;

/* Describes the rows of n > 0 elements that the odometer iterates over, with their offsets in
 * bytes: elements of the first operand are `across` bytes from each other, those of the second
 * `size` (0: all are the same), along dense rows. Returns false where rows are long or single, or
 * the second operand's are not dense. */
bool lt_short_rows_open(lt_ShortRows *s, const lt_Odometer *rows, int64_t n, int64_t across,
                        int64_t size);

/* Called for `count` elements of whole rows, from element `first` of all on, and the offsets of
 * both operands there. Returns false to stop. */
typedef bool (*lt_ShortRowsFn)(const void *context, const int64_t offset[2], int64_t first,
                               int64_t count);
/* Calls fn for the rows first .. last - 1, until it returns false or after an interrupt. */
void lt_short_rows_each(const lt_ShortRows *s, int64_t first, int64_t last, lt_ShortRowsFn fn,
                        const void *context);

#endif
