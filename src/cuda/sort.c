/* sort.c: sort and topk. A short row is sorted by one block. For a small k, segments of a long row
 * are sorted and their first k kept. Otherwise all rows are sorted together by radix sort: by the
 * elements' keys, and then, stably, by row. */
#include "cuda.h"
#include "accel/order.h"
#include "sort.h"

#define FEW 256 /* the largest k for which a long row is not sorted as a whole */

static lt_Tensor *bytes(const lt_Call *c, int64_t size) {
  return lt_empty(LT_uint8, c->device, 1, &size);
}

/* Computes the first k elements of each row. Each round sorts segments and keeps k candidates of
 * each for the next round. */
static bool select_first(const lt_Call *c, const lt_CudaOrder *o) {
  lt_Tensor *from = NULL;
  bool ok = true;
  for (int64_t count = o->n; ok && count > 0;) {
    int64_t segments = (count - 1) / LT_CUDA_SEGMENT + 1;
    lt_Tensor *to = NULL;
    if (segments > 1) to = bytes(c, o->rows * segments * o->k * LT_CUDA_CANDIDATE);
    ok = (to || segments == 1) && lt_cuda_launch_ok(lt_cuda_order_segments(
                                      o, from ? lt_tensor_data(from) : NULL, count,
                                      to ? lt_tensor_data(to) : NULL, lt_cuda_stream(c)));
    lt_release(from);
    from = to;
    count = segments > 1 ? segments * o->k : 0;
  }
  lt_release(from);
  return ok;
}

/* Returns the number of bits of n. */
static int bits_of(int64_t n) {
  int bits = 0;
  while (n > 0) {
    bits++;
    n >>= 1;
  }
  return bits;
}

/* The memory of a radix sort; each tensor but `scratch` has an entry for every element. */
typedef struct Radix {
  lt_Tensor *keys, *numbers, *keys_out, *numbers_out, *scratch;
  size_t scratch_size;
  bool wide;
} Radix;

static cudaError_t sort_pairs(const Radix *r, void *scratch, size_t *size, int64_t n, int bits,
                              cudaStream_t stream) {
  if (r->wide)
    return lt_cuda_sort_pairs_u64(scratch, size, lt_tensor_data(r->keys),
                                  lt_tensor_data(r->keys_out), lt_tensor_data(r->numbers),
                                  lt_tensor_data(r->numbers_out), n, bits, stream);
  return lt_cuda_sort_pairs_u32(scratch, size, lt_tensor_data(r->keys), lt_tensor_data(r->keys_out),
                                lt_tensor_data(r->numbers), lt_tensor_data(r->numbers_out), n, bits,
                                stream);
}

/* Allocates the memory. Returns false on failure; the caller calls close_radix in both cases. */
static bool open_radix(const lt_Call *c, Radix *r, int64_t n) {
  int64_t size = n * (r->wide ? 8 : 4);
  r->keys = bytes(c, size);
  r->numbers = r->keys ? bytes(c, size) : NULL;
  r->keys_out = r->numbers ? bytes(c, size) : NULL;
  r->numbers_out = r->keys_out ? bytes(c, size) : NULL;
  if (!r->numbers_out ||
      !lt_cuda_ok(sort_pairs(r, NULL, &r->scratch_size, n, r->wide ? 64 : 32, lt_cuda_stream(c)),
                  "prepare a sort"))
    return false;
  r->scratch = bytes(c, (int64_t)r->scratch_size);
  return r->scratch != NULL;
}

static void close_radix(Radix *r) {
  lt_release(r->keys);
  lt_release(r->numbers);
  lt_release(r->keys_out);
  lt_release(r->numbers_out);
  lt_release(r->scratch);
}

static bool sort_by(const lt_Call *c, Radix *r, int64_t n, int bits) {
  size_t size = r->scratch_size;
  return lt_cuda_launch_ok(
      sort_pairs(r, lt_tensor_data(r->scratch), &size, n, bits, lt_cuda_stream(c)));
}

/* Sorts whole rows: in one sort where key and row fit into one number, else in two. */
static bool sort_whole(const lt_Call *c, const lt_CudaOrder *o) {
  int64_t n = o->rows * o->n;
  int key_bits = lt_cuda_key_bits(o->dtype), row_bits = bits_of(o->rows - 1);
  Radix r = {.wide = key_bits > 32 || n > (int64_t)UINT32_MAX};
  bool at_once = key_bits + row_bits <= (r.wide ? 64 : 32);
  cudaStream_t stream = lt_cuda_stream(c);
  bool ok = open_radix(c, &r, n) &&
            lt_cuda_launch_ok(lt_cuda_order_keys(o, r.wide, at_once && row_bits > 0,
                                                 lt_tensor_data(r.keys), lt_tensor_data(r.numbers),
                                                 stream)) &&
            sort_by(c, &r, n, at_once ? key_bits + row_bits : key_bits);
  if (ok && !at_once) {
    lt_Tensor *sorted = r.numbers_out;
    r.numbers_out = r.numbers;
    r.numbers = sorted;
    ok = lt_cuda_launch_ok(lt_cuda_order_rows(o, r.wide, lt_tensor_data(sorted),
                                              lt_tensor_data(r.keys), stream)) &&
         sort_by(c, &r, n, row_bits);
  }
  ok = ok &&
       lt_cuda_launch_ok(lt_cuda_order_gather(o, r.wide, lt_tensor_data(r.numbers_out), stream));
  close_radix(&r);
  return ok;
}

/* Writes the first k of each row of contiguous x to contiguous values and indices. */
static bool order_rows(const lt_Call *c, lt_Tensor *x, int64_t n, int64_t k, bool descending,
                       lt_Tensor *values, lt_Tensor *indices) {
  lt_CudaOrder o = {
      lt_tensor_data(x),      x->dtype, x->numel / n, n, k, descending, lt_tensor_data(values),
      lt_tensor_data(indices)};
  return n <= LT_CUDA_SEGMENT || k <= FEW ? select_first(c, &o) : sort_whole(c, &o);
}

bool lt_cuda_sort(lt_Call *c) {
  return lt_cuda_begin(c) && lt_accel_order(c, 1, -1, c->arg[2].b, order_rows);
}
bool lt_cuda_topk(lt_Call *c) {
  return lt_cuda_begin(c) && lt_accel_order(c, 2, c->arg[1].i, c->arg[3].b, order_rows);
}
