/* streams.cpp: streams. A stream is a queue with a thread (src/emulation/queue.h).
 *
 * The order between streams is CUDA's: an operation on the legacy default stream waits for all
 * operations queued on the device's blocking streams, and operations on those wait for the default
 * stream; streams created with cudaStreamNonBlocking are not affected. A destroyed stream first
 * completes its work.
 */
#include "runtime.h"

#include <unordered_map>
#include <utility>

namespace emulated {

struct Stream final : Queue {
  Device *device;
  bool legacy, blocking;
  unsigned flags;
  int priority;
  Captured captured;

protected:
  void begin() override { current_device() = device->index; }
};

namespace {

enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

/* Protects the table of handles. Never locked while a device's streams_mutex is held. */
std::mutex handles_mutex;
std::unordered_map<cudaStream_t, StreamRef> &handles =
    *new std::unordered_map<cudaStream_t, StreamRef>();

/* Creates a stream and its thread. The priority is clamped to the valid range. */
StreamRef make_stream(Device &d, unsigned flags, int priority, bool legacy) {
  StreamRef s = std::make_shared<Stream>();
  s->device = &d;
  s->legacy = legacy;
  s->blocking = !legacy && !(flags & cudaStreamNonBlocking);
  s->flags = flags;
  s->priority = priority < GREATEST_PRIORITY ? (int)GREATEST_PRIORITY
                : priority > LEAST_PRIORITY  ? (int)LEAST_PRIORITY
                                             : priority;
  start_queue(s);
  return s;
}

StreamRef legacy_stream(Device &d) {
  Lock lock(d.streams_mutex);
  if (!d.legacy) d.legacy = make_stream(d, 0, 0, true);
  return d.legacy;
}

/* Returns all streams of a device that may still have work. */
std::vector<StreamRef> streams_of(Device &d) {
  std::vector<StreamRef> all;
  Lock lock(d.streams_mutex);
  if (d.legacy) all.push_back(d.legacy);
  size_t kept = 0;
  for (size_t i = 0; i < d.streams.size(); i++) {
    StreamRef s = d.streams[i].lock();
    if (!s) continue;
    d.streams[kept++] = d.streams[i];
    all.push_back(std::move(s));
  }
  d.streams.resize(kept);
  return all;
}

/* An operation to wait for. */
struct Dependency {
  StreamRef stream;
  unsigned long long number;
};

/* Returns the operations that one queued now must wait for, by the rule of the default stream. */
std::vector<Dependency> dependencies(const StreamRef &s) {
  std::vector<Dependency> all;
  auto add = [&](const StreamRef &other) {
    if (!other->is_idle()) all.push_back({other, other->mark()});
  };
  Device &d = *s->device;
  if (s->legacy) {
    for (const StreamRef &other : streams_of(d))
      if (other->blocking) add(other);
  } else if (s->blocking) {
    StreamRef legacy;
    {
      Lock lock(d.streams_mutex);
      legacy = d.legacy;
    }
    if (legacy) add(legacy);
  }
  return all;
}

} // namespace

Device &device_of_stream(const StreamRef &s) { return *s->device; }
bool is_default_stream(const StreamRef &s) { return s->legacy; }
Captured &captured_by(const StreamRef &s) { return s->captured; }

StreamRef find_stream(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
    return legacy_stream(device(current_device()));
  Lock lock(handles_mutex);
  auto found = handles.find(handle);
  return found == handles.end() ? nullptr : found->second;
}

unsigned long long enqueue(const StreamRef &s, Operation *operation) {
  std::vector<Dependency> waits = dependencies(s);
  if (!waits.empty())
    s->push(new OperationOf([waits = std::move(waits)]() mutable {
      for (const Dependency &b : waits) wait_for(b.stream, b.number);
    }));
  return s->push(operation);
}

void wait_for(const StreamRef &s, unsigned long long number) { s->wait_for(number); }

void wait_for_device(Device &d) {
  for (const StreamRef &s : streams_of(d)) wait_for(s, s->mark());
}

void destroy_streams(Device &d) {
  Lock lock(handles_mutex);
  for (auto i = handles.begin(); i != handles.end();) {
    if (i->second->device != &d) {
      ++i;
      continue;
    }
    i->second->close();
    i = handles.erase(i);
  }
}

} // namespace emulated

using namespace emulated;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  LT_ENTER();
  LT_NEED(out && !(flags & ~(unsigned)cudaStreamNonBlocking), cudaErrorInvalidValue);
  LT_NEED(!injected(Fault::STREAM), cudaErrorMemoryAllocation);
  Device &d = device(current_device());
  StreamRef s = make_stream(d, flags, priority, false);
  {
    Lock lock(d.streams_mutex);
    d.streams.push_back(s);
  }
  *out = (cudaStream_t)s.get();
  Lock lock(handles_mutex);
  handles[*out] = s;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  LT_ENTER();
  Lock lock(handles_mutex);
  auto found = handles.find(handle);
  LT_NEED(found != handles.end(), cudaErrorInvalidResourceHandle);
  StreamRef s = found->second;
  handles.erase(found);
  lock.unlock();
  refuse_capture(s);
  s->close();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_CHECK(refuse_capture(s));
  if (injected(Fault::SYNC)) s->device->sticky = cudaErrorLaunchFailure;
  wait_for(s, s->mark());
  return set_last_error(device_error(*s->device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_CHECK(refuse_capture(s));
  return s->is_idle() ? set_last_error(device_error(*s->device))
                      : set_last_error(cudaErrorNotReady);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  *priority = s->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  *flags = s->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *index) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  *index = s->device->index;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  LT_ENTER();
  if (least) *least = LEAST_PRIORITY;
  if (greatest) *greatest = GREATEST_PRIORITY;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  LT_ENTER();
  Device &d = device(current_device());
  LT_CHECK(refuse_captures(d));
  if (injected(Fault::SYNC)) d.sticky = cudaErrorLaunchFailure;
  wait_for_device(d);
  return set_last_error(device_error(d));
}

/* Not run once the device has failed, so nothing may wait for it. */
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_NEED(function, cudaErrorInvalidValue);
  LT_CHECK(check_capture(s));
  enqueue_work(s, 0, [function, argument] { function(argument); });
  return cudaSuccess;
}
