/* sort.metal: sorting. Elements are converted to unsigned integers with the same order (NaN is the
 * largest, -0 equals 0; complemented when descending), which are sorted together with their
 * indices: segments in threadgroup memory by Batcher's bitonic sort, then pairs of sorted runs by
 * merging. Values are copied by index, so they keep every bit. */
#include "sort.metal.h"

#include "sort.h"

#define WIDE       K0 /* the items are wide */
#define FROM_ITEMS K1 /* the input are items, else elements */
#define TO_VALUES  K2 /* the results are values and indices, else items */
#define DTYPE      K3 /* of the elements */
#define DESCENDING K4

/* ---- keys ------------------------------------------------------------------------------------ */

/* Converts the bits of a float to a key. `infinity` is the bits of infinity, `all` its largest
 * key. */
static inline uint float_key(uint bits, uint infinity, uint all) {
  uint sign = all ^ all >> 1;
  if ((bits & ~sign) > infinity) return all;
  if (bits == sign) bits = 0;
  return (bits & sign) != 0 ? all ^ bits : bits | sign;
}

/* Returns the key of element i. */
static inline uint64_t key_of(device const char *x, int64_t i) {
  uint64_t key, all = 0xffffffff;
  switch (DTYPE) {
  case LT_bool:
    key = ((device const uint8_t *)x)[i] != 0 ? 1 : 0;
    break;
  case LT_uint8:
    key = ((device const uint8_t *)x)[i];
    break;
  case LT_int8:
    key = ((device const uint8_t *)x)[i] ^ 0x80u;
    break;
  case LT_int16:
    key = ((device const uint16_t *)x)[i] ^ 0x8000u;
    break;
  case LT_float16:
    key = float_key(((device const uint16_t *)x)[i], 0x7c00u, 0xffffu);
    break;
  case LT_bfloat16:
    key = float_key(((device const uint16_t *)x)[i], 0x7f80u, 0xffffu);
    break;
  case LT_int32:
    key = ((device const uint *)x)[i] ^ 0x80000000u;
    break;
  case LT_float32:
    key = float_key(((device const uint *)x)[i], 0x7f800000u, 0xffffffffu);
    break;
  default:
    key = ((device const uint64_t *)x)[i] ^ (uint64_t)1 << 63;
    all = ~(uint64_t)0;
    break;
  }
  return DESCENDING != 0 ? all ^ key : key;
}

