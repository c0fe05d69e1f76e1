/* planes.c: faster forms of the bodies of pools, unfold, fold, interpolation, padding and grid
 * sampling, for float and double (planes.h). Each function returns false, with nothing done, for a
 * call that the body must compute: of integers, of indices beyond 32 bits, or when memory is
 * out. */
#include "planes.h"
#include "each/run.h"
#include "kernel_support.h"

/* A call, for the functions of threads. */
typedef struct Work {
  const void *args, *in, *second, *third;
  void *out, *index;
  const lt_PoolTable *windows;
  const lt_ResampleTable *table;
  int64_t lines, together; /* of a resampling: threads share units of so many lines */
} Work;

static int64_t product(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* Calls range_f32 or range_f64 for 0..n, among threads. Returns false for other types. */
static bool share(const lt_EachRun *run, int64_t n, Work *work, lt_RangeFn f32, lt_RangeFn f64) {
  if (run->compute != LT_float32 && run->compute != LT_float64) return false;
  lt_share(run->n * run->cost, n, run->compute == LT_float32 ? f32 : f64, work);
  return true;
}

/* Defines range functions that call a loop of planes.h. */
#define RANGES(name, call_f32, call_f64)                                                           \
  static void name##_range_f32(void *context, int64_t from, int64_t to) {                          \
    const Work *w = context;                                                                       \
    lt_planes()->call_f32;                                                                         \
  }                                                                                                \
  static void name##_range_f64(void *context, int64_t from, int64_t to) {                          \
    const Work *w = context;                                                                       \
    lt_planes()->call_f64;                                                                         \
  }

/* ---- pools ----------------------------------------------------------------------------------- */

RANGES(max_pool, max_pool_f32(w->args, w->in, w->out, w->index, from, to),
       max_pool_f64(w->args, w->in, w->out, w->index, from, to))
RANGES(max_values, max_values_f32(w->args, w->in, w->out, from, to),
       max_values_f64(w->args, w->in, w->out, from, to))
RANGES(max_pool_backward, max_pool_backward_f32(w->args, w->in, w->second, w->out, from, to),
       max_pool_backward_f64(w->args, w->in, w->second, w->out, from, to))
RANGES(avg_pool, avg_pool_f32(w->args, w->windows, w->in, w->out, from, to),
       avg_pool_f64(w->args, w->windows, w->in, w->out, from, to))
RANGES(avg_pool_backward, avg_pool_backward_f32(w->args, w->windows, w->in, w->out, from, to),
       avg_pool_backward_f64(w->args, w->windows, w->in, w->out, from, to))

bool lt_cpu_each__max_pool(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__max_pool(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  if (product(p->in) >= INT32_MAX) return false;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0], .index = out[1]};
  return share(run, run->n / p->out[2], &w, max_pool_range_f32, max_pool_range_f64);
}

bool lt_cpu_each__max_values(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__max_values(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  if (p->window[2] == 0) return false;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0]};
  return share(run, run->n / p->out[2], &w, max_values_range_f32, max_values_range_f64);
}

bool lt_cpu_each__max_pool_backward(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__max_pool_backward(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  Work w = {.args = p,
            .in = lt_tensor_data(run->in[0]),
            .second = lt_tensor_data(run->in[1]),
            .out = out[0]};
  return share(run, run->n / product(p->in), &w, max_pool_backward_range_f32,
               max_pool_backward_range_f64);
}

/* Fills the spans of the windows in dim d. */
static void fill_spans(const lt_Windows *p, int d, lt_PoolSpan *spans) {
  for (int64_t o = 0; o < p->out[d]; o++) {
    int64_t first = lt_window_first(p, d, o), end = lt_window_end(p, d, o), size = p->in[d];
    int64_t low = first > 0 ? first : 0, high = end < size ? end : size;
    int64_t padded = end < size + p->padding[d] ? end : size + p->padding[d];
    spans[o] = (lt_PoolSpan){low, high, p->count_padding != 0 ? padded - first : high - low};
  }
}

/* Fills a table, and returns its memory (malloc'ed); NULL when memory is out. */
static void *fill_table(const lt_Windows *p, lt_PoolTable *t) {
  int64_t all = p->out[0] + p->out[1] + p->out[2];
  lt_PoolSpan *spans =
      malloc(sizeof *spans * (size_t)(all + 1) + sizeof(int32_t) * (size_t)p->out[2]);
  if (!spans) return NULL;
  lt_PoolSpan *end = spans;
  for (int d = 0; d < 3; d++) {
    fill_spans(p, d, end);
    t->dim[d] = end;
    end += p->out[d];
  }
  int32_t *columns = (void *)end;
  for (int64_t o = 0; o < p->out[2]; o++) columns[o] = (int32_t)t->dim[2][o].count;
  t->columns = columns;
  return spans;
}

/* Returns whether an average pool's positions and counts fit into 32 bits. */
static bool is_narrow(const lt_Windows *p) {
  return product(p->in) < INT32_MAX && product(p->window) < INT32_MAX;
}

bool lt_cpu_each__avg_pool(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__avg_pool(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  lt_PoolTable table;
  void *memory = is_narrow(p) ? fill_table(p, &table) : NULL;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0], .windows = &table};
  bool done = memory && share(run, run->n / p->out[2], &w, avg_pool_range_f32, avg_pool_range_f64);
  free(memory);
  return done;
}

