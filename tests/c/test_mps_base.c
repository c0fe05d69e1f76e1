/* test_mps_base.c: the base of src/mps on a Metal under the test's control (fake_metal.c): batches,
 * streams and events, copies, launches, failures of every call of Metal, lost devices. */
#include "accel/allocator.h"
#include "check.h"
#include "fake_metal.h"
#include "mps/queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

/* Kernels without which the backend is not complete; no test here runs them. */
bool lt_mps_elementwise(const lt_Loop *loop) {
  (void)loop;
  return false;
}
bool lt_mps_elementwise_supported(lt_OpId op, lt_Dtype compute) {
  (void)op, (void)compute;
  return true;
}
bool lt_mps_reduce(lt_Call *c);
bool lt_mps_reduce(lt_Call *c) {
  (void)c;
  return false;
}

const lt_Backend *lt_backend(void);
static const lt_Backend *b;
static const lt_Device mps = {LT_DEVICE_mps, 0}, cpu = {LT_DEVICE_cpu, 0};

static void begin(size_t capacity) {
  fake_metal_memory(capacity, true);
  b = lt_backend();
  CHECK(b != NULL);
}

/* Staging memory and the memory of faults live as long as the program. */
static void end(void) {
  lt_accel_detach((lt_Backend *)(uintptr_t)b);
  CHECK_STR(fake_metal_error(), NULL);
  CHECK_INT(fake_metal_alive().commands, 0);
}

static void *get(size_t nbytes, lt_Stream *s) { return b->memory.alloc(b, 0, nbytes, s); }
static void put(void *memory) { b->memory.free(b, 0, memory, 0, NULL); }
static lt_Stream *main_stream(void) { return b->streams.get_default(b, 0); }
static bool zero(void *memory, size_t nbytes, lt_Stream *s) {
  return b->memory.fill_zero(0, memory, nbytes, s);
}
static bool send(void *to, const void *from, size_t nbytes, lt_Stream *s) {
  return b->memory.copy(mps, to, cpu, from, nbytes, s, false);
}
static bool receive(void *to, const void *from, size_t nbytes, lt_Stream *s) {
  return b->memory.copy(cpu, to, mps, from, nbytes, s, false);
}
static bool fill(void *memory, size_t nbytes, int byte, lt_Stream *s) {
  return lt_mps_driver.memory_fill(0, memory, byte, nbytes, lt_accel_native(s)) == LT_DRIVER_OK;
}

static lt_MpsCounters counted(void) {
  lt_MpsCounters c;
  lt_mps_counters(&c);
  return c;
}
#define BATCHES(from) ((int64_t)(counted().batches - (from).batches))

static uint32_t random_state = 1;
static uint32_t draw(uint32_t n) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % n;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void commands_are_collected_while_the_device_works(void) {
  begin(256 * MiB);
  char *x = get(64 * MiB, NULL);
  fake_metal_hold(true);
  lt_MpsCounters start = counted();
  CHECK(zero(x, 64, NULL));
  CHECK_INT(BATCHES(start), 1); /* the device was idle */
  for (int i = 0; i < 63; i++) CHECK(zero(x, 64, NULL));
  CHECK_INT(BATCHES(start), 1);
  CHECK(zero(x, 64, NULL));
  CHECK_INT(BATCHES(start), 2); /* 64 commands */
  CHECK(zero(x, 39 * MiB, NULL));
  CHECK_INT(BATCHES(start), 2);
  CHECK(zero(x, MiB, NULL));
  CHECK_INT(BATCHES(start), 3); /* 40 MB */
  CHECK_INT((int64_t)(counted().commands - start.commands), 67);
  fake_metal_hold(false);
  CHECK(b->streams.synchronize(main_stream()));
  put(x);
  end();
}

