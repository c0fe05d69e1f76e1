/* recorder.h: the calls of ops on tensors of the recording device, as a list in the order of the
 * calls.
 *
 * The recording device is the second device of meta (lt_recording): its tensors have a shape, a
 * dtype, a place on the tape and no memory. lt_device_parse does not know it and no list of devices
 * names it, so tensors come to it by lt_recorder_input alone, and by calls on such tensors. While a
 * recorder of the thread runs, each call on the device is recorded that is no composite: a
 * composite shows by its parts, and a backward by the calls of the gradients.
 *
 *   lt_Recorder *r = lt_recorder_begin();
 *   lt_Tensor *x = lt_recorder_input(r, LT_float32, 1, (int64_t[]){4});
 *   ... lt_call, lt_grad ...
 *   lt_recorder_end(r);
 *   for (int i = 0; i < r->ncalls; i++) r->call[i] ...
 *   lt_recorder_free(r);
 *
 * Values are numbered from 0: inputs, results, and constants (0-d tensors of the CPU that stood
 * beside tensors of the device). A call in place gives self a new number, which its later uses
 * have; views of self that were made before keep their numbers, so who reorders the calls of a
 * record, or leaves some out, must look at in_place and at LT_KIND_VIEW. Everything else is in SSA
 * form. */
#ifndef LT_RECORDER_H
#define LT_RECORDER_H

#include "core.h"

typedef enum lt_ValueKind { LT_VALUE_INPUT, LT_VALUE_RESULT, LT_VALUE_CONSTANT } lt_ValueKind;

typedef struct lt_RecordedValue {
  lt_ValueKind kind;
  int call, result; /* of a result: what gave it; counted from 0 */
  lt_Tensor
      *tensor; /* alias of the value: its dtype, shape and strides; of a constant its data, too */
  int earlier; /* the last value before it of the same storage, or -1 */
} lt_RecordedValue;

typedef struct lt_RecordedCall {
  lt_OpId op;
  bool in_place;
  lt_Dtype compute; /* of an elementwise op: what it computes in, else LT_DTYPE_NONE */
  int nargs;        /* as many as the signature has: defaults are filled in */
  int nout;
  lt_Arg *arg; /* of a tensor, `i` is the value's number; of tensors, `ints` are (-1: none) */
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

/* Starts to record the calls of this thread; NULL when memory is out. A recorder that runs already
 * pauses until this one ends. */
lt_Recorder *lt_recorder_begin(void);
/* Ends the recording; the record can still be read. Does nothing when it has ended. Called on the
 * thread that began it. */
void lt_recorder_end(lt_Recorder *r);
/* Ends it and frees the record. NULL is fine. */
void lt_recorder_free(lt_Recorder *r);

/* A new contiguous tensor of the recording device, which is an input of the record. One reference.
 */
lt_Tensor *lt_recorder_input(lt_Recorder *r, lt_Dtype dtype, int ndim, const int64_t *shape);
/* The number of the value that t has now; -1 when the record does not know it. */
int lt_recorder_value(const lt_Recorder *r, const lt_Tensor *t);

/* For dispatch: a call on meta is done, its results are in c->out. Returns false with the error
 * when memory is out, or when an argument is a tensor of the recording device that this record does
 * not know. Does nothing when no recorder runs. */
bool lt_record_call(const lt_Call *c);

#endif
