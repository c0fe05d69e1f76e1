/* elementwise_float64.cu: elementwise ops computed in float64. */
#include "elementwise_begin.cuh"

#define T        double
#define FIELD    float64
#define OWN      LT_float64
#define LAUNCHER lt_cuda_launch_elementwise_float64
#define NAME     "elementwise float64"
#define LT_IS_FLOAT
#include "elementwise.cuh"
