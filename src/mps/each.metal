/* each.metal: the kernels of rows LT_EACH, whose bodies are shared with other devices
 * (each/each.h). */
#include "loops.metal.h"
#undef LT_EACH /* a loop there, a row of ops.def here */

#define LT_EACH_FUNCTION    static inline
#define LT_EACH_ARGS(type)  constant type *
#define LT_EACH_LOCAL(type) thread type *
#include "each/args.h"

#define INTEGERS K6 /* the type that bodies compute in: int64_t, else float */

static inline bool is_nan(float v) { return isnan(v); }
static inline bool is_nan(int64_t) { return false; }
static inline float floor_of(float v) { return floor(v); }
static inline int64_t floor_of(int64_t v) { return v; }

/* The tensors of a launch. */
struct Elements {
  device const char *in0, *in1, *in2, *in3;
  device char *out0, *out1;
};

#define LT_EACH_BODY(name)                                                                         \
  template <typename T>                                                                            \
  static inline void body##name(constant lt_each_##name##_args *p, Elements e, int64_t i)
#define LT_EACH_OF_T       template <typename T> LT_EACH_FUNCTION
#define LT_EACH_NAME(f)    f
#define LT_EACH_CALL(f)    f<T>
#define GET(k, j)          load<T>(e.in##k, K##k, j)
#define GET_INDEX(k, j)    (load<int64_t>(e.in##k, K##k, j) - LT_INDEX_BASE)
#define TO_0               K4
#define TO_1               K5
#define PUT(k, j, v)       store<T>(e.out##k, TO_##k, j, v)
#define PUT_INDEX(k, j, v) store<int64_t>(e.out##k, TO_##k, j, (v) + LT_INDEX_BASE)
#define IS_NAN(v)          is_nan(v)
#define FLOOR(v)           floor_of(v)
#include "each/bodies.h"

#define LT_EACH(name, ...)                                                                         \
  struct Call##name {                                                                              \
    int64_t n;                                                                                     \
    lt_each_##name##_args args;                                                                    \
  };                                                                                               \
  kernel void each##name(                                                                          \
      device const char *in0 [[buffer(0)]], device const char *in1 [[buffer(1)]],                  \
      device const char *in2 [[buffer(2)]], device const char *in3 [[buffer(3)]],                  \
      device char *out0 [[buffer(4)]], device char *out1 [[buffer(5)]],                            \
      constant Call##name &call [[buffer(6)]], LT_GRID) {                                          \
    const Place place = LT_PLACE;                                                                  \
    Elements e = {in0, in1, in2, in3, out0, out1};                                                 \
    LT_EACH_ALONE(place, i, call.n) {                                                              \
      if (INTEGERS != 0)                                                                           \
        body##name<int64_t>(&call.args, e, i);                                                     \
      else                                                                                         \
        body##name<float>(&call.args, e, i);                                                       \
    }                                                                                              \
  }
#include "ops.def"
