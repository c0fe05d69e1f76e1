/* mpi_reduce.c: dtypes and reductions as MPI's types and operations.
 *
 * MPI has no 16-bit floats, and its maximum does not say what becomes of NaN. So reductions of
 * these are functions of this file: a sum of 16-bit floats is computed in float and rounded at each
 * step; max and min give NaN when one element is NaN, as lt.maximum does. */
#include "mpi_reduce.h"
#include "kernel.h"
#include "half.h"

static inline float same(float x) { return x; }
static inline double same_double(double x) { return x; }

/* Defines one operation: output = combine(input, output), element by element. */
#define OPERATION(name, T, V, load, store, expression)                                             \
  static void name(void *input, void *output, int *count, void *type) {                            \
    const T *a = input;                                                                            \
    T *b = output;                                                                                 \
    (void)type;                                                                                    \
    for (int i = 0; i < *count; i++) {                                                             \
      V x = load(a[i]), y = load(b[i]);                                                            \
      b[i] = store(expression);                                                                    \
    }                                                                                              \
  }

#define MAXIMUM (x > y || x != x ? x : y)
#define MINIMUM (x < y || x != x ? x : y)
#define ROWS_OF(ROW, name, T, V, load, store)                                                      \
  ROW(name##_max, T, V, load, store, MAXIMUM)                                                      \
  ROW(name##_min, T, V, load, store, MINIMUM)
#define HALF_ROWS_OF(ROW, name, T, load, store)                                                    \
  ROWS_OF(ROW, name, T, float, load, store)                                                        \
  ROW(name##_sum, T, float, load, store, x + y)                                                    \
  ROW(name##_product, T, float, load, store, x *y)

/* All operations, one row each. */
#define OPERATIONS(ROW)                                                                            \
  ROWS_OF(ROW, float32, float, float, same, same)                                                  \
  ROWS_OF(ROW, float64, double, double, same_double, same_double)                                  \
  HALF_ROWS_OF(ROW, float16, lt_half, lt_half_to_float, lt_half_from_float)                        \
  HALF_ROWS_OF(ROW, bfloat16, lt_bfloat16, lt_bfloat16_to_float, lt_bfloat16_from_float)
OPERATIONS(OPERATION)

static struct {
#define ROW(name, ...) lt_Mpi name;
  OPERATIONS(ROW)
#undef ROW
} own;

bool lt_mpi_operations_create(void) {
  int code = 0;
#define ROW(name, ...) code = code ? code : lt_mpi()->Op_create(name, 1, &own.name);
  OPERATIONS(ROW)
#undef ROW
  return code ? lt_mpi_fail("init_process_group", code) : true;
}

lt_MpiType lt_mpi_type(lt_Dtype dtype) {
  const lt_MpiLibrary *m = lt_mpi();
  switch (dtype) {
  case LT_int8:
    return (lt_MpiType){m->int8, 1};
  case LT_int16:
    return (lt_MpiType){m->int16, 1};
  case LT_int32:
    return (lt_MpiType){m->int32, 1};
  case LT_int64:
    return (lt_MpiType){m->int64, 1};
  case LT_float16:
  case LT_bfloat16:
    return (lt_MpiType){m->uint16, 1};
  case LT_float32:
    return (lt_MpiType){m->float32, 1};
  case LT_float64:
    return (lt_MpiType){m->float64, 1};
  case LT_complex64:
    return (lt_MpiType){m->float32, 2};
  case LT_complex128:
    return (lt_MpiType){m->float64, 2};
  default:
    return (lt_MpiType){m->uint8, 1};
  }
}

/* Returns the library's operation. bool is stored as 0 or 1, so that the maximum is "or". */
static lt_Mpi common(lt_Dtype dtype, lt_CommReduction reduction) {
  const lt_MpiLibrary *m = lt_mpi();
  bool boolean = dtype == LT_bool;
  switch (reduction) {
  case LT_COMM_max:
    return m->max;
  case LT_COMM_min:
    return m->min;
  case LT_COMM_product:
    return boolean ? m->min : m->product;
  default:
    return boolean ? m->max : m->sum;
  }
}

#define OWN(dtype)                                                                                 \
  switch (reduction) {                                                                             \
  case LT_COMM_max:                                                                                \
    return own.dtype##_max;                                                                        \
  case LT_COMM_min:                                                                                \
    return own.dtype##_min;                                                                        \
  default:                                                                                         \
    break;                                                                                         \
  }
#define OWN_HALF(dtype)                                                                            \
  OWN(dtype) return reduction == LT_COMM_product ? own.dtype##_product : own.dtype##_sum;

lt_Mpi lt_mpi_operation(lt_Dtype dtype, lt_CommReduction reduction) {
  if (dtype == LT_float16) {
    OWN_HALF(float16)
  } else if (dtype == LT_bfloat16) {
    OWN_HALF(bfloat16)
  } else if (dtype == LT_float32) {
    OWN(float32)
  } else if (dtype == LT_float64) {
    OWN(float64)
  }
  return common(dtype, reduction);
}

void lt_mpi_divide(void *data, int64_t count, lt_Dtype dtype, int n) {
  int64_t values = count * lt_mpi_type(dtype).each;
  float *f = data;
  double *d = data;
  lt_half *h = data;
  lt_bfloat16 *b = data;
  for (int64_t i = 0; i < values; i++) {
    if (dtype == LT_float16)
      h[i] = lt_half_from_float(lt_half_to_float(h[i]) / (float)n);
    else if (dtype == LT_bfloat16)
      b[i] = lt_bfloat16_from_float(lt_bfloat16_to_float(b[i]) / (float)n);
    else if (dtype == LT_float64 || dtype == LT_complex128)
      d[i] /= n;
    else
      f[i] /= (float)n;
  }
}
