/* runtime.h: declarations shared by the files that implement metal.h on a CPU, on top of
 * src/emulation: memory, queues, kernels and faults.
 *
 *   devices.cpp    devices and their facts
 *   buffers.cpp    buffers
 *   pipelines.cpp  pipelines and archives
 *   libraries.cpp  libraries and the kernels in them (library.h)
 *   queues.cpp     queues and command buffers
 *   commands.cpp   what a command buffer holds: dispatches, copies, fills
 *   matmul.cpp     matrix products
 *   events.cpp     events
 *
 * As on a GPU, a command buffer runs when the host continues, and its failure is known when it has
 * ended. The host cannot use the GPU's addresses of memory; in strict mode an access ends the
 * program with a message. A kernel can access the buffers of its dispatch only, in strict mode also
 * when others are live.
 */
#ifndef LT_EMULATED_METAL_RUNTIME_H
#define LT_EMULATED_METAL_RUNTIME_H

#include "emulation/executor.h"
#include "emulation/memory.h"
#include "emulation/options.h"
#include "emulation/queue.h"
#include "library.h"
#include "metal/record.h"
#include "mps/metal.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/* An emulated GPU. */
struct lt_MetalDevice {
  int index;
  emulation::Memory memory;
  std::atomic<bool> lost;
};

namespace emulated {

using namespace emulation;

struct Buffer : lt_MetalBuffer {
  lt_MetalDevice *device;
};

struct Pipeline : lt_MetalPipeline {
  const Kernel *kernel;
  ConstantValues constants;
  bool is_users; /* compiled from the user's source: it may not terminate */
};

/* Returns true when LUTRA_EMULATE_FAULT makes this call fail, with the error. */
bool fails(Fault kind, lt_MetalError *error);
/* Fills in an error; the text is a format. */
__attribute__((format(printf, 3, 4))) void set_error(lt_MetalError *error, lt_MetalStatus status,
                                                     const char *format, ...);

/* ---- events.cpp ------------------------------------------------------------------------------ */

/* A value that only grows. */
class Event {
public:
  /* Sets the value, if it is larger than the current one. */
  void set(uint64_t value);
  /* Blocks until the event has at least that value. Returns false when it takes too long. */
  bool wait(uint64_t value);

private:
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t current = 0;
};
typedef std::shared_ptr<Event> EventRef;

/* ---- commands.cpp ---------------------------------------------------------------------------- */

/* A range of a device's memory. */
struct Range {
  Memory *memory;
  char *base; /* of the buffer, an allocation's address */
  char *at;
  size_t size;
};
/* Returns the nbytes at an offset in a buffer. Sets an error when they are not in it. */
Range range_of(const lt_MetalBuffer *buffer, size_t offset, size_t nbytes, lt_MetalError *error);
/* Returns true when the range's buffer is live; otherwise sets the error: a page fault. */
bool is_accessible(const Range &range, lt_MetalError *error);

/* A command of a command buffer. Returns false, with the error, when it fails. */
struct Command {
  virtual bool run(lt_MetalError *error) = 0;
  virtual ~Command() {}
};

} // namespace emulated

struct lt_MetalEvent {
  emulated::EventRef state;
};

/* ---- queues.cpp ------------------------------------------------------------------------------ */

namespace emulated {

struct CommandQueue final : Queue {
  lt_MetalDevice *device;
  std::mutex mutex; /* protects `unfinished` */
  std::condition_variable finished;
  int unfinished = 0; /* command buffers that exist */
};

} // namespace emulated

struct lt_MetalQueue {
  std::shared_ptr<emulated::CommandQueue> state;
};

struct lt_MetalCommands {
  std::shared_ptr<emulated::CommandQueue> queue;
  std::vector<std::unique_ptr<emulated::Command>> list;
  lt_MetalError error; /* of a command that is not allowed: the command buffer will fail */
};

#endif
