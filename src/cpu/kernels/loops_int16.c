/* The vector loops of int16: those that need no wider integers. */
#include <stdint.h>

#define T                int16_t
#define U                uint16_t
#define LOW              INT16_MIN
#define HIGH             INT16_MAX
#define TRUNCDIV_OF_TYPE lt_truncdiv_int32
#define FIELD            int32
#define TABLE            lt_vectors_int16
#define LT_SMALL         LT_int16
#define LT_IS_INTEGER
#include "loops.h"
