/* fft.c: the loops of Fourier transforms (fft.h) for one instruction set. */
#include "cpu/fft.h"
#include "cpu/rows.h"
#include "cpu/kernels/shuffle.h"

#define CHUNK 16 /* numbers of a row that a generic pass computes at once */

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

/* Combines 8 rows of xr and xi, times scale, to pairs of 8 lines, `lane` numbers apart. */
LT_LANES void combine_8(const float *xr, const float *xi, int64_t row, float scale, float *y,
                        int64_t lane) {
  LT_F8 from[8], re[8], im[8];
  for (int i = 0; i < 8; i++) {
    memcpy(&from[i], xr + order[i] * row, sizeof from[i]);
    from[i] *= scale;
  }
  lt_transposed_8(from, re);
  for (int i = 0; i < 8; i++) {
    memcpy(&from[i], xi + order[i] * row, sizeof from[i]);
    from[i] *= scale;
  }
  lt_transposed_8(from, im);
  for (int i = 0; i < 8; i++) {
    LT_F8 a = LT_SHUFFLE(LT_I8, re[i], im[i], 0, 8, 1, 9, 4, 12, 5, 13);
    LT_F8 b = LT_SHUFFLE(LT_I8, re[i], im[i], 2, 10, 3, 11, 6, 14, 7, 15);
    memcpy(y + i * lane, &a, sizeof a);
    memcpy(y + i * lane + 8, &b, sizeof b);
  }
}

/* Copy the squares of a block of `lanes` lines of n pairs; the rest is left. */
static void separate_squares(const float *x, int64_t lane, int64_t n, int64_t lanes, float *yr,
                             float *yi) {
  for (int64_t b = 0; b + 8 <= lanes; b += 8)
    for (int64_t k = 0; k + 8 <= n; k += 8)
      separate_8(x + b * lane + 2 * k, lane, yr + k * lanes + b, yi + k * lanes + b, lanes);
}

static void combine_squares(const float *xr, const float *xi, float scale, int64_t n, int64_t lanes,
                            float *y, int64_t lane) {
  for (int64_t b = 0; b + 8 <= lanes; b += 8)
    for (int64_t k = 0; k + 8 <= n; k += 8)
      combine_8(xr + k * lanes + b, xi + k * lanes + b, lanes, scale, y + b * lane + 2 * k, lane);
}

#define T       float
#define F       f32
#define SQUARES 1
#include "fft_body.h"
#undef SQUARES
#undef T
#undef F

#define T       double
#define F       f64
#define SQUARES 0
#include "fft_body.h"
#undef SQUARES
#undef T
#undef F

#define LOOPS(F)                                                                                   \
  .pass_##F = pass_##F, .gather_##F = gather_##F, .scatter_##F = scatter_##F,                      \
  .gather_pairs_##F = gather_pairs_##F, .scatter_pairs_##F = scatter_pairs_##F,                    \
  .multiply_##F = multiply_##F, .twist_##F = twist_##F, .untangle_##F = untangle_##F,              \
  .tangle_##F = tangle_##F

extern const lt_FftLoops LT_FOR_ISA(lt_fft_loops);
const lt_FftLoops LT_FOR_ISA(lt_fft_loops) = {LOOPS(f32), LOOPS(f64)};
