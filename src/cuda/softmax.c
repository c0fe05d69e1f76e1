/* softmax.c: softmax and log_softmax along a dimension, and their gradients. */
#include "cuda.h"
#include "accel/operand.h"
#include "softmax.h"

/* Computes y from x (and g, in backward) along `dim`. Releases x and g, which may be NULL after a
 * failure. */
static bool run(const lt_Call *c, lt_Tensor *x, lt_Tensor *g, bool with_grad, int dim, bool log) {
  lt_Tensor *y = c->out[0];
  bool ok = x && (g || !with_grad);
  if (ok) {
    lt_CudaSoftmax s = {.x = lt_tensor_data(x),
                        .g = g ? lt_tensor_data(g) : NULL,
                        .y = lt_tensor_data(y),
                        .x_dtype = x->dtype,
                        .g_dtype = g ? g->dtype : x->dtype,
                        .y_dtype = y->dtype,
                        .outer = 1,
                        .n = y->ndim ? y->shape[dim] : 1,
                        .inner = 1,
                        .log = log};
    for (int d = 0; d < dim; d++) s.outer *= y->shape[d];
    for (int d = dim + 1; d < y->ndim; d++) s.inner *= y->shape[d];
    ok = lt_cuda_launch_ok(lt_cuda_launch_softmax(&s, lt_cuda_stream(c)));
  }
  lt_release(x);
  lt_release(g);
  return ok;
}

static bool forward(lt_Call *c, bool log) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  return run(c, lt_operand_floats(self, out->dtype), NULL, false, dim, log);
}

static bool backward(lt_Call *c, bool log) {
  lt_Tensor *grad = lt_in(c, 0), *result = lt_in(c, 1), *out = c->out[0];
  int dim = lt_dim(c->arg[2].i, result->ndim);
  if (dim < 0 || !lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *g = lt_operand_floats(grad, out->dtype);
  return run(c, g ? lt_operand_floats(result, out->dtype) : NULL, g, true, dim, log);
}

bool lt_cuda_softmax(lt_Call *c) { return forward(c, false); }
bool lt_cuda_log_softmax(lt_Call *c) { return forward(c, true); }
bool lt_cuda__softmax_backward(lt_Call *c) { return backward(c, false); }
bool lt_cuda__log_softmax_backward(lt_Call *c) { return backward(c, true); }
