/* matmul.c: mm, bmm and addmm.
 *
 * Float matrices are passed to lt_gemm with their strides, as long as one dimension is dense;
 * float16 and bfloat16 are converted to float32 and back unless there are loops for them; integers
 * are multiplied in int64, or in int32 if they are narrower, which wrap as their own type does.
 * Complex matrices are multiplied as real ones of their parts. */
#include "blas.h"
#include "cpu.h"
#include "kernel_support.h"
#include "product.h"
#include "small_matrices.h"

#include <stdatomic.h>

/* Returns the last two dimensions as a matrix, of batch entry `at` (0 if there are two
 * dimensions). */
static lt_Matrix matrix(const lt_Tensor *t, int64_t at) {
  int d = t->ndim;
  int64_t shift = d == 3 ? at * t->strides[0] * (int64_t)lt_dtype_size(t->dtype) : 0;
  return (lt_Matrix){(char *)lt_tensor_data(t) + shift, t->strides[d - 2], t->strides[d - 1]};
}

/* Returns a view with the last two dimensions exchanged. */
static lt_Tensor *transposed(lt_Tensor *t) {
  if (!t) return NULL;
  int d = t->ndim;
  int64_t shape[3], strides[3];
  for (int i = 0; i < d; i++) {
    int from = i < d - 2 ? i : 2 * d - 3 - i;
    shape[i] = t->shape[from], strides[i] = t->strides[from];
  }
  return lt_tensor_on(t->storage, t->dtype, t->offset, d, shape, strides);
}

/* Returns whether lt_gemm, or the loops for integers, accept this r x c matrix as it is. */
static bool takes(lt_Dtype work, lt_Matrix m, int64_t r, int64_t c) {
  return lt_dtype_is_float(work) ? lt_gemm_takes(m, r, c) : m.row == 1 || m.column == 1;
}

/* Returns a factor in the working dtype and a layout that is accepted; the caller releases it.
 * One with dense columns keeps them: to convert it to dense rows takes ten times as long. */
static lt_Tensor *factor(lt_Tensor *t, lt_Dtype work) {
  int d = t->ndim;
  if (t->dtype == work && takes(work, matrix(t, 0), t->shape[d - 2], t->shape[d - 1]))
    return lt_retain(t);
  if (t->strides[d - 2] != 1 || t->strides[d - 1] == 1) return lt_as_contiguous(t, work);
  lt_Tensor *columns = transposed(t), *dense = lt_as_contiguous(columns, work),
            *result = transposed(dense);
  lt_release(columns);
  lt_release(dense);
  return result;
}

/* ---- one product, or many -------------------------------------------------------------------- */

typedef struct Product {
  lt_Dtype work;
  int64_t m, n, k;
  lt_Scalar alpha, beta;
  lt_Tensor *added; /* beta times it is added; NULL: the result itself */
  atomic_bool failed;
} Product;

/* Returns the dtype in which products of elements of d are added. */
static lt_Dtype sum_dtype(lt_Dtype d) {
  return lt_dtype_is_float(d) ? lt_work_dtype(d) : d == LT_int64 ? LT_int64 : LT_int32;
}

/* Computes c = beta * c, with dense rows: a product without terms. */
static void scale_integers(const Product *p, lt_Matrix c) {
  const int64_t beta = lt_scalar_to_int(p->beta);
  for (int64_t i = 0; i < p->m * p->n; i++)
    if (p->work == LT_int64)
      ((uint64_t *)c.data)[i] = beta ? ((uint64_t *)c.data)[i] * (uint64_t)beta : 0;
    else
      ((uint32_t *)c.data)[i] = beta ? ((uint32_t *)c.data)[i] * (uint32_t)beta : 0;
}

