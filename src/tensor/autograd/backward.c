/* backward.c: the engine of backward.
 *
 * A pass has three phases. Discover: every node that can be reached gets a task, which counts the
 * tasks that will send it a gradient; with `inputs` given, tasks from which none of them can be
 * reached are skipped. Run: of the tasks that have all their gradients, the one with the latest
 * node runs and adds its gradients to its inputs' tasks, until none is left. Commit: the leaves get
 * their grad.
 *
 * Invariant: no grad changes before the commit, so a backward that fails leaves every grad as it
 * was (without retain_graph, saved tensors of a part of the graph may have been freed).
 *
 * Nothing here recurses along the graph, so a deep graph cannot overflow the stack. All state
 * belongs to the pass, so a hook may start another one. */
#include "../trace.h"
#include "../opids.h"
#include "../recorder.h"
#include "autograd.h"

/* A node or a leaf that gets gradients in this pass. */
typedef struct Task {
  lt_Node *node;   /* or */
  lt_Tensor *leaf; /* retained */
  uint64_t order;
  size_t child; /* its inputs' tasks: pass->child from here on, -1: none; SIZE_MAX: not reached */
  int deps;     /* number of tasks that have yet to send a gradient */
  int nout;
  int captures; /* first of the list of captures, -1: none */
  bool reaches; /* its gradient, or one after it, is requested */
  bool runs;    /* a gradient after it is requested, so its gradient function must run */
  union {
    lt_Tensor *one;
    lt_Tensor **many; /* when nout > 1 */
  };
} Task;

typedef struct Capture { /* an input of the call */
  int task, output, next;
  lt_Tensor *grad;
} Capture;

typedef struct Commit { /* a grad to be set when the pass has succeeded */
  lt_Tensor *tensor;
  lt_Tensor *grad;
  lt_Tensor *had; /* the present grad, to which it is added in place; NULL: none */
} Commit;

/* The state of one pass. */
typedef struct Pass {
  Task *task;
  int ntasks, task_room;
  int *child;
  size_t nchildren, child_room;
  int *slot; /* hash of node or leaf -> task + 1 */
  size_t slots;
  int *heap, nheap, heap_room;
  Capture *capture;
  int ncaptures;
  bool all; /* no inputs were given: the gradients of all leaves are requested */
  Commit *commit;
  int ncommits, commit_room;
  bool retain, create;
} Pass;

/* Makes room for one more item of an array. */
static bool grow(void *array, int count, int *room, size_t item) {
  if (count < *room) return true;
  int bigger = *room ? 2 * *room : 32;
  void *p = realloc(*(void **)array, (size_t)bigger * item);
  if (!p) return lt_fail_memory();
  *(void **)array = p;
  *room = bigger;
  return true;
}

/* ---- tasks by node --------------------------------------------------------------------------- */

/* Returns the slot of an address; `slots` is a power of two. */
static size_t hash(const void *key, size_t slots) {
  uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
  return (size_t)(h >> 20) & (slots - 1);
}

/* Returns the key of a task in the hash table. */
static const void *key_of(const Task *t) {
  return t->node ? (const void *)t->node : (const void *)t->leaf;
}

/* Doubles the hash table. */
static bool rehash(Pass *p) {
  size_t slots = p->slots ? 2 * p->slots : 64;
  int *slot = calloc(slots, sizeof *slot);
  if (!slot) return lt_fail_memory();
  for (int i = 0; i < p->ntasks; i++) {
    size_t at = hash(key_of(&p->task[i]), slots);
    while (slot[at]) at = (at + 1) & (slots - 1);
    slot[at] = i + 1;
  }
  free(p->slot);
  p->slot = slot;
  p->slots = slots;
  return true;
}

/* Returns the task of an edge's target; -1 when there is none yet. */
static int task_find(const Pass *p, const lt_Edge *e) {
  const void *key = e->node ? (const void *)e->node : (const void *)e->leaf;
  if (!key || !p->slots) return -1;
  for (size_t at = hash(key, p->slots); p->slot[at]; at = (at + 1) & (p->slots - 1))
    if (key_of(&p->task[p->slot[at] - 1]) == key) return p->slot[at] - 1;
  return -1;
}

