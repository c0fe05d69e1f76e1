/* distance.c: distances between all rows of two matrices. The rows of the second are transposed a
 * few columns at a time, so that vectors hold the distances of neighbouring columns, and no
 * difference is written to memory. */
#include "distance.h"
#include "kernel_support.h"
#include "moves.h"

enum { ROWS = 64 /* of the first matrix, in a piece */ };

/* Matrices of n and m rows of d elements. */
typedef struct Distances {
  const char *x, *y;
  char *out;
  int64_t size; /* bytes of an element */
  int64_t n, m, d;
  int64_t down, across, columns; /* pieces of the rows of x and of y, and the columns of each */
  const lt_DistanceLoops *loops;
  double p;
} Distances;

/* Computes the distances of `rows` rows of x and `width` rows of y: rows of out, `out_row` elements
 * apart. */
static void distance_piece(const Distances *s, const char *x, const char *y, int64_t rows,
                           int64_t width, char *out, int64_t out_row) {
  lt_DistanceLoop add = s->p == 1   ? s->loops->sum
                        : s->p == 2 ? s->loops->squares
                                    : s->loops->largest;
  _Alignas(64) char block[LT_DISTANCE_DEPTH * LT_DISTANCE_BYTES] = {0};
  for (int64_t k = 0; k < s->d; k += LT_DISTANCE_DEPTH) {
    int64_t depth = s->d - k < LT_DISTANCE_DEPTH ? s->d - k : LT_DISTANCE_DEPTH;
    lt_mover(s->size)->tile(depth, width, block, LT_DISTANCE_BYTES, y + k * s->size,
                            s->d * s->size);
    add(x + k * s->size, s->d, block, out, out_row, rows, depth, width, k == 0);
  }
  if (s->p == 2) s->loops->roots(out, out_row, rows, width);
}

/* Computes pieces from..to - 1: ROWS rows and `columns` columns of a result. */
static void distance_pieces(void *context, int64_t from, int64_t to) {
  const Distances *s = context;
  for (int64_t piece = from; piece < to && !lt_stopped(); piece++) {
    int64_t j = piece % s->across * s->columns, i = piece / s->across % s->down * ROWS,
            matrix = piece / (s->across * s->down);
    int64_t rows = s->n - i < ROWS ? s->n - i : ROWS,
            width = s->m - j < s->columns ? s->m - j : s->columns;
    distance_piece(s, s->x + (matrix * s->n + i) * s->d * s->size,
                   s->y + (matrix * s->m + j) * s->d * s->size, rows, width,
                   s->out + ((matrix * s->n + i) * s->m + j) * s->size, s->m);
  }
}

/* Computes the pairs in pieces from..to - 1 of the matrix of all distances. */
static void pair_pieces(void *context, int64_t from, int64_t to) {
  const Distances *s = context;
  _Alignas(64) char found[ROWS * LT_DISTANCE_BYTES];
  for (int64_t piece = from; piece < to && !lt_stopped(); piece++) {
    int64_t j = piece % s->across * s->columns, i = piece / s->across * ROWS;
    int64_t rows = s->n - i < ROWS ? s->n - i : ROWS,
            width = s->n - j < s->columns ? s->n - j : s->columns, end = j + width;
    if (end <= i + 1) continue;
    if (rows > end - 1 - i) rows = end - 1 - i;
    distance_piece(s, s->x + i * s->d * s->size, s->x + j * s->d * s->size, rows, width, found,
                   s->columns);
    for (int64_t row = i; row < i + rows; row++) {
      int64_t first = j > row ? j : row + 1;
      memcpy(s->out + lt_pair_at(s->n, row, first) * s->size,
             found + ((row - i) * s->columns + first - j) * s->size,
             (size_t)((end - first) * s->size));
    }
  }
}

/* Fills in the pieces of the matrices. */
static void cut(Distances *s) {
  s->columns = LT_DISTANCE_BYTES / s->size;
  s->down = (s->n + ROWS - 1) / ROWS;
  s->across = (s->m + s->columns - 1) / s->columns;
}

/* _distances (x1, x2, p) */
bool lt_cpu__distances(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *other = lt_in(c, 1), *out = c->out[0];
  int ndim = self->ndim;
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *y = lt_as_contiguous(other, work),
            *to = lt_output_open(out, work);
  bool ok = x && y && to;
  if (ok && out->numel > 0) {
    Distances s = {.x = lt_tensor_data(x),
                   .y = lt_tensor_data(y),
                   .out = lt_tensor_data(to),
                   .size = (int64_t)lt_dtype_size(work),
                   .n = self->shape[ndim - 2],
                   .m = other->shape[ndim - 2],
                   .d = self->shape[ndim - 1],
                   .loops = lt_distance_loops(work),
                   .p = c->arg[2].f};
    cut(&s);
    int64_t pieces = out->numel / (s.n * s.m) * s.down * s.across;
    if (s.d == 0)
      memset(s.out, 0, (size_t)(out->numel * s.size));
    else
      lt_share(out->numel * s.d / 4, pieces, distance_pieces, &s);
  }
  lt_release(x);
  lt_release(y);
  return lt_output_close(out, to) && ok && lt_check_interrupt();
}

/* _pdist (self, p) */
bool lt_cpu__pdist(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *to = lt_output_open(out, work);
  bool ok = x && to;
  if (ok && out->numel > 0) {
    Distances s = {.x = lt_tensor_data(x),
                   .out = lt_tensor_data(to),
                   .size = (int64_t)lt_dtype_size(work),
                   .n = self->shape[0],
                   .m = self->shape[0],
                   .d = self->shape[1],
                   .loops = lt_distance_loops(work),
                   .p = c->arg[1].f};
    cut(&s);
    if (s.d == 0)
      memset(s.out, 0, (size_t)(out->numel * s.size));
    else
      lt_share(out->numel * s.d / 4, s.down * s.across, pair_pieces, &s);
  }
  lt_release(x);
  return lt_output_close(out, to) && ok && lt_check_interrupt();
}

/* _pdist_backward (grad, self, distances) */
bool lt_cpu__pdist_backward(lt_Call *c) {
  lt_Tensor *out = c->out[0], *in[3], *to;
  lt_Dtype work = lt_work_dtype(out->dtype);
  bool ok = (to = lt_output_open(out, work)) != NULL;
  for (int i = 0; i < 3; i++) ok = (in[i] = lt_as_contiguous(lt_in(c, i), work)) && ok;
  int64_t n = out->shape[0], d = out->shape[1];
  if (ok && out->numel > 0) {
    int team = lt_team(n * n * d / 4, n);
    size_t row = (size_t)n * lt_dtype_size(work);
    char *weights = malloc((size_t)team * row);
    if (weights)
      LT_IN_TEAM(team, team,
                 lt_distance_loops(work)->pull(lt_tensor_data(in[1]), lt_tensor_data(in[0]),
                                               lt_tensor_data(in[2]), lt_tensor_data(to), n, d,
                                               n * first / team, n * last / team,
                                               weights + row * (size_t)first));
    ok = weights || lt_fail_memory();
    free(weights);
  }
  for (int i = 0; i < 3; i++) lt_release(in[i]);
  return lt_output_close(out, to) && ok && lt_check_interrupt();
}
