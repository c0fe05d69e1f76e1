/* convolution_rows.c: depthwise convolutions: groups of one input channel and few output channels,
 * in one or two dimensions. A padded plane of the input is split by the strides into phases, planes
 * of {lines, pitch} elements, so that every tap of the kernel reads one dense run of a phase: an
 * output plane, in lines of the same pitch, is a weighted sum of runs, the weight's gradient is a
 * product of runs with it. */
#include "convolution.h"
#include "kernel_support.h"
#include "rows.h"

enum { RUNS = 256 /* runs of one weighted sum */, MOST_OUTPUTS = 4 };

typedef struct Work {
  const lt_ConvolutionCall *call;
  int64_t batch, groups, outputs, taps;
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t reach[2];    /* lines and columns that a tap is moved by, at most, in its phase */
  int64_t lines, used; /* lines of a phase, and columns of it that are read */
  int64_t pitch;       /* its columns, with zeros at the end: used + reach */
  int64_t run;         /* elements from the first output of a plane to the last */
  int64_t phase;       /* elements of a phase with a margin before it */
  size_t size;
} Work;

/* Returns the run of a phase that tap t reads: the number of the phase, and the offset in it. */
static int64_t phase_of(const Work *w, int64_t t, int64_t *offset) {
  int64_t a = t / w->kernel[1] * w->dilation[0], b = t % w->kernel[1] * w->dilation[1];
  *offset = a / w->stride[0] * w->pitch + b / w->stride[1];
  return a % w->stride[0] * w->stride[1] + b % w->stride[1];
}

/* The number of the phase of a padded position, and the offset in it. */
static int64_t place_of(const Work *w, int64_t line, int64_t column, int64_t *offset) {
  *offset = line / w->stride[0] * w->pitch + column / w->stride[1];
  return line % w->stride[0] * w->stride[1] + column % w->stride[1];
}

static int64_t margin(const Work *w) { return w->reach[0] * w->pitch + w->reach[1]; }

