/* launches.cpp: kernels put on streams, with the checks that a GPU's driver makes. */
#include "runtime.h"

#include "executor.h"
#include "launches.h"

#include <string.h>
#include <unordered_map>

using namespace emulated;

namespace {

/* Dynamic shared memory that kernels were allowed beyond the default. */
std::mutex allowed_mutex;
std::unordered_map<const void *, int> &allowed = *new std::unordered_map<const void *, int>();

size_t allowed_shared(const void *kernel) {
  Lock lock(allowed_mutex);
  auto found = allowed.find(kernel);
  return found == allowed.end() ? (size_t)DEFAULT_SHARED : (size_t)found->second;
}

cudaError_t check(dim3 g, dim3 b, size_t shared, const void *kernel) {
  LT_NEED(g.x && g.y && g.z && g.x <= 0x7fffffffu && g.y <= 65535 && g.z <= 65535,
          cudaErrorInvalidConfiguration);
  LT_NEED(b.x && b.y && b.z && b.x <= 1024 && b.y <= 1024 && b.z <= 64 &&
              b.x * b.y * b.z <= MAX_THREADS,
          cudaErrorInvalidConfiguration);
  LT_NEED(shared <= DEFAULT_SHARED || shared <= allowed_shared(kernel), cudaErrorInvalidValue);
  return cudaSuccess;
}

struct Destroy {
  void operator()(lt_EmulatedLaunch *launch) const { launch->destroy(launch); }
};
typedef std::unique_ptr<lt_EmulatedLaunch, Destroy> LaunchRef;

struct Work {
  void (*run)(void *), (*destroy)(void *);
  void *data;
  Work(void (*r)(void *), void (*d)(void *), void *w) : run(r), destroy(d), data(w) {}
  Work(Work &&other) noexcept : run(other.run), destroy(other.destroy), data(other.data) {
    other.data = nullptr;
  }
  ~Work() {
    if (data) destroy(data);
  }
};

/* A grid that was stopped from outside is no error of the device's. */
cudaError_t put(const cudaLaunchConfig_t *config, const void *kernel, lt_EmulatedLaunch *launch,
                bool of_user) {
  LaunchRef owned(launch);
  LT_ENTER();
  StreamRef s = find_stream(config->stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  Device *d = &device_of_stream(s);
  LT_NEED(d->index == current_device(), cudaErrorInvalidResourceHandle);
  Grid grid = {config->gridDim, config->blockDim, config->dynamicSmemBytes,
               launch,          d->index,         of_user ? user_turn(d->index) : 0};
  cudaError_t status = check(grid.grid, grid.block, grid.shared, kernel);
  if (status != cudaSuccess) return status;
  LT_NEED(!injected(Fault::LOAD), cudaErrorMemoryAllocation);
  if (injected(Fault::LAUNCH)) {
    d->sticky = cudaErrorLaunchFailure;
    return failed(cudaErrorLaunchFailure);
  }
  bool illegal = injected(Fault::ILLEGAL);
  unsigned long long number =
      enqueue_work(s, reach(*d), [d, grid, illegal, owned = std::move(owned)] {
        int error = illegal ? (int)cudaErrorIllegalAddress : run_grid(grid);
        if (error && error != STOPPED) d->sticky = error;
      });
  if (options().blocking && !of_user) wait_for(s, number); /* who launches waits: see kernel.c */
  return cudaSuccess;
}

} // namespace

extern "C" cudaError_t lt_emulated_launch(const cudaLaunchConfig_t *config, const void *kernel,
                                          lt_EmulatedLaunch *launch) {
  return put(config, kernel, launch, false);
}

cudaError_t emulated::launch_user(const cudaLaunchConfig_t *config, const void *kernel,
                                  lt_EmulatedLaunch *launch) {
  return put(config, kernel, launch, true);
}

extern "C" cudaError_t lt_emulated_enqueue(cudaStream_t stream, void (*run)(void *),
                                           void (*destroy)(void *), void *data) {
  Work work(run, destroy, data);
  LT_ENTER();
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  Device *d = &device_of_stream(s);
  LT_NEED(d->index == current_device(), cudaErrorInvalidResourceHandle);
  unsigned long long number =
      enqueue_work(s, reach(*d), [work = std::move(work)] { work.run(work.data); });
  if (options().blocking) wait_for(s, number);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attr, int value) {
  LT_ENTER();
  LT_NEED(kernel, cudaErrorInvalidDeviceFunction);
  if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  LT_NEED(value >= 0 && value <= MAX_SHARED, cudaErrorInvalidValue);
  Lock lock(allowed_mutex);
  allowed[kernel] = value;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel) {
  LT_ENTER();
  LT_NEED(out && kernel, cudaErrorInvalidValue);
  memset(out, 0, sizeof *out);
  out->maxThreadsPerBlock = MAX_THREADS;
  out->numRegs = 32;
  out->ptxVersion = out->binaryVersion = 80;
  out->maxDynamicSharedSizeBytes = (int)allowed_shared(kernel);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int block,
                                                          size_t shared) {
  LT_ENTER();
  LT_NEED(blocks && block > 0 && block <= MAX_THREADS, cudaErrorInvalidValue);
  int n = 2048 / ((block + 31) / 32 * 32);
  while (n > 0 && shared * (size_t)n > (size_t)MAX_SHARED) n--;
  *blocks = n;
  return cudaSuccess;
}
