/* test_io_values.c: files of other programs, byte for byte: NumPy's are read and written as NumPy
 * does, a safetensors file is written as its format specifies; tensors of other devices and in
 * unusual layouts; failing writes; and examples of malformed files that other readers failed on. */
#include "tensors.h"
#include "io/file.h"
#include "io/io.h"
#include "toy_device.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[] = "/tmp/lutra-test-io-XXXXXX";
static const char *path_of(const char *name) {
  static char ring[4][128];
  static int turn;
  char *path = ring[turn = (turn + 1) % 4];
  snprintf(path, sizeof ring[0], "%s/%s", folder, name);
  return path;
}

static void write_file(const char *path, const void *data, size_t n) {
  FILE *f = fopen(path, "wb");
  CHECK(f && fwrite(data, 1, n, f) == n);
  if (f) fclose(f);
}

/* Reads a whole file, up to 4096 bytes. */
static size_t read_file(const char *path, char out[4096]) {
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(out, 1, 4096, f) : 0;
  if (f) fclose(f);
  return n;
}

static int files_in_folder(void) {
  char command[160];
  int n = -1;
  snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
  FILE *p = popen(command, "r");
  if (p && fscanf(p, "%d", &n) != 1) n = -1;
  if (p) pclose(p);
  return n;
}

/* Checks that the error is one line that starts with this. */
#define CHECK_SAYS(start, piece)                                                                   \
  do {                                                                                             \
    CHECK(strncmp(lt_error(), start, strlen(start)) == 0);                                         \
    CHECK_CONTAINS(lt_error(), piece);                                                             \
    CHECK(!strchr(lt_error(), '\n'));                                                              \
  } while (0)

static bool same_tensor(lt_Tensor *a, lt_Tensor *b) {
  if (a->dtype != b->dtype || !lt_shape_equal(a->ndim, a->shape, b->ndim, b->shape)) return false;
  for (int64_t i = 0; i < a->numel; i++)
    if (!check_close(number(a, i), number(b, i), 0)) return false;
  return true;
}

/* ---- NumPy's files --------------------------------------------------------------------------- */

/* Written by NumPy 1.24.2:
 *   from numpy.lib import format
 *   format.write_array(file, numpy.array([[0, 1, 2], [3, 100, 1]], dtype))
 *     for each dtype and byte order
 *   format.write_array(file, numpy.asfortranarray(array))
 *     of (2, 3) <i4 and of (1, 3, 2) >i2
 *   format.write_array(file, array, version=(2, 0))
 *     and (3, 0), of (6,)
 *   format.write_array(file, numpy.array(0.0)), and numpy.zeros((2, 0, 3), '<f4')
 * `ours`: a native C-ordered version 1.0 file, which lt_npy_save writes the same. */
