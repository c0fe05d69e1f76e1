/* mpi_progress.c: advances the calls of the engine: see mpi_engine.h. */
#include "mpi_engine.h"

#include <sched.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static lt_MpiCommunicator *communicator_of(const lt_MpiOp *op) {
  return (lt_MpiCommunicator *)op->work->base.communicator;
}

static bool is_message(const lt_MpiOp *op) { return lt_comm_is_message(op->call.kind); }

/* Frees the memory of an op that the library has used and uses no more. */
static void free_buffers(lt_MpiOp *op) {
  free(op->records);
  free(op->counts);
  free(op->all_counts);
  free(op->misfit);
  op->records = NULL;
  op->all_counts = NULL;
  op->counts = NULL;
  op->misfit = NULL;
}

void lt_mpi_end(lt_MpiOp *op, const char *message) {
  lt_MpiWork *work = op->work;
  lt_MpiCommunicator *c = communicator_of(op);
  op->state = LT_MPI_ENDED;
  if (!c->broken && c->last.number == op->record.number) c->last.active = 0;
  if (message && !work->failed) {
    work->failed = true;
    snprintf(work->message, sizeof work->message, "%s", message);
  }
  work->base.finished = lt_trace_now();
  if (!work->base.keep) free_buffers(op);
  atomic_fetch_sub(&lt_mpi_engine.pending, 1);
  atomic_fetch_sub_explicit(&work->left, 1, memory_order_release);
}

/* Ends an op with the error that MPI reports. */
static void end_with_code(lt_MpiOp *op, int code) {
  lt_mpi_fail(lt_comm_kind_name(op->call.kind), code);
  lt_mpi_end(op, lt_error());
}

/* Tests the request of an op. Returns true when it has ended, also by an error, which ends the
 * op. */
static bool request_ended(lt_MpiOp *op, lt_MpiStatus *status) {
  int flag = 0, code = lt_mpi()->Test(&op->request, &flag, status);
  if (code) end_with_code(op, code);
  return code || flag;
}

/* Starts to compare the calls of all ranks. The second value is the complement of the first, so
 * that one maximum gives the largest and the smallest hash. */
static void begin_check(lt_MpiOp *op) {
  lt_MpiCommunicator *c = communicator_of(op);
  const lt_MpiLibrary *m = lt_mpi();
  int code = m->Iallreduce(op->hash, op->all, 2, m->uint64, m->max, c->control, &op->request);
  op->state = LT_MPI_CHECKING;
  if (code) end_with_code(op, code);
}

static void begin_comparison(lt_MpiOp *op) {
  lt_MpiCommunicator *c = communicator_of(op);
  const lt_MpiLibrary *m = lt_mpi();
  int n = (int)sizeof op->record, code = 1;
  op->records = malloc((size_t)c->base.size * sizeof op->record);
  if (op->records)
    code =
        m->Iallgather(&op->record, n, m->byte, op->records, n, m->byte, c->control, &op->request);
  op->state = LT_MPI_COMPARING;
  if (code) end_with_code(op, code);
}

/* Starts to compare the counts of an all_to_all. */
static void begin_count_check(lt_MpiOp *op) {
  const lt_MpiLibrary *m = lt_mpi();
  op->hash[0] = lt_mpi_counts_hash(op);
  int code = m->Iallreduce(op->hash, op->all, 1, m->uint64, m->sum, communicator_of(op)->control,
                           &op->request);
  op->state = LT_MPI_CHECKING_COUNTS;
  if (code) end_with_code(op, code);
}

static void begin_count_comparison(lt_MpiOp *op) {
  lt_MpiCommunicator *c = communicator_of(op);
  const lt_MpiLibrary *m = lt_mpi();
  size_t bytes = 2 * (size_t)c->base.size * sizeof *op->all_counts;
  int code = 1;
  op->all_counts = malloc(bytes * (size_t)c->base.size);
  if (op->all_counts) /* the output counts follow the input counts: mpi.c */
    code = m->Iallgather(op->call.input_counts, (int)bytes, m->byte, op->all_counts, (int)bytes,
                         m->byte, c->control, &op->request);
  op->state = LT_MPI_COMPARING_COUNTS;
  if (code) end_with_code(op, code);
}

