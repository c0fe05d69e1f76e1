/* nccl_calls.h: the calls of lt_DeviceCommunication as calls of NCCL. */
#ifndef LT_CUDA_NCCL_CALLS_H
#define LT_CUDA_NCCL_CALLS_H

#include "cuda.h"
#include "nccl_library.h"

/* One rank's end of a communicator of NCCL. */
typedef struct lt_NcclEnd {
  void *comm;
  cudaStream_t stream;
  int rank, size;
  void *scratch; /* device memory for the element of a barrier */
} lt_NcclEnd;

/* Checks what NCCL cannot do. */
bool lt_nccl_check(const lt_CommCall *call);
/* Queues a call on the communicator's stream, in a group that the caller has opened. Returns NCCL's
 * result. */
int lt_nccl_issue(const lt_Nccl *nccl, const lt_NcclEnd *end, const lt_CommCall *call);

#endif
