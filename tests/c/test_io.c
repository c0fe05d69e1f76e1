/* test_io.c: readers and writers of tensor files: the result of a valid file, every kind of
 * malformed file, thousands of altered and truncated ones; and that a failure leaves one message,
 * no memory and no partial file behind. */
#include "check.h"

#include "core.h"
#include "io/io.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct Bytes {
  uint8_t at[8192];
  size_t n;
} Bytes;

static Bytes bytes(const void *p, size_t n) {
  Bytes b = {.n = n};
  memcpy(b.at, p, n);
  return b;
}

static FILE *open_bytes(const Bytes *b) {
  if (b->n) return fmemopen((void *)b->at, b->n, "rb");
  return tmpfile();
}

/* Returns a safetensors file: a header, then `data` bytes that count up. */
static Bytes safetensors(const char *header, size_t data) {
  Bytes b = {.n = 0};
  uint64_t n = strlen(header);
  for (int i = 0; i < 8; i++) b.at[b.n++] = (uint8_t)(n >> (8 * i));
  memcpy(b.at + b.n, header, n);
  b.n += n;
  for (size_t i = 0; i < data; i++) b.at[b.n++] = (uint8_t)(i + 1);
  return b;
}

static lt_Archive *parse(const Bytes *b) {
  FILE *f = open_bytes(b);
  lt_Archive *a = lt_safetensors_read(f, "x");
  fclose(f);
  return a;
}

typedef lt_Tensor *(*ReadFn)(FILE *, const char *);
static lt_Tensor *read_bytes(ReadFn read, const Bytes *b) {
  FILE *f = open_bytes(b);
  lt_Tensor *t = read(f, "x");
  fclose(f);
  return t;
}

/* Checks that the file is refused with this piece in a message that starts with its reader. */
static void refused(const Bytes *b, const char *piece) {
  int64_t live = lt_memory_live();
  lt_Archive *a = parse(b);
  if (a) check_report(__FILE__, __LINE__, "accepted, though: %s", piece);
  if (!a) CHECK_CONTAINS(lt_error(), piece);
  if (!a) CHECK_CONTAINS(lt_error(), "load_safetensors: cannot read \"x\": ");
  lt_archive_free(a);
  CHECK_INT(lt_memory_live(), live);
}

static void refused_by(ReadFn read, const Bytes *b, const char *piece) {
  int64_t live = lt_memory_live();
  lt_Tensor *t = read_bytes(read, b);
  if (t) check_report(__FILE__, __LINE__, "accepted, though: %s", piece);
  if (!t) CHECK_CONTAINS(lt_error(), piece);
  lt_release(t);
  CHECK_INT(lt_memory_live(), live);
}

static uint64_t noise = 7;
static uint32_t chance(uint32_t n) {
  noise = noise * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(noise >> 33) % n;
}

