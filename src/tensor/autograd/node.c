/* node.c: nodes, edges, and the autograd data of tensors: meta, requires_grad, grad.
 *
 * A node is one block of memory: the struct, inputs, saved tensors, arguments, slots, then the
 * shapes and lists to which they point. When the last reference to a node is removed, the nodes
 * that only it refers to are freed through a list in the thread's state, never by recursion: a
 * graph may be a million nodes deep. */
#include "../refs.h"
#include "autograd.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

enum { POOLED = 512 }; /* bytes of the nodes that come from the thread's pool: most do */

lt_Node *lt_node_new(lt_NodeKind kind, int ninputs, int nsaved, int nargs, size_t words,
                     size_t bytes, int64_t **words_at, char **bytes_at) {
  size_t ni = (size_t)ninputs, ns = (size_t)nsaved, na = (size_t)nargs;
  size_t fixed =
      sizeof(lt_Node) + ni * sizeof(lt_Input) + ns * sizeof(lt_Saved) + na * sizeof(lt_Arg);
  size_t size = fixed + words * sizeof(int64_t) + na * sizeof(int) + bytes;
  bool pooled = size <= POOLED;
  lt_Node *n = pooled ? lt_pool_take(LT_POOL_NODE, POOLED) : malloc(size);
  if (!n) {
    lt_fail_memory();
    return NULL;
  }
  memset(n, 0, sizeof *n + ni * sizeof *n->input + ns * sizeof *n->saved);
  n->pooled = pooled;
  atomic_init(&n->refs, 1);
  n->kind = (uint8_t)kind;
  n->nargs = (uint8_t)nargs;
  n->ninputs = ninputs;
  n->nsaved = nsaved;
  n->sequence = ++lt_thread()->node_sequence;
  n->input = (lt_Input *)(n + 1);
  n->saved = (lt_Saved *)(n->input + ninputs);
  n->arg = (lt_Arg *)(n->saved + nsaved);
  int64_t *w = (int64_t *)(n->arg + nargs);
  n->slot = (int *)(w + words);
  if (words_at) *words_at = w;
  if (bytes_at) *bytes_at = (char *)(n->slot + nargs);
  if (__builtin_expect(lt_thread()->anomaly, 0)) lt_anomaly_note(n);
  return n;
}

lt_Node *lt_node_retain(lt_Node *n) {
  if (!n) return NULL;
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  if (n->hooked) lt_hooks_notify_node(n);
  return n;
}

void lt_saved_free(lt_Saved *s) {
  lt_release(s->tensor);
  s->tensor = NULL;
  if (s->packed) s->fns->forget(s->packed);
  s->packed = NULL;
}

void lt_node_free_saved(lt_Node *n) {
  if (n->kind == LT_NODE_SLICES) {
    lt_Slices *s = n->extra;
    lt_node_free_saved(s->inner);
    n->freed = s->inner->freed;
    return;
  }
  if (n->kind == LT_NODE_CUSTOM) {
    n->freed = ((lt_Custom *)n->extra)->function.release != NULL;
    lt_custom_release(n->extra);
    return;
  }
  for (int i = 0; i < n->nsaved; i++) {
    lt_saved_free(&n->saved[i]);
    n->freed = true;
  }
}

/* Frees a node without references. Nodes that this releases are appended to the thread's list. */
static void node_free(lt_Node *n) {
  for (int i = 0; i < n->ninputs; i++) lt_edge_clear(&n->input[i].edge);
  for (int i = 0; i < n->nsaved; i++) lt_saved_free(&n->saved[i]);
  if (n->kind == LT_NODE_SLICES && n->extra) lt_node_release(((lt_Slices *)n->extra)->inner);
  if (n->kind == LT_NODE_SLICES) free(n->extra);
  if (n->kind == LT_NODE_CUSTOM && n->extra) lt_custom_free(n->extra);
  for (lt_AutogradMeta *m = n->retainers; m;) {
    lt_AutogradMeta *next = m->next_retainer;
    m->next_retainer = NULL;
    m = next;
  }
  if (n->hooks) lt_hooks_free_of_node(n->hooks);
  free(n->name);
  free(n->where);
  if (n->pooled)
    lt_pool_give(LT_POOL_NODE, n);
  else
    free(n);
}

void lt_node_release(lt_Node *n) {
  if (!n) return;
  bool hooked = n->hooked; /* read before n may be gone */
  if (lt_refs_drop(&n->refs) != 1) {
    if (hooked) lt_hooks_notify_node(n);
    return;
  }
  lt_Thread *th = lt_thread();
  n->dead = th->dead_node;
  th->dead_node = n;
  if (th->freeing_nodes) return;
  th->freeing_nodes = true;
  while (th->dead_node) {
    lt_Node *next = th->dead_node;
    th->dead_node = next->dead;
    node_free(next);
  }
  th->freeing_nodes = false;
}