static const struct {
  const char *bytes;
  size_t n;
  lt_Dtype dtype;
  int ndim;
  int64_t shape[3];
  bool ours;
} from_numpy[] = {
    {"\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\001\001\001\001\001",
     134,
     LT_bool,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\001\002\003d\001",
     134,
     LT_uint8,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\001\002\003d\001",
     134,
     LT_int8,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\001\000\002\000"
     "\003\000d\000\001\000",
     140,
     LT_int16,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\001\000\002"
     "\000\003\000d\000\001",
     140,
     LT_int16,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\001\000"
     "\000\000\002\000\000\000\003\000\000\000d\000\000\000\001\000\000\000",
     152,
     LT_int32,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\000\000"
     "\000\001\000\000\000\002\000\000\000\003\000\000\000d\000\000\000\001",
     152,
     LT_int32,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\000\000"
     "\000\000\001\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000\003\000\000"
     "\000\000\000\000\000d\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000",
     176,
     LT_int64,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '>i8', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\000\000"
     "\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\002\000\000\000"
     "\000\000\000\000\003\000\000\000\000\000\000\000d\000\000\000\000\000\000\000\001",
     176,
     LT_int64,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000<\000@\000B@V"
     "\000<",
     140,
     LT_float16,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '>f2', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000<\000@\000B\000V@"
     "<\000",
     140,
     LT_float16,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\000\000"
     "\200?\000\000\000@\000\000@@\000\000\310B\000\000\200?",
     152,
     LT_float32,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000?\200\000"
     "\000@\000\000\000@@\000\000B\310\000\000?\200\000\000",
     152,
     LT_float32,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\000\000"
     "\000\000\000\000\000\000\000\000\360?\000\000\000\000\000\000\000@\000\000\000\000"
     "\000\000\010@\000\000\000\000\000\000Y@\000\000\000\000\000\000\360?",
     176,
     LT_float64,
     2,
     {2, 3},
     true},
    {"\223NUMPY\001\000v\000{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }   "
     "                                                       \012\000\000\000\000\000\000"
     "\000\000?\360\000\000\000\000\000\000@\000\000\000\000\000\000\000@\010\000\000\000"
     "\000\000\000@Y\000\000\000\000\000\000?\360\000\000\000\000\000\000",
     176,
     LT_float64,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }    "
     "                                                       \012\000\000\000\000\003\000"
     "\000\000\001\000\000\000d\000\000\000\002\000\000\000\001\000\000\000",
     152,
     LT_int32,
     2,
     {2, 3},
     false},
    {"\223NUMPY\001\000v\000{'descr': '>i2', 'fortran_order': True, 'shape': (1, 3, 2), } "
     "                                                       \012\000\000\000\002\000d\000"
     "\001\000\003\000\001",
     140,
     LT_int16,
     3,
     {1, 3, 2},
     false},
    {"\223NUMPY\002\000t\000\000\000{'descr': '<i4', 'fortran_order': False, 'shape': (6,)"
     ", }                                                          \012\000\000\000\000"
     "\001\000\000\000\002\000\000\000\003\000\000\000d\000\000\000\001\000\000\000",
     152,
     LT_int32,
     1,
     {6},
     false},
    {"\223NUMPY\003\000t\000\000\000{'descr': '<f4', 'fortran_order': False, 'shape': (6,)"
     ", }                                                          \012\000\000\000\000"
     "\000\000\200?\000\000\000@\000\000@@\000\000\310B\000\000\200?",
     152,
     LT_float32,
     1,
     {6},
     false},
    {"\223NUMPY\001\000v\000{'descr': '<f8', 'fortran_order': False, 'shape': (), }       "
     "                                                       \012\000\000\000\000\000\000"
     "\000\000",
     136,
     LT_float64,
     0,
     {0},
     true},
    {"\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, 3), }"
     "                                                       \012",
     128,
     LT_float32,
     3,
     {2, 0, 3},
     true},
};

static void npy_reads_and_writes_as_numpy(void) {
  static const double expected[] = {0, 1, 2, 3, 100, 1};
  const char *path = path_of("numpy.npy"), *again = path_of("again.npy");
  char written[4096];
  for (size_t i = 0; i < sizeof from_numpy / sizeof *from_numpy; i++) {
    write_file(path, from_numpy[i].bytes, from_numpy[i].n);
    lt_Tensor *t = lt_scope_own(lt_npy_load(path));
    if (!t) check_report(__FILE__, __LINE__, "file %zu: %s", i, lt_error());
    if (!t) continue;
    CHECK_INT(t->dtype, from_numpy[i].dtype);
    CHECK(lt_shape_equal(t->ndim, t->shape, from_numpy[i].ndim, from_numpy[i].shape));
    for (int64_t k = 0; k < t->numel; k++)
      CHECK_NEAR(number(t, k), t->dtype == LT_bool ? expected[k] != 0 : expected[k], 0);
    if (!from_numpy[i].ours || !lt_host_is_little()) continue;
    CHECK(lt_npy_save(again, t));
    CHECK_INT(read_file(again, written), from_numpy[i].n);
    CHECK(memcmp(written, from_numpy[i].bytes, from_numpy[i].n) == 0);
  }
}