static void open_commands_are_committed_when_the_device_is_idle(void) {
  begin(256 * MiB);
  char *x = get(64, NULL);
  for (int round = 0; round < 20; round++) {
    fake_metal_hold(true);
    lt_MpsCounters start = counted();
    CHECK(zero(x, 64, NULL) && zero(x, 64, NULL) && zero(x, 64, NULL));
    CHECK_INT(BATCHES(start), 1);
    fake_metal_hold(false); /* the host does nothing more */
    for (int i = 0; i < 5000 && BATCHES(start) < 2; i++)
      nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK_INT(BATCHES(start), 2);
    CHECK(b->streams.synchronize(main_stream()));
  }
  put(x);
  end();
}

static void queries_commit_what_they_ask_for(void) {
  begin(256 * MiB);
  char *x = get(64, NULL);
  lt_Event *e = b->streams.event_create(b, 0, false);
  CHECK(b->streams.event_record(e, main_stream()) && b->streams.event_query(e));
  fake_metal_hold(true);
  lt_MpsCounters start = counted();
  CHECK(zero(x, 64, NULL) && zero(x, 64, NULL));
  CHECK_INT(BATCHES(start), 1);
  CHECK(!b->streams.query(main_stream()));
  CHECK_INT(BATCHES(start), 2);
  CHECK(zero(x, 64, NULL) && b->streams.event_record(e, main_stream()));
  CHECK_INT(BATCHES(start), 2);
  CHECK(!b->streams.event_query(e));
  CHECK_INT(BATCHES(start), 3);
  CHECK(zero(x, 64, NULL) && !b->streams.event_query(e));
  CHECK_INT(BATCHES(start), 3); /* the event is before the open command */
  fake_metal_hold(false);
  CHECK(b->streams.event_synchronize(e) && b->streams.event_query(e));
  CHECK(b->streams.device_synchronize(b, 0) && b->streams.query(main_stream()));
  CHECK_INT(BATCHES(start), 4);
  b->streams.event_destroy(e);
  put(x);
  end();
}

static void slow(void **arguments, uint64_t threads) {
  (void)arguments;
  struct timespec t = {0, (long)threads * 1000000};
  nanosleep(&t, NULL);
}

static bool launch(const char *kernel, int64_t groups, int threads, lt_Stream *s) {
  return lt_mps_launch_on(
      0, s,
      &(lt_MpsLaunch){.file = "test", .kernel = kernel, .groups = {groups}, .threads = {threads}});
}

static void events_measure_time(void) {
  begin(256 * MiB);
  double ms = -1;
  lt_Event *from = b->streams.event_create(b, 0, true), *to = b->streams.event_create(b, 0, true);
  CHECK(launch("slow", 5, 1, NULL) && b->streams.synchronize(main_stream()));
  nanosleep(&(struct timespec){0, 20000000}, NULL);
  CHECK(b->streams.event_record(from, main_stream())); /* not at the end of the work before */
  CHECK(launch("slow", 1, 30, NULL) && b->streams.event_record(to, main_stream()));
  CHECK(launch("slow", 50, 1, NULL));
  CHECK(b->streams.event_synchronize(to) && b->streams.event_synchronize(from));
  CHECK(b->streams.event_elapsed(from, to, &ms));
  CHECK(ms >= 30 && ms < 10000);
  CHECK(b->streams.event_elapsed(to, from, &ms) && ms <= -30);
  b->streams.event_destroy(from);
  b->streams.event_destroy(to);
  end();
}

/* ---- streams --------------------------------------------------------------------------------- */

