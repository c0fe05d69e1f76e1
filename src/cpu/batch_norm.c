/* batch_norm.c: batch norm (Ioffe and Szegedy 2015) and its gradients. A channel is computed by one
 * thread: its statistics, image by image, then its elements, which are still in the cache. Few
 * elements of a channel are columns of the images: a block of them is computed together. float16
 * and bfloat16 are computed in float32. */
#include "kernel_support.h"
#include "rows.h"
#include "vector.h"

#include <math.h>

/* A call in the working dtype, on {images, channels, n} elements. */
typedef struct Work {
  const void *g, *x, *w, *b;
  void *y, *mean, *var, *dw, *db; /* backward: y is the input's gradient */
  double eps;
  int64_t images, channels, n;
  lt_Dtype dtype, stored; /* stored: the dtype of x and y in memory */
  bool training;
} Work;

/* Computes n elements y = (x - mean) * a + b of float16 or bfloat16, from element `at` on, in
 * pieces that stay in the cache. */
static void affine_halves(const Work *k, int64_t at, float mean, float a, float b, int64_t n) {
  enum { PIECE = 1024 };
  float room[PIECE];
  for (int64_t end = at + n; at < end; at += PIECE) {
    int64_t m = end - at < PIECE ? end - at : PIECE;
    lt_vector_load(LT_float32, m, room, k->stored, (const char *)k->x + 2 * at, 2);
    lt_rows()->affine_f32(room, mean, a, b, m, room);
    lt_vector_store(LT_float32, m, k->stored, (char *)k->y + 2 * at, 2, room);
  }
}

/* Mean and variance are those of the images' rows, combined in double by the formula of Chan, Golub
 * and LeVeque. Gradients, with the normalized x^ and h = g w: dx = (h - mean(h) - x^ mean(h x^)) /
 * std when training, else h / std; dw = sum(g x^), db = sum(g). */
#define NORM(T, F)                                                                                 \
  static void statistics_##F(const Work *k, int64_t c) {                                           \
    double mean = 0, squares = 0, count = 0;                                                       \
    for (int64_t i = 0; i < k->images && k->n; i++) {                                              \
      T m = 0, s = 0;                                                                              \
      const T *x = (const T *)k->x + (i * k->channels + c) * k->n;                                 \
      lt_rows()->moments_##F(x, k->n, &m, &s);                                                     \
      double n = (double)k->n, all = count + n, step = m - mean;                                   \
      squares += s + step * step * (count * n / all);                                              \
      mean += step * (n / all);                                                                    \
      count = all;                                                                                 \
    }                                                                                              \
    ((T *)k->mean)[c] = (T)mean;                                                                   \
    ((T *)k->var)[c] = (T)(squares / (count > 0 ? count : 1));                                     \
  }                                                                                                \
  static void forward_##F(void *context, int64_t from, int64_t to) {                               \
    const Work *k = context;                                                                       \
    for (int64_t c = from; c < to && !lt_stopped(); c++) {                                         \
      if (k->training) statistics_##F(k, c);                                                       \
      T mean = ((T *)k->mean)[c], a = (T)(1 / sqrt((double)((T *)k->var)[c] + k->eps));            \
      T b = k->b ? ((const T *)k->b)[c] : 0;                                                       \
      if (k->w) a *= ((const T *)k->w)[c];                                                         \
      for (int64_t i = 0; i < k->images; i++) {                                                    \
        int64_t at = (i * k->channels + c) * k->n;                                                 \
        if (k->stored == k->dtype)                                                                 \
          lt_rows()->affine_##F((const T *)k->x + at, mean, a, b, k->n, (T *)k->y + at);           \
        else                                                                                       \
          affine_halves(k, at, (float)mean, (float)a, (float)b, k->n);                             \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void backward_##F(void *context, int64_t from, int64_t to) {                              \
    const Work *k = context;                                                                       \
    for (int64_t c = from; c < to && !lt_stopped(); c++) {                                         \
      T mean = ((T *)k->mean)[c];                                                                  \
      double rstd = 1 / sqrt((double)((T *)k->var)[c] + k->eps), sum = 0, product = 0;             \
      for (int64_t i = 0; i < k->images; i++) {                                                    \
        int64_t at = (i * k->channels + c) * k->n;                                                 \
        T s, p;                                                                                    \
        lt_rows()->norm_sums_##F((const T *)k->g + at, (const T *)k->x + at, mean, k->n, &s, &p);  \
        sum += s;                                                                                  \
        product += p;                                                                              \
      }                                                                                            \
      ((T *)k->dw)[c] = (T)(product * rstd);                                                       \
      ((T *)k->db)[c] = (T)sum;                                                                    \
      double a = rstd * (k->w ? ((const T *)k->w)[c] : 1), count = (double)(k->images * k->n);     \
      double b = k->training ? -a * rstd * rstd * product / count : 0;                             \
      double d = k->training ? -a * sum / count : 0;                                               \
      for (int64_t i = 0; i < k->images; i++) {                                                    \
        int64_t at = (i * k->channels + c) * k->n;                                                 \
        lt_rows()->norm_gradient_##F((const T *)k->g + at, (const T *)k->x + at, mean, (T)a, (T)b, \
                                     (T)d, k->n, (T *)k->y + at);                                  \
      }                                                                                            \
    }                                                                                              \
  }

