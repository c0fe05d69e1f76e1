/* loss.c: the negative log likelihood of rows of log probabilities, and its gradient. Classes count
 * from 1; rows whose class is ignore_index do not contribute. A class out of range is found by the
 * device. */
#include "loss.h"
#include "accel/operand.h"
#include "loops.h"

/* The tensors that forward and backward share. `part` has the sums of the parts. */
typedef struct Rows {
  lt_MpsNll args;
  lt_Tensor *target, *weight, *part;
  lt_MpsFault fault;
  int32_t constants[LT_MPS_CONSTANTS];
} Rows;

static void rows_close(Rows *r) {
  lt_release(r->target);
  lt_release(r->weight);
  lt_release(r->part);
}

/* Fills in *r from the arguments; argument `first` is self. Returns false on failure, with nothing
 * to release; else the caller calls rows_close. */
static bool rows_open(lt_Call *c, int first, Rows *r) {
  const lt_Tensor *self = lt_in(c, first);
  if (self->ndim != 2)
    return lt_fail("expected 2 dimensions for argument 'self', got %d", self->ndim);
  lt_Tensor *target = lt_in(c, first + 1), *weight = lt_in(c, first + 2);
  const char *reduction = c->arg[first + 3].string;
  *r = (Rows){.args = {.n = self->shape[0],
                       .classes = self->shape[1],
                       .ignore = c->arg[first + 4].i,
                       .parts = lt_mps_groups(self->shape[0], LT_LOSS_ROWS)}};
  lt_FaultNote note = {.kind = LT_FAULT_TARGET,
                       .argument = "target",
                       .n = r->args.classes,
                       .ignore = r->args.ignore,
                       .ndim = target->ndim};
  memcpy(note.shape, target->shape, sizeof note.shape);
  int64_t sums = 2 * r->args.parts;
  bool ok = true;
  r->target = lt_as_contiguous(target, target->dtype);
  r->weight = lt_operand_floats_or_nil(weight, self->dtype, &ok);
  r->part = lt_empty(LT_int64, c->device, 1, &sums); /* float64, in fact */
  if (!ok || !r->target || !r->part || !lt_mps_fault_open(c, &note, &r->fault)) {
    rows_close(r);
    return false;
  }
  r->constants[0] = (int)self->dtype;
  r->constants[1] = (int)target->dtype;
  r->constants[2] = r->weight ? (int)r->weight->dtype : -1;
  r->constants[4] = !strcmp(reduction, "mean")   ? LT_MPS_AVERAGE
                    : !strcmp(reduction, "none") ? LT_MPS_EACH
                                                 : LT_MPS_TOTAL;
  return true;
}

/* Returns a launch of a kernel with the constants and arguments of r. */
static lt_MpsLaunch launch_of(const Rows *r, const char *kernel) {
  lt_MpsLaunch l = {
      .file = "loss", .kernel = kernel, .arguments = &r->args, .size = sizeof r->args};
  memcpy(l.constants, r->constants, sizeof l.constants);
  return l;
}

/* Queues the kernels that check the classes and sum the losses of x and the weights. In backward, x
 * and out are NULL: forward's total may have been rounded to a half. */
static bool sum_rows(lt_Call *c, Rows *r, const lt_Tensor *x, lt_Tensor *out, lt_Tensor *total) {
  int64_t parts = r->args.parts;
  r->constants[5] = x == NULL;
  void *to = out ? lt_tensor_data(out) : NULL;
  const void *rows_data[] = {x ? lt_tensor_data(x) : NULL, lt_tensor_data(r->target),
                             lt_operand_data(r->weight),   to,
                             lt_tensor_data(r->part),      r->fault.slot};
  const void *join_data[] = {lt_tensor_data(r->part), to, lt_tensor_data(total)};
  lt_MpsLaunch rows = launch_of(r, "nll_rows"), join = launch_of(r, "nll_join");
  memcpy(rows.data, rows_data, sizeof rows_data);
  memcpy(join.data, join_data, sizeof join_data);
  rows.count = 6;
  join.count = 3;
  rows.threads[0] = join.threads[0] = LT_LOOP_THREADS;
  rows.groups[0] = parts < LT_LOOP_GROUPS ? parts : LT_LOOP_GROUPS;
  return lt_mps_launch(c, &rows) && lt_mps_fault_close(c, &r->fault, r->target) &&
         lt_mps_launch(c, &join);
}

bool lt_mps__nll_loss(lt_Call *c) {
  Rows r;
  if (!lt_mps_begin(c) || !rows_open(c, 0, &r)) return false;
  lt_Tensor *x = lt_as_contiguous(lt_in(c, 0), lt_in(c, 0)->dtype);
  bool ok = x && sum_rows(c, &r, x, c->out[0], c->out[1]);
  lt_release(x);
  rows_close(&r);
  return ok;
}

/* Queues the kernel that stores the gradients of the rows in zeros. */
static bool store_gradients(lt_Call *c, Rows *r, lt_Tensor *grad, lt_Tensor *total) {
  lt_Tensor *out = c->out[0];
  r->constants[3] = (int)grad->dtype;
  const void *data[] = {lt_tensor_data(grad), lt_tensor_data(r->target), lt_operand_data(r->weight),
                        lt_tensor_data(total), lt_tensor_data(out)};
  lt_MpsLaunch l = launch_of(r, "nll_gradient");
  memcpy(l.data, data, sizeof data);
  l.count = 5;
  return lt_mps_fill_zero(c->device.index, lt_tensor_data(out),
                          (size_t)out->numel * lt_dtype_size(out->dtype), c->stream) &&
         lt_mps_launch_each(c, l, r->args.n);
}

bool lt_mps__nll_loss_backward(lt_Call *c) {
  Rows r;
  int64_t one = 1;
  if (!lt_mps_begin(c)) return false;
  if (c->out[0]->numel == 0) return true;
  if (!rows_open(c, 1, &r)) return false;
  lt_Tensor *grad = lt_operand_floats(lt_in(c, 0), c->out[0]->dtype);
  lt_Tensor *total = lt_empty(LT_float32, c->device, 1, &one);
  bool ok =
      grad && total && sum_rows(c, &r, NULL, NULL, total) && store_gradients(c, &r, grad, total);
  lt_release(grad);
  lt_release(total);
  rows_close(&r);
  return ok;
}
