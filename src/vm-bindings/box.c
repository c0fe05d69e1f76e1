/* box.c: the userdata of a tensor: its fields, shapes, and its finalizer.
 *
 * A box owns one reference. Several boxes may hold one tensor; `==` compares the tensors. Where the
 * same object must be returned each time (x.grad), the box is remembered in a weak table. The
 * collector clears entries of weak tables before it calls finalizers, so an entry never outlives
 * its tensor. */
#include "bindings.h"
#include "recorder.h"
#include "opids.h"

#include <math.h>

lt_Box *lt_lua_new_box(lua_State *L, lt_Lua *S) {
  lt_Box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (lt_Box){.state = S, .number = ++S->created};
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_setmetatable(L, -2);
  S->boxes++;
  return box;
}

lt_Tensor *lt_lua_check(lua_State *L, int i, const char *function, const char *argument) {
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (t) return t;
  if (lua_isnoneornil(L, i) && strcmp(argument, "self") == 0)
    lt_lua_error(L, "%s: expected a tensor for argument 'self', got %s\nhint: call it as x:%s(...)",
                 function, lt_lua_describe(L, i), function);
  lt_lua_refuse_freed(L, i, function, argument);
  lt_lua_error(L, "%s: expected a tensor for argument '%s', got %s", function, argument,
               lt_lua_describe(L, i));
}

void lt_lua_refuse_freed(lua_State *L, int i, const char *function, const char *argument) {
  const lt_Box *box = lt_lua_to_box(L, i);
  if (box && !box->tensor)
    lt_lua_error(L,
                 "%s: expected a tensor for argument '%s', got a tensor that was freed: the "
                 "collector finalized it before the object whose finalizer uses it",
                 function, argument);
  if (box && box->tensor->freed)
    lt_lua_error(L,
                 "%s: expected a tensor for argument '%s', got a tensor that was freed (x:free())",
                 function, argument);
}

lt_Tensor *lt_lua_push_alias(lua_State *L, int i, const char *function, const char *argument) {
  i = lua_absindex(L, i);
  lt_Box *box = lt_lua_box(L);
  box->tensor = lt_alias(lt_lua_check(L, i, function, argument));
  if (!box->tensor) lt_lua_fail(L, function);
  return box->tensor;
}

void lt_lua_remember(lua_State *L, int i) {
  lt_Lua *S = lt_lua_state(L);
  i = lua_absindex(L, i);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->cache_ref);
  lua_pushvalue(L, i);
  lua_rawsetp(L, -2, lt_lua_to_box(L, i)->tensor);
  lua_pop(L, 1);
}

void lt_lua_push_same(lua_State *L, lt_Tensor *(*find)(lt_Tensor *), lt_Tensor *of) {
  lt_Lua *S = lt_lua_state(L);
  lt_Tensor *t = find(of);
  if (!t) {
    lua_pushnil(L);
    return;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->cache_ref);
  if (lua_rawgetp(L, -1, t) == LUA_TUSERDATA) {
    lua_remove(L, -2);
    return;
  }
  lua_pop(L, 2);
  lt_Box *box = lt_lua_box(L);
  box->tensor = lt_retain(find(of));
  if (box->tensor) {
    lt_lua_remember(L, -1);
  } else {
    lua_pop(L, 1);
    lua_pushnil(L);
  }
}

bool lt_lua_is_plain(lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TTABLE) return false;
  if (!lua_getmetatable(L, i)) return true;
  lua_pop(L, 1);
  return false;
}

void lt_lua_push_scalar(lua_State *L, lt_Scalar s) {
  if (s.kind == LT_FLOATING)
    lua_pushnumber(L, isnan(s.f) ? (double)NAN : s.f); /* tostring would show NaN's sign */
  else if (s.kind == LT_COMPLEX)
    lt_lua_push_complex(L, s);
  else if (s.kind == LT_BOOL)
    lua_pushboolean(L, s.i != 0);
  else
    lua_pushinteger(L, s.i);
}

/* ---- shapes: tables of sizes with a metatable ------------------------------------------------ */

