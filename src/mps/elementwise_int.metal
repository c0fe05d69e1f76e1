/* elementwise_int.metal: elementwise ops computed in int32. */
#include "device.metal.h"

#define T         int32_t
#define U         uint32_t
#define E         int32_t
#define NUMBER(n) ((int32_t)(n).integer)
#define LT_IS_INTEGER
#include "elementwise.metal.h"
