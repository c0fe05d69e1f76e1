/* mask.c: masked_select, nonzero and masked_scatter. All three block the host until the device has
 * counted the mask's true elements. */
#include "mask.h"
#include "loops.h"

typedef struct Mask {
  lt_Tensor *words, *before, *parts; /* the packed mask and the counts, see mask.h */
  int64_t n, count;                  /* elements, and true elements */
} Mask;

static void close_mask(Mask *m) {
  lt_release(m->words);
  lt_release(m->before);
  lt_release(m->parts);
}

static lt_MpsMask arguments_of(const Mask *m) {
  int64_t words = lt_mps_groups(m->n, LT_MASK_WORD);
  return (lt_MpsMask){.n = m->n, .words = words, .parts = lt_mps_groups(words, LT_MASK_PART)};
}

static lt_Tensor *new_scratch(lt_Call *c, lt_Dtype dtype, int64_t n) {
  return lt_empty(dtype, c->device, 1, &n);
}

/* Packs a mask of at least one element, and reads the number of its true elements. */
static bool pack(lt_Call *c, Mask *m, const lt_Tensor *bytes) {
  lt_MpsMask args = arguments_of(m);
  m->words = new_scratch(c, LT_int32, args.words);
  m->before = new_scratch(c, LT_int32, args.words);
  m->parts = new_scratch(c, LT_int64, args.parts + 1);
  if (!m->words || !m->before || !m->parts) return false;
  int64_t *parts = lt_tensor_data(m->parts);
  lt_MpsLaunch pack = {
      .file = "mask",
      .kernel = "pack_mask",
      .data = {lt_tensor_data(bytes), lt_tensor_data(m->words), lt_tensor_data(m->before), parts},
      .count = 4,
      .arguments = &args,
      .size = sizeof args,
      .groups = {args.parts < LT_LOOP_GROUPS ? args.parts : LT_LOOP_GROUPS},
      .threads = {LT_LOOP_THREADS}};
  lt_MpsLaunch sum = {.file = "mask",
                      .kernel = "sum_parts",
                      .data = {parts},
                      .count = 1,
                      .arguments = &args,
                      .size = sizeof args,
                      .threads = {LT_LOOP_THREADS}};
  return lt_mps_launch(c, &pack) && lt_mps_launch(c, &sum) &&
         lt_fetch_count(c, &m->count, parts + args.parts);
}

/* Broadcasts the mask t to a shape and packs it. Blocks the host. The caller closes it, unless
 * false is returned. */
static bool open_mask(lt_Call *c, Mask *m, lt_Tensor *t, int ndim, const int64_t *shape) {
  lt_Tensor *bytes = lt_expanded_contiguous(t, LT_bool, ndim, shape);
  *m = (Mask){.n = bytes ? bytes->numel : 0};
  bool ok = bytes && (m->n == 0 || pack(c, m, bytes));
  lt_release(bytes);
  if (!ok) close_mask(m);
  return ok;
}

/* Queues the kernel that moves elements of `size` bytes between `from`, of that layout, and `to`;
 * with `from` NULL, one that writes indices of that shape. */
static bool launch(lt_Call *c, const Mask *m, const char *kernel, const lt_IndexLayout *layout,
                   const lt_Tensor *from, lt_Tensor *to) {
  lt_MpsMask args = arguments_of(m);
  args.layout = *layout;
  lt_MpsLaunch l = {
      .file = "mask",
      .kernel = kernel,
      .constants = {(int)lt_dtype_size(to->dtype)},
      .data = {lt_tensor_data(m->words), lt_tensor_data(m->before), lt_tensor_data(m->parts)},
      .count = 3,
      .arguments = &args,
      .size = sizeof args};
  if (from) l.data[l.count++] = lt_tensor_data(from);
  l.data[l.count++] = lt_tensor_data(to);
  return lt_mps_launch_each(c, l, m->n);
}

/* Makes `out`, which the kernel allocated itself, the call's result, and closes the mask. */
static bool finish(lt_Call *c, Mask *m, lt_Tensor *out, bool ok) {
  close_mask(m);
  if (!ok) {
    lt_release(out);
    out = NULL;
  }
  c->out[0] = out;
  c->nout = out ? 1 : 0;
  return out != NULL;
}

bool lt_mps_masked_select(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *mask = lt_in(c, 1);
  int ndim = self->ndim;
  int64_t shape[LT_MAX_DIMS];
  Mask m;
  memcpy(shape, self->shape, sizeof shape);
  lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape);
  if (!lt_mps_begin(c) || !open_mask(c, &m, mask, ndim, shape)) return false;
  lt_Tensor *out = lt_empty(self->dtype, c->device, 1, &m.count);
  bool ok = out != NULL;
  if (ok && m.count > 0) {
    lt_IndexLayout layout = lt_index_layout(self, ndim, shape);
    ok = launch(c, &m, "masked_select", &layout, self, out);
  }
  return finish(c, &m, out, ok);
}

bool lt_mps_nonzero(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  Mask m;
  if (!lt_mps_begin(c) || !open_mask(c, &m, self, self->ndim, self->shape)) return false;
  int64_t shape[2] = {m.count, self->ndim};
  lt_Tensor *out = lt_empty(LT_int64, c->device, 2, shape);
  bool ok = out != NULL;
  if (ok && out->numel > 0) {
    lt_IndexLayout layout = {.ndim = self->ndim};
    memcpy(layout.shape, self->shape, sizeof *self->shape * (size_t)self->ndim);
    ok = launch(c, &m, "true_indices", &layout, NULL, out);
  }
  return finish(c, &m, out, ok);
}

bool lt_mps_masked_scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 2);
  Mask m;
  if (!lt_mps_begin(c) || !open_mask(c, &m, lt_in(c, 1), out->ndim, out->shape)) return false;
  bool ok = true;
  if (m.count > source->numel) {
    ok = lt_fail("expected at least %lld elements for argument 'source', one for each true element "
                 "of the mask, got %lld",
                 (long long)m.count, (long long)source->numel);
  } else if (m.count > 0) {
    lt_IndexLayout layout = lt_index_layout(source, source->ndim, source->shape);
    ok = launch(c, &m, "masked_scatter", &layout, source, out);
  }
  close_mask(&m);
  return ok;
}
