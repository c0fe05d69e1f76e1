/* executor.h: runs the blocks and threads of a grid on the CPU. */
#ifndef LT_EMULATED_EXECUTOR_H
#define LT_EMULATED_EXECUTOR_H

#include "emulated/launch.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#include <stddef.h>

namespace emulated {

struct Grid {
  dim3 grid, block;
  size_t shared; /* bytes of dynamic shared memory */
  lt_EmulatedLaunch *launch;
  int device;
  unsigned long long turn; /* of a kernel of the user's own: see stop_user_grids; else 0 */
};

enum { STOPPED = -1 }; /* run_grid: the grid was ended from outside */
enum { MAX_THREADS = 1024, MAX_SHARED = 227 << 10, DEFAULT_SHARED = 48 << 10 };

/* Runs all blocks, and returns when they have ended: 0, or the number of the cudaError that
 * stopped one. Called by any number of system threads at a time. */
int run_grid(const Grid &grid);

/* Users' own kernels may have no end. Each grid of one belongs to the turn in which it was put on a
 * stream; stop_user_grids ends the device's turn: grids of it that run are stopped, those that wait
 * end when they begin. */
unsigned long long user_turn(int device);
void stop_user_grids(int device);

/* What stopped the last grid that failed: text for people, in a buffer of this thread. */
const char *last_fault();

/* Says what a host thread touched, if it was a device's memory (memory.cpp); false if not. */
bool describe_address(const void *address, char *text, size_t size);

/* Prepares the process: handlers of faults. At the first call of the runtime. */
void prepare_faults();
/* No block starts any more: grids end early, with cudaErrorCudartUnloading. */
void stop_executor();

} // namespace emulated

#endif
