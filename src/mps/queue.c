/* queue.c: queues of Metal with their open batches, and the events between them; see queue.h.
 *
 * A batch that is done leaves its queue idle. Then a thread of this file commits what is open,
 * since the host may be busy with other things, and a completion handler must not call Metal.
 *
 * Locks: `lock` of a queue is held while a command is encoded and while a batch is committed;
 * nobody holds two of them. `done_lock` is taken for short by the completion handler, and last.
 * Every committed batch completes, also on a lost device, so waits for batches end.
 */
#include "queue.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#define MOST_COMMANDS 64                 /* of a batch */
#define MOST_BYTES    ((size_t)40 << 20) /* that they read and write */

/* A piece of shared memory for copies from the host. */
typedef struct Stage {
  struct Stage *next;
  lt_MetalBuffer *buffer;
  size_t used;
} Stage;

/* The commands of one command buffer. It lives until it is done and no event refers to it. */
struct lt_MpsBatch {
  lt_MpsQueue *queue;
  uint64_t serial;
  atomic_int refs;
  atomic_bool done;
  double end; /* when it ended, on the clock of the device; set before `done` */
  lt_MpsRecent recent;
  Stage *stages;
};

struct lt_MpsQueue {
  lt_MpsQueue *next, *next_unused; /* all queues, and those without a stream; under queues_lock */
  int index;
  lt_MetalQueue *native;
  lt_MetalEvent *timeline; /* has the number of the last batch that is done */
  pthread_mutex_t lock;
  lt_MetalCommands *open; /* NULL: none */
  atomic_bool is_open;    /* the same, for threads without the lock */
  lt_MpsBatch *batch;     /* of `open` */
  lt_MpsBatch *last;      /* committed last */
  int count;              /* commands in the open batch */
  size_t bytes;
  uint64_t serial; /* of the batch that was begun last */
  pthread_mutex_t done_lock;
  pthread_cond_t done;
};

static lt_MpsQueue *queues, *unused[LT_ACCEL_MAX];
static lt_MpsQueue *_Atomic defaults[LT_ACCEL_MAX];
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;

#define MOST_STAGES 256 /* staging memory of a device: 64 MiB */
static Stage *free_stages[LT_ACCEL_MAX];
static int stage_count[LT_ACCEL_MAX]; /* free ones, and those of batches */
static pthread_mutex_t stages_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint64_t commands, batches, waits;

void lt_mps_counters(lt_MpsCounters *out) {
  *out = (lt_MpsCounters){atomic_load(&commands), atomic_load(&batches), atomic_load(&waits)};
}

/* Returns the time on the clock of lt_MetalResult, in seconds. */
static double now(void) {
  struct timespec t;
#ifdef CLOCK_UPTIME_RAW
  clock_gettime(CLOCK_UPTIME_RAW, &t);
#else
  clock_gettime(CLOCK_MONOTONIC, &t);
#endif
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- batches --------------------------------------------------------------------------------- */

static lt_MpsBatch *batch_retain(lt_MpsBatch *b) {
  if (b) atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  return b;
}

static void batch_release(lt_MpsBatch *b) {
  if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1) free(b);
}

static bool is_done(const lt_MpsBatch *b) {
  return !b || atomic_load_explicit(&b->done, memory_order_acquire);
}

/* Leaves the staging memory of a batch to later batches. */
static void give_stages(lt_MpsBatch *b) {
  if (!b->stages) return;
  int index = b->queue->index;
  pthread_mutex_lock(&stages_lock);
  while (b->stages) {
    Stage *s = b->stages;
    b->stages = s->next;
    s->next = free_stages[index];
    free_stages[index] = s;
  }
  pthread_mutex_unlock(&stages_lock);
}

/* The thread that commits open batches. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  bool started, stops;
  bool due; /* a queue may have become idle */
} committer = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wake_committer(void) {
  pthread_mutex_lock(&committer.lock);
  committer.due = true;
  pthread_cond_signal(&committer.changed);
  pthread_mutex_unlock(&committer.lock);
}

