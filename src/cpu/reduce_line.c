/* reduce_line.c: reductions that are not folds: argmax and argmin, _max and _min, _var, logsumexp.
 *
 * Their elements are brought into one line: a contiguous tensor outer x n x inner of the working
 * dtype, n the reduced dims in the user's order. That is self as it is where the reduced dims are
 * neighbours; else a copy with them last.
 */
#include "structured.h"
#include "opids.h"
#include "rows.h"

#include <math.h>

#define WIDTH 128 /* columns that are worked on together */

/* self with the dims of mask as one line. One reference; NULL when memory runs out. */
static lt_Tensor *lined(lt_Tensor *self, unsigned mask, lt_Dtype work, lt_Lines *l) {
  int first = -1, last = -1;
  bool neighbours = true;
  for (int d = 0; d < self->ndim; d++) {
    if (!(mask >> d & 1) || self->shape[d] == 1) continue;
    for (int k = last + 1; first >= 0 && k < d; k++) neighbours &= self->shape[k] == 1;
    if (first < 0) first = d;
    last = d;
  }
  *l = (lt_Lines){1, 1, 1};
  if (first < 0) { /* nothing, or dims of size 1 */
    l->outer = self->numel;
    return lt_as_contiguous(self, work);
  }
  for (int d = first; d <= last; d++)
    if (mask >> d & 1) l->n *= self->shape[d];
  if (neighbours) {
    for (int d = 0; d < first; d++) l->outer *= self->shape[d];
    for (int d = last + 1; d < self->ndim; d++) l->inner *= self->shape[d];
    return lt_as_contiguous(self, work);
  }
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  int n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int d = 0; d < self->ndim; d++)
      if ((int)(mask >> d & 1) == pass) {
        if (pass == 0) l->outer *= self->shape[d];
        shape[n] = self->shape[d];
        strides[n++] = self->strides[d];
      }
  lt_Tensor *moved = lt_geometry(self, 0, n, shape, strides);
  lt_Tensor *dense = moved ? lt_as_contiguous(moved, work) : NULL;
  lt_release(moved);
  return dense;
}

static bool fill(lt_Tensor *out, double value) {
  return lt_loop_run(LT_OP_fill, out, lt_dtype_compute(out->dtype), 1, (lt_Arg[]){LT_ARG(out)},
                     lt_scalar_float(value), lt_scalar_int(0));
}

/* ---- the best and where it is: values and positions (from 1), either may be NULL ------------- */

