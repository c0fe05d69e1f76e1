/* cuda.h: declarations shared by the C files of this folder. A kernel function of the op table has
 * this form:
 *
 *     bool lt_cuda_<row>(lt_Call *c) {
 *       if (!lt_cuda_begin(c)) return false;   selects the device, raises pending faults
 *       ... lt_as_contiguous, lt_empty for scratch (stream order makes it safe to release at once)
 *       return lt_cuda_launch_ok(lt_cuda_launch_...(..., lt_cuda_stream(c)));
 *     }
 *
 * Inputs may have any strides and any dtype that infer allows; outputs are contiguous. Kernel
 * functions are asynchronous: the host blocks only where it needs a number from the device to
 * continue (nonzero, masked_select).
 *
 * Functions that return bool return false with an error message set, unless their comment says
 * otherwise. All of them may be called from any thread.
 */
#ifndef LT_CUDA_CUDA_H
#define LT_CUDA_CUDA_H

#include "accel/accel.h"
#include "accel/fault.h"
#include "kernel.h"
#include "kernels.h"

#include <cuda_runtime_api.h>

extern lt_Backend lt_cuda_backend; /* the device type "cuda"; device.c */

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Returns true for cudaSuccess. Otherwise returns false with the message "<user op>: CUDA error
 * ...". `doing` says what the runtime was called for ("copying 4 MiB to the host"). An error that
 * destroys the context marks the device as lost; its message names the kernels that may have caused
 * it. */
bool lt_cuda_ok(cudaError_t status, const char *doing);
/* Does the same for the status that a launcher returned, and names the kernel. With
 * CUDA_LAUNCH_BLOCKING it also raises the bad values that the kernel reported. */
bool lt_cuda_launch_ok(cudaError_t status);
/* Returns true when the host blocks until each kernel is done (CUDA_LAUNCH_BLOCKING): then the call
 * itself reports bad values. */
bool lt_cuda_is_blocking(void);
/* Makes the device current for this thread's calls of the runtime. Returns false when the device is
 * lost. Every call on a device goes through this function, so that calls on a lost device fail at
 * once. */
bool lt_cuda_select(int index);
/* Returns the index of the device that this thread has selected. When it has selected none: returns
 * -1, or, with `must`, selects the current device and returns its index (-1 with a message when it
 * cannot be used). */
int lt_cuda_selected(bool must);
/* Returns true when an error has made the device unusable until the program is restarted. */
bool lt_cuda_is_lost(int index);
/* Records that all work on this stream is done, or, with `all`, all work on the device. An error
 * message then no longer names the kernels launched before. */
void lt_cuda_note_completed(int index, cudaStream_t stream, bool all);
/* Starts a kernel function: selects the call's device and raises the fault that an earlier call has
 * left, if there is one. Every kernel function calls it first. */
bool lt_cuda_begin(const lt_Call *c);
/* Returns the stream on which the call's kernels are launched. */
static inline cudaStream_t lt_cuda_stream(const lt_Call *c) {
  return (cudaStream_t)lt_accel_native(c->stream);
}

/* ---- device.c, driver.c ---------------------------------------------------------------------- */

extern const lt_AccelDriver lt_cuda_driver; /* the operations that accel/ calls; driver.c */
/* Returns the number of usable GPUs, at most LT_ACCEL_MAX. Where it is 0, writes the reason to
 * `why`. The driver is asked once; no context is created. */
int lt_cuda_count(char *why, size_t why_size);
/* Creates the device's context and reads its facts. Returns false when this build has no code for
 * the GPU. The device that was selected before stays selected. */
bool lt_cuda_initialize(int index);
/* Properties of a device that launches depend on. Read once, by lt_cuda_initialize. */
typedef struct lt_CudaFacts {
  int multiprocessors, major, minor;
  int max_threads_per_multiprocessor;
  size_t shared_per_block, shared_per_block_optin, l2;
} lt_CudaFacts;
/* Returns the device's facts, which live as long as the program. Requires lt_cuda_initialize. */
const lt_CudaFacts *lt_cuda_facts(int index);

bool lt_cuda_elementwise(const lt_Loop *loop); /* lt_Backend's kernels.elementwise: launches the
                                                * loop's kernel; elementwise.c */

/* ---- kernel.c: lt_Backend.kernels.user_create, user_launch, user_stop ------------------------ */

/* Compiles a kernel from source, or loads it from the cache of compiled kernels. Returns NULL with
 * a message on failure; where the compiler rejects the source, *log is its output (malloc'ed, the
 * caller frees it), else NULL. The kernel lives as long as the program. */
lt_UserKernel *lt_cuda_kernel_new(int index, const lt_KernelSource *source, char **log);
/* Launches a kernel on the stream. Returns false when the grid, the block or the shared memory
 * exceeds the device's limits, or when the launch fails. */
bool lt_cuda_kernel_launch(lt_UserKernel *kernel, const lt_KernelLaunch *launch, lt_Stream *stream);
/* Stops the running user kernels of an emulated device. Does nothing on a GPU, which cannot stop a
 * kernel. */
void lt_cuda_kernel_stop(int index);

/* ---- copy.c: lt_Backend.copy and fill_zero --------------------------------------------------- */

/* Copies bytes between the host and a device, between devices, or within one, on `stream`. A
 * copy from or to pageable host memory is complete when the call returns. With `non_blocking`, a
 * copy from or to pinned memory is only queued: the caller keeps both memories alive until it is
 * done. */
bool lt_cuda_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                  lt_Stream *stream, bool non_blocking);
/* Queues the filling of device memory with zeros. */
bool lt_cuda_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream);
/* Copies the host's bytes to new device memory, for the kernels of this call. Returns a uint8
 * tensor (one reference, which may be released once the kernels are launched), or NULL on failure.
 * `bytes` may be reused when the call returns. */
lt_Tensor *lt_cuda_upload(const lt_Call *c, const void *bytes, size_t nbytes);

/* ---- fault.c: values that only the device can see -------------------------------------------- */

/* lt_Backend's kernels.check_divisor. The check runs on the device; a later call raises its error,
 * unless the call is in place: then the host blocks until the divisor is known to be valid. */
bool lt_cuda_check_divisor(const lt_Call *c, const lt_Tensor *divisor);

/* Registers a check of this call under a new ticket and fills *out for the kernels. *out is passed
 * to them by value; its `bad` is 0 until one of them reports a bad value. */
bool lt_cuda_fault_open(const lt_Call *c, const lt_FaultNote *note, lt_CudaFault *out);
/* Allocates what reports of bad values on a device need, which is not possible during a capture. */
bool lt_cuda_fault_prepare(int index);
/* Raises the error of the first bad value that has been reported on the device, with the message of
 * the call that it belongs to. Returns true when nothing was reported; this costs one read of host
 * memory, and during a capture always. Called by lt_cuda_begin, by copies to the host and by
 * synchronization. */
bool lt_cuda_fault_check(int index);

/* Converts an index tensor (any integer dtype and layout) to contiguous int64 indices that count
 * from 0. Returns one reference, or NULL on failure. Values outside 1..n (or -n..-1 if `negative`)
 * are reported through `fault` and become 0; where n is 0, kernels must not read through them.
 * `name` is the argument's name. */
lt_Tensor *lt_cuda_checked_indices(lt_Call *c, lt_Tensor *index, int64_t n, bool negative,
                                   const char *name, lt_CudaFault *fault);

#endif
