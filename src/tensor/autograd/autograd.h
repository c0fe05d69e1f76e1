/* autograd.h: the private interface of autograd: the graph's data structures, and the functions
 * that the files of this folder share.
 *
 * The graph has a node for each recorded call. An edge leads from a node to the target of the
 * gradient of one of its inputs: the node that computed the input, or a leaf. A leaf has no node:
 * the edge refers to the tensor. Invariant: nothing in the graph refers to a tensor with a grad_fn,
 * so there are no cycles, and reference counts are enough:
 *
 *   tensor -> meta -> node -> edges -> nodes and leaves
 *                          -> saved tensors: aliases (a geometry on the same storage, without meta)
 *   view   -> meta -> base
 *
 * One exception needs care: a tensor that was a leaf, or the base of a view that was one, may be
 * changed in place later by an op that used this leaf: leaf -> base -> node -> edge -> leaf would
 * be a cycle. So the edges of the new history do not retain such leaves (view.c).
 *
 * A node is one block of memory, in which its inputs, the arguments of the call and the saved
 * tensors follow the struct. A gradient function (gradients.h) is written in ops; apply.c sums its
 * results over broadcast dimensions, casts them and moves them to the input's device, so that
 * gradient functions need not.
 *
 * Threads: a graph belongs to one thread at a time.
 */
#ifndef LT_AUTOGRAD_H
#define LT_AUTOGRAD_H

#include "../core.h"

typedef struct lt_Node lt_Node;
typedef struct lt_Hook lt_Hook;

/* The target of a gradient: an output of a node, or a leaf. With neither, the gradient is not
 * required. Holds one reference. */
typedef struct lt_Edge {
  lt_Node *node;
  lt_Tensor *leaf;
  int output;
} lt_Edge;

/* Returns true when the edge has a target. */
static inline bool lt_edge_leads(const lt_Edge *e) { return e->node || e->leaf; }

/* A tensor argument of a recorded call (or one entry of a list): where its gradient goes, and what
 * dtype, device and shape the gradient must have. */
typedef struct lt_Input {
  lt_Edge edge;
  lt_Dtype dtype;
  lt_Device device;
  uint8_t ndim;
  bool transposed; /* a matrix in column order: its gradient is computed in that order, too */
  const int64_t *shape;
  const int64_t *strides; /* ndim strides, then the offset; NULL unless the op has trait LAYOUT */
} lt_Input;

/* A saved tensor: a value that the gradient needs. */
typedef struct lt_Saved {
  lt_Tensor *tensor; /* an alias without meta, or a copy; NULL: it was packed */
  unsigned version;  /* of the storage when it was saved */
  int16_t what;      /* the input's number, or -1 - the result's */
  void *packed;      /* what the host stores in its place (lt_PackFns) */
  const lt_PackFns *fns;
} lt_Saved;

typedef enum lt_NodeKind {
  LT_NODE_OP,     /* an op of ops.def */
  LT_NODE_SLICES, /* an op that changed a view in place, as an op on the view's base */
  LT_NODE_CUSTOM  /* a function of the host */
} lt_NodeKind;

typedef struct lt_Hooks {
  int count, room;
  bool owned;      /* of a tensor: an object of the host owns its hooks */
  lt_Hook **items; /* in the order they were added; each entry is one reference */
} lt_Hooks;

/* The data of a slices node. Its input 0 is the base; the inner node's inputs follow from 1 on. */
typedef struct lt_Slices {
  lt_Node *inner; /* the node of the op itself, whose input and output is the view */
  int base_ndim, view_ndim;
  int64_t first; /* offset of the view's first element from the base's */
  int64_t base_shape[LT_MAX_DIMS], base_strides[LT_MAX_DIMS];
  int64_t view_shape[LT_MAX_DIMS], view_strides[LT_MAX_DIMS];
} lt_Slices;

typedef struct lt_Custom {
  lt_CustomFunction function; /* `name` is owned */
  bool released;              /* function.release has been invoked */
} lt_Custom;

struct lt_Node {
  atomic_int refs;
  uint8_t kind;  /* lt_NodeKind */
  bool in_place; /* the call changed its first argument */
  bool freed;    /* a backward without retain_graph has freed the saved tensors */
  bool pooled;   /* its memory is a block of the pool */
  bool hooked;   /* has owned hooks: reference count changes are reported to them */
  uint8_t nargs;
  uint16_t op; /* lt_OpId */
  uint16_t nout;
  int ninputs, nsaved;
  uint64_t sequence; /* increases with every node of the thread */
  lt_Stream *stream; /* of the call; its gradient runs there, too. NULL: on the CPU */
  lt_Input *input;
  lt_Saved *saved;
  lt_Arg *arg;                /* the call's arguments, without tensors */
  int *slot;                  /* by argument: index of its (first) input, -1 for other types */
  void *extra;                /* lt_Slices or lt_Custom; of an inner node: its slices node */
  lt_Hooks *hooks;            /* of the tensors that this node has computed */
  lt_AutogradMeta *retainers; /* of its results that retain their grad, a list; not owned */
  char *name;                 /* "MulBackward"; NULL until it is needed */
  char *where;                /* line of the host's program, of anomaly detection; or NULL */
  lt_Node *dead;              /* next in the list of nodes to be freed */
};

