/* The vector loops of float32, and of float16 and bfloat16, which are computed in it. */
#define T     float
#define M(g)  lt_m_##g##f
#define FIELD float32
#define TABLE lt_vectors_float32
#define LT_IS_FLOAT
#include "loops.h"
