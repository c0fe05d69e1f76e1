/* methods.c: tensor methods that return properties, and conversions whose arguments no signature
 * can describe. */
#include "bindings.h"
#include "opids.h"

/* Reads the call by its signature and returns self, checked again: a finalizer may have freed
 * it. */
static lt_Tensor *read_self(lua_State *L) {
  const lt_Function *f = lua_touserdata(L, lua_upvalueindex(LT_UP_OWN));
  lt_lua_read(L);
  return lt_lua_check(L, 1, f->name, "self");
}

/* Returns self of a call without further arguments; reads every other form by the signature. */
static lt_Tensor *self_alone(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  lt_lua_enter(L, S);
  lt_Box *box = lua_gettop(L) == 1 ? lt_lua_box_at(L, S, 1) : NULL;
  return !box || lt_lua_is_freed(box) ? read_self(L) : box->tensor;
}

/* ---- values and geometry --------------------------------------------------------------------- */

static int method_item(lua_State *L) {
  lt_Scalar s;
  lt_Tensor *t = self_alone(L);
  if (!lt_tensor_item(t, &s)) lt_lua_fail(L, "item");
  lt_lua_push_scalar(L, s);
  return 1;
}

/* Returns self of size and stride, and stores the dim, counted from 0, or -1 when none was
 * given. */
static lt_Tensor *self_and_dim(lua_State *L, const char *name, int *dim) {
  lt_Lua *S = lt_lua_state(L);
  int top = lua_gettop(L);
  lt_lua_enter(L, S);
  lt_Box *box = top <= 2 ? lt_lua_box_at(L, S, 1) : NULL;
  bool plain = top == 1 || (top == 2 && lua_isinteger(L, 2) && lua_tointeger(L, 2) != 0);
  lt_Tensor *t = !box || lt_lua_is_freed(box) || !plain ? read_self(L) : box->tensor;
  *dim = -1;
  if (lua_isnoneornil(L, 2)) return t;
  lua_Integer d = lua_tointeger(L, 2);
  if (d > t->ndim || d < -t->ndim)
    lt_lua_error(
        L, "%s: cannot use dim %lld: it is out of range, a tensor of shape %s has %d dim%s", name,
        (long long)d, lt_shape_text(t->ndim, t->shape), t->ndim, t->ndim == 1 ? "" : "s");
  *dim = (int)(d > 0 ? d - 1 : d + t->ndim);
  return t;
}

static int method_size(lua_State *L) {
  int d;
  const lt_Tensor *t = self_and_dim(L, "size", &d);
  if (d < 0)
    lt_lua_push_shape(L, t->ndim, t->shape);
  else
    lua_pushinteger(L, t->shape[d]);
  return 1;
}

static int method_stride(lua_State *L) {
  int d;
  const lt_Tensor *t = self_and_dim(L, "stride", &d);
  if (d < 0)
    lt_lua_push_shape(L, t->ndim, t->strides);
  else
    lua_pushinteger(L, t->strides[d]);
  return 1;
}

static int method_numel(lua_State *L) {
  lua_pushinteger(L, self_alone(L)->numel);
  return 1;
}

static int method_dim(lua_State *L) {
  lua_pushinteger(L, self_alone(L)->ndim);
  return 1;
}

static int method_storage_offset(lua_State *L) {
  lua_pushinteger(L, self_alone(L)->offset);
  return 1;
}

static int method_is_contiguous(lua_State *L) {
  lua_pushboolean(L, lt_tensor_is_contiguous(self_alone(L)));
  return 1;
}

static int method_element_size(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)lt_dtype_size(self_alone(L)->dtype));
  return 1;
}

static int method_data_ptr(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)(intptr_t)lt_tensor_data(self_alone(L)));
  return 1;
}

static int method_is_floating_point(lua_State *L) {
  lua_pushboolean(L, lt_dtype_is_float(self_alone(L)->dtype));
  return 1;
}

