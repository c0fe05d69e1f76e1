/* test_elementwise.c: every elementwise op of ops.def, on every dtype and in every layout, against
 * the same formula in long double (or in 128-bit integers), element by element through the strides.
 * An op without a formula here is compared with its expression in ops.def. Then conversions between
 * all dtypes, copies and fills of every layout, and independence of position, threads and
 * instruction set. */
#include "check.h"

#include "core.h"
#include "float_meanings.h"
#include "half.h"
#include "device_under_test.h"
#include "instruction_sets.h"

#include <stdlib.h>

__extension__ typedef __int128 Whole;
__extension__ typedef unsigned __int128 Bits;

/* ---- references ------------------------------------------------------------------------------ */

/* Computes an op's result for integers, before it wraps to their width. bool is 0 or 1. */
static int integer_reference(lt_OpId op, Whole x, Whole y, Whole z, Whole a, int bits, bool is_bool,
                             Whole *r) {
  Whole quotient = y ? x / y : 0, rest = y ? x % y : 0;
  bool shifted = rest != 0 && (rest < 0) != (y < 0);
#define IS(name, value)                                                                            \
  case LT_OP_##name:                                                                               \
    *r = (value);                                                                                  \
    return EXACT;
  switch (op) {
    IS(copy, x)
    IS(fill, a)
    IS(neg, -x)
    IS(abs, x < 0 ? -x : x)
    IS(conj, x)
    IS(sign, (x > 0) - (x < 0))
    IS(square, x * x)
    IS(relu, x > 0 ? x : 0)
    IS(floor, x)
    IS(ceil, x)
    IS(_round, x)
    IS(trunc, x)
    IS(_nan_to_num, x)
    IS(isnan, 0)
    IS(isinf, 0)
    IS(isfinite, 1)
    IS(signbit, x < 0)
    IS(logical_not, x == 0)
    IS(bitwise_not, is_bool ? !x : -x - 1)
    IS(add, x + a * y)
    IS(sub, x - a * y)
    IS(mul, x * y)
    IS(_trunc_divide, quotient)
    IS(floor_divide, quotient - shifted)
    IS(remainder, rest + (shifted ? y : 0))
    IS(fmod, rest)
    IS(maximum, x > y ? x : y)
    IS(minimum, x < y ? x : y)
    IS(fmax, x > y ? x : y)
    IS(fmin, x < y ? x : y)
    IS(eq, x == y)
    IS(ne, x != y)
    IS(lt, x < y)
    IS(le, x <= y)
    IS(gt, x > y)
    IS(ge, x >= y)
    IS(logical_and, x && y)
    IS(logical_or, x || y)
    IS(logical_xor, !x != !y)
    IS(bitwise_and, x & y)
    IS(bitwise_or, x | y)
    IS(bitwise_xor, x ^ y)
    IS(bitwise_left_shift, y < 0 || y >= bits ? 0 : (Whole)((Bits)x << (int)y))
    IS(bitwise_right_shift, y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> (int)y)
    IS(_where, x ? y : z)
    IS(masked_fill, y ? z : x)
    IS(_clamp, x < y ? (y > z ? z : y) : x > z ? z : x)
    IS(addcmul, (Whole)((Bits)x + (Bits)a * (Bits)y * (Bits)z)) /* may exceed 128 bits: wraps */
  case LT_OP_pow: {
    Whole power = 1, base = x;
    for (Whole i = 0; i < y && i < 1000; i++) power = (Whole)(int64_t)(uint64_t)(power * base);
    *r = y >= 0 ? power : x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    return EXACT;
  }
  default:
    if (!lt_integer_text(op)) return UNKNOWN;
    *r = lt_integer_text(op)((int64_t)x, (int64_t)y, (int64_t)z, (int64_t)a, 20);
    return EXACT;
  }
#undef IS
}

/* ---- tensors --------------------------------------------------------------------------------- */

static uint64_t noise = 1;
static uint64_t next_random(void) {
  noise = noise * 6364136223846793005u + 1442695040888963407u;
  return noise >> 33;
}

