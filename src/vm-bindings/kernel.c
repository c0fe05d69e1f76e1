/* kernel.c: launches kernels written by users: lt.cuda.kernel (lib/lutra/internal/kernel.lua) and
 * lt.mps.compile_shader (lib/lutra/internal/shader.lua). Those files parse a kernel's parameters
 * from its source; this file checks the arguments of a call against them, packs them, and launches
 * the kernel.
 *
 * Invariant: a kernel is launched only with arguments that fit its declaration: each pointer has a
 * contiguous tensor of its dtype on the device, aligned and sized for whole vectors where it points
 * to them; each number fits its type. Accesses out of bounds inside the kernel cannot be
 * checked. */
#include "bindings.h"
#include "trace.h"

#include <math.h>

#define KERNEL "lutra.kernel"

typedef enum Element { /* type of a parameter, or of what it points to: see element_dtype */
                       E_DTYPE,
                       E_UINT16,
                       E_UINT32,
                       E_UINT64,
                       E_ANY
} Element;

typedef struct Param {
  char name[40], type[48]; /* as written in the source: "x", "const float *" */
  bool pointer, written;   /* written: a pointer to non-const */
  bool list;               /* a list of numbers is allowed: of `numbers`, or of any length where it
                            * is a pointer */
  Element element;
  lt_Dtype dtype; /* of E_DTYPE */
  int lanes;      /* 4 of float4 *, else 1 */
  int numbers;    /* of a vector passed by value: in a list; 3 of float3, which has 4 lanes */
} Param;

enum {
  MAX_PARAMS = 120,
  MAX_OPTIONS = 32,
  MAX_DEVICES = UINT8_MAX + 1,
  SLOT = 8,        /* bytes of a number */
  MAX_BYTES = 4096 /* of a list of numbers or a struct */
};

/* The kinds of kernels, which differ in how they are launched. */
typedef struct Kind {
  int device;              /* the type of the devices that run them */
  const char *function;    /* the function that makes them, for errors */
  const char *on;          /* "a CUDA device" */
  const char *settings[3]; /* names of grid, block and shared memory */
  bool by_threads;         /* as in lt_KernelLaunch; then the settings are optional */
} Kind;
static const Kind kinds[] = {
    {LT_DEVICE_cuda, "cuda.kernel", "a CUDA device", {"grid", "block", "shared_bytes"}, false},
    {LT_DEVICE_mps,
     "mps.compile_shader",
     "\"mps\"",
     {"threads", "group_size", "threadgroup_bytes"},
     true}};

/* A kernel. Its strings are kept alive by its user values. */
typedef struct Kernel {
  const Kind *kind;
  lt_KernelSource source;
  const char *option[MAX_OPTIONS];
  lt_UserKernel *built[MAX_DEVICES]; /* compiled kernels by device index */
  bool any_layout; /* tensors may be strided: kernels of the library, which receive strides */
  int count;
  Param param[];
} Kernel;

static Kernel *kernel_at(lua_State *L) { return luaL_checkudata(L, 1, KERNEL); }

/* ---- new(source, name, options, params, any_layout, expression, by_threads) ------------------ */

static const char *text_field(lua_State *L, int i, const char *field) {
  lua_getfield(L, i, field);
  const char *text = lt_lua_text(L, -1, "kernel", field);
  lua_pop(L, 1); /* the table keeps it alive */
  return text;
}

