/* convolution_blocks.c: convolutions as products of matrices. A block of output positions is laid
 * out as a matrix of {channels * taps, positions} (its columns), so that
 *
 *     out = weight @ columns     columns = weight^T @ out, added to in     weight = out @ columns^T
 *
 * Blocks are small enough for the processor's cache: memory is bounded for any batch. A block is a
 * range of one image's positions or, where images are small, several whole images.
 *
 * Invariant: blocks and tasks depend on sizes only, and each element of a result is computed by one
 * task, so results are the same for every number of threads. */
#include "blas.h"
#include "convolution.h"
#include "half.h"
#include "kernel_support.h"
#include "moves.h"

enum {
  COLUMNS = 1 << 19, /* elements of a block of columns, about */
  NARROW = 192,      /* positions of images that are too small for a block of their own */
  WIDTH = 384,       /* positions of several small images in a block, about */
  ROWS = 512,        /* of the columns of one task of a weight's gradient, about */
  TASKS = 8          /* of a weight's gradient at least: a small one is summed in parts */
};

/* A call, its blocks and its tasks. */
typedef struct Work {
  const lt_ConvolutionCall *call;
  lt_Convolution g;
  int64_t in, out, taps; /* positions of a channel on both sides, taps of the kernel */
  bool pointwise;
  int64_t blocks, per_image; /* per_image: blocks of one image; 0: a block has whole images */
  int64_t width;             /* of the widest block */
  int64_t range, ranges;     /* input channels of a task, and tasks that share a group */
  int64_t parts;             /* partial sums */
  size_t size;               /* bytes of an element */
  char *partial;
} Work;

/* Images [n, m) and, of a single image, positions [from, to) of its output. */
typedef struct Block {
  int64_t n, m, from, to, width;
} Block;

static Block block_at(const Work *w, int64_t i) {
  Block b = {.from = 0, .to = w->out};
  if (w->per_image) {
    int64_t part = i % w->per_image;
    b.n = i / w->per_image;
    b.m = b.n + 1;
    b.from = w->out * part / w->per_image;
    b.to = w->out * (part + 1) / w->per_image;
  } else {
    b.n = w->g.batch * i / w->blocks;
    b.m = w->g.batch * (i + 1) / w->blocks;
  }
  b.width = (b.m - b.n) * (b.to - b.from);
  return b;
}

