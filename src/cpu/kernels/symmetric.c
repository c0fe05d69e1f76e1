/* symmetric.c: the loops of eigenvalues of symmetric matrices (symmetric.h) of one instruction
 * set. */
#include "cpu/symmetric.h"
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"

#define UNROLL     _Pragma("GCC unroll 4")
#define PLUS(x, y) ((x) + (y))

/* Four columns are processed at once. `element` updates an element below the diagonal by itself. */
#define LOOPS(T, F, V, V_N, V_LOAD, V_ALL, V_MADD)                                                 \
  static T total_##F(V s) {                                                                        \
    V v_ = s;                                                                                      \
    LT_JOIN_##V(PLUS) return v_[0];                                                                \
  }                                                                                                \
  static void triangle_##F(int64_t first, int64_t end, T *a, int64_t ld, const T *v, const T *w,   \
                           const T *x, T *y) {                                                     \
    for (int64_t c = first; c < end; c++)                                                          \
      for (int64_t i = c; i < end; i++) {                                                          \
        T e = a[c * ld + i] -= v[i] * w[c] + w[i] * v[c];                                          \
        y[i] += e * x[c];                                                                          \
        if (i != c) y[c] += e * x[i];                                                              \
      }                                                                                            \
  }                                                                                                \
  static void step_##F(int64_t n, void *matrix, int64_t ld, const void *v_, const void *w_,        \
                       const void *x_, void *y_) {                                                 \
    T *a = matrix, *y = y_;                                                                        \
    const T *v = v_, *w = w_, *x = x_;                                                             \
    memset(y, 0, sizeof(T) * (size_t)(n + LT_SYMMETRIC_PADDING));                                  \
    int64_t c = 0;                                                                                 \
    for (; c + 4 <= n; c += 4) {                                                                   \
      V sum[4], wc[4], vc[4], xc[4];                                                               \
      triangle_##F(c, c + 4, a, ld, v, w, x, y);                                                   \
      UNROLL for (int k = 0; k < 4; k++) {                                                         \
        sum[k] = V_ALL(0);                                                                         \
        wc[k] = V_ALL(-w[c + k]);                                                                  \
        vc[k] = V_ALL(-v[c + k]);                                                                  \
        xc[k] = V_ALL(x[c + k]);                                                                   \
      }                                                                                            \
      for (int64_t i = c + 4; i < n; i += V_N) {                                                   \
        const V vi = V_LOAD(v + i), wi = V_LOAD(w + i), xi = V_LOAD(x + i);                        \
        V yi = V_LOAD(y + i);                                                                      \
        UNROLL for (int k = 0; k < 4; k++) {                                                       \
          T *p = a + (c + k) * ld + i;                                                             \
          V e = V_MADD(vi, wc[k], V_LOAD(p));                                                      \
          e = V_MADD(wi, vc[k], e);                                                                \
          memcpy(p, &e, sizeof e);                                                                 \
          yi = V_MADD(e, xc[k], yi);                                                               \
          sum[k] = V_MADD(e, xi, sum[k]);                                                          \
        }                                                                                          \
        memcpy(y + i, &yi, sizeof yi);                                                             \
      }                                                                                            \
      UNROLL for (int k = 0; k < 4; k++) y[c + k] += total_##F(sum[k]);                            \
    }                                                                                              \
    triangle_##F(c, n, a, ld, v, w, x, y);                                                         \
  }

LOOPS(float, f32, FV, FV_N, FV_LOAD, FV_ALL, FV_MADD)
LOOPS(double, f64, DV, DV_N, DV_LOAD, DV_ALL, DV_MADD)

/* ---- the secular equation -------------------------------------------------------------------- */

static void sums(const double *d, const double *z, int64_t n, int64_t split, double origin,
                 double tau, double out[4]) {
  static const int64_t number[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  DV sum[2] = {DV_ALL(0), DV_ALL(0)}, slope[2] = {DV_ALL(0), DV_ALL(0)};
  DM place;
  memcpy(&place, number, sizeof place);
  for (int64_t i = 0; i < n; i += DV_N) {
    const DM low = place + i < split;
    DV zi = DV_LOAD(z + i), q = zi / ((DV_LOAD(d + i) - DV_ALL(origin)) - DV_ALL(tau));
    DV lower = (DV)((DM)q & low), upper = (DV)((DM)q & ~low);
    sum[0] = DV_MADD(zi, lower, sum[0]);
    sum[1] = DV_MADD(zi, upper, sum[1]);
    slope[0] = DV_MADD(lower, lower, slope[0]);
    slope[1] = DV_MADD(upper, upper, slope[1]);
  }
  out[0] = total_f64(sum[0]);
  out[1] = total_f64(sum[1]);
  out[2] = total_f64(slope[0]);
  out[3] = total_f64(slope[1]);
}

static void multiply(const double *d, int64_t n, int64_t j, double origin, double tau, double *w) {
  const double kept = w[j];
  for (int64_t i = 0; i < n; i += DV_N) {
    DV di = DV_LOAD(d + i), q = ((di - DV_ALL(origin)) - DV_ALL(tau)) / (di - DV_ALL(d[j]));
    q *= DV_LOAD(w + i);
    memcpy(w + i, &q, sizeof q);
  }
  w[j] = kept * ((d[j] - origin) - tau);
}

static void quotients(const double *d, const double *z, int64_t n, double origin, double tau,
                      double scale, double *out) {
  for (int64_t i = 0; i < n; i += DV_N) {
    DV q = DV_ALL(scale) * DV_LOAD(z + i) / ((DV_LOAD(d + i) - DV_ALL(origin)) - DV_ALL(tau));
    memcpy(out + i, &q, sizeof q);
  }
}

extern const lt_SymmetricLoops LT_FOR_ISA(lt_symmetric_loops)[2];
const lt_SymmetricLoops LT_FOR_ISA(lt_symmetric_loops)[2] = {{step_f32}, {step_f64}};
extern const lt_SecularLoops LT_FOR_ISA(lt_secular_loops);
const lt_SecularLoops LT_FOR_ISA(lt_secular_loops) = {sums, multiply, quotients};
