/* communication.c: the names of collectives and reductions. */
#include "communication.h"

const char *lt_comm_kind_name(lt_CommKind kind) {
#define ROW(name) #name,
  static const char *const names[] = {LT_COMM_KINDS(ROW)};
#undef ROW
  return names[kind];
}

const char *lt_comm_reduction_name(lt_CommReduction reduction) {
#define ROW(name) #name,
  static const char *const names[] = {LT_COMM_REDUCTIONS(ROW)};
#undef ROW
  return names[reduction];
}
