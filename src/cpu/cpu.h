/* cpu.h: what the files of the CPU's device share with one another. */
#ifndef LT_CPU_CPU_H
#define LT_CPU_CPU_H

#include "kernel.h"

/* Runs an elementwise op; see lt_Loop. False with a message when it was interrupted. */
bool lt_cpu_elementwise(const lt_Loop *loop);
/* Runs an elementwise program; see program.h. */
struct lt_ProgramLoop;
bool lt_cpu_program(struct lt_ProgramLoop *loop);
/* Special cases of an elementwise op: elements of one dtype are moved as bytes; every element
 * becomes loop->a. */
bool lt_cpu_copy_same(const lt_Loop *loop);
bool lt_cpu_fill(const lt_Loop *loop);

/* The backend's check_divisor (divisor.c). */
bool lt_cpu_check_divisor(const lt_Call *c, const lt_Tensor *divisor);

/* What calculates matrix products, e.g. "OpenBLAS 0.3.21, SkylakeX" or why it is our own. Loads
 * the library. */
const char *lt_cpu_blas_name(void);

/* Where LUTRA_OPENBLAS_CORETYPE is set: loads the library, and checks that it uses that core type.
 * False with an error when it does not have it. */
bool lt_cpu_check_blas(void);

/* Bytes that can be had without the system having to stop programs; 0 when it does not say. */
size_t lt_cpu_memory_available(void);
/* The backend's alloc and free. */
void *lt_cpu_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream);
void lt_cpu_free(const lt_Backend *self, int index, void *memory, size_t nbytes, lt_Stream *stream);

#endif
