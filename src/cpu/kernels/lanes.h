/* lanes.h: lanes, groups of 64 bytes of floats (16 float or 8 double), which consist of 1, 2 or 4
 * vectors of the instruction set. Loops that accumulate in lanes have the same result for every
 * length of its vectors.
 *
 * Vectors are in the compilers' vector notation, in their own length: GCC splits operations on
 * longer ones, in memory and comparisons element by element. */
#ifndef LT_CPU_LANES_H
#define LT_CPU_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

#define LT_LANES static inline __attribute__((always_inline))

/* Bytes of a vector; PARTS: vectors of lanes. EACH_PART(DO, args) is DO(0, args) ... DO(PARTS -
 * 1, args). */
#if defined __AVX512F__
#define LT_VECTOR_SIZE     64
#define PARTS              1
#define EACH_PART(DO, ...) DO(0, __VA_ARGS__)
#elif defined __AVX__
#define LT_VECTOR_SIZE     32
#define PARTS              2
#define EACH_PART(DO, ...) DO(0, __VA_ARGS__) DO(1, __VA_ARGS__)
#else
#define LT_VECTOR_SIZE 16
#define PARTS          4
#define EACH_PART(DO, ...)                                                                         \
  DO(0, __VA_ARGS__) DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__)
#endif

/* Vectors of float and double, of integers (masks), and the floats of a vector of double. */
typedef float FV __attribute__((vector_size(LT_VECTOR_SIZE)));
typedef int32_t FM __attribute__((vector_size(LT_VECTOR_SIZE)));
typedef double DV __attribute__((vector_size(LT_VECTOR_SIZE)));
typedef int64_t DM __attribute__((vector_size(LT_VECTOR_SIZE)));
typedef float HV __attribute__((vector_size(LT_VECTOR_SIZE / 2)));

#define FV_N (LT_VECTOR_SIZE / 4)
#define DV_N (LT_VECTOR_SIZE / 8)

#define FV_ALL(e) ((FV){0} + (float)(e))
#define DV_ALL(e) ((DV){0} + (double)(e))

LT_LANES FV FV_LOAD(const float *x) {
  FV v;
  memcpy(&v, x, sizeof v);
  return v;
}

LT_LANES DV DV_LOAD(const double *x) {
  DV v;
  memcpy(&v, x, sizeof v);
  return v;
}

/* GCC splits __builtin_convertvector in halves, through memory. */
LT_LANES DV DV_OF_FLOATS(const float *x) {
#if defined __AVX512F__
  return (DV)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif defined __AVX__
  return (DV)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
  HV v;
  memcpy(&v, x, sizeof v);
  return __builtin_convertvector(v, DV);
#endif
}

/* Selects the bits of b where mask k is set, else those of a. */
#define LT_CHOOSE(V, M, k, a, b) ((V)(((M)(b) & (k)) | ((M)(a) & ~(k))))

/* Select b where it is larger (LEAST: smaller), else a, also where a or b is NaN. One instruction
 * on x86. */
#if defined __AVX512F__
#define FV_PEAK(a, b)  ((FV)_mm512_max_ps((__m512)(b), (__m512)(a)))
#define DV_PEAK(a, b)  ((DV)_mm512_max_pd((__m512d)(b), (__m512d)(a)))
#define FV_LEAST(a, b) ((FV)_mm512_min_ps((__m512)(b), (__m512)(a)))
#define DV_LEAST(a, b) ((DV)_mm512_min_pd((__m512d)(b), (__m512d)(a)))
#elif defined __AVX__
#define FV_PEAK(a, b)  ((FV)_mm256_max_ps((__m256)(b), (__m256)(a)))
#define DV_PEAK(a, b)  ((DV)_mm256_max_pd((__m256d)(b), (__m256d)(a)))
#define FV_LEAST(a, b) ((FV)_mm256_min_ps((__m256)(b), (__m256)(a)))
#define DV_LEAST(a, b) ((DV)_mm256_min_pd((__m256d)(b), (__m256d)(a)))
#elif defined __SSE2__
#define FV_PEAK(a, b)  ((FV)_mm_max_ps((__m128)(b), (__m128)(a)))
#define DV_PEAK(a, b)  ((DV)_mm_max_pd((__m128d)(b), (__m128d)(a)))
#define FV_LEAST(a, b) ((FV)_mm_min_ps((__m128)(b), (__m128)(a)))
#define DV_LEAST(a, b) ((DV)_mm_min_pd((__m128d)(b), (__m128d)(a)))
#else
#define FV_PEAK(a, b)  LT_CHOOSE(FV, FM, (b) > (a), a, b)
#define DV_PEAK(a, b)  LT_CHOOSE(DV, DM, (b) > (a), a, b)
#define FV_LEAST(a, b) LT_CHOOSE(FV, FM, (b) < (a), a, b)
#define DV_LEAST(a, b) LT_CHOOSE(DV, DM, (b) < (a), a, b)
#endif

