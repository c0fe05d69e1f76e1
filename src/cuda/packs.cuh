/* packs.cuh: loads and stores of elements of several dtypes, one at a time or several at once.
 * There is one branch on the dtype for all elements of a call, so that their loads are issued
 * together. */
#ifndef LT_CUDA_PACKS_CUH
#define LT_CUDA_PACKS_CUH

#include "device.cuh"

/* ---- one element ----------------------------------------------------------------------------- */

/* The type of the elements of a mask: whether an element is not 0. */
struct Nonzero {
  int is; /* 1: the element is not 0 */
};

/* Classes for the formats in memory: Storage is the type in memory, of() converts to a number, to()
 * converts back. */
struct HalfBits {
  typedef uint16_t Storage;
  static __device__ __forceinline__ float of(Storage b) {
    return __half2float(__ushort_as_half(b));
  }
  template <class T> static __device__ __forceinline__ Storage to(T v) {
    return __half_as_ushort(half_of(v));
  }
};
struct Bfloat16Bits {
  typedef uint16_t Storage;
  static __device__ __forceinline__ float of(Storage b) {
    return __uint_as_float((unsigned)b << 16);
  }
  template <class T> static __device__ __forceinline__ Storage to(T v) {
    return __bfloat16_as_ushort(bfloat16_of(v));
  }
};
template <class S> struct Plain {
  typedef S Storage;
  static __device__ __forceinline__ S of(S v) { return v; }
  template <class T> static __device__ __forceinline__ S to(T v) { return (S)v; }
};
struct Boolean {
  typedef uint8_t Storage;
  static __device__ __forceinline__ int of(Storage v) { return v != 0; }
  template <class T> static __device__ __forceinline__ Storage to(T v) { return v != 0; }
};
/* An element as Nonzero. `shift` is 1 for the bits of a float, whose sign bit is ignored. */
template <class S, int shift> struct NotZero {
  typedef S Storage;
  static __device__ __forceinline__ Nonzero of(S v) {
    Nonzero t = {(S)(v << shift) != 0};
    return t;
  }
};

/* Calls f with the class that reads and writes elements of the dtype. The first argument's type is
 * the type of the numbers and decides which dtypes are allowed: float for halves and float32,
 * double for all floats, int64_t for integers and bool, Nonzero for all. */
template <class F> LT_DEVICE_INLINE void reading(float, int dtype, F f) {
  if (dtype == LT_float32)
    f(Plain<float>());
  else if (dtype == LT_bfloat16)
    f(Bfloat16Bits());
  else
    f(HalfBits());
}
template <class F> LT_DEVICE_INLINE void reading(double, int dtype, F f) {
  if (dtype == LT_float64)
    f(Plain<double>());
  else
    reading(0.0f, dtype, f);
}
template <class F> LT_DEVICE_INLINE void reading(int64_t, int dtype, F f) {
  switch (dtype) {
  case LT_bool:
    f(Boolean());
    break;
  case LT_uint8:
    f(Plain<uint8_t>());
    break;
  case LT_int8:
    f(Plain<int8_t>());
    break;
  case LT_int16:
    f(Plain<int16_t>());
    break;
  case LT_int32:
    f(Plain<int32_t>());
    break;
  default:
    f(Plain<int64_t>());
    break;
  }
}
template <class F> LT_DEVICE_INLINE void reading(Nonzero, int dtype, F f) {
  switch (dtype) {
  case LT_float16:
  case LT_bfloat16:
    f(NotZero<uint16_t, 1>());
    break;
  case LT_float32:
    f(NotZero<uint32_t, 1>());
    break;
  case LT_float64:
    f(NotZero<uint64_t, 1>());
    break;
  case LT_int16:
    f(NotZero<uint16_t, 0>());
    break;
  case LT_int32:
    f(NotZero<uint32_t, 0>());
    break;
  case LT_int64:
    f(NotZero<uint64_t, 0>());
    break;
  default:
    f(NotZero<uint8_t, 0>());
    break;
  }
}

/* ---- several elements ------------------------------------------------------------------------ */

/* Four consecutive elements that are loaded at once. */
template <class S> struct __align__(sizeof(S) * 4 < 16 ? sizeof(S) * 4 : 16) Pack { S v[4]; };

/* Loads the packs from elements i and j on. */
template <class In>
LT_DEVICE_INLINE void read_packs(In (&v)[8], const void *x, int dtype, int64_t i, int64_t j) {
  reading(In(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    Pack<S> a = *(const Pack<S> *)((const S *)x + i), b = *(const Pack<S> *)((const S *)x + j);
    for (int k = 0; k < 4; k++) v[k] = (In)how.of(a.v[k]), v[k + 4] = (In)how.of(b.v[k]);
  });
}
/* Loads the elements i, i + step, i + 2 step ... */
template <class In>
LT_DEVICE_INLINE void read_eight(In (&v)[8], const void *x, int dtype, int64_t i, int64_t step) {
  reading(In(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    S s[8];
    for (int k = 0; k < 8; k++) s[k] = ((const S *)x)[i + k * step];
    for (int k = 0; k < 8; k++) v[k] = (In)how.of(s[k]);
  });
}
/* Stores to the elements i, i + step, i + 2 step ... */
template <class T>
LT_DEVICE_INLINE void write_eight(void *x, int dtype, int64_t i, int64_t step, const T (&v)[8]) {
  reading(T(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    for (int k = 0; k < 8; k++) ((S *)x)[i + k * step] = how.to(v[k]);
  });
}
/* Loads element i. */
template <class In> LT_DEVICE_INLINE In read_one(const void *x, int dtype, int64_t i) {
  In v;
  reading(In(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    v = (In)how.of(((const S *)x)[i]);
  });
  return v;
}
/* Loads or stores the pack from element i on. */
template <class T> LT_DEVICE_INLINE void read_pack(T (&v)[4], const void *x, int dtype, int64_t i) {
  reading(T(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    Pack<S> a = *(const Pack<S> *)((const S *)x + i);
    for (int k = 0; k < 4; k++) v[k] = (T)how.of(a.v[k]);
  });
}
template <class T>
LT_DEVICE_INLINE void write_pack(void *x, int dtype, int64_t i, const T (&v)[4]) {
  reading(T(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    Pack<S> a;
    for (int k = 0; k < 4; k++) a.v[k] = how.to(v[k]);
    *(Pack<S> *)((S *)x + i) = a;
  });
}
template <class T> LT_DEVICE_INLINE void write_one(void *x, int dtype, int64_t i, T v) {
  reading(T(), dtype, [&](auto how) {
    typedef typename decltype(how)::Storage S;
    ((S *)x)[i] = how.to(v);
  });
}

#endif
