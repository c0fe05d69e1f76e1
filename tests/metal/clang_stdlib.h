/* clang_stdlib.h: Metal's address spaces and the declarations of its library, for tests/msl.lua:
 * clang, which Apple's compiler is made of, checks with them that no kernel converts a pointer to
 * another address space. Nothing is defined here, so kernels are checked and not compiled.
 *
 * Vectors are clang's own; tests/msl.lua replaces `float4(...)` by `lt_make<float4>(...)`.
 */
#define kernel
#define device      __attribute__((address_space(1)))
#define constant    __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong, size_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef _Float16 half;

#define LT_VECTORS(T)                                                                              \
  typedef T T##2 __attribute__((ext_vector_type(2)));                                              \
  typedef T T##3 __attribute__((ext_vector_type(3)));                                              \
  typedef T T##4 __attribute__((ext_vector_type(4)));
LT_VECTORS(bool)
LT_VECTORS(char)
LT_VECTORS(uchar)
LT_VECTORS(short)
LT_VECTORS(ushort)
LT_VECTORS(int)
LT_VECTORS(uint)
LT_VECTORS(long)
LT_VECTORS(ulong)
LT_VECTORS(half)
LT_VECTORS(float)
template <class V, class... A> V lt_make(A... a);
template <class To, class From> To as_type(From from);

#define INFINITY  __builtin_inff()
#define NAN       __builtin_nanf("")
#define FLT_MAX   0x1.fffffep127f
#define FLT_MIN   0x1p-126f
#define M_PI_F    3.14159265358979323846f
#define INT_MAX   2147483647
#define INT_MIN   (-2147483647 - 1)
#define UINT_MAX  4294967295u
#define LONG_MAX  9223372036854775807l
#define LONG_MIN  (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul

namespace metal {

/* ---- numbers --------------------------------------------------------------------------------- */

#define LT_INTEGERS(X) X(char) X(uchar) X(short) X(ushort) X(int) X(uint) X(long) X(ulong)
#define LT_NUMBERS(X)  LT_INTEGERS(X) X(float) X(half)
#define X(T)                                                                                       \
  T min(T, T);                                                                                     \
  T max(T, T);                                                                                     \
  T clamp(T, T, T);                                                                                \
  T abs(T);                                                                                        \
  T select(T, T, bool);
LT_NUMBERS(X)
#undef X
#define X(T)                                                                                       \
  T popcount(T);                                                                                   \
  T clz(T);                                                                                        \
  T ctz(T);                                                                                        \
  T mulhi(T, T);                                                                                   \
  T rotate(T, T);                                                                                  \
  T reverse_bits(T);
LT_INTEGERS(X)
#undef X
#define LT_MATHS(X)                                                                                \
  X(acos)                                                                                          \
  X(acosh)                                                                                         \
  X(asin)                                                                                          \
  X(asinh)                                                                                         \
  X(atan)                                                                                          \
  X(atanh)                                                                                         \
  X(ceil)                                                                                          \
  X(cos)                                                                                           \
  X(cosh)                                                                                          \
  X(cospi)                                                                                         \
  X(exp)                                                                                           \
  X(exp10)                                                                                         \
  X(exp2)                                                                                          \
  X(fabs)                                                                                          \
  X(floor)                                                                                         \
  X(fract)                                                                                         \
  X(log)                                                                                           \
  X(log10)                                                                                         \
  X(log2)                                                                                          \
  X(rint)                                                                                          \
  X(round)                                                                                         \
  X(rsqrt)                                                                                         \
  X(sign)                                                                                          \
  X(sin)                                                                                           \
  X(sinh)                                                                                          \
  X(sinpi)                                                                                         \
  X(sqrt)                                                                                          \
  X(tan)                                                                                           \
  X(tanh)                                                                                          \
  X(trunc)
#define X(name)                                                                                    \
  float name(float);                                                                               \
  half name(half);
LT_MATHS(X)
namespace precise {
LT_MATHS(X)
}
namespace fast {
LT_MATHS(X)
}
#undef X
#define LT_MATHS_2(X) X(atan2) X(copysign) X(divide) X(fdim) X(fmax) X(fmin) X(fmod) X(pow) X(powr)
#define X(name)                                                                                    \
  float name(float, float);                                                                        \
  half name(half, half);
LT_MATHS_2(X)
namespace precise {
LT_MATHS_2(X)
float fma(float, float, float);
} // namespace precise
namespace fast {
LT_MATHS_2(X)
}
#undef X
float fma(float, float, float);
half fma(half, half, half);
float mix(float, float, float);
float ldexp(float, int);
float frexp(float, thread int &);
float modf(float, thread float &);
int ilogb(float);
bool isnan(float);
bool isinf(float);
bool isfinite(float);
bool isnormal(float);
bool signbit(float);
float saturate(float);
template <class V> float dot(V, V);
bool any(bool4);
bool all(bool4);

/* ---- SIMD groups, atomics, matrices ---------------------------------------------------------- */

enum class mem_flags { mem_none, mem_device, mem_threadgroup };
mem_flags operator|(mem_flags, mem_flags);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);

