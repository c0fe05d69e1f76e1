/* block.cpp: runs the threads of a block as contexts (fibers), created on demand.
 *
 * A block starts on one context, which calls the kernel for thread 0, 1, 2 ... in a plain loop.
 * Only when a thread must wait (at a barrier or in a warp function) does the block get another
 * context, which continues with the threads that have not started. A kernel that never waits costs
 * one loop.
 *
 * A context runs until its thread waits or no thread is left to start. The next context is, in this
 * order: one that has been released; a new one for a thread that has not started; and, if there is
 * neither, one released by completing waits that only returned threads could have held up. When no
 * context can be released, the block is deadlocked, which is an error.
 */
#include "block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where valgrind's header is installed, stacks are registered with valgrind. */
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define REGISTER_STACK(low, top) (void)VALGRIND_STACK_REGISTER(low, top)
#else
#define REGISTER_STACK(low, top) (void)0
#endif

#include "faults.h"
#include "memory.h"
#include "options.h"

namespace emulation {
namespace {

enum { SLAB = 32 /* contexts that are created at once */ };

Worker *worker_here() { return (Worker *)lt_emulated_here()->block; }

/* Returns the number of a context's current thread in its block. */
unsigned thread_number(const lt_EmulatedContext *c) {
  unsigned x = lt_emulated_get(&c->thread_index.x), y = lt_emulated_get(&c->thread_index.y);
  return x + c->block_size.x * (y + c->block_size.y * lt_emulated_get(&c->thread_index.z));
}

/* ---- contexts -------------------------------------------------------------------------------- */

void fiber_main();

/* Adds SLAB contexts to the idle ones. Returns false when out of memory. The lowest page of each
 * stack is not accessible: a stack overflow is a fault. */
bool make_fibers(Worker *w) {
  size_t bytes = (size_t)(SLAB + 1) * LT_EMULATED_STACK;
  char *memory = (char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == (char *)MAP_FAILED) return false;
  size_t skip = (LT_EMULATED_STACK - (size_t)memory % LT_EMULATED_STACK) % LT_EMULATED_STACK;
  munmap(memory, skip);
  if (skip < LT_EMULATED_STACK)
    munmap(memory + skip + (size_t)SLAB * LT_EMULATED_STACK, LT_EMULATED_STACK - skip);
  memory += skip;
  for (int i = 0; i < SLAB; i++) {
    char *low = memory + (size_t)i * LT_EMULATED_STACK;
    mprotect(low, page_size(), PROT_NONE);
    Fiber *f = &w->fibers[w->made++];
    f->context = lt_emulated_context((unsigned long)low);
    f->stack.low = low + page_size();
    f->stack.top = (char *)f->context;
    REGISTER_STACK(f->stack.low, f->stack.top);
    stack_enter(&f->stack, fiber_main);
    w->idle.push(f);
  }
  return true;
}

[[noreturn]] void fail_block(Worker *w, const char *what, unsigned thread);

/* Returns a context for the next thread. The first of a block is always available: see
 * worker_prepare. */
Fiber *fresh(Worker *w) {
  if (!w->idle.head && (w->made == MAX_THREADS + SLAB || !make_fibers(w)))
    fail_block(w, "out of host memory for the stack of another thread", w->progress.started);
  Fiber *f = w->idle.pop();
  lt_EmulatedContext *c = f->context;
  c->block_index.x = lt_emulated_get(&w->block.x);
  c->block_index.y = lt_emulated_get(&w->block.y);
  c->block_index.z = lt_emulated_get(&w->block.z);
  c->block_size = w->block_size;
  c->grid_size = w->grid->grid;
  c->shared = w->shared;
  c->block = &w->progress;
  w->live++;
  return f;
}

/* Ends the block: continues run_block on the system thread's own stack. */
[[noreturn]] void leave() {
  Worker *w = worker_here();
  stack_switch(&w->current->stack, &w->base);
  __builtin_unreachable();
}

/* The function that stop_block makes the context continue with; the context's frames are lost. */
void leave_from_handler() { leave(); }

/* Ends the block with an error of thread number `thread`. */
[[noreturn]] void fail_block(Worker *w, const char *what, unsigned thread) {
  w->fault = LT_EMULATED_FAILURE;
  store_fault(w, what, thread);
  leave();
}

/* ---- warp functions -------------------------------------------------------------------------- */

/* Combines two values, as a warp's reduction does. */
unsigned long long fold(lt_EmulatedWarp what, unsigned long long a, unsigned long long b) {
  unsigned x = (unsigned)a, y = (unsigned)b;
  switch (what) {
  case LT_EMULATED_ADD:
    return x + y;
  case LT_EMULATED_MIN:
    return (int)x < (int)y ? x : y;
  case LT_EMULATED_MAX:
    return (int)x > (int)y ? x : y;
  case LT_EMULATED_UMIN:
    return x < y ? x : y;
  case LT_EMULATED_UMAX:
    return x > y ? x : y;
  case LT_EMULATED_BITAND:
    return x & y;
  case LT_EMULATED_BITOR:
    return x | y;
  case LT_EMULATED_BITXOR:
    return x ^ y;
  default:
    return 0;
  }
}

#define EACH_LANE(lane, set)                                                                       \
  for (unsigned left_ = (set), lane; left_ && (lane = (unsigned)__builtin_ctz(left_), true);       \
       left_ &= left_ - 1)

/* Computes the results of the lanes in `set`. */
void compute(Warp *q, lt_EmulatedWarp what, unsigned set) {
  unsigned long long all = 0;
  switch (what) {
  case LT_EMULATED_SYNC:
    return;
  case LT_EMULATED_SHUFFLE:
  case LT_EMULATED_UP:
  case LT_EMULATED_DOWN:
  case LT_EMULATED_XOR:
    EACH_LANE(lane, set) {
      unsigned source = q->source[lane];
      q->out[lane] = q->in[set >> source & 1 ? source : lane];
    }
    return;
  case LT_EMULATED_MATCH:
    EACH_LANE(lane, set) {
      unsigned same = 0;
      for (unsigned i = 0; i < 32; i++)
        if (set >> i & 1 && q->in[i] == q->in[lane]) same |= 1u << i;
      q->out[lane] = same;
    }
    return;
  case LT_EMULATED_CALL:
    ((lt_EmulatedCall *)q->in[__builtin_ctz(set)])->run((lt_EmulatedCall *const *)q->in, set);
    return;
  case LT_EMULATED_BALLOT:
    EACH_LANE(lane, set) all |= q->in[lane] ? 1u << lane : 0u;
    break;
  default:
    all = q->in[__builtin_ctz(set)];
    EACH_LANE(lane, set & (set - 1)) all = fold(what, all, q->in[lane]);
  }
  EACH_LANE(lane, set) q->out[lane] = all;
}

/* Returns the function of a lane that calls LT_EMULATED_CALL. */
auto run_of(const Warp *q, unsigned lane) { return ((lt_EmulatedCall *)q->in[lane])->run; }

/* Completes a warp function: all lanes in `set` have called it. The results are computed, and all
 * lanes but `self` are put on the ready list. */
void complete(Worker *w, unsigned number, unsigned set, unsigned self) {
  Warp *q = &w->warp[number];
  unsigned first = (unsigned)__builtin_ctz(set), what = q->what[first];
  EACH_LANE(lane, set) {
    if (q->what[lane] != what || (what == LT_EMULATED_CALL && run_of(q, lane) != run_of(q, first)))
      fail_block(w, "lanes of one warp call different warp functions", number * 32 + lane);
  }
  compute(q, (lt_EmulatedWarp)what, set);
  q->waiting &= ~set;
  EACH_LANE(lane, set) {
    if (lane != self) w->ready.push(w->owner[number * 32 + lane]);
  }
}

/* Completes the warp functions of a warp whose missing lanes have all returned. */
void complete_without_returned(Worker *w, unsigned number) {
  Warp *q = &w->warp[number];
  unsigned done = 0; /* lanes that were checked */
  while (q->waiting & ~done) {
    unsigned mask = q->mask[__builtin_ctz(q->waiting & ~done)], here = 0;
    bool whole = true;
    EACH_LANE(lane, mask) {
      unsigned thread = number * 32 + lane;
      Fiber *owner = thread < w->progress.threads ? w->owner[thread] : nullptr;
      if (q->waiting >> lane & 1 && q->mask[lane] == mask)
        here |= 1u << lane;
      else if (owner && owner->thread == thread)
        whole = false; /* it waits elsewhere */
    }
    done |= here;
    if (!here) return;
    if (whole) complete(w, number, here, 32);
  }
}

/* Returns the lane that a shuffle reads from. */
unsigned source_of(lt_EmulatedWarp what, unsigned lane, int argument, int width) {
  int first = (int)lane & ~(width - 1), in = (int)lane - first;
  switch (what) {
  case LT_EMULATED_SHUFFLE:
    return (unsigned)(first + (argument & (width - 1)));
  case LT_EMULATED_UP:
    return in >= argument ? lane - (unsigned)argument : lane;
  case LT_EMULATED_DOWN:
    return in + argument < width ? lane + (unsigned)argument : lane;
  case LT_EMULATED_XOR: {
    int from = (int)lane ^ argument;
    return from < first + width ? (unsigned)from : lane;
  }
  default:
    return lane;
  }
}

/* ---- scheduling ------------------------------------------------------------------------------ */

/* Completes a barrier: all its contexts become ready, and `voted` is the result of the vote. */
void release_barrier(Worker *w) {
  if (w->live != w->progress.threads && barriers_need_all && options().strict)
    fail_block(w, "a barrier after some threads of the block have returned",
               w->barrier.head ? w->barrier.head->thread : 0);
  w->voted = w->vote;
  w->vote = 0;
  w->vote_kind = LT_EMULATED_NO_VOTE;
  w->arrived = 0;
  w->ready.append(&w->barrier);
}

/* Releases contexts whose waits only returned threads hold up, and returns one. A deadlock ends the
 * block with an error. */
Fiber *resolve(Worker *w) {
  unsigned warps = (w->progress.threads + 31) / 32;
  if (w->warps_used)
    for (unsigned i = 0; i < warps; i++) complete_without_returned(w, i);
  if (!w->ready.head && w->arrived && w->arrived == w->live) release_barrier(w);
  if (w->ready.head) return w->ready.pop();
  for (unsigned i = 0; i < warps; i++)
    if (w->warp[i].waiting)
      fail_block(w, "a warp function never completes: its mask has lanes that wait elsewhere",
                 i * 32 + (unsigned)__builtin_ctz(w->warp[i].waiting));
  fail_block(w, "some threads of the block never reach a barrier",
             w->barrier.head ? w->barrier.head->thread : 0);
}

/* Returns the context to continue with. */
Fiber *next_fiber(Worker *w) {
  if (w->ready.head) return w->ready.pop();
  if (w->progress.started < w->progress.threads) return fresh(w);
  return resolve(w);
}

/* Suspends the current thread. Its context must be in a list from which another thread will move it
 * to the ready list. */
inline __attribute__((always_inline)) void suspend(Worker *w, Fiber *me) {
  Fiber *next = next_fiber(w);
  if (next == me) return;
  w->current = next;
  stack_switch(&me->stack, &next->stack);
}

/* Records that a thread waits on the current context, which is returned. */
Fiber *mark_waiting(Worker *w, unsigned thread) {
  Fiber *me = w->current;
  me->thread = thread;
  w->owner[thread] = me;
  return me;
}

/* The main function of a context: runs threads until none is left to start; then the context is
 * idle until it is used again. */
void fiber_main() {
  lt_EmulatedContext *here = lt_emulated_here();
  Worker *w = (Worker *)here->block;
  Fiber *me = w->current;
  stack_entered(&w->base, &me->stack);
  for (;;) {
    w->running = true; /* not earlier: a stopped block continues at what the first switch saved */
    if (lt_emulated_next(here)) w->grid->launch->run(w->grid->launch);
    if (w->owner[me->thread] == me) w->owner[me->thread] = nullptr;
    w->live--;
    w->idle.push(me);
    if (w->live == 0 && w->progress.started == w->progress.threads) {
      w->running = false;
      stack_switch(&me->stack, &w->base);
    } else {
      suspend(w, me);
    }
  }
}

/* Resets the order in which threads start, and the barrier. */
void start_block(Worker *w) {
  const lt_EmulatedIndex &size = w->block_size;
  lt_EmulatedBlock &b = w->progress;
  b.started = 0;
  b.threads = size.x * size.y * size.z;
  b.constants = w->grid->constants;
  if (options().reverse) {
    b.step = ~0u;
    b.first = {size.x - 1, size.y - 1, size.z - 1};
    b.stop = {~0u, ~0u, ~0u};
  } else {
    b.step = 1;
    b.first = {0, 0, 0};
    b.stop = size;
  }
  b.at = b.first;
  w->live = w->arrived = 0;
  w->vote = 0;
  w->vote_kind = LT_EMULATED_NO_VOTE;
}

/* Makes every context start again, after a block that was stopped. */
void reset(Worker *w) {
  w->ready.head = w->barrier.head = w->idle.head = nullptr;
  for (unsigned i = 0; i < w->made; i++) {
    stack_enter(&w->fibers[i].stack, fiber_main);
    w->idle.push(&w->fibers[i]);
  }
  for (Warp &q : w->warp) q.waiting = 0;
  memset(w->owner, 0, sizeof w->owner);
  w->warps_used = false;
}

} // namespace

bool worker_prepare(Worker *w) {
  w->fibers = (Fiber *)calloc(MAX_THREADS + SLAB, sizeof *w->fibers);
  w->shared = (unsigned char *)aligned_alloc(1024, MAX_SHARED);
  return w->fibers && w->shared && make_fibers(w);
}

void worker_release(Worker *w) {
  for (unsigned i = 0; i < w->made; i += SLAB)
    munmap(w->fibers[i].stack.low - page_size(), (size_t)SLAB * LT_EMULATED_STACK);
  free(w->fibers);
  free(w->shared);
}

bool run_block(Worker *w) {
  start_block(w);
  Fiber *first = fresh(w);
  w->current = first;
  stack_switch(&w->base, &first->stack);
  w->running = false;
  if (!w->fault) return true;
  reset(w);
  return false;
}

void stop_block(Worker *w, void *interrupted, lt_EmulatedFault fault, const char *what) {
  w->running = false;
  w->fault = fault;
  store_fault(w, what, thread_number(w->current->context));
  if (!stack_redirect(interrupted, &w->current->stack, leave_from_handler)) leave();
}

} // namespace emulation

