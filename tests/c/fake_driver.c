/* fake_driver.c: see fake_driver.h. One lock protects everything. A stream is a queue. An event
 * refers to its last record; a stream that waits for it, to the record that was the last when the
 * wait was queued. */
#include "fake_driver.h"

#include <pthread.h>

typedef enum Kind { WRITE, CHECK_TAG, RECORD, WAIT } Kind;

typedef struct Mark { /* a point in a stream */
  struct Mark *next;  /* next in the list of all marks: queued work may refer to them */
  bool passed;
  double when;
} Mark;

typedef struct Event {
  struct Event *next; /* next in the list of all events, freed ones too */
  int index;
  bool timing, freed;
  Mark *mark; /* NULL: never recorded */
} Event;

typedef struct Work {
  struct Work *next;
  Kind kind;
  char *memory;
  size_t nbytes;
  uint64_t tag;
  Mark *mark;
} Work;

typedef struct Stream {
  struct Stream *next; /* next stream of the device */
  Work *first, **last;
  bool freed;
} Stream;

typedef struct Memory {
  struct Memory *next;
  char *start;
  size_t size;
} Memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Device {
  Stream *streams; /* the default stream first */
  size_t used;
  int initialized, queued;
  Memory *memory;
} device[FAKE_DEVICES];
static Event *events;
static Mark *marks;
static Memory *host;
static size_t capacity, host_used;
static int host_calls, queries, streams_alive, events_alive, failing;
static int unready_queries; /* number of consecutive queries of one object that were answered with
                           * "not ready" */
static const void *last_queried;
static bool failing_hard, fail_all, killed;
static double now;
static char first_error[200];

static void record_error(const char *what) {
  if (!first_error[0]) snprintf(first_error, sizeof first_error, "%s", what);
}

static void enter(void) {
  pthread_mutex_lock(&lock);
  if (killed) record_error("a call of a driver that is gone");
}

static lt_DriverStatus leave(lt_DriverStatus status) {
  if (fail_all) status = LT_DRIVER_FAILED;
  pthread_mutex_unlock(&lock);
  if (status == LT_DRIVER_FAILED) lt_error_set("fake: the driver failed");
  return status;
}

static Stream *stream_of(int index, void *native) {
  struct Device *d = &device[index];
  if (!d->streams) {
    d->streams = calloc(1, sizeof *d->streams);
    d->streams->last = &d->streams->first;
  }
  Stream *s = native ? native : d->streams;
  if (s->freed) record_error("work on a stream that was freed");
  return s;
}

static void queue_work(int index, void *native, Work work) {
  Stream *s = stream_of(index, native);
  Work *w = malloc(sizeof *w);
  *w = work;
  w->next = NULL;
  *s->last = w;
  s->last = &w->next;
  device[index].queued++;
}

/* ---- execution of work ----------------------------------------------------------------------- */

static void run_work(const Work *w) {
  char *ends[] = {w->memory, w->memory + w->nbytes - sizeof w->tag};
  for (int i = 0; i < 2; i++) {
    if (w->kind == WRITE)
      memcpy(ends[i], &w->tag, sizeof w->tag);
    else if (memcmp(ends[i], &w->tag, sizeof w->tag) != 0)
      record_error("memory was given to others while queued work used it");
  }
}

static bool step(int index, Stream *s) {
  Work *w = s->first;
  if (!w || (w->kind == WAIT && !w->mark->passed)) return false;
  now += 0.5;
  if (w->kind == WRITE || w->kind == CHECK_TAG) {
    run_work(w);
  } else if (w->kind == RECORD) {
    w->mark->passed = true;
    w->mark->when = now;
  }
  s->first = w->next;
  if (!s->first) s->last = &s->first;
  free(w);
  device[index].queued--;
  return true;
}

/* Runs at most one piece of work of every stream. */
static bool step_all(void) {
  bool any = false;
  for (int i = 0; i < FAKE_DEVICES; i++)
    for (Stream *s = device[i].streams; s; s = s->next) any = step(i, s) || any;
  return any;
}

/* Other streams advance only where this one waits for them. */
static void finish_stream(int index, Stream *s) {
  while (s->first)
    if (!step(index, s) && !step_all()) {
      record_error("a stream waits for ever");
      return;
    }
}

static void finish_device(int index) {
  stream_of(index, NULL);
  for (Stream *s = device[index].streams; s; s = s->next) finish_stream(index, s);
}

/* ---- the driver's calls ---------------------------------------------------------------------- */