/* The autograd data of a tensor; tensors that need none have no meta. */
struct lt_AutogradMeta {
  lt_Tensor *self; /* the tensor; not owned */
  lt_Tensor *grad;
  lt_Edge edge; /* empty for a leaf */
  lt_Hooks *hooks;
  int last_hook; /* the last id that was assigned */
  /* Of a view: */
  lt_Tensor *base;   /* never a view itself */
  unsigned seen;     /* the base's `changes` when `edge` was set */
  bool no_grad_view; /* created while gradients were off */
  bool retains_grad;
  bool had_leaves;  /* this tensor or a view of it was a leaf that required grad */
  bool moved;       /* of an alias that replaces, in an edge, a leaf which became a result */
  unsigned changes; /* number of recorded in-place changes of this tensor or a view of it */
  lt_AutogradMeta *next_retainer;
};

/* ---- node.c ---------------------------------------------------------------------------------- */

/* Creates a node with one reference, and with memory for its inputs and saved tensors (which are
 * zero), its arguments, `words` int64 at *words_at and `bytes` bytes at *bytes_at (either may be
 * NULL). NULL when memory is out. */
lt_Node *lt_node_new(lt_NodeKind kind, int ninputs, int nsaved, int nargs, size_t words,
                     size_t bytes, int64_t **words_at, char **bytes_at);
/* Adds a reference and returns n. NULL is allowed. */
lt_Node *lt_node_retain(lt_Node *n);
/* Removes a reference; the last one frees the node, and nodes that only it refers to, without
 * recursion. NULL is allowed. */
void lt_node_release(lt_Node *n);
/* Frees the saved tensors. If there were any, a second backward through the node is an error. */
void lt_node_free_saved(lt_Node *n);
/* Fills in input i from t, except its edge. The shape, and the strides and offset if `strides`, are
 * stored at *words, which is advanced. */
void lt_node_set_input(lt_Node *n, int i, const lt_Tensor *t, bool strides, int64_t **words);
/* Frees a saved tensor, packed or not. */
void lt_saved_free(lt_Saved *s);
/* Returns the op's name, "mul", for messages. */
const char *lt_node_op_name(const lt_Node *n);
/* Returns "MulBackward", owned by the node. */
const char *lt_node_name(lt_Node *n);

/* Copies an edge and retains its target. */
lt_Edge lt_edge_copy(const lt_Edge *e);
/* Releases an edge's target and makes the edge empty. */
void lt_edge_clear(lt_Edge *e);

/* Returns t's meta, which is created when there is none. NULL when memory is out. */
lt_AutogradMeta *lt_meta_of(lt_Tensor *t);
/* Replaces the edge, and takes over the reference of the new one. If the tensor retains its grad,
 * it is registered with the new node. */
void lt_meta_set_edge(lt_AutogradMeta *meta, lt_Edge edge);

/* Creates an alias of t whose gradient goes to the edge's target. */
lt_Tensor *lt_alias_on(const lt_Tensor *t, const lt_Edge *edge);

/* ---- anomaly.c ------------------------------------------------------------------------------- */

/* Notes the current line of the host's program in a new node. */
void lt_anomaly_note(lt_Node *n);
/* Adds the line of the node to the error of a failed gradient, or checks the gradients of its
 * inputs for NaN. Returns `ok`, or false where one has NaN; the gradients are released then. */
bool lt_anomaly_check(const lt_Node *n, bool ok, lt_Tensor **in);

/* ---- view.c ---------------------------------------------------------------------------------- */

/* Returns the tensor that t is a view of; NULL when it is none, or no longer one. */
lt_Tensor *lt_view_base(const lt_Tensor *t);
/* Updates the edge of a view whose base was changed in place since by a recorded op. */
bool lt_view_refresh(lt_Tensor *t);
/* Returns true when t requires grad; updates a view first. */
static inline bool lt_tensor_needs_grad(lt_Tensor *t) {
  if (t->meta && t->meta->base) (void)lt_view_refresh(t);
  return t->requires_grad;
}
/* Returns the edge to the target of t's gradient, with one reference; an empty one when t requires
 * no grad. */
bool lt_edge_of(lt_Tensor *t, lt_Edge *edge);
/* Makes n, the node of an in-place op on t or on a view of it, the grad_fn of t, with output
 * `output`; takes over the reference to n. Cannot fail. */
void lt_history_set(lt_Tensor *t, lt_Node *n, int output);
/* Creates the node of an in-place op on a view of `base` from the op's own node `inner`, whose
 * reference it takes over, also on failure. */
lt_Node *lt_slices_new(lt_Tensor *view, lt_Tensor *base, lt_Node *inner);
/* Returns t, a result that the inner node of n has saved, as a part of the result of n: the graph
 * leads to n only. It belongs to the scope. */
