/* allocations.c: see allocations.h. */
#define _GNU_SOURCE
#include "allocations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A larger block is refused at once: a fuzzer asks for any size, and memory is shared. */
enum { LARGEST = 64 << 20 };

_Thread_local lt_Faults lt_core_faults, lt_lua_faults;
static atomic_llong live;

bool lt_faults_next(lt_Faults *f, size_t n) {
  if (n > LARGEST) return true;
  int64_t now = ++f->count;
  bool fail = f->at && (now == f->at || (f->and_on && now > f->at));
  if (fail) f->fired = true;
  return fail;
}

int64_t lt_core_live(void) { return atomic_load(&live); }

static bool refused(size_t n) {
  if (!lt_faults_next(&lt_core_faults, n)) return false;
  errno = ENOMEM;
  return true;
}

static void *counted(void *memory) {
  if (memory) atomic_fetch_add(&live, 1);
  return memory;
}

/* ---- what the core's objects call in place of the C library's functions ---------------------- */

void *lt_fault_malloc(size_t n) { return refused(n) ? NULL : counted(malloc(n)); }

void *lt_fault_calloc(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) bytes = SIZE_MAX;
  return refused(bytes) ? NULL : counted(calloc(n, size));
}

void *lt_fault_realloc(void *memory, size_t n) {
  if (refused(n)) return NULL;
  void *moved = realloc(memory, n);
  return memory ? moved : counted(moved);
}

void lt_fault_free(void *memory) {
  if (memory) atomic_fetch_sub(&live, 1);
  free(memory);
}

char *lt_fault_strdup(const char *s) { return refused(strlen(s)) ? NULL : counted(strdup(s)); }

char *lt_fault_strndup(const char *s, size_t n) {
  return refused(n) ? NULL : counted(strndup(s, n));
}

void *lt_fault_aligned_alloc(size_t alignment, size_t n) {
  return refused(n) ? NULL : counted(aligned_alloc(alignment, n));
}

int lt_fault_posix_memalign(void **out, size_t alignment, size_t n) {
  if (refused(n)) return ENOMEM;
  int status = posix_memalign(out, alignment, n);
  if (status == 0) (void)counted(*out);
  return status;
}

char *lt_fault_realpath(const char *path, char *resolved) {
  if (refused(1)) return NULL;
  char *real = realpath(path, resolved);
  return resolved ? real : counted(real);
}

FILE *lt_fault_fopen(const char *path, const char *mode) {
  return refused(1) ? NULL : fopen(path, mode);
}

FILE *lt_fault_fdopen(int fd, const char *mode) { return refused(1) ? NULL : fdopen(fd, mode); }
