/* test_float64.cpp: the float64 arithmetic of kernels (float64.metal.h) against the host's: the
 * same bits, for random numbers of all magnitudes and for special ones. */
#include "../c/check.h"

#include <math.h>
#include <stdint.h>

/* Of Lutra's core, which this program does not contain, for the runtime that it is linked with. */
extern "C" {
extern bool lt_interrupt_flag;
bool lt_interrupt_flag;
}

typedef unsigned int uint;
typedef unsigned long ulong;
static inline uint clz(uint v) { return v ? (uint)__builtin_clz(v) : 32; }
template <typename To, typename From> static To as_type(From v) {
  To to;
  static_assert(sizeof to == sizeof v, "the sizes are equal");
  memcpy(&to, &v, sizeof to);
  return to;
}
#include "mps/float64.metal.h"

static double number(Float64 v) { return as_type<double>(v.bits); }
static Float64 wide(double v) { return float64_of_bits(as_type<ulong>(v)); }

static ulong state = 88172645463325252ul;
static ulong random_bits() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* Returns a number of any kind: near 1, denormal, huge, special, an integer, with few bits. */
static double random_number() {
  static const double special[] = {0.0,      -0.0,     INFINITY,  -INFINITY, NAN,
                                   4.9e-324, 1.0,      1.797e308, 2.3e-308,  0x1p63,
                                   -0x1p63,  0x1p-126, 65504};
  const ulong fraction = random_bits() & 0x800ffffffffffffful;
  switch (random_bits() % 8) {
  case 0:
    return as_type<double>(random_bits());
  case 1:
    return as_type<double>(fraction | (1013 + random_bits() % 20) << 52);
  case 2:
    return as_type<double>(fraction | (random_bits() % 4) << 52);
  case 3:
    return special[random_bits() % (sizeof special / sizeof *special)];
  case 4:
    return as_type<double>(fraction | (2040 + random_bits() % 7) << 52);
  case 5:
    return (double)(random_bits() % 2001) - 1000;
  case 6:
    return as_type<double>((fraction & 0xfff0000000000000ul) | (963 + random_bits() % 120) << 52);
  default: /* near the limits of float and float16 */
    return as_type<double>(fraction | (1023 - 150 + random_bits() % 300) << 52);
  }
}

/* Any NaN stands for every other. */
template <typename T> static bool same(T got, T expected) {
  return memcmp(&got, &expected, sizeof got) == 0 || (got != got && expected != expected);
}

static void arithmetic_has_the_bits_of_the_host() {
  long wrong = 0;
  for (int i = 0; i < 400000; i++) {
    double a = random_number(), b = random_number();
    Float64 x = wide(a), y = wide(b);
    bool right = same(number(x + y), a + b) && same(number(x - y), a - b) &&
                 same(number(x * y), a * b) && same(number(x / y), a / b) && same(number(-x), -a) &&
                 (x > y) == (a > b);
    if (!right && wrong++ < 5)
      check_report(__FILE__, __LINE__, "%a and %a: %a %a %a %a", a, b, number(x + y), number(x - y),
                   number(x * y), number(x / y));
  }
  CHECK_INT(wrong, 0);
}

static void conversions_round_once() {
  long wrong = 0;
  for (int i = 0; i < 400000; i++) {
    double a = random_number();
    int64_t n = (int64_t)random_bits() >> (random_bits() % 64);
    float f = as_type<float>((uint)random_bits());
    int64_t whole = a != a ? 0 : a >= 0x1p63 ? INT64_MAX : a <= -0x1p63 ? INT64_MIN : (int64_t)a;
    bool right =
        same(float64_to_float(wide(a)), (float)a) && same(number(float64_of_float(f)), (double)f) &&
        same(number(float64_of_int(n)), (double)n) && float64_to_int(wide(a)) == whole &&
        same(number(float64_of_fraction((ulong)n >> 11, 53)), (double)((ulong)n >> 11) * 0x1p-53);
    if (!right && wrong++ < 5) check_report(__FILE__, __LINE__, "%a, %lld, %a", a, (long long)n, f);
  }
  CHECK_INT(wrong, 0);
}

/* A float16 is an integer times a power of two: rint rounds it to nearest, ties to even. */
static void halves_round_once() {
  long wrong = 0;
  for (int i = 0; i < 400000; i++) {
    double a = random_number();
    if (!isfinite(a)) continue;
    int exponent = a == 0 ? -14 : ilogb(a) < -14 ? -14 : ilogb(a);
    double unit = ldexp(1, exponent - 10), expected = rint(a / unit) * unit;
    if (fabs(expected) > 65504) expected = copysign(INFINITY, a);
    uint bits = float64_to_format(wide(a), 10, 31), power = bits >> 10 & 31;
    double got = power == 31 ? INFINITY
                 : power     ? ldexp(1024 + (bits & 1023), (int)power - 25)
                             : ldexp(bits & 1023, -24);
    if (!same(bits >> 15 ? -got : got, expected) && wrong++ < 5)
      check_report(__FILE__, __LINE__, "%a: %a, expected %a", a, got, expected);
  }
  CHECK_INT(wrong, 0);
  CHECK_INT(float64_to_format(wide(NAN), 10, 31), 0x7e00);
  CHECK_INT(float64_to_format(wide(-INFINITY), 7, 255), 0xff80);
  CHECK_INT(float64_to_format(wide(1 + 0x1p-8 + 0x1p-40), 7, 255), 0x3f81);
}

static void logarithms_of_fractions() {
  long wrong = 0;
  for (int i = 0; i < 100000; i++) {
    ulong bits = (random_bits() >> 11) + 1;
    if (i % 4 == 0) bits = (1ul << 53) - random_bits() % 1000; /* near 1 */
    double u = (double)bits * 0x1p-53, got = number(float64_log(wide(u)));
    if (fabs(got - log(u)) > 2.3e-16 * fabs(log(u)) && wrong++ < 5)
      check_report(__FILE__, __LINE__, "log(%a): %a, expected %a", u, got, log(u));
  }
  CHECK_INT(wrong, 0);
}

int main() {
  RUN(arithmetic_has_the_bits_of_the_host);
  RUN(conversions_round_once);
  RUN(halves_round_once);
  RUN(logarithms_of_fractions);
  return check_end();
}
