/* random.metal: the kernels of random numbers. They give the CPU's numbers: philox.h defines which
 * words an element uses, and a thread computes the elements of one block of Philox: four of 32
 * bits, or two of 64.
 *
 * Invariant: where the CPU rounds a product before it adds, so does the device. Uniform numbers,
 * random integers, Bernoulli draws and permutations are equal bit for bit; numbers computed by a
 * logarithm or a sine may differ in the last bits. Weights are summed in float64, but not in the
 * CPU's order: a draw differs where it falls between two sums that differ in their last bits.
 */
#include "float64.metal.h"
#include "sort.metal.h"

#include "fault.h"
#include "random.h"

#define LT_PHILOX_SPACE thread
#include "philox.h"

#define DTYPE       K0 /* of the result */
#define WHICH       K1 /* the distribution */
#define PROBABILITY K2 /* the dtype of the probabilities; -1: there are none */

/* Returns the high and low words of the block's element i as a number of 64 bits. */
static inline uint64_t wide(thread const uint32_t *w, int i) {
  return (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
}

/* Computes block i of the sequence. */
static inline void block_of(uint64_t seed, uint64_t position, int64_t i, thread uint32_t *w) {
  lt_Philox p;
  p.seed = seed;
  p.position = position;
  lt_philox_block(p, i, w);
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Returns x * y + z with two roundings: fma(x, y, 0) cannot be contracted. */
static inline float product_plus(float x, float y, float z) { return fma(x, y, 0.0f) + z; }

static inline void uniform(thread float *v, thread const uint32_t *w, constant lt_MpsDraw &d) {
  for (int i = 0; i < 4; i++) {
    float x = product_plus(lt_fraction32(w[i] & d.keep), d.b, d.a);
    v[i] = x > d.top ? d.top : x;
  }
}

/* Box and Muller (1958): two normal numbers from two uniform ones, cosine first. */
static inline void normal(thread float *v, thread const uint32_t *w, constant lt_MpsDraw &d) {
  for (int i = 0; i < 4; i += 2) {
    float r = precise::sqrt(-2 * precise::log(lt_positive32(w[i])));
    float angle = 6.2831853071795864769f * lt_positive32(w[i + 1]);
    v[i] = product_plus(d.b, r * precise::cos(angle), d.a);
    v[i + 1] = product_plus(d.b, r * precise::sin(angle), d.a);
  }
}

static inline void exponential(thread float *v, thread const uint32_t *w, constant lt_MpsDraw &d) {
  for (int i = 0; i < 4; i++) v[i] = precise::log(lt_positive32(w[i])) * d.b;
}

/* Draws floats, one block of Philox to a thread. */
kernel void draw_floats(device char *out [[buffer(0)]], constant lt_MpsDraw &d [[buffer(1)]],
                        LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, t, (d.n + 3) / 4) {
    uint32_t w[4];
    float v[4];
    block_of(d.seed, d.position, t, w);
    if (WHICH == LT_MPS_UNIFORM)
      uniform(v, w, d);
    else if (WHICH == LT_MPS_NORMAL)
      normal(v, w, d);
    else
      exponential(v, w, d);
    for (int k = 0; k < 4; k++)
      if (4 * t + k < d.n) store_float(out, DTYPE, 4 * t + k, v[k]);
  }
}

/* ---- integers and Bernoulli draws ------------------------------------------------------------ */

kernel void draw_integers(device char *out [[buffer(0)]], constant lt_MpsDraw &d [[buffer(1)]],
                          LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, t, (d.n + 1) / 2) {
    uint32_t w[4];
    block_of(d.seed, d.position, t, w);
    for (int k = 0; k < 2; k++)
      if (2 * t + k < d.n)
        store(out, DTYPE, 2 * t + k, (int64_t)((uint64_t)d.from + lt_below(wide(w, k), d.span)));
  }
}

