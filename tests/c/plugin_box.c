/* plugin_box.c: a device in a shared object of its own, which calls the core that loads it. It uses
 * the host's memory, counts its blocks, and has room for two. */
#include "kernel.h"
#include "opids.h"

#include <stdlib.h>
#include <string.h>

static int blocks;

static int count(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return 1;
}

static bool properties(int index, lt_DeviceProperties *out) {
  (void)index;
  *out = (lt_DeviceProperties){.name = "Box"};
  return true;
}

static void *box_alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream) {
  (void)self;
  (void)index;
  (void)stream;
  if (blocks == 2) return lt_error_set("both places in the box are taken");
  blocks++;
  return malloc(nbytes);
}

static void box_free(const lt_Backend *self, int index, void *memory, size_t nbytes,
                     lt_Stream *stream) {
  (void)self;
  (void)index;
  (void)nbytes;
  (void)stream;
  blocks--;
  free(memory);
}

static bool copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                 lt_Stream *stream, bool non_blocking) {
  (void)to;
  (void)from;
  (void)stream;
  (void)non_blocking;
  memcpy(target, source, nbytes);
  return true;
}

static bool elementwise(const lt_Loop *loop) {
  return lt_device_backend(LT_DEVICE_cpu)->kernels.elementwise(loop);
}

/* The memory is the host's, so the CPU's kernels can read it. */
static bool run(lt_Call *call) {
  return lt_device_backend(LT_DEVICE_cpu)->kernels.table[call->op](call);
}

static bool fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  (void)index;
  (void)stream;
  memset(memory, 0, nbytes);
  return true;
}

static const lt_KernelFn kernels[LT_OP_COUNT] = {
    [LT_OP_sum] = run, [LT_OP_mm] = run, [LT_OP_gather] = run, [LT_OP__scatter] = run};

const lt_Backend *lt_backend(void);
const lt_Backend *lt_backend(void) {
  static const lt_Backend box = {
      .abi = LT_BACKEND_ABI,
      .name = "box",
      .has_data = true,
      .host_memory = true,
      .count = count,
      .properties = properties,
      .memory.alloc = box_alloc,
      .memory.free = box_free,
      .memory.copy = copy,
      .memory.fill_zero = fill_zero,
      .kernels.elementwise = elementwise,
      .kernels.table = kernels,
  };
  return &box;
}
