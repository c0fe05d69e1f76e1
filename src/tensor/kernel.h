/* kernel.h: what the kernels of a device may use of the core: the call that they run, errors,
 * tensors as memory, elementwise loops, random numbers, threads, interrupts. A device includes
 * this header (and accel/, if it is an accelerator with a driver) and never core.h, which is
 * private to the core. See docs/devices.md. */
#ifndef LT_KERNEL_H
#define LT_KERNEL_H

#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a call ---------------------------------------------------------------------------------- */

typedef struct lt_OpInfo lt_OpInfo; /* core.h: the core's own, as is lt_Signature */
typedef struct lt_Signature lt_Signature;

/* What a result will be. Results are contiguous. */
typedef struct lt_Spec {
  lt_Dtype dtype;
  lt_Device device;
  int ndim;
  int64_t shape[LT_MAX_DIMS];
} lt_Spec;

struct lt_Call {
  lt_OpId op;
  const lt_OpInfo *info;
  const lt_Signature *signature;
  bool in_place;
  int nargs; /* == signature->count, defaults filled in */
  lt_Arg arg[LT_MAX_ARGS];
  lt_Device device; /* where it runs */
  lt_Dtype compute; /* elementwise: what is computed in; reductions: the input's after casting */
  int nout;
  lt_Spec spec[LT_MAX_OUT];
  lt_Tensor *out[LT_MAX_OUT];
  lt_Stream *stream;           /* NULL until a kernel runs */
  lt_Results *results;         /* of composites that give a list or a flag */
  int64_t single[LT_MAX_ARGS]; /* lists of one, where a plain int was given */
};

/* The op as the user wrote it: the outermost call's name ("swapaxes", "add_"). For messages. */
const char *lt_user_op(void);
/* The op in whose name errors are reported; name NULL: none. lt_user_op_set replaces it and
 * returns the one before: a report for an earlier call, or for another op, sets it and then puts
 * it back. */
typedef struct lt_UserOp {
  const char *name; /* of a row of ops.def, or of what lives as long */
  bool in_place;
} lt_UserOp;
lt_UserOp lt_user_op_now(void);
lt_UserOp lt_user_op_set(lt_UserOp op);
/* Fills the slot with "<user op>: ..." and returns false. */
bool lt_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with "out of memory", of kind LT_ERROR_MEMORY. */
bool lt_fail_memory(void);

/* The same for values that a kernel refuses (value_errors.c), in the same words on every device.
 * `at` counts from 0, in the order of the argument's elements. */
bool lt_bad_index(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                  int64_t n, bool negative);
bool lt_bad_target(int64_t at, int64_t value, int64_t classes, int64_t ignore);
bool lt_bad_probability(double value, int64_t at, int ndim, const int64_t *shape);
bool lt_bad_weight(double value, int64_t at, int64_t row);
/* compute: the integer dtype in which `value` is 0. */
bool lt_bad_divisor(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                    lt_Dtype compute);
/* positive: how many of the row are above 0, or -1 where their sum is infinite. */
bool lt_bad_weights(int64_t row, int64_t positive, int64_t least);

/* Arguments by position. */
static inline lt_Tensor *lt_in(const lt_Call *c, int i) {
  return c->arg[i].kind == LT_ARG_TENSOR ? c->arg[i].tensor : NULL;
}
static inline bool lt_given(const lt_Call *c, int i) { return c->arg[i].kind != LT_ARG_NIL; }

/* Returns the name of parameter i. */
const char *lt_arg_name(const lt_Call *c, int i);
/* Returns true when the elementwise op gives bool, whatever dtype it computes in (rule TEST). */
bool lt_op_is_test(lt_OpId op);

/* Sets result i. */
void lt_spec(lt_Call *c, int i, lt_Dtype dtype, int ndim, const int64_t *shape);
void lt_spec_like(lt_Call *c, int i, const lt_Tensor *t);

/* dim (from 0, or negative from the end) into 0..ndim-1; ndim 0 counts as 1. -1 and a message
 * otherwise. */
int lt_dim(int64_t dim, int ndim);
/* A list of dims into a bit mask; nil, and an empty list, are all. False: out of range or twice. */
bool lt_dims(const lt_Arg *arg, int ndim, unsigned *mask);
/* dims as the user counts them, for messages. */
static inline long long lt_dim_said(int64_t dim) { return dim >= 0 ? dim + 1 : dim; }