/* Chooses the blocks for columns of `rows` rows. */
static void choose_blocks(Work *w, int64_t rows) {
  int64_t batch = w->g.batch, most = COLUMNS / (rows > 0 ? rows : 1) / 16 * 16;
  if (most < 64) most = 64;
  if (batch == 0 || w->out == 0) {
    w->per_image = w->width = 1;
    return;
  }
  if (w->out >= NARROW || w->out > most) {
    w->per_image = (w->out + most - 1) / most;
    w->blocks = batch * w->per_image;
    w->width = (w->out + w->per_image - 1) / w->per_image + 1;
    return;
  }
  int64_t target = most < WIDTH ? most : WIDTH;
  w->blocks = ((batch * w->out + target - 1) / target + 3) / 4 * 4;
  if (w->blocks > batch) w->blocks = batch;
  w->width = (batch + w->blocks - 1) / w->blocks * w->out;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Returns the first output coordinate o, in 0..n, for which o * stride + shift >= bound. */
static int64_t first_from(int64_t bound, int64_t shift, int64_t stride, int64_t n) {
  int64_t least = bound - shift;
  least = least <= 0 ? 0 : (least + stride - 1) / stride;
  return least < n ? least : n;
}

/* The columns of one channel and tap: for each run of positions in a row of the output, from which
 * offset of the input it is read. visit() gets the start of the run in the block, its length, the
 * part [low, high) of it that is inside of the input, and the offset of element `low`. */
#define EACH_RUN(W, B, K0, K1, K2, VISIT)                                                          \
  do {                                                                                             \
    const lt_Convolution *G = &(W)->g;                                                             \
    int64_t at = 0;                                                                                \
    const int64_t shift0 = (K0)*G->dilation[0] - G->padding[0],                                    \
                  shift1 = (K1)*G->dilation[1] - G->padding[1],                                    \
                  shift2 = (K2)*G->dilation[2] - G->padding[2];                                    \
    const int64_t inner = first_from(0, shift2, G->stride[2], G->out[2]),                          \
                  outer = first_from(G->in[2], shift2, G->stride[2], G->out[2]);                   \
    for (int64_t image = (B)->n; image < (B)->m; image++)                                          \
      for (int64_t o = (B)->from; o < (B)->to;) {                                                  \
        int64_t o2 = o % G->out[2], row = o / G->out[2], o1 = row % G->out[1],                     \
                o0 = row / G->out[1], length = G->out[2] - o2;                                     \
        if (length > (B)->to - o) length = (B)->to - o;                                            \
        int64_t i0 = o0 * G->stride[0] + shift0, i1 = o1 * G->stride[1] + shift1;                  \
        int64_t low = inner > o2 ? inner - o2 : 0, high = outer - o2;                              \
        if (high > length) high = length;                                                          \
        if (i0 < 0 || i0 >= G->in[0] || i1 < 0 || i1 >= G->in[1] || high <= low) low = high = 0;   \
        int64_t offset = (i0 * G->in[1] + i1) * G->in[2] + (o2 + low) * G->stride[2] + shift2;     \
        VISIT;                                                                                     \
        at += length;                                                                              \
        o += length;                                                                               \
      }                                                                                            \
  } while (0)

/* Element (channel, position) of the input side of an image. */
#define PLANE(T, memory, image, channel)                                                           \
  ((T *)(memory) + ((image)*w->g.groups * w->g.inputs + (channel)) * w->in)

#define ELEMENTS(T, F)                                                                             \
  /* Writes the columns of input channels [first, last), counted over all groups. */               \
  static void columns_##F(const Work *w, const Block *b, int64_t first, int64_t last, T *to) {     \
    const int64_t step = w->g.stride[2];                                                           \
    for (int64_t c = first; c < last; c++)                                                         \
      for (int64_t k0 = 0; k0 < w->g.kernel[0]; k0++)                                              \
        for (int64_t k1 = 0; k1 < w->g.kernel[1]; k1++)                                            \
          for (int64_t k2 = 0; k2 < w->g.kernel[2]; k2++, to += b->width)                          \
            EACH_RUN(w, b, k0, k1, k2, {                                                           \
              const T *from = PLANE(const T, w->call->in, image, c) + offset;                      \
              T *run = to + at;                                                                    \
              for (int64_t j = 0; j < low; j++) run[j] = 0;                                        \
              if (step == 1 && high > low)                                                         \
                memcpy(run + low, from, (size_t)(high - low) * sizeof(T));                         \
              else                                                                                 \
                for (int64_t j = low; j < high; j++) run[j] = from[(j - low) * step];              \
              for (int64_t j = high; j < length; j++) run[j] = 0;                                  \
            });                                                                                    \
  }                                                                                                \
  /* Adds columns to the input channels. */                                                        \
  static void add_columns_##F(const Work *w, const Block *b, int64_t first, int64_t last,          \
                              const T *from) {                                                     \
    const int64_t step = w->g.stride[2];                                                           \
    for (int64_t c = first; c < last; c++)                                                         \
      for (int64_t k0 = 0; k0 < w->g.kernel[0]; k0++)                                              \
        for (int64_t k1 = 0; k1 < w->g.kernel[1]; k1++)                                            \
          for (int64_t k2 = 0; k2 < w->g.kernel[2]; k2++, from += b->width)                        \
            EACH_RUN(w, b, k0, k1, k2, {                                                           \
              T *to = PLANE(T, w->call->in, image, c) + offset;                                    \
              const T *run = from + at + low;                                                      \
              if (step == 1)                                                                       \
                for (int64_t j = 0; j < high - low; j++) to[j] += run[j];                          \
              else                                                                                 \
                for (int64_t j = 0; j < high - low; j++) to[j * step] += run[j];                   \
            });                                                                                    \
  }                                                                                                \
  /* Adds `value` to n elements. */                                                                \
  static void shift_##F(T *x, int64_t n, T value) {                                                \
    for (int64_t i = 0; i < n; i++) x[i] += value;                                                 \
  }                                                                                                \
  static void add_part_##F(T *x, const T *part, int64_t n) {                                       \
    for (int64_t i = 0; i < n; i++) x[i] += part[i];                                               \
  }                                                                                                \
  static void fill_##F(T *x, int64_t n, T value) {                                                 \
    for (int64_t i = 0; i < n; i++) x[i] = value;                                                  \
  }

