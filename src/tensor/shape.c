/* shape.c: arithmetic on shapes and dims, checked for overflow, and their text for messages. */
#include "core.h"

const char *lt_shape_text(int ndim, const int64_t *shape) {
  static _Thread_local char ring[4][LT_MAX_DIMS * 22 + 4];
  static _Thread_local int turn;
  char *text = ring[turn = (turn + 1) % 4];
  size_t at = 0;
  text[at++] = '{';
  for (int i = 0; i < ndim; i++)
    at += (size_t)snprintf(text + at, 23, i ? ", %lld" : "%lld", (long long)shape[i]);
  text[at++] = '}';
  text[at] = 0;
  return text;
}

/* The running op is looked up for a message only: its name in a namespace takes a search. */
static const char *title(const char *op) { return op ? op : lt_user_op(); }

bool lt_shape_numel(const char *op, int ndim, const int64_t *shape, int64_t *numel) {
  int64_t n = 1;
  bool empty = false;
  if (ndim > LT_MAX_DIMS) {
    lt_error_set("%s: expected at most %d dimensions, got %d", title(op), LT_MAX_DIMS, ndim);
    return false;
  }
  for (int i = 0; i < ndim; i++) {
    if (shape[i] < 0) {
      lt_error_set("%s: expected sizes of at least 0, got %lld at dim %d of the shape %s",
                   title(op), (long long)shape[i], i + 1, lt_shape_text(ndim, shape));
      return false;
    }
    empty |= shape[i] == 0;
  }
  for (int i = 0; i < ndim && !empty; i++) {
    /* the number of bytes must fit int64, too; an element has at most 16 */
    if (__builtin_mul_overflow(n, shape[i], &n) || n > INT64_MAX / 16) {
      lt_error_set("%s: cannot create a tensor of shape %s: its number of elements overflows",
                   title(op), lt_shape_text(ndim, shape));
      return false;
    }
  }
  *numel = empty ? 0 : n;
  return true;
}

void lt_shape_strides(int ndim, const int64_t *shape, int64_t *strides) {
  int64_t n = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    strides[i] = n;
    if (shape[i] > 1 && __builtin_mul_overflow(n, shape[i], &n))
      n = INT64_MAX / 16; /* only if another size is 0 */
  }
}

bool lt_shape_equal(int ndim, const int64_t *a, int ndim2, const int64_t *b) {
  if (ndim != ndim2) return false;
  for (int i = 0; i < ndim; i++)
    if (a[i] != b[i]) return false;
  return true;
}

bool lt_shape_broadcast(int *ndim, int64_t *shape, int ndim2, const int64_t *shape2) {
  int n = *ndim > ndim2 ? *ndim : ndim2;
  for (int i = 1; i <= n; i++) { /* from the last dimension */
    int64_t a = i <= *ndim ? shape[*ndim - i] : 1;
    int64_t b = i <= ndim2 ? shape2[ndim2 - i] : 1;
    if (a != b && a != 1 && b != 1) return false;
  }
  int64_t result[LT_MAX_DIMS];
  for (int i = 1; i <= n; i++) {
    int64_t a = i <= *ndim ? shape[*ndim - i] : 1;
    int64_t b = i <= ndim2 ? shape2[ndim2 - i] : 1;
    result[n - i] = a == 1 ? b : a;
  }
  memcpy(shape, result, (size_t)n * sizeof *shape);
  *ndim = n;
  return true;
}

int lt_dim(int64_t dim, int ndim) {
  int n = ndim ? ndim : 1;
  if (dim >= 0 && dim < n) return (int)dim;
  if (dim < 0 && dim >= -n) return (int)dim + n;
  lt_fail("cannot use dim %lld: it is out of range, the tensor has %d dimension%s",
          lt_dim_shown(dim), ndim, ndim == 1 ? "" : "s");
  return -1;
}

bool lt_dims(const lt_Arg *arg, int ndim, unsigned *mask) {
  int n = ndim ? ndim : 1;
  *mask = 0;
  if (arg->kind == LT_ARG_INT) {
    int d = lt_dim(arg->i, ndim);
    if (d >= 0) *mask = 1u << d;
    return d >= 0;
  }
  if (arg->kind != LT_ARG_INTS || arg->count == 0) {
    *mask = (1u << n) - 1u;
    return true;
  }
  for (int i = 0; i < arg->count; i++) {
    int d = lt_dim(arg->ints[i], ndim);
    if (d < 0) return false;
    if (*mask & (1u << d)) return lt_fail("expected each dim once, got dim %d twice", d + 1);
    *mask |= 1u << d;
  }
  return true;
}

void lt_spec(lt_Call *c, int i, lt_Dtype dtype, int ndim, const int64_t *shape) {
  lt_Spec *s = &c->spec[i];
  s->dtype = dtype;
  s->device = c->device;
  s->ndim = ndim;
  if (ndim) memcpy(s->shape, shape, (size_t)ndim * sizeof *shape);
  if (c->nout <= i) c->nout = i + 1;
}

void lt_spec_like(lt_Call *c, int i, const lt_Tensor *t) {
  lt_spec(c, i, t->dtype, t->ndim, t->shape);
}
