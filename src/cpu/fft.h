/* fft.h: discrete Fourier transforms of lines of complex numbers on the CPU.
 *
 * A plan transforms a block: `lanes` lines of n numbers each at once, element k of line b at
 * [k * lanes + b], all real parts before all imaginary parts. Loops run over the lanes, so they are
 * vectorized for every n. Twiddle factors are computed in double.
 *
 * Plans only compute forward transforms, the sum of x[j] exp(-2 pi i j k / n). A backward transform
 * is a forward one with real and imaginary parts exchanged, before and after. */
#ifndef LT_CPU_FFT_H
#define LT_CPU_FFT_H

#include "kernel.h"

/* What the lines are: complex to complex, real to complex, complex to real. */
typedef enum lt_FftKind { LT_FFT_C2C, LT_FFT_R2C, LT_FFT_C2R } lt_FftKind;

/* A transform of lines along a dim of contiguous tensors, whose numbers are `inner` apart: `outer`
 * times `rows` groups of `columns` adjacent lines. All lines of a dim have one row of `inner`
 * columns. x and y may be the same for LT_FFT_C2C. */
typedef struct lt_FftLines {
  lt_FftKind kind;
  bool wide;    /* double */
  bool inverse; /* with the positive exponent */
  bool full;    /* R2C with to_n = n and inner = 1: the values after n / 2 are written, too */
  double scale;
  int64_t n, outer, inner, rows, columns;
  int64_t from_n, to_n; /* numbers of a line of the input and of the result, in memory */
  const void *x;
  void *y;
} lt_FftLines;

/* Returns the index of the first number of a group of lines; a line has `numbers` of them. */
static inline int64_t lt_fft_start(const lt_FftLines *l, int64_t group, int64_t numbers) {
  return group / l->rows * numbers * l->inner + group % l->rows * (l->inner / l->rows);
}

/* Returns how many numbers of a line are written; `full` adds others to them. */
static inline int64_t lt_fft_results(const lt_FftLines *l) {
  return l->kind == LT_FFT_R2C ? l->n / 2 + 1 : l->to_n;
}

/* The inner loops, compiled for each instruction set (kernels/fft.c), for float and double (T). All
 * matrices are row-major; complex factors are pairs (re, im).
 *
 * pass: one pass of a transform (Stockham's autosort form): m groups of `radix` rows of `run`
 * numbers, `far` apart: m * run for all groups of the pass. Of each row `width` numbers are
 * computed. xi and yi are the imaginary parts; w has radix - 1 factors for each group, then, for
 * the radices without own code, cos and sin of 2 pi j / radix for j < radix.
 * gather: y[k][b] = x[k * step + b * lane] for k < n, b < lanes.
 * scatter: y[k * step + b * lane] = scale * x[k][b].
 * gather_pairs, scatter_pairs: the same of two neighbors, x[k * step + b * lane] and the next one.
 * multiply: row k of y is row k of x times w[k]; x and y may be the same.
 * twist: multiplies x[k][b] by exp(-2 pi i k (first + b) / n), which is high[j >> bits] times
 * low[j & mask] for j = k first, times turns[k][b] for the rest: rows of `width` real parts and as
 * many imaginary ones.
 * untangle: from the transform z of h complex numbers, the first h + 1 values of the transform of
 * the 2 h real numbers that were their parts; w[k] = exp(-pi i k / h).
 * tangle: the inverse of untangle, times 2. The imaginary parts of values 0 and h are ignored.
 * reverse_conjugates: y[k] is the conjugate of x[n - 1 - k], for k < n. */