static void streams_wait_for_events(void) {
  begin(256 * MiB);
  lt_Stream *other = b->streams.create(b, 0, -1);
  lt_Event *e = b->streams.event_create(b, 0, false);
  char *x = get(64, NULL), *y = get(64, NULL), got[64];
  CHECK_INT(b->streams.priority(other), 0);
  fake_metal_hold(true);
  lt_MpsCounters start = counted();
  CHECK(fill(x, 64, 1, NULL) && fill(x, 64, 2, NULL));
  CHECK(b->streams.event_record(e, main_stream()));
  CHECK(b->streams.wait_event(main_stream(), e)); /* its own event: nothing to do */
  CHECK_INT((int64_t)(counted().waits - start.waits), 0);
  CHECK(b->streams.wait_event(other, e));
  CHECK_INT((int64_t)(counted().waits - start.waits), 1);
  CHECK(b->memory.copy(mps, y, mps, x, 64, other, false));
  CHECK(fill(x, 64, 3, NULL));
  fake_metal_hold(false);
  CHECK(b->streams.synchronize(other) && receive(got, y, 64, other));
  CHECK(got[0] == 2 || got[0] == 3); /* the fill with 3 is not ordered */
  CHECK(b->streams.synchronize(main_stream()) && b->streams.wait_event(other, e));
  CHECK_INT((int64_t)(counted().waits - start.waits), 1); /* the event is done */
  b->streams.event_destroy(e);
  b->streams.destroy(other);
  put(x);
  put(y);
  end();
}

#define STREAMS 3
#define PLACES  6

/* Random fills and copies on random streams, ordered only where they depend on each other. */
static void dependent_work_is_ordered_and_never_deadlocks(void) {
  begin(256 * MiB);
  lt_Stream *stream[STREAMS] = {main_stream()};
  unsigned users[PLACES] = {0}; /* bit mask of the streams that have used a place */
  unsigned char expected[PLACES] = {0}, got[PLACES];
  char *x = get(PLACES * 512, NULL);
  for (int i = 1; i < STREAMS; i++) stream[i] = b->streams.create(b, 0, 0);
  CHECK(zero(x, PLACES * 512, NULL) && b->streams.synchronize(main_stream()));
  for (int step = 0; step < 5000; step++) {
    unsigned s = draw(STREAMS), from = draw(PLACES), to = draw(PLACES);
    if (draw(50) == 0) fake_metal_hold(true);
    if (draw(20) == 0) fake_metal_hold(false);
    if (draw(30) == 0) b->streams.query(stream[draw(STREAMS)]);
    for (unsigned t = 0; t < STREAMS; t++) {
      if (t == s || !((users[from] | users[to]) >> t & 1)) continue;
      lt_Event *e = b->streams.event_create(b, 0, false);
      CHECK(b->streams.event_record(e, stream[t]) && b->streams.wait_event(stream[s], e));
      b->streams.event_destroy(e);
    }
    if (from == to) {
      expected[to] = (unsigned char)draw(256);
      CHECK(fill(x + to * 512, 512, expected[to], stream[s]));
    } else {
      expected[to] = expected[from];
      CHECK(b->memory.copy(mps, x + to * 512, mps, x + from * 512, 512, stream[s], false));
    }
    users[from] |= 1u << s;
    users[to] |= 1u << s;
  }
  fake_metal_hold(false);
  CHECK(b->streams.device_synchronize(b, 0));
  for (int i = 0; i < PLACES; i++)
    CHECK(receive(&got[i], x + i * 512 + 511, 1, NULL) && got[i] == expected[i]);
  for (int i = 1; i < STREAMS; i++) b->streams.destroy(stream[i]);
  put(x);
  end();
}

static void streams_reuse_queues(void) {
  begin(256 * MiB);
  char *x = get(64, NULL), got[64];
  lt_Stream *s = b->streams.create(b, 0, 0);
  int queues = fake_metal_alive().queues;
  b->streams.destroy(s);
  for (int i = 0; i < 100; i++) {
    s = b->streams.create(b, 0, 0);
    CHECK(fill(x, 64, i, s) && receive(got, x, 64, s) && got[63] == i);
    b->streams.destroy(s);
  }
  CHECK_INT(fake_metal_alive().queues, queues);
  put(x);
  end();
}

