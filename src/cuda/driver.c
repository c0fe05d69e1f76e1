/* driver.c: the calls of the CUDA runtime that src/tensor/accel makes. On a device that is lost,
 * what is asked for fails at once, and what is given back is given back to nobody.
 *
 * Each leaves the device selected that was: an allocation in the middle of a kernel function may
 * look at events, or free memory, of another device.
 */
#include "cuda.h"

static bool enter(int index, int *before) {
  *before = lt_cuda_selected(false);
  return lt_cuda_select(index);
}

static void leave(int before) {
  if (before >= 0 && before != lt_cuda_selected(false) && !lt_cuda_is_lost(before))
    lt_cuda_select(before);
}

/* A status as accel knows it; `doing` is for the message. */
static lt_DriverStatus judge(cudaError_t status, const char *doing) {
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

/* The same, and the device from before is selected again. */
static lt_DriverStatus told(int before, cudaError_t status, const char *doing) {
  lt_DriverStatus s = judge(status, doing);
  leave(before);
  return s;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static lt_DriverStatus memory_new(int index, size_t nbytes, void **out) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaMalloc(out, nbytes), "allocating memory");
}

static lt_DriverStatus memory_free(int index, void *memory) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaFree(memory), "freeing memory");
}

static lt_DriverStatus memory_info(int index, size_t *left, size_t *total) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaMemGetInfo(left, total), "asking for its memory");
}

static lt_DriverStatus memory_fill(int index, void *memory, int byte, size_t nbytes, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaMemsetAsync(memory, byte, nbytes, (cudaStream_t)stream),
              "filling memory");
}

/* Portable: every device can copy from and to it. */
static lt_DriverStatus host_new(size_t nbytes, void **out) {
  if (lt_cuda_selected(true) < 0) return LT_DRIVER_FAILED;
  return judge(cudaHostAlloc(out, nbytes, cudaHostAllocPortable), "allocating pinned memory");
}

static lt_DriverStatus host_free(void *memory) {
  int index = lt_cuda_selected(true);
  if (index < 0 || lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  return judge(cudaFreeHost(memory), "freeing pinned memory");
}

/* ---- streams --------------------------------------------------------------------------------- */

/* They do not wait for the default stream, nor it for them: order comes from events alone. */
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
  return told(before, status, "making a stream");
}

static lt_DriverStatus stream_free(int index, void *stream) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaStreamDestroy((cudaStream_t)stream), "ending a stream");
}

static lt_DriverStatus stream_query(int index, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaStreamQuery((cudaStream_t)stream), "looking at a stream");
}

static lt_DriverStatus stream_synchronize(int index, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  lt_DriverStatus s =
      told(before, cudaStreamSynchronize((cudaStream_t)stream), "waiting for a stream");
  if (s == LT_DRIVER_OK) lt_cuda_waited(index, (cudaStream_t)stream, false);
  return s;
}

static lt_DriverStatus stream_wait_event(int index, void *stream, void *event) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0),
              "making a stream wait for an event");
}

static lt_DriverStatus synchronize(int index) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  lt_DriverStatus s = told(before, cudaDeviceSynchronize(), "waiting for the device");
  if (s == LT_DRIVER_OK) lt_cuda_waited(index, NULL, true);
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
  return told(before, status, "making an event");
}

static lt_DriverStatus event_free(int index, void *event) {
  if (lt_cuda_is_lost(index)) return LT_DRIVER_OK;
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaEventDestroy((cudaEvent_t)event), "ending an event");
}

static lt_DriverStatus event_record(int index, void *event, void *stream) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream),
              "recording an event");
}

static lt_DriverStatus event_query(int index, void *event) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaEventQuery((cudaEvent_t)event), "looking at an event");
}

static lt_DriverStatus event_synchronize(int index, void *event) {
  int before;
  if (!enter(index, &before)) return LT_DRIVER_FAILED;
  return told(before, cudaEventSynchronize((cudaEvent_t)event), "waiting for an event");
}

static lt_DriverStatus event_elapsed(void *from, void *to, double *milliseconds) {
  float ms = 0;
  lt_DriverStatus s = judge(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to),
                            "reading the time between events");
  *milliseconds = (double)ms;
  return s;
}

/* At the end of the program the runtime may go before us, and then says so. */
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
    .alive = alive,
};
