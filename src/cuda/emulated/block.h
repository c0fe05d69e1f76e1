/* block.h: one block on one system thread: its contexts, its barrier, its warps. */
#ifndef LT_EMULATED_BLOCK_H
#define LT_EMULATED_BLOCK_H

#include "context.h"
#include "executor.h"

namespace emulated {

/* A stack that holds a CUDA thread, or is idle. */
struct Fiber {
  Stack stack;
  Fiber *link; /* in one of the worker's lists */
  lt_EmulatedContext *context;
  unsigned thread; /* the CUDA thread that waited last: its number in the block */
};

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

/* A system thread while it runs blocks. `progress` comes first: a context's record points to it. */
struct Worker {
  lt_EmulatedBlock progress;
  const Grid *grid;
  uint3 block; /* blockIdx */
  Stack base;  /* the system thread's own */
  Fiber *current;
  List ready, barrier, idle;
  unsigned live;    /* contexts that hold a thread */
  unsigned arrived; /* of them, those at the barrier */
  int vote, voted;
  lt_EmulatedVote vote_kind;
  bool warps_used;
  volatile bool running; /* on a context: a fault now is the kernel's */
  int error;
  Warp warp[MAX_THREADS / 32];
  Fiber
      *owner[MAX_THREADS]; /* the context of a thread that has waited, while its `thread` says so */
  Fiber *fibers;           /* of stacks made so far */
  unsigned made;
  unsigned char *shared; /* MAX_SHARED bytes */
};

/* Stacks may not be had: false. */
bool worker_prepare(Worker *w);
void worker_release(Worker *w);
/* Runs the block w->block of w->grid. False when it was stopped: w->error says why, and the
 * worker is ready for the next block. */
bool run_block(Worker *w);
/* In a signal handler of the worker's thread, while it runs a block: ends the block with an
 * error. */
void stop_block(Worker *w, void *interrupted, int error, const char *what);

} // namespace emulated

#endif
