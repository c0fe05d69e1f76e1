/* test_cpu_memory.c: memory of the CPU: classes of sizes, the cache of freed blocks, its limits and
 * its statistics. */
#include "check.h"
#include "core.h"
#include "device.h"
#include "opids.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

static const lt_Backend *cpu;

static char *get(size_t nbytes) { return cpu->memory.alloc(cpu, 0, nbytes, NULL); }
static void put(void *memory, size_t nbytes) { cpu->memory.free(cpu, 0, memory, nbytes, NULL); }
static lt_MemoryStats stats(void) {
  lt_MemoryStats s;
  CHECK(cpu->memory.stats(cpu, 0, &s));
  return s;
}
#define STAT(name)  (stats().name[LT_POOL_ALL])
#define RESERVED()  (STAT(reserved_bytes).current)
#define ALLOCATED() (STAT(allocated_bytes).current)

static void empty(void) {
  CHECK(cpu->memory.release(cpu, 0));
  CHECK_INT(RESERVED(), ALLOCATED());
}

/* Writes all bytes of blocks of sizes around the bounds of classes, two of each at a time. */
static void blocks_are_aligned_and_separate(void) {
  for (size_t base = 16 * KiB; base <= 16 * MiB; base *= 2)
    for (size_t eighths = 8; eighths < 16; eighths += 3)
      for (int more = -1; more <= 1; more++) {
        size_t n = base / 8 * eighths + (size_t)more;
        char *a = get(n), *b = get(n);
        CHECK(a && b && a != b);
        CHECK_INT((uintptr_t)a % 64, 0);
        CHECK_INT((uintptr_t)b % 64, 0);
        memset(a, 1, n);
        memset(b, 2, n);
        CHECK(a[0] == 1 && a[n - 1] == 1 && memchr(a, 2, n) == NULL);
        put(a, n);
        put(b, n);
      }
  empty();
}

/* Loops over blocks of the same size, which follow each other, do not store right before the
 * addresses, within a page, that they read next. */
static void blocks_of_a_class_start_at_pages(void) {
  if (LT_DEBUG) SKIP("no block has a class under sanitizers");
  char *block[4];
  for (size_t n = 32 * KiB; n <= 2 * MiB; n += n / 2) {
    for (int i = 0; i < 4; i++) {
      block[i] = get(n);
      CHECK_INT((uintptr_t)block[i] % 4096, 0);
    }
    for (int i = 0; i < 4; i++) put(block[i], n);
  }
  empty();
}

/* A block serves any size of its class; a class is at most an eighth larger than its sizes. */
static void a_freed_block_serves_its_class(void) {
  if (LT_DEBUG) SKIP("no block is cached under sanitizers");
  empty();
  char *first = get(4000000);
  int64_t reserved = RESERVED();
  put(first, 4000000);
  for (size_t n = 3940000; n <= 4 * MiB; n += 1000) {
    char *again = get(n);
    CHECK(again == first);
    CHECK_INT(RESERVED(), reserved);
    memset(again, 3, n);
    put(again, n);
  }
  for (size_t n = 32 * KiB; n < 40 * MiB; n += n / 37) {
    empty();
    int64_t before = ALLOCATED();
    char *block = get(n);
    int64_t size = ALLOCATED() - before;
    CHECK(size >= (int64_t)n && size <= (int64_t)(n + n / 8 + 1));
    put(block, n);
  }
  empty();
}

static void statistics_count(void) {
  empty();
  int64_t blocks = STAT(allocation).current, bytes = STAT(requested_bytes).current;
  CHECK(cpu->memory.reset_peak(cpu, 0));
  char *a = get(100000), *b = get(3 * MiB), *small = get(1000);
  CHECK_INT(STAT(allocation).current, blocks + 2); /* a small block is malloc's */
  CHECK_INT(STAT(active).current, blocks + 2);
  CHECK_INT(STAT(requested_bytes).current, bytes + 100000 + 3 * (int64_t)MiB);
  CHECK_INT(stats().requested_bytes[LT_LARGE_POOL].current, STAT(requested_bytes).current);
  CHECK_INT(stats().requested_bytes[LT_SMALL_POOL].current, 0);
  CHECK(ALLOCATED() <= RESERVED());
  put(a, 100000);
  put(b, 3 * MiB);
  put(small, 1000);
  CHECK_INT(STAT(allocation).current, blocks);
  CHECK_INT(STAT(allocation).peak, blocks + 2);
  CHECK_INT(STAT(requested_bytes).peak, bytes + 100000 + 3 * (int64_t)MiB);
  if (!LT_DEBUG) CHECK_INT(stats().largest_free_block, 3 * MiB);
  CHECK(cpu->memory.reset_peak(cpu, 0));
  CHECK_INT(STAT(allocation).peak, blocks);
  int64_t available, total;
  CHECK(cpu->memory.info(cpu, 0, &available, &total));
  CHECK(total > 0 && available <= total);
  empty();
}

/* The cache holds no more than 128 MiB, or what was allocated at the recent peak. */
static void the_cache_is_bounded(void) {
  if (LT_DEBUG) SKIP("no block is cached under sanitizers");
  enum { COUNT = 40 };
  char *block[COUNT];
  empty();
  for (int i = 0; i < COUNT; i++) block[i] = get((size_t)(i + 1) * 400 * KiB);
  int64_t peak = ALLOCATED();
  for (int i = 0; i < COUNT; i++) put(block[i], (size_t)(i + 1) * 400 * KiB);
  CHECK(RESERVED() <= peak);
  for (int i = 0; i < 20000; i++) put(get(32 * KiB), 32 * KiB);
  CHECK(RESERVED() - ALLOCATED() <= (int64_t)(128 * MiB));
  CHECK_INT(RESERVED() - ALLOCATED(), 32 * KiB); /* no other block was needed */
  empty();
}

