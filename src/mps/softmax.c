/* softmax.c: softmax and log_softmax along a dimension, and their gradients. */
#include "softmax.h"
#include "accel/softmax.h"
#include "rows.h"

static bool run(const lt_Call *c, const lt_SoftmaxCall *s) {
  lt_MpsSoftmax args = {.outer = s->outer, .n = s->n, .inner = s->inner};
  lt_MpsLaunch l = {
      .file = "softmax",
      .constants = {(int)s->x->dtype, s->g ? (int)s->g->dtype : 0, (int)s->y->dtype, s->log},
      .data = {lt_tensor_data(s->x)},
      .count = 1,
      .arguments = &args,
      .size = sizeof args};
  if (s->g) l.data[l.count++] = lt_tensor_data(s->g);
  l.data[l.count++] = lt_tensor_data(s->y);
  if (s->inner == 1) {
    l.kernel = s->g ? "softmax_backward_rows" : "softmax_rows";
    return lt_mps_launch_rows(c, l, s->outer, s->n);
  }
  int64_t blocks = s->outer * lt_mps_groups(s->inner, LT_COLUMNS);
  l.kernel = s->g ? "softmax_backward_columns" : "softmax_columns";
  l.groups[0] = blocks < LT_LOOP_GROUPS ? blocks : LT_LOOP_GROUPS;
  l.threads[0] = LT_COLUMNS * LT_COLUMN_THREADS;
  return lt_mps_launch(c, &l);
}

static const lt_SoftmaxDriver driver = {lt_mps_begin, run};

bool lt_mps_softmax(lt_Call *c) { return lt_softmax_forward(c, &driver, false); }
bool lt_mps_log_softmax(lt_Call *c) { return lt_softmax_forward(c, &driver, true); }
bool lt_mps__softmax_backward(lt_Call *c) { return lt_softmax_backward(c, &driver, false); }
bool lt_mps__log_softmax_backward(lt_Call *c) { return lt_softmax_backward(c, &driver, true); }
