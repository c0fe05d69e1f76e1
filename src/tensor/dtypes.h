/* dtypes.h: element types and limits. Included by C, and by the kernels of devices, which are
 * C++ or the Metal Shading Language. */
#ifndef LT_DTYPES_H
#define LT_DTYPES_H

#include <stdint.h>

#define LT_MAX_DIMS   16 /* dimensions of a tensor */
#define LT_INDEX_BASE 1  /* the value that means the first element, in index tensors */

/* The number of an op in the table; opids.h has the names. */
typedef int lt_OpId;
#define LT_NO_OP (-1)

typedef struct lt_half {
  uint16_t bits;
} lt_half; /* IEEE binary16 */
typedef struct lt_bfloat16 {
  uint16_t bits;
} lt_bfloat16; /* the upper half of a float */
typedef struct lt_complex64 {
  float re, im;
} lt_complex64;
#ifndef LT_NO_DOUBLE /* defined by kernels in a language without double */
typedef struct lt_complex128 {
  double re, im;
} lt_complex128;
#endif

typedef enum lt_Dtype {
#define LT_DTYPE(name, ...) LT_##name,
#include "dtypes.def"
#undef LT_DTYPE
  LT_DTYPE_COUNT,
  LT_DTYPE_NONE = 255 /* not given */
} lt_Dtype;

typedef enum lt_Category { LT_BOOL, LT_INTEGER, LT_FLOATING, LT_COMPLEX } lt_Category;

#endif
