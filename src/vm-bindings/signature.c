/* signature.c: signatures of functions that are not ops, in the grammar of ops.def: of the
 * library's functions in C, and of functions written in Lua, whose calls are parsed by the same
 * code as calls of ops.
 *
 * Lifetime: a signature of a C function stays at its address while the Lua state is open; that of a
 * Lua function, while its reader is alive. */
#include "bindings.h"

/* ---- of functions in C ----------------------------------------------------------------------- */

/* Returns the parsed signature cached in the registry under the address of `text`; parses it at the
 * first call. `of_host` applies to that first call only. */
static const lt_Signature *find_signature(lua_State *L, const char *text, bool of_host) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, text) == LUA_TUSERDATA) {
    const lt_Signature *g = lua_touserdata(L, -1);
    lua_pop(L, 1); /* the registry keeps it alive */
    return g;
  }
  lua_pop(L, 1);
  lt_Signature *g = lua_newuserdatauv(L, sizeof *g, 0);
  if (!lt_signature_parse(g, text))
    lt_lua_error(L, "signature: expected a signature, got \"%s\"", text);
  g->of_host = of_host;
  lua_rawsetp(L, LUA_REGISTRYINDEX, text);
  return g;
}

const lt_Signature *lt_lua_signature(lua_State *L, const char *text) {
  return find_signature(L, text, false);
}

/* ---- of functions in Lua --------------------------------------------------------------------- */

typedef struct Reader {
  lt_Signature signature;
  bool method; /* the first argument is self, before the table of a call with one table */
  char text[]; /* the source of the signature, which points into it */
} Reader;

/* Pushes an integer; dims and indices are converted back to count from 1. */
static void push_counted(lua_State *L, lt_ParamType type, int64_t i) {
  bool counted = type == LT_PARAM_DIM || type == LT_PARAM_DIMS || type == LT_PARAM_POSITION;
  lua_pushinteger(L, counted && i >= 0 ? i + 1 : i);
}

static void push_list(lua_State *L, const lt_Param *p, const lt_Arg *list) {
  bool dims = p->type == LT_PARAM_DIMS;
  lua_createtable(L, list->count, 0);
  for (int k = 0; k < list->count; k++) {
    push_counted(L, dims ? LT_PARAM_DIMS : LT_PARAM_INTS, list->ints[k]);
    lua_rawseti(L, -2, k + 1);
  }
}

/* Pushes a list written in a signature, "{0.9, 0.999}" or "{{1, 2}, {3}}", and returns the text
 * after it. `floats`: all numbers become floats. */
static const char *push_written_list(lua_State *L, const char *text, bool floats) {
  int n = 0;
  lua_newtable(L);
  for (text++; *text && *text != '}'; text += strspn(text, " ,")) {
    char *end = NULL, *whole_end;
    if (*text == '{') {
      luaL_checkstack(L, 4, "too many arguments");
      text = push_written_list(L, text, floats);
    } else {
      double value = strtod(text, &end);
      long long whole = strtoll(text, &whole_end, 10);
      if (end == text) break;
      if (floats || whole_end != end)
        lua_pushnumber(L, value);
      else
        lua_pushinteger(L, whole);
      text = end;
    }
    lua_rawseti(L, -2, ++n);
  }
  return *text ? text + 1 : text;
}

static bool is_of_floats(const lt_Param *p) {
  return (p->types >> LT_PARAM_FLOATS | p->types >> LT_PARAM_FLOAT_LISTS) & 1;
}

/* Pushes the default value of a parameter, nil for none. A number is an integer or a float as it is
 * written in the signature. */
static void push_default(lua_State *L, const lt_Param *p) {
  if (p->value.kind == LT_ARG_BOOL)
    lua_pushboolean(L, p->value.b);
  else if (p->value.kind == LT_ARG_STRING)
    lua_pushstring(L, p->word);
  else if (p->value.kind == LT_ARG_DTYPE)
    lua_pushstring(L, lt_dtype_name(p->value.dtype));
  else if (p->value.kind == LT_ARG_INTS)
    push_list(L, p, &p->value);
  else if (p->text[0] == '{')
    push_written_list(L, p->text, is_of_floats(p));
  else if (!p->has_default || p->text[0] == 'n' || lua_stringtonumber(L, p->text) == 0)
    lua_pushnil(L); /* often "nil": it needs no reading */
}

/* Pushes a copy of the array part of the table at i, whose other fields are names of arguments. */
static void push_array_part(lua_State *L, int i) {
  int n = (int)lua_rawlen(L, i);
  lua_createtable(L, n, 0);
  for (int k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    lua_rawseti(L, -2, k);
  }
}

/* Pushes argument p as the function receives it: checked, a float with an integral value as an
 * integer, numbers given one after the other as a list. `single`: one table holds all arguments. */
static void push_argument(lua_State *L, const lt_LuaArgs *a, int p, bool single) {
  const lt_Param *param = &a->signature->param[p];
  const lt_Arg *value = &a->arg[p];
  if (!a->slot[p])
    push_default(L, param);
  else if (value->kind == LT_ARG_INT && param->type != LT_PARAM_UNION)
    push_counted(L, param->type, value->i);
  else if (value->kind == LT_ARG_INTS && param->type != LT_PARAM_UNION)
    push_list(L, param, value);
  else if (single && a->slot[p] == 1)
    push_array_part(L, 1);
  else
    lua_pushvalue(L, a->slot[p]);
}