/* Computes the product of one batch entry; p->failed becomes true when memory is out. */
static void multiply(Product *p, const lt_Tensor *a, const lt_Tensor *b, lt_Tensor *c, int64_t at) {
  lt_Matrix am = matrix(a, at), bm = matrix(b, at), cm = matrix(c, at);
  cm.row = p->n; /* contiguous: the stride along a single element may be any */
  cm.column = 1;
  if (lt_dtype_is_float(p->work))
    lt_gemm_add(p->work, p->m, p->n, p->k, lt_scalar_to_double(p->alpha), am, bm,
                lt_scalar_to_double(p->beta), p->added ? matrix(p->added, 0) : cm, cm);
  else if (p->k == 0)
    scale_integers(p, cm);
  else if (!lt_product(p->work, p->m, p->n, p->k, (lt_Factor){.i = lt_scalar_to_int(p->alpha)}, am,
                       bm, (lt_Factor){.i = lt_scalar_to_int(p->beta)}, cm, cm))
    atomic_store(&p->failed, true);
}

/* Returns the number of threads that share a batch: more than 1 when its products are too small to
 * be split themselves. */
static int batch_team(const Product *p, int64_t batch) {
  double work = (double)p->m * (double)p->n * (double)p->k;
  int threads = lt_num_threads();
  if (batch < threads || batch < 2 || work > 4e6 || !lt_gemm_nests()) return 1;
  double grains = work * (double)batch / (4 * LT_GRAIN);
  int team = grains < threads ? (int)grains > 1 ? (int)grains : 1 : threads;
  return lt_threads_start(team);
}

/* ---- batches of small matrices --------------------------------------------------------------- */

/* Products whose matrices are a block of small_matrices.h each. */
typedef struct Small {
  const lt_SmallLoops *loops;
  int m, n, k, unit; /* unit: matrices of a block */
  const lt_Tensor *a, *b;
  lt_Tensor *c;
} Small;

/* Returns the elements of the three matrices of a product. */
static int64_t elements(const Product *p) { return p->m * p->k + p->k * p->n + p->m * p->n; }

/* Returns whether products in lanes are faster: those of so few terms that a loop for each takes
 * longer than to copy the matrices, which for larger ones needs a full block. A sum of rows or
 * columns needs no copy, and a pair of vectors neither. */
static bool suits_lanes(const Product *p, const lt_Tensor *a, const lt_Tensor *b) {
  enum { FEW = 32 }; /* elements that are copied one by one */
  if (p->m > LT_SMALL_ORDER || p->n > LT_SMALL_ORDER || p->k > LT_SMALL_ORDER) return false;
  if ((p->m == 1 && b->strides[2] == 1) || (p->n == 1 && a->strides[1] == 1)) return false;
  bool full = a->shape[0] >= LT_BLOCK_BYTES / (int64_t)sizeof(float);
  bool by_vectors =
      full && p->work == LT_float32 && lt_tensor_is_contiguous(a) && lt_tensor_is_contiguous(b);
  return by_vectors || elements(p) <= FEW;
}

static void multiply_blocks(const Small *s, int64_t first, int64_t last) {
  _Alignas(LT_BLOCK_BYTES) char a[LT_SMALL_ORDER * LT_SMALL_ORDER * LT_BLOCK_BYTES];
  _Alignas(LT_BLOCK_BYTES) char b[sizeof a], c[sizeof a];
  for (; first < last && !lt_stopped(); first++) {
    int64_t at = first * s->unit, rest = s->c->shape[0] - at;
    int used = (int)(rest < s->unit ? rest : s->unit);
    lt_block_get(s->a, at, used, false, a);
    lt_block_get(s->b, at, used, false, b);
    s->loops->multiply(s->m, s->n, s->k, used, a, b, c);
    lt_block_put(s->c, at, used, false, c);
  }
}

/* Computes a batch of products that threads do not share, without the costs of a call for each.
 * Returns false when it does not apply, and changes nothing. */
