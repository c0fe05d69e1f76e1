/* gradients_reduce.c: gradients of reductions, cumulative sums and products, and sorting. */
#include "gradients.h"
#include "../recorder.h"

#include <float.h>

#define DY g->grad

/* Returns the reduced dimensions of argument 0, from `dims` in argument 1. */
static bool reduced(lt_Grad *g, unsigned *mask) {
  if (lt_dims(&g->arg[1], input(g, 0)->ndim, mask)) return true;
  g->failed = true;
  return false;
}

/* Returns a result of the reduction with the reduced dimensions as sizes of 1, so that it
 * broadcasts against argument 0. */
static lt_Tensor *kept(const lt_Grad *g, lt_Tensor *t, unsigned mask) {
  const lt_Input *in = input(g, 0);
  int64_t shape[LT_MAX_DIMS];
  if (t && t->ndim == in->ndim) return t;
  for (int i = 0; i < in->ndim; i++) shape[i] = (mask >> i) & 1 ? 1 : in->shape[i];
  return lt_do(view, LT_ARG(t), LT_INTS(shape, in->ndim));
}

lt_Tensor *lt_grad_back(const lt_Grad *g, lt_Tensor *t) {
  unsigned mask;
  return lt_dims(&g->arg[1], input(g, 0)->ndim, &mask) ? kept(g, t, mask) : NULL;
}

/* Returns the number of elements that are reduced to one. */
static double reduced_count(const lt_Grad *g, unsigned mask) {
  const lt_Input *in = input(g, 0);
  double n = 1;
  for (int i = 0; i < in->ndim; i++)
    if ((mask >> i) & 1) n *= (double)in->shape[i];
  return n;
}

/* Expands a gradient of the result to the shape of argument 0. */
static lt_Tensor *spread(const lt_Grad *g, lt_Tensor *t) {
  return lt_do(expand, LT_ARG(t), LT_INTS(input(g, 0)->shape, input(g, 0)->ndim));
}

void lt_grad_sum(lt_Grad *g) {
  unsigned mask;
  if (needs_grad(g, 0) && reduced(g, &mask)) set_grad(g, 0, spread(g, kept(g, DY, mask)));
}

void lt_grad_mean(lt_Grad *g) {
  unsigned mask;
  if (needs_grad(g, 0) && reduced(g, &mask))
    set_grad(g, 0, spread(g, DIV(kept(g, DY, mask), reduced_count(g, mask))));
}

/* Returns the products of all elements before each element, along the last dimension: 1, x1, x1 x2,
 * ... */
static lt_Tensor *product_before(const lt_Grad *g, lt_Tensor *x) {
  int64_t shape[LT_MAX_DIMS];
  if (!x) return NULL;
  int last = x->ndim - 1;
  memcpy(shape, x->shape, sizeof *shape * (size_t)x->ndim);
  shape[last] = 1;
  lt_Tensor *one = lt_grad_ones(g, x->ndim, shape);
  lt_Tensor *rest =
      lt_do(_slice, LT_ARG(x), LT_ARG(last), LT_ARG(0), LT_ARG(x->shape[last] - 1), LT_ARG(1));
  if (!one || !rest) return NULL;
  lt_Tensor *all = lt_do(cat, LT_TENSORS(((lt_Tensor *[]){one, rest}), 2), LT_ARG(last));
  return lt_do(cumprod, LT_ARG(all), LT_ARG(last));
}

/* Returns for each element the product of the others, without a division, so that zeros are no
 * special case; NULL on failure. */
static lt_Tensor *product_of_others(const lt_Grad *g, unsigned mask) {
  const lt_Input *in = input(g, 0);
  int64_t order[LT_MAX_DIMS], back[LT_MAX_DIMS], shape[LT_MAX_DIMS], n = 1;
  int lead = 0, ndim = 0;
  for (int i = 0; i < in->ndim; i++)
    if (!((mask >> i) & 1)) {
      order[ndim++] = i;
      shape[lead++] = in->shape[i];
    }
  for (int i = 0; i < in->ndim; i++)
    if ((mask >> i) & 1) {
      order[ndim++] = i;
      n *= in->shape[i];
    }
  for (int i = 0; i < ndim; i++) back[order[i]] = i;
  shape[lead] = n;
  lt_Tensor *permuted = lt_do(permute, g->arg[0], LT_INTS(order, ndim));
  lt_Tensor *x = lt_do(reshape, LT_ARG(permuted), LT_INTS(shape, lead + 1));
  lt_Tensor *left = product_before(g, x);
  const int64_t last = lead;
  lt_Tensor *right = product_before(g, lt_do(flip, LT_ARG(x), LT_INTS(&last, 1)));
  lt_Tensor *others = MUL(left, lt_do(flip, LT_ARG(right), LT_INTS(&last, 1)));
  if (!permuted || !others) return NULL;
  others = lt_do(reshape, LT_ARG(others), LT_INTS(permuted->shape, permuted->ndim));
  return lt_do(permute, LT_ARG(others), LT_INTS(back, ndim));
}

