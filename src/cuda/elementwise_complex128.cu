/* elementwise_complex128.cu: elementwise ops computed in complex128. */
#include "elementwise_begin.cuh"
#include "complex.cuh"

#define T        Complex<double>
#define R        double
#define FIELD    complex128
#define OWN      LT_complex128
#define LAUNCHER lt_cuda_launch_elementwise_complex128
#define NAME     "elementwise complex128"
#define LT_IS_COMPLEX
#define NO_PACKS
#include "elementwise.cuh"
