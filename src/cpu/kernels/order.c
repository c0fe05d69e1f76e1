/* order.c: the table of loops over keys (order.h) of one instruction set. */
#include "cpu/order.h"
#include "cpu/rows.h"

#define BLOCK 64 /* keys that are compared together before the first match is located */

#define LOOPS(T, F)                                                                                \
  static int64_t below_##F(const T *keys, int64_t n, T limit) {                                    \
    int64_t i = 0;                                                                                 \
    for (; i + BLOCK <= n; i += BLOCK) {                                                           \
      T any = 0;                                                                                   \
      for (int64_t j = 0; j < BLOCK; j++) any |= (T)(keys[i + j] < limit);                         \
      if (any) break;                                                                              \
    }                                                                                              \
    while (i < n && keys[i] >= limit) i++;                                                         \
    return i;                                                                                      \
  }                                                                                                \
  static void least_##F(const T *keys, int64_t n, T *least) {                                      \
    T part[LT_ORDER_LANES];                                                                        \
    int64_t i = LT_ORDER_LANES;                                                                    \
    memcpy(part, keys, sizeof part);                                                               \
    for (; i + LT_ORDER_LANES <= n; i += LT_ORDER_LANES)                                           \
      for (int64_t j = 0; j < LT_ORDER_LANES; j++)                                                 \
        part[j] = keys[i + j] < part[j] ? keys[i + j] : part[j];                                   \
    for (int64_t j = 0; i + j < n; j++) part[j] = keys[i + j] < part[j] ? keys[i + j] : part[j];   \
    memcpy(least, part, sizeof part);                                                              \
  }
LOOPS(uint32_t, u32)
LOOPS(uint64_t, u64)

static void keys_f32(const float *x, int64_t n, uint32_t flip, uint32_t *keys) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float f = x[i] + 0.0f; /* -0 becomes 0 */
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t key = u ^ ((uint32_t)((int32_t)u >> 31) | (uint32_t)1 << 31);
    keys[i] = (f == f ? key : UINT32_MAX) ^ flip;
  }
}

extern const lt_OrderKernels LT_FOR_ISA(lt_order_kernels);
const lt_OrderKernels LT_FOR_ISA(lt_order_kernels) = {
    .below_u32 = below_u32,
    .least_u32 = least_u32,
    .below_u64 = below_u64,
    .least_u64 = least_u64,
    .keys_f32 = keys_f32,
};
