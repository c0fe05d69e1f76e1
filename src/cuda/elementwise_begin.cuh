/* elementwise_begin.cuh: the headers that files of elementwise kernels include before they define
 * T, so that no other header sees it. */
#include "elementwise.h"
#include "device.cuh"

#define LT_TEXTS_INLINE LT_DEVICE_INLINE

#include "launch.cuh"
#include "index_math.cuh"
