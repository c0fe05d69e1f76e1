/* elementwise_begin.cuh: what files of elementwise kernels include before they say what T is, so
 * that no other header meets it. */
#include "elementwise.h"
#include "device.cuh"
#include "launch.cuh"
#include "positions.cuh"
