/* reduce.c: reductions on accelerators: orders the dims of the input for the kernels and decides
 * how threads share the work.
 *
 * A reduction reads its input in place, whatever its strides: kept dims and reduced dims are
 * ordered by stride and merged where possible. Where a reduced dim is the innermost, neighbouring
 * threads share a result (rows); else neighbouring threads compute neighbouring results (columns).
 * Few results of many elements are divided into pieces, which a second launch combines.
 *
 * The input is copied only for a cast that changes numbers before they are reduced (sum of floats
 * as int64).
 */
#include "reduce.h"

#include <math.h>

#define ENOUGH    131072 /* threads that keep the largest devices busy */
#define PIECE     32     /* elements that justify another thread */
#define MOST      1024   /* the most pieces of a result */
#define ALIGNMENT 16

/* ---- dims ------------------------------------------------------------------------------------ */

/* Dimensions, outermost first: their sizes, and their strides in the input and in the result. */
typedef struct Dims {
  int count;
  int64_t size[LT_MAX_DIMS], x[LT_MAX_DIMS], out[LT_MAX_DIMS];
} Dims;

static void append(Dims *dims, int64_t size, int64_t x, int64_t out) {
  int i = dims->count++;
  dims->size[i] = size;
  dims->x[i] = x;
  dims->out[i] = out;
}

/* Returns true when dim i belongs outside dim j. Broadcast dims are outermost, since they have no
 * neighbouring elements. */
static bool outside(const Dims *dims, int i, int j) {
  if (dims->x[i] == 0 || dims->x[j] == 0) return dims->x[i] == 0 && dims->x[j] != 0;
  return dims->x[i] > dims->x[j];
}

static void exchange(int64_t *a, int64_t *b) {
  int64_t old = *a;
  *a = *b;
  *b = old;
}

/* Sorts the dims by their stride in the input, stably. */
static void order(Dims *dims) {
  for (int i = 1; i < dims->count; i++)
    for (int j = i; j > 0 && outside(dims, j, j - 1); j--) {
      exchange(&dims->size[j], &dims->size[j - 1]);
      exchange(&dims->x[j], &dims->x[j - 1]);
      exchange(&dims->out[j], &dims->out[j - 1]);
    }
}

/* Merges neighbouring dims that are contiguous in both tensors. */
static void merge(Dims *dims) {
  int n = 0;
  for (int i = 0; i < dims->count; i++) {
    int64_t size = dims->size[i], x = dims->x[i], out = dims->out[i];
    if (n > 0 && dims->x[n - 1] == size * x && dims->out[n - 1] == size * out) {
      dims->size[n - 1] *= size;
    } else {
      dims->size[n] = size;
      n++;
    }
    dims->x[n - 1] = x;
    dims->out[n - 1] = out;
  }
  dims->count = n;
}

/* Writes the dims of x to r; those of `mask` are reduced. With `in_order`, reduced elements keep
 * their order in the tensor, as required for the index of a result. */
