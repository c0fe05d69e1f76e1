/* hooks.c: hooks: functions of the host that get a tensor's gradient in backward, and may replace
 * it.
 *
 * A hook of a leaf is stored in its meta. A hook of another tensor is stored in the node that
 * computed the tensor, so that it runs even if the tensor itself was freed; the meta refers to it,
 * too, to find it by its id. Removing a hook leaves an empty one in the node's list, which is
 * skipped.
 *
 * The function of an owned hook belongs to an object of the host that holds one reference to the
 * tensor. The hook is held when something else could run it: when there are more references to the
 * tensor, or more references to its node than tensors with owned hooks among the node's results; or
 * when the tensor was freed, or was changed in place since, while the node exists. Code that
 * changes one of these counts notifies the hooks if the flag `hooked` is set: lt_retain,
 * lt_release, and their counterparts for nodes. */
#include "autograd.h"
#include "../recorder.h"

struct lt_Hook {
  atomic_int refs;
  int id;
  int output;   /* of the node */
  bool last;    /* runs after the hooks without this mark */
  lt_HookFn fn; /* NULL: removed */
  void *context;
  void (*forget)(void *context);
  lt_HeldFn held; /* of an owned hook, else NULL */
  bool is_held;   /* the last value passed to `held` */
  lt_AutogradMeta
      *meta; /* of an owned hook: its tensor's; NULL: freed, or no longer the node's result */
};

/* Empties a hook and invokes its `forget`. The members are cleared first, because `forget` may run
 * code of the host. */
static void hook_forget(lt_Hook *h) {
  void (*forget)(void *) = h->forget;
  h->fn = NULL;
  h->held = NULL;
  h->forget = NULL;
  if (forget) forget(h->context);
}

/* A hook has a reference from each list that contains it. */
static void hook_release(lt_Hook *h) {
  if (atomic_fetch_sub(&h->refs, 1) != 1) return;
  hook_forget(h);
  free(h);
}

/* ---- owned hooks ----------------------------------------------------------------------------- */

/* Notifies an owned hook if whether it is held has changed. */
static void notify(lt_Hook *h, bool held) {
  if (!h->held || h->is_held == held) return;
  h->is_held = held;
  h->held(h->context, held);
}

/* Returns how many results of this node have owned hooks. */
static int count_owners(const lt_Hooks *hooks) {
  int count = 0;
  for (int i = 0; i < hooks->count; i++) {
    const lt_AutogradMeta *m = hooks->items[i]->meta;
    bool again = !m || !m->hooks->owned;
    for (int k = 0; k < i && !again; k++) again = hooks->items[k]->meta == m;
    count += !again;
  }
  return count;
}

/* Returns true when a node has other references than those of its results with owned hooks. */
static bool is_node_held(const lt_Node *n) {
  return n && n->hooks && atomic_load(&n->refs) > count_owners(n->hooks);
}

/* Returns true when a hook is held, given whether its node is. */
static bool is_held(const lt_Hook *h, bool node_held) {
  const lt_AutogradMeta *m = h->meta;
  return !m || !m->hooks->owned || node_held || atomic_load(&m->self->refs) > 1;
}

/* Notifies the hooks of a list. */
static void notify_all(lt_Hooks *hooks, bool node_held) {
  for (int i = 0; i < hooks->count; i++)
    notify(hooks->items[i], is_held(hooks->items[i], node_held));
}

void lt_hooks_notify(lt_AutogradMeta *meta) {
  notify_all(meta->hooks, is_node_held(meta->edge.node));
}

void lt_hooks_notify_node(lt_Node *node) { notify_all(node->hooks, is_node_held(node)); }

/* Notifies all hooks that are affected when the owner of a tensor's hooks appears or disappears:
 * also those of the node's other results. */
static void notify_owner(lt_AutogradMeta *meta) {
  lt_hooks_notify(meta);
  if (meta->edge.node && meta->edge.node->hooked) lt_hooks_notify_node(meta->edge.node);
}

void lt_hooks_detach(lt_Node *node, const lt_AutogradMeta *meta) {
  for (int i = 0; i < node->hooks->count; i++)
    if (node->hooks->items[i]->meta == meta) node->hooks->items[i]->meta = NULL;
  lt_hooks_notify_node(node);
}

void lt_tensor_disown_hooks(lt_Tensor *t) {
  if (!t->hooked) return;
  t->meta->hooks->owned = false;
  notify_owner(t->meta);
}

/* ---- lists ----------------------------------------------------------------------------------- */

void lt_hooks_free(lt_Hooks *hooks) {
  for (int i = 0; i < hooks->count; i++) hook_release(hooks->items[i]);
  free(hooks->items);
  free(hooks);
}

void lt_hooks_free_of_node(lt_Hooks *hooks) {
  for (int i = 0; i < hooks->count; i++) hook_forget(hooks->items[i]);
  lt_hooks_free(hooks);
}

/* Makes room for one more hook; creates the list when there is none. */
static bool hooks_grow(lt_Hooks **hooks) {
  if (!*hooks) *hooks = calloc(1, sizeof **hooks);
  lt_Hooks *h = *hooks;
  if (h && h->count < h->room) return true;
  int room = h ? 2 * h->room + 2 : 0;
  lt_Hook **items = h ? realloc(h->items, (size_t)room * sizeof *items) : NULL;
  if (!items) {
    lt_error_memory("register_hook: out of memory");
    return false;
  }
  h->items = items;
  h->room = room;
  return true;
}

