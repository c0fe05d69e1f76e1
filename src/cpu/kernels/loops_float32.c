/* The vector loops of float32, and of float16 and bfloat16, which are computed in it. */
#define T          float
#define M(g)       lt_m_##g##f
#define FORMULA(g) lt_m_##g##f
#define FIELD      float32
#define TABLE      lt_vectors_float32
#define LT_IS_FLOAT
#define LT_IS_FLOAT32
#include "loops.h"
