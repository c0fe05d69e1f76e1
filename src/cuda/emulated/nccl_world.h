/* nccl_world.h: what the ranks of an emulated communicator share: a segment of memory with channels
 * between them, through which pieces of tensors are copied.
 *
 * The segment is a file in memory, named by the communicator's unique id. Each rank maps it, also
 * where ranks belong to one process. The last rank that attaches removes the name, so that nothing
 * stays behind. Each rank holds a lock on one byte of the file, which the system releases when its
 * process ends in any way: so the others detect that. */
#ifndef LT_EMULATED_NCCL_WORLD_H
#define LT_EMULATED_NCCL_WORLD_H

#include "nccl.h"

#include <atomic>
#include <memory>
#include <stddef.h>
#include <string>

namespace emulated {

enum { NCCL_SLOTS = 4, NCCL_RANKS = 128 };

/* A queue of at most NCCL_SLOTS pieces from one rank to another: one writes, the other reads. */
struct Channel {
  alignas(64) std::atomic<unsigned long long> written; /* number of pieces so far */
  alignas(64) std::atomic<unsigned long long> read;
  struct {
    size_t bytes;
    unsigned what; /* the operation that the piece belongs to, see nccl_tasks.h */
  } piece[NCCL_SLOTS];

  bool is_empty() const { return written.load(std::memory_order_acquire) == read.load(); }
  bool is_full() const {
    return written.load() - read.load(std::memory_order_acquire) == NCCL_SLOTS;
  }
};

/* The communicator of a rank: its mapping of the segment. */
class World {
public:
  const int ranks, rank;

  /* Attaches a rank, which uses the device with that number in the machine. Does not block. On
   * failure returns the error with its text in `why`. */
  static ncclResult_t attach(const ncclUniqueId &id, int ranks, int rank, int physical,
                             std::shared_ptr<World> &out, std::string &why);
  /* Blocks until all ranks have attached. */
  ncclResult_t wait_for_all(std::string &why);
  /* Marks this rank as left, or, with an error, as failed. `cause`: the rank that caused the error,
   * or -1. The first cause is kept. */
  void leave();
  void fail(int cause);
  /* Returns true when a rank has left, has failed, or its process has ended. */
  bool is_gone(int other) const;
  /* Describes why a rank is gone. */
  std::string describe_gone(int other) const;

  /* Return the channel to the next rank in the ring, and the one for messages. */
  Channel &ring(int from) const;
  Channel &direct(int from, int to) const;
  char *slot(const Channel &channel, unsigned long long number) const;
  size_t slot_bytes() const { return slot_bytes_; }

  World(const World &) = delete;
  World &operator=(const World &) = delete;
  ~World();

private:
  struct Header;
  World(int count, int own) : ranks(count), rank(own) {}
  ncclResult_t map(std::string &why);
  ncclResult_t join(int physical, std::string &why);
  bool has_duplicate(std::string &why) const;
  bool is_locked(int other) const;

  std::string path_;
  int file_ = -1;
  Header *header_ = nullptr;
  Channel *channels_ = nullptr;
  char *data_ = nullptr;
  size_t size_ = 0, slot_bytes_ = 0;
};

/* Waits between two looks at shared memory, longer each time: first the processor is given to other
 * threads, then the thread sleeps. */
class Backoff {
public:
  void pause();
  void reset() { tries_ = 0; }
  /* Returns true at intervals, when it is time to check whether the other ranks still run. */
  bool is_check_due() const { return tries_ >= CHECK && tries_ % CHECK == 0; }

private:
  enum { YIELDS = 50, CHECK = 100 };
  unsigned tries_ = 0;
};

} // namespace emulated

#endif