static void end_run(lt_MpiOp *op);
/* Starts the data exchange of an op, or its next part. */
static void begin_run(lt_MpiOp *op) {
  op->state = LT_MPI_RUNNING;
  if (op->call.kind == LT_COMM_barrier || op->call.check_only ||
      (op->call.count == 0 && !op->call.input_counts && !is_message(op))) {
    lt_mpi_end(op, NULL);
    return;
  }
  int code = lt_mpi_start(op);
  if (code) {
    end_with_code(op, code);
  } else if (op->request == lt_mpi()->request_null && !is_message(op)) {
    end_run(op);
  }
}

/* Records who sent the message of a recv, and checks that it had the size of the tensor. */
static void end_receive(lt_MpiOp *op, const lt_MpiStatus *status) {
  const lt_MpiLibrary *m = lt_mpi();
  int bytes = 0, size = (int)lt_dtype_size(op->call.dtype);
  int source = status->words[m->source_word];
  char text[200];
  if (op->work->count == 1) op->work->base.source = source;
  if (!op->misfit) {
    end_run(op);
    return;
  }
  m->Get_count(status, m->byte, &bytes);
  bool whole = bytes % size == 0;
  snprintf(text, sizeof text, "recv: expected %lld elements of %s from rank %d, got %lld%s",
           (long long)op->call.count, lt_dtype_name(op->call.dtype),
           lt_mpi_job_rank(communicator_of(op), source),
           (long long)(whole ? op->moved + bytes / size : bytes), whole ? "" : " bytes");
  lt_mpi_end(op, text);
}

/* Ends the exchange of one part; of the last: ends the op. */
static void end_run(lt_MpiOp *op) {
  lt_MpiCommunicator *c = communicator_of(op);
  op->moved += lt_mpi_part(op);
  if (op->moved < op->call.count) {
    begin_run(op);
    return;
  }
  if (op->call.reduction == LT_COMM_avg &&
      (op->call.kind != LT_COMM_reduce || c->base.rank == op->call.peer))
    lt_mpi_divide(op->call.output, op->call.count, op->call.dtype, c->base.size);
  lt_mpi_end(op, NULL);
}

static void begin(lt_MpiOp *op) {
  lt_MpiCommunicator *c = communicator_of(op);
  op->started = lt_trace_now();
  if (c->broken) {
    char text[200];
    snprintf(text, sizeof text,
             "%s: cannot use this process group: an earlier call of it timed out\n"
             "hint: end the job, and start it again from its last checkpoint",
             lt_comm_kind_name(op->call.kind));
    lt_mpi_end(op, text);
    return;
  }
  c->last = op->record;
  if (!is_message(op) && (c->check || op->call.kind == LT_COMM_barrier || op->call.check_only)) {
    begin_check(op);
  } else {
    begin_run(op);
  }
}

/* Fails an op that the other ranks have blocked for longer than the timeout of its communicator.
 * The library may still write to its memory, so that this is never freed. */
static void end_late(lt_MpiOp *op) {
  lt_MpiCommunicator *c = communicator_of(op);
  char text[1200];
  double seconds = op->call.timeout > 0 ? op->call.timeout : c->timeout;
  if ((double)(lt_trace_now() - op->started) < seconds * (double)SECOND) return;
  lt_mpi_describe_timeout(op, seconds, text, sizeof text);
  c->broken = true;
  op->work->base.keep = true;
  lt_mpi_end(op, text);
}

/* Handles the end of the request of an op. */
static void end_step(lt_MpiOp *op, const lt_MpiStatus *status) {
  char text[1200];
  switch (op->state) {
  case LT_MPI_CHECKING:
    if (op->all[0] != ~op->all[1]) {
      begin_comparison(op);
      return;
    }
    op->work->base.arrived = lt_trace_now();
    if (op->call.input_counts)
      begin_count_check(op);
    else
      begin_run(op);
    return;
  case LT_MPI_COMPARING:
    lt_mpi_describe_difference(op, text, sizeof text);
    lt_mpi_end(op, text);
    return;
  case LT_MPI_CHECKING_COUNTS:
    if (op->all[0] == 0)
      begin_run(op);
    else
      begin_count_comparison(op);
    return;
  case LT_MPI_COMPARING_COUNTS:
    lt_mpi_describe_counts(op, text, sizeof text);
    lt_mpi_end(op, text);
    return;
  default:
    if (op->call.kind == LT_COMM_recv)
      end_receive(op, status);
    else
      end_run(op);
  }
}

