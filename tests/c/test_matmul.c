/* test_matmul.c: mm, bmm and addmm against three loops in double (or wrapping integers), for every
 * dtype, layout and size, including empty ones. */
#include "check.h"

#include "core.h"
#include "device_under_test.h"
#include "cpu/blas.h"
#include "cpu/product.h"
#include "half.h"

static uint64_t noise = 3;
static int64_t small_integer(void) {
  noise = noise * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)(noise >> 33) % 17 - 8;
}

static double load(lt_Dtype d, const void *at) {
  return lt_scalar_to_double(lt_scalar_load(d, at));
}
static double element(const lt_Tensor *t, const int64_t *at) {
  int64_t offset = 0;
  for (int d = 0; d < t->ndim; d++) offset += at[d] * t->strides[d];
  return load(t->dtype, (char *)lt_tensor_data(t) + offset * (int64_t)lt_dtype_size(t->dtype));
}

typedef enum Layout { DENSE, TRANSPOSED, WIDE, STEPPED, REPEATED, LAYOUTS } Layout;

/* Returns a {b, r, c} tensor (or {r, c} when b < 0) of small integers, so that sums are exact in
 * every dtype. */
static lt_Tensor *make(lt_Dtype d, Layout layout, int64_t b, int64_t r, int64_t c) {
  int64_t shape[3] = {b < 0 ? 1 : b, r, c}, strides[3] = {r * c, c, 1}, room = shape[0] * r * c;
  switch (layout) {
  case TRANSPOSED:
    strides[1] = 1, strides[2] = r;
    break;
  case WIDE:
    strides[1] = c + 3, strides[0] = r * (c + 3), room = shape[0] * r * (c + 3);
    break;
  case STEPPED:
    strides[2] = 2, strides[1] = 2 * c, strides[0] = 2 * r * c, room *= 2;
    break;
  case REPEATED:
    strides[0] = strides[1] = 0;
    break;
  default:
    break;
  }
  lt_Storage *s = lt_storage_new(lt_cpu(), (size_t)(room + 1) * lt_dtype_size(d));
  int skip = b < 0;
  lt_Tensor *t = s ? lt_tensor_on(s, d, 0, 3 - skip, shape + skip, strides + skip) : NULL;
  for (int64_t i = 0; s && i <= room; i++)
    lt_scalar_store(lt_scalar_int(d == LT_uint8 ? small_integer() + 8 : small_integer()), d,
                    (char *)s->data + (size_t)i * lt_dtype_size(d));
  lt_storage_release(s);
  return t;
}

/* Returns the exact result converted to dtype d. */
static double in_dtype(lt_Dtype d, double v) {
  char room[8];
  switch (d) {
  case LT_uint8:
    return (uint8_t)(int64_t)v;
  case LT_int8:
    return (int8_t)(int64_t)v;
  case LT_int16:
    return (int16_t)(int64_t)v;
  case LT_float16:
    *(lt_half *)room = lt_half_from_double(v);
    return load(d, room);
  case LT_bfloat16:
    *(lt_bfloat16 *)room = lt_bfloat16_from_float((float)v);
    return load(d, room);
  default:
    return v;
  }
}

static bool agrees(const lt_Tensor *actual, const lt_Tensor *self, const lt_Tensor *a,
                   const lt_Tensor *b, double beta, double alpha) {
  int skip = 3 - actual->ndim;
  const int64_t *shape = actual->shape - skip;
  for (int64_t n = 0; n < (skip ? 1 : actual->shape[0]); n++)
    for (int64_t i = 0; i < shape[1]; i++)
      for (int64_t j = 0; j < shape[2]; j++) {
        double sum = 0;
        for (int64_t k = 0; k < a->shape[a->ndim - 1]; k++)
          sum += element(a, (int64_t[]){n, i, k} + skip) * element(b, (int64_t[]){n, k, j} + skip);
        sum *= alpha;
        if (self && beta != 0) {
          int64_t at[2] = {self->shape[0] > 1 ? i : 0, self->shape[self->ndim - 1] > 1 ? j : 0};
          sum += beta * element(self, at + (2 - self->ndim));
        }
        double is = element(actual, (int64_t[]){n, i, j} + skip);
        if (is == in_dtype(actual->dtype, sum)) continue;
        check_report(__FILE__, __LINE__, "%s {%lld, %lld, %lld} at %lld, %lld: %g, expected %g",
                     lt_dtype_name(actual->dtype), (long long)shape[1],
                     (long long)a->shape[a->ndim - 1], (long long)shape[2], (long long)i,
                     (long long)j, is, in_dtype(actual->dtype, sum));
        return false;
      }
  return true;
}