static lt_Tensor *read_npy(const void *bytes, size_t n) {
  FILE *f = n ? fmemopen((void *)(uintptr_t)bytes, n, "rb") : tmpfile();
  lt_Tensor *t = lt_npy_read(f, "x");
  fclose(f);
  return t;
}

static void npy_refuses_truncated_files(void) {
  for (size_t i = 0; i < sizeof from_numpy / sizeof *from_numpy; i++)
    for (size_t n = 0; n < from_numpy[i].n; n++) {
      lt_Tensor *t = read_npy(from_numpy[i].bytes, n);
      CHECK(!t);
      if (!t) CHECK_SAYS("load_npy: cannot read \"x\": ", "");
      lt_release(t);
    }
}

/* Writes a version 1.0 file with this dict and `data` bytes. */
static size_t make_npy(char out[512], const char *dict, size_t data) {
  size_t n = strlen(dict);
  memset(out, 0, 512);
  memcpy(out, "\x93NUMPY\1", 7);
  out[8] = (char)n;
  memcpy(out + 10, dict, n);
  return 10 + n + data;
}

static void npy_refuses_more(void) {
  static const struct {
    const char *dict;
    size_t data;
    const char *piece;
  } rows[] = {
      /* a product that overflows after a size of 0, in either order */
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 4, 0), }", 0, "{46"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4), }", 0,
       "{0,"},
      /* products that wrap to 0 and to 4 */
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0,
       "describes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,), }", 4,
       "describes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
       4, "dimensions"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': [1], }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0x1,), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", 4, "damaged"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", 8, "damaged"},
      {"{'descr': '<f\\x34', 'fortran_order': False, 'shape': (1,), }", 4, "damaged"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,), }", 4, "dtype \"\""},
      {"{'descr': '<', 'fortran_order': False, 'shape': (1,), }", 4, "dtype \"<\""},
      {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16, "<f16"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", 2, "<u2"},
      {"{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }", 8, "<M8[s]"},
      {"{'descr': 'O', 'fortran_order': False, 'shape': (1,), }", 8, "can run code"},
      {"{'descr': '|V16', 'fortran_order': False, 'shape': (1,), }", 16, "|V16"},
      {"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,), }", 8, "damaged"},
      {"", 0, "damaged"},
  };
  char b[512];
  int64_t live = lt_memory_live();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    lt_Tensor *t = read_npy(b, make_npy(b, rows[i].dict, rows[i].data));
    if (t) check_report(__FILE__, __LINE__, "accepted: %s", rows[i].dict);
    if (!t) CHECK_SAYS("load_npy: cannot read \"x\": ", rows[i].piece);
    lt_release(t);
  }
  static const char huge[12] = "\x93NUMPY\2\0\xff\xff\xff\xff"; /* 4 GB of header */
  CHECK(!read_npy(huge, sizeof huge));
  CHECK_SAYS("load_npy: cannot read \"x\": ", "10000");
  CHECK_INT(lt_memory_live(), live);
  size_t n = make_npy(b, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } ", 4);
  b[n - 5] = 0; /* padded with NUL */
  CHECK(!read_npy(b, n));
  CHECK_SAYS("load_npy: cannot read \"x\": ", "damaged");
  lt_Tensor *old =
      read_npy(b, make_npy(b, "{'descr': '<f4', 'fortran_order': False, 'shape': (1L,)}", 4));
  CHECK(old && old->shape[0] == 1); /* written by Python 2 */
  lt_release(old);
}

/* ---- safetensors, byte for byte -------------------------------------------------------------- */

/* By the format: metadata first, wide elements before narrow ones, then names in order; padded with
 * blanks to a multiple of 8. */
