/* kernel.h: the core's interface for the kernels of a device: the call that they run, errors,
 * tensors as memory, elementwise loops, random numbers, threads, interrupts. A device includes
 * this header (and accel/, if it is an accelerator with a driver) and never core.h, which is
 * private to the core. See docs/devices.md.
 *
 * Functions that return bool return false with an error in the slot when they fail, unless their
 * comment says otherwise. Functions that return a tensor give the caller one reference. */
#ifndef LT_KERNEL_H
#define LT_KERNEL_H

#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a call ---------------------------------------------------------------------------------- */

typedef struct lt_OpInfo lt_OpInfo; /* private to the core: core.h */
typedef struct lt_Signature lt_Signature;

/* The dtype, device and shape of a result, which will be contiguous unless an elementwise op or a
 * copy keeps the order of its inputs in memory. */
typedef struct lt_Spec {
  lt_Dtype dtype;
  lt_Device device;
  int ndim;
  int64_t shape[LT_MAX_DIMS];
} lt_Spec;

/* A running call of an op. A kernel reads arg, compute and device, and writes the memory of out. */
struct lt_Call {
  lt_OpId op;
  const lt_OpInfo *info;
  const lt_Signature *signature;
  bool in_place;
  int nargs; /* == signature->count; defaults are filled in */
  lt_Arg arg[LT_MAX_ARGS];
  lt_Device device; /* on which it runs */
  lt_Dtype compute; /* of elementwise ops: computed in; of reductions: the input's after casting */
  int nout;
  lt_Spec spec[LT_MAX_OUT];
  lt_Tensor *out[LT_MAX_OUT];
  lt_Tensor *const *given; /* the tensors that the results are written into; see out.h */
  int ngiven;
  lt_Stream *stream;           /* NULL until a kernel runs */
  lt_Results *results;         /* of composites that return a list or a boolean */
  int64_t single[LT_MAX_ARGS]; /* memory for lists of one, where a plain int was given */
};

/* Returns the name of the op that the user called, which is the outermost running call ("swapaxes",
 * "add_"). Messages start with it. "lutra" when no call is running. */
const char *lt_user_op(void);
/* The op in whose name errors are reported; name NULL: none. lt_user_op_set replaces it and returns
 * the previous one, so that an error can be reported in the name of another op or an earlier
 * call. */
typedef struct lt_UserOp {
  const char *name; /* from ops.def, or another string that lives as long */
  bool in_place;
} lt_UserOp;
lt_UserOp lt_user_op_get(void);
lt_UserOp lt_user_op_set(lt_UserOp op);
/* The argument of the user's op that an inner op reads as its index tensor, perhaps with more
 * dimensions of size 1 at its end. Errors about index values name it; name NULL: the inner op's own
 * argument. lt_user_index_set replaces it and returns the previous one. */
typedef struct lt_UserIndex {
  const char *name; /* lives as long as the program */
  int ndim;
} lt_UserIndex;
lt_UserIndex lt_user_index_set(lt_UserIndex index);
/* Replaces the name of an inner op's index tensor by the user's, and leaves out its dimensions of
 * size 1 after those of the user's. */
void lt_user_index_apply(const char **name, int *ndim, const int64_t *shape);
/* Fills the error slot with "<user op>: ..." and returns false. */
bool lt_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fills it with "<user op>: out of memory", of kind LT_ERROR_MEMORY, and returns false. */
bool lt_fail_memory(void);

/* Errors about values that a kernel refuses (value_errors.c), so that all devices report the same
 * message. Each fills the slot and returns false. `at` is the 0-based index of the element in the
 * order of the argument's elements. */

/* An index out of range 1..n, or 0; `negative`: negative indices are allowed. */
bool lt_bad_index(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                  int64_t n, bool negative);
/* A class label, in a tensor of this shape, out of range 1..classes that is not `ignore`. */
bool lt_bad_target(int ndim, const int64_t *shape, int64_t at, int64_t value, int64_t classes,
                   int64_t ignore);
/* A probability outside of 0..1. */
bool lt_bad_probability(double value, int64_t at, int ndim, const int64_t *shape);
/* A weight that is negative or not finite. */
bool lt_bad_weight(double value, int64_t at, int64_t row);
/* An integer divisor that is 0 in the integer dtype `compute`. */
bool lt_bad_divisor(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                    lt_Dtype compute);
/* A row of weights of which `least` must be above 0. positive: how many are, or -1 where their sum
 * is infinite. */