static void try_mm(lt_Dtype d, Layout x, Layout y, int64_t batch, int64_t m, int64_t k, int64_t n) {
  lt_Tensor *a = make(d, x, batch, m, k), *b = make(d, y, batch, k, n);
  lt_Tensor *c =
      op1_on_device(batch < 0 ? LT_OP_mm : LT_OP_bmm, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2);
  if (!c) check_report(__FILE__, __LINE__, "%s: %s", lt_dtype_name(d), lt_error());
  if (c) agrees(c, NULL, a, b, 0, 1);
  lt_release(a);
  lt_release(b);
  lt_release(c);
}

static const int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 4},    {1, 7, 5},    {6, 9, 1},  {5, 1, 3},
                                   {1, 8, 1}, {17, 33, 19}, {31, 16, 48}, {0, 3, 2},  {3, 0, 2},
                                   {2, 3, 0}, {40, 5, 70},  {33, 40, 35}, {5, 70, 12}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void mm(void) {
  for (int d = next_dtype(LT_uint8); d <= LT_float64; d = next_dtype(d + 1))
    for (int s = 0; s < SIZES; s++)
      for (Layout x = DENSE; x < LAYOUTS; x++)
        for (Layout y = DENSE; y < LAYOUTS; y++)
          try_mm((lt_Dtype)d, x, y, -1, sizes[s][0], sizes[s][1], sizes[s][2]);
}

static void bmm(void) {
  static const int64_t batches[] = {0, 1, 3, 40};
  for (int d = next_dtype(LT_uint8); d <= LT_float64; d = next_dtype(d + 1))
    for (int s = 0; s < SIZES; s++)
      for (int b = 0; b < 4; b++)
        for (Layout x = DENSE; x < LAYOUTS; x++)
          try_mm((lt_Dtype)d, x, (Layout)((x + 1) % LAYOUTS), batches[b], sizes[s][0], sizes[s][1],
                 sizes[s][2]);
}

static void addmm(void) {
  for (int d = next_dtype(LT_uint8); d <= LT_float64; d = next_dtype(d + 1))
    for (int s = 0; s < SIZES; s++)
      for (int form = 0; form < 3; form++)
        for (int beta = 0; beta < 3; beta++) {
          int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
          lt_Tensor *a = make((lt_Dtype)d, DENSE, -1, m, k),
                    *b = make((lt_Dtype)d, TRANSPOSED, -1, k, n);
          lt_Tensor *whole_self =
              make((lt_Dtype)d, TRANSPOSED, -1, form == 1 ? 1 : m, form == 2 ? 1 : n);
          lt_Tensor *self = form == 1 ? lt_tensor_on(whole_self->storage, (lt_Dtype)d, 0, 1,
                                                     (int64_t[]){n}, (int64_t[]){1})
                                      : lt_retain(whole_self);
          lt_Tensor *c =
              op1_on_device(LT_OP_addmm,
                            (lt_Arg[]){LT_ARG(self), LT_ARG(a), LT_ARG(b),
                                       LT_ARG(lt_scalar_int(beta)), LT_ARG(lt_scalar_int(2))},
                            5);
          if (!c)
            check_report(__FILE__, __LINE__, "%s: %s", lt_dtype_name((lt_Dtype)d), lt_error());
          if (c) agrees(c, self, a, b, beta, 2);
          lt_release(a);
          lt_release(b);
          lt_release(c);
          lt_release(self);
          lt_release(whole_self);
        }
}

