/* infer_create.c: tensors created from numbers, and tensors filled with random numbers.
 *
 * Where arguments may be given in several forms (random_(n) means 1..n, arange in an integer dtype
 * truncates its ends), they are converted to one form here, so that the kernels of all devices read
 * the same arguments. */
#include "infer.h"
#include "triangle_indices.h"

#include <float.h>
#include <math.h>

/* ---- arange ---------------------------------------------------------------------------------- */

/* Checks that start, stop and step are finite. */
static bool arange_numbers_are_finite(const lt_Call *c) {
  for (int i = 0; i < 3; i++) {
    lt_Scalar s = c->arg[i].scalar;
    if (s.kind == LT_FLOATING && !isfinite(s.f))
      return lt_fail("expected finite numbers, got %s", lt_number_text(s.f));
  }
  return true;
}

/* Returns the number of integers from start to stop by step; -1 when it exceeds int64. */
static int64_t whole_steps(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? stop < start : stop > start) return 0;
  uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
  uint64_t stride = step > 0 ? (uint64_t)step : 0u - (uint64_t)step;
  uint64_t steps = span / stride;
  return steps >= (uint64_t)INT64_MAX ? -1 : (int64_t)steps + 1;
}

/* Does the same for floats. A stop that rounding moved past the last step is included: start, stop
 * and step may each be off by half a unit in the last place, and the error of step is multiplied by
 * the number of steps. Twice that is allowed, but at most 1 % of a step. */
static int64_t float_steps(double start, double stop, double step) {
  double steps = stop / step - start / step;
  double slack =
      fmin(0.01, DBL_EPSILON * (fabs(start / step) + fabs(stop / step) + 2 * fabs(steps)));
  double count = floor(steps + slack) + 1;
  if (count < 1) return 0;
  return count < 9.2e18 ? (int64_t)count : -1;
}

/* Checks that the first and the last number fit the integer dtype. */
static bool arange_fits(const lt_Call *c, lt_Dtype dtype, int64_t count) {
  int64_t low, high, start = c->arg[0].scalar.i;
  lt_dtype_range(dtype, &low, &high);
  if (count == 0) return true;
  /* start and last may be further apart than int64 reaches: this wraps around and back */
  int64_t last = (int64_t)((uint64_t)start + (uint64_t)(count - 1) * (uint64_t)c->arg[2].scalar.i);
  int64_t worst = start < low || start > high ? start : last;
  if (worst >= low && worst <= high) return true;
  return lt_fail("cannot store %lld in \"%s\": it holds %lld to %lld", (long long)worst,
                 lt_dtype_name(dtype), (long long)low, (long long)high);
}

/* _arange (start, stop, step, dtype?, ...) */
bool lt_infer_arange(lt_Call *c) {
  bool whole = true;
  for (int i = 0; i < 3; i++) whole = whole && c->arg[i].scalar.kind != LT_FLOATING;
  if (!arange_numbers_are_finite(c)) return false;
  lt_Dtype dtype = lt_dtype_or(c, 3, whole ? LT_int64 : lt_dtype_default());
  if (dtype == LT_bool)
    return lt_fail("expected a number dtype for argument 'dtype', got \"bool\"");
  if (!lt_dtype_is_float(dtype)) {
    for (int i = 0; i < 3; i++)
      c->arg[i].scalar = lt_scalar_int(lt_scalar_to_int(c->arg[i].scalar));
    whole = true;
  }
  lt_Scalar start = c->arg[0].scalar, stop = c->arg[1].scalar, step = c->arg[2].scalar;
  if (lt_scalar_to_double(step) == 0)
    return lt_fail("expected a nonzero number for argument 'step', got 0");
  int64_t count = whole ? whole_steps(start.i, stop.i, step.i)
                        : float_steps(lt_scalar_to_double(start), lt_scalar_to_double(stop),
                                      lt_scalar_to_double(step));
  if (count < 0)
    return lt_fail("cannot create a tensor from %s to %s by %s: it has too many elements",
                   lt_number_text(lt_scalar_to_double(start)),
                   lt_number_text(lt_scalar_to_double(stop)),
                   lt_number_text(lt_scalar_to_double(step)));
  if (!lt_dtype_is_float(dtype) && !arange_fits(c, dtype, count)) return false;
  lt_spec(c, 0, dtype, 1, &count);
  return true;
}

/* ---- the other factories --------------------------------------------------------------------- */