void lt_lua_push_shape(lua_State *L, int n, const int64_t *sizes) {
  int64_t own[LT_MAX_DIMS];
  memcpy(own, sizes, sizeof *own * (size_t)n);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, own[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, lt_lua_state(L)->shape_ref);
  lua_setmetatable(L, -2);
}

static int shape_tostring(lua_State *L) {
  luaL_Buffer b;
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_buffinit(L, &b);
  luaL_addchar(&b, '{');
  for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, 1); i <= n; i++) {
    if (i > 1) luaL_addstring(&b, ", ");
    lua_rawgeti(L, 1, i);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&b);
  }
  luaL_addchar(&b, '}');
  luaL_pushresult(&b);
  return 1;
}

static int shape_eq(lua_State *L) {
  bool same = lua_istable(L, 1) && lua_istable(L, 2) && lua_rawlen(L, 1) == lua_rawlen(L, 2);
  for (lua_Integer i = 1, n = same ? (lua_Integer)lua_rawlen(L, 1) : 0; same && i <= n; i++) {
    lua_rawgeti(L, 1, i);
    lua_rawgeti(L, 2, i);
    same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  lua_pushboolean(L, same);
  return 1;
}

static int shape_numel(lua_State *L) {
  int64_t n = 1;
  luaL_checktype(L, 1, LUA_TTABLE);
  for (lua_Integer i = 1; lua_rawgeti(L, 1, i) == LUA_TNUMBER; i++) {
    n = (int64_t)((uint64_t)n * (uint64_t)lua_tointeger(L, -1));
    lua_pop(L, 1);
  }
  lua_pushinteger(L, n);
  return 1;
}

/* shape[-1] counts from the end; another key that is not there is looked up in the methods. */
static int shape_index(lua_State *L) {
  if (lua_isinteger(L, 2)) {
    lua_Integer i = lua_tointeger(L, 2);
    if (i >= 0) return 0;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_rawgeti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1 + i);
    return 1;
  }
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  return 1;
}

/* Shapes have no __concat: if the stack is reallocated inside one, Debian's Lua 5.4.4 continues
 * with the old stack, and the process crashes. */