/* With beta 0 the values of self are ignored; NaN in a factor is not. */
static void nan_rules(void) {
  int64_t shape[2] = {3, 3};
  lt_Tensor *self = lt_empty(LT_float32, lt_cpu(), 2, shape),
            *a = make(LT_float32, DENSE, -1, 3, 3);
  for (int i = 0; i < 9; i++) ((float *)lt_tensor_data(self))[i] = NAN;
  lt_Tensor *c = op1_on_device(
      LT_OP_addmm, (lt_Arg[]){LT_ARG(self), LT_ARG(a), LT_ARG(a), LT_ARG(lt_scalar_int(0))}, 4);
  REQUIRE(c);
  agrees(c, self, a, a, 0, 1);
  lt_release(c);
  lt_Tensor *zero = make(LT_float32, DENSE, -1, 3, 3);
  memset(lt_tensor_data(zero), 0, 36);
  c = op1_on_device(LT_OP_mm, (lt_Arg[]){LT_ARG(self), LT_ARG(zero)}, 2);
  REQUIRE(c);
  CHECK(isnan(((float *)lt_tensor_data(c))[4]));
  lt_release(c);
  for (int n = 0; n < 2; n++) { /* a product with one column or row overwrites its memory */
    lt_Tensor *x = make(LT_float32, DENSE, -1, n ? 1 : 3, 3),
              *y = make(LT_float32, DENSE, -1, 3, n ? 3 : 1);
    lt_Matrix out = {lt_tensor_data(self), n ? 3 : 1, 1};
    lt_gemm(LT_float32, n ? 1 : 3, n ? 3 : 1, 3, 1, (lt_Matrix){lt_tensor_data(x), 3, 1},
            (lt_Matrix){lt_tensor_data(y), n ? 3 : 1, 1}, 0, out);
    for (int i = 0; i < 3; i++) CHECK(!isnan(((float *)lt_tensor_data(self))[i]));
    lt_release(x);
    lt_release(y);
  }
  lt_release(self);
  lt_release(a);
  lt_release(zero);
}

/* Fills a tensor of integers with numbers of all sizes. */
static void fill_with_noise(lt_Tensor *t) {
  unsigned char *to = t->storage->data;
  for (size_t i = 0; i < t->storage->nbytes; i++)
    small_integer(), to[i] = (unsigned char)(noise >> 40);
}

static uint64_t integer_at(const lt_Tensor *t, int64_t i, int64_t j) {
  int64_t offset = i * t->strides[0] + j * t->strides[1];
  return (uint64_t)lt_scalar_load(t->dtype, (char *)lt_tensor_data(t) +
                                                offset * (int64_t)lt_dtype_size(t->dtype))
      .i;
}

/* Returns v modulo the range of an integer dtype. */
static uint64_t wrapped(lt_Dtype d, uint64_t v) {
  return d == LT_uint8   ? (uint8_t)v
         : d == LT_int8  ? (uint64_t)(int8_t)v
         : d == LT_int16 ? (uint64_t)(int16_t)v
         : d == LT_int32 ? (uint64_t)(int32_t)v
                         : v;
}

/* Compares beta * self + alpha * a @ b of integers of all sizes with sums modulo 2^64. */
static void try_wrapping(lt_Dtype d, Layout x, Layout y, int64_t m, int64_t k, int64_t n,
                         int64_t beta, int64_t alpha) {
  lt_Tensor *a = make(d, x, -1, m, k), *b = make(d, y, -1, k, n), *self = make(d, y, -1, m, n);
  REQUIRE(a && b && self);
  fill_with_noise(a);
  fill_with_noise(b);
  fill_with_noise(self);
  lt_Tensor *c =
      op1_on_device(LT_OP_addmm,
                    (lt_Arg[]){LT_ARG(self), LT_ARG(a), LT_ARG(b), LT_ARG(lt_scalar_int(beta)),
                               LT_ARG(lt_scalar_int(alpha))},
                    5);
  REQUIRE(c);
  int64_t wrong = 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      uint64_t sum = 0;
      for (int64_t p = 0; p < k; p++) sum += integer_at(a, i, p) * integer_at(b, p, j);
      sum = (uint64_t)alpha * sum + (uint64_t)beta * integer_at(self, i, j);
      wrong += wrapped(d, sum) != integer_at(c, i, j);
    }
  CHECK_INT(wrong, 0);
  lt_release(a);
  lt_release(b);
  lt_release(c);
  lt_release(self);
}

/* Products of integers of all sizes, around the edges of tiles, with factors that no double holds,
 * of one row or column, and of copied rows and columns. */
