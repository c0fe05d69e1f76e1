/* windows.h: windows that move over the last three dimensions of a tensor, for pools and for
 * unfold. Positions and sizes count in elements of one dimension, from 0. */
#ifndef LT_EACH_WINDOWS_H
#define LT_EACH_WINDOWS_H

#include "each.h"

/* Planes of in[0] x in[1] x in[2] elements, with out[0] x out[1] x out[2] windows in each.
 * Dimensions that a call does not have come first, with size 1. A window of size 0 is adaptive:
 * window o of n covers the positions floor(o in / n) to ceil((o + 1) in / n) - 1. */
typedef struct lt_Windows {
  int64_t in[3], out[3];
  int64_t window[3], stride[3], padding[3], dilation[3];
  int64_t divisor;       /* of avg_pool: 0: the number of elements */
  int64_t count_padding; /* of avg_pool: nonzero: padding counts as elements */
} lt_Windows;

/* Returns the first position of window o in dim d; it may be in the padding. */
LT_EACH_FUNCTION int64_t lt_window_first(LT_EACH_ARGS(lt_Windows) w, int d, int64_t o) {
  if (w->window[d] == 0) return o * w->in[d] / w->out[d];
  return o * w->stride[d] - w->padding[d];
}
/* Returns the position after its last one. */
LT_EACH_FUNCTION int64_t lt_window_end(LT_EACH_ARGS(lt_Windows) w, int d, int64_t o) {
  if (w->window[d] == 0) return 1 + ((o + 1) * w->in[d] - 1) / w->out[d];
  return o * w->stride[d] - w->padding[d] + (w->window[d] - 1) * w->dilation[d] + 1;
}
/* Returns the distance of its positions. */
LT_EACH_FUNCTION int64_t lt_window_step(LT_EACH_ARGS(lt_Windows) w, int d) {
  return w->window[d] == 0 ? 1 : w->dilation[d];
}
/* Returns the first position at or after 0 of a window that starts at `first`. */
LT_EACH_FUNCTION int64_t lt_window_inside(int64_t first, int64_t step) {
  return first >= 0 ? first : first + (-first + step - 1) / step * step;
}

/* Returns the first window of dim d that may contain position i, */
LT_EACH_FUNCTION int64_t lt_cover_first(LT_EACH_ARGS(lt_Windows) w, int d, int64_t i) {
  if (w->window[d] == 0) return i * w->out[d] / w->in[d];
  int64_t reach = (w->window[d] - 1) * w->dilation[d], last = i + w->padding[d] - reach;
  return last <= 0 ? 0 : (last + w->stride[d] - 1) / w->stride[d];
}
/* and the one after the last. */
LT_EACH_FUNCTION int64_t lt_cover_end(LT_EACH_ARGS(lt_Windows) w, int d, int64_t i) {
  int64_t end = w->window[d] == 0 ? 1 + ((i + 1) * w->out[d] - 1) / w->in[d]
                                  : (i + w->padding[d]) / w->stride[d] + 1;
  return end < w->out[d] ? end : w->out[d];
}

#endif