/* Adds a task for an edge's target, which it retains. Returns -1 when memory is out. */
static int task_add(Pass *p, const lt_Edge *e) {
  if (2 * ((size_t)p->ntasks + 1) > p->slots && !rehash(p)) return -1;
  if (!grow(&p->task, p->ntasks, &p->task_room, sizeof *p->task)) return -1;
  Task t = {.node = e->node, .leaf = e->leaf, .captures = -1, .nout = e->node ? e->node->nout : 1};
  t.order = e->node ? e->node->sequence : UINT64_MAX; /* leaves as soon as they are ready */
  if (t.nout > 1) {
    t.many = calloc((size_t)t.nout, sizeof *t.many);
    if (!t.many) {
      lt_fail_memory();
      return -1;
    }
  }
  lt_node_retain(t.node);
  lt_retain(t.leaf);
  size_t at = hash(key_of(&t), p->slots);
  while (p->slot[at]) at = (at + 1) & (p->slots - 1);
  p->task[p->ntasks] = t;
  p->slot[at] = p->ntasks + 1;
  return p->ntasks++;
}

/* Returns the gradients of a task, one for each output. Most nodes have one output, which needs no
 * allocation. */
static lt_Tensor **task_grads(Task *t) { return t->nout > 1 ? t->many : &t->one; }

/* Releases the gradients of a task. */
static void task_drop_grads(Task *t) {
  lt_Tensor **grads = task_grads(t);
  for (int i = 0; i < t->nout; i++) {
    lt_release(grads[i]);
    grads[i] = NULL;
  }
}

/* ---- discovering ----------------------------------------------------------------------------- */

/* A node whose inputs are being visited, from `next` on. */
typedef struct Frame {
  int task, next;
} Frame;

/* Makes room for the tasks of a node's inputs, -1 each. */
static bool children_reserve(Pass *p, int task) {
  Task *t = &p->task[task];
  size_t n = t->node ? (size_t)t->node->ninputs : 0;
  t->child = p->nchildren;
  if (p->nchildren + n > p->child_room) {
    size_t room = 2 * (p->nchildren + n) + 64;
    int *child = realloc(p->child, room * sizeof *child);
    if (!child) return lt_fail_memory();
    p->child = child;
    p->child_room = room;
  }
  for (size_t i = 0; i < n; i++) p->child[p->nchildren + i] = -1;
  p->nchildren += n;
  return true;
}

/* Returns true when the gradient of the task itself is requested: it is one of the inputs, or a
 * leaf of a pass without inputs. */
static bool is_target(const Pass *p, const Task *t) {
  return t->captures >= 0 || (p->all && t->leaf);
}

/* Adds the tasks that can be reached from one task, depth first, with a stack of its own. When a
 * task is left, all tasks after it are known, so `reaches` can be set. */
static bool discover_from(Pass *p, int root, Frame **stack, int *room) {
  int depth = 0;
  if (!children_reserve(p, root) || !grow(stack, depth, room, sizeof **stack)) return false;
  (*stack)[depth++] = (Frame){root, 0};
  while (depth) {
    Frame *f = &(*stack)[depth - 1];
    lt_Node *node = p->task[f->task].node;
    if (!node || f->next == node->ninputs) {
      Task *t = &p->task[f->task];
      t->reaches = t->runs || is_target(p, t);
      depth--;
      if (depth && t->reaches) p->task[(*stack)[depth - 1].task].runs = true;
      continue;
    }
    const lt_Edge *e = &node->input[f->next++].edge;
    if (!lt_edge_leads(e)) continue;
    size_t at = p->task[f->task].child + (size_t)f->next - 1;
    int child = task_find(p, e);
    bool is_new = child < 0 || (p->task[child].child == SIZE_MAX);
    if (child < 0) child = task_add(p, e);
    if (child < 0) return false;
    p->child[at] = child;
    p->task[child].deps++;
    if (!is_new) {
      if (p->task[child].reaches) p->task[f->task].runs = true;
      continue;
    }
    if (!children_reserve(p, child) || !grow(stack, depth, room, sizeof **stack)) return false;
    (*stack)[depth++] = (Frame){child, 0};
  }
  return true;
}

