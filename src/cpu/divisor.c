/* divisor.c: looks for a 0 in the divisor of an integer division, before anything is written. */
#include "cpu.h"
#include "rows.h"
#include "kernel_support.h"

/* A tensor as rows along its longest dimension; what was expanded is looked at once. */
typedef struct Search {
  const char *data;
  lt_FindZeroFn find;
  int ndim, row;                                          /* row: the dimension along the rows */
  int64_t size, shape[LT_MAX_DIMS], strides[LT_MAX_DIMS]; /* in elements */
  int64_t weight[LT_MAX_DIMS];                            /* places from one index to the next */
  _Atomic int64_t first; /* place of the first 0 in the order of the elements */
} Search;

static void note(Search *s, int64_t at) {
  int64_t first = atomic_load(&s->first);
  while (at < first && !atomic_compare_exchange_weak(&s->first, &first, at)) continue;
}

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
    if (k >= 0) note(s, at + k * s->weight[s->row]);
  }
}

/* Pieces of a dense tensor. */
static void search_dense(void *context, int64_t from, int64_t to) {
  Search *s = context;
  int64_t k = s->find(s->data + from * s->size, to - from, 1);
  if (k >= 0) note(s, from + k);
}

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
  if (divisor->numel == 1) { /* may be of a wider dtype than the division */
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
