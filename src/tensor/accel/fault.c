/* fault.c: the tickets and messages of bad values that only a device can see. */
#include "fault.h"

void lt_fault_ticket(lt_FaultTicket *ticket, uint64_t number, const lt_FaultNote *note,
                     bool blocking) {
  lt_UserOp op = lt_user_op_get();
  *ticket = (lt_FaultTicket){number, *note, op.name, op.in_place, ""};
  if (note->kind == LT_FAULT_INDEX)
    lt_user_index_apply(&ticket->note.argument, &ticket->note.ndim, note->shape);
  if (!blocking) lt_memory_where(ticket->where, sizeof ticket->where);
}

static double as_double(int64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Sets the error message, the same as on the CPU (value_errors.c). */
static void set_message(const lt_FaultNote *n, const lt_FaultReport *r) {
  switch (n->kind) {
  case LT_FAULT_DIVISOR:
    lt_bad_divisor(n->argument, n->ndim, n->shape, r->position, r->value, n->compute);
    break;
  case LT_FAULT_TARGET:
    lt_bad_target(n->ndim, n->shape, r->position, r->value, n->n, n->ignore);
    break;
  case LT_FAULT_PROBABILITY:
    lt_bad_probability(as_double(r->value), r->position, n->ndim, n->shape);
    break;
  case LT_FAULT_WEIGHT:
    lt_bad_weight(as_double(r->value), r->position % n->n, r->position / n->n);
    break;
  case LT_FAULT_WEIGHTS:
    lt_bad_weights(r->position, r->value, n->ignore);
    break;
  default:
    lt_bad_index(n->argument, n->ndim, n->shape, r->position, r->value, n->n, n->negative);
  }
}

bool lt_fault_raise(lt_Device device, const lt_FaultTicket *ticket, const lt_FaultReport *report,
                    bool blocking) {
  bool known = ticket->number == report->ticket;
  if (known) {
    lt_UserOp now = lt_user_op_set((lt_UserOp){ticket->op, ticket->in_place});
    set_message(&ticket->note, report);
    lt_user_op_set(now);
  } else {
    lt_fail("cannot continue: a value of an earlier call is out of range, too many calls ago to "
            "say which");
  }
  if (blocking) return false;
  lt_error_append(" (reported later by \"%s\", which runs asynchronously)", lt_device_name(device));
  if (known && ticket->where[0]) lt_error_append("; the call was at %s", ticket->where);
  return false;
}
