/* libraries.h: NVIDIA's shared libraries, which are looked for when they are needed. */
#ifndef LT_CUDA_LIBRARIES_H
#define LT_CUDA_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lt_CudaLibrary {
  LT_LIBRARY_CUBLAS,
  LT_LIBRARY_CUBLASLT,
  LT_LIBRARY_CUDNN,
  LT_LIBRARY_NVRTC,
  LT_LIBRARY_NCCL,
  LT_LIBRARIES
} lt_CudaLibrary;

/* Its usual name ("cuBLAS"). */
const char *lt_cuda_library_name(lt_CudaLibrary library);

/* Loads a library and writes its file's path; NULL where there is none, or none for which `takes`
 * (unless it is NULL) returns true. `first`: the major version to look for first, or 0. Looks in:
 *
 *   1. the loader's path, LD_LIBRARY_PATH with it;
 *   2. the toolkit: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/local/cuda-<version>;
 *   3. packages of Python named nvidia-*, in VIRTUAL_ENV, CONDA_PREFIX, PYTHONPATH, the folders of
 *      the python3 in PATH, the user's and the system's.
 *
 * One version is looked for everywhere before the next. */
void *lt_cuda_library_open(lt_CudaLibrary library, int first, bool (*takes)(void *handle),
                           char *path, size_t size);

/* The toolkit's folder of headers, where there is one: in the environment, at /usr/local/cuda, or
 * beside the library at `path` in a package of Python; "" elsewhere. */
void lt_cuda_include_folder(const char *path, char *folder, size_t size);

#endif