static void hooks_append(lt_Hooks *hooks, lt_Hook *h) {
  atomic_fetch_add(&h->refs, 1);
  hooks->items[hooks->count++] = h;
}

int lt_tensor_add_hook(lt_Tensor *t, lt_HookFn fn, void *context, void (*forget)(void *context)) {
  return lt_tensor_add_owned_hook(t, fn, context, forget, NULL);
}

int lt_tensor_add_owned_hook(lt_Tensor *t, lt_HookFn fn, void *context,
                             void (*forget)(void *context), lt_HeldFn held) {
  lt_recorder_refuse("it adds a hook to a tensor");
  if (!lt_tensor_usable(t, "register_hook", "self")) return 0;
  if (!lt_tensor_needs_grad(t)) {
    lt_error_set("register_hook: expected a tensor that requires grad for argument 'self', got one "
                 "that does not: the hook would never run");
    return 0;
  }
  lt_AutogradMeta *m = lt_meta_of(t);
  if (!m || !hooks_grow(&m->hooks)) return 0;
  lt_Node *node = m->edge.node;
  if (node && !hooks_grow(&node->hooks)) return 0;
  lt_Hook *h = calloc(1, sizeof *h);
  if (!h) {
    lt_error_memory("register_hook: out of memory");
    return 0;
  }
  atomic_init(&h->refs, 0);
  *h = (lt_Hook){.id = ++m->last_hook,
                 .output = m->edge.output,
                 .fn = fn,
                 .context = context,
                 .forget = forget,
                 .held = held,
                 .meta = held ? m : NULL};
  hooks_append(m->hooks, h);
  if (node) hooks_append(node->hooks, h);
  if (!held) return h->id;
  m->hooks->owned = t->hooked = true;
  if (node) node->hooked = true;
  notify_owner(m);
  return h->id;
}

bool lt_tensor_remove_hook(lt_Tensor *t, int id) {
  lt_Hooks *hooks = t->meta ? t->meta->hooks : NULL;
  for (int i = 0; hooks && i < hooks->count; i++) {
    lt_Hook *h = hooks->items[i];
    if (h->id != id) continue;
    hook_forget(h);
    memmove(hooks->items + i, hooks->items + i + 1,
            (size_t)(hooks->count - i - 1) * sizeof(lt_Hook *));
    hooks->count--;
    hook_release(h);
    return true;
  }
  lt_error_set("remove: expected the number of a hook of this tensor");
  return false;
}

void lt_tensor_run_hook_last(lt_Tensor *t, int id) {
  lt_Hooks *hooks = t->meta ? t->meta->hooks : NULL;
  for (int i = 0; hooks && i < hooks->count; i++)
    if (hooks->items[i]->id == id) hooks->items[i]->last = true;
}

/* Runs one hook on *grad and checks the gradient that it returns. */
static bool run_one(lt_Hook *h, lt_Tensor **grad) {
  lt_Tensor *replacement = NULL, *old = *grad;
  if (!h->fn(h->context, old, &replacement)) return false;
  if ((replacement ? replacement : old)->freed) {
    lt_release(replacement);
    lt_error_set("backward: cannot continue: a hook freed the gradient (x:free()) that it received "
                 "or returned");
    return false;
  }
  if (!replacement) return true;
  if (!lt_shape_equal(replacement->ndim, replacement->shape, old->ndim, old->shape) ||
      replacement->dtype != old->dtype ||
      !lt_device_equal(lt_tensor_device(replacement), lt_tensor_device(old))) {
    lt_fail("expected a hook to return a gradient of shape %s (\"%s\" on \"%s\"), got one of shape "
            "%s (\"%s\" on \"%s\")",
            lt_shape_text(old->ndim, old->shape), lt_dtype_name(old->dtype),
            lt_device_name(lt_tensor_device(old)),
            lt_shape_text(replacement->ndim, replacement->shape), lt_dtype_name(replacement->dtype),
            lt_device_name(lt_tensor_device(replacement)));
    lt_release(replacement);
    return false;
  }
  *grad = replacement;
  lt_release(old);
  return true;
}

/* Runs the host's function outside of the engine's own state: its ops bear their own names. */
static bool call_host(lt_Hook *h, lt_Tensor **grad) {
  lt_Thread *th = lt_thread();
  const char *op = th->user_op;
  th->user_op = NULL;
  bool ok = h->fn ? run_one(h, grad) : true;
  th->user_op = op;
  return ok;
}

/* A hook may add and remove hooks, or release the tensor. So the hooks that exist at the start are
 * retained, and exactly these run. */
bool lt_hooks_run(lt_Hooks *hooks, int output, lt_Tensor **grad) {
  int count = hooks->count;
  lt_Hook **held = malloc((size_t)(count ? count : 1) * sizeof(lt_Hook *));
  if (!held) return lt_fail_memory();
  for (int i = 0; i < count; i++) {
    held[i] = hooks->items[i];
    atomic_fetch_add(&held[i]->refs, 1);
  }
  bool ok = true;
  for (int last = 0; last <= 1; last++)
    for (int i = 0; ok && i < count; i++)
      if (held[i]->output == output && held[i]->last == (last == 1)) ok = call_host(held[i], grad);
  for (int i = 0; i < count; i++) hook_release(held[i]);
  free(held);
  return ok;
}
