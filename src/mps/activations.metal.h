/* activations.metal.h: formulas of mathx.h for float, written so that no terms cancel: they take
 * the place of mathx.h's own, whose relative errors grow for negative arguments. */
#ifndef LT_MPS_ACTIVATIONS_METAL_H
#define LT_MPS_ACTIVATIONS_METAL_H

#include "maths.metal.h"

/* Returns 1 / (1 + e^-x). */
static inline float sigmoid_of(float x) {
  float e = m_exp(-fabs(x));
  return (x < 0 ? e : 1.0f) / (1 + e);
}

/* y is the result of the function. An infinite y stays so. */
static inline float sigmoid_slope_of(float y) { return fma(-y, y, y > 0x1p60f ? 0.0f : y); }
static inline float tanh_slope_of(float y) { return fma(-y, y, 1.0f); }

static inline float silu_of(float x) { return x * sigmoid_of(x); }
static inline float silu_backward_of(float grad, float y) {
  return grad * (sigmoid_of(y) * fma(y, sigmoid_of(-y), 1.0f));
}

/* Returns the normal distribution function. The rounding error of the argument of erfc has the
 * effect of a factor. */
static inline float normal_of(float x) {
  float a = x * -0.707106769f, low = fma(x, -0.707106769f, -a) + x * -1.21016175e-08f;
  float y = 0.5f * m_erfc(a);
  return a > 0.25f && a < 12 ? y * fma(-2 * a, low, 1.0f) : y;
}
static inline float gelu_erf_of(float x) { return x * normal_of(x); }
static inline float gelu_erf_backward_of(float grad, float y) {
  return grad * fma(y * 0.398942280f, m_exp(-0.5f * y * y), normal_of(y));
}

/* 1 + tanh(u) is 2 sigmoid(2 u). */
static inline float gelu_tanh_angle(float x) { return 1.59576912f * (x + 0.044715f * x * x * x); }
static inline float gelu_tanh_of(float x) { return x * sigmoid_of(gelu_tanh_angle(x)); }
static inline float gelu_tanh_backward_of(float grad, float y) {
  float v = gelu_tanh_angle(y), rise = 1.59576912f * fma(0.134145f, y * y, 1.0f);
  return grad * (sigmoid_of(v) * fma(y * sigmoid_of(-v), rise, 1.0f));
}

#endif
