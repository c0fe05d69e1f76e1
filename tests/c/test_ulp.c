/* test_ulp.c: every elementwise op of ops.def in float32, over sampled bit patterns, against its
 * exact result in long double: the error is at most 1.5 units in the last place of the exact
 * result, on every instruction set that this CPU has. An op without an exact result fails.
 * Exceptions are in one table, each with its own bound.
 *
 * With LUTRA_TEST_DEVICE=mps, the ops run on that device, by its own math functions.
 *
 * `build/tests/test_ulp table 24` prints the largest error of each op over 2^24 samples.
 */
#include "check.h"

#include "cpu/vector.h"
#include "device_under_test.h"
#include "float_meanings.h"
#include "instruction_sets.h"

#include <stdlib.h>

#define BOUND 1.5

/* Where the terms of a sum cancel, only the rounding of the terms can be bounded: these ops are
 * measured in units of the largest term. (`+` of two numbers is exact; with alpha there is a
 * product.) The factor of a gradient is only defined for results of the function: y. Of some ops,
 * the last two inputs are probabilities. */
typedef enum Kind { PLAIN, TERMS, RESULT_OF_TANH, RESULT_OF_SIGMOID, PROBABILITIES } Kind;
static const struct Exception {
  lt_OpId op;
  double bound;
  Kind kind;
} exceptions[] = {
    {LT_OP_add, 1.5, TERMS},
    {LT_OP_sub, 1.5, TERMS},
    {LT_OP_addcmul, 2.5, TERMS},
    {LT_OP_addcdiv, 2.5, TERMS},
    {LT_OP_lerp, 2.5, TERMS},
    {LT_OP_logaddexp, 3, TERMS},
    {LT_OP_logaddexp2, 3, TERMS},
    {LT_OP_hardswish, 2.5, PLAIN},
    {LT_OP_hardsigmoid, 2, PLAIN},
    {LT_OP__glu, 2.5, PLAIN},
    {LT_OP__hardswish_backward, 2.5, PLAIN},
    {LT_OP__squared_error, 2, PLAIN},
    {LT_OP__squared_error_backward, 2, TERMS},
    {LT_OP__huber, 3.5, TERMS},
    {LT_OP__huber_backward, 2.5, TERMS},
    {LT_OP__binary_cross_entropy, 2.5, PROBABILITIES},
    {LT_OP__binary_cross_entropy_backward, 3.5, PROBABILITIES},
    {LT_OP__gelu_erf_backward, 4, TERMS},
    {LT_OP__gelu_tanh_backward, 4.5, TERMS},
    {LT_OP__silu_backward, 4, TERMS},
    {LT_OP__tanh_backward, 1.5, RESULT_OF_TANH},
    {LT_OP__sigmoid_backward, 1.5, RESULT_OF_SIGMOID},
};

/* Formulas of several steps, which devices compute in float32 alone: an error of an exponent is as
 * many times larger as the exponent is, and factors under 2^-149 are 0. */
static const struct Exception on_devices[] = {
    {LT_OP_sigmoid, 2.5, PLAIN},
    {LT_OP_silu, 128, PLAIN},
    {LT_OP_softplus, 128, PLAIN},
    {LT_OP__gelu_erf, 32, PLAIN},
    {LT_OP__gelu_tanh, 256, PLAIN},
    {LT_OP__gelu_erf_backward, (double)INFINITY, TERMS},
    {LT_OP__gelu_tanh_backward, (double)INFINITY, TERMS},
    {LT_OP__silu_backward, (double)INFINITY, TERMS},
};

static struct Exception exception_of(lt_OpId op) {
  for (size_t i = 0; i < sizeof on_devices / sizeof *on_devices; i++)
    if (on_devices[i].op == op && test_device().type != LT_DEVICE_cpu) return on_devices[i];
  for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
    if (exceptions[i].op == op) return exceptions[i];
  return (struct Exception){op, BOUND, PLAIN};
}

