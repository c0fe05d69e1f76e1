/* each.c: rows LT_EACH: a thread for each element of the result runs the body (each/each.h). */
#include "each/run.h"
#include "loops.h"
#include "opids.h"

static const char *const kernels[LT_OP_COUNT] = {
#define LT_EACH(name, ...) [LT_OP_##name] = "each" #name,
#include "ops.def"
};

bool lt_mps_each(lt_Call *c) {
  lt_EachRun run;
  if (c->out[0]->numel == 0) return true;
  if (!lt_mps_begin(c) || !lt_each_open(c, false, &run)) return false;
  struct {
    int64_t n;
    unsigned char args[LT_EACH_BYTES];
  } arguments = {.n = run.n};
  memcpy(arguments.args, run.args.bytes, run.size);
  lt_MpsLaunch l = {.file = "each",
                    .kernel = kernels[c->op],
                    .count = LT_EACH_INPUTS + LT_EACH_OUTPUTS,
                    .arguments = &arguments,
                    .size = sizeof arguments};
  for (int k = 0; k < run.nin; k++) {
    l.data[k] = lt_tensor_data(run.in[k]);
    l.constants[k] = (int32_t)run.in[k]->dtype;
  }
  for (int k = 0; k < c->nout; k++) {
    l.data[LT_EACH_INPUTS + k] = lt_tensor_data(c->out[k]);
    l.constants[LT_EACH_INPUTS + k] = (int32_t)c->out[k]->dtype;
  }
  l.constants[LT_EACH_INPUTS + LT_EACH_OUTPUTS] = run.compute == LT_int64;
  bool ok = lt_mps_launch_each_alone(c, l, run.n);
  lt_each_close(&run);
  return ok;
}
