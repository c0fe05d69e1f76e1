/* test_allocator.c: the caching allocator on a driver under the test's control (fake_driver.c).
 * First PyTorch's rules and numbers; then random programs of allocations, frees, streams and
 * failures, after each step of which all invariants are checked. `test_allocator <seed>` runs one
 * random program, to reproduce a failure. */
#include "accel/allocator.h"
#include "check.h"
#include "fake_driver.h"

#include <stdlib.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

static lt_Backend fake = {.abi = LT_BACKEND_ABI, .name = "fake", .numbered = true};

static void begin(size_t capacity) {
  fake_reset(capacity);
  CHECK(lt_accel_attach(&fake, &fake_driver));
}

static void end(void) {
  lt_accel_detach(&fake);
  CHECK_STR(fake_error(), NULL);
  for (int i = 0; i < FAKE_DEVICES; i++) CHECK_INT(fake_used(i), 0);
  CHECK_INT(fake_events_alive(), 0);
  CHECK_INT(fake_host_used(), 0);
}

static void *get(size_t nbytes, lt_Stream *s) { return fake.memory.alloc(&fake, 0, nbytes, s); }
static void put(void *memory) { fake.memory.free(&fake, 0, memory, 0, NULL); }
static lt_MemoryStats stats(void) {
  lt_MemoryStats s;
  fake.memory.stats(&fake, 0, &s);
  return s;
}
#define NOW(name, pool) (stats().name[pool].current)

/* Uses the block on another stream, ordered after the work of its own stream. */
static void use_on(void *memory, size_t nbytes, uint64_t tag, lt_Stream *own, lt_Stream *other) {
  lt_Storage storage = {.data = memory, .nbytes = nbytes, .device = {0, 0}};
  lt_Event *e = fake.streams.event_create(&fake, 0, false);
  CHECK(fake.streams.event_record(e, own) && fake.streams.wait_event(other, e));
  fake.streams.event_destroy(e);
  fake_check(other, memory, nbytes, tag);
  CHECK(fake.memory.record_stream(&storage, other));
}

/* ---- invariants ------------------------------------------------------------------------------ */

typedef struct Count {
  int64_t blocks, bytes, split_blocks, split_bytes;
} Count;

static int count_tree(const lt_Block *b, const lt_Block **last) {
  if (!b) return 0;
  int n = count_tree(b->left, last);
  const lt_Block *p = *last;
  if (p) {
    CHECK(p->segment->stream->id < b->segment->stream->id ||
          (p->segment->stream->id == b->segment->stream->id &&
           (p->size < b->size || (p->size == b->size && p->address < b->address))));
  }
  CHECK(!b->left || b->left->priority <= b->priority);
  CHECK(!b->right || b->right->priority <= b->priority);
  CHECK(b->state == LT_BLOCK_FREE && !b->uses);
  *last = b;
  return n + 1 + count_tree(b->right, last);
}

static bool is_listed(const lt_Block *list, const lt_Block *b) {
  while (list && list != b) list = list->chain;
  return list != NULL;
}

/* Checks that the blocks of a segment tile it, and counts them by state. */
static void check_segment(const lt_Allocator *a, const lt_Segment *s, Count count[3]) {
  char *at = s->address;
  const lt_Block *before = NULL;
  for (const lt_Block *b = s->first; b; before = b, b = b->next) {
    CHECK(b->address == at && b->prev == before && b->segment == s);
    CHECK(b->size > 0 && b->size % 512 == 0 && (uintptr_t)b->address % 512 == 0);
    CHECK(!before || before->state != LT_BLOCK_FREE || b->state != LT_BLOCK_FREE);
    Count *c = &count[b->state];
    c->blocks++;
    c->bytes += (int64_t)b->size;
    if (b->prev || b->next) {
      c->split_blocks++;
      c->split_bytes += (int64_t)b->size;
    }
    if (b->state == LT_BLOCK_ACTIVE) CHECK(lt_block_map_find(&a->held, b->address) == b);
    if (b->state == LT_BLOCK_WAITING) CHECK(b->uses && is_listed(a->waiting, b));
    CHECK((b->state == LT_BLOCK_ACTIVE) == (b->maker != NULL));
    at += b->size;
  }
  CHECK(at == s->address + s->size);
}

static int64_t requested_bytes(const lt_Allocator *a, bool small) {
  int64_t n = 0;
  for (const lt_Segment *s = a->segments; s; s = s->next)
    for (const lt_Block *b = s->first; b; b = b->next)
      if (s->small == small && b->state != LT_BLOCK_FREE) n += (int64_t)b->requested;
  return n;
}

