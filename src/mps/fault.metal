/* fault.metal: kernels that check index tensors and divisors, and that store what was reported. */
#include "device.metal.h"
#include "fault.h"

#define DTYPE   K0 /* of the values */
#define THREADS 256

/* Returns the number of the thread's element. The grid has two dimensions where one is too small. */
static int64_t element_of(uint3 group, uint3 groups, uint local) {
  return ((int64_t)group.y * groups.x + group.x) * THREADS + local;
}

/* Writes out[i] = the index, from 0, that element i of an index tensor means: element values 1..n,
 * or -n..-1 if negative ones are allowed. A value out of range is reported and becomes 0. */
kernel void check_indices(device const char *index [[buffer(0)]], device char *out [[buffer(1)]],
                          device char *slot [[buffer(2)]],
                          constant lt_MpsFaultArgs &args [[buffer(3)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint3 groups [[threadgroups_per_grid]],
                          uint local [[thread_index_in_threadgroup]]) {
  int64_t i = element_of(group, groups, local);
  if (i >= args.count) return;
  int64_t offset[1];
  offsets_at<1>(args.geometry, i, offset);
  int64_t value = load<int64_t>(index, DTYPE, offset[0]), n = args.n;
  bool before = value >= 1 && value <= n, behind = args.flag != 0 && value < 0 && value >= -n;
  ((device int64_t *)out)[i] = before ? value - LT_INDEX_BASE : behind ? value + n : 0;
  if (!before && !behind) report_fault(slot, i);
}

/* Reports the elements that are 0, or whose low 32 bits are 0. */
kernel void check_divisor(device const char *divisor [[buffer(0)]],
                          device char *slot [[buffer(1)]],
                          constant lt_MpsFaultArgs &args [[buffer(2)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint3 groups [[threadgroups_per_grid]],
                          uint local [[thread_index_in_threadgroup]]) {
  int64_t i = element_of(group, groups, local);
  if (i >= args.count) return;
  int64_t offset[1];
  offsets_at<1>(args.geometry, i, offset);
  int64_t value = load<int64_t>(divisor, DTYPE, offset[0]);
  if ((args.flag != 0 ? (int64_t)(int32_t)value : value) == 0) report_fault(slot, i);
}

/* Ends a check: stores the bad value, and tells the host. One thread. */
kernel void close_check(device char *slot [[buffer(0)]], device const char *values [[buffer(1)]],
                        device char *raised [[buffer(2)]],
                        constant lt_MpsFaultArgs &args [[buffer(3)]]) {
  device lt_MpsFaultSlot *report = (device lt_MpsFaultSlot *)slot;
  uint position = report->position;
  if (position == LT_MPS_NO_FAULT) return;
  int64_t offset[1];
  offsets_at<1>(args.geometry, (int64_t)position, offset);
  if (DTYPE == LT_float32 || DTYPE == LT_float16 || DTYPE == LT_bfloat16)
    report->value = (int64_t)as_type<uint>(load_float(values, DTYPE, offset[0]));
  else
    report->value = load<int64_t>(values, DTYPE, offset[0]);
  report->ticket = args.ticket;
  *(device int *)raised = 1;
}
