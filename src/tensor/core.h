/* core.h: the private interface between the files of src/tensor. Neither an embedding program nor a
 * device includes it: kernel.h is the part that devices use.
 *
 * How a call runs, in dispatch.c: its arguments are read (arguments.c), the devices of the tensors
 * are checked, and then it depends on the op's kind:
 *   composite   composite_<name>(call) runs other ops; autograd records those
 *   view        view_<name>(call) sets call->out[0] to a tensor on self's storage
 *   the others  infer_<...>(call) fills call->spec with dtype, device and shape of each result; the
 *               results are allocated; then the elementwise loop or the kernel runs (on meta, which
 *               has no memory, nothing runs)
 * At the end autograd records the call.
 *
 * Invariant: infer checks everything before memory is written, so a call that fails changes
 * nothing.
 */
#ifndef LT_CORE_H
#define LT_CORE_H

#include "kernel.h"

/* ---- the op table (ops.c) -------------------------------------------------------------------- */

typedef enum lt_Kind {
  LT_KIND_ELEMENTWISE,
  LT_KIND_REDUCE,
  LT_KIND_KERNEL,
  LT_KIND_UPDATE,
  LT_KIND_MAP,
  LT_KIND_VIEW,
  LT_KIND_COMPOSITE
} lt_Kind;

typedef enum lt_Rule { /* see ops.def; from LT_RULE_SUM on: of reductions, infer_reduce.c */
                       LT_RULE_NONE,
                       LT_RULE_SAME,
                       LT_RULE_NUMBER,
                       LT_RULE_WIDEN,
                       LT_RULE_DIVIDE,
                       LT_RULE_POWER,
                       LT_RULE_FLOAT,
                       LT_RULE_FLOATING,
                       LT_RULE_REAL,
                       LT_RULE_REAL_FLOAT,
                       LT_RULE_INTEGRAL,
                       LT_RULE_TEST,
                       LT_RULE_SELF,
                       LT_RULE_MASK,
                       LT_RULE_LIMIT,
                       LT_RULE_SELECT,
                       LT_RULE_SUM,
                       LT_RULE_ORDERED,
                       LT_RULE_BOOL,
                       LT_RULE_COUNT,
                       LT_RULE_ARG,
                       LT_RULE_ARG2
} lt_Rule;

/* The namespaces of namespaces.def, counted from 0. */
enum {
#define LT_NAMESPACE(flag, name, doc) LT_SPACE_##flag,
#include "namespaces.def"
  LT_SPACE_COUNT
};

/* The variants of an op: function, method, in-place method, then one bit for each namespace that
 * has it. They share a mask with the traits. */
enum {
  LT_VARIANT_FUNCTION = 1,
  LT_VARIANT_METHOD = 2,
  LT_VARIANT_IN_PLACE = 4,
  LT_VARIANT_SPACE = 1 << 16, /* of namespace 0 */
#define LT_NAMESPACE(flag, name, doc) LT_VARIANT_##flag = LT_VARIANT_SPACE << LT_SPACE_##flag,
#include "namespaces.def"
  LT_VARIANTS = 7 | ((1 << LT_SPACE_COUNT) - 1) << 16
};

/* The traits of an op, described in ops.def. */
enum {
  LT_TRAIT_COPY = 8,
  LT_TRAIT_TRANSFER = 16,
  LT_TRAIT_BUILTIN = 32,
  LT_TRAIT_LAYOUT = 64,
  LT_TRAIT_CORE = 128,
  LT_TRAIT_COMPLEX = 256,
  LT_TRAIT_PARTS = 512,
  LT_TRAIT_LINEAR = 1024,
  LT_TRAIT_BILINEAR = 2048,
  LT_TRAIT_HOST = 4096,
  LT_TRAIT_COMPLEX_CPU = 1 << 29, /* behind autocast's classes and the namespaces */
  LT_TRAIT_OVER = 1 << 30,
};

/* The classes of autocast, described in ops.def: a number among the traits, 0 for none. */
enum {
  LT_AUTOCAST_LOW = 1 << 13,
  LT_AUTOCAST_LOW_GPU = 2 << 13,
  LT_AUTOCAST_HIGH = 3 << 13,
  LT_AUTOCAST_HIGH_CPU = 4 << 13,
  LT_AUTOCAST_HIGH_GPU = 5 << 13,
  LT_AUTOCAST_WIDEST = 6 << 13,
  LT_AUTOCAST_AS_IS = 7 << 13,
  LT_AUTOCAST_CLASS = 7 << 13 /* the bits of the number */
};