/* Pushes the value of every parameter, in order. `single`: one table holds all arguments. */
static void push_arguments(lua_State *L, const lt_LuaArgs *a, bool single) {
  luaL_checkstack(L, a->signature->count + 8, "too many arguments");
  for (int p = 0; p < a->signature->count; p++) push_argument(L, a, p, single);
}

/* Reads one call; the upvalues are the Reader and the function's name as the user writes it.
 * Returns the value of every parameter. */
static int read_call(lua_State *L) {
  lt_LuaArgs a;
  const Reader *r = lua_touserdata(L, lua_upvalueindex(LT_UP_OWN));
  const char *name = lua_tostring(L, lua_upvalueindex(LT_UP_OWN + 1));
  bool single = !r->method && lua_gettop(L) == 1 && lt_lua_is_plain(L, 1);
  lt_lua_enter(L, lt_lua_state(L));
  if (r->method && lua_gettop(L) == 0) lua_pushnil(L);
  lt_lua_arguments(L, lt_lua_state(L), &a, name, &r->signature, r->method);
  push_arguments(L, &a, single);
  return r->signature.count;
}

/* _signature(name, text, method) -> reader, parameters, results. The reader is a function that
 * takes the arguments of one call (`method`: of a method, after self) and returns the value of each
 * parameter, or raises an error. The parameters are a list of {name, type, optional, default,
 * choices, least, expected}, the results a list of {name, type}. */
static int signature(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  size_t n;
  const char *text = luaL_checklstring(L, 2, &n);
  bool method = lua_toboolean(L, 3);
  lua_settop(L, 2);
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  Reader *r = lua_newuserdatauv(L, sizeof *r + n + 1, 0);
  memcpy(r->text, text, n + 1);
  if (!lt_signature_parse(&r->signature, r->text))
    lt_lua_error(L, "%s: expected a signature, got \"%s\"", name, text);
  r->signature.of_host = true;
  r->method = method;
  lua_pushstring(L, name);
  lua_pushcclosure(L, read_call, 4);
  lt_lua_push_params(L, &r->signature);
  for (int p = 0; p < r->signature.count; p++) {
    lua_rawgeti(L, -1, p + 1);
    lt_lua_push_expected(L, &r->signature.param[p]);
    lua_setfield(L, -2, "expected");
    lua_pop(L, 1);
  }
  lt_lua_push_results(L, &r->signature);
  return 3;
}

/* _has_out(...) -> whether the last argument is a plain table of names with `out` */
static int has_out(lua_State *L) {
  int last = lua_gettop(L);
  bool found = last > 0 && lt_lua_is_plain(L, last) && lua_getfield(L, last, "out") != LUA_TNIL;
  lua_pushboolean(L, found);
  return 1;
}

/* ---- functions in C with arguments read in advance ------------------------------------------- */

/* The signature is read as one of a Lua function (of_host), so `run` checks strings and devices. */
void lt_lua_read(lua_State *L) {
  lt_LuaArgs a;
  const lt_Function *f = lua_touserdata(L, lua_upvalueindex(LT_UP_OWN));
  const lt_Signature *g = find_signature(L, f->signature, true);
  if (lua_gettop(L) == 0 && f->method && g->param[0].type == LT_PARAM_ANY) lua_pushnil(L);
  bool single = !f->method && lua_gettop(L) == 1 && lt_lua_is_plain(L, 1);
  lt_lua_arguments(L, lt_lua_state(L), &a, f->name, g, f->method);
  int first = lua_gettop(L) + 1;
  push_arguments(L, &a, single);
  for (int p = 0; p < g->count; p++) lua_copy(L, first + p, p + 1);
  lua_settop(L, g->count);
}

void lt_lua_read_named(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  bool table = lua_gettop(L) == 1 && lt_lua_is_plain(L, 1);
  if (table) {
    lua_pushnil(L);
    table = lua_next(L, 1) != 0; /* the table is not empty */
    lua_settop(L, 1);
  }
  if (lua_gettop(L) > 1 || table) lt_lua_read(L);
}

static int read_and_run(lua_State *L) {
  const lt_Function *f = lua_touserdata(L, lua_upvalueindex(LT_UP_OWN));
  lt_lua_enter(L, lt_lua_state(L));
  lt_lua_read(L);
  return f->run(L);
}

void lt_lua_set_read(lua_State *L, const lt_Function *functions) {
  for (const lt_Function *f = functions; f->name; f++) {
    lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
    lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
    lua_pushlightuserdata(L, (void *)f);
    lua_pushcclosure(L, f->fast ? f->run : read_and_run, 3);
    lua_setfield(L, -2, f->name);
    lt_lua_set_signature(L, -1, f->name, f->signature, f->method);
  }
}

void lt_lua_open_signature(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"_signature", signature}, {NULL, NULL}};
  static const luaL_Reg fast[] = {{"_has_out", has_out}, {NULL, NULL}};
  (void)methods;
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_fast(L, fast);
  lua_pop(L, 1);
}
