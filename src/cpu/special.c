/* special.c: the loops of elementwise ops of type W, whose functions (special.h) are too long for
 * vector code: one loop for every instruction set. */
#include "vector.h"

#include "cpu/kernels/float64_ops.h"
#include "mathx.h"
#define LT_SPECIAL static __attribute__((unused))
#include "special.h"

#define T        double
#define VALUES_1 T x = p[i];
#define VALUES_2 T x = p[i], y = q[numbers->y_once ? 0 : i];
#define VALUES_3 T x = p[i], y = q[i], z = r[i];

#define LOOP_F(...)
#define LOOP_I(...)
#define LOOP_FI(...)
#define LOOP_FC(...)
#define LOOP_FIC(...)
#define LOOP_WF(name, ...)        LOOP_WF_(LT_VECTOR(name), name, __VA_ARGS__)
#define LOOP_WF_(by_vector, ...)  LOOP_WF__(by_vector, __VA_ARGS__)
#define LOOP_WF__(by_vector, ...) LOOP_WF_##by_vector(__VA_ARGS__)
#define LOOP_WF_ALL(...)
#define LOOP_WF_PARTLY LOOP_W
#define LOOP_WF_0      LOOP_W
#define LOOP_W(name, inputs, text)                                                                 \
  void lt_special_loop_##name(int64_t n, void *out, const void *x_, const void *y_,                \
                              const void *z_, const lt_Numbers *numbers);                          \
  void lt_special_loop_##name(int64_t n, void *out, const void *x_, const void *y_,                \
                              const void *z_, const lt_Numbers *numbers) {                         \
    const T *p = x_, *q = y_, *r = z_;                                                             \
    const T a = numbers->a.float64, b = numbers->b.float64, MAXFINITE = numbers->limit.float64;    \
    T *o = out;                                                                                    \
    (void)q, (void)r, (void)a, (void)b, (void)MAXFINITE;                                           \
    for (int64_t rows = inputs == 2 && numbers->y_once ? numbers->rows : 1;; rows--) {             \
      for (int64_t i = 0; i < n; i++) {                                                            \
        VALUES_##inputs o[i] = (text);                                                             \
      }                                                                                            \
      if (rows <= 1) return;                                                                       \
      o = (T *)((char *)o + numbers->step[0]);                                                     \
      p = (const T *)((const char *)p + numbers->step[1]);                                         \
      q = (const T *)((const char *)q + numbers->step[2]);                                         \
    }                                                                                              \
  }
#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, ...) LOOP_##types(name, inputs, ftext)
#include "ops.def"
