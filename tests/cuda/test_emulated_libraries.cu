/* test_emulated_libraries.cu: the libraries of the emulated CUDA: half types, cuBLAS, CUB. */
#include "emulated.h"

#include <cub/cub.cuh>
#include <cublas_v2.h>

#include <algorithm>
#include <cmath>
#include <numeric>

/* ---- half types ------------------------------------------------------------------------------ */

/* Returns the value of a 16-bit float with that many mantissa bits, by definition. */
static double value_of(unsigned bits, int mantissa_bits, int bias) {
  unsigned exponent_bits = 15 - (unsigned)mantissa_bits, all = (1u << exponent_bits) - 1;
  unsigned exponent = bits >> mantissa_bits & all, mantissa = bits & ((1u << mantissa_bits) - 1);
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == all) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp(mantissa + (1u << mantissa_bits), (int)exponent - bias - mantissa_bits);
}

/* Returns the nearest of all values, ties to even. */
static unsigned nearest(double v, const std::vector<double> &positive, unsigned infinity) {
  unsigned sign = std::signbit(v) ? 0x8000u : 0;
  v = fabs(v);
  if (v != v) return 0x7fff;
  unsigned above =
      (unsigned)(std::lower_bound(positive.begin(), positive.end(), v) - positive.begin());
  if (above >= infinity) {
    /* between the largest number and the one that would follow it */
    double step = positive[infinity - 1] - positive[infinity - 2];
    return sign | (v - positive[infinity - 1] < step / 2 ? infinity - 1 : infinity);
  }
  if (above == 0 || positive[above] == v) return sign | above;
  double down = v - positive[above - 1], up = positive[above] - v;
  bool lower = down < up || (down == up && above % 2 == 1);
  return sign | (lower ? above - 1 : above);
}

static int wrong_half, wrong_bfloat16;

static void check_rounding(double v, const std::vector<double> &half,
                           const std::vector<double> &bfloat16) {
  float f = (float)v;
  unsigned expected_half = nearest(f, half, 0x7c00),
           expected_bfloat16 = nearest(f, bfloat16, 0x7f80);
  wrong_half += __half_as_ushort(__float2half(f)) != expected_half;
  wrong_bfloat16 += __bfloat16_as_ushort(__float2bfloat16(f)) != expected_bfloat16;
  /* from double in one step */
  wrong_half += __half_as_ushort(__double2half(v)) != nearest(v, half, 0x7c00);
  wrong_bfloat16 += __bfloat16_as_ushort(__double2bfloat16(v)) != nearest(v, bfloat16, 0x7f80);
}

static void conversions_of_halves() {
  std::vector<double> half, bfloat16;
  int wrong = 0;
  for (unsigned i = 0; i < 65536; i++) {
    double h = value_of(i, 10, 15), b = value_of(i, 7, 127);
    float actual_h = __half2float(__ushort_as_half((unsigned short)i));
    float actual_b = __bfloat162float(__ushort_as_bfloat16((unsigned short)i));
    wrong += !(actual_h == h || (std::isnan(actual_h) && std::isnan(h)));
    wrong += !(actual_b == b || (std::isnan(actual_b) && std::isnan(b)));
    wrong += std::signbit(actual_h) != std::signbit(h) && !std::isnan(h);
    if (i <= 0x7c00) half.push_back(h);
    if (i <= 0x7f80) bfloat16.push_back(b);
  }
  CHECK_INT(wrong, 0);
  /* at each value, beside it, and half-way to the next */
  for (const std::vector<double> *all : {&half, &bfloat16})
    for (size_t i = 0; i + 2 < all->size(); i++) {
      double v = (*all)[i], middle = (v + (*all)[i + 1]) / 2;
      for (double x :
           {v, middle, nextafter(middle, 0), nextafter(middle, INFINITY),
            (double)nextafterf((float)middle, 0), (double)nextafterf((float)middle, INFINITY)}) {
        check_rounding(x, half, bfloat16);
        check_rounding(-x, half, bfloat16);
      }
    }
  for (double x : {65504.0, 65519.0, 65519.999, 65520.0, 65536.0, 1e10, 3.3895e38, 3.4e38, 1e300,
                   (double)INFINITY, (double)NAN, -0.0, 1e-40, 1e-300})
    check_rounding(x, half, bfloat16);
  CHECK_INT(wrong_half, 0);
  CHECK_INT(wrong_bfloat16, 0);
}

