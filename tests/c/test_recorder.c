/* test_recorder.c: the recording device: the records of calls, gradients, calls in place and views,
 * and the calls that it refuses. */
#include "check.h"
#include "opids.h"
#include "recorder.h"
#include "scoped.h"
#include "device_under_test.h"

#define SHAPE(...)                                                                                 \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

static lt_Tensor *input(lt_Recorder *r, lt_Dtype dtype, int64_t n) {
  return lt_scope_own(lt_recorder_input(r, dtype, SHAPE(n)));
}

/* Returns a call as text: "mul(0, 1) -> 2"; numbers that are not values have a sign. */
static const char *call_text(const lt_Recorder *r, int i) {
  static char text[4][160];
  static int turn;
  char *out = text[turn = (turn + 1) % 4];
  if (i >= r->ncalls) return "no such call";
  const lt_RecordedCall *call = &r->call[i];
  int at = snprintf(out, sizeof *text, "%s%s(", lt_ops[call->op].name, call->in_place ? "_" : "");
  for (int k = 0; k < call->nargs; k++) {
    const lt_Arg *a = &call->arg[k];
    const char *comma = k ? ", " : "";
    if (a->kind == LT_ARG_TENSOR)
      at += snprintf(out + at, sizeof *text - (size_t)at, "%s%lld", comma, (long long)a->i);
    else if (a->kind == LT_ARG_SCALAR)
      at += snprintf(out + at, sizeof *text - (size_t)at, "%s%+g", comma,
                     lt_scalar_to_double(a->scalar));
    else if (a->kind == LT_ARG_STRING)
      at += snprintf(out + at, sizeof *text - (size_t)at, "%s'%s'", comma, a->string);
    else
      at += snprintf(out + at, sizeof *text - (size_t)at, "%s?", comma);
  }
  snprintf(out + at, sizeof *text - (size_t)at, ") -> %d", call->out[0]);
  return out;
}

static void records_calls(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 4), *y = input(r, LT_int64, 4);
  lt_Tensor *z = lt_do(mul, LT_ARG(lt_do(exp, LT_ARG(x))), LT_ARG(y));
  z = lt_do(add, LT_ARG(z), LT_ARG(2.5));
  lt_recorder_end(r);
  CHECK_INT(r->ncalls, 3);
  CHECK_STR(call_text(r, 0), "exp(0) -> 2");
  CHECK_STR(call_text(r, 1), "mul(2, 1) -> 3");
  CHECK_STR(call_text(r, 2), "add(3, +2.5, +1) -> 4");
  CHECK_INT(r->nvalues, 5);
  CHECK_INT(r->value[0].kind, LT_VALUE_INPUT);
  CHECK_INT(r->value[3].kind, LT_VALUE_RESULT);
  CHECK_INT(r->value[3].call, 1);
  CHECK_INT(r->call[1].compute, LT_float32);
  CHECK_INT(r->value[3].tensor->dtype, LT_float32);
  CHECK_INT(r->value[1].tensor->dtype, LT_int64);
  CHECK_INT(lt_recorder_value(r, z), 4);
  CHECK(lt_tensor_data(z) == NULL);
  lt_recorder_free(r);
}

static void is_no_device_for_users(void) {
  lt_Device d;
  lt_Recorder *r = lt_recorder_begin();
  CHECK(!lt_device_parse("meta:1", &d));
  CHECK(!lt_device_parse("recorder", &d));
  CHECK_INT(lt_device_count(LT_DEVICE_meta, NULL, 0), 1);
  lt_recorder_free(r);
}

/* Calls on other devices, before the recording begins and after it has ended, are not recorded. */
static void records_its_time_and_device_only(void) {
  lt_Recorder *r = lt_recorder_begin(), *inner;
  lt_Tensor *x = input(r, LT_float32, 4), *here = lt_scalar_tensor(lt_scalar_int(1), LT_float32);
  lt_Tensor *plain = lt_scope_own(lt_empty(LT_float32, lt_meta(), SHAPE(4)));
  lt_scope_own(here);
  lt_do(exp, LT_ARG(here));
  lt_do(exp, LT_ARG(plain));
  CHECK_INT(r->ncalls, 0);
  CHECK(lt_do(add, LT_ARG(plain), LT_ARG(x)) == NULL);
  inner = lt_recorder_begin();
  lt_do(exp, LT_ARG(input(inner, LT_float32, 4)));
  CHECK(lt_do(exp, LT_ARG(x)) == NULL);
  CHECK_CONTAINS(lt_error(), "exp: expected a tensor of this recording for argument 'self'");
  CHECK_INT(inner->ncalls, 1);
  lt_recorder_free(inner);
  CHECK(lt_do(exp, LT_ARG(x)) != NULL);
  CHECK_INT(r->ncalls, 1);
  lt_recorder_end(r);
  lt_recorder_end(r);
  CHECK(lt_do(exp, LT_ARG(x)) != NULL);
  CHECK_INT(r->ncalls, 1);
  lt_recorder_free(r);
  lt_recorder_free(NULL);
}

