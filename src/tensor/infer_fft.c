/* infer_fft.c: discrete Fourier transforms. */
#include "infer.h"

static bool is_real(lt_Dtype d) { return d == LT_float32 || d == LT_float64; }

/* Checks that argument 0 has a dtype of `complex` or real numbers, of 32 or 64 bits. */
static bool check_dtype(const lt_Call *c, bool complex) {
  lt_Dtype d = lt_in(c, 0)->dtype;
  if (complex) return lt_check_complex(c, 0);
  if (is_real(d)) return true;
  return lt_fail("expected \"float32\" or \"float64\" for argument '%s', got \"%s\"",
                 lt_arg_name(c, 0), lt_dtype_name(d));
}

/* Returns the dim of argument 1, or -1 with the error set; a 0-d tensor has none. */
static int line_dim(const lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_ndim(c, 0, 1, LT_MAX_DIMS)) return -1;
  return lt_dim(c->arg[1].i, self->ndim);
}

/* Checks that there is a number to transform. */
static bool check_length(int64_t n) {
  return n >= 1 || lt_fail("expected at least 1 number to transform, got %lld", (long long)n);
}

/* _fft_c2c (self, dims, inverse, scale) */
bool lt_infer_fft_c2c(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  unsigned mask;
  if (!is_real(self->dtype) && !check_dtype(c, true)) return false;
  if (c->arg[1].count && !lt_check_ndim(c, 0, 1, LT_MAX_DIMS)) return false;
  if (!lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  for (int d = 0; d < self->ndim && c->arg[1].count; d++)
    if (mask >> d & 1 && !check_length(self->shape[d])) return false;
  lt_spec(c, 0,
          self->dtype == LT_float32   ? LT_complex64
          : self->dtype == LT_float64 ? LT_complex128
                                      : self->dtype,
          self->ndim, self->shape);
  return true;
}

/* _fft_r2c (self, dim, scale) */
bool lt_infer_fft_r2c(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t shape[LT_MAX_DIMS];
  int dim = check_dtype(c, false) ? line_dim(c) : -1;
  if (dim < 0 || !check_length(self->shape[dim])) return false;
  memcpy(shape, self->shape, sizeof shape);
  shape[dim] = shape[dim] / 2 + 1;
  lt_spec(c, 0, self->dtype == LT_float64 ? LT_complex128 : LT_complex64, self->ndim, shape);
  return true;
}

/* _fft_c2r (self, dim, n, scale) */
bool lt_infer_fft_c2r(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t shape[LT_MAX_DIMS], n = c->arg[2].i;
  int dim = check_dtype(c, true) ? line_dim(c) : -1;
  if (dim < 0 || !check_length(n)) return false;
  if (self->shape[dim] != n / 2 + 1)
    return lt_fail("expected %lld numbers along the dim of argument '%s', got %s",
                   (long long)(n / 2 + 1), lt_arg_name(c, 0), lt_text(self));
  memcpy(shape, self->shape, sizeof shape);
  shape[dim] = n;
  lt_spec(c, 0, self->dtype == LT_complex128 ? LT_float64 : LT_float32, self->ndim, shape);
  return true;
}
