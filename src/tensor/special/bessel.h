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
    for (int k = 0; k < 40 && power > 1e-20; k++) {
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

/* Ai(x) for |x| >= 9.25: the asymptotic series (9.7.5) and (9.7.9). */
LT_SPECIAL double lt_airy_far(double x) {
  double size = fabs(x), zeta = 2.0 / 3 * size * sqrt(size), z = 1 / zeta, even = 0, odd = 0, u = 1;
  int turns = x < 0; /* whether the signs change every second term, or the series is a difference */
  if (isinf(x)) return 0;
  for (int k = 0; k < 24; k++) {
    double turned = turns && k % 4 >= 2 ? -u : u;
    if (k % 2)
      odd += turned;
    else
      even += turned;
    double next = u * z * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216.0 * (k + 1) * (2 * k + 1));
    if (next > u || next < 1e-17) break;
    u = next;
  }
  double scale = 1 / (LT_SQRT_PI * sqrt(sqrt(size))), angle = zeta - LT_PI / 4;
  if (!turns) return exp(-zeta) * (even - odd) * 0.5 * scale;
  return (cos(angle) * even + sin(angle) * odd) * scale;
}

/* Airy's function Ai. Its equation y'' = x y gives the Taylor series at any point from Ai and Ai'
 * there: that of the nearest multiple of 1/2, up to the power 19. */
LT_SPECIAL double lt_airy_ai(double x) {
  static const double over[18] = {/* 1 / (k (k - 1)) from k = 2 on */
                                  1.0 / 2,   1.0 / 6,   1.0 / 12,  1.0 / 20,  1.0 / 30,  1.0 / 42,
                                  1.0 / 56,  1.0 / 72,  1.0 / 90,  1.0 / 110, 1.0 / 132, 1.0 / 156,
                                  1.0 / 182, 1.0 / 210, 1.0 / 240, 1.0 / 272, 1.0 / 306, 1.0 / 342};
  static const double at[39][2] = {/* Ai and Ai' of -9.5, -9, ..., 9.5 */
                                   {0.3191032477191282, -0.10809531881187124},
                                   {-0.022133721547341404, -0.97566398092633159},
                                   {-0.33029023763020888, -0.032313348284639136},
                                   {-0.052705050356386203, 0.93556093819830655},
                                   {0.32177571638064788, 0.3188095066985546},
                                   {0.18428083525050564, -0.77100816841012655},
                                   {-0.2380203019971158, -0.67495249251320217},
                                   {-0.32914517362982311, 0.34593548728134289},
                                   {0.017781541276574976, 0.86419721777139839},
                                   {0.35076100902411432, 0.32719281855444314},
                                   {0.29215278105595947, -0.5233625323157477},
                                   {-0.070265532949289515, -0.79062857536858138},
                                   {-0.37553382314043191, -0.34344343345404815},
                                   {-0.37881429367765807, 0.31458376921659881},
                                   {-0.11232506769296609, 0.67885273426479436},
                                   {0.22740742820168558, 0.61825902074169104},
                                   {0.46425657774886941, 0.30918696720241042},
                                   {0.53556088329235212, -0.010160567116645209},
                                   {0.47572809161053959, -0.20408167033954739},
                                   {0.35502805388781724, -0.2588194037928068},
                                   {0.23169360648083349, -0.22491053266468389},
                                   {0.13529241631288142, -0.15914744129679321},
                                   {0.07174949700810541, -0.097382012842301319},
                                   {0.034924130423274379, -0.053090384433653632},
                                   {0.01572592338047049, -0.02625088103590323},
                                   {6.5911393574607191e-3, -0.011912976705951318},
                                   {2.584098786989635e-3, -5.0044139679525828e-3},
                                   {9.5156385120480187e-4, -1.9586409502041789e-3},
                                   {3.3025032351430898e-4, -7.1786656755750889e-4},
                                   {1.0834442813607442e-4, -2.4741389086846248e-4},
                                   {3.3685311908599814e-5, -8.0463391305565143e-5},
                                   {9.9476943602528896e-6, -2.4765200397034955e-5},
                                   {2.7958823432049136e-6, -7.2319314666017926e-6},
                                   {7.4921288639971671e-7, -2.008150894738792e-6},
                                   {1.9172560675134308e-7, -5.3127139597205447e-7},
                                   {4.6922076160992316e-8, -1.3414392979067866e-7},
                                   {1.0997009755195507e-8, -3.2377254404476023e-8},
                                   {2.4711684308724898e-9, -7.4806413896589464e-9},
                                   {5.3302637046174916e-10, -1.6566394593740666e-9}};
  if (!(fabs(x) < 9.25)) return x != x ? x : lt_airy_far(x);
  double nearest = rint(2 * x), c = 0.5 * nearest, h = x - c;
  double two = c * h * h, three = h * h * h; /* factors of the terms two and three powers below */
  const double *start = at[(int)nearest + 19];
  double below = 0, even = start[0], odd = start[1] * h, sum = even + odd;
  for (int k = 0; k < 18; k += 2) {
    double next = (two * even + three * below) * over[k];
    below = odd;
    odd = (two * odd + three * even) * over[k + 1];
    even = next;
    sum += even + odd;
  }
  return sum;
}
