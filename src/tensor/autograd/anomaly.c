/* anomaly.c: anomaly detection: a node notes the line of the host's program that created it, and
 * the error of its gradient, or a gradient with NaN, is reported with that line. */
#include "autograd.h"
#include "../opids.h"

void lt_autograd_set_anomaly(bool on, bool check_nan) {
  lt_thread()->anomaly = on;
  lt_thread()->anomaly_nan = on && check_nan;
}

bool lt_autograd_anomaly(bool *check_nan) {
  *check_nan = lt_thread()->anomaly_nan;
  return lt_thread()->anomaly;
}

void lt_anomaly_note(lt_Node *n) {
  const lt_Thread *th = lt_thread();
  char text[256] = "";
  if (th->where) th->where(th->where_context, text, sizeof text);
  if (!*text) return;
  n->where = malloc(strlen(text) + 1);
  if (n->where) strcpy(n->where, text);
}

/* Returns 1 when a gradient has NaN, 0 when it has none, -1 with an error. */
static int has_nan(lt_Tensor *t) {
  if (!lt_dtype_has_gradient(t->dtype) || lt_backend_of(t)->has_data == false) return 0;
  size_t mark = lt_scope_open();
  lt_Scalar s;
  lt_Tensor *any = lt_do(any, LT_ARG(lt_do(isnan, LT_ARG(t))));
  int found = any && lt_tensor_item(any, &s) ? s.i != 0 : -1;
  lt_scope_close(mark, NULL);
  return found;
}

bool lt_anomaly_check(const lt_Node *n, bool ok, lt_Tensor **in) {
  lt_ErrorSlot error;
  if (!ok) {
    lt_error_keep(&error);
    if (error.kind == LT_ERROR_PLAIN)
      lt_error_set("%s\nhint: the forward call was at %s (%s)", error.text, n->where,
                   lt_node_op_name(n));
    return false;
  }
  bool grad_on = lt_grad_set_enabled(false), failed = false;
  for (int i = 0; !failed && lt_thread()->anomaly_nan && i < n->ninputs; i++) {
    int found = in[i] ? has_nan(in[i]) : 0;
    if (found > 0)
      lt_error_set("backward: cannot continue: the gradient of input %d of %s has NaN\nhint: the "
                   "forward call was at %s",
                   i + 1, lt_node_op_name(n), n->where);
    failed = found != 0;
  }
  lt_grad_set_enabled(grad_on);
  for (int i = 0; failed && i < n->ninputs; i++) {
    lt_release(in[i]);
    in[i] = NULL;
  }
  return !failed;
}
