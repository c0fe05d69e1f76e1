/* test_vector_loops.c: forms of the elementwise loops that give the results of a plainer form: a y
 * that is one element, clamps, powers with constant exponents, divisions and conversions by vector
 * instructions, and inputs that are broadcast or transposed. The references are the plainer form,
 * long double, the C library's fmod, and 128-bit integers. Sizes lie around the ends of vectors,
 * blocks and panels. */
#include "check.h"

#include "core.h"
#include "cpu/moves.h"
#include "cpu/vector.h"
#include "instruction_sets.h"
#include "half.h"
#include "kernel.h"
#include "opids.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1030 };
static const int64_t lengths[] = {1, 7, 15, 16, 17, 255, 256, 257, 512, 700, MOST};
#define EACH_LENGTH(n)                                                                             \
  for (size_t i_ = 0, n; i_ < sizeof lengths / sizeof *lengths && (n = (size_t)lengths[i_], true); \
       i_++)

static uint64_t noise = 7;
static uint64_t next_random(void) {
  noise = noise * 6364136223846793005u + 1442695040888963407u;
  return noise >> 24;
}

static float random_float(void) {
  static const float specials[] = {0,         -0.0f, 1,     -1,     INFINITY,
                                   -INFINITY, NAN,   3e38f, 1e-44f, -2e19f};
  if (next_random() % 16 == 0) return specials[next_random() % 10];
  uint32_t bits = (uint32_t)next_random();
  float x;
  memcpy(&x, &bits, sizeof x);
  return next_random() % 2 ? x : (float)(int64_t)(next_random() % 20001) / 1000 - 10;
}

/* ---- a y that is one element ----------------------------------------------------------------- */

static lt_Scalar random_scalar(lt_Dtype d) {
  if (d == LT_bool || d == LT_uint8) return lt_scalar_int((int64_t)(next_random() % 2));
  int64_t whole = (int64_t)(next_random() % 2001) - 1000;
  if (lt_dtype_category(d) < LT_FLOATING) return lt_scalar_int(whole % 7);
  bool wide = d == LT_float32 || d == LT_float64;
  return lt_scalar_float(wide ? (double)random_float() : (double)whole / 64);
}

static void fill_values(lt_Dtype d, int64_t n, void *values) {
  for (int64_t i = 0; i < n; i++)
    CHECK(lt_scalar_store(random_scalar(d), d, (char *)values + (size_t)i * lt_dtype_size(d)));
}

static void one_y(void) {
  static const lt_Dtype dtypes[] = {LT_bool,    LT_int32,     LT_int64,     LT_float32,
                                    LT_float64, LT_complex64, LT_complex128};
  static _Alignas(64) char x[MOST * 16], y[MOST * 16], out[2][MOST * 16];
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
    for (int op = 0; op < LT_OP_COUNT; op++) {
      size_t size = lt_dtype_size(dtypes[k]);
      lt_VectorFn fn = lt_cpu_isa()->vectors[dtypes[k]]->op[op];
      if (lt_ops[op].kind != LT_KIND_ELEMENTWISE || lt_ops[op].inputs != 2 || !fn) continue;
      lt_Scalar one = lt_scalar_int(1);
      lt_Numbers numbers;
      lt_cpu_numbers(&numbers, dtypes[k], dtypes[k], &one, &one);
      EACH_LENGTH(n) {
        fill_values(dtypes[k], (int64_t)n, x);
        fill_values(dtypes[k], 1, y);
        for (size_t i = 1; i < n; i++) memcpy(y + i * size, y, size);
        memset(out, 0, sizeof out);
        fn((int64_t)n, out[0], x, y, NULL, &numbers);
        numbers.y_once = true;
        char *alone = y + (n - 1) * size;
        fn((int64_t)n, out[1], x, alone, NULL, &numbers);
        numbers.y_once = false;
        if (memcmp(out[0], out[1], sizeof out[0]) != 0)
          check_report(__FILE__, __LINE__, "%s of %s, %d elements: another result with one y",
                       lt_ops[op].name, lt_dtype_name(dtypes[k]), (int)n);
      }
    }
}

/* ---- clamps ---------------------------------------------------------------------------------- */

/* Returns which of x, lo and hi the clamped value is: a NaN bound, else the lesser of hi and the
 * greater of lo and x; of equal ones, or if x is NaN, x. */
static double clamped(double x, double lo, double hi) {
  if (isnan(lo)) return lo;
  if (isnan(hi)) return hi;
  double least = lo > x ? lo : x;
  return hi < least ? hi : least;
}

