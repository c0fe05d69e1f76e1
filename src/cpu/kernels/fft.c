/* fft.c: the loops of Fourier transforms (fft.h) for one instruction set. */
#include "cpu/fft.h"
#include "cpu/rows.h"
#include "cpu/kernels/shuffle.h"

#define CHUNK 16 /* numbers of a row that a generic pass computes at once */

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

#define T float
#define F f32
#include "fft_body.h"
#undef T
#undef F
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
  .tangle_##F = tangle_##F

extern const lt_FftLoops LT_FOR_ISA(lt_fft_loops);
const lt_FftLoops LT_FOR_ISA(lt_fft_loops) = {LOOPS(f32), LOOPS(f64)};
