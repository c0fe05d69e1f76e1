/* queue.cpp: see queue.h. */
#include "queue.h"

#include "executor.h"
#include "options.h"

#include <chrono>
#include <stdlib.h>
#include <thread>

namespace emulation {
namespace {

enum { SPIN = 20000 /* nanoseconds */ };

std::atomic<int> busy; /* number of queues that are running an operation */
std::atomic<bool> ended_program;

/* Spins for a short time until is_ready(): operations often arrive and complete in less time
 * than it takes to sleep and wake up. */
template <class F> void spin_until(F is_ready) {
  if (options().workers < 2 || is_ready()) return;
  long long end = lt_emulated_clock() + SPIN;
  do
    for (int i = 0; i < 32; i++) {
      if (is_ready()) return;
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
    }
  while (lt_emulated_clock() < end);
}

void pause_at_random() {
  long limit = options().delay;
  if (limit <= 0) return;
  static std::atomic<unsigned> seed{12345};
  unsigned state = seed.load();
  while (!seed.compare_exchange_weak(state, state * 1664525u + 1013904223u)) {
  }
  std::this_thread::sleep_for(std::chrono::microseconds((state >> 8) % (unsigned long)(limit + 1)));
}

/* Stops kernels and waits a short time for running operations. */
void end() {
  ended_program = true;
  stop_executor();
  for (int i = 0; i < MAX_DEVICES; i++) stop_user_grids(i);
  for (int i = 0; i < 200 && busy.load() > 0; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

} // namespace

/* The operation is deleted before it counts as done: its copies and accesses have ended by then. */
void Queue::run() {
  begin();
  Lock lock(mutex);
  for (;;) {
    if (!first && !quit) {
      lock.unlock();
      spin_until([&] { return queued != done; });
      lock.lock();
    }
    asleep = true;
    wake.wait(lock, [&] { return first || quit; });
    asleep = false;
    if (!first) return;
    Operation *operation = first;
    first = operation->next;
    if (!first) last = nullptr;
    lock.unlock();
    busy++;
    if (!unloading()) {
      pause_at_random();
      operation->run();
    }
    delete operation;
    busy--;
    lock.lock();
    done++;
    if (waiters) ended.notify_all();
  }
}

unsigned long long Queue::push(Operation *operation) {
  Lock lock(mutex);
  if (last)
    last->next = operation;
  else
    first = operation;
  last = operation;
  if (asleep) wake.notify_one();
  return ++queued;
}

void Queue::wait_for(unsigned long long number) {
  spin_until([&] { return done >= number; });
  Lock lock(mutex);
  waiters++;
  ended.wait(lock, [&] { return done >= number; });
  waiters--;
}

unsigned long long Queue::mark() {
  Lock lock(mutex);
  return queued;
}

bool Queue::is_idle() {
  Lock lock(mutex);
  return done == queued;
}

void Queue::close() {
  Lock lock(mutex);
  quit = true;
  wake.notify_one();
}

void start_queue(const std::shared_ptr<Queue> &queue) {
  std::thread([queue] { queue->run(); }).detach();
}

/* exit() runs `end` before the destructors of shared objects whose code the threads may be
 * running. */
void start_emulation() {
  prepare_faults();
  atexit(end);
}

bool unloading() { return ended_program; }

} // namespace emulation
