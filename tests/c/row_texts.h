/* row_texts.h: the expressions of the elementwise rows of ops.def, compiled in double and in
 * int64_t. Ops without a formula in tests/c are compared with them. */
#ifndef LT_TESTS_ROW_TEXTS_H
#define LT_TESTS_ROW_TEXTS_H

#include <stdint.h>

/* Functions of an op's expression; NULL where the row has no such expression or is not elementwise.
 * The arguments are x, y, z, a, b. */
typedef double (*lt_FloatText)(double, double, double, double, double);
typedef int64_t (*lt_IntegerText)(int64_t, int64_t, int64_t, int64_t, int64_t);
lt_FloatText lt_float_text(int op);
lt_IntegerText lt_integer_text(int op);

#endif
