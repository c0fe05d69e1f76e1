/* planes_body.h: the loops of planes.h for one type T. FN(name) is a function's name. */

#define CHUNK 256 /* windows of a row that are computed together */

/* Positions of window elements in the last dim: window x has element `offset` + x * stride. Returns
 * in *low and *high the windows of first..last whose element is inside of the input. */
static inline void FN(inside)(const lt_Windows *w, int64_t offset, int64_t first, int64_t last,
                              int64_t *low, int64_t *high) {
  int64_t s = w->stride[2], end = w->in[2] - 1 - offset;
  int64_t from = offset >= 0 ? 0 : (-offset + s - 1) / s, to = end < 0 ? 0 : end / s + 1;
  *low = from > first ? from : first;
  *high = to < last ? to : last;
}

/* Updates maxima and their indices by a row of elements, `s` apart. */
static inline __attribute__((always_inline)) void
FN(take_larger)(const T *x, int64_t s, int32_t at, int64_t n, T *best, int32_t *index) {
  int32_t step = (int32_t)s;
  for (int32_t i = 0; i < (int32_t)n; i++) {
    T v = x[i * s];
    bool larger = v > best[i] || v != v;
    best[i] = larger ? v : best[i];
    index[i] = larger ? at + i * step : index[i];
  }
}
/* Adds a row of elements to sums. */
static inline __attribute__((always_inline)) void FN(add_row)(const T *x, int64_t s, int64_t n,
                                                              T *sum) {
  for (int64_t i = 0; i < n; i++) sum[i] += x[i * s];
}
/* Adds sums to a row of elements. */
static inline __attribute__((always_inline)) void FN(add_to_row)(T *x, int64_t s, int64_t n,
                                                                 const T *sum) {
  for (int64_t i = 0; i < n; i++) x[i * s] += sum[i];
}
/* Calls one of these functions with a constant step where that is faster. */
#define BY_STEP(call, s, ...)                                                                      \
  do {                                                                                             \
    if ((s) == 1)                                                                                  \
      call(1, __VA_ARGS__);                                                                        \
    else if ((s) == 2)                                                                             \
      call(2, __VA_ARGS__);                                                                        \
    else                                                                                           \
      call(s, __VA_ARGS__);                                                                        \
  } while (0)
#define TAKE_LARGER(s, x, at, n, best, index) FN(take_larger)(x, s, at, n, best, index)
#define ADD_ROW(s, x, n, sum)                 FN(add_row)(x, s, n, sum)
#define ADD_TO_ROW(s, x, n, sum)              FN(add_to_row)(x, s, n, sum)

/* The part of windows that is inside of the input, in one dim. */
typedef struct FN(Span) {
  int64_t first, end, step;
} FN(Span);
static inline FN(Span) FN(span)(const lt_Windows *w, int d, int64_t o) {
  FN(Span) s = {lt_window_first(w, d, o), lt_window_end(w, d, o), lt_window_step(w, d)};
  s.first = lt_window_inside(s.first, s.step);
  if (s.end > w->in[d]) s.end = w->in[d];
  return s;
}

/* Maxima of one adaptive window after the other. */
static void FN(max_adaptive)(const lt_Windows *w, const T *x, T *y, int64_t *index, FN(Span) z,
                             FN(Span) r) {
  for (int64_t o = 0; o < w->out[2]; o++) {
    FN(Span) c = FN(span)(w, 2, o);
    int64_t at = (z.first * w->in[1] + r.first) * w->in[2] + c.first;
    T best = x[at];
    for (int64_t k = z.first; k < z.end; k += z.step)
      for (int64_t j = r.first; j < r.end; j += r.step)
        for (int64_t i = c.first, row = (k * w->in[1] + j) * w->in[2]; i < c.end; i += c.step)
          if (x[row + i] > best || x[row + i] != x[row + i]) {
            at = row + i;
            best = x[at];
          }
    y[o] = best;
    index[o] = at + LT_INDEX_BASE;
  }
}