static void open_shape(lua_State *L, lt_Lua *S) {
  static const luaL_Reg meta[] = {{"__tostring", shape_tostring}, {"__eq", shape_eq}, {NULL, NULL}};
  static const lt_Function methods[] = {{"numel", shape_numel, "(any self) -> nil", true, false},
                                        {NULL, NULL, NULL, false, false}};
  lua_newtable(L);
  lt_lua_setfuncs(L, meta);
  lua_pushliteral(L, "Shape");
  lua_setfield(L, -2, "__name");
  lua_newtable(L);
  lt_lua_set_read(L, methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__names"); /* where __index looks, for completion */
  lua_pushcclosure(L, shape_index, 1);
  lua_setfield(L, -2, "__index");
  S->shape_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* A list of macro calls: */
/* clang-format off */
#define FIELDS(_)                                                                                  \
  _(shape) _(dtype) _(device) _(ndim) _(grad) _(requires_grad) _(is_leaf) _(grad_fn) _(is_cuda)    \
  _(is_cpu) _(is_mps) _(is_meta) _(T) _(mT) _(H) _(mH) _(real) _(imag) _(data) _(itemsize) _(nbytes)
/* clang-format on */
enum {
#define ONE(name) FIELD_##name,
  FIELDS(ONE)
#undef ONE
};
static const char *const field_names[] = {
#define ONE(name) #name,
    FIELDS(ONE)
#undef ONE
};
enum { FIELD_COUNT = sizeof field_names / sizeof *field_names };

static unsigned hash_of(const void *name) { return (unsigned)((uintptr_t)name >> 4); }

/* Returns the field whose name is at this address; -1 when there is none. */
static int find_field(const lt_Lua *S, const void *name) {
  for (unsigned h = hash_of(name);; h++) {
    const lt_FieldPlace *place = &S->fields[h % LT_FIELD_PLACES];
    if (place->name == name) return place->field;
    if (!place->name) return -1;
  }
}

/* Fills the places of the fields, and pushes a table from their names to their numbers. The
 * registry keeps the names alive. */
static void open_fields(lua_State *L, lt_Lua *S) {
  lua_newtable(L);
  for (int i = 0; i < FIELD_COUNT; i++) {
    lua_pushstring(L, field_names[i]);
    unsigned h = hash_of(lua_topointer(L, -1));
    while (S->fields[h % LT_FIELD_PLACES].name) h++;
    S->fields[h % LT_FIELD_PLACES] = (lt_FieldPlace){lua_topointer(L, -1), i};
    lua_pushvalue(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushinteger(L, i);
    lua_rawset(L, -3);
  }
  for (int d = 0; d < LT_DTYPE_COUNT; d++) {
    lua_pushstring(L, lt_dtype_name((lt_Dtype)d));
    S->dtype_ref[d] = luaL_ref(L, LUA_REGISTRYINDEX);
  }
}

static bool is_on(const lt_Tensor *t, int type) { return lt_shown_device(t).type == type; }

/* Pushes the transpose of t: all dimensions in reverse. */
static void push_reversed(lua_State *L, lt_Tensor *t) {
  int64_t dims[LT_MAX_DIMS];
  for (int i = 0; i < t->ndim; i++) dims[i] = t->ndim - 1 - i;
  lt_lua_op1(L, "T", LT_OP_permute, (lt_Arg[]){LT_ARG(t), LT_INTS(dims, t->ndim)}, 2);
}

/* Pushes the conjugate transpose of the last two dims. */
static void push_adjoint(lua_State *L, const char *name, lt_Tensor *t) {
  if (lt_dtype_is_complex(t->dtype)) t = lt_lua_op1(L, name, LT_OP_conj, (lt_Arg[]){LT_ARG(t)}, 1);
  lt_lua_op1(L, name, LT_OP_transpose, (lt_Arg[]){LT_ARG(t), LT_ARG(-2), LT_ARG(-1)}, 3);
}

static int push_field(lua_State *L, const lt_Lua *S, lt_Tensor *t, int field) {
  switch (field) {
  case FIELD_shape:
    lt_lua_push_shape(L, t->ndim, t->shape);
    break;
  case FIELD_dtype:
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->dtype_ref[t->dtype]);
    break;
  case FIELD_device:
    lua_pushstring(L, lt_device_name(lt_shown_device(t)));
    break;
  case FIELD_ndim:
    lua_pushinteger(L, t->ndim);
    break;
  case FIELD_grad:
    lt_lua_push_same(L, lt_tensor_grad, t);
    break;
  case FIELD_requires_grad:
    lua_pushboolean(L, lt_tensor_requires_grad(t));
    break;
  case FIELD_is_leaf:
    lua_pushboolean(L, lt_tensor_is_leaf(t));
    break;
  case FIELD_grad_fn:
    lua_pushstring(L, lt_tensor_grad_fn_name(t));
    break;
  case FIELD_is_cuda:
    lua_pushboolean(L, is_on(t, LT_DEVICE_cuda));
    break;
  case FIELD_is_cpu:
    lua_pushboolean(L, is_on(t, LT_DEVICE_cpu));
    break;
  case FIELD_is_mps:
    lua_pushboolean(L, is_on(t, LT_DEVICE_mps));
    break;
  case FIELD_is_meta:
    lua_pushboolean(L, is_on(t, LT_DEVICE_meta));
    break;
  case FIELD_T:
    push_reversed(L, t);
    break;
  case FIELD_mT:
    if (t->ndim < 2) lt_lua_error(L, "mT: expected a tensor of at least 2 dims, got %d", t->ndim);
    lt_lua_op1(L, "mT", LT_OP_transpose, (lt_Arg[]){LT_ARG(t), LT_ARG(-2), LT_ARG(-1)}, 3);
    break;
  case FIELD_H:
    if (t->ndim != 2) lt_lua_error(L, "H: expected a matrix (2 dims), got %d dims", t->ndim);
    push_adjoint(L, "H", t);
    break;
  case FIELD_mH:
    if (t->ndim < 2) lt_lua_error(L, "mH: expected a tensor of at least 2 dims, got %d", t->ndim);
    push_adjoint(L, "mH", t);
    break;
  case FIELD_real:
    lt_lua_op1(L, "real", LT_OP_real, (lt_Arg[]){LT_ARG(t)}, 1);
    break;
  case FIELD_imag:
    lt_lua_op1(L, "imag", LT_OP_imag, (lt_Arg[]){LT_ARG(t)}, 1);
    break;
  case FIELD_data:
    lt_lua_op1(L, "data", LT_OP_detach, (lt_Arg[]){LT_ARG(t)}, 1);
    break;
  case FIELD_itemsize:
    lua_pushinteger(L, (lua_Integer)lt_dtype_size(t->dtype));
    break;
  default:
    lua_pushinteger(L, t->numel * (int64_t)lt_dtype_size(t->dtype));
    break;
  }
  return 1;
}

/* Returns a method that is defined when it is first used, by the metatable of the table of methods,
 * the function's first own upvalue. Raises the error for an unknown field and suggests the nearest
 * one. */
static int unknown_field(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_gettable(L, lua_upvalueindex(LT_UP_OWN)) != LUA_TNIL) return 1;
  const char *name = lt_lua_quote(L, 2);
  lua_getfield(L, lua_upvalueindex(LT_UP_OWN), "_missing");
  lua_pushvalue(L, 2);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1))
    lt_lua_error(L, "a tensor has no field or method \"%s\"\nhint: %s", name, lua_tostring(L, -1));
  lt_Nearest n = {.word = name};
  for (int i = 0; i < FIELD_COUNT; i++) lt_lua_nearest(&n, field_names[i]);
  for (lua_pushnil(L); lua_next(L, lua_upvalueindex(LT_UP_OWN)); lua_pop(L, 1)) {
    const char *candidate = lua_tostring(L, -2);
    if (candidate[0] != '_') lt_lua_nearest(&n, candidate);
  }
  if (n.best[0])
    lt_lua_error(L, "a tensor has no field or method \"%s\"; did you mean \"%s\"?", name, n.best);
  lt_lua_error(L, "a tensor has no field or method \"%s\"", name);
}