/* Returns whether a gradient may depend on the values of argument 0: reading them blocks no device,
 * and is part of no record. */
static bool may_read_values(const lt_Grad *g) {
  return input(g, 0)->device.type == LT_DEVICE_cpu && !lt_recording_program();
}

/* Returns whether the absolute values of all elements are between two numbers. */
static bool sizes_between(lt_Grad *g, lt_Tensor *t, double from, double to) {
  lt_Scalar least, most;
  lt_Tensor *size = UNARY(abs, t), *low = UNARY(amin, size), *high = UNARY(amax, size);
  bool ok = low && high && lt_tensor_item(low, &least) && lt_tensor_item(high, &most);
  g->failed |= !ok;
  return ok && least.f >= from && most.f <= to;
}

/* Returns dy times the product of all elements, in float64, divided by each element; NULL on
 * failure, and where this differs from the product of the other elements: if an element is 0,
 * infinite or NaN, or if the product does not fit float64. Then the products of float32 numbers,
 * without any one of them, do not fit float32 either, and so the quotients are right, too: 0 or
 * infinite. */
static lt_Tensor *by_division(lt_Grad *g, lt_Tensor *dy) {
  lt_Tensor *x = g->arg[0].tensor;
  if (!x) return NULL;
  bool complex = lt_dtype_is_complex(x->dtype);
  lt_Dtype wide = complex ? LT_complex128 : LT_float64;
  lt_Tensor *all = lt_do(prod, g->arg[0], g->arg[1], YES, lt_arg_dtype(wide));
  bool same = sizes_between(g, all, DBL_MIN, DBL_MAX) ||
              (!g->failed && !complex && x->dtype != wide && sizes_between(g, all, 0, INFINITY) &&
               sizes_between(g, x, DBL_MIN, DBL_MAX));
  return !same ? NULL : x->dtype == wide ? MUL(dy, DIV(all, x)) : DIV(MUL(dy, all), x);
}

/* The gradient of each element is the product of the others. A derivative of the quotient would be
 * rounded, so it is not computed by division for one. */
void lt_grad_prod(lt_Grad *g) {
  unsigned mask;
  if (!needs_grad(g, 0) || !reduced(g, &mask)) return;
  if (DY->numel == 0 || reduced_count(g, mask) == 0) return; /* no elements */
  lt_Tensor *dy = kept(g, DY, mask), *grad = NULL;
  if (may_read_values(g) && !lt_grad_enabled()) grad = by_division(g, dy);
  if (!grad && !g->failed) grad = MUL(dy, product_of_others(g, mask));
  set_grad(g, 0, grad);
}

/* amax, amin: equal elements share the gradient. If the result is NaN, the NaN elements share it:
 * they are found by comparing with infinity, which is true for every number. */
static void extreme_grad(lt_Grad *g, bool largest) {
  unsigned mask;
  if (!needs_grad(g, 0) || !reduced(g, &mask)) return;
  lt_Tensor *extreme = kept(g, g->result[0], mask);
  extreme = FILL(extreme, UNARY(isnan, extreme), (double)(largest ? INFINITY : -INFINITY));
  lt_Tensor *other =
      largest ? lt_do(lt, g->arg[0], LT_ARG(extreme)) : lt_do(gt, g->arg[0], LT_ARG(extreme));
  lt_Tensor *others = lt_do(sum, LT_ARG(other), g->arg[1], YES);
  lt_Tensor *equals = SUB(lt_scalar_int((int64_t)reduced_count(g, mask)), others);
  set_grad(g, 0, WHERE(other, 0.0, DIV(kept(g, DY, mask), equals)));
}

void lt_grad_amax(lt_Grad *g) { extreme_grad(g, true); }
void lt_grad_amin(lt_Grad *g) { extreme_grad(g, false); }

/* Adds the gradient of each result to the element that it was read from. */
static void send_back(lt_Grad *g, lt_Tensor *grad, lt_Tensor *index, lt_Arg dim) {
  if (input(g, 0)->ndim == 0)
    set_grad(g, 0, lt_do(view, LT_ARG(grad), LT_INTS(NULL, 0)));
  else
    set_grad(g, 0,
             lt_do(_scatter, LT_ARG(lt_grad_zeros_of(g, 0)), dim, LT_ARG(index), LT_ARG(grad)));
}

