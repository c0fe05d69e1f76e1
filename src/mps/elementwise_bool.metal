/* elementwise_bool.metal: elementwise ops computed in bool. */
#include "device.metal.h"

#define T         uint8_t
#define U         uint8_t
#define E         bool
#define NUMBER(n) ((uint8_t)((n).integer != 0))
#define LT_IS_BOOL
#include "elementwise.metal.h"
