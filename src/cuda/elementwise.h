/* elementwise.h: the launchers of elementwise loops.
 *
 *   elementwise.c              chooses a launcher and fills its struct
 *   elementwise_<type>.cu      any op, dtypes and layout, computed in one type: elementwise.cuh
 *   elementwise_flat.cu        a kernel for each op: contiguous float32, 16 bytes at a time
 *   elementwise_rows.cu        a kernel for each op: floats and bytes in dense rows, the same
 *   elementwise_special.cu     the ops of type W, any dtypes and layout: elementwise.cuh
 *   elementwise_copy.cu        copies, transposes and fills, for any dtype
 *
 * The expressions of the ops come from ops.def and mathx.h, as on the CPU.
 */
#ifndef LT_CUDA_ELEMENTWISE_H
#define LT_CUDA_ELEMENTWISE_H

#include "kernels.h"

/* A number in the type that the op is computed in. */
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

/* The operands of a loop. Operand 0 is the output; the others are inputs, or the number `value`
 * where data is NULL. Strides are in elements. A kernel is passed only as many dimensions of the
 * shape as it uses: see elementwise.cuh. */
typedef struct lt_CudaOperands {
  int op, inputs;
  int64_t numel;
  void *data[4];
  int dtype[4];
  lt_CudaNumber value[4];
  lt_CudaNumber a, b, limit; /* scalar arguments; the largest finite number of the result's dtype */
} lt_CudaOperands;

/* The shape of a loop, and its operands' strides. */
typedef struct lt_CudaShape {
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  int64_t strides[4][LT_MAX_DIMS];
} lt_CudaShape;

/* Compute an op on any dtypes and layout in the type of their name. */
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

/* Computes an op of type W, in float64. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_special(const lt_CudaOperands *operands,
                                                            const lt_CudaShape *shape,
                                                            cudaStream_t stream);

/* ---- contiguous float32 ---------------------------------------------------------------------- */

/* How a kernel reads an input. */
typedef enum lt_CudaSource {
  LT_CUDA_VALUE,  /* a number that is passed with the launch */
  LT_CUDA_SINGLE, /* the same element every time: stride 0 (in rows: within each row) */
  /* an element of contiguous memory */
  LT_CUDA_DENSE
} lt_CudaSource;

/* The operands of elementwise_flat.cu. Pointers to dense memory are aligned to 16 bytes. The output
 * is float32, or bool where the op is a test. */
typedef struct lt_CudaFlat {
  int64_t numel;
  void *out;
  const float *in[3];
  float value[3];
  float a, b, limit;
  uint8_t source[3];
  bool gives_bool;
} lt_CudaFlat;

/* Computes an op on contiguous float32. Returns cudaErrorInvalidValue for an op that is not
 * computed in float. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_flat(int op, const lt_CudaFlat *flat,
                                                         cudaStream_t stream);

/* ---- floats and bytes in dense rows ---------------------------------------------------------- */

#define LT_CUDA_GROUP      8 /* consecutive elements that a thread processes at once */
#define LT_CUDA_OUTER_DIMS 2

/* The operands of elementwise_rows.cu: rows of `length` elements, in each of which an operand is
 * dense or always the same element. With several rows, length is a multiple of LT_CUDA_GROUP,
 * and every group can be loaded at once (`aligned`). dtypes: bool, uint8, float16, bfloat16,
 * float32. */
typedef struct lt_CudaRows {
  int64_t numel, length;
  void *data[4];
  uint8_t dtype[4], source[4];
  bool aligned;
  int outer; /* dimensions outside the rows, at most LT_CUDA_OUTER_DIMS */
  float value[4];
  float a, b, limit;
  int64_t shape[LT_CUDA_OUTER_DIMS];
  int64_t strides[4][LT_CUDA_OUTER_DIMS];
} lt_CudaRows;

/* Computes an op on dense rows. Returns cudaErrorInvalidValue for an op that is not computed in
 * float. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_elementwise_rows(int op, const lt_CudaRows *rows,
                                                         cudaStream_t stream);

/* ---- copies and fills ------------------------------------------------------------------------ */

/* A copy to[...] = from[...] of elements of `size` bytes (1 to 16), or, with from NULL, a fill of
 * every element with `bits`. Strides are in elements; operand 0 is `to`. */
typedef struct lt_CudaMove {
  void *to;
  const void *from;
  int size;
  int64_t numel;
  uint64_t bits[2]; /* for elements under 8 bytes, the low bits; the rest is ignored */
} lt_CudaMove;

/* Launches the copy or the fill. `to` and `from` do not overlap, unless they are the same memory
 * with the same strides. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_move(const lt_CudaMove *move, const lt_CudaShape *shape,
                                             cudaStream_t stream);

#endif
