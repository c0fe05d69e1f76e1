/* memory.c: memory of the CPU. Training asks for the same sizes again and again, and a large block
 * fresh from the system costs a page fault for every page of it; so freed blocks of some size are
 * kept for the next who asks for just as much. What is kept is bounded, and goes back to the
 * system before memory is said to be out.
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
#define KEPT_FROM  ((size_t)32 << 10) /* smaller blocks are best kept by malloc itself */
#define KEPT_ROOM                                                                                  \
  (LT_DEBUG ? 0 : (size_t)128 << 20) /* bytes kept in all; none where sanitizers look on */
#define STACK_BITS 8
#define STACKS     (1 << STACK_BITS)

/* ---- the system's memory --------------------------------------------------------------------- */

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

/* Behind every block lies what malloc gave: its fast path serves small sizes, and no alignment is
 * asked of it. */
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

/* ---- blocks that are kept -------------------------------------------------------------------- */

/* A kept block says in its own memory what it is. */
typedef struct Kept {
  struct Kept *next;
  size_t nbytes;
} Kept;

/* Stacks of blocks, by a hash of their size: a block freed a moment ago is still in the
 * processor's caches. */
static struct {
  pthread_mutex_t lock;
  size_t bytes;
  int turn; /* the stack that gives back next */
  Kept *stack[STACKS];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Kept **stack_of(size_t nbytes) {
  return &kept.stack[(nbytes >> 6) * 0x9e3779b97f4a7c15u >> (64 - STACK_BITS)];
}

static void *pop(Kept **from) {
  Kept *k = *from;
  *from = k->next;
  kept.bytes -= k->nbytes;
  return k;
}

static void *take(size_t nbytes) {
  void *memory = NULL;
  pthread_mutex_lock(&kept.lock);
  Kept **k = stack_of(nbytes);
  while (*k && (*k)->nbytes != nbytes) k = &(*k)->next;
  if (*k) memory = pop(k);
  pthread_mutex_unlock(&kept.lock);
  return memory;
}

/* Gives blocks back, of each stack in turn, until no more than `limit` bytes are kept. */
static void shrink(size_t limit) {
  for (; kept.bytes > limit; kept.turn = (kept.turn + 1) % STACKS)
    if (kept.stack[kept.turn]) block_free(pop(&kept.stack[kept.turn]));
}

static void keep(void *memory, size_t nbytes) {
  pthread_mutex_lock(&kept.lock);
  shrink(KEPT_ROOM - nbytes);
  Kept **stack = stack_of(nbytes), *k = memory;
  *k = (Kept){*stack, nbytes};
  *stack = k;
  kept.bytes += nbytes;
  pthread_mutex_unlock(&kept.lock);
}

static void give_all_back(void) {
  pthread_mutex_lock(&kept.lock);
  shrink(0);
  pthread_mutex_unlock(&kept.lock);
}

/* What is kept when the program ends would look like a leak to those who look for leaks. */
__attribute__((destructor)) static void at_end(void) { give_all_back(); }

/* ---- the device's functions ------------------------------------------------------------------ */

void *lt_cpu_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream) {
  (void)self, (void)index, (void)stream;
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

void lt_cpu_free(const lt_Backend *self, int index, void *memory, size_t nbytes,
                 lt_Stream *stream) {
  (void)self, (void)index, (void)stream;
  if (nbytes >= KEPT_FROM && nbytes <= KEPT_ROOM)
    keep(memory, nbytes);
  else
    block_free(memory);
}
