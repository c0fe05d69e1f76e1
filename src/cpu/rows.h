/* rows.h: the inner loops of the structured kernels: what one thread does to one row, or to a
 * block of columns.
 *
 * They live in src/cpu/kernels/, compiled once per instruction set (LT_ISA), and are chosen when
 * the program runs. Sums are kept in 64 bytes of lanes whatever the width of the machine's
 * vectors, so every instruction set gives the same bits; only exponentials and logarithms may
 * differ in the last one.
 */
#ifndef LT_CPU_ROWS_H
#define LT_CPU_ROWS_H

#include "kernel.h"

#define LT_PASTE_(a, b)  a##_##b
#define LT_PASTE(a, b)   LT_PASTE_(a, b)
#define LT_FOR_ISA(name) LT_PASTE(name, LT_ISA)

/* Folds: many numbers into one, by an associative operation. F32, F64, I64 are what goes in; U8 is
 * the byte of a bool. SUM_U8 gives int64, SQUARES_F32 float64; the others give what went in. Sums
 * of floats are pairwise over blocks. */
typedef enum lt_FoldId {
  LT_FOLD_SUM_F32,
  LT_FOLD_SUM_F64,
  LT_FOLD_SUM_I64,
  LT_FOLD_SUM_U8,
  LT_FOLD_PROD_F32,
  LT_FOLD_PROD_F64,
  LT_FOLD_PROD_I64,
  LT_FOLD_MAX_F32,
  LT_FOLD_MAX_F64,
  LT_FOLD_MAX_I64,
  LT_FOLD_MAX_U8,
  LT_FOLD_MIN_F32,
  LT_FOLD_MIN_F64,
  LT_FOLD_MIN_I64,
  LT_FOLD_MIN_U8,
  LT_FOLD_SQUARES_F32,
  LT_FOLD_SQUARES_F64,
  LT_FOLD_COUNT
} lt_FoldId;

#define LT_FOLD_WIDTH 512 /* columns that one call of `columns` may take */

typedef struct lt_Fold {
  lt_Dtype from, to;
  lt_FoldId then; /* the fold that joins results of this one */
  /* *out = the fold of x[0..n), n >= 1. */
  void (*row)(const void *x, int64_t n, void *out);
  /* out[j] = the fold of x[j], x[stride + j] ... (n >= 1 of them), for j < width <=
   * LT_FOLD_WIDTH. */
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *out);
} lt_Fold;

/* Rows of n float32 or float64 numbers (`T`), all dense. */
#define LT_ROWS(T, F)                                                                              \
  /* y = e^x / sum(e^x); y = x - log(sum(e^x)); x and y may be the same. n >= 1. */                \
  void (*softmax_##F)(const T *x, T *y, int64_t n);                                                \
  void (*log_softmax_##F)(const T *x, T *y, int64_t n);                                            \
  /* dx = y (g - sum(g y)); dx = g - e^y sum(g) */                                                 \
  void (*softmax_backward_##F)(const T *g, const T *y, T *dx, int64_t n);                          \
  void (*log_softmax_backward_##F)(const T *g, const T *y, T *dx, int64_t n);                      \
  /* The same along n rows of a block of `width` columns; rows are `stride` apart. */              \
  void (*softmax_columns_##F)(const T *x, T *y, int64_t n, int64_t stride, int64_t width,          \
                              bool log);                                                           \
  void (*softmax_backward_columns_##F)(const T *g, const T *y, T *dx, int64_t n, int64_t stride,   \
                                       int64_t width, bool log);                                   \
  /* log(sum(e^x)), n >= 1; NaN and infinities as mathematics has them. */                         \
  T (*logsumexp_##F)(const T *x, int64_t n);                                                       \
  /* Layer norm: w and b may be NULL. */                                                           \
  void (*layer_norm_##F)(const T *x, const T *w, const T *b, T eps, int64_t n, T *y, T *mean,      \
                         T *rstd);                                                                 \
  /* dx (unless NULL) of one row; dw and db (unless NULL) grow. */                                 \
  void (*layer_norm_backward_##F)(const T *g, const T *x, const T *w, T mean, T rstd, int64_t n,   \
                                  T *dx, T *dw, T *db);                                            \
  /* The largest (or smallest), NaN before all, and where it is first. n >= 1. */                  \
  T (*best_##F)(const T *x, int64_t n, bool largest, int64_t *at);

/* The first 0 of n elements that lie `stride` elements apart, or -1. */
typedef int64_t (*lt_FindZeroFn)(const void *data, int64_t n, int64_t stride);

typedef struct lt_RowKernels {
  LT_ROWS(float, f32)
  LT_ROWS(double, f64)
  /* Blocks position, position + 1 ... of Philox's sequence (philox.h) for this seed: 4 words
   * each. */
  void (*philox)(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *words);
  lt_FindZeroFn find_zero[4]; /* elements of 1, 2, 4 and 8 bytes */
} lt_RowKernels;

/* What fits this machine. */
const lt_Fold *lt_fold(lt_FoldId id);
const lt_RowKernels *lt_rows(void);

#endif
