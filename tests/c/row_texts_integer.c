/* row_texts_integer.c: the expressions for integers; see row_texts.h. */
#include "row_texts.h"

#include "opids.h"

#include <stddef.h>

#define T                int64_t
#define U                uint64_t
#define MAXFINITE        INT64_MAX
#define LT_MATHX_INTEGER static inline
#include "mathx.h"

#define TEXT_I(name, text)                                                                         \
  static int64_t text_##name(int64_t x, int64_t y, int64_t z, int64_t a, int64_t b) {              \
    (void)x, (void)y, (void)z, (void)a, (void)b;                                                   \
    return (int64_t)(text);                                                                        \
  }
#define TEXT_FI(name, text) TEXT_I(name, text)
#define TEXT_F(name, text)
#define TEXT_W(name, text)
#define TEXT_WF  TEXT_W
#define TEXT_FC  TEXT_F
#define TEXT_FIC TEXT_FI
#define LT_ELEMENTWISE(name, inputs, rule, types, floats, integers, ...)                           \
  TEXT_##types(name, integers)
#include "ops.def"
#undef LT_ELEMENTWISE

#define ENTRY_F(name)
#define ENTRY_W(name)
#define ENTRY_WF                                       ENTRY_W
#define ENTRY_FI(name)                                 [LT_OP_##name] = text_##name,
#define ENTRY_I(name)                                  [LT_OP_##name] = text_##name,
#define ENTRY_FC                                       ENTRY_F
#define ENTRY_FIC                                      ENTRY_FI
#define LT_ELEMENTWISE(name, inputs, rule, types, ...) ENTRY_##types(name)
static const lt_IntegerText texts[LT_OP_COUNT] = {
#include "ops.def"
};

lt_IntegerText lt_integer_text(int op) { return texts[op]; }
