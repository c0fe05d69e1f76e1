/* scan.c: cumsum and cumprod. Floats are summed in float64; integers wrap. */
#include "cuda.h"
#include "scan.h"

#define COLUMNS 16384 /* the number of columns that keeps a device busy with a thread for each */
#define SHORT   64

/* Scans along the middle dim of contiguous tensors of the same shape, outer x n x inner. */
static bool scan_lines(lt_Call *c, bool product, lt_Tensor *x, lt_Tensor *out, int64_t outer,
                       int64_t n, int64_t inner) {
  lt_CudaScan s = {.product = product,
                   .in_double = lt_dtype_is_float(x->dtype),
                   .x = lt_tensor_data(x),
                   .dtype = x->dtype,
                   .out = lt_tensor_data(out),
                   .out_dtype = out->dtype,
                   .outer = outer,
                   .n = n,
                   .inner = inner};
  lt_cuda_scan_plan(&s);
  lt_Tensor *scratch = NULL;
  if (s.pieces > 1) {
    int64_t size = outer * s.pieces * (int64_t)sizeof(double);
    scratch = lt_empty(LT_uint8, c->device, 1, &size);
    if (!scratch) return false;
    s.scratch = lt_tensor_data(scratch);
  }
  bool ok = lt_cuda_launch_ok(lt_cuda_launch_scan(&s, lt_cuda_stream(c)));
  lt_release(scratch);
  return ok;
}

/* Scans few long columns by transposing them to rows and back. */
static bool scan_transposed(lt_Call *c, bool product, lt_Tensor *x, lt_Tensor *out, int64_t outer,
                            int64_t n, int64_t inner) {
  int64_t shape[3] = {outer, inner, n}, strides[3] = {n * inner, 1, inner};
  lt_Tensor *from = lt_tensor_on(x->storage, x->dtype, x->offset, 3, shape, strides),
            *to = lt_tensor_on(out->storage, out->dtype, out->offset, 3, shape, strides),
            *rows = from ? lt_as_contiguous(from, from->dtype) : NULL,
            *result = rows && to ? lt_empty(out->dtype, c->device, 3, shape) : NULL;
  bool ok = result && scan_lines(c, product, rows, result, outer * inner, n, 1) &&
            lt_copy_into(to, result, false);
  lt_release(from);
  lt_release(to);
  lt_release(rows);
  lt_release(result);
  return ok;
}

/* Scans along a dim; few long columns are transposed first. */
static bool scan(lt_Call *c, bool product) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  /* the input is cast to a dtype argument before anything is summed */
  lt_Tensor *x = lt_as_contiguous(self, lt_given(c, 2) ? c->arg[2].dtype : self->dtype);
  if (!x) return false;
  int64_t outer = 1, n = x->ndim ? x->shape[dim] : 1, inner = 1;
  for (int d = 0; d < dim; d++) outer *= x->shape[d];
  for (int d = dim + 1; d < x->ndim; d++) inner *= x->shape[d];
  bool turn = inner > 1 && n > SHORT && outer * inner < COLUMNS;
  bool ok = (turn ? scan_transposed : scan_lines)(c, product, x, out, outer, n, inner);
  lt_release(x);
  return ok;
}

bool lt_cuda_cumsum(lt_Call *c) { return scan(c, false); }
bool lt_cuda_cumprod(lt_Call *c) { return scan(c, true); }
