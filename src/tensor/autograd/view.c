/* view.c: views and in-place changes of them.
 *
 * A view refers to its base, the tensor of which it is directly or indirectly a view. A recorded op
 * that changes a view in place changes the history of the base: the base's edge becomes a slices
 * node, which runs the op's gradient on the part of the base's gradient that the view covers. Then
 * every view of the base is out of date: `seen` of the view differs from `changes` of the base. It
 * gets a new edge (an as_strided of the base) when it is used next. This includes a view that was
 * made a leaf: as in PyTorch, it is a result of its base from then on. */
#include "autograd.h"
#include "../opids.h"

lt_Tensor *lt_view_base(const lt_Tensor *t) {
  lt_Tensor *base = t->meta ? t->meta->base : NULL;
  return base && base->storage == t->storage ? base : NULL; /* set_data and free end a view */
}

/* Creates the node of base:as_strided(geometry of t), as if that had just been called. */
static lt_Node *as_strided_node(const lt_Tensor *t, lt_Tensor *base) {
  lt_Arg args[] = {lt_arg_tensor(base), LT_INTS(t->shape, t->ndim), LT_INTS(t->strides, t->ndim),
                   lt_arg_int(t->offset)};
  size_t words = (size_t)(2 * base->ndim + 1 + 2 * t->ndim);
  int64_t *w;
  lt_Node *n = lt_node_new(LT_NODE_OP, 1, 0, 4, words, 0, &w, NULL);
  if (!n) return NULL;
  n->op = LT_OP_as_strided;
  n->nout = 1;
  n->stream = lt_stream_of(base);
  lt_node_set_input(n, 0, base, true, &w);
  if (!lt_edge_of(base, &n->input[0].edge)) {
    lt_node_release(n);
    return NULL;
  }
  for (int i = 0; i < 4; i++) {
    n->arg[i] = args[i];
    n->slot[i] = i == 0 ? 0 : -1;
  }
  n->arg[0].tensor = NULL;
  for (int i = 1; i < 3; i++) {
    memcpy(w, args[i].ints, sizeof *w * (size_t)t->ndim);
    n->arg[i].ints = w;
    w += t->ndim;
  }
  return n;
}

bool lt_view_refresh(lt_Tensor *t) {
  lt_AutogradMeta *m = t->meta;
  lt_Tensor *base = lt_view_base(t);
  if (!base || m->no_grad_view || !base->requires_grad || !base->meta) return true;
  if (m->seen == base->meta->changes) return true;
  lt_Node *n = as_strided_node(t, base);
  if (!n) return false;
  lt_meta_set_edge(m, (lt_Edge){n, NULL, 0});
  m->seen = base->meta->changes;
  t->requires_grad = true;
  return true;
}

bool lt_edge_of(lt_Tensor *t, lt_Edge *edge) {
  *edge = (lt_Edge){NULL, NULL, 0};
  if (t->meta && t->meta->base && !lt_view_refresh(t)) return false;
  if (!t->requires_grad) return true;
  if (t->meta && lt_edge_leads(&t->meta->edge))
    *edge = lt_edge_copy(&t->meta->edge);
  else
    edge->leaf = lt_retain(t);
  return true;
}

/* ---- history --------------------------------------------------------------------------------- */

/* The nodes that a walk over the graph has reached, as a list through `dead`, which is not used by
 * nodes with references. The last node points to itself. */
typedef struct Walk {
  lt_Node *first, *last;
} Walk;

/* Appends a node to the list unless it is in it. */
static void reach(Walk *w, lt_Node *n) {
  if (!n || n->dead) return;
  if (w->last)
    w->last->dead = n;
  else
    w->first = n;
  w->last = n->dead = n;
}

/* Replaces the target of an edge that refers to t, or to a view of it, as a leaf by *moved, which
 * is created on first use: an empty leaf for which a gradient is an error. When memory is out, the
 * cycle stays. */
static void replace_leaf(lt_Edge *e, const lt_Tensor *t, lt_Tensor **moved) {
  lt_Tensor *leaf = e->leaf;
  if (!leaf || (leaf != t && lt_view_base(leaf) != t)) return;
  if (!*moved) *moved = lt_empty(leaf->dtype, lt_tensor_device(t), 1, (int64_t[]){0});
  if (!*moved || !lt_meta_of(*moved)) return;
  (*moved)->requires_grad = true;
  (*moved)->meta->moved = true;
  e->leaf = lt_retain(*moved);
  lt_release(leaf);
}

