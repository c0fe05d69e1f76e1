/* vector.h: the vector loops of the CPU, one table for each instruction set, selected at their
 * first use.
 *
 * A loop works on dense memory of one compute type (bool as uint8_t, int32_t, int64_t, float,
 * double, and C's complex types); loads convert elements of any dtype and stride to that form,
 * stores convert them back. An element's result does not depend on its index in the loop: results
 * are the same for every split of the work and every layout. */
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
  lt_Number a, b;  /* scalar arguments of the op */
  lt_Number limit; /* the largest finite number of the result's dtype */
  /* y (x) is one element in each row. Only for ops with two inputs, and for x those of LT_X_ONCE.
   * With three inputs: y and z are one element, for the ops of LT_YZ_ONCE.
   * For half floats: only the last of two or three inputs, of one row, as a float32. */
  bool y_once, x_once;
  int64_t rows;    /* then: rows of n elements */
  int64_t step[3]; /* from one row to the next of out, x, y, in bytes */
} lt_Numbers;

#define LT_X_ONCE(op)                                                                              \
  ((op) == LT_OP_add || (op) == LT_OP_sub || (op) == LT_OP_mul || (op) == LT_OP__true_divide)

#define LT_YZ_ONCE(op) ((op) == LT_OP__nan_to_num || (op) == LT_OP__where)

/* Converts the scalar arguments a and b of an op that computes in `compute` and returns the dtype
 * `result`. */
void lt_cpu_numbers(lt_Numbers *numbers, lt_Dtype compute, lt_Dtype result, const lt_Scalar *a,
                    const lt_Scalar *b);

/* Computes out[i] = op(x[i], y[i], z[i]) for i < n. out may be one of the inputs. Inputs that the
 * op does not use may be NULL. */
typedef void (*lt_VectorFn)(int64_t n, void *out, const void *x, const void *y, const void *z,
                            const lt_Numbers *numbers);
/* Evaluates a map's expressions for i < n: memory holds an array for each of its tensors, in the
 * row's order; bit k of `written`: array k may be changed. numbers: those of lt_map_numbers. */
typedef void (*lt_MapFn)(int64_t n, char *const *memory, unsigned written, const double *numbers);
/* Converts n elements with a stride in bytes (0: one element n times) to dense ones of the compute
 * type. */
typedef void (*lt_LoadFn)(int64_t n, void *out, const void *source, int64_t stride);
/* Converts n dense values to elements with a stride in bytes. */
typedef void (*lt_StoreFn)(int64_t n, void *target, int64_t stride, const void *values);

/* Repeats each of n values `times` times. Writes up to LT_SPREAD_SLACK more elements after them. */
typedef void (*lt_SpreadFn)(int64_t n, int64_t times, void *out, const void *values);
#define LT_SPREAD_SLACK 16

/* The rows of powers.def. */
enum {
#define LT_POWER(name, ...) LT_POWER_##name,
#include "powers.def"
#undef LT_POWER
  LT_POWER_COUNT
};

/* A step of a chain: a function of kernels/chain_loop.h. */
struct lt_ChainStep;
typedef void (*lt_ChainFn)(void);

/* The loops of one compute type. */
typedef struct lt_Vectors {
  /* [LT_OP_COUNT]: for elementwise ops; NULL where the op does not support this type */
  const lt_VectorFn *op;
  const lt_VectorFn *power;       /* [LT_POWER_COUNT]; NULL for integers and bool */
  const lt_MapFn *map;            /* [LT_MAP_COUNT] */
  lt_LoadFn load[LT_DTYPE_COUNT]; /* by dtype in memory; complex dtypes only for complex types */
  /* For complex types: to bool, floats (the real part) and complex dtypes only. To complex dtypes:
   * from complex types and bool only. */
  lt_StoreFn store[LT_DTYPE_COUNT];
  lt_SpreadFn spread; /* of values of the compute type */
  /* [LT_CHAIN_ROWS]: the forms of steps of chains; NULL where an op cannot be one, or for all */
  const lt_ChainFn *const *chained;
  /* Runs the steps of a chain on n elements; see chain.h. */
  void (*chain)(int64_t n, const struct lt_ChainStep *steps);
} lt_Vectors;

/* The instruction sets, in ascending order. */
typedef enum lt_IsaLevel { LT_LEVEL_base, LT_LEVEL_avx2, LT_LEVEL_avx512 } lt_IsaLevel;

typedef struct lt_Isa {
  const char *name; /* "avx512", "avx2", "base" */
  lt_IsaLevel level;
  const lt_Vectors *vectors[LT_DTYPE_COUNT]; /* by dtype; few loops of those not computed in */
} lt_Isa;

/* Returns the best instruction set of this CPU, or the one that LUTRA_CPU_CAPABILITY (base, avx2,
 * avx512) selects. */
const lt_Isa *lt_cpu_isa(void);

/* Returns the loop of x^y for a number y, if it is one of powers.def, for complex numbers 2 or 3,
 * and 2 for other types; else NULL. It has one input. */
lt_VectorFn lt_cpu_power(lt_Dtype compute, lt_Scalar exponent);

/* Computes out[i] = op(x[i], y[i]) on dense memory of a compute type, for kernels that use an
 * elementwise op. */
static inline void lt_vector_op(lt_OpId op, lt_Dtype compute, int64_t n, void *out, const void *x,
                                const void *y) {
  static const lt_Numbers none;
  lt_cpu_isa()->vectors[compute]->op[op](n, out, x, y, NULL, &none);
}
/* Convert n elements of any dtype, `stride` bytes apart, to dense ones of a compute type, and
 * back. */
static inline void lt_vector_load(lt_Dtype compute, int64_t n, void *out, lt_Dtype dtype,
                                  const void *source, int64_t stride) {
  lt_cpu_isa()->vectors[compute]->load[dtype](n, out, source, stride);
}
static inline void lt_vector_store(lt_Dtype compute, int64_t n, lt_Dtype dtype, void *target,
                                   int64_t stride, const void *values) {
  lt_cpu_isa()->vectors[compute]->store[dtype](n, target, stride, values);
}

#endif
