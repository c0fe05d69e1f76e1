/* select.c: the element of a rank of each line, and the most frequent one. The key of a rank is
 * found without sorting: the range of the keys is split into buckets, and the keys of the bucket
 * that contains the rank are split again. */
#include "kernel_support.h"
#include "order.h"
#include "sort.h"

#define FEW        32 /* keys that are sorted */
#define SORTED     64 /* most elements of lines that are sorted, if there are many */
#define SMALL      512
#define SMALL_BITS 5 /* of the number of a bucket among less than SMALL keys */
#define BITS       8
#define LARGE      (1 << 14)
#define LARGE_BITS 11 /* of that among at least LARGE keys */
#define BLOCK      1024
#define HASHED     1024 /* most elements of a line whose mode is found by a hash table */

/* Returns the number of bits of x, at least 1. */
static int bits_of(uint64_t x) { return 64 - __builtin_clzll(x | 1); }

/* lt_select of sort.h, and the keys that equal another. */
#define SELECT(T, F)                                                                               \
  static T sorted_##F(const T *keys, int64_t n, int64_t *k) {                                      \
    T a[FEW];                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                              \
      T e = keys[i];                                                                               \
      int64_t j = i;                                                                               \
      for (; j > 0 && a[j - 1] > e; j--) a[j] = a[j - 1];                                          \
      a[j] = e;                                                                                    \
    }                                                                                              \
    T key = a[*k];                                                                                 \
    int64_t first = *k;                                                                            \
    while (first > 0 && a[first - 1] == key) first--;                                              \
    *k -= first;                                                                                   \
    return key;                                                                                    \
  }                                                                                                \
  T lt_select_##F(const T *keys, int64_t n, int64_t *k, T *some) {                                 \
    const lt_OrderKernels *loops = lt_order();                                                     \
    while (n > FEW) {                                                                              \
      T low = (T) ~(T)0, high = 0;                                                                 \
      for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)                           \
        loops->span_##F(keys + i, end - i, &low, &high);                                           \
      if (low >= high) return low;                                                                 \
      int most = n < SMALL   ? SMALL_BITS                                                          \
                 : n < LARGE ? BITS                                                                \
                             : LARGE_BITS,                                                         \
          bits = bits_of(high - low);                                                              \
      int shift = bits > most ? bits - most : 0;                                                   \
      int64_t counts[1 << LARGE_BITS], bucket = 0, count = 0;                                      \
      memset(counts, 0, sizeof(int64_t) << (bits - shift));                                        \
      for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)                           \
        loops->tally_##F(keys + i, end - i, low, shift, counts);                                   \
      if (lt_stopped()) return 0; /* the counts are incomplete */                                  \
      for (; *k >= counts[bucket]; bucket++) *k -= counts[bucket];                                 \
      low += (T)((T)bucket << shift);                                                              \
      if (shift == 0) return low;                                                                  \
      T width = (T)(((T)1 << shift) - 1);                                                          \
      if (high - low > width) high = low + width;                                                  \
      for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)                           \
        count += loops->within_##F(keys + i, end - i, low, high, some + count);                    \
      if (lt_stopped()) return 0;                                                                  \
      keys = some;                                                                                 \
      n = count;                                                                                   \
    }                                                                                              \
    return sorted_##F(keys, n, k);                                                                 \
  }                                                                                                \
  /* Returns the index of the key that equals `key` after k others; n if there is none. */         \
  static int64_t place_##F(const T *keys, int64_t n, T key, int64_t k) {                           \
    int64_t i = 0;                                                                                 \
    for (; n - i > BLOCK; i += BLOCK) {                                                            \
      int64_t count = lt_order()->equal_##F(keys + i, BLOCK, key);                                 \
      if (k < count || lt_stopped()) break;                                                        \
      k -= count;                                                                                  \
    }                                                                                              \
    while (i < n && (keys[i] != key || k-- > 0)) i++;                                              \
    return i;                                                                                      \
  }                                                                                                \
  static int64_t count_##F(const T *keys, int64_t n, T key) {                                      \
    int64_t count = 0;                                                                             \
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)                             \
      count += lt_order()->equal_##F(keys + i, end - i, key);                                      \
    return count;                                                                                  \
  }
