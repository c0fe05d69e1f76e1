/* maths.h: M(f), the math functions of the float loops.
 *
 * float32 has its own functions (maths_float32.h, activations.h), accurate to 1.5 units in the last
 * place with any compiler and library; libmvec's are off by up to 4 (log 3.9, tan 3.8, erf 4.0,
 * asin 3.1, exp 2.8). float32 uses those functions of libmvec that keep that bound: pow, hypot,
 * erfc up to 4.5 and, with AVX-512, tanh.
 *
 * For float64, gcc converts a call of exp in a vector loop to _ZGVeN8v_exp and the like, which
 * libmvec and SLEEF provide, if the declaration has the attribute. libmvec is preferred: it handles
 * all special values correctly. SLEEF's log1p, sinh, cosh, asinh and acosh overflow too early and
 * stay scalar. fmod must be exact, and no vector variant is (division.h).
 *
 * These libraries are used on x86-64 only. On AArch64 gcc expects that a vector variant preserves
 * the registers v8 to v23 (the "vector PCS"). Debian's SLEEF is built for the base standard and
 * changes v16 to v23, so results are wrong, although everything links. libmvec for AArch64,
 * complete since glibc 2.40, has not been tried. */
#ifndef LT_CPU_MATHS_H
#define LT_CPU_MATHS_H

#include "vector_maths.h"

/* The float32 functions of libmvec that are accurate enough. */
#ifdef LT_LIBMVEC_FLOAT32
LT_SIMD float erfcf(float);
LT_SIMD float tanhf(float);
#endif

#include "activations.h"

/* A mask of a condition on an argument, outside of which libmvec computes elements one by one. The
 * baseline has no vector code for such masks. */
#if defined(LT_LIBMVEC_FLOAT32) && defined(__AVX2__)
#define LT_INSIDE(range) ((range) ? ~(uint64_t)0 : 0)
#else
#define LT_INSIDE(range) (~(uint64_t)0)
#endif

/* lt_m_<g>: the C library's functions, and their vector variants where the attribute names them. */
#define LT_VECTOR1(g)                                                                              \
  LT_SIMD double g(double);                                                                        \
  static inline double lt_m_##g(double x) { return g(x); }
LT_VECTOR1(exp)
LT_VECTOR1(exp2)
LT_VECTOR1(log)
LT_VECTOR1(log10)
LT_VECTOR1(expm1)
LT_VECTOR1(log2)
LT_VECTOR1(sin)
LT_VECTOR1(cos)
LT_VECTOR1(tan)
LT_VECTOR1(asin)
LT_VECTOR1(acos)
LT_VECTOR1(atan)
LT_VECTOR1(tanh)
LT_VECTOR1(atanh)
LT_VECTOR1(erf)
LT_VECTOR1(erfc)
#ifdef LT_VECTOR_SLEEF
#define LT_WIDE1(g)                                                                                \
  static inline double lt_m_##g(double x) { return g(x); }
#else
#define LT_WIDE1 LT_VECTOR1
#endif
LT_WIDE1(log1p)
LT_WIDE1(sinh)
LT_WIDE1(cosh)
LT_WIDE1(asinh)
LT_WIDE1(acosh)

/* For float32 as well: */
#define LT_SCALAR2(g)                                                                              \
  static inline float lt_m_##g##f(float x, float y) { return g##f(x, y); }                         \
  static inline double lt_m_##g(double x, double y) { return g(x, y); }
static inline double lt_m_atan2(double y, double x) { return atan2(y, x); }
LT_SCALAR2(hypot)

/* x^y by the power of |x|: the libraries compute vectors with a negative x element by element, and
 * in float64 those with 0. The sign is copied, as gcc vectorizes no signbit of float64. A number
 * from WHOLE on has no fraction; if y has one, the power of a finite x < 0 is NaN. */