/* The same for less than NARROW elements of a channel: columns of images, channels x n of them,
 * whose sums are accumulated in double, row by row, and combined to those of channels. A block has
 * up to BLOCK columns. */
#define BLOCK  LT_CENTERED_WIDTH
#define NARROW 32
#define NORM_COLUMNS(T, F)                                                                         \
  static void statistics_columns_##F(const Work *k, int64_t first, int64_t count) {                \
    double states[3 * BLOCK]; /* the variance's: the number of rows, the mean, the squares */      \
    const lt_Centered *f = lt_centered(LT_REDUCTION__var, k->dtype);                               \
    f->columns((const T *)k->x + first * k->n, k->images, k->channels * k->n, count * k->n,        \
               states);                                                                            \
    for (int64_t c = 0; c < count; c++) {                                                          \
      double *all = states + 3 * c * k->n;                                                         \
      for (int64_t i = 1; i < k->n; i++) f->join(all, all + 3 * i);                                \
      ((T *)k->mean)[first + c] = (T)all[1];                                                       \
      ((T *)k->var)[first + c] = (T)(all[2] / (double)(k->images * k->n));                         \
    }                                                                                              \
  }                                                                                                \
  static void forward_block_##F(const Work *k, int64_t first, int64_t count) {                     \
    T mean[BLOCK], scale[BLOCK], shift[BLOCK];                                                     \
    const T *w = k->w, *b = k->b;                                                                  \
    if (k->training) statistics_columns_##F(k, first, count);                                      \
    for (int64_t c = 0, at = 0; c < count; c++) {                                                  \
      T a = (T)(1 / sqrt((double)((T *)k->var)[first + c] + k->eps));                              \
      if (w) a *= w[first + c];                                                                    \
      for (int64_t i = 0; i < k->n; i++, at++) {                                                   \
        mean[at] = ((const T *)k->mean)[first + c];                                                \
        scale[at] = a;                                                                             \
        shift[at] = b ? b[first + c] : 0;                                                          \
      }                                                                                            \
    }                                                                                              \
    lt_rows()->affine_columns_##F((const T *)k->x + first * k->n, mean, scale, shift, k->images,   \
                                  k->channels * k->n, count * k->n, (T *)k->y + first * k->n);     \
  }                                                                                                \
  static void backward_block_##F(const Work *k, int64_t first, int64_t count) {                    \
    double sum[BLOCK] = {0}, product[BLOCK] = {0};                                                 \
    T mean[BLOCK], a[BLOCK], b[BLOCK], d[BLOCK];                                                   \
    const T *w = k->w;                                                                             \
    const int64_t width = count * k->n, stride = k->channels * k->n, start = first * k->n;         \
    for (int64_t j = 0; j < width; j++) mean[j] = ((const T *)k->mean)[first + j / k->n];          \
    for (int64_t i = 0; i < k->images; i++) {                                                      \
      const T *g = (const T *)k->g + i * stride + start,                                           \
              *x = (const T *)k->x + i * stride + start;                                           \
      for (int64_t j = 0; j < width; j++) {                                                        \
        sum[j] += g[j];                                                                            \
        product[j] += (double)g[j] * ((double)x[j] - mean[j]);                                     \
      }                                                                                            \
    }                                                                                              \
    for (int64_t c = 0, at = 0; c < count; c++) {                                                  \
      double rstd = 1 / sqrt((double)((T *)k->var)[first + c] + k->eps);                           \
      double scale = rstd * (w ? w[first + c] : 1), n = (double)(k->images * k->n);                \
      double s = sum[at], p = product[at];                                                         \
      for (int64_t i = 1; i < k->n; i++) s += sum[at + i], p += product[at + i];                   \
      ((T *)k->dw)[first + c] = (T)(p * rstd);                                                     \
      ((T *)k->db)[first + c] = (T)s;                                                              \
      for (int64_t i = 0; i < k->n; i++, at++) {                                                   \
        a[at] = (T)scale;                                                                          \
        b[at] = k->training ? (T)(-scale * rstd * rstd * p / n) : 0;                               \
        d[at] = k->training ? (T)(-scale * s / n) : 0;                                             \
      }                                                                                            \
    }                                                                                              \
    for (int64_t i = 0; i < k->images; i++) {                                                      \
      int64_t at = i * stride + start;                                                             \
      const T *g = (const T *)k->g + at, *x = (const T *)k->x + at;                                \
      T *dx = (T *)k->y + at;                                                                      \
      for (int64_t j = 0; j < width; j++) dx[j] = a[j] * g[j] + (b[j] * (x[j] - mean[j]) + d[j]);  \
    }                                                                                              \
  }                                                                                                \
  static void forward_columns_##F(void *context, int64_t from, int64_t to) {                       \
    int64_t most = BLOCK / ((const Work *)context)->n;                                             \
    for (; from < to && !lt_stopped(); from += most)                                               \
      forward_block_##F(context, from, to - from < most ? to - from : most);                       \
  }                                                                                                \
  static void backward_columns_##F(void *context, int64_t from, int64_t to) {                      \
    int64_t most = BLOCK / ((const Work *)context)->n;                                             \
    for (; from < to && !lt_stopped(); from += most)                                               \
      backward_block_##F(context, from, to - from < most ? to - from : most);                      \
  }