/* Recomputes the statistics of one pool (LT_LARGE_POOL, LT_SMALL_POOL). */
static void recount(const lt_Allocator *a, bool small, int64_t *now) {
  Count count[3] = {{0}}, segments = {0};
  for (const lt_Segment *s = a->segments; s; s = s->next) {
    if (s->small != small) continue;
    segments.blocks++;
    segments.bytes += (int64_t)s->size;
    check_segment(a, s, count);
  }
  const lt_Block *last = NULL;
  CHECK_INT(count_tree(a->free_set[small].root, &last), count[LT_BLOCK_FREE].blocks);
  const Count *held = &count[LT_BLOCK_ACTIVE], *waiting = &count[LT_BLOCK_WAITING];
  const int64_t counted[] = {/* in the order of LT_MEMORY_STATS */
                             held->blocks,
                             segments.blocks,
                             held->blocks + waiting->blocks,
                             count[LT_BLOCK_FREE].split_blocks,
                             held->bytes,
                             segments.bytes,
                             held->bytes + waiting->bytes,
                             count[LT_BLOCK_FREE].split_bytes,
                             requested_bytes(a, small)};
  memcpy(now, counted, sizeof counted);
}

#define ONE(name) +1
enum { STATS = 0 LT_MEMORY_STATS(ONE) };
#undef ONE

static void check_stat(const char *name, const lt_Stat *s, int64_t counted) {
  if (s->current != counted || s->allocated - s->freed != counted || s->peak < counted)
    check_report(__FILE__, __LINE__, "%s is %lld (peak %lld, +%lld -%lld), counted %lld", name,
                 (long long)s->current, (long long)s->peak, (long long)s->allocated,
                 (long long)s->freed, (long long)counted);
}

static void check_all(void) {
  int64_t now[LT_MEMORY_POOLS][STATS];
  lt_MemoryStats s = stats();
  if (!lt_accel_is_ready(&fake, 0)) return;
  const lt_Allocator *a = lt_accel_of(&fake)->allocator[0];
  recount(a, true, now[LT_SMALL_POOL]);
  recount(a, false, now[LT_LARGE_POOL]);
  for (int i = 0; i < STATS; i++)
    now[LT_POOL_ALL][i] = now[LT_SMALL_POOL][i] + now[LT_LARGE_POOL][i];
  for (int pool = 0; pool < LT_MEMORY_POOLS; pool++) {
    int i = 0;
#define ROW(name) check_stat(#name, &s.name[pool], now[pool][i++]);
    LT_MEMORY_STATS(ROW)
#undef ROW
  }
  CHECK_INT(s.reserved_bytes[LT_POOL_ALL].current, fake_used(0));
  CHECK_INT(s.num_device_alloc - s.num_device_free, s.segment[LT_POOL_ALL].current);
  CHECK_INT(s.allocation[LT_POOL_ALL].current, a->held.count);
  CHECK_STR(fake_error(), NULL);
}

/* ---- PyTorch's numbers ----------------------------------------------------------------------- */

static void few_floats(void) {
  begin(256 * MiB);
  void *p = get(256 * sizeof(float), NULL);
  REQUIRE(p != NULL);
  CHECK_INT(NOW(active_bytes, LT_POOL_ALL), 1024);
  CHECK_INT(NOW(allocated_bytes, LT_POOL_ALL), 1024);
  CHECK_INT(NOW(allocated_bytes, LT_SMALL_POOL), 1024);
  CHECK_INT(NOW(allocated_bytes, LT_LARGE_POOL), 0);
  CHECK_INT(NOW(requested_bytes, LT_POOL_ALL), 1024);
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 2097152);
  CHECK_INT(NOW(inactive_split_bytes, LT_POOL_ALL), 2097152 - 1024);
  CHECK_INT(NOW(inactive_split, LT_SMALL_POOL), 1);
  CHECK_INT(NOW(allocation, LT_POOL_ALL), 1);
  CHECK_INT(NOW(active, LT_POOL_ALL), 1);
  CHECK_INT(NOW(segment, LT_POOL_ALL), 1);
  CHECK_INT(stats().num_device_alloc, 1);
  CHECK_INT(stats().largest_free_block, 2097152 - 1024);
  void *q = get(1, NULL); /* 512 bytes is the minimum */
  CHECK_INT(NOW(allocated_bytes, LT_POOL_ALL), 1536);
  CHECK_INT(NOW(requested_bytes, LT_POOL_ALL), 1025);
  CHECK(q == (char *)p + 1024);
  put(p);
  put(q);
  CHECK_INT(NOW(allocated_bytes, LT_POOL_ALL), 0);
  CHECK_INT(NOW(active_bytes, LT_POOL_ALL), 0);
  CHECK_INT(NOW(requested_bytes, LT_POOL_ALL), 0);
  CHECK_INT(NOW(inactive_split_bytes, LT_POOL_ALL), 0); /* one whole segment */
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 2097152);
  CHECK_INT(stats().allocated_bytes[LT_POOL_ALL].peak, 1536);
  CHECK_INT(stats().allocated_bytes[LT_POOL_ALL].allocated, 1536);
  CHECK_INT(stats().allocated_bytes[LT_POOL_ALL].freed, 1536);
  CHECK(fake.memory.reset_peak(&fake, 0));
  CHECK_INT(stats().allocated_bytes[LT_POOL_ALL].peak, 0);
  CHECK_INT(stats().reserved_bytes[LT_POOL_ALL].peak, 2097152);
  CHECK(fake.memory.release(&fake, 0));
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 0);
  CHECK_INT(stats().num_device_free, 1);
  CHECK_INT(fake_used(0), 0);
  end();
}

