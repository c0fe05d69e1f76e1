/* lutra.h: the public header of the tensor runtime.
 *
 * The runtime knows no Lua and no vendor. Any C program can embed it:
 *
 *   lt_Tensor *x = lt_empty(LT_float32, lt_cpu(), 2, (int64_t[]){3, 4});
 *   lt_Tensor *y = lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(x)}, 1);
 *
 * Errors: a function that can fail returns NULL or false and leaves the reason in the thread's
 * error slot (lt_error). Nothing is half done. A NULL tensor given to an op passes through as NULL
 * without touching the slot, so that a chain of ops needs one check, at its end.
 *
 * Ownership: tensors are reference counted (atomically). A function that returns a tensor gives
 * the caller one reference, except where it says 'borrowed', and except lt_do, whose results
 * belong to the open scope.
 *
 * Counting: int dims and positions in C count from 0; in messages, and inside index tensors, from
 * LT_INDEX_BASE.
 */
#ifndef LUTRA_H
#define LUTRA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dtypes.h"

#define LT_VERSION  "0.1.0"
#define LT_MAX_ARGS 16 /* arguments of an op */
#define LT_MAX_OUT  3  /* results of an op that are known from its signature */

/* ---- dtypes ---------------------------------------------------------------------------------- */

const char *lt_dtype_name(lt_Dtype d);
const char *lt_dtype_code(lt_Dtype d); /* safetensors' short name */
size_t lt_dtype_size(lt_Dtype d);      /* bytes */
lt_Category lt_dtype_category(lt_Dtype d);
static inline bool lt_dtype_is_float(lt_Dtype d) { return d >= LT_float16 && d <= LT_float64; }
static inline bool lt_dtype_is_complex(lt_Dtype d) {
  return d == LT_complex64 || d == LT_complex128;
}
/* The dtype of the parts of a complex dtype; other dtypes as they are. */
lt_Dtype lt_dtype_real(lt_Dtype d);
/* The complex dtype whose parts hold numbers of d: complex128 for float64, else complex64. */
lt_Dtype lt_dtype_complex(lt_Dtype d);
lt_Dtype lt_dtype_compute(lt_Dtype d);    /* what the CPU's elementwise loops compute in */
lt_Dtype lt_dtype_accumulate(lt_Dtype d); /* what sums are kept in */
lt_Dtype lt_dtype_promote(lt_Dtype a, lt_Dtype b);
/* By name; LT_DTYPE_NONE and an error that lists the dtypes when there is none of that name. */
lt_Dtype lt_dtype_from_name(const char *name);
/* The dtype of new float tensors: float32 unless set. One for the process; a host with programs of
 * its own (a Lua state) has one for each. */
lt_Dtype lt_dtype_default(void);
bool lt_dtype_set_default(lt_Dtype d);

/* A number together with its kind: kinds take part in promotion as Python's int, float, complex and
 * bool do. */
typedef struct lt_Scalar {
  lt_Category kind;
  union {
    int64_t i; /* LT_BOOL, LT_INTEGER */
    double f;  /* LT_FLOATING; LT_COMPLEX: the real part */
  };
  double im; /* LT_COMPLEX: the imaginary part */
} lt_Scalar;
static inline lt_Scalar lt_scalar_int(int64_t i) { return (lt_Scalar){LT_INTEGER, {.i = i}, 0}; }
static inline lt_Scalar lt_scalar_bool(bool b) { return (lt_Scalar){LT_BOOL, {.i = b}, 0}; }
static inline lt_Scalar lt_scalar_float(double f) {
  lt_Scalar s = {LT_FLOATING, {0}, 0};
  s.f = f;
  return s;
}
static inline lt_Scalar lt_scalar_complex(double re, double im) {
  lt_Scalar s = {LT_COMPLEX, {0}, im};
  s.f = re;
  return s;
}
/* Of a complex number the real part, here and in lt_scalar_to_int. */
static inline double lt_scalar_to_double(lt_Scalar s) {
  return s.kind >= LT_FLOATING ? s.f : (double)s.i;
}
int64_t lt_scalar_to_int(lt_Scalar s); /* truncates, NaN is 0, the rest saturates */
/* The number as messages write it: "1.5", "1 + 2i". */
const char *lt_scalar_text(lt_Scalar s);
/* The most bytes of an element, and the alignment of memory for one. */
#define LT_MAX_ELEMENT 16
/* Writes s as one element of dtype d. A number that does not fit an integer dtype is an error, and
 * so is one with an imaginary part for a dtype that is not complex. */
