/* radix.c: sorting of elements whose keys fit in 32 bits: float32, narrow integers, and int64 of a
 * small range. A key and the index of its element are packed in 64 bits, which are sorted digit by
 * digit from the lowest; digits that all keys share are skipped. Integers with keys of one digit
 * are moved at once. Each thread moves the items of a part of its own to places that depend on the
 * counts of all parts, so the sort is stable, and its result does not depend on the number of
 * threads. */
#include "radix.h"
#include "kernel_support.h"
#include "sort.h"

#define FEW    48 /* items that are sorted by insertion */
#define BITS   10 /* of a digit at most */
#define DIGITS (1 << BITS)
#define MOST   16   /* threads */
#define SOME   1024 /* keys of floats that are computed together */

/* What the threads of a sort share. */
typedef struct Sorting {
  const lt_Unsorted *of;
  int team;
  uint64_t base, flip; /* the key of an integer x is (x ^ flip) - base */
  lt_Packed *from, *to;
  void *values; /* of a counting sort, with the indices */
  int64_t *positions;
  int shift, mask;               /* of the digit of an item */
  uint32_t counts[MOST][DIGITS]; /* for each part: how many items have a digit, then their place */
  int64_t low[MOST], high[MOST]; /* the smallest and the largest integer of each part */
  uint32_t differ[MOST];         /* bits in which keys of a part differ from one key of all */
} Sorting;

static int64_t start_of(const Sorting *s, int64_t part) { return s->of->n * part / s->team; }

/* ---- items ----------------------------------------------------------------------------------- */

#define INTEGERS(T)                                                                                \
  static inline void span_##T##_by(Sorting *s, int64_t part, int64_t stride) {                     \
    const T *x = s->of->x;                                                                         \
    int64_t first = start_of(s, part), last = start_of(s, part + 1);                               \
    T low = x[first * stride], high = low;                                                         \
    for (int64_t i = first, end; (end = lt_next_chunk(i, last)) > i; i = end) {                    \
      _Pragma("omp simd reduction(min : low) reduction(max : high)")                               \
      for (int64_t j = i; j < end; j++) {                                                          \
        T e = x[j * stride];                                                                       \
        low = e < low ? e : low;                                                                   \
        high = e > high ? e : high;                                                                \
      }                                                                                            \
    }                                                                                              \
    s->low[part] = (int64_t)low;                                                                   \
    s->high[part] = (int64_t)high;                                                                 \
  }                                                                                                \
  static void span_##T(Sorting *s, int64_t part) {                                                 \
    s->of->stride == 1 ? span_##T##_by(s, part, 1) : span_##T##_by(s, part, s->of->stride);        \
  }                                                                                                \
  static inline void pack_##T##_by(Sorting *s, int64_t part, int64_t stride) {                     \
    const T *x = s->of->x;                                                                         \
    int64_t first = start_of(s, part), last = start_of(s, part + 1);                               \
    uint64_t base = s->base, flip = s->flip;                                                       \
    lt_Packed *items = s->from, some = 0;                                                          \
    for (int64_t i = first, end; (end = lt_next_chunk(i, last)) > i;)                              \
      for (; i < end; i++) {                                                                       \
        lt_Packed item = (((uint64_t)x[i * stride] ^ flip) - base) << 32 | (uint64_t)i;            \
        some |= item;                                                                              \
        items[i] = item;                                                                           \
      }                                                                                            \
    s->differ[part] = (uint32_t)(some >> 32);                                                      \
  }                                                                                                \
  static void pack_##T(Sorting *s, int64_t part) {                                                 \
    s->of->stride == 1 ? pack_##T##_by(s, part, 1) : pack_##T##_by(s, part, s->of->stride);        \
  }

