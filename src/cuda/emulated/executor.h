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

/* A launch of a kernel. */
struct Grid {
  dim3 grid, block;
  size_t shared; /* dynamic shared memory, in bytes */
  lt_EmulatedLaunch *launch;
  int device;
  unsigned long long turn; /* for a user kernel, the turn in which it was queued: see
                            * stop_user_grids; else 0 */
};

enum { STOPPED = -1 }; /* from run_grid: the grid was stopped by stop_user_grids */
enum { MAX_THREADS = 1024, MAX_SHARED = 227 << 10, DEFAULT_SHARED = 48 << 10 };

/* Runs all blocks of a grid and returns when they have ended: 0, or the number of the cudaError of
 * a block that failed. Thread safe. */
int run_grid(const Grid &grid);

/* Stop user kernels, which may not terminate. Each of their grids belongs to the turn in which it
 * was queued. stop_user_grids ends the device's turn: its running grids are stopped, its queued
 * grids end when they begin. */
unsigned long long user_turn(int device);
void stop_user_grids(int device);

/* Returns the text of the last grid's fault, in a buffer of this thread; "" if there was none. */
const char *last_fault();

/* Describes an address in a device's memory (memory.cpp); false for other addresses. */
bool describe_address(const void *address, char *text, size_t size);

/* Installs the signal handlers of faults. Called when the runtime starts. */
void prepare_faults();
/* Makes running grids end after their current blocks, with cudaErrorCudartUnloading. */
void stop_executor();

} // namespace emulated

#endif