/* Implements x[key] with a key that names no field and no method. */
static int box_get(lua_State *L) {
  lua_settop(L, 2); /* a direct call may pass fewer or more arguments */
  if (lua_type(L, 2) == LUA_TSTRING && !lt_lua_is_index_text(lua_tostring(L, 2)))
    return unknown_field(L);
  return lt_lua_index_get(L, lt_lua_check(L, 1, "index", "self"));
}

/* Implements x[key] and x.name. Methods are also found on a freed tensor: each method refuses it
 * itself, and free() must be callable again. */
static int box_index(lua_State *L) {
  const void *key = lua_topointer(L, 2); /* NULL: a number */
  if (!key) return box_get(L);
  lt_Lua *S = lt_lua_state(L);
  int field = find_field(S, key);
  if (field >= 0) {
    const lt_Box *box = lt_lua_box_at(L, S, 1);
    lt_lua_enter(L, S);
    bool usable = box && !lt_lua_is_freed(box);
    return push_field(L, S, usable ? box->tensor : lt_lua_check(L, 1, field_names[field], "self"),
                      field);
  }
  lua_pushvalue(L, 2);
  return lua_rawget(L, lua_upvalueindex(LT_UP_OWN)) != LUA_TNIL ? 1 : box_get(L);
}

/* Assigns the value at index 3 to a field of self. Returns false when no program may assign it. */
static bool set_field(lua_State *L, int field) {
  bool ok = true;
  if (field != FIELD_grad && field != FIELD_requires_grad && field != FIELD_data) return false;
  const char *name = field_names[field];
  lt_Tensor *t = lt_lua_check(L, 1, name, "self");
  if (field == FIELD_grad) {
    lt_Tensor *grad = lua_isnil(L, 3) ? NULL : lt_lua_check(L, 3, name, "value");
    ok = lt_tensor_set_grad(t, grad);
    if (ok && grad) lt_lua_remember(L, 3);
  } else if (field == FIELD_requires_grad) {
    if (!lua_isboolean(L, 3))
      lt_lua_error(L, "requires_grad: expected a boolean, got %s", lt_lua_describe(L, 3));
    ok = lt_tensor_set_requires_grad(t, lua_toboolean(L, 3));
  } else {
    ok = lt_tensor_set_data(t, lt_lua_check(L, 3, name, "value"));
  }
  if (!ok) lt_lua_fail(L, name);
  return true;
}

