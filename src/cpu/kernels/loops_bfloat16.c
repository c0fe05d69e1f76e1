/* The vector loops of bfloat16; see half_loops.h. */
#define H             lt_bfloat16
#define TO_FLOAT(h)   lt_bfloat16_to_float(h)
#define FROM_FLOAT(x) lt_bfloat16_from_float(x)
#define TO_FLOATS     lt_bfloats_to_floats
#define FROM_FLOATS   lt_floats_to_bfloats
#define SPLIT         lt_split_bfloats
#define UNITE         lt_join_bfloats
#define TABLE         lt_vectors_bfloat16
#include "half_loops.h"
