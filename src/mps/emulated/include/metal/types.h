/* types.h: the scalar types, their limits, and type traits. */
#ifndef LT_EMULATED_METAL_TYPES_H
#define LT_EMULATED_METAL_TYPES_H

typedef unsigned char uchar, uint8_t;
typedef unsigned short ushort, uint16_t;
typedef unsigned int uint, uint32_t;
typedef unsigned long ulong, uint64_t, size_t, uintptr_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t, ptrdiff_t, intptr_t;

#define METAL_FUNC inline __attribute__((always_inline))

/* ---- type traits ----------------------------------------------------------------------------- */

namespace metal {

template <class T, T v> struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  constexpr operator T() const { return v; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool c, class T = void> using enable_if_t = typename enable_if<c, T>::type;
template <bool, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool c, class A, class B> using conditional_t = typename conditional<c, A, B>::type;
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };
template <class T> struct remove_volatile { typedef T type; };
template <class T> struct remove_volatile<volatile T> { typedef T type; };
template <class T> struct remove_cv : remove_const<typename remove_volatile<T>::type> {};
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T &> { typedef T type; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> T &&declval();
template <class From, class To> struct lt_Convertible {
  static void take(To);
  template <class F> static true_type test(decltype(take(declval<F>())) *);
  template <class F> static false_type test(...);
  typedef decltype(test<From>(nullptr)) type;
};
template <class From, class To> struct is_convertible : lt_Convertible<From, To>::type {};
template <class From, class To> constexpr bool is_convertible_v = is_convertible<From, To>::value;
template <class T> struct remove_pointer { typedef T type; };
template <class T> struct remove_pointer<T *> { typedef T type; };
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;

} // namespace metal

/* ---- half and bfloat ------------------------------------------------------------------------- */

#include "emulated/half_bits.h"

template <class A, class B> struct lt_Mixed {};

#define LT_HALF_OPERATOR(H, op)                                                                    \
  LT_EMULATED H operator op(H a, H b) { return H((float)a op(float) b); }                          \
  template <class T> LT_EMULATED typename lt_Mixed<H, T>::type operator op(H a, T b) {             \
    return (typename lt_Mixed<H, T>::type)((float)a op(float) b);                                  \
  }                                                                                                \
  template <class T> LT_EMULATED typename lt_Mixed<H, T>::type operator op(T a, H b) {             \
    return (typename lt_Mixed<H, T>::type)((float)a op(float) b);                                  \
  }                                                                                                \
  template <class T> LT_EMULATED H &operator op##=(H &a, T b) {                                    \
    return a = H((float)a op(float) b);                                                            \
  }
#define LT_HALF_COMPARISON(H, op)                                                                  \
  LT_EMULATED bool operator op(H a, H b) { return (float)a op(float) b; }                          \
  template <class T, class = typename lt_Mixed<H, T>::type>                                        \
  LT_EMULATED bool operator op(H a, T b) {                                                         \
    return (float)a op(float) b;                                                                   \
  }                                                                                                \
  template <class T, class = typename lt_Mixed<H, T>::type>                                        \
  LT_EMULATED bool operator op(T a, H b) {                                                         \
    return (float)a op(float) b;                                                                   \
  }
#define LT_HALF_MIXED(H, T, R)                                                                     \
  template <> struct lt_Mixed<H, T> { typedef R type; };
