/* small_matrices_body.h: loops over small matrices of one type; see small_matrices.c. */
#define FN_(a, b)          a##_##b
#define FN(a, b)           FN_(a, b)
#define NAME(x)            FN(x, F)
#define LANES_N            (LT_BLOCK_BYTES / (int)sizeof(T))
#define SELECT(k, yes, no) LT_CHOOSE(V, M, k, no, yes)
#define BOTH(k, yes, no)   LT_CHOOSE(M, M, k, no, yes)

LT_LANES M NAME(all)(I e) { return e - (M){0}; }

LT_LANES V NAME(root)(V v) {
  T x[V_N];
  memcpy(x, &v, sizeof v);
  for (int k = 0; k < V_N; k++) x[k] = ROOT(x[k]);
  return V_LOAD(x);
}

LT_LANES void NAME(put)(T *to, V v) { memcpy(to, &v, sizeof v); }
LT_LANES void NAME(put_integers)(I *to, M v) { memcpy(to, &v, sizeof v); }

/* Exchanges two vectors in some lanes. */
LT_LANES void NAME(exchange)(M k, V *x, V *y) {
  V old = *x;
  *x = SELECT(k, *y, old);
  *y = SELECT(k, old, *y);
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* Selects the first row from j on with the largest element in column j, or with a NaN. */
LT_LANES M NAME(pivot_row)(const int n, const int j, V *x) {
  const M size_bits = NAME(all)((I)((BITS)-1 >> 1));
  M most = (M)x[j * n + j] & size_bits, p = NAME(all)(j);
  for (int i = j + 1; i < n; i++) {
    M size = (M)x[i * n + j] & size_bits, larger = size > most;
    most = BOTH(larger, size, most);
    p = BOTH(larger, NAME(all)(i), p);
  }
  return p;
}

LT_LANES void NAME(lu_vector)(const int n, T *a, I *pivots, I *info) {
  V x[LT_SMALL_ORDER * LT_SMALL_ORDER];
  M first = NAME(all)(0);
  for (int e = 0; e < n * n; e++) x[e] = V_LOAD(a + e * LANES_N);
  for (int j = 0; j < n; j++) {
    const M p = NAME(pivot_row)(n, j, x);
    NAME(put_integers)(pivots + j * LANES_N, p + 1);
    for (int i = j + 1; i < n; i++) {
      const M exchanged = p == i;
      for (int k = 0; k < n; k++) NAME(exchange)(exchanged, &x[j * n + k], &x[i * n + k]);
    }
    const V pivot = x[j * n + j];
    const M none = (M)(pivot == 0);
    first = BOTH((first == 0) & none, NAME(all)(j + 1), first);
    for (int i = j + 1; i < n; i++) {
      const V f = SELECT(none, x[i * n + j], x[i * n + j] / pivot);
      x[i * n + j] = f;
      for (int k = j + 1; k < n; k++) x[i * n + k] = V_MADD(-f, x[j * n + k], x[i * n + k]);
    }
  }
  for (int e = 0; e < n * n; e++) NAME(put)(a + e * LANES_N, x[e]);
  NAME(put_integers)(info, first);
}

static void NAME(lu)(int n, int used, void *a_, void *pivots_, void *info_) {
  T *a = a_;
  I *pivots = pivots_, *info = info_;
  for (int k = 0; k < used; k += V_N) BY_ORDER(NAME(lu_vector), n, a + k, pivots + k, info + k)
}

static void NAME(product)(int n, const void *a_, const void *pivots_, lt_BlockProduct *to) {
  const T *a = a_;
  const I *p = pivots_;
  double det[LANES_N], least[LANES_N], most[LANES_N];
  for (int k = 0; k < LANES_N; k++) {
    det[k] = 1;
    least[k] = INFINITY;
    most[k] = 0;
  }
  for (int i = 0; i < n; i++, a += (n + 1) * LANES_N, p += LANES_N)
    for (int k = 0; k < LANES_N; k++) {
      const double u = (double)a[k], size = fabs(u);
      det[k] *= p[k] == i + 1 ? u : -u;
      least[k] = least[k] <= size ? least[k] : size;
      most[k] = most[k] >= size ? most[k] : size;
    }
  memcpy(to->det, det, sizeof det);
  memcpy(to->least, least, sizeof least);
  memcpy(to->most, most, sizeof most);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

LT_LANES void NAME(cholesky_vector)(const int n, T *a, I *info) {
  V x[LT_SMALL_ORDER * LT_SMALL_ORDER];
  M first = NAME(all)(0);
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) x[i * n + j] = V_LOAD(a + (i * n + j) * LANES_N);
  for (int k = 0; k < n; k++) {
    const V square = x[k * n + k], root = NAME(root)(square);
    first = BOTH((first == 0) & ~(M)(square > 0), NAME(all)(k + 1), first);
    const M on = first == 0;
    x[k * n + k] = SELECT(on, root, square);
    for (int i = k + 1; i < n; i++) x[i * n + k] = SELECT(on, x[i * n + k] / root, x[i * n + k]);
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j <= i; j++)
        x[i * n + j] = SELECT(on, V_MADD(-x[i * n + k], x[j * n + k], x[i * n + j]), x[i * n + j]);
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      NAME(put)(a + (i * n + j) * LANES_N, j <= i ? x[i * n + j] : (V){0});
  NAME(put_integers)(info, first);
}

static void NAME(cholesky)(int n, int used, void *a_, void *info_) {
  T *a = a_;
  I *info = info_;
  for (int k = 0; k < used; k += V_N) BY_ORDER(NAME(cholesky_vector), n, a + k, info + k)
}

/* ---- solutions ------------------------------------------------------------------------------- */

/* Loads factors and pivots. */
LT_LANES void NAME(load)(const int n, const T *a, const I *pivots, V *f, M *p) {
  for (int e = 0; e < n * n; e++) f[e] = V_LOAD(a + e * LANES_N);
  for (int j = 0; j < n; j++) memcpy(&p[j], pivots + j * LANES_N, sizeof p[j]);
}

/* Solves for one right side. */
LT_LANES void NAME(solve_side)(const int n, const V *f, const M *p, V *x) {
  for (int j = 0; j < n; j++)
    for (int i = j + 1; i < n; i++) NAME(exchange)(p[j] == i + 1, &x[j], &x[i]);
  for (int i = 1; i < n; i++)
    for (int j = 0; j < i; j++) x[i] = V_MADD(-f[i * n + j], x[j], x[i]);
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) x[i] = V_MADD(-f[i * n + j], x[j], x[i]);
    x[i] /= f[i * n + i];
  }
}