/* A 0-d CPU tensor is a constant, whose value can be read. */
static void knows_constants(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 4);
  lt_Tensor *two = lt_scope_own(lt_scalar_tensor(lt_scalar_int(2), LT_float64));
  lt_Scalar value = lt_scalar_int(0);
  lt_do(mul, LT_ARG(x), LT_ARG(two));
  lt_do(mul, LT_ARG(two), LT_ARG(x));
  CHECK_STR(call_text(r, 0), "mul(0, 1) -> 2");
  CHECK_STR(call_text(r, 1), "mul(1, 0) -> 3");
  CHECK_INT(r->value[1].kind, LT_VALUE_CONSTANT);
  CHECK(lt_tensor_item(r->value[1].tensor, &value) && lt_scalar_to_double(value) == 2);
  lt_recorder_free(r);
}

/* Composites are recorded as their parts, with copies of lists and strings. */
static void records_parts_of_composites(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 4);
  {
    char mode[] = "tanh";
    int64_t shape[] = {2, 2};
    lt_do(gelu, LT_ARG(x), LT_ARG((const char *)mode));
    lt_do(view, LT_ARG(x), LT_INTS(shape, 2));
    mode[0] = 0;
    shape[0] = 7;
  }
  CHECK_INT(r->ncalls, 2);
  CHECK_STR(call_text(r, 0), "_gelu_tanh(0) -> 1");
  CHECK_INT(r->call[1].arg[1].kind, LT_ARG_INTS);
  CHECK_INT(r->call[1].arg[1].count, 2);
  CHECK_INT(r->call[1].arg[1].ints[0], 2);
  CHECK_INT(r->value[r->call[1].out[0]].tensor->ndim, 2);
  lt_Tensor *list[] = {x, x};
  lt_do(cat, LT_TENSORS(list, 2));
  CHECK_INT(r->call[2].arg[0].kind, LT_ARG_TENSORS);
  CHECK_INT(r->call[2].arg[0].ints[1], 0);
  lt_recorder_free(r);
}

/* The rows of gradients run on the device, and refer to values of the forward calls. */
static void records_gradients(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 4), *g = input(r, LT_float32, 4), *dx = NULL;
  CHECK(lt_tensor_set_requires_grad(x, true));
  lt_Tensor *y = lt_do(tanh, LT_ARG(lt_do(exp, LT_ARG(x))));
  CHECK(lt_grad(1, &y, &g, false, false, false, 1, &x, &dx));
  CHECK_INT(r->ncalls, 4);
  CHECK_STR(call_text(r, 0), "exp(0) -> 2");
  CHECK_STR(call_text(r, 1), "tanh(2) -> 3");
  CHECK_STR(call_text(r, 2), "_tanh_backward(1, 3) -> 4");
  CHECK_STR(call_text(r, 3), "mul(4, 2) -> 5");
  CHECK_INT(lt_recorder_value(r, dx), 5);
  lt_release(dx);
  lt_recorder_free(r);
}

/* A call in place gives self a new number; the old number stands for the old value. */
static void numbers_calls_in_place(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 4), *y = lt_do(neg, LT_ARG(x));
  lt_do_in_place(add, LT_ARG(y), LT_ARG(x));
  lt_do(exp, LT_ARG(y));
  CHECK_STR(call_text(r, 1), "add_(1, 0, +1) -> 2");
  CHECK_STR(call_text(r, 2), "exp(2) -> 3");
  CHECK_INT(lt_recorder_value(r, y), 2);
  lt_recorder_free(r);
}

/* Thousands of values, whose tensors were freed, stay distinct. */
static void keeps_long_records(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 4);
  for (int i = 0; i < 5000; i++) {
    lt_Tensor *y = lt_op1(LT_OP_neg, (lt_Arg[]){LT_ARG(x)}, 1);
    if (i == 4999) CHECK_STR(call_text(r, i), "neg(0) -> 5000");
    lt_release(y);
  }
  CHECK_INT(r->ncalls, 5000);
  lt_recorder_free(r);
}

/* Ops that read data fail, and nothing is recorded. */
static void refuses_ops_that_read_data(void) {
  lt_Recorder *r = lt_recorder_begin();
  lt_Tensor *x = input(r, LT_float32, 1);
  lt_Scalar value;
  CHECK(!lt_tensor_item(x, &value));
  CHECK(lt_do(nonzero, LT_ARG(x)) == NULL);
  CHECK_INT(r->ncalls, 0);
  lt_recorder_free(r);
}

int main(void) {
  RUN_SCOPED(records_calls);
  RUN_SCOPED(is_no_device_for_users);
  RUN_SCOPED(records_its_time_and_device_only);
  RUN_SCOPED(knows_constants);
  RUN_SCOPED(records_parts_of_composites);
  RUN_SCOPED(records_gradients);
  RUN_SCOPED(numbers_calls_in_place);
  RUN_SCOPED(keeps_long_records);
  RUN_SCOPED(refuses_ops_that_read_data);
  return check_end();
}
