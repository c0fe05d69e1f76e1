/* random.c: random numbers by Philox (philox.h defines which of its numbers an element uses). An
 * element depends on the seed, the call's position in the sequence and its own index alone: not on
 * threads, layout or device.
 *
 * float16 and bfloat16 are drawn as float32, with no more bits than they can hold, and rounded. */
#include "kernel_support.h"
#include "opids.h"
#include "permutation.h"
#include "philox.h"
#include "random_range.h"
#include "rows.h"
#include "sort.h"
#include "vector.h"

#include <float.h>
#include <math.h>

/* Reserves the random numbers for n elements from generator argument i, the default generator if it
 * was not given. `wide`: two words for each element. */
static lt_Philox reserve(const lt_Call *c, int i, int64_t n, bool wide) {
  lt_Philox p;
  lt_Generator *g = c->arg[i].kind == LT_ARG_GENERATOR ? c->arg[i].generator : NULL;
  lt_generator_reserve(g, (uint64_t)n * (wide ? 2 : 1), &p.seed, &p.position);
  return p;
}

#define WORDS 1024 /* random words of a chunk, which one thread draws at once */

/* Parameters of all distributions; each uses some of them. */
typedef struct Numbers {
  double a, b, top;
  uint32_t keep;             /* mask of the bits of a word that are used */
  uint64_t span;             /* number of possible integers */
  const double *probability; /* probabilities of the elements, `step` apart */
  int64_t step;
} Numbers;

/* Computes `count` elements from words w; `first` is the index of the first one. */
typedef void (*Draw)(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out);

/* A fill with n elements of `size` bytes, each made of one word or, if wide, two. */
typedef struct Fill {
  lt_Philox p;
  bool wide;
  int64_t n;
  size_t size;
  Draw fn;
  const Numbers *k;
  char *out;
} Fill;

/* Draws chunks from..to. */
static void draw(void *context, int64_t from, int64_t to) {
  const Fill *s = context;
  int64_t each = s->wide ? WORDS / 2 : WORDS;
  for (int64_t i = from; i < to; i++) {
    uint32_t w[WORDS];
    int64_t first = i * each, count = s->n - first < each ? s->n - first : each;
    int64_t blocks = ((s->wide ? 2 : 1) * count + 3) / 4;
    lt_rows()->philox(s->p.seed, s->p.position + (uint64_t)(i * (WORDS / 4)), blocks, w);
    s->fn(w, first, count, s->k, s->out + (size_t)first * s->size);
  }
}

/* Fills `out` with a distribution computed in dtype `work`. */
static bool draw_into(const lt_Call *c, int generator, lt_Tensor *out, lt_Dtype work, bool wide,
                      Draw fn, const Numbers *k) {
  lt_Tensor *t = lt_output_open(out, work);
  if (!t) return false;
  lt_Philox p = reserve(c, generator, out->numel, wide);
  Fill s = {p, wide, out->numel, lt_dtype_size(work), fn, k, lt_tensor_data(t)};
  int64_t each = wide ? WORDS / 2 : WORDS;
  lt_share(8 * s.n, (s.n + each - 1) / each, draw, &s);
  return lt_output_close(out, t);
}

/* Fills the output with a distribution of floats, by the function for its working dtype. */
static bool draw_floats(const lt_Call *c, int generator, Draw f32, Draw f64, const Numbers *k) {
  lt_Dtype work = lt_work_dtype(c->out[0]->dtype);
  bool wide = work == LT_float64;
  return draw_into(c, generator, c->out[0], work, wide, wide ? f64 : f32, k);
}

