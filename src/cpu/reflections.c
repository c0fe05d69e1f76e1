/* reflections.c: QR factorizations by blocks of Householder reflections: k of them are the product
 * I - V T V^T, with V {m, k} and an upper triangle T (Schreiber and Van Loan 1989), which products
 * of matrices apply to the other columns. The columns of a block are factored in halves.
 *
 * A column-major matrix is used as its transpose, of dense rows. Invariant: blocks depend on sizes
 * only. */
#include "reflections.h"
#include "blas.h"
#include "rows.h"

#include <math.h>

enum {
  BLOCK = 32, /* columns of a block */
  FEW = 8     /* columns that are factored one by one */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void *at(lt_Dtype dtype, void *a, int64_t index) {
  return (char *)a + index * (int64_t)lt_dtype_size(dtype);
}

/* ---- one reflection -------------------------------------------------------------------------- */

/* lt_reflection: computes I - tau v v^T, which maps x to (beta, 0, ...): stores v after its first
 * element, 1, and beta as that, and returns tau. Sums of squares outside of LOW..HIGH may have lost
 * digits, and are computed again with a scale; so is all of a column with |beta| < LEAST. apply:
 * applies it to n columns y. factor_few: reflects n columns of m elements. expand_few: replaces k
 * reflections by n columns of Q, of which those behind the first k are the identity's. triangle:
 * computes T from tau and g = V^T V. clear: sets columns first .. first + k - 1 of rows `first` to
 * n - 1 to those of the identity, and the first k elements of the columns behind to 0. */
#define LOOPS(T, F, ROOT, SIZE, LOW, HIGH, LEAST)                                                  \
  static T norm_##F(const T *x, int64_t n) {                                                       \
    T sum = lt_rows()->dot_##F(x, x, n), most = 0;                                                 \
    if (sum > (LOW) && sum < (HIGH)) return ROOT(sum);                                             \
    for (int64_t i = 0; i < n; i++) most = SIZE(x[i]) > most || x[i] != x[i] ? SIZE(x[i]) : most;  \
    if (!(most > 0) || most - most != 0) return most;                                              \
    sum = 0;                                                                                       \
    for (int64_t i = 0; i < n; i++) sum += x[i] / most * (x[i] / most);                            \
    return most * ROOT(sum);                                                                       \
  }                                                                                                \
  T lt_reflection_##F(T *x, int64_t n) {                                                           \
    T rest = n > 1 ? norm_##F(x + 1, n - 1) : 0, alpha = x[0];                                     \
    if (rest == 0) return 0;                                                                       \
    T pair[2] = {alpha, rest}, beta = norm_##F(pair, 2);                                           \
    if (!signbit(alpha)) beta = -beta;                                                             \
    if (SIZE(beta) < (LEAST)) {                                                                    \
      for (int64_t i = 0; i < n; i++) x[i] /= (LEAST);                                             \
      T tau = lt_reflection_##F(x, n);                                                             \
      x[0] *= (LEAST);                                                                             \
      return tau;                                                                                  \
    }                                                                                              \
    T v = alpha - beta, factor = 1 / v;                                                            \
    if (factor - factor == 0)                                                                      \
      lt_rows()->weighted_##F((const T *const[]){x + 1}, &factor, 1, 0, n - 1, x + 1);             \
    else                                                                                           \
      for (int64_t i = 1; i < n; i++) x[i] /= v;                                                   \
    x[0] = beta;                                                                                   \
    return (beta - alpha) / beta;                                                                  \
  }                                                                                                \
  static void apply_##F(int64_t m, int64_t n, const T *x, T tau, T *y, int64_t ld) {               \
    for (int64_t j = 0; j < n && tau != 0; j++, y += ld) {                                         \
      T d = tau * (y[0] + lt_rows()->dot_##F(x + 1, y + 1, m - 1)), w[2] = {1, -d};                \
      y[0] -= d;                                                                                   \
      lt_rows()->weighted_##F((const T *const[]){y + 1, x + 1}, w, 2, 0, m - 1, y + 1);            \
    }                                                                                              \
  }                                                                                                \
  static void factor_few_##F(int64_t m, int64_t n, T *a, int64_t ld, T *tau) {                     \
    for (int64_t i = 0; i < n && i < m; i++) {                                                     \
      T *x = a + i * ld + i;                                                                       \
      tau[i] = lt_reflection_##F(x, m - i);                                                        \
      apply_##F(m - i, n - i - 1, x, tau[i], x + ld, ld);                                          \
    }                                                                                              \
  }                                                                                                \
  static void expand_few_##F(int64_t m, int64_t n, int64_t k, T *a, int64_t ld, const T *tau) {    \
    for (int64_t i = k - 1; i >= 0; i--) {                                                         \
      T *x = a + i * ld + i, factor = -tau[i];                                                     \
      for (int64_t j = i + 1; j < n; j++) a[j * ld + i] = 0;                                       \
      apply_##F(m - i, n - i - 1, x, tau[i], x + ld, ld);                                          \
      lt_rows()->weighted_##F((const T *const[]){x + 1}, &factor, 1, 0, m - i - 1, x + 1);         \
      x[0] = 1 - tau[i];                                                                           \
      memset(x - i, 0, sizeof(T) * (size_t)i);                                                     \
    }                                                                                              \
  }                                                                                                \
  static void triangle_##F(int64_t k, const T *tau, const T *g, T *t) {                            \
    memset(t, 0, sizeof(T) * (size_t)(k * k));                                                     \
    for (int64_t i = 0; i < k; i++) {                                                              \
      t[i * k + i] = tau[i];                                                                       \
      for (int64_t r = 0; r < i && tau[i] != 0; r++) {                                             \
        T sum = 0;                                                                                 \
        for (int64_t q = r; q < i; q++) sum += t[r * k + q] * g[q * k + i];                        \
        t[r * k + i] = -tau[i] * sum;                                                              \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  /* Copies the reflections of k columns to rows of v, with their ones and zeros. */               \
  static void copy_##F(int64_t m, int64_t k, const T *a, int64_t ld, T *v) {                       \
    for (int64_t i = 0; i < k; i++, v += m, a += ld) {                                             \
      memset(v, 0, sizeof(T) * (size_t)i);                                                         \
      v[i] = 1;                                                                                    \
      memcpy(v + i + 1, a + i + 1, sizeof(T) * (size_t)(m - i - 1));                               \
    }                                                                                              \
  }                                                                                                \
  static void clear_##F(int64_t m, int64_t n, int64_t first, int64_t k, T *a, int64_t ld) {        \
    for (int64_t j = first; j < n; j++) {                                                          \
      T *x = a + j * ld;                                                                           \
      memset(x + first, 0, sizeof(T) * (size_t)(j < first + k ? m - first : k));                   \
      if (j < first + k) x[j] = 1;                                                                 \
    }                                                                                              \
  }

