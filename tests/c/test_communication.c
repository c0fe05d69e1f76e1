/* test_communication.c: the sizes of collectives, and the events that tracers get about them, on a
 * backend that only records what it is asked for. */
#include "check.h"
#include "trace.h"

enum { MOST = 16, RANK = 1, SIZE = 4 };

/* The fake backend. */
typedef struct Fake {
  int submits, waits;
  bool done, fails;
} Fake;
static Fake fake;
static lt_Communicator fake_communicator;
static lt_Work fake_work;

static lt_Communicator *fake_create(int index, const lt_CommPlan *plan);
static lt_Work *fake_submit(lt_Communicator *m, const lt_CommCall *calls, int count, bool now) {
  (void)calls, (void)count, (void)now;
  fake.submits++;
  if (fake.fails) {
    lt_error_set("all_reduce: cannot reach rank 2");
    return NULL;
  }
  fake_work = (lt_Work){.communicator = m, .source = -1};
  return &fake_work;
}
static bool fake_is_done(lt_Work *work) {
  (void)work;
  return fake.done;
}
static bool fake_wait(lt_Work *work, double timeout) {
  (void)timeout;
  fake.waits++;
  fake.done = true;
  work->arrived = lt_trace_now();
  work->finished = work->arrived + 1000;
  return !fake.fails;
}
static const lt_Backend backend = {
    .name = "fake",
    .host_memory = true,
    .communication = {
        .create = fake_create, .submit = fake_submit, .is_done = fake_is_done, .wait = fake_wait}};
static lt_Communicator *fake_create(int index, const lt_CommPlan *plan) {
  if (plan->size < 1) return NULL;
  fake_communicator = (lt_Communicator){&backend, index, plan->rank, plan->size, -1, -1};
  return &fake_communicator;
}

typedef struct EventLog {
  int count;
  lt_TraceEvent event[MOST];
  char name[MOST][40];
} EventLog;

static void log_event(void *context, const lt_TraceEvent *event) {
  EventLog *h = context;
  if (h->count == MOST) return;
  h->event[h->count] = *event;
  snprintf(h->name[h->count++], sizeof h->name[0], "%s", event->name ? event->name : "");
}

static lt_Communicator *communicator(void) {
  fake = (Fake){0};
  lt_CommPlan plan = {.rank = RANK, .size = SIZE, .number = 7};
  return lt_comm_create(&backend, 0, &plan);
}

static const float numbers[6] = {1, 2, 3, 4, 5, 6};

/* Returns a call with 6 elements of float32, root or peer 2. */
static lt_CommCall call_of(lt_CommKind kind) {
  return (lt_CommCall){.kind = kind,
                       .dtype = LT_float32,
                       .peer = 2,
                       .tag = 3,
                       .count = 6,
                       .input = numbers,
                       .ndim = 2,
                       .shape = {2, 3},
                       .label = ""};
}

/* Checks the payload, in elements, and the bytes of a ring, in bytes, on one rank of 4. */
static void check_sizes(lt_CommKind kind, int rank, int64_t sent, int64_t received, int64_t link) {
  lt_CommCall call = call_of(kind);
  int64_t a, b;
  lt_comm_bytes(&call, rank, SIZE, &a, &b);
  CHECK_INT(a, sent * 4);
  CHECK_INT(b, received * 4);
  CHECK_INT(lt_comm_link_bytes(&call, rank, SIZE), link);
}

