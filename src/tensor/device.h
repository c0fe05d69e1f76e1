/* device.h: what a device can do: a struct of function pointers in parts (memory; streams and
 * events; kernels), filled by cpu, cuda, mps, meta, or by a shared object that is loaded at run
 * time (it exports `const lt_Backend *lt_backend(void)`).
 *
 * The model is an asynchronous device with memory of its own. Work is put on a stream and may run
 * later; the order within a stream holds. A NULL stream is the device's default stream. The CPU is
 * the simplest case: one stream, on which everything has happened when the call returns.
 *
 * A device may lack any kernel that is not core (lt_op_is_core): its entry in the table of kernels
 * is NULL (kernel_table.def makes the table). Such an op runs by its composite form, or on the CPU,
 * or is an error: fallback.c. A backend that lacks a core kernel is refused.
 *
 * Failure: functions return NULL or false with the reason in the error slot. Kernels see only
 * calls that infer has found right: shapes fit, dtypes are allowed, outputs have memory,
 * everything is on one device except that 0-d tensors of the CPU may stand beside any device
 * (their value is read at the call).
 */
#ifndef LT_DEVICE_H
#define LT_DEVICE_H

#include "lutra.h"

#define LT_BACKEND_ABI 7

typedef struct lt_Call lt_Call; /* kernel.h */
typedef bool (*lt_KernelFn)(lt_Call *call);
typedef struct lt_Backend lt_Backend;
struct lt_ProgramLoop; /* program.h */

/* What every device's streams and events begin with; the rest is the device's own. */
struct lt_Stream {
  const lt_Backend *backend;
  int index; /* of the device */
};
typedef struct lt_Event {
  const lt_Backend *backend;
  int index;
} lt_Event;

typedef struct lt_DeviceProperties {
  char name[128];       /* of the hardware, for people */
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

/* How a quantity has moved: what it is now, the most it was since the peak was reset, and the sums
 * of all that was added and taken away. */
typedef struct lt_Stat {
  int64_t current, peak, allocated, freed;
} lt_Stat;

typedef enum lt_MemoryPool {
  LT_POOL_ALL,
  LT_SMALL_POOL,
  LT_LARGE_POOL,
  LT_MEMORY_POOLS
} lt_MemoryPool;

/* The quantities, each counted in every pool. One row a quantity: field and name in
 * memory_stats. */
#define LT_MEMORY_STATS(ROW)                                                                       \
  ROW(allocation)     /* blocks that tensors hold */                                               \
  ROW(segment)        /* pieces of memory had from the driver */                                   \
  ROW(active)         /* blocks that tensors hold, or that wait for an event */                    \
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
  int64_t largest_free_block; /* bytes, of blocks that are cached and free */
} lt_MemoryStats;

/* One block, for memory_snapshot. */
typedef struct lt_MemoryBlock {
  const void *address, *segment; /* of the block, and of the segment that it is a part of */
  size_t size, segment_size, requested;
  enum { LT_BLOCK_FREE, LT_BLOCK_ACTIVE, LT_BLOCK_WAITING } state; /* waiting: for an event */
  bool small;
  const lt_Stream *stream;
  lt_Dtype dtype; /* of the tensor it was made for; LT_DTYPE_NONE when it was for none */
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  const char *where; /* the line that made it ("train.lua:12"), or "" */
} lt_MemoryBlock;

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

/* A kernel that users wrote: a function of a source text, compiled for one device. The backend's
 * own; it lives as long as the program. */
typedef struct lt_UserKernel lt_UserKernel;
typedef struct lt_KernelSource {
  const char *text, *name; /* name: of the function in the text */
  const char *expression;  /* the function as C++, converted to the type that its callers know */
  const char *const *options;
  int option_count; /* options of the compiler */
} lt_KernelSource;
typedef struct lt_KernelLaunch {
  int64_t grid[3], block[3]; /* blocks, threads of a block; not yet checked */
  int64_t shared;            /* bytes of dynamic shared memory of a block */
  void **arguments;          /* the address of each argument's value, by the kernel's parameters */
} lt_KernelLaunch;

/* ---- what a backend is made of --------------------------------------------------------------- */

