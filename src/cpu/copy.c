/* copy.c: copies elements of one dtype as bytes between any layouts, and fills memory with one
 * element.
 *
 * There are three methods: dense to dense is memcpy; a transposition is split into square tiles, so
 * that both sides use whole cache lines; everything else is copied row by row. */
#include "cpu.h"
#include "kernel_support.h"

#define TILE 32 /* elements: tiles of both sides fit the first cache */

/* Define the loops for elements of 1, 2, 4, 8 or 16 bytes: to[i * to_stride] = from[i *
 * from_stride] for i < n, strides in bytes; a fill with one element; a transposed tile. */
#define MOVE(type)                                                                                 \
  static void move_##type(int64_t n, char *to, int64_t to_stride, const char *from,                \
                          int64_t from_stride) {                                                   \
    for (int64_t i = 0; i < n; i++)                                                                \
      *(type *)(to + i * to_stride) = *(const type *)(from + i * from_stride);                     \
  }                                                                                                \
  static void splat_##type(int64_t n, char *to, const char *from) {                                \
    const type value = *(const type *)from;                                                        \
    type *out = (type *)to;                                                                        \
    for (int64_t i = 0; i < n; i++) out[i] = value;                                                \
  }                                                                                                \
  static void tile_##type(int64_t rows, int64_t columns, char *to, int64_t to_stride,              \
                          const char *from, int64_t from_stride) {                                 \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      type *out = (type *)(to + i * to_stride);                                                    \
      const char *in = from + i * (int64_t)sizeof(type);                                           \
      for (int64_t j = 0; j < columns; j++) out[j] = *(const type *)(in + j * from_stride);        \
    }                                                                                              \
  }
/* The bytes of elements of any type. */
typedef uint8_t __attribute__((may_alias)) bytes1;
typedef uint16_t __attribute__((may_alias)) bytes2;
typedef uint32_t __attribute__((may_alias)) bytes4;
typedef uint64_t __attribute__((may_alias)) bytes8;
typedef struct bytes16 {
  bytes8 half[2];
} __attribute__((may_alias)) bytes16;
MOVE(bytes1)
MOVE(bytes2)
MOVE(bytes4)
MOVE(bytes8)
MOVE(bytes16)

typedef struct Mover {
  void (*move)(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride);
  void (*splat)(int64_t n, char *to, const char *from);
  /* Copies a tile: the rows of `to` and the columns of `from` are dense. */
  void (*tile)(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from,
               int64_t from_stride);
} Mover;

static const Mover *mover(int64_t size) {
  static const Mover by_size[] = {{move_bytes1, splat_bytes1, tile_bytes1},
                                  {move_bytes2, splat_bytes2, tile_bytes2},
                                  {move_bytes4, splat_bytes4, tile_bytes4},
                                  {move_bytes8, splat_bytes8, tile_bytes8},
                                  {move_bytes16, splat_bytes16, tile_bytes16}};
  return &by_size[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4];
}

/* Copies one row of n elements. */
static void copy_row(const Mover *m, int64_t size, int64_t n, char *to, int64_t to_stride,
                     const char *from, int64_t from_stride) {
  if (to_stride == size && from_stride == size && n * size >= 64)
    memcpy(to, from, (size_t)(n * size));
  else if (to_stride == size && from_stride == 0)
    m->splat(n, to, from);
  else
    m->move(n, to, to_stride, from, from_stride);
}

/* ---- the loop's outer dimensions, as one list of pieces -------------------------------------- */

typedef struct Pieces {
  int ndim;
  int64_t count;
  int64_t shape[LT_MAX_DIMS];
  int64_t strides[2][LT_MAX_DIMS]; /* strides of the output and of the input, if there is one */
} Pieces;

/* Returns the dimensions of the loop without those in the mask, as a list of pieces. */
static Pieces pieces_without(const lt_Loop *l, unsigned mask) {
  Pieces p = {.ndim = 0, .count = 1};
  for (int d = 0; d < l->ndim; d++) {
    if (mask >> d & 1u) continue;
    p.shape[p.ndim] = l->shape[d];
    for (int k = 0; k < 2; k++)
      p.strides[k][p.ndim] = k <= l->inputs ? l->operand[k].strides[d] : 0;
    p.count *= l->shape[d];
    p.ndim++;
  }
  return p;
}

/* Computes the offsets of piece i in the output and the input. */
static void piece_offsets(const Pieces *p, int64_t i, int64_t *to, int64_t *from) {
  *to = *from = 0;
  for (int d = p->ndim - 1; d >= 0; d--) {
    int64_t at = i % p->shape[d];
    i /= p->shape[d];
    *to += at * p->strides[0][d];
    *from += at * p->strides[1][d];
  }
}

/* ---- the three methods ----------------------------------------------------------------------- */

enum { STEP = 1 << 20 }; /* bytes of a dense copy's piece */

static void dense_pieces(const lt_Loop *l, int64_t bytes, int64_t first, int64_t last) {
  char *to = l->operand[0].data;
  const char *from = l->operand[1].data;
  for (int64_t i = first * STEP; i < last * STEP && i < bytes && !lt_stopped(); i += STEP)
    memcpy(to + i, from + i, (size_t)(bytes - i < STEP ? bytes - i : STEP));
}

