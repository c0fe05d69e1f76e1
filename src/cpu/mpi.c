/* mpi.c: the communication part of the CPU's backend: see mpi_engine.h. */
#include "mpi.h"
#include "cpu.h"
#include "kernel.h"
#include "mpi_engine.h"

#include <limits.h>
#include <sched.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

lt_MpiEngine lt_mpi_engine = {.calls_lock = PTHREAD_MUTEX_INITIALIZER,
                              .queue_lock = PTHREAD_MUTEX_INITIALIZER,
                              .wake = PTHREAD_COND_INITIALIZER};

const char *lt_cpu_communication_find_library(char *why, size_t why_size) {
  const lt_MpiLibrary *m = lt_mpi();
  const char *chosen = getenv("LUTRA_MPI");
  if (!m && why_size && chosen && *chosen)
    snprintf(why, why_size,
             "the MPI library of the variable LUTRA_MPI, '%.100s', was not found\n"
             "hint: unset it, or set it to libmpi.so.40 or libmpich.so.12",
             chosen);
  else if (!m && why_size)
    snprintf(why, why_size,
             "no MPI library was found (libmpi.so.40, libmpich.so.12)\n"
             "hint: on Debian: apt install openmpi-bin");
  return m ? m->name : NULL;
}

bool lt_cpu_communication_is_started(void) { return lt_mpi_engine.started; }

/* Starts MPI and the helper thread. */
static bool start(const lt_MpiLibrary *m) {
  lt_MpiEngine *e = &lt_mpi_engine;
  int there = 0, ended = 0, level = 0, code = m->Initialized(&there);
  if (!code) code = m->Finalized(&ended);
  if (!code && ended)
    return lt_error_set(
        "init_process_group: MPI has ended in this process, and cannot start again");
  if (!code && !there) code = m->Init_thread(NULL, NULL, LT_MPI_THREAD_SERIALIZED, &level);
  if (!code) code = m->Query_thread(&level);
  if (!code) code = m->Comm_set_errhandler(m->world, m->errors_return);
  if (code) return lt_mpi_fail("init_process_group", code);
  if (level < LT_MPI_THREAD_SERIALIZED)
    return lt_error_set("init_process_group: %s was built or started without threads", m->name);
  if (!lt_mpi_operations_create()) return false;
  atomic_store(&e->stopping, false);
  if (pthread_create(&e->helper, NULL, lt_mpi_helper, NULL) != 0)
    return lt_error_set("init_process_group: cannot start a thread");
  e->started = true;
  return true;
}

bool lt_cpu_communication_job(int *rank, int *size) {
  char why[400];
  const lt_MpiLibrary *m = lt_mpi();
  if (!m) {
    lt_cpu_communication_find_library(why, sizeof why);
    return lt_error_set("init_process_group: %s", why);
  }
  if (!lt_mpi_engine.started && !start(m)) return false;
  pthread_mutex_lock(&lt_mpi_engine.calls_lock);
  int code = m->Comm_rank(m->world, rank);
  if (!code) code = m->Comm_size(m->world, size);
  pthread_mutex_unlock(&lt_mpi_engine.calls_lock);
  return code ? lt_mpi_fail("init_process_group", code) : true;
}

bool lt_cpu_communication_finalize(void) {
  lt_MpiEngine *e = &lt_mpi_engine;
  if (!e->started) return true;
  atomic_store(&e->stopping, true);
  pthread_mutex_lock(&e->queue_lock);
  pthread_cond_signal(&e->wake);
  pthread_mutex_unlock(&e->queue_lock);
  pthread_join(e->helper, NULL);
  e->started = false;
  int code = lt_mpi()->Finalize();
  return !code || lt_error_set("destroy_process_group: MPI_Finalize failed");
}

/* ---- communicators --------------------------------------------------------------------------- */

/* Creates MPI's communicator of the members. Blocks until all have called it. */
static int create_data(lt_MpiCommunicator *c, const lt_CommPlan *plan) {
  const lt_MpiLibrary *m = lt_mpi();
  lt_Mpi all = 0, some = 0;
  if (!plan->members) return m->Comm_dup(m->world, &c->data);
  int code = m->Comm_group(m->world, &all);
  if (!code) code = m->Group_incl(all, plan->size, plan->members, &some);
  if (!code) code = m->Comm_create_group(m->world, some, plan->number, &c->data);
  if (some) m->Group_free(&some);
  if (all) m->Group_free(&all);
  return code;
}

