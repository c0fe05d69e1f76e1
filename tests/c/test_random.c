/* test_random.c: Philox against its published vectors; each number depends on the seed, the
 * generator's position and the element's index only, not on threads or other elements; the
 * distributions against their moments, ranges and frequencies. */
#include "tensors.h"
#include "philox.h"
#include "cpu/permutation.h"
#include "cpu/rows.h"

/* kat_vectors of Random123 (Salmon et al. 2011), philox4x32 with 10 rounds. */
static void philox_gives_the_published_blocks(void) {
  static const struct {
    uint32_t counter[4], key[2], expected[4];
  } known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    uint32_t out[4];
    lt_philox(known[i].counter, known[i].key, out);
    for (int k = 0; k < 4; k++) CHECK_INT(out[k], known[i].expected[k]);
  }
}

/* The vector loop gives the same blocks as the scalar one, also where the counter carries. */
static void philox_of_many_blocks_matches_single_blocks(void) {
  static const uint64_t positions_[] = {0, 5, 0xfffffff0u, 0xfffffffffffffff8u};
  for (size_t i = 0; i < 4; i++)
    for (int64_t n = 1; n < 70; n += 17) {
      uint32_t words[4 * 70], one[4];
      lt_rows()->philox(0x123456789abcdefu, positions_[i], n, words);
      for (int64_t b = 0; b < n; b++) {
        lt_philox_block((lt_Philox){0x123456789abcdefu, positions_[i]}, b, one);
        CHECK(memcmp(one, words + 4 * b, sizeof one) == 0);
      }
    }
}

/* Returns the upper 64 bits of a product, by long multiplication in base 2. */
static uint64_t high_of(uint64_t a, uint64_t b) {
  uint64_t high = 0, low = 0;
  for (int i = 63; i >= 0; i--) {
    high = high << 1 | low >> 63;
    low <<= 1;
    if (b >> i & 1) {
      low += a;
      high += low < a;
    }
  }
  return high;
}

static void integers_by_multiplication(void) {
  CHECK_INT(lt_below(0, 6), 0);
  CHECK_INT(lt_below(UINT64_MAX, 6), 5);
  CHECK_INT(lt_below((uint64_t)1 << 63, 6), 3);
  CHECK(lt_below(0xdeadbeefcafebabeu, 0) == 0xdeadbeefcafebabeu);
  for (uint64_t i = 1; i < 2000; i++) {
    uint64_t w = i * 0x9E3779B97F4A7C15u, n = w >> (i % 60);
    CHECK(lt_below(w * 31, n) == high_of(w * 31, n) || n == 0);
  }
}

