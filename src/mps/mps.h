/* mps.h: declarations shared by the C files of this folder. A kernel function of the op table has
 * this form:
 *
 *     bool lt_mps_<row>(lt_Call *c) {
 *       if (!lt_mps_begin(c)) return false;    raises pending faults
 *       ... lt_as_contiguous, lt_empty for scratch (stream order makes it safe to release at once)
 *       return lt_mps_launch(c, &(lt_MpsLaunch){.file = "softmax", .kernel = "softmax_rows", ...});
 *     }
 *
 * Inputs may have any strides and any dtype that infer allows; outputs are contiguous. Kernel
 * functions are asynchronous: the host blocks only where it needs a number from the device to
 * continue (nonzero, masked_select).
 *
 * The memory of a tensor is an address on the GPU (lt_MetalBuffer.address plus an offset), which
 * the host never dereferences: memory.c finds the buffer that holds it.
 *
 * Functions that return bool return false with an error message set, unless their comment says
 * otherwise. All of them may be called from any thread.
 *
 *   device.c    the backend: properties, options, the table of kernels
 *   driver.c    what accel/ calls: memory, streams, events
 *   queue.c     streams: command buffers that collect commands, events between them (queue.h)
 *   memory.c    the buffers, by address
 *   pipeline.c  compiled kernels, and their archive in a file
 *   launch.c    launches of this folder's kernels; kernel.c: of kernels that users write
 *   copy.c      copies and fills
 *   errors.c    messages, and lost devices
 *   fault.c     bad values that only the device can see
 *   metal.m, metal_*.m, emulated/: Metal itself (metal.h)
 *
 * The other files are families of ops: X.c launches the kernels of X.metal, and both include X.h.
 */
#ifndef LT_MPS_MPS_H
#define LT_MPS_MPS_H

#include "accel/accel.h"
#include "accel/fault.h"
#include "kernel.h"
#include "metal.h"

extern lt_Backend lt_mps_backend; /* the device type "mps"; device.c */

/* ---- device.c, driver.c ---------------------------------------------------------------------- */

extern const lt_AccelDriver lt_mps_driver; /* the operations that accel/ calls; driver.c */
int lt_mps_count(char *why, size_t why_size);
/* Opens the device and reads its facts. */
bool lt_mps_initialize(int index);
/* Returns the device and its facts, which live as long as the program. Require
 * lt_mps_initialize. */
lt_MetalDevice *lt_mps_device(int index);
const lt_MetalFacts *lt_mps_facts(int index);

/* Boolean options (lt_Backend.option); read with atomic_load. */
typedef enum lt_MpsOption {
  LT_MPS_OPTION_MATMUL, /* "matmul.prefer_apple": products by MPSMatrixMultiplication */
  LT_MPS_OPTIONS
} lt_MpsOption;
extern atomic_bool lt_mps_options[LT_MPS_OPTIONS];

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Sets the error message "<user op>: cannot <doing> on "mps": <text>" and returns false. `doing`
 * says what Metal was called for ("allocate memory"). */
bool lt_mps_fail(int index, const lt_MetalError *error, const char *doing);
/* Returns true when a command buffer has failed: then every call on the device fails with the same
 * message, until the program is restarted. */
bool lt_mps_is_lost(int index);
/* Starts a kernel function: fails on a lost device, and raises the fault that an earlier call has
 * left, if there is one. Every kernel function calls it first. */
bool lt_mps_begin(const lt_Call *c);
/* Returns true when the host blocks until each kernel is done (LUTRA_MPS_BLOCKING=1): then the call
 * itself reports bad values. */
bool lt_mps_is_blocking(void);

/* ---- memory.c: the buffers, by address ------------------------------------------------------- */

/* Finds the buffer that holds nbytes from this address on the GPU, and the offset in it. Returns
 * NULL, without an error, where no live buffer does. */
lt_MetalBuffer *lt_mps_find_buffer(uint64_t address, size_t nbytes, size_t *offset);
/* Finds the buffer that holds nbytes of pinned host memory, as the function above does. */
lt_MetalBuffer *lt_mps_find_pinned(const void *memory, size_t nbytes, size_t *offset);

/* ---- launch.c: launches of kernels ----------------------------------------------------------- */

#define LT_MPS_DATA      10 /* tensors of a launch */
#define LT_MPS_CONSTANTS 8  /* function constants K0 .. K7 of device.metal.h */

/* A launch. data[i] is [[buffer(i)]]; the struct `arguments` is [[buffer(count)]], where `count`
 * is the number of data. */
typedef struct lt_MpsLaunch {
  const char *file, *kernel;           /* softmax.metal; the kernel's name in it */
  int32_t constants[LT_MPS_CONSTANTS]; /* those that the kernel does not use: 0 */
  const void *data[LT_MPS_DATA];       /* addresses of tensors' memory; may be NULL: then the kernel
                                          must not access it */
  int count;
  const void *arguments; /* copied by the call; NULL: none */
  size_t size;           /* bytes, at most LT_METAL_BYTES */
  int64_t groups[3];     /* threadgroups in the grid; 0 counts as 1 */
  int threads[3];        /* threads of a threadgroup; 0 counts as 1 */
  size_t threadgroup;    /* bytes of [[threadgroup(0)]]; 0: none */
} lt_MpsLaunch;

