/* autograd.h: the tape, seen from inside.
 *
 * The graph is made of nodes, one for each recorded call, and of edges that lead from a node to
 * where the gradients of its inputs go: to the node that made the input, or to a leaf. A leaf
 * needs no node of its own: the edge holds the tensor. So nothing in the graph points at a tensor
 * that has a grad_fn, and reference counts are enough:
 *
 *   tensor -> meta -> node -> edges -> nodes and leaves
 *                          -> saved values: aliases (a geometry on the same storage, without meta)
 *   view   -> meta -> base
 *
 * A tensor that was a leaf, or the base of a view that was one, may get a history later, in which
 * that leaf was used: leaf -> base -> node -> edge -> leaf would be a cycle. So when such a tensor
 * is changed in place on the tape, the edges of its new history let go of these leaves (view.c).
 *
 * A node is one block of memory: its inputs, the arguments of the call and what is saved lie
 * behind it. A gradient function (gradients.h) is written in ops; the engine (backward.c) sums
 * what it gives over broadcast dimensions, casts it and moves it to what the input was, so that
 * gradient functions need not.
 *
 * A graph belongs to one thread at a time.
 */
#ifndef LT_AUTOGRAD_H
#define LT_AUTOGRAD_H

#include "../core.h"

typedef struct lt_Node lt_Node;
typedef struct lt_Hook lt_Hook;

/* Where a gradient goes: a node's output, or a leaf; neither: nobody wants it. Holds one
 * reference. */
typedef struct lt_Edge {
  lt_Node *node;
  lt_Tensor *leaf;
  int output;
} lt_Edge;

static inline bool lt_edge_leads(const lt_Edge *e) { return e->node || e->leaf; }

/* A tensor argument of a call (each entry of a list is one), as the gradient must come back to
 * it. */
typedef struct lt_Input {
  lt_Edge edge;
  lt_Dtype dtype;
  lt_Device device;
  uint8_t ndim;
  bool transposed; /* a matrix in column order: its gradient is best made so too */
  const int64_t *shape;
  const int64_t *strides; /* then the offset; NULL unless a gradient of views needs them */
} lt_Input;

/* A value that the gradient needs. */
typedef struct lt_Saved {
  lt_Tensor *tensor; /* an alias without meta, or a copy */
  unsigned version;  /* of the storage when it was saved */
  int16_t what;      /* the input's number, or -1 - the result's */
} lt_Saved;

typedef enum lt_NodeKind {
  LT_NODE_OP,     /* an op of ops.def */
  LT_NODE_SLICES, /* an op that changed a view in place, seen from the view's base */
  LT_NODE_CUSTOM  /* a function of the host */
} lt_NodeKind;

typedef struct lt_Hooks {
  int count, room;
  bool owned;      /* of a tensor: an object of the host owns hooks of it */
  lt_Hook **items; /* in the order they were added; each entry is one reference */
} lt_Hooks;

/* What a slices node knows besides its inputs (0: the base, then the inner node's from 1 on). */
typedef struct lt_Slices {
  lt_Node *inner; /* the op's own node, of the view before and after */
  int base_ndim, view_ndim;
  int64_t first; /* the view's first element, counted from the base's */
  int64_t base_shape[LT_MAX_DIMS], base_strides[LT_MAX_DIMS];
  int64_t view_shape[LT_MAX_DIMS], view_strides[LT_MAX_DIMS];
} lt_Slices;

typedef struct lt_Custom {
  lt_CustomFunction function; /* `name` is ours */
  bool released;
} lt_Custom;

