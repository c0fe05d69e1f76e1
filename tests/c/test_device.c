/* test_device.c: a device that is registered at run time works like one that is built in. It is
 * asynchronous, with memory of its own (toy_device.c). */
#include "opids.h"
#include "check.h"
#include "core.h"
#include "toy_device.h"
#include "trace.h"

#include <math.h>
#include <unistd.h>

static lt_Device toy(int index) {
  lt_Device d = lt_cpu();
  CHECK(lt_device_parse(index ? "toy:1" : "toy:0", &d));
  return d;
}

static lt_Tensor *floats(int n, const float *values) {
  lt_Tensor *t = lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){n});
  memcpy(lt_tensor_data(t), values, (size_t)n * sizeof *values);
  return t;
}

/* Returns a copy of t on a device. */
static lt_Tensor *copied_to(lt_Tensor *t, lt_Device d) {
  return lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(t), LT_ARG(d)}, 2);
}

static void check_values(lt_Tensor *t, int n, const float *expected) {
  lt_Tensor *host = copied_to(t, lt_cpu());
  CHECK(host != NULL);
  if (!host) return;
  CHECK_INT(host->numel, n);
  for (int i = 0; i < n; i++)
    CHECK_NEAR((double)((float *)lt_tensor_data(host))[i], (double)expected[i], 0);
  lt_release(host);
}

static void is_registered(void) {
  lt_Device d;
  int type = lt_device_register(&toy_backend);
  CHECK(type >= LT_DEVICE_KNOWN);
  CHECK_INT(lt_device_count(type, NULL, 0), 2);
  CHECK(lt_device_parse("toy", &d) && d.type == type && d.index == 0);
  CHECK(lt_device_parse("toy:1", &d) && d.index == 1);
  CHECK_STR(lt_device_name(d), "toy:1");
  CHECK(!lt_device_parse("toy:2", &d));
  CHECK_CONTAINS(lt_error(), "toy:2");
  CHECK_CONTAINS(lt_error(), "Available devices: cpu, meta, toy:0, toy:1");
  CHECK(!lt_device_parse("toy:", &d) && !lt_device_parse("toy:x", &d) &&
        !lt_device_parse("to", &d));
}

static void bad_backends_are_refused(void) {
  lt_Backend old = toy_backend;
  CHECK_INT(lt_device_register(&toy_backend), -1);
  CHECK_CONTAINS(lt_error(), "already");
  old.abi = 0;
  old.name = "old";
  CHECK_INT(lt_device_register(&old), -1);
  CHECK_CONTAINS(lt_error(), "another version");
  CHECK_INT(lt_device_load("/nowhere/backend.so"), -1);
  CHECK_CONTAINS(lt_error(), "/nowhere/backend.so");
}

static void missing_devices_report_the_reason(void) {
  lt_Device d;
  CHECK(!lt_device_parse("mps", &d));
  CHECK_CONTAINS(lt_error(), "expected an available device, got \"mps\"");
  CHECK(!lt_device_parse("gpu", &d));
  CHECK_CONTAINS(lt_error(), "expected an available device, got \"gpu\". Available devices: cpu");
}

static void work_is_queued(void) {
  const float two[] = {2, 3}, sum[] = {7, 10};
  lt_Tensor *host = floats(2, two), *x = copied_to(host, toy(0));
  lt_device_synchronize(toy(0));
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(x), LT_ARG(3)}, 2);
  lt_Tensor *z = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(y), lt_arg_scalar(lt_scalar_float(1))}, 2);
  CHECK_INT(toy_queued(0), 2);
  CHECK_STR(lt_device_name(lt_tensor_device(z)), "toy:0");
  lt_release(x); /* freed in order, after the work that reads it */
  lt_release(y);
  check_values(z, 2, sum);
  CHECK_INT(toy_queued(0), 0);
  lt_release(z);
  lt_release(host);
  lt_device_synchronize(toy(0));
  CHECK_INT(toy_allocations(), 0);
}