bool lt_scalar_store(lt_Scalar s, lt_Dtype d, void *element);
/* The largest finite number of a float dtype. */
double lt_dtype_largest(lt_Dtype d);
lt_Scalar lt_scalar_load(lt_Dtype d, const void *element);

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct lt_Device {
  uint8_t type;  /* row of the device table */
  uint8_t index; /* hardware number, from 0 */
} lt_Device;

#define LT_MAX_DEVICE_TYPES 12
enum {
#define LT_DEVICE(name, ...) LT_DEVICE_##name,
#include "devices.def"
#undef LT_DEVICE
  LT_DEVICE_KNOWN
};
static inline lt_Device lt_cpu(void) { return (lt_Device){LT_DEVICE_cpu, 0}; }
static inline lt_Device lt_meta(void) { return (lt_Device){LT_DEVICE_meta, 0}; }
static inline bool lt_device_equal(lt_Device a, lt_Device b) {
  return a.type == b.type && a.index == b.index;
}
/* The full form ("cpu", "cuda:0"); lives as long as the program. */
const char *lt_device_name(lt_Device d);
/* Checks a name and fills the number in; on failure an error that says why and names the devices
 * here. */
bool lt_device_parse(const char *name, lt_Device *out);
int lt_device_type_count(void);
const char *lt_device_type_name(int type);
/* Devices of a type on this machine: 0 with the reason in `why` (if not NULL) when there is
 * none. */
int lt_device_count(int type, char *why, size_t why_size);
/* Is there code for a type, whether or not there is a device? */
bool lt_device_is_built(int type);
/* Where factory functions create tensors; as lt_dtype_default, one for the process or the
 * program. */
lt_Device lt_device_default(void);
bool lt_device_set_default(lt_Device d);
/* May an op that its device has no kernel for run on the CPU, with copies of its operands? (It
 * writes one warning for each op to stderr. Otherwise such an op is an error.) One mode for the
 * process or the program, as lt_dtype_default; until it is set, LUTRA_FALLBACK in the environment
 * decides: 1 is yes. */
typedef enum lt_FallbackMode {
  LT_FALLBACK_BY_ENVIRONMENT,
  LT_FALLBACK_OFF,
  LT_FALLBACK_ON
} lt_FallbackMode;
lt_FallbackMode lt_fallback_mode(void);
bool lt_fallback_enabled(void);
void lt_fallback_set_enabled(bool on);
/* Asks, before a device of such a type has been asked for, that it be emulated: "cuda:2", or a list
 * with options, "cuda:2,memory=1GiB". False with the reason. LUTRA_EMULATE in the environment does
 * the same. */
bool lt_device_emulate(const char *what);
/* Waits until all work on the device is done. */
bool lt_device_synchronize(lt_Device d);

/* ---- errors ---------------------------------------------------------------------------------- */

const char *lt_error(void); /* the thread's last reason */
/* Fills the slot; returns NULL so that a function can `return lt_error_set(...)`. */
void *lt_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* True when the slot's reason is that memory ran out. */
bool lt_error_is_memory(void);
/* The two tensors of which the slot's reason says that they are on different devices, and their
 * memory: fills both and returns true. Addresses to compare, no more: they may have been
 * temporaries. */
struct lt_Storage;
struct lt_Tensor;
bool lt_error_tensors(const struct lt_Tensor *tensor[2], const struct lt_Storage *memory[2]);
/* What a program knows of such a tensor; NULL: it does not. */
typedef struct lt_Known {
  const char *name;   /* "x", "a view of x" */
  const char *note;   /* to follow its device: " (made at train.lua:12)" */
  const char *device; /* how the device is written: "x.device" */
  const char *move;   /* what to move for it: "net", whose parameter it is */
} lt_Known;
/* Says that reason again, in the words of the program. */
void lt_error_name(const lt_Known known[2]);

/* ---- storages and tensors -------------------------------------------------------------------- */

typedef struct lt_Stream lt_Stream; /* device.h */
struct lt_Event;

