/* vector.h: the vector loops of the CPU, one table for each instruction set, chosen when they are
 * first asked for.
 *
 * A loop works on dense memory of one compute type (bool as uint8_t, int32_t, int64_t, float,
 * double, and C's complex types); loads bring elements of any dtype and
 * stride into that form, stores take them back. An
 * element's result does not depend on where it lies in the loop: results are the same for every
 * split of the work and every layout.
 */
#ifndef LT_CPU_VECTOR_H
#define LT_CPU_VECTOR_H

#include "kernel.h"

/* A scalar argument, in the loop's compute type. */
typedef union lt_Number {
  uint8_t bool_;
  int32_t int32;
  int64_t int64;
  float float32;
  double float64;
  float _Complex complex64;
  double _Complex complex128;
} lt_Number;

typedef struct lt_Numbers {
  lt_Number a, b;  /* the op's scalar arguments */
  lt_Number limit; /* the largest finite number of the result's dtype */
} lt_Numbers;

/* The scalar arguments a and b of an op that computes in `compute` and gives the dtype `result`. */
void lt_cpu_numbers(lt_Numbers *numbers, lt_Dtype compute, lt_Dtype result, const lt_Scalar *a,
                    const lt_Scalar *b);

/* out[i] = op(x[i], y[i], z[i]) for i < n. out may be one of the inputs. Inputs that the op has
 * not may be NULL. */
typedef void (*lt_VectorFn)(int64_t n, void *out, const void *x, const void *y, const void *z,
                            const lt_Numbers *numbers);
/* A map's text for i < n: memory holds an array for each of its tensors, in the row's order; bit k
 * of `written`: array k may change. numbers: lt_map_numbers'. */
typedef void (*lt_MapFn)(int64_t n, char *const *memory, unsigned written, const double *numbers);
/* n elements from memory with a stride in bytes (0: the same one n times) to dense ones of the
 * compute type. */
typedef void (*lt_LoadFn)(int64_t n, void *out, const void *source, int64_t stride);
/* The way back. */
typedef void (*lt_StoreFn)(int64_t n, void *target, int64_t stride, const void *values);

/* The loops of one compute type. */
typedef struct lt_Vectors {
  /* [LT_OP_COUNT]: of elementwise ops; NULL where the op is not made for this type */
  const lt_VectorFn *op;
  const lt_MapFn *map;            /* [LT_MAP_COUNT] */
  lt_LoadFn load[LT_DTYPE_COUNT]; /* by the dtype in memory; complex ones for complex types only */
  /* Of complex types: to bool, floats (the real part) and complex dtypes only. To complex dtypes:
   * of complex types and of bool only. */
  lt_StoreFn store[LT_DTYPE_COUNT];
} lt_Vectors;

typedef struct lt_Isa {
  const char *name;                          /* "avx512", "avx2", "base" */
  const lt_Vectors *vectors[LT_DTYPE_COUNT]; /* by compute type; NULL for the others */
} lt_Isa;

/* The best that this CPU has, or less where LUTRA_CPU_CAPABILITY (base, avx2, avx512) says so. */
const lt_Isa *lt_cpu_isa(void);

/* For kernels that need a vector function inside: out[i] = op(x[i], y[i]) on dense memory of a
 * compute type. */
static inline void lt_vector_op(lt_OpId op, lt_Dtype compute, int64_t n, void *out, const void *x,
                                const void *y) {
  static const lt_Numbers none;
  lt_cpu_isa()->vectors[compute]->op[op](n, out, x, y, NULL, &none);
}
/* n elements of any dtype, `stride` bytes apart, to dense ones of a compute type, and back. */
static inline void lt_vector_load(lt_Dtype compute, int64_t n, void *out, lt_Dtype dtype,
                                  const void *source, int64_t stride) {
  lt_cpu_isa()->vectors[compute]->load[dtype](n, out, source, stride);
}
static inline void lt_vector_store(lt_Dtype compute, int64_t n, lt_Dtype dtype, void *target,
                                   int64_t stride, const void *values) {
  lt_cpu_isa()->vectors[compute]->store[dtype](n, target, stride, values);
}

#endif
