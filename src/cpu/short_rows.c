/* short_rows.c: see short_rows.h. */
#include "short_rows.h"

/* Merges the dims before the last into it while their strides permit. */
static void merge(lt_Odometer *o) {
  for (int d; (d = o->ndim - 1) > 0; o->ndim--) {
    bool one = o->shape[d] == 1;
    for (int k = 0; k < 2; k++) {
      int64_t *stride = &o->strides[k][d - 1];
      if (!one && o->shape[d - 1] != 1 && *stride != o->strides[k][d] * o->shape[d]) return;
    }
    for (int k = 0; k < 2 && !one; k++) o->strides[k][d - 1] = o->strides[k][d];
    o->shape[d - 1] *= o->shape[d];
  }
}

bool lt_short_rows_open(lt_ShortRows *s, const lt_Odometer *rows, int64_t n, int64_t across,
                        int64_t size) {
  if (n > LT_SHORT_ROWS_LENGTH || rows->ndim == 0) return false;
  s->outer = *rows;
  merge(&s->outer);
  int last = --s->outer.ndim;
  s->rows = s->outer.shape[last];
  s->n = n;
  for (int k = 0; k < 2; k++) s->step[k] = s->outer.strides[k][last];
  if (s->rows < 2 || s->step[1] != n * size) return false;
  s->together = LT_SHORT_ROWS_TOGETHER / n < s->rows ? LT_SHORT_ROWS_TOGETHER / n : s->rows;
  int64_t *shift = s->shift;
  for (int64_t r = 0; r < s->together; r++)
    for (int64_t j = 0; j < n; j++) *shift++ = r * s->step[0] + j * across;
  return true;
}

void lt_short_rows_each(const lt_ShortRows *s, int64_t first, int64_t last, lt_ShortRowsFn fn,
                        const void *context) {
  lt_Odometer o = s->outer;
  lt_odometer_seek(&o, first / s->rows);
  for (int64_t r = first % s->rows; first < last; r = 0) {
    int64_t offset[2] = {o.offset[0] + r * s->step[0], o.offset[1] + r * s->step[1]};
    int64_t end = last - first < s->rows - r ? last : first + s->rows - r;
    for (int64_t count; first < end; first += count) {
      count = end - first < s->together ? end - first : s->together;
      if (lt_stopped() || !fn(context, offset, first * s->n, count * s->n)) return;
      for (int k = 0; k < 2; k++) offset[k] += count * s->step[k];
    }
    lt_odometer_step(&o);
  }
}
