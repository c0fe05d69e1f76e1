/* memory.cpp: the memory of devices, and pinned host memory.
 *
 * A device has a range of addresses, larger than its memory, in which only live allocations are
 * accessible. Allocations begin on pages of their own, with at least one inaccessible page between
 * them, and freed pages are unmapped and made inaccessible. So a kernel that accesses memory past
 * an allocation's last page, or after it was freed, faults.
 */
#include "runtime.h"

#include "executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace emulated {
namespace {

enum : size_t { PAGE = 4096, GRAIN = 512 };

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

struct Pinned {
  size_t size;
  bool registered; /* the program's own memory */
};
std::mutex pinned_mutex;
std::map<char *, Pinned> &pinned = *new std::map<char *, Pinned>();

/* Returns the last entry at or before an address. */
template <class Map> typename Map::iterator entry_of(Map &map, const void *address) {
  auto after = map.upper_bound((char *)address);
  return after == map.begin() ? map.end() : std::prev(after);
}

/* Sets the protection of all live allocations (strict mode). */
void protect_all(Device *d, int protection) {
  for (auto &a : d->live) mprotect(a.first, round_up(a.second, PAGE), protection);
}

/* Adds a free range and merges it with its neighbours. */
void add_hole(Device *d, char *from, size_t n) {
  auto hole = d->holes.emplace(from, n).first;
  auto next = std::next(hole);
  if (next != d->holes.end() && from + n == next->first) {
    hole->second += next->second;
    d->holes.erase(next);
  }
  if (hole == d->holes.begin()) return;
  auto before = std::prev(hole);
  if (before->first + before->second == from) {
    before->second += hole->second;
    d->holes.erase(hole);
  }
}

/* Frees an allocation. Requires the device's mutex. */
void release(Device *d, std::map<char *, size_t>::iterator allocation) {
  char *from = allocation->first;
  size_t n = allocation->second, pages = round_up(n, PAGE);
  d->live.erase(allocation);
  d->used -= round_up(n, GRAIN);
  madvise(from, pages, MADV_DONTNEED);
  mprotect(from, pages, PROT_NONE);
  add_hole(d, from, pages + PAGE);
}

} // namespace