/* Advances one op. Returns whether it advanced. */
static bool step(lt_MpiOp *op) {
  lt_MpiStatus status;
  if (op->state == LT_MPI_QUEUED) {
    begin(op);
    return true;
  }
  if (lt_mpi_is_unmatched(op)) {
    int code = lt_mpi_match(op);
    if (code) end_with_code(op, code);
    if (!lt_mpi_is_unmatched(op)) return true;
    end_late(op);
    return op->state == LT_MPI_ENDED;
  }
  if (!request_ended(op, &status)) {
    end_late(op);
    return op->state == LT_MPI_ENDED;
  }
  if (op->state != LT_MPI_ENDED) end_step(op, &status); /* ended by an error */
  return true;
}

void lt_mpi_take_inbox(void) {
  lt_MpiEngine *e = &lt_mpi_engine;
  pthread_mutex_lock(&e->queue_lock);
  lt_MpiOp *op = e->inbox;
  e->inbox = e->inbox_end = NULL;
  pthread_mutex_unlock(&e->queue_lock);
  while (op) {
    lt_MpiOp *next = op->next;
    lt_MpiCommunicator *c = communicator_of(op);
    op->next = NULL;
    if (is_message(op)) {
      lt_MpiOp **end = &e->messages;
      while (*end) end = &(*end)->next;
      *end = op;
    } else if (c->first) {
      c->end = c->end->next = op;
    } else {
      c->first = c->end = op;
    }
    op = next;
  }
}

/* Advances the collectives of a communicator, in order. An op that has ended may be freed by the
 * thread that waits for it, so it is first removed from the queue. */
static bool advance_queue(lt_MpiCommunicator *c) {
  bool advanced = false, moved = true;
  while (c->first && moved) {
    lt_MpiOp *op = c->first, *next = op->next;
    lt_MpiWork *work = op->work;
    atomic_fetch_add(&work->left, 1); /* keeps the work */
    moved = step(op);
    if (op->state == LT_MPI_ENDED) c->first = next;
    advanced = advanced || moved;
    atomic_fetch_sub_explicit(&work->left, 1, memory_order_release);
  }
  return advanced;
}

static bool advance_messages(void) {
  bool advanced = false;
  for (lt_MpiOp **place = &lt_mpi_engine.messages; *place;) {
    lt_MpiOp *op = *place, *next = op->next;
    lt_MpiWork *work = op->work;
    atomic_fetch_add(&work->left, 1);
    advanced = step(op) || advanced;
    if (op->state == LT_MPI_ENDED)
      *place = next;
    else
      place = &op->next;
    atomic_fetch_sub_explicit(&work->left, 1, memory_order_release);
  }
  return advanced;
}

bool lt_mpi_progress(void) {
  lt_MpiEngine *e = &lt_mpi_engine;
  bool advanced = false;
  int64_t now = lt_trace_now();
  lt_mpi_take_inbox();
  for (lt_MpiCommunicator *c = e->communicators; c; c = c->next)
    advanced = advance_queue(c) || advanced;
  if (e->messages) advanced = advance_messages() || advanced;
  if (now - e->answered > SECOND / 1000) {
    lt_mpi_answer();
    e->answered = now;
  }
  return advanced;
}

/* Blocks until an op is submitted, or for a tenth of a second. */
static void wait_for_work(lt_MpiEngine *e) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += SECOND / 10;
  if (until.tv_nsec >= SECOND) {
    until.tv_nsec -= SECOND;
    until.tv_sec++;
  }
  pthread_mutex_lock(&e->queue_lock);
  if (!e->inbox && !e->stopping) pthread_cond_timedwait(&e->wake, &e->queue_lock, &until);
  pthread_mutex_unlock(&e->queue_lock);
}

void *lt_mpi_helper(void *unused) {
  lt_MpiEngine *e = &lt_mpi_engine;
  int idle = 0;
  (void)unused;
  while (!e->stopping) {
    bool advanced = false;
    if (pthread_mutex_trylock(&e->calls_lock) == 0) {
      advanced = lt_mpi_progress();
      pthread_mutex_unlock(&e->calls_lock);
    }
    idle = advanced ? 0 : idle + 1;
    if (atomic_load(&e->pending) == 0) {
      wait_for_work(e);
    } else if (idle > 100) {
      nanosleep(&(struct timespec){.tv_nsec = idle > 1000 ? 100000 : 20000}, NULL);
    } else {
      sched_yield();
    }
  }
  return NULL;
}