/* Maxima of `n` windows of a row from window x0 on. */
static void FN(max_chunk)(const lt_Windows *w, const T *x, T *y, int64_t *index, FN(Span) z,
                          FN(Span) r, int64_t x0, int64_t n) {
  T best[CHUNK];
  int32_t at[CHUNK];
  for (int64_t i = 0; i < n; i++) {
    int64_t c = lt_window_inside((x0 + i) * w->stride[2] - w->padding[2], w->dilation[2]);
    best[i] = (T)-INFINITY;
    at[i] = (int32_t)((z.first * w->in[1] + r.first) * w->in[2] + c);
  }
  for (int64_t k = z.first; k < z.end; k += z.step)
    for (int64_t j = r.first; j < r.end; j += r.step) {
      int64_t row = (k * w->in[1] + j) * w->in[2];
      for (int64_t a = 0; a < w->window[2]; a++) {
        int64_t offset = a * w->dilation[2] - w->padding[2], low, high, s = w->stride[2];
        FN(inside)(w, offset, x0, x0 + n, &low, &high);
        if (low >= high) continue;
        int64_t from = row + low * s + offset;
        BY_STEP(TAKE_LARGER, s, x + from, (int32_t)from, high - low, best + (low - x0),
                at + (low - x0));
      }
    }
  memcpy(y, best, (size_t)n * sizeof(T));
  for (int64_t i = 0; i < n; i++) index[i] = (int64_t)at[i] + LT_INDEX_BASE;
}

static void FN(max_pool)(const lt_Windows *w, const T *x, T *y, int64_t *index, int64_t from,
                         int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2];
  for (int64_t row = from; row < to; row++) {
    FN(Span) r = FN(span)(w, 1, row % w->out[1]), z = FN(span)(w, 0, row / w->out[1] % w->out[0]);
    const T *source = x + row / w->out[1] / w->out[0] * plane;
    T *target = y + row * w->out[2];
    int64_t *indices = index + row * w->out[2];
    if (w->window[2] == 0) {
      FN(max_adaptive)(w, source, target, indices, z, r);
      continue;
    }
    for (int64_t i = 0; i < w->out[2]; i += CHUNK) FN(max_chunk)
    (w, source, target + i, indices + i, z, r, i, w->out[2] - i < CHUNK ? w->out[2] - i : CHUNK);
  }
}

/* Updates maxima by a row of elements, `s` apart. */
static inline __attribute__((always_inline)) void FN(keep_larger)(const T *x, int64_t s, int64_t n,
                                                                  T *best) {
  for (int64_t i = 0; i < n; i++) {
    T v = x[i * s];
    best[i] = v > best[i] || v != v ? v : best[i];
  }
}
#define KEEP_LARGER(s, x, n, best) FN(keep_larger)(x, s, n, best)

static void FN(max_values)(const lt_Windows *w, const T *x, T *y, int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], s = w->stride[2], low, high;
  for (int64_t row = from; row < to; row++) {
    FN(Span) r = FN(span)(w, 1, row % w->out[1]), z = FN(span)(w, 0, row / w->out[1] % w->out[0]);
    const T *source = x + row / w->out[1] / w->out[0] * plane;
    T *target = y + row * w->out[2];
    for (int64_t i = 0; i < w->out[2]; i++) target[i] = (T)-INFINITY;
    for (int64_t k = z.first; k < z.end; k += z.step)
      for (int64_t j = r.first; j < r.end; j += r.step)
        for (int64_t a = 0; a < w->window[2]; a++) {
          int64_t offset = a * w->dilation[2] - w->padding[2];
          FN(inside)(w, offset, 0, w->out[2], &low, &high);
          if (low >= high) continue;
          const T *line = source + (k * w->in[1] + j) * w->in[2] + low * s + offset;
          BY_STEP(KEEP_LARGER, s, line, high - low, target + low);
        }
  }
}

/* Returns the number of elements of the windows of a row, in the dims before the last; 0: the sums
 * are divided by w->divisor. */