static void arithmetic_of_halves() {
  __half a = __half(1.5f), b = __half(2.25f);
  CHECK_NEAR((float)(a + b), 3.75, 0);
  CHECK_NEAR((float)(a * b), 3.375, 0);
  CHECK_NEAR((float)(a - b), -0.75, 0);
  CHECK_NEAR((float)(b / a), 1.5, 0);
  CHECK(a < b && !(a == b) && a != b);
  CHECK_NEAR((float)__hfma(a, a, b), 4.5, 0);
  CHECK_NEAR((float)(__half(2048.0f) + __half(1.0f)), 2048, 0); /* ties to even */
  CHECK_NEAR((float)__half(70000), INFINITY, 0);
  CHECK_NEAR((float)__nv_bfloat16(70000), 70144, 0);
}

/* ---- cuBLAS ---------------------------------------------------------------------------------- */

static unsigned random_state = 1;
static int random_to(int n) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int)((random_state >> 8) % (unsigned)n);
}

template <class T> static T small() { return T((float)(random_to(9) - 4)); }

struct Case {
  int m, n, k, count;
  bool a_trans, b_trans;
  float alpha, beta;
};

template <class S> static double number(S v) { return (double)(float)v; }
template <> double number(double v) { return v; }

/* Uses small integers: every dtype represents the products exactly. */
template <class T, class C, class S>
static int wrong_products(cublasHandle_t h, const Case &c, cudaDataType type, cudaDataType c_type,
                          cublasComputeType_t compute) {
  int lda = (c.a_trans ? c.k : c.m) + 3, ldb = (c.b_trans ? c.n : c.k) + 1, ldc = c.m + 2;
  long long sa = (long long)lda * (c.a_trans ? c.m : c.k) + 5,
            sb = (long long)ldb * (c.b_trans ? c.k : c.n), sc = (long long)ldc * c.n + 1;
  std::vector<T> a((size_t)(sa * c.count)), b((size_t)(sb * c.count));
  std::vector<C> out((size_t)(sc * c.count));
  for (T &v : a) v = small<T>();
  for (T &v : b) v = small<T>();
  for (C &v : out) v = c.beta == 0 ? C(NAN) : small<C>(); /* not read where beta is 0 */
  Buffer<T> device_a(a), device_b(b);
  Buffer<C> device_c(out);
  S alpha = S(c.alpha), beta = S(c.beta);
  cublasStatus_t status = cublasGemmStridedBatchedEx(
      h, c.a_trans ? CUBLAS_OP_T : CUBLAS_OP_N, c.b_trans ? CUBLAS_OP_T : CUBLAS_OP_N, c.m, c.n,
      c.k, &alpha, device_a.data, type, lda, sa, device_b.data, type, ldb, sb, &beta, device_c.data,
      c_type, ldc, sc, c.count, compute, CUBLAS_GEMM_DEFAULT);
  CHECK_INT(status, CUBLAS_STATUS_SUCCESS);
  std::vector<C> actual = device_c.get();
  int wrong = 0;
  for (int i = 0; i < c.count; i++)
    for (int col = 0; col < c.n; col++)
      for (int row = 0; row < ldc; row++) {
        size_t at = (size_t)(i * sc + (long long)col * ldc + row);
        double expected = number(out[at]), sum = 0;
        for (int l = 0; l < c.k && row < c.m; l++) {
          long long ai = c.a_trans ? (long long)row * lda + l : (long long)l * lda + row;
          long long bi = c.b_trans ? (long long)l * ldb + col : (long long)col * ldb + l;
          sum += number(a[(size_t)(i * sa + ai)]) * number(b[(size_t)(i * sb + bi)]);
        }
        if (row < c.m) expected = c.alpha * sum + (c.beta == 0 ? 0 : c.beta * expected);
        double v = number(actual[at]);
        wrong += !(v == expected || (std::isnan(v) && std::isnan(expected)));
      }
  return wrong;
}

