/* test_infer.c: the dtypes and shapes of results, and the errors, of ops on meta, where nothing is
 * computed.
 *
 * Expected shapes and dtypes are PyTorch's, from its documentation; where Lutra differs (ranges
 * that include both ends, indices from 1), they are api.md's.
 */
#include "infer_says.h"

#include <math.h>

static void reductions(void) {
  SAYS("float32 {}", sum, LT_ARG(M(float32, 3, 4)));
  SAYS("int64 {}", sum, LT_ARG(M(int32, 3, 4)));
  SAYS("int64 {3}", sum, LT_ARG(M(bool, 3, 4)), L(1));
  SAYS("float16 {3}", sum, LT_ARG(M(float16, 3, 4)), L(-1));
  SAYS("int32 {3, 1}", sum, LT_ARG(M(int32, 3, 4)), L(1), LT_ARG(true), D(int32));
  SAYS("float64 {1, 4, 1}", sum, LT_ARG(M(int8, 3, 4, 5)), L(0, 2), LT_ARG(true), D(float64));
  SAYS("float32 {}", sum, LT_ARG(M0(float32)), L(-1));
  SAYS("float32 {0}", sum, LT_ARG(M(float32, 0, 4)), L(1));
  SAYS("float32 {4}", sum, LT_ARG(M(float32, 0, 4)), L(0));
  SAYS("float32 {4}", mean, LT_ARG(M(float32, 0, 4)), L(0));
  SAYS("float64 {4}", mean, LT_ARG(M(int64, 3, 4)), L(0), LT_ARG(false), D(float64));
  SAYS("int64 {3}", prod, LT_ARG(M(uint8, 3, 4)), L(1));
  SAYS("bool {3}", all, LT_ARG(M(float32, 3, 4)), L(1));
  SAYS("bool {}", any, LT_ARG(M(bool, 0)));
  SAYS("int64 {4}", count_nonzero, LT_ARG(M(float32, 3, 4)), L(0));
  SAYS("float32 {3}", logsumexp, LT_ARG(M(float32, 3, 4)), L(1));
  SAYS("int16 {4}", amax, LT_ARG(M(int16, 3, 4)), L(0));
  SAYS("float32 {3, 0}", amax, LT_ARG(M(float32, 3, 5, 0)), L(1));
  SAYS("int64 {}", argmax, LT_ARG(M(float32, 3, 4)));
  SAYS("int64 {1, 1}", argmax, LT_ARG(M(float32, 3, 4)), LT_NIL, LT_ARG(true));
  SAYS("int64 {3}", argmin, LT_ARG(M(float32, 3, 4)), LT_ARG(-1));
  SAYS("int64 {}", argmin, LT_ARG(M0(float32)), LT_ARG(0));
}

static void reductions_refuse(void) {
  SAYS("mean: expected a float dtype, got \"int64\"\nhint: dtype = \"float32\", or "
       "x:to(\"float32\")",
       mean, LT_ARG(M(int64, 3)));
  SAYS("mean: expected a float dtype, got \"int32\"\nhint: dtype = \"float32\", or "
       "x:to(\"float32\")",
       mean, LT_ARG(M(float32, 3)), LT_NIL, LT_ARG(false), D(int32));
  SAYS("var: expected a float dtype, got \"bool\"\nhint: x:to(\"float32\")", var,
       LT_ARG(M(bool, 3)));
  SAYS("sum: cannot use dim 3: it is out of range, the tensor has 2 dimensions", sum,
       LT_ARG(M(float32, 3, 4)), L(2));
  SAYS("sum: cannot use dim -3: it is out of range, the tensor has 2 dimensions", sum,
       LT_ARG(M(float32, 3, 4)), L(-3));
  SAYS("sum: expected each dim once, got dim 1 twice", sum, LT_ARG(M(float32, 3, 4)), L(0, -2));
  const char *nothing = "cannot reduce dim 2 of {3, 0}: its size is 0";
  MENTIONS(nothing, amax, LT_ARG(M(float32, 3, 0)), L(1));
  MENTIONS(nothing, amin, LT_ARG(M(float32, 3, 0)));
  MENTIONS(nothing, argmax, LT_ARG(M(float32, 3, 0)));
  MENTIONS(nothing, max, LT_ARG(M(float32, 3, 0)), LT_ARG(2));
  MENTIONS(nothing, _norm, LT_ARG(M(float32, 3, 0)), LT_NIL, LT_ARG(false),
           LT_ARG((double)INFINITY));
  SAYS("float32 {3}", _norm, LT_ARG(M(float32, 3, 0)), L(1));
}

static void extremes_have_three_spellings(void) {
  SAYS("float32 {}", max, LT_ARG(M(float32, 3, 4)));
  SAYS("float32 {4}; int64 {4}", max, LT_ARG(M(float32, 3, 4)), LT_ARG(1));
  SAYS("int8 {3, 1}; int64 {3, 1}", min, LT_ARG(M(int8, 3, 4)), LT_ARG(-1), LT_ARG(true));
  SAYS("float32 {3, 4}", max, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4)));
  SAYS("float32 {}; int64 {}", max, LT_ARG(M0(float32)), LT_ARG(1));
  SAYS("max: expected a 1-based dim for argument 'dim', got 0\nhint: dims count from 1 (-1 is the "
       "last)",
       max, LT_ARG(M(float32, 3, 4)), LT_ARG(0));
  SAYS("max: expected Tensor|int for argument 'dim', got a float", max, LT_ARG(M(float32, 3, 4)),
       LT_ARG(1.5));
  SAYS("max: cannot use dim 3: it is out of range, the tensor has 2 dimensions", max,
       LT_ARG(M(float32, 3, 4)), LT_ARG(3));
}

