/* cubic.h: Keys' cubic (Keys 1981: Cubic convolution interpolation for digital image processing) at
 * distance x from an element: the weight that the element has. Used by the bodies of interpolation
 * and of grids, in the type of x. */
#ifndef LT_EACH_CUBIC_H
#define LT_EACH_CUBIC_H

/* For x from 0 to 1. */
#define LT_CUBIC_NEAR(x, a) ((((a) + 2) * (x) - ((a) + 3)) * (x) * (x) + 1)
/* For x from 1 to 2. */
#define LT_CUBIC_FAR(x, a) ((((a) * (x)-5 * (a)) * (x) + 8 * (a)) * (x)-4 * (a))

#endif
