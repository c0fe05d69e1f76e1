/* properties.cpp: starts the runtime; the devices and their properties. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace emulated {
namespace {

Device *devices;
int count;
std::once_flag once;

void start() {
  const Settings &s = settings();
  int n = s.driver == Driver::PRESENT ? s.visible : 0;
  devices = new Device[MAX_DEVICES]();
  for (int i = 0; i < n; i++) {
    devices[i].index = i;
    devices[i].physical = s.visible_index[i];
    memory_start(&devices[i].memory, i, options().memory);
  }
  count = n;
  if (n > 0) start_emulation();
}

} // namespace

int device_count() {
  std::call_once(once, start);
  return count;
}

Device &device(int index) { return devices[index]; }

int &current_device() {
  static thread_local int current;
  return current;
}

} // namespace emulated

using namespace emulated;

cudaError_t cudaGetDeviceCount(int *out) {
  int n = device_count();
  if (out) *out = n;
  LT_NEED(out, cudaErrorInvalidValue);
  LT_NEED(!unloading(), cudaErrorCudartUnloading);
  LT_NEED(settings().driver == Driver::PRESENT, cudaErrorInsufficientDriver);
  LT_NEED(n > 0, cudaErrorNoDevice);
  return cudaSuccess;
}

/* Checks the runtime without the current device's sticky error: another device may be selected when
 * it has failed. */
static cudaError_t available() {
  cudaError_t status = enter();
  if (status == cudaErrorCudartUnloading || status == cudaErrorInsufficientDriver ||
      status == cudaErrorNoDevice)
    return set_last_error(status);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int index) {
  cudaError_t status = available();
  if (status != cudaSuccess) return status;
  LT_NEED(index >= 0 && index < device_count(), cudaErrorInvalidDevice);
  current_device() = index;
  return set_last_error(device_error(device(index)));
}

cudaError_t cudaInitDevice(int index, unsigned, unsigned) {
  cudaError_t status = available();
  if (status != cudaSuccess) return status;
  LT_NEED(index >= 0 && index < device_count(), cudaErrorInvalidDevice);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *index) {
  cudaError_t status = available();
  if (status != cudaSuccess) return status;
  LT_NEED(index, cudaErrorInvalidValue);
  *index = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) { return available(); }

