/* apply.c: the gradient of one node: checks and unpacks its saved tensors, runs the gradient
 * function of its op in a scope, and converts the gradients to the inputs' shapes, dtypes and
 * devices. */
#include "autograd.h"
#include "../opids.h"

/* ---- saved tensors --------------------------------------------------------------------------- */

/* Names a saved tensor in an error: "result", or the argument. */
static const char *saved_name(const lt_Node *n, int what, char *text, size_t room) {
  if (what < 0) return "result";
  const lt_Signature *g = lt_op_signature((lt_OpId)n->op);
  int found = 0;
  for (int i = 0; i < n->nargs; i++)
    if (n->slot[i] >= 0 && n->slot[i] <= what) found = i;
  snprintf(text, room, "argument %s", g->param[found].name);
  return text;
}

/* Names the op that last wrote a storage, "add_". */
static const char *writer_name(const lt_Storage *s, char *text, size_t room) {
  const char *op = s->writer ? s->writer + (s->writer[0] == '_') : NULL;
  size_t n = op ? strlen(op) : 0;
  if (!op) return "another op";
  snprintf(text, room, "%s%s", op, n && op[n - 1] == '_' ? "" : "_");
  return text;
}

/* Reports that a saved tensor was changed in place after it had been saved. */
static bool changed_since(const lt_Node *n, const lt_Saved *s) {
  char text[48], writer[64];
  return lt_fail("cannot compute the gradient: the %s of %s, of shape %s, which %s saved for "
                 "backward, was changed in place by %s (version %u, expected %u)\nhint: change a "
                 "copy, x:clone(), or use the variant without _",
                 saved_name(n, s->what, text, sizeof text), lt_node_op_name(n),
                 lt_shape_text(s->tensor->ndim, s->tensor->shape), lt_node_op_name(n),
                 writer_name(s->tensor->storage, writer, sizeof writer),
                 lt_tensor_version(s->tensor), s->version);
}

/* Returns a saved tensor; with create_graph an alias with the edge of the original, so that the
 * gradient can be differentiated. Belongs to the scope or to the node. Fails when the tensor was
 * changed in place since. */
static lt_Tensor *unpack(lt_Node *n, const lt_Saved *s) {
  lt_Tensor *t = s->packed ? lt_scope_own(s->fns->unpack(s->packed)) : s->tensor;
  if (!t) return NULL;
  if (!s->packed && lt_tensor_version(t) != s->version) {
    changed_since(n, s);
    return NULL;
  }
  if (lt_thread()->grad_off) return t;
  lt_Edge own = {n, NULL, -1 - s->what};
  const lt_Edge *edge = s->what >= 0 ? &n->input[s->what].edge : &own;
  if (s->what < -1 && lt_gradients[n->op].kind == LT_ROW_FIRST) return t;
  if (!lt_edge_leads(edge) || !lt_dtype_has_gradient(t->dtype)) return t;
  if (s->what == -1 && n->extra) return lt_slices_result(n->extra, t);
  return lt_scope_own(lt_alias_on(t, edge));
}

/* Stores an unpacked input in the argument that it belongs to. `list` has room for the tensors of
 * lists. */
static void place(lt_Grad *g, int what, lt_Tensor *t, lt_Tensor **list) {
  const lt_Node *n = g->node;
  for (int i = 0; i < n->nargs; i++) {
    int first = n->slot[i];
    if (first < 0) continue;
    if (n->arg[i].kind == LT_ARG_TENSOR && first == what) g->arg[i].tensor = t;
    if (n->arg[i].kind == LT_ARG_TENSORS && what >= first && what < first + n->arg[i].count) {
      list[what] = t;
      g->arg[i].tensors = list + first;
    }
  }
}

/* Unpacks all saved tensors into the arguments and results of g. */
static bool unpack_all(lt_Grad *g, lt_Tensor **list) {
  lt_Node *n = g->node;
  memcpy(g->arg, n->arg, sizeof *n->arg * (size_t)n->nargs);
  for (int r = 0; r < LT_MAX_OUT; r++) g->result[r] = NULL;
  for (int i = 0; i < n->nsaved; i++) {
    lt_Tensor *t = unpack(n, &n->saved[i]);
    if (!t) return false;
    if (n->saved[i].what < 0)
      g->result[-1 - n->saved[i].what] = t;
    else
      place(g, n->saved[i].what, t, list);
  }
  return true;
}

/* ---- fitting a gradient to its input --------------------------------------------------------- */

/* Sums a gradient over the dimensions in which its input was broadcast. */
static lt_Tensor *sum_to(lt_Tensor *grad, const lt_Input *in, const char *op) {
  int64_t dims[LT_MAX_DIMS];
  int lead = grad->ndim - in->ndim, count = 0;
  bool fits = lead >= 0;
  for (int i = 0; fits && i < grad->ndim; i++) {
    int64_t want = i < lead ? 1 : in->shape[i - lead];
    if (i < lead || (want == 1 && grad->shape[i] != 1))
      dims[count++] = i;
    else
      fits = want == grad->shape[i];
  }
  if (!fits) {
    lt_fail("cannot use the gradient of %s: it has the shape %s, the input has %s", op,
            lt_shape_text(grad->ndim, grad->shape), lt_shape_text(in->ndim, in->shape));
    return NULL;
  }
  lt_Tensor *t = count ? lt_do(sum, LT_ARG(grad), LT_INTS(dims, count), LT_ARG((bool)true)) : grad;
  return lead ? lt_do(view, LT_ARG(t), LT_INTS(in->shape, in->ndim)) : t;
}

