/* graphs.cpp: capture of a stream's operations, and graphs, which run them again.
 *
 * A capture collects operations in the order of the calls. Each comes after those that it depends
 * on, so a graph runs its operations one after the other in that order, as one operation of the
 * stream that it is launched on. A stream becomes part of a capture when it waits for an event that
 * was recorded in it; it has joined the first stream again when that waits for an event behind all
 * of its operations. Operations run several times, so they must not change their own data.
 */
#include "runtime.h"

#include <thread>
#include <unordered_map>

namespace emulated {

/* An operation that runs at each launch, and the devices whose memory it accesses. */
struct Node {
  unsigned devices;
  std::unique_ptr<Operation> operation;
};

struct Graph {
  Device *device;
  std::vector<Node> nodes;
};
typedef std::shared_ptr<Graph> GraphRef;

struct Capture {
  StreamRef origin; /* the stream on which it began */
  std::vector<StreamRef> streams;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  GraphRef graph;
  bool invalid = false, ended = false;
};

namespace {

/* A graph that can be launched. Its launches run one after the other. */
struct Exec {
  GraphRef graph;
  std::mutex running;
};
typedef std::shared_ptr<Exec> ExecRef;

/* Protects all captures, what streams and events have of them, and the tables of handles. Never
 * locked while another lock of the runtime is held. */
std::mutex captures_mutex;
std::vector<CaptureRef> &underway = *new std::vector<CaptureRef>();
std::atomic<int> count; /* of captures underway */
std::unordered_map<cudaGraph_t, GraphRef> &graphs =
    *new std::unordered_map<cudaGraph_t, GraphRef>();
std::unordered_map<cudaGraphExec_t, ExecRef> &execs =
    *new std::unordered_map<cudaGraphExec_t, ExecRef>();
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/* Returns true when the first stream waits for all operations of the others. */
bool is_joined(const Capture &c) {
  Captured &origin = captured_by(c.origin);
  for (const StreamRef &s : c.streams)
    if (origin.before[s.get()] < captured_by(s).before[s.get()]) return false;
  return true;
}

/* Ends a capture: its streams run their operations again. */
void end(const CaptureRef &c) {
  for (const StreamRef &s : c->streams) captured_by(s) = Captured();
  c->streams.clear();
  c->origin.reset();
  c->ended = true;
  for (size_t i = 0; i < underway.size(); i++)
    if (underway[i] == c) {
      underway.erase(underway.begin() + (ptrdiff_t)i);
      count--;
      break;
    }
}

template <class Table, class Handle> auto find(Table &table, Handle handle) {
  Lock lock(captures_mutex);
  auto found = table.find(handle);
  return found == table.end() ? nullptr : found->second;
}

} // namespace

bool is_capturing(const StreamRef &s) {
  if (!count) return false;
  Lock lock(captures_mutex);
  return captured_by(s).capture != nullptr;
}

cudaError_t check_capture(const StreamRef &s) {
  if (!count) return cudaSuccess;
  Lock lock(captures_mutex);
  const CaptureRef &c = captured_by(s).capture;
  return c && c->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t refuse_capture(const StreamRef &s, cudaError_t error) {
  if (!count) return cudaSuccess;
  Lock lock(captures_mutex);
  const CaptureRef &c = captured_by(s).capture;
  if (!c) return cudaSuccess;
  c->invalid = true;
  return error;
}

cudaError_t refuse_captures(const Device &d) {
  cudaError_t status = cudaSuccess;
  if (!count) return status;
  Lock lock(captures_mutex);
  for (const CaptureRef &c : underway) {
    if (c->graph->device != &d) continue;
    c->invalid = true;
    status = cudaErrorStreamCaptureUnsupported;
  }
  return status;
}

cudaError_t refuse_event(const Captured &mark) {
  if (!mark.capture) return cudaSuccess;
  Lock lock(captures_mutex);
  mark.capture->invalid = true;
  return cudaErrorCapturedEvent;
}

cudaError_t refuse_unsafe() {
  if (!count || thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t status = cudaSuccess;
  Lock lock(captures_mutex);
  for (const CaptureRef &c : underway) {
    bool own = c->thread == std::this_thread::get_id();
    if (own ? c->mode == cudaStreamCaptureModeRelaxed
            : c->mode != cudaStreamCaptureModeGlobal || thread_mode != cudaStreamCaptureModeGlobal)
      continue;
    c->invalid = true;
    status = cudaErrorStreamCaptureUnsupported;
  }
  return status;
}

void capture(const StreamRef &s, unsigned devices, Operation *operation) {
  Node node = {devices, std::unique_ptr<Operation>(operation)};
  Lock lock(captures_mutex);
  Captured &own = captured_by(s);
  if (!own.capture || own.capture->invalid) return;
  own.before[s.get()]++;
  own.capture->graph->nodes.push_back(std::move(node));
}

Captured mark_capture(const StreamRef &s) {
  if (!count) return Captured();
  Lock lock(captures_mutex);
  return captured_by(s);
}

cudaError_t join_capture(const StreamRef &s, const Captured &mark) {
  Lock lock(captures_mutex);
  Captured &own = captured_by(s);
  if (mark.capture->ended) return cudaErrorCapturedEvent;
  if (own.capture && own.capture != mark.capture) {
    own.capture->invalid = mark.capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (!own.capture) {
    own.capture = mark.capture;
    own.capture->streams.push_back(s);
  }
  for (const auto &at : mark.before)
    if (own.before[at.first] < at.second) own.before[at.first] = at.second;
  return own.capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

} // namespace emulated

using namespace emulated;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_NEED(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed,
          cudaErrorInvalidValue);
  LT_NEED(!is_default_stream(s), cudaErrorStreamCaptureUnsupported);
  LT_NEED(!is_capturing(s), cudaErrorIllegalState);
  LT_NEED(!injected(Fault::GRAPH), cudaErrorMemoryAllocation);
  CaptureRef c = std::make_shared<Capture>();
  c->origin = s;
  c->streams.push_back(s);
  c->mode = mode;
  c->thread = std::this_thread::get_id();
  c->graph = std::make_shared<Graph>();
  c->graph->device = &device_of_stream(s);
  Lock lock(captures_mutex);
  captured_by(s).capture = c;
  underway.push_back(c);
  count++;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_NEED(out, cudaErrorInvalidValue);
  *out = nullptr;
  Lock lock(captures_mutex);
  CaptureRef c = captured_by(s).capture;
  LT_NEED(c, cudaErrorIllegalState);
  if (c->origin != s) c->invalid = true;
  LT_NEED(c->origin == s, cudaErrorStreamCaptureUnmatched);
  LT_NEED(c->mode == cudaStreamCaptureModeRelaxed || c->thread == std::this_thread::get_id(),
          cudaErrorStreamCaptureWrongThread);
  bool invalid = c->invalid, joined = is_joined(*c);
  end(c);
  LT_NEED(!invalid, cudaErrorStreamCaptureInvalidated);
  LT_NEED(joined, cudaErrorStreamCaptureUnjoined);
  LT_NEED(!injected(Fault::GRAPH), cudaErrorMemoryAllocation);
  *out = (cudaGraph_t)c->graph.get();
  graphs[*out] = c->graph;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  LT_ENTER();
  StreamRef s = find_stream(handle);
  LT_NEED(s, cudaErrorInvalidResourceHandle);
  LT_NEED(status, cudaErrorInvalidValue);
  *status = !is_capturing(s)                  ? cudaStreamCaptureStatusNone
            : check_capture(s) == cudaSuccess ? cudaStreamCaptureStatusActive
                                              : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  LT_NEED(mode && *mode >= cudaStreamCaptureModeGlobal && *mode <= cudaStreamCaptureModeRelaxed,
          cudaErrorInvalidValue);
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

/* Only the number of nodes is available. */
cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *number) {
  LT_ENTER();
  GraphRef graph = find(graphs, handle);
  LT_NEED(graph && number, cudaErrorInvalidValue);
  LT_NEED(!nodes, cudaErrorNotSupported);
  *number = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t handle,
                                          unsigned long long flags) {
  LT_ENTER();
  GraphRef graph = find(graphs, handle);
  LT_NEED(out && graph && flags == 0, cudaErrorInvalidValue);
  LT_NEED(!injected(Fault::GRAPH), cudaErrorMemoryAllocation);
  ExecRef e = std::make_shared<Exec>();
  e->graph = std::move(graph);
  *out = (cudaGraphExec_t)e.get();
  Lock lock(captures_mutex);
  execs[*out] = std::move(e);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
  LT_ENTER();
  ExecRef e = find(execs, handle);
  StreamRef s = find_stream(stream);
  LT_NEED(e, cudaErrorInvalidValue);
  LT_NEED(s && &device_of_stream(s) == e->graph->device, cudaErrorInvalidResourceHandle);
  LT_NEED(check_capture(s) == cudaSuccess, cudaErrorStreamCaptureInvalidated);
  LT_NEED(!injected(Fault::GRAPH), cudaErrorMemoryAllocation);
  unsigned devices = 0;
  for (const Node &node : e->graph->nodes) devices |= node.devices;
  unsigned long long number = enqueue_work(s, devices, [e] {
    Lock lock(e->running);
    for (const Node &node : e->graph->nodes) node.operation->run();
  });
  if (settings().blocking) wait_for(s, number);
  return cudaSuccess;
}

/* Launches that are queued still run. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  LT_ENTER();
  Lock lock(captures_mutex);
  LT_NEED(execs.erase(handle) == 1, cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  LT_ENTER();
  Lock lock(captures_mutex);
  LT_NEED(graphs.erase(handle) == 1, cudaErrorInvalidValue);
  return cudaSuccess;
}
