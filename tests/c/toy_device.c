/* toy_device.c: see toy_device.h. A device pointer is a host pointer with one bit changed, so that
 * no program can have that address and accessing it faults. The device has the five core kernels
 * and no others. The elementwise loops are the CPU's, run with the queue; the other kernels are the
 * CPU's, too, run at the call after all queued work. */
#include "toy_device.h"
#include "kernel.h"
#include "opids.h"

#define DEVICES 2
#define HIDE    ((uintptr_t)1 << 62)

/* A piece of queued work. */
typedef enum Kind { LOOP, COPY, ZERO, FREE, EVENT } Kind;
typedef struct Work {
  struct Work *next;
  Kind kind;
  lt_Loop loop;
  char numbers[4][16]; /* the host's operands, read when the work was queued */
  char *to, *from;     /* COPY; from is `staged` when the source was the host's */
  size_t nbytes;
  char *staged;
  struct ToyEvent *event;
} Work;

typedef struct ToyStream {
  lt_Stream base;
  Work *first, *last;
  int count;
} ToyStream;
typedef struct ToyEvent {
  lt_Event base;
  bool recorded, done;
} ToyEvent;

static ToyStream streams[DEVICES] = {{.base = {&toy_backend, 0}}, {.base = {&toy_backend, 1}}};
static int current, blocks, failing;

int toy_queued(int index) { return streams[index].count; }
int toy_allocations(void) { return blocks; }
void toy_fail_next_alloc(int n) { failing = n; }

static int allocations_left =
    -1; /* number of allocations before the one that fails; -1: none does */
void toy_fail_after(int n) { allocations_left = n; }

static char *host_pointer(const void *device_pointer) {
  uintptr_t p = (uintptr_t)device_pointer;
  return (char *)(p & HIDE ? p ^ HIDE : p);
}

static Work *queue_work(lt_Stream *stream, Kind kind) {
  ToyStream *s = (ToyStream *)stream;
  Work *w = calloc(1, sizeof *w);
  if (!w) return lt_error_set("toy: out of memory");
  w->kind = kind;
  if (s->last)
    s->last->next = w;
  else
    s->first = w;
  s->last = w;
  s->count++;
  return w;
}

static bool do_work(Work *w) {
  const lt_Backend *cpu = lt_device_backend(LT_DEVICE_cpu);
  switch (w->kind) {
  case LOOP:
    return cpu->kernels.elementwise(&w->loop);
  case COPY:
    memcpy(w->to, w->from, w->nbytes);
    return true;
  case ZERO:
    memset(w->to, 0, w->nbytes);
    return true;
  case FREE:
    free(w->to);
    blocks--;
    return true;
  case EVENT:
    w->event->done = true;
    return true;
  }
  return false;
}

static bool drain(ToyStream *s) {
  bool ok = true;
  while (s->first) {
    Work *w = s->first;
    s->first = w->next;
    if (!s->first) s->last = NULL;
    s->count--;
    ok = do_work(w) && ok;
    free(w->staged);
    free(w);
  }
  return ok;
}

static bool synchronize(const lt_Backend *self, int index) {
  (void)self;
  return drain(&streams[index]);
}
static bool stream_synchronize(lt_Stream *s) { return drain((ToyStream *)s); }
static bool stream_query(lt_Stream *s) { return ((ToyStream *)s)->count == 0; }
static lt_Stream *stream_current(const lt_Backend *self, int index) {
  (void)self;
  return &streams[index].base;
}

static int count(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return DEVICES;
}
static int index_current(const lt_Backend *self) {
  (void)self;
  return current;
}

static bool properties(int index, lt_DeviceProperties *out) {
  *out = (lt_DeviceProperties){.total_memory = 1 << 20};
  snprintf(out->name, sizeof out->name, "Toy number %d", index);
  return true;
}

static void *toy_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream) {
  (void)self;
  (void)index;
  (void)stream;
  if (allocations_left >= 0 && allocations_left-- == 0) failing++;
  if (failing > 0) {
    failing--;
    return lt_error_set("toy: the toy box is full");
  }
  void *p = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  if (p) blocks++;
  return p ? (void *)((uintptr_t)p | HIDE) : lt_error_set("toy: out of memory");
}

/* Freed in the stream's order, so queued work may still use it. */
static void toy_free(const lt_Backend *self, int index, void *memory, size_t nbytes,
                     lt_Stream *stream) {
  (void)self;
  (void)index;
  (void)nbytes;
  Work *w = queue_work(stream, FREE);
  if (w) w->to = host_pointer(memory);
}

