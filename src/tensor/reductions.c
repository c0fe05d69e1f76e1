/* reductions.c: the table of reductions (reductions.h), made from ops.def. */
#include "reductions.h"
#include "core.h"
#include "opids.h"

#define FOLD(...)          LT_FORM_FOLD
#define FOLD_WIDE(...)     LT_FORM_FOLD_WIDE
#define CENTERED(...)      LT_FORM_CENTERED
#define CENTERED_WIDE(...) LT_FORM_CENTERED_WIDE
#define BEST(...)          LT_FORM_BEST
#define ENTRY(name, rule, form)                                                                    \
  [LT_REDUCTION_##name] = {#name, form, OF_TRUTH(LT_RULE_##rule), SUMS_TO_INT(LT_RULE_##rule)},
#define OF_TRUTH(rule)    ((rule) == LT_RULE_BOOL || (rule) == LT_RULE_COUNT)
#define SUMS_TO_INT(rule) ((rule) == LT_RULE_SUM || (rule) == LT_RULE_COUNT)

const lt_Reduction lt_reductions[LT_REDUCTION_COUNT] = {
#define LT_REDUCE(name, rule, form, ...) ENTRY(name, rule, form)
#define LT_FORM(name, rule, form)        ENTRY(name, rule, form)
#include "ops.def"
};

static const uint16_t reduction_of_op[LT_OP_COUNT] = {
#define LT_REDUCE(name, ...) [LT_OP_##name] = LT_REDUCTION_##name,
#include "ops.def"
};

bool lt_reduction_of_call(const lt_Call *c, lt_ReductionCall *r) {
  *r = (lt_ReductionCall){.id = (lt_ReductionId)reduction_of_op[c->op], .dtype = c->compute};
  bool cast = c->info->rule == LT_RULE_FLOAT, has_a = false;
  for (int i = 1; i < c->signature->count && i < c->nargs; i++) {
    lt_ParamType type = c->signature->param[i].type;
    if (type == LT_PARAM_DTYPE) cast |= lt_given(c, i);
    if (type == LT_PARAM_FLOAT && !has_a) {
      r->a = c->arg[i].f;
      has_a = true;
    }
  }
  if (!cast) r->dtype = lt_in(c, 0)->dtype;
  return lt_reduced_dims(c, &r->mask);
}
