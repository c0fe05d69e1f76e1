/* test_emulated_settings.cu: the environment variables of the emulated CUDA. Each setting is tested
 * in a process of its own: this program with the name of an action. An action prints what it
 * observes. */
#include "emulated.h"

#include "../c/in_process.h"

#include <cublas_v2.h>

#include <string>

__global__ void set(int *p, int v) { p[blockIdx.x * blockDim.x + threadIdx.x] = v; }
__global__ void get(const int *from, int *to) { *to = *from; }
__global__ void endless(volatile int *p) {
  while (*p == 0) {
  }
}
static cudaError_t set_on(cudaStream_t s, int *p, int v) {
  return launch("set", set, dim3(1), dim3(1), 0, s, p, v);
}
static const char *name_of(cudaError_t status) { return cudaGetErrorName(status); }

/* ---- actions --------------------------------------------------------------------------------- */

static void print_devices() {
  int n = -1, driver = -1;
  cudaError_t status = cudaGetDeviceCount(&n);
  cudaDriverGetVersion(&driver);
  printf("%s %d driver %d;", name_of(status), n, driver);
  for (int i = 0; i < n; i++) {
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, i);
    printf(" %d:%zuM", p.pciBusID, p.totalGlobalMem >> 20);
  }
  void *p;
  printf(" malloc %s", name_of(cudaMalloc(&p, 1)));
}

static void touch_from_the_host() {
  cudaSetDevice(1);
  int *p;
  cudaMalloc(&p, 4000);
  cudaMemset(p, 0, 4000);
  cudaDeviceSynchronize();
  printf("touching\n");
  fflush(stdout);
  p[3] = 1;
  printf("touched\n");
}

static void touch_the_other_device() {
  int *far, *near;
  cudaSetDevice(1);
  cudaMalloc(&far, 4);
  cudaSetDevice(0);
  cudaMalloc(&near, 4);
  launch("get", get, dim3(1), dim3(1), 0, (cudaStream_t)0, (const int *)far, near);
  printf("without %s;", name_of(cudaDeviceSynchronize()));
  cudaDeviceReset();
  cudaMalloc(&near, 4);
  cudaDeviceEnablePeerAccess(1, 0);
  launch("get", get, dim3(1), dim3(1), 0, (cudaStream_t)0, (const int *)far, near);
  printf(" with %s", name_of(cudaDeviceSynchronize()));
}

static void copy_between_devices() {
  int *a, *b, v = 0, can = -1;
  cudaSetDevice(1);
  cudaMalloc(&b, 400000);
  cudaSetDevice(0);
  cudaMalloc(&a, 400000);
  cudaMemset(b, 0x11, 400000);
  cudaDeviceCanAccessPeer(&can, 0, 1);
  printf("can %d enable %s", can, name_of(cudaDeviceEnablePeerAccess(1, 0)));
  printf(" copy %s", name_of(cudaMemcpyPeer(a, 0, b, 1, 400000)));
  cudaMemcpy(&v, a + 99999, 4, cudaMemcpyDeviceToHost);
  printf(" %x", v);
}

static void print_new_memory() {
  unsigned *p, v;
  cudaMalloc(&p, 4);
  cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost);
  printf("%08x", v);
}

/* A barrier is missing: the result is right when threads run in order. */
__global__ void without_barrier(int *out) {
  __shared__ int first;
  if (threadIdx.x == 0) first = 42;
  out[threadIdx.x] = first;
}

static void run_without_barrier() {
  int *p, v[64], right = 0;
  cudaMalloc(&p, 256);
  launch("without_barrier", without_barrier, dim3(1), dim3(64), 0, (cudaStream_t)0, p);
  cudaMemcpy(v, p, 256, cudaMemcpyDeviceToHost);
  for (int x : v) right += x == 42;
  printf("%d right", right);
}