SELECT(uint32_t, u32)
SELECT(uint64_t, u64)

/* Lines of n elements of which one is selected. The elements of `from` are copied as bytes; `keys`
 * has them in the working dtype. Both are contiguous, line after line. */
typedef struct Selection {
  const char *from, *keys;
  lt_Dtype work;
  size_t size;
  int64_t n, rank; /* see _kthvalue in ops.def */
  bool or_nan;
  char *values;
  int64_t *positions;
} Selection;

/* Returns the rank to select, from 0, in a line with so many NaN. */
static int64_t rank_in(const Selection *s, int64_t nans) {
  int64_t numbers = s->n - nans;
  if (s->rank > 0) return (s->or_nan && nans > 0 ? s->n : s->rank) - 1;
  if (s->rank == 0 && nans > 0) return numbers; /* the first NaN */
  return numbers > 0 ? (numbers - 1) / 2 : 0;
}

/* Writes the element at index `at` (from 0) as the one selected in line t. */
static void put_selected(const Selection *s, int64_t t, int64_t at) {
  lt_move_one(s->values + (size_t)t * s->size, s->from + (size_t)(t * s->n + at) * s->size,
              s->size);
  s->positions[t] = at + LT_INDEX_BASE;
}

/* Selects an element of many short lines of float32, which are sorted side by side. */
static void select_short_lines(const Selection *s, int64_t first, int64_t last) {
  int64_t items[SORTED * LT_SIDE_BY_SIDE], start[LT_SIDE_BY_SIDE], n = s->n;
  for (int64_t t = first, m; t < last && !lt_stopped(); t += m) {
    m = last - t < LT_SIDE_BY_SIDE ? last - t : LT_SIDE_BY_SIDE;
    for (int64_t j = 0; j < m; j++) start[j] = (t + j) * n;
    lt_sort_side_by_side((const float *)(const void *)s->keys, start, m, n, 1, false, items);
    for (int64_t j = 0; j < m; j++) {
      int64_t nans = 0;
      while (nans < n && items[(n - 1 - nans) * m + j] >> 32 == INT32_MAX) nans++;
      put_selected(s, t + j, items[rank_in(s, nans) * m + j] & UINT32_MAX);
    }
  }
}

/* Selects an element of the lines first .. last - 1. `keys` is scratch memory for 2 n keys. */
static void select_lines(const Selection *s, void *keys, int64_t first, int64_t last) {
  int64_t n = s->n, at, nans = 0;
  bool narrow = s->work == LT_float32, count = (s->rank <= 0 || s->or_nan) && s->work != LT_int64;
  if (narrow && n <= SORTED && last - first >= LT_SIDE_BY_SIDE) {
    select_short_lines(s, first, last);
    return;
  }
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    lt_order_keys(s->work, s->keys + (size_t)(t * n) * lt_dtype_size(s->work), n, 1, false, keys);
    if (narrow) {
      uint32_t *k = keys;
      if (count) nans = count_u32(k, n, UINT32_MAX);
      int64_t rank = rank_in(s, nans);
      uint32_t key = lt_select_u32(k, n, &rank, k + n);
      at = place_u32(k, n, key, rank);
    } else {
      uint64_t *k = keys;
      if (count) nans = count_u64(k, n, UINT64_MAX);
      int64_t rank = rank_in(s, nans);
      uint64_t key = lt_select_u64(k, n, &rank, k + n);
      at = place_u64(k, n, key, rank);
    }
    if (at == n) return; /* interrupted */
    put_selected(s, t, at);
  }
}

/* Returns the index of the last element of the longest run of equal keys, the first of several.
 * Each NaN, whose key is UINT64_MAX if there are `floats`, is a run of its own. */
static int64_t last_of_longest(const lt_Keyed *sorted, int64_t n, bool floats) {
  int64_t best = 0, most = 0, start = 0;
  for (int64_t i = 1; i < n; i++) {
    if (sorted[i].key != sorted[i - 1].key || (floats && sorted[i].key == UINT64_MAX)) start = i;
    if (i - start <= most) continue;
    most = i - start;
    best = i;
  }
  return sorted[best].at;
}

