/* loss.metal: the kernels of the negative log likelihood. Sums are computed in float64: a
 * threadgroup adds LT_LOSS_ROWS rows, then one threadgroup adds their sums, both in a fixed
 * order. */
#include "float64.metal.h"
#include "loops.metal.h"

#include "loss.h"

#define DTYPE        K0 /* of x, and of the results */
#define TARGET_DTYPE K1
#define WEIGHT_DTYPE K2 /* -1: all weights are 1 */
#define GRAD_DTYPE   K3
#define REDUCTION    K4
#define BACKWARD     K5 /* only the weights are summed */

/* The weight of row i, and its class, from 0; 0 and -1 for a row that does not contribute: its
 * class is ignored, or out of range (`is_bad`). */
struct Row {
  float weight;
  int64_t at;
  bool is_bad;
};
static inline Row row_of(device const char *target, device const char *weight,
                         constant lt_MpsNll &k, int64_t i) {
  Row r = {0, -1, false};
  int64_t t = load<int64_t>(target, TARGET_DTYPE, i);
  if (t == k.ignore) return r;
  if (t < 1 || t > k.classes) {
    r.is_bad = true;
    return r;
  }
  r.at = t - LT_INDEX_BASE;
  r.weight = 1;
  if (WEIGHT_DTYPE >= 0) r.weight = load_float(weight, WEIGHT_DTYPE, r.at);
  return r;
}

/* Converts v to the dtype of the results, rounding once, and stores it. */
static inline void store_result(device char *to, int64_t i, Float64 v) {
  if (DTYPE == LT_float32)
    ((device float *)to)[i] = float64_to_float(v);
  else
    ((device uint16_t *)to)[i] = (uint16_t)(DTYPE == LT_float16 ? float64_to_format(v, 10, 31)
                                                                : float64_to_format(v, 7, 255));
}

/* Adds up the numbers of the threads of a threadgroup. `scratch` has a number for each thread;
 * thread 0 gets the result. */
static inline Float64 sum_all(Float64 v, threadgroup Float64 *scratch, uint index) {
  scratch[index] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = LT_LOOP_THREADS / 2; step > 0; step /= 2) {
    if (index < step) {
      Float64 a = scratch[index], b = scratch[index + step];
      scratch[index] = a + b;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  v = scratch[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return v;
}

/* Sums the losses and weights of a part's rows to part[p] and part[parts + p]. */
kernel void nll_rows(device const char *x [[buffer(0)]], device const char *target [[buffer(1)]],
                     device const char *weight [[buffer(2)]], device char *out [[buffer(3)]],
                     device Float64 *part [[buffer(4)]], device char *slot [[buffer(5)]],
                     constant lt_MpsNll &k [[buffer(6)]], LT_GRID) {
  threadgroup Float64 scratch[LT_LOOP_THREADS];
  for (int64_t p = group.x; p < k.parts; p += groups.x) {
    Float64 sum = float64_of_bits(0), all = float64_of_bits(0);
    for (int64_t j = index; j < LT_LOSS_ROWS; j += LT_LOOP_THREADS) {
      int64_t i = p * LT_LOSS_ROWS + j;
      if (i >= k.n) break;
      Row r = row_of(target, weight, k, i);
      if (r.is_bad) report_fault(slot, i);
      Float64 w = float64_of_float(r.weight), loss = float64_of_bits(0);
      if (BACKWARD == 0 && r.at >= 0)
        loss = -w * float64_of_float(load_float(x, DTYPE, i * k.classes + r.at));
      if (BACKWARD == 0 && REDUCTION == LT_MPS_EACH) store_result(out, i, loss);
      sum = sum + loss;
      all = all + w;
    }
    sum = sum_all(sum, scratch, index);
    all = sum_all(all, scratch, index);
    if (index == 0) {
      part[p] = sum;
      part[k.parts + p] = all;
    }
  }
}

/* Adds up the parts, in one threadgroup, and stores the results; in backward, the sum of the
 * weights as a float in `total`. */
kernel void nll_join(device const Float64 *part [[buffer(0)]], device char *out [[buffer(1)]],
                     device char *total [[buffer(2)]], constant lt_MpsNll &k [[buffer(3)]],
                     LT_GRID) {
  threadgroup Float64 scratch[LT_LOOP_THREADS];
  Float64 sum = float64_of_bits(0), all = float64_of_bits(0);
  for (int64_t p = index; p < k.parts; p += LT_LOOP_THREADS) {
    sum = sum + part[p];
    all = all + part[k.parts + p];
  }
  sum = sum_all(sum, scratch, index);
  all = sum_all(all, scratch, index);
  if (index != 0 || group.x != 0) return;
  if (BACKWARD != 0) {
    *(device float *)total = float64_to_float(all);
    return;
  }
  if (REDUCTION == LT_MPS_AVERAGE) sum = sum / all;
  if (REDUCTION != LT_MPS_EACH) store_result(out, 0, sum);
  store_result(total, 0, all);
}

/* Stores the gradient of a row at its class, computed in float32 as on the CPU. The other elements
 * are already 0. */
kernel void nll_gradient(device const char *grad [[buffer(0)]],
                         device const char *target [[buffer(1)]],
                         device const char *weight [[buffer(2)]],
                         device const float *total [[buffer(3)]], device char *dx [[buffer(4)]],
                         constant lt_MpsNll &k [[buffer(5)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, i, k.n) {
    Row r = row_of(target, weight, k, i);
    if (r.at < 0) continue;
    float g = load_float(grad, GRAD_DTYPE, REDUCTION == LT_MPS_EACH ? i : 0);
    if (REDUCTION == LT_MPS_AVERAGE) g = g / *total;
    store_float(dx, DTYPE, i * k.classes + r.at, -g * r.weight);
  }
}
