/* test_device.c: a device that came at run time is as good as one that was built in: asynchronous,
 * with memory of its own (toy_device.c). */
#include "check.h"
#include "core.h"
#include "toy_device.h"

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

/* A copy of t on a device. */
static lt_Tensor *onto(lt_Tensor *t, lt_Device d) {
  return lt_op1(LT_OP_to, (lt_Arg[]){A(t), A(d)}, 2);
}

static void check_values(lt_Tensor *t, int n, const float *want) {
  lt_Tensor *host = onto(t, lt_cpu());
  CHECK(host != NULL);
  if (!host) return;
  CHECK_INT(host->numel, n);
  for (int i = 0; i < n; i++)
    CHECK_NEAR((double)((float *)lt_tensor_data(host))[i], (double)want[i], 0);
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
  CHECK_CONTAINS(lt_error(), "Devices here: cpu, meta, toy:0, toy:1");
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

static void missing_devices_say_why(void) {
  lt_Device d;
  CHECK(!lt_device_parse("mps", &d));
  CHECK_CONTAINS(lt_error(), "no device \"mps\"");
  CHECK(!lt_device_parse("gpu", &d));
  CHECK_CONTAINS(lt_error(), "no device \"gpu\". Devices here: cpu");
}

static void work_waits_in_the_queue(void) {
  const float two[] = {2, 3}, sum[] = {7, 10};
  lt_Tensor *host = floats(2, two), *x = onto(host, toy(0));
  lt_device_synchronize(toy(0));
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){A(x), A(3)}, 2);
  lt_Tensor *z = lt_op1(LT_OP_add, (lt_Arg[]){A(y), lt_arg_scalar(lt_scalar_float(1))}, 2);
  CHECK_INT(toy_waiting(0), 2);
  CHECK_STR(lt_device_name(lt_tensor_device(z)), "toy:0");
  lt_release(x); /* freed in order, behind the work that reads it */
  lt_release(y);
  check_values(z, 2, sum);
  CHECK_INT(toy_waiting(0), 0);
  lt_release(z);
  lt_release(host);
  lt_device_synchronize(toy(0));
  CHECK_INT(toy_allocations(), 0);
}

static void numbers_of_the_cpu_may_come_along(void) {
  const float two[] = {2, 3}, product[] = {5, 7.5f};
  lt_Tensor *host = floats(2, two), *x = onto(host, toy(0));
  lt_Tensor *factor = lt_scalar_tensor(lt_scalar_float(2.5), LT_float32);
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){A(x), A(factor)}, 2);
  lt_release(factor); /* it was read at the call */
  check_values(y, 2, product);
  lt_release(x);
  lt_release(y);
  lt_release(host);
}

static void strange_layouts_and_dtypes_cross(void) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  lt_Tensor *flat = floats(6, values);
  lt_Tensor *host = lt_op1(LT_OP_view, (lt_Arg[]){A(flat), LT_INTS(((int64_t[]){2, 3}), 2)}, 2);
  lt_Tensor *across = lt_op1(LT_OP_transpose, (lt_Arg[]){A(host), A(0), A(1)}, 3);
  lt_Tensor *x = lt_op1(LT_OP_to, (lt_Arg[]){A(across), A(toy(1)), lt_arg_dtype(LT_int64)}, 3);
  REQUIRE(x != NULL);
  CHECK_INT(x->dtype, LT_int64);
  CHECK_INT(x->shape[0], 3);
  lt_Tensor *there = onto(x, toy(0)), *back = onto(there, lt_cpu());
  const int64_t want[] = {1, 4, 2, 5, 3, 6};
  for (int i = 0; i < 6; i++) CHECK_INT(((int64_t *)lt_tensor_data(back))[i], want[i]);
  lt_Scalar item;
  lt_Tensor *row = lt_op1(LT_OP_select, (lt_Arg[]){A(there), A(0), A(2)}, 3);
  lt_Tensor *last = lt_op1(LT_OP_select, (lt_Arg[]){A(row), A(0), A(1)}, 3);
  CHECK(lt_tensor_item(last, &item) && item.i == 6);
  lt_Tensor *all[] = {flat, host, across, x, there, back, row, last};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

static void mixed_devices_are_refused(void) {
  const float two[] = {2, 3};
  lt_Tensor *x = floats(2, two), *y = onto(x, toy(1));
  CHECK(!lt_op1(LT_OP_add, (lt_Arg[]){A(y), A(x)}, 2));
  CHECK_STR(lt_error(), "add: tensors are on different devices: self is on toy:1, other is on cpu. "
                        "Move one: other:to(\"toy:1\")\n"
                        "  self has the shape {2}, other {2}");
  const lt_Tensor *pair[2];
  const lt_Storage *memory[2];
  CHECK(lt_error_tensors(pair, memory));
  CHECK(pair[0] == y && pair[1] == x && memory[0] == y->storage && memory[1] == x->storage);
  lt_error_name((lt_Known[]){{"y", " (made by hand)", "y.device", NULL}, {0}});
  CHECK_STR(lt_error(),
            "add: tensors are on different devices: y is on toy:1 (made by hand), other "
            "is on cpu. Write other:to(y.device)\n"
            "  y has the shape {2}, other {2}");
  lt_error_name((lt_Known[]){{0}, {.name = "net.x", .move = "net"}});
  CHECK(strstr(lt_error(), "self is on toy:1, net.x is on cpu. Write net:to(\"toy:1\")\n"));
  lt_Tensor *list[] = {x, y};
  CHECK(!lt_op1(LT_OP_cat, (lt_Arg[]){LT_TENSORS(list, 2), A(0)}, 2));
  CHECK(strstr(lt_error(),
               "tensors[1] is on cpu, tensors[2] is on toy:1. Move one: tensors[1]:to(\"toy"));
  lt_error_set("another error");
  CHECK(!lt_error_tensors(pair, memory));
  lt_release(x);
  lt_release(y);
}

