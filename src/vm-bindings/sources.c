/* sources.c: parts of files and bytes of tensors, for file formats that are parsed in Lua
 * (lutra.internal.zip, lutra.internal.npz, lutra.internal.torch_file, lutra.audio...). Private
 * functions of the core: their Lua callers check arguments. */
#include "bindings.h"
#include "io/io.h"
#include "io/source.h"
#include "path.h"

#include <zlib.h>

/* ---- sources --------------------------------------------------------------------------------- */

static const char type_name[] = "lutra.source";

static lt_Source *source_at_1(lua_State *L) {
  lt_Source **s = luaL_checkudata(L, 1, type_name);
  luaL_argcheck(L, *s, 1, "the file is closed");
  return *s;
}

/* Returns the argument at i, a number of bytes or an offset. */
static uint64_t size_at(lua_State *L, int i) {
  lua_Integer n = luaL_checkinteger(L, i);
  luaL_argcheck(L, n >= 0, i, "expected a size");
  return (uint64_t)n;
}

/* _source(reader, path, mapped) -> the open file */
static int open_source(lua_State *L) {
  const char *reader = luaL_checkstring(L, 1), *path = lt_lua_to_path(L, 2);
  if (!path)
    lt_lua_error(L, "%s: expected a path without NUL bytes for argument 'path', got %s", reader,
                 lua_tostring(L, -1));
  bool mapped = lua_toboolean(L, 3);
  lt_Source **s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = NULL;
  luaL_setmetatable(L, type_name);
  *s = lt_source_open(reader, path, mapped);
  if (!*s) lt_lua_fail(L, reader);
  return 1;
}

/* source:close() */
static int source_close(lua_State *L) {
  lt_Source **s = luaL_checkudata(L, 1, type_name);
  lt_source_close(*s);
  *s = NULL;
  return 0;
}

/* source:size() -> bytes */
static int source_size(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)lt_source_size(source_at_1(L)));
  return 1;
}

/* source:bytes(at, n) -> string of n bytes from offset `at`, which counts from 0 */
static int source_bytes(lua_State *L) {
  lt_Source *s = source_at_1(L);
  uint64_t at = size_at(L, 2), n = size_at(L, 3);
  luaL_Buffer text;
  /* sizes that the file cannot have fail before memory is allocated */
  char *to = n <= lt_source_size(s) ? luaL_buffinitsize(L, &text, (size_t)n) : NULL;
  if (!lt_source_read(s, at, to, n)) lt_lua_fail(L, "load");
  luaL_pushresultsize(&text, (size_t)n);
  return 1;
}