static void numbers_on_the_cpu_are_allowed(void) {
  const float two[] = {2, 3}, product[] = {5, 7.5f};
  lt_Tensor *host = floats(2, two), *x = copied_to(host, toy(0));
  lt_Tensor *factor = lt_scalar_tensor(lt_scalar_float(2.5), LT_float32);
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(x), LT_ARG(factor)}, 2);
  lt_release(factor); /* it was read at the call */
  check_values(y, 2, product);
  lt_release(x);
  lt_release(y);
  lt_release(host);
}

static void any_layout_and_dtype_can_be_copied(void) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  lt_Tensor *flat = floats(6, values);
  lt_Tensor *host =
      lt_op1(LT_OP_view, (lt_Arg[]){LT_ARG(flat), LT_INTS(((int64_t[]){2, 3}), 2)}, 2);
  lt_Tensor *across = lt_op1(LT_OP_transpose, (lt_Arg[]){LT_ARG(host), LT_ARG(0), LT_ARG(1)}, 3);
  lt_Tensor *x =
      lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(across), LT_ARG(toy(1)), lt_arg_dtype(LT_int64)}, 3);
  REQUIRE(x != NULL);
  CHECK_INT(x->dtype, LT_int64);
  CHECK_INT(x->shape[0], 3);
  lt_Tensor *there = copied_to(x, toy(0)), *same = copied_to(there, lt_cpu());
  CHECK_INT(same->strides[1], 3); /* the order in memory is kept */
  lt_Tensor *back = lt_op1(LT_OP_contiguous, (lt_Arg[]){LT_ARG(same)}, 1);
  const int64_t expected[] = {1, 4, 2, 5, 3, 6};
  for (int i = 0; i < 6; i++) CHECK_INT(((int64_t *)lt_tensor_data(back))[i], expected[i]);
  lt_Scalar item;
  lt_Tensor *row = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(there), LT_ARG(0), LT_ARG(2)}, 3);
  lt_Tensor *last = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(row), LT_ARG(0), LT_ARG(1)}, 3);
  CHECK(lt_tensor_item(last, &item) && item.i == 6);
  lt_Tensor *all[] = {flat, host, across, x, there, same, back, row, last};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

/* The device has neither float64 nor complex128: no tensor of these dtypes can be created there,
 * and no op computes in them. */
static void missing_dtypes_are_refused(void) {
  const float two[] = {2, 3};
  const char *hint = "hint: dtype = \"float32\", or x:to(\"float32\") first";
  lt_Tensor *x = floats(2, two), *there = copied_to(x, toy(0));
  lt_Tensor *wide = lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(x), LT_NIL, lt_arg_dtype(LT_float64)}, 3);
  REQUIRE(there && wide);
  CHECK(!copied_to(wide, toy(0)));
  CHECK_CONTAINS(lt_error(), "to: cannot use dtype \"float64\" on \"toy:0\": the device does not");
  CHECK_CONTAINS(lt_error(), hint);
  CHECK(!lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(there), LT_NIL, lt_arg_dtype(LT_complex128)}, 3));
  CHECK_CONTAINS(lt_error(), "dtype = \"complex64\"");
  CHECK(!lt_op1(LT_OP_sum, (lt_Arg[]){LT_ARG(there), LT_NIL, LT_ARG(0), lt_arg_dtype(LT_float64)},
                4));
  CHECK_CONTAINS(lt_error(), "sum: cannot use dtype \"float64\"");
  /* a copy between devices converts where the dtype exists */
  lt_Tensor *narrow =
      lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(wide), LT_ARG(toy(0)), lt_arg_dtype(LT_float32)}, 3);
  check_values(narrow, 2, two);
  lt_Tensor *back =
      lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(narrow), LT_ARG(lt_cpu()), lt_arg_dtype(LT_float64)}, 3);
  REQUIRE(back != NULL);
  CHECK_INT(back->dtype, LT_float64);
  CHECK_NEAR(((double *)lt_tensor_data(back))[1], 3.0, 0);
  lt_Tensor *copied = lt_do_in_place(_copy, LT_ARG(there), LT_ARG(wide), LT_ARG(0));
  CHECK(copied != NULL);
  check_values(there, 2, two);
  CHECK(!lt_op_supported(LT_OP_exp, there->storage->device.type, LT_float64));
  CHECK(!lt_device_has_dtype(there->storage->device.type, LT_complex128));
  CHECK(lt_device_has_dtype(there->storage->device.type, LT_complex64));
  lt_Tensor *all[] = {x, there, wide, narrow, back, copied};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

