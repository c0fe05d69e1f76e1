/* infer_windows.c: ops with windows (pools, unfold, fold) and interpolation along a dimension: the
 * shapes of their results, and the arguments of their bodies (each/). */
#include "each/run.h"
#include "infer.h"

/* The weights in double, to find the largest one. */
#define T               double
#define LT_EACH_OF_T    LT_EACH_FUNCTION
#define LT_EACH_NAME(f) f##_double
#define LT_EACH_CALL(f) LT_EACH_NAME(f)
#include "each/resample_weights.h"

/* Checks that the tensor, argument 0, has at least as many dims as the list in argument i has
 * entries, of which there are 1 to 3, and that the lists up to argument `last` have as many. */
static bool check_lists(const lt_Call *c, int i, int last) {
  int n = c->arg[i].count;
  if (n < 1 || n > 3)
    return lt_fail("expected 1 to 3 sizes for argument '%s', got %d", lt_arg_name(c, i), n);
  for (int k = i; k <= last; k++)
    if (c->arg[k].count != n)
      return lt_fail("expected %d numbers for argument '%s', got %d", n, lt_arg_name(c, k),
                     c->arg[k].count);
  return lt_check_ndim(c, 0, n, LT_MAX_DIMS);
}

/* Checks that the entries of list i are from `least` on, and below 2^31, so that a product of two
 * does not overflow. */
static bool check_entries(const lt_Call *c, int i, int64_t least) {
  for (int d = 0; d < c->arg[i].count; d++)
    if (c->arg[i].ints[d] < least || c->arg[i].ints[d] > INT32_MAX)
      return lt_fail("expected integers from %lld to 2147483647 for argument '%s', got %lld",
                     (long long)least, lt_arg_name(c, i), (long long)c->arg[i].ints[d]);
  return true;
}

/* Returns true when a window that begins at `first` has one of the positions 0 to size - 1. */
static bool has_position(int64_t first, int64_t size, int64_t kernel, int64_t dilation) {
  int64_t before = first < 0 ? (-first + dilation - 1) / dilation : 0;
  return before < kernel && first + before * dilation < size;
}
/* Checks `out` windows of a pool over `in` elements. Each must have an
 * element: a maximum needs one. */
static bool check_pool_dim(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
                           int64_t dilation) {
  bool good = in >= 0 && out >= 0;
  if (good && out > 0 && kernel == 0) good = in > 0;
  if (good && out > 0 && kernel > 0) {
    good = in <= INT64_MAX / 4 && out - 1 <= (in + 2 * padding) / stride;
    /* only windows with a dilation above `in` may be empty between others that are not */
    for (int64_t o = 0; good && o < out; o++) {
      if (dilation <= in && o == 1) o = out - 1;
      good = has_position(o * stride - padding, in, kernel, dilation);
    }
  }
  return good || lt_fail("cannot place %lld windows of %lld elements, %lld apart, in %lld elements "
                         "with padding %lld",
                         (long long)out, (long long)kernel, (long long)stride, (long long)in,
                         (long long)padding);
}
/* Checks the lists kernel_size, stride, padding and, unless it is 0, dilation, which begin at
 * argument `first`, for pools of the last dims of `in`. `sizes` are those of the other side:
 * of the windows or, for a gradient (`backward`), of the elements. */
static bool check_pool(const lt_Call *c, int first, int dilation, const lt_Arg *sizes,
                       bool backward) {
  const lt_Tensor *self = lt_in(c, 0);
  const lt_Arg *a = c->arg + first;
  int n = sizes->count;
  if (!check_entries(c, first, 0) || !check_entries(c, first + 1, 1) ||
      !check_entries(c, first + 2, 0) || (dilation && !check_entries(c, dilation, 1)))
    return false;
  for (int d = 0; d < n; d++) {
    int64_t own = self->shape[self->ndim - n + d], other = sizes->ints[d];
    if (!check_pool_dim(backward ? other : own, backward ? own : other, a[0].ints[d], a[1].ints[d],
                        a[2].ints[d], dilation ? c->arg[dilation].ints[d] : 1))
      return false;
  }
  return true;
}
/* Checks _avg_pool's divisor: integers of fewer bits could not hold the number of elements, and a
 * division by -1 can trap. */
