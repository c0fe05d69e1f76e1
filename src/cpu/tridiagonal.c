/* tridiagonal.c: eigenvalues and eigenvectors of symmetric tridiagonal matrices by divide and
 * conquer (Cuppen 1981): a matrix is two smaller ones and a product rho u u^T. The eigenvalues of
 * both are the poles d of the secular equation 1 + rho sum(z^2 / (d - x)) = 0, whose roots are
 * those of the matrix; the numbers z are computed again from the roots, with which the eigenvectors
 * are orthogonal (Gu and Eisenstat 1995). Poles that the product does not move are set aside.
 *
 * Eigenvalues are computed in double, eigenvectors in the dtype. Invariant: eigenvalues and columns
 * of a part stay in any order, and `order` lists them in ascending order. Results do not depend on
 * the number of threads. */
#include "symmetric.h"
#include "blas.h"
#include "kernel_support.h"
#include "lapack.h"

#include <math.h>

enum { MOST_STEPS = 100 /* of the iteration for a root */ };

/* The rows in which a column has elements: of the first part, of both, of the second one. */
enum { ABOVE, BOTH, BELOW };

typedef struct Divide {
  lt_Dtype dtype;
  size_t size;
  double *d, *e;
  char *q;
  int64_t ld;
  double eps;       /* of the dtype */
  double precision; /* of roots, relative to the terms of the equation */
  int64_t *order;
  /* Of a call of `merge`: the poles with their weights, columns, rows, and places in products. */
  double *pole, *z, *hat, *origin, *tau, *norm;
  int64_t *column, *place, *rest, *merged;
  char *rows, *kind;
  char *packed, *s; /* columns of q, and eigenvectors of the equation */
  int64_t k;        /* number of poles */
  double rho;
} Divide;

/* ---- roots ----------------------------------------------------------------------------------- */

/* Returns the root between the two poles of c + s / (p - x) + t / (q - x), p < q, that is, of
 * c x^2 - a x + b; with `above` the root above both. */
static double interpolate(double a, double b, double c, bool above) {
  double square = a * a - 4 * b * c, root = sqrt(square > 0 ? square : 0);
  if (above) return a >= 0 ? (a + root) / (2 * c) : 2 * b / (a - root);
  return a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
}

/* Computes root j, above pole j, as origin[j] + tau[j], where the origin is the nearest pole. The
 * iteration interpolates the equation by two poles (Li 1994) and stays in an interval. */
static void find_root(Divide *w, int64_t j) {
  const lt_SecularLoops *loops = lt_secular_loops();
  const double *d = w->pole, *z = w->z, rho = w->rho;
  int64_t k = w->k;
  bool above = j == k - 1;
  if (k == 1) {
    w->origin[0] = d[0];
    w->tau[0] = rho * z[0] * z[0];
    return;
  }
  int64_t split = above ? k - 2 : j; /* the poles beside the root, or the last two */
  double gap = above ? rho : d[j + 1] - d[j], middle = gap / 2, origin = d[j];
  double s[4], p = d[split] - origin, q = d[split + 1] - origin;
  double zp = z[split] * z[split], zq = z[split + 1] * z[split + 1];
  loops->sums(d, z, k, k, origin, middle, s);
  double f = 1 + rho * s[0], low = 0, high = gap;
  double c = f - rho * (zp / (p - middle) + zq / (q - middle));
  if (f >= 0) {
    high = middle;
  } else if (above) {
    low = middle;
  } else {
    origin = d[j + 1];
    p -= gap, q -= gap, low = -middle, high = 0;
  }
  double tau =
      interpolate(c * (p + q) + rho * (zp + zq), c * p * q + rho * (zp * q + zq * p), c, above);
  if (!(tau > low && tau < high)) tau = (low + high) / 2;
  for (int step = 0; step < MOST_STEPS; step++) {
    loops->sums(d, z, k, split + 1, origin, tau, s);
    f = 1 + rho * (s[0] + s[1]);
    if (fabs(f) <= w->precision * (1 + rho * (fabs(s[0]) + fabs(s[1])))) break;
    *(f < 0 ? &low : &high) = tau;
    double a = p - tau, b = q - tau, slope = rho * (s[2] + s[3]);
    c = f - rho * (a * s[2] + b * s[3]);
    double next = tau + interpolate((a + b) * f - a * b * slope, a * b * f, c, above);
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (next == tau || next == low || next == high) break;
    tau = next;
  }
  w->origin[j] = origin;
  w->tau[j] = tau;
}

static void find_roots(void *context, int64_t from, int64_t to) {
  for (int64_t j = from; j < to; j++) find_root(context, j);
}