static void store(lt_Dtype d, void *at, Real v) {
  switch (d) {
  case LT_bool:
    *(uint8_t *)at = v != 0;
    return;
  case LT_uint8:
    *(uint8_t *)at = (uint8_t)(int64_t)v;
    return;
  case LT_int8:
    *(int8_t *)at = (int8_t)(int64_t)v;
    return;
  case LT_int16:
    *(int16_t *)at = (int16_t)(int64_t)v;
    return;
  case LT_int32:
    *(int32_t *)at = (int32_t)(int64_t)v;
    return;
  case LT_int64:
    *(int64_t *)at = (int64_t)v;
    return;
  case LT_float16:
    *(lt_half *)at = lt_half_from_float((float)v);
    return;
  case LT_bfloat16:
    *(lt_bfloat16 *)at = lt_bfloat16_from_float((float)v);
    return;
  case LT_float32:
    *(float *)at = (float)v;
    return;
  case LT_complex64:
    *(lt_complex64 *)at = (lt_complex64){(float)v, 0};
    return;
  case LT_complex128:
    *(lt_complex128 *)at = (lt_complex128){(double)v, 0};
    return;
  default:
    *(double *)at = (double)v;
    return;
  }
}

static Real load(lt_Dtype d, const void *at) {
  switch (d) {
  case LT_bool:
  case LT_uint8:
    return *(const uint8_t *)at;
  case LT_int8:
    return *(const int8_t *)at;
  case LT_int16:
    return *(const int16_t *)at;
  case LT_int32:
    return *(const int32_t *)at;
  case LT_int64:
    return *(const int64_t *)at;
  case LT_float16:
    return lt_half_to_float(*(const lt_half *)at);
  case LT_bfloat16:
    return lt_bfloat16_to_float(*(const lt_bfloat16 *)at);
  case LT_float32:
    return *(const float *)at;
  case LT_complex64:
    return ((const lt_complex64 *)at)->re;
  case LT_complex128:
    return ((const lt_complex128 *)at)->re;
  default:
    return *(const double *)at;
  }
}

/* Returns the address of t's element at index i of a result of the given shape, to which t is
 * broadcast. */
static void *element(const lt_Tensor *t, int ndim, const int64_t *shape, int64_t i) {
  int64_t offset = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    int64_t at = i % shape[d];
    i /= shape[d];
    int own = d - (ndim - t->ndim);
    if (own >= 0 && t->shape[own] > 1) offset += at * t->strides[own];
  }
  return (char *)lt_tensor_data(t) + offset * (int64_t)lt_dtype_size(t->dtype);
}

static void fill_random(lt_Tensor *t) {
  static const Real specials[] = {0,         -0.0L, 1, -1, 2,   -2,    0.5L,  INFINITY,
                                  -INFINITY, NAN,   3, -7, 100, 1e10L, -88.5L};
  size_t size = lt_dtype_size(t->dtype);
  for (int64_t i = 0; i < (int64_t)(t->storage->nbytes / size); i++) {
    char *at = (char *)t->storage->data + (size_t)i * size;
    Real v = (Real)(int64_t)(next_random() % 2000001 - 1000000) / 300000;
    if (!lt_dtype_is_float(t->dtype)) v = (Real)((int64_t)(next_random() % 21) - 10);
    if (next_random() % 8 == 0) v = specials[next_random() % (sizeof specials / sizeof *specials)];
    if (!lt_dtype_is_float(t->dtype) && (isnan(v) || isinf(v) || fabsl(v) > 1e9L))
      v = t->dtype == LT_int64   ? -9223372036854775807.0L - 1
          : t->dtype == LT_int32 ? -2147483648.0L
                                 : 77;
    store(t->dtype, at, v);
  }
}

typedef enum Layout { DENSE, TRANSPOSED, STEPPED, ROWS, COLUMNS, SCALAR, FLIPPED3, LAYOUTS } Layout;

/* Returns a random tensor that broadcasts to {p, q, r}, in a layout. */
static lt_Tensor *make(lt_Dtype d, Layout layout, int64_t p, int64_t q, int64_t r) {
  int64_t shape[3] = {p, q, r}, strides[3] = {q * r, r, 1}, room = p * q * r, offset = 0;
  switch (layout) {
  case TRANSPOSED:
    strides[1] = 1, strides[2] = q;
    break;
  case STEPPED:
    room *= 2, offset = 1, strides[0] *= 2, strides[1] *= 2, strides[2] = 2;
    break;
  case ROWS:
    shape[0] = shape[1] = 1;
    break;
  case COLUMNS:
    shape[2] = 1, strides[0] = q, strides[1] = 1;
    break;
  case SCALAR:
    shape[0] = shape[1] = shape[2] = 1;
    break;
  case FLIPPED3:
    strides[0] = 1, strides[1] = p, strides[2] = p * q;
    break;
  default:
    break;
  }
  lt_Storage *s = lt_storage_new(lt_cpu(), (size_t)room * lt_dtype_size(d));
  lt_Tensor *t = s ? lt_tensor_on(s, d, offset, 3, shape, strides) : NULL;
  lt_storage_release(s);
  if (t) fill_random(t);
  return t;
}

/* ---- one op on one set of tensors ------------------------------------------------------------ */