typedef struct Kind {
  lt_OpId op;
  lt_Dtype dtype;
  double a, b; /* the first arguments; NAN: none */
} Kind;
static const Kind kinds[] = {
    {LT_OP_uniform, LT_float32, 0, 1},       {LT_OP_uniform, LT_float64, -2, 3},
    {LT_OP_uniform, LT_float16, 0, 1},       {LT_OP_uniform, LT_bfloat16, 0, 1},
    {LT_OP_normal, LT_float32, 1, 2},        {LT_OP_normal, LT_float64, 1, 2},
    {LT_OP_normal, LT_float16, 0, 1},        {LT_OP_exponential, LT_float32, 2, NAN},
    {LT_OP_exponential, LT_float64, 2, NAN}, {LT_OP_random, LT_int64, 1, 6},
    {LT_OP_random, LT_float32, 1, 6},        {LT_OP_random, LT_uint8, 1, 6},
    {LT_OP__bernoulli, LT_bool, 0.25, NAN},  {LT_OP__bernoulli, LT_float32, 0.25, NAN},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Draws n numbers of a kind from a generator. */
static lt_Tensor *drawn(const Kind *k, lt_Generator *g, int64_t n) {
  bool whole = k->op == LT_OP_random, one = isnan(k->b);
  lt_Tensor *t = noise(k->dtype, SHAPE(n), 1), *y[LT_MAX_OUT];
  lt_Arg args[4] = {LT_ARG(t), whole ? LT_ARG((int64_t)k->a) : LT_ARG(k->a),
                    whole ? LT_ARG((int64_t)k->b) : LT_ARG(k->b), LT_ARG(g)};
  if (one) args[2] = LT_ARG(g);
  return run_op(__FILE__, __LINE__, k->op, true, args, one ? 3 : 4, y) ? t : NULL;
}

static bool same_bytes(const lt_Tensor *a, const lt_Tensor *b, int64_t n) {
  return memcmp(lt_tensor_data(a), lt_tensor_data(b), (size_t)n * lt_dtype_size(a->dtype)) == 0;
}

/* The first numbers of a call are the same however many follow, with any number of threads; the
 * next call continues the sequence. */
static void numbers_depend_on_seed_and_index_only(void) {
  lt_Generator *g = lt_generator_new(42);
  int was = lt_num_threads();
  REQUIRE(g);
  for (size_t k = 0; k < KINDS; k++) {
    if (!has_dtype(kinds[k].dtype)) continue;
    static const int64_t sizes[] = {1, 2, 3, 5, 511, 513, 1023, 1025, 40001};
    lt_set_num_threads(1);
    lt_generator_seed(g, 7);
    lt_Tensor *all = drawn(&kinds[k], g, 40001), *next = drawn(&kinds[k], g, 1000);
    REQUIRE(all && next);
    CHECK(!same_bytes(all, next, 1000));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      lt_set_num_threads(1 + (int)i % 4);
      lt_generator_seed(g, 7);
      lt_Tensor *t = drawn(&kinds[k], g, sizes[i]);
      REQUIRE(t);
      if (!same_bytes(t, all, sizes[i]))
        check_report(__FILE__, __LINE__, "kind %d differs for %lld numbers", (int)k,
                     (long long)sizes[i]);
    }
    lt_generator_seed(g, 8);
    lt_Tensor *other = drawn(&kinds[k], g, 1000);
    REQUIRE(other);
    CHECK(!same_bytes(other, all, 1000));
  }
  lt_set_num_threads(was);
  lt_generator_free(g);
}

/* In a strided self, the same numbers are in the order of the shape. */
static void layout_makes_no_difference(void) {
  lt_Generator *g = lt_generator_new(3);
  lt_Tensor *a = noise(LT_float32, SHAPE(5, 7), 1),
            *b = laid_out(noise(LT_float32, SHAPE(5, 7), 1), 1), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, uniform, true, LT_ARG(a), LT_ARG(0.0), LT_ARG(1.0), LT_ARG(g)));
  lt_generator_seed(g, 3);
  REQUIRE(RUN_OP(y, uniform, true, LT_ARG(b), LT_ARG(0.0), LT_ARG(1.0), LT_ARG(g)));
  for (int i = 0; i < 35; i++) CHECK(number(a, i) == number(b, i));
  lt_generator_free(g);
}

/* The documented mapping: element i of float32 uses word i % 4 of block i / 4, of float64 two words
 * of block i / 2. */
static void uniform_maps_words_as_documented(void) {
  lt_Generator *g = lt_generator_new(0);
  Kind f = {LT_OP_uniform, LT_float32, 0, 1}, d = {LT_OP_uniform, LT_float64, 0, 1};
  lt_Tensor *x = drawn(&f, g, 4);
  REQUIRE(x);
  static const uint32_t first[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; i++) CHECK_NEAR(number(x, i), (first[i] >> 8) / 16777216.0, 0);
  lt_generator_seed(g, 0);
  if (!has_dtype(LT_float64)) {
    lt_generator_free(g);
    return;
  }
  x = drawn(&d, g, 2);
  REQUIRE(x);
  CHECK_NEAR(number(x, 0), (double)(0xe169c58d6627e8d5u >> 11) * 0x1p-53, 0);
  CHECK_NEAR(number(x, 1), (double)(0x9b00dbd8bc57ac4cu >> 11) * 0x1p-53, 0);
  Kind normal = {LT_OP_normal, LT_float64, 0, 1};
  lt_generator_seed(g, 0);
  lt_Tensor *z = drawn(&normal, g, 2);
  REQUIRE(z);
  double r = sqrt(-2 * log((double)((0xe169c58d6627e8d5u >> 11) + 1) * 0x1p-53));
  double a = 2 * 3.14159265358979323846 * number(x, 1);
  CHECK_NEAR(number(z, 0), r * cos(a), 1e-12);
  CHECK_NEAR(number(z, 1), r * sin(a), 1e-12);
  lt_generator_free(g);
}

