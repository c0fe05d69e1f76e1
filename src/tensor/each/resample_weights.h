/* resample_weights.h: the weights of interpolation along one dimension. An element of the result is
 * a sum of `count` neighbours from `first` on, each times a weight. Included once for each T. */
#include "cubic.h"

#ifdef LT_NO_DOUBLE
#define LT_RESAMPLE_SCALE(p) ((T)(p)->scale)
#else
#define LT_RESAMPLE_SCALE(p) (sizeof(T) == 8 ? (T)(p)->wide : (T)(p)->scale)
#endif

/* Returns Keys' cubic at distance x; a is -0.75 for bicubic interpolation, -0.5 with antialias. */
LT_EACH_OF_T T LT_EACH_NAME(cubic)(T x, T a) {
  x = x < 0 ? -x : x;
  if (x < 1) return LT_CUBIC_NEAR(x, a);
  if (x < 2) return LT_CUBIC_FAR(x, a);
  return 0;
}
/* Returns where element o of the result is among the elements of a line. */
LT_EACH_OF_T T LT_EACH_NAME(resample_center)(LT_EACH_ARGS(lt_Resample) p, int64_t o) {
  T scale = LT_RESAMPLE_SCALE(p);
  if (p->mode >= LT_RESAMPLE_LINEAR_SMOOTH) return scale * ((T)o + (T)0.5);
  if (p->align_corners != 0) return scale * (T)o;
  T at = scale * ((T)o + (T)0.5) - (T)0.5;
  return at < 0 && p->mode == LT_RESAMPLE_LINEAR ? (T)0 : at;
}
/* Returns the distance up to which neighbours count, with antialias. */
LT_EACH_OF_T T LT_EACH_NAME(resample_reach)(LT_EACH_ARGS(lt_Resample) p) {
  T scale = LT_RESAMPLE_SCALE(p), size = p->mode == LT_RESAMPLE_LINEAR_SMOOTH ? (T)1 : (T)2;
  return scale >= 1 ? size * scale : size;
}
/* Returns the first neighbour of element o; before 0 for bicubic interpolation at the border, which
 * counts the first element in its place. */
LT_EACH_OF_T int64_t LT_EACH_NAME(resample_first)(LT_EACH_ARGS(lt_Resample) p, int64_t o) {
  int64_t at;
  if (p->mode <= LT_RESAMPLE_EXACT) {
    if (p->mode == LT_RESAMPLE_NEAREST && p->out == p->in) return o;
    if (p->mode == LT_RESAMPLE_NEAREST && p->out == 2 * p->in && p->narrow == 0.5f) return o >> 1;
    at = p->mode == LT_RESAMPLE_EXACT ? (int64_t)(p->narrow * ((float)o + 0.5f))
                                      : (int64_t)((float)o * p->narrow);
    return at < p->in - 1 ? at : p->in - 1;
  }
  T center = LT_EACH_CALL(resample_center)(p, o);
  if (p->mode >= LT_RESAMPLE_LINEAR_SMOOTH) {
    at = (int64_t)(center - LT_EACH_CALL(resample_reach)(p) + (T)0.5);
    return at > 0 ? at : 0;
  }
  at = (int64_t)center;
  if ((T)at > center) at--;
  at = at < p->in - 1 ? at : p->in - 1;
  return p->mode == LT_RESAMPLE_CUBIC ? at - 1 : at;
}
/* Returns the number of its neighbours. */
LT_EACH_OF_T int64_t LT_EACH_NAME(resample_count)(LT_EACH_ARGS(lt_Resample) p, int64_t o,
                                                  int64_t first) {
  if (p->mode <= LT_RESAMPLE_EXACT) return 1;
  if (p->mode == LT_RESAMPLE_LINEAR) return first < p->in - 1 ? 2 : 1;
  if (p->mode == LT_RESAMPLE_CUBIC) return 4;
  T end = LT_EACH_CALL(resample_center)(p, o) + LT_EACH_CALL(resample_reach)(p) + (T)0.5;
  int64_t last = (int64_t)end;
  last = last < p->in ? last : p->in;
  return last > first ? last - first : 0;
}
/* Returns a weight rounded to the significant bits of a 16-bit dtype (Veltkamp's splitting). */
LT_EACH_OF_T T LT_EACH_NAME(resample_round)(LT_EACH_ARGS(lt_Resample) p, T weight) {
  T c = weight * (T)p->split;
  return p->split != 0 ? c - (c - weight) : weight;
}
/* Returns the weight of neighbour k, before weights are divided by their sum (with antialias). */
LT_EACH_OF_T T LT_EACH_NAME(resample_weight)(LT_EACH_ARGS(lt_Resample) p, int64_t o, int64_t first,
                                             int64_t count, int64_t k) {
  if (count == 1 && p->mode <= LT_RESAMPLE_LINEAR) return 1;
  T center = LT_EACH_CALL(resample_center)(p, o);
  if (p->mode >= LT_RESAMPLE_LINEAR_SMOOTH) {
    T scale = LT_RESAMPLE_SCALE(p), x = (T)(k + first) - center + (T)0.5;
    x = scale >= 1 ? x * ((T)1 / scale) : x;
    if (p->mode == LT_RESAMPLE_CUBIC_SMOOTH) return LT_EACH_CALL(cubic)(x, (T)-0.5);
    x = x < 0 ? -x : x;
    return x < 1 ? (T)1 - x : (T)0;
  }
  T part = center - (T)(p->mode == LT_RESAMPLE_CUBIC ? first + 1 : first);
  if (p->mode == LT_RESAMPLE_LINEAR && p->in == p->out) part = 0;
  part = part < 0 ? (T)0 : part > 1 ? (T)1 : part;
  if (p->mode == LT_RESAMPLE_LINEAR) {
    part = LT_EACH_CALL(resample_round)(p, part);
    return k == 0 ? LT_EACH_CALL(resample_round)(p, (T)1 - part) : part;
  }
  return LT_EACH_CALL(cubic)(part + (T)1 - (T)k, (T)-0.75);
}
/* Returns the sum of the weights. */
LT_EACH_OF_T T LT_EACH_NAME(resample_total)(LT_EACH_ARGS(lt_Resample) p, int64_t o, int64_t first,
                                            int64_t count) {
  if (p->mode < LT_RESAMPLE_LINEAR_SMOOTH) return 1;
  T total = 0;
  for (int64_t k = 0; k < count; k++) total += LT_EACH_CALL(resample_weight)(p, o, first, count, k);
  return total;
}
/* Returns the place of neighbour k in the line. */
LT_EACH_FUNCTION int64_t LT_EACH_NAME(resample_place)(LT_EACH_ARGS(lt_Resample) p, int64_t first,
                                                      int64_t k) {
  int64_t at = first + k;
  return at < 0 ? 0 : at < p->in ? at : p->in - 1;
}

