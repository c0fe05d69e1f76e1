/* fft_body.h: the loops of Fourier transforms for numbers of type T, with the suffix F.
 *
 * A pass of radix r combines the rows p, p + m, p + 2 m ... to the rows r p, r p + 1 ..., each
 * times a factor: the decimation in frequency of Stockham's transform (Van Loan, Computational
 * Frameworks for the Fast Fourier Transform, 1.7). */
#define NAME(f)       LT_PASTE(f, F)
#define MADD(a, b, c) NAME(fused)(a, b, c)

/* Sets re and im to the product of z and w. */
#define PRODUCT(re, im, zr, zi, wr, wi)                                                            \
  re = MADD(zr, wr, -((zi) * (wi))), im = MADD(zr, wi, (zi) * (wr));

/* The rows of one group; numbers of the input are `size` apart, rows of a group `far`. Columns up
 * to `width` are computed. */
#define GROUP_ROWS(r, size)                                                                        \
  const T *ar = xr + (size)*p * run, *ai = xi + (size)*p * run;                                    \
  T *restrict br = yr + r * p * run, *restrict bi = yi + r * p * run;

static void NAME(pass2)(int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,
                        const T *xi, T *yr, T *yi, const T *w) {
  for (int64_t p = 0; p < m; p++, w += 2) {
    GROUP_ROWS(2, 1)
    const T wr = w[0], wi = w[1];
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
      T pr = ar[i], pi = ai[i], qr = ar[far + i], qi = ai[far + i];
      T dr = pr - qr, di = pi - qi;
      br[i] = pr + qr;
      bi[i] = pi + qi;
      PRODUCT(br[run + i], bi[run + i], dr, di, wr, wi)
    }
  }
}

static void NAME(pass3)(int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,
                        const T *xi, T *yr, T *yi, const T *w) {
  const T half = (T)0.5, s = (T)0.86602540378443864676;
  for (int64_t p = 0; p < m; p++, w += 4) {
    GROUP_ROWS(3, 1)
    const T w1r = w[0], w1i = w[1], w2r = w[2], w2i = w[3];
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
      T sr = ar[far + i] + ar[2 * far + i], si = ai[far + i] + ai[2 * far + i];
      T dr = s * (ar[far + i] - ar[2 * far + i]), di = s * (ai[far + i] - ai[2 * far + i]);
      T mr = MADD(-half, sr, ar[i]), mi = MADD(-half, si, ai[i]);
      T y1r = mr + di, y1i = mi - dr, y2r = mr - di, y2i = mi + dr;
      br[i] = ar[i] + sr;
      bi[i] = ai[i] + si;
      PRODUCT(br[run + i], bi[run + i], y1r, y1i, w1r, w1i)
      PRODUCT(br[2 * run + i], bi[2 * run + i], y2r, y2i, w2r, w2i)
    }
  }
}

/* Numbers of a group's rows: the parts of pairs, or of rows of parts. */
#define AR(i) (pairs ? ar[2 * (i)] : ar[i])
#define AI(i) (pairs ? ar[2 * (i) + 1] : ai[i])

/* Stores row k of a group's result times its factor; those of the last pass are 1. */
#define PUT(k, re, im)                                                                             \
  {                                                                                                \
    T zr = re, zi = im;                                                                            \
    if (last)                                                                                      \
      br[k * run + i] = zr, bi[k * run + i] = zi;                                                  \
    else                                                                                           \
      PRODUCT(br[k * run + i], bi[k * run + i], zr, zi, w[2 * k - 2], w[2 * k - 1])                \
  }

LT_LANES void NAME(pass4)(bool last, bool pairs, int64_t m, int64_t far, int64_t run, int64_t width,
                          const T *xr, const T *xi, T *yr, T *yi, const T *w) {
  for (int64_t p = 0; p < m; p++, w += 6) {
    GROUP_ROWS(4, pairs ? 2 : 1)
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
      T er = AR(i) + AR(2 * far + i), ei = AI(i) + AI(2 * far + i);
      T fr = AR(i) - AR(2 * far + i), fi = AI(i) - AI(2 * far + i);
      T gr = AR(far + i) + AR(3 * far + i), gi = AI(far + i) + AI(3 * far + i);
      T hr = AR(far + i) - AR(3 * far + i), hi = AI(far + i) - AI(3 * far + i);
      T y1r = fr + hi, y1i = fi - hr, y2r = er - gr, y2i = ei - gi, y3r = fr - hi, y3i = fi + hr;
      br[i] = er + gr;
      bi[i] = ei + gi;
      PUT(1, y1r, y1i)
      PUT(2, y2r, y2i)
      PUT(3, y3r, y3i)
    }
  }
}

