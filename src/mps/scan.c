/* scan.c: cumsum, cumprod, cummax and cummin: divides lines into pieces and launches the kernels.
 * Floats are summed in a type with the range of double; integers wrap. */
#include "scan.h"
#include "mps.h"

#define TILE   (LT_MPS_SCAN_THREADS * LT_MPS_SCAN_EACH)
#define MANY   16384     /* the number of lines that keeps a device busy with a thread for each */
#define SHORT  64        /* elements of a line for one thread */
#define ENOUGH 1024      /* pieces that keep the largest devices busy */
#define GROUPS (1 << 22) /* the most threadgroups: they loop over the rest */

/* Sets pieces and size. */
static void plan(lt_MpsScan *s) {
  int64_t tiles = lt_mps_groups(s->n, TILE), pieces = s->lines < ENOUGH ? ENOUGH / s->lines : 1;
  if (tiles < 8) pieces = 1; /* otherwise two launches do not pay */
  if (pieces > LT_MPS_SCAN_THREADS) pieces = LT_MPS_SCAN_THREADS;
  if (pieces > tiles) pieces = tiles;
  s->size = lt_mps_groups(tiles, pieces) * TILE;
  s->pieces = lt_mps_groups(s->n, s->size);
}

static int64_t limited(int64_t groups) { return groups < GROUPS ? groups : GROUPS; }

/* Launches the kernels for a line's scan; `states` is scratch memory for the pieces. */
static bool launch(const lt_Call *c, lt_MpsLaunch *l, const lt_MpsScan *s, const char *name,
                   const void *states) {
  char kernel[40];
  bool columns = s->n <= SHORT || (s->lines >= MANY && s->inner > 1);
  snprintf(kernel, sizeof kernel, "%s_%s", columns ? "columns" : "lines", name);
  l->file = "scan";
  l->kernel = kernel;
  l->data[3] = states;
  l->count = 4;
  l->arguments = s;
  l->size = sizeof *s;
  l->threads[0] = LT_MPS_SCAN_THREADS;
  l->groups[0] =
      limited(columns ? lt_mps_groups(s->lines, LT_MPS_SCAN_THREADS) : s->lines * s->pieces);
  if (!columns && s->pieces > 1) {
    l->constants[3] = 1;
    if (!lt_mps_launch(c, l)) return false;
    l->constants[3] = 0;
  }
  return lt_mps_launch(c, l);
}

/* Scans a contiguous tensor along a dim. `other`: products or minima, not sums or maxima. */
static bool scan_along(lt_Call *c, lt_Tensor *x, int dim, bool other, const char *name) {
  lt_MpsScan s = {.lines = 1, .n = x->ndim ? x->shape[dim] : 1, .inner = 1};
  for (int d = dim + 1; d < x->ndim; d++) s.inner *= x->shape[d];
  s.lines = x->numel / s.n;
  plan(&s);
  lt_MpsLaunch l = {.constants = {(int32_t)x->dtype, (int32_t)c->out[0]->dtype, other},
                    .data = {lt_tensor_data(x), lt_tensor_data(c->out[0]),
                             c->nout > 1 ? lt_tensor_data(c->out[1]) : NULL}};
  lt_Tensor *states = NULL;
  if (s.pieces > 1) {
    int64_t size = s.lines * s.pieces * LT_MPS_SCAN_PARTIAL;
    if (!(states = lt_empty(LT_uint8, c->device, 1, &size))) return false;
  }
  bool ok = launch(c, &l, &s, name, states ? lt_tensor_data(states) : NULL);
  lt_release(states);
  return ok;
}

/* The input is cast to `dtype` before anything is combined. */
static bool scan(lt_Call *c, lt_Dtype dtype, bool other, const char *floats, const char *integers) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_mps_begin(c)) return false;
  if (c->out[0]->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, dtype);
  bool ok = x && scan_along(c, x, dim, other, lt_dtype_is_float(dtype) ? floats : integers);
  lt_release(x);
  return ok;
}

static bool sum_or_product(lt_Call *c, bool product) {
  lt_Dtype dtype = lt_given(c, 2) ? c->arg[2].dtype : lt_in(c, 0)->dtype;
  return scan(c, dtype, product, "floats", "integers");
}
static bool extremes(lt_Call *c, bool smallest) {
  return scan(c, lt_in(c, 0)->dtype, smallest, "float_extremes", "integer_extremes");
}

bool lt_mps_cumsum(lt_Call *c) { return sum_or_product(c, false); }
bool lt_mps_cumprod(lt_Call *c) { return sum_or_product(c, true); }
bool lt_mps_cummax(lt_Call *c) { return extremes(c, false); }
bool lt_mps_cummin(lt_Call *c) { return extremes(c, true); }
