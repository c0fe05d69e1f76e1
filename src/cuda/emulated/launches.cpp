/* launches.cpp: kernel launches, with the checks that a GPU's driver makes. */
#include "runtime.h"

#include "launches.h"

#include <string.h>
#include <unordered_map>

using namespace emulated;

namespace {

/* The limits of dynamic shared memory that were set above the default. */
std::mutex allowed_mutex;
std::unordered_map<const void *, int> &allowed = *new std::unordered_map<const void *, int>();

size_t allowed_shared(const void *kernel) {
  Lock lock(allowed_mutex);
  auto found = allowed.find(kernel);
  return found == allowed.end() ? (size_t)DEFAULT_SHARED : (size_t)found->second;
}

/* Checks the grid, the block and the shared memory against the device's limits. */
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

/* A function with its data, which is destroyed with it. */
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

/* Checks a launch and queues it; takes over `launch`, also on failure. A grid that was stopped by
 * stop_user_grids is not an error of the device. */
cudaError_t submit(const cudaLaunchConfig_t *config, const void *kernel, lt_EmulatedLaunch *launch,
                   bool is_user_kernel) {
  LaunchRef owned(launch);
  LT_ENTER();
  StreamRef s = find_stream(config->stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  Device *d = &device_of_stream(s);
  LT_NEED(d->index == current_device(), cudaErrorInvalidResourceHandle);
  Grid grid = {};
  grid.grid = config->grid_size;
  grid.block = config->block_size;
  grid.shared = config->dynamicSmemBytes;
  grid.launch = launch;
  grid.device = d->index;
  grid.turn = is_user_kernel ? user_turn(d->index) : 0;
  cudaError_t status = check(grid.grid, grid.block, grid.shared, kernel);
  if (status != cudaSuccess) return status;
  LT_CHECK(check_capture(s));
  LT_NEED(!injected(Fault::LOAD), cudaErrorMemoryAllocation);
  if (injected(Fault::LAUNCH)) {
    d->sticky = cudaErrorLaunchFailure;
    return set_last_error(cudaErrorLaunchFailure);
  }
  bool illegal = injected(Fault::ILLEGAL), replayed = is_capturing(s);
  unsigned long long number = enqueue_work(
      s, accessible_devices(*d), [d, grid, illegal, replayed, owned = std::move(owned)] {
        Grid now = grid;
        if (replayed && grid.turn) now.turn = user_turn(d->index);
        cudaError_t error = error_of(illegal ? LT_EMULATED_ADDRESS : run_grid(now));
        if (error != cudaSuccess) d->sticky = error;
      });
  /* For a user kernel the caller blocks (kernel.c), so that Ctrl-C can stop it. */
  if (settings().blocking && !is_user_kernel) wait_for(s, number);
  return cudaSuccess;
}

} // namespace

extern "C" cudaError_t lt_emulated_launch(const cudaLaunchConfig_t *config, const void *kernel,
                                          lt_EmulatedLaunch *launch) {
  return submit(config, kernel, launch, false);
}

cudaError_t emulated::launch_user(const cudaLaunchConfig_t *config, const void *kernel,
                                  lt_EmulatedLaunch *launch) {
  return submit(config, kernel, launch, true);
}

extern "C" cudaError_t lt_emulated_enqueue(cudaStream_t stream, void (*run)(void *),
                                           void (*destroy)(void *), void *data) {
  Work work(run, destroy, data);
  LT_ENTER();
  StreamRef s = find_stream(stream);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  Device *d = &device_of_stream(s);
  LT_NEED(d->index == current_device(), cudaErrorInvalidResourceHandle);
  LT_CHECK(check_capture(s));
  unsigned long long number =
      enqueue_work(s, accessible_devices(*d), [work = std::move(work)] { work.run(work.data); });
  if (settings().blocking) wait_for(s, number);
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