static void NAME(pass5)(int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,
                        const T *xi, T *yr, T *yi, const T *w) {
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410;
  const T s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
  for (int64_t p = 0; p < m; p++, w += 8) {
    GROUP_ROWS(5, 1)
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
      T pr = ar[far + i] + ar[4 * far + i], pi = ai[far + i] + ai[4 * far + i];
      T qr = ar[far + i] - ar[4 * far + i], qi = ai[far + i] - ai[4 * far + i];
      T ur = ar[2 * far + i] + ar[3 * far + i], ui = ai[2 * far + i] + ai[3 * far + i];
      T vr = ar[2 * far + i] - ar[3 * far + i], vi = ai[2 * far + i] - ai[3 * far + i];
      T er = MADD(c2, ur, MADD(c1, pr, ar[i])), ei = MADD(c2, ui, MADD(c1, pi, ai[i]));
      T fr = MADD(c1, ur, MADD(c2, pr, ar[i])), fi = MADD(c1, ui, MADD(c2, pi, ai[i]));
      T gr = MADD(s1, qr, s2 * vr), gi = MADD(s1, qi, s2 * vi);
      T hr = MADD(s2, qr, -(s1 * vr)), hi = MADD(s2, qi, -(s1 * vi));
      T y1r = er + gi, y1i = ei - gr, y4r = er - gi, y4i = ei + gr;
      T y2r = fr + hi, y2i = fi - hr, y3r = fr - hi, y3i = fi + hr;
      br[i] = ar[i] + pr + ur;
      bi[i] = ai[i] + pi + ui;
      PRODUCT(br[run + i], bi[run + i], y1r, y1i, w[0], w[1])
      PRODUCT(br[2 * run + i], bi[2 * run + i], y2r, y2i, w[2], w[3])
      PRODUCT(br[3 * run + i], bi[3 * run + i], y3r, y3i, w[4], w[5])
      PRODUCT(br[4 * run + i], bi[4 * run + i], y4r, y4i, w[6], w[7])
    }
  }
}

LT_LANES void NAME(pass8)(bool last, bool pairs, int64_t m, int64_t far, int64_t run, int64_t width,
                          const T *xr, const T *xi, T *yr, T *yi, const T *w) {
  const T root = (T)0.70710678118654752440;
  for (int64_t p = 0; p < m; p++, w += 14) {
    GROUP_ROWS(8, pairs ? 2 : 1)
#define SUM_AND_DIFFERENCE(j)                                                                      \
  T s##j##r = AR(j * far + i) + AR((j + 4) * far + i);                                             \
  T s##j##i = AI(j * far + i) + AI((j + 4) * far + i);                                             \
  T d##j##r = AR(j * far + i) - AR((j + 4) * far + i);                                             \
  T d##j##i = AI(j * far + i) - AI((j + 4) * far + i);
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
      SUM_AND_DIFFERENCE(0)
      SUM_AND_DIFFERENCE(1)
      SUM_AND_DIFFERENCE(2)
      SUM_AND_DIFFERENCE(3)
      T er = s0r + s2r, ei = s0i + s2i, fr = s0r - s2r, fi = s0i - s2i;
      T gr = s1r + s3r, gi = s1i + s3i, hr = s1r - s3r, hi = s1i - s3i;
      br[i] = er + gr;
      bi[i] = ei + gi;
      PUT(2, fr + hi, fi - hr)
      PUT(4, er - gr, ei - gi)
      PUT(6, fr - hi, fi + hr)
      /* The differences times the powers of exp(-i pi / 4). */
      T ur = root * (d1r + d1i), ui = root * (d1i - d1r);
      T vr = root * (d3i - d3r), vi = -root * (d3r + d3i);
      T kr = d0r + d2i, ki = d0i - d2r, lr = d0r - d2i, li = d0i + d2r;
      T qr = ur + vr, qi = ui + vi, tr = ur - vr, ti = ui - vi;
      PUT(1, kr + qr, ki + qi)
      PUT(3, lr + ti, li - tr)
      PUT(5, kr - qr, ki - qi)
      PUT(7, lr - ti, li + tr)
    }
#undef SUM_AND_DIFFERENCE
  }
}

