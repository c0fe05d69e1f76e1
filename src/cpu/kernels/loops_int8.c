/* The vector loops of int8: those that need no wider integers. */
#include <stdint.h>

#define T                int8_t
#define U                uint8_t
#define LOW              INT8_MIN
#define HIGH             INT8_MAX
#define TRUNCDIV_OF_TYPE lt_truncdiv_int32
#define FIELD            int32
#define TABLE            lt_vectors_int8
#define LT_SMALL         LT_int8
#define LT_IS_INTEGER
#include "loops.h"
