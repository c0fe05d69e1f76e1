/* test_interrupt.c: Ctrl-C in the core: long operations are interrupted, and so are plans and
 * blocking calls on a device. Results are freed and inputs stay valid.
 *
 * An interruption is detected by comparing the operation's time with its full time, measured in the
 * same run: when it is interrupted before it begins, it must end within half of that, at least once
 * in ten tries, since other processes may use the CPU. Not with sanitizers, which spend most time
 * on memory.
 */
#include "opids.h"
#include "check.h"
#include "core.h"
#include "plan.h"

#include <pthread.h>
#include <time.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif
#define N ((int64_t)1 << 22)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static lt_Tensor *do1(lt_OpId op, const lt_Arg *args, int n) { return lt_op1(op, args, n); }
#define DO(op, ...)                                                                                \
  do1(LT_OP_##op, (lt_Arg[]){__VA_ARGS__}, (int)(sizeof((lt_Arg[]){__VA_ARGS__}) / sizeof(lt_Arg)))
#define NIL ((lt_Arg){.kind = LT_ARG_NIL})
#define SIZE(...)                                                                                  \
  LT_INTS(((const int64_t[]){__VA_ARGS__}), (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8))

/* ---- the operations -------------------------------------------------------------------------- */

static lt_Tensor *x, *wide, *integers, *index_, *mask, *square, *doubles; /* inputs, created once */

static lt_Tensor *multiply(void) { return DO(mm, LT_ARG(square), LT_ARG(square)); }
static lt_Tensor *multiply_integers(void) { return DO(mm, LT_ARG(integers), LT_ARG(integers)); }
static lt_Tensor *draw(void) { return DO(randn, SIZE(4 * N)); }
static lt_Tensor *permute(void) { return DO(randperm, LT_ARG(N)); }
static lt_Tensor *sort(void) { return DO(sort, LT_ARG(x), LT_ARG(0)); }
static lt_Tensor *sort_doubles(void) { return DO(sort, LT_ARG(doubles), LT_ARG(0)); }
static lt_Tensor *first(void) { return DO(topk, LT_ARG(x), LT_ARG(N / 16)); }
static lt_Tensor *scan(void) { return DO(cumsum, LT_ARG(wide), LT_ARG(0)); }
static lt_Tensor *gather(void) { return DO(gather, LT_ARG(x), LT_ARG(0), LT_ARG(index_)); }
static lt_Tensor *scatter(void) {
  return DO(scatter_add, LT_ARG(x), LT_ARG(0), LT_ARG(index_), LT_ARG(x));
}
static lt_Tensor *pick(void) { return DO(index_select, LT_ARG(x), LT_ARG(0), LT_ARG(index_)); }
static lt_Tensor *add(void) {
  return DO(index_add, LT_ARG(x), LT_ARG(0), LT_ARG(index_), LT_ARG(x));
}
static lt_Tensor *where(void) { return DO(nonzero, LT_ARG(mask)); }
static lt_Tensor *flip(void) { return DO(flip, LT_ARG(wide), SIZE(0)); }
static lt_Tensor *cast(void) { return DO(to, LT_ARG(wide), NIL, lt_arg_dtype(LT_float64)); }
static lt_Tensor *join(void) {
  return DO(cat, LT_TENSORS(((lt_Tensor *[]){wide, wide}), 2), LT_ARG(0));
}
static lt_Tensor *count(void) { return DO(arange, lt_arg_scalar(lt_scalar_int(8 * N))); }
static lt_Tensor *soft(void) { return DO(softmax, LT_ARG(wide), LT_ARG(0)); }

static const struct {
  const char *name;
  lt_Tensor *(*run)(void);
} operations[] = {
    {"mm", multiply},       {"mm of int64", multiply_integers},
    {"randn", draw},        {"randperm", permute},
    {"sort", sort},         {"sort of float64", sort_doubles},
    {"topk", first},        {"cumsum", scan},
    {"gather", gather},     {"scatter_add", scatter},
    {"index_select", pick}, {"index_add", add},
    {"nonzero", where},     {"flip", flip},
    {"to", cast},           {"cat", join},
    {"arange", count},      {"softmax", soft},
};

static void make_inputs(void) {
  x = DO(rand, SIZE(N));
  wide = DO(rand, SIZE(8 * N));
  doubles = DO(to, LT_ARG(x), NIL, lt_arg_dtype(LT_float64));
  square = DO(rand, SIZE(2500, 2500));
  integers = DO(ones, SIZE(500, 500), lt_arg_dtype(LT_int64));
  index_ = DO(randperm, LT_ARG(N));
  mask = DO(gt, LT_ARG(wide), lt_arg_scalar(lt_scalar_float(0.5)));
  CHECK(x && wide && square && integers && index_ && mask);
}

static void drop_inputs(void) {
  lt_Tensor *all[] = {x, wide, integers, index_, mask, square, doubles};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static void *interrupt_after(void *after) {
  double seconds = *(double *)after;
  nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
  atomic_store(&lt_interrupt_flag, true);
  return NULL;
}

/* Returns how long the operation runs after it was interrupted. */
static double stopped_time(lt_Tensor *(*run)(void), const char *name) {
  atomic_store(&lt_interrupt_flag, true);
  double start = now();
  lt_Tensor *t = run();
  double took = now() - start;
  atomic_store(&lt_interrupt_flag, false);
  if (t || !strstr(lt_error(), "interrupted"))
    check_report(__FILE__, __LINE__, "%s: %s", name, t ? "it went on" : lt_error());
  lt_release(t);
  return took;
}

static void long_operations_are_interrupted(void) {
  if (LT_DEBUG) return;
  if (getenv("LUTRA_TEST_EMULATOR")) SKIP("a program that emulates the CPU changes the times");
  make_inputs();
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    double best = 1e9, full = 0;
    for (int try = 0; try < 10 && best >= full / 2; try++) {
      double start = now();
      lt_Tensor *t = operations[i].run();
      full = now() - start;
      if (!t) check_report(__FILE__, __LINE__, "%s: %s", operations[i].name, lt_error());
      lt_release(t);
      int64_t held = lt_memory_live();
      best = stopped_time(operations[i].run, operations[i].name);
      CHECK_INT(lt_memory_live(), held);
    }
    if (best >= full / 2)
      check_report(__FILE__, __LINE__, "%s went on for %.1f ms of %.1f", operations[i].name,
                   best * 1e3, full * 1e3);
  }
  drop_inputs();
}

static void an_op_in_place_fails_and_the_next_works(void) {
  lt_Tensor *ones = DO(ones, SIZE(N));
  atomic_store(&lt_interrupt_flag, true);
  lt_Results r = {0};
  CHECK(!lt_call(LT_OP_cumsum, false, (lt_Arg[]){LT_ARG(ones), LT_ARG(0)}, 2, &r));
  CHECK(strstr(lt_error(), "interrupted") != NULL);
  atomic_store(&lt_interrupt_flag, false);
  lt_Tensor *sum = DO(sum, LT_ARG(ones));
  CHECK(sum != NULL);
  if (sum) CHECK_INT((int64_t) * (float *)lt_tensor_data(sum), N);
  lt_release(sum);
  lt_release(ones);
}

/* Makes the plan of the sum of exp(t) * t. */
static lt_Plan *plan_of_sum(lt_Tensor *t) {
  lt_Recorder *r = lt_recorder_begin_for(lt_tensor_device(t));
  lt_Tensor *in = lt_recorder_stand_in(r, t, true), *exp = DO(exp, LT_ARG(in)),
            *product = DO(mul, LT_ARG(exp), LT_ARG(in)), *sum = DO(sum, LT_ARG(product));
  lt_Plan *p = lt_plan_new(r, 1, &sum, true, NULL, false);
  lt_Tensor *all[] = {exp, product, sum};
  for (int i = 0; i < 3; i++) lt_release(all[i]);
  lt_recorder_free(r);
  return p;
}

/* Runs the plan and its backward pass; returns the sum of the gradient, which is removed. */
static double gradient_of(lt_Plan *p, lt_Tensor *t) {
  lt_Tensor *out = NULL;
  CHECK(lt_plan_run(p, &t, NULL, &out) == LT_PLAN_RAN);
  CHECK(out && lt_backward(1, &out, NULL, false, false, 0, NULL));
  lt_Tensor *sum = DO(sum, LT_ARG(lt_tensor_grad(t)));
  CHECK(sum != NULL);
  double total = sum ? *(float *)lt_tensor_data(sum) : 0;
  lt_release(sum);
  lt_release(out);
  CHECK(lt_tensor_set_grad(t, NULL));
  return total;
}

static void a_plan_fails_and_its_next_run_works(void) {
  lt_Tensor *t = DO(rand, SIZE(1 << 16)), *out = NULL;
  CHECK(t && lt_tensor_set_requires_grad(t, true));
  atomic_store(&lt_interrupt_flag, true);
  CHECK(!plan_of_sum(t));
  CHECK(strstr(lt_error(), "interrupted") != NULL);
  atomic_store(&lt_interrupt_flag, false);
  lt_Plan *p = plan_of_sum(t);
  CHECK(p != NULL);
  double expected = gradient_of(p, t);
  int64_t held = lt_memory_live();
  for (int i = 0; i < 3; i++) {
    atomic_store(&lt_interrupt_flag, true);
    CHECK(lt_plan_run(p, &t, NULL, &out) == LT_PLAN_FAILED && !out);
    CHECK(strstr(lt_error(), "interrupted") != NULL);
    atomic_store(&lt_interrupt_flag, false);
    CHECK(lt_plan_run(p, &t, NULL, &out) == LT_PLAN_RAN);
    atomic_store(&lt_interrupt_flag, true);
    CHECK(!lt_backward(1, &out, NULL, false, false, 0, NULL) && !lt_tensor_grad(t));
    CHECK(strstr(lt_error(), "interrupted") != NULL);
    atomic_store(&lt_interrupt_flag, false);
    lt_release(out);
    out = NULL;
    CHECK(gradient_of(p, t) == expected);
    CHECK_INT(lt_memory_live(), held);
  }
  lt_plan_release(p);
  lt_release(t);
}

/* ---- split products -------------------------------------------------------------------------- */

/* Each element of a split product equals the product of its row and column: sums of small integers
 * are exact in any order. */
static void split_products_are_complete(void) {
  if (getenv("LUTRA_TEST_EMULATOR")) SKIP("the product of integers takes minutes by emulation");
  const int64_t m = 1500, n = 1300, k = 1200;
  lt_Arg low = LT_ARG(-8), high = LT_ARG(8);
  lt_Tensor *a = DO(randint, low, high, SIZE(m, k), NIL, lt_arg_dtype(LT_float32));
  lt_Tensor *b = DO(randint, low, high, SIZE(k, n), NIL, lt_arg_dtype(LT_float32));
  lt_Tensor *ai = a ? DO(to, LT_ARG(a), NIL, lt_arg_dtype(LT_int64)) : NULL;
  lt_Tensor *bi = b ? DO(to, LT_ARG(b), NIL, lt_arg_dtype(LT_int64)) : NULL;
  lt_Tensor *c = ai && bi ? DO(mm, LT_ARG(a), LT_ARG(b)) : NULL,
            *ci = c ? DO(mm, LT_ARG(ai), LT_ARG(bi)) : NULL;
  CHECK(ci != NULL);
  if (ci) {
    const float *f = lt_tensor_data(c);
    const int64_t *w = lt_tensor_data(ci);
    int64_t wrong = 0;
    for (int64_t i = 0; i < m * n; i++) wrong += (int64_t)f[i] != w[i];
    CHECK_INT(wrong, 0);
  }
  lt_Tensor *all[] = {a, b, ai, bi, c, ci};
  for (int i = 0; i < 6; i++) lt_release(all[i]);
}

/* ---- blocking calls -------------------------------------------------------------------------- */

/* A device that never completes its work. */
static bool never(lt_Stream *stream) {
  (void)stream;
  return false;
}
static bool never_all(const lt_Backend *self, int index) {
  (void)self;
  (void)index;
  return false;
}
static bool never_event(lt_Event *event) {
  (void)event;
  return false;
}
static bool once(lt_Stream *stream) {
  return stream->index++ > 3; /* the test uses the field as a counter */
}

static void blocking_calls_are_interrupted(void) {
  lt_Backend slow = {.streams.query = never,
                     .streams.device_query = never_all,
                     .streams.event_query = never_event};
  lt_Stream stream = {&slow, 0};
  lt_Event event = {&slow, 0};
  double soon = 0.01;
  for (int kind = 0; kind < 3; kind++) {
    pthread_t hand;
    pthread_create(&hand, NULL, interrupt_after, &soon);
    CHECK(!(kind == 0   ? lt_wait_stream(&stream)
            : kind == 1 ? lt_wait_event(&event)
                        : lt_wait_device(&slow, 0)));
    CHECK(strstr(lt_error(), "interrupted") != NULL);
    pthread_join(hand, NULL);
    atomic_store(&lt_interrupt_flag, false);
  }
}

static void blocking_calls_end_when_the_device_is_done(void) {
  lt_Backend quick = {.streams.query = once};
  lt_Stream stream = {&quick, 0};
  CHECK(lt_wait_stream(&stream));
  CHECK(stream.index > 3);
  lt_Backend none = {.name = "none"};
  CHECK(lt_wait_device(&none, 0));
}

int main(void) {
  RUN(long_operations_are_interrupted);
  RUN(an_op_in_place_fails_and_the_next_works);
  RUN(a_plan_fails_and_its_next_run_works);
  RUN(split_products_are_complete);
  RUN(blocking_calls_are_interrupted);
  RUN(blocking_calls_end_when_the_device_is_done);
  return check_end();
}