void lt_grad_extreme_along(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  lt_Tensor *grad = DY, *index = g->result[1];
  if (input(g, 0)->ndim > 0 && !g->arg[2].b) {
    grad = lt_do(unsqueeze, LT_ARG(grad), g->arg[1]);
    index = lt_do(unsqueeze, LT_ARG(index), g->arg[1]);
  }
  send_back(g, grad, index, g->arg[1]);
}

void lt_grad_sort(lt_Grad *g) {
  if (needs_grad(g, 0)) send_back(g, DY, g->result[1], g->arg[1]);
}

/* cummax, cummin: an element gets the sum of the gradients of all results that are equal to it. */
void lt_grad_cumulated_extreme(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  if (input(g, 0)->ndim == 0)
    set_grad(g, 0, DY);
  else
    set_grad(g, 0,
             lt_do(scatter_add, LT_ARG(lt_grad_zeros_of(g, 0)), g->arg[1], LT_ARG(g->result[1]),
                   LT_ARG(DY)));
}

void lt_grad_topk(lt_Grad *g) {
  if (needs_grad(g, 0)) send_back(g, DY, g->result[1], g->arg[2]);
}

void lt_grad_var(lt_Grad *g) {
  unsigned mask;
  if (!needs_grad(g, 0) || !reduced(g, &mask)) return;
  lt_Tensor *off = SUB(g->arg[0], lt_do(mean, g->arg[0], g->arg[1], YES));
  double divisor = reduced_count(g, mask) - g->arg[3].f;
  set_grad(g, 0, MUL(off, MUL(kept(g, DY, mask), 2 / divisor)));
}

/* Returns sign(x) |x|^(p - 1) g / norm^(p - 1), with 0 at the zero vector and, for p < 1, at
 * zeros. */
static lt_Tensor *norm_slope(lt_Arg x, lt_Tensor *norm, lt_Tensor *dy, double p) {
  lt_Tensor *zero = lt_do(eq, LT_ARG(norm), LT_ARG(0.0)), *safe = FILL(norm, zero, 1.0);
  if (p == 2) return MUL(x, FILL(DIV(dy, safe), zero, 0.0));
  lt_Tensor *none = lt_do(eq, x, LT_ARG(0.0));
  lt_Tensor *size =
      UNARY(abs, WHERE(none, 1.0, x)); /* no power of 0, whose gradient may be infinite */
  lt_Tensor *scaled = MUL(UNARY(sign, x), POWER(size, p - 1));
  return MUL(scaled, FILL(MUL(dy, POWER(safe, 1 - p)), zero, 0.0));
}

void lt_grad_norm(lt_Grad *g) {
  unsigned mask;
  double p = g->arg[3].f;
  if (!needs_grad(g, 0) || p == 0 || !reduced(g, &mask)) return;
  lt_Arg x = g->arg[0];
  lt_Tensor *dy = kept(g, DY, mask), *norm = kept(g, g->result[0], mask);
  if (p == 1) {
    set_grad(g, 0, MUL(UNARY(sign, x), dy));
  } else if (isinf(p)) {
    lt_Tensor *hit = lt_do(eq, LT_ARG(UNARY(abs, x)), LT_ARG(norm));
    lt_Tensor *count = lt_do(sum, LT_ARG(hit), g->arg[1], YES);
    count = lt_do(maximum, LT_ARG(count),
                  LT_ARG(lt_scalar_int(1))); /* none is equal to a norm of NaN */
    set_grad(g, 0, MUL(MUL(UNARY(sign, x), hit), DIV(dy, count)));
  } else {
    set_grad(g, 0, norm_slope(x, norm, dy, p));
  }
}

/* The derivative is softmax. A row of -inf only gets 0, not NaN. */
void lt_grad_logsumexp(lt_Grad *g) {
  unsigned mask;
  if (!needs_grad(g, 0) || !reduced(g, &mask)) return;
  lt_Tensor *sum = kept(g, g->result[0], mask);
  sum = FILL(sum, lt_do(eq, LT_ARG(sum), LT_ARG((double)-INFINITY)), 0.0);
  set_grad(g, 0, MUL(kept(g, DY, mask), UNARY(exp, SUB(g->arg[0], sum))));
}

/* ---- running sums and products --------------------------------------------------------------- */

