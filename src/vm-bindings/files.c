/* files.c: reading and writing of tensor files for Lua. The formats are implemented in
 * src/tensor/io. */
#include "bindings.h"
#include "io/io.h"

static const char *path_at(lua_State *L, const char *name) {
  if (lua_type(L, 1) != LUA_TSTRING)
    lt_lua_error(L, "%s: expected a string for argument 'path', got %s", name,
                 lt_lua_describe(L, 1));
  const char *path = lt_lua_to_path(L, 1);
  if (!path)
    lt_lua_error(L, "%s: expected a path without NUL bytes for argument 'path', got %s", name,
                 lua_tostring(L, -1));
  return path;
}

static int push_read(lua_State *L, lt_Tensor *(*read)(const char *), const char *name) {
  lt_lua_read_named(L);
  const char *path = path_at(L, name);
  lt_Box *box = lt_lua_box(L);
  box->tensor = read(path);
  if (!box->tensor) lt_lua_fail(L, name);
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* load_idx(path) -> the tensor of an IDX file (MNIST), which may be compressed with gzip */
static int load_idx(lua_State *L) { return push_read(L, lt_idx_load, "load_idx"); }
/* load_npy(path) -> the tensor of a NumPy file */
static int load_npy(lua_State *L) { return push_read(L, lt_npy_load, "load_npy"); }

/* save_npy(path, tensor): writes a NumPy file */
static int save_npy(lua_State *L) {
  const char *path = path_at(L, "save_npy");
  if (!lt_npy_save(path, lt_lua_check(L, 2, "save_npy", "tensor"))) lt_lua_fail(L, "save_npy");
  return 0;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

#define ARCHIVE "lutra.archive"

static int archive_gc(lua_State *L) {
  lt_Archive **a = luaL_checkudata(L, 1, ARCHIVE);
  lt_archive_free(*a);
  *a = NULL;
  return 0;
}

/* _load_safetensors(path, mapped) -> list of {name, tensor} in the file's order, list of {key,
 * value} */
static int load_safetensors(lua_State *L) {
  const char *path = path_at(L, "load_safetensors");
  bool mapped = lua_toboolean(L, 2);
  lt_lua_enter(L, lt_lua_state(L));
  lt_Archive **held = lua_newuserdatauv(L, sizeof *held, 0), *a;
  *held = NULL;
  luaL_setmetatable(L, ARCHIVE);
  *held = a = lt_safetensors_load(path, mapped);
  if (!a) lt_lua_fail(L, "load_safetensors");
  lua_createtable(L, a->count, 0);
  for (int i = 0; i < a->count; i++) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, a->item[i].name);
    lua_rawseti(L, -2, 1);
    lt_lua_box(L)->tensor = lt_retain(a->item[i].tensor);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i + 1);
  }
  lua_createtable(L, a->notes, 0);
  for (int i = 0; i < a->notes; i++) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, a->note[i].key);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, a->note[i].value);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i + 1);
  }
  lt_archive_free(a);
  *held = NULL;
  lt_lua_charge(L, lt_lua_state(L));
  return 2;
}

/* Returns the *n strings of the list at i; pushes a table that keeps them alive, and the array. */
static const char **read_strings(lua_State *L, int i, int *n) {
  luaL_checktype(L, i, LUA_TTABLE);
  *n = lt_lua_length(L, "save_safetensors", NULL, i);
  lua_createtable(L, *n, 0);
  int own = lua_gettop(L);
  const char **out = lua_newuserdatauv(L, (size_t)*n * sizeof *out + 1, 0);
  for (int k = 0; k < *n; k++) {
    if (lua_rawgeti(L, i, k + 1) != LUA_TSTRING)
      lt_lua_error(
          L, "save_safetensors: expected strings as keys and values of argument 'metadata', got %s",
          lt_lua_describe(L, -1));
    out[k] = lua_tostring(L, -1);
    if (strlen(out[k]) != lua_rawlen(L, -1))
      lt_lua_error(L,
                   "save_safetensors: expected strings without NUL bytes, got one with a NUL byte");
    lua_rawseti(L, own, k + 1);
  }
  return out;
}

/* _save_safetensors(path, names, tensors, keys, values): lists */
static int save_safetensors(lua_State *L) {
  int n, keys, values;
  const char *path = path_at(L, "save_safetensors");
  const char **name = read_strings(L, 2, &n);
  const char **key = read_strings(L, 4, &keys), **value = read_strings(L, 5, &values);
  lua_createtable(L, n, 0);
  lt_Tensor **tensors = lua_newuserdatauv(L, (size_t)n * sizeof *tensors + 1, 0);
  int own = lua_gettop(L) - 1;
  luaL_checktype(L, 3, LUA_TTABLE);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 3, i + 1);
    tensors[i] = lt_lua_to_tensor(L, -1);
    if (!tensors[i])
      lt_lua_error(L, "save_safetensors: expected a tensor for \"%s\", got %s", name[i],
                   lt_lua_describe(L, -1));
    lua_rawseti(L, own, i + 1);
  }
  lt_lua_enter(L, lt_lua_state(L));
  if (!lt_safetensors_save(path, n, name, tensors, keys < values ? keys : values, key, value))
    lt_lua_fail(L, "save_safetensors");
  return 0;
}

void lt_lua_open_files(lua_State *L, int functions, int methods) {
  static const lt_Function arrays[] = {
      {"load_idx", load_idx, "(string path)", false, true},
      {"load_npy", load_npy, "(string path)", false, true},
      {"save_npy", save_npy, "(string path, Tensor tensor) -> nil", false, false},
      {NULL, NULL, NULL, false, false}};
  static const luaL_Reg module[] = {{"_load_safetensors", load_safetensors},
                                    {"_save_safetensors", save_safetensors},
                                    {NULL, NULL}};
  static const luaL_Reg archive[] = {{"__gc", archive_gc}, {NULL, NULL}};
  (void)methods;
  luaL_newmetatable(L, ARCHIVE);
  lt_lua_setfuncs(L, archive);
  lua_pushvalue(L, functions);
  lt_lua_set_read(L, arrays);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 2);
}
