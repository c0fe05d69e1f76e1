/* fft_body.h: the loops of Fourier transforms for numbers of type T, with the suffix F.
 *
 * A pass of radix r combines the rows p, p + m, p + 2 m ... to the rows r p, r p + 1 ..., each
 * times a factor: the decimation in frequency of Stockham's transform (Van Loan, Computational
 * Frameworks for the Fast Fourier Transform, 1.7). */
#define NAME(f) LT_PASTE(f, F)

/* The rows of one group. */
#define GROUP_ROWS(r)                                                                              \
  const T *restrict ar = xr + p * run, *restrict ai = xi + p * run;                                \
  T *restrict br = yr + r * p * run, *restrict bi = yi + r * p * run;                              \
  const int64_t far = m * run;

static void NAME(pass2)(int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                        const T *w) {
  for (int64_t p = 0; p < m; p++, w += 2) {
    GROUP_ROWS(2)
    const T wr = w[0], wi = w[1];
#pragma omp simd
    for (int64_t i = 0; i < run; i++) {
      T pr = ar[i], pi = ai[i], qr = ar[far + i], qi = ai[far + i];
      T dr = pr - qr, di = pi - qi;
      br[i] = pr + qr;
      bi[i] = pi + qi;
      br[run + i] = wr * dr - wi * di;
      bi[run + i] = wr * di + wi * dr;
    }
  }
}

static void NAME(pass3)(int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                        const T *w) {
  const T half = (T)0.5, s = (T)0.86602540378443864676;
  for (int64_t p = 0; p < m; p++, w += 4) {
    GROUP_ROWS(3)
    const T w1r = w[0], w1i = w[1], w2r = w[2], w2i = w[3];
#pragma omp simd
    for (int64_t i = 0; i < run; i++) {
      T sr = ar[far + i] + ar[2 * far + i], si = ai[far + i] + ai[2 * far + i];
      T dr = s * (ar[far + i] - ar[2 * far + i]), di = s * (ai[far + i] - ai[2 * far + i]);
      T mr = ar[i] - half * sr, mi = ai[i] - half * si;
      T y1r = mr + di, y1i = mi - dr, y2r = mr - di, y2i = mi + dr;
      br[i] = ar[i] + sr;
      bi[i] = ai[i] + si;
      br[run + i] = w1r * y1r - w1i * y1i;
      bi[run + i] = w1r * y1i + w1i * y1r;
      br[2 * run + i] = w2r * y2r - w2i * y2i;
      bi[2 * run + i] = w2r * y2i + w2i * y2r;
    }
  }
}

static void NAME(pass4)(int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                        const T *w) {
  for (int64_t p = 0; p < m; p++, w += 6) {
    GROUP_ROWS(4)
    const T w1r = w[0], w1i = w[1], w2r = w[2], w2i = w[3], w3r = w[4], w3i = w[5];
#pragma omp simd
    for (int64_t i = 0; i < run; i++) {
      T er = ar[i] + ar[2 * far + i], ei = ai[i] + ai[2 * far + i];
      T fr = ar[i] - ar[2 * far + i], fi = ai[i] - ai[2 * far + i];
      T gr = ar[far + i] + ar[3 * far + i], gi = ai[far + i] + ai[3 * far + i];
      T hr = ar[far + i] - ar[3 * far + i], hi = ai[far + i] - ai[3 * far + i];
      T y1r = fr + hi, y1i = fi - hr, y2r = er - gr, y2i = ei - gi, y3r = fr - hi, y3i = fi + hr;
      br[i] = er + gr;
      bi[i] = ei + gi;
      br[run + i] = w1r * y1r - w1i * y1i;
      bi[run + i] = w1r * y1i + w1i * y1r;
      br[2 * run + i] = w2r * y2r - w2i * y2i;
      bi[2 * run + i] = w2r * y2i + w2i * y2r;
      br[3 * run + i] = w3r * y3r - w3i * y3i;
      bi[3 * run + i] = w3r * y3i + w3i * y3r;
    }
  }
}

