/* dtype.c: dtypes by name, PyTorch's type promotion, and single values in and out of memory. */
#include "core.h"
#include "half.h"

#include <float.h>
#include <math.h>

typedef struct DtypeInfo {
  const char *name, *code;
  size_t size;
  lt_Dtype compute, accumulate;
  lt_Category category;
  int rank;
} DtypeInfo;

static const DtypeInfo table[LT_DTYPE_COUNT] = {
#define LT_DTYPE(name, storage, compute, accumulate, category, rank, code)                         \
  [LT_##name] = {#name, code, sizeof(storage), LT_##compute, LT_##accumulate, LT_##category, rank},
#include "dtypes.def"
#undef LT_DTYPE
};

enum { LT_NUMBER_TEXT = 64 };

static _Atomic lt_Dtype default_dtype = LT_float32;

const char *lt_dtype_name(lt_Dtype d) { return d < LT_DTYPE_COUNT ? table[d].name : "none"; }
const char *lt_dtype_code(lt_Dtype d) { return table[d].code; }
size_t lt_dtype_size(lt_Dtype d) { return table[d].size; }
lt_Category lt_dtype_category(lt_Dtype d) { return table[d].category; }
lt_Dtype lt_dtype_compute(lt_Dtype d) { return table[d].compute; }
lt_Dtype lt_dtype_accumulate(lt_Dtype d) { return table[d].accumulate; }
lt_Dtype lt_dtype_real(lt_Dtype d) {
  return d == LT_complex64 ? LT_float32 : d == LT_complex128 ? LT_float64 : d;
}
lt_Dtype lt_dtype_complex(lt_Dtype d) {
  return d == LT_float64 || d == LT_complex128 ? LT_complex128 : LT_complex64;
}
lt_Dtype lt_dtype_default(void) {
  const lt_Thread *th = lt_thread();
  if (th->has_defaults) return th->default_dtype;
  return atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

bool lt_dtype_set_default(lt_Dtype d) {
  if (!lt_dtype_is_float(d)) {
    lt_error_set("set_default_dtype: expected a float dtype for argument 'dtype', got \"%s\"",
                 lt_dtype_name(d));
    return false;
  }
  lt_Thread *th = lt_thread();
  if (th->has_defaults)
    th->default_dtype = d;
  else
    atomic_store(&default_dtype, d);
  return true;
}

lt_Dtype lt_dtype_promote(lt_Dtype a, lt_Dtype b) {
  if (a == b) return a;
  if (table[a].category != table[b].category) {
    lt_Dtype high = table[a].category > table[b].category ? a : b, low = high == a ? b : a;
    return low == LT_float64 ? lt_dtype_complex(low) : high;
  }
  if (table[a].rank == table[b].rank)
    return table[a].category == LT_FLOATING ? LT_float32 : LT_int16;
  return table[a].rank > table[b].rank ? a : b;
}

double lt_dtype_largest(lt_Dtype d) {
  return d == LT_float16    ? 65504
         : d == LT_bfloat16 ? 0x1.FEp127
         : d == LT_float32  ? (double)FLT_MAX
                            : DBL_MAX;
}

/* Returns the next of four buffers for numbers in messages. */
static char *text_room(void) {
  static _Thread_local char ring[4][LT_NUMBER_TEXT];
  static _Thread_local int turn;
  return ring[turn = (turn + 1) % 4];
}

const char *lt_number_text(double v) {
  if (isnan(v)) return "nan";
  char *text = text_room();
  snprintf(text, LT_NUMBER_TEXT, "%g", v);
  return text;
}

const char *lt_scalar_text(lt_Scalar s) {
  char *text = text_room();
  if (s.kind == LT_COMPLEX)
    snprintf(text, LT_NUMBER_TEXT, "%s %c %si", lt_number_text(s.f), signbit(s.im) ? '-' : '+',
             lt_number_text(fabs(s.im)));
  else if (s.kind == LT_FLOATING)
    return lt_number_text(s.f);
  else
    snprintf(text, LT_NUMBER_TEXT, "%lld", (long long)s.i);
  return text;
}

lt_Dtype lt_dtype_from_name(const char *name) {
  char all[256] = "";
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    if (strcmp(name, table[d].name) == 0) return (lt_Dtype)d;
    strcat(strcat(all, d ? ", " : ""), table[d].name);
  }
  if (lt_device_is_name(name))
    lt_error_set("expected a dtype, got the device \"%.40s\"\nhint: {device = \"%.40s\"}", name,
                 name);
  else
    lt_error_set("expected a dtype (%s), got \"%.40s\"", all, name);
  return LT_DTYPE_NONE;
}

/* ---- the dtype of a result ------------------------------------------------------------------- */

/* The promoted dtypes of three groups of operands: tensors with dimensions, 0-d tensors, numbers. A
 * later group changes the result only if its category is higher. */
typedef struct Classes {
  lt_Dtype dimensioned, single, number;
} Classes;

/* Promotes *into with d. */
static void join(lt_Dtype *into, lt_Dtype d) {
  *into = *into == LT_DTYPE_NONE ? d : lt_dtype_promote(*into, d);
}

/* Returns the dtype of a number operand by its kind. */
static lt_Dtype number_dtype(lt_Category kind) {
  return kind == LT_COMPLEX    ? lt_dtype_complex(lt_dtype_default())
         : kind == LT_FLOATING ? lt_dtype_default()
         : kind == LT_INTEGER  ? LT_int64
                               : LT_bool;
}

/* Combines the dtypes of two groups, of which the first has priority. */
static lt_Dtype combine(lt_Dtype higher, lt_Dtype lower) {
  if (higher == LT_DTYPE_NONE) return lower;
  if (lower == LT_DTYPE_NONE || table[higher].category >= table[lower].category) return higher;
  if (table[higher].category == LT_FLOATING) return lt_dtype_complex(higher);
  return lt_dtype_promote(higher, lower);
}

lt_Dtype lt_result_type(const lt_Arg *args, int n) {
  Classes c = {LT_DTYPE_NONE, LT_DTYPE_NONE, LT_DTYPE_NONE};
  for (int i = 0; i < n; i++) {
    if (args[i].kind == LT_ARG_SCALAR) {
      join(&c.number, number_dtype(args[i].scalar.kind));
    } else if (args[i].kind == LT_ARG_TENSOR) {
      join(args[i].tensor->ndim ? &c.dimensioned : &c.single, args[i].tensor->dtype);
    } else if (args[i].kind == LT_ARG_TENSORS) {
      for (int k = 0; k < args[i].count; k++) {
        const lt_Tensor *t = args[i].tensors[k];
        join(t->ndim ? &c.dimensioned : &c.single, t->dtype);
      }
    }
  }
  return combine(combine(c.dimensioned, c.single), c.number);
}

/* ---- single values --------------------------------------------------------------------------- */

int64_t lt_scalar_to_int(lt_Scalar s) {
  if (s.kind < LT_FLOATING) return s.i;
  if (isnan(s.f)) return 0;
  if (s.f >= 9223372036854775808.0) return INT64_MAX;
  return s.f < -9223372036854775808.0 ? INT64_MIN : (int64_t)s.f;
}

/* Returns true when an integer dtype can represent v. */
static bool fits(int64_t v, lt_Dtype d) {
  if (d == LT_int64) return true;
  if (d == LT_uint8) return v >= 0 && v <= UINT8_MAX;
  int64_t half = (int64_t)1 << (8 * table[d].size - 1);
  return v >= -half && v < half;
}

bool lt_scalar_store(lt_Scalar s, lt_Dtype d, void *element) {
  double f = lt_scalar_to_double(s);
  if (s.im != 0 && d != LT_bool && !lt_dtype_is_complex(d))
    return lt_fail("cannot convert the number %s to \"%s\": the dtype is real", lt_scalar_text(s),
                   table[d].name);
  switch (d) {
  case LT_bool:
    *(uint8_t *)element = f != 0 || s.im != 0;
    return true;
  case LT_complex64:
    *(lt_complex64 *)element = (lt_complex64){(float)f, (float)s.im};
    return true;
  case LT_complex128:
    *(lt_complex128 *)element = (lt_complex128){f, s.im};
    return true;
  case LT_float64:
    *(double *)element = f;
    return true;
  case LT_float32:
    *(float *)element = (float)f;
    return true;
  case LT_float16:
    *(lt_half *)element = lt_half_from_double(f);
    return true;
  case LT_bfloat16:
    *(lt_bfloat16 *)element = lt_bfloat16_from_float(lt_float_from_double_odd(f));
    return true;
  default:
    break;
  }
  int64_t v = lt_scalar_to_int(s);
  bool whole = s.kind < LT_FLOATING || (f >= -9223372036854775808.0 && f < 9223372036854775808.0);
  if (!whole || !fits(v, d)) {
    return lt_fail("cannot convert the number %s to \"%s\": it does not fit", lt_scalar_text(s),
                   table[d].name);
  }
  switch (table[d].size) {
  case 1:
    *(int8_t *)element = (int8_t)v;
    break;
  case 2:
    *(int16_t *)element = (int16_t)v;
    break;
  case 4:
    *(int32_t *)element = (int32_t)v;
    break;
  default:
    *(int64_t *)element = v;
  }
  return true;
}

lt_Scalar lt_scalar_load(lt_Dtype d, const void *element) {
  switch (d) {
  case LT_bool:
    return lt_scalar_bool(*(const uint8_t *)element != 0);
  case LT_uint8:
    return lt_scalar_int(*(const uint8_t *)element);
  case LT_int8:
    return lt_scalar_int(*(const int8_t *)element);
  case LT_int16:
    return lt_scalar_int(*(const int16_t *)element);
  case LT_int32:
    return lt_scalar_int(*(const int32_t *)element);
  case LT_int64:
    return lt_scalar_int(*(const int64_t *)element);
  case LT_float16:
    return lt_scalar_float((double)lt_half_to_float(*(const lt_half *)element));
  case LT_bfloat16:
    return lt_scalar_float((double)lt_bfloat16_to_float(*(const lt_bfloat16 *)element));
  case LT_float32:
    return lt_scalar_float((double)*(const float *)element);
  case LT_complex64: {
    const lt_complex64 *z = element;
    return lt_scalar_complex((double)z->re, (double)z->im);
  }
  case LT_complex128: {
    const lt_complex128 *z = element;
    return lt_scalar_complex(z->re, z->im);
  }
  default:
    return lt_scalar_float(*(const double *)element);
  }
}