static void safetensors_are_written_as_the_format_says(void) {
  static const char header[] =
      "{\"__metadata__\":{\"by\":\"a \\\"test\\\"\"},"
      "\"z\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[8,12]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[12,20]},"
      "\"c\":{\"dtype\":\"BF16\",\"shape\":[0,3],\"data_offsets\":[20,20]},"
      "\"A\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[20,23]}}";
  static const char data[] = "\0\0\0\0\0\0\xf8\x3f"   /* 1.5 */
                             "\xfe\xff\xff\xff"       /* -2 */
                             "\0\0\x80\x3f\0\0\0\xc0" /* 1, -2 */
                             "\1\0\1";
  lt_Tensor *t[] = {
      V(bool, 1, 0, 1), V(int32, -2), from_list(LT_float32, (double[]){1, -2}, SHAPE(2, 1)),
      from_list(LT_bfloat16, NULL, SHAPE(0, 3)), from_list(LT_float64, (double[]){1.5}, 0, NULL)};
  const char *names[] = {"A", "a", "b", "c", "z"}, *keys[] = {"by"}, *values[] = {"a \"test\""};
  const char *path = path_of("exact.safetensors");
  char actual[4096];
  size_t padded = (sizeof header - 1 + 7) / 8 * 8;
  REQUIRE(lt_safetensors_save(path, 5, names, t, 1, keys, values));
  CHECK_INT(read_file(path, actual), 8 + padded + sizeof data - 1);
  for (int i = 0; i < 8; i++) CHECK_INT((uint8_t)actual[i], padded >> (8 * i) & 255);
  CHECK(memcmp(actual + 8, header, sizeof header - 1) == 0);
  for (size_t i = sizeof header - 1; i < padded; i++) CHECK_INT(actual[8 + i], ' ');
  CHECK(memcmp(actual + 8 + padded, data, sizeof data - 1) == 0);
}

/* Every dtype: no dims, no elements, any strides. */
static void every_layout_round_trips(void) {
  const char *path = path_of("layout");
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    lt_Tensor *square = noise((lt_Dtype)d, SHAPE(3, 4), 5), *line = noise((lt_Dtype)d, SHAPE(4), 6);
    lt_Tensor *wide = lt_scope_own(
        lt_tensor_on(line->storage, line->dtype, 0, 2, (int64_t[]){3, 4}, (int64_t[]){0, 1}));
    lt_Tensor *part = lt_scope_own(
        lt_tensor_on(square->storage, square->dtype, 5, 2, (int64_t[]){2, 2}, (int64_t[]){4, 2}));
    lt_Tensor *t[] = {noise((lt_Dtype)d, 0, NULL, 1),
                      noise((lt_Dtype)d, SHAPE(0), 1),
                      noise((lt_Dtype)d, SHAPE(2, 0, 3), 1),
                      noise((lt_Dtype)d, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2), 1),
                      square,
                      laid_out(square, 1),
                      laid_out(square, 2),
                      wide,
                      part};
    const char *names[] = {"8", "7", "6", "5", "4", "3", "2", "1", "0"};
    bool known = d != LT_complex128;
    CHECK(lt_safetensors_save(path, 9, names, t, 0, NULL, NULL) == known);
    if (!known) CHECK_CONTAINS(lt_error(), "the format has no complex128\nhint: x:to");
    lt_Archive *a = known ? lt_safetensors_load(path, false) : NULL;
    REQUIRE(!known || (a && a->count == 9));
    for (int i = 0; i < 9 && d != LT_bfloat16; i++) {
      REQUIRE(lt_npy_save(path_of("layout.npy"), t[i]));
      lt_Tensor *back = lt_scope_own(lt_npy_load(path_of("layout.npy")));
      CHECK(back && same_tensor(back, t[i]));
    }
    for (int i = 0; a && i < 9; i++) { /* sorted by name */
      CHECK_STR(a->item[i].name, names[8 - i]);
      CHECK(same_tensor(a->item[i].tensor, t[8 - i]));
    }
    lt_archive_free(a);
  }
}

static lt_Archive *read_safetensors(const char *header, size_t n, size_t data) {
  char b[1024] = {0};
  for (int i = 0; i < 8; i++) b[i] = (char)(n >> (8 * i));
  memcpy(b + 8, header, n);
  FILE *f = fmemopen(b, 8 + n + data, "rb");
  lt_Archive *a = lt_safetensors_read(f, "x");
  fclose(f);
  return a;
}

