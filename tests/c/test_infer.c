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
  SAYS("mean: wants a float dtype, got int64: pass dtype = \"float32\" or x:to \"float32\"", mean,
       LT_ARG(M(int64, 3)));
  SAYS("mean: wants a float dtype, got int32: pass dtype = \"float32\" or x:to \"float32\"", mean,
       LT_ARG(M(float32, 3)), LT_NIL, LT_ARG(false), D(int32));
  SAYS("var: wants a float dtype, got bool: x:to \"float32\"", var, LT_ARG(M(bool, 3)));
  SAYS("sum: dim 3 is out of range: the tensor has 2 dimensions", sum, LT_ARG(M(float32, 3, 4)),
       L(2));
  SAYS("sum: dim -3 is out of range: the tensor has 2 dimensions", sum, LT_ARG(M(float32, 3, 4)),
       L(-3));
  SAYS("sum: dim 1 is named twice", sum, LT_ARG(M(float32, 3, 4)), L(0, -2));
  const char *nothing = "self is {3, 0}: over dim 2, of size 0, there is nothing to choose from";
  MENTIONS(nothing, amax, LT_ARG(M(float32, 3, 0)), L(1));
  MENTIONS(nothing, amin, LT_ARG(M(float32, 3, 0)));
  MENTIONS(nothing, argmax, LT_ARG(M(float32, 3, 0)));
  MENTIONS(nothing, max, LT_ARG(M(float32, 3, 0)), LT_ARG(2));
  MENTIONS(nothing, norm, LT_ARG(M(float32, 3, 0)), LT_ARG((double)INFINITY));
  SAYS("float32 {3}", norm, LT_ARG(M(float32, 3, 0)), LT_ARG(2), L(1));
}

static void extremes_have_three_spellings(void) {
  SAYS("float32 {}", max, LT_ARG(M(float32, 3, 4)));
  SAYS("float32 {4}; int64 {4}", max, LT_ARG(M(float32, 3, 4)), LT_ARG(1));
  SAYS("int8 {3, 1}; int64 {3, 1}", min, LT_ARG(M(int8, 3, 4)), LT_ARG(-1), LT_ARG(true));
  SAYS("float32 {3, 4}", max, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4)));
  SAYS("float32 {}; int64 {}", max, LT_ARG(M0(float32)), LT_ARG(1));
  SAYS("max: dim is 0: dims count from 1", max, LT_ARG(M(float32, 3, 4)), LT_ARG(0));
  SAYS("max: expected Tensor|int for argument 'dim', got a float", max, LT_ARG(M(float32, 3, 4)),
       LT_ARG(1.5));
  SAYS("max: dim 3 is out of range: the tensor has 2 dimensions", max, LT_ARG(M(float32, 3, 4)),
       LT_ARG(3));
}

