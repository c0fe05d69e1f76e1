/* record.c: records a call in the graph: whether it must be recorded, and what is saved.
 *
 * A call is recorded when an argument requires grad, gradients are enabled, and the op has a
 * gradient. The node of an in-place op is created before the op runs (with copies of the values
 * that the op is about to overwrite). Invariant: after the run nothing can fail any more. */
#include "autograd.h"
#include "../opids.h"
#include "../recorder.h"

bool lt_op_has_gradient(lt_OpId op) {
  return lt_gradients[op].function && lt_gradients[op].kind != LT_ROW_NONE;
}

/* ---- whether a call is recorded -------------------------------------------------------------- */

/* Returns true when a tensor of the argument requires grad. */
static inline bool any_requires_grad(const lt_Arg *a) {
  if (a->kind == LT_ARG_TENSOR) return lt_tensor_needs_grad(a->tensor);
  if (a->kind != LT_ARG_TENSORS) return false;
  for (int k = 0; k < a->count; k++)
    if (a->tensors[k] && lt_tensor_needs_grad(a->tensors[k])) return true;
  return false;
}

bool lt_autograd_required(const lt_Call *c) {
  const lt_Thread *th = lt_thread();
  if (th->grad_off || th->inference_on) return false;
  if (c->in_place) {
    /* Overwriting a tensor ends its history even if the op has no gradient. */
    if (!lt_dtype_has_gradient(c->arg[0].tensor->dtype)) return false;
    if (!lt_op_has_gradient(c->op)) return lt_tensor_needs_grad(c->arg[0].tensor);
  } else {
    if (!lt_op_has_gradient(c->op)) return false;
    lt_Dtype result = c->out[0] ? c->out[0]->dtype : c->spec[0].dtype;
    if (!lt_dtype_has_gradient(result)) return false;
  }
  for (int i = 0; i < c->nargs; i++)
    if (any_requires_grad(&c->arg[i])) return true;
  return false;
}

/* ---- creating the node ----------------------------------------------------------------------- */

/* The sizes of a call's node, and what it saves. */
typedef struct Plan {
  int ninputs, nsaved;
  size_t words, bytes;
  unsigned required;       /* bit i: argument i requires grad */
  unsigned kept, kept_out; /* arguments and results to save */
} Plan;

/* Returns what must be saved when the arguments in `required` need a gradient. */
static lt_Keep values_kept(const lt_GradientRow *row, unsigned required) {
  lt_Keep kept = required ? row->keep : 0;
  for (int i = 0; required; required >>= 1, i++)
    if (required & 1) kept |= row->keep_for[i];
  return kept;
}

/* Adds argument i to the plan. */
static void plan_arg(Plan *p, const lt_Arg *a, int i, bool strides) {
  switch (a->kind) {
  case LT_ARG_TENSOR:
    p->ninputs++;
    p->words += (size_t)a->tensor->ndim * (strides ? 2 : 1) + (strides ? 1 : 0);
    break;
  case LT_ARG_TENSORS:
    p->ninputs += a->count;
    for (int k = 0; k < a->count; k++)
      if (a->tensors[k]) p->words += (size_t)a->tensors[k]->ndim;
    break;
  case LT_ARG_INTS:
    p->words += (size_t)a->count;
    return;
  case LT_ARG_STRING:
    p->bytes += strlen(a->string) + 1;
    return;
  default:
    return;
  }
  if (any_requires_grad(a)) p->required |= 1u << i;
}

/* Returns true when strides and offsets of the inputs are saved, too. */
static bool needs_layout(const lt_Call *c) { return (c->info->traits & LT_TRAIT_LAYOUT) != 0; }

/* Computes the plan of a call. */
static Plan plan_call(const lt_Call *c) {
  Plan p = {0};
  for (int i = 0; i < c->nargs; i++) plan_arg(&p, &c->arg[i], i, needs_layout(c));
  lt_Keep kept = values_kept(&lt_gradients[c->op], p.required);
  p.kept = kept & (LT_KEEP_RESULT(0) - 1);
  for (int i = 0; i < c->nargs && p.kept >> i; i++) {
    if (!((p.kept >> i) & 1)) continue;
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR) p.nsaved++;
    if (a->kind == LT_ARG_TENSORS) p.nsaved += a->count;
  }
  for (int r = 0; r < c->nout && r < LT_MAX_OUT; r++)
    if (kept & LT_KEEP_RESULT(r)) {
      p.kept_out |= 1u << r;
      p.nsaved++;
    }
  return p;
}

/* Returns a copy of t. While a recorder runs, the copy of a recorded tensor is a call of the
 * record. */
