/* The vector loops of float64. */
#define T     double
#define M(g)  lt_m_##g
#define FIELD float64
#define TABLE lt_vectors_float64
#define LT_IS_FLOAT
#define LT_IS_DOUBLE
#include "loops.h"