static bool run_small(const Product *p, const lt_Tensor *a, const lt_Tensor *b, lt_Tensor *c,
                      int64_t batch) {
  double work = (double)p->m * (double)p->n * (double)p->k;
  int64_t size = (int64_t)lt_dtype_size(p->work);
  if (batch < 2 || p->k == 0 || work > 8 * LT_GRAIN) return false;
  if (lt_scalar_to_double(p->beta) != 0 || lt_scalar_to_double(p->alpha) != 1) return false;
  int64_t terms = (int64_t)work / 4, each = terms > elements(p) ? terms : elements(p);
  if (lt_dtype_is_float(p->work) && suits_lanes(p, a, b)) {
    int unit = LT_BLOCK_BYTES / (int)size;
    int64_t blocks = (batch + unit - 1) / unit;
    Small s = {lt_small_loops(p->work), (int)p->m, (int)p->n, (int)p->k, unit, a, b, c};
    LT_IN_TEAM(lt_team(batch * each, blocks), blocks, multiply_blocks(&s, first, last));
    return true;
  }
  const int64_t step[3] = {a->strides[0] * size, b->strides[0] * size, p->m * p->n * size};
  lt_Matrix cm = {lt_tensor_data(c), p->n, 1};
  return lt_product_batch(p->work, p->m, p->n, p->k, batch, matrix(a, 0), matrix(b, 0), cm, step,
                          lt_team(batch * each, batch));
}

/* Computes all products of a batch, either one after the other on all threads, or on one thread
 * each. Returns false with the error set when the library's memory cannot be reserved. */
static bool run(Product *p, lt_Tensor *a, lt_Tensor *b, lt_Tensor *c) {
  int64_t batch = c->ndim == 3 ? c->shape[0] : 1;
  p->m = a->shape[a->ndim - 2];
  p->k = a->shape[a->ndim - 1];
  p->n = b->shape[b->ndim - 1];
  if (c->numel == 0) return true;
  if (run_small(p, a, b, c, batch)) return true;
  int team = batch_team(p, batch);
  bool library = lt_dtype_is_float(p->work) && p->k > 0;
  if (library) team = lt_gemm_open(team, (double)p->m * (double)p->n * (double)p->k);
  if (team == 0) return false;
  if (team > 1) {
#pragma omp parallel for num_threads(team) schedule(static)
    for (int64_t i = 0; i < batch; i++)
      if (!lt_stopped()) multiply(p, a, b, c, i);
  } else {
    for (int64_t i = 0; i < batch && !lt_stopped(); i++) multiply(p, a, b, c, i);
  }
  if (library) lt_gemm_close(team);
  return !atomic_load(&p->failed) || lt_fail_memory();
}

/* Returns a factor of float16 or bfloat16 with dense rows, or dense columns where the loops take
 * them; the caller releases it. */
static lt_Tensor *half_factor(lt_Tensor *t, bool columns) {
  if (!t) return NULL;
  lt_Matrix m = matrix(t, 0);
  return m.column == 1 || (columns && m.row == 1) ? lt_retain(t) : lt_as_contiguous(t, t->dtype);
}

/* Returns the bytes from one matrix of a batch to the next. */
static int64_t batch_step(const lt_Tensor *t) { return t->ndim == 3 ? 2 * t->strides[0] : 0; }

/* Computes c = alpha * a @ b + beta * c where a or b has few rows or columns: that one is converted
 * to float32. c is out's matrix. Returns false with the error set when memory is out. */
static bool by_few(lt_Tensor *a, lt_Tensor *b, lt_Tensor *out, lt_Matrix c, double alpha,
                   double beta) {
  int64_t m = out->shape[out->ndim - 2], n = out->shape[out->ndim - 1];
  bool transposes = n < m;
  lt_Tensor *few = transposes ? transposed(b) : lt_retain(a),
            *large = transposes ? transposed(a) : lt_retain(b);
  lt_Tensor *x = lt_as_contiguous(few, LT_float32), *y = half_factor(large, true);
  if (x && y) {
    int64_t k = x->shape[x->ndim - 1], step[2] = {batch_step(y), batch_step(out)};
    lt_Matrix to = transposes ? (lt_Matrix){c.data, c.column, c.row} : c;
    lt_product_halves(out->dtype, transposes ? n : m, transposes ? m : n, k,
                      out->ndim == 3 ? out->shape[0] : 1, alpha, lt_tensor_data(x), matrix(y, 0),
                      beta, to, step);
  }
  bool ok = x && y;
  lt_release(few);
  lt_release(large);
  lt_release(x);
  lt_release(y);
  return ok;
}

/* Computes out = alpha * a @ b + beta * out by instructions for pairs of bfloat16. Returns false
 * with the error set when memory is out. */
