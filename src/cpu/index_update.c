/* index_update.c: writing by index tensors and masks: _scatter, scatter_add, _scatter_fold,
 * index_add, index_copy, index_fill, _index_put, masked_scatter. The output holds self's values
 * and is changed; every index is checked before the first write.
 *
 * Where indices repeat, writes happen in the order of the index, so that the last one remains and
 * sums are the same in each run. Sums of float16 and bfloat16 are computed in float32, of small
 * integers in int64. */
#include "kernel_support.h"
#include "index.h"

/* Computes to[i] += scale * from[i] for n dense elements of a working dtype. */
static void add_run(lt_Dtype work, void *to, const void *from, int64_t n, lt_Scalar scale) {
  if (work == LT_float32) {
    float *restrict t = to, s = (float)lt_scalar_to_double(scale);
    const float *restrict f = from;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) t[i] += s * f[i];
  } else if (work == LT_float64) {
    double *restrict t = to, s = lt_scalar_to_double(scale);
    const double *restrict f = from;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) t[i] += s * f[i];
  } else {
    int64_t *restrict t = to;
    const int64_t *restrict f = from;
    uint64_t s = (uint64_t)lt_scalar_to_int(scale);
    for (int64_t i = 0; i < n; i++) t[i] = (int64_t)((uint64_t)t[i] + s * (uint64_t)f[i]);
  }
}

/* ---- _scatter, scatter_add, _scatter_fold: an index for each element ------------------------- */

/* What is done with a value: it replaces the element, is added to it, multiplied with it, or
 * replaces it if it is larger or smaller (NaN is both). */
typedef enum Change { PUT, ADD, MULTIPLY, LARGEST, SMALLEST } Change;

#define CHANGE_ONE(T, product)                                                                     \
  do {                                                                                             \
    T *t = to, f = *(const T *)from;                                                               \
    if (how == MULTIPLY)                                                                           \
      *t = product;                                                                                \
    else if (how == LARGEST ? f > *t || f != f : f < *t || f != f)                                 \
      *t = f;                                                                                      \
  } while (0)

/* Changes one element of a working dtype. */
static void change_one(lt_Dtype work, Change how, void *to, const void *from) {
  if (how == ADD)
    add_run(work, to, from, 1, lt_scalar_int(1));
  else if (work == LT_float32)
    CHANGE_ONE(float, *t *f);
  else if (work == LT_float64)
    CHANGE_ONE(double, *t *f);
  else
    CHANGE_ONE(int64_t, (int64_t)((uint64_t)*t * (uint64_t)f));
}

/* Changes the elements of `to` by src, both of this working dtype (for PUT: of any). Strides in
 * bytes. */
static void scatter_all(const lt_Tensor *index, char *to, const int64_t *to_strides,
                        const char *src, const int64_t *src_strides, int dim, lt_Dtype work,
                        Change how) {
  size_t size = lt_dtype_size(work);
  int ndim = index->ndim;
  int64_t n = ndim ? index->shape[ndim - 1] : 1, along = to_strides[dim];
  int64_t across = ndim && dim != ndim - 1 ? to_strides[ndim - 1] : 0,
          step = ndim ? src_strides[ndim - 1] : 0;
  lt_Odometer o = {.ndim = ndim > 0 ? ndim - 1 : 0};
  for (int d = 0; d < o.ndim; d++) {
    o.shape[d] = index->shape[d];
    o.strides[0][d] = d == dim ? 0 : to_strides[d];
    o.strides[1][d] = src_strides[d];
  }
  const int64_t *at = lt_tensor_data(index);
  for (int64_t r = 0; r < index->numel / n; r++) {
    for (int64_t j = 0; j < n; j++, at++) {
      if (lt_stopped_at(j)) return;
      char *place = to + o.offset[0] + j * across + (*at - LT_INDEX_BASE) * along;
      const char *value = src + o.offset[1] + j * step;
      if (how == PUT)
        lt_move_one(place, value, size);
      else
        change_one(work, how, place, value);
    }
    lt_odometer_step(&o);
  }
}

