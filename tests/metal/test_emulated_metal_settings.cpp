/* test_emulated_metal_settings.cpp: the environment variables of the emulation, for Metal. Each
 * setting is tested in a process of its own: this program with the name of an action. An action
 * prints what it observes. */
#include "metal_support.h"

#include "../c/in_process.h"

static const char *name_of(lt_MetalStatus status) {
  static const char *const names[] = {"ok",         "no_memory", "rejected", "invalid",
                                      "page_fault", "timeout",   "lost",     "other"};
  return names[status];
}

/* ---- actions --------------------------------------------------------------------------------- */

static void print_devices() {
  for (int i = 0; i < 3; i++) {
    lt_MetalError error = {};
    lt_MetalFacts facts = {};
    lt_MetalDevice *d = lt_metal_device(i, &error);
    if (d) lt_metal_facts(d, &facts);
    printf("%s %zuM;", name_of(error.status), (size_t)facts.recommended >> 20);
  }
}

/* The host may use the contents of shared memory, but not its address on the GPU. */
static void touch_from_the_host() {
  Array<float> x(10);
  TestQueue queue;
  run(queue, "number", {in(x.buffer)}, 10);
  printf("contents %g\n", (double)x[9]);
  fflush(stdout);
  *(volatile float *)(uintptr_t)x.buffer->address = 1;
  printf("touched\n");
}

/* A kernel reads a live buffer that is not among its arguments. */
static void touch_from_a_kernel() {
  Array<float> x(10), other(10), out(1);
  other[3] = 8;
  TestQueue queue;
  const int64_t at = ((int64_t)other.buffer->address - (int64_t)x.buffer->address) / 4 + 3;
  lt_MetalResult r = run(queue, "read_at", {in(x.buffer), in(out.buffer), value(at)});
  printf("%s %s", name_of(r.error.status), r.error.text);
  if (r.error.status == LT_METAL_OK) printf("%g", (double)out[0]);
}

static void print_new_memory() {
  Array<unsigned> shared(1), there(1, LT_METAL_PRIVATE), copy(1);
  TestQueue queue;
  lt_MetalCommands *c = queue.commands();
  lt_metal_copy(c, copy.buffer, 0, there.buffer, 0, 4);
  finish(c);
  printf("%08x %08x", shared[0], copy[0]);
}

static void print_order() {
  Array<int> next(1), order(64);
  TestQueue queue;
  next[0] = 0;
  run(queue, "order", {in(next.buffer), in(order.buffer)}, 64);
  printf("%d %d %d", order[0], order[1], order[63]);
}

/* Metal requires that all threads of a threadgroup reach a barrier. */
static void return_before_a_barrier() {
  Array<int> x(32);
  TestQueue queue;
  lt_MetalResult r = run(queue, "return_early", {in(x.buffer)}, 32);
  printf("%s %s", name_of(r.error.status), r.error.text);
}

static void run_endless_kernel() {
  Array<int> x(1);
  x[0] = 0;
  TestQueue queue;
  lt_MetalResult r = run(queue, "endless", {in(x.buffer)});
  printf("%s %s", name_of(r.error.status), r.error.text);
}

static void wait_for_nothing() {
  TestQueue queue;
  TestEvent event;
  lt_MetalCommands *c = queue.commands();
  lt_metal_wait(c, event.handle, 1);
  printf("%s", name_of(finish(c).error.status));
}

/* One call of each kind; three rounds. */
static void call_each() {
  lt_MetalPipeline *number = pipeline("number");
  TestQueue queue;
  Array<float> x(1);
  TestEvent signalled;
  lt_metal_event_set(signalled.handle, 1);
  for (int i = 1; i <= 3; i++) {
    lt_MetalError error = {};
    const int32_t one = 1;
    printf("%d:", i);
#define CALL(name, call)                                                                           \
  error = {};                                                                                      \
  printf(" " name " %s", (call) ? "ok" : name_of(error.status))
    lt_MetalBuffer *b;
    lt_MetalQueue *q;
    lt_MetalEvent *e;
    lt_MetalCommands *c;
    CALL("buffer", b = lt_metal_buffer_new(device(), 1, LT_METAL_PRIVATE, &error));
    CALL("pipeline", lt_metal_pipeline_new(library(), "add", &one, 1, nullptr, &error));
    CALL("queue", q = lt_metal_queue_new(device(), &error));
    CALL("event", e = lt_metal_event_new(device(), &error));
    CALL("commands", c = lt_metal_commands_new(queue.handle, &error));
    if (!c) c = queue.commands();
    lt_metal_wait(c, signalled.handle, 1);
    dispatch(c, number, {in(x.buffer)});
    printf(" run %s;", name_of(finish(c).error.status));
    lt_metal_buffer_free(b);
    lt_metal_queue_free(q);
    lt_metal_event_free(e);
  }
}

/* Work is queued, and main returns. A wait for it ends then. */
static void leave_work_behind() {
  static TestQueue &queue = *new TestQueue(), &stuck = *new TestQueue();
  static Completion &end = *new Completion();
  static Array<float> &x = *new Array<float>(1);
  static TestEvent &never = *new TestEvent();
  lt_MetalPipeline *endless = pipeline("endless"), *number = pipeline("number");
  for (int i = 0; i < 100; i++) {
    lt_MetalCommands *c = queue.commands();
    dispatch(c, i ? number : endless, {in(x.buffer)});
    lt_metal_commit(c, nullptr, nullptr);
  }
  x[0] = 0;
  lt_MetalCommands *c = stuck.commands();
  lt_metal_wait(c, never.handle, 1);
  end.commit(c);
  std::thread([] { end.wait(); }).detach();
  printf("left");
}

