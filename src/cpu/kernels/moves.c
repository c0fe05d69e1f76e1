/* moves.c: loops that copy and fill elements as bytes, and loops that generate numbers: moves.h. */
#include "cpu/moves.h"
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"
#include "cpu/kernels/shuffle.h"

/* The bytes of elements of any type. */
typedef uint8_t __attribute__((may_alias)) bytes1;
typedef uint16_t __attribute__((may_alias)) bytes2;
typedef uint32_t __attribute__((may_alias)) bytes4;
typedef uint64_t __attribute__((may_alias)) bytes8;
typedef struct bytes16 {
  bytes8 half[2];
} __attribute__((may_alias)) bytes16;

typedef uint8_t Bytes __attribute__((vector_size(LT_VECTOR_SIZE), may_alias));

LT_LANES void copy_vector(char *to, const char *from) {
  Bytes v;
  memcpy(&v, from, sizeof v);
  memcpy(to, &v, sizeof v);
}

/* The stores between the first and the last vector are aligned. Vectors are copied one by one: the
 * compiler copies an array of them through the stack. */
static void copy_bytes(size_t n, char *restrict to, const char *restrict from) {
  const size_t size = sizeof(Bytes), last = n - size;
  size_t i = size - (uintptr_t)to % size;
  copy_vector(to, from);
  for (; i + 3 * size < last; i += 4 * size)
    for (size_t k = 0; k < 4; k++) copy_vector(to + i + k * size, from + i + k * size);
  for (; i < last; i += size) copy_vector(to + i, from + i);
  copy_vector(to + last, from + last);
}

/* Transposes n x n elements of 8 / n bytes, each row of them a word: exchanges the halves that are
 * off the diagonal, then those of all quarters. */
LT_LANES void transpose_words(int n, char *to, int64_t to_stride, const char *from,
                              int64_t from_stride) {
  uint64_t word[8];
  for (int i = 0; i < n; i++) memcpy(&word[i], from + i * from_stride, 8);
  for (int half = n / 2; half > 0; half /= 2) {
    const int shift = 64 / n * half;
    const uint64_t mask = UINT64_MAX / ((UINT64_C(1) << shift) + 1); /* the lower of two halves */
    for (int i = 0; i < n; i++) {
      if (i & half) continue;
      uint64_t other = ((word[i] >> shift) ^ word[i + half]) & mask;
      word[i + half] ^= other;
      word[i] ^= other << shift;
    }
  }
  for (int i = 0; i < n; i++) memcpy(to + i * to_stride, &word[i], 8);
}

/* Transposes a square of SQUARE(size) x SQUARE(size) elements of up to 4 bytes. */
#define SQUARE(size) ((size) == 2 ? 4 : 8)
LT_LANES void transpose_square(int64_t size, char *to, int64_t to_stride, const char *from,
                               int64_t from_stride) {
  if (size == 4)
    lt_transpose_8(from, from_stride, to, to_stride);
  else
    transpose_words((int)SQUARE(size), to, to_stride, from, from_stride);
}

typedef char Bytes16 __attribute__((vector_size(16), may_alias));
typedef char Bytes32 __attribute__((vector_size(LT_VECTOR_SIZE < 32 ? 16 : 32), may_alias));

#define UNROLL _Pragma("GCC unroll 4")
#define COPY_PIECE(type, at)                                                                       \
  {                                                                                                \
    type piece;                                                                                    \
    memcpy(&piece, from + (at), sizeof piece);                                                     \
    memcpy(to + (at), &piece, sizeof piece);                                                       \
  }

/* Copies rows of n <= LT_SHORT_ROW bytes, each as pieces of one type: `half` of them from the start
 * on, and as many up to the end, which may overlap those. */