LOOPS(float, f32, sqrtf, fabsf, 0x1p-80f, 0x1p120f, 0x1p-100f)
LOOPS(double, f64, sqrt, fabs, 0x1p-900, 0x1p1000, 0x1p-900)

#define BY_DTYPE(call, ...)                                                                        \
  do {                                                                                             \
    if (dtype == LT_float32)                                                                       \
      call##_f32(__VA_ARGS__);                                                                     \
    else                                                                                           \
      call##_f64(__VA_ARGS__);                                                                     \
  } while (0)

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Scratch memory: T of each block, V of one, and two products of V with other columns, of which
 * there are at most m or n. */
typedef struct Room {
  void *t, *v, *w[2];
} Room;

static Room room_of(lt_Dtype dtype, int64_t m, int64_t n, void *room) {
  int64_t k = least(m, n), columns = n > m ? n : m, t = (k + BLOCK) * BLOCK, v = m * BLOCK;
  return (Room){
      room, at(dtype, room, t), {at(dtype, room, t + v), at(dtype, room, t + v + columns * BLOCK)}};
}

int64_t lt_reflections_room(int64_t m, int64_t n, int64_t columns) {
  int64_t k = least(m, n), most = columns > n ? columns : n;
  if (m > most) most = m;
  return (k + BLOCK) * BLOCK + m * BLOCK + 2 * most * BLOCK;
}

static lt_Matrix rows(void *data, int64_t ld) { return (lt_Matrix){data, ld, 1}; }
static lt_Matrix turned(void *data, int64_t ld) { return (lt_Matrix){data, 1, ld}; }

/* Copies the reflections of k columns of m elements to v, and computes their triangle t. */
static void open_block(lt_Dtype dtype, int64_t m, int64_t k, const void *a, int64_t ld,
                       const void *tau, const Room *r, void *t) {
  BY_DTYPE(copy, m, k, a, ld, r->v);
  lt_gemm(dtype, k, k, m, 1, rows(r->v, m), turned(r->v, m), 0, rows(r->w[0], k));
  BY_DTYPE(triangle, k, tau, r->w[0], t);
}

