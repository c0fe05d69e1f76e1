/* recorder.h: records the calls of ops on tensors of the recording device, as a list in the order
 * of the calls.
 *
 * The recording device is the second device of meta (lt_recording): its tensors have a shape, a
 * dtype and a grad_fn, but no memory. No device name refers to it and no list of devices contains
 * it, so only lt_recorder_input, and ops on its tensors, create tensors there. While a recorder of
 * the thread runs, every call on the device is recorded except composites: of a composite the ops
 * that it runs are recorded, of a backward pass the ops of the gradients.
 *
 *   lt_Recorder *r = lt_recorder_begin();
 *   lt_Tensor *x = lt_recorder_input(r, LT_float32, 1, (int64_t[]){4});
 *   ... lt_call, lt_grad ...
 *   lt_recorder_end(r);
 *   for (int i = 0; i < r->ncalls; i++) r->call[i] ...
 *   lt_recorder_free(r);
 *
 * Values are numbered from 0: inputs, captured tensors, results, and constants (0-d
 * tensors on the CPU that were operands of a call). An in-place call gives self a new number, which
 * later uses refer to. Views of self that were created before keep their numbers: code that
 * reorders or removes calls of a record must check in_place and LT_KIND_VIEW. Everything else is in
 * SSA form. */
#ifndef LT_RECORDER_H
#define LT_RECORDER_H

#include "core.h"

typedef enum lt_ValueKind {
  LT_VALUE_INPUT,
  LT_VALUE_RESULT,
  LT_VALUE_CONSTANT,
  LT_VALUE_CAPTURED /* a stand-in for a tensor with data; see lt_recorder_begin_for */
} lt_ValueKind;

typedef struct lt_RecordedValue {
  lt_ValueKind kind;
  int call, result;  /* of a result: the call, and which of its results, 0-based */
  lt_Tensor *tensor; /* an alias with dtype, shape and strides; of a constant also the data */
  int earlier;       /* the previous value of the same storage, or -1 */
  lt_Tensor *source, *stand_in; /* of a captured value, and of an input that stands for a tensor */
  bool made;                    /* source was created while the recorder ran, from a number */
} lt_RecordedValue;

typedef struct lt_RecordedCall {
  lt_OpId op;
  bool in_place;
  lt_Dtype compute; /* of an elementwise op: that it computes in, otherwise LT_DTYPE_NONE */
  lt_Dtype folded;  /* of other ops: lt_Call.compute */
  int nargs;        /* the number of the signature's parameters; defaults are filled in */
  int nout;
  lt_UserOp user;      /* in whose name its errors are reported, and */
  lt_UserIndex index;  /* which argument errors about index values name */
  lt_Arg *arg;         /* of a tensor `i`, of a list `ints` hold the values' numbers (-1: none) */
  int out[LT_MAX_OUT]; /* numbers of the results */
} lt_RecordedCall;

typedef struct lt_Recorder {
  struct lt_Recorder *outer; /* the thread's recorder when this one began */
  bool running;
  int ncalls, call_room;
  lt_RecordedCall *call;
  int nvalues, value_room;
  lt_RecordedValue *value;
  int *slot, slots; /* hash of a storage -> its last value + 1 */
  bool captures;    /* began by lt_recorder_begin_for: */
  lt_Device device; /* that the record stands for */
  char reason[256]; /* why the record does not describe all that the program did; "": it does */
  int nmade, made_room;
  lt_Storage **made; /* storages with data that were created while it ran, retained */
} lt_Recorder;

static inline lt_Device lt_recording(void) { return (lt_Device){LT_DEVICE_meta, 1}; }

/* Starts to record the calls of this thread; NULL when memory is out. A recorder that is running
 * pauses until this one ends. */
lt_Recorder *lt_recorder_begin(void);
/* Ends the recording; the record can still be read. Does nothing when it has ended. Must be called
 * on the thread that began it. */
void lt_recorder_end(lt_Recorder *r);
/* Ends the recording and frees the record. NULL is allowed. */
void lt_recorder_free(lt_Recorder *r);

/* Creates a contiguous tensor on the recording device, as an input of the record. */
lt_Tensor *lt_recorder_input(lt_Recorder *r, lt_Dtype dtype, int ndim, const int64_t *shape);
/* Returns the number of t's current value; -1 when t is not in the record. */
int lt_recorder_value(const lt_Recorder *r, const lt_Tensor *t);
/* Appends a copy of a call whose arguments are tensors and numbers, without results. Returns its
 * number; -1 when memory is out. */
int lt_recorder_repeat_call(lt_Recorder *r, int call);
/* Appends a value with the tensor of another one, as a result of a call. Returns its number; -1
 * when memory is out. */
int lt_recorder_repeat_value(lt_Recorder *r, int value, int call);
/* Returns the number of references to a storage that values of the thread's record hold. */
int lt_recorder_references(const lt_Storage *s);

/* ---- records of a program on a device -------------------------------------------------------- */

/* Starts to record a program that computes on `device`: while this recorder runs, every call on the
 * thread is recorded and none is run. A tensor of the device that a call gets, other than a result
 * of the record, is captured: the call gets its stand-in, a tensor of the recording device with the
 * same geometry, which is a leaf that requires grad if the tensor requires grad. Whatever the
 * record cannot describe, such as reading the value of a tensor, is noted as its `reason`. */
lt_Recorder *lt_recorder_begin_for(lt_Device device);
/* Returns the stand-in of a tensor, borrowed. The first call creates it, as an input of the record
 * or as a captured value. NULL when memory is out. */
lt_Tensor *lt_recorder_stand_in(lt_Recorder *r, lt_Tensor *t, bool input);
/* Returns true when t is a stand-in of the record. */
bool lt_recorder_is_stand_in(const lt_Recorder *r, const lt_Tensor *t);
/* Returns the recorder of the thread if it records a program, otherwise NULL. */
static inline lt_Recorder *lt_recording_program(void) {
  lt_Recorder *r = lt_thread()->recorder;
  return __builtin_expect(r != NULL, 0) && r->captures ? r : NULL;
}
/* Notes why the record does not describe the program, unless there is a reason already. Does
 * nothing when no program is recorded. */
void lt_recorder_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Notes that a tensor with data was created. False when memory is out. */
bool lt_record_created(lt_Recorder *r, const lt_Tensor *t);

/* The arguments of a call in which stand-ins have replaced tensors. */
typedef struct lt_StandIns {
  lt_Arg arg[LT_MAX_ARGS];
  lt_Tensor **lists; /* memory for lists of tensors; freed by the caller */
} lt_StandIns;
/* Replaces the arguments of a call that a program makes, and returns them; NULL with the error. */
const lt_Arg *lt_record_arguments(lt_Recorder *r, lt_OpId op, const lt_Arg *args, int nargs,
                                  lt_StandIns *s);
/* Returns the device of a tensor as the program sees it: that of the record for a recording
 * tensor. */
lt_Device lt_shown_device(const lt_Tensor *t);

/* Records a call on meta whose results are in c->out; dispatch calls it. Does nothing when no
 * recorder runs. Fails when memory is out, and when an argument is a tensor of the recording device
 * that is not in this record. */
bool lt_record_call(const lt_Call *c);

#endif