static bool check_divisor(const lt_Call *c) {
  lt_Dtype dtype = lt_in(c, 0)->dtype;
  int64_t divisor = c->arg[6].i;
  if (lt_dtype_is_float(dtype)) return true;
  if (dtype != LT_int64)
    return lt_fail("expected a float dtype or \"int64\" for argument '%s', got \"%s\"",
                   lt_arg_name(c, 0), lt_dtype_name(dtype));
  return divisor != -1 || lt_fail("expected another integer than -1 for argument 'divisor' of "
                                  "integers: the quotient of the smallest one does not exist");
}

/* Sets the spec of result r: the shape of argument 0 with its last dims replaced by a list. */
static bool spec_of(lt_Call *c, int r, lt_Dtype dtype, const lt_Arg *sizes) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t shape[LT_MAX_DIMS], numel;
  memcpy(shape, self->shape, sizeof shape);
  for (int d = 0; d < sizes->count; d++) {
    if (sizes->ints[d] < 0)
      return lt_fail("expected sizes from 0 on, got %lld", (long long)sizes->ints[d]);
    shape[self->ndim - sizes->count + d] = sizes->ints[d];
  }
  if (!lt_shape_numel(NULL, self->ndim, shape, &numel)) return false;
  lt_spec(c, r, dtype, self->ndim, shape);
  return true;
}

/* Checks the arguments of _max_pool (self, output_size, kernel_size, stride, padding, dilation). */
static bool check_max_pool(const lt_Call *c) {
  return check_lists(c, 1, 5) && check_pool(c, 2, 5, &c->arg[1], false);
}
bool lt_infer_max_pool(lt_Call *c) {
  return check_max_pool(c) && spec_of(c, 0, lt_in(c, 0)->dtype, &c->arg[1]) &&
         spec_of(c, 1, LT_int64, &c->arg[1]);
}
/* _max_values, with the arguments of _max_pool */
bool lt_infer_max_values(lt_Call *c) {
  return check_max_pool(c) && spec_of(c, 0, lt_in(c, 0)->dtype, &c->arg[1]);
}
/* _max_pool_backward (grad, indices, input_size, kernel_size, stride, padding, dilation) */
bool lt_infer_max_pool_backward(lt_Call *c) {
  return check_lists(c, 2, 6) && lt_check_index(c, 1) && lt_check_same_shape(c, 0, 1) &&
         check_pool(c, 3, 6, &c->arg[2], true) && spec_of(c, 0, lt_in(c, 0)->dtype, &c->arg[2]);
}
/* _avg_pool (self, output_size, kernel_size, stride, padding, count_include_pad, divisor) and
 * _avg_pool_backward (grad, input_size, ...) */
static bool infer_avg_pool(lt_Call *c, bool backward) {
  return check_lists(c, 1, 4) && check_divisor(c) && check_pool(c, 2, 0, &c->arg[1], backward) &&
         spec_of(c, 0, lt_in(c, 0)->dtype, &c->arg[1]);
}
bool lt_infer_avg_pool(lt_Call *c) { return infer_avg_pool(c, false); }
bool lt_infer_avg_pool_backward(lt_Call *c) { return infer_avg_pool(c, true); }

/* Returns the number of windows in a dim; 0 when it is too small for one. */
static int64_t windows_in(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                          int64_t dilation) {
  int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}
static int64_t windows(const lt_Call *c, int first, int d, int64_t size) {
  const lt_Arg *a = c->arg + first;
  return windows_in(size, a[0].ints[d], a[3].ints[d], a[2].ints[d], a[1].ints[d]);
}

/* Checks the lists kernel_size, dilation, padding, stride, which begin at argument `first`, for an
 * image with these sizes. Computes the number of elements of a window, and of windows. */