#define LT_POW(T, g, size_of, sign_of, WHOLE)                                                      \
  static inline T lt_m_##g(T x, T y) {                                                             \
    T size = lt_size_##g(size_of(x), y), a = size_of(y), half = a / 2, bound = (T)WHOLE;           \
    int whole = (a >= bound) | ((a + bound) - bound == a);                                         \
    int even = (half >= bound) | ((half + bound) - bound == half);                                 \
    size = whole & !even ? sign_of(size, x) : size;                                                \
    return (x < 0) & (x > -(T)INFINITY) & !whole ? (T)NAN : size;                                  \
  }
LT_SIMD float powf(float, float);
LT_SIMD double pow(double, double);
static inline float lt_size_powf(float x, float y) { return powf(x, y); }
static inline double lt_size_pow(double x, double y) {
  const uint64_t inside = LT_INSIDE(x != 0);
  const double beyond = y > 0 ? 0 : y < 0 ? (double)INFINITY : 1 + y;
  return lt_masked(inside, pow(lt_masked(inside, x, 1), y), beyond);
}
LT_POW(float, powf, fabsf, copysignf, 0x1p23)
LT_POW(double, pow, fabs, copysign, 0x1p52)

/* CPU instructions, whose loops run best without groups (see loops.h): the names have no lt_. */
#define lt_m_sqrt      sqrt
#define lt_m_sqrtf     sqrtf
#define lt_m_fabs      fabs
#define lt_m_fabsf     fabsf
#define lt_m_floor     floor
#define lt_m_floorf    floorf
#define lt_m_ceil      ceil
#define lt_m_ceilf     ceilf
#define lt_m_trunc     trunc
#define lt_m_truncf    truncf
#define lt_m_rint      rint
#define lt_m_rintf     rintf
#define lt_m_copysign  copysign
#define lt_m_copysignf copysignf

#include "special_float32.h"
#include "division.h"

/* The functions of these files. LT_NEAR is a constant at the place where an expression is
 * expanded. */
