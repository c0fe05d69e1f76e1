/* pool.c: a cache of small blocks for each thread, freed when the thread ends. Debug builds cache
 * none, so that the sanitizers find every use of freed memory. */
#include "core.h"

#include <pthread.h>
#ifdef __APPLE__
#include <malloc/malloc.h>
#endif

static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Frees all cached blocks. */
static void empty_pools(void *pools) {
  for (lt_Pool *p = pools; p < (lt_Pool *)pools + LT_POOL_KINDS; p++) {
    while (p->first) {
      void *block = p->first;
      p->first = *(void **)block;
      free(block);
    }
    p->count = 0;
  }
}

static void make_key(void) { pthread_key_create(&at_exit, empty_pools); }

/* Registers the thread's pools to be emptied when it ends. */
static void note_thread(lt_Pool *pools) {
  pthread_once(&once, make_key);
  pthread_setspecific(at_exit, pools);
}

/* Returns the free pages of malloc to the system, where the C library can. */
#ifdef __APPLE__
static void trim(void) { malloc_zone_pressure_relief(NULL, 0); }
#else
extern int malloc_trim(size_t pad) __attribute__((weak));
static void trim(void) {
  if (malloc_trim) malloc_trim(0);
}
#endif

void lt_memory_on_trim(lt_TrimFn fn, void *context) {
  lt_Thread *t = lt_thread();
  t->trim = fn;
  t->trim_context = context;
}

void lt_memory_trim(void) {
  lt_Thread *t = lt_thread();
  if (t->trim) t->trim(t->trim_context);
  empty_pools(t->pool); /* a cached block may be the only one on its page */
  trim();
}

void lt_pool_give_slowly(lt_PoolKind kind, void *block) {
  lt_Pool *p = &lt_thread()->pool[kind];
  if (p->count >= LT_POOL_MOST) {
    free(block);
    return;
  }
  if (!p->first) note_thread(lt_thread()->pool);
  *(void **)block = p->first;
  p->first = block;
  p->count++;
}