struct lt_Node {
  atomic_int refs;
  uint8_t kind;  /* lt_NodeKind */
  bool in_place; /* the call changed its first argument */
  bool freed;    /* a backward without retain_graph let the saved values go */
  bool pooled;   /* its memory is a block of the pool */
  bool hooked;   /* has hooks that are told whether they are held */
  uint8_t nargs;
  uint16_t op; /* lt_OpId */
  uint16_t nout;
  int ninputs, nsaved;
  uint64_t sequence; /* later nodes have larger ones */
  lt_Stream *stream; /* that the call ran on; its gradient runs there too. NULL: of the CPU */
  lt_Input *input;
  lt_Saved *saved;
  lt_Arg *arg;                /* the call's, tensors left out */
  int *slot;                  /* by argument: its (first) input, -1 when it is no tensor */
  void *extra;                /* lt_Slices or lt_Custom */
  lt_Hooks *hooks;            /* of the tensors this node made */
  lt_AutogradMeta *retainers; /* tensors of this node that retain their grad; not owned */
  char *name;                 /* "MulBackward", made when asked for */
  lt_Node *dead;              /* link of the list of nodes that are about to be freed */
};

struct lt_AutogradMeta {
  lt_Tensor *self; /* whose meta this is */
  lt_Tensor *grad;
  lt_Edge edge; /* empty for a leaf */
  lt_Hooks *hooks;
  int last_hook; /* ids given so far */
  /* of a view: */
  lt_Tensor *base;   /* never a view itself */
  unsigned seen;     /* base's `changes` when `edge` was made */
  bool no_grad_view; /* made while nothing was recorded */
  bool retains_grad;
  bool had_leaves;  /* this tensor or a view of it was a leaf that required grad, and is none now */
  bool moved;       /* stands in an edge for a leaf that became a result */
  unsigned changes; /* times this tensor (or a view of it) was changed in place on the tape */
  lt_AutogradMeta *next_retainer;
};

/* ---- node.c ---------------------------------------------------------------------------------- */

/* A node with room for inputs, saved values and arguments, and `words` int64 and `bytes` behind
 * them. All zero, with one reference. NULL: no memory. */
lt_Node *lt_node_new(lt_NodeKind kind, int ninputs, int nsaved, int nargs, size_t words,
                     size_t bytes, int64_t **words_at, char **bytes_at);
lt_Node *lt_node_retain(lt_Node *n);
/* Frees without recursion, however long the chain is. */
void lt_node_release(lt_Node *n);
/* Lets the saved values go; a second backward through the node is an error then, if it had any. */
void lt_node_free_saved(lt_Node *n);
/* Fills input i from t (the edge apart); the shape (and on demand strides and offset) goes to
 * *words, which moves on. */
void lt_node_set_input(lt_Node *n, int i, const lt_Tensor *t, bool strides, int64_t **words);
/* "mul", for messages. */
const char *lt_node_op_name(const lt_Node *n);
/* "MulBackward"; belongs to the node. */
const char *lt_node_name(lt_Node *n);

lt_Edge lt_edge_copy(const lt_Edge *e);
void lt_edge_clear(lt_Edge *e);

/* t's meta, made when there is none. NULL: no memory. */
lt_AutogradMeta *lt_meta_of(lt_Tensor *t);
/* Replaces the edge by `edge` (takes its reference), and moves what retains the grad along. */
void lt_meta_set_edge(lt_AutogradMeta *meta, lt_Edge edge);

/* An alias whose gradient goes along the edge. */
lt_Tensor *lt_alias_on(const lt_Tensor *t, const lt_Edge *edge);

/* ---- view.c ---------------------------------------------------------------------------------- */

/* What t is a view of, NULL if it is none (any more). */
lt_Tensor *lt_view_base(const lt_Tensor *t);
/* Brings a view up to date whose base was changed in place on the tape since. */
bool lt_view_refresh(lt_Tensor *t);
/* Does t require grad, its base considered? */
static inline bool lt_tensor_needs_grad(lt_Tensor *t) {
  if (t->meta && t->meta->base) (void)lt_view_refresh(t);
  return t->requires_grad;
}
/* The edge along which t's gradient goes, one reference; empty when it requires none. */
bool lt_edge_of(lt_Tensor *t, lt_Edge *edge);
/* Makes output `output` of n, the node of an in-place op on t or on a view of it, t's history;
 * takes the reference to n. Cannot fail. */