static bool bool_field(lua_State *L, int i, const char *field) {
  lua_getfield(L, i, field);
  bool on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

/* Reads a parameter from the table on top of the stack. */
static void read_param(lua_State *L, Param *p) {
  int i = lua_gettop(L);
  const char *element = text_field(L, i, "element");
  snprintf(p->name, sizeof p->name, "%s", text_field(L, i, "name"));
  snprintf(p->type, sizeof p->type, "%s", text_field(L, i, "type"));
  p->pointer = bool_field(L, i, "pointer");
  p->written = bool_field(L, i, "written");
  p->list = bool_field(L, i, "list");
  lua_getfield(L, i, "lanes");
  p->lanes = (int)luaL_checkinteger(L, -1);
  lua_getfield(L, i, "numbers");
  p->numbers = (int)luaL_optinteger(L, -1, p->lanes);
  lua_pop(L, 2);
  p->element = strcmp(element, "any") == 0      ? E_ANY
               : strcmp(element, "uint16") == 0 ? E_UINT16
               : strcmp(element, "uint32") == 0 ? E_UINT32
               : strcmp(element, "uint64") == 0 ? E_UINT64
                                                : E_DTYPE;
  if (p->element != E_DTYPE) return;
  p->dtype = lt_dtype_from_name(element);
  if (p->dtype == LT_DTYPE_NONE) lt_lua_fail(L, "kernel");
}

/* Creates a kernel, which is compiled at its first use on a device. */
static int kernel_new(lua_State *L) {
  lua_settop(L, 7);
  luaL_checktype(L, 3, LUA_TTABLE);
  luaL_checktype(L, 4, LUA_TTABLE);
  const Kind *kind = &kinds[lua_toboolean(L, 7)];
  const char *function = kind->function;
  int options = lt_lua_length(L, function, NULL, 3);
  int count = lt_lua_length(L, function, NULL, 4);
  if (options > MAX_OPTIONS)
    return lt_lua_error(L, "%s: expected at most %d options, got %d", function, MAX_OPTIONS,
                        options);
  if (count > MAX_PARAMS)
    return lt_lua_error(L, "%s: expected at most %d parameters for the kernel %s, got %d", function,
                        MAX_PARAMS, lua_tostring(L, 2), count);
  const char *source = lt_lua_text(L, 1, function, "source"),
             *name = lt_lua_text(L, 2, function, "name"),
             *expression = lt_lua_text(L, 6, function, "name");
  Kernel *k = lua_newuserdatauv(L, sizeof *k + (size_t)count * sizeof *k->param, 4);
  memset(k, 0, sizeof *k + (size_t)count * sizeof *k->param);
  luaL_setmetatable(L, KERNEL);
  for (int i = 0; i < 3; i++) {
    lua_pushvalue(L, (const int[]){1, 2, 6}[i]);
    lua_setiuservalue(L, -2, i + 1);
  }
  lua_createtable(L, options, 0); /* keeps the strings of the options alive */
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, -3, 4);
  k->kind = kind;
  k->source = (lt_KernelSource){source, name, expression, k->option, options};
  for (int i = 0; i < options; i++) {
    lua_rawgeti(L, 3, i + 1);
    k->option[i] = lt_lua_text(L, -1, function, "options");
    lua_rawseti(L, -2, i + 1);
  }
  lua_pop(L, 1);
  for (int i = 0; i < count; i++) {
    lua_rawgeti(L, 4, i + 1);
    read_param(L, &k->param[i]);
    lua_pop(L, 1);
  }
  k->any_layout = lua_toboolean(L, 5);
  k->count = count;
  return 1;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Compiles the kernel for a device unless it is compiled already. Returns false when the compiler
 * rejects it, and pushes the compiler's log. Raises an error for any other failure. */
static bool build(lua_State *L, Kernel *k, lt_Device d) {
  const lt_Backend *b = lt_device_backend(d.type);
  if (k->built[d.index]) return true;
  if (!b || !b->kernels.user_create)
    lt_lua_error(L, "%s: cannot compile a kernel for \"%s\": it must be on %s", k->source.name,
                 lt_device_name(d), k->kind->on);
  char *log = NULL;
  lt_lua_enter(L, lt_lua_state(L));
  lt_UserOp now = lt_user_op_set((lt_UserOp){k->kind->function, false});
  k->built[d.index] = b->kernels.user_create(d.index, &k->source, &log);
  lt_user_op_set(now);
  if (k->built[d.index] || !log || lt_stopped()) {
    free(log);
    if (!k->built[d.index]) lt_lua_fail(L, k->source.name);
    return true;
  }
  lua_pushstring(L, log);
  free(log);
  return false;
}

/* k:build(device) -> true; nil and the compiler's log when it rejects the source */
static int kernel_build(lua_State *L) {
  Kernel *k = kernel_at(L);
  lt_Device d;
  if (!lt_device_parse(lt_lua_text(L, 2, k->kind->function, "device"), &d)) lt_lua_fail(L, NULL);
  if (build(L, k, d)) {
    lua_pushboolean(L, true);
    return 1;
  }
  lua_pushnil(L);
  lua_insert(L, -2);
  return 2;
}

lt_UserKernel *lt_lua_user_kernel(lua_State *L, int i, lt_Device d) {
  Kernel *k = luaL_testudata(L, i, KERNEL);
  return k ? k->built[d.index] : NULL;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Stack index of a call's first argument; argument i + 1 is at FIRST + i. */
enum { FIRST = 3 };

/* Raises the error that argument i + 1 has the wrong type. */
static void refuse(lua_State *L, const Kernel *k, int i, const char *expected) {
  bool read_it = !k->param[i].pointer && lt_lua_to_tensor(L, FIRST + i);
  lt_lua_error(L, "%s: expected %s for argument '%s' (#%d, %s), got %s%s", k->source.name, expected,
               k->param[i].name, i + 1, k->param[i].type, lt_lua_describe(L, FIRST + i),
               read_it ? "\nhint: x:item()" : "");
}

/* Returns the dtype of tensors for this parameter. There are no dtypes for the wide unsigned types;
 * tensors of the signed ones have the same layout. */
static lt_Dtype element_dtype(const Param *p) {
  static const lt_Dtype same_bits[] = {
      [E_UINT16] = LT_int16, [E_UINT32] = LT_int32, [E_UINT64] = LT_int64, [E_ANY] = LT_DTYPE_NONE};
  return p->element == E_DTYPE ? p->dtype : same_bits[p->element];
}

/* Writes the unsigned integer at stack index `at`, of argument i + 1, to memory; raises an error if
 * it is out of range. */
static void pack_integer(lua_State *L, const Kernel *k, int i, int at, void *memory) {
  const Param *p = &k->param[i];
  static const struct {
    int64_t from, to;
    const char *expected;
  } range[] = {[E_UINT16] = {0, 65535, "an integer from 0 to 65535"},
               [E_UINT32] = {0, 4294967295, "an integer from 0 to 4294967295"},
               [E_UINT64] = {0, INT64_MAX, "an integer of at least 0"}};
  int64_t n;
  if (!lt_lua_whole(L, at, &n) || n < range[p->element].from || n > range[p->element].to)
    refuse(L, k, i, range[p->element].expected);
  memcpy(memory, &n, lt_dtype_size(element_dtype(p))); /* little-endian, as all supported hosts */
}

/* Writes the number at stack index `at`, of argument i + 1, to memory; raises an error if it does
 * not fit the parameter's type. */
static void pack_value(lua_State *L, const Kernel *k, int i, int at, void *memory) {
  const Param *p = &k->param[i];
  int64_t n;
  if (p->element != E_DTYPE) {
    pack_integer(L, k, i, at, memory);
    return;
  }
  if (p->dtype == LT_bool) {
    if (!lua_isboolean(L, at)) refuse(L, k, i, "a boolean");
    *(uint8_t *)memory = (uint8_t)lua_toboolean(L, at);
    return;
  }
  bool is_float = lt_dtype_is_float(p->dtype);
  if (lua_type(L, at) != LUA_TNUMBER || (!is_float && !lt_lua_whole(L, at, &n)))
    refuse(L, k, i, is_float ? "a number" : "an integer");
  lt_Scalar s = is_float ? lt_scalar_float(lua_tonumber(L, at)) : lt_scalar_int(n);
  if (!lt_scalar_store(s, p->dtype, memory))
    refuse(L, k, i, lua_pushfstring(L, "a number that fits \"%s\"", lt_dtype_name(p->dtype)));
  if (is_float && isfinite(s.f) && !isfinite(lt_scalar_load(p->dtype, memory).f))
    refuse(L, k, i, lua_pushfstring(L, "a number that fits \"%s\"", lt_dtype_name(p->dtype)));
}

/* Packs the list of numbers, or the string (the bytes of a struct), that is argument i + 1; pushes
 * their memory. Returns the number of bytes. */
static size_t pack_list(lua_State *L, const Kernel *k, int i, void **out) {
  const Param *p = &k->param[i];
  size_t n = 0, size = p->element == E_ANY ? 1 : lt_dtype_size(element_dtype(p));
  const char *bytes =
      lua_type(L, FIRST + i) == LUA_TSTRING ? lua_tolstring(L, FIRST + i, &n) : NULL;
  if (!bytes && (!lua_istable(L, FIRST + i) || p->element == E_ANY))
    refuse(L, k, i, p->element == E_ANY ? "a string with its bytes" : "a list of numbers");
  if (!bytes) n = lua_rawlen(L, FIRST + i) * size;
  if (n == 0 || n > MAX_BYTES) refuse(L, k, i, lua_pushfstring(L, "1 to %d bytes", (int)MAX_BYTES));
  if (!bytes && !p->pointer && n != size * (size_t)p->numbers)
    refuse(L, k, i, lua_pushfstring(L, "a list of %d numbers", p->numbers));
  size_t whole = bytes || p->pointer ? n : size * (size_t)p->lanes;
  char *memory = lua_newuserdatauv(L, whole, 0);
  memset(memory, 0, whole);
  if (bytes) memcpy(memory, bytes, n);
  for (size_t at = 0; !bytes && at < n; at += size) {
    lua_rawgeti(L, FIRST + i, (lua_Integer)(at / size) + 1);
    pack_value(L, k, i, lua_gettop(L), memory + at);
    lua_pop(L, 1);
  }
  *out = memory;
  return whole;
}

/* Checks the tensor of a pointer to vectors: a multiple of their size, and aligned for them.
 * Vectors of 3 elements are aligned to one element. */
static void check_vectors(lua_State *L, const Kernel *k, int i, const lt_Tensor *t) {
  const Param *p = &k->param[i];
  const char *name = k->source.name;
  enum { WIDEST = 16 };
  int64_t n = t->numel, size = (int64_t)lt_dtype_size(element_dtype(p));
  int64_t align = p->lanes == 3 ? size : p->lanes * size < WIDEST ? p->lanes * size : WIDEST;
  int64_t off = (int64_t)((uintptr_t)lt_tensor_place(t) % (uintptr_t)align);
  if (n % p->lanes)
    lt_lua_error(L,
                 "%s: expected a multiple of %d elements for argument '%s' (#%d, %s), got "
                 "%lld\nhint: pad the tensor, or read single elements in the kernel",
                 name, p->lanes, p->name, i + 1, p->type, (long long)n);
  if (n && off)
    lt_lua_error(L,
                 "%s: expected memory aligned to %d bytes for argument '%s' (#%d, %s), got an "
                 "address %d bytes past a multiple\nhint: x:clone()",
                 name, (int)align, p->name, i + 1, p->type, (int)off);
}

/* Raises an error unless argument i + 1 is a tensor that the kernel may access through this
 * parameter. */
static void check_tensor(lua_State *L, const Kernel *k, int i, lt_Device device) {
  const Param *p = &k->param[i];
  lt_Tensor *t = lt_lua_to_tensor(L, FIRST + i);
  const char *name = k->source.name;
  lt_Dtype expected = element_dtype(p);
  if (!t && p->element == E_ANY) refuse(L, k, i, "a tensor");
  if (!t) refuse(L, k, i, lua_pushfstring(L, "a tensor of dtype \"%s\"", lt_dtype_name(expected)));
  bool fits =
      p->element == E_ANY || t->dtype == expected || (expected == LT_uint8 && t->dtype == LT_bool);
  if (!fits && lt_dtype_is_complex(t->dtype))
    lt_lua_error(L,
                 "%s: expected a real tensor for argument '%s' (#%d, %s), got dtype \"%s\"\nhint: "
                 "pass its parts, lt.view_as_real(x), to a pointer to %s",
                 name, p->name, i + 1, p->type, lt_dtype_name(t->dtype),
                 t->dtype == LT_complex64 ? "float or float2" : "double or double2");
  if (!fits)
    lt_lua_error(
        L, "%s: expected dtype \"%s\" for argument '%s' (#%d, %s), got \"%s\"\nhint: x:to(\"%s\")",
        name, lt_dtype_name(expected), p->name, i + 1, p->type, lt_dtype_name(t->dtype),
        lt_dtype_name(expected));
  if (!lt_device_equal(lt_tensor_device(t), device))
    lt_lua_error(L,
                 "%s: expected a tensor on \"%s\" for argument '%s' (#%d, %s), got one on "
                 "\"%s\"\nhint: x:to(\"%s\")",
                 name, lt_device_name(device), p->name, i + 1, p->type,
                 lt_device_name(lt_tensor_device(t)), lt_device_name(device));
  if (!k->any_layout && !lt_tensor_is_contiguous(t))
    lt_lua_error(L,
                 "%s: expected a contiguous tensor for argument '%s' (#%d, %s), got a strided one "
                 "of shape %s: a kernel reads memory only\nhint: x:contiguous()",
                 name, p->name, i + 1, p->type, lt_shape_text(t->ndim, t->shape));
  if (p->lanes > 1) check_vectors(L, k, i, t);
  if (p->written && lt_grad_enabled() && lt_tensor_requires_grad(t))
    lt_lua_error(L,
                 "%s: cannot write to argument '%s' (#%d, %s): it requires grad, and autograd does "
                 "not record kernels\nhint: call it under lt.no_grad or in an "
                 "lt.autograd.Function; declare the parameter const if it is only read",
                 name, p->name, i + 1, p->type);
}

/* Returns the device of the first tensor, which must be of the kernel's type; without tensors the
 * current device of that type. */
static lt_Device place(lua_State *L, const Kernel *k) {
  lt_Device d;
  int type = k->kind->device;
  for (int i = 0; i < k->count; i++) {
    lt_Tensor *t = k->param[i].pointer ? lt_lua_to_tensor(L, FIRST + i) : NULL;
    if (!t) continue;
    d = lt_tensor_device(t);
    const lt_Backend *b = lt_device_backend(d.type);
    if (b && b->kernels.user_create && d.type == type) return d;
    lt_lua_error(L,
                 "%s: expected a tensor on %s for argument '%s' (#%d, %s), got one on "
                 "\"%s\"\nhint: x:to(\"%s\")",
                 k->source.name, k->kind->on, k->param[i].name, i + 1, k->param[i].type,
                 lt_device_name(d), lt_device_type_name(type));
  }
  if (!lt_device_parse(lt_device_type_name(type), &d)) lt_lua_fail(L, k->source.name);
  return d;
}

static void check_count(lua_State *L, const Kernel *k) {
  int given = lua_gettop(L) - FIRST + 1;
  if (given == k->count) return;
  luaL_Buffer list;
  luaL_buffinit(L, &list);
  for (int i = 0; i < k->count; i++) {
    const char *type = k->param[i].type;
    lua_pushfstring(L, "%s%s%s%s", i ? ", " : "", type,
                    strchr("*&", type[strlen(type) - 1]) ? "" : " ", k->param[i].name);
    luaL_addvalue(&list);
  }
  luaL_pushresult(&list);
  lt_lua_error(L, "%s: expected %d argument%s%s (%s), got %d", k->source.name, k->count,
               k->count == 1 ? "" : "s", k->kind->by_threads ? "" : " after grid and block",
               lua_tostring(L, -1), given);
}

/* ---- grid, block, shared_bytes --------------------------------------------------------------- */

/* Pushes a launch setting from the table at index 2, by position (from 1) or by name; nil if it is
 * optional and absent. */
static void push_setting(lua_State *L, const Kernel *k, int position) {
  const char *name = k->kind->settings[position - 1];
  if (lua_rawgeti(L, 2, position) != LUA_TNIL) return;
  lua_pop(L, 1);
  if (lua_getfield(L, 2, name) == LUA_TNIL && position < 3 && !k->kind->by_threads)
    lt_lua_error(L,
                 "%s: expected an integer or a list of up to 3 for argument '%s', got no "
                 "value\nhint: k({grid, block}, arguments...)",
                 k->source.name, name);
}

/* Reads an integer or a list of up to three; missing axes are 1. Returns false when the setting is
 * absent. */
static bool read_axes(lua_State *L, const Kernel *k, int position, int64_t out[3]) {
  const char *name = k->kind->settings[position - 1];
  push_setting(L, k, position);
  out[0] = out[1] = out[2] = 1;
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return false;
  }
  bool ok = lt_lua_whole(L, -1, &out[0]);
  if (!ok && lua_istable(L, -1)) {
    size_t n = lua_rawlen(L, -1);
    ok = n >= 1 && n <= 3;
    for (int i = 0; ok && i < (int)n; i++) {
      lua_rawgeti(L, -1, i + 1);
      ok = lt_lua_whole(L, -1, &out[i]);
      lua_pop(L, 1);
    }
  }
  bool fraction = lua_type(L, -1) == LUA_TNUMBER;
  if (!ok)
    lt_lua_error(L, "%s: expected an integer or a list of up to 3 for argument '%s', got %s%s",
                 k->source.name, name, lt_lua_describe(L, -1),
                 fraction ? "\nhint: (n + 255) // 256 gives an integer" : "");
  lua_pop(L, 1);
  return true;
}

/* Raises an error for an unknown name among the settings, which would have no effect. */
static void check_settings(lua_State *L, const Kernel *k) {
  const char *const *names = k->kind->settings;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    int64_t position = 0;
    bool known = lua_type(L, -2) == LUA_TNUMBER && lt_lua_whole(L, -2, &position) &&
                 position >= 1 && position <= 3;
    for (int i = 0; i < 3 && !known && lt_lua_is_text(L, -2); i++)
      known = strcmp(lua_tostring(L, -2), names[i]) == 0;
    if (known) continue;
    luaL_tolstring(L, -2, NULL);
    lt_lua_error(L, "%s: expected %s, %s and %s in the %s argument, got \"%s\"", k->source.name,
                 names[0], names[1], names[2], k->kind->by_threads ? "last" : "first",
                 lua_tostring(L, -1));
  }
}

