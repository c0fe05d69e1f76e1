/* test_emulated_nccl.cu: the emulated NCCL: every collective and dtype against a slow reference, on
 * the devices of one process and of several; errors of other ranks. */
#include "../c/check.h"

#include "../c/in_process.h"
#include "emulated.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

#include <chrono>
#include <fcntl.h>
#include <signal.h>
#include <thread>

enum { DEVICES = 5 };

#define NCCL_OK(call) CHECK_INT(call, ncclSuccess)

/* The communicators of n ranks of this process, and a stream of each. */
struct Ranks {
  int n;
  ncclUniqueId id;
  ncclComm_t comm[DEVICES];
  cudaStream_t stream[DEVICES];
  explicit Ranks(int count) : n(count) {
    NCCL_OK(ncclGetUniqueId(&id));
    NCCL_OK(ncclGroupStart());
    for (int r = 0; r < n; r++) {
      OK(cudaSetDevice(r));
      OK(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking));
      NCCL_OK(ncclCommInitRank(&comm[r], n, id, r));
    }
    NCCL_OK(ncclGroupEnd());
  }
  Ranks(const Ranks &) = delete;
  ~Ranks() {
    for (int r = 0; r < n; r++) {
      OK(cudaSetDevice(r));
      if (comm[r]) NCCL_OK(ncclCommDestroy(comm[r]));
      cudaStreamDestroy(stream[r]);
    }
    cudaSetDevice(0);
  }
  void synchronize() const {
    for (int r = 0; r < n; r++) {
      OK(cudaSetDevice(r));
      OK(cudaStreamSynchronize(stream[r]));
      ncclResult_t error = ncclInternalError;
      NCCL_OK(ncclCommGetAsyncError(comm[r], &error));
      CHECK_INT(error, ncclSuccess);
    }
  }
  /* Calls f(rank) for all ranks in one group, and waits. */
  template <class F> void run(F f) const {
    NCCL_OK(ncclGroupStart());
    for (int r = 0; r < n; r++) NCCL_OK(f(r));
    NCCL_OK(ncclGroupEnd());
    synchronize();
  }
};

/* ---- every collective and dtype -------------------------------------------------------------- */

template <class T> double number(T v) { return (double)(float)v; }
template <> double number(double v) { return v; }
template <> double number(int v) { return v; }
template <> double number(long long v) { return (double)v; }

/* Element i of rank r: small numbers; every dtype but int8 represents their sums and products. */
static int value(int r, size_t i) { return 1 + (int)((i * 7 + (size_t)r * 3 + i / 5) % 3); }

static double reduced(ncclRedOp_t op, int n, size_t i) {
  double all = value(0, i);
  for (int r = 1; r < n; r++) {
    double v = value(r, i);
    all = op == ncclProd  ? all * v
          : op == ncclMax ? fmax(all, v)
          : op == ncclMin ? fmin(all, v)
                          : all + v;
  }
  return op == ncclAvg ? all / n : all;
}

/* The tensors of all ranks. */
template <class T> struct Tensors {
  std::vector<Buffer<T> *> all;
  Tensors(int n, size_t count, bool filled) {
    for (int r = 0; r < n; r++) {
      std::vector<T> host(count ? count : 1, T(99.0f));
      for (size_t i = 0; filled && i < count; i++) host[i] = T((float)value(r, i));
      OK(cudaSetDevice(r));
      all.push_back(new Buffer<T>(host));
    }
  }
  Tensors(const Tensors &) = delete;
  ~Tensors() {
    for (Buffer<T> *b : all) delete b;
  }
  T *operator[](int r) const { return all[(size_t)r]->data; }
  std::vector<T> get(int r) const {
    cudaSetDevice(r);
    return all[(size_t)r]->get();
  }
};

/* Averages of other than 2^k numbers are rounded; those of integers are truncated, and their
 * products wrap around. */
template <class T> bool is_near(T actual, double expected, bool is_integer) {
  double tolerance = sizeof(T) == 2 ? 0.02 * fabs(expected) : 1e-6 * fabs(expected);
  if (is_integer) return number(actual) == number(T((int)expected));
  return fabs(number(actual) - expected) <= tolerance;
}