/* Over the limit, the blocks that were used longest ago are freed, not those of the present. */
static void blocks_in_use_are_kept(void) {
  if (LT_DEBUG) SKIP("no block is cached under sanitizers");
  enum { COUNT = 30 };
  char *block[COUNT];
  empty();
  for (int i = 0; i < COUNT; i++) block[i] = get(4 * MiB + (size_t)i * 512 * KiB);
  for (int i = 0; i < COUNT; i++) put(block[i], 4 * MiB + (size_t)i * 512 * KiB);
  int64_t requested = -1;
  for (int round = 0; round < 10; round++) {
    char *a = get(160 * MiB), *b = get(160 * MiB);
    put(a, 160 * MiB);
    put(b, 160 * MiB);
    if (round == 0) requested = stats().num_device_alloc;
  }
  CHECK_INT(stats().num_device_alloc, requested);
  empty();
}

static void *allocate_and_free(void *seed) {
  unsigned random = (unsigned)(uintptr_t)seed;
  for (int i = 0; i < 3000; i++) {
    random = random * 1103515245u + 12345u;
    size_t n = 20 * KiB + random / 65536 % 8 * 300 * KiB;
    char *a = get(n);
    if (!a) return seed;
    memset(a, (int)random, 64);
    a[n - 1] = 1;
    put(a, n);
  }
  return NULL;
}

static void threads_share_the_cache(void) {
  pthread_t threads[3];
  int64_t allocated = ALLOCATED();
  for (int i = 0; i < 3; i++)
    CHECK_INT(pthread_create(&threads[i], NULL, allocate_and_free, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < 3; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    CHECK(!failed);
  }
  CHECK_INT(ALLOCATED(), allocated);
  empty();
}

/* Blocks from 2 MiB on are in huge pages, where the system gives them on request. */
static void large_blocks_are_in_huge_pages(void) {
  char line[200] = "";
  FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (f) {
    if (!fgets(line, sizeof line, f)) line[0] = 0;
    fclose(f);
  }
  if (LT_DEBUG || !strstr(line, "[madvise]")) SKIP("the system gives no huge pages on request");
  empty();
  size_t n = 16 * MiB;
  char *block = get(n);
  memset(block, 1, n);
  CHECK_INT((uintptr_t)block % (2 * MiB), 0);
  f = fopen("/proc/self/smaps_rollup", "r");
  if (!f) SKIP("no smaps_rollup");
  long kb = -1;
  while (fgets(line, sizeof line, f)) sscanf(line, "AnonHugePages: %ld kB", &kb);
  fclose(f);
  put(block, n);
  empty();
  if (kb <= 0) SKIP("the system has no free huge page");
  CHECK(kb >= 2048);
}

/* Returns how many of the pages of a block are in memory. */
static size_t resident_pages(void *block, size_t n) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), resident = 0;
  unsigned char *in = calloc(n / page, 1);
  CHECK(in && mincore(block, n / page * page, in) == 0);
  for (size_t i = 0; in && i < n / page; i++) resident += in[i] & 1;
  free(in);
  return resident;
}

/* What rounds a large block up to its class costs addresses, not memory. */
static void no_more_is_resident_than_requested(void) {
  if (LT_DEBUG) SKIP("no block is mapped under sanitizers");
  size_t n = 40000000, page = (size_t)sysconf(_SC_PAGESIZE);
  empty();
  char *block = get(n);
  memset(block, 1, n);
  CHECK_INT(resident_pages(block, 40 * MiB), (n + page - 1) / page);
  put(block, n);
  empty();
}

/* The pages of a new block are zeros and are not written again; a block of the cache is. */
static void zeros_of_a_new_block_are_not_written(void) {
  if (LT_DEBUG) SKIP("no block is mapped under sanitizers");
  enum { COUNT = 1 << 20 };
  empty();
  for (int round = 0; round < 2; round++) {
    lt_Tensor *t = lt_op1(LT_OP_zeros, (lt_Arg[]){LT_INTS((int64_t[]){COUNT}, 1)}, 1);
    float *x = t->storage->data;
    if (round == 0) CHECK_INT(resident_pages(x, COUNT * sizeof *x), 0);
    for (int i = 0; i < COUNT; i++) {
      if (x[i] != 0) CHECK_INT(i, -1);
      x[i] = 1;
    }
    lt_release(t);
  }
  empty();
}

static void what_is_too_large_is_refused(void) {
  int64_t ooms = stats().num_ooms, allocated = ALLOCATED();
  CHECK(!get((size_t)1 << 60));
  CHECK(strlen(lt_error()) > 0);
  lt_error_clear();
  CHECK_INT(stats().num_ooms, ooms + 1);
  CHECK_INT(ALLOCATED(), allocated);
}

int main(void) {
  cpu = lt_device_backend(LT_DEVICE_cpu);
  if (!cpu) return 1;
  RUN(blocks_are_aligned_and_separate);
  RUN(blocks_of_a_class_start_at_pages);
  RUN(a_freed_block_serves_its_class);
  RUN(statistics_count);
  RUN(the_cache_is_bounded);
  RUN(blocks_in_use_are_kept);
  RUN(threads_share_the_cache);
  RUN(large_blocks_are_in_huge_pages);
  RUN(no_more_is_resident_than_requested);
  RUN(zeros_of_a_new_block_are_not_written);
  RUN(what_is_too_large_is_refused);
  return check_end();
}
