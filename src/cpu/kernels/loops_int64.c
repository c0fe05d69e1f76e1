/* The vector loops of int64. */
#include <stdint.h>

#define T     int64_t
#define U     uint64_t
#define LOW   INT64_MIN
#define HIGH  INT64_MAX
#define FIELD int64
#define TABLE lt_vectors_int64
#define LT_IS_INTEGER
#include "loops.h"
