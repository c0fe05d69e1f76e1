/* mask.metal: the kernels of mask.c. */
#include "index_regions.metal.h"
#include "mask.h"

#define UNIT K0 /* bytes */

/* Returns the sum of v over the threads of the threadgroup before this one, and writes the sum over
 * all of them. `scratch` has a number for each thread. */
static inline int64_t sum_before(int64_t v, threadgroup int64_t *scratch, uint index,
                                 thread int64_t &total) {
  int64_t sum = v;
  scratch[index] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 1; step < LT_LOOP_THREADS; step *= 2) {
    int64_t other = index >= step ? scratch[index - step] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += other;
    scratch[index] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  total = scratch[LT_LOOP_THREADS - 1];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return sum - v;
}

/* Packs 32 bytes into a word, one word to a thread, and counts the bits before each word of its
 * part and in the whole part. */
kernel void pack_mask(device const uint8_t *mask [[buffer(0)]], device uint *words [[buffer(1)]],
                      device uint *before [[buffer(2)]], device int64_t *parts [[buffer(3)]],
                      constant lt_MpsMask &m [[buffer(4)]], LT_GRID) {
  threadgroup int64_t scratch[LT_MASK_PART];
  for (int64_t part = group.x; part < m.parts; part += groups.x) {
    int64_t w = part * LT_MASK_PART + index, from = w * LT_MASK_WORD, total;
    uint bits = 0;
    for (int k = 0; k < LT_MASK_WORD && from + k < m.n; k++)
      bits |= (uint)(mask[from + k] != 0 ? 1 : 0) << k;
    int64_t sum = sum_before((int64_t)popcount(bits), scratch, index, total);
    if (w < m.words) {
      words[w] = bits;
      before[w] = (uint)sum;
    }
    if (index == 0) parts[part] = total;
  }
}

/* Replaces the counts of the parts by their running sum, from 0, and appends the sum of all. Run by
 * one threadgroup. */
kernel void sum_parts(device int64_t *parts [[buffer(0)]], constant lt_MpsMask &m [[buffer(1)]],
                      LT_GRID) {
  threadgroup int64_t scratch[LT_LOOP_THREADS];
  int64_t sum = 0, total;
  for (int64_t first = 0; first < m.parts; first += LT_LOOP_THREADS) {
    int64_t part = first + index, count = part < m.parts ? parts[part] : 0;
    int64_t own = sum_before(count, scratch, index, total);
    if (part < m.parts) parts[part] = sum + own;
    sum += total;
  }
  if (group.x == 0 && index == 0) parts[m.parts] = sum;
}

/* A packed mask. */
struct Packed {
  device const uint *words, *before;
  device const int64_t *parts;
};

/* Returns the rank from 0 of element i among the true elements, or -1 if it is not true. */
static inline int64_t rank_of(Packed p, int64_t i) {
  int64_t w = i / LT_MASK_WORD;
  uint bits = p.words[w], own = 1u << (uint)(i % LT_MASK_WORD);
  if ((bits & own) == 0) return -1;
  return p.parts[w / LT_MASK_PART] + (int64_t)p.before[w] + (int64_t)popcount(bits & (own - 1));
}

/* Copies the true elements: to[k] = from[the k-th true element]. */
template <typename U>
static inline void select_true(Packed p, device const U *from, device U *to, constant lt_MpsMask &m,
                               Place place) {
  LT_EACH(place, i, m.n) {
    int64_t k = rank_of(p, i);
    if (k >= 0) to[k] = from[offset_of(m.layout, i)];
  }
}

/* Sets the k-th true element of `to` to from[k]. */
template <typename U>
static inline void fill_true(Packed p, device const U *from, device U *to, constant lt_MpsMask &m,
                             Place place) {
  LT_EACH(place, i, m.n) {
    int64_t k = rank_of(p, i);
    if (k >= 0) to[i] = from[offset_of(m.layout, k)];
  }
}

/* Define a kernel that calls a function template for the unit. */
#define LT_BY_UNIT(kernel_name, function)                                                          \
  kernel void kernel_name(                                                                         \
      device const uint *words [[buffer(0)]], device const uint *before [[buffer(1)]],             \
      device const int64_t *parts [[buffer(2)]], device const char *from [[buffer(3)]],            \
      device char *to [[buffer(4)]], constant lt_MpsMask &m [[buffer(5)]], LT_GRID) {              \
    const Place place = LT_PLACE;                                                                  \
    const Packed p = {words, before, parts};                                                       \
    if (UNIT == 1)                                                                                 \
      function(p, (device const uint8_t *)from, (device uint8_t *)to, m, place);                   \
    else if (UNIT == 2)                                                                            \
      function(p, (device const uint16_t *)from, (device uint16_t *)to, m, place);                 \
    else if (UNIT == 4)                                                                            \
      function(p, (device const uint *)from, (device uint *)to, m, place);                         \
    else                                                                                           \
      function(p, (device const uint2 *)from, (device uint2 *)to, m, place);                       \
  }
LT_BY_UNIT(masked_select, select_true)
LT_BY_UNIT(masked_scatter, fill_true)

/* Writes to[k][d] = the index, from 1, of the k-th true element in dimension d. */
kernel void true_indices(device const uint *words [[buffer(0)]],
                         device const uint *before [[buffer(1)]],
                         device const int64_t *parts [[buffer(2)]],
                         device int64_t *to [[buffer(3)]], constant lt_MpsMask &m [[buffer(4)]],
                         LT_GRID) {
  const Place place = LT_PLACE;
  const Packed p = {words, before, parts};
  LT_EACH(place, i, m.n) {
    int64_t k = rank_of(p, i), left = i;
    if (k < 0) continue;
    for (int d = m.layout.ndim - 1; d >= 0; d--) {
      int64_t at = left;
      if (d > 0) left = divide(left, m.layout.shape[d], &at);
      to[k * m.layout.ndim + d] = at + LT_INDEX_BASE;
    }
  }
}