static bool copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                 lt_Stream *stream, bool non_blocking) {
  if (to.type == from.type && to.index != from.index && !drain(&streams[from.index])) return false;
  Work *w = queue_work(stream, COPY);
  if (!w) return false;
  w->to = host_pointer(target);
  w->from = host_pointer(source);
  w->nbytes = nbytes;
  if (from.type == LT_DEVICE_cpu) { /* the source may change after the call */
    w->staged = malloc(nbytes);
    if (!w->staged) return lt_error_set("toy: out of memory");
    memcpy(w->staged, source, nbytes);
    w->from = w->staged;
    return true;
  }
  return to.type != LT_DEVICE_cpu || non_blocking || drain((ToyStream *)stream);
}

static bool fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  (void)index;
  Work *w = queue_work(stream, ZERO);
  if (!w) return false;
  w->to = host_pointer(memory);
  w->nbytes = nbytes;
  return true;
}

static bool elementwise(const lt_Loop *loop) {
  Work *w = queue_work(loop->stream, LOOP);
  if (!w) return false;
  w->loop = *loop;
  w->loop.device = lt_cpu();
  for (int k = 0; k <= loop->inputs; k++) {
    lt_Operand *o = &w->loop.operand[k];
    if (o->host) {
      memcpy(w->numbers[k], o->data, lt_dtype_size(o->dtype));
      o->data = w->numbers[k];
    } else {
      o->data = host_pointer(o->data);
    }
  }
  return true;
}

static bool elementwise_supported(lt_OpId op, lt_Dtype compute) {
  (void)compute;
  return op != LT_OP_erf && op != LT_OP_exp;
}

static lt_Event *event_new(const lt_Backend *self, int index, bool timing) {
  (void)timing;
  ToyEvent *e = calloc(1, sizeof *e);
  if (e) e->base = (lt_Event){self, index};
  return e ? &e->base : NULL;
}
static void event_free(lt_Event *e) { free(e); }
static bool event_query(lt_Event *event) {
  ToyEvent *e = (ToyEvent *)event;
  return !e->recorded || e->done;
}
static bool event_record(lt_Event *event, lt_Stream *s) {
  ToyEvent *e = (ToyEvent *)event;
  Work *w = queue_work(s, EVENT);
  if (!w) return false;
  e->recorded = true;
  e->done = false;
  w->event = e;
  return true;
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define LT_KERNEL_NAME(op) toy_##op
#define LT_KERNEL_LINK     __attribute__((weak))
#include "kernel_table.def"

/* A device tensor as one that the host can read. */
typedef struct HostView {
  lt_Tensor tensor;
  lt_Storage storage;
} HostView;

static lt_Tensor *host_view(const lt_Tensor *t, HostView *s) {
  memcpy(&s->tensor, t, sizeof *t);
  memcpy(&s->storage, t->storage, sizeof *t->storage);
  s->storage.data = host_pointer(t->storage->data);
  s->storage.device = lt_cpu();
  s->tensor.storage = &s->storage;
  return &s->tensor;
}

static bool run_now(lt_Call *c) {
  HostView args[LT_MAX_ARGS], out;
  lt_Call host = *c;
  for (int i = 0; i < c->nargs; i++)
    if (c->arg[i].kind == LT_ARG_TENSOR) host.arg[i].tensor = host_view(c->arg[i].tensor, &args[i]);
  host.out[0] = host_view(c->out[0], &out);
  host.device = lt_cpu();
  return drain(&streams[c->device.index]) &&
         lt_device_backend(LT_DEVICE_cpu)->kernels.table[c->op](&host);
}

bool toy_sum(lt_Call *c) { return run_now(c); }
bool toy_mm(lt_Call *c) { return run_now(c); }
bool toy_gather(lt_Call *c) { return run_now(c); }
bool toy__scatter(lt_Call *c) { return run_now(c); }

const lt_Backend toy_backend = {
    .abi = LT_BACKEND_ABI,
    .name = "toy",
    .numbered = true,
    .asynchronous = true,
    .has_data = true,
    .without_dtypes = 1u << LT_float64 | 1u << LT_complex128,
    .count = count,
    .properties = properties,
    .index_current = index_current,
    .memory.alloc = toy_alloc,
    .memory.free = toy_free,
    .memory.copy = copy,
    .memory.fill_zero = fill_zero,
    .streams.current = stream_current,
    .streams.query = stream_query,
    .streams.synchronize = stream_synchronize,
    .streams.event_create = event_new,
    .streams.event_destroy = event_free,
    .streams.event_record = event_record,
    .streams.event_query = event_query,
    .streams.device_synchronize = synchronize,
    .kernels.elementwise = elementwise,
    .kernels.elementwise_supported = elementwise_supported,
    .kernels.table = kernels,
};