using namespace emulation;

extern "C" int lt_emulated_barrier(int predicate, lt_EmulatedVote vote) {
  lt_EmulatedContext *here = lt_emulated_here();
  Worker *w = (Worker *)here->block;
  if (vote != LT_EMULATED_NO_VOTE) {
    if (w->vote_kind == LT_EMULATED_NO_VOTE) w->vote = vote == LT_EMULATED_AND;
    w->vote_kind = vote;
    if (vote == LT_EMULATED_COUNT)
      w->vote += predicate;
    else if (vote == LT_EMULATED_AND)
      w->vote &= predicate;
    else
      w->vote |= predicate;
  }
  w->arrived++;
  if (w->arrived == w->live && w->progress.started == w->progress.threads) {
    release_barrier(w);
    return w->voted;
  }
  Fiber *me = mark_waiting(w, thread_number(here));
  w->barrier.push(me);
  suspend(w, me);
  return w->voted;
}

extern "C" unsigned long long lt_emulated_warp(unsigned mask, lt_EmulatedWarp what,
                                               unsigned long long value, int argument, int width) {
  lt_EmulatedContext *here = lt_emulated_here();
  Worker *w = (Worker *)here->block;
  unsigned thread = thread_number(here), number = thread / 32, lane = thread % 32;
  unsigned lanes = w->progress.threads - number * 32;
  if (lanes < 32) mask &= (1u << lanes) - 1;
  if (!(mask >> lane & 1)) fail_block(w, "a lane outside its mask calls a warp function", thread);
  Warp *q = &w->warp[number];
  q->in[lane] = value;
  q->source[lane] = (unsigned char)source_of(what, lane, argument, width);
  q->what[lane] = (unsigned char)what;
  q->mask[lane] = mask;
  q->waiting |= 1u << lane;
  if ((q->waiting & mask) == mask) {
    bool same = true;
    EACH_LANE(other, mask) same &= q->mask[other] == mask;
    if (same) {
      complete(w, number, mask, lane);
      return q->out[lane];
    }
  }
  w->warps_used = true;
  suspend(w, mark_waiting(w, thread));
  return q->out[lane];
}

extern "C" void lt_emulated_yield(void) {
  lt_EmulatedContext *here = lt_emulated_here();
  Worker *w = (Worker *)here->block;
  if (!w->ready.head && w->progress.started == w->progress.threads) return;
  Fiber *me = mark_waiting(w, thread_number(here));
  Fiber *next = next_fiber(w);
  w->ready.push(me);
  w->current = next;
  stack_switch(&me->stack, &next->stack);
}

extern "C" void lt_emulated_trap(lt_EmulatedFault fault) {
  Worker *w = worker_here();
  w->fault = fault;
  store_fault(w, fault == LT_EMULATED_ASSERTION ? "assertion" : "trap",
              thread_number(lt_emulated_here()));
  leave();
}
