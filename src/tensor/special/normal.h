/* normal.h: the error function's and the normal distribution's relatives, in double; see
 * special.h. */

/* e^(x^2) erfc(x). Below 10 the rounding error of x^2 is corrected; above, the asymptotic series
 * (7.12.1). */
LT_SPECIAL double lt_erfcx(double x) {
  if (x < 10) {
    if (x < -26.7) return INFINITY;
    double square = x * x, rest = fma(x, x, -square);
    double grown = exp(square);
    return (grown + grown * rest) * erfc(x);
  }
  double z = 0.5 / (x * x), term = 1, sum = 1;
  for (int k = 1; k < 12; k++) sum += term *= -(2 * k - 1) * z;
  return x != x ? x : sum / (x * LT_SQRT_PI);
}

LT_SPECIAL double lt_ndtr(double x) { return 0.5 * erfc(-x / LT_SQRT_2); }

LT_SPECIAL double lt_log_ndtr(double x) {
  double t = x / LT_SQRT_2;
  return x < -1 ? log(0.5 * lt_erfcx(-t)) - t * t : log1p(-0.5 * erfc(t));
}

/* Returns an approximation of the inverse of erf at x > 0, whose error is below 0.002, from `l`,
 * which is log(1 - x^2) (Winitzki 2008). */
LT_SPECIAL double lt_erfinv_about(double l) {
  double a = 0.147, t = 2 / (LT_PI * a) + 0.5 * l;
  return sqrt(sqrt(t * t - l / a) - t);
}

/* Returns v with erfc(v) = q for 0 < q <= 1: two or three of Halley's steps, relative to q. */
LT_SPECIAL double lt_erfcinv(double q) {
  double v = lt_erfinv_about(log(q * (2 - q)));
  for (int i = 0; i < 3; i++) {
    double step = (erfc(v) - q) * (0.5 * LT_SQRT_PI) * exp(v * v);
    v += step / (1 - v * step);
  }
  return v;
}

/* The inverse of erf. */
LT_SPECIAL double lt_erfinv(double x) {
  double size = fabs(x), v;
  if (!(size <= 1)) return NAN;
  if (size == 1) return copysign((double)INFINITY, x);
  if (size > 0.5) return copysign(lt_erfcinv(1 - size), x);
  if (size < 1e-5) return x * (0.5 * LT_SQRT_PI) * (1 + x * x * (LT_PI / 12));
  v = lt_erfinv_about(log1p(-size * size));
  for (int i = 0; i < 2; i++) {
    double step = (erf(v) - size) * (0.5 * LT_SQRT_PI) * exp(v * v);
    v -= step / (1 + v * step);
  }
  return copysign(v, x);
}

/* The inverse of the normal distribution function. */
LT_SPECIAL double lt_ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (p < 0.25) return -LT_SQRT_2 * lt_erfcinv(2 * p);
  if (p > 0.75) return LT_SQRT_2 * lt_erfcinv(2 * (1 - p));
  return LT_SQRT_2 * lt_erfinv(2 * p - 1);
}
