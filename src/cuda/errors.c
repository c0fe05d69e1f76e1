/* errors.c: the runtime's statuses as messages, what was launched lately, and devices that are
 * lost.
 *
 * A kernel that reads where there is no memory is noticed later, by a call that has nothing to do
 * with it; from then on every call on that device fails, until the program is started again. So we
 * remember which kernels were launched since the last wait. The first message says what can be
 * said; later calls give the same one, ask the driver nothing, and so neither hang nor crash.
 */
#include "cuda.h"

#include <pthread.h>

#define LAST 4 /* launches that a message names */

typedef struct Launch {
  const char *kernel, *op; /* both live as long as the program */
  bool in_place;
  cudaStream_t stream;
} Launch;

/* Of one device. */
typedef struct Watch {
  pthread_mutex_t lock;
  uint64_t launched, waited; /* kernels: all, and those that are known to be done */
  Launch last[LAST];         /* launch i is at i % LAST */
  bool mixed;                /* those not waited for are on several streams */
  atomic_bool lost;
  char why[1400];
} Watch;

static Watch watches[LT_ACCEL_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool blocking; /* CUDA_LAUNCH_BLOCKING */

static _Thread_local int selected = -1;
static _Thread_local const char *failing; /* the kernel whose launch failed last */

static void start(void) {
  for (int i = 0; i < LT_ACCEL_MAX; i++) pthread_mutex_init(&watches[i].lock, NULL);
  const char *v = getenv("CUDA_LAUNCH_BLOCKING");
  blocking = v && *v && strcmp(v, "0") != 0;
}

static const char *name_of(int index) {
  return lt_device_name((lt_Device){LT_DEVICE_cuda, (uint8_t)index});
}

/* Errors after which the context is of no use any more. */
static bool is_final(cudaError_t status) {
  switch ((int)status) {
  case 214: /* an uncorrectable error of its memory */
  case 220: /* of NVLink */
  case 226: /* an error that was contained, but ended the context */
  case 700: /* an illegal address */
  case 702: /* a kernel that took too long */
  case 709: /* the context was destroyed */
  case 710: /* an assertion in a kernel */
  case 714: /* the kernel's stack */
  case 715: /* an illegal instruction */
  case 716: /* a misaligned address */
  case 717: /* the wrong address space */
  case 718: /* the program counter */
  case 719: /* launch failure: anything else */
  case 721: /* tensor memory that a kernel did not give back */
  case 999: /* unknown */
    return true;
  default:
    return false;
  }
}

/* ---- launches -------------------------------------------------------------------------------- */

static void remember(Watch *w, const char *kernel, cudaStream_t stream) {
  lt_UserOp op = lt_user_op_now();
  pthread_mutex_lock(&w->lock);
  if (w->launched == w->waited)
    w->mixed = false;
  else if (w->last[(w->launched - 1) % LAST].stream != stream)
    w->mixed = true;
  w->last[w->launched++ % LAST] = (Launch){kernel, op.name, op.in_place, stream};
  pthread_mutex_unlock(&w->lock);
}

void lt_cuda_waited(int index, cudaStream_t stream, bool all) {
  Watch *w = &watches[index];
  pthread_once(&once, start);
  pthread_mutex_lock(&w->lock);
  if (all || (!w->mixed && w->launched > 0 && w->last[(w->launched - 1) % LAST].stream == stream))
    w->waited = w->launched;
  pthread_mutex_unlock(&w->lock);
}

cudaError_t lt_cuda_note_launch(const char *kernel, cudaStream_t stream, cudaError_t status) {
  pthread_once(&once, start);
  int index = selected < 0 ? 0 : selected;
  if (status == cudaSuccess || is_final(status)) remember(&watches[index], kernel, stream);
  if (status == cudaSuccess && blocking) {
    status = cudaStreamSynchronize(stream);
    if (status == cudaSuccess) lt_cuda_waited(index, stream, false);
  }
  if (status != cudaSuccess) failing = kernel;
  return status;
}

bool lt_cuda_make_room(void) {
  cudaGetLastError();
  return lt_cuda_backend.memory.retry(&lt_cuda_backend, selected < 0 ? 0 : selected);
}

/* "softmax (of softmax), scale, binary (of add_)": the last first; scale is a user's own kernel,
 * which stands in the op's place, too. Under the lock. */
static void launches_text(const Watch *w, char *text, size_t size) {
  uint64_t count = w->launched - w->waited, shown = count < LAST ? count : LAST;
  size_t used = 0;
  text[0] = 0;
  for (uint64_t i = 0; i < shown && used < size; i++) {
    const Launch *l = &w->last[(w->launched - 1 - i) % LAST];
    const char *op = l->op ? l->op + (l->op[0] == '_' && !l->in_place) : "lutra";
    if (l->op == l->kernel) {
      used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", l->kernel);
      continue;
    }
    used += (size_t)snprintf(text + used, size - used, "%s%s (of %s%s)", i ? ", " : "", l->kernel,
                             op, l->op && l->in_place ? "_" : "");
  }
  if (count > shown && used < size)
    snprintf(text + used, size - used, ", or one of %llu before",
             (unsigned long long)(count - shown));
}

/* ---- statuses -------------------------------------------------------------------------------- */

static bool say_lost(int index) { return lt_fail("%s", watches[index].why); }

/* The device's last message. The kernel is known when each was waited for. */
static bool lose(int index, cudaError_t status, const char *doing, const char *kernel) {
  Watch *w = &watches[index];
  char launches[600], where[900] = "";
  pthread_mutex_lock(&w->lock);
  if (!atomic_load(&w->lost)) {
    launches_text(w, launches, sizeof launches);
    if (kernel && blocking)
      snprintf(where, sizeof where, " in the kernel %s", launches);
    else if (launches[0])
      snprintf(where, sizeof where,
               ". It was found while %s; at fault is one of the kernels launched since the last "
               "wait: %s (CUDA_LAUNCH_BLOCKING=1 in the environment finds out which)",
               doing, launches);
    else
      snprintf(where, sizeof where, ". It was found while %s", doing);
    snprintf(w->why, sizeof w->why,
             "%s failed: CUDA error %d, %s%s. What the device held is lost; it needs a restart of "
             "the program",
             name_of(index), (int)status, cudaGetErrorString(status), where);
    atomic_store(&w->lost, true);
  }
  pthread_mutex_unlock(&w->lock);
  return say_lost(index);
}

bool lt_cuda_is_lost(int index) {
  return atomic_load_explicit(&watches[index].lost, memory_order_acquire);
}

bool lt_cuda_ok(cudaError_t status, const char *doing) {
  if (status == cudaSuccess) return true;
  pthread_once(&once, start);
  int index = selected < 0 ? 0 : selected;
  if (is_final(status)) return lose(index, status, doing, NULL);
  cudaGetLastError(); /* nobody else shall meet it */
  return lt_fail("CUDA error %d while %s on %s: %s", (int)status, doing, name_of(index),
                 cudaGetErrorString(status));
}

bool lt_cuda_is_blocking(void) {
  pthread_once(&once, start);
  return blocking;
}

bool lt_cuda_ran(cudaError_t status) {
  if (status == cudaSuccess) return !blocking || lt_cuda_fault_check(selected < 0 ? 0 : selected);
  const char *kernel = failing ? failing : "that was to be launched";
  int index = selected < 0 ? 0 : selected;
  char doing[128];
  snprintf(doing, sizeof doing, "launching the kernel %s", kernel);
  if (is_final(status)) return lose(index, status, doing, failing);
  cudaGetLastError();
  return lt_fail("the kernel %s could not be launched on %s: CUDA error %d, %s", kernel,
                 name_of(index), (int)status, cudaGetErrorString(status));
}

/* ---- selecting ------------------------------------------------------------------------------- */

bool lt_cuda_select(int index) {
  if (lt_cuda_is_lost(index)) return say_lost(index);
  if (selected == index) return true;
  cudaError_t status = cudaSetDevice(index);
  if (is_final(status)) { /* of this device, or of the one before? */
    selected = index;
    status = cudaStreamQuery(NULL);
    if (is_final(status)) return lose(index, status, "selecting it", NULL);
  } else if (status != cudaSuccess) {
    cudaGetLastError();
    return lt_fail("cannot use %s: CUDA error %d, %s", name_of(index), (int)status,
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
