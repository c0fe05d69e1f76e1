/* chain_loop.h: the loop of a chain: several cheap elementwise ops, of which most use the result of
 * the one before. It is included by loops.h for float32 and float64.
 *
 * The results of a step for a tile of 8 vectors stay in registers, and are an operand of the next
 * step; other operands are memory, or a number. So a step takes one instruction for each vector if
 * its op does, and the selection of the op is paid once for each tile. After the last tile, vectors
 * are processed one by one, and the remaining elements in a padded vector.
 *
 * The expressions are those of ops.def and powers.def: a loop over the elements of a vector, which
 * the compiler makes one operation on the vector in a register. */
#include "cpu/chain.h"
#include "chain_ops.h"
#include "lanes.h"

typedef T Vector __attribute__((vector_size(LT_VECTOR_SIZE)));

enum {
  ACROSS = LT_VECTOR_SIZE / (int)sizeof(T), /* elements of a vector */
  DEEP = 8                                  /* vectors of a tile */
};
_Static_assert(LT_VECTOR_SIZE *DEEP / 4 <= LT_CHAIN_TILE, "a number fills a tile");

/* Defines chain_NAME: an op on vectors. */
#define CHAIN_FUNCTION(name, op, text)                                                             \
  static inline __attribute__((always_inline))                                                     \
  Vector chain_##name(Vector x_, Vector y_, Vector z_, const lt_ChainStep *s_) {                   \
    enum { LT_NEAR = false };                                                                      \
    const T a = LT_CHAIN_SCALES(op) ? (T)1 : s_->a.FIELD, b = s_->b.FIELD;                         \
    Vector r_ = x_;                                                                                \
    (void)a, (void)b;                                                                              \
    _Pragma("omp simd")                                                                            \
    for (int i_ = 0; i_ < ACROSS; i_++) {                                                          \
      const T x = x_[i_], y = y_[i_], z = z_[i_];                                                  \
      (void)x, (void)y, (void)z;                                                                   \
      r_[i_] = VALUE(text);                                                                        \
    }                                                                                              \
    return r_;                                                                                     \
  }

/* DO for each vector of a tile, of which there are `deep`. */
#define EACH_VECTOR(DO, ...)                                                                       \
  DO(0, __VA_ARGS__)                                                                               \
  if (deep > 1) {                                                                                  \
    DO(1, __VA_ARGS__)                                                                             \
    DO(2, __VA_ARGS__)                                                                             \
    DO(3, __VA_ARGS__)                                                                             \
    DO(4, __VA_ARGS__)                                                                             \
    DO(5, __VA_ARGS__)                                                                             \
    DO(6, __VA_ARGS__)                                                                             \
    DO(7, __VA_ARGS__)                                                                             \
  }
#define CHAIN_V(k) v##k
#define CHAIN_N(k) number
#define CHAIN_Y(k) vector_at(y + (k)*ACROSS)
#define CHAIN_Z(k) vector_at((const T *)s->memory[1] + (i & s->mask[1]) + (k)*ACROSS)
#define CHAIN_DO(k, name, first, second, third)                                                    \
  v##k = chain_##name(first(k), second(k), third(k), s);