/* Returns the number of words w with w / 2^32 < p, where p is in 0..1. */
static inline uint64_t limit_of(float p) {
  if (as_type<uint>(p) << 1 == 0) return 0;
  float limit = ceil(p * 4294967296.0f);
  return limit < 1.0f ? 1ul : (uint64_t)limit; /* the product of a denormal number may become 0 */
}

/* `bad` is the slot of the check of the probabilities; nothing is written where it has a report. */
kernel void draw_bernoulli(device char *out [[buffer(0)]],
                           device const char *probability [[buffer(1)]],
                           device const uint *bad [[buffer(2)]],
                           constant lt_MpsDraw &d [[buffer(3)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (PROBABILITY >= 0 && *bad != LT_MPS_NO_FAULT) return;
  LT_EACH(place, t, (d.n + 3) / 4) {
    uint32_t w[4];
    block_of(d.seed, d.position, t, w);
    for (int k = 0; k < 4 && 4 * t + k < d.n; k++) {
      uint64_t limit = d.limit;
      if (PROBABILITY >= 0) limit = limit_of(load_float(probability, PROBABILITY, 4 * t + k));
      store(out, DTYPE, 4 * t + k, w[k] < limit ? 1 : 0);
    }
  }
}

kernel void check_probabilities(device const char *probability [[buffer(0)]],
                                device char *slot [[buffer(1)]],
                                constant lt_MpsDraw &d [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, i, d.n) {
    float p = load_float(probability, PROBABILITY, i);
    if (!(p >= 0 && p <= 1)) report_fault(slot, i);
  }
}

/* ---- permutations and draws by weight -------------------------------------------------------- */

/* Writes an item for each of n elements, whose key is 64 random bits. */
kernel void random_keys(device WideItem *items [[buffer(0)]], constant lt_MpsDraw &d [[buffer(1)]],
                        LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, t, (d.n + 1) / 2) {
    uint32_t w[4];
    block_of(d.seed, d.position, t, w);
    for (int k = 0; k < 2 && 2 * t + k < d.n; k++) {
      WideItem item;
      set_item(item, wide(w, k), 2 * t + k);
      items[2 * t + k] = item;
    }
  }
}

/* Writes out[row][0..k) = the indices of the first k items of each row, from LT_INDEX_BASE. */
kernel void first_of_rows(device const WideItem *items [[buffer(0)]],
                          device char *out [[buffer(1)]], constant lt_MpsWeights &s [[buffer(2)]],
                          LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, i, s.rows * s.k) {
    int64_t j, row = divide(i, s.k, &j);
    store(out, DTYPE, i, (int64_t)items[row * s.n + j].index + LT_INDEX_BASE);
  }
}

#define WEIGHTS  K1 /* the dtype of the weights */
#define HAS_SUMS K2

/* Sums and checks the weights, one row to a threadgroup. Each thread adds up some neighbouring
 * weights; thread 0 then adds up the threads' sums, so that the running sum never decreases. For
 * each row, writes the index of its last weight that is not 0, and their number, or -1 where the
 * sum is infinite. */
