/* test_accel.c: what all accelerators share besides their allocator (test_allocator.c):
 * initialization, the current device and stream of a thread, streams, events, pinned memory,
 * pending copies, the steps of an allocation that fails and its message, and the end of the
 * program. */
#include "opids.h"
#include "accel/accel.h"
#include "check.h"
#include "fake_driver.h"

#include <pthread.h>

#define MiB ((size_t)1 << 20)

/* Core kernels, which no test here runs. */
static bool no_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                    lt_Stream *stream, bool non_blocking) {
  (void)to, (void)target, (void)from, (void)source, (void)nbytes, (void)stream, (void)non_blocking;
  return lt_error_set("fake: cannot copy");
}
static bool no_fill(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  (void)index, (void)memory, (void)nbytes, (void)stream;
  return lt_error_set("fake: cannot fill");
}
static bool no_loop(const lt_Loop *loop) {
  (void)loop;
  return lt_error_set("fake: cannot calculate");
}
static bool no_kernel(lt_Call *call) {
  (void)call;
  return lt_error_set("fake: cannot calculate");
}
static const lt_KernelFn kernels[LT_OP_COUNT] = {[LT_OP_sum] = no_kernel,
                                                 [LT_OP_mm] = no_kernel,
                                                 [LT_OP_gather] = no_kernel,
                                                 [LT_OP__scatter] = no_kernel};

static lt_Backend fake = {.abi = LT_BACKEND_ABI,
                          .name = "fake",
                          .numbered = true,
                          .asynchronous = true,
                          .has_data = true,
                          .memory.copy = no_copy,
                          .memory.fill_zero = no_fill,
                          .kernels.elementwise = no_loop,
                          .kernels.table = kernels};
static int type = -1; /* in the device table */

static void begin(size_t capacity) {
  fake_reset(capacity);
  CHECK(lt_accel_attach(&fake, &fake_driver));
  if (type < 0) type = lt_device_register(&fake);
  CHECK(type >= 0);
}

static void end(void) {
  lt_accel_detach(&fake);
  CHECK_STR(fake_error(), NULL);
  CHECK_INT(fake_used(0), 0);
  CHECK_INT(fake_used(1), 0);
  CHECK_INT(fake_host_used(), 0);
  CHECK_INT(fake_events_alive(), 0);
}

static lt_Device device(int index) { return (lt_Device){(uint8_t)type, (uint8_t)index}; }
static lt_Stream *main_stream(int index) { return fake.streams.get_default(&fake, index); }
/* Work for one step. */
static uint64_t work_memory[2];
static void busy(lt_Stream *s) { fake_write(s, work_memory, sizeof work_memory, 1); }

/* ---- initialization -------------------------------------------------------------------------- */

static void devices_are_initialized_when_used(void) {
  begin(64 * MiB);
  lt_MemoryStats s;
  lt_Device d;
  CHECK_INT(lt_device_count(type, NULL, 0), 2);
  CHECK(lt_device_parse("fake", &d) && d.index == 0);
  CHECK(main_stream(1) && fake.streams.current(&fake, 1) == main_stream(1));
  CHECK(fake.memory.stats(&fake, 1, &s) && s.num_device_alloc == 0);
  CHECK(fake.memory.release(&fake, 1) && fake.streams.device_synchronize(&fake, 1));
  CHECK(fake.streams.query(main_stream(1)) && fake.streams.synchronize(main_stream(1)));
  CHECK_INT(fake_initialized(1), 0);
  CHECK(!lt_accel_is_ready(&fake, 1));
  void *p = fake.memory.alloc(&fake, 1, 100, NULL), *q = fake.memory.alloc(&fake, 1, 100, NULL);
  CHECK(p && q && lt_accel_is_ready(&fake, 1) && !lt_accel_is_ready(&fake, 0));
  CHECK_INT(fake_initialized(1), 1);
  CHECK_INT(fake_initialized(0), 0);
  fake.memory.free(&fake, 1, p, 100, NULL);
  fake.memory.free(&fake, 1, q, 100, NULL);
  end();
}

