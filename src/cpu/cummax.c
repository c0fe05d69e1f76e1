/* cummax.c: running maxima and minima along a dimension, with the index of each. As in PyTorch, of
 * equal elements the last one counts, and NaN takes precedence over every number. */
#include "kernel_support.h"

#define WIDTH 64 /* columns processed together */
#define LINES 8  /* contiguous lines processed together, as each step of one waits for the last */

/* Defines the loops over a block of lines: line j begins at j * apart, its elements are `step`
 * apart. */
#define EXTREMES(NAME, T, REACHES, IS_NAN)                                                         \
  static inline __attribute__((always_inline)) void block_##NAME(                                  \
      const T *x, T *values, int64_t *indices, int64_t n, int64_t step, int64_t apart,             \
      int64_t width) {                                                                             \
    T best[WIDTH];                                                                                 \
    int64_t at[WIDTH];                                                                             \
    for (int64_t j = 0; j < width; j++) best[j] = x[j * apart], at[j] = LT_INDEX_BASE;             \
    for (int64_t i = 0; i < n && !lt_stopped_at(i); i++)                                           \
      for (int64_t j = 0; j < width; j++) {                                                        \
        int64_t k = i * step + j * apart;                                                          \
        T v = x[k];                                                                                \
        bool taken = v REACHES best[j] || IS_NAN(v);                                               \
        values[k] = best[j] = taken ? v : best[j];                                                 \
        indices[k] = at[j] = taken ? i + LT_INDEX_BASE : at[j];                                    \
      }                                                                                            \
  }                                                                                                \
  static void blocks_##NAME(const T *x, T *values, int64_t *indices, lt_Lines l, int64_t first,    \
                            int64_t last) {                                                        \
    int64_t blocks = (l.inner + WIDTH - 1) / WIDTH;                                                \
    for (int64_t t = first; t < last && !lt_stopped(); t++) {                                      \
      if (l.inner == 1) {                                                                          \
        int64_t line = t * LINES, at = line * l.n;                                                 \
        block_##NAME(x + at, values + at, indices + at, l.n, 1, l.n,                               \
                     l.outer - line < LINES ? l.outer - line : LINES);                             \
        continue;                                                                                  \
      }                                                                                            \
      int64_t j = t % blocks * WIDTH, at = t / blocks * l.n * l.inner + j;                         \
      block_##NAME(x + at, values + at, indices + at, l.n, l.inner, 1,                             \
                   l.inner - j < WIDTH ? l.inner - j : WIDTH);                                     \
    }                                                                                              \
  }                                                                                                \
  static void extremes_##NAME(const T *x, T *values, int64_t *indices, lt_Lines l) {               \
    int64_t count =                                                                                \
        l.inner == 1 ? (l.outer + LINES - 1) / LINES : l.outer * ((l.inner + WIDTH - 1) / WIDTH);  \
    LT_IN_TEAM(lt_team(l.outer *l.n *l.inner, count), count,                                       \
               blocks_##NAME(x, values, indices, l, first, last));                                 \
  }

#define DIFFERS(v) ((v) != (v))
#define NEVER(v)   false
EXTREMES(max_f32, float, >=, DIFFERS)
EXTREMES(max_f64, double, >=, DIFFERS)
EXTREMES(max_i64, int64_t, >=, NEVER)
EXTREMES(min_f32, float, <=, DIFFERS)
EXTREMES(min_f64, double, <=, DIFFERS)
EXTREMES(min_i64, int64_t, <=, NEVER)

/* Runs cummax or cummin; outputs are the values and the int64 indices. */
static bool cumulate(lt_Call *c, bool largest) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *y = x ? lt_output_open(out, work) : NULL;
  if (y) {
    lt_Lines l = lt_lines(out->ndim, out->shape, dim);
    const void *from = lt_tensor_data(x);
    void *to = lt_tensor_data(y);
    int64_t *indices = lt_tensor_data(c->out[1]);
    if (work == LT_float32)
      (largest ? extremes_max_f32 : extremes_min_f32)(from, to, indices, l);
    else if (work == LT_float64)
      (largest ? extremes_max_f64 : extremes_min_f64)(from, to, indices, l);
    else
      (largest ? extremes_max_i64 : extremes_min_i64)(from, to, indices, l);
  }
  lt_release(x);
  return lt_output_close(out, y);
}

bool lt_cpu_cummax(lt_Call *c) { return cumulate(c, true); }
bool lt_cpu_cummin(lt_Call *c) { return cumulate(c, false); }
