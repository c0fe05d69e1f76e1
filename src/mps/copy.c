/* copy.c: copies between the host and the device, and within the device.
 *
 * Pageable host memory is safe to use at once: a copy from it has read the bytes when the call
 * returns, and a copy to it is complete. Only copies from and to pinned memory stay queued, when
 * the caller asks for a non-blocking copy.
 *
 * Where host and device share their memory, the host copies itself: to the host when the work of
 * the stream is done; to the device when the stream has nothing to do. While it has, small copies
 * to the device are queued behind its work, through staging memory. Where the device has memory of
 * its own, all copies go through staging memory.
 */
#include "queue.h"

#define CHUNK ((size_t)16 << 20) /* bytes copied between two checks for an interrupt */

/* Memory of a tensor. */
typedef struct Place {
  lt_MetalBuffer *buffer;
  size_t offset;
} Place;

static bool find(const void *memory, size_t nbytes, Place *out) {
  out->buffer = lt_mps_find_buffer((uint64_t)(uintptr_t)memory, nbytes, &out->offset);
  return out->buffer || lt_fail("cannot copy: the memory does not belong to the device");
}

static bool find_pinned(const void *memory, size_t nbytes, Place *out) {
  out->buffer = lt_mps_find_pinned(memory, nbytes, &out->offset);
  return out->buffer;
}

/* Opens the queue for a command; when memory is out, frees unused memory and tries once more. */
static lt_MetalCommands *enter(int index, lt_MpsQueue *q, const char *name) {
  lt_DriverStatus status;
  lt_MetalCommands *open = lt_mps_queue_enter(q, name, &status);
  if (!open && status == LT_DRIVER_NO_MEMORY && lt_mps_backend.memory.retry(&lt_mps_backend, index))
    open = lt_mps_queue_enter(q, name, &status);
  if (!open && status == LT_DRIVER_NO_MEMORY)
    lt_error_memory("%s: cannot create a command buffer: out of memory", lt_user_op());
  return open;
}

/* Queues a copy within the device's and pinned memory. */
static bool queue_copy(int index, lt_MpsQueue *q, Place to, Place from, size_t nbytes) {
  lt_MetalCommands *open = enter(index, q, "copy");
  if (!open) return false;
  lt_metal_copy(open, to.buffer, to.offset, from.buffer, from.offset, nbytes);
  lt_mps_queue_leave(q, 2 * nbytes);
  return true;
}

/* Blocks, unless interrupted, until the stream is done. */
static bool wait_for(lt_MpsQueue *q, lt_Stream *stream) {
  return lt_wait_stream(stream) && lt_mps_queue_synchronize(q);
}

/* Copies in pieces, so that Ctrl-C is checked between them. */
static bool copy_on_host(void *target, const void *source, size_t nbytes) {
  for (size_t i = 0; i < nbytes; i += CHUNK) {
    if (i && !lt_check_interrupt()) return false;
    memcpy((char *)target + i, (const char *)source + i, nbytes - i < CHUNK ? nbytes - i : CHUNK);
  }
  return true;
}

/* ---- through staging memory ------------------------------------------------------------------ */

/* Queues a small copy to the device. *staged is false when there is no staging memory. */
static bool send_staged(int index, lt_MpsQueue *q, Place to, const void *source, size_t nbytes,
                        bool *staged) {
  Place stage;
  lt_MetalCommands *open = enter(index, q, "copy");
  *staged = open;
  if (!open) return false;
  void *memory = lt_mps_queue_stage(q, nbytes, &stage.buffer, &stage.offset);
  *staged = memory;
  if (!memory) {
    lt_mps_queue_cancel(q);
    return true;
  }
  memcpy(memory, source, nbytes);
  lt_metal_copy(open, to.buffer, to.offset, stage.buffer, stage.offset, nbytes);
  lt_mps_queue_leave(q, 2 * nbytes);
  return true;
}

/* Copies a piece from (`send`) or to the host through pinned memory. When interrupted, the pinned
 * memory stays reserved until the copy is done; the host does not block for it. */
