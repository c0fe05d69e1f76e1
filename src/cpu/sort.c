/* sort.c: sort and topk. Elements are converted to keys (NaN is the largest, -0 equals 0,
 * descending order by complement), which are sorted together with their indices: few by insertion,
 * more by radix, digit by digit of their differences from the least key, from the lowest, which is
 * stable. Keys of 32 bits are sorted by radix.c, many short lines of them side by side. The values
 * are copied by index, so all their bits are kept. */
#include "cpu.h"
#include "kernel_support.h"
#include "moves.h"
#include "order.h"
#include "radix.h"
#include "sort.h"

#define FEW        48
#define LARGE      (1 << 14)
#define LARGE_BITS 11   /* of a digit of at least LARGE items */
#define PART       4096 /* least elements of a line that a thread sorts together with others */
#define MANY       8    /* short lines that are sorted side by side */

/* ---- sorting --------------------------------------------------------------------------------- */

static void insertion(lt_Keyed *items, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    lt_Keyed e = items[i];
    int64_t j = i;
    for (; j > 0 && items[j - 1].key > e.key; j--) items[j] = items[j - 1];
    items[j] = e;
  }
}

void lt_keyed_sort(lt_Keyed *items, lt_Keyed *scratch, int64_t n) {
  if (n <= FEW) {
    insertion(items, n);
    return;
  }
  uint64_t low = ~(uint64_t)0, high = 0, some = 0;
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    for (; i < end; i++) {
      low = items[i].key < low ? items[i].key : low;
      high = items[i].key > high ? items[i].key : high;
    }
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    for (; i < end; i++) some |= items[i].key - low;
  lt_Keyed *from = items, *to = scratch;
  const int width = n < LARGE ? 8 : LARGE_BITS, first = some ? __builtin_ctzll(some) : 64;
  const uint64_t mask = ((uint64_t)1 << width) - 1;
  for (int shift = first; shift < 64 && (high - low) >> shift; shift += width) {
    int64_t start[1 << LARGE_BITS], sum = 0;
    memset(start, 0, sizeof *start << width);
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
      for (; i < end; i++) start[(from[i].key - low) >> shift & mask]++;
    if (lt_stopped()) return; /* the counts are incomplete */
    for (uint64_t k = 0; k <= mask; k++) {
      int64_t count = start[k];
      start[k] = sum;
      sum += count;
    }
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
      for (; i < end; i++) to[start[(from[i].key - low) >> shift & mask]++] = from[i];
    lt_Keyed *swap = from;
    from = to;
    to = swap;
  }
  if (from != items) memcpy(items, from, (size_t)n * sizeof *items);
}

static bool before(const lt_Keyed *a, const lt_Keyed *b) {
  return a->key < b->key || (a->key == b->key && a->at < b->at);
}

/* Restores the heap (largest on top) of n items below i. */
static void sift(lt_Keyed *heap, int64_t i, int64_t n) {
  lt_Keyed e = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && before(&heap[child], &heap[child + 1])) child++;
    if (!before(&e, &heap[child])) break;
    heap[i] = heap[child];
  }
  heap[i] = e;
}

/* Makes a heap of k items, and returns its largest key. */
static uint64_t heapify(lt_Keyed *heap, int64_t k) {
  for (int64_t i = k / 2 - 1; i >= 0 && !lt_stopped_at(i); i--) sift(heap, i, k);
  return k ? heap[0].key : 0;
}

/* Sorts the k items of a heap. */
static void sort_heap(lt_Keyed *heap, int64_t k) {
  for (int64_t m = k - 1; m > 0 && !lt_stopped_at(m); m--) {
    lt_Keyed e = heap[0];
    heap[0] = heap[m];
    heap[m] = e;
    sift(heap, 0, m);
  }
}

