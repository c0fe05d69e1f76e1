/* copy.c: bytes between the host and devices, and between devices.
 *
 * What the host owns is safe: a copy from plain memory has taken the bytes when the call returns,
 * and a copy to it is done. Only pinned memory is left to the device when the caller does not want
 * to wait; he then marks its storage (lt_storage_pend), and readers wait.
 *
 * Where the host waits, Ctrl-C ends the wait: so the host waits for what is on the stream before it
 * hands over memory that is not ours, and a copy then lasts as long as its bytes take. Small ones
 * go through pinned memory of our own, which outlives them.
 */
#include "cuda.h"

#define STAGED ((size_t)64 << 10) /* copies up to this size go through memory of our own */
#define PIECE  ((size_t)64 << 20) /* bytes between two looks whether to stop */

/* Memory that devices reach by themselves. */
static bool is_pinned(const void *memory) {
  struct cudaPointerAttributes a;
  if (cudaPointerGetAttributes(&a, memory) == cudaSuccess) return a.type == cudaMemoryTypeHost;
  cudaGetLastError();
  return false;
}

/* Puts the copy on the stream. */
static bool put(void *target, const void *source, size_t nbytes, enum cudaMemcpyKind kind,
                lt_Stream *stream) {
  return lt_cuda_ok(
      cudaMemcpyAsync(target, source, nbytes, kind, (cudaStream_t)lt_accel_native(stream)),
      kind == cudaMemcpyHostToDevice ? "copying to the device" : "copying to the host");
}

static bool wait_for(int index, lt_Stream *stream) {
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  if (!lt_cuda_ok(cudaStreamSynchronize(native), "waiting for a copy")) return false;
  lt_cuda_waited(index, native, false);
  return true;
}

/* Piece by piece, each done before the next. */
static bool copy_and_wait(int index, void *target, const void *source, size_t nbytes,
                          enum cudaMemcpyKind kind, lt_Stream *stream) {
  bool ok = lt_wait_stream(stream);
  for (size_t i = 0; ok && i < nbytes; i += PIECE)
    ok = lt_check_interrupt() &&
         put((char *)target + i, (const char *)source + i, nbytes - i < PIECE ? nbytes - i : PIECE,
             kind, stream) &&
         wait_for(index, stream);
  return ok;
}

/* Pinned memory of our own, and an event for the copy from or to it. False (without a message):
 * there is none. */
static bool open_stage(int index, size_t nbytes, void **stage, lt_Event **done) {
  const lt_Backend *b = &lt_cuda_backend;
  *stage = b->memory.host_alloc(b, nbytes);
  *done = *stage ? b->streams.event_create(b, index, false) : NULL;
  if (*stage && !*done) b->memory.host_free(b, *stage, nbytes, NULL);
  return *done;
}

/* The bytes lie in the stage until the device has them. */
static bool send_staged(int index, void *target, const void *source, size_t nbytes,
                        lt_Stream *stream, void *stage, lt_Event *done) {
  const lt_Backend *b = &lt_cuda_backend;
  memcpy(stage, source, nbytes);
  bool ok = put(target, stage, nbytes, cudaMemcpyHostToDevice, stream);
  if (ok && !b->streams.event_record(done, stream)) ok = wait_for(index, stream);
  b->memory.host_free(b, stage, nbytes, done);
  return ok;
}

/* Given up, the stage waits for the copy, not the host. */
static bool receive_staged(int index, void *target, const void *source, size_t nbytes,
                           lt_Stream *stream, void *stage, lt_Event *done) {
  const lt_Backend *b = &lt_cuda_backend;
  bool ok = put(stage, source, nbytes, cudaMemcpyDeviceToHost, stream);
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
  if (pinned && non_blocking) return put(target, source, nbytes, cudaMemcpyHostToDevice, stream);
  if (!pinned && nbytes <= STAGED && open_stage(index, nbytes, &stage, &done))
    return send_staged(index, target, source, nbytes, stream, stage, done);
  return copy_and_wait(index, target, source, nbytes, cudaMemcpyHostToDevice, stream);
}