static void products_of_every_kind() {
  cublasHandle_t h;
  CHECK_INT(cublasCreate(&h), CUBLAS_STATUS_SUCCESS);
  for (int at = 0; at < 2; at++)
    for (int bt = 0; bt < 2; bt++)
      for (Case c : {Case{5, 7, 3, 1, !!at, !!bt, 1, 0}, Case{1, 1, 1, 2, !!at, !!bt, 2, 1},
                     Case{17, 9, 12, 3, !!at, !!bt, -1, 0}, Case{8, 3, 0, 2, !!at, !!bt, 1, 0},
                     Case{6, 4, 5, 2, !!at, !!bt, 0.5f, 2}}) {
        CHECK_INT(
            (wrong_products<float, float, float>(h, c, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F)),
            0);
        CHECK_INT((wrong_products<float, float, float>(h, c, CUDA_R_32F, CUDA_R_32F,
                                                       CUBLAS_COMPUTE_32F_FAST_TF32)),
                  0);
        CHECK_INT((wrong_products<double, double, double>(h, c, CUDA_R_64F, CUDA_R_64F,
                                                          CUBLAS_COMPUTE_64F)),
                  0);
        CHECK_INT((wrong_products<__half, __half, float>(h, c, CUDA_R_16F, CUDA_R_16F,
                                                         CUBLAS_COMPUTE_32F)),
                  0);
        CHECK_INT((wrong_products<__half, float, float>(h, c, CUDA_R_16F, CUDA_R_32F,
                                                        CUBLAS_COMPUTE_32F)),
                  0);
        c.beta = 0; /* a sum beyond 256 is rounded in bfloat16 */
        c.alpha = 1;
        if (c.k <= 12)
          CHECK_INT((wrong_products<__nv_bfloat16, __nv_bfloat16, float>(
                        h, c, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F)),
                    0);
      }
  CHECK_INT(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
}

static void products_by_their_short_names() {
  cublasHandle_t h;
  CHECK_INT(cublasCreate(&h), CUBLAS_STATUS_SUCCESS);
  Buffer<float> a(std::vector<float>{1, 2, 3, 4}), b(std::vector<float>{5, 6, 7, 8}), c(4);
  Buffer<double> d(std::vector<double>{1, 2, 3, 4}), e(4);
  Buffer<float> scalars(std::vector<float>{2, 0});
  const float one = 1, zero = 0;
  const double one_d = 1, zero_d = 0;
  CHECK_INT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, b, 2, &zero, c, 2),
            CUBLAS_STATUS_SUCCESS);
  CHECK(c.get() == (std::vector<float>{23, 34, 31, 46}));
  CHECK_INT(cublasDgemm(h, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &one_d, d, 2, d, 2, &zero_d, e, 2),
            CUBLAS_STATUS_SUCCESS);
  CHECK(e.get() == (std::vector<double>{5, 11, 11, 25}));
  CHECK_INT(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  CHECK_INT(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, scalars.data, a, 1, 1,
                                      b, 1, 1, scalars + 1, c, 1, 1, 4),
            CUBLAS_STATUS_SUCCESS);
  CHECK(c.get() == (std::vector<float>{10, 24, 42, 64}));
  CHECK_INT(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
}

