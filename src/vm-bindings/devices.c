/* devices.c: names of devices and dtypes, defaults, threads, and the facts that `lutra --info`
 * prints. */
#include "bindings.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <zlib.h>

static lt_Device device_at(lua_State *L, int i, const char *name) {
  lt_Device device;
  if (!lt_lua_device(L, i, -1, &device)) lt_lua_error(L, "%s: %s", name, lt_error());
  return device;
}

static lt_Dtype dtype_at(lua_State *L, int i, const char *name) {
  if (lua_type(L, i) != LUA_TSTRING)
    lt_lua_error(L, "%s: expected a dtype such as \"float32\" for argument 'dtype', got %s", name,
                 lt_lua_describe(L, i));
  lt_Dtype d = lt_dtype_from_name(lt_lua_text(L, i, name, "dtype"));
  if (d == LT_DTYPE_NONE) lt_lua_error(L, "%s: %s", name, lt_error());
  return d;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* device(name) -> its full name; raises an error that lists the available devices when there is
 * none */
static int device(lua_State *L) {
  lua_pushstring(L, lt_device_name(device_at(L, 1, "device")));
  return 1;
}

static int type_at(lua_State *L, int i) {
  const char *name = lt_lua_text(L, i, "device_count", "type");
  for (int t = 0; t < lt_device_type_count(); t++)
    if (strcmp(lt_device_type_name(t), name) == 0) return t;
  return -1;
}

/* _device_count(type) -> the number of devices, and the reason when it is 0 */
static int device_count(lua_State *L) {
  char why[256] = "no such type of device";
  int type = type_at(L, 1);
  lua_pushinteger(L, type < 0 ? 0 : lt_device_count(type, why, sizeof why));
  lua_pushstring(L, why);
  return 2;
}

/* _devices_here() -> list of the full names of the devices known without starting a driver: those
 * of backends in use, and emulated ones */
static int devices_here(lua_State *L) {
  const char *emulate = getenv("LUTRA_EMULATE");
  bool emulated = emulate && *emulate;
  lua_Integer n = 0;
  lua_newtable(L);
  for (int t = 0; t < lt_device_type_count(); t++) {
    bool host = t == LT_DEVICE_cpu || t == LT_DEVICE_meta;
    int count = host || emulated || lt_device_loaded(t) ? lt_device_count(t, NULL, 0) : 0;
    for (int i = 0; i < count; i++) {
      lua_pushstring(L, lt_device_name((lt_Device){(uint8_t)t, (uint8_t)i}));
      lua_rawseti(L, -2, ++n);
    }
  }
  return 1;
}

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

/* Pushes the table of a device's properties; returns false with the reason when they are not
 * known. */
static bool push_properties(lua_State *L, lt_Device d) {
  lt_DeviceProperties p = {0};
  const lt_Backend *b = lt_device_backend(d.type);
  if (!b || !b->properties || !b->properties(d.index, &p)) return false;
  lua_createtable(L, 0, 14);
  set_string(L, "name", p.name);
  const struct {
    const char *name;
    int64_t value;
  } facts[] = {{"total_memory", p.total_memory},
               {"free_memory", p.free_memory},
               {"multi_processor_count", p.multiprocessors},
               {"major", p.major},
               {"L2_cache_size", p.l2_cache},
               {"shared_memory_per_block", p.shared_memory_per_block},
               {"shared_memory_per_block_optin", p.shared_memory_per_block_optin},
               {"max_threads_per_block", p.max_threads_per_block},
               {"max_threads_per_multi_processor", p.max_threads_per_multiprocessor},
               {"warp_size", p.warp_size}};
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if (facts[i].value) set_integer(L, facts[i].name, facts[i].value);
  if (p.major) set_integer(L, "minor", p.minor);
  lua_pushboolean(L, p.emulated);
  lua_setfield(L, -2, "emulated");
  return true;
}

/* device_properties(name) -> {name, total_memory, free_memory (bytes), multi_processor_count,
 * major, minor, ..., emulated}, without those that are not known */
static int device_properties(lua_State *L) {
  if (!push_properties(L, device_at(L, 1, "device_properties")))
    lt_lua_fail(L, "device_properties");
  return 1;
}

/* Returns the device that synchronize() means without an argument: the current accelerator, if
 * any. */
static lt_Device current_device(lua_State *L) {
  lt_Device d;
  int type = lt_lua_accelerator();
  if (type < 0) return lt_device_default();
  if (!lt_device_parse(lt_device_type_name(type), &d)) lt_lua_fail(L, "synchronize");
  return d;
}

/* synchronize([device]): blocks until all work queued on the device is done */
static int synchronize(lua_State *L) {
  lt_Device d = lua_isnoneornil(L, 1) ? current_device(L) : device_at(L, 1, "synchronize");
  lt_lua_enter(L, lt_lua_state(L));
  if (!lt_device_synchronize(d) || atomic_load(&lt_interrupt_flag)) lt_lua_fail(L, "synchronize");
  return 0;
}

static int get_default_device(lua_State *L) {
  lua_pushstring(L, lt_device_name(lt_device_default()));
  return 1;
}

static int set_default_device(lua_State *L) {
  if (!lt_device_set_default(device_at(L, 1, "set_default_device")))
    lt_lua_fail(L, "set_default_device");
  return 0;
}

static int get_fallback(lua_State *L) {
  lua_pushboolean(L, lt_fallback_enabled());
  return 1;
}

static int set_fallback(lua_State *L) {
  lt_lua_read_named(L);
  if (!lua_isboolean(L, 1))
    lt_lua_error(L, "set_fallback: expected a boolean for argument 'on', got %s",
                 lt_lua_describe(L, 1));
  lt_fallback_set_enabled(lua_toboolean(L, 1));
  return 0;
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static int get_default_dtype(lua_State *L) {
  lua_pushstring(L, lt_dtype_name(lt_dtype_default()));
  return 1;
}

static int set_default_dtype(lua_State *L) {
  if (!lt_dtype_set_default(dtype_at(L, 1, "set_default_dtype")))
    lt_lua_fail(L, "set_default_dtype");
  return 0;
}

static int promote_types(lua_State *L) {
  lt_Dtype a = dtype_at(L, 1, "promote_types"), b = dtype_at(L, 2, "promote_types");
  lua_pushstring(L, lt_dtype_name(lt_dtype_promote(a, b)));
  return 1;
}

/* Returns whether values of dtype `from` can be stored in a tensor of dtype `to` in place: complex
 * numbers are not stored as real ones, floats not as integers, integers not as bool. */
static int can_cast(lua_State *L) {
  lt_Dtype from = dtype_at(L, 1, "can_cast"), to = dtype_at(L, 2, "can_cast");
  lua_pushboolean(L, lt_dtype_category(from) <= lt_dtype_category(to));
  return 1;
}

/* result_type(tensor1, tensor2) -> the dtype of an op on these tensors or numbers */
static int result_type(lua_State *L) {
  lt_Arg args[2];
  for (int i = 0; i < 2; i++) {
    lt_Scalar s;
    lt_Tensor *t = lt_lua_to_tensor(L, i + 1);
    if (!t && !lt_lua_scalar(L, i + 1, &s)) t = lt_lua_check(L, i + 1, "result_type", "self");
    args[i] = t ? lt_arg_tensor(t) : lt_arg_scalar(s);
  }
  lua_pushstring(L, lt_dtype_name(lt_result_type(args, 2)));
  return 1;
}

/* _dtype(name) -> {name, size, category} */
static int dtype(lua_State *L) {
  static const char *const categories[] = {[LT_BOOL] = "bool",
                                           [LT_INTEGER] = "integer",
                                           [LT_FLOATING] = "floating",
                                           [LT_COMPLEX] = "complex"};
  lt_Dtype d = dtype_at(L, 1, "dtype");
  lua_createtable(L, 0, 3);
  set_string(L, "name", lt_dtype_name(d));
  set_integer(L, "size", (int64_t)lt_dtype_size(d));
  set_string(L, "category", categories[lt_dtype_category(d)]);
  return 1;
}

/* ---- threads, memory, the terminal ----------------------------------------------------------- */

static int get_num_threads(lua_State *L) {
  lua_pushinteger(L, lt_num_threads());
  return 1;
}

static int set_num_threads(lua_State *L) {
  int64_t n;
  lt_lua_read_named(L);
  if (!lt_lua_whole(L, 1, &n))
    lt_lua_error(L, "set_num_threads: expected an integer for argument 'n', got %s",
                 lt_lua_describe(L, 1));
  if (!lt_set_num_threads(n)) lt_lua_fail(L, "set_num_threads");
  return 0;
}

/* memory_live() -> bytes held by tensors on all devices */
static int memory_live(lua_State *L) {
  lua_pushinteger(L, lt_memory_live());
  return 1;
}

/* clock() -> seconds of a monotonic clock */
static int seconds(lua_State *L) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  lua_pushnumber(L, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
  return 1;
}

static int file_at(lua_State *L, int i, const char *name) {
  int64_t fd;
  lt_lua_read_named(L);
  if (!lt_lua_whole(L, i, &fd) || fd < 0 || fd > INT_MAX)
    lt_lua_error(L, "%s: expected the number of an open file for argument 'fd', got %s", name,
                 lt_lua_describe(L, i));
  return (int)fd;
}

/* isatty(fd) -> whether this file is a terminal */
static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(file_at(L, 1, "isatty")));
  return 1;
}

