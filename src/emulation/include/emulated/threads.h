/* threads.h: what the code of a kernel uses of the executor, whatever its language is: the record
 * of the running thread, barriers and warp functions.
 *
 * A thread of a block runs on a context: its own stack, whose size is a power of two and whose
 * address is a multiple of the size. A record of one cache line near the stack's top holds the
 * thread's numbers, so they are found from the stack pointer, without thread-local storage, which
 * would be slow or scarce in a shared object that is loaded at run time. A context never moves to
 * another system thread while it runs a thread of a block.
 *
 * No header of the C library is included here, so that a kernel compiled at run time compiles fast.
 */
#ifndef LT_EMULATED_THREADS_H
#define LT_EMULATED_THREADS_H

#define LT_EMULATED inline __attribute__((always_inline))

/* A loop over consecutive elements in one thread: vectorized for the CPU. */
#define LT_VECTOR_LOOP _Pragma("omp simd")

/* ---- the context ----------------------------------------------------------------------------- */

/* An index or a size in three dimensions. */
struct lt_EmulatedIndex {
  unsigned x, y, z;
};

/* The threads of the block that have not started, shared by the block's contexts. Threads start in
 * the order x, y, z from `first` by `step` (1, or -1 for the reverse order) until each reaches
 * `stop`. */
struct lt_EmulatedBlock {
  unsigned started, threads, step;
  lt_EmulatedIndex at, first, stop;
  const void *constants; /* of the launch, for the kernel's code (Metal's function constants) */
};

/* The record of a context: the numbers of the thread that it runs. */
struct alignas(64) lt_EmulatedContext {
  lt_EmulatedIndex thread_index; /* in its block */
  lt_EmulatedIndex block_index;
  lt_EmulatedIndex block_size; /* in threads */
  lt_EmulatedIndex grid_size;  /* in blocks */
  void *shared;                /* the block's dynamic shared memory */
  lt_EmulatedBlock *block;
};
static_assert(sizeof(lt_EmulatedContext) == 64, "one cache line");

/* The records are spread over the upper part of the stacks, by the stack's number: at the same
 * offset all would share a few sets of the caches and of the TLB. At least half of the stack, 64
 * KiB, is left for a thread; sanitizers need more stack. */
#ifdef __SANITIZE_ADDRESS__
enum { LT_EMULATED_STACK = 1 << 19, LT_EMULATED_SPREAD = 1 << 16 };
#else
enum { LT_EMULATED_STACK = 1 << 17, LT_EMULATED_SPREAD = 1 << 16 };
#endif

/* Returns the record of the context whose stack contains this address. */
LT_EMULATED lt_EmulatedContext *lt_emulated_context(unsigned long address) {
  const unsigned long mask = LT_EMULATED_STACK - 1;
  unsigned long spread = address / LT_EMULATED_STACK * (4096 + 64) % LT_EMULATED_SPREAD;
  return (lt_EmulatedContext *)((address & ~mask) + LT_EMULATED_STACK - LT_EMULATED_SPREAD +
                                spread);
}

