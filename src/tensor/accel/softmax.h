/* softmax.h: the host's part of softmax and log_softmax along a dimension, and of their
 * gradients. */
#ifndef LT_ACCEL_SOFTMAX_H
#define LT_ACCEL_SOFTMAX_H

#include "kernel.h"

/* A call. x, g and y are contiguous, with outer x n x inner elements; n is the size of the
 * dimension. y is computed from x, and in backward, where x is the result of forward, from its
 * gradient g; else g is NULL. */
typedef struct lt_SoftmaxCall {
  lt_Tensor *x, *g, *y;
  int64_t outer, n, inner; /* none is 0 */
  bool log;
} lt_SoftmaxCall;

/* What a device does: `begin` starts a kernel function, `run` queues the kernel. */
typedef struct lt_SoftmaxDriver {
  bool (*begin)(const lt_Call *c);
  bool (*run)(const lt_Call *c, const lt_SoftmaxCall *s);
} lt_SoftmaxDriver;

/* Run a call of (self, dim), and one of (grad, result, dim). */
bool lt_softmax_forward(lt_Call *c, const lt_SoftmaxDriver *driver, bool log);
bool lt_softmax_backward(lt_Call *c, const lt_SoftmaxDriver *driver, bool log);

#endif
