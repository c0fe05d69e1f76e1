/* each.c: rows LT_EACH: a thread for each element of the result runs the body (each/each.h). */
#include "each.h"
#include "cuda.h"
#include "each/run.h"

bool lt_cuda_each(lt_Call *c) {
  lt_EachRun run;
  if (c->out[0]->numel == 0) return true;
  if (!lt_cuda_begin(c) || !lt_each_open(c, false, &run)) return false;
  lt_CudaEach e = {.n = run.n};
  for (int k = 0; k < run.nin; k++)
    e.in[k] = (lt_CudaElements){lt_tensor_data(run.in[k]), (int)run.in[k]->dtype};
  for (int k = 0; k < c->nout; k++)
    e.out[k] = (lt_CudaElements){lt_tensor_data(c->out[k]), (int)c->out[k]->dtype};
  bool ok = lt_cuda_launch_ok(
      lt_cuda_launch_each(c->op, (int)run.compute, run.args.bytes, &e, lt_cuda_stream(c)));
  lt_each_close(&run);
  return ok;
}
