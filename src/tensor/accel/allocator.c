/* allocator.c: the caching allocator, with PyTorch's rules and statistics.
 *
 * A request is rounded up to 512 bytes. Up to 1 MiB it is allocated in segments of 2 MiB (small
 * pool), above that in segments of 20 MiB, and from 10 MiB on in segments of its own size in steps
 * of 2 MiB (large pool). Freed blocks are cached: the next request on the same stream gets the
 * smallest free block that fits. Since the work of a stream runs in order, a block can be reused on
 * its own stream at once, even while queued work still uses it; a block that other streams use
 * waits for an event of each of them.
 *
 * Invariants, checked step by step by tests/c/test_allocator.c: the blocks of a segment cover it
 * without gaps; two free blocks are never neighbours; the statistics equal a recount.
 *
 * An allocation first frees waiting blocks whose events are done, then searches the free blocks,
 * then calls the driver. What is tried when that fails is in storage.c. */
#include "allocator.h"
#include "core.h"

/* ---- statistics ------------------------------------------------------------------------------ */

/* Adds n, which may be negative, to a quantity. */
static void move_stat(lt_Stat *s, int64_t n) {
  s->current += n;
  if (n > 0) s->allocated += n;
  if (n < 0) s->freed -= n;
  if (s->current > s->peak) s->peak = s->current;
}

/* Adds n to a quantity, in the pool and in the total. */
static void count_stat(lt_Stat *stat, bool small, int64_t n) {
  move_stat(&stat[LT_POOL_ALL], n);
  move_stat(&stat[small ? LT_SMALL_POOL : LT_LARGE_POOL], n);
}

#define COUNT(a, field, small, n) count_stat((a)->stats.field, small, (int64_t)(n))

/* Returns true when a block is only a part of its segment. */
static bool is_split(const lt_Block *b) { return b->prev || b->next; }

/* ---- structs --------------------------------------------------------------------------------- */

/* Returns an unused struct, all zero except its note; NULL when memory is out. */
static lt_Block *block_new(lt_Allocator *a) {
  lt_Block *b = a->spare;
  if (b)
    a->spare = b->chain;
  else
    b = malloc(sizeof *b);
  if (b) memset(b, 0, offsetof(lt_Block, note));
  return b;
}

/* Keeps an unused struct for block_new, which then cannot fail. */
static void block_drop(lt_Allocator *a, lt_Block *b) {
  b->chain = a->spare;
  a->spare = b;
}

lt_Allocator *lt_allocator_new(lt_Accel *accel, int index) {
  lt_Allocator *a = calloc(1, sizeof *a);
  if (!a || !lt_block_map_open(&a->held)) {
    free(a);
    return lt_fail_memory(), NULL;
  }
  pthread_mutex_init(&a->lock, NULL);
  const char *debug = getenv("LUTRA_MEMORY_DEBUG");
  a->debug = debug && strcmp(debug, "1") == 0;
  a->accel = accel;
  a->index = index;
  a->limit = SIZE_MAX;
  a->free_set[0].random = a->free_set[1].random = 1;
  return a;
}

