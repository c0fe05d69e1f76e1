/* norm.c: layer norm (Ba, Kiros and Hinton 2016) and its gradients. */
#include "norm.h"
#include "accel/operand.h"
#include "rows.h"

/* Returns the number of elements of the last `normalized` dims. */
static int64_t row_size(const lt_Tensor *t, int64_t normalized) {
  int64_t n = 1;
  for (int d = t->ndim - (int)normalized; d < t->ndim; d++) n *= t->shape[d];
  return n;
}

bool lt_mps__layer_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Tensor *mean = c->out[1], *rstd = c->out[2];
  bool ok = true;
  if (!lt_mps_begin(c)) return false;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype),
            *w = lt_operand_floats_or_nil(lt_in(c, 2), self->dtype, &ok),
            *b = lt_operand_floats_or_nil(lt_in(c, 3), self->dtype, &ok);
  if (ok && x && mean->numel > 0) {
    lt_MpsNorm k = {
        .rows = mean->numel, .n = row_size(self, c->arg[1].i), .eps = (float)c->arg[4].f};
    lt_MpsLaunch l = {.file = "norm",
                      .kernel = "norm_rows",
                      .constants = {(int)self->dtype, 0, w != NULL, b != NULL},
                      .data = {lt_tensor_data(x), lt_operand_data(w), lt_operand_data(b),
                               lt_tensor_data(c->out[0]), lt_tensor_data(mean),
                               lt_tensor_data(rstd)},
                      .count = 6,
                      .arguments = &k,
                      .size = sizeof k};
    ok = lt_mps_launch_rows(c, l, k.rows, k.n);
  }
  ok = ok && x;
  lt_release(x);
  lt_release(w);
  lt_release(b);
  return ok;
}

/* The operands of backward, contiguous. */
typedef struct Operands {
  lt_Tensor *g, *x, *mean, *rstd, *weight;
} Operands;

/* Returns the number of pieces: it depends on the size alone, so results are reproducible. A piece
 * has some rows, so that the memory for sums is small compared with the data. */
static int64_t pieces_of(int64_t rows, int64_t n) {
  int64_t pieces = rows / 16, most = lt_mps_groups(1 << 16, n);
  return pieces < 1 ? 1 : pieces > most ? most : pieces;
}

/* Queues the kernels of the gradients of x, weight and bias. */
static bool run_backward(const lt_Call *c, const Operands *o, const lt_MpsNorm *k) {
  int64_t sums = 2 * k->pieces * k->n;
  lt_Tensor *part = lt_empty(LT_float32, c->device, 1, &sums);
  if (!part) return false;
  const void *g = lt_tensor_data(o->g), *x = lt_tensor_data(o->x), *mean = lt_tensor_data(o->mean),
             *rstd = lt_tensor_data(o->rstd);
  lt_MpsLaunch l = {.file = "norm",
                    .constants = {(int)o->x->dtype, (int)o->g->dtype, o->weight != NULL},
                    .arguments = k,
                    .size = sizeof *k};
  lt_MpsLaunch rows = l, pieces = l, join = l;
  rows.kernel = "norm_backward_rows";
  rows.count = 6;
  memcpy(rows.data,
         (const void *[]){g, x, lt_operand_data(o->weight), mean, rstd, lt_tensor_data(c->out[0])},
         6 * sizeof(void *));
  pieces.kernel = "norm_pieces";
  pieces.count = 5;
  memcpy(pieces.data, (const void *[]){g, x, mean, rstd, lt_tensor_data(part)}, 5 * sizeof(void *));
  join.kernel = "norm_join";
  join.count = 3;
  memcpy(
      join.data,
      (const void *[]){lt_tensor_data(part), lt_tensor_data(c->out[1]), lt_tensor_data(c->out[2])},
      3 * sizeof(void *));
  bool ok = (k->rows == 0 || lt_mps_launch_rows(c, rows, k->rows, k->n)) &&
            lt_mps_launch_each_alone(c, pieces, k->pieces * k->n) &&
            lt_mps_launch_each_alone(c, join, k->n);
  lt_release(part);
  return ok;
}

bool lt_mps__layer_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  bool ok = true;
  if (!lt_mps_begin(c)) return false;
  Operands o = {.g = lt_operand_floats(lt_in(c, 0), self->dtype),
                .x = lt_as_contiguous(self, self->dtype),
                .mean = lt_as_contiguous(lt_in(c, 3), LT_float32),
                .rstd = lt_as_contiguous(lt_in(c, 4), LT_float32),
                .weight = lt_operand_floats_or_nil(lt_in(c, 5), self->dtype, &ok)};
  ok = ok && o.g && o.x && o.mean && o.rstd;
  if (ok) {
    lt_MpsNorm k = {.rows = o.mean->numel, .n = row_size(self, c->arg[2].i)};
    if (k.n > 0) {
      k.pieces = pieces_of(k.rows, k.n);
      ok = run_backward(c, &o, &k);
    }
  }
  lt_release(o.g);
  lt_release(o.x);
  lt_release(o.mean);
  lt_release(o.rstd);
  lt_release(o.weight);
  return ok;
}