/* Mean and variance of n numbers are within five standard errors of the expected values (the error
 * of the variance is computed from the distribution's fourth central moment). */
static void moments_match_the_distribution(void) {
  static const double mean[KINDS] = {0.5, 0.5, 0.5, 0.5, 1,   1,    0,
                                     0.5, 0.5, 3.5, 3.5, 3.5, 0.25, 0.25};
  static const double var[KINDS] = {1 / 12., 25 / 12., 1 / 12.,  1 / 12.,  4,      4,     1, 0.25,
                                    0.25,    35 / 12., 35 / 12., 35 / 12., 0.1875, 0.1875};
  static const double kurtosis[KINDS] = {1.8, 1.8, 1.8,   1.8,   3,     3,     3,
                                         9,   9,   1.731, 1.731, 1.731, 2.333, 2.333};
  lt_Generator *g = lt_generator_new(2024);
  double n = 40000;
  for (size_t k = 0; k < KINDS; k++) {
    if (!has_dtype(kinds[k].dtype)) continue;
    lt_Tensor *x = drawn(&kinds[k], g, (int64_t)n);
    REQUIRE(x);
    double m = 0, v = 0,
           half = kinds[k].dtype == LT_bfloat16  ? 2e-3
                  : kinds[k].dtype == LT_float16 ? 3e-4
                                                 : 0;
    for (int64_t i = 0; i < (int64_t)n; i++) m += number(x, i) / n;
    for (int64_t i = 0; i < (int64_t)n; i++) v += (number(x, i) - m) * (number(x, i) - m) / n;
    CHECK_NEAR(m, mean[k], 5 * sqrt(var[k] / n) + half);
    CHECK_NEAR(v, var[k], 5 * var[k] * sqrt((kurtosis[k] - 1) / n) + half);
  }
  lt_generator_free(g);
}

static void results_stay_in_range(void) {
  lt_Generator *g = lt_generator_new(5);
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1)) {
    Kind k = {LT_OP_uniform, (lt_Dtype)d, 1000, 1001}; /* rounding would give 1001 in the halves */
    lt_Tensor *x = drawn(&k, g, 20000);
    REQUIRE(x);
    bool inside = true;
    for (int64_t i = 0; i < x->numel; i++)
      inside = inside && number(x, i) >= 1000 && number(x, i) < 1001;
    CHECK(inside);
  }
  Kind die = {LT_OP_random, LT_int8, -3, 2};
  lt_Tensor *x = drawn(&die, g, 60000);
  REQUIRE(x);
  int64_t count[6] = {0};
  for (int64_t i = 0; i < x->numel; i++) {
    int64_t v = element(x, i).i + 3;
    REQUIRE(v >= 0 && v < 6);
    count[v]++;
  }
  for (int i = 0; i < 6; i++) CHECK_NEAR((double)count[i], 10000, 5 * sqrt(60000 * 5 / 36.));
  lt_Tensor *y[LT_MAX_OUT], *wide = noise(LT_int64, SHAPE(1000), 1);
  REQUIRE(RUN_OP(y, random, true, LT_ARG(wide), LT_ARG(INT64_MIN), LT_ARG(INT64_MAX), LT_ARG(g)));
  int64_t negative = 0;
  for (int i = 0; i < 1000; i++) negative += element(wide, i).i < 0;
  CHECK_NEAR((double)negative, 500, 100);
  lt_generator_free(g);
}