static void safetensors_refuse_more(void) {
  static const struct {
    const char *header;
    size_t data;
    const char *piece;
  } rows[] = {
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,0],\"data_offsets\":[0,0]}}", 0,
       "overflows"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
       "overflows"},
      {"{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"f32\""},
      {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "F8_E4M3"},
      {"{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,0]}}", 0, "\"F4\""},
      {"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "expected a string"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,4]}}", 4, "expected a list"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,],\"data_offsets\":[0,4]}}", 4,
       "integer of at least 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,-4]}}", 4,
       "integer of at least 0"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[18446744073709551612,0]}}", 4,
       "ends before"},
      {"{\"a\":null}", 0, "expected an object"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[[[[[[[[[1]]]]]]]]],\"data_offsets\":[0,4]}}", 4,
       "integer of at least 0"},
      {"{\"__metadata__\":{\"a\":null}}", 0, "expected a string"},
      {"{\"__metadata__\":null}", 0, "expected an object"},
      {"{\"__metadata__\":{\"\xf5\":\"\"}}", 0, "UTF-8"},
      {"\xef\xbb\xbf{}", 0, "expected an object"},
      {"{}/* */", 0, "unexpected data at the end"},
      {"{'a':1}", 0, "expected a string"},
      {"{\"a\\nb\\u001b[31m\":{}}", 0, "\"a?b?[31m\""}, /* nothing reaches a terminal raw */
  };
  int64_t live = lt_memory_live();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    lt_Archive *a = read_safetensors(rows[i].header, strlen(rows[i].header), rows[i].data);
    if (a) check_report(__FILE__, __LINE__, "accepted: %s", rows[i].header);
    if (!a) CHECK_SAYS("load_safetensors: cannot read \"x\": ", rows[i].piece);
    lt_archive_free(a);
  }
  static const char padded[] = "{}\0\0\0\0\0";
  CHECK(!read_safetensors(padded, sizeof padded, 0)); /* NUL is no white space */
  CHECK_SAYS("load_safetensors: cannot read \"x\": ", "unexpected data at the end");
  CHECK_INT(lt_memory_live(), live);
  lt_Archive *a = read_safetensors("{} \t\r\n  ", 8, 0);
  CHECK(a && a->count == 0);
  lt_archive_free(a);
}