/* The broadcast of two shapes into shape/ndim (which holds the first); false when they do not fit
 * (no message). */
bool lt_shape_broadcast(int *ndim, int64_t *shape, int ndim2, const int64_t *shape2);
bool lt_shape_equal(int ndim, const int64_t *a, int ndim2, const int64_t *b);
/* The dtype of an op on these arguments (tensors and scalars), by PyTorch's rules: dimensioned
 * tensors, then 0-d tensors, then numbers; a later class counts only if its category is higher. */
lt_Dtype lt_result_type(const lt_Arg *args, int n);

/* ---- maps (map.c) ---------------------------------------------------------------------------- */

#define LT_MAP_TENSORS 6  /* lists of tensors of a map */
#define LT_MAP_NUMBERS 24 /* its numbers */

/* What a row LT_MAP says apart from its text. */
typedef struct lt_MapInfo {
  lt_OpId op;
  int tensors, given; /* lists, and the arguments after them */
  /* Computes the numbers behind the first `given`. They are in the row's order. */
  void (*complete)(double *numbers);
  const char *names; /* of lists and given numbers: "READS p, GIVEN lr, " */
} lt_MapInfo;

/* The number of a map among the rows LT_MAP (maps.h), -1 of other ops; and what is known of it. */
int lt_map_id(lt_OpId op);
const lt_MapInfo *lt_map_info(int id);
/* The numbers of a call, in the row's order (maps.h has the structs that name them). */
void lt_map_numbers(const lt_Call *c, double numbers[LT_MAP_NUMBERS]);
/* Tensor i of list k; NULL where the list is not given. */
static inline lt_Tensor *lt_map_tensor(const lt_Call *c, int k, int i) {
  return c->arg[k].kind == LT_ARG_TENSORS ? c->arg[k].tensors[i] : NULL;
}
/* The lists that may be written: a bit for each. */
unsigned lt_map_written(const lt_Call *c);
/* The tensors of a list. */
static inline int lt_map_count(const lt_Call *c) { return c->arg[0].count; }

/* ---- elementwise loops (elementwise_loop.c) -------------------------------------------------- */

/* Builds and runs an elementwise op into `out`, whose shape the inputs (TENSOR or SCALAR
 * arguments) broadcast to. The inputs are on out's device, or 0-d on the CPU, or numbers. No
 * autograd, no checks beyond devices. */
bool lt_loop_run(lt_OpId op, lt_Tensor *out, lt_Dtype compute, int ninputs, const lt_Arg *inputs,
                 lt_Scalar a, lt_Scalar b);
/* The dtype that a copy is computed in. */
static inline lt_Dtype lt_copy_compute(lt_Dtype to, lt_Dtype from) {
  return lt_dtype_compute(lt_dtype_is_complex(to) ? to : from);
}
/* Can elements of `from` become elements of `to`? Returns false, with an error, where that would
 * discard imaginary parts. */
bool lt_check_conversion(lt_Dtype to, lt_Dtype from);
/* out[...] = source[...], any dtypes and layouts, any devices; source is broadcast. */
bool lt_copy_into(lt_Tensor *out, const lt_Tensor *source, bool non_blocking);
/* Reorders and merges the dimensions of n operands: fills ndim, shape, strides (bytes) and
 * layout. */
void lt_loop_collapse(lt_Loop *loop);
/* The same for `count` operands, the outputs first. Returns false where there is no element. */
bool lt_operands_collapse(int *ndim, int64_t *shape, int count, lt_Operand *operand);
/* Writes a number that stands beside tensors as one element of what is computed in; integers wrap,
 * as the arithmetic does. */
bool lt_number_store(lt_Scalar s, lt_Dtype compute, void *element);
/* Writers bump the version of what they wrote. */
void lt_tensor_touch(lt_Tensor *t);
/* Does some element of t lie on another of its elements? (expanded tensors cannot be written) */
bool lt_tensor_overlaps_itself(const lt_Tensor *t);
/* May the memory of the two overlap without being the very same elements in the same order? Boxes
 * of one array, as are columns of a matrix, are known apart. */
bool lt_tensor_overlaps(const lt_Tensor *a, const lt_Tensor *b);
/* The tensor as contiguous memory of the given dtype on its own device: itself (retained) if it is
 * that. No autograd. */
lt_Tensor *lt_as_contiguous(lt_Tensor *t, lt_Dtype dtype);
/* t seen with another shape to which it broadcasts (strides 0), on its own storage. One
 * reference. */
