/* graphs.c: graphs: the capture of a thread's work, what the work refers to, replays.
 *
 * A capture records the work that its thread queues on a stream, and on streams that wait for that
 * one. Memory that the thread allocates meanwhile belongs to the graph's private pool, from which
 * nothing else is allocated. Memory from elsewhere is kept: the graph holds a reference to its
 * storage. So all addresses stay valid until the graph is freed.
 *
 * What cannot be captured is refused before the driver is called. The capture remembers the first
 * refusal, and fails with it at its end, also when the program has caught the error.
 *
 * Freeing a graph blocks until the device is done, which is not possible during a capture: graphs
 * that are freed meanwhile (by a garbage collector) are deferred until it ends.
 */
#include "allocator.h"
#include "core.h"

/* Memory for a library's work on one stream. */
typedef struct Workspace {
  struct Workspace *next;
  const lt_Stream *stream;
  void *memory;
} Workspace;

/* Pinned memory that captured copies use. */
typedef struct HostMemory {
  struct HostMemory *next;
  void *memory;
  size_t nbytes;
} HostMemory;

typedef struct lt_AccelGraph {
  lt_Graph base;
  struct lt_AccelGraph *next; /* in the list of deferred graphs */
  uint32_t pool;
  uint64_t number;         /* of the capture, unique in the process */
  lt_AccelStream *stream;  /* of the capture, while it is underway */
  lt_AccelStream **joined; /* the other streams that are part of it */
  int joined_count;
  void *native;      /* NULL: not captured */
  char why[400];     /* the first refusal of the capture, or "" */
  lt_Storage **kept; /* storages from elsewhere */
  size_t kept_count, kept_room;
  HostMemory *host;
  Workspace *workspaces;
  lt_Device device; /* of `random` */
  uint64_t *random; /* device memory: see lt_capture_random; NULL: no numbers are drawn */
  uint64_t drawn;   /* blocks of four random numbers that a replay draws */
} Graph;

static _Atomic uint32_t last_pool;
static _Atomic uint64_t last_capture;

static uint32_t pool_new(const lt_Backend *self) {
  (void)self;
  return atomic_fetch_add(&last_pool, 1) + 1;
}

/* ---- the capture of this thread -------------------------------------------------------------- */

/* Returns the graph that this thread captures on the device, or NULL. */
static Graph *capture_of(const lt_Backend *b, int index) {
  Graph *g = (Graph *)lt_thread()->capturing;
  return g && g->base.backend == b && g->base.index == index ? g : NULL;
}

lt_Graph *lt_capture_of(const lt_Backend *b, int index) {
  Graph *g = capture_of(b, index);
  return g ? &g->base : NULL;
}

uint32_t lt_capture_pool(const lt_Backend *b, int index) {
  const Graph *g = capture_of(b, index);
  return g ? g->pool : 0;
}

uint64_t lt_capture_number(const lt_Backend *b) {
  const Graph *g = (Graph *)lt_thread()->capturing;
  return g && g->base.backend == b ? g->number : 0;
}

/* Makes the capture fail with the error in the slot, if it has not failed before. Returns false. */
static bool refuse(Graph *g) {
  if (!g->why[0]) snprintf(g->why, sizeof g->why, "%s", lt_error());
  return false;
}

bool lt_capture_allows(const lt_Backend *b, int index, const char *what, const char *hint) {
  Graph *g = capture_of(b, index);
  if (!g) return true;
  bool op = lt_thread()->user_op; /* otherwise the caller adds its own name */
  lt_error_set("%s%scannot %s while a graph is captured on \"%s\"%s%s", op ? lt_user_op() : "",
               op ? ": " : "", what, lt_accel_name(b, index), hint ? "\nhint: " : "",
               hint ? hint : "");
  return refuse(g);
}

bool lt_capture_includes(const lt_Backend *b, int index, const lt_Stream *stream) {
  bool is = false;
  if (lt_capture_number(b) == 0) return false;
  lt_AccelDriver const *d = lt_accel_of(b)->driver;
  return d->is_capturing(index, lt_accel_native(stream), &is) == LT_DRIVER_OK && is;
}

static bool is_capturing(lt_Stream *stream) {
  bool is = false;
  const lt_Backend *b = stream->backend;
  return lt_accel_is_ready(b, stream->index) &&
         lt_accel_of(b)->driver->is_capturing(stream->index, lt_accel_native(stream), &is) ==
             LT_DRIVER_OK &&
         is;
}

