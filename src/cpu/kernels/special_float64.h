/* special_float64.h: the functions of float64_ops.h's ops: those of special.h, but without
 * branches, so that loops over them are vectorized. Written as those of maths_float32.h, whose
 * remarks hold here too. The polynomials interpolate at Chebyshev's nodes. */
#ifndef LT_CPU_SPECIAL_FLOAT64_H
#define LT_CPU_SPECIAL_FLOAT64_H

#include "maths.h"

/* Return the inverse of erf at v >= 0 from w = -log(1 - v^2) up to 6, and from the root of w up to
 * 4, to 9 and beyond. */
LT_MATHS double lt_erfinv_near(double v, double w) {
  double t = w - 3;
  double near = 4.7641416150307117e-21;
  near = MADDD(near, t, -2.3828152724425424e-20);
  near = MADDD(near, t, -3.4201674431444335e-19);
  near = MADDD(near, t, 3.0337490945071867e-18);
  near = MADDD(near, t, 4.259585252275846e-18);
  near = MADDD(near, t, -1.7460857583737874e-16);
  near = MADDD(near, t, 7.9173183432153629e-16);
  near = MADDD(near, t, 3.9551005564664719e-15);
  near = MADDD(near, t, -6.4746232898755483e-14);
  near = MADDD(near, t, 2.0049511097635767e-13);
  near = MADDD(near, t, 2.0972282099791372e-12);
  near = MADDD(near, t, -2.3620541362888241e-11);
  near = MADDD(near, t, 3.9436921702631364e-11);
  near = MADDD(near, t, 9.9248764830986335e-10);
  near = MADDD(near, t, -8.4446437620706419e-9);
  near = MADDD(near, t, 1.6452030973999529e-9);
  near = MADDD(near, t, 4.4504981857333218e-7);
  near = MADDD(near, t, -3.0831515502401017e-6);
  near = MADDD(near, t, -3.4669679897495753e-6);
  near = MADDD(near, t, 0.00020546222838170472);
  near = MADDD(near, t, -0.0014525684620538481);
  near = MADDD(near, t, -0.0013804298348441337);
  near = MADDD(near, t, 0.24577169367069063);
  return MADDD(v, 0.88622692545275801, v * (near * w));
}
LT_MATHS double lt_erfinv_mid(double root) {
  double t = root - 3.25;
  double y = -1.6598577536267132e-9;
  y = MADDD(y, t, -5.3085125371437594e-9);
  y = MADDD(y, t, 2.7003868978040079e-8);
  y = MADDD(y, t, -2.1870137996887654e-8);
  y = MADDD(y, t, -9.7907347725198027e-8);
  y = MADDD(y, t, 3.9979473980476034e-7);
  y = MADDD(y, t, -6.1864120197773699e-7);
  y = MADDD(y, t, -4.6552972015691885e-7);
  y = MADDD(y, t, 5.0820809471364041e-6);
  y = MADDD(y, t, -1.3807624382936752e-5);
  y = MADDD(y, t, 1.7074804833296615e-5);
  y = MADDD(y, t, 2.4145108693775047e-5);
  y = MADDD(y, t, -0.00022201676068307185);
  y = MADDD(y, t, 0.00085602607171964809);
  y = MADDD(y, t, -0.0024458934120127645);
  y = MADDD(y, t, 0.0046526098391937478);
  y = MADDD(y, t, 1.0055052352452981);
  y = MADDD(y, t, 3.0838457231032427);
  return y;
}
LT_MATHS double lt_erfinv_far(double root) {
  double t = root - 6.5;
  double y = -5.0299483131160167e-18;
  y = MADDD(y, t, 2.6719627020140463e-17);
  y = MADDD(y, t, 5.6641596673612147e-17);
  y = MADDD(y, t, -4.3585803995317093e-16);
  y = MADDD(y, t, -4.045418724254798e-16);
  y = MADDD(y, t, 3.4079141213592062e-15);
  y = MADDD(y, t, 6.5155082427335025e-15);
  y = MADDD(y, t, -5.3260538865020216e-14);
  y = MADDD(y, t, 2.1408767026288966e-13);
  y = MADDD(y, t, -1.4533461873960282e-12);
  y = MADDD(y, t, 1.0422035158302696e-11);
  y = MADDD(y, t, -6.9424482364619009e-11);
  y = MADDD(y, t, 4.5062619502475228e-10);
  y = MADDD(y, t, -2.8604179837356559e-9);
  y = MADDD(y, t, 1.7614825316262282e-8);
  y = MADDD(y, t, -1.0417876421061385e-7);
  y = MADDD(y, t, 5.8053828940147995e-7);
  y = MADDD(y, t, -2.9178743023143484e-6);
  y = MADDD(y, t, 1.1561063005252328e-5);
  y = MADDD(y, t, -1.0793876595923392e-5);
  y = MADDD(y, t, -0.00051064093057924503);
  y = MADDD(y, t, 1.0091093904000897);
  y = MADDD(y, t, 6.3645933264346713);
  return y;
}
LT_MATHS double lt_erfinv_farther(double root) {
  double t = root - 18;
  double y = -4.621964694000356e-33;
  y = MADDD(y, t, 1.0663837839717893e-31);
  y = MADDD(y, t, 5.8208705328577502e-31);
  y = MADDD(y, t, -2.2731150104535466e-29);
  y = MADDD(y, t, -1.8106190392647886e-28);
  y = MADDD(y, t, 5.8765653059711688e-27);
  y = MADDD(y, t, -2.2044797804109276e-26);
  y = MADDD(y, t, 2.5307933785500549e-26);
  y = MADDD(y, t, -7.2875043288780812e-24);
  y = MADDD(y, t, 1.4831757840144704e-22);
  y = MADDD(y, t, -2.0040857977263667e-21);
  y = MADDD(y, t, 3.0216871261562992e-20);
  y = MADDD(y, t, -4.7693284069198546e-19);
  y = MADDD(y, t, 6.9444373708739395e-18);
  y = MADDD(y, t, -9.077228399407511e-17);
  y = MADDD(y, t, 9.6114094046051615e-16);
  y = MADDD(y, t, -3.8642495550526527e-15);
  y = MADDD(y, t, -2.0173318576832092e-13);
  y = MADDD(y, t, 9.1617179607676789e-12);
  y = MADDD(y, t, -2.7922694195627868e-10);
  y = MADDD(y, t, 7.435058351538844e-9);
  y = MADDD(y, t, -1.8600048046403014e-7);
  y = MADDD(y, t, 4.5244165299748662e-6);
  y = MADDD(y, t, -0.00010973764597160052);
  y = MADDD(y, t, 1.0027414287547794);
  y = MADDD(y, t, 17.922978216737073);
  return y;
}

