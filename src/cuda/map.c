/* map.c: maps (ops over lists of tensors, such as optimizer steps): one launch for all tensors that
 * are computed in one type. A table holds their addresses: a short one is an argument of the
 * kernel, a longer one is copied to the device. Tensors that are not contiguous are replaced by
 * contiguous copies. */
#include "map.h"
#include "accel/map.h"
#include "cuda.h"

_Static_assert(LT_MAP_TENSORS == LT_CUDA_MAP_TENSORS && LT_MAP_NUMBERS == LT_CUDA_MAP_NUMBERS,
               "map.h and core.h must agree");

/* Returns true when the item of the tensor `first` is computed in this type: double if `wide`. */
static bool belongs(const lt_Tensor *first, bool wide) {
  return first->numel > 0 && (first->dtype == LT_float64) == wide;
}

/* Adds the tensors of one item. The number of blocks cannot exceed a grid's limit, which is reached
 * at 2^40 elements. */
static void add_item(lt_CudaMap *m, lt_CudaMapItem *item, lt_Tensor *const *at, int lists) {
  uintptr_t bits = 0;
  *item = (lt_CudaMapItem){
      .n = at[0]->numel, .dtype = (uint8_t)at[0]->dtype, .first = (uint32_t)m->blocks};
  for (int k = 0; k < lists; k++) {
    item->data[k] = at[k] ? lt_tensor_data(at[k]) : NULL;
    bits |= (uintptr_t)item->data[k];
  }
  item->vector = bits % 16 == 0;
  m->blocks += (unsigned)((item->n - 1) / LT_CUDA_MAP_SPAN + 1);
}

/* Fills the launch for one compute type. *table is one reference, or NULL for a short table.
 * Returns false on failure. */
static bool prepare(const lt_Call *c, int lists, lt_Tensor *const *dense, bool wide, lt_CudaMap *m,
                    lt_Tensor **table) {
  lt_CudaMapItem *many = NULL, *item = m->item;
  int count = 0;
  for (int i = 0; i < lt_map_count(c); i++) count += belongs(dense[i * lists], wide);
  if (count > LT_CUDA_MAP_ITEMS && !(item = many = malloc((size_t)count * sizeof *many)))
    return lt_fail_memory();
  for (int i = 0; i < lt_map_count(c); i++)
    if (belongs(dense[i * lists], wide))
      add_item(m, &item[m->items++], dense + (ptrdiff_t)i * lists, lists);
  if (many) {
    *table = lt_cuda_upload(c, many, (size_t)count * sizeof *many);
    m->table = *table ? lt_tensor_data(*table) : NULL;
    free(many);
  }
  return m->items <= LT_CUDA_MAP_ITEMS || *table;
}

/* Launches nothing before memory for both launches is allocated. */
static bool run(const lt_Call *c, int lists, lt_Tensor *const *dense) {
  lt_CudaMap m[2] = {{.written = lt_map_written(c)}, {.written = lt_map_written(c)}};
  lt_Tensor *table[2] = {NULL, NULL};
  double numbers[LT_MAP_NUMBERS];
  lt_map_numbers(c, numbers);
  bool ok = prepare(c, lists, dense, false, &m[0], &table[0]) &&
            prepare(c, lists, dense, true, &m[1], &table[1]);
  for (int wide = 0; wide < 2; wide++) {
    if (ok && m[wide].items)
      ok = lt_cuda_launch_ok(
          lt_cuda_launch_map(lt_map_id(c->op), &m[wide], wide, numbers, lt_cuda_stream(c)));
    lt_release(table[wide]);
  }
  return ok;
}

bool lt_cuda_map(lt_Call *c) { return lt_cuda_begin(c) && lt_accel_map(c, run); }