static bool by_pairs(lt_Tensor *a, lt_Tensor *b, lt_Tensor *out, lt_Matrix c, double alpha,
                     double beta) {
  lt_Tensor *x = half_factor(a, false), *y = half_factor(b, true);
  bool ok = x && y;
  if (ok) {
    int64_t k = x->shape[x->ndim - 1], step[3] = {batch_step(x), batch_step(y), batch_step(out)};
    ok = lt_product_bfloat16(out->shape[out->ndim - 2], out->shape[out->ndim - 1], k,
                             out->ndim == 3 ? out->shape[0] : 1, alpha, matrix(x, 0), matrix(y, 0),
                             beta, c, step);
  }
  lt_release(x);
  lt_release(y);
  return ok;
}

/* Computes out = alpha * a @ b + beta * out for float16 or bfloat16 without converting all of it to
 * float32. Returns false with the error set when memory is out; *done becomes false where the loops
 * are not for this CPU or these tensors. */
static bool by_halves(lt_Tensor *a, lt_Tensor *b, lt_Tensor *out, double alpha, double beta,
                      bool *done) {
  int64_t m = a->shape[a->ndim - 2], k = a->shape[a->ndim - 1], n = b->shape[b->ndim - 1];
  lt_Dtype d = out->dtype;
  *done = false;
  if ((d != LT_bfloat16 && d != LT_float16) || a->dtype != d || b->dtype != d || out->numel == 0 ||
      !lt_tensor_is_contiguous(out) || lt_tensor_overlaps(out, a) || lt_tensor_overlaps(out, b))
    return true;
  lt_Matrix c = {lt_tensor_data(out), n, 1};
  bool few = lt_product_takes_halves(d, m, n, k);
  *done = few || (d == LT_bfloat16 && lt_product_takes_bfloat16(m, n, k));
  if (!*done) return true;
  return (few ? by_few : by_pairs)(a, b, out, c, alpha, beta);
}

/* Computes out = a @ b by loops that take the matrices as they are. Returns false, and writes
 * nothing, where something must be prepared. */
static bool product_at_once(const lt_Tensor *a, const lt_Tensor *b, const lt_Tensor *out) {
  lt_Dtype d = out->dtype;
  if ((d != LT_float32 && d != LT_float64) || a->dtype != d || b->dtype != d || out->numel == 0)
    return false;
  int64_t m = a->shape[0], k = a->shape[1], n = b->shape[1];
  lt_Matrix x = matrix(a, 0), y = matrix(b, 0), c = {lt_tensor_data(out), n, 1};
  return k > 0 && lt_gemm_takes(x, m, k) && lt_gemm_takes(y, k, n) &&
         lt_product(d, m, n, k, (lt_Factor){.f = 1}, x, y, (lt_Factor){.f = 0}, c, c);
}

/* Computes out = alpha * a @ b + beta * added (NULL: out); with beta 0, neither is read. */
static bool product(lt_Tensor *a, lt_Tensor *b, lt_Tensor *added, lt_Tensor *out, lt_Scalar alpha,
                    lt_Scalar beta) {
  bool reads = !added && lt_scalar_to_double(beta) != 0, done;
  if (!by_halves(a, b, out, lt_scalar_to_double(alpha), lt_scalar_to_double(beta), &done))
    return false;
  if (done) return true;
  Product p; /* run sets the sizes */
  p.work = sum_dtype(out->dtype);
  p.alpha = alpha;
  p.beta = beta;
  p.added = added;
  atomic_init(&p.failed, false);
  lt_Tensor *x = factor(a, p.work), *y = factor(b, p.work);
  lt_Tensor *z = reads ? lt_update_open(out, p.work) : lt_output_open(out, p.work);
  bool ok = x && y && z && run(&p, x, y, z);
  lt_release(x);
  lt_release(y);
  if (ok) return lt_output_close(out, z);
  lt_release(z);
  return false;
}

/* ---- complex matrices ------------------------------------------------------------------------ */

