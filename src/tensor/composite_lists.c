/* composite_lists.c: the norms of a list of tensors, as one call for all gradients of a model. */
#include "infer.h"

/* _get_total_norm (tensors, p) */
bool lt_composite__get_total_norm(lt_Call *c) {
  int n = c->arg[0].count;
  if (n == 0) return lt_fail("expected at least one tensor for argument 'tensors', got none");
  lt_Tensor **norms = malloc((size_t)n * sizeof *norms), *joined = NULL;
  if (!norms) return lt_fail_memory();
  int made = 0;
  for (; made < n; made++) {
    lt_Tensor *t = c->arg[0].tensors[made];
    if (lt_dtype_is_complex(t->dtype)) t = lt_do(abs, LT_ARG(t));
    norms[made] = lt_do(_norm, LT_ARG(t), LT_NIL, LT_ARG(false), c->arg[1]);
    if (!norms[made]) break;
  }
  if (made == n) joined = lt_do(stack, LT_TENSORS(norms, n));
  free(norms);
  return lt_result_set(c, joined);
}