static uint64_t wide_word(const uint32_t *w, int64_t i) {
  return (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
}

/* ---- uniform --------------------------------------------------------------------------------- */

/* Draws from [a, b). Rounding may reach b, so results are limited to `top`, the largest number
 * below it. */
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

/* ---- integers -------------------------------------------------------------------------------- */

/* lt_below for n < 2^32, which takes two products of 32 bits: those are computed in vectors. */
static inline uint64_t below_word(uint64_t low, uint64_t high, uint32_t n) {
  return (high * n + (low * n >> 32)) >> 32;
}

static void integers(const uint32_t *w, int64_t first, int64_t count, const Numbers *k, void *out) {
  (void)first;
  int64_t *x = out;
  uint64_t from = (uint64_t)k->step;
  if (k->span > 0 && k->span <= UINT32_MAX) {
    uint32_t n = (uint32_t)k->span;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
      x[i] = (int64_t)(from + below_word(w[2 * i], w[2 * i + 1], n));
    return;
  }
  for (int64_t i = 0; i < count; i++) x[i] = (int64_t)(from + lt_below(wide_word(w, i), k->span));
}

bool lt_cpu_random(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int64_t from = lt_given(c, 1) ? c->arg[1].i : 0,
          to = lt_given(c, 2) ? c->arg[2].i : lt_random_whole(out->dtype);
  Numbers k = {.step = from, .span = (uint64_t)to - (uint64_t)from + 1};
  return draw_into(c, 3, out, LT_int64, true, integers, &k);
}

/* ---- bernoulli: 1 where a fraction of 32 bits is below the probability ----------------------- */

/* Returns whether n probabilities are in [0, 1]; sets the error otherwise. */
static bool check_probabilities(const double *probability, int64_t n, const lt_Tensor *self) {
  for (int64_t i = 0; i < n && !lt_stopped_at(i); i++)
    if (!(probability[i] >= 0 && probability[i] <= 1))
      return lt_bad_probability(probability[i], i, self->ndim, self->shape);
  return true;
}

static void bernoulli(const uint32_t *w, int64_t first, int64_t count, const Numbers *k,
                      void *out) {
  uint8_t *x = out;
  const double *probability = k->probability + first * k->step;
  for (int64_t i = 0; i < count; i++) x[i] = (double)w[i] * 0x1p-32 < probability[i * k->step];
}

static bool draw_bernoulli(const lt_Call *c, int generator, lt_Tensor *out,
                           const double *probability, int64_t step) {
  Numbers k = {.probability = probability, .step = step};
  return draw_into(c, generator, out, LT_bool, false, bernoulli, &k);
}

static bool bernoulli_of_tensor(lt_Call *c, int generator, lt_Tensor *probabilities) {
  lt_Tensor *out = c->out[0],
            *p = lt_expanded_contiguous(probabilities, LT_float64, out->ndim, out->shape);
  if (!p) return false;
  bool ok = check_probabilities(lt_tensor_data(p), p->numel, probabilities) &&
            draw_bernoulli(c, generator, out, lt_tensor_data(p), 1);
  lt_release(p);
  return ok;
}

bool lt_cpu__bernoulli(lt_Call *c) {
  if (lt_in(c, 1)) return bernoulli_of_tensor(c, 2, lt_in(c, 1));
  double probability = lt_scalar_to_double(c->arg[1].scalar);
  return draw_bernoulli(c, 2, c->out[0], &probability, 0);
}

bool lt_cpu__bernoulli_of(lt_Call *c) { return bernoulli_of_tensor(c, 1, lt_in(c, 0)); }

/* ---- permutations and draws ------------------------------------------------------------------ */

bool lt_cpu_randperm(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  lt_Philox p = reserve(c, 1, out->numel, true);
  if (out->numel == 0) return true;
  lt_Tensor *t = lt_output_open(out, LT_int64);
  if (t && lt_permutation(p, out->numel, lt_tensor_data(t))) return lt_output_close(out, t);
  lt_release(t);
  return false;
}

/* Returns whether v can be a weight: finite and not negative. */
static inline bool is_weight(double v) { return v >= 0 && v <= DBL_MAX; }

/* Returns the sum of w[0..n), and sets *positive to the number of weights above 0, *good to that of
 * those that can be weights. By lanes, so that no addition waits for the one before. */
static double count_weights(const double *w, int64_t n, int64_t *positive, int64_t *good) {
  enum { LANES = 8 };
  double sum[LANES] = {0}, above[LANES] = {0}, valid[LANES] = {0}, total[3] = {0};
  int64_t whole = n - n % LANES;
  for (int64_t i = 0; i < whole; i += LANES)
    for (int j = 0; j < LANES; j++) {
      double v = w[i + j];
      sum[j] += v;
      above[j] += v > 0 ? 1 : 0;
      valid[j] += is_weight(v) ? 1 : 0;
    }
  for (int64_t i = whole; i < n; i++) {
    sum[i - whole] += w[i];
    above[i - whole] += w[i] > 0;
    valid[i - whole] += is_weight(w[i]);
  }
  for (int j = 0; j < LANES; j++) total[0] += sum[j], total[1] += above[j], total[2] += valid[j];
  *positive = (int64_t)total[1];
  *good = (int64_t)total[2];
  return total[0];
}

/* Returns whether a row of weights is valid: finite, not negative, and at least `least` positive
 * ones; sets the error otherwise. */
static bool check_weights(const double *w, int64_t n, int64_t row, int64_t least) {
  int64_t positive, good, i = 0;
  double sum = count_weights(w, n, &positive, &good);
  if (good < n) {
    while (is_weight(w[i])) i++;
    return lt_bad_weight(w[i], i, row);
  }
  if (isinf(sum)) return lt_bad_weights(row, -1, least);
  if (positive == 0 || positive < least) return lt_bad_weights(row, positive, least);
  return true;
}

/* Sets sums[i] to the sum of w[0..i], by steps of four weights, whose sums do not wait for those
 * before. Returns the index of the last weight above 0. */
static int64_t accumulate_weights(const double *w, int64_t n, double *sums) {
  double sum = 0;
  int64_t i = 0, last = n - 1;
  for (; i + 4 <= n && !lt_stopped_at(i); i += 4) {
    double two = w[i] + w[i + 1], three = two + w[i + 2], four = two + (w[i + 2] + w[i + 3]);
    sums[i] = sum + w[i];
    sums[i + 1] = sum + two;
    sums[i + 2] = sum + three;
    sums[i + 3] = sum += four;
  }
  for (; i < n; i++) sums[i] = sum += w[i];
  while (last > 0 && w[last] == 0) last--;
  return last;
}

/* Draws with replacement from one row, by inversion of the cumulative sums of its weights. Draw j
 * is element `first` + j of the call. */
typedef struct Inversion {
  const double *sums;
  int64_t last; /* the index of the last weight above 0 */
  lt_Philox p;
  int64_t first;
  int64_t *out;
} Inversion;

/* Draws from..to - 1. The search has no branches: those would be mispredicted, and searches of
 * several draws overlap. */
static void invert_sums(void *context, int64_t from, int64_t to) {
  enum { CHUNK = 256 };
  const Inversion *d = context;
  const double *sums = d->sums, sum = sums[d->last];
  uint32_t words[2 * CHUNK + 4];
  for (int64_t start = from; start < to && !lt_stopped(); start += CHUNK) {
    int64_t count = to - start < CHUNK ? to - start : CHUNK, at = d->first + start, odd = at % 2;
    lt_rows()->philox(d->p.seed, d->p.position + (uint64_t)(at / 2), (odd + count + 1) / 2, words);
    for (int64_t j = 0; j < count; j++) {
      double u = lt_fraction64(wide_word(words, odd + j)) * sum;
      int64_t low = 0; /* the first index whose cumulative sum is above u, `last` if none is */
      for (int64_t left = d->last + 1; left > 1;) {
        int64_t half = left / 2;
        low += sums[low + half - 1] <= u ? half : 0;
        left -= half;
      }
      d->out[start + j] = low + LT_INDEX_BASE;
    }
  }
}

/* Draws k elements from the n weights of a row. With `alone`, threads share the row. */
static void draw_with_replacement(const double *w, int64_t n, int64_t k, lt_Philox p, int64_t first,
                                  bool alone, double *sums, int64_t *out) {
  Inversion inversion = {sums, accumulate_weights(w, n, sums), p, first, out};
  if (alone)
    lt_share(16 * k, k, invert_sums, &inversion);
  else
    invert_sums(&inversion, 0, k);
}

/* The times of a row's elements: items[i] becomes the time of index i. */
typedef struct Times {
  const double *w;
  lt_Philox p;
  int64_t first;
  lt_Keyed *items;
} Times;
/* Computes the times of the elements from..to - 1. */
static void draw_times(void *context, int64_t from, int64_t to) {
  enum { CHUNK = 256 };
  const Times *t = context;
  uint32_t words[2 * CHUNK + 4];
  double logs[CHUNK];
  for (int64_t start = from; start < to && !lt_stopped(); start += CHUNK) {
    int64_t count = to - start < CHUNK ? to - start : CHUNK, at = t->first + start, odd = at % 2;
    lt_rows()->philox(t->p.seed, t->p.position + (uint64_t)(at / 2), (odd + count + 1) / 2, words);
    for (int64_t j = 0; j < count; j++) logs[j] = lt_positive64(wide_word(words, odd + j));
    lt_vector_op(LT_OP_log, LT_float64, count, logs, logs, NULL);
    for (int64_t j = 0; j < count; j++) {
      double w = t->w[start + j], time = -logs[j] / w + 0.0; /* -0 becomes 0 */
      uint64_t key;
      memcpy(&key, &time, sizeof key);
      t->items[start + j] = (lt_Keyed){w > 0 ? key : UINT64_MAX, start + j};
    }
  }
}
/* Draws without replacement: each index i gets an exponentially distributed time with rate w[i],
 * and the k earliest are drawn. Weight i of row r is element r * n + i. Positive doubles sort like
 * their bits. With `alone`, threads share the row. */
static void draw_without_replacement(const double *w, int64_t n, int64_t k, lt_Philox p,
                                     int64_t first, bool alone, lt_Keyed *items, int64_t *out) {
  Times times = {w, p, first, items};
  if (alone)
    lt_share(32 * n, n, draw_times, &times);
  else
    draw_times(&times, 0, n);
  lt_keyed_first(items, items + n, n, k);
  for (int64_t j = 0; j < k; j++) out[j] = items[j].at + LT_INDEX_BASE;
}

/* Draws of k elements from each row of n weights. Threads share rows, whose results depend on the
 * row's number only. */
typedef struct Draws {
  const double *w;
  int64_t n, k;
  bool replacement, alone; /* alone: rows are drawn one after another */
  lt_Philox p;
  int64_t *out;
} Draws;

/* Draws from the rows first .. last - 1. `scratch` is scratch memory for 2 n items. */
static void draw_rows(const Draws *d, lt_Keyed *scratch, int64_t first, int64_t last) {
  int64_t n = d->n, k = d->k;
  for (int64_t r = first; r < last && !lt_stopped(); r++) {
    const double *w = d->w + r * n;
    int64_t *out = d->out + r * k;
    if (d->replacement)
      draw_with_replacement(w, n, k, d->p, r * k, d->alone, (double *)(void *)scratch, out);
    else
      draw_without_replacement(w, n, k, d->p, r * n, d->alone, scratch, out);
  }
}

/* Checks all weights before anything is drawn. */
bool lt_cpu_multinomial(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int64_t k = c->arg[1].i, n = self->shape[self->ndim - 1], rows = n > 0 ? self->numel / n : 0;
  bool replacement = c->arg[2].b;
  lt_Tensor *weights = lt_as_contiguous(self, LT_float64);
  if (!weights) return false;
  const double *w = lt_tensor_data(weights);
  bool ok = true;
  for (int64_t r = 0; ok && r < rows; r++) ok = check_weights(w + r * n, n, r, replacement ? 1 : k);
  int team = ok ? lt_team(rows * (replacement ? 8 * n + 16 * k : 64 * n), rows) : 1;
  lt_Keyed *scratch = ok ? malloc((size_t)(team * n) * 2 * sizeof *scratch) : NULL;
  if (ok && !scratch) ok = lt_fail_memory();
  if (ok) {
    lt_Philox p = reserve(c, 3, rows * (replacement ? k : n), true);
    Draws d = {w, n, k, replacement, team == 1, p, lt_tensor_data(c->out[0])};
    LT_IN_TEAM(team, team,
               draw_rows(&d, scratch + 2 * n * first, rows * first / team, rows * last / team));
  }
  free(scratch);
  lt_release(weights);
  return ok;
}
