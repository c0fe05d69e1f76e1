/* test_attention.c: attention and its gradients against their formulas in double, over dtypes,
 * layouts, masks, grouped heads, and sizes around the edges of tiles and vectors. */
#include "tensors.h"
#include "cpu/attention.h"
#include "cpu/vector.h"

#include <stdlib.h>
#include <sys/resource.h>

/* One problem: query {2, heads, queries, size}, key and value {2, shared, keys, ...}. */
typedef struct Problem {
  lt_Dtype dtype;
  int64_t heads, shared, queries, keys, size, value_size;
  bool causal;
  lt_Tensor *mask; /* {2 or 1, heads or 1, queries or 1, keys}, or NULL */
  double scale;
} Problem;

enum { BATCH = 2 };

/* Returns the elements of t in row-major order; the caller frees them. */
static double *numbers(const lt_Tensor *t) {
  double *x = malloc((size_t)(t->numel + 1) * sizeof *x);
  for (int64_t i = 0; x && i < t->numel; i++) x[i] = number(t, i);
  return x;
}

/* Returns what is added to the score of a query and a key: -inf where it is masked. */
static double mask_at(const Problem *p, int64_t batch, int64_t head, int64_t i, int64_t j) {
  if (p->causal) return j > i ? -INFINITY : 0;
  const lt_Tensor *m = p->mask;
  if (!m) return 0;
  int64_t at = batch % m->shape[0];
  at = at * m->shape[1] + head % m->shape[1];
  at = at * m->shape[2] + i % m->shape[2];
  double v = number(m, at * m->shape[3] + j);
  return m->dtype == LT_bool ? (v != 0 ? 0 : -INFINITY) : v;
}

/* Computes one row of probabilities p[keys] of a query q; returns the log-sum-exp. */
static double row(const Problem *p, const double *q, const double *k, int64_t batch, int64_t head,
                  int64_t i, double *weight) {
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < p->keys; j++) {
    double s = 0;
    for (int64_t e = 0; e < p->size; e++) s += q[e] * k[j * p->size + e];
    weight[j] = s * p->scale + mask_at(p, batch, head, i, j);
    top = fmax(top, weight[j]);
  }
  for (int64_t j = 0; j < p->keys; j++) {
    weight[j] = top == -INFINITY ? 0 : exp(weight[j] - top);
    sum += weight[j];
  }
  for (int64_t j = 0; j < p->keys && sum > 0; j++) weight[j] /= sum;
  return top + log(sum);
}

/* Computes result, log-sum-exp and gradients by the formulas. */
static void reference(const Problem *p, int64_t batch, lt_Tensor *const *in, double *out,
                      double *lse, double *dq, double *dk, double *dv) {
  double *q = numbers(in[0]), *k = numbers(in[1]), *v = numbers(in[2]), *g = numbers(in[3]);
  double *w = calloc((size_t)(2 * p->keys + 1), sizeof *w), *dw = w + p->keys;
  for (int64_t h = 0; h < batch * p->heads; h++)
    for (int64_t i = 0; i < p->queries; i++) {
      int64_t kv = h / (p->heads / p->shared), at = h * p->queries + i;
      const double *key = k + kv * p->keys * p->size, *value = v + kv * p->keys * p->value_size;
      double *dkey = dk + kv * p->keys * p->size, *dvalue = dv + kv * p->keys * p->value_size;
      const double *grad = g + at * p->value_size, *query = q + at * p->size;
      lse[at] = row(p, query, key, h / p->heads, h % p->heads, i, w);
      double dot = 0;
      for (int64_t j = 0; j < p->keys; j++) {
        dw[j] = 0;
        for (int64_t e = 0; e < p->value_size; e++) {
          out[at * p->value_size + e] += w[j] * value[j * p->value_size + e];
          dvalue[j * p->value_size + e] += w[j] * grad[e];
          dw[j] += grad[e] * value[j * p->value_size + e];
        }
        dot += dw[j] * w[j];
      }
      for (int64_t j = 0; j < p->keys; j++)
        for (int64_t e = 0; e < p->size; e++) {
          double ds = w[j] * (dw[j] - dot) * p->scale;
          dq[at * p->size + e] += ds * key[j * p->size + e];
          dkey[j * p->size + e] += ds * query[e];
        }
    }
  free(w), free(q), free(k), free(v), free(g);
}