/* Checks that a number fits the dtype. NaN and infinities fit every float dtype. */
static bool end_fits(const lt_Call *c, int i, lt_Dtype dtype) {
  int64_t low, high;
  lt_Scalar s = c->arg[i].scalar;
  double v = lt_scalar_to_double(s);
  bool fits;
  if (lt_dtype_is_float(dtype)) {
    fits = !isfinite(v) || fabs(v) <= lt_dtype_largest(dtype);
  } else {
    lt_dtype_range(dtype, &low, &high);
    fits = s.kind == LT_FLOATING ? trunc(v) >= (double)low && trunc(v) <= (double)high
                                 : s.i >= low && s.i <= high;
  }
  return fits || lt_fail("expected a number that fits \"%s\" for argument '%s', got %s",
                         lt_dtype_name(dtype), lt_arg_name(c, i), lt_number_text(v));
}

/* _linspace (start, stop, steps, dtype?, ...) */
bool lt_infer_linspace(lt_Call *c) {
  lt_Dtype dtype = lt_dtype_or(c, 3, lt_dtype_default());
  if (dtype == LT_bool)
    return lt_fail("expected a number dtype for argument 'dtype', got \"bool\"");
  if (!lt_check_count(c, 2) || !end_fits(c, 0, dtype) || !end_fits(c, 1, dtype)) return false;
  for (int i = 0; i < 2 && !lt_dtype_is_float(dtype); i++)
    c->arg[i].scalar = lt_scalar_int(lt_scalar_to_int(c->arg[i].scalar));
  lt_spec(c, 0, dtype, 1, &c->arg[2].i);
  return true;
}

/* _eye (n, m?, dtype?, ...) */
bool lt_infer_eye(lt_Call *c) {
  if (!lt_check_count(c, 0) || (lt_given(c, 1) && !lt_check_count(c, 1))) return false;
  int64_t shape[2] = {c->arg[0].i, lt_given(c, 1) ? c->arg[1].i : c->arg[0].i}, numel;
  if (!lt_shape_numel(NULL, 2, shape, &numel)) return false;
  lt_spec(c, 0, lt_dtype_or(c, 2, lt_dtype_default()), 2, shape);
  return true;
}

static bool infer_triangle(lt_Call *c, bool upper) {
  if (!lt_check_count(c, 0) || !lt_check_count(c, 1)) return false;
  lt_Triangle t = {c->arg[0].i, c->arg[1].i, c->arg[2].i, upper};
  int64_t numel;
  if (!lt_shape_numel(NULL, 2, (int64_t[]){t.row, t.col}, &numel)) return false;
  if (t.offset < -t.row) t.offset = -t.row;
  if (t.offset > t.col) t.offset = t.col;
  c->arg[2].i = t.offset;
  lt_spec(c, 0, lt_dtype_or(c, 3, LT_int64), 2, (int64_t[]){2, lt_triangle_before(&t, t.row)});
  return true;
}

/* tril_indices, triu_indices (row, col, offset, dtype?, device?) */
bool lt_infer_tril_indices(lt_Call *c) { return infer_triangle(c, false); }
bool lt_infer_triu_indices(lt_Call *c) { return infer_triangle(c, true); }

/* empty (size, dtype?, ...) */
bool lt_infer_empty(lt_Call *c) {
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  if (!lt_check_sizes(&c->arg[0], &ndim, shape)) return false;
  lt_spec(c, 0, lt_dtype_or(c, 1, lt_dtype_default()), ndim, shape);
  return true;
}

