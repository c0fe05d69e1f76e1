/* test_emulated_metal.cpp: the emulated Metal: devices, memory, kernels, queues, events and
 * errors. */
#include "metal_support.h"

#include <string>
#include <unistd.h>

static void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
static const size_t MIB = 1 << 20;

/* ---- devices and memory ---------------------------------------------------------------------- */

static void devices() {
  lt_MetalError error = {};
  lt_MetalDevice *first = lt_metal_device(0, &error), *second = lt_metal_device(1, &error);
  REQUIRE(first && second);
  CHECK(first != second);
  CHECK(lt_metal_device(0, &error) == first);
  CHECK_INT(error.status, LT_METAL_OK);
  CHECK(!lt_metal_device(2, &error));
  CHECK_INT(error.status, LT_METAL_OTHER);
  CHECK(error.text[0]);
  lt_MetalFacts facts;
  lt_metal_facts(first, &facts);
#ifndef LT_FAKE_METAL /* tests/apple/fake: metal.m does not know that it is emulated */
  CHECK(facts.emulated);
#endif
  CHECK(facts.unified);
  CHECK(strncmp(facts.name, "Emulated", 8) == 0);
  CHECK_INT(facts.recommended, 64 * MIB);
  CHECK(facts.total > facts.recommended);
  CHECK_INT(facts.simd_width, 32);
  CHECK_INT(facts.threadgroup, 32768);
}

static void shared_memory_has_two_addresses() {
  Array<float> x(1000);
  REQUIRE(x.buffer->contents);
  CHECK((uint64_t)(uintptr_t)x.buffer->contents != x.buffer->address);
  CHECK_INT(x.buffer->address % 512, 0);
  CHECK_INT(x.buffer->size, 4000);
  for (int i = 0; i < 1000; i++) x[i] = (float)i;
  TestQueue queue;
  const float one = 1;
  CHECK_INT(run(queue, "add", {in(x.buffer), value(one)}, 1000).error.status, LT_METAL_OK);
  CHECK_NEAR(x[0], 1, 0);
  CHECK_NEAR(x[999], 1000, 0);
}

static void private_memory() {
  Array<float> x(100, LT_METAL_PRIVATE), y(100);
  CHECK(!x.buffer->contents);
  TestQueue queue;
  lt_MetalCommands *c = queue.commands();
  dispatch(c, pipeline("number", 3), {in(x.buffer)}, 100);
  lt_metal_copy(c, y.buffer, 0, x.buffer, 0, 400);
  CHECK_INT(finish(c).error.status, LT_METAL_OK);
  CHECK_NEAR(y[99], 297, 0);
}