/* Returns the largest of the terms whose sum the op is. */
static Real largest_term(lt_OpId op, Real x, Real y, Real z, Real a) {
  switch (op) {
  case LT_OP_add:
  case LT_OP_sub:
    return fmaxl(fabsl(x), fabsl(a * y));
  case LT_OP_addcmul:
    return fmaxl(fabsl(x), fabsl(a * y * z));
  case LT_OP_addcdiv:
    return fmaxl(fabsl(x), fabsl(a * y / z));
  case LT_OP_lerp:
    return fmaxl(fmaxl(fabsl(x), fabsl(y)), fabsl(y - x) * fmaxl(fabsl(z), fabsl(1 - z)));
  case LT_OP_logaddexp:
  case LT_OP_logaddexp2:
    return fmaxl(fabsl(fmaxl(x, y)), 1);
  case LT_OP__gelu_erf_backward:
    return fabsl(x) * fmaxl(normal_below(y), fabsl(y) * normal_density(y));
  case LT_OP__gelu_tanh_backward:
    return fabsl(x) * fmaxl(sigmoid(gelu_tanh_angle(y)),
                            fabsl(gelu_tanh_slope(y) - sigmoid(gelu_tanh_angle(y))));
  case LT_OP__silu_backward:
    return fabsl(x) * sigmoid(y) * fmaxl(1, fabsl(y) * sigmoid(-y));
  default:
    return 0;
  }
}

/* ---- samples --------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z) { /* splitmix64 */
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static float of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Returns a number where functions change: zeros, poles, ends of ranges, and their neighbours. */
static float landmark(uint64_t random) {
  static const float marks[] = {
      0,           1,           0.5f,         2,           INFINITY,    NAN,
      3.14159265f, 1.5707963f,  0.78539816f,  0.69314718f, 0.34657359f, 87.33654f,
      88.722839f,  103.97208f,  89.415985f,   126,         128,         149,
      150,         0.70710678f, 1.41421356f,  0.66666667f, 1.3333333f,  3.95f,
      6,           10.05f,      11,           13.1f,       8,           20,
      80,          4096,        0x1p24f,      0x1p-126f,   0x1p-149f,   0x1p-12f,
      0x1p-26f,    0x1p20f,     3.4028235e38f};
  float mark = marks[random % (sizeof marks / sizeof *marks)];
  uint32_t bits, away = (uint32_t)(random >> 32) % 9 - 4;
  memcpy(&bits, &mark, sizeof bits);
  if (mark != 0 && isfinite(mark)) bits += away;
  return of_bits(bits ^ ((uint32_t)(random >> 48) << 31));
}

/* Signaling NaNs are excluded: long double makes them quiet. */
static float quiet(float x) { return isnan(x) ? NAN : x; }

/* Returns a number of moderate size. */
static float moderate(uint64_t random) {
  return ldexpf((float)((int64_t)(random >> 40) - (1 << 23)), -24 + (int)(random % 9));
}

/* Computes the inputs of sample i of n. One input: evenly over all bit patterns, then landmarks.
 * More: all bit patterns, neighbouring exponents, moderate numbers, a landmark with any number. */
