/* fake_driver.h: a driver of an accelerator (accel.h) under the test's control. Its memory is the
 * host's, up to a capacity. Queued work runs when the test requests it, one piece at a time, or
 * when it is synchronized with. The driver checks its caller: memory that queued work uses must not
 * be freed, and what work has written must still be there when later work reads it. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "accel/accel.h"

#define FAKE_DEVICES 2

extern const lt_AccelDriver fake_driver; /* without memory_fill */

/* Forgets streams and events that were never freed, sets the capacity of each device in bytes, and
 * revives the driver. No memory may be allocated. */
void fake_reset(size_t capacity);

/* Queue work that writes a tag to both ends of a piece of memory, or checks it. */
void fake_write(lt_Stream *s, void *memory, size_t nbytes, uint64_t tag);
void fake_check(lt_Stream *s, void *memory, size_t nbytes, uint64_t tag);
/* Runs the next piece of work of a stream: stream number `which` of the device, in order of
 * creation; 0 is the default stream. Returns false when there is none, or it waits for another
 * stream. */
bool fake_step(int index, int which);
void fake_finish(int index);     /* runs all work of a device */
int fake_streams(int index);     /* number of streams of a device, destroyed ones too */
int fake_queued(int index);      /* pieces of work that have not run */
int fake_streams_alive(void);    /* created and not destroyed */
int fake_events_alive(void);     /* native events */
int fake_initialized(int index); /* calls of initialize */
size_t fake_used(int index);     /* allocated bytes of a device */
size_t fake_host_used(void);     /* allocated bytes of pinned memory */
int fake_host_calls(void);       /* calls of host_new */
int fake_queries(void);          /* calls of event_query */
const char *fake_error(void);    /* the first error of the caller, or NULL */

/* The n-th call of memory_new from now on reports out of memory, or, with `hard`, another error; 0:
 * none does. */
void fake_fail_memory(int n, bool hard);
void fake_fail_all(bool yes); /* every call of the driver fails, as after a lost context */
void fake_kill(void); /* the driver is unloaded: alive returns false, and calls are errors */

#endif