ELEMENTS(float, f32)
ELEMENTS(double, f64)
ELEMENTS(uint64_t, i64) /* unsigned: wrapping is defined */

/* Evaluates the call of the working dtype. */
#define BY_DTYPE(w, f32_call, f64_call, i64_call)                                                  \
  do {                                                                                             \
    if ((w)->call->work == LT_float32) {                                                           \
      f32_call;                                                                                    \
    } else if ((w)->call->work == LT_float64) {                                                    \
      f64_call;                                                                                    \
    } else {                                                                                       \
      i64_call;                                                                                    \
    }                                                                                              \
  } while (0)

static void columns(const Work *w, const Block *b, int64_t first, int64_t last, void *to) {
  BY_DTYPE(w, columns_f32(w, b, first, last, to), columns_f64(w, b, first, last, to),
           columns_i64(w, b, first, last, to));
}

static void add_columns(const Work *w, const Block *b, int64_t first, int64_t last,
                        const void *from) {
  BY_DTYPE(w, add_columns_f32(w, b, first, last, from), add_columns_f64(w, b, first, last, from),
           add_columns_i64(w, b, first, last, from));
}

/* Adds the bias of a channel to n elements. */
static void add_bias(const Work *w, int64_t channel, void *x, int64_t n) {
  const void *bias = w->call->bias;
  if (bias)
    BY_DTYPE(w, shift_f32(x, n, ((const float *)bias)[channel]),
             shift_f64(x, n, ((const double *)bias)[channel]),
             shift_i64(x, n, ((const uint64_t *)bias)[channel]));
}

/* Sets n elements to the bias of a channel or, without one or with `zero`, to 0. */
static void fill_bias(const Work *w, int64_t channel, void *x, int64_t n, bool zero) {
  const void *bias = w->call->bias;
  if (!bias || zero)
    memset(x, 0, (size_t)n * w->size);
  else
    BY_DTYPE(w, fill_f32(x, n, ((const float *)bias)[channel]),
             fill_f64(x, n, ((const double *)bias)[channel]),
             fill_i64(x, n, ((const uint64_t *)bias)[channel]));
}

/* Rounds x to a 16-bit dtype. */
static float rounded(float x, lt_Dtype dtype) {
  return dtype == LT_float16 ? lt_half_to_float(lt_half_from_float(x))
                             : lt_bfloat16_to_float(lt_bfloat16_from_float(x));
}

/* Adds columns to the input channels, in the order of taps; rounds columns and sums. */
static void add_rounded(const Work *w, const Block *b, int64_t first, int64_t last,
                        const float *from) {
  const int64_t step = w->g.stride[2];
  const lt_Dtype dtype = w->call->rounded;
  for (int64_t c = first; c < last; c++)
    for (int64_t t = 0; t < w->taps; t++, from += b->width) {
      const int64_t k2 = t % w->g.kernel[2], k1 = t / w->g.kernel[2] % w->g.kernel[1],
                    k0 = t / w->g.kernel[2] / w->g.kernel[1];
      EACH_RUN(w, b, k0, k1, k2, {
        float *to = PLANE(float, w->call->in, image, c) + offset;
        const float *run = from + at + low;
        for (int64_t j = 0; j < high - low; j++)
          to[j * step] = rounded(to[j * step] + rounded(run[j], dtype), dtype);
      });
    }
}

static void *element(const Work *w, const void *memory, int64_t i) {
  return (char *)memory + (size_t)i * w->size;
}

