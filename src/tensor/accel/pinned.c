/* pinned.c: a cache of pinned host memory, because the driver is slow to allocate it. Blocks have
 * sizes of a power of two; a request gets the smallest free one that fits, whole. A block that is
 * freed while a queued copy uses it waits for the event of that copy. */
#include "accel.h"

#include <pthread.h>

enum { CLASSES = 48, SMALLEST = 9 }; /* powers of two */
enum { ASKED = 4 };                  /* blocks that still wait, before the rest is left alone */

/* A block of pinned memory of 1 << power bytes. */
typedef struct Pinned {
  struct Pinned *next; /* in the one list that it is in */
  void *memory;
  int power;
  lt_Event *pending; /* while it waits */
} Pinned;

struct lt_PinnedCache {
  pthread_mutex_t lock;
  Pinned *free[CLASSES], *held;
  Pinned *waiting, *waiting_last; /* the oldest first */
};

lt_PinnedCache *lt_pinned_new(void) {
  lt_PinnedCache *p = calloc(1, sizeof *p);
  if (p) pthread_mutex_init(&p->lock, NULL);
  return p;
}

static void push(Pinned **list, Pinned *b) {
  b->next = *list;
  *list = b;
}

/* Frees waiting blocks, oldest first: those whose copies are done or, with `wait`, all, after
 * blocking on them. Without it, at most ASKED copies that are still running are queried: a loop
 * that sends many small tensors may have hundreds queued, and querying all of them each time would
 * cost more than the copies. */
static void retire_waiting(lt_PinnedCache *p, bool wait) {
  Pinned *last = NULL;
  int asked = 0;
  for (Pinned **link = &p->waiting; *link && asked < ASKED;) {
    Pinned *b = *link;
    if (wait) b->pending->backend->streams.event_synchronize(b->pending);
    if (!wait && !b->pending->backend->streams.event_query(b->pending)) {
      asked++;
      last = b;
      link = &b->next;
      continue;
    }
    *link = b->next;
    if (b == p->waiting_last) p->waiting_last = last;
    b->pending->backend->streams.event_destroy(b->pending);
    b->pending = NULL;
    push(&p->free[b->power], b);
  }
}

/* Appends a block to the list of waiting ones. */
static void add_waiting(lt_PinnedCache *p, Pinned *b) {
  b->next = NULL;
  *(p->waiting ? &p->waiting_last->next : &p->waiting) = b;
  p->waiting_last = b;
}

/* Returns the free blocks to the driver. */
static bool release_free(lt_Accel *accel, bool wait) {
  bool ok = true;
  lt_PinnedCache *p = accel->pinned;
  retire_waiting(p, wait);
  for (int i = 0; i < CLASSES; i++) {
    while (p->free[i]) {
      Pinned *b = p->free[i];
      p->free[i] = b->next;
      ok = accel->driver->host_free(b->memory) == LT_DRIVER_OK && ok;
      free(b);
    }
  }
  return ok;
}

/* Allocates a block; when memory is out, returns the free blocks to the driver and tries again. */
static Pinned *from_driver(lt_Accel *accel, int power) {
  Pinned *b = malloc(sizeof *b);
  if (!b) return lt_error_memory("pinned memory: out of memory");
  *b = (Pinned){.power = power};
  size_t nbytes = (size_t)1 << power;
  lt_DriverStatus status = accel->driver->host_new(nbytes, &b->memory);
  if (status == LT_DRIVER_NO_MEMORY && release_free(accel, true))
    status = accel->driver->host_new(nbytes, &b->memory);
  if (status == LT_DRIVER_OK) return b;
  free(b);
  if (status == LT_DRIVER_NO_MEMORY)
    return lt_error_memory("cannot pin %.2f MiB of host memory: out of memory",
                           (double)nbytes / 1048576.0);
  return NULL;
}

/* Initializes a device, because the driver needs one to pin memory: any will do, so one that is
 * initialized already. */
static bool some_ready(const lt_Backend *b) {
  for (int i = 0; i < LT_ACCEL_MAX; i++)
    if (lt_accel_is_ready(b, i)) return true;
  return lt_accel_ready(b, b->index_current(b));
}

/* Returns the smallest free block that fits, or a new one. It may be much larger than the
 * request. */
static void *host_alloc(const lt_Backend *self, size_t nbytes) {
  lt_Accel *accel = lt_accel_of(self);
  lt_PinnedCache *p = accel->pinned;
  if (!some_ready(self)) return NULL;
  int power = SMALLEST;
  while (power < CLASSES && nbytes > (size_t)1 << power) power++;
  if (power == CLASSES)
    return lt_error_memory("cannot pin %zu bytes of host memory: the size is too large", nbytes);
  pthread_mutex_lock(&p->lock);
  retire_waiting(p, false);
  int i = power;
  while (i < CLASSES && !p->free[i]) i++;
  Pinned *b = i < CLASSES ? p->free[i] : NULL;
  if (b)
    p->free[i] = b->next;
  else
    b = from_driver(accel, power);
  if (b) push(&p->held, b);
  pthread_mutex_unlock(&p->lock);
  return b ? b->memory : NULL;
}

/* `pending`: a copy that still uses the memory. The block waits for it. */
static void host_free(const lt_Backend *self, void *memory, size_t nbytes, lt_Event *pending) {
  (void)nbytes;
  lt_Accel *accel = lt_accel_of(self);
  lt_PinnedCache *p = accel->pinned;
  if (!lt_accel_usable(accel)) return;
  pthread_mutex_lock(&p->lock);
  Pinned **link = &p->held;
  while (*link && (*link)->memory != memory) link = &(*link)->next;
  Pinned *b = *link;
  if (b) {
    *link = b->next;
    b->pending = pending;
    if (pending)
      add_waiting(p, b);
    else
      push(&p->free[b->power], b);
  }
  pthread_mutex_unlock(&p->lock);
}

static bool host_release(const lt_Backend *self) {
  lt_Accel *accel = lt_accel_of(self);
  if (!lt_accel_usable(accel)) return true;
  pthread_mutex_lock(&accel->pinned->lock);
  bool ok = release_free(accel, false);
  pthread_mutex_unlock(&accel->pinned->lock);
  return ok;
}

void lt_pinned_free(lt_Accel *accel) {
  lt_PinnedCache *p = accel->pinned;
  bool there = lt_accel_usable(accel);
  for (int i = 0; i < CLASSES + 2; i++) {
    Pinned **list = i < CLASSES ? &p->free[i] : i == CLASSES ? &p->waiting : &p->held;
    while (*list) {
      Pinned *b = *list;
      *list = b->next;
      if (b->pending) {
        if (there) b->pending->backend->streams.event_synchronize(b->pending);
        b->pending->backend->streams.event_destroy(b->pending);
      }
      if (there) accel->driver->host_free(b->memory);
      free(b);
    }
  }
  pthread_mutex_destroy(&p->lock);
  free(p);
}

void lt_accel_fill_pinned(lt_Backend *b) {
  b->memory.host_alloc = host_alloc;
  b->memory.host_free = host_free;
  b->memory.host_release = host_release;
}
