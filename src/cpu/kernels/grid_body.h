/* grid_body.h: the loops of grid_sample (planes.h) for one type T. FN(name) is a function's
 * name. */

/* The elements in one dim that the places of a block are between: their numbers, -1 for those
 * outside of the image, and their weights. */
typedef struct FN(Line) {
  int32_t place[4][LT_GRID_BLOCK];
  T weight[4][LT_GRID_BLOCK];
  T part[LT_GRID_BLOCK]; /* how far the places are behind the first one, or the second of four */
} FN(Line);
/* The corners of the cells around the places of a block, or the neighbours for cubic interpolation:
 * their elements in a plane, -1 for those outside of it, and their weights. */
typedef struct FN(Corners) {
  FN(Line) line[3]; /* of the last dims */
  int32_t place[16][LT_GRID_BLOCK];
  T weight[16][LT_GRID_BLOCK];
} FN(Corners);

/* Returns the number of corners of a cell; for cubic interpolation, of neighbours. */
static inline int FN(count_corners)(const lt_Grid *p) {
  return p->mode == LT_GRID_NEAREST ? 1 : p->mode == LT_GRID_CUBIC ? 16 : 1 << p->dims;
}

/* Calls a loop over places with the arguments of dim d alone, of which `padding` is a constant: the
 * loop is vectorized then. */
#define BY_PADDING(call, p, d, ...)                                                                \
  do {                                                                                             \
    lt_Grid dim_ = {.in = {(p)->in[d], 1, 1}, .align_corners = (p)->align_corners};                \
    if ((p)->padding == LT_GRID_ZEROS)                                                             \
      dim_.padding = LT_GRID_ZEROS, call(dim_, __VA_ARGS__);                                       \
    else if ((p)->padding == LT_GRID_BORDER)                                                       \
      dim_.padding = LT_GRID_BORDER, call(dim_, __VA_ARGS__);                                      \
    else                                                                                           \
      dim_.padding = LT_GRID_REFLECTION, call(dim_, __VA_ARGS__);                                  \
  } while (0)

/* Replaces coordinates of n places by positions. */
static inline __attribute__((always_inline)) void FN(grid_positions)(lt_Grid p, T *v, int64_t n) {
  for (int64_t j = 0; j < n; j++) v[j] = FN(grid_position)(&p, 0, v[j]);
}

/* Returns the number of an element, -1 for one outside of `size` elements. */
static inline int32_t FN(place_of)(T at, T size) {
  T inside = (at >= 0) & (at < size) ? at : -1;
  return (int32_t)inside;
}
/* Compute the lines of n places at positions v. */
static void FN(nearest_line)(T size, const T *v, int64_t n, FN(Line) *restrict line) {
  for (int64_t j = 0; j < n; j++) {
    line->place[0][j] = FN(place_of)(FN(grid_nearest)(v[j]), size);
    line->weight[0][j] = 1;
  }
}
static void FN(linear_line)(T size, const T *v, int64_t n, FN(Line) *restrict line) {
  for (int64_t j = 0; j < n; j++) {
    T low = FLOOR(v[j]), part = v[j] - low;
    line->part[j] = part;
    line->place[0][j] = FN(place_of)(low, size);
    line->place[1][j] = FN(place_of)(low + 1, size);
    line->weight[0][j] = 1 - part;
    line->weight[1][j] = part;
  }
}
/* The same at coordinates v. */
static inline __attribute__((always_inline)) void FN(cubic_line)(lt_Grid p, const T *v, int64_t n,
                                                                 FN(Line) *restrict line) {
  for (int64_t j = 0; j < n; j++) {
    T at[4], weight[4];
    line->part[j] = FN(grid_cubic)(&p, 0, v[j], at, weight);
    for (int k = 0; k < 4; k++) {
      line->place[k][j] = (int32_t)at[k];
      line->weight[k][j] = weight[k];
    }
  }
}

/* Copies the coordinates of n places in dim d. */
static inline void FN(coordinates)(const lt_Grid *p, const T *grid, int d, int64_t n, T *v) {
  grid += 2 - d;
  if (p->dims == 2)
    for (int64_t j = 0; j < n; j++) v[j] = grid[2 * j];
  else
    for (int64_t j = 0; j < n; j++) v[j] = grid[3 * j];
}