bool lt_bad_weights(int64_t row, int64_t positive, int64_t least);

/* Returns argument i (0-based) if it is a tensor, otherwise NULL. */
static inline lt_Tensor *lt_in(const lt_Call *c, int i) {
  return c->arg[i].kind == LT_ARG_TENSOR ? c->arg[i].tensor : NULL;
}
/* Returns true when argument i was given or has a default other than nil. */
static inline bool lt_given(const lt_Call *c, int i) { return c->arg[i].kind != LT_ARG_NIL; }
/* Reads argument i, a number or a tensor of one element, from which the host copies it. */
static inline bool lt_number_of(const lt_Call *c, int i, lt_Scalar *number) {
  if (c->arg[i].kind == LT_ARG_TENSOR) return lt_tensor_item(c->arg[i].tensor, number);
  *number = c->arg[i].scalar;
  return true;
}

/* Returns the name of parameter i. */
const char *lt_arg_name(const lt_Call *c, int i);
/* Returns true when the elementwise op returns bool, whatever dtype it computes in (rule TEST). */
bool lt_op_is_test(lt_OpId op);
/* Returns true for an elementwise op of type W (ops.def). */
bool lt_op_is_wide(lt_OpId op);
/* Returns whether a wide op reads an input of this dtype as float32: integers that the conversion
 * rounds, for a result of float32 or narrower, on every device. */
bool lt_op_rounds(lt_OpId op, lt_Dtype input, lt_Dtype result);
/* Returns whether an elementwise op is a function of one number whose results are floats, or a
 * power. */
bool lt_op_is_function(lt_OpId op);

/* Sets the spec of result i, on the call's device; `like` takes dtype and shape of t. */
void lt_spec(lt_Call *c, int i, lt_Dtype dtype, int ndim, const int64_t *shape);
void lt_spec_like(lt_Call *c, int i, const lt_Tensor *t);

/* Converts a dim (0-based, or negative from the end) to 0..ndim-1; a 0-d tensor counts as having
 * one dimension. Returns -1 with an error when it is out of range. */
int lt_dim(int64_t dim, int ndim);
/* Converts a list of dims to a bit mask; nil and an empty list mean all dims. Fails when a dim is
 * out of range or listed twice. */
bool lt_dims(const lt_Arg *arg, int ndim, unsigned *mask);
/* Returns a dim as the user writes it, 1-based, for messages. */
static inline long long lt_dim_shown(int64_t dim) { return dim >= 0 ? dim + 1 : dim; }

/* Broadcasts the shape in *ndim/shape with a second one. Returns false, without an error, when they
 * cannot be broadcast together; then the first is unchanged. */
bool lt_shape_broadcast(int *ndim, int64_t *shape, int ndim2, const int64_t *shape2);
/* Returns true when the shapes are the same. */
bool lt_shape_equal(int ndim, const int64_t *a, int ndim2, const int64_t *b);
/* Returns the dtype of an op on these arguments (tensors and scalars) by PyTorch's rules: tensors
 * with dimensions come first, then 0-d tensors, then numbers; a later group changes the result only
 * if its category is higher. */
lt_Dtype lt_result_type(const lt_Arg *args, int n);

/* Runs a call of an op with the trait HOST on the CPU, on copies of its operands, and copies the
 * results back, as dispatch does on a device without a kernel for it. For a kernel that cannot
 * compute the call, because an optional library is missing, for example. */
bool lt_host_run(lt_Call *c);

/* ---- maps (map.c) ---------------------------------------------------------------------------- */

#define LT_MAP_TENSORS 8  /* lists of tensors of a map */
#define LT_MAP_NUMBERS 24 /* its numbers */

/* What a row LT_MAP says, apart from its expressions. */
typedef struct lt_MapInfo {
  lt_OpId op;
  int tensors, given; /* number of lists, and of arguments after them */
  /* Computes the numbers of the row that follow the first `given`. */
  void (*complete)(double *numbers);
  const char *names; /* of lists and given numbers: "READS p, GIVEN lr, " */
} lt_MapInfo;

