/* test_emulated_graphs.cu: captures and graphs of the emulated runtime, and the errors of calls
 * that CUDA does not allow during a capture. */
#include "emulated.h"

#include <thread>

__global__ void add(int *p, int n, int value) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] += value;
}
__global__ void store(int *to, const int *from, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i] * from[i];
}
static cudaError_t add_on(cudaStream_t s, int *p, int n, int value) {
  return launch("add", add, dim3((unsigned)blocks_for(n, 128)), dim3(128), 0, s, p, n, value);
}
static cudaError_t store_on(cudaStream_t s, int *to, const int *from, int n) {
  return launch("store", store, dim3((unsigned)blocks_for(n, 128)), dim3(128), 0, s, to, from, n);
}

/* A graph that is ready to be launched, destroyed at the end of the scope. */
struct TestGraph {
  cudaGraphExec_t exec = nullptr;
  size_t nodes = 0;
  /* Ends the capture of a stream. */
  void end(cudaStream_t s) {
    cudaGraph_t graph;
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
  }
  ~TestGraph() {
    if (exec) cudaGraphExecDestroy(exec);
  }
};

static cudaError_t begin(cudaStream_t s) {
  return cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
}
/* Ends a capture that has failed. */
static cudaError_t end(cudaStream_t s) {
  cudaGraph_t graph = (cudaGraph_t)1;
  cudaError_t status = cudaStreamEndCapture(s, &graph);
  CHECK((status == cudaSuccess) == (graph != nullptr));
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  return status;
}
static cudaStreamCaptureStatus status_of(cudaStream_t s) {
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(s, &status));
  return status;
}

/* ---- capture and launch ---------------------------------------------------------------------- */

