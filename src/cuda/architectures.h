/* architectures.h: the GPU architectures that this build has code for. */
#ifndef LT_CUDA_ARCHITECTURES_H
#define LT_CUDA_ARCHITECTURES_H

#include <stdbool.h>
#include <stddef.h>

/* How a build runs on a GPU, from worst to best. */
typedef enum lt_CudaCode {
  LT_CODE_NONE,   /* this build has no code for the GPU */
  LT_CODE_PTX,    /* PTX, which the driver compiles at its first use */
  LT_CODE_NATIVE, /* machine code */
} lt_CudaCode;

/* Returns which code of a build runs on a GPU. `archs` is the Makefile's CUDA_ARCHS: "80 90" means
 * machine code for each and PTX for the last one. `sm` is the GPU's architecture: 86 for sm_86. */
lt_CudaCode lt_cuda_code_for(const char *archs, int sm);
/* Writes "sm_80, sm_90, PTX of compute_90" for the archs "80 90". */
void lt_cuda_describe_code(const char *archs, char *text, size_t size);

/* Returns the CUDA_ARCHS of this build. For emulated devices, whose code is the host's, it is ""
 * unless tests set LUTRA_EMULATE_ARCHS. */
const char *lt_cuda_archs(void);

#endif