static void *use_stream(void *memory) {
  char *x = memory, got[64];
  lt_Stream *s = b->streams.create(b, 0, 0);
  for (int i = 0; i < 500; i++) {
    CHECK(fill(x, 64, i & 127, s));
    if (i % 3 == 0) CHECK(fill(x, 64, i & 127, s));
    if (i % 7 == 0) CHECK(receive(got, x, 64, s) && got[0] == (i & 127));
    if (i % 50 == 0) CHECK(b->streams.device_synchronize(b, 0));
  }
  b->streams.destroy(s);
  return NULL;
}

static void threads_use_streams_at_once(void) {
  begin(256 * MiB);
  pthread_t thread[4];
  void *memory[4];
  for (int i = 0; i < 4; i++) {
    memory[i] = get(64, NULL);
    pthread_create(&thread[i], NULL, use_stream, memory[i]);
  }
  for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < 4; i++) put(memory[i]);
  end();
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void addresses_are_found(void) {
  begin(256 * MiB);
  enum { COUNT = 40 };
  char *x[COUNT];
  size_t offset = 0;
  for (int i = 0; i < COUNT; i++)
    lt_mps_driver.memory_new(0, 1000 + 512 * (size_t)i, (void **)&x[i]);
  for (int i = 0; i < COUNT; i += 3) lt_mps_driver.memory_free(0, x[i]);
  for (int i = 0; i < COUNT; i++) {
    size_t size = 1000 + 512 * (size_t)i;
    uint64_t a = (uint64_t)(uintptr_t)x[i];
    if (i % 3 == 0) {
      CHECK(!lt_mps_find_buffer(a, 1, &offset) && !lt_mps_find_buffer(a + size - 1, 1, &offset));
      continue;
    }
    lt_MetalBuffer *found = lt_mps_find_buffer(a, size, &offset);
    CHECK(found && found->address == a && offset == 0);
    CHECK(lt_mps_find_buffer(a + size - 1, 1, &offset) == found && offset == size - 1);
    CHECK(!lt_mps_find_buffer(a, size + 1, &offset) && !lt_mps_find_buffer(a - 1, 1, &offset));
    lt_mps_driver.memory_free(0, x[i]);
  }
  end();
}

static void memory_is_limited_to_the_recommended_size(void) {
  begin(64 * MiB);
  int64_t left, total, before;
  CHECK(b->memory.info(b, 0, &before, &total));
  CHECK_INT(total, 64 * MiB);
  void *x = get(30 * MiB, NULL);
  CHECK(b->memory.info(b, 0, &left, &total));
  CHECK_INT(left, before - (int64_t)(30 * MiB));
  CHECK(x && !get(40 * MiB, NULL));
  CHECK(lt_error_is_memory());
  put(x);
  void *y = get(40 * MiB, NULL); /* storage.c would release the cache; here the test does */
  CHECK(!y && b->memory.retry(b, 0));
  y = get(40 * MiB, NULL);
  CHECK(y != NULL);
  put(y);
  end();
}

static void temporaries_reuse_memory(void) {
  begin(256 * MiB);
  lt_MpsCounters start = counted();
  for (int i = 0; i < 100000; i++) {
    char *x = get(MiB, NULL);
    if (!x || !zero(x, 64, NULL)) {
      CHECK(!"a temporary");
      break;
    }
    put(x);
  }
  CHECK(b->streams.synchronize(main_stream()));
  CHECK_INT((int64_t)(counted().commands - start.commands), 100000);
  lt_MemoryStats stats;
  CHECK(b->memory.stats(b, 0, &stats));
  CHECK_INT(stats.segment[LT_POOL_ALL].peak, 1);
  end();
}

/* ---- copies ---------------------------------------------------------------------------------- */

static unsigned char *pattern(size_t n, unsigned seed) {
  unsigned char *p = malloc(n);
  for (size_t i = 0; i < n; i++) p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
  return p;
}

