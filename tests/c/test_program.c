/* test_program.c: elementwise programs compared with the calls that they were recorded from. */
#include "program.h"
#include "recorder.h"
#include "tensors.h"

typedef lt_Tensor *(*Formula)(lt_Tensor *x, lt_Tensor *y);

static lt_Recorder *begin(const lt_Tensor *a, const lt_Tensor *b, lt_Tensor **x, lt_Tensor **y) {
  lt_Recorder *r = lt_recorder_begin();
  *x = lt_scope_own(lt_recorder_input(r, a->dtype, a->ndim, a->shape));
  *y = lt_scope_own(lt_recorder_input(r, b->dtype, b->ndim, b->shape));
  return r;
}

/* Returns the program of a formula; NULL with an error. */
static lt_Program *program_of(Formula f, const lt_Tensor *a, const lt_Tensor *b) {
  lt_Tensor *x, *y;
  lt_Recorder *r = begin(a, b, &x, &y);
  lt_Tensor *out = f(x, y);
  lt_recorder_end(r);
  lt_Program *p = out ? lt_program_new(r, r->ncalls, 1, &out) : NULL;
  lt_recorder_free(r);
  return p;
}

/* Compares every element of the program's result with that of the calls. */
static void check_formula(Formula f, lt_Tensor *a, lt_Tensor *b, double tolerance) {
  lt_Program *p = program_of(f, a, b);
  lt_Tensor *actual = NULL, *expected = f(a, b);
  bool refused = true;
  CHECK(p != NULL);
  if (!p) return;
  CHECK(lt_program_run(p, (lt_Tensor *[]){a, b}, &actual, &refused));
  CHECK(!refused);
  lt_program_free(p);
  if (!actual) return;
  CHECK_INT(actual->dtype, expected->dtype);
  CHECK_INT(actual->numel, expected->numel);
  for (int64_t i = 0; i < expected->numel; i++)
    CHECK_NEAR(number(actual, i), number(expected, i), tolerance);
  lt_release(actual);
}

static lt_Tensor *chain(lt_Tensor *x, lt_Tensor *y) {
  lt_Tensor *t = lt_do(mul, LT_ARG(lt_do(add, LT_ARG(x), LT_ARG(y), LT_ARG(3))), LT_ARG(x));
  return lt_do(maximum, LT_ARG(lt_do(sub, LT_ARG(t), LT_ARG(1.0))), LT_ARG(y));
}

static lt_Tensor *whole_chain(lt_Tensor *x, lt_Tensor *y) {
  lt_Tensor *t = lt_do(mul, LT_ARG(lt_do(add, LT_ARG(x), LT_ARG(y), LT_ARG(3))), LT_ARG(x));
  return lt_do(floor_divide, LT_ARG(t), LT_ARG(7));
}

static lt_Tensor *test_chain(lt_Tensor *x, lt_Tensor *y) {
  lt_Tensor *less = lt_do(lt, LT_ARG(x), LT_ARG(y));
  return lt_do(logical_or, LT_ARG(lt_do(logical_not, LT_ARG(less))),
               LT_ARG(lt_do(isnan, LT_ARG(y))));
}

static void computes_every_dtype(void) {
  static const lt_Dtype dtypes[] = {LT_float32, LT_float64, LT_float16, LT_bfloat16, LT_int8,
                                    LT_uint8,   LT_int16,   LT_int32,   LT_int64,    LT_bool};
  static const double tolerance[] = {0, 0, 0.1, 0.5};
  for (int i = 0; i < 10; i++)
    for (int k = 0; k < 10; k++) {
      lt_Tensor *a = noise(dtypes[i], SHAPE(7, 90), 1), *b = noise(dtypes[k], SHAPE(7, 90), 2);
      bool floats = i < 4 || k < 4;
      check_formula(test_chain, a, b, 0);
      if (floats) check_formula(chain, a, b, tolerance[i < 4 && (k >= 4 || i > k) ? i : k]);
      if (!floats && !(i == 9 && k == 9)) check_formula(whole_chain, a, b, 0);
    }
}

