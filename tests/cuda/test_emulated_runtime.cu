/* test_emulated_runtime.cu: the emulated runtime: memory, copies, streams, events, devices and
 * errors. */
#include "emulated.h"

#include <atomic>
#include <chrono>
#include <thread>

/* Also called with NULL: UBSan must not report it first. */
__attribute__((no_sanitize("undefined", "address"))) __global__ void fill(int *p, int n,
                                                                          int value) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = value;
}
__global__ void add(int *p, int n, int value) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] += value;
}
static cudaError_t fill_on(cudaStream_t s, int *p, int n, int value) {
  return launch("fill", fill, dim3((unsigned)blocks_for(n, 128)), dim3(128), 0, s, p, n, value);
}
static cudaError_t add_on(cudaStream_t s, int *p, int n, int value) {
  return launch("add", add, dim3((unsigned)blocks_for(n, 128)), dim3(128), 0, s, p, n, value);
}

/* Blocks a stream until it is opened. It opens at the end of the scope, so that no failed check
 * hangs. */
struct Gate {
  std::atomic<bool> open{false}, reached{false};
  void hold(cudaStream_t s) {
    OK(cudaLaunchHostFunc(
        s,
        [](void *self) {
          Gate *gate = (Gate *)self;
          gate->reached = true;
          while (!gate->open) std::this_thread::sleep_for(std::chrono::microseconds(50));
        },
        this));
  }
  ~Gate() {
    open = true;
    cudaDeviceSynchronize();
  }
};

static void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/* ---- memory ---------------------------------------------------------------------------------- */

static void memory_is_limited() {
  size_t before, free, total;
  OK(cudaMemGetInfo(&before, &total));
  CHECK_INT(total, 64 << 20);
  char *a, *b;
  OK(cudaMalloc(&a, 40 << 20));
  OK(cudaMemGetInfo(&free, &total));
  CHECK_INT(before - free, 40 << 20);
  FAILS(cudaMalloc(&b, 40 << 20), cudaErrorMemoryAllocation);
  CHECK(b == nullptr);
  FAILS(cudaMalloc(&b, SIZE_MAX), cudaErrorMemoryAllocation);
  FAILS(cudaMalloc(&b, SIZE_MAX - 4096), cudaErrorMemoryAllocation);
  OK(cudaFree(a));
  OK(cudaMalloc(&b, 40 << 20));
  OK(cudaFree(b));
  OK(cudaMemGetInfo(&free, &total));
  CHECK_INT(free, before);
  OK(cudaMalloc(&b, 0));
  CHECK(b == nullptr);
  OK(cudaFree(nullptr));
}

static void invalid_frees_are_refused() {
  char *p, host;
  OK(cudaMalloc(&p, 1000));
  CHECK_INT((size_t)p % 512, 0);
  FAILS(cudaFree(p + 1), cudaErrorInvalidValue);
  FAILS(cudaFree(&host), cudaErrorInvalidValue);
  OK(cudaFree(p));
  FAILS(cudaFree(p), cudaErrorInvalidValue);
}

/* Memory can be reused after frees in any order. */
static void addresses_are_reused() {
  std::vector<char *> all(50);
  for (int round = 0; round < 40; round++) {
    for (size_t i = 0; i < all.size(); i++) OK(cudaMalloc(&all[i], (i + 1) << 14));
    for (size_t i = 0; i < all.size(); i++) OK(cudaFree(all[i * 7 % 50]));
  }
  char *most;
  OK(cudaMalloc(&most, 60 << 20));
  OK(cudaFree(most));
}