static void copy_short_rows(int64_t rows, size_t n, char *restrict to, int64_t to_stride,
                            const char *restrict from, int64_t from_stride) {
#define IN_PIECES(type, half)                                                                      \
  for (int64_t r = 0; r < rows; r++, to += to_stride, from += from_stride) {                       \
    const size_t end = n - (half) * sizeof(type);                                                  \
    UNROLL for (size_t k = 0; k < (half); k++) COPY_PIECE(type, k * sizeof(type))                  \
        UNROLL for (size_t k = 0; k < (half); k++) COPY_PIECE(type, end + k * sizeof(type))        \
  }
  if (n >= 64)
    IN_PIECES(Bytes32, 64 / sizeof(Bytes32))
  else if (n >= 32)
    IN_PIECES(Bytes16, 2)
  else if (n >= 16)
    IN_PIECES(Bytes16, 1)
  else if (n >= 8)
    IN_PIECES(uint64_t, 1)
  else if (n >= 4)
    IN_PIECES(uint32_t, 1)
  else if (n >= 2)
    IN_PIECES(uint16_t, 1)
  else
    IN_PIECES(char, 1)
#undef IN_PIECES
}

/* Copies every k-th element: shuffles take the place of loads. */
#define EVERY(k, type)                                                                             \
  const type *restrict in = (const type *)from;                                                    \
  for (int64_t i = 0; i < n; i++) out[i] = in[k * i];

