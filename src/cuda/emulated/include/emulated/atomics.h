/* atomics.h: atomic operations of kernels, by the CPU's atomic instructions, since blocks run on
 * several system threads. The types are those that CUDA has an overload for, so that what compiles
 * here compiles there. */
#ifndef LT_EMULATED_ATOMICS_H
#define LT_EMULATED_ATOMICS_H

#include "device.h"

/* Atomically replaces *p by next(*p); returns the old value. */
template <class T, class F> LT_EMULATED T lt_emulated_update(T *p, F next) {
  T old, made;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do made = next(old);
  while (!__atomic_compare_exchange(p, &old, &made, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

#define LT_EMULATED_ATOMIC(name, T, call)                                                          \
  LT_EMULATED T name(T *p, T v) { return call; }
#define LT_EMULATED_ATOMIC_UPDATE(name, T, next)                                                   \
  LT_EMULATED T name(T *p, T v) {                                                                  \
    return lt_emulated_update(p, [v](T old) { return (void)old, (T)(next); });                     \
  }
#define LT_EMULATED_ATOMIC_3(of, name, e)                                                          \
  of(name, int, e) of(name, unsigned, e) of(name, unsigned long long, e)
#define LT_EMULATED_ATOMIC_4(of, name, e) LT_EMULATED_ATOMIC_3(of, name, e) of(name, long long, e)

LT_EMULATED_ATOMIC_3(LT_EMULATED_ATOMIC, atomicAdd, __atomic_fetch_add(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC_UPDATE(atomicAdd, float, old + v)
LT_EMULATED_ATOMIC_UPDATE(atomicAdd, double, old + v)
LT_EMULATED_ATOMIC(atomicSub, int, __atomic_fetch_sub(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC(atomicSub, unsigned, __atomic_fetch_sub(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC_4(LT_EMULATED_ATOMIC_UPDATE, atomicMin, old < v ? old : v)
LT_EMULATED_ATOMIC_4(LT_EMULATED_ATOMIC_UPDATE, atomicMax, old > v ? old : v)
LT_EMULATED_ATOMIC_3(LT_EMULATED_ATOMIC, atomicAnd, __atomic_fetch_and(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC_3(LT_EMULATED_ATOMIC, atomicOr, __atomic_fetch_or(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC_3(LT_EMULATED_ATOMIC, atomicXor, __atomic_fetch_xor(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC_3(LT_EMULATED_ATOMIC, atomicExch, __atomic_exchange_n(p, v, __ATOMIC_RELAXED))
LT_EMULATED_ATOMIC_UPDATE(atomicExch, float, v)
LT_EMULATED_ATOMIC_UPDATE(atomicInc, unsigned, old >= v ? 0u : old + 1)
LT_EMULATED_ATOMIC_UPDATE(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)

#define LT_EMULATED_CAS(T)                                                                         \
  LT_EMULATED T atomicCAS(T *p, T compare, T v) {                                                  \
    __atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
    return compare;                                                                                \
  }
LT_EMULATED_CAS(int)
LT_EMULATED_CAS(unsigned)
LT_EMULATED_CAS(unsigned long long)
LT_EMULATED_CAS(unsigned short)

/* Atomics for a block or for the whole system: here all have the same scope. */
#define LT_EMULATED_SCOPES(name)                                                                   \
  template <class T, class... A> LT_EMULATED T name##_block(T *p, A... values) {                   \
    return name(p, values...);                                                                     \
  }                                                                                                \
  template <class T, class... A> LT_EMULATED T name##_system(T *p, A... values) {                  \
    return name(p, values...);                                                                     \
  }
LT_EMULATED_SCOPES(atomicAdd)
LT_EMULATED_SCOPES(atomicMin)
LT_EMULATED_SCOPES(atomicMax)
LT_EMULATED_SCOPES(atomicAnd)
LT_EMULATED_SCOPES(atomicOr)
LT_EMULATED_SCOPES(atomicXor)
LT_EMULATED_SCOPES(atomicExch)
LT_EMULATED_SCOPES(atomicCAS)

#undef LT_EMULATED_SCOPES
#undef LT_EMULATED_ATOMIC
#undef LT_EMULATED_ATOMIC_UPDATE
#undef LT_EMULATED_ATOMIC_3
#undef LT_EMULATED_ATOMIC_4
#undef LT_EMULATED_CAS

#endif
