/* matmul.metal: products of matrices with any strides.
 *
 * SIMD groups multiply floating matrices in blocks of 8 x 8. A threadgroup computes a tile of the
 * result. In steps along the inner dimension it copies a tile of each factor to its memory,
 * converted to float. Integers and complex numbers have a plain kernel. All sums have a
 * fixed order.
 */
#include "device.metal.h"
#include "matmul.h"

#include <metal_simdgroup_matrix>

#define DTYPE   K0
#define A_ROWS  K1 /* 1: neighbours in memory are in one row of a; 0: in one column */
#define B_ROWS  K2
#define PARTIAL K3 /* 1: the result is a part of the sum, in float, for sum_parts */

typedef simdgroup_matrix<float, 8, 8> Block;

/* Returns the result from a sum of products, and the old value at element i of `out`. */
static inline float finished(constant lt_MpsMatmul &args, float sum, device const char *out,
                             int64_t i) {
  float v = sum * args.real_alpha;
  return args.real_beta == 0 ? v : v + args.real_beta * load_float(out, DTYPE, i);
}

/* The place of a threadgroup's tile. */
struct Tile {
  int64_t matrix, split, row, column; /* of the first element */
};

/* Copies rows x columns elements of a factor, from (row, column) on, to `tile`, whose rows are
 * `width` apart. Elements from (rows_end, columns_end) on are 0. `along_rows`: see A_ROWS. */
template <int ROWS, int COLUMNS>
static inline void copy_tile(threadgroup float *tile, int width, device const char *memory,
                             int64_t first, int64_t row_stride, int64_t column_stride, int64_t row,
                             int64_t rows_end, int64_t column, int64_t columns_end,
                             bool along_rows, uint index) {
  for (uint e = index; e < ROWS * COLUMNS; e += LT_MPS_THREADS) {
    int r = (int)(along_rows ? e / COLUMNS : e % ROWS);
    int c = (int)(along_rows ? e % COLUMNS : e / ROWS);
    float v = 0;
    if (row + r < rows_end && column + c < columns_end)
      v = load_float(memory, DTYPE,
                     first + (row + r) * row_stride + (column + c) * column_stride);
    tile[r * width + c] = v;
  }
}

/* Computes the tile of SIZE x SIZE at `at`. The memory: SIZE x LEFT_WIDTH floats for the tile of a,
 * LT_MPS_DEPTH x (SIZE + PAD) for that of b, 64 for each SIMD group. */