/* A heap of the k smallest is faster than sorting all for small k. */
void lt_keyed_first(lt_Keyed *items, lt_Keyed *scratch, int64_t n, int64_t k) {
  if (k > n / 8) {
    lt_keyed_sort(items, scratch, n);
    return;
  }
  heapify(items, k);
  for (int64_t i = k; i < n && k > 0 && !lt_stopped_at(i); i++)
    if (before(&items[i], &items[0])) {
      items[0] = items[i];
      sift(items, 0, k);
    }
  sort_heap(items, k);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t float_key(double d) {
  uint64_t u;
  if (d != d) return UINT64_MAX;
  d += 0.0; /* -0 becomes 0 */
  memcpy(&u, &d, sizeof u);
  return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

/* Returns the key of an element of float64 or int64. */
static uint64_t wide_key(lt_Dtype work, const void *x, int64_t i, uint64_t flip) {
  uint64_t key = work == LT_float64 ? float_key(((const double *)x)[i])
                                    : (uint64_t)((const int64_t *)x)[i] ^ (uint64_t)1 << 63;
  return key ^ flip;
}

void lt_order_keys(lt_Dtype work, const void *x, int64_t n, int64_t stride, bool descending,
                   void *keys) {
  const lt_OrderKernels *loops = lt_order();
  uint64_t flip = descending ? UINT64_MAX : 0;
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    if (stride == 1) {
      if (work == LT_float32)
        loops->keys_f32((const float *)x + i, end - i, (uint32_t)flip, (uint32_t *)keys + i);
      else if (work == LT_float64)
        loops->keys_f64((const double *)x + i, end - i, flip, (uint64_t *)keys + i);
      else
        loops->keys_i64((const int64_t *)x + i, end - i, flip, (uint64_t *)keys + i);
      i = end;
    } else if (work == LT_float32) {
      for (; i < end; i++)
        loops->keys_f32((const float *)x + i * stride, 1, (uint32_t)flip, (uint32_t *)keys + i);
    } else {
      for (; i < end; i++) ((uint64_t *)keys)[i] = wide_key(work, x, i * stride, flip);
    }
}

/* ---- the first few --------------------------------------------------------------------------- */

/* Finds the k smallest of n keys, k <= n / 8; `some` is scratch memory for n keys. The k-th
 * smallest of the least keys of many lanes is an upper limit for them, which few other keys are
 * below; then a heap's largest key is. Where many keys would enter the heap, the k-th smallest is
 * selected. */
#define FIRST(T, F)                                                                                \
  static T limit_##F(const T *keys, int64_t n, int64_t k) {                                        \
    T least[LT_ORDER_LANES];                                                                       \
    if (k > LT_ORDER_LANES / 2 || n < 4 * LT_ORDER_LANES) return 0;                                \
    lt_order()->least_##F(keys, n, least);                                                         \
    for (int64_t i = 1; i < LT_ORDER_LANES; i++) { /* sorts the first k */                         \
      T e = least[i];                                                                              \
      int64_t j = i < k ? i : k - 1;                                                               \
      if (i >= k && e >= least[j]) continue;                                                       \
      for (; j > 0 && least[j - 1] > e; j--) least[j] = least[j - 1];                              \
      least[j] = e;                                                                                \
    }                                                                                              \
    return (T)(least[k - 1] + 1); /* 0: no limit */                                                \
  }                                                                                                \
  static void first_selected_##F(const T *keys, int64_t n, int64_t k, lt_Keyed *items, T *some) {  \
    int64_t equal = k - 1, count = 0;                                                              \
    const T last = lt_select_##F(keys, n, &equal, some);                                           \
    for (int64_t i = 0, end; count < k && (end = lt_next_chunk(i, n)) > i;)                        \
      for (; i < end && count < k; i++) {                                                          \
        bool same = keys[i] == last;                                                               \
        items[count] = (lt_Keyed){keys[i], i};                                                     \
        count += (keys[i] < last) | (same & (equal >= 0));                                         \
        equal -= same;                                                                             \
      }                                                                                            \
    lt_keyed_sort(items, items + k, k);                                                            \
  }                                                                                                \
  static void first_##F(const T *keys, int64_t n, int64_t k, lt_Keyed *heap, T *some) {            \
    T limit = limit_##F(keys, n, k);                                                               \
    int64_t count = 0, i = 0, entries = n / 32 + 32;                                               \
    if (limit == 0 && k > entries) {                                                               \
      first_selected_##F(keys, n, k, heap, some);                                                  \
      return;                                                                                      \
    }                                                                                              \
    for (; limit == 0 && count < k; count++, i++) heap[count] = (lt_Keyed){keys[i], i};            \
    if (count == k) limit = (T)heapify(heap, k);                                                   \
    while (i < n && !lt_stopped()) {                                                               \
      int64_t end = n - i < LT_CHUNK ? n : i + LT_CHUNK;                                           \
      i += lt_order()->below_##F(keys + i, end - i, limit);                                        \
      if (i == end) continue;                                                                      \
      lt_Keyed item = {keys[i], i};                                                                \
      i++;                                                                                         \
      if (count < k) {                                                                             \
        heap[count++] = item;                                                                      \
        if (count == k) limit = (T)heapify(heap, k);                                               \
      } else {                                                                                     \
        heap[0] = item;                                                                            \
        sift(heap, 0, k);                                                                          \
        limit = (T)heap[0].key;                                                                    \
        if (--entries == 0) {                                                                      \
          first_selected_##F(keys, n, k, heap, some);                                              \
          return;                                                                                  \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
    sort_heap(heap, k);                                                                            \
  }
FIRST(uint32_t, u32)
FIRST(uint64_t, u64)

/* ---- kernels --------------------------------------------------------------------------------- */

/* Lines to order: the first k elements of each. The elements of `from` are copied as bytes; `keys`
 * has them in the working dtype. Both are contiguous, with elements of a line `step` apart. */
typedef struct Order {
  const char *from, *keys;
  lt_Dtype work;
  size_t size;
  lt_Lines l;
  int64_t step; /* 1, or l.inner */
  int64_t k;
  bool descending;
  char *values;
  int64_t *positions;
} Order;

/* Where the elements of line t, and its first k in order, are; in elements. */
static int64_t start_of(const Order *o, int64_t t) {
  if (o->step == 1) return t * o->l.n;
  return t / o->l.inner * o->l.n * o->l.inner + t % o->l.inner;
}
static int64_t target_of(const Order *o, int64_t t) {
  return t / o->l.inner * o->k * o->l.inner + t % o->l.inner;
}

/* Writes element `at` of a line as the one at `place`. */
static inline void put(const Order *o, const char *from, int64_t at, int64_t place, size_t size) {
  lt_move_one(o->values + (size_t)place * size, from + (size_t)(at * o->step) * size, size);
  o->positions[place] = at + LT_INDEX_BASE;
}

/* Writes the elements first .. last - 1 of line t in the order of `items`. */
static void put_packed(const Order *o, int64_t t, const lt_Packed *items, int64_t first,
                       int64_t last) {
  const char *from = o->from + (size_t)start_of(o, t) * o->size;
  int64_t target = target_of(o, t), inner = o->l.inner;
#define PUT_ALL(size)                                                                              \
  for (int64_t m = first; m < last && !lt_stopped_at(m); m++)                                      \
  put(o, from, (int64_t)(uint32_t)items[m], target + m * inner, size)
  if (o->size == 1)
    PUT_ALL(1);
  else if (o->size == 2)
    PUT_ALL(2);
  else if (o->size == 4)
    PUT_ALL(4);
  else
    PUT_ALL(8);
#undef PUT_ALL
}

/* Sorts line t on `team` threads if its keys fit in 32 bits; else returns false. `items` is scratch
 * memory for 2 n packed items. */
static bool order_packed(const Order *o, int64_t t, int team, lt_Packed *items) {
  int64_t n = o->l.n;
  if (n > LT_PACKED_MOST) return false;
  const char *x = o->keys + (size_t)start_of(o, t) * lt_dtype_size(o->work);
  lt_Unsorted of = {o->work, x, n, o->l.inner, o->descending};
  int64_t target = target_of(o, t);
  if (o->k == n && o->size == lt_dtype_size(o->work) &&
      lt_counting_sort(&of, team, o->values + (size_t)target * o->size, o->positions + target))
    return true;
  const lt_Packed *sorted = lt_packed_sort(&of, team, items, items + n);
  if (!sorted) return false;
  LT_IN_TEAM(team, o->k, put_packed(o, t, sorted, first, last));
  return true;
}

/* Writes the first k elements of line t in order. `items` is scratch memory for 2 n items. */
static void order_line(const Order *o, int64_t t, int team, lt_Keyed *items) {
  int64_t n = o->l.n, inner = o->l.inner, k = o->k, target = target_of(o, t);
  bool narrow = o->work == LT_float32, few = k <= n / 8;
  if (!few && order_packed(o, t, team, (lt_Packed *)(void *)items)) return;
  if (lt_stopped()) return;
  const char *from = o->from + (size_t)start_of(o, t) * o->size;
  void *keys = items + n; /* few items are followed by the keys; of many, they are replaced */
  lt_order_keys(o->work, o->keys + (size_t)start_of(o, t) * lt_dtype_size(o->work), n, o->step,
                o->descending, keys);
  if (few) {
    narrow ? first_u32(keys, n, k, items, (uint32_t *)keys + n)
           : first_u64(keys, n, k, items, (uint64_t *)keys + n);
  } else {
    for (int64_t m = 0; m < n; m++)
      items[m] = (lt_Keyed){narrow ? ((uint32_t *)keys)[m] : ((uint64_t *)keys)[m], m};
    lt_keyed_sort(items, items + n, n);
  }
  for (int64_t m = 0; m < k; m++) {
    if (lt_stopped_at(m)) break; /* after an interrupt the indices are undefined */
    put(o, from, items[m].at, target + m * inner, o->size);
  }
}

void lt_sort_side_by_side(const float *all, const int64_t *start, int64_t lines, int64_t n,
                          int64_t step, bool descending, int64_t *items) {
  float x[LT_SHORT_LINE * LT_SIDE_BY_SIDE];
  uint32_t keys[LT_SHORT_LINE * LT_SIDE_BY_SIDE];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < lines; j++) x[i * lines + j] = all[start[j] + i * step];
  lt_order_keys(LT_float32, x, n * lines, 1, descending, keys);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < lines; j++)
      items[i * lines + j] = (int64_t)((uint64_t)(keys[i * lines + j] ^ 1u << 31) << 32) + i;
  lt_order()->sort_columns(items, n, lines);
}

