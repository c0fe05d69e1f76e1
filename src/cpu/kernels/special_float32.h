/* special_float32.h: the float32 loops' functions of rows of type WF, which compute in double as
 * those of special.h, but to the digits that float32 needs, and without branches. Written as
 * activations.h. */
#ifndef LT_CPU_SPECIAL_FLOAT32_H
#define LT_CPU_SPECIAL_FLOAT32_H

#include "activations.h"

/* ---- in double ------------------------------------------------------------------------------- */

/* Returns the lesser or the greater one; x if that is NaN. */
LT_MATHS double lt_not_over(double x, double most) { return x > most ? most : x; }
LT_MATHS double lt_not_under(double x, double least) { return x < least ? least : x; }

/* Returns 1 / sqrt(v) of a number in the range of float. */
LT_MATHS double lt_rsqrt_wide(double v) {
  double root = (double)(1 / sqrtf((float)v)); /* with one of Newton's steps */
  return root * MADDD(-0.5 * v * root, root, 1.5);
}

/* Returns e^x - 1, |x| <= 700. */
LT_MATHS double lt_expm1_wide(double x) {
  lt_ExpWide e = lt_exp_wide_parts(x);
  return MADDD(e.power, MADDD(e.q * e.r, e.r, e.r), e.power - 1);
}

/* Returns log(x) of a positive normal number, with lt_log1p_tail's error in float. */
LT_MATHS double lt_log_wide(double x) {
  const uint64_t one = 0x3ff0000000000000u, two_thirds = 0x3fe5555555555555u;
  uint64_t bits = lt_bits64(x), power = (bits - two_thirds + one) >> 52; /* n + 1023 */
  double n = lt_double(power | 0x4330000000000000u) - (0x1p52 + 1023);
  double f = lt_double(bits - (power << 52) + one) - 1;
  return MADDD(n, 0.69314718055994531, f + (double)lt_log1p_tail((float)f));
}

/* Returns log(x) of any number that is 0 or normal. */
LT_MATHS double lt_log_any_wide(double x) {
  double y = lt_log_wide(x);
  y = x < (double)INFINITY ? y : x;
  y = x > 0 || x != x ? y : (double)NAN;
  return x == 0 ? -(double)INFINITY : y;
}

/* Returns log(1 + y), y >= -1. */
LT_MATHS double lt_log1p_any_wide(double y) {
  double small = y * MADDD(y, MADDD(y, 0.33333333333333331, -0.5), 1.0),
         log = lt_log_any_wide(1 + y);
  return fabs(y) < 0x1p-12 ? small : log;
}