/* Returns the weight by which neighbour k is multiplied. With `fixed`, the first of the neighbours
 * that have the same place has the weights of all of them. */
LT_EACH_OF_T T LT_EACH_NAME(resample_factor)(LT_EACH_ARGS(lt_Resample) p, int64_t o, int64_t first,
                                             int64_t count, int64_t k, T total) {
  if (p->fixed == 0) return LT_EACH_CALL(resample_weight)(p, o, first, count, k) / total;
  int64_t place = LT_EACH_NAME(resample_place)(p, first, k);
  if (k > 0 && LT_EACH_NAME(resample_place)(p, first, k - 1) == place) return 0;
  T weight = 0;
  for (int64_t j = k; j < count && LT_EACH_NAME(resample_place)(p, first, j) == place; j++)
    weight += LT_EACH_CALL(resample_weight)(p, o, first, count, j) / total;
  weight *= (T)p->fixed;
  return (T)(int64_t)(weight < 0 ? weight - (T)0.5 : weight + (T)0.5) / (T)p->fixed;
}
/* Returns a sum rounded to uint8, halves up; without branches, which would depend on the image. */
LT_EACH_OF_T T LT_EACH_NAME(resample_byte)(T sum) {
  int32_t v = (int32_t)(sum + (T)0.5); /* numbers from -1 to 0 become 0 */
  int32_t below = 255 - (v & ~(v >> 31));
  return (T)(255 - (below & ~(below >> 31)));
}
/* Returns the first element of the result that element `at` may reach, */
LT_EACH_OF_T int64_t LT_EACH_NAME(resample_from)(LT_EACH_ARGS(lt_Resample) p, int64_t at) {
  T scale = p->mode <= LT_RESAMPLE_EXACT ? (T)p->narrow : LT_RESAMPLE_SCALE(p), reach = 3;
  if (p->mode >= LT_RESAMPLE_LINEAR_SMOOTH) reach += LT_EACH_CALL(resample_reach)(p);
  if (!(scale > 0) || at == 0) return 0;
  T low = ((T)at - reach) / scale - 2;
  return low <= 0 ? 0 : low < (T)p->out ? (int64_t)low : p->out;
}
/* and the one after the last. The first and the last element of a line reach all that are outside
 * of it. */
LT_EACH_OF_T int64_t LT_EACH_NAME(resample_to)(LT_EACH_ARGS(lt_Resample) p, int64_t at) {
  T scale = p->mode <= LT_RESAMPLE_EXACT ? (T)p->narrow : LT_RESAMPLE_SCALE(p), reach = 3;
  if (p->mode >= LT_RESAMPLE_LINEAR_SMOOTH) reach += LT_EACH_CALL(resample_reach)(p);
  if (!(scale > 0) || at == p->in - 1) return p->out;
  T high = ((T)at + reach) / scale + 2;
  return high < (T)p->out ? (high > 0 ? (int64_t)high : 0) : p->out;
}
#undef LT_RESAMPLE_SCALE
