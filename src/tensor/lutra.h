/* lutra.h: the public header of the tensor runtime.
 *
 * The runtime depends neither on Lua nor on any vendor's library. Any C program can embed it:
 *
 *   lt_Tensor *x = lt_empty(LT_float32, lt_cpu(), 2, (int64_t[]){3, 4});
 *   lt_Tensor *y = lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(x)}, 1);
 *
 * Errors: a function that can fail returns NULL or false and stores the message in the thread's
 * error slot (lt_error). A call that fails changes nothing. A NULL tensor given to an op is
 * returned as NULL without touching the slot, so that a chain of ops needs one check, at its end.
 *
 * Ownership: tensors are reference counted. A function that returns a tensor gives the caller one
 * reference, except where it says 'borrowed', and except lt_do, whose results belong to the open
 * scope.
 *
 * Indices: dims and indices in C are 0-based. In messages, and as the values of index tensors, they
 * start at LT_INDEX_BASE.
 *
 * Threads: reference counts are atomic, so tensors can be shared between threads that only read
 * them. A tensor that one thread writes, and an autograd graph, belong to one thread at a time. The
 * error slot, the gradient modes and the callbacks of lt_memory_on_* are per thread.
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
#define LT_MAX_OUT  4  /* results of an op that are known from its signature */

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* Facts about a dtype: its name ("float32"), safetensors' short name ("F32"), the bytes of an
 * element, its category. The names are static. */
const char *lt_dtype_name(lt_Dtype d);
const char *lt_dtype_code(lt_Dtype d);
size_t lt_dtype_size(lt_Dtype d);
lt_Category lt_dtype_category(lt_Dtype d);
static inline bool lt_dtype_is_float(lt_Dtype d) { return d >= LT_float16 && d <= LT_float64; }
static inline bool lt_dtype_is_complex(lt_Dtype d) {
  return d == LT_complex64 || d == LT_complex128;
}
/* Returns true for the dtypes of tensors that can require grad: floats and complex numbers. */
static inline bool lt_dtype_has_gradient(lt_Dtype d) {
  return lt_dtype_is_float(d) || lt_dtype_is_complex(d);
}
/* Returns the dtype of the real part of a complex dtype, and any other dtype unchanged. */
lt_Dtype lt_dtype_real(lt_Dtype d);
/* Returns the complex dtype whose parts hold numbers of d: complex128 for float64, otherwise
 * complex64. */
lt_Dtype lt_dtype_complex(lt_Dtype d);
/* Returns the dtype in which the CPU's elementwise loops compute values of d. */
lt_Dtype lt_dtype_compute(lt_Dtype d);
/* Returns the dtype in which sums of values of d are accumulated. */
lt_Dtype lt_dtype_accumulate(lt_Dtype d);
/* Returns the dtype that an op on tensors of a and b has, by PyTorch's promotion rules. */
lt_Dtype lt_dtype_promote(lt_Dtype a, lt_Dtype b);
/* Returns the dtype of this name, or LT_DTYPE_NONE with an error that lists the dtypes. */
lt_Dtype lt_dtype_from_name(const char *name);
/* Returns and sets the dtype of new float tensors: float32 unless set. There is one for the
 * process, and one for each program of a host that has several (a Lua state). Setting a dtype that
 * is no float fails. */
lt_Dtype lt_dtype_default(void);
bool lt_dtype_set_default(lt_Dtype d);

/* A number and its kind. Kinds take part in type promotion as Python's bool, int, float and complex
 * do. */
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
/* Returns the number as a double; of a complex number the real part. */
static inline double lt_scalar_to_double(lt_Scalar s) {
  return s.kind >= LT_FLOATING ? s.f : (double)s.i;
}
/* Returns the number truncated to an integer: 0 for NaN, the nearest int64 for values out of range.
 * Of a complex number the real part. */
int64_t lt_scalar_to_int(lt_Scalar s);
/* Formats the number for a message: "1.5", "1 + 2i". Valid until the message is complete (see
 * lt_shape_text). */
