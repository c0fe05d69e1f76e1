/* rows.h: the inner loops of the structured kernels: the work of one thread on one row, or on a
 * block of columns.
 *
 * They are in src/cpu/kernels/, compiled once for each instruction set (LT_ISA), and selected at
 * run time. Sums are accumulated in 64 bytes of lanes, whatever the width of the machine's vectors,
 * so every instruction set gives the same bits; only exponentials and logarithms may differ in the
 * last one. */
#ifndef LT_CPU_ROWS_H
#define LT_CPU_ROWS_H

#include "reductions.h"
#include <string.h>

#define LT_PASTE_(a, b)  a##_##b
#define LT_PASTE(a, b)   LT_PASTE_(a, b)
#define LT_FOR_ISA(name) LT_PASTE(name, LT_ISA)

/* The types of a reduction's elements and state: float, double, an integer, the byte of a
 * bool, or complex.
 * WIDE: float elements with a double state; COUNT: bool elements with an int64 state; SUM: narrow
 * integers with an int64 state. */
typedef enum lt_State {
  LT_STATE_F32,
  LT_STATE_F32_WIDE,
  LT_STATE_F64,
  LT_STATE_I64,
  LT_STATE_I32,
  LT_STATE_I16,
  LT_STATE_I8,
  LT_STATE_UINT8,
  LT_STATE_U8,
  LT_STATE_U8_COUNT,
  LT_STATE_I32_SUM,
  LT_STATE_I16_SUM,
  LT_STATE_I8_SUM,
  LT_STATE_UINT8_SUM,
  LT_STATE_C64,
  LT_STATE_C128,
  LT_STATE_COUNT
} lt_State;

#define LT_FOLD_WIDTH     512 /* largest width of a call of lt_Fold's `columns` */
#define LT_CENTERED_WIDTH 128 /* likewise of lt_Centered and lt_Best */

/* Loops of a reduction with a state of one number (FOLD in ops.def). Sums of floats are pairwise
 * over blocks, so their error grows with the logarithm of n. */
typedef struct lt_FoldLoops {
  /* Sets out[i] to the reduction of row i, n >= 1 elements from x[i * apart] on, for i < rows. */
  void (*rows)(const void *x, int64_t rows, int64_t n, int64_t apart, void *out);
  /* Sets out[j] to the reduction of x[j], x[stride + j] ... (n >= 1 elements), for j < width <=
   * LT_FOLD_WIDTH. */
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *out);
} lt_FoldLoops;

typedef struct lt_Fold {
  lt_Dtype from, to;     /* dtypes of elements and of states */
  lt_FoldLoops elements; /* reduce elements to states */
  lt_FoldLoops states;   /* reduce states to states, to combine partial results */
  /* Sets x[0..count) to the state of no elements. */
  void (*identity)(void *x, int64_t count);
  /* Converts the states x[0..count), of n elements each, to results in place; NULL: the states are
   * the results. */
  void (*finish)(void *x, int64_t count, double n, double a);
  lt_FoldLoops bfloat16, half; /* reduce halves to states; NULL: they are converted before */
} lt_Fold;

/* Loops of a reduction with a state of three numbers (CENTERED). A state is an array of 3 `to`;
 * `join` adds `other` to `state`. */
typedef struct lt_Centered {
  lt_Dtype from, to;
  const char *term;                                   /* the text of the expression */
  void (*row)(const void *x, int64_t n, void *state); /* n >= 0 */
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *states);
  void (*join)(void *state, const void *other);
  void (*finish)(const void *state, double a, void *out);
} lt_Centered;

/* Whether `term` calls a function: columns are padded then, and narrow ones are faster as rows. */
static inline bool lt_centered_calls(const lt_Centered *f) {
  return strstr(f->term, "lt_") != NULL;
}

/* Loops of a reduction with a value and its first index, from 0 (BEST). n >= 1. */
typedef struct lt_Best {
  void (*row)(const void *x, int64_t n, void *value, int64_t *at);
  void (*columns)(const void *x, int64_t n, int64_t stride, int64_t width, void *values,
                  int64_t *at);
} lt_Best;

#define LT_SCAN_WIDTH 64 /* largest width of a call of lt_Scan's `columns` */

/* Loops of cumulative sums or products. Floats, and the parts of complex numbers, are accumulated
 * in float64; integers wrap. */
typedef struct lt_Scan {
  /* Sets y[i] to the sum of x[0..i] in each row of n elements. `states`: for each row, a sum of
   * float64, int64 or complex128 that is added before, and replaced by the row's. NULL: none. */
  void (*rows)(const void *x, void *y, int64_t rows, int64_t n, void *states);
  /* Does the same along n rows of a block of `width` columns; rows are `stride` apart. */
  void (*columns)(const void *x, void *y, int64_t n, int64_t stride, int64_t width);
} lt_Scan;

/* Loops of running maxima or minima: the values, and the indices from LT_INDEX_BASE on. */
typedef struct lt_Extremes {
  /* Along a row of n >= 1 elements. */
  void (*line)(const void *x, void *values, int64_t *indices, int64_t n);
  /* Along n rows of a block of up to LT_SCAN_WIDTH columns; rows are `stride` apart. */
  void (*columns)(const void *x, void *values, int64_t *indices, int64_t n, int64_t stride,
                  int64_t width);
} lt_Extremes;

