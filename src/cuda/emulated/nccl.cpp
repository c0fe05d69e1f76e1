/* nccl.cpp: the functions of the emulated NCCL. The calls of a group, for one communicator, are one
 * operation of a stream: it advances the tasks of its calls in turn, until all are done, the
 * communicator is aborted, or another rank fails.
 *
 * A communicator's operations run in the order of the calls, also on several streams. After an
 * error, which ncclCommGetAsyncError returns, its operations do nothing. */
#include "nccl.h"
#include "nccl_tasks.h"
#include "runtime.h"

#include <random>
#include <set>
#include <stdio.h>
#include <string.h>
#include <unordered_map>

namespace emulated {
namespace {

struct Comm {
  std::shared_ptr<World> world;
  Device *device;
  std::atomic<bool> aborted{false};
  std::mutex mutex; /* protects the members below */
  std::condition_variable ended;
  unsigned long long queued = 0, done = 0; /* operations */
  std::set<unsigned long long> early;      /* those that have ended before an earlier one */
  ncclResult_t error = ncclSuccess;
  std::string text;

  /* Stores the first error, and tells the other ranks. `cause`: the rank that caused it, or -1. */
  void fail(ncclResult_t status, const std::string &why, int cause) {
    Lock lock(mutex);
    if (error == ncclSuccess) {
      error = status;
      text = why;
    }
    lock.unlock();
    world->fail(cause < 0 ? world->rank : cause);
  }
  ncclResult_t failed() {
    Lock lock(mutex);
    return error;
  }
};
typedef std::shared_ptr<Comm> CommRef;

/* A call, until its group ends. */
struct Submitted {
  CommRef comm;
  StreamRef stream;
  Task task;
};

/* The calls since ncclGroupStart. */
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Submitted> calls;
  std::vector<CommRef> started; /* new communicators */
};
thread_local Group group;
thread_local std::string last_text; /* of this thread's last error */

std::mutex comms_mutex;
std::unordered_map<ncclComm_t, CommRef> &comms = *new std::unordered_map<ncclComm_t, CommRef>();

/* Returns an error with its text, also to the end of the group. */
ncclResult_t fail(ncclResult_t error, const std::string &why) {
  last_text = why;
  if (group.depth > 0 && group.error == ncclSuccess) group.error = error;
  return error;
}

CommRef find_comm(ncclComm_t handle) {
  Lock lock(comms_mutex);
  auto found = comms.find(handle);
  return found == comms.end() ? nullptr : found->second;
}

CommRef take_comm(ncclComm_t handle) {
  Lock lock(comms_mutex);
  auto found = comms.find(handle);
  if (found == comms.end()) return nullptr;
  CommRef c = found->second;
  comms.erase(found);
  return c;
}

/* ---- running --------------------------------------------------------------------------------- */

/* An operation: the tasks of a group, for one communicator. It ends in the destructor, also where
 * it did not run. */
class Launch {
public:
  Launch(CommRef comm, std::vector<Task> tasks, unsigned long long number)
      : comm_(std::move(comm)), tasks_(std::move(tasks)), number_(number) {}
  void run();
  Launch(const Launch &) = delete;
  ~Launch();

private:
  bool wait_for_turn();
  bool sweep(int *waits_for, bool *moved);
  void report_gone(int other);