static bool gives_bool(lt_OpId op) { return lt_ops[op].rule == LT_RULE_TEST; }

static Real ulp(lt_Dtype d, Real v) {
  int digits = d == LT_float16 ? 11 : d == LT_bfloat16 ? 8 : d == LT_float32 ? 24 : 53;
  int least = d == LT_float16 ? -24 : d == LT_float64 ? -1074 : d == LT_bfloat16 ? -133 : -149;
  int e = 0;
  if (v != 0 && isfinite(v)) frexpl(v, &e);
  return ldexpl(1, e - digits > least ? e - digits : least);
}

static Real largest(lt_Dtype d) {
  return d == LT_float16    ? 65504.0L
         : d == LT_bfloat16 ? 0x1.FEp127L
         : d == LT_float32  ? 0x1.FFFFFEp127L
                            : 0x1.FFFFFFFFFFFFFp1023L;
}

static bool equal(Real actual, Real expected) {
  return (isnan(actual) && isnan(expected)) || actual == expected;
}

static Real rounded(lt_Dtype d, Real v) {
  char room[16];
  store(d, room, v);
  return load(d, room);
}

/* Returns true when `actual` is accurate enough. `big` is the largest input. */
static bool is_accurate(lt_Dtype d, int how, Real actual, Real expected, Real big) {
  Real nearest = lt_dtype_is_float(d) ? rounded(d, expected) : expected;
  if (how == EXACT) return equal(actual, nearest);
  if (how == FAIR && !(big <= 30 && isfinite(expected))) return true;
  if (equal(actual, nearest)) return true;
  Real tolerance = (Real)how * ulp(d == LT_float16 || d == LT_bfloat16 ? LT_float32 : d,
                                   how == FAIR ? fmaxl(big, fabsl(expected)) : expected) +
                   ulp(d, expected);
  if (isinf(actual) || isinf(nearest))
    return how != EXACT && fabsl(expected) > largest(d) * (1 - 1e-5L) &&
           signbit(actual) == signbit(expected);
  return fabsl(actual - expected) <= tolerance;
}

/* Compares out with the reference and reports the first difference. */
static bool agrees(lt_OpId op, const lt_Tensor *out, lt_Tensor *const *in, int n, Real a, Real b,
                   lt_Dtype dtype, const char *where) {
  for (int64_t i = 0; i < out->numel; i++) {
    Real v[3] = {0, 0, 0}, expected = 0, big = 0;
    for (int k = 0; k < n; k++) {
      v[k] = load(in[k]->dtype, element(in[k], out->ndim, out->shape, i));
      big = isfinite(v[k]) ? fmaxl(big, fabsl(v[k])) : INFINITY;
    }
    Real actual = load(out->dtype, element(out, out->ndim, out->shape, i));
    int how;
    if (lt_dtype_category(dtype) >= LT_FLOATING) {
      bool narrow = lt_dtype_real(dtype) != LT_float64;
      how = float_reference(op, v[0], v[1], v[2], a, b, largest(dtype), narrow, &expected);
    } else {
      int bits = dtype == LT_int64 ? 64 : 32;
      Whole r = 0;
      how = integer_reference(op, (Whole)v[0], (Whole)v[1], (Whole)v[2], (Whole)a, bits,
                              dtype == LT_bool, &r);
      char room[16];
      store(out->dtype, room, (Real)(out->dtype == LT_bool ? r != 0 : (int64_t)(uint64_t)r));
      expected = load(out->dtype, room);
    }
    if (how == UNKNOWN) {
      check_report(__FILE__, __LINE__, "%s has no reference", lt_ops[op].name);
      return false;
    }
    /* These depend on the quotient: near an integer, a rounded one may give the neighbour. */
    if ((op == LT_OP__trunc_divide || op == LT_OP_floor_divide) && lt_dtype_is_float(dtype) &&
        !(fabsl(expected) < 1e6L))
      continue;
    if (!is_accurate(gives_bool(op) ? LT_bool : out->dtype, how, actual, expected, big)) {
      check_report(__FILE__, __LINE__,
                   "%s of %s, %s, element %lld: (%.9Lg, %.9Lg, %.9Lg) gave %.17Lg, expected %.17Lg",
                   lt_ops[op].name, lt_dtype_name(dtype), where, (long long)i, v[0], v[1], v[2],
                   actual, expected);
      return false;
    }
  }
  return true;
}

/* Returns true for ops that give the same results for real numbers when they are computed as
 * complex numbers: with every layout, and the larger elements. core/complex_spec.lua tests the
 * values of complex numbers. */