/* Frees all memory, destroys the streams, and clears the sticky error. */
cudaError_t cudaDeviceReset(void) {
  cudaError_t status = available();
  if (status != cudaSuccess) return status;
  Device &d = device(current_device());
  wait_for_device(d);
  destroy_streams(d);
  memory_free_all(&d.memory);
  d.peers = 0;
  d.sticky = cudaSuccess;
  cudaGetLastError();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int index) {
  cudaError_t status = available();
  if (status != cudaSuccess) return status;
  LT_NEED(p, cudaErrorInvalidValue);
  LT_NEED(index >= 0 && index < device_count(), cudaErrorInvalidDevice);
  const Device &d = device(index);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "Emulated GPU");
  memcpy(p->uuid.bytes, "lutra-emulated-", 15);
  p->uuid.bytes[15] = (char)('0' + d.physical);
  p->totalGlobalMem = d.memory.capacity;
  p->sharedMemPerBlock = DEFAULT_SHARED;
  p->sharedMemPerBlockOptin = MAX_SHARED;
  p->sharedMemPerMultiprocessor = MAX_SHARED + 1024;
  p->reservedSharedMemPerBlock = 1024;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->memPitch = 0x7fffffff;
  p->maxThreadsPerBlock = MAX_THREADS;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->major = 8;
  p->multiProcessorCount = 2 * options().workers;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
  p->asyncEngineCount = 2;
  p->l2CacheSize = 1 << 20;
  p->memoryBusWidth = 64;
  p->streamPrioritiesSupported = p->hostRegisterSupported = p->memoryPoolsSupported = 1;
  p->canUseHostPointerForRegisteredMem = 1;
  p->pciBusID = 1 + d.physical;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int index) {
  cudaDeviceProp p;
  LT_NEED(value, cudaErrorInvalidValue);
  cudaError_t status = cudaGetDeviceProperties(&p, index);
  if (status != cudaSuccess) return status;
  switch (attr) {
  case cudaDevAttrMaxThreadsPerBlock:
    *value = p.maxThreadsPerBlock;
    break;
  case cudaDevAttrMaxBlockDimX:
    *value = p.maxThreadsDim[0];
    break;
  case cudaDevAttrMaxBlockDimY:
    *value = p.maxThreadsDim[1];
    break;
  case cudaDevAttrMaxBlockDimZ:
    *value = p.maxThreadsDim[2];
    break;
  case cudaDevAttrMaxGridDimX:
    *value = p.maxGridSize[0];
    break;
  case cudaDevAttrMaxGridDimY:
    *value = p.maxGridSize[1];
    break;
  case cudaDevAttrMaxGridDimZ:
    *value = p.maxGridSize[2];
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = (int)p.sharedMemPerBlock;
    break;
  case cudaDevAttrTotalConstantMemory:
    *value = (int)p.totalConstMem;
    break;
  case cudaDevAttrWarpSize:
    *value = p.warpSize;
    break;
  case cudaDevAttrMaxRegistersPerBlock:
    *value = p.regsPerBlock;
    break;
  case cudaDevAttrClockRate:
  case cudaDevAttrMemoryClockRate:
    *value = 1000000;
    break;
  case cudaDevAttrMultiProcessorCount:
    *value = p.multiProcessorCount;
    break;
  case cudaDevAttrIntegrated:
    *value = p.integrated;
    break;
  case cudaDevAttrCanMapHostMemory:
    *value = p.canMapHostMemory;
    break;
  case cudaDevAttrComputeMode:
    *value = 0;
    break;
  case cudaDevAttrConcurrentKernels:
    *value = p.concurrentKernels;
    break;
  case cudaDevAttrEccEnabled:
    *value = p.ECCEnabled;
    break;
  case cudaDevAttrPciBusId:
    *value = p.pciBusID;
    break;
  case cudaDevAttrPciDeviceId:
    *value = p.pciDeviceID;
    break;
  case cudaDevAttrPciDomainId:
    *value = p.pciDomainID;
    break;
  case cudaDevAttrGlobalMemoryBusWidth:
    *value = p.memoryBusWidth;
    break;
  case cudaDevAttrL2CacheSize:
    *value = p.l2CacheSize;
    break;
  case cudaDevAttrMaxThreadsPerMultiProcessor:
    *value = p.maxThreadsPerMultiProcessor;
    break;
  case cudaDevAttrAsyncEngineCount:
    *value = p.asyncEngineCount;
    break;
  case cudaDevAttrUnifiedAddressing:
    *value = p.unifiedAddressing;
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = p.major;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *value = p.minor;
    break;
  case cudaDevAttrStreamPrioritiesSupported:
    *value = p.streamPrioritiesSupported;
    break;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    *value = (int)p.sharedMemPerMultiprocessor;
    break;
  case cudaDevAttrMaxRegistersPerMultiprocessor:
    *value = p.regsPerMultiprocessor;
    break;
  case cudaDevAttrManagedMemory:
    *value = p.managedMemory;
    break;
  case cudaDevAttrIsMultiGpuBoard:
    *value = p.isMultiGpuBoard;
    break;
  case cudaDevAttrCanUseHostPointerForRegisteredMem:
    *value = 1;
    break;
  case cudaDevAttrCooperativeLaunch:
    *value = p.cooperativeLaunch;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = (int)p.sharedMemPerBlockOptin;
    break;
  case cudaDevAttrHostRegisterSupported:
    *value = p.hostRegisterSupported;
    break;
  case cudaDevAttrMaxBlocksPerMultiprocessor:
    *value = p.maxBlocksPerMultiProcessor;
    break;
  case cudaDevAttrReservedSharedMemoryPerBlock:
    *value = (int)p.reservedSharedMemPerBlock;
    break;
  case cudaDevAttrMemoryPoolsSupported:
    *value = p.memoryPoolsSupported;
    break;
  default:
    return set_last_error(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int index) {
  cudaDeviceProp p;
  LT_NEED(out && size >= 13, cudaErrorInvalidValue);
  cudaError_t status = cudaGetDeviceProperties(&p, index);
  if (status != cudaSuccess) return status;
  snprintf(out, (size_t)size, "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  LT_NEED(version, cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

/* The version is 0 where there is no driver. */
cudaError_t cudaDriverGetVersion(int *version) {
  LT_NEED(version, cudaErrorInvalidValue);
  Driver driver = settings().driver;
  *version = driver == Driver::NONE ? 0 : driver == Driver::OLD ? 11040 : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int index, int peer) {
  LT_ENTER();
  LT_NEED(can, cudaErrorInvalidValue);
  LT_NEED(index >= 0 && index < device_count() && peer >= 0 && peer < device_count(),
          cudaErrorInvalidDevice);
  *can = index != peer && options().peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  LT_ENTER();
  LT_NEED(peer >= 0 && peer < device_count() && peer != current_device(), cudaErrorInvalidDevice);
  LT_NEED(flags == 0, cudaErrorInvalidValue);
  LT_NEED(options().peer, cudaErrorPeerAccessUnsupported);
  unsigned before = device(current_device()).peers.fetch_or(1u << peer);
  LT_NEED(!(before >> peer & 1), cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  LT_ENTER();
  LT_NEED(peer >= 0 && peer < device_count(), cudaErrorInvalidDevice);
  unsigned before = device(current_device()).peers.fetch_and(~(1u << peer));
  LT_NEED(before >> peer & 1, cudaErrorPeerAccessNotEnabled);
  return cudaSuccess;
}