static void statistics(void) {
  SAYS("float32 {3}", var, LT_ARG(M(float32, 3, 4)), L(2));
  SAYS("float32 {3, 1}", std, LT_ARG(M(float32, 3, 4)), L(2), LT_ARG(false), LT_ARG(true));
  SAYS("norm: expected a float dtype, got \"int64\"\nhint: x:to(\"float32\")", _norm,
       LT_ARG(M(int64, 3, 4)));
  SAYS("int64 {3, 4}", cumsum, LT_ARG(M(bool, 3, 4)), LT_ARG(0));
  SAYS("float32 {}", cumprod, LT_ARG(M0(float32)), LT_ARG(0));
  SAYS("bool {3, 4}; int64 {3, 4}", cummax, LT_ARG(M(bool, 3, 4)), LT_ARG(-1));
  SAYS("float32 {}; int64 {}", cummax, LT_ARG(M0(float32)), LT_ARG(0));
  SAYS("float32 {3, 4}; int64 {3, 4}", sort, LT_ARG(M(float32, 3, 4)));
  SAYS("int64 {3, 4}", argsort, LT_ARG(M(float32, 3, 4)), LT_ARG(0));
  SAYS("float32 {3, 2}; int64 {3, 2}", topk, LT_ARG(M(float32, 3, 4)), LT_ARG(2));
  SAYS("float32 {0, 4}; int64 {0, 4}", topk, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(0));
  SAYS("topk: expected at most 4, the size of dim 2 of {3, 4}, for argument 'k', got 5", topk,
       LT_ARG(M(float32, 3, 4)), LT_ARG(5));
  SAYS("topk: expected an integer of at least 0 for argument 'k', got -1", topk,
       LT_ARG(M(float32, 3, 4)), LT_ARG(-1));
  SAYS("float32 {3, 4}", softmax, LT_ARG(M(float32, 3, 4)), LT_ARG(1));
  SAYS("float32 {3, 4}", log_softmax, LT_ARG(M(int64, 3, 4)), LT_ARG(1), D(float32));
  SAYS("softmax: expected a float dtype, got \"int64\"\nhint: dtype = \"float32\", or "
       "x:to(\"float32\")",
       softmax, LT_ARG(M(int64, 3, 4)), LT_ARG(1));
  SAYS("bool {3, 4}", isclose, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4)));
  SAYS("isclose: expected a number of at least 0 for argument 'rtol', got -1", isclose,
       LT_ARG(M(float32, 3)), LT_ARG(M(float32, 3)), LT_ARG(-1.0));
  SAYS("equal: cannot compare meta tensors: they have no data", equal, LT_ARG(M(float32, 3)),
       LT_ARG(M(float32, 3)));
  SAYS("false", equal, LT_ARG(M(float32, 3)), LT_ARG(M(float32, 4)));
}

static void factories(void) {
  SAYS("float32 {2, 3}", empty, L(2, 3), LT_NIL, META);
  SAYS("int8 {}", zeros, LT_INTS(NULL, 0), D(int8), META);
  SAYS("float32 {0, 3}", ones, L(0, 3), LT_NIL, META);
  SAYS("int64 {2}", full, L(2), LT_ARG(7), LT_NIL, META);
  SAYS("bool {2}", full, L(2), LT_ARG(lt_scalar_bool(true)), LT_NIL, META);
  SAYS("float32 {2}", full, L(2), LT_ARG(7.5), LT_NIL, META);
  SAYS("float64 {2}", full, L(2), LT_ARG(7), D(float64), META);
  SAYS("float32 {3, 3}", eye, LT_ARG(3), LT_NIL, LT_NIL, META);
  SAYS("int64 {3, 5}", eye, LT_ARG(3), LT_ARG(5), D(int64), META);
  SAYS("float32 {5}", linspace, LT_ARG(0), LT_ARG(1), LT_ARG(5), LT_NIL, META);
  SAYS("float32 {5}", logspace, LT_ARG(0), LT_ARG(1), LT_ARG(5), LT_ARG(10), LT_NIL, META);
  SAYS("int64 {6}", randperm, LT_ARG(6), LT_NIL, LT_NIL, META);
  SAYS("float32 {2, 3}", rand, L(2, 3), LT_NIL, LT_NIL, META);
  SAYS("float64 {2, 3}", randn, L(2, 3), LT_NIL, D(float64), META);
  SAYS("int64 {4}", randint, LT_ARG(6), LT_NIL, L(4), LT_NIL, LT_NIL, META);
  SAYS("uint8 {4}", randint, LT_ARG(0), LT_ARG(255), L(4), LT_NIL, D(uint8), META);
  SAYS("float32 {2, 3}", zeros_like, LT_ARG(M(float32, 2, 3)));
  SAYS("int64 {2, 3}", full_like, LT_ARG(M(float32, 2, 3)), LT_ARG(1), D(int64));
  SAYS("float32 {2} on cpu", empty_like, LT_ARG(M(float32, 2)), LT_NIL, LT_ARG(lt_cpu()));
  SAYS("int16 {4}", new_zeros, LT_ARG(M(int16, 2, 3)), L(4));
  SAYS("float32 {2, 3}", randn_like, LT_ARG(M(float32, 2, 3)));
  SAYS("int64 {2, 3}", randint_like, LT_ARG(M(int64, 2, 3)), LT_ARG(6));
  SAYS("float32 {2, 3}", bernoulli, LT_ARG(M(float32, 2, 3)));
  SAYS("int64 {2, 3}", bernoulli, LT_ARG(M(int64, 2, 3)), LT_ARG(0.25));
  SAYS("int64 {2, 7}", multinomial, LT_ARG(M(float32, 2, 3)), LT_ARG(7), LT_ARG(true));
  SAYS("int64 {2}", multinomial, LT_ARG(M(float32, 3)), LT_ARG(2));
}

