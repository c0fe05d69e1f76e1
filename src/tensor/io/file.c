/* file.c: opens and reads tensor files, with the same messages for all formats. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *lt_file_open(const char *reader, const char *path) {
  struct stat s = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe does not keep us waiting */
  if (fd < 0) return lt_error_set("%s: cannot open \"%s\": %s", reader, path, strerror(errno));
  FILE *f = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? fdopen(fd, "rb") : NULL;
  if (f) return f;
  close(fd);
  return lt_error_set("%s: cannot read \"%s\": %s", reader, path,
                      S_ISDIR(s.st_mode)   ? "it is a directory"
                      : S_ISREG(s.st_mode) ? "out of memory"
                                           : "it is not a regular file");
}

bool lt_file_size(FILE *file, uint64_t *size) {
  if (fseeko(file, 0, SEEK_END) != 0) return false;
  off_t end = ftello(file);
  if (end < 0 || fseeko(file, 0, SEEK_SET) != 0) return false;
  *size = (uint64_t)end;
  return true;
}

size_t lt_file_read(void *data, size_t n, FILE *file) {
  size_t got = 0, piece = 1;
  while (got < n && piece && !lt_stopped()) {
    piece = fread((char *)data + got, 1, n - got < LT_FILE_PIECE ? n - got : LT_FILE_PIECE, file);
    got += piece;
  }
  return got;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

lt_Tensor *lt_file_bytes(const char *writer, const lt_Tensor *t) {
  if (!lt_backend_of(t)->has_data)
    return lt_error_set("%s: cannot save a tensor on \"%s\": it has no data", writer,
                        lt_device_name(lt_tensor_device(t)));
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
  lt_Tensor *t = lt_empty(dtype, lt_cpu(), ndim, shape);
  if (t) return t;
  if (lt_error_is_memory())
    return lt_error_memory("%s: cannot read \"%s\": %s", reader, path, lt_error());
  return lt_error_set("%s: cannot read \"%s\": %s", reader, path, lt_error());
}

void lt_file_swap(void *data, int64_t count, lt_Dtype dtype) {
  uint8_t *p = data;
  size_t size = lt_dtype_size(lt_dtype_real(dtype));
  if (lt_dtype_is_complex(dtype)) count *= 2; /* each part by itself */
  for (int64_t i = 0; i < count; i++, p += size)
    for (size_t k = 0; k < size / 2; k++) {
      uint8_t b = p[k];
      p[k] = p[size - 1 - k];
      p[size - 1 - k] = b;
    }
}