lt_Tensor *lt_expanded(lt_Tensor *t, int ndim, const int64_t *shape);
/* t's memory in another geometry; offset in elements from t's first. One reference. */
lt_Tensor *lt_geometry(lt_Tensor *t, int64_t offset, int ndim, const int64_t *shape,
                       const int64_t *strides);
/* t's geometry on its storage, outside the graph. One reference. */
lt_Tensor *lt_alias(const lt_Tensor *t);
/* t broadcast to the shape, as contiguous memory of the dtype. One reference. */
lt_Tensor *lt_expanded_contiguous(lt_Tensor *t, lt_Dtype dtype, int ndim, const int64_t *shape);

/* ---- memory (storage.c) ---------------------------------------------------------------------- */

/* A copy from this memory of the host, or to it (`writes`), is about to be put on `stream`: makes
 * the stream wait for one that is under way, unless both only read. The host goes on. */
void lt_storage_follow(lt_Storage *s, lt_Stream *stream, bool writes);
/* It was put there: until it is done, lt_tensor_data waits. Where no event can be had, waits at
 * once. */
void lt_storage_pend(lt_Storage *s, lt_Stream *stream, bool writes);
/* The line of the host's program that is running ("train.lua:12"), or "". */
void lt_memory_where(char *text, size_t size);
/* Memory of this kind ran out: fills the slot as lt_error_set does, and marks it. */
void *lt_error_memory(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds to the first line of the reason in the slot; its kind stays. */
void lt_error_append(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- random ---------------------------------------------------------------------------------- */

/* Reserves `n` 32-bit numbers of g (NULL: the default generator): their key and first counter
 * position. Positions count blocks of four numbers. */
void lt_generator_reserve(lt_Generator *g, uint64_t n, uint64_t *seed, uint64_t *position);

/* ---- threads (threads.c) --------------------------------------------------------------------- */

#define LT_MAX_THREADS 1024 /* more than any machine has a use for */

/* Starts the threads of a parallel region of n, which shall follow on this thread, and returns n.
 * Returns 1 where memory or the system's limits do not suffice (OpenMP would end the process), and
 * inside of a parallel region. */
int lt_threads_start(int n);

/* ---- Ctrl-C, and waiting for a device (device_wait.c) ---------------------------------------- */

/* Long loops check this now and then, and end early; dispatch then makes their op fail with
 * "interrupted". */
static inline bool lt_stopped(void) {
  return atomic_load_explicit(&lt_interrupt_flag, memory_order_relaxed);
}

/* Elements between two checks: less than a millisecond of work, and much more than the check. */
#define LT_STRETCH ((int64_t)1 << 17)

/* A loop over 0..n that can be stopped, in stretches that the compiler may make vectors of:
 *
 *     for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
 *       for (; i < end; i++) ...
 *
 * Once it was stopped nothing that it should have written may be relied on: whoever takes places
 * in memory from that asks lt_stopped first. */
static inline int64_t lt_next_chunk(int64_t i, int64_t n) {
  if (lt_stopped()) return i;
  return n - i < LT_STRETCH ? n : i + LT_STRETCH;
}
/* For loops that are not vectorized: a check every 4096 steps. */
static inline bool lt_stopped_at(int64_t i) { return (i & 4095) == 0 && lt_stopped(); }

/* True; or false with that message. */
static inline bool lt_check_interrupt(void) { return !lt_stopped() || lt_fail("interrupted"); }

/* Wait until what is on a stream, before an event, or on a device's streams now is done. No call of
 * a vendor's can be broken off, so these ask again and again, and Ctrl-C ends them: false with
 * "interrupted", and the device goes on. Failures of the device are not told: the caller's own call
 * to the device, which need not wait any more, tells them. */
bool lt_wait_stream(lt_Stream *stream);
bool lt_wait_event(lt_Event *event);
bool lt_wait_device(const lt_Backend *b, int index);
/* Synchronizes the host with a stream, as lt_wait_stream; returns false with what failed on it.
 * Tracers are notified of a wait. */
bool lt_stream_synchronize(lt_Stream *stream);
/* Copies a number of elements from the call's device to the host, which is blocked until it is
 * there. Tracers are notified of a wait. Returns false with the error. */
bool lt_fetch_count(const lt_Call *c, int64_t *count, const int64_t *from);

#endif
