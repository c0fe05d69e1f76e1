/* map.c: maps on the device: lists of tensors in chunks that fit a kernel's arguments. Tensors that
 * are not contiguous go through contiguous copies. */
#include "cuda.h"
#include "map.h"

_Static_assert(LT_MAP_TENSORS == LT_CUDA_MAP_TENSORS && LT_MAP_NUMBERS == LT_CUDA_MAP_NUMBERS,
               "map.h and core.h must agree");

/* The tensors of all lists as contiguous memory, tensor i of list k at dense[i * lists + k]; NULL
 * where the list is not given. False when memory runs out: nothing has been written. */
static bool open_tensors(const lt_Call *c, int lists, lt_Tensor **dense) {
  for (int i = 0; i < lt_map_count(c); i++)
    for (int k = 0; k < lists; k++) {
      lt_Tensor *t = lt_map_tensor(c, k, i);
      if (t && !(dense[i * lists + k] = lt_as_contiguous(t, t->dtype))) return false;
    }
  return true;
}

/* Copies what was written back where `ok`, and lets go of all. */
static bool close_tensors(const lt_Call *c, int lists, lt_Tensor **dense, bool ok) {
  for (int i = 0; i < lt_map_count(c); i++)
    for (int k = 0; k < lists; k++) {
      lt_Tensor *t = lt_map_tensor(c, k, i), *d = dense[i * lists + k];
      if (ok && d != t && lt_map_written(c) >> k & 1) ok = lt_copy_into(t, d, false);
      lt_release(d);
    }
  return ok;
}

/* The items of one compute type, a launch for each chunk. */
static bool run(const lt_Call *c, int lists, lt_Tensor *const *dense, bool wide) {
  double numbers[LT_MAP_NUMBERS];
  lt_CudaMap m = {.written = lt_map_written(c)};
  int64_t most = (int64_t)1 << 38, left = most; /* elements: the blocks of a grid suffice */
  lt_map_numbers(c, numbers);
  for (int i = 0; i <= lt_map_count(c); i++) {
    lt_Tensor *const *at = dense + (ptrdiff_t)i * lists;
    bool end = i == lt_map_count(c);
    if (m.items && (end || m.items == LT_CUDA_MAP_ITEMS || at[0]->numel > left)) {
      if (!lt_cuda_ran(lt_cuda_launch_map(lt_map_id(c->op), &m, wide, numbers, lt_cuda_stream(c))))
        return false;
      m.items = 0;
      left = most;
    }
    if (end || at[0]->numel == 0 || (at[0]->dtype == LT_float64) != wide) continue;
    lt_CudaMapItem *item = &m.item[m.items++];
    *item = (lt_CudaMapItem){.n = at[0]->numel, .dtype = (uint8_t)at[0]->dtype};
    for (int k = 0; k < lists; k++) item->data[k] = at[k] ? lt_tensor_data(at[k]) : NULL;
    left -= item->n;
  }
  return true;
}

bool lt_cuda_map(lt_Call *c) {
  int lists = lt_map_info(lt_map_id(c->op))->tensors;
  if (!lt_cuda_begin(c)) return false;
  lt_Tensor **dense = calloc((size_t)lists * (size_t)lt_map_count(c) + 1, sizeof *dense);
  if (!dense) return lt_fail_memory();
  bool ok =
      open_tensors(c, lists, dense) && run(c, lists, dense, false) && run(c, lists, dense, true);
  ok = close_tensors(c, lists, dense, ok);
  free(dense);
  return ok;
}