const char *lt_scalar_text(lt_Scalar s);
/* The largest size of an element in bytes, and the alignment of memory for one. */
#define LT_MAX_ELEMENT 16
/* Writes s as one element of dtype d. Fails, and writes nothing, when s does not fit an integer
 * dtype, or when it has an imaginary part and d is not complex. */
bool lt_scalar_store(lt_Scalar s, lt_Dtype d, void *element);
/* Returns the largest finite number of a float dtype. */
double lt_dtype_largest(lt_Dtype d);
/* Reads one element of dtype d. */
lt_Scalar lt_scalar_load(lt_Dtype d, const void *element);

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct lt_Device {
  uint8_t type;  /* row of the device table */
  uint8_t index; /* 0-based: cuda:1 has index 1 */
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
/* Returns the full name ("cpu", "cuda:0"), which is valid as long as the program runs. */
const char *lt_device_name(lt_Device d);
/* Parses a device name; a name without a number ("cuda") means the current device of that type.
 * Fails, with an error that lists the devices of this machine, when there is no such device. */
bool lt_device_parse(const char *name, lt_Device *out);
/* Returns whether a name is that of a device type, with or without a number: "cuda", "cuda:1". */
bool lt_device_is_name(const char *name);
/* Fails with the error that a name is neither an available device's nor a dtype's. */
bool lt_device_refuse(const char *name);
/* Returns the number of known device types, and the name of one of them. */
int lt_device_type_count(void);
const char *lt_device_type_name(int type);
/* Returns the number of devices of a type on this machine. When it is 0, `why` (if not NULL) is
 * filled with the reason; the error slot is not touched. */
int lt_device_count(int type, char *why, size_t why_size);
/* Returns true when Lutra was built with support for a type, whether or not there is a device. */
bool lt_device_is_built(int type);
/* Returns and sets the device on which factory functions create tensors: the CPU unless set. One
 * for the process or the program, as lt_dtype_default. */
lt_Device lt_device_default(void);
bool lt_device_set_default(lt_Device d);
/* Whether an op for which its device has no kernel runs on the CPU, on copies of its operands, with
 * one warning for each op on stderr. Otherwise such an op is an error. One mode for the process or
 * the program, as lt_dtype_default; until it is set, the environment variable LUTRA_FALLBACK
 * decides: 1 turns it on. */
typedef enum lt_FallbackMode {
  LT_FALLBACK_BY_ENVIRONMENT,
  LT_FALLBACK_OFF,
  LT_FALLBACK_ON
} lt_FallbackMode;
lt_FallbackMode lt_fallback_mode(void);
bool lt_fallback_enabled(void);
void lt_fallback_set_enabled(bool on);
/* Requests emulated devices: "cuda:2", or a list with options, "cuda:2,memory=1GiB". Must be called
 * before a device of that type is used; fails afterwards, and when `what` does not parse. The
 * environment variable LUTRA_EMULATE does the same. */
bool lt_device_emulate(const char *what);
/* Blocks until all work on the device is done. Fails when that work failed, and on Ctrl-C. */
bool lt_device_synchronize(lt_Device d);

/* ---- errors ---------------------------------------------------------------------------------- */

/* Returns the message of this thread's last failure; valid until the next failure. */
const char *lt_error(void);
/* Formats a message into the slot. Returns NULL, so that a function can
 * `return lt_error_set(...)`. */
void *lt_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns true when the error in the slot is that memory could not be allocated. */
bool lt_error_is_memory(void);
/* Returns true when the error in the slot is that two tensors are on different devices, and fills
 * in their addresses and those of their storages. The addresses may only be compared: the tensors
 * may have been temporaries that are freed by now. */
struct lt_Storage;
struct lt_Tensor;
bool lt_error_tensors(const struct lt_Tensor *tensor[2], const struct lt_Storage *memory[2]);
/* How the host's program refers to such a tensor. A member that the host does not know is NULL. */
typedef struct lt_TensorLabel {
  const char *name;   /* "x", "a view of x" */
  const char *note;   /* appended to its device: " (made at train.lua:12)" */
  const char *device; /* an expression for its device: "x.device" */
  const char *move;   /* what to move instead of it: "net", whose parameter it is */
} lt_TensorLabel;
/* Formats that error again, with the names that the host's program uses. */
void lt_error_name(const lt_TensorLabel label[2]);

/* ---- storages and tensors -------------------------------------------------------------------- */

typedef struct lt_Stream lt_Stream; /* device.h */
struct lt_Event;

/* Memory on a device, shared by the tensors that are views of it. */
typedef struct lt_Storage {
  atomic_int refs;
  atomic_uint version; /* number of in-place writes; autograd compares it */
  lt_Device device;
  size_t nbytes;
  void *data;                               /* NULL on meta and when empty */
  lt_Stream *stream;                        /* that it was allocated on; NULL: the default one */
  void (*release)(struct lt_Storage *self); /* frees `data`; NULL: nothing to free */
  void *owner;                              /* for use by `release` */
  const char *writer; /* the op that last wrote in place, for messages; NULL: none */
  /* Of host memory: an asynchronous copy from or to it that may still be running. lt_tensor_data
   * blocks until it is done, so the host never reads a half-written copy and never changes the
   * source of one. */
  struct lt_Event *_Atomic pending;
  bool pinned;                /* page-locked host memory, for asynchronous copies */
  atomic_bool loose_bools;    /* bool tensors may read bytes other than 0 and 1: loose_bool.c */
  atomic_bool pending_writes; /* the pending copy, if any, writes this memory */
} lt_Storage;

typedef struct lt_AutogradMeta lt_AutogradMeta; /* autograd/autograd.h */

/* Whether lt_tensor_free has been called on a tensor. */
typedef enum lt_FreeState {
  LT_LIVE,
  LT_FREED,        /* it is empty, and every function refuses it */
  LT_FREED_AT_EXIT /* a running call uses it; its memory is freed at the end of that call */
} lt_FreeState;

typedef struct lt_Tensor {
  atomic_int refs;
  lt_Dtype dtype;
  int ndim;
  bool requires_grad; /* a leaf for which it was set, or a result with a grad_fn */
  bool inference;     /* created under inference mode */
  uint8_t freed;      /* lt_FreeState */
  bool hooked;        /* has owned hooks: reference count changes are reported to them */
  lt_Storage *storage;
  int64_t offset; /* of the first element in the storage, in elements */
  int64_t numel;
  lt_AutogradMeta *meta; /* NULL until autograd needs it */
  int64_t shape[LT_MAX_DIMS];
  int64_t strides[LT_MAX_DIMS]; /* in elements */
} lt_Tensor;

/* Creates a contiguous tensor with uninitialized memory; on meta without memory. Fails on a
 * negative size, too many dimensions, a size that overflows, and when memory is out. */
lt_Tensor *lt_empty(lt_Dtype dtype, lt_Device device, int ndim, const int64_t *shape);
/* Creates a 0-d tensor on the CPU with this value. Fails as lt_scalar_store does. */
lt_Tensor *lt_scalar_tensor(lt_Scalar s, lt_Dtype dtype);
/* Creates a tensor of this geometry on an existing storage, and retains the storage. The caller
 * guarantees that every element lies inside it. */
lt_Tensor *lt_tensor_on(lt_Storage *storage, lt_Dtype dtype, int64_t offset, int ndim,
                        const int64_t *shape, const int64_t *strides);
/* Adds a reference and returns t. NULL is allowed. */
lt_Tensor *lt_retain(lt_Tensor *t);
/* Removes a reference; the last one frees the tensor. NULL is allowed. Never fails. */
void lt_release(lt_Tensor *t);
static inline lt_Device lt_tensor_device(const lt_Tensor *t) { return t->storage->device; }
static inline bool lt_tensor_is_meta(const lt_Tensor *t) {
  return t->storage->device.type == LT_DEVICE_meta;
}
/* Returns whether t (may be NULL) is a bool tensor that may read bytes other than 0 and 1. */
bool lt_bools_are_loose(const lt_Tensor *t);
/* Blocks until the pending copy from or to this host memory is done; see lt_Storage.pending. */
void lt_storage_synchronize(lt_Storage *s);
/* Returns the address of the first element on t's device, NULL when there is no memory. Never
 * blocks, so a pending copy may still read or write there. */
static inline void *lt_tensor_place(const lt_Tensor *t) {
  return t->storage->data ? (char *)t->storage->data + (size_t)t->offset * lt_dtype_size(t->dtype)
                          : NULL;
}
/* Returns the same address; blocks first until no pending copy uses the memory. */
static inline void *lt_tensor_data(const lt_Tensor *t) {
  if (atomic_load_explicit(&t->storage->pending, memory_order_acquire))
    lt_storage_synchronize(t->storage);
  return lt_tensor_place(t);
}
bool lt_tensor_is_contiguous(const lt_Tensor *t);
/* Reads the value of a tensor of one element; blocks until its device has computed it. Fails when t
 * has another number of elements or no data. */
bool lt_tensor_item(const lt_Tensor *t, lt_Scalar *out);
/* Gives t the storage, geometry and dtype of another tensor; its identity, grad and hooks stay.
 * Fails while a running call of this thread uses t. */
bool lt_tensor_set_data(lt_Tensor *t, lt_Tensor *data);
/* Gives t the geometry and the place in the graph of `view`, a view of t that was just created; op
 * is a name for messages. Fails when `view` has another storage or dtype, when t is a leaf that
 * requires grad and gradients are enabled, and while a running call of this thread uses t. */
bool lt_tensor_set_view(lt_Tensor *t, const lt_Tensor *view, const char *op);
/* Frees t's memory (other views keep it) and removes t from the autograd graph. Every function
 * refuses t from then on; a second call does nothing. Returns false, without an error, when a
 * running call of this thread uses t: its memory is freed at the end of that call. Allocates
 * nothing. */
bool lt_tensor_free(lt_Tensor *t);
/* Returns true when t may be used, also when it is NULL. Returns false, with an error of `op` that
 * names the argument, when t was freed. op NULL: the op that the user called. */
bool lt_tensor_usable(const lt_Tensor *t, const char *op, const char *argument);

/* Allocates uninitialized memory, with one reference. NULL with the error when memory is out. */
lt_Storage *lt_storage_new(lt_Device device, size_t nbytes);
/* The same in pinned host memory, which devices of this type copy from and to asynchronously. */
lt_Storage *lt_storage_new_pinned(int device_type, size_t nbytes);
/* Creates a storage on host memory that exists, with one reference; `release` frees that memory and
 * may use `owner`. NULL with the error, and without a call of `release`, when memory is out. */
lt_Storage *lt_storage_on(void *data, size_t nbytes, void (*release)(lt_Storage *self),
                          void *owner);
/* Adds a reference and returns s. */
lt_Storage *lt_storage_retain(lt_Storage *s);
/* Removes a reference; the last one frees the memory. */
void lt_storage_release(lt_Storage *s);

/* Returns the bytes that all storages hold, over all devices. A host with a garbage collector
 * charges them to it. */
int64_t lt_memory_live(void);
/* Returns free host memory to the system where the allocator can do so (glibc's can). Takes
 * milliseconds, and the next allocations are slower. */
void lt_memory_trim(void);
/* Sets a callback that lt_memory_trim invokes first, on the thread that set it: it frees the host's
 * own caches. */
typedef void (*lt_TrimFn)(void *context);
void lt_memory_on_trim(lt_TrimFn fn, void *context);
/* Sets this thread's callback for failed allocations of `nbytes`: it frees what it can and returns
 * true when the allocation should be tried again. */
typedef bool (*lt_PressureFn)(void *context, size_t nbytes);
void lt_memory_on_pressure(lt_PressureFn fn, void *context);
/* Sets this thread's callback that writes the current line of the host's program ("train.lua:12")
 * into `text`. Invoked for allocations on an accelerator, for reports about memory. */
typedef void (*lt_WhereFn)(void *context, char *text, size_t size);
void lt_memory_on_where(lt_WhereFn fn, void *context);

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Formats a shape, "{3, 4}", for a message. The text lies in a ring of per-thread buffers: it is
 * valid for the message that is being formatted, no longer. */
const char *lt_shape_text(int ndim, const int64_t *shape);
/* Formats a number for a message in the same way: printf's %g, but NaN never has a sign. */
const char *lt_number_text(double v);
/* Computes the product of the sizes. Fails, with an error of `op` (NULL: of the running op), on a
 * negative size and when the product overflows int64. */
bool lt_shape_numel(const char *op, int ndim, const int64_t *shape, int64_t *numel);
/* Computes the strides of a contiguous tensor of this shape. */
void lt_shape_strides(int ndim, const int64_t *shape, int64_t *strides);

/* ---- ops ------------------------------------------------------------------------------------- */

typedef struct lt_Generator lt_Generator; /* random.c */

typedef enum lt_ArgKind {
  LT_ARG_NIL, /* not given */
  LT_ARG_TENSOR,
  LT_ARG_TENSORS, /* a list; entries may be NULL where the op allows it */
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

/* One argument of an op. Tensors, lists and strings are borrowed for the duration of the call. */
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

/* Makes an lt_Arg from a C value of one of these types. A dtype is an integer to the compiler: use
 * lt_arg_dtype. */
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

/* The results of an op: `count` tensors at lt_results_items, each with one reference that the
 * caller owns; or a boolean. */
typedef struct lt_Results {
  int count;
  bool is_list; /* the signature says Tensor[] */
  bool is_flag; /* the signature says bool; `flag` holds it */
  bool flag;
  lt_Tensor *few[LT_MAX_OUT];
  lt_Tensor **many; /* malloc'ed when is_list */
} lt_Results;
static inline lt_Tensor **lt_results_items(lt_Results *r) { return r->is_list ? r->many : r->few; }
/* Releases the tensors and the list, and leaves r empty. */
void lt_results_release(lt_Results *r);

/* Runs an op and fills r. Missing trailing arguments and LT_NIL take the signature's defaults.
 * `in_place`: the op's in-place variant, which writes args[0] and returns it. On failure returns
 * false, changes no tensor and leaves r empty. */
bool lt_call(lt_OpId op, bool in_place, const lt_Arg *args, int nargs, lt_Results *r);
/* The same, but writes the results into the tensors out[0..nout-1], which r returns. An empty one
 * gets the result's shape and new memory; others must have it. Their dtype may be of a higher
 * category than the result's. Fails, without a change, when a result would require grad. */
bool lt_call_out(lt_OpId op, const lt_Arg *args, int nargs, lt_Tensor *const *out, int nout,
                 lt_Results *r);
/* Writes `value`, the result of a function called `name`, into `out` by these rules. */
bool lt_tensor_store(const char *name, lt_Tensor *out, lt_Tensor *value);
/* Runs an op and returns its first result, with one reference; NULL on failure. */
lt_Tensor *lt_op1(lt_OpId op, const lt_Arg *args, int nargs);

/* ---- random numbers -------------------------------------------------------------------------- */

/* A sequence of random numbers: Philox 4x32-10 with a seed and a position (philox.h). The same seed
 * gives the same numbers on every device. Thread safe. */

/* Creates a generator; NULL with the error when memory is out. The caller frees it. */
lt_Generator *lt_generator_new(uint64_t seed);
void lt_generator_free(lt_Generator *g);
/* Returns the generator that random ops use when none is given; it is never freed. */
lt_Generator *lt_generator_default(void);
/* Sets the seed and starts the sequence again at position 0. */
void lt_generator_seed(lt_Generator *g, uint64_t seed);
/* Reads and sets the state: seed and position. */
void lt_generator_get_state(const lt_Generator *g, uint64_t state[2]);
void lt_generator_set_state(lt_Generator *g, const uint64_t state[2]);
/* Returns a seed from the system's entropy source. */
uint64_t lt_random_seed(void);

/* ---- autograd -------------------------------------------------------------------------------- */

/* Whether ops are recorded for gradients on this thread (on by default), and whether inference mode
 * is on. The setters return the previous mode. */
bool lt_grad_enabled(void);
bool lt_grad_set_enabled(bool on);
bool lt_inference_enabled(void);
bool lt_inference_set_enabled(bool on);
/* Returns true when t was not made by a recorded op: it has no grad_fn. */
bool lt_tensor_is_leaf(const lt_Tensor *t);
/* Returns true when t requires grad. Use it in place of the field, which is out of date on a view
 * whose base was changed in place since. */
bool lt_tensor_requires_grad(lt_Tensor *t);
/* Returns true when the op's row has a gradient. Composite ops have none of their own: the ops that
 * they run are recorded. */
bool lt_op_has_gradient(lt_OpId op);
/* Sets requires_grad of a leaf. Fails for other tensors and for dtypes that are not floats. */
bool lt_tensor_set_requires_grad(lt_Tensor *t, bool on);
/* Returns t's grad, borrowed; NULL when there is none. */
lt_Tensor *lt_tensor_grad(lt_Tensor *t);
/* Sets t's grad; NULL clears it. Fails when shape, dtype or device differ from t's. */
bool lt_tensor_set_grad(lt_Tensor *t, lt_Tensor *grad);
/* Makes backward store the gradient of t, which is no leaf, in its grad. */
bool lt_tensor_retain_grad(lt_Tensor *t);
/* Returns "MulBackward", owned by t's graph; NULL for leaves. */
const char *lt_tensor_grad_fn_name(const lt_Tensor *t);

/* Computes the gradient of sum(tensors * grads) and adds it to the grad of `inputs` (NULL: of all
 * leaves). grads[i] NULL: ones, for tensors of one element. The saved tensors are freed unless
 * retain_graph is set. On failure every grad is unchanged, but without retain_graph a part of the
 * graph may have been freed. With create_graph a leaf's grad refers to the graph, and the graph to
 * the leaf: clear the grad when it is no longer needed, or neither is freed. */
bool lt_backward(int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, bool retain_graph,
                 bool create_graph, int ninputs, lt_Tensor *const *inputs);
/* The same, but returns the gradients in out[0..ninputs), one reference each, and changes no grad.
 * An input that the tensors do not depend on is an error, or with allow_unused gives NULL. */
bool lt_grad(int n, lt_Tensor *const *tensors, lt_Tensor *const *grads, bool retain_graph,
             bool create_graph, bool allow_unused, int ninputs, lt_Tensor *const *inputs,
             lt_Tensor **out);

/* A hook: backward invokes it with the gradient of a tensor. It may store another gradient (one
 * reference) in *replacement. Returning false stops backward with the error in the slot. */
typedef bool (*lt_HookFn)(void *context, lt_Tensor *grad, lt_Tensor **replacement);
/* Adds a hook to t. `forget` (may be NULL) is invoked when the hook is removed or freed. Returns an
 * id above 0, or 0 on failure; then `forget` is not invoked. */
int lt_tensor_add_hook(lt_Tensor *t, lt_HookFn fn, void *context, void (*forget)(void *context));
/* Removes the hook with this id; fails when t has none. */
bool lt_tensor_remove_hook(lt_Tensor *t, int id);
/* Makes the hook with this id run after all hooks of t without this mark, so that it gets the
 * gradient that is accumulated. */
void lt_tensor_run_hook_last(lt_Tensor *t, int id);
/* Adds a hook for a host with a garbage collector, where an object of the host holds one reference
 * to the tensor and owns what `context` refers to. `held` is notified whether anything else could
 * run the hook: a graph that leads to the tensor, a view, another reference. While it is not held,
 * only that object needs the context, so the collector can free a cycle through both. A hook starts
 * as not held. `held` must call no function of the core. fn may be NULL: then there is no hook, and
 * only `held` is notified. */
typedef void (*lt_HeldFn)(void *context, bool held);
int lt_tensor_add_owned_hook(lt_Tensor *t, lt_HookFn fn, void *context,
                             void (*forget)(void *context), lt_HeldFn held);
/* Ends the ownership of t's hooks by the host's object, which calls this before it releases t: from
 * now on they count as held. */
void lt_tensor_disown_hooks(lt_Tensor *t);

/* How saved tensors are stored: `pack` gets a tensor that a node saves (an alias without history),
 * and returns what is stored in its place, NULL with an error. `unpack` returns the tensor again,
 * one reference, NULL with an error; `forget` frees what is stored. */
typedef struct lt_PackFns {
  void *(*pack)(void *context, lt_Tensor *t);
  lt_Tensor *(*unpack)(void *packed);
  void (*forget)(void *packed);
} lt_PackFns;
/* Sets this thread's functions for tensors saved from now on, NULL for none, and their context;
 * returns the former context. The struct must stay valid while a node that used it exists. */
void *lt_autograd_pack_by(const lt_PackFns *fns, void *context);

/* Anomaly detection of this thread: nodes that are created note the current line of the host's
 * program, and errors of a backward pass state the line of the failed node. With check_nan a
 * gradient with NaN is an error, too. */
void lt_autograd_set_anomaly(bool on, bool check_nan);
bool lt_autograd_anomaly(bool *check_nan);

/* Settings of autocast (autocast.c), of one thread. Zero: off, with the default dtypes. */
typedef struct lt_Autocast {
  uint8_t on;                     /* bit t: on for device type t */
  bool no_cache;                  /* casts of weights are not cached */
  uint8_t dtype[LT_DEVICE_KNOWN]; /* by device type: 1 + the lower precision; 0: the default */
} lt_Autocast;
/* Returns true when there is autocast for a device type. */
bool lt_autocast_has(uint8_t type);
/* Returns the lower precision of a device type: by default bfloat16 on the CPU, else float16. */
lt_Dtype lt_autocast_dtype(const lt_Autocast *a, uint8_t type);
/* Frees the cached casts of weights of this thread. */
void lt_autocast_clear_cache(void);

/* A differentiable function that the host defines. The host computes the outputs under no_grad;
 * lt_autograd_custom connects them to the inputs in the graph. */
typedef struct lt_CustomFunction {
  const char *name; /* copied */
  /* Gets the gradient of each output (NULL where there is none) and stores that of each input, one
   * reference each (NULL: none). False with the error. */
  bool (*backward)(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                   lt_Tensor **input_grads);
  void (*forget)(void *context); /* the node is freed, and nothing refers to the context */
  /* Saved values are freed, after a backward without retain_graph. May be NULL. */
  void (*release)(void *context);
  void *context;
} lt_CustomFunction;
/* Makes f the grad_fn of the outputs when an input requires grad and gradients are recorded;
 * otherwise invokes `forget` at once. outputs[i] is one reference of the caller's, which may be
 * replaced by an alias of the same value. On failure no output has f as its grad_fn, and `forget`
 * is not invoked: the context stays the caller's. */
bool lt_autograd_custom(const lt_CustomFunction *f, int ninputs, lt_Tensor *const *inputs,
                        int noutputs, lt_Tensor **outputs);
/* Returns the version of t's storage. A host that saves tensors itself compares it to find those
 * that were changed in place since. */
unsigned lt_tensor_version(const lt_Tensor *t);

/* ---- environment, threads, interrupts -------------------------------------------------------- */

/* Checks the environment variables that Lutra reads when it starts (LUTRA_CPU_CAPABILITY,
 * LUTRA_OPENBLAS_CORETYPE, LUTRA_EMULATE, LUTRA_FALLBACK, LUTRA_MEMORY_DEBUG, OMP_NUM_THREADS).
 * Returns false with an error that names the variable, its value and the values that it takes. A
 * program that embeds Lutra calls it before the first op; Lua's module does so when it is
 * loaded. */
bool lt_environment_check(void);

/* Returns and sets the number of threads that ops on the CPU use, of the whole process. Setting
 * fails for n < 1 and for more than OpenMP's limit (OMP_THREAD_LIMIT). */
int lt_num_threads(void);
bool lt_set_num_threads(int64_t n);
/* Set by a signal handler: the running op stops and fails with "interrupted". Who sets it clears
 * it. */
extern atomic_bool lt_interrupt_flag;

#endif