/* randperm (n, generator?, dtype?, ...) */
bool lt_infer_randperm(lt_Call *c) {
  int64_t low, high, n = c->arg[0].i;
  lt_Dtype dtype = lt_dtype_or(c, 2, LT_int64);
  if (!lt_check_count(c, 0)) return false;
  if (dtype == LT_bool)
    return lt_fail("expected a number dtype for argument 'dtype', got \"bool\"");
  if (!lt_dtype_is_float(dtype)) {
    lt_dtype_range(dtype, &low, &high);
    if (n > high)
      return lt_fail("cannot store %lld in \"%s\": it holds %lld to %lld", (long long)n,
                     lt_dtype_name(dtype), (long long)low, (long long)high);
  }
  lt_spec(c, 0, dtype, 1, &n);
  return true;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* Checks the limits of uniform numbers: they are computed as from + u * (to - from) in self's
 * dtype, which must be able to represent all three. */
static bool uniform_fits(double from, double to, lt_Dtype d) {
  double largest = lt_dtype_largest(d);
  if (!(isfinite(from) && isfinite(to) && from <= to))
    return lt_fail("expected finite numbers from <= to, got from %s to %s", lt_number_text(from),
                   lt_number_text(to));
  if (fabs(from) <= largest && fabs(to) <= largest && to - from <= largest) return true;
  return lt_fail("expected from, to and to - from of at most %s (\"%s\"), got from %s to %s",
                 lt_number_text(largest), lt_dtype_name(d), lt_number_text(from),
                 lt_number_text(to));
}

/* uniform_ (self, from, to) */
bool lt_infer_uniform(lt_Call *c) {
  if (!lt_check_float(c, 0) || !uniform_fits(c->arg[1].f, c->arg[2].f, lt_in(c, 0)->dtype))
    return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* normal_ (self, mean, std) */
bool lt_infer_normal(lt_Call *c) {
  if (!lt_check_float(c, 0)) return false;
  if (!(c->arg[2].f >= 0))
    return lt_fail("expected a number of at least 0 for argument 'std', got %s",
                   lt_number_text(c->arg[2].f));
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* exponential_ (self, lambd) */
bool lt_infer_exponential(lt_Call *c) {
  if (!lt_check_float(c, 0)) return false;
  if (!(c->arg[1].f > 0))
    return lt_fail("expected a number greater than 0 for argument 'lambd', got %s",
                   lt_number_text(c->arg[1].f));
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* random_ (self, from?, to?): afterwards both limits are given, or none. */
bool lt_infer_fill_number(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (lt_given(c, 1) && !lt_given(c, 2)) {
    c->arg[2] = c->arg[1];
    c->arg[1] = LT_ARG(LT_INDEX_BASE);
  } else if (!lt_given(c, 1) && lt_given(c, 2)) {
    c->arg[1] = LT_ARG(LT_INDEX_BASE);
  }
  lt_spec_like(c, 0, self);
  if (!lt_given(c, 1)) return true;
  int64_t from = c->arg[1].i, to = c->arg[2].i, low, high;
  if (from > to)
    return lt_fail("expected from <= to, got from %lld to %lld", (long long)from, (long long)to);
  if (lt_dtype_is_float(self->dtype)) {
    double largest = lt_dtype_largest(self->dtype);
    return (fabs((double)from) <= largest && fabs((double)to) <= largest) ||
           lt_fail("expected from and to of at most %s (\"%s\"), got from %lld to %lld",
                   lt_number_text(largest), lt_dtype_name(self->dtype), (long long)from,
                   (long long)to);
  }
  lt_dtype_range(self->dtype, &low, &high);
  if (from >= low && to <= high) return true;
  return lt_fail("cannot store %lld in \"%s\": it holds %lld to %lld",
                 (long long)(from < low ? from : to), lt_dtype_name(self->dtype), (long long)low,
                 (long long)high);
}

/* bernoulli_ (self, p) */
bool lt_infer_bernoulli(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *p = lt_in(c, 1);
  if (p && !lt_check_float(c, 1)) return false;
  if (p && !lt_check_expands("p", p->ndim, p->shape, "self", self->ndim, self->shape)) return false;
  if (!p) {
    double chance = lt_scalar_to_double(c->arg[1].scalar);
    if (!(chance >= 0 && chance <= 1))
      return lt_fail("expected a probability from 0 to 1 for argument 'p', got %s",
                     lt_number_text(chance));
  }
  lt_spec_like(c, 0, self);
  return true;
}

/* _bernoulli_of (self) */
bool lt_infer_bernoulli_of(lt_Call *c) {
  if (!lt_check_float(c, 0)) return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* poisson (self) */
bool lt_infer_poisson(lt_Call *c) { return lt_infer_bernoulli_of(c); }

/* binomial (count, prob) */
bool lt_infer_binomial(lt_Call *c) {
  const lt_Tensor *count = lt_in(c, 0), *prob = lt_in(c, 1);
  if (!lt_check_float(c, 0) || !lt_check_float(c, 1) || !lt_check_same_dtype(c, 0, 1)) return false;
  int64_t shape[LT_MAX_DIMS];
  int ndim = count->ndim;
  memcpy(shape, count->shape, sizeof shape);
  if (!lt_shape_broadcast(&ndim, shape, prob->ndim, prob->shape))
    return lt_fail("cannot broadcast count %s and prob %s together", lt_text(count), lt_text(prob));
  lt_spec(c, 0, count->dtype, ndim, shape);
  return true;
}

/* multinomial (self, num_samples, replacement) */
bool lt_infer_multinomial(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t samples = c->arg[1].i;
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 1, 2)) return false;
  int64_t kinds = self->shape[self->ndim - 1];
  if (samples < 1)
    return lt_fail("expected an integer of at least 1 for argument 'num_samples', got %lld",
                   (long long)samples);
  if (kinds == 0) return lt_fail("cannot draw from an empty tensor: self is %s", lt_text(self));
  if (!c->arg[2].b && samples > kinds)
    return lt_fail("cannot draw %lld of %lld without replacement\nhint: replacement = true",
                   (long long)samples, (long long)kinds);
  int64_t shape[2] = {self->shape[0], samples};
  lt_spec(c, 0, LT_int64, self->ndim, self->ndim == 2 ? shape : shape + 1);
  return true;
}
