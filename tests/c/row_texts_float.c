/* row_texts_float.c: the expressions for floats; see row_texts.h. */
#include "row_texts.h"

#include "opids.h"

#include <float.h>
#include <stddef.h>

#define T              double
#define M(f)           f
#define MAXFINITE      DBL_MAX
#define LT_MATHX_FLOAT static inline
#define LT_SPECIAL     static __attribute__((unused))
#include "mathx.h"
#include "special.h"

#define TEXT_F(name, text)                                                                         \
  static double text_##name(double x, double y, double z, double a, double b) {                    \
    (void)x, (void)y, (void)z, (void)a, (void)b;                                                   \
    return (double)(text);                                                                         \
  }
#define TEXT_FI(name, text) TEXT_F(name, text)
#define TEXT_W(name, text)  TEXT_F(name, text)
#define TEXT_I(name, text)
#define TEXT_WF                                                TEXT_W
#define TEXT_FC                                                TEXT_F
#define TEXT_FIC                                               TEXT_FI
#define LT_ELEMENTWISE(name, inputs, rule, types, floats, ...) TEXT_##types(name, floats)
#include "ops.def"
#undef LT_ELEMENTWISE

#define ENTRY_F(name)  [LT_OP_##name] = text_##name,
#define ENTRY_FI(name) [LT_OP_##name] = text_##name,
#define ENTRY_W(name)  [LT_OP_##name] = text_##name,
#define ENTRY_I(name)
#define ENTRY_WF                                       ENTRY_W
#define ENTRY_FC                                       ENTRY_F
#define ENTRY_FIC                                      ENTRY_FI
#define LT_ELEMENTWISE(name, inputs, rule, types, ...) ENTRY_##types(name)
static const lt_FloatText texts[LT_OP_COUNT] = {
#include "ops.def"
};

lt_FloatText lt_float_text(int op) { return texts[op]; }