/* Loops over rows of n float32 or float64 numbers (`T`), all dense. */
#define LT_ROWS(T, F)                                                                              \
  /* Softmax, or log softmax, of rows of n >= 1 elements. x and y may be the same. */              \
  void (*softmax_##F)(const T *x, T *y, int64_t rows, int64_t n, bool log);                        \
  /* dx = y (g - sum(g y)); with `log` dx = g - e^y sum(g) */                                      \
  void (*softmax_backward_##F)(const T *g, const T *y, T *dx, int64_t rows, int64_t n, bool log);  \
  /* The largest element of each row, and log(sum(e^(x - peak))). n >= 1. */                       \
  void (*log_sums_##F)(const T *x, int64_t rows, int64_t n, T *peak, T *log_sum);                  \
  /* dx = scale e^(x - peak - log_sum); these are numbers of each row. */                          \
  void (*cross_entropy_backward_##F)(const T *x, const T *peak, const T *log_sum, const T *scale,  \
                                     int64_t rows, int64_t n, T *dx);                              \
  /* The same along n rows of a block of `width` columns; rows are `stride` apart. */              \
  void (*log_sums_columns_##F)(const T *x, int64_t n, int64_t stride, int64_t width, T *peak,      \
                               T *log_sum);                                                        \
  void (*cross_entropy_backward_columns_##F)(const T *x, const T *peak, const T *log_sum,          \
                                             const T *scale, int64_t n, int64_t stride,            \
                                             int64_t width, T *dx);                                \
  void (*softmax_columns_##F)(const T *x, T *y, int64_t n, int64_t stride, int64_t width,          \
                              bool log);                                                           \
  void (*softmax_backward_columns_##F)(const T *g, const T *y, T *dx, int64_t n, int64_t stride,   \
                                       int64_t width, bool log);                                   \
  /* Layer norm: w and b may be NULL. */                                                           \
  void (*layer_norm_##F)(const T *x, const T *w, const T *b, T eps, int64_t n, T *y, T *mean,      \
                         T *rstd);                                                                 \
  /* Computes dx (unless NULL) of one row, and adds to dw and db (unless NULL). */                 \
  void (*layer_norm_backward_##F)(const T *g, const T *x, const T *w, T mean, T rstd, int64_t n,   \
                                  T *dx, T *dw, T *db);                                            \
  /* The mean of x, and the sum of the squares of the deviations from it. n >= 1. */               \
  void (*moments_##F)(const T *x, int64_t n, T *mean, T *squares);                                 \
  /* The sums of g and of g (x - mean). */                                                         \
  void (*norm_sums_##F)(const T *g, const T *x, T mean, int64_t n, T *sum, T *product);            \
  /* y = a (x - mean) + b */                                                                       \
  void (*affine_##F)(const T *x, T mean, T a, T b, int64_t n, T *y);                               \
  /* y = a[j] (x - mean[j]) + b[j] in n rows of `width` columns; rows are `stride` apart. */       \
  void (*affine_columns_##F)(const T *x, const T *mean, const T *a, const T *b, int64_t n,         \
                             int64_t stride, int64_t width, T *y);                                 \
  /* dx = a g + b (x - mean) + c */                                                                \
  void (*norm_gradient_##F)(const T *g, const T *x, T mean, T a, T b, T c, int64_t n, T *dx);      \
  /* y[j] = bias + the sum of weight[t] row[t][j] for t < count */                                 \
  void (*weighted_##F)(const T *const *row, const T *weight, int64_t count, T bias, int64_t n,     \
                       T *y);                                                                      \
  /* The sum of x[i] y[i]. */                                                                      \
  T (*dot_##F)(const T *x, const T *y, int64_t n);

/* Returns the index of the first 0 among n elements `stride` elements apart, or -1. */
typedef int64_t (*lt_FindZeroFn)(const void *data, int64_t n, int64_t stride);

typedef struct lt_RowKernels {
  LT_ROWS(float, f32)
  LT_ROWS(double, f64)
  /* Writes blocks position, position + 1 ... of Philox's sequence (philox.h) for this seed: 4 words
   * each. */
  void (*philox)(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *words);
  lt_FindZeroFn find_zero[4]; /* for elements of 1, 2, 4 and 8 bytes */
} lt_RowKernels;

/* Return the loops for this CPU. Those of a reduction are selected by the type of its elements:
 * `bytes` of bool, or the dtype `work` (float32, float64, int64; for lt_best any integer). NULL
 * members: not defined for that type. */
const lt_Fold *lt_fold(lt_ReductionId id, lt_Dtype work, bool bytes);
/* Returns the loops for elements and states of an integer dtype narrower than int64 or of a complex
 * one; NULL if they are not defined. */
const lt_Fold *lt_narrow_fold(lt_ReductionId id, lt_Dtype dtype);
const lt_Centered *lt_centered(lt_ReductionId id, lt_Dtype work);
const lt_Best *lt_best(lt_ReductionId id, lt_Dtype work);
const lt_RowKernels *lt_rows(void);
const lt_Scan *lt_scan(lt_Dtype work, bool product);
const lt_Extremes *lt_extremes(lt_Dtype work, bool largest);

/* Run reductions of the kinds BEST and CENTERED (reduce_line.c). Return false with the error
 * set. */
bool lt_reduce_to_best(const lt_ReductionCall *r, lt_Tensor *self, lt_Tensor *const *out, int nout);
bool lt_reduce_centered(const lt_ReductionCall *r, lt_Tensor *self, lt_Tensor *out);

#endif