/* Memory. A device with data has at least alloc, free, copy and fill_zero. */
typedef struct lt_DeviceMemory {
  /* Memory, 64-byte aligned or better; usable by work put on `stream` from now on. free may be
   * called while work that uses the memory is still queued on `stream`: the backend keeps order.
   * nbytes > 0. A caching allocator first takes from its cache and then asks the driver; the rest
   * of what is done when memory is out is storage.c's (see its head). */
  void *(*alloc)(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream);
  void (*free)(const lt_Backend *self, int index, void *memory, size_t nbytes, lt_Stream *stream);

  /* Bytes between any two devices of which one is this backend's and the other this backend's or
   * the CPU. Puts the copy on `stream` (of the device that is not the CPU). When non_blocking is
   * false, it is done on return as far as the host can see. */
  bool (*copy)(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
               lt_Stream *stream, bool non_blocking);
  bool (*fill_zero)(int index, void *memory, size_t nbytes, lt_Stream *stream);

  /* Of devices with a caching allocator (accel/ fills these in); NULL elsewhere. */
  bool (*release)(const lt_Backend *self, int index); /* gives what is cached and whole back */
  bool (*retry)(const lt_Backend *self, int index);   /* waits for all work, then the same */
  bool (*info)(const lt_Backend *self, int index, int64_t *free, int64_t *total); /* bytes */
  bool (*stats)(const lt_Backend *self, int index, lt_MemoryStats *out);
  bool (*reset_peak)(const lt_Backend *self, int index);
  bool (*limit)(const lt_Backend *self, int index, double fraction); /* of the total */
  bool (*each)(const lt_Backend *self, int index,
               void (*visit)(void *context, const lt_MemoryBlock *block), void *context);
  /* A failed allocation as a message of several lines: what was tried, what there is, who holds
   * it. `collected` is what the collector freed. */
  void (*report)(const lt_Backend *self, int index, size_t wanted, int64_t collected, char *text,
                 size_t size);

  /* Has the device been used, so that its driver has a state? NULL: there is none to set up. */
  bool (*is_ready)(const lt_Backend *self, int index);

  /* Memory of the host that the device can copy from and to by itself. NULL: there is none. */
  void *(*host_alloc)(const lt_Backend *self, size_t nbytes);
  /* `pending` (may be NULL, becomes the backend's): a copy that still uses the memory. */
  void (*host_free)(const lt_Backend *self, void *memory, size_t nbytes, lt_Event *pending);
  bool (*host_release)(const lt_Backend *self); /* gives what is cached back */

  /* Work that was put on `stream` uses memory of `storage`, which was allocated on another stream:
   * the memory is not given to others before that work is done. Dispatch calls it after each such
   * op. May be NULL. */
  bool (*record_stream)(lt_Storage *storage, lt_Stream *stream);
  bool (*can_access_peer)(const lt_Backend *self, int index, int peer); /* NULL: no */
} lt_DeviceMemory;

/* Streams and events. NULL members: the device has one stream and is always ready. */
typedef struct lt_DeviceStreams {
  lt_Stream *(*create)(const lt_Backend *self, int index, int priority);
  void (*destroy)(lt_Stream *stream);
  lt_Stream *(*get_default)(const lt_Backend *self, int index);
  lt_Stream *(*current)(const lt_Backend *self, int index); /* of this thread */
  bool (*set_current)(const lt_Backend *self, int index, lt_Stream *stream);
  int (*priority)(const lt_Stream *stream); /* 0, or negative: sooner */
  void *(*native)(const lt_Stream *stream); /* the vendor's handle */
  bool (*query)(lt_Stream *stream);         /* true: nothing is left to do */
  bool (*synchronize)(lt_Stream *stream);
  bool (*wait_event)(lt_Stream *stream, lt_Event *event);
  lt_Event *(*event_create)(const lt_Backend *self, int index, bool timing);
  void (*event_destroy)(lt_Event *event);
  bool (*event_record)(lt_Event *event, lt_Stream *stream);
  bool (*event_query)(lt_Event *event); /* true: has happened, or was never recorded */
  bool (*event_synchronize)(lt_Event *event);
  bool (*event_elapsed)(lt_Event *from, lt_Event *to, double *milliseconds);
  bool (*device_query)(const lt_Backend *self, int index); /* query of every stream */
  bool (*device_synchronize)(const lt_Backend *self, int index);
} lt_DeviceStreams;

