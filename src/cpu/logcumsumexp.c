/* logcumsumexp.c: logarithms of cumulative sums of e^x along a dimension, without overflow. They
 * are computed in float64, a chunk of a line at a time: sums of e^(x - top), where `top` is the
 * largest element so far. */
#include "kernel_support.h"
#include "opids.h"
#include "vector.h"

#include <math.h>

enum { CHUNK = 256, WIDTH = 16 /* columns whose chunks are processed by turns */ };

/* The sum of e^x of the elements so far: sum * e^top. */
typedef struct Sum {
  double top, sum;
} Sum;

/* A call on contiguous tensors. */
typedef struct Work {
  lt_Dtype dtype;
  int64_t size; /* bytes of an element */
  const char *x;
  char *y;
  lt_Lines l;
} Work;

/* Replaces the elements of a chunk by the results, one after the other. */
static void add_each(Sum *s, double *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double x = v[i];
    if (x > s->top) {
      s->sum = s->sum * exp(s->top - x) + 1;
      s->top = x;
    } else if (!isinf(x)) {
      s->sum += exp(x - s->top);
    }
    v[i] = s->top + log(s->sum);
  }
}

/* Does the same by vectors where that is as exact: where all elements are finite, and the first
 * result is at most `below` smaller than the largest element and, if that is positive, at least
 * `part` of it, as results are rounded like the largest element. */
static void add_chunk(Sum *s, double *v, int64_t n, double below, double part) {
  double top = s->top, first = v[0] > s->top ? v[0] : s->top, other = 0;
  for (int64_t i = 0; i < n; i++) top = v[i] > top ? v[i] : top;
  for (int64_t i = 0; i < n; i++) other += v[i] - v[i]; /* NaN unless all are finite */
  if (!(top - first <= below) || (top > 0 && first < part * top) || other != 0) {
    add_each(s, v, n);
    return;
  }
  double sum = s->sum * exp(s->top - top);
  for (int64_t i = 0; i < n; i++) v[i] -= top;
  lt_vector_op(LT_OP_exp, LT_float64, n, v, v, NULL);
  for (int64_t i = 0; i < n; i++) v[i] = sum += v[i];
  lt_vector_op(LT_OP_log, LT_float64, n, v, v, NULL);
  for (int64_t i = 0; i < n; i++) v[i] += top;
  *s = (Sum){top, sum};
}

/* Processes blocks from..to of up to WIDTH neighbouring lines. */
static void run(void *context, int64_t from, int64_t to) {
  const Work *w = context;
  int64_t inner = w->l.inner, n = w->l.n;
  bool exact = w->dtype == LT_float64;
  double v[CHUNK], below = exact ? 32 : 600, part = exact ? 0.5 : 0x1p-26;
  for (int64_t t = from; t < to; t++) {
    int64_t width, block = lt_line_block(w->l, WIDTH, t, &width);
    Sum sums[WIDTH];
    for (int k = 0; k < WIDTH; k++) sums[k] = (Sum){-INFINITY, 0};
    for (int64_t i = 0; i < n && !lt_stopped(); i += CHUNK)
      for (int64_t k = 0; k < width; k++) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK, at = (block + i * inner + k) * w->size;
        lt_vector_load(LT_float64, m, v, w->dtype, w->x + at, inner * w->size);
        add_chunk(&sums[k], v, m, below, part);
        lt_vector_store(LT_float64, m, w->dtype, w->y + at, inner * w->size, v);
      }
  }
}

/* _logcumsumexp (self, dim) */
bool lt_cpu__logcumsumexp(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, out->dtype);
  if (!x) return false;
  Work w = {out->dtype, (int64_t)lt_dtype_size(out->dtype), lt_tensor_data(x), lt_tensor_data(out),
            lt_lines(out->ndim, out->shape, dim)};
  lt_share(16 * out->numel, lt_line_blocks(w.l, WIDTH), run, &w);
  lt_release(x);
  return true;
}