#define LT_HALF(H, to, from)                                                                       \
  struct H;                                                                                        \
  LT_HALF_MIXED(H, float, float)                                                                   \
  LT_HALF_MIXED(H, bool, H)                                                                        \
  LT_HALF_MIXED(H, char, H)                                                                        \
  LT_HALF_MIXED(H, signed char, H)                                                                 \
  LT_HALF_MIXED(H, unsigned char, H)                                                               \
  LT_HALF_MIXED(H, short, H)                                                                       \
  LT_HALF_MIXED(H, unsigned short, H)                                                              \
  LT_HALF_MIXED(H, int, H)                                                                         \
  LT_HALF_MIXED(H, unsigned, H)                                                                    \
  LT_HALF_MIXED(H, long, H)                                                                        \
  LT_HALF_MIXED(H, unsigned long, H)                                                               \
  struct H {                                                                                       \
    unsigned short bits;                                                                           \
    H() = default;                                                                                 \
    LT_EMULATED H(float f) : bits(to(f)) {}                                                        \
    template <class T, class = typename lt_Mixed<H, T>::type>                                      \
    LT_EMULATED H(T v) : bits(to((float)v)) {}                                                     \
    LT_EMULATED operator float() const { return from(bits); }                                      \
  };                                                                                               \
  LT_HALF_OPERATOR(H, +)                                                                           \
  LT_HALF_OPERATOR(H, -)                                                                           \
  LT_HALF_OPERATOR(H, *)                                                                           \
  LT_HALF_OPERATOR(H, /)                                                                           \
  LT_HALF_COMPARISON(H, <)                                                                         \
  LT_HALF_COMPARISON(H, >)                                                                         \
  LT_HALF_COMPARISON(H, <=)                                                                        \
  LT_HALF_COMPARISON(H, >=)                                                                        \
  LT_HALF_COMPARISON(H, ==)                                                                        \
  LT_HALF_COMPARISON(H, !=)                                                                        \
  LT_EMULATED H operator-(H a) {                                                                   \
    a.bits ^= 0x8000;                                                                              \
    return a;                                                                                      \
  }                                                                                                \
  LT_EMULATED H operator+(H a) { return a; }                                                       \
  LT_EMULATED H &operator++(H &a) { return a = H((float)a + 1); }                                  \
  LT_EMULATED H &operator--(H &a) { return a = H((float)a - 1); }
LT_HALF(half, lt_emulated_to_half, lt_emulated_from_half)
LT_HALF(bfloat, lt_emulated_to_bfloat16, lt_emulated_from_bfloat16)
#undef LT_HALF
#undef LT_HALF_MIXED
#undef LT_HALF_COMPARISON
#undef LT_HALF_OPERATOR
typedef half float16_t;
typedef float float32_t;

/* ---- kinds of types and limits --------------------------------------------------------------- */

#define CHAR_BIT  8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define CHAR_MIN  (-128)
#define CHAR_MAX  127
#define UCHAR_MAX 255
#define SHRT_MIN  (-32768)
#define SHRT_MAX  32767
#define USHRT_MAX 65535
#define INT_MIN   (-2147483647 - 1)
#define INT_MAX   2147483647
#define UINT_MAX  4294967295u
#define LONG_MIN  (-9223372036854775807l - 1)
#define LONG_MAX  9223372036854775807l
#define ULONG_MAX 18446744073709551615ul

#define FLT_DIG         6
#define FLT_MANT_DIG    24
#define FLT_MAX_EXP     128
#define FLT_MIN_EXP     (-125)
#define FLT_MAX_10_EXP  38
#define FLT_MIN_10_EXP  (-37)
#define FLT_RADIX       2
#define FLT_MAX         0x1.fffffep127f
#define FLT_MIN         0x1p-126f
#define FLT_EPSILON     0x1p-23f
#define FLT_DECIMAL_DIG 9
#define HALF_DIG        3
#define HALF_MANT_DIG   11
#define HALF_MAX        half(0x1.ffcp15f)
#define HALF_MIN        half(0x1p-14f)
#define HALF_EPSILON    half(0x1p-10f)
#define MAXFLOAT        FLT_MAX
#define MAXHALF         HALF_MAX
#define HUGE_VALF       __builtin_inff()
#define HUGE_VALH       half(__builtin_inff())
#define INFINITY        __builtin_inff()
#define NAN             __builtin_nanf("")
#define M_E_F           2.71828182845904523536f
#define M_LOG2E_F       1.44269504088896340736f
#define M_LOG10E_F      0.43429448190325182765f
#define M_LN2_F         0.69314718055994530942f
#define M_LN10_F        2.30258509299404568402f
#define M_PI_F          3.14159265358979323846f
#define M_PI_2_F        1.57079632679489661923f
#define M_PI_4_F        0.78539816339744830962f
#define M_1_PI_F        0.31830988618379067154f
#define M_2_PI_F        0.63661977236758134308f
#define M_2_SQRTPI_F    1.12837916709551257390f
#define M_SQRT2_F       1.41421356237309504880f
#define M_SQRT1_2_F     0.70710678118654752440f
#define M_PI_H          half(M_PI_F)
#define M_E_H           half(M_E_F)