/* One byte more than the format's limit is refused, though the (sparse) file is that large. */
static void a_header_has_a_limit(void) {
  const char *path = path_of("long");
  static const uint8_t length[8] = {0x01, 0xe1, 0xf5, 0x05}; /* 100,000,001 */
  write_file(path, length, 8);
  REQUIRE(truncate(path, 100000009) == 0);
  CHECK(!lt_safetensors_load(path, false));
  CHECK_SAYS("load_safetensors: ", "100 MB");
  unlink(path);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static lt_Tensor *read_idx(const void *bytes, size_t n) {
  FILE *f = fmemopen((void *)(uintptr_t)bytes, n, "rb");
  lt_Tensor *t = lt_idx_read(f, "x");
  fclose(f);
  return t;
}

static size_t gzip(const void *bytes, size_t n, uint8_t *out, size_t room) {
  z_stream z = {0};
  deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  z.next_in = (Bytef *)(uintptr_t)bytes;
  z.avail_in = (uInt)n;
  z.next_out = out;
  z.avail_out = (uInt)room;
  CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
  deflateEnd(&z);
  return z.total_out;
}

static void idx_of_many_gzip_members(void) {
  static uint8_t plain[4 + 8 + 300 * 300], packed[65536];
  memcpy(plain, "\0\0\x08\2\0\0\1\x2c\0\0\1\x2c", 12);
  for (size_t i = 12; i < sizeof plain; i++) plain[i] = (uint8_t)(i * 7 + i / 251);
  /* a gzip file may have many members, split anywhere, even inside the header */
  for (size_t cut = 2; cut < sizeof plain; cut = cut * 3 + 1) {
    size_t n = gzip(plain, cut, packed, sizeof packed);
    n += gzip(plain + cut, sizeof plain - cut, packed + n, sizeof packed - n);
    lt_Tensor *t = read_idx(packed, n);
    if (!t) check_report(__FILE__, __LINE__, "cut at %zu: %s", cut, lt_error());
    if (t) CHECK(t->numel == 90000 && memcmp(lt_tensor_data(t), plain + 12, 90000) == 0);
    lt_release(t);
  }
  size_t n = gzip(plain, sizeof plain - 1, packed, sizeof packed);
  CHECK(!read_idx(packed, n));
  CHECK_SAYS("load_idx: cannot read \"x\": ", "it has 90011 decompressed");
  n = gzip(plain, sizeof plain, packed, sizeof packed);
  memset(packed + n, 0, 16);
  CHECK(!read_idx(packed, n + 16));
  CHECK_SAYS("load_idx: cannot read \"x\": ", "after its compressed data");
}

/* 16 MB of zeros compress to 16 KB. A header with a smaller or larger size is detected by reading,
 * and no memory is allocated for 2^32 - 1 elements that do not exist. */
static void idx_of_a_wrong_size(void) {
  size_t n = 1u << 24;
  uint8_t *plain = calloc(1, n), *packed = malloc(1u << 16);
  REQUIRE(plain && packed);
  memcpy(plain, "\0\0\x08\1\0\0\0\5", 8);
  CHECK(!read_idx(packed, gzip(plain, n, packed, 1u << 16)));
  CHECK_SAYS("load_idx: cannot read \"x\": ", "after its elements");
  memcpy(plain, "\0\0\x08\1\xff\xff\xff\xff", 8);
  CHECK(!read_idx(packed, gzip(plain, n, packed, 1u << 16)));
  CHECK_SAYS("load_idx: cannot read \"x\": ", "4294967303 bytes, it has 16777216 decompressed");
  memcpy(plain, "\0\0\x0e\4\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 20);
  CHECK(!read_idx(packed, gzip(plain, 20, packed, 1u << 16)));
  CHECK_SAYS("load_idx: cannot read \"x\": ", "more elements than memory");
  free(plain);
  free(packed);
}

/* ---- devices, failing writes, paths ---------------------------------------------------------- */

static void device_tensors_are_copied_to_the_host(void) {
  lt_Device toy;
  REQUIRE(lt_device_register(&toy_backend) >= 0 && lt_device_parse("toy:1", &toy));
  lt_Tensor *host = noise(LT_float32, SHAPE(3, 4), 3);
  lt_Tensor *there = lt_scope_own(lt_op1(LT_OP_to, (lt_Arg[]){LT_ARG(host), LT_ARG(toy)}, 2));
  REQUIRE(there);
  lt_Tensor *turned = lt_scope_own(
      lt_tensor_on(there->storage, LT_float32, 0, 2, (int64_t[]){4, 3}, (int64_t[]){1, 4}));
  lt_Tensor *expected = lt_scope_own(
      lt_tensor_on(host->storage, LT_float32, 0, 2, (int64_t[]){4, 3}, (int64_t[]){1, 4}));
  CHECK(lt_npy_save(path_of("toy.npy"), turned));
  lt_Tensor *actual = lt_scope_own(lt_npy_load(path_of("toy.npy")));
  CHECK(actual && same_tensor(actual, expected));
  const char *name[] = {"w"};
  CHECK(lt_safetensors_save(path_of("toy"), 1, name, &turned, 0, NULL, NULL));
  lt_Archive *a = lt_safetensors_load(path_of("toy"), false);
  REQUIRE(a);
  CHECK(same_tensor(a->item[0].tensor, expected));
  lt_archive_free(a);
  /* the copy fails: the file stays, and no other file is left */
  int files = files_in_folder();
  lt_Tensor *ghost = lt_scope_own(lt_empty(LT_float32, lt_meta(), 1, (int64_t[]){4}));
  CHECK(!lt_npy_save(path_of("toy.npy"), ghost));
  CHECK_SAYS("save_npy: ", "cannot save a tensor on \"meta\": it has no data");
  CHECK(!lt_npy_save(path_of("toy.npy"), lt_scope_own(lt_empty(LT_bfloat16, lt_cpu(), 0, NULL))));
  CHECK_STR(lt_error(), "save_npy: cannot save dtype \"bfloat16\": NumPy does not support it\n"
                        "hint: x:to(\"float32\")");
  actual = lt_scope_own(lt_npy_load(path_of("toy.npy")));
  CHECK(actual && same_tensor(actual, expected));
  CHECK_INT(files_in_folder(), files);
}

/* The disk is full (simulated by a limit on the file's size): the old file stays unchanged, and no
 * other file is left. */
static void a_failed_write_changes_nothing(void) {
  struct rlimit old, small;
  lt_Tensor *big = noise(LT_float32, SHAPE(300, 300), 1), *one = V(float32, 5);
  const char *name[] = {"w"}, *npy = path_of("keep.npy"), *st = path_of("keep.safetensors");
  REQUIRE(lt_npy_save(npy, one) && lt_safetensors_save(st, 1, name, &one, 0, NULL, NULL));
  int files = files_in_folder();
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  small = old;
  small.rlim_cur = 100000;
  signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK(!lt_npy_save(npy, big));
  CHECK_SAYS("save_npy: ", "keep.npy\": File too large");
  CHECK(!lt_safetensors_save(st, 1, name, &big, 0, NULL, NULL));
  CHECK_SAYS("save_safetensors: ", "keep.safetensors\": File too large");
  CHECK(!lt_npy_save(path_of("new.npy"), big));
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  CHECK_INT(files_in_folder(), files);
  lt_Tensor *t = lt_scope_own(lt_npy_load(npy));
  CHECK(t && same_tensor(t, one));
  lt_Archive *a = lt_safetensors_load(st, false);
  CHECK(a && a->count == 1 && same_tensor(a->item[0].tensor, one));
  lt_archive_free(a);
}

static void metadata_keys_are_unique(void) {
  const char *keys[] = {"k", "l", "k"}, *values[] = {"1", "2", "3"};
  CHECK(!lt_safetensors_save(path_of("k"), 0, NULL, NULL, 3, keys, values));
  CHECK_SAYS("save_safetensors: ", "got the metadata key \"k\" twice");
  CHECK(access(path_of("k"), F_OK) != 0);
}

/* Reading something that is not a regular file does not block. */
static void only_regular_files_are_read(void) {
  const char *pipe_path = path_of("pipe");
  REQUIRE(mkfifo(pipe_path, 0600) == 0);
  CHECK(!lt_idx_load(pipe_path));
  CHECK_SAYS("load_idx: ", "pipe\": it is not a regular file");
  CHECK(!lt_npy_load("/dev/null"));
  CHECK_SAYS("load_npy: cannot read \"/dev/null\": ", "it is not a regular file");
  CHECK(!lt_npy_load(folder));
  CHECK_SAYS("load_npy: ", "it is a directory");
  CHECK(!lt_safetensors_load(path_of("a/b"), false));
  CHECK_SAYS("load_safetensors: ", "a/b\": No such file");
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  RUN_SCOPED(npy_reads_and_writes_as_numpy);
  RUN_SCOPED(npy_refuses_truncated_files);
  RUN_SCOPED(npy_refuses_more);
  RUN_SCOPED(safetensors_are_written_as_the_format_says);
  RUN_SCOPED(every_layout_round_trips);
  RUN_SCOPED(safetensors_refuse_more);
  RUN_SCOPED(a_header_has_a_limit);
  RUN_SCOPED(idx_of_many_gzip_members);
  RUN_SCOPED(idx_of_a_wrong_size);
  RUN_SCOPED(device_tensors_are_copied_to_the_host);
  RUN_SCOPED(a_failed_write_changes_nothing);
  RUN_SCOPED(metadata_keys_are_unique);
  RUN_SCOPED(only_regular_files_are_read);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) printf("could not remove %s\n", folder);
  return check_end();
}
