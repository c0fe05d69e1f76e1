/* toy_device.h: the smallest device that behaves like a GPU: two devices, with memory that the host
 * cannot access, whose work is queued until the host synchronizes. It proves that device.h requires
 * nothing that only a CPU has. */
#ifndef TOY_DEVICE_H
#define TOY_DEVICE_H

#include "device.h"

/* Its kernels: elementwise (except exp and erf), sum, mm, gather and scatter. */
extern const lt_Backend toy_backend;
int toy_queued(int index);       /* pieces of work in the device's queue */
int toy_allocations(void);       /* blocks of memory that are not freed yet */
void toy_fail_next_alloc(int n); /* the next n allocations are out of memory */
void toy_fail_after(int n);      /* the allocation after the next n is out of memory; -1: none is */

#endif
