/* The vector loops of int32, and of the smaller integers, which are computed in it. */
#include <stdint.h>

#define T                int32_t
#define U                uint32_t
#define LOW              INT32_MIN
#define HIGH             INT32_MAX
#define TRUNCDIV_OF_TYPE lt_truncdiv_int32
#define FIELD            int32
#define TABLE            lt_vectors_int32
#define LT_IS_INTEGER
#include "loops.h"
