/* core.h: what the files of src/tensor share and neither an embedding program nor a device needs;
 * kernel.h has what devices use of it.
 *
 * The way of a call, in dispatch.c: arguments get their defaults -> devices are checked -> kinds
 * part:
 *   composite   composite_<name>(call) is written in other ops; nothing else happens here
 *   view        view_<name>(call) sets call->out[0] on self's storage
 *   the others  infer_<...>(call) fills call->spec: dtype, device and shape of each result; outputs
 *               are made from the specs; on meta that is all; else the elementwise loop or the
 *               kernel runs
 * and the autograd tape records (views and kernels; composites record through their parts).
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

typedef enum lt_Rule { /* see ops.def; the last ones are of reductions: infer_reduce.c */
                       LT_RULE_NONE,
                       LT_RULE_SAME,
                       LT_RULE_NUMBER,
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

/* A function, a method, an in-place method; then a bit for each namespace that has the op. */
enum {
  LT_VARIANT_FUNCTION = 1,
  LT_VARIANT_METHOD = 2,
  LT_VARIANT_IN_PLACE = 4,
  LT_VARIANT_SPACE = 1 << 16, /* of namespace 0 */
#define LT_NAMESPACE(flag, name, doc) LT_VARIANT_##flag = LT_VARIANT_SPACE << LT_SPACE_##flag,
#include "namespaces.def"
  LT_VARIANTS = 7 | ((1 << LT_SPACE_COUNT) - 1) << 16
};

/* See ops.def. */
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
};

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
  LT_PARAM_UNION, /* `string|ints`: of any type in lt_Param.types */
  /* Of functions that the host language brings; no row of ops.def has them. */
  LT_PARAM_ANY,       /* any value */
  LT_PARAM_DATA,      /* any value; as the first parameter, the array part of a single table */
  LT_PARAM_LIST,      /* a table in the role of a list; as the first parameter likewise */
  LT_PARAM_TABLE,     /* any table */
  LT_PARAM_FLOATS,    /* a list of numbers */
  LT_PARAM_FUNCTION,  /* whatever can be called */
  LT_PARAM_INT_LISTS, /* lists of lists: `ints[]` */
  LT_PARAM_DIM_LISTS,
  LT_PARAM_FLOAT_LISTS,
  LT_PARAM_TENSOR_LISTS, /* `Tensor[][]` */
  LT_PARAM_TYPE_COUNT
} lt_ParamType;

/* Where a tensor may be when the call runs on another device. */
typedef enum lt_Place {
  LT_PLACE_DEVICE, /* nowhere else, except that a 0-d tensor may be on the CPU */
  LT_PLACE_HOST,   /* `@host`: on the CPU too */
  LT_PLACE_ANY     /* `@any`: on any device; it does not decide where the call runs */
} lt_Place;

typedef struct lt_Param {
  char name[24];
  lt_ParamType type;
  bool optional;    /* `?`: nil is a value */
  bool has_default; /* may be left out */
  bool written;     /* `!`: the op writes it */
  bool shape_only;  /* `~`: only its shape and dtype are read */
  lt_Place place;   /* of a tensor */
  bool has_choices; /* a string is one of those that `spelling` quotes */
  bool has_least;   /* a number is not below `least` */
  double least;
  uint32_t types;       /* all types of a union, or the one: a bit for each lt_ParamType */
  uint32_t dtypes;      /* the dtypes that may be given, a bit for each; 0: every one */
  const char *spelling; /* the type in the signature's text, of this length */
  int spelling_length;
  char text[24]; /* the default as code writes it, for help */
  union {        /* what `value` points to */
    char word[24];
    int64_t list[4];
  };
  lt_Arg value; /* the default (LT_NIL where there is none); dims already count from 0 */
} lt_Param;

