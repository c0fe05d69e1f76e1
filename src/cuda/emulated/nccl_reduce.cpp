/* nccl_reduce.cpp: the reductions of the emulated NCCL, for each dtype. */
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "nccl_tasks.h"

#include <math.h>
#include <string.h>
#include <type_traits>

namespace emulated {
namespace {

/* The type in which elements are computed: sums of integers wrap around. */
template <class T> struct Compute {
  typedef std::conditional_t<std::is_floating_point_v<T>, T, unsigned long long> Sum;
  static T number(T v) { return v; }
};
template <> struct Compute<__half> {
  typedef float Sum;
  static float number(__half v) { return __half2float(v); }
};
template <> struct Compute<__nv_bfloat16> {
  typedef float Sum;
  static float number(__nv_bfloat16 v) { return __bfloat162float(v); }
};

template <class T> constexpr bool is_float = !std::is_integral_v<T>;

template <class T> T add(T a, T b) {
  typedef typename Compute<T>::Sum S;
  return T(S(Compute<T>::number(a)) + S(Compute<T>::number(b)));
}
template <class T> T multiply(T a, T b) {
  typedef typename Compute<T>::Sum S;
  return T(S(Compute<T>::number(a)) * S(Compute<T>::number(b)));
}
/* Of a NaN and a number, the number. */
template <class T> T larger(T a, T b) {
  auto x = Compute<T>::number(a), y = Compute<T>::number(b);
  return y > x || x != x ? b : a;
}
template <class T> T smaller(T a, T b) {
  auto x = Compute<T>::number(a), y = Compute<T>::number(b);
  return y < x || x != x ? b : a;
}
template <class T> T scale(T v, int ranks) {
  if constexpr (std::is_same_v<T, double>) return v * (1.0 / ranks);
  if constexpr (!is_float<T>) return v;
  return T((float)Compute<T>::number(v) * (float)Compute<T>::number(T((float)(1.0 / ranks))));
}

template <class T, class F> void each(void *to, const void *a, const void *b, size_t n, F f) {
  T *out = (T *)to;
  const T *x = (const T *)a, *y = (const T *)b;
  for (size_t i = 0; i < n; i++) out[i] = f(x[i], y[i]);
}

template <class T>
void combine(void *to, const void *a, const void *b, size_t n, ncclRedOp_t op, int ranks) {
  switch (op) {
  case ncclProd:
    return each<T>(to, a, b, n, multiply<T>);
  case ncclMax:
    return each<T>(to, a, b, n, larger<T>);
  case ncclMin:
    return each<T>(to, a, b, n, smaller<T>);
  case ncclAvg:
    return each<T>(to, a, b, n, [ranks](T x, T y) { return add<T>(x, scale<T>(y, ranks)); });
  default:
    return each<T>(to, a, b, n, add<T>);
  }
}

template <class T> void load(void *to, const void *from, size_t n, int ranks) {
  each<T>(to, from, from, n, [ranks](T x, T) { return scale<T>(x, ranks); });
}

template <class T> void finish(void *values, size_t n, int ranks) {
  typedef std::conditional_t<std::is_signed_v<T>, long long, unsigned long long> Wide;
  if constexpr (!is_float<T>)
    each<T>(values, values, values, n, [ranks](T x, T) { return T((Wide)x / (Wide)ranks); });
}

/* Calls f<T> for the type of a dtype. */
#define DISPATCH(dtype, f, ...)                                                                    \
  switch (dtype) {                                                                                 \
  case ncclInt8:                                                                                   \
    return f<signed char>(__VA_ARGS__);                                                            \
  case ncclUint8:                                                                                  \
    return f<unsigned char>(__VA_ARGS__);                                                          \
  case ncclInt32:                                                                                  \
    return f<int>(__VA_ARGS__);                                                                    \
  case ncclUint32:                                                                                 \
    return f<unsigned>(__VA_ARGS__);                                                               \
  case ncclInt64:                                                                                  \
    return f<long long>(__VA_ARGS__);                                                              \
  case ncclUint64:                                                                                 \
    return f<unsigned long long>(__VA_ARGS__);                                                     \
  case ncclFloat16:                                                                                \
    return f<__half>(__VA_ARGS__);                                                                 \
  case ncclBfloat16:                                                                               \
    return f<__nv_bfloat16>(__VA_ARGS__);                                                          \
  case ncclFloat64:                                                                                \
    return f<double>(__VA_ARGS__);                                                                 \
  default:                                                                                         \
    return f<float>(__VA_ARGS__);                                                                  \
  }

} // namespace

size_t nccl_size(ncclDataType_t dtype) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return (int)dtype >= 0 && dtype < ncclNumTypes ? sizes[dtype] : 0;
}

void nccl_combine(void *to, const void *a, const void *b, size_t n, ncclDataType_t dtype,
                  ncclRedOp_t op, int ranks) {
  DISPATCH(dtype, combine, to, a, b, n, op, ranks)
}

void nccl_load(void *to, const void *from, size_t n, ncclDataType_t dtype, ncclRedOp_t op,
               int ranks) {
  if (op != ncclAvg) {
    memcpy(to, from, n * nccl_size(dtype));
    return;
  }
  DISPATCH(dtype, load, to, from, n, ranks)
}

void nccl_finish(void *values, size_t n, ncclDataType_t dtype, ncclRedOp_t op, int ranks) {
  if (op != ncclAvg) return;
  DISPATCH(dtype, finish, values, n, ranks)
}

} // namespace emulated