/* The types of signatures, described in ops.def. */
typedef enum lt_ParamType {
  LT_PARAM_TENSOR,
  LT_PARAM_TENSORS,
  LT_PARAM_OPERAND,
  LT_PARAM_INDEX,
  LT_PARAM_SCALAR,
  LT_PARAM_INT,
  LT_PARAM_FLOAT,
  LT_PARAM_BOOL,
  LT_PARAM_STRING,
  LT_PARAM_DTYPE,
  LT_PARAM_DEVICE,
  LT_PARAM_GENERATOR,
  LT_PARAM_SIZES,
  LT_PARAM_INTS,
  LT_PARAM_DIM,
  LT_PARAM_DIMS,
  LT_PARAM_POSITION,
  LT_PARAM_UNION, /* `string|ints`: any of the types in lt_Param.types */
  /* Only of functions that the host language defines; no row of ops.def has them. */
  LT_PARAM_ANY,       /* any value */
  LT_PARAM_DATA,      /* any value; as the first parameter, the array part of a single table */
  LT_PARAM_LIST,      /* a table used as a list; as the first parameter likewise */
  LT_PARAM_TABLE,     /* any table */
  LT_PARAM_FLOATS,    /* a list of numbers */
  LT_PARAM_FUNCTION,  /* anything that can be called */
  LT_PARAM_INT_LISTS, /* lists of lists: `ints[]` */
  LT_PARAM_DIM_LISTS,
  LT_PARAM_FLOAT_LISTS,
  LT_PARAM_TENSOR_LISTS, /* `Tensor[][]` */
  LT_PARAM_TYPE_COUNT
} lt_ParamType;

/* On which devices a tensor argument may be, relative to the device on which the call runs. */
typedef enum lt_Place {
  LT_PLACE_DEVICE, /* only there, except that a 0-d tensor may be on the CPU */
  LT_PLACE_HOST,   /* `@host`: there or on the CPU */
  LT_PLACE_ANY     /* `@any`: on any device; it does not decide where the call runs */
} lt_Place;

/* The value of `false` in a list of the type `ints(false)`. */
#define LT_GAP INT64_MIN

/* One parameter of a signature. */
typedef struct lt_Param {
  char name[32];
  lt_ParamType type;
  bool optional;    /* `?`: nil is allowed */
  bool has_default; /* may be left out */
  bool written;     /* `!`: the op writes it */
  bool shape_only;  /* `~`: only its shape and dtype are read */
  bool spreads;     /* `...`: elements of a list may be given one after the other */
  lt_Place place;   /* of a tensor */
  bool has_choices; /* a string must be one of those that `spelling` quotes */
  bool has_least;   /* a number must be at least `least` */
  bool has_gaps;    /* an entry of a list may be false: LT_GAP */
  double least;
  uint32_t types;       /* the type, or all types of a union: a bit for each lt_ParamType */
  uint32_t dtypes;      /* the dtypes that are allowed, a bit for each; 0: all */
  const char *spelling; /* the type as the signature writes it; not NUL-terminated */
  int spelling_length;
  char text[24]; /* the default as code, for help */
  union {        /* memory for the string or list that `value` points to */
    char word[24];
    int64_t list[4];
  };
  lt_Arg value; /* the default (LT_NIL where there is none); dims are 0-based */
} lt_Param;

/* Parameters of a signature: those of an op are LT_MAX_ARGS at most. */
#define LT_MAX_PARAMS 32

/* A parsed signature. */
struct lt_Signature {
  int count;
  lt_Param param[LT_MAX_PARAMS];
  int results;
  bool result_is_list; /* the result is a list, or may be one */
  bool result_is_flag; /* the result is a boolean */
  bool result_is_index[LT_MAX_OUT];
  char result_name[LT_MAX_OUT][16]; /* "" where the signature gives no name */
  bool takes_tensor;                /* the first parameter is a tensor or operand: self */
  bool of_op;                       /* of a row of ops.def: calls accept `out` */
  bool of_host;     /* of a function that the host language defines, which checks values itself */
  unsigned written; /* bit i: parameter i has the mark `!` */
  int device_param, dtype_param, requires_grad_param,
      non_blocking_param; /* 0-based indices of the parameters of these names, or -1 */
};