static void mixed_devices_are_refused(void) {
  const float two[] = {2, 3};
  lt_Tensor *x = floats(2, two), *y = copied_to(x, toy(1));
  CHECK(!lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(y), LT_ARG(x)}, 2));
  CHECK_STR(lt_error(),
            "add: cannot use tensors on different devices: self is on \"toy:1\", other is on "
            "\"cpu\"\nhint: other:to(\"toy:1\")\n  self has the shape {2}, other {2}");
  const lt_Tensor *pair[2];
  const lt_Storage *memory[2];
  CHECK(lt_error_tensors(pair, memory));
  CHECK(pair[0] == y && pair[1] == x && memory[0] == y->storage && memory[1] == x->storage);
  lt_error_name((lt_TensorLabel[]){{"y", " (made by hand)", "y.device", NULL}, {0}});
  CHECK_STR(lt_error(),
            "add: cannot use tensors on different devices: y is on \"toy:1\" (made by hand), other "
            "is on \"cpu\"\nhint: other:to(y.device)\n  y has the shape {2}, other {2}");
  lt_error_name((lt_TensorLabel[]){{0}, {.name = "net.x", .move = "net"}});
  CHECK(strstr(lt_error(), "self is on \"toy:1\", net.x is on \"cpu\"\nhint: net:to(\"toy:1\")\n"));
  lt_Tensor *list[] = {x, y};
  CHECK(!lt_op1(LT_OP_cat, (lt_Arg[]){LT_TENSORS(list, 2), LT_ARG(0)}, 2));
  CHECK(strstr(lt_error(),
               "tensors[1] is on \"cpu\", tensors[2] is on \"toy:1\"\nhint: tensors[1]:to(\"toy"));
  lt_error_set("another error");
  CHECK(!lt_error_tensors(pair, memory));
  lt_release(x);
  lt_release(y);
}

static void supported_ops_can_be_queried(void) {
  const float two[] = {2, 3};
  lt_Tensor *x = floats(2, two), *y = copied_to(x, toy(0));
  int type = toy(0).type;
  CHECK(lt_op_supported(LT_OP_add, type, LT_float32) &&
        lt_op_supported(LT_OP_view, type, LT_float32));
  CHECK(!lt_op_supported(LT_OP_erf, type, LT_float32) &&
        !lt_op_supported(LT_OP_prod, type, LT_DTYPE_NONE));
  CHECK(lt_op_supported(LT_OP_addmm, type, LT_DTYPE_NONE)); /* by other ops */
  const char *missing =
      "cannot run on device \"toy:0\": it has no kernel for this op\nhint: "
      "lt.set_fallback(true) (or LUTRA_FALLBACK=1 in the environment) runs it on the CPU, with two "
      "copies: its arguments to the CPU, its results back";
  CHECK(!lt_op1(LT_OP_prod, (lt_Arg[]){LT_ARG(y)}, 1));
  CHECK(strncmp(lt_error(), "prod: ", 6) == 0);
  CHECK_STR(lt_error() + 6, missing);
  CHECK(!lt_op1(LT_OP_erf, (lt_Arg[]){LT_ARG(y)}, 1));
  CHECK(strncmp(lt_error(), "erf: ", 5) == 0);
  CHECK_STR(lt_error() + 5, missing);
  CHECK(!lt_op1(LT_OP_mul,
                (lt_Arg[]){LT_ARG(y), LT_ARG(lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(y)}, 1))}, 2));
  CHECK(!lt_op1(LT_OP_var, (lt_Arg[]){LT_ARG(y)}, 1));
  CHECK_CONTAINS(lt_error(),
                 "var: cannot run: no kernel for its op '_var' on device \"toy:0\"\nhint: ");
  lt_release(x);
  lt_release(y);
}

