/* numbers.c: converts the scalar arguments of an elementwise op to the compute type. */
#include "vector.h"

#include <complex.h>
#include <float.h>

/* Returns the largest finite number of a result computed in float32. */
static float largest_float(lt_Dtype result) {
  bool half = result == LT_float16 || result == LT_bfloat16;
  return half ? (float)lt_dtype_largest(result) : FLT_MAX;
}

/* Converts a number: integers wrap, floats saturate. */
static int32_t to_int32(const lt_Scalar *s) {
  int64_t v = lt_scalar_to_int(*s);
  if (s->kind == LT_FLOATING) v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
  return (int32_t)v;
}

/* One switch for all numbers: every call of an op runs this, even for few elements. */
void lt_cpu_numbers(lt_Numbers *numbers, lt_Dtype compute, lt_Dtype result, const lt_Scalar *a,
                    const lt_Scalar *b) {
  numbers->y_once = numbers->x_once = false;
  numbers->rows = 1;
  numbers->step[0] = numbers->step[1] = numbers->step[2] = 0;
  switch (compute) {
  case LT_float16:
  case LT_bfloat16:
  case LT_float32:
    numbers->a.float32 = (float)lt_scalar_to_double(*a);
    numbers->b.float32 = (float)lt_scalar_to_double(*b);
    numbers->limit.float32 = largest_float(result);
    return;
  case LT_float64:
    numbers->a.float64 = lt_scalar_to_double(*a);
    numbers->b.float64 = lt_scalar_to_double(*b);
    numbers->limit.float64 = lt_dtype_is_float(result) ? lt_dtype_largest(result) : DBL_MAX;
    return;
  case LT_uint8:
  case LT_int8:
  case LT_int16:
  case LT_int32:
    numbers->a.int32 = to_int32(a);
    numbers->b.int32 = to_int32(b);
    return;
  case LT_int64:
    numbers->a.int64 = lt_scalar_to_int(*a);
    numbers->b.int64 = lt_scalar_to_int(*b);
    return;
  case LT_complex64:
    numbers->a.complex64 = CMPLXF((float)lt_scalar_to_double(*a), (float)a->im);
    numbers->b.complex64 = CMPLXF((float)lt_scalar_to_double(*b), (float)b->im);
    return;
  case LT_complex128:
    numbers->a.complex128 = CMPLX(lt_scalar_to_double(*a), a->im);
    numbers->b.complex128 = CMPLX(lt_scalar_to_double(*b), b->im);
    return;
  default:
    numbers->a.bool_ = lt_scalar_to_double(*a) != 0;
    numbers->b.bool_ = lt_scalar_to_double(*b) != 0;
  }
}