static void nothing_runs_before_a_launch() {
  Buffer<int> x(std::vector<int>(1000, 3)), y(std::vector<int>(1000, 0));
  TestStream s;
  TestGraph g;
  CHECK_INT(status_of(s), cudaStreamCaptureStatusNone);
  OK(begin(s));
  CHECK_INT(status_of(s), cudaStreamCaptureStatusActive);
  OK(add_on(s, x, 1000, 1));
  OK(store_on(s, y, x, 1000));
  OK(cudaMemsetAsync(x, 0, 500 * sizeof(int), s));
  g.end(s);
  CHECK_INT(status_of(s), cudaStreamCaptureStatusNone);
  CHECK_INT(g.nodes, 3);
  CHECK_INT(x.get()[0], 3);
  CHECK_INT(y.get()[999], 0);
  OK(cudaGraphLaunch(g.exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK_INT(y.get()[0], 16);
  CHECK_INT(x.get()[0], 0);
  CHECK_INT(x.get()[500], 4);
  for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(g.exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK_INT(x.get()[999], 7);
  CHECK_INT(y.get()[999], 49);
  CHECK_INT(y.get()[0], 1);
}

/* Copies from and to pinned memory read and write it at each launch. */
static void pinned_copies_are_captured() {
  int *host;
  OK(cudaMallocHost(&host, 2 * sizeof(int)));
  Buffer<int> x(1);
  TestStream s;
  TestGraph g;
  OK(begin(s));
  OK(cudaMemcpyAsync(x, host, sizeof(int), cudaMemcpyHostToDevice, s));
  OK(add_on(s, x, 1, 10));
  OK(cudaMemcpyAsync(host + 1, x, sizeof(int), cudaMemcpyDeviceToHost, s));
  g.end(s);
  for (int i = 0; i < 3; i++) {
    host[0] = i;
    OK(cudaGraphLaunch(g.exec, s));
    OK(cudaStreamSynchronize(s));
    CHECK_INT(host[1], i + 10);
  }
  OK(cudaFreeHost(host));
}

/* A launch is one operation of its stream; a destroyed graph still runs. */
static void launches_are_in_order() {
  Buffer<int> x(std::vector<int>(100, 0));
  TestStream s, other;
  TestGraph g;
  OK(begin(s));
  OK(add_on(s, x, 100, 1));
  g.end(s);
  for (int i = 0; i < 20; i++) {
    OK(cudaGraphLaunch(g.exec, other));
    OK(add_on(other, x, 100, 100));
  }
  OK(cudaGraphExecDestroy(g.exec));
  FAILS(cudaGraphLaunch(g.exec, other), cudaErrorInvalidValue);
  g.exec = nullptr;
  OK(cudaStreamSynchronize(other));
  CHECK_INT(x.get()[99], 2020);
}

/* Two streams: `side` joins the capture by an event and is joined again. */
static void streams_join_by_events() {
  Buffer<int> x(std::vector<int>(100, 2)), y(std::vector<int>(100, 0));
  TestStream s, side;
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  TestGraph g;
  OK(begin(s));
  OK(add_on(s, x, 100, 1));
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(side, e));
  CHECK_INT(status_of(side), cudaStreamCaptureStatusActive);
  OK(store_on(side, y, x, 100));
  OK(cudaEventRecord(e, side));
  OK(cudaStreamWaitEvent(s, e));
  OK(add_on(s, y, 100, 1));
  g.end(s);
  CHECK_INT(status_of(side), cudaStreamCaptureStatusNone);
  CHECK_INT(g.nodes, 3);
  OK(cudaGraphLaunch(g.exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK_INT(y.get()[99], 10);
  /* Recorded again, the event has nothing to do with the capture. */
  OK(cudaEventRecord(e, side));
  OK(cudaEventSynchronize(e));
  OK(cudaEventDestroy(e));
}

static void unjoined_streams_are_an_error() {
  Buffer<int> x(100);
  TestStream s, side;
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  OK(begin(s));
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(side, e));
  OK(add_on(side, x, 100, 1));
  CHECK_INT(end(s), cudaErrorStreamCaptureUnjoined);
  CHECK_INT(status_of(side), cudaStreamCaptureStatusNone);
  OK(cudaEventDestroy(e));
}

/* ---- what is not allowed --------------------------------------------------------------------- */

/* Each call fails with its error, and so does the capture; the stream works again. */
template <class F> static void fails_in_capture(cudaError_t how, F call) {
  Buffer<int> x(std::vector<int>(100, 0));
  TestStream s;
  OK(begin(s));
  FAILS(call((cudaStream_t)s), how);
  CHECK_INT(status_of(s), cudaStreamCaptureStatusInvalidated);
  FAILS(add_on(s, x, 100, 1), cudaErrorStreamCaptureInvalidated);
  CHECK_INT(end(s), cudaErrorStreamCaptureInvalidated);
  OK(add_on(s, x, 100, 1));
  OK(cudaStreamSynchronize(s));
  CHECK_INT(x.get()[0], 1);
}

static void blocking_calls_fail() {
  cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
  Buffer<int> x(100);
  int host[100] = {0};
  fails_in_capture(unsupported, [](cudaStream_t s) { return cudaStreamSynchronize(s); });
  fails_in_capture(unsupported, [](cudaStream_t s) { return cudaStreamQuery(s); });
  fails_in_capture(unsupported, [](cudaStream_t) { return cudaDeviceSynchronize(); });
  fails_in_capture(unsupported, [&](cudaStream_t s) {
    return cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, s);
  });
  fails_in_capture(unsupported, [&](cudaStream_t s) {
    return cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, s);
  });
  fails_in_capture(unsupported, [&](cudaStream_t) {
    return cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  });
  fails_in_capture(unsupported, [](cudaStream_t) {
    void *p;
    return cudaMalloc(&p, 100);
  });
  fails_in_capture(cudaErrorNotSupported, [](cudaStream_t s) {
    void *p;
    return cudaMallocAsync(&p, 100, s);
  });
  fails_in_capture(cudaErrorCapturedEvent, [](cudaStream_t s) {
    cudaEvent_t e;
    OK(cudaEventCreate(&e));
    OK(cudaEventRecord(e, s));
    cudaError_t status = cudaEventSynchronize(e);
    OK(cudaEventDestroy(e));
    return status;
  });
}

/* In relaxed mode a thread may call what is not captured. */
static void relaxed_captures_allow_allocations() {
  Buffer<int> x(std::vector<int>(100, 1));
  TestStream s;
  TestGraph g;
  int *p;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  OK(cudaMalloc(&p, 100 * sizeof(int)));
  OK(store_on(s, p, x, 100));
  OK(add_on(s, p, 100, 1));
  OK(cudaMemcpyAsync(x, p, 100 * sizeof(int), cudaMemcpyDeviceToDevice, s));
  g.end(s);
  OK(cudaGraphLaunch(g.exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK_INT(x.get()[0], 2);
  OK(cudaFree(p));
  OK(begin(s));
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK_INT(mode, cudaStreamCaptureModeGlobal);
  OK(cudaMalloc(&p, 100));
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  OK(cudaFree(nullptr));
  FAILS(cudaFree(p), cudaErrorStreamCaptureUnsupported);
  CHECK_INT(end(s), cudaErrorStreamCaptureInvalidated);
  OK(cudaFree(p));
}

/* Other threads must not disturb a capture in global mode, and are free in the other modes. */
static void other_threads() {
  TestStream s;
  cudaError_t status = cudaSuccess;
  auto allocate = [&] {
    void *p = nullptr;
    status = cudaMalloc(&p, 100);
    if (status == cudaSuccess) status = cudaFree(p);
  };
  OK(begin(s));
  std::thread(allocate).join();
  CHECK_INT(status, cudaErrorStreamCaptureUnsupported);
  CHECK_INT(end(s), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  std::thread(allocate).join();
  CHECK_INT(status, cudaSuccess);
  std::thread([&] { status = end(s); }).join();
  CHECK_INT(status, cudaErrorStreamCaptureWrongThread);
  CHECK_INT(end(s), cudaSuccess);
}

static void work_outside_is_isolated() {
  TestStream s, other, third;
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  OK(begin(s));
  OK(cudaStreamWaitEvent(s, e)); /* never recorded: nothing to wait for */
  OK(cudaEventRecord(e, other));
  FAILS(cudaStreamWaitEvent(s, e), cudaErrorStreamCaptureIsolation);
  CHECK_INT(end(s), cudaErrorStreamCaptureInvalidated);
  /* An event of a capture that has ended, and one of another capture. */
  OK(begin(s));
  OK(cudaEventRecord(e, s));
  OK(begin(third));
  FAILS(cudaStreamWaitEvent(third, e), cudaErrorStreamCaptureMerge);
  CHECK_INT(end(s), cudaErrorStreamCaptureInvalidated);
  CHECK_INT(end(third), cudaErrorStreamCaptureInvalidated);
  FAILS(cudaStreamWaitEvent(other, e), cudaErrorCapturedEvent);
  FAILS(cudaEventQuery(e), cudaErrorCapturedEvent);
  OK(cudaEventDestroy(e));
}

static void invalid_arguments() {
  TestStream s, side;
  cudaGraph_t graph;
  cudaEvent_t e;
  OK(cudaEventCreate(&e));
  FAILS(begin(nullptr), cudaErrorStreamCaptureUnsupported);
  FAILS(cudaStreamBeginCapture(s, (cudaStreamCaptureMode)3), cudaErrorInvalidValue);
  FAILS(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
  OK(begin(s));
  FAILS(begin(s), cudaErrorIllegalState);
  FAILS(cudaStreamEndCapture(s, nullptr), cudaErrorInvalidValue);
  OK(cudaEventRecord(e, s));
  OK(cudaStreamWaitEvent(side, e));
  FAILS(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
  CHECK_INT(end(s), cudaErrorStreamCaptureInvalidated);
  FAILS(cudaGraphInstantiateWithFlags(nullptr, (cudaGraph_t)&s, 0), cudaErrorInvalidValue);
  FAILS(cudaGraphLaunch((cudaGraphExec_t)&s, s), cudaErrorInvalidValue);
  FAILS(cudaGraphDestroy((cudaGraph_t)&s), cudaErrorInvalidValue);
  OK(cudaEventDestroy(e));
}

int main(void) {
  setenv("LUTRA_EMULATE", "cuda:2,memory=64MiB", 1);
  RUN(nothing_runs_before_a_launch);
  RUN(pinned_copies_are_captured);
  RUN(launches_are_in_order);
  RUN(streams_join_by_events);
  RUN(unjoined_streams_are_an_error);
  RUN(blocking_calls_fail);
  RUN(relaxed_captures_allow_allocations);
  RUN(other_threads);
  RUN(work_outside_is_isolated);
  RUN(invalid_arguments);
  return check_end();
}