static void computes_every_layout(void) {
  lt_Tensor *wide = noise(LT_float32, SHAPE(3, 50, 90), 3);
  lt_Tensor *others[] = {
      noise(LT_float32, SHAPE(90), 4),       noise(LT_float32, SHAPE(50, 1), 4),
      noise(LT_float32, SHAPE(1), 4),        noise(LT_float64, 0, NULL, 4),
      noise(LT_float32, SHAPE(3, 1, 90), 4), noise(LT_int16, SHAPE(3, 50, 90), 4)};
  for (int layout = 0; layout < 3; layout++)
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
      check_formula(chain, laid_out(wide, layout), laid_out(others[i], layout), 0);
      check_formula(chain, laid_out(others[i], layout), wide, 0);
    }
  lt_Tensor *narrow = noise(LT_float32, SHAPE(900, 5), 5); /* rows share a block */
  check_formula(chain, narrow, noise(LT_float32, SHAPE(5), 6), 0);
  check_formula(chain, laid_out(narrow, 2), noise(LT_float32, SHAPE(900, 1), 6), 0);
  check_formula(chain, noise(LT_float32, SHAPE(1), 5), noise(LT_float32, SHAPE(1), 6), 0);
  check_formula(chain, noise(LT_float32, SHAPE(0, 5), 5), noise(LT_float32, SHAPE(5), 6), 0);
  check_formula(chain, noise(LT_float32, SHAPE(200000), 5), noise(LT_float32, SHAPE(200000), 6), 0);
}

static lt_Tensor *with_unused_results(lt_Tensor *x, lt_Tensor *y) {
  lt_do(exp, LT_ARG(x));
  lt_Tensor *two = lt_scope_own(lt_scalar_tensor(lt_scalar_int(2), LT_float32));
  lt_Tensor *t = lt_do(mul, LT_ARG(lt_do(neg, LT_ARG(x))), LT_ARG(lt_do(neg, LT_ARG(x))));
  return lt_do(mul, LT_ARG(lt_do(add, LT_ARG(t), LT_ARG(y))), LT_ARG(two));
}

static void omits_unused_results(void) {
  lt_Tensor *a = noise(LT_float32, SHAPE(9), 1), *b = noise(LT_float32, SHAPE(9), 2);
  lt_Program *p = program_of(with_unused_results, a, b);
  CHECK(p && p->nsteps == 4 && p->ninputs == 2 && p->nout == 1);
  CHECK_INT(p->step[1].input[0].value, 2);
  CHECK_INT(p->step[1].input[1].value, 2);
  CHECK_INT(p->step[3].input[1].value, -1);
  lt_program_free(p);
  check_formula(with_unused_results, a, b, 0);
}

static lt_Tensor *in_place(lt_Tensor *x, lt_Tensor *y) {
  lt_Tensor *t = lt_do(exp, LT_ARG(x));
  lt_do_in_place(mul, LT_ARG(t), LT_ARG(y));
  lt_do_in_place(lt, LT_ARG(t), LT_ARG(1.5));
  return lt_do(add, LT_ARG(t), LT_ARG(x));
}

static void follows_calls_in_place(void) {
  check_formula(in_place, noise(LT_float32, SHAPE(99), 1), noise(LT_float32, SHAPE(99), 2), 0);
}

static lt_Tensor *summing(lt_Tensor *x, lt_Tensor *y) {
  return lt_do(add, LT_ARG(lt_do(softmax, LT_ARG(x), LT_ARG(0))), LT_ARG(y));
}
static lt_Tensor *viewing(lt_Tensor *x, lt_Tensor *y) {
  return lt_do(add, LT_ARG(lt_do(flip, LT_ARG(x), LT_ARG(0))), LT_ARG(y));
}

static void refuses_other_ops(void) {
  lt_Tensor *a = noise(LT_float32, SHAPE(9), 1);
  CHECK(program_of(summing, a, a) == NULL);
  CHECK_CONTAINS(lt_error(), "softmax");
  CHECK_CONTAINS(lt_error(), "is not an elementwise op");
  CHECK(program_of(viewing, a, a) == NULL);
  CHECK_CONTAINS(lt_error(), "'flip' is not an elementwise op");
}

