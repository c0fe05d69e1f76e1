/* matmul.c: the ops mm, bmm and addmm. The kernels of matmul.metal read factors with any strides,
 * so no factor is copied. */
#include "matmul.h"
#include "opids.h"
#include "queue.h"

#include <stdlib.h>
#include <string.h>

/* A product with fewer threadgroups than this is divided along the inner dimension, where that is
 * at least LONG in each part. The numbers do not depend on the device, so results do not either. */
#define GROUPS 64
#define LONG   256

static lt_MpsFactor factor(const lt_Tensor *t) {
  int d = t->ndim;
  return (lt_MpsFactor){
      .step = d == 3 ? t->strides[0] : 0, .row = t->strides[d - 2], .column = t->strides[d - 1]};
}

static lt_MpsMatmul arguments(const lt_Tensor *a, const lt_Tensor *b, const lt_Tensor *out,
                              lt_Scalar alpha, lt_Scalar beta) {
  lt_MpsMatmul m = {.batch = out->ndim == 3 ? out->shape[0] : 1,
                    .m = a->shape[a->ndim - 2],
                    .n = b->shape[b->ndim - 1],
                    .k = a->shape[a->ndim - 1],
                    .part = a->shape[a->ndim - 1],
                    .splits = 1,
                    .a = factor(a),
                    .b = factor(b),
                    .real_alpha = (float)lt_scalar_to_double(alpha),
                    .real_beta = (float)lt_scalar_to_double(beta)};
  if (lt_dtype_is_float(out->dtype) || lt_dtype_is_complex(out->dtype)) return m;
  m.alpha = lt_scalar_to_int(alpha);
  m.beta = lt_scalar_to_int(beta);
  return m;
}

/* Computes beta * out: the product when the inner dimension is 0. */
static bool scale(lt_Call *c, lt_Tensor *out, lt_Scalar beta) {
  if (lt_scalar_to_double(beta) == 0)
    return lt_mps_fill_zero(c->device.index, lt_tensor_data(out),
                            (size_t)out->numel * lt_dtype_size(out->dtype), c->stream);
  lt_Arg inputs[2] = {lt_arg_tensor(out), lt_arg_scalar(beta)};
  return lt_loop_run(LT_OP_mul, out, lt_dtype_compute(out->dtype), 2, inputs, lt_scalar_int(0),
                     lt_scalar_int(0));
}

/* ---- floating matrices ----------------------------------------------------------------------- */

/* Divides the inner dimension where the result has few tiles. */
static void divide(lt_MpsMatmul *m, int64_t tiles) {
  int64_t splits = tiles < GROUPS ? GROUPS / tiles : 1;
  if (splits > m->k / LONG) splits = m->k / LONG;
  if (splits < 2) return;
  m->part = lt_mps_groups(lt_mps_groups(m->k, splits), LT_MPS_DEPTH) * LT_MPS_DEPTH;
  m->splits = lt_mps_groups(m->k, m->part);
}

/* Adds the parts of the sums. */
static bool sum_parts(lt_Call *c, const lt_MpsMatmul *m, lt_Tensor *parts, lt_Tensor *out) {
  int64_t groups = lt_mps_groups(out->numel, 256), down = lt_mps_groups(groups, 1 << 20);
  lt_MpsLaunch l = {.file = "matmul",
                    .kernel = "sum_parts",
                    .constants = {(int)out->dtype},
                    .data = {lt_tensor_data(parts), lt_tensor_data(out)},
                    .count = 2,
                    .arguments = m,
                    .size = sizeof *m,
                    .groups = {lt_mps_groups(groups, down), down},
                    .threads = {256}};
  return lt_mps_launch(c, &l);
}

static bool float_product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, lt_MpsMatmul m) {
  lt_Tensor *out = c->out[0], *parts = NULL;
  const int64_t large = lt_mps_groups(m.n, LT_MPS_TILE) * lt_mps_groups(m.m, LT_MPS_TILE) * m.batch;
  const int64_t side =
      m.m > LT_MPS_SMALL && m.n > LT_MPS_SMALL && large >= GROUPS / 4 ? LT_MPS_TILE : LT_MPS_SMALL;
  const int64_t across = lt_mps_groups(m.n, side), down = lt_mps_groups(m.m, side);
  divide(&m, across * down * m.batch);
  if (m.splits > 1) {
    int64_t shape[2] = {m.splits, out->numel};
    parts = lt_empty(LT_float32, lt_tensor_device(out), 2, shape);
    if (!parts) return false;
  }
  lt_MpsLaunch l = {
      .file = "matmul",
      .kernel = side == LT_MPS_TILE ? "matmul_tiles" : "matmul_small_tiles",
      .constants = {(int)out->dtype, m.a.column == 1, m.b.column == 1, parts != NULL},
      .data = {lt_tensor_data(a), lt_tensor_data(b), lt_tensor_data(parts ? parts : out)},
      .count = 3,
      .arguments = &m,
      .size = sizeof m,
      .groups = {across, down, m.batch * m.splits},
      .threads = {LT_MPS_THREADS}};
  bool ok = lt_mps_launch(c, &l) && (!parts || sum_parts(c, &m, parts, out));
  lt_release(parts);
  return ok;
}

