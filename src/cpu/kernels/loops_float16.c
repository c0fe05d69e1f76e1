/* The vector loops of float16; see half_loops.h. */
#define H             lt_half
#define TO_FLOAT(h)   lt_half_to_float(h)
#define FROM_FLOAT(x) lt_half_from_float(x)
#define TO_FLOATS     lt_halves_to_floats
#define FROM_FLOATS   lt_floats_to_halves
#define SPLIT         load
#define UNITE         store
#define TABLE         lt_vectors_float16
#include "half_loops.h"