static bool check_image(const lt_Call *c, int first, const int64_t *sizes, int64_t *kernel,
                        int64_t *all) {
  int n = c->arg[first].count;
  int64_t counts[3];
  if (!check_entries(c, first, 1) || !check_entries(c, first + 1, 1) ||
      !check_entries(c, first + 2, 0) || !check_entries(c, first + 3, 1))
    return false;
  for (int d = 0; d < n; d++) {
    if (sizes[d] < 0 || sizes[d] > INT64_MAX / 4)
      return lt_fail("expected sizes from 0 on, got %lld", (long long)sizes[d]);
    counts[d] = windows(c, first, d, sizes[d]);
  }
  return lt_shape_numel(NULL, n, c->arg[first].ints, kernel) &&
         lt_shape_numel(NULL, n, counts, all);
}

/* _im2col (self, kernel_size, dilation, padding, stride): {N, C, sizes} to {N, C * kernel,
 * windows} */
bool lt_infer_im2col(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!check_lists(c, 1, 4)) return false;
  int n = c->arg[1].count;
  if (self->ndim != n + 2)
    return lt_fail("expected %d dimensions for argument 'self', got %s", n + 2, lt_text(self));
  int64_t kernel, shape[3] = {self->shape[0]}, numel;
  if (!check_image(c, 1, self->shape + 2, &kernel, &shape[2])) return false;
  if (!lt_shape_numel(NULL, 2, (int64_t[]){self->shape[1], kernel}, &shape[1]) ||
      !lt_shape_numel(NULL, 3, shape, &numel))
    return false;
  lt_spec(c, 0, self->dtype, 3, shape);
  return true;
}
/* _col2im (self, output_size, kernel_size, dilation, padding, stride) */
bool lt_infer_col2im(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int n = c->arg[1].count;
  if (self->ndim != 3)
    return lt_fail("expected 3 dimensions for argument 'self', got %s", lt_text(self));
  int64_t shape[5] = {self->shape[0], self->shape[1]}, numel, all, kernel;
  if (!check_lists(c, 1, 5) || !check_image(c, 2, c->arg[1].ints, &kernel, &all)) return false;
  for (int d = 0; d < n; d++) shape[2 + d] = c->arg[1].ints[d];
  if (self->shape[1] % kernel != 0 || self->shape[2] != all)
    return lt_fail("expected {N, C * %lld, %lld} for argument 'self', got %s", (long long)kernel,
                   (long long)all, lt_text(self));
  shape[1] /= kernel;
  if (!lt_shape_numel(NULL, n + 2, shape, &numel)) return false;
  lt_spec(c, 0, self->dtype, n + 2, shape);
  return true;
}

/* Checks mode, scale and size of a resampling of `in` elements to `out`. */
static bool check_resample(const lt_Call *c, int64_t in, int64_t out) {
  double scale = c->arg[5].f;
  int64_t mode = c->arg[3].i;
  if (mode < 0 || mode >= 2 * LT_RESAMPLE_BFLOAT16 ||
      mode % LT_RESAMPLE_FIXED > LT_RESAMPLE_CUBIC_SMOOTH)
    return lt_fail("expected a number from 0 to 2 for argument 'mode', got %lld", (long long)mode);
  if (out > 0 && in < 1) return lt_fail("cannot interpolate between 0 elements");
  /* coordinates, multiples of 1 / scale, are near the elements */
  if (scale != 0 && !(scale > 0 && scale < 1e30 && (double)out / scale <= 1.01 * (double)in + 1))
    return lt_fail("cannot interpolate %lld elements to %lld by the factor %s", (long long)in,
                   (long long)out, lt_number_text(scale));
  return true;
}