/* Compares the bits of clamps between tensors (op _clamp) or numbers (_hardtanh). */
static void clamps_of(lt_Dtype d, lt_OpId op, size_t n) {
  static _Alignas(64) char in[3][MOST * 8], out[MOST * 8];
  size_t size = lt_dtype_size(d);
  lt_Scalar bound[2] = {random_scalar(d), random_scalar(d)};
  for (int k = 0; k < 3; k++) fill_values(d, (int64_t)n, in[k]);
  for (size_t i = 0; op == LT_OP__hardtanh && i < n; i++)
    for (int k = 0; k < 2; k++) CHECK(lt_scalar_store(bound[k], d, in[k + 1] + i * size));
  lt_Numbers numbers;
  lt_cpu_numbers(&numbers, d, d, &bound[0], &bound[1]);
  lt_cpu_isa()->vectors[d]->op[op]((int64_t)n, out, in[0], in[1], in[2], &numbers);
  for (size_t i = 0; i < n; i++) {
    double v[3];
    for (int k = 0; k < 3; k++) v[k] = lt_scalar_to_double(lt_scalar_load(d, in[k] + i * size));
    char wanted[8];
    CHECK(lt_scalar_store(lt_scalar_float(clamped(v[0], v[1], v[2])), d, wanted));
    if (memcmp(out + i * size, wanted, size) != 0)
      check_report(__FILE__, __LINE__, "%s of %s: %g from %g to %g gave %g", lt_ops[op].name,
                   lt_dtype_name(d), v[0], v[1], v[2],
                   lt_scalar_to_double(lt_scalar_load(d, out + i * size)));
  }
}

static void clamps(void) {
  for (int round = 0; round < 20; round++) EACH_LENGTH(n) {
      clamps_of(LT_float32, LT_OP__clamp, n);
      clamps_of(LT_float64, LT_OP__clamp, n);
      clamps_of(LT_float32, LT_OP__hardtanh, n);
      clamps_of(LT_float64, LT_OP__hardtanh, n);
    }
}

/* Clamps a tensor to two numbers, which may be NaN. */
static void clamps_to_numbers(void) {
  static const lt_Dtype dtypes[] = {LT_float32, LT_float64, LT_float16, LT_bfloat16};
  static const double bounds[] = {-1.5, 2, NAN, INFINITY, -INFINITY, -0.0, 0};
  enum { BOUNDS = sizeof bounds / sizeof *bounds };
  for (int c = 0; c < 4 * BOUNDS * BOUNDS; c++) {
    lt_Dtype d = dtypes[c % 4];
    double lo = bounds[c / 4 % BOUNDS], hi = bounds[c / 4 / BOUNDS];
    size_t size = lt_dtype_size(d);
    lt_Tensor *x = lt_empty(d, lt_cpu(), 1, (int64_t[]){MOST});
    lt_Tensor *out = lt_empty(d, lt_cpu(), 1, (int64_t[]){MOST});
    const char *in = lt_tensor_data(x), *result = lt_tensor_data(out);
    fill_values(d, MOST, lt_tensor_data(x));
    lt_Arg args[] = {lt_arg_tensor(x), lt_arg_scalar(lt_scalar_float(lo)),
                     lt_arg_scalar(lt_scalar_float(hi))};
    CHECK(lt_loop_run(LT_OP__clamp, out, lt_dtype_compute(d), 3, args, lt_scalar_int(0),
                      lt_scalar_int(0)));
    for (int i = 0; i < MOST; i++) {
      double v = lt_scalar_to_double(lt_scalar_load(d, in + (size_t)i * size));
      double y = lt_scalar_to_double(lt_scalar_load(d, result + (size_t)i * size));
      double wanted = clamped(v, lo, hi);
      if (memcmp(&y, &wanted, sizeof y) == 0 || (isnan(y) && isnan(wanted))) continue;
      check_report(__FILE__, __LINE__, "clamp of %s: %g from %g to %g gave %g", lt_dtype_name(d), v,
                   lo, hi, y);
    }
    lt_release(x);
    lt_release(out);
  }
}

/* ---- conversions ----------------------------------------------------------------------------- */

static uint16_t rounded(lt_Dtype d, float x) {
  return d == LT_float16 ? lt_half_from_float(x).bits : lt_bfloat16_from_float(x).bits;
}

static float widened(lt_Dtype d, uint16_t bits) {
  return d == LT_float16 ? lt_half_to_float((lt_half){bits})
                         : lt_bfloat16_to_float((lt_bfloat16){bits});
}

/* Compares the bits of dense and strided conversions of n elements with half.h. Every 50th number
 * may be a NaN, or none. */
static void conversions_of(lt_Dtype d, int64_t n, bool nan) {
  const lt_Vectors *floats = lt_cpu_isa()->vectors[LT_float32];
  static float x[MOST], back[MOST];
  static uint16_t half[MOST * 2];
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)next_random();
    if (i % 3 == 0) bits &= next_random() % 2 ? 0xffff8000u : 0xfffff000u; /* ties */
    if (i % 5 == 0) bits |= 0x7fffu;
    memcpy(&x[i], &bits, sizeof bits);
    if (isnan(x[i]) && !(nan && i % 50 == 7)) x[i] = random_float();
    if (isnan(x[i]) && !nan) x[i] = INFINITY;
  }
  for (int64_t step = 1; step <= 2; step++) {
    floats->store[d](n, half, 2 * step, x);
    floats->load[d](n, back, half, 2 * step);
    for (int64_t i = 0; i < n; i++) {
      float wide = widened(d, half[i * step]);
      if (half[i * step] == rounded(d, x[i]) && memcmp(&back[i], &wide, sizeof wide) == 0) continue;
      check_report(__FILE__, __LINE__, "%s %d of %d: %a became %#x, then %a", lt_dtype_name(d),
                   (int)i, (int)n, (double)x[i], half[i * step], (double)back[i]);
    }
  }
}

