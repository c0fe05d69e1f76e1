/* libraries.h: the search for NVIDIA's shared libraries, which are loaded when first used. */
#ifndef LT_CUDA_LIBRARIES_H
#define LT_CUDA_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

/* The libraries that are searched for. */
typedef enum lt_CudaLibrary {
  LT_LIBRARY_CUBLAS,
  LT_LIBRARY_CUBLASLT,
  LT_LIBRARY_CUSOLVER,
  LT_LIBRARY_CUFFT,
  LT_LIBRARY_CUDNN,
  LT_LIBRARY_NVRTC,
  LT_LIBRARY_NCCL,
  LT_LIBRARIES
} lt_CudaLibrary;

/* Returns the library's usual name ("cuBLAS"). */
const char *lt_cuda_library_name(lt_CudaLibrary library);

/* Loads a library with dlopen and writes the path of its file. Returns its handle, which is the
 * caller's, or NULL where no library is found for which `accepts` returns true (NULL accepts all).
 * `first` is the major version to search for first, or 0. Searches in:
 *
 *   1. the loader's path, including LD_LIBRARY_PATH;
 *   2. the toolkit: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/local/cuda-<version>, /opt/cuda,
 *      CONDA_PREFIX;
 *   3. Python packages named nvidia-*, in VIRTUAL_ENV, CONDA_PREFIX, PYTHONPATH, the prefixes of
 *      the python3 in PATH, the user's and the system's.
 *
 * All of these are searched for one version before the next version.
 */
void *lt_cuda_library_open(lt_CudaLibrary library, int first, bool (*accepts)(void *handle),
                           char *path, size_t size);

/* Writes the toolkit's folder of headers (the one with cuda_fp16.h): of CUDA_HOME, CUDA_PATH or
 * /usr/local/cuda, or the one beside the library at `path` in a Python package; "" if there is
 * none. */
void lt_cuda_include_folder(const char *path, char *folder, size_t size);

#endif