/* ---- the queue: a heap, latest node first ---------------------------------------------------- */

/* Returns true when task a runs before task b. */
static bool before(const Pass *p, int a, int b) { return p->task[a].order > p->task[b].order; }

/* Adds a task to the heap. */
static bool push(Pass *p, int task) {
  if (!grow(&p->heap, p->nheap, &p->heap_room, sizeof *p->heap)) return false;
  int i = p->nheap++;
  while (i > 0 && before(p, task, p->heap[(i - 1) / 2])) {
    p->heap[i] = p->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  p->heap[i] = task;
  return true;
}

/* Removes the task with the latest node from the heap. */
static int pop(Pass *p) {
  int top = p->heap[0], last = p->heap[--p->nheap], i = 0;
  for (;;) {
    int k = 2 * i + 1;
    if (k >= p->nheap) break;
    if (k + 1 < p->nheap && before(p, p->heap[k + 1], p->heap[k])) k++;
    if (!before(p, p->heap[k], last)) break;
    p->heap[i] = p->heap[k];
    i = k;
  }
  p->heap[i] = last;
  return top;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* A gradient function runs on the stream of its op; gradients of leaves are added up on the
 * caller's stream. When a gradient is passed from one stream to another, the second is made to wait
 * for the first. Dispatch keeps the memory from being reused too early (note_streams). */

/* Makes s the current stream of its device. Returns the previous one, or NULL when nothing
 * changed. */
static lt_Stream *enter_stream(lt_Stream *s) {
  if (!s) return NULL;
  lt_Stream *old = s->backend->streams.current(s->backend, s->index);
  if (old == s || !s->backend->streams.set_current(s->backend, s->index, s)) return NULL;
  return old;
}

/* Makes `old`, unless it is NULL, the current stream again. */
static void leave_stream(lt_Stream *old) {
  if (old) old->backend->streams.set_current(old->backend, old->index, old);
}

/* Makes the work queued on `to` from now on wait for the work that is on `from` now. */
static bool wait_for(lt_Stream *to, lt_Stream *from) {
  const lt_Backend *b = from->backend;
  lt_Event *e = b->streams.event_create(b, from->index, false);
  bool ok = e && b->streams.event_record(e, from) && b->streams.wait_event(to, e);
  if (e) b->streams.event_destroy(e);
  return ok;
}

/* Returns the stream on which a task adds up gradients like this one. */
static lt_Stream *stream_of(const Task *t, const lt_Tensor *grad) {
  lt_Stream *s = t->node ? t->node->stream : NULL;
  lt_Device d = lt_tensor_device(grad);
  return s && s->backend == lt_backend_of(grad) && s->index == d.index ? s : lt_stream_current(d);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Returns true when nothing but `others` references refers to this gradient or its memory, so that
 * it may be changed in place. */
static bool is_unshared_but(const lt_Tensor *t, int others) {
  if (atomic_load(&t->refs) != 1 || t->requires_grad) return false;
  lt_Tensor *base = lt_view_base(t);
  int holders = base && atomic_load(&base->refs) == 1 && !base->requires_grad ? 2 : 1;
  return atomic_load(&t->storage->refs) == holders + others;
}

static bool is_unshared(const lt_Tensor *t) { return is_unshared_but(t, 0); }

/* Returns true when a gradient may be changed in place. */
static bool is_writable(const lt_Tensor *t) {
  return is_unshared(t) && !lt_tensor_overlaps_itself(t);
}

/* Adds grad to *sum, and takes over the reference to grad. Without create_graph it reuses the
 * memory of one of them if nothing else refers to it. */
static bool add_to(lt_Tensor **sum, lt_Tensor *grad) {
  if (!*sum) {
    *sum = grad;
    return true;
  }
  lt_Tensor *old = *sum, *to = NULL;
  if (!lt_grad_enabled()) {
    if (is_writable(old))
      to = old;
    else if (is_writable(grad))
      to = grad;
  }
  lt_Tensor *other = to == grad ? old : grad;
  lt_Results r;
  bool ok = lt_call(LT_OP_add, to != NULL, (lt_Arg[]){LT_ARG(to ? to : old), LT_ARG(other)}, 2, &r);
  lt_release(grad);
  if (!ok) return false;
  *sum = r.few[0];
  lt_release(old);
  return true;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Notes that a tensor's grad is to be increased in the commit. */
static bool commit_later(Pass *p, lt_Tensor *tensor, lt_Tensor *grad) {
  if (!grow(&p->commit, p->ncommits, &p->commit_room, sizeof *p->commit)) return false;
  p->commit[p->ncommits++] = (Commit){lt_retain(tensor), lt_retain(grad), NULL};
  return true;
}

/* Runs the hooks of a task, notes grads that are retained or belong to leaves, and stores the
 * gradients of the call's inputs. *kept: a gradient is used after the task is done. */
static bool deliver_gradients(Pass *p, Task *t, bool *kept) {
  lt_Tensor *leaf = t->leaf;
  if (leaf && leaf->meta && (leaf->meta->moved || !lt_tensor_is_leaf(leaf)))
    return lt_fail("cannot accumulate the gradient of a leaf: it or the base of its view was "
                   "changed in place on the tape, so it is not a leaf anymore\nhint: change it "
                   "before it is used, or inside lt.no_grad(f)");
  lt_Hooks *hooks = t->node ? t->node->hooks : leaf->meta ? leaf->meta->hooks : NULL;
  lt_Tensor **grads = task_grads(t);
  for (int i = 0; hooks && i < t->nout; i++)
    if (grads[i] && !lt_hooks_run(hooks, i, &grads[i])) return false;
  for (lt_AutogradMeta *m = t->node ? t->node->retainers : NULL; m; m = m->next_retainer) {
    if (!grads[m->edge.output]) continue;
    if (!commit_later(p, m->self, grads[m->edge.output])) return false;
    *kept = true;
  }
  for (int i = t->captures; i >= 0; i = p->capture[i].next) {
    p->capture[i].grad = lt_retain(grads[p->capture[i].output]);
    *kept = true;
  }
  /* requires_grad may have been turned off since the leaf was used. */
  if (!leaf || !p->all || !grads[0] || !leaf->requires_grad) return true;
  return commit_later(p, leaf, grads[0]);
}

/* Handles a task whose gradients are complete. Hooks run on the task's stream; if a gradient is
 * kept, the caller's stream is made to wait for it. */
static bool gradients_complete(Pass *p, Task *t) {
  bool kept = false;
  lt_Stream *task_stream = t->node ? t->node->stream : NULL, *callers = enter_stream(task_stream);
  bool ok = deliver_gradients(p, t, &kept);
  leave_stream(callers);
  return ok && (!callers || !kept || wait_for(callers, task_stream));
}

/* Adds a gradient, computed on the stream `from` (NULL: a device without streams), to output
 * `output` of a task. */
static bool add_gradient(Task *t, int output, lt_Tensor *grad, lt_Stream *from) {
  lt_Stream *to = from ? stream_of(t, grad) : NULL;
  if (to != from && !wait_for(to, from)) {
    lt_release(grad);
    return false;
  }
  lt_Stream *old = enter_stream(to);
  bool ok = add_to(&task_grads(t)[output], grad);
  leave_stream(old);
  return ok;
}

/* Sends the gradients that a node has computed (NULL: none) to the tasks of its inputs, each of
 * which then waits for one gradient less, and queues those that are complete. `sum` is the one to
 * which the node has added a gradient in place, if it has. */
static bool pass_on(Pass *p, int task, lt_Tensor **in, const lt_Tensor *sum) {
  bool ok = true;
  const Task *t = &p->task[task];
  for (int i = 0; t->node && i < t->node->ninputs; i++) {
    int child = p->child[t->child + (size_t)i];
    lt_Tensor *grad = in ? in[i] : NULL;
    if (child < 0 || !ok) {
      lt_release(grad);
      continue;
    }
    Task *c = &p->task[child];
    if (grad && (!c->reaches || grad == sum))
      lt_release(grad);
    else if (grad)
      ok = add_gradient(c, t->node->input[i].edge.output, grad, stream_of(t, grad));
    if (--c->deps == 0) ok = ok && push(p, child);
  }
  return ok;
}

/* Returns true when a task has got a gradient. A task may get none when all gradient functions
 * before it returned none. */
static bool any_grad(Task *t) {
  for (int i = 0; i < t->nout; i++)
    if (task_grads(t)[i]) return true;
  return false;
}

/* Returns the sum of the gradients of the node's first input so far, if the node's gradient
 * function may change it in place; NULL otherwise. */
static lt_Tensor *sum_so_far(Pass *p, Task *t) {
  const lt_Node *n = t->node;
  int child = n->ninputs > 0 ? p->child[t->child] : -1;
  if (child < 0 || !p->task[child].reaches || lt_grad_enabled() || n->where) return NULL;
  const lt_Input *in = &n->input[0];
  lt_Tensor *sum = task_grads(&p->task[child])[in->edge.output];
  if (!sum || sum->dtype != in->dtype || lt_tensor_overlaps_itself(sum) ||
      !is_unshared_but(sum, lt_recorder_references(sum->storage)) ||
      !lt_shape_equal(sum->ndim, sum->shape, in->ndim, in->shape) ||
      !lt_device_equal(lt_tensor_device(sum), in->device))
    return NULL;
  return n->stream == stream_of(&p->task[child], sum) ? sum : NULL;
}

/* Runs the gradient function of a task's node, frees its saved tensors unless the graph is
 * retained, and sends the gradients on. */
static bool apply_and_pass_on(Pass *p, int task) {
  Task *t = &p->task[task];
  int n = t->node->ninputs;
  bool few_want[8], *want = n <= 8 ? few_want : malloc((size_t)n * sizeof *want);
  lt_Tensor *few_in[8], **in = n <= 8 ? few_in : malloc((size_t)n * sizeof(lt_Tensor *));
  bool ok = want && in ? true : lt_fail_memory();
  for (int i = 0; ok && i < n; i++) {
    int child = p->child[t->child + (size_t)i];
    want[i] = child >= 0 && p->task[child].reaches;
  }
  lt_Tensor *sum = sum_so_far(p, t);
  lt_Stream *old = enter_stream(t->node->stream);
  ok = ok && lt_node_apply(t->node, task_grads(t), want, sum, in);
  leave_stream(old);
  task_drop_grads(t);
  if (ok && !p->retain) lt_node_free_saved(t->node);
  ok = ok && pass_on(p, task, in, sum);
  if (want != few_want) free(want);
  if (in != few_in) free(in);
  return ok;
}

/* Runs a task whose gradients are complete. */
static bool run_task(Pass *p, int task) {
  Task *t = &p->task[task];
  if (!any_grad(t)) return pass_on(p, task, NULL, NULL);
  if (!gradients_complete(p, t)) return false;
  if (t->node && t->runs) return apply_and_pass_on(p, task);
  task_drop_grads(t);
  return pass_on(p, task, NULL, NULL);
}

/* Runs all tasks, the latest node first. Ctrl-C ends the pass between two tasks. */
static bool run_all(Pass *p) {
  for (int i = 0; i < p->ntasks; i++)
    if (p->task[i].deps == 0 && p->task[i].child != SIZE_MAX && !push(p, i)) return false;
  while (p->nheap) {
    if (atomic_load_explicit(&lt_interrupt_flag, memory_order_relaxed))
      return lt_fail("interrupted");
    if (!run_task(p, pop(p))) return false;
  }
  return true;
}

/* ---- the arguments of the call --------------------------------------------------------------- */

/* Checks tensor i of the call and the gradient given for it. */
static bool check_root(int n, int i, lt_Tensor *t, lt_Tensor *grad) {
  char which[32] = "the tensor";
  if (n > 1) snprintf(which, sizeof which, "tensor %d", i + 1);
  if (!lt_tensor_needs_grad(t))
    return lt_fail("expected %s to require grad, got one computed from no tensor that requires "
                   "grad\nhint: x:requires_grad_() before the computation",
                   which);
  if (!grad) {
    if (lt_dtype_is_complex(t->dtype))
      return lt_fail(
          "expected a gradient for %s of dtype \"%s\", got none: it is optional only for "
          "real numbers\nhint: x:abs(), x.real or x.imag",
          which, lt_dtype_name(t->dtype));
    if (t->numel == 1) return true;
    return lt_fail("expected a gradient for %s of shape %s, got none: it is optional only for one "
                   "element\nhint: reduce it (x:sum(), x:mean()) or pass a gradient of its shape",
                   which, lt_shape_text(t->ndim, t->shape));
  }
  if (!lt_shape_equal(grad->ndim, grad->shape, t->ndim, t->shape))
    return lt_fail("expected a gradient of shape %s for %s, got %s",
                   lt_shape_text(t->ndim, t->shape), which, lt_shape_text(grad->ndim, grad->shape));
  if (!lt_device_equal(lt_tensor_device(grad), lt_tensor_device(t)))
    return lt_fail("expected a gradient on \"%s\" for %s, got one on \"%s\"",
                   lt_device_name(lt_tensor_device(t)), which,
                   lt_device_name(lt_tensor_device(grad)));
  if (!lt_dtype_has_gradient(grad->dtype))
    return lt_fail("expected a gradient of a float dtype for %s, got \"%s\"", which,
                   lt_dtype_name(grad->dtype));
  return true;
}

/* Adds the task of a tensor of the call, with its first gradient: the given one, or ones. */
static bool add_root(Pass *p, lt_Tensor *t, lt_Tensor *grad) {
  lt_Edge e;
  if (!lt_edge_of(t, &e)) return false;
  int task = task_find(p, &e);
  if (task < 0) task = task_add(p, &e);
  size_t mark = lt_scope_open();
  lt_Tensor *g = !grad ? lt_do(ones_like, LT_ARG(t))
                 : grad->dtype != t->dtype
                     ? lt_do(_to_copy, LT_ARG(grad), lt_arg_device(lt_tensor_device(t)),
                             lt_arg_dtype(t->dtype), LT_ARG((bool)false))
                     : grad;
  bool ok =
      task >= 0 && g &&
      add_gradient(&p->task[task], e.output, lt_retain(g), lt_stream_current(lt_tensor_device(g)));
  lt_scope_close(mark, NULL);
  lt_edge_clear(&e);
  return ok;
}

/* Adds the task of input i of the call, and notes that its gradient is captured. */
static bool add_input(Pass *p, int i, lt_Tensor *t) {
  lt_Edge e;
  if (!lt_tensor_needs_grad(t))
    return lt_fail(
        "expected input %d to require grad\nhint: x:requires_grad_() before the computation",
        i + 1);
  if (!lt_edge_of(t, &e)) return false;
  int task = task_find(p, &e);
  if (task < 0) task = task_add(p, &e);
  if (task >= 0) {
    p->capture[i] = (Capture){task, e.output, p->task[task].captures, NULL};
    p->task[task].captures = i;
  }
  lt_edge_clear(&e);
  return task >= 0;
}

/* Checks the arguments of the call and discovers the graph. */
static bool prepare(Pass *p, int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, int ninputs,
                    lt_Tensor *const *inputs) {
  for (int i = 0; i < n; i++)
    if (!check_root(n, i, tensors[i], grads ? grads[i] : NULL)) return false;
  for (int i = 0; i < n; i++)
    if (!add_root(p, tensors[i], grads ? grads[i] : NULL)) return false;
  if (inputs && ninputs == 0)
    return lt_fail("expected at least one tensor for argument 'inputs', got an empty list\nhint: "
                   "leave it out for all leaves");
  int roots = p->ntasks;
  p->all = inputs == NULL;
  p->capture = calloc((size_t)(ninputs > 0 ? ninputs : 1), sizeof *p->capture);
  if (!p->capture) return lt_fail_memory();
  for (int i = 0; inputs && i < ninputs; i++, p->ncaptures++)
    if (!add_input(p, i, inputs[i])) return false;
  for (int i = 0; i < p->ntasks; i++) p->task[i].child = SIZE_MAX; /* not discovered */
  Frame *stack = NULL;
  int room = 0;
  bool ok = true;
  for (int i = 0; ok && i < roots; i++)
    if (p->task[i].child == SIZE_MAX) ok = discover_from(p, i, &stack, &room);
  free(stack);
  return ok;
}

/* Frees the state. Gradients and nodes are released here, after success and failure alike. */
static void pass_free(Pass *p) {
  for (int i = 0; i < p->ntasks; i++) {
    task_drop_grads(&p->task[i]);
    if (p->task[i].nout > 1) free(p->task[i].many);
    lt_node_release(p->task[i].node);
    lt_release(p->task[i].leaf);
  }
  for (int i = 0; i < p->ncaptures; i++) lt_release(p->capture[i].grad);
  for (int i = 0; i < p->ncommits; i++) {
    lt_release(p->commit[i].tensor);
    lt_release(p->commit[i].grad);
    lt_release(p->commit[i].had);
  }
  free(p->task);
  free(p->child);
  free(p->slot);
  free(p->heap);
  free(p->capture);
  free(p->commit);
}

/* ---- grads of leaves ------------------------------------------------------------------------- */

/* Returns the tensor that becomes the grad of a tensor without one, in the tensor's order in
 * memory: the gradient itself if nothing else refers to it, otherwise a copy. One reference. */
static lt_Tensor *first_grad(lt_Tensor *t, lt_Tensor *g) {
  if (!lt_grad_enabled() && is_unshared(g) && lt_same_order(g, t))
    return lt_view_base(g) ? lt_alias(g) : lt_retain(g);
  size_t mark = lt_scope_open();
  lt_Tensor *room = lt_do(empty_like, LT_ARG(t));
  return lt_scope_close(mark, lt_do_in_place(_copy, LT_ARG(room), LT_ARG(g)));
}

/* Computes the grad that a commit sets, or finds the one to which it adds in place. The present
 * grad is retained meanwhile: an allocation here may run a finalizer that clears it. */
static bool prepare_commit(Commit *c) {
  lt_Tensor *had = lt_retain(lt_tensor_grad(c->tensor)), *made = NULL;
  if (had && !lt_grad_enabled()) {
    c->had = had;
    return !had->freed || lt_fail("cannot accumulate in the grad of a tensor: it was freed "
                                  "(x:free())\nhint: x.grad = nil");
  }
  if (had)
    made = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(had), LT_ARG(c->grad)}, 2);
  else
    made = first_grad(c->tensor, c->grad);
  lt_release(had);
  if (!made) return false;
  lt_release(c->grad);
  c->grad = made;
  return true;
}

/* Returns true when the gradient still fits the tensor. A hook may have freed the tensor or
 * replaced its data. */
static bool fits(const lt_Tensor *t, const lt_Tensor *grad) {
  return t->freed != LT_FREED && t->dtype == grad->dtype &&
         lt_shape_equal(t->ndim, t->shape, grad->ndim, grad->shape) &&
         lt_device_equal(lt_tensor_device(t), lt_tensor_device(grad));
}

/* Sets the grads. First everything that can fail is done, such as allocations; then the grads
 * change. */
static bool commit_all(Pass *p) {
  for (int i = 0; i < p->ncommits; i++) {
    Commit *c = &p->commit[i];
    if (c->grad->freed)
      return lt_fail("cannot continue: a hook freed a gradient (x:free()) that is still needed");
    if (c->tensor->freed != LT_FREED && !prepare_commit(c)) return false;
  }
  for (int i = 0; i < p->ncommits; i++) {
    Commit *c = &p->commit[i];
    lt_Results r;
    if (c->had) {
      if (!lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(c->had), LT_ARG(c->grad)}, 2, &r))
        return false;
      lt_results_release(&r);
    } else if (fits(c->tensor, c->grad)) {
      lt_AutogradMeta *m = lt_meta_of(c->tensor);
      if (!m) return false;
      lt_Tensor *old = m->grad;
      m->grad = lt_retain(c->grad);
      lt_release(old);
    }
  }
  return true;
}