/* Replaces t in all edges after n that refer to it as a leaf. */
static void break_cycles(lt_Node *n, const lt_Tensor *t) {
  Walk w = {NULL, NULL};
  lt_Tensor *moved = NULL;
  reach(&w, n);
  for (lt_Node *at = w.first;; at = at->dead) {
    if (at->kind == LT_NODE_SLICES) reach(&w, ((lt_Slices *)at->extra)->inner);
    for (int i = 0; i < at->ninputs; i++) {
      replace_leaf(&at->input[i].edge, t, &moved);
      reach(&w, at->input[i].edge.node);
    }
    if (at->dead == at) break;
  }
  for (lt_Node *at = w.first, *next; at; at = next) {
    next = at->dead == at ? NULL : at->dead;
    at->dead = NULL;
  }
  lt_release(moved);
}

void lt_history_set(lt_Tensor *t, lt_Node *n, int output) {
  if (t->meta->had_leaves) break_cycles(n, t);
  lt_meta_set_edge(t->meta, (lt_Edge){n, NULL, output});
  t->requires_grad = true;
  t->meta->changes++;
}

/* Views of which no gradient can be required do not need their base. */
bool lt_autograd_note_view(lt_Call *c) {
  lt_Tensor *view = c->out[0], *self = lt_in(c, 0);
  if (view == self || !lt_op_has_gradient(c->op) || !lt_dtype_has_gradient(view->dtype))
    return true;
  if (lt_thread()->inference_on || self->inference) return true;
  lt_Tensor *base = lt_view_base(self);
  if (base && !lt_view_refresh(self)) return false;
  if (!base) base = self;
  lt_AutogradMeta *m = lt_meta_of(view);
  if (!m) return false;
  m->base = lt_retain(base);
  m->seen = base->meta ? base->meta->changes : 0;
  m->no_grad_view = lt_thread()->grad_off || (base != self && self->meta->no_grad_view);
  return true;
}

bool lt_tensor_set_view(lt_Tensor *t, const lt_Tensor *view, const char *op) {
  if (view->storage != t->storage || view->dtype != t->dtype) {
    lt_error_set("%s: cannot take over the geometry of a tensor that is no view of self", op);
    return false;
  }
  if (lt_tensor_in_use(t)) {
    lt_error_set("%s: cannot change self in place: a running call uses the tensor", op);
    return false;
  }
  if (t->requires_grad && lt_tensor_is_leaf(t) && lt_grad_enabled()) {
    lt_error_set(
        "%s: cannot change a leaf that requires grad in place\nhint: lt.no_grad(function() "
        "... end), or the variant without _",
        op);
    return false;
  }
  if (view->requires_grad && view->meta && lt_edge_leads(&view->meta->edge)) {
    if (!lt_meta_of(t)) return false;
    lt_meta_set_edge(t->meta, lt_edge_copy(&view->meta->edge));
  }
  t->ndim = view->ndim;
  t->offset = view->offset;
  t->numel = view->numel;
  memcpy(t->shape, view->shape, sizeof t->shape[0] * (size_t)view->ndim);
  memcpy(t->strides, view->strides, sizeof t->strides[0] * (size_t)view->ndim);
  return true;
}

/* ---- the slices node ------------------------------------------------------------------------- */

lt_Node *lt_slices_new(lt_Tensor *view, lt_Tensor *base, lt_Node *inner) {
  int ninputs = inner->ninputs;
  int64_t *w;
  if (lt_dtype_size(view->dtype) != lt_dtype_size(base->dtype)) {
    lt_node_release(inner);
    lt_fail("cannot record a change in place of a \"%s\" view of a \"%s\" tensor",
            lt_dtype_name(view->dtype), lt_dtype_name(base->dtype));
    return NULL;
  }
  lt_Node *n = lt_node_new(LT_NODE_SLICES, ninputs, 0, 0, (size_t)base->ndim, 0, &w, NULL);
  lt_Slices *s = n ? malloc(sizeof *s) : NULL;
  if (!s) {
    if (n) lt_fail_memory();
    lt_node_release(n);
    lt_node_release(inner);
    return NULL;
  }
  n->nout = 1;
  n->in_place = true;
  n->extra = s;
  n->stream = inner->stream;
  s->inner = inner;
  inner->extra = n;
  s->base_ndim = base->ndim;
  s->view_ndim = view->ndim;
  s->first = view->offset - base->offset;
  memcpy(s->base_shape, base->shape, sizeof *base->shape * (size_t)base->ndim);
  memcpy(s->base_strides, base->strides, sizeof *base->strides * (size_t)base->ndim);
  memcpy(s->view_shape, view->shape, sizeof *view->shape * (size_t)view->ndim);
  memcpy(s->view_strides, view->strides, sizeof *view->strides * (size_t)view->ndim);
  lt_node_set_input(n, 0, base, false, &w);
  if (!lt_edge_of(base, &n->input[0].edge)) {
    lt_node_release(n);
    return NULL;
  }
  for (int i = 1; i < ninputs; i++) {
    n->input[i] = inner->input[i];
    n->input[i].edge = lt_edge_copy(&inner->input[i].edge);
  }
  return n;
}