/* Compares the bits of conversions of n doubles with half.h. Every 700th, or third, is near a tie
 * or a tie; the distance is less than floats have. */
static void conversions_of_doubles(lt_Dtype d, int64_t n, int round) {
  static double x[MOST];
  static uint16_t half[MOST];
  for (int64_t i = 0; i < n; i++) {
    x[i] = (double)(float)(next_random() % 4000) / 1000 - 2;
    if (round > 0 && i % (round % 2 ? 3 : 700) == 0) {
      uint32_t bits = d == LT_float16 ? 0x3f801000u : 0x3f808000u;
      float tie;
      bits += (uint32_t)(next_random() % 64) << 16;
      memcpy(&tie, &bits, sizeof tie);
      x[i] = (double)tie * (1 + ldexp((double)(next_random() % 3) - 1, -30));
    }
    if (round > 2 && i % 150 == 3) x[i] = (double)random_float();
  }
  lt_cpu_isa()->vectors[LT_float64]->store[d](n, half, 2, x);
  for (int64_t i = 0; i < n; i++)
    if (half[i] != rounded(d, lt_float_from_double_odd(x[i])))
      check_report(__FILE__, __LINE__, "%s %d of %d: %a became %#x", lt_dtype_name(d), (int)i,
                   (int)n, x[i], half[i]);
}

static void conversions(void) {
  for (int round = 0; round < 20; round++) EACH_LENGTH(n) {
      conversions_of(LT_bfloat16, (int64_t)n, round % 2);
      conversions_of(LT_float16, (int64_t)n, round % 2);
      conversions_of_doubles(LT_bfloat16, (int64_t)n, round % 6);
      conversions_of_doubles(LT_float16, (int64_t)n, round % 6);
    }
}

/* ---- loops of float16 and bfloat16 ----------------------------------------------------------- */

/* Compares an op's loop with that of float32, the last input in full or as one element: the
 * results, rounded, have the same bits or are NaN. */
static void half_loop(lt_Dtype d, lt_OpId op, int64_t n, bool once) {
  static uint16_t in[3][MOST], out[MOST];
  static float x[3][MOST], wide[MOST];
  const bool test = lt_ops[op].rule == LT_RULE_TEST;
  const int last = lt_ops[op].inputs - 1;
  for (int k = 0; k < 3; k++)
    for (int64_t i = 0; i < n; i++) {
      in[k][i] = rounded(d, random_float());
      x[k][i] = widened(d, in[k][i]);
    }
  for (int64_t i = 0; i < n; i += 5) x[1][i] = x[0][i], in[1][i] = in[0][i];
  for (int64_t i = 1; once && i < n; i++) x[last][i] = x[last][0];
  lt_Numbers numbers;
  lt_Scalar a = lt_scalar_float(0.75), b = lt_scalar_float(1.5);
  lt_cpu_numbers(&numbers, LT_float32, d, &a, &b);
  lt_cpu_isa()->vectors[LT_float32]->op[op](n, wide, x[0], x[1], x[2], &numbers);
  lt_cpu_numbers(&numbers, d, d, &a, &b);
  numbers.y_once = once;
  const void *from[3] = {in[0], in[1], in[2]};
  if (once) from[last] = x[last];
  lt_cpu_isa()->vectors[d]->op[op](n, out, from[0], from[1], from[2], &numbers);
  for (int64_t i = 0; i < n; i++) {
    bool same =
        test ? ((uint8_t *)out)[i] == ((uint8_t *)wide)[i]
             : out[i] == rounded(d, wide[i]) || (isnan(wide[i]) && isnan(widened(d, out[i])));
    if (!same)
      check_report(__FILE__, __LINE__, "%s of %s, %d of %d: of %a and %a not that of float32",
                   lt_ops[op].name, lt_dtype_name(d), (int)i, (int)n, (double)x[0][i],
                   (double)x[1][i]);
  }
}

/* A half float and a float32: the sum is that of float32, rounded once. Likewise with a number, as
 * the second input or the third. */