/* The bytes that a request reserves from the driver, and the size of its block. */
static void segments_have_pytorchs_sizes(void) {
  static const struct {
    size_t request, segment, block;
    int pool;
  } row[] = {
      {1, 2 * MiB, 512, LT_SMALL_POOL},
      {513, 2 * MiB, 1024, LT_SMALL_POOL},
      {MiB, 2 * MiB, MiB, LT_SMALL_POOL},
      {MiB - 511, 2 * MiB, MiB, LT_SMALL_POOL},
      {MiB + 1, 20 * MiB, MiB + 512, LT_LARGE_POOL},
      {10 * MiB - 512, 20 * MiB, 10 * MiB - 512, LT_LARGE_POOL},
      {10 * MiB - 511, 10 * MiB, 10 * MiB, LT_LARGE_POOL},
      {10 * MiB + 1, 12 * MiB, 10 * MiB + 512, LT_LARGE_POOL}, /* the rest is above 1 MiB */
      {11 * MiB, 12 * MiB, 12 * MiB, LT_LARGE_POOL},           /* the rest is 1 MiB: not split
                                                                * off */
      {11 * MiB - 512, 12 * MiB, 11 * MiB - 512, LT_LARGE_POOL},
      {19 * MiB, 20 * MiB, 20 * MiB, LT_LARGE_POOL},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    begin(256 * MiB);
    void *p = get(row[i].request, NULL);
    CHECK_INT(NOW(reserved_bytes, row[i].pool), row[i].segment);
    CHECK_INT(NOW(allocated_bytes, row[i].pool), row[i].block);
    CHECK_INT(NOW(inactive_split_bytes, LT_POOL_ALL), row[i].segment - row[i].block);
    CHECK_INT(NOW(inactive_split, LT_POOL_ALL), row[i].segment > row[i].block);
    CHECK_INT(NOW(requested_bytes, LT_POOL_ALL), row[i].request);
    check_all();
    put(p);
    check_all();
    end();
  }
}

static void the_best_fit_is_used(void) {
  begin(256 * MiB);
  void *p[6];
  const size_t size[] = {4096, 512, 2048, 512, 3072, 512};
  for (int i = 0; i < 6; i++) p[i] = get(size[i], NULL);
  put(p[0]);
  put(p[2]);
  put(p[4]);
  CHECK(get(2600, NULL) == p[4]); /* 3072 is the smallest that is large enough, and is used whole */
  CHECK_INT(NOW(inactive_split, LT_POOL_ALL), 3);
  CHECK(get(512, NULL) == p[2]); /* split off the front of the smallest */
  CHECK(get(1536, NULL) == (char *)p[2] + 512);
  CHECK(get(4096, NULL) == p[0]);
  check_all();
  put(p[0]);
  put(p[1]); /* neighbours are merged */
  CHECK(get(4608, NULL) == p[0]);
  check_all();
  lt_accel_detach(&fake);
  CHECK_INT(fake_used(0), 0);
}

