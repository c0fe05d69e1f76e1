/* elementwise_float32.cu: elementwise ops computed in float32. */
#include "elementwise_begin.cuh"

#define T        float
#define FIELD    float32
#define LAUNCHER lt_cuda_launch_elementwise_float32
#define NAME     "elementwise float32"
#define OWN      LT_float32
#define NO_PACKS /* they are in elementwise_flat.cu */
#define LT_IS_FLOAT
#include "elementwise.cuh"