static void half_and_float(void) {
  enum { COUNT = 100 };
  for (int64_t n = 1; n <= COUNT; n += COUNT - 1) {
    lt_Tensor *x = lt_empty(LT_bfloat16, lt_cpu(), 1, &n),
              *y = lt_empty(LT_float32, lt_cpu(), 1, &n);
    lt_bfloat16 *values = lt_tensor_data(x);
    float *more = lt_tensor_data(y);
    for (int i = 0; i < n; i++) values[i] = lt_bfloat16_from_float(1), more[i] = 0x1.01p-8f;
    lt_Arg args[] = {lt_arg_tensor(x), lt_arg_tensor(y)};
    CHECK(lt_loop_run(LT_OP_add, x, LT_float32, 2, args, lt_scalar_int(1), lt_scalar_int(0)));
    for (int i = 0; i < n; i++) CHECK(lt_bfloat16_to_float(values[i]) == 0x1.02p0f);
    lt_Arg number[] = {lt_arg_tensor(x), lt_arg_scalar(lt_scalar_float(0.501953125))};
    for (int i = 0; i < n; i++) values[i] = lt_bfloat16_from_float(1.9921875f);
    CHECK(lt_loop_run(LT_OP_mul, x, LT_float32, 2, number, lt_scalar_int(0), lt_scalar_int(0)));
    for (int i = 0; i < n; i++) CHECK(lt_bfloat16_to_float(values[i]) == 1);
    lt_Arg line[] = {lt_arg_tensor(x), lt_arg_tensor(x), lt_arg_scalar(lt_scalar_float(0.3))};
    CHECK(lt_loop_run(LT_OP_lerp, x, LT_float32, 3, line, lt_scalar_int(0), lt_scalar_int(0)));
    for (int i = 0; i < n; i++) CHECK(lt_bfloat16_to_float(values[i]) == 1);
    lt_release(x);
    lt_release(y);
  }
}

static void half_loops(void) {
  static const lt_Dtype dtypes[] = {LT_float16, LT_bfloat16};
  CHECK(lt_cpu_isa()->vectors[LT_bfloat16]->op[LT_OP_add] != NULL);
  for (int k = 0; k < 2; k++)
    for (int op = 0; op < LT_OP_COUNT; op++) {
      if (!lt_cpu_isa()->vectors[dtypes[k]]->op[op]) continue;
      for (int round = 0; round < 20; round++) EACH_LENGTH(n) {
          bool once = round % 2 && lt_ops[op].inputs > 1;
          half_loop(dtypes[k], op, (int64_t)n, once);
        }
    }
}

/* Compares the bits of dense and strided conversions of n floats to an integer dtype. In some
 * rounds a few are NaN, infinite or beyond int32. */
static void truncations_of(lt_Dtype from, lt_Dtype to, size_t n, int round) {
  static _Alignas(64) char x[MOST * 8], dense[MOST * 4], strided[MOST * 8];
  size_t size = lt_dtype_size(to);
  for (size_t i = 0; i < n; i++) {
    double v = ldexp((double)(next_random() % 20001) / 10000 - 1, (int)(next_random() % 31));
    if (round == 1 && i % 300 == 7) v = (double)random_float();
    if (round == 2 && i % 400 == 9) v = i % 800 < 400 ? -0x1p31 : 0x1p31;
    CHECK(lt_scalar_store(lt_scalar_float(v), from, x + i * lt_dtype_size(from)));
  }
  lt_StoreFn store = lt_cpu_isa()->vectors[from]->store[to];
  store((int64_t)n, dense, (int64_t)size, x);
  store((int64_t)n, strided, 2 * (int64_t)size, x);
  for (size_t i = 0; i < n; i++)
    if (memcmp(dense + i * size, strided + i * 2 * size, size) != 0)
      check_report(__FILE__, __LINE__, "%s to %s, %d of %d: another result of dense numbers",
                   lt_dtype_name(from), lt_dtype_name(to), (int)i, (int)n);
}

