/* test_use.c: operands of running calls keep their memory. A host whose finalizers free tensors,
 * set their data and clear their grads is simulated by a pressure callback: an allocation of the
 * toy device that fails once runs it in the middle of a call. */
#include "opids.h"
#include "autograd/autograd.h"
#include "check.h"
#include "core.h"
#include "toy_device.h"

static lt_Device toy(void) {
  lt_Device d = lt_cpu();
  CHECK(lt_device_parse("toy:0", &d));
  return d;
}

static lt_Tensor *filled(double value) {
  return lt_op1(LT_OP_full,
                (lt_Arg[]){LT_INTS(((int64_t[]){3}), 1), LT_ARG(value), lt_arg_dtype(LT_float32),
                           LT_ARG(toy())},
                4);
}

/* Returns true when all three elements are `value`. */
static bool is(lt_Tensor *t, double value) {
  lt_Tensor *host = t ? lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(t), LT_ARG(lt_cpu())}, 2) : NULL;
  bool same = host && host->numel == 3;
  for (int i = 0; same && i < 3; i++) same = ((float *)lt_tensor_data(host))[i] == (float)value;
  lt_release(host);
  return same;
}

static lt_Tensor *add(lt_Tensor *a, lt_Tensor *b) {
  return lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2);
}

/* The host's action while memory is freed. */
static void (*pressure_action)(void);
static lt_Tensor *a, *b;
static int actions_run;

static bool collect(void *context, size_t expected) {
  (void)context;
  (void)expected;
  actions_run++;
  pressure_action();
  return true;
}

/* Makes the next allocation fail once, and `what` run then. */
static void run_on_next_allocation(void (*what)(void)) {
  pressure_action = what;
  actions_run = 0;
  lt_memory_on_pressure(collect, NULL);
  toy_fail_next_alloc(1);
}

static void cancel_pressure(void) {
  CHECK_INT(actions_run, 1);
  lt_memory_on_pressure(NULL, NULL);
  toy_fail_next_alloc(0);
  CHECK(lt_thread()->use == NULL);
  CHECK_INT(lt_thread()->frees_at_exit, 0);
}

static void begin(void) {
  CHECK(lt_device_synchronize(toy())); /* also frees what was released */
  a = filled(1);
  b = filled(2);
}

static void end(void) {
  lt_release(a);
  lt_release(b);
  a = b = NULL;
}

/* ---- free ------------------------------------------------------------------------------------ */

static void free_a(void) {
  CHECK(!lt_tensor_free(a) && a->freed == LT_FREED_AT_EXIT);
  CHECK_INT(a->numel, 3);
  CHECK(!lt_tensor_free(a));
}

static void an_operand_is_freed_at_the_end(void) {
  begin();
  int before = toy_allocations();
  run_on_next_allocation(free_a);
  lt_Tensor *sum = add(a, b);
  cancel_pressure();
  CHECK(is(sum, 3));
  CHECK_INT(a->freed, LT_FREED);
  CHECK_INT(a->numel, 0);
  CHECK(lt_device_synchronize(toy()));
  CHECK_INT(toy_allocations(), before); /* one more, one less */
  CHECK(!add(a, b));
  CHECK_STR(lt_error(),
            "add: expected a tensor for argument 'self', got a tensor that was freed (x:free())");
  CHECK(!add(b, a));
  CHECK_STR(lt_error(),
            "add: expected a tensor for argument 'other', got a tensor that was freed (x:free())");
  CHECK(lt_tensor_free(a));
  lt_release(sum);
  end();
}

static void an_unused_tensor_is_freed_at_once(void) {
  begin();
  int before = toy_allocations();
  CHECK(lt_tensor_free(a) && lt_tensor_free(a));
  CHECK(lt_device_synchronize(toy()));
  CHECK_INT(toy_allocations(), before - 1);
  CHECK_INT(a->freed, LT_FREED);
  CHECK(is(b, 2));
  end();
}