static void factories_refuse(void) {
  SAYS("zeros: expected sizes of at least 0, got -3 at dim 2 of the shape {2, -3}", zeros, L(2, -3),
       LT_NIL, META);
  SAYS("zeros: cannot create a tensor of shape {4294967296, 4294967296}: its number of elements "
       "overflows",
       zeros, L(INT64_C(1) << 32, INT64_C(1) << 32), LT_NIL, META);
  SAYS("ones: expected at most 16 sizes, got 17", ones,
       L(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), LT_NIL, META);
  SAYS("ones: cannot require grad: expected a float dtype, got \"int64\"", ones, L(2), D(int64),
       META, LT_ARG(true));
  SAYS("eye: expected an integer of at least 0 for argument 'n', got -1", eye, LT_ARG(-1), LT_NIL,
       LT_NIL, META);
  SAYS("linspace: expected an integer of at least 0 for argument 'steps', got -1", linspace,
       LT_ARG(0), LT_ARG(1), LT_ARG(-1), LT_NIL, META);
  SAYS("randperm: cannot store 300 in \"uint8\": it holds 0 to 255", randperm, LT_ARG(300), LT_NIL,
       D(uint8), META);
  SAYS("randint: expected sizes (integers) for argument 'size', got no value\nhint: lt.randint(6, "
       "{100}), or lt.randint(6, {size = {}}) for a tensor of 0 dims",
       randint, LT_ARG(6));
  SAYS("randint: expected from <= to, got from 7 to 3", randint, LT_ARG(7), LT_ARG(3), L(2), LT_NIL,
       LT_NIL, META);
  SAYS("randint: expected from <= to, got from 1 to 0", randint, LT_ARG(0), LT_NIL, L(2), LT_NIL,
       LT_NIL, META);
  SAYS("randint: cannot store 256 in \"uint8\": it holds 0 to 255", randint, LT_ARG(0), LT_ARG(256),
       L(2), LT_NIL, D(uint8), META);
  SAYS("randn: expected a float dtype, got \"int64\"", randn, L(2), LT_NIL, D(int64), META);
  SAYS_IN_PLACE("normal_: expected a number of at least 0 for argument 'std', got -1", normal,
                LT_ARG(M(float32, 2)), LT_ARG(0.0), LT_ARG(-1.0));
  SAYS_IN_PLACE("uniform_: expected finite numbers from <= to, got from 2 to 1", uniform,
                LT_ARG(M(float32, 2)), LT_ARG(2.0), LT_ARG(1.0));
  SAYS_IN_PLACE("exponential_: expected a number greater than 0 for argument 'lambd', got 0",
                exponential, LT_ARG(M(float32, 2)), LT_ARG(0.0));
  SAYS_IN_PLACE("bernoulli_: expected a probability from 0 to 1 for argument 'p', got 1.5",
                bernoulli, LT_ARG(M(float32, 2)), LT_ARG(1.5));
  SAYS("bernoulli: expected a float dtype for argument 'self', got \"int64\"\nhint: "
       "self:to(\"float32\")",
       bernoulli, LT_ARG(M(int64, 2)));
  SAYS("multinomial: cannot draw 4 of 3 without replacement\nhint: replacement = true", multinomial,
       LT_ARG(M(float32, 3)), LT_ARG(4));
  SAYS("multinomial: expected 1 to 2 dimensions for argument 'self', got 3: {3, 3, 3}", multinomial,
       LT_ARG(M(float32, 3, 3, 3)), LT_ARG(1));
  SAYS("dropout: expected a probability from 0 to 1 for argument 'p', got -0.5", dropout,
       LT_ARG(M(float32, 3)), LT_ARG(-0.5));
}

/* arange includes both ends: the numbers of a loop `for x = start, stop, step`, up to rounding. */
static void arange_counts(void) {
  SAYS("int64 {5}", arange, LT_ARG(5), LT_NIL, LT_NIL, LT_NIL, META);
  SAYS("int64 {0}", arange, LT_ARG(0), LT_NIL, LT_NIL, LT_NIL, META);
  SAYS("float32 {5}", arange, LT_ARG(5.0), LT_NIL, LT_NIL, LT_NIL, META);
  SAYS("float32 {5}", arange, LT_ARG(0), LT_ARG(1), LT_ARG(0.25), LT_NIL, META);
  SAYS("int64 {3}", arange, LT_ARG(1), LT_ARG(6), LT_ARG(2), LT_NIL, META);
  SAYS("int64 {3}", arange, LT_ARG(6), LT_ARG(1), LT_ARG(-2), LT_NIL, META);
  SAYS("int64 {0}", arange, LT_ARG(6), LT_ARG(1), LT_NIL, LT_NIL, META);
  SAYS("int64 {1}", arange, LT_ARG(3), LT_ARG(3), LT_NIL, LT_NIL, META);
  SAYS("float32 {4}", arange, LT_ARG(0), LT_ARG(0.3), LT_ARG(0.1), LT_NIL,
       META); /* 0.3 / 0.1 < 3 in doubles */
  SAYS("float32 {8}", arange, LT_ARG(0), LT_ARG(0.7), LT_ARG(0.1), LT_NIL, META);
  SAYS("float32 {11}", arange, LT_ARG(1), LT_ARG(2), LT_ARG(0.1), LT_NIL, META);
  SAYS("float32 {3}", arange, LT_ARG(0), LT_ARG(0.29), LT_ARG(0.1), LT_NIL, META);
  SAYS("float32 {4}", arange, LT_ARG(0.3), LT_ARG(0), LT_ARG(-0.1), LT_NIL, META);
  SAYS("float32 {1000001}", arange, LT_ARG(0), LT_ARG(1), LT_ARG(1e-6), LT_NIL, META);
  SAYS("int32 {3}", arange, LT_ARG(1.9), LT_ARG(3.9), LT_NIL, D(int32), META);
  SAYS("int64 {2}", arange, LT_ARG(INT64_MAX - 1), LT_ARG(INT64_MAX), LT_NIL, LT_NIL, META);
  SAYS("int64 {3}", arange, LT_ARG(INT64_MIN), LT_ARG(INT64_MAX), LT_ARG(INT64_MAX), LT_NIL, META);
  SAYS("arange: expected a nonzero number for argument 'step', got 0", arange, LT_ARG(1), LT_ARG(3),
       LT_ARG(0));
  SAYS("arange: expected a nonzero number for argument 'step', got 0", arange, LT_ARG(1), LT_ARG(3),
       LT_ARG(0.5), D(int64));
  SAYS("arange: expected finite numbers, got nan", arange, LT_ARG(1), LT_ARG((double)NAN));
  SAYS("arange: expected finite numbers, got inf", arange, LT_ARG(1), LT_ARG(2),
       LT_ARG((double)INFINITY));
  SAYS("uint8 {300}", arange, LT_ARG(300), LT_NIL, LT_NIL, D(uint8), META);
  MENTIONS("it has too many elements", arange, LT_ARG(0), LT_ARG(1), LT_ARG(1e-300));
  MENTIONS("it has too many elements", arange, LT_ARG(INT64_MIN), LT_ARG(INT64_MAX));
}

