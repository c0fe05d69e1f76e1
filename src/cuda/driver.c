/* driver.c: the CUDA runtime's functions as the operations that src/tensor/accel calls. On a lost
 * device every operation fails at once, except that freeing succeeds and does nothing.
 *
 * Each operation leaves the selected device as it was: an allocation in the middle of a kernel
 * function may query events, or free memory, of another device.
 */
#include "cuda.h"

/* Selects a device and saves the one selected before for leave(). */
static bool enter(int index, int *before) {
  *before = lt_cuda_selected(false);
  return lt_cuda_select(index);
}

static void leave(int before) {
  if (before >= 0 && before != lt_cuda_selected(false) && !lt_cuda_is_lost(before))
    lt_cuda_select(before);
}

/* Converts a status for accel. `doing` describes the call for the message of an unexpected
 * error. */
static lt_DriverStatus driver_status(cudaError_t status, const char *doing) {
  switch (status) {
  case cudaSuccess:
    return LT_DRIVER_OK;
  case cudaErrorMemoryAllocation:
    cudaGetLastError();
    return LT_DRIVER_NO_MEMORY;
  case cudaErrorNotReady:
    cudaGetLastError();
    return LT_DRIVER_NOT_READY;
  default:
    lt_cuda_ok(status, doing);
    return LT_DRIVER_FAILED;
  }
}

/* Converts a status as driver_status does, and selects the previous device again. */
static lt_DriverStatus finish(int before, cudaError_t status, const char *doing) {
  lt_DriverStatus s = driver_status(status, doing);
  leave(before);
  return s;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static lt_DriverStatus memory_new(int index, size_t nbytes, void **out) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaMalloc(out, nbytes), "allocate memory");
}

static lt_DriverStatus memory_free(int index, void *memory) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaFree(memory), "free memory");
}

static lt_DriverStatus memory_info(int index, size_t *left, size_t *total) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaMemGetInfo(left, total), "read its memory");
}

static lt_DriverStatus memory_fill(int index, void *memory, int byte, size_t nbytes, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaMemsetAsync(memory, byte, nbytes, (cudaStream_t)stream), "fill memory");
}

/* Portable: every device can copy from and to it. */
static lt_DriverStatus host_new(size_t nbytes, void **out) {
  if (lt_cuda_selected(true) < 0) return LT_DRIVER_FAILED;
  return driver_status(cudaHostAlloc(out, nbytes, cudaHostAllocPortable), "allocate pinned memory");
}

static lt_DriverStatus host_free(void *memory) {
  int index = lt_cuda_selected(true);
  if (index < 0 || lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  return driver_status(cudaFreeHost(memory), "free pinned memory");
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Streams are non-blocking: they are not ordered with the default stream. Only events order them.
 * `priority` is clamped to the device's range, and *given is the result. */
static lt_DriverStatus stream_new(int index, int priority, void **out, int *given) {
  int lowest = 0, highest = 0;
  cudaStream_t stream = NULL;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  cudaError_t status = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
  *given = priority < highest ? highest : priority > lowest ? lowest : priority;
  if (status == cudaSuccess)
    status = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, *given);
  *out = stream;
  return finish(before, status, "create a stream");
}

static lt_DriverStatus stream_free(int index, void *stream) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaStreamDestroy((cudaStream_t)stream), "destroy a stream");
}

static lt_DriverStatus stream_query(int index, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaStreamQuery((cudaStream_t)stream), "query a stream");
}

static lt_DriverStatus stream_synchronize(int index, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  lt_DriverStatus s =
      finish(before, cudaStreamSynchronize((cudaStream_t)stream), "synchronize a stream");
  if (s == LT_DRIVER_OK) lt_cuda_note_completed(index, (cudaStream_t)stream, false);
  return s;
}

static lt_DriverStatus stream_wait_event(int index, void *stream, void *event) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0),
                "make a stream wait for an event");
}

static lt_DriverStatus synchronize(int index) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  lt_DriverStatus s = finish(before, cudaDeviceSynchronize(), "synchronize the device");
  if (s == LT_DRIVER_OK) lt_cuda_note_completed(index, NULL, true);
  return s;
}

