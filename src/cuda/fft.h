/* fft.h: Fourier transforms on the device by cuFFT, which is loaded when first used. */
#ifndef LT_CUDA_FFT_H
#define LT_CUDA_FFT_H

#include "cuda.h"

/* What is transformed: complex to complex, real to complex, complex to real. */
typedef enum lt_CudaFftKind { LT_FFT_C2C, LT_FFT_R2C, LT_FFT_C2R } lt_CudaFftKind;

enum { LT_CUDA_FFT_DIMS = 3 }; /* dims of one transform at most */

/* A batch of transforms; everything that a plan depends on. Distances are in numbers, real or
 * complex. Unused members and padding are 0, since plans are found by the bytes. */
typedef struct lt_CudaFft {
  lt_CudaFftKind kind;
  int wide;                       /* double */
  int64_t rank;                   /* number of dims */
  long long n[LT_CUDA_FFT_DIMS];  /* sizes of the transform */
  long long in[LT_CUDA_FFT_DIMS]; /* sizes in memory; the last one of half a spectrum is smaller */
  long long out[LT_CUDA_FFT_DIMS];
  long long stride;                    /* between numbers of the last dim */
  long long in_distance, out_distance; /* between transforms */
  long long batch;
} lt_CudaFft;

typedef enum lt_CudaFftOutcome {
  LT_FFT_DONE,
  LT_FFT_FAILED, /* with the error set */
  LT_FFT_REFUSED /* cuFFT cannot make this plan */
} lt_CudaFftOutcome;

/* Returns true when cuFFT is available: found. Thread safe. */
bool lt_cuda_fft_available(void);
/* Queues the transforms on the call's stream, with the positive exponent if `inverse` (C2R always
 * has it). in and out are aligned to complex numbers; C2R overwrites `in`. Thread safe. */
lt_CudaFftOutcome lt_cuda_fft_run(const lt_Call *c, const lt_CudaFft *fft, void *in, void *out,
                                  bool inverse);

#endif
