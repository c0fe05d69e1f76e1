/* moves.h: the loops that copy and fill elements as bytes, and those that generate numbers, for the
 * instruction set of this CPU. */
#ifndef LT_CPU_MOVES_H
#define LT_CPU_MOVES_H

#include <stdint.h>
#include <string.h>

/* The loops for elements of one size. Strides in bytes, which may be negative or 0. */
typedef struct lt_Mover {
  /* Copies n elements. */
  void (*move)(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride);
  /* Copies `rows` rows of n elements: strides[0] of `to` and `from` between elements, strides[1]
   * between rows. */
  void (*plane)(int64_t rows, int64_t n, char *to, const int64_t to_strides[2], const char *from,
                const int64_t from_strides[2]);
  /* Copies n elements of each of 2 to 4 dense arrays by turns: the first of each, the second of
   * each. */
  void (*weave)(int count, int64_t n, char *to, const char *const *from);
  /* Copies a transposed tile: the rows of `to` and the columns of `from` are dense. */
  void (*tile)(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from,
               int64_t from_stride);
} lt_Mover;

typedef struct lt_Moves {
  /* Copies n >= LT_LONG_COPY bytes. */
  void (*bytes)(size_t n, char *to, const char *from);
  lt_Mover mover[5]; /* of elements of 1, 2, 4, 8 and 16 bytes */
  /* out[k] = scale * (base + (index + k * by) * step), by 1 or -1, each operation rounded once */
  void (*sequence)(int n, double *out, double base, double index, double by, double step,
                   double scale);
  /* out[k] = first + (index + k) * step, which wraps */
  void (*count)(int64_t n, int64_t *out, int64_t first, int64_t step, int64_t index);
} lt_Moves;

const lt_Moves *lt_moves(void);

/* The most bytes of rows that lt_Mover.plane copies without a call of memcpy. */
#define LT_SHORT_ROW 128

/* The bytes from which the C library may copy by an instruction (rep movsb) instead of vectors. */
#define LT_LONG_COPY 2048

/* Copies n bytes between arrays that do not overlap. The instruction for long copies is slow where
 * the arrays differ modulo the length of a cache line: on AMD's Zen 4 by 10 to 30 %, and 15 times
 * if `to` is up to 63 bytes ahead modulo 4096. Those are copied by vectors. */
static inline void lt_copy_bytes(void *to, const void *from, size_t n) {
  if (n < LT_LONG_COPY || ((uintptr_t)to - (uintptr_t)from) % 64 == 0)
    memcpy(to, from, n);
  else
    lt_moves()->bytes(n, to, from);
}

/* Returns the loops for elements of `size` bytes. */
static inline const lt_Mover *lt_mover(int64_t size) {
  return &lt_moves()->mover[__builtin_ctzll((uint64_t)size)];
}

#endif