/* The contents of an op's row in ops.def. */
struct lt_OpInfo {
  const char *name; /* without the `_` of internal ops' in-place variants */
  lt_Kind kind;
  lt_Rule rule;
  int inputs;                   /* number of inputs of an elementwise op */
  unsigned variants;            /* LT_VARIANT_ flags */
  unsigned traits;              /* LT_TRAIT_ flags */
  bool (*infer)(lt_Call *call); /* infer_, view_ or composite_ function */
  const char *signature, *doc;
  bool has_float, has_integer; /* which expressions an elementwise op has */
  bool has_complex;            /* its float expression is valid for complex numbers */
  bool is_wide;                /* type W: computed in float64, by functions of special.h */
};

/* The op table, indexed by lt_OpId. */
extern const lt_OpInfo lt_ops[];

/* Another name of an op, with some of its variants. */
typedef struct lt_OpAlias {
  const char *name;
  lt_OpId op;
  unsigned variants; /* LT_VARIANT_ flags */
} lt_OpAlias;

/* All of them; the name of the last entry is NULL. */
extern const lt_OpAlias lt_op_aliases[];
/* The parsed signatures, indexed by lt_OpId; NULL until the first use. */
extern const lt_Signature *_Atomic lt_op_signatures[];
/* Parses the signature of an op, unless another thread has, and returns it. */
const lt_Signature *lt_op_parse(lt_OpId op);
/* Returns the parsed signature of an op, which is parsed on first use. Never NULL (a test parses
 * every signature). Thread safe. */
static inline const lt_Signature *lt_op_signature(lt_OpId op) {
  const lt_Signature *g = atomic_load_explicit(&lt_op_signatures[op], memory_order_acquire);
  return g ? g : lt_op_parse(op);
}
/* Parses a signature in ops.def's grammar; false when it has an error. `text` must live as long as
 * the result. */
bool lt_signature_parse(lt_Signature *g, const char *text);
/* Returns a type's name in signatures ("Tensor"), NULL for LT_PARAM_UNION. */
const char *lt_param_type_name(lt_ParamType type);
/* Returns true when `word` is a valid value of a string parameter. */
bool lt_param_allows(const lt_Param *p, const char *word);
/* Formats the valid strings for a message, "'mean', 'sum' or 'none'". Returns `out`. */
const char *lt_param_choices(const lt_Param *p, char *out, size_t size);
/* Returns the op with this name, -1 when there is none. */
int lt_op_find(const char *name);

/* A row of namespaces.def. */
typedef struct lt_Namespace {
  const char *flag, *name, *doc;
} lt_Namespace;

extern const lt_Namespace lt_namespaces[LT_SPACE_COUNT];
/* Returns an op's name inside a namespace: "norm" for "linalg_norm" in linalg. */
const char *lt_namespace_op_name(int space, const char *op);

/* Returns true when the kernel of an in-place op writes argument i, a tensor, besides self. */
static inline bool lt_call_writes(const lt_Call *c, int i) {
  return (c->signature->written >> i & 1) != 0;
}

/* ---- ops without a kernel (fallback.c, composite_kernel.c) ----------------------------------- */

/* Runs a call on the CPU whose device has no kernel for it: copies its operands to the CPU, invokes
 * `run` there, and copies the results, and the operands that the op writes, back. Random ops draw
 * the numbers that the device would have drawn. The host is blocked until the operands have been
 * copied. Fails, with an error about the missing kernel, unless lt_fallback_enabled() or the op has
 * the trait HOST. */
bool lt_fallback_run(lt_Call *c, bool (*run)(lt_Call *host));

/* ---- bools on memory that another dtype writes: loose_bool.c --------------------------------- */

/* Notes that bool tensors on s may read bytes other than 0 and 1. */
void lt_bools_loosen(lt_Storage *s);
/* Returns whether an argument of the call is such a tensor. */
bool lt_bools_in_args(const lt_Call *c);
/* Returns t with bytes of 0 and 1, owned by the innermost scope. NULL on failure. */
lt_Tensor *lt_bools_copy(const lt_Tensor *t);
/* Calls run with copies in place of these arguments. Of a tensor that the call changes in place,
 * the bytes are 0 and 1 meanwhile. */
bool lt_bools_run(lt_Call *c, bool (*run)(lt_Call *c));

/* Returns the function that computes the op by other ops, as a composite op does, for devices
 * without a kernel for it; NULL when there is none. */
bool (*lt_composite_form(lt_OpId op))(lt_Call *call);
/* Computes an op with the trait PARTS or BILINEAR for complex tensors, by calls on their real and
 * imaginary parts. */
