/* softmax.metal: the kernels of softmax. Rows and columns are loaded twice: once for the maximum
 * and the sum, which are updated together (Milakov and Gimelshein 2018), once for the results.
 *
 * A row with a NaN or +inf, or of nothing but -inf, becomes NaN, as on the CPU.
 */
#include "rows.metal.h"
#include "softmax.h"

#define X_DTYPE K0
#define G_DTYPE K1
#define Y_DTYPE K2
#define LOG     K3

/* ---- forward --------------------------------------------------------------------------------- */

/* The maximum so far, and the sum of e^(x - maximum). */
struct Partial {
  float largest, sum;
};

static inline float rescaled(float sum, float from, float to) {
  return from == to ? sum : sum * precise::exp(from - to);
}
/* Adds an element. -inf adds nothing, and is skipped, because -inf - -inf is NaN. */
static inline Partial with(Partial p, float x) {
  if (x == -INFINITY) return p;
  float top = Largest()(p.largest, x);
  p.sum = rescaled(p.sum, p.largest, top) + precise::exp(x - top);
  p.largest = top;
  return p;
}

/* Returns 1 / sum for softmax, log(sum) for log_softmax. */
static inline float scale_of(float sum) { return LOG != 0 ? precise::log(sum) : 1 / sum; }
static inline float result_of(float x, float largest, float scale) {
  return LOG != 0 ? (x - largest) - scale : precise::exp(x - largest) * scale;
}

kernel void softmax_rows(device const char *x [[buffer(0)]], device char *y [[buffer(1)]],
                         constant lt_MpsSoftmax &s [[buffer(2)]], LT_GRID) {
  threadgroup float scratch[LT_SIMD];
  const Place place = LT_PLACE;
  const Team team = LT_TEAM(index, scratch);
  for (int64_t first = first_row(place); first < s.outer; first += row_step(place)) {
    int64_t row = first + row_of_team(place), n = row < s.outer ? s.n : 0;
    Partial p = {-INFINITY, 0};
    for (int64_t i = team.member; i < n; i += TEAM)
      p = with(p, load_float(x, X_DTYPE, row * s.n + i));
    float top = team_all(p.largest, -INFINITY, Largest(), team);
    float scale = scale_of(team_all(rescaled(p.sum, p.largest, top), 0.0f, Sum(), team));
    for (int64_t i = team.member; i < n; i += TEAM) {
      float v = load_float(x, X_DTYPE, row * s.n + i);
      store_float(y, Y_DTYPE, row * s.n + i, result_of(v, top, scale));
    }
  }
}

/* ---- backward: dx = y (g - sum(g y)); of log_softmax: dx = g - e^y sum(g) -------------------- */

static inline float part_of(float g, float y) { return LOG != 0 ? g : g * y; }
static inline float gradient_of(float g, float y, float sum) {
  return LOG != 0 ? g - precise::exp(y) * sum : y * (g - sum);
}

kernel void softmax_backward_rows(device const char *y [[buffer(0)]],
                                  device const char *g [[buffer(1)]], device char *dx [[buffer(2)]],
                                  constant lt_MpsSoftmax &s [[buffer(3)]], LT_GRID) {
  threadgroup float scratch[LT_SIMD];
  const Place place = LT_PLACE;
  const Team team = LT_TEAM(index, scratch);
  for (int64_t first = first_row(place); first < s.outer; first += row_step(place)) {
    int64_t row = first + row_of_team(place), n = row < s.outer ? s.n : 0;
    float sum = 0;
    for (int64_t i = team.member; i < n; i += TEAM) {
      int64_t at = row * s.n + i;
      sum += part_of(load_float(g, G_DTYPE, at), load_float(y, X_DTYPE, at));
    }
    sum = team_all(sum, 0.0f, Sum(), team);
    for (int64_t i = team.member; i < n; i += TEAM) {
      int64_t at = row * s.n + i;
      float v = gradient_of(load_float(g, G_DTYPE, at), load_float(y, X_DTYPE, at), sum);
      store_float(dx, Y_DTYPE, at, v);
    }
  }
}

/* ---- along columns --------------------------------------------------------------------------- */

/* Reduces over the threads of a column, in order. `index` is the thread's number in the
 * threadgroup, and `scratch` has a float for each of them. */
template <typename Join>
static inline float column_all(float v, Join join, threadgroup float *scratch, uint index) {
  uint column = index % LT_COLUMNS;
  scratch[index] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  v = scratch[column];
  for (uint i = 1; i < LT_COLUMN_THREADS; i++) v = join(v, scratch[i * LT_COLUMNS + column]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return v;
}

/* The elements of a column that are a thread's: begin, begin + LT_COLUMN_THREADS, ... below n; the
 * first element of the column is at `first`. Threads without a column have n = 0. */
struct Column {
  int64_t first, begin, n;
};
/* Returns the column of block `block`: LT_COLUMNS neighbouring columns of one outer index. */
static inline Column column_of(constant lt_MpsSoftmax &s, int64_t block, uint index) {
  int64_t j, outer = divide(block, (s.inner - 1) / LT_COLUMNS + 1, &j);
  j = j * LT_COLUMNS + index % LT_COLUMNS;
  Column c = {outer * s.n * s.inner + j, index / LT_COLUMNS, j < s.inner ? s.n : 0};
  return c;
}
static inline int64_t column_blocks(constant lt_MpsSoftmax &s) {
  return s.outer * ((s.inner - 1) / LT_COLUMNS + 1);
}

kernel void softmax_columns(device const char *x [[buffer(0)]], device char *y [[buffer(1)]],
                            constant lt_MpsSoftmax &s [[buffer(2)]], LT_GRID) {
  threadgroup float scratch[LT_LOOP_THREADS];
  for (int64_t block = group.x; block < column_blocks(s); block += groups.x) {
    const Column c = column_of(s, block, index);
    Partial p = {-INFINITY, 0};
    for (int64_t i = c.begin; i < c.n; i += LT_COLUMN_THREADS)
      p = with(p, load_float(x, X_DTYPE, c.first + i * s.inner));
    float top = column_all(p.largest, Largest(), scratch, index);
    float scale = scale_of(column_all(rescaled(p.sum, p.largest, top), Sum(), scratch, index));
    for (int64_t i = c.begin; i < c.n; i += LT_COLUMN_THREADS) {
      int64_t at = c.first + i * s.inner;
      store_float(y, Y_DTYPE, at, result_of(load_float(x, X_DTYPE, at), top, scale));
    }
  }
}

kernel void softmax_backward_columns(device const char *y [[buffer(0)]],
                                     device const char *g [[buffer(1)]],
                                     device char *dx [[buffer(2)]],
                                     constant lt_MpsSoftmax &s [[buffer(3)]], LT_GRID) {
  threadgroup float scratch[LT_LOOP_THREADS];
  for (int64_t block = group.x; block < column_blocks(s); block += groups.x) {
    const Column c = column_of(s, block, index);
    float sum = 0;
    for (int64_t i = c.begin; i < c.n; i += LT_COLUMN_THREADS) {
      int64_t at = c.first + i * s.inner;
      sum += part_of(load_float(g, G_DTYPE, at), load_float(y, X_DTYPE, at));
    }
    sum = column_all(sum, Sum(), scratch, index);
    for (int64_t i = c.begin; i < c.n; i += LT_COLUMN_THREADS) {
      int64_t at = c.first + i * s.inner;
      float v = gradient_of(load_float(g, G_DTYPE, at), load_float(y, X_DTYPE, at), sum);
      store_float(dx, Y_DTYPE, at, v);
    }
  }
}
