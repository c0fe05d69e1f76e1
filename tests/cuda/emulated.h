/* emulated.h: helpers shared by the tests of the emulated CUDA. */
#ifndef LT_TESTS_EMULATED_H
#define LT_TESTS_EMULATED_H

#include "../c/check.h"
#include "launch.cuh"

#include <stdlib.h>
#include <vector>

/* launch() of launch.cuh without the records of errors.c and the caching allocator. */
LT_C_LINKAGE cudaError_t lt_cuda_note_launch(const char *, cudaStream_t, cudaError_t status) {
  return status;
}
LT_C_LINKAGE bool lt_cuda_free_cached(void) { return false; }

/* Check that a call succeeds; that it fails with an error, which is the last error once. */
#define OK(call) CHECK_INT(call, cudaSuccess)
#define FAILS(call, how)                                                                           \
  do {                                                                                             \
    CHECK_INT(call, how);                                                                          \
    CHECK_INT(cudaGetLastError(), how);                                                            \
    CHECK_INT(cudaGetLastError(), cudaSuccess);                                                    \
  } while (0)

/* Device memory for n elements, filled from the host; freed at the end of the scope. */
template <class T> struct Buffer {
  T *data = nullptr;
  size_t n;
  explicit Buffer(size_t count) : n(count) { OK(cudaMalloc(&data, n * sizeof(T))); }
  explicit Buffer(const std::vector<T> &from) : Buffer(from.size()) {
    OK(cudaMemcpy(data, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { cudaFree(data); }
  /* Copies the elements to the host; synchronizes with the default stream. */
  std::vector<T> get() const {
    std::vector<T> out(n);
    OK(cudaMemcpy(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
  operator T *() const { return data; }
};

/* A stream, destroyed at the end of the scope. */
struct TestStream {
  cudaStream_t handle = nullptr;
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    OK(cudaStreamCreateWithFlags(&handle, flags));
  }
  TestStream(const TestStream &) = delete;
  ~TestStream() { cudaStreamDestroy(handle); }
  operator cudaStream_t() const { return handle; }
};

/* Launches a kernel on the default stream and checks that this succeeds. */
#define LAUNCH(kernel, grid, block, ...)                                                           \
  OK(launch(#kernel, kernel, dim3(grid), dim3(block), 0, (cudaStream_t)0, ##__VA_ARGS__))

#endif
