/* composite_attention.h: attention by ops, for gradients of gradients. */
#ifndef LT_COMPOSITE_ATTENTION_H
#define LT_COMPOSITE_ATTENTION_H

#include "core.h"

/* The arguments of _attention. */
typedef struct lt_Attention {
  lt_Tensor *query, *key, *value;
  lt_Arg mask; /* a tensor or nil */
  bool is_causal;
  double scale;
} lt_Attention;

/* Computes the gradients of query, key and value by differentiable ops, from the gradient of the
 * result. Half dtypes are computed and returned in float32. The open scope owns the results. */
bool lt_attention_gradients(const lt_Attention *a, lt_Tensor *grad, lt_Tensor *out[3]);

#endif
