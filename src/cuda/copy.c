/* copy.c: copies between the host and devices, and between devices.
 *
 * Pageable host memory is safe to use at once: a copy from it has read the bytes when the call
 * returns, and a copy to it is complete. Only copies from and to pinned memory stay queued, when
 * the caller asks for a non-blocking copy; the caller then marks the storage
 * (lt_storage_set_pending), and readers synchronize.
 *
 * Ctrl-C interrupts the host where it blocks. So before the driver gets pageable memory, the host
 * blocks (interruptibly) until the work queued on the stream is done; the copy itself then takes
 * only as long as its bytes need. Small copies go through staging memory, pinned memory that
 * outlives an interrupted copy.
 *
 * A capture records copies within the device and those that stay queued. Other copies are refused:
 * the host would have to block, or its memory would have to keep the values.
 */
#include "communication.h"
#include "cuda.h"

#define STAGED ((size_t)64 << 10) /* copies up to this size go through staging memory */
#define CHUNK  ((size_t)64 << 20) /* bytes copied between two checks for an interrupt */

/* Hints for copies that cannot be captured. */
#define COPY_BEFORE                                                                                \
  "copy to the device before the capture, and x:copy_(y) into the same tensor before each replay"
#define READ_AFTER "read results after g:replay()"

/* Returns true for pinned host memory, which devices access directly. */
static bool is_pinned(const void *memory) {
  struct cudaPointerAttributes a;
  if (cudaPointerGetAttributes(&a, memory) == cudaSuccess) return a.type == cudaMemoryTypeHost;
  cudaGetLastError();
  return false;
}

/* Queues the copy on the stream. */
static bool queue_copy(void *target, const void *source, size_t nbytes, enum cudaMemcpyKind kind,
                       lt_Stream *stream) {
  return lt_cuda_ok(
      cudaMemcpyAsync(target, source, nbytes, kind, (cudaStream_t)lt_accel_native(stream)),
      kind == cudaMemcpyHostToDevice ? "copy to the device" : "copy to the host");
}

static bool wait_for(int index, lt_Stream *stream) {
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  if (!lt_cuda_ok(cudaStreamSynchronize(native), "wait for a copy")) return false;
  lt_cuda_note_completed(index, native, false);
  return true;
}

/* Copies in pieces and blocks until each is done, so that Ctrl-C is checked between them. */
static bool copy_and_wait(int index, void *target, const void *source, size_t nbytes,
                          enum cudaMemcpyKind kind, lt_Stream *stream) {
  bool ok = lt_wait_stream(stream);
  for (size_t i = 0; ok && i < nbytes; i += CHUNK)
    ok = lt_check_interrupt() &&
         queue_copy((char *)target + i, (const char *)source + i,
                    nbytes - i < CHUNK ? nbytes - i : CHUNK, kind, stream) &&
         wait_for(index, stream);
  return ok;
}

/* Allocates pinned staging memory, and an event for the copy from or to it. Returns false, without
 * a message, where either is not available. The send or receive function frees both. */
static bool open_stage(int index, size_t nbytes, void **stage, lt_Event **done) {
  const lt_Backend *b = &lt_cuda_backend;
  *stage = b->memory.host_alloc(b, nbytes);
  *done = *stage ? b->streams.event_create(b, index, false) : NULL;
  if (*stage && !*done) b->memory.host_free(b, *stage, nbytes, NULL);
  return *done;
}

/* Copies to the device through staging memory, which is reused only after the copy is done. The
 * host does not block. */
static bool send_staged(int index, void *target, const void *source, size_t nbytes,
                        lt_Stream *stream, void *stage, lt_Event *done) {
  const lt_Backend *b = &lt_cuda_backend;
  memcpy(stage, source, nbytes);
  bool ok = queue_copy(target, stage, nbytes, cudaMemcpyHostToDevice, stream);
  if (ok && !b->streams.event_record(done, stream)) ok = wait_for(index, stream);
  b->memory.host_free(b, stage, nbytes, done);
  return ok;
}

/* Copies to the host through staging memory and blocks until it is done. When interrupted, the
 * staging memory stays reserved until the copy is done; the host does not block for it. */
static bool receive_staged(int index, void *target, const void *source, size_t nbytes,
                           lt_Stream *stream, void *stage, lt_Event *done) {
  const lt_Backend *b = &lt_cuda_backend;
  bool ok = queue_copy(stage, source, nbytes, cudaMemcpyDeviceToHost, stream);
  if (ok && b->streams.event_record(done, stream)) ok = lt_wait_event(done);
  ok = ok && wait_for(index, stream);
  if (ok) memcpy(target, stage, nbytes);
  b->memory.host_free(b, stage, nbytes, done);
  return ok;
}

static bool to_device(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                      bool non_blocking) {
  bool pinned = is_pinned(source);
  void *stage;
  lt_Event *done;
  if (pinned && non_blocking)
    return queue_copy(target, source, nbytes, cudaMemcpyHostToDevice, stream);
  if (!lt_capture_allows(&lt_cuda_backend, index, "copy from the host", COPY_BEFORE)) return false;
  if (!pinned && nbytes <= STAGED && open_stage(index, nbytes, &stage, &done))
    return send_staged(index, target, source, nbytes, stream, stage, done);
  return copy_and_wait(index, target, source, nbytes, cudaMemcpyHostToDevice, stream);
}

