/* faults.h: faults that stop a kernel: illegal addresses, division by zero, timeouts; and their
 * messages. */
#ifndef LT_EMULATION_FAULTS_H
#define LT_EMULATION_FAULTS_H

#include "block.h"

namespace emulation {

/* Stores the text of a fault, with the block and the thread; see last_fault. May be called in a
 * signal handler. */
void store_fault(const Worker *w, const char *what, unsigned thread);
/* Makes the calling system thread run blocks as this worker, and gives it a stack for signals; NULL
 * ends that. */
void set_worker(Worker *w);
/* Returns the calling thread's worker, or NULL. */
Worker *get_worker();
/* Begin and end the watch over a grid's run on this thread: for the timeout and stop_user_grids. */
void watch_begin(const Grid &grid);
void watch_end(const Grid &grid);

} // namespace emulation

#endif
