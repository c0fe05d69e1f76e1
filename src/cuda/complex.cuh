/* complex.cuh: complex numbers for kernels: a type with C's operators, loads and stores, and the
 * math functions used in the expressions of mathx.h. Results agree with the CPU's up to
 * rounding. */
#ifndef LT_CUDA_COMPLEX_CUH
#define LT_CUDA_COMPLEX_CUH

#include "device.cuh"

#define LT_COMPLEX_INLINE static __device__ __forceinline__

/* A complex number with parts of the type R, float or double. Division is not defined here:
 * QUOTIENT of mathx.h divides. */
template <class R> struct alignas(2 * sizeof(R)) Complex {
  R re, im;
  Complex() = default;
  __host__ __device__ __forceinline__ Complex(R real, R imag = 0) : re(real), im(imag) {}
  __host__ __device__ __forceinline__ Complex(const lt_complex64 &z) : re((R)z.re), im((R)z.im) {}
  __host__ __device__ __forceinline__ Complex(const lt_complex128 &z) : re((R)z.re), im((R)z.im) {}
  __device__ __forceinline__ Complex operator-() const { return Complex(-re, -im); }
  friend __device__ __forceinline__ Complex operator+(Complex a, Complex b) {
    return Complex(a.re + b.re, a.im + b.im);
  }
  friend __device__ __forceinline__ Complex operator-(Complex a, Complex b) {
    return Complex(a.re - b.re, a.im - b.im);
  }
  friend __device__ __forceinline__ Complex operator*(Complex a, Complex b) {
    return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
  }
  friend __device__ __forceinline__ bool operator==(Complex a, Complex b) {
    return a.re == b.re && a.im == b.im;
  }
  friend __device__ __forceinline__ bool operator!=(Complex a, Complex b) { return !(a == b); }
};

/* ---- elements -------------------------------------------------------------------------------- */

/* Returns element i of memory of any dtype. */
template <class R>
LT_COMPLEX_INLINE Complex<R> load_complex(const void *memory, int dtype, int64_t i) {
  if (dtype == LT_complex64) return Complex<R>(((const lt_complex64 *)memory)[i]);
  if (dtype == LT_complex128) return Complex<R>(((const lt_complex128 *)memory)[i]);
  return Complex<R>(load<R>(memory, dtype, i));
}
/* Stores z as element i of memory of any dtype. Real dtypes except bool get the real part. */
template <class R>
LT_COMPLEX_INLINE void store_complex(void *memory, int dtype, int64_t i, Complex<R> z) {
  if (dtype == LT_complex64) {
    lt_complex64 v = {(float)z.re, (float)z.im};
    ((lt_complex64 *)memory)[i] = v;
  } else if (dtype == LT_complex128) {
    lt_complex128 v = {(double)z.re, (double)z.im};
    ((lt_complex128 *)memory)[i] = v;
  } else if (dtype == LT_bool) {
    ((uint8_t *)memory)[i] = z != Complex<R>(0);
  } else {
    store<R>(memory, dtype, i, z.re);
  }
}
#define LT_COMPLEX_ELEMENTS(R)                                                                     \
  template <>                                                                                      \
  __device__ __forceinline__ Complex<R> load<Complex<R>>(const void *memory, int dtype,            \
                                                         int64_t i) {                              \
    return load_complex<R>(memory, dtype, i);                                                      \
  }                                                                                                \
  template <>                                                                                      \
  __device__ __forceinline__ void store<Complex<R>>(void *memory, int dtype, int64_t i,            \
                                                    Complex<R> z) {                                \
    store_complex<R>(memory, dtype, i, z);                                                         \
  }
LT_COMPLEX_ELEMENTS(float)
LT_COMPLEX_ELEMENTS(double)

/* ---- maths ----------------------------------------------------------------------------------- */

#define LT_COMPLEX_MATHS template <class R> LT_COMPLEX_INLINE Complex<R>

LT_COMPLEX_MATHS complex_conj(Complex<R> z) { return Complex<R>(z.re, -z.im); }

