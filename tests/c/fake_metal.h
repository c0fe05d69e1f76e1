/* fake_metal.h: metal.h under the test's control, for the tests of src/mps. Buffers are memory of
 * the host; private ones have other addresses, so that nobody but the device can access them. A
 * thread runs the commands of all queues, one command buffer at a time; the test can hold it. It
 * checks its caller: a buffer that unfinished commands use must not be freed, and commands stay
 * within their buffers. */
#ifndef FAKE_METAL_H
#define FAKE_METAL_H

#include "mps/metal.h"

/* While held, no command runs. The host must not block then. */
void fake_metal_hold(bool yes);

/* Registers the kernel that runs for a name: it gets the memory or the value of each argument, and
 * the number of threads. */
typedef void (*FakeKernel)(void **arguments, uint64_t threads);
void fake_metal_kernel(const char *name, FakeKernel run);

/* The n-th call from now on that may fail does, with this status; 0: none. */
void fake_metal_fail(int n, lt_MetalStatus status);
/* Returns true when such a call has failed since then. */
bool fake_metal_failed(void);
/* The n-th command buffer that runs from now on fails with this status; 0: none. */
void fake_metal_fail_commands(int n, lt_MetalStatus status);

/* Objects that were created and not freed. */
typedef struct FakeMetalCounts {
  int buffers, queues, events, commands;
} FakeMetalCounts;
FakeMetalCounts fake_metal_alive(void);
const char *fake_metal_error(void); /* the first error of the caller, or NULL */

/* The sizes of the memory, and whether the device shares it with the host. */
void fake_metal_memory(uint64_t recommended, bool unified);

#endif