kernel void sum_weights(device const char *weights [[buffer(0)]],
                        device Float64 *sums [[buffer(1)]], device int64_t *last [[buffer(2)]],
                        device int64_t *positive [[buffer(3)]], device char *one [[buffer(4)]],
                        device char *all [[buffer(5)]], constant lt_MpsWeights &s [[buffer(6)]],
                        LT_GRID) {
  threadgroup Float64 before[LT_LOOP_THREADS + 1];
  threadgroup int64_t scratch[LT_SIMD];
  for (int64_t row = group.x; row < s.rows; row += groups.x) {
    int64_t count = 0, end = -1, bad = 0;
    Float64 sum = float64_of_bits(0);
    for (int64_t first = 0; first < s.n; first += LT_LOOP_THREADS * LT_WEIGHTS_EACH) {
      int64_t from = first + index * LT_WEIGHTS_EACH;
      Float64 own[LT_WEIGHTS_EACH], part = float64_of_bits(0);
      for (int k = 0; k < LT_WEIGHTS_EACH; k++) {
        float w = from + k < s.n ? load_float(weights, WEIGHTS, row * s.n + from + k) : 0.0f;
        if (!(w >= 0) || isinf(w)) {
          report_fault(one, row * s.n + from + k);
          bad++;
        }
        if (w > 0) {
          count++;
          end = from + k;
        }
        part = part + float64_of_float(w);
        own[k] = part;
      }
      before[index + 1] = part;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (index == 0) {
        before[0] = sum;
        for (int k = 1; k <= LT_LOOP_THREADS; k++) {
          Float64 a = before[k - 1], b = before[k];
          before[k] = a + b;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      Float64 base = before[index];
      for (int k = 0; k < LT_WEIGHTS_EACH && HAS_SUMS != 0; k++)
        if (from + k < s.n) sums[row * s.n + from + k] = base + own[k];
      sum = before[LT_LOOP_THREADS];
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    count = group_all(count, (int64_t)0, Sum(), scratch, index, LT_LOOP_THREADS);
    end = group_all(end, (int64_t)-1, Largest(), scratch, index, LT_LOOP_THREADS);
    bad = group_all(bad, (int64_t)0, Sum(), scratch, index, LT_LOOP_THREADS);
    if (index != 0) continue;
    bool infinite = !float64_is_finite(sum);
    last[row] = end < 0 ? 0 : end;
    positive[row] = infinite ? -1 : count;
    if (bad == 0 && (infinite || count == 0 || count < s.least)) report_fault(all, row);
  }
}

/* Draws with replacement: draw j of row r is element r k + j. It is the first index whose running
 * sum is above a random part of the whole sum. */
kernel void draw_with_replacement(device const Float64 *sums [[buffer(0)]],
                                  device const int64_t *last [[buffer(1)]],
                                  device int64_t *out [[buffer(2)]],
                                  constant lt_MpsWeights &s [[buffer(3)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, t, (s.rows * s.k + 1) / 2) {
    uint32_t w[4];
    block_of(s.seed, s.position, t, w);
    for (int k = 0; k < 2 && 2 * t + k < s.rows * s.k; k++) {
      int64_t j, i = 2 * t + k, row = divide(i, s.k, &j), low = 0, high = last[row];
      Float64 all = sums[row * s.n + s.n - 1];
      Float64 u = float64_of_fraction(wide(w, k) >> 11, 53) * all;
      while (low < high) {
        int64_t middle = low + (high - low) / 2;
        Float64 sum = sums[row * s.n + middle];
        if (sum > u)
          high = middle;
        else
          low = middle + 1;
      }
      out[i] = low + LT_INDEX_BASE;
    }
  }
}

/* Writes an item for each weight, whose key orders it by its arrival time: weight i arrives after
 * an exponential time of that rate, a weight of 0 never. Positive doubles have the same order as
 * their bits. */
kernel void arrivals(device const char *weights [[buffer(0)]], device WideItem *items [[buffer(1)]],
                     constant lt_MpsWeights &s [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, t, (s.rows * s.n + 1) / 2) {
    uint32_t w[4];
    block_of(s.seed, s.position, t, w);
    for (int k = 0; k < 2 && 2 * t + k < s.rows * s.n; k++) {
      int64_t at, i = 2 * t + k;
      divide(i, s.n, &at);
      float weight = load_float(weights, WEIGHTS, i);
      uint64_t key = ~(uint64_t)0;
      if (weight > 0) {
        Float64 u = float64_of_fraction((wide(w, k) >> 11) + 1, 53);
        key = (-float64_log(u) / float64_of_float(weight) + float64_of_bits(0)).bits;
      }
      WideItem item;
      set_item(item, key, at);
      items[i] = item;
    }
  }
}