lt_Tensor *lt_slices_result(lt_Node *n, const lt_Tensor *t);
/* Runs the gradient of a slices node, as lt_node_apply. */
bool lt_slices_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in);

/* ---- apply.c --------------------------------------------------------------------------------- */

/* Runs a node's gradient function. grads: by result, NULL where there is none; want and in: by
 * input. in[i] becomes a tensor of the input's shape, dtype and device with one reference, or NULL
 * where want[i] is false or a custom function returned none. On failure all of in are NULL. `sum`
 * (NULL: none) is the sum of the gradients that input 0 has got so far, which may be changed in
 * place: in[0] is `sum` itself when the gradient was added to it. */
bool lt_node_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor *sum,
                   lt_Tensor **in);
/* Sums grad to the input's shape, converts it to the input's dtype and moves it to its device. The
 * result belongs to the open scope. */
lt_Tensor *lt_grad_fit(lt_Tensor *grad, const lt_Input *input, const char *op);

/* ---- custom.c -------------------------------------------------------------------------------- */

/* Invokes the host's backward, as lt_node_apply. */
bool lt_custom_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in);
/* Invokes `forget` and frees the struct. */
void lt_custom_free(lt_Custom *custom);
/* Does what lt_autograd_custom does, for a function that may have changed inputs in place: an
 * output with `changed` true (NULL: none) that is also an input is not replaced, but gets the
 * function as its grad_fn. Such an input must be neither a leaf that requires grad nor a view. */
bool lt_autograd_custom_changed(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                                int noutputs, lt_Tensor **outputs, const bool *changed);
/* Removes the outputs that lt_autograd_custom has added for this context from the graph. When no
 * other tensor leads to the node, it is freed, which invokes `forget`. Cannot fail. */
void lt_autograd_custom_undo(const void *context, int noutputs, lt_Tensor *const *outputs);
/* Invokes the function's `release` once: its saved values are no longer needed. */
void lt_custom_release(lt_Custom *custom);

/* ---- hooks.c --------------------------------------------------------------------------------- */

/* Releases the hooks of a list, and frees the list. */
void lt_hooks_free(lt_Hooks *hooks);
/* Does the same for a node that is freed: its hooks can never run again, so their contexts are
 * forgotten even if a tensor still refers to them. */
void lt_hooks_free_of_node(lt_Hooks *hooks);
/* Disconnects the hooks that the tensor of this meta has added to a node, because the tensor is no
 * longer the node's result. The node keeps the hooks; they count as held. */
void lt_hooks_detach(lt_Node *node, const lt_AutogradMeta *meta);
/* Notifies the owned hooks of a node, whose reference count has changed, whether they are held. */
void lt_hooks_notify_node(lt_Node *node);
/* Runs the hooks of output `output` on *grad, which has one reference and may be replaced. */
bool lt_hooks_run(lt_Hooks *hooks, int output, lt_Tensor **grad);

/* ---- gradients ------------------------------------------------------------------------------- */

/* The arguments and results of a gradient function. */
typedef struct lt_Grad {
  lt_Node *node;
  lt_Tensor *const *grads; /* of the op's results; NULL where there is none */
  lt_Tensor *grad;         /* the first of them that is not NULL */
  lt_Arg arg[LT_MAX_ARGS]; /* the call's; tensors only where the row saves them */
  lt_Tensor *result[LT_MAX_OUT];
  const bool *want; /* by input: whether its gradient is required */
  lt_Tensor *sum;   /* of the gradients of input 0 so far, if it may be changed in place */
  lt_Tensor **in;   /* by input: the gradients that the function computes */
  bool failed;
} lt_Grad;

typedef void (*lt_GradientFn)(lt_Grad *g);

/* A set of saved values of a call: a bit for each argument, then one for each result. */
typedef uint32_t lt_Keep;
#define LT_KEEP_ARG(a)    ((lt_Keep)1 << (a))
#define LT_KEEP_RESULT(r) ((lt_Keep)1 << (LT_MAX_ARGS + (r)))
#define LT_KEEP_GIVES     ((lt_Keep)1 << 31) /* not a value: the row has a formula for it */

typedef enum lt_RowKind {
  LT_ROW_GRADIENT,
  LT_ROW_FIRST, /* a gradient, of the first result only */
  LT_ROW_ZERO,  /* differentiable, the gradient is zero everywhere */
  LT_ROW_NONE   /* not differentiable */
} lt_RowKind;

/* The gradient in an op's row of ops.def. */
typedef struct lt_GradientRow {
  lt_GradientFn function; /* NULL: the op is a composite */
  lt_RowKind kind;
  bool conjugates;               /* the gradient of complex numbers is its own: see lt_node_apply */
  lt_Keep keep;                  /* saved for every gradient */
  lt_Keep keep_for[LT_MAX_ARGS]; /* saved for the gradient of argument i */
} lt_GradientRow;

extern const lt_GradientRow lt_gradients[];

#endif