static void gradients_run_where_the_tensors_are(void) {
  const float two[] = {2, 3}, slope[] = {4, 6};
  lt_Tensor *host = floats(2, two), *x = copied_to(host, toy(0));
  CHECK(lt_tensor_set_requires_grad(x, true));
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2);
  lt_Tensor *ones = lt_op1(LT_OP_ones_like, (lt_Arg[]){LT_ARG(y)}, 1);
  REQUIRE(y && ones);
  CHECK(lt_backward(1, &y, &ones, false, false, 0, NULL));
  REQUIRE(lt_tensor_grad(x) != NULL);
  CHECK_STR(lt_device_name(lt_tensor_device(lt_tensor_grad(x))), "toy:0");
  check_values(lt_tensor_grad(x), 2, slope);
  lt_release(ones);
  lt_release(y);
  lt_release(x);
  lt_release(host);
}

/* ---- ops without a kernel -------------------------------------------------------------------- */

static lt_Tensor *matrix(int rows, int columns, const float *values, lt_Device d) {
  lt_Tensor *flat = floats(rows * columns, values);
  lt_Tensor *host =
      lt_op1(LT_OP_view, (lt_Arg[]){LT_ARG(flat), LT_INTS(((int64_t[]){rows, columns}), 2)}, 2);
  lt_Tensor *there = copied_to(host, d);
  lt_release(host);
  lt_release(flat);
  return there;
}

static lt_Tensor *indices(const int64_t *shape, const int64_t *values, lt_Device d) {
  lt_Tensor *host = lt_empty(LT_int64, lt_cpu(), 2, shape);
  memcpy(lt_tensor_data(host), values, (size_t)host->numel * sizeof *values);
  lt_Tensor *there = copied_to(host, d);
  lt_release(host);
  return there;
}

/* Checks the result of a step and frees it. */
static void check_result(lt_Tensor *result, int n, const float *expected) {
  CHECK(result != NULL);
  if (!result) {
    check_report(__FILE__, __LINE__, "%s", lt_error());
    return;
  }
  CHECK_STR(lt_device_name(lt_tensor_device(result)), "toy:0");
  check_values(result, n, expected);
  lt_release(result);
}

static void five_kernels_run_a_program(void) {
  lt_Tensor *x = matrix(2, 2, (float[]){1, 2, 3, 4}, toy(0));
  lt_Tensor *at = indices((int64_t[]){2, 1}, (int64_t[]){2, 1}, toy(0));
  lt_Tensor *new = matrix(2, 1, (float[]){8, 9}, toy(0));
  REQUIRE(x && at && new);
  CHECK(lt_tensor_set_requires_grad(x, true));
  check_result(lt_op1(LT_OP_mm, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2), 4, (float[]){7, 10, 15, 22});
  check_result(lt_op1(LT_OP_sum, (lt_Arg[]){LT_ARG(x), LT_ARG(0)}, 2), 2, (float[]){4, 6});
  check_result(lt_op1(LT_OP_gather, (lt_Arg[]){LT_ARG(x), LT_ARG(1), LT_ARG(at)}, 3), 2,
               (float[]){2, 3});
  check_result(lt_op1(LT_OP__scatter, (lt_Arg[]){LT_ARG(x), LT_ARG(1), LT_ARG(at), LT_ARG(new)}, 4),
               4, (float[]){1, 8, 9, 4});
  /* a step of gradient descent: loss = sum((x @ x)^2) */
  lt_Tensor *product = lt_op1(LT_OP_mm, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2);
  lt_Tensor *square = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(product), LT_ARG(product)}, 2);
  lt_Tensor *loss = lt_op1(LT_OP_sum, (lt_Arg[]){LT_ARG(square)}, 1);
  REQUIRE(loss != NULL);
  CHECK(lt_backward(1, &loss, (lt_Tensor *[]){NULL}, false, false, 0, NULL));
  /* 2 (x x) x^T + 2 x^T (x x) */
  check_values(lt_tensor_grad(x), 4,
               (float[]){2 * 27 + 2 * 52, 2 * 61 + 2 * 76, 2 * 59 + 2 * 74, 2 * 133 + 2 * 108});
  lt_Tensor *all[] = {x, at, new, product, square, loss};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

