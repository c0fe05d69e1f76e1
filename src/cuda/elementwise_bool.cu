/* elementwise_bool.cu: elementwise ops computed in bool. */
#include "elementwise_begin.cuh"

#if defined __CUDACC__
#pragma nv_diag_suppress 186, 514 /* the expressions for integers contain x < 0 */
#else
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif

#define T        uint8_t
#define U        uint8_t
#define FIELD    bool_
#define OWN      LT_bool
#define LAUNCHER lt_cuda_launch_elementwise_bool
#define NAME     "elementwise bool"
#define LT_IS_BOOL
#include "elementwise.cuh"
