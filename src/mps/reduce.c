/* reduce.c: reductions: accel/reduce.c describes them, reduce.metal and reduce_line.metal run
 * them. */
#include "reduce.h"
#include "accel/reduce.h"
#include "mps.h"

#include <float.h>
#include <math.h>

#define GROUPS (1 << 23) /* the most threadgroups: they loop over the rest */

/* Returns the file and the name of the kernels, without "reduce_" or "pieces_". */
static const char *kernel_of(const lt_AccelReduce *r, const char **file) {
  *file = "reduce";
  if (r->reduction == LT_REDUCTION_POWERS) return "powers";
  const lt_Reduction *reduction = &lt_reductions[r->reduction];
  bool is_integer = r->work == LT_int64;
  switch (reduction->kind) {
  case LT_FORM_FOLD:
    return reduction->of_truth ? "truth" : is_integer ? "int64" : "float";
  case LT_FORM_FOLD_WIDE:
    return "wide";
  default:
    *file = "reduce_line";
    return reduction->kind == LT_FORM_BEST       ? is_integer ? "best_int64" : "best_float"
           : reduction->kind == LT_FORM_CENTERED ? "centered"
                                                 : "centered_wide";
  }
}

/* Returns the float that is nearest to `a` and neither infinite nor subnormal unless `a` is
 * infinite or 0: the order of a norm. */
static float float_of(double a) {
  double size = fabs(a);
  if (size == 0 || !(size < INFINITY)) return (float)a;
  return (float)copysign(fmin(fmax(size, FLT_MIN), FLT_MAX), a);
}

/* Converts the description to the kernels' arguments. */
static lt_MpsReduce arguments_of(const lt_AccelReduce *r) {
  lt_MpsReduce p = {.a = float_of(r->a),
                    .width = r->width,
                    .rows = r->rows,
                    .packs = r->packs,
                    .threads = r->threads,
                    .kept = {.ndim = r->kept_ndim},
                    .reduced = {.ndim = r->reduced_ndim},
                    .results = r->results,
                    .n = r->n,
                    .splits = r->splits,
                    .piece = r->piece};
  for (int d = 0; d < r->kept_ndim; d++) {
    p.kept.shape[d] = r->kept_shape[d];
    p.kept.strides[0][d] = r->kept_x[d];
    p.kept.strides[1][d] = r->kept_out[d];
  }
  for (int d = 0; d < r->reduced_ndim; d++) {
    p.reduced.shape[d] = r->reduced_shape[d];
    p.reduced.strides[0][d] = r->reduced_x[d];
  }
  p.kept.narrow = lt_mps_is_narrow(p.kept.ndim, p.kept.shape, 2, p.kept.strides);
  p.reduced.narrow = lt_mps_is_narrow(p.reduced.ndim, p.reduced.shape, 1, p.reduced.strides);
  p.blocks = lt_mps_groups(r->results, r->threads / r->width) * r->splits;
  return p;
}

/* Launches a reduction, and its second stage where results are divided into pieces. */
static bool launch(const lt_Call *c, const lt_AccelReduce *r) {
  const char *file, *name = kernel_of(r, &file);
  char kernel[40];
  lt_MpsReduce p = arguments_of(r);
  lt_MpsLaunch l = {.file = file,
                    .kernel = kernel,
                    .constants = {r->reduction, r->dtype, r->out ? r->out_dtype : -1},
                    .data = {r->x, r->out, r->at, r->scratch},
                    .count = 4,
                    .arguments = &p,
                    .size = sizeof p,
                    .groups = {p.blocks < GROUPS ? p.blocks : GROUPS},
                    .threads = {r->threads}};
  snprintf(kernel, sizeof kernel, "reduce_%s", name);
  if (!lt_mps_launch(c, &l) || r->splits == 1) return r->splits == 1;
  snprintf(kernel, sizeof kernel, "pieces_%s", name);
  l.groups[0] = r->results < GROUPS ? r->results : GROUPS;
  l.threads[0] = LT_REDUCE_LANES;
  return lt_mps_launch(c, &l);
}

bool lt_mps_reduce(lt_Call *c) { return lt_mps_begin(c) && lt_accel_reduce(c, launch); }
bool lt_mps__norm(lt_Call *c) { return lt_mps_begin(c) && lt_accel_norm(c, launch); }