static void sample(lt_OpId op, Kind kind, int64_t i, int64_t n, float *v) {
  int inputs = lt_ops[op].inputs;
  int64_t stride = (int64_t)(0x100000000 / n);
  for (int k = 0; k < inputs; k++) {
    uint64_t random = mixed((uint64_t)i * 3 + (uint64_t)k + (uint64_t)op * 0x100000000);
    uint32_t bits = (uint32_t)random;
    if (i % 16 == 15)
      v[k] = landmark(random);
    else if (inputs == 1)
      v[k] = of_bits((uint32_t)(i * stride + (int64_t)(random % (uint64_t)stride)));
    else
      v[k] = i % 4 == 0   ? of_bits(bits)
             : i % 4 == 1 ? of_bits((bits & 0x83ffffff) + 0x3c000000)
                          : moderate(random);
    if (kind == TERMS && !(fabsf(v[k]) >= 0x1p-20f && fabsf(v[k]) <= 0x1p20f))
      v[k] = moderate(random);
    v[k] = quiet(v[k]);
  }
  if (kind == RESULT_OF_TANH) v[1] = tanhf(v[1]);
  if (kind == RESULT_OF_SIGMOID) v[1] = (float)sigmoid(v[1]);
  for (int k = inputs - 2; kind == PROBABILITIES && k < inputs; k++) v[k] = (float)sigmoid(v[k]);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Returns the distance of two neighbouring float32 numbers at v. */
static Real unit(Real v) {
  int e = 0;
  if (v != 0) frexpl(v, &e);
  return ldexpl(1, e < -125 ? -149 : e > 128 ? 104 : e - 24);
}

/* Returns the error in units in the last place of the larger of `expected` and `term`. Infinity is
 * treated as the number after the largest. */
static Real error_of(float actual, Real expected, Real term) {
  if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual) ? 0 : INFINITY;
  if ((Real)actual == expected) return 0;
  if (isinf(expected)) return INFINITY;
  Real value = isinf(actual) ? copysignl(0x1p128L, actual) : (Real)actual;
  if (isinf(actual) && fabsl(expected) >= 0x1p128L) return 0;
  return fabsl(value - expected) / unit(fmaxl(fabsl(expected), isfinite(term) ? term : 0));
}

typedef struct Worst {
  Real error, expected;
  float input[3], actual;
} Worst;

enum { BATCH = 1 << 12 };

/* Returns true for a number that a GPU may take as 0, or return as 0. */
static bool is_flushed(Real v) {
  return test_device().type != LT_DEVICE_cpu && !getenv("LUTRA_EMULATE") && v != 0 &&
         fabsl(v) < 0x1p-126L;
}

/* The inputs and the results of the samples that are computed together. */
static lt_Tensor *operands[3], *result_float, *result_bool;

static bool make_tensors(void) {
  for (int k = 0; k < 3; k++) operands[k] = lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){BATCH});
  result_float = lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){BATCH});
  result_bool = lt_empty(LT_bool, lt_cpu(), 1, (int64_t[]){BATCH});
  return operands[0] && operands[1] && operands[2] && result_float && result_bool;
}

/* Computes an op of the inputs on the device under test. */
static bool compute(lt_OpId op, lt_Tensor *out, float a) {
  lt_Arg args[3];
  if (test_device().type != LT_DEVICE_cpu) {
    for (int k = 0; k < lt_ops[op].inputs; k++) args[k] = lt_arg_tensor(operands[k]);
    return loop_on_device(op, out, LT_float32, lt_ops[op].inputs, args, lt_scalar_float((double)a),
                          lt_scalar_float(20));
  }
  const lt_Numbers numbers = {.a.float32 = a, .b.float32 = 20, .limit.float32 = 3.4028235e38f};
  lt_cpu_isa()->vectors[LT_float32]->op[op](BATCH, lt_tensor_data(out), lt_tensor_data(operands[0]),
                                            lt_tensor_data(operands[1]),
                                            lt_tensor_data(operands[2]), &numbers);
  return true;
}

