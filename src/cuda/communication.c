/* communication.c: communicators and works of CUDA tensors, by NCCL.
 *
 * Each communicator has a stream of its own, with high priority. A call waits there for the work
 * that was queued on the caller's stream before it; `wait` makes the caller's stream wait for the
 * call. So the host is not blocked, and calls run beside kernels.
 *
 * NCCL has no timeout, and a rank that waits for one that has ended may wait forever. So each
 * communicator has a thread, the watchdog, that looks at the calls that are not done. After an
 * error or a timeout it aborts NCCL's communicator, which ends its calls: then the device goes on,
 * with wrong values in their tensors. The error is raised once by the next call that could use
 * them: a wait for a work, another call on the communicator, or a copy to the host. */
#include "communication.h"
#include "nccl_calls.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { WATCH = 50 /* milliseconds between two looks */, PRIORITY = -100 };

typedef struct Communicator Communicator;

/* A work is in its communicator's list until it is done. */
typedef struct Work {
  lt_Work base;
  Communicator *c;
  lt_Event *ready, *done; /* recorded on the caller's stream, and behind the call */
  atomic_int refs;        /* the caller, and the list */
  atomic_bool complete;   /* done without an error */
  bool blocks;            /* a barrier: `wait` blocks the host */
  double timeout;         /* seconds */
  int64_t began;          /* when it was first seen to wait for the other ranks; 0: not yet */
  const char *kind;
  char label[LT_COMM_LABEL_BYTES];
  struct Work *next;
} Work;

struct Communicator {
  lt_Communicator base;
  double timeout;
  lt_Stream *stream;
  atomic_int refs;      /* its owner, and its works */
  pthread_mutex_t lock; /* protects the members below */
  pthread_cond_t wake;
  pthread_t watchdog;
  lt_NcclEnd end; /* end.comm is NULL after a failure */
  Work *first, *last;
  bool stopping;
  atomic_bool failed;
  bool raised; /* the message below has been raised */
  char message[500];
  Communicator *next; /* in the list of all */
};

/* All communicators that are not destroyed. all_lock is taken before a communicator's lock. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static Communicator *all;
static atomic_int total; /* their number */