/* Returns the number of an op among the rows LT_MAP (maps.h), -1 for other ops. */
int lt_map_id(lt_OpId op);
/* Returns the description of a map by that number. */
const lt_MapInfo *lt_map_info(int id);
/* Fills in the numbers of a call, in the row's order (maps.h has the structs that name them). */
void lt_map_numbers(const lt_Call *c, double numbers[LT_MAP_NUMBERS]);
/* Returns tensor i of list k; NULL where the list is not given. */
static inline lt_Tensor *lt_map_tensor(const lt_Call *c, int k, int i) {
  return c->arg[k].kind == LT_ARG_TENSORS ? c->arg[k].tensors[i] : NULL;
}
/* Returns the lists that the map writes: a bit for each. */
unsigned lt_map_written(const lt_Call *c);
/* Returns whether all of the optional lists are given, or none. */
bool lt_map_uniform(const lt_Call *c);
/* Returns the number of tensors in each list. */
static inline int lt_map_count(const lt_Call *c) { return c->arg[0].count; }

/* ---- elementwise loops (elementwise_loop.c) -------------------------------------------------- */

/* Runs an elementwise op into `out`, to whose shape the inputs (TENSOR or SCALAR arguments)
 * broadcast. Each input is on out's device, or 0-d on the CPU, or a number. Records no gradient and
 * checks neither shapes nor dtypes. */
bool lt_loop_run(lt_OpId op, lt_Tensor *out, lt_Dtype compute, int ninputs, const lt_Arg *inputs,
                 lt_Scalar a, lt_Scalar b);
/* Returns the dtype that a copy is computed in. */
static inline lt_Dtype lt_copy_compute(lt_Dtype to, lt_Dtype from) {
  return lt_dtype_compute(lt_dtype_is_complex(to) ? to : from);
}
/* Checks that elements of `from` can be converted to `to`: fails where that would discard imaginary
 * parts. */
bool lt_check_conversion(lt_Dtype to, lt_Dtype from);
/* Fails when the device does not have the dtype; the error names the dtype to use instead. */
bool lt_check_device_dtype(lt_Device device, lt_Dtype dtype);
/* Copies source, broadcast to out's shape, to out; dtypes, layouts and devices may differ. With
 * non_blocking a copy from or to pinned host memory may still be running at the return. */
bool lt_copy_into(lt_Tensor *out, const lt_Tensor *source, bool non_blocking);
/* Reorders and merges the dimensions of a loop's operands: updates ndim, shape, strides (in bytes)
 * and layout. */
void lt_loop_collapse(lt_Loop *loop);
/* Does the same for `count` operands, of which the outputs come first. Returns false, without an
 * error, when there is no element. */
bool lt_operands_collapse(int *ndim, int64_t *shape, int count, lt_Operand *operand);
/* Writes a number operand as one element of the dtype that is computed in. Integers wrap, as the
 * arithmetic does. */
bool lt_number_store(lt_Scalar s, lt_Dtype compute, void *element);
/* Increments the version of t's storage. Everything that writes a tensor in place calls it. */
void lt_tensor_touch(lt_Tensor *t);
/* Returns true when two elements of t share memory, as in expanded tensors. Such a tensor cannot be
 * written. */
bool lt_tensor_overlaps_itself(const lt_Tensor *t);
/* Returns true when the tensors may share memory, unless they are the same elements in the same
 * order. Exact for boxes of one array, such as two columns of a matrix; otherwise it may be true
 * for tensors that share none. */
bool lt_tensor_overlaps(const lt_Tensor *a, const lt_Tensor *b);
/* Returns t as contiguous memory of the dtype on its own device: t itself, retained, if it is so,
 * otherwise a copy. Records no gradient. NULL when t is NULL or memory is out. */
lt_Tensor *lt_as_contiguous(lt_Tensor *t, lt_Dtype dtype);
/* Returns t broadcast to a shape (with strides of 0), on its own storage. The caller guarantees
 * that it can be. */
lt_Tensor *lt_expanded(lt_Tensor *t, int ndim, const int64_t *shape);
/* Returns a tensor of another geometry on t's storage; the offset counts elements from t's
 * first. */
lt_Tensor *lt_geometry(lt_Tensor *t, int64_t offset, int ndim, const int64_t *shape,
                       const int64_t *strides);
/* Returns a tensor with t's geometry and storage that does not belong to the autograd graph. */
lt_Tensor *lt_alias(const lt_Tensor *t);
/* Returns t broadcast to a shape, as contiguous memory of the dtype. */
lt_Tensor *lt_expanded_contiguous(lt_Tensor *t, lt_Dtype dtype, int ndim, const int64_t *shape);

