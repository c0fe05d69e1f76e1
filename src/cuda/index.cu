/* index.cu: kernels that read the elements selected by index tensors. They copy bytes, whatever the
 * dtype; rows in units of up to 16 bytes. */
#include "index_regions.cuh"

static __global__ void add_indices_kernel(lt_IndexRegion p, int64_t mult, bool first,
                                          const int *bad, int *any, int64_t *sum) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *any = *bad || (!first && *any);
  LT_EACH(i, p.count) {
    int64_t v = p.at[region_offsets(p, i).index] * mult;
    sum[i] = first ? v : sum[i] + v;
  }
}

cudaError_t lt_cuda_launch_add_indices(const lt_IndexRegion *p, int64_t mult, bool first,
                                       const int *bad, int *any, int64_t *sum,
                                       cudaStream_t stream) {
  return launch_each("add_positions", add_indices_kernel, p->count, stream, *p, mult, first, bad,
                     any, sum);
}

template <class U>
static __global__ void __launch_bounds__(LT_INDEX_THREADS)
    take_kernel(lt_IndexRegion p, const U *from, U *to) {
  LT_ROUND(p.count) {
    int64_t self[LT_STEPS], selected[LT_STEPS];
    U v[LT_STEPS];
    LT_STEP(k, i, p.count) {
      RegionOffsets at = region_offsets(p, i);
      self[k] = at.self;
      selected[k] = p.at[at.index];
    }
    LT_STEP(k, i, p.count) v[k] = from[self[k] + selected[k] * p.step];
    LT_STEP(k, i, p.count) to[i] = v[k];
  }
}

template <class U>
static cudaError_t take(const lt_IndexRegion *p, const void *from, void *to, cudaStream_t stream) {
  return launch_each("index_take", take_kernel<U>, p->count, stream, *p, (const U *)from, (U *)to);
}

cudaError_t lt_cuda_launch_take(const lt_IndexRegion *p, const void *from, void *to, int unit,
                                cudaStream_t stream) {
  switch (unit) {
  case 1:
    return take<uint8_t>(p, from, to, stream);
  case 2:
    return take<uint16_t>(p, from, to, stream);
  case 4:
    return take<uint32_t>(p, from, to, stream);
  case 8:
    return take<uint2>(p, from, to, stream);
  default:
    return take<uint4>(p, from, to, stream);
  }
}
