/* kernels.h: the line between the C files of this folder and its kernels (.cu, C++): plain
 * functions that put kernels on a stream, and the structs they take by value. Pointers to data are
 * the device's. Everything has been checked by the C side: sizes fit, dtypes are those named.
 *
 * A launcher returns cudaSuccess or the error of the launch, and has told its kernel's name to
 * lt_cuda_note_launch (launch.cuh does both).
 *
 * Families of launchers have headers of their own beside their .cu file: reduce.h for reduce.cu.
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
 * that checks some has a ticket; a kernel that finds a bad value tells it (report_fault in
 * device.cuh), uses a harmless value in its place, and goes on. Kernels that write into memory
 * that was there before read `*bad` first, in a later launch, and do nothing when it is set. The
 * host looks at the report at the next call and whenever it waits (fault.c). */
typedef struct lt_CudaReport {
  unsigned long long ticket; /* of the call; 0: nothing is wrong */
  long long position;        /* of the first bad value, from 0, in the argument's order */
  long long value;           /* an integer, or a double's bits */
  int lock;
} lt_CudaReport;

typedef struct lt_CudaFault {
  int *bad;              /* 0, or 1 when this call's check has failed */
  lt_CudaReport *report; /* of all calls on the device, in its memory: atomics work there */
  volatile int *raised;  /* the host's memory, which the device sees: 1 when there is a report */
  unsigned long long ticket;
} lt_CudaFault;

/* Called by launch.cuh: which kernel was launched, and how that went. `status` is given back, or,
 * when CUDA_LAUNCH_BLOCKING is set, what waiting for the kernel gave. */
LT_C_LINKAGE cudaError_t lt_cuda_note_launch(const char *kernel, cudaStream_t stream,
                                             cudaError_t status);

/* Gives back the memory that our cache holds on the selected device, after a status that says that
 * the driver has none left, which it clears; false where that fails. A kernel's code is put on the
 * device at its first launch: when memory is full then, the launch is worth a second try. */
LT_C_LINKAGE bool lt_cuda_make_room(void);

#endif
