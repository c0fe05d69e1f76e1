/* forms.h: macros that expand the forms of reductions in ops.def to loops, and the operations of
 * the forms on lanes.
 *
 * ROW(name, rule, form) expands to ON_<rule>(ROW_<kind>(name, expressions)), where `kind` is the
 * form's. */
#ifndef LT_CPU_FORMS_H
#define LT_CPU_FORMS_H

#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"
#include "cpu/kernels/maths.h"
#include "mathx.h"

#define ROW(name, rule, ...)        ROW_(name, rule, __VA_ARGS__)
#define ROW_(name, rule, kind, ...) ON_##rule(kind(name, __VA_ARGS__))
#define FOLD(...)                   ROW_FOLD, __VA_ARGS__
#define FOLD_WIDE(...)              ROW_FOLD_WIDE, __VA_ARGS__
#define CENTERED(...)               ROW_CENTERED, __VA_ARGS__
#define CENTERED_WIDE(...)          ROW_CENTERED_WIDE, __VA_ARGS__
#define BEST(...)                   ROW_BEST, __VA_ARGS__
#define NOTHING(...)

#define ITSELF(x) (x)
#define LT_APART  __attribute__((noinline)) /* for recursive functions */

enum { LT_NEAR = false }; /* see maths_float32.h: arguments are not limited to a range */

/* The operations used in forms. On vectors, a number is broadcast and a condition is a bit mask. */
#define PICK_ONE(k, yes, no)           ((k) ? (yes) : (no))
#define PICK_VECTORS(V, M, k, yes, no) LT_CHOOSE(V, M, k, EACH(V, no), EACH(V, yes))
/* broadcasts a number, or returns a vector; keeps -0 */
#define EACH(V, e)           ((e) - (V){0})
#define PLUS_FLOATS(x, y)    ((x) + (y))
#define TIMES_FLOATS(x, y)   ((x) * (y))
#define PLUS_INTEGERS(x, y)  ((T)((U)(x) + (U)(y)))
#define TIMES_INTEGERS(x, y) ((T)((U)(x) * (U)(y)))

#endif
