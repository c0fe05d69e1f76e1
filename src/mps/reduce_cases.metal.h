/* reduce_cases.metal.h: a switch over the reductions, inside of a function of the type T. A file
 * defines FORM_<kind>(name, rule, expressions...) for one kind of form, as CASE(name, expression),
 * and includes this file; other kinds have no cases. */
#ifndef FORM_FOLD
#define FORM_FOLD NOTHING
#endif
#ifndef FORM_FOLD_WIDE
#define FORM_FOLD_WIDE NOTHING
#endif
#ifndef FORM_CENTERED
#define FORM_CENTERED NOTHING
#endif
#ifndef FORM_CENTERED_WIDE
#define FORM_CENTERED_WIDE NOTHING
#endif
#ifndef FORM_BEST
#define FORM_BEST NOTHING
#endif
switch (REDUCTION) {
#define LT_REDUCE(name, rule, form, ...) FORM(name, rule, form)
#define LT_FORM(name, rule, form)        FORM(name, rule, form)
#include "ops.def"
default:
  break;
}
#undef FORM_FOLD
#undef FORM_FOLD_WIDE
#undef FORM_CENTERED
#undef FORM_CENTERED_WIDE
#undef FORM_BEST