static void bernoulli_takes_probabilities(void) {
  lt_Tensor *p = V(float32, 0, 1, 0.5), *y[LT_MAX_OUT], *x = noise(LT_float32, SHAPE(2000, 3), 1);
  REQUIRE(RUN_OP(y, _bernoulli, true, LT_ARG(x), LT_ARG(p)));
  double sum[3] = {0};
  for (int i = 0; i < 6000; i++) sum[i % 3] += number(x, i);
  CHECK_NEAR(sum[0], 0, 0);
  CHECK_NEAR(sum[1], 2000, 0);
  CHECK_NEAR(sum[2], 1000, 112);
  REQUIRE(RUN_OP(y, _bernoulli_of, false, LT_ARG(p)));
  CHECK_NEAR(number(y[0], 0), 0, 0);
  CHECK_NEAR(number(y[0], 1), 1, 0);
  CHECK_FAILS("expected probabilities from 0 to 1, got 1.5 (element 2 of {2})", _bernoulli_of,
              false, LT_ARG(V(float32, 1, 1.5)));
  CHECK_FAILS("expected probabilities from 0 to 1, got nan (element 1 of {1})", _bernoulli_of,
              false, LT_ARG(V(float32, NAN)));
}

/* Checks that lt_permutation sorts 1..n by their random numbers; equal numbers stay in order. */
static void check_permutation(uint64_t seed, int64_t n) {
  lt_Philox p = {seed, 7};
  int64_t *x = calloc((size_t)n, sizeof *x);
  bool *seen = calloc((size_t)n + 1, 1);
  REQUIRE(x && seen && lt_permutation(p, n, x));
  uint64_t before = 0;
  for (int64_t i = 0; i < n; i++) {
    REQUIRE(x[i] >= 1 && x[i] <= n && !seen[x[i]]);
    seen[x[i]] = true;
    uint64_t key = lt_philox_wide(p, x[i] - 1);
    REQUIRE(i == 0 || before < key || (before == key && x[i - 1] < x[i]));
    before = key;
  }
  free(x);
  free(seen);
}

/* Sizes around those of parts and buckets, and many items, of which some share the highest bits. */
static void permutations_are_sorted_by_random_numbers(void) {
  static const int64_t sizes[] = {1,    2,    3,    511,  512,   513,   1023,   1024,   1025,
                                  2047, 2048, 4099, 8191, 20000, 65537, 300000, 1 << 21};
  int threads = lt_num_threads();
  for (int t = 1; t <= 3; t += 2) {
    lt_set_num_threads(t);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) check_permutation(s, sizes[s]);
    check_permutation(4, 1 << 21); /* two numbers differ in bits below the highest 44 only */
  }
  lt_set_num_threads(threads);
}

static void randperm_is_a_permutation(void) {
  static const int64_t sizes[] = {0, 1, 2, 10, 1000};
  lt_Generator *g = lt_generator_new(1);
  for (size_t s = 0; s < 5; s++) {
    lt_Tensor *y[LT_MAX_OUT], *again[LT_MAX_OUT];
    lt_generator_seed(g, 1);
    REQUIRE(RUN_OP(y, randperm, false, LT_ARG(sizes[s]), LT_ARG(g)));
    lt_generator_seed(g, 1);
    REQUIRE(RUN_OP(again, randperm, false, LT_ARG(sizes[s]), LT_ARG(g), D(float32)));
    bool seen[1001] = {false};
    int64_t home = 0;
    for (int64_t i = 0; i < sizes[s]; i++) {
      int64_t v = element(y[0], i).i;
      REQUIRE(v >= 1 && v <= sizes[s] && !seen[v]);
      seen[v] = true;
      home += v == i + 1;
      CHECK_NEAR(number(again[0], i), (double)v, 0);
    }
    CHECK(sizes[s] < 1000 || home < 8);
  }
  /* each of the 6 orders of 3 equally often */
  int64_t count[27] = {0};
  for (int i = 0; i < 6000; i++) {
    size_t mark = lt_scope_open();
    lt_Tensor *y[LT_MAX_OUT];
    if (RUN_OP(y, randperm, false, LT_ARG(3), LT_ARG(g)))
      count[(element(y[0], 0).i - 1) * 9 + (element(y[0], 1).i - 1) * 3 + element(y[0], 2).i - 1]++;
    lt_scope_close(mark, NULL);
  }
  static const int orders[6] = {5, 7, 11, 15, 19, 21};
  for (int i = 0; i < 6; i++) CHECK_NEAR((double)count[orders[i]], 1000, 145);
  lt_generator_free(g);
}