static lt_Tensor *copy_of(const lt_Tensor *t) {
  if (lt_thread()->recorder && lt_device_equal(lt_tensor_device(t), lt_recording())) {
    bool grad_on = lt_grad_set_enabled(false);
    lt_Tensor *copy = lt_op1(LT_OP_clone, (lt_Arg[]){LT_ARG((lt_Tensor *)t)}, 1);
    lt_grad_set_enabled(grad_on);
    return copy;
  }
  lt_Tensor *copy = lt_empty(t->dtype, lt_tensor_device(t), t->ndim, t->shape);
  if (copy && lt_copy_into(copy, t, false)) return copy;
  lt_release(copy);
  return NULL;
}

/* Returns what is saved of t: an alias, or a copy when the call is about to overwrite t. */
static lt_Tensor *keep_value(const lt_Call *c, lt_Tensor *t) {
  if (t->inference) {
    lt_fail(
        "cannot save a tensor that was created in inference mode for backward\nhint: x:clone()");
    return NULL;
  }
  return c->in_place && t->storage == c->arg[0].tensor->storage ? copy_of(t) : lt_alias(t);
}

/* Appends a saved tensor; `what` is the input's number, or -1 - the result's. */
static bool save(lt_Node *n, int *at, lt_Tensor *value, int what) {
  if (!value) return false;
  lt_Saved *s = &n->saved[(*at)++];
  *s = (lt_Saved){value, lt_tensor_version(value), (int16_t)what, NULL, NULL};
  const lt_PackFns *fns = lt_thread()->pack_fns;
  if (!fns || (what < 0 && n->in_place)) return true; /* in place: the result is not there yet */
  s->packed = fns->pack(lt_thread()->pack_context, value);
  s->fns = fns;
  if (!s->packed) return false;
  lt_release(value);
  s->tensor = NULL;
  return true;
}

void *lt_autograd_pack_by(const lt_PackFns *fns, void *context) {
  lt_Thread *th = lt_thread();
  void *old = th->pack_context;
  th->pack_fns = fns;
  th->pack_context = context;
  return old;
}

/* Stores a tensor argument: its shape, its edge and, if it is kept, its value. */
static bool take_input(lt_Node *n, const lt_Call *c, int input, lt_Tensor *t, bool kept,
                       int64_t **w, int *at) {
  lt_node_set_input(n, input, t, needs_layout(c), w);
  if (!lt_edge_of(t, &n->input[input].edge)) return false;
  return !kept || save(n, at, keep_value(c, t), input);
}

/* Stores argument i; lists and strings are copied into the node. */
static bool take_arg(lt_Node *n, const lt_Call *c, int i, const Plan *p, int *input, int64_t **w,
                     char **b, int *at) {
  const lt_Arg *a = &c->arg[i];
  bool kept = (p->kept >> i) & 1;
  n->arg[i] = *a;
  n->slot[i] = -1;
  switch (a->kind) {
  case LT_ARG_TENSOR:
    n->slot[i] = *input;
    n->arg[i].tensor = NULL;
    return take_input(n, c, (*input)++, a->tensor, kept, w, at);
  case LT_ARG_TENSORS:
    n->slot[i] = *input;
    n->arg[i].tensors = NULL;
    for (int k = 0; k < a->count; k++, (*input)++)
      if (a->tensors[k] && !take_input(n, c, *input, a->tensors[k], kept, w, at)) return false;
    return true;
  case LT_ARG_INTS:
    if (a->count) memcpy(*w, a->ints, sizeof **w * (size_t)a->count);
    n->arg[i].ints = *w;
    *w += a->count;
    return true;
  case LT_ARG_STRING:
    n->arg[i].string = *b;
    strcpy(*b, a->string);
    *b += strlen(a->string) + 1;
    return true;
  case LT_ARG_GENERATOR:
    n->arg[i] = LT_NIL;
    return true;
  default:
    return true;
  }
}

/* Saves results as aliases, because a result refers to the node: otherwise there would be a
 * cycle. */
static bool take_results(lt_Node *n, const lt_Call *c, unsigned kept, int *at) {
  for (int r = 0; r < c->nout; r++) {
    if (!((kept >> r) & 1)) continue;
    lt_Tensor *t = c->in_place ? c->arg[0].tensor : c->out[r];
    if (!save(n, at, lt_alias(t), -1 - r)) return false;
  }
  return true;
}

/* Creates the node of a call. NULL with an error. */
static lt_Node *node_of_call(const lt_Call *c) {
  Plan p = plan_call(c);
  int64_t *w;
  char *b;
  lt_Node *n = lt_node_new(LT_NODE_OP, p.ninputs, p.nsaved, c->nargs, p.words, p.bytes, &w, &b);
  if (!n) return NULL;
  n->op = (uint16_t)c->op;
  n->in_place = c->in_place;
  n->nout = (uint16_t)(c->nout ? c->nout : 1);
  n->stream = lt_stream_current(c->device);
  int input = 0, at = 0;
  bool ok = true;
  for (int i = 0; ok && i < c->nargs; i++) ok = take_arg(n, c, i, &p, &input, &w, &b, &at);
  ok = ok && take_results(n, c, p.kept_out, &at);
  n->nsaved = at; /* fewer than planned if lists contain NULL */
  if (ok) return n;
  lt_node_release(n);
  return NULL;
}

