/* each.c: rows LT_EACH on the CPU: a loop over the elements of the result that calls the body
 * (each/each.h), shared among threads. A kernel lt_cpu_each_<name>, where there is one, runs
 * instead: a faster loop for the same results. */
#include "each/run.h"
#include "kernel_support.h"
#include "opids.h"
#include <math.h>

/* Computes the elements from..to - 1. */
typedef void (*Range)(const void *args, const void *const *in, void *const *out, int64_t from,
                      int64_t to);

#define LT_EACH_BODY(name)                                                                         \
  static inline void LT_EACH_NAME(body##name)(const lt_each_##name##_args *p,                      \
                                              const void *const *in, void *const *out, int64_t i)
#define LT_EACH_OF_T       LT_EACH_FUNCTION
#define LT_EACH_CALL(f)    LT_EACH_NAME(f)
#define GET(k, j)          (((const T *)in[k])[j])
#define GET_INDEX(k, j)    (((const int64_t *)in[k])[j] - LT_INDEX_BASE)
#define PUT(k, j, v)       (((T *)out[k])[j] = (v))
#define PUT_INDEX(k, j, v) (((int64_t *)out[k])[j] = (v) + LT_INDEX_BASE)
#define RANGE_OF(name)                                                                             \
  static void LT_EACH_NAME(range##name)(const void *args, const void *const *in, void *const *out, \
                                        int64_t from, int64_t to) {                                \
    for (int64_t i = from; i < to; i++) LT_EACH_NAME(body##name)(args, in, out, i);                \
  }

#define T               float
#define LT_EACH_NAME(f) f##_float
#define IS_NAN(v)       ((v) != (v))
#define FLOOR(v)        floorf(v)
#include "each/bodies.h"
#define LT_EACH(name, ...) RANGE_OF(name)
#include "ops.def"
#undef T
#undef LT_EACH_NAME
#undef FLOOR
#define T               double
#define LT_EACH_NAME(f) f##_double
#define FLOOR(v)        floor(v)
#include "each/bodies.h"
#define LT_EACH(name, ...) RANGE_OF(name)
#include "ops.def"
#undef T
#undef LT_EACH_NAME
#undef IS_NAN
#undef FLOOR
#define T               int64_t
#define LT_EACH_NAME(f) f##_int64
#define IS_NAN(v)       false
#define FLOOR(v)        (v)
#include "each/bodies.h"
#define LT_EACH(name, ...) RANGE_OF(name)
#include "ops.def"

/* Faster loops for some rows. Each is called with contiguous inputs of the dtype that the call
 * computes in, and results of it. */
#define LT_EACH(name, ...)                                                                         \
  bool lt_cpu_each_##name(const lt_EachRun *run, void *const *out) __attribute__((weak));
#include "ops.def"

typedef struct Row {
  Range range[3]; /* for float, double, int64 */
  bool (*own)(const lt_EachRun *run, void *const *out);
} Row;
static const Row rows[LT_OP_COUNT] = {
#define LT_EACH(name, ...)                                                                         \
  [LT_OP_##name] = {{range##name##_float, range##name##_double, range##name##_int64},              \
                    lt_cpu_each_##name},
#include "ops.def"
};

typedef struct Loop {
  Range range;
  const void *args;
  const void *in[LT_EACH_INPUTS];
  void *out[LT_EACH_OUTPUTS];
} Loop;
static void run_range(void *context, int64_t from, int64_t to) {
  const Loop *l = context;
  l->range(l->args, l->in, l->out, from, to);
}

bool lt_cpu_each(lt_Call *c) {
  const Row *row = &rows[c->op];
  lt_EachRun run;
  lt_Tensor *out[LT_EACH_OUTPUTS] = {NULL};
  if (c->out[0]->numel == 0) return true;
  if (!lt_each_open(c, true, &run)) return false;
  Loop l = {.args = run.args.bytes,
            .range = row->range[run.compute == LT_float32   ? 0
                                : run.compute == LT_float64 ? 1
                                                            : 2]};
  bool ok = true;
  for (int k = 0; k < run.nin; k++) l.in[k] = lt_tensor_data(run.in[k]);
  for (int k = 0; k < c->nout && ok; k++) {
    out[k] = lt_output_open(c->out[k], lt_work_dtype(c->out[k]->dtype));
    ok = out[k] != NULL;
    if (ok) l.out[k] = lt_tensor_data(out[k]);
  }
  if (ok && !(row->own && row->own(&run, l.out))) lt_share(run.n * run.cost, run.n, run_range, &l);
  for (int k = 0; k < c->nout; k++) ok = lt_output_close(c->out[k], out[k]) && ok;
  lt_each_close(&run);
  return ok;
}
