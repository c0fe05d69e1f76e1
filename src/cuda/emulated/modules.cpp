/* modules.cpp: loads code that was compiled at run time, and launches its kernels. It defines the
 * driver's functions of the same names; statuses have the runtime's numbers.
 *
 * Loaded code stays loaded until the program ends, since threads of streams may be running it.
 */
#include "runtime.h"

#include "compiler.h"
#include "launches.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

namespace emulated {
namespace {

/* Loads a shared object from a temporary file, which is removed at once. NULL on failure. */
void *load(const std::string &code) {
  std::string folder = make_folder(), path = folder + "/kernel.so";
  void *library = nullptr;
  if (folder.empty()) return nullptr;
  if (write_file(path, code)) library = load_kernels(path);
  unlink(path.c_str());
  rmdir(folder.c_str());
  return library;
}

/* Implements cuModuleLoadData: checks the header and loads the shared object. */
int module_load(void **module, const void *image) {
  LT_ENTER();
  LT_CHECK(refuse_unsafe());
  CodeHeader found, expected = code_header();
  LT_NEED(!injected(Fault::LOAD), cudaErrorMemoryAllocation);
  memcpy(&found, image, sizeof found);
  LT_NEED(memcmp(found.magic, expected.magic, sizeof found.magic) == 0 &&
              found.headers == expected.headers,
          cudaErrorInvalidKernelImage);
  void *library = load(std::string((const char *)image + sizeof found, found.size));
  LT_NEED(library, cudaErrorInvalidKernelImage);
  *module = library;
  return cudaSuccess;
}

int get_function(void **function, void *module, const char *name) {
  LT_ENTER();
  *function = dlsym(module, name);
  LT_NEED(*function, cudaErrorSymbolNotFound);
  return cudaSuccess;
}

int set_attribute(void *function, int attribute, int value) {
  return cudaFuncSetAttribute((const void *)function, (cudaFuncAttribute)attribute, value);
}

/* Implements cuLaunchKernel. `function` is the exported function that creates a launch from the
 * arguments' addresses. */
int launch_kernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **arguments, void **) {
  LT_ENTER();
  LT_NEED(function, cudaErrorInvalidDeviceFunction);
  auto make = (lt_EmulatedLaunch * (*)(void **)) function;
  cudaLaunchConfig_t config = {};
  config.grid_size = dim3(gx, gy, gz);
  config.block_size = dim3(bx, by, bz);
  config.dynamicSmemBytes = shared;
  config.stream = (cudaStream_t)stream;
  return launch_user(&config, function, make(arguments));
}

void stop(int device) { stop_user_grids(device); }

} // namespace

void *find_module_function(const char *name) {
  static const struct {
    const char *name;
    void *function;
  } functions[] = {{"cuModuleLoadData", (void *)module_load},
                   {"cuModuleGetFunction", (void *)get_function},
                   {"cuFuncSetAttribute", (void *)set_attribute},
                   {"cuLaunchKernel", (void *)launch_kernel},
                   {"lt_emulated_stop", (void *)stop}};
  for (const auto &f : functions)
    if (strcmp(f.name, name) == 0) return f.function;
  return nullptr;
}

} // namespace emulated