static void streams_do_not_share(void) {
  begin(256 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  void *p = get(1000, NULL);
  put(p);
  void *q = get(1000, s);
  CHECK(p != q);
  CHECK_INT(NOW(segment, LT_POOL_ALL), 2);
  put(q);
  CHECK(get(1000, s) == q);
  CHECK(get(1000, NULL) == p);
  CHECK(get(1000, fake.streams.get_default(&fake, 0)) == (char *)p + 1024);
  check_all();
  fake.streams.destroy(s);
  check_all();
  lt_accel_detach(&fake);
}

static void private_pools_do_not_share(void) {
  begin(256 * MiB);
  put(get(1000, NULL));
  lt_Accel *accel = lt_accel_of(&fake);
  lt_Allocator *a = accel->allocator[0];
  void *p = lt_allocator_alloc(a, 7, 1000, &accel->default_stream[0]);
  CHECK_INT(NOW(segment, LT_POOL_ALL), 2);
  lt_allocator_free(a, p);
  void *q = get(1000, NULL);
  CHECK(q && q != p);
  CHECK(lt_allocator_alloc(a, 7, 1000, &accel->default_stream[0]) == p);
  lt_allocator_free(a, p);
  put(q);
  end();
}

/* Checks the free memory of a pool that graphs own: it stays, until the last one closes the pool;
 * then free segments are returned and the others become ordinary. */
static void private_pools_are_kept_until_closed(void) {
  begin(64 * MiB);
  put(get(MiB, NULL));
  CHECK(fake.memory.release(&fake, 0));
  lt_Allocator *a = lt_accel_of(&fake)->allocator[0];
  lt_AccelStream *main = (lt_AccelStream *)fake.streams.get_default(&fake, 0);
  CHECK(lt_allocator_pool_open(a, 7) && lt_allocator_pool_open(a, 7));
  void *p = lt_allocator_alloc(a, 7, MiB, main), *q = lt_allocator_alloc(a, 7, 2 * MiB, main);
  void *r = lt_allocator_alloc(a, 7, 512, main);
  CHECK_INT(lt_allocator_pool_of(a, p), 7);
  put(p);
  put(q);
  CHECK_INT(lt_allocator_pool_of(a, p), 0);
  CHECK(fake.memory.release(&fake, 0));
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 22 * MiB);
  check_all();
  CHECK(lt_allocator_alloc(a, 7, 2 * MiB, main) == q); /* the same address again */
  put(q);
  CHECK(get(512, NULL) != p); /* an ordinary request gets other memory */
  CHECK_INT(NOW(segment, LT_POOL_ALL), 3);
  lt_allocator_pool_close(a, 7);
  CHECK_INT(NOW(segment, LT_POOL_ALL), 3);
  lt_allocator_pool_close(a, 7);
  CHECK_INT(NOW(segment, LT_POOL_ALL), 2); /* that of r, and the ordinary one */
  CHECK_INT(lt_allocator_pool_of(a, r), 0);
  check_all();
  put(r);
  CHECK(fake.memory.release(&fake, 0));
  CHECK_INT(NOW(segment, LT_POOL_ALL), 1);
  lt_allocator_pool_close(a, 7); /* closed already: nothing happens */
  /* Without memory of the driver, a pool gets ordinary segments that are free. */
  void *most = get(20 * MiB, NULL), *rest = get(40 * MiB, NULL);
  CHECK(most && rest && !lt_allocator_alloc(a, 9, 2 * MiB, main) && lt_error_is_memory());
  put(most);
  CHECK(lt_allocator_pool_open(a, 9));
  p = lt_allocator_alloc(a, 9, 2 * MiB, main);
  CHECK(p == most && lt_allocator_pool_of(a, p) == 9);
  check_all();
  put(p);
  put(rest);
  lt_allocator_pool_close(a, 9);
  check_all();
  CHECK(lt_allocator_pool_open(a, 9)); /* open at the end */
  check_all();
  end();
}

static void memory_used_on_other_streams_is_freed_later(void) {
  begin(256 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0), *main = fake.streams.get_default(&fake, 0);
  void *p = get(MiB, NULL);
  fake_write(main, p, MiB, 1);
  use_on(p, MiB, 1, main, s);
  put(p);
  CHECK_INT(NOW(allocated_bytes, LT_POOL_ALL), 0);
  CHECK_INT(NOW(active_bytes, LT_POOL_ALL), MiB);
  CHECK_INT(NOW(active, LT_POOL_ALL), 1);
  CHECK_INT(NOW(requested_bytes, LT_POOL_ALL), MiB);
  check_all();
  void *q = get(MiB, NULL);
  CHECK(q != p);
  while (fake_step(0, 0) || fake_step(0, 1)) {
  }
  CHECK(get(MiB, NULL) == p); /* polled by the allocation */
  check_all();
  put(p);
  put(q);
  fake.streams.destroy(s);
  end();
}

/* Only an event at the last use delays the free; later work of the stream does not. */
static void only_the_last_use_delays_the_free(void) {
  begin(256 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0), *main = fake.streams.get_default(&fake, 0);
  void *p = get(512, NULL), *other = get(4096, NULL);
  lt_Storage storage = {.data = p, .nbytes = 512, .device = {0, 0}};
  CHECK(fake.memory.record_stream(&storage, main)); /* its own stream: nothing to record */
  fake_write(s, other, 8, 1);
  CHECK(fake.memory.record_stream(&storage, s));
  fake_write(s, other, 8, 2);
  CHECK(fake.memory.record_stream(&storage, s)); /* replaces the first */
  CHECK_INT(fake_events_alive(), 1);
  fake_write(s, other, 8, 3);
  put(p);
  check_all();
  CHECK_INT(NOW(active, LT_POOL_ALL), 2);
  for (int i = 0; i < 3; i++) CHECK(fake_step(0, 1)); /* 1, its event, 2 */
  void *q = get(512, NULL);
  CHECK(q != p);
  CHECK(fake_step(0, 1)); /* its event; 3 is still queued */
  CHECK(get(512, NULL) == p);
  fake_finish(0);
  put(q);
  put(p);
  put(other);
  fake.streams.destroy(s);
  end();
}