template <class T> struct Case {
  const Ranks &ranks;
  size_t count;
  ncclDataType_t dtype;
  bool is_integer;
  int wrong = 0;

  void expect(T actual, double expected) { wrong += !is_near(actual, expected, is_integer); }

  void all_reduce(ncclRedOp_t op, bool in_place) {
    Tensors<T> in(ranks.n, count, true), out(ranks.n, count, false);
    ranks.run([&](int r) {
      return ncclAllReduce(in[r], in_place ? in[r] : out[r], count, dtype, op, ranks.comm[r],
                           ranks.stream[r]);
    });
    for (int r = 0; r < ranks.n; r++) {
      std::vector<T> got = (in_place ? in : out).get(r);
      for (size_t i = 0; i < count; i++) expect(got[i], reduced(op, ranks.n, i));
    }
  }

  void reduce(ncclRedOp_t op, int root) {
    Tensors<T> in(ranks.n, count, true), out(ranks.n, count, false);
    ranks.run([&](int r) {
      return ncclReduce(in[r], r == root ? out[r] : nullptr, count, dtype, op, root, ranks.comm[r],
                        ranks.stream[r]);
    });
    std::vector<T> got = out.get(root);
    for (size_t i = 0; i < count; i++) expect(got[i], reduced(op, ranks.n, i));
  }

  void broadcast(int root) {
    Tensors<T> in(ranks.n, count, true), out(ranks.n, count, false);
    ranks.run([&](int r) {
      return ncclBroadcast(r == root ? in[r] : nullptr, out[r], count, dtype, root, ranks.comm[r],
                           ranks.stream[r]);
    });
    for (int r = 0; r < ranks.n; r++) {
      std::vector<T> got = out.get(r);
      for (size_t i = 0; i < count; i++) expect(got[i], value(root, i));
    }
  }

  void all_gather() {
    Tensors<T> in(ranks.n, count, true), out(ranks.n, count * (size_t)ranks.n, false);
    ranks.run([&](int r) {
      return ncclAllGather(in[r], out[r], count, dtype, ranks.comm[r], ranks.stream[r]);
    });
    for (int r = 0; r < ranks.n; r++) {
      std::vector<T> got = out.get(r);
      for (size_t i = 0; i < count * (size_t)ranks.n; i++)
        expect(got[i], value((int)(i / count), i % count));
    }
  }

  void reduce_scatter(ncclRedOp_t op) {
    Tensors<T> in(ranks.n, count * (size_t)ranks.n, true), out(ranks.n, count, false);
    ranks.run([&](int r) {
      return ncclReduceScatter(in[r], out[r], count, dtype, op, ranks.comm[r], ranks.stream[r]);
    });
    for (int r = 0; r < ranks.n; r++) {
      std::vector<T> got = out.get(r);
      for (size_t i = 0; i < count; i++)
        expect(got[i], reduced(op, ranks.n, i + count * (size_t)r));
    }
  }

  /* Each rank sends a block to each, also to itself. */
  void all_to_all() {
    Tensors<T> in(ranks.n, count * (size_t)ranks.n, true),
        out(ranks.n, count * (size_t)ranks.n, false);
    ranks.run([&](int r) {
      for (int other = 0; other < ranks.n; other++) {
        size_t at = count * (size_t)other;
        NCCL_OK(ncclSend(in[r] + at, count, dtype, other, ranks.comm[r], ranks.stream[r]));
        NCCL_OK(ncclRecv(out[r] + at, count, dtype, other, ranks.comm[r], ranks.stream[r]));
      }
      return ncclSuccess;
    });
    for (int r = 0; r < ranks.n; r++) {
      std::vector<T> got = out.get(r);
      for (size_t i = 0; i < count * (size_t)ranks.n; i++)
        expect(got[i], value((int)(i / count), i % count + count * (size_t)r));
    }
  }

  void run() {
    for (ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
      all_reduce(op, false);
      reduce(op, (int)op % ranks.n);
      reduce_scatter(op);
    }
    all_reduce(ncclSum, true);
    for (int root = 0; root < ranks.n; root++) broadcast(root);
    all_gather();
    all_to_all();
  }
};

template <class T>
static void every_size(const Ranks &ranks, ncclDataType_t dtype, bool is_integer) {
  for (size_t count : {(size_t)0, (size_t)1, (size_t)3, (size_t)777}) {
    Case<T> c = {ranks, count, dtype, is_integer};
    c.run();
    if (c.wrong)
      check_report(__FILE__, __LINE__, "%d of dtype %d, %d ranks, count %d", c.wrong, (int)dtype,
                   ranks.n, (int)count);
  }
}

