/* binary_search.h: the search in a sorted sequence, written once for the kernels of every device
 * (C, C++ and Metal). */
#ifndef LT_BINARY_SEARCH_H
#define LT_BINARY_SEARCH_H

/* Moves `low`, a variable from 0 on, to the number of elements of the sorted sequence `at` of n
 * elements that belong before `value`: those below it, and, with `right`, those equal to it. NaN
 * belongs after every number. `at(i)` is element i (from 0) in the type of `value`; Int is the type
 * of indices. */
#define LT_BINARY_SEARCH(Int, low, n, at, value, right)                                            \
  for (Int lt_high = (n); (low) < lt_high;) {                                                      \
    Int lt_middle = (low) + (lt_high - (low)) / 2;                                                 \
    if ((right) ? !(at(lt_middle) > (value)) : !(at(lt_middle) >= (value)))                        \
      (low) = lt_middle + 1;                                                                       \
    else                                                                                           \
      lt_high = lt_middle;                                                                         \
  }

#endif
