/* attention.h: attention in tiles: the work of one thread on queries or keys of one head.
 *
 * Scores are computed for LT_ATTENTION_TILE queries and as many keys at a time, so that they stay
 * in the cache, and no matrix of all scores exists. The softmax is computed online (Milakov and
 * Gimelshein 2018): sums of exponentials are relative to the largest score so far, and are scaled
 * when that grows. The gradients compute the scores again, tile by tile (Dao 2022, 2023).
 *
 * Tiles are transposed: a row belongs to a key, and the vectors' lanes are queries. So maxima and
 * sums over keys need no operation across lanes, and elements of key and value, which the products
 * broadcast, are read as they lie in memory. */
#ifndef LT_CPU_ATTENTION_H
#define LT_CPU_ATTENTION_H

#include "kernel.h"

#define LT_ATTENTION_TILE 64 /* queries, and keys, that are processed together */

/* A matrix of one head; strides in elements. */
typedef struct lt_HeadMatrix {
  const void *data;
  lt_Dtype dtype; /* of a half dtype, or that of the kernel */
  int64_t row, column;
} lt_HeadMatrix;

/* The matrices of one head. Results are dense. */
typedef struct lt_Head {
  lt_HeadMatrix q, k, v; /* {queries, size}, {keys, size}, {keys, value_size} */
  lt_HeadMatrix mask;    /* {queries, keys}, of bool or the kernel's dtype; data NULL: none */
  bool causal;           /* query i has the keys 0..i */
  int64_t queries, keys, size, value_size;
  double scale;
  void *out; /* {queries, value_size} */
  void *lse; /* {queries}: log(sum(exp(scores))) */
  /* Backward: */
  lt_HeadMatrix grad, result; /* the gradient of the result, and the result */
  void *dq, *dk, *dv;
  void *scratch; /* of forward_bytes or backward_bytes, aligned to 64 bytes */
} lt_Head;

#define LT_ATTENTION(F)                                                                            \
  /* Computes queries from .. from + n - 1, n <= LT_ATTENTION_TILE. */                             \
  void (*forward_##F)(const lt_Head *h, int64_t from, int64_t n);                                  \
  /* Computes the part of dq from keys from .. to - 1, and adds to dk and dv of these keys. */     \
  void (*backward_##F)(const lt_Head *h, int64_t from, int64_t to);                                \
  size_t (*forward_bytes_##F)(const lt_Head *h);                                                   \
  size_t (*backward_bytes_##F)(const lt_Head *h);

typedef struct lt_AttentionKernels {
  LT_ATTENTION(f32)
  LT_ATTENTION(f64)
  /* The same as forward_f32 for bfloat16, with dense rows of multiples of 32 elements, by tile
   * registers; NULL where the compiler knows none. */
  void (*forward_tiles)(const lt_Head *h, int64_t from, int64_t n);
  size_t (*tiles_bytes)(const lt_Head *h);
} lt_AttentionKernels;

/* Returns the loops for this CPU. */
const lt_AttentionKernels *lt_attention_kernels(void);

#endif
