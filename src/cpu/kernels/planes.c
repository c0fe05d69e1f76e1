/* planes.c: the table of loops over planes (planes.h) of one instruction set. */
#include "cpu/moves.h"
#include "cpu/planes.h"
#include "cpu/rows.h"

#include <math.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define LT_EACH_OF_T    LT_EACH_FUNCTION
#define LT_EACH_NAME(f) FN(f)
#define LT_EACH_CALL(f) FN(f)
#define IS_NAN(v)       ((v) != (v))

/* Copies the first elements source[place[0]], source[place[1]] ..., 0 for a negative place, and
 * returns their number. GCC puts vectors together from numbers, which is as fast for double. */
#ifdef __AVX2__
static inline int64_t gather_f32(const float *source, const int32_t *place, int64_t n, float *v) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256i at = _mm256_loadu_si256((const void *)(place + i)), inside = ~at;
    __m256 some = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), source, at, (__m256)inside, 4);
    _mm256_storeu_ps(v + i, some);
  }
  return i;
}
#else
#define gather_f32(source, place, n, v) 0
#endif
#define gather_f64(source, place, n, v) 0

#define T        float
#define FN(f)    f##_f32
#define FLOOR(v) floorf(v)
#include "each/grid_places.h"
#include "planes_body.h"
#undef T
#undef FN
#undef FLOOR
#define T        double
#define FN(f)    f##_f64
#define FLOOR(v) floor(v)
#include "each/grid_places.h"
#include "planes_body.h"

#define BOTH(name) .name##_f32 = name##_f32, .name##_f64 = name##_f64
extern const lt_PlaneKernels LT_FOR_ISA(lt_plane_kernels);
const lt_PlaneKernels LT_FOR_ISA(lt_plane_kernels) = {
    BOTH(max_values),
    BOTH(max_pool),
    BOTH(max_pool_backward),
    BOTH(avg_pool),
    BOTH(avg_pool_backward),
    BOTH(im2col),
    BOTH(col2im),
    BOTH(resample),
    BOTH(resample_backward),
    BOTH(pad),
    BOTH(grid_sample),
    BOTH(grid_sample_backward),
    BOTH(grid_sample_grid_backward),
};