/* Queues the kernel on the call's stream. Returns false when the kernel cannot be compiled, the
 * device is lost, or memory is out. */
bool lt_mps_launch(const lt_Call *c, const lt_MpsLaunch *launch);
/* The same on a stream of device `index`. */
bool lt_mps_launch_on(int index, lt_Stream *stream, const lt_MpsLaunch *launch);

/* Returns the number of threadgroups for n elements, `each` to a group; at least 1. */
static inline int64_t lt_mps_groups(int64_t n, int64_t each) {
  return n > 0 ? (n - 1) / each + 1 : 1;
}
/* Returns true when a geometry (geometry.h) of these operands is narrow: 32 bits are enough for its
 * elements and offsets. */
static inline bool lt_mps_is_narrow(int ndim, const int64_t *shape, int operands,
                                    int64_t (*strides)[LT_MAX_DIMS]) {
  int64_t numel = 1, furthest[4] = {0, 0, 0, 0};
  for (int d = 0; d < ndim; d++) {
    if (shape[d] >= INT32_MAX || (numel *= shape[d]) >= INT32_MAX) return false;
    for (int k = 0; k < operands; k++) {
      if (strides[k][d] < 0 || strides[k][d] >= INT32_MAX) return false;
      furthest[k] += shape[d] > 0 ? (shape[d] - 1) * strides[k][d] : 0;
      if (furthest[k] >= INT32_MAX) return false;
    }
  }
  return true;
}

/* ---- copy.c: lt_Backend.copy and fill_zero --------------------------------------------------- */

bool lt_mps_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                 lt_Stream *stream, bool non_blocking);
bool lt_mps_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream);
/* Copies the host's bytes to new device memory, for the kernels of this call. Returns a uint8
 * tensor (one reference, which may be released once the kernels are launched), or NULL on failure.
 * `bytes` may be reused when the call returns. */
lt_Tensor *lt_mps_upload(const lt_Call *c, const void *bytes, size_t nbytes);

/* ---- kernel.c: lt_Backend.kernels.user_create, user_launch, user_limits, user_stop ----------- */

/* Compiles the function `name` of a source in the Metal Shading Language; a source is compiled
 * once. Returns NULL with a message on failure; where the compiler rejects the source, *log is its
 * output (malloc'ed, the caller frees it), else NULL. The kernel lives as long as the program. */
lt_UserKernel *lt_mps_kernel_new(int index, const lt_KernelSource *source, char **log);
/* Queues a kernel: argument i is [[buffer(i)]]. Returns false when the grid, the block or the
 * shared memory exceeds the limits. */
bool lt_mps_kernel_launch(lt_UserKernel *kernel, const lt_KernelLaunch *launch, lt_Stream *stream);
bool lt_mps_kernel_limits(const lt_UserKernel *kernel, lt_KernelLimits *out);
void lt_mps_kernel_stop(int index); /* on emulated devices only */

/* ---- elementwise.c, fault.c: members of lt_Backend ------------------------------------------- */

bool lt_mps_elementwise(const lt_Loop *loop);
/* False for ops of type W: there is no float64. */
bool lt_mps_elementwise_supported(lt_OpId op, lt_Dtype compute);
bool lt_mps_check_divisor(const lt_Call *c, const lt_Tensor *divisor);

/* ---- fault.c: values that only the device can see -------------------------------------------- */

/* A check of a call. `slot` is the address on the GPU of its lt_MpsFaultSlot (fault.h), which a
 * kernel takes as one of its data; it reports a bad value with report_fault(slot, position) of
 * device.metal.h. A slot whose `position` is LT_MPS_NO_FAULT holds no report. */
typedef struct lt_MpsFault {
  const void *slot;
  uint64_t ticket;
} lt_MpsFault;

/* Registers a check of this call under a new ticket and fills in *out. */
bool lt_mps_fault_open(const lt_Call *c, const lt_FaultNote *note, lt_MpsFault *out);
/* Queues, after the kernels that report to `fault`, the kernel that stores the bad value with its
 * position: element `position` of `values`, in the order of its elements. Where the order of the
 * values is that of the checks, `values` is the checked tensor itself. */
bool lt_mps_fault_close(const lt_Call *c, const lt_MpsFault *fault, const lt_Tensor *values);
/* Raises the error of the first bad value of the earliest call that has one. Returns true when
 * nothing was reported; this costs one read of host memory. Called by lt_mps_begin, by copies to
 * the host and by synchronization. */
bool lt_mps_fault_check(int index);

/* Converts an index tensor (any integer dtype and layout) to contiguous int64 indices that count
 * from 0. Returns one reference, or NULL on failure. Values outside 1..n (or -n..-1 if `negative`)
 * are reported through `fault`, which is opened and closed here, and become 0; where n is 0,
 * kernels must not read through them. `name` is the argument's name. */
lt_Tensor *lt_mps_checked_indices(lt_Call *c, lt_Tensor *index, int64_t n, bool negative,
                                  const char *name, lt_MpsFault *fault);

#endif
