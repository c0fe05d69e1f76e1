/* fault.c: bad values that only the device can see. A call that checks values takes a ticket, and
 * the parts of its message are kept under that ticket. The kernel that finds a bad value writes the
 * ticket, the position and the value into a report in device memory, and sets a flag in host
 * memory. There is one report for each device: it keeps the first bad value of the earliest call,
 * since later calls work with the harmless replacements of bad values.
 *
 * Every ticket has an int in device memory, `bad`, which is 0 except between a bad value and its
 * message. So no call has to clear its own.
 */
#include "fault.h"
#include "cuda.h"

#include <pthread.h>

/* The faults of one device; allocated at its first check. */
typedef struct Faults {
  volatile int *_Atomic raised; /* mapped host memory; NULL until it is allocated */
  lt_CudaReport *report;        /* device memory: the report, and behind it `bad` */
  int *bad;                     /* LT_FAULT_TICKETS ints */
  lt_FaultTicket *tickets;
  /* the number of the last ticket; the first is 1 */
  unsigned long long last;
} Faults;

static Faults all[LT_ACCEL_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- tickets --------------------------------------------------------------------------------- */

#define ROOM (sizeof(lt_CudaReport) + LT_FAULT_TICKETS * sizeof(int))

/* Clears report and `bad`. The host blocks, because other streams are not ordered with the NULL
 * stream. */
static bool clear(Faults *f) {
  return lt_cuda_ok(cudaMemsetAsync(f->report, 0, ROOM, NULL), "clear the error report") &&
         lt_cuda_ok(cudaStreamSynchronize(NULL), "clear the error report");
}

/* Frees the unused memory of the caching allocator when the device is out of memory. */
static cudaError_t allocate(void **out) {
  cudaError_t status = cudaMalloc(out, ROOM);
  if (status != cudaErrorMemoryAllocation || !lt_cuda_free_cached()) return status;
  return cudaMalloc(out, ROOM);
}

/* Allocates the memory of a device's faults. On failure nothing is kept and a later call tries
 * again. Requires the lock. */
static bool make(Faults *f) {
  void *raised = NULL, *scratch = NULL;
  if (!f->tickets) f->tickets = calloc(LT_FAULT_TICKETS, sizeof *f->tickets);
  if (!f->tickets) return lt_fail_memory();
  if (!lt_cuda_ok(cudaHostAlloc(&raised, sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped),
                  "allocate pinned memory"))
    return false;
  *(int *)raised = 0;
  cudaError_t status = allocate(&scratch);
  f->report = scratch;
  if (status == cudaSuccess) f->bad = (int *)(f->report + 1);
  if (!lt_cuda_ok(status, "allocate memory") || !clear(f)) {
    cudaFree(scratch);
    cudaFreeHost(raised);
    return false;
  }
  atomic_store(&f->raised, raised);
  return true;
}

bool lt_cuda_fault_prepare(int index) {
  Faults *f = &all[index];
  pthread_mutex_lock(&lock);
  bool ok = atomic_load(&f->raised) || make(f);
  pthread_mutex_unlock(&lock);
  return ok;
}

bool lt_cuda_fault_open(const lt_Call *c, const lt_FaultNote *note, lt_CudaFault *out) {
  Faults *f = &all[c->device.index];
  if (!lt_cuda_select(c->device.index)) return false;
  pthread_mutex_lock(&lock);
  bool ok = atomic_load(&f->raised) || make(f);
  if (ok) {
    unsigned long long number = ++f->last;
    lt_fault_ticket(&f->tickets[number % LT_FAULT_TICKETS], number, note, lt_cuda_is_blocking());
    *out = (lt_CudaFault){f->bad + number % LT_FAULT_TICKETS, f->report, atomic_load(&f->raised),
                          number};
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Reads and clears the report. The host blocks until the device is done, so that the report is the
 * first bad value of the earliest call in every run. On failure the report stays pending. */
static bool take_report(int index, Faults *f, lt_CudaReport *report) {
  volatile int *raised = atomic_load(&f->raised);
  if (!lt_wait_device(&lt_cuda_backend, index)) return false;
  if (!lt_cuda_ok(cudaDeviceSynchronize(), "synchronize the device")) return false;
  lt_cuda_note_completed(index, NULL, true);
  *raised = 0;
  bool ok = lt_cuda_ok(cudaMemcpy(report, f->report, sizeof *report, cudaMemcpyDeviceToHost),
                       "read the error report") &&
            clear(f);
  if (!ok) *raised = 1;
  return ok;
}

/* Raises the pending report, unless another thread has raised it. Returns true when nothing was
 * reported. */
static bool raise_fault(int index, Faults *f) {
  lt_CudaReport report = {0};
  if (!lt_cuda_select(index)) return false;
  pthread_mutex_lock(&lock);
  if (!*atomic_load(&f->raised)) { /* another thread has raised it */
    pthread_mutex_unlock(&lock);
    return true;
  }
  bool ok = take_report(index, f, &report);
  lt_FaultTicket ticket = f->tickets[report.ticket % LT_FAULT_TICKETS];
  pthread_mutex_unlock(&lock);
  lt_FaultReport found = {report.ticket, report.position, report.value};
  return ok && (report.ticket == 0 || lt_fault_raise((lt_Device){LT_DEVICE_cuda, (uint8_t)index},
                                                     &ticket, &found, lt_cuda_is_blocking()));
}

bool lt_cuda_fault_check(int index) {
  volatile int *raised = atomic_load_explicit(&all[index].raised, memory_order_relaxed);
  return !raised || !*raised || lt_capture_of(&lt_cuda_backend, index) ||
         raise_fault(index, &all[index]);
}

/* ---- index tensors --------------------------------------------------------------------------- */

lt_Tensor *lt_cuda_checked_indices(lt_Call *c, lt_Tensor *index, int64_t n, bool negative,
                                   const char *name, lt_CudaFault *fault) {
  lt_FaultNote note = {
      .kind = LT_FAULT_INDEX, .argument = name, .n = n, .negative = negative, .ndim = index->ndim};
  memcpy(note.shape, index->shape, sizeof *note.shape * (size_t)index->ndim);
  if (!lt_cuda_fault_open(c, &note, fault)) return NULL;
  lt_Tensor *out = lt_empty(LT_int64, c->device, index->ndim, index->shape);
  if (!out || index->numel == 0) return out;
  if (lt_cuda_launch_ok(lt_cuda_launch_check_indices(
          lt_tensor_data(index), (int)index->dtype, index->ndim, index->shape, index->strides,
          index->numel, n, negative, lt_tensor_data(out), *fault, lt_cuda_stream(c))))
    return out;
  lt_release(out);
  return NULL;
}

/* ---- divisors -------------------------------------------------------------------------------- */

/* The host blocks for a division in place, until the divisor is known to be valid: the division
 * would overwrite the values of self. */
bool lt_cuda_check_divisor(const lt_Call *c, const lt_Tensor *divisor) {
  lt_FaultNote note = {.kind = LT_FAULT_DIVISOR,
                       .argument = lt_arg_name(c, 1),
                       .compute = c->compute,
                       .ndim = divisor->ndim};
  lt_CudaFault fault;
  memcpy(note.shape, divisor->shape, sizeof *note.shape * (size_t)divisor->ndim);
  lt_Stream *stream = lt_stream_of(divisor);
  return lt_cuda_fault_check(c->device.index) && lt_cuda_fault_open(c, &note, &fault) &&
         lt_cuda_launch_ok(lt_cuda_launch_divisor(lt_tensor_data(divisor), (int)divisor->dtype,
                                                  divisor->ndim, divisor->shape, divisor->strides,
                                                  divisor->numel, c->compute == LT_int32, fault,
                                                  (cudaStream_t)lt_accel_native(stream))) &&
         (!c->in_place || lt_stream_synchronize(stream));
}
