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
 * Values are numbered from 0: inputs, results, and constants (0-d tensors on the CPU that were
 * operands of a call). An in-place call gives self a new number, which later uses refer to. Views
 * of self that were created before keep their numbers: code that reorders or removes calls of a
 * record must check in_place and LT_KIND_VIEW. Everything else is in SSA form. */
#ifndef LT_RECORDER_H
#define LT_RECORDER_H

#include "core.h"

typedef enum lt_ValueKind { LT_VALUE_INPUT, LT_VALUE_RESULT, LT_VALUE_CONSTANT } lt_ValueKind;

typedef struct lt_RecordedValue {
  lt_ValueKind kind;
  int call, result;  /* of a result: the call, and which of its results, 0-based */
  lt_Tensor *tensor; /* an alias with dtype, shape and strides; of a constant also the data */
  int earlier;       /* the previous value of the same storage, or -1 */
} lt_RecordedValue;

typedef struct lt_RecordedCall {
  lt_OpId op;
  bool in_place;
  lt_Dtype compute; /* of an elementwise op: that it computes in, otherwise LT_DTYPE_NONE */
  int nargs;        /* the number of the signature's parameters; defaults are filled in */
  int nout;
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

/* Records a call on meta whose results are in c->out; dispatch calls it. Does nothing when no
 * recorder runs. Fails when memory is out, and when an argument is a tensor of the recording device
 * that is not in this record. */
bool lt_record_call(const lt_Call *c);

#endif
