/* planes.c: the table of loops over planes (planes.h) of one instruction set. */
#include "cpu/moves.h"
#include "cpu/planes.h"
#include "cpu/rows.h"

#include <math.h>

#define LT_EACH_OF_T    LT_EACH_FUNCTION
#define LT_EACH_NAME(f) FN(f)
#define LT_EACH_CALL(f) FN(f)
#define IS_NAN(v)       ((v) != (v))

#define T        float
#define FN(f)    f##_f32
#define FLOOR(v) floorf(v)
#include "each/grid_places.h"
#include "each/resample_weights.h"
#include "planes_body.h"
#include "resample_body.h"
#include "grid_body.h"
#undef T
#undef FN
#undef FLOOR
#define T        double
#define FN(f)    f##_f64
#define FLOOR(v) floor(v)
#include "each/grid_places.h"
#include "each/resample_weights.h"
#include "planes_body.h"
#include "resample_body.h"
#include "grid_body.h"

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
