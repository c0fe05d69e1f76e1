/* map.metal: a kernel for each LT_MAP row of ops.def. Each thread processes four consecutive
 * elements of the tensors of an item, which it loads and stores once. */
#include "maths.metal.h"

#include "map.h"
#include "mathx.h"

#define DTYPE   K0
#define GIVEN_  K1 /* bit k: list k is given; others are read as zeros */
#define WRITTEN K2 /* bit k: the tensors of list k may change */
#define PACKED  K3 /* all tensors are aligned for load4 */

#define M(f) m_##f
#define T    float

/* ---- the rows -------------------------------------------------------------------------------- */

/* The numbers of a row's tensors and numbers, by name. */
#define READS(x)     x,
#define WRITES(x)    x,
#define WRITES_OPTIONAL WRITES
#define GIVEN(x)     x,
#define ONCE(x, ...) x,
#define LT_MAP(name, tensors, numbers, ...)                                                        \
  struct TensorsOf_##name {                                                                        \
    enum { tensors count };                                                                        \
  };                                                                                               \
  struct NumbersOf_##name {                                                                        \
    enum { numbers count };                                                                        \
  };
#include "ops.def"
#undef READS
#undef WRITES
#undef WRITES_OPTIONAL
#undef GIVEN
#undef ONCE

/* of() computes the row's expressions for one element of all tensors. */
#define GIVEN(x)                                                                                   \
  const T x = numbers_[Numbers::x];                                                                \
  (void)x;
#define ONCE(x, ...) GIVEN(x)
#define READS(x)                                                                                   \
  const T x = values_[Tensors::x];                                                                 \
  (void)x;
#define WRITES(x)                                                                                  \
  thread T &x = values_[Tensors::x];                                                               \
  (void)x;
#define WRITES_OPTIONAL WRITES
#define LET(x, ...) const T x = (T)(__VA_ARGS__);
#define SET(x, ...) x = (T)(__VA_ARGS__);
#define LT_MAP(name, tensors, numbers, text, ...)                                                  \
  struct Map_##name {                                                                              \
    typedef TensorsOf_##name Tensors;                                                              \
    typedef NumbersOf_##name Numbers;                                                              \
    static void of(thread T *values_, constant T *numbers_) { numbers tensors text }               \
  };
#include "ops.def"
#undef GIVEN
#undef ONCE
#undef READS
#undef WRITES
#undef WRITES_OPTIONAL
#undef LET
#undef SET

/* ---- the kernels ----------------------------------------------------------------------------- */

/* The memory of an item's tensors. */
struct Item {
  device char *data[LT_MPS_MAP_TENSORS];
};

/* Loads four elements of all tensors, applies the map, and stores the tensors that it writes. */
template <typename Map>
static inline void map_four(Item item, constant lt_MpsMap &args, int64_t i) {
  int count = args.n - i < 4 ? (int)(args.n - i) : 4;
  bool packed = PACKED && count == 4;
  Four<T> v[Map::Tensors::count];
  for (int k = 0; k < Map::Tensors::count; k++) {
    for (int j = 0; j < 4; j++) v[k].v[j] = 0;
    if (!(GIVEN_ >> k & 1)) continue;
    if (packed)
      v[k] = load4<T>(item.data[k], DTYPE, i);
    else
      for (int j = 0; j < count; j++) v[k].v[j] = load_float(item.data[k], DTYPE, i + j);
  }
  for (int j = 0; j < 4; j++) {
    T values[Map::Tensors::count];
    for (int k = 0; k < Map::Tensors::count; k++) values[k] = v[k].v[j];
    Map::of(values, args.numbers);
    for (int k = 0; k < Map::Tensors::count; k++) v[k].v[j] = values[k];
  }
  for (int k = 0; k < Map::Tensors::count; k++) {
    if (!(GIVEN_ & WRITTEN & 1 << k)) continue;
    if (packed)
      store4(item.data[k], DTYPE, i, v[k]);
    else
      for (int j = 0; j < count; j++) store_float(item.data[k], DTYPE, i + j, v[k].v[j]);
  }
}

#define LT_MAP(name, ...)                                                                          \
  kernel void map_##name(                                                                          \
      device char *a [[buffer(0)]], device char *b [[buffer(1)]], device char *c [[buffer(2)]],    \
      device char *d [[buffer(3)]], device char *e [[buffer(4)]], device char *f [[buffer(5)]],    \
      device char *g [[buffer(6)]], device char *h [[buffer(7)]],                                  \
      constant lt_MpsMap &args [[buffer(8)]], uint3 group [[threadgroup_position_in_grid]],        \
      uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) { \
    Item item = {{a, b, c, d, e, f, g, h}};                                                        \
    int64_t step = (int64_t)groups.x * LT_MPS_MAP_THREADS * 4;                                     \
    int64_t i = ((int64_t)group.x * LT_MPS_MAP_THREADS + thread_index) * 4;                        \
    for (; i < args.n; i += step) map_four<Map_##name>(item, args, i);                             \
  }
#include "ops.def"
