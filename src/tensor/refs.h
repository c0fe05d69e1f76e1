/* refs.h: reference counts. */
#ifndef LT_REFS_H
#define LT_REFS_H

#include <stdatomic.h>

/* Removes a reference and returns the number before. The owner of the only reference needs no
 * atomic change: nobody else can add or remove one. */
static inline int lt_refs_drop(atomic_int *refs) {
  if (atomic_load_explicit(refs, memory_order_acquire) != 1)
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
  atomic_store_explicit(refs, 0, memory_order_relaxed);
  return 1;
}

#endif