static void pinned_memory() {
  int *p, *on_device, x = 0;
  OK(cudaHostAlloc(&p, 4096, cudaHostAllocMapped));
  OK(cudaHostGetDevicePointer(&on_device, p, 0));
  OK(fill_on(nullptr, on_device, 1024, 7));
  OK(cudaDeviceSynchronize());
  CHECK_INT(p[1023], 7);
  cudaPointerAttributes a;
  OK(cudaPointerGetAttributes(&a, p + 5));
  CHECK_INT(a.type, cudaMemoryTypeHost);
  OK(cudaPointerGetAttributes(&a, &x));
  CHECK_INT(a.type, cudaMemoryTypeUnregistered);
  Buffer<int> device(1);
  OK(cudaPointerGetAttributes(&a, device.data));
  CHECK_INT(a.type, cudaMemoryTypeDevice);
  CHECK_INT(a.device, 0);
  FAILS(cudaHostGetDevicePointer(&on_device, &x, 0), cudaErrorInvalidValue);
  FAILS(cudaFreeHost(&x), cudaErrorInvalidValue);
  OK(cudaFreeHost(p));
  std::vector<char> own(1 << 16);
  OK(cudaHostRegister(own.data(), own.size(), 0));
  FAILS(cudaHostRegister(own.data() + 100, 8, 0), cudaErrorHostMemoryAlreadyRegistered);
  OK(cudaHostUnregister(own.data()));
  FAILS(cudaHostUnregister(own.data()), cudaErrorHostMemoryNotRegistered);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void copies_are_checked() {
  std::vector<int> host(100, 3);
  Buffer<int> a(100), b(100);
  FAILS(cudaMemcpy(a, host.data(), 401, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(a + 50, host.data(), 400, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(host.data(), a + 1, 400, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(a, host.data(), 400, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(a, b, 400, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(a, host.data(), 400, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
  FAILS(cudaMemset(a, 0, 401), cudaErrorInvalidValue);
  FAILS(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  OK(cudaMemcpy(a, host.data(), 400, cudaMemcpyDefault));
  OK(cudaMemcpy(b, a, 400, cudaMemcpyDeviceToDevice));
  CHECK(b.get() == host);
  OK(cudaMemset(a, 1, 8));
  CHECK_INT(a.get()[1], 0x01010101);
  CHECK_INT(a.get()[2], 3);
  OK(cudaMemcpy(a, host.data(), 0, cudaMemcpyHostToDevice));
}

static void copies_of_rows() {
  std::vector<int> host(60);
  for (int i = 0; i < 60; i++) host[(size_t)i] = i;
  Buffer<int> d(std::vector<int>(40, -1));
  OK(cudaMemcpy2DAsync(d, 8 * 4, host.data(), 10 * 4, 3 * 4, 5, cudaMemcpyHostToDevice, 0));
  std::vector<int> actual = d.get();
  for (int i = 0; i < 40; i++) CHECK_INT(actual[(size_t)i], i % 8 < 3 ? i / 8 * 10 + i % 8 : -1);
  FAILS(cudaMemcpy2DAsync(d, 8, host.data(), 40, 12, 5, cudaMemcpyHostToDevice, 0),
        cudaErrorInvalidPitchValue);
  FAILS(cudaMemcpy2DAsync(d, 40, host.data(), 40, 12, 5, cudaMemcpyHostToDevice, 0),
        cudaErrorInvalidValue);
}

/* A source that is overwritten before the copy has run: the copy of pinned memory sees it. */
static void pinned_sources_are_read_when_the_copy_runs() {
  TestStream s;
  Buffer<int> from_pinned(1), from_pageable(1);
  int *pinned, pageable = 1;
  OK(cudaMallocHost(&pinned, 4));
  *pinned = 1;
  {
    Gate gate;
    gate.hold(s);
    OK(cudaMemcpyAsync(from_pinned, pinned, 4, cudaMemcpyHostToDevice, s));
    OK(cudaMemcpyAsync(from_pageable, &pageable, 4, cudaMemcpyHostToDevice, s));
    *pinned = pageable = 2;
  }
  OK(cudaStreamSynchronize(s));
  CHECK_INT(from_pinned.get()[0], 2);
  CHECK_INT(from_pageable.get()[0], 1);
  {
    Gate gate;
    gate.hold(s);
    OK(cudaMemcpyAsync(pinned, from_pageable, 4, cudaMemcpyDeviceToHost, s));
    CHECK_INT(*pinned, 2); /* not copied yet */
  }
  OK(cudaStreamSynchronize(s));
  CHECK_INT(*pinned, 1);
  OK(cudaMemcpyAsync(&pageable, from_pinned, 4, cudaMemcpyDeviceToHost, s));
  CHECK_INT(pageable, 2);
  OK(cudaFreeHost(pinned));
}

static void large_pageable_copies() {
  std::vector<int> host(1 << 20, 5);
  Buffer<int> d(host.size());
  TestStream s;
  OK(cudaMemcpyAsync(d, host.data(), host.size() * 4, cudaMemcpyHostToDevice, s));
  std::fill(host.begin(), host.end(), 6);
  OK(cudaStreamSynchronize(s));
  CHECK_INT(d.get()[host.size() - 1], 5);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void work_is_queued() {
  TestStream s;
  Buffer<int> d(std::vector<int>(1000, 0));
  {
    Gate gate;
    gate.hold(s);
    for (int i = 1; i <= 10; i++) OK(add_on(s, d, 1000, i));
    FAILS(cudaStreamQuery(s), cudaErrorNotReady);
    gate.open = true;
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamQuery(s));
  }
  CHECK(d.get() == std::vector<int>(1000, 55));
}

static void streams_overlap() {
  TestStream a, b;
  Gate first;
  first.hold(a);
  Buffer<int> d(1);
  OK(fill_on(b, d, 1, 3));
  OK(cudaStreamSynchronize(b)); /* would hang if b were ordered after a */
  CHECK_INT(cudaStreamQuery(a), cudaErrorNotReady);
  first.open = true;
}

static void a_destroyed_stream_ends_its_work() {
  Buffer<int> d(std::vector<int>(1, 0));
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  {
    Gate gate;
    gate.hold(s);
    OK(fill_on(s, d, 1, 9));
    OK(cudaStreamDestroy(s));
    FAILS(fill_on(s, d, 1, 8), cudaErrorInvalidResourceHandle);
    FAILS(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    FAILS(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
  }
  OK(cudaDeviceSynchronize());
  CHECK_INT(d.get()[0], 9);
}

static void properties_of_streams() {
  int least, greatest, priority, device;
  unsigned flags;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK_INT(least, 0);
  CHECK_INT(greatest, -5);
  cudaStream_t s;
  OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -100));
  OK(cudaStreamGetPriority(s, &priority));
  CHECK_INT(priority, -5);
  OK(cudaStreamGetFlags(s, &flags));
  CHECK_INT(flags, cudaStreamNonBlocking);
  OK(cudaStreamGetDevice(s, &device));
  CHECK_INT(device, 0);
  OK(cudaStreamDestroy(s));
  FAILS(cudaStreamCreateWithFlags(&s, 6), cudaErrorInvalidValue);
}

/* ---- the default stream ---------------------------------------------------------------------- */

static void the_default_stream_waits_for_blocking_streams() {
  TestStream blocking(cudaStreamDefault), non_blocking(cudaStreamNonBlocking);
  Buffer<int> d(1);
  OK(cudaMemset(d, 0, 4));
  OK(cudaDeviceSynchronize());
  {
    Gate gate;
    gate.hold(blocking);
    OK(fill_on(blocking, d, 1, 1));
    OK(fill_on(nullptr, d, 1, 2));  /* after blocking */
    OK(add_on(blocking, d, 1, 10)); /* after the default stream */
    pause_ms(5);
    CHECK_INT(cudaStreamQuery(nullptr), cudaErrorNotReady);
  }
  OK(cudaDeviceSynchronize());
  CHECK_INT(d.get()[0], 12);
  Gate gate;
  gate.hold(non_blocking);
  OK(fill_on(nullptr, d, 1, 4));
  OK(cudaStreamSynchronize(nullptr)); /* would hang if it were ordered after a non-blocking
                                       * stream */
  gate.open = true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void events_order_streams() {
  TestStream a, b;
  cudaEvent_t e;
  OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  Buffer<int> d(100000);
  OK(cudaMemset(d, 0, 400000));
  OK(cudaDeviceSynchronize());
  {
    Gate gate;
    gate.hold(a);
    OK(fill_on(a, d, 100000, 5));
    OK(cudaEventRecord(e, a));
    OK(cudaStreamWaitEvent(b, e, 0));
    OK(add_on(b, d, 100000, 1));
    CHECK_INT(cudaEventQuery(e), cudaErrorNotReady);
    pause_ms(3);
    CHECK_INT(cudaStreamQuery(b), cudaErrorNotReady);
  }
  OK(cudaEventSynchronize(e));
  OK(cudaEventQuery(e));
  OK(cudaStreamSynchronize(b));
  int wrong = 0;
  for (int v : d.get()) wrong += v != 6;
  CHECK_INT(wrong, 0);
  OK(cudaEventDestroy(e));
  FAILS(cudaEventRecord(e, a), cudaErrorInvalidResourceHandle);
}

/* A stream waits for the last record before the call; later records have no effect. */
static void a_wait_is_for_the_last_record_before_it() {
  TestStream a, b;
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  OK(cudaStreamWaitEvent(b, e, 0)); /* never recorded: nothing to wait for */
  OK(cudaEventQuery(e));
  OK(cudaEventSynchronize(e));
  OK(cudaStreamSynchronize(b));
  OK(cudaEventRecord(e, a));
  OK(cudaStreamWaitEvent(b, e, 0));
  {
    Gate gate;
    gate.hold(a);
    OK(cudaEventRecord(e, a));
    OK(cudaStreamSynchronize(b)); /* would hang if it depended on the second record */
    CHECK_INT(cudaEventQuery(e), cudaErrorNotReady);
  }
  OK(cudaEventDestroy(e));
}

static void events_measure_time() {
  TestStream s;
  cudaEvent_t from, to, untimed;
  OK(cudaEventCreate(&from));
  OK(cudaEventCreate(&to));
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  float ms = -1;
  FAILS(cudaEventElapsedTime(&ms, from, to), cudaErrorInvalidResourceHandle);
  OK(cudaEventRecord(from, s));
  OK(cudaLaunchHostFunc(
      s, [](void *) { pause_ms(20); }, nullptr));
  OK(cudaEventRecord(to, s));
  CHECK_INT(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady);
  OK(cudaEventSynchronize(to));
  OK(cudaEventElapsedTime(&ms, from, to));
  CHECK(ms >= 20);
  OK(cudaEventRecord(untimed, s));
  OK(cudaEventSynchronize(untimed));
  FAILS(cudaEventElapsedTime(&ms, from, untimed), cudaErrorInvalidResourceHandle);
  for (cudaEvent_t e : {from, to, untimed}) OK(cudaEventDestroy(e));
}

/* ---- several devices ------------------------------------------------------------------------- */

static void devices_are_independent() {
  int n;
  OK(cudaGetDeviceCount(&n));
  CHECK_INT(n, 2);
  FAILS(cudaSetDevice(2), cudaErrorInvalidDevice);
  FAILS(cudaSetDevice(-1), cudaErrorInvalidDevice);
  Buffer<int> on_0(std::vector<int>(10, 1));
  TestStream stream_0;
  cudaEvent_t event_0;
  OK(cudaEventCreate(&event_0));
  OK(cudaSetDevice(1));
  size_t free, total;
  OK(cudaMemGetInfo(&free, &total));
  CHECK_INT(free, total);
  {
    Buffer<int> on_1(10);
    FAILS(fill_on(stream_0, on_1, 10, 2), cudaErrorInvalidResourceHandle);
    FAILS(cudaEventRecord(event_0, nullptr), cudaErrorInvalidResourceHandle);
    OK(cudaMemcpyPeer(on_1, 1, on_0, 0, 40));
    OK(add_on(nullptr, on_1, 10, 5));
    CHECK_INT(on_1.get()[9], 6);
    OK(cudaMemcpyPeerAsync(on_0, 0, on_1, 1, 40, 0));
    OK(cudaDeviceSynchronize());
    FAILS(cudaMemcpyPeer(on_1, 0, on_0, 1, 40), cudaErrorInvalidValue);
    FAILS(cudaMemcpyPeer(on_1, 1, on_0, 7, 40), cudaErrorInvalidDevice);
    /* A wait for an event of another device is allowed. */
    OK(cudaSetDevice(0));
    OK(cudaEventRecord(event_0, stream_0));
    OK(cudaSetDevice(1));
    OK(cudaStreamWaitEvent(nullptr, event_0, 0));
    OK(cudaDeviceSynchronize());
  }
  OK(cudaSetDevice(0));
  CHECK_INT(on_0.get()[9], 6);
  OK(cudaEventDestroy(event_0));
}

static void peer_access() {
  int can = -1;
  OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK_INT(can, 1);
  OK(cudaDeviceCanAccessPeer(&can, 0, 0));
  CHECK_INT(can, 0);
  FAILS(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  OK(cudaDeviceEnablePeerAccess(1, 0));
  FAILS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  FAILS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  OK(cudaSetDevice(1));
  {
    Buffer<int> there(10);
    OK(cudaSetDevice(0));
    OK(fill_on(nullptr, there, 10, 8)); /* a kernel of device 0 */
    OK(cudaDeviceSynchronize());
    CHECK_INT(there.get()[0], 8);
    OK(cudaSetDevice(1));
  }
  OK(cudaSetDevice(0));
  OK(cudaDeviceDisablePeerAccess(1));
}

static void each_thread_has_its_own_current_device() {
  OK(cudaSetDevice(1));
  std::thread([] {
    int device = -1;
    OK(cudaGetDevice(&device));
    CHECK_INT(device, 0);
  }).join();
  OK(cudaSetDevice(0));
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* After a kernel has failed, its device runs nothing more, and nothing that waits for it hangs. The
 * other device is not affected. */
static void sticky_errors() {
  TestStream s;
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  int *pinned;
  OK(cudaMallocHost(&pinned, 4));
  *pinned = 1;
  int *d;
  OK(cudaMalloc(&d, 4));
  {
    Gate gate;
    gate.hold(s);
    OK(fill_on(s, (int *)nullptr, 1, 1));
    OK(cudaMemcpyAsync(pinned, d, 4, cudaMemcpyDeviceToHost, s));
    OK(cudaEventRecord(e, s));
  }
  CHECK_INT(cudaEventSynchronize(e), cudaErrorIllegalAddress);
  CHECK_INT(*pinned, 1); /* the copy was skipped */
  CHECK_INT(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
  CHECK_INT(cudaStreamQuery(s), cudaErrorIllegalAddress);
  CHECK_INT(fill_on(s, d, 1, 1), cudaErrorIllegalAddress);
  CHECK_INT(cudaMemcpy(d, pinned, 4, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
  CHECK_INT(cudaGetLastError(), cudaErrorIllegalAddress);
  CHECK_INT(cudaPeekAtLastError(), cudaErrorIllegalAddress);
  OK(cudaSetDevice(1));
  {
    Buffer<int> other(4);
    OK(fill_on(nullptr, other, 4, 6));
    CHECK_INT(other.get()[3], 6);
  }
  CHECK_INT(cudaSetDevice(0), cudaErrorIllegalAddress);
  OK(cudaDeviceReset());
  OK(cudaGetLastError());
  size_t free, total;
  OK(cudaMemGetInfo(&free, &total));
  CHECK_INT(free, total);
  CHECK_INT(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  OK(cudaFreeHost(pinned));
}

static void errors_have_names_and_texts() {
  CHECK_STR(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  CHECK_STR(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  CHECK_STR(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
  CHECK_STR(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
  CHECK_CONTAINS(cudaGetErrorString(cudaErrorIllegalAddress),
                 "an illegal memory access was encountered");
}

static void properties_of_devices() {
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 1));
  CHECK_CONTAINS(p.name, "Emulated GPU");
  CHECK_INT(p.totalGlobalMem, 64 << 20);
  CHECK_INT(p.warpSize, 32);
  CHECK_INT(p.major, 8);
  int value;
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK_INT(value, p.multiProcessorCount);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK_INT(value, 227 << 10);
  FAILS(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
  FAILS(cudaGetDeviceProperties(&p, 9), cudaErrorInvalidDevice);
  int driver, runtime;
  OK(cudaDriverGetVersion(&driver));
  OK(cudaRuntimeGetVersion(&runtime));
  CHECK(driver >= runtime && runtime >= 12000);
  int blocks;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  CHECK_INT(blocks, 8);
}

/* ---- all together ---------------------------------------------------------------------------- */

static void many_threads_and_streams() {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([t, &wrong] {
      cudaSetDevice(t % 2);
      for (int round = 0; round < 30; round++) {
        cudaStream_t a, b;
        cudaEvent_t e;
        int *d, *pinned;
        const int n = 5000;
        bool ok = cudaStreamCreate(&a) == 0 && cudaStreamCreateWithFlags(&b, 1) == 0 &&
                  cudaEventCreate(&e) == 0 && cudaMalloc(&d, n * 4) == 0 &&
                  cudaMallocHost(&pinned, n * 4) == 0;
        ok = ok && fill_on(a, d, n, round) == 0 && cudaEventRecord(e, a) == 0 &&
             cudaStreamWaitEvent(b, e, 0) == 0 && add_on(b, d, n, t) == 0 &&
             cudaMemcpyAsync(pinned, d, n * 4, cudaMemcpyDeviceToHost, b) == 0 &&
             cudaStreamSynchronize(b) == 0;
        for (int i = 0; ok && i < n; i++) ok = pinned[i] == round + t;
        wrong += !ok;
        cudaFree(d);
        cudaFreeHost(pinned);
        cudaEventDestroy(e);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
      }
    });
  for (std::thread &t : threads) t.join();
  CHECK_INT(wrong, 0);
}

int main() {
  setenv("LUTRA_EMULATE", "cuda:2,memory=64MiB", 1);
  bool blocking = getenv("CUDA_LAUNCH_BLOCKING") != nullptr;
  RUN(memory_is_limited);
  RUN(invalid_frees_are_refused);
  RUN(addresses_are_reused);
  RUN(pinned_memory);
  RUN(copies_are_checked);
  RUN(copies_of_rows);
  RUN(large_pageable_copies);
  RUN(properties_of_streams);
  if (!blocking) { /* these block a stream and continue */
    RUN(pinned_sources_are_read_when_the_copy_runs);
    RUN(work_is_queued);
    RUN(streams_overlap);
    RUN(a_destroyed_stream_ends_its_work);
    RUN(the_default_stream_waits_for_blocking_streams);
    RUN(events_order_streams);
    RUN(sticky_errors);
  }
  RUN(a_wait_is_for_the_last_record_before_it);
  RUN(events_measure_time);
  RUN(devices_are_independent);
  RUN(peer_access);
  RUN(each_thread_has_its_own_current_device);
  RUN(errors_have_names_and_texts);
  RUN(properties_of_devices);
  RUN(many_threads_and_streams);
  return check_end();
}
