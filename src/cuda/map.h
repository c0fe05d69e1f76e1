/* map.h: maps over lists of tensors, one launch for as many as fit its arguments. */
#ifndef LT_CUDA_MAP_H
#define LT_CUDA_MAP_H

#include "kernels.h"

#define LT_CUDA_MAP_TENSORS 6  /* as many as LT_MAP_TENSORS of core.h */
#define LT_CUDA_MAP_NUMBERS 24 /* LT_MAP_NUMBERS */
#define LT_CUDA_MAP_ITEMS   50 /* a kernel's arguments have room for 4096 bytes */

/* The tensors at one place of the lists: contiguous, of n > 0 elements and of one dtype. */
typedef struct lt_CudaMapItem {
  void *data[LT_CUDA_MAP_TENSORS]; /* NULL: zeros */
  int64_t n;
  uint32_t first; /* the launcher's: the first of its blocks */
  uint8_t dtype;
  bool vector; /* the launcher's */
} lt_CudaMapItem;

typedef struct lt_CudaMap {
  int items;
  unsigned written; /* bit k: data[k] may change */
  lt_CudaMapItem item[LT_CUDA_MAP_ITEMS];
} lt_CudaMap;

/* The map with this number (maps.h). Items are float64 if `wide`, else other floats. `numbers`:
 * those of lt_map_numbers. Sets the launcher's fields of m. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_map(int id, lt_CudaMap *m, bool wide, const double *numbers,
                                            cudaStream_t stream);

#endif