/* Runs _scatter, scatter_add or _scatter_fold; argument 3 is a tensor or a number. */
static bool scatter(lt_Call *c, Change how) {
  lt_Tensor *out = c->out[0], *src = lt_in(c, 3);
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  _Alignas(LT_MAX_ELEMENT) char number[LT_MAX_ELEMENT];
  if (!src && !lt_scalar_store(c->arg[3].scalar, out->dtype, number)) return false;
  lt_Tensor *index = lt_index_open(lt_in(c, 2), out->ndim ? out->shape[dim] : 1, false, "index");
  if (!index) return false;
  if (index->numel == 0) {
    lt_release(index);
    return true;
  }
  lt_Dtype work = how == PUT ? out->dtype : lt_work_dtype(out->dtype);
  lt_Tensor *to = lt_update_open(out, work), *from = src && to ? lt_as_contiguous(src, work) : NULL;
  bool ok = to && (from || !src);
  if (ok) {
    int64_t size = (int64_t)lt_dtype_size(work), to_strides[LT_MAX_DIMS] = {0},
            src_strides[LT_MAX_DIMS] = {0};
    for (int d = 0; d < to->ndim; d++) to_strides[d] = to->strides[d] * size;
    for (int d = 0; from && d < from->ndim; d++) src_strides[d] = from->strides[d] * size;
    scatter_all(index, lt_tensor_data(to), to_strides, from ? lt_tensor_data(from) : number,
                src_strides, dim, work, how);
  }
  lt_release(index);
  lt_release(from);
  if (!ok) lt_release(to);
  return ok && lt_output_close(out, to);
}

bool lt_cpu__scatter(lt_Call *c) { return scatter(c, PUT); }
bool lt_cpu_scatter_add(lt_Call *c) { return scatter(c, ADD); }

bool lt_cpu__scatter_fold(lt_Call *c) {
  const char *how = c->arg[4].string;
  return scatter(c, !strcmp(how, "prod") ? MULTIPLY : !strcmp(how, "amax") ? LARGEST : SMALLEST);
}

/* ---- index_add, index_copy, index_fill: indices along one dimension -------------------------- */

bool lt_cpu_index_add(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *index = lt_index_open(lt_in(c, 2), l.n, false, "index");
  lt_Tensor *from = index ? lt_as_contiguous(lt_in(c, 3), work) : NULL,
            *to = from ? lt_update_open(out, work) : NULL;
  if (to && from->numel > 0) {
    int64_t k = index->numel;
    size_t block = (size_t)l.inner * lt_dtype_size(work);
    const int64_t *at = lt_tensor_data(index);
    for (int64_t i = 0; i < l.outer; i++)
      for (int64_t j = 0; j < k && !lt_stopped_at(j); j++)
        add_run(work,
                (char *)lt_tensor_data(to) + (size_t)(i * l.n + at[j] - LT_INDEX_BASE) * block,
                (const char *)lt_tensor_data(from) + (size_t)(i * k + j) * block, l.inner,
                c->arg[4].scalar);
  }
  lt_release(index);
  lt_release(from);
  return lt_output_close(out, to);
}

bool lt_cpu_index_copy(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  lt_Tensor *index = lt_index_open(lt_in(c, 2), l.n, false, "index");
  lt_Tensor *from = index ? lt_as_contiguous(lt_in(c, 3), out->dtype) : NULL;
  if (from && from->numel > 0) {
    int64_t k = index->numel;
    size_t block = (size_t)l.inner * lt_dtype_size(out->dtype);
    const int64_t *at = lt_tensor_data(index);
    for (int64_t i = 0; i < l.outer; i++)
      for (int64_t j = 0; j < k && !lt_stopped_at(j); j++)
        memcpy((char *)lt_tensor_data(out) + (size_t)(i * l.n + at[j] - LT_INDEX_BASE) * block,
               (const char *)lt_tensor_data(from) + (size_t)(i * k + j) * block, block);
  }
  bool ok = from != NULL;
  lt_release(index);
  lt_release(from);
  return ok;
}

bool lt_cpu_index_fill(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  _Alignas(LT_MAX_ELEMENT) char number[LT_MAX_ELEMENT];
  lt_Scalar value;
  if (dim < 0 || !lt_number_of(c, 3, &value) || !lt_scalar_store(value, out->dtype, number))
    return false;
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  lt_Tensor *index = lt_index_open(lt_in(c, 2), l.n, false, "index");
  if (!index) return false;
  int64_t size = (int64_t)lt_dtype_size(out->dtype);
  const int64_t *at = lt_tensor_data(index);
  for (int64_t i = 0; i < l.outer && out->numel > 0; i++)
    for (int64_t j = 0; j < index->numel && !lt_stopped_at(j); j++)
      lt_move((char *)lt_tensor_data(out) + (i * l.n + at[j] - LT_INDEX_BASE) * l.inner * size,
              size, number, 0, l.inner, (size_t)size);
  lt_release(index);
  return true;
}

