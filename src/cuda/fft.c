/* fft.c: the ops of Fourier transforms, by cuFFT (fft_plans.c). It transforms adjacent dims of
 * contiguous memory that are the first or the last ones; other dims are moved to the end by a copy.
 * Where cuFFT is missing, or refuses a size, the transform runs on the CPU. */
#include "fft.h"
#include "opids.h"

/* ---- geometry -------------------------------------------------------------------------------- */

/* Returns the product of the sizes of dims first .. last - 1 that are not in the mask. */
static int64_t product(const lt_Tensor *t, int first, int last, unsigned without) {
  int64_t n = 1;
  for (int d = first; d < last; d++)
    if (!(without >> d & 1)) n *= t->shape[d];
  return n;
}

static int first_of(unsigned mask) { return __builtin_ctz(mask); }
static int last_of(unsigned mask) { return 31 - __builtin_clz(mask); }

/* Returns whether memory begins at a multiple of a complex number's size, as cuFFT requires. */
static bool is_aligned(const lt_Tensor *t) {
  size_t size = lt_dtype_size(t->dtype) * (lt_dtype_is_complex(t->dtype) ? 1 : 2);
  return (uintptr_t)lt_tensor_data(t) % size == 0;
}

/* Returns true when cuFFT can transform these dims of x to y, both contiguous, as they are. */
static bool is_direct(const lt_Tensor *x, const lt_Tensor *y, unsigned mask) {
  int first = first_of(mask), last = last_of(mask);
  return product(x, first, last, mask) == 1 && is_aligned(x) && is_aligned(y) &&
         (product(x, 0, first, 0) == 1 || product(x, last + 1, x->ndim, 0) == 1);
}

/* Writes to order[] the dims with those of the mask at the end, and to back[] its inverse. */
static void end_order(int ndim, unsigned mask, int *order, int *back) {
  int count = 0;
  for (unsigned end = 0; end < 2; end++)
    for (int d = 0; d < ndim; d++)
      if ((mask >> d & 1) == end) order[count++] = d;
  for (int i = 0; i < ndim; i++) back[order[i]] = i;
}

/* Returns a view of t with its dims in this order. */
static lt_Tensor *in_order(lt_Tensor *t, const int *order) {
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  for (int i = 0; i < t->ndim; i++) {
    shape[i] = t->shape[order[i]];
    strides[i] = t->strides[order[i]];
  }
  return lt_geometry(t, 0, t->ndim, shape, strides);
}

/* Returns a contiguous copy of t; NULL on failure. */
static lt_Tensor *copy_of(const lt_Tensor *t) {
  lt_Tensor *copy = t ? lt_empty(t->dtype, lt_tensor_device(t), t->ndim, t->shape) : NULL;
  if (copy && lt_copy_into(copy, t, false)) return copy;
  lt_release(copy);
  return NULL;
}

/* ---- transforms ------------------------------------------------------------------------------ */

/* Returns a view of the imaginary parts of a tensor, of number k along `dim` only. */
static lt_Tensor *imaginary_parts(lt_Tensor *t, int dim, int64_t k) {
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  for (int d = 0; d < t->ndim; d++) {
    shape[d] = d == dim ? 1 : t->shape[d];
    strides[d] = 2 * t->strides[d];
  }
  return lt_tensor_on(t->storage, t->dtype == LT_complex128 ? LT_float64 : LT_float32,
                      2 * (t->offset + k * t->strides[dim]) + 1, t->ndim, shape, strides);
}

