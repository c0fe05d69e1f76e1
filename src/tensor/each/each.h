/* each.h: the language of bodies: code that computes one element of a result from the inputs of a
 * call, written once and compiled by C for the CPU, by CUDA's compiler and by Metal's.
 *
 * A row LT_EACH(name, ...) of ops.def has
 *   a struct        lt_each_<name>_args, in args.h: the numbers that the body needs
 *   a body          LT_EACH_BODY(name) { ... }, in a header that bodies.h includes
 *   the host's part int64_t lt_each_<name>(const lt_Call *c, lt_each_<name>_args *p): fills in *p;
 *                   returns the work of an element in units of an addition
 * Every device runs the body for each element of the first result, in parallel. On the CPU, and on
 * an accelerator in the same way, a kernel lt_<device>_each_<name> of the device runs instead, if
 * there is one.
 *
 * In a body:
 *   T                 the type that it computes in: float, double (not on Metal) or int64_t, by the
 *                     dtype of the first input
 *   i                 the number of the element, an int64_t
 *   p                 the struct, read-only
 *   GET(k, j)         element j of input k, a T; inputs are contiguous and count from 0
 *   GET_INDEX(k, j)   the same of an Index, from 0
 *   PUT(k, j, v)      stores a T as element j of result k; a body stores its own elements only
 *   PUT_INDEX(k, j, v) the same for an Index; v counts from 0
 *   IS_NAN(v)         of a T
 *   FLOOR(v)          the largest integer up to v, a T
 * A function of bodies is LT_EACH_FUNCTION; where T occurs in it, it is
 *   LT_EACH_OF_T T LT_EACH_NAME(weight)(LT_EACH_ARGS(lt_Resample) p, int64_t k)
 * and is called by LT_EACH_CALL(weight)(p, k). A pointer to a local variable is
 * LT_EACH_LOCAL(type).
 *
 * Bodies use no double, no arrays of variable length, no recursion, and <math.h> by mathx.h's M(f).
 * Sums have a fixed order: a gradient is computed by the element that gets it, which adds up the
 * gradients of the results that depend on it.
 */
#ifndef LT_EACH_H
#define LT_EACH_H

#include "dtypes.h"

#define LT_EACH_INPUTS  4 /* tensors of a call that a body reads */
#define LT_EACH_OUTPUTS 2 /* and writes */

/* Other languages define these before they include this header. */
#ifndef LT_EACH_FUNCTION
#define LT_EACH_FUNCTION    static inline
#define LT_EACH_ARGS(type)  const type *
#define LT_EACH_LOCAL(type) type *
#endif

#endif
