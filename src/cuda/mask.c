/* mask.c: masked_select, nonzero, masked_scatter. All three need the number of true ones before
 * they can go on: they wait for the device.
 */
#include "mask.h"
#include "scan.h"

typedef struct Mask {
  lt_Tensor *bytes;  /* dense */
  lt_Tensor *before; /* true ones before each chunk; and of all, at the end */
  int64_t count;
} Mask;

static void close_mask(Mask *m) {
  lt_release(m->bytes);
  lt_release(m->before);
}

/* t broadcast to the shape, as dense bool. One reference. */
static lt_Tensor *as_bytes(lt_Tensor *t, int ndim, const int64_t *shape) {
  int64_t strides[LT_MAX_DIMS];
  int missing = ndim - t->ndim;
  for (int d = 0; d < ndim; d++) {
    int s = d - missing;
    strides[d] = s < 0 || (t->shape[s] == 1 && shape[d] != 1) ? 0 : t->strides[s];
  }
  lt_Tensor *wide = lt_tensor_on(t->storage, t->dtype, t->offset, ndim, shape, strides);
  lt_Tensor *dense = lt_as_contiguous(wide, LT_bool);
  lt_release(wide);
  return dense;
}

/* Where the true ones of each chunk begin. */
static bool scan(lt_Call *c, Mask *m) {
  int64_t n = m->bytes->numel, chunks = (n - 1) / LT_CUDA_MASK_CHUNK + 1, sums = chunks + 1, bytes;
  cudaStream_t stream = lt_cuda_stream(c);
  size_t size = 0;
  lt_Tensor *counts = lt_empty(LT_uint8, c->device, 1, &chunks), *room = NULL;
  m->before = counts ? lt_empty(LT_int64, c->device, 1, &sums) : NULL;
  bool ok =
      m->before &&
      lt_cuda_ran(
          lt_cuda_launch_count_mask(lt_tensor_data(m->bytes), n, lt_tensor_data(counts), stream)) &&
      lt_cuda_ran(lt_cuda_scan_exclusive_i64(NULL, &size, NULL, LT_uint8, chunks, NULL, stream));
  if (ok) {
    bytes = (int64_t)size;
    room = lt_empty(LT_uint8, c->device, 1, &bytes);
    ok = room && lt_cuda_ran(lt_cuda_scan_exclusive_i64(lt_tensor_data(room), &size,
                                                        lt_tensor_data(counts), LT_uint8, chunks,
                                                        lt_tensor_data(m->before), stream));
  }
  lt_release(counts);
  lt_release(room);
  const int64_t *total = ok ? (const int64_t *)lt_tensor_data(m->before) + chunks : NULL;
  return ok && lt_cuda_backend.copy(lt_cpu(), &m->count, c->device, total, sizeof m->count,
                                    c->stream, false);
}

/* Waits. */
static bool open_mask(lt_Call *c, Mask *m, lt_Tensor *t, int ndim, const int64_t *shape) {
  *m = (Mask){.bytes = as_bytes(t, ndim, shape)};
  if (m->bytes && (m->bytes->numel == 0 || scan(c, m))) return true;
  close_mask(m);
  return false;
}

/* Gives the result, which the kernel made itself, and closes the mask. */
static bool give(lt_Call *c, Mask *m, lt_Tensor *out, bool ok) {
  close_mask(m);
  if (!ok) {
    lt_release(out);
    out = NULL;
  }
  c->out[0] = out;
  c->nout = out ? 1 : 0;
  return out != NULL;
}

bool lt_cuda_masked_select(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *mask = lt_in(c, 1);
  int ndim = self->ndim;
  int64_t shape[LT_MAX_DIMS];
  Mask m;
  memcpy(shape, self->shape, sizeof shape);
  lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape);
  if (!lt_cuda_begin(c) || !open_mask(c, &m, mask, ndim, shape)) return false;
  lt_Tensor *out = lt_empty(self->dtype, c->device, 1, &m.count);
  bool ok = out != NULL;
  if (ok && m.count > 0) {
    lt_CudaLayout layout = lt_cuda_layout(self, ndim, shape);
    ok = lt_cuda_ran(lt_cuda_launch_select(lt_tensor_data(m.bytes), lt_tensor_data(m.before),
                                           m.bytes->numel, &layout, lt_tensor_data(self),
                                           lt_tensor_data(out), (int)lt_dtype_size(self->dtype),
                                           lt_cuda_stream(c)));
  }
  return give(c, &m, out, ok);
}

bool lt_cuda_nonzero(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  Mask m;
  if (!lt_cuda_begin(c) || !open_mask(c, &m, self, self->ndim, self->shape)) return false;
  int64_t shape[2] = {m.count, self->ndim};
  lt_Tensor *out = lt_empty(LT_int64, c->device, 2, shape);
  bool ok = out != NULL;
  if (ok && out->numel > 0) {
    lt_CudaLayout layout = {.ndim = self->ndim};
    memcpy(layout.shape, self->shape, sizeof *self->shape * (size_t)self->ndim);
    ok = lt_cuda_ran(lt_cuda_launch_positions_of(lt_tensor_data(m.bytes), lt_tensor_data(m.before),
                                                 m.bytes->numel, &layout, lt_tensor_data(out),
                                                 lt_cuda_stream(c)));
  }
  return give(c, &m, out, ok);
}

bool lt_cuda_masked_scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 2);
  Mask m;
  if (!lt_cuda_begin(c) || !open_mask(c, &m, lt_in(c, 1), out->ndim, out->shape)) return false;
  bool ok = true;
  if (m.count > source->numel) {
    ok = lt_fail("the mask is true %lld times, but source has only %lld element%s",
                 (long long)m.count, (long long)source->numel, source->numel == 1 ? "" : "s");
  } else if (m.count > 0) {
    lt_CudaLayout layout = lt_cuda_layout(source, source->ndim, source->shape);
    ok = lt_cuda_ran(lt_cuda_launch_deselect(lt_tensor_data(m.bytes), lt_tensor_data(m.before),
                                             m.bytes->numel, &layout, lt_tensor_data(source),
                                             lt_tensor_data(out), (int)lt_dtype_size(out->dtype),
                                             lt_cuda_stream(c)));
  }
  close_mask(&m);
  return ok;
}
