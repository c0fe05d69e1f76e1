/* cub.cuh: CUB's device-wide functions. Each is one operation of its stream, with CUB's protocol: a
 * call without temporary storage only returns the size of the storage that it requires.
 *
 * Sorts are stable in both directions, as CUB's radix sorts are, and have the same order of
 * numbers: by value, -0 equal to +0, and NaN by its sign beyond the infinities.
 */
#ifndef LT_EMULATED_CUB_CUH
#define LT_EMULATED_CUB_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

namespace cub {

/* ---- the protocol ---------------------------------------------------------------------------- */

template <class F>
cudaError_t lt_emulated_call(void *storage, size_t &bytes, cudaStream_t stream, F work) {
  if (!storage) {
    bytes = 256; /* not 0, so that a caller who forgets the allocation is detected */
    return cudaSuccess;
  }
  /* It may run several times, in a graph: each run starts from the same state. */
  return lt_emulated_enqueue(
      stream,
      [](void *f) {
        F once = *(F *)f;
        once();
      },
      [](void *f) { delete (F *)f; }, new F(work));
}

template <class I> using lt_EmulatedValue = std::decay_t<decltype(*std::declval<I &>())>;
/* The type of a sum of such values: C's type of a + a, except for class types. */
template <class T>
using lt_EmulatedSum = std::decay_t<decltype(std::declval<T>() + std::declval<T>())>;

struct Sum {
  template <class A, class B> auto operator()(const A &a, const B &b) const { return a + b; }
};
struct Min {
  template <class T> T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
struct Max {
  template <class T> T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};
struct Equality {
  template <class T> bool operator()(const T &a, const T &b) const { return a == b; }
};

template <class K, class V> struct KeyValuePair {
  K key;
  V value;
};

template <class T> struct DoubleBuffer {
  T *d_buffers[2];
  int selector = 0;
  DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate} {}
  T *Current() { return d_buffers[selector]; }
  T *Alternate() { return d_buffers[selector ^ 1]; }
};

/* ---- reductions ------------------------------------------------------------------------------ */

struct DeviceReduce {
  template <class I, class O, class N, class Op, class T>
  static cudaError_t Reduce(void *storage, size_t &bytes, I in, O out, N n, Op op, T init,
                            cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      T total = init;
      for (N i = 0; i < n; i++) total = op(total, in[i]);
      *out = total;
    });
  }
  template <class I, class O, class N>
  static cudaError_t Sum(void *storage, size_t &bytes, I in, O out, N n, cudaStream_t stream = 0) {
    return Reduce(storage, bytes, in, out, n, cub::Sum(), lt_EmulatedValue<O>(), stream);
  }
  template <class I, class O, class N>
  static cudaError_t Min(void *storage, size_t &bytes, I in, O out, N n, cudaStream_t stream = 0) {
    return first(storage, bytes, in, out, n, cub::Min(), stream);
  }
  template <class I, class O, class N>
  static cudaError_t Max(void *storage, size_t &bytes, I in, O out, N n, cudaStream_t stream = 0) {
    return first(storage, bytes, in, out, n, cub::Max(), stream);
  }

private:
  template <class I, class O, class N, class Op>
  static cudaError_t first(void *storage, size_t &bytes, I in, O out, N n, Op op,
                           cudaStream_t stream) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      if (n == 0) return;
      lt_EmulatedValue<I> total = in[0];
      for (N i = 1; i < n; i++) total = op(total, (lt_EmulatedValue<I>)in[i]);
      *out = total;
    });
  }
};

/* ---- scans ----------------------------------------------------------------------------------- */