/* Every integer is lt_below of the element's 64 bits: for spans of 1, below and above 2^32. */
static void integers_are_below_of_the_words(void) {
  static const uint64_t spans[] = {1, 100, UINT32_MAX, (uint64_t)1 << 32, ((uint64_t)1 << 40) + 7};
  for (size_t s = 0; s < sizeof spans / sizeof *spans; s++) {
    int64_t n = 1001, from = -50;
    lt_Generator *g = lt_generator_new(8);
    lt_Tensor *x = noise(LT_int64, SHAPE(n), 1), *y[LT_MAX_OUT];
    REQUIRE(RUN_OP(y, random, true, LT_ARG(x), LT_ARG(from), LT_ARG(from + (int64_t)(spans[s] - 1)),
                   LT_ARG(g)));
    lt_generator_seed(g, 8);
    lt_Philox p;
    lt_generator_reserve(g, 1, &p.seed, &p.position);
    const int64_t *drawn = lt_tensor_data(x);
    for (int64_t i = 0; i < n; i++)
      REQUIRE(drawn[i] == from + (int64_t)lt_below(lt_philox_wide(p, i), spans[s]));
    lt_generator_free(g);
  }
}

/* Draws with replacement are the first indices whose cumulative weight is above a fraction of the
 * sum: for rows and numbers of draws that are no multiples of blocks, and for threads in a row. */
static void multinomial_inverts_the_cumulative_weights(void) {
  static const int64_t sizes[][3] = {{1, 1, 5}, {3, 7, 1001}, {1, 1003, 70001}, {5, 66, 513}};
  int threads = lt_num_threads();
  for (int t = 1; t <= 3; t += 2)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      int64_t rows = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
      lt_Generator *g = lt_generator_new(5);
      double *w = calloc((size_t)(rows * n), sizeof *w);
      REQUIRE(w);
      for (int64_t i = 0; i < rows * n; i++) w[i] = (double)(i * 7 % 5) + (i == 0); /* some are 0 */
      lt_Tensor *x = from_list(LT_float32, w, SHAPE(rows, n)), *y[LT_MAX_OUT];
      lt_set_num_threads(t);
      REQUIRE(RUN_OP(y, multinomial, false, LT_ARG(x), LT_ARG(k), LT_ARG((bool)true), LT_ARG(g)));
      lt_generator_seed(g, 5);
      lt_Philox p;
      lt_generator_reserve(g, 1, &p.seed, &p.position);
      const int64_t *drawn = lt_tensor_data(y[0]);
      for (int64_t j = 0; j < rows * k; j++) {
        const double *row = w + j / k * n;
        double sum = 0, above = 0;
        for (int64_t i = 0; i < n; i++) sum += row[i];
        double u = lt_fraction64(lt_philox_wide(p, j)) * sum;
        int64_t i = 0;
        while ((above += row[i]) <= u) i++;
        REQUIRE(drawn[j] == i + 1);
      }
      free(w);
      lt_generator_free(g);
    }
  lt_set_num_threads(threads);
}

/* Draws without replacement are the indices of the least times -log(u) / w, in their order: also in
 * rows that begin in the middle of a block, and for threads in a row. */
static void multinomial_draws_the_least_times(void) {
  static const int64_t sizes[][3] = {{1, 3, 2}, {3, 7, 4}, {1, 70003, 40}, {5, 513, 200}};
  int threads = lt_num_threads();
  for (int t = 1; t <= 3; t += 2)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      int64_t rows = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
      lt_Generator *g = lt_generator_new(6);
      double *w = calloc((size_t)(rows * n), sizeof *w);
      REQUIRE(w);
      for (int64_t i = 0; i < rows * n; i++) w[i] = (double)(i * 7 % 5); /* some are 0 */
      lt_Tensor *x = from_list(LT_float32, w, SHAPE(rows, n)), *y[LT_MAX_OUT];
      lt_set_num_threads(t);
      REQUIRE(RUN_OP(y, multinomial, false, LT_ARG(x), LT_ARG(k), LT_ARG((bool)false), LT_ARG(g)));
      lt_generator_seed(g, 6);
      lt_Philox p;
      lt_generator_reserve(g, 1, &p.seed, &p.position);
      const int64_t *drawn = lt_tensor_data(y[0]);
      for (int64_t i = 0; i < rows * n; i++) /* w becomes the times */
        w[i] = w[i] > 0 ? -log(lt_positive64(lt_philox_wide(p, i))) / w[i] : INFINITY;
      for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < k; j++) {
          double *row = w + r * n;
          int64_t least = 0;
          for (int64_t i = 1; i < n; i++)
            if (row[i] < row[least]) least = i;
          REQUIRE(drawn[r * k + j] == least + 1);
          row[least] = INFINITY;
        }
      free(w);
      lt_generator_free(g);
    }
  lt_set_num_threads(threads);
}

