/* sort.c: sort and topk. Elements are converted to keys (NaN is the largest, -0 equals 0,
 * descending order by complement), which are sorted together with their indices: few by insertion,
 * more by radix, digit by digit from the lowest, which is stable; digits that all keys share are
 * skipped. The values are copied by index, so all their bits are kept. */
#include "kernel_support.h"
#include "sort.h"

#define FEW 48

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
  uint64_t all = ~(uint64_t)0, some = 0;
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    for (; i < end; i++) {
      all &= items[i].key;
      some |= items[i].key;
    }
  lt_Keyed *from = items, *to = scratch;
  for (int shift = 0; shift < 64; shift += 8) {
    if (((all ^ some) >> shift & 255) == 0) continue;
    int64_t start[256] = {0}, sum = 0;
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
      for (; i < end; i++) start[from[i].key >> shift & 255]++;
    if (lt_stopped()) return; /* the counts are incomplete */
    for (int k = 0; k < 256; k++) {
      int64_t count = start[k];
      start[k] = sum;
      sum += count;
    }
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
      for (; i < end; i++) to[start[from[i].key >> shift & 255]++] = from[i];
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

/* A heap of the k smallest is faster than sorting all for small k. */
void lt_keyed_first(lt_Keyed *items, lt_Keyed *scratch, int64_t n, int64_t k) {
  if (k > n / 8) {
    lt_keyed_sort(items, scratch, n);
    return;
  }
  for (int64_t i = k / 2 - 1; i >= 0 && !lt_stopped_at(i); i--) sift(items, i, k);
  for (int64_t i = k; i < n && k > 0 && !lt_stopped_at(i); i++)
    if (before(&items[i], &items[0])) {
      items[0] = items[i];
      sift(items, 0, k);
    }
  for (int64_t m = k - 1; m > 0 && !lt_stopped_at(m); m--) {
    lt_Keyed e = items[0];
    items[0] = items[m];
    items[m] = e;
    sift(items, 0, m);
  }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t float_key(double d) {
  uint64_t u;
  if (d != d) return UINT64_MAX;
  d += 0.0; /* -0 becomes 0 */
  memcpy(&u, &d, sizeof u);
  return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

/* Returns a key of 32 bits, which has half as many digits to sort by. */
static uint64_t float32_key(float f) {
  uint32_t u;
  if (f != f) return UINT32_MAX;
  f += 0.0f;
  memcpy(&u, &f, sizeof u);
  return u >> 31 ? ~u : u | (uint32_t)1 << 31;
}

/* Computes the keys of n elements of the working dtype, `stride` elements apart; descending order
 * complements them. */
static void make_keys(lt_Dtype work, const void *x, int64_t n, int64_t stride, bool descending,
                      lt_Keyed *items) {
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    for (; i < end; i++) {
      uint64_t key;
      if (work == LT_float32) {
        key = float32_key(((const float *)x)[i * stride]);
        if (descending) key ^= UINT32_MAX;
      } else {
        key = work == LT_float64 ? float_key(((const double *)x)[i * stride])
                                 : (uint64_t)((const int64_t *)x)[i * stride] ^ (uint64_t)1 << 63;
        if (descending) key = ~key;
      }
      items[i] = (lt_Keyed){key, i};
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Writes the first k elements of each line in order, values and indices. The elements of `self` are
 * copied as bytes; x has them in the working dtype. Both are contiguous. */
static bool order_lines(lt_Tensor *self, lt_Tensor *x, lt_Lines l, int64_t k, bool descending,
                        lt_Tensor *values, lt_Tensor *positions) {
  lt_Keyed *items = malloc((size_t)(l.n > 0 ? l.n : 1) * 2 * sizeof *items);
  if (!items) return lt_fail_memory();
  size_t size = lt_dtype_size(self->dtype), work = lt_dtype_size(x->dtype);
  const char *from = lt_tensor_data(self), *keys = lt_tensor_data(x);
  char *to = lt_tensor_data(values);
  int64_t *at = lt_tensor_data(positions);
  for (int64_t t = 0; t < l.outer * l.inner && !lt_stopped(); t++) {
    int64_t i = t / l.inner, j = t % l.inner, first = i * l.n * l.inner + j,
            target = i * k * l.inner + j;
    make_keys(x->dtype, keys + (size_t)first * work, l.n, l.inner, descending, items);
    lt_keyed_first(items, items + l.n, l.n, k);
    for (int64_t m = 0; m < k; m++) {
      if (lt_stopped_at(m)) break; /* after an interrupt the indices are undefined */
      int64_t place = target + m * l.inner;
      memcpy(to + (size_t)place * size, from + (size_t)(first + items[m].at * l.inner) * size,
             size);
      at[place] = items[m].at + LT_INDEX_BASE;
    }
  }
  free(items);
  return true;
}

/* Writes the first k elements along dim in order, and their indices. */
static bool order(lt_Call *c, int dim, int64_t k, bool descending) {
  lt_Tensor *self = lt_in(c, 0);
  if (dim < 0) return false;
  if (c->out[0]->numel == 0) return true;
  if (self->ndim == 0) k = 1; /* a 0-d tensor has one element, for any k */
  lt_Tensor *dense = lt_as_contiguous(self, self->dtype),
            *x = lt_as_contiguous(dense, lt_work_dtype(self->dtype));
  bool ok = x && order_lines(dense, x, lt_lines(self->ndim, self->shape, dim), k, descending,
                             c->out[0], c->out[1]);
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
