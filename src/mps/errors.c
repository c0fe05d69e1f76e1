/* errors.c: messages for Metal's errors, and lost devices.
 *
 * A command buffer that fails (a page fault, a kernel that runs for too long) leaves memory in an
 * undefined state. Its completion handler, on another thread, marks the device as lost. The next
 * call on the device raises the error, which names the last kernels of that command buffer; later
 * calls repeat it without calling Metal.
 */
#include "queue.h"

#include <pthread.h>

/* The state of one device. */
typedef struct DeviceState {
  atomic_bool lost;
  char message[1800]; /* once `lost` is set */
} DeviceState;

static DeviceState states[LT_ACCEL_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* while a device is marked as lost */

static const char *name_of(int index) {
  return lt_device_name((lt_Device){LT_DEVICE_mps, (uint8_t)index});
}

bool lt_mps_is_blocking(void) {
  static atomic_int known; /* 0: not read yet; 1: no; 2: yes */
  if (!atomic_load_explicit(&known, memory_order_relaxed)) {
    const char *v = getenv("LUTRA_MPS_BLOCKING");
    atomic_store(&known, v && *v && strcmp(v, "0") != 0 ? 2 : 1);
  }
  return atomic_load_explicit(&known, memory_order_relaxed) == 2;
}

/* ---- lost devices ---------------------------------------------------------------------------- */

void lt_mps_mark_lost(int index, const lt_MetalError *error, const lt_MpsRecent *recent) {
  DeviceState *w = &states[index];
  char launches[600] = "", where[800] = "";
  if (recent)
    lt_launches_text(recent->launch, recent->count, recent->count, launches, sizeof launches);
  if (launches[0] && lt_mps_is_blocking())
    snprintf(where, sizeof where, " in kernel %s", launches);
  else if (launches[0])
    snprintf(where, sizeof where,
             "; one of the kernels of the command buffer caused it: %s\nhint: LUTRA_MPS_BLOCKING=1 "
             "in the environment finds out which",
             launches);
  pthread_mutex_lock(&lock);
  if (!atomic_load(&w->lost)) {
    snprintf(w->message, sizeof w->message,
             "cannot use \"%s\" anymore, its memory is lost until the program restarts: %s%s",
             name_of(index), error->text, where);
    atomic_store_explicit(&w->lost, true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

bool lt_mps_is_lost(int index) {
  return atomic_load_explicit(&states[index].lost, memory_order_acquire);
}

bool lt_mps_check_lost(int index) {
  return !lt_mps_is_lost(index) || lt_fail("%s", states[index].message);
}

void lt_mps_forget_lost(int index) { atomic_store(&states[index].lost, false); }

bool lt_mps_fail(int index, const lt_MetalError *error, const char *doing) {
  if (error->status == LT_METAL_LOST) lt_mps_mark_lost(index, error, NULL);
  if (!lt_mps_check_lost(index)) return false;
  if (error->status == LT_METAL_NO_MEMORY) {
    lt_error_memory("%s: cannot %s on \"%s\": %s", lt_user_op(), doing, name_of(index),
                    error->text);
    return false;
  }
  return lt_fail("cannot %s on \"%s\": %s", doing, name_of(index), error->text);
}

bool lt_mps_begin(const lt_Call *c) {
  return lt_mps_check_lost(c->device.index) && lt_mps_fault_check(c->device.index);
}