static void products(void) {
  SAYS("float32 {3, 6}", mm, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("float32 {3, 6}", mm, LT_ARG(M(float32, 3, 0)), LT_ARG(M(float32, 0, 6)));
  SAYS("float32 {2, 3, 6}", bmm, LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 2, 4, 6)));
  SAYS("float32 {3, 6}", addmm, LT_ARG(M(float32, 6)), LT_ARG(M(float32, 3, 4)),
       LT_ARG(M(float32, 4, 6)));
  SAYS("float32 {2, 3, 6}", baddbmm, LT_ARG(M(float32, 3, 1)), LT_ARG(M(float32, 2, 3, 4)),
       LT_ARG(M(float32, 2, 4, 6)));
  SAYS("int64 {3}", mv, LT_ARG(M(int64, 3, 4)), LT_ARG(M(int64, 4)));
  SAYS("float32 {}", dot, LT_ARG(M(float32, 4)), LT_ARG(M(float32, 4)));
  SAYS("float32 {3, 4}", outer, LT_ARG(M(float32, 3)), LT_ARG(M(float32, 4)));
  SAYS("float32 {}", matmul, LT_ARG(M(float32, 4)), LT_ARG(M(float32, 4)));
  SAYS("float32 {3}", matmul, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4)));
  SAYS("float32 {6}", matmul, LT_ARG(M(float32, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("float32 {3, 6}", matmul, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("float32 {5, 2, 3, 6}", matmul, LT_ARG(M(float32, 5, 2, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("float32 {5, 2, 3}", matmul, LT_ARG(M(float32, 5, 2, 3, 4)), LT_ARG(M(float32, 4)));
  SAYS("float32 {5, 2, 6}", matmul, LT_ARG(M(float32, 4)), LT_ARG(M(float32, 5, 2, 4, 6)));
  SAYS("float32 {5, 2, 3, 6}", matmul, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 5, 2, 4, 6)));
  SAYS("float32 {5, 2, 3, 6}", matmul, LT_ARG(M(float32, 5, 1, 3, 4)), LT_ARG(M(float32, 2, 4, 6)));
  SAYS("float32 {0, 3, 6}", matmul, LT_ARG(M(float32, 0, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("float32 {5, 3, 0}", matmul, LT_ARG(M(float32, 5, 3, 4)), LT_ARG(M(float32, 5, 4, 0)));
  SAYS("float32 {7, 2, 6}", linear, LT_ARG(M(float32, 7, 2, 4)), LT_ARG(M(float32, 6, 4)),
       LT_ARG(M(float32, 6)));
  SAYS("float32 {6}", linear, LT_ARG(M(float32, 4)), LT_ARG(M(float32, 6, 4)));
  SAYS("float32 {2, 8, 5, 16}", scaled_dot_product_attention, LT_ARG(M(float32, 2, 8, 5, 16)),
       LT_ARG(M(float32, 2, 8, 5, 16)), LT_ARG(M(float32, 2, 8, 5, 16)), LT_NIL, LT_ARG(0.0),
       LT_ARG(true));
}

static void products_refuse(void) {
  SAYS("matmul: cannot multiply {3, 4} by {5, 6}: the inner sizes 4 and 5 differ", matmul,
       LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 5, 6)));
  SAYS("mm: cannot multiply {3, 4} by {5, 6}: the inner sizes 4 and 5 differ", mm,
       LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 5, 6)));
  SAYS("mv: cannot multiply {3, 4} by {5}: the inner sizes 4 and 5 differ", mv,
       LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 5)));
  SAYS("matmul: cannot multiply {} by {4}: both need at least one dimension\nhint: a:mul(b)",
       matmul, LT_ARG(M0(float32)), LT_ARG(M(float32, 4)));
  SAYS("matmul: cannot multiply {2, 3, 4} by {5, 4, 6}: the batch sizes {2} and {5} cannot be "
       "broadcast together",
       matmul, LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 5, 4, 6)));
  SAYS("bmm: cannot multiply {2, 3, 4} by {5, 4, 6}: the batch sizes 2 and 5 differ", bmm,
       LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 5, 4, 6)));
  SAYS("matmul: cannot multiply matrices of dtype \"bool\"\nhint: x:to(\"float32\")", matmul,
       LT_ARG(M(bool, 3, 4)), LT_ARG(M(bool, 4, 5)));
  SAYS("baddbmm: expected 3 dimensions for argument 'batch2', got 2: {4, 6}", baddbmm,
       LT_ARG(M(float32, 3, 1)), LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("mm: expected 2 dimensions for argument 'self', got 1: {4}", mm, LT_ARG(M(float32, 4)),
       LT_ARG(M(float32, 4, 6)));
  SAYS("matmul: expected the same dtype for arguments 'self' and 'other', got \"float32\" and "
       "\"int64\"\nhint: other:to(\"float32\")",
       matmul, LT_ARG(M(float32, 3, 4)), LT_ARG(M(int64, 4, 6)));
  SAYS("linear: expected the same dtype for arguments 'input' and 'weight', got \"int64\" and "
       "\"float32\"\nhint: input:to(\"float32\")",
       linear, LT_ARG(M(int64, 7, 4)), LT_ARG(M(float32, 6, 4)));
  SAYS("matmul: expected the same dtype for arguments 'self' and 'other', got \"float64\" and "
       "\"float32\"\nhint: other:to(\"float64\")",
       matmul, LT_ARG(M(float64, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("addmm: cannot broadcast self {5} to the product {3, 6}", addmm, LT_ARG(M(float32, 5)),
       LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("linear: expected 4 features for argument 'input' (weight is {6, 4}), got 3: {7, 3}", linear,
       LT_ARG(M(float32, 7, 3)), LT_ARG(M(float32, 6, 4)));
  SAYS("linear: expected shape {6} for argument 'bias', one number for each row of weight {6, 4}, "
       "got {4}",
       linear, LT_ARG(M(float32, 7, 4)), LT_ARG(M(float32, 6, 4)), LT_ARG(M(float32, 4)));
  SAYS("dot: expected the same shape for arguments 'self' and 'other', got {3} and {4}", dot,
       LT_ARG(M(float32, 3)), LT_ARG(M(float32, 4)));
}

static void layers_and_losses(void) {
  SAYS("float32 {2, 5, 8}", layer_norm, LT_ARG(M(float32, 2, 5, 8)), L(8), LT_ARG(M(float32, 8)),
       LT_ARG(M(float32, 8)));
  SAYS("float32 {2, 5, 8}; float32 {2, 1, 1}; float32 {2, 1, 1}", _layer_norm,
       LT_ARG(M(float32, 2, 5, 8)), LT_ARG(2), LT_NIL, LT_NIL, LT_ARG(1e-5));
  SAYS("layer_norm: expected last dimensions {5} (normalized_shape) for argument 'self', got shape "
       "{2, 5, 8}",
       layer_norm, LT_ARG(M(float32, 2, 5, 8)), L(5));
  SAYS("layer_norm: expected shape {8}, the normalized dimensions, for argument 'weight', got {5}",
       layer_norm, LT_ARG(M(float32, 2, 5, 8)), L(8), LT_ARG(M(float32, 5)));
  SAYS("float32 {3}", gelu, LT_ARG(M(float32, 3)), S("tanh"));
  SAYS("gelu: expected 'none' or 'tanh' for argument 'approximate', got the string \"fast\"", gelu,
       LT_ARG(M(float32, 3)), S("fast"));
  SAYS("float32 {}", nll_loss, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)));
  SAYS("float32 {}", nll_loss, LT_ARG(M(float32, 10)), LT_ARG(M0(int64)));
  SAYS("float32 {5}", nll_loss, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_NIL, LT_NIL,
       LT_ARG(-100), LT_NIL, S("none"));
  SAYS("float32 {5, 7, 8}", nll_loss, LT_ARG(M(float32, 5, 10, 7, 8)), LT_ARG(M(int64, 5, 7, 8)),
       LT_NIL, LT_NIL, LT_ARG(-100), LT_NIL, S("none"));
  SAYS("float32 {}", cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)));
  SAYS("float32 {}", cross_entropy, LT_ARG(M(float32, 10)), LT_ARG(M0(int64)));
  SAYS("float32 {}", cross_entropy, LT_ARG(M(float32, 10)), LT_ARG(M0(int64)), LT_NIL, LT_NIL,
       LT_ARG(-100), LT_NIL, S("none"));
  SAYS("float32 {}", cross_entropy, LT_ARG(M(float32, 5, 10, 7)), LT_ARG(M(int64, 5, 7)));
  SAYS("float32 {5, 7}", cross_entropy, LT_ARG(M(float32, 5, 10, 7)), LT_ARG(M(int64, 5, 7)),
       LT_ARG(M(float32, 10)), LT_NIL, LT_ARG(-100), LT_NIL, S("none"), LT_ARG(0.1));
  SAYS("float32 {5, 7}", cross_entropy, LT_ARG(M(float32, 5, 10, 7)), LT_ARG(M(float32, 5, 10, 7)),
       LT_NIL, LT_NIL, LT_ARG(-100), LT_NIL, S("none"));
  SAYS("float32 {}", cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(float32, 5, 10)),
       LT_ARG(M(float32, 10)), LT_NIL, LT_ARG(-100), LT_NIL, S("mean"), LT_ARG(0.1));
  SAYS("cross_entropy: expected shape {5} for argument 'target', a class for each row of self {5, "
       "10}, got {4}",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 4)));
  SAYS("cross_entropy: expected self's shape {5, 10} for argument 'target' of a float dtype "
       "(probabilities), got {5}\nhint: target:to(\"int64\") if it holds classes",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(float32, 5)));
  SAYS("cross_entropy: expected shape {10} for argument 'weight', one number for each class, got "
       "{5}",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_ARG(M(float32, 5)));
  SAYS("cross_entropy: expected 'mean', 'sum' or 'none' for argument 'reduction', got the string "
       "\"avg\"",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_NIL, LT_NIL, LT_ARG(-100),
       LT_NIL, S("avg"));
  SAYS("cross_entropy: expected a number from 0 to 1 for argument 'label_smoothing', got 2",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_NIL, LT_NIL, LT_ARG(-100),
       LT_NIL, S("mean"), LT_ARG(2.0));
  SAYS("float32 {}", mse_loss, LT_ARG(M(float32, 5, 3)), LT_ARG(M(float32, 5, 3)));
  SAYS("float32 {5, 3}", l1_loss, LT_ARG(M(float32, 5, 3)), LT_ARG(M(float32, 5, 3)), LT_NIL,
       LT_NIL, S("none"));
  SAYS("float32 {}", binary_cross_entropy_with_logits, LT_ARG(M(float32, 5, 3)),
       LT_ARG(M(float32, 5, 3)), LT_NIL, LT_NIL, LT_NIL, S("sum"), LT_ARG(M(float32, 3)));
  SAYS("binary_cross_entropy_with_logits: expected the same shape for arguments 'self' and "
       "'target', got {5, 3} and {5}",
       binary_cross_entropy_with_logits, LT_ARG(M(float32, 5, 3)), LT_ARG(M(float32, 5)));
  SAYS("mse_loss: expected 'mean', 'sum' or 'none' for argument 'reduction', got the string \"\"",
       mse_loss, LT_ARG(M(float32, 5)), LT_ARG(M(float32, 5)), LT_NIL, LT_NIL, S(""));
}

