/* check.h: finds what C++ has and the Metal Shading Language does not. */
#ifndef LT_EMULATED_METAL_CHECK_H
#define LT_EMULATED_METAL_CHECK_H

#include "tokens.h"

namespace emulated {

/* Records problems of a source that a compiler for Metal reports and one for C++ does not: words
 * and types that MSL lacks, pointers and references without an address space, variables in the
 * wrong place, lambdas, pointers to functions, recursion. */
void check_language(Tokens &tokens);

} // namespace emulated

#endif
