/* discrete.c: random integers with a distribution of their own for each element: poisson, binomial.
 *
 * The methods reject some candidates, so an element needs a number of random words that is not
 * known before. Each element has one block of the generator's sequence, and draws further ones from
 * the counter's upper half, which no other op uses. So an element depends on the seed, the call's
 * position in the sequence and its own index alone. */
#include "kernel_support.h"
#include "philox.h"

#include <math.h>

/* The random numbers of one element: block `block` of the sequence, and how many were drawn. */
typedef struct Stream {
  lt_Philox p;
  int64_t block;
  uint32_t drawn;
} Stream;

/* Returns the next number, in (0, 1]. */
static double next(Stream *s) {
  uint64_t at = s->p.position + (uint64_t)s->block;
  const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), ++s->drawn, 1};
  const uint32_t key[2] = {(uint32_t)s->p.seed, (uint32_t)(s->p.seed >> 32)};
  uint32_t w[4];
  lt_philox(counter, key, w);
  return lt_positive64((uint64_t)w[1] << 32 | w[0]);
}

/* Returns log(k!) minus Stirling's formula (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2. */
static double correction(double k) {
  double n = k + 1;
  if (k >= 10) return (1 / 12.0 - (1 / 360.0 - 1 / 1260.0 / (n * n)) / (n * n)) / n;
  double factorial = 1;
  for (double i = 2; i <= k; i++) factorial *= i;
  return log(factorial) - (k + 0.5) * log(n) + n - 0.91893853320467274178;
}

static double log_factorial(double k) {
  return correction(k) + (k + 0.5) * log(k + 1) - (k + 1) + 0.91893853320467274178;
}

/* ---- poisson --------------------------------------------------------------------------------- */

/* Inversion: the smallest k for which the sum of the probabilities of 0 .. k is at least u. */
static double poisson_by_inversion(Stream *s, double rate) {
  double u = next(s), p = exp(-rate), k = 0;
  while (u > p && k < 200) {
    u -= p;
    k++;
    p *= rate / k;
  }
  return k;
}

/* Transformed rejection (Hoermann, The transformed rejection method for generating Poisson random
 * variables, 1993, algorithm PTRS), for rates of at least 10. */
static double poisson_by_rejection(Stream *s, double rate) {
  double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double scale = 1.1239 + 1.1328 / (b - 3.4), limit = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = next(s) - 0.5, v = next(s), r = 0.5 - fabs(u);
    double k = floor((2 * a / r + b) * u + rate + 0.43);
    if (r >= 0.07 && v <= limit) return k;
    if (!(k >= 0) || (r < 0.013 && v > r)) continue;
    if (log(v * scale / (a / (r * r) + b)) <= k * log(rate) - rate - log_factorial(k)) return k;
  }
}

static double poisson(Stream *s, double rate) {
  if (!(rate > 0)) return rate; /* 0, or NaN */
  if (isinf(rate)) return rate;
  return rate < 10 ? poisson_by_inversion(s, rate) : poisson_by_rejection(s, rate);
}

/* ---- binomial -------------------------------------------------------------------------------- */

/* Counts the successes by the distances between them, which are geometric. */
static double binomial_by_distances(Stream *s, double n, double p) {
  double at = 0, failure = log1p(-p), successes = -1;
  while (at <= n) {
    at += ceil(log(next(s)) / failure);
    successes++;
  }
  return successes;
}

/* Transformed rejection (Hoermann, The generation of binomial random variates, 1993, algorithm
 * BTRS), for n p of at least 10 and p of at most 1/2. */
static double binomial_by_rejection(Stream *s, double n, double p) {
  double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation;
  double a = -0.0873 + 0.0248 * b + 0.01 * p, middle = n * p + 0.5, limit = 0.92 - 4.2 / b;
  double odds = p / (1 - p), scale = (2.83 + 5.1 / b) * deviation, m = floor((n + 1) * p);
  for (;;) {
    double u = next(s) - 0.5, v = next(s), r = 0.5 - fabs(u);
    double k = floor((2 * a / r + b) * u + middle);
    if (r >= 0.07 && v <= limit) return k;
    if (!(k >= 0) || k > n) continue;
    double most = (m + 0.5) * log((m + 1) / (odds * (n - m + 1))) +
                  (n + 1) * log((n - m + 1) / (n - k + 1)) +
                  (k + 0.5) * log(odds * (n - k + 1) / (k + 1)) + correction(m) +
                  correction(n - m) - correction(k) - correction(n - k);
    if (log(v * scale / (a / (r * r) + b)) <= most) return k;
  }
}

static double binomial(Stream *s, double n, double p) {
  if (isnan(n) || isnan(p)) return NAN;
  n = floor(n);
  if (p > 0.5) return n - binomial(s, n, 1 - p);
  if (n == 0 || p == 0) return 0;
  return n * p < 10 ? binomial_by_distances(s, n, p) : binomial_by_rejection(s, n, p);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* A call: the parameters of each element, `b` NULL for poisson. */
typedef struct Draws {
  lt_Philox p;
  const double *a, *b;
  double *out;
} Draws;

static void draw(void *context, int64_t from, int64_t to) {
  const Draws *d = context;
  for (int64_t i = from; i < to; i++) {
    Stream s = {d->p, i, 0};
    d->out[i] = d->b ? binomial(&s, d->a[i], d->b[i]) : poisson(&s, d->a[i]);
  }
}

/* Returns whether n parameters are in 0 .. `most`, or NaN; sets the error otherwise. */
static bool check(const lt_Call *c, int i, const double *x, int64_t n, double most) {
  for (int64_t k = 0; k < n && !lt_stopped_at(k); k++)
    if (x[k] < 0 || x[k] > most)
      return isinf(most) ? lt_fail("expected numbers of at least 0 for argument '%s', got %g",
                                   lt_arg_name(c, i), x[k])
                         : lt_fail("expected probabilities from 0 to 1 for argument '%s', got %g",
                                   lt_arg_name(c, i), x[k]);
  return true;
}

/* Draws the output with parameters a and, unless it is NULL, b; `generator` is an argument. */
static bool draw_all(lt_Call *c, lt_Tensor *first, lt_Tensor *second, int generator) {
  lt_Tensor *out = c->out[0], *b = NULL, *y = NULL;
  lt_Tensor *a = lt_expanded_contiguous(first, LT_float64, out->ndim, out->shape);
  if (second) b = lt_expanded_contiguous(second, LT_float64, out->ndim, out->shape);
  bool ok = a && (b || !second) && check(c, 0, lt_tensor_data(a), out->numel, INFINITY) &&
            (!b || check(c, 1, lt_tensor_data(b), out->numel, 1)) &&
            (y = lt_output_open(out, LT_float64)) != NULL;
  if (ok) {
    Draws d = {.a = lt_tensor_data(a), .b = b ? lt_tensor_data(b) : NULL, .out = lt_tensor_data(y)};
    lt_Generator *g =
        c->arg[generator].kind == LT_ARG_GENERATOR ? c->arg[generator].generator : NULL;
    lt_generator_reserve(g, 4 * (uint64_t)out->numel, &d.p.seed, &d.p.position);
    lt_share(64 * out->numel, out->numel, draw, &d);
    ok = lt_output_close(out, y);
  }
  lt_release(a);
  lt_release(b);
  return ok;
}

bool lt_cpu_poisson(lt_Call *c) { return draw_all(c, lt_in(c, 0), NULL, 1); }
bool lt_cpu_binomial(lt_Call *c) { return draw_all(c, lt_in(c, 0), lt_in(c, 1), 2); }
