/* reduce.c: reductions: accel/reduce.c describes them, reduce.cu and reduce_line.cu run them. */
#include "reduce.h"
#include "cuda.h"

static bool launch(const lt_Call *c, const lt_AccelReduce *r) {
  return lt_cuda_launch_ok(lt_cuda_launch_reduce(r, lt_cuda_stream(c)));
}

bool lt_cuda_reduce(lt_Call *c) { return lt_cuda_begin(c) && lt_accel_reduce(c, launch); }
bool lt_cuda__norm(lt_Call *c) { return lt_cuda_begin(c) && lt_accel_norm(c, launch); }