void lt_node_set_input(lt_Node *n, int i, const lt_Tensor *t, bool strides, int64_t **words) {
  lt_Input *in = &n->input[i];
  size_t size = sizeof(int64_t) * (size_t)t->ndim;
  in->dtype = t->dtype;
  in->device = lt_tensor_device(t);
  in->ndim = (uint8_t)t->ndim;
  in->transposed = t->ndim >= 2 && t->strides[t->ndim - 2] == 1 && t->strides[t->ndim - 1] != 1;
  in->shape = *words;
  memcpy(*words, t->shape, size);
  *words += t->ndim;
  if (!strides) return;
  in->strides = *words;
  memcpy(*words, t->strides, size);
  (*words)[t->ndim] = t->offset;
  *words += t->ndim + 1;
}

const char *lt_node_op_name(const lt_Node *n) {
  if (n->kind == LT_NODE_SLICES) return lt_node_op_name(((lt_Slices *)n->extra)->inner);
  if (n->kind == LT_NODE_CUSTOM) return ((lt_Custom *)n->extra)->function.name;
  const char *name = lt_ops[n->op].name;
  return name[0] == '_' ? name + 1 : name;
}

/* ---- edges ----------------------------------------------------------------------------------- */

lt_Edge lt_edge_copy(const lt_Edge *e) {
  lt_node_retain(e->node);
  lt_retain(e->leaf);
  return *e;
}

void lt_edge_clear(lt_Edge *e) {
  lt_Edge old = *e;
  *e = (lt_Edge){NULL, NULL, 0};
  lt_node_release(old.node);
  lt_release(old.leaf);
}

/* ---- meta ------------------------------------------------------------------------------------ */

lt_AutogradMeta *lt_meta_of(lt_Tensor *t) {
  if (t->meta) return t->meta;
  lt_AutogradMeta *m = lt_pool_take(LT_POOL_META, sizeof *m);
  if (!m) {
    lt_fail_memory();
    return NULL;
  }
  m->self = t; /* by member: clearing the whole struct takes longer */
  m->grad = m->base = NULL;
  m->edge.node = NULL;
  m->edge.leaf = NULL;
  m->edge.output = 0;
  m->hooks = NULL;
  m->last_hook = 0;
  m->seen = m->changes = 0;
  m->no_grad_view = m->retains_grad = m->had_leaves = m->moved = false;
  m->next_retainer = NULL;
  return t->meta = m;
}

/* Removes a tensor from its node's list of results that retain their grad. */
static void retainer_remove(lt_AutogradMeta *meta) {
  if (!meta->retains_grad || !meta->edge.node) return;
  for (lt_AutogradMeta **at = &meta->edge.node->retainers; *at; at = &(*at)->next_retainer)
    if (*at == meta) {
      *at = meta->next_retainer;
      break;
    }
  meta->next_retainer = NULL;
}

/* Adds a tensor to its node's list of results that retain their grad. */
static void retainer_add(lt_AutogradMeta *meta) {
  if (!meta->retains_grad || !meta->edge.node) return;
  meta->next_retainer = meta->edge.node->retainers;
  meta->edge.node->retainers = meta;
}

void lt_meta_set_edge(lt_AutogradMeta *meta, lt_Edge edge) {
  lt_Edge old = meta->edge;
  retainer_remove(meta);
  if (old.node && old.node->hooked) lt_hooks_detach(old.node, meta);
  meta->edge = edge;
  retainer_add(meta);
  lt_edge_clear(&old);
}

void lt_autograd_meta_free(lt_AutogradMeta *meta) {
  if (!meta) return;
  retainer_remove(meta);
  if (meta->edge.node && meta->edge.node->hooked) lt_hooks_detach(meta->edge.node, meta);
  if (meta->hooks) lt_hooks_free(meta->hooks);
  lt_edge_clear(&meta->edge);
  lt_release(meta->grad);
  lt_release(meta->base);
  lt_pool_give(LT_POOL_META, meta);
}

lt_Tensor *lt_alias(const lt_Tensor *t) {
  return lt_tensor_on(t->storage, t->dtype, t->offset, t->ndim, t->shape, t->strides);
}

lt_Tensor *lt_alias_on(const lt_Tensor *t, const lt_Edge *edge) {
  lt_Tensor *a = lt_alias(t);
  if (!a || !lt_edge_leads(edge)) return a;
  lt_AutogradMeta *m = lt_meta_of(a);
  if (!m) {
    lt_release(a);
    return NULL;
  }
  m->edge = lt_edge_copy(edge);
  a->requires_grad = true;
  return a;
}

/* ---- the tensor's side ----------------------------------------------------------------------- */

bool lt_grad_enabled(void) { return !lt_thread()->grad_off; }

bool lt_grad_set_enabled(bool on) {
  lt_Thread *th = lt_thread();
  bool was = !th->grad_off;
  th->grad_off = !on;
  return was;
}

bool lt_inference_enabled(void) { return lt_thread()->inference_on; }

bool lt_inference_set_enabled(bool on) {
  lt_Thread *th = lt_thread();
  bool was = th->inference_on;
  th->inference_on = on;
  return was;
}

