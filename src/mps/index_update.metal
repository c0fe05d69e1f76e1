/* index_update.metal: the kernels of index_update.c.
 *
 * Sums of halves are computed in float32, of integers in int64, and each one by a single thread in
 * the order of the index: the result is the same as that of a loop on the CPU, bit for bit.
 */
#include "index_regions.metal.h"
#include "index_update.h"
#include "sort.metal.h"

/* ---- which elements share a cell ------------------------------------------------------------- */

/* The line of element e of the index, its index in the line, and the line's first element. */
struct LinePosition {
  int64_t line, j, first;
};
static inline LinePosition line_position(constant lt_MpsLines &l, int64_t e) {
  LinePosition s = {0, e, 0};
  if (l.outer == 1 && l.inner == 1) return s;
  int64_t in, outer = divide(divide(e, l.inner, &in), l.length, &s.j);
  s.line = outer * l.inner + in;
  s.first = outer * l.length * l.inner + in;
  return s;
}
static inline int64_t elements(constant lt_MpsLines &l) { return l.outer * l.length * l.inner; }

/* Sets keep[e] = 1 where no later element of the index has e's cell, else 0. Compares all elements
 * of a line. */
kernel void keep_near(device const int64_t *at [[buffer(0)]], device uint8_t *keep [[buffer(1)]],
                      constant lt_MpsLines &l [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH_ALONE(place, e, elements(l)) {
    LinePosition s = line_position(l, e);
    int64_t v = at[e];
    bool last = true;
    for (int64_t j = s.j + 1; j < l.length && last; j++) last = at[s.first + j * l.inner] != v;
    keep[e] = last ? 1 : 0;
  }
}

/* Do the same by a mark in each cell: the number of its last element, from 1. */
kernel void note_cells(device const int64_t *at [[buffer(0)]],
                       device atomic_uint *notes [[buffer(1)]],
                       constant lt_MpsLines &l [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, e, elements(l)) {
    int64_t cell = line_position(l, e).line * l.n + at[e];
    atomic_fetch_max_explicit(&notes[cell], (uint)e + 1u, memory_order_relaxed);
  }
}
kernel void keep_noted(device const int64_t *at [[buffer(0)]],
                       device const uint *notes [[buffer(1)]], device uint8_t *keep [[buffer(2)]],
                       constant lt_MpsLines &l [[buffer(3)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, e, elements(l)) {
    int64_t cell = line_position(l, e).line * l.n + at[e];
    keep[e] = notes[cell] == (uint)e + 1u ? 1 : 0;
  }
}

/* Does the same from elements sorted by cell. */
kernel void keep_ordered(device const WideItem *items [[buffer(0)]],
                         device uint8_t *keep [[buffer(1)]], constant lt_MpsLines &l [[buffer(2)]],
                         LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, i, elements(l)) {
    bool last = i == elements(l) - 1 || items[i + 1].key != items[i].key;
    keep[items[i].index] = last ? 1 : 0;
  }
}

/* Sorts the elements of the index by cell, stably, by rank: the rank of an element is the number of
 * elements of its line with a smaller cell, or the same cell and before it. */
kernel void order_near(device const int64_t *at [[buffer(0)]], device WideItem *items [[buffer(1)]],
                       constant lt_MpsLines &l [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH_ALONE(place, e, elements(l)) {
    LinePosition s = line_position(l, e);
    int64_t v = at[e], rank = s.line * l.length;
    for (int64_t j = 0; j < l.length; j++) {
      int64_t w = at[s.first + j * l.inner];
      rank += w < v || (w == v && j < s.j) ? 1 : 0;
    }
    WideItem item;
    set_item(item, (uint64_t)(s.line * l.n + v), e);
    items[rank] = item;
  }
}

/* Writes the cells of the elements in their order, as items to sort. */
kernel void cells(device const int64_t *at [[buffer(0)]], device WideItem *items [[buffer(1)]],
                  constant lt_MpsLines &l [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, e, elements(l)) {
    WideItem item;
    set_item(item, (uint64_t)(line_position(l, e).line * l.n + at[e]), e);
    items[e] = item;
  }
}

/* ---- writing: does nothing where a bad value is reported ------------------------------------- */

#define UNIT     K0 /* bytes */
#define HAS_FROM K1 /* write `from`, else the value */
#define HAS_KEEP                                                                                   \
  K2 /* write only the elements that `keep` tells; else no element is selected twice */

static inline uint8_t unit_of(constant lt_MpsPut &a, uint8_t) { return (uint8_t)a.value[0]; }
static inline uint16_t unit_of(constant lt_MpsPut &a, uint16_t) { return (uint16_t)a.value[0]; }
static inline uint unit_of(constant lt_MpsPut &a, uint) { return a.value[0]; }
static inline uint2 unit_of(constant lt_MpsPut &a, uint2) { return uint2(a.value[0], a.value[1]); }
static inline uint4 unit_of(constant lt_MpsPut &a, uint4) {
  return uint4(a.value[0], a.value[1], a.value[2], a.value[3]);
}

template <typename U>
static inline void put(device const int64_t *at, device U *to, device const U *from,
                       device const uint8_t *keep, constant lt_MpsPut &a, Place place) {
  const U value = unit_of(a, U());
  LT_EACH(place, i, a.p.count) {
    RegionOffsets offsets = region_offsets(a.p, i);
    if (HAS_KEEP != 0 && keep[offsets.index] == 0) continue;
    U v = value;
    if (HAS_FROM != 0) v = from[offsets.other];
    to[offsets.self + at[offsets.index] * a.p.step] = v;
  }
}

kernel void index_put(device const int64_t *at [[buffer(0)]], device char *to [[buffer(1)]],
                      device const char *from [[buffer(2)]],
                      device const uint8_t *keep [[buffer(3)]],
                      device const uint *bad [[buffer(4)]], constant lt_MpsPut &a [[buffer(5)]],
                      LT_GRID) {
  const Place place = LT_PLACE;
  if (is_bad(bad)) return;
  if (UNIT == 1)
    put(at, (device uint8_t *)to, (device const uint8_t *)from, keep, a, place);
  else if (UNIT == 2)
    put(at, (device uint16_t *)to, (device const uint16_t *)from, keep, a, place);
  else if (UNIT == 4)
    put(at, (device uint *)to, (device const uint *)from, keep, a, place);
  else if (UNIT == 8)
    put(at, (device uint2 *)to, (device const uint2 *)from, keep, a, place);
  else
    put(at, (device uint4 *)to, (device const uint4 *)from, keep, a, place);
}

/* ---- adding ---------------------------------------------------------------------------------- */

#define DTYPE  K0
#define SORTED K1 /* the lines are sorted by cell; else no element is selected twice */

static inline int64_t add_scaled(int64_t sum, int64_t v, constant lt_MpsAdd &a) {
  return (int64_t)((uint64_t)sum + (uint64_t)a.scale_int * (uint64_t)v);
}
/* The product is rounded before the addition, as on the CPU: fma(x, y, 0) cannot be contracted. */
static inline float add_scaled(float sum, float v, constant lt_MpsAdd &a) {
  return a.scale == 1.0f ? sum + v : sum + fma(a.scale, v, 0.0f);
}

/* Adds up column k of the run of equal cells that begins with the sorted line e. Does nothing where
 * the line is not the first of its run. */
template <typename T>
static inline void add_run(device const int64_t *at, device char *to, device const char *from,
                           device const WideItem *items, constant lt_MpsAdd &a, int64_t e,
                           int64_t k) {
  uint64_t cell = 0;
  int64_t line = e;
  if (SORTED != 0) {
    cell = items[e].key;
    line = (int64_t)items[e].index;
    if (e > 0 && items[e - 1].key == cell) return; /* another thread's run */
  }
  int64_t selected = at[line];
  if (selected == a.skip) return;
  RegionOffsets own = region_offsets(a.lines, line), column = region_offsets(a.columns, k);
  int64_t target = own.self + column.self + selected * a.step;
  T sum = load<T>(to, DTYPE, target);
  sum = add_scaled(sum, load<T>(from, DTYPE, own.other + column.other), a);
  if (SORTED != 0)
    for (e++; e < a.lines.count && items[e].key == cell; e++) {
      int64_t other = region_offsets(a.lines, (int64_t)items[e].index).other;
      sum = add_scaled(sum, load<T>(from, DTYPE, other + column.other), a);
    }
  store(to, DTYPE, target, sum);
}

template <typename T>
static inline void add_all(device const int64_t *at, device char *to, device const char *from,
                           device const WideItem *items, constant lt_MpsAdd &a, Place place) {
  LT_EACH_ALONE(place, i, a.lines.count * a.columns.count) {
    int64_t e, k;
    if (a.lines_inside != 0)
      k = divide(i, a.lines.count, &e);
    else
      e = divide(i, a.columns.count, &k);
    add_run<T>(at, to, from, items, a, e, k);
  }
}

kernel void index_add(device const int64_t *at [[buffer(0)]], device char *to [[buffer(1)]],
                      device const char *from [[buffer(2)]],
                      device const WideItem *items [[buffer(3)]],
                      device const uint *bad [[buffer(4)]], constant lt_MpsAdd &a [[buffer(5)]],
                      LT_GRID) {
  const Place place = LT_PLACE;
  if (is_bad(bad)) return;
  if (DTYPE == LT_float32 || DTYPE == LT_float16 || DTYPE == LT_bfloat16)
    add_all<float>(at, to, from, items, a, place);
  else
    add_all<int64_t>(at, to, from, items, a, place);
}