/* Computes the weights with which the roots are exact. */
static void find_weights(Divide *w) {
  for (int64_t i = 0; i < w->k + LT_SYMMETRIC_PADDING; i++) w->hat[i] = 1;
  for (int64_t j = 0; j < w->k; j++)
    lt_secular_loops()->multiply(w->pole, w->k, j, w->origin[j], w->tau[j], w->hat);
  for (int64_t i = 0; i < w->k; i++) w->hat[i] = copysign(sqrt(fabs(w->hat[i])), w->z[i]);
  memset(w->hat + w->k, 0, sizeof(double) * LT_SYMMETRIC_PADDING);
}

/* Computes eigenvectors of the equation, columns of s with the rows in the order of `place`. */
static void find_vectors(void *context, int64_t from, int64_t to) {
  enum { PART = 256 };
  const Divide *w = context;
  const lt_SecularLoops *loops = lt_secular_loops();
  double part[PART + LT_SYMMETRIC_PADDING], sums[4];
  for (int64_t j = from; j < to; j++) {
    char *s = w->s + (size_t)(j * w->k) * w->size;
    loops->sums(w->pole, w->hat, w->k, w->k, w->origin[j], w->tau[j], sums);
    for (int64_t i = 0; i < w->k; i += PART) {
      int64_t n = w->k - i < PART ? w->k - i : PART;
      loops->quotients(w->pole + i, w->hat + i, n, w->origin[j], w->tau[j], 1 / sqrt(sums[2]),
                       part);
      for (int64_t r = 0; r < n; r++)
        if (w->dtype == LT_float32)
          ((float *)(void *)s)[w->place[i + r]] = (float)part[r];
        else
          ((double *)(void *)s)[w->place[i + r]] = part[r];
    }
  }
}

/* ---- two parts ------------------------------------------------------------------------------- */

static char *at(const Divide *w, int64_t row, int64_t column) {
  return w->q + (size_t)(column * w->ld + row) * w->size;
}

static double element(const Divide *w, int64_t row, int64_t column) {
  const void *p = at(w, row, column);
  return w->dtype == LT_float32 ? (double)*(const float *)p : *(const double *)p;
}

/* Rotates two columns of n rows: x = c x + s y, y = c y - s x. */
#define ROTATE(T)                                                                                  \
  static void rotate_##T(int64_t n, T c, T s, T *x, T *y) {                                        \
    for (int64_t i = 0; i < n; i++) {                                                              \
      T next = c * x[i] + s * y[i];                                                                \
      y[i] = c * y[i] - s * x[i];                                                                  \
      x[i] = next;                                                                                 \
    }                                                                                              \
  }
ROTATE(float)
ROTATE(double)

/* Sets the poles of columns first .. first + n - 1 aside that do not move: those with a small
 * weight, and one of two that are nearly equal, after a rotation that makes its weight 0. `all` has
 * the weights of all columns, which `merged` lists in ascending order. */
static void set_aside(Divide *w, int64_t first, int64_t n, double *all) {
  double most = 0;
  int64_t last = -1, aside = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fmax(fabs(w->d[first + i]), fabs(all[i])));
  const double limit = 8 * w->eps * most;
  w->k = 0;
  for (int64_t t = 0; t <= n; t++) {
    int64_t i = t < n ? w->merged[t] : -1;
    if (i >= 0 && w->rho * fabs(all[i]) <= limit) {
      w->rest[aside++] = i;
      continue;
    }
    if (i >= 0 && last >= 0) {
      double *d = w->d + first, length = sqrt(all[last] * all[last] + all[i] * all[i]);
      double c = all[i] / length, s = -all[last] / length;
      if (fabs((d[i] - d[last]) * c * s) <= limit) {
        double p = d[last], q = d[i];
        all[i] = length;
        if (w->kind[i] != w->kind[last]) w->kind[i] = w->kind[last] = BOTH;
        if (w->dtype == LT_float32)
          rotate_float(n, (float)c, (float)s, (void *)at(w, first, first + last),
                       (void *)at(w, first, first + i));
        else
          rotate_double(n, c, s, (void *)at(w, first, first + last),
                        (void *)at(w, first, first + i));
        d[last] = p * c * c + q * s * s;
        d[i] = p * s * s + q * c * c;
        w->rest[aside++] = last;
        last = i;
        continue;
      }
    }
    if (last >= 0) {
      w->pole[w->k] = w->d[first + last];
      w->z[w->k] = all[last];
      w->column[w->k++] = last;
    }
    last = i;
  }
}

/* Copies the columns of the poles to `packed`: their rows of the first part, h, for those of kind
 * ABOVE and BOTH, and of the second one for BOTH and BELOW. Counts the kinds. */