bool lt_form_by_parts(lt_Call *call);
/* Converts the complex argument 0 to the real argument `dtype` and runs the op. */
bool lt_form_by_dtype(lt_Call *call);

/* ---- maps (map.c) ---------------------------------------------------------------------------- */

/* Checks the lists of a map: the `infer` function of its row. */
bool lt_map_check(lt_Call *c);
/* Increments the versions of the tensors that a map has written. */
void lt_map_touch(const lt_Call *c);
/* Returns the number of bytes that a map writes. */
int64_t lt_map_bytes(const lt_Call *c);

/* ---- the order of elements in memory (memory_order.c) ---------------------------------------- */

/* Gives `out`, new memory of the broadcast shape, the order that the n inputs have in memory; no
 * gaps are kept. NULL stands for a number. */
void lt_keep_order(lt_Tensor *out, int n, lt_Tensor *const *inputs);
/* Returns true when two tensors of one shape fill a range of memory each, in the same order. */
bool lt_same_order(const lt_Tensor *a, const lt_Tensor *b);

/* ---- scopes: temporaries of composites and gradients ----------------------------------------- */

/* Opens a scope, which owns the results of lt_do until it is closed; scopes nest. Dispatch opens
 * one around every composite and every gradient function, so these are plain chains of lt_do that
 * need no cleanup. Returns the mark for lt_scope_close. */
size_t lt_scope_open(void);
/* Gets a reference to t (may be NULL) for the caller: the one of the scope opened at `mark`, if t
 * is its last tensor, else a new one. */
void lt_scope_take(size_t mark, lt_Tensor *t);
/* Closes the scope and releases its tensors. `keep` (may be NULL) gets a reference for the caller
 * first, and is returned. */
lt_Tensor *lt_scope_close(size_t mark, lt_Tensor *keep);
/* Moves one reference of the caller's to the innermost scope and returns t. NULL when t is NULL;
 * when memory is out, t is released and NULL is returned. */
lt_Tensor *lt_scope_own(lt_Tensor *t);
/* Runs an op and returns its result `result` (0-based), owned by the innermost scope; the other
 * results are released. NULL on failure. */
lt_Tensor *lt_do_(lt_OpId op, bool in_place, const lt_Arg *args, int nargs, int result);
#define LT_ARGS_(...)                                                                              \
  (const lt_Arg[]){__VA_ARGS__}, (int)(sizeof((lt_Arg[]){__VA_ARGS__}) / sizeof(lt_Arg))
/* Runs an op and returns its first result, e.g. lt_do(mul, LT_ARG(x), LT_ARG(y)), owned by the
 * innermost scope. NULL on failure, and when a tensor argument is NULL. */
#define lt_do(op, ...)          lt_do_(LT_OP_##op, false, LT_ARGS_(__VA_ARGS__), 0)
#define lt_do_in_place(op, ...) lt_do_(LT_OP_##op, true, LT_ARGS_(__VA_ARGS__), 0)

/* ---- autograd's side of a call (autograd/record.c) ------------------------------------------- */

/* Returns true when autocast changes the arguments of this call, or is paused inside. */
bool lt_autocast_applies(const lt_Call *c, const lt_Arg *args, int nargs);
/* Runs the call by `run` with its tensors cast as its class states, and with autocast paused. */
bool lt_autocast_call(lt_Call *c, const lt_Arg *args, int nargs,
                      bool (*run)(lt_Call *c, const lt_Arg *args, int nargs));

/* Returns true when a result of this call would require grad, so that it must be recorded. */
bool lt_autograd_required(const lt_Call *c);
/* Checks, before an in-place op writes c->arg[0], autograd's rules for leaves, views and inference
 * tensors. */
bool lt_autograd_check_in_place(const lt_Call *c);
/* Returns NULL when an op that is never recorded may write t; otherwise the reason why not, as the
 * end of a sentence. */
const char *lt_autograd_refuses(const lt_Tensor *t);
/* Saves, before a recorded in-place op runs, the values of self that its gradient needs. Exactly
 * one of lt_autograd_record_in_place and lt_autograd_drop_in_place frees *state. */
bool lt_autograd_before_in_place(lt_Call *c, void **state);
/* Adds a call that has run to the graph: gives its results a grad_fn. */
bool lt_autograd_record(lt_Call *c);
bool lt_autograd_record_in_place(lt_Call *c, void *state);
/* Frees the state of a call that failed. */
void lt_autograd_drop_in_place(void *state);
/* Stores in a new view (recorded or not) which tensor it is a view of. */
bool lt_autograd_note_view(lt_Call *c);
/* Frees the autograd data of a tensor that is being freed. */
void lt_autograd_meta_free(lt_AutogradMeta *meta);
/* Notifies the owned hooks of a tensor, whose reference count has changed, whether they are held
 * (lt_tensor_add_owned_hook). */
