/* fake_metal.c: see fake_metal.h. One lock protects everything; a kernel and a completion handler
 * run without it. */
#include "fake_metal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum Kind { DISPATCH, COPY, FILL, SIGNAL, WAIT } Kind;

typedef struct Buffer {
  lt_MetalBuffer base;
  struct Buffer *next; /* all live ones */
  char *memory;
} Buffer;

struct lt_MetalEvent {
  uint64_t value;
  int refs; /* of the host and of unfinished commands */
};

typedef struct Command {
  struct Command *next;
  Kind kind;
  FakeKernel kernel;
  uint64_t threads;
  int count;
  Buffer *buffer[LT_METAL_ARGUMENTS];
  size_t offset[LT_METAL_ARGUMENTS];
  char *value[LT_METAL_ARGUMENTS];
  size_t nbytes;
  uint8_t byte;
  lt_MetalEvent *event;
  uint64_t to;
} Command;

struct lt_MetalCommands {
  lt_MetalCommands *next; /* in the queue */
  lt_MetalQueue *queue;
  Command *first, **last;
  void (*done)(void *, const lt_MetalResult *);
  void *context;
};

struct lt_MetalQueue {
  lt_MetalQueue *next;
  lt_MetalCommands *first, **last;
  bool freed;
};

struct lt_MetalLibrary {
  int unused;
};
typedef struct Pipeline {
  lt_MetalPipeline base;
  FakeKernel run;
} Pipeline;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool started, held, unified = true, has_failed;
static lt_MetalQueue *queues;
static Buffer *buffers;
static FakeMetalCounts alive;
static uint64_t recommended = (uint64_t)1 << 30, allocated, next_address = 0x700000000000u;
static int fail_in, fail_commands_in;
static lt_MetalStatus fail_status, fail_commands_status;
static char first_error[200];

static struct {
  const char *name;
  FakeKernel run;
} kernels[32];
static int kernel_count;

#define ERROR(...)                                                                                 \
  do {                                                                                             \
    if (!first_error[0]) snprintf(first_error, sizeof first_error, __VA_ARGS__);                   \
  } while (0)

/* ---- control --------------------------------------------------------------------------------- */

