/* dynamic_shared.h: dynamic shared memory as CUDA declares it, in words that a C++ compiler
 * takes. */
#ifndef LT_EMULATED_DYNAMIC_SHARED_H
#define LT_EMULATED_DYNAMIC_SHARED_H

#include <string>

namespace emulated {

/* The text with each `extern __shared__ T name[];` exchanged for a pointer (in a function) or an
 * object that becomes one; the lines stay where they are. */
std::string exchange_dynamic_shared(const std::string &text);

} // namespace emulated

#endif
