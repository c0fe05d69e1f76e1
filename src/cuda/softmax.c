/* softmax.c: softmax and log_softmax along a dimension, and their gradients. */
#include "cuda.h"
#include "accel/softmax.h"
#include "softmax.h"

static bool run(const lt_Call *c, const lt_SoftmaxCall *s) {
  lt_CudaSoftmax args = {.x = lt_tensor_data(s->x),
                         .g = s->g ? lt_tensor_data(s->g) : NULL,
                         .y = lt_tensor_data(s->y),
                         .x_dtype = s->x->dtype,
                         .g_dtype = s->g ? s->g->dtype : s->x->dtype,
                         .y_dtype = s->y->dtype,
                         .outer = s->outer,
                         .n = s->n,
                         .inner = s->inner,
                         .log = s->log};
  return lt_cuda_launch_ok(lt_cuda_launch_softmax(&args, lt_cuda_stream(c)));
}

static const lt_SoftmaxDriver driver = {lt_cuda_begin, run};

bool lt_cuda_softmax(lt_Call *c) { return lt_softmax_forward(c, &driver, false); }
bool lt_cuda_log_softmax(lt_Call *c) { return lt_softmax_forward(c, &driver, true); }
bool lt_cuda__softmax_backward(lt_Call *c) { return lt_softmax_backward(c, &driver, false); }
bool lt_cuda__log_softmax_backward(lt_Call *c) { return lt_softmax_backward(c, &driver, true); }
