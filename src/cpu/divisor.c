/* divisor.c: checks the divisor of an integer division for 0, before anything is written. */
#include "cpu.h"
#include "rows.h"
#include "kernel_support.h"

/* A search over a tensor as rows along its longest dimension. Expanded dimensions are searched
 * once. */
typedef struct Search {
  const char *data;
  lt_FindZeroFn find;
  /* row: the dimension along which rows run */
  int ndim, row;
  int64_t size, shape[LT_MAX_DIMS], strides[LT_MAX_DIMS]; /* in elements */
  /* linear indices from one index to the next */
  int64_t weight[LT_MAX_DIMS];
  _Atomic int64_t first; /* linear index of the first 0 found */
} Search;

/* Records a 0, found by any thread; the smallest index is kept, so the message does not depend on
 * threads. */
static void record_zero(Search *s, int64_t at) {
  int64_t first = atomic_load(&s->first);
  while (at < first && !atomic_compare_exchange_weak(&s->first, &first, at)) continue;
}

/* Searches rows from..to of a strided tensor. */
static void search_rows(void *context, int64_t from, int64_t to) {
  Search *s = context;
  for (int64_t row = from; row < to; row++) {
    int64_t offset = 0, at = 0, rest = row;
    for (int d = s->ndim - 1; d >= 0; d--) {
      if (d == s->row) continue;
      int64_t i = rest % s->shape[d];
      rest /= s->shape[d];
      offset += i * s->strides[d];
      at += i * s->weight[d];
    }
    int64_t k = s->find(s->data + offset * s->size, s->shape[s->row], s->strides[s->row]);
    if (k >= 0) record_zero(s, at + k * s->weight[s->row]);
  }
}

/* Searches a range of a dense tensor. */
static void search_dense(void *context, int64_t from, int64_t to) {
  Search *s = context;
  int64_t k = s->find(s->data + from * s->size, to - from, 1);
  if (k >= 0) record_zero(s, from + k);
}

/* Searches the whole tensor, on several threads if it is large. */
static void search(Search *s, const lt_Tensor *t) {
  int64_t numel = 1, place = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    s->shape[d] = t->strides[d] == 0 ? 1 : t->shape[d];
    s->strides[d] = t->strides[d];
    s->weight[d] = place;
    place *= t->shape[d];
    numel *= s->shape[d];
    if (s->shape[d] > s->shape[s->row]) s->row = d;
  }
  if (lt_tensor_is_contiguous(t))
    lt_share(numel, numel, search_dense, s);
  else
    lt_share(numel, numel / s->shape[s->row], search_rows, s);
}

bool lt_cpu_check_divisor(const lt_Call *c, const lt_Tensor *divisor) {
  const char *name = lt_arg_name(c, 1);
  if (divisor->numel == 1) { /* its dtype may be wider than that of the division */
    int64_t v = lt_scalar_to_int(lt_scalar_load(divisor->dtype, lt_tensor_data(divisor)));
    if ((c->compute == LT_int32 ? (int32_t)v : v) != 0) return true;
    return lt_bad_divisor(name, divisor->ndim, divisor->shape, 0, v, c->compute);
  }
  size_t size = lt_dtype_size(divisor->dtype);
  Search s = {.data = lt_tensor_data(divisor),
              .find = lt_rows()->find_zero[__builtin_ctzll(size)],
              .ndim = divisor->ndim,
              .row = divisor->ndim - 1,
              .size = (int64_t)size};
  atomic_init(&s.first, INT64_MAX);
  search(&s, divisor);
  int64_t first = atomic_load(&s.first);
  if (first < INT64_MAX)
    return lt_bad_divisor(name, divisor->ndim, divisor->shape, first, 0, c->compute);
  return lt_check_interrupt();
}
