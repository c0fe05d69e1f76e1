/* toy_device.h: the smallest device that is as strange as a GPU: two of them, with memory that the
 * host cannot touch, whose work waits in a queue until somebody synchronizes. It proves that
 * device.h asks for nothing a CPU alone has. */
#ifndef TOY_DEVICE_H
#define TOY_DEVICE_H

#include "device.h"

/* Its kernels: elementwise (but for exp and erf), sum, mm, gather and scatter. */
extern const lt_Backend toy_backend;
int toy_waiting(int index);      /* pieces of work in the device's queue */
int toy_allocations(void);       /* blocks of memory that are not freed yet */
void toy_fail_next_alloc(int n); /* the next n allocations find no memory */
void toy_fail_after(int n);      /* the allocation after the next n finds none; -1: all do */

#endif