static const lt_Nccl *library(void) {
  char why[400];
  return lt_cuda_nccl(why, sizeof why);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_shortly(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

/* ---- lifetime -------------------------------------------------------------------------------- */

static void drop_communicator(Communicator *c) {
  if (atomic_fetch_sub(&c->refs, 1) != 1) return;
  pthread_mutex_destroy(&c->lock);
  pthread_cond_destroy(&c->wake);
  free(c);
}

static void drop_work(Work *w) {
  if (atomic_fetch_sub(&w->refs, 1) != 1) return;
  const lt_DeviceStreams *s = &lt_cuda_backend.streams;
  s->event_destroy(w->ready);
  s->event_destroy(w->done);
  drop_communicator(w->c);
  free(w);
}

/* Creates a work of a call; NULL with an error. */
static Work *make_work(Communicator *c, const lt_CommCall *call) {
  const lt_DeviceStreams *s = &lt_cuda_backend.streams;
  Work *w = calloc(1, sizeof *w);
  if (!w) return lt_error_memory("%s: out of memory", lt_comm_kind_name(call->kind));
  w->base.communicator = &c->base;
  w->base.source = call->kind == LT_COMM_recv ? call->peer : -1;
  w->c = c;
  atomic_fetch_add(&c->refs, 1);
  atomic_init(&w->refs, 1);
  w->blocks = call->kind == LT_COMM_barrier;
  w->timeout = call->timeout > 0 ? call->timeout : c->timeout;
  w->kind = lt_comm_kind_name(call->kind);
  snprintf(w->label, sizeof w->label, "%s", call->label ? call->label : "");
  w->ready = s->event_create(&lt_cuda_backend, c->base.index, false);
  w->done = w->ready ? s->event_create(&lt_cuda_backend, c->base.index, false) : NULL;
  if (w->done) return w;
  drop_work(w);
  return NULL;
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Returns NCCL's own text about an error of a communicator (NULL: of this thread's last call), with
 * a separator before it; or "". */
static const char *detail(void *comm, char *text, size_t size) {
  const lt_Nccl *nccl = library();
  const char *last = nccl->GetLastError ? nccl->GetLastError(comm) : NULL;
  snprintf(text, size, "%s%s", last && *last ? ": " : "", last ? last : "");
  return text;
}

/* Stores why the communicator has failed, and aborts it. Its lock is held. */
static void fail_communicator(Communicator *c, const Work *w, const char *reason) {
  if (atomic_load(&c->failed)) return;
  const char *at = w && w->label[0] ? w->label : NULL;
  snprintf(c->message, sizeof c->message, "%s: %s, on rank %d of %d%s%s%s",
           w ? w->kind : "distributed", reason, c->base.rank, c->base.size, at ? " (" : "",
           at ? at : "", at ? ")" : "");
  atomic_store(&c->failed, true);
  if (c->end.comm) library()->CommAbort(c->end.comm);
  c->end.comm = NULL;
}

/* Fails with the message of a failed communicator. Its lock is held. */
static bool raise(Communicator *c) {
  c->raised = true;
  return lt_error_set("%s", c->message);
}

/* Removes the first works that are done, and marks them as complete. */
static void remove_done(Communicator *c, Work *end, bool complete) {
  while (c->first != end) {
    Work *w = c->first;
    c->first = w->next;
    if (!c->first) c->last = NULL;
    if (complete) atomic_store(&w->complete, true);
    drop_work(w);
  }
}

/* Checks how long the first work has been running: since the work before it was done, and the
 * device has come to it. */
static void check_time(Communicator *c) {
  Work *w = c->first;
  if (!w || !lt_cuda_backend.streams.event_query(w->ready)) return;
  if (!w->began) w->began = now();
  if ((double)(now() - w->began) < w->timeout * 1e9) return;
  char reason[80];
  snprintf(reason, sizeof reason, "timed out after %g s, waiting for the other ranks", w->timeout);
  fail_communicator(c, w, reason);
}

/* Looks at the works that are not done. Those that are done are complete, unless NCCL reports an
 * error now: an error also ends the call. The communicator's lock is held. */
static void look(Communicator *c) {
  Work *end = c->first;
  while (end && lt_cuda_backend.streams.event_query(end->done)) end = end->next;
  int error = LT_NCCL_SUCCESS;
  if (c->end.comm && library()->CommGetAsyncError(c->end.comm, &error) == LT_NCCL_SUCCESS &&
      error != LT_NCCL_SUCCESS && error != LT_NCCL_IN_PROGRESS) {
    char reason[300], text[200];
    snprintf(reason, sizeof reason, "%s%s", library()->GetErrorString(error),
             detail(c->end.comm, text, sizeof text));
    fail_communicator(c, c->first, reason);
  }
  remove_done(c, end, !atomic_load(&c->failed));
  if (!atomic_load(&c->failed)) check_time(c);
}

/* The watchdog. */
static void *watch(void *argument) {
  Communicator *c = argument;
  lt_cuda_select(c->base.index);
  pthread_mutex_lock(&c->lock);
  while (!c->stopping) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WATCH * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (c->first)
      pthread_cond_timedwait(&c->wake, &c->lock, &until);
    else
      pthread_cond_wait(&c->wake, &c->lock);
    if (!c->stopping && c->first) look(c);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

bool lt_cuda_communication_check(int index) {
  bool ok = true;
  if (atomic_load_explicit(&total, memory_order_relaxed) == 0) return true;
  pthread_mutex_lock(&all_lock);
  for (Communicator *c = all; c && ok; c = c->next) {
    if (c->base.index != index) continue;
    pthread_mutex_lock(&c->lock);
    if (c->first) look(c);
    if (atomic_load(&c->failed) && !c->raised) ok = raise(c);
    pthread_mutex_unlock(&c->lock);
  }
  pthread_mutex_unlock(&all_lock);
  return ok;
}

/* ---- communicators --------------------------------------------------------------------------- */

static const char *library_name(char *why, size_t size) {
  const lt_Nccl *nccl = lt_cuda_nccl(why, size);
  return nccl ? nccl->name : NULL;
}

/* Fails with the error of a call of NCCL. */
static bool nccl_ok(int status, const char *what) {
  char text[300];
  if (status == LT_NCCL_SUCCESS) return true;
  return lt_error_set("%s: NCCL reports %s%s", what, library()->GetErrorString(status),
                      detail(NULL, text, sizeof text));
}

/* Returns the library; NULL with an error when it was not found. */
static const lt_Nccl *need_library(void) {
  char why[400];
  const lt_Nccl *nccl = lt_cuda_nccl(why, sizeof why);
  return nccl ? nccl : lt_error_set("distributed: %s", why);
}

static bool unique_id(char id[LT_COMM_ID_BYTES]) {
  lt_NcclId made;
  const lt_Nccl *nccl = need_library();
  if (!nccl || !nccl_ok(nccl->GetUniqueId(&made), "init_process_group")) return false;
  memcpy(id, made.bytes, LT_COMM_ID_BYTES);
  return true;
}

/* The start of NCCL's communicator, which blocks until all ranks have called it, on a thread of its
 * own: the caller can be interrupted, and has a timeout. Whoever ends last frees it, and aborts a
 * communicator that the caller has not taken, so that the other ranks do not wait for this one. */
typedef struct Start {
  atomic_int refs;
  atomic_bool done;
  int index, rank, size, status;
  void *comm;
  lt_NcclId id;
  char text[300];
} Start;

static void drop_start(Start *s) {
  if (atomic_fetch_sub(&s->refs, 1) != 1) return;
  if (s->comm) library()->CommAbort(s->comm);
  free(s);
}

static void *run_start(void *argument) {
  Start *s = argument;
  if (lt_cuda_select(s->index)) {
    char text[200];
    s->status = library()->CommInitRank(&s->comm, s->size, s->id, s->rank);
    if (s->status != LT_NCCL_SUCCESS) {
      s->comm = NULL;
      snprintf(s->text, sizeof s->text, "NCCL reports %s%s", library()->GetErrorString(s->status),
               detail(NULL, text, sizeof text));
    }
  } else {
    s->status = -1;
    snprintf(s->text, sizeof s->text, "%s", lt_error());
  }
  atomic_store(&s->done, true);
  drop_start(s);
  return NULL;
}

/* Waits until the start has ended. */
static bool wait_for_start(const Start *s, double timeout) {
  for (int64_t began = now(); !atomic_load(&s->done); pause_shortly()) {
    if (!lt_check_interrupt()) return false;
    if ((double)(now() - began) > timeout * 1e9)
      return lt_error_set("init_process_group: timed out after %g s, waiting for the other ranks "
                          "to create the communicator, on rank %d of %d",
                          timeout, s->rank, s->size);
  }
  return s->status == LT_NCCL_SUCCESS || lt_error_set("init_process_group: %s", s->text);
}

/* Creates NCCL's communicator; NULL with an error. */
static void *start(int index, const lt_CommPlan *plan) {
  pthread_t thread;
  Start *s = calloc(1, sizeof *s);
  if (!s) return lt_error_memory("init_process_group: out of memory");
  atomic_init(&s->refs, 2);
  s->index = index;
  s->rank = plan->rank;
  s->size = plan->size;
  memcpy(s->id.bytes, plan->id, sizeof s->id.bytes);
  if (pthread_create(&thread, NULL, run_start, s) != 0) {
    free(s);
    return lt_error_set("init_process_group: cannot start a thread");
  }
  pthread_detach(thread);
  void *comm = NULL;
  if (wait_for_start(s, plan->timeout)) {
    comm = s->comm;
    s->comm = NULL;
  }
  drop_start(s);
  return comm;
}

/* Frees what a communicator has on the device. */
static void close_end(Communicator *c) {
  if (c->end.scratch)
    lt_cuda_backend.memory.free(&lt_cuda_backend, c->base.index, c->end.scratch, sizeof(int),
                                c->stream);
  if (c->stream) lt_cuda_backend.streams.destroy(c->stream);
}

/* Creates the stream and the memory. */
static bool open_end(Communicator *c) {
  int index = c->base.index;
  c->stream = lt_cuda_backend.streams.create(&lt_cuda_backend, index, PRIORITY);
  if (!c->stream) return false;
  c->end.stream = (cudaStream_t)lt_accel_native(c->stream);
  c->end.scratch = lt_cuda_backend.memory.alloc(&lt_cuda_backend, index, sizeof(int), c->stream);
  return c->end.scratch && lt_cuda_fill_zero(index, c->end.scratch, sizeof(int), c->stream);
}

static lt_Communicator *create(int index, const lt_CommPlan *plan) {
  if (!need_library() || !lt_accel_ready(&lt_cuda_backend, index)) return NULL;
  Communicator *c = calloc(1, sizeof *c);
  if (!c) return lt_error_memory("init_process_group: out of memory");
  c->base = (lt_Communicator){
      .backend = &lt_cuda_backend, .index = index, .rank = plan->rank, .size = plan->size};
  c->end.rank = plan->rank;
  c->end.size = plan->size;
  c->timeout = plan->timeout;
  atomic_init(&c->refs, 1);
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->wake, NULL);
  bool ok = open_end(c) && (c->end.comm = start(index, plan)) != NULL;
  if (ok && pthread_create(&c->watchdog, NULL, watch, c) != 0) {
    library()->CommAbort(c->end.comm);
    ok = lt_error_set("init_process_group: cannot start a thread") != NULL;
  }
  if (!ok) {
    close_end(c);
    drop_communicator(c);
    return NULL;
  }
  pthread_mutex_lock(&all_lock);
  c->next = all;
  all = c;
  atomic_fetch_add(&total, 1);
  pthread_mutex_unlock(&all_lock);
  return &c->base;
}

/* Blocks until the works are done or have failed; on Ctrl-C it gives them up. */
static void wait_for_works(Communicator *c) {
  for (bool left = true; left; pause_shortly()) {
    bool interrupted = !lt_check_interrupt();
    pthread_mutex_lock(&c->lock);
    if (c->first) look(c);
    if (c->first && interrupted)
      fail_communicator(c, c->first, "interrupted by the end of its process group");
    left = c->first && !atomic_load(&c->failed);
    pthread_mutex_unlock(&c->lock);
    if (!left) return;
  }
}

static void destroy(lt_Communicator *communicator) {
  Communicator *c = (Communicator *)communicator;
  wait_for_works(c);
  pthread_mutex_lock(&all_lock);
  Communicator **place = &all;
  while (*place && *place != c) place = &(*place)->next;
  if (*place) *place = c->next;
  atomic_fetch_sub(&total, 1);
  pthread_mutex_unlock(&all_lock);
  pthread_mutex_lock(&c->lock);
  c->stopping = true;
  pthread_cond_signal(&c->wake);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->watchdog, NULL);
  if (c->end.comm) library()->CommDestroy(c->end.comm);
  c->end.comm = NULL;
  remove_done(c, NULL, false);
  close_end(c);
  drop_communicator(c);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Orders the communicator's stream behind the caller's. */
static bool wait_for_caller(Communicator *c, Work *w, const lt_CommCall *calls, int count) {
  const lt_DeviceStreams *s = &lt_cuda_backend.streams;
  lt_Stream *current = s->current(&lt_cuda_backend, c->base.index), *before = NULL;
  for (int i = 0; i < count; i++) {
    lt_Stream *stream = calls[i].stream ? calls[i].stream : current;
    if (i > 0 && stream == before) continue;
    if (!s->event_record(w->ready, stream) || !s->wait_event(c->stream, w->ready)) return false;
    before = stream;
  }
  return true;
}

/* Calls NCCL for all calls, as one group. */
static int issue(const Communicator *c, const lt_CommCall *calls, int count) {
  const lt_Nccl *nccl = library();
  int status = nccl->GroupStart();
  for (int i = 0; i < count && status == LT_NCCL_SUCCESS; i++)
    if (!calls[i].check_only) status = lt_nccl_issue(nccl, &c->end, &calls[i]);
  int ended = nccl->GroupEnd();
  return status != LT_NCCL_SUCCESS ? status : ended;
}

/* Calls NCCL under the lock. */
static bool queue_calls(Communicator *c, const Work *w, const lt_CommCall *calls, int count) {
  char text[300];
  pthread_mutex_lock(&c->lock);
  bool ok = !atomic_load(&c->failed) || raise(c);
  int status = ok ? issue(c, calls, count) : LT_NCCL_SUCCESS;
  pthread_mutex_unlock(&c->lock);
  if (!ok || status == LT_NCCL_SUCCESS) return ok;
  return lt_cuda_ok(cudaGetLastError(), "communicate") &&
         lt_error_set("%s: NCCL reports %s%s", w->kind, library()->GetErrorString(status),
                      detail(NULL, text, sizeof text));
}

/* Appends a queued work to the list. */
static void append(Communicator *c, Work *w) {
  pthread_mutex_lock(&c->lock);
  atomic_fetch_add(&w->refs, 1);
  if (c->last)
    c->last->next = w;
  else
    c->first = w;
  c->last = w;
  pthread_cond_signal(&c->wake);
  pthread_mutex_unlock(&c->lock);
}

/* Queues a work. The lock is free while events are recorded, since tracers are notified then. */
static bool queue(Communicator *c, Work *w, const lt_CommCall *calls, int count) {
  if (!wait_for_caller(c, w, calls, count) || !queue_calls(c, w, calls, count) ||
      !lt_cuda_backend.streams.event_record(w->done, c->stream))
    return false;
  append(c, w);
  return true;
}

static lt_Work *submit(lt_Communicator *communicator, const lt_CommCall *calls, int count,
                       bool at_once) {
  Communicator *c = (Communicator *)communicator;
  (void)at_once;
  for (int i = 0; i < count; i++) {
    if (calls[i].refusal)
      return lt_error_set("%s: %s", lt_comm_kind_name(calls[i].kind), calls[i].refusal);
    if (!lt_nccl_check(&calls[i])) return NULL;
  }
  if (!lt_cuda_select(c->base.index) ||
      !lt_capture_allows(&lt_cuda_backend, c->base.index, "communicate with other ranks", NULL))
    return NULL;
  Work *w = make_work(c, &calls[0]);
  if (!w) return NULL;
  if (queue(c, w, calls, count)) return &w->base;
  drop_work(w);
  return NULL;
}

/* ---- works ----------------------------------------------------------------------------------- */

static bool is_done(lt_Work *base) {
  Work *w = (Work *)base;
  return atomic_load(&w->complete) || lt_cuda_backend.streams.event_query(w->done);
}

/* Returns true when the work has not failed, as far as is known now. */
static bool check_work(Work *w) {
  Communicator *c = w->c;
  bool ok = true;
  if (atomic_load(&w->complete)) return true;
  pthread_mutex_lock(&c->lock);
  if (c->first) look(c);
  if (!atomic_load(&w->complete) && atomic_load(&c->failed)) ok = raise(c);
  pthread_mutex_unlock(&c->lock);
  return ok;
}

/* Blocks the host until the work is done. timeout: in seconds; 0: the watchdog's. */
static bool block(Work *w, double timeout) {
  for (int64_t began = now(); !is_done(&w->base); pause_shortly()) {
    if (!lt_check_interrupt()) return false;
    if (timeout <= 0 || (double)(now() - began) < timeout * 1e9) continue;
    return check_work(w) && lt_error_set("%s: timed out after %g s on rank %d; the call still runs",
                                         w->kind, timeout, w->c->base.rank);
  }
  return check_work(w);
}

static bool wait(lt_Work *base, double timeout) {
  Work *w = (Work *)base;
  const lt_DeviceStreams *s = &lt_cuda_backend.streams;
  if (!lt_cuda_select(w->c->base.index)) return false;
  if (!w->blocks && timeout <= 0 && !check_work(w)) return false;
  return s->wait_event(s->current(&lt_cuda_backend, w->c->base.index), w->done) &&
         ((!w->blocks && timeout <= 0) || block(w, timeout));
}

static void release(lt_Work *base) { drop_work((Work *)base); }

const lt_DeviceCommunication lt_cuda_communication = {
    .find_library = library_name,
    .unique_id = unique_id,
    .create = create,
    .destroy = destroy,
    .submit = submit,
    .is_done = is_done,
    .wait = wait,
    .release = release,
};