static void NAME(pass5)(int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                        const T *w) {
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410;
  const T s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
  for (int64_t p = 0; p < m; p++, w += 8) {
    GROUP_ROWS(5)
#pragma omp simd
    for (int64_t i = 0; i < run; i++) {
      T pr = ar[far + i] + ar[4 * far + i], pi = ai[far + i] + ai[4 * far + i];
      T qr = ar[far + i] - ar[4 * far + i], qi = ai[far + i] - ai[4 * far + i];
      T ur = ar[2 * far + i] + ar[3 * far + i], ui = ai[2 * far + i] + ai[3 * far + i];
      T vr = ar[2 * far + i] - ar[3 * far + i], vi = ai[2 * far + i] - ai[3 * far + i];
      T er = ar[i] + c1 * pr + c2 * ur, ei = ai[i] + c1 * pi + c2 * ui;
      T fr = ar[i] + c2 * pr + c1 * ur, fi = ai[i] + c2 * pi + c1 * ui;
      T gr = s1 * qr + s2 * vr, gi = s1 * qi + s2 * vi;
      T hr = s2 * qr - s1 * vr, hi = s2 * qi - s1 * vi;
      T y1r = er + gi, y1i = ei - gr, y4r = er - gi, y4i = ei + gr;
      T y2r = fr + hi, y2i = fi - hr, y3r = fr - hi, y3i = fi + hr;
      br[i] = ar[i] + pr + ur;
      bi[i] = ai[i] + pi + ui;
      br[run + i] = w[0] * y1r - w[1] * y1i;
      bi[run + i] = w[0] * y1i + w[1] * y1r;
      br[2 * run + i] = w[2] * y2r - w[3] * y2i;
      bi[2 * run + i] = w[2] * y2i + w[3] * y2r;
      br[3 * run + i] = w[4] * y3r - w[5] * y3i;
      bi[3 * run + i] = w[4] * y3i + w[5] * y3r;
      br[4 * run + i] = w[6] * y4r - w[7] * y4i;
      bi[4 * run + i] = w[6] * y4i + w[7] * y4r;
    }
  }
}

