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

/* ---- activations ----------------------------------------------------------------------------- */

/* Uses tanh(log(1 + e)) = n / (n + 2), n = e (e + 2). */
LT_MATHS float lt_mishf(float x) {
  double v = (double)x, e = lt_exp_wide(lt_not_over(lt_not_under(v, -250), 30));
  e = v < -250 ? 0.0 : e;
  double n = e * (e + 2);
  return (float)(v * (n * lt_reciprocal(n + 2)));
}

LT_MATHS float lt_seluf(float x) {
  double v = (double)x;
  double below = 1.6732632423543772848 * lt_expm1_wide(lt_not_over(lt_not_under(v, -700), 0));
  return (float)(1.0507009873554804934 * (v < 0 ? below : v));
}

LT_MATHS float lt_celuf(float x, float alpha) {
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

LT_MATHS float lt_logitf(float x, float eps) {
  double v = (double)x, least = (double)eps, most = 1 - least;
  double inner = v < least ? least : v > most ? most : v;
  v = least >= 0 ? inner : v;
  return (float)lt_log_any_wide(v / (1 - v));
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

/* Returns the modified Bessel function by polynomials of x^2 / 4 up to 8, and of 8 / x beyond. */
LT_MATHS float lt_i0f(float x) {
  double a = (double)fabsf(x), z = lt_not_over(a, 8) * lt_not_over(a, 8) * 0.25;
  double near = 1.1242048567762011e-15; /* 2^-37 */
  near = MADDD(near, z, 5.611779463750006e-14);
  near = MADDD(near, z, 8.0211785465292458e-12);
  near = MADDD(near, z, 6.0949731554401626e-10);
  near = MADDD(near, z, 3.941490886044526e-08);
  near = MADDD(near, z, 1.9287554535838557e-06);
  near = MADDD(near, z, 6.9445328860113671e-05);
  near = MADDD(near, z, 0.0017361092644391553);
  near = MADDD(near, z, 0.027777779933963628);
  near = MADDD(near, z, 0.24999999878285986);
  near = MADDD(near, z, 1.0000000002475546);
  near = MADDD(near, z, 0.99999999999250533);
  double v = lt_not_under(lt_not_over(a, 100), 8), u = 8 * lt_reciprocal(v);
  double far = 4.0518316119933243e-06; /* sqrt(x) e^-x i0(x): 2^-33.4 */
  far = MADDD(far, u, -7.2075420451029069e-06);
  far = MADDD(far, u, 1.0174233559757459e-05);
  far = MADDD(far, u, 7.4803653287637171e-06);
  far = MADDD(far, u, 5.7879543377771278e-05);
  far = MADDD(far, u, 0.00043820919841044617);
  far = MADDD(far, u, 0.0062334741794273377);
  far = MADDD(far, u, 0.3989422805815393);
  double root = (double)(1 / sqrtf((float)v)); /* with one of Newton's steps: 1 / sqrt(v) */
  root *= MADDD(-0.5 * v * root, root, 1.5);
  return (float)(a > 8 ? lt_exp_wide(v) * root * far : near);
}

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
