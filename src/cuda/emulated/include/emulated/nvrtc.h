/* nvrtc.h: kernels from source texts, on a machine without a GPU. The functions of NVRTC and of the
 * driver that there are, by name, as dlsym would give them; see nvrtc.cpp and modules.cpp. C and
 * C++.
 */
#ifndef LT_EMULATED_NVRTC_H
#define LT_EMULATED_NVRTC_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: there is no such function. */
void *lt_emulated_symbol(const char *name);
/* `stopped` is asked now and then while a compiler runs; when it says true, the compiler is ended
 * and the text counts as refused. */
void lt_emulated_ask(bool (*stopped)(void));
/* Beside NVIDIA's, by the same way: lt_emulated_stop(int device) ends the kernels that were put on
 * a device by cuLaunchKernel. It is no error of the device's. */

#ifdef __cplusplus
}
#endif

#endif
