/* options.h: the environment variables of the emulation, read once.
 *
 *   LUTRA_EMULATE=cuda:2,memory=1GiB   number of devices (1 to 8; default 1), memory of each
 *   LUTRA_EMULATE=cuda:2,peer=off      no peer access: copies between devices go through the host
 *   LUTRA_EMULATE_STRICT=1             host code that accesses a device's memory ends with a
 *                                      message; implies POISON
 *   LUTRA_EMULATE_POISON=1             new memory is filled with NaN
 *   LUTRA_EMULATE_ORDER=reverse        threads and blocks run in reverse order: finds missing
 *                                      barriers
 *   LUTRA_EMULATE_DELAY=microseconds   a random delay up to this before each operation of a stream
 *   LUTRA_EMULATE_FAULT=oom@7,launch@12   the nth call of a kind fails; load: out of memory for
 *                                      a kernel's code, at a launch or when it is loaded
 *   LUTRA_EMULATE_WORKERS=n            number of system threads that share the blocks of a grid
 *   LUTRA_EMULATE_TIMEOUT=seconds      a kernel that runs longer is stopped: error 702
 *   LUTRA_EMULATE_DRIVER=none, old     behaves as without a driver, or with one that is too old
 *   LUTRA_EMULATE_ARCHS="90"           behaves as a build with this CUDA_ARCHS (the GPU is sm_80)
 *   CUDA_VISIBLE_DEVICES, CUDA_LAUNCH_BLOCKING   as in the real runtime
 *
 * A value that is invalid is reported once on stderr, and ignored.
 */
#ifndef LT_EMULATED_OPTIONS_H
#define LT_EMULATED_OPTIONS_H

#include <stddef.h>

namespace emulated {

enum { MAX_DEVICES = 8 };

/* The kinds of calls that LUTRA_EMULATE_FAULT can make fail. */
enum class Fault { OOM, LOAD, LAUNCH, ILLEGAL, COPY, SYNC, EVENT, STREAM, HOST, BLAS, KINDS };
enum class Driver { PRESENT, NONE, OLD };

/* The values of the environment variables. */
struct Options {
  int devices; /* number of devices of the machine */
  int visible; /* number of devices that the program sees, and their indices */
  int visible_index[MAX_DEVICES];
  size_t memory;
  bool peer; /* peer access between devices is possible */
  bool strict, poison, reverse, blocking;
  long delay; /* microseconds */
  int workers;
  double timeout; /* seconds; 0: none */
  Driver driver;
};

/* Returns the options, which are read at the first call. Thread safe. */
const Options &options();

/* Counts a call of this kind. Returns true when LUTRA_EMULATE_FAULT makes this call fail. Thread
 * safe. */
bool injected(Fault kind);

} // namespace emulated

#endif
