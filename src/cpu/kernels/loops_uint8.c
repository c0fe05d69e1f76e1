/* The vector loops of uint8: those that need no wider integers. */
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* expressions for integers compare x < 0 */

#define T                uint8_t
#define U                uint8_t
#define LOW              0
#define HIGH             UINT8_MAX
#define TRUNCDIV_OF_TYPE lt_truncdiv_int32
#define FIELD            int32
#define TABLE            lt_vectors_uint8
#define LT_SMALL         LT_uint8
#define LT_IS_INTEGER
#include "loops.h"
