/* report.c: reports about a device's memory: statistics, a snapshot of all blocks, and the message
 * of an allocation that failed. */
#include "allocator.h"

/* One block of a snapshot. A snapshot is a copy, so that the visitor can run without the lock. */
typedef struct Line {
  lt_MemoryBlock block;
  char where[64];
} Line;

/* Copies the description of a block. */
static void describe(const lt_Block *b, Line *line) {
  const lt_Segment *s = b->segment;
  bool free_now = b->state == LT_BLOCK_FREE;
  line->block = (lt_MemoryBlock){.address = b->address,
                                 .segment = s->address,
                                 .size = b->size,
                                 .segment_size = s->size,
                                 .requested = free_now ? 0 : b->requested,
                                 .small = s->small,
                                 .stream = &s->stream->base,
                                 .dtype = free_now ? LT_DTYPE_NONE : b->note.dtype,
                                 .ndim = free_now ? 0 : b->note.ndim};
  line->block.state = (unsigned)b->state;
  memcpy(line->block.shape, b->note.shape, sizeof(int64_t) * (size_t)line->block.ndim);
  line->where[0] = 0;
  if (!free_now) memcpy(line->where, b->note.where, sizeof line->where);
}

/* Returns all blocks, *count of them, which the caller frees. NULL when there is none, or when
 * memory is out (then *count is -1). */
static Line *snapshot(lt_Allocator *a, int64_t *count) {
  int64_t n = 0, i = 0;
  pthread_mutex_lock(&a->lock);
  for (lt_Segment *s = a->segments; s; s = s->next)
    for (lt_Block *b = s->first; b; b = b->next) n++;
  Line *lines = n ? malloc((size_t)n * sizeof *lines) : NULL;
  *count = n && !lines ? -1 : n;
  for (lt_Segment *s = a->segments; lines && s; s = s->next)
    for (lt_Block *b = s->first; b; b = b->next) describe(b, &lines[i++]);
  pthread_mutex_unlock(&a->lock);
  for (i = 0; lines && i < n; i++) lines[i].block.where = lines[i].where;
  return lines;
}

static bool memory_each(const lt_Backend *self, int index,
                        void (*visit)(void *context, const lt_MemoryBlock *block), void *context) {
  int64_t n = 0;
  if (!lt_accel_is_ready(self, index)) return true;
  Line *lines = snapshot(lt_accel_of(self)->allocator[index], &n);
  if (n < 0) return lt_error_memory("memory_snapshot: out of memory");
  for (int64_t i = 0; i < n; i++) visit(context, &lines[i].block);
  free(lines);
  return true;
}

/* Returns the size of the largest free block. */
static int64_t largest_of(const lt_Allocator *a) {
  size_t most = 0;
  for (lt_Segment *s = a->segments; s; s = s->next)
    for (lt_Block *b = s->first; b; b = b->next)
      if (b->state == LT_BLOCK_FREE && b->size > most) most = b->size;
  return (int64_t)most;
}

static bool memory_stats(const lt_Backend *self, int index, lt_MemoryStats *out) {
  memset(out, 0, sizeof *out);
  if (!lt_accel_is_ready(self, index)) return true;
  lt_Allocator *a = lt_accel_of(self)->allocator[index];
  pthread_mutex_lock(&a->lock);
  *out = a->stats;
  out->largest_free_block = largest_of(a);
  pthread_mutex_unlock(&a->lock);
  return true;
}

static bool memory_reset_peak(const lt_Backend *self, int index) {
  if (!lt_accel_is_ready(self, index)) return true;
  lt_Allocator *a = lt_accel_of(self)->allocator[index];
  pthread_mutex_lock(&a->lock);
  for (int pool = 0; pool < LT_MEMORY_POOLS; pool++) {
#define ROW(name) a->stats.name[pool].peak = a->stats.name[pool].current;
    LT_MEMORY_STATS(ROW)
#undef ROW
  }
  pthread_mutex_unlock(&a->lock);
  return true;
}

/* ---- the message ----------------------------------------------------------------------------- */

enum { TOP = 5 };