static int method_is_complex(lua_State *L) {
  lua_pushboolean(L, lt_dtype_is_complex(self_alone(L)->dtype));
  return 1;
}

static int method_shares_storage(lua_State *L) {
  const lt_Tensor *t = lt_lua_check(L, 1, "shares_storage", "self");
  lua_pushboolean(L, t->storage == lt_lua_check(L, 2, "shares_storage", "other")->storage);
  return 1;
}

/* _store(name, out, value) -> out: writes the result of the function `name` into out */
static int store(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lt_lua_enter(L, lt_lua_state(L));
  lt_Tensor *out = lt_lua_check(L, 2, name, "out");
  if (!lt_tensor_store(name, out, lt_lua_check(L, 3, name, "result"))) lt_lua_fail(L, name);
  lua_settop(L, 2);
  return 1;
}

static int method_set_data(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "set_data", "self");
  if (!lt_tensor_set_data(t, lt_lua_check(L, 2, "set_data", "data"))) lt_lua_fail(L, "set_data");
  lua_settop(L, 1);
  return 1;
}

/* _set_view(x, view, op) -> x with the geometry of a view of it; op is a name for messages */
static int set_view(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "_set_view", "self");
  const lt_Tensor *view = lt_lua_check(L, 2, "_set_view", "view");
  if (!lt_tensor_set_view(t, view, luaL_checkstring(L, 3))) lt_lua_fail(L, NULL);
  lua_settop(L, 1);
  return 1;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Charges the collector for earlier results, then reads the arguments of a method. */
static void read_arguments(lua_State *L, lt_LuaArgs *a, const char *name,
                           const lt_Signature *signature, bool method) {
  lt_Lua *S = lt_lua_state(L);
  lt_lua_charge(L, S);
  lt_lua_arguments(L, S, a, name, signature, method);
}

/* ---- view ------------------------------------------------------------------------------------ */

static const char view_signature[] = "(Tensor self, sizes|dtype size)",
                  view_dtype_signature[] = "(Tensor self, dtype dtype)";

/* Returns whether the call names a dtype: x:view("int32"), x:view{dtype = "int32"}. */
static bool names_dtype(lua_State *L) {
  if (lua_gettop(L) != 2) return false;
  if (lua_type(L, 2) == LUA_TSTRING) return true;
  if (!lt_lua_is_plain(L, 2)) return false;
  lua_pushliteral(L, "dtype");
  bool found = lua_rawget(L, 2) == LUA_TSTRING;
  lua_pop(L, 1);
  return found;
}

/* x:view(sizes) or x:view(dtype) */
static int method_view(lua_State *L) {
  lt_LuaArgs a;
  bool dtype = names_dtype(L);
  lt_OpId op = dtype ? LT_OP__view : LT_OP_view;
  read_arguments(L, &a, "view",
                 dtype ? lt_lua_signature(L, view_dtype_signature) : lt_op_signature(op), true);
  a.signature = lt_op_signature(op);
  return lt_lua_call(L, op, false, &a);
}

/* ---- where ----------------------------------------------------------------------------------- */

static const char where_signature[] = "(Tensor self, Tensor condition, Operand other)";

/* x:where(condition, other): x where the condition is true, else other */
static int method_where(lua_State *L) {
  lt_LuaArgs a;
  read_arguments(L, &a, "where", lt_lua_signature(L, where_signature), true);
  lt_Arg self = a.arg[0];
  a.arg[0] = a.arg[1];
  a.arg[1] = self;
  a.slot[0] = a.slot[1] = 0;
  a.signature = lt_op_signature(LT_OP_where);
  return lt_lua_call(L, LT_OP_where, false, &a);
}

/* ---- nonzero --------------------------------------------------------------------------------- */

static const char nonzero_signature[] = "(Tensor self, bool as_tuple = false) -> Index";

/* nonzero(self, as_tuple = false) -> indices as one tensor {n, ndim}, or a list with one for each
 * dim, as where(condition) returns */
