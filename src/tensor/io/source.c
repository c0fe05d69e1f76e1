/* source.c: parts of files by offset, read or mapped into memory. */
#include "source.h"

#include <sys/mman.h>
#include <zlib.h>

/* The pages of a file. The source and each tensor on them hold a reference. */
typedef struct Mapping {
  atomic_int refs;
  void *data;
  size_t size;
} Mapping;

struct lt_Source {
  FILE *file;
  char *reader, *path;
  uint64_t size;
  Mapping *mapping; /* NULL: parts are read */
};

/* ---- the file -------------------------------------------------------------------------------- */

static void unmap(Mapping *m) {
  if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
  munmap(m->data, m->size);
  free(m);
}

/* Maps the file; NULL, without an error, when that is not possible: then parts are read. */
static Mapping *map(FILE *file, uint64_t size) {
  Mapping *m = size && size <= SIZE_MAX ? malloc(sizeof *m) : NULL;
  if (!m) return NULL;
  m->size = (size_t)size;
  m->data = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
  atomic_init(&m->refs, 1);
  if (m->data != MAP_FAILED) return m;
  free(m);
  return NULL;
}

lt_Source *lt_source_open(const char *reader, const char *path, bool mapped) {
  lt_Source *s = calloc(1, sizeof *s);
  if (s) s->reader = strdup(reader);
  if (s) s->path = strdup(path);
  if (!s || !s->reader || !s->path) {
    lt_error_memory("%s: cannot read \"%s\": out of memory", reader, path);
    lt_source_close(s);
    return NULL;
  }
  s->file = lt_file_open(reader, path);
  if (s->file && !lt_file_size(s->file, &s->size)) {
    lt_error_set("%s: cannot read \"%s\": read error", reader, path);
    fclose(s->file);
    s->file = NULL;
  }
  if (!s->file) {
    lt_source_close(s);
    return NULL;
  }
  if (mapped && s->size >= LT_MAP_LEAST) s->mapping = map(s->file, s->size);
  return s;
}

void lt_source_close(lt_Source *s) {
  if (!s) return;
  if (s->file) fclose(s->file);
  unmap(s->mapping);
  free(s->reader);
  free(s->path);
  free(s);
}

uint64_t lt_source_size(const lt_Source *s) { return s->size; }

FILE *lt_source_file(lt_Source *s) { return s->file; }

/* Reports an error of the file; returns NULL. */
static void *wrong(const lt_Source *s, const char *what) {
  return lt_error_set("%s: cannot read \"%s\": %s", s->reader, s->path, what);
}

/* Checks that n bytes at `at` are inside the file. */
static bool inside(const lt_Source *s, uint64_t at, uint64_t n) {
  if (at <= s->size && n <= s->size - at) return true;
  return wrong(s, "it is truncated: a part of it lies past its end"), false;
}

bool lt_source_read(lt_Source *s, uint64_t at, void *to, uint64_t n) {
  if (!inside(s, at, n)) return false;
  if (fseeko(s->file, (off_t)at, SEEK_SET) != 0 || lt_file_read(to, (size_t)n, s->file) != n)
    return wrong(s, "read error"), false;
  return true;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void release_mapped(lt_Storage *storage) { unmap(storage->owner); }

/* Returns true when the bytes of a bool tensor are 0 and 1. */
static bool is_truth(const uint8_t *p, size_t n) {
  uint8_t all = 0;
  for (size_t i = 0; i < n; i++) all |= p[i];
  return all <= 1;
}

/* Returns a tensor on the mapped pages; NULL, without an error, when its elements are not aligned
 * or not valid there. */
static lt_Tensor *mapped_tensor(lt_Source *s, uint64_t at, lt_Dtype dtype, int64_t count,
                                size_t bytes) {
  Mapping *m = s->mapping;
  if (!m || bytes == 0 || at % lt_dtype_size(dtype)) return NULL;
  uint8_t *data = (uint8_t *)m->data + at;
  if (dtype == LT_bool && !is_truth(data, bytes)) return NULL;
  lt_Storage *storage = lt_storage_on(data, bytes, release_mapped, m);
  if (!storage) return NULL;
  atomic_fetch_add(&m->refs, 1);
  lt_Tensor *t = lt_tensor_on(storage, dtype, 0, 1, &count, (int64_t[]){1});
  lt_storage_release(storage);
  return t;
}

lt_Tensor *lt_source_tensor(lt_Source *s, uint64_t at, lt_Dtype dtype, int64_t count, bool swap) {
  uint64_t bytes;
  if (count < 0 || !lt_file_nbytes(dtype, 1, &count, &bytes))
    return wrong(s, "a size in it overflows");
  if (!inside(s, at, bytes)) return NULL;
  bool turn = swap && lt_dtype_size(dtype) > 1;
  lt_Tensor *t = turn ? NULL : mapped_tensor(s, at, dtype, count, (size_t)bytes);
  if (t) return t;
  t = lt_file_empty(s->reader, s->path, dtype, 1, &count);
  if (!t || bytes == 0) return t;
  uint8_t *data = lt_tensor_data(t);
  if (!lt_source_read(s, at, data, bytes)) {
    lt_release(t);
    return NULL;
  }
  if (turn) lt_file_swap(data, count, dtype);
  for (uint64_t i = 0; i < bytes && dtype == LT_bool; i++) data[i] = data[i] != 0;
  return t;
}

/* ---- compressed parts ------------------------------------------------------------------------ */

/* Inflates n bytes of the file, from its position on, to exactly `size` bytes. */
static bool inflate_all(lt_Source *s, uint64_t n, uint8_t *to, uint64_t size) {
  uint8_t in[1 << 14];
  z_stream z;
  memset(&z, 0, sizeof z);
  if (inflateInit2(&z, -15) != Z_OK) return false;
  int status = Z_OK;
  uint64_t got = 0;
  while (status == Z_OK && !lt_stopped()) {
    if (z.avail_in == 0 && n > 0) {
      z.next_in = in;
      z.avail_in = (uInt)fread(in, 1, n < sizeof in ? (size_t)n : sizeof in, s->file);
      n -= z.avail_in;
      if (z.avail_in == 0) break;
    }
    uint64_t room = size - got < 1u << 30 ? size - got : 1u << 30;
    uint8_t end;
    z.next_out = room ? to + got : &end;
    z.avail_out = room ? (uInt)room : 1; /* a byte too many is found */
    uInt before = z.avail_out;
    status = inflate(&z, Z_NO_FLUSH);
    if (room == 0 && z.avail_out != before) break;
    got += room ? before - z.avail_out : 0;
    if (status == Z_BUF_ERROR && z.avail_in == 0 && n > 0) status = Z_OK;
  }
  bool complete = status == Z_STREAM_END && got == size && n == 0 && z.avail_in == 0;
  inflateEnd(&z);
  return complete;
}

lt_Tensor *lt_source_inflate(lt_Source *s, uint64_t at, uint64_t n, uint64_t size) {
  if (!inside(s, at, n)) return NULL;
  if (size > INT64_MAX || size / 1032 > n)
    return wrong(s, "a compressed part claims a size that it cannot have");
  int64_t count = (int64_t)size;
  lt_Tensor *t = lt_file_empty(s->reader, s->path, LT_uint8, 1, &count);
  if (!t) return NULL;
  if (fseeko(s->file, (off_t)at, SEEK_SET) == 0 && inflate_all(s, n, lt_tensor_data(t), size))
    return t;
  lt_release(t);
  return wrong(s, "a compressed part is damaged");
}