/* However many blocks depend on a stream that is behind, it is queried once. */
static void many_pending_blocks_cost_little(void) {
  enum { MANY = 100 };
  begin(256 * MiB);
  lt_Stream *s[2] = {fake.streams.create(&fake, 0, 0), fake.streams.create(&fake, 0, 0)};
  void *p[MANY], *mark[2] = {get(512, NULL), get(512, NULL)};
  for (int i = 0; i < MANY; i++) {
    p[i] = get(512, NULL);
    lt_Storage storage = {.data = p[i], .nbytes = 512, .device = {0, 0}};
    fake_write(s[i % 2], mark[i % 2], 8, 1);
    CHECK(fake.memory.record_stream(&storage, s[i % 2]));
    if (i % 10 == 0) CHECK(fake.memory.record_stream(&storage, s[1 - i % 2]));
  }
  for (int i = 0; i < MANY; i++) put(p[i]);
  int before = fake_queries();
  void *q = get(512, NULL);
  CHECK(fake_queries() - before <= 2);
  CHECK_INT(NOW(active, LT_POOL_ALL), MANY + 3);
  check_all();
  while (fake_step(0, 1)) {
  }
  void *r = get(512, NULL);
  /* The blocks that the second stream alone used, and those that both used, are still pending. */
  CHECK_INT(NOW(active, LT_POOL_ALL), MANY / 2 + MANY / 10 + 4);
  check_all();
  fake_finish(0);
  put(q);
  put(r);
  put(mark[0]);
  put(mark[1]);
  CHECK(fake.memory.release(&fake, 0));
  CHECK_INT(NOW(active, LT_POOL_ALL), 0);
  fake.streams.destroy(s[0]);
  fake.streams.destroy(s[1]);
  end();
}

static void memory_outlives_its_stream(void) {
  begin(4 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0), *main = fake.streams.get_default(&fake, 0);
  void *p = get(MiB, s), *q = get(MiB, s);
  fake_write(s, p, MiB, 1);
  fake_check(s, p, MiB, 1);
  put(p);
  fake.streams.destroy(s); /* the host did not block */
  CHECK_INT(fake_queued(0) > 2, 1);
  CHECK_INT(fake_streams_alive(), 0);
  check_all();
  CHECK(get(MiB, NULL) == p);
  fake_write(main, p, MiB, 2); /* runs after the old work */
  fake_check(main, p, MiB, 2);
  while (fake_step(0, 0)) {
  }
  CHECK(fake_queued(0) > 2);
  fake_finish(0);
  put(q); /* was allocated on the destroyed stream */
  put(p);
  CHECK(get(2 * MiB, NULL) == NULL && lt_error_is_memory());
  CHECK(fake.memory.retry(&fake, 0));
  p = get(2 * MiB, NULL);
  CHECK(p == NULL); /* 20 MiB segments do not fit here */
  end();
}

/* ---- out of memory --------------------------------------------------------------------------- */

static void out_of_memory(void) {
  begin(4 * MiB);
  void *p = get(MiB, NULL), *q = get(MiB, NULL), *r = get(MiB, NULL);
  CHECK(p && q && r);
  CHECK(get(11 * MiB, NULL) == NULL);
  CHECK(lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "fake:0");
  CHECK(get(SIZE_MAX, NULL) == NULL && lt_error_is_memory());
  CHECK(get(SIZE_MAX - 600, NULL) == NULL && lt_error_is_memory());
  put(p);
  put(q);
  CHECK(fake.memory.retry(&fake, 0)); /* the segment of r stays */
  CHECK_INT(NOW(segment, LT_POOL_ALL), 1);
  CHECK_INT(stats().num_alloc_retries, 1);
  CHECK_INT(stats().num_device_free, 1);
  check_all();
  put(r);
  end();
}

static void other_errors_are_not_out_of_memory(void) {
  begin(64 * MiB);
  fake_fail_memory(1, true);
  CHECK(get(100, NULL) == NULL);
  CHECK(!lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "the driver failed");
  fake_fail_memory(1, false);
  CHECK(get(100, NULL) == NULL && lt_error_is_memory());
  void *p = get(100, NULL);
  CHECK(p != NULL);
  fake_fail_all(true);
  CHECK(!fake.memory.retry(&fake, 0));
  CHECK(!lt_error_is_memory());
  fake_fail_all(false);
  put(p);
  check_all();
  end();
}

