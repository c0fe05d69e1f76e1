/* symmetric.c: reduces symmetric matrices to tridiagonal form by Householder reflections. One pass
 * over the lower triangle for each column subtracts the last reflection and multiplies by the next
 * one, which is in LAPACK two passes over the matrix. */
#include "symmetric.h"
#include "reflections.h"
#include "rows.h"

static int64_t padded(int64_t n) { return n + LT_SYMMETRIC_PADDING; }

int64_t lt_symmetric_room(int64_t n) { return 4 * padded(n); }

/* Vectors v, w of the last reflection and x, y of the next one are exchanged: they begin with the
 * rows of the matrix that is left. */
#define REDUCE(T, F)                                                                               \
  static void reduce_##F(int64_t n, T *a, int64_t ld, T *d, T *e, T *tau, T *room) {               \
    T *v = room, *w = v + padded(n), *x = w + padded(n), *y = x + padded(n);                       \
    const lt_RowKernels *rows = lt_rows();                                                         \
    memset(room, 0, sizeof(T) * (size_t)lt_symmetric_room(n));                                     \
    for (int64_t j = 0; j < n; j++) memset(a + j * ld + n, 0, sizeof(T) * LT_SYMMETRIC_PADDING);   \
    for (int64_t j = 0; j < n && !lt_stopped(); j++) {                                             \
      T *column = a + j * ld + j;                                                                  \
      int64_t m = n - j - 1;                                                                       \
      rows->weighted_##F((const T *const[]){column, v, w}, (const T[]){1, -w[0], -v[0]}, 3, 0,     \
                         m + 1, column);                                                           \
      d[j] = column[0];                                                                            \
      if (m == 0) return;                                                                          \
      tau[j] = lt_reflection_##F(column + 1, m);                                                   \
      e[j] = column[1];                                                                            \
      memcpy(x, column + 1, sizeof(T) * (size_t)padded(m));                                        \
      x[0] = 1;                                                                                    \
      lt_symmetric_loops(sizeof(T) == 4 ? LT_float32 : LT_float64)                                 \
          ->step(m, column + ld + 1, ld, v + 1, w + 1, x, y);                                      \
      T half = (T)-0.5 * tau[j] * tau[j] * rows->dot_##F(y, x, m);                                 \
      rows->weighted_##F((const T *const[]){y, x}, (const T[]){tau[j], half}, 2, 0, m, y);         \
      T *last[] = {v, w};                                                                          \
      v = x, w = y, x = last[0], y = last[1];                                                      \
    }                                                                                              \
  }

REDUCE(float, f32)
REDUCE(double, f64)

void lt_symmetric_reduce(lt_Dtype dtype, int64_t n, void *a, int64_t ld, void *d, void *e,
                         void *tau, void *room) {
  if (dtype == LT_float32)
    reduce_f32(n, a, ld, d, e, tau, room);
  else
    reduce_f64(n, a, ld, d, e, tau, room);
}
