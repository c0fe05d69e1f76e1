/* softmax.c: softmax and log_softmax along a dimension, and their gradients. */
#include "softmax.h"
#include "accel/operand.h"
#include "rows.h"

/* Computes y from x (and g, in backward) along `dim`. Releases x and g, which may be NULL after a
 * failure. */
static bool run(const lt_Call *c, lt_Tensor *x, lt_Tensor *g, bool with_grad, int dim, bool log) {
  lt_Tensor *y = c->out[0];
  bool ok = x && (g || !with_grad);
  if (ok) {
    lt_MpsSoftmax s = {.outer = 1, .n = y->ndim ? y->shape[dim] : 1, .inner = 1};
    for (int d = 0; d < dim; d++) s.outer *= y->shape[d];
    for (int d = dim + 1; d < y->ndim; d++) s.inner *= y->shape[d];
    lt_MpsLaunch l = {.file = "softmax",
                      .constants = {(int)x->dtype, g ? (int)g->dtype : 0, (int)y->dtype, log},
                      .data = {lt_tensor_data(x)},
                      .count = 1,
                      .arguments = &s,
                      .size = sizeof s};
    if (g) l.data[l.count++] = lt_tensor_data(g);
    l.data[l.count++] = lt_tensor_data(y);
    if (s.inner == 1) {
      l.kernel = g ? "softmax_backward_rows" : "softmax_rows";
      ok = lt_mps_launch_rows(c, l, s.outer, s.n);
    } else {
      int64_t blocks = s.outer * lt_mps_groups(s.inner, LT_COLUMNS);
      l.kernel = g ? "softmax_backward_columns" : "softmax_columns";
      l.groups[0] = blocks < LT_LOOP_GROUPS ? blocks : LT_LOOP_GROUPS;
      l.threads[0] = LT_COLUMNS * LT_COLUMN_THREADS;
      ok = lt_mps_launch(c, &l);
    }
  }
  lt_release(x);
  lt_release(g);
  return ok;
}

static bool forward(lt_Call *c, bool log) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_mps_begin(c)) return false;
  if (out->numel == 0) return true;
  return run(c, lt_operand_floats(self, out->dtype), NULL, false, dim, log);
}

static bool backward(lt_Call *c, bool log) {
  lt_Tensor *grad = lt_in(c, 0), *result = lt_in(c, 1), *out = c->out[0];
  int dim = lt_dim(c->arg[2].i, result->ndim);
  if (dim < 0 || !lt_mps_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *g = lt_operand_floats(grad, out->dtype);
  return run(c, g ? lt_operand_floats(result, out->dtype) : NULL, g, true, dim, log);
}

bool lt_mps_softmax(lt_Call *c) { return forward(c, false); }
bool lt_mps_log_softmax(lt_Call *c) { return forward(c, true); }
bool lt_mps__softmax_backward(lt_Call *c) { return backward(c, false); }
bool lt_mps__log_softmax_backward(lt_Call *c) { return backward(c, true); }