/* A counting sort: the key is the only digit. */
#define COUNTING(T)                                                                                \
  static void count_##T(Sorting *s, int64_t part) {                                                \
    const T *x = s->of->x;                                                                         \
    int64_t stride = s->of->stride, last = start_of(s, part + 1);                                  \
    uint64_t base = s->base, flip = s->flip;                                                       \
    uint32_t *counts = s->counts[part];                                                            \
    memset(counts, 0, sizeof *counts *(size_t)(s->mask + 1));                                      \
    for (int64_t i = start_of(s, part), end; (end = lt_next_chunk(i, last)) > i;)                  \
      for (; i < end; i++) counts[((uint64_t)x[i * stride] ^ flip) - base]++;                      \
  }                                                                                                \
  static void place_##T(Sorting *s, int64_t part) {                                                \
    const T *x = s->of->x;                                                                         \
    T *values = s->values;                                                                         \
    int64_t stride = s->of->stride, last = start_of(s, part + 1);                                  \
    uint64_t base = s->base, flip = s->flip;                                                       \
    uint32_t *places = s->counts[part];                                                            \
    for (int64_t i = start_of(s, part), end; (end = lt_next_chunk(i, last)) > i;)                  \
      for (; i < end; i++) {                                                                       \
        T e = x[i * stride];                                                                       \
        int64_t place = places[((uint64_t)e ^ flip) - base]++ * stride;                            \
        values[place] = e;                                                                         \
        s->positions[place] = i + LT_INDEX_BASE;                                                   \
      }                                                                                            \
  }

#define LOOPS(T) INTEGERS(T) COUNTING(T)
LOOPS(uint8_t)
LOOPS(int8_t)
LOOPS(int16_t)
LOOPS(int32_t)
LOOPS(int64_t)

static void pack_float(Sorting *s, int64_t part) {
  const lt_Unsorted *of = s->of;
  const float *x = of->x;
  uint32_t keys[SOME], reference, differ = 0;
  lt_order_keys(LT_float32, x, 1, 1, of->descending, &reference);
  for (int64_t i = start_of(s, part), last = start_of(s, part + 1); i < last && !lt_stopped();
       i += SOME) {
    int64_t m = last - i < SOME ? last - i : SOME;
    lt_order_keys(LT_float32, x + i * of->stride, m, of->stride, of->descending, keys);
    for (int64_t j = 0; j < m; j++) {
      differ |= keys[j] ^ reference;
      s->from[i + j] = (lt_Packed)keys[j] << 32 | (uint64_t)(i + j);
    }
  }
  s->differ[part] = differ;
}

typedef void (*PartFn)(Sorting *s, int64_t part);

/* The loops of a dtype; only `pack` for floats. */
typedef struct Loops {
  PartFn span, pack, count, place;
} Loops;

/* Returns the loops of a dtype, none for one whose keys do not fit in 32 bits. */
static Loops loops_of(lt_Dtype dtype) {
  switch (dtype) {
#define CASE(dtype, T)                                                                             \
  case LT_##dtype:                                                                                 \
    return (Loops){span_##T, pack_##T, count_##T, place_##T};
    CASE(bool, uint8_t)
    CASE(uint8, uint8_t)
    CASE(int8, int8_t)
    CASE(int16, int16_t)
    CASE(int32, int32_t)
    CASE(int64, int64_t)
  case LT_float32:
    return (Loops){.pack = pack_float};
  default:
    return (Loops){NULL, NULL, NULL, NULL};
  }
}

/* ---- one digit ------------------------------------------------------------------------------- */

static void count_part(Sorting *s, int64_t part) {
  const lt_Packed *items = s->from;
  uint32_t *counts = s->counts[part];
  memset(counts, 0, sizeof *counts * (size_t)(s->mask + 1));
  int64_t last = start_of(s, part + 1);
  int shift = s->shift;
  uint64_t mask = (uint64_t)s->mask;
  for (int64_t i = start_of(s, part), end; (end = lt_next_chunk(i, last)) > i;)
    for (; i < end; i++) counts[items[i] >> shift & mask]++;
}

/* Replaces the counts by the place of the first item of each digit of each part. */
static void count_to_place(Sorting *s) {
  uint32_t sum = 0;
  for (int digit = 0; digit <= s->mask; digit++)
    for (int part = 0; part < s->team; part++) {
      uint32_t count = s->counts[part][digit];
      s->counts[part][digit] = sum;
      sum += count;
    }
}

static void move_part(Sorting *s, int64_t part) {
  const lt_Packed *items = s->from;
  lt_Packed *to = s->to;
  uint32_t *places = s->counts[part];
  int shift = s->shift;
  uint64_t mask = (uint64_t)s->mask;
  int64_t last = start_of(s, part + 1);
  for (int64_t i = start_of(s, part), end; (end = lt_next_chunk(i, last)) > i;)
    for (; i < end; i++) to[places[items[i] >> shift & mask]++] = items[i];
}

/* ---- all digits ------------------------------------------------------------------------------ */

static void in_team(Sorting *s, PartFn part) {
  LT_IN_TEAM(s->team, s->team, {
    for (int64_t p = first; p < last; p++) part(s, p);
  });
}

static void insertion(lt_Packed *items, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    lt_Packed e = items[i];
    int64_t j = i;
    for (; j > 0 && items[j - 1] > e; j--) items[j] = items[j - 1];
    items[j] = e;
  }
}