static void integers_wrap(void) {
  static const int64_t around[][3] = {{1, 2, 1},   {9, 7, 33},  {4, 5, 8},     {70, 600, 31},
                                      {1, 50, 40}, {37, 19, 1}, {1, 40000, 2}, {3, 300, 600},
                                      {13, 1, 16}, {1, 1, 1},   {5, 0, 3},     {90, 40, 17}};
  const int64_t factors[][2] = {{0, 1}, {1, 1}, {3, -2}, {INT64_MIN, ((int64_t)1 << 60) + 1}};
  int threads = lt_num_threads();
  for (int d = next_dtype(LT_uint8); d <= LT_int64; d = next_dtype(d + 1)) {
    if (lt_dtype_is_float((lt_Dtype)d) || d == LT_bool) continue;
    for (int s = 0; s < 12; s++)
      for (Layout x = DENSE; x < LAYOUTS; x++)
        for (int f = 0; f < 4; f++) {
          lt_set_num_threads(1 + (x + f) % 3);
          try_wrapping((lt_Dtype)d, x, (Layout)((x + s + f) % LAYOUTS), around[s][0], around[s][1],
                       around[s][2], factors[f][0], factors[f][1]);
        }
  }
  lt_set_num_threads(threads);
}

/* Lutra's own loops, for matrices that BLAS does not support: without a dense dimension. */
static void matrices_without_a_dense_dimension(void) {
  for (int d = LT_float32; d <= LT_float64; d++)
    for (int s = 0; s < SIZES; s++)
      for (int beta = 0; beta < 2; beta++) {
        int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
        lt_Tensor *a = make((lt_Dtype)d, STEPPED, -1, m, k),
                  *b = make((lt_Dtype)d, STEPPED, -1, k, n);
        lt_Tensor *self = make((lt_Dtype)d, DENSE, -1, m, n),
                  *c = make((lt_Dtype)d, DENSE, -1, m, n);
        if (c->numel)
          memcpy(lt_tensor_data(c), lt_tensor_data(self),
                 (size_t)c->numel * lt_dtype_size(c->dtype));
        lt_gemm((lt_Dtype)d, m, n, k, 2, (lt_Matrix){lt_tensor_data(a), 2 * k, 2},
                (lt_Matrix){lt_tensor_data(b), 2 * n, 2}, beta,
                (lt_Matrix){lt_tensor_data(c), n, 1});
        agrees(c, self, a, b, beta, 2);
        lt_release(a);
        lt_release(b);
        lt_release(self);
        lt_release(c);
      }
}

/* Strides beyond BLAS's index type are not passed to it, and large products are right. */
static void large_products(void) {
  CHECK(!lt_gemm_takes((lt_Matrix){NULL, (int64_t)INT32_MAX + 1, 1}, 2, 2));
  CHECK(!lt_gemm_takes((lt_Matrix){NULL, 2, 2}, 2, 2));
  CHECK(lt_gemm_takes((lt_Matrix){NULL, 0, 1}, 1, 5));
  CHECK(!lt_gemm_takes((lt_Matrix){NULL, 0, 1}, 2, 5));
  try_mm(LT_float32, DENSE, TRANSPOSED, -1, 150, 200, 120);
  try_mm(widest_float(), TRANSPOSED, DENSE, 3, 90, 100, 80);
  int threads = lt_num_threads();
  lt_set_num_threads(1);
  try_mm(LT_float32, DENSE, DENSE, -1, 130, 140, 150);
  try_mm(LT_float32, DENSE, DENSE, 20, 13, 14, 15);
  try_mm(LT_float32, DENSE, TRANSPOSED, -1, 5, 3000, 70); /* long sums may be divided */
  try_mm(LT_float16, TRANSPOSED, STEPPED, 2, 70, 600, 130);
  for (Layout x = DENSE; x < LAYOUTS; x++) { /* vectors, short and long */
    try_mm(LT_float32, x, DENSE, -1, 77, 130, 1);
    try_mm(LT_float32, DENSE, x, -1, 1, 130, 77);
    try_mm(LT_bfloat16, x, x, 3, 70, 33, 1);
    try_mm(LT_float32, DENSE, x, -1, 1, 5000, 9);
    try_mm(LT_float32, x, TRANSPOSED, -1, 2100, 1100, 1);
  }
  try_mm(LT_bfloat16, STEPPED, DENSE, 9, 129, 33, 65);
  try_mm(LT_float32, DENSE, DENSE, -1, 290, 1030, 513); /* blocks of copied rows */
  try_mm(LT_float32, TRANSPOSED, WIDE, -1, 290, 530, 70);
  lt_set_num_threads(threads);
}

