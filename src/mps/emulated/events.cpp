/* events.cpp: events, between queues and with the host. */
#include "runtime.h"

#include <chrono>

namespace emulated {
namespace {

/* How long a queue waits, unless LUTRA_EMULATE_TIMEOUT says otherwise: the watchdog of macOS ends
 * such work after seconds, but emulated kernels are slow. */
const double LONGEST_WAIT = 300; /* seconds */

} // namespace

void Event::set(uint64_t value) {
  Lock lock(mutex);
  if (value <= current) return;
  current = value;
  changed.notify_all();
}

/* The program's end does not wake it up, so it looks every now and then. */
bool Event::wait(uint64_t value) {
  const double limit = options().timeout > 0 ? options().timeout : LONGEST_WAIT;
  const long long end = lt_emulated_clock() + (long long)(limit * 1e9);
  Lock lock(mutex);
  while (current < value && lt_emulated_clock() < end && !unloading())
    changed.wait_for(lock, std::chrono::milliseconds(20));
  return current >= value;
}

} // namespace emulated

using namespace emulated;

lt_MetalEvent *lt_metal_event_new(lt_MetalDevice *, lt_MetalError *error) {
  if (fails(Fault::EVENT, error)) return nullptr;
  return new lt_MetalEvent{std::make_shared<Event>()};
}

void lt_metal_event_free(lt_MetalEvent *event) { delete event; }

void lt_metal_event_set(lt_MetalEvent *event, uint64_t value) { event->state->set(value); }

namespace {

struct Signal final : Command {
  EventRef event;
  uint64_t value;
  Signal(EventRef e, uint64_t v) : event(std::move(e)), value(v) {}
  bool run(lt_MetalError *) override {
    event->set(value);
    return true;
  }
};

struct Wait final : Command {
  EventRef event;
  uint64_t value;
  Wait(EventRef e, uint64_t v) : event(std::move(e)), value(v) {}
  bool run(lt_MetalError *error) override {
    if (!injected(Fault::WAIT) && event->wait(value)) return true;
    set_error(error, LT_METAL_TIMEOUT, "a wait for an event took too long");
    return false;
  }
};

} // namespace

void lt_metal_signal(lt_MetalCommands *commands, lt_MetalEvent *event, uint64_t value) {
  commands->list.emplace_back(new Signal(event->state, value));
}

void lt_metal_wait(lt_MetalCommands *commands, lt_MetalEvent *event, uint64_t value) {
  commands->list.emplace_back(new Wait(event->state, value));
}
