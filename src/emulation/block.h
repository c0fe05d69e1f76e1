/* block.h: one block of a kernel's threads on one system thread: its contexts, its barrier, its
 * warps. */
#ifndef LT_EMULATION_BLOCK_H
#define LT_EMULATION_BLOCK_H

#include "context.h"
#include "executor.h"

namespace emulation {

/* A context: a stack that runs threads of a kernel, or is idle. */
struct Fiber {
  Stack stack;
  Fiber *link; /* next in one of the worker's lists */
  lt_EmulatedContext *context;
  unsigned thread; /* the number in the block of the thread that waited last */
};

/* A list of contexts, first in, first out. */
struct List {
  Fiber *head, *tail;
  void push(Fiber *f) {
    f->link = nullptr;
    if (head)
      tail->link = f;
    else
      head = f;
    tail = f;
  }
  Fiber *pop() {
    Fiber *f = head;
    head = f->link;
    return f;
  }
  void append(List *other) {
    if (!other->head) return;
    if (head)
      tail->link = other->head;
    else
      head = other->head;
    tail = other->tail;
    other->head = nullptr;
  }
};

/* The lanes of a warp that wait in a warp function. */
struct Warp {
  unsigned waiting;
  unsigned mask[32];
  unsigned char what[32], source[32];
  unsigned long long in[32], out[32];
};

/* The state of a system thread that runs blocks. `progress` comes first: a context points to it. */
struct Worker {
  lt_EmulatedBlock progress;
  const Grid *grid;
  lt_EmulatedIndex block;      /* the block's index in the grid */
  lt_EmulatedIndex block_size; /* in threads; smaller at the edges of some grids */
  Stack base;                  /* the system thread's own stack */
  Fiber *current;
  List ready, barrier, idle;
  unsigned live;    /* contexts that run a thread */
  unsigned arrived; /* of these, those at the barrier */
  int vote, voted;
  lt_EmulatedVote vote_kind;
  bool warps_used;
  volatile bool running; /* running on a context: a fault is now the kernel's */
  lt_EmulatedFault fault;
  Warp warp[MAX_THREADS / 32];
  /* The context on which a thread has waited. It is valid while the context's `thread` is that
   * thread. */
  Fiber *owner[MAX_THREADS];
  Fiber *fibers; /* the contexts created so far */
  unsigned made;
  unsigned char *shared; /* MAX_SHARED bytes */
};

/* Allocates a worker's stacks and shared memory. Returns false when out of memory. */
bool worker_prepare(Worker *w);
/* Frees what worker_prepare allocated. */
void worker_release(Worker *w);
/* Runs the block w->block of w->grid. Returns false when it was stopped: w->fault is the reason,
 * and the worker is ready for the next block. */
bool run_block(Worker *w);
/* Ends the running block with a fault. Called in a signal handler of the worker's thread;
 * `interrupted` is the handler's context. */
void stop_block(Worker *w, void *interrupted, lt_EmulatedFault fault, const char *what);

} // namespace emulation

#endif