namespace metal {

template <class T> struct numeric_limits { static constexpr bool is_specialized = false; };
template <class T> struct is_integral : false_type {};
template <class T> struct is_floating_point : false_type {};
template <class T> struct is_signed : false_type {};
template <class T> struct is_unsigned : false_type {};
template <class T> struct make_signed {};
template <class T> struct make_unsigned {};

#define LT_INTEGER(T, S, U, SIGNED, MIN, MAX, BITS)                                                \
  template <> struct is_integral<T> : true_type {};                                                \
  template <> struct is_signed<T> : integral_constant<bool, SIGNED> {};                            \
  template <> struct is_unsigned<T> : integral_constant<bool, !SIGNED> {};                         \
  template <> struct make_signed<T> { typedef S type; };                                           \
  template <> struct make_unsigned<T> { typedef U type; };                                         \
  template <> struct numeric_limits<T> {                                                           \
    static constexpr bool is_specialized = true, is_integer = true, is_signed = SIGNED,            \
                          has_infinity = false;                                                    \
    static constexpr int digits = BITS;                                                            \
    static constexpr T min() { return (T)MIN; }                                                    \
    static constexpr T max() { return (T)MAX; }                                                    \
    static constexpr T lowest() { return (T)MIN; }                                                 \
  };
LT_INTEGER(char, signed char, unsigned char, true, CHAR_MIN, CHAR_MAX, 7)
LT_INTEGER(signed char, signed char, unsigned char, true, CHAR_MIN, CHAR_MAX, 7)
LT_INTEGER(unsigned char, signed char, unsigned char, false, 0, UCHAR_MAX, 8)
LT_INTEGER(short, short, unsigned short, true, SHRT_MIN, SHRT_MAX, 15)
LT_INTEGER(unsigned short, short, unsigned short, false, 0, USHRT_MAX, 16)
LT_INTEGER(int, int, unsigned, true, INT_MIN, INT_MAX, 31)
LT_INTEGER(unsigned, int, unsigned, false, 0, UINT_MAX, 32)
LT_INTEGER(long, long, unsigned long, true, LONG_MIN, LONG_MAX, 63)
LT_INTEGER(unsigned long, long, unsigned long, false, 0, ULONG_MAX, 64)
#undef LT_INTEGER
template <> struct is_integral<bool> : true_type {};
template <> struct is_unsigned<bool> : true_type {};
template <> struct numeric_limits<bool> {
  static constexpr bool is_specialized = true, is_integer = true, is_signed = false;
  static constexpr bool min() { return false; }
  static constexpr bool max() { return true; }
  static constexpr bool lowest() { return false; }
};

#define LT_FLOAT(T, CONSTEXPR, MIN, MAX, EPSILON, DIGITS)                                          \
  template <> struct is_floating_point<T> : true_type {};                                          \
  template <> struct is_signed<T> : true_type {};                                                  \
  template <> struct numeric_limits<T> {                                                           \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true,             \
                          has_infinity = true;                                                     \
    static constexpr int digits = DIGITS;                                                          \
    static CONSTEXPR T min() { return T(MIN); }                                                    \
    static CONSTEXPR T max() { return T(MAX); }                                                    \
    static CONSTEXPR T lowest() { return T(-MAX); }                                                \
    static CONSTEXPR T epsilon() { return T(EPSILON); }                                            \
    static CONSTEXPR T infinity() { return T(INFINITY); }                                          \
    static CONSTEXPR T quiet_NaN() { return T(NAN); }                                              \
  };
LT_FLOAT(float, constexpr, FLT_MIN, FLT_MAX, FLT_EPSILON, 24)
LT_FLOAT(half, , 0x1p-14f, 0x1.ffcp15f, 0x1p-10f, 11)
LT_FLOAT(bfloat, , 0x1p-126f, 0x1.fep127f, 0x1p-7f, 8)
#undef LT_FLOAT
template <class T> struct is_arithmetic {
  static constexpr bool value = is_integral<T>::value || is_floating_point<T>::value;
};
template <class T> using make_signed_t = typename make_signed<T>::type;
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> constexpr bool is_signed_v = is_signed<T>::value;
template <class T> constexpr bool is_unsigned_v = is_unsigned<T>::value;

/* An array that can be passed by value. */
template <class T, size_t N> struct array {
  T items[N];
  T &operator[](size_t i) { return items[i]; }
  const T &operator[](size_t i) const { return items[i]; }
  constexpr size_t size() const { return N; }
};

} // namespace metal

/* Reads the bits of a value as another type. */
template <class To, class From> LT_EMULATED To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type: expected types of the same size");
  To to;
  __builtin_memcpy((void *)&to, &from, sizeof to);
  return to;
}
namespace metal {
using ::as_type;
}

#endif
