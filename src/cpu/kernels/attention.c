/* attention.c: the table of loops of attention (attention.h) of one instruction set. */
#include "cpu/attention.h"
#include "cpu/rows.h"
#include "half.h"
#include "cpu/kernels/maths.h"
#include "cpu/kernels/shuffle.h"
#include "cpu/kernels/tiles.h"

/* Rows of a product whose sums, two vectors each, are in registers. */
#if defined __AVX512F__ || defined __aarch64__
#define TILE_ROWS 8
#elif defined __AVX__
#define TILE_ROWS 6
#else
#define TILE_ROWS 4
#endif

#define TILE         LT_ATTENTION_TILE
#define ROUND(n, to) (((n) + (to)-1) / (to) * (to))
#define PLUS(x, y)   ((x) + (y))

/* Copy 4 x 4 elements, transposed. */
LT_LANES void transpose_four(const float *from, int64_t row, float *to, int64_t column) {
  LT_F4 v[4];
  for (int i = 0; i < 4; i++) memcpy(&v[i], from + i * row, sizeof v[i]);
  lt_transpose_4(v);
  for (int i = 0; i < 4; i++) memcpy(to + i * column, &v[i], sizeof v[i]);
}
LT_LANES void transpose_four_wide(const double *from, int64_t row, double *to, int64_t column) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) to[j * column + i] = from[i * row + j];
}

/* Copy n elements of a row of a matrix, times `scale`, to dense memory. */
#define READ(type, value)                                                                          \
  do {                                                                                             \
    const type *x = (const type *)m->data + row * m->row;                                          \
    if (m->column == 1)                                                                            \
      for (int64_t i = 0; i < n; i++) to[i] = value(x[i]) * scale;                                 \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) to[i] = value(x[i * m->column]) * scale;                     \
  } while (0)
static void read_f32(const lt_HeadMatrix *m, int64_t row, int64_t n, float scale, float *to) {
  if (m->dtype == LT_float32)
    READ(float, );
  else if (m->dtype == LT_bfloat16)
    READ(lt_bfloat16, lt_bfloat16_to_float);
  else
    READ(lt_half, lt_half_to_float);
}
static void read_f64(const lt_HeadMatrix *m, int64_t row, int64_t n, double scale, double *to) {
  READ(double, );
}

/* Returns e^x for x that is not much larger than 0, without denormal results. */
LT_LANES float exp_f32(float x) {
  float y = lt_exp2f(x * 1.44269504f, true);
  return x < -86.0f ? 0 : y;
}

#define T              float
#define F              f32
#define DTYPE          LT_float32
#define V              FV
#define VM             FM
#define V_N            FV_N
#define V_LOAD         FV_LOAD
#define V_MADD         FV_MADD
#define V_JOIN         LT_JOIN_FV
#define EXP            exp_f32
#define LOG            logf
#define TRANSPOSE_FOUR transpose_four
#include "attention_body.h"
#ifdef LT_HAS_TILES
#include "attention_tiles.h"
#endif
#undef T
#undef F
#undef DTYPE
#undef V
#undef VM
#undef V_N
#undef V_LOAD
#undef V_MADD
#undef V_JOIN
#undef EXP
#undef LOG
#undef TRANSPOSE_FOUR

#define T              double
#define F              f64
#define DTYPE          LT_float64
#define V              DV
#define VM             DM
#define V_N            DV_N
#define V_LOAD         DV_LOAD
#define V_MADD         DV_MADD
#define V_JOIN         LT_JOIN_DV
#define EXP            lt_m_exp
#define LOG            log
#define TRANSPOSE_FOUR transpose_four_wide
#include "attention_body.h"

#define ENTRY(name) .name = name
#define BOTH(name)  ENTRY(name##_f32), ENTRY(name##_f64)
extern const lt_AttentionKernels LT_FOR_ISA(lt_attention_kernels);
const lt_AttentionKernels LT_FOR_ISA(lt_attention_kernels) = {
    BOTH(forward),        BOTH(backward),     BOTH(forward_bytes), BOTH(backward_bytes),
#ifdef LT_HAS_TILES
    ENTRY(forward_tiles), ENTRY(tiles_bytes),
#endif
};
