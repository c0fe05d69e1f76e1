/* elementwise.metal.h: any elementwise op, on any dtypes and layout, computed in one type. A .metal
 * file includes the headers of the type, then defines what elementwise_texts.h requires, and
 *
 *   E              the type of loaded elements: T, or bool where T stands for it
 *   NUMBER(n)      the T in an lt_MpsNumber
 *
 * and then includes this file.
 */
#include "elementwise.h"

#define OP        K0
#define OUT_DTYPE K1
#define X_DTYPE   K2
#define Y_DTYPE   K3
#define Z_DTYPE   K4
#define SOURCES   K5 /* two bits for each input */
#define PACKED    K6 /* four elements can be loaded at once */
#define FLAT      K7 /* one dimension */

#define SOURCE(k) ((SOURCES >> 2 * (k)) & 3)

#define LT_TEXTS_INLINE static inline
#include "elementwise_texts.h"

#ifdef LT_IS_FLOAT
#include "activations.metal.h"
#undef SIGMOID
#undef SIGMOID_SLOPE
#undef TANH_SLOPE
#undef SILU
#undef SILU_BACKWARD
#undef GELU_ERF
#undef GELU_ERF_BACKWARD
#undef GELU_TANH
#undef GELU_TANH_BACKWARD
#define SIGMOID(x)               sigmoid_of(x)
#define SIGMOID_SLOPE(y)         sigmoid_slope_of(y)
#define TANH_SLOPE(y)            tanh_slope_of(y)
#define SILU(x)                  silu_of(x)
#define SILU_BACKWARD(x, y)      silu_backward_of(x, y)
#define GELU_ERF(x)              gelu_erf_of(x)
#define GELU_ERF_BACKWARD(x, y)  gelu_erf_backward_of(x, y)
#define GELU_TANH(x)             gelu_tanh_of(x)
#define GELU_TANH_BACKWARD(x, y) gelu_tanh_backward_of(x, y)
#endif

/* ---- the op ---------------------------------------------------------------------------------- */

/* Returns the op's result for one element. */
static inline T apply(T x, T y, T z, T a, T b, T MAXFINITE) {
  (void)x, (void)y, (void)z, (void)a, (void)b, (void)MAXFINITE;
  switch (OP) {
#define LT_TEXT(name, inputs, result, text)                                                        \
  case LT_OP_##name:                                                                               \
    return result(text);
#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  TEXT_##types(name, inputs, rule, ftext, itext)
#include "ops.def"
  default:
    return x;
  }
}

/* ---- any layout ------------------------------------------------------------------------------ */

/* Returns an input's element, or the number that stands for it. */
static inline T get(device const char *memory, int dtype, int source, int64_t offset, T value) {
  if (source <= LT_MPS_VALUE) return value;
  return (T)load<E>(memory, dtype, offset);
}

kernel void elementwise_any(device char *out [[buffer(0)]], device const char *x [[buffer(1)]],
                            device const char *y [[buffer(2)]], device const char *z [[buffer(3)]],
                            constant lt_MpsElementwise &args [[buffer(4)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint3 groups [[threadgroups_per_grid]],
                            uint thread_index [[thread_index_in_threadgroup]]) {
  int64_t step = (int64_t)groups.x * LT_MPS_THREADS;
  for (int64_t i = (int64_t)group.x * LT_MPS_THREADS + thread_index; i < args.numel; i += step) {
    int64_t offset[4];
    offsets_at<4>(args.geometry, i, offset);
    T first = get(x, X_DTYPE, SOURCE(0), offset[1], NUMBER(args.value[0])),
      second = get(y, Y_DTYPE, SOURCE(1), offset[2], NUMBER(args.value[1])),
      third = get(z, Z_DTYPE, SOURCE(2), offset[3], NUMBER(args.value[2]));
    store<T>(out, OUT_DTYPE, offset[0],
             apply(first, second, third, NUMBER(args.a), NUMBER(args.b), (T)args.limit));
  }
}

/* ---- rows, four elements at a time ----------------------------------------------------------- */

/* Returns `count` elements from an offset, or one of them four times. */
static inline Four<T> get4(device const char *memory, int dtype, int source, int64_t offset,
                           int count, T value) {
  Four<T> v;
  if (source == LT_MPS_DENSE && PACKED && count == 4) {
    Four<E> from = load4<E>(memory, dtype, offset);
    for (int k = 0; k < 4; k++) v.v[k] = (T)from.v[k];
  } else {
    for (int k = 0; k < 4; k++) v.v[k] = value;
    if (source == LT_MPS_SINGLE) {
      T same = (T)load<E>(memory, dtype, offset);
      for (int k = 0; k < 4; k++) v.v[k] = same;
    } else if (source == LT_MPS_DENSE) {
      for (int k = 0; k < count; k++) v.v[k] = (T)load<E>(memory, dtype, offset + k);
    }
  }
  return v;
}

kernel void elementwise_rows(device char *out [[buffer(0)]], device const char *x [[buffer(1)]],
                             device const char *y [[buffer(2)]], device const char *z [[buffer(3)]],
                             constant lt_MpsElementwise &args [[buffer(4)]],
                             uint3 group [[threadgroup_position_in_grid]],
                             uint3 groups [[threadgroups_per_grid]],
                             uint thread_index [[thread_index_in_threadgroup]]) {
  int64_t step = (int64_t)groups.x * LT_MPS_THREADS, four = (args.numel + 3) / 4;
  T a = NUMBER(args.a), b = NUMBER(args.b), limit = (T)args.limit;
  for (int64_t i = (int64_t)group.x * LT_MPS_THREADS + thread_index; i < four; i += step) {
    int64_t offset[4];
    if (FLAT)
      for (int k = 0; k < 4; k++)
        offset[k] = k > 0 && SOURCE(k - 1) == LT_MPS_SINGLE ? (int64_t)0 : i * 4;
    else
      offsets_at<4>(args.geometry, i, offset);
    int count = FLAT && args.numel - i * 4 < 4 ? (int)(args.numel - i * 4) : 4;
    Four<T> first = get4(x, X_DTYPE, SOURCE(0), offset[1], count, NUMBER(args.value[0])),
            second = get4(y, Y_DTYPE, SOURCE(1), offset[2], count, NUMBER(args.value[1])),
            third = get4(z, Z_DTYPE, SOURCE(2), offset[3], count, NUMBER(args.value[2]));
    for (int k = 0; k < 4; k++)
      first.v[k] = apply(first.v[k], second.v[k], third.v[k], a, b, limit);
    if (PACKED && count == 4)
      store4(out, OUT_DTYPE, offset[0], first);
    else
      for (int k = 0; k < count; k++) store(out, OUT_DTYPE, offset[0] + k, first.v[k]);
  }
}