/* _resample (self, dim, size, mode, align_corners, scale) and _resample_backward */
static bool infer_resample(lt_Call *c, bool backward) {
  const lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  int64_t shape[LT_MAX_DIMS], numel;
  if (dim < 0 || !lt_check_ndim(c, 0, 1, LT_MAX_DIMS) || !lt_check_count(c, 2)) return false;
  int64_t own = self->shape[dim], other = c->arg[2].i;
  if (!check_resample(c, backward ? other : own, backward ? own : other)) return false;
  if (c->arg[3].i % LT_RESAMPLE_FIXED > LT_RESAMPLE_EXACT && !lt_check_float(c, 0)) return false;
  memcpy(shape, self->shape, sizeof shape);
  shape[dim] = other;
  if (!lt_shape_numel(NULL, self->ndim, shape, &numel)) return false;
  lt_spec(c, 0, self->dtype, self->ndim, shape);
  return true;
}
bool lt_infer_resample(lt_Call *c) { return infer_resample(c, false); }
bool lt_infer_resample_backward(lt_Call *c) { return infer_resample(c, true); }

/* _pad (self, before, output_size, mode) */
bool lt_infer_pad(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t shape[LT_MAX_DIMS], numel, mode = c->arg[3].i;
  if (!check_lists(c, 1, 2)) return false;
  if (mode < LT_PAD_REFLECT || mode > LT_PAD_CIRCULAR)
    return lt_fail("expected a mode, got %lld", (long long)mode);
  memcpy(shape, self->shape, sizeof shape);
  for (int k = 0, n = c->arg[1].count; k < n; k++) {
    int64_t *size = &shape[self->ndim - n + k], before = c->arg[1].ints[k], out = c->arg[2].ints[k];
    int64_t most = mode == LT_PAD_REFLECT    ? *size - 1
                   : mode == LT_PAD_CIRCULAR ? *size
                                             : INT64_MAX / 4;
    int64_t least = mode == LT_PAD_CIRCULAR ? 0 : -INT64_MAX / 4;
    if (*size < 1 || *size > INT64_MAX / 4 || out < 0 || out > INT64_MAX / 4 || before < least ||
        before > most || out - before - *size < least || out - before - *size > most)
      return lt_fail("cannot pad %lld elements to %lld with %lld before them", (long long)*size,
                     (long long)out, (long long)before);
    *size = out;
  }
  if (!lt_shape_numel(NULL, self->ndim, shape, &numel)) return false;
  lt_spec(c, 0, self->dtype, self->ndim, shape);
  return true;
}

/* Checks a mode, argument i of c, of n dims. */
static bool check_grid_mode(const lt_Call *c, int i, int n) {
  int64_t mode = c->arg[i].i;
  if (mode < LT_GRID_LINEAR || mode > LT_GRID_CUBIC)
    return lt_fail("expected a number from 0 to 2 for argument 'mode', got %lld", (long long)mode);
  return mode != LT_GRID_CUBIC || n == 2 ||
         lt_fail("cannot interpolate by cubics in %d dimensions", n);
}

/* _grid_sample (self, grid, mode, padding, align_corners) */
bool lt_infer_grid_sample(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *grid = lt_in(c, 1);
  int64_t shape[LT_MAX_DIMS] = {0}, numel;
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 4, 5)) return false;
  int n = self->ndim - 2;
  if (grid->ndim != n + 2 || grid->shape[0] != self->shape[0] || grid->shape[n + 1] != n ||
      grid->dtype != self->dtype)
    return lt_fail("expected %d coordinates at each place, of dtype \"%s\", for argument 'grid', "
                   "got %s",
                   n, lt_dtype_name(self->dtype), lt_text(grid));
  if (!check_grid_mode(c, 2, n)) return false;
  if (c->arg[3].i < LT_GRID_ZEROS || c->arg[3].i > LT_GRID_REFLECTION)
    return lt_fail("expected a number from 0 to 2 for argument 'padding', got %lld",
                   (long long)c->arg[3].i);
  shape[0] = self->shape[0];
  shape[1] = self->shape[1];
  for (int d = 0; d < n; d++) {
    shape[2 + d] = grid->shape[1 + d];
    if (self->shape[2 + d] < 1) return lt_fail("cannot interpolate between 0 elements");
  }
  if (!lt_shape_numel(NULL, n + 2, shape, &numel)) return false;
  lt_spec(c, 0, self->dtype, n + 2, shape);
  return true;
}

