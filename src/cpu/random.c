/* random.c: random numbers by Philox (philox.h says which of its numbers an element takes). An
 * element depends on the seed, the call's position in the sequence and its place alone: not on
 * threads, layout or device.
 *
 * Halves are drawn as float32, with no more bits than they hold, and rounded.
 */
#include "kernel_support.h"
#include "opids.h"
#include "philox.h"
#include "random_range.h"
#include "rows.h"
#include "sort.h"
#include "vector.h"

#include <math.h>

/* Reserves the numbers of n elements of the generator argument i. */
static lt_Philox reserve(const lt_Call *c, int i, int64_t n, bool wide) {
  lt_Philox p;
  lt_Generator *g = c->arg[i].kind == LT_ARG_GENERATOR ? c->arg[i].generator : NULL;
  lt_generator_reserve(g, (uint64_t)n * (wide ? 2 : 1), &p.seed, &p.position);
  return p;
}

#define WORDS 1024 /* of a chunk, which one thread draws at once */

/* What a distribution needs to know; each uses what it needs. */
typedef struct Numbers {
  double a, b, top;
  uint32_t keep;        /* which bits of a word count */
  uint64_t span;        /* of whole numbers */
  const double *chance; /* by element, `step` apart */
  int64_t step;
} Numbers;

/* Makes `count` elements, of which the first of all is element `first`, of words w. */
typedef void (*Draw)(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out);

/* n elements of `size` bytes, each of one word or, if wide, two. */
typedef struct Stretch {
  lt_Philox p;
  bool wide;
  int64_t n;
  size_t size;
  Draw fn;
  const Numbers *k;
  char *out;
} Stretch;

/* Chunks from..to. */
static void draw(void *context, int64_t from, int64_t to) {
  const Stretch *s = context;
  int64_t each = s->wide ? WORDS / 2 : WORDS;
  for (int64_t i = from; i < to; i++) {
    uint32_t w[WORDS];
    int64_t first = i * each, count = s->n - first < each ? s->n - first : each;
    int64_t blocks = ((s->wide ? 2 : 1) * count + 3) / 4;
    lt_rows()->philox(s->p.seed, s->p.position + (uint64_t)(i * (WORDS / 4)), blocks, w);
    s->fn(w, first, count, s->k, s->out + (size_t)first * s->size);
  }
}

/* Fills `out` through a tensor of dtype `work`. */
static bool draw_into(const lt_Call *c, int generator, lt_Tensor *out, lt_Dtype work, bool wide,
                      Draw fn, const Numbers *k) {
  lt_Tensor *t = lt_output_open(out, work);
  if (!t) return false;
  lt_Philox p = reserve(c, generator, out->numel, wide);
  Stretch s = {p, wide, out->numel, lt_dtype_size(work), fn, k, lt_tensor_data(t)};
  int64_t each = wide ? WORDS / 2 : WORDS;
  lt_share(8 * s.n, (s.n + each - 1) / each, draw, &s);
  return lt_output_close(out, t);
}

/* The same for a distribution of floats. */
static bool draw_floats(const lt_Call *c, int generator, Draw f32, Draw f64, const Numbers *k) {
  lt_Dtype work = lt_work_dtype(c->out[0]->dtype);
  bool wide = work == LT_float64;
  return draw_into(c, generator, c->out[0], work, wide, wide ? f64 : f32, k);
}

