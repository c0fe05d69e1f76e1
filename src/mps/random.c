/* random.c: random numbers by Philox, equal to the CPU's: generators reserve the same part of the
 * sequence for the same calls, and philox.h defines which of its numbers an element uses.
 *
 * Probabilities and weights are checked on the device. A call that fails there has already advanced
 * its generator, unlike on the CPU.
 */
#include "random.h"
#include "accel/operand.h"
#include "loops.h"
#include "sort.h"

#include "random_range.h"

#include <math.h>

/* Reserves the random numbers of n elements from the generator that is argument i, or the default
 * generator. With `wide`, an element uses 64 bits. */
static void reserve(const lt_Call *c, int i, int64_t n, bool wide, uint64_t *seed,
                    uint64_t *position) {
  lt_Generator *g = c->arg[i].kind == LT_ARG_GENERATOR ? c->arg[i].generator : NULL;
  lt_generator_reserve(g, (uint64_t)n * (wide ? 2 : 1), seed, position);
}

/* Queues a kernel with the arguments of a fill, where a thread makes `each` elements. */
static bool launch(const lt_Call *c, lt_MpsLaunch l, const lt_MpsDraw *d, int each) {
  l.file = "random";
  l.arguments = d;
  l.size = sizeof *d;
  return lt_mps_launch_each(c, l, (d->n + each - 1) / each);
}

/* Reserves numbers and queues the kernel that fills c->out[0]. `generator` is the number of that
 * argument. */
static bool draw(const lt_Call *c, int generator, const char *kernel, int which, lt_MpsDraw *d) {
  lt_Tensor *out = c->out[0];
  bool wide = which == LT_MPS_INTEGERS;
  d->n = out->numel;
  if (d->n == 0) return true;
  reserve(c, generator, d->n, wide, &d->seed, &d->position);
  lt_MpsLaunch l = {.kernel = kernel,
                    .constants = {(int)out->dtype, which, -1},
                    .data = {lt_tensor_data(out)},
                    .count = 1};
  return launch(c, l, d, wide ? 2 : 4);
}

/* ---- distributions --------------------------------------------------------------------------- */

bool lt_mps_uniform(lt_Call *c) {
  lt_Dtype dtype = c->out[0]->dtype;
  double from = c->arg[1].f, to = c->arg[2].f;
  lt_MpsDraw d = {.a = (float)from,
                  .b = (float)(to - from),
                  .top = (float)lt_random_top(from, to, dtype),
                  .keep = lt_random_bits(dtype)};
  return lt_mps_begin(c) && draw(c, 3, "draw_floats", LT_MPS_UNIFORM, &d);
}

bool lt_mps_normal(lt_Call *c) {
  lt_MpsDraw d = {.a = (float)c->arg[1].f, .b = (float)c->arg[2].f};
  return lt_mps_begin(c) && draw(c, 3, "draw_floats", LT_MPS_NORMAL, &d);
}

bool lt_mps_exponential(lt_Call *c) {
  lt_MpsDraw d = {.b = (float)(-1 / c->arg[1].f)};
  return lt_mps_begin(c) && draw(c, 2, "draw_floats", LT_MPS_EXPONENTIAL, &d);
}

bool lt_mps_random(lt_Call *c) {
  int64_t from = lt_given(c, 1) ? c->arg[1].i : 0,
          to = lt_given(c, 2) ? c->arg[2].i : lt_random_whole(c->out[0]->dtype);
  lt_MpsDraw d = {.from = from, .span = (uint64_t)to - (uint64_t)from + 1};
  return lt_mps_begin(c) && draw(c, 3, "draw_integers", LT_MPS_INTEGERS, &d);
}

/* Queues the check of n contiguous probabilities of a dtype, opened as *fault. */
static bool check_probabilities(lt_Call *c, const lt_Tensor *given, const lt_Tensor *p,
                                lt_MpsFault *fault) {
  lt_FaultNote note = {.kind = LT_FAULT_PROBABILITY, .argument = "p", .ndim = given->ndim};
  memcpy(note.shape, given->shape, sizeof *note.shape * (size_t)given->ndim);
  if (!lt_mps_fault_open(c, &note, fault)) return false;
  lt_MpsDraw d = {.n = p->numel};
  lt_MpsLaunch l = {.kernel = "check_probabilities",
                    .constants = {0, 0, (int)p->dtype},
                    .data = {lt_tensor_data(p), fault->slot},
                    .count = 2};
  return launch(c, l, &d, 1) && lt_mps_fault_close(c, fault, p);
}

