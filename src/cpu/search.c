/* search.c: binary search for many values in sorted rows. */
#include "kernel_support.h"
#include "order.h"

/* Values are numbered across rows; each row of `n` sorted elements has `each` values. */
typedef struct Search {
  const void *sorted, *values;
  int64_t *out;
  int64_t n, each;
  bool one_row; /* all values are searched in the same row */
  bool right;
} Search;

/* Searches values from .. to - 1, row by row. */
#define SEARCH(T, NAME)                                                                            \
  static void search_##NAME(void *context, int64_t from, int64_t to) {                             \
    const Search *s = context;                                                                     \
    for (int64_t i = from, end; i < to && !lt_stopped(); i = end) {                                \
      int64_t line = s->one_row ? 0 : i / s->each;                                                 \
      end = s->one_row || (line + 1) * s->each > to ? to : (line + 1) * s->each;                   \
      if (end - i > LT_CHUNK) end = i + LT_CHUNK;                                                  \
      lt_order()->search_##NAME((const T *)s->sorted + line * s->n, s->n,                          \
                                (const T *)s->values + i, end - i, s->right, s->out + i);          \
    }                                                                                              \
  }
SEARCH(float, f32)
SEARCH(double, f64)
SEARCH(int64_t, i64)

/* _searchsorted (sorted_sequence, self, right) */
bool lt_cpu__searchsorted(lt_Call *c) {
  lt_Tensor *sequence = lt_in(c, 0), *out = c->out[0];
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(sequence->dtype);
  lt_Tensor *sorted = lt_as_contiguous(sequence, work),
            *values = lt_as_contiguous(lt_in(c, 1), work);
  bool ok = sorted && values;
  if (ok) {
    Search s = {.sorted = lt_tensor_data(sorted),
                .values = lt_tensor_data(values),
                .out = lt_tensor_data(out),
                .n = sequence->shape[sequence->ndim - 1],
                .each = out->ndim ? out->shape[out->ndim - 1] : 1,
                .one_row = sequence->ndim == 1,
                .right = c->arg[2].b};
    lt_RangeFn run = work == LT_float32 ? search_f32 : work == LT_float64 ? search_f64 : search_i64;
    lt_share(8 * out->numel, out->numel, run, &s);
  }
  lt_release(sorted);
  lt_release(values);
  return ok;
}