/* What calculates. A device with data has elementwise and the core kernels of the table. */
typedef struct lt_DeviceKernels {
  /* Elementwise ops. */
  bool (*elementwise)(const lt_Loop *loop);
  /* Is no element of `divisor`, a tensor of this backend, 0 in the integer dtype c->compute? Called
   * before an integer division (c->op) is run; false with lt_bad_divisor, at once or, where only
   * the device can see it, from a later call. NULL: nobody looks, and the quotient is 0. */
  bool (*check_divisor)(const lt_Call *c, const lt_Tensor *divisor);
  /* Which of them, besides copy and fill; NULL: all. */
  bool (*elementwise_supported)(lt_OpId op, lt_Dtype compute);
  /* Elementwise programs (program.h); NULL: not on this device. */
  bool (*program)(struct lt_ProgramLoop *loop);
  /* Everything else, by op; NULL: the device has no kernel for it. */
  const lt_KernelFn *table; /* [LT_OP_COUNT] */

  /* Kernels that users write; NULL: not on this device. user_create compiles, or finds what was
   * compiled before; where the compiler refuses the text, *log is what it said (malloc'ed, else
   * NULL). user_launch checks grid, block and shared memory against the device, and puts the
   * kernel on `stream`; its arguments are right. */
  lt_UserKernel *(*user_create)(int index, const lt_KernelSource *source, char **log);
  bool (*user_launch)(lt_UserKernel *kernel, const lt_KernelLaunch *launch, lt_Stream *stream);
  /* A wait for the device was given up (Ctrl-C): users' kernels that are on it may be stopped.
   * NULL: they go on. */
  void (*user_stop)(int index);
} lt_DeviceKernels;

/* A kind of device. Each part may be left out, but that a device with data has what the parts call
 * required: lt_device_register refuses one that lacks it. */
struct lt_Backend {
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
  /* What the bare name means, for this thread; NULL: 0. */
  int (*index_current)(const lt_Backend *self);
  bool (*index_set_current)(const lt_Backend *self, int index);

  lt_DeviceMemory memory;
  lt_DeviceStreams streams;
  lt_DeviceKernels kernels;

  /* Facts for people: its instruction set ("isa"), what calculates its matrix products ("blas");
   * NULL for what it does not know. May be NULL. The text lives as long as the program. */
  const char *(*fact)(int index, const char *what);
  /* A switch that people may set, by name ("matmul.allow_tf32"): value 0 or 1 sets it, -1 only
   * asks; returns what it was, or -1 where there is no such switch. May be NULL. */
  int (*option)(const char *name, int value);
  /* The backend's own; accel/'s state lies here. */
  void *own;
};

/* The backends that are part of this library. */
#define LT_DEVICE_ONE(name)  const lt_Backend *lt_backend_##name(void);
#define LT_DEVICE_IF_1(name) LT_DEVICE_ONE(name)
#define LT_DEVICE_IF_0(name)
#define LT_DEVICE(name, numbered, linked, ...) LT_DEVICE_IF_##linked(name)
#include "devices.def"
#undef LT_DEVICE

/* Adds a device type at run time; returns its number, or -1 with the reason. */
int lt_device_register(const lt_Backend *backend);
/* The same from a shared object that exports lt_backend(). */
int lt_device_load(const char *path);
/* Checks the value of LUTRA_EMULATE; false with the reason. */
bool lt_device_check_environment(void);
/* The backend of a type, loading it on first use; NULL with the reason when it cannot be had. */
const lt_Backend *lt_device_backend(int type);
/* The same where it has been had before; else NULL, without a reason. Loads nothing. */
const lt_Backend *lt_device_loaded(int type);
/* The same for a type that has tensors already: never fails. */
const lt_Backend *lt_backend_of(const lt_Tensor *t);
/* Must every device have a kernel for this op? */
bool lt_op_is_core(lt_OpId op);
/* Can this op run on that device, by a kernel or by other ops? (dtype: what it computes in;
 * LT_DTYPE_NONE: any) */
bool lt_op_supported(lt_OpId op, int device_type, lt_Dtype dtype);
/* The stream that work on a device, or on t's, goes to now; NULL where there are none. */
lt_Stream *lt_stream_now(lt_Device device);
lt_Stream *lt_stream_of(const lt_Tensor *t);

#endif