static inline int64_t FN(rows_of)(const lt_Windows *w, int64_t z, int64_t y) {
  if (w->divisor != 0) return 0;
  int64_t n = 1;
  for (int d = 0; d < 2; d++) {
    int64_t o = d == 0 ? z : y, first = lt_window_first(w, d, o), end = lt_window_end(w, d, o),
            last = w->in[d] + (w->count_padding != 0 ? w->padding[d] : 0);
    if (w->count_padding == 0 && first < 0) first = 0;
    n *= (end < last ? end : last) - first;
  }
  return n;
}
/* Divides the sums of windows. */
static inline void FN(divide)(const lt_Windows *w, const int64_t *columns, int64_t rows,
                              const T *sum, T *y, int64_t n) {
  if (rows == 0) {
    for (int64_t i = 0; i < n; i++) y[i] = sum[i] / (T)w->divisor;
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = sum[i] / (T)(int32_t)(rows * columns[i]);
  }
}

/* Returns whether all elements of all windows of a row are inside of the input. */
static inline bool FN(all_inside)(const lt_Windows *w) {
  return w->padding[2] == 0 && (w->out[2] - 1) * w->stride[2] + w->window[2] <= w->in[2];
}
/* Adds the `size` elements of each of n windows of a row, `s` apart, to the sums. */
static inline void FN(add_windows)(const T *x, int64_t s, int64_t size, int64_t n, T *sum) {
  for (int64_t i = 0; i < n; i++, x += s) {
    T v = sum[i];
    for (int64_t a = 0; a < size; a++) v += x[a];
    sum[i] = v;
  }
}

static void FN(avg_pool)(const lt_Windows *w, const int64_t *columns, const T *x, T *y,
                         int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], s = w->stride[2];
  bool by_window = s > 2 && FN(all_inside)(w); /* larger steps are slow in vectors */
  for (int64_t row = from; row < to; row++) {
    int64_t oy = row % w->out[1], oz = row / w->out[1] % w->out[0];
    FN(Span) r = FN(span)(w, 1, oy), z = FN(span)(w, 0, oz);
    const T *source = x + row / w->out[1] / w->out[0] * plane;
    for (int64_t x0 = 0; x0 < w->out[2]; x0 += CHUNK) {
      int64_t n = w->out[2] - x0 < CHUNK ? w->out[2] - x0 : CHUNK, low, high;
      T sum[CHUNK];
      for (int64_t i = 0; i < n; i++) sum[i] = 0;
      for (int64_t k = z.first; k < z.end; k++)
        for (int64_t j = r.first; j < r.end; j++) {
          const T *input = source + (k * w->in[1] + j) * w->in[2];
          if (by_window) FN(add_windows)(input + x0 * s, s, w->window[2], n, sum);
          for (int64_t a = 0; a < w->window[2] && !by_window; a++) {
            int64_t offset = a - w->padding[2];
            FN(inside)(w, offset, x0, x0 + n, &low, &high);
            if (low >= high) continue;
            const T *line = input + low * s + offset;
            BY_STEP(ADD_ROW, s, line, high - low, sum + (low - x0));
          }
        }
      FN(divide)(w, columns + x0, FN(rows_of)(w, oz, oy), sum, y + row * w->out[2] + x0, n);
    }
  }
}

/* Adds the gradients `g` of n windows of a row, from window x0 on, to a row of the input. */
static inline void FN(spread)(const lt_Windows *w, T *line, const T *g, int64_t x0, int64_t n) {
  int64_t s = w->stride[2], low, high;
  if (w->window[2] == 0) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t c = lt_window_first(w, 2, x0 + i), e = lt_window_end(w, 2, x0 + i); c < e; c++)
        line[c] += g[i];
    return;
  }
  if (s == 2 && w->window[2] == 2 && w->padding[2] == 0 && (x0 + n) * 2 <= w->in[2]) {
    line += 2 * x0;
    for (int64_t i = 0; i < n; i++) {
      line[2 * i] += g[i];
      line[2 * i + 1] += g[i];
    }
    return;
  }
  for (int64_t a = w->window[2] - 1; a >= 0; a--) { /* so that windows are added in their order */
    int64_t offset = a - w->padding[2];
    FN(inside)(w, offset, x0, x0 + n, &low, &high);
    if (low >= high) continue;
    BY_STEP(ADD_TO_ROW, s, line + low * s + offset, high - low, g + (low - x0));
  }
}

