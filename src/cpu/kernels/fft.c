/* fft.c: the loops of Fourier transforms (fft.h) for one instruction set. */
#include "cpu/fft.h"
#include "cpu/rows.h"

#define CHUNK 16 /* numbers of a row that a generic pass computes at once */

#define T float
#define F f32
#include "fft_body.h"
#undef T
#undef F

#define T double
#define F f64
#include "fft_body.h"
#undef T
#undef F

#define LOOPS(F)                                                                                   \
  .pass_##F = pass_##F, .gather_##F = gather_##F, .scatter_##F = scatter_##F,                      \
  .multiply_##F = multiply_##F, .twist_##F = twist_##F, .untangle_##F = untangle_##F,              \
  .tangle_##F = tangle_##F

extern const lt_FftLoops LT_FOR_ISA(lt_fft_loops);
const lt_FftLoops LT_FOR_ISA(lt_fft_loops) = {LOOPS(f32), LOOPS(f64)};
