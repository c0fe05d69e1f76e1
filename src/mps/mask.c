/* mask.c: masked_select, nonzero and masked_scatter. */
#include "mask.h"
#include "accel/mask.h"
#include "loops.h"

static lt_MpsMask arguments_of(const lt_Mask *m) {
  int64_t words = lt_mps_groups(m->n, LT_MASK_WORD);
  return (lt_MpsMask){.n = m->n, .words = words, .parts = lt_mps_groups(words, LT_MASK_PART)};
}

/* Packs a mask of at least one element, and reads the number of its true elements. */
static bool pack(lt_Call *c, lt_Mask *m, const lt_Tensor *bytes) {
  lt_MpsMask args = arguments_of(m);
  m->words = lt_mask_scratch(c, LT_int32, args.words);
  m->before = lt_mask_scratch(c, LT_int32, args.words);
  m->parts = lt_mask_scratch(c, LT_int64, args.parts + 1);
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

static bool move(lt_Call *c, const lt_Mask *m, lt_MaskMove what, const lt_IndexLayout *layout,
                 const lt_Tensor *from, lt_Tensor *to) {
  static const char *const kernels[] = {[LT_MASK_SELECT] = "masked_select",
                                        [LT_MASK_INDICES] = "true_indices",
                                        [LT_MASK_FILL] = "masked_scatter"};
  lt_MpsMask args = arguments_of(m);
  args.layout = *layout;
  lt_MpsLaunch l = {
      .file = "mask",
      .kernel = kernels[what],
      .constants = {(int)lt_dtype_size(to->dtype)},
      .data = {lt_tensor_data(m->words), lt_tensor_data(m->before), lt_tensor_data(m->parts)},
      .count = 3,
      .arguments = &args,
      .size = sizeof args};
  if (from) l.data[l.count++] = lt_tensor_data(from);
  l.data[l.count++] = lt_tensor_data(to);
  return lt_mps_launch_each(c, l, m->n);
}

static const lt_MaskDriver driver = {lt_mps_begin, pack, move};

bool lt_mps_masked_select(lt_Call *c) { return lt_mask_select(c, &driver); }
bool lt_mps_nonzero(lt_Call *c) { return lt_mask_indices(c, &driver); }
bool lt_mps_masked_scatter(lt_Call *c) { return lt_mask_fill(c, &driver); }