static void composite_forms_replace_missing_kernels(void) {
  lt_Tensor *x = matrix(2, 2, (float[]){1, 2, 3, 4}, toy(0));
  lt_Tensor *bias = matrix(1, 2, (float[]){10, NAN}, toy(0));
  REQUIRE(x && bias);
  CHECK(lt_tensor_set_requires_grad(bias, true));
  check_result(lt_op1(LT_OP_mean, (lt_Arg[]){LT_ARG(x), LT_ARG(1)}, 2), 2, (float[]){1.5f, 3.5f});
  check_result(lt_op1(LT_OP_mean, (lt_Arg[]){LT_ARG(x)}, 1), 1, (float[]){2.5f});
  check_result(
      lt_op1(LT_OP_addmm, (lt_Arg[]){LT_ARG(x), LT_ARG(x), LT_ARG(x), LT_ARG(2), LT_ARG(3)}, 5), 4,
      (float[]){2 + 21, 4 + 30, 6 + 45, 8 + 66});
  lt_Tensor *y = lt_op1(LT_OP_addmm, (lt_Arg[]){LT_ARG(bias), LT_ARG(x), LT_ARG(x), LT_ARG(0)},
                        4); /* bias is not read */
  REQUIRE(y != NULL);
  check_values(y, 4, (float[]){7, 10, 15, 22});
  lt_Tensor *loss = lt_op1(LT_OP_sum, (lt_Arg[]){LT_ARG(y)}, 1);
  CHECK(lt_backward(1, &loss, (lt_Tensor *[]){NULL}, false, false, 0, NULL));
  check_values(lt_tensor_grad(bias), 2, (float[]){0, 0});
  CHECK(!lt_op1(LT_OP_addmm, (lt_Arg[]){LT_ARG(x), LT_ARG(x), LT_ARG(bias)},
                3)); /* the same errors */
  CHECK_CONTAINS(lt_error(), "addmm: cannot multiply");
  lt_Tensor *all[] = {x, bias, y, loss};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

/* Returns what the function writes to stderr. */
static const char *stderr_of(void (*run)(void)) {
  static char text[4096];
  fflush(stderr);
  int old = dup(2), ends[2];
  if (old < 0 || pipe(ends) != 0) return "";
  dup2(ends[1], 2);
  run();
  fflush(stderr);
  dup2(old, 2);
  close(old);
  close(ends[1]);
  ssize_t n = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  text[n > 0 ? n : 0] = 0;
  return text;
}

static void exp_twice(void) {
  for (int i = 0; i < 2; i++) {
    lt_Tensor *x = matrix(1, 2, (float[]){0, 1}, toy(0));
    check_result(lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(x)}, 1), 2, (float[]){1, 2.7182818f});
    lt_release(x);
  }
}

static void other_ops_fall_back_where_allowed(void) {
  CHECK(!lt_fallback_enabled());
  setenv("LUTRA_FALLBACK", "1", 1);
  CHECK(lt_fallback_enabled());
  lt_fallback_set_enabled(false); /* overrides the environment */
  CHECK(!lt_fallback_enabled());
  lt_fallback_set_enabled(true);
  unsetenv("LUTRA_FALLBACK");
  CHECK(lt_fallback_enabled());
  CHECK_STR(stderr_of(exp_twice),
            "lutra: warning: exp: no kernel on device \"toy:0\": running on the CPU, with two "
            "copies: its arguments to the CPU, its results back\n");
  CHECK_STR(stderr_of(exp_twice), "");
}