/* Sizes around the edges of tiles, panels and blocks, in all layouts. */
static void edges_of_tiles(void) {
  static const int64_t rows[] = {2, 5, 6, 7, 12, 13, 14, 15, 28, 29},
                       depth[] = {1, 2, 3, 4, 5, 7, 8, 9, 17},
                       columns[] = {2, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 65};
  int at = 0;
  for (int d = LT_float32; d <= (int)widest_float(); d++)
    for (int i = 0; i < 10; i++)
      for (int j = 0; j < 14; j++, at++) {
        Layout x = (Layout)(at % LAYOUTS), y = (Layout)(at / LAYOUTS % LAYOUTS);
        try_mm((lt_Dtype)d, x, y, -1, rows[i], depth[at % 9], columns[j]);
      }
  static const int64_t large[][3] = {{3, 800, 33},   {260, 20, 40}, {5, 9, 1100},  {70, 769, 64},
                                     {600, 40, 33},  {33, 40, 600}, {64, 30, 513}, {255, 385, 20},
                                     {513, 4, 1030}, {20, 64, 64},  {9, 1025, 515}};
  for (int s = 0; s < 11; s++)
    for (Layout x = DENSE; x < LAYOUTS; x++)
      for (Layout y = DENSE; y < STEPPED; y++)
        try_mm(s % 3 ? LT_float32 : widest_float(), x, y, -1, large[s][0], large[s][1],
               large[s][2]);
}

/* Products of bfloat16 around the blocks of tile registers and vectors, in all layouts; the last
 * one with rows that share lines of the first cache. */
static void blocks_of_bfloat16(void) {
  static const int64_t around[][3] = {{8, 64, 64},   {40, 33, 70},  {33, 32, 129}, {300, 31, 65},
                                      {64, 96, 1},   {257, 16, 33}, {70, 1, 600},  {9, 515, 31},
                                      {150, 40, 10}, {25, 40, 2048}};
  int threads = lt_num_threads();
  for (int s = 0; s < 10; s++)
    for (Layout x = DENSE; x < LAYOUTS; x++)
      for (Layout y = DENSE; y < LAYOUTS; y++) {
        lt_set_num_threads(1 + (x + y) % 3);
        try_mm(LT_bfloat16, x, y, s % 2 ? -1 : 2, around[s][0], around[s][1], around[s][2]);
      }
  lt_set_num_threads(threads);
}

/* Products of float16 and bfloat16 with few rows or columns, around the blocks of the loops. */
static void few_rows_of_halves(void) {
  static const int64_t few[][3] = {{1, 40, 131}, {2, 17, 300},  {3, 64, 33}, {4, 129, 8},
                                   {7, 31, 270}, {16, 100, 20}, {5, 1, 40},  {1, 1, 9}};
  int threads = lt_num_threads();
  for (int d = LT_float16; d <= LT_bfloat16; d++)
    for (int s = 0; s < 8; s++)
      for (Layout x = DENSE; x < LAYOUTS; x++)
        for (Layout y = DENSE; y < LAYOUTS; y++) {
          lt_set_num_threads(1 + (x + y) % 3);
          int64_t batch = (x + y) % 4 ? -1 : 3;
          try_mm((lt_Dtype)d, x, y, batch, few[s][0], few[s][1], few[s][2]);
          try_mm((lt_Dtype)d, x, y, batch, few[s][2], few[s][1], few[s][0]);
        }
  lt_set_num_threads(threads);
}

/* Products of float32 with few rows or columns, around the blocks of dot products. */
static void few_rows(void) {
  static const int64_t few[][3] = {{2, 64, 131},  {3, 70, 64},  {8, 65, 33}, {7, 511, 9},
                                   {16, 530, 70}, {9, 512, 65}, {5, 129, 5}};
  int threads = lt_num_threads();
  for (int s = 0; s < 7; s++)
    for (Layout x = DENSE; x < LAYOUTS; x++)
      for (int turns = 0; turns < 2; turns++) {
        lt_set_num_threads(1 + x % 3);
        try_mm(LT_float32, x, TRANSPOSED, x % 2 ? -1 : 2, few[s][2 * turns], few[s][1],
               few[s][2 - 2 * turns]);
      }
  lt_set_num_threads(threads);
}