static void FN(avg_pool_backward)(const lt_Windows *w, const int64_t *columns, const T *g, T *dx,
                                  int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], rows = w->out[0] * w->out[1];
  memset(dx + from * plane, 0, (size_t)((to - from) * plane) * sizeof(T));
  for (int64_t row = from * rows; row < to * rows; row++) {
    int64_t oy = row % w->out[1], oz = row / w->out[1] % w->out[0];
    FN(Span) r = FN(span)(w, 1, oy), z = FN(span)(w, 0, oz);
    T *target = dx + row / rows * plane, part[CHUNK];
    for (int64_t x0 = 0; x0 < w->out[2]; x0 += CHUNK) {
      int64_t n = w->out[2] - x0 < CHUNK ? w->out[2] - x0 : CHUNK;
      FN(divide)(w, columns + x0, FN(rows_of)(w, oz, oy), g + row * w->out[2] + x0, part, n);
      for (int64_t k = z.first; k < z.end; k++)
        for (int64_t j = r.first; j < r.end; j++)
          FN(spread)(w, target + (k * w->in[1] + j) * w->in[2], part, x0, n);
    }
  }
}

static void FN(max_pool_backward)(const lt_Windows *w, const T *g, const int64_t *index, T *dx,
                                  int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], n = w->out[0] * w->out[1] * w->out[2];
  for (int64_t k = from; k < to; k++) {
    T *target = dx + k * plane;
    memset(target, 0, (size_t)plane * sizeof(T));
    for (int64_t i = k * n; i < (k + 1) * n; i++) {
      uint64_t at = (uint64_t)(index[i] - LT_INDEX_BASE);
      if (at < (uint64_t)plane) target[at] += g[i];
    }
  }
}

static void FN(im2col)(const lt_Windows *w, const T *x, T *y, int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], s = w->stride[2], low, high;
  for (int64_t row = from; row < to; row++) {
    int64_t a = row % w->window[2], b = row / w->window[2] % w->window[1],
            c = row / w->window[2] / w->window[1] % w->window[0],
            offset = a * w->dilation[2] - w->padding[2];
    const T *source = x + row / w->window[2] / w->window[1] / w->window[0] * plane;
    T *target = y + row * w->out[0] * w->out[1] * w->out[2];
    FN(inside)(w, offset, 0, w->out[2], &low, &high);
    for (int64_t o = 0; o < w->out[0] * w->out[1]; o++, target += w->out[2]) {
      int64_t k = o / w->out[1] * w->stride[0] - w->padding[0] + c * w->dilation[0],
              j = o % w->out[1] * w->stride[1] - w->padding[1] + b * w->dilation[1];
      bool none = k < 0 || k >= w->in[0] || j < 0 || j >= w->in[1] || low >= high;
      memset(target, 0, (size_t)(none ? w->out[2] : low) * sizeof(T));
      if (none) continue;
      const T *line = source + (k * w->in[1] + j) * w->in[2] + offset;
      if (s == 1)
        memcpy(target + low, line + low, (size_t)(high - low) * sizeof(T));
      else
        for (int64_t i = low; i < high; i++) target[i] = line[i * s];
      memset(target + high, 0, (size_t)(w->out[2] - high) * sizeof(T));
    }
  }
}

/* Planes from..to. */
static void FN(col2im)(const lt_Windows *w, const T *y, T *x, int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], s = w->stride[2], low, high;
  int64_t kernel = w->window[0] * w->window[1] * w->window[2];
  memset(x + from * plane, 0, (size_t)((to - from) * plane) * sizeof(T));
  for (int64_t row = from * kernel; row < to * kernel; row++) {
    int64_t a = row % w->window[2], b = row / w->window[2] % w->window[1],
            c = row / w->window[2] / w->window[1] % w->window[0],
            offset = a * w->dilation[2] - w->padding[2];
    T *target = x + row / kernel * plane;
    const T *source = y + row * w->out[0] * w->out[1] * w->out[2];
    FN(inside)(w, offset, 0, w->out[2], &low, &high);
    for (int64_t o = 0; o < w->out[0] * w->out[1]; o++, source += w->out[2]) {
      int64_t k = o / w->out[1] * w->stride[0] - w->padding[0] + c * w->dilation[0],
              j = o % w->out[1] * w->stride[1] - w->padding[1] + b * w->dilation[1];
      if (k < 0 || k >= w->in[0] || j < 0 || j >= w->in[1] || low >= high) continue;
      T *line = target + (k * w->in[1] + j) * w->in[2] + low * s + offset;
      BY_STEP(ADD_TO_ROW, s, line, high - low, source + low);
    }
  }
}