/* Measures the largest error over n samples. Returns false if the op has no exact result. */
static bool measure(lt_OpId op, int64_t n, float a, Worst *worst) {
  struct Exception e = exception_of(op);
  bool gives_bool = lt_ops[op].rule == LT_RULE_TEST;
  lt_Tensor *result = gives_bool ? result_bool : result_float;
  float *in[3];
  for (int k = 0; k < 3; k++) in[k] = lt_tensor_data(operands[k]);
  const void *out = lt_tensor_data(result);
  *worst = (Worst){0};
  for (int64_t first = 0; first < n; first += BATCH) {
    float v[3] = {0, 0, 0};
    for (int i = 0; i < BATCH; i++) {
      sample(op, e.kind, first + i, n, v);
      for (int k = 0; k < 3; k++) in[k][i] = is_flushed((Real)v[k]) ? 0 : v[k];
    }
    if (!compute(op, result, a)) return check_report(__FILE__, __LINE__, "%s", lt_error()), true;
    for (int i = 0; i < BATCH; i++) {
      Real x = in[0][i], y = in[1][i], z = in[2][i], expected;
      if (float_reference(op, x, y, z, a, 20, 3.4028235e38f, true, &expected) == UNKNOWN)
        return false;
      if (op == LT_OP_floor_divide && !(fabsl(expected) < 1e6L)) continue; /* a rounded quotient */
      if (is_flushed(expected)) continue;
      float actual = gives_bool ? ((const uint8_t *)out)[i] : ((const float *)out)[i];
      Real error = error_of(actual, expected, largest_term(op, x, y, z, a));
      if (!(error <= worst->error))
        *worst = (Worst){error, expected, {in[0][i], in[1][i], in[2][i]}, actual};
    }
  }
  return true;
}

/* Returns whether an op is only computed in float64: rounded exactly, or nearly so. */
static bool is_only_wide(lt_OpId op) {
  return lt_ops[op].is_wide &&
         (test_device().type != LT_DEVICE_cpu || !lt_cpu_isa()->vectors[LT_float32]->op[op]);
}

static bool takes_scalar(lt_OpId op) { return strstr(lt_ops[op].signature, "Scalar") != NULL; }

/* ---- tests ----------------------------------------------------------------------------------- */

static int64_t samples = 1 << 16;
static bool table;

/* What computes the ops. */
static const char *computes(void) {
  return test_device().type == LT_DEVICE_cpu ? lt_cpu_isa()->name : "device";
}

static void every_op_is_within_its_bound(void) {
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (lt_ops[op].kind != LT_KIND_ELEMENTWISE || !lt_ops[op].has_float) continue;
    if (is_only_wide((lt_OpId)op)) continue;
    for (int pass = 0; pass < (takes_scalar((lt_OpId)op) ? 2 : 1); pass++) {
      float a = pass ? 0.75f : 1;
      Worst w;
      if (!measure((lt_OpId)op, samples, a, &w)) {
        check_report(__FILE__, __LINE__, "%s has no reference", lt_ops[op].name);
        break;
      }
      if (table)
        printf("%-22s %-6s %8.3Lf  (%.9g, %.9g, %.9g)\n", lt_ops[op].name, computes(), w.error,
               (double)w.input[0], (double)w.input[1], (double)w.input[2]);
      if (!(w.error <= (Real)exception_of((lt_OpId)op).bound))
        check_report(__FILE__, __LINE__,
                     "%s (%s, scalar %g) of (%.9g, %.9g, %.9g): %.2Lf units in the last place, got "
                     "%.9g, expected %.12Lg",
                     lt_ops[op].name, computes(), (double)a, (double)w.input[0], (double)w.input[1],
                     (double)w.input[2], w.error, (double)w.actual, w.expected);
    }
  }
}

