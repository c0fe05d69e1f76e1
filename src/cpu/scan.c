/* scan.c: cumulative sums and products along a dimension. Floats, and the parts of complex numbers,
 * are accumulated in float64; integers wrap. A long sum is scanned in pieces: once for the sum of
 * each, and again from the sum of those before it, several pieces at a time. The pieces have a
 * fixed size, so the result does not depend on the number of threads. */
#include "kernel_support.h"
#include "rows.h"

#include <math.h>

#define PIECE 1024        /* elements of a piece of a long row */
#define LONG  (8 * PIECE) /* least elements of a row that is split */
#define FEW   16          /* more rows are not split, but processed together */

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
    w->f->rows(w->x + at, w->y + at, to - from, l.n, NULL);
    return;
  }
  for (int64_t t = from, width; t < to && !lt_stopped(); t++) {
    size_t at = (size_t)lt_line_block(l, LT_SCAN_WIDTH, t, &width) * w->size;
    w->f->columns(w->x + at, w->y + at, l.n, l.inner, width);
  }
}

/* Scans the pieces first..last - 1 of a row from the states before them, which become those after
 * them. y NULL: computes the states only. */
static void scan_pieces(const Work *w, const char *x, char *y, double *states, int64_t first,
                        int64_t last) {
  double ignored[4 * PIECE];
  for (int64_t p = first, m; p < last && !lt_stopped(); p += m) {
    m = last - p < 4 ? last - p : 4;
    size_t at = (size_t)(p * PIECE) * w->size;
    w->f->rows(x + at, y ? y + at : (char *)ignored, m, PIECE, states + p);
  }
}

/* Does so for all whole pieces. */
static void scan_all_pieces(const Work *w, const char *x, char *y, double *states) {
  int64_t pieces = w->l.n / PIECE, fours = (pieces + 3) / 4;
  LT_IN_TEAM(lt_team(w->l.n, fours), fours,
             scan_pieces(w, x, y, states, 4 * first, 4 * last < pieces ? 4 * last : pieces));
}

/* Replaces each of n sums by that of all before it, and adds the last. Returns false if one is not
 * finite: then the order of the additions matters. */
static bool sums_before(lt_Dtype work, int64_t n, double *sums) {
  double *f = sums, before = 0;
  uint64_t *u = (uint64_t *)(void *)sums, whole = 0;
  for (int64_t i = 0; i <= n; i++) {
    if (work == LT_int64) {
      uint64_t sum = u[i];
      u[i] = whole;
      whole += sum;
    } else {
      double sum = f[i];
      f[i] = before;
      before += sum;
      if (!isfinite(before)) return false;
    }
  }
  return true;
}

/* Computes the cumulative sums of long rows. */
static bool sum_long_rows(Work *w, lt_Dtype work) {
  int64_t n = w->l.n, pieces = n / PIECE;
  double *states = malloc((size_t)(pieces + 1) * sizeof *states); /* or integers */
  if (!states) return lt_fail_memory();
  for (int64_t r = 0; r < w->l.outer && !lt_stopped(); r++) {
    size_t row = (size_t)(r * n) * w->size, whole = (size_t)(pieces * PIECE) * w->size;
    const char *x = w->x + row;
    char *y = w->y + row;
    memset(states, 0, (size_t)(pieces + 1) * sizeof *states);
    scan_all_pieces(w, x, NULL, states);
    if (!sums_before(work, pieces, states)) {
      w->f->rows(x, y, 1, n, NULL);
      continue;
    }
    scan_all_pieces(w, x, y, states);
    w->f->rows(x + whole, y + whole, n > pieces * PIECE, n - pieces * PIECE, states + pieces);
  }
  free(states);
  return lt_check_interrupt();
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
  bool ok = y != NULL;
  if (ok) {
    Work w = {lt_scan(work, product), lt_tensor_data(x), lt_tensor_data(y),
              lt_lines(out->ndim, out->shape, dim), lt_dtype_size(work)};
    bool splits = !product && !lt_dtype_is_complex(work);
    if (splits && w.l.inner == 1 && w.l.outer < FEW && w.l.n >= LONG)
      ok = sum_long_rows(&w, work);
    else
      lt_share(out->numel, lt_line_blocks(w.l, LT_SCAN_WIDTH), run, &w);
  }
  lt_release(x);
  return lt_output_close(out, y) && ok;
}

bool lt_cpu_cumsum(lt_Call *c) { return scan(c, false); }
bool lt_cpu_cumprod(lt_Call *c) { return scan(c, true); }
