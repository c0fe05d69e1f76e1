/* fault.c: bad values that only the device can see. Every check has a slot in memory that host and
 * device share, which is empty except between a bad value and its message, so that no call has to
 * clear its own. Kernels lower the slot's position; the last kernel of a check stores the value,
 * and sets a flag, which the host reads at its next call.
 *
 * The host then blocks until the device is done, and raises the error of the earliest call that has
 * reported one: later calls work with the harmless replacements of bad values.
 */
#include "fault.h"
#include "queue.h"

#include <pthread.h>

#define THREADS 256
#define HEADER  256 /* bytes before the slots: the flag */

/* The faults of one device; allocated at its first check. */
typedef struct Faults {
  volatile int32_t *_Atomic raised; /* NULL until it is allocated */
  lt_MetalBuffer *buffer;
  lt_FaultTicket *tickets;
  uint64_t last; /* the number of the last ticket; the first is 1 */
} Faults;

static Faults all[LT_ACCEL_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static lt_MpsFaultSlot *slots_of(const Faults *f) {
  return (lt_MpsFaultSlot *)((char *)f->buffer->contents + HEADER);
}

/* ---- tickets --------------------------------------------------------------------------------- */

/* Allocates the memory of a device's faults. On failure nothing is kept and a later call tries
 * again. Requires the lock. */
static bool make(int index, Faults *f) {
  lt_MetalError error;
  size_t nbytes = HEADER + LT_FAULT_TICKETS * sizeof(lt_MpsFaultSlot);
  if (!f->tickets) f->tickets = calloc(LT_FAULT_TICKETS, sizeof *f->tickets);
  if (!f->tickets) return lt_fail_memory();
  f->buffer = lt_metal_buffer_new(lt_mps_device(index), nbytes, LT_METAL_SHARED, &error);
  if (!f->buffer && error.status == LT_METAL_NO_MEMORY &&
      lt_mps_backend.memory.retry(&lt_mps_backend, index))
    f->buffer = lt_metal_buffer_new(lt_mps_device(index), nbytes, LT_METAL_SHARED, &error);
  if (!f->buffer) return lt_mps_fail(index, &error, "allocate memory");
  if (!lt_mps_buffer_add(false, f->buffer)) {
    lt_metal_buffer_free(f->buffer);
    return lt_fail_memory();
  }
  memset(f->buffer->contents, 0, nbytes);
  for (int i = 0; i < LT_FAULT_TICKETS; i++) slots_of(f)[i].position = LT_MPS_NO_FAULT;
  atomic_store(&f->raised, f->buffer->contents);
  return true;
}

bool lt_mps_fault_open(const lt_Call *c, const lt_FaultNote *note, lt_MpsFault *out) {
  int index = c->device.index;
  Faults *f = &all[index];
  if (!lt_mps_check_lost(index)) return false;
  pthread_mutex_lock(&lock);
  bool ok = atomic_load(&f->raised) || make(index, f);
  if (ok) {
    uint64_t number = ++f->last, at = number % LT_FAULT_TICKETS;
    lt_fault_ticket(&f->tickets[at], number, note, lt_mps_is_blocking());
    uint64_t slot = f->buffer->address + HEADER + at * sizeof(lt_MpsFaultSlot);
    *out = (lt_MpsFault){(const void *)(uintptr_t)slot, number};
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

/* Fills in the number of elements and the geometry of a tensor, as one dimension where it is
 * contiguous, so that neighbouring threads read neighbouring elements. */
static void set_geometry(const lt_Tensor *t, lt_MpsFaultArgs *args) {
  lt_MpsGeometry1 *g = &args->geometry;
  int64_t dense = 1, furthest = 0;
  bool is_dense = true, forward = true;
  for (int d = t->ndim - 1; d >= 0; d--) {
    is_dense = is_dense && (t->shape[d] == 1 || t->strides[d] == dense);
    forward = forward && t->strides[d] >= 0;
    furthest += t->shape[d] > 0 ? (t->shape[d] - 1) * t->strides[d] : 0;
    dense *= t->shape[d];
  }
  args->count = t->numel;
  g->ndim = is_dense ? 1 : t->ndim;
  g->narrow = forward && t->numel < INT32_MAX && furthest < INT32_MAX;
  for (int d = 0; d < g->ndim; d++) {
    g->shape[d] = is_dense ? t->numel : t->shape[d];
    g->strides[0][d] = is_dense ? 1 : t->strides[d];
  }
}

/* Launches one thread for each element of a checked tensor. */
static void set_grid(lt_MpsLaunch *l, int64_t count) {
  int64_t groups = lt_mps_groups(count, THREADS), most = 1 << 22;
  l->groups[0] = groups < most ? groups : most;
  l->groups[1] = lt_mps_groups(groups, most);
  l->threads[0] = THREADS;
}

/* Queues the kernel that ends a check. */
static bool close_check(int index, lt_Stream *stream, const lt_MpsFault *fault,
                        const lt_Tensor *values) {
  lt_MpsFaultArgs args = {.ticket = (uint32_t)fault->ticket};
  set_geometry(values, &args);
  return lt_mps_launch_on(index, stream,
                          &(lt_MpsLaunch){
                              .file = "fault",
                              .kernel = "close_check",
                              .constants = {(int32_t)values->dtype},
                              .data = {fault->slot, lt_tensor_data((lt_Tensor *)(uintptr_t)values),
                                       (const void *)(uintptr_t)all[index].buffer->address},
                              .count = 3,
                              .arguments = &args,
                              .size = sizeof args,
                          });
}

bool lt_mps_fault_close(const lt_Call *c, const lt_MpsFault *fault, const lt_Tensor *values) {
  return close_check(c->device.index, c->stream, fault, values);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Returns the value of a slot as a message takes it: an integer, or the bits of a double. */
static int64_t value_of(const lt_FaultNote *note, const lt_MpsFaultSlot *slot) {
  uint32_t bits = (uint32_t)slot->value;
  float narrow;
  if (note->kind != LT_FAULT_PROBABILITY && note->kind != LT_FAULT_WEIGHT) return slot->value;
  memcpy(&narrow, &bits, sizeof narrow);
  double wide = (double)narrow;
  int64_t out;
  memcpy(&out, &wide, sizeof out);
  return out;
}

/* Finds the report of the earliest ticket, and empties all slots. Requires the lock; the device is
 * done. */
static void take_report(Faults *f, lt_FaultReport *report, lt_FaultTicket *ticket) {
  *report = (lt_FaultReport){0};
  for (int i = 0; i < LT_FAULT_TICKETS; i++) {
    lt_MpsFaultSlot *slot = &slots_of(f)[i];
    if (slot->position == LT_MPS_NO_FAULT) continue;
    uint64_t number = f->last - (uint32_t)((uint32_t)f->last - slot->ticket);
    if (report->ticket == 0 || number < report->ticket) {
      *ticket = f->tickets[i];
      *report = (lt_FaultReport){number, slot->position, value_of(&ticket->note, slot)};
    }
    slot->position = LT_MPS_NO_FAULT;
  }
}

/* Raises the pending report, unless another thread has raised it. Returns true when nothing was
 * reported. When the wait for the device is interrupted, the report stays pending. */
static bool raise_fault(int index, Faults *f) {
  lt_FaultReport report = {0};
  lt_FaultTicket ticket;
  if (!lt_mps_check_lost(index)) return false;
  pthread_mutex_lock(&lock);
  volatile int32_t *raised = atomic_load(&f->raised);
  bool ok =
      !*raised || (lt_wait_device(&lt_mps_backend, index) && lt_mps_queues_synchronize(index));
  if (ok && *raised) {
    *raised = 0;
    take_report(f, &report, &ticket);
  }
  pthread_mutex_unlock(&lock);
  return ok && (report.ticket == 0 || lt_fault_raise((lt_Device){LT_DEVICE_mps, (uint8_t)index},
                                                     &ticket, &report, lt_mps_is_blocking()));
}

bool lt_mps_fault_check(int index) {
  volatile int32_t *raised = atomic_load_explicit(&all[index].raised, memory_order_relaxed);
  return !raised || !*raised || raise_fault(index, &all[index]);
}

/* ---- index tensors --------------------------------------------------------------------------- */

lt_Tensor *lt_mps_checked_indices(lt_Call *c, lt_Tensor *index, int64_t n, bool negative,
                                  const char *name, lt_MpsFault *fault) {
  lt_FaultNote note = {
      .kind = LT_FAULT_INDEX, .argument = name, .n = n, .negative = negative, .ndim = index->ndim};
  memcpy(note.shape, index->shape, sizeof *note.shape * (size_t)index->ndim);
  if (!lt_mps_fault_open(c, &note, fault)) return NULL;
  lt_Tensor *out = lt_empty(LT_int64, c->device, index->ndim, index->shape);
  if (!out || index->numel == 0) return out;
  lt_MpsFaultArgs args = {.n = n, .flag = negative};
  lt_MpsLaunch launch = {.file = "fault",
                         .kernel = "check_indices",
                         .constants = {(int32_t)index->dtype},
                         .data = {lt_tensor_data(index), lt_tensor_data(out), fault->slot},
                         .count = 3,
                         .arguments = &args,
                         .size = sizeof args};
  set_geometry(index, &args);
  set_grid(&launch, index->numel);
  if (lt_mps_launch(c, &launch) && lt_mps_fault_close(c, fault, index)) return out;
  lt_release(out);
  return NULL;
}

/* ---- divisors -------------------------------------------------------------------------------- */

/* The host blocks for a division in place, until the divisor is known to be valid: the division
 * would overwrite the values of self. */
bool lt_mps_check_divisor(const lt_Call *c, const lt_Tensor *divisor) {
  int index = c->device.index;
  lt_FaultNote note = {.kind = LT_FAULT_DIVISOR,
                       .argument = lt_arg_name(c, 1),
                       .compute = c->compute,
                       .ndim = divisor->ndim};
  lt_MpsFault fault;
  lt_Stream *stream = lt_stream_of(divisor);
  memcpy(note.shape, divisor->shape, sizeof *note.shape * (size_t)divisor->ndim);
  if (!lt_mps_fault_check(index) || !lt_mps_fault_open(c, &note, &fault)) return false;
  lt_MpsFaultArgs args = {.flag = c->compute == LT_int32};
  lt_MpsLaunch launch = {.file = "fault",
                         .kernel = "check_divisor",
                         .constants = {(int32_t)divisor->dtype},
                         .data = {lt_tensor_data((lt_Tensor *)(uintptr_t)divisor), fault.slot},
                         .count = 2,
                         .arguments = &args,
                         .size = sizeof args};
  set_geometry(divisor, &args);
  set_grid(&launch, divisor->numel);
  return lt_mps_launch_on(index, stream, &launch) && close_check(index, stream, &fault, divisor) &&
         (!c->in_place || lt_stream_synchronize(stream));
}
