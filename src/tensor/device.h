/* device.h: the interface that a device implements: lt_Backend, a struct of function pointers in
 * five parts (memory; streams and events; graphs; kernels; communication). cpu, cuda, mps and meta
 * fill it in, or a shared object that is loaded at run time (it exports
 * `const lt_Backend *lt_backend(void)`).
 *
 * The model is an asynchronous device with its own memory. Work is queued on a stream and may run
 * later; the work of one stream runs in order. A NULL stream is the device's default stream. The
 * CPU is the simplest case: one stream, whose work is done when the call returns.
 *
 * A device may lack any kernel that is not core (lt_op_is_core): its entry in the table of kernels
 * is NULL (kernel_table.def makes the table). Such an op runs by its composite form, or on the CPU,
 * or is an error: fallback.c. A backend that lacks a core kernel is refused.
 *
 * Failure: functions return NULL or false with the error in the slot. A kernel only gets calls that
 * infer has accepted: shapes fit, dtypes are allowed, the results have memory, and all tensors are
 * on one device, except for 0-d tensors on the CPU, whose value the kernel reads during the call.
 *
 * Threads: any thread may call a backend at any time.
 */
#ifndef LT_DEVICE_H
#define LT_DEVICE_H

#include "communication.h"
#include "lutra.h"

#define LT_BACKEND_ABI 10

typedef struct lt_Call lt_Call; /* kernel.h */
typedef bool (*lt_KernelFn)(lt_Call *call);
typedef struct lt_Backend lt_Backend;
struct lt_ProgramLoop; /* program.h */

/* The first members of every device's streams and events; the device adds its own. */
struct lt_Stream {
  const lt_Backend *backend;
  int index; /* of the device */
};
typedef struct lt_Event {
  const lt_Backend *backend;
  int index;
} lt_Event;

typedef struct lt_DeviceProperties {
  char name[128];       /* of the hardware, for display */
  int64_t total_memory; /* bytes */
  int64_t free_memory;  /* bytes, now */
  int multiprocessors;  /* or cores */
  int major, minor;     /* compute capability, 0.0 where there is none */
  int64_t shared_memory_per_block, shared_memory_per_block_optin; /* bytes */
  int64_t l2_cache;                                               /* bytes */
  int max_threads_per_block, max_threads_per_multiprocessor, warp_size;
  bool emulated;
} lt_DeviceProperties;

/* ---- statistics of a caching allocator, by PyTorch's names ----------------------------------- */

/* A quantity: its current value, its maximum since the peak was reset, and the sums of all
 * increases and of all decreases. */
typedef struct lt_Stat {
  int64_t current, peak, allocated, freed;
} lt_Stat;

typedef enum lt_MemoryPool {
  LT_POOL_ALL,
  LT_SMALL_POOL,
  LT_LARGE_POOL,
  LT_MEMORY_POOLS
} lt_MemoryPool;

/* The quantities, each counted in every pool. One row each: the field, and its name in
 * memory_stats. */
#define LT_MEMORY_STATS(ROW)                                                                       \
  ROW(allocation)     /* blocks that tensors hold */                                               \
  ROW(segment)        /* pieces of memory reserved from the driver */                              \
  ROW(active)         /* blocks that tensors hold, or that queued work still uses */               \
  ROW(inactive_split) /* free blocks that are a part of a segment */                               \
  ROW(allocated_bytes)                                                                             \
  ROW(reserved_bytes) /* of segments */                                                            \
  ROW(active_bytes)                                                                                \
  ROW(inactive_split_bytes)                                                                        \
  ROW(requested_bytes) /* allocated, before rounding */

typedef struct lt_MemoryStats {
#define ROW(name) lt_Stat name[LT_MEMORY_POOLS];
  LT_MEMORY_STATS(ROW)
#undef ROW
  int64_t num_alloc_retries, num_ooms, num_device_alloc, num_device_free;
  int64_t largest_free_block; /* bytes, of the free blocks in the cache */
} lt_MemoryStats;

/* One block, for memory_snapshot. */
typedef struct lt_MemoryBlock {
  const void *address, *segment; /* of the block, and of the segment that it is a part of */
  size_t size, segment_size, requested;
  /* waiting: freed, but work queued on another stream still uses it */
  enum { LT_BLOCK_FREE, LT_BLOCK_ACTIVE, LT_BLOCK_WAITING } state;
  bool small;
  const lt_Stream *stream;
  lt_Dtype dtype; /* of the tensor that it was allocated for; LT_DTYPE_NONE: for none */
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  const char *where; /* the line that allocated it ("train.lua:12"), or "" */
} lt_MemoryBlock;