/* Returns the record of the running context. */
LT_EMULATED lt_EmulatedContext *lt_emulated_here() {
  unsigned long sp;
#if defined(__x86_64__)
  __asm__("movq %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
  __asm__("mov %0, sp" : "=r"(sp));
#else
  sp = (unsigned long)__builtin_frame_address(0);
#endif
  return lt_emulated_context(sp);
}

/* Loads and stores that the compiler does not combine: a wide load from an address that was just
 * stored to by narrow stores stalls the CPU for longer than everything else here takes. */
LT_EMULATED unsigned lt_emulated_get(const unsigned *p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
LT_EMULATED void lt_emulated_set(unsigned *p, unsigned v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Makes the running context run the block's next thread that has not started. Returns false when
 * there is none. */
LT_EMULATED bool lt_emulated_next(lt_EmulatedContext *c) {
  lt_EmulatedBlock &b = *c->block;
  unsigned n = lt_emulated_get(&b.started);
  if (n >= lt_emulated_get(&b.threads)) return false;
  lt_emulated_set(&b.started, n + 1);
  unsigned x = lt_emulated_get(&b.at.x);
  lt_emulated_set(&c->thread_index.x, x);
  lt_emulated_set(&c->thread_index.y, lt_emulated_get(&b.at.y));
  lt_emulated_set(&c->thread_index.z, lt_emulated_get(&b.at.z));
  x += b.step;
  if (__builtin_expect(x == b.stop.x, 0)) {
    x = b.first.x;
    unsigned y = lt_emulated_get(&b.at.y) + b.step;
    if (y == b.stop.y) {
      y = b.first.y;
      lt_emulated_set(&b.at.z, lt_emulated_get(&b.at.z) + b.step);
    }
    lt_emulated_set(&b.at.y, y);
  }
  lt_emulated_set(&b.at.x, x);
  return true;
}

/* ---- barriers and warp functions ------------------------------------------------------------- */

enum lt_EmulatedVote { LT_EMULATED_NO_VOTE, LT_EMULATED_COUNT, LT_EMULATED_AND, LT_EMULATED_OR };
enum lt_EmulatedWarp {
  LT_EMULATED_SYNC,
  LT_EMULATED_SHUFFLE, /* from lane `argument` of the segment */
  LT_EMULATED_UP,
  LT_EMULATED_DOWN,
  LT_EMULATED_XOR,
  LT_EMULATED_BALLOT,
  LT_EMULATED_MATCH,
  LT_EMULATED_ADD,
  LT_EMULATED_MIN,
  LT_EMULATED_MAX,
  LT_EMULATED_UMIN,
  LT_EMULATED_UMAX,
  LT_EMULATED_BITAND,
  LT_EMULATED_BITOR,
  LT_EMULATED_BITXOR,
  LT_EMULATED_CALL /* each lane's value is the address of an lt_EmulatedCall */
};

/* A function of a warp that one of its lanes computes for all lanes: structs that begin with this
 * one have its arguments and results. lanes[i] is that of lane i, where bit i of `set` is 1. */
struct lt_EmulatedCall {
  void (*run)(lt_EmulatedCall *const *lanes, unsigned set);
};

/* Why a kernel was stopped. */
enum lt_EmulatedFault {
  LT_EMULATED_OK,
  LT_EMULATED_ADDRESS, /* an access to memory that is not the kernel's */
  LT_EMULATED_FAILURE, /* any other failure, such as a deadlock or a division by zero */
  LT_EMULATED_ASSERTION,
  LT_EMULATED_INSTRUCTION, /* an instruction that does not exist */
  LT_EMULATED_TIMEOUT,
  LT_EMULATED_NO_MEMORY, /* the host has no memory for the kernel's threads */
  LT_EMULATED_UNLOADING, /* the program is ending */
  LT_EMULATED_STOPPED    /* the program stopped the kernel: no error */
};

/* The executor's functions (block.cpp), called by the code of kernels. */
extern "C" {
/* Blocks until all threads of the block that have not returned have called it. Returns the result
 * of the vote. */
int lt_emulated_barrier(int predicate, lt_EmulatedVote vote);
/* Calls a warp function with the lanes in `mask`. Returns the calling lane's result. */
unsigned long long lt_emulated_warp(unsigned mask, lt_EmulatedWarp what, unsigned long long value,
                                    int argument, int width);
/* Ends the block with a fault; does not return. */
void lt_emulated_trap(lt_EmulatedFault fault);
/* Lets other threads of the block run, if any can. */
void lt_emulated_yield(void);
/* Returns the time in nanoseconds. */
long long lt_emulated_clock(void);
}

/* The same functions for code that was compiled at run time; set when the code is loaded. */
struct lt_EmulatedCalls {
  int (*barrier)(int predicate, lt_EmulatedVote vote);
  unsigned long long (*warp)(unsigned mask, lt_EmulatedWarp what, unsigned long long value,
                             int argument, int width);
  void (*trap)(lt_EmulatedFault fault);
  void (*yield)(void);
  long long (*clock)(void);
};

/* A launch: a kernel with its arguments, independent of their types. */
struct lt_EmulatedLaunch {
  void (*run)(lt_EmulatedLaunch *); /* runs the context's thread and all others that have not
                                     * started */
  void (*destroy)(lt_EmulatedLaunch *);
};

#endif
