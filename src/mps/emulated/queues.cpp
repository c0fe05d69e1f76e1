/* queues.cpp: queues and command buffers. A command buffer is one operation of its queue's
 * thread. */
#include "runtime.h"

#include <utility>

using namespace emulated;

namespace {

typedef void (*Done)(void *context, const lt_MetalResult *result);

double seconds() { return (double)lt_emulated_clock() * 1e-9; }

/* A committed command buffer. It completes in the destructor, so also when the program ends without
 * running it: a thread that waits for it can then end, too. */
struct Committed final : Operation {
  std::unique_ptr<lt_MetalCommands> commands;
  Done done;
  void *context;
  lt_MetalResult result = {};

  Committed(lt_MetalCommands *c, Done d, void *x) : commands(c), done(d), context(x) {
    set_error(&result.error, LT_METAL_LOST, "the program is ending");
  }
  void run() override {
    result.start = seconds();
    result.error = commands->error;
    if (result.error.status == LT_METAL_OK) run_commands();
    result.end = seconds();
  }
  ~Committed() override;

private:
  void run_commands();
  bool fails_at_start();
};

/* Returns true when the device is lost, or a fault is injected. */
bool Committed::fails_at_start() {
  lt_MetalDevice *device = commands->queue->device;
  if (injected(Fault::LOST)) device->lost = true;
  if (device->lost)
    set_error(&result.error, LT_METAL_LOST, "the device was lost");
  else if (injected(Fault::OOM))
    set_error(&result.error, LT_METAL_NO_MEMORY, "out of memory (LUTRA_EMULATE_FAULT)");
  else if (injected(Fault::COMMIT))
    set_error(&result.error, LT_METAL_OTHER, "internal error (LUTRA_EMULATE_FAULT)");
  return result.error.status != LT_METAL_OK;
}

/* The commands after one that failed do not run: their events are not signalled. */
void Committed::run_commands() {
  if (fails_at_start()) return;
  for (const auto &command : commands->list)
    if (!command->run(&result.error)) return;
}

/* Ends the existence of a command buffer for the queue's limit. */
void finish(CommandQueue *queue) {
  Lock lock(queue->mutex);
  queue->unfinished--;
  queue->finished.notify_all();
}

Committed::~Committed() {
  std::shared_ptr<CommandQueue> queue = commands->queue;
  commands.reset();
  if (done) done(context, &result);
  finish(queue.get());
}

} // namespace

lt_MetalQueue *lt_metal_queue_new(lt_MetalDevice *device, lt_MetalError *error) {
  if (fails(Fault::QUEUE, error)) return nullptr;
  auto queue = std::make_shared<CommandQueue>();
  queue->device = device;
  start_queue(queue);
  return new lt_MetalQueue{queue};
}

void lt_metal_queue_free(lt_MetalQueue *queue) {
  if (!queue) return;
  queue->state->close();
  delete queue;
}

lt_MetalCommands *lt_metal_commands_new(lt_MetalQueue *queue, lt_MetalError *error) {
  if (fails(Fault::COMMANDS, error)) return nullptr;
  CommandQueue *q = queue->state.get();
  {
    Lock lock(q->mutex);
    q->finished.wait(lock, [q] { return q->unfinished < LT_METAL_IN_FLIGHT || unloading(); });
    q->unfinished++;
  }
  lt_MetalCommands *c = new lt_MetalCommands();
  c->queue = queue->state;
  return c;
}

void lt_metal_commit(lt_MetalCommands *commands, Done done, void *context) {
  std::shared_ptr<CommandQueue> queue = commands->queue;
  queue->push(new Committed(commands, done, context));
}

void lt_metal_discard(lt_MetalCommands *commands) {
  if (!commands) return;
  finish(commands->queue.get());
  delete commands;
}