/* A result near a zero is a difference of terms that cancel. */
static void results_near_zeros_are_accurate(void) {
  static const struct {
    lt_OpId op;
    float zero;
  } zeros[] = {{LT_OP_lgamma, 1},
               {LT_OP_lgamma, 2},
               {LT_OP_lgamma, -2.4570247f},
               {LT_OP_lgamma, -2.7476826f},
               {LT_OP_lgamma, -3.1435809f},
               {LT_OP_lgamma, -3.9552943f},
               {LT_OP_lgamma, -5.0082182f},
               {LT_OP_lgamma, -8.0000248f},
               {LT_OP_digamma, 1.4616321f},
               {LT_OP_digamma, -0.50408301f},
               {LT_OP_digamma, -1.5734985f},
               {LT_OP_digamma, -2.6107209f},
               {LT_OP_digamma, -9.7026725f},
               {LT_OP_special_bessel_j0, 2.4048256f},
               {LT_OP_special_bessel_j0, 5.5200781f},
               {LT_OP_special_bessel_j0, -8.6537279f},
               {LT_OP_special_bessel_j1, 3.8317060f},
               {LT_OP_special_bessel_j1, 7.0155867f},
               {LT_OP_special_bessel_j1, 10.173468f},
               {LT_OP_special_bessel_y0, 0.89357697f},
               {LT_OP_special_bessel_y0, 3.9576784f},
               {LT_OP_special_bessel_y0, 10.222345f},
               {LT_OP_special_bessel_y1, 2.1971413f},
               {LT_OP_special_bessel_y1, 5.4296811f},
               {LT_OP_special_bessel_y1, 8.5960059f},
               {LT_OP_special_entr, 1}};
  const lt_Numbers numbers = {.a.float32 = 1};
  for (size_t k = 0; k < sizeof zeros / sizeof *zeros; k++) {
    float x[BATCH], y[BATCH];
    uint32_t bits;
    memcpy(&bits, &zeros[k].zero, sizeof bits);
    for (int i = 0; i < BATCH; i++) x[i] = of_bits(bits - BATCH / 2 + (uint32_t)i);
    lt_cpu_isa()->vectors[LT_float32]->op[zeros[k].op](BATCH, y, x, NULL, NULL, &numbers);
    for (int i = 0; i < BATCH; i++) {
      Real expected = zeros[k].op == LT_OP_lgamma ? lgammal((Real)x[i]) : 0;
      if (zeros[k].op != LT_OP_lgamma)
        float_reference(zeros[k].op, (Real)x[i], 0, 0, 1, 1, 3.4028235e38f, true, &expected);
      Real error = error_of(y[i], expected, 0);
      if (!(error <= BOUND)) {
        check_report(__FILE__, __LINE__, "%s (%s) of %.9g: %.2Lf units in the last place",
                     lt_ops[zeros[k].op].name, computes(), (double)x[i], error);
        break;
      }
    }
  }
}

/* Of GELU, numbers where it is computed apart: few of the random ones are there. Results that are
 * 0 have its sign. */
static void gelu_is_accurate_far_from_zero(void) {
  const lt_Numbers numbers = {0};
  for (float begin = -3.5f; begin > -15.5f; begin -= 0.05f) {
    float x[BATCH], y[BATCH];
    for (int i = 0; i < BATCH; i++)
      x[i] = begin - 0.05f * (float)(mixed((uint64_t)i) >> 40) * 0x1p-24f;
    lt_cpu_isa()->vectors[LT_float32]->op[LT_OP__gelu_erf](BATCH, y, x, NULL, NULL, &numbers);
    for (int i = 0; i < BATCH; i++) {
      Real expected = 0;
      float_reference(LT_OP__gelu_erf, (Real)x[i], 0, 0, 0, 0, 0, true, &expected);
      if (error_of(y[i], expected, 0) <= BOUND && signbit(y[i])) continue;
      check_report(__FILE__, __LINE__, "gelu (%s) of %.9g: %.9g, %.2Lf units in the last place",
                   computes(), (double)x[i], (double)y[i], error_of(y[i], expected, 0));
      return;
    }
  }
}

/* The sign of a zero is part of the result. */
static void odd_functions_keep_the_sign_of_zero(void) {
  static const lt_OpId odd[] = {
      LT_OP_expm1, LT_OP_log1p,  LT_OP_sin,        LT_OP_tan,        LT_OP_asin, LT_OP_atan,
      LT_OP_sinh,  LT_OP_tanh,   LT_OP_asinh,      LT_OP_atanh,      LT_OP_erf,  LT_OP_silu,
      LT_OP_elu,   LT_OP_sqrt,   LT_OP__gelu_erf,  LT_OP__gelu_tanh, LT_OP_mish, LT_OP_selu,
      LT_OP_celu,  LT_OP_erfinv, LT_OP_special_i1, LT_OP_special_i1e};
  const lt_Numbers numbers = {.a.float32 = 1, .b.float32 = 20};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    float x[3] = {-0.0f, 0, INFINITY}, y[3]; /* alone, and beside a number that is far from it */
    for (int n = 2; n <= 3; n++) {
      lt_cpu_isa()->vectors[LT_float32]->op[odd[i]](n, y, x, NULL, NULL, &numbers);
      if (!(y[0] == 0 && signbit(y[0]) && y[1] == 0 && !signbit(y[1])))
        check_report(__FILE__, __LINE__, "%s of -0 and 0: %g and %g", lt_ops[odd[i]].name,
                     (double)y[0], (double)y[1]);
    }
  }
}

