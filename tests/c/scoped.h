/* scoped.h: runs tests, and calls within them, in a scope, which frees their tensors. */
#ifndef LT_TESTS_SCOPED_H
#define LT_TESTS_SCOPED_H

#include "check.h"
#include "core.h"

#define IN_SCOPE(call)                                                                             \
  do {                                                                                             \
    size_t mark_ = lt_scope_open();                                                                \
    call;                                                                                          \
    lt_scope_close(mark_, NULL);                                                                   \
  } while (0)
#define RUN_SCOPED(test) IN_SCOPE(RUN(test))

#endif