#define LT_FFT_LOOPS(T, F)                                                                         \
  void (*pass_##F)(int radix, int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,     \
                   const T *xi, T *yr, T *yi, const T *w);                                         \
  void (*gather_##F)(const T *x, int64_t step, int64_t lane, int64_t n, int64_t lanes, T *y);      \
  void (*scatter_##F)(const T *x, T scale, int64_t n, int64_t lanes, T *y, int64_t step,           \
                      int64_t lane);                                                               \
  void (*gather_pairs_##F)(const T *x, int64_t step, int64_t lane, int64_t n, int64_t lanes,       \
                           T *yr, T *yi);                                                          \
  void (*scatter_pairs_##F)(const T *xr, const T *xi, T scale, int64_t n, int64_t lanes, T *y,     \
                            int64_t step, int64_t lane);                                           \
  void (*multiply_##F)(int64_t n, int64_t lanes, const T *xr, const T *xi, const T *w, T *yr,      \
                       T *yi);                                                                     \
  void (*twist_##F)(int64_t rows, int64_t lanes, int64_t first, int bits, const double *high,      \
                    const double *low, int64_t width, const double *turns, T *xr, T *xi);          \
  void (*untangle_##F)(int64_t h, int64_t lanes, const T *zr, const T *zi, const T *w, T *yr,      \
                       T *yi);                                                                     \
  void (*tangle_##F)(int64_t h, int64_t lanes, const T *xr, const T *xi, const T *w, T *zr,        \
                     T *zi);                                                                       \
  void (*reverse_conjugates_##F)(int64_t n, const T *x, T *y);

/* The loops for single lines of floats, NULL where vectors are short. Factors w are all real parts
 * before all imaginary parts.
 *
 * first_pass: a pass of radix 4 or 8 of pairs, with a run of LT_FFT_COLUMNS.
 * rows: the transforms of rows first to last - 1, multiples of 16, of m rows of LT_FFT_COLUMNS
 * numbers, each times its factor, as columns.
 * untangle: untangle above, times scale, to pairs; h is a multiple of 32. `inverse`: the
 * conjugates; `full`: all 2 h values.
 * tangle: tangle above, of pairs. */
typedef struct lt_FftLineLoops {
  void (*first_pass)(int radix, int64_t m, int64_t far, const float *x, float *yr, float *yi,
                     const float *w);
  void (*rows)(int64_t m, int64_t first, int64_t last, const float *x, const float *w, float *y);
  void (*untangle)(int64_t h, const float *zr, const float *zi, const float *w, float scale,
                   bool inverse, bool full, float *y);
  void (*tangle)(int64_t h, const float *x, const float *w, float *zr, float *zi);
} lt_FftLineLoops;

typedef struct lt_FftLoops {
  LT_FFT_LOOPS(float, f32)
  LT_FFT_LOOPS(double, f64)
  lt_FftLineLoops line;
} lt_FftLoops;

#define LT_FFT_RADIX   128 /* the largest prime factor for which there is a pass */
#define LT_FFT_COLUMNS 16  /* columns of a single line (fft_plan.c) */

/* Returns the loops for this CPU. */
const lt_FftLoops *lt_fft_loops(void);

/* The transform of one size, in float or double. */
typedef struct lt_FftPlan lt_FftPlan;

/* Returns the plan for n >= 1 numbers; `real`: n is even, and the plan is for 2 parts of n / 2
 * complex numbers. Plans are cached. The caller releases it. NULL with the error set when out of
 * memory. */
lt_FftPlan *lt_fft_plan(int64_t n, bool wide, bool real);
void lt_fft_release(lt_FftPlan *plan);

/* Returns the number of lines that are transformed at once. */
int64_t lt_fft_lanes(const lt_FftPlan *plan);
/* Returns whether the plan itself runs on several threads: then its lines are transformed one
 * after the other. */
bool lt_fft_is_parallel(const lt_FftPlan *plan);
/* Returns the number of floats or doubles that a block needs. */
size_t lt_fft_scratch(const lt_FftPlan *plan, int64_t lanes);
/* Returns memory for a block, aligned to cache lines: vectors that cross two of them take twice as
 * long. NULL when out of memory; the caller frees it. */
static inline void *lt_fft_memory(size_t bytes) {
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}
/* Returns the factors of a real plan, w[k] = exp(-2 pi i k / n) for k <= n / 2. */
const void *lt_fft_real_factors(const lt_FftPlan *plan);

/* Returns whether plans for n complex numbers have a transform of single lines. */
bool lt_fft_is_line_size(int64_t n, bool wide);
/* Returns whether the plan, or the plan that it is for 2 parts of, has one. */
bool lt_fft_has_line(const lt_FftPlan *plan);
/* Returns the factors of a real plan for the loops of single lines. */
const float *lt_fft_line_factors(const lt_FftPlan *plan);
/* Transforms a line of pairs x or, if x is NULL, the line at the start of `scratch`; returns the
 * result, which is in `scratch`. It is computed by `team` threads. */
float *lt_fft_run_line(const lt_FftPlan *plan, int team, const float *x, float *scratch);

/* A line of pairs x that becomes y, which may be x; `exchanged`: the real and imaginary parts of
 * both are, for the inverse. */
typedef struct lt_FftPairs {
  const void *x;
  void *y;
  double scale;
  bool exchanged;
} lt_FftPairs;

/* Returns whether the plan transforms a line in two parallel steps. */
bool lt_fft_splits(const lt_FftPlan *plan);
/* Transforms a line by such a plan, with scratch memory for one lane. Return false with the error
 * set when out of memory. */
bool lt_fft_run_pairs_f32(const lt_FftPlan *plan, const lt_FftPairs *pairs, float *scratch);
bool lt_fft_run_pairs_f64(const lt_FftPlan *plan, const lt_FftPairs *pairs, double *scratch);

/* Transforms the block at the start of `scratch`; returns the result, which is in `scratch`, too.
 * NULL with the error set when out of memory. */
float *lt_fft_run_f32(const lt_FftPlan *plan, int64_t lanes, float *scratch);
double *lt_fft_run_f64(const lt_FftPlan *plan, int64_t lanes, double *scratch);

#endif