static void NAME(pass8)(int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                        const T *w) {
  const T root = (T)0.70710678118654752440;
  for (int64_t p = 0; p < m; p++, w += 14) {
    GROUP_ROWS(8)
#define SUM_AND_DIFFERENCE(j)                                                                      \
  T s##j##r = ar[j * far + i] + ar[(j + 4) * far + i];                                             \
  T s##j##i = ai[j * far + i] + ai[(j + 4) * far + i];                                             \
  T d##j##r = ar[j * far + i] - ar[(j + 4) * far + i];                                             \
  T d##j##i = ai[j * far + i] - ai[(j + 4) * far + i];
#define PUT(k, re, im)                                                                             \
  {                                                                                                \
    T zr = re, zi = im;                                                                            \
    br[k * run + i] = w[2 * k - 2] * zr - w[2 * k - 1] * zi;                                       \
    bi[k * run + i] = w[2 * k - 2] * zi + w[2 * k - 1] * zr;                                       \
  }
#pragma omp simd
    for (int64_t i = 0; i < run; i++) {
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
#undef PUT
  }
}

/* Computes up to CHUNK columns of a group of an odd radix r: from the sums and differences of the
 * rows j and r - j, the rows k and r - k of the result. */
static void NAME(odd_columns)(int r, int64_t far, int64_t run, int64_t width, const T *ar,
                              const T *ai, T *br, T *bi, const T *w, const T *roots) {
  T sr[LT_FFT_RADIX / 2][CHUNK], si[LT_FFT_RADIX / 2][CHUNK];
  T dr[LT_FFT_RADIX / 2][CHUNK], di[LT_FFT_RADIX / 2][CHUNK];
  int half = (r - 1) / 2;
  T total_r[CHUNK], total_i[CHUNK];
  for (int64_t i = 0; i < width; i++) total_r[i] = ar[i], total_i[i] = ai[i];
  for (int j = 0; j < half; j++) {
    const T *pr = ar + (j + 1) * far, *qr = ar + (r - 1 - j) * far;
    const T *pi = ai + (j + 1) * far, *qi = ai + (r - 1 - j) * far;
    for (int64_t i = 0; i < width; i++) {
      sr[j][i] = pr[i] + qr[i], si[j][i] = pi[i] + qi[i];
      dr[j][i] = pr[i] - qr[i], di[j][i] = pi[i] - qi[i];
      total_r[i] += sr[j][i], total_i[i] += si[j][i];
    }
  }
  for (int64_t i = 0; i < width; i++) br[i] = total_r[i], bi[i] = total_i[i];
  for (int k = 1; k <= half; k++) {
    T er[CHUNK], ei[CHUNK], gr[CHUNK] = {0}, gi[CHUNK] = {0};
    for (int64_t i = 0; i < width; i++) er[i] = ar[i], ei[i] = ai[i];
    for (int j = 0, at = 0; j < half; j++) {
      at = (at + k) % r;
      const T c = roots[2 * at], s = roots[2 * at + 1];
#pragma omp simd
      for (int64_t i = 0; i < width; i++) {
        er[i] += c * sr[j][i], ei[i] += c * si[j][i];
        gr[i] += s * dr[j][i], gi[i] += s * di[j][i];
      }
    }
    const T *wk = w + 2 * (k - 1), *wl = w + 2 * (r - k - 1);
    T *kr = br + k * run, *ki = bi + k * run, *lr = br + (r - k) * run, *li = bi + (r - k) * run;
    for (int64_t i = 0; i < width; i++) {
      T ur = er[i] + gi[i], ui = ei[i] - gr[i], vr = er[i] - gi[i], vi = ei[i] + gr[i];
      kr[i] = wk[0] * ur - wk[1] * ui, ki[i] = wk[0] * ui + wk[1] * ur;
      lr[i] = wl[0] * vr - wl[1] * vi, li[i] = wl[0] * vi + wl[1] * vr;
    }
  }
}

static void NAME(pass_odd)(int r, int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                           const T *w) {
  const T *roots = w + 2 * (r - 1) * m;
  for (int64_t p = 0; p < m; p++, w += 2 * (r - 1))
    for (int64_t i = 0; i < run; i += CHUNK) NAME(odd_columns)
  (r, m * run, run, run - i < CHUNK ? run - i : CHUNK, xr + p * run + i, xi + p * run + i,
   yr + r * p * run + i, yi + r * p * run + i, w, roots);
}

static void NAME(pass)(int radix, int64_t m, int64_t run, const T *xr, const T *xi, T *yr, T *yi,
                       const T *w) {
  switch (radix) {
  case 2:
    NAME(pass2)(m, run, xr, xi, yr, yi, w);
    break;
  case 3:
    NAME(pass3)(m, run, xr, xi, yr, yi, w);
    break;
  case 4:
    NAME(pass4)(m, run, xr, xi, yr, yi, w);
    break;
  case 5:
    NAME(pass5)(m, run, xr, xi, yr, yi, w);
    break;
  case 8:
    NAME(pass8)(m, run, xr, xi, yr, yi, w);
    break;
  default:
    NAME(pass_odd)(radix, m, run, xr, xi, yr, yi, w);
  }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Lanes that are 1 or 2 numbers apart are adjacent real or complex numbers. Otherwise lines are
 * copied in pieces of a cache line. */
#define TILE 16

static void NAME(gather)(const T *x, int64_t step, int64_t lane, int64_t n, int64_t lanes, T *y) {
  if (lane <= 2 || lanes == 1) {
    for (int64_t k = 0; k < n; k++) {
      const T *from = x + k * step;
      T *to = y + k * lanes;
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

static void NAME(gather_pairs)(const T *x, int64_t step, int64_t lane, int64_t n, int64_t lanes,
                               T *yr, T *yi) {
  if (lane == 2) {
    for (int64_t k = 0; k < n; k++) {
      const T *restrict from = x + k * step;
      T *restrict re = yr + k * lanes, *restrict im = yi + k * lanes;
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
#undef TILE

/* ---- products with factors ------------------------------------------------------------------- */

static void NAME(multiply)(int64_t n, int64_t lanes, const T *xr, const T *xi, const T *w, T *yr,
                           T *yi) {
  for (int64_t k = 0; k < n; k++) {
    const T wr = w[2 * k], wi = w[2 * k + 1];
#pragma omp simd
    for (int64_t i = k * lanes; i < (k + 1) * lanes; i++) {
      T re = xr[i] * wr - xi[i] * wi, im = xr[i] * wi + xi[i] * wr;
      yr[i] = re;
      yi[i] = im;
    }
  }
}

static void NAME(twist)(int64_t rows, int64_t lanes, int64_t first, int bits, const double *high,
                        const double *low, T *xr, T *xi) {
  int64_t mask = ((int64_t)1 << bits) - 1;
  for (int64_t k = 0; k < rows; k++)
    for (int64_t b = 0; b < lanes; b++) {
      int64_t j = k * (first + b), i = k * lanes + b;
      const double *h = high + 2 * (j >> bits), *l = low + 2 * (j & mask);
      T wr = (T)(h[0] * l[0] - h[1] * l[1]), wi = (T)(h[0] * l[1] + h[1] * l[0]);
      T re = xr[i] * wr - xi[i] * wi, im = xr[i] * wi + xi[i] * wr;
      xr[i] = re;
      xi[i] = im;
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
      yr[k * lanes + b] = er + (wr * tr - wi * ti);
      yi[k * lanes + b] = ei + (wr * ti + wi * tr);
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
      T tr = dr * wr - di * wi, ti = dr * wi + di * wr;
      zr[k * lanes + b] = er - ti;
      zi[k * lanes + b] = ei + tr;
    }
  }
}
#undef NAME
#undef GROUP_ROWS