static bool is_plain(lt_OpId op) {
  static const lt_OpId plain[] = {LT_OP_copy, LT_OP_fill, LT_OP_neg,    LT_OP_abs,
                                  LT_OP_conj, LT_OP_add,  LT_OP_sub,    LT_OP_isnan,
                                  LT_OP_eq,   LT_OP_ne,   LT_OP__where, LT_OP_masked_fill};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (plain[i] == op) return true;
  return false;
}

/* Returns whether the device has loops for an op: Metal has no float64, in which wide ones are
 * computed. */
static bool has_loops(lt_OpId op) {
  return lt_ops[op].kind == LT_KIND_ELEMENTWISE &&
         !(lt_op_is_wide(op) && test_device().type == LT_DEVICE_mps);
}

static bool supports_dtype(lt_OpId op, lt_Dtype d) {
  lt_Rule rule = lt_ops[op].rule;
  if (!has_dtype(d)) return false;
  if (lt_dtype_is_complex(d)) return lt_ops[op].has_complex && is_plain(op);
  if (lt_dtype_is_float(d)) return lt_ops[op].has_float;
  if (d == LT_bool && (rule == LT_RULE_NUMBER || rule == LT_RULE_DIVIDE || rule == LT_RULE_POWER))
    return false;
  if (d == LT_bool && (op == LT_OP_bitwise_left_shift || op == LT_OP_bitwise_right_shift))
    return false;
  return lt_ops[op].has_integer;
}

static bool run(lt_OpId op, lt_Tensor *out, lt_Dtype d, lt_Tensor *const *in, int n, Real a,
                Real b) {
  lt_Arg args[3];
  for (int k = 0; k < n; k++) args[k] = lt_arg_tensor(in[k]);
  bool is_float = lt_dtype_category(d) >= LT_FLOATING;
  return loop_on_device(op, out, lt_ops[op].is_wide ? LT_float64 : lt_dtype_compute(d), n, args,
                        is_float ? lt_scalar_float((double)a) : lt_scalar_int((int64_t)a),
                        is_float ? lt_scalar_float((double)b) : lt_scalar_int((int64_t)b));
}

static void one(lt_OpId op, lt_Dtype d, const Layout *layouts, Layout out_layout,
                const int64_t *size) {
  int n = lt_ops[op].inputs;
  lt_Tensor *in[3] = {NULL, NULL, NULL};
  char where[80];
  snprintf(where, sizeof where, "layouts %d %d %d to %d, {%lld, %lld, %lld}", layouts[0],
           layouts[1], layouts[2], out_layout, (long long)size[0], (long long)size[1],
           (long long)size[2]);
  for (int k = 0; k < n; k++) in[k] = make(d, layouts[k], size[0], size[1], size[2]);
  lt_Tensor *out = make(gives_bool(op) ? LT_bool : d, out_layout, size[0], size[1], size[2]);
  Real a = lt_dtype_category(d) >= LT_FLOATING && op != LT_OP_fill ? 0.75L : d == LT_bool ? 1 : 3;
  bool ran = run(op, out, d, in, n, a, 20);
  if (!ran)
    check_report(__FILE__, __LINE__, "%s of %s, %s: %s", lt_ops[op].name, lt_dtype_name(d), where,
                 lt_error());
  if (ran) agrees(op, out, in, n, a, 20, d, where);
  for (int k = 0; k < n; k++) lt_release(in[k]);
  lt_release(out);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const int64_t sizes[][3] = {{3, 5, 70},   {60, 3, 3}, {1, 1, 1},
                                   {2, 1, 1100}, {1, 1, 37}, {2, 9, 17}};

static bool few_sizes; /* only some of the sizes */
static void every_op_dtype_and_layout(void) {
  static const Layout combinations[][4] = {{DENSE, DENSE, DENSE, DENSE},
                                           {DENSE, SCALAR, SCALAR, DENSE},
                                           {SCALAR, DENSE, DENSE, DENSE},
                                           {DENSE, ROWS, COLUMNS, DENSE},
                                           {DENSE, COLUMNS, SCALAR, DENSE},
                                           {COLUMNS, DENSE, ROWS, DENSE},
                                           {ROWS, COLUMNS, DENSE, DENSE},
                                           {TRANSPOSED, DENSE, ROWS, DENSE},
                                           {STEPPED, TRANSPOSED, DENSE, DENSE},
                                           {COLUMNS, STEPPED, SCALAR, STEPPED},
                                           {FLIPPED3, DENSE, DENSE, DENSE},
                                           {DENSE, TRANSPOSED, STEPPED, TRANSPOSED},
                                           {FLIPPED3, FLIPPED3, FLIPPED3, FLIPPED3}};
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (!has_loops((lt_OpId)op)) continue;
    for (int d = 0; d < LT_DTYPE_COUNT; d++) {
      if (!supports_dtype((lt_OpId)op, (lt_Dtype)d)) continue;
      for (size_t s = few_sizes ? 4 : 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t c = 0; c < (s == 3 ? 2 : sizeof combinations / sizeof *combinations); c++)
          one((lt_OpId)op, (lt_Dtype)d, combinations[c], combinations[c][3], sizes[s]);
    }
  }
}