static bool copy_piece(int index, lt_MpsQueue *q, lt_Stream *stream, Place device, void *host,
                       size_t nbytes, bool send) {
  const lt_Backend *b = &lt_mps_backend;
  Place stage;
  void *memory = b->memory.host_alloc(b, nbytes);
  if (!memory) return false;
  lt_Event *done = b->streams.event_create(b, index, false);
  bool ok = done && find_pinned(memory, nbytes, &stage);
  if (ok && send) memcpy(memory, host, nbytes);
  ok = ok && (send ? queue_copy(index, q, device, stage, nbytes)
                   : queue_copy(index, q, stage, device, nbytes));
  ok = ok && b->streams.event_record(done, stream) && lt_wait_event(done) &&
       b->streams.event_synchronize(done);
  if (ok && !send) memcpy(host, memory, nbytes);
  b->memory.host_free(b, memory, nbytes, done);
  return ok;
}

static bool copy_pieces(int index, lt_MpsQueue *q, lt_Stream *stream, Place device, void *host,
                        size_t nbytes, bool send) {
  bool ok = true;
  for (size_t i = 0; ok && i < nbytes; i += CHUNK)
    ok = lt_check_interrupt() &&
         copy_piece(index, q, stream, (Place){device.buffer, device.offset + i}, (char *)host + i,
                    nbytes - i < CHUNK ? nbytes - i : CHUNK, send);
  return ok;
}

/* ---- directions ------------------------------------------------------------------------------ */

static bool to_device(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                      bool non_blocking) {
  lt_MpsQueue *q = lt_mps_queue_of(index, lt_accel_native(stream));
  Place to, pinned;
  bool staged = false;
  if (!q || !find(target, nbytes, &to)) return false;
  if (non_blocking && find_pinned(source, nbytes, &pinned))
    return queue_copy(index, q, to, pinned, nbytes);
  char *shared = to.buffer->contents;
  if (shared && lt_mps_queue_is_idle(q)) return copy_on_host(shared + to.offset, source, nbytes);
  if (nbytes <= LT_MPS_STAGE) {
    bool ok = send_staged(index, q, to, source, nbytes, &staged);
    if (staged || !ok) return ok;
  }
  if (!shared) return copy_pieces(index, q, stream, to, (void *)(uintptr_t)source, nbytes, true);
  return wait_for(q, stream) && copy_on_host(shared + to.offset, source, nbytes);
}

static bool to_host(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                    bool non_blocking) {
  lt_MpsQueue *q = lt_mps_queue_of(index, lt_accel_native(stream));
  Place from, pinned;
  if (!q || !find(source, nbytes, &from)) return false;
  if (non_blocking && find_pinned(target, nbytes, &pinned))
    return queue_copy(index, q, pinned, from, nbytes);
  const char *shared = from.buffer->contents;
  bool ok = shared ? wait_for(q, stream) && copy_on_host(target, shared + from.offset, nbytes)
                   : copy_pieces(index, q, stream, from, target, nbytes, false);
  return ok && lt_mps_fault_check(index);
}

/* ---- lt_Backend ------------------------------------------------------------------------------ */

bool lt_mps_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                 lt_Stream *stream, bool non_blocking) {
  int index = to.type == LT_DEVICE_cpu ? from.index : to.index;
  Place a, b;
  if (nbytes == 0) return true;
  if (!lt_mps_check_lost(index) || !lt_mps_fault_check(index)) return false;
  if (from.type == LT_DEVICE_cpu)
    return to_device(index, target, source, nbytes, stream, non_blocking);
  if (to.type == LT_DEVICE_cpu) return to_host(index, target, source, nbytes, stream, non_blocking);
  lt_MpsQueue *q = lt_mps_queue_of(index, lt_accel_native(stream));
  return q && find(target, nbytes, &a) && find(source, nbytes, &b) &&
         queue_copy(index, q, a, b, nbytes);
}

bool lt_mps_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  Place to;
  lt_MpsQueue *q = lt_mps_queue_of(index, lt_accel_native(stream));
  if (nbytes == 0) return true;
  if (!q || !find(memory, nbytes, &to)) return false;
  lt_MetalCommands *open = enter(index, q, "fill");
  if (!open) return false;
  lt_metal_fill(open, to.buffer, to.offset, nbytes, 0);
  lt_mps_queue_leave(q, nbytes);
  return true;
}

lt_Tensor *lt_mps_upload(const lt_Call *c, const void *bytes, size_t nbytes) {
  int64_t size = (int64_t)nbytes;
  lt_Tensor *t = lt_empty(LT_uint8, c->device, 1, &size);
  if (t && nbytes &&
      !to_device(c->device.index, lt_tensor_data(t), bytes, nbytes, c->stream, false)) {
    lt_release(t);
    t = NULL;
  }
  return t;
}
