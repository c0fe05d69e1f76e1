/* sort.metal.h: the items that sort.metal sorts, for the kernels that make and read them. */
#ifndef LT_MPS_SORT_METAL_H
#define LT_MPS_SORT_METAL_H

#include "loops.metal.h"

/* A key and an index, which orders equal keys. set_item makes one, set_none one that follows all
 * others. A narrow item has a key of up to 32 bits in its upper half, and its index below. */
typedef uint64_t NarrowItem;
struct WideItem {
  uint64_t key, index;
};

static inline void set_item(thread NarrowItem &item, uint64_t key, int64_t index) {
  item = key << 32 | (uint64_t)index;
}
static inline void set_item(thread WideItem &item, uint64_t key, int64_t index) {
  item.key = key;
  item.index = (uint64_t)index;
}
static inline void set_none(thread NarrowItem &item) { item = ~(uint64_t)0; }
static inline void set_none(thread WideItem &item) { item.key = item.index = ~(uint64_t)0; }
static inline int64_t index_of(NarrowItem item) { return (int64_t)(item & 0xffffffff); }
static inline int64_t index_of(WideItem item) { return (int64_t)item.index; }
static inline bool is_after(NarrowItem a, NarrowItem b) { return a > b; }
static inline bool is_after(WideItem a, WideItem b) {
  return a.key > b.key || (a.key == b.key && a.index > b.index);
}

#endif
