/* buffers.cpp: buffers. A shared buffer is mapped twice, so its address on the GPU is not its
 * address for the host. */
#include "runtime.h"

using namespace emulated;

lt_MetalBuffer *lt_metal_buffer_new(lt_MetalDevice *device, size_t nbytes, lt_MetalStorage storage,
                                    lt_MetalError *error) {
  if (fails(Fault::BUFFER, error)) return nullptr;
  if (nbytes == 0 || nbytes > options().memory) {
    set_error(error, nbytes ? LT_METAL_NO_MEMORY : LT_METAL_INVALID,
              "a buffer has 1 to %zu bytes, not %zu", options().memory, nbytes);
    return nullptr;
  }
  void *contents = nullptr;
  void *address = storage == LT_METAL_SHARED
                      ? memory_allocate_shared(&device->memory, nbytes, &contents)
                      : memory_allocate(&device->memory, nbytes);
  if (!address) {
    set_error(error, LT_METAL_NO_MEMORY, "out of memory for a buffer of %zu bytes", nbytes);
    return nullptr;
  }
  Buffer *b = new Buffer();
  b->address = (uint64_t)(uintptr_t)address;
  b->contents = contents;
  b->size = nbytes;
  b->device = device;
  return b;
}

void lt_metal_buffer_free(lt_MetalBuffer *buffer) {
  Buffer *b = (Buffer *)buffer;
  if (!b) return;
  memory_free(&b->device->memory, (void *)(uintptr_t)b->address);
  delete b;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

Range emulated::range_of(const lt_MetalBuffer *buffer, size_t offset, size_t nbytes,
                         lt_MetalError *error) {
  const Buffer *b = (const Buffer *)buffer;
  if (nbytes > b->size || offset > b->size - nbytes)
    set_error(error, LT_METAL_INVALID, "the bytes from %zu to %zu are not in a buffer of %zu bytes",
              offset, offset + nbytes, b->size);
  char *base = (char *)(uintptr_t)b->address;
  return {&b->device->memory, base, base + offset, nbytes};
}

bool emulated::is_accessible(const Range &range, lt_MetalError *error) {
  if (is_live(range.memory, range.at, range.size)) return true;
  set_error(error, LT_METAL_PAGE_FAULT, "page fault: a command uses a buffer that was freed");
  return false;
}
