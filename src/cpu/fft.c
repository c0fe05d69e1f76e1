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
  int team;      /* threads of a single line */
  atomic_bool failed;
} Transform;

/* Returns the number of threads that copy n complex numbers of one line. */
static int pairs_team(const Transform *t, int64_t n) {
  return lt_fft_is_parallel(t->plan) ? lt_team(n, n) : 1;
}

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

/* Prefetches n floats, which are not read or written in order. */
static inline void fetch(const float *x, int64_t n) {
  for (int64_t k = 0; k < n; k += 16) __builtin_prefetch(x + k, 0, 2);
}
static inline void fetch_for_write(const float *y, int64_t n) {
  for (int64_t k = 0; k < n; k += 16) __builtin_prefetch(y + k, 1, 2);
}

static void write_pairs(int team, int64_t n, const float *re, const float *im, float scale,
                        float *y) {
  LT_IN_TEAM(team, n,
             lt_fft_loops()->scatter_pairs_f32(re + first, im + first, scale, last - first, 1,
                                               y + 2 * first, 2, 2 * n));
}

/* Transforms lines first .. last - 1, each alone. */
static void run_single(Transform *t, int64_t first, int64_t last) {
  const lt_FftLoops *loops = lt_fft_loops();
  const float *w = lt_fft_line_factors(t->plan);
  int64_t n = t->halved ? t->of.n / 2 : t->of.n, in = t->of.kind == LT_FFT_R2C ? 1 : 2,
          out = t->of.kind == LT_FFT_C2R ? 1 : 2;
  float *block = lt_fft_memory(sizeof(float) * lt_fft_scratch(t->plan, 1)),
        scale = (float)t->of.scale;
  if (!block) atomic_store(&t->failed, true);
  for (int64_t i = first; block && i < last && !lt_stopped(); i++) {
    const float *x = (const float *)t->of.x + in * i * t->of.from_n;
    float *y = (float *)t->of.y + out * i * t->of.to_n;
    bool exchanged = t->of.kind == LT_FFT_C2R || (t->of.kind == LT_FFT_C2C && t->of.inverse);
    if (t->of.kind == LT_FFT_C2R)
      loops->line.tangle(n, x, w, block + n, block);
    else if (exchanged)
      loops->gather_pairs_f32(x, 2, 2 * n, n, 1, block + n, block);
    fetch_for_write(y, out * t->of.to_n);
    float *z = lt_fft_run_line(t->plan, t->team, exchanged ? NULL : x, block);
    if (i + 1 < last) fetch(x + in * t->of.from_n, in * t->of.from_n);
    float *re = exchanged ? z + n : z, *im = exchanged ? z : z + n;
    if (t->of.kind == LT_FFT_R2C)
      loops->line.untangle(n, re, im, w, scale, t->of.inverse, t->of.full, y);
    else
      write_pairs(t->team, n, re, im, scale, y);
  }
  free(block);
}