/* Applies the block in v to n columns of m elements: its inverse, or with `forward` itself. */
static void apply_block(lt_Dtype dtype, int64_t m, int64_t k, int64_t n, bool forward, void *t,
                        const Room *r, void *a, int64_t ld) {
  if (n == 0) return;
  lt_gemm(dtype, n, k, m, 1, rows(a, ld), turned(r->v, m), 0, rows(r->w[0], k));
  lt_gemm(dtype, n, k, k, 1, rows(r->w[0], k), forward ? turned(t, k) : rows(t, k), 0,
          rows(r->w[1], k));
  lt_gemm(dtype, n, m, k, -1, rows(r->w[1], k), rows(r->v, m), 1, rows(a, ld));
}

/* Factors n <= BLOCK columns of m >= n elements. `t` is scratch memory. */
static void factor_block(lt_Dtype dtype, int64_t m, int64_t n, void *a, int64_t ld, void *tau,
                         const Room *r, void *t) {
  if (n <= FEW) {
    BY_DTYPE(factor_few, m, n, a, ld, tau);
    return;
  }
  int64_t h = (n / 2 + FEW - 1) / FEW * FEW;
  void *right = at(dtype, a, h * ld);
  factor_block(dtype, m, h, a, ld, tau, r, t);
  open_block(dtype, m, h, a, ld, tau, r, t);
  apply_block(dtype, m, h, n - h, false, t, r, right, ld);
  factor_block(dtype, m - h, n - h, at(dtype, right, h), ld, at(dtype, tau, h), r, t);
}

void lt_reflections_factor(lt_Dtype dtype, int64_t m, int64_t n, void *a, int64_t ld, void *tau,
                           void *room) {
  Room r = room_of(dtype, m, n, room);
  int64_t k = least(m, n);
  if (k == 0) return;
  if (n <= FEW) {
    BY_DTYPE(factor_few, m, n, a, ld, tau);
    memcpy(room, tau, (size_t)k * lt_dtype_size(dtype));
    return;
  }
  for (int64_t i = 0; i < k && !lt_stopped(); i += BLOCK) {
    int64_t width = least(BLOCK, k - i);
    void *block = at(dtype, a, i * ld + i), *t = at(dtype, r.t, i * BLOCK);
    factor_block(dtype, m - i, width, block, ld, at(dtype, tau, i), &r, t);
    open_block(dtype, m - i, width, block, ld, at(dtype, tau, i), &r, t);
    apply_block(dtype, m - i, width, n - i - width, false, t, &r, at(dtype, block, width * ld), ld);
  }
}

void lt_reflections_expand(lt_Dtype dtype, int64_t m, int64_t n, int64_t count, void *a, int64_t ld,
                           void *room) {
  Room r = room_of(dtype, m, n, room);
  int64_t k = least(m, n);
  BY_DTYPE(clear, m, count, k, count - k, a, ld);
  if (k == 0) return;
  if (n <= FEW) {
    BY_DTYPE(expand_few, m, count, k, a, ld, room);
    return;
  }
  for (int64_t i = (k - 1) / BLOCK * BLOCK; i >= 0 && !lt_stopped(); i -= BLOCK) {
    int64_t width = least(BLOCK, k - i);
    void *block = at(dtype, a, i * ld + i);
    BY_DTYPE(copy, m - i, width, block, ld, r.v);
    BY_DTYPE(clear, m, count, i, width, a, ld);
    apply_block(dtype, m - i, width, count - i, true, at(dtype, r.t, i * BLOCK), &r, block, ld);
  }
}

void lt_reflections_apply(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, void *v, int64_t ldv,
                          const void *tau, void *a, int64_t ld, void *room) {
  Room r = room_of(dtype, m, n, room);
  int64_t size = (int64_t)lt_dtype_size(dtype);
  for (int64_t i = (k - 1) / BLOCK * BLOCK; i >= 0 && k > 0 && !lt_stopped(); i -= BLOCK) {
    int64_t width = least(BLOCK, k - i);
    open_block(dtype, m - i, width, at(dtype, v, i * ldv + i), ldv, (const char *)tau + i * size,
               &r, r.t);
    apply_block(dtype, m - i, width, n, true, r.t, &r, at(dtype, a, i), ld);
  }
}