/* Checks the gradient, argument 0, of values at the places of a grid, argument `at`, in n dims, and
 * the padding, argument `padding`. */
static bool check_grid_gradient(const lt_Call *c, int at, int n, int padding) {
  const lt_Tensor *grad = lt_in(c, 0), *grid = lt_in(c, at);
  int64_t shape[LT_MAX_DIMS] = {0};
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, n + 2, n + 2)) return false;
  shape[0] = grad->shape[0];
  memcpy(shape + 1, grad->shape + 2, (size_t)n * sizeof *shape);
  shape[n + 1] = n;
  if (!lt_check_shape(c, at, n + 2, shape)) return false;
  if (grid->dtype != grad->dtype)
    return lt_fail("expected dtype \"%s\" for argument 'grid', got \"%s\"",
                   lt_dtype_name(grad->dtype), lt_dtype_name(grid->dtype));
  return (c->arg[padding].i >= LT_GRID_ZEROS && c->arg[padding].i <= LT_GRID_REFLECTION) ||
         lt_fail("expected a number from 0 to 2 for argument 'padding', got %lld",
                 (long long)c->arg[padding].i);
}
/* Checks the sizes of n dims of an image: its elements are numbered in 32 bits. */
static bool check_grid_image(int n, const int64_t *sizes) {
  int64_t numel;
  for (int d = 0; d < n; d++)
    if (sizes[d] < 1)
      return lt_fail("cannot interpolate between %lld elements", (long long)sizes[d]);
  if (!lt_shape_numel(NULL, n, sizes, &numel)) return false;
  return numel < LT_GRID_ELEMENTS || lt_fail("expected images of less than %d elements, got %lld",
                                             LT_GRID_ELEMENTS, (long long)numel);
}
/* _grid_sample_backward (grad, grid, input_size, mode, padding, align_corners) */
bool lt_infer_grid_sample_backward(lt_Call *c) {
  int n = c->arg[2].count;
  int64_t shape[LT_MAX_DIMS] = {0}, numel;
  if (n != 2 && n != 3)
    return lt_fail("expected 2 or 3 sizes for argument 'input_size', got %d", n);
  if (!check_grid_gradient(c, 1, n, 4) || !check_grid_image(n, c->arg[2].ints)) return false;
  if (!check_grid_mode(c, 3, n)) return false;
  memcpy(shape, lt_in(c, 0)->shape, 2 * sizeof *shape);
  memcpy(shape + 2, c->arg[2].ints, (size_t)n * sizeof *shape);
  if (!lt_shape_numel(NULL, n + 2, shape, &numel)) return false;
  lt_spec(c, 0, lt_in(c, 0)->dtype, n + 2, shape);
  return true;
}
/* _grid_sample_grid_backward (grad, input, grid, mode, padding, align_corners) */
bool lt_infer_grid_sample_grid_backward(lt_Call *c) {
  const lt_Tensor *grad = lt_in(c, 0), *input = lt_in(c, 1);
  if (!lt_check_ndim(c, 1, 4, 5)) return false;
  int n = input->ndim - 2;
  if (!check_grid_gradient(c, 2, n, 4) || !check_grid_image(n, input->shape + 2)) return false;
  if (!check_grid_mode(c, 3, n)) return false;
  if (input->dtype != grad->dtype || input->shape[0] != grad->shape[0] ||
      input->shape[1] != grad->shape[1])
    return lt_fail("expected the images and channels of 'grad', %s, for argument 'input', got %s",
                   lt_text(grad), lt_text(input));
  lt_spec_like(c, 0, lt_in(c, 2));
  return true;
}

/* ---- the arguments of bodies ----------------------------------------------------------------- */