/* The channels have small slots, so that each call takes several rounds. */
static void collectives() {
  setenv("NCCL_BUFFSIZE", "1024", 1);
  for (int n = 1; n <= DEVICES; n++) {
    Ranks ranks(n);
    every_size<signed char>(ranks, ncclInt8, true);
    every_size<unsigned char>(ranks, ncclUint8, true);
    every_size<int>(ranks, ncclInt32, true);
    every_size<unsigned>(ranks, ncclUint32, true);
    every_size<long long>(ranks, ncclInt64, true);
    every_size<unsigned long long>(ranks, ncclUint64, true);
    every_size<__half>(ranks, ncclFloat16, false);
    every_size<float>(ranks, ncclFloat32, false);
    every_size<double>(ranks, ncclFloat64, false);
    every_size<__nv_bfloat16>(ranks, ncclBfloat16, false);
  }
  unsetenv("NCCL_BUFFSIZE");
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Returns the sums of 64 KiB for each rank and more, of numbers whose sum depends on the order. */
static std::vector<float> ring_sum(const Ranks &ranks, const std::vector<float> *in, size_t count) {
  std::vector<Buffer<float> *> data;
  for (int r = 0; r < ranks.n; r++) {
    OK(cudaSetDevice(r));
    data.push_back(new Buffer<float>(in[r]));
  }
  ranks.run([&](int r) {
    float *d = data[(size_t)r]->data;
    return ncclAllReduce(d, d, count, ncclFloat32, ncclSum, ranks.comm[r], ranks.stream[r]);
  });
  OK(cudaSetDevice(0));
  std::vector<float> out = data[0]->get();
  for (int r = 1; r < ranks.n; r++) {
    OK(cudaSetDevice(r));
    CHECK(data[(size_t)r]->get() == out);
  }
  for (Buffer<float> *b : data) delete b;
  return out;
}

/* Part c of a round is added up from rank c + 1 to rank c. A round has 16,384 floats a rank. */
static void sums_in_the_order_of_the_ring() {
  enum { N = 3, SLOT = 16384, COUNT = 2 * N * SLOT + 1001 };
  Ranks ranks(N);
  std::vector<float> in[N];
  unsigned state = 5;
  for (std::vector<float> &v : in)
    for (int i = 0; i < COUNT; i++)
      v.push_back((float)((state = state * 1664525u + 1013904223u) >> 8) / 1e5f);
  std::vector<float> out = ring_sum(ranks, in, COUNT);
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) {
    int round = i / (N * SLOT), left = COUNT - round * N * SLOT;
    int part = left < N * SLOT ? (left + N - 1) / N : (int)SLOT, c = i % (N * SLOT) / part;
    float expected = in[(c + 1) % N][(size_t)i] + in[(c + 2) % N][(size_t)i];
    wrong += out[(size_t)i] != expected + in[c][(size_t)i];
  }
  CHECK_INT(wrong, 0);
  CHECK(ring_sum(ranks, in, COUNT) == out);
}

/* Calls are ordered with the other work of their stream, and the host is not blocked. */
static void calls_are_operations_of_streams() {
  enum { COUNT = 10000, TIMES = 20 };
  Ranks ranks(2);
  Tensors<float> x(2, COUNT, false);
  for (int i = 0; i < TIMES; i++)
    for (int r = 0; r < 2; r++) {
      OK(cudaSetDevice(r));
      OK(cudaMemsetAsync(x[r], i + 1, COUNT * sizeof(float), ranks.stream[r]));
      NCCL_OK(ncclAllReduce(x[r], x[r], COUNT * sizeof(float), ncclUint8, ncclSum, ranks.comm[r],
                            ranks.stream[r]));
    }
  ranks.synchronize();
  int wrong = 0;
  for (int r = 0; r < 2; r++)
    for (float v : x.get(r)) {
      unsigned char bytes[4];
      memcpy(bytes, &v, 4);
      for (unsigned char b : bytes) wrong += b != 2 * TIMES;
    }
  CHECK_INT(wrong, 0);
}

