/* clamp.h: CLAMP of mathx.h for floats in vector loops, as a maximum and a minimum. Included after
 * mathx.h, with the type T and M(f), the math function f for it. */
#ifndef LT_CPU_CLAMP_H
#define LT_CPU_CLAMP_H

static inline __attribute__((always_inline)) T clamped(T x, T lo, T hi) {
  const T least = lo > x ? lo : x, most = hi < least ? hi : least;
  return M(nan_or)(lo, hi, most);
}
#undef CLAMP
#define CLAMP(x, lo, hi) clamped(x, lo, hi)

#endif
