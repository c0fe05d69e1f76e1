/* memory.cpp: allocation on devices, and pinned host memory. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

namespace emulated {
namespace {

struct Pinned {
  size_t size;
  bool registered; /* the program's own memory */
};
std::mutex pinned_mutex;
std::map<char *, Pinned> &pinned = *new std::map<char *, Pinned>();

} // namespace

Device *device_of(const void *address) {
  Memory *m = memory_of(address);
  return m ? &device(m->device) : nullptr;
}

bool is_pinned(const void *address, size_t n) {
  Lock lock(pinned_mutex);
  auto a = entry_of(pinned, address);
  return a != pinned.end() && n <= a->second.size &&
         (size_t)((char *)address - a->first) <= a->second.size - n;
}

unsigned accessible_devices(const Device &d) { return 1u << d.index | d.peers.load(); }

} // namespace emulated

using namespace emulated;

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  LT_ENTER();
  LT_NEED(free && total, cudaErrorInvalidValue);
  size_t used = memory_used(&device(current_device()).memory, total);
  *free = *total - used;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  LT_NEED(p, cudaErrorInvalidValue);
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  LT_NEED(!injected(Fault::OOM), cudaErrorMemoryAllocation);
  *p = memory_allocate(&device(current_device()).memory, n);
  LT_NEED(*p, cudaErrorMemoryAllocation);
  return cudaSuccess;
}

/* Synchronizes with the device, as the real function does. */
cudaError_t cudaFree(void *p) {
  LT_ENTER();
  if (!p) return cudaSuccess;
  LT_CHECK(refuse_unsafe());
  Device *d = device_of(p);
  LT_NEED(d, cudaErrorInvalidValue);
  wait_for_device(*d);
  LT_NEED(memory_free(&d->memory, p), cudaErrorInvalidValue);
  return set_last_error(device_error(*d));
}

cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t stream) {
  LT_ENTER();
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_CHECK(refuse_capture(s, cudaErrorNotSupported));
  LT_NEED(p, cudaErrorInvalidValue);
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  LT_NEED(!injected(Fault::OOM), cudaErrorMemoryAllocation);
  *p = memory_allocate(&device_of_stream(s).memory, n);
  LT_NEED(*p, cudaErrorMemoryAllocation);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
  LT_ENTER();
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_CHECK(refuse_capture(s, cudaErrorNotSupported));
  Device *d = device_of(p);
  LT_NEED(d && is_live(&d->memory, p, 1), cudaErrorInvalidValue);
  enqueue_always(s, [d, p] { memory_free(&d->memory, p); });
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  LT_NEED(p, cudaErrorInvalidValue);
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  LT_NEED(!injected(Fault::HOST) && n < SIZE_MAX / 2, cudaErrorMemoryAllocation);
  void *memory = aligned_alloc(page_size(), round_up(n, page_size()));
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
  LT_CHECK(refuse_unsafe());
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