/* Fills in the corners of n places. */
static void FN(grid_corners)(const lt_Grid *p, const T *grid, int64_t n, FN(Corners) * c) {
  int used = (int)p->dims, wide = p->mode == LT_GRID_NEAREST ? 1 : p->mode == LT_GRID_CUBIC ? 4 : 2;
  for (int d = 3 - used; d < 3; d++) {
    T v[LT_GRID_BLOCK];
    FN(coordinates)(p, grid, d, n, v);
    if (p->mode == LT_GRID_CUBIC) {
      BY_PADDING(FN(cubic_line), p, d, v, n, &c->line[d]);
      continue;
    }
    BY_PADDING(FN(grid_positions), p, d, v, n);
    if (p->mode == LT_GRID_NEAREST)
      FN(nearest_line)((T)p->in[d], v, n, &c->line[d]);
    else
      FN(linear_line)((T)p->in[d], v, n, &c->line[d]);
  }
  const FN(Line) *y = &c->line[1], *x = &c->line[2], *z = &c->line[0];
  int32_t width = (int32_t)p->in[2], plane = width * (int32_t)p->in[1];
  for (int corner = 0; corner < FN(count_corners)(p); corner++) {
    int32_t *restrict place = c->place[corner];
    T *restrict weight = c->weight[corner];
    int i = corner % wide, k = corner / wide % wide, l = corner / wide / wide;
    if (used == 2)
      for (int64_t j = 0; j < n; j++) {
        int32_t row = y->place[k][j], column = x->place[i][j];
        place[j] = (row * width + column) | (row | column) >> 31; /* -1 if one of them is */
        weight[j] = y->weight[k][j] * x->weight[i][j];
      }
    else
      for (int64_t j = 0; j < n; j++) {
        int32_t depth = z->place[l][j], row = y->place[k][j], column = x->place[i][j];
        place[j] = (depth * plane + row * width + column) | (depth | row | column) >> 31;
        weight[j] = z->weight[l][j] * y->weight[k][j] * x->weight[i][j];
      }
  }
}

/* Adds the elements of a plane at some corners of n places times weights, which may be NaN, to
 * sums, or with `more` = false to 0: results that are not in a cache are not read. Elements outside
 * are 0. */
static inline __attribute__((always_inline)) void
FN(add_elements)(const T *source, int32_t (*place)[LT_GRID_BLOCK], const T *weight, int corners,
                 bool more, int64_t n, T *restrict sum) {
  for (int64_t j = 0; j < n; j++) {
    T total = more ? sum[j] : 0;
    for (int i = 0; i < corners; i++) {
      int32_t at = place[i][j];
      /* gathered for one corner; single loads are faster for several */
      T v = source[corners == 1 ? at & ~(at >> 31) : at < 0 ? 0 : at];
      total += (at < 0 ? 0 : v) * weight[i * LT_GRID_BLOCK + j];
    }
    sum[j] = total;
  }
}

static void FN(grid_sample)(const lt_Grid *p, const T *x, const T *grid, T *y, int64_t from,
                            int64_t to) {
  int64_t blocks = (p->points + LT_GRID_BLOCK - 1) / LT_GRID_BLOCK,
          plane = p->in[0] * p->in[1] * p->in[2];
  int corners = FN(count_corners)(p);
  FN(Corners) c;
  for (int64_t block = from; block < to; block++) {
    int64_t image = block / blocks, first = block % blocks * LT_GRID_BLOCK,
            n = p->points - first < LT_GRID_BLOCK ? p->points - first : LT_GRID_BLOCK;
    FN(grid_corners)(p, grid + (image * p->points + first) * p->dims, n, &c);
    for (int64_t k = 0; k < p->channels; k++) {
      const T *source = x + (image * p->channels + k) * plane;
      T *restrict target = y + (image * p->channels + k) * p->points + first;
      if (corners == 1)
        FN(add_elements)(source, c.place, c.weight[0], 1, false, n, target);
      else
        FN(add_elements)(source, c.place, c.weight[0], 4, false, n, target);
      for (int i = 4; i < corners; i += 4)
        FN(add_elements)(source, c.place + i, c.weight[i], 4, true, n, target);
    }
  }
}

/* Adds gradients times the weights of the corners to the elements of a plane. */
static inline __attribute__((always_inline)) void
FN(add_corners)(const FN(Corners) * c, int corners, int64_t n, const T *g, T *dx) {
  for (int64_t j = 0; j < n; j++)
    for (int corner = 0; corner < corners; corner++) {
      int32_t place = c->place[corner][j];
      if (place >= 0) dx[place] += c->weight[corner][j] * g[j];
    }
}

static void FN(grid_sample_backward)(const lt_Grid *p, const T *g, const T *grid, T *dx,
                                     int64_t from, int64_t to) {
  int64_t plane = p->in[0] * p->in[1] * p->in[2], points = p->points;
  FN(Corners) c;
  memset(dx + from * plane, 0, (size_t)((to - from) * plane) * sizeof(T));
  for (int64_t end; from < to; from = end) {
    int64_t image = from / p->channels;
    end = (image + 1) * p->channels < to ? (image + 1) * p->channels : to;
    for (int64_t first = 0; first < points; first += LT_GRID_BLOCK) {
      int64_t n = points - first < LT_GRID_BLOCK ? points - first : LT_GRID_BLOCK;
      FN(grid_corners)(p, grid + (image * points + first) * p->dims, n, &c);
      for (int64_t k = from; k < end; k++)
        if (p->mode == LT_GRID_CUBIC)
          FN(add_corners)(&c, 16, n, g + k * points + first, dx + k * plane);
        else if (p->mode == LT_GRID_NEAREST)
          FN(add_corners)(&c, 1, n, g + k * points + first, dx + k * plane);
        else if (p->dims == 2)
          FN(add_corners)(&c, 4, n, g + k * points + first, dx + k * plane);
        else
          FN(add_corners)(&c, 8, n, g + k * points + first, dx + k * plane);
    }
  }
}