struct DeviceScan {
  template <class I, class O, class Op, class N>
  static cudaError_t InclusiveScan(void *storage, size_t &bytes, I in, O out, Op op, N n,
                                   cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      if (n == 0) return;
      std::decay_t<decltype(op(in[0], in[0]))> total = in[0];
      out[0] = total;
      for (N i = 1; i < n; i++) out[i] = total = op(total, in[i]);
    });
  }
  template <class I, class O, class Op, class T, class N>
  static cudaError_t ExclusiveScan(void *storage, size_t &bytes, I in, O out, Op op, T init, N n,
                                   cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      std::decay_t<decltype(op(init, in[0]))> total = init;
      for (N i = 0; i < n; i++) {
        auto value = in[i]; /* out may be in */
        out[i] = total;
        total = op(total, value);
      }
    });
  }
  template <class I, class O, class N>
  static cudaError_t InclusiveSum(void *storage, size_t &bytes, I in, O out, N n,
                                  cudaStream_t stream = 0) {
    return InclusiveScan(storage, bytes, in, out, cub::Sum(), n, stream);
  }
  template <class I, class O, class N>
  static cudaError_t ExclusiveSum(void *storage, size_t &bytes, I in, O out, N n,
                                  cudaStream_t stream = 0) {
    return ExclusiveScan(storage, bytes, in, out, cub::Sum(), lt_EmulatedValue<I>(), n, stream);
  }
  template <class K, class I, class O, class Op, class N, class Equal = Equality>
  static cudaError_t InclusiveScanByKey(void *storage, size_t &bytes, K keys, I in, O out, Op op,
                                        N n, Equal equal = Equal(), cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      if (n == 0) return;
      std::decay_t<decltype(op(in[0], in[0]))> total = in[0];
      for (N i = 0; i < n; i++) {
        if (i) total = equal(keys[i - 1], keys[i]) ? op(total, in[i]) : in[i];
        out[i] = total;
      }
    });
  }
  template <class K, class I, class O, class N, class Equal = Equality>
  static cudaError_t InclusiveSumByKey(void *storage, size_t &bytes, K keys, I in, O out, N n,
                                       Equal equal = Equal(), cudaStream_t stream = 0) {
    return InclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), n, equal, stream);
  }
  template <class K, class I, class O, class N, class Equal = Equality>
  static cudaError_t ExclusiveSumByKey(void *storage, size_t &bytes, K keys, I in, O out, N n,
                                       Equal equal = Equal(), cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      lt_EmulatedSum<lt_EmulatedValue<I>> total{};
      for (N i = 0; i < n; i++) {
        if (i && !equal(keys[i - 1], keys[i])) total = {};
        auto value = in[i];
        out[i] = total;
        total = total + value;
      }
    });
  }
};

/* ---- selections ------------------------------------------------------------------------------ */

struct DeviceSelect {
  template <class I, class F, class O, class C, class N>
  static cudaError_t Flagged(void *storage, size_t &bytes, I in, F flags, O out, C count, N n,
                             cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      N kept = 0;
      for (N i = 0; i < n; i++)
        if (flags[i]) out[kept++] = in[i];
      *count = kept;
    });
  }
  template <class I, class O, class C, class N, class Op>
  static cudaError_t If(void *storage, size_t &bytes, I in, O out, C count, N n, Op op,
                        cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      N kept = 0;
      for (N i = 0; i < n; i++) {
        auto value = in[i];
        if (op(value)) out[kept++] = value;
      }
      *count = kept;
    });
  }
  template <class I, class O, class C, class N>
  static cudaError_t Unique(void *storage, size_t &bytes, I in, O out, C count, N n,
                            cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      N kept = 0;
      for (N i = 0; i < n; i++)
        if (i == 0 || !(in[i] == in[i - 1])) out[kept++] = in[i];
      *count = kept;
    });
  }
};

struct DeviceRunLengthEncode {
  template <class I, class U, class L, class C, class N>
  static cudaError_t Encode(void *storage, size_t &bytes, I in, U unique, L lengths, C count, N n,
                            cudaStream_t stream = 0) {
    return lt_emulated_call(storage, bytes, stream, [=]() mutable {
      N runs = 0;
      for (N from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && in[to] == in[from]) to++;
        unique[runs] = in[from];
        lengths[runs++] = to - from;
      }
      *count = runs;
    });
  }
};

