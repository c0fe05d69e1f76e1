/* fill.metal: each number is computed from its index alone and rounded once, as on the CPU. */
#include "float64.metal.h"
#include "loops.metal.h"

#include "fill.h"

#define DTYPE K0

/* Converts v to the dtype, rounding once, and stores it as element i. */
static inline void store_float64(device char *to, int64_t i, Float64 v) {
  if (DTYPE == LT_float32)
    ((device float *)to)[i] = float64_to_float(v);
  else if (DTYPE == LT_float16)
    ((device uint16_t *)to)[i] = (uint16_t)float64_to_format(v, 10, 31);
  else if (DTYPE == LT_bfloat16)
    ((device uint16_t *)to)[i] = (uint16_t)float64_to_format(v, 7, 255);
  else
    store(to, DTYPE, i, float64_to_int(v));
}

kernel void integers(device char *to [[buffer(0)]], constant lt_MpsSequence &s [[buffer(1)]],
                     LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, i, s.n) {
    uint64_t v = (uint64_t)s.start_int + (uint64_t)i * (uint64_t)s.step_int;
    store(to, DTYPE, i, (int64_t)v);
  }
}

kernel void floats(device char *to [[buffer(0)]], constant lt_MpsSequence &s [[buffer(1)]],
                   LT_GRID) {
  const Place place = LT_PLACE;
  const Float64 start = float64_of_bits(s.start), step = float64_of_bits(s.step);
  LT_EACH(place, i, s.n) {
    Float64 v;
    if (s.both_ends == 0 || i < (s.n + 1) / 2)
      v = start + float64_of_int(i) * step;
    else
      v = float64_of_bits(s.stop) - float64_of_int(s.n - 1 - i) * step;
    store_float64(to, i, float64_of_bits(s.scale) * v);
  }
}

kernel void ones(device char *to [[buffer(0)]], constant lt_MpsOnes &o [[buffer(1)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH(place, i, o.n) store(to, DTYPE, i * o.step, 1.0f);
}