/* A view whose base was changed by a recorded op is a result, so views are updated first. */
bool lt_tensor_is_leaf(const lt_Tensor *t) {
  if (!t->meta) return true;
  if (t->meta->base) (void)lt_view_refresh((lt_Tensor *)t);
  return !lt_edge_leads(&t->meta->edge);
}

bool lt_tensor_requires_grad(lt_Tensor *t) { return lt_tensor_needs_grad(t); }

bool lt_tensor_set_requires_grad(lt_Tensor *t, bool on) {
  if (!lt_tensor_usable(t, "requires_grad_", "self")) return false;
  if (t->requires_grad == on && (!t->meta || !t->meta->base)) return true;
  if (!lt_tensor_is_leaf(t)) {
    if (on) return true;
    lt_error_set("requires_grad_: cannot turn requires_grad off: the tensor is not a leaf, it is a "
                 "result of %s\nhint: x:detach()",
                 t->meta->edge.node ? lt_node_op_name(t->meta->edge.node) : "another op");
    return false;
  }
  if (on && !lt_dtype_has_gradient(t->dtype)) {
    lt_error_set(
        "requires_grad_: expected a tensor of a float dtype for argument 'self', got \"%s\"",
        lt_dtype_name(t->dtype));
    return false;
  }
  if (on && t->inference && !lt_inference_enabled()) {
    lt_error_set("requires_grad_: cannot record a tensor that was created in inference mode\nhint: "
                 "x:clone()");
    return false;
  }
  /* Edges may refer to t as a leaf, which lt_history_set must know. */
  lt_Tensor *holder = on ? lt_view_base(t) : t;
  lt_AutogradMeta *m = holder ? lt_meta_of(holder) : NULL;
  if (holder && !m) return false;
  if (m) m->had_leaves = true;
  t->requires_grad = on;
  return true;
}

lt_Tensor *lt_tensor_grad(lt_Tensor *t) { return t->meta ? t->meta->grad : NULL; }

bool lt_tensor_set_grad(lt_Tensor *t, lt_Tensor *grad) {
  if (!lt_tensor_usable(t, "grad", "self") || !lt_tensor_usable(grad, "grad", "value"))
    return false;
  if (!grad) {
    if (!t->meta) return true;
    lt_Tensor *old = t->meta->grad;
    t->meta->grad = NULL;
    lt_release(old);
    return true;
  }
  if (grad == t) {
    lt_error_set("grad: cannot assign a tensor as its own grad");
    return false;
  }
  if (!lt_shape_equal(grad->ndim, grad->shape, t->ndim, t->shape)) {
    lt_error_set("grad: expected a tensor of shape %s, got %s", lt_shape_text(t->ndim, t->shape),
                 lt_shape_text(grad->ndim, grad->shape));
    return false;
  }
  if (grad->dtype != t->dtype) {
    lt_error_set("grad: expected a tensor of dtype \"%s\", got \"%s\"", lt_dtype_name(t->dtype),
                 lt_dtype_name(grad->dtype));
    return false;
  }
  if (!lt_device_equal(lt_tensor_device(grad), lt_tensor_device(t))) {
    lt_error_set("grad: expected a tensor on \"%s\", got one on \"%s\"",
                 lt_device_name(lt_tensor_device(t)), lt_device_name(lt_tensor_device(grad)));
    return false;
  }
  lt_AutogradMeta *m = lt_meta_of(t);
  if (!m) return false;
  lt_Tensor *old = m->grad;
  m->grad = lt_retain(grad);
  lt_release(old);
  return true;
}

bool lt_tensor_retain_grad(lt_Tensor *t) {
  if (!lt_tensor_usable(t, "retain_grad", "self")) return false;
  if (!lt_tensor_needs_grad(t)) {
    lt_error_set("retain_grad: expected a tensor that requires grad for argument 'self', got one "
                 "that does not");
    return false;
  }
  if (lt_tensor_is_leaf(t) || t->meta->retains_grad) return true; /* leaves always do */
  t->meta->retains_grad = true;
  retainer_add(t->meta);
  return true;
}

/* Formats "_true_divide" as "TrueDivideBackward". */
static void backward_name(const char *op, char *out, size_t room) {
  size_t n = 0;
  bool upper = true;
  for (; *op && n + 1 < room; op++) {
    if (*op == '_') {
      upper = true;
      continue;
    }
    out[n++] = (char)(upper && *op >= 'a' && *op <= 'z' ? *op - 'a' + 'A' : *op);
    upper = false;
  }
  out[n] = '\0';
  strncat(out, "Backward", room - n - 1);
}

const char *lt_node_name(lt_Node *n) {
  if (n->name) return n->name;
  char text[96];
  backward_name(n->kind == LT_NODE_SLICES ? "copy_slices" : lt_node_op_name(n), text, sizeof text);
  size_t size = strlen(text) + 1;
  n->name = malloc(size);
  if (!n->name) return "Backward";
  memcpy(n->name, text, size);
  return n->name;
}

const char *lt_tensor_grad_fn_name(const lt_Tensor *t) {
  if (lt_tensor_is_leaf(t)) return NULL;
  return t->meta->edge.node ? lt_node_name(t->meta->edge.node) : NULL;
}
