/* elementwise.h: how elementwise loops are put on a stream.
 *
 *   elementwise.c              chooses a launcher and fills its struct
 *   elementwise_<type>.cu      any op, dtypes and layout, computed in one type: elementwise.cuh
 *   elementwise_flat.cu        a kernel for each op: float32 without gaps, 16 bytes at a time
 *   elementwise_rows.cu        a kernel for each op: floats and bytes in dense rows, the same
 *   elementwise_copy.cu        elements moved without a change: copies, transposes, fills
 *
 * The texts of the ops come from ops.def and mathx.h, as those of the CPU do.
 */
#ifndef LT_CUDA_ELEMENTWISE_H
#define LT_CUDA_ELEMENTWISE_H

#include "kernels.h"

/* A number in the type that is computed in. */
typedef union lt_CudaNumber {
  uint8_t bool_;
  int32_t int32;
  int64_t int64;
  float float32;
  double float64;
  lt_complex64 complex64;
  lt_complex128 complex128;
} lt_CudaNumber;

/* ---- any op on any layout -------------------------------------------------------------------- */

/* Operand 0 is the output; the others are inputs, `value` where data is NULL. Strides are in
 * elements. Kernels take as much of the shape as there are dimensions: see elementwise.cuh. */
typedef struct lt_CudaOperands {
  int op, inputs;
  int64_t numel;
  void *data[4];
  int dtype[4];
  lt_CudaNumber value[4];
  lt_CudaNumber a, b, limit; /* scalar arguments; the largest finite number of the result */
} lt_CudaOperands;

typedef struct lt_CudaShape {
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  int64_t strides[4][LT_MAX_DIMS];
} lt_CudaShape;

LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_float32(const lt_CudaOperands *operands,
                                                            const lt_CudaShape *shape,
                                                            cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_float64(const lt_CudaOperands *operands,
                                                            const lt_CudaShape *shape,
                                                            cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_int32(const lt_CudaOperands *operands,
                                                          const lt_CudaShape *shape,
                                                          cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_int64(const lt_CudaOperands *operands,
                                                          const lt_CudaShape *shape,
                                                          cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_bool(const lt_CudaOperands *operands,
                                                         const lt_CudaShape *shape,
                                                         cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_complex64(const lt_CudaOperands *operands,
                                                              const lt_CudaShape *shape,
                                                              cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_complex128(const lt_CudaOperands *operands,
                                                               const lt_CudaShape *shape,
                                                               cudaStream_t stream);

/* ---- float32 without gaps -------------------------------------------------------------------- */

/* Where an input comes from. */
typedef enum lt_CudaPlace {
  LT_CUDA_VALUE,  /* a number of the host */
  LT_CUDA_SINGLE, /* always the same element: stride 0 (of rows: in the whole row) */
  LT_CUDA_DENSE
} lt_CudaPlace;

/* Pointers to dense memory are aligned to 16 bytes. The output is float32, or bool where the op is
 * a test. */
typedef struct lt_CudaFlat {
  int64_t numel;
  void *out;
  const float *in[3];
  float value[3];
  float a, b, limit;
  uint8_t place[3];
  bool gives_bool;
} lt_CudaFlat;

LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_flat(int op, const lt_CudaFlat *flat,
                                                         cudaStream_t stream);

/* ---- floats and bytes in dense rows ---------------------------------------------------------- */

#define LT_CUDA_GROUP      8 /* neighbouring elements that a thread takes at once */
#define LT_CUDA_OUTER_DIMS 2

/* Rows of `length` elements, in each of which an operand is dense or always the same. Several rows:
 * length is a multiple of LT_CUDA_GROUP, and every group lies where it can be read at once
 * (`aligned`). dtypes: bool, uint8, float16, bfloat16, float32. */
typedef struct lt_CudaRows {
  int64_t numel, length;
  void *data[4];
  uint8_t dtype[4], place[4];
  bool aligned;
  int outer; /* dimensions outside the rows, at most LT_CUDA_OUTER_DIMS */
  float value[4];
  float a, b, limit;
  int64_t shape[LT_CUDA_OUTER_DIMS];
  int64_t strides[4][LT_CUDA_OUTER_DIMS];
} lt_CudaRows;

LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_rows(int op, const lt_CudaRows *rows,
                                                         cudaStream_t stream);

/* ---- elements moved -------------------------------------------------------------------------- */

/* to[...] = from[...] by elements of `size` bytes (1 to 16); strides in elements, operand 0 is
 * `to`. Where from is NULL, every element becomes `bits`. */
typedef struct lt_CudaMove {
  void *to;
  const void *from;
  int size;
  int64_t numel;
  uint64_t bits[2]; /* those of a smaller element repeated need not be set */
} lt_CudaMove;

LT_C_LINKAGE cudaError_t lt_cuda_launch_move(const lt_CudaMove *move, const lt_CudaShape *shape,
                                             cudaStream_t stream);

#endif
