/* fill.c: tensors generated from a few numbers: _arange, _linspace, _eye, empty. Each element is
 * computed in float64 (integers in int64) from its index alone and rounded once. */
#include "kernel_support.h"

#include <math.h>

/* Returns the tensor to write out's elements to, in float64 or int64; see lt_output_open. */
static lt_Tensor *wide(lt_Tensor *out) {
  return lt_output_open(out, lt_dtype_is_float(out->dtype) ? LT_float64 : LT_int64);
}

bool lt_cpu__arange(lt_Call *c) {
  lt_Tensor *out = c->out[0], *t = wide(out);
  if (!t) return false;
  if (t->dtype == LT_int64) {
    uint64_t start = (uint64_t)lt_scalar_to_int(c->arg[0].scalar),
             step = (uint64_t)lt_scalar_to_int(c->arg[2].scalar);
    int64_t *to = lt_tensor_data(t);
    for (int64_t i = 0, end; (end = lt_next_chunk(i, t->numel)) > i;)
      for (; i < end; i++) to[i] = (int64_t)(start + (uint64_t)i * step);
  } else {
    double start = lt_scalar_to_double(c->arg[0].scalar),
           step = lt_scalar_to_double(c->arg[2].scalar);
    double scale = isinf((double)t->numel * step) ? 2 : 1; /* avoids overflow, as in linspace */
    start /= scale;
    step /= scale;
    double *to = lt_tensor_data(t);
    for (int64_t i = 0, end; (end = lt_next_chunk(i, t->numel)) > i;)
      for (; i < end; i++) to[i] = scale * (start + (double)i * step);
  }
  return lt_output_close(out, t);
}

/* Computes each half from its own end, so that both ends are exact and the numbers are
 * symmetric. */
bool lt_cpu__linspace(lt_Call *c) {
  lt_Tensor *out = c->out[0], *t = lt_output_open(out, LT_float64);
  if (!t) return false;
  double start = lt_scalar_to_double(c->arg[0].scalar),
         stop = lt_scalar_to_double(c->arg[1].scalar);
  int64_t n = t->numel;
  double scale = isinf(stop - start) ? 2 : 1; /* the difference of the halves does not overflow */
  start /= scale;
  stop /= scale;
  double step = n > 1 ? (stop - start) / (double)(n - 1) : 0, *to = lt_tensor_data(t);
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    for (; i < end; i++)
      to[i] =
          scale * (i < (n + 1) / 2 ? start + (double)i * step : stop - (double)(n - 1 - i) * step);
  return lt_output_close(out, t);
}

/* Writes the identity matrix as bytes, so that any dtype has the same code. */
bool lt_cpu__eye(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  size_t size = lt_dtype_size(out->dtype);
  char one[16], *to = lt_tensor_data(out);
  if (!lt_scalar_store(lt_scalar_int(1), out->dtype, one)) return false;
  if (out->numel == 0) return true;
  size_t row = (size_t)out->shape[1] * size;
  for (int64_t i = 0; i < out->shape[0] && !lt_stopped(); i++) {
    memset(to + (size_t)i * row, 0, row);
    if (i < out->shape[1]) memcpy(to + (size_t)i * row + (size_t)i * size, one, size);
  }
  return true;
}

bool lt_cpu_empty(lt_Call *c) {
  (void)c; /* leaves the memory uninitialized */
  return true;
}
