/* The vector loops of bool: inputs and results are a uint8_t of 0 or 1. */
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* expressions for integers compare x < 0 */

#define T     uint8_t
#define U     uint8_t
#define FIELD bool_
#define TABLE lt_vectors_bool
#define LT_IS_BOOL
#include "loops.h"
