/* reductions.h: the reductions of ops.def, each a row with a form, by numbers of their own: kernels
 * index their loops with them. What is common to every device's kernel of reductions. */
#ifndef LT_REDUCTIONS_H
#define LT_REDUCTIONS_H

#include "dtypes.h"

typedef enum lt_ReductionId {
#define LT_REDUCE(name, ...) LT_REDUCTION_##name,
#define LT_FORM(name, ...)   LT_REDUCTION_##name,
#include "ops.def"
  LT_REDUCTION_COUNT
} lt_ReductionId;

/* The kinds of forms, by the names that rows have for them. */
typedef enum lt_FormKind {
  LT_FORM_FOLD,
  LT_FORM_FOLD_WIDE,
  LT_FORM_CENTERED,
  LT_FORM_CENTERED_WIDE,
  LT_FORM_BEST
} lt_FormKind;

#ifndef __cplusplus
#include "kernel.h"

typedef struct lt_Reduction {
  const char *name;
  lt_FormKind kind;
  bool of_truth;    /* elements are read only for being 0 or not */
  bool sums_to_int; /* bool becomes int64 */
} lt_Reduction;
extern const lt_Reduction lt_reductions[LT_REDUCTION_COUNT];

/* What a call of a reduction asks for. */
typedef struct lt_ReductionCall {
  lt_ReductionId id;
  unsigned mask;  /* the dims that are reduced */
  lt_Dtype dtype; /* what self's elements are to become first */
  double a;       /* the first float argument, else 0 */
} lt_ReductionCall;
/* False when a dim is out of range. */
bool lt_reduction_of_call(const lt_Call *c, lt_ReductionCall *r);

/* The dims that the call reduces, by its rule. */
bool lt_reduced_dims(const lt_Call *c, unsigned *mask);
#endif

#endif
