/* elementwise_special.cu: elementwise ops of type W, computed in float64. They have a kernel of
 * their own, so that their registers and stack do not slow down the other ops. */
#include "elementwise_begin.cuh"

#define T        double
#define FIELD    float64
#define OWN      LT_float64
#define LAUNCHER lt_cuda_launch_elementwise_special
#define NAME     "elementwise special"
#define NO_PACKS
#define LT_IS_FLOAT
#define LT_SPECIAL static __device__ __noinline__
#include "elementwise.cuh"