/* Memory on a device, shared by the views on it. */
typedef struct lt_Storage {
  atomic_int refs;
  atomic_uint version; /* counts writes: autograd compares */
  lt_Device device;
  size_t nbytes;
  void *data;                               /* NULL on meta and when empty */
  lt_Stream *stream;                        /* where it was allocated; NULL: the device's default */
  void (*release)(struct lt_Storage *self); /* gives `data` back; NULL: nothing to give back */
  void *owner;                              /* release's own */
  const char *writer; /* the op that last wrote in place, for messages; NULL: none has */
  /* Of the host's memory: a copy from or to it that may still be under way. lt_tensor_data waits
   * for it, so nobody sees half a copy and nobody changes its source. */
  struct lt_Event *_Atomic pending;
  bool pinned; /* the host's memory that devices can copy from and to by themselves */
  atomic_bool pending_writes; /* the copy that is under way, if one is, may change this memory */
} lt_Storage;

typedef struct lt_AutogradMeta lt_AutogradMeta; /* autograd/autograd.h */

/* Has lt_tensor_free been called on a tensor? */
typedef enum lt_FreeState {
  LT_LIVE,
  LT_FREED,        /* it is empty, and no function takes it any more */
  LT_FREED_AT_EXIT /* a running call uses it; its memory is freed at the end of that call */
} lt_FreeState;

typedef struct lt_Tensor {
  atomic_int refs;
  lt_Dtype dtype;
  int ndim;
  bool requires_grad; /* a leaf that asks for it, or a result with a grad_fn */
  bool inference;     /* made under inference mode */
  uint8_t freed;      /* lt_FreeState */
  bool hooked;        /* has hooks that are told whether they are held */
  lt_Storage *storage;
  int64_t offset; /* of the first element in the storage, in elements */
  int64_t numel;
  lt_AutogradMeta *meta; /* NULL until autograd needs it */
  int64_t shape[LT_MAX_DIMS];
  int64_t strides[LT_MAX_DIMS]; /* in elements */
} lt_Tensor;

/* A new contiguous tensor, uninitialised; on meta without memory. */
lt_Tensor *lt_empty(lt_Dtype dtype, lt_Device device, int ndim, const int64_t *shape);
/* One element, of the CPU. */
lt_Tensor *lt_scalar_tensor(lt_Scalar s, lt_Dtype dtype);
/* A tensor of the given geometry on an existing storage, which gets one more reference. */
lt_Tensor *lt_tensor_on(lt_Storage *storage, lt_Dtype dtype, int64_t offset, int ndim,
                        const int64_t *shape, const int64_t *strides);
lt_Tensor *lt_retain(lt_Tensor *t); /* NULL stays NULL */
void lt_release(lt_Tensor *t);      /* NULL is fine */
static inline lt_Device lt_tensor_device(const lt_Tensor *t) { return t->storage->device; }
static inline bool lt_tensor_is_meta(const lt_Tensor *t) {
  return t->storage->device.type == LT_DEVICE_meta;
}
/* Waits for a copy that is under way; see lt_Storage.pending. */
void lt_storage_settle(lt_Storage *s);
/* Where the first element is, on t's device; NULL when there is no memory. Waits for nothing. */
static inline void *lt_tensor_place(const lt_Tensor *t) {
  return t->storage->data ? (char *)t->storage->data + (size_t)t->offset * lt_dtype_size(t->dtype)
                          : NULL;
}
/* The same, to read and write there now. */
static inline void *lt_tensor_data(const lt_Tensor *t) {
  if (atomic_load_explicit(&t->storage->pending, memory_order_acquire))
    lt_storage_settle(t->storage);
  return lt_tensor_place(t);
}
bool lt_tensor_is_contiguous(const lt_Tensor *t);
/* The value of a tensor of one element, read from any device (waits for it). */
bool lt_tensor_item(const lt_Tensor *t, lt_Scalar *out);
/* Gives t the storage, geometry and dtype of another tensor; identity, grad and hooks stay. Fails
 * while a running call of this thread uses t. */
bool lt_tensor_set_data(lt_Tensor *t, lt_Tensor *data);
/* Frees t's memory (views on it keep it) and takes t out of the graph. Every function refuses t
 * from then on; a second call does nothing. Returns false when a running call of this thread uses
 * t: its memory is freed at the end of that call. Allocates nothing. */