/* Returns a view of a complex tensor with dense rows: its parts as columns. */
static lt_Tensor *as_parts(const lt_Tensor *t) {
  int d = t->ndim;
  int64_t shape[3], strides[3];
  for (int i = 0; i < d; i++) shape[i] = t->shape[i], strides[i] = 2 * t->strides[i];
  shape[d - 1] *= 2, strides[d - 1] = 1;
  return lt_tensor_on(t->storage, lt_dtype_real(t->dtype), 2 * t->offset, d, shape, strides);
}

/* Returns t if its rows are dense, else a copy; the caller releases it. */
static lt_Tensor *with_dense_rows(lt_Tensor *t) {
  int d = t->ndim;
  bool dense = t->strides[d - 1] == 1 || t->shape[d - 1] == 1;
  return dense ? lt_retain(t) : lt_as_contiguous(t, t->dtype);
}

/* Writes k rows of n complex numbers, each followed by i times it. */
#define PAIRS_OF_ROWS(T)                                                                           \
  static void pairs_of_##T(int64_t k, int64_t n, const T *from, int64_t row, T *to) {              \
    for (int64_t p = 0; p < k; p++, from += row, to += 4 * n) {                                    \
      const T *restrict x = from;                                                                  \
      T *restrict y = to, *restrict turned = to + 2 * n;                                           \
      for (int64_t j = 0; j < n; j++) {                                                            \
        const T re = x[2 * j], im = x[2 * j + 1];                                                  \
        y[2 * j] = re, y[2 * j + 1] = im;                                                          \
        turned[2 * j] = -im, turned[2 * j + 1] = re;                                               \
      }                                                                                            \
    }                                                                                              \
  }
PAIRS_OF_ROWS(float)
PAIRS_OF_ROWS(double)

/* Writes the pairs of rows first <= r < last, counted through all matrices. */
static void write_pairs(const lt_Tensor *t, void *to, int64_t first, int64_t last) {
  int64_t k = t->shape[t->ndim - 2], n = t->shape[t->ndim - 1], count;
  for (int64_t r = first; r < last && !lt_stopped(); r += count) {
    lt_Matrix m = matrix(t, r / k);
    int64_t left = k - r % k, at = 2 * (r % k) * m.row, done = 4 * (r - first) * n;
    count = left < last - r ? left : last - r;
    if (t->dtype == LT_complex64)
      pairs_of_float(count, n, (const float *)m.data + at, 2 * m.row, (float *)to + done);
    else
      pairs_of_double(count, n, (const double *)m.data + at, 2 * m.row, (double *)to + done);
  }
}

/* Returns the matrices b {.., k, n} with i b(p) after each row b(p), as real ones {.., 2k, 2n}. */
static lt_Tensor *in_pairs(const lt_Tensor *b) {
  int64_t shape[3], k = b->shape[b->ndim - 2], n = b->shape[b->ndim - 1];
  for (int i = 0; i < b->ndim; i++) shape[i] = i < b->ndim - 2 ? b->shape[i] : 2 * b->shape[i];
  lt_Tensor *to = lt_empty(lt_dtype_real(b->dtype), lt_cpu(), b->ndim, shape);
  int64_t rows = n ? b->numel / n : 0, step = 2 * n * (int64_t)lt_dtype_size(b->dtype);
  if (to && k > 0)
    LT_IN_TEAM(lt_team(b->numel, rows), rows,
               write_pairs(b, (char *)lt_tensor_data(to) + first * step, first, last));
  return to;
}

/* A batch of small complex products. */
typedef struct Pairs {
  const lt_Tensor *a, *b, *out; /* a and out as views of their parts */
  atomic_bool failed;
} Pairs;

enum { PAIRS = 16384 }; /* bytes of matrices in pairs, which the first cache holds */

