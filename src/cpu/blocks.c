/* blocks.c: see blocks.h. */
#include "blocks.h"
#include "moves.h"
#include "positions.h"

/* Fills n bytes of a block with copies of its first `filled` bytes: each copy doubles what is
 * filled. */
static void repeat(char *block, int64_t filled, int64_t n) {
  for (int64_t piece; filled < n; filled += piece) {
    piece = n - filled < filled ? n - filled : filled;
    memcpy(block + filled, block, (size_t)piece);
  }
}

/* Returns the number of whole rows, neighbours along the dimension before the last, that begin at
 * these coordinates, at most those of n elements. */
static int64_t rows_at(const lt_Elements *e, const int64_t *at, int64_t n) {
  int last = e->ndim - 1;
  if (last == 0 || at[last] > 0) return 0;
  int64_t rows = n / e->shape[last], left = e->shape[last - 1] - at[last - 1];
  return rows < left ? rows : left;
}

/* Returns the number of elements from these coordinates on that have one stride. */
static int64_t run_at(const lt_Elements *e, const int64_t *at) {
  const int64_t *strides = e->operand->strides, stride = strides[e->ndim - 1];
  int64_t run = 1, before = 0;
  for (int d = e->ndim - 1; d >= 0 && strides[d] == run * stride; d--) {
    before += at[d] * run;
    run *= e->shape[d];
  }
  return run - before;
}

/* Returns the number of elements from these coordinates on, at most n, that are moved in one loop
 * over rows, and sets their number of rows. A row is a run of one stride, here. */
static int64_t piece_at(const lt_Elements *e, const int64_t *at, int64_t n, int64_t *rows) {
  int64_t run = run_at(e, at), row = e->shape[e->ndim - 1];
  *rows = run < n && run == row ? rows_at(e, at, n) : 1;
  if (*rows > 1) return *rows * row;
  *rows = 1;
  return run < n ? run : n;
}

/* Loads rows whose elements are the same in each row. */
static void spread_rows(const lt_Elements *e, const char *memory, int64_t rows, int64_t row,
                        char *block) {
  _Alignas(64) char values[LT_BLOCK];
  e->vectors->load[e->operand->dtype](rows, values, memory, e->operand->strides[e->ndim - 2]);
  e->vectors->spread(rows, row, block, values);
}

/* Loads rows, which lie `next` bytes from each other. */
static void load_rows(const lt_Elements *e, const char *memory, int64_t next, int64_t rows,
                      int64_t row, char *block) {
  int64_t stride = e->operand->strides[e->ndim - 1], bytes = row * e->size;
  int64_t loads = next == 0 ? 1 : rows;
  if (e->plain && loads > 1 && bytes <= LT_SHORT_ROW) {
    const int64_t to[] = {e->size, bytes}, from[] = {stride, next};
    lt_mover(e->size)->plane(rows, row, block, to, memory, from);
    return;
  }
  for (int64_t r = 0; r < loads; r++)
    e->vectors->load[e->operand->dtype](row, block + r * bytes, memory + r * next, stride);
  if (loads < rows) repeat(block, bytes, rows * bytes);
}

/* Stores rows from a block. */
static void store_rows(const lt_Elements *e, char *memory, int64_t next, int64_t rows, int64_t row,
                       const char *block) {
  int64_t stride = e->operand->strides[e->ndim - 1], bytes = row * e->size;
  if (e->plain && rows > 1 && bytes <= LT_SHORT_ROW) {
    const int64_t to[] = {stride, next}, from[] = {e->size, bytes};
    lt_mover(e->size)->plane(rows, row, memory, to, block, from);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    e->vectors->store[e->operand->dtype](row, memory + r * next, stride, block + r * bytes);
}

void lt_block_load(const lt_Elements *e, const int64_t *from, int64_t n, char *block, bool roomy) {
  const lt_Operand *o = e->operand;
  int64_t at[LT_MAX_DIMS], rows;
  memcpy(at, from, sizeof *at * (size_t)e->ndim);
  for (int64_t piece; n > 0; n -= piece) {
    piece = piece_at(e, at, n, &rows);
    const char *memory = lt_position_address(e->ndim, o, at);
    if (rows > 1 && roomy && o->strides[e->ndim - 1] == 0)
      spread_rows(e, memory, rows, piece / rows, block);
    else
      load_rows(e, memory, rows > 1 ? o->strides[e->ndim - 2] : 0, rows, piece / rows, block);
    block += piece * e->size;
    if (piece < n) lt_position_advance(e->ndim, e->shape, at, piece);
  }
}

void lt_block_store(const lt_Elements *e, const int64_t *from, int64_t n, const char *block) {
  const lt_Operand *o = e->operand;
  int64_t at[LT_MAX_DIMS], rows;
  memcpy(at, from, sizeof *at * (size_t)e->ndim);
  for (int64_t piece; n > 0; n -= piece) {
    piece = piece_at(e, at, n, &rows);
    store_rows(e, lt_position_address(e->ndim, o, at), rows > 1 ? o->strides[e->ndim - 2] : 0, rows,
               piece / rows, block);
    block += piece * e->size;
    if (piece < n) lt_position_advance(e->ndim, e->shape, at, piece);
  }
}
