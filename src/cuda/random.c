/* random.c: random numbers by Philox, equal to the CPU's: generators reserve the same part of the
 * sequence for the same calls, and philox.h defines which of its numbers an element uses.
 *
 * Probabilities and weights are checked on the device. A call that fails there has already advanced
 * its generator, unlike on the CPU.
 */
#include "random.h"
#include "cuda.h"
#include "accel/operand.h"
#include "sort.h"

#include "random_range.h"

/* Reserves the random numbers of n elements from the generator that is argument i, or the default
 * generator. With `wide`, an element uses 64 bits. In a capture the numbers are those of each
 * replay, from the default generator. */
static bool reserve(const lt_Call *c, int i, int64_t n, bool wide, lt_CudaRandom *out) {
  lt_Generator *g = c->arg[i].kind == LT_ARG_GENERATOR ? c->arg[i].generator : NULL;
  lt_Graph *graph = lt_capture_of(&lt_cuda_backend, c->device.index);
  uint64_t count = (uint64_t)n * (wide ? 2 : 1);
  *out = (lt_CudaRandom){0, 0, NULL};
  if (!graph) {
    lt_generator_reserve(g, count, &out->seed, &out->position);
    return true;
  }
  if (g && g != lt_generator_default())
    return lt_capture_allows(&lt_cuda_backend, c->device.index, "draw from a Generator",
                             "draw from the default generator");
  out->state = lt_capture_random(graph, c->device, count, &out->position);
  return out->state;
}

/* Reserves numbers and launches the kernel that fills c->out[0]. `generator` is the number of that
 * argument. */
static bool draw(const lt_Call *c, int generator, bool wide, lt_CudaDistribution which,
                 lt_CudaDraw *d) {
  lt_Tensor *out = c->out[0];
  d->out = lt_tensor_data(out);
  d->dtype = out->dtype;
  d->n = out->numel;
  if (d->n == 0) return true;
  return reserve(c, generator, d->n, wide, &d->random) &&
         lt_cuda_launch_ok(lt_cuda_launch_draw(which, d, lt_cuda_stream(c)));
}

/* ---- distributions --------------------------------------------------------------------------- */

bool lt_cuda_uniform(lt_Call *c) {
  lt_Dtype dtype = c->out[0]->dtype;
  double from = c->arg[1].f, to = c->arg[2].f;
  lt_CudaDraw d = {
      .a = from, .b = to, .top = lt_random_top(from, to, dtype), .keep = lt_random_bits(dtype)};
  return lt_cuda_begin(c) && draw(c, 3, dtype == LT_float64, LT_CUDA_UNIFORM, &d);
}

bool lt_cuda_normal(lt_Call *c) {
  lt_CudaDraw d = {.a = c->arg[1].f, .b = c->arg[2].f};
  return lt_cuda_begin(c) && draw(c, 3, c->out[0]->dtype == LT_float64, LT_CUDA_NORMAL, &d);
}

bool lt_cuda_exponential(lt_Call *c) {
  lt_CudaDraw d = {.a = c->arg[1].f};
  return lt_cuda_begin(c) && draw(c, 2, c->out[0]->dtype == LT_float64, LT_CUDA_EXPONENTIAL, &d);
}

bool lt_cuda_random(lt_Call *c) {
  int64_t from = lt_given(c, 1) ? c->arg[1].i : 0,
          to = lt_given(c, 2) ? c->arg[2].i : lt_random_whole(c->out[0]->dtype);
  lt_CudaDraw d = {.from = from, .span = (uint64_t)to - (uint64_t)from + 1};
  return lt_cuda_begin(c) && draw(c, 3, true, LT_CUDA_INTEGERS, &d);
}

/* Draws from Bernoulli distributions, one probability for each element. Probabilities are checked
 * first: where one is invalid, nothing is written. */
