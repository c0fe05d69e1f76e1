/* scoped.h: runs tests in a scope, which frees their tensors. */
#ifndef LT_TESTS_SCOPED_H
#define LT_TESTS_SCOPED_H

#include "check.h"
#include "core.h"

#define RUN_SCOPED(test)                                                                           \
  do {                                                                                             \
    size_t mark_ = lt_scope_open();                                                                \
    RUN(test);                                                                                     \
    lt_scope_close(mark_, NULL);                                                                   \
  } while (0)

#endif
