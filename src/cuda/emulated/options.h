/* options.h: what the environment says, read once.
 *
 *   LUTRA_EMULATE=cuda:2,memory=1GiB   devices (1 to 8; 1 if nothing is said), memory of each
 *   LUTRA_EMULATE=cuda:2,peer=off      no device reaches another's memory by itself: copies between
 *                                      them go by way of the host
 *   LUTRA_EMULATE_STRICT=1             host code that touches a device's memory ends with a
 *                                      message; poisons too
 *   LUTRA_EMULATE_POISON=1             new memory is filled with NaN
 *   LUTRA_EMULATE_ORDER=reverse        threads and blocks run last first: shows missing barriers
 *   LUTRA_EMULATE_DELAY=microseconds   a random delay up to that before each operation of a stream
 *   LUTRA_EMULATE_FAULT=oom@7,launch@12   the nth call of a kind fails; load: no memory for the
 *                                      code of a kernel, at a launch or when it is loaded
 *   LUTRA_EMULATE_WORKERS=n            system threads that share the blocks of one grid
 *   LUTRA_EMULATE_TIMEOUT=seconds      a kernel that runs longer is stopped: error 702
 *   LUTRA_EMULATE_DRIVER=none, old     as on a machine without a driver, with too old a one
 *   LUTRA_EMULATE_ARCHS="90"           as a build with that CUDA_ARCHS (the devices are sm_80)
 *   CUDA_VISIBLE_DEVICES, CUDA_LAUNCH_BLOCKING   as the real runtime
 *
 * What cannot be read is told once on stderr, and ignored.
 */
#ifndef LT_EMULATED_OPTIONS_H
#define LT_EMULATED_OPTIONS_H

#include <stddef.h>

namespace emulated {

enum { MAX_DEVICES = 8 };

enum class Fault { OOM, LOAD, LAUNCH, ILLEGAL, COPY, SYNC, EVENT, STREAM, HOST, BLAS, KINDS };
enum class Driver { PRESENT, NONE, OLD };

struct Options {
  int devices; /* that the machine has */
  int visible; /* that the program sees, and which they are */
  int visible_index[MAX_DEVICES];
  size_t memory;
  bool peer; /* devices can be given access to each other's memory */
  bool strict, poison, reverse, blocking;
  long delay; /* microseconds */
  int workers;
  double timeout; /* seconds; 0: none */
  Driver driver;
};

/* Read at the first call. */
const Options &options();

/* Counts a call of this kind; true when the environment wants this one to fail. Thread safe. */
bool injected(Fault kind);

} // namespace emulated

#endif