/* A call that fails leaves the pointers of the round before. */
static void allocate_and_launch() {
  void *p = nullptr, *pinned = nullptr;
  for (int i = 1; i <= 3; i++) {
    void *new_p, *new_pinned;
    cudaStream_t s;
    cudaEvent_t e;
    printf("%d: malloc %s", i, name_of(cudaMalloc(&new_p, 512)));
    printf(" host %s", name_of(cudaMallocHost(&new_pinned, 512)));
    if (new_p) p = new_p;
    if (new_pinned) pinned = new_pinned;
    printf(" stream %s", name_of(cudaStreamCreate(&s)));
    printf(" event %s", name_of(cudaEventCreate(&e)));
    printf(" copy %s", name_of(cudaMemcpy(p, pinned, 4, cudaMemcpyHostToDevice)));
    printf(" launch %s", name_of(set_on(nullptr, (int *)p, 1)));
    printf(" sync %s;", name_of(cudaDeviceSynchronize()));
  }
}

static void run_endless_kernel() {
  int *p;
  cudaMalloc(&p, 4);
  cudaMemset(p, 0, 4);
  launch("endless", endless, dim3(1), dim3(1), 0, (cudaStream_t)0, (volatile int *)p);
  printf("%s", name_of(cudaDeviceSynchronize()));
  printf(" %s", cudaGetErrorString(cudaErrorLaunchTimeout));
}

/* Work is queued, and main returns. */
static void leave_work_behind() {
  int *p;
  float *f;
  cudaMalloc(&p, 4 << 20);
  cudaMallocHost(&f, 4 << 20);
  for (int d = 0; d < 2; d++) {
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (int i = 0; i < 3000; i++) {
      launch("set", set, dim3(1024), dim3(1024), 0, s, p, i);
      cudaMemcpyAsync(f, p, 4 << 20, cudaMemcpyDeviceToHost, s);
    }
  }
  printf("left");
}

/* Handlers run in reverse order: the runtime's own runs before this one. */
static void call_while_leaving() {
  atexit([] {
    void *p;
    printf("%s", name_of(cudaMalloc(&p, 4)));
    fflush(stdout);
  });
  void *p;
  cudaMalloc(&p, 4);
}

static void multiply() {
  cublasHandle_t h;
  float *p, one = 1;
  cudaMalloc(&p, 4);
  printf("create %d", cublasCreate(&h));
  for (int i = 0; i < 3; i++)
    printf(" %d", cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, p, 1, p, 1, &one, p, 1));
  printf(" %s", name_of(cudaDeviceSynchronize()));
  cublasDestroy(h);
}

static const struct {
  const char *name;
  void (*run)();
} actions[] = {{"devices", print_devices},
               {"touch", touch_from_the_host},
               {"other", touch_the_other_device},
               {"memory", print_new_memory},
               {"peer", copy_between_devices},
               {"barrier", run_without_barrier},
               {"faults", allocate_and_launch},
               {"endless", run_endless_kernel},
               {"multiply", multiply},
               {"leave", leave_work_behind},
               {"leaving", call_while_leaving}};

/* ---- tests ----------------------------------------------------------------------------------- */

static void devices_and_memory() {
  PRINTS("devices", "", "cudaSuccess 1 driver 13000; 1:256M malloc cudaSuccess");
  PRINTS("devices", "LUTRA_EMULATE=cuda", "cudaSuccess 1 driver 13000; 1:256M malloc cudaSuccess");
  PRINTS("devices", "LUTRA_EMULATE=cuda:2,memory=1GiB,mps",
         "cudaSuccess 2 driver 13000; 1:1024M 2:1024M malloc cudaSuccess");
  PRINTS("devices", "LUTRA_EMULATE=memory=32MiB",
         "cudaSuccess 1 driver 13000; 1:32M malloc cudaSuccess");
  PRINTS("devices", "LUTRA_EMULATE=mps",
         "cudaErrorNoDevice 0 driver 13000; malloc "
         "cudaErrorNoDevice");
  PRINTS("devices", "LUTRA_EMULATE_DRIVER=none",
         "cudaErrorInsufficientDriver 0 driver 0; malloc cudaErrorInsufficientDriver");
  PRINTS("devices", "LUTRA_EMULATE_DRIVER=old",
         "cudaErrorInsufficientDriver 0 driver 11040; malloc cudaErrorInsufficientDriver");
  Result r = in_process("devices", "LUTRA_EMULATE=cuda:9,memory=lots,what=1");
  CONTAINS(r.text, "expected cuda:1 to cuda:8, got \"cuda:9\", which is ignored");
  CONTAINS(r.text, "cuda:1 to cuda:8");
  CONTAINS(r.text, "got \"memory=lots\", which is ignored");
  CONTAINS(r.text, "got \"what=1\", which is ignored");
  CONTAINS(r.text, "cudaSuccess 1 driver");
}

