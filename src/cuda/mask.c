/* mask.c: masked_select, nonzero and masked_scatter. All three block the host until the device has
 * counted the mask's true elements. */
#include "mask.h"
#include "scan.h"

typedef struct Mask {
  lt_Tensor *words, *before; /* the packed mask; and the number of true elements before each word,
                              * with their total at the end */
  int64_t n, count;          /* elements, and true elements */
} Mask;

static void close_mask(Mask *m) {
  lt_release(m->words);
  lt_release(m->before);
}

static lt_CudaMask packed(const Mask *m) {
  return (lt_CudaMask){lt_tensor_data(m->words), lt_tensor_data(m->before), m->n};
}

static lt_Tensor *new_scratch(lt_Call *c, lt_Dtype dtype, int64_t n) {
  return lt_empty(dtype, c->device, 1, &n);
}

/* Computes the running sum of the words' counts, and reads the total. */
static bool sum_counts(lt_Call *c, Mask *m, const lt_Tensor *counts) {
  int64_t n = counts->numel, *sums = lt_tensor_data(m->before);
  cudaStream_t stream = lt_cuda_stream(c);
  size_t size = 0;
  if (!lt_cuda_launch_ok(lt_cuda_scan_exclusive_i64(NULL, &size, NULL, LT_uint8, n, NULL, stream)))
    return false;
  lt_Tensor *scratch = new_scratch(c, LT_uint8, (int64_t)size);
  bool ok = scratch &&
            lt_cuda_launch_ok(lt_cuda_scan_exclusive_i64(
                lt_tensor_data(scratch), &size, lt_tensor_data(counts), LT_uint8, n, sums, stream));
  lt_release(scratch);
  return ok && lt_fetch_count(c, &m->count, sums + n);
}

/* Packs a mask of at least one element. */
static bool pack(lt_Call *c, Mask *m, const lt_Tensor *bytes) {
  int64_t words = (m->n - 1) / 32 + 1;
  m->words = new_scratch(c, LT_int32, words);
  m->before = new_scratch(c, LT_int64, words + 1);
  lt_Tensor *counts = new_scratch(c, LT_uint8, words);
  bool ok = m->words && m->before && counts &&
            lt_cuda_launch_ok(
                lt_cuda_launch_pack_mask(lt_tensor_data(bytes), m->n, lt_tensor_data(m->words),
                                         lt_tensor_data(counts), lt_cuda_stream(c))) &&
            sum_counts(c, m, counts);
  lt_release(counts);
  return ok;
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
    lt_IndexLayout layout = lt_index_layout(self, ndim, shape);
    lt_CudaMask words = packed(&m);
    ok = lt_cuda_launch_ok(
        lt_cuda_launch_select(&words, &layout, lt_tensor_data(self), lt_tensor_data(out),
                              (int)lt_dtype_size(self->dtype), lt_cuda_stream(c)));
  }
  return finish(c, &m, out, ok);
}

bool lt_cuda_nonzero(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  Mask m;
  if (!lt_cuda_begin(c) || !open_mask(c, &m, self, self->ndim, self->shape)) return false;
  int64_t shape[2] = {m.count, self->ndim};
  lt_Tensor *out = lt_empty(LT_int64, c->device, 2, shape);
  bool ok = out != NULL;
  if (ok && out->numel > 0) {
    lt_IndexLayout layout = {.ndim = self->ndim};
    memcpy(layout.shape, self->shape, sizeof *self->shape * (size_t)self->ndim);
    lt_CudaMask words = packed(&m);
    ok = lt_cuda_launch_ok(
        lt_cuda_launch_true_indices(&words, &layout, lt_tensor_data(out), lt_cuda_stream(c)));
  }
  return finish(c, &m, out, ok);
}

bool lt_cuda_masked_scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 2);
  Mask m;
  if (!lt_cuda_begin(c) || !open_mask(c, &m, lt_in(c, 1), out->ndim, out->shape)) return false;
  bool ok = true;
  if (m.count > source->numel) {
    ok = lt_fail("expected at least %lld elements for argument 'source', one for each true element "
                 "of the mask, got %lld",
                 (long long)m.count, (long long)source->numel);
  } else if (m.count > 0) {
    lt_IndexLayout layout = lt_index_layout(source, source->ndim, source->shape);
    lt_CudaMask words = packed(&m);
    ok = lt_cuda_launch_ok(
        lt_cuda_launch_fill_in(&words, &layout, lt_tensor_data(source), lt_tensor_data(out),
                               (int)lt_dtype_size(out->dtype), lt_cuda_stream(c)));
  }
  close_mask(&m);
  return ok;
}
