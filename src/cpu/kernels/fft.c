/* fft.c: the loops of Fourier transforms (fft.h) for one instruction set. */
#include "cpu/fft.h"
#include "cpu/rows.h"
#include "cpu/kernels/shuffle.h"

#define CHUNK 16 /* numbers of a row that a generic pass computes at once */

/* a * b + c, rounded once where the instruction set has it. */
#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define fused_f32(a, b, c) __builtin_fmaf(a, b, c)
#define fused_f64(a, b, c) __builtin_fma(a, b, c)
#else
#define fused_f32(a, b, c) ((a) * (b) + (c))
#define fused_f64(a, b, c) ((a) * (b) + (c))
#endif

/* Instruction sets with shorter vectors copy pairs one by one. */
#define SQUARES (LT_VECTOR_SIZE >= 32)

#if SQUARES
/* Squares of 8 lines of 8 pairs of floats. In vectors of 8 reals (imaginaries) of one line, their
 * numbers follow the order below, in which one shuffle separates and combines pairs. */
static const int order[8] = {0, 1, 4, 5, 2, 3, 6, 7};

/* Separates the pairs of 8 lines, `lane` numbers apart, to 8 rows of yr and yi. */
LT_LANES void separate_8(const float *x, int64_t lane, float *yr, float *yi, int64_t row) {
  LT_F8 re[8], im[8], a, b, to[8];
  for (int i = 0; i < 8; i++) {
    memcpy(&a, x + i * lane, sizeof a);
    memcpy(&b, x + i * lane + 8, sizeof b);
    re[i] = LT_SHUFFLE(LT_I8, a, b, 0, 2, 8, 10, 4, 6, 12, 14);
    im[i] = LT_SHUFFLE(LT_I8, a, b, 1, 3, 9, 11, 5, 7, 13, 15);
  }
  lt_transposed_8(re, to);
  for (int i = 0; i < 8; i++) memcpy(yr + order[i] * row, &to[i], sizeof to[i]);
  lt_transposed_8(im, to);
  for (int i = 0; i < 8; i++) memcpy(yi + order[i] * row, &to[i], sizeof to[i]);
}

/* Loads 8 rows times scale in the order above. */
LT_LANES void load_rows(const float *x, int64_t row, float scale, LT_F8 v[8]){
#define LOAD(i)                                                                                    \
  {                                                                                                \
    LT_F8 values;                                                                                  \
    memcpy(&values, x + order[i] * row, sizeof values);                                            \
    v[i] = values * scale;                                                                         \
  }
    LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
#undef LOAD
}

/* Combines 8 rows of xr and xi, times scale, to pairs of 8 lines, `lane` numbers apart. */
LT_LANES void combine_8(const float *xr, const float *xi, int64_t row, float scale, float *y,
                        int64_t lane) {
  LT_F8 from[8], re[8], im[8];
  load_rows(xr, row, scale, from);
  lt_transposed_8(from, re);
  load_rows(xi, row, scale, from);
  lt_transposed_8(from, im);
  for (int i = 0; i < 8; i++) {
    LT_F8 a = LT_SHUFFLE(LT_I8, re[i], im[i], 0, 8, 1, 9, 4, 12, 5, 13);
    LT_F8 b = LT_SHUFFLE(LT_I8, re[i], im[i], 2, 10, 3, 11, 6, 14, 7, 15);
    memcpy(y + i * lane, &a, sizeof a);
    memcpy(y + i * lane + 8, &b, sizeof b);
  }
}

#ifdef __AVX512F__
typedef double LT_D8 __attribute__((vector_size(64)));
typedef int64_t LT_L8 __attribute__((vector_size(64)));
typedef float LT_F16 __attribute__((vector_size(64)));
typedef int32_t LT_I16 __attribute__((vector_size(64)));