/* ---- memory (storage.c) ---------------------------------------------------------------------- */

/* Called before a copy from this host memory, or to it (`writes`), is queued on `stream`: makes the
 * stream wait for the pending copy, unless both only read. Does not block the host. */
void lt_storage_wait_pending(lt_Storage *s, lt_Stream *stream, bool writes);
/* Called after the copy was queued: makes it the pending one, for which lt_tensor_data blocks. If
 * no event can be created, blocks until the copy is done. */
void lt_storage_set_pending(lt_Storage *s, lt_Stream *stream, bool writes);
/* Writes the line of the host's program that is running ("train.lua:12"), or "". */
void lt_memory_where(char *text, size_t size);
/* Fills the slot as lt_error_set does, with an error of kind LT_ERROR_MEMORY: the caller may free
 * memory and try again. Returns NULL. */
void *lt_error_memory(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Appends to the first line of the error in the slot; its kind stays. */
void lt_error_append(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A string that is appended to; what does not fit is cut off. */
typedef struct lt_Text {
  char *start;
  size_t size, length;
} lt_Text;
void lt_text_append(lt_Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the time of the clock of trace events, in nanoseconds: a monotonic one. */
int64_t lt_trace_now(void);

/* ---- random ---------------------------------------------------------------------------------- */

/* Reserves `n` 32-bit numbers of g (NULL: the default generator), and returns the key and the first
 * counter position for them. A position stands for a block of four numbers. Thread safe: no two
 * calls get the same numbers. */
void lt_generator_reserve(lt_Generator *g, uint64_t n, uint64_t *seed, uint64_t *position);

/* ---- threads (threads.c) --------------------------------------------------------------------- */

#define LT_MAX_THREADS 1024 /* an upper limit for tables of threads */

/* Starts the threads of a parallel region of n threads that this thread is about to run, and
 * returns n. Returns 1 where memory or the system's limits do not allow it (OpenMP would end the
 * process), and inside of a parallel region. Never fails. */
int lt_threads_start(int n);

/* ---- Ctrl-C, and waiting for a device (device_wait.c) ---------------------------------------- */

/* Returns true when the running op was interrupted (Ctrl-C). Long loops check it regularly and end
 * early; dispatch then makes their op fail with "interrupted". */
static inline bool lt_stopped(void) {
  return atomic_load_explicit(&lt_interrupt_flag, memory_order_relaxed);
}

/* Elements between two checks: less than a millisecond of work, but much more than the check. */
#define LT_CHUNK ((int64_t)1 << 17)

/* Returns the end of the chunk of 0..n that starts at i, or i when the loop is done or interrupted.
 * For loops that can be interrupted and whose chunks the compiler can vectorize:
 *
 *     for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
 *       for (; i < end; i++) ...
 *
 * After an interrupt the loop's output is incomplete: code that uses it as addresses or indices
 * must check lt_stopped first. */
static inline int64_t lt_next_chunk(int64_t i, int64_t n) {
  if (lt_stopped()) return i;
  return n - i < LT_CHUNK ? n : i + LT_CHUNK;
}
/* Returns lt_stopped() in every 4096th step. For loops that are not vectorized. */
static inline bool lt_stopped_at(int64_t i) { return (i & 4095) == 0 && lt_stopped(); }

/* Fails with "interrupted" after Ctrl-C. */
static inline bool lt_check_interrupt(void) { return !lt_stopped() || lt_fail("interrupted"); }

/* Block until the work that is now on a stream, before an event, or on all streams of a device is
 * done. A vendor's blocking call cannot be interrupted, so these poll, and Ctrl-C ends them: they
 * fail with "interrupted", while the device keeps working. They do not report failures of the
 * device: the caller's own synchronizing call, which no longer blocks, does. */
bool lt_wait_stream(lt_Stream *stream);
bool lt_wait_event(lt_Event *event);
bool lt_wait_device(const lt_Backend *b, int index);
/* Blocks until the work on a stream is done, as lt_wait_stream, and fails when that work failed.
 * Tracers get an event LT_TRACE_WAIT. */
bool lt_stream_synchronize(lt_Stream *stream);
/* Copies a number of elements from the call's device to the host, which is blocked until then.
 * Tracers get an event LT_TRACE_WAIT. */
bool lt_fetch_count(const lt_Call *c, int64_t *count, const int64_t *from);

#endif
