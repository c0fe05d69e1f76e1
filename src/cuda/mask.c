/* mask.c: masked_select, nonzero and masked_scatter. */
#include "mask.h"
#include "accel/mask.h"
#include "scan.h"

static lt_CudaMask packed(const lt_Mask *m) {
  return (lt_CudaMask){lt_tensor_data(m->words), lt_tensor_data(m->before), m->n};
}

/* Computes the running sum of the words' counts, and reads the total. */
static bool sum_counts(lt_Call *c, lt_Mask *m, const lt_Tensor *counts) {
  int64_t n = counts->numel, *sums = lt_tensor_data(m->before);
  cudaStream_t stream = lt_cuda_stream(c);
  size_t size = 0;
  if (!lt_cuda_launch_ok(lt_cuda_scan_exclusive_i64(NULL, &size, NULL, LT_uint8, n, NULL, stream)))
    return false;
  lt_Tensor *scratch = lt_mask_scratch(c, LT_uint8, (int64_t)size);
  bool ok = scratch &&
            lt_cuda_launch_ok(lt_cuda_scan_exclusive_i64(
                lt_tensor_data(scratch), &size, lt_tensor_data(counts), LT_uint8, n, sums, stream));
  lt_release(scratch);
  return ok && lt_fetch_count(c, &m->count, sums + n);
}

/* Packs a mask. `before` is the number of true elements before each word, with their total at the
 * end. */
static bool pack(lt_Call *c, lt_Mask *m, const lt_Tensor *bytes) {
  int64_t words = (m->n - 1) / 32 + 1;
  m->words = lt_mask_scratch(c, LT_int32, words);
  m->before = lt_mask_scratch(c, LT_int64, words + 1);
  lt_Tensor *counts = lt_mask_scratch(c, LT_uint8, words);
  bool ok = m->words && m->before && counts &&
            lt_cuda_launch_ok(
                lt_cuda_launch_pack_mask(lt_tensor_data(bytes), m->n, lt_tensor_data(m->words),
                                         lt_tensor_data(counts), lt_cuda_stream(c))) &&
            sum_counts(c, m, counts);
  lt_release(counts);
  return ok;
}

static bool move(lt_Call *c, const lt_Mask *m, lt_MaskMove what, const lt_IndexLayout *layout,
                 const lt_Tensor *from, lt_Tensor *to) {
  lt_CudaMask words = packed(m);
  cudaStream_t stream = lt_cuda_stream(c);
  int size = (int)lt_dtype_size(to->dtype);
  void *out = lt_tensor_data(to);
  if (what == LT_MASK_INDICES)
    return lt_cuda_launch_ok(lt_cuda_launch_true_indices(&words, layout, out, stream));
  return lt_cuda_launch_ok(
      what == LT_MASK_SELECT
          ? lt_cuda_launch_select(&words, layout, lt_tensor_data(from), out, size, stream)
          : lt_cuda_launch_fill_in(&words, layout, lt_tensor_data(from), out, size, stream));
}

static const lt_MaskDriver driver = {lt_cuda_begin, pack, move};

bool lt_cuda_masked_select(lt_Call *c) { return lt_mask_select(c, &driver); }
bool lt_cuda_nonzero(lt_Call *c) { return lt_mask_indices(c, &driver); }
bool lt_cuda_masked_scatter(lt_Call *c) { return lt_mask_fill(c, &driver); }
