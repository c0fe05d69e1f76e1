/* metal.h: what this folder uses of Apple's Metal, as C functions. Two files implement them:
 *
 *   metal.m      on macOS: the bodies in Objective-C, one or a few of Metal's methods each
 *   emulated/    on other systems, and on request: a GPU that is emulated on the CPU
 *
 * Everything else in this folder is C, and the kernels (*.metal), and is the same on both.
 *
 * Memory: buffers are not tracked by Metal. The command buffers of one queue run in the order in
 * which they are committed, and the commands of one buffer in the order in which they were encoded:
 * each sees the complete results of all earlier ones. Between queues, and between a queue and the
 * host, only events and completion handlers give an order: a command buffer sees what the host has
 * written to shared memory before lt_metal_commit, and the host sees what it has written when
 * `done` is called. The GPU sees only the buffers that are arguments of a command: a kernel must
 * not follow an address that it has read from memory.
 *
 * Failure: functions that can fail take `error`, which they fill in on failure only; they then
 * return NULL or false, and nothing has changed.
 *
 * Threads: any function may be called from any thread. A command buffer belongs to one thread at a
 * time until it is committed.
 */
#ifndef LT_MPS_METAL_H
#define LT_MPS_METAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of errors. An error of any kind in lt_MetalResult has ended a command buffer: what it
 * and later buffers of the device have written is undefined. LT_METAL_NO_MEMORY is among them,
 * because memory gets its place only when a command buffer uses it. */
typedef enum lt_MetalStatus {
  LT_METAL_OK,
  LT_METAL_NO_MEMORY, /* the device or the host is out of memory */
  LT_METAL_REJECTED,  /* source code with errors, or a name that the library does not have */
  LT_METAL_INVALID,   /* an argument that the device cannot accept */
  LT_METAL_PAGE_FAULT,
  LT_METAL_TIMEOUT, /* stopped by the watchdog of the system */
  LT_METAL_LOST,    /* the device was removed or reset, also because of another process */
  LT_METAL_OTHER
} lt_MetalStatus;

typedef struct lt_MetalError {
  lt_MetalStatus status;
  char text[600]; /* the description by Metal, in one line */
} lt_MetalError;

/* Objects. Each is released by its own function; devices, libraries and pipelines live as long as
 * the program. */
typedef struct lt_MetalDevice lt_MetalDevice;
typedef struct lt_MetalLibrary lt_MetalLibrary;
typedef struct lt_MetalQueue lt_MetalQueue;
typedef struct lt_MetalCommands lt_MetalCommands; /* a command buffer */
typedef struct lt_MetalEvent lt_MetalEvent;       /* a 64-bit value that only grows, 0 at first */
typedef struct lt_MetalArchive lt_MetalArchive;   /* compiled pipelines in a file */

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct lt_MetalFacts {
  char name[128];
  int family;              /* of Apple's GPUs: 7 for M1, 8 for M2, 9 for M3 and M4 */
  int cores;               /* 0: unknown */
  bool unified;            /* CPU and GPU share their memory */
  bool emulated;           /* name starts with "Emulated" */
  uint64_t recommended;    /* bytes that the device can use without swapping */
  uint64_t allocated;      /* bytes in the live buffers of this process, now */
  uint64_t largest_buffer; /* bytes */
  uint64_t total;          /* bytes of memory, of the system if unified */
  uint32_t threads;        /* the most threads of a threadgroup */
  uint32_t threadgroup;    /* the most bytes of memory of a threadgroup */
  uint32_t simd_width;     /* threads of a SIMD group */
} lt_MetalFacts;

/* Returns device `index`, from 0, or NULL with the reason in error->text (LT_METAL_OTHER). Later
 * calls return the same device. */
lt_MetalDevice *lt_metal_device(int index, lt_MetalError *error);
/* Fills in the facts. `allocated` is the current value. */
void lt_metal_facts(lt_MetalDevice *device, lt_MetalFacts *facts);

/* ---- memory ---------------------------------------------------------------------------------- */

typedef enum lt_MetalStorage {
  LT_METAL_SHARED, /* CPU and GPU can access it */
  LT_METAL_PRIVATE /* only the GPU can access it */
} lt_MetalStorage;