void fake_metal_hold(bool yes) {
  pthread_mutex_lock(&lock);
  held = yes;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

void fake_metal_kernel(const char *name, FakeKernel run) {
  kernels[kernel_count].name = name;
  kernels[kernel_count++].run = run;
}

void fake_metal_fail(int n, lt_MetalStatus status) {
  pthread_mutex_lock(&lock);
  fail_in = n;
  fail_status = status;
  has_failed = false;
  pthread_mutex_unlock(&lock);
}

bool fake_metal_failed(void) { return has_failed; }

void fake_metal_fail_commands(int n, lt_MetalStatus status) {
  pthread_mutex_lock(&lock);
  fail_commands_in = n;
  fail_commands_status = status;
  pthread_mutex_unlock(&lock);
}

FakeMetalCounts fake_metal_alive(void) {
  pthread_mutex_lock(&lock);
  FakeMetalCounts counts = alive;
  pthread_mutex_unlock(&lock);
  return counts;
}

const char *fake_metal_error(void) { return first_error[0] ? first_error : NULL; }

void fake_metal_memory(uint64_t bytes, bool shared) {
  recommended = bytes;
  unified = shared;
}

/* Counts a call that may fail; returns true when it does. Requires the lock. */
static bool fails(lt_MetalError *error) {
  if (fail_in == 0 || --fail_in > 0) return false;
  has_failed = true;
  *error = (lt_MetalError){fail_status, "the test says so"};
  return true;
}

/* ---- devices and memory ---------------------------------------------------------------------- */

static int the_device;

lt_MetalDevice *lt_metal_device(int index, lt_MetalError *error) {
  if (index == 0) return (lt_MetalDevice *)&the_device;
  *error = (lt_MetalError){LT_METAL_OTHER, "there is one device"};
  return NULL;
}

void lt_metal_facts(lt_MetalDevice *device, lt_MetalFacts *facts) {
  (void)device;
  pthread_mutex_lock(&lock);
  *facts = (lt_MetalFacts){.name = "Fake GPU",
                           .family = 7,
                           .cores = 1,
                           .unified = unified,
                           .emulated = true,
                           .recommended = recommended,
                           .allocated = allocated,
                           .largest_buffer = recommended,
                           .total = recommended,
                           .threads = 1024,
                           .threadgroup = 32768,
                           .simd_width = 32};
  pthread_mutex_unlock(&lock);
}

lt_MetalBuffer *lt_metal_buffer_new(lt_MetalDevice *device, size_t nbytes, lt_MetalStorage storage,
                                    lt_MetalError *error) {
  (void)device;
  Buffer *b = calloc(1, sizeof *b);
  char *memory = malloc(nbytes);
  pthread_mutex_lock(&lock);
  bool ok = !fails(error);
  if (ok) {
    memset(memory, 0xAA, nbytes < 65536 ? nbytes : 65536);
    *b = (Buffer){
        {next_address, storage == LT_METAL_SHARED ? memory : NULL, nbytes}, buffers, memory};
    next_address += (nbytes + 0xFFFFF) / 0x100000 * 0x100000 + 0x100000;
    buffers = b;
    allocated += nbytes;
    alive.buffers++;
  }
  pthread_mutex_unlock(&lock);
  if (ok) return &b->base;
  free(memory);
  free(b);
  return NULL;
}

/* Returns true when an unfinished command uses the buffer. Requires the lock. */
static bool is_used(const Buffer *b) {
  for (const lt_MetalQueue *q = queues; q; q = q->next)
    for (const lt_MetalCommands *c = q->first; c; c = c->next)
      for (const Command *command = c->first; command; command = command->next)
        for (int i = 0; i < command->count; i++)
          if (command->buffer[i] == b) return true;
  return false;
}

void lt_metal_buffer_free(lt_MetalBuffer *buffer) {
  Buffer *b = (Buffer *)buffer;
  if (!b) return;
  pthread_mutex_lock(&lock);
  if (is_used(b)) ERROR("a buffer was freed while a command uses it");
  Buffer **link = &buffers;
  while (*link != b) link = &(*link)->next;
  *link = b->next;
  allocated -= b->base.size;
  alive.buffers--;
  pthread_mutex_unlock(&lock);
  free(b->memory);
  free(b);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static lt_MetalLibrary the_library;

lt_MetalLibrary *lt_metal_library_builtin(lt_MetalDevice *device, const char *file,
                                          lt_MetalError *error) {
  (void)device, (void)file;
  pthread_mutex_lock(&lock);
  bool ok = !fails(error);
  pthread_mutex_unlock(&lock);
  return ok ? &the_library : NULL;
}

/* Sources that contain "error" are rejected. */
lt_MetalLibrary *lt_metal_library_new(lt_MetalDevice *device, const char *source, char **log,
                                      lt_MetalError *error) {
  bool bad = strstr(source, "error");
  *log = bad ? strdup("line 1: error") : NULL;
  if (!bad) return lt_metal_library_builtin(device, "", error);
  *error = (lt_MetalError){LT_METAL_REJECTED, "the source has errors"};
  return NULL;
}

static Pipeline pipelines[32]; /* of the registered kernels: they live as long as the program */

lt_MetalPipeline *lt_metal_pipeline_new(lt_MetalLibrary *library, const char *kernel,
                                        const int32_t *constants, int count,
                                        lt_MetalArchive *archive, lt_MetalError *error) {
  (void)library, (void)constants, (void)count, (void)archive;
  int i = 0;
  pthread_mutex_lock(&lock);
  bool ok = !fails(error);
  pthread_mutex_unlock(&lock);
  if (!ok) return NULL;
  while (i < kernel_count && strcmp(kernels[i].name, kernel) != 0) i++;
  if (i == kernel_count) {
    *error = (lt_MetalError){LT_METAL_REJECTED, "there is no such kernel"};
    return NULL;
  }
  pipelines[i] = (Pipeline){{512, 32, 0}, kernels[i].run};
  return &pipelines[i].base;
}

lt_MetalArchive *lt_metal_archive_open(lt_MetalDevice *device, const char *path,
                                       lt_MetalError *error) {
  (void)device, (void)path;
  *error = (lt_MetalError){LT_METAL_OTHER, "there are no archives"};
  return NULL;
}

bool lt_metal_archive_write(lt_MetalArchive *archive, const char *path, lt_MetalError *error) {
  (void)archive, (void)path;
  *error = (lt_MetalError){LT_METAL_OTHER, "there are no archives"};
  return false;
}

/* ---- running --------------------------------------------------------------------------------- */

static void event_release(lt_MetalEvent *e) {
  if (e && --e->refs == 0) free(e);
}

static void command_free(Command *c) {
  for (int i = 0; i < c->count; i++) free(c->value[i]);
  event_release(c->event);
  free(c);
}

static char *place(const Command *c, int i) {
  return c->buffer[i] ? c->buffer[i]->memory + c->offset[i] : c->value[i];
}

/* Runs a command, which stays in its queue meanwhile. Returns false when it is blocked. Requires
 * the lock. */
static bool run(const Command *c) {
  void *arguments[LT_METAL_ARGUMENTS];
  switch (c->kind) {
  case DISPATCH:
    for (int i = 0; i < c->count; i++) arguments[i] = place(c, i);
    pthread_mutex_unlock(&lock);
    c->kernel(arguments, c->threads);
    pthread_mutex_lock(&lock);
    break;
  case COPY:
    memcpy(place(c, 0), place(c, 1), c->nbytes);
    break;
  case FILL:
    memset(place(c, 0), c->byte, c->nbytes);
    break;
  case SIGNAL:
    if (c->event->value < c->to) c->event->value = c->to;
    break;
  default:
    return c->event->value >= c->to;
  }
  return true;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Takes the first command buffer out of its queue, and reports that it is done. Requires the
 * lock. */
static void finish(lt_MetalQueue *q, lt_MetalStatus status) {
  lt_MetalCommands *c = q->first;
  lt_MetalResult result = {.error.status = status, .start = now(), .end = now()};
  snprintf(result.error.text, sizeof result.error.text, "the test stopped it");
  while (c->first) {
    Command *next = c->first->next;
    command_free(c->first);
    c->first = next;
  }
  q->first = c->next;
  if (!q->first) q->last = &q->first;
  alive.commands--;
  pthread_mutex_unlock(&lock);
  c->done(c->context, &result);
  free(c);
  pthread_mutex_lock(&lock);
}

/* Runs what a queue can run. Returns true when something was done. Requires the lock. */
static bool advance(lt_MetalQueue *q) {
  lt_MetalCommands *c = q->first;
  if (!c) return false;
  if (fail_commands_in > 0 && --fail_commands_in == 0) {
    finish(q, fail_commands_status);
    return true;
  }
  bool any = false;
  while (c->first && run(c->first)) {
    Command *next = c->first->next;
    command_free(c->first);
    c->first = next;
    any = true;
  }
  if (c->first) {
    if (fail_commands_in > 0) fail_commands_in++; /* it has not run */
    return any;
  }
  finish(q, LT_METAL_OK);
  return true;
}

static void *work(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    bool any = false;
    for (lt_MetalQueue *q = queues; q && !held; q = q->next) any = advance(q) || any;
    if (!any || held) pthread_cond_wait(&changed, &lock);
  }
  return NULL;
}

/* ---- queues and commands --------------------------------------------------------------------- */

lt_MetalQueue *lt_metal_queue_new(lt_MetalDevice *device, lt_MetalError *error) {
  (void)device;
  lt_MetalQueue *q = NULL;
  pthread_t thread;
  pthread_mutex_lock(&lock);
  if (!started) pthread_create(&thread, NULL, work, NULL);
  started = true;
  if (!fails(error)) {
    q = calloc(1, sizeof *q);
    *q = (lt_MetalQueue){.next = queues, .last = &q->first};
    queues = q;
    alive.queues++;
  }
  pthread_mutex_unlock(&lock);
  return q;
}

void lt_metal_queue_free(lt_MetalQueue *queue) {
  pthread_mutex_lock(&lock);
  queue->freed = true; /* its struct stays in the list */
  alive.queues--;
  pthread_mutex_unlock(&lock);
}

lt_MetalCommands *lt_metal_commands_new(lt_MetalQueue *queue, lt_MetalError *error) {
  lt_MetalCommands *c = NULL;
  pthread_mutex_lock(&lock);
  if (!fails(error)) {
    c = calloc(1, sizeof *c);
    *c = (lt_MetalCommands){.queue = queue, .last = &c->first};
    alive.commands++;
  }
  pthread_mutex_unlock(&lock);
  return c;
}

static Command *add(lt_MetalCommands *commands, Kind kind, int count) {
  Command *c = calloc(1, sizeof *c);
  c->kind = kind;
  c->count = count;
  *commands->last = c;
  commands->last = &c->next;
  return c;
}

static void set_place(Command *c, int i, lt_MetalBuffer *buffer, size_t offset, size_t nbytes) {
  if (offset > buffer->size || nbytes > buffer->size - offset)
    ERROR("a command of kind %d exceeds its buffer", (int)c->kind);
  c->buffer[i] = (Buffer *)buffer;
  c->offset[i] = offset;
}

void lt_metal_dispatch(lt_MetalCommands *commands, const lt_MetalDispatch *d) {
  Command *c = add(commands, DISPATCH, d->count);
  c->kernel = ((Pipeline *)d->pipeline)->run;
  c->threads = (uint64_t)d->grid[0] * d->grid[1] * d->grid[2];
  if (c->threads == 0 || d->group[0] * d->group[1] * d->group[2] > d->pipeline->threads)
    ERROR("a dispatch has a wrong size");
  for (int i = 0; i < d->count; i++) {
    const lt_MetalArgument *a = &d->arguments[i];
    if (a->buffer) set_place(c, i, a->buffer, a->offset, 1);
    if (a->bytes) memcpy(c->value[i] = malloc(a->size), a->bytes, a->size);
  }
}

void lt_metal_copy(lt_MetalCommands *commands, lt_MetalBuffer *to, size_t to_offset,
                   lt_MetalBuffer *from, size_t from_offset, size_t nbytes) {
  Command *c = add(commands, COPY, 2);
  set_place(c, 0, to, to_offset, nbytes);
  set_place(c, 1, from, from_offset, nbytes);
  c->nbytes = nbytes;
}

void lt_metal_fill(lt_MetalCommands *commands, lt_MetalBuffer *buffer, size_t offset, size_t nbytes,
                   uint8_t byte) {
  Command *c = add(commands, FILL, 1);
  set_place(c, 0, buffer, offset, nbytes);
  c->nbytes = nbytes;
  c->byte = byte;
}

static void add_event(lt_MetalCommands *commands, Kind kind, lt_MetalEvent *event, uint64_t value) {
  Command *c = add(commands, kind, 0);
  c->event = event;
  c->to = value;
  pthread_mutex_lock(&lock);
  event->refs++;
  pthread_mutex_unlock(&lock);
}

void lt_metal_signal(lt_MetalCommands *commands, lt_MetalEvent *event, uint64_t value) {
  add_event(commands, SIGNAL, event, value);
}

void lt_metal_wait(lt_MetalCommands *commands, lt_MetalEvent *event, uint64_t value) {
  add_event(commands, WAIT, event, value);
}

bool lt_metal_matmul(lt_MetalCommands *commands, const lt_MetalMatrix *out, const lt_MetalMatrix *a,
                     const lt_MetalMatrix *b, bool half) {
  (void)commands, (void)out, (void)a, (void)b, (void)half;
  return false;
}

void lt_metal_commit(lt_MetalCommands *c, void (*done)(void *, const lt_MetalResult *),
                     void *context) {
  pthread_mutex_lock(&lock);
  if (c->queue->freed) ERROR("a command buffer was committed to a queue that was freed");
  c->done = done;
  c->context = context;
  *c->queue->last = c;
  c->queue->last = &c->next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

void lt_metal_discard(lt_MetalCommands *c) {
  if (!c) return;
  pthread_mutex_lock(&lock);
  while (c->first) {
    Command *next = c->first->next;
    command_free(c->first);
    c->first = next;
  }
  alive.commands--;
  pthread_mutex_unlock(&lock);
  free(c);
}

/* ---- events ---------------------------------------------------------------------------------- */

lt_MetalEvent *lt_metal_event_new(lt_MetalDevice *device, lt_MetalError *error) {
  (void)device;
  lt_MetalEvent *e = NULL;
  pthread_mutex_lock(&lock);
  if (!fails(error)) {
    e = calloc(1, sizeof *e);
    e->refs = 1;
    alive.events++;
  }
  pthread_mutex_unlock(&lock);
  return e;
}

void lt_metal_event_free(lt_MetalEvent *event) {
  if (!event) return;
  pthread_mutex_lock(&lock);
  alive.events--;
  event_release(event);
  pthread_mutex_unlock(&lock);
}

void lt_metal_event_set(lt_MetalEvent *event, uint64_t value) {
  pthread_mutex_lock(&lock);
  if (event->value < value) event->value = value;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

void lt_metal_stop(lt_MetalDevice *device) { (void)device; }

void lt_metal_signpost(const char *name) { (void)name; }