static void statistics(void) {
  SAYS("float32 {3}", var, LT_ARG(M(float32, 3, 4)), L(1));
  SAYS("float32 {3, 1}", std, LT_ARG(M(float32, 3, 4)), L(1), LT_ARG(false), LT_ARG(true));
  SAYS("float64 {}", norm, LT_ARG(M(float32, 3, 4)), LT_ARG(2), LT_NIL, LT_ARG(false), D(float64));
  SAYS("norm: wants a float dtype, got int64: x:to \"float32\"", norm, LT_ARG(M(int64, 3, 4)));
  SAYS("int64 {3, 4}", cumsum, LT_ARG(M(bool, 3, 4)), LT_ARG(0));
  SAYS("float32 {}", cumprod, LT_ARG(M0(float32)), LT_ARG(0));
  SAYS("bool {3, 4}; int64 {3, 4}", cummax, LT_ARG(M(bool, 3, 4)), LT_ARG(-1));
  SAYS("float32 {}; int64 {}", cummax, LT_ARG(M0(float32)), LT_ARG(0));
  SAYS("float32 {3, 4}; int64 {3, 4}", sort, LT_ARG(M(float32, 3, 4)));
  SAYS("int64 {3, 4}", argsort, LT_ARG(M(float32, 3, 4)), LT_ARG(0));
  SAYS("float32 {3, 2}; int64 {3, 2}", topk, LT_ARG(M(float32, 3, 4)), LT_ARG(2));
  SAYS("float32 {0, 4}; int64 {0, 4}", topk, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(0));
  SAYS("topk: k is 5, but dim 2 of {3, 4} has only 4 elements", topk, LT_ARG(M(float32, 3, 4)),
       LT_ARG(5));
  SAYS("topk: k is -1, wants 0 or more", topk, LT_ARG(M(float32, 3, 4)), LT_ARG(-1));
  SAYS("float32 {3, 4}", softmax, LT_ARG(M(float32, 3, 4)), LT_ARG(1));
  SAYS("float32 {3, 4}", log_softmax, LT_ARG(M(int64, 3, 4)), LT_ARG(1), D(float32));
  SAYS("softmax: wants a float dtype, got int64: pass dtype = \"float32\" or x:to \"float32\"",
       softmax, LT_ARG(M(int64, 3, 4)), LT_ARG(1));
  SAYS("bool {3, 4}", isclose, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4)));
  SAYS("isclose: rtol is -1, wants 0 or more", isclose, LT_ARG(M(float32, 3)),
       LT_ARG(M(float32, 3)), LT_ARG(-1.0));
  SAYS("equal: a meta tensor has no data to compare", equal, LT_ARG(M(float32, 3)),
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
  SAYS("zeros: size 2 is negative in the shape {2, -3}", zeros, L(2, -3), LT_NIL, META);
  SAYS("zeros: the shape {4294967296, 4294967296} has more elements than can be counted", zeros,
       L(INT64_C(1) << 32, INT64_C(1) << 32), LT_NIL, META);
  SAYS("ones: got 17 sizes, a tensor has at most 16 dimensions", ones,
       L(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), LT_NIL, META);
  SAYS("ones: only float tensors can require grad, this one is int64", ones, L(2), D(int64), META,
       LT_ARG(true));
  SAYS("eye: n is -1, wants 0 or more", eye, LT_ARG(-1), LT_NIL, LT_NIL, META);
  SAYS("linspace: steps is -1, wants 0 or more", linspace, LT_ARG(0), LT_ARG(1), LT_ARG(-1), LT_NIL,
       META);
  SAYS("randperm: 300 does not fit uint8 (0 to 255)", randperm, LT_ARG(300), LT_NIL, D(uint8),
       META);
  SAYS("randint: wants a size after the ends, as in randint(6, {100})", randint, LT_ARG(6));
  SAYS("randint: no whole number lies from 7 to 3", randint, LT_ARG(7), LT_ARG(3), L(2), LT_NIL,
       LT_NIL, META);
  SAYS("randint: no whole number lies from 1 to 0", randint, LT_ARG(0), LT_NIL, L(2), LT_NIL,
       LT_NIL, META);
  SAYS("randint: 256 does not fit uint8 (0 to 255)", randint, LT_ARG(0), LT_ARG(256), L(2), LT_NIL,
       D(uint8), META);
  SAYS("randn: wants a float dtype, got int64", randn, L(2), LT_NIL, D(int64), META);
  SAYS_IN_PLACE("normal_: std is -1, wants 0 or more", normal, LT_ARG(M(float32, 2)), LT_ARG(0.0),
                LT_ARG(-1.0));
  SAYS_IN_PLACE("uniform_: wants finite from <= to, got from 2 to 1", uniform,
                LT_ARG(M(float32, 2)), LT_ARG(2.0), LT_ARG(1.0));
  SAYS_IN_PLACE("exponential_: lambd is 0, wants more than 0", exponential, LT_ARG(M(float32, 2)),
                LT_ARG(0.0));
  SAYS_IN_PLACE("bernoulli_: p is 1.5, wants a probability from 0 to 1", bernoulli,
                LT_ARG(M(float32, 2)), LT_ARG(1.5));
  SAYS("bernoulli: self wants a float dtype, got int64: convert it with :to \"float32\"", bernoulli,
       LT_ARG(M(int64, 2)));
  SAYS("multinomial: cannot draw 4 of 3 without replacement: pass replacement = true", multinomial,
       LT_ARG(M(float32, 3)), LT_ARG(4));
  SAYS("multinomial: self wants 1 to 2 dimensions, got 3: {3, 3, 3}", multinomial,
       LT_ARG(M(float32, 3, 3, 3)), LT_ARG(1));
  SAYS("dropout: p is -0.5, wants a probability from 0 to 1", dropout, LT_ARG(M(float32, 3)),
       LT_ARG(-0.5));
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
  SAYS("arange: step is 0, wants a number that leads from start to stop", arange, LT_ARG(1),
       LT_ARG(3), LT_ARG(0));
  SAYS("arange: step is 0, wants a number that leads from start to stop", arange, LT_ARG(1),
       LT_ARG(3), LT_ARG(0.5), D(int64));
  SAYS("arange: wants finite numbers, got nan", arange, LT_ARG(1), LT_ARG((double)NAN));
  SAYS("arange: wants finite numbers, got inf", arange, LT_ARG(1), LT_ARG(2),
       LT_ARG((double)INFINITY));
  SAYS("arange: 300 does not fit uint8 (0 to 255)", arange, LT_ARG(300), LT_NIL, LT_NIL, D(uint8),
       META);
  MENTIONS("more numbers than", arange, LT_ARG(0), LT_ARG(1), LT_ARG(1e-300));
  MENTIONS("more numbers than", arange, LT_ARG(INT64_MIN), LT_ARG(INT64_MAX));
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
  SAYS("matmul: cannot multiply {} by {4}: wants at least one dimension on both sides, use mul",
       matmul, LT_ARG(M0(float32)), LT_ARG(M(float32, 4)));
  SAYS("matmul: cannot multiply {2, 3, 4} by {5, 4, 6}: the batch sizes {2} and {5} do not "
       "broadcast",
       matmul, LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 5, 4, 6)));
  SAYS("bmm: cannot multiply {2, 3, 4} by {5, 4, 6}: the numbers of matrices, 2 and 5, differ", bmm,
       LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 5, 4, 6)));
  SAYS("matmul: bool tensors cannot be multiplied as matrices: convert them with :to \"float32\"",
       matmul, LT_ARG(M(bool, 3, 4)), LT_ARG(M(bool, 4, 5)));
  SAYS("baddbmm: batch2 wants 3 dimensions, got 2: {4, 6}", baddbmm, LT_ARG(M(float32, 3, 1)),
       LT_ARG(M(float32, 2, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("mm: self wants 2 dimensions, got 1: {4}", mm, LT_ARG(M(float32, 4)),
       LT_ARG(M(float32, 4, 6)));
  SAYS("matmul: self is float32 and other is int64, wants one dtype: convert one, other:to "
       "\"float32\"",
       matmul, LT_ARG(M(float32, 3, 4)), LT_ARG(M(int64, 4, 6)));
  SAYS("linear: input is int64 and weight is float32, wants one dtype: convert one, input:to "
       "\"float32\"",
       linear, LT_ARG(M(int64, 7, 4)), LT_ARG(M(float32, 6, 4)));
  SAYS("matmul: self is float64 and other is float32, wants one dtype: convert one, other:to "
       "\"float64\"",
       matmul, LT_ARG(M(float64, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("addmm: self {5} cannot be broadcast to the product {3, 6}", addmm, LT_ARG(M(float32, 5)),
       LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4, 6)));
  SAYS("linear: input {7, 3} has 3 features, weight {6, 4} wants 4", linear,
       LT_ARG(M(float32, 7, 3)), LT_ARG(M(float32, 6, 4)));
  SAYS("linear: bias wants {6}, one number for each row of weight {6, 4}, got {4}", linear,
       LT_ARG(M(float32, 7, 4)), LT_ARG(M(float32, 6, 4)), LT_ARG(M(float32, 4)));
  SAYS("dot: self is {3} and other is {4}, wants one shape", dot, LT_ARG(M(float32, 3)),
       LT_ARG(M(float32, 4)));
}

static void layers_and_losses(void) {
  SAYS("float32 {2, 5, 8}", layer_norm, LT_ARG(M(float32, 2, 5, 8)), L(8), LT_ARG(M(float32, 8)),
       LT_ARG(M(float32, 8)));
  SAYS("float32 {2, 5, 8}; float32 {2, 1, 1}; float32 {2, 1, 1}", _layer_norm,
       LT_ARG(M(float32, 2, 5, 8)), LT_ARG(2), LT_NIL, LT_NIL, LT_ARG(1e-5));
  SAYS("layer_norm: self is {2, 5, 8}, whose last dimensions are not normalized_shape {5}",
       layer_norm, LT_ARG(M(float32, 2, 5, 8)), L(5));
  SAYS("layer_norm: weight is {5}, wants {8}: the dimensions that are normalised", layer_norm,
       LT_ARG(M(float32, 2, 5, 8)), L(8), LT_ARG(M(float32, 5)));
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
  SAYS("cross_entropy: self is {5, 10}, so target wants {5}: a class for each place, got {4}",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 4)));
  SAYS("cross_entropy: a float target holds a probability for each class and wants self's shape "
       "{5, 10}, got {5}; classes want dtype int64",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(float32, 5)));
  SAYS("cross_entropy: weight wants one number per class, {10}, got {5}", cross_entropy,
       LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_ARG(M(float32, 5)));
  SAYS("cross_entropy: expected 'mean', 'sum' or 'none' for argument 'reduction', got the string "
       "\"avg\"",
       cross_entropy, LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_NIL, LT_NIL, LT_ARG(-100),
       LT_NIL, S("avg"));
  SAYS("cross_entropy: label_smoothing is 2, wants 0 to 1", cross_entropy,
       LT_ARG(M(float32, 5, 10)), LT_ARG(M(int64, 5)), LT_NIL, LT_NIL, LT_ARG(-100), LT_NIL,
       S("mean"), LT_ARG(2.0));
  SAYS("float32 {}", mse_loss, LT_ARG(M(float32, 5, 3)), LT_ARG(M(float32, 5, 3)));
  SAYS("float32 {5, 3}", l1_loss, LT_ARG(M(float32, 5, 3)), LT_ARG(M(float32, 5, 3)), LT_NIL,
       LT_NIL, S("none"));
  SAYS("float32 {}", binary_cross_entropy_with_logits, LT_ARG(M(float32, 5, 3)),
       LT_ARG(M(float32, 5, 3)), LT_NIL, LT_NIL, LT_NIL, S("sum"), LT_ARG(M(float32, 3)));
  SAYS("binary_cross_entropy_with_logits: self is {5, 3} and target is {5}, wants one shape",
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
  SAYS("cat: wants at least one tensor, got an empty list", cat, LT_TENSORS(NULL, 0));
  SAYS("cat: tensor 1 has no dimension to join along: use stack", cat, TL(M0(float32)));
  SAYS("cat: tensor 2 is {3, 5}: except in dim 1 it wants the sizes of {3, 4}, dim 2 differs", cat,
       TL(M(float32, 3, 4), M(float32, 3, 5)));
  SAYS("cat: tensor 2 is {3}, wants 2 dimensions as {3, 4} has", cat,
       TL(M(float32, 3, 4), M(float32, 3)));
  SAYS("float32 {3, 2, 4}", stack, TL(M(float32, 3, 4), M(float32, 3, 4)), LT_ARG(1));
  SAYS("float32 {3, 4, 2}", stack, TL(M(float32, 3, 4), M(float32, 3, 4)), LT_ARG(-1));
  SAYS("float32 {2}", stack, TL(M0(float32), M0(float32)));
  SAYS("stack: tensor 2 is {4}, wants {3} as the first is", stack,
       TL(M(float32, 3), M(float32, 4)));
  SAYS("float64 {3}", to, LT_ARG(M(float32, 3)), LT_NIL, D(float64));
  SAYS("to: a meta tensor has no data to copy", to, LT_ARG(M(float32, 3)), LT_ARG(lt_cpu()));
  SAYS("float32 {3, 4}", triu, LT_ARG(M(float32, 3, 4)), LT_ARG(1));
  SAYS("tril: self wants at least 2 dimensions, got 1: {3}", tril, LT_ARG(M(float32, 3)));
  SAYS("float32 {3, 4}", flip, LT_ARG(M(float32, 3, 4)), L(0, 1));
  SAYS("float32 {3, 4}", roll, LT_ARG(M(float32, 3, 4)), L(1));
  SAYS("roll: got 1 shift for 2 dims, wants one for each", roll, LT_ARG(M(float32, 3, 4)), L(1),
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
  SAYS("where: wants self and other, or the condition alone", where, LT_ARG(M(bool, 3)),
       LT_ARG(1.5));
  SAYS("where: the shape depends on the data; a meta tensor has none", where, LT_ARG(M(bool, 3)));
  SAYS("float32 {3}", div, LT_ARG(M(int64, 3)), LT_ARG(M(int64, 3)));
  SAYS("int64 {3}", div, LT_ARG(M(int64, 3)), LT_ARG(2), S("floor"));
  SAYS("float32 {3}", div, LT_ARG(M(float32, 3)), LT_ARG(2), S("trunc"));
  SAYS("div: expected 'floor' or 'trunc' for argument 'rounding_mode', got the string \"up\"", div,
       LT_ARG(M(int64, 3)), LT_ARG(2), S("up"));
  SAYS_IN_PLACE("float32 {3}", div, LT_ARG(M(float32, 3)), LT_ARG(2));
  MENTIONS_IN_PLACE("div_: the result is float", div, LT_ARG(M(int64, 3)), LT_ARG(2));
  SAYS("int64 {3}", clamp, LT_ARG(M(int64, 3)), LT_ARG(1));
  SAYS("float32 {3}", clamp, LT_ARG(M(int64, 3)), LT_ARG(1.5), LT_ARG(3));
  SAYS_IN_PLACE("float32 {3}", clamp, LT_ARG(M(float32, 3)), LT_NIL, LT_ARG(3));
  SAYS("clamp: wants min, max or both", clamp, LT_ARG(M(float32, 3)));
}

static void indexing(void) {
  SAYS("float32 {3, 7}", index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 7)));
  SAYS("float32 {3, 1}", index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M0(int32)));
  SAYS("index_select: index is uint8, which could mean a mask or positions: wants bool or int64",
       index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(uint8, 7)));
  SAYS("index_select: index holds positions and wants an integer dtype, got float32: convert it "
       "with :to \"int64\"",
       index_select, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(float32, 7)));
  SAYS("index_select: index wants at most 1 dimension, got 2: {2, 2}", index_select,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 2)));
  SAYS("float32 {2, 9}", gather, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 9)));
  SAYS("gather: index is {4, 4} and self is {3, 4}: dim 1 of index is larger", gather,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 4, 4)));
  SAYS("gather: index is {4} and self is {3, 4}, wants the same number of dimensions", gather,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 4)));
  SAYS("float32 {0}", gather, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 0)));
  SAYS("float32 {3, 4}", scatter, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 9)),
       LT_ARG(1));
  SAYS("float32 {3, 4}", scatter_add, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 2)),
       LT_ARG(M(float32, 3, 3)));
  SAYS("scatter: index is {2, 4} and src is {2, 3}: dim 2 of index is larger", scatter,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 4)), LT_ARG(M(float32, 2, 3)));
  SAYS("scatter: self is float32 and src is int64, wants one dtype: convert one, src:to "
       "\"float32\"",
       scatter, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(M(int64, 2, 3)),
       LT_ARG(M(int64, 2, 3)));
  SAYS("float32 {3, 4}", index_add, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(M(int64, 2)),
       LT_ARG(M(float32, 2, 4)));
  SAYS("index_copy: source wants {2, 4} (2 positions in dim 1 of {3, 4}), got {3, 4}", index_copy,
       LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(M(int64, 2)), LT_ARG(M(float32, 3, 4)));
  SAYS("float32 {3, 4}", index_fill, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(M(int64, 2)),
       LT_ARG(0));
  SAYS("float32 {5, 6}", embedding, LT_ARG(M(float32, 10, 6)), LT_ARG(M(int64, 5)), LT_ARG(-1));
  SAYS("float32 {5, 2, 6}", embedding, LT_ARG(M(float32, 10, 6)), LT_ARG(M(int32, 5, 2)));
  SAYS("embedding: padding_idx is 11, the weight has rows 1 to 10", embedding,
       LT_ARG(M(float32, 10, 6)), LT_ARG(M(int64, 5)), LT_ARG(11));
  SAYS("int64 {5, 2, 4}", one_hot, LT_ARG(M(int64, 5, 2)), LT_ARG(4));
  SAYS("one_hot: num_classes depends on the data; a meta tensor has none: pass it", one_hot,
       LT_ARG(M(int64, 5)));
  SAYS("masked_select: mask wants dtype bool, got uint8: convert it with :to \"bool\"",
       masked_select, LT_ARG(M(float32, 3)), LT_ARG(M(uint8, 3)));
  SAYS("masked_select: the shape depends on the data; a meta tensor has none", masked_select,
       LT_ARG(M(float32, 3)), LT_ARG(M(bool, 3)));
  SAYS("masked_scatter: mask {4} and self {3} cannot be broadcast to one shape", masked_scatter,
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
  SAYS("index: dim 1 of {0, 4} has no positions", _index, LT_ARG(M(float32, 0, 4)), TL(M(int64, 2)),
       L(0));
  SAYS("index: index 2 of shape {3} does not broadcast with the ones before it, {2}", _index,
       LT_ARG(M(float32, 3, 4)), TL(M(int64, 2), M(int64, 3)), L(0, 1));
  SAYS("index: index 1 is uint8, wants bool or int64", _index, LT_ARG(M(float32, 3, 4)),
       TL(M(uint8, 2)), L(0));
  SAYS("index: expected the dims of self, 0 to 1, for argument 'dims', got 9223372036854775807",
       _index, LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(INT64_MAX));
  SAYS("index: expected the dims of self, 0 to 1, for argument 'dims', got -9223372036854775808",
       _index, LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(INT64_MIN));
  SAYS("float32 {3, 4}", _index_put, LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(0),
       LT_ARG(M(float32, 4)));
  SAYS("index_put: values {3} cannot be broadcast to the positions {7, 4}", _index_put,
       LT_ARG(M(float32, 3, 4)), TL(M(int64, 7)), L(0), LT_ARG(M(float32, 3)));
}

