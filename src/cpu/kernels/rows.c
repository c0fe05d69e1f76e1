/* rows.c: the table of row loops (rows.h) of one instruction set. */
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"
#include "cpu/kernels/maths.h"
#include "cpu/kernels/philox_blocks.h"

#define GROUP 16   /* a multiple of every vector's length */
#define TERMS 256  /* exponentials computed before they are summed; a multiple of GROUP */
#define FEW   256  /* shorter rows are processed together, */
#define SOME  1024 /* so many elements at a time */

/* Returns GROUP, of which the compiler must not know more than that it is a number. */
static inline __attribute__((unused)) int64_t a_group(void) {
  int64_t n = GROUP;
  __asm__("" : "+r"(n));
  return n;
}

enum { LT_NEAR = false }; /* see maths_float32.h: arguments are not limited to a range */

#define T          float
#define F          f32
#define M(g)       lt_m_##g##f
#define V          FV
#define V_N        FV_N
#define V_LOAD     FV_LOAD
#define V_ALL      FV_ALL
#define V_PEAK     FV_PEAK
#define LANES      F16
#define LANES_N    F16_N
#define LANES_ALL  F16_ALL
#define LANES_JOIN F16_JOIN
#define LOAD       F16_LOAD
#include "rows_body.h"
#undef T
#undef F
#undef M
#undef V
#undef V_N
#undef V_LOAD
#undef V_ALL
#undef V_PEAK
#undef LANES
#undef LANES_N
#undef LANES_ALL
#undef LANES_JOIN
#undef LOAD

#define T          double
#define F          f64
#define M(g)       lt_m_##g
#define V          DV
#define V_N        DV_N
#define V_LOAD     DV_LOAD
#define V_ALL      DV_ALL
#define V_PEAK     DV_PEAK
#define LANES      D8
#define LANES_N    D8_N
#define LANES_ALL  D8_ALL
#define LANES_JOIN D8_JOIN
#define LOAD       D8_LOAD
#include "rows_body.h"

#define BLOCK 1024 /* elements searched together before the first 0 is located */
#define FIND_ZERO(bits)                                                                            \
  static int64_t find_zero_##bits(const void *data, int64_t n, int64_t stride) {                   \
    const uint##bits##_t *x = data;                                                                \
    for (int64_t i = 0; i < n; i += BLOCK, x += BLOCK * stride) {                                  \
      int64_t m = n - i < BLOCK ? n - i : BLOCK;                                                   \
      uint##bits##_t zero = 0;                                                                     \
      if (stride == 1)                                                                             \
        for (int64_t k = 0; k < m; k++) zero |= x[k] == 0;                                         \
      else                                                                                         \
        for (int64_t k = 0; k < m; k++) zero |= x[k * stride] == 0;                                \
      for (int64_t k = 0; zero && k < m; k++)                                                      \
        if (x[k * stride] == 0) return i + k;                                                      \
    }                                                                                              \
    return -1;                                                                                     \
  }
FIND_ZERO(8)
FIND_ZERO(16)
FIND_ZERO(32)
FIND_ZERO(64)

#define ENTRY(name) .name = name
#define BOTH(name)  ENTRY(name##_f32), ENTRY(name##_f64)
extern const lt_RowKernels LT_FOR_ISA(lt_row_kernels);
const lt_RowKernels LT_FOR_ISA(lt_row_kernels) = {
    BOTH(softmax),
    BOTH(softmax_backward),
    BOTH(softmax_columns),
    BOTH(softmax_backward_columns),
    BOTH(log_sums),
    BOTH(cross_entropy_backward),
    BOTH(log_sums_columns),
    BOTH(cross_entropy_backward_columns),
    BOTH(layer_norm),
    BOTH(layer_norm_backward),
    BOTH(moments),
    BOTH(norm_sums),
    BOTH(affine),
    BOTH(affine_columns),
    BOTH(norm_gradient),
    BOTH(weighted),
    BOTH(dot),
    ENTRY(philox),
    .find_zero = {find_zero_8, find_zero_16, find_zero_32, find_zero_64},
};