/* Computes products first <= t < last. */
static void multiply_pairs(Pairs *p, int64_t first, int64_t last) {
  _Alignas(64) char room[PAIRS];
  const int64_t m = p->a->shape[1], k = p->a->shape[2], n = p->out->shape[2];
  const int64_t size = (int64_t)lt_dtype_size(p->out->dtype);
  const int64_t step[3] = {p->a->strides[0] * size, k * n * size, m * n * size};
  for (int64_t t = first, count; t < last && !lt_stopped(); t += count) {
    count = PAIRS / step[1] < last - t ? PAIRS / step[1] : last - t;
    write_pairs(p->b, room, t * k / 2, (t + count) * k / 2);
    lt_Matrix b = {room, n, 1}, c = {(char *)lt_tensor_data(p->out) + t * step[2], n, 1};
    if (!lt_product_batch(p->out->dtype, m, n, k, count, matrix(p->a, t), b, c, step, 1))
      atomic_store(&p->failed, true);
  }
}

/* Computes a batch of small products; returns false where that is not possible. */
static bool run_pairs(const lt_Tensor *a, const lt_Tensor *b, const lt_Tensor *out) {
  if (out->ndim != 3 || out->numel == 0 || a->shape[2] == 0) return false;
  int64_t m = a->shape[1], k = a->shape[2], n = out->shape[2], batch = out->shape[0];
  if (m * n * k > 8 * LT_GRAIN || k * n * (int64_t)lt_dtype_size(out->dtype) > PAIRS) return false;
  Pairs p = {.a = a, .b = b, .out = out};
  atomic_init(&p.failed, false);
  LT_IN_TEAM(lt_team(batch * (m * n * k / 4 + k * n), batch), batch,
             multiply_pairs(&p, first, last));
  return !atomic_load(&p.failed);
}

/* Computes out = a @ b of complex matrices as one product of real ones: those of the parts of a,
 * (re, im), and the rows b and i b. */
static bool complex_product(lt_Tensor *a, lt_Tensor *b, lt_Tensor *out) {
  lt_Tensor *x = with_dense_rows(a), *y = with_dense_rows(b), *parts = as_parts(out),
            *left = x ? as_parts(x) : NULL, *right = NULL;
  bool ok = left && y && parts;
  if (ok && !run_pairs(left, y, parts))
    ok = (right = in_pairs(y)) &&
         product(left, right, NULL, parts, lt_scalar_int(1), lt_scalar_int(0));
  lt_release(x);
  lt_release(y);
  lt_release(parts);
  lt_release(left);
  lt_release(right);
  return ok;
}

bool lt_cpu_mm(lt_Call *c) {
  if (product_at_once(lt_in(c, 0), lt_in(c, 1), c->out[0])) return true;
  if (lt_dtype_is_complex(c->out[0]->dtype))
    return complex_product(lt_in(c, 0), lt_in(c, 1), c->out[0]);
  return product(lt_in(c, 0), lt_in(c, 1), NULL, c->out[0], lt_scalar_int(1), lt_scalar_int(0));
}

bool lt_cpu_bmm(lt_Call *c) {
  if (lt_dtype_is_complex(c->out[0]->dtype))
    return complex_product(lt_in(c, 0), lt_in(c, 1), c->out[0]);
  return product(lt_in(c, 0), lt_in(c, 1), NULL, c->out[0], lt_scalar_int(1), lt_scalar_int(0));
}

/* Returns whether self can be added as it is, without a copy to the result first. */
static bool adds_directly(const lt_Tensor *self, const lt_Tensor *out, const lt_Tensor *mat1) {
  return lt_dtype_is_float(out->dtype) && out->dtype == lt_work_dtype(out->dtype) &&
         self->dtype == out->dtype && mat1->shape[1] > 0 && out->numel > 0 &&
         !lt_tensor_overlaps(out, self);
}

/* Computes beta * self + alpha * mat1 @ mat2. self is broadcast to the output, unless beta is 0:
 * then it is not read, and its NaN is ignored. */
bool lt_cpu_addmm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0], *added = NULL;
  lt_Scalar beta = c->arg[3].scalar;
  if (lt_scalar_to_double(beta) != 0) {
    bool direct = adds_directly(self, out, lt_in(c, 1));
    if (direct && !(added = lt_expanded(self, out->ndim, out->shape))) return false;
    if (!direct && !lt_copy_into(out, self, false)) return false;
  }
  bool ok = product(lt_in(c, 1), lt_in(c, 2), added, out, c->arg[4].scalar, beta);
  lt_release(added);
  return ok;
}
