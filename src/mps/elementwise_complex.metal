/* elementwise_complex.metal: elementwise ops computed in complex64. */
#include "complex.metal.h"

#define T         Complex
#define R         float
#define E         Complex
#define NUMBER(n) Complex((n).re, (n).im)
#define LT_IS_COMPLEX
#include "elementwise.metal.h"
