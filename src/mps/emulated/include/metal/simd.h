/* simd.h: barriers and the functions of SIMD groups, which have 32 lanes, and of quads. All lanes
 * that have not returned must call them. */
#ifndef LT_EMULATED_METAL_SIMD_H
#define LT_EMULATED_METAL_SIMD_H

namespace metal {

enum class mem_flags {
  mem_none,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8
};
LT_EMULATED mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }
LT_EMULATED mem_flags operator&(mem_flags a, mem_flags b) { return (mem_flags)((int)a & (int)b); }

LT_EMULATED void threadgroup_barrier(mem_flags) { lt_emulated_barrier(0, LT_EMULATED_NO_VOTE); }
LT_EMULATED void simdgroup_barrier(mem_flags) { lt_emulated_warp(~0u, LT_EMULATED_SYNC, 0, 0, 32); }

/* Returns the number of the calling lane. */
LT_EMULATED unsigned lt_lane() {
  lt_EmulatedContext *c = lt_emulated_here();
  unsigned y = lt_emulated_get(&c->thread_index.y), z = lt_emulated_get(&c->thread_index.z);
  return (lt_emulated_get(&c->thread_index.x) + c->block_size.x * (y + c->block_size.y * z)) % 32;
}

template <class T> constexpr bool lt_is_shuffled() {
  return is_arithmetic<T>::value && sizeof(T) <= 4 && !is_same<T, bool>::value;
}

template <class T>
LT_EMULATED T lt_shuffle(lt_EmulatedWarp what, T value, int argument, int width) {
  static_assert(lt_is_shuffled<T>(), "the functions of SIMD groups take numbers of 8, 16 or 32 "
                                     "bits, and vectors of them");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = lt_emulated_warp(~0u, what, bits, argument, width);
  __builtin_memcpy((void *)&value, &bits, sizeof(T));
  return value;
}
template <class T, int N>
LT_EMULATED vec<T, N> lt_shuffle(lt_EmulatedWarp what, vec<T, N> value, int argument, int width) {
  for (int i = 0; i < N; i++) value[i] = lt_shuffle(what, value[i], argument, width);
  return value;
}

/* A lane's value in a reduction or a scan, which the lane that calls it last computes for all lanes
 * that have not returned. */
template <class T, class F, int width> struct lt_Joined : lt_EmulatedCall {
  T value;
  const F *join;

  static T &at(lt_EmulatedCall *const *lanes, unsigned lane) {
    return ((lt_Joined *)lanes[lane])->value;
  }
  /* Joins the lanes pair by pair: first those whose numbers differ in the last bit. */
  static void reduce(lt_EmulatedCall *const *lanes, unsigned set) {
    const F &f = *((lt_Joined *)lanes[__builtin_ctz(set)])->join;
    T v[32];
    unsigned has = set;
    for (unsigned i = 0; i < 32; i++)
      if (set >> i & 1) v[i] = at(lanes, i);
    for (unsigned step = 1; step < width; step *= 2)
      for (unsigned i = 0; i < 32; i += 2 * step) {
        if (!(has >> (i + step) & 1)) continue;
        v[i] = has >> i & 1 ? f(v[i], v[i + step]) : v[i + step];
        has |= 1u << i;
      }
    for (unsigned i = 0; i < 32; i++)
      if (set >> i & 1) at(lanes, i) = v[i / width * width];
  }
  static void scan(lt_EmulatedCall *const *lanes, unsigned set) {
    const F &f = *((lt_Joined *)lanes[__builtin_ctz(set)])->join;
    const T *before = nullptr;
    for (unsigned i = 0; i < 32; i++) {
      if (i % width == 0) before = nullptr;
      if (!(set >> i & 1)) continue;
      T &v = at(lanes, i);
      if (before) v = f(*before, v);
      before = &v;
    }
  }
};
template <class T> struct lt_Element { typedef T type; };
template <class T, int N> struct lt_Element<vec<T, N>> { typedef T type; };
template <int width, class T, class F> LT_EMULATED T lt_joined(T v, const F &f, bool is_scan) {
  static_assert(lt_is_shuffled<typename lt_Element<T>::type>(),
                "the functions of SIMD groups take numbers of 8, 16 or 32 bits, and vectors of "
                "them");
  lt_Joined<T, F, width> j;
  j.run = is_scan ? j.scan : j.reduce;
  j.value = v;
  j.join = &f;
  lt_emulated_warp(~0u, LT_EMULATED_CALL, (unsigned long long)(lt_EmulatedCall *)&j, 0, 32);
  return j.value;
}
template <int width, class T, class F> LT_EMULATED T lt_join(T v, const F &f) {
  return lt_joined<width>(v, f, false);
}
template <int width, class T, class F> LT_EMULATED T lt_scan(T v, const F &f) {
  return lt_joined<width>(v, f, true);
}