LT_LANES void NAME(solve_vector)(const int n, int r, const T *a, const I *pivots, T *b) {
  V f[LT_SMALL_ORDER * LT_SMALL_ORDER], x[LT_SMALL_ORDER];
  M p[LT_SMALL_ORDER];
  NAME(load)(n, a, pivots, f, p);
  for (int c = 0; c < r; c++) {
    for (int i = 0; i < n; i++) x[i] = V_LOAD(b + (i * r + c) * LANES_N);
    NAME(solve_side)(n, f, p, x);
    for (int i = 0; i < n; i++) NAME(put)(b + (i * r + c) * LANES_N, x[i]);
  }
}

static void NAME(solve)(int n, int r, int used, const void *a_, const void *pivots_, void *b_) {
  const T *a = a_;
  const I *pivots = pivots_;
  T *b = b_;
  for (int k = 0; k < used; k += V_N) BY_ORDER(NAME(solve_vector), n, r, a + k, pivots + k, b + k)
}

LT_LANES void NAME(invert_vector)(const int n, const T *a, const I *pivots, const I *info, T *to) {
  V f[LT_SMALL_ORDER * LT_SMALL_ORDER], x[LT_SMALL_ORDER];
  M p[LT_SMALL_ORDER], singular;
  memcpy(&singular, info, sizeof singular);
  singular = singular != 0;
  NAME(load)(n, a, pivots, f, p);
  for (int c = 0; c < n; c++) {
    for (int i = 0; i < n; i++) x[i] = (V){0} + (T)(i == c);
    NAME(solve_side)(n, f, p, x);
    for (int i = 0; i < n; i++)
      NAME(put)(to + (i * n + c) * LANES_N, SELECT(singular, f[i * n + c], x[i]));
  }
}

static void NAME(invert)(int n, int used, const void *a_, const void *pivots_, const void *info_,
                         void *to_) {
  const T *a = a_;
  const I *pivots = pivots_, *info = info_;
  T *to = to_;
  for (int k = 0; k < used; k += V_N)
    BY_ORDER(NAME(invert_vector), n, a + k, pivots + k, info + k, to + k)
}

/* ---- products -------------------------------------------------------------------------------- */

static void NAME(multiply)(int m, int n, int k, int used, const void *a_, const void *b_,
                           void *c_) {
  const T *a = a_, *b = b_;
  T *c = c_;
  for (int lane = 0; lane < used; lane += V_N)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) {
        V sum = {0};
        for (int p = 0; p < k; p++)
          sum = V_MADD(V_LOAD(a + (i * k + p) * LANES_N + lane),
                       V_LOAD(b + (p * n + j) * LANES_N + lane), sum);
        NAME(put)(c + (i * n + j) * LANES_N + lane, sum);
      }
}

#undef FN_
#undef FN
#undef NAME
#undef LANES_N
#undef SELECT
#undef BOTH