/* Orders many short lines of float32, several side by side. */
static void order_short_lines(const Order *o, int64_t first, int64_t last) {
  int64_t items[LT_SHORT_LINE * LT_SIDE_BY_SIDE], start[LT_SIDE_BY_SIDE];
  for (int64_t t = first, m; t < last && !lt_stopped(); t += m) {
    m = last - t < LT_SIDE_BY_SIDE ? last - t : LT_SIDE_BY_SIDE;
    for (int64_t j = 0; j < m; j++) start[j] = start_of(o, t + j);
    lt_sort_side_by_side((const float *)(const void *)o->keys, start, m, o->l.n, o->step,
                         o->descending, items);
    for (int64_t j = 0; j < m; j++) {
      const char *from = o->from + (size_t)start[j] * o->size;
      int64_t target = target_of(o, t + j);
      for (int64_t i = 0; i < o->k; i++)
        put(o, from, items[i * m + j] & UINT32_MAX, target + i * o->l.inner, o->size);
    }
  }
}

/* Orders lines first .. last - 1. */
static void order_lines(const Order *o, lt_Keyed *items, int64_t first, int64_t last) {
  bool narrow = o->work == LT_float32, few = o->k <= o->l.n / 8;
  if (narrow && !few && o->l.n <= LT_SHORT_LINE && last - first >= MANY) {
    order_short_lines(o, first, last);
    return;
  }
  for (int64_t t = first; t < last && !lt_stopped(); t++) order_line(o, t, 1, items);
}