static void truncations(void) {
  static const lt_Dtype to[] = {LT_uint8, LT_int8, LT_int16, LT_int32};
  for (int round = 0; round < 9; round++) EACH_LENGTH(n) for (int k = 0; k < 4; k++) {
      truncations_of(LT_float32, to[k], n, round % 3);
      truncations_of(LT_float64, to[k], n, round % 3);
    }
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* Returns the error in units in the last place of the exact result, of a type with that many digits
 * and the least exponent. */
static double error_of(double actual, long double exact, int digits, int least) {
  if (isnan(actual) || isnan(exact)) return isnan(actual) == isnan(exact) ? 0 : INFINITY;
  if ((long double)actual == exact) return 0;
  int e;
  frexpl(exact, &e);
  long double unit = ldexpl(1, e - digits > least ? e - digits : least);
  long double largest = ldexpl(2 - ldexpl(1, 1 - digits), digits == 24 ? 127 : 1023);
  if (isinf(actual))
    return fabsl(exact) > largest && !signbit(actual) == !signbit(exact) ? 0 : INFINITY;
  if (isinf(exact)) return INFINITY;
  return (double)(fabsl((long double)actual - exact) / unit);
}

static void powers_of(lt_Dtype d, double exponent) {
  bool narrow = d == LT_float32;
  lt_Tensor *x = lt_empty(d, lt_cpu(), 1, (int64_t[]){MOST});
  lt_Tensor *out = lt_empty(d, lt_cpu(), 1, (int64_t[]){MOST});
  for (int round = 0; round < 6; round++) {
    for (int i = 0; i < MOST; i++) {
      double v = (double)random_float();
      if (round == 0) v = ldexp(v, i % 300 - 150);
      if (narrow)
        ((float *)lt_tensor_data(x))[i] = (float)v;
      else
        ((double *)lt_tensor_data(x))[i] = round == 1 ? ldexp(v, i * 2 - 1000) : v;
    }
    lt_Arg in[] = {lt_arg_tensor(x), lt_arg_scalar(lt_scalar_float(exponent))};
    CHECK(lt_loop_run(LT_OP_pow, out, d, 2, in, lt_scalar_int(0), lt_scalar_int(0)));
    for (int i = 0; i < MOST; i++) {
      double v =
          narrow ? (double)((float *)lt_tensor_data(x))[i] : ((double *)lt_tensor_data(x))[i];
      double y =
          narrow ? (double)((float *)lt_tensor_data(out))[i] : ((double *)lt_tensor_data(out))[i];
      long double exact = powl((long double)v, (long double)exponent);
      bool same_zero = exact != 0 || y != 0 || !signbit(exact) == !signbit(y);
      if (same_zero && error_of(y, exact, narrow ? 24 : 53, narrow ? -149 : -1074) <= 1.5) continue;
      check_report(__FILE__, __LINE__, "%s: %.17g ^ %g gave %.17g, expected %.17Lg",
                   lt_dtype_name(d), v, exponent, y, exact);
      break;
    }
  }
  lt_release(x);
  lt_release(out);
}

/* Checks x^y of every pair of special numbers, in vectors that hold only negative x, and others. */
static void powers_of_pairs(lt_Dtype d, int most_signed) {
  double special[] = {
      0,      -0.0,     0.5,       -0.5,       1,          -1,           1.5,        -1.5,
      2,      -2,       3,         -3,         7,          -7,           -2.5,       1e-30,
      1e30,   -1e30,    INFINITY,  -INFINITY,  NAN,        8388607,      0x1p23,     8388609,
      0x1p24, 16777215, -16777215, 0x1p25 + 4, -8388607.5, 0x1p52 - 0.5, 0x1p53 - 1, -0x1p53};
  enum { N = sizeof special / sizeof *special };
  lt_Tensor *t[3];
  for (int k = 0; k < 3; k++) t[k] = lt_empty(d, lt_cpu(), 1, (int64_t[]){N * N});
  for (int i = 0; i < N * N; i++)
    for (int k = 0; k < 2; k++) {
      double v = special[k ? i % N : i / N];
      if (!k && i % 3 < most_signed) v = -fabs(v);
      if (d == LT_float32)
        ((float *)lt_tensor_data(t[k]))[i] = (float)v;
      else
        ((double *)lt_tensor_data(t[k]))[i] = v;
    }
  lt_Arg in[] = {lt_arg_tensor(t[0]), lt_arg_tensor(t[1])};
  CHECK(lt_loop_run(LT_OP_pow, t[2], d, 2, in, lt_scalar_int(0), lt_scalar_int(0)));
  for (int i = 0; i < N * N; i++) {
    double v[3];
    for (int k = 0; k < 3; k++)
      v[k] = d == LT_float32 ? (double)((float *)lt_tensor_data(t[k]))[i]
                             : ((double *)lt_tensor_data(t[k]))[i];
    long double exact = powl((long double)v[0], (long double)v[1]);
    bool same_zero = exact != 0 || v[2] != 0 || !signbit(exact) == !signbit(v[2]);
    int digits = d == LT_float32 ? 24 : 53, least = d == LT_float32 ? -149 : -1074;
    if (same_zero && error_of(v[2], exact, digits, least) <= 1.5) continue;
    check_report(__FILE__, __LINE__, "%s: %.17g ^ %.17g gave %.17g, expected %.17Lg",
                 lt_dtype_name(d), v[0], v[1], v[2], exact);
  }
  for (int k = 0; k < 3; k++) lt_release(t[k]);
}

static void powers(void) {
  for (int most_signed = 0; most_signed <= 3; most_signed++) {
    powers_of_pairs(LT_float32, most_signed);
    powers_of_pairs(LT_float64, most_signed);
  }
  static const double exponents[] = {0, 1, 2, 3, -1, -2, 0.5, -0.5};
  for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
    powers_of(LT_float32, exponents[i]);
    powers_of(LT_float64, exponents[i]);
  }
}

/* ---- divisions ------------------------------------------------------------------------------- */

static const lt_OpId dividing[] = {LT_OP_fmod, LT_OP_remainder, LT_OP_floor_divide,
                                   LT_OP__trunc_divide};

/* A mixture: `far` in 64 numbers are of any magnitude, the others small. */
static double random_operand(int far) {
  if ((int)(next_random() % 64) < far) return (double)random_float();
  double v = (double)((int64_t)(next_random() % 2000001) - 1000000) / 1024;
  return next_random() % 4 ? v : trunc(v / 100);
}