/* Returns the number of elements of the first tensor: the threads of a launch without `threads`. */
static int64_t first_numel(lua_State *L, const Kernel *k) {
  for (int i = FIRST, n = lua_gettop(L); i <= n; i++) {
    const lt_Tensor *t = lt_lua_to_tensor(L, i);
    if (t) return t->numel;
  }
  return lt_lua_error(
      L,
      "%s: expected an integer or a list of up to 3 for argument '%s', got no value: "
      "there is no tensor whose elements could be counted\nhint: f(arguments..., "
      "{threads = n})",
      k->source.name, k->kind->settings[0]);
}

static void read_settings(lua_State *L, const Kernel *k, lt_KernelLaunch *out) {
  if (!lua_istable(L, 2))
    lt_lua_error(
        L,
        "%s: expected {grid, block} or {grid, block, shared_bytes} as the first argument, got %s",
        k->source.name, lt_lua_describe(L, 2));
  check_settings(L, k);
  if (!read_axes(L, k, 1, out->grid)) out->grid[0] = first_numel(L, k);
  if (!read_axes(L, k, 2, out->block)) out->block[0] = 0;
  push_setting(L, k, 3);
  if (!lua_isnil(L, -1) && !lt_lua_whole(L, -1, &out->shared))
    lt_lua_error(L, "%s: expected an integer for argument '%s', got %s", k->source.name,
                 k->kind->settings[2], lt_lua_describe(L, -1));
  lua_pop(L, 1);
}