/* Copies a list of 1 to 3 numbers to the end of to[3], after `otherwise`. NULL: all are that. */
static void put(int64_t *to, const lt_Arg *list, int64_t otherwise) {
  int n = list ? list->count : 0;
  for (int d = 0; d < 3; d++) to[d] = d < 3 - n ? otherwise : list->ints[d - (3 - n)];
}
/* Copies the last n sizes of t. */
static void put_sizes(int64_t *to, const lt_Tensor *t, int n) {
  lt_Arg sizes = {.count = n, {.ints = t->shape + t->ndim - n}};
  put(to, &sizes, 1);
}
/* Fills in windows of `inside` to `outside`; the lists kernel_size, stride, padding begin at
 * argument `first`. Returns the number of elements of a window. */
static int64_t fill(const lt_Call *c, int first, const lt_Tensor *inside, const lt_Tensor *outside,
                    lt_Windows *p) {
  int n = c->arg[first].count;
  *p = (lt_Windows){.divisor = 0};
  put_sizes(p->in, inside, n);
  put_sizes(p->out, outside, n);
  put(p->window, &c->arg[first], 1);
  put(p->stride, &c->arg[first + 1], 1);
  put(p->padding, &c->arg[first + 2], 0);
  put(p->dilation, NULL, 1);
  int64_t work = 1;
  for (int d = 0; d < 3; d++) {
    int64_t size = p->window[d] > 0 ? p->window[d] : p->in[d] / (p->out[d] > 0 ? p->out[d] : 1) + 1;
    work *= size < p->in[d] ? size : p->in[d] > 0 ? p->in[d] : 1;
  }
  return work;
}

int64_t lt_each__max_pool(const lt_Call *c, lt_Windows *p) {
  int64_t work = fill(c, 2, lt_in(c, 0), c->out[0], p);
  put(p->dilation, &c->arg[5], 1);
  return work;
}
int64_t lt_each__max_values(const lt_Call *c, lt_Windows *p) { return lt_each__max_pool(c, p); }
int64_t lt_each__max_pool_backward(const lt_Call *c, lt_Windows *p) {
  int64_t work = fill(c, 3, c->out[0], lt_in(c, 0), p);
  put(p->dilation, &c->arg[6], 1);
  return work;
}
int64_t lt_each__avg_pool(const lt_Call *c, lt_Windows *p) {
  int64_t work = fill(c, 2, lt_in(c, 0), c->out[0], p);
  p->count_padding = c->arg[5].b;
  p->divisor = c->arg[6].i;
  return work;
}
int64_t lt_each__avg_pool_backward(const lt_Call *c, lt_Windows *p) {
  int64_t work = fill(c, 2, c->out[0], lt_in(c, 0), p);
  p->count_padding = c->arg[5].b;
  p->divisor = c->arg[6].i;
  return work;
}

/* Fills in the windows of unfold and fold of an image; the lists kernel_size, dilation, padding,
 * stride begin at argument `first`. */
static void fill_image(const lt_Call *c, int first, const lt_Tensor *image, lt_Windows *p) {
  const lt_Arg *a = c->arg + first;
  int n = a->count;
  *p = (lt_Windows){.divisor = 0};
  put_sizes(p->in, image, n);
  put(p->window, &a[0], 1);
  put(p->dilation, &a[1], 1);
  put(p->padding, &a[2], 0);
  put(p->stride, &a[3], 1);
  for (int d = 0; d < 3; d++)
    p->out[d] = windows_in(p->in[d], p->window[d], p->stride[d], p->padding[d], p->dilation[d]);
}
int64_t lt_each__im2col(const lt_Call *c, lt_Windows *p) {
  fill_image(c, 1, lt_in(c, 0), p);
  return 2;
}
int64_t lt_each__col2im(const lt_Call *c, lt_Windows *p) {
  fill_image(c, 2, c->out[0], p);
  return p->window[0] * p->window[1] * p->window[2];
}

