/* shuffle.h: shuffles of two vectors in the notation of each compiler, and transpositions of
 * squares of 4-byte elements by them. */
#ifndef LT_CPU_SHUFFLE_H
#define LT_CPU_SHUFFLE_H

#include "cpu/kernels/lanes.h"

/* Returns the elements of a and b, counted through both, whose numbers follow. I is the vector type
 * of the numbers, of the same length. */
#if defined __clang__ || __GNUC__ >= 12
#define LT_SHUFFLE(I, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define LT_SHUFFLE(I, a, b, ...) __builtin_shuffle(a, b, (I){__VA_ARGS__})
#endif

/* The numbers of the elements that LT_SHUFFLE takes from two vectors of n elements to fold both: of
 * each 2 * h elements the first h of a, then of b; with `at` = h, the last h.
 * LT_FOLD_n(n, h, 0, at) lists all n numbers. */
#define LT_FOLD_1(n, h, l, at)                                                                     \
  ((l) / (2 * (h)) * 2 * (h) + (l) % (h) + ((l) % (2 * (h)) < (h) ? 0 : (n)) + (at))
#define LT_FOLD_2(n, h, l, at)  LT_FOLD_1(n, h, l, at), LT_FOLD_1(n, h, (l) + 1, at)
#define LT_FOLD_4(n, h, l, at)  LT_FOLD_2(n, h, l, at), LT_FOLD_2(n, h, (l) + 2, at)
#define LT_FOLD_8(n, h, l, at)  LT_FOLD_4(n, h, l, at), LT_FOLD_4(n, h, (l) + 4, at)
#define LT_FOLD_16(n, h, l, at) LT_FOLD_8(n, h, l, at), LT_FOLD_8(n, h, (l) + 8, at)

typedef float LT_F4 __attribute__((vector_size(16)));
typedef int32_t LT_I4 __attribute__((vector_size(16)));

/* Transposes the vectors v[0..3]. */
LT_LANES void lt_transpose_4(LT_F4 v[4]) {
  LT_F4 a = LT_SHUFFLE(LT_I4, v[0], v[1], 0, 4, 1, 5),
        b = LT_SHUFFLE(LT_I4, v[2], v[3], 0, 4, 1, 5),
        c = LT_SHUFFLE(LT_I4, v[0], v[1], 2, 6, 3, 7),
        d = LT_SHUFFLE(LT_I4, v[2], v[3], 2, 6, 3, 7);
  v[0] = LT_SHUFFLE(LT_I4, a, b, 0, 1, 4, 5);
  v[1] = LT_SHUFFLE(LT_I4, a, b, 2, 3, 6, 7);
  v[2] = LT_SHUFFLE(LT_I4, c, d, 0, 1, 4, 5);
  v[3] = LT_SHUFFLE(LT_I4, c, d, 2, 3, 6, 7);
}

typedef float LT_F8 __attribute__((vector_size(32)));
typedef int32_t LT_I8 __attribute__((vector_size(32)));

/* Sets s[0..7] to the transpose of the vectors r[0..7], which it changes. Unless the loops are
 * unrolled, GCC keeps the vectors in memory. */
LT_LANES void lt_transposed_8(LT_F8 r[8], LT_F8 s[8]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    s[i] = LT_SHUFFLE(LT_I8, r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    s[i + 1] = LT_SHUFFLE(LT_I8, r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; j++) {
      r[i + 2 * j] = LT_SHUFFLE(LT_I8, s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      r[i + 2 * j + 1] = LT_SHUFFLE(LT_I8, s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 8
  for (int i = 0; i < 4; i++) {
    s[i] = LT_SHUFFLE(LT_I8, r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    s[i + 4] = LT_SHUFFLE(LT_I8, r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/* Copies the transpose of 8 x 8 elements; rows are `step` and `to_step` bytes apart. */
LT_LANES void lt_transpose_8(const void *from, int64_t step, void *out, int64_t to_step) {
  const char *x = from;
  char *to = out;
  LT_F8 r[8], s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) memcpy(&r[i], x + i * step, sizeof r[i]);
  lt_transposed_8(r, s);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) memcpy(to + i * to_step, &s[i], sizeof s[i]);
}

#endif