/* ---- launch ---------------------------------------------------------------------------------- */

/* Records the effects of a launch: the version of tensors that it writes, and the stream on which
 * their memory must stay allocated. */
static void note_tensors(lua_State *L, const Kernel *k, const lt_Backend *b, lt_Stream *stream) {
  for (int i = 0; i < k->count; i++) {
    lt_Tensor *t = k->param[i].pointer ? lt_lua_to_tensor(L, FIRST + i) : NULL;
    if (!t) continue;
    lt_Storage *s = t->storage;
    if (k->param[i].written) lt_tensor_touch(t);
    if (stream && s->stream && (s->stream != stream || lt_is_capturing()) &&
        b->memory.record_stream)
      b->memory.record_stream(s, stream);
  }
}

/* Launches the kernel as one traced op; returns false with the reason. */
static bool run(const Kernel *k, const lt_Backend *b, lt_Device d, const lt_KernelLaunch *launch,
                lt_Stream *stream) {
  lt_TraceSpan span;
  lt_UserKernel *built = k->built[d.index];
  if (!lt_trace_begin_op(&span, k->source.name))
    return b->kernels.user_launch(built, launch, stream);
  span.event.op = LT_NO_OP; /* not an op of the table */
  span.event.name = k->source.name;
  span.event.device = d;
  span.event.stream = stream;
  span.event.kernel = true;
  span.event.ndim = -1;
  bool ok = b->kernels.user_launch(built, launch, stream) && lt_trace_synchronize(d);
  return lt_trace_end(&span, ok);
}

