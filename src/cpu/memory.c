/* memory.c: allocation of CPU memory, with a cache of freed blocks.
 *
 * Training requests similar sizes again and again, and a large block fresh from the system costs a
 * page fault for each of its pages. So sizes from 32 KiB on are rounded up to classes, eight for
 * each power of two, and freed blocks are cached for the next request of their class. The block
 * freed last is used first: it may still be in the processor's caches.
 *
 * Classes from 2 MiB on are mapped at huge pages, where the system has them: touching a new block
 * then costs a sixth, and freeing it a tenth.
 *
 * The cache holds what the program needed at its peak, as far as requests of the last time show it,
 * and at least CACHE_LEAST. Blocks that no request needed for some thousand requests are freed, and
 * all of them before an allocation fails. */
#include "cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif

#define ALIGNMENT    64
#define PAGE         4096 /* of addresses that differ by multiples, CPUs compare only the rest */
#define HUGE_PAGE    ((size_t)2 << 20)
#define LARGE        ((size_t)1 << 30) /* from here on, the available memory is checked first */
#define CLASSES_FROM 15                /* the binary logarithm of the smallest class, 32 KiB */
#define CACHED_FROM  ((size_t)1 << CLASSES_FROM) /* smaller blocks are left to malloc */
#define CLASSES      (8 * (64 - CLASSES_FROM))
#define CACHE_LEAST  (LT_DEBUG ? 0 : (int64_t)128 << 20) /* no block is cached under sanitizers */
#define EPOCH        4096 /* requests after which unused blocks are freed */

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

/* ---- classes of sizes ------------------------------------------------------------------------ */

/* Returns the class of a size of at least CACHED_FROM: the exponent of its leading bit, and the
 * three bits behind it, rounded up. */
static int class_of(size_t nbytes) {
  int e = 63 - __builtin_clzll((unsigned long long)nbytes);
  size_t step = (size_t)1 << (e - 3);
  return 8 * (e - CLASSES_FROM) + (int)((nbytes - ((size_t)1 << e) + step - 1) >> (e - 3));
}

/* Returns the size of a class, which is at most an eighth larger than any size in it. */
static size_t class_size(int k) { return (size_t)(8 + k % 8) << (k / 8 + CLASSES_FROM - 3); }

/* Returns the bytes of the block for a request; without classes (under sanitizers) exactly
 * those. */
static size_t block_size(size_t nbytes) {
  return LT_DEBUG || nbytes < CACHED_FROM ? nbytes : class_size(class_of(nbytes));
}

/* ---- blocks of the system -------------------------------------------------------------------- */

/* Returns true when blocks of this size are mapped, not allocated by malloc. */
static bool is_mapped(size_t size) {
#ifdef MADV_HUGEPAGE
  return !LT_DEBUG && size >= HUGE_PAGE;
#else
  (void)size;
  return false;
#endif
}

#ifdef MADV_HUGEPAGE
/* Returns the bytes of a block that are mapped at huge pages: the huge pages inside of the request,
 * if they are most of it, so that no more memory is resident than was requested. */
static size_t huge_bytes(size_t size, size_t nbytes) {
  size_t inside = nbytes & ~(HUGE_PAGE - 1), end = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
  if (nbytes - inside <= nbytes / 8) return inside;
  if (end - size > size / 8) return end - HUGE_PAGE;
  return end < size ? end : size;
}

/* Maps a block of a class, for a request of nbytes, at the start of a huge page. */
static void *map(size_t size, size_t nbytes) {
  char *whole =
      mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)whole & (HUGE_PAGE - 1);
  char *memory = whole + before;
  if (before) munmap(whole, before);
  madvise(memory, huge_bytes(size, nbytes), MADV_HUGEPAGE);
  munmap(memory + size, HUGE_PAGE - before);
  return memory;
}
#else
static void *map(size_t size, size_t nbytes) {
  (void)size, (void)nbytes;
  return NULL;
}
#endif

/* Allocates an aligned block. malloc's fast path serves small sizes without alignment, so the
 * pointer that it returned is stored before the block. Cached blocks start at pages, like mapped
 * ones: where a loop's result lies 64 bytes further into its page than an input, the CPU takes each
 * load for one of what the loop has just stored, and delays it. */
static void *block_new(size_t size, size_t nbytes) {
  if (is_mapped(size)) return map(size, nbytes);
  const size_t alignment = size < CACHED_FROM ? ALIGNMENT : PAGE;
  char *whole = malloc(size + alignment);
  if (!whole) return NULL;
  char *memory = (char *)(((uintptr_t)whole + alignment) & ~(uintptr_t)(alignment - 1));
  memcpy(memory - sizeof whole, &whole, sizeof whole);
  return memory;
}

