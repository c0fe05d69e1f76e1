/* memory.c: allocation of CPU memory, with a cache of freed blocks.
 *
 * Training requests the same sizes again and again, and a large block fresh from the system costs a
 * page fault for each of its pages; so freed blocks above a size are cached for the next request of
 * exactly that size. The cache is bounded, and is released to the system before an allocation
 * fails. */
#include "cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif

#define ALIGNMENT   64
#define HUGE_PAGE   ((size_t)2 << 20)
#define LARGE       ((size_t)1 << 30)  /* from here on, the available memory is checked first */
#define WITH_PAGES  ((size_t)4 << 20)  /* from here on, huge pages are requested */
#define CACHED_FROM ((size_t)32 << 10) /* smaller blocks are left to malloc's own caches */
#define CACHE_LIMIT                                                                                \
  (LT_DEBUG ? 0 : (size_t)128 << 20) /* limit of cached bytes; none under sanitizers */
#define STACK_BITS 8
#define STACKS     (1 << STACK_BITS)

/* ---- the system's memory --------------------------------------------------------------------- */

/* Returns the number of kB that a file like /proc/meminfo has under a name; 0 without one. */
static size_t kilobytes(FILE *f, const char *name) {
  char line[256];
  size_t n = strlen(name);
  rewind(f);
  while (fgets(line, sizeof line, f))
    if (strncmp(line, name, n) == 0 && line[n] == ':')
      return (size_t)strtoull(line + n + 1, NULL, 10);
  return 0;
}

size_t lt_cpu_memory_available(void) {
  FILE *f = fopen("/proc/meminfo", "r");
  if (!f) return 0;
  size_t kb = kilobytes(f, "MemAvailable");
  if (kb) kb += kilobytes(f, "SwapFree");
  fclose(f);
  return kb * 1024;
}

/* Allocates an aligned block with malloc, whose fast path serves small sizes without alignment. The
 * pointer that malloc returned is stored before the block. */
static void *block_new(size_t nbytes) {
  char *whole = malloc(nbytes + ALIGNMENT);
  if (!whole) return NULL;
  char *memory = (char *)(((uintptr_t)whole + ALIGNMENT) & ~(uintptr_t)(ALIGNMENT - 1));
  memcpy(memory - sizeof whole, &whole, sizeof whole);
#ifdef MADV_HUGEPAGE
  if (nbytes >= WITH_PAGES) {
    uintptr_t first = ((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + nbytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > first) madvise((void *)first, end - first, MADV_HUGEPAGE);
  }
#endif
  return memory;
}

static void block_free(void *memory) {
  char *whole;
  memcpy(&whole, (char *)memory - sizeof whole, sizeof whole);
  free(whole);
}

/* ---- cache of freed blocks ------------------------------------------------------------------- */

/* A cached block; this header is in its memory. */
typedef struct Cached {
  struct Cached *next;
  size_t nbytes;
} Cached;

/* Stacks of cached blocks by a hash of their size: the block freed last may still be in the
 * processor's caches. */
static struct {
  pthread_mutex_t lock;
  size_t bytes;
  int next_stack; /* stack from which shrink takes the next block */
  Cached *stack[STACKS];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Cached **stack_of(size_t nbytes) {
  return &cache.stack[(nbytes >> 6) * 0x9e3779b97f4a7c15u >> (64 - STACK_BITS)];
}

static void *pop(Cached **from) {
  Cached *k = *from;
  *from = k->next;
  cache.bytes -= k->nbytes;
  return k;
}

static void *take_cached(size_t nbytes) {
  void *memory = NULL;
  pthread_mutex_lock(&cache.lock);
  Cached **k = stack_of(nbytes);
  while (*k && (*k)->nbytes != nbytes) k = &(*k)->next;
  if (*k) memory = pop(k);
  pthread_mutex_unlock(&cache.lock);
  return memory;
}

/* Frees cached blocks, from each stack in turn, until at most `limit` bytes are cached. */
static void shrink(size_t limit) {
  for (; cache.bytes > limit; cache.next_stack = (cache.next_stack + 1) % STACKS)
    if (cache.stack[cache.next_stack]) block_free(pop(&cache.stack[cache.next_stack]));
}

static void add_to_cache(void *memory, size_t nbytes) {
  pthread_mutex_lock(&cache.lock);
  shrink(CACHE_LIMIT - nbytes);
  Cached **stack = stack_of(nbytes), *k = memory;
  *k = (Cached){*stack, nbytes};
  *stack = k;
  cache.bytes += nbytes;
  pthread_mutex_unlock(&cache.lock);
}

static void empty_cache(void) {
  pthread_mutex_lock(&cache.lock);
  shrink(0);
  pthread_mutex_unlock(&cache.lock);
}

/* Frees the cache at exit, so that leak checkers do not report it. */
__attribute__((destructor)) static void empty_at_exit(void) { empty_cache(); }

/* ---- the device's functions ------------------------------------------------------------------ */

void *lt_cpu_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream) {
  (void)self, (void)index, (void)stream;
  if (nbytes > SIZE_MAX / 2) return lt_error_set("the size is larger than the address space");
  bool cacheable = nbytes >= CACHED_FROM && nbytes <= CACHE_LIMIT;
  void *memory = cacheable ? take_cached(nbytes) : NULL;
  if (memory) return memory;
  size_t available = nbytes >= LARGE ? lt_cpu_memory_available() : 0;
  if (available && nbytes > available) {
    empty_cache();
    return lt_error_set("the system has %.2f MiB available", (double)available / 1048576.0);
  }
  memory = block_new(nbytes);
  if (memory) return memory;
  empty_cache();
  memory = block_new(nbytes);
  return memory ? memory : lt_error_set("the system is out of memory");
}

void lt_cpu_free(const lt_Backend *self, int index, void *memory, size_t nbytes,
                 lt_Stream *stream) {
  (void)self, (void)index, (void)stream;
  if (nbytes >= CACHED_FROM && nbytes <= CACHE_LIMIT)
    add_to_cache(memory, nbytes);
  else
    block_free(memory);
}