/* ---- sorts ----------------------------------------------------------------------------------- */

/* Writes the numbers 0 to n - 1 to `order`, sorted by the low `bits` bits of their keys; the keys
 * are overwritten. Returns false when out of memory. */
extern "C" bool lt_emulated_sort(unsigned long long *keys, long long *order, long long n, int bits);

/* Converts the bits [begin, end) of a key to an unsigned number with the same order. */
template <class K> unsigned long long lt_emulated_key(K key, int begin, int end) {
  unsigned long long bits = 0, top = 1ull << (8 * sizeof(K) - 1), all = top | (top - 1);
  if constexpr (std::is_floating_point<K>::value || std::is_same<K, __half>::value ||
                std::is_same<K, __nv_bfloat16>::value) {
    if (key == K(0.0f)) key = K(0.0f);
    __builtin_memcpy(&bits, &key, sizeof(K));
    bits = bits & top ? ~bits & all : bits | top;
  } else {
    __builtin_memcpy(&bits, &key, sizeof(K));
    if constexpr (std::is_signed<K>::value) bits ^= top;
  }
  bits >>= begin;
  return end - begin < 64 ? bits & ((1ull << (end - begin)) - 1) : bits;
}

/* Sorts one segment; values may be NULL. `out` is not `in`. */
template <class K, class V>
void lt_emulated_sort_segment(bool down, const K *keys_in, K *keys_out, const V *values_in,
                              V *values_out, long long n, int begin, int end) {
  if (n <= 0) return;
  unsigned long long *keys = new unsigned long long[(size_t)n];
  long long *order = new long long[(size_t)n];
  for (long long i = 0; i < n; i++) {
    unsigned long long key = lt_emulated_key(keys_in[i], begin, end);
    keys[i] = down ? ~key : key;
  }
  if (lt_emulated_sort(keys, order, n, end - begin))
    for (long long i = 0; i < n; i++) {
      keys_out[i] = keys_in[order[i]];
      if (values_out) values_out[i] = values_in[order[i]];
    }
  delete[] keys;
  delete[] order;
}

struct DeviceRadixSort {
#define LT_EMULATED_SORTS(pairs, keys, down)                                                       \
  template <class K, class V, class N>                                                             \
  static cudaError_t pairs(void *storage, size_t &bytes, const K *keys_in, K *keys_out,            \
                           const V *values_in, V *values_out, N n, int begin = 0,                  \
                           int end = sizeof(K) * 8, cudaStream_t stream = 0) {                     \
    return lt_emulated_call(storage, bytes, stream, [=] {                                          \
      lt_emulated_sort_segment(down, keys_in, keys_out, values_in, values_out, (long long)n,       \
                               begin, end);                                                        \
    });                                                                                            \
  }                                                                                                \
  template <class K, class V, class N>                                                             \
  static cudaError_t pairs(void *storage, size_t &bytes, DoubleBuffer<K> &k, DoubleBuffer<V> &v,   \
                           N n, int begin = 0, int end = sizeof(K) * 8, cudaStream_t stream = 0) { \
    cudaError_t status = pairs(storage, bytes, (const K *)k.Current(), k.Alternate(),              \
                               (const V *)v.Current(), v.Alternate(), n, begin, end, stream);      \
    if (storage) k.selector ^= 1, v.selector ^= 1;                                                 \
    return status;                                                                                 \
  }                                                                                                \
  template <class K, class N>                                                                      \
  static cudaError_t keys(void *storage, size_t &bytes, const K *keys_in, K *keys_out, N n,        \
                          int begin = 0, int end = sizeof(K) * 8, cudaStream_t stream = 0) {       \
    return lt_emulated_call(storage, bytes, stream, [=] {                                          \
      lt_emulated_sort_segment(down, keys_in, keys_out, (const char *)nullptr, (char *)nullptr,    \
                               (long long)n, begin, end);                                          \
    });                                                                                            \
  }
  LT_EMULATED_SORTS(SortPairs, SortKeys, false)
  LT_EMULATED_SORTS(SortPairsDescending, SortKeysDescending, true)
#undef LT_EMULATED_SORTS
};

