/* custom.c: differentiable functions of the host as nodes of the graph. The host's backward is
 * invoked with gradients off, or on with create_graph. */
#include "autograd.h"

void lt_custom_release(lt_Custom *custom) {
  if (custom->released) return;
  custom->released = true;
  if (custom->function.release) custom->function.release(custom->function.context);
}

void lt_custom_free(lt_Custom *custom) {
  if (custom->function.forget) custom->function.forget(custom->function.context);
  free((char *)custom->function.name);
  free(custom);
}

/* Copies f, except `forget`, which is set when nothing can fail any more: on failure the context
 * stays the caller's. */
static lt_Custom *custom_new(const lt_CustomFunction *f) {
  lt_Custom *c = calloc(1, sizeof *c);
  size_t size = strlen(f->name) + 1;
  char *name = malloc(size);
  if (!c || !name) {
    free(c);
    free(name);
    return lt_error_memory("%s: out of memory", f->name);
  }
  memcpy(name, f->name, size);
  c->function = *f;
  c->function.name = name;
  c->function.forget = NULL; /* set when nothing can fail any more */
  return c;
}

/* Creates the node of f with the edges of its inputs. */
static lt_Node *custom_node(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                            int noutputs) {
  size_t words = 0;
  int64_t *w;
  for (int i = 0; i < ninputs; i++)
    if (inputs[i]) words += (size_t)inputs[i]->ndim;
  lt_Node *n = lt_node_new(LT_NODE_CUSTOM, ninputs, 0, 0, words, 0, &w, NULL);
  if (!n) return NULL;
  n->nout = (uint16_t)noutputs;
  n->extra = custom_new(f);
  bool ok = n->extra != NULL;
  for (int i = 0; ok && i < ninputs; i++) {
    if (!inputs[i]) continue;
    lt_node_set_input(n, i, inputs[i], false, &w);
    ok = lt_edge_of(inputs[i], &n->input[i].edge);
    if (!n->stream) n->stream = lt_stream_of(inputs[i]);
  }
  if (ok) return n;
  lt_node_release(n);
  return NULL;
}

/* Returns true when t is one of the inputs. */
static bool is_input(const lt_Tensor *t, int ninputs, lt_Tensor *const *inputs) {
  for (int i = 0; i < ninputs; i++)
    if (inputs[i] == t) return true;
  return false;
}

/* Checks that autograd allows the function to change this input in place. */
static bool check_changed(const char *name, const lt_Tensor *t) {
  const char *reason = t->requires_grad && lt_tensor_is_leaf(t)
                           ? "it is a leaf that requires grad\nhint: x:clone()"
                       : lt_view_base(t) ? "it is a view\nhint: x:clone()"
                                         : NULL;
  if (reason) lt_error_set("%s: cannot change an input in place: %s", name, reason);
  return !reason;
}

/* Replaces an output that is an input, a view, or a result of another op by an alias, so that it
 * can have its own grad_fn. */
static bool own_output(lt_Tensor **t, int ninputs, lt_Tensor *const *inputs) {
  bool own = !(*t)->requires_grad &&
             (!(*t)->meta || (!(*t)->meta->base && !lt_edge_leads(&(*t)->meta->edge)));
  if (own && !is_input(*t, ninputs, inputs)) return true;
  lt_Tensor *alias = lt_alias(*t);
  if (!alias) return false;
  lt_release(*t);
  *t = alias;
  return true;
}

bool lt_autograd_custom(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                        int noutputs, lt_Tensor **outputs) {
  return lt_autograd_custom_changed(f, ninputs, inputs, noutputs, outputs, NULL);
}

bool lt_autograd_custom_changed(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                                int noutputs, lt_Tensor **outputs, const bool *changed) {
  bool required = false;
  lt_Arg in = LT_TENSORS(inputs, ninputs), out = LT_TENSORS(outputs, noutputs);
  if (!lt_arg_usable(&in, "inputs") || !lt_arg_usable(&out, "results")) return false;
  for (int i = 0; lt_grad_enabled() && !lt_inference_enabled() && i < ninputs; i++)
    required = required || (inputs[i] && lt_tensor_needs_grad(inputs[i]));
  if (!required) {
    if (f->forget) f->forget(f->context);
    return true;
  }
  if (noutputs > UINT16_MAX) {
    lt_error_set("%s: expected at most %d results, got more", f->name, UINT16_MAX);
    return false;
  }
  lt_Node *n = custom_node(f, ninputs, inputs, noutputs);
  bool ok = n != NULL;
  for (int i = 0; ok && i < noutputs; i++) {
    if (!outputs[i] || !lt_dtype_has_gradient(outputs[i]->dtype)) continue;
    bool in_place = changed && changed[i] && is_input(outputs[i], ninputs, inputs);
    ok = (in_place ? check_changed(f->name, outputs[i])
                   : own_output(&outputs[i], ninputs, inputs)) &&
         lt_meta_of(outputs[i]);
  }
  if (!ok) {
    lt_node_release(n);
    return false;
  }
  for (int i = 0; i < noutputs; i++) {
    if (!outputs[i] || !lt_dtype_has_gradient(outputs[i]->dtype)) continue;
    if (changed && changed[i] && is_input(outputs[i], ninputs, inputs)) {
      lt_history_set(outputs[i], lt_node_retain(n), i);
      continue;
    }
    lt_meta_set_edge(outputs[i]->meta, (lt_Edge){lt_node_retain(n), NULL, i});
    outputs[i]->requires_grad = true;
  }
  ((lt_Custom *)n->extra)->function.forget = f->forget;
  lt_node_release(n);
  return true;
}

void lt_autograd_custom_undo(const void *context, int noutputs, lt_Tensor *const *outputs) {
  for (int i = 0; i < noutputs; i++) {
    lt_AutogradMeta *m = outputs[i] ? outputs[i]->meta : NULL;
    const lt_Node *n = m ? m->edge.node : NULL;
    if (!n || n->kind != LT_NODE_CUSTOM || ((lt_Custom *)n->extra)->function.context != context)
      continue;
    outputs[i]->requires_grad = false;
    lt_meta_set_edge(m, (lt_Edge){NULL, NULL, 0});
  }
}

/* Each gradient must fit its input; the message counts inputs from 1. */
static bool fit_all(lt_Node *n, const bool *want, lt_Tensor **in) {
  char text[160];
  bool ok = true;
  size_t mark = lt_scope_open();
  for (int i = 0; i < n->ninputs; i++) {
    lt_Tensor *given = lt_scope_own(in[i]);
    in[i] = NULL;
    if (!given || !want[i] || !ok) continue;
    snprintf(text, sizeof text, "input %d of %.100s", i + 1, lt_node_op_name(n));
    in[i] = lt_retain(lt_grad_fit(given, &n->input[i], text));
    ok = in[i] != NULL;
  }
  lt_scope_close(mark, NULL);
  return ok;
}

bool lt_custom_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in) {
  lt_Custom *c = n->extra;
  lt_Thread *th = lt_thread();
  const char *op = th->user_op;
  for (int i = 0; i < n->ninputs; i++) in[i] = NULL;
  th->user_op = NULL;
  bool ok = c->function.backward(c->function.context, n->nout, grads, n->ninputs, in);
  th->user_op = op;
  ok = ok && fit_all(n, want, in);
  for (int i = 0; !ok && i < n->ninputs; i++) {
    lt_release(in[i]);
    in[i] = NULL;
  }
  return ok;
}
