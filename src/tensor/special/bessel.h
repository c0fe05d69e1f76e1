/* bessel.h: Bessel functions that the C library does not have, and Airy's function, in double; see
 * special.h. */

/* e^-|x| I(order, x) for order 0 and 1: the power series (10.25.2), whose terms are positive, or
 * for large x the asymptotic series (10.40.1). */
LT_SPECIAL double lt_bessel_ie(double x, int order) {
  double size = fabs(x), term = 1, sum = 1;
  if (x != x) return x;
  if (size < 25) {
    double z = size * size / 4;
    for (int k = 1; k < 200 && term > 1e-17 * sum; k++)
      sum += term *= z / (k * (double)(k + order));
    sum *= exp(-size) * (order ? size / 2 : 1);
  } else {
    for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) {
      double odd = 2 * k - 1;
      sum += term *= -(4 * order - odd * odd) / (k * 8 * size);
    }
    sum /= sqrt(2 * LT_PI * size);
  }
  return order && x < 0 ? -sum : sum;
}

LT_SPECIAL double lt_i0e(double x) { return lt_bessel_ie(x, 0); }
LT_SPECIAL double lt_i1e(double x) { return lt_bessel_ie(x, 1); }

/* Multiplies e^-|x| I(x) by e^|x|, in two steps that do not overflow before the result does. */
LT_SPECIAL double lt_bessel_grown(double x, double scaled) {
  double grown = exp(0.5 * fabs(x));
  return isinf(x) ? x * copysign(1.0, x) * copysign(1.0, scaled) : scaled * grown * grown;
}
LT_SPECIAL double lt_i0(double x) { return lt_bessel_grown(x, lt_i0e(x)); }
LT_SPECIAL double lt_i1(double x) { return lt_bessel_grown(x, lt_i1e(x)); }

/* e^x K(order, x) for order 0 and 1. Up to 2 the series (10.31.1) and (10.31.2), from 25 on the
 * asymptotic series (10.40.2), between them the integral (10.32.9) by the trapezoidal rule, which
 * converges exponentially. */
LT_SPECIAL double lt_bessel_ke(double x, int order) {
  if (!(x >= 0)) return NAN;
  if (x == 0) return INFINITY;
  if (x <= 2) {
    double z = x * x / 4, power = 1, psi = -LT_EULER, sum = 0, grown = 0;
    for (int k = 0; k < 40; k++) {
      double next = psi + 1.0 / (k + 1);
      sum += power * (order ? psi + next : psi);
      grown += power;
      power *= z / ((k + 1) * (double)(k + 1 + order));
      psi = next;
    }
    double l = log(x / 2);
    return exp(x) * (order ? 1 / x + l * grown * x / 2 - x / 4 * sum : sum - l * grown);
  }
  double sum = 0, term = 1;
  if (x < 25) {
    double h = 0.1;
    for (int k = 0; k < 60; k++) {
      double t = k * h, s = sinh(t / 2);
      double value = exp(-2 * x * s * s) * (order ? 1 + 2 * s * s : 1);
      sum += k ? value : value / 2;
      if (value < 1e-18 * sum) break;
    }
    return sum * h;
  }
  if (isinf(x)) return 0;
  sum = 1;
  for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) {
    double odd = 2 * k - 1;
    sum += term *= (4 * order - odd * odd) / (k * 8 * x);
  }
  return sum * sqrt(LT_PI / (2 * x));
}
LT_SPECIAL double lt_k0e(double x) { return lt_bessel_ke(x, 0); }
LT_SPECIAL double lt_k1e(double x) { return lt_bessel_ke(x, 1); }
LT_SPECIAL double lt_k0(double x) { return exp(-x) * lt_bessel_ke(x, 0); }
LT_SPECIAL double lt_k1(double x) { return exp(-x) * lt_bessel_ke(x, 1); }

/* The C library's. */
LT_SPECIAL double lt_j0(double x) { return j0(x); }
LT_SPECIAL double lt_j1(double x) { return j1(x); }
/* The C library's, without its errors at 0 and below. */
LT_SPECIAL double lt_y0(double x) { return x > 0 ? y0(x) : x == 0 ? -INFINITY : NAN; }
LT_SPECIAL double lt_y1(double x) { return x > 0 ? y1(x) : x == 0 ? -INFINITY : NAN; }

LT_SPECIAL double lt_spherical_j0(double x) { return isinf(x) ? 0 : x == 0 ? 1 : sin(x) / x; }

/* Airy's function Ai: the integral (9.5.4) on a path of steepest descent, by the trapezoidal rule;
 * below -9 the asymptotic series (9.7.9). */
LT_SPECIAL double lt_airy_ai(double x) {
  if (x != x) return x;
  if (isinf(x) || x > 120) return 0;
  if (x >= -9) {
    /* on the path t + i height: e^(height^3 / 3 - x height) / pi times the integral of
     * e^(-height t^2) cos(t^3 / 3 + (x - height^2) t) over t > 0 */
    double height = x > 1 ? sqrt(x) : x < -3 ? 0.5 : 1, h = 0.05, sum = 0.5;
    for (int k = 1; k < 400; k++) {
      double t = k * h, size = exp(-height * t * t);
      if (size < 1e-18) break;
      sum += size * cos(t * (t * t / 3 + x - height * height));
    }
    return exp(height * (height * height / 3 - x)) / LT_PI * sum * h;
  }
  double size = -x, zeta = 2.0 / 3 * size * sqrt(size), z = 1 / zeta, even = 0, odd = 0, u = 1;
  for (int k = 0; k < 24; k++) {
    double turned = k % 4 < 2 ? u : -u;
    if (k % 2)
      odd += turned;
    else
      even += turned;
    double next = u * z * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216.0 * (k + 1) * (2 * k + 1));
    if (next > u || next < 1e-17) break;
    u = next;
  }
  double angle = zeta - LT_PI / 4;
  return (cos(angle) * even + sin(angle) * odd) / (LT_SQRT_PI * sqrt(sqrt(size)));
}
