/* kernels.h: the interface between the C files of this folder and its kernels (.cu, C++): C
 * functions that launch kernels on a stream, and the structs that they take by value. Pointers to
 * data are device pointers. The C side has checked everything: sizes match, dtypes are the
 * documented ones.
 *
 * A launcher returns cudaSuccess or the error of the launch, and has passed its kernel's name to
 * lt_cuda_note_launch; launch() of launch.cuh does both.
 *
 * Each family of launchers has its own header beside its .cu file: reduce.h for reduce.cu.
 */
#ifndef LT_CUDA_KERNELS_H
#define LT_CUDA_KERNELS_H

#include "dtypes.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define LT_C_LINKAGE extern "C"
#else
#define LT_C_LINKAGE extern
#endif

/* Bad values that only the device can see (an index out of range, a probability above 1). A call
 * that checks values has a ticket. A kernel that finds a bad value reports it (report_fault in
 * device.cuh), uses a harmless value instead, and continues. Kernels that write into existing
 * memory first read `*bad`, in a later launch than the check, and do nothing when it is set. The
 * host looks for a report at the next call and whenever it synchronizes (fault.c). */
typedef struct lt_CudaReport {
  unsigned long long ticket; /* of the call; 0: no fault was reported */
  long long position;        /* of the first bad value: its index in the argument's elements, from 0
                              */
  long long value;           /* an integer, or the bits of a double */
  /* held by the thread that writes the report */
  int lock;
} lt_CudaReport;

/* What a kernel needs to report bad values. Passed by value. */
typedef struct lt_CudaFault {
  int *bad;              /* 0, or 1 when this call's check has failed */
  lt_CudaReport *report; /* of all calls on the device, in device memory, where atomics work */
  volatile int *raised;  /* mapped host memory: 1 when there is a report */
  unsigned long long ticket;
} lt_CudaFault;

/* Records which kernel was launched on the selected device, for the messages of later errors.
 * Called by launch() of launch.cuh and for user kernels. `kernel` must live as long as the program.
 * Returns `status`; with CUDA_LAUNCH_BLOCKING, blocks until the kernel is done and returns its
 * status. */
LT_C_LINKAGE cudaError_t lt_cuda_note_launch(const char *kernel, cudaStream_t stream,
                                             cudaError_t status);

/* Frees the memory that the caching allocator holds unused on the selected device, after a status
 * of out of memory, which it clears. Returns false when the memory cannot be freed. The driver
 * loads a kernel's code at its first launch: when the device is out of memory then, a second try
 * can succeed. */
LT_C_LINKAGE bool lt_cuda_free_cached(void);

#endif
