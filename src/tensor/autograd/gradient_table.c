/* gradient_table.c: the table of gradients: for each op its gradient function and the values that
 * it saves, from the gradients in the rows of ops.def. Here the macros of a formula do not compute
 * it: they collect the values that it uses. */
#include "autograd.h"
#include "../opids.h"

#include <limits.h>

_Static_assert(LT_MAX_ARGS + LT_MAX_OUT < sizeof(lt_Keep) * CHAR_BIT,
               "lt_Keep has no room for the values of the largest signature");

/* Makes an index out of range a compile error. */
#define IN_RANGE(i, room) (0 * sizeof(char[(i) < (room) ? 1 : -1]))

#define X            ARG(0)
#define Y            ARG(1)
#define Z            ARG(2)
#define ARG(i)       (lt_Keep)(LT_KEEP_ARG(i) + IN_RANGE(i, LT_MAX_ARGS))
#define RESULT       RESULT_AT(0)
#define RESULT_AT(r) (lt_Keep)(LT_KEEP_RESULT(r) + IN_RANGE(r, LT_MAX_OUT))
#define GRAD         0
#define NUMBER(i)    0

/* The values that an operand uses: none if it is a number. */
#define USED(a) _Generic((a), lt_Keep : (a), default : (lt_Keep)0)

#define BINARY(op, a, b)           (USED(a) | USED(b))
#define TERNARY(op, a, b, c)       (USED(a) | USED(b) | USED(c))
#define QUATERNARY(op, a, b, c, d) (TERNARY(op, a, b, c) | USED(d))
#define QUINARY(op, a, b, c, d, e) (TERNARY(op, a, b, c) | BINARY(op, d, e))
#define UNARY(op, a)               USED(a)
#define ADD(a, b)                  BINARY(, a, b)
#define SUB(a, b)                  BINARY(, a, b)
#define MUL(a, b)                  BINARY(, a, b)
#define DIV(a, b)                  BINARY(, a, b)
#define POWER(a, b)                BINARY(, a, b)
#define SCALED(a, n)               USED(a)
#define BACK(t)                    USED(t)
#define FILL(a, m, v)              TERNARY(, a, m, v)
#define WHERE(c, a, b)             TERNARY(, c, a, b)

#define LT_GRADIENT(op, text, ...) void lt_grad_of_##op(lt_Grad *g);
#include "../ops.def"

#define LT_GRADIENT(op, text, ...) [LT_OP_##op] = {.function = lt_grad_of_##op, __VA_ARGS__},
#define D(i, formula)              .keep_for[i] = LT_KEEP_GIVES | USED(formula),
#define BY(function)
#define KEEP(values)        .keep = values,
#define KEEP_FOR(i, values) .keep_for[i] = values,
#define FIRST               .kind = LT_ROW_FIRST,
#define CONJUGATES          .conjugates = true,
#define ZERO                .kind = LT_ROW_ZERO,
#define NONE                .kind = LT_ROW_NONE,
const lt_GradientRow lt_gradients[LT_OP_COUNT] = {
#include "../ops.def"
};
