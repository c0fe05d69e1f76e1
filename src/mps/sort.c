/* sort.c: sort and topk. A short row is sorted by one threadgroup. For a small k, segments of a
 * long row are sorted and their first k kept. Otherwise segments are sorted, and then merged in
 * pairs. */
#include "sort.h"
#include "accel/order.h"
#include "loops.h"

#define FEW 256 /* the largest k for which a long row is not sorted as a whole */

lt_Tensor *lt_mps_items(const lt_Call *c, int64_t n, bool wide) {
  return lt_empty(LT_int64, c->device, 1, (int64_t[]){wide ? 2 * n : n});
}

/* A sort of each of `rows` contiguous rows of n elements: the first k in order (of equal elements
 * the first in the row; NaN is the largest), as values and as indices from LT_INDEX_BASE: rows x k
 * each. */
typedef struct Order {
  const void *x;
  lt_Dtype dtype;
  int64_t rows, n, k;
  bool descending;
  void *values, *indices;
  bool wide; /* the items are wide */
} Order;

static int64_t segment_size(bool wide) { return wide ? LT_SORT_WIDE : LT_SORT_NARROW; }

/* Queues the sorting of segments. The input is `from`, with `count` items for each row, or, where
 * that is NULL, the elements of x. With `to` NULL, there is one segment, and values and indices are
 * written; else the first `keep` items of each segment. */
static bool order_segments(const lt_Call *c, const Order *o, const void *from, int64_t count,
                           void *to, int64_t keep) {
  lt_MpsSegments s = {.rows = o->rows,
                      .n = o->n,
                      .count = count,
                      .keep = keep,
                      .each = lt_mps_groups(count, segment_size(o->wide)),
                      .size = 1,
                      .together = 1};
  while (s.size < count && s.size < segment_size(o->wide)) s.size *= 2;
  while (s.size * s.together < LT_LOOP_THREADS && s.together < o->rows) s.together *= 2;
  s.groups = lt_mps_groups(o->rows * s.each, s.together);
  lt_MpsLaunch launch = {
      .file = "sort",
      .kernel = "order_segments",
      .constants = {o->wide, from != NULL, to == NULL, (int)o->dtype, o->descending},
      .data = {o->x, from, to, o->values, o->indices},
      .count = 5,
      .arguments = &s,
      .size = sizeof s,
      .groups = {s.groups < LT_LOOP_GROUPS ? s.groups : LT_LOOP_GROUPS},
      .threads = {LT_LOOP_THREADS}};
  return lt_mps_launch(c, &launch);
}

/* Computes the first k of each row: of `from`, which it releases, or, where that is NULL, of the
 * elements. Each round sorts segments and keeps k candidates of each for the next round. Writes
 * values and indices, or, where `result` is given, stores k items for each row there. */
static bool select_first(const lt_Call *c, const Order *o, lt_Tensor *from, lt_Tensor **result) {
  bool ok = true;
  for (int64_t count = o->n, segments = 2; ok && segments > 1; count = segments * o->k) {
    segments = lt_mps_groups(count, segment_size(o->wide));
    bool has_to = segments > 1 || result;
    lt_Tensor *to = has_to ? lt_mps_items(c, o->rows * segments * o->k, o->wide) : NULL;
    ok = (to || !has_to) && order_segments(c, o, from ? lt_tensor_data(from) : NULL, count,
                                           to ? lt_tensor_data(to) : NULL, o->k);
    lt_release(from);
    from = to;
  }
  if (ok && result)
    *result = from;
  else
    lt_release(from);
  return ok;
}

/* Merges sorted runs of items until every row is one run. Releases `items`, and returns the sorted
 * items or NULL. */