/* The completion handler. A batch that failed has not set the queue's event: without it, other
 * queues would wait forever. */
static void batch_done(void *context, const lt_MetalResult *result) {
  lt_MpsBatch *b = context;
  lt_MpsQueue *q = b->queue;
  b->end = result->end;
  if (result->error.status != LT_METAL_OK) {
    lt_mps_mark_lost(q->index, &result->error, &b->recent);
    lt_metal_event_set(q->timeline, b->serial);
  }
  give_stages(b);
  pthread_mutex_lock(&q->done_lock);
  atomic_store_explicit(&b->done, true, memory_order_release);
  pthread_cond_broadcast(&q->done);
  pthread_mutex_unlock(&q->done_lock);
  batch_release(b);
  /* Either this sees the open batch, or lt_mps_queue_leave that the queue is idle. */
  atomic_thread_fence(memory_order_seq_cst);
  if (atomic_load_explicit(&q->is_open, memory_order_relaxed)) wake_committer();
}

/* Opens a batch. Requires the lock. */
static bool open_batch(lt_MpsQueue *q, lt_MetalError *error) {
  lt_MpsBatch *b = calloc(1, sizeof *b);
  *error = (lt_MetalError){LT_METAL_OTHER, "out of memory"};
  q->open = b ? lt_metal_commands_new(q->native, error) : NULL;
  if (!q->open) {
    free(b);
    return false;
  }
  atomic_store_explicit(&q->is_open, true, memory_order_relaxed);
  b->queue = q;
  b->serial = ++q->serial;
  atomic_init(&b->refs, 1);
  q->batch = b;
  q->count = 0;
  q->bytes = 0;
  return true;
}

/* Commits the open batch, if there is one. On a lost device it is discarded, and counts as done.
 * Requires the lock. */
static void commit(lt_MpsQueue *q) {
  if (!q->open) return;
  lt_MpsBatch *b = q->batch;
  lt_MetalCommands *open = q->open;
  q->open = NULL;
  q->batch = NULL;
  atomic_store_explicit(&q->is_open, false, memory_order_relaxed);
  batch_release(q->last);
  q->last = batch_retain(b);
  if (lt_mps_is_lost(q->index)) {
    lt_metal_discard(open);
    batch_done(b, &(lt_MetalResult){.error.status = LT_METAL_OK});
    return;
  }
  lt_metal_signal(open, q->timeline, b->serial);
  atomic_fetch_add_explicit(&batches, 1, memory_order_relaxed);
  lt_metal_commit(open, batch_done, b);
}

/* Commits a batch if it is still open. */
static void flush_batch(lt_MpsBatch *b) {
  lt_MpsQueue *q = b->queue;
  if (is_done(b)) return;
  pthread_mutex_lock(&q->lock);
  if (q->batch == b) commit(q);
  pthread_mutex_unlock(&q->lock);
}

/* Blocks until a batch that is committed is done. */
static void wait_batch(lt_MpsBatch *b) {
  if (is_done(b)) return;
  lt_MpsQueue *q = b->queue;
  pthread_mutex_lock(&q->done_lock);
  while (!is_done(b)) pthread_cond_wait(&q->done, &q->done_lock);
  pthread_mutex_unlock(&q->done_lock);
}

/* ---- the committer --------------------------------------------------------------------------- */

/* Commits the open batches of idle queues. */
static void commit_idle(void) {
  pthread_mutex_lock(&queues_lock);
  lt_MpsQueue *q = queues;
  pthread_mutex_unlock(&queues_lock);
  for (; q; q = q->next) {
    if (!atomic_load(&q->is_open)) continue;
    pthread_mutex_lock(&q->lock);
    if (is_done(q->last)) commit(q);
    pthread_mutex_unlock(&q->lock);
  }
}

