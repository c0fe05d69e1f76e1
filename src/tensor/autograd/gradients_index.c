/* gradients_index.c: gradients of indexing by index tensors and masks. The gradient of reading adds
 * up at the elements that were read. The gradient of writing is 0 for elements that were
 * overwritten, and is read at the same indices for the values that were written. */
#include "gradients.h"

#define DY g->grad

void lt_grad_index_select(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  lt_Tensor *whole = lt_grad_zeros_of(g, 0);
  if (input(g, 0)->ndim == 0)
    set_grad(g, 0, lt_do(sum, LT_ARG(DY)));
  else
    set_grad(g, 0, lt_do(index_add, LT_ARG(whole), g->arg[1], g->arg[2], LT_ARG(DY)));
}

void lt_grad_gather(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(scatter_add, LT_ARG(lt_grad_zeros_of(g, 0)), g->arg[1], g->arg[2], LT_ARG(DY)));
}

void lt_grad_index(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(
        g, 0,
        lt_do(_index_put, LT_ARG(lt_grad_zeros_of(g, 0)), g->arg[1], g->arg[2], LT_ARG(DY), YES));
}

/* mask and self are broadcast together first. */
void lt_grad_masked_select(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  const lt_Input *in = input(g, 0);
  const lt_Tensor *mask = g->arg[1].tensor;
  int64_t shape[LT_MAX_DIMS];
  int ndim = in->ndim;
  memcpy(shape, in->shape, sizeof *shape * (size_t)ndim);
  if (!lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape)) return;
  lt_Tensor *wide = lt_do(expand, g->arg[1], LT_INTS(shape, ndim));
  set_grad(g, 0,
           lt_do(masked_scatter, LT_ARG(lt_grad_zeros(g, ndim, shape)), LT_ARG(wide), LT_ARG(DY)));
}

void lt_grad_embedding(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_embedding_backward, LT_ARG(DY), g->arg[1], LT_ARG(input(g, 0)->shape[0]),
                   g->arg[2]));
}

/* Reads the rows again, with 0 for those of the padding index. */
void lt_grad_embedding_backward(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  lt_Tensor *rows = lt_do(embedding, LT_ARG(DY), g->arg[1]);
  if (g->arg[3].i != 0) {
    lt_Tensor *padding = lt_do(eq, g->arg[1], LT_ARG(lt_scalar_int(g->arg[3].i)));
    rows = FILL(rows, lt_do(unsqueeze, LT_ARG(padding), LT_ARG(-1)), 0.0);
  }
  set_grad(g, 0, rows);
}

void lt_grad_embedding_sum(lt_Grad *g) {
  const lt_Arg rows = LT_ARG(input(g, 0)->shape[0]);
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(_embedding_sum, LT_ARG(DY), g->arg[2], g->arg[1], rows, g->arg[4]));
  if (!needs_grad(g, 4)) return;
  lt_Tensor *x = lt_do(embedding, g->arg[0], g->arg[1]);
  lt_Tensor *dy = lt_do(embedding, LT_ARG(DY), g->arg[2]);
  set_grad(g, 4, lt_do(sum, LT_ARG(MUL(x, dy)), LT_ARG(1)));
}

/* Returns `got`, of the index's shape, as gradient of argument i: elements beyond the index were
 * not used and get 0. */
static lt_Tensor *padded(lt_Grad *g, int i, lt_Tensor *got) {
  const lt_Input *in = input(g, i);
  const lt_Tensor *index = g->arg[2].tensor;
  if (lt_shape_equal(in->ndim, in->shape, index->ndim, index->shape)) return got;
  lt_Tensor *whole = lt_grad_zeros_of(g, i), *part = whole;
  for (int d = 0; d < in->ndim; d++)
    part = lt_do(_slice, LT_ARG(part), LT_ARG(d), LT_ARG(0), LT_ARG(index->shape[d]), LT_ARG(1));
  return lt_grad_put(whole, part, got);
}

static lt_Tensor *gather_at_index(const lt_Grad *g, lt_Tensor *t) {
  return lt_do(gather, LT_ARG(t), g->arg[1], g->arg[2]);
}

static lt_Tensor *gathered(lt_Grad *g, int i) { return padded(g, i, gather_at_index(g, DY)); }

void lt_grad_scatter(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(_scatter, LT_ARG(DY), g->arg[1], g->arg[2], LT_ARG(0.0)));
  if (needs_grad(g, 3)) set_grad(g, 3, gathered(g, 3));
}

void lt_grad_scatter_add(lt_Grad *g) {
  if (needs_grad(g, 0)) set_grad(g, 0, DY);
  if (needs_grad(g, 3)) set_grad(g, 3, gathered(g, 3));
}

/* Returns the part of src that was used, of the index's shape. */
static lt_Tensor *used_source(const lt_Grad *g) {
  const lt_Tensor *index = g->arg[2].tensor;
  lt_Tensor *part = g->arg[3].tensor;
  for (int d = 0; d < index->ndim; d++)
    part = lt_do(_slice, LT_ARG(part), LT_ARG(d), LT_ARG(0), LT_ARG(index->shape[d]), LT_ARG(1));
  return part;
}

/* Returns 1 where the condition is true, else 0, in the gradient's dtype. */
static lt_Tensor *as_number(const lt_Grad *g, lt_Tensor *condition) {
  return lt_do(to, LT_ARG(condition), LT_NIL, lt_arg_dtype(DY->dtype));
}