static void refuses_other_inputs(void) {
  lt_Tensor *a = noise(LT_float32, SHAPE(9), 1), *b = noise(LT_float64, SHAPE(9), 1);
  lt_Tensor *c = noise(LT_float32, SHAPE(8), 1), *out = NULL;
  lt_Tensor *m = lt_scope_own(lt_empty(LT_float32, lt_meta(), SHAPE(9)));
  bool refused;
  lt_Program *p = program_of(chain, a, a);
  CHECK(!lt_program_run(p, (lt_Tensor *[]){a, b}, &out, &refused));
  CHECK_CONTAINS(lt_error(), "expected dtype \"float32\" for input 2, got \"float64\"");
  CHECK(!lt_program_run(p, (lt_Tensor *[]){a, c}, &out, &refused));
  CHECK_CONTAINS(lt_error(), "cannot broadcast");
  CHECK(!lt_program_run(p, (lt_Tensor *[]){a, m}, &out, &refused));
  CHECK_CONTAINS(lt_error(), "different devices");
  CHECK(lt_program_run(p, (lt_Tensor *[]){m, m}, &out, &refused));
  CHECK_INT(out->numel, 9);
  lt_release(out);
  lt_program_free(p);
}

static lt_Tensor *dividing(lt_Tensor *x, lt_Tensor *y) {
  return lt_do(remainder, LT_ARG(lt_do(add, LT_ARG(x), LT_ARG(x))), LT_ARG(y));
}

static void reports_zero_divisors(void) {
  lt_Tensor *x = V(int64, 1, 2, 3), *y = V(int64, 1, 2, 0), *out = NULL;
  bool refused = false;
  check_formula(dividing, x, V(int64, 1, 2, 2), 0);
  lt_Program *p = program_of(dividing, x, y);
  CHECK(!lt_program_run(p, (lt_Tensor *[]){x, y}, &out, &refused));
  CHECK(refused);
  lt_program_free(p);
}

