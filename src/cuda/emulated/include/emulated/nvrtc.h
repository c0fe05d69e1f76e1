/* nvrtc.h: kernels from source on a machine without a GPU: the functions of NVRTC and of the
 * driver that are emulated, by name, as dlsym would return them; see nvrtc.cpp and modules.cpp.
 * C and C++. */
#ifndef LT_EMULATED_NVRTC_H
#define LT_EMULATED_NVRTC_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the address of a function; NULL for a name that is not emulated. Besides NVIDIA's
 * functions there is lt_emulated_stop(int device), which stops the kernels launched on a device by
 * cuLaunchKernel; the device reports no error for them. */
void *lt_emulated_symbol(const char *name);
/* Sets a function that is called while a compiler runs. When it returns true, the compiler is
 * killed and the compilation fails. */
void lt_emulated_set_stop_callback(bool (*stopped)(void));

#ifdef __cplusplus
}
#endif

#endif