static void views_keep_the_memory(void) {
  begin();
  lt_Tensor *view = lt_op1(LT_OP_view, (lt_Arg[]){LT_ARG(a), LT_INTS(((int64_t[]){3}), 1)}, 2);
  CHECK(lt_tensor_free(a));
  CHECK(is(view, 1));
  lt_release(view);
  end();
}

static void a_failed_call_frees_too(void) {
  begin();
  run_on_next_allocation(free_a);
  toy_fail_next_alloc(100);
  pressure_action = free_a;
  CHECK(!add(a, b) && lt_error_is_memory());
  lt_memory_on_pressure(NULL, NULL);
  toy_fail_next_alloc(0);
  CHECK(lt_thread()->use == NULL);
  CHECK_INT(a->freed, LT_FREED);
  end();
}

/* A call inside of the callback uses a as well; after it the outer one still does. */
static void use_and_free_a(void) {
  lt_Tensor *twice = add(a, a);
  CHECK(is(twice, 2));
  lt_release(twice);
  free_a();
  CHECK_INT(a->numel, 3);
  lt_Tensor *other = add(b, b);
  CHECK(is(other, 4));
  lt_release(other);
  CHECK_INT(a->freed, LT_FREED_AT_EXIT);
}

static void calls_are_nested(void) {
  begin();
  run_on_next_allocation(use_and_free_a);
  lt_Tensor *sum = add(a, b);
  cancel_pressure();
  CHECK(is(sum, 3));
  CHECK_INT(a->freed, LT_FREED);
  lt_release(sum);
  end();
}

static lt_Tensor *base;

static void free_base(void) {
  CHECK(!lt_tensor_free(base));
  CHECK(!lt_tensor_set_data(base, b));
}

/* An op in place, recorded, on a view: it changes the base's history. */
static void the_base_of_an_operand_is_in_use(void) {
  begin();
  CHECK(lt_tensor_set_requires_grad(b, true));
  base = lt_op1(LT_OP_clone, (lt_Arg[]){LT_ARG(a)}, 1);
  lt_Tensor *view = lt_op1(LT_OP_view, (lt_Arg[]){LT_ARG(base), LT_INTS(((int64_t[]){3}), 1)}, 2);
  lt_Tensor *ones = filled(1);
  lt_Results r;
  run_on_next_allocation(free_base); /* where the old value is saved */
  CHECK(lt_call(LT_OP_mul, true, (lt_Arg[]){LT_ARG(view), LT_ARG(b)}, 2, &r));
  cancel_pressure();
  lt_results_release(&r);
  CHECK(base->freed == LT_FREED && is(view, 2));
  lt_release(view);
  lt_release(base);
  lt_release(ones);
  end();
}

static void tensors_of_lists_are_in_use(void) {
  lt_Use outer, inner;
  lt_Thread *th = lt_thread();
  begin();
  lt_Tensor *const list[] = {b, NULL, a};
  const lt_Arg args[] = {LT_ARG(1), LT_TENSORS(list, 3)}, again[] = {LT_ARG(a)};
  lt_use_enter(th, &outer, args, 2);
  lt_use_enter(th, &inner, again, 1);
  CHECK(lt_tensor_in_use(a) && lt_tensor_in_use(b));
  CHECK(!lt_tensor_free(a));
  CHECK_INT(th->frees_at_exit, 1);
  lt_use_leave(th, &inner);
  CHECK_INT(a->freed, LT_FREED_AT_EXIT);
  CHECK(is(a, 1)); /* the core keeps it until the end */
  lt_use_leave(th, &outer);
  CHECK_INT(a->freed, LT_FREED);
  CHECK(!lt_tensor_in_use(b));
  CHECK_INT(th->frees_at_exit, 0);
  end();
}

/* ---- other changes --------------------------------------------------------------------------- */

static void set_data_of_a(void) {
  CHECK(!lt_tensor_set_data(a, b));
  CHECK_CONTAINS(lt_error(), "set_data: cannot replace the data: a running call uses the tensor");
}