/* Returns x1 + ... + xn, x2 + ... + xn, ..., xn. */
static lt_Tensor *sum_from_the_end(lt_Tensor *x, int64_t dim) {
  lt_Arg dims = LT_INTS(&dim, 1);
  return lt_do(flip, LT_ARG(lt_do(cumsum, LT_ARG(lt_do(flip, LT_ARG(x), dims)), LT_ARG(dim))),
               dims);
}

void lt_grad_cumsum(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  set_grad(g, 0, input(g, 0)->ndim == 0 ? DY : sum_from_the_end(DY, g->arg[1].i));
}

/* With y the cumulative products, dy_j/dx_k = y_j / x_k for j >= k. This holds before the first
 * zero of a row. At the zero, the products are computed without it; after it every gradient is
 * 0. */
static lt_Tensor *cumprod_once(lt_Grad *g, lt_Arg x, int64_t dim) {
  lt_Tensor *zero = lt_do(eq, x, LT_ARG(0.0));
  lt_Tensor *zeros = lt_do(cumsum, LT_ARG(zero), LT_ARG(dim));
  lt_Tensor *early = lt_do(eq, LT_ARG(zeros), LT_ARG(0));
  lt_Tensor *first = lt_do(logical_and, LT_ARG(zero), LT_ARG(lt_do(eq, LT_ARG(zeros), LT_ARG(1))));
  lt_Tensor *at_early = DIV(sum_from_the_end(MUL(DY, g->result[0]), dim), WHERE(early, x, 1.0));
  lt_Tensor *without = lt_do(cumprod, LT_ARG(WHERE(first, 1.0, x)), LT_ARG(dim));
  lt_Tensor *at_first = sum_from_the_end(FILL(MUL(DY, without), early, 0.0), dim);
  return WHERE(early, at_early, WHERE(first, at_first, 0.0));
}

/* Computes the same from all pairs (k, j): needs n^2 memory, but can be differentiated again. */
static lt_Tensor *cumprod_pairs(lt_Grad *g, lt_Arg x, int64_t dim) {
  int64_t last = -1, n = input(g, 0)->shape[dim < 0 ? dim + input(g, 0)->ndim : dim];
  lt_Tensor *row =
      lt_do(unsqueeze, LT_ARG(lt_do(transpose, x, LT_ARG(dim), LT_ARG(last))), LT_ARG((int64_t)-2));
  lt_Tensor *eye =
      lt_do(eye, LT_ARG(n), LT_ARG(n), lt_arg_dtype(LT_bool), lt_arg_device(input(g, 0)->device));
  lt_Tensor *without = WHERE(eye, 1.0, row); /* row k leaves x_k out */
  lt_Tensor *pairs = lt_do(triu, LT_ARG(lt_do(cumprod, LT_ARG(without), LT_ARG(last))));
  lt_Tensor *dy = lt_do(unsqueeze, LT_ARG(lt_do(transpose, LT_ARG(DY), LT_ARG(dim), LT_ARG(last))),
                        LT_ARG((int64_t)-2));
  return lt_do(transpose, LT_ARG(lt_do(sum, LT_ARG(MUL(pairs, dy)), LT_INTS(&last, 1))),
               LT_ARG(dim), LT_ARG(last));
}

/* Returns whether x contains a zero. Blocks on the device; a meta tensor has none. */
static bool has_zero(lt_Grad *g, lt_Tensor *x, bool *yes) {
  lt_Scalar s = lt_scalar_bool(false);
  lt_Tensor *any = lt_do(any, LT_ARG(lt_do(eq, LT_ARG(x), LT_ARG(0.0))));
  lt_recorder_refuse("a gradient depends on the values of a tensor");
  if (!any || (!lt_tensor_is_meta(any) && !lt_tensor_item(any, &s))) {
    g->failed = true;
    return false;
  }
  *yes = s.i != 0;
  return true;
}

void lt_grad_cumprod(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  lt_Arg x = g->arg[0];
  int64_t dim = g->arg[1].i;
  bool zero = true;
  if (input(g, 0)->ndim == 0) {
    set_grad(g, 0, DY);
  } else if (!lt_grad_enabled() && !may_read_values(g)) {
    set_grad(g, 0, cumprod_once(g, x, dim));
  } else if (has_zero(g, x.tensor, &zero)) {
    set_grad(g, 0,
             !zero               ? DIV(sum_from_the_end(MUL(DY, g->result[0]), dim), x)
             : lt_grad_enabled() ? cumprod_pairs(g, x, dim)
                                 : cumprod_once(g, x, dim));
  }
}