static void copy_sizes(const char *storage) {
  static const size_t sizes[] = {1, 3, 255, 4096, 65537, 256 * KiB, 300001, 17 * MiB + 5};
  setenv("LUTRA_MPS_STORAGE", storage, 1);
  begin(512 * MiB);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t n = sizes[i], at = i % 4;
    unsigned char *host = pattern(n, (unsigned)i), *back = calloc(n, 1);
    char *x = get(n + at, NULL), *y = get(n + at, NULL);
    CHECK(send(x + at, host, n, NULL) && receive(back, x + at, n, NULL)); /* an idle stream */
    CHECK(memcmp(host, back, n) == 0);
    memset(back, 0, n);
    CHECK(zero(x, n + at, NULL) && zero(x, n + at, NULL) && send(x + at, host, n, NULL));
    CHECK(b->memory.copy(mps, y + at, mps, x + at, n, NULL, false) &&
          receive(back, y + at, n, NULL));
    CHECK(memcmp(host, back, n) == 0);
    void *pinned = b->memory.host_alloc(b, n), *other = b->memory.host_alloc(b, n);
    memcpy(pinned, host, n);
    CHECK(b->memory.copy(mps, y + at, cpu, pinned, n, NULL, true) &&
          b->memory.copy(cpu, other, mps, y + at, n, NULL, true));
    CHECK(b->streams.synchronize(main_stream()));
    CHECK(memcmp(host, other, n) == 0);
    b->memory.host_free(b, pinned, n, NULL);
    b->memory.host_free(b, other, n, NULL);
    put(x);
    put(y);
    free(host);
    free(back);
  }
  end();
  unsetenv("LUTRA_MPS_STORAGE");
}

static void shared_memory_is_copied(void) { copy_sizes(""); }
static void private_memory_is_copied(void) { copy_sizes("private"); }

static void a_copy_has_read_its_source_at_the_return(void) {
  begin(256 * MiB);
  char *x = get(100, NULL), host[100], got[100];
  memset(host, 7, sizeof host);
  fake_metal_hold(true);
  CHECK(zero(x, 100, NULL) && send(x, host, 100, NULL));
  memset(host, 8, sizeof host);
  fake_metal_hold(false);
  CHECK(receive(got, x, 100, NULL) && got[0] == 7 && got[99] == 7);
  put(x);
  end();
}

/* While the device is busy, small copies are queued until 64 MiB of staging memory are used. */
static void staging_memory_is_limited_and_released(void) {
  begin(512 * MiB);
  static char host[200000];
  char *x = get(sizeof host, NULL), got[1];
  lt_mps_queue_release_stages(0); /* of earlier tests */
  FakeMetalCounts before = fake_metal_alive();
  CHECK(launch("slow", 300, 1, NULL));
  for (int i = 0; i < 400; i++) {
    host[0] = (char)i;
    CHECK(send(x, host, sizeof host, NULL));
    if (i == 200) CHECK(fake_metal_alive().buffers - before.buffers <= 256);
  }
  CHECK(receive(got, x, 1, NULL) && got[0] == (char)399);
  CHECK(fake_metal_alive().buffers - before.buffers <= 256);
  CHECK(lt_mps_queue_release_stages(0) && !lt_mps_queue_release_stages(0));
  CHECK_INT(fake_metal_alive().buffers, before.buffers);
  put(x);
  end();
}

/* ---- launches -------------------------------------------------------------------------------- */

static void add_one(void **arguments, uint64_t threads) {
  unsigned char *x = arguments[0];
  for (uint64_t i = 0; i < threads; i++)
    x[i] = (unsigned char)(x[i] + *(unsigned char *)arguments[2]);
  if (arguments[1]) abort(); /* it was NULL */
}

static bool launch_add(char *x, int64_t groups, int threads, unsigned char value) {
  return lt_mps_launch_on(0, NULL,
                          &(lt_MpsLaunch){.file = "test",
                                          .kernel = "add_one",
                                          .data = {x, NULL},
                                          .count = 2,
                                          .arguments = &value,
                                          .size = 1,
                                          .groups = {groups},
                                          .threads = {threads}});
}

