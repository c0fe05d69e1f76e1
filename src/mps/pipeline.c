/* pipeline.c: the compiled kernels of this folder, by file, kernel and function constants. They are
 * compiled once in a run; an archive in the cache folder keeps them for later runs, where Metal
 * then finds them in milliseconds.
 *
 * Entries are never removed, so lookups need no lock: an entry is complete when it is linked in.
 */
#define _GNU_SOURCE
#include "accel/cache.h"
#include "queue.h"

#include <pthread.h>
#include <unistd.h>

typedef struct Entry {
  struct Entry *next;
  int index;
  int32_t constants[LT_MPS_CONSTANTS];
  lt_MetalPipeline *native;
  const char *file;
  char name[]; /* the kernel, and behind it the file */
} Entry;

#define BUCKETS 1024
static Entry *_Atomic table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* while a kernel is compiled */

/* The archive of device 0, under `lock`. */
static struct {
  bool opened;
  lt_MetalArchive *archive; /* NULL: none */
  int added;                /* pipelines that were compiled with it */
  char path[LT_CACHE_PATH];
} kept;

static uint32_t hash(const char *file, const char *kernel, const int32_t *constants) {
  uint32_t h = 2166136261u;
  for (const char *p = file; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
  for (const char *p = kernel; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
  for (int i = 0; i < LT_MPS_CONSTANTS; i++) h = (h ^ (uint32_t)constants[i]) * 16777619u;
  return (h ^ h >> 15) % BUCKETS;
}

static Entry *find(uint32_t at, int index, const char *file, const char *kernel,
                   const int32_t *constants) {
  Entry *e = atomic_load_explicit(&table[at], memory_order_acquire);
  while (e && (e->index != index || memcmp(e->constants, constants, sizeof e->constants) != 0 ||
               strcmp(e->name, kernel) != 0 || strcmp(e->file, file) != 0))
    e = e->next;
  return e;
}

/* ---- the archive ----------------------------------------------------------------------------- */

/* Writes the archive's path: one for each device and version of Lutra. LUTRA_MPS_ARCHIVE names
 * another one, for tests. */
static bool archive_path(const lt_MetalFacts *facts, char *path, size_t size) {
  const char *forced = getenv("LUTRA_MPS_ARCHIVE");
  if (forced && *forced) return snprintf(path, size, "%s", forced) < (int)size;
  /* the kernels of an emulated device are compiled with the program */
  if (facts->emulated || !lt_cache_folder("kernels", path, size, true)) return false;
  size_t used = strlen(path);
  uint32_t device = 2166136261u;
  for (const char *p = facts->name; *p; p++) device = (device ^ (unsigned char)*p) * 16777619u;
  int n = snprintf(path + used, size - used, "/metal-%08x-" LT_VERSION ".archive", device);
  return n > 0 && (size_t)n < size - used;
}

/* Returns the archive, which is opened at the first call; NULL where there is none. Requires the
 * lock. */
static lt_MetalArchive *open_archive(int index) {
  lt_MetalError error;
  if (index != 0) return NULL;
  if (!kept.opened && archive_path(lt_mps_facts(index), kept.path, sizeof kept.path))
    kept.archive = lt_metal_archive_open(lt_mps_device(index), kept.path, &error);
  kept.opened = true;
  return kept.archive;
}

/* The file is replaced at once, so that no reader sees half of it. Errors are not reported: without
 * an archive everything works, only slower. */
void lt_mps_pipelines_keep(void) {
  char path[LT_CACHE_PATH + 40];
  lt_MetalError error;
  pthread_mutex_lock(&lock);
  if (kept.archive && kept.added > 0) {
    snprintf(path, sizeof path, "%s.%ld.tmp", kept.path, (long)getpid());
    if (!lt_metal_archive_write(kept.archive, path, &error) || rename(path, kept.path) != 0)
      unlink(path);
    kept.added = 0;
  }
  pthread_mutex_unlock(&lock);
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* The libraries of files, each compiled once for a device. */
typedef struct Library {
  struct Library *next;
  int index;
  lt_MetalLibrary *native;
  char file[];
} Library;
static Library *libraries;

/* Returns the library of a file of kernels. Requires the lock. */
static lt_MetalLibrary *library_of(int index, const char *file, lt_MetalError *error) {
  for (Library *l = libraries; l; l = l->next)
    if (l->index == index && strcmp(l->file, file) == 0) return l->native;
  size_t size = strlen(file) + 1;
  Library *l = malloc(sizeof *l + size);
  lt_MetalLibrary *native = l ? lt_metal_library_builtin(lt_mps_device(index), file, error) : NULL;
  if (!native) {
    free(l);
    return NULL;
  }
  *l = (Library){libraries, index, native};
  memcpy(l->file, file, size);
  libraries = l;
  return native;
}

/* Compiles a kernel; a damaged archive is left out. Requires the lock. */
static lt_MetalPipeline *compile(int index, const char *file, const char *kernel,
                                 const int32_t *constants, lt_MetalError *error) {
  lt_MetalLibrary *library = library_of(index, file, error);
  if (!library) return NULL;
  lt_MetalArchive *archive = open_archive(index);
  lt_MetalPipeline *p =
      lt_metal_pipeline_new(library, kernel, constants, LT_MPS_CONSTANTS, archive, error);
  if (p && archive) kept.added++;
  return p;
}

/* Adds a kernel to the table. Requires the lock. */
static Entry *add(uint32_t at, int index, const char *file, const char *kernel,
                  const int32_t *constants, lt_MetalError *error) {
  size_t first = strlen(kernel) + 1, second = strlen(file) + 1;
  Entry *e = malloc(sizeof *e + first + second);
  *error = (lt_MetalError){LT_METAL_OTHER, "out of memory"};
  lt_MetalPipeline *native = e ? compile(index, file, kernel, constants, error) : NULL;
  if (!native) {
    free(e);
    return NULL;
  }
  *e = (Entry){.next = atomic_load(&table[at]), .index = index, .native = native};
  memcpy(e->constants, constants, sizeof e->constants);
  memcpy(e->name, kernel, first);
  memcpy(e->name + first, file, second);
  e->file = e->name + first;
  atomic_store_explicit(&table[at], e, memory_order_release);
  return e;
}

bool lt_mps_pipeline(int index, const char *file, const char *kernel,
                     const int32_t constants[LT_MPS_CONSTANTS], lt_MpsPipeline *out,
                     lt_DriverStatus *status) {
  uint32_t at = hash(file, kernel, constants);
  lt_MetalError error;
  Entry *e = find(at, index, file, kernel, constants);
  if (!e) {
    pthread_mutex_lock(&lock);
    e = find(at, index, file, kernel, constants);
    if (!e) e = add(at, index, file, kernel, constants, &error);
    pthread_mutex_unlock(&lock);
  }
  *status = e ? LT_DRIVER_OK : LT_DRIVER_FAILED;
  if (e) {
    *out = (lt_MpsPipeline){e->native, e->name};
    return true;
  }
  if (error.status == LT_METAL_NO_MEMORY) {
    *status = LT_DRIVER_NO_MEMORY;
    return false;
  }
  char doing[160];
  snprintf(doing, sizeof doing, "compile kernel %.60s of %.60s.metal", kernel, file);
  return lt_mps_fail(index, &error, doing);
}
