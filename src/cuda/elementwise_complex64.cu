/* elementwise_complex64.cu: elementwise ops computed in complex64. */
#include "elementwise_begin.cuh"
#include "complex.cuh"

#define T        Complex<float>
#define R        float
#define FIELD    complex64
#define OWN      LT_complex64
#define LAUNCHER lt_cuda_launch_elementwise_complex64
#define NAME     "elementwise complex64"
#define LT_IS_COMPLEX
#define NO_PACKS
#include "elementwise.cuh"