bool lt_tensor_free(lt_Tensor *t);
/* Returns true when t may be used, also when it is NULL; false, with an error of `op` that names
 * the argument, when it was freed. op NULL: the one that the user called. */
bool lt_tensor_usable(const lt_Tensor *t, const char *op, const char *argument);

lt_Storage *lt_storage_new(lt_Device device, size_t nbytes);
/* Of the host's memory that devices of this type can copy from and to by themselves. */
lt_Storage *lt_storage_new_pinned(int device_type, size_t nbytes);
lt_Storage *lt_storage_retain(lt_Storage *s);
void lt_storage_release(lt_Storage *s);

/* Bytes that live storages hold, over all devices. A host with a garbage collector watches it. */
int64_t lt_memory_live(void);
/* Gives the host's free memory back to the system, as far as its allocator can (glibc's); takes
 * milliseconds, and new tensors are slower at first. */
void lt_memory_trim(void);
/* Called before that, on the thread that set it: gives the host's own caches to free. */
typedef void (*lt_TrimFn)(void *context);
void lt_memory_on_trim(lt_TrimFn fn, void *context);
/* Called when an allocation fails: frees what it can, returns whether to try again. Per thread. */
typedef bool (*lt_PressureFn)(void *context, size_t wanted);
void lt_memory_on_pressure(lt_PressureFn fn, void *context);
/* Called when memory of an accelerator is allocated: writes the line of the host's program that
 * asks for it ("train.lua:12"), for messages about memory. Per thread. */
typedef void (*lt_WhereFn)(void *context, char *text, size_t size);
void lt_memory_on_where(lt_WhereFn fn, void *context);

/* ---- shapes ---------------------------------------------------------------------------------- */

/* "{3, 4}", for messages: in a ring of buffers, good for the message that is being made. */
const char *lt_shape_text(int ndim, const int64_t *shape);
/* A number for messages, likewise: printf's %g, but NaN never has a sign. */
const char *lt_number_text(double v);
/* Product of sizes; false on a negative size (named `op: ...`) or on overflow of int64. */
bool lt_shape_numel(const char *op, int ndim, const int64_t *shape, int64_t *numel);
void lt_shape_strides(int ndim, const int64_t *shape, int64_t *strides); /* contiguous ones */

/* ---- ops ------------------------------------------------------------------------------------- */

typedef struct lt_Generator lt_Generator; /* random.c */

typedef enum lt_ArgKind {
  LT_ARG_NIL, /* not given */
  LT_ARG_TENSOR,
  LT_ARG_TENSORS, /* a list, entries may be NULL where the op says so */
  LT_ARG_SCALAR,
  LT_ARG_INT,
  LT_ARG_FLOAT,
  LT_ARG_BOOL,
  LT_ARG_STRING,
  LT_ARG_INTS,
  LT_ARG_DTYPE,
  LT_ARG_DEVICE,
  LT_ARG_GENERATOR
} lt_ArgKind;

/* One argument of an op. Lists and strings are borrowed for the length of the call. */
typedef struct lt_Arg {
  lt_ArgKind kind;
  int count; /* of a list */
  union {
    lt_Tensor *tensor;
    lt_Tensor *const *tensors;
    lt_Scalar scalar;
    int64_t i;
    double f;
    bool b;
    const char *string;
    const int64_t *ints;
    lt_Dtype dtype;
    lt_Device device;
    lt_Generator *generator;
  };
} lt_Arg;