/* The caller sets the limit: allocations succeed beyond what is recommended, as on macOS. */
static void memory_is_limited() {
  lt_MetalError error = {};
  lt_MetalFacts before, after;
  lt_metal_facts(device(), &before);
  CHECK(!lt_metal_buffer_new(device(), 65 * MIB, LT_METAL_PRIVATE, &error));
  CHECK_INT(error.status, LT_METAL_NO_MEMORY);
  CHECK(!lt_metal_buffer_new(device(), SIZE_MAX, LT_METAL_SHARED, &error));
  {
    Array<char> most(64 * MIB, LT_METAL_PRIVATE), more(16 * MIB);
    lt_metal_facts(device(), &after);
    CHECK_INT(after.allocated - before.allocated, 80 * MIB);
    CHECK(!lt_metal_buffer_new(device(), 16 * MIB, LT_METAL_SHARED, &error));
    CHECK_INT(error.status, LT_METAL_NO_MEMORY);
  }
  lt_metal_facts(device(), &after);
  CHECK_INT(after.allocated, before.allocated);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Only the threads of the grid run, also where the last group is not full. */
static void groups_at_the_edge() {
  Array<float> x(128);
  for (int i = 0; i < 128; i++) x[i] = -1;
  TestQueue queue;
  CHECK_INT(run(queue, "number", {in(x.buffer)}, 100).error.status, LT_METAL_OK);
  CHECK_NEAR(x[99], 99, 0);
  CHECK_NEAR(x[100], -1, 0);
}

static void threadgroup_memory() {
  Array<int> x(100);
  TestQueue queue;
  lt_MetalCommands *c = queue.commands();
  dispatch(c, pipeline("flip"), {in(x.buffer)}, 100, 64, 256);
  CHECK_INT(finish(c).error.status, LT_METAL_OK);
  CHECK_INT(x[0], 63);
  CHECK_INT(x[63], 0);
  CHECK_INT(x[64], 99); /* the last group has 36 threads */
  CHECK_INT(x[99], 64);
}

static void simd_groups() {
  Array<float> x(64), sums(2);
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  TestQueue queue;
  CHECK_INT(run(queue, "total", {in(x.buffer), in(sums.buffer)}, 64).error.status, LT_METAL_OK);
  CHECK_NEAR(sums[0], 496, 0);
  CHECK_NEAR(sums[1], 1520, 0);
}

static void function_constants() {
  Array<float> x(2), y(2);
  TestQueue queue;
  lt_MetalCommands *c = queue.commands();
  dispatch(c, pipeline("number", 5), {in(x.buffer)}, 2);
  dispatch(c, pipeline("number", -7), {in(y.buffer)}, 2);
  CHECK_INT(finish(c).error.status, LT_METAL_OK);
  CHECK_NEAR(x[1], 5, 0);
  CHECK_NEAR(y[1], -7, 0);
}

static void rejected_sources() {
  lt_MetalError error = {};
  char *log = nullptr;
  CHECK(!lt_metal_library_new(device(), "kernel void f( {", &log, &error));
  CHECK_INT(error.status, LT_METAL_REJECTED);
  CHECK(log && *log);
  free(log);
  error = {};
  CHECK(!lt_metal_pipeline_new(library(), "no_such_kernel", nullptr, 0, nullptr, &error));
  CHECK_INT(error.status, LT_METAL_REJECTED);
  CHECK_CONTAINS(error.text, "no_such_kernel");
  CHECK(!lt_metal_library_builtin(device(), "no_such_file", &error));
}

__attribute__((unused)) static void invalid_dispatches() {
  Array<float> x(10);
  TestQueue queue;
  lt_MetalPipeline *p = pipeline("number");
  lt_MetalCommands *c = queue.commands();
  dispatch(c, p, {in(x.buffer)}, 10, p->threads + 1);
  CHECK_INT(finish(c).error.status, LT_METAL_INVALID);
  c = queue.commands();
  dispatch(c, p, {in(x.buffer)}, 10, 32, 32768 + 16);
  CHECK_INT(finish(c).error.status, LT_METAL_INVALID);
  c = queue.commands();
  dispatch(c, p, {in(x.buffer, 40)}, 10);
  CHECK_INT(finish(c).error.status, LT_METAL_INVALID);
}

static void archives() {
  lt_MetalError error = {};
  std::string path = "/tmp/lutra-archive-" + std::to_string(getpid());
  for (int round = 0; round < 2; round++) {
    lt_MetalArchive *archive = lt_metal_archive_open(device(), path.c_str(), &error);
    REQUIRE(archive);
    CHECK(!lt_metal_archive_write(archive, path.c_str(), &error));
    CHECK_INT(error.status, LT_METAL_INVALID);
    const int32_t one = 1;
    CHECK(lt_metal_pipeline_new(library(), "number", &one, 1, archive, &error));
    CHECK(lt_metal_archive_write(archive, path.c_str(), &error) == (round == 0));
  }
  unlink(path.c_str());
}

/* ---- queues and events ----------------------------------------------------------------------- */

static void commands_run_in_order() {
  enum { N = 300 }; /* more than LT_METAL_IN_FLIGHT */
  Array<float> x(1);
  TestQueue queue;
  static std::vector<int> ended;
  static int numbers[N];
  ended.clear();
  lt_MetalCommands *c = queue.commands();
  lt_metal_fill(c, x.buffer, 0, 4, 0);
  CHECK_INT(finish(c).error.status, LT_METAL_OK);
  Completion last;
  for (int i = 0; i < N; i++) {
    const float v = (float)i;
    numbers[i] = i;
    c = queue.commands();
    dispatch(c, pipeline("add"), {in(x.buffer), value(v)});
    lt_metal_commit(
        c, [](void *n, const lt_MetalResult *) { ended.push_back(*(int *)n); }, &numbers[i]);
  }
  last.commit(queue.commands());
  CHECK_INT(last.wait().error.status, LT_METAL_OK);
  CHECK_NEAR(x[0], N * (N - 1) / 2, 0);
  CHECK_INT(ended.size(), N);
  for (size_t i = 0; i < ended.size(); i++) CHECK_INT(ended[i], i);
}

static void commands_run_later() {
  Array<float> x(1);
  x[0] = 1;
  TestQueue queue;
  TestEvent gate;
  const float two = 2;
  lt_MetalCommands *c = queue.commands();
  lt_metal_wait(c, gate.handle, 1);
  dispatch(c, pipeline("add"), {in(x.buffer), value(two)});
  Completion end;
  end.commit(c);
  pause_ms(20);
  CHECK(!end.is_done());
  CHECK_NEAR(x[0], 1, 0);
  lt_metal_event_set(gate.handle, 1);
  lt_MetalResult result = end.wait();
  CHECK_INT(result.error.status, LT_METAL_OK);
  CHECK_NEAR(x[0], 3, 0);
  CHECK(result.end - result.start > 0.015);
}

static void events_order_queues() {
  Array<float> x(1000, LT_METAL_PRIVATE), y(1000);
  TestQueue first, second;
  TestEvent ready, gate;
  lt_MetalCommands *c = first.commands();
  lt_metal_wait(c, gate.handle, 1);
  dispatch(c, pipeline("number"), {in(x.buffer)}, 1000);
  lt_metal_signal(c, ready.handle, 7);
  Completion written;
  written.commit(c);
  c = second.commands();
  lt_metal_wait(c, ready.handle, 7);
  lt_metal_copy(c, y.buffer, 0, x.buffer, 0, 4000);
  Completion copied;
  copied.commit(c);
  pause_ms(10);
  CHECK(!copied.is_done());
  lt_metal_event_set(gate.handle, 5);
  CHECK_INT(copied.wait().error.status, LT_METAL_OK);
  CHECK_NEAR(y[999], 999, 0);
  written.wait();
}

/* Freed events and queues serve what is queued. */
static void objects_are_kept() {
  Array<float> x(1);
  Completion end;
  {
    TestQueue queue;
    TestEvent gate;
    lt_MetalCommands *c = queue.commands();
    lt_metal_wait(c, gate.handle, 1);
    dispatch(c, pipeline("number", 9), {in(x.buffer)});
    lt_metal_fill(c, x.buffer, 1, 2, 0x55);
    end.commit(c);
    lt_metal_event_set(gate.handle, 1);
  }
  CHECK_INT(end.wait().error.status, LT_METAL_OK);
  unsigned bits;
  memcpy(&bits, x.buffer->contents, 4);
  CHECK_INT(bits, 0x555500);
}

static void limit_of_command_buffers() {
  TestQueue queue;
  TestEvent gate;
  Completion ends[LT_METAL_IN_FLIGHT];
  for (Completion &end : ends) {
    lt_MetalCommands *c = queue.commands();
    lt_metal_wait(c, gate.handle, 1);
    end.commit(c);
  }
  std::atomic<bool> created{false};
  std::thread other([&] {
    lt_MetalCommands *c = queue.commands();
    created = true;
    lt_metal_discard(c);
  });
  pause_ms(20);
  CHECK(!created);
  lt_metal_event_set(gate.handle, 1);
  other.join();
  CHECK(created);
  for (Completion &end : ends) CHECK_INT(end.wait().error.status, LT_METAL_OK);
  for (int i = 0; i < 2 * LT_METAL_IN_FLIGHT; i++) lt_metal_discard(queue.commands());
}

/* ---- copies and products --------------------------------------------------------------------- */

static void copies_of_any_bytes() {
  Array<signed char> x(100), y(100);
  for (int i = 0; i < 100; i++) x[i] = (signed char)i, y[i] = -1;
  TestQueue queue;
  lt_MetalCommands *c = queue.commands();
  lt_metal_copy(c, y.buffer, 3, x.buffer, 50, 7);
  lt_metal_copy(c, x.buffer, 0, x.buffer, 90, 10);
  lt_metal_fill(c, y.buffer, 99, 1, 42);
  CHECK_INT(finish(c).error.status, LT_METAL_OK);
  CHECK_INT(y[2], -1);
  CHECK_INT(y[3], 50);
  CHECK_INT(y[9], 56);
  CHECK_INT(y[10], -1);
  CHECK_INT(y[99], 42);
  CHECK_INT(x[9], 99);
#ifndef LT_FAKE_METAL
  c = queue.commands();
  lt_metal_copy(c, x.buffer, 0, x.buffer, 5, 6);
  CHECK_INT(finish(c).error.status, LT_METAL_INVALID);
  c = queue.commands();
  lt_metal_fill(c, x.buffer, 95, 6, 0);
  CHECK_INT(finish(c).error.status, LT_METAL_INVALID);
  CHECK_INT(x[95], 95);
#endif
}

/* (2 x 3) @ (3 x 2), where b is in memory as its transpose: [1 2 3; 4 5 6] @ [1 4; 2 5; 3 6]. */
static void products() {
  Array<float> a(6), out(4);
  Array<uint16_t> ha(6), hout(4);
  for (int i = 0; i < 6; i++) a[i] = (float)(i + 1);
  const uint16_t halves[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600}; /* 1 .. 6 */
  memcpy(ha.buffer->contents, halves, sizeof halves);
  TestQueue queue;
  lt_MetalCommands *c = queue.commands();
  lt_MetalMatrix x = {a.buffer, 0, 12, 2, 3, false}, xt = x, y = {out.buffer, 0, 8, 2, 2, false};
  xt.transposed = true;
  CHECK(lt_metal_matmul(c, &y, &x, &xt, false));
  lt_MetalMatrix h = {ha.buffer, 0, 6, 2, 3, false}, ht = h, hy = {hout.buffer, 0, 4, 2, 2, false};
  ht.transposed = true;
  CHECK(lt_metal_matmul(c, &hy, &h, &ht, true));
  CHECK_INT(finish(c).error.status, LT_METAL_OK);
  const float expected[] = {14, 32, 32, 77};
  const uint16_t half_expected[] = {0x4b00, 0x5000, 0x5000, 0x54d0};
  for (int i = 0; i < 4; i++) {
    CHECK_NEAR(out[i], expected[i], 0);
    CHECK_INT(hout[i], half_expected[i]);
  }
  c = queue.commands();
  CHECK(lt_metal_matmul(c, &y, &x, &x, false));
  CHECK_INT(finish(c).error.status, LT_METAL_INVALID);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* What follows in the command buffer does not run; later command buffers do. */
static void page_faults() {
  Array<float> x(1024), out(1);
  TestQueue queue;
  TestEvent event;
  x[0] = 1, out[0] = 0;
  const int64_t far = 1024;
  const float one = 1;
  lt_MetalCommands *c = queue.commands();
  dispatch(c, pipeline("read_at"), {in(x.buffer), in(out.buffer), value(far)});
  dispatch(c, pipeline("add"), {in(x.buffer), value(one)});
  lt_metal_signal(c, event.handle, 1);
  lt_MetalResult result = finish(c);
  CHECK_INT(result.error.status, LT_METAL_PAGE_FAULT);
  CHECK_CONTAINS(result.error.text, "read_at");
  CHECK_NEAR(x[0], 1, 0);
  CHECK_INT(run(queue, "add", {in(x.buffer), value(one)}).error.status, LT_METAL_OK);
  CHECK_NEAR(x[0], 2, 0);
  /* A parameter without an argument. */
#ifndef LT_FAKE_METAL
  CHECK_INT(run(queue, "number", {in(nullptr)}).error.status, LT_METAL_PAGE_FAULT);
#endif
}

static void freed_buffers() {
  TestQueue queue;
  TestEvent gate;
  lt_MetalError error = {};
  lt_MetalBuffer *freed = lt_metal_buffer_new(device(), 4096, LT_METAL_SHARED, &error);
  REQUIRE(freed);
  Completion ends[2];
  for (int i = 0; i < 2; i++) {
    lt_MetalCommands *c = queue.commands();
    lt_metal_wait(c, gate.handle, 1);
    if (i == 0)
      dispatch(c, pipeline("number"), {in(freed)});
    else
      lt_metal_fill(c, freed, 0, 4096, 0);
    ends[i].commit(c);
  }
  lt_metal_buffer_free(freed);
  lt_metal_event_set(gate.handle, 1);
  for (Completion &end : ends) CHECK_INT(end.wait().error.status, LT_METAL_PAGE_FAULT);
}

#ifndef LT_FAKE_METAL
/* Kernels from source that run or are queued are stopped, without an error. */
static void stopped_kernels() {
  Array<int> x(1), next(1);
  x[0] = 0, next[0] = 0;
  TestQueue queue;
  Completion ends[2];
  for (Completion &end : ends) {
    lt_MetalCommands *c = queue.commands();
    dispatch(c, pipeline("endless"), {in(x.buffer)});
    end.commit(c);
  }
  pause_ms(20);
  CHECK(!ends[0].is_done());
  lt_metal_stop(device());
  for (Completion &end : ends) CHECK_INT(end.wait().error.status, LT_METAL_OK);
  CHECK_INT(run(queue, "order", {in(next.buffer), in(x.buffer)}).error.status, LT_METAL_OK);
  CHECK_INT(next[0], 1);
}
#endif

int main() {
  setenv("LUTRA_EMULATE", "cuda:3,mps:2,memory=64MiB", 1);
  if (!library()) return 1;
  RUN(devices);
  RUN(shared_memory_has_two_addresses);
  RUN(private_memory);
  RUN(memory_is_limited);
  RUN(groups_at_the_edge);
  RUN(threadgroup_memory);
  RUN(simd_groups);
  RUN(function_constants);
  RUN(rejected_sources);
#ifndef LT_FAKE_METAL /* what metal.h does not allow */
  RUN(invalid_dispatches);
#endif
  RUN(archives);
  RUN(commands_run_in_order);
  RUN(commands_run_later);
  RUN(events_order_queues);
  RUN(objects_are_kept);
  RUN(limit_of_command_buffers);
  RUN(copies_of_any_bytes);
  RUN(products);
  RUN(page_faults);
  RUN(freed_buffers);
#ifndef LT_FAKE_METAL /* Metal cannot stop a kernel */
  RUN(stopped_kernels);
#endif
  return check_end();
}
