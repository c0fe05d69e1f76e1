/* fold_body.h: the loops of fold.c for one type of elements and states. fold.c defines
 *
 *   S            suffix of the functions' names
 *   FROM, T      the types of elements and states; LT_FROM, LT_TO their dtypes
 *   V, LANES, LANES_N, LANES_ALL, LANES_JOIN, OPEN, LOAD, MASK, MASK_ANY, NAN_OF, BLOCK, for
 *                floats and complex numbers: vectors and lanes of T, their number and functions
 *                (lanes.h), how they are loaded from elements and states, the result of comparing
 *                vectors, and how many elements of a row one set of lanes accumulates
 *   AHEAD        for these: how many elements before their use elements are prefetched; 0: not
 *   OF_HALVES    (x): x if bfloat16 and float16 are loaded to lanes, else nothing
 *   OF_FORMS     (x): x if the type has the forms of norms, else nothing
 *   NUMBER       if not T: the type of the numbers n and a of a finish
 *   ON_<RULE>    (x): x if rows of this rule are defined for the type, else nothing
 *   ROW_FOLD, ROW_FOLD_WIDE   LOOPS if rows of this kind are, else NOTHING
 *   ENTRY_FOLD, ENTRY_FOLD_WIDE   likewise ENTRY or NOTHING
 *
 * and the operations of the forms, and includes this file, which defines `static const lt_Fold
 * folds_of_<S>[LT_REDUCTION_COUNT]`. */
#ifndef NUMBER
#define NUMBER T
#endif

#define NAMED_(a, b, s)  a##_##b##_##s
#define NAMED__(a, b, s) NAMED_(a, b, s)
#define NAMED(a, b)      NAMED__(a, b, S)
#define OF_VECTORS(a, b) NAMED__(a, b, V)

/* ---- rows, by lanes -------------------------------------------------------------------------- */

/* Whether an expression, after macro expansion, compares with NaN, as LARGER and SMALLER do; a
 * constant at compile time. */
#define SELECTS(text) (__builtin_strstr(text, "!=") != NULL)

/* Statement: s = quick(s, lift(x)) and t = quick(t, lift(y)) of lanes; sets `nan` where one of
 * lift(x) and lift(y) is NaN. */
#define LT_JOIN_QUICK(s, x, t, y, quick, lift) EACH_PART(LT_JOIN_QUICK_, s, x, t, y, quick, lift)
#define LT_JOIN_QUICK_(k, s, x, t, y, quick, lift)                                                 \
  {                                                                                                \
    V v_ = lift((x).part[k]), w_ = lift((y).part[k]);                                              \
    (s).part[k] = quick((s).part[k], v_);                                                          \
    (t).part[k] = quick((t).part[k], w_);                                                          \
    nan |= NAN_OF(v_, w_);                                                                         \
  }

/* Statement: prefetches what four lanes load AHEAD elements after x. */
#define PREFETCH(x)                                                                                \
  for (int k_ = 0; AHEAD && k_ < 4 * LANES_N; k_ += 64 / (int)sizeof *(x))                         \
    __builtin_prefetch((x) + AHEAD + k_);

/* load loads lanes; lift and one convert a vector and an element to states; join and join_one
 * combine states. If has_quick, quick combines states that are not NaN to the smallest or the
 * largest; a row with a NaN is combined again. Such rows are not divided into blocks: their result
 * is exact in any order. */