/* Returns a copy with a few bytes changed, removed or doubled, or with the end cut off. */
static Bytes altered(const Bytes *b) {
  Bytes c = *b;
  for (uint32_t k = chance(3) + 1; k > 0 && c.n > 0; k--) {
    size_t at = chance((uint32_t)c.n);
    switch (chance(5)) {
    case 0:
      c.at[at] ^= (uint8_t)(1u << chance(8));
      break;
    case 1:
      c.at[at] = (uint8_t) "\"{}[]:,0123456789-e.\\u \xff"[chance(25)];
      break;
    case 2:
      c.n = at;
      break;
    case 3:
      memmove(c.at + at, c.at + at + 1, --c.n - at);
      break;
    default:
      memmove(c.at + at + 1, c.at + at, c.n - at);
      c.n++;
    }
  }
  return c;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static const char good_header[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"caf\\u00e9\":\"\\ud83d\\ude00\\n\"},"
    "\"b\":{\"dtype\":\"I16\",\"shape\":[3],\"data_offsets\":[4,10]},"
    "\"a\":{\"data_offsets\":[0,4],\"shape\":[1,1],\"dtype\":\"F32\"},"
    "\"none\":{\"dtype\":\"F64\",\"shape\":[2,0],\"data_offsets\":[10,10]},"
    "\"one\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[10,11]} }  \n";

static void safetensors_reads(void) {
  Bytes b = safetensors(good_header, 11);
  lt_Archive *a = parse(&b);
  if (!a) printf("%s\n", lt_error());
  REQUIRE(a);
  CHECK_INT(a->count, 4);
  CHECK_INT(a->notes, 2);
  CHECK_STR(a->item[0].name, "b"); /* the header's order, not that of the bytes */
  CHECK_STR(a->item[1].name, "a");
  CHECK_STR(a->item[2].name, "none");
  CHECK_STR(a->item[3].name, "one");
  CHECK_STR(a->note[0].key, "format");
  CHECK_STR(a->note[0].value, "pt");
  CHECK_STR(a->note[1].key, "caf\xc3\xa9");
  CHECK_STR(a->note[1].value, "\xf0\x9f\x98\x80\n");
  CHECK_INT(a->item[1].tensor->dtype, LT_float32);
  CHECK_INT(a->item[1].tensor->ndim, 2);
  CHECK_INT(((int16_t *)lt_tensor_data(a->item[0].tensor))[2], 0x0a09);
  CHECK_INT(a->item[2].tensor->numel, 0);
  CHECK_INT(a->item[3].tensor->ndim, 0);
  CHECK_INT(*(uint8_t *)lt_tensor_data(a->item[3].tensor),
            1); /* any byte but 0 is true, and becomes 1 */
  lt_archive_free(a);
  b = safetensors("{}", 0);
  a = parse(&b);
  REQUIRE(a);
  CHECK_INT(a->count, 0);
  lt_archive_free(a);
}

static void safetensors_refuses(void) {
#define T4 "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"
  static const struct {
    const char *header;
    size_t data;
    const char *piece;
  } rows[] = {
      {"", 0, "expected an object"},
      {"[]", 0, "expected an object"},
      {"{", 0, "expected a string"},
      {"{}{}", 0, "unexpected data at the end"},
      {"{} x", 0, "unexpected data at the end"},
      {"{},", 0, "unexpected data at the end"},
      {"{\"a\":{" T4 "},}", 4, "expected a string"},
      {"{\"a\":{" T4 "} \"b\"", 4, "a comma or the end"},
      {"{\"a\":{" T4 ",\"x\":1}}", 4, "that is not in the format"},
      {"{\"a\":{" T4 ",\"dtype\":\"F32\"}}", 4, "a duplicate field"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "lacks"},
      {"{\"a\":{}}", 0, "lacks"},
      {"{\"a\":5}", 0, "expected an object"},
      {"{\"a\":{" T4 "},\"a\":{" T4 "}}", 4, "\"a\" twice"},
      {"{\"\\u0061\":{" T4 "},\"a\":{" T4 "}}", 4, "\"a\" twice"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate"},
      {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "\"k\" twice"},
      {"{\"__metadata__\":{\"k\":1}}", 0, "expected a string"},
      {"{\"__metadata__\":[]}", 0, "expected an object"},
      {"{\"a\\u0000b\":{" T4 "}}", 4, "NUL"},
      {"{\"a\\ud800\":{" T4 "}}", 4, "surrogate"},
      {"{\"a\\x\":{" T4 "}}", 4, "invalid escape"},
      {"{\"a\n\":{" T4 "}}", 4, "control character"},
      {"{\"a\xff\":{" T4 "}}", 4, "UTF-8"},
      {"{\"a\xc0\xaf\":{" T4 "}}", 4, "UTF-8"},
      {"{\"a\xed\xa0\x80\":{" T4 "}}", 4, "UTF-8"},
      {"{\"a", 0, "unfinished string"},
      {"{\"a\\", 0, "unfinished string"},
      {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "F33"},
      {"{\"a\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "U64"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
       "integer of at least 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4,
       "integer of at least 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}}", 4,
       "integer of at least 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4, "starts with 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4,
       "integer of at least 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}", 4,
       "64 bits"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551615],\"data_offsets\":[0,4]}}", 4,
       "63 bits"},
      /* products that wrap to 0, to 4, and to the size of the offsets */
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
       "overflows"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}", 4,
       "overflows"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":["
       "0,4]}}",
       4, "more than 16 dimensions"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
       "do not fit its shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8,
       "do not fit its shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "ends before"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "truncated"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5,
       "belong to no tensor"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}", 5, "gap"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "expected a comma"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "end of a list"},
      {"{\"a\":{" T4 "},\"b\":{" T4 "}}", 4, "overlaps another tensor"},
      {"{\"a\":{" T4 "},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6,
       "overlaps another tensor"},
      {"{\"a\":{" T4 "},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[5,9]}}", 9, "gap"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]}}", 4,
       "do not fit its shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[18446744073709551615,"
       "18446744073709551615]}}",
       0, "truncated"},
      {"{}", 1, "belong to no tensor"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Bytes b = safetensors(rows[i].header, rows[i].data);
    refused(&b, rows[i].piece);
  }
  Bytes b = safetensors("{}", 0);
  b.at[b.n++] = 0, b.at[0]++; /* padded with NUL */
  refused(&b, "unexpected data at the end");
  for (size_t n = 0; n < 8; n++) {
    b.n = n;
    refused(&b, "too short");
  }
  b = safetensors("{}", 0);
  b.at[0] = 3;
  refused(&b, "longer than the file");
  memset(b.at, 0xff, 8); /* 8 + N would wrap */
  refused(&b, "larger than 100 MB");
  b.at[3] = 5, b.at[4] = b.at[5] = b.at[6] = b.at[7] = 0; /* 100,663,295 + ... */
  refused(&b, "larger than 100 MB");
}

