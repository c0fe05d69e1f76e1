/* run.c: prepares the calls of rows LT_EACH. */
#include "run.h"
#include "opids.h"

/* The host's part of each row (each.h). */
#define LT_EACH(name, ...) int64_t lt_each_##name(const lt_Call *c, lt_each_##name##_args *p);
#include "ops.def"
#define LT_EACH(name, ...)                                                                         \
  _Static_assert(sizeof(lt_each_##name##_args) <= LT_EACH_BYTES, "the struct is too large");       \
  static int64_t prepare_##name(const lt_Call *c, void *p) { return lt_each_##name(c, p); }
#include "ops.def"

typedef struct Row {
  int64_t (*prepare)(const lt_Call *c, void *args);
  size_t size;
} Row;
static const Row rows[LT_OP_COUNT] = {
#define LT_EACH(name, ...) [LT_OP_##name] = {prepare_##name, sizeof(lt_each_##name##_args)},
#include "ops.def"
};

bool lt_each_open(const lt_Call *c, bool widen, lt_EachRun *run) {
  const Row *row = &rows[c->op];
  *run = (lt_EachRun){.n = c->out[0]->numel, .size = row->size};
  run->cost = row->prepare(c, run->args.bytes);
  for (int k = 0; k < c->nargs && run->nin < LT_EACH_INPUTS; k++) {
    lt_Tensor *t = lt_in(c, k);
    if (!t) continue;
    lt_Dtype work = lt_dtype_accumulate(t->dtype);
    if (run->nin == 0) run->compute = work;
    run->in[run->nin] = lt_as_contiguous(t, widen ? work : t->dtype);
    if (!run->in[run->nin++]) {
      lt_each_close(run);
      return false;
    }
  }
  return true;
}

void lt_each_close(lt_EachRun *run) {
  for (int k = 0; k < run->nin; k++) lt_release(run->in[k]);
}
