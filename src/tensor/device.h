/* device.h: what a device must be able to do: one struct of function pointers, filled by cpu,
 * cuda, mps, meta, or by a shared object that is loaded at run time (it exports `const lt_Backend
 * *lt_backend(void)`).
 *
 * The model is an asynchronous device with memory of its own. Work is put on a stream and may run
 * later; the order within a stream holds. A NULL stream is the device's default stream. The CPU is
 * the simplest case: one stream, on which everything has happened when the call returns. A NULL
 * kernel means "not implemented here", and is the support query (lt_op_supported).
 *
 * Failure: functions return NULL or false with the reason in the error slot. Kernels see only
 * calls that infer has found right: shapes fit, dtypes are allowed, outputs have memory,
 * everything is on one device except that 0-d tensors of the CPU may stand beside any device
 * (their value is read at the call).
 */
#ifndef LT_DEVICE_H
#define LT_DEVICE_H

#include "lutra.h"

#define LT_BACKEND_ABI 1

typedef struct lt_Call lt_Call; /* core.h */
typedef struct lt_Event lt_Event;
typedef bool (*lt_KernelFn)(lt_Call *call);

typedef struct lt_DeviceProperties {
  char name[128];       /* of the hardware, for people */
  int64_t total_memory; /* bytes */
  int64_t free_memory;  /* bytes, now */
  int multiprocessors;  /* or cores */
  int major, minor;     /* compute capability, 0.0 where there is none */
  bool emulated;
} lt_DeviceProperties;

/* One operand of an elementwise loop. strides are in bytes; 0 where it is broadcast. */
typedef struct lt_Operand {
  char *data;
  lt_Dtype dtype;
  bool host; /* one value in the host's memory, whatever the device: it must be read at the call */
  int64_t strides[LT_MAX_DIMS];
} lt_Operand;

/* The layouts that broadcasting and strides collapse to. The last dimension is the innermost. */
typedef enum lt_Layout {
  LT_LAYOUT_EMPTY,      /* no element */
  LT_LAYOUT_CONTIGUOUS, /* one dimension, every operand dense */
  LT_LAYOUT_SCALAR,     /* one dimension, dense or (inputs) with stride 0 */
  LT_LAYOUT_INNER,      /* several dimensions, the innermost dense or with stride 0 */
  LT_LAYOUT_GENERAL     /* any strides */
} lt_Layout;

/* An elementwise op, ready to run: operand[0] is the output, then `inputs` inputs. Expressions are
 * computed in `compute`; operands whose dtype differs are converted on the way in and out. Scalar
 * arguments are a and b. */
typedef struct lt_Loop {
  lt_OpId op;
  lt_Dtype compute;
  int inputs;
  int ndim;
  lt_Layout layout;
  int64_t numel;
  int64_t shape[LT_MAX_DIMS];
  lt_Operand operand[4];
  lt_Scalar a, b;
  lt_Device device;
  lt_Stream *stream;
} lt_Loop;

typedef struct lt_Backend {
  unsigned abi;      /* LT_BACKEND_ABI */
  const char *name;  /* "cuda" */
  bool numbered;     /* full names carry a number */
  bool host_memory;  /* the host may read and write its memory directly */
  bool asynchronous; /* calls may return before the work is done */
  bool has_data;     /* false: shapes only (meta) */

  /* How many there are; 0 with the reason in `why` (never an error: it is asked by lists of
   * devices). */
  int (*count)(char *why, size_t why_size);
  bool (*properties)(int index, lt_DeviceProperties *out);
  int (*index_current)(void); /* what the bare name means; NULL: 0 */

  /* Memory, 64-byte aligned or better; usable by work put on `stream` from now on. free may be
   * called while work that uses the memory is still queued on `stream`: the backend keeps order.
   * nbytes > 0. */
  void *(*alloc)(int index, size_t nbytes, lt_Stream *stream);
  void (*free)(int index, void *memory, size_t nbytes, lt_Stream *stream);

  /* Bytes between any two devices of which one is this backend's and the other this backend's or
   * the CPU. Puts the copy on `stream` (of the device that is not the CPU). When non_blocking is
   * false, it is done on return as far as the host can see. */
  bool (*copy)(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
               lt_Stream *stream, bool non_blocking);
  bool (*fill_zero)(int index, void *memory, size_t nbytes, lt_Stream *stream);

  /* Streams and events. NULL members: the device has one stream and is always ready. */
  lt_Stream *(*stream_new)(int index, int priority);
  void (*stream_free)(lt_Stream *stream);
  lt_Stream *(*stream_current)(int index);
  bool (*stream_set_current)(int index, lt_Stream *stream);
  bool (*stream_query)(lt_Stream *stream); /* true: nothing is left to do */
  bool (*stream_synchronize)(lt_Stream *stream);
  bool (*stream_wait_event)(lt_Stream *stream, lt_Event *event);
  lt_Event *(*event_new)(int index, bool timing);
  void (*event_free)(lt_Event *event);
  bool (*event_record)(lt_Event *event, lt_Stream *stream);
  bool (*event_query)(lt_Event *event);
  bool (*event_synchronize)(lt_Event *event);
  bool (*event_elapsed)(lt_Event *from, lt_Event *to, double *milliseconds);
  bool (*synchronize)(int index);
  /* Memory of `storage` is used on another stream than the one it was allocated on. May be NULL. */
  bool (*record_stream)(lt_Storage *storage, lt_Stream *stream);

  /* Facts for people: its instruction set ("isa"), what calculates its matrix products ("blas");
   * NULL for what it does not know. May be NULL. The text lives as long as the program. */
  const char *(*fact)(int index, const char *what);

  /* Elementwise ops. */
  bool (*elementwise)(const lt_Loop *loop);
  bool (*elementwise_supported)(lt_OpId op, lt_Dtype compute); /* NULL: all of them */
  /* Everything else, by op; NULL entries are not implemented. */
  const lt_KernelFn *kernels; /* [LT_OP_COUNT] */
} lt_Backend;

/* The backends that are part of this library. */
#define LT_DEVICE_ONE(name)  const lt_Backend *lt_backend_##name(void);
#define LT_DEVICE_IF_1(name) LT_DEVICE_ONE(name)
#define LT_DEVICE_IF_0(name)
#define LT_DEVICE(name, numbered, linked, hint) LT_DEVICE_IF_##linked(name)
#include "devices.def"
#undef LT_DEVICE

/* Adds a device type at run time; returns its number, or -1 with the reason. */
int lt_device_register(const lt_Backend *backend);
/* The same from a shared object that exports lt_backend(). */
int lt_device_load(const char *path);
/* The backend of a type, loading it on first use; NULL with the reason when it cannot be had. */
const lt_Backend *lt_device_backend(int type);
/* The same for a type that has tensors already: never fails. */
const lt_Backend *lt_backend_of(const lt_Tensor *t);
/* Can this op run on that device? (dtype: what it computes in; LT_DTYPE_NONE: any) */
bool lt_op_supported(lt_OpId op, int device_type, lt_Dtype dtype);
/* The stream that work on t's device goes to now. */
lt_Stream *lt_stream_of(const lt_Tensor *t);

#endif