void lt_history_set(lt_Tensor *t, lt_Node *n, int output);
/* The node of an in-place op on a view of `base`; takes the reference of `inner`. */
lt_Node *lt_slices_new(lt_Tensor *view, lt_Tensor *base, lt_Node *inner);
bool lt_slices_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in);

/* ---- apply.c --------------------------------------------------------------------------------- */

/* Runs a node's gradient: grads by result (NULL: none came), want and in by input. in[i] gets one
 * reference, or NULL where it is not wanted, or a custom function gave none; it has the input's
 * shape, dtype and device. On failure all are NULL. */
bool lt_node_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in);
/* grad summed to the input's shape, in its dtype, on its device; belongs to the open scope. */
lt_Tensor *lt_grad_fit(lt_Tensor *grad, const lt_Input *input, const char *op);

bool lt_custom_apply(lt_Node *n, lt_Tensor *const *grads, const bool *want, lt_Tensor **in);
void lt_custom_free(lt_Custom *custom);
/* The same as lt_autograd_custom for a function that has changed some of its inputs in place:
 * outputs where `changed` is true (NULL: none), if they are inputs, stay the tensors that they are
 * and get the function as their history. Such an input must be no leaf that requires grad and no
 * view. */
bool lt_autograd_custom_changed(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                                int noutputs, lt_Tensor **outputs, const bool *changed);
/* Takes the outputs that lt_autograd_custom has joined for this context out of the graph again,
 * which forgets the context when no other result leads to it. Cannot fail. */
void lt_autograd_custom_undo(const void *context, int noutputs, lt_Tensor *const *outputs);
void lt_custom_release(lt_Custom *custom);

/* ---- hooks.c --------------------------------------------------------------------------------- */

void lt_hooks_free(lt_Hooks *hooks);
/* A node's, which can never run again: also tensors that are still there let go of them. */
void lt_hooks_free_of_node(lt_Hooks *hooks);
/* The tensor of this meta is no longer the node's result: hooks that it added there stay there,
 * held. */
void lt_hooks_detach(lt_Node *node, const lt_AutogradMeta *meta);
/* Notifies the owned hooks of a node whose number of references has changed whether they are
 * held. */
void lt_hooks_notify_node(lt_Node *node);
/* Runs the hooks of output `output` on *grad, which has one reference and may be exchanged. */
bool lt_hooks_run(lt_Hooks *hooks, int output, lt_Tensor **grad);

/* ---- gradients ------------------------------------------------------------------------------- */

/* A gradient function's view of its call. */
typedef struct lt_Grad {
  lt_Node *node;
  lt_Tensor *const *grads; /* by result, NULL where no gradient came */
  lt_Tensor *grad;         /* the first that came */
  lt_Arg arg[LT_MAX_ARGS]; /* the call's; tensors only where the row keeps them */
  lt_Tensor *result[LT_MAX_OUT];
  const bool *want;
  lt_Tensor **in; /* by input; what the function gives */
  bool failed;
} lt_Grad;

typedef void (*lt_GradientFn)(lt_Grad *g);

/* A set of the values of a call: a bit for each argument, then one for each result. */
typedef uint32_t lt_Keep;
#define LT_KEEP_ARG(a)    ((lt_Keep)1 << (a))
#define LT_KEEP_RESULT(r) ((lt_Keep)1 << (LT_MAX_ARGS + (r)))
#define LT_KEEP_GIVES     ((lt_Keep)1 << 31) /* no value: the row has a formula for the argument */

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
  lt_Keep keep;                  /* saved for every gradient */
  lt_Keep keep_for[LT_MAX_ARGS]; /* saved for the gradient of argument i */
} lt_GradientRow;

extern const lt_GradientRow lt_gradients[];

#endif
