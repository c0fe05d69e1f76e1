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
/* Compute the reflection I - tau v v^T that maps x {n} to (beta, 0, ...), in place: beta, and v
 * behind its first element, 1. Return tau. */
float lt_reflection_f32(float *x, int64_t n);
double lt_reflection_f64(double *x, int64_t n);
/* Multiplies a {m, n} by the product of k <= m reflections, from the left: they are columns of v
 * {m, k}, as lt_reflections_factor leaves them. The room is that of a matrix {m, n} with n
 * columns. */
void lt_reflections_apply(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, void *v, int64_t ldv,
                          const void *tau, void *a, int64_t ld, void *room);

#endif