/* Returns the set of free blocks to which b belongs. */
static lt_BlockSet *set_of(lt_Allocator *a, const lt_Block *b) {
  return &a->free_set[b->segment->small];
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Returns the size of the segment that is reserved for a block of this size. */
static size_t segment_size(size_t size) {
  if (size <= LT_SMALL_LIMIT) return LT_SMALL_SEGMENT;
  if (size < LT_LARGE_LIMIT) return LT_LARGE_SEGMENT;
  return (size + LT_LARGE_ROUND - 1) / LT_LARGE_ROUND * LT_LARGE_ROUND;
}

/* With LUTRA_MEMORY_DEBUG=1, fills memory with 0xFF: floats are NaN, integers -1, indices out of
 * range. */
static void poison(lt_Allocator *a, void *memory, size_t nbytes, const lt_AccelStream *stream) {
  const lt_AccelDriver *d = a->accel->driver;
  if (a->debug && d->memory_fill) d->memory_fill(a->index, memory, 0xFF, nbytes, stream->native);
}

/* Sets an error of kind LT_ERROR_MEMORY that starts with the device's name. */
static bool no_memory(const lt_Allocator *a, const char *why) {
  lt_error_memory("%s: %s", lt_accel_name(a->accel->backend, a->index), why);
  return false;
}

/* Reserves memory from the driver, within the limit. */
static bool reserve(lt_Allocator *a, size_t size, void **memory) {
  size_t reserved = (size_t)a->stats.reserved_bytes[LT_POOL_ALL].current;
  if (size > a->limit || reserved > a->limit - size)
    return no_memory(a, "the limit set for this process would be exceeded");
  switch (a->accel->driver->memory_new(a->index, size, memory)) {
  case LT_DRIVER_OK:
    return true;
  case LT_DRIVER_NO_MEMORY:
    return no_memory(a, "the device has no more memory");
  default:
    lt_error_not_memory();
    return false;
  }
}

/* Reserves a segment and returns it as one block, which is in no container. */
static lt_Block *segment_new(lt_Allocator *a, uint32_t pool, size_t size, lt_AccelStream *stream) {
  void *memory = NULL;
  size_t whole = a->debug ? size : segment_size(size);
  if (!reserve(a, whole, &memory)) return NULL;
  lt_Segment *s = malloc(sizeof *s);
  lt_Block *b = block_new(a);
  if (!s || !b) {
    free(s);
    if (b) block_drop(a, b);
    a->accel->driver->memory_free(a->index, memory);
    no_memory(a, "out of host memory");
    return NULL;
  }
  *s = (lt_Segment){memory, whole, size <= LT_SMALL_LIMIT, pool, stream, b, NULL, a->segments};
  if (s->next) s->next->prev = s;
  a->segments = s;
  b->address = memory;
  b->size = whole;
  b->segment = s;
  a->stats.num_device_alloc++;
  COUNT(a, segment, s->small, 1);
  COUNT(a, reserved_bytes, s->small, whole);
  return b;
}

/* Returns a segment to the driver. Its only block is in no container. */
static bool segment_delete(lt_Allocator *a, lt_Segment *s) {
  bool ok = a->accel->driver->memory_free(a->index, s->address) == LT_DRIVER_OK;
  if (s->prev)
    s->prev->next = s->next;
  else
    a->segments = s->next;
  if (s->next) s->next->prev = s->prev;
  a->stats.num_device_free++;
  COUNT(a, segment, s->small, -1);
  COUNT(a, reserved_bytes, s->small, -(int64_t)s->size);
  block_drop(a, s->first);
  free(s);
  return ok;
}

/* ---- waiting blocks -------------------------------------------------------------------------- */

/* Streams that have not reached a recorded use: then they have not reached later ones either, which
 * need no query. A query is slow, and there may be many blocks. */
typedef struct Behind {
  int count;
  struct {
    uint64_t stream, when;
    int index;
  } at[8];
} Behind;

/* Returns true when a use is known not to be done. */
static bool is_behind(const Behind *behind, const lt_BlockUse *use) {
  for (int i = 0; i < behind->count; i++)
    if (behind->at[i].stream == use->stream && behind->at[i].index == use->index &&
        behind->at[i].when <= use->when)
      return true;
  return false;
}

/* Notes that a use is not done. */
static void note_behind(Behind *behind, const lt_BlockUse *use) {
  int room = sizeof behind->at / sizeof *behind->at;
  if (behind->count == room) return;
  behind->at[behind->count].stream = use->stream;
  behind->at[behind->count].index = use->index;
  behind->at[behind->count++].when = use->when;
}

/* Removes the uses of a block that are done. */
static lt_DriverStatus drop_finished_uses(lt_Allocator *a, lt_Block *b, Behind *behind) {
  lt_BlockUse **link = &b->uses;
  while (*link) {
    lt_BlockUse *use = *link;
    bool known = is_behind(behind, use);
    lt_DriverStatus status =
        known ? LT_DRIVER_NOT_READY : a->accel->driver->event_query(use->index, use->event);
    if (status == LT_DRIVER_FAILED) return status;
    if (status == LT_DRIVER_NOT_READY) {
      if (!known) note_behind(behind, use);
      link = &use->next;
      continue;
    }
    *link = use->next;
    lt_event_give(a->accel, use->index, use->event);
    free(use);
  }
  return b->uses ? LT_DRIVER_NOT_READY : LT_DRIVER_OK;
}

/* Merges b with a free neighbour, which leaves its set. */
static void merge(lt_Allocator *a, lt_Block *b, lt_Block *other) {
  lt_block_set_remove(set_of(a, other), other);
  if (other == b->prev) {
    b->address = other->address;
    b->prev = other->prev;
    if (b->prev)
      b->prev->next = b;
    else
      b->segment->first = b;
  } else {
    b->next = other->next;
    if (b->next) b->next->prev = b;
  }
  b->size += other->size;
  block_drop(a, other);
}

/* Makes a block free that nothing uses any more, and merges it with its free neighbours. */
static void retire(lt_Allocator *a, lt_Block *b) {
  bool small = b->segment->small;
  int64_t splits = 0, split_bytes = 0;
  COUNT(a, active, small, -1);
  COUNT(a, active_bytes, small, -(int64_t)b->size);
  COUNT(a, requested_bytes, small, -(int64_t)b->requested);
  lt_Block *neighbours[] = {b->prev, b->next};
  for (int i = 0; i < 2; i++) {
    lt_Block *other = neighbours[i];
    if (!other || other->state != LT_BLOCK_FREE) continue;
    splits--;
    split_bytes -= (int64_t)other->size;
    merge(a, b, other);
  }
  if (is_split(b)) {
    splits++;
    split_bytes += (int64_t)b->size;
  }
  if (splits) COUNT(a, inactive_split, small, splits);
  if (split_bytes) COUNT(a, inactive_split_bytes, small, split_bytes);
  b->state = LT_BLOCK_FREE;
  lt_block_set_add(set_of(a, b), b);
  if (a->debug && !b->segment->pool) { /* a graph uses the addresses of its pool */
    lt_block_set_remove(set_of(a, b), b);
    segment_delete(a, b->segment);
  }
}

/* Frees the waiting blocks whose events are done. False when the driver failed. */
static bool retire_waiting(lt_Allocator *a) {
  bool ok = true;
  Behind behind = {.count = 0};
  lt_Block *last = NULL;
  for (lt_Block **link = &a->waiting; *link;) {
    lt_Block *b = *link;
    lt_DriverStatus status = drop_finished_uses(a, b, &behind);
    if (status == LT_DRIVER_FAILED) {
      lt_error_not_memory();
      ok = false;
    }
    if (status != LT_DRIVER_OK) {
      last = b;
      link = &b->chain;
      continue;
    }
    *link = b->chain;
    b->chain = NULL;
    retire(a, b);
  }
  a->waiting_last = last;
  return ok;
}

/* ---- allocation ------------------------------------------------------------------------------ */

/* Splits b, which is in no set, after `size` bytes; the rest becomes a free block. `was_split`: b
 * was only a part of its segment before. */
static void cut(lt_Allocator *a, lt_Block *b, size_t size, bool was_split) {
  bool small = b->segment->small;
  size_t rest = b->size - size;
  lt_Block *tail =
      !a->debug && (small ? rest >= LT_BLOCK_ROUND : rest > LT_SMALL_LIMIT) ? block_new(a) : NULL;
  if (!tail) { /* use the whole block */
    if (!was_split) return;
    COUNT(a, inactive_split, small, -1);
    COUNT(a, inactive_split_bytes, small, -(int64_t)b->size);
    return;
  }
  tail->address = b->address + size;
  tail->size = rest;
  tail->segment = b->segment;
  tail->prev = b;
  tail->next = b->next;
  tail->state = LT_BLOCK_FREE;
  if (tail->next) tail->next->prev = tail;
  b->next = tail;
  b->size = size;
  lt_block_set_add(set_of(a, tail), tail);
  if (!was_split) COUNT(a, inactive_split, small, 1);
  COUNT(a, inactive_split_bytes, small, was_split ? -(int64_t)size : (int64_t)rest);
}

/* Returns true when a segment is one free block. */
static bool is_whole(const lt_Segment *s) {
  return s->first->state == LT_BLOCK_FREE && !s->first->next;
}

/* When the driver has no more memory, gives the smallest ordinary segment that is free and large
 * enough to a private pool, and returns its block, which is then in no set; NULL without one.
 * During a capture such segments cannot be returned to the driver. */
static lt_Block *adopt_segment(lt_Allocator *a, uint32_t pool, size_t size,
                               lt_AccelStream *stream) {
  lt_Segment *best = NULL;
  for (lt_Segment *s = a->segments; s; s = s->next)
    if (s->pool == 0 && s->small == (size <= LT_SMALL_LIMIT) && s->size >= size && is_whole(s) &&
        (!best || s->size < best->size))
      best = s;
  if (!best) return NULL;
  lt_block_set_remove(set_of(a, best->first), best->first);
  best->pool = pool;
  best->stream = stream;
  lt_error_clear();
  return best->first;
}

/* Returns a block for a request: a free one, or a new segment; split to the requested size. */
static lt_Block *find_block(lt_Allocator *a, uint32_t pool, size_t nbytes, lt_AccelStream *stream) {
  if (!retire_waiting(a)) return NULL;
  if (nbytes > SIZE_MAX / 2) {
    no_memory(a, "the size is larger than any device's memory");
    return NULL;
  }
  size_t size = a->debug ? nbytes : (nbytes + LT_BLOCK_ROUND - 1) / LT_BLOCK_ROUND * LT_BLOCK_ROUND;
  lt_BlockSet *set = &a->free_set[size <= LT_SMALL_LIMIT];
  lt_Block *b = lt_block_set_fit(set, pool, stream->id, size);
  bool was_split = b && is_split(b);
  if (b)
    lt_block_set_remove(set, b);
  else
    b = segment_new(a, pool, size, stream);
  if (!b && pool && lt_error_is_memory()) b = adopt_segment(a, pool, size, stream);
  if (!b) return NULL;
  cut(a, b, size, was_split);
  bool small = b->segment->small;
  b->state = LT_BLOCK_ACTIVE;
  b->requested = nbytes;
  COUNT(a, allocation, small, 1);
  COUNT(a, allocated_bytes, small, b->size);
  COUNT(a, active, small, 1);
  COUNT(a, active_bytes, small, b->size);
  COUNT(a, requested_bytes, small, nbytes);
  return b;
}

/* Describes the tensor that is being allocated, and the line of the program if the allocation is
 * large: asking for the line costs more than a small allocation. */
static void take_note(lt_BlockNote *note, size_t nbytes) {
  const lt_AllocationInfo *info = &lt_thread()->allocating;
  note->dtype = info->shape ? info->dtype : LT_DTYPE_NONE;
  note->ndim = info->shape ? info->ndim : 0;
  for (int i = 0; i < note->ndim; i++) note->shape[i] = info->shape[i];
  note->where[0] = 0;
  if (nbytes >= 4096) lt_memory_where(note->where, sizeof note->where);
}

void *lt_allocator_alloc(lt_Allocator *a, uint32_t pool, size_t nbytes, lt_AccelStream *stream) {
  lt_BlockNote note;
  take_note(&note, nbytes); /* invokes a callback of the host, so not under the lock */
  pthread_mutex_lock(&a->lock);
  lt_Block *b = find_block(a, pool, nbytes, stream);
  void *memory = NULL;
  if (b) {
    lt_accel_stream_retain(stream);
    b->maker = stream;
    b->note = note;
    memory = b->address;
    lt_block_map_add(&a->held, b);
    poison(a, memory, b->size, b->segment->stream);
  }
  pthread_mutex_unlock(&a->lock);
  return memory;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* Blocks until all work that uses b is done: without a cache nothing keeps the order. */
static void finish_uses(lt_Allocator *a, lt_Block *b) {
  const lt_AccelDriver *d = a->accel->driver;
  if (lt_capture_of(a->accel->backend, a->index)) return;
  poison(a, b->address, b->size, b->segment->stream);
  d->stream_synchronize(a->index, b->segment->stream->native);
  for (lt_BlockUse *use = b->uses; use; use = use->next)
    d->event_synchronize(use->index, use->event);
}

/* Frees a block that a tensor held, or makes it wait for other streams. */
static void release_block(lt_Allocator *a, lt_Block *b) {
  bool small = b->segment->small;
  COUNT(a, allocation, small, -1);
  COUNT(a, allocated_bytes, small, -(int64_t)b->size);
  if (a->debug) finish_uses(a, b);
  b->state = LT_BLOCK_WAITING;
  Behind none = {.count = 0};
  if (!b->uses || drop_finished_uses(a, b, &none) == LT_DRIVER_OK) {
    retire(a, b);
  } else {
    *(a->waiting ? &a->waiting_last->chain : &a->waiting) = b;
    a->waiting_last = b;
  }
}

void lt_allocator_free(lt_Allocator *a, void *memory) {
  lt_AccelStream *maker = NULL;
  lt_ErrorSlot kept;
  pthread_mutex_lock(&a->lock);
  lt_Block *b = lt_block_map_take(&a->held, memory);
  if (b) {
    bool asks = a->debug || b->uses;
    if (asks) lt_error_keep(&kept);
    maker = b->maker;
    b->maker = NULL;
    release_block(a, b);
    if (asks) lt_error_restore(&kept);
  }
  pthread_mutex_unlock(&a->lock);
  if (maker) lt_accel_stream_release(maker);
}

/* ---- other streams --------------------------------------------------------------------------- */

/* Returns the use of a block by a stream, which is added if there is none. NULL when memory or
 * events are out. */
static lt_BlockUse *use_of(lt_Allocator *a, lt_Block *b, const lt_AccelStream *stream) {
  for (lt_BlockUse *use = b->uses; use; use = use->next)
    if (use->stream == stream->id && use->index == stream->base.index) return use;
  lt_BlockUse *use = malloc(sizeof *use);
  if (!use) return lt_fail_memory(), NULL;
  *use = (lt_BlockUse){.next = b->uses, .stream = stream->id, .index = stream->base.index};
  if (lt_event_take(a->accel, use->index, &use->event) != LT_DRIVER_OK) {
    free(use);
    return NULL;
  }
  return b->uses = use;
}

bool lt_allocator_record(lt_Allocator *a, const void *memory, lt_AccelStream *stream) {
  bool ok = true;
  pthread_mutex_lock(&a->lock);
  lt_Block *b = lt_block_map_find(&a->held, memory);
  if (b && b->segment->stream != stream) {
    const lt_AccelDriver *d = a->accel->driver;
    int index = stream->base.index;
    lt_BlockUse *use = use_of(a, b, stream);
    /* Without an event, block until the work is done: then the block is free to be reused. */
    ok = use && d->event_record(index, use->event, stream->native) == LT_DRIVER_OK;
    if (use) use->when = ++a->recorded;
    if (!ok) ok = d->stream_synchronize(index, stream->native) == LT_DRIVER_OK;
  }
  pthread_mutex_unlock(&a->lock);
  return ok;
}

/* Makes work that is queued on the default stream from now on wait for the work on this stream. */
static void order_behind(lt_Allocator *a, lt_AccelStream *stream) {
  const lt_AccelDriver *d = a->accel->driver;
  void *event = NULL;
  if (d->stream_query(a->index, stream->native) == LT_DRIVER_OK) return;
  bool ok = lt_event_take(a->accel, a->index, &event) == LT_DRIVER_OK &&
            d->event_record(a->index, event, stream->native) == LT_DRIVER_OK &&
            d->stream_wait_event(a->index, NULL, event) == LT_DRIVER_OK;
  if (event) lt_event_give(a->accel, a->index, event);
  if (!ok) d->stream_synchronize(a->index, stream->native);
}

void lt_allocator_adopt(lt_Allocator *a, lt_AccelStream *ending) {
  lt_AccelStream *fallback = &a->accel->default_stream[a->index];
  bool ordered = false;
  pthread_mutex_lock(&a->lock);
  for (lt_Segment *s = a->segments; s; s = s->next) {
    if (s->stream != ending) continue;
    if (!ordered) order_behind(a, ending);
    ordered = true;
    for (lt_Block *b = s->first; b; b = b->next)
      if (b->state == LT_BLOCK_FREE) lt_block_set_remove(set_of(a, b), b);
    s->stream = fallback;
    for (lt_Block *b = s->first; b; b = b->next)
      if (b->state == LT_BLOCK_FREE) lt_block_set_add(set_of(a, b), b);
  }
  pthread_mutex_unlock(&a->lock);
}

/* ---- returning memory to the driver ---------------------------------------------------------- */

/* Blocks until all work on the device is done. Fails on Ctrl-C. */
static bool wait_for_all(const lt_Allocator *a) {
  return lt_wait_device(a->accel->backend, a->index) &&
         a->accel->driver->synchronize(a->index) == LT_DRIVER_OK;
}

/* Returns segments that are free to the driver. `waited`: the device was synchronized already. */
static bool release_whole(lt_Allocator *a, bool waited) {
  bool ok = true;
  for (lt_Segment *s = a->segments, *next; s && ok; s = next) {
    next = s->next;
    if (s->pool || !is_whole(s)) continue;
    /* Queued work of its own stream may still use a free block. */
    if (!waited) ok = wait_for_all(a);
    waited = true;
    if (!ok) break;
    lt_block_set_remove(set_of(a, s->first), s->first);
    ok = segment_delete(a, s);
  }
  return ok;
}

/* During a capture nothing can be released, since that requires the device to be done. */
bool lt_allocator_release(lt_Allocator *a, bool wait) {
  if (wait && lt_capture_underway(a->accel, a->index)) return true;
  if (!lt_capture_allows(a->accel->backend, a->index, "release cached memory", NULL)) return false;
  pthread_mutex_lock(&a->lock);
  if (wait) a->stats.num_alloc_retries++;
  bool ok = !wait || wait_for_all(a);
  /* Blocks may also be used by streams of other devices, which are not synchronized yet. */
  for (lt_Block *b = a->waiting; wait && ok && b; b = b->chain)
    for (lt_BlockUse *use = b->uses; ok && use; use = use->next)
      ok = a->accel->driver->event_synchronize(use->index, use->event) == LT_DRIVER_OK;
  ok = ok && retire_waiting(a) && release_whole(a, wait);
  if (!ok) lt_error_not_memory();
  pthread_mutex_unlock(&a->lock);
  return ok;
}

/* ---- private pools --------------------------------------------------------------------------- */

bool lt_allocator_pool_open(lt_Allocator *a, uint32_t pool) {
  pthread_mutex_lock(&a->lock);
  lt_PrivatePool *p = a->pools;
  while (p && p->id != pool) p = p->next;
  if (!p && (p = malloc(sizeof *p))) {
    *p = (lt_PrivatePool){a->pools, pool, 0};
    a->pools = p;
  }
  if (p) p->users++;
  pthread_mutex_unlock(&a->lock);
  return p || lt_fail_memory();
}

/* Moves the segments of a private pool to the ordinary one. */
static void dissolve(lt_Allocator *a, uint32_t pool) {
  for (lt_Segment *s = a->segments, *next; s; s = next) {
    next = s->next;
    if (s->pool != pool) continue;
    for (lt_Block *b = s->first; b; b = b->next)
      if (b->state == LT_BLOCK_FREE) lt_block_set_remove(set_of(a, b), b);
    s->pool = 0;
    if (is_whole(s)) {
      segment_delete(a, s);
      continue;
    }
    for (lt_Block *b = s->first; b; b = b->next)
      if (b->state == LT_BLOCK_FREE) lt_block_set_add(set_of(a, b), b);
  }
}

void lt_allocator_pool_close(lt_Allocator *a, uint32_t pool) {
  pthread_mutex_lock(&a->lock);
  lt_PrivatePool **link = &a->pools;
  while (*link && (*link)->id != pool) link = &(*link)->next;
  lt_PrivatePool *p = *link;
  if (p && --p->users == 0) {
    *link = p->next;
    free(p);
    retire_waiting(a);
    dissolve(a, pool);
  }
  pthread_mutex_unlock(&a->lock);
}

uint32_t lt_allocator_pool_of(lt_Allocator *a, const void *memory) {
  pthread_mutex_lock(&a->lock);
  const lt_Block *b = lt_block_map_find(&a->held, memory);
  uint32_t pool = b ? b->segment->pool : 0;
  pthread_mutex_unlock(&a->lock);
  return pool;
}

bool lt_allocator_limit(lt_Allocator *a, double fraction) {
  size_t free_bytes, total;
  if (!(fraction >= 0 && fraction <= 1))
    return lt_error_set("set_per_process_memory_fraction: expected a number from 0 to 1 for "
                        "argument 'fraction', got %s",
                        lt_number_text(fraction));
  if (a->accel->driver->memory_info(a->index, &free_bytes, &total) != LT_DRIVER_OK) return false;
  pthread_mutex_lock(&a->lock);
  a->limit = fraction < 1 ? (size_t)(fraction * (double)total) : SIZE_MAX;
  pthread_mutex_unlock(&a->lock);
  return true;
}

void lt_allocator_delete(lt_Allocator *a) {
  bool there = lt_accel_usable(a->accel);
  if (there) a->accel->driver->synchronize(a->index);
  for (lt_Segment *s = a->segments, *next_segment; s; s = next_segment) {
    next_segment = s->next;
    for (lt_Block *b = s->first, *next; b; b = next) {
      next = b->next;
      for (lt_BlockUse *use = b->uses, *next_use; use; use = next_use) {
        next_use = use->next;
        if (there) a->accel->driver->event_free(use->index, use->event);
        free(use);
      }
      if (b->maker) lt_accel_stream_release(b->maker);
      free(b);
    }
    if (there) a->accel->driver->memory_free(a->index, s->address);
    free(s);
  }
  while (a->pools) {
    lt_PrivatePool *pool = a->pools;
    a->pools = pool->next;
    free(pool);
  }
  while (a->spare) {
    lt_Block *b = a->spare;
    a->spare = b->chain;
    free(b);
  }
  lt_block_map_close(&a->held);
  pthread_mutex_destroy(&a->lock);
  free(a);
}