static int nonzero(lua_State *L, bool method) {
  lt_LuaArgs a;
  read_arguments(L, &a, "nonzero", lt_op_signature(LT_OP_nonzero), method);
  bool list = a.arg[1].kind == LT_ARG_BOOL && a.arg[1].b;
  lt_OpId op = list ? LT_OP_where : LT_OP_nonzero;
  if (list) {
    lt_Arg zero[] = {a.arg[0], lt_arg_scalar(lt_scalar_int(0))};
    a.arg[0] = lt_arg_tensor(lt_lua_op1(L, "nonzero", LT_OP_ne, zero, 2));
  }
  a.given = 1;
  a.signature = lt_op_signature(op);
  return lt_lua_call(L, op, false, &a);
}

static int function_nonzero(lua_State *L) { return nonzero(L, false); }
static int method_nonzero(lua_State *L) { return nonzero(L, true); }

/* ---- conversions ----------------------------------------------------------------------------- */

/* Returns whether the string at i names a dtype, not a device; raises an error of `to` when it
 * names neither. */
static bool is_dtype_name(lua_State *L, int i) {
  const char *name = lua_tostring(L, i);
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    if (strcmp(lt_dtype_name((lt_Dtype)d), name) == 0) return true;
  if (lt_device_is_name(name)) return false;
  lt_Nearest n = {.word = lt_lua_text(L, i, "to", "device")};
  for (int d = 0; d < LT_DTYPE_COUNT; d++) lt_lua_nearest(&n, lt_dtype_name((lt_Dtype)d));
  for (int t = 0; t < lt_device_type_count(); t++) lt_lua_nearest(&n, lt_device_type_name(t));
  lt_device_refuse(name);
  lt_lua_error(L, "to: %s%s%s%s", lt_error(), n.best[0] ? "\nhint: did you mean \"" : "", n.best,
               n.best[0] ? "\"?" : "");
}

/* _names_dtype(name) -> whether it is a dtype's, not a device's */
static int module_names_dtype(lua_State *L) {
  lt_lua_text(L, 1, "to", "device");
  lua_pushboolean(L, is_dtype_name(L, 1));
  return 1;
}

/* Stores a positional argument of x:to under its name, which follows from its type: x:to("cuda"),
 * x:to("float32"), x:to(other). `flags` counts the booleans so far. */
static void name_position(lua_State *L, int names, int i, int *flags) {
  lt_Tensor *other = lt_lua_to_tensor(L, i);
  if (other) {
    lua_pushstring(L, lt_device_name(lt_tensor_device(other)));
    lua_setfield(L, names, "device");
    lua_pushstring(L, lt_dtype_name(other->dtype));
    lua_setfield(L, names, "dtype");
    return;
  }
  const char *name = NULL;
  if (lua_type(L, i) == LUA_TNUMBER)
    name = "device";
  else if (lua_type(L, i) == LUA_TSTRING)
    name = is_dtype_name(L, i) ? "dtype" : "device";
  else if (lua_isboolean(L, i) && *flags < 2)
    name = (*flags)++ ? "copy" : "non_blocking";
  if (!name)
    lt_lua_error(L, "to: expected a device, a dtype or a tensor, got %s", lt_lua_describe(L, i));
  if (lua_getfield(L, names, name) != LUA_TNIL)
    lt_lua_error(L, "to: expected one value for argument '%s', got two", name);
  lua_pop(L, 1);
  lua_pushvalue(L, i);
  lua_setfield(L, names, name);
}