/* Define the loops for elements of one size. */
#define MOVE(type)                                                                                 \
  static inline __attribute__((always_inline)) void row_##type(                                    \
      int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride) {             \
    const int64_t size = (int64_t)sizeof(type);                                                    \
    type *restrict out = (type *)to;                                                               \
    if (to_stride == size && from_stride == size) {                                                \
      lt_copy_bytes(to, from, (size_t)(n * size));                                                 \
    } else if (to_stride == size && from_stride == 0) {                                            \
      const type value = *(const type *)from;                                                      \
      for (int64_t i = 0; i < n; i++) out[i] = value;                                              \
    } else if (to_stride == size && from_stride == -size) {                                        \
      const type *restrict in = (const type *)from - (n - 1);                                      \
      for (int64_t i = 0; i < n; i++) out[i] = in[n - 1 - i];                                      \
    } else if (to_stride == size && from_stride == 2 * size) {                                     \
      EVERY(2, type)                                                                               \
    } else if (to_stride == size && from_stride == 3 * size) {                                     \
      EVERY(3, type)                                                                               \
    } else if (to_stride == size && from_stride == 4 * size) {                                     \
      EVERY(4, type)                                                                               \
    } else if (to_stride == size) {                                                                \
      for (int64_t i = 0; i < n; i++) out[i] = *(const type *)(from + i * from_stride);            \
    } else {                                                                                       \
      for (int64_t i = 0; i < n; i++)                                                              \
        *(type *)(to + i * to_stride) = *(const type *)(from + i * from_stride);                   \
    }                                                                                              \
  }                                                                                                \
  static void move_##type(int64_t n, char *to, int64_t to_stride, const char *from,                \
                          int64_t from_stride) {                                                   \
    row_##type(n, to, to_stride, from, from_stride);                                               \
  }                                                                                                \
  /* Short rows are copied without a call of memcpy. */                                            \
  static void plane_##type(int64_t rows, int64_t n, char *to, const int64_t to_strides[2],         \
                           const char *from, const int64_t from_strides[2]) {                      \
    const int64_t size = (int64_t)sizeof(type), to_step = to_strides[0],                           \
                  from_step = from_strides[0];                                                     \
    if (n * size <= LT_SHORT_ROW && to_step == size && from_step == size)                          \
      copy_short_rows(rows, (size_t)(n * size), to, to_strides[1], from, from_strides[1]);         \
    else if (n * size <= 64 && to_step == size)                                                    \
      for (int64_t r = 0; r < rows; r++, to += to_strides[1], from += from_strides[1]) {           \
        type *restrict out = (type *)to;                                                           \
        for (int64_t i = 0; i < n; i++) out[i] = *(const type *)(from + i * from_step);            \
      }                                                                                            \
    else                                                                                           \
      for (int64_t r = 0; r < rows; r++, to += to_strides[1], from += from_strides[1])             \
        row_##type(n, to, to_step, from, from_step);                                               \
  }                                                                                                \
  static void weave_##type(int count, int64_t n, char *to, const char *const *from) {              \
    type *restrict out = (type *)to;                                                               \
    const type *restrict a = (const type *)from[0], *restrict b = (const type *)from[1];           \
    const type *restrict c = (const type *)from[count > 2 ? 2 : 0];                                \
    const type *restrict d = (const type *)from[count > 3 ? 3 : 0];                                \
    if (count == 2)                                                                                \
      for (int64_t i = 0; i < n; i++) out[2 * i] = a[i], out[2 * i + 1] = b[i];                    \
    else if (count == 3)                                                                           \
      for (int64_t i = 0; i < n; i++)                                                              \
        out[3 * i] = a[i], out[3 * i + 1] = b[i], out[3 * i + 2] = c[i];                           \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++)                                                              \
        out[4 * i] = a[i], out[4 * i + 1] = b[i], out[4 * i + 2] = c[i], out[4 * i + 3] = d[i];    \
  }                                                                                                \
  static void tile_##type(int64_t rows, int64_t columns, char *to, int64_t to_stride,              \
                          const char *from, int64_t from_stride) {                                 \
    const int64_t size = (int64_t)sizeof(type);                                                    \
    int64_t done = 0;                                                                              \
    if (to_stride == columns * size && columns >= 2 && columns <= 4) {                             \
      const char *in[4];                                                                           \
      for (int64_t j = 0; j < columns; j++) in[j] = from + j * from_stride;                        \
      weave_##type((int)columns, rows, to, in);                                                    \
      return;                                                                                      \
    }                                                                                              \
    const int64_t side = SQUARE(size);                                                             \
    if (size <= 4)                                                                                 \
      for (; done + side <= rows; done += side) {                                                  \
        char *out = to + done * to_stride;                                                         \
        const char *in = from + done * size;                                                       \
        int64_t j = 0;                                                                             \
        for (; j + side <= columns; j += side)                                                     \
          transpose_square(size, out + j * size, to_stride, in + j * from_stride, from_stride);    \
        for (int64_t k = 0; k < side; k++)                                                         \
          for (int64_t i = j; i < columns; i++)                                                    \
            *(type *)(out + k * to_stride + i * size) =                                            \
                *(const type *)(in + k * size + i * from_stride);                                  \
      }                                                                                            \
    for (int64_t i = done; i < rows; i++)                                                          \
      row_##type(columns, to + i * to_stride, size, from + i * size, from_stride);                 \
  }
MOVE(bytes1)
MOVE(bytes2)
MOVE(bytes4)
MOVE(bytes8)
MOVE(bytes16)

static void sequence(int n, double *restrict out, double base, double index, double by, double step,
                     double scale) {
  _Pragma("omp simd")
  for (int k = 0; k < n; k++) out[k] = scale * (base + (index + by * (double)k) * step);
}

static void count(int64_t n, int64_t *out, int64_t first, int64_t step, int64_t index) {
  uint64_t next = (uint64_t)first + (uint64_t)index * (uint64_t)step;
  for (int64_t i = 0; i < n; i++, next += (uint64_t)step) out[i] = (int64_t)next;
}

#define MOVER(type)                                                                                \
  { move_##type, plane_##type, weave_##type, tile_##type }
extern const lt_Moves LT_FOR_ISA(lt_moves);
const lt_Moves LT_FOR_ISA(lt_moves) = {
    .bytes = copy_bytes,
    .mover = {MOVER(bytes1), MOVER(bytes2), MOVER(bytes4), MOVER(bytes8), MOVER(bytes16)},
    .sequence = sequence,
    .count = count,
};
