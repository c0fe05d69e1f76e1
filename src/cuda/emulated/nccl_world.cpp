/* nccl_world.cpp: see nccl_world.h. */
#include "nccl_world.h"

#include "emulation/queue.h"

#include <chrono>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace emulated {

using emulation::unloading;

namespace {

enum : size_t { SEGMENT = (size_t)32 << 20, SLOT = (size_t)64 << 10, SMALLEST_SLOT = 256 };
enum { INIT_SECONDS = 120, LOCK_TRIES = 1000 /* milliseconds */ };
enum State { ABSENT, ATTACHED, LEFT, FAILED };
const char PREFIX[] = "lutra-nccl-";

std::string system_error(const char *doing, const std::string &path) {
  return std::string("cannot ") + doing + " " + path + ": " + strerror(errno);
}

/* Returns the folder for segments: in memory, where the system has it. */
const char *folder() {
  static const char *found = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return found;
}

/* Returns a number for this machine; NCCL_HOSTID replaces its name, as in NCCL. */
unsigned long long host_number() {
  char name[256] = "";
  const char *id = getenv("NCCL_HOSTID");
  if (!id || !*id) {
    gethostname(name, sizeof name - 1);
    id = name;
  }
  unsigned long long hash = 14695981039346656037ull;
  for (; *id; id++) hash = (hash ^ (unsigned char)*id) * 1099511628211ull;
  return hash;
}

/* Returns the bytes of a slot: NCCL_BUFFSIZE holds all slots of a channel. */
size_t choose_slot(size_t channels) {
  size_t slot = SEGMENT / (channels * NCCL_SLOTS);
  const char *text = getenv("NCCL_BUFFSIZE");
  if (slot > SLOT) slot = SLOT;
  if (text && atoll(text) > 0 && (size_t)atoll(text) / NCCL_SLOTS < slot)
    slot = (size_t)atoll(text) / NCCL_SLOTS;
  slot -= slot % 64;
  return slot < SMALLEST_SLOT ? (size_t)SMALLEST_SLOT : slot;
}

/* Locks of open file descriptions, which also exclude each other within a process. Where the system
 * has none, a rank counts as ended when its process does not exist. */
#ifdef F_OFD_SETLK
enum { TRY_LOCK = F_OFD_SETLK, GET_LOCK = F_OFD_GETLK, HAS_LOCKS = 1 };
#else
enum { TRY_LOCK = F_SETLK, GET_LOCK = F_GETLK, HAS_LOCKS = 0 };
#endif
struct flock lock_of(off_t at, off_t bytes) {
  struct flock lock;
  memset(&lock, 0, sizeof lock);
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = bytes; /* 0: all */
  return lock;
}

/* Removes a segment that no rank holds. While it is removed all of it is locked. */
void remove_abandoned(const std::string &path) {
  int file = HAS_LOCKS ? open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (file < 0) return;
  struct flock all = lock_of(0, 0);
  if (fcntl(file, TRY_LOCK, &all) == 0) unlink(path.c_str());
  close(file);
}

/* Removes the segments of jobs whose processes were all killed before every rank had attached. */
void sweep() {
  DIR *dir = opendir(folder());
  if (!dir) return;
  while (struct dirent *entry = readdir(dir))
    if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0)
      remove_abandoned(std::string(folder()) + "/" + entry->d_name);
  closedir(dir);
}

/* Opens the segment and locks the rank's byte. Returns the descriptor, or -1 with the reason. */
int open_locked(const std::string &path, int rank, std::string &why) {
  for (int i = 0; i < LOCK_TRIES; i++) {
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
      why = system_error("open", path);
      return -1;
    }
    struct flock own = lock_of(rank, 1);
    struct stat info;
    bool locked = !HAS_LOCKS || fcntl(file, TRY_LOCK, &own) == 0;
    /* Another process may have removed it as abandoned before it was locked. */
    if (locked && fstat(file, &info) == 0 && info.st_nlink > 0) return file;
    close(file);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  why = "rank " + std::to_string(rank) + " is in use already";
  return -1;
}

} // namespace

struct World::Header {
  std::atomic<int> ranks, attached, cause; /* cause: 1 + the rank that failed first; 0: none */
  std::atomic<size_t> slot_bytes;
  struct Member {
    std::atomic<int> state;
    int physical;
    long process;
    unsigned long long host;
  } member[NCCL_RANKS];
};

void Backoff::pause() {
  tries_++;
  if (tries_ < YIELDS) {
    std::this_thread::yield();
    return;
  }
  unsigned slept = tries_ - YIELDS;
  unsigned sleep = tries_ > 2 * CHECK ? 1000 : 20u << (slept > 10 ? 4 : slept / 2);
  std::this_thread::sleep_for(std::chrono::microseconds(sleep));
}

/* ---- start and end --------------------------------------------------------------------------- */

/* Maps the segment. The file is allocated in full, so that later writes cannot fail. */
ncclResult_t World::map(std::string &why) {
  size_t count = (size_t)ranks * (size_t)(ranks + 1), head = (sizeof(Header) + 63) / 64 * 64;
  slot_bytes_ = choose_slot(count);
  size_ = head + count * (sizeof(Channel) + NCCL_SLOTS * slot_bytes_);
#ifdef __linux__
  errno = posix_fallocate(file_, 0, (off_t)size_);
  bool sized = errno == 0;
#else
  bool sized = ftruncate(file_, (off_t)size_) == 0;
#endif
  void *memory =
      sized ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0) : MAP_FAILED;
  if (memory == MAP_FAILED) {
    why = system_error("allocate shared memory in", path_);
    return ncclSystemError;
  }
  header_ = (Header *)memory;
  channels_ = (Channel *)((char *)memory + head);
  data_ = (char *)(channels_ + count);
  return ncclSuccess;
}