#define ROWS_BY_LANES(NAME, OF, load, lift, one, join, join_one, identity, quick, has_quick)       \
  /* Sets *s to lanes of the extreme of n >= LANES_N elements. Returns false if one is NaN. */     \
  LT_LANES bool NAMED(extreme, NAME)(const OF *x, int64_t n, LANES *s) {                           \
    LANES s0 = LANES_ALL((T)(identity)), s1 = s0, s2 = s0, s3 = s0;                                \
    MASK nan = {0};                                                                                \
    int64_t i = 0, last = n - LANES_N;                                                             \
    for (; i + 4 * LANES_N <= n; i += 4 * LANES_N) {                                               \
      LANES x0 = load(x + i), x1 = load(x + i + LANES_N), x2 = load(x + i + 2 * LANES_N),          \
            x3 = load(x + i + 3 * LANES_N);                                                        \
      LT_JOIN_QUICK(s0, x0, s1, x1, quick, lift)                                                   \
      LT_JOIN_QUICK(s2, x2, s3, x3, quick, lift)                                                   \
    }                                                                                              \
    for (; i < n; i += 2 * LANES_N) { /* elements that are read twice change nothing */            \
      LANES x0 = load(x + (i < last ? i : last)),                                                  \
            x1 = load(x + (i + LANES_N < last ? i + LANES_N : last));                              \
      LT_JOIN_QUICK(s0, x0, s1, x1, quick, lift)                                                   \
    }                                                                                              \
    LT_JOIN_LANES(s0, s1, quick)                                                                   \
    LT_JOIN_LANES(s2, s3, quick)                                                                   \
    LT_JOIN_LANES(s0, s2, quick)                                                                   \
    *s = s0;                                                                                       \
    return !MASK_ANY(nan);                                                                         \
  }                                                                                                \
  static T NAMED(block, NAME)(const OF *x, int64_t n) {                                            \
    T a = (T)(identity);                                                                           \
    int64_t i = 0;                                                                                 \
    if (n >= LANES_N) {                                                                            \
      const LANES none = LANES_ALL((T)(identity));                                                 \
      LANES s0 = none, s1 = none, s2 = none, s3 = none;                                            \
      if ((has_quick) && NAMED(extreme, NAME)(x, n, &s0)) {                                        \
        LANES_JOIN(a, quick, s0);                                                                  \
        return a;                                                                                  \
      }                                                                                            \
      if (has_quick) s0 = none;                                                                    \
      for (; i + 4 * LANES_N <= n; i += 4 * LANES_N) {                                             \
        LANES x0 = load(x + i), x1 = load(x + i + LANES_N), x2 = load(x + i + 2 * LANES_N),        \
              x3 = load(x + i + 3 * LANES_N);                                                      \
        PREFETCH(x + i)                                                                            \
        LT_JOIN_LIFTED(s0, x0, join, lift)                                                         \
        LT_JOIN_LIFTED(s1, x1, join, lift)                                                         \
        LT_JOIN_LIFTED(s2, x2, join, lift)                                                         \
        LT_JOIN_LIFTED(s3, x3, join, lift)                                                         \
      }                                                                                            \
      for (; i + LANES_N <= n; i += LANES_N) {                                                     \
        LANES x0 = load(x + i);                                                                    \
        LT_JOIN_LIFTED(s0, x0, join, lift)                                                         \
      }                                                                                            \
      LT_JOIN_FOUR(a, join)                                                                        \
    }                                                                                              \
    for (; i < n; i++) a = join_one(a, one(x[i]));                                                 \
    return a;                                                                                      \
  }                                                                                                \
  static LT_APART T NAMED(pairs, NAME)(const OF *x, int64_t n) {                                   \
    if ((has_quick) || n <= BLOCK) return NAMED(block, NAME)(x, n);                                \
    int64_t half = (n / BLOCK + 1) / 2 * BLOCK;                                                    \
    T a = NAMED(pairs, NAME)(x, half), b = NAMED(pairs, NAME)(x + half, n - half);                 \
    return join_one(a, b);                                                                         \
  }                                                                                                \
  /* Folds a row of LANES_N to 4 * LANES_N - 1 elements, to the same result as block_. */          \
  LT_LANES T NAMED(short, NAME)(const OF *x, int64_t n) {                                          \
    LANES s = LANES_ALL((T)(identity));                                                            \
    T a;                                                                                           \
    int64_t i = 0;                                                                                 \
    for (; i + LANES_N <= n; i += LANES_N) {                                                       \
      LANES x0 = load(x + i);                                                                      \
      LT_JOIN_LIFTED(s, x0, join, lift)                                                            \
    }                                                                                              \
    LANES_JOIN(a, join, s);                                                                        \
    for (; i < n; i++) a = join_one(a, one(x[i]));                                                 \
    return a;                                                                                      \
  }                                                                                                \
  /* Folds rows of n < LANES_N elements, LANES_N of them side by side, to the same result. */      \
  static void NAMED(narrow, NAME)(const OF *x, int64_t rows, int64_t n, int64_t apart, T *out) {   \
    const int64_t size = sizeof *x;                                                                \
    OF tile[TOGETHER * LANES_N];                                                                   \
    for (int64_t r = 0, m; r + LANES_N <= rows; r += m, x += m * apart) {                          \
      m = rows - r < TOGETHER ? (rows - r) / LANES_N * LANES_N : TOGETHER;                         \
      lt_mover(size)->tile(n, m, (char *)tile, m *size, (const char *)x, apart *size);             \
      for (int64_t k = 0; k < m; k += LANES_N) {                                                   \
        LANES s = LANES_ALL((T)(identity));                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
          LANES x0 = load(tile + i * m + k);                                                       \
          LT_JOIN_LIFTED(s, x0, join, lift)                                                        \
        }                                                                                          \
        memcpy(out + r + k, &s, sizeof s);                                                         \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void NAMED(rows, NAME)(const void *x, int64_t rows, int64_t n, int64_t apart,             \
                                void *out) {                                                       \
    const OF *v = x;                                                                               \
    T *to = out;                                                                                   \
    if (n > 1 && n < LANES_N) {                                                                    \
      int64_t whole = rows / LANES_N * LANES_N;                                                    \
      NAMED(narrow, NAME)(v, whole, n, apart, to);                                                 \
      v += whole * apart;                                                                          \
      to += whole;                                                                                 \
      rows -= whole;                                                                               \
    }                                                                                              \
    if (!(has_quick) && n >= LANES_N && n < 4 * LANES_N) {                                         \
      for (int64_t r = 0; r < rows; r++, v += apart) to[r] = NAMED(short, NAME)(v, n);             \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t r = 0; r < rows; r++, v += apart)                                                 \
      to[r] = (has_quick) || n <= BLOCK ? NAMED(block, NAME)(v, n) : NAMED(pairs, NAME)(v, n);     \
  }

/* ---- rows of integers: exact in any order ---------------------------------------------------- */

#define WIDE ((int)(128 / sizeof(T))) /* states side by side */

#define PLAIN_ROWS(NAME, OF, one, join_one, identity)                                              \
  static void NAMED(rows, NAME)(const void *x, int64_t rows, int64_t n, int64_t apart,             \
                                void *out) {                                                       \
    const OF *v = x;                                                                               \
    T *to = out;                                                                                   \
    for (int64_t r = 0; r < rows; r++, v += apart) {                                               \
      T a = (T)(identity), s[WIDE];                                                                \
      int64_t i = 0;                                                                               \
      for (int k = 0; k < WIDE; k++) s[k] = a;                                                     \
      for (; i + WIDE <= n; i += WIDE)                                                             \
        for (int k = 0; k < WIDE; k++) s[k] = join_one(s[k], one(v[i + k]));                       \
      for (int k = 0; n >= WIDE && k < WIDE; k++) a = join_one(a, s[k]);                           \
      for (; i < n; i++) a = join_one(a, one(v[i]));                                               \
      to[r] = a;                                                                                   \
    }                                                                                              \
  }

#ifdef V
#define ROWS(NAME, OF, load, lift, one, join, join_one, identity, quick, has_quick)                \
  ROWS_BY_LANES(NAME, OF, load, lift, one, join, join_one, identity, quick, has_quick)
#else
#define ROWS(NAME, OF, load, lift, one, join, join_one, identity, quick, has_quick)                \
  PLAIN_ROWS(NAME, OF, one, join_one, identity)
#endif

/* ---- columns --------------------------------------------------------------------------------- */

/* few_<NAME> combines up to ROW_GROUP rows, four in one pass. */
#define FEW_ROWS(NAME, OF, one, join_one)                                                          \
  /* Combines `a` with the elements of a column after x: three of four rows in one pass. */        \
  static inline T NAMED(four, NAME)(T a, const OF *x, int64_t stride) {                            \
    a = join_one(a, one(x[stride]));                                                               \
    a = join_one(a, one(x[2 * stride]));                                                           \
    return join_one(a, one(x[3 * stride]));                                                        \
  }                                                                                                \
  static void NAMED(few, NAME)(const OF *restrict x, int64_t n, int64_t stride, int64_t width,     \
                               T *restrict out) {                                                  \
    int64_t i = 0;                                                                                 \
    if (n >= 4) {                                                                                  \
      for (int64_t j = 0; j < width; j++) out[j] = NAMED(four, NAME)(one(x[j]), x + j, stride);    \
      i = 4;                                                                                       \
    } else {                                                                                       \
      for (int64_t j = 0; j < width; j++) out[j] = one(x[j]);                                      \
      i = 1;                                                                                       \
    }                                                                                              \
    for (; i + 4 <= n; i += 4) {                                                                   \
      const OF *restrict r = x + i * stride;                                                       \
      for (int64_t j = 0; j < width; j++)                                                          \
        out[j] = NAMED(four, NAME)(join_one(out[j], one(r[j])), r + j, stride);                    \
    }                                                                                              \
    for (; i < n; i++) {                                                                           \
      const OF *restrict r = x + i * stride;                                                       \
      for (int64_t j = 0; j < width; j++) out[j] = join_one(out[j], one(r[j]));                    \
    }                                                                                              \
  }

#define FEW_ROWS_BY_VECTORS(NAME, OF, load, lift, one, join, join_one)                             \
  /* Combines `count` rows from r on with the states, or sets these to them for `first`. */        \
  LT_LANES void NAMED(pass, NAME)(const OF *r, int count, bool first, int64_t stride,              \
                                  int64_t width, T *out) {                                         \
    const int64_t size = (int64_t)(sizeof(V) / sizeof(T));                                         \
    int64_t j = 0;                                                                                 \
    for (; j + size <= width; j += size) {                                                         \
      V a = lift(load(r + j));                                                                     \
      if (!first) a = join(FV_LOAD(out + j), a);                                                   \
      for (int k = 1; k < count; k++) a = join(a, lift(load(r + k * stride + j)));                 \
      memcpy(out + j, &a, sizeof a);                                                               \
    }                                                                                              \
    for (; j < width; j++) {                                                                       \
      T a = one(r[j]);                                                                             \
      if (!first) a = join_one(out[j], a);                                                         \
      for (int k = 1; k < count; k++) a = join_one(a, one(r[k * stride + j]));                     \
      out[j] = a;                                                                                  \
    }                                                                                              \
  }                                                                                                \
  static void NAMED(few, NAME)(const OF *restrict x, int64_t n, int64_t stride, int64_t width,     \
                               T *restrict out) {                                                  \
    int64_t i = n >= 4 ? 4 : 1;                                                                    \
    if (n >= 4)                                                                                    \
      NAMED(pass, NAME)(x, 4, true, stride, width, out);                                           \
    else                                                                                           \
      NAMED(pass, NAME)(x, 1, true, stride, width, out);                                           \
    for (; i + 4 <= n; i += 4) NAMED(pass, NAME)(x + i * stride, 4, false, stride, width, out);    \
    for (; i < n; i++) NAMED(pass, NAME)(x + i * stride, 1, false, stride, width, out);            \
  }

/* Narrow dense columns are processed as wide rows of several, which fill the vectors. */
#define COLUMNS(NAME, OF, one, join_one)                                                           \
  static LT_APART void NAMED(split, NAME)(const OF *x, int64_t n, int64_t stride, int64_t width,   \
                                          T *restrict out) {                                       \
    if (n <= ROW_GROUP) {                                                                          \
      NAMED(few, NAME)(x, n, stride, width, out);                                                  \
      return;                                                                                      \
    }                                                                                              \
    T other[LT_FOLD_WIDTH];                                                                        \
    int64_t half = (n / ROW_GROUP + 1) / 2 * ROW_GROUP;                                            \
    NAMED(split, NAME)(x, half, stride, width, out);                                               \
    NAMED(split, NAME)(x + half * stride, n - half, stride, width, other);                         \
    for (int64_t j = 0; j < width; j++) out[j] = join_one(out[j], other[j]);                       \
  }                                                                                                \
  /* Combines `many` dense groups of `width`, in pairs. */                                         \
  static void NAMED(again, NAME)(T * x, int64_t many, int64_t width, T * out) {                    \
    while (many > 1) {                                                                             \
      int64_t half = (many + 1) / 2;                                                               \
      for (int64_t j = 0; j < (many - half) * width; j++)                                          \
        x[j] = join_one(x[j], x[half * width + j]);                                                \
      many = half;                                                                                 \
    }                                                                                              \
    memcpy(out, x, (size_t)width * sizeof *out);                                                   \
  }                                                                                                \
  static void NAMED(columns, NAME)(const void *x, int64_t n, int64_t stride, int64_t width,        \
                                   void *result) {                                                 \
    T *out = result;                                                                               \
    int64_t many = LT_FOLD_WIDTH / 2 / width;                                                      \
    while (many > n / 4) many /= 2;                                                                \
    if (width > 32 || stride != width || many < 2) {                                               \
      NAMED(split, NAME)(x, n, stride, width, out);                                                \
      return;                                                                                      \
    }                                                                                              \
    T wide[LT_FOLD_WIDTH];                                                                         \
    NAMED(split, NAME)(x, n / many, many * width, many * width, wide);                             \
    const OF *rest = (const OF *)x + n / many * many * width;                                      \
    for (int64_t j = 0; j < n % many * width; j++) wide[j] = join_one(wide[j], one(rest[j]));      \
    NAMED(again, NAME)(wide, many, width, out);                                                    \
  }

/* ---- a row of ops.def ------------------------------------------------------------------------ */

/* Rows and columns of a 16-bit type. */
#define OF_HALF(name, half, to_float, open, vector, identity, combine)                             \
  static inline T NAMED(lift_##half, name)(lt_##half x) { return NAMED(lift, name)(to_float(x)); } \
  ROWS(name##_##half, lt_##half, open, OF_VECTORS(lift, name), NAMED(lift_##half, name),           \
       OF_VECTORS(merge, name), NAMED(merge, name), identity, OF_VECTORS(quick, name),             \
       SELECTS(combine))                                                                           \
  FEW_ROWS_BY_VECTORS(name##_##half, lt_##half, vector, OF_VECTORS(lift, name),                    \
                      NAMED(lift_##half, name), OF_VECTORS(merge, name), NAMED(merge, name))       \
  COLUMNS(name##_##half, lt_##half, NAMED(lift_##half, name), NAMED(merge, name))

#define LOOPS(name, identity, element, combine, finish)                                            \
  static inline T NAMED(lift, name)(T x) { return (T)(element); }                                  \
  static inline T NAMED(merge, name)(T x, T y) { return (T)(combine); }                            \
  ROWS(name, FROM, OPEN, OF_VECTORS(lift, name), NAMED(lift, name), OF_VECTORS(merge, name),       \
       NAMED(merge, name), identity, OF_VECTORS(quick, name), SELECTS(#combine))                   \
  FEW_ROWS(name, FROM, NAMED(lift, name), NAMED(merge, name))                                      \
  COLUMNS(name, FROM, NAMED(lift, name), NAMED(merge, name))                                       \
  ROWS(name##_states, T, LOAD, ITSELF, ITSELF, OF_VECTORS(merge, name), NAMED(merge, name),        \
       identity, OF_VECTORS(quick, name), SELECTS(#combine))                                       \
  FEW_ROWS(name##_states, T, ITSELF, NAMED(merge, name))                                           \
  COLUMNS(name##_states, T, ITSELF, NAMED(merge, name))                                            \
  OF_HALVES(OF_HALF(name, bfloat16, lt_bfloat16_to_float, F16_OF_BFLOAT16, FV_OF_BFLOAT16,         \
                    identity, #combine))                                                           \
  OF_HALVES(OF_HALF(name, half, lt_half_to_float, F16_OF_HALF, FV_OF_HALF, identity, #combine))    \
  static void NAMED(start, name)(void *states, int64_t count) {                                    \
    T *s = states;                                                                                 \
    for (int64_t i = 0; i < count; i++) s[i] = (T)(identity);                                      \
  }                                                                                                \
  static void NAMED(end, name)(void *states, int64_t count, double elements, double number) {      \
    const NUMBER n = (NUMBER)elements, a = (NUMBER)number;                                         \
    T *s = states;                                                                                 \
    (void)n, (void)a;                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                          \
      const T x = s[i];                                                                            \
      s[i] = (T)(finish);                                                                          \
    }                                                                                              \
  }

/* Whether an expression is just x. Then the loops over elements also serve for states, and no
 * finish is needed. */
#define IS_X(text) (sizeof(#text) == sizeof "x")

#define ENTRY(name, identity, element, combine, finish)                                            \
  [LT_REDUCTION_##name] = {                                                                        \
      LT_FROM,                                                                                     \
      LT_TO,                                                                                       \
      {NAMED(rows, name), NAMED(columns, name)},                                                   \
      {SAME_TYPE && IS_X(element) ? NAMED(rows, name) : NAMED(rows, name##_states),                \
       SAME_TYPE && IS_X(element) ? NAMED(columns, name) : NAMED(columns, name##_states)},         \
      NAMED(start, name),                                                                          \
      IS_X(finish) ? NULL : NAMED(end, name),                                                      \
      OF_HALVES({NAMED(rows, name##_bfloat16), NAMED(columns, name##_bfloat16)},                   \
                {NAMED(rows, name##_half), NAMED(columns, name##_half)})},

#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#define LT_FORM(name, rule, form)        OF_FORMS(ROW(name, rule, form))
#include "ops.def"

#undef ROW_FOLD
#undef ROW_FOLD_WIDE
#define ROW_FOLD      ENTRY_FOLD
#define ROW_FOLD_WIDE ENTRY_FOLD_WIDE
static const lt_Fold NAMED(folds, of)[LT_REDUCTION_COUNT] = {
#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#define LT_FORM(name, rule, form)        OF_FORMS(ROW(name, rule, form))
#include "ops.def"
};

#undef NUMBER
#undef NAMED_
#undef NAMED__
#undef NAMED
#undef OF_VECTORS
#undef ROWS_BY_LANES
#undef PLAIN_ROWS
#undef WIDE
#undef SELECTS
#undef PREFETCH
#undef LT_JOIN_QUICK
#undef LT_JOIN_QUICK_
#undef ROWS
#undef COLUMNS
#undef LOOPS
#undef OF_HALF
#undef FEW_ROWS
#undef FEW_ROWS_BY_VECTORS
#undef IS_X
#undef ENTRY
#undef ROW_FOLD
#undef ROW_FOLD_WIDE
#undef ENTRY_FOLD
#undef ENTRY_FOLD_WIDE
#undef SAME_TYPE
#undef S
#undef FROM
#undef T
#undef LT_FROM
#undef LT_TO