/* The arguments of a launch. */
typedef struct Arguments {
  _Alignas(16) char values[MAX_PARAMS][SLOT];
  void *address[MAX_PARAMS];
  size_t sizes[MAX_PARAMS];
} Arguments;

/* Checks the arguments and packs the values. */
static void read_arguments(lua_State *L, const Kernel *k, lt_Device d, Arguments *a) {
  for (int i = 0; i < k->count; i++) {
    const Param *p = &k->param[i];
    bool packed = p->list && !lt_lua_to_tensor(L, FIRST + i);
    a->address[i] = a->values[i];
    a->sizes[i] = 0;
    if (packed) {
      a->sizes[i] = pack_list(L, k, i, &a->address[i]);
    } else if (p->pointer) {
      check_tensor(L, k, i, d);
    } else {
      a->sizes[i] = lt_dtype_size(element_dtype(p));
      memset(a->values[i], 0, SLOT);
      pack_value(L, k, i, FIRST + i, a->values[i]);
    }
  }
}

/* Stores the addresses of the tensors, which may be another memory after a compilation. */
static void read_addresses(lua_State *L, const Kernel *k, Arguments *a) {
  for (int i = 0; i < k->count; i++) {
    if (a->sizes[i]) continue;
    const lt_Tensor *t = lt_lua_to_tensor(L, FIRST + i);
    if (!t) refuse(L, k, i, "a tensor"); /* a finalizer freed it during compilation */
    void *data = lt_tensor_data(t);
    memcpy(a->values[i], &data, sizeof data);
  }
}