static void views(void) {
  SAYS("float32 {2, 6}", view, LT_ARG(M(float32, 3, 4)), L(2, -1));
  SAYS("float32 {}", view, LT_ARG(M(float32, 1, 1)), LT_INTS(NULL, 0));
  SAYS("view: {3, 4} has 12 elements, which do not fill {5, -1}", view, LT_ARG(M(float32, 3, 4)),
       L(5, -1));
  SAYS("view: only one size may be -1, got {-1, -1}", view, LT_ARG(M(float32, 3, 4)), L(-1, -1));
  SAYS("view: the -1 in {0, -1} could be any size: write it out", view, LT_ARG(M(float32, 0, 4)),
       L(0, -1));
  SAYS("view: size 1 is negative in the shape {-2, 6}", view, LT_ARG(M(float32, 3, 4)), L(-2, 6));
  lt_Tensor *turned = lt_do(transpose, LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(1));
  SAYS("view: the elements of {4, 3} lie in memory so that {12} would need a copy: use reshape",
       view, LT_ARG(turned), L(12));
  SAYS("float32 {12}", reshape, LT_ARG(turned), L(12));
  SAYS("float32 {4, 3, 2}", expand, LT_ARG(M(float32, 3, 1)), L(4, -1, 2));
  SAYS("expand: {3, 4} cannot be expanded to {3, 5}: dim 2 has size 4, only size 1 can be repeated",
       expand, LT_ARG(M(float32, 3, 4)), L(3, 5));
  SAYS("expand: {3, 4} has more dimensions than the 1 sizes of {4}", expand,
       LT_ARG(M(float32, 3, 4)), L(4));
  SAYS("expand: -1 keeps a size, but dim 1 of {-1, 3} is new", expand, LT_ARG(M(float32, 3)),
       L(-1, 3));
  SAYS("expand: the shape {4611686018427387904, 4} has more elements than can be counted", expand,
       LT_ARG(M(float32, 1)), L(INT64_C(1) << 62, 4));
  SAYS("float32 {5, 3, 4}", permute, LT_ARG(M(float32, 3, 4, 5)), L(-1, 0, 1));
  SAYS("permute: dim 1 is named twice", permute, LT_ARG(M(float32, 3, 4)), L(0, 0));
  SAYS("permute: got 1 dim for {3, 4}, wants each of its 2 dimensions once", permute,
       LT_ARG(M(float32, 3, 4)), L(0));
  SAYS("swapaxes: dim 3 is out of range: the tensor has 2 dimensions", swapaxes,
       LT_ARG(M(float32, 3, 4)), LT_ARG(2), LT_ARG(0));
  SAYS("float32 {3}", squeeze, LT_ARG(M(float32, 1, 3, 1)));
  SAYS("float32 {1, 3}", squeeze, LT_ARG(M(float32, 1, 3, 1)), L(1, 2));
  SAYS("float32 {3, 1}", unsqueeze, LT_ARG(M(float32, 3)), LT_ARG(-1));
  SAYS("unsqueeze: dim 3 is out of range: the tensor has 2 dimensions", unsqueeze,
       LT_ARG(M(float32, 3)), LT_ARG(2));
  SAYS("float32 {3, 5}", select, LT_ARG(M(float32, 3, 4, 5)), LT_ARG(1), LT_ARG(-4));
  SAYS("select: position 5 is outside dim 2 of {3, 4}, which has 4", select,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(4));
  SAYS("select: self has no dimensions to select from", select, LT_ARG(M0(float32)), LT_ARG(0),
       LT_ARG(0));
  SAYS("float32 {5, 3}", diagonal, LT_ARG(M(float32, 3, 5, 4)), LT_ARG(1), LT_ARG(0), LT_ARG(2));
  SAYS("float32 {0}", diagonal, LT_ARG(M(float32, 3, 4)), LT_ARG(9));
  SAYS("diagonal: dim1 and dim2 are both dim 1, wants two dimensions", diagonal,
       LT_ARG(M(float32, 3, 4)), LT_ARG(0), LT_ARG(0), LT_ARG(-2));
  SAYS("float32 {3, 2, 3}", unfold, LT_ARG(M(float32, 3, 6)), LT_ARG(1), LT_ARG(3), LT_ARG(2));
  SAYS("unfold: a window of 7 does not fit dim 2 of {3, 6}", unfold, LT_ARG(M(float32, 3, 6)),
       LT_ARG(1), LT_ARG(7), LT_ARG(2));
  SAYS("float32 {2, 2}", as_strided, LT_ARG(M(float32, 3, 4)), L(2, 2), L(1, 2), LT_ARG(8));
  SAYS("as_strided: sizes {2, 2} with strides {1, 2} from offset 9 reach element 13, the storage "
       "has 12",
       as_strided, LT_ARG(M(float32, 3, 4)), L(2, 2), L(1, 2), LT_ARG(9));
  SAYS("as_strided: stride 1 is -1, wants 0 or more", as_strided, LT_ARG(M(float32, 3)), L(2),
       L(-1));
  SAYS("float32 {3, 20}", flatten, LT_ARG(M(float32, 3, 4, 5)), LT_ARG(1));
  SAYS("float32 {1}", flatten, LT_ARG(M0(float32)));
  SAYS("float32 {3, 2, 2, 5}", unflatten, LT_ARG(M(float32, 3, 4, 5)), LT_ARG(1), L(2, -1));
  SAYS("unflatten: {4} has 4 elements, which do not fill {3, -1}", unflatten,
       LT_ARG(M(float32, 3, 4)), LT_ARG(1), L(3, -1));
  SAYS("float32 {4, 5, 3}", movedim, LT_ARG(M(float32, 3, 4, 5)), L(0), L(-1));
  SAYS("float32 {5, 4, 3}", movedim, LT_ARG(M(float32, 3, 4, 5)), L(0, 2), L(2, 0));
  SAYS("float32 {3, 2}", narrow, LT_ARG(M(float32, 3, 4)), LT_ARG(1), LT_ARG(-2), LT_ARG(2));
  SAYS("narrow: 3 positions from 3 go past dim 2 of {3, 4}", narrow, LT_ARG(M(float32, 3, 4)),
       LT_ARG(1), LT_ARG(2), LT_ARG(3));
  SAYS("list of 3: float32 {2, 3}; float32 {2, 3}; float32 {1, 3}", split, LT_ARG(M(float32, 5, 3)),
       L(2));
  SAYS("list of 2: float32 {5, 1}; float32 {5, 2}", split, LT_ARG(M(float32, 5, 3)), L(1, 2),
       LT_ARG(1));
  SAYS("split: the sizes of the pieces do not add up to 3, the size of dim 2 of {5, 3}", split,
       LT_ARG(M(float32, 5, 3)), L(1, 3), LT_ARG(1));
  SAYS("split: split_size is 0, wants 1 or more", split, LT_ARG(M(float32, 5, 3)), L(0));
  SAYS("list of 3: float32 {2}; float32 {2}; float32 {2}", chunk, LT_ARG(M(float32, 6)), LT_ARG(4));
  SAYS("list of 2: float32 {0}; float32 {0}", chunk, LT_ARG(M(float32, 0)), LT_ARG(2));
  SAYS("list of 3: float32 {5}; float32 {5}; float32 {5}", unbind, LT_ARG(M(float32, 5, 3)),
       LT_ARG(1));
  SAYS("unbind: self has no dimensions to take apart", unbind, LT_ARG(M0(float32)));
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
