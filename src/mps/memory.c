/* memory.c: the live buffers, sorted by address: those of tensors by the address on the GPU, pinned
 * memory by its address on the host. They are few, since the allocator of accel/ cuts tensors from
 * large segments; every launch looks some up, so a lookup is a binary search under a read lock. */
#include "queue.h"

#include <pthread.h>

typedef struct Map {
  pthread_rwlock_t lock;
  lt_MetalBuffer **buffer; /* sorted by address, without overlaps */
  size_t count, room;
} Map;

static Map tensors = {.lock = PTHREAD_RWLOCK_INITIALIZER},
           pinned_memory = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static Map *map_of(bool pinned) { return pinned ? &pinned_memory : &tensors; }

static uint64_t address_of(const Map *m, const lt_MetalBuffer *b) {
  return m == &tensors ? b->address : (uint64_t)(uintptr_t)b->contents;
}

/* Returns the number of buffers that begin at or before the address. Requires the lock. */
static size_t count_before(const Map *m, uint64_t address) {
  size_t low = 0, high = m->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (address_of(m, m->buffer[middle]) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool lt_mps_buffer_add(bool pinned, lt_MetalBuffer *buffer) {
  Map *m = map_of(pinned);
  pthread_rwlock_wrlock(&m->lock);
  bool ok = m->count < m->room;
  if (!ok) {
    size_t room = m->room ? 2 * m->room : 64;
    lt_MetalBuffer **more = realloc(m->buffer, room * sizeof(lt_MetalBuffer *));
    ok = more != NULL;
    if (ok) {
      m->buffer = more;
      m->room = room;
    }
  }
  if (ok) {
    size_t at = count_before(m, address_of(m, buffer));
    memmove(m->buffer + at + 1, m->buffer + at, (m->count - at) * sizeof(lt_MetalBuffer *));
    m->buffer[at] = buffer;
    m->count++;
  }
  pthread_rwlock_unlock(&m->lock);
  return ok;
}

lt_MetalBuffer *lt_mps_buffer_take(bool pinned, uint64_t address) {
  Map *m = map_of(pinned);
  pthread_rwlock_wrlock(&m->lock);
  size_t at = count_before(m, address);
  lt_MetalBuffer *b = at > 0 ? m->buffer[at - 1] : NULL;
  if (b && address_of(m, b) == address) {
    memmove(m->buffer + at - 1, m->buffer + at, (m->count - at) * sizeof(lt_MetalBuffer *));
    m->count--;
  } else {
    b = NULL;
  }
  pthread_rwlock_unlock(&m->lock);
  return b;
}

/* An address just behind a buffer belongs to it only if no buffer begins there. */
static lt_MetalBuffer *find(Map *m, uint64_t address, size_t nbytes, size_t *offset) {
  pthread_rwlock_rdlock(&m->lock);
  size_t at = count_before(m, address);
  lt_MetalBuffer *b = at > 0 ? m->buffer[at - 1] : NULL;
  if (b) {
    uint64_t from = address - address_of(m, b);
    if (from > b->size || nbytes > b->size - from) b = NULL;
    *offset = (size_t)from;
  }
  pthread_rwlock_unlock(&m->lock);
  return b;
}

lt_MetalBuffer *lt_mps_find_buffer(uint64_t address, size_t nbytes, size_t *offset) {
  return find(&tensors, address, nbytes, offset);
}

lt_MetalBuffer *lt_mps_find_pinned(const void *memory, size_t nbytes, size_t *offset) {
  return find(&pinned_memory, (uint64_t)(uintptr_t)memory, nbytes, offset);
}

/* LUTRA_MPS_STORAGE=private, for tests, makes every copy go through staging memory. */
lt_MetalStorage lt_mps_storage(int index) {
  const char *forced = getenv("LUTRA_MPS_STORAGE");
  if (forced && strcmp(forced, "private") == 0) return LT_METAL_PRIVATE;
  return lt_mps_facts(index)->unified ? LT_METAL_SHARED : LT_METAL_PRIVATE;
}