/* Tests views, lists, writes in place, two results, a shape that depends on the data, errors. */
static void fallbacks_match_kernels(void) {
  lt_Tensor *x = matrix(2, 3, (float[]){1, 5, 3, 4, 2, 6}, toy(0));
  lt_Tensor *across = lt_op1(LT_OP_transpose, (lt_Arg[]){LT_ARG(x), LT_ARG(0), LT_ARG(1)}, 3);
  REQUIRE(across != NULL);
  check_result(lt_op1(LT_OP_cumsum, (lt_Arg[]){LT_ARG(across), LT_ARG(1)}, 2), 6,
               (float[]){1, 5, 5, 7, 3, 9});
  check_result(
      lt_op1(LT_OP_cat, (lt_Arg[]){LT_TENSORS(((lt_Tensor *[]){across, across}), 2), LT_ARG(1)}, 2),
      12, (float[]){1, 4, 1, 4, 5, 2, 5, 2, 3, 6, 3, 6});
  lt_Tensor *at = indices((int64_t[]){2, 1}, (int64_t[]){3, 1}, toy(0));
  lt_Tensor *one = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(at), LT_ARG(1), LT_ARG(0)}, 3);
  lt_Tensor *row = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(x), LT_ARG(0), LT_ARG(1)}, 3);
  lt_Results r;
  CHECK(lt_call(LT_OP_index_fill, true, /* a part of x, in place */
                (lt_Arg[]){LT_ARG(row), LT_ARG(0), LT_ARG(one), lt_arg_scalar(lt_scalar_int(9))}, 4,
                &r));
  lt_results_release(&r);
  check_values(x, 6, (float[]){1, 5, 3, 9, 2, 9});
  CHECK(lt_call(LT_OP_exp, true, (lt_Arg[]){LT_ARG(row)}, 1, &r)); /* elementwise, in place */
  lt_results_release(&r);
  CHECK(lt_call(LT_OP_fill, true, (lt_Arg[]){LT_ARG(row), lt_arg_scalar(lt_scalar_int(7))}, 2, &r));
  lt_results_release(&r);
  lt_Tensor *down = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(across), LT_ARG(0), LT_ARG(2)}, 3);
  CHECK(lt_call(LT_OP_erf, true, (lt_Arg[]){LT_ARG(down)}, 1, &r)); /* strided */
  lt_results_release(&r);
  check_values(x, 6, (float[]){1, 5, erff(3), 7, 7, 1});
  REQUIRE(lt_call(LT_OP__max, false, (lt_Arg[]){LT_ARG(x), LT_ARG(1)}, 2, &r) && r.count == 2);
  check_values(r.few[0], 2, (float[]){5, 7});
  CHECK_STR(lt_device_name(lt_tensor_device(r.few[1])), "toy:0");
  lt_results_release(&r);
  lt_Tensor *large = lt_op1(LT_OP_gt, (lt_Arg[]){LT_ARG(x), lt_arg_scalar(lt_scalar_int(4))}, 2);
  check_result(lt_op1(LT_OP_masked_select, (lt_Arg[]){LT_ARG(x), LT_ARG(large)}, 2), 3,
               (float[]){5, 7, 7});
  CHECK(!lt_op1(LT_OP_index_select, (lt_Arg[]){LT_ARG(x), LT_ARG(0), LT_ARG(one)}, 3));
  CHECK_CONTAINS(lt_error(), "index_select: ");
  CHECK_CONTAINS(lt_error(), "3");
  lt_Tensor *all[] = {x, across, at, one, row, down, large};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

static void fallbacks_write_what_a_step_writes(void) {
  lt_Tensor *x[2][4]; /* on the CPU, on the device: self, grad, the two averages */
  for (int d = 0; d < 2; d++)
    for (int i = 0; i < 4; i++)
      x[d][i] = matrix(1, 2, (float[][2]){{1, 2}, {3, -4}, {0.5f, 0}, {0.25f, 1}}[i],
                       d ? toy(0) : lt_cpu());
  for (int d = 0; d < 2; d++) {
    lt_Results r;
    unsigned version = lt_tensor_version(x[d][3]);
    CHECK(lt_call(LT_OP__adam_step, false,
                  (lt_Arg[]){LT_TENSORS(&x[d][0], 1), LT_TENSORS(&x[d][1], 1),
                             LT_TENSORS(&x[d][2], 1), LT_TENSORS(&x[d][3], 1), LT_ARG(1.0),
                             LT_ARG(0.1), LT_ARG(0.9), LT_ARG(0.99), LT_ARG(1e-8), LT_ARG(0.01),
                             LT_ARG(true), LT_ARG(false)},
                  12, &r));
    lt_results_release(&r);
    CHECK(lt_tensor_version(x[d][3]) > version);
  }
  for (int i = 0; i < 4; i++) check_values(x[1][i], 2, lt_tensor_data(x[0][i]));
  for (int i = 0; i < 8; i++) lt_release(x[i / 4][i % 4]);
}

