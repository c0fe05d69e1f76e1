/* maths.h: the functions of float, half and bfloat, and of vectors. Those of half and bfloat are
 * computed in float. `precise` and `fast` are the same. */
#ifndef LT_EMULATED_METAL_MATHS_H
#define LT_EMULATED_METAL_MATHS_H

namespace metal {

LT_EMULATED float lt_exp10(float x) { return __builtin_powf(10.0f, x); }
/* Returns x - 2 * round(x / 2), from -1 to 1. */
LT_EMULATED float lt_turn(float x) { return x - 2 * __builtin_rintf(x / 2); }
LT_EMULATED float lt_sinpi(float x) {
  float r = lt_turn(x);
  if (__builtin_fabsf(r) > 0.5f) r = __builtin_copysignf(1.0f, r) - r;
  return (float)__builtin_sin(3.14159265358979323846 * (double)r);
}
LT_EMULATED float lt_cospi(float x) {
  return (float)__builtin_sin(3.14159265358979323846 * (0.5 - (double)__builtin_fabsf(lt_turn(x))));
}
LT_EMULATED float lt_fract(float x) {
  float f = x - __builtin_floorf(x);
  return f < 0x1.fffffep-1f ? f : 0x1.fffffep-1f;
}
LT_EMULATED float lt_sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f; }
LT_EMULATED float lt_clamp(float x, float low, float high) {
  return __builtin_fminf(__builtin_fmaxf(x, low), high);
}
LT_EMULATED float lt_smoothstep(float a, float b, float x) {
  float t = lt_clamp((x - a) / (b - a), 0, 1);
  return t * t * (3 - 2 * t);
}
LT_EMULATED float lt_median3(float a, float b, float c) {
  return __builtin_fmaxf(__builtin_fminf(a, b), __builtin_fminf(__builtin_fmaxf(a, b), c));
}

#define LT_MATHS_1(X)                                                                              \
  X(acos, __builtin_acosf(x))                                                                      \
  X(acosh, __builtin_acoshf(x))                                                                    \
  X(asin, __builtin_asinf(x))                                                                      \
  X(asinh, __builtin_asinhf(x))                                                                    \
  X(atan, __builtin_atanf(x))                                                                      \
  X(atanh, __builtin_atanhf(x))                                                                    \
  X(ceil, __builtin_ceilf(x))                                                                      \
  X(cos, __builtin_cosf(x))                                                                        \
  X(cosh, __builtin_coshf(x))                                                                      \
  X(cospi, lt_cospi(x))                                                                            \
  X(exp, __builtin_expf(x))                                                                        \
  X(exp10, lt_exp10(x))                                                                            \
  X(exp2, __builtin_exp2f(x))                                                                      \
  X(fabs, __builtin_fabsf(x))                                                                      \
  X(floor, __builtin_floorf(x))                                                                    \
  X(fract, lt_fract(x))                                                                            \
  X(log, __builtin_logf(x))                                                                        \
  X(log10, __builtin_log10f(x))                                                                    \
  X(log2, __builtin_log2f(x))                                                                      \
  X(rint, __builtin_rintf(x))                                                                      \
  X(round, __builtin_roundf(x))                                                                    \
  X(rsqrt, 1.0f / __builtin_sqrtf(x))                                                              \
  X(saturate, lt_clamp(x, 0, 1))                                                                   \
  X(sign, lt_sign(x))                                                                              \
  X(sin, __builtin_sinf(x))                                                                        \
  X(sinh, __builtin_sinhf(x))                                                                      \
  X(sinpi, lt_sinpi(x))                                                                            \
  X(sqrt, __builtin_sqrtf(x))                                                                      \
  X(tan, __builtin_tanf(x))                                                                        \
  X(tanh, __builtin_tanhf(x))                                                                      \
  X(tanpi, lt_sinpi(x) / lt_cospi(x))                                                              \
  X(trunc, __builtin_truncf(x))
#define LT_MATHS_2(X)                                                                              \
  X(atan2, __builtin_atan2f(x, y))                                                                 \
  X(copysign, __builtin_copysignf(x, y))                                                           \
  X(divide, x / y)                                                                                 \
  X(fdim, __builtin_fdimf(x, y))                                                                   \
  X(fmax, __builtin_fmaxf(x, y))                                                                   \
  X(fmin, __builtin_fminf(x, y))                                                                   \
  X(fmod, __builtin_fmodf(x, y))                                                                   \
  X(pow, __builtin_powf(x, y))                                                                     \
  X(powr, __builtin_powf(x, y))                                                                    \
  X(step, y < x ? 0.0f : 1.0f)
/* With one NaN argument the result is the other argument. */
#define LT_SHARED_2(X)                                                                             \
  X(max, __builtin_fmaxf(x, y))                                                                    \
  X(min, __builtin_fminf(x, y))
#define LT_MATHS_3(X)                                                                              \
  X(fma, __builtin_fmaf(x, y, z))                                                                  \
  X(fmax3, __builtin_fmaxf(x, __builtin_fmaxf(y, z)))                                              \
  X(fmedian3, lt_median3(x, y, z))                                                                 \
  X(fmin3, __builtin_fminf(x, __builtin_fminf(y, z)))                                              \
  X(mix, x + (y - x) * z)                                                                          \
  X(smoothstep, lt_smoothstep(x, y, z))