static bool bernoulli_each(lt_Call *c, int generator, lt_Tensor *probabilities) {
  lt_Tensor *out = c->out[0],
            *p = lt_expanded_contiguous(probabilities, probabilities->dtype, out->ndim, out->shape);
  lt_FaultNote note = {.kind = LT_FAULT_PROBABILITY, .argument = "p", .ndim = probabilities->ndim};
  memcpy(note.shape, probabilities->shape, sizeof *note.shape * (size_t)probabilities->ndim);
  lt_CudaFault fault;
  bool ok = p && lt_cuda_fault_open(c, &note, &fault);
  if (ok && p->numel > 0) {
    lt_CudaDraw d = {
        .probability = lt_tensor_data(p), .probability_dtype = p->dtype, .bad = fault.bad};
    ok = lt_cuda_launch_ok(lt_cuda_launch_check_probabilities(
             d.probability, d.probability_dtype, p->numel, fault, lt_cuda_stream(c))) &&
         draw(c, generator, false, LT_CUDA_BERNOULLI, &d);
  }
  lt_release(p);
  return ok;
}

bool lt_cuda__bernoulli(lt_Call *c) {
  if (!lt_cuda_begin(c)) return false;
  if (lt_in(c, 1)) return bernoulli_each(c, 2, lt_in(c, 1));
  lt_CudaDraw d = {.a = lt_scalar_to_double(c->arg[1].scalar)};
  return draw(c, 2, false, LT_CUDA_BERNOULLI, &d);
}

bool lt_cuda__bernoulli_of(lt_Call *c) {
  return lt_cuda_begin(c) && bernoulli_each(c, 1, lt_in(c, 0));
}

/* ---- sorting by random keys ------------------------------------------------------------------ */

/* The keys and values of a sort, before and after it. */
typedef struct Pairs {
  lt_Tensor *keys, *sorted_keys, *values, *sorted;
} Pairs;

static void pairs_close(Pairs *p) {
  lt_release(p->keys);
  lt_release(p->sorted_keys);
  lt_release(p->values);
  lt_release(p->sorted);
}

/* Allocates what is still NULL. p->sorted may be given; it is released on failure, too. */
static bool pairs_open(const lt_Call *c, int64_t n, Pairs *p) {
  p->keys = lt_empty(LT_int64, c->device, 1, &n);
  p->sorted_keys = p->keys ? lt_empty(LT_int64, c->device, 1, &n) : NULL;
  p->values = p->sorted_keys ? lt_empty(LT_int64, c->device, 1, &n) : NULL;
  if (!p->sorted && p->values) p->sorted = lt_empty(LT_int64, c->device, 1, &n);
  if (p->values && p->sorted) return true;
  pairs_close(p);
  return false;
}

/* Sorts p->values by p->keys into p->sorted. Only the low `bits` bits of the keys are compared. */
static bool sort_pairs(const lt_Call *c, Pairs *p, int bits) {
  int64_t n = p->keys->numel, bytes;
  size_t size = 0;
  const uint64_t *keys = lt_tensor_data(p->keys);
  uint64_t *sorted_keys = lt_tensor_data(p->sorted_keys);
  const int64_t *values = lt_tensor_data(p->values);
  int64_t *sorted = lt_tensor_data(p->sorted);
  if (!lt_cuda_launch_ok(lt_cuda_sort_pairs_u64(NULL, &size, keys, sorted_keys, values, sorted, n,
                                                bits, lt_cuda_stream(c))))
    return false;
  bytes = (int64_t)size;
  lt_Tensor *scratch = lt_empty(LT_uint8, c->device, 1, &bytes);
  bool ok = scratch && lt_cuda_launch_ok(lt_cuda_sort_pairs_u64(lt_tensor_data(scratch), &size,
                                                                keys, sorted_keys, values, sorted,
                                                                n, bits, lt_cuda_stream(c)));
  lt_release(scratch);
  return ok;
}