/* Multiplies a matrix and a vector: a product with one column, or with one row. */
static bool vector_product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, const lt_MpsMatmul *m) {
  const bool left = m->n == 1; /* the matrix is a */
  const bool rows_dense = (left ? m->a.column : m->b.row) == 1;
  const bool columns = !rows_dense && (left ? m->a.row : m->b.column) == 1;
  const int64_t rows = left ? m->m : m->n;
  lt_MpsLaunch l = {
      .file = "matmul",
      .kernel = columns ? "matmul_columns" : "matmul_dots",
      .constants = {(int)a->dtype, left},
      .data = {lt_tensor_data(left ? a : b), lt_tensor_data(left ? b : a),
               lt_tensor_data(c->out[0])},
      .count = 3,
      .arguments = m,
      .size = sizeof *m,
      .groups = {lt_mps_groups(rows, columns ? LT_MPS_SIMD : LT_MPS_THREADS / LT_MPS_SIMD), 1,
                 m->batch},
      .threads = {LT_MPS_THREADS}};
  return lt_mps_launch(c, &l);
}

/* ---- Apple's matrix product ------------------------------------------------------------------ */

/* Describes a factor, or the result; false where Apple's product cannot read it. */
static bool as_matrix(const lt_Tensor *t, lt_MetalMatrix *out) {
  int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
  int64_t down = t->strides[t->ndim - 2], across = t->strides[t->ndim - 1], stride = down;
  size_t size = lt_dtype_size(t->dtype);
  out->transposed = across != 1;
  if (out->transposed) {
    stride = across;
    if (down != 1 || across < rows) return false;
  } else if (down < columns) {
    return false;
  }
  if (rows > INT32_MAX || columns > INT32_MAX) return false;
  out->rows = (uint32_t)(out->transposed ? columns : rows);
  out->columns = (uint32_t)(out->transposed ? rows : columns);
  out->stride = (size_t)stride * size;
  out->buffer = lt_mps_find_buffer((uint64_t)(uintptr_t)lt_tensor_data(t), 0, &out->offset);
  return out->buffer != NULL;
}

/* Computes a @ b by Apple's product, where the program prefers it and it is available; then returns
 * true. */
static bool apple_product(lt_Call *c, const lt_Tensor *a, const lt_Tensor *b) {
  lt_MetalMatrix left, right, result;
  lt_Tensor *out = c->out[0];
  lt_DriverStatus status;
  if (!atomic_load(&lt_mps_options[LT_MPS_OPTION_MATMUL]) || out->ndim != 2 ||
      (out->dtype != LT_float32 && out->dtype != LT_float16) || !as_matrix(a, &left) ||
      !as_matrix(b, &right) || !as_matrix(out, &result) || result.transposed)
    return false;
  lt_MpsQueue *q = lt_mps_queue_of(c->device.index, lt_accel_native(c->stream));
  lt_MetalCommands *open = q ? lt_mps_queue_enter(q, "matmul", &status) : NULL;
  if (!open) return false;
  bool ok = lt_metal_matmul(open, &result, &left, &right, out->dtype == LT_float16);
  if (!ok)
    lt_mps_queue_cancel(q);
  else
    lt_mps_queue_leave(q, (size_t)(a->numel + b->numel + out->numel) * lt_dtype_size(out->dtype));
  return ok;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static bool plain_product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, const lt_MpsMatmul *m) {
  lt_Tensor *out = c->out[0];
  lt_MpsLaunch l = {
      .file = "matmul",
      .kernel = lt_dtype_is_complex(out->dtype) ? "matmul_complex"
                : out->dtype == LT_int64        ? "matmul_long"
                                                : "matmul_narrow",
      .constants = {(int)out->dtype},
      .data = {lt_tensor_data(a), lt_tensor_data(b), lt_tensor_data(out)},
      .count = 3,
      .arguments = m,
      .size = sizeof *m,
      .groups = {lt_mps_groups(m->n, LT_MPS_PLAIN), lt_mps_groups(m->m, LT_MPS_PLAIN), m->batch},
      .threads = {LT_MPS_PLAIN * LT_MPS_PLAIN}};
  return lt_mps_launch(c, &l);
}

/* Computes out = alpha * a @ b + beta * out; with beta 0, out is not read. */
static bool product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, lt_Scalar alpha, lt_Scalar beta) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  if (a->shape[a->ndim - 1] == 0) return scale(c, out, beta);
  lt_MpsMatmul m = arguments(a, b, out, alpha, beta);
  if (!lt_dtype_is_float(out->dtype)) return plain_product(c, a, b, &m);
  if (m.real_alpha == 1 && m.real_beta == 0 && apple_product(c, a, b)) return true;
  /* a long product with few rows is divided, which only the kernel of tiles does */
  bool is_vector = (m.m == 1 || m.n == 1) && (m.m * m.n >= GROUPS * LT_MPS_SIMD || m.k <= 4 * LONG);
  return is_vector ? vector_product(c, a, b, &m) : float_product(c, a, b, m);
}

bool lt_mps_mm(lt_Call *c) {
  return lt_mps_begin(c) &&
         product(c, lt_in(c, 0), lt_in(c, 1), lt_scalar_int(1), lt_scalar_int(0));
}

bool lt_mps_bmm(lt_Call *c) { return lt_mps_mm(c); }

/* Computes beta * self + alpha * mat1 @ mat2. self is broadcast into the output first, unless beta
 * is 0: then it is not read, and NaN in it has no effect. */
bool lt_mps_addmm(lt_Call *c) {
  lt_Scalar beta = c->arg[3].scalar;
  if (!lt_mps_begin(c)) return false;
  if (lt_scalar_to_double(beta) != 0 && !lt_copy_into(c->out[0], lt_in(c, 0), false)) return false;
  return product(c, lt_in(c, 1), lt_in(c, 2), c->arg[4].scalar, beta);
}