/* Sums and differences of the rows j and r - j of a group of an odd radix r. */
typedef struct NAME(Odd) {
  T sr[LT_FFT_RADIX / 2][CHUNK], si[LT_FFT_RADIX / 2][CHUNK];
  T dr[LT_FFT_RADIX / 2][CHUNK], di[LT_FFT_RADIX / 2][CHUNK];
} NAME(Odd);

/* Computes `count` <= 2 rows of the result from row k on, and the rows r - k. */
LT_LANES void NAME(odd_rows)(int count, int k, int r, int64_t run, int64_t width,
                             const NAME(Odd) * o, const T *ar, const T *ai, T *br, T *bi,
                             const T *w, const T *roots) {
  T er[2][CHUNK], ei[2][CHUNK], gr[2][CHUNK], gi[2][CHUNK];
  for (int c = 0; c < count; c++)
    for (int64_t i = 0; i < width; i++) er[c][i] = ar[i], ei[c][i] = ai[i], gr[c][i] = gi[c][i] = 0;
  for (int j = 0, at[2] = {0}; j < (r - 1) / 2; j++)
    for (int c = 0; c < count; c++) {
      at[c] += at[c] + k + c < r ? k + c : k + c - r;
      const T cosine = roots[2 * at[c]], sine = roots[2 * at[c] + 1];
#pragma omp simd
      for (int64_t i = 0; i < width; i++) {
        er[c][i] = MADD(cosine, o->sr[j][i], er[c][i]);
        ei[c][i] = MADD(cosine, o->si[j][i], ei[c][i]);
        gr[c][i] = MADD(sine, o->dr[j][i], gr[c][i]);
        gi[c][i] = MADD(sine, o->di[j][i], gi[c][i]);
      }
    }
  for (int c = 0; c < count; c++, k++) {
    const T *wk = w + 2 * (k - 1), *wl = w + 2 * (r - k - 1);
    T *kr = br + k * run, *ki = bi + k * run, *lr = br + (r - k) * run, *li = bi + (r - k) * run;
    for (int64_t i = 0; i < width; i++) {
      T ur = er[c][i] + gi[c][i], ui = ei[c][i] - gr[c][i];
      T vr = er[c][i] - gi[c][i], vi = ei[c][i] + gr[c][i];
      PRODUCT(kr[i], ki[i], ur, ui, wk[0], wk[1])
      PRODUCT(lr[i], li[i], vr, vi, wl[0], wl[1])
    }
  }
}

/* Computes up to CHUNK columns of a group. */
LT_LANES void NAME(odd_columns)(int r, int64_t far, int64_t run, int64_t width, const T *ar,
                                const T *ai, T *br, T *bi, const T *w, const T *roots) {
  NAME(Odd) o;
  int half = (r - 1) / 2, k = 1;
  T total_r[CHUNK], total_i[CHUNK];
  for (int64_t i = 0; i < width; i++) total_r[i] = ar[i], total_i[i] = ai[i];
  for (int j = 0; j < half; j++) {
    const T *pr = ar + (j + 1) * far, *qr = ar + (r - 1 - j) * far;
    const T *pi = ai + (j + 1) * far, *qi = ai + (r - 1 - j) * far;
    for (int64_t i = 0; i < width; i++) {
      o.sr[j][i] = pr[i] + qr[i], o.si[j][i] = pi[i] + qi[i];
      o.dr[j][i] = pr[i] - qr[i], o.di[j][i] = pi[i] - qi[i];
      total_r[i] += o.sr[j][i], total_i[i] += o.si[j][i];
    }
  }
  for (int64_t i = 0; i < width; i++) br[i] = total_r[i], bi[i] = total_i[i];
  for (; k + 1 <= half; k += 2) NAME(odd_rows)(2, k, r, run, width, &o, ar, ai, br, bi, w, roots);
  if (k <= half) NAME(odd_rows)(1, k, r, run, width, &o, ar, ai, br, bi, w, roots);
}