#define LT_SHARED_3(X)                                                                             \
  X(clamp, lt_clamp(x, y, z))                                                                      \
  X(max3, __builtin_fmaxf(x, __builtin_fmaxf(y, z)))                                               \
  X(median3, lt_median3(x, y, z))                                                                  \
  X(min3, __builtin_fminf(x, __builtin_fminf(y, z)))
#define LT_TESTS(X)                                                                                \
  X(isfinite, __builtin_isfinite(x))                                                               \
  X(isinf, __builtin_isinf(x) != 0)                                                                \
  X(isnan, x != x)                                                                                 \
  X(isnormal, __builtin_isnormal(x) != 0)                                                          \
  X(signbit, __builtin_signbit(x) != 0)

#define X(name, e)                                                                                 \
  LT_EMULATED float name(float x) { return e; }                                                    \
  LT_EMULATED half name(half h) { return half(name((float)h)); }                                   \
  LT_EMULATED bfloat name(bfloat h) { return bfloat(name((float)h)); }                             \
  LT_OF_VECTORS_1(name)
LT_MATHS_1(X)
#undef X
#define X(name, e)                                                                                 \
  LT_EMULATED float name(float x, float y) { return e; }                                           \
  LT_EMULATED half name(half a, half b) { return half(name((float)a, (float)b)); }                 \
  LT_EMULATED bfloat name(bfloat a, bfloat b) { return bfloat(name((float)a, (float)b)); }         \
  LT_OF_VECTORS_2(name)
LT_MATHS_2(X)
LT_SHARED_2(X)
#undef X
#define X(name, e)                                                                                 \
  LT_EMULATED float name(float x, float y, float z) { return e; }                                  \
  LT_EMULATED half name(half a, half b, half c) {                                                  \
    return half(name((float)a, (float)b, (float)c));                                               \
  }                                                                                                \
  LT_EMULATED bfloat name(bfloat a, bfloat b, bfloat c) {                                          \
    return bfloat(name((float)a, (float)b, (float)c));                                             \
  }                                                                                                \
  LT_OF_VECTORS_3(name)
LT_MATHS_3(X)
LT_SHARED_3(X)
#undef X
#define X(name, e)                                                                                 \
  LT_EMULATED bool name(float x) { return e; }                                                     \
  LT_EMULATED bool name(half h) { return name((float)h); }                                         \
  LT_EMULATED bool name(bfloat h) { return name((float)h); }                                       \
  LT_OF_VECTORS_1(name)
LT_TESTS(X)
#undef X
#undef LT_TESTS
#undef LT_MATHS_1
#undef LT_MATHS_2
#undef LT_MATHS_3
#undef LT_SHARED_2
#undef LT_SHARED_3
LT_EMULATED float abs(float x) { return __builtin_fabsf(x); }
LT_EMULATED half abs(half x) { return fabs(x); }
LT_EMULATED bfloat abs(bfloat x) { return fabs(x); }
LT_OF_VECTORS_1(abs)
LT_OF_VECTORS_1(popcount)
LT_OF_VECTORS_1(clz)
LT_OF_VECTORS_1(ctz)
LT_OF_VECTORS_1(reverse_bits)
LT_OF_VECTORS_2(rotate)
LT_OF_VECTORS_2(mulhi)
LT_OF_VECTORS_2(absdiff)
LT_OF_VECTORS_2(addsat)
LT_OF_VECTORS_2(subsat)
LT_OF_VECTORS_2(hadd)
LT_OF_VECTORS_2(rhadd)
LT_EMULATED float select(float a, float b, bool second) { return second ? b : a; }
LT_EMULATED half select(half a, half b, bool second) { return second ? b : a; }
LT_EMULATED bfloat select(bfloat a, bfloat b, bool second) { return second ? b : a; }
LT_EMULATED bool isordered(float a, float b) { return a == a && b == b; }
LT_EMULATED bool isunordered(float a, float b) { return a != a || b != b; }

/* ---- functions with other types -------------------------------------------------------------- */

LT_EMULATED float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
LT_EMULATED int ilogb(float x) { return __builtin_ilogbf(x); }
LT_EMULATED float frexp(float x, int &exponent) { return __builtin_frexpf(x, &exponent); }
LT_EMULATED float modf(float x, float &whole) { return __builtin_modff(x, &whole); }
LT_EMULATED float sincos(float x, float &cosine) {
  cosine = cos(x);
  return sin(x);
}
LT_EMULATED half ldexp(half x, int n) { return half(ldexp((float)x, n)); }

/* ---- geometry -------------------------------------------------------------------------------- */

template <class T, int N> LT_EMULATED T dot(vec<T, N> a, vec<T, N> b) {
  T sum = (T)0;
  for (int i = 0; i < N; i++) sum += a[i] * b[i];
  return sum;
}
template <class T, int N> LT_EMULATED T length_squared(vec<T, N> a) { return dot(a, a); }
template <class T, int N> LT_EMULATED T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <class T, int N> LT_EMULATED T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <class T, int N> LT_EMULATED T distance_squared(vec<T, N> a, vec<T, N> b) {
  return length_squared(a - b);
}
template <class T, int N> LT_EMULATED vec<T, N> normalize(vec<T, N> a) {
  return a * rsqrt(dot(a, a));
}
template <class T> LT_EMULATED vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

namespace precise {
using namespace metal;
}
namespace fast {
using namespace metal;
}

} // namespace metal

#endif