static bool copy_members(lt_MpiCommunicator *c, const lt_CommPlan *plan) {
  if (!plan->members) return true;
  size_t bytes = (size_t)plan->size * sizeof *c->members;
  c->members = malloc(bytes);
  return c->members && memcpy(c->members, plan->members, bytes);
}

lt_Communicator *lt_cpu_communicator_create(int index, const lt_CommPlan *plan) {
  const lt_MpiLibrary *m = lt_mpi();
  lt_MpiEngine *e = &lt_mpi_engine;
  if (!e->started)
    return lt_error_set("init_process_group: MPI was not started in this process, or has ended");
  lt_MpiCommunicator *c = calloc(1, sizeof *c);
  if (!c || !copy_members(c, plan)) {
    free(c);
    return lt_error_memory("init_process_group: out of memory");
  }
  c->base = (lt_Communicator){
      .backend = lt_backend_cpu(), .index = index, .rank = plan->rank, .size = plan->size};
  c->timeout = plan->timeout;
  c->check = plan->check;
  c->whole = !plan->members && plan->number == 0;
  pthread_mutex_lock(&e->calls_lock);
  int code = create_data(c, plan);
  if (!code) code = m->Comm_dup(c->data, &c->control);
  if (!code) code = m->Comm_set_errhandler(c->data, m->errors_return);
  if (!code) code = m->Comm_set_errhandler(c->control, m->errors_return);
  if (!code) {
    c->next = e->communicators;
    e->communicators = c;
  }
  pthread_mutex_unlock(&e->calls_lock);
  if (!code) return &c->base;
  free(c->members);
  free(c);
  lt_mpi_fail("init_process_group", code);
  return NULL;
}

/* Ends the ops of a list that belong to c. MPI may still write to the memory of those that run. */
static void give_up(lt_MpiOp **list, const lt_MpiCommunicator *c) {
  while (*list) {
    lt_MpiOp *op = *list;
    if (op->work->base.communicator == &c->base) {
      *list = op->next;
      op->work->base.keep = true;
      lt_mpi_end(op, "distributed: the process group was destroyed before the call was done");
    } else {
      list = &op->next;
    }
  }
}

/* Removes it from the engine. MPI's communicators are freed by MPI_Finalize only: to free them is a
 * collective call, and a rank that has failed would block it. */
void lt_cpu_communicator_destroy(lt_Communicator *communicator) {
  lt_MpiEngine *e = &lt_mpi_engine;
  lt_MpiCommunicator *c = (lt_MpiCommunicator *)communicator;
  pthread_mutex_lock(&e->calls_lock);
  lt_MpiCommunicator **place = &e->communicators;
  while (*place && *place != c) place = &(*place)->next;
  if (*place) *place = c->next;
  lt_mpi_take_inbox();
  give_up(&c->first, c);
  give_up(&e->messages, c);
  pthread_mutex_unlock(&e->calls_lock);
  free(c->members);
  free(c);
}

/* ---- works ----------------------------------------------------------------------------------- */

/* Copies the counts of an op, which the caller may free, if it has some. */
static bool copy_counts(lt_MpiOp *op, int size) {
  size_t bytes = (size_t)size * sizeof(int64_t);
  if (!op->call.input_counts) return true;
  int64_t *copy = malloc(2 * bytes);
  if (!copy) return lt_error_memory("all_to_all: out of memory");
  memcpy(copy, op->call.input_counts, bytes);
  memcpy(copy + size, op->call.output_counts, bytes);
  op->call.input_counts = copy;
  op->call.output_counts = copy + size;
  return true;
}

static void free_work(lt_MpiWork *work) {
  for (int i = 0; i < work->count; i++) free((void *)work->ops[i].call.input_counts);
  free(work);
}

/* Checks that the values of all pieces of a tensor fit in an int. */
static bool check_pieces(const lt_CommCall *call, const int64_t *counts, int size) {
  int64_t sum = 0, most = INT_MAX / lt_mpi_type(call->dtype).each;
  for (int i = 0; counts && i < size; i++) sum += counts[i];
  return sum <= most ||
         lt_error_set("%s: expected at most %lld elements in all pieces, got %lld",
                      lt_comm_kind_name(call->kind), (long long)most, (long long)sum);
}