/* a * b + c, fused where the CPU has the instruction. */
#if defined __AVX512F__
#define FV_MADD(a, b, c) ((FV)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define DV_MADD(a, b, c) ((DV)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined __x86_64__ && defined __FMA__
#define FV_MADD(a, b, c) ((FV)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define DV_MADD(a, b, c) ((DV)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#elif defined __aarch64__
#define FV_MADD(a, b, c) ((FV)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define DV_MADD(a, b, c) ((DV)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
#define FV_MADD(a, b, c) ((a) * (b) + (c))
#define DV_MADD(a, b, c) ((a) * (b) + (c))
#endif

/* Which elements of two vectors are NaN: a set bit where that of either is. ANY: whether there is
 * any. */
#if defined __AVX512F__
typedef __mmask16 FNAN;
typedef __mmask8 DNAN;
#define FV_NAN(a, b)  _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), _CMP_UNORD_Q)
#define DV_NAN(a, b)  _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_UNORD_Q)
#define FNAN_ANY(nan) ((nan) != 0)
#define DNAN_ANY(nan) ((nan) != 0)
#elif defined __AVX__
typedef FM FNAN;
typedef DM DNAN;
#define FV_NAN(a, b)  ((FM)_mm256_cmp_ps((__m256)(a), (__m256)(b), _CMP_UNORD_Q))
#define DV_NAN(a, b)  ((DM)_mm256_cmp_pd((__m256d)(a), (__m256d)(b), _CMP_UNORD_Q))
#define FNAN_ANY(nan) (_mm256_movemask_ps((__m256)(nan)) != 0)
#define DNAN_ANY(nan) (_mm256_movemask_pd((__m256d)(nan)) != 0)
#else
typedef FM FNAN;
typedef DM DNAN;
#define FV_NAN(a, b) (((a) != (a)) | ((b) != (b)))
#define DV_NAN(a, b) (((a) != (a)) | ((b) != (b)))
LT_LANES bool FNAN_ANY(FNAN nan) {
  int32_t any = 0;
  for (int k = 0; k < FV_N; k++) any |= nan[k];
  return any != 0;
}
LT_LANES bool DNAN_ANY(DNAN nan) {
  int64_t any = 0;
  for (int k = 0; k < DV_N; k++) any |= nan[k];
  return any != 0;
}
#endif

/* ---- lanes ----------------------------------------------------------------------------------- */

#define F16_N 16
#define D8_N  8
typedef struct F16 {
  FV part[PARTS];
} F16;
typedef struct D8 {
  DV part[PARTS];
} D8;

#define LT_SET_PART(k, v, set, from, step) v.part[k] = set(from + (k) * (step));

LT_LANES F16 F16_LOAD(const float *x) {
  F16 v;
  EACH_PART(LT_SET_PART, v, FV_LOAD, x, FV_N)
  return v;
}

LT_LANES D8 D8_LOAD(const double *x) {
  D8 v;
  EACH_PART(LT_SET_PART, v, DV_LOAD, x, DV_N)
  return v;
}

LT_LANES D8 D8_OF_FLOATS(const float *x) {
  D8 v;
  EACH_PART(LT_SET_PART, v, DV_OF_FLOATS, x, DV_N)
  return v;
}

LT_LANES F16 F16_ALL(float e) {
  F16 v;
  EACH_PART(LT_SET_PART, v, FV_ALL, e, 0)
  return v;
}

LT_LANES D8 D8_ALL(double e) {
  D8 v;
  EACH_PART(LT_SET_PART, v, DV_ALL, e, 0)
  return v;
}

/* Statements: s = join(s, x) and s = join(s, lift(x)), of lanes, by functions of vectors. */
#define LT_JOIN_LANES(s, x, join)            EACH_PART(LT_JOIN_PART, s, x, join)
#define LT_JOIN_PART(k, s, x, join)          (s).part[k] = join((s).part[k], (x).part[k]);
#define LT_JOIN_LIFTED(s, x, join, lift)     EACH_PART(LT_JOIN_LIFTED_, s, x, join, lift)
#define LT_JOIN_LIFTED_(k, s, x, join, lift) (s).part[k] = join((s).part[k], lift((x).part[k]));

/* A statement: the number a = the join of the lanes s0 to s3. */
#define LT_JOIN_FOUR(a, join)                                                                      \
  LT_JOIN_LANES(s0, s1, join)                                                                      \
  LT_JOIN_LANES(s2, s3, join)                                                                      \
  LT_JOIN_LANES(s0, s2, join)                                                                      \
  LANES_JOIN(a, join, s0);

/* A statement: the number a = the join of x[0..i) in four accumulators that begin as `start`, where
 * i becomes the largest multiple of LANES_N up to n. */
