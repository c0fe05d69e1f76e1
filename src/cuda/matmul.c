/* matmul.c: the ops mm, bmm and addmm. Float matrices are passed to cuBLAS with the strides they
 * have, if one of their dimensions is dense; integer matrices to a kernel here, with any
 * strides. */
#include "matmul.h"
#include "blas.h"
#include "cuda.h"
#include "opids.h"

/* Describes the last two dimensions as a matrix that cuBLAS accepts. The stride of a dimension of
 * size 1 is ignored. Returns false when the tensor must be made contiguous first. */
static bool as_matrix(const lt_Tensor *t, lt_CudaMatrix *out) {
  const int64_t *shape = t->shape + t->ndim - 2, *strides = t->strides + t->ndim - 2;
  int64_t r = shape[0], c = shape[1];
  *out = (lt_CudaMatrix){.data = lt_tensor_data(t), .step = t->ndim == 3 ? t->strides[0] : 0};
  if ((strides[1] == 1 || c == 1) && (r == 1 || strides[0] >= c)) {
    out->lead = r > 1 ? strides[0] : c;
    return true;
  }
  out->transposed = true;
  out->lead = c > 1 ? strides[1] : r;
  return (strides[0] == 1 || r == 1) && (c == 1 || strides[1] >= r);
}

/* Describes t as a matrix, from a contiguous copy where cuBLAS requires it. *held is one reference
 * to the tensor that owns the memory; NULL on failure. */
static bool factor(lt_Tensor *t, lt_Tensor **held, lt_CudaMatrix *out) {
  bool fits = as_matrix(t, out);
  *held = fits ? lt_retain(t) : lt_as_contiguous(t, t->dtype);
  return *held && (fits || as_matrix(*held, out));
}

static lt_IntegerFactor integer_factor(const lt_Tensor *t) {
  int d = t->ndim;
  return (lt_IntegerFactor){.data = lt_tensor_data(t),
                            .step = d == 3 ? t->strides[0] : 0,
                            .row = t->strides[d - 2],
                            .column = t->strides[d - 1]};
}

/* Computes beta * out: the product when the inner dimension is 0. */
static bool scale(lt_Call *c, lt_Tensor *out, lt_Scalar beta) {
  if (lt_scalar_to_double(beta) == 0)
    return lt_cuda_fill_zero(c->device.index, lt_tensor_data(out),
                             (size_t)out->numel * lt_dtype_size(out->dtype), c->stream);
  lt_Arg inputs[2] = {lt_arg_tensor(out), lt_arg_scalar(beta)};
  return lt_loop_run(LT_OP_mul, out, lt_dtype_compute(out->dtype), 2, inputs, lt_scalar_int(0),
                     lt_scalar_int(0));
}

/* Multiplies by cuBLAS; factors that it does not support are copied first. */
static bool float_product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, lt_Tensor *out, lt_Scalar alpha,
                          lt_Scalar beta) {
  lt_Tensor *x = NULL, *y = NULL;
  lt_CudaMatrix am, bm;
  int64_t batch = out->ndim == 3 ? out->shape[0] : 1;
  bool ok = factor(a, &x, &am) && factor(b, &y, &bm) &&
            lt_cuda_gemm(c, out->dtype, a->shape[a->ndim - 2], b->shape[b->ndim - 1],
                         a->shape[a->ndim - 1], batch, lt_scalar_to_double(alpha), am, bm,
                         lt_scalar_to_double(beta), lt_tensor_data(out));
  lt_release(x);
  lt_release(y);
  return ok;
}

static bool integer_product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, lt_Tensor *out, lt_Scalar alpha,
                            lt_Scalar beta) {
  return lt_cuda_launch_ok(lt_cuda_launch_integer_matmul(
      (int)out->dtype, out->ndim == 3 ? out->shape[0] : 1, a->shape[a->ndim - 2],
      b->shape[b->ndim - 1], a->shape[a->ndim - 1], lt_scalar_to_int(alpha), integer_factor(a),
      integer_factor(b), lt_scalar_to_int(beta), lt_tensor_data(out), lt_cuda_stream(c)));
}

/* Computes out = alpha * a @ b + beta * out; with beta 0, out is not read. */
static bool product(lt_Call *c, lt_Tensor *a, lt_Tensor *b, lt_Scalar alpha, lt_Scalar beta) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  if (a->shape[a->ndim - 1] == 0) return scale(c, out, beta);
  return lt_dtype_is_float(out->dtype) ? float_product(c, a, b, out, alpha, beta)
                                       : integer_product(c, a, b, out, alpha, beta);
}

bool lt_cuda_mm(lt_Call *c) {
  return lt_cuda_begin(c) &&
         product(c, lt_in(c, 0), lt_in(c, 1), lt_scalar_int(1), lt_scalar_int(0));
}

bool lt_cuda_bmm(lt_Call *c) { return lt_cuda_mm(c); }

/* Computes beta * self + alpha * mat1 @ mat2. self is broadcast into the output first, unless beta
 * is 0: then it is not read, and NaN in it has no effect. */
bool lt_cuda_addmm(lt_Call *c) {
  lt_Scalar beta = c->arg[3].scalar;
  if (!lt_cuda_begin(c)) return false;
  if (lt_scalar_to_double(beta) != 0 && !lt_copy_into(c->out[0], lt_in(c, 0), false)) return false;
  return product(c, lt_in(c, 1), lt_in(c, 2), c->arg[4].scalar, beta);
}