/* Sets how the keys of integers are computed. Returns the largest key. */
static uint64_t key_range(Sorting *s, PartFn span) {
  in_team(s, span);
  int64_t low = s->low[0], high = s->high[0];
  for (int part = 1; part < s->team; part++) {
    if (s->low[part] < low) low = s->low[part];
    if (s->high[part] > high) high = s->high[part];
  }
  s->flip = s->of->descending ? UINT64_MAX : 0;
  s->base = (uint64_t)(s->of->descending ? high : low) ^ s->flip;
  return (uint64_t)high - (uint64_t)low;
}

bool lt_counting_sort(const lt_Unsorted *of, int team, void *values, int64_t *positions) {
  Loops loops = loops_of(of->dtype);
  Sorting s;
  s.of = of;
  s.team = team < MOST ? team : MOST;
  s.values = values;
  s.positions = positions;
  if (!loops.span || of->n <= FEW) return false;
  uint64_t largest = key_range(&s, loops.span);
  if (largest >= DIGITS || lt_stopped()) return false;
  s.mask = (int)largest;
  in_team(&s, loops.count);
  if (lt_stopped()) return false; /* the counts are incomplete */
  count_to_place(&s);
  in_team(&s, loops.place);
  return true;
}

lt_Packed *lt_packed_sort(const lt_Unsorted *of, int team, lt_Packed *items, lt_Packed *others) {
  Loops loops = loops_of(of->dtype);
  Sorting s;
  s.of = of;
  s.team = of->n <= FEW ? 1 : team < MOST ? team : MOST;
  s.from = items;
  s.to = others;
  if (!loops.pack) return NULL;
  if (loops.span && key_range(&s, loops.span) > UINT32_MAX) return NULL;
  in_team(&s, loops.pack);
  if (of->n <= FEW && !lt_stopped()) {
    insertion(items, of->n);
    return items;
  }
  uint32_t differ = 0;
  for (int part = 0; part < s.team; part++) differ |= s.differ[part];
  if (lt_stopped()) return NULL;
  if (differ == 0) return items;
  int low = __builtin_ctz(differ), bits = 32 - __builtin_clz(differ) - low,
      digits = (bits + BITS - 1) / BITS, width = (bits + digits - 1) / digits;
  s.mask = (1 << width) - 1;
  for (int digit = 0; digit < digits; digit++) {
    s.shift = 32 + low + digit * width;
    if ((differ >> (s.shift - 32) & (uint32_t)s.mask) == 0) continue;
    in_team(&s, count_part);
    if (lt_stopped()) return NULL; /* the counts are incomplete */
    count_to_place(&s);
    in_team(&s, move_part);
    lt_Packed *swap = s.from;
    s.from = s.to;
    s.to = swap;
  }
  return lt_stopped() ? NULL : s.from;
}