bool lt_cpu_each__avg_pool_backward(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__avg_pool_backward(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  lt_PoolTable table;
  void *memory = is_narrow(p) ? fill_table(p, &table) : NULL;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0], .windows = &table};
  bool done = memory && share(run, run->n / product(p->in), &w, avg_pool_backward_range_f32,
                              avg_pool_backward_range_f64);
  free(memory);
  return done;
}

/* ---- unfold, fold ---------------------------------------------------------------------------- */

RANGES(im2col, im2col_f32(w->args, w->in, w->out, from, to),
       im2col_f64(w->args, w->in, w->out, from, to))
RANGES(col2im, col2im_f32(w->args, w->in, w->out, from, to),
       col2im_f64(w->args, w->in, w->out, from, to))

bool lt_cpu_each__im2col(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__im2col(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0]};
  return share(run, run->n / product(p->out), &w, im2col_range_f32, im2col_range_f64);
}

bool lt_cpu_each__col2im(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__col2im(const lt_EachRun *run, void *const *out) {
  const lt_Windows *p = (const void *)run->args.bytes;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0]};
  return share(run, run->n / product(p->in), &w, col2im_range_f32, col2im_range_f64);
}

/* ---- interpolation --------------------------------------------------------------------------- */

/* Returns the first line of a unit. */
static int64_t line(const Work *w, int64_t unit) {
  int64_t first = unit * w->together;
  return first < w->lines ? first : w->lines;
}

RANGES(resample, resample_f32(w->args, w->table, w->in, w->out, line(w, from), line(w, to)),
       resample_f64(w->args, w->table, w->in, w->out, line(w, from), line(w, to)))
RANGES(resample_backward,
       resample_backward_f32(w->args, w->table, w->in, w->out, line(w, from), line(w, to)),
       resample_backward_f64(w->args, w->table, w->in, w->out, line(w, from), line(w, to)))

/* The functions of weights, in float and in double, and fill_<T>, which fills a table. */
#define LT_EACH_OF_T    LT_EACH_FUNCTION
#define LT_EACH_CALL(f) LT_EACH_NAME(f)
#define FILL(T)                                                                                    \
  static int64_t LT_EACH_NAME(fill)(const lt_Resample *p, int64_t width, int64_t *count,           \
                                    int64_t *place, T *weight) {                                   \
    int64_t most = 0;                                                                              \
    for (int64_t o = 0; o < p->out; o++) {                                                         \
      int64_t first = LT_EACH_CALL(resample_first)(p, o),                                          \
              n = LT_EACH_CALL(resample_count)(p, o, first);                                       \
      if (n > most) most = n;                                                                      \
      if (!count) continue;                                                                        \
      T total = LT_EACH_CALL(resample_total)(p, o, first, n);                                      \
      count[o] = n;                                                                                \
      for (int64_t k = 0; k < n; k++) {                                                            \
        place[o * width + k] = LT_EACH_NAME(resample_place)(p, first, k);                          \
        weight[o * width + k] = LT_EACH_CALL(resample_factor)(p, o, first, n, k, total);           \
      }                                                                                            \
    }                                                                                              \
    return most;                                                                                   \
  }
#define T               float
#define LT_EACH_NAME(f) f##_float
#include "each/resample_weights.h"
FILL(float)
#undef T
#undef LT_EACH_NAME
#define T               double
#define LT_EACH_NAME(f) f##_double
#include "each/resample_weights.h"
FILL(double)
#undef T
#undef LT_EACH_NAME

