/* map.c: the tensors of maps as contiguous memory. */
#include "map.h"

/* Makes the tensors of all lists contiguous: tensor i of list k is dense[i * lists + k], NULL where
 * the list is not given. Returns false on failure: nothing has been written. The caller calls
 * close_tensors in both cases. */
static bool open_tensors(const lt_Call *c, int lists, lt_Tensor **dense) {
  for (int i = 0; i < lt_map_count(c); i++)
    for (int k = 0; k < lists; k++) {
      lt_Tensor *t = lt_map_tensor(c, k, i);
      if (t && !(dense[i * lists + k] = lt_as_contiguous(t, t->dtype))) return false;
    }
  return true;
}

/* Copies results back to tensors that are not contiguous, if `ok`, and releases all tensors. */
static bool close_tensors(const lt_Call *c, int lists, lt_Tensor **dense, bool ok) {
  for (int i = 0; i < lt_map_count(c); i++)
    for (int k = 0; k < lists; k++) {
      lt_Tensor *t = lt_map_tensor(c, k, i), *d = dense[i * lists + k];
      if (ok && d != t && lt_map_written(c) >> k & 1) ok = lt_copy_into(t, d, false);
      lt_release(d);
    }
  return ok;
}

bool lt_accel_map(const lt_Call *c, lt_MapRunner run) {
  int lists = lt_map_info(lt_map_id(c->op))->tensors;
  lt_Tensor **dense = calloc((size_t)lists * (size_t)lt_map_count(c) + 1, sizeof *dense);
  if (!dense) return lt_fail_memory();
  bool ok = open_tensors(c, lists, dense) && run(c, lists, dense);
  ok = close_tensors(c, lists, dense, ok);
  free(dense);
  return ok;
}