static inline lt_Arg lt_arg_tensor(lt_Tensor *t) {
  return (lt_Arg){LT_ARG_TENSOR, 0, {.tensor = t}};
}
static inline lt_Arg lt_arg_int(int64_t i) { return (lt_Arg){LT_ARG_INT, 0, {.i = i}}; }
static inline lt_Arg lt_arg_float(double f) { return (lt_Arg){LT_ARG_FLOAT, 0, {.f = f}}; }
static inline lt_Arg lt_arg_bool(bool b) { return (lt_Arg){LT_ARG_BOOL, 0, {.b = b}}; }
static inline lt_Arg lt_arg_string(const char *s) {
  return (lt_Arg){LT_ARG_STRING, 0, {.string = s}};
}
static inline lt_Arg lt_arg_scalar(lt_Scalar s) {
  return (lt_Arg){LT_ARG_SCALAR, 0, {.scalar = s}};
}
static inline lt_Arg lt_arg_dtype(lt_Dtype d) { return (lt_Arg){LT_ARG_DTYPE, 0, {.dtype = d}}; }
static inline lt_Arg lt_arg_device(lt_Device d) {
  return (lt_Arg){LT_ARG_DEVICE, 0, {.device = d}};
}
static inline lt_Arg lt_arg_generator(lt_Generator *g) {
  return (lt_Arg){g ? LT_ARG_GENERATOR : LT_ARG_NIL, 0, {.generator = g}};
}
static inline lt_Arg lt_arg_ints(const int64_t *p, int n) {
  return (lt_Arg){LT_ARG_INTS, n, {.ints = p}};
}
static inline lt_Arg lt_arg_tensors(lt_Tensor *const *p, int n) {
  return (lt_Arg){LT_ARG_TENSORS, n, {.tensors = p}};
}
static inline lt_Arg lt_arg_same(lt_Arg a) { return a; }
#define LT_NIL           ((lt_Arg){.kind = LT_ARG_NIL})
#define LT_INTS(p, n)    lt_arg_ints(p, n)
#define LT_TENSORS(p, n) lt_arg_tensors(p, n)

/* An lt_Arg from a C value of any of the plain types (enum lt_Dtype: use lt_arg_dtype). */
#define LT_ARG(value)                                                                              \
  _Generic((value),                                                                                \
      lt_Tensor *: lt_arg_tensor,                                                                  \
      bool: lt_arg_bool,                                                                           \
      int: lt_arg_int,                                                                             \
      long: lt_arg_int,                                                                            \
      long long: lt_arg_int,                                                                       \
      double: lt_arg_float,                                                                        \
      const char *: lt_arg_string,                                                                 \
      char *: lt_arg_string,                                                                       \
      lt_Scalar: lt_arg_scalar,                                                                    \
      lt_Device: lt_arg_device,                                                                    \
      lt_Generator *: lt_arg_generator,                                                            \
      lt_Arg: lt_arg_same)(value)

/* What an op gave: `count` tensors at `items`, each one reference of the caller's; or a number (->
 * bool). */
typedef struct lt_Results {
  int count;
  bool is_list; /* the signature says Tensor[] */
  bool is_flag; /* the signature says bool; `flag` holds it */
  bool flag;
  lt_Tensor *few[LT_MAX_OUT];
  lt_Tensor **many; /* malloc'ed when is_list */
} lt_Results;
static inline lt_Tensor **lt_results_items(lt_Results *r) { return r->is_list ? r->many : r->few; }
void lt_results_release(lt_Results *r);

/* Runs an op. Missing trailing arguments and LT_NIL take the signature's defaults. On failure
 * false, nothing is changed, and r is empty. `in_place`: the op's in-place variant, args[0] is
 * written and is the result. */
bool lt_call(lt_OpId op, bool in_place, const lt_Arg *args, int nargs, lt_Results *r);
/* The first result of an op, owned by the caller. */
lt_Tensor *lt_op1(lt_OpId op, const lt_Arg *args, int nargs);

/* ---- random numbers -------------------------------------------------------------------------- */

lt_Generator *lt_generator_new(uint64_t seed);
void lt_generator_free(lt_Generator *g);
lt_Generator *lt_generator_default(void);
void lt_generator_seed(lt_Generator *g, uint64_t seed); /* and starts the sequence again */
void lt_generator_get_state(const lt_Generator *g, uint64_t state[2]); /* seed, position */
void lt_generator_set_state(lt_Generator *g, const uint64_t state[2]);
uint64_t lt_random_seed(void); /* from the system's entropy */

/* ---- autograd -------------------------------------------------------------------------------- */

bool lt_grad_enabled(void);
bool lt_grad_set_enabled(bool on); /* returns what it was */
bool lt_inference_enabled(void);
bool lt_inference_set_enabled(bool on); /* returns what it was */
bool lt_tensor_is_leaf(const lt_Tensor *t);
/* Hosts ask this and not the field, which lags behind on a view whose base was changed in place on
 * the tape. */
