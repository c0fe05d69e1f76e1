/* index.c: ops that read by index: index_select, gather, _index, embedding. */
#include "index_regions.h"

/* ---- the device's part of regions -------------------------------------------------------- */

static lt_Tensor *check(lt_Call *c, lt_Tensor *index, int64_t n, bool negative, const char *name,
                        const void **bad) {
  lt_CudaFault fault;
  lt_Tensor *checked = lt_cuda_checked_indices(c, index, n, negative, name, &fault);
  if (checked) *bad = fault.bad;
  return checked;
}

static bool add(lt_Call *c, const lt_IndexRegion *p, int64_t mult, bool first, const void *bad,
                void *any, int64_t *sum) {
  return lt_cuda_launch_ok(
      lt_cuda_launch_add_indices(p, mult, first, bad, any, sum, lt_cuda_stream(c)));
}

static bool take(lt_Call *c, const lt_IndexRegion *p, int unit, const void *from, void *to) {
  return lt_cuda_launch_ok(lt_cuda_launch_take(p, from, to, unit, lt_cuda_stream(c)));
}

const lt_IndexDriver lt_cuda_index_driver = {lt_cuda_begin, check, add, take};

/* ---- ops ------------------------------------------------------------------------------------- */

bool lt_cuda_index_select(lt_Call *c) {
  return lt_take_line(c, &lt_cuda_index_driver, c->arg[1].i, lt_in(c, 2), "index");
}

bool lt_cuda_gather(lt_Call *c) {
  return lt_take_each(c, &lt_cuda_index_driver, c->arg[1].i, lt_in(c, 2));
}

bool lt_cuda__index(lt_Call *c) {
  return lt_take_several(c, &lt_cuda_index_driver, &c->arg[1], c->arg[2].ints);
}

bool lt_cuda_embedding(lt_Call *c) {
  return lt_take_line(c, &lt_cuda_index_driver, 0, lt_in(c, 1), "input");
}
