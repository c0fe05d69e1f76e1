/* gradients_view.c: gradients of views, and of ops that join and rearrange. The gradient of a view
 * is written to the part of the base that the view covers; the rest is 0. */
#include "gradients.h"

#define DY g->grad

void lt_grad_reshaped(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(reshape, LT_ARG(DY), LT_INTS(input(g, 0)->shape, input(g, 0)->ndim)));
}

void lt_grad_permute(lt_Grad *g) {
  int64_t back[LT_MAX_DIMS];
  int ndim = input(g, 0)->ndim;
  for (int i = 0; i < ndim; i++) {
    int64_t d = g->arg[1].ints[i];
    back[d < 0 ? d + ndim : d] = i;
  }
  if (needs_grad(g, 0)) set_grad(g, 0, lt_do(permute, LT_ARG(DY), LT_INTS(back, ndim)));
}

/* The gradient of a view of some of self's elements. Where self has got gradients before, such as
 * those of other parts, adds to their sum in place: the parts of a tensor, taken together, cost one
 * pass over it. */
void lt_grad_part(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  bool adds = g->sum && g->sum->dtype == DY->dtype;
  lt_Tensor *whole = adds ? g->sum : lt_grad_zeros_of(g, 0);
  g->arg[0] = LT_ARG(whole);
  lt_Tensor *part = lt_do_((lt_OpId)g->node->op, false, g->arg, g->node->nargs, 0);
  if (adds)
    part = lt_do_in_place(add, LT_ARG(part), LT_ARG(DY));
  else
    part = lt_do_in_place(_copy, LT_ARG(part), LT_ARG(DY));
  set_grad(g, 0, part ? whole : NULL);
}

/* ---- any geometry ---------------------------------------------------------------------------- */

/* A geometry in memory; `first` is the offset of its first element. */
typedef struct Geometry {
  int ndim;
  const int64_t *shape, *strides;
  int64_t first;
} Geometry;

/* Returns the 1-based indices of a geometry's elements in memory that starts at `low`. */
static lt_Tensor *positions(const lt_Grad *g, const Geometry *v, int64_t low, int64_t room) {
  int64_t all = -1;
  lt_Tensor *count = lt_do(arange, LT_ARG(lt_scalar_int(room)), LT_NIL, LT_ARG(lt_scalar_int(1)),
                           lt_arg_dtype(LT_int64), lt_arg_device(lt_tensor_device(g->grad)));
  lt_Tensor *at = lt_do(as_strided, LT_ARG(count), LT_INTS(v->shape, v->ndim),
                        LT_INTS(v->strides, v->ndim), LT_ARG(v->first - low));
  return lt_do(reshape, LT_ARG(at), LT_INTS(&all, 1));
}

/* Returns the end of the memory that a geometry covers. */
static int64_t end_of(const Geometry *v) {
  int64_t end = v->first + 1;
  for (int i = 0; i < v->ndim; i++)
    if (v->shape[i]) end += (v->shape[i] - 1) * v->strides[i];
  return end;
}

/* Adds values to flat memory, each at its element of the geometry. */
static lt_Tensor *add_up(const lt_Grad *g, const Geometry *v, lt_Tensor *values, int64_t low,
                         int64_t room) {
  int64_t all = -1;
  lt_Tensor *flat = lt_do(reshape, LT_ARG(values), LT_INTS(&all, 1));
  return lt_do(index_add, LT_ARG(lt_grad_zeros(g, 1, &room)), LT_ARG(0),
               LT_ARG(positions(g, v, low, room)), LT_ARG(flat));
}

/* Computes the gradient of reading geometry `out` from memory in which the input has geometry `in`.
 * Where elements of the input share memory, each gets an equal part of the sum. */
static lt_Tensor *scatter_back(const lt_Grad *g, const Geometry *in, const Geometry *out,
                               bool shared) {
  int64_t low = in->first < out->first ? in->first : out->first;
  int64_t end = end_of(in) > end_of(out) ? end_of(in) : end_of(out), room = end - low;
  lt_Tensor *sum = add_up(g, out, DY, low, room);
  if (shared) {
    lt_Tensor *count = add_up(g, in, lt_grad_ones(g, in->ndim, in->shape), low, room);
    sum = DIV(sum, lt_do(maximum, LT_ARG(count), LT_ARG(1.0)));
  }
  return lt_do(as_strided, LT_ARG(sum), LT_INTS(in->shape, in->ndim),
               LT_INTS(in->strides, in->ndim), LT_ARG(in->first - low));
}

/* Returns true when elements of a geometry share memory (a stride of 0, or overlapping windows).
 * Dimensions are visited in order of stride. */
