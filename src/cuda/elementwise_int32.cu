/* elementwise_int32.cu: elementwise ops computed in int32. */
#include "elementwise_begin.cuh"

#define T        int32_t
#define U        uint32_t
#define FIELD    int32
#define OWN      LT_int32
#define LAUNCHER lt_cuda_launch_elementwise_int32
#define NAME     "elementwise int32"
#define LT_IS_INTEGER
#include "elementwise.cuh"