/* A signature, parsed once, on first use. */
struct lt_Signature {
  int count;
  lt_Param param[LT_MAX_ARGS];
  int results;
  bool result_is_list; /* or may be one */
  bool result_is_flag;
  bool result_is_index[LT_MAX_OUT];
  char result_name[LT_MAX_OUT][16]; /* "" where the signature names none */
  bool takes_tensor;                /* the first parameter is a tensor or operand: self */
  bool of_host; /* of a function that the host language brings, which looks at values by itself */
  unsigned written; /* bit i: parameter i has the mark `!` */
  int device_param, dtype_param, requires_grad_param,
      non_blocking_param; /* places of the parameters of these names, or -1 */
};

struct lt_OpInfo {
  const char *name; /* without the `_` of internal ops' in-place variants */
  lt_Kind kind;
  lt_Rule rule;
  int inputs;                   /* of an elementwise op */
  unsigned variants;            /* LT_VARIANT_ flags */
  unsigned traits;              /* LT_TRAIT_ flags */
  bool (*infer)(lt_Call *call); /* infer_, view_ or composite_ function */
  const char *signature, *doc;
  bool has_float, has_integer; /* which texts of an elementwise op are real */
  bool has_complex;            /* the float text of an elementwise op holds for complex numbers */
};

extern const lt_OpInfo lt_ops[];
/* Never NULL: a signature that does not parse is found by a test. Thread safe. */
const lt_Signature *lt_op_signature(lt_OpId op);
/* Parses a signature in ops.def's grammar; false when it has an error. `text` must stay as long as
 * the result is used. */
bool lt_signature_parse(lt_Signature *g, const char *text);
/* A type as signatures write it: "Tensor"; NULL of a union. */
const char *lt_param_type_name(lt_ParamType type);
/* May a string parameter be this word? */
bool lt_param_allows(const lt_Param *p, const char *word);
/* The words that it may be, "'mean', 'sum' or 'none'", for messages; returns `out`. */
const char *lt_param_choices(const lt_Param *p, char *out, size_t size);
/* By name, -1 when there is none. */
int lt_op_find(const char *name);

typedef struct lt_Namespace {
  const char *flag, *name, *doc;
} lt_Namespace;

extern const lt_Namespace lt_namespaces[LT_SPACE_COUNT];
/* What an op of this name is called in the namespace: "norm" of "linalg_norm" in linalg. */
const char *lt_namespace_op_name(int space, const char *op);

/* Returns true when the kernel of an in-place op writes argument i, a tensor, besides self. */
static inline bool lt_call_writes(const lt_Call *c, int i) {
  return (c->signature->written >> i & 1) != 0;
}

/* ---- ops without a kernel (fallback.c, composite_kernel.c) ----------------------------------- */

/* Runs a call whose device has no kernel for it on the CPU: with copies of its operands, through
 * `run`, and copies the results, and what the op writes, back. Random ops draw the numbers that the
 * device would have drawn. The host is blocked until the operands have been copied. Returns false
 * with the error, which is about the missing kernel where lt_fallback_enabled() does not hold. */
bool lt_fallback_run(lt_Call *c, bool (*run)(lt_Call *host));

/* The op written in other ops, for devices without a kernel for it; NULL: it has no such form. The
 * function is of the kind of a composite op's. */
bool (*lt_composite_form(lt_OpId op))(lt_Call *call);
/* How complex tensors are computed by an op with the trait PARTS or BILINEAR. */
bool lt_form_by_parts(lt_Call *call);

/* ---- maps (map.c) ---------------------------------------------------------------------------- */

/* Is everything right for the kernel? A map's `infer`. */
bool lt_map_check(lt_Call *c);
/* After the run: counts what was written as changed. */
void lt_map_touch(const lt_Call *c);
/* How many bytes it writes. */
int64_t lt_map_bytes(const lt_Call *c);

/* ---- scopes: temporaries of composites and gradients ----------------------------------------- */

/* Opens a scope; lt_do's results belong to the innermost one. Dispatch opens one around every
 * composite and gradient function, so those just write chains of lt_do and return or store what
 * they want kept. */