LT_LANES void NAME(odd_groups)(int r, int64_t m, int64_t far, int64_t run, int64_t width,
                               const T *xr, const T *xi, T *yr, T *yi, const T *w) {
  const T *roots = w + 2 * (r - 1) * m;
  for (int64_t p = 0; p < m;
       p++, w += 2 * (r - 1), xr += run, xi += run, yr += r * run, yi += r * run) {
    int64_t i = 0;
    for (; i + CHUNK <= width; i += CHUNK)
      NAME(odd_columns)(r, far, run, CHUNK, xr + i, xi + i, yr + i, yi + i, w, roots);
    if (i < width)
      NAME(odd_columns)(r, far, run, width - i, xr + i, xi + i, yr + i, yi + i, w, roots);
  }
}

static void NAME(pass7)(int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,
                        const T *xi, T *yr, T *yi, const T *w) {
  NAME(odd_groups)(7, m, far, run, width, xr, xi, yr, yi, w);
}

static void NAME(pass_odd)(int r, int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,
                           const T *xi, T *yr, T *yi, const T *w) {
  NAME(odd_groups)(r, m, far, run, width, xr, xi, yr, yi, w);
}

/* Calls a pass as the last one, as the first one of 16 lanes or as another one. */
#define SPECIALIZED(f)                                                                             \
  if (far == run)                                                                                  \
    f(true, false, 1, far, run, width, xr, xi, yr, yi, w);                                         \
  else if (run == 16)                                                                              \
    f(false, false, m, far, 16, 16, xr, xi, yr, yi, w);                                            \
  else                                                                                             \
    f(false, false, m, far, run, width, xr, xi, yr, yi, w);

#if SQUARES
/* The first pass of a single line, which has pairs. */
static void pass_pairs(int radix, int64_t m, int64_t far, const T *x, T *yr, T *yi, const T *w) {
  if (radix == 4)
    NAME(pass4)(false, true, m, far, LT_FFT_COLUMNS, LT_FFT_COLUMNS, x, x, yr, yi, w);
  else
    NAME(pass8)(false, true, m, far, LT_FFT_COLUMNS, LT_FFT_COLUMNS, x, x, yr, yi, w);
}
#endif