NORM(float, f32)
NORM(double, f64)
NORM_COLUMNS(float, f32)
NORM_COLUMNS(double, f64)

/* Runs `columns` for few elements of a channel, else `range`. Threads take whole ranges of
 * channels: the elements of a row that are read at once should be neighbours. */
static void run(Work *k, int64_t work, lt_RangeFn columns, lt_RangeFn range) {
  if (k->n > 0 && k->n < NARROW)
    LT_IN_TEAM(lt_team(work, k->channels), k->channels, columns(k, first, last));
  else
    lt_share(work, k->channels, range, k);
}

static void set_sizes(Work *k, const lt_Tensor *x) {
  k->images = x->shape[0];
  k->channels = x->shape[1];
  k->n = 1;
  for (int d = 2; d < x->ndim; d++) k->n *= x->shape[d];
}

bool lt_cpu__batch_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true, training = c->arg[5].b;
  if (!training &&
      !(lt_copy_into(c->out[1], lt_in(c, 3), false) && lt_copy_into(c->out[2], lt_in(c, 4), false)))
    return false;
  Work k = {.eps = c->arg[6].f, .dtype = work, .stored = work, .training = training};
  set_sizes(&k, self);
  if (!training && k.n >= NARROW) k.stored = self->dtype;
  lt_Tensor *x = lt_as_contiguous(self, k.stored), *w = lt_optional(c, 1, work, &ok),
            *b = lt_optional(c, 2, work, &ok), *y = lt_output_open(c->out[0], k.stored);
  ok = ok && x && y;
  if (ok) {
    k.x = lt_data_of(x);
    k.w = lt_data_of(w);
    k.b = lt_data_of(b);
    k.y = lt_data_of(y);
    k.mean = lt_data_of(c->out[1]);
    k.var = lt_data_of(c->out[2]);
    bool wide = work == LT_float64;
    run(&k, 2 * self->numel, wide ? forward_columns_f64 : forward_columns_f32,
        wide ? forward_f64 : forward_f32);
  }
  lt_release(x);
  lt_release(w);
  lt_release(b);
  return lt_output_close(c->out[0], y) && ok;
}

bool lt_cpu__batch_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true;
  lt_Tensor *g = lt_as_contiguous(lt_in(c, 0), work), *x = lt_as_contiguous(self, work),
            *w = lt_optional(c, 2, work, &ok), *mean = lt_as_contiguous(lt_in(c, 3), work),
            *var = lt_as_contiguous(lt_in(c, 4), work), *dx = lt_output_open(c->out[0], work);
  ok = ok && g && x && mean && var && dx;
  if (ok) {
    Work k = {.g = lt_data_of(g),
              .x = lt_data_of(x),
              .w = lt_data_of(w),
              .y = lt_data_of(dx),
              .mean = lt_data_of(mean),
              .var = lt_data_of(var),
              .dw = lt_data_of(c->out[1]),
              .db = lt_data_of(c->out[2]),
              .eps = c->arg[6].f,
              .training = c->arg[5].b};
    set_sizes(&k, self);
    bool wide = work == LT_float64;
    run(&k, 3 * self->numel, wide ? backward_columns_f64 : backward_columns_f32,
        wide ? backward_f64 : backward_f32);
  }
  lt_release(g);
  lt_release(x);
  lt_release(w);
  lt_release(mean);
  lt_release(var);
  return lt_output_close(c->out[0], dx) && ok;
}
