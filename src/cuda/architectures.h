/* architectures.h: which GPUs the code in this build runs on. */
#ifndef LT_CUDA_ARCHITECTURES_H
#define LT_CUDA_ARCHITECTURES_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lt_CudaCode {
  LT_CODE_NONE,   /* no code here runs on the GPU */
  LT_CODE_PTX,    /* the driver compiles it at its first use */
  LT_CODE_NATIVE, /* code for the GPU */
} lt_CudaCode;

/* `archs` is CUDA_ARCHS of the Makefile: "80 90", each one's code, and the last one's PTX. `sm`: of
 * the GPU, 86 for sm_86. */
lt_CudaCode lt_cuda_code_for(const char *archs, int sm);
/* "sm_80, sm_90, PTX of compute_90" */
void lt_cuda_describe_code(const char *archs, char *text, size_t size);

/* CUDA_ARCHS of this build; "" for emulated devices, whose code is the host's (unless
 * LUTRA_EMULATE_ARCHS says otherwise, for tests). */
const char *lt_cuda_archs(void);

#endif
