/* executor.cpp: divides the blocks of a grid among the calling thread and, when the grid is
 * large enough, the threads of a pool. One grid uses the pool at a time; others run on their own
 * thread. */
#include "executor.h"
#include "block.h"
#include "faults.h"
#include "options.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <vector>

namespace emulation {
namespace {

enum { POOL_MINIMUM = 16384 /* threads of a grid */ };

std::atomic<bool> stopping;

/* A grid that is running, and the number of the next block to run. */
struct Job {
  const Grid *grid;
  unsigned long long total, chunk;
  std::atomic<unsigned long long> next;
  std::atomic<lt_EmulatedFault> fault;
  int users; /* threads of the pool that run it; protected by the pool's mutex */
};

/* The calling thread's worker, created at its first grid and freed with the thread. */
struct Owned {
  Worker *worker;
  ~Owned() {
    if (!worker) return;
    set_worker(nullptr);
    worker_release(worker);
    free(worker);
  }
};
thread_local Owned owned;

/* Returns the calling thread's worker, which is created at the first call; NULL when out of
 * memory. */
Worker *this_thread() {
  if (owned.worker) return owned.worker;
  Worker *w = (Worker *)calloc(1, sizeof *w);
  if (!w || !worker_prepare(w)) {
    free(w);
    return nullptr;
  }
  owned.worker = w;
  set_worker(w);
  return w;
}

/* Returns a block's size; it is smaller at the grid's edges when the grid's size is in threads. */
lt_EmulatedIndex size_of_block(const Grid &g, const lt_EmulatedIndex &block) {
  if (!g.threads.x) return g.block;
  auto least = [](unsigned a, unsigned b) { return a < b ? a : b; };
  return {least(g.block.x, g.threads.x - block.x * g.block.x),
          least(g.block.y, g.threads.y - block.y * g.block.y),
          least(g.block.z, g.threads.z - block.z * g.block.z)};
}

/* Runs blocks of the grid until none is left, or a fault occurs. */
void work(Job *job) {
  Worker *w = this_thread();
  if (!w) {
    job->fault = LT_EMULATED_NO_MEMORY;
    return;
  }
  Grid grid = *job->grid;
  const bool reverse = options().reverse, poison = options().poison && grid.shared;
  w->grid = &grid;
  w->fault = LT_EMULATED_OK;
  watch_begin(grid);
  for (;;) {
    unsigned long long from = job->next.fetch_add(job->chunk), to = from + job->chunk;
    if (from >= job->total || job->fault.load(std::memory_order_relaxed)) break;
    if (grid.turn && grid.turn != user_turn(grid.device)) {
      job->fault = LT_EMULATED_STOPPED;
      break;
    }
    if (to > job->total) to = job->total;
    bool ok = true;
    for (unsigned long long i = from; ok && i < to; i++) {
      unsigned long long b = reverse ? job->total - 1 - i : i;
      w->block.x = (unsigned)(b % grid.grid.x);
      w->block.y = (unsigned)(b / grid.grid.x % grid.grid.y);
      w->block.z = (unsigned)(b / grid.grid.x / grid.grid.y);
      w->block_size = size_of_block(grid, w->block);
      if (poison) memset(w->shared, 0xff, grid.shared);
      ok = run_block(w);
    }
    if (!ok) job->fault = w->fault;
    if (stopping.load(std::memory_order_relaxed)) job->fault = LT_EMULATED_UNLOADING;
  }
  watch_end(grid);
}

/* The pool of threads. It is never destroyed: its threads run until the process ends. */
struct Pool {
  std::mutex owner; /* held by the grid that uses the pool */
  std::mutex mutex;
  std::condition_variable wake, idle;
  Job *job = nullptr;
  unsigned long long turn = 0;
  int threads = 0;

  void serve() {
    unsigned long long seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return turn != seen; });
      seen = turn;
      Job *mine = job;
      if (!mine) continue;
      mine->users++;
      lock.unlock();
      work(mine);
      lock.lock();
      if (--mine->users == 0) idle.notify_all();
    }
  }

  /* Gives the job to the pool's threads. */
  void begin_sharing(Job *shared) {
    std::lock_guard<std::mutex> lock(mutex);
    for (; threads < options().workers - 1; threads++) std::thread([this] { serve(); }).detach();
    job = shared;
    turn++;
    wake.notify_all();
  }

  /* Blocks until no thread of the pool runs the job any more. */
  void end_sharing() {
    std::unique_lock<std::mutex> lock(mutex);
    Job *shared = job;
    job = nullptr;
    idle.wait(lock, [&] { return shared->users == 0; });
  }
};

Pool &pool() {
  static Pool *made = new Pool();
  return *made;
}

} // namespace

lt_EmulatedFault run_grid(const Grid &grid) {
  const unsigned workers = (unsigned)options().workers;
  unsigned long long each = 1ull * grid.block.x * grid.block.y * grid.block.z;
  Job job;
  job.grid = &grid;
  job.total = 1ull * grid.grid.x * grid.grid.y * grid.grid.z;
  job.chunk = job.total / (workers * 16) + 1;
  if (job.chunk * each > 65536) job.chunk = each >= 65536 ? 1 : 65536 / each;
  job.next = 0;
  job.fault = LT_EMULATED_OK;
  job.users = 0;
  bool wide =
      workers > 1 && job.total > 1 && job.total * each > POOL_MINIMUM && pool().owner.try_lock();
  if (wide) pool().begin_sharing(&job);
  work(&job);
  if (wide) {
    pool().end_sharing();
    pool().owner.unlock();
  }
  return job.fault;
}

void stop_executor() { stopping = true; }

} // namespace emulation
