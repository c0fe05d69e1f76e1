/* fill.c: the ops _arange, _linspace and _eye. Each number is computed in float64 (integers in
 * int64) from its index alone and rounded once, as on the CPU. */
#include "cuda.h"
#include "fill.h"

#include <math.h>

bool lt_cuda__arange(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  if (!lt_cuda_begin(c)) return false;
  void *to = lt_tensor_data(out);
  lt_Scalar start = c->arg[0].scalar, step = c->arg[2].scalar;
  if (lt_dtype_is_float(out->dtype)) {
    double first = lt_scalar_to_double(start), each = lt_scalar_to_double(step);
    double scale = isinf((double)out->numel * each) ? 2 : 1; /* avoids overflow, as in linspace */
    return lt_cuda_launch_ok(lt_cuda_launch_arange_float(
        to, (int)out->dtype, out->numel, first / scale, each / scale, scale, lt_cuda_stream(c)));
  }
  return lt_cuda_launch_ok(lt_cuda_launch_arange_int(to, (int)out->dtype, out->numel,
                                                     lt_scalar_to_int(start),
                                                     lt_scalar_to_int(step), lt_cuda_stream(c)));
}

/* Both halves are computed from their own end, so that both ends are exact and the numbers are
 * symmetric. */
bool lt_cuda__linspace(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int64_t n = out->numel;
  if (n == 0) return true;
  if (!lt_cuda_begin(c)) return false;
  double start = lt_scalar_to_double(c->arg[0].scalar),
         stop = lt_scalar_to_double(c->arg[1].scalar);
  double scale = isinf(stop - start) ? 2 : 1; /* where stop - start overflows, half of it does not
                                               */
  start /= scale;
  stop /= scale;
  double step = n > 1 ? (stop - start) / (double)(n - 1) : 0;
  return lt_cuda_launch_ok(lt_cuda_launch_linspace(lt_tensor_data(out), (int)out->dtype, n, start,
                                                   stop, step, scale, lt_cuda_stream(c)));
}

bool lt_cuda__eye(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  return lt_cuda_begin(c) &&
         lt_cuda_launch_ok(lt_cuda_launch_eye(lt_tensor_data(out), (int)out->dtype, out->shape[0],
                                              out->shape[1], lt_cuda_stream(c)));
}