static const struct {
  const char *name;
  void (*run)();
} actions[] = {{"devices", print_devices},      {"touch", touch_from_the_host},
               {"other", touch_from_a_kernel},  {"memory", print_new_memory},
               {"order", print_order},          {"barrier", return_before_a_barrier},
               {"endless", run_endless_kernel}, {"wait", wait_for_nothing},
               {"faults", call_each},           {"leave", leave_work_behind}};

/* ---- tests ----------------------------------------------------------------------------------- */

static void devices_and_memory() {
  PRINTS("devices", "", "ok 256M;other 0M;other 0M;");
  PRINTS("devices", "LUTRA_EMULATE=mps", "ok 256M;other 0M;other 0M;");
  PRINTS("devices", "LUTRA_EMULATE=cuda:2,mps:2,memory=1GiB", "ok 1024M;ok 1024M;other 0M;");
  PRINTS("devices", "LUTRA_EMULATE=cuda", "other 0M;other 0M;other 0M;");
  CONTAINS(in_process("devices", "LUTRA_EMULATE=mps:x").text,
           "expected mps:1 to mps:8, got \"mps:x\", which is ignored");
}

static void strict_memory() {
  Result r = in_process("touch", "LUTRA_EMULATE_STRICT=1");
  CHECK(r.status != 0);
  CONTAINS(r.text, "contents 9\n");
  CONTAINS(r.text, "host code accessed memory of emulated device mps:0 at 0x");
  CHECK(!strstr(r.text.c_str(), "touched\n"));
  PRINTS("touch", "", "contents 9\ntouched\n");
  PRINTS("other", "", "ok 8");
  r = in_process("other", "LUTRA_EMULATE_STRICT=1");
  CONTAINS(r.text, "page_fault page fault in kernel 'read_at': memory of emulated device mps:0");
  CONTAINS(r.text, "(a live allocation)");
  PRINTS("barrier", "", "ok ");
  CONTAINS(in_process("barrier", "LUTRA_EMULATE_STRICT=1").text,
           "other internal error in kernel 'return_early'");
}

static void new_memory() {
  PRINTS("memory", "", "00000000 00000000");
  PRINTS("memory", "LUTRA_EMULATE_POISON=1", "ffffffff ffffffff");
  PRINTS("memory", "LUTRA_EMULATE_STRICT=1", "ffffffff ffffffff");
}

static void order_of_threads() {
  PRINTS("order", "", "0 1 63");
  PRINTS("order", "LUTRA_EMULATE_ORDER=reverse", "63 62 0");
  PRINTS("order", "LUTRA_EMULATE_DELAY=500", "0 1 63");
}

static void timeouts() {
  Result r = in_process("endless", "LUTRA_EMULATE_TIMEOUT=0.2");
  CHECK_INT(r.status, 0);
  CONTAINS(r.text, "timeout timeout in kernel 'endless': the kernel ran longer than 0.2 seconds");
  PRINTS("wait", "LUTRA_EMULATE_TIMEOUT=0.2", "timeout");
}

/* Returns the output of the three rounds with a fault in round 2. */
static std::string rounds(const char *call, const char *error, const char *then = "ok") {
  std::string text;
  for (int i = 1; i <= 3; i++) {
    text += std::to_string(i) + ":";
    for (const char *name : {"buffer", "pipeline", "queue", "event", "commands", "run"}) {
      bool fails = strcmp(name, call) == 0 && i >= 2;
      text += std::string(" ") + name + " " + (!fails ? "ok" : i == 2 ? error : then);
    }
    text += ";";
  }
  return text;
}

/* Before its first round the action creates one buffer, pipeline, queue and event: the third call
 * is that of round 2. */
static void injected_faults() {
  PRINTS("faults", "", rounds("", ""));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=buffer@3", rounds("buffer", "no_memory"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=pipeline@3", rounds("pipeline", "no_memory"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=queue@3", rounds("queue", "no_memory"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=event@3", rounds("event", "no_memory"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=commands@2", rounds("commands", "no_memory"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=commit@2", rounds("run", "other"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=oom@2", rounds("run", "no_memory"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=illegal@2", rounds("run", "page_fault"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=wait@2", rounds("run", "timeout"));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=lost@2", rounds("run", "lost", "lost"));
  CONTAINS(in_process("faults", "LUTRA_EMULATE_FAULT=library@1").text, "out of memory");
  CONTAINS(in_process("faults", "LUTRA_EMULATE_FAULT=nothing@1").text, "got \"nothing@1\"");
}

static void the_program_ends_with_work_queued() { PRINTS("leave", "", "left"); }

int main(int n, char **arguments) {
  program = arguments[0];
  for (const auto &action : actions)
    if (n == 2 && strcmp(arguments[1], action.name) == 0) {
      action.run();
      return 0;
    }
  if (n > 1) return 98; /* a process for an action never runs all tests */
  RUN(devices_and_memory);
  RUN(strict_memory);
  RUN(new_memory);
  RUN(order_of_threads);
  RUN(timeouts);
  RUN(injected_faults);
  RUN(the_program_ends_with_work_queued);
  return check_end();
}