static void the_memory_limit_is_enforced(void) {
  begin(40 * MiB);
  CHECK(!fake.memory.limit(&fake, 0, 1.5));
  CHECK_CONTAINS(lt_error(), "0 to 1");
  CHECK(!fake.memory.limit(&fake, 0, NAN));
  CHECK(fake.memory.limit(&fake, 0, 0.5));
  void *p = get(5 * MiB, NULL);
  CHECK(p != NULL);
  CHECK(get(100, NULL) == NULL && lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "limit");
  CHECK_INT(fake_used(0), 20 * MiB);
  CHECK(fake.memory.limit(&fake, 0, 1));
  void *q = get(100, NULL);
  CHECK(q != NULL);
  put(p);
  put(q);
  end();
}

static void empty_cache_keeps_segments_in_use(void) {
  begin(256 * MiB);
  void *p = get(512, NULL), *q = get(5 * MiB, NULL), *r = get(30 * MiB, NULL);
  fake_write(fake.streams.get_default(&fake, 0), r, 64, 1); /* still queued when it is freed */
  put(q);
  put(r);
  CHECK(fake.memory.release(&fake, 0));
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 2 * MiB);
  CHECK_INT(stats().num_device_free, 2);
  check_all();
  put(p);
  end();
}

static void invalid_frees_do_nothing(void) {
  begin(256 * MiB);
  char elsewhere[512];
  put(elsewhere); /* before the device was initialized */
  void *p = get(512, NULL);
  lt_error_set("what was said before");
  put(NULL);
  put(elsewhere);
  put((char *)p + 64);
  put(p);
  put(p);
  CHECK_STR(lt_error(), "what was said before");
  check_all();
  end();
}

static void allocation_without_a_cache(void) {
  setenv("LUTRA_MEMORY_DEBUG", "1", 1);
  begin(256 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  void *p = get(1000, NULL);
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 1000);
  CHECK_INT(fake_used(0), 1000); /* a memory checker detects one byte past the end */
  use_on(p, 1000, 0, fake.streams.get_default(&fake, 0), s);
  memset(p, 0, 1000);
  put(p); /* synchronizes with all work first */
  CHECK_INT(fake_used(0), 0);
  CHECK_INT(NOW(active, LT_POOL_ALL), 0);
  check_all();
  fake.streams.destroy(s);
  end();
  unsetenv("LUTRA_MEMORY_DEBUG");
}

static int fills;
static lt_DriverStatus fill(int index, void *memory, int byte, size_t nbytes, void *stream) {
  (void)index;
  (void)stream;
  fills++;
  memset(memory, byte, nbytes);
  return LT_DRIVER_OK;
}

static void debugging_poisons_memory(void) {
  lt_AccelDriver driver = fake_driver;
  driver.memory_fill = fill;
  setenv("LUTRA_MEMORY_DEBUG", "1", 1);
  fake_reset(256 * MiB);
  CHECK(lt_accel_attach(&fake, &driver));
  float *p = get(100 * sizeof *p, NULL);
  REQUIRE(p != NULL);
  CHECK(isnan(p[0]) && isnan(p[99]));
  CHECK_INT(fills, 1);
  put(p);
  CHECK_INT(fills, 2);
  end();
  unsetenv("LUTRA_MEMORY_DEBUG");
  begin(256 * MiB); /* and only then */
  put(get(100, NULL));
  CHECK_INT(fills, 2);
  end();
}

/* ---- random programs ------------------------------------------------------------------------- */

enum { MOST = 60, STREAMS = 4 };

typedef struct Held {
  void *memory;
  size_t nbytes;
  uint64_t tag;
  lt_Stream *stream; /* NULL when it was destroyed */
} Held;

typedef struct Program {
  uint64_t random, tag;
  lt_Stream *stream[STREAMS]; /* 0: the default stream */
  Held held[MOST];
  int count;
  int64_t peak_allocated, peak_reserved, peak_active;
} Program;

static uint64_t next(Program *p) {
  p->random ^= p->random << 13;
  p->random ^= p->random >> 7;
  p->random ^= p->random << 17;
  return p->random;
}
static int below(Program *p, int n) { return (int)(next(p) >> 33) % n; }

