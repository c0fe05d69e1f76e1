/* fault.h: the structs that fault.metal shares with the host. */
#ifndef LT_MPS_FAULT_H
#define LT_MPS_FAULT_H

#include "geometry.h"

/* The slot of a check (lt_MpsFault.slot), in memory that host and device share. `position` is the
 * first member: kernels lower it atomically. */
typedef struct lt_MpsFaultSlot {
  uint32_t position; /* of the first bad value, from 0 */
  uint32_t ticket;   /* the low bits of the ticket's number */
  int64_t value;     /* an integer, or the bits of a float */
} lt_MpsFaultSlot;

#define LT_MPS_NO_FAULT 0xffffffffu /* `position` while nothing is reported */

/* The arguments of the kernels of fault.metal. */
typedef struct lt_MpsFaultArgs {
  int64_t count; /* elements */
  int64_t n;     /* indices are 1..n */
  int32_t flag;  /* negative indices are allowed; a divisor is converted to 32 bits */
  uint32_t ticket;
  lt_MpsGeometry1 geometry;
} lt_MpsFaultArgs;

#endif