#define CHAIN_LOAD(k, unused) v##k = CHAIN_Y(k);
#define CHAIN_STORE(k, unused)                                                                     \
  memcpy((T *)s->memory[0] + (i & s->mask[0]) + (k)*ACROSS, &v##k, sizeof v##k);

#define CHAIN_CASE(code, ...)                                                                      \
  case code:                                                                                       \
    EACH_VECTOR(CHAIN_DO, __VA_ARGS__)                                                             \
    break;
#define CHAIN_CASES_1(code, name) CHAIN_CASE((code) + LT_CHAIN_X, name, CHAIN_V, CHAIN_V, CHAIN_V)
#define CHAIN_CASES_2(code, name)                                                                  \
  CHAIN_CASE((code) + LT_CHAIN_X, name, CHAIN_V, CHAIN_Y, CHAIN_Y)                                 \
  CHAIN_CASE((code) + LT_CHAIN_Y, name, CHAIN_Y, CHAIN_V, CHAIN_V)                                 \
  CHAIN_CASE((code) + LT_CHAIN_BOTH, name, CHAIN_V, CHAIN_V, CHAIN_V)                              \
  CHAIN_NUMBER_CASE((code) + LT_CHAIN_X_NUMBER, name, CHAIN_V, CHAIN_N, CHAIN_N)                   \
  CHAIN_NUMBER_CASE((code) + LT_CHAIN_Y_NUMBER, name, CHAIN_N, CHAIN_V, CHAIN_V)
#define CHAIN_NUMBER_CASE(code, ...)                                                               \
  case code: {                                                                                     \
    const Vector number = vector_of(*y);                                                           \
    EACH_VECTOR(CHAIN_DO, __VA_ARGS__)                                                             \
    break;                                                                                         \
  }
#define CHAIN_CASES_3(code, name)                                                                  \
  CHAIN_CASE((code) + LT_CHAIN_X, name, CHAIN_V, CHAIN_Y, CHAIN_Z)                                 \
  CHAIN_CASE((code) + LT_CHAIN_Y, name, CHAIN_Y, CHAIN_V, CHAIN_Z)                                 \
  CHAIN_CASE((code) + LT_CHAIN_Z, name, CHAIN_Y, CHAIN_Z, CHAIN_V)

#define IF_CHAINED(name, ...) JOIN(IF_CHAINED_, LT_IS_CHAINED(name), , )(__VA_ARGS__)
#define IF_CHAINED_1(DO, ...) DO(__VA_ARGS__)
#define IF_CHAINED_0(...)
#define IF_FLOAT_F   IF_CHAINED
#define IF_FLOAT_FI  IF_CHAINED
#define IF_FLOAT_FC  IF_CHAINED
#define IF_FLOAT_FIC IF_CHAINED
#define IF_FLOAT_I(...)
#define IF_FLOAT_W(...)
#define IF_FLOAT_WF(...)

static inline __attribute__((always_inline)) Vector vector_at(const T *x) {
  Vector v;
  memcpy(&v, x, sizeof v);
  return v;
}

static inline __attribute__((always_inline)) Vector vector_of(T x) {
  Vector v = {0};
  _Pragma("omp simd")
  for (int i = 0; i < ACROSS; i++) v[i] = x;
  return v;
}

#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, ...)                                      \
  IF_FLOAT_##types(name, CHAIN_FUNCTION, name, LT_OP_##name, ftext)
#include "ops.def"
#define LT_POWER(name, exponent, text)                                                             \
  IF_CHAINED(power_##name, CHAIN_FUNCTION, power_##name, LT_OP_COUNT, text)
#include "powers.def"
#undef LT_POWER

/* Runs the chain on whole tiles from element i on, and returns the first element after them. */
static inline __attribute__((always_inline)) int64_t
chain_tiles(const int deep, int64_t i, int64_t n, const lt_ChainStep *steps, int count) {
  Vector v0 = {0}, v1 = v0, v2 = v0, v3 = v0, v4 = v0, v5 = v0, v6 = v0, v7 = v0;
  for (; i + deep * ACROSS <= n; i += deep * ACROSS) {
    for (const lt_ChainStep *s = steps; s < steps + count; s++) {
      const T *y = (const T *)s->memory[0] + (i & s->mask[0]);
      switch (s->code) {
      case LT_CHAIN_LOAD:
        EACH_VECTOR(CHAIN_LOAD, )
        break;
      case LT_CHAIN_STORE:
        EACH_VECTOR(CHAIN_STORE, )
        break;
#define LT_ELEMENTWISE(name, inputs, rule, types, ...)                                             \
  IF_FLOAT_##types(name, CHAIN_CASES_##inputs, LT_CHAIN_OF(LT_OP_##name), name)
#include "ops.def"
#define LT_POWER(name, ...)                                                                        \
  IF_CHAINED(power_##name, CHAIN_CASES_1, LT_CHAIN_OF(LT_OP_COUNT + LT_POWER_##name), power_##name)
#include "powers.def"
#undef LT_POWER
      default:
        break;
      }
    }
  }
  return i;
}

static __attribute__((noinline)) int64_t chain_vectors(int64_t i, int64_t n,
                                                       const lt_ChainStep *steps, int count) {
  return chain_tiles(1, i, n, steps, count);
}

/* Runs the chain on the elements from i on, fewer than a vector's: step by step, between copies of
 * the operands. */
static void chain_rest(int64_t i, int64_t n, const lt_ChainStep *steps, int count) {
  T x[ACROSS] = {0}, y[ACROSS] = {0}, z[ACROSS] = {0};
  const size_t size = (size_t)(n - i) * sizeof(T);
  lt_ChainStep part[] = {
      {.code = LT_CHAIN_LOAD, .memory = {x}}, {.code = 0}, {.code = LT_CHAIN_STORE, .memory = {x}}};
  for (const lt_ChainStep *s = steps; s < steps + count; s++) {
    char *memory[2];
    for (int k = 0; k < 2; k++)
      memory[k] = s->memory[k] ? (char *)((T *)s->memory[k] + (i & s->mask[k])) : NULL;
    if (s->code == LT_CHAIN_STORE) {
      memcpy(memory[0], x, size);
      continue;
    }
    if (memory[0]) memcpy(s->code == LT_CHAIN_LOAD ? x : y, memory[0], size);
    if (memory[1]) memcpy(z, memory[1], size);
    if (s->code == LT_CHAIN_LOAD) continue;
    part[1] = *s;
    part[1].memory[0] = y;
    part[1].memory[1] = z;
    chain_vectors(0, ACROSS, part, 3);
  }
}

static void chain(int64_t n, const lt_ChainStep *steps, int count) {
  int64_t i = chain_tiles(DEEP, 0, n, steps, count);
  if (i < n) i = chain_vectors(i, n, steps, count);
  if (i < n) chain_rest(i, n, steps, count);
}

/* Whether an op, or a power, can be a step. */
static const bool chained[LT_OP_COUNT + LT_POWER_COUNT] = {
#define LT_ELEMENTWISE(name, inputs, rule, types, ...)                                             \
  IF_FLOAT_##types(name, ENTRY, LT_OP_##name, true)
#include "ops.def"
#define LT_POWER(name, ...) IF_CHAINED(power_##name, ENTRY, LT_OP_COUNT + LT_POWER_##name, true)
#include "powers.def"
#undef LT_POWER
};