LT_COMPLEX_MATHS m_fabs(Complex<R> z) { return Complex<R>(m_hypot(z.re, z.im)); }

LT_COMPLEX_MATHS m_exp(Complex<R> z) {
  R size = m_exp(z.re);
  if (z.im == 0) return Complex<R>(size, z.im);
  return Complex<R>(size * m_cos(z.im), size * m_sin(z.im));
}

/* Near the unit circle, log |z| is computed from |z|^2 - 1, which is accurate to the last bits
 * there. */
LT_COMPLEX_MATHS m_log(Complex<R> z) {
  R size = m_hypot(z.re, z.im), angle = m_atan2(z.im, z.re), a = m_fabs(z.re), b = m_fabs(z.im);
  R large = a > b ? a : b, small = a > b ? b : a;
  if (size > (R)0.5 && size < (R)2)
    return Complex<R>((R)0.5 * m_log1p((large - 1) * (large + 1) + small * small), angle);
  return Complex<R>(m_log(size), angle);
}

LT_COMPLEX_MATHS m_sqrt(Complex<R> z) {
  if (z.re == 0 && z.im == 0) return Complex<R>(0, z.im);
  if (m_fabs(z.im) == (R)INFINITY) return Complex<R>((R)INFINITY, z.im);
  R t = m_sqrt((m_fabs(z.re) + m_hypot(z.re, z.im)) * (R)0.5);
  if (z.re >= 0) return Complex<R>(t, z.im / (2 * t));
  return Complex<R>(m_fabs(z.im) / (2 * t), m_copysign(t, z.im));
}

/* On the axes one factor is 0; it is not multiplied, because 0 times infinity would be NaN. */
LT_COMPLEX_MATHS m_sinh(Complex<R> z) {
  if (z.im == 0) return Complex<R>(m_sinh(z.re), z.im);
  if (z.re == 0) return Complex<R>(z.re, m_sin(z.im));
  return Complex<R>(m_sinh(z.re) * m_cos(z.im), m_cosh(z.re) * m_sin(z.im));
}
LT_COMPLEX_MATHS m_cosh(Complex<R> z) {
  if (z.im == 0) return Complex<R>(m_cosh(z.re), z.re < 0 ? -z.im : z.im);
  if (z.re == 0) return Complex<R>(m_cos(z.im), z.im < 0 ? -z.re : z.re);
  return Complex<R>(m_cosh(z.re) * m_cos(z.im), m_sinh(z.re) * m_sin(z.im));
}
LT_COMPLEX_MATHS m_sin(Complex<R> z) {
  Complex<R> w = m_sinh(Complex<R>(-z.im, z.re));
  return Complex<R>(w.im, -w.re);
}
LT_COMPLEX_MATHS m_cos(Complex<R> z) { return m_cosh(Complex<R>(-z.im, z.re)); }

/* This and the functions below follow Kahan 1987, "Branch cuts for complex elementary
 * functions". */
LT_COMPLEX_MATHS m_tanh(Complex<R> z) {
  if (z.im == 0) return Complex<R>(m_tanh(z.re), z.im);
  if (z.re == 0) return Complex<R>(z.re, m_tan(z.im));
  if (m_fabs(z.re) > 20) {
    R rest = 4 * m_sin(z.im) * m_cos(z.im) * m_exp(-2 * m_fabs(z.re));
    return Complex<R>(m_copysign((R)1, z.re), rest);
  }
  R t = m_tan(z.im), b = 1 + t * t, s = m_sinh(z.re), r = m_sqrt(1 + s * s);
  R below = 1 + b * s * s;
  return Complex<R>(b * r * s / below, t / below);
}
LT_COMPLEX_MATHS m_tan(Complex<R> z) {
  Complex<R> w = m_tanh(Complex<R>(-z.im, z.re));
  return Complex<R>(w.im, -w.re);
}