/* ---- _index_put: several index tensors ------------------------------------------------------- */

typedef struct Write {
  char *to;
  const char *from;
  size_t size;
  lt_Dtype sum; /* NONE: values replace elements; else they are added in this dtype */
  bool one;     /* `from` is a single element */
} Write;

/* Writes one selected block, or adds to it; an lt_IndexBlockFn. */
static void write_block(void *context, int64_t place, int64_t at, int64_t n) {
  const Write *w = context;
  char *to = w->to + (size_t)place * w->size;
  int64_t step = w->one ? 0 : (int64_t)w->size;
  const char *from = w->from + at * step;
  if (w->sum == LT_DTYPE_NONE)
    lt_move(to, (int64_t)w->size, from, step, n, w->size);
  else
    for (int64_t i = 0; i < n; i++)
      add_run(w->sum, to + (size_t)i * w->size, from + i * step, 1, lt_scalar_int(1));
}

/* Computes the shape to which values are broadcast: lead dims, those of the index, mid dims, and
 * those of the block. Returns the number of dims. */
static int blocks_shape(const lt_IndexBlocks *p, const lt_Tensor *self, int last, int64_t *shape) {
  int n = 0;
  for (int d = 0; d < p->leads.ndim; d++) shape[n++] = p->leads.shape[d];
  for (int d = 0; d < p->offsets->ndim; d++) shape[n++] = p->offsets->shape[d];
  for (int d = 0; d < p->mids.ndim; d++) shape[n++] = p->mids.shape[d];
  for (int d = last + 1; d < self->ndim; d++) shape[n++] = self->shape[d];
  return n;
}

bool lt_cpu__index_put(lt_Call *c) {
  lt_Tensor *out = c->out[0], *values = lt_in(c, 3);
  const int64_t *dims = c->arg[2].ints;
  bool add = c->arg[4].b;
  lt_Dtype work = add ? lt_work_dtype(out->dtype) : out->dtype;
  lt_IndexBlocks p;
  if (!lt_index_blocks_open(&p, out, &c->arg[1], dims)) return false;
  int64_t shape[LT_MAX_DIMS];
  int ndim = blocks_shape(&p, out, (int)dims[c->arg[1].count - 1], shape);
  bool one = values->numel == 1;
  lt_Tensor *from =
      one ? lt_as_contiguous(values, work) : lt_expanded_contiguous(values, work, ndim, shape);
  lt_Tensor *to = from ? lt_update_open(out, work) : NULL;
  if (to && from->numel > 0 && to->numel > 0) {
    Write w = {lt_tensor_data(to), lt_tensor_data(from), lt_dtype_size(work),
               add ? work : LT_DTYPE_NONE, one};
    lt_index_blocks_each(&p, write_block, &w);
  }
  lt_release(p.offsets);
  lt_release(from);
  return lt_output_close(out, to);
}

/* ---- masked_scatter -------------------------------------------------------------------------- */

bool lt_cpu_masked_scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 2);
  lt_Tensor *mask = lt_expanded_contiguous(lt_in(c, 1), LT_bool, out->ndim, out->shape);
  lt_Tensor *from = mask ? lt_as_contiguous(source, out->dtype) : NULL;
  bool ok = from != NULL;
  if (ok) {
    const uint8_t *take = lt_tensor_data(mask);
    int64_t count = 0;
    for (int64_t i = 0, end; (end = lt_next_chunk(i, mask->numel)) > i;)
      for (; i < end; i++) count += take[i];
    if (count > from->numel) {
      ok = lt_fail("expected at least %lld elements for argument 'source', one for each true "
                   "element of the mask, got %lld",
                   (long long)count, (long long)from->numel);
    } else {
      size_t size = lt_dtype_size(out->dtype);
      const char *next = lt_tensor_data(from);
      char *to = lt_tensor_data(out);
      for (int64_t i = 0, end; (end = lt_next_chunk(i, mask->numel)) > i;)
        for (; i < end; i++)
          if (take[i]) {
            lt_move_one(to + (size_t)i * size, next, size);
            next += size;
          }
    }
  }
  lt_release(mask);
  lt_release(from);
  return ok;
}
