/* index.c: ops that read by index: index_select, gather, _index, embedding. */
#include "index_regions.h"
#include "loops.h"

/* ---- the device's part in building regions --------------------------------------------------- */

static lt_Tensor *check(lt_Call *c, lt_Tensor *index, int64_t n, bool negative, const char *name,
                        const void **bad) {
  lt_MpsFault fault;
  lt_Tensor *checked = lt_mps_checked_indices(c, index, n, negative, name, &fault);
  if (checked) *bad = fault.slot;
  return checked;
}

static bool add(lt_Call *c, const lt_IndexRegion *p, int64_t mult, bool first, const void *bad,
                void *any, int64_t *sum) {
  lt_MpsAddIndices args = {*p, mult, first};
  lt_MpsLaunch launch = {.file = "index",
                         .kernel = "add_indices",
                         .data = {p->at, bad, any, sum},
                         .count = 4,
                         .arguments = &args,
                         .size = sizeof args};
  return lt_mps_launch_each(c, launch, p->count);
}

const lt_IndexDriver lt_mps_index_driver = {check, add};

/* ---- ops ------------------------------------------------------------------------------------- */

/* Reads the region of self into the first output and closes x. Where self has no elements, every
 * index was out of range, and the call has already failed. */
static bool take(lt_Call *c, lt_Indexed *x, const lt_Tensor *self) {
  lt_Tensor *out = c->out[0];
  const void *from = lt_tensor_data(self);
  void *to = lt_tensor_data(out);
  bool ok = true;
  if (out->numel > 0 && self->numel > 0) {
    lt_region_collapse(&x->p);
    int unit = lt_region_widen(&x->p, lt_dtype_size(self->dtype), from, to);
    lt_MpsLaunch launch = {.file = "index",
                           .kernel = "index_take",
                           .constants = {unit},
                           .data = {from, x->p.at, to},
                           .count = 3,
                           .arguments = &x->p,
                           .size = sizeof x->p};
    ok = lt_mps_launch_each(c, launch, x->p.count);
  }
  lt_index_close(x);
  return ok;
}

bool lt_mps_index_select(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_mps_begin(c) &&
         lt_index_line(c, &lt_mps_index_driver, &x, self, dim, lt_in(c, 2), "index") &&
         take(c, &x, self);
}

bool lt_mps_gather(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_mps_begin(c) &&
         lt_index_each(c, &lt_mps_index_driver, &x, self, dim, lt_in(c, 2)) && take(c, &x, self);
}

bool lt_mps__index(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Indexed x;
  return lt_mps_begin(c) &&
         lt_index_several(c, &lt_mps_index_driver, &x, self, &c->arg[1], c->arg[2].ints) &&
         take(c, &x, self);
}

bool lt_mps_embedding(lt_Call *c) {
  lt_Tensor *weight = lt_in(c, 0);
  lt_Indexed x;
  return lt_mps_begin(c) &&
         lt_index_line(c, &lt_mps_index_driver, &x, weight, 0, lt_in(c, 1), "input") &&
         take(c, &x, weight);
}
