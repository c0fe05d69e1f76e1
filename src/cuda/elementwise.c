/* elementwise.c: chooses the kernel of an elementwise loop (elementwise.h) and fills its struct.
 *
 * An operand in host memory is a single number: it is read here and passed with the launch.
 */
#include "cuda.h"
#include "elementwise.h"
#include "opids.h"

#include <float.h>

bool lt_cuda_elementwise(const lt_Loop *loop);

/* ---- numbers --------------------------------------------------------------------------------- */

/* Converts a scalar to the type that is computed in, as the CPU's loops do. */
static lt_CudaNumber number(lt_Dtype compute, lt_Scalar s) {
  switch (compute) {
  case LT_float32:
    return (lt_CudaNumber){.float32 = s.kind >= LT_FLOATING ? (float)s.f : (float)s.i};
  case LT_float64:
    return (lt_CudaNumber){.float64 = lt_scalar_to_double(s)};
  case LT_complex64:
    return (lt_CudaNumber){.complex64 = {(float)lt_scalar_to_double(s), (float)s.im}};
  case LT_complex128:
    return (lt_CudaNumber){.complex128 = {lt_scalar_to_double(s), s.im}};
  case LT_int64:
    return (lt_CudaNumber){.int64 = lt_scalar_to_int(s)};
  case LT_int32: {
    int64_t v = lt_scalar_to_int(s);
    if (s.kind == LT_FLOATING) v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
    return (lt_CudaNumber){.int32 = (int32_t)v};
  }
  default:
    return (lt_CudaNumber){.bool_ = lt_scalar_to_double(s) != 0};
  }
}

/* Returns the largest finite number of a result: ops that limit their values use it. */
static lt_CudaNumber largest(lt_Dtype compute, lt_Dtype result) {
  if (compute == LT_float64)
    return (lt_CudaNumber){.float64 =
                               lt_dtype_is_float(result) ? lt_dtype_largest(result) : DBL_MAX};
  return (lt_CudaNumber){.float32 = result == LT_float16    ? 65504.0f
                                    : result == LT_bfloat16 ? 0x1.FEp127f
                                                            : FLT_MAX};
}

static lt_CudaNumber host_value(const lt_Operand *o, lt_Dtype compute) {
  return number(compute, lt_scalar_load(o->dtype, o->data));
}

/* ---- copies and fills ------------------------------------------------------------------------ */

/* Returns the loop's shape and the strides of its first operands, converted from bytes to
 * elements. */
static lt_CudaShape shape_of(const lt_Loop *l, int operands) {
  lt_CudaShape s = {.ndim = l->ndim};
  memcpy(s.shape, l->shape, sizeof *s.shape * (size_t)l->ndim);
  for (int k = 0; k < operands; k++) {
    int64_t size = (int64_t)lt_dtype_size(l->operand[k].dtype);
    for (int d = 0; d < l->ndim; d++) s.strides[k][d] = l->operand[k].strides[d] / size;
  }
  return s;
}

/* Launches a copy, or, with `from` NULL, a fill with the bytes of `element`. */
static bool copy_elements(const lt_Loop *l, const void *from, const void *element,
                          cudaStream_t stream) {
  lt_CudaMove m = {.to = l->operand[0].data,
                   .from = from,
                   .size = (int)lt_dtype_size(l->operand[0].dtype),
                   .numel = l->numel};
  if (!from) memcpy(m.bits, element, (size_t)m.size); /* devices with CUDA are little-endian */
  lt_CudaShape s = shape_of(l, from ? 2 : 1);
  return lt_cuda_launch_ok(lt_cuda_launch_move(&m, &s, stream));
}

static bool fill(const lt_Loop *l, cudaStream_t stream) {
  _Alignas(LT_MAX_ELEMENT) char element[LT_MAX_ELEMENT] = {0};
  return lt_scalar_store(l->a, l->operand[0].dtype, element) &&
         copy_elements(l, NULL, element, stream);
}

/* ---- dense rows ------------------------------------------------------------------------------ */

/* Returns true for the dtypes that elementwise_rows.cu supports. */
static bool is_rows_dtype(lt_Dtype d) {
  return d == LT_bool || d == LT_uint8 || (lt_dtype_is_float(d) && d != LT_float64);
}

/* Returns true when groups of this operand can be loaded at once, wherever they begin in a row. */
static bool aligned(const lt_Loop *l, int k) {
  const lt_Operand *o = &l->operand[k];
  int64_t size = (int64_t)lt_dtype_size(o->dtype);
  int64_t bytes = size * LT_CUDA_GROUP < 16 ? size * LT_CUDA_GROUP : 16;
  if (o->host || o->strides[l->ndim - 1] == 0) return true;
  bool fits = (uintptr_t)o->data % (uintptr_t)bytes == 0;
  for (int d = 0; d < l->ndim - 1; d++) fits &= o->strides[d] % bytes == 0;
  return fits;
}

