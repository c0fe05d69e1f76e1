/* events.cpp: events. An event counts its records. Whoever synchronizes with an event waits for the
 * record that was the last one at the time of the call. */
#include "runtime.h"

#include <unordered_map>
#include <utility>

namespace emulated {
namespace {

struct Event {
  Device *device;
  bool timing;
  std::mutex mutex; /* protects the members below */
  std::condition_variable ended;
  unsigned long long recorded = 0, done = 0;
  long long time = 0; /* of the last completed record, in nanoseconds */
  Captured captured;  /* where the last record is part of a capture */

  unsigned long long mark() {
    Lock lock(mutex);
    return recorded;
  }
  Captured mark_captured() {
    Lock lock(mutex);
    return captured;
  }
  void wait(unsigned long long number) {
    Lock lock(mutex);
    ended.wait(lock, [&] { return done >= number; });
  }
};
typedef std::shared_ptr<Event> EventRef;

/* A record in a stream. It completes in the destructor, so also when the program ends without
 * running it: a stream that waits for it can then end, too. */
struct Record final : Operation {
  EventRef e;
  unsigned long long number;
  Record(EventRef event, unsigned long long n) : e(std::move(event)), number(n) {}
  void run() override {}
  ~Record() override {
    Lock lock(e->mutex);
    if (number > e->done) {
      e->done = number;
      e->time = lt_emulated_clock();
    }
    e->ended.notify_all();
  }
};

std::mutex events_mutex;
std::unordered_map<cudaEvent_t, EventRef> &events =
    *new std::unordered_map<cudaEvent_t, EventRef>();

EventRef find_event(cudaEvent_t handle) {
  Lock lock(events_mutex);
  auto found = events.find(handle);
  return found == events.end() ? nullptr : found->second;
}

} // namespace
} // namespace emulated

using namespace emulated;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  LT_ENTER();
  LT_NEED(out && flags < 8, cudaErrorInvalidValue);
  LT_NEED(!injected(Fault::EVENT), cudaErrorMemoryAllocation);
  EventRef e = std::make_shared<Event>();
  e->device = &device(current_device());
  e->timing = !(flags & cudaEventDisableTiming);
  *out = (cudaEvent_t)e.get();
  Lock lock(events_mutex);
  events[*out] = e;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  LT_ENTER();
  Lock lock(events_mutex);
  LT_NEED(events.erase(handle) == 1, cudaErrorInvalidResourceHandle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  LT_ENTER();
  EventRef e = find_event(handle);
  StreamRef s = find_stream(stream);
  LT_NEED(e && s && e->device == &device_of_stream(s), cudaErrorInvalidResourceHandle);
  LT_CHECK(check_capture(s));
  Captured mark = mark_capture(s);
  unsigned long long number;
  {
    Lock lock(e->mutex);
    e->captured = mark;
    if (mark.capture) return cudaSuccess;
    number = ++e->recorded;
  }
  enqueue(s, new Record(e, number));
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  LT_ENTER();
  EventRef e = find_event(handle);
  StreamRef s = find_stream(stream);
  LT_NEED(e && s, cudaErrorInvalidResourceHandle);
  LT_CHECK(check_capture(s));
  Captured mark = e->mark_captured();
  if (mark.capture) return set_last_error(join_capture(s, mark));
  unsigned long long number = e->mark();
  if (number) LT_CHECK(refuse_capture(s, cudaErrorStreamCaptureIsolation));
  if (number) enqueue_always(s, [e, number] { e->wait(number); });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  LT_ENTER();
  EventRef e = find_event(handle);
  LT_NEED(e, cudaErrorInvalidResourceHandle);
  LT_CHECK(refuse_event(e->mark_captured()));
  if (injected(Fault::SYNC)) e->device->sticky = cudaErrorLaunchFailure;
  e->wait(e->mark());
  return set_last_error(device_error(*e->device));
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  LT_ENTER();
  EventRef e = find_event(handle);
  LT_NEED(e, cudaErrorInvalidResourceHandle);
  LT_CHECK(refuse_event(e->mark_captured()));
  LT_CHECK(refuse_unsafe());
  Lock lock(e->mutex);
  return e->done >= e->recorded ? set_last_error(device_error(*e->device))
                                : set_last_error(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  LT_ENTER();
  LT_NEED(ms, cudaErrorInvalidValue);
  EventRef both[2] = {find_event(start), find_event(end)};
  long long time[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    LT_NEED(both[i], cudaErrorInvalidResourceHandle);
    LT_CHECK(refuse_event(both[i]->mark_captured()));
    Lock lock(both[i]->mutex);
    LT_NEED(both[i]->timing && both[i]->recorded, cudaErrorInvalidResourceHandle);
    if (both[i]->done < both[i]->recorded) return set_last_error(cudaErrorNotReady);
    time[i] = both[i]->time;
  }
  *ms = (float)((double)(time[1] - time[0]) * 1e-6);
  return cudaSuccess;
}
