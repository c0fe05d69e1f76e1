/* memory.c: memory of the CPU. Training asks for the same sizes again and again, and a large block fresh from the system
 * costs a page fault for every page of it; so freed blocks of some size are kept for the next who asks for just as much.
 * What is kept is bounded, and goes back to the system before memory is said to be out.
 */
#include "cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif

#define ALIGNMENT  64
#define HUGE_PAGE  ((size_t)2 << 20)
#define LARGE      ((size_t)1 << 30)  /* from here on the system is asked before memory is taken */
#define WITH_PAGES ((size_t)4 << 20)  /* from here on huge pages are worth asking for */
#define KEPT_FROM  ((size_t)64 << 10) /* smaller blocks are best kept by malloc itself */
#define KEPT_ROOM                                                                                  \
  (LT_DEBUG ? 0 : (size_t)128 << 20) /* bytes kept in all; none where sanitizers look on */
#define KEPT_COUNT 256               /* blocks kept in all */

/* ---- the system's memory -------------------------------------------------------------------------------- */

/* A number of kB that a file like /proc/meminfo gives under a name; 0 when it does not. */
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

/* Behind every block lies what malloc gave: its fast path serves small sizes, and no alignment is asked of it. */
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

/* ---- blocks that are kept --------------------------------------------------------------------------------- */

/* Newest last: a block freed a moment ago is still in the processor's caches, and the oldest goes first. */
static struct {
  pthread_mutex_t lock;
  int count;
  size_t bytes;
  struct {
    void *memory;
    size_t nbytes;
  } block[KEPT_COUNT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void forget(int i) {
  kept.bytes -= kept.block[i].nbytes;
  kept.count--;
  memmove(&kept.block[i], &kept.block[i + 1], (size_t)(kept.count - i) * sizeof kept.block[0]);
}

static void *take(size_t nbytes) {
  void *memory = NULL;
  pthread_mutex_lock(&kept.lock);
  for (int i = kept.count - 1; i >= 0 && !memory; i--) {
    if (kept.block[i].nbytes != nbytes) continue;
    memory = kept.block[i].memory;
    forget(i);
  }
  pthread_mutex_unlock(&kept.lock);
  return memory;
}

/* Gives the oldest back until `room` more bytes and one more block would fit. */
static void make_room(size_t room) {
  while (kept.count && (kept.count == KEPT_COUNT || kept.bytes + room > KEPT_ROOM)) {
    block_free(kept.block[0].memory);
    forget(0);
  }
}

static void keep(void *memory, size_t nbytes) {
  pthread_mutex_lock(&kept.lock);
  make_room(nbytes);
  kept.block[kept.count].memory = memory;
  kept.block[kept.count++].nbytes = nbytes;
  kept.bytes += nbytes;
  pthread_mutex_unlock(&kept.lock);
}

static void give_all_back(void) {
  pthread_mutex_lock(&kept.lock);
  make_room(KEPT_ROOM + 1);
  pthread_mutex_unlock(&kept.lock);
}

/* ---- the device's functions ---------------------------------------------------------------------------------- */

void *lt_cpu_alloc(int index, size_t nbytes, lt_Stream *stream) {
  (void)index, (void)stream;
  if (nbytes > SIZE_MAX / 2) return lt_error_set("no address space is that large");
  bool keepable = nbytes >= KEPT_FROM && nbytes <= KEPT_ROOM;
  void *memory = keepable ? take(nbytes) : NULL;
  if (memory) return memory;
  size_t available = nbytes >= LARGE ? lt_cpu_memory_available() : 0;
  if (available && nbytes > available) {
    give_all_back();
    return lt_error_set("the system has %.2f MiB available", (double)available / 1048576.0);
  }
  memory = block_new(nbytes);
  if (memory) return memory;
  give_all_back();
  memory = block_new(nbytes);
  return memory ? memory : lt_error_set("the system has no more memory");
}

void lt_cpu_free(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  (void)index, (void)stream;
  if (nbytes >= KEPT_FROM && nbytes <= KEPT_ROOM)
    keep(memory, nbytes);
  else
    block_free(memory);
}
