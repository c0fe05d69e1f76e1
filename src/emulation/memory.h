/* memory.h: the memory of an emulated device.
 *
 * A device has a range of addresses, larger than its memory, in which only live allocations are
 * accessible. Allocations begin on pages of their own, with at least one inaccessible page between
 * them, and freed pages are unmapped and made inaccessible. So a kernel that accesses memory past
 * an allocation's last page, or after it was freed, faults. In strict mode an allocation is
 * accessible only while an operation of the device that uses it is queued or running.
 *
 * Shared memory is mapped twice: at the device's address, as above, and at an address of the host,
 * which is always accessible.
 */
#ifndef LT_EMULATION_MEMORY_H
#define LT_EMULATION_MEMORY_H

#include <map>
#include <mutex>
#include <stddef.h>
#include <utility>
#include <vector>

namespace emulation {

typedef std::unique_lock<std::mutex> Lock;

struct Allocation {
  size_t size; /* the requested bytes */
  int open;    /* strict: number of operations that may access it now */
  void *host;  /* shared memory: its address for the host; else NULL */
};

/* A device's memory. */
struct Memory {
  int device;
  std::mutex mutex; /* protects the members below */
  char *base;       /* a range of addresses, inaccessible except for live allocations */
  size_t span, capacity, used;
  std::map<char *, Allocation> live;
  std::map<char *, size_t> holes; /* free addresses */
  int open;                       /* strict: number of operations that may access all of it now */
};

size_t page_size();
inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* Reserves the addresses of the device with this index, which has `capacity` bytes. Where that
 * fails, it has no memory. */
void memory_start(Memory *m, int device, size_t capacity);
/* Returns the memory that an address belongs to, or NULL. */
Memory *memory_of(const void *address);
/* Returns true when the n bytes from there are in one live allocation. */
bool is_live(Memory *m, const void *address, size_t n);
/* Allocate memory; NULL: out of memory. Shared memory is stored in *host, too. */
void *memory_allocate(Memory *m, size_t n);
void *memory_allocate_shared(Memory *m, size_t n, void **host);
/* Frees an allocation; false: not an allocation's address. */
bool memory_free(Memory *m, void *address);
void memory_free_all(Memory *m);
/* Returns the number of bytes in use, and the capacity. */
size_t memory_used(Memory *m, size_t *capacity);

/* Access of operations to device memory in strict mode, where host code has none: an object lives
 * from the call until the operation has ended. */
class Access {
public:
  explicit Access(unsigned devices); /* all memory of these; bit i: device i */
  Access(Memory *m, std::vector<void *> allocations);
  Access(Access &&other) noexcept
      : devices_(other.devices_), memory_(other.memory_),
        allocations_(std::move(other.allocations_)) {
    other.devices_ = 0;
    other.memory_ = nullptr;
  }
  Access(const Access &) = delete;
  Access &operator=(const Access &) = delete;
  ~Access();

private:
  unsigned devices_;
  Memory *memory_;
  std::vector<void *> allocations_;
};

/* Describes an address in a device's memory; false for other addresses. May be called in a signal
 * handler. */
bool describe_address(const void *address, char *text, size_t size);

/* Returns the last entry of a map at or before an address. */
template <class Map> typename Map::iterator entry_of(Map &map, const void *address) {
  auto after = map.upper_bound((char *)address);
  return after == map.begin() ? map.end() : std::prev(after);
}

} // namespace emulation

#endif
