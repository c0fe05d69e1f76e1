/* settings.h: the environment variables of the emulated CUDA, read once, besides those of
 * src/emulation/options.h.
 *
 *   LUTRA_EMULATE_DRIVER=none, old     behaves as without a driver, or with one that is too old
 *   LUTRA_EMULATE_ARCHS="90"           behaves as a build with this CUDA_ARCHS (the GPU is sm_80)
 *   CUDA_VISIBLE_DEVICES, CUDA_LAUNCH_BLOCKING   as in the real runtime
 */
#ifndef LT_EMULATED_SETTINGS_H
#define LT_EMULATED_SETTINGS_H

#include "emulation/options.h"

namespace emulated {

using namespace emulation;

enum class Driver { PRESENT, NONE, OLD };

struct Settings {
  int visible; /* number of devices that the program sees, and their indices */
  int visible_index[MAX_DEVICES];
  bool blocking;
  Driver driver;
};

/* Returns the settings, which are read at the first call. Thread safe. */
const Settings &settings();

} // namespace emulated

#endif