/* Returns the float result, by fmod; NAN where the quotient is too large to be exact. */
static double float_division(lt_OpId op, double x, double y, bool narrow, bool *known) {
  double rest = narrow ? (double)fmodf((float)x, (float)y) : fmod(x, y);
  bool shifted = rest != 0 && (rest < 0) != (y < 0);
  *known = true;
  if (op == LT_OP_fmod) return rest;
  if (op == LT_OP_remainder)
    return !shifted ? rest : narrow ? (double)((float)rest + (float)y) : rest + y;
  if (op == LT_OP__trunc_divide) return narrow ? (double)truncf((float)x / (float)y) : trunc(x / y);
  long double quotient = ((long double)x - (long double)rest) / (long double)y - shifted;
  *known = fabsl(quotient) < 1e6L && isfinite(y);
  return (double)quotient;
}

static void float_divisions(lt_Dtype d) {
  static double x[MOST], y[MOST], out[MOST];
  static float xf[MOST], yf[MOST], outf[MOST];
  static const lt_Numbers none;
  bool narrow = d == LT_float32;
  for (int round = 0; round < 8; round++) EACH_LENGTH(n)
  for (int k = 0; k < 4; k++) {
    for (size_t i = 0; i < n; i++) {
      x[i] = random_operand(round % 4 * 8), y[i] = random_operand(round % 4 * 8);
      xf[i] = (float)x[i], yf[i] = (float)y[i];
      if (narrow) x[i] = (double)xf[i], y[i] = (double)yf[i];
    }
    lt_VectorFn fn = lt_cpu_isa()->vectors[d]->op[dividing[k]];
    if (narrow)
      fn((int64_t)n, outf, xf, yf, NULL, &none);
    else
      fn((int64_t)n, out, x, y, NULL, &none);
    for (size_t i = 0; i < n; i++) {
      bool known;
      double expected = float_division(dividing[k], x[i], y[i], narrow, &known);
      double actual = narrow ? (double)outf[i] : out[i];
      bool same = actual == expected || (isnan(actual) && isnan(expected));
      if (dividing[k] == LT_OP_fmod && !isnan(expected))
        same &= !signbit(actual) == !signbit(expected);
      if (!known || same) continue;
      check_report(__FILE__, __LINE__, "%s of %s: (%.17g, %.17g) gave %.17g, expected %.17g",
                   lt_ops[dividing[k]].name, lt_dtype_name(d), x[i], y[i], actual, expected);
      return;
    }
  }
}

__extension__ typedef __int128 Whole;

static int64_t integer_division(lt_OpId op, Whole x, Whole y) {
  if (y == 0) return 0;
  Whole quotient = x / y, rest = x % y;
  bool shifted = rest != 0 && (rest < 0) != (y < 0);
  Whole result = op == LT_OP_fmod            ? rest
                 : op == LT_OP_remainder     ? rest + (shifted ? y : 0)
                 : op == LT_OP__trunc_divide ? quotient
                                             : quotient - shifted;
  return (int64_t)(uint64_t)result;
}

static int64_t random_integer(bool narrow, int far) {
  static const int64_t marks[] = {
      0,         1,         -1,           INT32_MIN,      INT32_MAX,
      INT64_MIN, INT64_MAX, 1ll << 51,    -(1ll << 51),   (1ll << 51) - 1,
      3,         -7,        -(1ll << 52), (1ll << 53) + 1};
  int64_t v = (int64_t)(next_random() << 20) >> (next_random() % 56);
  if ((int)(next_random() % 64) >= far)
    v %= 1ll << 51;
  else if (next_random() % 4 == 0)
    v = marks[next_random() % (sizeof marks / sizeof *marks)];
  return narrow ? (int32_t)v : v;
}

static void integer_divisions(lt_Dtype d) {
  static int64_t x[MOST], y[MOST], out[MOST];
  static int32_t xi[MOST], yi[MOST], outi[MOST];
  static const lt_Numbers none;
  bool narrow = d == LT_int32;
  for (int round = 0; round < 8; round++) EACH_LENGTH(n)
  for (int k = 0; k < 4; k++) {
    for (size_t i = 0; i < n; i++) {
      x[i] = random_integer(narrow, round % 4 * 8), y[i] = random_integer(narrow, round % 4 * 8);
      xi[i] = (int32_t)x[i], yi[i] = (int32_t)y[i];
    }
    lt_VectorFn fn = lt_cpu_isa()->vectors[d]->op[dividing[k]];
    if (narrow)
      fn((int64_t)n, outi, xi, yi, NULL, &none);
    else
      fn((int64_t)n, out, x, y, NULL, &none);
    for (size_t i = 0; i < n; i++) {
      int64_t expected = integer_division(dividing[k], x[i], y[i]);
      int64_t actual = narrow ? outi[i] : out[i];
      if (actual == (narrow ? (int32_t)expected : expected)) continue;
      check_report(__FILE__, __LINE__, "%s of %s: (%lld, %lld) gave %lld, expected %lld",
                   lt_ops[dividing[k]].name, lt_dtype_name(d), (long long)x[i], (long long)y[i],
                   (long long)actual, (long long)expected);
      return;
    }
  }
}