/* ---- products -------------------------------------------------------------------------------- */

/* c = a @ b, or with `add` c += a @ b, in int64. */
static void integer_product(int64_t m, int64_t n, int64_t k, lt_Matrix a, lt_Matrix b, bool add,
                            lt_Matrix c) {
  for (int64_t i = 0; i < m; i++) {
    uint64_t *to = (uint64_t *)c.data + i * c.row;
    for (int64_t j = 0; j < n && !add; j++) to[j] = 0;
    for (int64_t p = 0; p < k; p++) {
      uint64_t factor = ((const uint64_t *)a.data)[i * a.row + p * a.column];
      const uint64_t *from = (const uint64_t *)b.data + p * b.row;
      for (int64_t j = 0; j < n; j++) to[j] += factor * from[j * b.column];
    }
  }
}

static void product(const Work *w, int64_t m, int64_t n, int64_t k, lt_Matrix a, lt_Matrix b,
                    bool add, lt_Matrix c) {
  if (w->call->work == LT_int64)
    integer_product(m, n, k, a, b, add, c);
  else
    lt_gemm(w->call->work, m, n, k, 1, a, b, add ? 1 : 0, c);
}

/* Runs tasks 0..n - 1 of a call of `work` multiplications on several threads; each has `scratch`
 * elements of memory of its own. */
static bool run_tasks(Work *w, int64_t n, double work, int64_t scratch,
                      void (*task)(const void *work, int64_t i, char *memory)) {
  bool library = w->call->work != LT_int64;
  int threads = lt_num_threads(), team = 1;
  if (n > 1 && work > 4 * LT_GRAIN && (!library || lt_gemm_nests()))
    team = lt_threads_start(n < threads ? (int)n : threads);
  if (library && (team = lt_gemm_open(team, work / (double)n)) == 0) return false;
  bool ok = lt_convolution_tasks(team, n, scratch * (int64_t)w->size, task, w);
  if (library) lt_gemm_close(team);
  return ok;
}

/* ---- the output side of a block -------------------------------------------------------------- */

/* Returns the memory of channel `first` of image n, on the output side. */
static void *out_plane(const Work *w, int64_t n, int64_t group, int64_t from) {
  return element(w, w->call->out, ((n * w->g.groups + group) * w->g.outputs) * w->out + from);
}

/* Returns the block's outputs of a group as a matrix {outputs, width}: in place for a single image,
 * otherwise copied to `memory`. */
static lt_Matrix gathered(const Work *w, const Block *b, int64_t group, char *memory) {
  if (b->m - b->n == 1) return (lt_Matrix){out_plane(w, b->n, group, b->from), w->out, 1};
  size_t row = (size_t)w->out * w->size;
  for (int64_t n = b->n; n < b->m; n++)
    for (int64_t c = 0; c < w->g.outputs; c++)
      lt_copy_bytes(element(w, memory, c * b->width + (n - b->n) * w->out),
                    (char *)out_plane(w, n, group, 0) + (size_t)c * row, row);
  return (lt_Matrix){memory, b->width, 1};
}

/* ---- the three forms ------------------------------------------------------------------------- */

/* Computes the outputs of one group in one block. */
static void out_task(const void *work, int64_t i, char *memory) {
  const Work *w = work;
  int64_t group = i % w->g.groups, rows = w->g.inputs * w->taps;
  Block b = block_at(w, i / w->g.groups);
  bool single = b.m - b.n == 1;
  lt_Matrix weight = {element(w, w->call->weight, group * w->g.outputs * rows), rows, 1};
  lt_Matrix from = {memory, b.width, 1}, to = {out_plane(w, b.n, group, b.from), w->out, 1};
  char *rest = element(w, memory, rows * b.width);
  if (w->pointwise && single) {
    from = (lt_Matrix){
        element(w, w->call->in, (b.n * w->g.groups + group) * w->g.inputs * w->in + b.from), w->in,
        1};
  } else {
    columns(w, &b, group * w->g.inputs, (group + 1) * w->g.inputs, memory);
  }
  if (!single) to = (lt_Matrix){rest, b.width, 1};
  product(w, w->g.outputs, b.width, rows, weight, from, false, to);
  for (int64_t c = 0; c < w->g.outputs; c++) {
    void *line = element(w, to.data, c * to.row);
    add_bias(w, group * w->g.outputs + c, line, b.width);
    for (int64_t n = b.n; n < b.m && !single; n++)
      lt_copy_bytes(element(w, out_plane(w, n, group, 0), c * w->out),
                    element(w, line, (n - b.n) * w->out), (size_t)w->out * w->size);
  }
}