/* Sets s[0..7] to the transpose of the vectors r[0..7] of 8 pairs, which it changes. */
LT_LANES void transpose_pairs(LT_D8 r[8], LT_D8 s[8]) {
  for (int i = 0; i < 8; i += 2) {
    s[i] = LT_SHUFFLE(LT_L8, r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    s[i + 1] = LT_SHUFFLE(LT_L8, r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; j++) {
      r[i + j] = LT_SHUFFLE(LT_L8, s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      r[i + j + 2] = LT_SHUFFLE(LT_L8, s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; i++) {
    s[i] = LT_SHUFFLE(LT_L8, r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    s[i + 4] = LT_SHUFFLE(LT_L8, r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/* Separates the pairs of 16 lines. */
LT_LANES void separate_16(const float *x, int64_t lane, float *yr, float *yi, int64_t row) {
  LT_D8 from[8], to[2][8];
  for (int h = 0; h < 2; h++) {
    for (int i = 0; i < 8; i++) memcpy(&from[i], x + (8 * h + i) * lane, sizeof from[i]);
    transpose_pairs(from, to[h]);
  }
  for (int k = 0; k < 8; k++) {
    LT_F16 a = (LT_F16)to[0][k], b = (LT_F16)to[1][k];
    LT_F16 re = LT_SHUFFLE(LT_I16, a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    LT_F16 im = LT_SHUFFLE(LT_I16, a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    memcpy(yr + k * row, &re, sizeof re);
    memcpy(yi + k * row, &im, sizeof im);
  }
}

/* Combines 8 rows, times scale, to pairs of 16 lines. */
LT_LANES void combine_16(const float *xr, const float *xi, int64_t row, float scale, float *y,
                         int64_t lane) {
  LT_D8 from[2][8], to[8];
  for (int k = 0; k < 8; k++) {
    LT_F16 re, im;
    memcpy(&re, xr + k * row, sizeof re);
    memcpy(&im, xi + k * row, sizeof im);
    re = re * scale, im = im * scale;
    from[0][k] =
        (LT_D8)LT_SHUFFLE(LT_I16, re, im, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    from[1][k] = (LT_D8)LT_SHUFFLE(LT_I16, re, im, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                   30, 15, 31);
  }
  for (int h = 0; h < 2; h++) {
    transpose_pairs(from[h], to);
    for (int i = 0; i < 8; i++) memcpy(y + (8 * h + i) * lane, &to[i], sizeof to[i]);
  }
}
#endif

/* Copies the squares of a block of `lanes` lines of n pairs; the rest is left. */
static void separate_squares(const float *x, int64_t lane, int64_t n, int64_t lanes, float *yr,
                             float *yi) {
  int64_t b = 0;
#ifdef __AVX512F__
  for (; b + 16 <= lanes; b += 16)
    for (int64_t k = 0; k + 8 <= n; k += 8)
      separate_16(x + b * lane + 2 * k, lane, yr + k * lanes + b, yi + k * lanes + b, lanes);
#endif
  for (; b + 8 <= lanes; b += 8)
    for (int64_t k = 0; k + 8 <= n; k += 8)
      separate_8(x + b * lane + 2 * k, lane, yr + k * lanes + b, yi + k * lanes + b, lanes);
}

/* Does the reverse. */
static void combine_squares(const float *xr, const float *xi, float scale, int64_t n, int64_t lanes,
                            float *y, int64_t lane) {
  int64_t b = 0;
#ifdef __AVX512F__
  for (; b + 16 <= lanes; b += 16)
    for (int64_t k = 0; k + 8 <= n; k += 8)
      combine_16(xr + k * lanes + b, xi + k * lanes + b, lanes, scale, y + b * lane + 2 * k, lane);
#endif
  for (; b + 8 <= lanes; b += 8)
    for (int64_t k = 0; k + 8 <= n; k += 8)
      combine_8(xr + k * lanes + b, xi + k * lanes + b, lanes, scale, y + b * lane + 2 * k, lane);
}
#endif

#if SQUARES
#ifdef __AVX512F__
#define REVERSED(v) LT_SHUFFLE(FM, v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define FIRST_PAIRS(a, b)                                                                          \
  LT_SHUFFLE(FM, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LAST_PAIRS(a, b)                                                                           \
  LT_SHUFFLE(FM, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define FIRST_PARTS(a, b)                                                                          \
  LT_SHUFFLE(FM, a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define SECOND_PARTS(a, b)                                                                         \
  LT_SHUFFLE(FM, a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define REVERSED_PAIRS(v) LT_SHUFFLE(DM, v, v, 7, 6, 5, 4, 3, 2, 1, 0)
#else
#define REVERSED(v)        LT_SHUFFLE(FM, v, v, 7, 6, 5, 4, 3, 2, 1, 0)
#define FIRST_PAIRS(a, b)  LT_SHUFFLE(FM, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LAST_PAIRS(a, b)   LT_SHUFFLE(FM, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define FIRST_PARTS(a, b)  LT_SHUFFLE(FM, a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define SECOND_PARTS(a, b) LT_SHUFFLE(FM, a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define REVERSED_PAIRS(v)  LT_SHUFFLE(DM, v, v, 3, 2, 1, 0)
#endif

LT_LANES void store_vector(float *y, FV v) { memcpy(y, &v, sizeof v); }

/* Returns the conjugates of the pairs in v, the last one first. */
LT_LANES FV reversed_conjugates(FV v) {
  const FM signs = (FM)((DM){0} + INT64_MIN);
  return (FV)REVERSED_PAIRS((DV)((FM)v ^ signs));
}

/* Stores pairs at y, and with `other` their conjugates before `other` in reverse order. */
LT_LANES void store_pairs(FV re, FV im, float *y, float *other) {
  FV first = FIRST_PAIRS(re, im), last = LAST_PAIRS(re, im);
  if (y) {
    store_vector(y, first);
    store_vector(y + FV_N, last);
  }
  if (other) {
    store_vector(other - FV_N, reversed_conjugates(first));
    store_vector(other - 2 * FV_N, reversed_conjugates(last));
  }
}

/* Sets y to the transpose of FV_N rows of FV_N numbers, LT_FFT_COLUMNS apart. */
LT_LANES void transpose_square(FV r[FV_N], FV y[FV_N]) {
#ifdef __AVX512F__
  FV s[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    s[i] = LT_SHUFFLE(FM, r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    s[i + 1] =
        LT_SHUFFLE(FM, r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  /* Vector 4 i + j: numbers j, 4 + j, 8 + j and 12 + j of rows 4 i to 4 i + 3. */
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 8
    for (int j = 0; j < 2; j++) {
      DV a = (DV)s[i + j], b = (DV)s[i + j + 2];
      r[i + 2 * j] = (FV)LT_SHUFFLE(DM, a, b, 0, 8, 2, 10, 4, 12, 6, 14);
      r[i + 2 * j + 1] = (FV)LT_SHUFFLE(DM, a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
#pragma GCC unroll 8
  for (int j = 0; j < 4; j++) {
    DV a = (DV)r[j], b = (DV)r[j + 4], c = (DV)r[j + 8], d = (DV)r[j + 12];
    DV ab = LT_SHUFFLE(DM, a, b, 0, 1, 4, 5, 8, 9, 12, 13);
    DV cd = LT_SHUFFLE(DM, c, d, 0, 1, 4, 5, 8, 9, 12, 13);
    DV ef = LT_SHUFFLE(DM, a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    DV gh = LT_SHUFFLE(DM, c, d, 2, 3, 6, 7, 10, 11, 14, 15);
    y[j] = (FV)LT_SHUFFLE(DM, ab, cd, 0, 1, 4, 5, 8, 9, 12, 13);
    y[j + 4] = (FV)LT_SHUFFLE(DM, ef, gh, 0, 1, 4, 5, 8, 9, 12, 13);
    y[j + 8] = (FV)LT_SHUFFLE(DM, ab, cd, 2, 3, 6, 7, 10, 11, 14, 15);
    y[j + 12] = (FV)LT_SHUFFLE(DM, ef, gh, 2, 3, 6, 7, 10, 11, 14, 15);
  }
#else
  lt_transposed_8(r, y);
#endif
}

/* Transforms 4 numbers, `step` apart, in place. */
LT_LANES void transform_4(FV *re, FV *im, int step) {
  FV er = re[0] + re[2 * step], ei = im[0] + im[2 * step];
  FV fr = re[0] - re[2 * step], fi = im[0] - im[2 * step];
  FV gr = re[step] + re[3 * step], gi = im[step] + im[3 * step];
  FV hr = re[step] - re[3 * step], hi = im[step] - im[3 * step];
  re[0] = er + gr, im[0] = ei + gi;
  re[step] = fr + hi, im[step] = fi - hr;
  re[2 * step] = er - gr, im[2 * step] = ei - gi;
  re[3 * step] = fr - hi, im[3 * step] = fi + hr;
}

/* Multiplies a number by a constant. */
LT_LANES void times(FV *re, FV *im, float wr, float wi) {
  FV a = *re, b = *im, cr = FV_ALL(wr), ci = FV_ALL(wi);
  *re = FV_MADD(a, cr, -(b * ci));
  *im = FV_MADD(a, ci, b * cr);
}

/* Transforms 16 numbers; value k is at 4 (k % 4) + k / 4. */
LT_LANES void transform_16(FV *re, FV *im) {
  const float c = 0.92387953251128675613f, s = 0.38268343236508977173f, r = 0.70710678118654752440f;
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) transform_4(re + j, im + j, 4);
  times(re + 5, im + 5, c, -s);
  times(re + 6, im + 6, r, -r);
  times(re + 7, im + 7, s, -c);
  times(re + 9, im + 9, r, -r);
  FV real = re[10];
  re[10] = im[10], im[10] = -real;
  times(re + 11, im + 11, -r, -r);
  times(re + 13, im + 13, s, -c);
  times(re + 14, im + 14, -r, -r);
  times(re + 15, im + 15, -c, s);
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) transform_4(re + 4 * k, im + 4 * k, 1);
}

/* Transforms FV_N rows. */
LT_LANES void transform_rows(int64_t m, const float *x, const float *w, float *y) {
  const int64_t size = m * LT_FFT_COLUMNS;
  FV re[LT_FFT_COLUMNS], im[LT_FFT_COLUMNS], ar[FV_N], ai[FV_N];
#pragma GCC unroll 2
  for (int b = 0; b < LT_FFT_COLUMNS; b += FV_N) {
#pragma GCC unroll 16
    for (int i = 0; i < FV_N; i++) {
      FV xr = FV_LOAD(x + i * LT_FFT_COLUMNS + b), xi = FV_LOAD(x + size + i * LT_FFT_COLUMNS + b);
      FV wr = FV_LOAD(w + i * LT_FFT_COLUMNS + b), wi = FV_LOAD(w + size + i * LT_FFT_COLUMNS + b);
      ar[i] = FV_MADD(xr, wr, -(xi * wi));
      ai[i] = FV_MADD(xr, wi, xi * wr);
    }
    transpose_square(ar, re + b);
    transpose_square(ai, im + b);
  }
  transform_16(re, im);
#pragma GCC unroll 16
  for (int k = 0; k < LT_FFT_COLUMNS; k++) {
    store_vector(y + k * m, re[k % 4 * 4 + k / 4]);
    store_vector(y + size + k * m, im[k % 4 * 4 + k / 4]);
  }
}

static void line_rows(int64_t m, int64_t first, int64_t last, const float *x, const float *w,
                      float *y) {
  for (int64_t k = first; k < last; k += FV_N)
    transform_rows(m, x + k * LT_FFT_COLUMNS, w + k * LT_FFT_COLUMNS, y + k);
}

/* Computes values k and h - k from numbers k and h - k. */
LT_LANES void untangle_line_as(int64_t h, const float *zr, const float *zi, const float *w,
                               float scale, float sign, bool full, float *y) {
  const FV half = FV_ALL(0.5f * scale), signs = FV_ALL(sign);
  float zero = zr[0] + zi[0], middle = zr[0] - zi[0];
  y[0] = scale * zero, y[1] = 0;
  y[2 * h] = scale * middle, y[2 * h + 1] = 0;
  for (int64_t k = 1; k <= h / 2; k += FV_N) {
    FV ar = FV_LOAD(zr + k), ai = FV_LOAD(zi + k);
    FV br = FV_LOAD(zr + h - k - FV_N + 1), bi = FV_LOAD(zi + h - k - FV_N + 1);
    FV wr = FV_LOAD(w + k - 1), wi = FV_LOAD(w + h / 2 + k - 1);
    br = REVERSED(br), bi = REVERSED(bi);
    FV er = half * (ar + br), ei = half * (ai - bi);
    FV tr = half * (ai + bi), ti = half * (br - ar);
    FV pr = FV_MADD(wr, tr, FV_MADD(-wi, ti, er)), pi = FV_MADD(wr, ti, FV_MADD(wi, tr, ei));
    FV qr = FV_MADD(-wr, tr, FV_MADD(wi, ti, er)), qi = FV_MADD(-wr, ti, FV_MADD(-wi, tr, ei));
    store_pairs(pr, signs * pi, y + 2 * k, full ? y + 2 * (2 * h - k + 1) : NULL);
    store_pairs(qr, signs * qi, full ? y + 2 * (h + k) : NULL, y + 2 * (h - k + 1));
  }
}

static void untangle_line(int64_t h, const float *zr, const float *zi, const float *w, float scale,
                          bool inverse, bool full, float *y) {
  float sign = inverse ? -1 : 1;
  if (full)
    untangle_line_as(h, zr, zi, w, scale, sign, true, y);
  else
    untangle_line_as(h, zr, zi, w, scale, sign, false, y);
}

/* Computes numbers k and h - k from values k and h - k. */
static void tangle_line(int64_t h, const float *x, const float *w, float *zr, float *zi) {
  zr[0] = x[0] + x[2 * h], zi[0] = x[0] - x[2 * h];
  for (int64_t k = 1; k <= h / 2; k += FV_N) {
    const float *a = x + 2 * k, *b = x + 2 * (h - k - FV_N + 1);
    FV a0 = FV_LOAD(a), a1 = FV_LOAD(a + FV_N), b0 = FV_LOAD(b), b1 = FV_LOAD(b + FV_N);
    FV ar = FIRST_PARTS(a0, a1), ai = SECOND_PARTS(a0, a1);
    FV br = FIRST_PARTS(b0, b1), bi = SECOND_PARTS(b0, b1);
    FV wr = FV_LOAD(w + k - 1), wi = -FV_LOAD(w + h / 2 + k - 1);
    br = REVERSED(br), bi = REVERSED(bi);
    FV er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
    FV tr = FV_MADD(dr, wr, -(di * wi)), ti = FV_MADD(dr, wi, di * wr), qr = er + ti, qi = tr - ei;
    store_vector(zr + k, er - ti);
    store_vector(zi + k, ei + tr);
    store_vector(zr + h - k - FV_N + 1, REVERSED(qr));
    store_vector(zi + h - k - FV_N + 1, REVERSED(qi));
  }
}
#endif

#define T float
#define F f32
#include "fft_body.h"
#undef T
#undef F
#if SQUARES
#define LINE_LOOPS                                                                                 \
  { pass_pairs, line_rows, untangle_line, tangle_line }
#else
#define LINE_LOOPS                                                                                 \
  { 0 }
#endif
#undef SQUARES

#define T       double
#define F       f64
#define SQUARES 0
#include "fft_body.h"
#undef T
#undef F

#define LOOPS(F)                                                                                   \
  .pass_##F = pass_##F, .gather_##F = gather_##F, .scatter_##F = scatter_##F,                      \
  .gather_pairs_##F = gather_pairs_##F, .scatter_pairs_##F = scatter_pairs_##F,                    \
  .multiply_##F = multiply_##F, .twist_##F = twist_##F, .untangle_##F = untangle_##F,              \
  .tangle_##F = tangle_##F, .reverse_conjugates_##F = reverse_conjugates_##F

extern const lt_FftLoops LT_FOR_ISA(lt_fft_loops);
const lt_FftLoops LT_FOR_ISA(lt_fft_loops) = {LOOPS(f32), LOOPS(f64), .line = LINE_LOOPS};