/* Fills r and returns true when the loop is one that elementwise_rows.cu supports. */
static bool rows_of(const lt_Loop *l, int inputs, lt_CudaRows *r) {
  int last = l->ndim - 1;
  if (l->layout == LT_LAYOUT_GENERAL || last > LT_CUDA_OUTER_DIMS) return false;
  if (last > 0 && l->shape[last] % LT_CUDA_GROUP) return false;
  *r = (lt_CudaRows){.numel = l->numel, .length = l->shape[last], .outer = last, .aligned = true};
  for (int k = 0; k <= inputs; k++) {
    const lt_Operand *o = &l->operand[k];
    int64_t size = (int64_t)lt_dtype_size(o->dtype);
    bool single = k > 0 && (o->host || (o->strides[last] == 0 && l->numel > 1));
    if (!o->host && !is_rows_dtype(o->dtype)) return false;
    r->data[k] = o->data;
    r->dtype[k] = (uint8_t)o->dtype;
    r->source[k] = (uint8_t)(o->host ? LT_CUDA_VALUE : single ? LT_CUDA_SINGLE : LT_CUDA_DENSE);
    r->aligned &= aligned(l, k);
    if (o->host) r->value[k] = host_value(o, LT_float32).float32;
    for (int d = 0; d < last; d++) r->strides[k][d] = o->host ? 0 : o->strides[d] / size;
  }
  for (int d = 0; d < last; d++) r->shape[d] = l->shape[d];
  r->a = number(LT_float32, l->a).float32;
  r->b = number(LT_float32, l->b).float32;
  r->limit = largest(LT_float32, l->operand[0].dtype).float32;
  return last == 0 || r->aligned;
}

/* Fills f and returns true when these rows are contiguous float32, as elementwise_flat.cu
 * requires. */
static bool flat_of(const lt_CudaRows *r, lt_OpId op, int inputs, lt_CudaFlat *f) {
  bool test = lt_op_is_test(op) && r->dtype[0] == LT_bool;
  if (r->outer || (r->dtype[0] != LT_float32 && !test)) return false;
  *f = (lt_CudaFlat){.numel = r->numel,
                     .out = r->data[0],
                     .a = r->a,
                     .b = r->b,
                     .limit = r->limit,
                     .gives_bool = test};
  bool fits = (uintptr_t)r->data[0] % (test ? 4 : 16) == 0;
  for (int k = 0; k < inputs; k++) {
    f->in[k] = r->data[k + 1];
    f->source[k] = r->source[k + 1];
    f->value[k] = r->value[k + 1];
    fits &= f->source[k] == LT_CUDA_VALUE || r->dtype[k + 1] == LT_float32;
    fits &= f->source[k] != LT_CUDA_DENSE || (uintptr_t)f->in[k] % 16 == 0;
  }
  return fits;
}

static cudaError_t launch_rows(const lt_CudaRows *rows, lt_OpId op, int inputs,
                               cudaStream_t stream) {
  lt_CudaFlat flat;
  return flat_of(rows, op, inputs, &flat) ? lt_cuda_launch_elementwise_flat((int)op, &flat, stream)
                                          : lt_cuda_launch_elementwise_rows((int)op, rows, stream);
}

/* ---- any loop -------------------------------------------------------------------------------- */

/* Launches the kernel for any dtypes and layout, by the type that is computed in. */
static cudaError_t launch_any(const lt_Loop *l, lt_OpId op, int inputs, lt_Dtype compute,
                              cudaStream_t stream) {
  lt_CudaOperands o = {.op = (int)op, .inputs = inputs, .numel = l->numel};
  lt_CudaShape s = shape_of(l, inputs + 1);
  for (int k = 0; k <= inputs; k++) {
    const lt_Operand *from = &l->operand[k];
    o.data[k] = from->host ? NULL : from->data;
    o.dtype[k] = (int)from->dtype;
    if (from->host) o.value[k] = host_value(from, compute);
  }
  o.a = number(compute, l->a);
  o.b = number(compute, l->b);
  o.limit = largest(compute, l->operand[0].dtype);
  if (lt_op_is_wide(op)) return lt_cuda_launch_elementwise_special(&o, &s, stream);
  switch (compute) {
  case LT_float32:
    return lt_cuda_launch_elementwise_float32(&o, &s, stream);
  case LT_float64:
    return lt_cuda_launch_elementwise_float64(&o, &s, stream);
  case LT_int32:
    return lt_cuda_launch_elementwise_int32(&o, &s, stream);
  case LT_int64:
    return lt_cuda_launch_elementwise_int64(&o, &s, stream);
  case LT_complex64:
    return lt_cuda_launch_elementwise_complex64(&o, &s, stream);
  case LT_complex128:
    return lt_cuda_launch_elementwise_complex128(&o, &s, stream);
  default:
    return lt_cuda_launch_elementwise_bool(&o, &s, stream);
  }
}

/* Returns the op to run: x^2 is so common that the check of the exponent pays. The result is the
 * same: see lt_pow. */
static lt_OpId simplified_op(const lt_Loop *l) {
  const lt_Operand *exponent = &l->operand[2];
  if (l->op != LT_OP_pow || !exponent->host) return l->op;
  lt_Scalar s = lt_scalar_load(exponent->dtype, exponent->data);
  return lt_scalar_to_double(s) == 2 && s.im == 0 ? LT_OP_square : l->op;
}

bool lt_cuda_elementwise(const lt_Loop *l) {
  if (l->layout == LT_LAYOUT_EMPTY) return true;
  if (!lt_cuda_select(l->device.index) || !lt_cuda_fault_check(l->device.index)) return false;
  cudaStream_t stream = (cudaStream_t)lt_accel_native(l->stream);
  if (l->op == LT_OP_fill) return fill(l, stream);
  const lt_Operand *from = &l->operand[1];
  bool copy = l->op == LT_OP_copy;
  if (copy && !from->host && from->dtype == l->operand[0].dtype)
    return copy_elements(l, from->data, NULL, stream);
  lt_Dtype compute =
      copy ? lt_copy_compute(l->operand[0].dtype, from->dtype) : lt_dtype_compute(l->compute);
  lt_OpId op = simplified_op(l);
  int inputs = op == l->op ? l->inputs : 1;
  lt_CudaRows rows;
  if (compute == LT_float32 && rows_of(l, inputs, &rows))
    return lt_cuda_launch_ok(launch_rows(&rows, op, inputs, stream));
  return lt_cuda_launch_ok(launch_any(l, op, inputs, compute, stream));
}
