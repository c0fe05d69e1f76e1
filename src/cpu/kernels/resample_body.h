/* resample_body.h: the loops of interpolation (planes.h) for one type T. FN(name) is a function's
 * name. */

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

/* Computes the first elements of a line, up to one that is not a sum of `width` = 1, 2 or 4
 * elements. Returns their number. */
static inline int64_t FN(weigh_narrow)(const T *source, const lt_ResampleTable *t, int64_t out,
                                       T *restrict target) {
  const int64_t *place = t->place;
  const T *weight = t->weight;
  int64_t n = 0;
  while (n < out && t->count[n] == t->width) n++;
  if (t->width == 1)
    for (int64_t o = 0; o < n; o++) target[o] = weight[o] * source[place[o]];
  else if (t->width == 2)
    for (int64_t o = 0; o < n; o++)
      target[o] =
          weight[2 * o] * source[place[2 * o]] + weight[2 * o + 1] * source[place[2 * o + 1]];
  else
    for (int64_t o = 0; o < n; o++, place += 4, weight += 4)
      target[o] = weight[0] * source[place[0]] + weight[1] * source[place[1]] +
                  weight[2] * source[place[2]] + weight[3] * source[place[3]];
  return n;
}

/* Computes a line of doubled pairs (lt_ResampleTable), all but its first and last element. */
static inline void FN(weigh_pairs)(const T *x, const T *weight, int64_t n, T *restrict y) {
  const T a = weight[2], b = weight[3], c = weight[4], d = weight[5];
  for (int64_t i = 0; i < n - 1; i++) {
    y[2 * i + 1] = a * x[i] + b * x[i + 1];
    y[2 * i + 2] = c * x[i] + d * x[i + 1];
  }
}

/* Rounds n sums of uint8. */
static inline void FN(round_bytes)(const lt_Resample *p, T *sum, int64_t n) {
  if (p->fixed == 0) return;
  for (int64_t i = 0; i < n; i++) sum[i] = FN(resample_byte)(sum[i]);
}

/* Computes lines from..to, LT_RESAMPLE_LINES together. Returns the first of those that are left,
 * fewer than that. */
static int64_t FN(weigh_lines)(const lt_Resample *p, const lt_ResampleTable *t, const T *x, T *y,
                               int64_t from, int64_t to) {
  enum { LINES = LT_RESAMPLE_LINES };
  const int64_t size = sizeof(T), in = p->in, out = p->out;
  T *source = to - from < LINES ? NULL : malloc((size_t)((in + out) * LINES * size));
  if (!source) return from;
  T *target = source + in * LINES;
  const lt_Mover *mover = lt_mover(size);
  for (; to - from >= LINES; from += LINES) {
    mover->tile(in, LINES, (char *)source, LINES * size, (const char *)(x + from * in), in * size);
    for (int64_t o = 0; o < out; o++) FN(weigh)
    (source, LINES, t->count[o], t->place + o * t->width, (const T *)t->weight + o * t->width,
     target + o * LINES);
    FN(round_bytes)(p, target, out * LINES);
    mover->tile(LINES, out, (char *)(y + from * out), out * size, (const char *)target,
                LINES * size);
  }
  free(source);
  return from;
}

static void FN(resample)(const lt_Resample *p, const lt_ResampleTable *t, const T *x, T *y,
                         int64_t from, int64_t to) {
  int64_t inner = p->inner, width = t->width;
  if (inner == 1 && t->doubles) {
    for (int64_t i = from * p->in; i < to * p->in; i++) y[2 * i] = y[2 * i + 1] = x[i];
    return;
  }
  bool pairs = inner == 1 && t->doubles_pairs;
  if (inner == 1 && !pairs) from = FN(weigh_lines)(p, t, x, y, from, to);
  for (int64_t line = from; line < to; line++) {
    const T *source = x + line * p->in * inner;
    T *target = y + line * p->out * inner;
    int64_t o = 0;
    if (pairs) {
      const T *weight = t->weight;
      FN(weigh)(source, 1, t->count[0], t->place, weight, target);
      FN(weigh_pairs)(source, weight, p->in, target);
      o = p->out - 1;
    } else if (inner == 1 && (width == 1 || width == 2 || width == 4)) {
      o = FN(weigh_narrow)(source, t, p->out, target);
    }
    for (; o < p->out; o++) FN(weigh)
    (source, inner, t->count[o], t->place + o * width, (const T *)t->weight + o * width,
     target + o * inner);
    FN(round_bytes)(p, target, p->out * inner);
  }
}

static void FN(resample_backward)(const lt_Resample *p, const lt_ResampleTable *t, const T *g,
                                  T *dx, int64_t from, int64_t to) {
  int64_t inner = p->inner;
  if (inner == 1 && t->doubles) {
    for (int64_t i = from * p->in; i < to * p->in; i++) dx[i] = (T)0 + g[2 * i] + g[2 * i + 1];
    return;
  }
  memset(dx + from * p->in * inner, 0, (size_t)((to - from) * p->in * inner) * sizeof(T));
  for (int64_t line = from; line < to; line++) {
    T *target = dx + line * p->in * inner;
    const T *source = g + line * p->out * inner, *weight = t->weight;
    for (int64_t o = 0; o < p->out && inner == 1; o++)
      for (int64_t k = o * t->width, end = k + t->count[o]; k < end; k++)
        target[t->place[k]] += weight[k] * source[o];
    for (int64_t o = 0; o < p->out && inner > 1; o++, source += inner)
      for (int64_t k = 0; k < t->count[o]; k++) {
        T *v = target + t->place[o * t->width + k] * inner;
        const T f = ((const T *)t->weight)[o * t->width + k];
        for (int64_t i = 0; i < inner; i++) v[i] += f * source[i];
      }
  }
}