/* Extends the range [*low, *high) by the elements that a geometry covers. */
static void widen(int64_t first, int ndim, const int64_t *shape, const int64_t *strides,
                  int64_t *low, int64_t *high) {
  int64_t last = first + 1;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] == 0) return;
    if (strides[i] > 0) last += (shape[i] - 1) * strides[i];
  }
  if (first < *low) *low = first;
  if (last > *high) *high = last;
}

/* Returns grad in memory with the base's layout, and the part of it that the view covers in *slice.
 * Both belong to the scope. */
static lt_Tensor *lay_out(const lt_Slices *s, lt_Tensor *grad, lt_Tensor **slice) {
  int64_t low = 0, high = 0;
  widen(0, s->base_ndim, s->base_shape, s->base_strides, &low, &high);
  widen(s->first, s->view_ndim, s->view_shape, s->view_strides, &low, &high);
  int64_t room = high - low;
  lt_Tensor *memory = lt_do(zeros, LT_INTS(&room, 1), lt_arg_dtype(grad->dtype),
                            lt_arg_device(lt_tensor_device(grad)));
  lt_Tensor *whole = lt_do(as_strided, LT_ARG(memory), LT_INTS(s->base_shape, s->base_ndim),
                           LT_INTS(s->base_strides, s->base_ndim), LT_ARG(-low));
  whole = lt_do_in_place(_copy, LT_ARG(whole), LT_ARG(grad));
  *slice = lt_do(as_strided, LT_ARG(memory), LT_INTS(s->view_shape, s->view_ndim),
                 LT_INTS(s->view_strides, s->view_ndim), LT_ARG(s->first - low));
  return *slice ? whole : NULL;
}

lt_Tensor *lt_slices_result(lt_Node *n, const lt_Tensor *t) {
  const lt_Slices *s = n->extra;
  lt_Tensor *memory = lt_scope_own(lt_tensor_on(t->storage, t->dtype, 0, s->base_ndim,
                                                s->base_shape, s->base_strides)),
            *view = lt_scope_own(lt_tensor_on(t->storage, t->dtype, s->first, s->view_ndim,
                                              s->view_shape, s->view_strides));
  lt_Tensor *base = memory ? lt_scope_own(lt_alias_on(memory, &(lt_Edge){n, NULL, 0})) : NULL;
  lt_Node *part = base && view ? as_strided_node(view, base) : NULL;
  lt_Tensor *result = part ? lt_scope_own(lt_alias_on(t, &(lt_Edge){part, NULL, 0})) : NULL;
  lt_node_release(part);
  return result;
}

/* Runs the inner node's gradient on the view's part of the base's gradient, and replaces that part
 * by the result. */
static bool slices_run(lt_Node *n, lt_Tensor *grad, const bool *want, lt_Tensor **in) {
  const lt_Slices *s = n->extra;
  lt_Tensor *slice = NULL;
  lt_Tensor *whole = lay_out(s, grad, &slice);
  lt_Tensor *part = lt_do(clone, LT_ARG(slice));
  if (!whole || !part || !lt_node_apply(s->inner, &part, want, NULL, in)) return false;
  if (!want[0]) return true;
  if (!in[0])
    slice = lt_do_in_place(fill, LT_ARG(slice), LT_ARG(lt_scalar_int(0)));
  else
    slice = lt_do_in_place(_copy, LT_ARG(slice), LT_ARG(in[0]));
  lt_release(in[0]);
  in[0] = slice ? lt_retain(whole) : NULL;
  return slice != NULL;
}

bool lt_slices_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in) {
  size_t mark = lt_scope_open();
  for (int i = 0; i < n->ninputs; i++) in[i] = NULL;
  bool ok = slices_run(n, grads[0], want, in);
  for (int i = 0; !ok && i < n->ninputs; i++) {
    lt_release(in[i]);
    in[i] = NULL;
  }
  lt_scope_close(mark, NULL);
  return ok;
}
