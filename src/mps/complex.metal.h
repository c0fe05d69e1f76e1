/* complex.metal.h: the math functions of complex numbers for the expressions of mathx.h. Results
 * agree with the CPU's up to rounding. */
#ifndef LT_MPS_COMPLEX_METAL_H
#define LT_MPS_COMPLEX_METAL_H

#include "maths.metal.h"

static inline Complex complex_conj(Complex z) { return Complex(z.re, -z.im); }

static inline Complex m_fabs(Complex z) { return Complex(m_hypot(z.re, z.im)); }

static inline Complex m_exp(Complex z) {
  float size = m_exp(z.re);
  if (z.im == 0) return Complex(size, z.im);
  return Complex(size * m_cos(z.im), size * m_sin(z.im));
}

/* Near the unit circle, log |z| is computed from |z|^2 - 1, which is accurate to the last bits
 * there. */
static inline Complex m_log(Complex z) {
  float size = m_hypot(z.re, z.im), angle = m_atan2(z.im, z.re), a = m_fabs(z.re), b = m_fabs(z.im);
  float large = a > b ? a : b, small = a > b ? b : a;
  if (size > 0.5f && size < 2.0f)
    return Complex(0.5f * m_log1p((large - 1) * (large + 1) + small * small), angle);
  return Complex(m_log(size), angle);
}

static inline Complex m_sqrt(Complex z) {
  if (z.re == 0 && z.im == 0) return Complex(0, z.im);
  if (m_fabs(z.im) == INFINITY) return Complex(INFINITY, z.im);
  float t = m_sqrt((m_fabs(z.re) + m_hypot(z.re, z.im)) * 0.5f);
  if (z.re >= 0) return Complex(t, z.im / (2 * t));
  return Complex(m_fabs(z.im) / (2 * t), m_copysign(t, z.im));
}

/* On the axes one factor is 0; it is not multiplied, because 0 times infinity would be NaN. */
static inline Complex m_sinh(Complex z) {
  if (z.im == 0) return Complex(m_sinh(z.re), z.im);
  if (z.re == 0) return Complex(z.re, m_sin(z.im));
  return Complex(m_sinh(z.re) * m_cos(z.im), m_cosh(z.re) * m_sin(z.im));
}
static inline Complex m_cosh(Complex z) {
  if (z.im == 0) return Complex(m_cosh(z.re), z.re < 0 ? -z.im : z.im);
  if (z.re == 0) return Complex(m_cos(z.im), z.im < 0 ? -z.re : z.re);
  return Complex(m_cosh(z.re) * m_cos(z.im), m_sinh(z.re) * m_sin(z.im));
}
static inline Complex m_sin(Complex z) {
  Complex w = m_sinh(Complex(-z.im, z.re));
  return Complex(w.im, -w.re);
}
static inline Complex m_cos(Complex z) { return m_cosh(Complex(-z.im, z.re)); }

/* This and the functions below follow Kahan 1987, "Branch cuts for complex elementary
 * functions". */
static inline Complex m_tanh(Complex z) {
  if (z.im == 0) return Complex(m_tanh(z.re), z.im);
  if (z.re == 0) return Complex(z.re, m_tan(z.im));
  if (m_fabs(z.re) > 20) {
    float rest = 4 * m_sin(z.im) * m_cos(z.im) * m_exp(-2 * m_fabs(z.re));
    return Complex(m_copysign(1.0f, z.re), rest);
  }
  float t = m_tan(z.im), b = 1 + t * t, s = m_sinh(z.re), r = m_sqrt(1 + s * s);
  float below = 1 + b * s * s;
  return Complex(b * r * s / below, t / below);
}
static inline Complex m_tan(Complex z) {
  Complex w = m_tanh(Complex(-z.im, z.re));
  return Complex(w.im, -w.re);
}

static inline Complex m_asin(Complex z) {
  Complex below = m_sqrt(Complex(1 - z.re, -z.im)), above = m_sqrt(Complex(1 + z.re, z.im));
  return Complex(m_atan2(z.re, (below * above).re), m_asinh((complex_conj(below) * above).im));
}
static inline Complex m_acos(Complex z) {
  Complex below = m_sqrt(Complex(1 - z.re, -z.im)), above = m_sqrt(Complex(1 + z.re, z.im));
  return Complex(2 * m_atan2(below.re, above.re), m_asinh((complex_conj(above) * below).im));
}
static inline Complex m_acosh(Complex z) {
  Complex below = m_sqrt(Complex(z.re - 1, z.im)), above = m_sqrt(Complex(z.re + 1, z.im));
  return Complex(m_asinh((complex_conj(below) * above).re), 2 * m_atan2(below.im, above.re));
}
static inline Complex m_asinh(Complex z) {
  Complex w = m_asin(Complex(-z.im, z.re));
  return Complex(w.im, -w.re);
}
static inline Complex m_atanh(Complex z) {
  bool turned = z.re < 0;
  float x = turned ? -z.re : z.re, y = turned ? -z.im : z.im, d = 1 - x, size = m_hypot(x, y);
  if (size > 1e9f && x == x && y == y) { /* 1 / z + i pi / 2, without squares that overflow */
    bool finite = size < INFINITY;
    float re = finite ? x / size / size : 0, im = m_copysign(1.57079632679489661923f, y);
    if (finite) im -= y / size / size;
    return turned ? Complex(-re, -im) : Complex(re, im);
  }
  float re = 0.25f * m_log1p(4 * x / (d * d + y * y));
  float im = 0.5f * m_atan2(2 * y, d * (1 + x) - y * y);
  return turned ? Complex(-re, -im) : Complex(re, im);
}
static inline Complex m_atan(Complex z) {
  Complex w = m_atanh(Complex(-z.im, z.re));
  return Complex(w.im, -w.re);
}

/* cos(y) - 1 = -2 sin^2(y / 2), and |1 + z|^2 - 1 = x (2 + x) + y^2: accurate near 0. */
static inline Complex m_expm1(Complex z) {
  if (z.im == 0) return Complex(m_expm1(z.re), z.im);
  float s = m_sin(z.im / 2);
  return Complex(m_expm1(z.re) * m_cos(z.im) - 2 * s * s, m_exp(z.re) * m_sin(z.im));
}
static inline Complex m_log1p(Complex z) {
  float size = m_hypot(1 + z.re, z.im), angle = m_atan2(z.im, 1 + z.re);
  if (size > 0.5f && size < 2.0f)
    return Complex(m_log1p(z.re * (2 + z.re) + z.im * z.im) / 2, angle);
  return Complex(m_log(size), angle);
}

static inline Complex m_exp2(Complex z) {
  const float ln2 = 0.69314718055994530942f;
  return m_exp(Complex(z.re * ln2, z.im * ln2));
}
static inline Complex m_log2(Complex z) {
  const float ln2 = 0.69314718055994530942f;
  Complex w = m_log(z);
  return Complex(w.re / ln2, w.im / ln2);
}
static inline Complex m_log10(Complex z) {
  const float ln10 = 2.30258509299404568402f;
  Complex w = m_log(z);
  return Complex(w.re / ln10, w.im / ln10);
}
static inline Complex m_pow(Complex x, Complex y) {
  if (x == Complex(0) && y.re > 0) return Complex(0);
  return m_exp(y * m_log(x));
}

#endif