/* Sets imaginary parts to 0 that a transform to n real numbers ignores: cuFFT may use them. */
static bool clear_imaginary(const lt_Call *c, lt_Tensor *x, int dim, int64_t n) {
  int64_t one = 1;
  lt_Dtype real = x->dtype == LT_complex128 ? LT_float64 : LT_float32;
  lt_Tensor *zero = lt_empty(real, c->device, 1, &one);
  bool ok = zero != NULL && lt_cuda_fill_zero(c->device.index, lt_tensor_data(zero),
                                              lt_dtype_size(real), c->stream);
  for (int i = 0; ok && i < (n % 2 == 0 ? 2 : 1); i++) {
    lt_Tensor *parts = imaginary_parts(x, dim, i * n / 2), *zeros = NULL;
    if (parts) zeros = lt_expanded(zero, parts->ndim, parts->shape);
    ok = zeros && lt_copy_into(parts, zeros, false);
    lt_release(zeros);
    lt_release(parts);
  }
  lt_release(zero);
  return ok;
}

/* Transforms dims of x to y, for which is_direct holds. */
static lt_CudaFftOutcome transform_direct(lt_Call *c, lt_CudaFftKind kind, lt_Tensor *x,
                                          lt_Tensor *y, unsigned mask, bool inverse) {
  int first = first_of(mask), last = last_of(mask);
  int64_t outer = product(x, 0, first, 0), inner = product(x, last + 1, x->ndim, 0);
  lt_CudaFft fft;
  memset(&fft, 0, sizeof fft);
  fft.kind = kind;
  fft.wide = x->dtype == LT_complex128 || x->dtype == LT_float64;
  fft.stride = inner;
  fft.batch = outer * inner;
  fft.in_distance = inner > 1 ? 1 : product(x, first, last + 1, 0);
  fft.out_distance = inner > 1 ? 1 : product(y, first, last + 1, 0);
  for (int d = first; d <= last; d++) {
    if (!(mask >> d & 1)) continue;
    fft.in[fft.rank] = x->shape[d];
    fft.out[fft.rank] = y->shape[d];
    fft.n[fft.rank++] = kind == LT_FFT_C2R ? y->shape[d] : x->shape[d];
  }
  if (kind == LT_FFT_C2R && !clear_imaginary(c, x, last, y->shape[last])) return LT_FFT_FAILED;
  return lt_cuda_fft_run(c, &fft, lt_tensor_data(x), lt_tensor_data(y), inverse);
}

/* Transforms dims of x to y by copies with these dims at the end. */
static lt_CudaFftOutcome transform_moved(lt_Call *c, lt_CudaFftKind kind, lt_Tensor *x,
                                         lt_Tensor *y, unsigned mask, bool inverse) {
  int order[LT_MAX_DIMS], back[LT_MAX_DIMS], count = __builtin_popcount(mask);
  end_order(x->ndim, mask, order, back);
  lt_Tensor *target = in_order(y, order), *view = in_order(x, order), *from = copy_of(view);
  lt_Tensor *to = kind == LT_FFT_C2C ? lt_retain(from)
                  : target           ? lt_empty(y->dtype, c->device, y->ndim, target->shape)
                                     : NULL;
  lt_CudaFftOutcome outcome = LT_FFT_FAILED;
  if (from && to && target)
    outcome =
        transform_direct(c, kind, from, to, ((1u << count) - 1) << (x->ndim - count), inverse);
  if (outcome == LT_FFT_DONE && !lt_copy_into(target, to, false)) outcome = LT_FFT_FAILED;
  lt_release(to);
  lt_release(from);
  lt_release(view);
  lt_release(target);
  return outcome;
}

/* Transforms up to LT_CUDA_FFT_DIMS dims of x to y, both contiguous; for C2C they may be the same
 * tensor. x is not changed otherwise. */
static lt_CudaFftOutcome transform(lt_Call *c, lt_CudaFftKind kind, lt_Tensor *x, lt_Tensor *y,
                                   unsigned mask, bool inverse) {
  if (!is_direct(x, y, mask)) return transform_moved(c, kind, x, y, mask, inverse);
  if (kind != LT_FFT_C2R) return transform_direct(c, kind, x, y, mask, inverse);
  lt_Tensor *copy = copy_of(x); /* cuFFT overwrites it */
  lt_CudaFftOutcome outcome =
      copy ? transform_direct(c, kind, copy, y, mask, inverse) : LT_FFT_FAILED;
  lt_release(copy);
  return outcome;
}