static size_t some_size(Program *p) {
  static const size_t at[] = {512,      1024,         MiB - 512, MiB, MiB + 1, 10 * MiB - 512,
                              10 * MiB, 10 * MiB + 1, 19 * MiB};
  switch (below(p, 10)) {
  case 0:
    return at[below(p, (int)(sizeof at / sizeof *at))];
  case 1:
    return MiB + (size_t)below(p, (int)(12 * MiB));
  case 2:
  case 3:
    return 16 + (size_t)below(p, (int)MiB);
  default:
    return 16 + (size_t)below(p, 6000);
  }
}

/* Returns the address that the rules require for a request; NULL when the driver must be called.
 * Requires that no free is pending. */
static const char *expected_address(size_t nbytes, lt_Stream *stream) {
  size_t size = (nbytes + 511) / 512 * 512;
  const lt_Block *best = NULL;
  for (const lt_Segment *s = lt_accel_of(&fake)->allocator[0]->segments; s; s = s->next)
    for (const lt_Block *b = s->first; b && s->stream == (lt_AccelStream *)stream; b = b->next)
      if (b->state == LT_BLOCK_FREE && s->small == (size <= MiB) && b->size >= size &&
          (!best || b->size < best->size || (b->size == best->size && b->address < best->address)))
        best = b;
  return best ? best->address : NULL;
}

static void check_new(const Program *p, const Held *h) {
  for (int i = 0; i < p->count; i++) {
    const Held *o = &p->held[i];
    CHECK((char *)h->memory + h->nbytes <= (char *)o->memory ||
          (char *)o->memory + o->nbytes <= (char *)h->memory);
  }
  const lt_Block *b = lt_block_map_find(&lt_accel_of(&fake)->allocator[0]->held, h->memory);
  CHECK(b && b->requested == h->nbytes && b->segment->stream == (lt_AccelStream *)h->stream);
}

static void do_alloc(Program *p) {
  if (p->count == MOST) return;
  Held h = {NULL, some_size(p), ++p->tag, p->stream[below(p, STREAMS)]};
  if (!h.stream) return;
  lt_Accel *accel = lt_accel_of(&fake);
  bool known = lt_accel_is_ready(&fake, 0) && !accel->allocator[0]->waiting;
  const char *expected = known ? expected_address(h.nbytes, h.stream) : NULL;
  h.memory = get(h.nbytes, h.stream);
  if (expected) CHECK(h.memory == expected);
  if (!h.memory && lt_error_is_memory() && below(p, 2) && fake.memory.retry(&fake, 0))
    h.memory = get(h.nbytes, h.stream);
  if (!h.memory) return;
  check_new(p, &h);
  fake_write(h.stream, h.memory, h.nbytes, h.tag);
  fake_check(h.stream, h.memory, h.nbytes, h.tag);
  p->held[p->count++] = h;
}

static void do_free(Program *p, bool oldest) {
  if (!p->count) return;
  int i = oldest ? 0 : below(p, p->count);
  Held h = p->held[i];
  p->held[i] = p->held[--p->count];
  if (h.stream) fake_check(h.stream, h.memory, h.nbytes, h.tag);
  put(h.memory);
}

static void do_use(Program *p) {
  lt_Stream *s = p->stream[below(p, STREAMS)];
  if (!p->count || !s) return;
  Held *h = &p->held[below(p, p->count)];
  lt_Stream *own = h->stream ? h->stream : p->stream[0];
  use_on(h->memory, h->nbytes, h->tag, own, s);
}

static void do_stream(Program *p) {
  int i = 1 + below(p, STREAMS - 1);
  if (!p->stream[i]) {
    p->stream[i] = fake.streams.create(&fake, 0, -below(p, 2));
    return;
  }
  if (below(p, 4)) return;
  fake.streams.destroy(p->stream[i]);
  for (int k = 0; k < p->count; k++)
    if (p->held[k].stream == p->stream[i]) p->held[k].stream = NULL;
  p->stream[i] = NULL;
}

static void do_something(Program *p) {
  int what = below(p, 100);
  if (what < 35) {
    do_alloc(p);
  } else if (what < 60) {
    do_free(p, what < 40);
  } else if (what < 75) {
    do_use(p);
  } else if (what < 93) {
    int n = fake_streams(0);
    for (int i = below(p, 12); n && i > 0; i--) fake_step(0, below(p, n));
  } else if (what < 95) {
    do_stream(p);
  } else if (what < 96) {
    CHECK(fake.memory.release(&fake, 0));
  } else if (what < 97) {
    CHECK(fake.memory.limit(&fake, 0, below(p, 2) ? 1.0 : 0.3 + 0.1 * below(p, 7)));
  } else if (what < 98) {
    fake_fail_memory(1 + below(p, 3), below(p, 2));
  } else if (what < 99) {
    fake.memory.reset_peak(&fake, 0);
    p->peak_allocated = p->peak_reserved = p->peak_active = 0;
  } else {
    CHECK(fake.streams.synchronize(p->stream[0]));
  }
}

