/* states_body.h: the loops of states.c for one type of elements and states. states.c defines S,
 * FROM, T, V, LANES, LANES_N, LANES_ALL, LANES_JOIN, OPEN, LOAD and ON_<RULE> as fold_body.h has
 * them, and
 *
 *   ROW_CENTERED, ROW_CENTERED_WIDE, ROW_BEST         CENTERED_LOOPS, BEST_LOOPS or NOTHING
 *   ENTRY_CENTERED, ENTRY_CENTERED_WIDE, ENTRY_BEST   CENTERED_ENTRY, BEST_ENTRY or NOTHING
 *   AT                                                for BEST_LOOPS: the integer of T's size
 *
 * and includes this file, which defines `static const lt_Centered centereds_of_<S>` and lt_Best
 * bests_of_<S>, arrays of LT_REDUCTION_COUNT. */
#define NAMED_(a, b, s)  a##_##b##_##s
#define NAMED__(a, b, s) NAMED_(a, b, s)
#define NAMED(a, b)      NAMED__(a, b, S)
#define OF_VECTORS(a, b) NAMED__(a, b, V)

/* ---- a pivot, and a sum of terms around it --------------------------------------------------- */

/* Whether an expression, after macro expansion, calls a function; a constant at compile time. */
#define CALLS(text) (__builtin_strstr(text, "lt_") != NULL)
#define TEXT(text)  text /* in a static initializer, where clang does not evaluate CALLS */

/* Terms that call a function run over whole groups of GROUP elements, the last one padded, so that
 * every element is computed by the same vector variant at any index. */