static void in_place(void) {
  for (int op = 0; op < LT_OP_COUNT; op++) {
    if (!has_loops((lt_OpId)op) || !lt_ops[op].has_float || op == LT_OP_copy) continue;
    int n = lt_ops[op].inputs;
    lt_Tensor *in[3] = {NULL, NULL, NULL}, *same_in[3];
    for (int k = 0; k < n; k++)
      same_in[k] = in[k] = make(LT_float32, k ? TRANSPOSED : DENSE, 3, 40, 37);
    lt_Tensor *before = make(LT_float32, DENSE, 3, 40, 37);
    memcpy(lt_tensor_data(before), lt_tensor_data(in[0]), before->storage->nbytes);
    same_in[0] = before;
    CHECK(run((lt_OpId)op, in[0], LT_float32, in, n, 0.75L, 20));
    agrees((lt_OpId)op, in[0], same_in, n, 0.75L, 20, LT_float32, "in place");
    for (int k = 0; k < n; k++) lt_release(in[k]);
    lt_release(before);
  }
}

/* The same inputs give the same bits at every position. */
static void position_does_not_matter(void) {
  /* An emulated CUDA device computes with the C library's vector functions, which round otherwise
   * than its others. */
  if (getenv("LUTRA_EMULATE") && test_device().type == LT_DEVICE_cuda) return;
  enum { N = 83 };
  for (int d = LT_float16; d < LT_DTYPE_COUNT; d++)
    for (int op = 0; op < LT_OP_COUNT; op++) {
      if (!has_dtype(d)) continue;
      if (!has_loops((lt_OpId)op) || !lt_ops[op].has_float || op == LT_OP_fill) continue;
      if (lt_dtype_is_complex((lt_Dtype)d) && !lt_ops[op].has_complex) continue;
      int n = lt_ops[op].inputs;
      lt_Dtype to = gives_bool((lt_OpId)op) ? LT_bool : (lt_Dtype)d;
      lt_Tensor *in[3] = {NULL, NULL, NULL};
      for (int k = 0; k < n; k++) in[k] = make((lt_Dtype)d, DENSE, 1, 1, N);
      lt_Tensor *out = make(to, DENSE, 1, 1, N), *single = make(to, DENSE, 1, 1, 1);
      run((lt_OpId)op, out, (lt_Dtype)d, in, n, 0.75L, 20);
      for (int64_t i = 0; i < N; i++) {
        lt_Tensor *at[3] = {NULL, NULL, NULL};
        for (int k = 0; k < n; k++)
          at[k] = lt_tensor_on(in[k]->storage, (lt_Dtype)d, i, 0, NULL, NULL);
        run((lt_OpId)op, single, (lt_Dtype)d, at, n, 0.75L, 20);
        Real one_got = load(to, lt_tensor_data(single)),
             many = load(to, element(out, 3, out->shape, i));
        if (!equal(one_got, many)) {
          check_report(__FILE__, __LINE__,
                       "%s of %s: element %lld alone gave %.17Lg, among others %.17Lg",
                       lt_ops[op].name, lt_dtype_name((lt_Dtype)d), (long long)i, one_got, many);
          i = N;
        }
        for (int k = 0; k < n; k++) lt_release(at[k]);
      }
      for (int k = 0; k < n; k++) lt_release(in[k]);
      lt_release(out);
      lt_release(single);
    }
}

