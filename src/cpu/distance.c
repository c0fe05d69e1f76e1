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

/* Computes pieces from..to - 1: ROWS rows and `columns` columns of a result. */
static void distance_pieces(void *context, int64_t from, int64_t to) {
  const Distances *s = context;
  lt_DistanceLoop add = s->p == 1   ? s->loops->sum
                        : s->p == 2 ? s->loops->squares
                                    : s->loops->largest;
  _Alignas(64) char block[LT_DISTANCE_DEPTH * LT_DISTANCE_BYTES] = {0};
  for (int64_t piece = from; piece < to && !lt_stopped(); piece++) {
    int64_t j = piece % s->across * s->columns, i = piece / s->across % s->down * ROWS,
            matrix = piece / (s->across * s->down);
    int64_t rows = s->n - i < ROWS ? s->n - i : ROWS,
            width = s->m - j < s->columns ? s->m - j : s->columns;
    const char *x = s->x + (matrix * s->n + i) * s->d * s->size,
               *y = s->y + (matrix * s->m + j) * s->d * s->size;
    char *out = s->out + ((matrix * s->n + i) * s->m + j) * s->size;
    for (int64_t k = 0; k < s->d; k += LT_DISTANCE_DEPTH) {
      int64_t depth = s->d - k < LT_DISTANCE_DEPTH ? s->d - k : LT_DISTANCE_DEPTH;
      lt_mover(s->size)->tile(depth, width, block, LT_DISTANCE_BYTES, y + k * s->size,
                              s->d * s->size);
      add(x + k * s->size, s->d, block, out, s->m, rows, depth, width, k == 0);
    }
    if (s->p == 2) s->loops->roots(out, s->m, rows, width);
  }
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
    s.columns = LT_DISTANCE_BYTES / s.size;
    s.down = (s.n + ROWS - 1) / ROWS;
    s.across = (s.m + s.columns - 1) / s.columns;
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