/* Products of a matrix and a vector, on either side. */
static void vectors(void) {
  static const int64_t sizes_[] = {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 128, 129, 260};
  for (int d = LT_float32; d <= (int)widest_float(); d++)
    for (int i = 0; i < 15; i++)
      for (int j = 0; j < 15; j++) {
        Layout x = (Layout)((i + j) % LAYOUTS), y = (Layout)(i % LAYOUTS);
        try_mm((lt_Dtype)d, x, y, -1, sizes_[i], sizes_[j], 1);
        try_mm((lt_Dtype)d, x, y, -1, 1, sizes_[j], sizes_[i]);
      }
}

/* Batches of products of a row and a column. */
static void rows_and_columns(void) {
  static const int64_t batches[] = {2, 3, 15, 17, 40, 5000};
  for (int d = LT_float32; d <= (int)widest_float(); d++)
    for (int b = 0; b < 6; b++)
      for (int64_t k = 1; k < 40; k += 1 + k / 9)
        for (Layout x = DENSE; x < LAYOUTS; x++) {
          try_mm((lt_Dtype)d, x, DENSE, batches[b], 1, k, 1);
          try_mm((lt_Dtype)d, DENSE, x, batches[b], 1, k, 1);
        }
}

/* Batches of small matrices, which are multiplied in the lanes of vectors: full and part of a block
 * of them, and divided among threads. */
static void small_matrices(void) {
  static const int64_t batches[] = {2, 15, 33, 2500}, sizes_[] = {1, 2, 3, 4, 5, 8, 9};
  int kind = 0;
  for (int d = LT_float32; d <= (int)widest_float(); d++)
    for (int b = 0; b < 4; b++)
      for (int s = 0; s < 7 * 7 * 7; s++, kind++) {
        int64_t m = sizes_[s / 49], k = sizes_[s / 7 % 7], n = sizes_[s % 7];
        if (batches[b] * m * k * n > 30000) continue;
        try_mm((lt_Dtype)d, DENSE, DENSE, batches[b], m, k, n);
        try_mm((lt_Dtype)d, (Layout)(kind % LAYOUTS), (Layout)(kind / 5 % LAYOUTS), batches[b], m,
               k, n);
      }
}

/* A product with one column has the same bits in each row, whether rows are computed together or
 * alone. */
static void rows_do_not_matter(void) {
  enum { ROWS = 37 };
  if (!lt_product_loops(LT_float32)) return;
  for (int d = LT_float32; d <= LT_float64; d++)
    for (int64_t k = 1; k < 150; k++) {
      const int64_t size = (int64_t)lt_dtype_size((lt_Dtype)d);
      lt_Tensor *a = make((lt_Dtype)d, DENSE, -1, ROWS, k), *x = make((lt_Dtype)d, DENSE, -1, k, 1),
                *all = make((lt_Dtype)d, DENSE, -1, ROWS, 1),
                *one = make((lt_Dtype)d, DENSE, -1, 1, 1);
      REQUIRE(a && x && all && one);
      for (int64_t i = 0; i < ROWS * k; i++) /* sums are rounded */
        lt_scalar_store(lt_scalar_float((double)(i % 1009) / 97 - 4), (lt_Dtype)d,
                        (char *)lt_tensor_data(a) + i * size);
      lt_Matrix am = {lt_tensor_data(a), k, 1}, xm = {lt_tensor_data(x), 1, 1};
      CHECK(lt_product((lt_Dtype)d, ROWS, 1, k, (lt_Factor){.f = 0.7}, am, xm, (lt_Factor){.f = 0},
                       (lt_Matrix){lt_tensor_data(all), 1, 1},
                       (lt_Matrix){lt_tensor_data(all), 1, 1}));
      for (int64_t i = 0; i < ROWS; i++) {
        am.data = (char *)lt_tensor_data(a) + i * k * size;
        CHECK(lt_product((lt_Dtype)d, 1, 1, k, (lt_Factor){.f = 0.7}, am, xm, (lt_Factor){.f = 0},
                         (lt_Matrix){lt_tensor_data(one), 1, 1},
                         (lt_Matrix){lt_tensor_data(one), 1, 1}));
        CHECK(memcmp((char *)lt_tensor_data(all) + i * size, lt_tensor_data(one), (size_t)size) ==
              0);
      }
      lt_release(a);
      lt_release(x);
      lt_release(all);
      lt_release(one);
    }
}