#define CENTERED_LOOPS(name, identity, combine, center, joint, term, moved, finish)                \
  static inline T NAMED(merge, name)(T x, T y) { return (T)(combine); }                            \
  static inline T NAMED(middle, name)(T x, T n) {                                                  \
    (void)n;                                                                                       \
    return (T)(center);                                                                            \
  }                                                                                                \
  static inline __attribute__((always_inline)) T NAMED(summand, name)(T x, T p) {                  \
    return (T)(term);                                                                              \
  }                                                                                                \
  /* Combines x[0..n), n >= 1. */                                                                  \
  static T NAMED(pivot, name)(const FROM *x, int64_t n) {                                          \
    T a = (T)(identity);                                                                           \
    int64_t i = 0;                                                                                 \
    if (n >= LANES_N)                                                                              \
      LT_FOLD_LANES(a, i, x, n, LANES_ALL((T)(identity)), OPEN, OF_VECTORS(merge, name))           \
    for (; i < n; i++) a = NAMED(merge, name)(a, (T)x[i]);                                         \
    return a;                                                                                      \
  }                                                                                                \
  static T NAMED(terms, name)(const FROM *x, int64_t n, T p) {                                     \
    T part[TERMS], s = 0;                                                                          \
    for (int64_t i = 0; i < n; i += TERMS, x += TERMS) {                                           \
      int64_t w = n - i < TERMS ? n - i : TERMS, whole = CALLS(#term) ? w / GROUP * GROUP : w;     \
      _Pragma("omp simd")                                                                          \
      for (int64_t k = 0; k < whole; k++) part[k] = NAMED(summand, name)((T)x[k], p);              \
      if (whole < w) {                                                                             \
        T last[GROUP];                                                                             \
        for (int k = 0; k < GROUP; k++) last[k] = (T)x[whole + k < w ? whole + k : w - 1];         \
        _Pragma("omp simd")                                                                        \
        for (int k = 0; k < GROUP; k++) last[k] = NAMED(summand, name)(last[k], p);                \
        for (int64_t k = whole; k < w; k++) part[k] = last[k - whole];                             \
      }                                                                                            \
      s += NAMED(sum, of)(part, w);                                                                \
    }                                                                                              \
    return s;                                                                                      \
  }                                                                                                \
  /* For short rows, four elements side by side. */                                                \
  static T NAMED(pivot_of_few, name)(const FROM *x, int64_t n) {                                   \
    T a = (T)(identity), b = a, c = a, d = a;                                                      \
    int64_t i = 0;                                                                                 \
    for (; i + 4 <= n; i += 4) {                                                                   \
      a = NAMED(merge, name)(a, (T)x[i]);                                                          \
      b = NAMED(merge, name)(b, (T)x[i + 1]);                                                      \
      c = NAMED(merge, name)(c, (T)x[i + 2]);                                                      \
      d = NAMED(merge, name)(d, (T)x[i + 3]);                                                      \
    }                                                                                              \
    for (; i < n; i++) a = NAMED(merge, name)(a, (T)x[i]);                                         \
    return NAMED(merge, name)(NAMED(merge, name)(a, b), NAMED(merge, name)(c, d));                 \
  }                                                                                                \
  static T NAMED(terms_of_few, name)(const FROM *x, int64_t n, T p) {                              \
    T a = 0, b = 0, c = 0, d = 0;                                                                  \
    int64_t i = 0;                                                                                 \
    for (; i + 4 <= n; i += 4) {                                                                   \
      a += NAMED(summand, name)((T)x[i], p);                                                       \
      b += NAMED(summand, name)((T)x[i + 1], p);                                                   \
      c += NAMED(summand, name)((T)x[i + 2], p);                                                   \
      d += NAMED(summand, name)((T)x[i + 3], p);                                                   \
    }                                                                                              \
    for (; i < n; i++) a += NAMED(summand, name)((T)x[i], p);                                      \
    return (a + b) + (c + d);                                                                      \
  }                                                                                                \
  static void NAMED(row, name)(const void *x, int64_t n, void *state) {                            \
    T *s = state;                                                                                  \
    s[0] = (T)n;                                                                                   \
    s[1] = (T)(identity);                                                                          \
    s[2] = 0;                                                                                      \
    if (n == 0) return;                                                                            \
    bool few = !CALLS(#term) && n < SHORT;                                                         \
    s[1] = few ? NAMED(pivot_of_few, name)(x, n) : NAMED(pivot, name)(x, n);                       \
    s[1] = NAMED(middle, name)(s[1], (T)n);                                                        \
    s[2] = few ? NAMED(terms_of_few, name)(x, n, s[1]) : NAMED(terms, name)(x, n, s[1]);           \
  }                                                                                                \
  static void NAMED(join, name)(void *state, const void *other) {                                  \
    T *s_ = state;                                                                                 \
    const T *t = other;                                                                            \
    const T one = s_[0], two = t[0];                                                               \
    if (two == 0) return;                                                                          \
    if (one == 0) {                                                                                \
      memcpy(s_, t, 3 * sizeof *t);                                                                \
      return;                                                                                      \
    }                                                                                              \
    T r, sums = 0;                                                                                 \
    {                                                                                              \
      const T n = one, m = two, p = s_[1], q = t[1];                                               \
      (void)n, (void)m;                                                                            \
      r = (T)(joint);                                                                              \
    }                                                                                              \
    for (int k = 0; k < 2; k++) {                                                                  \
      const T n = k ? two : one, p = k ? t[1] : s_[1], s = k ? t[2] : s_[2];                       \
      (void)n;                                                                                     \
      sums += (T)(moved);                                                                          \
    }                                                                                              \
    s_[0] = one + two;                                                                             \
    s_[1] = r;                                                                                     \
    s_[2] = sums;                                                                                  \
  }                                                                                                \
  static void NAMED(end, name)(const void *state, double number, void *out) {                      \
    const T n = ((const T *)state)[0], p = ((const T *)state)[1], s = ((const T *)state)[2],       \
            a = (T)number;                                                                         \
    (void)n, (void)p, (void)a;                                                                     \
    *(T *)out = (T)(finish);                                                                       \
  }                                                                                                \
  /* Processes m <= TERMS rows of columns, padded to whole groups if terms call a function. */     \
  static void NAMED(part, name)(const FROM *x, int64_t m, int64_t stride, int64_t width,           \
                                T *restrict pivot, T *restrict sum) {                              \
    T e[LT_CENTERED_WIDTH], some[LT_CENTERED_WIDTH];                                               \
    int64_t padded = CALLS(#term) ? (width + GROUP - 1) / GROUP * GROUP : width;                   \
    for (int64_t j = 0; j < width; j++) pivot[j] = (T)x[j];                                        \
    int64_t i = 1;                                                                                 \
    for (; i + 4 <= m; i += 4) {                                                                   \
      const FROM *from = x + i * stride;                                                           \
      for (int64_t j = 0; j < width; j++) {                                                        \
        T p = NAMED(merge, name)(pivot[j], (T)from[j]);                                            \
        p = NAMED(merge, name)(p, (T)from[stride + j]);                                            \
        p = NAMED(merge, name)(p, (T)from[2 * stride + j]);                                        \
        pivot[j] = NAMED(merge, name)(p, (T)from[3 * stride + j]);                                 \
      }                                                                                            \
    }                                                                                              \
    for (; i < m; i++)                                                                             \
      for (int64_t j = 0; j < width; j++)                                                          \
        pivot[j] = NAMED(merge, name)(pivot[j], (T)x[i * stride + j]);                             \
    for (int64_t j = 0; j < width; j++) {                                                          \
      pivot[j] = NAMED(middle, name)(pivot[j], (T)m);                                              \
      sum[j] = 0;                                                                                  \
    }                                                                                              \
    for (int64_t j = width; j < padded; j++) e[j] = pivot[j] = 0;                                  \
    for (i = 0; i < m; i += ROW_GROUP) {                                                           \
      int64_t k = i, end = i + ROW_GROUP < m ? i + ROW_GROUP : m;                                  \
      for (int64_t j = 0; j < padded; j++) some[j] = 0;                                            \
      for (; !CALLS(#term) && k + 4 <= end; k += 4) {                                              \
        const FROM *from = x + k * stride;                                                         \
        for (int64_t j = 0; j < width; j++) {                                                      \
          T s = some[j] + NAMED(summand, name)((T)from[j], pivot[j]);                              \
          s += NAMED(summand, name)((T)from[stride + j], pivot[j]);                                \
          s += NAMED(summand, name)((T)from[2 * stride + j], pivot[j]);                            \
          some[j] = s + NAMED(summand, name)((T)from[3 * stride + j], pivot[j]);                   \
        }                                                                                          \
      }                                                                                            \
      for (; k < end; k++) {                                                                       \
        for (int64_t j = 0; j < width; j++) e[j] = (T)x[k * stride + j];                           \
        _Pragma("omp simd")                                                                        \
        for (int64_t j = 0; j < padded; j++) some[j] += NAMED(summand, name)(e[j], pivot[j]);      \
      }                                                                                            \
      for (int64_t j = 0; j < width; j++) sum[j] += some[j];                                       \
    }                                                                                              \
  }                                                                                                \
  static void NAMED(columns, name)(const void *x, int64_t n, int64_t stride, int64_t width,        \
                                   void *states) {                                                 \
    T *s = states, pivot[LT_CENTERED_WIDTH], sum[LT_CENTERED_WIDTH];                               \
    for (int64_t j = 0; j < width; j++) NAMED(row, name)(x, 0, s + 3 * j);                         \
    for (int64_t i = 0; i < n && !lt_stopped_at(i); i += TERMS) {                                  \
      int64_t m = n - i < TERMS ? n - i : TERMS;                                                   \
      NAMED(part, name)((const FROM *)x + i * stride, m, stride, width, pivot, sum);               \
      for (int64_t j = 0; j < width; j++)                                                          \
        NAMED(join, name)(s + 3 * j, (const T[]){(T)m, pivot[j], sum[j]});                         \
    }                                                                                              \
  }

#define CENTERED_ENTRY(name, identity, combine, center, joint, term, moved, finish)                \
  [LT_REDUCTION_##name] = {                                                                        \
      LT_FROM,           LT_TO,           TEXT(#term), NAMED(row, name), NAMED(columns, name),     \
      NAMED(join, name), NAMED(end, name)},

/* ---- the extreme value and its index --------------------------------------------------------- */

#define BEST_MANY 16 /* most rows of narrow columns that are combined; a multiple of vectors */
#define AT_MOST   ((int64_t)(UINT64_MAX >> 1 >> (64 - 8 * sizeof(AT))))

#define BEST_LOOPS(name, better)                                                                   \
  static inline T NAMED(pick, name)(T x, T y) { return (better) | (y != y) ? y : x; }              \
  static void NAMED(row, name)(const void *data, int64_t n, void *value, int64_t *at) {            \
    const T *x = data;                                                                             \
    T best = x[0];                                                                                 \
    int64_t i = 0;                                                                                 \
    BEST_BY_LANES(name)                                                                            \
    for (; i < n; i++) best = NAMED(pick, name)(best, x[i]);                                       \
    *(T *)value = best;                                                                            \
    i = 0;                                                                                         \
    if (best != best) {                                                                            \
      while (x[i] == x[i]) i++;                                                                    \
    } else {                                                                                       \
      for (; i + 64 <= n; i += 64) {                                                               \
        int some = 0;                                                                              \
        for (int k = 0; k < 64; k++) some |= x[i + k] == best;                                     \
        if (some) break;                                                                           \
      }                                                                                            \
      while (x[i] != best) i++;                                                                    \
    }                                                                                              \
    *at = i;                                                                                       \
  }                                                                                                \
  /* Whether y replaces x, which is before it: it is better, or the first NaN. */                  \
  static inline bool NAMED(wins, name)(T x, T y) { return (x == x) & ((better) | (y != y)); }      \
  /* Processes n <= AT_MOST rows of columns; indices are of the same size as values. */            \
  static void NAMED(part, name)(const T *restrict x, int64_t n, int64_t stride, int64_t width,     \
                                T *restrict value, AT *restrict at) {                              \
    for (int64_t j = 0; j < width; j++) {                                                          \
      value[j] = x[j];                                                                             \
      at[j] = 0;                                                                                   \
    }                                                                                              \
    for (int64_t i = 1; i < n; i++)                                                                \
      for (int64_t j = 0; j < width; j++) {                                                        \
        const T v = value[j], y = x[i * stride + j];                                               \
        const AT wins = NAMED(wins, name)(v, y);                                                   \
        value[j] = wins ? y : v;                                                                   \
        at[j] = wins ? (AT)i : at[j];                                                              \
      }                                                                                            \
  }                                                                                                \
  /* Replaces a value and its index by those of y, unless the first is as good and before y. */    \
  static inline void NAMED(join, name)(T * value, int64_t * at, T y, int64_t i) {                  \
    const T x = *value;                                                                            \
    const int64_t k = *at;                                                                         \
    const bool same = (x == y) | ((x != x) & (y != y));                                            \
    const bool wins = NAMED(wins, name)(x, y) | (same & (i < k));                                  \
    *value = wins ? y : x;                                                                         \
    *at = wins ? i : k;                                                                            \
  }                                                                                                \
  /* Narrow dense columns are processed as wide rows of several, which fill the vectors. */        \
  static void NAMED(columns, name)(const void *data, int64_t n, int64_t stride, int64_t width,     \
                                   void *values, int64_t *at) {                                    \
    const T *x = data;                                                                             \
    T *value = values, v[LT_CENTERED_WIDTH];                                                       \
    AT k[LT_CENTERED_WIDTH];                                                                       \
    int64_t many = stride == width ? BEST_MANY : 1;                                                \
    while (many > 1 && (many > n / 8 || many * width > LT_CENTERED_WIDTH)) many /= 2;              \
    const int64_t rows = n / many, wide = many * width;                                            \
    for (int64_t i = 0, m; i < rows && !lt_stopped_at(i); i += m) {                                \
      m = rows - i < AT_MOST ? rows - i : AT_MOST;                                                 \
      NAMED(part, name)(x + i * many * stride, m, many * stride, wide, v, k);                      \
      for (int64_t g = 0; g < many; g++)                                                           \
        for (int64_t j = 0; j < width; j++)                                                        \
          if (i == 0 && g == 0) {                                                                  \
            value[j] = v[j];                                                                       \
            at[j] = k[j] * many;                                                                   \
          } else {                                                                                 \
            NAMED(join, name)                                                                      \
            (value + j, at + j, v[g * width + j], (i + k[g * width + j]) * many + g);              \
          }                                                                                        \
    }                                                                                              \
    for (int64_t i = rows * many; i < n; i++)                                                      \
      for (int64_t j = 0; j < width; j++)                                                          \
        NAMED(join, name)(value + j, at + j, x[i * stride + j], i);                                \
  }

#ifdef V
#define BEST_BY_LANES(name)                                                                        \
  if (n >= LANES_N) {                                                                              \
    LANES s0 = LOAD(x), s1 = s0;                                                                   \
    for (; i + 2 * LANES_N <= n; i += 2 * LANES_N) {                                               \
      LANES x0 = LOAD(x + i), x1 = LOAD(x + i + LANES_N);                                          \
      LT_JOIN_LANES(s0, x0, OF_VECTORS(pick, name))                                                \
      LT_JOIN_LANES(s1, x1, OF_VECTORS(pick, name))                                                \
    }                                                                                              \
    LT_JOIN_LANES(s0, s1, OF_VECTORS(pick, name))                                                  \
    LANES_JOIN(best, OF_VECTORS(pick, name), s0);                                                  \
  }
#else
#define BEST_BY_LANES(name)
#endif

#define BEST_ENTRY(name, better) [LT_REDUCTION_##name] = {NAMED(row, name), NAMED(columns, name)},

/* ---- the rows of ops.def --------------------------------------------------------------------- */

#ifdef V
/* Returns x[0] + ... + x[n - 1], n <= TERMS. */
static T NAMED(sum, of)(const T *x, int64_t n) {
  T a = 0;
  int64_t i = 0;
  if (n >= LANES_N) LT_FOLD_LANES(a, i, x, n, LANES_ALL(0), LOAD, PLUS)
  for (; i < n; i++) a += x[i];
  return a;
}
#endif

#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#include "ops.def"

#undef ROW_CENTERED
#undef ROW_CENTERED_WIDE
#undef ROW_BEST

#ifdef V
#define ROW_CENTERED      ENTRY_CENTERED
#define ROW_CENTERED_WIDE ENTRY_CENTERED_WIDE
#define ROW_BEST          NOTHING
static const lt_Centered NAMED(centereds, of)[LT_REDUCTION_COUNT] = {
#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#include "ops.def"
};
#undef ROW_CENTERED
#undef ROW_CENTERED_WIDE
#undef ROW_BEST
#endif

#ifdef ENTRY_BEST
#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          ENTRY_BEST
static const lt_Best NAMED(bests, of)[LT_REDUCTION_COUNT] = {
#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#include "ops.def"
};
#undef ROW_CENTERED
#undef ROW_CENTERED_WIDE
#undef ROW_BEST
#endif

#undef NAMED_
#undef NAMED__
#undef NAMED
#undef OF_VECTORS
#undef CALLS
#undef TEXT
#undef CENTERED_LOOPS
#undef CENTERED_ENTRY
#undef BEST_LOOPS
#undef BEST_MANY
#undef AT_MOST
#undef AT
#undef BEST_BY_LANES
#undef BEST_ENTRY
#undef ENTRY_CENTERED
#undef ENTRY_CENTERED_WIDE
#undef ENTRY_BEST
#undef S
#undef FROM
#undef T
#undef LT_FROM
#undef LT_TO
