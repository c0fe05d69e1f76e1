/* The vector loops of int64. */
#include <stdint.h>

#define T                int64_t
#define U                uint64_t
#define LOW              INT64_MIN
#define HIGH             INT64_MAX
#define TRUNCDIV_OF_TYPE lt_truncdiv_int64
#define FIELD            int64
#define TABLE            lt_vectors_int64
#define LT_IS_INTEGER
#define LT_IS_INT64
#include "loops.h"
