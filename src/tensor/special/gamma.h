/* gamma.h: the gamma function's relatives, in double; see special.h. */

LT_SPECIAL double lt_lgamma(double x) { return lgamma(x); }

/* The derivative of log Gamma: reflection (5.5.4) and recurrence (5.5.2) to x >= 10, then the
 * asymptotic series (5.11.2). */
LT_SPECIAL double lt_digamma(double x) {
  if (x == 0) return copysign((double)INFINITY, -x);
  double shift = 0;
  if (x < 0) {
    if (x == floor(x)) return NAN;
    double part = x - rint(x); /* exact: the tangent has period 1 in x */
    shift = -LT_PI / tan(LT_PI * part);
    x = 1 - x;
  }
  if (isinf(x)) return x;
  for (; x < 10; x += 1) shift -= 1 / x;
  double z = 1 / (x * x);
  double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return shift + (log(x) - 0.5 / x - series);
}

/* The second derivative of log Gamma: reflection (5.15.6) and recurrence to x >= 12, then the
 * asymptotic series (5.15.8). */
LT_SPECIAL double lt_trigamma(double x) {
  if (x <= 0) {
    double part = fabs(x) < 0x1p52 ? x - rint(x) : 0;
    if (part == 0) return INFINITY;
    double sine = sin(LT_PI * part) / LT_PI;
    return 1 / (sine * sine) - lt_trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 12; x += 1) sum += 1 / (x * x);
  double i = 1 / x, z = i * i;
  double series =
      i * z *
      (1.0 / 6 -
       z * (1.0 / 30 -
            z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * (7.0 / 6)))))));
  return sum + (i + 0.5 * z + series);
}

/* Hurwitz's zeta function for q > 0, by Euler's and Maclaurin's formula (25.11.5). */
LT_SPECIAL double lt_zeta_above(double s, double q) {
  /* (2 k)! / B(2 k) */
  static const double factor[12] = {12.0,
                                    -720.0,
                                    30240.0,
                                    -1209600.0,
                                    47900160.0,
                                    -1892437580.3183791606367583212735,
                                    74724249600.0,
                                    -2950130727918.1642244954382084600,
                                    116467828143500.67248729113000661,
                                    -4597978722407472.6105457273596738,
                                    181521054019435467.73425331153534,
                                    -7166165256175667011.3346447367083};
  double sum = pow(q, -s), term = sum;
  for (int i = 0; i < 9 || q <= 9; i++) {
    if (i > 0 && term < 1e-17 * sum) return sum;
    q += 1;
    term = pow(q, -s);
    sum += term;
  }
  sum += term * q / (s - 1) - 0.5 * term;
  double rising = 1, k = 0;
  for (int i = 0; i < 12; i++) {
    rising *= s + k;
    term /= q;
    double more = rising * term / factor[i];
    sum += more;
    if (fabs(more) <= 1e-17 * fabs(sum)) break;
    k += 1;
    rising *= s + k;
    k += 1;
    term /= q;
  }
  return sum;
}

/* Hurwitz's zeta function: the sum of (q + k)^-s over k >= 0. For q < 0 and an integer s, the sum
 * over all integers k is split: it does not change where 1 is added to q. */
LT_SPECIAL double lt_zeta(double s, double q) {
  if (s != s || q != q) return s + q;
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q > 0) return lt_zeta_above(s, q);
  if (q == floor(q)) return INFINITY;
  if (s != floor(s)) return NAN;
  double part = q - floor(q), sign = fmod(s, 2.0) == 0 ? 1 : -1;
  return lt_zeta_above(s, part) + sign * (lt_zeta_above(s, 1 - part) - lt_zeta_above(s, 1 - q));
}

/* The derivative of order n of digamma (5.15.1). */
LT_SPECIAL double lt_polygamma(double x, double n) {
  if (n == 0) return lt_digamma(x);
  if (n == 1) return lt_trigamma(x);
  double sign = fmod(n, 2.0) == 0 ? -1 : 1;
  return sign * exp(lgamma(n + 1)) * lt_zeta(n + 1, x);
}

/* ---- incomplete gamma functions -------------------------------------------------------------- */

/* log(1 + m) - m, without cancellation. */
LT_SPECIAL double lt_log1p_rest(double m) {
  if (fabs(m) > 0.3) return log1p(m) - m;
  double power = m, sum = 0;
  for (int k = 2; k < 60; k++) {
    power *= -m;
    double term = power / k;
    sum += term;
    if (fabs(term) <= 1e-17 * fabs(sum)) break;
  }
  return sum;
}

/* x^a e^-x / Gamma(a + 1). For large a by Stirling's formula, whose terms do not cancel (Loader
 * 2000, "Fast and accurate computation of binomial probabilities"). */
LT_SPECIAL double lt_gamma_density(double a, double x) {
  if (a < 10) return exp(a * log(x) - x - lgamma(a + 1));
  double z = 1 / (a * a);
  double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680)))) / a;
  return exp(a * lt_log1p_rest((x - a) / a) - stirling) / sqrt(2 * LT_PI * a);
}

/* P(a, x), by its series (8.11.4). */
LT_SPECIAL double lt_gamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 20000 && term > 1e-17 * sum; k++) sum += term *= x / (a + k);
  return sum * lt_gamma_density(a, x);
}

/* Q(a, x), by its continued fraction (8.9.2) with Lentz's method. */
LT_SPECIAL double lt_gamma_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 20000; k++) {
    double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    c = b + an / c;
    c = fabs(c) < 1e-300 ? 1e-300 : c;
    h *= d * c;
    if (fabs(d * c - 1) < 1e-16) break;
  }
  return h * a * lt_gamma_density(a, x);
}

/* Q(a, x) for large a, by Temme's uniform expansion (8.12.4), whose terms of order 1/a^2 are less
 * than the rounding errors; P(a, x) where `lower`. */
LT_SPECIAL double lt_gamma_uniform(double a, double x, int lower) {
  double m = (x - a) / a, half = -lt_log1p_rest(m); /* eta^2 / 2 */
  double eta = copysign(sqrt(2 * half), m);
  double c0 = fabs(eta) < 0.01 ? -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta / 864))
                               : 1 / m - 1 / eta;
  double c1 = -1.0 / 540 - eta / 288;
  double rest = exp(-a * half) / sqrt(2 * LT_PI * a) * (c0 + c1 / a);
  double tail = eta * sqrt(a / 2);
  return lower ? 0.5 * erfc(-tail) - rest : 0.5 * erfc(tail) + rest;
}

/* The regularized incomplete gamma functions: P(a, x) where `lower`, else Q(a, x). */
LT_SPECIAL double lt_incomplete_gamma(double a, double x, int lower) {
  if (a != a || x != x || a < 0 || x < 0) return NAN;
  if (a == 0) return x > 0 ? lower : NAN;
  if (x == 0) return !lower;
  if (isinf(a)) return isinf(x) ? NAN : !lower;
  if (isinf(x)) return lower;
  if (a > 1e6 && fabs(x - a) < 0.4 * a) return lt_gamma_uniform(a, x, lower);
  if (x < a + 1 || (x < 1.5 && a < 1)) {
    double p = lt_gamma_series(a, x);
    /* Q of small a and x: P is near 1, and x^a near Gamma(a + 1) */
    return lower ? p : 1 - p;
  }
  double q = lt_gamma_fraction(a, x);
  return lower ? 1 - q : q;
}
LT_SPECIAL double lt_igamma(double a, double x) { return lt_incomplete_gamma(a, x, 1); }
LT_SPECIAL double lt_igammac(double a, double x) { return lt_incomplete_gamma(a, x, 0); }
