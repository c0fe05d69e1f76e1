/* launches.h: kernels put on streams from inside the runtime. */
#ifndef LT_EMULATED_LAUNCHES_H
#define LT_EMULATED_LAUNCHES_H

#include "cuda_runtime.h"

namespace emulated {

/* lt_emulated_launch for a kernel of the user's own, which stop_user_grids ends. */
cudaError_t launch_user(const cudaLaunchConfig_t *config, const void *kernel,
                        lt_EmulatedLaunch *launch);

} // namespace emulated

#endif
