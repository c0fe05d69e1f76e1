/* fake_driver.h: a driver of an accelerator (accel.h) of which everything is known. Memory is the
 * host's, up to a capacity. Work is put on streams and happens when the test says so, one piece at
 * a time; waiting makes it happen. It watches its caller: memory that queued work uses must not be
 * given back, and what work has written must still be there when later work reads it. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "accel/accel.h"

#define FAKE_DEVICES 2

extern const lt_AccelDriver fake_driver; /* without memory_fill */

/* Forgets streams and events that were never freed, sets the capacity of each device in bytes, and
 * brings the driver back to life. No memory may be out. */
void fake_reset(size_t capacity);

/* Work on a stream: writes, or checks, a tag at both ends of a piece of memory. */
void fake_write(lt_Stream *s, void *memory, size_t nbytes, uint64_t tag);
void fake_check(lt_Stream *s, void *memory, size_t nbytes, uint64_t tag);
/* Lets the next piece of work of a stream happen; false: there was none, or it waits for another
 * stream. Stream `which` of the device, in order of making; 0 is the default stream. */
bool fake_step(int index, int which);
void fake_finish(int index);      /* all work of a device */
int fake_streams(int index);      /* streams of a device, ended ones too */
int fake_queued(int index);       /* pieces of work that have not happened */
int fake_streams_alive(void);     /* that were made and not freed */
int fake_events_alive(void);      /* native events */
int fake_initialized(int index);  /* calls of initialize */
size_t fake_used(int index);      /* bytes of a device that are out */
size_t fake_host_used(void);      /* bytes of pinned memory that are out */
int fake_host_calls(void);        /* calls of host_new */
int fake_queries(void);           /* calls of event_query */
const char *fake_complaint(void); /* what the caller did wrong first, or NULL */

/* The n-th call of memory_new from now on finds no memory, or fails; 0: none does. */
void fake_fail_memory(int n, bool hard);
void fake_fail_all(bool yes); /* every call of the driver, as after a lost context */
void fake_kill(void); /* the driver is gone: alive says no, and calls are complained about */

#endif
