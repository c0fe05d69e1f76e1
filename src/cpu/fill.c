/* fill.c: tensors generated from a few numbers: _arange, _linspace, _eye, tril_indices,
 * triu_indices, empty. Each element is computed in float64 (integers in int64) from its index alone
 * and rounded once. */
#include "kernel_support.h"
#include "moves.h"
#include "triangle_indices.h"
#include "vector.h"

#include <math.h>

/* The numbers to generate, in index order. */
typedef struct Numbers {
  lt_Tensor *out;
  bool whole; /* int64: first + i * whole_step */
  int64_t first, whole_step;
  double start, stop, step, scale; /* float64: scale * (start + i * step), or from the other end */
  int64_t turn;                    /* elements from this index on are computed from `stop` */
} Numbers;

/* Generates the float64 elements from..to - 1, which are on one side of `turn`. */
static void sequence(const Numbers *s, int64_t from, int64_t to, double *values) {
  bool start = from < s->turn;
  double index = start ? (double)from : (double)(s->out->numel - 1 - from);
  lt_moves()->sequence((int)(to - from), values, start ? s->start : s->stop, index, start ? 1 : -1,
                       start ? s->step : -s->step, s->scale);
}

/* Generates the elements from..to - 1, converted to the dtype of s->out. */
static void generate(void *context, int64_t from, int64_t to) {
  enum { BLOCK = 512 };
  const Numbers *s = context;
  lt_Dtype dtype = s->out->dtype, work = s->whole ? LT_int64 : LT_float64;
  int64_t size = (int64_t)lt_dtype_size(dtype);
  char *out = lt_tensor_data(s->out);
  double block[BLOCK];
  for (int64_t i = from, end; i < to; i = end) {
    end = to - i < BLOCK ? to : i + BLOCK;
    if (i < s->turn && end > s->turn) end = s->turn;
    void *values = dtype == work ? out + i * size : (char *)block;
    if (s->whole)
      lt_moves()->count(end - i, values, s->first, s->whole_step, i);
    else
      sequence(s, i, end, values);
    if (values == block) lt_vector_store(work, end - i, dtype, out + i * size, size, values);
  }
}

/* Generates all numbers into `out`. */
static bool run(Numbers *s, lt_Tensor *out) {
  bool is_complex = lt_dtype_is_complex(out->dtype);
  s->out = lt_output_open(out, is_complex ? (s->whole ? LT_int64 : LT_float64) : out->dtype);
  if (s->out) lt_share(out->numel, out->numel, generate, s);
  return lt_output_close(out, s->out);
}

bool lt_cpu__arange(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  Numbers s = {.whole = !lt_dtype_is_float(out->dtype), .turn = out->numel};
  if (s.whole) {
    s.first = lt_scalar_to_int(c->arg[0].scalar);
    s.whole_step = lt_scalar_to_int(c->arg[2].scalar);
  } else {
    double start = lt_scalar_to_double(c->arg[0].scalar),
           step = lt_scalar_to_double(c->arg[2].scalar);
    s.scale = isinf((double)out->numel * step) ? 2 : 1; /* avoids overflow, as in linspace */
    s.start = start / s.scale;
    s.step = step / s.scale;
  }
  return run(&s, out);
}

/* Computes each half from its own end, so that both ends are exact and the numbers are
 * symmetric. */
bool lt_cpu__linspace(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  double start = lt_scalar_to_double(c->arg[0].scalar),
         stop = lt_scalar_to_double(c->arg[1].scalar);
  int64_t n = out->numel;
  Numbers s = {.turn = (n + 1) / 2};
  s.scale = isinf(stop - start) ? 2 : 1; /* the difference of the halves does not overflow */
  s.start = start / s.scale;
  s.stop = stop / s.scale;
  s.step = n > 1 ? (s.stop - s.start) / (double)(n - 1) : 0;
  return run(&s, out);
}

/* Writes rows from..to - 1 of an identity matrix, of any dtype, as bytes. */
static void identity_rows(void *context, int64_t from, int64_t to) {
  lt_Tensor *out = context;
  size_t size = lt_dtype_size(out->dtype), row = (size_t)out->shape[1] * size;
  char one[16], *at = (char *)lt_tensor_data(out) + (size_t)from * row;
  if (!lt_scalar_store(lt_scalar_int(1), out->dtype, one)) return; /* 1 fits every dtype */
  memset(at, 0, (size_t)(to - from) * row);
  for (int64_t i = from; i < to && i < out->shape[1]; i++, at += row)
    memcpy(at + (size_t)i * size, one, size);
}

bool lt_cpu__eye(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  if (out->numel > 0) lt_share(out->numel, out->shape[0], identity_rows, out);
  return true;
}

/* The indices of a triangle: `rows`, then the columns. */
typedef struct Indices {
  lt_Triangle of;
  int64_t *rows, *columns;
} Indices;

/* Writes the indices of the elements from..to - 1. */
static void triangle_indices(void *context, int64_t from, int64_t to) {
  const Indices *s = context;
  const lt_Triangle *t = &s->of;
  int64_t low = 0, high = t->row; /* elements of the first `low` rows end at `from` or before */
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    *(lt_triangle_before(t, middle) <= from ? &low : &high) = middle;
  }
  for (int64_t r = low + 1, i = from, start = lt_triangle_before(t, low); i < to && !lt_stopped();
       r++) {
    int64_t first = t->upper ? lt_triangle_width(t, r, t->offset - 1) : 0,
            last = t->upper ? t->col : lt_triangle_width(t, r, t->offset),
            end = start + last - first;
    int64_t column = LT_INDEX_BASE + first - start, stop = end < to ? end : to;
#pragma omp simd
    for (int64_t j = i; j < stop; j++) {
      s->rows[j] = r - 1 + LT_INDEX_BASE;
      s->columns[j] = column + j;
    }
    i = stop;
    start = end;
  }
}

/* Runs tril_indices and triu_indices. */
static bool triangle(lt_Call *c, bool upper) {
  lt_Tensor *out = c->out[0], *to = lt_output_open(out, LT_int64);
  if (to && out->numel > 0) {
    int64_t *rows = lt_tensor_data(to), n = out->shape[1];
    Indices s = {{c->arg[0].i, c->arg[1].i, c->arg[2].i, upper}, rows, rows + n};
    lt_share(2 * n, n, triangle_indices, &s);
  }
  return lt_output_close(out, to) && lt_check_interrupt();
}

bool lt_cpu_tril_indices(lt_Call *c) { return triangle(c, false); }
bool lt_cpu_triu_indices(lt_Call *c) { return triangle(c, true); }

bool lt_cpu_empty(lt_Call *c) {
  (void)c; /* leaves the memory uninitialized */
  return true;
}
