/* launch.c: checks launches, binds their memory, and queues them. */
#include "queue.h"

/* Checks the sizes of a launch, and fills in the dispatch's. */
static bool check(int index, const lt_MpsPipeline *p, const lt_MpsLaunch *l, lt_MetalDispatch *d) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    int64_t groups = l->groups[i] > 1 ? l->groups[i] : 1;
    d->group[i] = (uint32_t)(l->threads[i] > 1 ? l->threads[i] : 1);
    threads *= d->group[i];
    if (groups > UINT32_MAX / d->group[i])
      return lt_fail("cannot launch kernel %s: its grid of %lld threadgroups is too large", p->name,
                     (long long)groups);
    d->grid[i] = (uint32_t)groups * d->group[i];
  }
  if (threads > p->native->threads)
    return lt_fail("cannot launch kernel %s: it runs at most %u threads in a threadgroup, not %llu",
                   p->name, p->native->threads, (unsigned long long)threads);
  size_t most = lt_mps_facts(index)->threadgroup;
  size_t wanted = (l->threadgroup + 15) / 16 * 16;
  if (wanted + p->native->threadgroup > most)
    return lt_fail("cannot launch kernel %s: it needs %zu bytes of threadgroup memory, the device "
                   "has %zu",
                   p->name, wanted + p->native->threadgroup, most);
  d->threadgroup = (uint32_t)wanted;
  return true;
}

/* Finds the memory of the arguments. An address just behind a buffer is that of an empty tensor. */
static bool bind(const lt_MpsPipeline *p, const lt_MpsLaunch *l, lt_MetalArgument *out) {
  for (int i = 0; i < l->count; i++) {
    out[i] = (lt_MetalArgument){.buffer = NULL};
    if (!l->data[i]) continue;
    out[i].buffer = lt_mps_find_buffer((uint64_t)(uintptr_t)l->data[i], 0, &out[i].offset);
    if (!out[i].buffer)
      return lt_fail("cannot launch kernel %s: argument %d is not in memory of the device", p->name,
                     i + 1);
    if (out[i].offset == out[i].buffer->size) out[i] = (lt_MetalArgument){.buffer = NULL};
  }
  if (l->arguments) out[l->count] = (lt_MetalArgument){.bytes = l->arguments, .size = l->size};
  return true;
}

/* Queues a launch. Returns LT_DRIVER_NO_MEMORY without a message. */
static lt_DriverStatus try_launch(int index, lt_MpsQueue *q, const lt_MpsLaunch *l) {
  lt_MpsPipeline p;
  lt_DriverStatus status;
  lt_MetalArgument arguments[LT_MPS_DATA + 1];
  lt_MetalDispatch d = {.arguments = arguments, .count = l->count + (l->arguments != NULL)};
  if (!lt_mps_pipeline(index, l->file, l->kernel, l->constants, &p, &status)) return status;
  if (!check(index, &p, l, &d) || !bind(&p, l, arguments)) return LT_DRIVER_FAILED;
  lt_MetalCommands *open = lt_mps_queue_enter(q, p.name, &status);
  if (!open) return status;
  d.pipeline = p.native;
  lt_metal_dispatch(open, &d);
  /* an estimate: each thread reads and writes one element of each tensor */
  size_t threads = (size_t)d.grid[0] * d.grid[1] * d.grid[2];
  lt_mps_queue_leave(q, threads * 4 * (size_t)l->count);
  return LT_DRIVER_OK;
}

/* When memory is out, frees the memory that the allocator holds unused and tries once more. */
bool lt_mps_launch_on(int index, lt_Stream *stream, const lt_MpsLaunch *launch) {
  lt_MpsQueue *q = lt_mps_queue_of(index, lt_accel_native(stream));
  if (!q || !lt_mps_check_lost(index)) return false;
  lt_DriverStatus status = try_launch(index, q, launch);
  if (status == LT_DRIVER_NO_MEMORY && lt_mps_backend.memory.retry(&lt_mps_backend, index))
    status = try_launch(index, q, launch);
  if (status == LT_DRIVER_NO_MEMORY) {
    lt_error_memory("%s: cannot launch kernel %s: out of memory", lt_user_op(), launch->kernel);
    return false;
  }
  if (status != LT_DRIVER_OK) return false;
  return !lt_mps_is_blocking() || (lt_mps_queue_synchronize(q) && lt_mps_fault_check(index));
}

bool lt_mps_launch(const lt_Call *c, const lt_MpsLaunch *launch) {
  return lt_mps_launch_on(c->device.index, c->stream, launch);
}
