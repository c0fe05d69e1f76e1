/* search.metal: binary search for many values in sorted rows, a thread for each value. */
#include "loops.metal.h"
#include "binary_search.h"
#include "search.h"

#define DTYPE    K0
#define IS_FLOAT K1

template <typename T>
static inline void search_all(device const char *sorted, device const char *values,
                              device int64_t *out, constant lt_MpsSearch &s, Place place) {
  LT_EACH(place, i, s.count) {
    int64_t rest, row = s.one_row != 0 ? 0 : divide(i, s.each, &rest), low = 0;
    T value = load<T>(values, DTYPE, i);
#define ELEMENT(k) load<T>(sorted, DTYPE, row * s.n + (k))
    LT_BINARY_SEARCH(int64_t, low, s.n, ELEMENT, value, s.right != 0)
    out[i] = low + LT_INDEX_BASE;
  }
}

kernel void search(device const char *sorted [[buffer(0)]], device const char *values [[buffer(1)]],
                   device int64_t *out [[buffer(2)]], constant lt_MpsSearch &s [[buffer(3)]],
                   LT_GRID) {
  const Place place = LT_PLACE;
  if (IS_FLOAT != 0)
    search_all<float>(sorted, values, out, s, place);
  else
    search_all<int64_t>(sorted, values, out, s, place);
}
