/* copy.c: copies elements of one dtype as bytes between any layouts, and fills memory with one
 * element, by the loops of moves.h.
 *
 * There are three methods: dense to dense is one run of bytes; a transposition is split into square
 * tiles, so that both sides use whole cache lines; everything else is copied row by row. */
#include "cpu.h"
#include "moves.h"
#include "positions.h"
#include "kernel_support.h"

enum { AT_ONCE = 1 << 14 /* elements of a piece of several rows */ };

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

/* Computes the offsets in the output and the input of the piece with these coordinates. */
static void piece_offsets(const Pieces *p, const int64_t *at, int64_t *to, int64_t *from) {
  *to = *from = 0;
  for (int d = 0; d < p->ndim; d++) {
    *to += at[d] * p->strides[0][d];
    *from += at[d] * p->strides[1][d];
  }
}

/* ---- the three methods ----------------------------------------------------------------------- */

enum { STEP = 1 << 16 }; /* bytes of a dense copy's piece */

static void dense_pieces(const lt_Loop *l, int64_t bytes, int64_t first, int64_t last) {
  char *to = l->operand[0].data;
  const char *from = l->operand[1].data;
  for (int64_t i = first * STEP; i < last * STEP && i < bytes && !lt_stopped(); i += STEP)
    lt_copy_bytes(to + i, from + i, (size_t)(bytes - i < STEP ? bytes - i : STEP));
}

static void copy_dense(const lt_Loop *l, int64_t size) {
  int64_t bytes = l->numel * size;
  if (bytes <= STEP) {
    lt_copy_bytes(l->operand[0].data, l->operand[1].data, (size_t)bytes);
    return;
  }
  LT_IN_TEAM(lt_team(bytes / 8, bytes / STEP), (bytes + STEP - 1) / STEP,
             dense_pieces(l, bytes, first, last));
}

/* Copies pieces of the only dimension, of AT_ONCE elements. */
static void row_pieces(const lt_Loop *l, int64_t size, int64_t first, int64_t last) {
  const lt_Operand *to = &l->operand[0], *from = &l->operand[1];
  int64_t to_step = to->strides[0], from_step = from->strides[0];
  for (int64_t i = first; i < last && !lt_stopped(); i++) {
    int64_t start = i * AT_ONCE, left = l->shape[0] - start;
    lt_mover(size)->move(left < AT_ONCE ? left : AT_ONCE, to->data + start * to_step, to_step,
                         from->data + start * from_step, from_step);
  }
}

/* Copies pieces of `height` rows along the last dimension; each piece of `p` has `cuts` of them. */
static void plane_pieces(const lt_Loop *l, int64_t size, const Pieces *p, int64_t height,
                         int64_t cuts, int64_t first, int64_t last) {
  int inner = l->ndim - 1;
  const lt_Operand *to = &l->operand[0], *from = &l->operand[1];
  const int64_t to_strides[] = {to->strides[inner], to->strides[inner - 1]};
  const int64_t from_strides[] = {from->strides[inner], from->strides[inner - 1]};
  int64_t at[LT_MAX_DIMS], rows = l->shape[inner - 1], cut = first % cuts;
  lt_position_at(p->ndim, p->shape, first / cuts, at);
  for (int64_t i = first; i < last && !lt_stopped(); i++) {
    int64_t a, b, start = cut * height, left = rows - start;
    piece_offsets(p, at, &a, &b);
    lt_mover(size)->plane(left < height ? left : height, l->shape[inner],
                          to->data + a + start * to_strides[1], to_strides,
                          from->data + b + start * from_strides[1], from_strides);
    if (++cut < cuts) continue;
    cut = 0;
    lt_position_advance(p->ndim, p->shape, at, 1);
  }
}

static void copy_rows(const lt_Loop *l, int64_t size) {
  int64_t row = l->shape[l->ndim - 1];
  if (l->ndim == 1) {
    int64_t total = (row + AT_ONCE - 1) / AT_ONCE;
    LT_IN_TEAM(lt_team(row, total), total, row_pieces(l, size, first, last));
    return;
  }
  Pieces p = pieces_without(l, 3u << (l->ndim - 2));
  int64_t height = row < AT_ONCE ? AT_ONCE / row : 1, rows = l->shape[l->ndim - 2];
  int64_t cuts = (rows + height - 1) / height, total = p.count * cuts;
  LT_IN_TEAM(lt_team(l->numel, total), total, plane_pieces(l, size, &p, height, cuts, first, last));
}

/* How the dimensions `other` (down) and the last (across) are split into tiles. */
typedef struct Tiling {
  int other;
  int64_t height, width; /* of a tile */
  int64_t down, across;  /* number of tiles */
} Tiling;

/* Copies tiles. */
static void tile_pieces(const lt_Loop *l, int64_t size, const Tiling *t, const Pieces *p,
                        int64_t first, int64_t last) {
  const lt_Operand *to = &l->operand[0], *from = &l->operand[1];
  const lt_Mover *mover = lt_mover(size);
  int64_t rows = l->shape[t->other], columns = l->shape[l->ndim - 1], at[LT_MAX_DIMS];
  int64_t to_stride = to->strides[t->other], from_stride = from->strides[l->ndim - 1];
  int64_t r = first / t->across % t->down * t->height, c = first % t->across * t->width;
  lt_position_at(p->ndim, p->shape, first / (t->across * t->down), at);
  for (int64_t i = first; i < last && !lt_stopped(); i++) {
    int64_t a, b;
    piece_offsets(p, at, &a, &b);
    mover->tile(rows - r < t->height ? rows - r : t->height,
                columns - c < t->width ? columns - c : t->width,
                to->data + a + r * to_stride + c * size, to_stride,
                from->data + b + r * size + c * from_stride, from_stride);
    c += t->width;
    if (c < columns) continue;
    c = 0;
    r += t->height;
    if (r < rows) continue;
    r = 0;
    lt_position_advance(p->ndim, p->shape, at, 1);
  }
}

/* Returns the side of a square tile: whole cache lines, so that tiles of both sides fit the first
 * cache. */
static int64_t tile_of(int64_t size) { return size == 1 ? 64 : 32; }

/* Copies in square tiles, or in wider or higher ones if there are few rows or columns. */
static void copy_transposed(const lt_Loop *l, int64_t size, int other) {
  Pieces p = pieces_without(l, 1u << (l->ndim - 1) | 1u << other);
  int64_t rows = l->shape[other], columns = l->shape[l->ndim - 1], tile = tile_of(size);
  Tiling t = {.other = other, .height = rows, .width = columns};
  if (rows >= tile) t.height = columns < tile ? tile * tile / columns : tile;
  if (columns >= tile) t.width = rows < tile ? tile * tile / rows : tile;
  t.down = (rows + t.height - 1) / t.height;
  t.across = (columns + t.width - 1) / t.width;
  int64_t total = p.count * t.down * t.across;
  LT_IN_TEAM(lt_team(l->numel, total), total, tile_pieces(l, size, &t, &p, first, last));
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