static void *run_committer(void *context) {
  (void)context;
  pthread_mutex_lock(&committer.lock);
  while (!committer.stops) {
    if (!committer.due) {
      pthread_cond_wait(&committer.changed, &committer.lock);
      continue;
    }
    committer.due = false;
    pthread_mutex_unlock(&committer.lock);
    commit_idle();
    pthread_mutex_lock(&committer.lock);
  }
  pthread_mutex_unlock(&committer.lock);
  return NULL;
}

/* Starts the thread, once. Without it, batches are committed later: by the next command or wait.
 * Signals go to the threads of the program. */
static void start_committer(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_mutex_lock(&committer.lock);
  if (!committer.started && !committer.stops) {
    pthread_sigmask(SIG_SETMASK, &all, &before);
    committer.started = pthread_create(&committer.thread, NULL, run_committer, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  pthread_mutex_unlock(&committer.lock);
}

void lt_mps_queues_stop(void) {
  pthread_mutex_lock(&committer.lock);
  bool started = committer.started;
  committer.started = false;
  committer.stops = true;
  pthread_cond_signal(&committer.changed);
  pthread_mutex_unlock(&committer.lock);
  if (started) pthread_join(committer.thread, NULL);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static lt_MpsQueue *create(int index, lt_DriverStatus *status) {
  lt_MetalError error = {LT_METAL_NO_MEMORY, "out of memory"};
  lt_MpsQueue *q = calloc(1, sizeof *q);
  *status = LT_DRIVER_FAILED;
  if (!q) {
    lt_fail_memory();
    return NULL;
  }
  q->native = lt_metal_queue_new(lt_mps_device(index), &error);
  q->timeline = q->native ? lt_metal_event_new(lt_mps_device(index), &error) : NULL;
  if (!q->timeline) {
    if (q->native) lt_metal_queue_free(q->native);
    free(q);
    lt_mps_fail(index, &error, "create a stream");
    return NULL;
  }
  q->index = index;
  pthread_mutex_init(&q->lock, NULL);
  pthread_mutex_init(&q->done_lock, NULL);
  pthread_cond_init(&q->done, NULL);
  start_committer();
  pthread_mutex_lock(&queues_lock);
  q->next = queues;
  queues = q;
  pthread_mutex_unlock(&queues_lock);
  *status = LT_DRIVER_OK;
  return q;
}

lt_MpsQueue *lt_mps_queue_new(int index, lt_DriverStatus *status) {
  *status = LT_DRIVER_FAILED;
  if (!lt_mps_check_lost(index)) return NULL;
  pthread_mutex_lock(&queues_lock);
  lt_MpsQueue *q = unused[index];
  if (q) unused[index] = q->next_unused;
  pthread_mutex_unlock(&queues_lock);
  if (!q) return create(index, status);
  *status = LT_DRIVER_OK;
  return q;
}

void lt_mps_queue_free(lt_MpsQueue *q) {
  pthread_mutex_lock(&q->lock);
  commit(q);
  pthread_mutex_unlock(&q->lock);
  pthread_mutex_lock(&queues_lock);
  q->next_unused = unused[q->index];
  unused[q->index] = q;
  pthread_mutex_unlock(&queues_lock);
}

lt_MpsQueue *lt_mps_queue_of(int index, void *native) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (native) return native;
  lt_MpsQueue *q = atomic_load_explicit(&defaults[index], memory_order_acquire);
  lt_DriverStatus status;
  if (q) return q;
  pthread_mutex_lock(&lock);
  q = atomic_load(&defaults[index]);
  if (!q && lt_mps_check_lost(index)) q = create(index, &status);
  atomic_store_explicit(&defaults[index], q, memory_order_release);
  pthread_mutex_unlock(&lock);
  return q;
}

/* ---- commands -------------------------------------------------------------------------------- */

lt_MetalCommands *lt_mps_queue_enter(lt_MpsQueue *q, const char *kernel, lt_DriverStatus *status) {
  lt_MetalError error;
  *status = LT_DRIVER_FAILED;
  if (!lt_mps_check_lost(q->index)) return NULL;
  pthread_mutex_lock(&q->lock);
  if (!q->open && !open_batch(q, &error)) {
    pthread_mutex_unlock(&q->lock);
    if (error.status == LT_METAL_NO_MEMORY)
      *status = LT_DRIVER_NO_MEMORY;
    else
      lt_mps_fail(q->index, &error, "create a command buffer");
    return NULL;
  }
  lt_MpsRecent *recent = &q->batch->recent;
  if (kernel) recent->launch[recent->count++ % LT_LAUNCHES] = lt_launch_note(kernel);
  *status = LT_DRIVER_OK;
  return q->open;
}

/* The device is never idle while the host could have given it work: with nothing else committed,
 * the command is committed at once. Later commands are collected while it runs. */
void lt_mps_queue_leave(lt_MpsQueue *q, size_t nbytes) {
  atomic_fetch_add_explicit(&commands, 1, memory_order_relaxed);
  q->count++;
  atomic_thread_fence(memory_order_seq_cst); /* see batch_done */
  q->bytes = nbytes < MOST_BYTES - q->bytes ? q->bytes + nbytes : MOST_BYTES;
  if (q->count >= MOST_COMMANDS || q->bytes >= MOST_BYTES || is_done(q->last)) commit(q);
  pthread_mutex_unlock(&q->lock);
}

void lt_mps_queue_cancel(lt_MpsQueue *q) {
  if (q->count == 0 && !q->batch->stages) {
    lt_metal_discard(q->open);
    batch_release(q->batch);
    q->open = NULL;
    q->batch = NULL;
    atomic_store_explicit(&q->is_open, false, memory_order_relaxed);
    q->serial--;
  }
  pthread_mutex_unlock(&q->lock);
}

/* Returns a piece of staging memory that is free, or a new one; NULL when there are enough. */
static Stage *take_stage(int index) {
  pthread_mutex_lock(&stages_lock);
  Stage *s = free_stages[index];
  bool more = !s && stage_count[index] < MOST_STAGES;
  if (s) free_stages[index] = s->next;
  if (more) stage_count[index]++;
  pthread_mutex_unlock(&stages_lock);
  if (s || !more) return s;
  lt_MetalError error;
  s = calloc(1, sizeof *s);
  if (s)
    s->buffer = lt_metal_buffer_new(lt_mps_device(index), LT_MPS_STAGE, LT_METAL_SHARED, &error);
  if (s && s->buffer) return s;
  free(s);
  pthread_mutex_lock(&stages_lock);
  stage_count[index]--;
  pthread_mutex_unlock(&stages_lock);
  return NULL;
}

bool lt_mps_queue_release_stages(int index) {
  pthread_mutex_lock(&stages_lock);
  Stage *first = free_stages[index];
  free_stages[index] = NULL;
  for (Stage *s = first; s; s = s->next) stage_count[index]--;
  pthread_mutex_unlock(&stages_lock);
  for (Stage *s = first, *next; s; s = next) {
    next = s->next;
    lt_metal_buffer_free(s->buffer);
    free(s);
  }
  return first;
}

void *lt_mps_queue_stage(lt_MpsQueue *q, size_t nbytes, lt_MetalBuffer **buffer, size_t *offset) {
  Stage *s = q->batch->stages;
  if (!s || nbytes > LT_MPS_STAGE - s->used) {
    s = take_stage(q->index);
    if (!s) return NULL;
    s->used = 0;
    s->next = q->batch->stages;
    q->batch->stages = s;
  }
  *buffer = s->buffer;
  *offset = s->used;
  s->used += (nbytes + 255) / 256 * 256;
  if (s->used > LT_MPS_STAGE) s->used = LT_MPS_STAGE;
  return (char *)s->buffer->contents + *offset;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Commits what is open and returns the last batch, retained. */
static lt_MpsBatch *flush(lt_MpsQueue *q) {
  pthread_mutex_lock(&q->lock);
  commit(q);
  lt_MpsBatch *last = batch_retain(q->last);
  pthread_mutex_unlock(&q->lock);
  return last;
}

bool lt_mps_queue_query(lt_MpsQueue *q) {
  lt_MpsBatch *last = flush(q);
  bool done = is_done(last);
  batch_release(last);
  return done;
}

bool lt_mps_queue_is_idle(lt_MpsQueue *q) {
  pthread_mutex_lock(&q->lock);
  bool idle = !q->open && is_done(q->last);
  pthread_mutex_unlock(&q->lock);
  return idle;
}

bool lt_mps_queue_synchronize(lt_MpsQueue *q) {
  lt_MpsBatch *last = flush(q);
  wait_batch(last);
  batch_release(last);
  return lt_mps_check_lost(q->index);
}

/* Commits the batches of all queues first, so that they run at the same time. */
bool lt_mps_queues_synchronize(int index) {
  pthread_mutex_lock(&queues_lock);
  lt_MpsQueue *first = queues; /* queues live forever, and `next` does not change */
  pthread_mutex_unlock(&queues_lock);
  for (lt_MpsQueue *q = first; q; q = q->next)
    if (q->index == index) batch_release(flush(q));
  for (lt_MpsQueue *q = first; q; q = q->next)
    if (q->index == index) lt_mps_queue_synchronize(q);
  return lt_mps_check_lost(index);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Protects the batch of every event: recording takes a few instructions. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;

static lt_MpsBatch *batch_of(lt_MpsEvent *e) {
  pthread_mutex_lock(&events_lock);
  lt_MpsBatch *b = batch_retain(e->batch);
  pthread_mutex_unlock(&events_lock);
  return b;
}

static void set_batch(lt_MpsEvent *e, lt_MpsBatch *b) {
  pthread_mutex_lock(&events_lock);
  lt_MpsBatch *old = e->batch;
  e->batch = b;
  if (e->timing) e->recorded = now();
  pthread_mutex_unlock(&events_lock);
  batch_release(old);
}

void lt_mps_event_record(lt_MpsEvent *e, lt_MpsQueue *q) {
  pthread_mutex_lock(&q->lock);
  lt_MpsBatch *b = batch_retain(q->batch ? q->batch : q->last);
  if (e->timing) commit(q);
  pthread_mutex_unlock(&q->lock);
  set_batch(e, b);
}

void lt_mps_event_clear(lt_MpsEvent *e) { set_batch(e, NULL); }

bool lt_mps_event_query(lt_MpsEvent *e) {
  lt_MpsBatch *b = batch_of(e);
  if (!is_done(b)) flush_batch(b);
  bool done = is_done(b);
  batch_release(b);
  return done;
}

bool lt_mps_event_synchronize(lt_MpsEvent *e) {
  lt_MpsBatch *b = batch_of(e);
  bool ok = true;
  if (b) {
    flush_batch(b);
    wait_batch(b);
    ok = lt_mps_check_lost(b->queue->index);
  }
  batch_release(b);
  return ok;
}

/* The event's batch is committed first. So every batch comes after earlier ones only, and no two
 * queues block each other. */
lt_DriverStatus lt_mps_event_wait(lt_MpsQueue *q, lt_MpsEvent *e) {
  lt_MpsBatch *b = batch_of(e);
  lt_DriverStatus status = LT_DRIVER_OK;
  if (!is_done(b) && b->queue != q) {
    flush_batch(b);
    lt_MetalCommands *open = lt_mps_queue_enter(q, NULL, &status);
    if (open) {
      lt_metal_wait(open, b->queue->timeline, b->serial);
      atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
      lt_mps_queue_leave(q, 0);
    }
  }
  batch_release(b);
  return status;
}

/* An event that was recorded while the queue was idle has the time of the recording. */
double lt_mps_event_time(lt_MpsEvent *e) {
  pthread_mutex_lock(&events_lock);
  double end = e->batch ? e->batch->end : 0;
  double time = end > e->recorded ? end : e->recorded;
  pthread_mutex_unlock(&events_lock);
  return time;
}
