/* idx.c: IDX files, the format of MNIST: two bytes 0, a type, the number of dimensions, the sizes
 * with 32 bits each, then the elements; everything is big-endian. The file, compressed or not, must
 * have exactly the size that the header implies. */
#include "file.h"
#include "io.h"

#include <zlib.h>

#define READER "load_idx"

/* ---- bytes, plain or compressed -------------------------------------------------------------- */

/* A file that is read plain or through zlib. */
typedef struct Source {
  FILE *file;
  const char *path;
  bool packed, ended; /* ended: of the compressed data */
  z_stream z;
  uint8_t in[1 << 15];
} Source;

/* Recognizes gzip by its first two bytes. */
static bool source_open(Source *s, FILE *file, const char *path) {
  uint8_t first[2];
  size_t n = fread(first, 1, 2, file);
  rewind(file);
  s->file = file;
  s->path = path;
  s->ended = false;
  s->packed = n == 2 && first[0] == 0x1f && first[1] == 0x8b;
  if (!s->packed) return true;
  memset(&s->z, 0, sizeof s->z);
  if (inflateInit2(&s->z, 15 + 16) == Z_OK) return true;
  return lt_error_set(READER ": cannot read \"%s\": out of memory", path), false;
}

/* Starts again at the first byte. */
static void source_rewind(Source *s) {
  rewind(s->file);
  s->ended = false;
  if (!s->packed) return;
  inflateReset(&s->z);
  s->z.avail_in = 0;
}

static void source_close(Source *s) {
  if (s->packed) inflateEnd(&s->z);
}

/* Reads more compressed bytes; false at the end of the file. */
static bool refill(Source *s) {
  s->z.next_in = s->in;
  s->z.avail_in = (uInt)fread(s->in, 1, sizeof s->in, s->file);
  return s->z.avail_in > 0;
}

/* Starts the next member of a compressed file; the end of the file is fine. Fails when something
 * else follows. */
static bool next_member(Source *s) {
  if (s->z.avail_in == 0 && !refill(s)) {
    s->ended = true;
    return true;
  }
  if (s->z.next_in[0] == 0x1f && inflateReset(&s->z) == Z_OK) return true;
  return lt_error_set(READER ": cannot read \"%s\": it has bytes after its compressed data",
                      s->path),
         false;
}

/* Reads up to n bytes; *got is less only at the end. Fails when the file is damaged. */
static bool source_read(Source *s, void *to, size_t n, size_t *got) {
  *got = 0;
  if (!s->packed && n > 0) {
    *got = fread(to, 1, n, s->file);
    return !ferror(s->file) || (lt_error_set(READER ": cannot read \"%s\"", s->path), false);
  }
  while (*got < n && !s->ended) {
    size_t room = n - *got < 1u << 30 ? n - *got : 1u << 30;
    if (s->z.avail_in == 0 && !refill(s))
      return lt_error_set(READER
                          ": cannot read \"%s\": it is truncated, its compressed data ends early",
                          s->path),
             false;
    s->z.next_out = (Bytef *)to + *got;
    s->z.avail_out = (uInt)room;
    int status = inflate(&s->z, Z_NO_FLUSH);
    *got += room - s->z.avail_out;
    if (status == Z_STREAM_END) {
      if (!next_member(s)) return false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return lt_error_set(READER ": cannot read \"%s\": it is damaged, its compressed data cannot "
                                 "be decompressed (%s)",
                          s->path, s->z.msg ? s->z.msg : "invalid data"),
             false;
    }
  }
  return true;
}

/* ---- the format ------------------------------------------------------------------------------ */

/* The header of an IDX file. */
typedef struct Header {
  lt_Dtype dtype;
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  uint64_t bytes; /* of the elements */
} Header;

/* Returns the dtype of the format's type code; LT_DTYPE_NONE when there is none. */
static lt_Dtype dtype_of(uint8_t code) {
  switch (code) {
  case 0x08:
    return LT_uint8;
  case 0x09:
    return LT_int8;
  case 0x0b:
    return LT_int16;
  case 0x0c:
    return LT_int32;
  case 0x0d:
    return LT_float32;
  case 0x0e:
    return LT_float64;
  default:
    return LT_DTYPE_NONE;
  }
}