/* The operations of a communicator run in the order of the calls on any streams. */
static void several_streams() {
  Ranks ranks(2);
  cudaStream_t other[2];
  Tensors<int> x(2, 100, true), y(2, 100, true);
  for (int r = 0; r < 2; r++) {
    OK(cudaSetDevice(r));
    OK(cudaStreamCreateWithFlags(&other[r], cudaStreamNonBlocking));
    for (int i = 0; i < 10; i++) {
      NCCL_OK(ncclAllReduce(x[r], x[r], 100, ncclInt32, ncclMax, ranks.comm[r], ranks.stream[r]));
      NCCL_OK(ncclAllReduce(y[r], y[r], 50, ncclInt32, ncclMin, ranks.comm[r], other[r]));
    }
  }
  for (int r = 0; r < 2; r++) {
    OK(cudaSetDevice(r));
    OK(cudaStreamSynchronize(other[r]));
  }
  ranks.synchronize();
  std::vector<int> a = x.get(1), b = y.get(0);
  CHECK_INT(a[10], reduced(ncclMax, 2, 10));
  CHECK_INT(b[10], reduced(ncclMin, 2, 10));
  for (cudaStream_t s : other) cudaStreamDestroy(s);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static ncclResult_t async_error(ncclComm_t comm) {
  ncclResult_t error = ncclInternalError;
  NCCL_OK(ncclCommGetAsyncError(comm, &error));
  return error;
}

static bool has(const char *text, const char *part) { return strstr(text, part) != nullptr; }

static void invalid_calls() {
  Ranks ranks(2);
  OK(cudaSetDevice(0));
  Buffer<float> x(10);
  float host[4];
  auto sum = [&](const void *in, void *out, size_t n, int dtype, int op, int comm, int stream) {
    return ncclAllReduce(in, out, n, (ncclDataType_t)dtype, (ncclRedOp_t)op, ranks.comm[comm],
                         ranks.stream[stream]);
  };
  CHECK_INT(sum(host, x.data, 4, ncclFloat32, ncclSum, 0, 0), ncclInvalidArgument);
  CHECK(has(ncclGetLastError(nullptr), "device memory"));
  CHECK_INT(sum(x.data, x.data, 5000, ncclFloat32, ncclSum, 0, 0), ncclInvalidArgument);
  CHECK_INT(sum(x.data, x.data, 4, 12, ncclSum, 0, 0), ncclInvalidArgument);
  CHECK_INT(sum(x.data, x.data, 4, ncclFloat32, 7, 0, 0), ncclInvalidArgument);
  CHECK_INT(sum(x.data, x.data, 4, ncclFloat32, ncclSum, 1, 1), ncclInvalidArgument);
  CHECK(has(ncclGetLastError(nullptr), "another device"));
  CHECK_INT(sum(x.data, x.data, 4, ncclFloat32, ncclSum, 0, 1), ncclInvalidUsage);
  CHECK_INT(ncclSend(x.data, 4, ncclFloat32, 2, ranks.comm[0], ranks.stream[0]),
            ncclInvalidArgument);
  CHECK_INT(ncclSend(x.data, 4, ncclFloat32, 0, ranks.comm[0], ranks.stream[0]), ncclInvalidUsage);
  CHECK_INT(ncclGroupEnd(), ncclInvalidUsage);
  CHECK_INT(ncclAllReduce(x.data, x.data, 1, ncclFloat32, ncclSum, nullptr, ranks.stream[0]),
            ncclInvalidArgument);
  int version = 0, n = 0, rank = -1, device = -1;
  NCCL_OK(ncclGetVersion(&version));
  CHECK_INT(version, NCCL_VERSION_CODE);
  NCCL_OK(ncclCommCount(ranks.comm[1], &n));
  NCCL_OK(ncclCommUserRank(ranks.comm[1], &rank));
  NCCL_OK(ncclCommCuDevice(ranks.comm[1], &device));
  CHECK(n == 2 && rank == 1 && device == 1);
  CHECK_STR(ncclGetErrorString(ncclInvalidArgument), "invalid argument");
}

static void invalid_communicators() {
  ncclComm_t comm[2] = {nullptr, nullptr};
  ncclUniqueId id, other;
  const int same[] = {1, 1};
  CHECK_INT(ncclCommInitAll(comm, 2, same), ncclInvalidUsage);
  CHECK(has(ncclGetLastError(nullptr), "ranks 0 and 1 use the same device, cuda:1"));
  for (ncclComm_t c : comm) NCCL_OK(ncclCommAbort(c));
  memset(&other, 'x', sizeof other);
  CHECK_INT(ncclCommInitRank(comm, 1, other, 0), ncclInvalidArgument);
  NCCL_OK(ncclGetUniqueId(&id));
  CHECK_INT(ncclCommInitRank(comm, 2, id, 2), ncclInvalidArgument);
  NCCL_OK(ncclCommInitAll(comm, 2, nullptr));
  for (ncclComm_t c : comm) NCCL_OK(ncclCommDestroy(c));
  CHECK_INT(ncclCommDestroy(comm[0]), ncclInvalidArgument);
}

/* A rank that calls another operation is an error, not wrong data or a hang. */
static void mismatches() {
  Ranks ranks(2);
  Tensors<float> x(2, 100, true);
  for (int r = 0; r < 2; r++)
    NCCL_OK(ncclAllReduce(x[r], x[r], r == 0 ? 100 : 50, ncclFloat32, ncclSum, ranks.comm[r],
                          ranks.stream[r]));
  bool found = false;
  for (int r = 0; r < 2; r++) {
    OK(cudaSetDevice(r));
    OK(cudaStreamSynchronize(ranks.stream[r]));
    CHECK(async_error(ranks.comm[r]) != ncclSuccess);
    found = found || has(ncclGetLastError(ranks.comm[r]), "calls another operation");
  }
  CHECK(found);
  CHECK_INT(ncclAllReduce(x[0], x[0], 1, ncclFloat32, ncclSum, ranks.comm[0], ranks.stream[0]),
            async_error(ranks.comm[0]));
}

/* ncclCommAbort ends an operation that hangs; the other rank's then fails. */
static void abort_ends_an_operation() {
  Ranks ranks(2);
  Tensors<float> x(2, 1000, true);
  NCCL_OK(ncclAllReduce(x[0], x[0], 1000, ncclFloat32, ncclSum, ranks.comm[0], ranks.stream[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  OK(cudaSetDevice(0));
  CHECK_INT(cudaStreamQuery(ranks.stream[0]), cudaErrorNotReady);
  NCCL_OK(ncclCommAbort(ranks.comm[0]));
  ranks.comm[0] = nullptr;
  OK(cudaStreamSynchronize(ranks.stream[0]));
  for (int i = 0; i < 2; i++) /* the first one finds what rank 0 has sent */
    ncclAllReduce(x[1], x[1], 1000, ncclFloat32, ncclSum, ranks.comm[1], ranks.stream[1]);
  OK(cudaSetDevice(1));
  OK(cudaStreamSynchronize(ranks.stream[1]));
  CHECK_INT(async_error(ranks.comm[1]), ncclRemoteError);
  CHECK(has(ncclGetLastError(ranks.comm[1]), "rank 0 has ended its communicator"));
}

/* ---- several processes ----------------------------------------------------------------------- */

/* A process that is one rank; main runs it. */
struct Peer {
  int rank, ranks;
  ncclUniqueId id;
  std::string what;
};

static int first_wrong(const std::vector<float> &got, int ranks) {
  for (size_t i = 0; i < got.size(); i++)
    if (got[i] != reduced(ncclSum, ranks, i)) return (int)i;
  return -1;
}

/* Runs a rank. Prints "right", or what is wrong. With "die", rank 1 is killed in its second call,
 * and the others must report that. */
static int run_peer(const Peer &p) {
  enum { COUNT = 100001 };
  ncclComm_t comm;
  cudaSetDevice(p.rank);
  ncclResult_t status = ncclCommInitRank(&comm, p.ranks, p.id, p.rank);
  if (status != ncclSuccess) {
    printf("%d %s", (int)status, ncclGetLastError(nullptr));
    return 0;
  }
  std::vector<float> host(COUNT);
  for (size_t i = 0; i < COUNT; i++) host[i] = (float)value(p.rank, i);
  TestStream s;
  Buffer<float> in(host), out(COUNT);
  for (int i = 0; i < 3; i++) {
    if (p.what == "die" && p.rank == 1 && i == 1) raise(SIGKILL);
    ncclAllReduce(in.data, out.data, COUNT, ncclFloat32, ncclSum, comm, s);
    cudaStreamSynchronize(s);
  }
  ncclResult_t error = async_error(comm);
  int wrong = first_wrong(out.get(), p.ranks);
  if (error != ncclSuccess)
    printf("%d %s", (int)error, ncclGetLastError(comm));
  else
    printf(wrong < 0 ? "right" : "element %d is wrong", wrong);
  ncclCommDestroy(comm);
  return 0;
}

/* Runs the program once for each rank, and stores what they print. */
static std::vector<std::string> run_peers(int ranks, const char *what, const ncclUniqueId &id,
                                          const char *settings = "LUTRA_EMULATE=cuda:4") {
  std::vector<std::string> out((size_t)ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; r++)
    threads.emplace_back([&, r] {
      std::string action = std::string("peer ") + std::to_string(r) + " " + std::to_string(ranks) +
                           " " + id.internal + " " + what;
      out[(size_t)r] = in_process(action.c_str(), settings).text;
    });
  for (std::thread &t : threads) t.join();
  return out;
}

static bool is_left_behind(const ncclUniqueId &id) {
  return access((std::string("/dev/shm/") + id.internal).c_str(), F_OK) == 0;
}

static void processes() {
  for (int n = 2; n <= 4; n++) {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    for (const std::string &said : run_peers(n, "sum", id)) CHECK_STR(said.c_str(), "right");
    CHECK(!is_left_behind(id));
  }
}

static void hostile_settings() {
  for (const char *settings :
       {"LUTRA_EMULATE=cuda:4 LUTRA_EMULATE_DELAY=3000",
        "LUTRA_EMULATE=cuda:4 LUTRA_EMULATE_STRICT=1",
        "LUTRA_EMULATE=cuda:4 LUTRA_EMULATE_WORKERS=1 LUTRA_EMULATE_ORDER=reverse"}) {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    for (const std::string &said : run_peers(2, "sum", id, settings))
      CHECK_STR(said.c_str(), "right");
  }
}

static void a_killed_process_is_reported() {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  std::vector<std::string> said = run_peers(3, "die", id);
  for (int r : {0, 2}) {
    const char *text = said[(size_t)r].c_str();
    if (strncmp(text, "6 rank 1 (process ", 18) != 0 || !has(text, ") has ended"))
      check_report(__FILE__, __LINE__, "rank %d: %s", r, text);
  }
  CHECK(!is_left_behind(id));
}

/* Waits until a process has locked the byte of a rank, which it does when it attaches. */
static void wait_for_lock(const ncclUniqueId &id, int rank) {
  std::string path = std::string("/dev/shm/") + id.internal;
  for (int i = 0; i < 400; i++) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_start = rank;
    lock.l_len = 1;
    int file = open(path.c_str(), O_RDWR);
    bool locked = file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (file >= 0) close(file);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (locked) return;
  }
}

/* A process that ends while others still wait for ranks that have not started. */
static void a_process_killed_at_the_start() {
  if (access("/dev/shm", W_OK) != 0) SKIP("there is no /dev/shm");
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  std::string action = std::string("peer 0 3 ") + id.internal + " sum", said;
  std::thread waits([&] { said = in_process(action.c_str(), "LUTRA_EMULATE=cuda:4").text; });
  fflush(stdout);
  pid_t dies = fork();
  if (dies == 0) {
    std::string other = std::string("peer 1 3 ") + id.internal + " sum";
    execl(program, "test", other.c_str(), (char *)nullptr);
    _exit(99);
  }
  wait_for_lock(id, 1);
  kill(dies, SIGKILL);
  waits.join();
  int status;
  waitpid(dies, &status, 0);
  CHECK(strncmp(said.c_str(), "6 rank 1", 8) == 0);
  CHECK(!is_left_behind(id));
}

/* A file that no process holds is removed by the next communicator. */
static void abandoned_segments_are_removed() {
  if (access("/dev/shm", W_OK) != 0) SKIP("there is no /dev/shm");
  std::string path = "/dev/shm/lutra-nccl-test" + std::to_string(getpid());
  int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  CHECK(file >= 0);
  close(file);
  Ranks ranks(2);
  CHECK(access(path.c_str(), F_OK) != 0);
  CHECK(!is_left_behind(ranks.id));
}

static int run_action(const char *action) {
  Peer p;
  char id[sizeof p.id.internal], what[32];
  if (sscanf(action, "peer %d %d %127s %31s", &p.rank, &p.ranks, id, what) != 4) return 98;
  memset(&p.id, 0, sizeof p.id);
  memcpy(p.id.internal, id, strlen(id));
  p.what = what;
  return run_peer(p);
}

int main(int argc, char **argv) {
  program = argv[0];
  if (argc > 1) return run_action(argv[1]);
  setenv("LUTRA_EMULATE", "cuda:5,memory=64MiB", 1);
  RUN(collectives);
  RUN(sums_in_the_order_of_the_ring);
  RUN(calls_are_operations_of_streams);
  RUN(several_streams);
  RUN(invalid_calls);
  RUN(invalid_communicators);
  RUN(mismatches);
  RUN(abort_ends_an_operation);
  RUN(processes);
  RUN(hostile_settings);
  RUN(a_killed_process_is_reported);
  RUN(a_process_killed_at_the_start);
  RUN(abandoned_segments_are_removed);
  return check_end();
}
