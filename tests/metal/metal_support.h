/* metal_support.h: helpers shared by the tests of the emulated Metal. */
#ifndef LT_TESTS_METAL_SUPPORT_H
#define LT_TESTS_METAL_SUPPORT_H

#include "../c/check.h"
#include "mps/metal.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdlib.h>
#include <thread>
#include <vector>

/* Of Lutra's core, which these programs do not contain: Ctrl-C stops the compiler. */
extern "C" {
extern bool lt_interrupt_flag;
bool lt_interrupt_flag;
}

static const char *const SOURCE = R"(
#include <metal_stdlib>
using namespace metal;

constant int factor [[function_constant(0)]];

kernel void number(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = float(i) * float(factor);
}
kernel void add(device float *p [[buffer(0)]], constant float &value [[buffer(1)]],
                uint i [[thread_position_in_grid]]) {
  p[i] += value;
}
kernel void flip(device int *out [[buffer(0)]], threadgroup int *shared [[threadgroup(0)]],
                 uint i [[thread_position_in_threadgroup]],
                 uint n [[threads_per_threadgroup]],
                 uint first [[thread_position_in_grid]]) {
  shared[i] = int(first);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[first] = shared[n - 1 - i];
}
kernel void total(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  float sum = simd_sum(x[i]);
  if (i % 32 == 0) out[i / 32] = sum;
}
kernel void read_at(device const float *p [[buffer(0)]], device float *out [[buffer(1)]],
                    constant long &at [[buffer(2)]]) {
  *out = p[at];
}
kernel void order(device atomic_int *next [[buffer(0)]], device int *order [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  order[atomic_fetch_add_explicit(next, 1, memory_order_relaxed)] = int(i);
}
kernel void return_early(device int *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
  if (i >= 8) return;
  threadgroup_barrier(mem_flags::mem_none);
  out[i] = 1;
}
kernel void endless(device atomic_int *p [[buffer(0)]]) {
  while (atomic_load_explicit(p, memory_order_relaxed) == 0) {
  }
}
)";

/* Returns device 0. */
static lt_MetalDevice *device() {
  lt_MetalError error = {};
  return lt_metal_device(0, &error);
}

/* Returns the library of SOURCE, compiled at the first call; NULL with a message on failure. */
static lt_MetalLibrary *library() {
  static lt_MetalLibrary *made;
  if (made) return made;
  lt_MetalError error = {};
  char *log = nullptr;
  made = lt_metal_library_new(device(), SOURCE, &log, &error);
  if (!made) printf("%s\n%s\n", error.text, log ? log : "");
  free(log);
  return made;
}

__attribute__((unused)) static lt_MetalPipeline *pipeline(const char *name, int factor = 1) {
  lt_MetalError error = {};
  if (!library()) exit(1);
  const int32_t constants[] = {factor};
  lt_MetalPipeline *p = lt_metal_pipeline_new(library(), name, constants, 1, nullptr, &error);
  if (!p) {
    printf("pipeline: %s\n", error.text);
    exit(1);
  }
  return p;
}

/* A buffer of n elements, freed at the end of the scope. */
template <class T> struct Array {
  lt_MetalBuffer *buffer;
  explicit Array(size_t n, lt_MetalStorage storage = LT_METAL_SHARED) {
    lt_MetalError error = {};
    buffer = lt_metal_buffer_new(device(), n * sizeof(T), storage, &error);
    if (!buffer) {
      printf("buffer: %s\n", error.text);
      exit(1);
    }
  }
  Array(const Array &) = delete;
  ~Array() { lt_metal_buffer_free(buffer); }
  T &operator[](size_t i) { return ((T *)buffer->contents)[i]; }
};

/* A queue, freed at the end of the scope. */
struct TestQueue {
  lt_MetalQueue *handle;
  TestQueue() {
    lt_MetalError error = {};
    handle = lt_metal_queue_new(device(), &error);
  }
  TestQueue(const TestQueue &) = delete;
  ~TestQueue() { lt_metal_queue_free(handle); }
  lt_MetalCommands *commands() {
    lt_MetalError error = {};
    return lt_metal_commands_new(handle, &error);
  }
};

struct TestEvent {
  lt_MetalEvent *handle;
  TestEvent() {
    lt_MetalError error = {};
    handle = lt_metal_event_new(device(), &error);
  }
  TestEvent(const TestEvent &) = delete;
  ~TestEvent() { lt_metal_event_free(handle); }
};

/* The end of a command buffer. */
struct Completion {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  lt_MetalResult result = {};

  static void call(void *self, const lt_MetalResult *result) {
    Completion *c = (Completion *)self;
    std::lock_guard<std::mutex> lock(c->mutex);
    c->result = *result;
    c->done = true;
    c->changed.notify_all();
  }
  void commit(lt_MetalCommands *commands) { lt_metal_commit(commands, call, this); }
  lt_MetalResult wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return done; });
    return result;
  }
  bool is_done() {
    std::lock_guard<std::mutex> lock(mutex);
    return done;
  }
};

/* Commits a command buffer and waits for it. */
static lt_MetalResult finish(lt_MetalCommands *commands) {
  Completion c;
  c.commit(commands);
  return c.wait();
}

/* Arguments of a kernel. */
__attribute__((unused)) static lt_MetalArgument in(lt_MetalBuffer *buffer, size_t offset = 0) {
  return {buffer, offset, nullptr, 0};
}
template <class T> lt_MetalArgument value(const T &v) { return {nullptr, 0, &v, sizeof v}; }

/* Encodes a dispatch of a row of threads. */
static void dispatch(lt_MetalCommands *commands, lt_MetalPipeline *p,
                     const std::vector<lt_MetalArgument> &arguments, uint32_t threads = 1,
                     uint32_t group = 32, uint32_t threadgroup = 0) {
  lt_MetalDispatch d = {};
  d.pipeline = p;
  d.arguments = arguments.data();
  d.count = (int)arguments.size();
  d.grid[0] = threads;
  d.group[0] = group;
  d.grid[1] = d.grid[2] = d.group[1] = d.group[2] = 1;
  d.threadgroup = threadgroup;
  lt_metal_dispatch(commands, &d);
}

/* Runs one dispatch and waits for it. */
__attribute__((unused)) static lt_MetalResult run(TestQueue &queue, const char *kernel,
                                                  const std::vector<lt_MetalArgument> &arguments,
                                                  uint32_t threads = 1) {
  lt_MetalCommands *c = queue.commands();
  dispatch(c, pipeline(kernel), arguments, threads);
  return finish(c);
}

#endif
