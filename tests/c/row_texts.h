/* row_texts.h: the texts of the elementwise rows of ops.def as they stand there, in double and in
 * int64_t: what an op is compared with of which tests/c has no formula of its own. */
#ifndef LT_TESTS_ROW_TEXTS_H
#define LT_TESTS_ROW_TEXTS_H

#include <stdint.h>

/* By op; NULL where the row has no such text or is no elementwise op. Arguments: x, y, z, a, b. */
typedef double (*lt_FloatText)(double, double, double, double, double);
typedef int64_t (*lt_IntegerText)(int64_t, int64_t, int64_t, int64_t, int64_t);
lt_FloatText lt_float_text(int op);
lt_IntegerText lt_integer_text(int op);

#endif