static uint64_t wide_word(const uint32_t *w, int64_t i) {
  return (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
}

/* ---- uniform --------------------------------------------------------------------------------- */

static void uniform32(const uint32_t *w, int64_t first, int64_t count, const Numbers *k,
                      void *out) {
  (void)first;
  float *x = out, low = (float)k->a, span = (float)(k->b - k->a), top = (float)k->top;
  uint32_t keep = k->keep;
  for (int64_t i = 0; i < count; i++) {
    float v = low + lt_fraction32(w[i] & keep) * span;
    x[i] = v > top ? top : v;
  }
}

static void uniform64(const uint32_t *w, int64_t first, int64_t count, const Numbers *k,
                      void *out) {
  (void)first;
  double *x = out, span = k->b - k->a;
  for (int64_t i = 0; i < count; i++) {
    double v = k->a + lt_fraction64(wide_word(w, i)) * span;
    x[i] = v > k->top ? k->top : v;
  }
}

bool lt_cpu_uniform(lt_Call *c) {
  lt_Dtype d = c->out[0]->dtype;
  double from = c->arg[1].f, to = c->arg[2].f;
  Numbers k = {.a = from, .b = to, .top = lt_random_top(from, to, d), .keep = lt_random_bits(d)};
  return draw_floats(c, 3, uniform32, uniform64, &k);
}

/* ---- normal: Box and Muller (1958), two numbers from two, cosine first ----------------------- */

static void normal32(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out) {
  (void)first;
  float r[WORDS / 2], a[WORDS / 2], z[WORDS / 2], *x = out, mean = (float)k->a, std = (float)k->b;
  int64_t pairs = (count + 1) / 2;
  for (int64_t i = 0; i < pairs; i++) {
    r[i] = lt_positive32(w[2 * i]);
    a[i] = 6.2831853071795864769f * lt_positive32(w[2 * i + 1]);
  }
  lt_vector_op(LT_OP_log, LT_float32, pairs, r, r, NULL);
  for (int64_t i = 0; i < pairs; i++) r[i] = sqrtf(-2 * r[i]);
  lt_vector_op(LT_OP_cos, LT_float32, pairs, z, a, NULL);
  for (int64_t i = 0; i < pairs; i++) x[2 * i] = mean + std * (r[i] * z[i]);
  lt_vector_op(LT_OP_sin, LT_float32, pairs, z, a, NULL);
  for (int64_t i = 0; i < count / 2; i++) x[2 * i + 1] = mean + std * (r[i] * z[i]);
}

static void normal64(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out) {
  (void)first;
  double r[WORDS / 4], a[WORDS / 4], z[WORDS / 4], *x = out;
  int64_t pairs = (count + 1) / 2;
  for (int64_t i = 0; i < pairs; i++) {
    r[i] = lt_positive64(wide_word(w, 2 * i));
    a[i] = 6.2831853071795864769 * lt_fraction64(wide_word(w, 2 * i + 1));
  }
  lt_vector_op(LT_OP_log, LT_float64, pairs, r, r, NULL);
  for (int64_t i = 0; i < pairs; i++) r[i] = sqrt(-2 * r[i]);
  lt_vector_op(LT_OP_cos, LT_float64, pairs, z, a, NULL);
  for (int64_t i = 0; i < pairs; i++) x[2 * i] = k->a + k->b * (r[i] * z[i]);
  lt_vector_op(LT_OP_sin, LT_float64, pairs, z, a, NULL);
  for (int64_t i = 0; i < count / 2; i++) x[2 * i + 1] = k->a + k->b * (r[i] * z[i]);
}

bool lt_cpu_normal(lt_Call *c) {
  Numbers k = {.a = c->arg[1].f, .b = c->arg[2].f};
  return draw_floats(c, 3, normal32, normal64, &k);
}

/* ---- exponential: -log(u) / lambd ------------------------------------------------------------ */

static void exponential32(const uint32_t *w, int64_t first, int64_t count, const Numbers *k,
                          void *out) {
  (void)first;
  float *x = out, scale = (float)(-1 / k->a);
  for (int64_t i = 0; i < count; i++) x[i] = lt_positive32(w[i]);
  lt_vector_op(LT_OP_log, LT_float32, count, x, x, NULL);
  for (int64_t i = 0; i < count; i++) x[i] *= scale;
}

static void exponential64(const uint32_t *w, int64_t first, int64_t count, const Numbers *k,
                          void *out) {
  (void)first;
  double *x = out, scale = -1 / k->a;
  for (int64_t i = 0; i < count; i++) x[i] = lt_positive64(wide_word(w, i));
  lt_vector_op(LT_OP_log, LT_float64, count, x, x, NULL);
  for (int64_t i = 0; i < count; i++) x[i] *= scale;
}

bool lt_cpu_exponential(lt_Call *c) {
  Numbers k = {.a = c->arg[1].f};
  return draw_floats(c, 2, exponential32, exponential64, &k);
}

/* ---- whole numbers --------------------------------------------------------------------------- */

static void whole(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out) {
  (void)first;
  int64_t *x = out;
  uint64_t from = (uint64_t)k->step;
  for (int64_t i = 0; i < count; i++) x[i] = (int64_t)(from + lt_below(wide_word(w, i), k->span));
}

bool lt_cpu_random(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int64_t from = lt_given(c, 1) ? c->arg[1].i : 0,
          to = lt_given(c, 2) ? c->arg[2].i : lt_random_whole(out->dtype);
  Numbers k = {.step = from, .span = (uint64_t)to - (uint64_t)from + 1};
  return draw_into(c, 3, out, LT_int64, true, whole, &k);
}

/* ---- bernoulli: 1 where a fraction of 32 bits is below the probability ----------------------- */

/* Probabilities in float64, checked: one (step 0) or n. */
static bool chances_are_right(const double *chance, int64_t n, const lt_Tensor *self) {
  for (int64_t i = 0; i < n && !lt_stopped_at(i); i++)
    if (!(chance[i] >= 0 && chance[i] <= 1))
      return lt_bad_probability(chance[i], i, self->ndim, self->shape);
  return true;
}

static void coins(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out) {
  uint8_t *x = out;
  const double *chance = k->chance + first * k->step;
  for (int64_t i = 0; i < count; i++) x[i] = (double)w[i] * 0x1p-32 < chance[i * k->step];
}

static bool flip_coins(const lt_Call *c, int generator, lt_Tensor *out, const double *chance,
                       int64_t step) {
  Numbers k = {.chance = chance, .step = step};
  return draw_into(c, generator, out, LT_bool, false, coins, &k);
}

static bool flip_by(lt_Call *c, int generator, lt_Tensor *chances) {
  lt_Tensor *out = c->out[0],
            *p = lt_expanded_contiguous(chances, LT_float64, out->ndim, out->shape);
  if (!p) return false;
  bool ok = chances_are_right(lt_tensor_data(p), p->numel, chances) &&
            flip_coins(c, generator, out, lt_tensor_data(p), 1);
  lt_release(p);
  return ok;
}

bool lt_cpu__bernoulli(lt_Call *c) {
  if (lt_in(c, 1)) return flip_by(c, 2, lt_in(c, 1));
  double chance = lt_scalar_to_double(c->arg[1].scalar);
  return flip_coins(c, 2, c->out[0], &chance, 0);
}

bool lt_cpu__bernoulli_of(lt_Call *c) { return flip_by(c, 1, lt_in(c, 0)); }

/* ---- permutations and draws ------------------------------------------------------------------ */

/* 1..n sorted by random keys of 64 bits (equal keys, of which a million have one pair in 10^7
 * runs, stay in order): any device can do that in parallel. */
bool lt_cpu_randperm(lt_Call *c) {
  int64_t n = c->out[0]->numel;
  lt_Philox p = reserve(c, 1, n, true);
  if (n == 0) return true;
  lt_Keyed *items = malloc((size_t)n * 2 * sizeof *items);
  lt_Tensor *t = items ? lt_output_open(c->out[0], LT_int64) : NULL;
  if (t) {
    int64_t *x = lt_tensor_data(t);
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
      for (; i < end; i++) items[i] = (lt_Keyed){lt_philox_wide(p, i), i};
    lt_keyed_sort(items, items + n, n);
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
      for (; i < end; i++) x[i] = items[i].at + LT_INDEX_BASE;
  }
  free(items);
  if (!items) return lt_fail_memory();
  return lt_output_close(c->out[0], t);
}

/* One row of weights is fit to be drawn from. */
static bool weights_are_right(const double *w, int64_t n, int64_t row, int64_t least) {
  double sum = 0;
  int64_t positive = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(w[i] >= 0) || isinf(w[i])) return lt_bad_weight(w[i], i, row);
    sum += w[i];
    positive += w[i] > 0;
  }
  if (isinf(sum)) return lt_bad_weights(row, -1, least);
  if (positive == 0 || positive < least) return lt_bad_weights(row, positive, least);
  return true;
}

