/* npy.c: NumPy's array files (numpy.lib.format, versions 1.0 to 3.0): a magic number, the length of
 * the header, the header, the elements. The header is a Python dict, which is parsed here by a
 * small grammar; nothing is evaluated. */
#include "file.h"
#include "io.h"

#define READER     "load_npy"
#define WRITER     "save_npy"
#define MAX_HEADER 10000 /* NumPy's own limit */

/* The header of a file, and the position of its parser. */
typedef struct Header {
  const char *path;
  const char *at, *end;
  lt_Dtype dtype;
  bool big, fortran;
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  unsigned seen;
} Header;

/* Reports an error of the file. */
static bool wrong(const char *path, const char *what) {
  lt_error_set(READER ": cannot read \"%s\": %s", path, what);
  return false;
}

static bool damaged(const Header *h) { return wrong(h->path, "its header is damaged"); }

/* ---- the dict -------------------------------------------------------------------------------- */

/* Skips white space. */
static void blanks(Header *h) {
  while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

/* Skips blanks, and reads a word if it comes next; otherwise returns false and stays. */
static bool next_is(Header *h, const char *word) {
  blanks(h);
  size_t n = strlen(word);
  if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0) return false;
  h->at += n;
  return true;
}

/* Reads a quoted word without escapes; false when there is none. */
static bool quoted(Header *h, char *out, size_t room) {
  blanks(h);
  if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
  char quote = *h->at++;
  size_t n = 0;
  while (h->at < h->end && *h->at != quote && *h->at != '\\') {
    if (n + 1 == room) return false;
    out[n++] = *h->at++;
  }
  out[n] = 0;
  if (h->at == h->end || *h->at != quote) return false;
  h->at++;
  return true;
}

/* Reads the dtype and byte order, "<f4". Record and object arrays are refused. */
static bool read_descr(Header *h) {
  static const struct {
    const char *code;
    lt_Dtype dtype;
  } codes[] = {{"b1", LT_bool},    {"u1", LT_uint8},     {"i1", LT_int8},       {"i2", LT_int16},
               {"i4", LT_int32},   {"i8", LT_int64},     {"f2", LT_float16},    {"f4", LT_float32},
               {"f8", LT_float64}, {"c8", LT_complex64}, {"c16", LT_complex128}};
  char descr[32];
  if (!quoted(h, descr, sizeof descr)) {
    if (next_is(h, "[")) return wrong(h->path, "it holds records, not numbers");
    return damaged(h);
  }
  const char *code = descr + (descr[0] && strchr("<>|=", descr[0]) ? 1 : 0);
  h->big = descr[0] == '>' || ((descr[0] == '=' || code == descr) && !lt_host_is_little());
  if (strcmp(code, "?") == 0) code = "b1";
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (strcmp(code, codes[i].code) != 0) continue;
    h->dtype = codes[i].dtype;
    return true;
  }
  if (code[0] == 'O') return wrong(h->path, "it holds Python objects, which can run code");
  lt_error_set(READER ": cannot read \"%s\": dtype \"%s\" is not supported", h->path, descr);
  return false;
}

/* Reads a tuple of integers; a tuple of one has a comma after it, as in Python. */
static bool read_shape(Header *h) {
  if (!next_is(h, "(")) return damaged(h);
  while (!next_is(h, ")")) {
    blanks(h);
    const char *first = h->at;
    int64_t n = 0;
    while (h->at < h->end && *h->at >= '0' && *h->at <= '9')
      if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *h->at++ - '0', &n))
        return wrong(h->path, "a size overflows");
    if (h->at == first) return damaged(h);
    if (h->at < h->end && *h->at == 'L') h->at++; /* of Python 2 */
    if (h->ndim == LT_MAX_DIMS) return wrong(h->path, "it has too many dimensions");
    h->shape[h->ndim++] = n;
    if (next_is(h, ",")) continue;
    if (h->ndim > 1 && next_is(h, ")")) return true;
    return damaged(h); /* (3) is a number, not a shape */
  }
  return true;
}