static bool compute_out(Work *w) {
  int64_t rows = w->g.inputs * w->taps;
  choose_blocks(w, rows > w->g.outputs ? rows : w->g.outputs);
  double work = (double)(w->g.batch * w->g.groups * w->g.outputs * rows) * (double)w->out;
  return run_tasks(w, w->blocks * w->g.groups, work, (rows + w->g.outputs) * w->width, out_task);
}

/* Splits the input channels of a group into ranges whose columns fit `most` rows. */
static void choose_ranges(Work *w, int64_t most) {
  int64_t range = most / w->taps;
  if (range < 1) range = 1;
  if (range > w->g.inputs) range = w->g.inputs;
  w->ranges = w->g.inputs ? (w->g.inputs + range - 1) / range : 0;
  w->range = range;
}

/* Returns the memory of a channel of image n, counted over all groups, on the input side. */
static void *in_plane(const Work *w, int64_t n, int64_t channel) {
  return element(w, w->call->in, (n * w->g.groups * w->g.inputs + channel) * w->in);
}

/* Computes a range of the input channels of one group in one image, or in a block of small
 * ones: task i = (images, group, range). */
static void in_task(const void *work, int64_t i, char *memory) {
  const Work *w = work;
  int64_t range = i % w->ranges, group = i / w->ranges % w->g.groups;
  int64_t images = i / w->ranges / w->g.groups, each = w->per_image ? w->per_image : 1;
  int64_t c0 = range * w->range, c1 = c0 + w->range < w->g.inputs ? c0 + w->range : w->g.inputs;
  int64_t rows = w->g.inputs * w->taps, first = group * w->g.inputs + c0;
  lt_Matrix weight = {element(w, w->call->weight, group * w->g.outputs * rows + c0 * w->taps), 1,
                      rows};
  Block whole = block_at(w, images * each);
  char *rest = element(w, memory, w->range * w->taps * w->width);
  bool direct = w->pointwise && whole.m - whole.n == 1, round = w->call->rounded != w->call->work;
  for (int64_t n = whole.n; n < whole.m && !direct; n++)
    for (int64_t c = 0; c < c1 - c0; c++)
      fill_bias(w, first + c, in_plane(w, n, first + c), w->in, round);
  for (int64_t k = 0; k < each && !lt_stopped(); k++) {
    Block b = block_at(w, images * each + k);
    lt_Matrix out = gathered(w, &b, group, rest), to = {memory, b.width, 1};
    if (direct)
      to = (lt_Matrix){
          element(w, w->call->in, (b.n * w->g.groups * w->g.inputs + first) * w->in + b.from),
          w->in, 1};
    product(w, (c1 - c0) * w->taps, b.width, w->g.outputs, weight, out, false, to);
    if (round)
      add_rounded(w, &b, first, first + c1 - c0, (float *)(void *)memory);
    else if (!direct)
      add_columns(w, &b, first, first + c1 - c0, memory);
    for (int64_t c = 0; c < c1 - c0 && direct; c++)
      add_bias(w, first + c, element(w, to.data, c * w->in), b.width);
  }
  for (int64_t n = whole.n; n < whole.m && round; n++)
    for (int64_t c = 0; c < c1 - c0; c++) add_bias(w, first + c, in_plane(w, n, first + c), w->in);
}

