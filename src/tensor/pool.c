/* pool.c: blocks that a thread keeps for the next tensor. A thread's blocks are given back when it
 * ends. Debug builds keep none, so that the sanitizers see every use of freed memory. */
#include "core.h"

#include <pthread.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif
#define KEEP (LT_DEBUG ? 0 : 8192) /* blocks of a kind: about 3 MB of tensors */

static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* Has the thread's pools emptied when it ends. */
static void note_thread(lt_Pool *pools) {
  pthread_once(&once, make_key);
  pthread_setspecific(at_exit, pools);
}

/* glibc's; other C libraries do without. */
extern int malloc_trim(size_t pad) __attribute__((weak));

void lt_memory_on_trim(lt_TrimFn fn, void *context) {
  lt_Thread *t = lt_thread();
  t->trim = fn;
  t->trim_context = context;
}

void lt_memory_trim(void) {
  lt_Thread *t = lt_thread();
  if (t->trim) t->trim(t->trim_context);
  empty_pools(t->pool); /* a block may keep a page that is free but for it */
  if (malloc_trim) malloc_trim(0);
}

void *lt_pool_take(lt_PoolKind kind, size_t size) {
  lt_Pool *p = &lt_thread()->pool[kind];
  void *block = p->first;
  if (!block) return malloc(size);
  p->first = *(void **)block;
  p->count--;
  return block;
}

void lt_pool_give(lt_PoolKind kind, void *block) {
  lt_Pool *p = &lt_thread()->pool[kind];
  if (p->count >= KEEP) {
    free(block);
    return;
  }
  if (!p->first) note_thread(lt_thread()->pool);
  *(void **)block = p->first;
  p->first = block;
  p->count++;
}
