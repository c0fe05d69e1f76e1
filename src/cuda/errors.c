/* errors.c: turns the runtime's statuses into messages, records recent launches, and tracks lost
 * devices.
 *
 * A later, unrelated call reports that a kernel read an illegal address; from then on every call on
 * that device fails until the program is restarted. So this file records the kernels launched since
 * the last synchronization. The first message names them; later calls on the device repeat it
 * without calling the driver, and so neither hang nor crash.
 */
#include "accel/launches.h"
#include "cuda.h"

#include <pthread.h>

/* The launches and the state of one device. */
typedef struct DeviceState {
  pthread_mutex_t lock;
  uint64_t launched, completed; /* numbers of kernels: launched, and of these known to be done */
  lt_LaunchNote recent[LT_LAUNCHES]; /* launch i is at i % LT_LAUNCHES */
  cudaStream_t streams[LT_LAUNCHES]; /* of the launches */
  bool mixed;                        /* the kernels not known to be done are on several streams */
  atomic_bool lost;
  /* the message, once `lost` is set */
  char message[1400];
} DeviceState;

static DeviceState states[LT_ACCEL_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool blocking; /* CUDA_LAUNCH_BLOCKING */

static _Thread_local int selected = -1;
static _Thread_local const char *failing; /* the kernel whose last launch failed */

static void initialize(void) {
  for (int i = 0; i < LT_ACCEL_MAX; i++) pthread_mutex_init(&states[i].lock, NULL);
  const char *v = getenv("CUDA_LAUNCH_BLOCKING");
  blocking = v && *v && strcmp(v, "0") != 0;
}

static const char *name_of(int index) {
  return lt_device_name((lt_Device){LT_DEVICE_cuda, (uint8_t)index});
}

/* Returns true for the errors that destroy the context. */
static bool is_fatal(cudaError_t status) {
  switch ((int)status) {
  case 214: /* an uncorrectable ECC error */
  case 220: /* an uncorrectable NVLink error */
  case 226: /* a contained error that ended the context */
  case 700: /* an illegal address */
  case 702: /* a kernel that exceeded the time limit */
  case 709: /* the context was destroyed */
  case 710: /* an assertion in a kernel */
  case 714: /* a hardware stack error */
  case 715: /* an illegal instruction */
  case 716: /* a misaligned address */
  case 717: /* an invalid address space */
  case 718: /* an invalid program counter */
  case 719: /* launch failure: any other exception */
  case 721: /* tensor memory that a kernel did not free */
  case 999: /* unknown */
    return true;
  default:
    return false;
  }
}

/* ---- launches -------------------------------------------------------------------------------- */

static void record_launch(DeviceState *w, const char *kernel, cudaStream_t stream) {
  pthread_mutex_lock(&w->lock);
  if (w->launched == w->completed)
    w->mixed = false;
  else if (w->streams[(w->launched - 1) % LT_LAUNCHES] != stream)
    w->mixed = true;
  w->streams[w->launched % LT_LAUNCHES] = stream;
  w->recent[w->launched++ % LT_LAUNCHES] = lt_launch_note(kernel);
  pthread_mutex_unlock(&w->lock);
}

void lt_cuda_note_completed(int index, cudaStream_t stream, bool all) {
  DeviceState *w = &states[index];
  pthread_once(&once, initialize);
  pthread_mutex_lock(&w->lock);
  if (all ||
      (!w->mixed && w->launched > 0 && w->streams[(w->launched - 1) % LT_LAUNCHES] == stream))
    w->completed = w->launched;
  pthread_mutex_unlock(&w->lock);
}

cudaError_t lt_cuda_note_launch(const char *kernel, cudaStream_t stream, cudaError_t status) {
  pthread_once(&once, initialize);
  int index = selected < 0 ? 0 : selected;
  if (status == cudaSuccess || is_fatal(status)) record_launch(&states[index], kernel, stream);
  if (status == cudaSuccess && blocking && !lt_capture_of(&lt_cuda_backend, index)) {
    status = cudaStreamSynchronize(stream);
    if (status == cudaSuccess) lt_cuda_note_completed(index, stream, false);
  }
  if (status != cudaSuccess) failing = kernel;
  return status;
}

bool lt_cuda_free_cached(void) {
  cudaGetLastError();
  return lt_cuda_backend.memory.retry(&lt_cuda_backend, selected < 0 ? 0 : selected);
}

/* ---- statuses -------------------------------------------------------------------------------- */

static bool fail_lost(int index) { return lt_fail("%s", states[index].message); }

/* Marks the device as lost and fails with the message that all later calls repeat. The first error
 * decides the message. `kernel` is the kernel whose launch failed, or NULL; with
 * CUDA_LAUNCH_BLOCKING it is the one that caused the error. */
static bool mark_lost(int index, cudaError_t status, const char *doing, const char *kernel) {
  DeviceState *w = &states[index];
  char launches[600], where[900] = "";
  pthread_mutex_lock(&w->lock);
  if (!atomic_load(&w->lost)) {
    lt_launches_text(w->recent, w->launched, w->launched - w->completed, launches, sizeof launches);
    if (kernel && blocking)
      snprintf(where, sizeof where, " in kernel %s", launches);
    else if (launches[0])
      snprintf(where, sizeof where,
               ". It was reported by an attempt to %s; one of the kernels launched since the last "
               "synchronization caused it: %s\nhint: CUDA_LAUNCH_BLOCKING=1 in the environment "
               "finds out which",
               doing, launches);
    else
      snprintf(where, sizeof where, ". It was reported by an attempt to %s", doing);
    snprintf(w->message, sizeof w->message,
             "cannot use \"%s\" anymore, its memory is lost until the program restarts: CUDA error "
             "%d, %s%s",
             name_of(index), (int)status, cudaGetErrorString(status), where);
    atomic_store(&w->lost, true);
  }
  pthread_mutex_unlock(&w->lock);
  return fail_lost(index);
}

bool lt_cuda_is_lost(int index) {
  return atomic_load_explicit(&states[index].lost, memory_order_acquire);
}

bool lt_cuda_ok(cudaError_t status, const char *doing) {
  if (status == cudaSuccess) return true;
  pthread_once(&once, initialize);
  int index = selected < 0 ? 0 : selected;
  if (is_fatal(status)) return mark_lost(index, status, doing, NULL);
  cudaGetLastError(); /* clear it: a later, unrelated call must not report it */
  return lt_fail("cannot %s on \"%s\": CUDA error %d, %s", doing, name_of(index), (int)status,
                 cudaGetErrorString(status));
}

bool lt_cuda_is_blocking(void) {
  pthread_once(&once, initialize);
  return blocking;
}

bool lt_cuda_launch_ok(cudaError_t status) {
  if (status == cudaSuccess) return !blocking || lt_cuda_fault_check(selected < 0 ? 0 : selected);
  const char *kernel = failing ? failing : "(unknown)";
  int index = selected < 0 ? 0 : selected;
  char doing[128];
  snprintf(doing, sizeof doing, "launch kernel %s", kernel);
  if (is_fatal(status)) return mark_lost(index, status, doing, failing);
  cudaGetLastError();
  return lt_fail("cannot launch kernel %s on \"%s\": CUDA error %d, %s", kernel, name_of(index),
                 (int)status, cudaGetErrorString(status));
}

/* ---- selecting ------------------------------------------------------------------------------- */

bool lt_cuda_select(int index) {
  if (lt_cuda_is_lost(index)) return fail_lost(index);
  if (selected == index) return true;
  cudaError_t status = cudaSetDevice(index);
  if (is_fatal(status)) { /* an error of this device or of the one selected before? */
    selected = index;
    status = cudaStreamQuery(NULL);
    if (is_fatal(status)) return mark_lost(index, status, "select the device", NULL);
  } else if (status != cudaSuccess) {
    cudaGetLastError();
    return lt_fail("cannot use \"%s\": CUDA error %d, %s", name_of(index), (int)status,
                   cudaGetErrorString(status));
  }
  selected = index;
  return true;
}

int lt_cuda_selected(bool must) {
  if (selected >= 0 || !must) return selected;
  int index = lt_cuda_backend.index_current ? lt_cuda_backend.index_current(&lt_cuda_backend) : 0;
  return lt_cuda_select(index) ? index : -1;
}

bool lt_cuda_begin(const lt_Call *c) {
  return lt_cuda_select(c->device.index) && lt_cuda_fault_check(c->device.index);
}
