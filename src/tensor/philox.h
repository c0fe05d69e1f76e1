/* philox.h: Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (Parallel
 * random numbers: as easy as 1, 2, 3; SC 2011). A block of four 32-bit words is a function of the
 * key (the seed) and the counter (the block's position in the sequence) alone.
 *
 * Invariant: which words an element of a call uses depends only on its index i, so every device and
 * every number of threads gives the same numbers (all indices are 0-based):
 *
 *   narrow  32 bits, for float32, float16, bfloat16 and bernoulli
 *           element i: word i % 4 of block i / 4
 *   wide    64 bits, for float64, integers, permutations, draws
 *           element i: words 2 (i % 2) (the low half) and 2 (i % 2) + 1 of block i / 2
 */
#ifndef LT_PHILOX_H
#define LT_PHILOX_H

#include <stdint.h>

#ifndef LT_PHILOX /* the functions' qualifiers; a device's compiler may define others */
#define LT_PHILOX static inline
#endif
#ifndef LT_PHILOX_SPACE /* the address space of local arrays, in languages that have one */
#define LT_PHILOX_SPACE
#endif

/* A part of a generator's sequence: blocks from `position` on (lt_generator_reserve). */
typedef struct lt_Philox {
  uint64_t seed, position;
} lt_Philox;

/* One round on the counter c0..c3 with the key k0, k1, which it advances. Its arguments are plain
 * variables, so that a loop over blocks can be vectorized. */
#define LT_PHILOX_ROUND(c0, c1, c2, c3, k0, k1)                                                    \
  do {                                                                                             \
    uint32_t h0_ = (uint32_t)(((uint64_t)(c0)*0xD2511F53u) >> 32), l0_ = (c0)*0xD2511F53u;         \
    uint32_t h1_ = (uint32_t)(((uint64_t)(c2)*0xCD9E8D57u) >> 32), l1_ = (c2)*0xCD9E8D57u;         \
    (c0) = h1_ ^ (c1) ^ (k0);                                                                      \
    (c2) = h0_ ^ (c3) ^ (k1);                                                                      \
    (c1) = l1_;                                                                                    \
    (c3) = l0_;                                                                                    \
    (k0) += 0x9E3779B9u;                                                                           \
    (k1) += 0xBB67AE85u;                                                                           \
  } while (0)
#define LT_PHILOX_5(...)                                                                           \
  LT_PHILOX_ROUND(__VA_ARGS__);                                                                    \
  LT_PHILOX_ROUND(__VA_ARGS__);                                                                    \
  LT_PHILOX_ROUND(__VA_ARGS__);                                                                    \
  LT_PHILOX_ROUND(__VA_ARGS__);                                                                    \
  LT_PHILOX_ROUND(__VA_ARGS__)

/* Computes the block of a counter: ten rounds. */
LT_PHILOX void lt_philox(const LT_PHILOX_SPACE uint32_t *counter,
                         const LT_PHILOX_SPACE uint32_t *key, LT_PHILOX_SPACE uint32_t *out) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0],
           k1 = key[1];
  LT_PHILOX_5(c0, c1, c2, c3, k0, k1);
  LT_PHILOX_5(c0, c1, c2, c3, k0, k1);
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Computes block `i` (0-based) of p. */
LT_PHILOX void lt_philox_block(lt_Philox p, int64_t i, LT_PHILOX_SPACE uint32_t *out) {
  uint64_t at = p.position + (uint64_t)i;
  const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), 0, 0};
  const uint32_t key[2] = {(uint32_t)p.seed, (uint32_t)(p.seed >> 32)};
  lt_philox(counter, key, out);
}

/* Returns the 64 bits of element i. */
LT_PHILOX uint64_t lt_philox_wide(lt_Philox p, int64_t i) {
  uint32_t w[4];
  lt_philox_block(p, i / 2, w);
  int k = (int)(i % 2) * 2;
  return (uint64_t)w[k + 1] << 32 | w[k];
}

/* Convert random bits to a fraction in [0, 1) of 24 or 53 bits, or to one in (0, 1], whose
 * logarithm is finite. */
LT_PHILOX float lt_fraction32(uint32_t w) { return (float)(w >> 8) * (1.0f / 16777216); }
LT_PHILOX float lt_positive32(uint32_t w) {
  return (float)w * (1 / 4294967296.0f) + 0.5f / 4294967296.0f;
}
#ifndef LT_NO_DOUBLE
LT_PHILOX double lt_fraction64(uint64_t w) { return (double)(w >> 11) * 0x1p-53; }
LT_PHILOX double lt_positive64(uint64_t w) { return (double)((w >> 11) + 1) * 0x1p-53; }
#endif

/* Converts random bits to an integer in 0..n-1 (n = 0: all 64 bits): the high half of w * n. The
 * bias is below n / 2^64. */
LT_PHILOX uint64_t lt_below(uint64_t w, uint64_t n) {
  if (n == 0) return w;
  uint64_t wl = (uint32_t)w, wh = w >> 32, nl = (uint32_t)n, nh = n >> 32;
  uint64_t low = wl * nl, a = wh * nl + (low >> 32), b = wl * nh + (uint32_t)a;
  return wh * nh + (a >> 32) + (b >> 32);
}

#endif
