/* user_kernel.h: kernels that users write.
 *
 *   kernel.c         what a backend offers: kernel_new, kernel_launch, kernel_stop
 *   nvrtc.c          the compiler and the driver's calls, found when a kernel is first compiled
 *   kernel_headers.c what source texts may include
 *   kernel_cache.c   compiled code in files
 */
#ifndef LT_CUDA_USER_KERNEL_H
#define LT_CUDA_USER_KERNEL_H

#include "cuda.h"

/* Code for one kind of GPU. `symbol`: the kernel's name in it. Both are malloc'ed. */
typedef struct lt_CudaImage {
  char *symbol;
  void *bytes;
  size_t size;
} lt_CudaImage;
void lt_cuda_image_free(lt_CudaImage *image);

/* ---- nvrtc.c --------------------------------------------------------------------------------- */

/* Finds compiler and driver; false with what is missing. Every function here wants it first. */
bool lt_cuda_compiler_ready(void);
/* The compiler's version, for keys: code of another one is compiled again. */
int lt_cuda_compiler_version(void);
/* Compiles a kernel for a device. False with the reason, and with what the compiler said in *log
 * (malloc'ed) where it refused the text. */
bool lt_cuda_compile(int index, const lt_KernelSource *source, lt_CudaImage *out, char **log);
/* Puts code on the device that is selected, for the rest of the program; gives the kernel. */
cudaError_t lt_cuda_load(const lt_CudaImage *image, void **function);
/* Allows the kernel that much dynamic shared memory. */
cudaError_t lt_cuda_allow_shared(void *function, size_t bytes);
cudaError_t lt_cuda_launch_function(void *function, const lt_KernelLaunch *launch,
                                    cudaStream_t stream);
/* Ends the kernels that were launched on it by the function above: emulated devices only. */
void lt_cuda_stop_functions(int index);

/* ---- kernel_headers.c ------------------------------------------------------------------------ */

enum { LT_CUDA_HEADERS = 18 };
extern const char *const lt_cuda_header_names[LT_CUDA_HEADERS];
extern const char *const lt_cuda_header_texts[LT_CUDA_HEADERS];

/* ---- kernel_cache.c -------------------------------------------------------------------------- */

/* The code that was kept under this key; false where there is none, or where it is damaged. */
bool lt_cuda_cache_find(const char *key, size_t key_size, lt_CudaImage *out);
/* Keeps code. Where that is not possible, nothing is kept: it is compiled anew the next time. */
void lt_cuda_cache_keep(const char *key, size_t key_size, const lt_CudaImage *image);

#endif