/* Reads the value of fortran_order. */
static bool read_flag(Header *h) {
  h->fortran = next_is(h, "True");
  return h->fortran || next_is(h, "False") || damaged(h);
}

/* Parses the dict, which must have each of the three keys exactly once, and nothing after it. */
static bool read_dict(Header *h) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[32];
  if (!next_is(h, "{")) return damaged(h);
  while (!next_is(h, "}")) {
    unsigned k = 0;
    if (!quoted(h, key, sizeof key) || !next_is(h, ":")) return damaged(h);
    while (k < 3 && strcmp(key, keys[k]) != 0) k++;
    if (k == 3 || h->seen & 1u << k) return damaged(h);
    h->seen |= 1u << k;
    if (!(k == 0 ? read_descr(h) : k == 1 ? read_flag(h) : read_shape(h))) return false;
    if (next_is(h, ",")) continue;
    if (!next_is(h, "}")) return damaged(h);
    break;
  }
  blanks(h);
  return (h->seen == 7 && h->at == h->end) || damaged(h);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the magic number and the header into `text` (MAX_HEADER bytes); *start is the offset of the
 * elements. */
static bool read_start(FILE *file, const char *path, uint64_t size, char *text, size_t *length,
                       uint64_t *start) {
  uint8_t b[12];
  if (fread(b, 1, 10, file) != 10 || memcmp(b, "\x93NUMPY", 6) != 0)
    return wrong(path, "it is not a .npy file");
  if (b[6] < 1 || b[6] > 3 || b[7] != 0) return wrong(path, "its version is not supported");
  uint32_t n = b[8] | (uint32_t)b[9] << 8;
  *start = 10;
  if (b[6] > 1) {
    if (fread(b + 10, 1, 2, file) != 2) return wrong(path, "it is truncated");
    n |= (uint32_t)b[10] << 16 | (uint32_t)b[11] << 24;
    *start = 12;
  }
  if (n > MAX_HEADER) return wrong(path, "its header is longer than 10000 bytes");
  if (*start + n > size || fread(text, 1, n, file) != n) return wrong(path, "it is truncated");
  *length = n;
  *start += n;
  return true;
}

/* Returns the elements of a file in Fortran order, in which the first dimension is the innermost,
 * as a tensor of the right shape. */
static lt_Tensor *from_fortran(const Header *h, lt_Tensor *t) {
  int64_t strides[LT_MAX_DIMS], step = 1;
  for (int d = 0; d < h->ndim; d++) {
    strides[d] = step;
    step *= h->shape[d];
  }
  lt_Tensor *view = lt_tensor_on(t->storage, t->dtype, 0, h->ndim, h->shape, strides);
  lt_Tensor *ordered = view ? lt_as_contiguous(view, t->dtype) : NULL;
  lt_release(view);
  lt_release(t);
  return ordered;
}

/* Reads the elements, of which `left` bytes are in the file. The size is checked before memory is
 * allocated. */
static lt_Tensor *read_elements(FILE *file, const Header *h, uint64_t left) {
  uint64_t bytes;
  bool fits = lt_file_nbytes(h->dtype, h->ndim, h->shape, &bytes);
  if (!fits || bytes != left)
    return lt_error_set(
        READER ": cannot read \"%s\": %s, its header describes %s of \"%s\", %llu bytes follow it",
        h->path, !fits || bytes > left ? "it is truncated" : "it has bytes after its elements",
        lt_shape_text(h->ndim, h->shape), lt_dtype_name(h->dtype), (unsigned long long)left);
  lt_Tensor *t = lt_file_empty(READER, h->path, h->dtype, h->ndim, h->shape);
  if (!t || bytes == 0) return t;
  if (lt_file_read(lt_tensor_data(t), (size_t)bytes, file) != bytes) {
    lt_release(t);
    wrong(h->path, "read error");
    return NULL;
  }
  if (h->big == lt_host_is_little()) lt_file_swap(lt_tensor_data(t), t->numel, t->dtype);
  uint8_t *truth = lt_tensor_data(t);
  for (uint64_t i = 0; i < bytes && h->dtype == LT_bool; i++) truth[i] = truth[i] != 0;
  return h->fortran && h->ndim > 1 ? from_fortran(h, t) : t;
}