/* Stores element number `from` as result number `to`, and its index. */
static inline void store_element(device const char *x, device char *values, device int64_t *indices,
                                 int64_t to, int64_t from, int64_t index) {
  switch (dtype_size(DTYPE)) {
  case 1:
    ((device uint8_t *)values)[to] = ((device const uint8_t *)x)[from];
    break;
  case 2:
    ((device uint16_t *)values)[to] = ((device const uint16_t *)x)[from];
    break;
  case 4:
    ((device uint *)values)[to] = ((device const uint *)x)[from];
    break;
  default:
    ((device uint64_t *)values)[to] = ((device const uint64_t *)x)[from];
    break;
  }
  indices[to] = index + LT_INDEX_BASE;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Sorts each of the threadgroup's segments; `total` is the number of their items. */
template <typename Item>
static inline void sort_segments(threadgroup Item *items, int size, int total, int index) {
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      for (int i = index; i < total / 2; i += LT_LOOP_THREADS) {
        int low = 2 * i - (i & (step - 1)), high = low + step;
        bool falling = (low & (size - 1) & run) != 0;
        Item a = items[low], b = items[high];
        if (is_after(a, b) != falling) {
          items[low] = b;
          items[high] = a;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

template <typename Item>
static inline void order_all_segments(device const char *x, device const Item *from,
                                      device Item *to, device char *values, device int64_t *indices,
                                      constant lt_MpsSegments &s, threadgroup Item *items,
                                      Place place) {
  const int total = s.size * s.together, index = (int)place.index;
  for (int64_t g = place.group; g < s.groups; g += place.groups) {
    for (int i = index; i < total; i += LT_LOOP_THREADS) {
      int64_t segment = g * s.together + i / s.size, row = segment / s.each;
      int64_t at = segment % s.each * s.size + i % s.size;
      Item item;
      if (row >= s.rows || at >= s.count)
        set_none(item);
      else if (FROM_ITEMS != 0)
        item = from[row * s.count + at];
      else
        set_item(item, key_of(x, row * s.n + at), at);
      items[i] = item;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sort_segments(items, s.size, total, index);
    for (int i = index; i < total; i += LT_LOOP_THREADS) {
      int64_t segment = g * s.together + i / s.size, row = segment / s.each;
      int j = i % s.size;
      if (row >= s.rows || j >= s.keep) continue;
      Item item = items[i];
      if (TO_VALUES != 0) {
        store_element(x, values, indices, row * s.keep + j, row * s.n + index_of(item),
                      index_of(item));
      } else if (s.keep < s.size) {
        to[segment * s.keep + j] = item;
      } else {
        int64_t at = segment % s.each * s.size + j;
        if (at < s.count) to[row * s.count + at] = item;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

kernel void order_segments(device const char *x [[buffer(0)]],
                           device const char *from [[buffer(1)]], device char *to [[buffer(2)]],
                           device char *values [[buffer(3)]], device int64_t *indices [[buffer(4)]],
                           constant lt_MpsSegments &s [[buffer(5)]], LT_GRID) {
  threadgroup NarrowItem items[LT_SORT_NARROW];
  const Place place = LT_PLACE;
  if (WIDE != 0)
    order_all_segments<WideItem>(x, (device const WideItem *)from, (device WideItem *)to, values,
                                 indices, s, (threadgroup WideItem *)items, place);
  else
    order_all_segments<NarrowItem>(x, (device const NarrowItem *)from, (device NarrowItem *)to,
                                   values, indices, s, items, place);
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Moves every item to its place in the merged run: its index in its own run plus the number of
 * items of the other run that precede it. */
template <typename Item>
static inline void merge_all(device const Item *from, device Item *to, constant lt_MpsMerge &m,
                             Place place) {
  LT_EACH(place, i, m.rows * m.n) {
    int64_t at, row = divide(i, m.n, &at), own;
    int64_t pair = divide(at, 2 * m.run, &own) * 2 * m.run;
    int64_t other = own < m.run ? pair + m.run : pair, low = 0, high = m.n - other;
    if (high > m.run) high = m.run;
    Item item = from[i];
    device const Item *run = from + row * m.n + other;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      Item v = run[middle];
      if (is_after(item, v))
        low = middle + 1;
      else
        high = middle;
    }
    to[row * m.n + pair + (own < m.run ? own : own - m.run) + low] = item;
  }
}

kernel void merge_items(device const char *from [[buffer(0)]], device char *to [[buffer(1)]],
                        constant lt_MpsMerge &m [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (WIDE != 0)
    merge_all((device const WideItem *)from, (device WideItem *)to, m, place);
  else
    merge_all((device const NarrowItem *)from, (device NarrowItem *)to, m, place);
}

/* ---- results --------------------------------------------------------------------------------- */

template <typename Item>
static inline void gather_all(device const char *x, device const Item *items, device char *values,
                              device int64_t *indices, constant lt_MpsOrder &o, Place place) {
  LT_EACH(place, i, o.rows * o.k) {
    int64_t j, row = divide(i, o.k, &j);
    Item item = items[row * o.n + j];
    store_element(x, values, indices, i, row * o.n + index_of(item), index_of(item));
  }
}

kernel void order_gather(device const char *x [[buffer(0)]], device const char *items [[buffer(1)]],
                         device char *values [[buffer(2)]], device int64_t *indices [[buffer(3)]],
                         constant lt_MpsOrder &o [[buffer(4)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (WIDE != 0)
    gather_all(x, (device const WideItem *)items, values, indices, o, place);
  else
    gather_all(x, (device const NarrowItem *)items, values, indices, o, place);
}
