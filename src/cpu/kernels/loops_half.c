/* The vector loops of float16 and bfloat16 that only change the sign, which need no float32. */
#include "vector.h"
#include "opids.h"
#include "cpu/rows.h"

#define SIGN 0x8000u

#define LOOP(name, expression)                                                                     \
  static void name##_(int64_t n, void *out, const void *in, const void *y, const void *z,          \
                      const lt_Numbers *numbers) {                                                 \
    const uint16_t *p = in;                                                                        \
    uint16_t *o = out;                                                                             \
    (void)y, (void)z, (void)numbers;                                                               \
    _Pragma("omp simd")                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                              \
      const uint16_t x = p[i];                                                                     \
      o[i] = (uint16_t)(expression);                                                               \
    }                                                                                              \
  }
LOOP(neg, x ^ SIGN)
LOOP(abs, x & ~SIGN)

static const lt_VectorFn entries[LT_OP_COUNT] = {[LT_OP_neg] = neg_, [LT_OP_abs] = abs_};

extern const lt_Vectors LT_FOR_ISA(lt_vectors_half);
const lt_Vectors LT_FOR_ISA(lt_vectors_half) = {.op = entries};