static void NAME(pass)(int radix, int64_t m, int64_t far, int64_t run, int64_t width, const T *xr,
                       const T *xi, T *yr, T *yi, const T *w) {
  switch (radix) {
  case 2:
    NAME(pass2)(m, far, run, width, xr, xi, yr, yi, w);
    break;
  case 3:
    NAME(pass3)(m, far, run, width, xr, xi, yr, yi, w);
    break;
  case 4:
    SPECIALIZED(NAME(pass4))
    break;
  case 5:
    NAME(pass5)(m, far, run, width, xr, xi, yr, yi, w);
    break;
  case 7:
    NAME(pass7)(m, far, run, width, xr, xi, yr, yi, w);
    break;
  case 8:
    SPECIALIZED(NAME(pass8))
    break;
  default:
    NAME(pass_odd)(radix, m, far, run, width, xr, xi, yr, yi, w);
  }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Lanes that are 1 or 2 numbers apart are adjacent real or complex numbers. Otherwise lines are
 * copied in pieces of a cache line. */
#define TILE  16
#define AHEAD 16 /* rows that are prefetched, as far rows are not by the machine */

static void NAME(gather)(const T *x, int64_t step, int64_t lane, int64_t n, int64_t lanes, T *y) {
  if (lane <= 2 || lanes == 1) {
    for (int64_t k = 0; k < n; k++) {
      const T *from = x + k * step;
      T *to = y + k * lanes;
      __builtin_prefetch(x + (k + AHEAD < n ? k + AHEAD : k) * step);
      if (lane == 1)
        for (int64_t b = 0; b < lanes; b++) to[b] = from[b];
      else
        for (int64_t b = 0; b < lanes; b++) to[b] = from[2 * b];
    }
    return;
  }
  for (int64_t first = 0; first < n; first += TILE) {
    int64_t last = first + TILE < n ? first + TILE : n;
    for (int64_t b = 0; b < lanes; b++)
      for (int64_t k = first; k < last; k++) y[k * lanes + b] = x[b * lane + k * step];
  }
}

static void NAME(scatter)(const T *x, T scale, int64_t n, int64_t lanes, T *y, int64_t step,
                          int64_t lane) {
  if (lane <= 2 || lanes == 1) {
    for (int64_t k = 0; k < n; k++) {
      const T *from = x + k * lanes;
      T *to = y + k * step;
      __builtin_prefetch(y + (k + AHEAD < n ? k + AHEAD : k) * step, 1);
      if (lane == 1)
        for (int64_t b = 0; b < lanes; b++) to[b] = scale * from[b];
      else
        for (int64_t b = 0; b < lanes; b++) to[2 * b] = scale * from[b];
    }
    return;
  }
  for (int64_t first = 0; first < n; first += TILE) {
    int64_t last = first + TILE < n ? first + TILE : n;
    for (int64_t b = 0; b < lanes; b++)
      for (int64_t k = first; k < last; k++) y[b * lane + k * step] = scale * x[k * lanes + b];
  }
}

/* Copies the pairs that are not in squares: k from from_k on, and all of the lanes from from_b
 * on. */
#define EACH_REST(copy)                                                                            \
  for (int64_t first = 0; first < n; first += TILE) {                                              \
    int64_t last = first + TILE < n ? first + TILE : n, rest = from_k > first ? from_k : first;    \
    for (int64_t b = 0; b < lanes; b++)                                                            \
      for (int64_t k = b < from_b ? rest : first; k < last; k++) {                                 \
        copy                                                                                       \
      }                                                                                            \
  }

/* Short lines are copied one number after the other: after instructions with 64 bytes, others are
 * slower for some time. */
#define IS_ONE_LINE (lanes == 1 && step == 2 && n > 128)

static void NAME(gather_pairs)(const T *x, int64_t step, int64_t lane, int64_t n, int64_t lanes,
                               T *yr, T *yi) {
  if (IS_ONE_LINE) lanes = n, lane = 2, n = 1; /* its numbers are lanes */
  if (lane == 2) {
    for (int64_t k = 0; k < n; k++) {
      const T *restrict from = x + k * step;
      T *restrict re = yr + k * lanes, *restrict im = yi + k * lanes;
      for (int64_t b = 0; k + AHEAD < n && b < lanes; b += TILE / 2)
        __builtin_prefetch(from + AHEAD * step + 2 * b);
      for (int64_t b = 0; b < lanes; b++) re[b] = from[2 * b], im[b] = from[2 * b + 1];
    }
    return;
  }
  int64_t from_b = 0, from_k = 0;
#if SQUARES
  if (step == 2) {
    separate_squares(x, lane, n, lanes, yr, yi);
    from_b = lanes & ~7, from_k = n & ~7;
  }
#endif
  EACH_REST(yr[k * lanes + b] = x[b * lane + k * step];
            yi[k * lanes + b] = x[b * lane + k * step + 1];)
}

static void NAME(scatter_pairs)(const T *xr, const T *xi, T scale, int64_t n, int64_t lanes, T *y,
                                int64_t step, int64_t lane) {
  if (IS_ONE_LINE) lanes = n, lane = 2, n = 1;
  if (lane == 2) {
    for (int64_t k = 0; k < n; k++) {
      const T *restrict re = xr + k * lanes, *restrict im = xi + k * lanes;
      T *restrict to = y + k * step;
      for (int64_t b = 0; b < lanes; b++) to[2 * b] = scale * re[b], to[2 * b + 1] = scale * im[b];
    }
    return;
  }
  int64_t from_b = 0, from_k = 0;
#if SQUARES
  if (step == 2) {
    combine_squares(xr, xi, scale, n, lanes, y, lane);
    from_b = lanes & ~7, from_k = n & ~7;
  }
#endif
  EACH_REST(y[b * lane + k * step] = scale * xr[k * lanes + b];
            y[b * lane + k * step + 1] = scale * xi[k * lanes + b];)
}
#undef EACH_REST
#undef IS_ONE_LINE
#undef TILE

/* ---- products with factors ------------------------------------------------------------------- */

static void NAME(multiply)(int64_t n, int64_t lanes, const T *xr, const T *xi, const T *w, T *yr,
                           T *yi) {
  for (int64_t k = 0; k < n; k++) {
    const T wr = w[2 * k], wi = w[2 * k + 1];
#pragma omp simd
    for (int64_t i = k * lanes; i < (k + 1) * lanes; i++) {
      T re, im;
      PRODUCT(re, im, xr[i], xi[i], wr, wi)
      yr[i] = re;
      yi[i] = im;
    }
  }
}

static void NAME(twist)(int64_t rows, int64_t lanes, int64_t first, int bits, const double *high,
                        const double *low, int64_t width, const double *turns, T *xr, T *xi) {
  int64_t mask = ((int64_t)1 << bits) - 1;
  for (int64_t k = 0; k < rows; k++, turns += 2 * width, xr += lanes, xi += lanes) {
    const double *h = high + 2 * (k * first >> bits), *l = low + 2 * (k * first & mask);
    const double cr = h[0] * l[0] - h[1] * l[1], ci = h[0] * l[1] + h[1] * l[0];
    const double *restrict tr = turns, *restrict ti = turns + width;
#pragma omp simd
    for (int64_t b = 0; b < lanes; b++) {
      T wr = (T)(cr * tr[b] - ci * ti[b]), wi = (T)(cr * ti[b] + ci * tr[b]), re, im;
      PRODUCT(re, im, xr[b], xi[b], wr, wi)
      xr[b] = re;
      xi[b] = im;
    }
  }
}

/* ---- real numbers ---------------------------------------------------------------------------- */

static void NAME(untangle)(int64_t h, int64_t lanes, const T *zr, const T *zi, const T *w, T *yr,
                           T *yi) {
  const T half = (T)0.5;
  for (int64_t k = 0; k <= h; k++) {
    const int64_t a = k == h ? 0 : k * lanes, z = k == 0 ? 0 : (h - k) * lanes; /* modulo h */
    const T *ar = zr + a, *ai = zi + a, *br = zr + z, *bi = zi + z;
    const T wr = w[2 * k], wi = w[2 * k + 1];
#pragma omp simd
    for (int64_t b = 0; b < lanes; b++) {
      T er = half * (ar[b] + br[b]), ei = half * (ai[b] - bi[b]);
      T tr = half * (ai[b] + bi[b]), ti = half * (br[b] - ar[b]);
      yr[k * lanes + b] = MADD(wr, tr, MADD(-wi, ti, er));
      yi[k * lanes + b] = MADD(wr, ti, MADD(wi, tr, ei));
    }
  }
}

static void NAME(tangle)(int64_t h, int64_t lanes, const T *xr, const T *xi, const T *w, T *zr,
                         T *zi) {
  for (int64_t k = 0; k < h; k++) {
    const T *ar = xr + k * lanes, *ai = xi + k * lanes;
    const T *br = xr + (h - k) * lanes, *bi = xi + (h - k) * lanes;
    const T wr = w[2 * k], wi = -w[2 * k + 1], keep = k != 0;
#pragma omp simd
    for (int64_t b = 0; b < lanes; b++) {
      T p = keep != 0 ? ai[b] : 0, q = keep != 0 ? bi[b] : 0;
      T er = ar[b] + br[b], ei = p - q, dr = ar[b] - br[b], di = p + q;
      zr[k * lanes + b] = MADD(-dr, wi, MADD(-di, wr, er));
      zi[k * lanes + b] = MADD(dr, wr, MADD(-di, wi, ei));
    }
  }
}

static void NAME(reverse_conjugates)(int64_t n, const T *x, T *y) {
  int64_t k = 0;
#if SQUARES
  for (; k + FV_N / 2 <= n; k += FV_N / 2)
    store_vector(y + 2 * k, reversed_conjugates(FV_LOAD(x + 2 * (n - k) - FV_N)));
#endif
  for (; k < n; k++) {
    y[2 * k] = x[2 * (n - 1 - k)];
    y[2 * k + 1] = -x[2 * (n - 1 - k) + 1];
  }
}
#undef NAME
#undef MADD
#undef AR
#undef AI
#undef PRODUCT
#undef PUT
#undef SPECIALIZED
#undef GROUP_ROWS