static void divisions(void) {
  float_divisions(LT_float32);
  float_divisions(LT_float64);
  integer_divisions(LT_int32);
  integer_divisions(LT_int64);
}

/* ---- layouts --------------------------------------------------------------------------------- */

typedef enum Layout { DENSE, TRANSPOSED, OUTSIDE, COLUMN, ROW, PLANE, ELEMENT, LAYOUTS } Layout;

/* Returns a tensor of random values that broadcasts to {p, q, r}. */
static lt_Tensor *make(lt_Dtype d, Layout layout, int64_t p, int64_t q, int64_t r) {
  int64_t shape[3] = {p, q, r}, strides[3] = {q * r, r, 1};
  if (layout == TRANSPOSED) strides[1] = 1, strides[2] = q;
  if (layout == OUTSIDE) strides[0] = 1, strides[1] = p * r, strides[2] = p;
  if (layout == COLUMN) shape[2] = 1, strides[0] = q, strides[1] = 1;
  if (layout == ROW) shape[0] = shape[1] = 1;
  if (layout == PLANE) shape[0] = 1;
  if (layout == ELEMENT) shape[0] = shape[1] = shape[2] = 1;
  int64_t room = p * q * r;
  lt_Storage *s = lt_storage_new(lt_cpu(), (size_t)room * lt_dtype_size(d));
  lt_Tensor *t = lt_tensor_on(s, d, 0, 3, shape, strides);
  fill_values(d, room, s->data);
  lt_storage_release(s);
  return t;
}

/* Runs an op on tensors as they are, and on contiguous copies of the result's shape. */
static void same_as_contiguous(lt_OpId op, lt_Dtype d, const Layout *layouts,
                               const int64_t *shape) {
  int n = lt_ops[op].inputs;
  lt_Dtype result = lt_ops[op].rule == LT_RULE_TEST ? LT_bool : d;
  lt_Tensor *out[2];
  lt_Arg in[2][3];
  for (int k = 0; k < 2; k++) out[k] = lt_empty(result, lt_cpu(), 3, shape);
  for (int k = 0; k < n; k++) {
    lt_Tensor *t = make(d, layouts[k], shape[0], shape[1], shape[2]);
    in[0][k] = lt_arg_tensor(t);
    in[1][k] = lt_arg_tensor(lt_expanded_contiguous(t, d, 3, shape));
  }
  for (int k = 0; k < 2; k++)
    CHECK(
        lt_loop_run(op, out[k], lt_dtype_compute(d), n, in[k], lt_scalar_int(1), lt_scalar_int(1)));
  if (memcmp(lt_tensor_data(out[0]), lt_tensor_data(out[1]), out[0]->storage->nbytes) != 0)
    check_report(
        __FILE__, __LINE__,
        "%s of %s, layouts %d %d %d, {%d, %d, %d}: another result than of contiguous inputs",
        lt_ops[op].name, lt_dtype_name(d), (int)layouts[0], (int)layouts[1], (int)layouts[2],
        (int)shape[0], (int)shape[1], (int)shape[2]);
  for (int k = 0; k < n; k++) {
    lt_release(in[0][k].tensor);
    lt_release(in[1][k].tensor);
  }
  for (int k = 0; k < 2; k++) lt_release(out[k]);
}

static void layouts_do_not_matter(void) {
  static const int64_t shapes[][3] = {{2, 16, 256}, {1, 17, 257}, {3, 33, 300}, {2, 7, 600},
                                      {40, 3, 2},   {1, 700, 3},  {9, 8, 130},  {3, 1, 1025},
                                      {2, 9, 63},   {1, 34, 300}, {17, 2, 255}, {1, 2, 4100}};
  static const lt_Dtype dtypes[] = {LT_bool,      LT_uint8,     LT_int32,   LT_int64,
                                    LT_float16,   LT_bfloat16,  LT_float32, LT_float64,
                                    LT_complex64, LT_complex128};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (Layout x = 0; x < LAYOUTS; x++)
        for (Layout y = 0; y < LAYOUTS; y++) {
          if (dtypes[d] != LT_float32 && (s + x + y + d) % 5 != 0) continue; /* a sample */
          Layout layouts[] = {x, y, (Layout)((x + y) % LAYOUTS)};
          same_as_contiguous(LT_OP_ne, dtypes[d], layouts, shapes[s]);
          if (dtypes[d] == LT_bool) continue;
          same_as_contiguous(LT_OP_sub, dtypes[d], layouts, shapes[s]);
          if (dtypes[d] == LT_float32)
            same_as_contiguous(LT_OP_addcmul, LT_float32, layouts, shapes[s]);
          if (dtypes[d] == LT_float32)
            same_as_contiguous(LT_OP_pow, LT_float32, layouts, shapes[s]);
          if (dtypes[d] >= LT_float16) same_as_contiguous(LT_OP_exp, dtypes[d], layouts, shapes[s]);
        }
}