/* Computes an element, or `inner` of them, as a sum of n elements, each times a weight. */
static inline void FN(weigh)(const T *source, int64_t inner, int64_t n, const int64_t *place,
                             const T *weight, T *restrict target) {
  if (n == 0) {
    memset(target, 0, (size_t)inner * sizeof(T));
    return;
  }
  const T *v = source + place[0] * inner, f = weight[0];
  if (n == 1) {
    for (int64_t i = 0; i < inner; i++) target[i] = f * v[i];
  } else {
    const T *u = source + place[1] * inner, g = weight[1];
    for (int64_t i = 0; i < inner; i++) target[i] = f * v[i] + g * u[i];
  }
  for (int64_t k = 2; k < n; k++) {
    const T *u = source + place[k] * inner, g = weight[k];
    for (int64_t i = 0; i < inner; i++) target[i] += g * u[i];
  }
}

/* Computes the first elements of a line, up to one that is not a sum of `width` = 1 or 2 elements.
 * Returns their number. */
static inline int64_t FN(weigh_narrow)(const T *source, const lt_ResampleTable *t, int64_t out,
                                       T *restrict target) {
  const int64_t *place = t->place;
  const T *weight = t->weight;
  int64_t n = 0;
  while (n < out && t->count[n] == t->width) n++;
  if (t->width == 1)
    for (int64_t o = 0; o < n; o++) target[o] = weight[o] * source[place[o]];
  else
    for (int64_t o = 0; o < n; o++)
      target[o] =
          weight[2 * o] * source[place[2 * o]] + weight[2 * o + 1] * source[place[2 * o + 1]];
  return n;
}

/* Returns whether a line of the result has each element of the input twice. */
static inline bool FN(doubles)(const lt_Resample *p, const lt_ResampleTable *t) {
  bool ok = t->width == 1 && p->out == 2 * p->in;
  for (int64_t o = 0; ok && o < p->out; o++) ok = t->count[o] == 1 && t->place[o] == o / 2;
  return ok;
}

static void FN(resample)(const lt_Resample *p, const lt_ResampleTable *t, const T *x, T *y,
                         int64_t from, int64_t to) {
  int64_t inner = p->inner, width = t->width;
  if (inner == 1 && FN(doubles)(p, t)) {
    for (int64_t i = from * p->in; i < to * p->in; i++) y[2 * i] = y[2 * i + 1] = x[i];
    return;
  }
  for (int64_t line = from; line < to; line++) {
    const T *source = x + line * p->in * inner;
    T *target = y + line * p->out * inner;
    int64_t o = 0;
    if (inner == 1 && (width == 1 || width == 2)) o = FN(weigh_narrow)(source, t, p->out, target);
    for (; o < p->out; o++) FN(weigh)
    (source, inner, t->count[o], t->place + o * width, (const T *)t->weight + o * width,
     target + o * inner);
  }
}

static void FN(resample_backward)(const lt_Resample *p, const lt_ResampleTable *t, const T *g,
                                  T *dx, int64_t from, int64_t to) {
  int64_t inner = p->inner;
  memset(dx + from * p->in * inner, 0, (size_t)((to - from) * p->in * inner) * sizeof(T));
  for (int64_t line = from; line < to; line++) {
    T *target = dx + line * p->in * inner;
    const T *source = g + line * p->out * inner;
    for (int64_t o = 0; o < p->out; o++, source += inner)
      for (int64_t k = 0; k < t->count[o]; k++) {
        T *v = target + t->place[o * t->width + k] * inner;
        const T f = ((const T *)t->weight)[o * t->width + k];
        for (int64_t i = 0; i < inner; i++) v[i] += f * source[i];
      }
  }
}
#undef CHUNK
#undef BY_STEP
#undef TAKE_LARGER
#undef KEEP_LARGER
#undef ADD_ROW
#undef ADD_TO_ROW