/* Sorts the numbers 1 to n by random keys of 64 bits. */
bool lt_cuda_randperm(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  lt_CudaRandom random;
  if (!lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  Pairs p = {.sorted = lt_operand_output_open(out, LT_int64)};
  if (!p.sorted || !pairs_open(c, out->numel, &p)) return false;
  bool ok = reserve(c, 1, out->numel, true, &random) &&
            lt_cuda_launch_ok(lt_cuda_launch_keys(&random, out->numel, lt_tensor_data(p.keys),
                                                  lt_tensor_data(p.values), lt_cuda_stream(c))) &&
            sort_pairs(c, &p, 64);
  if (ok) ok = lt_operand_output_close(out, lt_retain(p.sorted));
  pairs_close(&p);
  return ok;
}

/* ---- draws by weight (multinomial) ----------------------------------------------------------- */

/* Checks and sums the weights. */
static bool sum_weights(lt_Call *c, lt_CudaWeights *w) {
  lt_FaultNote one = {.kind = LT_FAULT_WEIGHT, .argument = "self", .n = w->n},
               all = {.kind = LT_FAULT_WEIGHTS, .argument = "self", .n = w->n, .ignore = w->least};
  return lt_cuda_fault_open(c, &one, &w->one) && lt_cuda_fault_open(c, &all, &w->all) &&
         lt_cuda_launch_ok(lt_cuda_launch_sum_weights(w, lt_cuda_stream(c)));
}

/* Draws with replacement: by the inverse of the running sum of the weights. */
static bool draw_with_replacement(lt_Call *c, lt_CudaWeights *w) {
  lt_Tensor *sums = lt_empty(LT_float64, c->device, 2, (int64_t[]){w->rows, w->n});
  bool ok = sums != NULL;
  if (ok) {
    w->sums = lt_tensor_data(sums);
    ok = sum_weights(c, w);
  }
  ok = ok && reserve(c, 3, w->rows * w->k, true, &w->random) &&
       lt_cuda_launch_ok(
           lt_cuda_launch_draw_with_replacement(w, lt_tensor_data(c->out[0]), lt_cuda_stream(c)));
  lt_release(sums);
  return ok;
}

/* Sorts the sorted pairs of all rows by row, stably. */
static bool sort_by_row(const lt_Call *c, const lt_CudaWeights *w, Pairs *p) {
  int bits = 1;
  while (bits < 63 && (int64_t)1 << bits < w->rows) bits++;
  lt_Tensor *values = p->values;
  p->values = p->sorted;
  p->sorted = values;
  return lt_cuda_launch_ok(lt_cuda_launch_row_keys(w, lt_tensor_data(p->values),
                                                   lt_tensor_data(p->keys), lt_cuda_stream(c))) &&
         sort_pairs(c, p, bits);
}

/* Draws without replacement: the first k arrivals, where i arrives after an exponential time of
 * rate weight[i]. */
static bool draw_without_replacement(lt_Call *c, lt_CudaWeights *w) {
  Pairs p = {NULL};
  if (!sum_weights(c, w) || !pairs_open(c, w->rows * w->n, &p)) return false;
  bool ok = reserve(c, 3, w->rows * w->n, true, &w->random) &&
            lt_cuda_launch_ok(lt_cuda_launch_arrivals(
                w, lt_tensor_data(p.keys), lt_tensor_data(p.values), lt_cuda_stream(c))) &&
            sort_pairs(c, &p, 64) && (w->rows == 1 || sort_by_row(c, w, &p)) &&
            lt_cuda_launch_ok(lt_cuda_launch_first(w, lt_tensor_data(p.sorted),
                                                   lt_tensor_data(c->out[0]), lt_cuda_stream(c)));
  pairs_close(&p);
  return ok;
}

bool lt_cuda_multinomial(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  bool replacement = c->arg[2].b;
  if (!lt_cuda_begin(c)) return false;
  if (c->out[0]->numel == 0) return true;
  lt_Tensor *weights = lt_as_contiguous(self, self->dtype);
  if (!weights) return false;
  lt_CudaWeights w = {.weights = lt_tensor_data(weights),
                      .dtype = self->dtype,
                      .n = self->shape[self->ndim - 1],
                      .k = c->arg[1].i,
                      .least = replacement ? 1 : c->arg[1].i};
  w.rows = self->numel / w.n;
  lt_Tensor *last = lt_empty(LT_int64, c->device, 1, &w.rows);
  w.last = lt_operand_data(last);
  bool ok = last && (replacement ? draw_with_replacement(c, &w) : draw_without_replacement(c, &w));
  lt_release(last);
  lt_release(weights);
  return ok;
}