/* k:launch({grid, block, shared_bytes}, arguments...) -> true; nil and the compiler's log if it was
 * not compiled for this device yet and the compiler rejects it */
static int kernel_launch(lua_State *L) {
  Kernel *k = kernel_at(L);
  lt_KernelLaunch launch = {.count = k->count, .by_threads = k->kind->by_threads};
  Arguments a;
  if (lua_gettop(L) < 2) lua_settop(L, 2);
  luaL_checkstack(L, MAX_PARAMS + 20, "too many arguments");
  read_settings(L, k, &launch);
  check_count(L, k);
  lt_Device d = place(L, k);
  read_arguments(L, k, d, &a);
  if (!build(L, k, d)) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  lt_lua_enter(L, lt_lua_state(L));
  const lt_Backend *b = lt_device_backend(d.type);
  lt_Stream *stream = b->streams.current ? b->streams.current(b, d.index) : NULL;
  read_addresses(L, k, &a);
  launch.arguments = a.address;
  launch.sizes = a.sizes;
  bool empty = launch.by_threads && !(launch.grid[0] && launch.grid[1] && launch.grid[2]);
  if (!empty && !run(k, b, d, &launch, stream)) lt_lua_fail(L, k->source.name);
  note_tensors(L, k, b, stream);
  lua_pushboolean(L, true);
  return 1;
}

