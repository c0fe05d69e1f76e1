/* allocations.h: the allocator of the core and of the bindings in the fuzzer's program, which fails
 * on request. Their objects are linked with malloc, free... renamed to the functions here (objcopy;
 * see the Makefile), so that Lua, the C library and the sanitizers are not affected. */
#ifndef LT_FUZZ_ALLOCATIONS_H
#define LT_FUZZ_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What fails, of one thread's allocations. */
typedef struct lt_Faults {
  int64_t at;    /* this allocation fails, counted from 1; 0: none does */
  bool and_on;   /* so do all that follow */
  int64_t count; /* allocations since it was set */
  bool fired;    /* one has failed */
} lt_Faults;

extern _Thread_local lt_Faults lt_core_faults, lt_lua_faults;

/* Counts an allocation of n bytes; true when it has to fail. */
bool lt_faults_next(lt_Faults *f, size_t n);
/* Allocations of the core, by all threads, that are not freed yet. */
int64_t lt_core_live(void);

#endif
