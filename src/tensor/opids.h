/* opids.h: a number for every op, in the order of ops.def. No other header includes it, so that a
 * new row only recompiles the sources that name ops. */
#ifndef LT_OPIDS_H
#define LT_OPIDS_H

enum lt_OpIds {
#define LT_ELEMENTWISE(name, ...) LT_OP_##name,
#define LT_REDUCE(name, ...)      LT_OP_##name,
#define LT_KERNEL(name, ...)      LT_OP_##name,
#define LT_UPDATE(name, ...)      LT_OP_##name,
#define LT_MAP(name, ...)         LT_OP_##name,
#define LT_VIEW(name, ...)        LT_OP_##name,
#define LT_COMPOSITE(name, ...)   LT_OP_##name,
#include "ops.def"
  LT_OP_COUNT
};

#endif