#define LT_FOLD_LANES(a, i, x, n, start, load, join)                                               \
  {                                                                                                \
    LANES s0 = (start), s1 = s0, s2 = s0, s3 = s0;                                                 \
    for (i = 0; i + 4 * LANES_N <= n; i += 4 * LANES_N) {                                          \
      LANES x0 = load(x + i), x1 = load(x + i + LANES_N), x2 = load(x + i + 2 * LANES_N),          \
            x3 = load(x + i + 3 * LANES_N);                                                        \
      LT_JOIN_LANES(s0, x0, join)                                                                  \
      LT_JOIN_LANES(s1, x1, join)                                                                  \
      LT_JOIN_LANES(s2, x2, join)                                                                  \
      LT_JOIN_LANES(s3, x3, join)                                                                  \
    }                                                                                              \
    for (; i + LANES_N <= n; i += LANES_N) {                                                       \
      LANES x0 = load(x + i);                                                                      \
      LT_JOIN_LANES(s0, x0, join)                                                                  \
    }                                                                                              \
    LT_JOIN_FOUR(a, join)                                                                          \
  }

#define LT_AT(v, k, n)   (v)[(k) % (n)]
#define LT_PAIR(v, k, n) LT_AT(v, k, n), LT_AT(v, k + 1, n)
#define LT_FOUR(v, k, n) LT_PAIR(v, k, n), LT_PAIR(v, k + 2, n)

/* The elements of a vector of n, moved down by w. */
#define LT_DOWN_2(V, v, w) ((V){LT_PAIR(v, w, 2)})
#define LT_DOWN_4(V, v, w) ((V){LT_FOUR(v, w, 4)})
#define LT_DOWN_8(V, v, w) ((V){LT_FOUR(v, w, 8), LT_FOUR(v, w + 4, 8)})
#define LT_DOWN_16(V, v, w)                                                                        \
  ((V){LT_FOUR(v, w, 16), LT_FOUR(v, w + 4, 16), LT_FOUR(v, w + 8, 16), LT_FOUR(v, w + 12, 16)})

/* Combine the elements of a vector v_ of n by a function of vectors, k with k + n / 2, until two
 * (PAIRS) or one (JOIN) are left: v_[0], v_[1]. */
#define LT_PAIRS_4(V, n, join) v_ = join(v_, LT_DOWN_##n(V, v_, 2));
#define LT_PAIRS_8(V, n, join)                                                                     \
  v_ = join(v_, LT_DOWN_##n(V, v_, 4));                                                            \
  LT_PAIRS_4(V, n, join)
#define LT_PAIRS_16(V, n, join)                                                                    \
  v_ = join(v_, LT_DOWN_##n(V, v_, 8));                                                            \
  LT_PAIRS_8(V, n, join)
#define LT_JOIN_2(V, n, join)  v_ = join(v_, LT_DOWN_##n(V, v_, 1));
#define LT_JOIN_4(V, n, join)  LT_PAIRS_4(V, n, join) LT_JOIN_2(V, n, join)
#define LT_JOIN_8(V, n, join)  LT_PAIRS_8(V, n, join) LT_JOIN_2(V, n, join)
#define LT_JOIN_16(V, n, join) LT_PAIRS_16(V, n, join) LT_JOIN_2(V, n, join)

#if LT_VECTOR_SIZE == 64
#define LT_JOIN_PARTS(V, join, all) V v_ = (all).part[0];
#define LT_JOIN_FV(join)            LT_JOIN_16(FV, 16, join)
#define LT_JOIN_DV(join)            LT_JOIN_8(DV, 8, join)
#elif LT_VECTOR_SIZE == 32
#define LT_JOIN_PARTS(V, join, all) V v_ = join((all).part[0], (all).part[1]);
#define LT_JOIN_FV(join)            LT_JOIN_8(FV, 8, join)
#define LT_JOIN_DV(join)            LT_JOIN_4(DV, 4, join)
#else
#define LT_JOIN_PARTS(V, join, all)                                                                \
  V a_ = join((all).part[0], (all).part[2]), b_ = join((all).part[1], (all).part[3]),              \
    v_ = join(a_, b_);
#define LT_JOIN_FV(join) LT_JOIN_4(FV, 4, join)
#define LT_JOIN_DV(join) LT_JOIN_2(DV, 2, join)
#endif

/* Combine lanes likewise to one number, `result`. */
#define F16_JOIN(result, join, all)                                                                \
  do {                                                                                             \
    LT_JOIN_PARTS(FV, join, all)                                                                   \
    LT_JOIN_FV(join)                                                                               \
    (result) = v_[0];                                                                              \
  } while (0)
#define D8_JOIN(result, join, all)                                                                 \
  do {                                                                                             \
    LT_JOIN_PARTS(DV, join, all)                                                                   \
    LT_JOIN_DV(join)                                                                               \
    (result) = v_[0];                                                                              \
  } while (0)

#endif
