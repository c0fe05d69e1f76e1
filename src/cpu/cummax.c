/* cummax.c: running maxima and minima along a dimension, with the index of each. As in PyTorch, of
 * equal elements the last one counts, and NaN takes precedence over every number. */
#include "kernel_support.h"
#include "rows.h"

/* A call on contiguous tensors of the working dtype. */
typedef struct Work {
  const lt_Extremes *f;
  const char *x;
  char *values;
  int64_t *indices;
  lt_Lines l;
  int64_t size; /* bytes of an element */
} Work;

/* Processes lines from..to, or blocks of columns. */
static void run(void *context, int64_t from, int64_t to) {
  const Work *w = context;
  for (int64_t t = from, width; t < to && !lt_stopped(); t++) {
    int64_t at = lt_line_block(w->l, LT_SCAN_WIDTH, t, &width);
    const char *x = w->x + at * w->size;
    char *values = w->values + at * w->size;
    if (w->l.inner == 1)
      w->f->line(x, values, w->indices + at, w->l.n);
    else
      w->f->columns(x, values, w->indices + at, w->l.n, w->l.inner, width);
  }
}

/* Runs cummax or cummin; outputs are the values and the int64 indices. */
static bool cumulate(lt_Call *c, bool largest) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *y = x ? lt_output_open(out, work) : NULL;
  if (y) {
    Work w = {lt_extremes(work, largest),
              lt_tensor_data(x),
              lt_tensor_data(y),
              lt_tensor_data(c->out[1]),
              lt_lines(out->ndim, out->shape, dim),
              (int64_t)lt_dtype_size(work)};
    lt_share(out->numel, lt_line_blocks(w.l, LT_SCAN_WIDTH), run, &w);
  }
  lt_release(x);
  return lt_output_close(out, y);
}

bool lt_cpu_cummax(lt_Call *c) { return cumulate(c, true); }
bool lt_cpu_cummin(lt_Call *c) { return cumulate(c, false); }