/* Notes the gradients of the call's inputs as grads, once for each tensor. */
static bool commit_captures(Pass *p, lt_Tensor *const *inputs) {
  for (int i = 0; i < p->ncaptures; i++) {
    bool again = false;
    for (int k = 0; k < i; k++) again = again || inputs[k] == inputs[i];
    if (again || !p->capture[i].grad) continue;
    if (!commit_later(p, inputs[i], p->capture[i].grad)) return false;
    lt_release(p->capture[i].grad);
    p->capture[i].grad = NULL;
  }
  return true;
}

/* ---- lt_backward and lt_grad ----------------------------------------------------------------- */

/* The thread's modes, which a pass changes and restores: gradients are on only with create_graph,
 * and errors start with the name of the pass. The tensors of the call are in use, because hooks may
 * free them. */
typedef struct Entry {
  lt_Thread *thread;
  lt_Arg operand[3]; /* tensors, gradients, inputs */
  lt_Use use;
  bool was_on, was_inference;
  const char *op;
  bool in_place, traced;
  lt_TraceSpan span;
} Entry;

/* Starts a pass: sets the thread's modes. `leave` must follow, also after a failure. */
static bool enter(Entry *e, const char *name, bool create, int n, lt_Tensor *const *tensors,
                  lt_Tensor *const *grads, int ninputs, lt_Tensor *const *inputs) {
  lt_Thread *th = e->thread = lt_thread();
  e->operand[0] = LT_TENSORS(tensors, n);
  e->operand[1] = LT_TENSORS(grads, grads ? n : 0);
  e->operand[2] = LT_TENSORS(inputs, inputs ? ninputs : 0);
  lt_use_enter(th, &e->use, e->operand, 3);
  e->was_on = lt_grad_set_enabled(create);
  e->was_inference = lt_inference_set_enabled(false);
  th->autocast_paused++;
  e->op = th->user_op;
  e->in_place = th->user_in_place;
  th->user_op = name;
  th->user_in_place = false;
  e->traced = lt_trace_begin(&e->span, LT_TRACE_REGION);
  if (e->traced) e->span.event.name = name;
  return lt_arg_usable(&e->operand[0], "tensors") && lt_arg_usable(&e->operand[1], "gradients") &&
         lt_arg_usable(&e->operand[2], "inputs");
}