lt_Tensor *lt_grad_fit(lt_Tensor *grad, const lt_Input *in, const char *op) {
  if (lt_dtype_is_complex(grad->dtype) && !lt_dtype_is_complex(in->dtype)) {
    grad = lt_do(real, LT_ARG(grad));
    if (!grad) return NULL;
  }
  if (!lt_shape_equal(grad->ndim, grad->shape, in->ndim, in->shape)) grad = sum_to(grad, in, op);
  if (!grad) return NULL;
  if (grad->dtype == in->dtype && lt_device_equal(lt_tensor_device(grad), in->device)) return grad;
  return lt_do(_to_copy, LT_ARG(grad), lt_arg_device(in->device), lt_arg_dtype(in->dtype),
               LT_ARG((bool)false));
}

/* ---- running --------------------------------------------------------------------------------- */

/* Returns zeros, the gradient of an input to which the function assigns none. So every input that
 * was used gets a gradient, and only an unused input gets none. */
static lt_Tensor *zeros_for(const lt_Input *in) {
  return lt_do(zeros, LT_INTS(in->shape, in->ndim), lt_arg_dtype(in->dtype),
               lt_arg_device(in->device));
}

/* Returns true when the gradient function is that of a holomorphic op, on complex numbers. Of
 * views, copies and ops by parts the derivative is real: they need no conjugation. */
static bool is_holomorphic(const lt_Grad *g) {
  const lt_OpInfo *info = &lt_ops[g->node->op];
  return g->grad && lt_dtype_is_complex(g->grad->dtype) && info->kind != LT_KIND_VIEW &&
         !lt_gradients[g->node->op].conjugates &&
         !(info->traits & (LT_TRAIT_COPY | LT_TRAIT_PARTS | LT_TRAIT_TRANSFER));
}

/* Runs the gradient function of the row. For a loss L and a holomorphic f(z), the gradient is grad
 * * conj(f'(z)), which is the conjugate of conj(grad) * f'(z), the formula for real numbers. */
static void run_function(lt_Grad *g) {
  if (!lt_gradients[g->node->op].function) return;
  bool conjugated = is_holomorphic(g);
  lt_Tensor *const *given = g->grads;
  lt_Tensor *grads[LT_MAX_OUT] = {NULL};
  for (int i = 0; conjugated && i < g->node->nout && i < LT_MAX_OUT; i++) {
    grads[i] = given[i] ? lt_do(conj, LT_ARG(given[i])) : NULL;
    g->failed |= given[i] && !grads[i];
    if (given[i] == g->grad) g->grad = grads[i];
  }
  if (conjugated) g->grads = grads;
  if (!g->failed) lt_gradients[g->node->op].function(g);
  for (int i = 0; conjugated && !g->failed && i < g->node->ninputs; i++) {
    if (!g->in[i] || !lt_dtype_is_complex(g->in[i]->dtype)) continue;
    g->in[i] = lt_do(conj, LT_ARG(g->in[i]));
    g->failed |= !g->in[i];
  }
  g->grads = given;
}

/* Runs the gradient function of the op's row, and fits its gradients to the inputs. */
static bool run_row(lt_Grad *g) {
  lt_Node *n = g->node;
  lt_Thread *th = lt_thread();
  run_function(g);
  bool ok = !g->failed;
  th->backward_copy = (lt_ops[n->op].traits & LT_TRAIT_COPY) != 0;
  for (int i = 0; ok && i < n->ninputs; i++) {
    if (!g->want[i]) continue;
    g->in[i] = g->in[i] ? lt_grad_fit(g->in[i], &n->input[i], lt_node_op_name(n))
                        : zeros_for(&n->input[i]);
    ok = g->in[i] != NULL;
  }
  th->backward_copy = false;
  return ok;
}

/* Runs the gradient of a node of an op. */
static bool apply_op(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor *sum,
                     lt_Tensor **in) {
  lt_Grad g = {.node = n, .grads = grads, .want = want, .sum = sum, .in = in};
  for (int i = 0; i < n->nout && !g.grad; i++) g.grad = grads[i];
  for (int i = 0; i < n->ninputs; i++) in[i] = NULL;
  lt_Tensor **list = NULL;
  for (int i = 0; i < n->nargs; i++)
    if (n->arg[i].kind == LT_ARG_TENSORS && n->nsaved && !list) {
      list = calloc((size_t)n->ninputs, sizeof *list);
      if (!list) return lt_fail_memory();
    }
  size_t mark = lt_scope_open();
  bool ok = unpack_all(&g, list) && run_row(&g);
  for (int i = 0; i < n->ninputs; i++) in[i] = ok ? lt_retain(in[i]) : NULL;
  lt_scope_close(mark, NULL);
  free(list);
  return ok;
}

bool lt_node_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor *sum,
                   lt_Tensor **in) {
  if (n->freed)
    return lt_fail("cannot go through the graph a second time: an earlier backward freed it (at "
                   "%s)\nhint: loss:backward{retain_graph = true} the first time",
                   lt_node_op_name(n));
  bool ok = n->kind == LT_NODE_SLICES   ? lt_slices_apply(n, grads, want, in)
            : n->kind == LT_NODE_CUSTOM ? lt_custom_apply(n, grads, want, in)
                                        : apply_op(n, grads, want, sum, in);
  return n->where ? lt_anomaly_check(n, ok, in) : ok;
}
