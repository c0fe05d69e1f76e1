/* kernel_support.c: working tensors, index tensors and geometry, used by the structured kernels. */
#include "kernel_support.h"
#include "moves.h"

/* Calls range(context, from, to) for `step` elements at a time, with a check for an interrupt
 * between. */
static void run_range(int64_t from, int64_t to, int64_t step, lt_RangeFn range, void *context) {
  for (; from < to && !lt_stopped(); from += step)
    range(context, from, to - from < step ? to : from + step);
}

void lt_share(int64_t work, int64_t n, lt_RangeFn range, void *context) {
  if (n <= 0) return;
  int team = lt_team(work, n);
  int64_t step = LT_CHUNK / (work / n + 1); /* a multiple of vectors, if pieces are elements */
  step = step >= 64 ? step / 64 * 64 : step > 0 ? step : 1;
  if (team == 1) {
    run_range(0, n, step, range, context);
    return;
  }
  int64_t each = n / team, more = n % team; /* the first `more` threads get one more */
#pragma omp parallel for schedule(static) num_threads(team)
  for (int k = 0; k < team; k++) {
    int64_t from = each * k + (k < more ? k : more);
    run_range(from, from + each + (k < more), step, range, context);
  }
}

lt_Tensor *lt_output_open(lt_Tensor *out, lt_Dtype work) {
  if (out->dtype == work) return lt_retain(out);
  return lt_empty(work, lt_tensor_device(out), out->ndim, out->shape);
}

bool lt_output_close(lt_Tensor *out, lt_Tensor *written) {
  if (!written) return false;
  bool ok = written == out || lt_copy_into(out, written, false);
  lt_release(written);
  return ok;
}

lt_Tensor *lt_update_open(lt_Tensor *out, lt_Dtype work) { return lt_as_contiguous(out, work); }

/* Index values, and whether one of them is outside of 1..n. */
typedef struct Range {
  const int64_t *values;
  int64_t n;
  atomic_bool outside;
} Range;

static void check_range(void *context, int64_t from, int64_t to) {
  Range *r = context;
  if (!lt_index_inside(r->values + from, to - from, r->n)) atomic_store(&r->outside, true);
}

bool lt_index_check(const lt_Tensor *t, const lt_Tensor *index, int64_t n, bool negative,
                    const char *name) {
  const int64_t *v = lt_tensor_data(t);
  int ndim = index->ndim;
  lt_user_index_apply(&name, &ndim, index->shape);
  for (int64_t i = 0, end; (end = lt_next_chunk(i, t->numel)) > i;)
    for (; i < end; i++)
      if (!(v[i] >= 1 && v[i] <= n) && !(negative && v[i] < 0 && v[i] >= -n))
        return lt_bad_index(name, ndim, index->shape, i, v[i], n, negative);
  return true;
}

lt_Tensor *lt_index_open(lt_Tensor *index, int64_t n, bool negative, const char *name) {
  lt_Tensor *t = lt_as_contiguous(index, LT_int64);
  if (!t) return NULL;
  Range r = {.values = lt_tensor_data(t), .n = n};
  lt_share(t->numel, t->numel, check_range, &r);
  bool outside = r.outside, ok = !outside || lt_index_check(t, index, n, negative, name);
  if (ok) ok = lt_check_interrupt(); /* the remaining indices were not checked */
  if (ok && !outside) return t;
  lt_Tensor *u = ok ? lt_empty(LT_int64, lt_tensor_device(t), t->ndim, t->shape) : NULL;
  if (u) {
    const int64_t *v = lt_tensor_data(t);
    int64_t *w = lt_tensor_data(u);
    for (int64_t i = 0; i < t->numel; i++) w[i] = v[i] < 0 ? v[i] + n + 1 : v[i];
  }
  lt_release(t);
  return u;
}

void lt_move(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
             size_t size) {
  if (n > 0) lt_mover((int64_t)size)->move(n, to, to_stride, from, from_stride);
}

lt_Tensor *lt_dim_last(lt_Tensor *t, int dim) {
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  int last = t->ndim - 1;
  if (dim >= last) return lt_retain(t);
  memcpy(shape, t->shape, sizeof shape);
  memcpy(strides, t->strides, sizeof strides);
  for (int d = dim; d < last; d++) {
    shape[d] = t->shape[d + 1];
    strides[d] = t->strides[d + 1];
  }
  shape[last] = t->shape[dim];
  strides[last] = t->strides[dim];
  return lt_geometry(t, 0, t->ndim, shape, strides);
}

lt_Tensor *lt_lines_along(lt_Tensor *t, int dim) {
  lt_Tensor *moved = lt_dim_last(t, dim), *dense = lt_as_contiguous(moved, t->dtype);
  lt_release(moved);
  return dense;
}
