/* index.c: ops that read by index: index_select, gather, _index, embedding. */
#include "index_regions.h"

/* ---- the device's part in building regions --------------------------------------------------- */

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

const lt_IndexDriver lt_cuda_index_driver = {check, add};

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
    ok = lt_cuda_launch_ok(lt_cuda_launch_take(&x->p, from, to, unit, lt_cuda_stream(c)));
  }
  lt_index_close(x);
  return ok;
}

bool lt_cuda_index_select(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_cuda_begin(c) &&
         lt_index_line(c, &lt_cuda_index_driver, &x, self, dim, lt_in(c, 2), "index") &&
         take(c, &x, self);
}

bool lt_cuda_gather(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_cuda_begin(c) &&
         lt_index_each(c, &lt_cuda_index_driver, &x, self, dim, lt_in(c, 2)) && take(c, &x, self);
}

bool lt_cuda__index(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Indexed x;
  return lt_cuda_begin(c) &&
         lt_index_several(c, &lt_cuda_index_driver, &x, self, &c->arg[1], c->arg[2].ints) &&
         take(c, &x, self);
}

bool lt_cuda_embedding(lt_Call *c) {
  lt_Tensor *weight = lt_in(c, 0);
  lt_Indexed x;
  return lt_cuda_begin(c) &&
         lt_index_line(c, &lt_cuda_index_driver, &x, weight, 0, lt_in(c, 1), "input") &&
         take(c, &x, weight);
}
