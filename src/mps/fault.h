/* fault.h: the structs that fault.metal shares with the host. */
#ifndef LT_MPS_FAULT_H
#define LT_MPS_FAULT_H

#include "dtypes.h"

/* The slot of a check (lt_MpsFault.slot), in memory that host and device share. `position` is the
 * first member: kernels lower it atomically. */
typedef struct lt_MpsFaultSlot {
  uint32_t position; /* of the first bad value, from 0 */
  uint32_t ticket;   /* the low bits of the ticket's number */
  int64_t value;     /* an integer, or the bits of a float */
} lt_MpsFaultSlot;

#define LT_MPS_NO_FAULT 0xffffffffu /* `position` while nothing is reported */

/* The arguments of the kernels of fault.metal. Strides are in elements. */
typedef struct lt_MpsFaultArgs {
  int64_t count; /* elements */
  int64_t n;
  int32_t negative, narrow;
  uint32_t ticket;
  int32_t ndim;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
} lt_MpsFaultArgs;

#endif
