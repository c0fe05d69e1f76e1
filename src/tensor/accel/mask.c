/* mask.c: opens masks and allocates results whose size is the number of true elements. */
#include "accel/mask.h"

static void close_mask(lt_Mask *m) {
  lt_release(m->words);
  lt_release(m->before);
  lt_release(m->parts);
}

/* Broadcasts the mask t to a shape and packs it. Blocks the host. The caller closes it, unless
 * false is returned. */
static bool open_mask(lt_Call *c, const lt_MaskDriver *driver, lt_Mask *m, lt_Tensor *t, int ndim,
                      const int64_t *shape) {
  if (!driver->begin(c)) return false;
  lt_Tensor *bytes = lt_expanded_contiguous(t, LT_bool, ndim, shape);
  *m = (lt_Mask){.n = bytes ? bytes->numel : 0};
  bool ok = bytes && (m->n == 0 || driver->pack(c, m, bytes));
  lt_release(bytes);
  if (!ok) close_mask(m);
  return ok;
}

/* Makes `out`, which the kernel allocated itself, the call's result, and closes the mask. */
static bool finish(lt_Call *c, lt_Mask *m, lt_Tensor *out, bool ok) {
  close_mask(m);
  if (!ok) {
    lt_release(out);
    out = NULL;
  }
  c->out[0] = out;
  c->nout = out ? 1 : 0;
  return out != NULL;
}

bool lt_mask_select(lt_Call *c, const lt_MaskDriver *driver) {
  lt_Tensor *self = lt_in(c, 0), *mask = lt_in(c, 1);
  int ndim = self->ndim;
  int64_t shape[LT_MAX_DIMS];
  lt_Mask m;
  memcpy(shape, self->shape, sizeof shape);
  lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape);
  if (!open_mask(c, driver, &m, mask, ndim, shape)) return false;
  lt_Tensor *out = lt_empty(self->dtype, c->device, 1, &m.count);
  bool ok = out != NULL;
  if (ok && m.count > 0) {
    lt_IndexLayout layout = lt_index_layout(self, ndim, shape);
    ok = driver->move(c, &m, LT_MASK_SELECT, &layout, self, out);
  }
  return finish(c, &m, out, ok);
}

bool lt_mask_indices(lt_Call *c, const lt_MaskDriver *driver) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Mask m;
  if (!open_mask(c, driver, &m, self, self->ndim, self->shape)) return false;
  int64_t shape[2] = {m.count, self->ndim};
  lt_Tensor *out = lt_empty(LT_int64, c->device, 2, shape);
  bool ok = out != NULL;
  if (ok && out->numel > 0) {
    lt_IndexLayout layout = {.ndim = self->ndim};
    memcpy(layout.shape, self->shape, sizeof *self->shape * (size_t)self->ndim);
    ok = driver->move(c, &m, LT_MASK_INDICES, &layout, NULL, out);
  }
  return finish(c, &m, out, ok);
}

bool lt_mask_fill(lt_Call *c, const lt_MaskDriver *driver) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 2);
  lt_Mask m;
  if (!open_mask(c, driver, &m, lt_in(c, 1), out->ndim, out->shape)) return false;
  bool ok = true;
  if (m.count > source->numel) {
    ok = lt_fail("expected at least %lld elements for argument 'source', one for each true element "
                 "of the mask, got %lld",
                 (long long)m.count, (long long)source->numel);
  } else if (m.count > 0) {
    lt_IndexLayout layout = lt_index_layout(source, source->ndim, source->shape);
    ok = driver->move(c, &m, LT_MASK_FILL, &layout, source, out);
  }
  close_mask(&m);
  return ok;
}