LT_COMPLEX_MATHS m_asin(Complex<R> z) {
  Complex<R> below = m_sqrt(Complex<R>(1 - z.re, -z.im)),
             above = m_sqrt(Complex<R>(1 + z.re, z.im));
  return Complex<R>(m_atan2(z.re, (below * above).re), m_asinh((complex_conj(below) * above).im));
}
LT_COMPLEX_MATHS m_acos(Complex<R> z) {
  Complex<R> below = m_sqrt(Complex<R>(1 - z.re, -z.im)),
             above = m_sqrt(Complex<R>(1 + z.re, z.im));
  return Complex<R>(2 * m_atan2(below.re, above.re), m_asinh((complex_conj(above) * below).im));
}
LT_COMPLEX_MATHS m_acosh(Complex<R> z) {
  Complex<R> below = m_sqrt(Complex<R>(z.re - 1, z.im)), above = m_sqrt(Complex<R>(z.re + 1, z.im));
  return Complex<R>(m_asinh((complex_conj(below) * above).re), 2 * m_atan2(below.im, above.re));
}
LT_COMPLEX_MATHS m_asinh(Complex<R> z) {
  Complex<R> w = m_asin(Complex<R>(-z.im, z.re));
  return Complex<R>(w.im, -w.re);
}
LT_COMPLEX_MATHS m_atanh(Complex<R> z) {
  bool turned = z.re < 0;
  R x = turned ? -z.re : z.re, y = turned ? -z.im : z.im, d = 1 - x, size = m_hypot(x, y);
  if (size > (R)1e9 && x == x && y == y) { /* 1 / z + i pi / 2, without squares that overflow */
    bool finite = size < (R)INFINITY;
    R re = finite ? x / size / size : 0, im = m_copysign((R)1.57079632679489661923, y);
    if (finite) im -= y / size / size;
    return turned ? Complex<R>(-re, -im) : Complex<R>(re, im);
  }
  R re = (R)0.25 * m_log1p(4 * x / (d * d + y * y));
  R im = (R)0.5 * m_atan2(2 * y, d * (1 + x) - y * y);
  return turned ? Complex<R>(-re, -im) : Complex<R>(re, im);
}
LT_COMPLEX_MATHS m_atan(Complex<R> z) {
  Complex<R> w = m_atanh(Complex<R>(-z.im, z.re));
  return Complex<R>(w.im, -w.re);
}

/* cos(y) - 1 = -2 sin^2(y / 2), and |1 + z|^2 - 1 = x (2 + x) + y^2: accurate near 0. */
LT_COMPLEX_MATHS m_expm1(Complex<R> z) {
  if (z.im == 0) return Complex<R>(m_expm1(z.re), z.im);
  R s = m_sin(z.im / 2);
  return Complex<R>(m_expm1(z.re) * m_cos(z.im) - 2 * s * s, m_exp(z.re) * m_sin(z.im));
}
LT_COMPLEX_MATHS m_log1p(Complex<R> z) {
  R size = m_hypot(1 + z.re, z.im), angle = m_atan2(z.im, 1 + z.re);
  if (size > (R)0.5 && size < (R)2)
    return Complex<R>(m_log1p(z.re * (2 + z.re) + z.im * z.im) / 2, angle);
  return Complex<R>(m_log(size), angle);
}

LT_COMPLEX_MATHS m_exp2(Complex<R> z) {
  const R ln2 = (R)0.69314718055994530942;
  return m_exp(Complex<R>(z.re * ln2, z.im * ln2));
}
LT_COMPLEX_MATHS m_log2(Complex<R> z) {
  const R ln2 = (R)0.69314718055994530942;
  Complex<R> w = m_log(z);
  return Complex<R>(w.re / ln2, w.im / ln2);
}
LT_COMPLEX_MATHS m_log10(Complex<R> z) {
  const R ln10 = (R)2.30258509299404568402;
  Complex<R> w = m_log(z);
  return Complex<R>(w.re / ln10, w.im / ln10);
}
LT_COMPLEX_MATHS m_pow(Complex<R> x, Complex<R> y) {
  if (x == Complex<R>(0) && y.re > 0) return Complex<R>(0);
  return m_exp(y * m_log(x));
}

#endif