static void *initialize_device(void *unused) {
  (void)unused;
  for (int i = 0; i < FAKE_DEVICES; i++) CHECK(lt_accel_ready(&fake, i));
  return NULL;
}

static void devices_are_initialized_once(void) {
  pthread_t thread[4];
  begin(64 * MiB);
  for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, initialize_device, NULL);
  for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < FAKE_DEVICES; i++) CHECK_INT(fake_initialized(i), 1);
  end();
}

static void missing_devices_are_refused(void) {
  begin(64 * MiB);
  CHECK(!fake.memory.alloc(&fake, 2, 100, NULL));
  CHECK_CONTAINS(lt_error(), "fake:2");
  CHECK(!lt_error_is_memory());
  CHECK(!fake.streams.create(&fake, 99, 0) && !fake.streams.event_create(&fake, -1, false));
  CHECK(!fake.index_set_current(&fake, 2));
  CHECK_CONTAINS(lt_error(), "fake:2");
  CHECK(!fake.streams.set_current(&fake, 99, NULL));
  CHECK(!fake.streams.current(&fake, 99) && !fake.streams.get_default(&fake, -1));
  int64_t free_bytes, total;
  CHECK(!fake.memory.info(&fake, 5, &free_bytes, &total));
  CHECK(fake.memory.info(&fake, 1, &free_bytes, &total));
  CHECK_INT(total, 64 * MiB);
  fake_fail_all(true);
  CHECK(!fake.memory.info(&fake, 1, &free_bytes, &total));
  CHECK(!lt_accel_ready(&fake, 0)); /* may be tried again */
  fake_fail_all(false);
  CHECK(lt_accel_ready(&fake, 0));
  end();
}

/* ---- current device and stream --------------------------------------------------------------- */

static lt_Stream *side;

static void *use_other_thread(void *unused) {
  (void)unused;
  CHECK_INT(fake.index_current(&fake), 0);
  CHECK(fake.streams.current(&fake, 0) == main_stream(0));
  CHECK(fake.index_set_current(&fake, 1));
  lt_Stream *own = fake.streams.create(&fake, 1, 0);
  CHECK(fake.streams.set_current(&fake, 1, own));
  CHECK(fake.streams.set_current(&fake, 0, side));
  fake.streams.destroy(own);
  CHECK(fake.streams.current(&fake, 1) == own); /* stays alive while it is current */
  CHECK_INT(fake_streams_alive(), 2);
  return NULL;
}

static void each_thread_has_its_own_current_stream(void) {
  pthread_t thread;
  begin(64 * MiB);
  lt_Device d;
  side = fake.streams.create(&fake, 0, 0);
  CHECK(fake.index_set_current(&fake, 1));
  CHECK(lt_device_parse("fake", &d) && d.index == 1);
  CHECK(fake.streams.set_current(&fake, 0, side));
  CHECK(fake.streams.current(&fake, 0) == side && fake.streams.current(&fake, 1) == main_stream(1));
  pthread_create(&thread, NULL, use_other_thread, NULL);
  pthread_join(thread, NULL);
  CHECK_INT(fake_streams_alive(), 1); /* the other thread's streams ended with it */
  CHECK_INT(fake.index_current(&fake), 1);
  CHECK(fake.streams.current(&fake, 0) == side);
  void *p = fake.memory.alloc(&fake, 0, 100, fake.streams.current(&fake, 0));
  fake.streams.destroy(side);
  CHECK_INT(fake_streams_alive(), 1);
  CHECK(fake.streams.set_current(&fake, 0, NULL));
  CHECK_INT(fake_streams_alive(), 0);
  CHECK(fake.streams.current(&fake, 0) == main_stream(0));
  fake.memory.free(&fake, 0, p, 100, side); /* its struct still exists */
  CHECK(fake.index_set_current(&fake, 0));
  end();
}

static void streams_of_other_devices_are_refused(void) {
  begin(64 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 1, 0);
  CHECK(!fake.streams.set_current(&fake, 0, s));
  CHECK_STR(lt_error(), "set_stream: expected a Stream of \"fake:0\", got one of \"fake:1\"");
  CHECK(!fake.memory.alloc(&fake, 0, 100, s));
  CHECK_CONTAINS(lt_error(), "the stream is on \"fake:1\"");
  fake.streams.destroy(s);
  fake.streams.destroy(main_stream(0)); /* is never destroyed */
  CHECK(fake.streams.query(main_stream(0)));
  end();
}

