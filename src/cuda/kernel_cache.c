/* kernel_cache.c: compiled kernels in files, one for each, in $XDG_CACHE_HOME/lutra/kernels or
 * ~/.cache/lutra/kernels.
 *
 * A file's name is a hash of its key. The file holds the whole key, so that keys with the same hash
 * are distinguished, and a checksum, so that a damaged file is ignored. It is replaced atomically,
 * so that no reader sees half a file. When there are too many files, the least recently used ones
 * are removed. Errors are not reported: without a cache everything works, only slower.
 */
#define _GNU_SOURCE
#include "user_kernel.h"

#include "accel/cache.h"
#include "io/replace.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Head {
  char magic[8];
  uint64_t key, symbol, code; /* sizes of the parts that follow */
  uint64_t sum;               /* checksum of the parts that follow */
} Head;
static const char magic[8] = "lutrak1";

enum { MOST_FILES = 1000, HASH_DIGITS = 32 };

/* FNV-1a. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull;
  return h;
}
#define SEED       0xcbf29ce484222325ull
#define OTHER_SEED 0x9ae16a3b2f90404full

/* Writes the name of the key's file; false where there is no folder. */
static bool file_name(char *path, size_t size, const char *key, size_t key_size, bool make) {
  if (!lt_cache_folder("kernels", path, size, make)) return false;
  size_t used = strlen(path);
  int n = snprintf(path + used, size - used, "/%016llx%016llx.bin",
                   (unsigned long long)hash(SEED, key, key_size),
                   (unsigned long long)hash(OTHER_SEED, key, key_size));
  return n > 0 && (size_t)n < size - used;
}

/* Reads a cache file. Returns true when it is intact and belongs to the key. *body, malloc'ed, is
 * set even when false is returned; the caller frees it. */
static bool read_file(FILE *f, const char *key, size_t key_size, Head *head, char **body) {
  struct stat s;
  if (fread(head, sizeof *head, 1, f) != 1 || memcmp(head->magic, magic, sizeof magic) != 0 ||
      fstat(fileno(f), &s) != 0 || head->key != key_size)
    return false;
  uint64_t rest = (uint64_t)s.st_size - sizeof *head;
  if (head->symbol > rest || head->code > rest || head->key + head->symbol + head->code != rest)
    return false;
  *body = malloc(rest);
  return *body && fread(*body, 1, rest, f) == rest && hash(SEED, *body, rest) == head->sum &&
         memcmp(*body, key, key_size) == 0;
}

/* ---- old files ------------------------------------------------------------------------------- */

typedef struct Kept {
  char name[128];
  time_t used;
} Kept;

static int by_age(const void *a, const void *b) {
  time_t x = ((const Kept *)a)->used, y = ((const Kept *)b)->used;
  return (x > y) - (x < y);
}

/* Returns true for the names that file_name makes, and for temporary files beside them. */
static bool is_ours(const char *name) {
  for (int i = 0; i < HASH_DIGITS; i++)
    if (!isxdigit((unsigned char)name[i])) return false;
  return strncmp(name + HASH_DIGITS, ".bin", 4) == 0;
}

/* Returns the cache files of a folder, malloc'ed, without those that do not fit in memory. */
static Kept *list_files(DIR *directory, size_t *count) {
  Kept *list = NULL;
  size_t scratch = 0;
  *count = 0;
  for (struct dirent *e; (e = readdir(directory));) {
    struct stat s;
    if (!is_ours(e->d_name) || strlen(e->d_name) >= sizeof list->name ||
        fstatat(dirfd(directory), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (*count == scratch) {
      Kept *more = realloc(list, (scratch = scratch * 2 + 256) * sizeof *list);
      if (!more) break;
      list = more;
    }
    strcpy(list[*count].name, e->d_name);
    list[(*count)++].used = s.st_mtime;
  }
  return list;
}

/* Removes the least recently used files when there are more than MOST_FILES, so that three quarters
 * of that are left. A file that is open for reading stays readable until it is closed. */
static void remove_old(void) {
  char path[LT_CACHE_PATH];
  DIR *directory = lt_cache_folder("kernels", path, sizeof path, false) ? opendir(path) : NULL;
  size_t count = 0;
  if (!directory) return;
  Kept *list = list_files(directory, &count);
  if (count > MOST_FILES) {
    qsort(list, count, sizeof *list, by_age);
    for (size_t i = 0; i < count - MOST_FILES * 3 / 4; i++)
      unlinkat(dirfd(directory), list[i].name, 0);
  }
  free(list);
  closedir(directory);
}

/* ---- lookup and storage ---------------------------------------------------------------------- */

bool lt_cuda_cache_find(const char *key, size_t key_size, lt_CudaImage *out) {
  char path[LT_CACHE_PATH], *body = NULL;
  Head head;
  if (!file_name(path, sizeof path, key, key_size, false)) return false;
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  bool ok = read_file(f, key, key_size, &head, &body);
  if (ok) futimens(fileno(f), NULL); /* marks it as recently used */
  fclose(f);
  *out = (lt_CudaImage){NULL, NULL, ok ? head.code : 0};
  if (ok) {
    out->symbol = strndup(body + head.key, head.symbol);
    out->bytes = malloc(head.code ? head.code : 1);
    ok = out->symbol && out->bytes;
    if (ok) memcpy(out->bytes, body + head.key + head.symbol, head.code);
  }
  free(body);
  if (!ok) lt_cuda_image_free(out);
  return ok;
}

void lt_cuda_cache_keep(const char *key, size_t key_size, const lt_CudaImage *image) {
  char path[LT_CACHE_PATH];
  lt_Replacement r;
  if (!file_name(path, sizeof path, key, key_size, true)) return;
  size_t symbol = strlen(image->symbol);
  Head head = {.key = key_size, .symbol = symbol, .code = image->size};
  memcpy(head.magic, magic, sizeof magic);
  head.sum =
      hash(hash(hash(SEED, key, key_size), image->symbol, symbol), image->bytes, image->size);
  if (!lt_replace_open(&r, NULL, path)) return;
  lt_replace_write(&r, &head, sizeof head);
  lt_replace_write(&r, key, key_size);
  lt_replace_write(&r, image->symbol, symbol);
  lt_replace_write(&r, image->bytes, image->size);
  if (lt_replace_commit(&r, true)) remove_old();
}
