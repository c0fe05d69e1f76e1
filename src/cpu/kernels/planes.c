/* planes.c: the table of loops over planes (planes.h) of one instruction set. */
#include "cpu/planes.h"
#include "cpu/rows.h"

#include <math.h>

#define T     float
#define FN(f) f##_f32
#include "planes_body.h"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "planes_body.h"

#define BOTH(name) .name##_f32 = name##_f32, .name##_f64 = name##_f64
extern const lt_PlaneKernels LT_FOR_ISA(lt_plane_kernels);
const lt_PlaneKernels LT_FOR_ISA(lt_plane_kernels) = {
    BOTH(max_values), BOTH(max_pool),          BOTH(max_pool_backward),
    BOTH(avg_pool),   BOTH(avg_pool_backward), BOTH(im2col),
    BOTH(col2im),     BOTH(resample),          BOTH(resample_backward),
};
