/* queue.h: streams and events, for driver.c, launch.c and copy.c.
 *
 * A stream is a queue of Metal. Its commands are collected in an open command buffer, a batch,
 * which is committed when it is full, when the queue has nothing else to do, and when the host or
 * another stream waits for it. Batches are numbered from 1; the queue's event (`timeline`) gets the
 * number of each batch that is done, so that other queues can wait for it.
 *
 * A queue is never destroyed: a stream that is freed leaves its queue to the next new stream. So a
 * batch, and an event that refers to it, can refer to its queue forever.
 */
#ifndef LT_MPS_QUEUE_H
#define LT_MPS_QUEUE_H

#include "accel/launches.h"
#include "mps.h"

typedef struct lt_MpsQueue lt_MpsQueue;
typedef struct lt_MpsBatch lt_MpsBatch;

/* Returns a queue for a new stream; NULL with *status, and a message unless memory is out. */
lt_MpsQueue *lt_mps_queue_new(int index, lt_DriverStatus *status);
/* Commits what is open, and leaves the queue to a later stream. Does not block. */
void lt_mps_queue_free(lt_MpsQueue *q);
/* Returns the queue of a stream by accel's handle, which is NULL for the default stream. NULL with
 * a message when the queue of the default stream cannot be created. */
lt_MpsQueue *lt_mps_queue_of(int index, void *native);

/* ---- commands -------------------------------------------------------------------------------- */

/* Opens the queue's command buffer for one command, and locks the queue until lt_mps_queue_leave.
 * `kernel` names the command in the message of a failed command buffer, and lives as long as the
 * program. Returns NULL, without the lock, with *status and a message (but none when memory is out,
 * so that the caller can free memory and try again). */
lt_MetalCommands *lt_mps_queue_enter(lt_MpsQueue *q, const char *kernel, lt_DriverStatus *status);
/* Ends a command that reads and writes about nbytes: commits the command buffer when it is due, and
 * unlocks the queue. */
void lt_mps_queue_leave(lt_MpsQueue *q, size_t nbytes);
/* Ends a command that was not encoded after all. */
void lt_mps_queue_cancel(lt_MpsQueue *q);
/* Returns host memory that a command of the queue can read, and the place of it in a buffer;
 * between enter and leave. It is reused when the command is done. NULL, without a message, when
 * there is none. nbytes is at most LT_MPS_STAGE. */
void *lt_mps_queue_stage(lt_MpsQueue *q, size_t nbytes, lt_MetalBuffer **buffer, size_t *offset);
#define LT_MPS_STAGE ((size_t)256 << 10)
/* Frees the staging memory that no command uses. Returns false when there is none. */
bool lt_mps_queue_release_stages(int index);

/* ---- waiting --------------------------------------------------------------------------------- */

/* Returns true when all work of the queue is done; commits what is open. */
bool lt_mps_queue_query(lt_MpsQueue *q);
/* Returns true when the queue has no work, not even open: then the host may access memory that only
 * this stream uses. */
bool lt_mps_queue_is_idle(lt_MpsQueue *q);
/* Commits what is open, and blocks until all work of the queue is done. Returns false with a
 * message when the device is lost. */
bool lt_mps_queue_synchronize(lt_MpsQueue *q);
/* Does so for all queues of a device. */
bool lt_mps_queues_synchronize(int index);
/* Ends the thread that commits open batches. Called at the end of the program. */
void lt_mps_queues_stop(void);

/* ---- events ---------------------------------------------------------------------------------- */

/* An event: the batch that was open, or the last one, when it was recorded. */
typedef struct lt_MpsEvent {
  bool timing;
  lt_MpsBatch *batch; /* NULL: there was none, so the event is done */
  double recorded;    /* on the clock of the device, with `timing` */
} lt_MpsEvent;

/* Records an event on a queue. An event with timing ends the batch. */
void lt_mps_event_record(lt_MpsEvent *e, lt_MpsQueue *q);
/* Frees what a recorded event refers to. */
void lt_mps_event_clear(lt_MpsEvent *e);
/* Returns true when the work before the event is done; commits it if it is open. */
bool lt_mps_event_query(lt_MpsEvent *e);
/* Blocks until the work before the event is done. Returns false with a message when the device is
 * lost. */
bool lt_mps_event_synchronize(lt_MpsEvent *e);
/* Makes the later commands of a queue wait for the event. */
lt_DriverStatus lt_mps_event_wait(lt_MpsQueue *q, lt_MpsEvent *e);
/* Returns the time of an event that is done, in seconds. */
double lt_mps_event_time(lt_MpsEvent *e);

/* ---- counters, for tests --------------------------------------------------------------------- */

/* What the queues of all devices have done since the program started. */
typedef struct lt_MpsCounters {
  uint64_t commands, batches, waits; /* encoded; committed; waits between queues */
} lt_MpsCounters;
void lt_mps_counters(lt_MpsCounters *out);

/* ---- errors.c -------------------------------------------------------------------------------- */

/* The last launches of a command buffer. */
typedef struct lt_MpsRecent {
  uint64_t count;
  lt_LaunchNote launch[LT_LAUNCHES]; /* launch i is at i % LT_LAUNCHES */
} lt_MpsRecent;

/* Marks the device as lost because of a command buffer with these launches. The first error decides
 * the message. Called on any thread; sets no error. */
void lt_mps_mark_lost(int index, const lt_MetalError *error, const lt_MpsRecent *recent);
/* Returns true, or false with the message when the device is lost. */
bool lt_mps_check_lost(int index);
/* For tests, which have no other device: makes a lost device usable again. */
void lt_mps_forget_lost(int index);

/* ---- memory.c -------------------------------------------------------------------------------- */

/* Register the live buffers: of tensors by the address on the GPU, of pinned memory by that on the
 * host. lt_mps_buffer_add returns false when the host's memory is out; lt_mps_buffer_take returns
 * the buffer that begins at the address, which is then no longer registered, or NULL. */
bool lt_mps_buffer_add(bool pinned, lt_MetalBuffer *buffer);
lt_MetalBuffer *lt_mps_buffer_take(bool pinned, uint64_t address);
/* The storage of tensors: shared where host and device share their memory. */
lt_MetalStorage lt_mps_storage(int index);

/* ---- pipeline.c ------------------------------------------------------------------------------ */

typedef struct lt_MpsPipeline {
  lt_MetalPipeline *native;
  const char *name; /* of the kernel; lives as long as the program */
} lt_MpsPipeline;
/* Finds or compiles a kernel of this folder. Returns false with *status, and a message unless
 * memory is out. */
bool lt_mps_pipeline(int index, const char *file, const char *kernel,
                     const int32_t constants[LT_MPS_CONSTANTS], lt_MpsPipeline *out,
                     lt_DriverStatus *status);
/* Writes the compiled kernels to the cache of the next run. Called at the end of the program. */
void lt_mps_pipelines_keep(void);

#endif