static lt_Tensor *merge_runs(const lt_Call *c, lt_Tensor *items, int64_t rows, int64_t n,
                             bool wide) {
  if (n <= segment_size(wide)) return items;
  lt_Tensor *other = lt_mps_items(c, rows * n, wide);
  bool ok = other != NULL;
  for (int64_t run = segment_size(wide); ok && run < n; run *= 2) {
    lt_MpsMerge m = {rows, n, run};
    lt_MpsLaunch launch = {.file = "sort",
                           .kernel = "merge_items",
                           .constants = {wide},
                           .data = {lt_tensor_data(items), lt_tensor_data(other)},
                           .count = 2,
                           .arguments = &m,
                           .size = sizeof m};
    ok = lt_mps_launch_each(c, launch, rows * n);
    lt_Tensor *swap = items;
    items = other;
    other = swap;
  }
  lt_release(other);
  if (ok) return items;
  lt_release(items);
  return NULL;
}

lt_Tensor *lt_mps_sort_items(const lt_Call *c, lt_Tensor *items, int64_t rows, int64_t n,
                             bool wide) {
  Order o = {.rows = rows, .n = n, .k = n, .wide = wide, .dtype = LT_int64};
  lt_Tensor *sorted = items ? lt_mps_items(c, rows * n, wide) : NULL;
  bool ok = sorted && (rows * n == 0 ||
                       order_segments(c, &o, lt_tensor_data(items), n, lt_tensor_data(sorted), n));
  lt_release(items);
  if (ok) return merge_runs(c, sorted, rows, n, wide);
  lt_release(sorted);
  return NULL;
}

lt_Tensor *lt_mps_first_items(const lt_Call *c, lt_Tensor *items, int64_t rows, int64_t n,
                              int64_t k, bool wide, int64_t *step) {
  Order o = {.rows = rows, .n = n, .k = k, .wide = wide, .dtype = LT_int64};
  lt_Tensor *first = NULL;
  *step = k <= FEW ? k : n;
  if (k > FEW) return lt_mps_sort_items(c, items, rows, n, wide);
  return items && select_first(c, &o, items, &first) ? first : NULL;
}

/* Sorts whole rows. */
static bool sort_whole(const lt_Call *c, const Order *o) {
  lt_Tensor *items = lt_mps_items(c, o->rows * o->n, o->wide);
  bool ok = items && order_segments(c, o, NULL, o->n, lt_tensor_data(items), o->n);
  if (ok)
    items = merge_runs(c, items, o->rows, o->n, o->wide);
  else
    lt_release(items);
  if (!ok || !items) return false;
  lt_MpsOrder args = {o->rows, o->n, o->k};
  lt_MpsLaunch launch = {.file = "sort",
                         .kernel = "order_gather",
                         .constants = {o->wide, 0, 0, (int)o->dtype},
                         .data = {o->x, lt_tensor_data(items), o->values, o->indices},
                         .count = 4,
                         .arguments = &args,
                         .size = sizeof args};
  ok = lt_mps_launch_each(c, launch, o->rows * o->k);
  lt_release(items);
  return ok;
}

/* Writes the first k of each row of contiguous x to contiguous values and indices. */
static bool order_rows(const lt_Call *c, lt_Tensor *x, int64_t n, int64_t k, bool descending,
                       lt_Tensor *values, lt_Tensor *indices) {
  Order o = {.x = lt_tensor_data(x),
             .dtype = x->dtype,
             .rows = x->numel / n,
             .n = n,
             .k = k,
             .descending = descending,
             .values = lt_tensor_data(values),
             .indices = lt_tensor_data(indices),
             .wide = x->dtype == LT_int64 || n >= (int64_t)UINT32_MAX};
  return n <= segment_size(o.wide) || k <= FEW ? select_first(c, &o, NULL, NULL)
                                               : sort_whole(c, &o);
}

bool lt_mps_sort(lt_Call *c) {
  return lt_mps_begin(c) && lt_accel_order(c, 1, -1, c->arg[2].b, order_rows);
}
bool lt_mps_topk(lt_Call *c) {
  return lt_mps_begin(c) && lt_accel_order(c, 2, c->arg[1].i, c->arg[3].b, order_rows);
}