/* Draws from Bernoulli distributions, one probability for each element. Probabilities are checked
 * first: where one is invalid, nothing is written. */
static bool bernoulli_each(lt_Call *c, int generator, lt_Tensor *probabilities) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  lt_Tensor *p = lt_expanded_contiguous(probabilities, probabilities->dtype, out->ndim, out->shape);
  lt_MpsFault fault;
  bool ok = p && check_probabilities(c, probabilities, p, &fault);
  if (ok) {
    lt_MpsDraw d = {.n = out->numel};
    reserve(c, generator, d.n, false, &d.seed, &d.position);
    lt_MpsLaunch l = {.kernel = "draw_bernoulli",
                      .constants = {(int)out->dtype, LT_MPS_BERNOULLI, (int)p->dtype},
                      .data = {lt_tensor_data(out), lt_tensor_data(p), fault.slot},
                      .count = 3};
    ok = launch(c, l, &d, 4);
  }
  lt_release(p);
  return ok;
}

/* Draws where a word of 32 bits, divided by 2^32, is below the probability p: that is, where the
 * word is below the integer ceil(2^32 p). */
static bool bernoulli_same(lt_Call *c, int generator, double p) {
  lt_Tensor *out = c->out[0];
  lt_MpsDraw d = {.n = out->numel, .limit = (uint64_t)ceil(p * 0x1p32)};
  if (d.n == 0) return true;
  reserve(c, generator, d.n, false, &d.seed, &d.position);
  lt_MpsLaunch l = {.kernel = "draw_bernoulli",
                    .constants = {(int)out->dtype, LT_MPS_BERNOULLI, -1},
                    .data = {lt_tensor_data(out)},
                    .count = 3};
  return launch(c, l, &d, 4);
}

bool lt_mps__bernoulli(lt_Call *c) {
  if (!lt_mps_begin(c)) return false;
  if (lt_in(c, 1)) return bernoulli_each(c, 2, lt_in(c, 1));
  return bernoulli_same(c, 2, lt_scalar_to_double(c->arg[1].scalar));
}

bool lt_mps__bernoulli_of(lt_Call *c) {
  return lt_mps_begin(c) && bernoulli_each(c, 1, lt_in(c, 0));
}

/* ---- sorting by random keys ------------------------------------------------------------------ */

/* Queues the kernel that writes the indices of the first k items of each row to the result; from
 * one row to the next are `step` items. */
static bool take_first(const lt_Call *c, int64_t rows, int64_t k, const lt_Tensor *items,
                       int64_t step) {
  lt_Tensor *out = c->out[0];
  lt_MpsWeights args = {.rows = rows, .n = step, .k = k};
  lt_MpsLaunch l = {.file = "random",
                    .kernel = "first_of_rows",
                    .constants = {(int)out->dtype},
                    .data = {lt_tensor_data(items), lt_tensor_data(out)},
                    .count = 2,
                    .arguments = &args,
                    .size = sizeof args};
  return lt_mps_launch_each(c, l, rows * k);
}

/* Sorts the numbers 1 to n by random keys of 64 bits. */
bool lt_mps_randperm(lt_Call *c) {
  int64_t n = c->out[0]->numel;
  lt_MpsDraw d = {.n = n};
  if (!lt_mps_begin(c)) return false;
  if (n == 0) return true;
  lt_Tensor *items = lt_mps_items(c, n, true);
  if (!items) return false;
  reserve(c, 1, n, true, &d.seed, &d.position);
  lt_MpsLaunch l = {.kernel = "random_keys", .data = {lt_tensor_data(items)}, .count = 1};
  bool ok = launch(c, l, &d, 2);
  if (ok) items = lt_mps_sort_items(c, items, 1, n, true);
  ok = ok && items && take_first(c, 1, n, items, n);
  lt_release(items);
  return ok;
}

/* ---- draws by weight (multinomial) ----------------------------------------------------------- */

/* What the kernels of a call read and write: the weights, for each row the index of its last weight
 * that is not 0 and the number of such weights, and the running sums (NULL: not needed). */
typedef struct Weights {
  lt_MpsWeights args;
  lt_Tensor *weights, *last, *positive, *sums;
} Weights;

