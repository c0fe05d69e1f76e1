/* vectors.h: vectors of 2, 3 and 4 components. */
#ifndef LT_EMULATED_METAL_VECTORS_H
#define LT_EMULATED_METAL_VECTORS_H

/* What the translator makes of .xyz: an index. */
template <int... I> struct lt_swizzle {};

/* The same type; in a parameter it is not deduced. */
template <class T> struct lt_Same { typedef T type; };

namespace metal {

template <class T, int N> struct vec;

/* The result of a swizzle that can be assigned to. */
template <class T, int N, int M, int... I> struct lt_Swizzled : vec<T, sizeof...(I)> {
  typedef vec<T, sizeof...(I)> V;
  vec<T, N> &of;
  LT_EMULATED lt_Swizzled(vec<T, N> &v) : V(v[I]...), of(v) {}
  LT_EMULATED void operator=(V v) {
    int k = 0;
    ((of[I] = v[k++]), ...);
  }
  LT_EMULATED void operator+=(V v) { *this = V(*this) + v; }
  LT_EMULATED void operator-=(V v) { *this = V(*this) - v; }
  LT_EMULATED void operator*=(V v) { *this = V(*this) * v; }
  LT_EMULATED void operator/=(V v) { *this = V(*this) / v; }
};

#define LT_VECTOR_MEMBERS(N)                                                                       \
  vec() = default;                                                                                 \
  template <class U> LT_EMULATED explicit vec(const vec<U, N> &v) {                                \
    for (int i = 0; i < N; i++) (*this)[i] = (T)v[i];                                              \
  }                                                                                                \
  LT_EMULATED T &operator[](int i) { return ((T *)this)[i]; }                                      \
  LT_EMULATED const T &operator[](int i) const { return ((const T *)this)[i]; }                    \
  template <int... I> LT_EMULATED vec<T, sizeof...(I)> operator[](lt_swizzle<I...>) const {        \
    return vec<T, sizeof...(I)>((*this)[I]...);                                                    \
  }                                                                                                \
  template <int... I> LT_EMULATED lt_Swizzled<T, N, 0, I...> operator[](lt_swizzle<I...>) {        \
    return lt_Swizzled<T, N, 0, I...>(*this);                                                      \
  }

template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y;
  LT_VECTOR_MEMBERS(2)
  LT_EMULATED constexpr vec(T s) : x(s), y(s) {}
  LT_EMULATED constexpr vec(T a, T b) : x(a), y(b) {}
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 3> {
  T x, y, z;
  LT_VECTOR_MEMBERS(3)
  LT_EMULATED constexpr vec(T s) : x(s), y(s), z(s) {}
  LT_EMULATED constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {}
  LT_EMULATED constexpr vec(vec<T, 2> v, T c) : x(v.x), y(v.y), z(c) {}
  LT_EMULATED constexpr vec(T a, vec<T, 2> v) : x(a), y(v.x), z(v.y) {}
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w;
  LT_VECTOR_MEMBERS(4)
  LT_EMULATED constexpr vec(T s) : x(s), y(s), z(s), w(s) {}
  LT_EMULATED constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  LT_EMULATED constexpr vec(vec<T, 2> u, vec<T, 2> v) : x(u.x), y(u.y), z(v.x), w(v.y) {}
  LT_EMULATED constexpr vec(vec<T, 2> v, T c, T d) : x(v.x), y(v.y), z(c), w(d) {}
  LT_EMULATED constexpr vec(T a, vec<T, 2> v, T d) : x(a), y(v.x), z(v.y), w(d) {}
  LT_EMULATED constexpr vec(T a, T b, vec<T, 2> v) : x(a), y(b), z(v.x), w(v.y) {}
  LT_EMULATED constexpr vec(vec<T, 3> v, T d) : x(v.x), y(v.y), z(v.z), w(d) {}
  LT_EMULATED constexpr vec(T a, vec<T, 3> v) : x(a), y(v.x), z(v.y), w(v.z) {}
};
#undef LT_VECTOR_MEMBERS

/* Without padding and with the alignment of one component. */
template <class T, int N> struct packed_vec;
#define LT_PACKED_VECTOR(N, ...)                                                                   \
  template <class T> struct packed_vec<T, N> {                                                     \
    T __VA_ARGS__;                                                                                 \
    packed_vec() = default;                                                                        \
    LT_EMULATED packed_vec(vec<T, N> v) {                                                          \
      for (int i = 0; i < N; i++) (*this)[i] = v[i];                                               \
    }                                                                                              \
    template <class... A, class = enable_if_t<sizeof...(A) == N>>                                  \
    LT_EMULATED packed_vec(A... a) : packed_vec(vec<T, N>((T)a...)) {}                             \
    LT_EMULATED operator vec<T, N>() const {                                                       \
      vec<T, N> v;                                                                                 \
      for (int i = 0; i < N; i++) v[i] = (*this)[i];                                               \
      return v;                                                                                    \
    }                                                                                              \
    LT_EMULATED T &operator[](int i) { return ((T *)this)[i]; }                                    \
    LT_EMULATED const T &operator[](int i) const { return ((const T *)this)[i]; }                  \
  };
LT_PACKED_VECTOR(2, x, y)
LT_PACKED_VECTOR(3, x, y, z)
LT_PACKED_VECTOR(4, x, y, z, w)
#undef LT_PACKED_VECTOR

template <class T, int N, class F> LT_EMULATED auto lt_map(vec<T, N> a, F f) {
  vec<decltype(f(a.x)), N> out;
  for (int i = 0; i < N; i++) out[i] = f(a[i]);
  return out;
}
template <class T, class U, int N, class F> LT_EMULATED auto lt_map(vec<T, N> a, vec<U, N> b, F f) {
  vec<decltype(f(a.x, b.x)), N> out;
  for (int i = 0; i < N; i++) out[i] = f(a[i], b[i]);
  return out;
}

#define LT_VECTOR_OPERATOR(op, R)                                                                  \
  template <class T, int N> LT_EMULATED vec<R, N> operator op(vec<T, N> a, vec<T, N> b) {          \
    return lt_map(a, b, [](T u, T v) { return (R)(u op v); });                                     \
  }                                                                                                \
  template <class T, int N>                                                                        \
  LT_EMULATED vec<R, N> operator op(vec<T, N> a, typename lt_Same<T>::type b) {                    \
    return a op vec<T, N>(b);                                                                      \
  }                                                                                                \
  template <class T, int N>                                                                        \
  LT_EMULATED vec<R, N> operator op(typename lt_Same<T>::type a, vec<T, N> b) {                    \
    return vec<T, N>(a) op b;                                                                      \
  }
#define LT_VECTOR_ASSIGNED(op)                                                                     \
  LT_VECTOR_OPERATOR(op, T)                                                                        \
  template <class T, int N> LT_EMULATED vec<T, N> &operator op##=(vec<T, N> &a, vec<T, N> b) {     \
    return a = a op b;                                                                             \
  }                                                                                                \
  template <class T, int N>                                                                        \
  LT_EMULATED vec<T, N> &operator op##=(vec<T, N> &a, typename lt_Same<T>::type b) {               \
    return a = a op b;                                                                             \
  }
