/* pooling_bodies.h: the bodies of maximum and average pools, and of their gradients. */

/* Finds the maximum of window i, where NaN is larger than any number, and its index in its
 * plane. */
#define LT_FIND_MAXIMUM(best, at)                                                                  \
  int64_t x = i % p->out[2], rest = i / p->out[2], y = rest % p->out[1], plane = rest / p->out[1]; \
  int64_t z = plane % p->out[0];                                                                   \
  plane = plane / p->out[0] * (p->in[0] * p->in[1] * p->in[2]);                                    \
  const int64_t sz = lt_window_step(p, 0), sy = lt_window_step(p, 1), sx = lt_window_step(p, 2);   \
  const int64_t z0 = lt_window_inside(lt_window_first(p, 0, z), sz),                               \
                y0 = lt_window_inside(lt_window_first(p, 1, y), sy),                               \
                x0 = lt_window_inside(lt_window_first(p, 2, x), sx);                               \
  int64_t z1 = lt_window_end(p, 0, z), y1 = lt_window_end(p, 1, y), x1 = lt_window_end(p, 2, x);   \
  z1 = z1 < p->in[0] ? z1 : p->in[0];                                                              \
  y1 = y1 < p->in[1] ? y1 : p->in[1];                                                              \
  x1 = x1 < p->in[2] ? x1 : p->in[2];                                                              \
  at = (z0 * p->in[1] + y0) * p->in[2] + x0;                                                       \
  best = GET(0, plane + at);                                                                       \
  for (int64_t c = z0; c < z1; c += sz)                                                            \
    for (int64_t b = y0; b < y1; b += sy)                                                          \
      for (int64_t a = x0; a < x1; a += sx) {                                                      \
        int64_t j = (c * p->in[1] + b) * p->in[2] + a;                                             \
        T v = GET(0, plane + j);                                                                   \
        if (v > best || IS_NAN(v)) {                                                               \
          best = v;                                                                                \
          at = j;                                                                                  \
        }                                                                                          \
      }

LT_EACH_BODY(_max_pool) {
  T best;
  int64_t at;
  LT_FIND_MAXIMUM(best, at)
  PUT(0, i, best);
  PUT_INDEX(1, i, at);
}
LT_EACH_BODY(_max_values) {
  T best;
  int64_t at;
  LT_FIND_MAXIMUM(best, at)
  (void)at;
  PUT(0, i, best);
}
#undef LT_FIND_MAXIMUM

/* Inputs: the gradient of the maxima, and their indices. Adds up the gradients of the windows whose
 * maximum is element i. */
LT_EACH_BODY(_max_pool_backward) {
  int64_t x = i % p->in[2], rest = i / p->in[2], y = rest % p->in[1];
  rest = rest / p->in[1];
  int64_t z = rest % p->in[0], plane = rest / p->in[0] * (p->out[0] * p->out[1] * p->out[2]);
  const int64_t at = (z * p->in[1] + y) * p->in[2] + x;
  T sum = 0;
  for (int64_t c = lt_cover_first(p, 0, z); c < lt_cover_end(p, 0, z); c++)
    for (int64_t b = lt_cover_first(p, 1, y); b < lt_cover_end(p, 1, y); b++)
      for (int64_t a = lt_cover_first(p, 2, x); a < lt_cover_end(p, 2, x); a++) {
        int64_t j = plane + (c * p->out[1] + b) * p->out[2] + a;
        if (GET_INDEX(1, j) == at) sum += GET(0, j);
      }
  PUT(0, i, sum);
}

/* Returns the number by which the sum of a window is divided; its positions in each dim are those
 * from first to end, before they are cut at the borders. */
LT_EACH_FUNCTION int64_t LT_EACH_NAME(pool_divisor)(LT_EACH_ARGS(lt_Windows) p, int64_t z,
                                                    int64_t y, int64_t x) {
  if (p->divisor != 0) return p->divisor;
  int64_t n = 1;
  for (int d = 0; d < 3; d++) {
    int64_t o = d == 0 ? z : d == 1 ? y : x;
    int64_t first = lt_window_first(p, d, o), end = lt_window_end(p, d, o);
    int64_t last = p->in[d] + (p->count_padding != 0 ? p->padding[d] : 0);
    if (p->count_padding == 0 && first < 0) first = 0;
    if (end > last) end = last;
    n *= end > first ? end - first : 0;
  }
  return n;
}

LT_EACH_BODY(_avg_pool) {
  int64_t x = i % p->out[2], rest = i / p->out[2], y = rest % p->out[1], plane = rest / p->out[1];
  int64_t z = plane % p->out[0];
  plane = plane / p->out[0] * (p->in[0] * p->in[1] * p->in[2]);
  int64_t z0 = lt_window_first(p, 0, z), y0 = lt_window_first(p, 1, y),
          x0 = lt_window_first(p, 2, x);
  int64_t z1 = lt_window_end(p, 0, z), y1 = lt_window_end(p, 1, y), x1 = lt_window_end(p, 2, x);
  z0 = z0 > 0 ? z0 : 0;
  y0 = y0 > 0 ? y0 : 0;
  x0 = x0 > 0 ? x0 : 0;
  z1 = z1 < p->in[0] ? z1 : p->in[0];
  y1 = y1 < p->in[1] ? y1 : p->in[1];
  x1 = x1 < p->in[2] ? x1 : p->in[2];
  T sum = 0;
  for (int64_t c = z0; c < z1; c++)
    for (int64_t b = y0; b < y1; b++)
      for (int64_t a = x0; a < x1; a++) sum += GET(0, plane + (c * p->in[1] + b) * p->in[2] + a);
  int64_t n = LT_EACH_NAME(pool_divisor)(p, z, y, x);
  PUT(0, i, z1 > z0 && y1 > y0 && x1 > x0 ? sum / (T)n : (T)0);
}

/* Input: the gradient of the averages. */
LT_EACH_BODY(_avg_pool_backward) {
  int64_t x = i % p->in[2], rest = i / p->in[2], y = rest % p->in[1];
  rest = rest / p->in[1];
  int64_t z = rest % p->in[0], plane = rest / p->in[0] * (p->out[0] * p->out[1] * p->out[2]);
  T sum = 0;
  for (int64_t c = lt_cover_first(p, 0, z); c < lt_cover_end(p, 0, z); c++)
    for (int64_t b = lt_cover_first(p, 1, y); b < lt_cover_end(p, 1, y); b++)
      for (int64_t a = lt_cover_first(p, 2, x); a < lt_cover_end(p, 2, x); a++)
        sum += GET(0, plane + (c * p->out[1] + b) * p->out[2] + a) /
               (T)LT_EACH_NAME(pool_divisor)(p, c, b, a);
  PUT(0, i, sum);
}