static void safetensors_handles_altered_files(void) {
  Bytes good = safetensors(good_header, 11);
  int64_t live = lt_memory_live();
  int accepted = 0;
  for (size_t n = 0; n < good.n; n++) {
    Bytes cut = good;
    cut.n = n;
    lt_Archive *a = parse(&cut);
    CHECK(!a);
    lt_archive_free(a);
  }
  for (int i = 0; i < 30000; i++) {
    Bytes b = altered(&good);
    lt_Archive *a = parse(&b);
    accepted += a != NULL;
    if (!a && !strstr(lt_error(), "load_safetensors: cannot read \"x\": "))
      CHECK_CONTAINS(lt_error(), "load_safetensors: cannot read \"x\": ");
    lt_archive_free(a);
  }
  CHECK(accepted < 15000); /* some changes affect names, blanks and values */
  CHECK_INT(lt_memory_live(), live);
}

/* ---- files on disk --------------------------------------------------------------------------- */

static char folder[] = "/tmp/lutra-test-io-XXXXXX";
static const char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static lt_Tensor *counting(lt_Dtype d, int ndim, const int64_t *shape) {
  lt_Tensor *t = lt_empty(d, lt_cpu(), ndim, shape);
  for (int64_t i = 0; t && i < t->numel; i++)
    lt_scalar_store(d == LT_bool ? lt_scalar_bool(i % 3 == 0) : lt_scalar_int(i % 100), d,
                    (char *)lt_tensor_data(t) + (size_t)i * lt_dtype_size(d));
  return t;
}

static void safetensors_round_trips(void) {
  lt_Tensor *t[LT_DTYPE_COUNT + 2];
  const char *names[LT_DTYPE_COUNT + 2];
  int n = 0;
  for (; n < LT_complex128; n++) { /* the format does not have it */
    t[n] = counting((lt_Dtype)n, 2, (int64_t[]){3, n});
    names[n] = lt_dtype_name((lt_Dtype)n);
  }
  lt_Tensor *square = counting(LT_float32, 2, (int64_t[]){4, 5});
  t[n] = lt_tensor_on(square->storage, LT_float32, 0, 2, (int64_t[]){5, 4}, (int64_t[]){1, 5});
  names[n++] = "quote \" \\ \n \xc3\xa9";
  t[n] = lt_empty(LT_float32, lt_cpu(), 0, NULL);
  *(float *)lt_tensor_data(t[n]) = 0.5f;
  names[n++] = "";
  const char *keys[] = {"step"}, *values[] = {"1\t0"};
  const char *path = path_of("model.safetensors");
  bool saved = lt_safetensors_save(path, n, names, t, 1, keys, values);
  if (!saved) printf("%s\n", lt_error());
  REQUIRE(saved);
  lt_Archive *a = lt_safetensors_load(path, false);
  if (!a) printf("%s\n", lt_error());
  REQUIRE(a);
  CHECK_INT(a->count, n);
  CHECK_STR(a->note[0].value, "1\t0");
  for (int i = 0; i < a->count; i++) {
    int k = 0;
    while (k < n && strcmp(names[k], a->item[i].name) != 0) k++;
    REQUIRE(k < n);
    lt_Tensor *actual = a->item[i].tensor, *expected = lt_as_contiguous(t[k], t[k]->dtype);
    CHECK_INT(actual->dtype, expected->dtype);
    CHECK(lt_shape_equal(actual->ndim, actual->shape, expected->ndim, expected->shape));
    size_t size = (size_t)expected->numel * lt_dtype_size(expected->dtype);
    CHECK(size == 0 || memcmp(lt_tensor_data(actual), lt_tensor_data(expected), size) == 0);
    lt_release(expected);
  }
  lt_archive_free(a);
  CHECK(lt_safetensors_save(path, 0, NULL, NULL, 0, NULL, NULL)); /* replaces the old file */
  a = lt_safetensors_load(path, false);
  REQUIRE(a);
  CHECK_INT(a->count, 0);
  lt_archive_free(a);
  for (int i = 0; i < n; i++) lt_release(t[i]);
  lt_release(square);
}