/* Sorts segments, which may be empty, in any order, and need not cover everything. */
template <class K, class V, class B, class E>
void lt_emulated_sort_segments(bool down, const K *keys_in, K *keys_out, const V *values_in,
                               V *values_out, long long segments, B from, E to, int begin,
                               int end) {
  for (long long i = 0; i < segments; i++) {
    long long first = (long long)from[i], n = (long long)to[i] - first;
    lt_emulated_sort_segment(down, keys_in + first, keys_out + first,
                             values_in ? values_in + first : nullptr,
                             values_out ? values_out + first : nullptr, n, begin, end);
  }
}

struct DeviceSegmentedRadixSort {
#define LT_EMULATED_SORTS(pairs, keys, down)                                                       \
  template <class K, class V, class N, class S, class B, class E>                                  \
  static cudaError_t pairs(void *storage, size_t &bytes, const K *keys_in, K *keys_out,            \
                           const V *values_in, V *values_out, N, S segments, B from, E to,         \
                           int begin = 0, int end = sizeof(K) * 8, cudaStream_t stream = 0) {      \
    return lt_emulated_call(storage, bytes, stream, [=] {                                          \
      lt_emulated_sort_segments(down, keys_in, keys_out, values_in, values_out,                    \
                                (long long)segments, from, to, begin, end);                        \
    });                                                                                            \
  }                                                                                                \
  template <class K, class N, class S, class B, class E>                                           \
  static cudaError_t keys(void *storage, size_t &bytes, const K *keys_in, K *keys_out, N,          \
                          S segments, B from, E to, int begin = 0, int end = sizeof(K) * 8,        \
                          cudaStream_t stream = 0) {                                               \
    return lt_emulated_call(storage, bytes, stream, [=] {                                          \
      lt_emulated_sort_segments(down, keys_in, keys_out, (const char *)nullptr, (char *)nullptr,   \
                                (long long)segments, from, to, begin, end);                        \
    });                                                                                            \
  }
  LT_EMULATED_SORTS(SortPairs, SortKeys, false)
  LT_EMULATED_SORTS(SortPairsDescending, SortKeysDescending, true)
#undef LT_EMULATED_SORTS
};

struct DeviceSegmentedSort {
#define LT_EMULATED_SORTS(pairs, keys, down)                                                       \
  template <class K, class V, class N, class S, class B, class E>                                  \
  static cudaError_t pairs(void *storage, size_t &bytes, const K *keys_in, K *keys_out,            \
                           const V *values_in, V *values_out, N, S segments, B from, E to,         \
                           cudaStream_t stream = 0) {                                              \
    return lt_emulated_call(storage, bytes, stream, [=] {                                          \
      lt_emulated_sort_segments(down, keys_in, keys_out, values_in, values_out,                    \
                                (long long)segments, from, to, 0, (int)sizeof(K) * 8);             \
    });                                                                                            \
  }                                                                                                \
  template <class K, class N, class S, class B, class E>                                           \
  static cudaError_t keys(void *storage, size_t &bytes, const K *keys_in, K *keys_out, N,          \
                          S segments, B from, E to, cudaStream_t stream = 0) {                     \
    return lt_emulated_call(storage, bytes, stream, [=] {                                          \
      lt_emulated_sort_segments(down, keys_in, keys_out, (const char *)nullptr, (char *)nullptr,   \
                                (long long)segments, from, to, 0, (int)sizeof(K) * 8);             \
    });                                                                                            \
  }
  LT_EMULATED_SORTS(SortPairs, SortKeys, false)
  LT_EMULATED_SORTS(SortPairsDescending, SortKeysDescending, true)
  LT_EMULATED_SORTS(StableSortPairs, StableSortKeys, false)
  LT_EMULATED_SORTS(StableSortPairsDescending, StableSortKeysDescending, true)
#undef LT_EMULATED_SORTS
};

} // namespace cub

#endif