/* Replaces all arguments of x:to behind self by one table of named arguments. */
static void name_positions(lua_State *L) {
  int top = lua_gettop(L), flags = 0;
  bool table = top > 1 && lt_lua_is_plain(L, top);
  if (top == 1 || (top == 2 && lua_isnil(L, 2)) || lua_isboolean(L, 2))
    lt_lua_error(L, "to: expected a device, a dtype or a tensor, got %s\nhint: x:to(\"cuda\")",
                 top == 1 ? "no value" : luaL_tolstring(L, 2, NULL));
  lua_newtable(L);
  int names = lua_gettop(L);
  for (int i = 2; i <= top - table; i++)
    if (!lua_isnil(L, i)) name_position(L, names, i, &flags);
  if (table) {
    for (int i = 1, n = (int)lua_rawlen(L, top); i <= n; i++) {
      lua_rawgeti(L, top, i);
      name_position(L, names, lua_gettop(L), &flags);
      lua_pop(L, 1);
    }
    for (lua_pushnil(L); lua_next(L, top); lua_pop(L, 1)) {
      if (lua_type(L, -2) != LUA_TSTRING) continue;
      lua_pushvalue(L, -2);
      lua_pushvalue(L, -2);
      lua_rawset(L, names);
    }
  }
  if (top > 1) lua_replace(L, 2);
  lua_settop(L, top > 1 ? 2 : 1);
}

/* x:to(device), x:to(dtype), x:to(device, dtype), x:to(other), x:to{...} */
static int method_to(lua_State *L) {
  lt_LuaArgs a;
  lt_lua_enter(L, lt_lua_state(L));
  lt_lua_check(L, 1, "to", "self");
  name_positions(L);
  read_arguments(L, &a, "to", lt_op_signature(LT_OP_to), true);
  return lt_lua_call(L, LT_OP_to, false, &a);
}

static const char cast_signature[] = "(Tensor self)";

/* Runs the op `to` on self, the only argument that `a` holds; returns the same box if nothing
 * changes. */
static int convert(lua_State *L, lt_LuaArgs *a, lt_Arg device, lt_Arg dtype, bool non_blocking) {
  a->arg[1] = device;
  a->arg[2] = dtype;
  a->arg[3] = lt_arg_bool(non_blocking);
  for (int i = 1; i < 4; i++) a->slot[i] = 0;
  a->given = 4;
  a->signature = lt_op_signature(LT_OP_to);
  return lt_lua_call(L, LT_OP_to, false, a);
}

static const struct {
  const char *name;
  lt_Dtype dtype;
} casts[] = {{"float", LT_float32},     {"double", LT_float64},   {"half", LT_float16},
             {"bfloat16", LT_bfloat16}, {"int", LT_int32},        {"long", LT_int64},
             {"short", LT_int16},       {"char", LT_int8},        {"byte", LT_uint8},
             {"bool", LT_bool},         {"cfloat", LT_complex64}, {"cdouble", LT_complex128}};

static int method_cast(lua_State *L) {
  lt_LuaArgs a;
  lua_Integer i = lua_tointeger(L, lua_upvalueindex(LT_UP_OWN));
  read_arguments(L, &a, casts[i].name, lt_lua_signature(L, cast_signature), true);
  return convert(L, &a, LT_NIL, lt_arg_dtype(casts[i].dtype), false);
}

static const char *move_signature(const char *name) {
  return strcmp(name, "cuda") == 0
             ? "(Tensor self, device? device = nil, bool non_blocking = false)"
             : "(Tensor self, bool non_blocking = false)";
}

/* x:cpu(), x:mps(), x:cuda([device]); each with non_blocking = false */
static int method_device(lua_State *L) {
  lt_LuaArgs a;
  lt_Device device;
  const char *name = lua_tostring(L, lua_upvalueindex(LT_UP_OWN));
  bool cuda = strcmp(name, "cuda") == 0;
  read_arguments(L, &a, name, lt_lua_signature(L, move_signature(name)), true);
  if (cuda && a.arg[1].kind == LT_ARG_DEVICE)
    device = a.arg[1].device;
  else if (!lt_device_parse(name, &device))
    lt_lua_error(L, "%s: %s", name, lt_error());
  if (cuda && device.type != LT_DEVICE_cuda)
    lt_lua_error(L, "%s: expected a device of type \"cuda\" for argument 'device', got \"%s\"",
                 name, lt_device_name(device));
  const lt_Arg *flag = &a.arg[cuda ? 2 : 1];
  bool non_blocking = flag->kind == LT_ARG_BOOL && flag->b;
  return convert(L, &a, lt_arg_device(device), LT_NIL, non_blocking);
}