lt_Tensor *lt_npy_read(FILE *file, const char *path) {
  uint64_t size, start;
  char text[MAX_HEADER];
  size_t length;
  if (!lt_file_size(file, &size)) return lt_error_set(READER ": cannot read \"%s\"", path);
  if (!read_start(file, path, size, text, &length, &start)) return NULL;
  Header h = {.path = path, .at = text, .end = text + length};
  return read_dict(&h) ? read_elements(file, &h, size - start) : NULL;
}

lt_Tensor *lt_npy_parse(const void *data, size_t n, const char *path) {
  FILE *file = n ? fmemopen((void *)(uintptr_t)data, n, "rb") : NULL;
  if (!file) return lt_error_set(READER ": cannot read \"%s\": it is not a .npy file", path);
  lt_Tensor *t = lt_npy_read(file, path);
  fclose(file);
  return t;
}

lt_Tensor *lt_npy_load(const char *path) {
  FILE *file = lt_file_open(READER, path);
  lt_Tensor *t = file ? lt_npy_read(file, path) : NULL;
  if (file) fclose(file);
  return t;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Returns NumPy's code of a dtype, without the byte order; NULL when it has none. */
static const char *code_of(lt_Dtype d) {
  switch (d) {
  case LT_bool:
    return "b1";
  case LT_uint8:
    return "u1";
  case LT_int8:
    return "i1";
  case LT_int16:
    return "i2";
  case LT_int32:
    return "i4";
  case LT_int64:
    return "i8";
  case LT_float16:
    return "f2";
  case LT_float32:
    return "f4";
  case LT_float64:
    return "f8";
  case LT_complex64:
    return "c8";
  case LT_complex128:
    return "c16";
  default:
    return NULL;
  }
}

size_t lt_npy_header(char out[1024], const lt_Tensor *t) {
  if (!code_of(t->dtype)) {
    lt_error_set(WRITER
                 ": cannot save dtype \"%s\": NumPy does not support it\nhint: x:to(\"float32\")",
                 lt_dtype_name(t->dtype));
    return 0;
  }
  char order = lt_dtype_size(t->dtype) == 1 ? '|' : lt_host_is_little() ? '<' : '>';
  size_t n = 10;
  n += (size_t)snprintf(out + n, 1024 - n, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                        order, code_of(t->dtype));
  for (int d = 0; d < t->ndim; d++)
    n += (size_t)snprintf(out + n, 1024 - n,
                          d              ? ", %lld"
                          : t->ndim == 1 ? "%lld,"
                                         : "%lld",
                          (long long)t->shape[d]);
  n += (size_t)snprintf(out + n, 1024 - n, "), }");
  while ((n + 1) % 64) out[n++] = ' ';
  out[n++] = '\n';
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (char)((n - 10) & 255);
  out[9] = (char)((n - 10) >> 8);
  return n;
}

/* Writes the file atomically. */
static bool save(const char *path, const lt_Tensor *t) {
  char header[1024];
  size_t length = lt_npy_header(header, t);
  if (!length) return false;
  lt_Tensor *bytes = lt_file_bytes(WRITER, t);
  if (!bytes) return false;
  lt_Replacement r;
  bool ok = lt_replace_open(&r, WRITER, path);
  if (ok) {
    size_t size = (size_t)t->numel * lt_dtype_size(t->dtype);
    lt_replace_write(&r, header, length);
    lt_replace_write(&r, lt_tensor_data(bytes), size);
    ok = lt_replace_commit(&r, true);
  }
  lt_release(bytes);
  return ok;
}

bool lt_npy_save(const char *path, const lt_Tensor *t) {
  lt_Use use;
  lt_Thread *th = lt_thread();
  if (!lt_tensor_usable(t, WRITER, "tensor")) return false;
  lt_use_enter(th, &use, (lt_Arg[]){LT_ARG((lt_Tensor *)t)}, 1);
  bool ok = save(path, t);
  lt_use_leave(th, &use);
  return ok;
}
