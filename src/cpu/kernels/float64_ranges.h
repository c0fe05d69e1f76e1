/* float64_ranges.h: functions of float64 where arguments may be infinite, NaN or so large that the
 * result is 0 or infinite. libmvec calls the scalar function for each of these, which takes ten
 * times as long. In blocks with such elements (LT_NEAR is false) it gets `other` in their place,
 * and the result is `beyond`; in others nothing changes (lt_near_range64). */
#ifndef LT_CPU_FLOAT64_RANGES_H
#define LT_CPU_FLOAT64_RANGES_H

/* Both choices are by a mask, since gcc would merge two choices of numbers, after the call. */
#define LT_RANGED(g, function, range, other, beyond)                                               \
  LT_MATHS double lt_ranged_##g(double x) {                                                        \
    const uint64_t inside = LT_INSIDE(range);                                                      \
    return lt_masked(inside, function(lt_masked(inside, x, other)), beyond);                       \
  }
#define LT_INFINITE  (double)INFINITY
#define LT_POSITIVE  (x > 0) & (x < LT_INFINITE)
#define LT_LOG_OTHER x == 0 ? -LT_INFINITE : x > 0 ? x : (double)NAN

LT_RANGED(exp, lt_m_exp, fabs(x) < 746, 0, x < 0 ? 0 : x + LT_INFINITE)
LT_RANGED(exp2, lt_m_exp2, fabs(x) < 1076, 0, x < 0 ? 0 : x + LT_INFINITE)
LT_RANGED(log, lt_m_log, LT_POSITIVE, 1, LT_LOG_OTHER)
LT_RANGED(log2, lt_m_log2, LT_POSITIVE, 1, LT_LOG_OTHER)
LT_RANGED(log10, lt_m_log10, LT_POSITIVE, 1, LT_LOG_OTHER)
LT_RANGED(log1p, lt_m_log1p, x > -1, 0, x == -1 ? -LT_INFINITE : (double)NAN)
LT_RANGED(sinh, lt_m_sinh, fabs(x) < 711, 0, LT_INFINITE *x)
LT_RANGED(cosh, lt_m_cosh, fabs(x) < 711, 0, LT_INFINITE *fabs(x))
LT_RANGED(sigmoid, lt_sigmoid, fabs(x) < 746, 0, x > 0 ? 1 : x < 0 ? 0 : x)
LT_RANGED(silu, lt_silu, fabs(x) < 746, 0, x *(x > 0 ? 1 : 0))

#define lt_m_exp(x)   (LT_NEAR ? lt_m_exp(x) : lt_ranged_exp(x))
#define lt_m_exp2(x)  (LT_NEAR ? lt_m_exp2(x) : lt_ranged_exp2(x))
#define lt_m_log(x)   (LT_NEAR ? lt_m_log(x) : lt_ranged_log(x))
#define lt_m_log2(x)  (LT_NEAR ? lt_m_log2(x) : lt_ranged_log2(x))
#define lt_m_log10(x) (LT_NEAR ? lt_m_log10(x) : lt_ranged_log10(x))
#define lt_m_log1p(x) (LT_NEAR ? lt_m_log1p(x) : lt_ranged_log1p(x))
#define lt_m_sinh(x)  (LT_NEAR ? lt_m_sinh(x) : lt_ranged_sinh(x))
#define lt_m_cosh(x)  (LT_NEAR ? lt_m_cosh(x) : lt_ranged_cosh(x))
#define lt_sigmoid(x) (LT_NEAR ? lt_sigmoid(x) : lt_ranged_sigmoid(x))
#define lt_silu(x)    (LT_NEAR ? lt_silu(x) : lt_ranged_silu(x))

#endif
