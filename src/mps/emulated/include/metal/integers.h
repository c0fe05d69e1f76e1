/* integers.h: the functions of integers, and those that integers and floats share. */
#ifndef LT_EMULATED_METAL_INTEGERS_H
#define LT_EMULATED_METAL_INTEGERS_H

/* Declares the functions of vectors, component by component. A call with arguments of several
 * types is an error, because Metal finds it ambiguous. */
#define LT_OF_VECTORS_1(name)                                                                      \
  template <class T> void name(T) = delete;                                                        \
  template <class T, int N> LT_EMULATED auto name(vec<T, N> a) {                                   \
    return lt_map(a, [](T x) { return name(x); });                                                 \
  }
#define LT_OF_VECTORS_2(name)                                                                      \
  template <class T, class U> void name(T, U) = delete;                                            \
  template <class T, int N> LT_EMULATED auto name(vec<T, N> a, vec<T, N> b) {                      \
    return lt_map(a, b, [](T x, T y) { return name(x, y); });                                      \
  }                                                                                                \
  template <class T, int N> LT_EMULATED auto name(vec<T, N> a, typename lt_Same<T>::type b) {      \
    return name(a, vec<T, N>(b));                                                                  \
  }
#define LT_OF_VECTORS_3(name)                                                                      \
  template <class T, class U, class V> void name(T, U, V) = delete;                                \
  template <class T, int N> LT_EMULATED auto name(vec<T, N> a, vec<T, N> b, vec<T, N> c) {         \
    vec<T, N> out;                                                                                 \
    for (int i = 0; i < N; i++) out[i] = name(a[i], b[i], c[i]);                                   \
    return out;                                                                                    \
  }                                                                                                \
  template <class T, int N>                                                                        \
  LT_EMULATED auto name(vec<T, N> a, typename lt_Same<T>::type b, typename lt_Same<T>::type c) {   \
    return name(a, vec<T, N>(b), vec<T, N>(c));                                                    \
  }

namespace metal {

template <class T> LT_EMULATED T lt_reverse_bits(T v) {
  typedef make_unsigned_t<T> U;
  U in = (U)v, out = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); i++)
    out = (U)(out | (U)((in >> i & 1) << (8 * sizeof(T) - 1 - i)));
  return (T)out;
}
__extension__ typedef __int128 lt_Wide;
__extension__ typedef unsigned __int128 lt_UnsignedWide;

#define LT_INTEGER(T, U, S, W)                                                                     \
  LT_EMULATED T min(T a, T b) { return b < a ? b : a; }                                            \
  LT_EMULATED T max(T a, T b) { return a < b ? b : a; }                                            \
  LT_EMULATED T clamp(T v, T low, T high) { return min(max(v, low), high); }                       \
  LT_EMULATED T min3(T a, T b, T c) { return min(a, min(b, c)); }                                  \
  LT_EMULATED T max3(T a, T b, T c) { return max(a, max(b, c)); }                                  \
  LT_EMULATED T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }               \
  LT_EMULATED U abs(T v) { return v >= 1 ? (U)v : (U)(0 - (U)v); }                                 \
  LT_EMULATED U absdiff(T a, T b) { return a > b ? (U)((U)a - (U)b) : (U)((U)b - (U)a); }          \
  LT_EMULATED T popcount(T v) { return (T)__builtin_popcountl((unsigned long)(U)v); }              \
  LT_EMULATED T clz(T v) {                                                                         \
    return (T)((U)v ? __builtin_clzl((unsigned long)(U)v) - (64 - 8 * (int)sizeof(T))              \
                    : 8 * (int)sizeof(T));                                                         \
  }                                                                                                \
  LT_EMULATED T ctz(T v) {                                                                         \
    return (T)((U)v ? __builtin_ctzl((unsigned long)(U)v) : 8 * (int)sizeof(T));                   \
  }                                                                                                \
  LT_EMULATED T reverse_bits(T v) { return lt_reverse_bits(v); }                                   \
  LT_EMULATED T rotate(T v, T by) {                                                                \
    unsigned n = (unsigned)by & (8 * sizeof(T) - 1);                                               \
    return n ? (T)((U)v << n | (U)v >> (8 * sizeof(T) - n)) : v;                                   \
  }                                                                                                \
  LT_EMULATED T mulhi(T a, T b) {                                                                  \
    return (T)((lt_UnsignedWide)(W)a * (lt_UnsignedWide)(W)b >> 8 * sizeof(T));                    \
  }                                                                                                \
  LT_EMULATED T madhi(T a, T b, T c) { return (T)((U)mulhi(a, b) + (U)c); }                        \
  LT_EMULATED T hadd(T a, T b) { return (T)(((W)a + (W)b) >> 1); }                                 \
  LT_EMULATED T rhadd(T a, T b) { return (T)(((W)a + (W)b + 1) >> 1); }                            \
  LT_EMULATED T lt_saturated(W v, T) {                                                             \
    return v < (W)numeric_limits<T>::min()   ? numeric_limits<T>::min()                            \
           : v > (W)numeric_limits<T>::max() ? numeric_limits<T>::max()                            \
                                             : (T)v;                                               \
  }                                                                                                \
  LT_EMULATED T addsat(T a, T b) { return lt_saturated((W)a + (W)b, a); }                          \
  LT_EMULATED T subsat(T a, T b) { return lt_saturated((W)a - (W)b, a); }                          \
  LT_EMULATED T extract_bits(T v, unsigned offset, unsigned bits) {                                \
    if (bits == 0) return 0;                                                                       \
    U up = (U)((U)v << (8 * sizeof(T) - offset - bits));                                           \
    return (T)((T)up >> (8 * sizeof(T) - bits));                                                   \
  }                                                                                                \
  LT_EMULATED T insert_bits(T base, T insert, unsigned offset, unsigned bits) {                    \
    U mask = bits == 8 * sizeof(T) ? (U) ~(U)0 : (U)((((U)1 << bits) - 1) << offset);              \
    return (T)(((U)base & (U)~mask) | ((U)((U)insert << offset) & mask));                          \
  }                                                                                                \
  LT_EMULATED T select(T a, T b, bool second) { return second ? b : a; }
LT_INTEGER(char, uchar, char, long)
LT_INTEGER(signed char, uchar, signed char, long)
LT_INTEGER(uchar, uchar, char, lt_Wide)
LT_INTEGER(short, ushort, short, long)
LT_INTEGER(ushort, ushort, short, lt_Wide)
LT_INTEGER(int, uint, int, long)
LT_INTEGER(uint, uint, int, lt_Wide)
LT_INTEGER(long, ulong, long, lt_Wide)
LT_INTEGER(ulong, ulong, long, lt_Wide)
#undef LT_INTEGER
LT_EMULATED int mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
LT_EMULATED uint mul24(uint a, uint b) { return (a & 0xffffffu) * (b & 0xffffffu); }
LT_EMULATED int mad24(int a, int b, int c) { return mul24(a, b) + c; }
LT_EMULATED uint mad24(uint a, uint b, uint c) { return mul24(a, b) + c; }
LT_EMULATED bool select(bool a, bool b, bool second) { return second ? b : a; }
template <class T, int N>
LT_EMULATED vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> second) {
  for (int i = 0; i < N; i++)
    if (second[i]) a[i] = b[i];
  return a;
}

} // namespace metal

#endif
