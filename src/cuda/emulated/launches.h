/* launches.h: launches of kernels from inside the runtime. */
#ifndef LT_EMULATED_LAUNCHES_H
#define LT_EMULATED_LAUNCHES_H

#include "cuda_runtime.h"

namespace emulated {

/* Does what lt_emulated_launch does for a user kernel, which stop_user_grids can stop. */
cudaError_t launch_user(const cudaLaunchConfig_t *config, const void *kernel,
                        lt_EmulatedLaunch *launch);

} // namespace emulated

#endif