#define ROWS(T, F)                                                                                 \
  static const T *plane_##F(const void *memory, int64_t index, int64_t size) {                     \
    return (const T *)memory + index * size;                                                       \
  }                                                                                                \
  /* Splits a plane of the input into its phases. */                                               \
  static void split_##F(const Work *w, const T *in, T *phases) {                                   \
    memset(phases, 0, (size_t)(w->stride[0] * w->stride[1] * w->phase) * sizeof(T));               \
    for (int64_t i = 0; i < w->in[0]; i++) {                                                       \
      int64_t line = i + w->padding[0];                                                            \
      if (line / w->stride[0] >= w->lines) break;                                                  \
      for (int64_t c = 0; c < w->stride[1]; c++) {                                                 \
        int64_t offset, first = (c - w->padding[1]) % w->stride[1];                                \
        if (first < 0) first += w->stride[1];                                                      \
        int64_t phase = place_of(w, line, first + w->padding[1], &offset);                         \
        int64_t count = w->used - (first + w->padding[1]) / w->stride[1];                          \
        T *to = phases + phase * w->phase + offset;                                                \
        const T *from = in + i * w->in[1];                                                         \
        if (w->stride[1] == 1) {                                                                   \
          count = w->in[1] - first < count ? w->in[1] - first : count;                             \
          if (count > 0) memcpy(to, from + first, (size_t)count * sizeof *to);                     \
          continue;                                                                                \
        }                                                                                          \
        for (int64_t k = 0, j = first; k < count && j < w->in[1]; k++, j += w->stride[1])          \
          to[k] = from[j];                                                                         \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  /* Copies a plane of the output to lines of the phases' pitch; zeros surround it. */             \
  static void spread_##F(const Work *w, const T *out, T *to) {                                     \
    memset(to, 0, (size_t)(w->phase + margin(w)) * sizeof(T));                                     \
    for (int64_t i = 0; i < w->out[0]; i++)                                                        \
      memcpy(to + margin(w) + i * w->pitch, out + i * w->out[1], (size_t)w->out[1] * sizeof(T));   \
  }                                                                                                \
  static void out_task_##F(const void *context, int64_t i, char *memory) {                         \
    const Work *w = context;                                                                       \
    int64_t group = i % w->groups, outs = w->out[0] * w->out[1];                                   \
    T *phases = (T *)(void *)memory, *result = phases + w->stride[0] * w->stride[1] * w->phase;    \
    const T *runs[RUNS];                                                                           \
    split_##F(w, plane_##F(w->call->in, i, w->in[0] * w->in[1]), phases);                          \
    for (int64_t t = 0; t < w->taps; t++) {                                                        \
      int64_t offset, phase = phase_of(w, t, &offset);                                             \
      runs[t] = phases + phase * w->phase + offset;                                                \
    }                                                                                              \
    for (int64_t o = 0; o < w->outputs; o++) {                                                     \
      int64_t channel = group * w->outputs + o;                                                    \
      const T *bias = w->call->bias;                                                               \
      lt_rows()->weighted_##F(runs, plane_##F(w->call->weight, channel, w->taps), w->taps,         \
                              bias ? bias[channel] : 0, w->run, result);                           \
      T *to = (T *)w->call->out + (i * w->outputs + o) * outs;                                     \
      for (int64_t r = 0; r < w->out[0]; r++)                                                      \
        memcpy(to + r * w->out[1], result + r * w->pitch, (size_t)w->out[1] * sizeof(T));          \
    }                                                                                              \
  }                                                                                                \
  /* Computes the phases of the input from the spread outputs, and joins them. */                  \
  static void in_task_##F(const void *context, int64_t i, char *memory) {                          \
    const Work *w = context;                                                                       \
    int64_t group = i % w->groups, outs = w->out[0] * w->out[1], area = w->phase + margin(w);      \
    T *spread = (T *)(void *)memory, *phase = spread + w->outputs * area;                          \
    T *in = (T *)w->call->in + i * w->in[0] * w->in[1];                                            \
    const T bias = w->call->bias ? ((const T *)w->call->bias)[group] : 0;                          \
    for (int64_t o = 0; o < w->outputs; o++)                                                       \
      spread_##F(w, plane_##F(w->call->out, i * w->outputs + o, outs), spread + o * area);         \
    for (int64_t p = 0; p < w->stride[0] * w->stride[1]; p++) {                                    \
      const T *runs[RUNS];                                                                         \
      T weights[RUNS];                                                                             \
      int64_t count = 0;                                                                           \
      for (int64_t o = 0; o < w->outputs; o++)                                                     \
        for (int64_t t = 0; t < w->taps; t++) {                                                    \
          int64_t offset;                                                                          \
          if (phase_of(w, t, &offset) != p) continue;                                              \
          runs[count] = spread + o * area + margin(w) - offset;                                    \
          weights[count++] = plane_##F(w->call->weight, group * w->outputs + o, w->taps)[t];       \
        }                                                                                          \
      lt_rows()->weighted_##F(runs, weights, count, bias, w->lines * w->pitch - w->reach[1],       \
                              phase);                                                              \
      for (int64_t r = 0; r < w->in[0]; r++) {                                                     \
        int64_t line = r + w->padding[0], c = p % w->stride[1];                                    \
        if (line % w->stride[0] != p / w->stride[1]) continue;                                     \
        int64_t first = (c - w->padding[1]) % w->stride[1];                                        \
        if (first < 0) first += w->stride[1];                                                      \
        for (int64_t j = first; j < w->in[1]; j += w->stride[1]) {                                 \
          int64_t row = line / w->stride[0], column = (j + w->padding[1]) / w->stride[1];          \
          bool inside = row < w->lines && column < w->used;                                        \
          in[r * w->in[1] + j] = inside ? phase[row * w->pitch + column] : bias;                   \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void weight_task_##F(const void *context, int64_t group, char *memory) {                  \
    const Work *w = context;                                                                       \
    int64_t outs = w->out[0] * w->out[1];                                                          \
    T *phases = (T *)(void *)memory, *spread = phases + w->stride[0] * w->stride[1] * w->phase;    \
    T *to = (T *)w->call->weight + group * w->outputs * w->taps;                                   \
    memset(to, 0, (size_t)(w->outputs * w->taps) * sizeof(T));                                     \
    for (int64_t n = 0; n < w->batch; n++) {                                                       \
      int64_t i = n * w->groups + group;                                                           \
      split_##F(w, plane_##F(w->call->in, i, w->in[0] * w->in[1]), phases);                        \
      for (int64_t o = 0; o < w->outputs; o++) {                                                   \
        spread_##F(w, plane_##F(w->call->out, i * w->outputs + o, outs), spread);                  \
        for (int64_t t = 0; t < w->taps; t++) {                                                    \
          int64_t offset, phase = phase_of(w, t, &offset);                                         \
          to[o * w->taps + t] +=                                                                   \
              lt_rows()->dot_##F(spread + margin(w), phases + phase * w->phase + offset, w->run);  \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }

ROWS(float, f32)
ROWS(double, f64)

/* Fills in the geometry; returns false when the call is not supported. */
static bool describe(Work *w, const lt_ConvolutionCall *k) {
  const lt_Convolution *g = &k->g;
  if (k->work == LT_int64 || g->inputs != 1 || g->outputs > MOST_OUTPUTS || g->in[0] != 1 ||
      g->out[0] != 1 || g->kernel[0] != 1 || g->padding[0] != 0)
    return false;
  *w = (Work){.call = k,
              .batch = g->batch,
              .groups = g->groups,
              .outputs = g->outputs,
              .taps = lt_convolution_taps(g),
              .size = lt_dtype_size(k->work)};
  if (w->taps * w->outputs > RUNS || lt_convolution_out(g) == 0) return false;
  int64_t size[2];
  for (int d = 0; d < 2; d++) {
    w->in[d] = g->in[d + 1];
    w->out[d] = g->out[d + 1];
    w->kernel[d] = g->kernel[d + 1];
    w->stride[d] = g->stride[d + 1];
    w->padding[d] = g->padding[d + 1];
    w->dilation[d] = g->dilation[d + 1];
    w->reach[d] = (w->kernel[d] - 1) * w->dilation[d] / w->stride[d];
    size[d] = w->out[d] + w->reach[d];
  }
  w->lines = size[0];
  w->used = size[1];
  w->pitch = size[1] + w->reach[1];
  w->run = (w->out[0] - 1) * w->pitch + w->out[1];
  w->phase = w->lines * w->pitch;
  /* Memory is bounded by a few planes, unless the kernel's reach exceeds them. */
  return w->phase * w->stride[0] * w->stride[1] <= 4 * (w->in[0] * w->in[1] + 4096);
}

/* The library has fast loops for one output channel in each group, and whole vectors of groups; for
 * gradients only with a dilation of 1, of the weight only for kernels up to 3 x 3. */
bool lt_convolution_rows_first(const lt_ConvolutionCall *k) {
  enum { FEW = 16 };
  Work w;
  if (k->work != LT_float32 || k->rounded != k->work || !describe(&w, k)) return false;
  bool dilated = w.dilation[0] > 1 || w.dilation[1] > 1;
  bool strided = w.stride[0] > 1 || w.stride[1] > 1;
  if (w.groups < FEW || w.outputs > 1) return true;
  if (k->form == LT_CONVOLUTION_WEIGHT) return dilated || w.kernel[0] > 3 || w.kernel[1] > 3;
  return k->form == LT_CONVOLUTION_IN && dilated && !strided;
}

bool lt_convolution_by_rows(const lt_ConvolutionCall *k, bool *done) {
  Work w;
  *done = describe(&w, k);
  if (!*done) return true;
  int64_t tasks = k->form == LT_CONVOLUTION_WEIGHT ? w.groups : w.batch * w.groups;
  int64_t phases = w.stride[0] * w.stride[1] * w.phase, area = w.phase + margin(&w);
  int64_t memory = k->form == LT_CONVOLUTION_IN ? w.outputs * area + w.phase : phases + area;
  bool wide = k->work == LT_float64;
  int team = lt_team(w.batch * w.groups * w.outputs * w.taps * w.run / 4, tasks);
  void (*task)(const void *, int64_t, char *) =
      k->form == LT_CONVOLUTION_OUT  ? (wide ? out_task_f64 : out_task_f32)
      : k->form == LT_CONVOLUTION_IN ? (wide ? in_task_f64 : in_task_f32)
                                     : (wide ? weight_task_f64 : weight_task_f32);
  return lt_convolution_tasks(team, tasks, memory * (int64_t)w.size, task, &w);
}
