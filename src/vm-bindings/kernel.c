/* kernel.c: launches kernels written by users. lib/lutra/internal/kernel.lua parses a kernel's
 * parameters from its source; this file checks the arguments of a call against them, packs them,
 * and launches the kernel.
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
  Element element;
  lt_Dtype dtype; /* of E_DTYPE */
  int lanes;      /* 4 of float4 *, else 1 */
} Param;

enum { MAX_PARAMS = 120, MAX_OPTIONS = 32, MAX_DEVICES = UINT8_MAX + 1, SLOT = 8 };

/* A kernel. Its strings are kept alive by its user values. */
typedef struct Kernel {
  lt_KernelSource source;
  const char *option[MAX_OPTIONS];
  lt_UserKernel *built[MAX_DEVICES]; /* compiled kernels by device index */
  bool any_layout; /* tensors may be strided: kernels of the library, which receive strides */
  int count;
  Param param[];
} Kernel;

static Kernel *kernel_at(lua_State *L) { return luaL_checkudata(L, 1, KERNEL); }

/* ---- new(source, name, options, params, any_layout, expression) ------------------------------ */

static const char *text_field(lua_State *L, int i, const char *field) {
  lua_getfield(L, i, field);
  const char *text = lt_lua_text(L, -1, "cuda.kernel", field);
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
  lua_getfield(L, i, "lanes");
  p->lanes = (int)luaL_checkinteger(L, -1);
  lua_pop(L, 1);
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
  lua_settop(L, 6);
  luaL_checktype(L, 3, LUA_TTABLE);
  luaL_checktype(L, 4, LUA_TTABLE);
  int options = lt_lua_length(L, "cuda.kernel", NULL, 3);
  int count = lt_lua_length(L, "cuda.kernel", NULL, 4);
  if (options > MAX_OPTIONS)
    return lt_lua_error(L, "cuda.kernel: expected at most %d options, got %d", MAX_OPTIONS,
                        options);
  if (count > MAX_PARAMS)
    return lt_lua_error(L, "cuda.kernel: expected at most %d parameters for the kernel %s, got %d",
                        MAX_PARAMS, lua_tostring(L, 2), count);
  const char *source = lt_lua_text(L, 1, "cuda.kernel", "source"),
             *name = lt_lua_text(L, 2, "cuda.kernel", "name"),
             *expression = lt_lua_text(L, 6, "cuda.kernel", "name");
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
  k->source = (lt_KernelSource){source, name, expression, k->option, options};
  for (int i = 0; i < options; i++) {
    lua_rawgeti(L, 3, i + 1);
    k->option[i] = lt_lua_text(L, -1, "cuda.kernel", "options");
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
    lt_lua_error(
        L, "%s: cannot compile a kernel for \"%s\": only CUDA devices run kernels from source",
        k->source.name, lt_device_name(d));
  char *log = NULL;
  lt_lua_enter(L, lt_lua_state(L));
  k->built[d.index] = b->kernels.user_create(d.index, &k->source, &log);
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
  if (!lt_device_parse(lt_lua_text(L, 2, "cuda.kernel", "device"), &d)) lt_lua_fail(L, NULL);
  if (build(L, k, d)) {
    lua_pushboolean(L, true);
    return 1;
  }
  lua_pushnil(L);
  lua_insert(L, -2);
  return 2;
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

/* Writes argument i + 1 to its slot as an unsigned integer; raises an error if it is out of
 * range. */
static void *pack_integer(lua_State *L, const Kernel *k, int i, void *slot) {
  const Param *p = &k->param[i];
  static const struct {
    int64_t from, to;
    const char *expected;
  } range[] = {[E_UINT16] = {0, 65535, "an integer from 0 to 65535"},
               [E_UINT32] = {0, 4294967295, "an integer from 0 to 4294967295"},
               [E_UINT64] = {0, INT64_MAX, "an integer of at least 0"}};
  int64_t n;
  if (!lt_lua_whole(L, FIRST + i, &n) || n < range[p->element].from || n > range[p->element].to)
    refuse(L, k, i, range[p->element].expected);
  memcpy(slot, &n, sizeof n); /* little-endian, as all supported hosts are */
  return slot;
}

/* Writes argument i + 1 to its slot; raises an error if it does not fit the parameter's type. */
static void *pack_number(lua_State *L, const Kernel *k, int i, void *slot) {
  const Param *p = &k->param[i];
  int64_t n;
  if (p->element != E_DTYPE) return pack_integer(L, k, i, slot);
  if (p->dtype == LT_bool) {
    if (!lua_isboolean(L, FIRST + i)) refuse(L, k, i, "a boolean");
    *(uint8_t *)slot = (uint8_t)lua_toboolean(L, FIRST + i);
    return slot;
  }
  bool is_float = lt_dtype_is_float(p->dtype);
  if (lua_type(L, FIRST + i) != LUA_TNUMBER || (!is_float && !lt_lua_whole(L, FIRST + i, &n)))
    refuse(L, k, i, is_float ? "a number" : "an integer");
  lt_Scalar s = is_float ? lt_scalar_float(lua_tonumber(L, FIRST + i)) : lt_scalar_int(n);
  if (!lt_scalar_store(s, p->dtype, slot))
    refuse(L, k, i, lua_pushfstring(L, "a number that fits \"%s\"", lt_dtype_name(p->dtype)));
  if (is_float && isfinite(s.f) && !isfinite(lt_scalar_load(p->dtype, slot).f))
    refuse(L, k, i, lua_pushfstring(L, "a number that fits \"%s\"", lt_dtype_name(p->dtype)));
  return slot;
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

/* Returns the device of the first tensor, which must be able to run kernels; without tensors the
 * current CUDA device. */
static lt_Device place(lua_State *L, const Kernel *k) {
  lt_Device d;
  for (int i = 0; i < k->count; i++) {
    lt_Tensor *t = k->param[i].pointer ? lt_lua_to_tensor(L, FIRST + i) : NULL;
    if (!t) continue;
    d = lt_tensor_device(t);
    const lt_Backend *b = lt_device_backend(d.type);
    if (b && b->kernels.user_create) return d;
    lt_lua_error(L,
                 "%s: expected a tensor on a CUDA device for argument '%s' (#%d, %s), got one on "
                 "\"%s\"\nhint: x:to(\"cuda\")",
                 k->source.name, k->param[i].name, i + 1, k->param[i].type, lt_device_name(d));
  }
  if (!lt_device_parse("cuda", &d)) lt_lua_fail(L, k->source.name);
  return d;
}

static void check_count(lua_State *L, const Kernel *k) {
  int given = lua_gettop(L) - FIRST + 1;
  if (given == k->count) return;
  luaL_Buffer list;
  luaL_buffinit(L, &list);
  for (int i = 0; i < k->count; i++) {
    const char *type = k->param[i].type;
    lua_pushfstring(L, "%s%s%s%s", i ? ", " : "", type, type[strlen(type) - 1] == '*' ? "" : " ",
                    k->param[i].name);
    luaL_addvalue(&list);
  }
  luaL_pushresult(&list);
  lt_lua_error(L, "%s: expected %d argument%s after grid and block (%s), got %d", k->source.name,
               k->count, k->count == 1 ? "" : "s", lua_tostring(L, -1), given);
}

/* ---- grid, block, shared_bytes --------------------------------------------------------------- */

/* Pushes a launch setting from the table at index 2, by position or by name; nil if it is optional
 * and absent. */
static void push_setting(lua_State *L, const Kernel *k, int position, const char *name) {
  if (lua_rawgeti(L, 2, position) != LUA_TNIL) return;
  lua_pop(L, 1);
  if (lua_getfield(L, 2, name) == LUA_TNIL && position < 3)
    lt_lua_error(L,
                 "%s: expected an integer or a list of up to 3 for argument '%s', got no "
                 "value\nhint: k({grid, block}, arguments...)",
                 k->source.name, name);
}

/* Reads an integer or a list of up to three; missing axes are 1. */
static void read_axes(lua_State *L, const Kernel *k, int position, const char *name,
                      int64_t out[3]) {
  push_setting(L, k, position, name);
  out[0] = out[1] = out[2] = 1;
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
}

/* Raises an error for an unknown name among the settings, which would have no effect. */
static void check_settings(lua_State *L, const Kernel *k) {
  static const char *const names[] = {"grid", "block", "shared_bytes"};
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    int64_t position = 0;
    bool known = lua_type(L, -2) == LUA_TNUMBER && lt_lua_whole(L, -2, &position) &&
                 position >= 1 && position <= 3;
    for (int i = 0; i < 3 && !known && lt_lua_is_text(L, -2); i++)
      known = strcmp(lua_tostring(L, -2), names[i]) == 0;
    if (known) continue;
    luaL_tolstring(L, -2, NULL);
    lt_lua_error(L, "%s: expected grid, block and shared_bytes in the first argument, got \"%s\"",
                 k->source.name, lua_tostring(L, -1));
  }
}

static void read_settings(lua_State *L, const Kernel *k, lt_KernelLaunch *out) {
  if (!lua_istable(L, 2))
    lt_lua_error(
        L,
        "%s: expected {grid, block} or {grid, block, shared_bytes} as the first argument, got %s",
        k->source.name, lt_lua_describe(L, 2));
  check_settings(L, k);
  read_axes(L, k, 1, "grid", out->grid);
  read_axes(L, k, 2, "block", out->block);
  push_setting(L, k, 3, "shared_bytes");
  out->shared = 0;
  if (!lua_isnil(L, -1) && !lt_lua_whole(L, -1, &out->shared))
    lt_lua_error(L, "%s: expected an integer for argument 'shared_bytes', got %s", k->source.name,
                 lt_lua_describe(L, -1));
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
    if (stream && s->stream && s->stream != stream && b->memory.record_stream)
      b->memory.record_stream(s, stream);
  }
}

/* Launches the kernel as one traced op; returns false with the reason. */
static bool run(const Kernel *k, const lt_Backend *b, lt_Device d, const lt_KernelLaunch *launch,
                lt_Stream *stream) {
  lt_TraceSpan span;
  lt_UserKernel *built = k->built[d.index];
  if (!lt_trace_begin(&span, LT_TRACE_OP)) return b->kernels.user_launch(built, launch, stream);
  span.event.op = LT_NO_OP; /* not an op of the table */
  span.event.name = k->source.name;
  span.event.device = d;
  span.event.stream = stream;
  span.event.kernel = true;
  span.event.ndim = -1;
  bool ok = b->kernels.user_launch(built, launch, stream) && lt_trace_synchronize(d);
  return lt_trace_end(&span, ok);
}

/* k:launch({grid, block, shared_bytes}, arguments...) -> true; nil and the compiler's log if it was
 * not compiled for this device yet and the compiler rejects it */
static int kernel_launch(lua_State *L) {
  Kernel *k = kernel_at(L);
  lt_KernelLaunch launch;
  _Alignas(16) char values[MAX_PARAMS][SLOT];
  void *address[MAX_PARAMS];
  if (lua_gettop(L) < 2) lua_settop(L, 2);
  luaL_checkstack(L, 20, "too many arguments");
  read_settings(L, k, &launch);
  check_count(L, k);
  lt_Device d = place(L, k);
  for (int i = 0; i < k->count; i++) {
    address[i] = values[i];
    if (!k->param[i].pointer)
      pack_number(L, k, i, values[i]);
    else
      check_tensor(L, k, i, d);
  }
  if (!build(L, k, d)) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  lt_lua_enter(L, lt_lua_state(L));
  const lt_Backend *b = lt_device_backend(d.type);
  lt_Stream *stream = b->streams.current ? b->streams.current(b, d.index) : NULL;
  for (int i = 0; i < k->count; i++) {
    if (!k->param[i].pointer) continue;
    const lt_Tensor *t = lt_lua_to_tensor(L, FIRST + i);
    if (!t) refuse(L, k, i, "a tensor"); /* a finalizer freed it during compilation */
    void *data = lt_tensor_data(t);
    memcpy(values[i], &data, sizeof data);
  }
  launch.arguments = address;
  if (!run(k, b, d, &launch, stream)) lt_lua_fail(L, k->source.name);
  note_tensors(L, k, b, stream);
  lua_pushboolean(L, true);
  return 1;
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
  static const luaL_Reg own[] = {{"build", kernel_build}, {"launch", kernel_launch}, {NULL, NULL}};
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