/* The elements that are equal to the result, of self and of src, share its gradient. */
static void fold_extreme(lt_Grad *g, lt_Tensor *src) {
  lt_Tensor *result = g->result[0];
  lt_Tensor *of_self = as_number(g, BINARY(eq, g->arg[0], LT_ARG(result)));
  lt_Tensor *of_src = as_number(g, BINARY(eq, LT_ARG(src), LT_ARG(gather_at_index(g, result))));
  lt_Tensor *count = lt_do(scatter_add, LT_ARG(of_self), g->arg[1], g->arg[2], LT_ARG(of_src));
  lt_Tensor *part = DIV(DY, count);
  if (needs_grad(g, 0)) set_grad(g, 0, MUL(of_self, part));
  if (needs_grad(g, 3)) set_grad(g, 3, padded(g, 3, MUL(of_src, gather_at_index(g, part))));
}

/* The gradient of a factor is the product of the others: the result divided by the factor, or,
 * where the factor is the only zero of src at its place, the result with 1 in place of it. */
static void fold_product(lt_Grad *g, lt_Tensor *src) {
  lt_Arg prod = lt_arg_string("prod");
  if (needs_grad(g, 0)) {
    lt_Tensor *ones = lt_do(ones_like, LT_ARG(g->result[0]));
    set_grad(
        g, 0,
        MUL(DY, lt_do(_scatter_reduce, LT_ARG(ones), g->arg[1], g->arg[2], LT_ARG(src), prod)));
  }
  if (!needs_grad(g, 3)) return;
  lt_Tensor *zero = BINARY(eq, LT_ARG(src), LT_ARG(0.0));
  lt_Tensor *zeros = lt_do(scatter_add, LT_ARG(lt_grad_zeros_of(g, 0)), g->arg[1], g->arg[2],
                           LT_ARG(as_number(g, zero)));
  lt_Tensor *single = lt_do(logical_and, LT_ARG(zero),
                            LT_ARG(BINARY(eq, LT_ARG(gather_at_index(g, zeros)), LT_ARG(1.0))));
  lt_Tensor *others =
      lt_do(_scatter_reduce, g->arg[0], g->arg[1], g->arg[2], LT_ARG(FILL(src, single, 1.0)), prod);
  lt_Tensor *divided = DIV(gather_at_index(g, MUL(DY, g->result[0])), FILL(src, zero, 1.0));
  set_grad(g, 3, padded(g, 3, WHERE(single, gather_at_index(g, MUL(DY, others)), divided)));
}

void lt_grad_scatter_reduce(lt_Grad *g) {
  lt_Tensor *src = used_source(g);
  if (strcmp(g->arg[4].string, "prod") == 0)
    fold_product(g, src);
  else
    fold_extreme(g, src);
}

void lt_grad_index_add(lt_Grad *g) {
  if (needs_grad(g, 0)) set_grad(g, 0, DY);
  if (needs_grad(g, 3))
    set_grad(g, 3, MUL(lt_do(index_select, LT_ARG(DY), g->arg[1], g->arg[2]), g->arg[4]));
}

void lt_grad_index_copy(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(index_fill, LT_ARG(DY), g->arg[1], g->arg[2], LT_ARG(0.0)));
  if (needs_grad(g, 3)) set_grad(g, 3, lt_do(index_select, LT_ARG(DY), g->arg[1], g->arg[2]));
}

void lt_grad_index_fill(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(index_fill, LT_ARG(DY), g->arg[1], g->arg[2], LT_ARG(0.0)));
  if (!needs_grad(g, 3)) return;
  lt_Tensor *no = lt_do(zeros_like, LT_ARG(DY), lt_arg_dtype(LT_bool));
  lt_Tensor *filled = lt_do(index_fill, LT_ARG(no), g->arg[1], g->arg[2], LT_ARG(1));
  set_grad(g, 3, lt_do(sum, LT_ARG(WHERE(filled, DY, 0.0))));
}

void lt_grad_index_put(lt_Grad *g) {
  bool accumulate = g->arg[4].b;
  if (needs_grad(g, 0) && accumulate) set_grad(g, 0, DY);
  if (needs_grad(g, 0) && !accumulate)
    set_grad(
        g, 0,
        lt_do(_index_put, LT_ARG(DY), g->arg[1], g->arg[2], LT_ARG(lt_grad_zeros(g, 0, NULL)), NO));
  if (needs_grad(g, 3)) set_grad(g, 3, lt_do(_index, LT_ARG(DY), g->arg[1], g->arg[2]));
}

/* The gradient of source: the gradients where the mask is true, in order, then zeros for elements
 * of source that were not used. */
void lt_grad_masked_scatter(lt_Grad *g) {
  if (needs_grad(g, 0)) set_grad(g, 0, FILL(DY, g->arg[1], 0.0));
  if (!needs_grad(g, 2)) return;
  const lt_Input *in = input(g, 2);
  int64_t numel = 1;
  for (int i = 0; i < in->ndim; i++) numel *= in->shape[i];
  lt_Tensor *used = lt_do(masked_select, LT_ARG(DY), g->arg[1]);
  int64_t rest = used ? numel - used->numel : 0;
  lt_Tensor *unused = lt_grad_zeros(g, 1, &rest);
  if (!used || !unused) {
    g->failed = true;
    return;
  }
  lt_Tensor *all = lt_do(cat, LT_TENSORS(((lt_Tensor *[]){used, unused}), 2), LT_ARG(0));
  set_grad(g, 2, lt_do(view, LT_ARG(all), LT_INTS(in->shape, in->ndim)));
}