/* Multiplies the numbers of a contiguous tensor, the parts of complex ones, by `factor`. */
static bool scale(lt_Tensor *t, double factor) {
  int64_t n = t->numel, one = 1;
  if (factor == 1) return true;
  lt_Dtype real = t->dtype;
  if (lt_dtype_is_complex(real)) {
    real = real == LT_complex128 ? LT_float64 : LT_float32;
    n *= 2;
  }
  lt_Tensor *parts = lt_tensor_on(t->storage, real, t->offset * (n / t->numel), 1, &n, &one);
  if (!parts) return false;
  lt_Arg inputs[2] = {lt_arg_tensor(parts), lt_arg_scalar(lt_scalar_float(factor))};
  bool ok = lt_loop_run(LT_OP_mul, parts, real, 2, inputs, lt_scalar_int(0), lt_scalar_int(0));
  lt_release(parts);
  return ok;
}

/* Finishes a kernel after its transforms. */
static bool finish(lt_Call *c, lt_CudaFftOutcome outcome, double factor) {
  if (outcome == LT_FFT_REFUSED) return lt_host_run(c);
  return outcome == LT_FFT_DONE && scale(c->out[0], factor);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Transforms dims of x to y, up to LT_CUDA_FFT_DIMS at once, from the last one on; all but the
 * first ones in place. */
static lt_CudaFftOutcome transform_all(lt_Call *c, lt_Tensor *x, lt_Tensor *y, unsigned mask,
                                       bool inverse) {
  lt_CudaFftOutcome outcome = LT_FFT_DONE;
  for (lt_Tensor *from = x; mask && outcome == LT_FFT_DONE; from = y) {
    unsigned now = 0;
    for (int i = 0; i < LT_CUDA_FFT_DIMS && mask; i++) {
      now |= 1u << last_of(mask);
      mask &= ~(1u << last_of(mask));
    }
    outcome = transform(c, LT_FFT_C2C, from, y, now, inverse);
  }
  return outcome;
}

bool lt_cuda__fft_c2c(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  unsigned mask = 0;
  if (out->numel > 0 && !lt_cuda_fft_available()) return lt_host_run(c);
  if (!lt_cuda_begin(c)) return false;
  for (int i = 0; i < c->arg[1].count; i++) {
    int dim = lt_dim(c->arg[1].ints[i], self->ndim);
    if (self->ndim && self->shape[dim] > 1) mask |= 1u << dim; /* one number is its transform */
  }
  double factor = c->arg[1].count ? c->arg[3].f : 1;
  if (out->numel == 0) return true;
  if (!mask) return lt_copy_into(out, self, false) && scale(out, factor);
  lt_Tensor *x = lt_as_contiguous(self, out->dtype);
  if (!x) return false;
  lt_CudaFftOutcome outcome = transform_all(c, x, out, mask, c->arg[2].b);
  lt_release(x);
  return finish(c, outcome, factor);
}

/* Transforms one dim, from or to real numbers. */
static bool run_real(lt_Call *c, lt_CudaFftKind kind, double factor) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  if (out->numel > 0 && !lt_cuda_fft_available()) return lt_host_run(c);
  if (!lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype);
  if (!x) return false;
  unsigned mask = 1u << lt_dim(c->arg[1].i, self->ndim);
  lt_CudaFftOutcome outcome = transform(c, kind, x, out, mask, kind == LT_FFT_C2R);
  lt_release(x);
  return finish(c, outcome, factor);
}

bool lt_cuda__fft_r2c(lt_Call *c) { return run_real(c, LT_FFT_R2C, c->arg[2].f); }
bool lt_cuda__fft_c2r(lt_Call *c) { return run_real(c, LT_FFT_C2R, c->arg[3].f); }