static void what_is_missing_can_be_asked(void) {
  const float two[] = {2, 3};
  lt_Tensor *x = floats(2, two), *y = onto(x, toy(0));
  int type = toy(0).type;
  CHECK(lt_op_supported(LT_OP_add, type, LT_float32) &&
        lt_op_supported(LT_OP_view, type, LT_float32));
  CHECK(!lt_op_supported(LT_OP_erf, type, LT_float32) &&
        !lt_op_supported(LT_OP_sum, type, LT_DTYPE_NONE));
  CHECK(!lt_op1(LT_OP_sum, (lt_Arg[]){A(y)}, 1));
  CHECK_CONTAINS(lt_error(), "sum: is not implemented on toy:0");
  lt_release(x);
  lt_release(y);
}

static void gradients_run_where_the_tensors_are(void) {
  const float two[] = {2, 3}, slope[] = {4, 6};
  lt_Tensor *host = floats(2, two), *x = onto(host, toy(0));
  CHECK(lt_tensor_set_requires_grad(x, true));
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){A(x), A(x)}, 2);
  lt_Tensor *ones = lt_op1(LT_OP_ones_like, (lt_Arg[]){A(y)}, 1);
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

static int asked;
static bool make_room(void *context, size_t wanted) {
  (void)context;
  asked = (int)wanted;
  return true;
}

static void memory_is_asked_for_again(void) {
  toy_fail_next_alloc(1);
  lt_Tensor *x = lt_empty(LT_float32, toy(0), 1, (int64_t[]){10});
  CHECK(!x && lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "out of memory on toy:0");
  CHECK_CONTAINS(lt_error(), "the toy box is full");
  lt_memory_on_pressure(make_room, NULL);
  toy_fail_next_alloc(1);
  x = lt_empty(LT_float32, toy(0), 1, (int64_t[]){10});
  CHECK(x != NULL);
  CHECK_INT(asked, 40);
  lt_release(x);
  toy_fail_next_alloc(100); /* and not for ever, whatever the host says */
  CHECK(!lt_empty(LT_float32, toy(0), 1, (int64_t[]){10}));
  lt_memory_on_pressure(NULL, NULL);
  toy_fail_next_alloc(0);
}

static void events_keep_the_order(void) {
  lt_Stream *s = toy_backend.stream_current(&toy_backend, 0);
  lt_device_synchronize(toy(0));
  lt_Event *e = toy_backend.event_new(&toy_backend, 0, false);
  lt_Tensor *x =
      lt_op1(LT_OP_zeros, (lt_Arg[]){LT_INTS(((int64_t[]){4}), 1), LT_NIL, A(toy(0))}, 3);
  REQUIRE(x && e);
  CHECK(toy_backend.event_record(e, s) && !toy_backend.event_query(e));
  CHECK(toy_backend.stream_synchronize(s) && toy_backend.event_query(e));
  toy_backend.event_free(e);
  lt_release(x);
}

static char plugin[4096]; /* plugin_box.so, beside this program */

static void shared_objects_are_loaded(void) {
  lt_Device d;
  CHECK(lt_device_load(plugin) > 0);
  REQUIRE(lt_device_parse("box", &d));
  CHECK_STR(lt_device_name(d), "box");
  CHECK_INT(lt_device_load(plugin), -1);
  CHECK_CONTAINS(lt_error(), "there is a device \"box\" already");
  const float two[] = {2, 3}, twice[] = {4, 6};
  lt_Tensor *host = floats(2, two), *x = onto(host, d);
  lt_Tensor *y = lt_op1(LT_OP_add, (lt_Arg[]){A(x), A(x)}, 2);
  check_values(y, 2, twice);
  CHECK(!lt_op1(LT_OP_add, (lt_Arg[]){A(x), A(y)}, 2)); /* its words come through the core's slot */
  CHECK_CONTAINS(lt_error(), "add: out of memory on box");
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
  RUN(missing_devices_say_why);
  RUN(work_waits_in_the_queue);
  RUN(numbers_of_the_cpu_may_come_along);
  RUN(strange_layouts_and_dtypes_cross);
  RUN(mixed_devices_are_refused);
  RUN(what_is_missing_can_be_asked);
  RUN(gradients_run_where_the_tensors_are);
  RUN(memory_is_asked_for_again);
  RUN(events_keep_the_order);
  RUN(shared_objects_are_loaded);
  return check_end();
}
