/* operand.h: tensors in the form that the kernels of rows, losses and random numbers require.
 * Kernels compute in double where their result is float64, else in float, and load any dtype that
 * is computed in float. */
#ifndef LT_ACCEL_OPERAND_H
#define LT_ACCEL_OPERAND_H

#include "kernel.h"

/* Returns t as contiguous memory that a kernel with a result of dtype `result` can load: in its own
 * dtype where that is computed in the same type, else converted. One reference; NULL on failure. */
static inline lt_Tensor *lt_operand_floats(lt_Tensor *t, lt_Dtype result) {
  lt_Dtype work = lt_dtype_accumulate(result);
  return lt_as_contiguous(
      t, lt_dtype_is_float(t->dtype) && lt_dtype_accumulate(t->dtype) == work ? t->dtype : work);
}

/* Does the same for an argument that may be nil (NULL). Sets *ok to false on failure. */
static inline lt_Tensor *lt_operand_floats_or_nil(lt_Tensor *t, lt_Dtype result, bool *ok) {
  lt_Tensor *dense = t ? lt_operand_floats(t, result) : NULL;
  if (t && !dense) *ok = false;
  return dense;
}

/* Returns the address of the first element; NULL for NULL. */
static inline void *lt_operand_data(lt_Tensor *t) { return t ? lt_tensor_data(t) : NULL; }

/* Returns a tensor of `dtype` in which a kernel writes the result for `out`: out itself (retained)
 * when it has that dtype, else a new tensor of its shape; NULL on failure. */
static inline lt_Tensor *lt_operand_output_open(lt_Tensor *out, lt_Dtype dtype) {
  if (out->dtype == dtype) return lt_retain(out);
  return lt_empty(dtype, lt_tensor_device(out), out->ndim, out->shape);
}
/* Ends what lt_operand_output_open began: converts `written` into `out` where they differ, and
 * releases `written`. Returns false on failure, and for `written` NULL. */
static inline bool lt_operand_output_close(lt_Tensor *out, lt_Tensor *written) {
  if (!written) return false;
  bool ok = written == out || lt_copy_into(out, written, false);
  lt_release(written);
  return ok;
}

#endif