/* Raises the error of an assignment to `key`, a string. */
static int refuse_field(lua_State *L, const char *key, int field) {
  lt_lua_check(L, 1, key, "self");
  lua_pushvalue(L, 2);
  bool is_method = lua_rawget(L, lua_upvalueindex(LT_UP_OWN)) != LUA_TNIL;
  if (!is_method && field >= 0) {
    bool can_convert = field == FIELD_device || field == FIELD_dtype;
    lt_lua_error(L, "%s: cannot assign this field of a tensor%s%s%s", key,
                 can_convert ? "\nhint: x = x:to(" : "", can_convert ? key : "",
                 can_convert ? ")" : "");
  }
  if (!is_method) unknown_field(L);
  lt_lua_error(L, "%s: cannot assign a tensor's method", key);
}

static int box_newindex(lua_State *L) {
  lua_settop(L, 3);
  lt_Lua *S = lt_lua_state(L);
  const void *name = lua_topointer(L, 2); /* NULL: a number */
  int field = name ? find_field(S, name) : -1;
  lt_lua_enter(L, S);
  if (set_field(L, field)) return 0;
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  if (!key || lt_lua_is_index_text(key))
    return lt_lua_index_set(L, lt_lua_check(L, 1, "index", "self"));
  return lt_lua_is_text(L, 2) ? refuse_field(L, key, field) : unknown_field(L);
}

/* ---- finalization ---------------------------------------------------------------------------- */

/* Releases the box's reference. A box finalized by a direct call is empty, and every function
 * refuses it; later calls do nothing. */
static int box_gc(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  lt_Box *box = lt_lua_box_at(L, S, 1);
  if (!box || box->finalized) return 0;
  lt_Tensor *t = box->tensor;
  box->tensor = NULL;
  box->finalized = true;
  S->boxes--;
  S->finalized++;
  uint32_t age = S->stepped - box->number;
  if (age < S->interval) lt_gap_age(&S->gap, age + 1);
  lt_lua_enter(L, S); /* a blocking copy may ask for the running line */
  if (box->owner && t) lt_tensor_disown_hooks(t);
  lt_release(t);
  int64_t weight = lt_lua_weight(S);
  if (weight < S->mark) S->mark = weight;
  return 0;
}

/* x:free(), and the end of `local x <close>`: frees the memory now, or at the end of the call that
 * uses it. A second call does nothing. */
static int box_free(lua_State *L) {
  lt_Box *box = lt_lua_to_box(L, 1);
  if (!box) lt_lua_check(L, 1, "free", "self");
  lt_lua_enter(L, lt_lua_state(L));
  if (box->tensor) (void)lt_tensor_free(box->tensor);
  return 0;
}

static int box_eq(lua_State *L) {
  const lt_Box *a = lt_lua_to_box(L, 1), *b = lt_lua_to_box(L, 2);
  lua_pushboolean(L, a && b && a->tensor && a->tensor == b->tensor);
  return 1;
}

static int box_len(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "#", "self");
  if (t->ndim == 0) lt_lua_error(L, "#: cannot take the length of a tensor of 0 dims");
  lua_pushinteger(L, t->shape[0]);
  return 1;
}