/* Ends a pass: restores the thread's modes, then reports the region to tracers. */
static void leave(Entry *e, bool ok) {
  lt_use_leave(e->thread, &e->use);
  if (e->traced) lt_trace_end(&e->span, ok);
  lt_grad_set_enabled(e->was_on);
  lt_inference_set_enabled(e->was_inference);
  e->thread->autocast_paused--;
  e->thread->user_op = e->op;
  e->thread->user_in_place = e->in_place;
}

bool lt_backward(int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, bool retain_graph,
                 bool create_graph, int ninputs, lt_Tensor *const *inputs) {
  Pass p = {.retain = retain_graph, .create = create_graph};
  Entry e;
  bool ok = enter(&e, "backward", create_graph, n, tensors, grads, ninputs, inputs) &&
            prepare(&p, n, tensors, grads, ninputs, inputs) && run_all(&p) &&
            (!inputs || commit_captures(&p, inputs)) && commit_all(&p);
  pass_free(&p);
  leave(&e, ok);
  return ok;
}

/* Checks that every input has got a gradient, unless that is allowed to be missing. */
static bool check_used(const Pass *p, bool allow_unused) {
  for (int i = 0; i < p->ncaptures; i++)
    if (!p->capture[i].grad && !allow_unused)
      return lt_fail("expected input %d to be used in computing the tensors\nhint: allow_unused = "
                     "true gives nil for it",
                     i + 1);
    else if (p->capture[i].grad && p->capture[i].grad->freed)
      return lt_fail("cannot continue: a hook freed the gradient (x:free()) of input %d", i + 1);
  return true;
}

bool lt_grad(int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, bool retain_graph,
             bool create_graph, bool allow_unused, int ninputs, lt_Tensor *const *inputs,
             lt_Tensor **out) {
  Pass p = {.retain = retain_graph, .create = create_graph};
  static lt_Tensor *const none[1] = {NULL};
  Entry e;
  bool ok = enter(&e, "grad", create_graph, n, tensors, grads, ninputs, inputs) &&
            prepare(&p, n, tensors, grads, ninputs, inputs ? inputs : none) && run_all(&p) &&
            check_used(&p, allow_unused) && commit_all(&p);
  for (int i = 0; i < ninputs; i++) {
    out[i] = ok ? p.capture[i].grad : NULL;
    if (ok) p.capture[i].grad = NULL;
  }
  pass_free(&p);
  leave(&e, ok);
  return ok;
}