/* ---- after a run ----------------------------------------------------------------------------- */

/* Makes the node the grad_fn of a result. */
static bool join(lt_Tensor *t, lt_Node *n, int output) {
  lt_AutogradMeta *m = lt_meta_of(t);
  if (!m) return false;
  lt_meta_set_edge(m, (lt_Edge){lt_node_retain(n), NULL, output});
  t->requires_grad = true;
  return true;
}

bool lt_autograd_record(lt_Call *c) {
  lt_Node *n = node_of_call(c);
  if (!n) return false;
  int results = lt_gradients[c->op].kind == LT_ROW_FIRST ? 1 : c->nout ? c->nout : 1;
  bool ok = true;
  for (int i = 0; ok && i < results; i++)
    if (lt_dtype_has_gradient(c->out[i]->dtype)) ok = join(c->out[i], n, i);
  lt_node_release(n);
  return ok;
}

/* ---- in place -------------------------------------------------------------------------------- */

/* Returns true when a write into a view changes a base that requires grad, even if the view does
 * not: it was created under no_grad, or before the base required grad. */
static bool changes_base(const lt_Tensor *base) {
  return base && base->requires_grad && lt_grad_enabled() && !lt_inference_enabled();
}

/* Checks the rules of leaves, views and inference mode for an in-place op. */
static bool may_write(const lt_Call *c) {
  lt_Tensor *self = c->arg[0].tensor;
  if (self->inference && !lt_inference_enabled())
    return lt_fail(
        "cannot change self in place: it was created in inference mode\nhint: self:clone()");
  lt_Tensor *base = lt_view_base(self);
  if (!lt_autograd_required(c) && !changes_base(base)) return true;
  if (self->requires_grad && lt_tensor_is_leaf(self))
    return lt_fail(
        "cannot change a leaf that requires grad in place: autograd could not restore its saved "
        "value\nhint: lt.no_grad(function() ... end), or the variant without _");
  if (!base) return true;
  /* The leaf is the base, or another view of the base, of which self is a view. */
  if ((base->requires_grad || self->requires_grad) && lt_tensor_is_leaf(base))
    return lt_fail("cannot change self in place: it is a view of a leaf that requires grad\nhint: "
                   "lt.no_grad(function() ... end), or a clone of the leaf");
  if (self->meta->no_grad_view)
    return lt_fail("cannot change self in place: it is a view that was created under "
                   "no_grad\nhint: create the view outside no_grad, or change it inside");
  return true;
}

const char *lt_autograd_refuses(const lt_Tensor *t) {
  if (t->inference && !lt_inference_enabled())
    return "it was created in inference mode\nhint: x:clone()";
  if ((t->requires_grad && lt_grad_enabled() && !lt_inference_enabled()) ||
      changes_base(lt_view_base(t)))
    return "it requires grad, and autograd does not record this op\nhint: lt.no_grad(function() "
           "... end)";
  return NULL;
}

bool lt_autograd_check_in_place(const lt_Call *c) {
  if (!may_write(c)) return false;
  const char *op = lt_thread()->user_op;
  c->arg[0].tensor->storage->writer = op ? op : c->info->name;
  return true;
}

bool lt_autograd_before_in_place(lt_Call *c, void **state) {
  lt_Tensor *self = c->arg[0].tensor, *base = lt_view_base(self);
  lt_Node *n = node_of_call(c);
  if (n && base) n = lt_slices_new(self, base, n);
  if (n && !lt_meta_of(base ? base : self)) {
    lt_node_release(n);
    n = NULL;
  }
  *state = n;
  return n != NULL;
}

void lt_autograd_drop_in_place(void *state) { lt_node_release(state); }

/* Sets the versions of saved results after an in-place op: they share self's storage, which has
 * been written. */
static void update_versions(lt_Node *n) {
  for (int i = 0; i < n->nsaved; i++)
    if (n->saved[i].what < 0 && n->saved[i].tensor)
      n->saved[i].version = lt_tensor_version(n->saved[i].tensor);
}

bool lt_autograd_record_in_place(lt_Call *c, void *state) {
  lt_Node *n = state;
  lt_Tensor *self = c->arg[0].tensor;
  lt_Tensor *target = n->kind == LT_NODE_SLICES ? lt_view_base(self) : self;
  update_versions(n->kind == LT_NODE_SLICES ? ((lt_Slices *)n->extra)->inner : n);
  lt_history_set(target, n, 0);
  return true;
}