/* Adds values of a corner times the derivatives of its weights for the parts in dim d. */
static inline void FN(add_difference)(const FN(Corners) * c, int dims, int corner, int d, int64_t n,
                                      const T *values, T *total) {
  T weighted[LT_GRID_BLOCK];
  memcpy(weighted, values, (size_t)n * sizeof(T));
  for (int e = 3 - dims; e < 3; e++) {
    const T *part = c->line[e].part;
    bool high = corner >> (2 - e) & 1;
    if (e == d && !high)
      for (int64_t j = 0; j < n; j++) weighted[j] = -weighted[j];
    else if (e != d && high)
      for (int64_t j = 0; j < n; j++) weighted[j] *= part[j];
    else if (e != d)
      for (int64_t j = 0; j < n; j++) weighted[j] *= 1 - part[j];
  }
  for (int64_t j = 0; j < n; j++) total[j] += weighted[j];
}

/* Computes the derivatives of n places in one dim. */
static inline __attribute__((always_inline)) void FN(grid_slopes)(lt_Grid p, const T *v, int64_t n,
                                                                  T *restrict slope) {
  for (int64_t j = 0; j < n; j++) slope[j] = FN(grid_slope)(&p, 0, v[j]);
}

/* Computes the derivatives of the weights of grid_weights. */
static inline void FN(weight_slopes)(T t, T *slope) {
  T u = 1 - t, a = -(T)3 / (T)4;
  slope[0] = (3 * a * (t + 1) - 10 * a) * (t + 1) + 8 * a;
  slope[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;
  slope[2] = -(3 * (a + 2) * u - 2 * (a + 3)) * u;
  slope[3] = -((3 * a * (u + 1) - 10 * a) * (u + 1) + 8 * a);
}
/* Computes the gradients of n places with cubic interpolation from the sums of their neighbours. */
static void FN(cubic_gradients)(const lt_Grid *p, const FN(Corners) * c, int64_t n,
                                T (*sum)[LT_GRID_BLOCK], T *target) {
  T width = (T)(p->align_corners ? p->in[2] - 1 : p->in[2]) / 2,
    height = (T)(p->align_corners ? p->in[1] - 1 : p->in[1]) / 2;
  for (int64_t j = 0; j < n; j++) {
    T down[4], across[4], steep[4], along[4], dx = 0, dy = 0;
    FN(grid_weights)(c->line[1].part[j], down);
    FN(grid_weights)(c->line[2].part[j], across);
    FN(weight_slopes)(c->line[1].part[j], steep);
    FN(weight_slopes)(c->line[2].part[j], along);
    for (int k = 0; k < 16; k++) {
      dx += sum[k][j] * (down[k / 4] * along[k % 4]);
      dy += sum[k][j] * (steep[k / 4] * across[k % 4]);
    }
    target[2 * j] = dx * width;
    target[2 * j + 1] = dy * height;
  }
}

static void FN(grid_sample_grid_backward)(const lt_Grid *p, const T *g, const T *x, const T *grid,
                                          T *dgrid, int64_t from, int64_t to) {
  int64_t blocks = (p->points + LT_GRID_BLOCK - 1) / LT_GRID_BLOCK,
          plane = p->in[0] * p->in[1] * p->in[2];
  int used = (int)p->dims, corners = FN(count_corners)(p);
  FN(Corners) c;
  T sum[16][LT_GRID_BLOCK]; /* over the channels, of the gradients times a corner's elements */
  for (int64_t block = from; block < to; block++) {
    int64_t image = block / blocks, first = block % blocks * LT_GRID_BLOCK,
            n = p->points - first < LT_GRID_BLOCK ? p->points - first : LT_GRID_BLOCK,
            at = (image * p->points + first) * used;
    FN(grid_corners)(p, grid + at, n, &c);
    memset(sum, 0, (size_t)corners * sizeof *sum);
    for (int64_t k = image * p->channels; k < (image + 1) * p->channels; k++) {
      const T *source = x + k * plane, *values = g + k * p->points + first;
      for (int corner = 0; corner < corners; corner++)
        FN(add_elements)(source, c.place + corner, values, 1, true, n, sum[corner]);
    }
    if (p->mode == LT_GRID_CUBIC) {
      FN(cubic_gradients)(p, &c, n, sum, dgrid + at);
      continue;
    }
    for (int d = 3 - used; d < 3; d++) {
      T total[LT_GRID_BLOCK] = {0}, v[LT_GRID_BLOCK], slope[LT_GRID_BLOCK];
      for (int corner = 0; corner < corners; corner++)
        FN(add_difference)(&c, used, corner, d, n, sum[corner], total);
      FN(coordinates)(p, grid + at, d, n, v);
      BY_PADDING(FN(grid_slopes), p, d, v, n, slope);
      T *target = dgrid + at + (2 - d);
      for (int64_t j = 0; j < n; j++) target[j * used] = total[j] * slope[j];
    }
  }
}

#undef BY_PADDING