static void the_payload_is_what_others_need_or_give(void) {
  check_sizes(LT_COMM_broadcast, 1, 0, 6, 24);
  check_sizes(LT_COMM_broadcast, 2, 6, 0, 24);
  check_sizes(LT_COMM_all_reduce, 1, 6, 6, 36); /* 2 * 3 / 4 of 24 bytes */
  check_sizes(LT_COMM_reduce, 1, 6, 0, 24);
  check_sizes(LT_COMM_reduce, 2, 0, 6, 24);
  check_sizes(LT_COMM_all_gather, 1, 6, 18, 72);
  check_sizes(LT_COMM_gather, 1, 6, 0, 72);
  check_sizes(LT_COMM_gather, 2, 0, 18, 72);
  check_sizes(LT_COMM_scatter, 1, 0, 6, 72);
  check_sizes(LT_COMM_scatter, 2, 18, 0, 72);
  check_sizes(LT_COMM_reduce_scatter, 1, 18, 6, 72);
  check_sizes(LT_COMM_all_to_all, 1, 18, 18, 72);
  check_sizes(LT_COMM_send, 1, 6, 0, 24);
  check_sizes(LT_COMM_recv, 1, 0, 6, 24);
  check_sizes(LT_COMM_barrier, 1, 0, 0, 0);
}

static void own_elements_do_not_count(void) {
  int64_t in[SIZE] = {1, 100, 2, 3}, out[SIZE] = {4, 100, 5, 6}, sent, received;
  lt_CommCall call = call_of(LT_COMM_all_to_all);
  call.input_counts = in;
  call.output_counts = out;
  lt_comm_bytes(&call, RANK, SIZE, &sent, &received);
  CHECK_INT(sent, 6 * 4);
  CHECK_INT(received, 15 * 4);
  for (int kind = 0; kind < LT_COMM_KIND_COUNT; kind++) { /* a group of one */
    call = call_of((lt_CommKind)kind);
    lt_comm_bytes(&call, 0, 1, &sent, &received);
    CHECK_INT(sent + received, 0);
    CHECK_INT(lt_comm_link_bytes(&call, 0, 1), 0);
  }
}

static void a_collective_and_its_wait_are_events(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h, .digest = true};
  lt_Communicator *m = communicator();
  lt_CommCall call = call_of(LT_COMM_all_reduce);
  lt_trace_add(&tracer);
  lt_Work *work = lt_comm_submit(m, &call, 1, true);
  CHECK(work && lt_comm_wait(work, 0));
  lt_trace_remove(&tracer);
  CHECK_INT(h.count, 2);
  const lt_TraceEvent *e = &h.event[0], *w = &h.event[1];
  CHECK_INT(e->kind, LT_TRACE_COLLECTIVE);
  CHECK_STR(h.name[0], "all_reduce");
  CHECK(e->blocking && e->comm.now && e->digest != 0);
  CHECK_INT(e->bytes, 24);
  CHECK_INT(e->comm.sent, 24);
  CHECK_INT(e->comm.link_bytes, 36);
  CHECK_INT(e->comm.size, SIZE);
  CHECK_INT(e->comm.rank, RANK);
  CHECK_INT(e->comm.group, 7);
  CHECK_INT(e->comm.sequence, 1);
  CHECK_INT(e->comm.peer, -1);
  CHECK_STR(e->comm.reduction, "sum");
  CHECK_INT(e->comm.arrived, 0); /* the work is not done yet */
  CHECK_INT(e->ndim, 2);
  CHECK_INT(e->shape[1], 3);
  CHECK_INT(w->kind, LT_TRACE_WAIT);
  CHECK_INT(w->bytes, 0);
  CHECK_STR(h.name[1], "all_reduce");
  CHECK(w->comm.work == e->comm.work && w->comm.sequence == 1);
  CHECK(w->comm.arrived >= w->begin && w->comm.finished == w->comm.arrived + 1000);
}

static void a_group_of_one_has_the_bytes_of_its_tensor(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  fake = (Fake){0};
  lt_CommPlan plan = {.size = 1};
  lt_Communicator *m = lt_comm_create(&backend, 0, &plan);
  lt_CommCall call = call_of(LT_COMM_all_gather);
  lt_trace_add(&tracer);
  CHECK(lt_comm_submit(m, &call, 1, true) != NULL);
  lt_trace_remove(&tracer);
  CHECK_INT(h.event[0].bytes, 24);
  CHECK_INT(h.event[0].comm.sent, 0);
}

