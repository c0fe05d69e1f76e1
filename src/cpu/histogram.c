/* histogram.c: counts of elements in bins of equal width. Each thread counts a part in a table of
 * its own. */
#include "kernel_support.h"

#define SOME 512 /* elements whose bins are computed together */

/* The elements, and the bins; what is outside is counted as bin `bins`. */
typedef struct Histogram {
  const void *x;
  int64_t n;
  int32_t bins;
  double low, high;
  int64_t *tables; /* bins + 1 counts for each thread */
} Histogram;

#define COUNT(T)                                                                                   \
  static void count_##T(const Histogram *h, int64_t first, int64_t last, int64_t *counts) {        \
    const T low = (T)h->low, high = (T)h->high, width = (T)(h->high - h->low), bins = (T)h->bins,  \
            most = bins - 1;                                                                       \
    int32_t at[SOME];                                                                              \
    for (int64_t i = first, m; i < last && !lt_stopped(); i += m) {                                \
      const T *x = (const T *)h->x + i;                                                            \
      m = last - i < SOME ? last - i : SOME;                                                       \
      _Pragma("omp simd")                                                                          \
      for (int64_t j = 0; j < m; j++) {                                                            \
        bool inside = (x[j] >= low) & (x[j] <= high);                                              \
        T bin = (x[j] - low) * bins / width;                                                       \
        bin = bin < most ? bin : most;                                                             \
        at[j] = (int32_t)(inside ? bin : bins);                                                    \
      }                                                                                            \
      for (int64_t j = 0; j < m; j++) counts[at[j]]++;                                             \
    }                                                                                              \
  }
COUNT(float)
COUNT(double)

/* _histc (self, bins, low, high) */
bool lt_cpu__histc(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *x = lt_as_contiguous(self, self->dtype), *to = NULL;
  int64_t bins = c->arg[1].i, n = self->numel, size = bins + 1;
  int team = lt_team(4 * n, n / (4 * size));
  Histogram h = {.n = n, .bins = (int32_t)bins, .low = c->arg[2].f, .high = c->arg[3].f};
  if (x && !(h.tables = calloc((size_t)(team * size), sizeof *h.tables))) lt_fail_memory();
  if (h.tables && (to = lt_output_open(c->out[0], LT_int64))) {
    h.x = lt_tensor_data(x);
    void (*count)(const Histogram *, int64_t, int64_t, int64_t *) =
        x->dtype == LT_float32 ? count_float : count_double;
    LT_IN_TEAM(team, team, {
      for (int64_t p = first; p < last; p++)
        count(&h, n * p / team, n * (p + 1) / team, h.tables + p * size);
    });
    int64_t *counts = lt_tensor_data(to);
    for (int64_t i = 0; i < bins; i++) {
      counts[i] = 0;
      for (int p = 0; p < team; p++) counts[i] += h.tables[p * size + i];
    }
  }
  free(h.tables);
  lt_release(x);
  return lt_output_close(c->out[0], to) && lt_check_interrupt();
}