/* Checks all elements; the tolerance is relative to the largest expected one. */
static bool same(const char *what, const Problem *p, const lt_Tensor *t, const double *expected) {
  double largest = 1;
  for (int64_t i = 0; i < t->numel; i++)
    if (isfinite(expected[i])) largest = fmax(largest, fabs(expected[i]));
  for (int64_t i = 0; i < t->numel; i++) {
    double x = number(t, i);
    if (x == expected[i] || fabs(x - expected[i]) <= 2 * tolerance_of(p->dtype) * largest) continue;
    check_report(__FILE__, __LINE__,
                 "%s of %s, %lld heads, %lld x %lld, sizes %lld and %lld%s%s: "
                 "element %lld is %.9g, expected %.9g",
                 what, lt_dtype_name(p->dtype), (long long)p->heads, (long long)p->queries,
                 (long long)p->keys, (long long)p->size, (long long)p->value_size,
                 p->causal ? ", causal" : "", p->mask ? ", masked" : "", (long long)i, x,
                 expected[i]);
    return false;
  }
  return true;
}

/* Runs a problem with query, key, value and the gradient in a layout, and checks all results. */
static bool check_problem(const Problem *p, int layout) {
  int64_t shape[4][4] = {{BATCH, p->heads, p->queries, p->size},
                         {BATCH, p->shared, p->keys, p->size},
                         {BATCH, p->shared, p->keys, p->value_size},
                         {BATCH, p->heads, p->queries, p->value_size}};
  lt_Tensor *in[4], *y[LT_MAX_OUT], *d[LT_MAX_OUT];
  for (int i = 0; i < 4; i++)
    in[i] = laid_out(noise(p->dtype, 4, shape[i], (unsigned)(7 * i + layout)), layout);
  lt_Arg mask = p->mask ? LT_ARG(p->mask) : LT_NIL, causal = LT_ARG((bool)p->causal);
  if (!RUN_OP(y, _attention, false, LT_ARG(in[0]), LT_ARG(in[1]), LT_ARG(in[2]), mask, causal,
              LT_ARG(p->scale)) ||
      !RUN_OP(d, _attention_backward, false, LT_ARG(in[3]), LT_ARG(in[0]), LT_ARG(in[1]),
              LT_ARG(in[2]), mask, LT_ARG(y[0]), LT_ARG(y[1]), causal, LT_ARG(p->scale)))
    return false;
  lt_Tensor *result[] = {y[0], y[1], d[0], d[1], d[2]};
  static const char *const name[] = {"result", "logsumexp", "dq", "dk", "dv"};
  double *expected[5];
  bool ok = true;
  for (int i = 0; i < 5; i++) expected[i] = calloc((size_t)result[i]->numel + 1, sizeof(double));
  reference(p, BATCH, in, expected[0], expected[1], expected[2], expected[3], expected[4]);
  for (int i = 0; i < 5; i++) ok = ok && same(name[i], p, result[i], expected[i]);
  for (int i = 0; i < 5; i++) free(expected[i]);
  return ok;
}