/* Returns whether the table is that of lt_ResampleTable's `doubles`. */
static bool doubles(const lt_Resample *p, const lt_ResampleTable *t) {
  bool ok = t->width == 1 && p->out == 2 * p->in;
  for (int64_t o = 0; ok && o < p->out; o++) ok = t->count[o] == 1 && t->place[o] == o / 2;
  return ok;
}

/* Likewise, of its `doubles_pairs`, with weights of `size` bytes. */
static bool doubles_pairs(const lt_Resample *p, const lt_ResampleTable *t, size_t size) {
  const char *weight = t->weight;
  bool ok = t->width == 2 && p->in > 1 && p->out == 2 * p->in;
  for (int64_t o = 1; ok && o < p->out - 1; o++)
    ok = t->count[o] == 2 && t->place[2 * o] == (o - 1) / 2 && t->place[2 * o + 1] == (o + 1) / 2 &&
         memcmp(weight + (size_t)(2 * o) * size, weight + (o % 2 ? 2 : 4) * size, 2 * size) == 0;
  return ok;
}

/* Replaces n doubles by floats. */
static void to_floats(char *numbers, size_t n) {
  for (size_t k = 0; k < n; k++) {
    double wide;
    memcpy(&wide, numbers + k * sizeof wide, sizeof wide);
    float narrow = (float)wide;
    memcpy(numbers + k * sizeof narrow, &narrow, sizeof narrow);
  }
}

/* Runs a resampling, or its gradient, of `lines` lines. */
static bool resample(const lt_EachRun *run, void *to, int64_t lines, lt_RangeFn f32,
                     lt_RangeFn f64) {
  const lt_Resample *p = (const void *)run->args.bytes;
  bool narrow = run->compute == LT_float32;
  if (!narrow && run->compute != LT_float64) return false;
  int64_t width = p->mode <= LT_RESAMPLE_EXACT    ? 1
                  : p->mode == LT_RESAMPLE_LINEAR ? 2
                  : p->mode == LT_RESAMPLE_CUBIC  ? 4
                  : narrow                        ? fill_float(p, 0, NULL, NULL, NULL)
                                                  : fill_double(p, 0, NULL, NULL, NULL);
  size_t n = (size_t)(p->out * (width > 0 ? width : 1));
  int64_t *count = malloc(sizeof *count * (size_t)p->out), *place = malloc(sizeof *place * n);
  void *weight = malloc(sizeof(double) * n);
  bool ok = count && place && weight;
  if (ok && narrow && p->fixed == 0) fill_float(p, width, count, place, weight);
  if (ok && (!narrow || p->fixed != 0)) fill_double(p, width, count, place, weight);
  if (ok && narrow && p->fixed != 0) to_floats(weight, n);
  lt_ResampleTable table = {.width = width, .count = count, .place = place, .weight = weight};
  table.doubles = ok && doubles(p, &table);
  table.doubles_pairs = ok && doubles_pairs(p, &table, narrow ? sizeof(float) : sizeof(double));
  int64_t work = run->n * run->cost, units = lines / LT_RESAMPLE_LINES;
  bool many = p->inner == 1 && units > 0 && lt_team(work, units) == lt_team(work, lines);
  Work w = {.args = p,
            .in = lt_tensor_data(run->in[0]),
            .out = to,
            .table = &table,
            .lines = lines,
            .together = many ? LT_RESAMPLE_LINES : 1};
  ok = ok && share(run, (lines + w.together - 1) / w.together, &w, f32, f64);
  free(count);
  free(place);
  free(weight);
  return ok;
}