static void visible_devices() {
#define VISIBLE(list, expected)                                                                    \
  PRINTS("devices", "LUTRA_EMULATE=cuda:3 CUDA_VISIBLE_DEVICES=" list, expected)
  const char *none = "cudaErrorNoDevice 0 driver 13000; malloc cudaErrorNoDevice";
  VISIBLE("1,0", "cudaSuccess 2 driver 13000; 2:256M 1:256M malloc cudaSuccess");
  VISIBLE("2", "cudaSuccess 1 driver 13000; 3:256M malloc cudaSuccess");
  VISIBLE("", none);
  VISIBLE("-1", none);
  VISIBLE("0,-1,1", "cudaSuccess 1 driver 13000; 1:256M malloc cudaSuccess");
  VISIBLE("nonsense", none);
  VISIBLE("1,nonsense,0", "cudaSuccess 1 driver 13000; 2:256M malloc cudaSuccess");
  VISIBLE("0,3,1", "cudaSuccess 1 driver 13000; 1:256M malloc cudaSuccess");
  VISIBLE("0,1,0", none);
}

static void peer_access() {
  const char *can = "can 1 enable cudaSuccess copy cudaSuccess 11111111";
  PRINTS("peer", "LUTRA_EMULATE=cuda:2", can);
  PRINTS("peer", "LUTRA_EMULATE=cuda:2,peer=on", can);
  PRINTS("peer", "LUTRA_EMULATE=cuda:2,peer=off",
         "can 0 enable cudaErrorPeerAccessUnsupported copy cudaSuccess 11111111");
  PRINTS("peer", "LUTRA_EMULATE=cuda:2,peer=off LUTRA_EMULATE_STRICT=1",
         "can 0 enable cudaErrorPeerAccessUnsupported copy cudaSuccess 11111111");
  PRINTS("other", "LUTRA_EMULATE=cuda:2,peer=off LUTRA_EMULATE_STRICT=1",
         "without cudaErrorIllegalAddress; with cudaErrorIllegalAddress");
  CONTAINS(in_process("peer", "LUTRA_EMULATE=cuda:2,peer=maybe").text,
           "got \"peer=maybe\", which is ignored");
}

static void strict_memory() {
  Result r = in_process("touch", "LUTRA_EMULATE=cuda:2 LUTRA_EMULATE_STRICT=1");
  CHECK(r.status != 0);
  CONTAINS(r.text, "touching\n");
  CONTAINS(r.text, "host code accessed memory of emulated device cuda:1 at 0x");
  CHECK(!strstr(r.text.c_str(), "touched\n"));
  PRINTS("touch", "LUTRA_EMULATE=cuda:2", "touching\ntouched\n");
  PRINTS("other", "LUTRA_EMULATE=cuda:2 LUTRA_EMULATE_STRICT=1",
         "without cudaErrorIllegalAddress; with cudaSuccess");
  PRINTS("memory", "LUTRA_EMULATE_STRICT=1", "ffffffff");
  PRINTS("memory", "LUTRA_EMULATE_POISON=1", "ffffffff");
}