/* Conversions of special numbers: the dtype, the value, the target's dtype, the result. */
static void conversions(void) {
  static const struct {
    lt_Dtype from;
    double value;
    lt_Dtype to;
    double expected;
  } rows[] = {{LT_float32, 3.9, LT_int32, 3},
              {LT_float32, -3.9, LT_int32, -3},
              {LT_float32, NAN, LT_int64, 0},
              {LT_float64, NAN, LT_uint8, 0},
              {LT_float32, 3e9, LT_int32, INT32_MAX},
              {LT_float32, -3e9, LT_int32, INT32_MIN},
              {LT_float64, 300, LT_uint8, 255},
              {LT_float64, -5, LT_uint8, 0},
              {LT_float64, 127.9, LT_int8, 127},
              {LT_float64, -128.9, LT_int8, -128},
              {LT_float64, 40000, LT_int16, 32767},
              {LT_float16, INFINITY, LT_int32, INT32_MAX},
              {LT_float64, -1e300, LT_int64, -9223372036854775808.0},
              {LT_bfloat16, -INFINITY, LT_int8, -128},
              {LT_float32, NAN, LT_bool, 1},
              {LT_float32, 0.25, LT_bool, 1},
              {LT_float32, -0.0, LT_bool, 0},
              {LT_float32, NAN, LT_uint8, 0},
              {LT_float32, 300, LT_uint8, 255},
              {LT_float32, -5, LT_uint8, 0},
              {LT_float32, 127.5, LT_int8, 127},
              {LT_float32, -128.5, LT_int8, -128},
              {LT_float32, 40000, LT_int16, 32767},
              {LT_float32, -1e30, LT_int64, -9223372036854775808.0},
              {LT_float32, 65520, LT_float16, INFINITY},
              {LT_float32, 65519, LT_float16, 65504},
              {LT_float64, 1e-300, LT_bool, 1},
              {LT_int64, 256, LT_bool, 1},
              {LT_int64, 4294967296.0, LT_bool, 1},
              {LT_int32, 300, LT_uint8, 44},
              {LT_int32, 200, LT_int8, -56},
              {LT_int64, 4294967297.0, LT_int32, 1},
              {LT_int64, 16777217, LT_float32, 16777216},
              {LT_int64, 16777217, LT_float64, 16777217},
              {LT_float64, 65520, LT_float16, INFINITY},
              {LT_float64, 65519.99, LT_float16, 65504},
              {LT_float32, 1e-8, LT_float16, 0},
              {LT_float32, 6e-8, LT_float16, 0x1p-24},
              {LT_float64, 1e39, LT_float32, INFINITY},
              {LT_float32, 0x1.01p0, LT_bfloat16, 1},
              {LT_float32, 0x1.03p0, LT_bfloat16, 0x1.04p0},
              {LT_float64, 1.0 + 0x1p-11 + 0x1p-40, LT_float16, 1.0 + 0x1p-10},
              {LT_bool, 1, LT_float64, 1},
              {LT_float64, 4503599627370497.0, LT_int64, 4503599627370497.0},
              {LT_float16, NAN, LT_bfloat16, NAN}};
  static const int64_t lengths[] = {1, 5, 100, 1500};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
      for (int stepped = 0; stepped < 3; stepped++) {
        if (!has_dtype(rows[i].from) || !has_dtype(rows[i].to)) continue;
        lt_Tensor *in = make(rows[i].from, stepped == 1 ? STEPPED : DENSE, 1, 1, lengths[k]);
        lt_Tensor *out = make(rows[i].to, stepped == 2 ? STEPPED : DENSE, 1, 1, lengths[k]);
        size_t size = lt_dtype_size(in->dtype);
        for (size_t e = 0; e < in->storage->nbytes / size; e++)
          store(in->dtype, (char *)in->storage->data + e * size, rows[i].value);
        CHECK(copy_on_device(out, in));
        for (int64_t e = 0; e < out->numel; e++) {
          Real actual = load(out->dtype, element(out, 3, out->shape, e));
          if (equal(actual, rows[i].expected)) continue;
          check_report(__FILE__, __LINE__, "%s %.17g to %s gave %.17Lg, expected %.17g",
                       lt_dtype_name(rows[i].from), rows[i].value, lt_dtype_name(rows[i].to),
                       actual, rows[i].expected);
          break;
        }
        lt_release(in);
        lt_release(out);
      }
}

/* A conversion of many elements gives what that of each one alone does. */
static void conversions_of_many(void) {
  enum { N = 1100 };
  for (int from = LT_float32; from <= LT_float64; from++)
    for (int to = 0; to <= LT_float64; to++) {
      if (!has_dtype(from) || !has_dtype(to)) continue;
      lt_Tensor *x = make((lt_Dtype)from, DENSE, 1, 1, N),
                *out = make((lt_Dtype)to, DENSE, 1, 1, N),
                *single = make((lt_Dtype)to, DENSE, 1, 1, 1);
      for (int i = 0; i < N; i++) { /* the last block has the special numbers of make */
        int size = i < 300 ? 3 : i < 800 ? 30 : 300;
        Real v = ldexpl((Real)next_random() - 0x1p30L,
                        (int)(next_random() % (2 * size + 1)) - size - 30);
        if (i < 1000) store((lt_Dtype)from, element(x, 3, x->shape, i), i % 97 ? v : 0);
      }
      CHECK(copy_on_device(out, x));
      for (int i = 0; i < N; i++) {
        lt_Tensor *at = lt_tensor_on(x->storage, (lt_Dtype)from, i, 3, (int64_t[]){1, 1, 1},
                                     (int64_t[]){1, 1, 1});
        CHECK(copy_on_device(single, at));
        Real alone = load((lt_Dtype)to, lt_tensor_data(single)),
             many = load((lt_Dtype)to, element(out, 3, out->shape, i));
        if (!equal(many, alone))
          check_report(__FILE__, __LINE__,
                       "%s to %s: element %d alone gave %.17Lg, among others %.17Lg",
                       lt_dtype_name((lt_Dtype)from), lt_dtype_name((lt_Dtype)to), i, alone, many);
        lt_release(at);
      }
      lt_release(x);
      lt_release(out);
      lt_release(single);
    }
}