size_t lt_scope_open(void);
/* Frees the scope's tensors; `keep` (may be NULL) survives with one reference for the caller. */
lt_Tensor *lt_scope_close(size_t mark, lt_Tensor *keep);
/* Gives one reference to the scope; returns t. NULL when t is NULL or memory ran out. */
lt_Tensor *lt_scope_own(lt_Tensor *t);
/* The op's result number `result`, from 0; what else it gives is released. */
lt_Tensor *lt_do_(lt_OpId op, bool in_place, const lt_Arg *args, int nargs, int result);
#define LT_ARGS_(...)                                                                              \
  (const lt_Arg[]){__VA_ARGS__}, (int)(sizeof((lt_Arg[]){__VA_ARGS__}) / sizeof(lt_Arg))
/* The first result of an op, e.g. lt_do(mul, LT_ARG(x), LT_ARG(y)); NULL passes through. */
#define lt_do(op, ...)          lt_do_(LT_OP_##op, false, LT_ARGS_(__VA_ARGS__), 0)
#define lt_do_in_place(op, ...) lt_do_(LT_OP_##op, true, LT_ARGS_(__VA_ARGS__), 0)

/* ---- autograd's side of a call (autograd/record.c) ------------------------------------------- */

/* Would the result of this call require grad? */
bool lt_autograd_wanted(const lt_Call *c);
/* Of a call with a complex result: returns false, with an error, when the result would require
 * grad. */
bool lt_autograd_check_complex(const lt_Call *c);
/* Before an in-place op writes c->arg[0]: leaf, view and inference rules. */
bool lt_autograd_check_in_place(const lt_Call *c);
/* Why an op that is never recorded may not write t: the rest of a sentence; NULL: it may. */
const char *lt_autograd_refuses(const lt_Tensor *t);
/* Before the run of an in-place op that is recorded: keeps what its gradient needs of self's old
 * values. */
bool lt_autograd_before_in_place(lt_Call *c, void **state);
/* After the run: joins the results to the graph. */
bool lt_autograd_record(lt_Call *c);
bool lt_autograd_record_in_place(lt_Call *c, void *state);
/* The run failed: lets go of the state. */
void lt_autograd_drop_in_place(void *state);
/* After a view was made (recorded or not): remembers what it is a view of. */
bool lt_autograd_note_view(lt_Call *c);
void lt_autograd_meta_free(lt_AutogradMeta *meta);
/* Notifies the owned hooks of a tensor whose number of references has changed whether they are
 * held. */
void lt_hooks_tell(lt_AutogradMeta *meta);

/* ---- small blocks (pool.c) ------------------------------------------------------------------- */

/* Tensors and small storages come and go by the million, and a host's collector frees them in
 * bursts, which malloc's own caches do not hold. Blocks of a kind are kept by the thread that
 * freed them. */
typedef enum lt_PoolKind {
  LT_POOL_TENSOR,
  LT_POOL_STORAGE,
  LT_POOL_META,
  LT_POOL_NODE,
  LT_POOL_KINDS
} lt_PoolKind;
typedef struct lt_Pool {
  void *first; /* each block's first word names the next */
  int count;
} lt_Pool;
/* A block for `size` bytes, which are the same in every call for a kind; NULL when memory is out
 * (no message). */
void *lt_pool_take(lt_PoolKind kind, size_t size);
void lt_pool_give(lt_PoolKind kind, void *block);

/* ---- operands in use (tensor.c) -------------------------------------------------------------- */

/* The operands of a running call. While memory is allocated, or in a hook, the host may run code of
 * the user that frees a tensor: a tensor that is in use keeps its storage and geometry until the
 * end of the call. Functions of the core that allocate between reading a tensor of the caller's and
 * its last use enter its operands here, on their stack, and leave before they return; the caller
 * holds a reference to each operand. */
typedef struct lt_Use {
  const lt_Arg *args; /* those of kind TENSOR and TENSORS count */
  int nargs;
  struct lt_Use *outer; /* the call that this one runs in */
} lt_Use;

/* ---- the thread's state (error.c) ------------------------------------------------------------ */

/* A tensor that memory is being allocated for; shape is NULL when it is for none. */
typedef struct lt_Making {
  lt_Dtype dtype;
  int ndim;
  const int64_t *shape;
} lt_Making;