static bool compute_in(Work *w) {
  int64_t rows = w->g.inputs * w->taps;
  choose_blocks(w, w->g.outputs > 256 ? w->g.outputs : 256);
  choose_ranges(w, COLUMNS / w->width);
  int64_t images = w->per_image ? w->g.batch : w->blocks;
  double work = (double)(w->g.batch * w->g.groups * w->g.outputs * rows) * (double)w->out;
  return run_tasks(w, images * w->g.groups * w->ranges, work,
                   (w->range * w->taps + w->g.outputs) * w->width, in_task);
}

/* Computes the gradient of the weights of a group for a range of its input channels, or the part of
 * it that some of the blocks contribute: task i = (part, group, range). */
static void weight_task(const void *work, int64_t i, char *memory) {
  const Work *w = work;
  int64_t range = i % w->ranges, group = i / w->ranges % w->g.groups,
          part = i / w->ranges / w->g.groups;
  int64_t c0 = range * w->range, c1 = c0 + w->range < w->g.inputs ? c0 + w->range : w->g.inputs;
  int64_t rows = w->g.inputs * w->taps, first = group * w->g.inputs + c0,
          count = (c1 - c0) * w->taps;
  int64_t all = w->g.groups * w->g.outputs * rows;
  char *into = part ? element(w, w->partial, (part - 1) * all) : w->call->weight;
  lt_Matrix to = {element(w, into, group * w->g.outputs * rows + c0 * w->taps), rows, 1};
  char *rest = element(w, memory, w->range * w->taps * w->width);
  int64_t from = w->blocks * part / w->parts, end = w->blocks * (part + 1) / w->parts;
  for (int64_t k = from; k < end && !lt_stopped(); k++) {
    Block b = block_at(w, k);
    lt_Matrix out = gathered(w, &b, group, rest), in = {memory, 1, b.width};
    if (w->pointwise && b.m - b.n == 1)
      in = (lt_Matrix){
          element(w, w->call->in, (b.n * w->g.groups * w->g.inputs + first) * w->in + b.from), 1,
          w->in};
    else
      columns(w, &b, first, first + c1 - c0, memory);
    product(w, w->g.outputs, count, b.width, out, in, k > from, to);
  }
}

static bool compute_weight(Work *w) {
  int64_t rows = w->g.inputs * w->taps, all = w->g.groups * w->g.outputs * rows;
  choose_blocks(w, ROWS);
  choose_ranges(w, ROWS);
  if (w->blocks == 0 || w->out == 0) {
    memset(w->call->weight, 0, (size_t)all * w->size);
    return true;
  }
  int64_t tasks = w->g.groups * w->ranges;
  w->parts = (TASKS + tasks - 1) / tasks;
  if (w->parts > w->blocks) w->parts = w->blocks;
  int64_t more = (w->parts - 1) * all * (int64_t)w->size;
  lt_Tensor *partial = lt_empty(LT_uint8, lt_cpu(), 1, &more);
  if (!partial) return false;
  w->partial = lt_tensor_data(partial);
  double work = (double)(w->g.batch * all) * (double)w->out;
  bool ok = run_tasks(w, w->parts * w->g.groups * w->ranges, work,
                      (w->range * w->taps + w->g.outputs) * w->width, weight_task);
  for (int64_t p = 1; p < w->parts && ok; p++) {
    void *part = element(w, w->partial, (p - 1) * all), *sum = w->call->weight;
    BY_DTYPE(w, add_part_f32(sum, part, all), add_part_f64(sum, part, all),
             add_part_i64(sum, part, all));
  }
  lt_release(partial);
  return ok;
}

bool lt_convolution_by_blocks(const lt_ConvolutionCall *k) {
  Work w = {.call = k,
            .g = k->g,
            .in = lt_convolution_in(&k->g),
            .out = lt_convolution_out(&k->g),
            .taps = lt_convolution_taps(&k->g),
            .pointwise = lt_convolution_is_pointwise(&k->g),
            .parts = 1,
            .size = lt_dtype_size(k->work)};
  if (k->form == LT_CONVOLUTION_OUT) return compute_out(&w);
  return k->form == LT_CONVOLUTION_IN ? compute_in(&w) : compute_weight(&w);
}