static void the_reverse_order_finds_a_missing_barrier() {
  PRINTS("barrier", "", "64 right");
  Result r = in_process("barrier", "LUTRA_EMULATE_ORDER=reverse");
  CHECK(strcmp(r.text.c_str(), "64 right") != 0);
  CONTAINS(in_process("barrier", "LUTRA_EMULATE_ORDER=sideways").text.c_str(),
           "expected forward or reverse, got \"sideways\"");
}

/* Returns the output of the three rounds with one fault. */
static std::string rounds(const char *name, int round, const char *error, bool sticky) {
  static const char *const calls[] = {"malloc", "host",   "stream", "event",
                                      "copy",   "launch", "sync"};
  std::string text;
  bool failed = false;
  for (int i = 1; i <= 3; i++) {
    text += std::to_string(i) + ":";
    for (const char *call : calls) {
      bool now = i == round && strcmp(call, name) == 0;
      failed |= now;
      text += std::string(" ") + call + " " + (now || (sticky && failed) ? error : "cudaSuccess") +
              (call == calls[6] ? ";" : "");
    }
  }
  return text;
}

static void injected_faults() {
  PRINTS("faults", "LUTRA_EMULATE_FAULT=oom@7", rounds("", 0, "", false));
  Result r = in_process("faults", "LUTRA_EMULATE_FAULT=oom@3");
  CONTAINS(r.text, "3: malloc cudaErrorMemoryAllocation host cudaSuccess");
  PRINTS("faults", "LUTRA_EMULATE_FAULT=host@9,event@2",
         rounds("event", 2, "cudaErrorMemoryAllocation", false));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=stream@2",
         rounds("stream", 2, "cudaErrorMemoryAllocation", false));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=copy@3", rounds("copy", 3, "cudaErrorInvalidValue", false));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=launch@2",
         rounds("launch", 2, "cudaErrorLaunchFailure", true));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=illegal@2",
         rounds("sync", 2, "cudaErrorIllegalAddress", true));
  PRINTS("faults", "LUTRA_EMULATE_FAULT=sync@1", rounds("sync", 1, "cudaErrorLaunchFailure", true));
  PRINTS("multiply", "LUTRA_EMULATE_FAULT=blas@2", "create 0 0 13 0 cudaSuccess");
  for (const char *bad : {"oom", "oom@", "oom@0", "oom@x", "oom@-1", "zoom@1", "oo@1", "@1"}) {
    r = in_process("faults", (std::string("LUTRA_EMULATE_FAULT=") + bad).c_str());
    CONTAINS(r.text, (std::string("got \"") + bad + "\", which is ignored"));
    CONTAINS(r.text, rounds("", 0, "", false));
  }
}

static void endless_kernels_are_stopped() {
  Result r = in_process("endless", "LUTRA_EMULATE_TIMEOUT=0.2");
  CHECK_INT(r.status, 0);
  CONTAINS(r.text, "cudaErrorLaunchTimeout the launch timed out and was terminated");
  CONTAINS(r.text, "thread (0, 0, 0)");
}

static void exit_with_queued_work() {
  for (const char *settings : {"LUTRA_EMULATE=cuda", "LUTRA_EMULATE_STRICT=1"})
    for (int i = 0; i < 5; i++) PRINTS("leave", settings, "left");
  PRINTS("leaving", "", "cudaErrorCudartUnloading");
}

int main(int n, char **arguments) {
  program = arguments[0];
  for (const auto &action : actions)
    if (n == 2 && strcmp(arguments[1], action.name) == 0) {
      action.run();
      return 0;
    }
  if (n > 1) return 98; /* a process for an action never runs all tests */
  RUN(devices_and_memory);
  RUN(visible_devices);
  RUN(peer_access);
  RUN(strict_memory);
  RUN(the_reverse_order_finds_a_missing_barrier);
  RUN(injected_faults);
  RUN(endless_kernels_are_stopped);
  RUN(exit_with_queued_work);
  return check_end();
}