/* An element's result does not depend on its neighbours, although they decide which form of a
 * function a vector uses, nor on the memory: the results may replace the first input. */
static void neighbours_do_not_matter(void) {
  enum { N = 1024 };
  const lt_Numbers numbers = {.a.float32 = 1, .b.float32 = 20, .limit.float32 = 3.4028235e38f};
  static const float others[] = {INFINITY, NAN, -1e30f, 3e-40f, -100, 5000};
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (lt_ops[op].kind != LT_KIND_ELEMENTWISE || !lt_ops[op].has_float ||
        lt_ops[op].rule == LT_RULE_TEST || is_only_wide((lt_OpId)op))
      continue;
    float in[3][N], calm[N], mixed_out[N];
    for (int i = 0; i < N; i++)
      for (int k = 0; k < 3; k++) {
        uint64_t random = mixed((uint64_t)(i * 3 + k));
        in[k][i] = of_bits(((uint32_t)random & 0x81ffffff) + 0x3f000000);
        if (i % 2) in[k][i] = fabsf(in[k][i]);
      }
    lt_VectorFn f = lt_cpu_isa()->vectors[LT_float32]->op[op];
    f(N, calm, in[0], in[1], in[2], &numbers);
    for (int i = 0; i < N; i += 16)
      for (int k = 0; k < 3; k++) in[k][i] = others[i / 16 % 6];
    f(N, mixed_out, in[0], in[1], in[2], &numbers);
    for (int i = 0; i < N; i++)
      if (i % 16 && memcmp(&calm[i], &mixed_out[i], sizeof *calm) != 0 &&
          !(isnan(calm[i]) && isnan(mixed_out[i]))) {
        check_report(__FILE__, __LINE__, "%s of %.9g: %.9g, beside other numbers %.9g",
                     lt_ops[op].name, (double)in[0][i], (double)calm[i], (double)mixed_out[i]);
        break;
      }
    f(N, in[0], in[0], in[1], in[2], &numbers);
    if (memcmp(in[0], mixed_out, sizeof mixed_out) != 0)
      check_report(__FILE__, __LINE__, "%s in the memory of its input: other results",
                   lt_ops[op].name);
  }
}

/* Runs this program again, with fewer instructions than the CPU has. */
static char **arguments;
static void other_instruction_sets(void) {
  char words[40] = "";
  if (table) snprintf(words, sizeof words, "table %.20s", arguments[2]);
  check_other_instruction_sets(arguments[0], words);
}

int main(int count, char **given) {
  arguments = given;
  table = count == 3 && strcmp(given[1], "table") == 0;
  if (table) samples = (int64_t)1 << atoi(given[2]);
#ifdef LT_DEBUG
  else
    samples = 1 << 13;
#endif
  if (!make_tensors()) return 1;
  RUN(every_op_is_within_its_bound);
  if (test_device().type != LT_DEVICE_cpu) return check_end();
  RUN(results_near_zeros_are_accurate);
  RUN(gelu_is_accurate_far_from_zero);
  RUN(odd_functions_keep_the_sign_of_zero);
  RUN(neighbours_do_not_matter);
  if (!getenv("LUTRA_CPU_CAPABILITY")) RUN(other_instruction_sets);
  return check_end();
}