#define BETTER(T, F, NAN_OF)                                                                       \
  /* Columns j .. j + width of one outer position. */                                              \
  static void best_columns_##F(const T *x, lt_Lines l, int64_t width, bool largest, T *value,      \
                               int64_t *at) {                                                      \
    for (int64_t j = 0; j < width; j++) {                                                          \
      value[j] = x[j];                                                                             \
      at[j] = 0;                                                                                   \
    }                                                                                              \
    for (int64_t i = 1; i < l.n; i++)                                                              \
      for (int64_t j = 0; j < width; j++) {                                                        \
        T v = x[i * l.inner + j];                                                                  \
        if (NAN_OF(value[j])) continue;                                                            \
        if ((largest ? v > value[j] : v < value[j]) || NAN_OF(v)) {                                \
          value[j] = v;                                                                            \
          at[j] = i;                                                                               \
        }                                                                                          \
      }                                                                                            \
  }                                                                                                \
  static void best_blocks_##F(const T *x, lt_Lines l, bool largest, T *values, int64_t *positions, \
                              int64_t first, int64_t last) {                                       \
    int64_t blocks = (l.inner + WIDTH - 1) / WIDTH;                                                \
    for (int64_t t = first; t < last && !lt_stopped(); t++) {                                      \
      int64_t i = t / blocks, j = t % blocks * WIDTH,                                              \
              width = l.inner - j < WIDTH ? l.inner - j : WIDTH;                                   \
      const T *from = x + i * l.n * l.inner + j;                                                   \
      T value[WIDTH];                                                                              \
      int64_t at[WIDTH];                                                                           \
      if (l.inner == 1)                                                                            \
        value[0] = best_row_##F(from, l.n, largest, &at[0]);                                       \
      else                                                                                         \
        best_columns_##F(from, l, width, largest, value, at);                                      \
      for (int64_t k = 0; k < width; k++) {                                                        \
        if (values) values[i * l.inner + j + k] = value[k];                                        \
        positions[i * l.inner + j + k] = at[k] + LT_INDEX_BASE;                                    \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void best_##F(const T *x, lt_Lines l, bool largest, T *values, int64_t *positions) {      \
    int64_t count = l.outer * ((l.inner + WIDTH - 1) / WIDTH);                                     \
    LT_IN_TEAM(lt_team(l.outer *l.n *l.inner, count), count,                                       \
               best_blocks_##F(x, l, largest, values, positions, first, last));                    \
  }

static float best_row_f32(const float *x, int64_t n, bool largest, int64_t *at) {
  return lt_rows()->best_f32(x, n, largest, at);
}
static double best_row_f64(const double *x, int64_t n, bool largest, int64_t *at) {
  return lt_rows()->best_f64(x, n, largest, at);
}
static int64_t best_row_i64(const int64_t *x, int64_t n, bool largest, int64_t *at) {
  int64_t best;
  lt_fold(largest ? LT_FOLD_MAX_I64 : LT_FOLD_MIN_I64)->row(x, n, &best);
  for (*at = 0; x[*at] != best;) ++*at;
  return best;
}

#define IS_NAN(v) ((v) != (v))
#define NEVER(v)  false
BETTER(float, f32, IS_NAN)
BETTER(double, f64, IS_NAN)
BETTER(int64_t, i64, NEVER)

/* values may be NULL. */
static bool best(lt_Tensor *self, unsigned mask, bool largest, lt_Tensor *values,
                 lt_Tensor *positions) {
  if (positions->numel == 0) return true;
  lt_Lines l;
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lined(self, mask, work, &l);
  lt_Tensor *v = x && values ? lt_output_open(values, work) : NULL;
  bool ok = x && (v || !values);
  if (ok) {
    const void *from = lt_tensor_data(x);
    void *to = v ? lt_tensor_data(v) : NULL;
    int64_t *at = lt_tensor_data(positions);
    if (work == LT_float32)
      best_f32(from, l, largest, to, at);
    else if (work == LT_float64)
      best_f64(from, l, largest, to, at);
    else
      best_i64(from, l, largest, to, at);
  }
  lt_release(x);
  if (values) ok = lt_output_close(values, v) && ok;
  return ok;
}

static bool best_position(lt_Call *c, bool largest) {
  lt_Tensor *self = lt_in(c, 0);
  unsigned mask = ~0u;
  if (lt_given(c, 1)) {
    int dim = lt_arg_dim(c, 1, self);
    if (dim < 0) return false;
    mask = 1u << dim;
  }
  return best(self, mask, largest, NULL, c->out[0]);
}

static bool best_pair(lt_Call *c, bool largest) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_arg_dim(c, 1, self);
  return dim >= 0 && best(self, 1u << dim, largest, c->out[0], c->out[1]);
}

bool lt_cpu_argmax(lt_Call *c) { return best_position(c, true); }
bool lt_cpu_argmin(lt_Call *c) { return best_position(c, false); }
bool lt_cpu__max(lt_Call *c) { return best_pair(c, true); }
bool lt_cpu__min(lt_Call *c) { return best_pair(c, false); }

/* ---- _var: mean and squared distances in float64 --------------------------------------------- */

/* In two passes over pieces that stay in cache; pieces are joined by Chan, Golub and LeVeque's
 * formula (1979). */

#define PIECE 16384

typedef struct Moments {
  double n, mean, squares;
} Moments;

static Moments join(Moments a, Moments b) {
  if (a.n == 0) return b;
  double n = a.n + b.n, d = b.mean - a.mean;
  return (Moments){n, a.mean + d * (b.n / n), a.squares + b.squares + d * d * (a.n * b.n / n)};
}

#define VAR(T, F)                                                                                  \
  static Moments row_moments_##F(const T *x, int64_t n) {                                          \
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, q0 = 0, q1 = 0, q2 = 0, q3 = 0;                         \
    int64_t i = 0;                                                                                 \
    for (; i + 4 <= n; i += 4) s0 += x[i], s1 += x[i + 1], s2 += x[i + 2], s3 += x[i + 3];         \
    for (; i < n; i++) s0 += x[i];                                                                 \
    double mean = ((s0 + s1) + (s2 + s3)) / (double)n;                                             \
    for (i = 0; i + 4 <= n; i += 4) {                                                              \
      double d0 = x[i] - mean, d1 = x[i + 1] - mean, d2 = x[i + 2] - mean, d3 = x[i + 3] - mean;   \
      q0 += d0 * d0, q1 += d1 * d1, q2 += d2 * d2, q3 += d3 * d3;                                  \
    }                                                                                              \
    for (; i < n; i++) q0 += (x[i] - mean) * (x[i] - mean);                                        \
    return (Moments){(double)n, mean, (q0 + q1) + (q2 + q3)};                                      \
  }                                                                                                \
  static void column_squares_##F(const T *x, lt_Lines l, int64_t width, double *squares) {         \
    double mean[WIDTH] = {0};                                                                      \
    for (int64_t i = 0; i < l.n; i++)                                                              \
      for (int64_t j = 0; j < width; j++) mean[j] += x[i * l.inner + j];                           \
    for (int64_t j = 0; j < width; j++) {                                                          \
      mean[j] /= (double)l.n;                                                                      \
      squares[j] = 0;                                                                              \
    }                                                                                              \
    for (int64_t i = 0; i < l.n; i++)                                                              \
      for (int64_t j = 0; j < width; j++) {                                                        \
        double d = x[i * l.inner + j] - mean[j];                                                   \
        squares[j] += d * d;                                                                       \
      }                                                                                            \
  }                                                                                                \
  static void var_columns_##F(const T *x, lt_Lines l, double divisor, T *out, int64_t first,       \
                              int64_t last) {                                                      \
    int64_t blocks = (l.inner + WIDTH - 1) / WIDTH;                                                \
    for (int64_t t = first; t < last && !lt_stopped(); t++) {                                      \
      int64_t i = t / blocks, j = t % blocks * WIDTH,                                              \
              width = l.inner - j < WIDTH ? l.inner - j : WIDTH;                                   \
      double squares[WIDTH];                                                                       \
      column_squares_##F(x + i * l.n * l.inner + j, l, width, squares);                            \
      for (int64_t k = 0; k < width; k++) out[i * l.inner + j + k] = (T)(squares[k] / divisor);    \
    }                                                                                              \
  }                                                                                                \
  static void var_pieces_##F(const T *x, int64_t n, int64_t pieces, Moments *part, int64_t first,  \
                             int64_t last) {                                                       \
    for (int64_t t = first; t < last; t++) {                                                       \
      int64_t at = t % pieces * PIECE, size = n - at < PIECE ? n - at : PIECE;                     \
      part[t] =                                                                                    \
          lt_stopped() ? (Moments){0, 0, 0} : row_moments_##F(x + t / pieces * n + at, size);      \
    }                                                                                              \
  }                                                                                                \
  static bool var_##F(const T *x, lt_Lines l, double divisor, T *out) {                            \
    if (l.inner > 1) {                                                                             \
      int64_t count = l.outer * ((l.inner + WIDTH - 1) / WIDTH);                                   \
      LT_IN_TEAM(lt_team(l.outer *l.n *l.inner, count), count,                                     \
                 var_columns_##F(x, l, divisor, out, first, last));                                \
      return true;                                                                                 \
    }                                                                                              \
    int64_t pieces = (l.n + PIECE - 1) / PIECE;                                                    \
    Moments *part = malloc((size_t)(l.outer * pieces) * sizeof *part);                             \
    if (!part) return lt_fail_memory();                                                            \
    LT_IN_TEAM(lt_team(l.outer *l.n, l.outer *pieces), l.outer *pieces,                            \
               var_pieces_##F(x, l.n, pieces, part, first, last));                                 \
    for (int64_t i = 0; i < l.outer; i++) {                                                        \
      Moments m = part[i * pieces];                                                                \
      for (int64_t p = 1; p < pieces; p++) m = join(m, part[i * pieces + p]);                      \
      out[i] = (T)(m.squares / divisor);                                                           \
    }                                                                                              \
    free(part);                                                                                    \
    return true;                                                                                   \
  }

VAR(float, f32)
VAR(double, f64)

bool lt_cpu__var(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  unsigned mask;
  if (!lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  if (self->numel == 0) return fill(out, NAN);
  lt_Lines l;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *x = lined(self, mask, work, &l), *y = x ? lt_output_open(out, work) : NULL;
  bool ok = y != NULL;
  if (ok) {
    double divisor = fmax(0, (double)l.n - c->arg[3].f);
    ok = work == LT_float64 ? var_f64(lt_tensor_data(x), l, divisor, lt_tensor_data(y))
                            : var_f32(lt_tensor_data(x), l, divisor, lt_tensor_data(y));
  }
  lt_release(x);
  return lt_output_close(out, y) && ok;
}

/* ---- logsumexp ------------------------------------------------------------------------------- */

static void logsumexp_rows(bool wide, const void *from, int64_t n, void *to, int64_t first,
                           int64_t last) {
  const lt_RowKernels *rows = lt_rows();
  for (int64_t i = first; i < last && !lt_stopped(); i++)
    if (wide)
      ((double *)to)[i] = rows->logsumexp_f64((const double *)from + i * n, n);
    else
      ((float *)to)[i] = rows->logsumexp_f32((const float *)from + i * n, n);
}

bool lt_cpu_logsumexp(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  unsigned mask;
  if (!lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  if (self->numel == 0) return fill(out, -INFINITY);
  lt_Lines l;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *x = lined(self, mask, work, &l), *y = x ? lt_output_open(out, work) : NULL;
  if (y && l.inner > 1) { /* lines become rows */
    int64_t shape[3] = {l.outer, l.inner, l.n}, strides[3] = {l.n * l.inner, 1, l.inner};
    lt_Tensor *turned = lt_geometry(x, 0, 3, shape, strides);
    lt_release(x);
    x = turned ? lt_as_contiguous(turned, work) : NULL;
    lt_release(turned);
  }
  if (x && y) {
    int64_t count = l.outer * l.inner;
    const void *from = lt_tensor_data(x);
    void *to = lt_tensor_data(y);
    LT_IN_TEAM(lt_team(count * l.n, count), count,
               logsumexp_rows(work == LT_float64, from, l.n, to, first, last));
  }
  bool ok = x && y;
  lt_release(x);
  return lt_output_close(out, y) && ok;
}
