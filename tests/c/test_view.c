/* test_view.c: views against a slow reference.
 *
 * The reference keeps all values in one contiguous row-major array and creates each view by
 * copying, element by element, by the op's definition. Long chains of random views must agree
 * everywhere, and a tensor can be viewed in another shape exactly when its addresses allow strides
 * for it.
 */
#include "opids.h"
#include "check.h"
#include "core.h"

enum { MAX_DIMS = 6, MAX_NUMEL = 4000 };

typedef struct Dense {
  int ndim;
  int64_t shape[LT_MAX_DIMS], numel;
  int64_t values[MAX_NUMEL];
} Dense;

/* ---- the reference --------------------------------------------------------------------------- */

static int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int d = 0; d < ndim; d++) n *= shape[d];
  return n;
}

/* Computes the index of element k in row-major order. */
static void unravel(int ndim, const int64_t *shape, int64_t k, int64_t *index) {
  for (int d = ndim - 1; d >= 0; d--) {
    index[d] = k % shape[d];
    k /= shape[d];
  }
}

static int64_t ravel(int ndim, const int64_t *shape, const int64_t *index) {
  int64_t k = 0;
  for (int d = 0; d < ndim; d++) k = k * shape[d] + index[d];
  return k;
}

/* An op's definition: the index in the input of the element at `to`. a, b, c: its arguments. */
typedef struct Rule {
  const Dense *in;
  int64_t a, b, c;
  const int64_t *list;
} Rule;
typedef void (*Origin)(const Rule *r, const int64_t *to, int64_t *from);

static void rebuild(Dense *out, Rule r, Origin origin, int ndim, const int64_t *shape) {
  static Dense in;
  in = *r.in;
  r.in = &in;
  out->ndim = ndim;
  memcpy(out->shape, shape, sizeof(int64_t) * (size_t)ndim);
  out->numel = count(ndim, shape);
  for (int64_t k = 0; k < out->numel; k++) {
    int64_t to[LT_MAX_DIMS], from[LT_MAX_DIMS];
    unravel(ndim, shape, k, to);
    origin(&r, to, from);
    out->values[k] = in.values[ravel(in.ndim, in.shape, from)];
  }
}

static void from_permute(const Rule *r, const int64_t *to, int64_t *from) {
  for (int d = 0; d < r->in->ndim; d++) from[r->list[d]] = to[d];
}
static void from_expand(const Rule *r, const int64_t *to, int64_t *from) {
  for (int d = 0; d < r->in->ndim; d++) from[d] = r->in->shape[d] == 1 ? 0 : to[d + r->a];
}
static void from_select(const Rule *r, const int64_t *to, int64_t *from) {
  for (int d = 0, k = 0; d < r->in->ndim; d++) from[d] = d == r->a ? r->b : to[k++];
}
static void from_slice(const Rule *r, const int64_t *to, int64_t *from) {
  for (int d = 0; d < r->in->ndim; d++) from[d] = d == r->a ? r->b + to[d] * r->c : to[d];
}
/* a, b: the two dims; c: the offset */
static void from_diagonal(const Rule *r, const int64_t *to, int64_t *from) {
  int64_t along = to[r->in->ndim - 2];
  for (int d = 0, k = 0; d < r->in->ndim; d++) {
    if (d == r->a)
      from[d] = along + (r->c < 0 ? -r->c : 0);
    else if (d == r->b)
      from[d] = along + (r->c > 0 ? r->c : 0);
    else
      from[d] = to[k++];
  }
}
/* a: the dim; c: the step */
static void from_unfold(const Rule *r, const int64_t *to, int64_t *from) {
  for (int d = 0; d < r->in->ndim; d++)
    from[d] = d == r->a ? to[d] * r->c + to[r->in->ndim] : to[d];
}

