/* reductions.h: the reductions of ops.def (rows with a form), numbered from 0, so that kernels can
 * index tables of loops, and what the reduction kernels of all devices share. */
#ifndef LT_REDUCTIONS_H
#define LT_REDUCTIONS_H

#include "dtypes.h"

typedef enum lt_ReductionId {
#define LT_REDUCE(name, ...) LT_REDUCTION_##name,
#define LT_FORM(name, ...)   LT_REDUCTION_##name,
#include "ops.def"
  LT_REDUCTION_COUNT
} lt_ReductionId;

/* The kinds of forms, named as in ops.def. */
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
  bool of_truth;    /* only whether an element is 0 matters */
  bool sums_to_int; /* bool is reduced as int64 */
} lt_Reduction;
/* The table of reductions, indexed by lt_ReductionId. */
extern const lt_Reduction lt_reductions[LT_REDUCTION_COUNT];

/* The arguments of a call of a reduction. */
typedef struct lt_ReductionCall {
  lt_ReductionId id;
  unsigned mask;  /* the dims that are reduced */
  lt_Dtype dtype; /* to which self's elements are converted first */
  double a;       /* the first float argument, otherwise 0 */
} lt_ReductionCall;
/* Fills in r from a call. Fails when a dim is out of range. */
bool lt_reduction_of_call(const lt_Call *c, lt_ReductionCall *r);

/* Computes the dims that the call reduces, by the rule of its op. Fails when one is out of range or
 * listed twice. */
bool lt_reduced_dims(const lt_Call *c, unsigned *mask);
#endif

#endif