/* terminal_width(fd) -> columns, or nil when the file is not a terminal */
static int terminal_width(lua_State *L) {
  struct winsize size;
  if (ioctl(file_at(L, 1, "terminal_width"), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    lua_pushinteger(L, size.ws_col);
  else
    lua_pushnil(L);
  return 1;
}

/* ---- info ------------------------------------------------------------------------------------ */

static void push_device_info(lua_State *L, int type) {
  char why[256] = "";
  int count = lt_device_count(type, why, sizeof why);
  lua_createtable(L, 0, 5);
  set_string(L, "name", lt_device_type_name(type));
  lua_pushboolean(L, count > 0);
  lua_setfield(L, -2, "available");
  set_integer(L, "count", count);
  if (count == 0) set_string(L, "why", why);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    lt_Device d = {(uint8_t)type, (uint8_t)i};
    if (!push_properties(L, d)) {
      lua_newtable(L);
      set_string(L, "why", lt_error());
    }
    set_string(L, "device", lt_device_name(d));
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "list");
}

/* info() -> {version, compiler, build, cpu, isa, threads, blas, vector_math, zlib, devices} */
static int info(lua_State *L) {
  lt_DeviceProperties cpu = {0};
  const lt_Backend *backend = lt_backend_cpu();
  backend->properties(0, &cpu);
  lua_createtable(L, 0, 10);
  set_string(L, "version", LT_VERSION);
  const char *compiler = __VERSION__; /* clang includes its name, gcc only its version */
  lua_pushfstring(L, "%s%s", compiler[0] >= '0' && compiler[0] <= '9' ? "gcc " : "", compiler);
  lua_setfield(L, -2, "compiler");
#ifdef LT_DEBUG
  set_string(L, "build", "debug");
#else
  set_string(L, "build", "release");
#endif
  set_string(L, "cpu", cpu.name);
  set_string(L, "isa", backend->fact(0, "isa"));
  set_integer(L, "threads", lt_num_threads());
  set_string(L, "blas", backend->fact(0, "blas"));
#ifdef LT_VECTOR_MATH_NAME
  set_string(L, "vector_math", LT_VECTOR_MATH_NAME);
#else
  set_string(L, "vector_math", "none");
#endif
  set_string(L, "zlib", zlibVersion());
  int types = lt_device_type_count();
  lua_createtable(L, types, 0);
  for (int t = 0; t < types; t++) {
    push_device_info(L, t);
    lua_rawseti(L, -2, t + 1);
  }
  lua_setfield(L, -2, "devices");
  return 1;
}

void lt_lua_open_devices(lua_State *L, int functions, int methods) {
  static const char none[] = "() -> nil", file[] = "(int fd) -> nil",
                    dtypes[] = "(dtype dtype) -> nil";
  static const lt_Function module[] = {
      {"device_properties", device_properties, "(device device) -> nil", false, false},
      {"synchronize", synchronize, "(device? device = nil) -> nil", false, false},
      {"get_default_device", get_default_device, none, false, false},
      {"set_default_device", set_default_device, "(device device) -> nil", false, false},
      {"get_fallback", get_fallback, none, false, false},
      {"set_fallback", set_fallback, "(bool on) -> nil", false, true},
      {"get_default_dtype", get_default_dtype, none, false, false},
      {"set_default_dtype", set_default_dtype, dtypes, false, false},
      {"can_cast", can_cast, "(dtype from_, dtype to) -> nil", false, false},
      {"promote_types", promote_types, "(dtype type1, dtype type2) -> nil", false, false},
      {"result_type", result_type, "(Operand tensor1, Operand tensor2) -> nil", false, false},
      {"get_num_threads", get_num_threads, none, false, false},
      {"set_num_threads", set_num_threads, "(int n) -> nil", false, true},
      {"memory_live", memory_live, none, false, false},
      {"clock", seconds, none, false, false},
      {"isatty", is_terminal, file, false, true},
      {"terminal_width", terminal_width, file, false, true},
      {"info", info, none, false, false},
      {NULL, NULL, NULL, false, false}};
  static const luaL_Reg internal[] = {{"device", device},
                                      {"_device_count", device_count},
                                      {"_devices_here", devices_here},
                                      {"_dtype", dtype},
                                      {NULL, NULL}};
  (void)methods;
  lua_pushvalue(L, functions);
  lt_lua_set_read(L, module);
  lt_lua_setfuncs(L, internal);
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    set_string(L, lt_dtype_name((lt_Dtype)d), lt_dtype_name((lt_Dtype)d));
  lua_pop(L, 1);
}