/* Reads and checks the header. */
static bool read_header(Source *s, Header *h) {
  uint8_t b[4 + 4 * 8];
  size_t got;
  if (!source_read(s, b, 4, &got)) return false;
  if (got < 4)
    return lt_error_set(READER ": cannot read \"%s\": it is too short for an IDX file", s->path),
           false;
  h->dtype = dtype_of(b[2]);
  h->ndim = b[3];
  if (b[0] != 0 || b[1] != 0 || h->dtype == LT_DTYPE_NONE || h->ndim < 1 || h->ndim > 8)
    return lt_error_set(
               READER
               ": cannot read \"%s\": it is not an IDX file, it starts with %02x %02x %02x %02x",
               s->path, b[0], b[1], b[2], b[3]),
           false;
  if (!source_read(s, b + 4, 4 * (size_t)h->ndim, &got)) return false;
  if (got < 4 * (size_t)h->ndim)
    return lt_error_set(READER ": cannot read \"%s\": it is truncated, it ends inside its header",
                        s->path),
           false;
  for (int i = 0; i < h->ndim; i++) {
    const uint8_t *d = b + 4 + 4 * i;
    h->shape[i] = (int64_t)d[0] << 24 | d[1] << 16 | d[2] << 8 | d[3];
  }
  if (lt_file_nbytes(h->dtype, h->ndim, h->shape, &h->bytes)) return true;
  return lt_error_set(
             READER
             ": cannot read \"%s\": its header describes more elements than memory can hold: %s",
             s->path, lt_shape_text(h->ndim, h->shape)),
         false;
}

/* Computes the uncompressed size; stops soon after `enough`. */
static bool measure(Source *s, uint64_t enough, uint64_t *size) {
  uint8_t piece[1 << 14];
  size_t got = sizeof piece;
  source_rewind(s);
  for (*size = 0; got == sizeof piece && *size <= enough; *size += got)
    if (!source_read(s, piece, sizeof piece, &got)) return false;
  return true;
}

/* Checks that the size is the one that the header implies. Compressed data is decompressed once for
 * that, so that a header alone never causes a large allocation. */
static bool check_size(Source *s, const Header *h, uint64_t size) {
  uint8_t skipped[4 + 4 * 8];
  size_t header = 4 + 4 * (size_t)h->ndim, got;
  uint64_t want = header + h->bytes;
  if (s->packed && !measure(s, want, &size)) return false;
  source_rewind(s);
  if (want == size) return source_read(s, skipped, header, &got);
  lt_error_set(
      READER
      ": cannot read \"%s\": %s, its header %s of \"%s\" requires %llu bytes, it has %s%llu%s",
      s->path, want > size ? "it is truncated or damaged" : "it has bytes after its elements",
      lt_shape_text(h->ndim, h->shape), lt_dtype_name(h->dtype), (unsigned long long)want,
      s->packed && size > want ? "at least " : "", (unsigned long long)size,
      s->packed ? " decompressed" : "");
  return false;
}

/* Reads the elements and checks that nothing follows them; in a compressed file this also checks
 * the checksum. */
static bool read_elements(Source *s, const Header *h, lt_Tensor *t) {
  uint8_t extra;
  size_t got, more;
  if (!source_read(s, lt_tensor_data(t), (size_t)h->bytes, &got)) return false;
  if (got < h->bytes)
    return lt_error_set(
               READER
               ": cannot read \"%s\": it is truncated, it has %llu of %llu bytes of elements",
               s->path, (unsigned long long)got, (unsigned long long)h->bytes),
           false;
  if (!source_read(s, &extra, 1, &more)) return false;
  if (more)
    return lt_error_set(READER ": cannot read \"%s\": it has bytes after its elements", s->path),
           false;
  if (lt_host_is_little()) lt_file_swap(lt_tensor_data(t), t->numel, t->dtype);
  return true;
}

/* Reads the tensor of an open source. `size`: of the file. */
static lt_Tensor *read_all(Source *s, uint64_t size) {
  Header h;
  if (!read_header(s, &h) || !check_size(s, &h, size)) return NULL;
  lt_Tensor *t = lt_file_empty(READER, s->path, h.dtype, h.ndim, h.shape);
  if (t && read_elements(s, &h, t)) return t;
  lt_release(t);
  return NULL;
}

lt_Tensor *lt_idx_read(FILE *file, const char *path) {
  uint64_t size;
  if (!lt_file_size(file, &size)) return lt_error_set(READER ": cannot read \"%s\"", path);
  Source *s = malloc(sizeof *s);
  if (!s) return lt_error_set(READER ": cannot read \"%s\": out of memory", path);
  lt_Tensor *t = NULL;
  if (source_open(s, file, path)) {
    t = read_all(s, size);
    source_close(s);
  }
  free(s);
  return t;
}

lt_Tensor *lt_idx_load(const char *path) {
  FILE *file = lt_file_open(READER, path);
  lt_Tensor *t = file ? lt_idx_read(file, path) : NULL;
  if (file) fclose(file);
  return t;
}