/* ---- streams and events ---------------------------------------------------------------------- */

static void streams_are_independent(void) {
  begin(64 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, -5), *t = fake.streams.create(&fake, 0, 3);
  CHECK_INT(fake.streams.priority(s), -1); /* clamped by the driver */
  CHECK_INT(fake.streams.priority(t), 0);
  CHECK(fake.streams.native(s) && fake.streams.native(s) != fake.streams.native(t));
  CHECK(!fake.streams.native(main_stream(0)) && !lt_accel_native(NULL));
  busy(s);
  busy(t);
  CHECK(!fake.streams.query(s) && fake.streams.query(main_stream(0)));
  CHECK(fake.streams.synchronize(s) && fake.streams.query(s) && !fake.streams.query(t));
  CHECK(fake.streams.device_synchronize(&fake, 0) && fake.streams.query(t));
  fake_fail_all(true);
  CHECK(fake.streams.query(s)); /* otherwise a caller would poll forever */
  CHECK_CONTAINS(lt_error(), "the driver failed");
  CHECK(!fake.streams.synchronize(s) && !fake.streams.create(&fake, 0, 0));
  fake_fail_all(false);
  fake.streams.destroy(s);
  fake.streams.destroy(t);
  end();
}

static void events_mark_a_point_in_a_stream(void) {
  begin(64 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  lt_Event *e = fake.streams.event_create(&fake, 0, false);
  CHECK(fake.streams.event_query(e) && fake.streams.event_synchronize(e)); /* never recorded */
  CHECK(fake.streams.wait_event(s, e) && fake.streams.query(s));
  busy(s);
  CHECK(fake.streams.event_record(e, s) && !fake.streams.event_query(e));
  busy(s);
  CHECK(fake.streams.event_synchronize(e) && fake.streams.event_query(e) && !fake.streams.query(s));
  CHECK(fake.streams.event_record(e, s) && !fake.streams.event_query(e));
  CHECK(fake.streams.wait_event(main_stream(0), e));
  busy(main_stream(0));
  CHECK(!fake_step(0, 0)); /* waits for the side stream */
  fake_finish(0);
  CHECK(fake.streams.event_query(e));
  fake.streams.event_destroy(e);
  fake.streams.event_destroy(NULL);
  fake.streams.destroy(s);
  end();
}

static void events_belong_to_a_device(void) {
  begin(64 * MiB);
  lt_Event *e = fake.streams.event_create(&fake, 0, false);
  CHECK(!fake.streams.event_record(e, main_stream(1)));
  CHECK_STR(lt_error(),
            "record: expected a Stream of \"fake:0\", where the event is, got one of \"fake:1\"");
  busy(main_stream(0));
  CHECK(fake.streams.event_record(e, main_stream(0)));
  CHECK(fake.streams.wait_event(main_stream(1), e)); /* streams of other devices may wait for it */
  CHECK(!fake_step(1, 0));
  fake_finish(0);
  CHECK(fake_step(1, 0));
  fake.streams.event_destroy(e);
  end();
}

static void elapsed_time_requires_both_events(void) {
  begin(64 * MiB);
  lt_Event *a = fake.streams.event_create(&fake, 0, true),
           *b = fake.streams.event_create(&fake, 0, true);
  lt_Event *plain = fake.streams.event_create(&fake, 0, false),
           *far = fake.streams.event_create(&fake, 1, true);
  double ms = -1;
  CHECK(!fake.streams.event_elapsed(a, b, &ms));
  CHECK_CONTAINS(lt_error(), "the time of the first event: it was never recorded");
  CHECK(fake.streams.event_record(a, NULL));
  CHECK(!fake.streams.event_elapsed(a, b, &ms));
  CHECK_CONTAINS(lt_error(), "the time of the first event: it has not completed");
  busy(main_stream(0)); /* the fake's work takes half a millisecond for each piece */
  busy(main_stream(0));
  fake_finish(0);
  CHECK(!fake.streams.event_elapsed(a, b, &ms));
  CHECK_CONTAINS(lt_error(), "the time of the second event: it was never recorded");
  CHECK(fake.streams.event_record(b, NULL) && fake.streams.event_synchronize(b));
  CHECK(fake.streams.event_elapsed(a, b, &ms));
  CHECK_NEAR(ms, 1.5, 0);
  CHECK(!fake.streams.event_elapsed(a, plain, &ms));
  CHECK_CONTAINS(lt_error(), "the time of the second event: it was created without timing");
  CHECK(!fake.streams.event_elapsed(a, far, &ms));
  CHECK_CONTAINS(lt_error(), "fake:1");
  lt_Event *all[] = {a, b, plain, far};
  for (int i = 0; i < 4; i++) fake.streams.event_destroy(all[i]);
  end();
}

static void native_events_are_reused(void) {
  begin(64 * MiB);
  for (int i = 0; i < 1000; i++) {
    lt_Event *e = fake.streams.event_create(&fake, 0, false);
    CHECK(fake.streams.event_record(e, NULL));
    fake.streams.event_destroy(e);
  }
  CHECK_INT(fake_events_alive(), 1);
  end();
}

/* ---- pinned memory --------------------------------------------------------------------------- */

static void pinned_memory_is_cached(void) {
  begin(64 * MiB);
  void *p = fake.memory.host_alloc(&fake, 1000), *q = fake.memory.host_alloc(&fake, 5000);
  CHECK_INT(fake_host_used(), 1024 + 8192);
  fake.memory.host_free(&fake, p, 1000, NULL);
  fake.memory.host_free(&fake, q, 5000, NULL);
  CHECK(fake.memory.host_alloc(&fake, 900) == p);
  CHECK(fake.memory.host_alloc(&fake, 900) == q); /* the smallest block that is large enough, as a
                                                   * whole */
  CHECK_INT(fake_host_calls(), 2);
  fake.memory.host_free(&fake, p, 900, NULL);
  fake.memory.host_free(&fake, q, 900, NULL);
  CHECK(fake.memory.host_release(&fake));
  CHECK_INT(fake_host_used(), 0);
  CHECK(!fake.memory.host_alloc(&fake, SIZE_MAX) && lt_error_is_memory());
  end();
}

static lt_Event *record_event(lt_Stream *s) {
  lt_Event *e = fake.streams.event_create(&fake, s->index, false);
  CHECK(e && fake.streams.event_record(e, s));
  return e;
}

static void pinned_memory_is_reused_after_its_copies(void) {
  begin(4096);
  void *p = fake.memory.host_alloc(&fake, 4096);
  fake_write(main_stream(0), p, 4096, 1);
  fake.memory.host_free(&fake, p, 4096, record_event(main_stream(0)));
  CHECK(fake.memory.host_release(&fake)); /* not free yet */
  CHECK_INT(fake_host_used(), 4096);
  void *q = fake.memory.host_alloc(&fake, 4096); /* no other memory is left: blocks until the copy
                                                  * is done */
  CHECK(q != NULL);
  CHECK_INT(fake_queued(0), 0);
  CHECK_INT(fake_host_calls(), 3);
  CHECK(!fake.memory.host_alloc(&fake, 100) && lt_error_is_memory());
  fake_write(main_stream(0), q, 4096, 1);
  fake.memory.host_free(&fake, q, 4096, record_event(main_stream(0)));
  fake_finish(0);
  CHECK(fake.memory.host_alloc(&fake, 100) == q);
  fake.memory.host_free(&fake, q, 100, NULL);
  end();
}

/* ---- pending copies -------------------------------------------------------------------------- */

static void storages_synchronize_with_their_copies(void) {
  begin(64 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  lt_Storage *p = lt_storage_new_pinned(type, 1000);
  REQUIRE(p != NULL);
  CHECK(p->pinned && p->device.type == LT_DEVICE_cpu);
  lt_Tensor *t = lt_tensor_on(p, LT_uint8, 0, 1, (int64_t[]){1000}, (int64_t[]){1});
  char *half = (char *)p->data + 504;
  fake_write(s, p->data, 496, 5);
  lt_storage_set_pending(p, s, true);
  fake_write(main_stream(0), half, 496, 6); /* a second copy on another stream */
  CHECK(fake.memory.record_stream(p, main_stream(0)));
  CHECK(p->pending && fake_queued(0) > 0);
  uint64_t tag;
  memcpy(&tag, lt_tensor_data(t), sizeof tag);
  CHECK(tag == 5 && !p->pending);
  memcpy(&tag, half, sizeof tag);
  CHECK(tag == 6);
  CHECK_INT(fake_queued(0), 0);
  fake_write(main_stream(1), p->data, 496, 7);
  lt_storage_set_pending(p, main_stream(1), true);
  fake_write(main_stream(0), half, 496, 8);
  lt_storage_set_pending(p, main_stream(0), true); /* of another device */
  lt_storage_synchronize(p);
  CHECK_INT(fake_queued(0) + fake_queued(1), 0);
  fake_check(main_stream(0), half, 496, 8);
  lt_storage_set_pending(p, main_stream(0), true);
  lt_release(t);
  lt_storage_release(p); /* the block stays in use; the host does not block */
  CHECK_INT(fake_queued(0), 2);
  fake.streams.destroy(s);
  fake_finish(0);
  end();
}

static void copies_of_one_storage_are_ordered_where_one_writes(void) {
  begin(64 * MiB);
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  lt_Storage *p = lt_storage_new_pinned(type, 64);
  lt_storage_wait_pending(p, s, true); /* nothing is pending */
  CHECK_INT(fake_queued(0), 0);
  busy(s);
  lt_storage_set_pending(p, s, false);
  int before = fake_queued(0);
  lt_storage_wait_pending(p, main_stream(0), false);
  CHECK_INT(fake_queued(0), before); /* two copies that read */
  lt_storage_wait_pending(p, main_stream(0), true);
  CHECK_INT(fake_queued(0), before + 1);
  lt_storage_synchronize(p);
  fake_finish(0);
  fake_write(s, p->data, 64, 3);
  lt_storage_set_pending(p, s, true);
  CHECK(p->pending_writes);
  lt_storage_synchronize(p);
  CHECK(!p->pending_writes); /* the completed copy no longer writes */
  lt_storage_set_pending(p, s, true);
  lt_storage_set_pending(p, s, false); /* the first copy stays pending */
  before = fake_queued(0);
  lt_storage_wait_pending(p, main_stream(0), false);
  CHECK_INT(fake_queued(0), before + 1);
  CHECK(p->pending); /* the host did not block here */
  lt_storage_release(p);
  fake_finish(0);
  fake.streams.destroy(s);
  end();
}

static void storages_synchronize_at_once_without_an_event(void) {
  begin(64 * MiB);
  lt_Storage *p = lt_storage_new_pinned(type, 64);
  lt_storage_synchronize(p);
  busy(main_stream(0));
  lt_Event *e = record_event(main_stream(0));
  fake_fail_all(true);
  lt_storage_set_pending(p, main_stream(0), true);
  fake_fail_all(false);
  CHECK(!p->pending);
  CHECK_INT(fake_queued(0), 0); /* synchronized at once */
  fake.streams.event_destroy(e);
  lt_storage_release(p);
  lt_Storage *empty = lt_storage_new_pinned(type, 0);
  CHECK(empty && !empty->data && empty->pinned);
  lt_storage_release(empty);
  CHECK(!lt_storage_new_pinned(LT_DEVICE_cpu, 10));
  CHECK_CONTAINS(lt_error(), "\"cpu\": it has no pinned memory");
  end();
}

static void pageable_memory_outlives_its_copy(void) {
  begin(64 * MiB);
  lt_Storage *p = lt_storage_new(lt_cpu(), 4096);
  fake_write(main_stream(0), p->data, 4096, 5);
  lt_storage_set_pending(p, main_stream(0), true);
  lt_storage_release(p);
  CHECK_INT(fake_queued(0), 0);
  end();
}

static lt_Tensor *shared;
static void *reader(void *unused) {
  (void)unused;
  uint64_t tag;
  memcpy(&tag, lt_tensor_data(shared), sizeof tag);
  CHECK(tag == 9);
  return NULL;
}

static void many_threads_synchronize_with_one_copy(void) {
  begin(64 * MiB);
  lt_Storage *p = lt_storage_new_pinned(type, 64);
  shared = lt_tensor_on(p, LT_uint8, 0, 1, (int64_t[]){64}, (int64_t[]){1});
  for (int round = 0; round < 50; round++) {
    pthread_t thread[3];
    fake_write(main_stream(0), p->data, 64, 8);
    fake_write(main_stream(0), p->data, 64, 9);
    lt_storage_set_pending(p, main_stream(0), true);
    for (int i = 0; i < 3; i++) pthread_create(&thread[i], NULL, reader, NULL);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    CHECK(!p->pending);
  }
  lt_release(shared);
  lt_storage_release(p);
  end();
}

/* ---- the steps of an allocation that fails --------------------------------------------------- */

static lt_Tensor *garbage[10]; /* tensors that a collector would free */
static int collections;

static bool collect(void *context, size_t expected) {
  bool any = false;
  (void)context;
  (void)expected;
  collections++;
  lt_error_set("a finalizer failed"); /* must not replace the reason */
  for (int i = 0; i < 10; i++) {
    any |= garbage[i] != NULL;
    lt_release(garbage[i]);
    garbage[i] = NULL;
  }
  return any;
}

static void where(void *context, char *text, size_t size) {
  snprintf(text, size, "%s:%d", (const char *)context, 12);
}

static lt_Tensor *tensor(lt_Dtype dtype, int64_t rows, int64_t columns) {
  return lt_empty(dtype, device(0), 2, (int64_t[]){rows, columns});
}

static void the_collector_frees_memory(void) {
  begin(20 * MiB);
  lt_memory_on_pressure(collect, NULL);
  collections = 0;
  lt_error_set("an op before");
  for (int i = 0; i < 200; i++) {
    lt_Tensor *t = tensor(LT_uint8, 1024, 2048);
    REQUIRE(t != NULL);
    int at = 0;
    while (at < 9 && garbage[at]) at++;
    REQUIRE(!garbage[at]); /* ten fit; for the eleventh all of them were collected */
    garbage[at] = t;
  }
  CHECK_INT(collections, 19);
  CHECK_STR(lt_error(), "an op before");
  collect(NULL, 0);
  lt_memory_on_pressure(NULL, NULL);
  end();
}

static void cached_memory_is_freed_next(void) {
  begin(24 * MiB);
  lt_memory_on_pressure(collect, NULL);
  collections = 0;
  lt_release(tensor(LT_uint8, 1024, 5 * 1024)); /* 20 MiB stay cached */
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  lt_Tensor *t = tensor(LT_uint8, 1, 1000);
  fake_write(s, t->storage->data, 1000, 1);
  CHECK(fake.memory.record_stream(t->storage, s));
  lt_release(t); /* pending */
  lt_error_set("an op before");
  t = tensor(LT_uint8, 1024, 22 * 1024);
  CHECK(t != NULL);
  CHECK_INT(collections, 1); /* it freed nothing */
  CHECK_INT(fake_queued(0), 0);
  CHECK_STR(lt_error(), "an op before");
  lt_MemoryStats stats;
  CHECK(fake.memory.stats(&fake, 0, &stats));
  CHECK_INT(stats.num_alloc_retries, 1);
  CHECK_INT(stats.num_ooms, 0);
  lt_release(t);
  fake.streams.destroy(s);
  lt_memory_on_pressure(NULL, NULL);
  end();
}

static void other_failures_are_reported_at_once(void) {
  begin(24 * MiB);
  lt_memory_on_pressure(collect, NULL);
  collections = 0;
  fake_fail_memory(1, true);
  CHECK(!tensor(LT_uint8, 10, 10));
  CHECK(!lt_error_is_memory());
  CHECK_STR(lt_error(), "fake: the driver failed");
  CHECK_INT(collections, 0);
  fake_fail_memory(1, false);
  garbage[0] = tensor(LT_uint8, 10, 10);
  CHECK(garbage[0] != NULL); /* nothing was collected, but the retry succeeded */
  CHECK_INT(collections, 1);
  lt_memory_on_pressure(NULL, NULL);
  collect(NULL, 0);
  end();
}

static void the_message_of_out_of_memory(void) {
  static char file[] = "train.lua";
  begin(32 * MiB);
  lt_memory_on_pressure(collect, NULL);
  lt_memory_on_where(where, file);
  lt_Tensor *keep[8];
  for (int i = 0; i < 7; i++) keep[i] = tensor(i % 2 ? LT_float16 : LT_float32, 256, 256 + i);
  keep[7] = tensor(LT_int64, 2, 2);
  garbage[0] = tensor(LT_float32, 1024, 1024);
  garbage[1] = NULL;
  lt_Tensor *t = tensor(LT_float64, 2048, 4096);
  CHECK(!t && lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "out of memory on \"fake:0\": cannot allocate 64.00 MiB\n");
  CHECK_CONTAINS(lt_error(), "of the device's 32.00 MiB are free");
  CHECK_CONTAINS(lt_error(), "are cached, the largest free block is ");
  CHECK_CONTAINS(lt_error(), "fragmentation ");
  CHECK_CONTAINS(lt_error(), "the garbage collector freed 4.00 MiB before this error");
  CHECK_CONTAINS(lt_error(), "\n    262.00 KiB  float32 {256, 262}  allocated at train.lua:12");
  CHECK_CONTAINS(lt_error(), "float32 {256, 260}");
  CHECK_CONTAINS(lt_error(), "float16 {256, 261}");
  CHECK(!strstr(lt_error(), "int64") && !strstr(lt_error(), "{256, 257}")); /* only the five largest
                                                                             * are listed */
  CHECK(strlen(lt_error()) < 1200);
  lt_MemoryStats s;
  CHECK(fake.memory.stats(&fake, 0, &s));
  CHECK_INT(s.num_ooms, 1);
  for (int i = 0; i < 8; i++) lt_release(keep[i]);
  lt_memory_on_where(NULL, NULL);
  lt_memory_on_pressure(NULL, NULL);
  end();
}

/* The message fits also with the longest shapes and lines. */
static void long_messages_are_truncated(void) {
  static char file[] = "a/very/long/way/to/a/file/whose/name/goes/on/and/on/and/on/and/on.lua";
  int64_t ones[LT_MAX_DIMS];
  char text[1500];
  begin(64 * MiB);
  lt_memory_on_where(where, file);
  for (int i = 0; i < LT_MAX_DIMS; i++) ones[i] = 1;
  ones[0] = 1234567;
  lt_Tensor *t[8];
  for (int i = 0; i < 8; i++) t[i] = lt_empty(LT_float32, device(0), LT_MAX_DIMS, ones);
  fake.memory.report(&fake, 0, SIZE_MAX / 2, INT64_MAX, text, sizeof text);
  CHECK(strlen(text) < 1250);
  fake.memory.report(&fake, 0, 1, 0, text, 40);
  CHECK_INT(strlen(text), 39);
  for (int i = 0; i < 8; i++) lt_release(t[i]);
  lt_memory_on_where(NULL, NULL);
  end();
}

/* ---- snapshots ------------------------------------------------------------------------------- */

typedef struct BlockCount {
  int blocks[3];
  size_t bytes;
  lt_MemoryBlock big;
  char where[64];
} BlockCount;

static void count_block(void *context, const lt_MemoryBlock *b) {
  BlockCount *s = context;
  s->blocks[b->state]++;
  s->bytes += b->size;
  if (b->state == LT_BLOCK_ACTIVE && !b->small) {
    s->big = *b;
    snprintf(s->where, sizeof s->where, "%s", b->where);
  } else {
    CHECK_STR(b->where, "");
  }
  lt_MemoryStats stats; /* may call back */
  CHECK(fake.memory.stats(&fake, 0, &stats));
}

static void snapshots_show_every_block(void) {
  static char file[] = "x.lua";
  begin(64 * MiB);
  BlockCount seen = {0};
  CHECK(fake.memory.each(&fake, 0, count_block, &seen)); /* not initialized: there are no blocks */
  lt_memory_on_where(where, file);
  lt_Tensor *a = tensor(LT_float32, 3, 5), *b = tensor(LT_float16, 1024, 2048);
  CHECK(fake.memory.each(&fake, 0, count_block, &seen));
  CHECK_INT(seen.blocks[LT_BLOCK_ACTIVE], 2);
  CHECK_INT(seen.blocks[LT_BLOCK_FREE], 2);
  CHECK_INT(seen.bytes, 22 * MiB);
  CHECK(seen.big.address == b->storage->data && seen.big.segment == b->storage->data);
  CHECK_INT(seen.big.size, 4 * MiB);
  CHECK_INT(seen.big.segment_size, 20 * MiB);
  CHECK_INT(seen.big.requested, 4 * MiB);
  CHECK_INT(seen.big.dtype, LT_float16);
  CHECK(seen.big.ndim == 2 && seen.big.shape[0] == 1024 && seen.big.shape[1] == 2048);
  CHECK_STR(seen.where, "x.lua:12");
  CHECK(seen.big.stream == main_stream(0));
  lt_release(a);
  lt_release(b);
  lt_memory_on_where(NULL, NULL);
  end();
}

/* ---- shutdown -------------------------------------------------------------------------------- */

static void frees_after_shutdown_do_nothing(void) {
  begin(64 * MiB);
  lt_Tensor *t = tensor(LT_float32, 3, 5);
  lt_Storage *p = lt_storage_new_pinned(type, 64);
  lt_Stream *s = fake.streams.create(&fake, 0, 0);
  lt_Event *e = fake.streams.event_create(&fake, 0, true),
           *f = fake.streams.event_create(&fake, 0, false);
  lt_storage_set_pending(p, main_stream(0), true);
  lt_accel_shutdown(&fake);
  fake_kill();
  CHECK(fake.streams.event_record(f, s) == false && fake.streams.event_query(f));
  CHECK(fake.streams.query(s) && fake.streams.synchronize(s) &&
        fake.streams.device_synchronize(&fake, 0));
  lt_release(t);
  lt_storage_synchronize(p);
  lt_storage_release(p);
  fake.streams.event_destroy(e);
  fake.streams.event_destroy(f);
  fake.streams.destroy(s);
  CHECK(!tensor(LT_float32, 3, 5));
  CHECK_CONTAINS(lt_error(), "the program is ending");
  CHECK(fake.memory.release(&fake, 0) && fake.memory.host_release(&fake));
  lt_accel_shutdown(&fake); /* may be called twice */
  lt_accel_detach(&fake);
  lt_accel_detach(&fake);
  CHECK_STR(fake_error(), NULL);
  fake_reset(0);
}

int main(void) {
  RUN(devices_are_initialized_when_used);
  RUN(devices_are_initialized_once);
  RUN(missing_devices_are_refused);
  RUN(each_thread_has_its_own_current_stream);
  RUN(streams_of_other_devices_are_refused);
  RUN(streams_are_independent);
  RUN(events_mark_a_point_in_a_stream);
  RUN(events_belong_to_a_device);
  RUN(elapsed_time_requires_both_events);
  RUN(native_events_are_reused);
  RUN(pinned_memory_is_cached);
  RUN(pinned_memory_is_reused_after_its_copies);
  RUN(storages_synchronize_with_their_copies);
  RUN(copies_of_one_storage_are_ordered_where_one_writes);
  RUN(storages_synchronize_at_once_without_an_event);
  RUN(pageable_memory_outlives_its_copy);
  RUN(many_threads_synchronize_with_one_copy);
  RUN(the_collector_frees_memory);
  RUN(cached_memory_is_freed_next);
  RUN(other_failures_are_reported_at_once);
  RUN(the_message_of_out_of_memory);
  RUN(long_messages_are_truncated);
  RUN(snapshots_show_every_block);
  RUN(frees_after_shutdown_do_nothing);
  return check_end();
}