#define LT_SHUFFLES(group, width)                                                                  \
  template <class T> LT_EMULATED T group##_shuffle(T v, ushort lane) {                             \
    return lt_shuffle(LT_EMULATED_SHUFFLE, v, lane, width);                                        \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_broadcast(T v, ushort lane) {                           \
    return lt_shuffle(LT_EMULATED_SHUFFLE, v, lane, width);                                        \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_broadcast_first(T v) {                                  \
    return lt_shuffle(LT_EMULATED_SHUFFLE, v, 0, width);                                           \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_shuffle_up(T v, ushort by) {                            \
    return lt_shuffle(LT_EMULATED_UP, v, by, width);                                               \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_shuffle_down(T v, ushort by) {                          \
    return lt_shuffle(LT_EMULATED_DOWN, v, by, width);                                             \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_shuffle_xor(T v, ushort mask) {                         \
    return lt_shuffle(LT_EMULATED_XOR, v, mask, width);                                            \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_shuffle_rotate_up(T v, ushort by) {                     \
    return lt_shuffle(LT_EMULATED_SHUFFLE, v, (int)((lt_lane() + width - by % width) % width),     \
                      width);                                                                      \
  }                                                                                                \
  template <class T> LT_EMULATED T group##_shuffle_rotate_down(T v, ushort by) {                   \
    return lt_shuffle(LT_EMULATED_SHUFFLE, v, (int)((lt_lane() + by) % width), width);             \
  }                                                                                                \
  template <class T>                                                                               \
  LT_EMULATED T group##_shuffle_and_fill_up(T v, T fill, ushort by, ushort modulo = width) {       \
    unsigned lane = lt_lane() % width;                                                             \
    T in = lt_shuffle(LT_EMULATED_UP, v, by, modulo);                                              \
    T out =                                                                                        \
        lt_shuffle(LT_EMULATED_SHUFFLE, fill,                                                      \
                   (int)(lane / modulo * modulo + (lane % modulo + modulo - by) % modulo), width); \
    return lane % modulo < by ? out : in;                                                          \
  }                                                                                                \
  template <class T>                                                                               \
  LT_EMULATED T group##_shuffle_and_fill_down(T v, T fill, ushort by, ushort modulo = width) {     \
    unsigned lane = lt_lane() % width;                                                             \
    T in = lt_shuffle(LT_EMULATED_DOWN, v, by, modulo);                                            \
    T out = lt_shuffle(LT_EMULATED_SHUFFLE, fill,                                                  \
                       (int)(lane / modulo * modulo + (lane % modulo + by) % modulo), width);      \
    return lane % modulo + by >= modulo ? out : in;                                                \
  }                                                                                                \
  LT_GROUP_REDUCTION(group##_sum, width, a + b)                                                    \
  LT_GROUP_REDUCTION(group##_product, width, a *b)                                                 \
  LT_GROUP_REDUCTION(group##_min, width, min(a, b))                                                \
  LT_GROUP_REDUCTION(group##_max, width, max(a, b))                                                \
  LT_GROUP_REDUCTION(group##_and, width, a &b)                                                     \
  LT_GROUP_REDUCTION(group##_or, width, a | b)                                                     \
  LT_GROUP_REDUCTION(group##_xor, width, a ^ b)                                                    \
  LT_GROUP_SCAN(group##_prefix, sum, width, a + b, 0)                                              \
  LT_GROUP_SCAN(group##_prefix, product, width, a *b, 1)

#define LT_GROUP_REDUCTION(name, width, e)                                                         \
  template <class T> LT_EMULATED T name(T v) {                                                     \
    return lt_join<width>(v, [](T a, T b) { return (T)(e); });                                     \
  }
#define LT_GROUP_SCAN(prefix, name, width, e, identity)                                            \
  template <class T> LT_EMULATED T prefix##_inclusive_##name(T v) {                                \
    return lt_scan<width>(v, [](T a, T b) { return (T)(e); });                                     \
  }                                                                                                \
  template <class T> LT_EMULATED T prefix##_exclusive_##name(T v) {                                \
    T before = lt_shuffle(LT_EMULATED_UP, prefix##_inclusive_##name(v), 1, width);                 \
    return lt_lane() % width == 0 ? (T)(identity) : before;                                        \
  }
LT_SHUFFLES(simd, 32)
LT_SHUFFLES(quad, 4)
#undef LT_SHUFFLES
#undef LT_GROUP_REDUCTION
#undef LT_GROUP_SCAN

/* A bit for each lane. */
struct simd_vote {
  typedef ulong vote_t;
  vote_t bits;
  LT_EMULATED explicit simd_vote(vote_t v = 0) : bits(v) {}
  LT_EMULATED explicit operator vote_t() const { return bits; }
  LT_EMULATED bool any() const { return bits != 0; }
  LT_EMULATED bool all() const { return (uint)bits == ~0u; }
};
LT_EMULATED simd_vote simd_ballot(bool p) {
  return simd_vote(lt_emulated_warp(~0u, LT_EMULATED_BALLOT, p, 0, 32));
}
LT_EMULATED simd_vote simd_active_threads_mask() { return simd_ballot(true); }
LT_EMULATED bool simd_any(bool p) { return (ulong)simd_ballot(p) != 0; }
LT_EMULATED bool simd_all(bool p) { return (ulong)simd_ballot(!p) == 0; }
LT_EMULATED bool simd_is_first() { return lt_lane() == 0; }
LT_EMULATED bool quad_any(bool p) { return ((ulong)simd_ballot(p) >> (lt_lane() & ~3u) & 15) != 0; }
LT_EMULATED bool quad_all(bool p) {
  return ((ulong)simd_ballot(!p) >> (lt_lane() & ~3u) & 15) == 0;
}
LT_EMULATED bool quad_is_first() { return lt_lane() % 4 == 0; }

} // namespace metal

#endif