/* Computes 2 a @ b + 3 c with numbers that are rounded; the caller frees it. */
static float *rounded_product(int64_t m, int64_t k, int64_t n, bool ta, bool tb) {
  float *a = calloc((size_t)(m * k), 4), *b = calloc((size_t)(k * n), 4),
        *c = calloc((size_t)(m * n), 4);
  for (int64_t i = 0; a && i < m * k; i++) a[i] = (float)(i % 1009) / 97;
  for (int64_t i = 0; b && i < k * n; i++) b[i] = (float)(i % 997) / 89 - 5;
  for (int64_t i = 0; c && i < m * n; i++) c[i] = (float)(i % 13) / 7;
  if (a && b && c && lt_gemm_open(1, (double)(m * n * k))) {
    lt_gemm(LT_float32, m, n, k, 2, (lt_Matrix){a, ta ? 1 : k, ta ? m : 1},
            (lt_Matrix){b, tb ? 1 : n, tb ? k : 1}, 3, (lt_Matrix){c, n, 1});
    lt_gemm_close(1);
  }
  free(a);
  free(b);
  return c;
}

/* The number of threads changes no bit, and errors are as small as those of sums by columns. */
static void threads_do_not_matter(void) {
  static const int64_t large[][3] = {{129, 800, 130}, {300, 1030, 520}, {1, 3000, 700},
                                     {700, 3000, 1},  {90, 90, 1100},   {20, 70000, 1},
                                     {1, 70000, 20}};
  int threads = lt_num_threads();
  for (int s = 0; s < 7; s++)
    for (int t = 0; t < 4; t++) {
      int64_t m = large[s][0], k = large[s][1], n = large[s][2];
      lt_set_num_threads(1);
      float *one = rounded_product(m, k, n, t & 1, t & 2);
      lt_set_num_threads(3);
      float *three = rounded_product(m, k, n, t & 1, t & 2);
      REQUIRE(one && three);
      if (lt_product_loops(LT_float32)) CHECK(memcmp(one, three, (size_t)(m * n) * 4) == 0);
      for (int64_t e = 0; e<m * n; e += m * n> 100 ? 37 : 1) {
        int64_t i = e / n, j = e % n;
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; p++) {
          double x = (double)((float)((t & 1 ? p * m + i : i * k + p) % 1009) / 97),
                 y = (double)((float)((t & 2 ? j * k + p : p * n + j) % 997) / 89 - 5);
          sum += x * y;
          size += fabs(x * y);
        }
        sum = 2 * sum + 3 * (double)((float)(e % 13) / 7);
        CHECK_NEAR(one[e], sum, 1e-6 * sqrt((double)k) * size);
      }
      free(one);
      free(three);
    }
  lt_set_num_threads(threads);
}

/* 0 * inf is NaN, wherever it is in a tile or in a vector at the end. */
static void infinities(void) {
  static const int64_t sizes_[][3] = {
      {7, 9, 33}, {1, 40, 70}, {70, 40, 1}, {16, 16, 16}, {29, 300, 31}};
  for (int s = 0; s < 5; s++) {
    int64_t m = sizes_[s][0], k = sizes_[s][1], n = sizes_[s][2];
    for (int64_t at = 0; at < k * n; at += k * n / 7 + 1) {
      lt_Tensor *a = make(LT_float32, DENSE, -1, m, k), *b = make(LT_float32, DENSE, -1, k, n);
      memset(lt_tensor_data(a), 0, (size_t)(m * k) * 4);
      ((float *)lt_tensor_data(b))[at] = -INFINITY;
      lt_Tensor *c = op1_on_device(LT_OP_mm, (lt_Arg[]){LT_ARG(a), LT_ARG(b)}, 2);
      REQUIRE(c);
      for (int64_t i = 0; i < m * n; i++) {
        float v = ((float *)lt_tensor_data(c))[i];
        CHECK(i % n == at % n ? isnan(v) : v == 0);
      }
      lt_release(a);
      lt_release(b);
      lt_release(c);
    }
  }
}

int main(void) {
  RUN(mm);
  RUN(bmm);
  RUN(addmm);
  RUN(nan_rules);
  RUN(integers_wrap);
  RUN(matrices_without_a_dense_dimension);
  RUN(large_products);
  RUN(edges_of_tiles);
  RUN(blocks_of_bfloat16);
  RUN(few_rows_of_halves);
  RUN(few_rows);
  RUN(vectors);
  RUN(rows_and_columns);
  RUN(small_matrices);
  RUN(rows_do_not_matter);
  RUN(threads_do_not_matter);
  RUN(infinities);
  return check_end();
}
