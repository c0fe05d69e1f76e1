/* map.h: the launcher of maps over lists of tensors: one launch for any number of tensors. */
#ifndef LT_CUDA_MAP_H
#define LT_CUDA_MAP_H

#include "kernels.h"

#define LT_CUDA_MAP_TENSORS 8  /* equal to LT_MAP_TENSORS of kernel.h */
#define LT_CUDA_MAP_NUMBERS 24 /* equal to LT_MAP_NUMBERS */
#define LT_CUDA_MAP_ITEMS   45 /* limited by the 4096 bytes of a kernel's arguments */
#define LT_CUDA_MAP_THREADS 128
#define LT_CUDA_MAP_EACH    4                                        /* elements for each thread */
#define LT_CUDA_MAP_SPAN    (LT_CUDA_MAP_THREADS * LT_CUDA_MAP_EACH) /* elements for each block */

/* The tensors with the same index in each list: contiguous, of n > 0 elements and of one dtype. */
typedef struct lt_CudaMapItem {
  void *data[LT_CUDA_MAP_TENSORS]; /* NULL: read as zeros */
  int64_t n;
  uint32_t first; /* the number of its first block */
  uint8_t dtype;
  bool vector; /* all of `data` is aligned to 16 bytes */
} lt_CudaMapItem;

/* The arguments of a launch. */
typedef struct lt_CudaMap {
  int items;
  unsigned written;            /* bit k: data[k] may change */
  unsigned blocks;             /* of all items */
  const lt_CudaMapItem *table; /* the items in device memory, or NULL: they are in `item` */
  lt_CudaMapItem item[LT_CUDA_MAP_ITEMS];
} lt_CudaMap;

/* Launches the map with this id (maps.h). All items are float64 if `wide`, else other floats.
 * `numbers` are those of lt_map_numbers. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_map(int id, const lt_CudaMap *m, bool wide,
                                            const double *numbers, cudaStream_t stream);

#endif
