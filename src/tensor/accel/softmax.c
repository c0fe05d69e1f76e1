/* softmax.c: converts the operands of a softmax, and divides their shape at the dimension. */
#include "accel/softmax.h"
#include "accel/operand.h"

/* Releases x and g, which may be NULL after a failure. */
static bool run(const lt_Call *c, const lt_SoftmaxDriver *driver, lt_SoftmaxCall s, bool with_grad,
                int dim) {
  bool ok = s.x && (s.g || !with_grad);
  if (ok) {
    const lt_Tensor *y = s.y;
    s.outer = s.inner = 1;
    s.n = y->ndim ? y->shape[dim] : 1;
    for (int d = 0; d < dim; d++) s.outer *= y->shape[d];
    for (int d = dim + 1; d < y->ndim; d++) s.inner *= y->shape[d];
    ok = driver->run(c, &s);
  }
  lt_release(s.x);
  lt_release(s.g);
  return ok;
}

bool lt_softmax_forward(lt_Call *c, const lt_SoftmaxDriver *driver, bool log) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !driver->begin(c)) return false;
  if (out->numel == 0) return true;
  lt_SoftmaxCall s = {.x = lt_operand_floats(self, out->dtype), .y = out, .log = log};
  return run(c, driver, s, false, dim);
}

bool lt_softmax_backward(lt_Call *c, const lt_SoftmaxDriver *driver, bool log) {
  lt_Tensor *grad = lt_in(c, 0), *result = lt_in(c, 1), *out = c->out[0];
  int dim = lt_dim(c->arg[2].i, result->ndim);
  if (dim < 0 || !driver->begin(c)) return false;
  if (out->numel == 0) return true;
  lt_SoftmaxCall s = {.g = lt_operand_floats(grad, out->dtype), .y = out, .log = log};
  if (s.g) s.x = lt_operand_floats(result, out->dtype);
  return run(c, driver, s, true, dim);
}