/* Runs t, of float or double, on all lines. Returns false with the error set. */
static bool run_lines(Transform *t) {
  int64_t inner = t->of.columns, outer = t->of.outer * t->of.rows, count = outer * inner;
  int team = lt_fft_is_parallel(t->plan) ? 1 : lt_team(8 * count * t->of.n, count);
  if (t->of.inner == 1 && lt_fft_has_line(t->plan)) {
    t->team = count == 1 ? lt_team(t->of.n / 2, 16) : 1;
    if (count == 1) team = 1;
    LT_IN_TEAM(team, count, run_single(t, first, last));
    return !atomic_load(&t->failed) || lt_fail_memory();
  }
  t->lanes = lt_fft_lanes(t->plan);
  while (team > 1 && t->lanes > 1 && t->lanes * team > count) t->lanes /= 2; /* work for all */
  int64_t per_outer = t->of.inner == 1 ? 0 : (inner + t->lanes - 1) / t->lanes;
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

/* Returns the transform of x to y along `dim`; n is its size. */
static lt_FftLines lines_along(lt_FftKind kind, const lt_Tensor *x, lt_Tensor *y, int dim,
                               int64_t n, bool inverse, double scale) {
  lt_Lines l = lt_lines(x->ndim, x->shape, dim);
  return (lt_FftLines){.kind = kind,
                       .wide = x->dtype == LT_float64 || x->dtype == LT_complex128,
                       .inverse = inverse,
                       .scale = scale,
                       .n = n,
                       .outer = l.outer,
                       .inner = l.inner,
                       .rows = 1,
                       .columns = l.inner,
                       .from_n = l.n,
                       .to_n = y->shape[dim],
                       .x = lt_tensor_data(x),
                       .y = lt_tensor_data(y)};
}

static bool run(const lt_FftLines *lines) {
  bool done = false;
  return lt_fftw_run(lines, &done) && (done || run_own(lines));
}

/* Transforms x to y along `dim`; n is the size of the transform. */
static bool transform(lt_FftKind kind, const lt_Tensor *x, lt_Tensor *y, int dim, int64_t n,
                      bool inverse, double scale) {
  if (y->numel == 0) return true;
  lt_FftLines lines = lines_along(kind, x, y, dim, n, inverse, scale);
  return run(&lines);
}

/* Completes rows first .. last - 1 of the transform of real numbers along the last dim and those of
 * `mask`: the values after n / 2 are the conjugates of those at the negative index. */
static void complete_rows(lt_Tensor *y, unsigned mask, int64_t first, int64_t last) {
  int ndim = y->ndim;
  int64_t n = y->shape[ndim - 1], results = n / 2 + 1;
  bool wide = y->dtype == LT_complex128;
  for (int64_t row = first; row < last; row++) {
    int64_t from = row, step = 1, rest = row;
    for (int d = ndim - 2; d >= 0; d--) {
      int64_t size = y->shape[d], i = rest % size;
      if (mask >> d & 1 && i > 0) from += (size - 2 * i) * step;
      step *= size;
      rest /= size;
    }
    if (wide) {
      double *data = lt_tensor_data(y);
      lt_fft_loops()->reverse_conjugates_f64(n - results, data + 2 * (from * n + 1),
                                             data + 2 * (row * n + results));
    } else {
      float *data = lt_tensor_data(y);
      lt_fft_loops()->reverse_conjugates_f32(n - results, data + 2 * (from * n + 1),
                                             data + 2 * (row * n + results));
    }
  }
}

/* Transforms real numbers x to all values y along the last dim and before along the other dims of
 * the call: the first half of the last dim is transformed, the others are their conjugates. */
static bool transform_real(const lt_Call *c, const lt_Tensor *x, lt_Tensor *y) {
  int dims = c->arg[1].count, along = x->ndim - 1;
  unsigned mask = 0;
  int64_t n = x->shape[along];
  lt_FftLines lines =
      lines_along(LT_FFT_R2C, x, y, along, n, c->arg[2].b, dims == 1 ? c->arg[3].f : 1);
  lines.full = dims == 1;
  bool ok = run(&lines);
  for (int k = dims - 2; ok && k >= 0; k--) {
    int dim = lt_dim(c->arg[1].ints[k], y->ndim);
    lines =
        lines_along(LT_FFT_C2C, y, y, dim, y->shape[dim], c->arg[2].b, k == 0 ? c->arg[3].f : 1);
    lines.rows = lines.inner / n;
    lines.columns = n / 2 + 1;
    mask |= 1u << dim;
    ok = run(&lines);
  }
  int64_t rows = y->numel / n;
  if (ok && dims > 1)
    LT_IN_TEAM(lt_team(y->numel, rows), rows, complete_rows(y, mask, first, last));
  return ok;
}

/* Transforms along one dim after the other, the last one first; all but the first in place. */
bool lt_cpu__fft_c2c(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dims = c->arg[1].count;
  bool real = dims > 0 && !lt_dtype_is_complex(self->dtype) && out->numel > 0 &&
              lt_dim(c->arg[1].ints[dims - 1], self->ndim) == self->ndim - 1;
  lt_Tensor *x = lt_as_contiguous(self, real ? self->dtype : out->dtype);
  if (!x) return false;
  if (real) {
    bool done = transform_real(c, x, out);
    lt_release(x);
    return done;
  }
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