/* Returns the same of n <= HASHED keys that are not sorted: counts them in a hash table. */
static int64_t last_of_most(const lt_Keyed *items, int64_t n, bool floats) {
  struct {
    uint64_t key;
    int32_t count, last;
  } table[4 * HASHED], *best = NULL;
  int bits = bits_of((uint64_t)n) + 1;
  for (int64_t i = 0; i < (int64_t)1 << bits; i++) table[i].count = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t key = items[i].key;
    if (floats && key == UINT64_MAX) continue;
    uint64_t at = (key * 0x9E3779B97F4A7C15u) >> (64 - bits);
    while (table[at].count > 0 && table[at].key != key) at = (at + 1) & (((uint64_t)1 << bits) - 1);
    table[at].key = key;
    table[at].last = (int32_t)i;
    int32_t count = ++table[at].count;
    if (!best || count > best->count || (count == best->count && key < best->key))
      best = &table[at];
  }
  return best ? best->last : 0;
}

/* Finds the mode of the lines first .. last - 1. `items` is scratch memory for 2 n items. */
static void mode_lines(const Selection *s, lt_Keyed *items, int64_t first, int64_t last) {
  int64_t n = s->n;
  bool narrow = s->work == LT_float32, floats = s->work != LT_int64;
  void *keys = items + n;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    lt_order_keys(s->work, s->keys + (size_t)(t * n) * lt_dtype_size(s->work), n, 1, false, keys);
    for (int64_t i = 0; i < n; i++) {
      uint32_t key = narrow ? ((uint32_t *)keys)[i] : 0;
      uint64_t wide = key == UINT32_MAX ? UINT64_MAX : key;
      items[i] = (lt_Keyed){narrow ? wide : ((uint64_t *)keys)[i], i};
    }
    if (n > HASHED) lt_keyed_sort(items, items + n, n);
    if (lt_stopped()) return; /* the indices are undefined */
    int64_t at = n > HASHED ? last_of_longest(items, n, floats) : last_of_most(items, n, floats);
    put_selected(s, t, at);
  }
}

/* Finds the mode of all lines, with scratch memory for each thread. */
static bool mode_all(const Selection *s, int64_t lines) {
  int team = lt_team(16 * lines * s->n, lines);
  lt_Keyed *items = malloc((size_t)team * (size_t)s->n * 2 * sizeof *items);
  if (!items) return lt_fail_memory();
  LT_IN_TEAM(team, team,
             mode_lines(s, items + 2 * s->n * first, lines * first / team, lines * last / team));
  free(items);
  return true;
}

/* Selects in all lines, with scratch memory for each thread. */
static bool select_all(const Selection *s, int64_t lines) {
  int team = lt_team(16 * lines * s->n, lines);
  size_t size = 2 * (size_t)s->n * (s->work == LT_float32 ? sizeof(uint32_t) : sizeof(uint64_t));
  char *keys = malloc((size_t)team * size);
  if (!keys) return lt_fail_memory();
  LT_IN_TEAM(
      team, team,
      select_lines(s, keys + size * (size_t)first, lines * first / team, lines * last / team));
  free(keys);
  return true;
}

/* Runs `all` on the lines of self along dim. */
static bool along_lines(lt_Call *c, int64_t rank, bool or_nan,
                        bool (*all)(const Selection *s, int64_t lines)) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  int64_t lines = c->out[0]->numel;
  if (lines == 0) return true;
  lt_Tensor *dense = lt_lines_along(self, dim),
            *x = lt_as_contiguous(dense, lt_work_dtype(self->dtype));
  bool ok = x != NULL;
  if (ok) {
    Selection s = {lt_tensor_data(dense),
                   lt_tensor_data(x),
                   x->dtype,
                   lt_dtype_size(self->dtype),
                   self->numel / lines,
                   rank,
                   or_nan,
                   lt_tensor_data(c->out[0]),
                   lt_tensor_data(c->out[1])};
    ok = all(&s, lines);
  }
  lt_release(dense);
  lt_release(x);
  return ok;
}

/* _kthvalue (self, dim, keepdim, rank, or_nan) */
bool lt_cpu__kthvalue(lt_Call *c) { return along_lines(c, c->arg[3].i, c->arg[4].b, select_all); }

/* _mode (self, dim, keepdim) */
bool lt_cpu__mode(lt_Call *c) { return along_lines(c, 1, false, mode_all); }
