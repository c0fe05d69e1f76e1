/* reflections.h: QR factorizations of float32 and float64 matrices by blocks of Householder
 * reflections, with Lutra's own products. Matrices are column-major. */
#ifndef LT_CPU_REFLECTIONS_H
#define LT_CPU_REFLECTIONS_H

#include "kernel.h"

/* Returns the elements of scratch memory for a matrix {m, n} and `columns` columns of Q. */
int64_t lt_reflections_room(int64_t m, int64_t n, int64_t columns);
/* Computes LAPACK's geqrf in place: R, the reflections below its diagonal, and tau. `room` keeps
 * what lt_reflections_expand needs. */
void lt_reflections_factor(lt_Dtype dtype, int64_t m, int64_t n, void *a, int64_t ld, void *tau,
                           void *room);
/* Replaces the reflections of a matrix {m, n}, which was factored with the same room, by the first
 * `columns` columns of Q. */
void lt_reflections_expand(lt_Dtype dtype, int64_t m, int64_t n, int64_t columns, void *a,
                           int64_t ld, void *room);

#endif