static void pack(Divide *w, int64_t first, int64_t n, int64_t h, int64_t *count) {
  int64_t next[3] = {0};
  memset(count, 0, 3 * sizeof *count);
  for (int64_t i = 0; i < w->k; i++) count[(int)w->kind[w->column[i]]]++;
  next[BOTH] = count[ABOVE];
  next[BELOW] = count[ABOVE] + count[BOTH];
  char *below = w->packed + (size_t)(next[BELOW] * h) * w->size;
  for (int64_t i = 0; i < w->k; i++) {
    int kind = w->kind[w->column[i]];
    int64_t to = w->place[i] = next[kind]++, column = first + w->column[i];
    if (kind != BELOW)
      memcpy(w->packed + (size_t)(to * h) * w->size, at(w, first, column), (size_t)h * w->size);
    if (kind != ABOVE)
      memcpy(below + (size_t)((to - count[ABOVE]) * (n - h)) * w->size, at(w, first + h, column),
             (size_t)(n - h) * w->size);
  }
}

/* Moves the n - k columns and eigenvalues that were set aside behind the first k. */
static void move_rest(Divide *w, int64_t first, int64_t n) {
  size_t bytes = (size_t)n * w->size;
  for (int64_t i = 0; i < n - w->k; i++) {
    memcpy(w->s + (size_t)i * bytes, at(w, first, first + w->rest[i]), bytes);
    w->hat[i] = w->d[first + w->rest[i]];
  }
  for (int64_t i = 0; i < n - w->k; i++) {
    memcpy(at(w, first, first + w->k + i), w->s + (size_t)i * bytes, bytes);
    w->d[first + w->k + i] = w->hat[i];
  }
}

/* Computes rows `row` .. row + m - 1 of the new columns from `count` packed ones. */
static void multiply(Divide *w, int64_t first, int64_t row, int64_t m, int64_t count, char *packed,
                     int64_t from) {
  lt_Matrix s = {w->s + (size_t)from * w->size, w->k, 1}, x = {packed, m, 1},
            y = {at(w, row, first), w->ld, 1};
  lt_gemm(w->dtype, w->k, m, count, 1, s, x, 0, y);
}

/* Lists eigenvalues in ascending order: `other` lists two ranges of them, in this order each, of
 * which the second one begins at `h`. */
static void merge_orders(const double *d, int64_t n, int64_t h, const int64_t *other,
                         int64_t *order) {
  for (int64_t i = 0, j = h, t = 0; t < n; t++)
    order[t] = j == n || (i < h && d[other[i]] <= d[other[j]]) ? other[i++] : other[j++];
}

static void sort_rest(const double *d, int64_t n, int64_t *order) {
  for (int64_t i = 1; i < n; i++) {
    int64_t t = order[i], k = i;
    for (; k > 0 && d[order[k - 1]] > d[t]; k--) order[k] = order[k - 1];
    order[k] = t;
  }
}

/* Joins the parts of h and n - h rows, between which the element is e. */
static void merge(Divide *w, int64_t first, int64_t n, int64_t h, double e) {
  double *all = w->norm, *d = w->d + first, squares = 0;
  int64_t *order = w->order + first, count[3];
  for (int64_t i = 0; i < n; i++) {
    all[i] = i < h ? element(w, first + h - 1, first + i)
                   : copysign(1, e) * element(w, first + h, first + i);
    squares += all[i] * all[i];
    w->kind[i] = i < h ? ABOVE : BELOW;
    if (i >= h) order[i] += h;
  }
  for (int64_t i = 0; i < n; i++) all[i] /= sqrt(squares);
  w->rho = fabs(e) * squares;
  merge_orders(d, n, h, order, w->merged);
  set_aside(w, first, n, all);
  int64_t k = w->k;
  for (int64_t i = 0; i < LT_SYMMETRIC_PADDING; i++) w->pole[k + i] = 0x1p1000, w->z[k + i] = 0;
  squares = 0;
  for (int64_t i = 0; i < k; i++) squares += w->z[i] * w->z[i];
  for (int64_t i = 0; i < k; i++) w->z[i] /= sqrt(squares);
  w->rho *= squares;
  if (k > 0) pack(w, first, n, h, count);
  move_rest(w, first, n);
  if (k > 0) {
    lt_share(k * k * 8, k, find_roots, w);
    find_weights(w);
    lt_share(k * k * 2, k, find_vectors, w);
    char *below = w->packed + (size_t)((count[ABOVE] + count[BOTH]) * h) * w->size;
    multiply(w, first, first, h, count[ABOVE] + count[BOTH], w->packed, 0);
    multiply(w, first, first + h, n - h, count[BOTH] + count[BELOW], below, count[ABOVE]);
  }
  for (int64_t i = 0; i < k; i++) d[i] = w->origin[i] + w->tau[i];
  for (int64_t i = 0; i < n; i++) w->merged[i] = i;
  sort_rest(d, n - k, w->merged + k);
  merge_orders(d, n, k, w->merged, order);
}