#define PAD        4 /* spreads the rows of a tile over the banks of memory */
#define LEFT_WIDTH (LT_MPS_DEPTH + PAD)
template <int SIZE>
static inline void multiply_tile(device const char *a, device const char *b, device char *out,
                                 constant lt_MpsMatmul &args, threadgroup float *left,
                                 threadgroup float *right, threadgroup float *blocks, Tile at,
                                 uint index) {
  const int right_width = SIZE + PAD, half_size = SIZE / 2;
  const int count = SIZE / 16; /* blocks in each direction of a SIMD group's quarter */
  const uint lane = index % LT_SIMD, simd = index / LT_SIMD;
  const int row = (int)(simd / 2) * half_size, column = (int)(simd % 2) * half_size;
  const int64_t down = args.m - at.row - row, across = args.n - at.column - column; /* left */
  const int64_t begin = at.split * args.part, end = min(begin + args.part, args.k);

  Block sums[count][count];
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (int64_t p = begin; p < end; p += LT_MPS_DEPTH) {
    copy_tile<SIZE, LT_MPS_DEPTH>(left, LEFT_WIDTH, a, at.matrix * args.a.step, args.a.row,
                                  args.a.column, at.row, args.m, p, end, A_ROWS != 0, index);
    copy_tile<LT_MPS_DEPTH, SIZE>(right, right_width, b, at.matrix * args.b.step, args.b.row,
                                  args.b.column, p, end, at.column, args.n, B_ROWS != 0, index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int q = 0; q < LT_MPS_DEPTH; q += 8) {
      Block lefts[count], rights[count];
      for (int i = 0; i < count; i++) {
        simdgroup_load(lefts[i], left + (row + 8 * i) * LEFT_WIDTH + q, LEFT_WIDTH);
        simdgroup_load(rights[i], right + q * right_width + column + 8 * i, right_width);
      }
      for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
          if (8 * i < down && 8 * j < across)
            simdgroup_multiply_accumulate(sums[i][j], lefts[i], rights[j], sums[i][j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  threadgroup float *block = blocks + simd * 64;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) {
      if (8 * i >= down || 8 * j >= across) continue; /* the same for the whole SIMD group */
      simdgroup_store(sums[i][j], block, 8);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (uint e = lane; e < 64; e += LT_SIMD) {
        int r = 8 * i + (int)(e / 8), c = 8 * j + (int)(e % 8);
        if (r >= down || c >= across) continue;
        int64_t place =
            (at.matrix * args.m + at.row + row + r) * args.n + at.column + column + c;
        if (PARTIAL != 0)
          ((device float *)out)[at.split * args.batch * args.m * args.n + place] = block[e];
        else
          store_float(out, DTYPE, place, finished(args, block[e], out, place));
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

#define MATMUL_TILES(name, SIZE)                                                                   \
  kernel void name(device const char *a [[buffer(0)]], device const char *b [[buffer(1)]],         \
                   device char *out [[buffer(2)]], constant lt_MpsMatmul &args [[buffer(3)]],      \
                   uint3 group [[threadgroup_position_in_grid]],                                   \
                   uint index [[thread_index_in_threadgroup]]) {                                   \
    threadgroup float left[SIZE * LEFT_WIDTH];                                                     \
    threadgroup float right[LT_MPS_DEPTH * (SIZE + PAD)];                                          \
    threadgroup float blocks[LT_MPS_THREADS / LT_SIMD * 64];                                       \
    Tile at = {(int64_t)group.z / args.splits, (int64_t)group.z % args.splits,                     \
               (int64_t)group.y * SIZE, (int64_t)group.x * SIZE};                                  \
    multiply_tile<SIZE>(a, b, out, args, left, right, blocks, at, index);                          \
  }
MATMUL_TILES(matmul_tiles, LT_MPS_TILE)
MATMUL_TILES(matmul_small_tiles, LT_MPS_SMALL)

/* Adds the parts of the sums, and finishes the results. One thread computes one result. */
kernel void sum_parts(device const float *parts [[buffer(0)]], device char *out [[buffer(1)]],
                      constant lt_MpsMatmul &args [[buffer(2)]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint3 groups [[threadgroups_per_grid]],
                      uint index [[thread_index_in_threadgroup]]) {
  int64_t count = args.batch * args.m * args.n;
  int64_t i = ((int64_t)group.y * groups.x + group.x) * 256 + index;
  if (i >= count) return;
  float sum = parts[i];
  for (int64_t s = 1; s < args.splits; s++) sum += parts[s * count + i];
  store_float(out, DTYPE, i, finished(args, sum, out, i));
}

/* ---- a matrix and a vector ------------------------------------------------------------------- */

/* A product with one row or one column: `rows` dot products of the rows of a matrix with a vector,
 * both of length k. */
struct Dots {
  int64_t rows, row, across; /* the strides of the matrix: between rows, and in one */
  int64_t along;             /* the stride of the vector */
  int64_t matrix_step, vector_step;
};
static inline Dots dots_of(constant lt_MpsMatmul &args, bool left) {
  Dots d = {args.m, args.a.row, args.a.column, args.b.row, args.a.step, args.b.step};
  if (!left) d = Dots{args.n, args.b.column, args.b.row, args.a.column, args.b.step, args.a.step};
  return d;
}

#define LEFT K1 /* 1: the matrix is a; 0: it is b */

/* For rows whose elements are neighbours: a SIMD group computes one dot product. */
kernel void matmul_dots(device const char *matrix [[buffer(0)]],
                        device const char *vector [[buffer(1)]], device char *out [[buffer(2)]],
                        constant lt_MpsMatmul &args [[buffer(3)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint index [[thread_index_in_threadgroup]]) {
  const Dots d = dots_of(args, LEFT != 0);
  const uint lane = index % LT_SIMD;
  const int64_t row = (int64_t)group.x * (LT_MPS_THREADS / LT_SIMD) + index / LT_SIMD;
  const int64_t first = (int64_t)group.z * d.matrix_step + row * d.row;
  const int64_t start = (int64_t)group.z * d.vector_step;
  float sum = 0;
  if (row < d.rows)
    for (int64_t p = lane; p < args.k; p += LT_SIMD)
      sum += load_float(matrix, DTYPE, first + p * d.across) *
             load_float(vector, DTYPE, start + p * d.along);
  sum = simd_all(sum, Sum());
  if (lane != 0 || row >= d.rows) return;
  const int64_t place = (int64_t)group.z * d.rows + row;
  store_float(out, DTYPE, place, finished(args, sum, out, place));
}

/* For columns whose elements are neighbours: each lane of a SIMD group has its own row, and the
 * threadgroup's SIMD groups compute parts of the dot products. */
kernel void matmul_columns(device const char *matrix [[buffer(0)]],
                           device const char *vector [[buffer(1)]],
                           device char *out [[buffer(2)]],
                           constant lt_MpsMatmul &args [[buffer(3)]],
                           uint3 group [[threadgroup_position_in_grid]],
                           uint index [[thread_index_in_threadgroup]]) {
  threadgroup float parts[LT_MPS_THREADS];
  const Dots d = dots_of(args, LEFT != 0);
  const uint lane = index % LT_SIMD, simds = LT_MPS_THREADS / LT_SIMD;
  const int64_t row = (int64_t)group.x * LT_SIMD + lane;
  const int64_t first = (int64_t)group.z * d.matrix_step + row * d.row;
  const int64_t start = (int64_t)group.z * d.vector_step;
  float sum = 0;
  if (row < d.rows)
    for (int64_t p = index / LT_SIMD; p < args.k; p += simds)
      sum += load_float(matrix, DTYPE, first + p * d.across) *
             load_float(vector, DTYPE, start + p * d.along);
  parts[index] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index >= LT_SIMD || row >= d.rows) return;
  for (uint s = 1; s < simds; s++) sum += parts[s * LT_SIMD + lane];
  const int64_t place = (int64_t)group.z * d.rows + row;
  store_float(out, DTYPE, place, finished(args, sum, out, place));
}

/* ---- integers and complex numbers ------------------------------------------------------------ */

/* The types of numbers in memory and of their sums, which wrap. */
struct Narrow { /* up to 32 bits */
  typedef int Number;
  typedef uint Sum;
  static uint factor(int64_t whole, float) { return (uint)whole; }
};
struct Long {
  typedef int64_t Number;
  typedef uint64_t Sum;
  static uint64_t factor(int64_t whole, float) { return (uint64_t)whole; }
};
struct Pair {
  typedef Complex Number;
  typedef Complex Sum;
  static Complex factor(int64_t, float real) { return Complex(real); }
};

/* Computes the number of thread `index` in a tile. The memory is for a tile of each factor. */
template <typename Kind>
static inline void multiply_plain(device const char *a, device const char *b, device char *out,
                                  constant lt_MpsMatmul &args,
                                  threadgroup typename Kind::Number *left,
                                  threadgroup typename Kind::Number *right, uint3 group,
                                  uint index) {
  typedef typename Kind::Number Number;
  typedef typename Kind::Sum Sum;
  const int x = (int)index % LT_MPS_PLAIN, y = (int)index / LT_MPS_PLAIN;
  const int64_t matrix = group.z, row = (int64_t)group.y * LT_MPS_PLAIN + y;
  const int64_t column = (int64_t)group.x * LT_MPS_PLAIN + x;
  const bool in_rows = row < args.m, in_columns = column < args.n;
  const int64_t a_row = matrix * args.a.step + row * args.a.row;
  const int64_t b_column = matrix * args.b.step + column * args.b.column;
  Sum sum = Sum(0);
  for (int64_t p = 0; p < args.k; p += LT_MPS_PLAIN) {
    Number l = Number(0), r = Number(0);
    if (in_rows && p + x < args.k) l = load<Number>(a, DTYPE, a_row + (p + x) * args.a.column);
    if (in_columns && p + y < args.k) r = load<Number>(b, DTYPE, b_column + (p + y) * args.b.row);
    left[y * LT_MPS_PLAIN + x] = l;
    right[y * LT_MPS_PLAIN + x] = r;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int q = 0; q < LT_MPS_PLAIN; q++)
      sum = sum + (Sum)left[y * LT_MPS_PLAIN + q] * (Sum)right[q * LT_MPS_PLAIN + x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (!in_rows || !in_columns) return;
  int64_t place = (matrix * args.m + row) * args.n + column;
  sum = sum * Kind::factor(args.alpha, args.real_alpha);
  if (args.real_beta != 0)
    sum = sum + Kind::factor(args.beta, args.real_beta) * (Sum)load<Number>(out, DTYPE, place);
  store(out, DTYPE, place, (Number)sum);
}

#define MATMUL_PLAIN(name, Kind)                                                                   \
  kernel void name(device const char *a [[buffer(0)]], device const char *b [[buffer(1)]],         \
                   device char *out [[buffer(2)]], constant lt_MpsMatmul &args [[buffer(3)]],      \
                   uint3 group [[threadgroup_position_in_grid]],                                   \
                   uint index [[thread_index_in_threadgroup]]) {                                   \
    threadgroup Kind::Number left[LT_MPS_PLAIN * LT_MPS_PLAIN];                                    \
    threadgroup Kind::Number right[LT_MPS_PLAIN * LT_MPS_PLAIN];                                   \
    multiply_plain<Kind>(a, b, out, args, left, right, group, index);                              \
  }
MATMUL_PLAIN(matmul_narrow, Narrow)
MATMUL_PLAIN(matmul_long, Long)
MATMUL_PLAIN(matmul_complex, Pair)
