/* devices.cpp: starts the runtime; the devices and their facts. */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

using namespace emulated;

const char *const emulation::device_type = "mps";
const bool emulation::barriers_need_all = true;

namespace {

/* The limits of the first GPU of Apple's that Lutra supports. */
enum { FAMILY = 7, CORES = 8, THREADS = 1024, THREADGROUP = 32 << 10, SIMD_WIDTH = 32 };

lt_MetalDevice *devices;
std::once_flag once;

/* The memory that the device can use is three quarters of the system's, as on macOS. */
size_t total_memory() { return options().memory + options().memory / 3; }

void start() {
  const int n = options().devices;
  devices = new lt_MetalDevice[MAX_DEVICES]();
  for (int i = 0; i < n; i++) {
    devices[i].index = i;
    memory_start(&devices[i].memory, i, total_memory());
  }
  if (n > 0) start_emulation();
}

} // namespace

void emulated::set_error(lt_MetalError *error, lt_MetalStatus status, const char *format, ...) {
  error->status = status;
  va_list list;
  va_start(list, format);
  vsnprintf(error->text, sizeof error->text, format, list);
  va_end(list);
}

bool emulated::fails(Fault kind, lt_MetalError *error) {
  if (!injected(kind)) return false;
  set_error(error, LT_METAL_NO_MEMORY, "out of memory (LUTRA_EMULATE_FAULT)");
  return true;
}

lt_MetalDevice *lt_metal_device(int index, lt_MetalError *error) {
  std::call_once(once, start);
  if (index >= 0 && index < options().devices) return &devices[index];
  set_error(error, LT_METAL_OTHER, "the number of emulated devices is %d", options().devices);
  return nullptr;
}

void lt_metal_facts(lt_MetalDevice *device, lt_MetalFacts *facts) {
  size_t capacity;
  memset(facts, 0, sizeof *facts);
  snprintf(facts->name, sizeof facts->name, "Emulated Apple GPU");
  facts->family = FAMILY;
  facts->cores = CORES;
  facts->unified = facts->emulated = true;
  facts->allocated = memory_used(&device->memory, &capacity);
  facts->recommended = facts->largest_buffer = options().memory;
  facts->total = total_memory();
  facts->threads = THREADS;
  facts->threadgroup = THREADGROUP;
  facts->simd_width = SIMD_WIDTH;
}

void lt_metal_signpost(const char *) {}
