/* driver.c: queues, events and buffers of Metal as the operations that src/tensor/accel calls. On a
 * lost device every operation fails at once, except that freeing succeeds.
 *
 * Metal counts memory for the whole process and lets it grow beyond what the device can use without
 * swapping. Here that recommended size is the limit.
 */
#include "queue.h"

/* Converts an error for accel. `doing` describes the call for the message. */
static lt_DriverStatus failed(int index, const lt_MetalError *error, const char *doing) {
  if (error->status == LT_METAL_NO_MEMORY) return LT_DRIVER_NO_MEMORY;
  lt_mps_fail(index, error, doing);
  return LT_DRIVER_FAILED;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Allocates a buffer, within the limit. Returns LT_DRIVER_NO_MEMORY without a message. */
static lt_DriverStatus allocate(int index, size_t nbytes, bool pinned, lt_MetalBuffer **out) {
  lt_MetalDevice *device = lt_mps_device(index);
  lt_MetalError error;
  lt_MetalFacts now;
  lt_metal_facts(device, &now);
  if (nbytes > now.largest_buffer || nbytes > now.recommended ||
      now.allocated > now.recommended - nbytes)
    return LT_DRIVER_NO_MEMORY;
  *out =
      lt_metal_buffer_new(device, nbytes, pinned ? LT_METAL_SHARED : lt_mps_storage(index), &error);
  if (*out) return LT_DRIVER_OK;
  return failed(index, &error, pinned ? "allocate pinned memory" : "allocate memory");
}

/* Allocates and registers a buffer. */
static lt_DriverStatus buffer_new(int index, size_t nbytes, bool pinned, lt_MetalBuffer **out) {
  if (!lt_mps_check_lost(index)) return LT_DRIVER_FAILED;
  lt_DriverStatus status = allocate(index, nbytes, pinned, out);
  if (status == LT_DRIVER_NO_MEMORY && lt_mps_queue_release_stages(index))
    status = allocate(index, nbytes, pinned, out);
  if (status != LT_DRIVER_OK || lt_mps_buffer_add(pinned, *out)) return status;
  lt_metal_buffer_free(*out);
  lt_fail_memory();
  return LT_DRIVER_FAILED;
}

static lt_DriverStatus memory_new(int index, size_t nbytes, void **out) {
  lt_MetalBuffer *buffer = NULL;
  lt_DriverStatus status = buffer_new(index, nbytes, false, &buffer);
  if (status == LT_DRIVER_OK) *out = (void *)(uintptr_t)buffer->address;
  return status;
}

/* On a lost device, too, nothing uses the memory: accel has synchronized the queues. */
static lt_DriverStatus memory_free(int index, void *memory) {
  (void)index;
  lt_metal_buffer_free(lt_mps_buffer_take(false, (uint64_t)(uintptr_t)memory));
  return LT_DRIVER_OK;
}

static lt_DriverStatus memory_info(int index, size_t *left, size_t *total) {
  lt_MetalFacts now;
  if (!lt_mps_check_lost(index)) return LT_DRIVER_FAILED;
  lt_metal_facts(lt_mps_device(index), &now);
  *total = now.recommended;
  *left = now.allocated < now.recommended ? now.recommended - now.allocated : 0;
  return LT_DRIVER_OK;
}

static lt_DriverStatus memory_fill(int index, void *memory, int byte, size_t nbytes, void *stream) {
  lt_DriverStatus status = LT_DRIVER_FAILED;
  size_t offset;
  lt_MpsQueue *q = lt_mps_queue_of(index, stream);
  lt_MetalBuffer *buffer = lt_mps_find_buffer((uint64_t)(uintptr_t)memory, nbytes, &offset);
  lt_MetalCommands *open = q && buffer ? lt_mps_queue_enter(q, "fill", &status) : NULL;
  if (!open) return status;
  lt_metal_fill(open, buffer, offset, nbytes, (uint8_t)byte);
  lt_mps_queue_leave(q, nbytes);
  return LT_DRIVER_OK;
}

static lt_DriverStatus host_new(size_t nbytes, void **out) {
  lt_MetalBuffer *buffer = NULL;
  lt_DriverStatus status = buffer_new(0, nbytes, true, &buffer);
  if (status == LT_DRIVER_OK) *out = buffer->contents;
  return status;
}

static lt_DriverStatus host_free(void *memory) {
  lt_metal_buffer_free(lt_mps_buffer_take(true, (uint64_t)(uintptr_t)memory));
  return LT_DRIVER_OK;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Metal's queues have no priorities. */
static lt_DriverStatus stream_new(int index, int priority, void **out, int *given) {
  lt_DriverStatus status;
  (void)priority;
  *given = 0;
  *out = lt_mps_queue_new(index, &status);
  return status;
}

static lt_DriverStatus stream_free(int index, void *stream) {
  (void)index;
  lt_mps_queue_free(stream);
  return LT_DRIVER_OK;
}

static lt_DriverStatus stream_query(int index, void *stream) {
  lt_MpsQueue *q = lt_mps_queue_of(index, stream);
  if (!q) return LT_DRIVER_FAILED;
  if (!lt_mps_queue_query(q)) return LT_DRIVER_NOT_READY;
  return lt_mps_check_lost(index) ? LT_DRIVER_OK : LT_DRIVER_FAILED;
}

static lt_DriverStatus stream_synchronize(int index, void *stream) {
  lt_MpsQueue *q = lt_mps_queue_of(index, stream);
  return q && lt_mps_queue_synchronize(q) ? LT_DRIVER_OK : LT_DRIVER_FAILED;
}

static lt_DriverStatus stream_wait_event(int index, void *stream, void *event) {
  lt_MpsQueue *q = lt_mps_queue_of(index, stream);
  if (!q) return LT_DRIVER_FAILED;
  lt_DriverStatus status = lt_mps_event_wait(q, event);
  if (status != LT_DRIVER_NO_MEMORY) return status;
  /* without a command buffer, block the host in place of the stream */
  return lt_mps_event_synchronize(event) ? LT_DRIVER_OK : LT_DRIVER_FAILED;
}

static lt_DriverStatus synchronize(int index) {
  return lt_mps_queues_synchronize(index) ? LT_DRIVER_OK : LT_DRIVER_FAILED;
}

/* ---- events ---------------------------------------------------------------------------------- */

static lt_DriverStatus event_new(int index, bool timing, void **out) {
  (void)index;
  lt_MpsEvent *e = calloc(1, sizeof *e);
  if (!e) {
    lt_fail_memory();
    return LT_DRIVER_FAILED;
  }
  e->timing = timing;
  *out = e;
  return LT_DRIVER_OK;
}

static lt_DriverStatus event_free(int index, void *event) {
  (void)index;
  lt_mps_event_clear(event);
  free(event);
  return LT_DRIVER_OK;
}

static lt_DriverStatus event_record(int index, void *event, void *stream) {
  lt_MpsQueue *q = lt_mps_queue_of(index, stream);
  if (!q || !lt_mps_check_lost(index)) return LT_DRIVER_FAILED;
  lt_mps_event_record(event, q);
  return LT_DRIVER_OK;
}

static lt_DriverStatus event_query(int index, void *event) {
  if (!lt_mps_event_query(event)) return LT_DRIVER_NOT_READY;
  return lt_mps_check_lost(index) ? LT_DRIVER_OK : LT_DRIVER_FAILED;
}

static lt_DriverStatus event_synchronize(int index, void *event) {
  (void)index;
  return lt_mps_event_synchronize(event) ? LT_DRIVER_OK : LT_DRIVER_FAILED;
}

static lt_DriverStatus event_elapsed(void *from, void *to, double *milliseconds) {
  *milliseconds = (lt_mps_event_time(to) - lt_mps_event_time(from)) * 1e3;
  return LT_DRIVER_OK;
}

/* Metal is not unloaded before the program ends. */
static bool alive(void) { return true; }

const lt_AccelDriver lt_mps_driver = {
    .count = lt_mps_count,
    .initialize = lt_mps_initialize,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .memory_info = memory_info,
    .memory_fill = memory_fill,
    .host_new = host_new,
    .host_free = host_free,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .synchronize = synchronize,
    .alive = alive,
};
