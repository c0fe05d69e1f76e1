/* memory.cpp: see memory.h. */
#include "memory.h"

#include "options.h"

#include <fcntl.h>
#include <iterator>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulation {
namespace {

enum : size_t { GRAIN = 512 };

size_t pages_of(size_t n) { return round_up(n, page_size()); }

/* The memory of each device that was started. */
Memory *started[MAX_DEVICES];

/* Sets the protection of the allocations that no operation uses itself (strict mode). */
void protect_all(Memory *m, int protection) {
  for (auto &a : m->live)
    if (!a.second.open) mprotect(a.first, pages_of(a.second.size), protection);
}

/* Adds a free range and merges it with its neighbours. */
void add_hole(Memory *m, char *from, size_t n) {
  auto hole = m->holes.emplace(from, n).first;
  auto next = std::next(hole);
  if (next != m->holes.end() && from + n == next->first) {
    hole->second += next->second;
    m->holes.erase(next);
  }
  if (hole == m->holes.begin()) return;
  auto before = std::prev(hole);
  if (before->first + before->second == from) {
    before->second += hole->second;
    m->holes.erase(hole);
  }
}

/* Makes pages inaccessible and drops their contents. */
void close_pages(char *from, size_t n, bool shared) {
  if (shared) {
    mmap(from, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return;
  }
  madvise(from, n, MADV_DONTNEED);
  mprotect(from, n, PROT_NONE);
}

/* Frees an allocation. Requires the mutex. */
void release(Memory *m, std::map<char *, Allocation>::iterator allocation) {
  char *from = allocation->first;
  Allocation a = allocation->second;
  size_t pages = pages_of(a.size);
  m->live.erase(allocation);
  m->used -= round_up(a.size, GRAIN);
  close_pages(from, pages, a.host);
  if (a.host) munmap(a.host, pages);
  add_hole(m, from, pages + page_size());
}

/* Returns a file without a name, of n bytes; -1 on failure. */
int make_file(size_t n) {
#ifdef __linux__
  int file = memfd_create("lutra-emulated", MFD_CLOEXEC);
#else
  static std::mutex mutex;
  static int number;
  char name[64];
  Lock lock(mutex);
  snprintf(name, sizeof name, "/lutra-%d-%d", (int)getpid(), number++);
  int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file >= 0) shm_unlink(name);
#endif
  if (file >= 0 && ftruncate(file, (off_t)n) != 0) {
    close(file);
    return -1;
  }
  return file;
}

/* Makes the pages at `at` accessible: new memory, which is also mapped for the host if `host`. */
bool open_pages(char *at, size_t pages, void **host) {
  if (!host) return mprotect(at, pages, PROT_READ | PROT_WRITE) == 0;
  int file = make_file(pages);
  if (file < 0) return false;
  void *second = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  bool ok = second != MAP_FAILED &&
            mmap(at, pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  if (!ok && second != MAP_FAILED) munmap(second, pages);
  close(file);
  *host = ok ? second : nullptr;
  return ok;
}

/* Uses the first free range that is large enough, together with an inaccessible page after it. */
void *allocate(Memory *m, size_t n, void **host) {
  Lock lock(m->mutex);
  if (n > m->capacity) return nullptr;
  size_t counted = round_up(n, GRAIN), pages = pages_of(n), guard = page_size();
  if (counted > m->capacity - m->used) return nullptr;
  for (auto hole = m->holes.begin(); hole != m->holes.end(); ++hole) {
    if (hole->second < pages + guard) continue;
    char *at = hole->first;
    size_t left = hole->second - pages - guard;
    if (!open_pages(at, pages, host)) return nullptr;
    m->holes.erase(hole);
    if (left) m->holes[at + pages + guard] = left;
    m->live[at] = {n, 0, host ? *host : nullptr};
    m->used += counted;
    if (options().poison) memset(at, 0xff, pages);
    if (options().strict && !m->open) mprotect(at, pages, PROT_NONE);
    return at;
  }
  return nullptr;
}

} // namespace

size_t page_size() {
  static const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  return size;
}

void memory_start(Memory *m, int device, size_t capacity) {
  m->device = device;
  m->capacity = capacity;
  m->span = round_up(2 * m->capacity + ((size_t)1 << 30), (size_t)1 << 30);
  m->base =
      (char *)mmap(nullptr, m->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m->base == (char *)MAP_FAILED) {
    perror("emulation: addresses for a device");
    m->base = nullptr;
    m->span = m->capacity = 0;
    return;
  }
#ifdef MADV_HUGEPAGE
  /* The cost of changing the protection of touched memory is proportional to its number of
   * pages. */
  if (options().strict) madvise(m->base, m->span, MADV_HUGEPAGE);
#endif
  m->holes[m->base] = m->span;
  started[device] = m;
}

Memory *memory_of(const void *address) {
  for (Memory *m : started)
    if (m && (char *)address >= m->base && (char *)address < m->base + m->span) return m;
  return nullptr;
}

bool is_live(Memory *m, const void *address, size_t n) {
  Lock lock(m->mutex);
  auto a = entry_of(m->live, address);
  return a != m->live.end() && n <= a->second.size &&
         (size_t)((char *)address - a->first) <= a->second.size - n;
}

void *memory_allocate(Memory *m, size_t n) { return allocate(m, n, nullptr); }

void *memory_allocate_shared(Memory *m, size_t n, void **host) { return allocate(m, n, host); }

bool memory_free(Memory *m, void *address) {
  Lock lock(m->mutex);
  auto allocation = m->live.find((char *)address);
  if (allocation == m->live.end()) return false;
  release(m, allocation);
  return true;
}

void memory_free_all(Memory *m) {
  Lock lock(m->mutex);
  while (!m->live.empty()) release(m, m->live.begin());
}

size_t memory_used(Memory *m, size_t *capacity) {
  Lock lock(m->mutex);
  *capacity = m->capacity;
  return m->used;
}

Access::Access(unsigned devices) : devices_(options().strict ? devices : 0), memory_(nullptr) {
  for (int i = 0; devices_ && i < MAX_DEVICES; i++) {
    if (!(devices_ >> i & 1)) continue;
    Memory *m = started[i];
    Lock lock(m->mutex);
    if (m->open++ == 0) protect_all(m, PROT_READ | PROT_WRITE);
  }
}

Access::Access(Memory *m, std::vector<void *> allocations)
    : devices_(0), memory_(options().strict ? m : nullptr), allocations_(std::move(allocations)) {
  if (!memory_) return;
  Lock lock(m->mutex);
  for (void *address : allocations_) {
    auto a = m->live.find((char *)address);
    if (a != m->live.end() && a->second.open++ == 0 && !m->open)
      mprotect(a->first, pages_of(a->second.size), PROT_READ | PROT_WRITE);
  }
}

Access::~Access() {
  for (int i = 0; devices_ && i < MAX_DEVICES; i++) {
    if (!(devices_ >> i & 1)) continue;
    Memory *m = started[i];
    Lock lock(m->mutex);
    if (--m->open == 0) protect_all(m, PROT_NONE);
  }
  if (!memory_) return;
  Lock lock(memory_->mutex);
  for (void *address : allocations_) {
    auto a = memory_->live.find((char *)address);
    if (a == memory_->live.end() || a->second.open == 0) continue; /* freed during the operation */
    if (--a->second.open == 0 && !memory_->open)
      mprotect(a->first, pages_of(a->second.size), PROT_NONE);
  }
}

/* Called by a signal handler, so it takes no locks: the text may be slightly out of date. */
bool describe_address(const void *address, char *text, size_t size) {
  Memory *m = memory_of(address);
  if (!m) return false;
  auto a = entry_of(m->live, address);
  bool live = a != m->live.end() && (char *)address < a->first + a->second.size;
  snprintf(text, size, "memory of emulated device %s:%d at %p (%s)", device_type, m->device,
           address, live ? "a live allocation" : "no allocation");
  return true;
}

} // namespace emulation