static void copy_dense(const lt_Loop *l, int64_t size) {
  int64_t bytes = l->numel * size;
  if (bytes <= STEP) {
    memmove(l->operand[0].data, l->operand[1].data, (size_t)bytes);
    return;
  }
  LT_IN_TEAM(lt_team(bytes / 4, bytes / STEP), (bytes + STEP - 1) / STEP,
             dense_pieces(l, bytes, first, last));
}

/* Copies pieces of rows along the last dimension: each row is split into `cuts` pieces of `cut`
 * elements. */
static void row_pieces(const lt_Loop *l, int64_t size, const Pieces *p, int64_t cut, int64_t cuts,
                       int64_t first, int64_t last) {
  const lt_Operand *to = &l->operand[0], *from = &l->operand[1];
  const Mover *m = mover(size);
  int64_t row = l->shape[l->ndim - 1], to_step = to->strides[l->ndim - 1],
          from_step = from->strides[l->ndim - 1];
  for (int64_t i = first; i < last && !lt_stopped(); i++) {
    int64_t a, b, start = i % cuts * cut;
    piece_offsets(p, i / cuts, &a, &b);
    copy_row(m, size, row - start < cut ? row - start : cut, to->data + a + start * to_step,
             to_step, from->data + b + start * from_step, from_step);
  }
}

static void copy_rows(const lt_Loop *l, int64_t size) {
  Pieces p = pieces_without(l, 1u << (l->ndim - 1));
  /* A single long row is split, so that all threads have work. */
  int64_t row = l->shape[l->ndim - 1], cut = p.count == 1 ? LT_GRAIN : row;
  int64_t cuts = (row + cut - 1) / cut, total = p.count * cuts;
  LT_IN_TEAM(lt_team(l->numel, total), total, row_pieces(l, size, &p, cut, cuts, first, last));
}

/* Copies tiles of the dimensions `other` (down) and the last (across). */
static void tile_pieces(const lt_Loop *l, int64_t size, int other, const Pieces *p, int64_t first,
                        int64_t last) {
  const lt_Operand *to = &l->operand[0], *from = &l->operand[1];
  const Mover *m = mover(size);
  int64_t rows = l->shape[other], columns = l->shape[l->ndim - 1];
  int64_t down = (rows + TILE - 1) / TILE, across = (columns + TILE - 1) / TILE;
  for (int64_t i = first; i < last && !lt_stopped(); i++) {
    int64_t a, b, r = i / across % down * TILE, c = i % across * TILE;
    piece_offsets(p, i / (across * down), &a, &b);
    m->tile(rows - r < TILE ? rows - r : TILE, columns - c < TILE ? columns - c : TILE,
            to->data + a + r * to->strides[other] + c * size, to->strides[other],
            from->data + b + r * size + c * from->strides[l->ndim - 1], from->strides[l->ndim - 1]);
  }
}

static void copy_transposed(const lt_Loop *l, int64_t size, int other) {
  Pieces p = pieces_without(l, 1u << (l->ndim - 1) | 1u << other);
  int64_t down = (l->shape[other] + TILE - 1) / TILE,
          across = (l->shape[l->ndim - 1] + TILE - 1) / TILE, total = p.count * down * across;
  LT_IN_TEAM(lt_team(l->numel, total), total, tile_pieces(l, size, other, &p, first, last));
}

/* Returns the dimension along which the input is dense while the output is dense along the last
 * one; -1 when there is none. */
static int transposed_dim(const lt_Loop *l, int64_t size) {
  int last = l->ndim - 1;
  if (l->operand[0].strides[last] != size || l->operand[1].strides[last] == size ||
      l->operand[1].strides[last] == 0)
    return -1;
  for (int d = 0; d < last; d++)
    if (l->operand[1].strides[d] == size && l->shape[d] > 1) return d;
  return -1;
}

bool lt_cpu_copy_same(const lt_Loop *loop) {
  int64_t size = (int64_t)lt_dtype_size(loop->operand[0].dtype);
  if (loop->layout == LT_LAYOUT_CONTIGUOUS) {
    copy_dense(loop, size);
    return lt_check_interrupt();
  }
  int other = transposed_dim(loop, size);
  if (other >= 0)
    copy_transposed(loop, size, other);
  else
    copy_rows(loop, size);
  return lt_check_interrupt();
}

bool lt_cpu_fill(const lt_Loop *loop) {
  _Alignas(LT_MAX_ELEMENT) char element[LT_MAX_ELEMENT] = {0};
  lt_Loop l = *loop;
  if (!lt_scalar_store(loop->a, l.operand[0].dtype, element)) return false;
  l.inputs = 1;
  l.operand[1] = (lt_Operand){.data = element, .dtype = l.operand[0].dtype};
  copy_rows(&l, (int64_t)lt_dtype_size(l.operand[0].dtype));
  return lt_check_interrupt();
}