static const char type_as_signature[] = "(Tensor self, Tensor other)";

static int method_type_as(lua_State *L) {
  lt_LuaArgs a;
  read_arguments(L, &a, "type_as", lt_lua_signature(L, type_as_signature), true);
  const lt_Tensor *other = a.arg[1].tensor;
  return convert(L, &a, lt_arg_device(lt_tensor_device(other)), lt_arg_dtype(other->dtype), false);
}

static void set_conversions(lua_State *L) {
  static const char *const devices[] = {"cpu", "cuda", "mps"};
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
    lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
    lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
    lua_pushinteger(L, (lua_Integer)i);
    lua_pushcclosure(L, method_cast, 3);
    lua_setfield(L, -2, casts[i].name);
    lt_lua_set_signature(L, -1, casts[i].name, cast_signature, true);
  }
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
    lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
    lua_pushstring(L, devices[i]);
    lua_pushcclosure(L, method_device, 3);
    lua_setfield(L, -2, devices[i]);
    lt_lua_set_signature(L, -1, devices[i], move_signature(devices[i]), true);
  }
}

void lt_lua_open_methods(lua_State *L, int functions, int methods) {
  static const char alone[] = "(Tensor self) -> nil",
                    with_dim[] = "(Tensor self, dim? dim = nil) -> nil";
  static const lt_Function own[] = {
      {"item", method_item, alone, true, true},
      {"size", method_size, with_dim, true, true},
      {"stride", method_stride, with_dim, true, true},
      {"numel", method_numel, alone, true, true},
      {"nelement", method_numel, alone, true, true},
      {"dim", method_dim, alone, true, true},
      {"storage_offset", method_storage_offset, alone, true, true},
      {"is_contiguous", method_is_contiguous, alone, true, true},
      {"element_size", method_element_size, alone, true, true},
      {"data_ptr", method_data_ptr, alone, true, true},
      {"is_floating_point", method_is_floating_point, alone, true, true},
      {"is_complex", method_is_complex, alone, true, true},
      {"shares_storage", method_shares_storage, "(Tensor self, Tensor other) -> nil", true, false},
      {"set_data", method_set_data, "(Tensor self, Tensor data)", true, false},
      {NULL, NULL, NULL, false, false}};
  static const lt_Function module[] = {
      {"numel", method_numel, alone, false, true},
      {"is_floating_point", method_is_floating_point, alone, false, true},
      {NULL, NULL, NULL, false, false}};
  static const luaL_Reg others[] = {{"to", method_to},           {"type_as", method_type_as},
                                    {"nonzero", method_nonzero}, {"view", method_view},
                                    {"where", method_where},     {NULL, NULL}};
  static const luaL_Reg others_of_module[] = {{"nonzero", function_nonzero},
                                              {"_store", store},
                                              {"_set_view", set_view},
                                              {"_names_dtype", module_names_dtype},
                                              {NULL, NULL}};
  lua_pushvalue(L, methods);
  lt_lua_set_read(L, own);
  lt_lua_set_fast(L, others);
  lt_lua_set_signature(L, -1, "type_as", type_as_signature, true);
  lt_lua_set_signature(L, -1, "nonzero", nonzero_signature, true);
  lt_lua_set_signature(L, -1, "view", view_signature, true);
  lt_lua_set_signature(L, -1, "where", where_signature, true);
  set_conversions(L);
  lua_pushvalue(L, functions);
  lt_lua_set_read(L, module);
  lt_lua_setfuncs(L, others_of_module);
  lt_lua_set_signature(L, -1, "nonzero", nonzero_signature, false);
  lua_pop(L, 2);
}
