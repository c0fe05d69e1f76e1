/* user_kernel.h: kernels that users write, compiled at run time.
 *
 *   kernel.c         the backend's functions: create, launch and stop a kernel
 *   nvrtc.c          the compiler and the functions of the driver, loaded when first needed
 *   kernel_headers.c the headers that sources may include
 *   kernel_cache.c   the cache of compiled code in files
 */
#ifndef LT_CUDA_USER_KERNEL_H
#define LT_CUDA_USER_KERNEL_H

#include "cuda.h"

/* Compiled code for one kind of GPU, and `symbol`, the kernel's name in it. Both are malloc'ed. */
typedef struct lt_CudaImage {
  char *symbol;
  void *bytes;
  size_t size;
} lt_CudaImage;
/* Frees what the image holds and clears it. A cleared image is allowed. */
void lt_cuda_image_free(lt_CudaImage *image);

/* ---- nvrtc.c --------------------------------------------------------------------------------- */

/* Loads the compiler and the driver's library, once. Returns false with a message that says what is
 * missing. Must succeed before any other function of nvrtc.c is called. Thread safe. */
bool lt_cuda_compiler_ready(void);
/* Returns the compiler's version, a part of the cache's keys: code of another version is compiled
 * again. */
int lt_cuda_compiler_version(void);
/* Compiles a kernel for a device into *out, which the caller frees. Returns false with a message;
 * when the compiler rejects the source, *log is its output (malloc'ed). */
bool lt_cuda_compile(int index, const lt_KernelSource *source, lt_CudaImage *out, char **log);
/* Loads code on the selected device, for the rest of the program; *function is the kernel. */
cudaError_t lt_cuda_load(const lt_CudaImage *image, void **function);
/* Allows the kernel this many bytes of dynamic shared memory. */
cudaError_t lt_cuda_allow_shared(void *function, size_t bytes);
/* Queues the kernel on the stream. The launch must have been checked against the limits. */
cudaError_t lt_cuda_launch_function(void *function, const lt_KernelLaunch *launch,
                                    cudaStream_t stream);
/* Stops the kernels that lt_cuda_launch_function started on the device: emulated devices only. */
void lt_cuda_stop_functions(int index);

/* ---- kernel_headers.c ------------------------------------------------------------------------ */

/* The headers' file names, as in #include, and their contents. */
enum { LT_CUDA_HEADERS = 18 };
extern const char *const lt_cuda_header_names[LT_CUDA_HEADERS];
extern const char *const lt_cuda_header_texts[LT_CUDA_HEADERS];

/* ---- kernel_cache.c -------------------------------------------------------------------------- */

/* Finds the code stored under this key. Returns false where there is none or where the file is
 * damaged; else the caller frees *out. */
bool lt_cuda_cache_find(const char *key, size_t key_size, lt_CudaImage *out);
/* Stores code under the key. On failure nothing is stored: it is compiled again the next time. */
void lt_cuda_cache_keep(const char *key, size_t key_size, const lt_CudaImage *image);

#endif
