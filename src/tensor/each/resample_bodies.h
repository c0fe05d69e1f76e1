/* resample_bodies.h: the bodies of interpolation along one dimension, and of its gradient. */
#include "resample_weights.h"

LT_EACH_BODY(_resample) {
  int64_t inner = i % p->inner, o = i / p->inner % p->out, line = i / p->inner / p->out;
  int64_t first = LT_EACH_CALL(resample_first)(p, o),
          count = LT_EACH_CALL(resample_count)(p, o, first);
  T total = LT_EACH_CALL(resample_total)(p, o, first, count), sum = 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t at = LT_EACH_NAME(resample_place)(p, first, k);
    T v = LT_EACH_CALL(resample_factor)(p, o, first, count, k, total) *
          GET(0, (line * p->in + at) * p->inner + inner);
    sum = k == 0 ? v : sum + v;
  }
  PUT(0, i, p->fixed == 0 ? sum : LT_EACH_CALL(resample_byte)(sum));
}

/* Input: the gradient of the result. Element o of it reaches a few elements near o * scale. */
LT_EACH_BODY(_resample_backward) {
  int64_t inner = i % p->inner, at = i / p->inner % p->in, line = i / p->inner / p->in;
  int64_t from = LT_EACH_CALL(resample_from)(p, at), to = LT_EACH_CALL(resample_to)(p, at);
  T sum = 0;
  for (int64_t o = from; o < to; o++) {
    int64_t first = LT_EACH_CALL(resample_first)(p, o),
            count = LT_EACH_CALL(resample_count)(p, o, first);
    T weight = 0;
    bool reaches = false;
    for (int64_t k = 0; k < count; k++) {
      if (LT_EACH_NAME(resample_place)(p, first, k) != at) continue;
      weight += LT_EACH_CALL(resample_weight)(p, o, first, count, k);
      reaches = true;
    }
    if (!reaches) continue;
    weight = weight / LT_EACH_CALL(resample_total)(p, o, first, count);
    sum += weight * GET(0, (line * p->out + o) * p->inner + inner);
  }
  PUT(0, i, sum);
}