/* Return sin(pi r) / r and cos(pi r) of z = r^2 <= 1/4, to the last digits of double. */
LT_MATHS double lt_sin_pi_wide(double z) {
  static const double c[] = {
      7.6947067256791232e-07, -2.1903183335281079e-05, 0.00046629968791488791,
      -0.0073704304784784224, 0.082145886569870735,    -0.59926452931873675,
      2.550164039877294,      -5.1677127800499694,     3.1415926535897931};
  return LT_EVEN_ODD(z, c);
}
LT_MATHS double lt_cos_pi_wide(double z) {
  static const double c[] = {4.1495780270571206e-06, -0.00010456656706174584, 0.0019295562780374169,
                             -0.025806888738177582,  0.23533063012967062,     -1.335262768843456,
                             4.0587121264164976,     -4.9348022005446772,     1};
  return LT_EVEN_ODD(z, c);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Uses tanh(log(1 + e)) = n / (n + 2), n = e (e + 2). */
LT_MATHS float lt_mishf(float x) {
  double v = (double)x, e = lt_exp_wide(lt_not_over(lt_not_under(v, -250), 30));
  e = v < -250 ? 0.0 : e;
  double n = e * (e + 2);
  return (float)(v * (n * lt_reciprocal(n + 2)));
}

/* In float32: the factor of the negative part is in two parts. `near`: x is not negative. */
LT_MATHS float lt_seluf(float x, bool near) {
  float above = 1.05070102f * x;
  if (near) return above;
  lt_Pair e = lt_expm1_split(x < -87.0f ? -87.0f : x);
  float below = FUSED(1.75809932f, e.high, MADD(e.high, 2.32967174e-8f, 1.75809932f * e.low));
  return x < 0 ? below : above;
}

LT_MATHS float lt_celuf(float x, float alpha, bool near) {
  if (near) return x;
  double v = (double)x * (1 / (double)alpha);
  float below = (float)((double)alpha * lt_expm1_wide(lt_not_over(lt_not_under(v, -700), 700)));
  return x < 0 ? below : x;
}

/* ---- logarithms ------------------------------------------------------------------------------ */

LT_MATHS float lt_xlogyf(float x, float y) {
  float product = (float)((double)x * lt_log_any_wide((double)y));
  product = x == 0 ? 0.0f : product;
  return y != y ? y : product;
}

LT_MATHS float lt_xlog1pyf(float x, float y) {
  float product = (float)((double)x * lt_log1p_any_wide((double)y));
  product = x == 0 ? 0.0f : product;
  return y != y ? y : product;
}

LT_MATHS float lt_entrf(float x) {
  float y = (float)(-(double)x * lt_log_any_wide((double)x));
  y = x < 0 ? -INFINITY : y;
  return x == 0 ? 0.0f : y;
}

/* Returns log2(1 + 2^x), x <= 0. */
LT_MATHS float lt_log2_1p_exp2f(float x) {
  double e = lt_exp_wide(lt_not_under((double)x * 0.69314718055994531, -700));
  return (float)(lt_log1p_wide(e) * 1.4426950408889634);
}

LT_MATHS float lt_logitf(float x, float eps) {
  double v = (double)x, least = (double)eps, most = 1 - least;
  double inner = v < least ? least : v > most ? most : v;
  v = least >= 0 ? inner : v;
  return (float)lt_log_any_wide(v / (1 - v));
}

/* ---- normal distribution --------------------------------------------------------------------- */

/* `near`: x >= -11, or a NaN whose sign is not set. */
LT_MATHS float lt_ndtrf(float x, bool near) {
  float size = fabsf(x);
  lt_Tail t = lt_normal_tail(size > 11 ? 11.0f : size);
  float y = x < 0 ? t.high + t.low : (1 - t.high) - t.low;
  if (near) return y;
  double a = lt_not_over((double)size, 19);
  double tail = 0.5 * lt_exp_wide(-0.5 * a * a) * lt_erfcx_wide(a * 0.70710678118654752);
  return x < -11 ? (float)tail : y;
}

/* Uses Phi(x) = e^(-x^2 / 2) / 2 e^(t^2) erfc(t), t = -x / sqrt(2), below 0, and log(1 - Phi(-x))
 * above. */
LT_MATHS float lt_log_ndtrf(float x) {
  double v = (double)x, a = fabs(v), t = a * 0.70710678118654752;
  double scaled = lt_erfcx_wide(lt_not_over(t, 14)), z = lt_reciprocal(lt_not_under(t, 14));
  double far = 0.56418958354775628 * z * MADDD(z * z, MADDD(z * z, 0.75, -0.5), 1.0);
  double below = lt_log_wide(0.5 * (t > 14 ? far : scaled)) - t * t;
  double q = 0.5 * scaled * lt_exp_wide(lt_not_under(-0.5 * v * v, -700));
  double above = lt_log1p_any_wide(-q);
  float y = (float)(v < 0 ? below : above);
  y = x < -1e20f ? -INFINITY : y;
  return x != x ? x : y;
}

/* Uses polynomials for the result over v = 2 p - 1: of w = -log(1 - v^2) up to 5, and of its root
 * up to 17 and beyond. */
LT_MATHS float lt_ndtrif(float p) {
  double v = 2 * (double)p - 1, w = -lt_log_wide(lt_not_under((1 - v) * (double)p * 2, 0x1p-200));
  double near = 5.1718408986169032e-10; /* 2^-28.5 */
  near = MADDD(near, w, -2.5301384725782748e-08);
  near = MADDD(near, w, 4.486750545397255e-07);
  near = MADDD(near, w, -3.5920281404443163e-06);
  near = MADDD(near, w, 8.4541451610207082e-06);
  near = MADDD(near, w, 5.6838604306823447e-05);
  near = MADDD(near, w, -0.00017201366896836678);
  near = MADDD(near, w, -0.0033075682625064141);
  near = MADDD(near, w, 0.016334773401180835);
  near = MADDD(near, w, 0.32811669972820395);
  near = MADDD(near, w, 1.2533141405284451);
  double root = w * lt_rsqrt_wide(w), s = root - 3.3, b = root - 7;
  double mid = -4.5167259921417759e-05; /* 2^-28.9 */
  mid = MADDD(mid, s, 9.5946097489288783e-05);
  mid = MADDD(mid, s, 5.4330103619646063e-05);
  mid = MADDD(mid, s, -0.00050296408775974376);
  mid = MADDD(mid, s, 0.0011849203474060025);
  mid = MADDD(mid, s, -0.0020014842059689407);
  mid = MADDD(mid, s, 0.0029725569028513292);
  mid = MADDD(mid, s, -0.004657881184140975);
  mid = MADDD(mid, s, 0.0068500810675248087);
  mid = MADDD(mid, s, 1.4223723767307692);
  mid = MADDD(mid, s, 4.4323737422274876);
  double far = -7.0560528250716021e-11; /* 2^-29 */
  far = MADDD(far, b, 5.352483703496703e-10);
  far = MADDD(far, b, -1.5943806130158598e-09);
  far = MADDD(far, b, 9.1588658038834191e-09);
  far = MADDD(far, b, -7.733268498223448e-08);
  far = MADDD(far, b, 4.6035662774471917e-07);
  far = MADDD(far, b, -2.2883993033817799e-06);
  far = MADDD(far, b, 8.526148031446941e-06);
  far = MADDD(far, b, 8.8865632131054116e-06);
  far = MADDD(far, b, -0.00072497286256159035);
  far = MADDD(far, b, 1.4263696069295906);
  far = MADDD(far, b, 9.7142607478346488);
  double y = v * (w < 5 ? near : w < 17 ? mid : far);
  y = (p > 0) & (p < 1) ? y : (double)NAN;
  y = p == 0 ? -(double)INFINITY : y;
  return p == 1 ? INFINITY : (float)y;
}

/* ---- gamma function -------------------------------------------------------------------------- */

/* Returns log(x) of a positive normal number: 2^-34.7 */
LT_MATHS double lt_log_finer(double x) {
  const uint64_t one = 0x3ff0000000000000u, two_thirds = 0x3fe5555555555555u;
  uint64_t bits = lt_bits64(x), power = (bits - two_thirds + one) >> 52; /* n + 1023 */
  double n = lt_double(power | 0x4330000000000000u) - (0x1p52 + 1023);
  double f = lt_double(bits - (power << 52) + one) - 1;
  static const double c[] = {0.10393808427873376,  -0.1122296937493123,  0.08732351232720387,
                             -0.09616655309536701, 0.11132355604500663,  -0.12522708089288861,
                             0.1428515286094183,   -0.16666066632998405, 0.2000000538497483,
                             -0.2500000575497623,  0.33333333325011805,  -0.49999999991106797};
  return MADDD(LT_EVEN_ODD(f, c), f * f, MADDD(n, 0.69314718055994531, f));
}

/* Returns log |Gamma(x)|, but of negative numbers near zeros, where terms cancel: see lt_is_leftf.
 * With a = |x|: below 5, Gamma(a) is Gamma(2 + u), |u| <= 1/2, times or divided by a product p;
 * from 5 on by Stirling's series (DLMF 5.11.1). Negative numbers use reflection (5.5.3); `near`:
 * there are none. */
LT_MATHS float lt_lgammaf(float x, bool near) {
  double a = (double)fabsf(x);
  bool large = a >= 5, low = a < 1.5, lowest = a < 0.5;
  double less = a < 2.5 ? 2.0 : a < 3.5 ? 3.0 : a < 4.5 ? 4.0 : 5.0;
  double u = a - (lowest ? 0.0 : low ? 1.0 : less);
  double p = (a < 2.5 ? 1.0 : a - 1) * (a < 3.5 ? 1.0 : a - 2) * (a < 4.5 ? 1.0 : a - 3);
  p = lowest ? a * (a + 1) : low ? a : p;
  /* log Gamma(2 + u) over u (1 + u): 2^-29 */
  static const double middle[] = {
      0.00020588578996422386, -0.0004564478114250902, 0.0009108883048531924,
      -0.0020983731185231203, 0.00499895631917416,    -0.012384877203957737,
      0.03296499468798302,    -0.10031728877885711,   0.42278433509846713};
  double g = LT_EVEN_ODD(u, middle) * MADDD(u, u, u);
  double i = (double)(1 / (float)a), z = i * i; /* of Stirling's series: 2^-32 */
  double tail = MADDD(MADDD(-0.0005352181242109789, z, 0.0007922032852581855), z * z,
                      MADDD(-0.002777766361155662, z, 0.08333333331910021));
  double log = lt_log_finer(large ? a : p);
  double far =
      MADDD(a - 0.5, log - 1, MADDD(tail, i, 0.41893853320467274)); /* log(2 pi) / 2 - 1/2 */
  double result = large ? far : low ? g - log : g + log;
  result = a == 0 ? (double)INFINITY : result;
  if (!near) {
    static const double sin_pi[] = {-0.007028303855203096, 0.08205035020147247,
                                    -0.599252186531583,    2.550163317938427,
                                    -5.167712764593,       3.141592653536132}; /* over r: 2^-35 */
    double r = a < 0x1p30 ? a - rint(a) : 0, sine = fabs(r) * LT_EVEN_ODD(r * r, sin_pi);
    double over = low ? 3.14159265358979312 * p : 3.14159265358979312;
    double under = large ? sine : low ? sine * a : sine * a * p;
    double reflected = lt_log_finer(x < 0 ? over / under : 1.0);
    double rest = large ? MADDD(a + 0.5, log - 1, MADDD(tail, i, 1.4189385332046727)) : g;
    result = x < 0 ? (r == 0 ? (double)INFINITY : reflected - rest) : result;
  }
  return (float)result;
}

/* Returns whether the loop of src/cpu/special.c computes an element x, for which the vector loop
 * gives y. */
LT_MATHS bool lt_is_leftf(float x, float y) {
  return (x < 0) & (fabsf(y) < (x > -5 ? 0.02f : 0.25f)); /* lgamma */
}

/* The derivatives are computed to the last digits of double: where terms cancel around their zeros,
 * which lie between two floats, an error of float would remain. */

/* Returns the derivative of log Gamma(x): of numbers below 10, by the recurrence (5.5.2) to ten
 * more, whose terms are added in pairs with products u + k (9 - k); then by (5.11.2). `near`: x is
 * positive; else reflection (5.5.4). */
LT_MATHS float lt_digammaf(float x, bool near) {
  double v = (double)x;
  bool negative = !near && x < 0;
  v = negative ? 1 - v : v;
  double u = v * (v + 9), b = u * (u + 8), c = (u + 14) * (u + 18), d = u + 20;
  double sum = MADDD(MADDD(2 * u + 8, c, (2 * u + 32) * b), d, b * c) * (2 * v + 9) / (b * c * d);
  bool shifted = v < 10;
  double t = shifted ? v + 10 : v, i = 1 / t, z = i * i, tail = -1.0 / 12;
  tail = MADDD(tail, z, 691.0 / 32760);
  tail = MADDD(tail, z, -1.0 / 132);
  tail = MADDD(tail, z, 1.0 / 240);
  tail = MADDD(tail, z, -1.0 / 252);
  tail = MADDD(tail, z, 1.0 / 120);
  tail = MADDD(tail, z, -1.0 / 12);
  double result = lt_m_log(t) + MADDD(tail, z, -0.5 * i) - (shifted ? sum : 0.0);
  if (!near) {
    double w = (double)x, r = w - rint(w), square = r * r;
    double cotangent = 3.14159265358979312 * lt_cos_pi_wide(square) / (r * lt_sin_pi_wide(square));
    result = negative ? (r == 0 ? (double)NAN : result - cotangent) : result;
    result = x == 0 ? copysign((double)INFINITY, -(double)x) : result;
  }
  return (float)result;
}

/* Returns the second derivative of log Gamma(x): of numbers below 6, by the recurrence to six more,
 * whose terms are added in pairs as in lt_digammaf; then by the asymptotic series (DLMF 5.15.8).
 * `near`: x is positive; else reflection (5.15.6). */
LT_MATHS float lt_trigammaf(float x, bool near) {
  double v = (double)x;
  bool negative = !near && x < 0;
  v = negative ? 1 - v : v;
  double u = v * (v + 5), b = u + 4, c = u + 6, ub = u * b, uc = u * c, bc = b * c;
  double over = (2 * u + 25) * (bc * bc);
  over = MADDD(2 * u + 17, uc * uc, over);
  over = MADDD(2 * u + 13, ub * ub, over);
  bool shifted = v < 6;
  double sum = over / (shifted ? ub * c * (ub * c) : 1.0);
  double t = shifted ? v + 6 : v, i = 1 / t, z = i * i, tail = -691.0 / 2730;
  tail = MADDD(tail, z, 5.0 / 66);
  tail = MADDD(tail, z, -1.0 / 30);
  tail = MADDD(tail, z, 1.0 / 42);
  tail = MADDD(tail, z, -1.0 / 30);
  tail = MADDD(tail, z, 1.0 / 6);
  double result = MADDD(MADDD(tail, i, 0.5), z, i) + (shifted ? sum : 0.0);
  if (!near) {
    double w = (double)x, r = fabs(w) < 0x1p30 ? w - rint(w) : 0, sine = r * lt_sin_pi_wide(r * r);
    result = negative ? 9.8696044010893586 / (sine * sine) - result : result;
  }
  return (float)result;
}

/* ---- Bessel functions ------------------------------------------------------------------------ */

/* These are computed nearly to the last digits of double: near their zeros, terms cancel. Up to 8
 * by polynomials of w = x^2 / 32 - 1: of J without its factors of two zeros, and of the part of Y
 * that is not a multiple of log(x) J. Beyond 8 as modulus times sine of the phase (DLMF 10.18), by
 * polynomials of u = 2 (8 / x)^2 - 1: of the modulus over its limit, and of x times the difference
 * of the phase and x - pi/4 or x - 3 pi/4. */
/* J0(x) over (x^2 - 5.78...) (x^2 - 30.47...): 2^-64 */
LT_MATHS double lt_j0_near(double w) {
  double p = -1.2482967042743655e-14;
  p = MADDD(p, w, 3.4063540255152697e-13);
  p = MADDD(p, w, -8.0234726019332576e-12);
  p = MADDD(p, w, 1.6276296659994083e-10);
  p = MADDD(p, w, -2.7948629678329128e-9);
  p = MADDD(p, w, 3.9988394769487129e-8);
  p = MADDD(p, w, -4.6771280213007451e-7);
  p = MADDD(p, w, 4.3669323241805167e-6);
  p = MADDD(p, w, -3.1573425402235442e-5);
  p = MADDD(p, w, 0.00016977200714005512);
  p = MADDD(p, w, -0.00064153906464061231);
  p = MADDD(p, w, 0.0015636431645931614);
  p = MADDD(p, w, -0.002119794289479692);
  p = MADDD(p, w, 0.0011434937743762546);
  return p;
}
/* J1(x) / x over (x^2 - 14.68...) (x^2 - 49.21...): 2^-63 */
LT_MATHS double lt_j1_near(double w) {
  double p = 1.1384465543068819e-14;
  p = MADDD(p, w, -2.8882397429273453e-13);
  p = MADDD(p, w, 6.2846769852560888e-12);
  p = MADDD(p, w, -1.1696773660853869e-10);
  p = MADDD(p, w, 1.8268548082885016e-9);
  p = MADDD(p, w, -2.3521923498944098e-8);
  p = MADDD(p, w, 2.4425222606163948e-7);
  p = MADDD(p, w, -1.9890935156362501e-6);
  p = MADDD(p, w, 1.224217365301787e-5);
  p = MADDD(p, w, -5.4080032390889808e-5);
  p = MADDD(p, w, 0.00015860016799369858);
  p = MADDD(p, w, -0.00026975227467163557);
  p = MADDD(p, w, 0.00019498936985895624);
  return p;
}
/* Y0(x) - 2 / pi log(x) J0(x): 2^-55 */
LT_MATHS double lt_y0_near(double w) {
  double p = 2.6926938054524058e-11;
  p = MADDD(p, w, -7.1658219137521824e-10);
  p = MADDD(p, w, 1.6390875014077405e-8);
  p = MADDD(p, w, -3.2184503838649681e-7);
  p = MADDD(p, w, 5.3213188103997141e-6);
  p = MADDD(p, w, -7.2795423686602804e-5);
  p = MADDD(p, w, 0.00080615860596163598);
  p = MADDD(p, w, -0.0070257410549918786);
  p = MADDD(p, w, 0.046367047681375126);
  p = MADDD(p, w, -0.21895747096229642);
  p = MADDD(p, w, 0.67217707834316788);
  p = MADDD(p, w, -1.077547733821527);
  p = MADDD(p, w, 0.14412632369302474);
  p = MADDD(p, w, 1.6470964788745432);
  p = MADDD(p, w, -0.82843589036045878);
  p = MADDD(p, w, -0.38225065445942499);
  return p;
}
/* (Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x: 2^-54 */
LT_MATHS double lt_y1_near(double w) {
  double p = -2.4995315461712489e-11;
  p = MADDD(p, w, 6.2025380333568817e-10);
  p = MADDD(p, w, -1.3153147367094951e-8);
  p = MADDD(p, w, 2.3804437670449829e-7);
  p = MADDD(p, w, -3.6010000225904579e-6);
  p = MADDD(p, w, 4.4674333890526641e-5);
  p = MADDD(p, w, -0.00044381734344201469);
  p = MADDD(p, w, 0.0034224907383790057);
  p = MADDD(p, w, -0.019628756833117111);
  p = MADDD(p, w, 0.078547869222748682);
  p = MADDD(p, w, -0.19639839859930204);
  p = MADDD(p, w, 0.2350720920666676);
  p = MADDD(p, w, 0.023367571720993479);
  p = MADDD(p, w, -0.24337743079193034);
  p = MADDD(p, w, 0.070759858821180054);
  return p;
}
/* Modulus: 2^-33 */
LT_MATHS double lt_modulus_0(double u) {
  double p = 1.2501922987530042e-8;
  p = MADDD(p, u, -1.953027289287154e-7);
  p = MADDD(p, u, 5.6483152226883913e-6);
  p = MADDD(p, u, -0.0004763465984102434);
  p = MADDD(p, u, 0.99951779720019783);
  return p;
}
LT_MATHS double lt_modulus_1(double u) {
  double p = -1.7093640895734825e-8;
  p = MADDD(p, u, 2.9838098905434753e-7);
  p = MADDD(p, u, -1.0792696086076304e-5);
  p = MADDD(p, u, 0.0014422921445658959);
  p = MADDD(p, u, 1.0014534004197967);
  return p;
}
/* Phase: 2^-50 */
LT_MATHS double lt_phase_0(double u) {
  double p = -2.4519680225573215e-12;
  p = MADDD(p, u, 8.5384039475449331e-12);
  p = MADDD(p, u, -2.7273644032323993e-11);
  p = MADDD(p, u, 1.3086460661167203e-10);
  p = MADDD(p, u, -7.3595840347067246e-10);
  p = MADDD(p, u, 4.9692206215466915e-9);
  p = MADDD(p, u, -4.339685519947723e-8);
  p = MADDD(p, u, 5.3595243014794623e-7);
  p = MADDD(p, u, -1.0858254776982163e-5);
  p = MADDD(p, u, 0.00048509785024166063);
  p = MADDD(p, u, -0.12450345867138744);
  return p;
}
LT_MATHS double lt_phase_1(double u) {
  double p = 2.8209172279619023e-12;
  p = MADDD(p, u, -9.9336448672776791e-12);
  p = MADDD(p, u, 3.2359798756066822e-11);
  p = MADDD(p, u, -1.5799169672929859e-10);
  p = MADDD(p, u, 9.0979835105094e-10);
  p = MADDD(p, u, -6.3670218642273207e-9);
  p = MADDD(p, u, 5.8861077770350753e-8);
  p = MADDD(p, u, -8.0396845014525878e-7);
  p = MADDD(p, u, 1.9790743838302869e-5);
  p = MADDD(p, u, -0.0012394706674479721);
  p = MADDD(p, u, 0.37373986827925849);
  return p;
}

/* Returns sin(x + more), |x| <= 2^20. |more| <= 3 pi/4 + 1/10. */
LT_MATHS double lt_sin_wide(double x, double more) {
  double n = rint(x * 0.31830988618379067), r = x - n * 0x1.921fb544p1; /* exact */
  double s = MADDD(n, -0x1.0b4611a626331p-33, r) + more;
  double over = s > 1.5707963267948966 ? 1 : s < -1.5707963267948966 ? -1 : 0;
  s = MADDD(over, -3.1415926535897931, s);
  double half = 0.5 * (n + over), z = s * s, p = -2.3816077899391948e-8; /* 2^-35 */
  p = MADDD(p, z, 2.752107932932614e-6);
  p = MADDD(p, z, -0.00019840778164516644);
  p = MADDD(p, z, 0.0083333303133079469);
  p = MADDD(p, z, -0.16666666598772996);
  p = MADDD(p, z, 0.99999999997525657);
  return half == rint(half) ? s * p : -s * p;
}

/* Returns the modulus times sin(x + turn + difference), 8 <= x <= 2^20. */
LT_MATHS double lt_bessel_far(double x, bool one, double turn) {
  double i = 1 / x, u = MADDD(128 * i, i, -1.0);
  double size = lt_rsqrt_wide(x) * (one ? lt_modulus_1(u) : lt_modulus_0(u));
  double sine = lt_sin_wide(x, MADDD(one ? lt_phase_1(u) : lt_phase_0(u), i, turn));
  return 0.79788456080286536 * size * sine;
}

/* Returns J0(x) or J1(x) of x in [0, 8]. */
LT_MATHS double lt_bessel_j_near(double x, bool one) {
  double z = x * x, w = MADDD(z, 0.03125, -1.0);
  return one ? x * ((z - 14.681970642123893) * (z - 49.218456321694604)) * lt_j1_near(w)
             : (z - 5.7831859629467845) * (z - 30.471262343662086) * lt_j0_near(w);
}

/* Returns the function J; beyond 2^20 the C library's, by a branch. */
LT_MATHS float lt_bessel_j(float x, bool one, bool near) {
  double a = (double)fabsf(x), small = lt_not_over(a, 8), large = lt_not_under(a, 8);
  if (!near && a > 0x1p20) return (float)(one ? j1((double)x) : j0((double)x));
  double far = lt_bessel_far(large, one, one ? -0.78539816339744831 : 0.78539816339744831);
  float y = (float)(a > 8 ? far : lt_bessel_j_near(small, one));
  return one ? lt_float(lt_bits(y) ^ (lt_bits(x) & LT_SIGN_BIT)) : y;
}

/* Returns the function Y, of positive numbers. */
LT_MATHS float lt_bessel_y(float x, bool one, bool near) {
  double v = (double)x;
  if (!near && v > 0x1p20) return (float)(one ? y1(v) : y0(v));
  if (!near) v = v > 0 ? v : 1;
  double small = lt_not_over(v, 8), large = lt_not_under(v, 8);
  double far = lt_bessel_far(large, one, one ? -2.3561944901923448 : -0.78539816339744831);
  double log = lt_m_log(small), j = lt_bessel_j_near(small, one);
  double w = MADDD(small * small, 0.03125, -1.0);
  double below = one ? 0.63661977236758138 * (log * j - 1 / small) + small * lt_y1_near(w)
                     : MADDD(0.63661977236758138 * log, j, lt_y0_near(w));
  float y = (float)(v > 8 ? far : below);
  if (!near) y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
  return y;
}

/* The modified Bessel functions K, up to 2 by polynomials of z = x^2: of what is added to the
 * logarithm's multiple, and of I; beyond by polynomials of u = 4 / x - 1, of the functions times
 * sqrt(x) e^x. */
/* K0(x) + log(x) I0(x): 2^-36; I0(x): 2^-37 */
LT_MATHS double lt_k0_rest(double z) {
  double p = 1.3028103709494249e-9;
  p = MADDD(p, z, 1.6218540137999193e-7);
  p = MADDD(p, z, 1.4916159852016233e-5);
  p = MADDD(p, z, 0.00084603306693282578);
  p = MADDD(p, z, 0.025248931284467733);
  p = MADDD(p, z, 0.27898287857596816);
  p = MADDD(p, z, 0.11593151567225142);
  return p;
}
LT_MATHS double lt_k0_factor(double z) {
  double p = 5.0573989503374127e-10;
  p = MADDD(p, z, 6.762336630171434e-8);
  p = MADDD(p, z, 6.7822146083742761e-6);
  p = MADDD(p, z, 0.00043402703249826114);
  p = MADDD(p, z, 0.015625000497952585);
  p = MADDD(p, z, 0.24999999987531506);
  p = MADDD(p, z, 1.0000000000050952);
  return p;
}
/* (K1(x) - log(x) I1(x) - 1 / x) / x: 2^-40; I1(x) / x: 2^-41 */
LT_MATHS double lt_k1_rest(double z) {
  double p = -9.4729861199580509e-11;
  p = MADDD(p, z, -1.3996762398883889e-8);
  p = MADDD(p, z, -1.5593803328791372e-6);
  p = MADDD(p, z, -0.00011253594178372339);
  p = MADDD(p, z, -0.0046421828523692534);
  p = MADDD(p, z, -0.085370719707144866);
  p = MADDD(p, z, -0.30796575783008498);
  return p;
}
LT_MATHS double lt_k1_factor(double z) {
  double p = 3.5805533463996397e-11;
  p = MADDD(p, z, 5.639371082802504e-9);
  p = MADDD(p, z, 6.7820137991800754e-7);
  p = MADDD(p, z, 5.4253425917761289e-5);
  p = MADDD(p, z, 0.0026041666975971212);
  p = MADDD(p, z, 0.062499999992256505);
  p = MADDD(p, z, 0.50000000000031639);
  return p;
}
/* 2^-33 */
LT_MATHS double lt_k0_far(double u) {
  double p = 1.8316274080769682e-7;
  p = MADDD(p, u, -4.3456883440359975e-7);
  p = MADDD(p, u, 6.395695022097789e-7);
  p = MADDD(p, u, -2.0049336571121871e-6);
  p = MADDD(p, u, 7.0595194332828432e-6);
  p = MADDD(p, u, -2.4821674586151485e-5);
  p = MADDD(p, u, 9.9546553833206186e-5);
  p = MADDD(p, u, -0.00047975304301230828);
  p = MADDD(p, u, 0.0030328930441579455);
  p = MADDD(p, u, -0.031071462645647008);
  p = MADDD(p, u, 1.2185953384958969);
  return p;
}
LT_MATHS double lt_k1_far(double u) {
  double p = -2.1454616367830659e-7;
  p = MADDD(p, u, 5.1585273733044086e-7);
  p = MADDD(p, u, -7.8789218641102994e-7);
  p = MADDD(p, u, 2.5136251812945396e-6);
  p = MADDD(p, u, -9.027078471713703e-6);
  p = MADDD(p, u, 3.2944246439136538e-5);
  p = MADDD(p, u, -0.00013957413484259996);
  p = MADDD(p, u, 0.00073570557606829057);
  p = MADDD(p, u, -0.0055667312977727252);
  p = MADDD(p, u, 0.10334973870570138);
  p = MADDD(p, u, 1.3631518903914358);
  return p;
}

/* Returns the function of order 0 or 1, times e^x if `scaled`. */
LT_MATHS float lt_bessel_k(float x, bool one, bool scaled) {
  double v = x > 0 ? lt_not_over((double)x, 3.4028234663852886e38) : 1;
  double small = lt_not_over(v, 2), large = lt_not_under(v, 2), z = small * small;
  double log = lt_m_log(small), i = 1 / (one ? small : large), u = MADDD(4, 1 / large, -1.0);
  double near = one ? MADDD(small, MADDD(log, lt_k1_factor(z), lt_k1_rest(z)), i)
                    : MADDD(-log, lt_k0_factor(z), lt_k0_rest(z));
  double far = lt_rsqrt_wide(large) * (one ? lt_k1_far(u) : lt_k0_far(u));
  double power = lt_exp_wide(scaled ? small : -lt_not_over(large, 700));
  float y = (float)(v > 2 ? (scaled ? far : far * power) : (scaled ? near * power : near));
  y = x == INFINITY ? 0.0f : y;
  return x > 0 ? y : x == 0 ? INFINITY : NAN;
}

/* Returns sin(x) / x; beyond 2^20 by the C library, by a branch. */
LT_MATHS float lt_spherical_j0f(float x, bool near) {
  double v = (double)x;
  if (!near && fabsf(x) > 0x1p20f) return fabsf(x) == INFINITY ? 0.0f : (float)(sin(v) / v);
  float y = (float)(lt_sin_wide(v, 0) / v);
  return x == 0 ? 1.0f : y;
}

/* ---- other functions ------------------------------------------------------------------------- */

/* Uses sin(pi x) = sin(pi t) of the number t in [-1/2, 1/2] that is x or 1 - x less a multiple of
 * 2. */
LT_MATHS float lt_sincf(float x) {
  double v = (double)x, r = v - 2 * rint(0.5 * v); /* exact */
  double t = r > 0.5 ? 1 - r : r < -0.5 ? -1 - r : r, z = t * t;
  double p = -0.0022352244287836731; /* sin(pi t) / (pi t): 2^-35.5 */
  p = MADDD(p, z, 0.026116205628621034);
  p = MADDD(p, z, -0.19074762275923893);
  p = MADDD(p, z, 0.81174217078348132);
  p = MADDD(p, z, -1.6449340611398759);
  p = MADDD(p, z, 0.99999999997885225);
  double y = p * (t / v);
  return x == 0 ? 1.0f : (float)y;
}

/* The modified Bessel functions of order 0 and 1, by polynomials of z = x^2 / 4 up to 8, and of u =
 * 8 / x beyond: the functions times sqrt(x) e^-x. */
LT_MATHS double lt_i0_near(double z) {
  double p = 1.1242048567762011e-15; /* 2^-37 */
  p = MADDD(p, z, 5.611779463750006e-14);
  p = MADDD(p, z, 8.0211785465292458e-12);
  p = MADDD(p, z, 6.0949731554401626e-10);
  p = MADDD(p, z, 3.941490886044526e-08);
  p = MADDD(p, z, 1.9287554535838557e-06);
  p = MADDD(p, z, 6.9445328860113671e-05);
  p = MADDD(p, z, 0.0017361092644391553);
  p = MADDD(p, z, 0.027777779933963628);
  p = MADDD(p, z, 0.24999999878285986);
  p = MADDD(p, z, 1.0000000002475546);
  p = MADDD(p, z, 0.99999999999250533);
  return p;
}
LT_MATHS double lt_i0_far(double u) {
  double p = 4.0518316119933243e-06; /* 2^-33.4 */
  p = MADDD(p, u, -7.2075420451029069e-06);
  p = MADDD(p, u, 1.0174233559757459e-05);
  p = MADDD(p, u, 7.4803653287637171e-06);
  p = MADDD(p, u, 5.7879543377771278e-05);
  p = MADDD(p, u, 0.00043820919841044617);
  p = MADDD(p, u, 0.0062334741794273377);
  p = MADDD(p, u, 0.3989422805815393);
  return p;
}
LT_MATHS double lt_i1_near(double z) {
  double p = 7.20284199769305e-13; /* i1(x) / x: 2^-28.8 */
  p = MADDD(p, z, 2.3013340320058195e-11);
  p = MADDD(p, z, 2.6494595190124857e-09);
  p = MADDD(p, z, 1.3593287150537923e-07);
  p = MADDD(p, z, 5.7978740481854645e-06);
  p = MADDD(p, z, 0.00017357406026268735);
  p = MADDD(p, z, 0.0034722916718925947);
  p = MADDD(p, z, 0.04166660417853784);
  p = MADDD(p, z, 0.25000002033919833);
  p = MADDD(p, z, 0.49999999899918007);
  return p;
}
LT_MATHS double lt_i1_far(double u) {
  double p = -8.0314265317419768e-06; /* 2^-29.4 */
  p = MADDD(p, u, 1.0661035926478655e-05);
  p = MADDD(p, u, -2.5689998049392894e-05);
  p = MADDD(p, u, -7.5235519978882618e-05);
  p = MADDD(p, u, -0.00073136134895890033);
  p = MADDD(p, u, -0.018700354985330937);
  p = MADDD(p, u, 0.39894227933518567);
  return p;
}

/* Returns the function of order 0 or 1, times e^-|x| if `scaled`. */
LT_MATHS float lt_bessel_i(float x, bool one, bool scaled) {
  double a = (double)fabsf(x), small = lt_not_over(a, 8), z = small * small * 0.25;
  double near = one ? small * lt_i1_near(z) : lt_i0_near(z);
  double v = lt_not_under(lt_not_over(a, scaled ? 3.4028234663852886e38 : 100), 8),
         root = lt_rsqrt_wide(v);
  double u = 8 * root * root, far = root * (one ? lt_i1_far(u) : lt_i0_far(u));
  if (scaled)
    near *= lt_exp_wide(-small);
  else
    far *= lt_exp_wide(v);
  float y = (float)(a > 8 ? far : near);
  y = scaled && a == (double)INFINITY ? 0 : y;
  return one ? lt_signed(y, x) : y;
}
LT_MATHS float lt_i0f(float x) { return lt_bessel_i(x, false, false); }
LT_MATHS float lt_i0ef(float x) { return lt_bessel_i(x, false, true); }
LT_MATHS float lt_i1f(float x) { return lt_bessel_i(x, true, false); }
LT_MATHS float lt_i1ef(float x) { return lt_bessel_i(x, true, true); }

/* Uses polynomials of w = -log(1 - x^2), to 5 and beyond. */
LT_MATHS float lt_erfinvf(float x) {
  double v = (double)x;
  float w = (float)-lt_log_wide((1 - v) * (1 + v)), a = fabsf(x);
  float near = 3.35479438e-10f; /* erfinv(x) / x less the constant below: 2^-28.7 */
  near = MADD(near, w, -1.71597454e-08f);
  near = MADD(near, w, 3.09779257e-07f);
  near = MADD(near, w, -2.4977741e-06f);
  near = MADD(near, w, 5.8352405e-06f);
  near = MADD(near, w, 4.04876569e-05f);
  near = MADD(near, w, -0.000122003855f);
  near = MADD(near, w, -0.00233853948f);
  near = MADD(near, w, 0.0115503349f);
  near = MADD(near, w, 0.232013556f);
  near = MADD(near, w, -2.46311521e-08f);
  float u = w - 10, far = 2.14242614e-12f; /* the same: 2^-29 */
  far = MADD(far, u, -4.99576617e-11f);
  far = MADD(far, u, 5.35938783e-10f);
  far = MADD(far, u, -3.67843841e-09f);
  far = MADD(far, u, 9.48235508e-09f);
  far = MADD(far, u, 2.9523916e-07f);
  far = MADD(far, u, -8.3853397e-06f);
  far = MADD(far, u, 0.000171519009f);
  far = MADD(far, u, -0.00380741645f);
  far = MADD(far, u, 0.158781568f);
  far = MADD(far, u, 6.90997313e-08f);
  float p = w > 5 ? far : near, first = w > 5 ? 2.99574590f : 0.886226952f;
  float y = FUSED(a, first, a * p);
  y = a < 1 ? y : NAN;
  return lt_signed(a == 1 ? INFINITY : y, x);
}

/* Returns the number after x in direction of y, in the float dtype whose largest finite number is
 * `limit`: float32, or a narrower one, of which x is a number. float16 is computed times 2^-112,
 * which makes its denormal numbers those of float32. */
LT_MATHS float lt_nextafterf(float x, float y, float limit) {
  bool half = limit < 1e5f;
  float scale = half ? 0x1p-112f : 1.0f, back = half ? 0x1p112f : 1.0f, a = fabsf(x);
  uint32_t step = half ? 1u << 13 : limit < 3.39e38f ? 1u << 16 : 1;
  bool inward = (x != 0) & ((x > 0) != (y > x));
  float next = lt_float(lt_bits(a * scale) + (inward ? 0 - step : step)) * back;
  next = next > limit ? INFINITY : next;
  next = a < INFINITY ? next : limit;
  next = lt_signed(next, x == 0 ? y : x);
  next = x == y ? y : next;
  return (x != x) | (y != y) ? x + y : next;
}

#endif