/* Gives the same values another shape. */
static void reshape_dense(Dense *x, int ndim, const int64_t *shape) {
  x->ndim = ndim;
  memcpy(x->shape, shape, sizeof(int64_t) * (size_t)ndim);
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* Returns the offset of element k of t, in row-major order. */
static int64_t address(const lt_Tensor *t, int64_t k) {
  int64_t index[LT_MAX_DIMS], at = t->offset;
  unravel(t->ndim, t->shape, k, index);
  for (int d = 0; d < t->ndim; d++) at += index[d] * t->strides[d];
  return at;
}

static bool agrees(const lt_Tensor *t, const Dense *x, const char *op) {
  if (!t) {
    check_report(__FILE__, __LINE__, "%s failed: %s", op, lt_error());
    return false;
  }
  bool same = lt_shape_equal(t->ndim, t->shape, x->ndim, x->shape) && t->numel == x->numel;
  if (!same)
    check_report(__FILE__, __LINE__, "%s gave %s, expected %s", op,
                 lt_shape_text(t->ndim, t->shape), lt_shape_text(x->ndim, x->shape));
  for (int64_t k = 0; k < x->numel && same; k++) {
    int64_t at = address(t, k);
    bool inside = at >= 0 && (size_t)(at + 1) * sizeof(int64_t) <= t->storage->nbytes;
    same = inside && ((const int64_t *)t->storage->data)[at] == x->values[k];
    if (!same) check_report(__FILE__, __LINE__, "%s: element %lld differs", op, (long long)k);
  }
  return same;
}

/* Returns true when strides exist that show t's elements in this shape. The first element and its
 * neighbours determine the strides; then every element is checked. */
static bool can_be_viewed(const lt_Tensor *t, int ndim, const int64_t *shape) {
  int64_t strides[LT_MAX_DIMS], index[LT_MAX_DIMS];
  if (t->numel == 0) return true;
  for (int d = 0; d < ndim; d++) {
    memset(index, 0, sizeof index);
    index[d] = 1;
    strides[d] = shape[d] > 1 ? address(t, ravel(ndim, shape, index)) - address(t, 0) : 0;
  }
  for (int64_t k = 0; k < t->numel; k++) {
    int64_t at = t->offset;
    unravel(ndim, shape, k, index);
    for (int d = 0; d < ndim; d++) at += index[d] * strides[d];
    if (at != address(t, k)) return false;
  }
  return true;
}

/* ---- random views ---------------------------------------------------------------------------- */

static uint64_t seed;
/* Returns an integer from 0 to n - 1 (xorshift64*). */
static int64_t random_below(int64_t n) {
  seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
  return (int64_t)((seed * UINT64_C(2685821657736338717) >> 33) % (uint64_t)n);
}

static lt_Tensor *start(Dense *x) {
  x->ndim = (int)random_below(5);
  for (int d = 0; d < x->ndim; d++) x->shape[d] = random_below(12) == 0 ? 0 : 1 + random_below(5);
  x->numel = count(x->ndim, x->shape);
  lt_Tensor *t = lt_scope_own(lt_empty(LT_int64, lt_cpu(), x->ndim, x->shape));
  for (int64_t k = 0; t && k < x->numel; k++)
    x->values[k] = ((int64_t *)t->storage->data)[k] = 1000 + 7 * k;
  return t;
}

static lt_Tensor *random_permute(lt_Tensor *t, Dense *x) {
  int64_t order[LT_MAX_DIMS] = {0}, shape[LT_MAX_DIMS] = {0};
  for (int d = 0; d < x->ndim; d++) order[d] = d;
  for (int d = x->ndim - 1; d > 0; d--) {
    int64_t other = random_below(d + 1), kept = order[d];
    order[d] = order[other];
    order[other] = kept;
  }
  for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[order[d]];
  int ndim = x->ndim;
  rebuild(x, (Rule){.in = x, .list = order}, from_permute, ndim, shape);
  for (int d = 0; d < ndim; d++)
    order[d] -= random_below(2) * ndim; /* sometimes counted from the end */
  return lt_do(permute, LT_ARG(t), LT_INTS(order, ndim));
}

static lt_Tensor *random_transpose(lt_Tensor *t, Dense *x) {
  if (x->ndim == 0) return lt_do(transpose, LT_ARG(t), LT_ARG(0), LT_ARG(-1));
  int64_t a = random_below(x->ndim), b = random_below(x->ndim), order[LT_MAX_DIMS] = {0},
          shape[LT_MAX_DIMS] = {0};
  for (int d = 0; d < x->ndim; d++) order[d] = d == a ? b : d == b ? a : d;
  for (int d = 0; d < x->ndim; d++) shape[d] = x->shape[order[d]];
  rebuild(x, (Rule){.in = x, .list = order}, from_permute, x->ndim, shape);
  return lt_do(transpose, LT_ARG(t), LT_ARG(a), LT_ARG(b - x->ndim));
}

static lt_Tensor *random_expand(lt_Tensor *t, Dense *x) {
  int64_t shape[LT_MAX_DIMS] = {0}, said[LT_MAX_DIMS];
  int lead = x->ndim < MAX_DIMS ? (int)random_below(2) : 0, ndim = x->ndim + lead;
  for (int d = 0; d < ndim; d++) {
    bool repeated = d < lead || x->shape[d - lead] == 1;
    shape[d] = repeated ? random_below(4) : x->shape[d - lead];
    said[d] = repeated || random_below(2) ? shape[d] : -1;
  }
  if (count(ndim, shape) > MAX_NUMEL) return t;
  rebuild(x, (Rule){.in = x, .a = lead}, from_expand, ndim, shape);
  return lt_do(expand, LT_ARG(t), LT_INTS(said, ndim));
}

static lt_Tensor *random_squeeze(lt_Tensor *t, Dense *x) {
  int64_t shape[LT_MAX_DIMS] = {0};
  int ndim = 0;
  bool one = x->ndim && random_below(2);
  int64_t dim = x->ndim ? random_below(x->ndim) : 0;
  for (int d = 0; d < x->ndim; d++)
    if (x->shape[d] != 1 || (one && d != dim)) shape[ndim++] = x->shape[d];
  reshape_dense(x, ndim, shape);
  return one ? lt_do(squeeze, LT_ARG(t), LT_INTS(&dim, 1)) : lt_do(squeeze, LT_ARG(t));
}

static lt_Tensor *random_unsqueeze(lt_Tensor *t, Dense *x) {
  int64_t shape[LT_MAX_DIMS] = {0}, dim = random_below(x->ndim + 1);
  if (x->ndim == MAX_DIMS) return t;
  for (int d = 0, k = 0; d <= x->ndim; d++) shape[d] = d == dim ? 1 : x->shape[k++];
  reshape_dense(x, x->ndim + 1, shape);
  return lt_do(unsqueeze, LT_ARG(t), LT_ARG(random_below(2) ? dim : dim - x->ndim));
}

static lt_Tensor *random_select(lt_Tensor *t, Dense *x) {
  if (x->ndim == 0) return t;
  int64_t shape[LT_MAX_DIMS] = {0}, dim = random_below(x->ndim), size = x->shape[dim];
  if (size == 0) return t;
  int64_t at = random_below(size);
  for (int d = 0, k = 0; d < x->ndim; d++)
    if (d != dim) shape[k++] = x->shape[d];
  rebuild(x, (Rule){.in = x, .a = dim, .b = at}, from_select, x->ndim - 1, shape);
  return lt_do(select, LT_ARG(t), LT_ARG(dim), LT_ARG(random_below(2) ? at : at - size));
}

static lt_Tensor *random_slice(lt_Tensor *t, Dense *x) {
  if (x->ndim == 0) return t;
  int64_t shape[LT_MAX_DIMS] = {0}, dim = random_below(x->ndim), size = x->shape[dim],
          step = 1 + random_below(3);
  int64_t first = random_below(size + 1), most = (size - first + step - 1) / step,
          some = random_below(most + 1);
  memcpy(shape, x->shape, sizeof shape);
  shape[dim] = some;
  rebuild(x, (Rule){.in = x, .a = dim, .b = first, .c = step}, from_slice, x->ndim, shape);
  return lt_do(_slice, LT_ARG(t), LT_ARG(dim), LT_ARG(first), LT_ARG(some), LT_ARG(step));
}

static lt_Tensor *random_diagonal(lt_Tensor *t, Dense *x) {
  if (x->ndim < 2) return t;
  int64_t a = random_below(x->ndim), b = (a + 1 + random_below(x->ndim - 1)) % x->ndim,
          offset = random_below(9) - 4;
  int64_t shape[LT_MAX_DIMS] = {0}, length = 0;
  while (length + (offset < 0 ? -offset : 0) < x->shape[a] &&
         length + (offset > 0 ? offset : 0) < x->shape[b])
    length++;
  int ndim = 0;
  for (int d = 0; d < x->ndim; d++)
    if (d != a && d != b) shape[ndim++] = x->shape[d];
  shape[ndim++] = length;
  rebuild(x, (Rule){.in = x, .a = a, .b = b, .c = offset}, from_diagonal, ndim, shape);
  return lt_do(diagonal, LT_ARG(t), LT_ARG(offset), LT_ARG(a), LT_ARG(b));
}

static lt_Tensor *random_unfold(lt_Tensor *t, Dense *x) {
  if (x->ndim == 0 || x->ndim == MAX_DIMS) return t;
  int64_t shape[LT_MAX_DIMS] = {0}, dim = random_below(x->ndim),
          size = random_below(x->shape[dim] + 1), step = 1 + random_below(3);
  memcpy(shape, x->shape, sizeof shape);
  shape[dim] = 0;
  for (int64_t at = 0; at + size <= x->shape[dim]; at += step) shape[dim]++;
  shape[x->ndim] = size;
  if (count(x->ndim + 1, shape) > MAX_NUMEL) return t;
  rebuild(x, (Rule){.in = x, .a = dim, .c = step}, from_unfold, x->ndim + 1, shape);
  return lt_do(unfold, LT_ARG(t), LT_ARG(dim), LT_ARG(size), LT_ARG(step));
}

/* Chooses a random shape of the same number of elements: the factors of numel, spread over dims. */
static int random_shape(int64_t numel, int64_t *shape) {
  int ndim = 1 + (int)random_below(4);
  for (int d = 0; d < ndim; d++) shape[d] = 1;
  for (int64_t f = 2; numel > 1; f++)
    for (; numel % f == 0; numel /= f) shape[random_below(ndim)] *= f;
  return ndim;
}

static lt_Tensor *random_view(lt_Tensor *t, Dense *x) {
  int64_t shape[LT_MAX_DIMS] = {0};
  if (x->numel == 0) return t;
  int ndim = random_shape(x->numel, shape);
  lt_Tensor *seen = lt_do(view, LT_ARG(t), LT_INTS(shape, ndim));
  CHECK_INT(seen != NULL, can_be_viewed(t, ndim, shape));
  if (!seen) {
    CHECK_CONTAINS(lt_error(), "its strides require a copy\nhint: x:reshape(...)");
    return t;
  }
  reshape_dense(x, ndim, shape);
  return seen;
}

static lt_Tensor *random_reshape(lt_Tensor *t, Dense *x) {
  int64_t shape[LT_MAX_DIMS] = {0};
  if (x->numel == 0) return t;
  int ndim = random_shape(x->numel, shape);
  lt_Tensor *seen = lt_do(reshape, LT_ARG(t), LT_INTS(shape, ndim));
  if (seen) CHECK_INT(seen->storage == t->storage, can_be_viewed(t, ndim, shape));
  reshape_dense(x, ndim, shape);
  return seen;
}

static lt_Tensor *same(lt_Tensor *t, Dense *x) {
  (void)x;
  return random_below(2) ? lt_do(detach, LT_ARG(t)) : lt_do(_alias, LT_ARG(t));
}

static const struct {
  const char *name;
  lt_Tensor *(*apply)(lt_Tensor *t, Dense *x);
} steps[] = {
    {"permute", random_permute}, {"transpose", random_transpose}, {"expand", random_expand},
    {"squeeze", random_squeeze}, {"unsqueeze", random_unsqueeze}, {"select", random_select},
    {"slice", random_slice},     {"diagonal", random_diagonal},   {"unfold", random_unfold},
    {"view", random_view},       {"reshape", random_reshape},     {"alias", same},
};

static void chains_of_views_agree_with_the_reference(void) {
  static Dense x;
  for (int run = 0; run < 3000; run++) {
    seed = UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(run + 1);
    size_t mark = lt_scope_open();
    lt_Tensor *t = start(&x);
    bool ok = agrees(t, &x, "empty");
    for (int step = 0; step < 7 && ok; step++) {
      int k = (int)random_below((int64_t)(sizeof steps / sizeof *steps));
      t = steps[k].apply(t, &x);
      ok = agrees(t, &x, steps[k].name);
    }
    lt_scope_close(mark, NULL);
    if (!ok) {
      check_report(__FILE__, __LINE__, "in run %d", run);
      return;
    }
  }
}

/* ---- particular views ------------------------------------------------------------------------ */

static void as_strided_shows_the_storage(void) {
  lt_Tensor *t = lt_scope_own(lt_empty(LT_int64, lt_cpu(), 2, (int64_t[]){3, 4}));
  REQUIRE(t);
  for (int64_t k = 0; k < 12; k++) ((int64_t *)t->storage->data)[k] = k;
  lt_Tensor *row = lt_do(select, LT_ARG(t), LT_ARG(0), LT_ARG(1));
  /* the offset is the storage's, or self's own if none is given */
  lt_Tensor *near = lt_do(as_strided, LT_ARG(row), LT_INTS(((int64_t[]){2, 2}), 2),
                          LT_INTS(((int64_t[]){3, 1}), 2));
  lt_Tensor *far = lt_do(as_strided, LT_ARG(row), LT_INTS(((int64_t[]){2}), 1),
                         LT_INTS(((int64_t[]){0}), 1), LT_ARG(11));
  REQUIRE(near && far);
  const int64_t expected[] = {4, 5, 7, 8};
  for (int64_t k = 0; k < 4; k++)
    CHECK_INT(((int64_t *)t->storage->data)[address(near, k)], expected[k]);
  for (int64_t k = 0; k < 2; k++) CHECK_INT(((int64_t *)t->storage->data)[address(far, k)], 11);
  CHECK(!lt_do(as_strided, LT_ARG(row), LT_INTS(((int64_t[]){2}), 1), LT_INTS(((int64_t[]){1}), 1),
               LT_ARG(11)));
  CHECK(!lt_do(as_strided, LT_ARG(row), LT_INTS(((int64_t[]){1}), 1), LT_INTS(((int64_t[]){1}), 1),
               LT_ARG(-1)));
  CHECK(!lt_do(as_strided, LT_ARG(row), LT_INTS(((int64_t[]){1 << 30, 1 << 20}), 2),
               LT_INTS(((int64_t[]){INT64_MAX / 4, INT64_MAX / 4}), 2)));
  CHECK(lt_do(as_strided, LT_ARG(row), LT_INTS(((int64_t[]){0}), 1),
              LT_INTS(((int64_t[]){100}), 1)) != NULL);
}

static void views_share_memory_and_versions(void) {
  lt_Tensor *t = lt_scope_own(lt_empty(LT_float32, lt_cpu(), 2, (int64_t[]){3, 4}));
  lt_Tensor *turned = lt_do(transpose, LT_ARG(t), LT_ARG(0), LT_ARG(1));
  REQUIRE(turned);
  CHECK(turned->storage == t->storage);
  unsigned before = lt_tensor_version(t);
  REQUIRE(lt_do_in_place(fill, LT_ARG(turned), LT_ARG(2.5)));
  CHECK(lt_tensor_version(t) != before);
  for (int k = 0; k < 12; k++) CHECK_NEAR(((float *)lt_tensor_data(t))[k], 2.5, 0);
}

/* Pieces are consecutive and cover the dim once. */
static void pieces_cover_the_dim(void) {
  lt_Tensor *t = lt_scope_own(lt_empty(LT_float32, lt_cpu(), 2, (int64_t[]){3, 7}));
  for (int64_t each = 1; each <= 8; each++) {
    lt_Results r;
    REQUIRE(
        lt_call(LT_OP_split, false, (lt_Arg[]){LT_ARG(t), LT_INTS(&each, 1), LT_ARG(-1)}, 3, &r));
    int64_t next = 0;
    for (int i = 0; i < r.count; i++) {
      const lt_Tensor *piece = r.many[i];
      CHECK(piece->storage == t->storage);
      CHECK_INT(piece->offset, next);
      CHECK(piece->shape[1] == each || i == r.count - 1);
      next += piece->shape[1];
    }
    CHECK_INT(next, 7);
    lt_results_release(&r);
  }
}

int main(void) {
  size_t mark = lt_scope_open();
  RUN(chains_of_views_agree_with_the_reference);
  RUN(as_strided_shows_the_storage);
  RUN(views_share_memory_and_versions);
  RUN(pieces_cover_the_dim);
  lt_scope_close(mark, NULL);
  return check_end();
}