/* Returns the power of two of which the weights are multiples: the largest for which PyTorch stores
 * all of them in 16 bits. */
static float fixed_unit(lt_Resample *p) {
  double most = 0;
  p->fixed = 1 << 30; /* for the sums of weights with the same place */
  for (int64_t o = 0; o < p->out; o++) {
    int64_t first = resample_first_double(p, o), count = resample_count_double(p, o, first);
    double total = resample_total_double(p, o, first, count);
    for (int64_t k = 0; k < count; k++) {
      double weight = resample_factor_double(p, o, first, count, k, total);
      if (weight > most) most = weight;
    }
  }
  int bits = 0;
  while (bits < 22 && (int)(0.5 + most * (1 << (bits + 1))) < 1 << 15) bits++;
  return (float)(1 << bits);
}

/* Fills in a resampling of lines of `in` elements of t to lines of `out`. */
static int64_t fill_resample(const lt_Call *c, const lt_Tensor *t, int64_t in, int64_t out,
                             lt_Resample *p) {
  int dim = lt_dim(c->arg[1].i, t->ndim);
  double scale = c->arg[5].f;
  bool corners = c->arg[4].b;
  *p = (lt_Resample){.in = in,
                     .out = out,
                     .inner = 1,
                     .mode = (int32_t)c->arg[3].i % LT_RESAMPLE_FIXED,
                     .align_corners = corners};
  for (int d = dim + 1; d < t->ndim; d++) p->inner *= t->shape[d];
  /* in each type, the division that PyTorch computes in it */
  p->narrow = scale > 0 ? (float)(1 / scale) : (float)in / (float)(out > 0 ? out : 1);
  p->scale = corners ? (out > 1 ? (float)(in - 1) / (float)(out - 1) : 0) : p->narrow;
  p->wide = corners     ? (out > 1 ? (double)(in - 1) / (double)(out - 1) : 0)
            : scale > 0 ? 1 / scale
                        : (double)in / (double)(out > 0 ? out : 1);
  if (c->arg[3].i & LT_RESAMPLE_FLOAT16) p->split = 8193;
  if (c->arg[3].i & LT_RESAMPLE_BFLOAT16) p->split = 65537;
  if (c->arg[3].i & LT_RESAMPLE_FIXED) p->fixed = fixed_unit(p);
  return 8;
}
int64_t lt_each__resample(const lt_Call *c, lt_Resample *p) {
  const lt_Tensor *self = lt_in(c, 0);
  return fill_resample(c, self, self->shape[lt_dim(c->arg[1].i, self->ndim)], c->arg[2].i, p);
}
int64_t lt_each__resample_backward(const lt_Call *c, lt_Resample *p) {
  const lt_Tensor *grad = lt_in(c, 0);
  return 4 * fill_resample(c, grad, c->arg[2].i, grad->shape[lt_dim(c->arg[1].i, grad->ndim)], p);
}

int64_t lt_each__pad(const lt_Call *c, lt_Pad *p) {
  int n = c->arg[1].count;
  *p = (lt_Pad){.mode = c->arg[3].i};
  put_sizes(p->in, lt_in(c, 0), n);
  put_sizes(p->out, c->out[0], n);
  put(p->before, &c->arg[1], 0);
  return 1;
}
int64_t lt_each__grid_sample(const lt_Call *c, lt_Grid *p) {
  int n = c->out[0]->ndim - 2;
  *p = (lt_Grid){.channels = c->out[0]->shape[1],
                 .points = 1,
                 .dims = n,
                 .mode = (int32_t)c->arg[2].i,
                 .padding = (int32_t)c->arg[3].i,
                 .align_corners = c->arg[4].b};
  put_sizes(p->in, lt_in(c, 0), n);
  for (int d = 0; d < n; d++) p->points *= c->out[0]->shape[2 + d];
  return p->mode == LT_GRID_NEAREST ? 4 : p->mode == LT_GRID_CUBIC ? 32 : 4 << n;
}
