/* fft_library.h: the functions of NVIDIA's cuFFT that Lutra calls, declared here because the
 * library is loaded at run time and its header may be missing where Lutra is built. Versions 10 to
 * 12 have them. */
#ifndef LT_CUDA_FFT_LIBRARY_H
#define LT_CUDA_FFT_LIBRARY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* Values of the library's enums: results, and kinds of transforms. */
enum {
  LT_CUFFT_SUCCESS = 0,
  LT_CUFFT_INVALID_PLAN = 1,
  LT_CUFFT_ALLOC_FAILED = 2,
  LT_CUFFT_INVALID_VALUE = 4,
  LT_CUFFT_EXEC_FAILED = 6,
  LT_CUFFT_INVALID_SIZE = 8,
  LT_CUFFT_NOT_SUPPORTED = 16
};
enum {
  LT_CUFFT_C2C = 0x29, /* float */
  LT_CUFFT_R2C = 0x2a,
  LT_CUFFT_C2R = 0x2c,
  LT_CUFFT_Z2Z = 0x69, /* double */
  LT_CUFFT_D2Z = 0x6a,
  LT_CUFFT_Z2D = 0x6c
};
enum { LT_CUFFT_FORWARD = -1, LT_CUFFT_INVERSE = 1 };

/* Functions: name without "cufft", parameters. All return a result. Numbers are passed as void *,
 * whatever their type. */
#define LT_CUFFT_FUNCTIONS(F)                                                                      \
  F(Create, (int *plan))                                                                           \
  F(Destroy, (int plan))                                                                           \
  F(GetVersion, (int *version))                                                                    \
  F(SetAutoAllocation, (int plan, int automatic))                                                  \
  F(MakePlanMany64, (int plan, int rank, long long *n, long long *in_embed, long long in_stride,   \
                     long long in_distance, long long *out_embed, long long out_stride,            \
                     long long out_distance, int type, long long batch, size_t *work_size))        \
  F(SetStream, (int plan, cudaStream_t stream))                                                    \
  F(SetWorkArea, (int plan, void *work))                                                           \
  F(ExecC2C, (int plan, void *in, void *out, int direction))                                       \
  F(ExecZ2Z, (int plan, void *in, void *out, int direction))                                       \
  F(ExecR2C, (int plan, void *in, void *out))                                                      \
  F(ExecD2Z, (int plan, void *in, void *out))                                                      \
  F(ExecC2R, (int plan, void *in, void *out))                                                      \
  F(ExecZ2D, (int plan, void *in, void *out))

#endif