static void invalid_products_are_refused() {
  cublasHandle_t h;
  CHECK_INT(cublasCreate(&h), CUBLAS_STATUS_SUCCESS);
  Buffer<float> a(4), c(4);
  const float one = 1;
  auto gemm = [&](cublasHandle_t handle, int m, int lda, cudaDataType type) {
    return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 2, 2, &one, a.data, type, lda, a.data,
                        CUDA_R_32F, 2, &one, c.data, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT);
  };
  CHECK_INT(gemm(nullptr, 2, 2, CUDA_R_32F), CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK_INT(gemm(h, -1, 2, CUDA_R_32F), CUBLAS_STATUS_INVALID_VALUE);
  CHECK_INT(gemm(h, 2, 1, CUDA_R_32F), CUBLAS_STATUS_INVALID_VALUE);
  CHECK_INT(gemm(h, 2, 2, CUDA_R_64F), CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK_INT(gemm(h, 0, 2, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  /* beyond the end of memory: detected when it runs */
  CHECK_INT(gemm(h, 2, 1 << 20, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  CHECK_INT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  OK(cudaDeviceReset());
  a.data = c.data = nullptr;
  CHECK_INT(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
}

/* ---- CUB ------------------------------------------------------------------------------------- */

/* Makes the two calls of CUB's protocol. */
template <class F> static void with_storage(F call) {
  size_t bytes = 0;
  OK(call((void *)nullptr, bytes));
  CHECK(bytes > 0);
  Buffer<char> storage(bytes);
  OK(call((void *)storage.data, bytes));
}

template <class T> static std::vector<T> some_numbers(size_t n, int range) {
  std::vector<T> v(n);
  for (T &x : v) x = T((float)(random_to(range) - range / 2));
  return v;
}

template <class K> static double order_of(K k) { return (double)(float)k; }
template <> double order_of(double k) { return k; }
template <> double order_of(long long k) { return (double)k; }

template <class K> static void sorts(int range) {
  const size_t n = 5000;
  std::vector<K> keys = some_numbers<K>(n, range);
  std::vector<int> indices(n);
  std::iota(indices.begin(), indices.end(), 0);
  Buffer<K> in(keys), out(n);
  Buffer<int> values(indices), sorted(n);
  for (int down = 0; down < 2; down++) {
    with_storage([&](void *storage, size_t &bytes) {
      return down ? cub::DeviceRadixSort::SortPairsDescending(storage, bytes, (const K *)in.data,
                                                              out.data, (const int *)values.data,
                                                              sorted.data, n)
                  : cub::DeviceRadixSort::SortPairs(storage, bytes, (const K *)in.data, out.data,
                                                    (const int *)values.data, sorted.data, n);
    });
    std::vector<int> expected = indices;
    std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) {
      double x = order_of(keys[(size_t)a]), y = order_of(keys[(size_t)b]);
      return down ? x > y : x < y;
    });
    CHECK(sorted.get() == expected);
    std::vector<K> actual = out.get();
    int wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += !(actual[i] == keys[(size_t)expected[i]]);
    CHECK_INT(wrong, 0);
  }
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceRadixSort::SortKeys(storage, bytes, (const K *)in.data, out.data, n);
  });
  std::vector<K> actual = out.get();
  CHECK(std::is_sorted(actual.begin(), actual.end(),
                       [](K a, K b) { return order_of(a) < order_of(b); }));
}

static void sorts_are_stable_in_both_directions() {
  sorts<int>(1000);
  sorts<unsigned char>(2);
  sorts<short>(60000);
  sorts<long long>(1 << 20);
  sorts<float>(500);
  sorts<double>(500);
  sorts<__half>(300);
  sorts<__nv_bfloat16>(100);
}

static void sorts_by_some_bits_and_of_special_values() {
  Buffer<unsigned> in(std::vector<unsigned>{0x13, 0x21, 0x32, 0x11}), out(4);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceRadixSort::SortKeys(storage, bytes, (const unsigned *)in.data, out.data, 4, 4,
                                          8);
  });
  CHECK(out.get() == (std::vector<unsigned>{0x13, 0x11, 0x21, 0x32}));
  Buffer<float> f(std::vector<float>{0.0f, -INFINITY, -0.0f, NAN, INFINITY, -1}), g(6);
  Buffer<int> indices(std::vector<int>{0, 1, 2, 3, 4, 5}), sorted(6);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, (const float *)f.data, g.data,
                                           (const int *)indices.data, sorted.data, 6);
  });
  CHECK(sorted.get() == (std::vector<int>{1, 5, 0, 2, 4, 3}));
}