/* With replacement: the inverse of the running sum. Draw j of row r is element r * k + j. */
static void draw_again(const double *w, int64_t n, int64_t k, lt_Philox p, int64_t first,
                       double *sums, int64_t *out) {
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n && !lt_stopped_at(i); i++) {
    sums[i] = sum += w[i];
    if (w[i] > 0) last = i;
  }
  for (int64_t j = 0; j < k && !lt_stopped_at(j); j++) {
    double u = lt_fraction64(lt_philox_wide(p, first + j)) * sum;
    int64_t low = 0, high = last; /* the first whose running sum is above u */
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (sums[middle] > u)
        high = middle;
      else
        low = middle + 1;
    }
    out[j] = low + LT_INDEX_BASE;
  }
}

/* Without: the k first to arrive when i arrives after an exponential time of rate w[i]. Weight i
 * of row r is element r * n + i. Positive doubles sort as their bits do. */
static void draw_once(const double *w, int64_t n, int64_t k, lt_Philox p, int64_t first,
                      lt_Keyed *items, int64_t *out) {
  for (int64_t i = 0; i < n && !lt_stopped_at(i); i++) {
    double time = w[i] > 0 ? -log(lt_positive64(lt_philox_wide(p, first + i))) / w[i] : INFINITY;
    uint64_t key;
    time += 0.0; /* -0 becomes 0 */
    memcpy(&key, &time, sizeof key);
    items[i] = (lt_Keyed){w[i] > 0 ? key : UINT64_MAX, i};
  }
  lt_keyed_first(items, items + n, n, k);
  for (int64_t j = 0; j < k; j++) out[j] = items[j].at + LT_INDEX_BASE;
}

bool lt_cpu_multinomial(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int64_t k = c->arg[1].i, n = self->shape[self->ndim - 1], rows = n > 0 ? self->numel / n : 0;
  bool again = c->arg[2].b;
  lt_Tensor *weights = lt_as_contiguous(self, LT_float64);
  if (!weights) return false;
  const double *w = lt_tensor_data(weights);
  bool ok = true;
  for (int64_t r = 0; ok && r < rows; r++) ok = weights_are_right(w + r * n, n, r, again ? 1 : k);
  lt_Keyed *room = ok ? malloc((size_t)n * 2 * sizeof *room) : NULL;
  if (ok && !room) ok = lt_fail_memory();
  if (ok) {
    lt_Philox p = reserve(c, 3, rows * (again ? k : n), true);
    int64_t *out = lt_tensor_data(c->out[0]);
    for (int64_t r = 0; r < rows && !lt_stopped(); r++) {
      if (again)
        draw_again(w + r * n, n, k, p, r * k, (double *)(void *)room, out + r * k);
      else
        draw_once(w + r * n, n, k, p, r * n, room, out + r * k);
    }
  }
  free(room);
  lt_release(weights);
  return ok;
}