static void fallbacks_are_recorded_and_random(void) {
  lt_Tensor *x = matrix(1, 3, (float[]){2, 3, 4}, toy(0));
  CHECK(lt_tensor_set_requires_grad(x, true));
  lt_Tensor *y = lt_op1(LT_OP_prod, (lt_Arg[]){LT_ARG(x)}, 1);
  REQUIRE(y != NULL);
  CHECK(lt_backward(1, &y, (lt_Tensor *[]){NULL}, false, false, 0, NULL));
  check_values(lt_tensor_grad(x), 3, (float[]){12, 8, 6});
  lt_release(y);
  lt_release(x);
  lt_Tensor *drawn[2]; /* the same numbers as on the CPU */
  for (int d = 0; d < 2; d++) {
    lt_generator_seed(lt_generator_default(), 5);
    drawn[d] = lt_op1(
        LT_OP_rand,
        (lt_Arg[]){LT_INTS(((int64_t[]){4}), 1), LT_NIL, LT_NIL, LT_ARG(d ? toy(0) : lt_cpu())}, 4);
  }
  check_values(drawn[1], 4, lt_tensor_data(drawn[0]));
  lt_release(drawn[0]);
  lt_release(drawn[1]);
}

static void run_fallbacks(void) {
  fallbacks_match_kernels();
  fallbacks_write_what_a_step_writes();
  fallbacks_are_recorded_and_random();
}

static void fallbacks(void) {
  const char *warnings = stderr_of(run_fallbacks);
  for (const char *p = warnings; *p; p = strchr(p, '\n') + 1) { /* warnings, one for each op */
    CHECK(strncmp(p, "lutra: warning: ", 16) == 0);
    char line[200];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n") + 1, p);
    CHECK(strstr(p + 1, line) == NULL);
    if (!strchr(p, '\n')) break;
  }
  lt_fallback_set_enabled(false);
  lt_device_synchronize(toy(0));
}

static int copies_seen;
static void count_copy(void *context, const lt_TraceEvent *event) {
  (void)context;
  copies_seen += event->kind == LT_TRACE_COPY;
}

static void copies_of_a_fallback_are_traced(void) {
  lt_Tensor *x = matrix(1, 2, (float[]){0, 1}, toy(0));
  lt_Tracer tracer = {.on_event = count_copy};
  lt_fallback_set_enabled(true);
  lt_trace_add(&tracer);
  lt_release(lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(x)}, 1));
  lt_trace_remove(&tracer);
  lt_fallback_set_enabled(false);
  CHECK_INT(copies_seen, 2);
  lt_release(x);
}

static void core_kernels_are_required(void) {
  static lt_KernelFn some[LT_OP_COUNT];
  memcpy(some, toy_backend.kernels.table, sizeof some);
  lt_Backend lame = toy_backend;
  lame.name = "lame";
  lame.kernels.table = some;
  some[LT_OP_mm] = NULL;
  CHECK_INT(lt_device_register(&lame), -1);
  CHECK_STR(lt_error(), "device_register: device 'lame' lacks the core kernel 'mm'");
  some[LT_OP_mm] = toy_backend.kernels.table[LT_OP_mm];
  lame.kernels.elementwise = NULL;
  CHECK_INT(lt_device_register(&lame), -1);
  CHECK_STR(lt_error(), "device_register: device 'lame' lacks the core kernel 'elementwise'");
  lame.memory.alloc = NULL;
  CHECK_INT(lt_device_register(&lame), -1);
  CHECK_STR(lt_error(), "device_register: device 'lame' lacks the core function 'alloc'");
  int kernels = 1; /* elementwise */
  for (int i = 0; i < LT_OP_COUNT; i++) kernels += toy_backend.kernels.table[i] != NULL;
  CHECK_INT(kernels, 5);
}

