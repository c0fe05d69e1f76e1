/* fill.c: the ops _arange, _linspace and _eye. Each number is computed in float64 (integers in
 * int64) from its index alone and rounded once, as on the CPU. */
#include "fill.h"
#include "loops.h"

#include <math.h>

static uint64_t bits_of(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

static bool launch(lt_Call *c, const char *kernel, const lt_MpsSequence *s) {
  lt_Tensor *out = c->out[0];
  lt_MpsLaunch l = {.file = "fill",
                    .kernel = kernel,
                    .constants = {(int)out->dtype},
                    .data = {lt_tensor_data(out)},
                    .count = 1,
                    .arguments = s,
                    .size = sizeof *s};
  return lt_mps_launch_each(c, l, s->n);
}

bool lt_mps__arange(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  if (!lt_mps_begin(c)) return false;
  lt_Scalar start = c->arg[0].scalar, step = c->arg[2].scalar;
  lt_MpsSequence s = {.n = out->numel};
  if (lt_dtype_is_float(out->dtype)) {
    double first = lt_scalar_to_double(start), each = lt_scalar_to_double(step);
    double scale = isinf((double)out->numel * each) ? 2 : 1; /* avoids overflow, as in linspace */
    s.start = bits_of(first / scale);
    s.step = bits_of(each / scale);
    s.scale = bits_of(scale);
    return launch(c, "floats", &s);
  }
  s.start_int = lt_scalar_to_int(start);
  s.step_int = lt_scalar_to_int(step);
  return launch(c, "integers", &s);
}

/* Both halves are computed from their own end, so that both ends are exact and the numbers are
 * symmetric. */
bool lt_mps__linspace(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int64_t n = out->numel;
  if (n == 0) return true;
  if (!lt_mps_begin(c)) return false;
  double start = lt_scalar_to_double(c->arg[0].scalar),
         stop = lt_scalar_to_double(c->arg[1].scalar);
  double scale = isinf(stop - start) ? 2 : 1; /* the difference of the halves does not overflow */
  start /= scale;
  stop /= scale;
  lt_MpsSequence s = {.n = n,
                      .start = bits_of(start),
                      .step = bits_of(n > 1 ? (stop - start) / (double)(n - 1) : 0),
                      .stop = bits_of(stop),
                      .scale = bits_of(scale),
                      .both_ends = 1};
  return launch(c, "floats", &s);
}

bool lt_mps__eye(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  int64_t rows = out->shape[0], columns = out->shape[1];
  lt_MpsOnes ones = {.n = rows < columns ? rows : columns, .step = columns + 1};
  lt_MpsLaunch l = {.file = "fill",
                    .kernel = "ones",
                    .constants = {(int)out->dtype},
                    .data = {lt_tensor_data(out)},
                    .count = 1,
                    .arguments = &ones,
                    .size = sizeof ones};
  return lt_mps_begin(c) &&
         lt_mps_fill_zero(c->device.index, lt_tensor_data(out),
                          (size_t)out->numel * lt_dtype_size(out->dtype), c->stream) &&
         lt_mps_launch_each(c, l, ones.n);
}
