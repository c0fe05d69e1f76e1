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

#include "reductions.h"

#define LT_PASTE_(a, b)  a##_##b
#define LT_PASTE(a, b)   LT_PASTE_(a, b)
#define LT_FOR_ISA(name) LT_PASTE(name, LT_ISA)

/* What elements of a reduction are read as, and its state: float or double, int64, or the byte of a
 * bool; WIDE states are double, those of COUNT int64. */
typedef enum lt_State {
  LT_STATE_F32,
  LT_STATE_F32_WIDE,
  LT_STATE_F64,
  LT_STATE_I64,
  LT_STATE_U8,
  LT_STATE_U8_COUNT,
  LT_STATE_COUNT
} lt_State;

#define LT_FOLD_WIDTH     512 /* columns that one call of lt_Fold's `columns` may take */
#define LT_CENTERED_WIDTH 128 /* the same of lt_Centered and lt_Best */

/* Loops of a reduction with a state of one number (FOLD in ops.def). Sums of floats are pairwise
 * over blocks. */
typedef struct lt_FoldLoops {
  /* *out = the fold of x[0..n), n >= 1. */
  void (*row)(const void *x, int64_t n, void *out);
  /* out[j] = the fold of x[j], x[stride + j] ... (n >= 1 of them), for j < width <=
   * LT_FOLD_WIDTH. */
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *out);
} lt_FoldLoops;

typedef struct lt_Fold {
  lt_Dtype from, to;     /* of elements, of states */
  lt_FoldLoops elements; /* elements into states */
  lt_FoldLoops states;   /* states into states: the parts of a fold */
  /* x[0..count) = the states of no elements. */
  void (*identity)(void *x, int64_t count);
  /* The results of states x[0..count), in place, each of n elements; NULL: the states are the
   * results. */
  void (*finish)(void *x, int64_t count, double n, double a);
} lt_Fold;

/* The same with a state of three numbers (CENTERED). States are arrays of 3 `to`. */
typedef struct lt_Centered {
  lt_Dtype from, to;
  bool calls; /* `term` calls a function: columns are padded, so narrow ones are better rows */
  void (*row)(const void *x, int64_t n, void *state); /* n >= 0 */
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *states);
  void (*join)(void *state, const void *other);
  void (*finish)(const void *state, double a, void *out);
} lt_Centered;

/* The same with a value and where it is first, from 0 (BEST). n >= 1. */
typedef struct lt_Best {
  void (*row)(const void *x, int64_t n, void *value, int64_t *at);
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *values,
                  int64_t *at);
} lt_Best;

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
  /* Layer norm: w and b may be NULL. */                                                           \
  void (*layer_norm_##F)(const T *x, const T *w, const T *b, T eps, int64_t n, T *y, T *mean,      \
                         T *rstd);                                                                 \
  /* dx (unless NULL) of one row; dw and db (unless NULL) grow. */                                 \
  void (*layer_norm_backward_##F)(const T *g, const T *x, const T *w, T mean, T rstd, int64_t n,   \
                                  T *dx, T *dw, T *db);

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

/* What fits this machine. The loops of a reduction are by what elements are read as: `bytes` of
 * bool, or the dtype `work` (float32, float64, int64). */
const lt_Fold *lt_fold(lt_ReductionId id, lt_Dtype work, bool bytes);
const lt_Centered *lt_centered(lt_ReductionId id, lt_Dtype work);
const lt_Best *lt_best(lt_ReductionId id, lt_Dtype work);
const lt_RowKernels *lt_rows(void);

/* Reductions of kinds BEST and CENTERED: reduce_line.c. */
bool lt_reduce_to_best(const lt_ReductionCall *r, lt_Tensor *self, lt_Tensor *const *out, int nout);
bool lt_reduce_centered(const lt_ReductionCall *r, lt_Tensor *self, lt_Tensor *out);

#endif