/* A buffer. The implementation allocates a larger struct that begins with this one. */
typedef struct lt_MetalBuffer {
  uint64_t address; /* on the GPU, aligned to 512 bytes or better; not a pointer for the host */
  void *contents;   /* the same memory for the host; NULL where it is private */
  size_t size;      /* bytes */
} lt_MetalBuffer;

/* Allocates a buffer of nbytes > 0, whose contents are undefined. On macOS an allocation succeeds
 * beyond lt_MetalFacts.recommended, up to what the system can swap: the caller sets the limit. */
lt_MetalBuffer *lt_metal_buffer_new(lt_MetalDevice *device, size_t nbytes, lt_MetalStorage storage,
                                    lt_MetalError *error);
/* Frees a buffer that no unfinished command uses. NULL is allowed. */
void lt_metal_buffer_free(lt_MetalBuffer *buffer);

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns the library of one file of this folder's kernels, by the file's name without ".metal". */
lt_MetalLibrary *lt_metal_library_builtin(lt_MetalDevice *device, const char *file,
                                          lt_MetalError *error);
/* Compiles source code in the Metal Shading Language, with precise math. When the compiler reports
 * errors (LT_METAL_REJECTED) or warnings, *log is its output (malloc'ed, the caller frees it),
 * otherwise NULL. */
lt_MetalLibrary *lt_metal_library_new(lt_MetalDevice *device, const char *source, char **log,
                                      lt_MetalError *error);

/* A compiled kernel. The implementation allocates a larger struct that begins with this one.
 *
 * `threads` is less than lt_MetalFacts.threads for kernels that need many registers: expect 256. A
 * kernel that is launched with more is declared [[max_total_threads_per_threadgroup(1024)]] (before
 * `kernel`), for which the compiler makes room. */
typedef struct lt_MetalPipeline {
  uint32_t threads;     /* the most threads of a threadgroup for this kernel */
  uint32_t simd_width;  /* threads of a SIMD group */
  uint32_t threadgroup; /* bytes of threadgroup memory that it declares itself */
} lt_MetalPipeline;

/* Compiles a kernel of the library for the device. constants[i] is the value of the function
 * constant with index i (all are of type int). archive: where a compiled form is searched for, and
 * added to; may be NULL. */
lt_MetalPipeline *lt_metal_pipeline_new(lt_MetalLibrary *library, const char *kernel,
                                        const int32_t *constants, int count,
                                        lt_MetalArchive *archive, lt_MetalError *error);
/* Opens the archive in a file, or an empty one where there is no valid file. */
lt_MetalArchive *lt_metal_archive_open(lt_MetalDevice *device, const char *path,
                                       lt_MetalError *error);
/* Writes the archive to a new file. Fails (LT_METAL_INVALID) when nothing was added to it. */
bool lt_metal_archive_write(lt_MetalArchive *archive, const char *path, lt_MetalError *error);

/* ---- queues and commands --------------------------------------------------------------------- */

/* Creates and frees a queue. Freeing one does not wait for its committed work, which completes. */
lt_MetalQueue *lt_metal_queue_new(lt_MetalDevice *device, lt_MetalError *error);
void lt_metal_queue_free(lt_MetalQueue *queue);

/* Creates a command buffer on a queue. It ends with lt_metal_commit or lt_metal_discard. The host
 * is blocked while LT_METAL_IN_FLIGHT buffers of the queue exist that have not completed. */
#define LT_METAL_IN_FLIGHT 256
lt_MetalCommands *lt_metal_commands_new(lt_MetalQueue *queue, lt_MetalError *error);

#define LT_METAL_ARGUMENTS 31   /* arguments of a kernel */
#define LT_METAL_BYTES     4096 /* the most bytes of an argument that is passed by value */

/* An argument of a kernel: memory from an offset in a buffer (a parameter `device T *`, the offset
 * a multiple of T's alignment), or the bytes of a value (a parameter `constant T &`). With neither,
 * the kernel must not access the parameter. */
typedef struct lt_MetalArgument {
  lt_MetalBuffer *buffer; /* NULL: a value */
  size_t offset;          /* less than the buffer's size */
  const void *bytes;      /* copied by the call; NULL: nothing */
  size_t size;            /* 1 .. LT_METAL_BYTES */
} lt_MetalArgument;

