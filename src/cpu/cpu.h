/* cpu.h: functions shared by the files of the CPU backend.
 *
 * All of them report failure through lt_error(). Functions named lt_cpu_<op> are kernels; see
 * kernel_support.h for what they may assume. */
#ifndef LT_CPU_CPU_H
#define LT_CPU_CPU_H

#include "kernel.h"

/* Runs an elementwise op; see lt_Loop. Returns false with the error set when it was interrupted, or
 * the op does not support the dtype. */
bool lt_cpu_elementwise(const lt_Loop *loop);
/* Runs an elementwise program; see program.h. Returns false with the error set. Sets loop->refused
 * when an integer divisor is 0. */
struct lt_ProgramLoop;
bool lt_cpu_program(struct lt_ProgramLoop *loop);
/* Run special cases of an elementwise op: copy elements of one dtype as bytes, where strides may be
 * negative; fill with loop->a. */
bool lt_cpu_copy_same(const lt_Loop *loop);
bool lt_cpu_fill(const lt_Loop *loop);

/* Returns false with the error set when an element of an integer divisor is 0; writes nothing. The
 * backend's check_divisor (divisor.c). */
bool lt_cpu_check_divisor(const lt_Call *c, const lt_Tensor *divisor);

/* Returns a description of the library for matrix products, "OpenBLAS 0.3.21, core type SkylakeX,
 * ...", or why plain loops are used. Loads the library. The string is static. */
const char *lt_cpu_blas_name(void);

/* If LUTRA_OPENBLAS_CORETYPE is set, loads the library and checks that it uses that core type;
 * returns false with the error set if it does not. */
bool lt_cpu_check_blas(void);

/* Returns the bytes that can be allocated without the system running out of memory; 0 when
 * unknown. */
size_t lt_cpu_memory_available(void);
/* The backend's alloc and free (memory.c). alloc returns 64-byte aligned, uninitialized memory, or
 * NULL with the reason; free takes the size that was allocated. */
void *lt_cpu_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream);
/* The same for the scratch memory of a kernel that can do without it: NULL, without an error, when
 * memory is out. lt_cpu_free frees it. */
void *lt_cpu_scratch(size_t nbytes);
void lt_cpu_free(const lt_Backend *self, int index, void *memory, size_t nbytes, lt_Stream *stream);
/* The backend's release, info, stats and reset_peak. They count blocks of at least 32 KiB, all in
 * the large pool; smaller ones are malloc's. */
bool lt_cpu_memory_release(const lt_Backend *self, int index);
bool lt_cpu_memory_info(const lt_Backend *self, int index, int64_t *available, int64_t *total);
bool lt_cpu_memory_is_zero(const void *memory, size_t nbytes);
bool lt_cpu_memory_stats(const lt_Backend *self, int index, lt_MemoryStats *out);
bool lt_cpu_memory_reset_peak(const lt_Backend *self, int index);

#endif