static void a_failed_save_keeps_the_old_file(void) {
  lt_Tensor *t = counting(LT_float32, 1, (int64_t[]){4}), *two[2] = {t, t};
  const char *twice[] = {"a", "a"}, *meta_name[] = {"__metadata__"}, *bad[] = {"\xff"};
  const char *path = path_of("old.safetensors");
  CHECK(lt_safetensors_save(path, 1, twice, two, 0, NULL, NULL));
  CHECK(!lt_safetensors_save(path, 2, twice, two, 0, NULL, NULL));
  CHECK_CONTAINS(lt_error(), "\"a\" twice");
  CHECK(!lt_safetensors_save(path, 1, meta_name, two, 0, NULL, NULL));
  CHECK(!lt_safetensors_save(path, 1, bad, two, 0, NULL, NULL));
  CHECK_CONTAINS(lt_error(), "UTF-8");
  lt_Tensor *ghost = lt_empty(LT_float32, lt_meta(), 1, (int64_t[]){4});
  CHECK(!lt_safetensors_save(path, 1, twice, &ghost, 0, NULL, NULL));
  CHECK_CONTAINS(lt_error(), "no data");
  lt_Archive *a = lt_safetensors_load(path, false); /* the old file is still there */
  CHECK(a && a->count == 1);
  lt_archive_free(a);
  CHECK(!lt_safetensors_save("/no/such/folder/x", 1, twice, two, 0, NULL, NULL));
  CHECK_CONTAINS(lt_error(), "save_safetensors: cannot write \"/no/such/folder/x\": No such file");
  CHECK(!lt_safetensors_save(folder, 1, twice, two, 0, NULL, NULL));
  CHECK_CONTAINS(lt_error(), "it is a directory");
  CHECK(!lt_safetensors_load(folder, false));
  CHECK_CONTAINS(lt_error(), "it is a directory");
  CHECK(!lt_safetensors_load(path_of("nothing"), false));
  CHECK_CONTAINS(lt_error(), "No such file");
  char command[200]; /* only the files that were saved */
  snprintf(command, sizeof command, "test $(ls %s | grep -c tmp) = 0", folder);
  CHECK_INT(system(command), 0);
  lt_release(ghost);
  lt_release(t);
}

