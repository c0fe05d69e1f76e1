/* cub.cpp: the sort that the templates of cub.cuh share. */
#include <stdlib.h>
#include <string.h>

/* Sorts n keys stably by their low `bits` bits; order[i] becomes the index of the i-th smallest.
 * *keys is overwritten. Returns false when out of memory. It is a radix sort by bytes; a byte that
 * is equal in all keys is skipped after one pass. */
extern "C" bool lt_emulated_sort(unsigned long long *keys, long long *order, long long n,
                                 int bits) {
  unsigned long long *other_keys = (unsigned long long *)malloc((size_t)n * sizeof *other_keys);
  long long *other_order = (long long *)malloc((size_t)n * sizeof *other_order);
  unsigned long long *k = keys;
  long long *o = order;
  bool ok = other_keys && other_order;
  for (long long i = 0; ok && i < n; i++) o[i] = i;
  for (int shift = 0; ok && shift < bits; shift += 8) {
    unsigned long long mask = bits - shift < 8 ? (1u << (bits - shift)) - 1 : 255;
    long long start[257] = {0};
    for (long long i = 0; i < n; i++) start[(k[i] >> shift & mask) + 1]++;
    if (start[(k[0] >> shift & mask) + 1] == n) continue;
    for (int i = 0; i < 256; i++) start[i + 1] += start[i];
    for (long long i = 0; i < n; i++) {
      long long to = start[k[i] >> shift & mask]++;
      other_keys[to] = k[i];
      other_order[to] = o[i];
    }
    unsigned long long *swap_keys = k;
    long long *swap_order = o;
    k = other_keys, other_keys = swap_keys;
    o = other_order, other_order = swap_order;
  }
  if (o != order) {
    memcpy(order, o, (size_t)n * sizeof *o);
    other_keys = k, other_order = o;
  }
  free(other_keys);
  free(other_order);
  return ok;
}