void lt_hooks_notify(lt_AutogradMeta *meta);

/* ---- small blocks (pool.c) ------------------------------------------------------------------- */

/* Small structs are allocated and freed by the million, and a host's garbage collector frees them
 * in bursts that exceed malloc's own caches. So each thread caches the blocks that it freed, one
 * list for each kind. */
typedef enum lt_PoolKind {
  LT_POOL_TENSOR,
  LT_POOL_STORAGE,
  LT_POOL_SMALL_STORAGE,
  LT_POOL_META,
  LT_POOL_NODE,
  LT_POOL_KINDS
} lt_PoolKind;
typedef struct lt_Pool {
  void *first; /* each block's first word names the next */
  int count;
} lt_Pool;
/* The most cached blocks of a kind, about 3 MB of tensors. Debug builds cache none, so that the
 * sanitizers find every use of freed memory. */
#ifdef LT_DEBUG
#define LT_POOL_MOST 0
#else
#define LT_POOL_MOST 8192
#endif

/* ---- operands in use (tensor.c) -------------------------------------------------------------- */

/* The operands of a running call. During an allocation, or in a hook, the host may run user code
 * that calls lt_tensor_free: a tensor in use keeps its storage and geometry until the end of the
 * call. A function of the core that allocates between reading a tensor of the caller's and its last
 * use puts its operands in an lt_Use on its stack (lt_use_enter), and removes it before it returns
 * (lt_use_leave). The caller holds a reference to each operand. */
typedef struct lt_Use {
  const lt_Arg *args; /* those of other kinds than TENSOR and TENSORS are ignored */
  int nargs;
  struct lt_Use *outer; /* of the call that this one runs in */
} lt_Use;

/* ---- the thread's state (error.c) ------------------------------------------------------------ */

/* The tensor that memory is being allocated for, for reports; shape NULL: none. */
typedef struct lt_AllocationInfo {
  lt_Dtype dtype;
  int ndim;
  const int64_t *shape;
} lt_AllocationInfo;

/* Two tensors on different devices, as an error describes them. */
typedef struct lt_DeviceMismatch {
  const lt_Tensor *tensor[2]; /* addresses, only to be compared */
  const lt_Storage *memory[2];
  char op[64], name[2][32];
  lt_Device device[2];
  int ndim[2];
  int64_t shape[2][LT_MAX_DIMS];
  int moved; /* which of them the hint suggests to move: 0 or 1 */
} lt_DeviceMismatch;

typedef enum lt_ErrorKind {
  LT_ERROR_PLAIN,
  LT_ERROR_MEMORY, /* memory ran out */
  LT_ERROR_DEVICES /* two tensors are on different devices */
} lt_ErrorKind;

/* The error of the last failure. Only the functions below write it: each sets text and kind. */
typedef struct lt_ErrorSlot {
  char text[2048];
  lt_ErrorKind kind;
  lt_DeviceMismatch mismatch; /* of LT_ERROR_DEVICES */
} lt_ErrorSlot;