static void sorts_of_segments() {
  std::vector<float> keys = some_numbers<float>(100, 20);
  std::vector<int> offsets = {0, 30, 30, 31, 90}, indices(100);
  std::iota(indices.begin(), indices.end(), 0);
  Buffer<float> in(keys), out(keys);
  Buffer<int> values(indices), sorted(indices), from(offsets);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceSegmentedSort::StableSortPairsDescending(
        storage, bytes, (const float *)in.data, out.data, (const int *)values.data, sorted.data,
        100, 4, from.data, from + 1);
  });
  std::vector<int> expected = indices;
  for (size_t s = 0; s < 4; s++)
    std::stable_sort(expected.begin() + offsets[s], expected.begin() + offsets[s + 1],
                     [&](int a, int b) { return keys[(size_t)a] > keys[(size_t)b]; });
  CHECK(sorted.get() == expected);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceSegmentedRadixSort::SortPairs(storage, bytes, (const float *)in.data,
                                                    out.data, (const int *)values.data, sorted.data,
                                                    100, 4, from.data, from + 1);
  });
  for (size_t s = 0; s < 4; s++)
    std::stable_sort(
        expected.begin() + offsets[s], expected.begin() + offsets[s + 1], [&](int a, int b) {
          return keys[(size_t)a] != keys[(size_t)b] ? keys[(size_t)a] < keys[(size_t)b] : a < b;
        });
  CHECK(sorted.get() == expected);
}

static void scans() {
  std::vector<int> v = some_numbers<int>(1000, 50), keys(1000);
  for (size_t i = 0; i < 1000; i++) keys[i] = (int)i / 7;
  Buffer<int> in(v), out(1000), by(keys);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, in.data, out.data, 1000);
  });
  std::vector<int> expected(1000);
  std::partial_sum(v.begin(), v.end(), expected.begin());
  CHECK(out.get() == expected);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::InclusiveSumByKey(storage, bytes, by.data, in.data, out.data, 1000);
  });
  for (size_t i = 0; i < 1000; i++) expected[i] = v[i] + (i % 7 ? expected[i - 1] : 0);
  CHECK(out.get() == expected);
  /* in place */
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, in.data, in.data, 1000);
  });
  std::partial_sum(v.begin(), v.end(), expected.begin());
  expected.insert(expected.begin(), 0);
  expected.pop_back();
  CHECK(in.get() == expected);
}

static void reductions_and_selections() {
  std::vector<int> v = some_numbers<int>(1000, 500), flags(1000);
  for (size_t i = 0; i < 1000; i++) flags[i] = v[i] > 0;
  Buffer<int> in(v), out(1000), chosen(flags), count(1);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::Sum(storage, bytes, in.data, out.data, 1000);
  });
  CHECK_INT(out.get()[0], std::accumulate(v.begin(), v.end(), 0));
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::Max(storage, bytes, in.data, out.data, 1000);
  });
  CHECK_INT(out.get()[0], *std::max_element(v.begin(), v.end()));
  std::vector<int> expected;
  for (int x : v)
    if (x > 0) expected.push_back(x);
  for (int by_flags = 0; by_flags < 2; by_flags++) {
    OK(cudaMemset(out, 0, 4000));
    with_storage([&](void *storage, size_t &bytes) {
      return by_flags ? cub::DeviceSelect::Flagged(storage, bytes, in.data, chosen.data, out.data,
                                                   count.data, 1000)
                      : cub::DeviceSelect::If(storage, bytes, in.data, out.data, count.data, 1000,
                                              [](int x) { return x > 0; });
    });
    REQUIRE(count.get()[0] == (int)expected.size());
    std::vector<int> actual = out.get();
    CHECK(std::equal(expected.begin(), expected.end(), actual.begin()));
  }
  Buffer<int> runs(std::vector<int>{4, 4, 2, 7, 7, 7}), unique(6), lengths(6);
  with_storage([&](void *storage, size_t &bytes) {
    return cub::DeviceRunLengthEncode::Encode(storage, bytes, runs.data, unique.data, lengths.data,
                                              count.data, 6);
  });
  CHECK_INT(count.get()[0], 3);
  std::vector<int> u = unique.get(), l = lengths.get();
  CHECK(u[0] == 4 && u[1] == 2 && u[2] == 7 && l[0] == 2 && l[1] == 1 && l[2] == 3);
}

int main() {
  setenv("LUTRA_EMULATE", "cuda:2,memory=64MiB", 1);
  RUN(conversions_of_halves);
  RUN(arithmetic_of_halves);
  RUN(products_of_every_kind);
  RUN(products_by_their_short_names);
  RUN(invalid_products_are_refused);
  RUN(sorts_are_stable_in_both_directions);
  RUN(sorts_by_some_bits_and_of_special_values);
  RUN(sorts_of_segments);
  RUN(scans);
  RUN(reductions_and_selections);
  return check_end();
}
