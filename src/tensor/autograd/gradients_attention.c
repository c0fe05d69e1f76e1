/* gradients_attention.c: the gradients of attention. */
#include "gradients.h"

#include "../composite_attention.h"

void lt_grad_attention(lt_Grad *g) {
  lt_Tensor *out[3];
  bool ok;
  if (lt_grad_enabled()) { /* differentiable, for gradients of gradients */
    lt_Attention a = {g->arg[0].tensor, g->arg[1].tensor, g->arg[2].tensor,
                      g->arg[3],        g->arg[4].b,      g->arg[5].f};
    ok = lt_attention_gradients(&a, g->grad, out);
  } else {
    lt_Arg args[] = {
        LT_ARG(g->grad),      g->arg[0], g->arg[1], g->arg[2], g->arg[3], LT_ARG(g->result[0]),
        LT_ARG(g->result[1]), g->arg[4], g->arg[5]};
    lt_Results r;
    ok = lt_call(LT_OP__attention_backward, false, args, 9, &r);
    for (int i = 0; ok && i < 3; i++) out[i] = lt_scope_own(r.few[i]);
  }
  if (!ok) g->failed = true;
  for (int i = 0; ok && i < 3; i++)
    if (needs_grad(g, i)) set_grad(g, i, out[i]);
}