/* Two tensors on different devices, as an error tells of them. */
typedef struct lt_Apart {
  const lt_Tensor *tensor[2]; /* to compare, no more */
  const lt_Storage *memory[2];
  char op[64], name[2][32];
  lt_Device device[2];
  int ndim[2];
  int64_t shape[2][LT_MAX_DIMS];
  int moved; /* which of them had better go to the other's device */
} lt_Apart;

typedef enum lt_ErrorKind {
  LT_ERROR_PLAIN,
  LT_ERROR_MEMORY, /* memory ran out */
  LT_ERROR_DEVICES /* two tensors are on different devices */
} lt_ErrorKind;

/* The reason of the last failure. Only the functions below write it: each sets text and kind. */
typedef struct lt_ErrorSlot {
  char text[2048];
  lt_ErrorKind kind;
  lt_Apart apart; /* of LT_ERROR_DEVICES */
} lt_ErrorSlot;

#define LT_SCOPE_FIRST 256
typedef struct lt_Thread {
  lt_ErrorSlot error;
  const char *user_op; /* outermost op of the running call */
  bool user_in_place;
  bool grad_off, inference_on;
  /* What the host that calls now has set for its program, in place of the process's defaults. */
  bool has_defaults;
  lt_Dtype default_dtype;
  lt_Device default_device;
  lt_FallbackMode fallback;
  /* The host's program and its coroutine that call now: addresses to compare. NULL: not known. */
  void *host;
  const void *host_coroutine;
  bool own_grad_off, own_inference_on; /* modes from before the host came */
  lt_Tensor **scope;                   /* temporaries, a stack */
  size_t scope_count, scope_room;
  lt_Tensor *scope_first[LT_SCOPE_FIRST];
  lt_PressureFn pressure;
  void *pressure_context;
  bool in_pressure;
  lt_TrimFn trim;
  void *trim_context;
  lt_WhereFn where;
  void *where_context;
  lt_Making making; /* what an allocation is for, while lt_empty allocates */
  lt_Pool pool[LT_POOL_KINDS];
  uint64_t node_sequence;    /* of the tape: nodes made so far */
  struct lt_Node *dead_node; /* nodes that are being freed, a list */
  bool freeing_nodes;
  bool way_back;             /* of the tape: the gradient of a copy goes to where that came from */
  struct lt_Tracer *tracers; /* trace.h; NULL: nobody listens */
  struct lt_TraceSpan *span; /* the innermost event that is going on */
  struct lt_Recorder *recorder; /* recorder.h; NULL: calls on meta are not recorded */
  lt_Use *use;                  /* operands of the innermost running call */
  int frees_at_exit;            /* tensors that are LT_FREED_AT_EXIT */
} lt_Thread;
/* Its address never changes, so that it need not be asked for twice. */
lt_Thread *lt_thread(void) __attribute__((const));

static inline void lt_use_enter(lt_Thread *th, lt_Use *use, const lt_Arg *args, int nargs) {
  *use = (lt_Use){args, nargs, th->use};
  th->use = use;
}
/* Frees the operands of `use` that lt_tensor_free was called on meanwhile and no outer call
 * uses. */
void lt_use_free(lt_Thread *th, const lt_Use *use);
static inline void lt_use_leave(lt_Thread *th, lt_Use *use) {
  th->use = use->outer;
  if (__builtin_expect(th->frees_at_exit != 0, 0)) lt_use_free(th, use);
}
/* Returns true when a running call of this thread uses t. */
bool lt_in_use(const lt_Tensor *t);
/* lt_tensor_usable for the tensor, or each tensor of the list, that an argument is. */
bool lt_arg_usable(const lt_Arg *a, const char *name);

/* Fills the slot with what lt_error_name says of tensors that nobody has a name for; returns
 * false. */
bool lt_error_apart(const lt_Apart *apart);
/* No reason: shows whether what is called next gives one. */
void lt_error_clear(void);
/* The reason, whatever it says, is not that memory ran out: nobody tries again. */
void lt_error_not_memory(void);
/* Copies the slot, and puts the copy back: around calls whose failures are not the caller's. */
void lt_error_keep(lt_ErrorSlot *kept);
void lt_error_restore(const lt_ErrorSlot *kept);

#endif
