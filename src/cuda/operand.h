/* operand.h: tensors as the kernels of rows, losses and random numbers take them. Kernels work in
 * double where their result is float64, else in float, and read any dtype that is worked on in
 * float. */
#ifndef LT_CUDA_OPERAND_H
#define LT_CUDA_OPERAND_H

#include "kernel.h"

/* t as contiguous memory that a kernel whose result is `result` can read: of its own dtype where
 * that is worked on in the same type, else converted. One reference. */
static inline lt_Tensor *lt_cuda_floats(lt_Tensor *t, lt_Dtype result) {
  lt_Dtype work = lt_dtype_accumulate(result);
  return lt_as_contiguous(
      t, lt_dtype_is_float(t->dtype) && lt_dtype_accumulate(t->dtype) == work ? t->dtype : work);
}

/* The same for an argument that may be nil; *ok becomes false when memory runs out. */
static inline lt_Tensor *lt_cuda_floats_or_nil(lt_Tensor *t, lt_Dtype result, bool *ok) {
  lt_Tensor *dense = t ? lt_cuda_floats(t, result) : NULL;
  if (t && !dense) *ok = false;
  return dense;
}

/* The first element, NULL of NULL. */
static inline void *lt_cuda_data(lt_Tensor *t) { return t ? lt_tensor_data(t) : NULL; }

/* Where to write a result of `dtype` that is meant for `out`: out itself (retained) when it has
 * that dtype, else a new tensor of its shape; NULL when memory runs out. */
static inline lt_Tensor *lt_cuda_output_open(lt_Tensor *out, lt_Dtype dtype) {
  if (out->dtype == dtype) return lt_retain(out);
  return lt_empty(dtype, lt_tensor_device(out), out->ndim, out->shape);
}
/* Converts what was written into `out` where that is another tensor, and lets go of `written`. */
static inline bool lt_cuda_output_close(lt_Tensor *out, lt_Tensor *written) {
  if (!written) return false;
  bool ok = written == out || lt_copy_into(out, written, false);
  lt_release(written);
  return ok;
}

#endif