bool lt_cpu_each__resample(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__resample(const lt_EachRun *run, void *const *out) {
  const lt_Resample *p = (const void *)run->args.bytes;
  return resample(run, out[0], run->n / p->out / p->inner, resample_range_f32, resample_range_f64);
}
bool lt_cpu_each__resample_backward(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__resample_backward(const lt_EachRun *run, void *const *out) {
  const lt_Resample *p = (const void *)run->args.bytes;
  return resample(run, out[0], run->n / p->in / p->inner, resample_backward_range_f32,
                  resample_backward_range_f64);
}

/* ---- padding, grids -------------------------------------------------------------------------- */

RANGES(pad, pad_f32(w->args, w->in, w->out, from, to), pad_f64(w->args, w->in, w->out, from, to))
RANGES(grid_sample, grid_sample_f32(w->args, w->in, w->second, w->out, from, to),
       grid_sample_f64(w->args, w->in, w->second, w->out, from, to))

bool lt_cpu_each__pad(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__pad(const lt_EachRun *run, void *const *out) {
  const lt_Pad *p = (const void *)run->args.bytes;
  Work w = {.args = p, .in = lt_tensor_data(run->in[0]), .out = out[0]};
  return share(run, run->n / p->out[2], &w, pad_range_f32, pad_range_f64);
}
bool lt_cpu_each__grid_sample(const lt_EachRun *run, void *const *out);
bool lt_cpu_each__grid_sample(const lt_EachRun *run, void *const *out) {
  const lt_Grid *p = (const void *)run->args.bytes;
  int64_t blocks = (p->points + LT_GRID_BLOCK - 1) / LT_GRID_BLOCK;
  if (product(p->in) >= LT_GRID_ELEMENTS) return false;
  Work w = {.args = p,
            .in = lt_tensor_data(run->in[0]),
            .second = lt_tensor_data(run->in[1]),
            .out = out[0]};
  return share(run, run->n / p->channels / p->points * blocks, &w, grid_sample_range_f32,
               grid_sample_range_f64);
}

RANGES(grid_sample_backward, grid_sample_backward_f32(w->args, w->in, w->second, w->out, from, to),
       grid_sample_backward_f64(w->args, w->in, w->second, w->out, from, to))
RANGES(grid_sample_grid_backward,
       grid_sample_grid_backward_f32(w->args, w->in, w->second, w->third, w->out, from, to),
       grid_sample_grid_backward_f64(w->args, w->in, w->second, w->third, w->out, from, to))

/* Returns the arguments of a gradient for images of `sizes`; arguments 3 to 5 of c are mode,
 * padding and align_corners. */
static lt_Grid grid_of(const lt_Call *c, const int64_t *sizes) {
  const lt_Tensor *grad = lt_in(c, 0);
  int n = grad->ndim - 2;
  lt_Grid p = {.in = {1, 1, 1},
               .channels = grad->shape[1],
               .points = 1,
               .dims = n,
               .mode = (int32_t)c->arg[3].i,
               .padding = (int32_t)c->arg[4].i,
               .align_corners = c->arg[5].b};
  memcpy(p.in + 3 - n, sizes, (size_t)n * sizeof *sizes);
  for (int d = 0; d < n; d++) p.points *= grad->shape[2 + d];
  return p;
}

/* Runs a gradient in the working dtype: f32 or f64 for 0..n, with the first `count` arguments. */
static bool run_gradient(lt_Call *c, const lt_Grid *p, int count, int64_t n, lt_RangeFn f32,
                         lt_RangeFn f64) {
  lt_Dtype work = lt_work_dtype(c->out[0]->dtype);
  lt_Tensor *in[3] = {NULL}, *out = lt_output_open(c->out[0], work);
  bool ok = out != NULL;
  for (int i = 0; i < count && ok; i++) ok = (in[i] = lt_as_contiguous(lt_in(c, i), work)) != NULL;
  if (ok) {
    Work w = {.args = p,
              .in = lt_tensor_data(in[0]),
              .second = lt_tensor_data(in[1]),
              .third = in[2] ? lt_tensor_data(in[2]) : NULL,
              .out = lt_tensor_data(out)};
    lt_share(lt_in(c, 0)->numel << (p->dims + 2), n, work == LT_float64 ? f64 : f32, &w);
  }
  for (int i = 0; i < count; i++) lt_release(in[i]);
  if (ok) return lt_output_close(c->out[0], out);
  lt_release(out);
  return false;
}

/* _grid_sample_backward (grad, grid, input_size, mode, padding, align_corners) */
bool lt_cpu__grid_sample_backward(lt_Call *c);
bool lt_cpu__grid_sample_backward(lt_Call *c) {
  lt_Grid p = grid_of(c, c->arg[2].ints);
  return run_gradient(c, &p, 2, c->out[0]->shape[0] * p.channels, grid_sample_backward_range_f32,
                      grid_sample_backward_range_f64);
}

/* _grid_sample_grid_backward (grad, input, grid, mode, padding, align_corners) */
bool lt_cpu__grid_sample_grid_backward(lt_Call *c);
bool lt_cpu__grid_sample_grid_backward(lt_Call *c) {
  lt_Grid p = grid_of(c, lt_in(c, 1)->shape + 2);
  int64_t blocks = (p.points + LT_GRID_BLOCK - 1) / LT_GRID_BLOCK;
  return run_gradient(c, &p, 3, c->out[0]->shape[0] * blocks, grid_sample_grid_backward_range_f32,
                      grid_sample_grid_backward_range_f64);
}
