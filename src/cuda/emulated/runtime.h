/* runtime.h: what the files of the emulated runtime share.
 *
 *   memory.cpp      a device's memory: addresses, limits, protection
 *   streams.cpp     queues, the order between them, events
 *   copies.cpp      copies and fills
 *   launches.cpp    kernels
 *   properties.cpp  devices and what they are
 *   errors.cpp      codes, names, sticky errors
 *
 * Nothing here is destroyed at the program's end: threads of streams may still run then.
 */
#ifndef LT_EMULATED_RUNTIME_H
#define LT_EMULATED_RUNTIME_H

#include "cuda_runtime_api.h"
#include "options.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace emulated {

struct Stream;
typedef std::shared_ptr<Stream> StreamRef;
typedef std::unique_lock<std::mutex> Lock;

struct Device {
  int index;    /* as the program counts */
  int physical; /* as the machine counts */

  std::mutex mutex; /* of the members until `open` */
  char *base;       /* of a range of addresses, closed but for live allocations */
  size_t span, capacity, used;
  std::map<char *, size_t> live;  /* address: bytes asked for */
  std::map<char *, size_t> holes; /* free addresses */
  int open;                       /* strict: operations that may touch the memory now */

  std::atomic<int> sticky;     /* the error that ended the context, until cudaDeviceReset */
  std::atomic<unsigned> peers; /* bit i: this device's kernels may touch device i */

  std::mutex streams_mutex; /* of the members below */
  StreamRef legacy;         /* the default stream, made when it is needed */
  std::vector<std::weak_ptr<Stream>> streams;
};

/* ---- errors.cpp ------------------------------------------------------------------------------ */

/* Remembers the error for cudaGetLastError, and gives it back. */
cudaError_t failed(cudaError_t error);
/* Before every call that needs a device: starts the runtime; the error of the current device, of a
 * missing driver or device, or of the program's end. */
cudaError_t enter();

#define LT_ENTER()                                                                                 \
  do {                                                                                             \
    cudaError_t status_ = ::emulated::enter();                                                     \
    if (status_ != cudaSuccess) return ::emulated::failed(status_);                                \
  } while (0)
#define LT_NEED(condition, error)                                                                  \
  do {                                                                                             \
    if (!(condition)) return ::emulated::failed(error);                                            \
  } while (0)

/* ---- properties.cpp -------------------------------------------------------------------------- */

int device_count();
Device &device(int index);
int &current_device(); /* of this thread */
/* Is the program ending? */
bool unloading();

/* ---- memory.cpp ------------------------------------------------------------------------------ */

void memory_start(Device *d);
/* The device whose address this is, or NULL. */
Device *device_of(const void *address);
/* Do n bytes from there lie in one live allocation? */
bool is_live(Device *d, const void *address, size_t n);
/* Do they lie in pinned or registered memory of the host? */
bool is_pinned(const void *address, size_t n);
void *memory_take(Device *d, size_t n);     /* NULL: no room */
bool memory_give(Device *d, void *address); /* false: no allocation begins there */
void memory_give_all(Device *d);
/* Strict mode: host code cannot touch a device's memory but while an operation is on its way that
 * may. One of these lives from the call until the operation has ended. */
class Access {
public:
  explicit Access(unsigned devices); /* bit i: device i */
  Access(Access &&other) noexcept : devices_(other.devices_) { other.devices_ = 0; }
  Access(const Access &) = delete;
  Access &operator=(const Access &) = delete;
  ~Access();

private:
  unsigned devices_;
};
/* The devices that a kernel on this one may touch. */
unsigned reach(const Device &d);

/* ---- streams.cpp ----------------------------------------------------------------------------- */

struct Operation {
  Operation *next = nullptr;
  virtual void run() = 0;
  virtual ~Operation() {}
};
template <class F> struct OperationOf final : Operation {
  F f;
  explicit OperationOf(F &&from) : f(std::move(from)) {}
  void run() override { f(); }
};

/* The stream of a handle; NULL for one that there is not. Of handle 0: the current device's default
 * stream. */
StreamRef find_stream(cudaStream_t handle);
Device &device_of_stream(const StreamRef &s);
/* Puts an operation on a stream, after what the order of streams asks for; its number. Takes it
 * over. */
unsigned long long enqueue(const StreamRef &s, Operation *operation);
/* Until the operation of that number has ended. */
void wait_for(const StreamRef &s, unsigned long long number);
void wait_for_device(Device &d);
void destroy_streams(Device &d);
/* The program ends: drops what is queued, waits a little for what runs. */
void stop_streams();

/* An operation that runs always. */
template <class F> unsigned long long enqueue_always(const StreamRef &s, F f) {
  return enqueue(s, new OperationOf<F>(std::move(f)));
}
/* One that touches memory of these devices, and is left out once the stream's device has failed. */
template <class F> unsigned long long enqueue_work(const StreamRef &s, unsigned devices, F f) {
  Device *d = &device_of_stream(s);
  return enqueue_always(s, [d, access = Access(devices), f = std::move(f)]() mutable {
    if (!d->sticky) f();
  });
}

/* The error of the stream's device, once its work has been waited for. */
inline cudaError_t outcome(Device &d) { return (cudaError_t)d.sticky.load(); }

} // namespace emulated

#endif