  CommRef comm_;
  std::vector<Task> tasks_;
  unsigned long long number_;
  bool ran_ = false;
};

Launch::~Launch() {
  if (!ran_ && !unloading()) comm_->fail(ncclUnhandledCudaError, "the device has failed", -1);
  Lock lock(comm_->mutex);
  comm_->early.insert(number_);
  while (comm_->early.erase(comm_->done + 1)) comm_->done++;
  comm_->ended.notify_all();
}

/* Waits for the communicator's earlier operations. Returns false when it has failed. */
bool Launch::wait_for_turn() {
  Lock lock(comm_->mutex);
  comm_->ended.wait(lock, [&] { return comm_->done + 1 >= number_ || unloading(); });
  return comm_->error == ncclSuccess && !unloading();
}

/* Advances every task that may run: collectives in order, messages of one direction and rank in
 * order. Returns false when all are done, or after an error. */
bool Launch::sweep(int *waits_for, bool *moved) {
  const World &w = *comm_->world;
  bool ring_busy = false, left = false;
  std::vector<bool> busy(2 * (size_t)w.ranks);
  for (Task &t : tasks_) {
    if (t.is_done(w)) continue;
    size_t lane = 2 * (size_t)t.peer + (t.kind == Collective::SEND);
    if (t.is_collective() ? ring_busy : (bool)busy[lane]) continue;
    ncclResult_t status = t.advance(w, moved);
    if (status != ncclSuccess) {
      comm_->fail(status,
                  "rank " + std::to_string(t.waits_for) +
                      " calls another operation, or with another size or dtype",
                  -1);
      return false;
    }
    if (t.is_done(w)) continue;
    left = true;
    *waits_for = t.waits_for;
    if (t.is_collective())
      ring_busy = true;
    else
      busy[lane] = true;
  }
  return left;
}

void Launch::report_gone(int other) {
  const World &w = *comm_->world;
  comm_->fail(ncclRemoteError, w.describe_gone(other), other);
}

void Launch::run() {
  Backoff backoff;
  ran_ = true;
  if (!wait_for_turn()) return;
  for (;;) {
    int other = -1;
    bool moved = false;
    if (!sweep(&other, &moved) || unloading()) return;
    if (comm_->aborted) return comm_->fail(ncclInternalError, "it was aborted", -1);
    if (moved) {
      backoff.reset();
      continue;
    }
    backoff.pause();
    if (!backoff.is_check_due() || !comm_->world->is_gone(other)) continue;
    /* It may have completed its part before it ended. */
    if (!sweep(&other, &moved)) return;
    if (!moved) return report_gone(other);
  }
}

/* Queues the tasks of one communicator. */
void launch(const CommRef &c, const StreamRef &s, std::vector<Task> tasks) {
  Lock lock(c->mutex);
  auto operation = std::make_unique<Launch>(c, std::move(tasks), ++c->queued);
  enqueue_work(s, 1u << c->device->index, [operation = std::move(operation)] { operation->run(); });
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Returns true when a group's messages of a rank to itself have no counterpart. */
bool lacks_counterpart(const std::vector<Task> &tasks, int rank) {
  size_t sent = 0, received = 0;
  for (const Task &t : tasks) {
    if (t.peer != rank) continue;
    sent += t.kind == Collective::SEND;
    received += t.kind == Collective::RECV;
  }
  return sent != received;
}

/* Queues the calls of a group. */
ncclResult_t submit(std::vector<Submitted> calls) {
  while (!calls.empty()) {
    CommRef c = calls[0].comm;
    StreamRef s = calls[0].stream;
    std::vector<Task> tasks;
    std::vector<Submitted> others;
    for (Submitted &call : calls) {
      if (call.comm != c) {
        others.push_back(std::move(call));
        continue;
      }
      if (call.stream != s)
        return fail(ncclInvalidUsage, "the calls of a group use several streams of one device");
      tasks.push_back(call.task);
    }
    if (lacks_counterpart(tasks, c->world->rank))
      return fail(ncclInvalidUsage, "a message of a rank to itself lacks its counterpart in the "
                                    "group");
    launch(c, s, std::move(tasks));
    calls = std::move(others);
  }
  return ncclSuccess;
}

/* Waits until all ranks of new communicators have attached. */
ncclResult_t wait_for_started(const std::vector<CommRef> &started) {
  ncclResult_t status = ncclSuccess;
  for (const CommRef &c : started) {
    std::string why;
    ncclResult_t s = c->world->wait_for_all(why);
    if (s == ncclSuccess) continue;
    c->fail(s, why, -1);
    status = fail(s, why);
  }
  return status;
}

/* Checks a call's memory. */
ncclResult_t check_memory(const Comm &c, const void *memory, size_t elements, size_t size) {
  if (elements == 0) return ncclSuccess;
  Device *d = device_of(memory);
  if (elements > SIZE_MAX / size || !d || !is_live(&d->memory, memory, elements * size))
    return fail(ncclInvalidArgument, "an argument is not the address of so much device memory");
  if (d != c.device)
    return fail(ncclInvalidArgument, "an argument is memory of another device than the "
                                     "communicator's");
  return ncclSuccess;
}

/* Checks a call with so many elements of input and output for each of `count`. */
ncclResult_t check(const Comm &c, const StreamRef &s, const Task &t, size_t inputs,
                   size_t outputs) {
  if (!s || &device_of_stream(s) != c.device)
    return fail(ncclInvalidUsage, "the stream is not one of the communicator's device");
  if (refuse_capture(s) != cudaSuccess)
    return fail(ncclUnhandledCudaError, "the emulated NCCL cannot be captured");
  size_t size = nccl_size(t.dtype);
  if (!size) return fail(ncclInvalidArgument, "unknown dtype");
  if ((int)t.op < 0 || t.op >= ncclNumOps) return fail(ncclInvalidArgument, "unknown reduction");
  if (t.peer < 0 || t.peer >= c.world->ranks)
    return fail(ncclInvalidArgument, "there is no rank " + std::to_string(t.peer));
  if (t.count > SIZE_MAX / (size * NCCL_RANKS)) return fail(ncclInvalidArgument, "invalid count");
  ncclResult_t status = check_memory(c, t.in, inputs * t.count, size);
  return status != ncclSuccess ? status : check_memory(c, t.out, outputs * t.count, size);
}

/* Adds a call to the group, or queues it. */
ncclResult_t call(ncclComm_t handle, cudaStream_t stream, Task t, size_t inputs, size_t outputs) {
  if (enter() != cudaSuccess) return fail(ncclUnhandledCudaError, "the device has failed");
  CommRef c = find_comm(handle);
  if (!c) return fail(ncclInvalidArgument, "not a communicator");
  if (c->failed() != ncclSuccess) return fail(c->failed(), c->text);
  if (injected(Fault::NCCL)) return fail(ncclSystemError, "an injected fault");
  int &current = current_device(), before = current;
  current = c->device->index;
  StreamRef s = find_stream(stream);
  current = before;
  ncclResult_t status = check(*c, s, t, inputs, outputs);
  if (status != ncclSuccess || t.count == 0) return status;
  if (group.depth == 0) return submit({{c, s, t}});
  group.calls.push_back({c, s, t});
  return ncclSuccess;
}

Task task(Collective kind, const void *in, void *out, size_t count, ncclDataType_t dtype,
          ncclRedOp_t op, int peer) {
  Task t = {kind, (const char *)in, (char *)out, count, dtype, op, peer};
  return t;
}

size_t ranks_of(ncclComm_t handle) {
  CommRef c = find_comm(handle);
  return c ? (size_t)c->world->ranks : 1;
}
bool is_rank(ncclComm_t handle, int rank) {
  CommRef c = find_comm(handle);
  return c && c->world->rank == rank;
}

} // namespace
} // namespace emulated