/* The target of a link is replaced, and keeps its mode. */
static void saves_follow_links(void) {
  lt_Tensor *t = counting(LT_float32, 1, (int64_t[]){4});
  const char *name[] = {"a"};
  char target[128], link[128];
  snprintf(target, sizeof target, "%s/real.safetensors", folder);
  snprintf(link, sizeof link, "%s/link.safetensors", folder);
  CHECK(lt_safetensors_save(target, 1, name, &t, 0, NULL, NULL));
  CHECK_INT(chmod(target, 0640), 0);
  CHECK_INT(symlink(target, link), 0);
  CHECK(lt_safetensors_save(link, 1, name, &t, 0, NULL, NULL));
  struct stat s;
  CHECK_INT(lstat(link, &s), 0);
  CHECK(S_ISLNK(s.st_mode));
  CHECK_INT(stat(target, &s), 0);
  CHECK_INT(s.st_mode & 0777, 0640);
  lt_release(t);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static Bytes gzip(const Bytes *b) {
  Bytes out = {.n = 0};
  z_stream z = {0};
  deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  z.next_in = (Bytef *)b->at;
  z.avail_in = (uInt)b->n;
  z.next_out = out.at;
  z.avail_out = sizeof out.at;
  deflate(&z, Z_FINISH);
  out.n = z.total_out;
  deflateEnd(&z);
  return out;
}

static void idx_reads(void) {
  Bytes b = bytes("\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\xff", 18),
        packed = gzip(&b);
  for (int i = 0; i < 2; i++) {
    lt_Tensor *t = read_bytes(lt_idx_read, i ? &packed : &b);
    if (!t) printf("%s\n", lt_error());
    REQUIRE(t);
    CHECK_INT(t->dtype, LT_uint8);
    CHECK(lt_shape_equal(t->ndim, t->shape, 2, (int64_t[]){2, 3}));
    CHECK_INT(((uint8_t *)lt_tensor_data(t))[5], 255);
    lt_release(t);
  }
  static const struct {
    const char *text;
    size_t n;
    lt_Dtype dtype;
    double value;
  } rows[] = {{"\0\0\x09\x01\0\0\0\x01\xfe", 9, LT_int8, -2},
              {"\0\0\x0b\x01\0\0\0\x01\xff\xfe", 10, LT_int16, -2},
              {"\0\0\x0c\x01\0\0\0\x01\x01\x02\x03\x04", 12, LT_int32, 0x01020304},
              {"\0\0\x0d\x01\0\0\0\x01\x3f\xc0\0\0", 12, LT_float32, 1.5},
              {"\0\0\x0e\x01\0\0\0\x01\xbf\xf8\0\0\0\0\0\0", 16, LT_float64, -1.5}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    b = bytes(rows[i].text, rows[i].n);
    lt_Tensor *t = read_bytes(lt_idx_read, &b);
    REQUIRE(t);
    CHECK_INT(t->dtype, rows[i].dtype);
    CHECK_NEAR(lt_scalar_to_double(lt_scalar_load(t->dtype, lt_tensor_data(t))), rows[i].value, 0);
    lt_release(t);
  }
  b = bytes("\0\0\x08\x02\0\0\0\0\0\0\0\x03", 12);
  lt_Tensor *empty = read_bytes(lt_idx_read, &b);
  REQUIRE(empty);
  CHECK_INT(empty->numel, 0);
  lt_release(empty);
}

static void idx_refuses(void) {
  static const struct {
    const char *text;
    size_t n;
    const char *piece;
  } rows[] = {
      {"", 0, "too short"},
      {"\0\0\x08", 3, "too short"},
      {"\x89PNG", 4, "is not an IDX file"},
      {"\0\0\x0a\x01\0\0\0\0", 8, "is not an IDX file"},
      {"\0\0\x08\0", 4, "is not an IDX file"},
      {"\0\0\x08\x09", 4, "is not an IDX file"},
      {"\0\0\x08\x02\0\0\0\x02\0\0", 10, "ends inside its header"},
      {"\0\0\x08\x01\0\0\0\x04\x01\x02\x03", 11, "it is truncated"},
      {"\0\0\x08\x01\0\0\0\x02\x01\x02\x03", 11, "after its elements"},
      {"\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16,
       "more elements than memory"},
      {"\0\0\x08\x02\xff\xff\xff\xff\x80\0\0\0", 12, "it is truncated"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Bytes b = bytes(rows[i].text, rows[i].n);
    refused_by(lt_idx_read, &b, rows[i].piece);
  }
  Bytes big = bytes("\0\0\x08\x02\0\0\xff\xff\0\0\xff\xff\x01", 13), packed = gzip(&big);
  refused_by(lt_idx_read, &packed, "requires"); /* 4 GB out of 33 bytes: no memory is taken */
  Bytes b = bytes("\0\0\x08\x01\0\0\0\x03\x01\x02\x03", 11);
  packed = gzip(&b);
  Bytes twice = packed;
  memcpy(twice.at + twice.n, "rest", 4);
  twice.n += 4;
  refused_by(lt_idx_read, &twice, "after its compressed data");
  Bytes more = bytes("\0\0\x08\x01\0\0\0\x03\x01\x02\x03\x04", 12);
  packed = gzip(&more);
  refused_by(lt_idx_read, &packed, "after its elements");
  Bytes less = bytes("\0\0\x08\x01\0\0\0\x03\x01\x02", 10);
  packed = gzip(&less);
  refused_by(lt_idx_read, &packed, "requires 11 bytes, it has 10 decompressed");
  packed = gzip(&b);
  for (size_t n = 2; n < packed.n; n++) {
    Bytes cut = packed;
    cut.n = n;
    refused_by(lt_idx_read, &cut, "truncated");
  }
  for (size_t k = 1; k <= 8; k++) { /* the checksum and the size at the end */
    Bytes changed = packed;
    changed.at[packed.n - k] ^= 0x10;
    refused_by(lt_idx_read, &changed, "is damaged");
  }
  CHECK(!lt_idx_load(path_of("nothing")));
  CHECK_CONTAINS(lt_error(), "load_idx: ");
}

static void idx_handles_altered_files(void) {
  Bytes b =
      bytes("\0\0\x0b\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 24);
  Bytes packed = gzip(&b);
  int64_t live = lt_memory_live();
  for (int i = 0; i < 20000; i++) {
    Bytes c = altered(i % 2 ? &packed : &b);
    lt_Tensor *t = read_bytes(lt_idx_read, &c);
    if (!t && !strstr(lt_error(), "load_idx: cannot read \"x\": "))
      CHECK_CONTAINS(lt_error(), "load_idx: cannot read \"x\": ");
    lt_release(t);
  }
  CHECK_INT(lt_memory_live(), live);
}

/* ---- npy ------------------------------------------------------------------------------------- */

static Bytes npy(const char *dict, size_t data) {
  Bytes b = bytes("\x93NUMPY\x01\0\0\0", 10);
  size_t n = strlen(dict);
  b.at[8] = (uint8_t)n;
  b.at[9] = (uint8_t)(n >> 8);
  memcpy(b.at + 10, dict, n);
  b.n += n;
  for (size_t i = 0; i < data; i++) b.at[b.n++] = (uint8_t)(i + 1);
  return b;
}

static void npy_reads(void) {
  Bytes b = npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }  \n", 12);
  lt_Tensor *t = read_bytes(lt_npy_read, &b);
  if (!t) printf("%s\n", lt_error());
  REQUIRE(t);
  CHECK(lt_shape_equal(t->ndim, t->shape, 2, (int64_t[]){2, 3}));
  static const int16_t expected[] = {0x0102, 0x0506, 0x090a, 0x0304, 0x0708, 0x0b0c};
  CHECK(memcmp(lt_tensor_data(t), expected, sizeof expected) == 0);
  lt_release(t);
  b = npy("{\"shape\":(),\"descr\":\"<f4\",\"fortran_order\":False}", 4);
  t = read_bytes(lt_npy_read, &b);
  REQUIRE(t);
  CHECK_INT(t->ndim, 0);
  lt_release(t);
}

static void npy_refuses(void) {
  static const struct {
    const char *dict;
    size_t data;
    const char *piece;
  } rows[] = {
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "can run code"},
      {"{'descr': '<V8', 'fortran_order': False, 'shape': (1,), }", 8, "<V8"},
      {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", 16, "<U4"},
      {"{'descr': '<c32', 'fortran_order': False, 'shape': (1,), }", 32, "<c32"},
      {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }", 4, "records"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False}", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, "damaged"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + x", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, "truncated"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 5,
       "it has bytes after its elements"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}", 4, "truncated"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4,
       "overflows"},
      {"__import__('os').system('x')", 4, "damaged"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Bytes b = npy(rows[i].dict, rows[i].data);
    refused_by(lt_npy_read, &b, rows[i].piece);
  }
  Bytes b = npy(rows[12].dict, 8);
  b.at[6] = 9;
  refused_by(lt_npy_read, &b, "version");
  b.at[6] = 1, b.at[8] = 0xff, b.at[9] = 0xff;
  refused_by(lt_npy_read, &b, "10000");
  Bytes good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", 8);
  int64_t live = lt_memory_live();
  for (int i = 0; i < 20000; i++) {
    b = altered(&good);
    lt_release(read_bytes(lt_npy_read, &b));
  }
  CHECK_INT(lt_memory_live(), live);
}

static void npy_round_trips(void) {
  const char *path = path_of("x.npy");
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    for (int ndim = 0; ndim < 3; ndim++) {
      lt_Tensor *t = counting((lt_Dtype)d, ndim, (int64_t[]){3, 4});
      bool saved = lt_npy_save(path, t);
      CHECK_INT(saved, d != LT_bfloat16);
      lt_Tensor *u = saved ? lt_npy_load(path) : NULL;
      if (saved) {
        REQUIRE(u);
        CHECK_INT(u->dtype, d);
        CHECK(lt_shape_equal(u->ndim, u->shape, t->ndim, t->shape));
        CHECK(memcmp(lt_tensor_data(u), lt_tensor_data(t), t->storage->nbytes) == 0);
      }
      lt_release(t);
      lt_release(u);
    }
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  RUN(safetensors_reads);
  RUN(safetensors_refuses);
  RUN(safetensors_handles_altered_files);
  RUN(safetensors_round_trips);
  RUN(a_failed_save_keeps_the_old_file);
  RUN(saves_follow_links);
  RUN(idx_reads);
  RUN(idx_refuses);
  RUN(idx_handles_altered_files);
  RUN(npy_reads);
  RUN(npy_refuses);
  RUN(npy_round_trips);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) printf("could not remove %s\n", folder);
  return check_end();
}