/* Orders all lines, with scratch memory for each thread. Threads share the lines; fewer than
 * threads are sorted by all threads, one after another. */
static bool order_all(const Order *o) {
  int64_t lines = o->l.outer * o->l.inner, n = o->l.n;
  int team = lt_team((o->k > n / 8 ? 16 : 1) * lines * n, lines), inside = lt_team(8 * n, n / PART);
  if (inside > team) team = 1;
  size_t bytes = (size_t)team * (size_t)n * 2 * sizeof(lt_Keyed);
  lt_Keyed *items = lt_cpu_scratch(bytes);
  if (!items) return lt_fail_memory();
  if (inside > 1 && team == 1) {
    for (int64_t t = 0; t < lines && !lt_stopped(); t++) order_line(o, t, inside, items);
  } else {
    LT_IN_TEAM(team, team,
               order_lines(o, items + 2 * n * first, lines * first / team, lines * last / team));
  }
  lt_cpu_free(NULL, 0, items, bytes, NULL);
  return true;
}

/* Writes the first k elements along an expanded dim, which are equal, and their indices. */
static bool order_expanded(lt_Call *c, int dim, int64_t k) {
  lt_Tensor *self = lt_in(c, 0), *count = lt_empty(LT_int64, lt_cpu(), 1, &k);
  int64_t strides[LT_MAX_DIMS] = {0};
  strides[dim] = 1;
  if (count) lt_moves()->count(k, lt_tensor_data(count), LT_INDEX_BASE, 1, 0);
  const int64_t *shape = c->out[0]->shape;
  lt_Tensor *first = lt_geometry(self, 0, self->ndim, shape, self->strides),
            *positions = count ? lt_geometry(count, 0, self->ndim, shape, strides) : NULL;
  bool ok = first && positions && lt_copy_into(c->out[0], first, false) &&
            lt_copy_into(c->out[1], positions, false);
  lt_release(count);
  lt_release(first);
  lt_release(positions);
  return ok;
}

