/* nccl_library.h: the functions of NVIDIA's NCCL that Lutra calls, declared here because the
 * library is loaded at run time and its header may be missing where Lutra is built. Versions from
 * 2.10 on have them, except for GetLastError (2.13). */
#ifndef LT_CUDA_NCCL_LIBRARY_H
#define LT_CUDA_NCCL_LIBRARY_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* Values of the library's enums: results, dtypes, reductions. */
enum { LT_NCCL_SUCCESS = 0, LT_NCCL_IN_PROGRESS = 7 };
enum {
  LT_NCCL_INT8 = 0,
  LT_NCCL_UINT8 = 1,
  LT_NCCL_INT32 = 2,
  LT_NCCL_INT64 = 4,
  LT_NCCL_FLOAT16 = 6,
  LT_NCCL_FLOAT32 = 7,
  LT_NCCL_FLOAT64 = 8,
  LT_NCCL_BFLOAT16 = 9
};
enum { LT_NCCL_SUM = 0, LT_NCCL_PROD = 1, LT_NCCL_MAX = 2, LT_NCCL_MIN = 3, LT_NCCL_AVG = 4 };

typedef struct lt_NcclId {
  char bytes[128];
} lt_NcclId;

/* Functions: name without "nccl", parameters. All return a result. A communicator is a void *. */
#define LT_NCCL_FUNCTIONS(F)                                                                       \
  F(GetVersion, (int *version))                                                                    \
  F(GetUniqueId, (lt_NcclId * id))                                                                 \
  F(CommInitRank, (void **comm, int ranks, lt_NcclId id, int rank))                                \
  F(CommDestroy, (void *comm))                                                                     \
  F(CommAbort, (void *comm))                                                                       \
  F(CommGetAsyncError, (void *comm, int *error))                                                   \
  F(Reduce, (const void *in, void *out, size_t count, int dtype, int op, int root, void *comm,     \
             cudaStream_t stream))                                                                 \
  F(Broadcast, (const void *in, void *out, size_t count, int dtype, int root, void *comm,          \
                cudaStream_t stream))                                                              \
  F(AllReduce,                                                                                     \
    (const void *in, void *out, size_t count, int dtype, int op, void *comm, cudaStream_t stream)) \
  F(ReduceScatter,                                                                                 \
    (const void *in, void *out, size_t count, int dtype, int op, void *comm, cudaStream_t stream)) \
  F(AllGather,                                                                                     \
    (const void *in, void *out, size_t count, int dtype, void *comm, cudaStream_t stream))         \
  F(Send, (const void *in, size_t count, int dtype, int peer, void *comm, cudaStream_t stream))    \
  F(Recv, (void *out, size_t count, int dtype, int peer, void *comm, cudaStream_t stream))         \
  F(GroupStart, (void))                                                                            \
  F(GroupEnd, (void))

typedef struct lt_Nccl {
#define LT_FIELD(name, parameters) int(*name) parameters;
  LT_NCCL_FUNCTIONS(LT_FIELD)
#undef LT_FIELD
  const char *(*GetErrorString)(int result);
  const char *(*GetLastError)(void *comm); /* NULL: not in this version */
  char name[64];                           /* "NCCL 2.27.3" */
} lt_Nccl;

/* Returns the library, which is loaded by the first call; NULL, with the reason and the remedy in
 * `why`, when it was not found. Never sets the error slot. */
const lt_Nccl *lt_cuda_nccl(char *why, size_t size);

#endif
