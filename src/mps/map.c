/* map.c: maps (ops over lists of tensors, such as optimizer steps): a launch for the tensors with
 * the same index in each list. */
#include "map.h"
#include "accel/map.h"
#include "mps.h"

_Static_assert(LT_MAP_TENSORS == LT_MPS_MAP_TENSORS && LT_MAP_NUMBERS == LT_MPS_MAP_NUMBERS,
               "map.h and kernel.h must agree");

#define GROUPS (1 << 22) /* the most threadgroups: they loop over the rest */

static const char *const kernels[] = {
#define LT_MAP(name, ...) "map_" #name,
#include "ops.def"
};

/* Launches the kernel for one item: a tensor of each list. */
static bool run_item(const lt_Call *c, int lists, lt_Tensor *const *item, const lt_MpsMap *args) {
  int64_t groups = lt_mps_groups(args->n, LT_MPS_MAP_THREADS * 4);
  lt_MpsLaunch l = {.file = "map",
                    .kernel = kernels[lt_map_id(c->op)],
                    .constants = {(int32_t)item[0]->dtype, 0, (int32_t)lt_map_written(c), 1},
                    .count = LT_MPS_MAP_TENSORS,
                    .arguments = args,
                    .size = sizeof *args,
                    .groups = {groups < GROUPS ? groups : GROUPS},
                    .threads = {LT_MPS_MAP_THREADS}};
  for (int k = 0; k < lists; k++) {
    if (!item[k]) continue;
    l.data[k] = lt_tensor_data(item[k]);
    l.constants[1] |= 1 << k;
    l.constants[3] &= (uintptr_t)l.data[k] % 16 == 0;
  }
  return lt_mps_launch(c, &l);
}

static bool run(const lt_Call *c, int lists, lt_Tensor *const *dense) {
  double numbers[LT_MAP_NUMBERS] = {0};
  lt_MpsMap args = {.n = 0};
  lt_map_numbers(c, numbers);
  for (int i = 0; i < LT_MAP_NUMBERS; i++) args.numbers[i] = (float)numbers[i];
  for (int i = 0; i < lt_map_count(c); i++) {
    lt_Tensor *const *item = dense + (ptrdiff_t)i * lists;
    args.n = item[0]->numel;
    if (args.n > 0 && !run_item(c, lists, item, &args)) return false;
  }
  return true;
}

bool lt_mps_map(lt_Call *c) { return lt_mps_begin(c) && lt_accel_map(c, run); }
