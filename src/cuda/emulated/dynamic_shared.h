/* dynamic_shared.h: translates CUDA's declarations of dynamic shared memory to C++. */
#ifndef LT_EMULATED_DYNAMIC_SHARED_H
#define LT_EMULATED_DYNAMIC_SHARED_H

#include <string>

namespace emulated {

/* Returns the source with each `extern __shared__ T name[];` replaced by a pointer (in a function)
 * or by an object that converts to one. Lines keep their numbers. */
std::string replace_dynamic_shared(const std::string &text);

} // namespace emulated

#endif