/* Stores a value that must be the same on all ranks. Returns false when it is not. */
template <class T> static bool agree(std::atomic<T> &shared, T value) {
  T before = 0;
  return shared.compare_exchange_strong(before, value) || before == value;
}

/* Enters this rank in the segment. */
ncclResult_t World::join(int physical, std::string &why) {
  if (!agree(header_->ranks, ranks) || !agree(header_->slot_bytes, slot_bytes_)) {
    why = "the ranks of the communicator give different numbers of ranks or NCCL_BUFFSIZE";
    return ncclInvalidArgument;
  }
  Header::Member &own = header_->member[rank];
  if (own.state.load() != ABSENT) {
    why = "rank " + std::to_string(rank) + " has been in use already";
    return ncclInvalidArgument;
  }
  own.physical = physical;
  own.process = (long)getpid();
  own.host = host_number();
  own.state = ATTACHED;
  if (header_->attached.fetch_add(1) + 1 == ranks) unlink(path_.c_str());
  return ncclSuccess;
}

ncclResult_t World::attach(const ncclUniqueId &id, int ranks, int rank, int physical,
                           std::shared_ptr<World> &out, std::string &why) {
  size_t length = strnlen(id.internal, sizeof id.internal);
  if (length == sizeof id.internal || strncmp(id.internal, PREFIX, sizeof PREFIX - 1) != 0 ||
      strchr(id.internal, '/')) {
    why = "the unique id is not one of ncclGetUniqueId";
    return ncclInvalidArgument;
  }
  sweep();
  std::shared_ptr<World> w(new World(ranks, rank));
  w->path_ = std::string(folder()) + "/" + id.internal;
  w->file_ = open_locked(w->path_, rank, why);
  if (w->file_ < 0) return ncclSystemError;
  ncclResult_t status = w->map(why);
  if (status == ncclSuccess) status = w->join(physical, why);
  if (status == ncclSuccess) {
    out = w;
    return status;
  }
  std::string path = w->path_;
  w.reset();
  remove_abandoned(path); /* unless other ranks use it */
  return status;
}

/* Returns true when two ranks use the same device. */
bool World::has_duplicate(std::string &why) const {
  for (int i = 0; i < ranks; i++)
    for (int j = i + 1; j < ranks; j++) {
      const Header::Member &a = header_->member[i], &b = header_->member[j];
      if (a.physical != b.physical || a.host != b.host) continue;
      why = "ranks " + std::to_string(i) + " and " + std::to_string(j) +
            " use the same device, cuda:" + std::to_string(a.physical);
      return true;
    }
  return false;
}

ncclResult_t World::wait_for_all(std::string &why) {
  Backoff backoff;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(INIT_SECONDS);
  while (header_->attached.load() < ranks) {
    backoff.pause();
    if (unloading()) return ncclSystemError;
    if (!backoff.is_check_due()) continue;
    for (int i = 0; i < ranks; i++)
      if (header_->member[i].state.load() != ABSENT && is_gone(i)) {
        why = describe_gone(i);
        fail(i);
        unlink(path_.c_str());
        return ncclRemoteError;
      }
    if (std::chrono::steady_clock::now() < end) continue;
    why = std::to_string(header_->attached.load()) + " of " + std::to_string(ranks) +
          " ranks have created the communicator after " + std::to_string(INIT_SECONDS) + " s";
    fail(rank);
    unlink(path_.c_str());
    return ncclSystemError;
  }
  return has_duplicate(why) ? ncclInvalidUsage : ncclSuccess;
}

void World::leave() {
  int attached = ATTACHED;
  header_->member[rank].state.compare_exchange_strong(attached, LEFT);
}

void World::fail(int cause) {
  int none = 0;
  if (cause >= 0) header_->cause.compare_exchange_strong(none, cause + 1);
  int attached = ATTACHED;
  header_->member[rank].state.compare_exchange_strong(attached, FAILED);
}

World::~World() {
  if (header_) {
    if (header_->member[rank].state.load() == ATTACHED) leave();
    munmap((void *)header_, size_);
  }
  if (file_ >= 0) close(file_);
}

/* ---- other ranks ----------------------------------------------------------------------------- */

/* Returns true when the rank's process, which has attached, holds its lock. */
bool World::is_locked(int other) const {
  if (other == rank) return true;
  if (!HAS_LOCKS) return kill((pid_t)header_->member[other].process, 0) == 0;
  struct flock lock = lock_of(other, 1);
  return fcntl(file_, GET_LOCK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool World::is_gone(int other) const {
  int state = header_->member[other].state.load();
  return state == LEFT || state == FAILED || (state == ATTACHED && !is_locked(other));
}

std::string World::describe_gone(int other) const {
  int cause = header_->cause.load() - 1;
  if (cause < 0) cause = other;
  const Header::Member &m = header_->member[cause];
  std::string who = "rank " + std::to_string(cause);
  switch (m.state.load()) {
  case LEFT:
    return who + " has destroyed its communicator";
  case FAILED:
    return who + " has ended its communicator after an error";
  default:
    return who + " (process " + std::to_string(m.process) + ") has ended";
  }
}

/* ---- channels -------------------------------------------------------------------------------- */

Channel &World::ring(int from) const { return channels_[from]; }

Channel &World::direct(int from, int to) const { return channels_[ranks * (from + 1) + to]; }

char *World::slot(const Channel &channel, unsigned long long number) const {
  size_t index = (size_t)(&channel - channels_);
  return data_ + (index * NCCL_SLOTS + number % NCCL_SLOTS) * slot_bytes_;
}

} // namespace emulated
