/* philox_blocks.h: many blocks of Philox's sequence (philox.h). With AVX2 or AVX-512, each lane of
 * 64 bits holds a word of one block, whose upper half is ignored: these instruction sets multiply
 * such lanes, so no word has to be moved between the ten rounds. */
#ifndef LT_CPU_PHILOX_BLOCKS_H
#define LT_CPU_PHILOX_BLOCKS_H

#include "philox.h"
#include "cpu/kernels/shuffle.h"

#if defined __AVX512F__
#include <immintrin.h>
#define WORDS_TIMES(a, b) ((UV)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define BLOCKS            8
#define FIRST_PAIRS       0, 8, 1, 9, 2, 10, 3, 11
#define LAST_PAIRS        4, 12, 5, 13, 6, 14, 7, 15
#elif defined __AVX2__
#include <immintrin.h>
#define WORDS_TIMES(a, b) ((UV)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define BLOCKS            4
#define FIRST_PAIRS       0, 4, 1, 5
#define LAST_PAIRS        2, 6, 3, 7
#endif

#ifdef WORDS_TIMES
typedef uint64_t UV __attribute__((vector_size(8 * BLOCKS)));

/* Writes BLOCKS blocks from position `at` on. */
static inline void philox_vector(uint64_t seed, uint64_t at, uint32_t *words) {
  UV c0, c1, c2 = {0}, c3 = {0}, zero = {0};
  for (int i = 0; i < BLOCKS; i++) c0[i] = at + (uint64_t)i;
  c1 = c0 >> 32;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    UV p0 = WORDS_TIMES(c0, zero + 0xD2511F53u), p2 = WORDS_TIMES(c2, zero + 0xCD9E8D57u);
    c0 = p2 >> 32 ^ c1 ^ (zero + k0);
    c2 = p0 >> 32 ^ c3 ^ (zero + k1);
    c1 = p2;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  UV w01 = (c0 & 0xffffffffu) | c1 << 32, w23 = (c2 & 0xffffffffu) | c3 << 32;
  UV first = LT_SHUFFLE(UV, w01, w23, FIRST_PAIRS);
  UV last = LT_SHUFFLE(UV, w01, w23, LAST_PAIRS);
  memcpy(words, &first, sizeof first);
  memcpy(words + 2 * BLOCKS, &last, sizeof last);
}
#endif

static void philox(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *words) {
  int64_t done = 0;
#ifdef WORDS_TIMES
  for (; done + 2 * BLOCKS <= blocks; done += 2 * BLOCKS) { /* two at once hide latencies */
    philox_vector(seed, position + (uint64_t)done, words + 4 * done);
    philox_vector(seed, position + (uint64_t)done + BLOCKS, words + 4 * (done + BLOCKS));
  }
#endif
#pragma omp simd
  for (int64_t i = done; i < blocks; i++) {
    uint64_t at = position + (uint64_t)i;
    uint32_t c0 = (uint32_t)at, c1 = (uint32_t)(at >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    LT_PHILOX_5(c0, c1, c2, c3, k0, k1);
    LT_PHILOX_5(c0, c1, c2, c3, k0, k1);
    words[4 * i] = c0, words[4 * i + 1] = c1, words[4 * i + 2] = c2, words[4 * i + 3] = c3;
  }
}

#endif
