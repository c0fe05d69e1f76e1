/* elementwise_int64.cu: elementwise ops computed in int64. */
#include "elementwise_begin.cuh"

#define T        int64_t
#define U        uint64_t
#define FIELD    int64
#define OWN      LT_int64
#define LAUNCHER lt_cuda_launch_elementwise_int64
#define NAME     "elementwise int64"
#define LT_IS_INTEGER
#include "elementwise.cuh"