static int count(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return FAKE_DEVICES;
}

static bool initialize(int index) {
  enter();
  device[index].initialized++;
  return leave(LT_DRIVER_OK) == LT_DRIVER_OK;
}

static void check_unused(const Memory *m) {
  for (int i = 0; i < FAKE_DEVICES; i++)
    for (Stream *s = device[i].streams; s; s = s->next)
      for (Work *w = s->first; w; w = w->next)
        if (w->memory >= m->start && w->memory < m->start + m->size)
          record_error("memory was given back while queued work used it");
}

static Memory *memory_add(Memory **list, size_t nbytes) {
  Memory *m = malloc(sizeof *m);
  *m = (Memory){*list, aligned_alloc(512, (nbytes + 511) / 512 * 512), nbytes};
  return *list = m;
}

/* Removes the block from the list and frees it. Returns its size, or 0. */
static size_t memory_drop(Memory **list, const void *start) {
  while (*list && (*list)->start != start) list = &(*list)->next;
  Memory *m = *list;
  if (!m) {
    record_error("memory was given back that was not out");
    return 0;
  }
  check_unused(m);
  size_t nbytes = m->size;
  *list = m->next;
  free(m->start);
  free(m);
  return nbytes;
}

static lt_DriverStatus memory_new(int index, size_t nbytes, void **out) {
  struct Device *d = &device[index];
  enter();
  if (failing > 0 && --failing == 0)
    return leave(failing_hard ? LT_DRIVER_FAILED : LT_DRIVER_NO_MEMORY);
  if (fail_all || nbytes > capacity || d->used > capacity - nbytes)
    return leave(LT_DRIVER_NO_MEMORY);
  *out = memory_add(&d->memory, nbytes)->start;
  d->used += nbytes;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus memory_free(int index, void *memory) {
  enter();
  size_t nbytes = memory_drop(&device[index].memory, memory);
  device[index].used -= nbytes;
  return leave(nbytes ? LT_DRIVER_OK : LT_DRIVER_FAILED);
}

static lt_DriverStatus memory_info(int index, size_t *free_bytes, size_t *total) {
  enter();
  *free_bytes = capacity - device[index].used;
  *total = capacity;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus host_new(size_t nbytes, void **out) {
  enter();
  host_calls++;
  if (fail_all || host_used + nbytes > capacity) return leave(LT_DRIVER_NO_MEMORY);
  *out = memory_add(&host, nbytes)->start;
  host_used += nbytes;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus host_free(void *memory) {
  enter();
  host_used -= memory_drop(&host, memory);
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus stream_new(int index, int priority, void **out, int *given) {
  enter();
  Stream **end = &device[index].streams, *s = calloc(1, sizeof *s);
  stream_of(index, NULL);
  while (*end) end = &(*end)->next;
  s->last = &s->first;
  *end = *out = s;
  *given = priority < -1 ? -1 : priority > 0 ? 0 : priority;
  streams_alive++;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus stream_free(int index, void *native) {
  enter();
  stream_of(index, native)->freed = true; /* its queued work still runs */
  streams_alive--;
  return leave(LT_DRIVER_OK);
}

/* Returns the result of a query. Work advances when a caller polls repeatedly. */
static lt_DriverStatus query_result(const void *what, bool ready) {
  if (ready) return LT_DRIVER_OK;
  unready_queries = what == last_queried ? unready_queries + 1 : 0;
  last_queried = what;
  if (unready_queries > 20) step_all();
  return LT_DRIVER_NOT_READY;
}

static lt_DriverStatus stream_query(int index, void *native) {
  enter();
  return leave(query_result(stream_of(index, native), !stream_of(index, native)->first));
}

static lt_DriverStatus stream_synchronize(int index, void *native) {
  enter();
  finish_stream(index, stream_of(index, native));
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus stream_wait_event(int index, void *native, void *event) {
  Event *e = event;
  enter();
  if (e->mark) queue_work(index, native, (Work){.kind = WAIT, .mark = e->mark});
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus event_new(int index, bool timing, void **out) {
  enter();
  if (fail_all) return leave(LT_DRIVER_FAILED);
  Event *e = calloc(1, sizeof *e);
  *e = (Event){.next = events, .index = index, .timing = timing};
  *out = events = e;
  events_alive++;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus event_free(int index, void *event) {
  Event *e = event;
  enter();
  if (e->freed || e->index != index) record_error("an event was freed that was not there");
  e->freed = true;
  events_alive--;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus event_record(int index, void *event, void *native) {
  Event *e = event;
  enter();
  if (e->freed || e->index != index) record_error("a stream of one device, an event of another");
  if (fail_all) return leave(LT_DRIVER_FAILED);
  e->mark = calloc(1, sizeof *e->mark);
  e->mark->next = marks;
  marks = e->mark;
  queue_work(index, native, (Work){.kind = RECORD, .mark = e->mark});
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus event_query(int index, void *event) {
  Event *e = event;
  (void)index;
  enter();
  queries++;
  return leave(query_result(e, !e->mark || e->mark->passed));
}

static lt_DriverStatus event_synchronize(int index, void *event) {
  Event *e = event;
  (void)index;
  enter();
  while (e->mark && !e->mark->passed && step_all()) {
  }
  if (e->mark && !e->mark->passed) record_error("the host blocks on an event that never happens");
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus event_elapsed(void *from, void *to, double *milliseconds) {
  enter();
  *milliseconds = ((Event *)to)->mark->when - ((Event *)from)->mark->when;
  return leave(LT_DRIVER_OK);
}

static lt_DriverStatus synchronize(int index) {
  enter();
  finish_device(index);
  return leave(LT_DRIVER_OK);
}

static bool alive(void) { return !killed; }

const lt_AccelDriver fake_driver = {
    .count = count,
    .initialize = initialize,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .memory_info = memory_info,
    .host_new = host_new,
    .host_free = host_free,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .synchronize = synchronize,
    .alive = alive,
};

/* ---- functions for tests --------------------------------------------------------------------- */

static void forget_streams(struct Device *d) {
  for (Stream *s = d->streams, *next; s; s = next) {
    next = s->next;
    for (Work *w = s->first, *after; w; w = after) {
      after = w->next;
      free(w);
    }
    free(s);
  }
  d->streams = NULL;
}

/* Frees the memory that a killed driver has left. */
static void forget_memory(Memory **list) {
  while (*list) {
    Memory *m = *list;
    *list = m->next;
    free(m->start);
    free(m);
  }
}

void fake_reset(size_t bytes) {
  killed = fail_all = failing_hard = false;
  failing = host_calls = queries = streams_alive = events_alive = 0;
  first_error[0] = 0;
  capacity = bytes;
  for (int i = 0; i < FAKE_DEVICES; i++) {
    forget_streams(&device[i]);
    forget_memory(&device[i].memory);
    device[i] = (struct Device){0};
  }
  forget_memory(&host);
  host_used = 0;
  while (events) {
    Event *e = events;
    events = e->next;
    free(e);
  }
  while (marks) {
    Mark *m = marks;
    marks = m->next;
    free(m);
  }
}

static void put_tag(lt_Stream *s, Kind kind, void *memory, size_t nbytes, uint64_t tag) {
  enter();
  queue_work(s->index, lt_accel_native(s),
             (Work){.kind = kind, .memory = memory, .nbytes = nbytes, .tag = tag});
  leave(LT_DRIVER_OK);
}
void fake_write(lt_Stream *s, void *memory, size_t nbytes, uint64_t tag) {
  put_tag(s, WRITE, memory, nbytes, tag);
}
void fake_check(lt_Stream *s, void *memory, size_t nbytes, uint64_t tag) {
  put_tag(s, CHECK_TAG, memory, nbytes, tag);
}

bool fake_step(int index, int which) {
  enter();
  Stream *s = device[index].streams;
  while (s && which--) s = s->next;
  bool any = s && step(index, s);
  leave(LT_DRIVER_OK);
  return any;
}

void fake_finish(int index) {
  enter();
  finish_device(index);
  leave(LT_DRIVER_OK);
}

int fake_streams(int index) {
  int n = 0;
  for (Stream *s = device[index].streams; s; s = s->next) n++;
  return n;
}

int fake_queued(int index) { return device[index].queued; }
int fake_streams_alive(void) { return streams_alive; }
int fake_events_alive(void) { return events_alive; }
int fake_initialized(int index) { return device[index].initialized; }
size_t fake_used(int index) { return device[index].used; }
size_t fake_host_used(void) { return host_used; }
int fake_host_calls(void) { return host_calls; }
int fake_queries(void) { return queries; }
const char *fake_error(void) { return first_error[0] ? first_error : NULL; }

void fake_fail_memory(int n, bool hard) {
  failing = n;
  failing_hard = hard;
}
void fake_fail_all(bool yes) { fail_all = yes; }
void fake_kill(void) { killed = true; }