static void an_input_has_a_digest_in_place_too(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h, .digest = true};
  lt_Communicator *m = communicator();
  float copy[6];
  memcpy(copy, numbers, sizeof copy);
  lt_CommCall gather = call_of(LT_COMM_all_gather), reduce = call_of(LT_COMM_all_reduce);
  lt_CommCall receive = call_of(LT_COMM_recv);
  receive.input = reduce.input = NULL;
  receive.output = reduce.output = copy;
  lt_trace_add(&tracer);
  CHECK(lt_comm_submit(m, &gather, 1, true) && lt_comm_submit(m, &reduce, 1, true) &&
        lt_comm_submit(m, &receive, 1, true));
  lt_trace_remove(&tracer);
  CHECK(h.event[0].digest != 0 && h.event[0].digest == h.event[1].digest);
  CHECK_INT((int64_t)h.event[2].digest, 0);
}

static void collectives_are_numbered_and_messages_are_not(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_Communicator *m = communicator();
  lt_CommCall barrier = call_of(LT_COMM_barrier);
  lt_CommCall messages[] = {call_of(LT_COMM_send), call_of(LT_COMM_recv)};
  CHECK(lt_comm_submit(m, &barrier, 1, true) != NULL); /* counts without a tracer, too */
  lt_trace_add(&tracer);
  CHECK(lt_comm_submit(m, messages, 2, false) != NULL);
  CHECK(lt_comm_submit(m, &barrier, 1, false) != NULL);
  lt_trace_remove(&tracer);
  CHECK_INT(h.count, 3);
  CHECK_STR(h.name[0], "send");
  CHECK_STR(h.name[1], "recv");
  CHECK_STR(h.name[2], "barrier");
  CHECK_INT(h.event[0].comm.sequence, 0);
  CHECK_INT(h.event[0].comm.peer, 2);
  CHECK_INT(h.event[0].comm.tag, 3);
  CHECK(h.event[0].comm.work == h.event[1].comm.work && !h.event[0].comm.now);
  CHECK_INT(h.event[2].comm.sequence, 2);
  CHECK_INT(h.event[2].ndim, -1);
}

static lt_TraceAnswer refuse(void *context, const lt_TraceEvent *planned) {
  (void)context;
  CHECK_INT(planned->kind, LT_TRACE_COLLECTIVE);
  lt_error_set("refused");
  return LT_TRACE_MAY_NOT;
}

static void a_tracer_can_refuse_a_collective(void) {
  lt_Tracer tracer = {.may_copy = refuse};
  lt_Communicator *m = communicator();
  lt_CommCall call = call_of(LT_COMM_all_reduce);
  lt_trace_add(&tracer);
  CHECK(lt_comm_submit(m, &call, 1, true) == NULL);
  lt_trace_remove(&tracer);
  CHECK_STR(lt_error(), "refused");
  CHECK_INT(fake.submits, 0);
  CHECK_INT(m->calls, 0);
}

static void a_failure_is_reported_and_passed_on(void) {
  EventLog h = {0};
  lt_Tracer tracer = {.on_event = log_event, .context = &h};
  lt_Communicator *m = communicator();
  lt_CommCall call = call_of(LT_COMM_all_reduce);
  lt_Work *work = lt_comm_submit(m, &call, 1, false);
  fake.fails = true;
  lt_trace_add(&tracer);
  CHECK(!lt_comm_wait(work, 0));
  CHECK(lt_comm_submit(m, &call, 1, true) == NULL);
  lt_trace_remove(&tracer);
  CHECK_INT(h.count, 2);
  CHECK(h.event[0].failed && h.event[1].failed);
  lt_CommPlan wrong = {.size = 0};
  CHECK(lt_comm_create(&backend, 0, &wrong) == NULL);
}

int main(void) {
  RUN(the_payload_is_what_others_need_or_give);
  RUN(own_elements_do_not_count);
  RUN(a_collective_and_its_wait_are_events);
  RUN(a_group_of_one_has_the_bytes_of_its_tensor);
  RUN(an_input_has_a_digest_in_place_too);
  RUN(collectives_are_numbered_and_messages_are_not);
  RUN(a_tracer_can_refuse_a_collective);
  RUN(a_failure_is_reported_and_passed_on);
  return check_end();
}
