/* index.c: ops that read by index: index_select, gather, _index, embedding. */
#include "index_regions.h"
#include "loops.h"

/* ---- the device's part of regions -------------------------------------------------------- */

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

static bool take(lt_Call *c, const lt_IndexRegion *p, int unit, const void *from, void *to) {
  lt_MpsLaunch launch = {.file = "index",
                         .kernel = "index_take",
                         .constants = {unit},
                         .data = {from, p->at, to},
                         .count = 3,
                         .arguments = p,
                         .size = sizeof *p};
  return lt_mps_launch_each(c, launch, p->count);
}

const lt_IndexDriver lt_mps_index_driver = {lt_mps_begin, check, add, take};

/* ---- ops ------------------------------------------------------------------------------------- */

bool lt_mps_index_select(lt_Call *c) {
  return lt_take_line(c, &lt_mps_index_driver, c->arg[1].i, lt_in(c, 2), "index");
}

bool lt_mps_gather(lt_Call *c) {
  return lt_take_each(c, &lt_mps_index_driver, c->arg[1].i, lt_in(c, 2));
}

bool lt_mps__index(lt_Call *c) {
  return lt_take_several(c, &lt_mps_index_driver, &c->arg[1], c->arg[2].ints);
}

bool lt_mps_embedding(lt_Call *c) {
  return lt_take_line(c, &lt_mps_index_driver, 0, lt_in(c, 1), "input");
}