#define lt_m_expf(x)                      lt_expf(x, LT_NEAR)
#define lt_m_exp_belowf(x)                lt_exp_belowf(x)
#define lt_m_exp_below(x)                 lt_m_exp(x)
#define lt_m_exp2f(x)                     lt_exp2f(x, LT_NEAR)
#define lt_m_expm1f(x)                    lt_expm1f(x, LT_NEAR)
#define lt_m_logf(x)                      lt_logf(x, LT_NEAR)
#define lt_m_log2f(x)                     lt_log2f(x, LT_NEAR)
#define lt_m_log10f(x)                    lt_log10f(x, LT_NEAR)
#define lt_m_log1pf(x)                    lt_log1pf(x, LT_NEAR)
#define lt_m_sinf(x)                      lt_sinf(x, LT_NEAR)
#define lt_m_cosf(x)                      lt_cosf(x, LT_NEAR)
#define lt_m_tanf(x)                      lt_tanf(x, LT_NEAR)
#define lt_m_asinf(x)                     lt_asinf(x)
#define lt_m_acosf(x)                     lt_acosf(x)
#define lt_m_atanf(x)                     lt_atanf(x)
#define lt_m_atan2f(y, x)                 lt_atan2f(y, x)
#define lt_m_sinhf(x)                     lt_sinhf(x)
#define lt_m_coshf(x)                     lt_coshf(x)
#define lt_m_asinhf(x)                    lt_asinhf(x, LT_NEAR)
#define lt_m_acoshf(x)                    lt_acoshf(x, LT_NEAR)
#define lt_m_atanhf(x)                    lt_atanhf(x)
#define lt_m_erff(x)                      lt_erff(x)
#define lt_m_erfcf(x)                     lt_erfcf(x, LT_NEAR)
#define lt_m_sigmoidf(x)                  lt_sigmoidf(x, LT_NEAR)
#define lt_m_sigmoid_slopef(y)            FUSED(-(y), y, (y) > 0x1p60f ? 0 : (y)) /* keeps -inf */
#define lt_m_tanh_slopef(y)               FUSED(-(y), y, 1.0f)
#define lt_m_logsigmoidf(x)               lt_logsigmoidf(x, LT_NEAR)
#define lt_m_siluf(x)                     lt_siluf(x, LT_NEAR)
#define lt_m_gluf(x, gate)                lt_gluf(x, gate, LT_NEAR)
#define lt_m_silu_backwardf(grad, x)      lt_silu_backwardf(grad, x, LT_NEAR)
#define lt_m_gelu_erff(x)                 lt_gelu_erff(x, LT_NEAR)
#define lt_m_gelu_erf_backwardf(grad, x)  lt_gelu_erf_backwardf(grad, x, LT_NEAR)
#define lt_m_gelu_tanhf(x)                lt_gelu_tanhf(x, LT_NEAR)
#define lt_m_gelu_tanh_backwardf(grad, x) lt_gelu_tanh_backwardf(grad, x, LT_NEAR)
#define lt_m_log1p_expf(x)                lt_log1p_expf(x)
#define lt_m_softplusf(x, beta, bound)    lt_softplusf(x, beta, bound)
#define lt_m_eluf(x, alpha)               lt_eluf(x, alpha, LT_NEAR)
#define lt_m_mishf(x)                     lt_mishf(x)
#define lt_m_seluf(x)                     lt_seluf(x, LT_NEAR)
#define lt_m_celuf(x, alpha)              lt_celuf(x, alpha, LT_NEAR)
#define lt_m_erfinvf(x)                   lt_erfinvf(x)
#define lt_m_logitf(x, eps)               lt_logitf(x, eps)
#define lt_m_sincf(x)                     lt_sincf(x)
#define lt_m_i0f(x)                       lt_i0f(x)
#define lt_m_i0ef(x)                      lt_i0ef(x)
#define lt_m_i1f(x)                       lt_i1f(x)
#define lt_m_i1ef(x)                      lt_i1ef(x)
#define lt_m_lgammaf(x)                   lt_lgammaf(x, LT_NEAR)
#define lt_m_digammaf(x)                  lt_digammaf(x, LT_NEAR)
#define lt_m_trigammaf(x)                 lt_trigammaf(x, LT_NEAR)
#define lt_m_j0f(x)                       lt_bessel_j(x, false, LT_NEAR)
#define lt_m_j1f(x)                       lt_bessel_j(x, true, LT_NEAR)
#define lt_m_y0f(x)                       lt_bessel_y(x, false, LT_NEAR)
#define lt_m_y1f(x)                       lt_bessel_y(x, true, LT_NEAR)
#define lt_m_k0f(x)                       lt_bessel_k(x, false, false)
#define lt_m_k1f(x)                       lt_bessel_k(x, true, false)
#define lt_m_k0ef(x)                      lt_bessel_k(x, false, true)
#define lt_m_k1ef(x)                      lt_bessel_k(x, true, true)
#define lt_m_spherical_j0f(x)             lt_spherical_j0f(x, LT_NEAR)
#define lt_m_ndtrf(x)                     lt_ndtrf(x, LT_NEAR)
#define lt_m_ndtrif(x)                    lt_ndtrif(x)
#define lt_m_log_ndtrf(x)                 lt_log_ndtrf(x)
#define lt_m_entrf(x)                     lt_entrf(x)
#define lt_m_log2_1p_exp2f(x)             lt_log2_1p_exp2f(x)
#define lt_m_xlogyf(x, y)                 lt_xlogyf(x, y)
#define lt_m_xlog1pyf(x, y)               lt_xlog1pyf(x, y)
#define lt_m_nextafterf(x, y, limit)      lt_nextafterf(x, y, limit)
#define lt_m_fmodf(x, y)                  lt_fmodf(x, y, LT_NEAR)
#define lt_m_fmod(x, y)                   lt_fmod(x, y, LT_NEAR)

/* libmvec's function where it is as accurate and, with AVX-512, faster. */
#if defined(LT_LIBMVEC_FLOAT32) && defined(__AVX512F__)
static inline float lt_m_tanhf(float x) { return tanhf(x); }
#else
#define lt_m_tanhf(x) lt_tanhf(x)
#endif

#endif
