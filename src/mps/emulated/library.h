/* library.h: the compiled kernels of the emulated device, as its runtime sees them. libraries.cpp
 * implements these functions, and lt_metal_library_builtin, lt_metal_library_new of metal.h. */
#ifndef LT_EMULATED_METAL_LIBRARY_H
#define LT_EMULATED_METAL_LIBRARY_H

#include "metal/record.h"
#include "mps/metal.h"

namespace emulated {

/* Adds a file of the kernels that are part of this shared object. Called by static constructors of
 * the translated files. */
void register_file(File *file);

/* Returns a kernel of a library by its name; NULL when the library has none of this name. Kernels
 * live as long as the program. */
const Kernel *find_kernel(const lt_MetalLibrary *library, const char *name);

/* Checks the values of function constants for a pipeline: returns false, with the reason in *error
 * (LT_METAL_REJECTED), where a constant of the library has a type other than int, bool or uint and
 * would be set. */
bool check_constants(const lt_MetalLibrary *library, int count, lt_MetalError *error);

/* Returns true where the library was compiled at run time: its kernels may not terminate. */
bool is_user_library(const lt_MetalLibrary *library);

} // namespace emulated

#endif
