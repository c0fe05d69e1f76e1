/* map.h: maps (ops over lists of tensors, such as optimizer steps) on accelerators. */
#ifndef LT_ACCEL_MAP_H
#define LT_ACCEL_MAP_H

#include "kernel.h"

/* Runs the kernels of a map: tensor i of list k is dense[i * lists + k], contiguous, or NULL where
 * the list is not given. */
typedef bool (*lt_MapRunner)(const lt_Call *c, int lists, lt_Tensor *const *dense);
/* Runs a call of a map. Tensors that are not contiguous are replaced by contiguous copies, from
 * which results are copied back. */
bool lt_accel_map(const lt_Call *c, lt_MapRunner run);

#endif