static bool to_host(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                    bool non_blocking) {
  void *stage;
  lt_Event *done;
  if (non_blocking && is_pinned(target))
    return queue_copy(target, source, nbytes, cudaMemcpyDeviceToHost, stream);
  if (!lt_capture_allows(&lt_cuda_backend, index, "copy to the host", READ_AFTER)) return false;
  bool staged = nbytes <= STAGED && open_stage(index, nbytes, &stage, &done);
  return (staged ? receive_staged(index, target, source, nbytes, stream, stage, done)
                 : copy_and_wait(index, target, source, nbytes, cudaMemcpyDeviceToHost, stream)) &&
         lt_cuda_fault_check(index) && lt_cuda_communication_check(index);
}

/* ---- between devices ------------------------------------------------------------------------- */

/* Enables access from `device`, which is selected, to the memory of `other`, where the machine
 * supports it; tried once for each pair. Without access the driver copies through the host. */
static void enable_peer_access(int device, int other) {
  static atomic_bool tried[LT_ACCEL_MAX][LT_ACCEL_MAX];
  if (atomic_exchange(&tried[device][other], true)) return;
  if (lt_cuda_backend.memory.can_access_peer(&lt_cuda_backend, device, other) &&
      cudaDeviceEnablePeerAccess(other, 0) != cudaSuccess)
    cudaGetLastError();
}

/* Orders two streams: work queued on `later`, a stream of device `at`, from now on runs after the
 * work already queued on `sooner`, a stream of device `of`. */
static bool order(int of, cudaStream_t sooner, int at, cudaStream_t later) {
  cudaEvent_t event;
  if (!lt_cuda_select(of) ||
      !lt_cuda_ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create an event"))
    return false;
  bool ok = lt_cuda_ok(cudaEventRecord(event, sooner), "record an event") && lt_cuda_select(at) &&
            lt_cuda_ok(cudaStreamWaitEvent(later, event, 0), "make a stream wait for an event");
  cudaEventDestroy(event); /* the driver frees it once it has completed */
  return ok;
}

/* Copies between two devices. Both streams are ordered around the copy: the source has been written
 * before it is read, and is not overwritten or freed until it has been read. */
static bool copy_between(int to, void *target, int from, const void *source, size_t nbytes,
                         cudaStream_t stream) {
  const lt_Backend *b = &lt_cuda_backend;
  if (!lt_capture_allows(b, to, "copy between devices", NULL) ||
      !lt_capture_allows(b, from, "copy between devices", NULL))
    return false;
  cudaStream_t other = (cudaStream_t)lt_accel_native(b->streams.current(b, from));
  if (!order(from, other, to, stream) || !lt_cuda_select(to)) return false;
  enable_peer_access(to, from);
  return lt_cuda_ok(cudaMemcpyPeerAsync(target, to, source, from, nbytes, stream),
                    "copy between devices") &&
         order(to, stream, from, other) && lt_cuda_select(to);
}

/* ---- tables for kernels ---------------------------------------------------------------------- */

/* Captures a copy from pinned memory that the graph keeps, since each replay copies from it. */
static bool capture_upload(lt_Graph *graph, void *to, const void *bytes, size_t nbytes,
                           lt_Stream *stream) {
  void *stage = lt_cuda_backend.memory.host_alloc(&lt_cuda_backend, nbytes);
  if (!stage) return false;
  memcpy(stage, bytes, nbytes);
  return lt_capture_keep_host(graph, stage, nbytes) &&
         queue_copy(to, stage, nbytes, cudaMemcpyHostToDevice, stream);
}

/* Copies the host's bytes to new device memory. The host blocks only where there is no pinned
 * memory. */
static bool upload(int index, void *to, const void *bytes, size_t nbytes, lt_Stream *stream) {
  void *stage;
  lt_Event *done;
  lt_Graph *graph = lt_capture_of(&lt_cuda_backend, index);
  if (graph) return capture_upload(graph, to, bytes, nbytes, stream);
  return open_stage(index, nbytes, &stage, &done)
             ? send_staged(index, to, bytes, nbytes, stream, stage, done)
             : copy_and_wait(index, to, bytes, nbytes, cudaMemcpyHostToDevice, stream);
}

lt_Tensor *lt_cuda_upload(const lt_Call *c, const void *bytes, size_t nbytes) {
  int64_t size = (int64_t)nbytes;
  lt_Tensor *t = lt_empty(LT_uint8, c->device, 1, &size);
  if (t && upload(c->device.index, lt_tensor_data(t), bytes, nbytes, c->stream)) return t;
  lt_release(t);
  return NULL;
}

/* ---- lt_Backend ------------------------------------------------------------------------------ */

bool lt_cuda_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                  lt_Stream *stream, bool non_blocking) {
  int index = to.type == LT_DEVICE_cpu ? from.index : to.index;
  if (!lt_cuda_select(index) || !lt_cuda_fault_check(index)) return false;
  if (from.type == LT_DEVICE_cpu)
    return to_device(index, target, source, nbytes, stream, non_blocking);
  if (to.type == LT_DEVICE_cpu) return to_host(index, target, source, nbytes, stream, non_blocking);
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  if (to.index != from.index)
    return copy_between(to.index, target, from.index, source, nbytes, native);
  return lt_cuda_ok(cudaMemcpyAsync(target, source, nbytes, cudaMemcpyDeviceToDevice, native),
                    "copy memory");
}

bool lt_cuda_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  return lt_cuda_select(index) &&
         lt_cuda_ok(cudaMemsetAsync(memory, 0, nbytes, native), "fill memory");
}