/* Metal has no such functions for 64 bits, bool and structs. */
#define LT_INTEGERS_32(X) X(int) X(uint)
#define LT_NUMBERS_32(X)  LT_INTEGERS_32(X) X(char) X(uchar) X(short) X(ushort) X(float) X(half)
#define X(T)                                                                                       \
  T simd_shuffle(T, ushort);                                                                       \
  T simd_broadcast(T, ushort);                                                                     \
  T simd_shuffle_up(T, ushort);                                                                    \
  T simd_shuffle_down(T, ushort);                                                                  \
  T simd_shuffle_xor(T, ushort);                                                                   \
  T simd_sum(T);                                                                                   \
  T simd_product(T);                                                                               \
  T simd_min(T);                                                                                   \
  T simd_max(T);                                                                                   \
  T simd_prefix_inclusive_sum(T);                                                                  \
  T simd_prefix_exclusive_sum(T);
LT_NUMBERS_32(X)
#undef X
#define X(T)                                                                                       \
  T simd_and(T);                                                                                   \
  T simd_or(T);                                                                                    \
  T simd_xor(T);
LT_INTEGERS_32(X)
#undef X
bool simd_all(bool);
bool simd_any(bool);
bool simd_is_first();
struct simd_vote {
  typedef ulong vote_t;
  explicit operator vote_t() const;
};
simd_vote simd_ballot(bool);

enum memory_order { memory_order_relaxed };
template <class T> struct atomic { T value; };
#define LT_ATOMICS(space)                                                                          \
  template <class T> T atomic_load_explicit(const space atomic<T> *, memory_order);                \
  template <class T> void atomic_store_explicit(space atomic<T> *, T, memory_order);               \
  template <class T> T atomic_exchange_explicit(space atomic<T> *, T, memory_order);               \
  template <class T> T atomic_fetch_add_explicit(space atomic<T> *, T, memory_order);              \
  template <class T> T atomic_fetch_sub_explicit(space atomic<T> *, T, memory_order);              \
  template <class T> T atomic_fetch_min_explicit(space atomic<T> *, T, memory_order);              \
  template <class T> T atomic_fetch_max_explicit(space atomic<T> *, T, memory_order);              \
  template <class T> T atomic_fetch_and_explicit(space atomic<T> *, T, memory_order);              \
  template <class T> T atomic_fetch_or_explicit(space atomic<T> *, T, memory_order);               \
  template <class T> T atomic_fetch_xor_explicit(space atomic<T> *, T, memory_order);              \
  template <class T>                                                                               \
  bool atomic_compare_exchange_weak_explicit(space atomic<T> *, thread T *, T, memory_order,       \
                                             memory_order);
LT_ATOMICS(device)
LT_ATOMICS(threadgroup)

template <class T, int C, int R> struct simdgroup_matrix { T held[2]; };
template <class T, int C, int R> simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T);
#define LT_MATRICES(space)                                                                         \
  template <class T>                                                                               \
  void simdgroup_load(thread simdgroup_matrix<T, 8, 8> &, const space T *, ulong = 8,              \
                      ulong2 = ulong2{}, bool = false);                                            \
  template <class T>                                                                               \
  void simdgroup_store(simdgroup_matrix<T, 8, 8>, space T *, ulong = 8, ulong2 = ulong2{},         \
                       bool = false);
LT_MATRICES(device)
LT_MATRICES(threadgroup)
template <class T>
void simdgroup_multiply_accumulate(thread simdgroup_matrix<T, 8, 8> &, simdgroup_matrix<T, 8, 8>,
                                   simdgroup_matrix<T, 8, 8>, simdgroup_matrix<T, 8, 8>);

} // namespace metal

typedef metal::atomic<int> atomic_int;
typedef metal::atomic<uint> atomic_uint;
typedef metal::atomic<bool> atomic_bool;
typedef metal::atomic<float> atomic_float;