static bool to_host(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                    bool non_blocking) {
  void *stage;
  lt_Event *done;
  if (non_blocking && is_pinned(target))
    return put(target, source, nbytes, cudaMemcpyDeviceToHost, stream);
  bool staged = nbytes <= STAGED && open_stage(index, nbytes, &stage, &done);
  return (staged ? receive_staged(index, target, source, nbytes, stream, stage, done)
                 : copy_and_wait(index, target, source, nbytes, cudaMemcpyDeviceToHost, stream)) &&
         lt_cuda_fault_check(index);
}

/* ---- between devices ------------------------------------------------------------------------- */

/* Lets `device`, which is selected, reach the other's memory where the machine can do that; asked
 * once for each pair. Without it the driver copies by way of the host. */
static void open_way(int device, int other) {
  static atomic_bool asked[LT_ACCEL_MAX][LT_ACCEL_MAX];
  if (atomic_exchange(&asked[device][other], true)) return;
  if (lt_cuda_backend.memory.can_access_peer(&lt_cuda_backend, device, other) &&
      cudaDeviceEnablePeerAccess(other, 0) != cudaSuccess)
    cudaGetLastError();
}

/* What is put on `later`, a stream of the device `at`, from now on runs after what is on `sooner`,
 * a stream of the device `of`. */
static bool order(int of, cudaStream_t sooner, int at, cudaStream_t later) {
  cudaEvent_t event;
  if (!lt_cuda_select(of) ||
      !lt_cuda_ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"))
    return false;
  bool ok = lt_cuda_ok(cudaEventRecord(event, sooner), "recording an event") &&
            lt_cuda_select(at) &&
            lt_cuda_ok(cudaStreamWaitEvent(later, event, 0), "making a stream wait for an event");
  cudaEventDestroy(event); /* once it has happened */
  return ok;
}

/* The source must have been written, and must not be written or freed before it has been read. */
static bool across(int to, void *target, int from, const void *source, size_t nbytes,
                   cudaStream_t stream) {
  const lt_Backend *b = &lt_cuda_backend;
  cudaStream_t theirs = (cudaStream_t)lt_accel_native(b->streams.current(b, from));
  if (!order(from, theirs, to, stream) || !lt_cuda_select(to)) return false;
  open_way(to, from);
  return lt_cuda_ok(cudaMemcpyPeerAsync(target, to, source, from, nbytes, stream),
                    "copying between devices") &&
         order(to, stream, from, theirs) && lt_cuda_select(to);
}

/* ---- tables for kernels ---------------------------------------------------------------------- */

/* The host waits only where there is no pinned memory. */
lt_Tensor *lt_cuda_upload(const lt_Call *c, const void *bytes, size_t nbytes) {
  int64_t size = (int64_t)nbytes;
  int index = c->device.index;
  lt_Tensor *t = lt_empty(LT_uint8, c->device, 1, &size);
  void *to = t ? lt_tensor_data(t) : NULL, *stage;
  lt_Event *done;
  bool ok = t && (open_stage(index, nbytes, &stage, &done)
                      ? send_staged(index, to, bytes, nbytes, c->stream, stage, done)
                      : copy_and_wait(index, to, bytes, nbytes, cudaMemcpyHostToDevice, c->stream));
  if (!ok) {
    lt_release(t);
    t = NULL;
  }
  return t;
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
  if (to.index != from.index) return across(to.index, target, from.index, source, nbytes, native);
  return lt_cuda_ok(cudaMemcpyAsync(target, source, nbytes, cudaMemcpyDeviceToDevice, native),
                    "copying memory");
}

bool lt_cuda_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  return lt_cuda_select(index) &&
         lt_cuda_ok(cudaMemsetAsync(memory, 0, nbytes, native), "filling memory");
}