/* queries, keys, size, value_size */
static const int64_t sizes[][4] = {
    {1, 1, 1, 1},      {1, 70, 5, 3},    {3, 65, 18, 33}, {7, 9, 4, 4},     {31, 33, 8, 20},
    {33, 31, 16, 7},   {63, 65, 17, 32}, {64, 64, 33, 9}, {65, 129, 12, 5}, {130, 40, 3, 24},
    {9, 130, 40, 6},   {129, 128, 2, 1}, {9, 31, 32, 32}, {64, 64, 64, 32}, {33, 65, 32, 96},
    {130, 97, 96, 64}, {12, 1, 32, 64},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static Problem problem(lt_Dtype dtype, int s) {
  return (Problem){.dtype = dtype,
                   .heads = 1,
                   .shared = 1,
                   .queries = sizes[s][0],
                   .keys = sizes[s][1],
                   .size = sizes[s][2],
                   .value_size = sizes[s][3],
                   .scale = 2.5 / sqrt((double)sizes[s][2])};
}

static void follows_the_formula(void) {
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (int s = 0; s < SIZES; s++)
      for (int causal = 0; causal < 2; causal++) {
        Problem p = problem((lt_Dtype)d, s);
        p.causal = causal;
        if (!check_problem(&p, (s + d + causal) % 3)) return;
      }
}

/* Returns a mask: of bool, with whole rows masked, or of numbers, some of them -inf. */
static lt_Tensor *mask_of(const Problem *p, lt_Dtype dtype, const int64_t *shape) {
  lt_Tensor *m = noise(dtype, 4, shape, 3);
  for (int64_t i = 0; i < m->numel; i++) {
    bool hidden = i / p->keys % 5 == 2;
    if (dtype == LT_bool) {
      if (hidden) ((uint8_t *)lt_tensor_data(m))[i] = 0;
    } else if (hidden || i % 3 == 1) {
      lt_scalar_store(lt_scalar_float(-INFINITY), dtype,
                      (char *)lt_tensor_data(m) + (size_t)i * lt_dtype_size(dtype));
    }
  }
  return m;
}

static void masks_hide_keys(void) {
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (int s = 0; s < SIZES; s++)
      for (int kind = 0; kind < 6; kind++) {
        Problem p = problem((lt_Dtype)d, s);
        p.heads = p.shared = 2;
        int64_t shape[4] = {kind % 3 ? 1 : BATCH, kind % 3 == 1 ? 1 : 2, p.queries, p.keys};
        if (kind % 3 == 2) shape[2] = 1;
        p.mask = mask_of(&p, kind < 3 ? LT_bool : lt_dtype_accumulate((lt_Dtype)d), shape);
        p.mask = laid_out(p.mask, s % 3);
        if (!check_problem(&p, 0)) return;
      }
}

static void heads_share_keys(void) {
  for (int s = 0; s < SIZES; s++)
    for (int shared = 1; shared <= 3; shared += 2)
      for (int causal = 0; causal < 2; causal++) {
        Problem p = problem(LT_float32, s);
        p.heads = 6, p.shared = shared, p.causal = causal;
        if (!check_problem(&p, s % 3)) return;
      }
}

/* Keys are divided into ranges, whose gradients of queries are added. */
static void long_rows(void) {
  for (int causal = 0; causal < 2; causal++) {
    Problem p = {.dtype = LT_float32,
                 .heads = 1,
                 .shared = 1,
                 .queries = causal ? 2100 : 40,
                 .keys = 2100,
                 .size = 3,
                 .value_size = 2,
                 .causal = causal,
                 .scale = 1};
    if (!check_problem(&p, 0)) return;
  }
}

static void threads_make_no_difference(void) {
  int was = lt_num_threads();
  static const int64_t cases[][4] = {{1, 9, 150, 170}, {1, 1, 300, 4200}, {3, 4, 200, 80}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int causal = 0; causal < 2; causal++) {
      int64_t b = cases[i][0], h = cases[i][1], n = cases[i][2], m = cases[i][3];
      lt_Tensor *q = noise(LT_float32, SHAPE(b, h, n, 20), 1),
                *k = noise(LT_float32, SHAPE(b, h, m, 20), 2),
                *v = noise(LT_float32, SHAPE(b, h, m, 9), 3),
                *g = noise(LT_float32, SHAPE(b, h, n, 9), 4), *y[2][LT_MAX_OUT], *d[2][LT_MAX_OUT];
      for (int t = 0; t < 2; t++) {
        lt_set_num_threads(t ? 3 : 1);
        if (!RUN_OP(y[t], _attention, false, LT_ARG(q), LT_ARG(k), LT_ARG(v), LT_NIL,
                    LT_ARG((bool)causal), LT_ARG(0.5)) ||
            !RUN_OP(d[t], _attention_backward, false, LT_ARG(g), LT_ARG(q), LT_ARG(k), LT_ARG(v),
                    LT_NIL, LT_ARG(y[t][0]), LT_ARG(y[t][1]), LT_ARG((bool)causal), LT_ARG(0.5)))
          break;
      }
      lt_set_num_threads(was);
      CHECK(memcmp(lt_tensor_data(y[0][0]), lt_tensor_data(y[1][0]), (size_t)y[0][0]->numel * 4) ==
            0);
      for (int r = 0; r < 3; r++)
        CHECK(memcmp(lt_tensor_data(d[0][r]), lt_tensor_data(d[1][r]),
                     (size_t)d[0][r]->numel * 4) == 0);
    }
}

extern const lt_AttentionKernels lt_attention_kernels_base;
#ifdef LT_ISA_AVX2
extern const lt_AttentionKernels lt_attention_kernels_avx2;
#endif

/* Runs the loops of one instruction set on dense matrices of one head, and checks the results. */
static bool check_kernels(const lt_AttentionKernels *kernels, Problem *p) {
  int64_t n = p->queries, m = p->keys, e = p->size, f = p->value_size;
  lt_Tensor *q = noise(p->dtype, SHAPE(1, n, e), 1), *k = noise(p->dtype, SHAPE(1, m, e), 2),
            *v = noise(p->dtype, SHAPE(1, m, f), 3), *g = noise(p->dtype, SHAPE(1, n, f), 4);
  lt_Tensor *out = noise(p->dtype, SHAPE(1, n, f), 5), *lse = noise(p->dtype, SHAPE(1, n), 6);
  lt_Tensor *d[3] = {noise(p->dtype, SHAPE(1, n, e), 7), NULL, NULL};
  bool wide = p->dtype == LT_float64, ok = true;
  d[1] = lt_do(zeros_like, LT_ARG(k)), d[2] = lt_do(zeros_like, LT_ARG(v));
#define MATRIX(t) {lt_tensor_data(t), p->dtype, (t)->strides[1], 1}
  lt_Head h = {.q = MATRIX(q),
               .k = MATRIX(k),
               .v = MATRIX(v),
               .causal = p->causal,
               .queries = n,
               .keys = m,
               .size = e,
               .value_size = f,
               .scale = p->scale,
               .out = lt_tensor_data(out),
               .lse = lt_tensor_data(lse),
               .grad = MATRIX(g),
               .result = MATRIX(out),
               .dq = lt_tensor_data(d[0]),
               .dk = lt_tensor_data(d[1]),
               .dv = lt_tensor_data(d[2])};
  size_t a = wide ? kernels->forward_bytes_f64(&h) : kernels->forward_bytes_f32(&h);
  size_t b = wide ? kernels->backward_bytes_f64(&h) : kernels->backward_bytes_f32(&h);
  if (posix_memalign(&h.scratch, 64, a > b ? a : b)) return false;
  for (int64_t i = 0; i < n; i += LT_ATTENTION_TILE) {
    int64_t count = n - i < LT_ATTENTION_TILE ? n - i : LT_ATTENTION_TILE;
    (wide ? kernels->forward_f64 : kernels->forward_f32)(&h, i, count);
  }
  (wide ? kernels->backward_f64 : kernels->backward_f32)(&h, 0, m);
  free(h.scratch);
  lt_Tensor *result[] = {out, lse, d[0], d[1], d[2]}, *in[] = {q, k, v, g};
  static const char *const name[] = {"result", "logsumexp", "dq", "dk", "dv"};
  double *expected[5];
  for (int i = 0; i < 5; i++) expected[i] = calloc((size_t)result[i]->numel + 1, sizeof(double));
  reference(p, 1, in, expected[0], expected[1], expected[2], expected[3], expected[4]);
  for (int i = 0; i < 5; i++) ok = ok && same(name[i], p, result[i], expected[i]);
  for (int i = 0; i < 5; i++) free(expected[i]);
  return ok;
}

static void each_instruction_set(void) {
  for (int d = LT_float32; d <= LT_float64; d++)
    for (int s = 0; s < SIZES; s++)
      for (int causal = 0; causal < 2; causal++) {
        Problem p = problem((lt_Dtype)d, s);
        p.causal = causal;
        if (!check_kernels(&lt_attention_kernels_base, &p)) return;
#ifdef LT_ISA_AVX2
        if (strcmp(lt_cpu_isa()->name, "base") != 0 &&
            !check_kernels(&lt_attention_kernels_avx2, &p))
          return;
#endif
      }
}

static void special_values(void) {
  lt_Tensor *y[LT_MAX_OUT], *d[LT_MAX_OUT];
  lt_Tensor *column = from_list(LT_float32, (double[]){1, 2}, SHAPE(2, 1));
  lt_Tensor *bad = from_list(LT_float32, (double[]){3, NAN}, SHAPE(2, 1));
  /* NaN in a value reaches the queries that have it; in a key, their weights. */
  REQUIRE(RUN_OP(y, _attention, false, LT_ARG(column), LT_ARG(column), LT_ARG(bad), LT_NIL,
                 LT_ARG(true), LT_ARG(1.0)));
  CHECK(isnan(number(y[0], 1)));
  REQUIRE(RUN_OP(y, _attention, false, LT_ARG(column), LT_ARG(bad), LT_ARG(column), LT_NIL,
                 LT_ARG(true), LT_ARG(1.0)));
  CHECK(isnan(number(y[0], 1)));
  /* Scores far apart, whose exponentials vanish. */
  lt_Tensor *far = from_list(LT_float32, (double[]){-1e30, 0, 1e30}, SHAPE(3, 1));
  lt_Tensor *values = from_list(LT_float32, (double[]){5, 6, 7}, SHAPE(3, 1));
  REQUIRE(RUN_OP(y, _attention, false, LT_ARG(column), LT_ARG(far), LT_ARG(values), LT_NIL,
                 LT_ARG(false), LT_ARG(1.0)));
  CHECK_TENSOR(y[0], 0, L(2, 1), 7, 7);
  /* No keys, no queries. */
  lt_Tensor *none = noise(LT_float32, SHAPE(0, 1), 1);
  REQUIRE(RUN_OP(y, _attention, false, LT_ARG(column), LT_ARG(none), LT_ARG(none), LT_NIL,
                 LT_ARG(false), LT_ARG(1.0)));
  CHECK_TENSOR(y[0], 0, L(2, 1), 0, 0);
  REQUIRE(RUN_OP(d, _attention_backward, false, LT_ARG(column), LT_ARG(column), LT_ARG(none),
                 LT_ARG(none), LT_NIL, LT_ARG(y[0]), LT_ARG(y[1]), LT_ARG(false), LT_ARG(1.0)));
  CHECK_TENSOR(d[0], 0, L(2, 1), 0, 0);
  REQUIRE(RUN_OP(y, _attention, false, LT_ARG(none), LT_ARG(column), LT_ARG(column), LT_NIL,
                 LT_ARG(false), LT_ARG(1.0)));
  CHECK_INT(y[0]->numel, 0);
}

/* The memory of the process grows by far less than the 256 MB of a matrix of all scores. */
static void memory_is_linear(void) {
  if (test_device().type != LT_DEVICE_cpu) SKIP("measures memory of the host");
  lt_Tensor *x = noise(LT_float32, SHAPE(8192, 4), 1), *y[LT_MAX_OUT], *d[LT_MAX_OUT];
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  REQUIRE(RUN_OP(y, _attention, false, LT_ARG(x), LT_ARG(x), LT_ARG(x), LT_NIL, LT_ARG(false),
                 LT_ARG(0.5)));
  REQUIRE(RUN_OP(d, _attention_backward, false, LT_ARG(x), LT_ARG(x), LT_ARG(x), LT_ARG(x), LT_NIL,
                 LT_ARG(y[0]), LT_ARG(y[1]), LT_ARG(false), LT_ARG(0.5)));
  getrusage(RUSAGE_SELF, &after);
#ifdef __APPLE__
  long kilobytes = (after.ru_maxrss - before.ru_maxrss) / 1024;
#else
  long kilobytes = after.ru_maxrss - before.ru_maxrss;
#endif
  CHECK(kilobytes < 32768);
}

int main(void) {
  RUN_SCOPED(memory_is_linear);
  RUN_SCOPED(follows_the_formula);
  RUN_SCOPED(masks_hide_keys);
  RUN_SCOPED(heads_share_keys);
  RUN_SCOPED(long_rows);
  RUN_SCOPED(each_instruction_set);
  RUN_SCOPED(threads_make_no_difference);
  RUN_SCOPED(special_values);
  return check_end();
}