static void describe(lt_AccelReduce *r, const lt_Tensor *x, unsigned mask, bool in_order) {
  Dims kept = {0}, reduced = {0};
  int64_t stride_of[LT_MAX_DIMS], stride = 1;
  for (int d = x->ndim - 1; d >= 0; d--) {
    stride_of[d] = stride;
    if (!(mask >> d & 1)) stride *= x->shape[d];
  }
  r->n = 1;
  r->results = stride;
  for (int d = 0; d < x->ndim; d++) {
    bool is_reduced = mask >> d & 1;
    if (is_reduced) r->n *= x->shape[d];
    if (x->shape[d] == 1) continue;
    append(is_reduced ? &reduced : &kept, x->shape[d], x->strides[d],
           is_reduced ? 0 : stride_of[d]);
  }
  order(&kept);
  merge(&kept);
  if (!in_order) order(&reduced);
  merge(&reduced);
  if (reduced.count == 0) append(&reduced, 1, 0, 0);
  r->kept_ndim = kept.count;
  memcpy(r->kept_shape, kept.size, sizeof kept.size);
  memcpy(r->kept_x, kept.x, sizeof kept.x);
  memcpy(r->kept_out, kept.out, sizeof kept.out);
  r->reduced_ndim = reduced.count;
  memcpy(r->reduced_shape, reduced.size, sizeof reduced.size);
  memcpy(r->reduced_x, reduced.x, sizeof reduced.x);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Returns true when four elements can be loaded at once from every multiple of 4. */
static bool in_packs(const lt_AccelReduce *r) {
  int inner = r->reduced_ndim - 1;
  size_t pack = 4 * lt_dtype_size((lt_Dtype)r->dtype);
  if (pack > ALIGNMENT) pack = ALIGNMENT;
  if (r->reduced_x[inner] != 1 || (uintptr_t)r->x % pack != 0) return false;
  if (inner > 0 && r->reduced_shape[inner] % 4 != 0) return false;
  for (int d = 0; d < inner; d++)
    if (r->reduced_x[d] % 4 != 0) return false;
  for (int d = 0; d < r->kept_ndim; d++)
    if (r->kept_x[d] % 4 != 0) return false;
  return true;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the smallest power of 2 that is at least n, at most `most`. */
static int power_of_2(int64_t n, int most) {
  int p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

/* Chooses the threads for rows: a warp or less for each result; a block where results are long, or
 * few and not short. */
static void share_rows(lt_AccelReduce *r) {
  int most = LT_REDUCE_LANES, block = power_of_2(r->n / 16, LT_REDUCE_THREADS);
  if (block > most && (r->n > 4096 || r->results * LT_REDUCE_LANES < ENOUGH / 2)) most = block;
  r->width = power_of_2((r->n + 7) / 8, most);
  int64_t threads = r->results * r->width;
  r->threads = (int)least((threads + LT_REDUCE_LANES - 1) / LT_REDUCE_LANES * LT_REDUCE_LANES,
                          LT_REDUCE_THREADS);
  if (r->width > LT_REDUCE_LANES) r->threads = r->width;
}

/* Chooses the threads for columns: one for each result; more where results are few. */
static void share_columns(lt_AccelReduce *r) {
  int inner = r->kept_ndim - 1;
  int64_t together = inner >= 0 ? r->kept_shape[inner] : 1;
  int most = LT_REDUCE_THREADS / power_of_2(together, LT_REDUCE_LANES);
  r->width = 1;
  while (r->width < most && r->results * r->width < ENOUGH && r->n >= r->width * PIECE)
    r->width *= 2;
  r->threads = LT_REDUCE_THREADS;
  if (r->width == 1)
    r->threads = (int)least((r->results + LT_REDUCE_LANES - 1) / LT_REDUCE_LANES * LT_REDUCE_LANES,
                            LT_REDUCE_THREADS);
}

/* Divides long results into pieces, if that puts more threads to work. */
static void split(lt_AccelReduce *r) {
  int64_t batch = 8 * (int64_t)r->width, splits = ENOUGH * 2 / (r->results * r->width);
  int64_t n = r->n > 0 ? r->n : 1;
  splits = least(splits, MOST);
  r->splits = least(splits, n / (PIECE * (int64_t)r->width));
  if (r->splits < 2) r->splits = 1;
  r->piece = ((n + r->splits - 1) / r->splits + batch - 1) / batch * batch;
  r->splits = (n + r->piece - 1) / r->piece;
}

/* Decides how threads share the work: the fields of r from `threads` on. */
static void share(lt_AccelReduce *r) {
  int inner = r->kept_ndim - 1;
  int64_t beside = r->reduced_x[r->reduced_ndim - 1];
  r->rows =
      r->n > 1 && beside != 0 && (inner < 0 || r->kept_x[inner] == 0 || beside < r->kept_x[inner]);
  r->packs = r->rows && in_packs(r);
  if (r->rows)
    share_rows(r);
  else
    share_columns(r);
  split(r);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Returns true when kernels that compute in `work` can load this dtype. */
static bool is_read_as(lt_Dtype dtype, lt_Dtype work) {
  if (work == LT_float32) return lt_dtype_is_float(dtype) && dtype != LT_float64;
  return lt_dtype_is_float(dtype) == (work == LT_float64);
}

static lt_FormKind kind_of(int reduction) {
  return reduction == LT_REDUCTION_POWERS ? LT_FORM_FOLD_WIDE : lt_reductions[reduction].kind;
}

/* Describes the input, allocates scratch memory and launches the kernels. */
static bool run(lt_Call *c, lt_AccelReduce *r, lt_Tensor *x, unsigned mask,
                lt_ReduceLauncher launch) {
  describe(r, x, mask, kind_of(r->reduction) == LT_FORM_BEST);
  r->x = lt_tensor_data(x);
  r->dtype = x->dtype;
  share(r);
  lt_Tensor *scratch = NULL;
  if (r->splits > 1) {
    int64_t size = r->results * r->splits * LT_REDUCE_PARTIAL;
    scratch = lt_empty(LT_uint8, c->device, 1, &size);
    if (!scratch) return false;
    r->scratch = lt_tensor_data(scratch);
  }
  bool ok = launch(c, r);
  lt_release(scratch);
  return ok;
}

/* Reduces argument 0 over the dims of the mask, cast to `dtype`. */
static bool reduce(lt_Call *c, lt_AccelReduce *r, unsigned mask, lt_Dtype dtype,
                   lt_ReduceLauncher launch) {
  lt_Tensor *self = lt_in(c, 0), *result = c->out[0];
  if (result->numel == 0) return true;
  lt_FormKind kind = kind_of(r->reduction);
  bool any_dtype = r->reduction != LT_REDUCTION_POWERS && lt_reductions[r->reduction].of_truth;
  bool in_double = kind == LT_FORM_FOLD_WIDE || kind == LT_FORM_CENTERED_WIDE;
  lt_Dtype work = lt_dtype_accumulate(dtype);
  r->work = in_double ? LT_float64 : work;
  if (kind == LT_FORM_BEST) r->at = lt_tensor_data(c->out[c->nout - 1]);
  if (kind != LT_FORM_BEST || c->nout == 2) {
    r->out = lt_tensor_data(result);
    r->out_dtype = result->dtype;
  }
  /* Loading in the working dtype is a cast, too, which is enough unless the cast to `dtype`
   * rounds. */
  bool as_it_is =
      any_dtype || self->dtype == dtype || (dtype == work && is_read_as(self->dtype, work));
  if (any_dtype && lt_dtype_is_complex(dtype)) { /* kernels load real numbers */
    as_it_is = false;
    dtype = LT_bool;
  }
  lt_Tensor *x = as_it_is ? lt_retain(self) : lt_as_contiguous(self, dtype);
  bool ok = x && run(c, r, x, mask, launch);
  lt_release(x);
  return ok;
}

/* ---- ops ------------------------------------------------------------------------------------- */

bool lt_accel_reduce(lt_Call *c, lt_ReduceLauncher launch) {
  lt_ReductionCall call;
  if (!lt_reduction_of_call(c, &call)) return false;
  lt_AccelReduce r = {.reduction = (int)call.id, .a = call.a};
  return reduce(c, &r, call.mask, call.dtype, launch);
}

bool lt_accel_norm(lt_Call *c, lt_ReduceLauncher launch) {
  double p = c->arg[3].f;
  unsigned mask;
  lt_AccelReduce r = {.reduction = LT_REDUCTION_POWERS, .a = p};
  if (p == 0) r.reduction = LT_REDUCTION_count_nonzero;
  if (p == 1 || lt_in(c, 0)->numel == 0) r.reduction = LT_REDUCTION_norm_1;
  if (p == 2) r.reduction = LT_REDUCTION_norm_2;
  if (isinf(p)) r.reduction = p > 0 ? LT_REDUCTION_norm_largest : LT_REDUCTION_norm_smallest;
  return lt_dims(&c->arg[1], lt_in(c, 0)->ndim, &mask) &&
         reduce(c, &r, mask, lt_in(c, 0)->dtype, launch);
}
