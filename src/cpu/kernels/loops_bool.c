/* The vector loops of bool: a uint8_t that is 0 or 1, in and out. */
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* the texts of integers ask for x < 0 */

#define T     uint8_t
#define U     uint8_t
#define FIELD bool_
#define TABLE lt_vectors_bool
#define LT_IS_BOOL
#include "loops.h"