static void data_of_an_operand_cannot_be_replaced(void) {
  begin();
  run_on_next_allocation(set_data_of_a);
  lt_Tensor *sum = add(a, b);
  cancel_pressure();
  CHECK(is(sum, 3) && is(a, 1));
  CHECK(lt_tensor_set_data(a, b) && is(a, 2));
  lt_release(sum);
  end();
}

static void clear_grad_of_a(void) { CHECK(lt_tensor_set_grad(a, NULL)); }

static void a_cleared_grad_stays_until_the_sum(void) {
  begin();
  CHECK(lt_tensor_set_requires_grad(a, true));
  lt_Tensor *grad = filled(5), *y = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2),
            *ones = filled(1);
  CHECK(lt_backward(1, &y, &ones, true, false, 0, NULL));
  CHECK(is(lt_tensor_grad(a), 2));
  lt_release(grad);
  /* each allocation of the pass in turn */
  for (int at = 0; at < 8; at++) {
    CHECK(lt_backward(1, &y, &ones, true, true, 0, NULL));
    pressure_action = clear_grad_of_a;
    lt_memory_on_pressure(collect, NULL);
    toy_fail_after(at);
    CHECK(lt_backward(1, &y, &ones, true, true, 0, NULL));
    lt_memory_on_pressure(NULL, NULL);
    toy_fail_after(-1);
    CHECK(lt_tensor_set_grad(a, NULL));
  }
  lt_release(ones);
  lt_release(y);
  end();
}

/* ---- backward -------------------------------------------------------------------------------- */

static lt_Tensor *root, *gradient;

static bool free_all(void *context, lt_Tensor *grad, lt_Tensor **replacement) {
  (void)context;
  (void)grad;
  *replacement = NULL;
  CHECK(!lt_tensor_free(root) && !lt_tensor_free(gradient));
  CHECK(!lt_tensor_set_data(gradient, b));
  return true;
}

static bool free_given(void *context, lt_Tensor *grad, lt_Tensor **replacement) {
  (void)context;
  *replacement = NULL;
  CHECK(lt_tensor_free(grad));
  return true;
}

static bool free_leaf(void *context, lt_Tensor *grad, lt_Tensor **replacement) {
  (void)context;
  (void)grad;
  *replacement = NULL;
  CHECK(lt_tensor_free(a));
  return true;
}

static void hooks_may_free(void) {
  begin();
  CHECK(lt_tensor_set_requires_grad(a, true));
  CHECK(lt_tensor_set_requires_grad(b, true));
  root = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2);
  gradient = filled(7);
  CHECK(lt_tensor_add_hook(a, free_all, NULL, NULL) > 0);
  CHECK(lt_backward(1, &root, &gradient, false, false, 0, NULL));
  CHECK(is(lt_tensor_grad(a), 14) && is(lt_tensor_grad(b), 7));
  CHECK(root->freed == LT_FREED && gradient->freed == LT_FREED);
  CHECK(!lt_backward(1, &root, NULL, false, false, 0, NULL));
  CHECK_CONTAINS(
      lt_error(),
      "backward: expected a tensor for argument 'tensors[1]', got a tensor that was freed");
  lt_release(root);
  lt_release(gradient);
  end();
}

