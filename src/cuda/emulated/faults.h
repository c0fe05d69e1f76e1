/* faults.h: what stops a kernel from outside: bad addresses, division by zero, the watchdog; and
 * the words for it. */
#ifndef LT_EMULATED_FAULTS_H
#define LT_EMULATED_FAULTS_H

#include "block.h"

namespace emulated {

/* Keeps a text about a fault, with the block and the thread; see last_fault. Callable from a signal
 * handler. */
void note_fault(const Worker *w, const char *what, unsigned thread);
/* The calling system thread will run blocks as this worker; NULL: no more. Gives it a stack for
 * signals. */
void set_worker(Worker *w);
Worker *get_worker();
/* Around a grid's run on this thread. */
void watch_begin(const Grid &grid);
void watch_end(const Grid &grid);

} // namespace emulated

#endif
