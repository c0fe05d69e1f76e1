/* elementwise_float.metal: elementwise ops computed in float. */
#include "maths.metal.h"

#define T         float
#define E         float
#define NUMBER(n) ((n).re)
#define LT_IS_FLOAT
#include "elementwise.metal.h"