static void launches_are_checked(void) {
  begin(256 * MiB);
  char *x = get(1000, NULL), got[1000];
  CHECK(zero(x, 1000, NULL) && launch_add(x + 3, 4, 32, 1) && launch_add(x, 1, 3, 5));
  CHECK(receive(got, x, 1000, NULL));
  CHECK(got[0] == 5 && got[2] == 5 && got[3] == 1 && got[130] == 1 && got[131] == 0);
  CHECK(!launch_add(x, 1, 513, 1));
  CHECK_CONTAINS(lt_error(), "at most 512 threads");
  CHECK(!launch_add(x, (int64_t)1 << 32, 32, 1));
  CHECK_CONTAINS(lt_error(), "too large");
  CHECK(!launch_add((char *)1, 1, 1, 1));
  CHECK_CONTAINS(lt_error(), "not in memory of the device");
  CHECK(!launch("nothing", 1, 1, NULL));
  CHECK_CONTAINS(lt_error(), "cannot compile kernel nothing of test.metal");
  put(x);
  end();
}

static void user_kernels_are_launched(void) {
  begin(256 * MiB);
  char *log = NULL, *x = get(1000, NULL), got[1000];
  unsigned char value = 9;
  lt_KernelSource source = {.text = "kernel void add_one", .name = "add_one"};
  lt_UserKernel *k = b->kernels.user_create(0, &source, &log);
  CHECK(k && !log && b->kernels.user_create(0, &source, &log) == k);
  void *none = NULL, *values[] = {&x, &none, &value};
  size_t sizes[] = {0, 0, 1};
  lt_KernelLaunch l = {.grid = {100, 7, 1}, .by_threads = true, .count = 3};
  l.arguments = values;
  l.sizes = sizes;
  CHECK(zero(x, 1000, NULL) && b->kernels.user_launch(k, &l, NULL));
  CHECK(receive(got, x, 1000, NULL) && got[699] == 9 && got[700] == 0);
  l.by_threads = false;
  l.block[0] = 1024, l.block[1] = l.block[2] = 1;
  CHECK(!b->kernels.user_launch(k, &l, NULL));
  CHECK_CONTAINS(lt_error(), "add_one: expected 1 to 512 in x for argument 'group_size', got 1024");
  source.text = "error";
  CHECK(!b->kernels.user_create(0, &source, &log));
  CHECK_STR(log, "line 1: error");
  free(log);
  put(x);
  end();
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Uses everything once. Returns false when a call has failed. */
static bool scenario(void) {
  char host[3000] = {1}, got[3000];
  lt_Stream *s = b->streams.create(b, 0, 0);
  lt_Event *e = b->streams.event_create(b, 0, false);
  char *x = s ? get(3000, NULL) : NULL, *y = x ? get(3000, s) : NULL;
  bool ok = e && y && zero(x, 3000, NULL) && send(x, host, 3000, NULL) &&
            launch_add(x, 3000, 1, 1) && b->streams.event_record(e, main_stream()) &&
            b->streams.wait_event(s, e) && b->memory.copy(mps, y, mps, x, 3000, s, false) &&
            receive(got, y, 3000, s);
  if (ok) CHECK(got[0] == 2 && got[2999] == 1);
  if (x) put(x);
  if (y) put(y);
  if (e) b->streams.event_destroy(e);
  if (s) b->streams.destroy(s);
  return ok;
}

/* Makes each call of Metal fail in turn. */
static void fail_each(const char *storage, lt_MetalStatus status) {
  int n = 0, failures = 0;
  bool failed = true;
  setenv("LUTRA_MPS_STORAGE", storage, 1);
  for (; failed && n < 1000; n++) {
    begin(256 * MiB);
    fake_metal_fail(n + 1, status);
    lt_error_set("none");
    bool ok = scenario();
    failed = fake_metal_failed();
    fake_metal_fail(0, LT_METAL_OK);
    CHECK(ok || failed);
    if (!ok) {
      failures++;
      CHECK(strcmp(lt_error(), "none") != 0);
    }
    CHECK(scenario()); /* the device stays usable */
    end();
  }
  CHECK(n > 5 && n < 1000 && (failures > 0 || status == LT_METAL_NO_MEMORY));
  unsetenv("LUTRA_MPS_STORAGE");
}

static void every_call_may_be_out_of_memory(void) {
  fail_each("", LT_METAL_NO_MEMORY);
  fail_each("private", LT_METAL_NO_MEMORY);
}

static void every_call_may_fail(void) {
  fail_each("", LT_METAL_OTHER);
  fail_each("private", LT_METAL_INVALID);
}

static void a_failed_command_buffer_loses_the_device(void) {
  begin(256 * MiB);
  lt_Stream *s = b->streams.create(b, 0, 0);
  lt_Event *e = b->streams.event_create(b, 0, false);
  char *x = get(1000, NULL), message[1000], got[1000];
  fake_metal_hold(true);
  CHECK(zero(x, 1000, NULL) && launch_add(x, 1, 1, 1) && b->streams.event_record(e, main_stream()));
  CHECK(b->streams.wait_event(s, e) && zero(x, 1000, s));
  fake_metal_fail_commands(2, LT_METAL_PAGE_FAULT);
  fake_metal_hold(false);
  CHECK(!b->streams.synchronize(s) || !b->streams.synchronize(main_stream()));
  snprintf(message, sizeof message, "%s", lt_error());
  CHECK_CONTAINS(message, "cannot use \"mps\" anymore");
  CHECK_CONTAINS(message, "the test stopped it");
  CHECK(!receive(got, x, 1000, NULL));
  CHECK_STR(lt_error(), message);
  CHECK(!zero(x, 1000, s) && !launch_add(x, 1, 1, 1) && !get(100 * MiB, NULL));
  CHECK_STR(lt_error(), message);
  CHECK(!b->streams.device_synchronize(b, 0) && b->streams.query(s) && b->streams.event_query(e));
  b->streams.event_destroy(e);
  b->streams.destroy(s);
  put(x);
  end();
  lt_mps_forget_lost(0);
  begin(256 * MiB);
  CHECK(scenario());
  end();
}

/* Each command buffer in turn fails: nothing hangs, and a later call reports it. */
static void every_command_buffer_may_fail(void) {
  bool lost = true;
  int n = 0;
  for (; lost && n < 100; n++) {
    begin(256 * MiB);
    fake_metal_fail_commands(n + 1, LT_METAL_TIMEOUT);
    scenario();
    b->streams.device_synchronize(b, 0);
    fake_metal_fail_commands(0, LT_METAL_OK);
    lost = lt_mps_is_lost(0);
    if (lost) CHECK_CONTAINS(lt_error(), "cannot use \"mps\" anymore");
    end();
    lt_mps_forget_lost(0);
  }
  CHECK(n > 2 && n < 100);
}

static void the_message_names_the_kernels(void) {
  begin(256 * MiB);
  char *x = get(1000, NULL);
  fake_metal_hold(true);
  lt_user_op_set((lt_UserOp){"relu", true});
  CHECK(zero(x, 1, NULL)); /* a batch of its own */
  for (int i = 0; i < 6; i++) CHECK(launch_add(x, 1, 1, 1));
  lt_user_op_set((lt_UserOp){NULL, false});
  fake_metal_fail_commands(2, LT_METAL_PAGE_FAULT);
  fake_metal_hold(false);
  CHECK(!b->streams.synchronize(main_stream()));
  CHECK_CONTAINS(lt_error(), "add_one (of relu_), add_one (of relu_), add_one (of relu_), add_one "
                             "(of relu_), or one of 2 before");
  CHECK_CONTAINS(lt_error(), "hint: LUTRA_MPS_BLOCKING=1");
  put(x);
  end();
  lt_mps_forget_lost(0);
}

/* ---- the allocator --------------------------------------------------------------------------- */

/* Random allocations, uses on several streams, and frees: the memory of a tensor is not reused
 * while work that was queued before its release still uses it. */
static void random_programs_keep_their_memory(void) {
  enum { BLOCKS = 40 };
  struct {
    char *at;
    size_t size;
    int tag;
    lt_Stream *stream;
  } block[BLOCKS] = {{NULL, 0, 0, NULL}};
  begin(512 * MiB);
  lt_Stream *stream[STREAMS] = {main_stream()};
  for (int i = 1; i < STREAMS; i++) stream[i] = b->streams.create(b, 0, 0);
  for (int step = 0; step < 6000; step++) {
    int i = (int)draw(BLOCKS);
    unsigned char ends[2];
    lt_Stream *other = stream[draw(STREAMS)];
    if (draw(40) == 0) fake_metal_hold(true);
    if (draw(10) == 0) fake_metal_hold(false);
    if (!block[i].at) {
      size_t n = draw(3) ? 1 + draw(5000) : 1 + draw(1 << 21);
      block[i].at = get(n, other);
      block[i].size = n;
      block[i].tag = (int)draw(256);
      block[i].stream = other;
      CHECK(block[i].at && fill(block[i].at, 1, block[i].tag, other) &&
            fill(block[i].at + n - 1, 1, block[i].tag, other));
    } else if (draw(3) == 0) {
      fake_metal_hold(false);
      CHECK(receive(&ends[0], block[i].at, 1, block[i].stream) &&
            receive(&ends[1], block[i].at + block[i].size - 1, 1, block[i].stream));
      CHECK(ends[0] == block[i].tag && ends[1] == block[i].tag);
    } else if (draw(2) == 0) { /* use it on another stream */
      lt_Storage storage = {.data = block[i].at, .nbytes = block[i].size, .device = mps};
      lt_Event *e = b->streams.event_create(b, 0, false);
      CHECK(b->streams.event_record(e, block[i].stream) && b->streams.wait_event(other, e));
      CHECK(fill(block[i].at, 1, block[i].tag, other) && b->streams.event_record(e, other) &&
            b->streams.wait_event(block[i].stream, e));
      b->streams.event_destroy(e);
      CHECK(b->memory.record_stream(&storage, other));
    } else {
      put(block[i].at);
      block[i].at = NULL;
    }
  }
  fake_metal_hold(false);
  for (int i = 0; i < BLOCKS; i++)
    if (block[i].at) put(block[i].at);
  for (int i = 1; i < STREAMS; i++) b->streams.destroy(stream[i]);
  end();
}

int main(void) {
  fake_metal_kernel("slow", slow);
  fake_metal_kernel("add_one", add_one);
  RUN(commands_are_collected_while_the_device_works);
  RUN(open_commands_are_committed_when_the_device_is_idle);
  RUN(queries_commit_what_they_ask_for);
  RUN(events_measure_time);
  RUN(streams_wait_for_events);
  RUN(dependent_work_is_ordered_and_never_deadlocks);
  RUN(streams_reuse_queues);
  RUN(threads_use_streams_at_once);
  RUN(addresses_are_found);
  RUN(memory_is_limited_to_the_recommended_size);
  RUN(temporaries_reuse_memory);
  RUN(shared_memory_is_copied);
  RUN(private_memory_is_copied);
  RUN(a_copy_has_read_its_source_at_the_return);
  RUN(staging_memory_is_limited_and_released);
  RUN(launches_are_checked);
  RUN(user_kernels_are_launched);
  RUN(every_call_may_be_out_of_memory);
  RUN(every_call_may_fail);
  RUN(a_failed_command_buffer_loses_the_device);
  RUN(every_command_buffer_may_fail);
  RUN(the_message_names_the_kernels);
  RUN(random_programs_keep_their_memory);
  return check_end();
}