/* One operand of an elementwise loop. Strides are in bytes, 0 where the operand is broadcast. */
typedef struct lt_Operand {
  char *data;
  lt_Dtype dtype;
  bool host; /* one value in host memory, on any device: it must be read during the call */
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

/* An elementwise op, ready to run: operand[0] is the output, then `inputs` inputs follow. The
 * expression is computed in dtype `compute`: operands of other dtypes are converted when they are
 * read and written. a and b are the scalar arguments. */
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

/* A custom kernel: a function of the user's source code, compiled for one device. Owned by the
 * backend; never freed. */
typedef struct lt_UserKernel lt_UserKernel;
typedef struct lt_KernelSource {
  const char *text, *name; /* the source code, and the name of the function in it */
  const char *expression;  /* a C++ expression for the function, of the type that callers use */
  const char *const *options;
  int option_count; /* options of the compiler */
} lt_KernelSource;
typedef struct lt_KernelLaunch {
  /* Unchecked. grid: the number of blocks or, with `by_threads`, the number of threads in all,
   * where the last blocks of a row may be smaller. block: the threads in a block; with `by_threads`
   * block[0] may be 0: then the backend chooses all three. */
  int64_t grid[3], block[3];
  bool by_threads;
  int64_t shared;      /* bytes of dynamic shared memory per block */
  int count;           /* of arguments, in the kernel's order */
  void **arguments;    /* the address of each argument's value */
  const size_t *sizes; /* the bytes of each value; 0: it is the address of a tensor's memory */
} lt_KernelLaunch;
/* What the compiler has found out about a kernel. */
typedef struct lt_KernelLimits {
  int threads;    /* the most threads of a block */
  int simd_width; /* threads of a SIMD group */
  int64_t shared; /* bytes of shared memory that the kernel declares itself */
} lt_KernelLimits;

/* ---- the parts of a backend ------------------------------------------------------------------ */

/* Memory. A device with data has at least alloc, free, copy and fill_zero. */
typedef struct lt_DeviceMemory {
  /* Allocates and frees memory, 64-byte aligned or better, for work queued on `stream`. nbytes > 0.
   * free may be called while queued work on `stream` still uses the memory: the backend does not
   * reuse it before that work is done. alloc tries the cache, then the driver; what is done when
   * memory is out is in storage.c. */
  void *(*alloc)(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream);
  void (*free)(const lt_Backend *self, int index, void *memory, size_t nbytes, lt_Stream *stream);

  /* Copies bytes between two devices: one is this backend's, the other this backend's or the CPU.
   * The copy is queued on `stream` (of the device that is not the CPU). When non_blocking is false,
   * host memory may be read and written again on return. */
  bool (*copy)(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
               lt_Stream *stream, bool non_blocking);
  bool (*fill_zero)(int index, void *memory, size_t nbytes, lt_Stream *stream);
  /* Returns true when all bytes of memory, the last that this thread has allocated, are known to be
   * 0, so that they need not be written. Of the CPU only. */
  bool (*is_zero)(const void *memory, size_t nbytes);

  /* Of devices with a caching allocator (accel/ fills these in); NULL elsewhere. */
  bool (*release)(const lt_Backend *self, int index); /* returns free segments to the driver */
  bool (*retry)(const lt_Backend *self, int index);   /* blocks on all work, then releases */
  bool (*info)(const lt_Backend *self, int index, int64_t *free, int64_t *total); /* bytes */
  bool (*stats)(const lt_Backend *self, int index, lt_MemoryStats *out);
  bool (*reset_peak)(const lt_Backend *self, int index);
  bool (*limit)(const lt_Backend *self, int index, double fraction); /* of the total */
  bool (*each)(const lt_Backend *self, int index,
               void (*visit)(void *context, const lt_MemoryBlock *block), void *context);
  /* Formats the report about a failed allocation of `nbytes`, in several lines: total, reserved and
   * allocated memory, and which lines of the program allocated most of it. `collected`: the bytes
   * that the host's garbage collector has freed. */
  void (*report)(const lt_Backend *self, int index, size_t nbytes, int64_t collected, char *text,
                 size_t size);

  /* Returns true when the device has been used, so that its driver is initialized. NULL: there is
   * nothing to initialize. */
  bool (*is_ready)(const lt_Backend *self, int index);

  /* Pinned host memory, from and to which the device copies asynchronously. NULL: not supported. */
  void *(*host_alloc)(const lt_Backend *self, size_t nbytes);
  /* `pending`: a copy that still uses the memory, or NULL; the backend takes ownership of it. */
  void (*host_free)(const lt_Backend *self, void *memory, size_t nbytes, lt_Event *pending);
  bool (*host_release)(const lt_Backend *self); /* frees the cached pinned memory */

  /* Records that work queued on `stream` uses memory of `storage`, which was allocated on another
   * stream: once freed, the memory is not reused before that work is done. Dispatch calls it after
   * each such op. May be NULL. */
  bool (*record_stream)(lt_Storage *storage, lt_Stream *stream);
  bool (*can_access_peer)(const lt_Backend *self, int index, int peer); /* NULL: no */
} lt_DeviceMemory;

/* Streams and events. All NULL: the device has one stream, whose work is done when a call
 * returns. */
typedef struct lt_DeviceStreams {
  lt_Stream *(*create)(const lt_Backend *self, int index, int priority);
  void (*destroy)(lt_Stream *stream);
  lt_Stream *(*get_default)(const lt_Backend *self, int index);
  lt_Stream *(*current)(const lt_Backend *self, int index); /* of this thread */
  bool (*set_current)(const lt_Backend *self, int index, lt_Stream *stream);
  int (*priority)(const lt_Stream *stream); /* 0, or negative: higher priority */
  void *(*native)(const lt_Stream *stream); /* the vendor's handle */
  bool (*query)(lt_Stream *stream);         /* true: all its work is done */
  bool (*synchronize)(lt_Stream *stream);
  bool (*wait_event)(lt_Stream *stream, lt_Event *event);
  lt_Event *(*event_create)(const lt_Backend *self, int index, bool timing);
  void (*event_destroy)(lt_Event *event);
  bool (*event_record)(lt_Event *event, lt_Stream *stream);
  bool (*event_query)(lt_Event *event); /* true: it is done, or was never recorded */
  bool (*event_synchronize)(lt_Event *event);
  bool (*event_elapsed)(lt_Event *from, lt_Event *to, double *milliseconds);
  bool (*device_query)(const lt_Backend *self, int index); /* query of every stream */
  bool (*device_synchronize)(const lt_Backend *self, int index);
} lt_DeviceStreams;

/* Work that was recorded once (captured) and is queued again as a whole (replayed), with the same
 * kernels, addresses and numbers. The device adds its own members. */
typedef struct lt_Graph {
  const lt_Backend *backend;
  int index; /* of the device */
} lt_Graph;

/* Graphs. All NULL: not supported. While a thread captures, the work that it queues on the stream
 * is recorded and does not run; memory that it allocates on the device comes from a private pool,
 * and has the same address in each replay; calls for which the host would have to block, or that
 * depend on work outside of the capture, fail and make the capture fail. A thread captures one
 * graph at a time. */
typedef struct lt_DeviceGraphs {
  /* Returns a number for a new private pool, which several graphs may share that are not replayed
   * at the same time. */
  uint32_t (*pool_new)(const lt_Backend *self);
  /* Begins to capture the work of this thread on `stream`, which is not the default stream. Blocks
   * until the device is done. pool: 0, or one of pool_new or of another graph of the device. */
  lt_Graph *(*begin)(const lt_Backend *self, lt_Stream *stream, uint32_t pool);
  /* Ends the capture. Fails when the capture has failed: with the first error in it. */
  bool (*end)(lt_Graph *graph);
  /* Queues the work on a stream of the device. The graph must have been captured successfully. */
  bool (*replay)(lt_Graph *graph, lt_Stream *stream);
  uint32_t (*pool)(const lt_Graph *graph);
  /* Frees the graph, after its replays, and ends its capture if it is underway. Memory of its pool
   * that no tensor and no other graph uses is returned to the driver. */
  void (*destroy)(lt_Graph *graph);
  /* Returns true when work that is queued on the stream is captured. */
  bool (*is_capturing)(lt_Stream *stream);
} lt_DeviceGraphs;

/* Kernels. A device with data has elementwise and the core kernels of the table. */
typedef struct lt_DeviceKernels {
  /* Runs an elementwise op. */
  bool (*elementwise)(const lt_Loop *loop);
  /* Checks, before an integer division (c->op) runs, that no element of `divisor`, a tensor of this
   * backend, is 0 in the integer dtype c->compute. Fails with lt_bad_divisor, either at once or,
   * where the host does not know the values, by a later call. NULL: not checked, and the quotient
   * is 0. */
  bool (*check_divisor)(const lt_Call *c, const lt_Tensor *divisor);
  /* Returns true when `elementwise` can run this op; it must run copy and fill. NULL: all ops. */
  bool (*elementwise_supported)(lt_OpId op, lt_Dtype compute);
  /* Runs an elementwise program (program.h). NULL: not supported. */
  bool (*program)(struct lt_ProgramLoop *loop);
  /* The kernels of all other ops, by op; NULL: the device has no kernel for it. */
  const lt_KernelFn *table; /* [LT_OP_COUNT] */

  /* Custom kernels; NULL: not supported. user_create compiles the source, or returns the kernel
   * that was compiled before (a source with several functions is compiled once). When the compiler
   * reports errors, *log is its output (malloc'ed, otherwise NULL). user_launch checks grid, block
   * and shared memory against the device's limits and queues the kernel on `stream`; the caller has
   * checked the arguments. */
  lt_UserKernel *(*user_create)(int index, const lt_KernelSource *source, char **log);
  bool (*user_launch)(lt_UserKernel *kernel, const lt_KernelLaunch *launch, lt_Stream *stream);
  /* Fills in the limits of a kernel. May be NULL. */
  bool (*user_limits)(const lt_UserKernel *kernel, lt_KernelLimits *out);
  /* Stops the custom kernels that run on the device, after Ctrl-C has ended a wait for it. NULL:
   * they keep running. */
  void (*user_stop)(int index);
} lt_DeviceKernels;

/* A type of device. lt_device_register refuses a backend that lacks a member which its part calls
 * required. */
struct lt_Backend {
  unsigned abi;      /* LT_BACKEND_ABI */
  const char *name;  /* "cuda" */
  bool numbered;     /* full names have a number: "cuda:0" */
  bool host_memory;  /* the host may read and write its memory directly */
  bool asynchronous; /* calls may return before the work is done */
  bool has_data;     /* false: shapes only (meta) */
  /* The dtypes that the device does not have, 1u << dtype each. A tensor of such a dtype cannot be
   * created there, and no kernel is called to compute in it. */
  unsigned without_dtypes;

  /* Returns the number of devices; when it is 0, with the reason in `why`. Never sets the error
   * slot. */
  int (*count)(char *why, size_t why_size);
  bool (*properties)(int index, lt_DeviceProperties *out);
  /* Returns the current device of this thread, which a name without a number means; NULL: 0. */
  int (*index_current)(const lt_Backend *self);
  bool (*index_set_current)(const lt_Backend *self, int index);

  lt_DeviceMemory memory;
  lt_DeviceStreams streams;
  lt_DeviceGraphs graphs;
  lt_DeviceKernels kernels;
  lt_DeviceCommunication communication;

  /* Returns a fact for display: its instruction set ("isa"), the library for matrix products
   * ("blas"); NULL when it is unknown. The string is valid as long as the program runs. May be
   * NULL. */
  const char *(*fact)(int index, const char *what);
  /* Reads (value -1) or sets (0 or 1) a boolean option by name ("matmul.allow_tf32"). Returns its
   * previous value, or -1 when there is no such option. May be NULL. */
  int (*option)(const char *name, int value);
  /* Marks the beginning (`name`) or the end (NULL) of an interval on this thread, for the system's
   * profiler. May be NULL. */
  void (*mark)(const char *name);
  /* For the backend's own use; accel/ keeps its state here. */
  void *own;
};

/* The backends that are part of this library. */
#define LT_DEVICE_ONE(name)  const lt_Backend *lt_backend_##name(void);
#define LT_DEVICE_IF_1(name) LT_DEVICE_ONE(name)
#define LT_DEVICE_IF_0(name)
#define LT_DEVICE(name, numbered, linked, ...) LT_DEVICE_IF_##linked(name)
#include "devices.def"
#undef LT_DEVICE

/* Adds a device type at run time, and returns its number; -1 with an error when the backend lacks a
 * required member or has the wrong ABI. The backend must live as long as the program. */
int lt_device_register(const lt_Backend *backend);
/* Loads a shared object that exports lt_backend(), and registers the result. */
int lt_device_load(const char *path);
/* Checks the value of LUTRA_EMULATE. */
bool lt_device_check_environment(void);
/* Returns the backend of a type, which is loaded on first use; NULL with an error when it cannot be
 * loaded. */
const lt_Backend *lt_device_backend(int type);
/* Returns the backend of a type if it is loaded already, otherwise NULL without an error. */
const lt_Backend *lt_device_loaded(int type);
/* Returns the backend of t's device. Never fails: it was loaded when t was created. */
const lt_Backend *lt_backend_of(const lt_Tensor *t);
/* Returns true when the device type has this dtype. */
bool lt_device_has_dtype(int type, lt_Dtype dtype);
/* Returns true when every device must have a kernel for this op (trait CORE). */
bool lt_op_is_core(lt_OpId op);
/* Returns true when the op can run on a device type, by a kernel or by other ops. dtype: that it
 * computes in; LT_DTYPE_NONE: any. */
bool lt_op_supported(lt_OpId op, int device_type, lt_Dtype dtype);
/* Returns true when this thread captures a graph. */
bool lt_is_capturing(void);
/* Returns this thread's current stream on a device, or on t's device; NULL when the device has no
 * streams. */
lt_Stream *lt_stream_current(lt_Device device);
lt_Stream *lt_stream_of(const lt_Tensor *t);

#endif
