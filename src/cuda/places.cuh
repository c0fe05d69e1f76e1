/* places.cuh: where an element of a region lies; see places.h. */
#ifndef LT_CUDA_PLACES_CUH
#define LT_CUDA_PLACES_CUH

#include "device.cuh"
#include "places.h"

/* The offsets of element i: in self (without the position's part), in the index, in the other. */
struct Place {
  int64_t self, index, other;
};

/* i / n and the rest; i >= 0, n > 0. */
LT_DEVICE_INLINE int64_t divide(int64_t i, int64_t n, int64_t *rest) {
  if (((uint64_t)i | (uint64_t)n) >> 32) {
    int64_t q = i / n;
    *rest = i - q * n;
    return q;
  }
  unsigned q = (unsigned)i / (unsigned)n; /* 32-bit division is several times quicker */
  *rest = (int64_t)((unsigned)i - q * (unsigned)n);
  return (int64_t)q;
}

LT_DEVICE_INLINE Place place_of(const lt_CudaPlaces &p, int64_t i) {
  Place at = {0, 0, 0};
  for (int d = p.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, p.shape[d], &c);
    at.self += c * p.self[d];
    at.index += c * p.index[d];
    at.other += c * p.other[d];
  }
  return at;
}

/* The offset of element i of a tensor. */
LT_DEVICE_INLINE int64_t offset_of(const lt_CudaLayout &l, int64_t i) {
  int64_t offset = 0;
  for (int d = l.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, l.shape[d], &c);
    offset += c * l.strides[d];
  }
  return offset;
}

/* The element that a thread begins with, and how far it is to its next. */
LT_DEVICE_INLINE int64_t first_element() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
LT_DEVICE_INLINE int64_t all_threads() { return (int64_t)gridDim.x * blockDim.x; }

#define LT_EACH(i, n) for (int64_t i = first_element(); i < (n); i += all_threads())

#endif
