/* test_trace.c: the events that tracers get: each event once, nested as it happened, with the right
 * bytes and devices; and nothing without a tracer. */
#include "opids.h"
#include "check.h"
#include "trace.h"

enum { MOST = 64 };

typedef struct EventLog {
  int count;
  lt_TraceEvent event[MOST];
  char name[MOST][40], where[MOST][40];
} EventLog;

static void log_event(void *context, const lt_TraceEvent *event) {
  EventLog *h = context;
  if (h->count == MOST) return;
  h->event[h->count] = *event;
  snprintf(h->name[h->count], sizeof h->name[0], "%s", event->name ? event->name : "");
  snprintf(h->where[h->count], sizeof h->where[0], "%s", event->where);
  h->count++;
}

/* Returns the n-th event of a kind, from 1; NULL when there are fewer. */
static const lt_TraceEvent *nth(const EventLog *h, lt_TraceKind kind, int n) {
  for (int i = 0; i < h->count; i++)
    if (h->event[i].kind == kind && --n == 0) return &h->event[i];
  return NULL;
}

static lt_Tensor *floats(int64_t n) {
  lt_Arg args[] = {LT_INTS(&n, 1)};
  return lt_op1(LT_OP_ones, args, 1);
}

static void an_op_is_traced_with_its_result(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_Tensor *x = floats(100);
  lt_trace_add(&tracer);
  lt_Tensor *y = lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(x)}, 1);
  lt_trace_remove(&tracer);
  const lt_TraceEvent *op = nth(&h, LT_TRACE_OP, 1), *made = nth(&h, LT_TRACE_ALLOC, 1);
  CHECK(op && made);
  CHECK_INT(h.count, 2);
  CHECK_STR(h.name[1], "exp");
  CHECK_INT(op->bytes, 400);
  CHECK_INT(op->shape[0], 100);
  CHECK_INT(op->ndim, 1);
  CHECK(op->kernel && !op->failed && op->end >= op->begin);
  CHECK_INT(made->bytes, 400);
  CHECK_INT(made->depth, 1);
  CHECK(made->begin >= op->begin && made->end <= op->end);
  lt_release(y);
  lt_release(x);
  CHECK_INT(h.count, 2); /* the tracer was removed */
}

/* The begins and ends of ops, as text: "mean(sum()div())". */
typedef struct Outline {
  char text[200];
} Outline;

static void write_begin(void *context, const char *name) {
  Outline *o = context;
  size_t at = strlen(o->text);
  snprintf(o->text + at, sizeof o->text - at, "%s(", name);
}

static void write_end(void *context, const lt_TraceEvent *event) {
  Outline *o = context;
  size_t at = strlen(o->text);
  if (event->kind == LT_TRACE_OP && at + 1 < sizeof o->text) memcpy(o->text + at, ")", 2);
}

static void each_op_that_begins_ends(void) {
  Outline o = {""};
  lt_Tracer tracer = {.on_begin = write_begin, .on_event = write_end, .context = &o};
  lt_Tensor *x = floats(100);
  lt_trace_add(&tracer);
  lt_release(lt_op1(LT_OP_clone, (lt_Arg[]){LT_ARG(x)}, 1));
  CHECK(!lt_op1(LT_OP_mm, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2)); /* an error */
  lt_trace_remove(&tracer);
  CHECK_STR(o.text, "clone(copy())mm()");
  lt_release(x);
}

static void an_op_in_place_reports_what_it_writes(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_Tensor *x = floats(10);
  lt_Tensor *third = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(x), LT_ARG(0), LT_ARG(2)}, 3);
  lt_Results r;
  lt_trace_add(&tracer);
  CHECK(lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(third), LT_ARG(0.5)}, 2, &r));
  lt_trace_remove(&tracer);
  const lt_TraceEvent *op = nth(&h, LT_TRACE_OP, 1);
  CHECK(op && op->in_place && op->target == x->storage);
  CHECK_INT(op->offset, 8);
  lt_results_release(&r);
  lt_release(third);
  lt_release(x);
}

static void parts_are_traced_before_their_composite(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_trace_add(&tracer);
  lt_Tensor *x = floats(8); /* a composite */
  lt_trace_remove(&tracer);
  const lt_TraceEvent *whole = &h.event[h.count - 1];
  CHECK_STR(h.name[h.count - 1], "ones");
  CHECK(!whole->kernel);
  CHECK_INT(whole->depth, 0);
  CHECK_INT(whole->bytes, 0);
  CHECK(h.count > 2);
  int64_t inside = 0;
  for (int i = 0; i < h.count - 1; i++) {
    CHECK(h.event[i].depth > 0);
    if (h.event[i].depth == 1) inside += h.event[i].end - h.event[i].begin;
  }
  CHECK(whole->inside >= inside);
  lt_release(x);
}

static void a_failed_op_is_traced_as_failed(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_Tensor *x = floats(3), *y = floats(4);
  lt_trace_add(&tracer);
  lt_Tensor *z = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(x), LT_ARG(y)}, 2);
  lt_trace_remove(&tracer);
  CHECK(z == NULL);
  CHECK_INT(h.count, 1);
  CHECK(h.event[0].failed);
  CHECK_STR(h.name[0], "add");
  lt_release(x);
  lt_release(y);
}

static void freed_memory_is_traced(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_Tensor *x = floats(1000);
  lt_trace_add(&tracer);
  lt_release(x);
  lt_trace_remove(&tracer);
  CHECK_INT(h.count, 1);
  CHECK_INT(h.event[0].kind, LT_TRACE_FREE);
  CHECK_INT(h.event[0].bytes, 4000);
}