void memory_start(Device *d) {
  d->capacity = options().memory;
  d->span = round_up(2 * d->capacity + ((size_t)1 << 30), (size_t)1 << 30);
  d->base =
      (char *)mmap(nullptr, d->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (d->base == (char *)MAP_FAILED) {
    perror("emulated CUDA: addresses for a device");
    d->base = nullptr;
    d->span = d->capacity = 0;
    return;
  }
#ifdef MADV_HUGEPAGE
  /* The cost of changing the protection of touched memory is proportional to its number of
   * pages. */
  if (options().strict) madvise(d->base, d->span, MADV_HUGEPAGE);
#endif
  d->holes[d->base] = d->span;
}

Device *device_of(const void *address) {
  for (int i = 0; i < device_count(); i++) {
    Device &d = device(i);
    if ((char *)address >= d.base && (char *)address < d.base + d.span) return &d;
  }
  return nullptr;
}

bool is_live(Device *d, const void *address, size_t n) {
  Lock lock(d->mutex);
  auto a = entry_of(d->live, address);
  return a != d->live.end() && n <= a->second &&
         (size_t)((char *)address - a->first) <= a->second - n;
}

bool is_pinned(const void *address, size_t n) {
  Lock lock(pinned_mutex);
  auto a = entry_of(pinned, address);
  return a != pinned.end() && n <= a->second.size &&
         (size_t)((char *)address - a->first) <= a->second.size - n;
}

/* Uses the first free range that is large enough, together with an inaccessible page after it. */
void *memory_allocate(Device *d, size_t n) {
  Lock lock(d->mutex);
  if (n > d->capacity) return nullptr;
  size_t counted = round_up(n, GRAIN), pages = round_up(n, PAGE);
  if (counted > d->capacity - d->used) return nullptr;
  for (auto hole = d->holes.begin(); hole != d->holes.end(); ++hole) {
    if (hole->second < pages + PAGE) continue;
    char *at = hole->first;
    size_t left = hole->second - pages - PAGE;
    if (mprotect(at, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
    d->holes.erase(hole);
    if (left) d->holes[at + pages + PAGE] = left;
    d->live[at] = n;
    d->used += counted;
    if (options().poison) memset(at, 0xff, pages);
    if (options().strict && !d->open) mprotect(at, pages, PROT_NONE);
    return at;
  }
  return nullptr;
}

bool memory_free(Device *d, void *address) {
  Lock lock(d->mutex);
  auto allocation = d->live.find((char *)address);
  if (allocation == d->live.end()) return false;
  release(d, allocation);
  return true;
}

void memory_free_all(Device *d) {
  Lock lock(d->mutex);
  while (!d->live.empty()) release(d, d->live.begin());
}

Access::Access(unsigned devices) : devices_(options().strict ? devices : 0) {
  for (int i = 0; i < device_count(); i++) {
    if (!(devices_ >> i & 1)) continue;
    Lock lock(device(i).mutex);
    if (device(i).open++ == 0) protect_all(&device(i), PROT_READ | PROT_WRITE);
  }
}

Access::~Access() {
  for (int i = 0; devices_ && i < device_count(); i++) {
    if (!(devices_ >> i & 1)) continue;
    Lock lock(device(i).mutex);
    if (--device(i).open == 0) protect_all(&device(i), PROT_NONE);
  }
}

unsigned accessible_devices(const Device &d) { return 1u << d.index | d.peers.load(); }

/* Called by a signal handler, so it takes no locks: the text may be slightly out of date. */
bool describe_address(const void *address, char *text, size_t size) {
  Device *d = device_of(address);
  if (!d) return false;
  auto a = entry_of(d->live, address);
  bool live = a != d->live.end() && (char *)address < a->first + a->second;
  snprintf(text, size, "memory of emulated device cuda:%d at %p (%s)", d->index, address,
           live ? "a live allocation" : "no allocation");
  return true;
}

} // namespace emulated

using namespace emulated;

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  LT_ENTER();
  LT_NEED(free && total, cudaErrorInvalidValue);
  Device &d = device(current_device());
  Lock lock(d.mutex);
  *total = d.capacity;
  *free = d.capacity - d.used;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) {
  LT_ENTER();
  LT_NEED(p, cudaErrorInvalidValue);
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  LT_NEED(!injected(Fault::OOM), cudaErrorMemoryAllocation);
  *p = memory_allocate(&device(current_device()), n);
  LT_NEED(*p, cudaErrorMemoryAllocation);
  return cudaSuccess;
}

/* Synchronizes with the device, as the real function does. */
cudaError_t cudaFree(void *p) {
  LT_ENTER();
  if (!p) return cudaSuccess;
  Device *d = device_of(p);
  LT_NEED(d, cudaErrorInvalidValue);
  wait_for_device(*d);
  LT_NEED(memory_free(d, p), cudaErrorInvalidValue);
  return set_last_error(device_error(*d));
}

cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t stream) {
  LT_ENTER();
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_NEED(p, cudaErrorInvalidValue);
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  LT_NEED(!injected(Fault::OOM), cudaErrorMemoryAllocation);
  *p = memory_allocate(&device_of_stream(s), n);
  LT_NEED(*p, cudaErrorMemoryAllocation);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
  LT_ENTER();
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  Device *d = device_of(p);
  LT_NEED(d && is_live(d, p, 1), cudaErrorInvalidValue);
  enqueue_always(s, [d, p] { memory_free(d, p); });
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) {
  LT_ENTER();
  LT_NEED(p, cudaErrorInvalidValue);
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  LT_NEED(!injected(Fault::HOST) && n < SIZE_MAX / 2, cudaErrorMemoryAllocation);
  void *memory = aligned_alloc(PAGE, round_up(n, PAGE));
  LT_NEED(memory, cudaErrorMemoryAllocation);
  if (options().poison) memset(memory, 0xff, n);
  Lock lock(pinned_mutex);
  pinned[(char *)memory] = {n, false};
  *p = memory;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void **p, size_t n) { return cudaHostAlloc(p, n, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void *p) {
  LT_ENTER();
  if (!p) return cudaSuccess;
  for (int i = 0; i < device_count(); i++) wait_for_device(device(i));
  Lock lock(pinned_mutex);
  auto a = pinned.find((char *)p);
  LT_NEED(a != pinned.end() && !a->second.registered, cudaErrorInvalidValue);
  pinned.erase(a);
  free(p);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **on_device, void *p, unsigned flags) {
  LT_ENTER();
  LT_NEED(on_device && flags == 0 && is_pinned(p, 1), cudaErrorInvalidValue);
  *on_device = p;
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *p) {
  LT_ENTER();
  LT_NEED(flags && is_pinned(p, 1), cudaErrorInvalidValue);
  *flags = cudaHostAllocMapped | cudaHostAllocPortable;
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t n, unsigned) {
  LT_ENTER();
  LT_NEED(p && n && !device_of(p), cudaErrorInvalidValue);
  LT_NEED(!injected(Fault::HOST), cudaErrorMemoryAllocation);
  Lock lock(pinned_mutex);
  auto before = entry_of(pinned, (char *)p + n - 1);
  LT_NEED(before == pinned.end() || before->first + before->second.size <= (char *)p,
          cudaErrorHostMemoryAlreadyRegistered);
  pinned[(char *)p] = {n, true};
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p) {
  LT_ENTER();
  for (int i = 0; i < device_count(); i++) wait_for_device(device(i));
  Lock lock(pinned_mutex);
  auto a = pinned.find((char *)p);
  LT_NEED(a != pinned.end() && a->second.registered, cudaErrorHostMemoryNotRegistered);
  pinned.erase(a);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p) {
  LT_ENTER();
  LT_NEED(out, cudaErrorInvalidValue);
  if (Device *d = device_of(p))
    *out = {cudaMemoryTypeDevice, d->index, (void *)p, nullptr};
  else if (is_pinned(p, 1))
    *out = {cudaMemoryTypeHost, current_device(), (void *)p, (void *)p};
  else
    *out = {cudaMemoryTypeUnregistered, -2, nullptr, nullptr};
  return cudaSuccess;
}