/* Queues a kernel with the arguments of the weights. */
static bool launch_weights(const lt_Call *c, lt_MpsLaunch l, const Weights *w, int64_t n) {
  l.file = "random";
  l.arguments = &w->args;
  l.size = sizeof w->args;
  return lt_mps_launch_each(c, l, n);
}

/* Checks and sums the weights. */
static bool sum_weights(lt_Call *c, Weights *w) {
  lt_FaultNote one = {.kind = LT_FAULT_WEIGHT, .argument = "self", .n = w->args.n},
               all = {.kind = LT_FAULT_WEIGHTS,
                      .argument = "self",
                      .n = w->args.n,
                      .ignore = w->args.least};
  lt_MpsFault of_one, of_row;
  if (!lt_mps_fault_open(c, &one, &of_one) || !lt_mps_fault_open(c, &all, &of_row)) return false;
  int64_t rows = w->args.rows;
  lt_MpsLaunch l = {.file = "random",
                    .kernel = "sum_weights",
                    .constants = {0, (int)w->weights->dtype, w->sums != NULL},
                    .data = {lt_tensor_data(w->weights), lt_operand_data(w->sums),
                             lt_tensor_data(w->last), lt_tensor_data(w->positive), of_one.slot,
                             of_row.slot},
                    .count = 6,
                    .arguments = &w->args,
                    .size = sizeof w->args,
                    .groups = {rows < LT_LOOP_GROUPS ? rows : LT_LOOP_GROUPS},
                    .threads = {LT_LOOP_THREADS}};
  return lt_mps_launch(c, &l) && lt_mps_fault_close(c, &of_one, w->weights) &&
         lt_mps_fault_close(c, &of_row, w->positive);
}

/* Draws with replacement: by the inverse of the running sum of the weights. */
static bool draw_with_replacement(lt_Call *c, Weights *w) {
  lt_MpsWeights *a = &w->args;
  w->sums = lt_empty(LT_int64, c->device, 2, (int64_t[]){a->rows, a->n}); /* float64, in fact */
  if (!w->sums || !sum_weights(c, w)) return false;
  reserve(c, 3, a->rows * a->k, true, &a->seed, &a->position);
  lt_MpsLaunch l = {
      .kernel = "draw_with_replacement",
      .data = {lt_tensor_data(w->sums), lt_tensor_data(w->last), lt_tensor_data(c->out[0])},
      .count = 3};
  return launch_weights(c, l, w, (a->rows * a->k + 1) / 2);
}

/* Draws without replacement: the first k arrivals, where i arrives after an exponential time of
 * rate weight[i]. */
static bool draw_without_replacement(lt_Call *c, Weights *w) {
  lt_MpsWeights *a = &w->args;
  lt_Tensor *items = lt_mps_items(c, a->rows * a->n, true);
  bool ok = items && sum_weights(c, w);
  if (ok) {
    reserve(c, 3, a->rows * a->n, true, &a->seed, &a->position);
    lt_MpsLaunch l = {.kernel = "arrivals",
                      .constants = {0, (int)w->weights->dtype},
                      .data = {lt_tensor_data(w->weights), lt_tensor_data(items)},
                      .count = 2};
    ok = launch_weights(c, l, w, (a->rows * a->n + 1) / 2);
  }
  int64_t step = 0;
  if (ok) items = lt_mps_first_items(c, items, a->rows, a->n, a->k, true, &step);
  ok = ok && items && take_first(c, a->rows, a->k, items, step);
  lt_release(items);
  return ok;
}

bool lt_mps_multinomial(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  bool replacement = c->arg[2].b;
  if (!lt_mps_begin(c)) return false;
  if (c->out[0]->numel == 0) return true;
  Weights w = {.args = {.n = self->shape[self->ndim - 1],
                        .k = c->arg[1].i,
                        .least = replacement ? 1 : c->arg[1].i}};
  w.args.rows = self->numel / w.args.n;
  w.weights = lt_as_contiguous(self, self->dtype);
  w.last = lt_empty(LT_int64, c->device, 1, &w.args.rows);
  w.positive = lt_empty(LT_int64, c->device, 1, &w.args.rows);
  bool ok = w.weights && w.last && w.positive &&
            (replacement ? draw_with_replacement(c, &w) : draw_without_replacement(c, &w));
  lt_release(w.weights);
  lt_release(w.last);
  lt_release(w.positive);
  lt_release(w.sums);
  return ok;
}