static int is_tensor(lua_State *L) {
  const lt_Box *box = lt_lua_to_box(L, 1);
  lua_pushboolean(L, box && box->tensor); /* a box may not have its tensor yet */
  return 1;
}

/* _is_freed(x) -> whether x is a tensor that was freed */
static int is_freed(lua_State *L) {
  const lt_Box *box = lt_lua_to_box(L, 1);
  lua_pushboolean(L, box && lt_lua_is_freed(box));
  return 1;
}

static int is_parameter(lua_State *L) {
  lt_Box *box = lt_lua_to_box(L, 1);
  lua_pushboolean(L, box && box->parameter);
  return 1;
}

/* _parameter(t, requires_grad = true) -> a leaf tensor that shares t's memory, marked as a
 * parameter */
static int make_parameter(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "Parameter", "data");
  bool requires_grad = lua_isnoneornil(L, 2) || lua_toboolean(L, 2);
  lt_Tensor *p = lt_lua_op1(L, "Parameter", LT_OP_detach, (lt_Arg[]){LT_ARG(t)}, 1);
  if (!lt_tensor_set_requires_grad(p, requires_grad)) lt_lua_fail(L, "Parameter");
  lt_lua_to_box(L, -1)->parameter = true;
  return 1;
}

/* Enters the core and calls the function whose luaL_Reg is the upvalue LT_UP_OWN. */
static int enter_and_call(lua_State *L) {
  const luaL_Reg *function = lua_touserdata(L, lua_upvalueindex(LT_UP_OWN));
  lt_lua_enter(L, lt_lua_state(L));
  return function->func(L);
}

void lt_lua_function(lua_State *L, const luaL_Reg *function) {
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_pushlightuserdata(L, (void *)function);
  lua_pushcclosure(L, enter_and_call, 3);
}

void lt_lua_setfuncs(lua_State *L, const luaL_Reg *functions) {
  for (; functions->name; functions++) {
    lt_lua_function(L, functions);
    lua_setfield(L, -2, functions->name);
  }
}

void lt_lua_open_class(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction gc) {
  luaL_newmetatable(L, name);
  lt_lua_setfuncs(L, methods);
  if (gc) {
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

void lt_lua_set_fast(lua_State *L, const luaL_Reg *functions) {
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  luaL_setfuncs(L, functions, 2);
}

/* Adds a closure with one more upvalue, the table of methods, to the table on top. */
static void set_with_methods(lua_State *L, const char *name, lua_CFunction f, int methods) {
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_pushvalue(L, methods);
  lua_pushcclosure(L, f, 3);
  lua_setfield(L, -2, name);
}

void lt_lua_open_box(lua_State *L, int methods, int functions) {
  static const luaL_Reg meta[] = {
      {"__gc", box_gc},   {"__close", box_free},           {"__eq", box_eq},
      {"__len", box_len}, {"__tostring", lt_lua_tostring}, {NULL, NULL}};
  static const lt_Function own[] = {{"free", box_free, "(any self) -> nil", true, false},
                                    {NULL, NULL, NULL, false, false}};
  static const luaL_Reg fast[] = {{"is_tensor", is_tensor},
                                  {"is_parameter", is_parameter},
                                  {"_is_freed", is_freed},
                                  {NULL, NULL}};
  static const luaL_Reg module[] = {{"_parameter", make_parameter}, {NULL, NULL}};
  open_shape(L, lt_lua_state(L));
  open_fields(L, lt_lua_state(L));
  int fields = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lt_lua_set_fast(L, meta);
  set_with_methods(L, "__index", box_index, methods);
  set_with_methods(L, "__newindex", box_newindex, methods);
  lua_pushliteral(L, "tensor");
  lua_setfield(L, -2, "__name");
  lua_pop(L, 1);
  lua_pushvalue(L, methods);
  lt_lua_set_read(L, own);
  lua_pop(L, 1);
  lua_pushvalue(L, fields);
  lua_setfield(L, functions, "_fields");
  lua_pop(L, 1);
  lua_pushvalue(L, functions);
  lt_lua_set_fast(L, fast);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