static bool shares(const Geometry *v) {
  int64_t reach = 1, last = 0;
  for (int round = 0; round < v->ndim; round++) {
    int64_t next = INT64_MAX, size = 0;
    for (int i = 0; i < v->ndim; i++)
      if (v->shape[i] > 1 && v->strides[i] > last && v->strides[i] < next) {
        next = v->strides[i];
        size = v->shape[i];
      }
    for (int i = 0; i < v->ndim; i++)
      if (v->shape[i] > 1 && v->strides[i] == 0) return true;
    if (next == INT64_MAX) break;
    int same = 0;
    for (int i = 0; i < v->ndim; i++) same += v->shape[i] > 1 && v->strides[i] == next;
    if (same > 1 || next < reach) return true;
    reach = (size - 1) * next + reach;
    last = next;
  }
  return false;
}

/* The strides may make elements overlap, in the input and in the result. */
void lt_grad_as_strided(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  const lt_Input *i = input(g, 0);
  int64_t offset = i->strides[i->ndim];
  Geometry in = {i->ndim, i->shape, i->strides, offset};
  Geometry out = {g->arg[1].count, g->arg[1].ints, g->arg[2].ints, offset};
  if (g->arg[3].kind == LT_ARG_INT) out.first = g->arg[3].i;
  if (g->grad->numel == 0) return;
  set_grad(g, 0, scatter_back(g, &in, &out, shares(&in)));
}

#define SHORT_WINDOW 16

/* Returns the gradient of unfold, of windows of a few elements: the elements at one place of all
 * windows are a slice of the input. */
static lt_Tensor *add_slices(lt_Grad *g, int64_t dim) {
  lt_Tensor *sum = lt_grad_zeros_of(g, 0), *ok = sum;
  int64_t count = DY->shape[dim], size = DY->shape[DY->ndim - 1], step = g->arg[3].i;
  for (int64_t k = 0; ok && k < size; k++)
    ok = lt_do_in_place(
        add,
        LT_ARG(lt_do(_slice, LT_ARG(sum), LT_ARG(dim), LT_ARG(k), LT_ARG(count), LT_ARG(step))),
        LT_ARG(lt_do(select, LT_ARG(DY), LT_ARG(-1), LT_ARG(k))));
  return ok ? sum : NULL;
}

/* Windows may overlap: an element gets the sum of the gradients of all windows that contain it. */
void lt_grad_unfold(lt_Grad *g) {
  if (!needs_grad(g, 0) || DY->numel == 0) return;
  const lt_Input *i = input(g, 0);
  int64_t dim = g->arg[1].i, strides[LT_MAX_DIMS], windows[LT_MAX_DIMS];
  if (i->ndim == 0) {
    set_grad(g, 0, lt_do(view, LT_ARG(DY), LT_INTS(NULL, 0)));
    return;
  }
  dim = dim < 0 ? dim + i->ndim : dim;
  if (DY->shape[DY->ndim - 1] <= SHORT_WINDOW) {
    set_grad(g, 0, add_slices(g, dim));
    return;
  }
  lt_shape_strides(i->ndim, i->shape, strides);
  memcpy(windows, strides, sizeof *strides * (size_t)i->ndim);
  windows[i->ndim] = strides[dim];
  windows[dim] = strides[dim] * g->arg[3].i;
  Geometry in = {i->ndim, i->shape, strides, 0}, out = {DY->ndim, DY->shape, windows, 0};
  set_grad(g, 0, scatter_back(g, &in, &out, false));
}

/* ---- joining and rearranging ----------------------------------------------------------------- */

void lt_grad_cat(lt_Grad *g) {
  int64_t dim = g->arg[1].i, first = 0;
  for (int k = 0; k < g->arg[0].count; k++) {
    const lt_Input *in = &g->node->input[g->node->slot[0] + k];
    if (in->ndim != DY->ndim) continue; /* shape {0}, which cat accepts with any other shape */
    int64_t size = in->shape[dim < 0 ? dim + in->ndim : dim];
    if (needs_grad_of(g, 0, k))
      set_grad_of(g, 0, k,
                  lt_do(_slice, LT_ARG(DY), LT_ARG(dim), LT_ARG(first), LT_ARG(size), LT_ARG(1)));
    first += size;
  }
}

/* Rolls back. */
void lt_grad_roll(lt_Grad *g) {
  int64_t back[LT_MAX_DIMS];
  int n = g->arg[1].count;
  for (int i = 0; i < n; i++) back[i] = -g->arg[1].ints[i];
  if (needs_grad(g, 0)) set_grad(g, 0, lt_do(roll, LT_ARG(DY), LT_INTS(back, n), g->arg[2]));
}
