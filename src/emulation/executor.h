/* executor.h: runs the blocks and threads of a grid on the CPU. */
#ifndef LT_EMULATION_EXECUTOR_H
#define LT_EMULATION_EXECUTOR_H

#include "emulated/threads.h"

#include <stddef.h>

namespace emulation {

/* A launch of a kernel. */
struct Grid {
  lt_EmulatedIndex grid, block; /* in blocks, in threads */
  size_t shared;                /* dynamic shared memory, in bytes */
  lt_EmulatedLaunch *launch;
  int device;
  /* For a user kernel the turn in which it was queued (see stop_user_grids), else 0. */
  unsigned long long turn;
  /* The grid's size in threads: blocks at its edges may be smaller. 0: all blocks are whole. */
  lt_EmulatedIndex threads;
  const void *constants; /* see lt_EmulatedBlock */
  double timeout;        /* seconds, where LUTRA_EMULATE_TIMEOUT is not set; 0: none */
};

/* The limits of a block, the largest of all backends. */
enum { MAX_THREADS = 1024, MAX_SHARED = 227 << 10 };

/* Runs all blocks of a grid and returns when they have ended: LT_EMULATED_OK, or the fault of a
 * block that failed. Thread safe. */
lt_EmulatedFault run_grid(const Grid &grid);

/* Stop user kernels, which may not terminate. Each of their grids belongs to the turn in which it
 * was queued. stop_user_grids ends the device's turn: its running grids are stopped, its queued
 * grids end when they begin. */
unsigned long long user_turn(int device);
void stop_user_grids(int device);

/* Returns the text of the last grid's fault, in a buffer of this thread; "" if there was none. */
const char *last_fault();

/* Installs the signal handlers of faults. Called when the runtime starts. */
void prepare_faults();
/* Makes running grids end after their current blocks, with LT_EMULATED_UNLOADING. */
void stop_executor();

} // namespace emulation

#endif
