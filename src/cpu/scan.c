/* scan.c: cumulative sums and products along a dimension. Floats are accumulated in float64;
 * integers wrap. */
#include "kernel_support.h"
#include "rows.h"

/* A call on contiguous tensors of the working dtype. */
typedef struct Work {
  const lt_Scan *f;
  const char *x;
  char *y;
  lt_Lines l;
  size_t size; /* bytes of an element */
} Work;

/* Processes rows from..to, or blocks of columns. */
static void run(void *context, int64_t from, int64_t to) {
  const Work *w = context;
  lt_Lines l = w->l;
  if (l.inner == 1) {
    size_t at = (size_t)(from * l.n) * w->size;
    w->f->rows(w->x + at, w->y + at, to - from, l.n);
    return;
  }
  int64_t blocks = (l.inner + LT_SCAN_WIDTH - 1) / LT_SCAN_WIDTH;
  for (int64_t t = from; t < to && !lt_stopped(); t++) {
    int64_t j = t % blocks * LT_SCAN_WIDTH, left = l.inner - j;
    size_t at = (size_t)(t / blocks * l.n * l.inner + j) * w->size;
    w->f->columns(w->x + at, w->y + at, l.n, l.inner, left < LT_SCAN_WIDTH ? left : LT_SCAN_WIDTH);
  }
}

/* Runs cumsum or cumprod. */
static bool scan(lt_Call *c, bool product) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(out->dtype);
  /* self is cast to the dtype argument before anything is summed */
  lt_Tensor *cast = lt_given(c, 2) ? lt_as_contiguous(self, c->arg[2].dtype) : lt_retain(self);
  lt_Tensor *x = lt_as_contiguous(cast, work), *y = x ? lt_output_open(out, work) : NULL;
  lt_release(cast);
  if (y) {
    Work w = {lt_scan(work, product), lt_tensor_data(x), lt_tensor_data(y),
              lt_lines(out->ndim, out->shape, dim), lt_dtype_size(work)};
    lt_share(out->numel, w.l.outer * ((w.l.inner + LT_SCAN_WIDTH - 1) / LT_SCAN_WIDTH), run, &w);
  }
  lt_release(x);
  return lt_output_close(out, y);
}

bool lt_cpu_cumsum(lt_Call *c) { return scan(c, false); }
bool lt_cpu_cumprod(lt_Call *c) { return scan(c, true); }