typedef struct lt_MetalDispatch {
  lt_MetalPipeline *pipeline;
  const lt_MetalArgument *arguments; /* arguments[i] is [[buffer(i)]] */
  int count;
  uint32_t grid[3];  /* threads in all, each at least 1; the last groups of a row may be smaller */
  uint32_t group[3]; /* threads of a threadgroup, each at least 1 */
  uint32_t threadgroup; /* bytes of [[threadgroup(0)]], a multiple of 16; 0: none */
} lt_MetalDispatch;

/* Encode commands. Only what lt_MetalFacts and lt_MetalPipeline allow may be asked for. */
void lt_metal_dispatch(lt_MetalCommands *commands, const lt_MetalDispatch *dispatch);
/* Copies nbytes; within one buffer the two ranges do not overlap. Offsets and nbytes may be any
 * numbers: where Metal needs multiples of 4, the implementation copies the rest by a kernel. */
void lt_metal_copy(lt_MetalCommands *commands, lt_MetalBuffer *to, size_t to_offset,
                   lt_MetalBuffer *from, size_t from_offset, size_t nbytes);
/* Fills nbytes with one byte. */
void lt_metal_fill(lt_MetalCommands *commands, lt_MetalBuffer *buffer, size_t offset, size_t nbytes,
                   uint8_t byte);
/* Sets the event to the value when all earlier commands are complete. */
void lt_metal_signal(lt_MetalCommands *commands, lt_MetalEvent *event, uint64_t value);
/* Makes the later commands wait until the event has at least that value. Commit the command buffer
 * that signals it first: the watchdog of the system ends work that waits for seconds. */
void lt_metal_wait(lt_MetalCommands *commands, lt_MetalEvent *event, uint64_t value);

/* A product of matrices, out = a @ b, by Apple's MPSMatrixMultiplication: row-major matrices of
 * float32 or float16, each `rows` x `columns` with `stride` bytes between rows. */
typedef struct lt_MetalMatrix {
  lt_MetalBuffer *buffer;
  size_t offset, stride;
  uint32_t rows, columns;
  bool transposed; /* the factor is the transpose of what is in memory */
} lt_MetalMatrix;
/* Encodes the product. Returns false, without an error, where it is not available (the caller then
 * uses its own kernel). */
bool lt_metal_matmul(lt_MetalCommands *commands, const lt_MetalMatrix *out, const lt_MetalMatrix *a,
                     const lt_MetalMatrix *b, bool half);

/* What is known of a command buffer that has run. Times are seconds on the clock of the host. */
typedef struct lt_MetalResult {
  lt_MetalError error; /* status LT_METAL_OK: it succeeded */
  double start, end;   /* when the GPU started and ended */
} lt_MetalResult;

/* Commits a command buffer, which then belongs to the implementation. When it has run or failed,
 * `done` is called once with `context`, on another thread, in the order of the queue. It must not
 * block and must not call functions of this header, except lt_metal_event_set. */
void lt_metal_commit(lt_MetalCommands *commands,
                     void (*done)(void *context, const lt_MetalResult *result), void *context);
/* Frees a command buffer that was not committed. NULL is allowed. */
void lt_metal_discard(lt_MetalCommands *commands);

/* ---- events ---------------------------------------------------------------------------------- */

lt_MetalEvent *lt_metal_event_new(lt_MetalDevice *device, lt_MetalError *error);
/* Frees an event; queued commands that use it keep it alive. NULL is allowed. */
void lt_metal_event_free(lt_MetalEvent *event);
/* Sets the value from the host, if it is larger than the current one: releases commands that wait
 * for a command buffer that failed. Reading and setting are two steps: no unfinished command may
 * signal a value between the current one and this one. */
void lt_metal_event_set(lt_MetalEvent *event, uint64_t value);

/* Stops the kernels from source (lt_metal_library_new) that run or are queued on the device,
 * without an error: what they write is incomplete. Only an emulated device can. */
void lt_metal_stop(lt_MetalDevice *device);

/* ---- tools ----------------------------------------------------------------------------------- */

/* Marks the beginning (`name`) or the end (NULL) of an interval on this thread, for the system's
 * profiler. Does nothing where there is none. */
void lt_metal_signpost(const char *name);

#ifdef __cplusplus
}
#endif

#endif