using namespace emulated;

/* Returns false with the option libraries=off. */
extern "C" bool lt_emulated_has_nccl(void);
extern "C" bool lt_emulated_has_nccl(void) { return options().libraries; }

ncclResult_t ncclGetVersion(int *version) {
  if (!version) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (!id) return fail(ncclInvalidArgument, "id is NULL");
  std::random_device random;
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "lutra-nccl-%08x%08x%08x", random(), random(),
           random());
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return (int)result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t handle) {
  static thread_local std::string text;
  CommRef c = handle ? find_comm(handle) : nullptr;
  text = last_text;
  if (c) {
    Lock lock(c->mutex);
    text = c->text;
  }
  return text.c_str();
}

/* ---- communicators --------------------------------------------------------------------------- */

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank) {
  if (!out) return fail(ncclInvalidArgument, "comm is NULL");
  *out = nullptr;
  if (enter() != cudaSuccess) return fail(ncclUnhandledCudaError, "there is no usable device");
  if (ranks < 1 || ranks > NCCL_RANKS || rank < 0 || rank >= ranks)
    return fail(ncclInvalidArgument, "rank " + std::to_string(rank) + " of " +
                                         std::to_string(ranks) + " ranks is not valid");
  CommRef c = std::make_shared<Comm>();
  std::string why;
  c->device = &device(current_device());
  ncclResult_t status = World::attach(id, ranks, rank, c->device->physical, c->world, why);
  if (status != ncclSuccess) return fail(status, why);
  if (group.depth > 0)
    group.started.push_back(c);
  else if ((status = wait_for_started({c})) != ncclSuccess)
    return status;
  *out = (ncclComm_t)c.get();
  Lock lock(comms_mutex);
  comms[*out] = c;
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t *out, int ranks, const int *devices) {
  ncclUniqueId id;
  ncclResult_t status = ncclGetUniqueId(&id);
  if (status != ncclSuccess || !out || ranks < 1 || ranks > device_count())
    return fail(ncclInvalidArgument, "invalid number of devices");
  int before = current_device();
  ncclGroupStart();
  for (int i = 0; i < ranks; i++) {
    int index = devices ? devices[i] : i;
    if (index < 0 || index >= device_count()) {
      fail(ncclInvalidArgument, "there is no device " + std::to_string(index));
      break;
    }
    current_device() = index;
    ncclCommInitRank(&out[i], ranks, id, i);
  }
  current_device() = before;
  return ncclGroupEnd();
}