/* Pushes the tensor that `make` returns. */
static int push_tensor(lua_State *L, lt_Box *box, lt_Tensor *t, const char *name) {
  box->tensor = t;
  if (!t) lt_lua_fail(L, name);
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* source:tensor(at, dtype, count, swap) -> vector */
static int source_tensor(lua_State *L) {
  lt_Source *s = source_at_1(L);
  uint64_t at = size_at(L, 2);
  lt_Dtype dtype = lt_dtype_from_name(luaL_checkstring(L, 3));
  luaL_argcheck(L, dtype != LT_DTYPE_NONE, 3, "expected a dtype");
  lua_Integer count = luaL_checkinteger(L, 4);
  bool swap = lua_toboolean(L, 5);
  lt_Box *box = lt_lua_box(L);
  return push_tensor(L, box, lt_source_tensor(s, at, dtype, count, swap), "load");
}

/* source:inflate(at, n, size) -> vector of uint8 */
static int source_inflate(lua_State *L) {
  lt_Source *s = source_at_1(L);
  uint64_t at = size_at(L, 2), n = size_at(L, 3), size = size_at(L, 4);
  lt_Box *box = lt_lua_box(L);
  return push_tensor(L, box, lt_source_inflate(s, at, n, size), "load");
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Returns the bytes at i, of a string or a contiguous tensor of the host. */
static const char *bytes_at(lua_State *L, int i, size_t *n) {
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (!t) return luaL_checklstring(L, i, n);
  luaL_argcheck(L, lt_tensor_device(t).type == LT_DEVICE_cpu && lt_tensor_is_contiguous(t), i,
                "expected a contiguous tensor of the host");
  *n = (size_t)t->numel * lt_dtype_size(t->dtype);
  return lt_tensor_data(t);
}

/* _tensor_bytes(x) -> string with the elements in order, little-endian */
static int tensor_bytes(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "save", "tensor");
  lt_Box *box = lt_lua_box(L);
  box->tensor = lt_file_bytes("save", t);
  if (!box->tensor) lt_lua_fail(L, "save");
  size_t n = (size_t)box->tensor->numel * lt_dtype_size(box->tensor->dtype);
  luaL_Buffer text;
  char *to = luaL_buffinitsize(L, &text, n);
  if (n) memcpy(to, lt_tensor_data(box->tensor), n);
  if (!lt_host_is_little()) lt_file_swap(to, box->tensor->numel, box->tensor->dtype);
  luaL_pushresultsize(&text, n);
  return 1;
}

/* _npy_header(x) -> the start of a .npy file */
static int npy_header(lua_State *L) {
  char text[1024];
  size_t n = lt_npy_header(text, lt_lua_check(L, 1, "save_npz", "tensor"));
  if (!n) lt_lua_fail(L, "save_npz");
  lua_pushlstring(L, text, n);
  return 1;
}

/* _npy_parse(bytes, path) -> the tensor of a .npy file in memory: a string or a vector of uint8 */
static int npy_parse(lua_State *L) {
  size_t n;
  const char *data = bytes_at(L, 1, &n), *path = luaL_checkstring(L, 2);
  lt_Box *box = lt_lua_box(L);
  return push_tensor(L, box, lt_npy_parse(data, n, path), "load_npz");
}

/* _crc32(bytes, crc = 0) -> CRC-32 (ISO 3309) of a string or tensor, continuing an earlier one */
static int crc_of(lua_State *L) {
  size_t n;
  const char *data = bytes_at(L, 1, &n);
  uLong crc = (uLong)luaL_optinteger(L, 2, 0);
  while (n > 0) {
    uInt piece = n < 1u << 30 ? (uInt)n : 1u << 30;
    crc = crc32(crc, (const Bytef *)data, piece);
    data += piece;
    n -= piece;
  }
  lua_pushinteger(L, (lua_Integer)crc);
  return 1;
}

/* _deflate(string, zlib) -> the string compressed (RFC 1951); with zlib's header and checksum
 * (RFC 1950) when `zlib` is true */
static int deflate_string(lua_State *L) {
  size_t n;
  const char *data = luaL_checklstring(L, 1, &n);
  z_stream z;
  memset(&z, 0, sizeof z);
  luaL_argcheck(L, n < 1u << 31, 1, "expected less than 2 GiB");
  bool with_header = lua_toboolean(L, 2);
  luaL_Buffer text;
  uLong room = (uLong)n + (uLong)n / 1000 + 64; /* more than deflateBound of these settings */
  char *to = luaL_buffinitsize(L, &text, room);
  if (deflateInit2(&z, 6, Z_DEFLATED, with_header ? 15 : -15, 8, 0) != Z_OK)
    lt_lua_error(L, "save: out of memory");
  z.next_in = (Bytef *)(uintptr_t)data;
  z.avail_in = (uInt)n;
  z.next_out = (Bytef *)to;
  z.avail_out = (uInt)room;
  int status = deflate(&z, Z_FINISH);
  size_t size = room - z.avail_out;
  deflateEnd(&z);
  if (status != Z_STREAM_END) lt_lua_error(L, "save: cannot compress the data");
  luaL_pushresultsize(&text, size);
  return 1;
}

void lt_lua_open_sources(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"_source", open_source},
                                    {"_tensor_bytes", tensor_bytes},
                                    {"_npy_header", npy_header},
                                    {"_npy_parse", npy_parse},
                                    {"_crc32", crc_of},
                                    {"_deflate", deflate_string},
                                    {NULL, NULL}};
  static const luaL_Reg own[] = {{"close", source_close},     {"size", source_size},
                                 {"bytes", source_bytes},     {"tensor", source_tensor},
                                 {"inflate", source_inflate}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", source_close}, {"__close", source_close}, {NULL, NULL}};
  (void)methods;
  luaL_newmetatable(L, type_name);
  lt_lua_setfuncs(L, meta);
  lua_newtable(L);
  lt_lua_setfuncs(L, own);
  lua_setfield(L, -2, "__index");
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 2);
}