static void threads_do_not_matter(void) {
  int threads = lt_num_threads();
  static const int64_t shapes[][3] = {{3, 300, 301}, {2, 40000, 5}, {700, 3, 70}};
  lt_set_num_threads(3);
  for (size_t s = 0; s < 3; s++)
    for (Layout x = 0; x < LAYOUTS; x++)
      for (Layout y = 0; y < LAYOUTS; y++)
        same_as_contiguous(LT_OP_sub, LT_float32, (Layout[]){x, y, DENSE}, shapes[s]);
  lt_set_num_threads(threads);
}

/* ---- copies of bytes ------------------------------------------------------------------------- */

static void long_copies(void) {
  enum { EDGE = 64, LONGEST = LT_LONG_COPY + 600, ROOM = LONGEST + 2 * EDGE };
  static _Alignas(64) unsigned char from[ROOM], to[ROOM], expected[ROOM];
  for (size_t i = 0; i < ROOM; i++) from[i] = (unsigned char)next_random();
  for (size_t n = LT_LONG_COPY - 1; n <= LONGEST; n += n < LT_LONG_COPY + 3 ? 1 : 119)
    for (size_t a = 0; a < EDGE; a += 3)
      for (size_t b = 0; b < EDGE; b++) {
        memset(to, 7, ROOM);
        memset(expected, 7, ROOM);
        for (size_t i = 0; i < n; i++) expected[a + i] = from[b + i];
        lt_copy_bytes(to + a, from + b, n);
        CHECK(memcmp(to, expected, ROOM) == 0);
      }
}

static void planes_of_rows(void) {
  enum { ROWS = 3, MOST_BYTES = 160, ROOM = ROWS * (MOST_BYTES + 16) * 3 };
  static unsigned char from[ROOM], to[ROOM], expected[ROOM];
  for (size_t i = 0; i < ROOM; i++) from[i] = (unsigned char)next_random();
  for (int64_t size = 1; size <= 16; size *= 2)
    for (int64_t n = 1; n * size <= MOST_BYTES; n++)
      for (int layout = 0; layout < 4; layout++) { /* dense or not, on either side */
        int64_t steps[2] = {layout & 1 ? 2 * size : size, layout & 2 ? 3 * size : size};
        const int64_t to_strides[] = {steps[0], n * steps[0] + n % 3 * size};
        const int64_t from_strides[] = {steps[1], n * steps[1] + size};
        memset(to, 7, ROOM);
        memset(expected, 7, ROOM);
        for (int64_t r = 0; r < ROWS; r++)
          for (int64_t i = 0; i < n; i++)
            memcpy(expected + 16 + r * to_strides[1] + i * steps[0],
                   from + 16 + r * from_strides[1] + i * steps[1], (size_t)size);
        lt_mover(size)->plane(ROWS, n, (char *)to + 16, to_strides, (const char *)from + 16,
                              from_strides);
        CHECK(memcmp(to, expected, ROOM) == 0);
      }
}

static void transposed_tiles(void) {
  enum { MOST_ROWS = 21, ROOM = MOST_ROWS * (MOST_ROWS + 3) * 16 };
  static _Alignas(64) unsigned char from[ROOM], to[ROOM], expected[ROOM];
  for (size_t i = 0; i < ROOM; i++) from[i] = (unsigned char)next_random();
  for (int64_t size = 1; size <= 16; size *= 2)
    for (int64_t rows = 1; rows <= MOST_ROWS; rows++)
      for (int64_t columns = 1; columns <= MOST_ROWS; columns++) {
        int64_t to_stride = (columns + rows % 3) * size, from_stride = (rows + columns % 4) * size;
        memset(to, 7, ROOM);
        memset(expected, 7, ROOM);
        for (int64_t i = 0; i < rows; i++)
          for (int64_t j = 0; j < columns; j++)
            memcpy(expected + i * to_stride + j * size, from + j * from_stride + i * size,
                   (size_t)size);
        lt_mover(size)->tile(rows, columns, (char *)to, to_stride, (const char *)from, from_stride);
        CHECK(memcmp(to, expected, ROOM) == 0);
      }
}

/* Runs this program again, with fewer instructions than the CPU has. */
static const char *program;
static void other_instruction_sets(void) { check_other_instruction_sets(program, ">/dev/null"); }

int main(int count, char **arguments) {
  program = count > 0 ? arguments[0] : "";
  RUN(one_y);
  RUN(clamps);
  RUN(clamps_to_numbers);
  RUN(conversions);
  RUN(half_loops);
  RUN(half_and_float);
  RUN(truncations);
  RUN(powers);
  RUN(divisions);
  RUN(layouts_do_not_matter);
  RUN(threads_do_not_matter);
  RUN(long_copies);
  RUN(planes_of_rows);
  RUN(transposed_tiles);
  if (!getenv("LUTRA_CPU_CAPABILITY")) RUN(other_instruction_sets);
  return check_end();
}
