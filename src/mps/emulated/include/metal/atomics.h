/* atomics.h: atomic types of 32 bits. A kernel's threadgroups run on several system threads, so the
 * CPU's atomic instructions are used. */
#ifndef LT_EMULATED_METAL_ATOMICS_H
#define LT_EMULATED_METAL_ATOMICS_H

namespace metal {

enum memory_order { memory_order_relaxed };

template <class T> struct atomic {
  static_assert(sizeof(T) <= 4, "MSL 3.0 has no atomic types of 64 bits");
  T value;
};
template <class T> using _atomic = atomic<T>;

/* Atomically replaces *p by next(*p); returns the old value. */
template <class T, class F> LT_EMULATED T lt_update(volatile atomic<T> *p, F next) {
  T *at = (T *)&p->value, old, made;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do made = next(old);
  while (!__atomic_compare_exchange(at, &old, &made, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

template <class T> LT_EMULATED T atomic_load_explicit(const volatile atomic<T> *p, memory_order) {
  T v;
  __atomic_load((const T *)&p->value, &v, __ATOMIC_RELAXED);
  return v;
}
template <class T>
LT_EMULATED void atomic_store_explicit(volatile atomic<T> *p, typename lt_Same<T>::type v,
                                       memory_order) {
  __atomic_store((T *)&p->value, &v, __ATOMIC_RELAXED);
}
template <class T>
LT_EMULATED T atomic_exchange_explicit(volatile atomic<T> *p, typename lt_Same<T>::type v,
                                       memory_order) {
  return lt_update(p, [v](T) { return v; });
}
template <class T>
LT_EMULATED bool atomic_compare_exchange_weak_explicit(volatile atomic<T> *p, T *expected,
                                                       typename lt_Same<T>::type v, memory_order,
                                                       memory_order) {
  return __atomic_compare_exchange((T *)&p->value, expected, &v, true, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED);
}
#define LT_ATOMIC(name, e)                                                                         \
  template <class T>                                                                               \
  LT_EMULATED T atomic_fetch_##name##_explicit(volatile atomic<T> *p, typename lt_Same<T>::type v, \
                                               memory_order) {                                     \
    return lt_update(p, [v](T old) { return (T)(e); });                                            \
  }
LT_ATOMIC(add, old + v)
LT_ATOMIC(sub, old - v)
LT_ATOMIC(min, v < old ? v : old)
LT_ATOMIC(max, old < v ? v : old)
LT_ATOMIC(and, old &v)
LT_ATOMIC(or, old | v)
LT_ATOMIC(xor, old ^ v)
#undef LT_ATOMIC

} // namespace metal

typedef metal::atomic<int> atomic_int;
typedef metal::atomic<unsigned> atomic_uint;
typedef metal::atomic<bool> atomic_bool;
typedef metal::atomic<float> atomic_float;

#endif
