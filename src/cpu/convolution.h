/* convolution.h: the convolutions of the CPU: one call in the working dtype, and the paths that
 * compute it. */
#ifndef LT_CPU_CONVOLUTION_H
#define LT_CPU_CONVOLUTION_H

#include "convolution_shape.h"
#include "kernel.h"

/* Which of the three ops is computed; see src/tensor/convolution_shape.h. */
typedef enum lt_ConvolutionForm {
  LT_CONVOLUTION_OUT,   /* _convolution: out from in and weight */
  LT_CONVOLUTION_IN,    /* _convolution_transpose: in from out and weight */
  LT_CONVOLUTION_WEIGHT /* _convolution_weight: weight from in and out */
} lt_ConvolutionForm;

/* One call. All memory is contiguous and of dtype `work`: float32, float64 or int64, and bfloat16
 * for oneDNN alone. */
typedef struct lt_ConvolutionCall {
  lt_ConvolutionForm form;
  lt_Dtype work;
  lt_Convolution g;
  void *in, *out, *weight; /* two are read; `form` is written */
  const void *bias;        /* one number for each channel of the result; NULL: none */
  lt_Dtype rounded;        /* 16 bits: LT_CONVOLUTION_IN rounds columns and sums to it */
} lt_ConvolutionCall;

/* Calls task(context, i, memory) for i < n on `team` threads; each has `bytes` of its own memory.
 * After an interrupt the remaining tasks are skipped. Returns false with the error set when memory
 * is out. */
bool lt_convolution_tasks(int team, int64_t n, int64_t bytes,
                          void (*task)(const void *context, int64_t i, char *memory),
                          const void *context);
/* Computes a call by products of matrices, in blocks of bounded memory. Returns false with the
 * error set. */
bool lt_convolution_by_blocks(const lt_ConvolutionCall *k);
/* Computes a call whose groups have one input channel and few output channels (depthwise) row by
 * row. Sets *done to false when it does not support the call; returns false with the error set on
 * failure. */
bool lt_convolution_by_rows(const lt_ConvolutionCall *k, bool *done);
/* Returns whether it supports a call that oneDNN computes by slower, general loops. */
bool lt_convolution_rows_first(const lt_ConvolutionCall *k);

#endif