void lt_capture_join(lt_Graph *graph, lt_AccelStream *stream) {
  Graph *g = (Graph *)graph;
  if (stream == g->stream) return;
  for (int i = 0; i < g->joined_count; i++)
    if (g->joined[i] == stream) return;
  lt_AccelStream **more = realloc(g->joined, sizeof *more * ((size_t)g->joined_count + 1));
  if (!more) {
    lt_fail_memory();
    refuse(g);
    return;
  }
  g->joined = more;
  lt_accel_stream_use(g->joined[g->joined_count++] = stream);
}

/* ---- what a graph keeps ---------------------------------------------------------------------- */

/* Returns true when the graph's pool keeps the memory for work on this stream: it was allocated
 * there in the capture. */
static bool is_in_pool(const Graph *g, const lt_Storage *s, const lt_Stream *stream) {
  if (s->pinned || s->stream != stream) return false;
  lt_Allocator *a = lt_accel_of(g->base.backend)->allocator[g->base.index];
  return lt_allocator_pool_of(a, s->data) == g->pool;
}

bool lt_capture_keep(lt_Graph *graph, lt_Storage *s, const lt_Stream *stream) {
  Graph *g = (Graph *)graph;
  if (is_in_pool(g, s, stream)) return true;
  for (size_t i = g->kept_count; i > 0; i--)
    if (g->kept[i - 1] == s) return true;
  if (g->kept_count == g->kept_room) {
    size_t room = g->kept_room ? 2 * g->kept_room : 64;
    lt_Storage **more = realloc(g->kept, sizeof *more * room);
    if (!more) {
      lt_fail_memory();
      return refuse(g);
    }
    g->kept = more;
    g->kept_room = room;
  }
  g->kept[g->kept_count++] = lt_storage_retain(s);
  return true;
}

bool lt_capture_keep_host(lt_Graph *graph, void *memory, size_t nbytes) {
  Graph *g = (Graph *)graph;
  HostMemory *h = malloc(sizeof *h);
  if (!h) {
    g->base.backend->memory.host_free(g->base.backend, memory, nbytes, NULL);
    lt_fail_memory();
    return refuse(g);
  }
  *h = (HostMemory){g->host, memory, nbytes};
  g->host = h;
  return true;
}

void *lt_capture_workspace(lt_Graph *graph, lt_Stream *stream, size_t nbytes) {
  Graph *g = (Graph *)graph;
  const lt_Backend *b = g->base.backend;
  for (Workspace *w = g->workspaces; w; w = w->next)
    if (w->stream == stream) return w->memory;
  Workspace *w = malloc(sizeof *w);
  void *memory = w ? b->memory.alloc(b, g->base.index, nbytes, stream) : NULL;
  if (!memory) {
    if (!w) lt_fail_memory();
    free(w);
    return NULL;
  }
  *w = (Workspace){g->workspaces, stream, memory};
  g->workspaces = w;
  return memory;
}

/* The memory is not of the graph's pool, in which other work of the graph may have used it before:
 * its numbers are written before the replay. */
const uint64_t *lt_capture_random(lt_Graph *graph, lt_Device device, uint64_t n,
                                  uint64_t *position) {
  Graph *g = (Graph *)graph;
  const lt_Backend *b = graph->backend;
  lt_Accel *accel = lt_accel_of(b);
  if (!g->random) {
    g->device = device;
    g->random = lt_allocator_alloc(accel->allocator[graph->index], 0, 2 * sizeof *g->random,
                                   &accel->default_stream[graph->index]);
  }
  *position = g->drawn;
  g->drawn += (n + 3) / 4;
  return g->random;
}

/* Queues a copy of the seed and the position of a replay's random numbers. */
static bool send_random(const Graph *g, lt_Stream *stream) {
  uint64_t state[2];
  if (!g->random) return true;
  lt_generator_reserve(NULL, 4 * g->drawn, &state[0], &state[1]);
  return g->base.backend->memory.copy(g->device, g->random, lt_cpu(), state, sizeof state, stream,
                                      false);
}