bool lt_tensor_requires_grad(lt_Tensor *t);
bool lt_op_has_gradient(lt_OpId op);                     /* composites: false, their parts have */
bool lt_tensor_set_requires_grad(lt_Tensor *t, bool on); /* leaves of float dtype only */
lt_Tensor *lt_tensor_grad(lt_Tensor *t);                 /* borrowed, NULL when there is none */
bool lt_tensor_set_grad(lt_Tensor *t,
                        lt_Tensor *grad); /* NULL clears; shape, dtype, device are checked */
bool lt_tensor_retain_grad(lt_Tensor *t);
const char *lt_tensor_grad_fn_name(const lt_Tensor *t); /* "MulBackward", NULL for leaves */

/* d sum(tensors * grads) into the leaves' grad. grads[i] NULL: ones, for tensors of one element.
 * inputs: only into these (NULL: all leaves). A failure leaves every grad as it was; without
 * retain_graph a part of the graph may be gone. With create_graph a leaf's grad holds the graph,
 * and the graph the leaf: clear the grad when done with it. */
bool lt_backward(int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, bool retain_graph,
                 bool create_graph, int ninputs, lt_Tensor *const *inputs);
/* The same, returned in out[0..ninputs), one reference each; unused inputs are an error unless
 * allowed (then NULL). */
bool lt_grad(int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, bool retain_graph,
             bool create_graph, bool allow_unused, int ninputs, lt_Tensor *const *inputs,
             lt_Tensor **out);

/* A hook sees a tensor's gradient and may give another (one reference) in *replacement; false
 * stops with the slot's error. `forget` is called when the hook goes away. Returns an id > 0, or 0
 * on failure. */
typedef bool (*lt_HookFn)(void *context, lt_Tensor *grad, lt_Tensor **replacement);
int lt_tensor_add_hook(lt_Tensor *t, lt_HookFn fn, void *context, void (*forget)(void *context));
bool lt_tensor_remove_hook(lt_Tensor *t, int id);
/* A hook for a host with a garbage collector, where an object that holds one reference to the
 * tensor owns what `context` stands for. `held` is told whether something else could run the hook:
 * a graph that leads to the tensor, a view, another reference. While it is not held, the object is
 * all that needs what the context stands for, so that the collector sees a cycle through it. Hooks
 * begin as not held. `held` calls no function of the core. fn may be NULL: then only `held` is of
 * interest. */
typedef void (*lt_HeldFn)(void *context, bool held);
int lt_tensor_add_owned_hook(lt_Tensor *t, lt_HookFn fn, void *context,
                             void (*forget)(void *context), lt_HeldFn held);
/* The object that owns these hooks goes away, before it releases t: from now on they are held. */
void lt_tensor_disown_hooks(lt_Tensor *t);

/* A function of the host's own. The outputs, made under no_grad from the inputs, are joined to the
 * graph; backward is given one gradient per output (NULL where none came, or zeros if it asks) and
 * fills one per input (NULL: none). */
typedef struct lt_CustomFunction {
  const char *name; /* copied */
  bool (*backward)(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                   lt_Tensor **input_grads);
  void (*forget)(void *context); /* the node goes away */
  void (*release)(
      void *context); /* saved values go away after backward without retain_graph; may be NULL */
  void *context;
} lt_CustomFunction;
bool lt_autograd_custom(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                        int noutputs, lt_Tensor **outputs);
/* For the host that saves tensors itself: the version to remember, and the check when it is used
 * again. */
unsigned lt_tensor_version(const lt_Tensor *t);

/* ---- the rest -------------------------------------------------------------------------------- */

/* Checks the environment variables that Lutra reads when it starts (LUTRA_CPU_CAPABILITY,
 * LUTRA_OPENBLAS_CORETYPE, LUTRA_EMULATE, LUTRA_FALLBACK, LUTRA_MEMORY_DEBUG, OMP_NUM_THREADS).
 * Returns false with an error that names the variable, its value and the values that it takes. A
 * program that embeds Lutra calls it before the first op; Lua's module does so when it is
 * loaded. */
bool lt_environment_check(void);

int lt_num_threads(void);
bool lt_set_num_threads(int64_t n);
/* Asked by long loops; set from a signal handler: the running op stops with an error
 * "interrupted". */
extern atomic_bool lt_interrupt_flag;

#endif