static void joining_and_moving(void) {
  SAYS("float32 {3, 9}", cat, TL(M(float32, 3, 4), M(float32, 3, 5)), LT_ARG(1));
  SAYS("float32 {7, 4}", cat, TL(M(float32, 3, 4), M(int64, 4, 4)));
  SAYS("int16 {2}", cat, TL(M(int8, 1), M(uint8, 1)));
  SAYS("float32 {3, 4}", cat, TL(M(float32, 0), M(float32, 3, 4), M(float32, 0)), LT_ARG(-1));
  SAYS("float32 {0}", cat, TL(M(float32, 0), M(int64, 0)));
  SAYS("cat: expected at least one tensor for argument 'tensors', got an empty list", cat,
       LT_TENSORS(NULL, 0));
  SAYS("cat: expected at least 1 dimension for argument 'tensors[1]', got 0\nhint: "
       "lt.stack(tensors)",
       cat, TL(M0(float32)));
  SAYS("cat: expected the sizes of {3, 4} except in dim 1 for argument 'tensors[2]', got {3, 5}: "
       "dim 2 differs",
       cat, TL(M(float32, 3, 4), M(float32, 3, 5)));
  SAYS("cat: expected 2 dimensions for argument 'tensors[2]', as in {3, 4}, got {3}", cat,
       TL(M(float32, 3, 4), M(float32, 3)));
  SAYS("float32 {3, 2, 4}", stack, TL(M(float32, 3, 4), M(float32, 3, 4)), LT_ARG(1));
  SAYS("float32 {3, 4, 2}", stack, TL(M(float32, 3, 4), M(float32, 3, 4)), LT_ARG(-1));
  SAYS("float32 {2}", stack, TL(M0(float32), M0(float32)));
  SAYS("stack: expected shape {3}, that of the first tensor, for argument 'tensors[2]', got {4}",
       stack, TL(M(float32, 3), M(float32, 4)));
  SAYS("float64 {3}", to, LT_ARG(M(float32, 3)), LT_NIL, D(float64));
  SAYS("to: cannot copy a tensor on \"meta\": it has no data", to, LT_ARG(M(float32, 3)),
       LT_ARG(lt_cpu()));
  SAYS("float32 {3, 4}", triu, LT_ARG(M(float32, 3, 4)), LT_ARG(1));
  SAYS("tril: expected at least 2 dimensions for argument 'self', got 1: {3}", tril,
       LT_ARG(M(float32, 3)));
  SAYS("float32 {3, 4}", flip, LT_ARG(M(float32, 3, 4)), L(0, 1));
  SAYS("float32 {3, 4}", roll, LT_ARG(M(float32, 3, 4)), L(1));
  SAYS("roll: expected as many shifts as dims (2), got 1", roll, LT_ARG(M(float32, 3, 4)), L(1),
       L(0, 1));
  SAYS("float32 {4, 3, 8}", tile, LT_ARG(M(float32, 3, 4)), L(4, 1, 2));
  SAYS("float32 {3, 8}", tile, LT_ARG(M(float32, 3, 4)), L(2));
  SAYS("float32 {0, 4}", tile, LT_ARG(M(float32, 3, 4)), L(0, 1));
  SAYS("float32 {24}", repeat_interleave, LT_ARG(M(float32, 3, 4)), LT_ARG(2));
  SAYS("float32 {3, 8}", repeat_interleave, LT_ARG(M(float32, 3, 4)), LT_ARG(2), LT_ARG(-1));
  SAYS("float32 {2}", repeat_interleave, LT_ARG(M0(float32)), LT_ARG(2));
  SAYS("float32 {4, 4}", diag, LT_ARG(M(float32, 3)), LT_ARG(-1));
  SAYS("float32 {2}", diag, LT_ARG(M(float32, 3, 4)), LT_ARG(2));
  SAYS("int64 {}", trace, LT_ARG(M(int32, 3, 4)));
  SAYS("float32 {3}", where, LT_ARG(M(bool, 3)), LT_ARG(1.5), LT_ARG(2));
  SAYS("float64 {3, 4}", where, LT_ARG(M(bool, 4)), LT_ARG(M(float64, 3, 1)),
       LT_ARG(M(float32, 4)));
  SAYS("where: expected self and other, or the condition alone, got one of the two", where,
       LT_ARG(M(bool, 3)), LT_ARG(1.5));
  SAYS("where: cannot infer the shape of the result: it depends on the data, and a meta tensor has "
       "none",
       where, LT_ARG(M(bool, 3)));
  SAYS("float32 {3}", div, LT_ARG(M(int64, 3)), LT_ARG(M(int64, 3)));
  SAYS("int64 {3}", div, LT_ARG(M(int64, 3)), LT_ARG(2), S("floor"));
  SAYS("float32 {3}", div, LT_ARG(M(float32, 3)), LT_ARG(2), S("trunc"));
  SAYS("div: expected 'floor' or 'trunc' for argument 'rounding_mode', got the string \"up\"", div,
       LT_ARG(M(int64, 3)), LT_ARG(2), S("up"));
  SAYS_IN_PLACE("float32 {3}", div, LT_ARG(M(float32, 3)), LT_ARG(2));
  MENTIONS_IN_PLACE("div_: cannot store the result in self: the result is \"float", div,
                    LT_ARG(M(int64, 3)), LT_ARG(2));
  SAYS("int64 {3}", clamp, LT_ARG(M(int64, 3)), LT_ARG(1));
  SAYS("float32 {3}", clamp, LT_ARG(M(int64, 3)), LT_ARG(1.5), LT_ARG(3));
  SAYS_IN_PLACE("float32 {3}", clamp, LT_ARG(M(float32, 3)), LT_NIL, LT_ARG(3));
  SAYS("clamp: expected min, max or both, got neither", clamp, LT_ARG(M(float32, 3)));
}

