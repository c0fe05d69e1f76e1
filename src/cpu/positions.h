/* positions.h: conversion between the linear index of an element, in row-major order, and its
 * coordinates. */
#ifndef LT_CPU_POSITIONS_H
#define LT_CPU_POSITIONS_H

#include "kernel.h"

/* Sets `at` to the coordinates of the element with this linear index. */
static inline void lt_position_at(int ndim, const int64_t *shape, int64_t position, int64_t *at) {
  for (int d = ndim - 1; d >= 0; d--) {
    at[d] = position % shape[d];
    position /= shape[d];
  }
}

/* Advances the coordinates by n elements. */
static inline void lt_position_advance(int ndim, const int64_t *shape, int64_t *at, int64_t n) {
  for (int d = ndim - 1; d >= 0 && n; d--) {
    at[d] += n;
    if (at[d] < shape[d]) return;
    n = at[d] / shape[d];
    at[d] %= shape[d];
  }
}

/* Returns the address of an operand's element. */
static inline char *lt_position_address(int ndim, const lt_Operand *o, const int64_t *at) {
  char *p = o->data;
  for (int d = 0; d < ndim; d++) p += at[d] * o->strides[d];
  return p;
}

#endif