/* k:limits(device) -> the most threads of a threadgroup, the threads of a SIMD group, and the bytes
 * of threadgroup memory that the kernel declares; nil where the device does not say */
static int kernel_limits(lua_State *L) {
  Kernel *k = kernel_at(L);
  lt_Device d;
  if (!lt_device_parse(lt_lua_text(L, 2, k->kind->function, "device"), &d)) lt_lua_fail(L, NULL);
  const lt_Backend *b = lt_device_backend(d.type);
  lt_KernelLimits limits;
  if (!k->built[d.index] || !b->kernels.user_limits) return 0;
  if (!b->kernels.user_limits(k->built[d.index], &limits)) lt_lua_fail(L, k->source.name);
  lua_pushinteger(L, limits.threads);
  lua_pushinteger(L, limits.simd_width);
  lua_pushinteger(L, limits.shared);
  return 3;
}

/* _same_layout(...) -> whether the tensors among the values are contiguous and have one shape */
static int same_layout(lua_State *L) {
  const lt_Tensor *first = NULL;
  bool same = true;
  for (int i = 1, n = lua_gettop(L); same && i <= n; i++) {
    const lt_Tensor *t = lt_lua_to_tensor(L, i);
    if (!t) continue;
    if (!first) first = t;
    same =
        lt_tensor_is_contiguous(t) && lt_shape_equal(t->ndim, t->shape, first->ndim, first->shape);
  }
  lua_pushboolean(L, same);
  return 1;
}

void lt_lua_open_kernel(lua_State *L, int functions, int methods) {
  static const luaL_Reg own[] = {
      {"build", kernel_build}, {"launch", kernel_launch}, {"limits", kernel_limits}, {NULL, NULL}};
  (void)methods;
  luaL_newmetatable(L, KERNEL);
  lua_newtable(L);
  lt_lua_setfuncs(L, own);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  static const luaL_Reg module[] = {
      {"_kernel", kernel_new}, {"_same_layout", same_layout}, {NULL, NULL}};
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