/* Checks that the values of one rank fit in an int, where a call cannot be made in parts. */
static bool check_count(const lt_CommCall *call, int size) {
  bool parts = call->kind == LT_COMM_all_reduce || call->kind == LT_COMM_broadcast ||
               call->kind == LT_COMM_reduce || lt_comm_is_message(call->kind);
  if (parts || call->check_only) return true;
  if (call->count > INT64_C(1) << 29)
    return lt_error_set("%s: expected at most 2^29 elements for each rank, got %lld",
                        lt_comm_kind_name(call->kind), (long long)call->count);
  return check_pieces(call, call->input_counts, size) &&
         check_pieces(call, call->output_counts, size);
}

/* Fills in an op of a new work. Its number counts the calls of its communicator. */
static bool fill_op(lt_MpiWork *work, lt_MpiOp *op, const lt_CommCall *call) {
  lt_MpiCommunicator *c = (lt_MpiCommunicator *)work->base.communicator;
  if (!check_count(call, c->base.size)) return false;
  op->work = work;
  op->call = *call;
  if (!copy_counts(op, c->base.size)) return false;
  lt_mpi_record(op, c);
  op->record.number = ++c->submitted;
  op->call.label = op->call.refusal = NULL;
  return true;
}

lt_Work *lt_cpu_communication_submit(lt_Communicator *communicator, const lt_CommCall *calls,
                                     int count, bool now) {
  lt_MpiEngine *e = &lt_mpi_engine;
  const char *name = lt_comm_kind_name(calls[0].kind);
  if (!e->started) return lt_error_set("%s: MPI has ended in this process", name);
  lt_MpiWork *work = calloc(1, sizeof *work + (size_t)count * sizeof *work->ops);
  if (!work) return lt_error_memory("%s: out of memory", name);
  work->base.communicator = communicator;
  work->rank = lt_mpi_job_rank((lt_MpiCommunicator *)communicator, communicator->rank);
  work->base.source = -1;
  atomic_store(&work->left, count);
  for (; work->count < count; work->count++) {
    lt_MpiOp *op = &work->ops[work->count];
    if (!fill_op(work, op, &calls[work->count])) {
      free_work(work);
      return NULL;
    }
    if (work->count > 0) work->ops[work->count - 1].next = op;
  }
  atomic_fetch_add(&e->pending, count);
  pthread_mutex_lock(&e->queue_lock);
  if (e->inbox)
    e->inbox_end->next = &work->ops[0];
  else
    e->inbox = &work->ops[0];
  e->inbox_end = &work->ops[count - 1];
  if (!now) pthread_cond_signal(&e->wake);
  pthread_mutex_unlock(&e->queue_lock);
  return &work->base;
}

bool lt_cpu_work_is_done(lt_Work *base) {
  return atomic_load_explicit(&((lt_MpiWork *)base)->left, memory_order_acquire) == 0;
}

/* Lets other threads run, for longer the longer nothing has happened. */
static void back_off(int *idle, int64_t began) {
  if (++*idle < 64) return;
  int64_t waited = lt_trace_now() - began;
  if (waited < SECOND / 1000)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = waited < SECOND / 10 ? 20000 : 200000}, NULL);
}

bool lt_cpu_work_wait(lt_Work *base, double timeout) {
  lt_MpiEngine *e = &lt_mpi_engine;
  lt_MpiWork *work = (lt_MpiWork *)base;
  int64_t began = 0;
  int idle = 0;
  while (!lt_cpu_work_is_done(base)) {
    bool advanced = false;
    if (pthread_mutex_trylock(&e->calls_lock) == 0) {
      advanced = lt_mpi_progress();
      pthread_mutex_unlock(&e->calls_lock);
    }
    if (advanced) {
      idle = 0;
      continue;
    }
    if (!lt_check_interrupt()) return false;
    if (!began) began = lt_trace_now();
    if (timeout > 0 && (double)(lt_trace_now() - began) > timeout * (double)SECOND)
      return lt_error_set("%s: timed out after %g s on rank %d; the call still runs",
                          lt_comm_kind_name(work->ops[0].call.kind), timeout, work->rank);
    back_off(&idle, began);
  }
  return !work->failed || lt_error_set("%s", work->message);
}

void lt_cpu_work_release(lt_Work *base) {
  if (!base->keep) free_work((lt_MpiWork *)base);
}
