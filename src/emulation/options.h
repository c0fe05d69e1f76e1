/* options.h: the environment variables of the emulation, read once.
 *
 *   LUTRA_EMULATE=cuda:2,mps,memory=1GiB   number of devices of each type (1 to 8; default 1),
 *                                      memory of each device
 *   LUTRA_EMULATE=cuda:2,peer=off      no peer access: copies between devices go through the host
 *   LUTRA_EMULATE=cuda,libraries=off   libraries that a backend can do without are not found
 *   LUTRA_EMULATE_STRICT=1             host code that accesses a device's memory ends with a
 *                                      message; implies POISON; see barriers_need_all
 *   LUTRA_EMULATE_POISON=1             new memory is filled with NaN
 *   LUTRA_EMULATE_ORDER=reverse        threads and blocks run in reverse order: finds missing
 *                                      barriers
 *   LUTRA_EMULATE_DELAY=microseconds   a random delay up to this before each operation of a queue
 *   LUTRA_EMULATE_FAULT=oom@7,launch@12   the nth call of a kind fails; see Fault
 *   LUTRA_EMULATE_WORKERS=n            number of system threads that share the blocks of a grid
 *   LUTRA_EMULATE_TIMEOUT=seconds      a kernel that runs longer is stopped
 *
 * A value that is invalid is reported once on stderr, and ignored. CUDA's own variables are in
 * src/cuda/emulated/settings.h.
 */
#ifndef LT_EMULATION_OPTIONS_H
#define LT_EMULATION_OPTIONS_H

#include <stddef.h>

namespace emulation {

enum { MAX_DEVICES = 8 };

/* The type of the devices, such as "cuda": its item in LUTRA_EMULATE. Defined by the backend. */
extern const char *const device_type;

/* A barrier requires all threads of the block, also those that have returned; strict mode then
 * reports a kernel that does without. Defined by the backend. */
extern const bool barriers_need_all;

/* The kinds of calls that LUTRA_EMULATE_FAULT can make fail, of all backends. */
enum class Fault {
  /* CUDA. LOAD: out of memory for a kernel's code, at a launch or when it is loaded. */
  OOM,
  LOAD,
  LAUNCH,
  ILLEGAL,
  COPY,
  SYNC,
  EVENT,
  STREAM,
  HOST,
  BLAS,
  PLAN, /* of a Fourier transform */
  FFT,
  GRAPH, /* a capture's begin or end, or a graph's instantiation or launch */
  NCCL,  /* a collective or message between ranks */
  /* Metal. COMMIT: a command buffer fails; OOM: it fails for lack of memory; LOST: the device is
   * lost; ILLEGAL: a dispatch has a page fault; WAIT: a wait for an event times out. */
  BUFFER,
  LIBRARY,
  PIPELINE,
  QUEUE,
  COMMANDS,
  COMMIT,
  WAIT,
  LOST,
  KINDS
};

/* The values of the environment variables. */
struct Options {
  int devices; /* number of devices of the machine */
  size_t memory;
  bool peer;      /* peer access between devices is possible */
  bool libraries; /* optional libraries are found */
  bool strict, poison, reverse;
  long delay; /* microseconds */
  int workers;
  double timeout; /* seconds; 0: none */
};

/* Returns the options, which are read at the first call. Thread safe. */
const Options &options();

/* Counts a call of this kind. Returns true when LUTRA_EMULATE_FAULT makes this call fail. Thread
 * safe. */
bool injected(Fault kind);

/* Reports an invalid value of a variable on stderr. */
void report_invalid(const char *variable, const char *value, const char *expected);
/* Returns true when a variable is set to other than "" and 0. */
bool is_on(const char *variable);

} // namespace emulation

#endif