/* Writes the first k elements along dim in order, and their indices. */
static bool order(lt_Call *c, int dim, int64_t k, bool descending) {
  lt_Tensor *self = lt_in(c, 0);
  if (dim < 0) return false;
  if (c->out[0]->numel == 0) return true;
  if (self->ndim == 0) k = 1; /* a 0-d tensor has one element, for any k */
  if (self->ndim > 0 && self->strides[dim] == 0) return order_expanded(c, dim, k);
  lt_Lines l = lt_lines(self->ndim, self->shape, dim);
  bool packs = k > l.n / 8 && l.n <= LT_PACKED_MOST && !lt_dtype_is_float(self->dtype);
  bool moves = k <= l.n / 8 && l.inner > 1; /* a copy pays, for vectors find the first */
  lt_Tensor *dense = moves ? lt_lines_along(self, dim) : lt_as_contiguous(self, self->dtype),
            *x = lt_as_contiguous(dense, packs ? self->dtype : lt_work_dtype(self->dtype));
  bool ok = x != NULL;
  if (ok) {
    Order o = {lt_tensor_data(dense),
               lt_tensor_data(x),
               x->dtype,
               lt_dtype_size(self->dtype),
               l,
               moves ? 1 : l.inner,
               k,
               descending,
               lt_tensor_data(c->out[0]),
               lt_tensor_data(c->out[1])};
    ok = order_all(&o);
  }
  lt_release(dense);
  lt_release(x);
  return ok;
}

bool lt_cpu_sort(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int dim = lt_arg_dim(c, 1, self);
  return dim >= 0 && order(c, dim, lt_lines(self->ndim, self->shape, dim).n, c->arg[2].b);
}

/* A 0-d tensor has one result, for any k. */
bool lt_cpu_topk(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  return order(c, lt_arg_dim(c, 2, self), self->ndim ? c->arg[1].i : 1, c->arg[3].b);
}
