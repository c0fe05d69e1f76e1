/* fft.c: the kernels of Fourier transforms. Each transforms the lines along a dim of a contiguous
 * tensor, in blocks of several lines, which are distributed over threads. Real transforms of an
 * even size take one of half the size. */
#include "fft.h"
#include "fftw.h"
#include "kernel_support.h"

/* A transform by a plan. */
typedef struct Transform {
  lt_FftLines of;
  const lt_FftPlan *plan;
  bool halved;   /* a REAL plan: n is even */
  int64_t lanes; /* lines of a block */
  atomic_bool failed;
} Transform;

#define T float
#define F f32
#include "fft_lines.h"
#undef T
#undef F

#define T double
#define F f64
#include "fft_lines.h"
#undef T
#undef F

/* Runs t, of float or double, on all lines. Returns false with the error set. */
static bool run_lines(Transform *t) {
  int64_t count = t->of.outer * t->of.inner, inner = t->of.inner, outer = t->of.outer;
  int team = lt_fft_is_parallel(t->plan) ? 1 : lt_team(8 * count * t->of.n, count);
  t->lanes = lt_fft_lanes(t->plan);
  while (team > 1 && t->lanes > 1 && t->lanes * team > count) t->lanes /= 2; /* work for all */
  int64_t per_outer = inner == 1 ? 0 : (inner + t->lanes - 1) / t->lanes;
  int64_t blocks = per_outer ? outer * per_outer : (outer + t->lanes - 1) / t->lanes;
  if (team > blocks) team = (int)blocks;
  if (t->of.wide)
    LT_IN_TEAM(team, blocks, run_blocks_f64(t, per_outer, first, last));
  else
    LT_IN_TEAM(team, blocks, run_blocks_f32(t, per_outer, first, last));
  return !atomic_load(&t->failed) || lt_fail_memory();
}

/* Transforms lines by own code. */
static bool run_own(const lt_FftLines *lines) {
  bool halved = lines->kind != LT_FFT_C2C && lines->n % 2 == 0;
  lt_FftPlan *plan = lt_fft_plan(lines->n, lines->wide, halved);
  if (!plan) return false;
  Transform t = {.of = *lines, .plan = plan, .halved = halved};
  atomic_init(&t.failed, false);
  bool ok = run_lines(&t);
  lt_fft_release(plan);
  return ok;
}

/* Transforms x to y along `dim`; n is the size of the transform. */
static bool transform(lt_FftKind kind, const lt_Tensor *x, lt_Tensor *y, int dim, int64_t n,
                      bool inverse, double scale) {
  if (y->numel == 0) return true;
  lt_Lines l = lt_lines(x->ndim, x->shape, dim);
  lt_FftLines lines = {.kind = kind,
                       .wide = x->dtype == LT_float64 || x->dtype == LT_complex128,
                       .inverse = inverse,
                       .scale = scale,
                       .n = n,
                       .outer = l.outer,
                       .inner = l.inner,
                       .from_n = l.n,
                       .to_n = y->shape[dim],
                       .x = lt_tensor_data(x),
                       .y = lt_tensor_data(y)};
  bool done = false;
  return lt_fftw_run(&lines, &done) && (done || run_own(&lines));
}

/* Transforms along one dim after the other, the last one first; all but the first in place. */
bool lt_cpu__fft_c2c(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  lt_Tensor *x = lt_as_contiguous(self, self->dtype);
  if (!x) return false;
  int dims = c->arg[1].count;
  bool ok = dims > 0 || lt_copy_into(out, x, false);
  for (int k = dims - 1; ok && k >= 0 && out->numel > 0; k--) {
    int dim = lt_dim(c->arg[1].ints[k], out->ndim);
    ok = transform(LT_FFT_C2C, k == dims - 1 ? x : out, out, dim, out->shape[dim], c->arg[2].b,
                   k == 0 ? c->arg[3].f : 1);
  }
  lt_release(x);
  return ok;
}

bool lt_cpu__fft_r2c(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *x = lt_as_contiguous(self, self->dtype);
  if (!x) return false;
  int dim = lt_arg_dim(c, 1, self);
  bool ok = transform(LT_FFT_R2C, x, c->out[0], dim, self->shape[dim], false, c->arg[2].f);
  lt_release(x);
  return ok;
}

bool lt_cpu__fft_c2r(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *x = lt_as_contiguous(self, self->dtype);
  if (!x) return false;
  bool ok =
      transform(LT_FFT_C2R, x, c->out[0], lt_arg_dim(c, 1, self), c->arg[2].i, true, c->arg[3].f);
  lt_release(x);
  return ok;
}