/* `near`: the caller guarantees that x is in the range of lt_near_range64, where w < 6. */
LT_MATHS double lt_erfinv_wide(double x, bool near) {
  double v = fabs(x), w = -lt_m_log((1 - v) * (1 + v)), y = lt_erfinv_near(v, w);
  if (near) return copysign(y, x);
  double root = sqrt(w), mid = lt_erfinv_mid(root), far = lt_erfinv_far(root);
  y = w < 6 ? y : root < 4 ? mid : far;
  y = v < 1 ? y : (double)NAN;
  y = v == 1 ? (double)INFINITY : y;
  return copysign(y, x);
}

LT_MATHS double lt_ndtri_wide(double p, bool near) {
  double x = 2 * p - 1, v = fabs(x), w = -lt_m_log(4 * p * (1 - p)), y = lt_erfinv_near(v, w);
  if (near) return copysign(1.41421356237309504880 * y, x);
  double root = sqrt(w), mid = lt_erfinv_mid(root), far = lt_erfinv_far(root);
  double farther = lt_erfinv_farther(root);
  y = 1.41421356237309504880 * (w < 6 ? y : root < 4 ? mid : root < 9 ? far : farther);
  y = (p > 0) & (p < 1) ? y : (double)NAN;
  y = (p == 0) | (p == 1) ? (double)INFINITY : y;
  return copysign(y, x);
}

#define lt_erfinv(x) lt_erfinv_wide(x, LT_NEAR)
#define lt_ndtri(x)  lt_ndtri_wide(x, LT_NEAR)

/* Returns the range of an op, as lt_near_range, but of the upper 32 bits of x. */
LT_MATHS lt_Range lt_near_range64(const char *op) {
  if (__builtin_strcmp(op, "erfinv") == 0)
    return (lt_Range){~LT_SIGN_BIT, 0, 0x3fefefffu}; /* |x| < 1 - 2^-9 */
  if (__builtin_strcmp(op, "special_ndtri") == 0)
    return (lt_Range){~0u, 0x3f500000u, 0x009ff7ffu}; /* 2^-10 to 1 - 2^-10 */
  return (lt_Range){0, 0, 0};
}

#endif
