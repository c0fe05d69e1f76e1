/* copies.cpp: copies and fills; each is one operation of a stream.
 *
 * Pinned memory is read and written when the operation runs: a program that reuses it too early
 * sees wrong data, as on a GPU. Pageable memory may be reused when the call returns: small sources
 * are copied first, for others the call blocks.
 */
#include "runtime.h"

#include <memory>
#include <stdlib.h>
#include <string.h>

using namespace emulated;

namespace {

enum : size_t { STAGED = (size_t)1 << 20 };

struct Free {
  void operator()(void *memory) const { free(memory); }
};

/* A copy of `height` rows of `width` bytes. by_host: one row, between devices without peer access,
 * through host memory. */
struct Copy {
  char *to;
  size_t to_pitch;
  const char *from;
  size_t from_pitch, width, height;
  bool by_host = false;
  size_t to_extent() const { return to_pitch * (height - 1) + width; }
  size_t from_extent() const { return from_pitch * (height - 1) + width; }
  void run() const {
    if (by_host) {
      std::vector<char> host(from, from + width);
      memcpy(to, host.data(), width);
      return;
    }
    if (to_pitch == width && from_pitch == width) {
      memmove(to, from, width * height);
      return;
    }
    for (size_t i = 0; i < height; i++) memmove(to + i * to_pitch, from + i * from_pitch, width);
  }
};

/* Returns true when the kind agrees with the addresses. */
bool kind_fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
  case cudaMemcpyHostToHost:
    return !to_device && !from_device;
  case cudaMemcpyHostToDevice:
    return to_device && !from_device;
  case cudaMemcpyDeviceToHost:
    return !to_device && from_device;
  case cudaMemcpyDeviceToDevice:
    return to_device && from_device;
  case cudaMemcpyDefault:
    return true;
  }
  return false;
}

/* Checks a copy as the runtime does and queues it. Blocks until it is done if `wait`, or if
 * pageable memory requires it. */
cudaError_t copy(Copy c, cudaMemcpyKind kind, cudaStream_t stream, bool wait) {
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_NEED(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  if (c.width == 0 || c.height == 0) return cudaSuccess;
  LT_NEED(c.to && c.from, cudaErrorInvalidValue);
  Device *to = device_of(c.to), *from = device_of(c.from);
  LT_NEED(kind_fits(kind, to, from), cudaErrorInvalidValue);
  LT_NEED(!to || is_live(&to->memory, c.to, c.to_extent()), cudaErrorInvalidValue);
  LT_NEED(!from || is_live(&from->memory, c.from, c.from_extent()), cudaErrorInvalidValue);
  LT_CHECK(check_capture(s));
  LT_NEED(!injected(Fault::COPY), cudaErrorInvalidValue);

  std::unique_ptr<void, Free> stage;
  if (!to && !is_pinned(c.to, c.to_extent())) wait = true;
  if (wait || (!from && !is_pinned(c.from, c.from_extent()))) LT_CHECK(refuse_capture(s));
  if (!wait && !from && !is_pinned(c.from, c.from_extent())) {
    size_t n = c.from_extent();
    if (n <= STAGED) stage.reset(malloc(n));
    if (stage)
      c.from = (const char *)memcpy(stage.get(), c.from, n);
    else
      wait = true;
  }
  unsigned devices = (to ? 1u << to->index : 0) | (from ? 1u << from->index : 0);
  unsigned long long number = enqueue_work(s, devices, [c, stage = std::move(stage)] { c.run(); });
  if (!wait && !settings().blocking) return cudaSuccess;
  wait_for(s, number);
  return set_last_error(device_error(device_of_stream(s)));
}

Copy plain(void *to, const void *from, size_t n) {
  return {(char *)to, n, (const char *)from, n, n, 1};
}

cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t n,
                      cudaStream_t stream, bool wait) {
  LT_NEED(to_device >= 0 && to_device < device_count(), cudaErrorInvalidDevice);
  LT_NEED(from_device >= 0 && from_device < device_count(), cudaErrorInvalidDevice);
  LT_NEED(n == 0 ||
              (device_of(to) == &device(to_device) && device_of(from) == &device(from_device)),
          cudaErrorInvalidValue);
  Copy c = plain(to, from, n);
  c.by_host = to_device != from_device && !options().peer;
  return copy(c, cudaMemcpyDeviceToDevice, stream, wait);
}

cudaError_t fill(void *p, int value, size_t n, cudaStream_t stream) {
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  if (n == 0) return cudaSuccess;
  Device *d = device_of(p);
  LT_NEED(d ? is_live(&d->memory, p, n) : is_pinned(p, n), cudaErrorInvalidValue);
  LT_CHECK(check_capture(s));
  enqueue_work(s, d ? 1u << d->index : 0, [p, value, n] { memset(p, value, n); });
  return cudaSuccess;
}

} // namespace

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind kind) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  return copy(plain(to, from, n), kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  LT_ENTER();
  return copy(plain(to, from, n), kind, stream, false);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  LT_NEED(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
  return copy({(char *)to, to_pitch, (const char *)from, from_pitch, width, height}, kind, nullptr,
              true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  LT_ENTER();
  LT_NEED(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
  return copy({(char *)to, to_pitch, (const char *)from, from_pitch, width, height}, kind, stream,
              false);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t n) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  return copy_peer(to, to_device, from, from_device, n, nullptr, true);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t n, cudaStream_t stream) {
  LT_ENTER();
  return copy_peer(to, to_device, from, from_device, n, stream, false);
}

cudaError_t cudaMemset(void *p, int value, size_t n) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  return fill(p, value, n, nullptr);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t stream) {
  LT_ENTER();
  return fill(p, value, n, stream);
}
