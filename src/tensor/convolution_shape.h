/* convolution_shape.h: the geometry of a convolution, shared by the kernels of all devices.
 *
 * A convolution relates an outer side ("in": `inputs` channels in each group) and an inner side
 * ("out": `outputs` channels in each group) through the kernel:
 *
 *     out[o] = sum over k of weight[k] * in[o * stride + k * dilation - padding]
 *
 * where elements outside of `in` count as 0. _convolution computes `out`, _convolution_transpose
 * computes `in` from `out` by the transposed map, and _convolution_weight the weight's gradient
 * from both. One and two dimensions are three with sizes of 1 in front. */
#ifndef LT_CONVOLUTION_SHAPE_H
#define LT_CONVOLUTION_SHAPE_H

#include <stdint.h>

#define LT_CONVOLUTION_DIMS 3

typedef struct lt_Convolution {
  int64_t batch, groups, inputs, outputs; /* channels of one group */
  int64_t in[LT_CONVOLUTION_DIMS], out[LT_CONVOLUTION_DIMS], kernel[LT_CONVOLUTION_DIMS];
  int64_t stride[LT_CONVOLUTION_DIMS], padding[LT_CONVOLUTION_DIMS], dilation[LT_CONVOLUTION_DIMS];
} lt_Convolution;

/* Returns the geometry for the shapes {batch, channels, sizes...} of both sides and of the weight,
 * {outputs of all groups, inputs of a group, sizes...}; all have ndim dimensions, 3 to 5. */
static inline lt_Convolution lt_convolution(int ndim, const int64_t *in, const int64_t *out,
                                            const int64_t *weight, const int64_t *stride,
                                            const int64_t *padding, const int64_t *dilation,
                                            int64_t groups) {
  lt_Convolution g = {in[0],     groups,    weight[1], weight[0] / groups, {1, 1, 1},
                      {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0},          {1, 1, 1}};
  for (int d = 0; d < ndim - 2; d++) {
    int at = LT_CONVOLUTION_DIMS - (ndim - 2) + d;
    g.in[at] = in[2 + d];
    g.out[at] = out[2 + d];
    g.kernel[at] = weight[2 + d];
    g.stride[at] = stride[d];
    g.padding[at] = padding[d];
    g.dilation[at] = dilation[d];
  }
  return g;
}

/* Return the number of positions of one channel on each side, and of taps of the kernel. */
static inline int64_t lt_convolution_in(const lt_Convolution *g) {
  return g->in[0] * g->in[1] * g->in[2];
}
static inline int64_t lt_convolution_out(const lt_Convolution *g) {
  return g->out[0] * g->out[1] * g->out[2];
}
static inline int64_t lt_convolution_taps(const lt_Convolution *g) {
  return g->kernel[0] * g->kernel[1] * g->kernel[2];
}

/* Returns 1 when each output position reads the input position of the same index only. */
static inline int lt_convolution_is_pointwise(const lt_Convolution *g) {
  for (int d = 0; d < LT_CONVOLUTION_DIMS; d++)
    if (g->kernel[d] != 1 || g->stride[d] != 1 || g->padding[d] != 0 || g->in[d] != g->out[d])
      return 0;
  return 1;
}

#endif