LT_VECTOR_ASSIGNED(+)
LT_VECTOR_ASSIGNED(-)
LT_VECTOR_ASSIGNED(*)
LT_VECTOR_ASSIGNED(/)
LT_VECTOR_ASSIGNED(%)
LT_VECTOR_ASSIGNED(&)
LT_VECTOR_ASSIGNED(|)
LT_VECTOR_ASSIGNED(^)
LT_VECTOR_ASSIGNED(<<)
LT_VECTOR_ASSIGNED(>>)
LT_VECTOR_OPERATOR(<, bool)
LT_VECTOR_OPERATOR(>, bool)
LT_VECTOR_OPERATOR(<=, bool)
LT_VECTOR_OPERATOR(>=, bool)
LT_VECTOR_OPERATOR(==, bool)
LT_VECTOR_OPERATOR(!=, bool)
LT_VECTOR_OPERATOR(&&, bool)
LT_VECTOR_OPERATOR(||, bool)
#undef LT_VECTOR_ASSIGNED
#undef LT_VECTOR_OPERATOR
template <class T, int N> LT_EMULATED vec<T, N> operator-(vec<T, N> a) {
  return lt_map(a, [](T v) { return (T)-v; });
}
template <class T, int N> LT_EMULATED vec<T, N> operator~(vec<T, N> a) {
  return lt_map(a, [](T v) { return (T)~v; });
}
template <class T, int N> LT_EMULATED vec<bool, N> operator!(vec<T, N> a) {
  return lt_map(a, [](T v) { return !v; });
}

template <int N> LT_EMULATED bool any(vec<bool, N> v) {
  bool is = false;
  for (int i = 0; i < N; i++) is |= v[i];
  return is;
}
template <int N> LT_EMULATED bool all(vec<bool, N> v) {
  bool is = true;
  for (int i = 0; i < N; i++) is &= v[i];
  return is;
}
LT_EMULATED bool any(bool v) { return v; }
LT_EMULATED bool all(bool v) { return v; }

} // namespace metal

#define LT_VECTOR_NAMES(T)                                                                         \
  typedef metal::vec<T, 2> T##2;                                                                   \
  typedef metal::vec<T, 3> T##3;                                                                   \
  typedef metal::vec<T, 4> T##4;                                                                   \
  typedef metal::packed_vec<T, 2> packed_##T##2;                                                   \
  typedef metal::packed_vec<T, 3> packed_##T##3;                                                   \
  typedef metal::packed_vec<T, 4> packed_##T##4;
LT_VECTOR_NAMES(bool)
LT_VECTOR_NAMES(char)
LT_VECTOR_NAMES(uchar)
LT_VECTOR_NAMES(short)
LT_VECTOR_NAMES(ushort)
LT_VECTOR_NAMES(int)
LT_VECTOR_NAMES(uint)
LT_VECTOR_NAMES(long)
LT_VECTOR_NAMES(ulong)
LT_VECTOR_NAMES(half)
LT_VECTOR_NAMES(bfloat)
LT_VECTOR_NAMES(float)
#undef LT_VECTOR_NAMES

#endif
