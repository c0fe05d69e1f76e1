/* chain_loop.h: the loop of a chain: several cheap elementwise ops, of which most use the result of
 * the one before. It is included by loops.h for float32 and float64.
 *
 * Each step is a function. The results of a step for a tile of 8 vectors stay in registers: they
 * are arguments of the function of the next step, which is called last, so that the compiler makes
 * the call a jump. So a step takes one instruction for each vector if its op does, and one jump for
 * each tile. Other operands are memory, or a number. The elements after the last tile are processed
 * in a padded tile.
 *
 * The expressions are those of ops.def and powers.def: a loop over the elements of a vector, which
 * the compiler makes one operation on the vector in a register. */
#include "cpu/chain.h"
#include "chain_ops.h"
#include "lanes.h"

typedef T Vector __attribute__((vector_size(LT_VECTOR_SIZE)));

enum {
  ACROSS = LT_VECTOR_SIZE / (int)sizeof(T), /* elements of a vector */
  DEEP = 8,                                 /* vectors of a tile */
  TILE = DEEP * ACROSS
};
_Static_assert(TILE <= (int)LT_CHAIN_TILE, "a number fills a tile");

/* StepFn runs a step, and those after it, on the tile of elements from i on. */
#define CHAIN_PARAMETERS                                                                           \
  Vector v0, Vector v1, Vector v2, Vector v3, Vector v4, Vector v5, Vector v6, Vector v7,          \
      const lt_ChainStep *s, int64_t i
#define CHAIN_RUN(step) ((StepFn *)(step)->fn)(v0, v1, v2, v3, v4, v5, v6, v7, step, i)
typedef void StepFn(CHAIN_PARAMETERS);

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

/* DO for each vector of a tile. */
#define EACH_VECTOR(DO, ...)                                                                       \
  DO(0, __VA_ARGS__)                                                                               \
  DO(1, __VA_ARGS__)                                                                               \
  DO(2, __VA_ARGS__)                                                                               \
  DO(3, __VA_ARGS__)                                                                               \
  DO(4, __VA_ARGS__)                                                                               \
  DO(5, __VA_ARGS__)                                                                               \
  DO(6, __VA_ARGS__)                                                                               \
  DO(7, __VA_ARGS__)
#define CHAIN_V(k) v##k
#define CHAIN_N(k) vector_of(*chain_memory(s, 0, i))
#define CHAIN_Y(k) vector_at(chain_memory(s, 0, i) + (k)*ACROSS)
#define CHAIN_Z(k) vector_at(chain_memory(s, 1, i) + (k)*ACROSS)
#define CHAIN_DO(k, name, first, second, third)                                                    \
  v##k = chain_##name(first(k), second(k), third(k), s);
#define CHAIN_LOAD(k, x)  v##k = vector_at((x) + (k)*ACROSS);
#define CHAIN_STORE(k, x) memcpy((x) + (k)*ACROSS, &v##k, sizeof v##k);

/* DO for each form of an op's steps, with the operands. */
#define CHAIN_FORMS_1(DO, name) DO(name, X, CHAIN_V, CHAIN_V, CHAIN_V)
#define CHAIN_FORMS_2(DO, name)                                                                    \
  DO(name, X, CHAIN_V, CHAIN_Y, CHAIN_Y)                                                           \
  DO(name, Y, CHAIN_Y, CHAIN_V, CHAIN_V)                                                           \
  DO(name, BOTH, CHAIN_V, CHAIN_V, CHAIN_V)                                                        \
  DO(name, X_NUMBER, CHAIN_V, CHAIN_N, CHAIN_N)                                                    \
  DO(name, Y_NUMBER, CHAIN_N, CHAIN_V, CHAIN_V)
#define CHAIN_FORMS_3(DO, name)                                                                    \
  DO(name, X, CHAIN_V, CHAIN_Y, CHAIN_Z)                                                           \
  DO(name, Y, CHAIN_Y, CHAIN_V, CHAIN_Z)                                                           \
  DO(name, Z, CHAIN_Y, CHAIN_Z, CHAIN_V)
#define CHAIN_STEP(name, form, ...)                                                                \
  static void chain_##name##_##form(CHAIN_PARAMETERS) {                                            \
    EACH_VECTOR(CHAIN_DO, name, __VA_ARGS__)                                                       \
    CHAIN_RUN(s + 1);                                                                              \
  }
