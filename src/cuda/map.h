/* map.h: maps over lists of tensors, one launch however many there are. */
#ifndef LT_CUDA_MAP_H
#define LT_CUDA_MAP_H

#include "kernels.h"

#define LT_CUDA_MAP_TENSORS 6  /* as many as LT_MAP_TENSORS of core.h */
#define LT_CUDA_MAP_NUMBERS 24 /* LT_MAP_NUMBERS */
#define LT_CUDA_MAP_ITEMS   50 /* a kernel's arguments have room for 4096 bytes */
#define LT_CUDA_MAP_THREADS 128
#define LT_CUDA_MAP_EACH    4                                        /* elements of a thread */
#define LT_CUDA_MAP_SPAN    (LT_CUDA_MAP_THREADS * LT_CUDA_MAP_EACH) /* elements of a block */

/* The tensors at one place of the lists: contiguous, of n > 0 elements and of one dtype. */
typedef struct lt_CudaMapItem {
  void *data[LT_CUDA_MAP_TENSORS]; /* NULL: zeros */
  int64_t n;
  uint32_t first; /* the first of its blocks */
  uint8_t dtype;
  bool vector; /* all of `data` lies at multiples of 16 bytes */
} lt_CudaMapItem;

typedef struct lt_CudaMap {
  int items;
  unsigned written;            /* bit k: data[k] may change */
  unsigned blocks;             /* of all items */
  const lt_CudaMapItem *table; /* the items in the device's memory, or NULL: they are in `item` */
  lt_CudaMapItem item[LT_CUDA_MAP_ITEMS];
} lt_CudaMap;

/* The map with this number (maps.h). Items are float64 if `wide`, else other floats. `numbers`:
 * those of lt_map_numbers. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_map(int id, const lt_CudaMap *m, bool wide,
                                            const double *numbers, cudaStream_t stream);

#endif