/* ---- events ---------------------------------------------------------------------------------- */

static lt_DriverStatus event_new(int index, bool timing, void **out) {
  cudaEvent_t event = NULL;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  cudaError_t status =
      cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming);
  *out = event;
  return finish(before, status, "create an event");
}

static lt_DriverStatus event_free(int index, void *event) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaEventDestroy((cudaEvent_t)event), "destroy an event");
}

static lt_DriverStatus event_record(int index, void *event, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream),
                "record an event");
}

static lt_DriverStatus event_query(int index, void *event) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaEventQuery((cudaEvent_t)event), "query an event");
}

static lt_DriverStatus event_synchronize(int index, void *event) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaEventSynchronize((cudaEvent_t)event), "synchronize an event");
}

static lt_DriverStatus event_elapsed(void *from, void *to, double *milliseconds) {
  float ms = 0;
  lt_DriverStatus s = driver_status(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to),
                                    "read the time between events");
  *milliseconds = (double)ms;
  return s;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* In relaxed mode the driver allows allocations and other calls of this thread that are not
 * captured; what cannot be captured is refused before the driver is called (accel/graphs.c). What
 * reports of faults need is allocated first. */
static lt_DriverStatus capture_begin(int index, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  if (!lt_cuda_fault_prepare(index)) {
    leave(before);
    return LT_DRIVER_FAILED;
  }
  return finish(before, cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeRelaxed),
                "begin a capture");
}

/* Makes a graph ready to be launched; when the device is out of memory, frees cached memory and
 * tries once more. */
static cudaError_t instantiate(cudaGraph_t graph, cudaGraphExec_t *out) {
  cudaError_t status = cudaGraphInstantiateWithFlags(out, graph, 0);
  if (status == cudaErrorMemoryAllocation && lt_cuda_free_cached())
    status = cudaGraphInstantiateWithFlags(out, graph, 0);
  return status;
}

static lt_DriverStatus capture_end(int index, void *stream, void **out) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  int before;
  *out = NULL;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  cudaError_t status = cudaStreamEndCapture((cudaStream_t)stream, &graph);
  bool ended = status == cudaSuccess;
  if (ended) status = instantiate(graph, &exec);
  if (graph) cudaGraphDestroy(graph);
  if (status == cudaSuccess) *out = exec;
  return finish(before, status, ended ? "instantiate a graph" : "end a capture");
}

static lt_DriverStatus is_capturing(int index, void *stream, bool *out) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  *out = false;
  if (!stream || lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  lt_DriverStatus s =
      driver_status(cudaStreamIsCapturing((cudaStream_t)stream, &status), "query a capture");
  *out = status != cudaStreamCaptureStatusNone;
  return s;
}

static lt_DriverStatus graph_launch(int index, void *graph, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  if (!lt_cuda_fault_check(index)) {
    leave(before);
    return LT_DRIVER_FAILED;
  }
  cudaStream_t native = (cudaStream_t)stream;
  cudaError_t status =
      lt_cuda_note_launch("graph", native, cudaGraphLaunch((cudaGraphExec_t)graph, native));
  lt_DriverStatus s = finish(before, status, "launch a graph");
  if (s == LT_DRIVER_OK && lt_cuda_is_blocking() && !lt_cuda_fault_check(index))
    return LT_DRIVER_FAILED;
  return s;
}

static lt_DriverStatus graph_free(int index, void *graph) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return finish(before, cudaGraphExecDestroy((cudaGraphExec_t)graph), "free a graph");
}

/* Returns false when the runtime has already been unloaded, as happens at the end of a program. */
static bool alive(void) {
  int index;
  return cudaGetDevice(&index) != cudaErrorCudartUnloading;
}

const lt_AccelDriver lt_cuda_driver = {
    .count = lt_cuda_count,
    .initialize = lt_cuda_initialize,
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
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .is_capturing = is_capturing,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
    .alive = alive,
};