/* The communicator is freed when its last operation has ended. */
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  CommRef c = take_comm(handle);
  if (!c) return fail(ncclInvalidArgument, "not a communicator");
  Lock lock(c->mutex);
  c->ended.wait(lock, [&] { return c->done == c->queued || unloading(); });
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (!handle) return ncclSuccess;
  CommRef c = take_comm(handle);
  if (!c) return fail(ncclInvalidArgument, "not a communicator");
  c->aborted = true;
  c->world->fail(c->world->rank);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t handle, int *count) {
  CommRef c = find_comm(handle);
  if (!c || !count) return fail(ncclInvalidArgument, "not a communicator");
  *count = c->world->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t handle, int *index) {
  CommRef c = find_comm(handle);
  if (!c || !index) return fail(ncclInvalidArgument, "not a communicator");
  *index = c->device->index;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t handle, int *rank) {
  CommRef c = find_comm(handle);
  if (!c || !rank) return fail(ncclInvalidArgument, "not a communicator");
  *rank = c->world->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
  CommRef c = find_comm(handle);
  if (!c || !error) return fail(ncclInvalidArgument, "not a communicator");
  *error = c->failed();
  return ncclSuccess;
}

/* ---- collectives and messages ---------------------------------------------------------------- */

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, task(Collective::REDUCE, send, recv, count, dtype, op, root), 1,
              is_rank(comm, root));
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t dtype,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, task(Collective::BROADCAST, send, recv, count, dtype, ncclSum, root),
              is_rank(comm, root), 1);
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, task(Collective::ALL_REDUCE, send, recv, count, dtype, op, 0), 1, 1);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t dtype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, task(Collective::REDUCE_SCATTER, send, recv, count, dtype, op, 0),
              ranks_of(comm), 1);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t dtype,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, task(Collective::ALL_GATHER, send, recv, count, dtype, ncclSum, 0), 1,
              ranks_of(comm));
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t dtype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, task(Collective::SEND, send, nullptr, count, dtype, ncclSum, peer), 1,
              0);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(comm, stream, task(Collective::RECV, nullptr, recv, count, dtype, ncclSum, peer), 0,
              1);
}

ncclResult_t ncclGroupStart(void) {
  group.depth++;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (group.depth == 0) return fail(ncclInvalidUsage, "there is no ncclGroupStart before it");
  if (--group.depth > 0) return ncclSuccess;
  Group ended = std::move(group);
  group = Group();
  if (ended.error != ncclSuccess) return ended.error;
  ncclResult_t status = wait_for_started(ended.started);
  return status != ncclSuccess ? status : submit(std::move(ended.calls));
}