static int requested_bytes;
static bool make_room(void *context, size_t expected) {
  (void)context;
  requested_bytes = (int)expected;
  return true;
}

static void allocations_are_retried(void) {
  toy_fail_next_alloc(1);
  lt_Tensor *x = lt_empty(LT_float32, toy(0), 1, (int64_t[]){10});
  CHECK(!x && lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "out of memory on \"toy:0\"");
  CHECK_CONTAINS(lt_error(), "the toy box is full");
  lt_memory_on_pressure(make_room, NULL);
  toy_fail_next_alloc(1);
  x = lt_empty(LT_float32, toy(0), 1, (int64_t[]){10});
  CHECK(x != NULL);
  CHECK_INT(requested_bytes, 40);
  lt_release(x);
  toy_fail_next_alloc(100); /* but not forever, whatever the host answers */
  CHECK(!lt_empty(LT_float32, toy(0), 1, (int64_t[]){10}));
  lt_memory_on_pressure(NULL, NULL);
  toy_fail_next_alloc(0);
}

static void events_keep_the_order(void) {
  lt_Stream *s = toy_backend.streams.current(&toy_backend, 0);
  lt_device_synchronize(toy(0));
  lt_Event *e = toy_backend.streams.event_create(&toy_backend, 0, false);
  lt_Tensor *x =
      lt_op1(LT_OP_zeros, (lt_Arg[]){LT_INTS(((int64_t[]){4}), 1), LT_NIL, LT_ARG(toy(0))}, 3);
  REQUIRE(x && e);
  CHECK(toy_backend.streams.event_record(e, s) && !toy_backend.streams.event_query(e));
  CHECK(toy_backend.streams.synchronize(s) && toy_backend.streams.event_query(e));
  toy_backend.streams.event_destroy(e);
  lt_release(x);
}

static char plugin[4096]; /* plugin_box.so, beside this program */

static void shared_objects_are_loaded(void) {
  lt_Device d;
  CHECK(lt_device_load(plugin) > 0);
  REQUIRE(lt_device_parse("box", &d));
  CHECK_STR(lt_device_name(d), "box");
  CHECK_INT(lt_device_load(plugin), -1);
  CHECK_CONTAINS(lt_error(), "cannot register \"box\": the device type exists already");
  const float two[] = {2, 3}, twice[] = {4, 6};
  lt_Tensor *host = floats(2, two), *x = copied_to(host, d);
  lt_Tensor *y = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2);
  check_values(y, 2, twice);
  CHECK(!lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(x), LT_ARG(y)},
                2)); /* its message is in the core's error slot */
  CHECK_CONTAINS(lt_error(), "add: out of memory on \"box\"");
  CHECK_CONTAINS(lt_error(), "both places in the box are taken");
  lt_release(x);
  lt_release(y);
  lt_release(host);
}

int main(int argc, char **argv) {
  const char *slash = argc ? strrchr(argv[0], '/') : NULL;
  snprintf(plugin, sizeof plugin, "%.*splugin_box.so", slash ? (int)(slash - argv[0]) + 1 : 0,
           argv[0]);
  RUN(is_registered);
  RUN(bad_backends_are_refused);
  RUN(missing_devices_report_the_reason);
  RUN(work_is_queued);
  RUN(numbers_on_the_cpu_are_allowed);
  RUN(any_layout_and_dtype_can_be_copied);
  RUN(missing_dtypes_are_refused);
  RUN(mixed_devices_are_refused);
  RUN(supported_ops_can_be_queried);
  RUN(gradients_run_where_the_tensors_are);
  RUN(five_kernels_run_a_program);
  RUN(composite_forms_replace_missing_kernels);
  RUN(other_ops_fall_back_where_allowed);
  RUN(fallbacks);
  RUN(copies_of_a_fallback_are_traced);
  RUN(core_kernels_are_required);
  RUN(allocations_are_retried);
  RUN(events_keep_the_order);
  RUN(shared_objects_are_loaded);
  return check_end();
}