/* Releases everything that the captured work refers to. Its replays are done. */
static void release_kept(Graph *g) {
  const lt_Backend *b = g->base.backend;
  while (g->workspaces) {
    Workspace *w = g->workspaces;
    g->workspaces = w->next;
    b->memory.free(b, g->base.index, w->memory, 0, NULL);
    free(w);
  }
  while (g->host) {
    HostMemory *h = g->host;
    g->host = h->next;
    b->memory.host_free(b, h->memory, h->nbytes, NULL);
    free(h);
  }
  if (g->random) b->memory.free(b, g->base.index, g->random, 0, NULL);
  for (size_t i = 0; i < g->kept_count; i++) lt_storage_release(g->kept[i]);
  free(g->kept);
  g->kept = NULL;
  g->kept_count = g->kept_room = 0;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* Frees a graph whose capture has ended, while no other is underway on its device. Keeps the error
 * slot. */
static void graph_free(Graph *g) {
  lt_Accel *accel = lt_accel_of(g->base.backend);
  int index = g->base.index;
  lt_ErrorSlot kept;
  lt_error_keep(&kept);
  if (lt_accel_usable(accel)) {
    accel->driver->synchronize(index);
    if (g->native) accel->driver->graph_free(index, g->native);
    release_kept(g);
    lt_allocator_pool_close(accel->allocator[index], g->pool);
  } else {
    release_kept(g);
  }
  lt_error_restore(&kept);
  free(g->joined);
  free(g);
}

/* Frees a graph, or defers that. */
static void graph_drop(Graph *g) {
  lt_Accel *accel = lt_accel_of(g->base.backend);
  pthread_mutex_lock(&accel->graphs_lock);
  bool deferred = accel->capturing[g->base.index];
  if (deferred) {
    g->next = accel->deferred;
    accel->deferred = g;
  }
  pthread_mutex_unlock(&accel->graphs_lock);
  if (!deferred) graph_free(g);
}

void lt_graphs_free(lt_Accel *accel) {
  pthread_mutex_lock(&accel->graphs_lock);
  Graph *all = accel->deferred;
  accel->deferred = NULL;
  pthread_mutex_unlock(&accel->graphs_lock);
  while (all) {
    Graph *g = all;
    all = g->next;
    graph_drop(g);
  }
}

/* ---- capture --------------------------------------------------------------------------------- */

/* Marks the device as one with a capture underway; fails where another thread captures. */
static bool claim(lt_Accel *accel, int index) {
  pthread_mutex_lock(&accel->graphs_lock);
  bool ok = !accel->capturing[index];
  accel->capturing[index] = true;
  pthread_mutex_unlock(&accel->graphs_lock);
  return ok ||
         lt_error_set("graph: cannot begin a capture on \"%s\": another thread captures there",
                      lt_accel_name(accel->backend, index));
}

static void unclaim(lt_Accel *accel, int index) {
  pthread_mutex_lock(&accel->graphs_lock);
  accel->capturing[index] = false;
  pthread_mutex_unlock(&accel->graphs_lock);
}

bool lt_capture_underway(lt_Accel *accel, int index) {
  pthread_mutex_lock(&accel->graphs_lock);
  bool is = accel->capturing[index];
  pthread_mutex_unlock(&accel->graphs_lock);
  return is;
}

/* Blocks until the device is done and returns unused memory to the driver, from which the private
 * pool allocates; then the driver captures. */
static bool start(Graph *g, lt_Accel *accel, int index) {
  const lt_Backend *b = g->base.backend;
  lt_Allocator *a = accel->allocator[index];
  if (!lt_wait_device(b, index) || !b->streams.device_synchronize(b, index) ||
      !lt_allocator_release(a, false) || !lt_allocator_pool_open(a, g->pool))
    return false;
  lt_DriverStatus status = accel->driver->capture_begin(index, g->stream->native);
  if (status == LT_DRIVER_OK) return true;
  if (status == LT_DRIVER_NO_MEMORY)
    lt_error_memory("graph: cannot begin a capture on \"%s\": out of memory",
                    lt_accel_name(b, index));
  lt_allocator_pool_close(a, g->pool);
  return false;
}

static lt_Graph *begin(const lt_Backend *self, lt_Stream *stream, uint32_t pool) {
  lt_Accel *accel = lt_accel_of(self);
  int index = stream->index;
  if (lt_thread()->capturing)
    return lt_error_set("graph: cannot begin a capture: another graph is being captured");
  if (stream == self->streams.get_default(self, index))
    return lt_error_set("graph: cannot capture the default stream of \"%s\"\nhint: "
                        "lt.cuda.graph(g, f) captures on a stream of its own",
                        lt_accel_name(self, index));
  if (!lt_accel_ready(self, index)) return NULL;
  Graph *g = calloc(1, sizeof *g);
  if (!g) return lt_error_memory("graph: out of memory");
  g->base = (lt_Graph){self, index};
  g->pool = pool ? pool : pool_new(self);
  g->number = atomic_fetch_add(&last_capture, 1) + 1;
  g->stream = (lt_AccelStream *)stream;
  bool claimed = claim(accel, index);
  if (!claimed || !start(g, accel, index)) {
    if (claimed) unclaim(accel, index);
    free(g);
    return NULL;
  }
  lt_accel_stream_use(g->stream);
  lt_thread()->capturing = &g->base;
  return &g->base;
}

/* Ends the capture, without an error. Returns the driver's status. */
static lt_DriverStatus finish(Graph *g) {
  lt_Accel *accel = lt_accel_of(g->base.backend);
  int index = g->base.index;
  lt_DriverStatus status = LT_DRIVER_FAILED;
  if (lt_thread()->capturing == &g->base) lt_thread()->capturing = NULL;
  if (lt_accel_usable(accel))
    status = accel->driver->capture_end(index, g->stream->native, &g->native);
  unclaim(accel, index);
  for (int i = 0; i < g->joined_count; i++) lt_accel_stream_drop(accel, g->joined[i]);
  g->joined_count = 0;
  lt_AccelStream *stream = g->stream;
  g->stream = NULL;
  lt_accel_stream_drop(accel, stream);
  return status;
}

static bool end(lt_Graph *graph) {
  Graph *g = (Graph *)graph;
  if (!g->stream) return lt_error_set("graph: cannot end the capture: none is underway");
  lt_error_clear();
  lt_DriverStatus status = finish(g);
  lt_graphs_free(lt_accel_of(graph->backend));
  if (g->why[0]) return lt_error_set("%s", g->why);
  if (status == LT_DRIVER_NO_MEMORY)
    lt_error_memory("graph: cannot end the capture on \"%s\": out of memory",
                    lt_accel_name(graph->backend, graph->index));
  /* Memory that the pool got from other streams may still be used by work of theirs. */
  return status == LT_DRIVER_OK &&
         lt_accel_of(graph->backend)->driver->synchronize(graph->index) == LT_DRIVER_OK;
}

static void destroy(lt_Graph *graph) {
  if (!graph) return;
  Graph *g = (Graph *)graph;
  lt_Accel *accel = lt_accel_of(graph->backend);
  if (g->stream) {
    lt_ErrorSlot kept;
    lt_error_keep(&kept);
    finish(g);
    lt_error_restore(&kept);
  }
  graph_drop(g);
  lt_graphs_free(accel);
}

/* ---- replay ---------------------------------------------------------------------------------- */

/* Pinned memory that the work reads or writes: the replay waits for copies of it that are queued on
 * other streams, and the host will wait for the replay. */
static void order_host(const Graph *g, lt_Stream *stream, bool after) {
  for (size_t i = 0; i < g->kept_count; i++) {
    if (!g->kept[i]->pinned) continue;
    if (after)
      lt_storage_set_pending(g->kept[i], stream, true);
    else
      lt_storage_wait_pending(g->kept[i], stream, true);
  }
}

static bool replay(lt_Graph *graph, lt_Stream *stream) {
  Graph *g = (Graph *)graph;
  const lt_Backend *b = graph->backend;
  if (g->stream || !g->native)
    return lt_error_set("replay: expected a graph that was captured, got one without a capture");
  if (stream->backend != b || stream->index != graph->index)
    return lt_error_set("replay: expected a stream of \"%s\", where the graph was captured, got "
                        "one of \"%s\"",
                        lt_accel_name(b, graph->index),
                        lt_accel_name(stream->backend, stream->index));
  if (!lt_capture_allows(b, graph->index, "replay a graph", NULL)) return false;
  if (!send_random(g, stream)) return false;
  order_host(g, stream, false);
  lt_DriverStatus status =
      lt_accel_of(b)->driver->graph_launch(graph->index, g->native, lt_accel_native(stream));
  if (status == LT_DRIVER_OK) order_host(g, stream, true);
  if (status == LT_DRIVER_NO_MEMORY)
    lt_error_memory("replay: cannot launch the graph on \"%s\": out of memory",
                    lt_accel_name(b, graph->index));
  return status == LT_DRIVER_OK;
}

static uint32_t pool_of(const lt_Graph *graph) { return ((const Graph *)graph)->pool; }

void lt_accel_fill_graphs(lt_Backend *b) {
  if (!lt_accel_of(b)->driver->capture_begin) return;
  b->graphs = (lt_DeviceGraphs){pool_new, begin, end, replay, pool_of, destroy, is_capturing};
}