/* Computes a part of one or two rows. */
static void solve_few(Divide *w, int64_t first, int64_t n) {
  double *d = w->d + first, e = n == 2 ? w->e[first] : 0, c = 1, s = 0;
  if (e != 0) { /* a rotation that makes it 0 (Jacobi) */
    double t = (d[1] - d[0]) / (2 * e);
    t = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(1 + t * t));
    c = 1 / sqrt(1 + t * t), s = t * c;
    d[0] -= t * e, d[1] += t * e;
  }
  const double v[] = {c, -s, s, c};
  for (int64_t i = 0; i < n * n; i++)
    if (w->dtype == LT_float32)
      *(float *)(void *)at(w, first + i % 2 % n, first + i / 2) = (float)v[i];
    else
      *(double *)(void *)at(w, first + i % 2 % n, first + i / 2) = v[i];
  bool turned = n == 2 && d[0] > d[1];
  for (int64_t i = 0; i < n; i++) w->order[first + i] = turned ? 1 - i : i;
}

static void solve(Divide *w, int64_t first, int64_t n) {
  if (lt_stopped()) return;
  if (n <= 2) {
    solve_few(w, first, n);
    return;
  }
  int64_t h = n / 2, middle = first + h;
  double e = w->e[middle - 1];
  w->d[middle - 1] -= fabs(e);
  w->d[middle] -= fabs(e);
  solve(w, first, h);
  solve(w, middle, n - h);
  merge(w, first, n, h, e);
}

/* ---- whole matrices -------------------------------------------------------------------------- */

enum { VECTORS = 6, LISTS = 5 };

static size_t vector_bytes(int64_t n) {
  return lt_lines_of(sizeof(double) * (size_t)(n + LT_SYMMETRIC_PADDING));
}

size_t lt_tridiagonal_room(lt_Dtype dtype, int64_t n) {
  return (VECTORS + LISTS + 1) * vector_bytes(n) +
         2 * lt_lines_of((size_t)(n * n) * lt_dtype_size(dtype));
}

void lt_tridiagonal_solve(lt_Dtype dtype, int64_t n, double *d, double *e, void *q, int64_t ld,
                          char *room) {
  Divide w = {.dtype = dtype, .size = lt_dtype_size(dtype), .d = d, .e = e, .q = q, .ld = ld};
  w.eps = dtype == LT_float32 ? 0x1p-24 : 0x1p-53;
  w.precision = dtype == LT_float32 ? 0x1p-30 : 0x1p-51;
  double **vectors[VECTORS] = {&w.pole, &w.z, &w.hat, &w.origin, &w.tau, &w.norm};
  int64_t **lists[LISTS - 1] = {&w.order, &w.column, &w.place, &w.rest};
  for (int i = 0; i < VECTORS; i++) *vectors[i] = lt_take(&room, vector_bytes(n));
  for (int i = 0; i < LISTS - 1; i++) *lists[i] = lt_take(&room, vector_bytes(n));
  w.merged = lt_take(&room, vector_bytes(n));
  w.kind = lt_take(&room, vector_bytes(n));
  size_t matrix = lt_lines_of((size_t)(n * n) * w.size);
  w.packed = lt_take(&room, matrix);
  w.s = lt_take(&room, matrix);
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fmax(fabs(d[i]), i < n - 1 ? fabs(e[i]) : 0));
  for (int64_t j = 0; j < n; j++) memset(at(&w, 0, j), 0, (size_t)n * w.size);
  for (int64_t i = 0; i < n && most > 0; i++) d[i] /= most;
  for (int64_t i = 0; i < n - 1 && most > 0; i++) e[i] /= most;
  solve(&w, 0, n);
  if (lt_stopped()) return;
  /* The columns in ascending order. */
  for (int64_t j = 0; j < n; j++)
    memcpy(w.packed + (size_t)(j * n) * w.size, at(&w, 0, w.order[j]), (size_t)n * w.size);
  for (int64_t j = 0; j < n; j++) {
    memcpy(at(&w, 0, j), w.packed + (size_t)(j * n) * w.size, (size_t)n * w.size);
    w.pole[j] = d[w.order[j]] * (most > 0 ? most : 1);
  }
  memcpy(d, w.pole, sizeof(double) * (size_t)n);
}
