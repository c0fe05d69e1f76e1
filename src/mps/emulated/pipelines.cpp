/* pipelines.cpp: pipelines, and archives of them. Kernels are machine code already: an archive
 * records which pipelines were added. */
#include "runtime.h"

#include <algorithm>
#include <errno.h>
#include <fstream>
#include <string.h>

using namespace emulated;

/* One line for each pipeline: the kernel and the values of its function constants. */
struct lt_MetalArchive {
  std::mutex mutex; /* protects the members below */
  std::vector<std::string> pipelines;
  bool was_added = false;
};

namespace {

const char HEADER[] = "lutra emulated metal archive 1";

/* Keeps an object that lives as long as the program where leak checkers find it. */
void keep(void *object) {
  static std::mutex mutex;
  static std::vector<void *> &all = *new std::vector<void *>();
  Lock lock(mutex);
  all.push_back(object);
}

void add(lt_MetalArchive *archive, const std::string &pipeline) {
  Lock lock(archive->mutex);
  auto &all = archive->pipelines;
  if (std::find(all.begin(), all.end(), pipeline) != all.end()) return;
  all.push_back(pipeline);
  archive->was_added = true;
}

} // namespace

lt_MetalPipeline *lt_metal_pipeline_new(lt_MetalLibrary *library, const char *kernel,
                                        const int32_t *constants, int count,
                                        lt_MetalArchive *archive, lt_MetalError *error) {
  if (fails(Fault::PIPELINE, error)) return nullptr;
  const Kernel *k = find_kernel(library, kernel);
  ConstantValues values = {};
  const int most = (int)(sizeof values.values / sizeof *values.values);
  if (!k || count > most) {
    if (k)
      set_error(error, LT_METAL_INVALID, "%d function constants: at most %d are supported", count,
                most);
    else
      set_error(error, LT_METAL_REJECTED, "the library has no kernel '%s'", kernel);
    return nullptr;
  }
  if (!check_constants(library, count, error)) return nullptr;
  std::string line = kernel;
  values.count = count;
  for (int i = 0; i < count; i++) {
    values.values[i] = constants[i];
    line += ' ' + std::to_string(constants[i]);
  }
  Pipeline *p = new Pipeline();
  p->threads = k->threads;
  p->simd_width = 32;
  p->threadgroup = k->threadgroup;
  p->kernel = k;
  p->constants = values;
  p->is_users = is_user_library(library);
  if (archive) add(archive, line);
  keep(p);
  return p;
}

lt_MetalArchive *lt_metal_archive_open(lt_MetalDevice *, const char *path, lt_MetalError *error) {
  if (fails(Fault::PIPELINE, error)) return nullptr;
  lt_MetalArchive *archive = new lt_MetalArchive();
  keep(archive);
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != HEADER) return archive;
  while (std::getline(file, line)) archive->pipelines.push_back(line);
  return archive;
}

bool lt_metal_archive_write(lt_MetalArchive *archive, const char *path, lt_MetalError *error) {
  Lock lock(archive->mutex);
  if (!archive->was_added) {
    set_error(error, LT_METAL_INVALID, "the archive has no new pipeline");
    return false;
  }
  std::ofstream file(path, std::ios::trunc);
  file << HEADER << '\n';
  for (const std::string &line : archive->pipelines) file << line << '\n';
  file.close();
  if (file) return true;
  set_error(error, LT_METAL_OTHER, "cannot write %s: %s", path, strerror(errno));
  return false;
}