/* int64 keeps all its bits in copies, fills and arithmetic. */
static void int64_is_exact(void) {
  lt_Tensor *x = make(LT_int64, DENSE, 1, 3, 40), *y = make(LT_int64, TRANSPOSED, 1, 3, 40);
  int64_t *p = lt_tensor_data(x);
  for (int i = 0; i < 120; i++) p[i] = INT64_MAX - i;
  CHECK(copy_on_device(y, x));
  for (int i = 0; i < 120; i++) CHECK_INT(*(int64_t *)element(y, 3, y->shape, i), INT64_MAX - i);
  lt_Arg in = lt_arg_tensor(y);
  CHECK(loop_on_device(LT_OP_fill, y, LT_int64, 1, &in, lt_scalar_int(INT64_MAX - 1),
                       lt_scalar_int(0)));
  CHECK_INT(*(int64_t *)element(y, 3, y->shape, 119), INT64_MAX - 1);
  lt_release(x);
  lt_release(y);
}

/* Small integers beside numbers that fit their dtype, and that do not. */
static void numbers_beside_small_integers(void) {
  static const lt_OpId ops[] = {LT_OP_add, LT_OP_sub, LT_OP_mul, LT_OP_maximum,
                                LT_OP_lt,  LT_OP_eq,  LT_OP_ge,  LT_OP_bitwise_and};
  static const int32_t numbers[] = {0, 1, -1, -128, -129, 127, 128, 255, 256, 300, 32768, -32769};
  for (lt_Dtype d = LT_uint8; d <= LT_int16; d++)
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
      for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lt_Tensor *x = make(d, i & 1 ? DENSE : TRANSPOSED, 2, 9, 17);
        lt_Tensor *out = make(gives_bool(ops[k]) ? LT_bool : d, DENSE, 2, 9, 17);
        lt_Tensor *number = lt_empty(LT_int32, lt_cpu(), 0, NULL), *in[2] = {x, number};
        *(int32_t *)lt_tensor_data(number) = numbers[i];
        lt_Arg args[2] = {lt_arg_tensor(x),
                          {.kind = LT_ARG_SCALAR, .scalar = lt_scalar_int(numbers[i])}};
        CHECK(loop_on_device(ops[k], out, LT_int32, 2, args, lt_scalar_int(3), lt_scalar_int(0)));
        agrees(ops[k], out, in, 2, 3, 0, d, "a number");
        lt_release(x);
        lt_release(out);
        lt_release(number);
      }
}

/* Copies of one dtype in every pair of layouts, small, and large enough for threads and tiles. */
static void copies(void) {
  static const lt_Dtype dtypes[] = {LT_bool, LT_float16, LT_float32, LT_float64};
  static const int64_t shapes[][3] = {
      {3, 5, 7}, {2, 100, 65}, {1, 300, 301}, {33, 2, 64}, {1, 1, 200000}};
  for (size_t d = 0; d < 4; d++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (Layout from = DENSE; from < LAYOUTS; from++)
        for (Layout to = DENSE; to < LAYOUTS; to++) {
          if (to == ROWS || to == COLUMNS || to == SCALAR) continue;
          const int64_t *n = shapes[s];
          lt_Tensor *in = make(dtypes[d], from, n[0], n[1], n[2]),
                    *out = make(dtypes[d], to, n[0], n[1], n[2]);
          CHECK(copy_on_device(out, in));
          bool good = true;
          for (int64_t i = 0; i < out->numel && good; i++)
            good = memcmp(element(out, 3, out->shape, i), element(in, 3, out->shape, i),
                          lt_dtype_size(dtypes[d])) == 0;
          if (!good)
            check_report(__FILE__, __LINE__, "copy of %s, layout %d to %d, shape %d",
                         lt_dtype_name(dtypes[d]), from, to, (int)s);
          lt_release(in);
          lt_release(out);
        }
}

/* A fill writes its elements and no others. */
static void fills(void) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    lt_Tensor *t = make((lt_Dtype)d, STEPPED, 2, 30, 70);
    size_t size = lt_dtype_size(t->dtype);
    memset(t->storage->data, 1, t->storage->nbytes);
    lt_Arg in = lt_arg_tensor(t);
    CHECK(loop_on_device(LT_OP_fill, t, lt_dtype_compute(t->dtype), 1, &in, lt_scalar_int(0),
                         lt_scalar_int(0)));
    const uint8_t *p = t->storage->data;
    int wrong = 0;
    for (size_t i = 0; i < t->storage->nbytes; i++) wrong += p[i] != (i / size % 2 == 1 ? 0 : 1);
    CHECK_INT(wrong, 0);
    lt_release(t);
  }
}

