/* elementwise_int64.metal: elementwise ops computed in int64. */
#include "device.metal.h"

#define T         int64_t
#define U         uint64_t
#define E         int64_t
#define NUMBER(n) ((n).integer)
#define LT_IS_INTEGER
#include "elementwise.metal.h"
