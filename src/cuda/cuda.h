/* cuda.h: what the C files of this folder share. A kernel function of the op table looks like this:
 *
 *   bool lt_cuda_<row>(lt_Call *c) {
 *     if (!lt_cuda_begin(c)) return false;        selects the device, looks for faults
 *     ... lt_as_contiguous, lt_empty for scratch (stream order makes it safe to release at once)
 *     return lt_cuda_ran(lt_cuda_launch_...(..., lt_cuda_stream(c)));
 *   }
 *
 * Inputs may have any strides, and any dtype that infer allows; outputs are contiguous. Nothing
 * waits for the device but what needs a number from it to go on (nonzero, masked_select).
 */
#ifndef LT_CUDA_CUDA_H
#define LT_CUDA_CUDA_H

#include "accel/accel.h"
#include "kernel.h"
#include "kernels.h"

#include <cuda_runtime_api.h>

extern lt_Backend lt_cuda_backend; /* device.c */

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Turns a status of the runtime into true, or false with a message "<user op>: CUDA error ...".
 * `doing`: what was being done ("copying 4 MiB to the host"). Names the kernels that may be at
 * fault, and says when the context is lost and the device needs a restart. */
bool lt_cuda_ok(cudaError_t status, const char *doing);
/* The same for what a launcher returned. */
bool lt_cuda_ran(cudaError_t status);
/* Returns true when the host blocks until each kernel is done (CUDA_LAUNCH_BLOCKING): then the
 * call itself reports bad values. */
bool lt_cuda_is_blocking(void);
/* Makes the device current for this thread's calls of the runtime. False where it is lost: every
 * call on it leads through here, and fails at once. */
bool lt_cuda_select(int index);
/* The device that this thread has selected. Where it has none: -1, or, if it `must`, the current
 * one, selected now (-1: it cannot be used). */
int lt_cuda_selected(bool must);
/* Has an error made it useless until the program is started again? */
bool lt_cuda_is_lost(int index);
/* All work of that stream, or all the device's work, is known to be done. */
void lt_cuda_waited(int index, cudaStream_t stream, bool all);
/* Before a kernel function's work: selects the device and raises the fault that an earlier call has
 * left, if there is one. */
bool lt_cuda_begin(const lt_Call *c);
static inline cudaStream_t lt_cuda_stream(const lt_Call *c) {
  return (cudaStream_t)lt_accel_native(c->stream);
}

/* ---- device.c, driver.c ---------------------------------------------------------------------- */

extern const lt_AccelDriver lt_cuda_driver; /* driver.c */
int lt_cuda_count(char *why, size_t why_size);
bool lt_cuda_initialize(int index);
/* Facts of the device, asked for once. */
typedef struct lt_CudaFacts {
  int multiprocessors, major, minor;
  int max_threads_per_multiprocessor;
  size_t shared_per_block, shared_per_block_optin, l2;
} lt_CudaFacts;
const lt_CudaFacts *lt_cuda_facts(int index);

bool lt_cuda_elementwise(const lt_Loop *loop); /* elementwise.c */

/* ---- kernel.c: lt_Backend.kernel_new, kernel_launch and kernel_stop -------------------------- */

lt_UserKernel *lt_cuda_kernel_new(int index, const lt_KernelSource *source, char **log);
bool lt_cuda_kernel_launch(lt_UserKernel *kernel, const lt_KernelLaunch *launch, lt_Stream *stream);
void lt_cuda_kernel_stop(int index);

/* ---- copy.c: lt_Backend.copy and fill_zero --------------------------------------------------- */

bool lt_cuda_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                  lt_Stream *stream, bool non_blocking);
bool lt_cuda_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream);
/* A copy of the host's bytes in the device's memory, for the kernels of this call (one reference,
 * which may be released when they are launched). The bytes are the caller's again at once. */
lt_Tensor *lt_cuda_upload(const lt_Call *c, const void *bytes, size_t nbytes);

/* ---- fault.c: values that only the device can see -------------------------------------------- */

typedef enum lt_FaultKind {
  LT_FAULT_INDEX,       /* wants 1..n, or -n..-1 if negative is allowed */
  LT_FAULT_DIVISOR,     /* wants an integer that is not 0 in the dtype `compute` */
  LT_FAULT_TARGET,      /* wants 1..n or `ignore` */
  LT_FAULT_PROBABILITY, /* wants 0..1; the value is a double */
  LT_FAULT_WEIGHT,      /* wants finite and not negative; a double; rows are n wide */
  LT_FAULT_WEIGHTS,     /* a row's weights: position is the row, value how many are not 0, or -1
                         * where they add up to infinity; at least `ignore` are wanted */
  LT_FAULT_KINDS
} lt_FaultKind;

/* What the message will say. */
typedef struct lt_FaultNote {
  lt_FaultKind kind;
  const char *argument; /* its name; lives as long as the program */
  int64_t n, ignore;
  bool negative;
  lt_Dtype compute;
  int ndim; /* of the argument that holds the values, to say where it was */
  int64_t shape[LT_MAX_DIMS];
} lt_FaultNote;

/* The backend's check_divisor: on the device, and told by a later call. */
bool lt_cuda_check_divisor(const lt_Call *c, const lt_Tensor *divisor);

/* Takes a ticket for this call's check, with *bad = 0 put on the call's stream. */
bool lt_cuda_fault_open(const lt_Call *c, const lt_FaultNote *note, lt_CudaFault *out);
/* Raises what has been reported so far, as the message of the call that it belongs to; true when
 * nothing was. Costs one read. Called by begin, copies to the host and waits. */
bool lt_cuda_fault_check(int index);

/* An index tensor (any integer dtype and layout) as contiguous int64 positions that count from 0
 * (one reference). Values outside 1..n (or -n..-1 if `negative`) are reported through `fault` and
 * become 0; where n is 0 kernels must not read. `name` is the argument's. */
lt_Tensor *lt_cuda_positions(lt_Call *c, lt_Tensor *index, int64_t n, bool negative,
                             const char *name, lt_CudaFault *fault);

#endif
