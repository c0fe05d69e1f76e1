/* runtime.h: declarations shared by the files of the emulated CUDA runtime, which is built on
 * src/emulation: memory, queues, kernels and faults.
 *
 *   settings.cpp    environment variables
 *   memory.cpp      allocation, pinned host memory
 *   streams.cpp     streams and the order between them
 *   events.cpp      events
 *   graphs.cpp      captures and graphs
 *   copies.cpp      copies and fills
 *   launches.cpp    launches of kernels
 *   properties.cpp  devices and their properties
 *   errors.cpp      codes, names, sticky errors
 *   nccl*.cpp       NCCL: communication between devices and processes
 *
 * Nothing here is destroyed at the program's end, since threads of streams may still be running.
 */
#ifndef LT_EMULATED_RUNTIME_H
#define LT_EMULATED_RUNTIME_H

#include "cuda_runtime_api.h"
#include "emulation/executor.h"
#include "emulation/memory.h"
#include "emulation/queue.h"
#include "settings.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace emulated {

/* The dynamic shared memory of a block, unless a kernel's limit is raised. */
enum { DEFAULT_SHARED = 48 << 10 };

struct Stream;
typedef std::shared_ptr<Stream> StreamRef;

/* An emulated GPU. */
struct Device {
  int index;    /* in the program's numbering */
  int physical; /* in the machine's numbering */

  Memory memory;

  std::atomic<int> sticky;     /* the error that ended the context, until cudaDeviceReset */
  std::atomic<unsigned> peers; /* bit i: this device's kernels may access device i */

  std::mutex streams_mutex; /* protects the members below */
  StreamRef legacy;         /* the default stream, created when first used */
  std::vector<std::weak_ptr<Stream>> streams;
};

/* ---- errors.cpp ------------------------------------------------------------------------------ */

/* Stores the error for cudaGetLastError, and returns it. */
cudaError_t set_last_error(cudaError_t error);
/* Starts the runtime where needed. Returns the error of the current device, of a missing driver or
 * device, or of the program's end. Called first by every function that uses a device. */
cudaError_t enter();

/* Return from the calling function with an error, which cudaGetLastError will return. */
#define LT_ENTER()                                                                                 \
  do {                                                                                             \
    cudaError_t status_ = ::emulated::enter();                                                     \
    if (status_ != cudaSuccess) return ::emulated::set_last_error(status_);                        \
  } while (0)
#define LT_CHECK(call)                                                                             \
  do {                                                                                             \
    cudaError_t status_ = (call);                                                                  \
    if (status_ != cudaSuccess) return ::emulated::set_last_error(status_);                        \
  } while (0)
#define LT_NEED(condition, error)                                                                  \
  do {                                                                                             \
    if (!(condition)) return ::emulated::set_last_error(error);                                    \
  } while (0)

/* ---- properties.cpp -------------------------------------------------------------------------- */

/* Returns the number of visible devices; starts the runtime at the first call. */
int device_count();
/* Returns a device; `index` must be below device_count(). */
Device &device(int index);
int &current_device(); /* of this thread */

/* ---- memory.cpp ------------------------------------------------------------------------------ */

/* Returns the device that an address belongs to, or NULL. */
Device *device_of(const void *address);
/* Returns true when the n bytes from there are in pinned or registered host memory. */
bool is_pinned(const void *address, size_t n);
/* Returns the devices that a kernel on this one may access, one bit each. */
unsigned accessible_devices(const Device &d);

/* ---- graphs.cpp ------------------------------------------------------------------------------ */

struct Capture;
typedef std::shared_ptr<Capture> CaptureRef;

/* What a stream is part of, or an event marks: a capture, and how many operations of each of its
 * streams come before. graphs.cpp protects it. */
struct Captured {
  CaptureRef capture; /* NULL: none */
  std::map<const Stream *, size_t> before;
};

/* Returns true when operations of the stream are captured. */
bool is_capturing(const StreamRef &s);
/* Returns cudaErrorStreamCaptureInvalidated when the stream's capture has failed. */
cudaError_t check_capture(const StreamRef &s);
/* Each makes a capture fail and returns an error, where there is a capture: that of the stream;
 * those of the device; the one in which an event was recorded; those during which this thread must
 * not call functions that are not captured. Without one they return cudaSuccess. */
cudaError_t refuse_capture(const StreamRef &s,
                           cudaError_t error = cudaErrorStreamCaptureUnsupported);
cudaError_t refuse_captures(const Device &d);
cudaError_t refuse_event(const Captured &mark);
cudaError_t refuse_unsafe();
/* Adds an operation that accesses these devices' memory to the stream's capture. Takes it over. */
void capture(const StreamRef &s, unsigned devices, Operation *operation);
/* Returns what an event that is recorded now marks. */
Captured mark_capture(const StreamRef &s);
/* Makes the stream part of the capture in which an event was recorded. */
cudaError_t join_capture(const StreamRef &s, const Captured &mark);

/* ---- streams.cpp ----------------------------------------------------------------------------- */

/* Returns the stream of a handle, or NULL. Handle 0 is the current device's default stream. */
StreamRef find_stream(cudaStream_t handle);
/* Returns true for a default stream, which cannot be captured. */
bool is_default_stream(const StreamRef &s);
/* Returns what the stream is part of. */
Captured &captured_by(const StreamRef &s);
/* Returns the device on which a stream was created. */
Device &device_of_stream(const StreamRef &s);
/* Queues an operation, after those that the order of streams requires to be first. Returns the
 * operation's number. Takes it over. */
unsigned long long enqueue(const StreamRef &s, Operation *operation);
/* Blocks until the operation with that number has ended. */
void wait_for(const StreamRef &s, unsigned long long number);
/* Blocks until all operations of the device have ended. */
void wait_for_device(Device &d);
/* Makes the device's streams end after their queued work, and forgets their handles. */
void destroy_streams(Device &d);
/* Queues an operation that always runs. Returns its number. */
template <class F> unsigned long long enqueue_always(const StreamRef &s, F f) {
  return enqueue(s, new OperationOf<F>(std::move(f)));
}
/* Queues an operation that accesses memory of these devices (one bit each), and is skipped once the
 * stream's device has failed. Returns its number; 0 where it is captured instead. */
template <class F> unsigned long long enqueue_work(const StreamRef &s, unsigned devices, F f) {
  Device *d = &device_of_stream(s);
  auto run = [d, f = std::move(f)]() mutable {
    if (!d->sticky) f();
  };
  if (is_capturing(s)) {
    capture(s, devices, new OperationOf<decltype(run)>(std::move(run)));
    return 0;
  }
  return enqueue_always(s, [access = Access(devices), run = std::move(run)]() mutable { run(); });
}

/* Returns CUDA's error for the fault of a kernel. */
cudaError_t error_of(lt_EmulatedFault fault);
/* Returns the error of a device. It is complete once the device's work has ended. */
inline cudaError_t device_error(Device &d) { return (cudaError_t)d.sticky.load(); }

} // namespace emulated

#endif