static void threads_do_not_matter(void) {
  int threads = lt_num_threads();
  lt_Tensor *x = make(LT_float32, DENSE, 1, 500, 777),
            *y = make(LT_float32, TRANSPOSED, 1, 500, 777);
  lt_Tensor *out[2] = {make(LT_float32, DENSE, 1, 500, 777), make(LT_float32, DENSE, 1, 500, 777)};
  lt_Tensor *in[2] = {x, y};
  static const lt_OpId ops[] = {LT_OP_tanh, LT_OP_add, LT_OP_pow};
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 2; i++) {
      lt_set_num_threads(i ? 3 : 1);
      CHECK(run(ops[k], out[i], LT_float32, in, lt_ops[ops[k]].inputs, 1, 0));
    }
    CHECK(memcmp(lt_tensor_data(out[0]), lt_tensor_data(out[1]), out[0]->storage->nbytes) == 0);
  }
  static const int64_t short_rows[][3] = {
      {1, 20001, 10}, {3, 30000, 1}, {5, 7001, 3}, {2, 300, 333}};
  for (int i = 0; i < 4; i++) {
    one(LT_OP_add, LT_float32, (const Layout[]){DENSE, ROWS, ROWS}, DENSE, short_rows[i]);
    one(LT_OP__where, widest_float(), (const Layout[]){COLUMNS, ROWS, SCALAR}, TRANSPOSED,
        short_rows[i]);
  }
  static const int64_t rows[][3] = {{1, 5001, 16}, {3, 701, 33}, {7, 3, 2048}};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) {
      one(ops[k], LT_float32, (const Layout[]){DENSE, COLUMNS, SCALAR}, DENSE, rows[i]);
      one(ops[k], LT_float32, (const Layout[]){COLUMNS, DENSE, SCALAR}, DENSE, rows[i]);
    }
  lt_set_num_threads(threads);
  lt_release(x);
  lt_release(y);
  lt_release(out[0]);
  lt_release(out[1]);
}

static void interrupts_stop_a_loop(void) {
  if (test_device().type != LT_DEVICE_cpu) return; /* a running kernel is not stopped */
  lt_Tensor *x = lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){4000000});
  memset(lt_tensor_data(x), 0, x->storage->nbytes);
  atomic_store(&lt_interrupt_flag, true);
  lt_Tensor *in[1] = {x};
  CHECK(!run(LT_OP_exp, x, LT_float32, in, 1, 0, 0));
  atomic_store(&lt_interrupt_flag, false);
  CHECK_CONTAINS(lt_error(), "interrupted");
  CHECK(run(LT_OP_exp, x, LT_float32, in, 1, 0, 0));
  lt_release(x);
}

static void too_large_allocations_are_refused(void) {
  CHECK(!lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){(int64_t)1 << 50}));
  CHECK(lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "out of memory on \"cpu\"");
}

/* Runs this program again, with fewer instructions than the CPU has. */
static const char *program;
static void other_instruction_sets(void) {
  if (test_device().type != LT_DEVICE_cpu) return;
  check_other_instruction_sets(program, ">/dev/null");
}

int main(int count, char **arguments) {
  program = count > 0 ? arguments[0] : "";
  few_sizes = getenv("LUTRA_CPU_CAPABILITY") != NULL;
  RUN(every_op_dtype_and_layout);
  if (!few_sizes) RUN(other_instruction_sets);
  RUN(in_place);
  RUN(position_does_not_matter);
  RUN(conversions);
  RUN(conversions_of_many);
  RUN(int64_is_exact);
  RUN(numbers_beside_small_integers);
  RUN(copies);
  RUN(fills);
  RUN(threads_do_not_matter);
  RUN(interrupts_stop_a_loop);
  RUN(too_large_allocations_are_refused);
  return check_end();
}