#define LT_SCOPE_FIRST 256 /* tensors that fit a scope stack without an allocation */
/* The state of a thread. Zero is a valid start. */
typedef struct lt_Thread {
  lt_ErrorSlot error;
  const char *user_op; /* the op that the user called; NULL: no call is running */
  bool user_in_place;
  lt_UserIndex user_index;
  bool grad_off, inference_on;
  /* The defaults of the host's current program, which replace the process's. */
  bool has_defaults;
  lt_Dtype default_dtype;
  lt_Device default_device;
  lt_FallbackMode fallback;
  /* The host's program and coroutine that run now, only to be compared. NULL: not known. */
  void *host;
  const void *host_coroutine;
  bool own_grad_off, own_inference_on; /* the thread's modes outside of the host's program */
  lt_Autocast autocast;
  int autocast_paused;               /* calls and backward passes in which autocast has no effect */
  struct lt_Casts *casts;            /* cached casts of weights (autocast.c); NULL: none */
  const struct lt_PackFns *pack_fns; /* saved tensors are packed by these; NULL: they are not */
  void *pack_context;
  bool anomaly, anomaly_nan; /* nodes note where they were created; gradients are checked */
  lt_Tensor **scope;         /* stack of temporaries, of all open scopes */
  size_t scope_count, scope_room;
  lt_Tensor *scope_first[LT_SCOPE_FIRST];
  lt_PressureFn pressure;
  void *pressure_context;
  bool in_pressure;
  lt_TrimFn trim;
  void *trim_context;
  lt_WhereFn where;
  void *where_context;
  lt_AllocationInfo allocating; /* set while lt_empty allocates */
  lt_Pool pool[LT_POOL_KINDS];
  uint64_t node_sequence;    /* of autograd: nodes created so far */
  struct lt_Node *dead_node; /* list of nodes to be freed */
  bool freeing_nodes;
  bool backward_copy;           /* the gradient of an op that copies is being computed */
  struct lt_Tracer *tracers;    /* trace.h; NULL: there is none */
  struct lt_TraceSpan *span;    /* the innermost open span */
  struct lt_Recorder *recorder; /* recorder.h; NULL: calls on meta are not recorded */
  struct lt_Graph *capturing;   /* the graph that this thread captures; NULL: none */
  lt_Use *use;                  /* operands of the innermost running call */
  int frees_at_exit;            /* tensors that are LT_FREED_AT_EXIT */
} lt_Thread;
extern _Thread_local lt_Thread lt_thread_state;
/* Returns the state of this thread, which is at one address as long as the thread lives. */
static inline lt_Thread *lt_thread(void) { return &lt_thread_state; }

/* ---- small blocks (pool.c) ------------------------------------------------------------------- */

/* Returns an uninitialized block of `size` bytes, which must be the same in all calls for a kind.
 * NULL when memory is out (the error slot is not set). */
static inline void *lt_pool_take(lt_PoolKind kind, size_t size) {
  lt_Pool *p = &lt_thread()->pool[kind];
  void *block = p->first;
  if (!block) return malloc(size);
  p->first = *(void **)block;
  p->count--;
  return block;
}
/* Adds a block to this thread's pool, which is empty or full, or frees it. */
void lt_pool_give_slowly(lt_PoolKind kind, void *block);
/* Returns a block to this thread's pool, or frees it when the pool is full. */
static inline void lt_pool_give(lt_PoolKind kind, void *block) {
  lt_Pool *p = &lt_thread()->pool[kind];
  if (!p->first || p->count >= LT_POOL_MOST) {
    lt_pool_give_slowly(kind, block);
    return;
  }
  *(void **)block = p->first;
  p->first = block;
  p->count++;
}

/* Marks operands as in use; `use` must stay valid until lt_use_leave. */
static inline void lt_use_enter(lt_Thread *th, lt_Use *use, const lt_Arg *args, int nargs) {
  *use = (lt_Use){args, nargs, th->use};
  th->use = use;
}
/* Frees the operands of `use` for which lt_tensor_free was called meanwhile and which no outer call
 * uses. */
void lt_use_free(lt_Thread *th, const lt_Use *use);
/* Ends the use of the operands of the innermost lt_use_enter. */
static inline void lt_use_leave(lt_Thread *th, lt_Use *use) {
  th->use = use->outer;
  if (__builtin_expect(th->frees_at_exit != 0, 0)) lt_use_free(th, use);
}
/* Returns true when a running call of this thread uses t. */
bool lt_tensor_in_use(const lt_Tensor *t);
/* Checks with lt_tensor_usable the tensor, or each tensor of the list, of an argument. */
bool lt_arg_usable(const lt_Arg *a, const char *name);
/* Fills in the call's arguments: checks their types, inserts defaults, and refuses freed tensors.
 * When a tensor is NULL, returns false without touching the slot: the error of the call that
 * returned NULL stays. */
bool lt_read_args(lt_Call *c, const lt_Arg *args, int nargs);

/* Fills the slot with the error that tensors are on different devices, named by their parameters
 * (lt_error_name replaces the names). Returns false. */
bool lt_error_device_mismatch(const lt_DeviceMismatch *mismatch);
/* Empties the slot, so that the caller can see whether the next call fails with an error. */
void lt_error_clear(void);
/* Makes the slot's error a plain one, so that no caller frees memory and tries again. */
void lt_error_not_memory(void);
/* Copies the slot, and restores the copy: around calls whose failures the caller ignores. */
void lt_error_keep(lt_ErrorSlot *kept);
void lt_error_restore(const lt_ErrorSlot *kept);

#endif
