/* file.c: files are opened with one message for every failure, and are replaced as a whole or not
 * at all: the new one is written beside the old, synced, and renamed over it. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)4 << 20) /* bytes between two looks whether to stop */

FILE *lt_file_open(const char *reader, const char *path) {
  struct stat s = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe does not keep us waiting */
  if (fd < 0) return lt_error_set("%s: %s: %s", reader, path, strerror(errno));
  FILE *f = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? fdopen(fd, "rb") : NULL;
  if (f) return f;
  close(fd);
  return lt_error_set("%s: %s: %s", reader, path,
                      S_ISDIR(s.st_mode)   ? "is a folder"
                      : S_ISREG(s.st_mode) ? "out of memory"
                                           : "is not a file");
}

bool lt_file_size(FILE *file, uint64_t *size) {
  if (fseeko(file, 0, SEEK_END) != 0) return false;
  off_t end = ftello(file);
  if (end < 0 || fseeko(file, 0, SEEK_SET) != 0) return false;
  *size = (uint64_t)end;
  return true;
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* The file that a path means, through links, so that they stay links. malloc'ed; NULL without
 * memory. */
static char *real_path(const char *path) {
  char *real = realpath(path, NULL);
  return real ? real : strdup(path);
}

/* Creates the temporary file: the target's mode, or what a new file gets. */
static bool create(lt_Replacement *r) {
  static atomic_uint serial;
  size_t room = strlen(r->target) + 64;
  r->temporary = malloc(room);
  if (!r->temporary) return lt_error_set("%s: out of memory", r->writer), false;
  snprintf(r->temporary, room, "%s.%ld-%u.tmp", r->target, (long)getpid(),
           atomic_fetch_add(&serial, 1u));
  int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return lt_error_set("%s: %s: %s", r->writer, r->target, strerror(errno)), false;
  struct stat old;
  if (stat(r->target, &old) == 0 && S_ISREG(old.st_mode) && fchmod(fd, old.st_mode & 07777) != 0)
    errno = 0; /* another's file on a strange file system: the new one gets the usual mode */
  r->file = fdopen(fd, "wb");
  if (r->file) return true;
  lt_error_set("%s: %s: %s", r->writer, r->target, strerror(errno));
  close(fd);
  unlink(r->temporary);
  return false;
}

static void forget(lt_Replacement *r) {
  free(r->target);
  free(r->temporary);
  *r = (lt_Replacement){0};
}

bool lt_file_replace(lt_Replacement *r, const char *writer, const char *path) {
  *r = (lt_Replacement){.writer = writer, .target = real_path(path)};
  struct stat s;
  if (!r->target)
    lt_error_set("%s: out of memory", writer);
  else if (stat(r->target, &s) == 0 && S_ISDIR(s.st_mode))
    lt_error_set("%s: %s: is a folder", writer, path);
  else if (create(r))
    return true;
  forget(r);
  return false;
}

/* The folder's entry must reach the disk as well; a file system that cannot do that has done what
 * it can. */
static void sync_folder(const char *path) {
  char *folder = strdup(path);
  if (!folder) return;
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  int fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
  free(folder);
  if (fd < 0) return;
  if (fsync(fd) != 0) errno = 0;
  close(fd);
}

void lt_file_write(lt_Replacement *r, const void *data, size_t n) {
  errno = 0;
  for (size_t at = 0, piece; at < n && !r->why; at += piece) {
    piece = n - at < PIECE ? n - at : PIECE;
    if (lt_stopped())
      r->why = EINTR;
    else if (fwrite((const char *)data + at, 1, piece, r->file) != piece)
      r->why = errno ? errno : EIO;
  }
}

size_t lt_file_read(void *data, size_t n, FILE *file) {
  size_t got = 0, piece = 1;
  while (got < n && piece && !lt_stopped()) {
    piece = fread((char *)data + got, 1, n - got < PIECE ? n - got : PIECE, file);
    got += piece;
  }
  return got;
}

bool lt_file_commit(lt_Replacement *r, bool good) {
  errno = 0;
  bool written = good && !r->why && fflush(r->file) == 0 && fsync(fileno(r->file)) == 0;
  int why = r->why ? r->why : errno;
  if (fclose(r->file) != 0 && written) {
    written = false;
    why = errno;
  }
  if (written && rename(r->temporary, r->target) != 0) {
    written = false;
    why = errno;
  }
  if (written) {
    sync_folder(r->target);
  } else {
    unlink(r->temporary);
    if (good)
      lt_error_set("%s: %s: %s", r->writer, r->target, why ? strerror(why) : "writing failed");
  }
  forget(r);
  return written;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

lt_Tensor *lt_file_bytes(const char *writer, const lt_Tensor *t) {
  if (!lt_backend_of(t)->has_data)
    return lt_error_set("%s: a %s tensor has no data", writer, lt_device_name(lt_tensor_device(t)));
  if (lt_tensor_device(t).type == LT_DEVICE_cpu) return lt_as_contiguous((lt_Tensor *)t, t->dtype);
  lt_Tensor *copy = lt_empty(t->dtype, lt_cpu(), t->ndim, t->shape);
  if (copy && lt_copy_into(copy, t, false)) return copy;
  lt_release(copy);
  return NULL;
}

bool lt_file_nbytes(lt_Dtype dtype, int ndim, const int64_t *shape, uint64_t *bytes) {
  int64_t n = (int64_t)lt_dtype_size(dtype);
  bool empty = false;
  for (int i = 0; i < ndim; i++) {
    empty |= shape[i] == 0;
    if (shape[i] != 0 && __builtin_mul_overflow(n, shape[i], &n)) return false;
  }
  *bytes = empty ? 0 : (uint64_t)n;
  return *bytes <= SIZE_MAX;
}

lt_Tensor *lt_file_empty(const char *reader, const char *path, lt_Dtype dtype, int ndim,
                         const int64_t *shape) {
  char reason[600];
  lt_Tensor *t = lt_empty(dtype, lt_cpu(), ndim, shape);
  if (t) return t;
  bool memory = lt_error_is_memory();
  snprintf(reason, sizeof reason, "%s", lt_error());
  lt_error_set("%s: %s: %s", reader, path, reason);
  lt_thread()->memory_error = memory;
  return NULL;
}

void lt_file_swap(void *data, int64_t count, size_t size) {
  uint8_t *p = data;
  for (int64_t i = 0; i < count; i++, p += size)
    for (size_t k = 0; k < size / 2; k++) {
      uint8_t b = p[k];
      p[k] = p[size - 1 - k];
      p[size - 1 - k] = b;
    }
}