static void write_line(void *context, char *text, size_t size) {
  int *calls = context;
  ++*calls;
  snprintf(text, size, "train.lua:12");
}

static void the_hosts_line_is_requested_once_per_call(void) {
  EventLog h = {0};
  int calls = 0;
  lt_Tracer tracer = {.on_event = log_event, .context = &h, .where = true};
  lt_memory_on_where(write_line, &calls);
  lt_trace_add(&tracer);
  lt_Tensor *x = floats(8);
  lt_trace_remove(&tracer);
  lt_memory_on_where(NULL, NULL);
  CHECK_INT(calls, 1);
  for (int i = 0; i < h.count; i++) CHECK_STR(h.where[i], "train.lua:12");
  lt_release(x);
}

static void two_tracers_get_the_same_events(void) {
  EventLog a = {0}, b = {0};
  lt_Tracer first = {.on_event = log_event, .context = &a},
            second = {.on_event = log_event, .context = &b};
  lt_trace_add(&first);
  lt_trace_add(&second);
  lt_release(floats(8));
  lt_trace_remove(&first);
  CHECK(a.count > 0);
  CHECK_INT(a.count, b.count);
  lt_release(floats(8));
  lt_trace_remove(&second);
  lt_trace_remove(&second); /* has no effect */
  CHECK_INT(b.count, 2 * a.count);
  CHECK(!lt_tracing());
}

static void a_region_is_removed_when_left(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_trace_add(&tracer);
  lt_TraceSpan outer, inner;
  CHECK(lt_trace_begin(&outer, LT_TRACE_REGION));
  CHECK(lt_trace_begin(&inner, LT_TRACE_REGION));
  lt_trace_cancel(&outer);
  outer.event.name = "outer";
  inner.event.name = "inner";
  lt_trace_end(&inner, true);
  lt_trace_remove(&tracer);
  CHECK(lt_thread()->span == NULL);
  CHECK_INT(h.count, 1);
  CHECK_STR(h.name[0], "inner");
  CHECK(!lt_trace_begin(&outer, LT_TRACE_REGION)); /* there is no tracer */
}

/* The question that a tracer was asked, and the answer that it gives. */
typedef struct Question {
  int count;
  lt_TraceEvent last;
  lt_TraceAnswer answer;
} Question;

static lt_TraceAnswer answer(void *context, const lt_TraceEvent *planned) {
  Question *a = context;
  a->count++;
  a->last = *planned;
  if (a->answer == LT_TRACE_MAY_NOT) lt_error_set("not here");
  return a->answer;
}

static void the_newest_tracer_that_answers_decides_about_a_copy(void) {
  Question outer = {.answer = LT_TRACE_MAY_NOT}, inner = {.answer = LT_TRACE_NO_OPINION};
  lt_Tracer first = {.may_copy = answer, .context = &outer};
  lt_Tracer second = {.may_copy = answer, .context = &inner};
  lt_Storage source = {.nbytes = 8};
  lt_TraceCopy plan = {.source = &source, .offset = 4, .nbytes = 4, .blocking = true};
  lt_TraceSpan span;
  lt_trace_add(&first);
  lt_trace_add(&second);

  CHECK(lt_trace_begin(&span, LT_TRACE_COPY));
  CHECK(!lt_trace_plan(&span, &plan)); /* and the span has ended */
  CHECK_STR(lt_error(), "not here");
  CHECK(lt_thread()->span == NULL);
  CHECK_INT(inner.count, 1);
  CHECK_INT(outer.count, 1);
  CHECK(outer.last.storage == &source);
  CHECK_INT(outer.last.offset, 4);

  inner.answer = LT_TRACE_MAY;
  CHECK(lt_trace_begin(&span, LT_TRACE_COPY));
  CHECK(lt_trace_plan(&span, &plan));
  CHECK(lt_trace_copied(&span, &plan, true));
  CHECK_INT(outer.count, 1); /* no other tracer is asked */
  lt_trace_remove(&second);
  lt_trace_remove(&first);
}

static void equal_bytes_have_equal_digests(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h, .digest = true};
  char bytes[3][13] = {"twelve bytes", "twelve bytes", "twelve bytex"};
  lt_trace_add(&tracer);
  for (int i = 0; i < 4; i++) {
    lt_TraceCopy plan = {.host = bytes[i % 3], .nbytes = i == 3 ? 11 : 12, .blocking = true};
    lt_TraceSpan span;
    CHECK(lt_trace_begin(&span, LT_TRACE_COPY) && lt_trace_plan(&span, &plan));
    CHECK(lt_trace_copied(&span, &plan, true));
  }
  lt_trace_remove(&tracer);
  CHECK_INT(h.count, 4);
  CHECK(h.event[0].digest != 0 && h.event[0].digest == h.event[1].digest);
  CHECK(h.event[0].digest != h.event[2].digest && h.event[0].digest != h.event[3].digest);
}

int main(void) {
  RUN(an_op_is_traced_with_its_result);
  RUN(each_op_that_begins_ends);
  RUN(an_op_in_place_reports_what_it_writes);
  RUN(parts_are_traced_before_their_composite);
  RUN(a_failed_op_is_traced_as_failed);
  RUN(freed_memory_is_traced);
  RUN(the_hosts_line_is_requested_once_per_call);
  RUN(two_tracers_get_the_same_events);
  RUN(a_region_is_removed_when_left);
  RUN(the_newest_tracer_that_answers_decides_about_a_copy);
  RUN(equal_bytes_have_equal_digests);
  return check_end();
}