static void indexing(void) {
  SAYS("float32 {3, 7}", index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 7)));
  SAYS("float32 {3, 1}", index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M0(int32)));
  SAYS("index_select: expected dtype \"bool\" (a mask) or \"int64\" (indices) for argument "
       "'index', got \"uint8\"",
       index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(uint8, 7)));
  SAYS("index_select: expected an integer dtype for argument 'index', an index tensor, got "
       "\"float32\"\nhint: index:to(\"int64\")",
       index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(float32, 7)));
  SAYS("index_select: expected at most 1 dimension for argument 'index', got 2: {2, 2}",
       index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 2)));
  SAYS("float32 {2, 9}", gather, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 9)));
  SAYS("gather: expected an index no larger than self {3, 4} for argument 'index', got {4, 4}: dim "
       "1 is larger",
       gather, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 4, 4)));
  SAYS("gather: expected the same number of dimensions for index and self, got {4} and {3, 4}",
       gather, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 4)));
  SAYS("float32 {0}", gather, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 0)));
  SAYS("float32 {3, 4}", _scatter, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 9)),
       LT_ARG(1));
  SAYS("float32 {3, 4}", scatter_add, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 2)),
       LT_ARG(M(float32, 3, 3)));
  SAYS("scatter: expected an index no larger than src {2, 3} for argument 'index', got {2, 4}: dim "
       "2 is larger",
       _scatter, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 4)),
       LT_ARG(M(float32, 2, 3)));
  SAYS("scatter: expected the same dtype for arguments 'self' and 'src', got \"float32\" and "
       "\"int64\"\nhint: src:to(\"float32\")",
       _scatter, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 3)),
       LT_ARG(M(int64, 2, 3)));
  SAYS("float32 {3, 4}", index_add, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(M(int64, 2)),
       LT_ARG(M(float32, 2, 4)));
  SAYS("index_copy: expected shape {2, 4} for argument 'source' (2 indices in dim 1 of {3, 4}), "
       "got {3, 4}",
       index_copy, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(M(int64, 2)),
       LT_ARG(M(float32, 3, 4)));
  SAYS("float32 {3, 4}", index_fill, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(M(int64, 2)),
       LT_ARG(0));
  SAYS("float32 {5, 6}", embedding, LT_ARG(M(float32, 10, 6)), LT_ARG(M(int64, 5)), LT_ARG(-1));
  SAYS("float32 {5, 2, 6}", embedding, LT_ARG(M(float32, 10, 6)), LT_ARG(M(int32, 5, 2)));
  SAYS("embedding: expected an index from 1 to 10, a row of weight, for argument 'padding_idx', "
       "got 11",
       embedding, LT_ARG(M(float32, 10, 6)), LT_ARG(M(int64, 5)), LT_ARG(11));
  SAYS("int64 {5, 2, 4}", one_hot, LT_ARG(M(int64, 5, 2)), LT_ARG(4));
  SAYS("one_hot: cannot compute num_classes: a meta tensor has no data\nhint: pass num_classes",
       one_hot, LT_ARG(M(int64, 5)));
  SAYS("masked_select: expected dtype \"bool\" for argument 'mask', got \"uint8\"\nhint: "
       "mask:to(\"bool\")",
       masked_select, LT_ARG(M(float32, 3)), LT_ARG(M(uint8, 3)));
  SAYS("masked_select: cannot infer the shape of the result: it depends on the data, and a meta "
       "tensor has none",
       masked_select, LT_ARG(M(float32, 3)), LT_ARG(M(bool, 3)));
  SAYS("masked_scatter: cannot broadcast mask {4} and self {3} to one shape", masked_scatter,
       LT_ARG(M(float32, 3)), LT_ARG(M(bool, 4)), LT_ARG(M(float32, 4)));
}

