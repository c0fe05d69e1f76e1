/* copy.c: bytes between the host and devices, and between devices.
 *
 * What the host owns is safe: a copy from plain memory has taken the bytes when the call returns,
 * and a copy to it is done. Only pinned memory is left to the device when the caller does not want
 * to wait; he then marks its storage (lt_storage_pend), and readers wait.
 */
#include "cuda.h"

#define STAGED ((size_t)64 << 10) /* copies up to this size are taken over instead of waited for */

/* Memory that devices reach by themselves. */
static bool is_pinned(const void *memory) {
  struct cudaPointerAttributes a;
  if (cudaPointerGetAttributes(&a, memory) == cudaSuccess) return a.type == cudaMemoryTypeHost;
  cudaGetLastError();
  return false;
}

static bool wait_for(int index, cudaStream_t stream) {
  if (!lt_cuda_ok(cudaStreamSynchronize(stream), "waiting for a copy")) return false;
  lt_cuda_waited(index, stream, false);
  return true;
}

/* The bytes lie in pinned memory of our own until the device has them. False (without a message):
 * there is none. */
static bool send_staged(int index, void *target, const void *source, size_t nbytes,
                        lt_Stream *stream, bool *ok) {
  const lt_Backend *b = &lt_cuda_backend;
  void *stage = b->host_alloc(b, nbytes);
  lt_Event *done = stage ? b->event_new(b, index, false) : NULL;
  if (!done) {
    if (stage) b->host_free(b, stage, nbytes, NULL);
    return false;
  }
  memcpy(stage, source, nbytes);
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  *ok = lt_cuda_ok(cudaMemcpyAsync(target, stage, nbytes, cudaMemcpyHostToDevice, native),
                   "copying to the device");
  if (*ok && !b->event_record(done, stream)) *ok = wait_for(index, native);
  b->host_free(b, stage, nbytes, done);
  return true;
}

static bool to_device(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                      bool non_blocking) {
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  bool pinned = is_pinned(source), ok;
  if (!pinned && nbytes <= STAGED && send_staged(index, target, source, nbytes, stream, &ok))
    return ok;
  if (!lt_cuda_ok(cudaMemcpyAsync(target, source, nbytes, cudaMemcpyHostToDevice, native),
                  "copying to the device"))
    return false;
  return (pinned && non_blocking) || wait_for(index, native);
}

static bool to_host(int index, void *target, const void *source, size_t nbytes, lt_Stream *stream,
                    bool non_blocking) {
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  if (!lt_cuda_ok(cudaMemcpyAsync(target, source, nbytes, cudaMemcpyDeviceToHost, native),
                  "copying to the host"))
    return false;
  if (non_blocking && is_pinned(target)) return true;
  return wait_for(index, native) && lt_cuda_fault_check(index);
}

/* ---- between devices ------------------------------------------------------------------------- */

/* Lets `device`, which is selected, reach the other's memory where the machine can do that; asked
 * once for each pair. Without it the driver copies by way of the host. */
static void open_way(int device, int other) {
  static atomic_bool asked[LT_ACCEL_MAX][LT_ACCEL_MAX];
  if (atomic_exchange(&asked[device][other], true)) return;
  if (lt_cuda_backend.can_access_peer(&lt_cuda_backend, device, other) &&
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
  cudaStream_t theirs = (cudaStream_t)lt_accel_native(b->stream_current(b, from));
  if (!order(from, theirs, to, stream) || !lt_cuda_select(to)) return false;
  open_way(to, from);
  return lt_cuda_ok(cudaMemcpyPeerAsync(target, to, source, from, nbytes, stream),
                    "copying between devices") &&
         order(to, stream, from, theirs) && lt_cuda_select(to);
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