#define CHAIN_STEPS(name, inputs, op, text)                                                        \
  CHAIN_FUNCTION(name, op, text)                                                                   \
  CHAIN_FORMS_##inputs(CHAIN_STEP, name)
#define CHAIN_ENTRY(name, form, ...) [LT_CHAIN_##form] = (lt_ChainFn)chain_##name##_##form,
#define CHAIN_ROW(name, inputs, row)                                                               \
  [row] = (const lt_ChainFn[LT_CHAIN_FORMS]){CHAIN_FORMS_##inputs(CHAIN_ENTRY, name)},

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

/* Returns operand k of a step, from element i on. */
static inline __attribute__((always_inline)) T *chain_memory(const lt_ChainStep *s, int k,
                                                             int64_t i) {
  return (T *)s->memory[k] + (i & s->mask[k]);
}

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
  IF_FLOAT_##types(name, CHAIN_STEPS, name, inputs, LT_OP_##name, ftext)
#include "ops.def"
#define LT_POWER(name, exponent, text)                                                             \
  IF_CHAINED(power_##name, CHAIN_STEPS, power_##name, 1, LT_OP_COUNT, text)
#include "powers.def"
#undef LT_POWER

static void chain_load(CHAIN_PARAMETERS) {
  const T *x = chain_memory(s, 0, i);
  EACH_VECTOR(CHAIN_LOAD, x)
  CHAIN_RUN(s + 1);
}

static void chain_store(CHAIN_PARAMETERS) {
  T *x = chain_memory(s, 0, i);
  EACH_VECTOR(CHAIN_STORE, x)
  CHAIN_RUN(s + 1);
}

static void chain_end(CHAIN_PARAMETERS) {
  T *x = chain_memory(s, 0, i);
  EACH_VECTOR(CHAIN_STORE, x)
}

static const lt_ChainFn *const chained[LT_CHAIN_ROWS] = {
    [LT_CHAIN_MEMORY] = (const lt_ChainFn[]){[LT_CHAIN_LOAD] = (lt_ChainFn)chain_load,
                                             [LT_CHAIN_STORE] = (lt_ChainFn)chain_store,
                                             [LT_CHAIN_END] = (lt_ChainFn)chain_end},
#define LT_ELEMENTWISE(name, inputs, rule, types, ...)                                             \
  IF_FLOAT_##types(name, CHAIN_ROW, name, inputs, LT_OP_##name)
#include "ops.def"
#define LT_POWER(name, ...)                                                                        \
  IF_CHAINED(power_##name, CHAIN_ROW, power_##name, 1, LT_OP_COUNT + LT_POWER_##name)
#include "powers.def"
#undef LT_POWER
};

static void chain_tile(const lt_ChainStep *steps, int64_t i) {
  const Vector v0 = {0}, v1 = v0, v2 = v0, v3 = v0, v4 = v0, v5 = v0, v6 = v0, v7 = v0;
  CHAIN_RUN(steps);
}

/* Runs the chain on the elements from i on, fewer than a tile's: step by step, between copies of
 * the operands. */
static __attribute__((noinline)) void chain_rest(int64_t i, int64_t n, const lt_ChainStep *steps) {
  T value[TILE] = {0}, operand[2][TILE] = {{0}, {0}};
  const size_t size = (size_t)(n - i) * sizeof(T);
  lt_ChainStep part[] = {{.fn = (lt_ChainFn)chain_load, .memory = {value}},
                         {.fn = NULL},
                         {.fn = (lt_ChainFn)chain_end, .memory = {value}}};
  for (const lt_ChainStep *s = steps;; s++) {
    if (s->fn == (lt_ChainFn)chain_load) {
      memcpy(value, chain_memory(s, 0, i), size);
    } else if (s->fn == (lt_ChainFn)chain_store || s->fn == (lt_ChainFn)chain_end) {
      memcpy(chain_memory(s, 0, i), value, size);
      if (s->fn == (lt_ChainFn)chain_end) return;
    } else {
      part[1] = (lt_ChainStep){.fn = s->fn, .a = s->a, .b = s->b};
      for (int k = 0; k < 2 && s->memory[k]; k++) {
        part[1].memory[k] = operand[k];
        memcpy(operand[k], chain_memory(s, k, i), size);
      }
      chain_tile(part, 0);
    }
  }
}

static void chain(int64_t n, const lt_ChainStep *steps) {
  int64_t i = 0;
  for (; i + TILE <= n; i += TILE) chain_tile(steps, i);
  if (i < n) chain_rest(i, n, steps);
}