static void check_peak(int64_t *peak, const lt_Stat *s) {
  if (s->current > *peak) *peak = s->current;
  CHECK_INT(s->peak, *peak);
}

static void run_program(uint64_t seed, int steps) {
  Program p = {.random = seed * 0x9E3779B97F4A7C15u + 1};
  begin((32 + seed % 5 * 24) * MiB);
  p.stream[0] = fake.streams.get_default(&fake, 0);
  for (int i = 0; i < steps && !check_bad; i++) {
    do_something(&p);
    check_all();
    lt_MemoryStats s = stats();
    check_peak(&p.peak_allocated, &s.allocated_bytes[LT_POOL_ALL]);
    check_peak(&p.peak_reserved, &s.reserved_bytes[LT_POOL_ALL]);
    check_peak(&p.peak_active, &s.active_bytes[LT_POOL_ALL]);
    if (check_bad) printf("seed %llu, step %d\n", (unsigned long long)seed, i);
  }
  fake_fail_memory(0, false);
  while (p.count) do_free(&p, false);
  for (int i = 1; i < STREAMS; i++) fake.streams.destroy(p.stream[i]);
  CHECK(fake.memory.retry(&fake, 0)); /* everything has been merged again */
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 0);
  CHECK_INT(NOW(segment, LT_POOL_ALL), 0);
  CHECK_INT(fake_streams_alive(), 0);
  check_all();
  end();
}

static void random_programs(void) {
  for (uint64_t seed = 1; seed <= 24 && !check_bad; seed++) run_program(seed, 1500);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *work(void *argument) {
  Program p = {.random = (uint64_t)(uintptr_t)argument * 0x9E3779B97F4A7C15u + 1};
  p.tag = (uint64_t)(uintptr_t)argument << 32;
  p.stream[0] = fake.streams.get_default(&fake, 0);
  p.stream[1] = fake.streams.create(&fake, 0, 0);
  for (int i = 0; i < 4000; i++) {
    int what = below(&p, 100);
    Held h = {NULL, 16 + (size_t)below(&p, 3000), ++p.tag, p.stream[below(&p, 2)]};
    if (what < 45 && p.count < MOST) {
      h.memory = get(h.nbytes, h.stream);
      if (!h.memory) break;
      fake_write(h.stream, h.memory, h.nbytes, h.tag);
      p.held[p.count++] = h;
    } else if (what < 85) {
      do_free(&p, false);
    } else if (what < 90 && p.count) {
      Held *used = &p.held[below(&p, p.count)];
      use_on(used->memory, used->nbytes, used->tag, used->stream,
             p.stream[used->stream == p.stream[0]]);
    } else if (what < 99) {
      fake_step(0, below(&p, 5));
    } else if (below(&p, 4) == 0) {
      fake.memory.release(&fake, 0);
    } else {
      fake.streams.set_current(&fake, 0, h.stream);
    }
  }
  while (p.count) do_free(&p, false);
  fake.streams.destroy(p.stream[1]); /* may be current here: then it ends with the thread */
  return NULL;
}

static void four_threads(void) {
  pthread_t thread[4];
  begin(512 * MiB);
  for (uintptr_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
  CHECK_INT(fake_streams_alive(), 0);
  check_all();
  CHECK_INT(NOW(allocation, LT_POOL_ALL), 0);
  CHECK(stats().allocation[LT_POOL_ALL].allocated > 1000);
  CHECK(fake.memory.retry(&fake, 0));
  CHECK_INT(NOW(reserved_bytes, LT_POOL_ALL), 0);
  end();
}

static uint64_t given_seed;
static void given_program(void) { run_program(given_seed, 20000); }

int main(int argc, char **argv) {
  if (argc > 1) {
    given_seed = strtoull(argv[1], NULL, 10);
    RUN(given_program);
    return check_end();
  }
  RUN(few_floats);
  RUN(segments_have_pytorchs_sizes);
  RUN(the_best_fit_is_used);
  RUN(streams_do_not_share);
  RUN(private_pools_do_not_share);
  RUN(private_pools_are_kept_until_closed);
  RUN(memory_used_on_other_streams_is_freed_later);
  RUN(only_the_last_use_delays_the_free);
  RUN(many_pending_blocks_cost_little);
  RUN(memory_outlives_its_stream);
  RUN(out_of_memory);
  RUN(other_errors_are_not_out_of_memory);
  RUN(the_memory_limit_is_enforced);
  RUN(empty_cache_keeps_segments_in_use);
  RUN(invalid_frees_do_nothing);
  RUN(allocation_without_a_cache);
  RUN(debugging_poisons_memory);
  RUN(random_programs);
  RUN(four_threads);
  return check_end();
}
