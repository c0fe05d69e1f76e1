/* safetensors.c: safetensors files: eight bytes with the length of a JSON header, the header, and
 * the bytes of the tensors one after the other (huggingface/safetensors, README).
 *
 * Invariant: a reader allocates no tensor before the whole header has been checked against the
 * file: every dtype is known, every size is the product of its shape, and the tensors cover the
 * bytes after the header without gaps or overlaps. */
#include "file.h"
#include "io.h"
#include "json.h"
#include "source.h"

#define READER     "load_safetensors"
#define WRITER     "save_safetensors"
#define MAX_HEADER 100000000u
#define METADATA   "__metadata__"

/* A tensor in the header of a file that is read. */
typedef struct Entry {
  char *name;
  lt_Dtype dtype;
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  uint64_t begin, end;
  int place; /* in the header */
} Entry;

/* A file that is being read; owns the entries, their names and the metadata. */
typedef struct Reading {
  FILE *file;
  lt_Source *source; /* of `file`, whose tensors it may map; NULL: the file is read in order */
  const char *path;
  lt_Json json;
  uint64_t data_start; /* offset of the bytes after the header */
  uint64_t data_size;
  Entry *entry;
  lt_ArchiveNote *note;
  int count, room, notes, note_room;
} Reading;

/* Reports an error of the file. */
static bool wrong(const Reading *r, const char *what) {
  lt_error_set(READER ": cannot read \"%s\": %s", r->path, what);
  return false;
}

/* Reports that the header is not valid JSON, and where. */
static bool bad_json(const Reading *r) {
  lt_error_set(READER ": cannot read \"%s\": its header is damaged: %s, at byte %lld", r->path,
               r->json.wrong ? r->json.wrong : "unexpected data at the end",
               (long long)(r->json.at - r->json.start + 9));
  return false;
}

/* Reports an error of one tensor. */
static bool bad_entry(const Reading *r, const Entry *e, const char *what) {
  lt_error_set(READER ": cannot read \"%s\": tensor %s %s", r->path, lt_json_show(e->name), what);
  return false;
}