/* Both gradients of x * exp(y), where y is broadcast, at x's shape, in one program. */
static void computes_gradients(void) {
  lt_Tensor *a = noise(LT_float32, SHAPE(4, 6), 1), *b = noise(LT_float32, SHAPE(6), 2), *x, *y;
  lt_Tensor *grads[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
  lt_Recorder *r = begin(a, b, &x, &y);
  CHECK(lt_tensor_set_requires_grad(x, true) && lt_tensor_set_requires_grad(y, true));
  lt_Tensor *z = lt_do(mul, LT_ARG(x), LT_ARG(lt_do(exp, LT_ARG(y))));
  int strict = r->ncalls;
  lt_Tensor *g = lt_scope_own(lt_recorder_input(r, LT_float32, SHAPE(4, 6)));
  CHECK(lt_grad(1, &z, &g, false, false, false, 2, (lt_Tensor *[]){x, y}, grads));
  lt_recorder_end(r);
  lt_Program *p = lt_program_new(r, strict, 2, grads);
  CHECK(p != NULL);
  bool refused;
  lt_Tensor *w = noise(LT_float32, SHAPE(4, 6), 3);
  CHECK(lt_program_run(p, (lt_Tensor *[]){a, b, w}, out, &refused));
  for (int64_t i = 0; out[0] && i < 24; i++) {
    double e = exp(number(b, i % 6));
    CHECK_NEAR(number(out[0], i), number(w, i) * e, 1e-6);
    CHECK_NEAR(number(out[1], i), number(w, i) * number(a, i) * e, 1e-6);
  }
  for (int i = 0; i < 2; i++) {
    lt_release(grads[i]);
    lt_release(out[i]);
  }
  lt_program_free(p);
  lt_program_free(NULL);
  lt_recorder_free(r);
}

/* ---- chains ---------------------------------------------------------------------------------- */

static uint32_t choices; /* state of the random choices of a formula */

static uint32_t choose(uint32_t n) {
  choices = choices * 1664525 + 1013904223;
  return (choices >> 8) % n;
}

/* Returns x, y or a result, mostly a late one. */
static lt_Tensor *any_of(lt_Tensor *const *value, uint32_t n) {
  return value[choose(2) ? n - 1 : choose(n)];
}

/* Returns the result of a random op, as most chains contain it. */
static lt_Tensor *random_op(lt_Tensor *const *value, uint32_t n) {
  lt_Tensor *x = any_of(value, n), *y = any_of(value, n), *z = any_of(value, n);
  double number = (double)choose(9) / 4 - 1;
  switch (choose(24)) {
  case 0:
    return lt_do(add, LT_ARG(x), LT_ARG(y));
  case 1:
    return lt_do(add, LT_ARG(x), LT_ARG(number));
  case 2:
    return lt_do(add, LT_ARG(x), LT_ARG(y), LT_ARG(3));
  case 3:
    return lt_do(sub, LT_ARG(x), LT_ARG(y));
  case 4:
    return lt_do(sub, LT_ARG(number), LT_ARG(y));
  case 5:
    return lt_do(mul, LT_ARG(x), LT_ARG(y));
  case 6:
    return lt_do(mul, LT_ARG(x), LT_ARG(number));
  case 7:
    return lt_do(mul, LT_ARG(x), LT_ARG(x));
  case 8:
    return lt_do(_true_divide, LT_ARG(x), LT_ARG(y));
  case 9:
    return lt_do(_true_divide, LT_ARG(number), LT_ARG(y));
  case 10:
    return lt_do(maximum, LT_ARG(x), LT_ARG(y));
  case 11:
    return lt_do(minimum, LT_ARG(x), LT_ARG(y));
  case 12:
    return lt_do(neg, LT_ARG(x));
  case 13:
    return lt_do(abs, LT_ARG(x));
  case 14:
    return lt_do(square, LT_ARG(x));
  case 15:
    return lt_do(relu, LT_ARG(x));
  case 16:
    return lt_do(pow, LT_ARG(x), LT_ARG(2 + (int64_t)choose(2)));
  case 17:
    return lt_do(leaky_relu, LT_ARG(x), LT_ARG(0.25));
  case 18:
    return lt_do(sqrt, LT_ARG(x));
  case 19:
    return lt_do(_where, LT_ARG(lt_do(lt, LT_ARG(x), LT_ARG(number))), LT_ARG(y), LT_ARG(z));
  case 20:
    return lt_do(_where, LT_ARG(lt_do(ge, LT_ARG(x), LT_ARG(y))), LT_ARG(z), LT_ARG(0.5));
  case 21:
    return lt_do(masked_fill, LT_ARG(x), LT_ARG(lt_do(logical_not, LT_ARG(y))), LT_ARG(1.5));
  case 22:
    return lt_do(_clamp, LT_ARG(x), LT_ARG(y), LT_ARG(z));
  default:
    return lt_do(tanh, LT_ARG(x));
  }
}

static uint32_t first_choice;

static lt_Tensor *random_chain(lt_Tensor *x, lt_Tensor *y) {
  lt_Tensor *value[50] = {x, y};
  choices = first_choice;
  uint32_t n = 2, end = 4 + choose(46);
  while (n < end) {
    value[n] = random_op(value, n);
    n++;
  }
  return lt_do(add, LT_ARG(value[n - 1]), LT_ARG(x)); /* has the shape of x */
}

/* Chains have the results of the calls, at every length of blocks, tiles and rests. */
static void computes_chains(void) {
  static const int64_t sizes[] = {1, 7, 16, 33, 64, 127, 128, 129, 300, 1000, 2049, 8193, 20001};
  for (uint32_t i = 0; i < 300; i++) {
    lt_Dtype dtype = i % 3 ? LT_float32 : LT_float64;
    int64_t n = sizes[i % 13];
    lt_Tensor *a = noise(dtype, SHAPE(n), i), *b = noise(dtype, SHAPE(n), i + 1);
    if (i % 5 == 0) a = laid_out(noise(dtype, SHAPE(3, n), i), i % 3);
    first_choice = 7919 * i;
    check_formula(random_chain, a, b, 0);
  }
}

int main(void) {
  RUN_SCOPED(computes_every_dtype);
  RUN_SCOPED(computes_every_layout);
  RUN_SCOPED(computes_chains);
  RUN_SCOPED(omits_unused_results);
  RUN_SCOPED(follows_calls_in_place);
  RUN_SCOPED(refuses_other_ops);
  RUN_SCOPED(refuses_other_inputs);
  RUN_SCOPED(reports_zero_divisors);
  RUN_SCOPED(computes_gradients);
  return check_end();
}