/* NumPy's rule: adjacent indices are replaced by their shape in place, others move it to the
 * front. */
static void indexing_by_several_tensors(void) {
  SAYS("float32 {7, 4, 5}", _index, LT_ARG(M(float32, 3, 4, 5)), TL(M(int64, 7)), L(0));
  SAYS("float32 {3, 7, 8, 5}", _index, LT_ARG(M(float32, 3, 4, 5)), TL(M(int64, 7, 8)), L(1));
  SAYS("float32 {2, 7, 5}", _index, LT_ARG(M(float32, 3, 4, 5)), TL(M(int64, 2, 1), M(int64, 7)),
       L(0, 1));
  SAYS("float32 {3, 7}", _index, LT_ARG(M(float32, 3, 4, 5)), TL(M(int64, 7), M0(int64)), L(1, 2));
  SAYS("float32 {7, 4}", _index, LT_ARG(M(float32, 3, 4, 5)), TL(M(int64, 7), M(int64, 7)),
       L(0, 2));
  SAYS("float32 {0, 4}", _index, LT_ARG(M(float32, 0, 4)), TL(M(int64, 0)), L(0));
  SAYS("index: cannot index dim 1 of {0, 4}: it is empty", _index, LT_ARG(M(float32, 0, 4)),
       TL(M(int64, 2)), L(0));
  SAYS("index: cannot broadcast index 2 of shape {3} with the ones before it, {2}", _index,
       LT_ARG(M(float32, 3, 4)), TL(M(int64, 2), M(int64, 3)), L(0, 1));
  SAYS("index: expected dtype \"bool\" or \"int64\" for index 1, got \"uint8\"", _index,
       LT_ARG(M(float32, 3, 4)), TL(M(uint8, 2)), L(0));
  SAYS("index: expected the dims of self, 0 to 1, for argument 'dims', got 9223372036854775807",
       _index, LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(INT64_MAX));
  SAYS("index: expected the dims of self, 0 to 1, for argument 'dims', got -9223372036854775808",
       _index, LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(INT64_MIN));
  SAYS("float32 {3, 4}", _index_put, LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(0),
       LT_ARG(M(float32, 4)));
  SAYS("index_put: cannot broadcast values {3} to the indices {7, 4}", _index_put,
       LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(0), LT_ARG(M(float32, 3)));
}

