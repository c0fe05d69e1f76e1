/* float64_ranges.h: functions of float64 where arguments may be infinite, NaN, large angles, or so
 * large that the result is 0 or infinite. libmvec calls the scalar function for each of these,
 * which takes ten times as long. In blocks with such elements (LT_NEAR is false) it gets `other` in
 * their place, and the result is `beyond`; in others nothing changes (lt_near_range64). */
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
LT_RANGED(expm1, lt_m_expm1, fabs(x) < 710, 0, x < 0 ? -1 : x + LT_INFINITE)
LT_RANGED(selu, lt_selu, fabs(x) < 708, 0, x < 0 ? LT_SELU_LEAST : LT_SELU_SCALE * x)
LT_RANGED(logsigmoid, lt_logsigmoid, fabs(x) < 746, 0, x > 0 ? 0 : x)
LT_RANGED(acosh, lt_m_acosh, (x >= 1) & (x < LT_INFINITE), 2, x < 1 ? (double)NAN : x)
LT_RANGED(atanh, lt_m_atanh, fabs(x) < 1, 0, fabs(x) == 1 ? LT_INFINITE * x : (double)NAN)

LT_MATHS double lt_ranged_elu(double x, double alpha) {
  const uint64_t inside = LT_INSIDE(fabs(x) < 708);
  return lt_masked(inside, lt_elu(lt_masked(inside, x, 0), alpha), x < 0 ? -alpha : x);
}

/* e^v is computed where v is not above the threshold, and the result not 0. */
LT_MATHS double lt_ranged_softplus(double x, double beta, double threshold) {
  const double v = x * beta;
  const uint64_t inside = LT_INSIDE(!(v > threshold) & !(v < -746));
  const double power = lt_masked(inside, lt_m_exp(lt_masked(inside, v, 0)), 0);
  const double soft = lt_m_log1p(power) / beta;
  return v > threshold ? x : soft;
}

/* ---- large angles ---------------------------------------------------------------------------- */

/* x = n pi + r + low, |r| < 1.6; `sign`: the sign bit, if n is odd. The multiples of the first part
 * of pi are exact as far as the difference is small, those of the second are in two parts. */
typedef struct lt_Turned {
  double r, low;
  uint64_t sign;
} lt_Turned;

LT_MATHS lt_Turned lt_turned(double x) {
  double shifted = MADDD(x, 0x1.45f306dc9c883p-2, 0x1.8p52), n = shifted - 0x1.8p52;
  double first = MADDD(-n, 0x1.921fb54442d18p+1, x), second = n * 0x1.1a62633145c07p-53;
  double r = first - second, back = r - first;
  double lost = (first - (r - back)) - (second + back);
  double rest = MADDD(n, 0x1.1a62633145c07p-53, -second);
  double low = lost - MADDD(n, -0x1.f1976b7ed8fbcp-109, rest);
  return (lt_Turned){r, low, lt_bits64(shifted) << 63};
}

/* Angles that libmvec computes by vectors, and those from 2^48 on, are not turned. */
#define LT_NOT_TURNED (fabs(x) < 0x1p22) | !(fabs(x) < 0x1p48)

/* The change by `low` is its product with the derivative, which need only be accurate where the
 * result is small. */
LT_MATHS double lt_ranged_sin(double x) {
  const uint64_t inside = LT_INSIDE(LT_NOT_TURNED);
  const lt_Turned t = lt_turned(x);
  double y = lt_m_sin(lt_masked(inside, x, t.r)), slope = MADDD(t.r * t.r, -0.405284735, 1.0);
  return lt_double(lt_bits64(lt_masked(inside, y, MADDD(t.low, slope, y))) ^ (t.sign & ~inside));
}
LT_MATHS double lt_ranged_cos(double x) {
  const uint64_t inside = LT_INSIDE(LT_NOT_TURNED);
  const lt_Turned t = lt_turned(x);
  double slope = t.r * MADDD(t.r * t.r, 0.12900613773279798, -0.954929658551372);
  double y = lt_m_cos(lt_masked(inside, x, t.r));
  return lt_double(lt_bits64(lt_masked(inside, y, MADDD(t.low, slope, y))) ^ (t.sign & ~inside));
}

#define lt_m_exp(x)                     (LT_NEAR ? lt_m_exp(x) : lt_ranged_exp(x))
#define lt_m_exp2(x)                    (LT_NEAR ? lt_m_exp2(x) : lt_ranged_exp2(x))
#define lt_m_log(x)                     (LT_NEAR ? lt_m_log(x) : lt_ranged_log(x))
#define lt_m_log2(x)                    (LT_NEAR ? lt_m_log2(x) : lt_ranged_log2(x))
#define lt_m_log10(x)                   (LT_NEAR ? lt_m_log10(x) : lt_ranged_log10(x))
#define lt_m_log1p(x)                   (LT_NEAR ? lt_m_log1p(x) : lt_ranged_log1p(x))
#define lt_m_sinh(x)                    (LT_NEAR ? lt_m_sinh(x) : lt_ranged_sinh(x))
#define lt_m_cosh(x)                    (LT_NEAR ? lt_m_cosh(x) : lt_ranged_cosh(x))
#define lt_sigmoid(x)                   (LT_NEAR ? lt_sigmoid(x) : lt_ranged_sigmoid(x))
#define lt_silu(x)                      (LT_NEAR ? lt_silu(x) : lt_ranged_silu(x))
#define lt_logsigmoid(x)                (LT_NEAR ? lt_logsigmoid(x) : lt_ranged_logsigmoid(x))
#define lt_m_acosh(x)                   (LT_NEAR ? lt_m_acosh(x) : lt_ranged_acosh(x))
#define lt_m_atanh(x)                   (LT_NEAR ? lt_m_atanh(x) : lt_ranged_atanh(x))
#define lt_m_expm1(x)                   (LT_NEAR ? lt_m_expm1(x) : lt_ranged_expm1(x))
#define lt_m_sin(x)                     (LT_NEAR ? lt_m_sin(x) : lt_ranged_sin(x))
#define lt_m_cos(x)                     (LT_NEAR ? lt_m_cos(x) : lt_ranged_cos(x))
#define lt_softplus(x, beta, threshold) lt_ranged_softplus(x, beta, threshold)

/* Without negative numbers in a block, no exponential is computed. */
#define lt_elu(x, alpha)  (LT_NEAR ? (x) : lt_ranged_elu(x, alpha))
#define lt_celu(x, alpha) (LT_NEAR ? (x) : lt_celu(x, alpha))
#define lt_selu(x)        (LT_NEAR ? LT_SELU_SCALE * (x) : lt_ranged_selu(x))

#endif
