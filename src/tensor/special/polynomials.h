/* polynomials.h: orthogonal polynomials, in double; see special.h. The degree is truncated to an
 * integer; a polynomial of a negative degree is 0. */

/* Chebyshev polynomials of the four kinds: T, U, V, W. They have the same recurrence (18.9.1) from
 * 1 and a x + b; within (-1, 1) those of a high degree are quotients of sines and cosines (18.5.1
 * to 18.5.4). */
LT_SPECIAL double lt_chebyshev(double x, double n, double a, double b) {
  n = trunc(n);
  if (!(n >= 0)) return 0;
  if (n == 0) return 1;
  if (n > 64 && fabs(x) < 1) {
    double angle = acos(x);
    if (a == 1) return cos(n * angle);
    if (b == 0) return sin((n + 1) * angle) / sin(angle);
    if (b < 0) return cos((n + 0.5) * angle) / cos(0.5 * angle);
    return sin((n + 0.5) * angle) / sin(0.5 * angle);
  }
  if (x == 1 || x == -1) {
    double size = a == 1 ? 1 : b == 0 ? n + 1 : (b > 0) == (x > 0) ? 2 * n + 1 : 1;
    return x > 0 || fmod(n, 2.0) == 0 ? size : -size;
  }
  double before = 1, value = a * x + b;
  for (double k = 2; k <= n && value - value == 0; k += 1) {
    double next = 2 * x * value - before;
    before = value;
    value = next;
  }
  return value;
}

/* Hermite polynomials: H with factor 2, He with factor 1 (18.9.1). */
LT_SPECIAL double lt_hermite(double x, double n, double factor) {
  n = trunc(n);
  if (!(n >= 0) || isinf(n)) return 0;
  if (n > 512) return NAN;
  double before = 0, value = 1;
  for (double k = 0; k < n; k += 1) {
    double next = factor * (x * value - k * before);
    before = value;
    value = next;
  }
  return value;
}

/* Laguerre polynomials; of a degree above 10^6, and x > 0, by Fejer's asymptotic formula
 * (18.15.19). */
LT_SPECIAL double lt_laguerre(double x, double n) {
  n = trunc(n);
  if (!(n >= 0)) return 0;
  if (x == 0) return 1;
  if (n > 1e6 && x > 0)
    return exp(x / 2) / (LT_SQRT_PI * sqrt(sqrt(n * x))) * cos(2 * sqrt(n * x) - LT_PI / 4);
  double before = 0, value = 1;
  for (double k = 0; k < n && value - value == 0; k += 1) {
    double next = ((2 * k + 1 - x) * value - k * before) / (k + 1);
    before = value;
    value = next;
  }
  return value;
}

/* Legendre polynomials; of a degree above 10^6, within (-1, 1), by the asymptotic formula of
 * Laplace and Heine (18.15.12). */
LT_SPECIAL double lt_legendre(double x, double n) {
  n = trunc(n);
  if (!(n >= 0)) return 0;
  if (x == 1 || x == -1) return x > 0 || fmod(n, 2.0) == 0 ? 1 : -1;
  if (n > 1e6 && fabs(x) < 1) {
    double angle = acos(x);
    return sqrt(2 / (LT_PI * n * sin(angle))) * cos((n + 0.5) * angle - LT_PI / 4);
  }
  double before = 0, value = 1;
  for (double k = 0; k < n && value - value == 0; k += 1) {
    double next = ((2 * k + 1) * x * value - k * before) / (k + 1);
    before = value;
    value = next;
  }
  return value;
}

/* The polynomials by number: the names of special_polynomials in lib/lutra/ops/special.lua. */
LT_SPECIAL double lt_polynomial(double x, double n, double kind) {
  switch ((int)kind) {
  case 1:
    return lt_chebyshev(x, n, 1, 0);
  case 2:
    return lt_chebyshev(x, n, 2, 0);
  case 3:
    return lt_chebyshev(x, n, 2, -1);
  case 4:
    return lt_chebyshev(x, n, 2, 1);
  case 5:
    return lt_chebyshev(2 * x - 1, n, 1, 0);
  case 6:
    return lt_chebyshev(2 * x - 1, n, 2, 0);
  case 7:
    return lt_chebyshev(2 * x - 1, n, 2, -1);
  case 8:
    return lt_chebyshev(2 * x - 1, n, 2, 1);
  case 9:
    return lt_hermite(x, n, 2);
  case 10:
    return lt_hermite(x, n, 1);
  case 11:
    return lt_laguerre(x, n);
  default:
    return lt_legendre(x, n);
  }
}
