/* opids.h: a number for every op, in the order of ops.def. Apart from dtypes.h because a new row
 * changes it, and few kernels need it. */
#ifndef LT_OPIDS_H
#define LT_OPIDS_H

typedef enum lt_OpId {
#define LT_ELEMENTWISE(name, ...) LT_OP_##name,
#define LT_REDUCE(name, ...)      LT_OP_##name,
#define LT_KERNEL(name, ...)      LT_OP_##name,
#define LT_UPDATE(name, ...)      LT_OP_##name,
#define LT_VIEW(name, ...)        LT_OP_##name,
#define LT_COMPOSITE(name, ...)   LT_OP_##name,
#include "ops.def"
  LT_OP_COUNT
} lt_OpId;

#endif
