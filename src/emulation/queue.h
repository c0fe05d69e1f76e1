/* queue.h: a queue of operations with a system thread that runs them in order, so that queued work
 * is really asynchronous; and the start and end of an emulated runtime.
 *
 * Operations may only wait for operations that were queued before them, so there is no deadlock.
 * Nothing is destroyed at the program's end, since threads of queues may still be running.
 */
#ifndef LT_EMULATION_QUEUE_H
#define LT_EMULATION_QUEUE_H

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace emulation {

typedef std::unique_lock<std::mutex> Lock;

/* Work in a queue. It is destroyed when it has run, or when the program ends. */
struct Operation {
  Operation *next = nullptr;
  virtual void run() = 0;
  virtual ~Operation() {}
};
/* An operation that calls a function object. */
template <class F> struct OperationOf final : Operation {
  F f;
  explicit OperationOf(F &&from) : f(std::move(from)) {}
  void run() override { f(); }
};

/* A queue, which start_queue gives a thread. */
class Queue {
public:
  virtual ~Queue() {}
  /* Appends an operation and takes it over. Returns its number, from 1. */
  unsigned long long push(Operation *operation);
  /* Blocks until the operation with that number has ended. */
  void wait_for(unsigned long long number);
  /* Returns the number of the operation that was queued last. */
  unsigned long long mark();
  /* Returns true when all queued operations have ended. */
  bool is_idle();
  /* Makes the thread end after the queued work. */
  void close();

protected:
  /* Called on the queue's thread before the first operation. */
  virtual void begin() {}

private:
  friend void start_queue(const std::shared_ptr<Queue> &queue);
  std::mutex mutex; /* protects the members below */
  std::condition_variable wake, ended;
  Operation *first = nullptr, *last = nullptr;
  std::atomic<unsigned long long> queued{0}, done{0}; /* written under the mutex */
  int waiters = 0;
  bool quit = false, asleep = false;

  void run();
};

/* Starts a queue's thread, which keeps the queue alive until it ends. */
void start_queue(const std::shared_ptr<Queue> &queue);

/* Starts the emulated runtime: installs the signal handlers, and makes the program's end stop
 * kernels and queues. */
void start_emulation();
/* Returns true when the program is ending: queues skip what is queued, and kernels end after their
 * current block. */
bool unloading();

} // namespace emulation

#endif
