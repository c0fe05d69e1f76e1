/* fault.h: bad values that only a device can see (an index out of range, a probability above 1).
 * A call that checks values takes a ticket, under which the host keeps the parts of its message. A
 * kernel that finds a bad value reports it with the ticket, uses a harmless value instead, and
 * continues. The host looks for reports at the next call and whenever it synchronizes. How reports
 * reach the host is the vendor's part. */
#ifndef LT_ACCEL_FAULT_H
#define LT_ACCEL_FAULT_H

#include "kernel.h"

/* The checks that only the device can make, and what each expects. */
typedef enum lt_FaultKind {
  LT_FAULT_INDEX,       /* expected 1..n, or -n..-1 if negative is allowed */
  LT_FAULT_DIVISOR,     /* expected an integer that is not 0 in the dtype `compute` */
  LT_FAULT_TARGET,      /* expected 1..n or `ignore` */
  LT_FAULT_PROBABILITY, /* expected 0..1; the value is a double */
  LT_FAULT_WEIGHT,      /* expected finite and not negative; a double; rows are n wide */
  LT_FAULT_WEIGHTS,     /* a row's weights: position is the row, value the number of nonzero
                         * weights, or -1 where their sum is infinite; at least `ignore` are
                         * expected */
  LT_FAULT_KINDS
} lt_FaultKind;

/* The part of a fault's message that is known when the call is made. */
typedef struct lt_FaultNote {
  lt_FaultKind kind;
  const char *argument; /* its name; lives as long as the program */
  int64_t n, ignore;
  bool negative;
  lt_Dtype compute;
  int ndim; /* of the argument that holds the values, to print the index of the bad one */
  int64_t shape[LT_MAX_DIMS];
} lt_FaultNote;

/* Tickets that are kept for each device: more than the calls that its queue holds. */
#define LT_FAULT_TICKETS 1024

typedef struct lt_FaultTicket {
  uint64_t number; /* counts from 1; the ticket is at number % LT_FAULT_TICKETS */
  lt_FaultNote note;
  const char *op; /* lives as long as the program */
  bool in_place;
  char where[64]; /* the line of the call in the user's program, or "" */
} lt_FaultTicket;

/* What a device has reported. */
typedef struct lt_FaultReport {
  uint64_t ticket;  /* of the call; 0: no fault was reported */
  int64_t position; /* of the first bad value: its index in the argument's elements, from 0 */
  int64_t value;    /* an integer, or the bits of a double */
} lt_FaultReport;

/* Fills in the ticket of the running call. `blocking`: the call itself reports bad values, because
 * the host blocks until each kernel is done. */
void lt_fault_ticket(lt_FaultTicket *ticket, uint64_t number, const lt_FaultNote *note,
                     bool blocking);
/* Raises the error as that of the call that has the ticket, whichever call runs now. `ticket` is
 * the one kept at the place of the report's; it may belong to a later call. Returns false. */
bool lt_fault_raise(lt_Device device, const lt_FaultTicket *ticket, const lt_FaultReport *report,
                    bool blocking);

#endif