static void block_free(void *memory, size_t size) {
  char *whole;
  if (is_mapped(size)) {
    munmap(memory, size);
    return;
  }
  memcpy(&whole, (char *)memory - sizeof whole, sizeof whole);
  free(whole);
}

/* ---- cache of freed blocks ------------------------------------------------------------------- */

/* A cached block; this header is in its memory. */
typedef struct Cached {
  struct Cached *next;
} Cached;

/* The cached blocks of a class, the one freed last first. */
typedef struct Stack {
  Cached *first;
  int count;
  int least;    /* lowest count since the epoch began: so many blocks were not needed */
  int64_t used; /* time of the last request or release, in calls of this file */
} Stack;

static struct {
  pthread_mutex_t lock;
  int64_t time;     /* requests and releases so far */
  int requests;     /* since the epoch began */
  int64_t peaks[2]; /* largest allocated bytes: in this epoch, in the one before */
  Stack stack[CLASSES];
  lt_MemoryStats stats; /* of LT_POOL_ALL only; `active` is equal to `allocated` */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Adds `change` to a statistic of all blocks. */
static void count(lt_Stat *s, int64_t change) {
  s->current += change;
  if (s->current > s->peak) s->peak = s->current;
  if (change > 0)
    s->allocated += change;
  else
    s->freed -= change;
}

#define STAT(name) (&cache.stats.name[LT_POOL_ALL])

static int64_t cached_bytes(void) {
  return STAT(reserved_bytes)->current - STAT(allocated_bytes)->current;
}

/* Counts a block that begins (sign 1) or ends (-1) to be held by a tensor. */
static void count_held(int64_t sign, size_t size, size_t nbytes) {
  count(STAT(allocation), sign);
  count(STAT(allocated_bytes), sign * (int64_t)size);
  count(STAT(requested_bytes), sign * (int64_t)nbytes);
  if (STAT(allocated_bytes)->current > cache.peaks[0])
    cache.peaks[0] = STAT(allocated_bytes)->current;
}

/* Counts a block that was requested from the system (sign 1) or returned to it (-1). */
static void count_reserved(int64_t sign, size_t size) {
  count(STAT(segment), sign);
  count(STAT(reserved_bytes), sign * (int64_t)size);
  if (sign > 0)
    cache.stats.num_device_alloc++;
  else
    cache.stats.num_device_free++;
}

static Cached *pop(Stack *s) {
  Cached *block = s->first;
  s->first = block->next;
  if (--s->count < s->least) s->least = s->count;
  return block;
}

static void release(void *memory, size_t size) {
  block_free(memory, size);
  count_reserved(-1, size);
}

/* Returns the class with cached blocks that was used longest ago; -1 without one. */
static int oldest_class(void) {
  int oldest = -1;
  for (int k = 0; k < CLASSES; k++)
    if (cache.stack[k].first && (oldest < 0 || cache.stack[k].used < cache.stack[oldest].used))
      oldest = k;
  return oldest;
}

/* Frees cached blocks, of the class used longest ago first, until at most `limit` bytes are
 * cached. */
static void shrink(int64_t limit) {
  for (int k; cached_bytes() > limit && (k = oldest_class()) >= 0;)
    release(pop(&cache.stack[k]), class_size(k));
}

/* Frees the blocks that were not needed since the last call. They are the last of each stack. */
static void end_epoch(void) {
  for (int k = 0; k < CLASSES; k++) {
    Stack *s = &cache.stack[k];
    Cached **end = &s->first;
    for (int keep = s->count - s->least; keep > 0; keep--) end = &(*end)->next;
    Cached *unused = *end;
    *end = NULL;
    for (Cached *next; unused; unused = next) {
      next = unused->next;
      release(unused, class_size(k));
    }
    s->least = s->count -= s->least;
  }
  cache.requests = 0;
  cache.peaks[1] = cache.peaks[0];
  cache.peaks[0] = STAT(allocated_bytes)->current;
}

/* Returns the limit of cached bytes: together with the allocated ones they may reach the recent
 * peak. */
static int64_t cache_limit(void) {
  int64_t peak = cache.peaks[cache.peaks[1] > cache.peaks[0]];
  int64_t more = peak - STAT(allocated_bytes)->current;
  return LT_DEBUG || more < CACHE_LEAST ? CACHE_LEAST : more;
}

/* Returns a cached block for a request of nbytes; NULL without one. */
static void *take_cached(size_t nbytes) {
  int k = class_of(nbytes);
  Stack *s = &cache.stack[k];
  void *memory = NULL;
  pthread_mutex_lock(&cache.lock);
  if (++cache.requests == EPOCH) end_epoch();
  s->used = ++cache.time;
  if (s->first) {
    memory = pop(s);
    count_held(1, class_size(k), nbytes);
  }
  pthread_mutex_unlock(&cache.lock);
  return memory;
}

static void add_to_cache(void *memory, size_t nbytes) {
  Cached *block = memory;
  pthread_mutex_lock(&cache.lock);
  size_t size = block_size(nbytes);
  count_held(-1, size, nbytes);
  if (LT_DEBUG) {
    release(memory, size);
  } else {
    Stack *s = &cache.stack[class_of(nbytes)];
    block->next = s->first;
    s->first = block;
    s->count++;
    s->used = ++cache.time;
    shrink(cache_limit());
  }
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

/* Requests a block from the system; once more when the cache is empty. */
static void *from_system(size_t size, size_t nbytes) {
  void *memory = block_new(size, nbytes);
  if (memory) return memory;
  pthread_mutex_lock(&cache.lock);
  shrink(0);
  cache.stats.num_alloc_retries++;
  pthread_mutex_unlock(&cache.lock);
  return block_new(size, nbytes);
}

/* Why an allocation failed. */
typedef struct Reason {
  char text[80];
} Reason;

/* Counts an allocation that failed. */
static void *refuse(void) {
  pthread_mutex_lock(&cache.lock);
  cache.stats.num_ooms++;
  pthread_mutex_unlock(&cache.lock);
  return NULL;
}

/* The block, if any, that the last allocation of this thread has mapped: the system gives pages of
 * zeros. */
static _Thread_local const void *mapped;

/* Allocates a block of a class; NULL with the reason when memory is out. */
static void *alloc_cached(size_t nbytes, Reason *why) {
  void *memory = take_cached(nbytes);
  if (memory) return memory;
  size_t size = block_size(nbytes), available = size >= LARGE ? lt_cpu_memory_available() : 0;
  if (available && nbytes > available) {
    snprintf(why->text, sizeof why->text, "the system has %.2f MiB available",
             (double)available / 1048576.0);
    empty_cache();
    return refuse();
  }
  memory = from_system(size, nbytes);
  if (!memory) return refuse();
  if (is_mapped(size)) mapped = memory;
  pthread_mutex_lock(&cache.lock);
  count_reserved(1, size);
  count_held(1, size, nbytes);
  pthread_mutex_unlock(&cache.lock);
  return memory;
}

static void *allocate(size_t nbytes, Reason *why) {
  mapped = NULL;
  return nbytes >= CACHED_FROM ? alloc_cached(nbytes, why) : from_system(nbytes, nbytes);
}

void *lt_cpu_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream) {
  (void)self, (void)index, (void)stream;
  Reason why = {"the system is out of memory"};
  if (nbytes > SIZE_MAX / 2) return lt_error_set("the size is larger than the address space");
  void *memory = allocate(nbytes, &why);
  return memory ? memory : lt_error_set("%s", why.text);
}

void *lt_cpu_scratch(size_t nbytes) {
  Reason ignored;
  return allocate(nbytes, &ignored);
}

bool lt_cpu_memory_is_zero(const void *memory, size_t nbytes) {
  return nbytes >= CACHED_FROM &&
         memory == mapped; /* smaller ones can be without a call of alloc */
}

void lt_cpu_free(const lt_Backend *self, int index, void *memory, size_t nbytes,
                 lt_Stream *stream) {
  (void)self, (void)index, (void)stream;
  if (nbytes >= CACHED_FROM)
    add_to_cache(memory, nbytes);
  else
    block_free(memory, nbytes);
}

bool lt_cpu_memory_release(const lt_Backend *self, int index) {
  (void)self, (void)index;
  empty_cache();
  return true;
}

bool lt_cpu_memory_info(const lt_Backend *self, int index, int64_t *available, int64_t *total) {
  (void)self, (void)index;
  *available = (int64_t)lt_cpu_memory_available();
  *total = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return true;
}

bool lt_cpu_memory_stats(const lt_Backend *self, int index, lt_MemoryStats *out) {
  (void)self, (void)index;
  pthread_mutex_lock(&cache.lock);
  *out = cache.stats;
  for (int k = 0; k < CLASSES; k++)
    if (cache.stack[k].first) out->largest_free_block = (int64_t)class_size(k);
  pthread_mutex_unlock(&cache.lock);
  out->active[LT_POOL_ALL] = out->allocation[LT_POOL_ALL];
  out->active_bytes[LT_POOL_ALL] = out->allocated_bytes[LT_POOL_ALL];
#define ROW(name) out->name[LT_LARGE_POOL] = out->name[LT_POOL_ALL];
  LT_MEMORY_STATS(ROW)
#undef ROW
  return true;
}

bool lt_cpu_memory_reset_peak(const lt_Backend *self, int index) {
  (void)self, (void)index;
  pthread_mutex_lock(&cache.lock);
#define ROW(name) STAT(name)->peak = STAT(name)->current;
  LT_MEMORY_STATS(ROW)
#undef ROW
  pthread_mutex_unlock(&cache.lock);
  return true;
}