static void multinomial_draws_by_weight(void) {
  lt_Generator *g = lt_generator_new(11);
  lt_Tensor *w = from_list(LT_float32, (double[]){1, 0, 3, 4, 0, 0, 5, 0}, SHAPE(2, 4)),
            *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, multinomial, false, LT_ARG(w), LT_ARG(8000), LT_ARG((bool)true), LT_ARG(g)));
  CHECK_INT(y[0]->dtype, LT_int64);
  int64_t count[5] = {0};
  for (int i = 0; i < 8000; i++) {
    int64_t v = element(y[0], i).i;
    REQUIRE(v >= 1 && v <= 4);
    count[v]++;
    CHECK_INT(element(y[0], 8000 + i).i, 3);
  }
  CHECK_INT(count[2], 0);
  CHECK_NEAR((double)count[1], 1000, 150);
  CHECK_NEAR((double)count[3], 3000, 217);
  CHECK_NEAR((double)count[4], 4000, 224);
  /* without replacement: distinct, the first one by weight; the others by the remaining weights */
  lt_Tensor *v = V(float32, 1, 3, 0, 4);
  int64_t first[5] = {0}, pair = 0;
  for (int i = 0; i < 4000; i++) {
    size_t mark = lt_scope_open();
    if (RUN_OP(y, multinomial, false, LT_ARG(v), LT_ARG(3), LT_ARG((bool)false), LT_ARG(g))) {
      int64_t a = element(y[0], 0).i, b = element(y[0], 1).i, c = element(y[0], 2).i;
      CHECK(a != b && b != c && a != c && a != 3 && b != 3 && c != 3);
      first[a]++;
      pair += a == 4 && b == 2;
    }
    lt_scope_close(mark, NULL);
  }
  CHECK_NEAR((double)first[1], 500, 105);
  CHECK_NEAR((double)first[2], 1500, 154);
  CHECK_NEAR((double)first[4], 2000, 159);
  CHECK_NEAR((double)pair, 1500, 154); /* 4/8 * 3/4 of 4000 */
  CHECK_FAILS("only 3 weights of row 1 are not 0", multinomial, false, LT_ARG(v), LT_ARG(4));
  CHECK_FAILS("got -1 (weight 2 of row 1)", multinomial, false, LT_ARG(V(float32, 1, -1)),
              LT_ARG(1));
  CHECK_FAILS("got nan (weight 1 of row 1)", multinomial, false, LT_ARG(V(float32, NAN)),
              LT_ARG(1));
  CHECK_FAILS("got row 1 with the sum 0", multinomial, false, LT_ARG(V(float32, 0, 0)), LT_ARG(1),
              LT_ARG((bool)true));
  lt_generator_free(g);
}

int main(void) {
  RUN_SCOPED(philox_gives_the_published_blocks);
  RUN_SCOPED(philox_of_many_blocks_matches_single_blocks);
  RUN_SCOPED(integers_by_multiplication);
  RUN_SCOPED(numbers_depend_on_seed_and_index_only);
  RUN_SCOPED(layout_makes_no_difference);
  RUN_SCOPED(uniform_maps_words_as_documented);
  RUN_SCOPED(moments_match_the_distribution);
  RUN_SCOPED(results_stay_in_range);
  RUN_SCOPED(bernoulli_takes_probabilities);
  RUN_SCOPED(permutations_are_sorted_by_random_numbers);
  RUN_SCOPED(randperm_is_a_permutation);
  RUN_SCOPED(multinomial_draws_by_weight);
  RUN_SCOPED(multinomial_inverts_the_cumulative_weights);
  RUN_SCOPED(multinomial_draws_the_least_times);
  RUN_SCOPED(integers_are_below_of_the_words);
  return check_end();
}