static void hooks_may_free_leaves_but_no_gradients(void) {
  begin();
  CHECK(lt_tensor_set_requires_grad(a, true));
  CHECK(lt_tensor_set_requires_grad(b, true));
  lt_Tensor *y = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2), *ones = filled(1);
  int id = lt_tensor_add_hook(b, free_given, NULL, NULL);
  CHECK(!lt_backward(1, &y, &ones, true, false, 0, NULL));
  CHECK_CONTAINS(lt_error(), "backward: cannot continue: a hook freed the gradient");
  CHECK(!lt_tensor_grad(a) && !lt_tensor_grad(b));
  CHECK(lt_tensor_remove_hook(b, id));
  CHECK(lt_tensor_add_hook(a, free_leaf, NULL, NULL) > 0);
  CHECK(lt_backward(1, &y, &ones, true, false, 0, NULL));
  CHECK(a->freed == LT_FREED && !lt_tensor_grad(a));
  CHECK(is(lt_tensor_grad(b), 1));
  CHECK(lt_backward(1, &y, &ones, false, false, 0, NULL)); /* the graph holds what it needs */
  CHECK(is(lt_tensor_grad(b), 2));
  lt_release(y);
  lt_release(ones);
  end();
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void functions_refuse_a_freed_tensor(void) {
  lt_Scalar s;
  begin();
  lt_tensor_free(a);
#define REFUSES(call, text)                                                                        \
  do {                                                                                             \
    lt_error_set("nothing");                                                                       \
    CHECK(!(call));                                                                                \
    CHECK_CONTAINS(lt_error(), text ", got a tensor that was freed (x:free())");                   \
  } while (0)
  REFUSES(lt_tensor_item(a, &s), "item: expected a tensor for argument 'self'");
  REFUSES(lt_tensor_set_data(a, b), "set_data: expected a tensor for argument 'self'");
  REFUSES(lt_tensor_set_data(b, a), "set_data: expected a tensor for argument 'data'");
  REFUSES(lt_tensor_set_requires_grad(a, true),
          "requires_grad_: expected a tensor for argument 'self'");
  REFUSES(lt_tensor_set_grad(a, b), "grad: expected a tensor for argument 'self'");
  REFUSES(lt_tensor_set_grad(b, a), "grad: expected a tensor for argument 'value'");
  REFUSES(lt_tensor_retain_grad(a), "retain_grad: expected a tensor for argument 'self'");
  REFUSES(lt_tensor_add_hook(a, free_all, NULL, NULL),
          "register_hook: expected a tensor for argument 'self'");
  REFUSES(lt_backward(1, &b, &a, false, false, 0, NULL),
          "backward: expected a tensor for argument 'gradients[1]'");
  REFUSES(lt_backward(1, &b, NULL, false, false, 1, &a),
          "backward: expected a tensor for argument 'inputs[1]'");
  lt_Tensor *const list[] = {b, a};
  REFUSES(lt_op1(LT_OP_cat, (lt_Arg[]){LT_TENSORS(list, 2)}, 1),
          "cat: expected a tensor for argument 'tensors[2]'");
  lt_Results r;
  REFUSES(lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2, &r),
          "add_: expected a tensor for argument 'self'");
  lt_CustomFunction f = {.name = "f"};
  REFUSES(lt_autograd_custom(&f, 1, &a, 1, &b), "expected a tensor for argument 'inputs[1]'");
  REFUSES(lt_autograd_custom(&f, 1, &b, 1, &a), "expected a tensor for argument 'results[1]'");
  CHECK(
      !lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG((lt_Tensor *)NULL), LT_ARG(b)}, 2)); /* passes through */
  CHECK(lt_tensor_set_grad(b, NULL) && lt_tensor_is_leaf(a) && !lt_tensor_grad(a));
  end();
}

int main(void) {
  if (lt_device_register(&toy_backend) < 0) return 1;
  RUN(an_operand_is_freed_at_the_end);
  RUN(an_unused_tensor_is_freed_at_once);
  RUN(views_keep_the_memory);
  RUN(a_failed_call_frees_too);
  RUN(calls_are_nested);
  RUN(the_base_of_an_operand_is_in_use);
  RUN(tensors_of_lists_are_in_use);
  RUN(data_of_an_operand_cannot_be_replaced);
  RUN(a_cleared_grad_stays_until_the_sum);
  RUN(hooks_may_free);
  RUN(hooks_may_free_leaves_but_no_gradients);
  RUN(functions_refuse_a_freed_tensor);
  return check_end();
}