/* Makes room for one more of n elements. */
static bool grow(const Reading *r, void *list, int n, int *room, size_t size) {
  if (n < *room) return true;
  int more = *room ? *room * 2 : 16;
  void *old, *bigger;
  memcpy(&old, list, sizeof old);
  bigger = realloc(old, (size_t)more * size);
  if (!bigger) return wrong(r, "out of memory");
  memcpy(list, &bigger, sizeof bigger);
  *room = more;
  return true;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Reads the object "__metadata__", whose values must be strings. */
static bool read_metadata(Reading *r) {
  lt_Json *j = &r->json;
  if (!lt_json_take(j, '{')) return bad_json(r);
  if (lt_json_try(j, '}')) return true;
  do {
    if (!grow(r, &r->note, r->notes, &r->note_room, sizeof *r->note)) return false;
    lt_ArchiveNote *n = &r->note[r->notes++];
    *n = (lt_ArchiveNote){NULL, NULL};
    n->key = lt_json_string(j);
    if (!n->key || !lt_json_take(j, ':')) return bad_json(r);
    n->value = lt_json_string(j);
    if (!n->value) return bad_json(r);
  } while (lt_json_try(j, ','));
  return lt_json_take(j, '}') || bad_json(r);
}

/* Reads a dtype; an unknown one is an error, never skipped. */
static bool read_dtype(Reading *r, Entry *e) {
  char *code = lt_json_string(&r->json);
  if (!code) return bad_json(r);
  e->dtype = LT_DTYPE_NONE;
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (d != LT_complex128 && strcmp(code, lt_dtype_code((lt_Dtype)d)) == 0) e->dtype = (lt_Dtype)d;
  bool known = e->dtype != LT_DTYPE_NONE;
  if (!known)
    lt_error_set(READER ": cannot read \"%s\": tensor %s has dtype %s, which is not supported",
                 r->path, lt_json_show(e->name), lt_json_show(code));
  free(code);
  return known;
}

/* Reads a shape. Its product is checked later, in check_layout. */
static bool read_shape(Reading *r, Entry *e) {
  lt_Json *j = &r->json;
  if (!lt_json_take(j, '[')) return bad_json(r);
  if (lt_json_try(j, ']')) return true;
  do {
    uint64_t n;
    if (!lt_json_number(j, &n)) return bad_json(r);
    if (e->ndim == LT_MAX_DIMS) return bad_entry(r, e, "has more than 16 dimensions");
    if (n > INT64_MAX) return bad_entry(r, e, "has a size beyond 63 bits");
    e->shape[e->ndim++] = (int64_t)n;
  } while (lt_json_try(j, ','));
  return lt_json_take(j, ']') || bad_json(r);
}

/* Reads where a tensor's bytes begin and end. They are checked in check_layout. */
static bool read_offsets(Reading *r, Entry *e) {
  lt_Json *j = &r->json;
  return (lt_json_take(j, '[') && lt_json_number(j, &e->begin) && lt_json_take(j, ',') &&
          lt_json_number(j, &e->end) && lt_json_take(j, ']')) ||
         bad_json(r);
}

/* Reads one field of an entry; unknown and repeated fields are errors. `seen` has a bit for each
 * field. */
static bool read_field(Reading *r, Entry *e, const char *field, unsigned *seen) {
  static const char *const names[] = {"dtype", "shape", "data_offsets"};
  for (unsigned i = 0; i < 3; i++) {
    if (strcmp(field, names[i]) != 0) continue;
    if (*seen & 1u << i) return bad_entry(r, e, "has a duplicate field");
    *seen |= 1u << i;
    return i == 0 ? read_dtype(r, e) : i == 1 ? read_shape(r, e) : read_offsets(r, e);
  }
  return bad_entry(r, e, "has a field that is not in the format");
}

/* Reads the object of one tensor, which must have all three fields. */
static bool read_entry(Reading *r, Entry *e) {
  lt_Json *j = &r->json;
  unsigned seen = 0;
  if (!lt_json_take(j, '{')) return bad_json(r);
  if (!lt_json_try(j, '}')) {
    do {
      char *field = lt_json_string(j);
      bool good = field && lt_json_take(j, ':') ? read_field(r, e, field, &seen) : bad_json(r);
      free(field);
      if (!good) return false;
    } while (lt_json_try(j, ','));
    if (!lt_json_take(j, '}')) return bad_json(r);
  }
  return seen == 7 || bad_entry(r, e, "lacks its dtype, shape or data_offsets");
}

/* Parses the whole header. On failure the entries read so far are freed by close_reading. */
static bool read_header(Reading *r) {
  lt_Json *j = &r->json;
  bool metadata = false;
  if (!lt_json_take(j, '{')) return bad_json(r);
  if (!lt_json_try(j, '}')) {
    do {
      char *name = lt_json_string(j);
      if (!name || !lt_json_take(j, ':')) {
        free(name);
        return bad_json(r);
      }
      if (strcmp(name, METADATA) == 0) {
        free(name);
        if (metadata) return wrong(r, "its header has a duplicate " METADATA);
        metadata = true;
        if (!read_metadata(r)) return false;
        continue;
      }
      if (!grow(r, &r->entry, r->count, &r->room, sizeof *r->entry)) {
        free(name);
        return false;
      }
      Entry *e = &r->entry[r->count++];
      *e = (Entry){.name = name, .place = r->count - 1};
      if (!read_entry(r, e)) return false;
    } while (lt_json_try(j, ','));
    if (!lt_json_take(j, '}')) return bad_json(r);
  }
  return lt_json_done(j) || bad_json(r);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Compares names for qsort. */
static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Checks that no name occurs twice: otherwise each reader might choose another one. The names are
 * `stride` bytes apart. */
static bool check_unique(const Reading *r, const void *first, int n, size_t stride,
                         const char *what) {
  char **names = malloc(((size_t)n + 1) * sizeof *names);
  if (!names) return wrong(r, "out of memory");
  for (int i = 0; i < n; i++)
    memcpy(&names[i], (const char *)first + (size_t)i * stride, sizeof *names);
  qsort(names, (size_t)n, sizeof *names, by_name);
  bool good = true;
  for (int i = 1; i < n && good; i++) {
    good = strcmp(names[i - 1], names[i]) != 0;
    if (!good)
      lt_error_set(READER ": cannot read \"%s\": its header has %s %s twice", r->path, what,
                   lt_json_show(names[i]));
  }
  free(names);
  return good;
}

/* Orders entries by offset, for qsort. */
static int by_offset(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Sorts the tensors by offset, and checks that each is as long as its shape implies and starts
 * where the one before ends. */
static bool check_layout(Reading *r) {
  uint64_t at = 0;
  if (r->count > 1) qsort(r->entry, (size_t)r->count, sizeof *r->entry, by_offset);
  for (int i = 0; i < r->count; i++) {
    const Entry *e = &r->entry[i];
    uint64_t bytes;
    if (!lt_file_nbytes(e->dtype, e->ndim, e->shape, &bytes))
      return bad_entry(r, e, "has a shape whose product overflows");
    if (e->end < e->begin) return bad_entry(r, e, "ends before it begins");
    if (e->end > r->data_size)
      return bad_entry(r, e, "ends past the end of the file: the file may be truncated");
    if (e->end - e->begin != bytes) return bad_entry(r, e, "has offsets that do not fit its shape");
    if (e->begin != at)
      return bad_entry(r, e, e->begin < at ? "overlaps another tensor" : "has a gap before it");
    at = e->end;
  }
  return at == r->data_size || wrong(r, "it has bytes that belong to no tensor");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns a tensor that is mapped into memory, or a copy where it cannot be. */
static lt_Tensor *map_tensor(const Reading *r, const Entry *e) {
  int64_t count = (int64_t)((e->end - e->begin) / lt_dtype_size(e->dtype));
  int64_t strides[LT_MAX_DIMS];
  lt_Tensor *flat =
      lt_source_tensor(r->source, r->data_start + e->begin, e->dtype, count, !lt_host_is_little());
  if (!flat) return NULL;
  lt_shape_strides(e->ndim, e->shape, strides);
  lt_Tensor *t = lt_geometry(flat, 0, e->ndim, e->shape, strides);
  lt_release(flat);
  return t;
}

/* Reads the bytes of one tensor, and converts them from little-endian. NULL with an error. */
static lt_Tensor *read_tensor(const Reading *r, const Entry *e) {
  if (r->source) return map_tensor(r, e);
  lt_Tensor *t = lt_file_empty(READER, r->path, e->dtype, e->ndim, e->shape);
  size_t size = (size_t)(e->end - e->begin);
  if (!t || size == 0) return t;
  if (lt_file_read(lt_tensor_data(t), size, r->file) != size) {
    bad_entry(r, e, "cannot be read: the file may be truncated");
    lt_release(t);
    return NULL;
  }
  if (!lt_host_is_little()) lt_file_swap(lt_tensor_data(t), t->numel, t->dtype);
  uint8_t *truth = lt_tensor_data(t);
  for (size_t i = 0; i < size && e->dtype == LT_bool; i++) truth[i] = truth[i] != 0;
  return t;
}

/* Reads the tensors in the order of the file, and returns them in the order of the header. */
static lt_Archive *read_tensors(Reading *r) {
  lt_Archive *a = calloc(1, sizeof *a);
  if (a) a->item = calloc((size_t)r->count + 1, sizeof *a->item);
  if (!a || !a->item) {
    wrong(r, "out of memory");
    lt_archive_free(a);
    return NULL;
  }
  a->count = r->count;
  for (int i = 0; i < r->count; i++) {
    lt_ArchiveItem *item = &a->item[r->entry[i].place];
    item->tensor = read_tensor(r, &r->entry[i]);
    if (!item->tensor) {
      lt_archive_free(a);
      return NULL;
    }
    item->name = r->entry[i].name;
    r->entry[i].name = NULL;
  }
  a->note = r->note;
  a->notes = r->notes;
  r->note = NULL;
  r->notes = 0;
  return a;
}

/* Parses and checks the header, then reads the tensors. */
static lt_Archive *read_all(Reading *r, const char *header, size_t length) {
  if (!lt_utf8_valid(header, length)) {
    wrong(r, "its header is not UTF-8");
    return NULL;
  }
  r->json = (lt_Json){.at = header, .end = header + length, .start = header};
  if (!read_header(r) || !check_unique(r, r->entry, r->count, sizeof *r->entry, "tensor") ||
      !check_unique(r, r->note, r->notes, sizeof *r->note, "the metadata key") || !check_layout(r))
    return NULL;
  return read_tensors(r);
}

/* Frees everything that was not moved to the archive. */
static void close_reading(Reading *r) {
  for (int i = 0; i < r->count; i++) free(r->entry[i].name);
  for (int i = 0; i < r->notes; i++) {
    free(r->note[i].key);
    free(r->note[i].value);
  }
  free(r->entry);
  free(r->note);
}

/* Reads the length of the header and checks it against the file's size, before memory is allocated
 * for it. */
static bool header_length(Reading *r, size_t *length) {
  uint64_t size, n = 0;
  uint8_t b[8];
  if (!lt_file_size(r->file, &size)) return wrong(r, "read error");
  if (size < 8 || fread(b, 1, 8, r->file) != 8)
    return wrong(r, "it is too short for a safetensors file");
  for (int i = 7; i >= 0; i--) n = n << 8 | b[i];
  if (n > MAX_HEADER)
    return wrong(r, "it is not a safetensors file, its header would be larger than 100 MB");
  if (n > size - 8) return wrong(r, "it is truncated, its header is longer than the file");
  *length = (size_t)n;
  r->data_start = 8 + n;
  r->data_size = size - 8 - n;
  return true;
}

/* Reads the header, then the tensors. NULL with an error. */
static lt_Archive *read_file(Reading *r) {
  size_t length;
  if (!header_length(r, &length)) return NULL;
  char *header = malloc(length + 1);
  lt_Archive *a = NULL;
  if (!header)
    wrong(r, "out of memory");
  else if (fread(header, 1, length, r->file) != length)
    wrong(r, "read error");
  else
    a = read_all(r, header, length);
  free(header);
  close_reading(r);
  return a;
}

lt_Archive *lt_safetensors_read(FILE *file, const char *path) {
  Reading r = {.file = file, .path = path};
  return read_file(&r);
}

lt_Archive *lt_safetensors_load(const char *path, bool mapped) {
  lt_Source *source = lt_source_open(READER, path, mapped);
  if (!source) return NULL;
  Reading r = {.file = lt_source_file(source), .source = source, .path = path};
  lt_Archive *a = read_file(&r);
  lt_source_close(source);
  return a;
}

void lt_archive_free(lt_Archive *a) {
  if (!a) return;
  for (int i = 0; i < a->count; i++) {
    free(a->item[i].name);
    lt_release(a->item[i].tensor);
  }
  for (int i = 0; i < a->notes; i++) {
    free(a->note[i].key);
    free(a->note[i].value);
  }
  free(a->item);
  free(a->note);
  free(a);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A tensor that is written, and the range of its bytes after the header. */
typedef struct Output {
  const char *name;
  const lt_Tensor *tensor;
  uint64_t begin, end;
} Output;

/* Orders tensors by element size, the largest first, so that each is aligned for its dtype; then by
 * name. */
static int by_alignment(const void *a, const void *b) {
  const Output *x = a, *y = b;
  size_t m = lt_dtype_size(x->tensor->dtype), n = lt_dtype_size(y->tensor->dtype);
  return m != n ? (m > n ? -1 : 1) : strcmp(x->name, y->name);
}

/* Checks that a string is UTF-8, as the format requires. */
static bool check_text(const char *what, const char *s) {
  if (lt_utf8_valid(s, strlen(s))) return true;
  return lt_error_set(WRITER ": expected UTF-8 for %s, got %s", what, lt_json_show(s)), false;
}

/* Checks that every tensor can be written, before the file is touched. */
static bool check_outputs(const Output *o, int n) {
  for (int i = 0; i < n; i++) {
    if (!check_text("the name", o[i].name)) return false;
    if (strcmp(o[i].name, METADATA) == 0)
      return lt_error_set(WRITER ": cannot use the reserved name " METADATA " for a tensor"), false;
    if (o[i].tensor->freed == LT_FREED)
      return lt_error_set(WRITER ": cannot save tensor %s: it was freed (x:free())",
                          lt_json_show(o[i].name)),
             false;
    if (o[i].tensor->dtype == LT_complex128)
      return lt_error_set(WRITER ": cannot save tensor %s: the format has no complex128\nhint: "
                                 "x:to(\"complex64\"), or save lt.view_as_real(x)",
                          lt_json_show(o[i].name)),
             false;
    if (!lt_backend_of(o[i].tensor)->has_data)
      return lt_error_set(WRITER ": cannot save tensor %s: it is on \"%s\" and has no data",
                          lt_json_show(o[i].name), lt_device_name(lt_tensor_device(o[i].tensor))),
             false;
  }
  return true;
}

/* Checks that no name is given twice: such a file could not be read again. */
static bool check_once(const char *what, int n, const char *const *given) {
  const char **names = malloc(((size_t)n + 1) * sizeof *names);
  if (!names) return lt_error_set(WRITER ": out of memory"), false;
  for (int i = 0; i < n; i++) names[i] = given[i];
  qsort(names, (size_t)n, sizeof *names, by_name);
  bool good = true;
  for (int i = 1; i < n && good; i++) {
    good = strcmp(names[i - 1], names[i]) != 0;
    if (!good)
      lt_error_set(WRITER ": expected each name once, got %s %s twice", what,
                   lt_json_show(names[i]));
  }
  free(names);
  return good;
}

/* A string that is appended to. If `text` is NULL, only the size is counted. */
typedef struct Text {
  char *text;
  size_t size;
} Text;

/* Appends a string. */
static void put(Text *t, const char *s) {
  size_t n = strlen(s);
  if (t->text) memcpy(t->text + t->size, s, n);
  t->size += n;
}

/* Appends a JSON string. */
static void put_quoted(Text *t, const char *s) {
  t->size += lt_json_quote(t->text ? t->text + t->size : NULL, s);
}

/* Appends the header, padded with spaces to a multiple of 8 bytes, so that the tensors are aligned.
 * Called twice: to compute the size, then to write. */
static void put_header(Text *t, const Output *o, int n, int notes, const char *const *keys,
                       const char *const *values) {
  char number[64];
  put(t, "{");
  if (notes) {
    put(t, "\"" METADATA "\":{");
    for (int i = 0; i < notes; i++) {
      if (i) put(t, ",");
      put_quoted(t, keys[i]);
      put(t, ":");
      put_quoted(t, values[i]);
    }
    put(t, n ? "}," : "}");
  }
  for (int i = 0; i < n; i++) {
    if (i) put(t, ",");
    put_quoted(t, o[i].name);
    put(t, ":{\"dtype\":\"");
    put(t, lt_dtype_code(o[i].tensor->dtype));
    put(t, "\",\"shape\":[");
    for (int d = 0; d < o[i].tensor->ndim; d++) {
      snprintf(number, sizeof number, d ? ",%lld" : "%lld", (long long)o[i].tensor->shape[d]);
      put(t, number);
    }
    snprintf(number, sizeof number, "],\"data_offsets\":[%llu,%llu]}",
             (unsigned long long)o[i].begin, (unsigned long long)o[i].end);
    put(t, number);
  }
  put(t, "}");
  while (t->size % 8) put(t, " ");
}

/* Writes the bytes of one tensor as little-endian. At most one tensor of a device is copied to the
 * host at a time. */
static bool write_tensor(lt_Replacement *r, const lt_Tensor *t) {
  lt_Tensor *bytes = lt_file_bytes(WRITER, t);
  if (!bytes) return false;
  if (!lt_host_is_little() && lt_dtype_size(t->dtype) > 1) {
    lt_Tensor *turned = lt_empty(t->dtype, lt_cpu(), t->ndim, t->shape);
    bool ok = turned && lt_copy_into(turned, bytes, false);
    if (ok) lt_file_swap(lt_tensor_data(turned), t->numel, t->dtype);
    lt_release(bytes);
    if (!ok) lt_release(turned);
    if (!ok) return false;
    bytes = turned;
  }
  size_t size = (size_t)t->numel * lt_dtype_size(t->dtype);
  lt_replace_write(r, lt_tensor_data(bytes), size);
  lt_release(bytes);
  return true;
}

/* Writes the length of the header, the header, and the tensors. */
static bool write_all(lt_Replacement *r, const Text *header, const Output *o, int n) {
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header->size >> (8 * i));
  lt_replace_write(r, length, 8);
  lt_replace_write(r, header->text, header->size);
  for (int i = 0; i < n; i++)
    if (!write_tensor(r, o[i].tensor)) return false;
  return true;
}

/* Checks everything, computes the layout, and writes the file. */
static bool save(const char *path, Output *o, int n, int notes, const char *const *keys,
                 const char *const *values) {
  uint64_t at = 0;
  if (!check_outputs(o, n)) return false;
  for (int i = 0; i < notes; i++)
    if (!check_text("the metadata key", keys[i]) || !check_text("the metadata value", values[i]))
      return false;
  qsort(o, (size_t)n, sizeof *o, by_alignment);
  for (int i = 0; i < n; i++) {
    o[i].begin = at;
    at += (uint64_t)o[i].tensor->numel * lt_dtype_size(o[i].tensor->dtype);
    o[i].end = at;
  }
  Text header = {NULL, 0};
  put_header(&header, o, n, notes, keys, values);
  if (header.size > MAX_HEADER)
    return lt_error_set(WRITER ": cannot save: the header is larger than 100 MB"), false;
  header.text = malloc(header.size);
  if (!header.text) return lt_error_set(WRITER ": out of memory"), false;
  header.size = 0;
  put_header(&header, o, n, notes, keys, values);
  lt_Replacement r;
  bool ok = lt_replace_open(&r, WRITER, path);
  if (ok) ok = lt_replace_commit(&r, write_all(&r, &header, o, n));
  free(header.text);
  return ok;
}

bool lt_safetensors_save(const char *path, int count, const char *const *names,
                         lt_Tensor *const *tensors, int notes, const char *const *keys,
                         const char *const *values) {
  Output *o = malloc(((size_t)count + 1) * sizeof *o);
  if (!o) return lt_error_set(WRITER ": out of memory"), false;
  for (int i = 0; i < count; i++) o[i] = (Output){.name = names[i], .tensor = tensors[i]};
  lt_Use use;
  lt_Thread *th = lt_thread();
  lt_use_enter(th, &use, (lt_Arg[]){LT_TENSORS(tensors, count)}, 1);
  bool ok = check_once("the name", count, names) && check_once("the metadata key", notes, keys) &&
            save(path, o, count, notes, keys, values);
  lt_use_leave(th, &use);
  free(o);
  return ok;
}