static void views(void) {
  SAYS("float32 {2, 6}", view, LT_ARG(M(float32, 3, 4)), L(2, -1));
  SAYS("float32 {}", view, LT_ARG(M(float32, 1, 1)), LT_INTS(NULL, 0));
  SAYS("view: cannot view {3, 4} of 12 elements as {5, -1}: cannot infer the size -1, "
       "because 12 is not a multiple of 5",
       view, LT_ARG(M(float32, 3, 4)), L(5, -1));
  SAYS("view: cannot view {3, 4} of 12 elements as {0, -1}: the number of elements differs", view,
       LT_ARG(M(float32, 3, 4)), L(0, -1));
  SAYS("view: expected at most one size of -1, got {-1, -1}", view, LT_ARG(M(float32, 3, 4)),
       L(-1, -1));
  SAYS("view: cannot infer the size -1 in {0, -1}: any size fits", view, LT_ARG(M(float32, 0, 4)),
       L(0, -1));
  SAYS("view: expected sizes of at least 0, got -2 at dim 1 of the shape {-2, 6}", view,
       LT_ARG(M(float32, 3, 4)), L(-2, 6));
  lt_Tensor *turned = lt_do(transpose, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(1));
  SAYS("view: cannot view {4, 3} as {12}: its strides require a copy\nhint: x:reshape(...)", view,
       LT_ARG(turned), L(12));
  SAYS("float32 {12}", reshape, LT_ARG(turned), L(12));
  SAYS("float32 {4, 3, 2}", expand, LT_ARG(M(float32, 3, 1)), L(4, -1, 2));
  SAYS("expand: cannot expand {3, 4} to {3, 5}: dim 2 has size 4, only size 1 can be repeated",
       expand, LT_ARG(M(float32, 3, 4)), L(3, 5));
  SAYS("expand: cannot expand {3, 4} to {4}: it has more than 1 dimension", expand,
       LT_ARG(M(float32, 3, 4)), L(4));
  SAYS("expand: cannot keep the size of dim 1 of {-1, 3} (-1): the dimension is new", expand,
       LT_ARG(M(float32, 3)), L(-1, 3));
  SAYS("expand: cannot create a tensor of shape {4611686018427387904, 4}: its number of elements "
       "overflows",
       expand, LT_ARG(M(float32, 1)), L(INT64_C(1) << 62, 4));
  SAYS("float32 {5, 3, 4}", permute, LT_ARG(M(float32, 3, 4, 5)), L(-1, 0, 1));
  SAYS("permute: expected each dim once, got dim 1 twice", permute, LT_ARG(M(float32, 3, 4)),
       L(0, 0));
  SAYS("permute: expected each of the 2 dimensions of {3, 4} once, got 1 dim", permute,
       LT_ARG(M(float32, 3, 4)), L(0));
  SAYS("swapaxes: cannot use dim 3: it is out of range, the tensor has 2 dimensions", swapaxes,
       LT_ARG(M(float32, 3, 4)), LT_ARG(2), LT_ARG(0));
  SAYS("float32 {3}", squeeze, LT_ARG(M(float32, 1, 3, 1)));
  SAYS("float32 {1, 3}", squeeze, LT_ARG(M(float32, 1, 3, 1)), L(1, 2));
  SAYS("float32 {3, 1}", unsqueeze, LT_ARG(M(float32, 3)), LT_ARG(-1));
  SAYS("unsqueeze: cannot use dim 3: it is out of range, the tensor has 2 dimensions", unsqueeze,
       LT_ARG(M(float32, 3)), LT_ARG(2));
  SAYS("float32 {3, 5}", select, LT_ARG(M(float32, 3, 4, 5)), LT_ARG(1), LT_ARG(-4));
  SAYS("select: cannot index dim 2 of {3, 4} with 5: the index is out of range, the size is 4",
       select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(4));
  SAYS("select: expected at least 1 dimension for argument 'self', got 0", select,
       LT_ARG(M0(float32)), LT_ARG(0), LT_ARG(0));
  SAYS("float32 {5, 3}", diagonal, LT_ARG(M(float32, 3, 5, 4)), LT_ARG(1), LT_ARG(0), LT_ARG(2));
  SAYS("float32 {0}", diagonal, LT_ARG(M(float32, 3, 4)), LT_ARG(9));
  SAYS("diagonal: expected two different dims for dim1 and dim2, got dim 1 twice", diagonal,
       LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(0), LT_ARG(-2));
  SAYS("float32 {3, 2, 3}", unfold, LT_ARG(M(float32, 3, 6)), LT_ARG(1), LT_ARG(3), LT_ARG(2));
  SAYS("unfold: expected at most the size of dim 2 of {3, 6} for argument 'size', got 7", unfold,
       LT_ARG(M(float32, 3, 6)), LT_ARG(1), LT_ARG(7), LT_ARG(2));
  SAYS("float32 {2, 2}", as_strided, LT_ARG(M(float32, 3, 4)), L(2, 2), L(1, 2), LT_ARG(8));
  SAYS("as_strided: cannot view the storage: sizes {2, 2} with strides {1, 2} from offset 9 reach "
       "element 13, the storage has 12",
       as_strided, LT_ARG(M(float32, 3, 4)), L(2, 2), L(1, 2), LT_ARG(9));
  SAYS("as_strided: expected an integer of at least 0 for argument 'stride[1]', got -1", as_strided,
       LT_ARG(M(float32, 3)), L(2), L(-1));
  SAYS("float32 {3, 20}", flatten, LT_ARG(M(float32, 3, 4, 5)), LT_ARG(1));
  SAYS("float32 {1}", flatten, LT_ARG(M0(float32)));
  SAYS("float32 {3, 2, 2, 5}", unflatten, LT_ARG(M(float32, 3, 4, 5)), LT_ARG(1), L(2, -1));
  SAYS("unflatten: cannot view {4} of 4 elements as {3, -1}: cannot infer the size -1, "
       "because 4 is not a multiple of 3",
       unflatten, LT_ARG(M(float32, 3, 4)), LT_ARG(1), L(3, -1));
  SAYS("float32 {4, 5, 3}", movedim, LT_ARG(M(float32, 3, 4, 5)), L(0), L(-1));
  SAYS("float32 {5, 4, 3}", movedim, LT_ARG(M(float32, 3, 4, 5)), L(0, 2), L(2, 0));
  SAYS("float32 {3, 2}", narrow, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(-2), LT_ARG(2));
  SAYS("narrow: cannot narrow dim 2 of {3, 4} to 3 elements from index 3: out of range", narrow,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(2), LT_ARG(3));
  SAYS("list of 3: float32 {2, 3}; float32 {2, 3}; float32 {1, 3}", split, LT_ARG(M(float32, 5, 3)),
       L(2));
  SAYS("list of 2: float32 {5, 1}; float32 {5, 2}", split, LT_ARG(M(float32, 5, 3)), L(1, 2),
       LT_ARG(1));
  SAYS("split: expected sizes that add up to 3, the size of dim 2 of {5, 3}, for argument "
       "'split_size'",
       split, LT_ARG(M(float32, 5, 3)), L(1, 3), LT_ARG(1));
  SAYS("split: expected an integer of at least 1 for argument 'split_size', got 0", split,
       LT_ARG(M(float32, 5, 3)), L(0));
  SAYS("list of 3: float32 {2}; float32 {2}; float32 {2}", chunk, LT_ARG(M(float32, 6)), LT_ARG(4));
  SAYS("list of 2: float32 {0}; float32 {0}", chunk, LT_ARG(M(float32, 0)), LT_ARG(2));
  SAYS("list of 3: float32 {5}; float32 {5}; float32 {5}", unbind, LT_ARG(M(float32, 5, 3)),
       LT_ARG(1));
  SAYS("unbind: expected a tensor of at least 1 dim for argument 'self', got 0 dims", unbind,
       LT_ARG(M0(float32)));
}

int main(void) {
  RUN_SCOPED(reductions);
  RUN_SCOPED(reductions_refuse);
  RUN_SCOPED(extremes_have_three_spellings);
  RUN_SCOPED(statistics);
  RUN_SCOPED(factories);
  RUN_SCOPED(factories_refuse);
  RUN_SCOPED(arange_counts);
  RUN_SCOPED(products);
  RUN_SCOPED(products_refuse);
  RUN_SCOPED(layers_and_losses);
  RUN_SCOPED(joining_and_moving);
  RUN_SCOPED(indexing);
  RUN_SCOPED(indexing_by_several_tensors);
  RUN_SCOPED(views);
  return check_end();
}