/* Finds the largest blocks that tensors hold, the largest first, and returns their number. */
static int largest_tensors(Line *lines, int64_t n, Line *top[TOP]) {
  int found = 0;
  for (int64_t i = 0; i < n; i++) {
    if (lines[i].block.state != LT_BLOCK_ACTIVE) continue;
    int at = found < TOP ? found++ : TOP;
    while (at > 0 && top[at - 1]->block.size < lines[i].block.size) {
      if (at < TOP) top[at] = top[at - 1];
      at--;
    }
    if (at < TOP) top[at] = &lines[i];
  }
  return found;
}

/* Formats a number of bytes, "1.50 MiB", in a ring of buffers. */
static const char *amount(int64_t bytes) {
  static _Thread_local char ring[8][24];
  static _Thread_local unsigned at;
  static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB"};
  char *text = ring[at++ % 8];
  double d = (double)bytes / 1024;
  int u = 0;
  while (d >= 1024 && u < 3) d /= 1024, u++;
  if (bytes < 1024)
    snprintf(text, sizeof ring[0], "%d bytes", (int)bytes);
  else
    snprintf(text, sizeof ring[0], "%.2f %s", d, unit[u]);
  return text;
}

/* Appends the list of the largest tensors. */
static void append_tensors(lt_Text *t, lt_Allocator *a) {
  int64_t n = 0;
  Line *lines = snapshot(a, &n), *top[TOP] = {NULL};
  int found = lines ? largest_tensors(lines, n, top) : 0;
  if (found) lt_text_append(t, "\n  the largest tensors:");
  for (int i = 0; i < found; i++) {
    const lt_MemoryBlock *b = &top[i]->block;
    lt_text_append(t, "\n    %s", amount((int64_t)b->size));
    if (b->dtype != LT_DTYPE_NONE)
      lt_text_append(t, "  %s %.80s", lt_dtype_name(b->dtype), lt_shape_text(b->ndim, b->shape));
    if (b->where[0]) lt_text_append(t, "  allocated at %s", b->where);
  }
  free(lines);
}

/* Describes why an allocation failed: free, reserved and cached memory, fragmentation, and the
 * largest tensors with the lines of the program that allocated them. */
static void memory_report(const lt_Backend *self, int index, size_t nbytes, int64_t collected,
                          char *text, size_t size) {
  lt_Accel *accel = lt_accel_of(self);
  lt_Text t = {text, size, 0};
  text[0] = 0;
  if (!lt_accel_is_ready(self, index)) return;
  lt_Allocator *a = accel->allocator[index];
  lt_MemoryStats s;
  pthread_mutex_lock(&a->lock);
  a->stats.num_ooms++; /* a report is made only after every attempt has failed */
  size_t limit = a->limit;
  pthread_mutex_unlock(&a->lock);
  memory_stats(self, index, &s);
  size_t free_bytes = 0, total = 0;
  int64_t held = s.allocated_bytes[LT_POOL_ALL].current;
  int64_t waiting = s.active_bytes[LT_POOL_ALL].current - held;
  int64_t cached = s.reserved_bytes[LT_POOL_ALL].current - held - waiting;
  if (accel->driver->memory_info(index, &free_bytes, &total) == LT_DRIVER_OK)
    lt_text_append(&t, "  %s of the device's %s are free", amount((int64_t)free_bytes),
                   amount((int64_t)total));
  else
    lt_text_append(&t, "  the device does not report its free memory");
  if (limit != SIZE_MAX)
    lt_text_append(&t, "; this process is limited to %s (set_per_process_memory_fraction)",
                   amount((int64_t)limit));
  lt_text_append(&t, "\n  tensors hold %s", amount(held));
  if (waiting) lt_text_append(&t, "; %s are in use by other streams", amount(waiting));
  lt_text_append(&t, "; %s are cached, the largest free block is %s (fragmentation %.0f %%)",
                 amount(cached), amount(s.largest_free_block),
                 cached ? 100 * (1 - (double)s.largest_free_block / (double)cached) : 0.0);
  if (cached >= (int64_t)nbytes)
    lt_text_append(
        &t, "\n  the cached blocks are large enough together, but live tensors separate them");
  lt_text_append(&t, "\n  the garbage collector freed %s before this error", amount(collected));
  append_tensors(&t, a);
}

void lt_accel_fill_reports(lt_Backend *b) {
  b->memory.each = memory_each;
  b->memory.stats = memory_stats;
  b->memory.reset_peak = memory_reset_peak;
  b->memory.report = memory_report;
}
