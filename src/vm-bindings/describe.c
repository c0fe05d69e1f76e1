/* describe.c: the op table as Lua tables, for help, documentation, and the tests of
 * completeness. */
#include "autograd/autograd.h"
#include "bindings.h"
#include "each/grid.h"
#include "opids.h"

static const char *const kinds[] = {
    [LT_KIND_ELEMENTWISE] = "elementwise", [LT_KIND_REDUCE] = "reduce", [LT_KIND_KERNEL] = "kernel",
    [LT_KIND_UPDATE] = "update",           [LT_KIND_MAP] = "map",       [LT_KIND_VIEW] = "view",
    [LT_KIND_COMPOSITE] = "composite"};

static const char *const places[] = {[LT_PLACE_HOST] = "host", [LT_PLACE_ANY] = "any"};

static const struct {
  const char *name;
  unsigned flag;
} traits[] = {{"copy", LT_TRAIT_COPY},         {"transfer", LT_TRAIT_TRANSFER},
              {"builtin", LT_TRAIT_BUILTIN},   {"layout", LT_TRAIT_LAYOUT},
              {"core", LT_TRAIT_CORE},         {"takes_complex", LT_TRAIT_COMPLEX},
              {"parts", LT_TRAIT_PARTS},       {"linear", LT_TRAIT_LINEAR},
              {"bilinear", LT_TRAIT_BILINEAR}, {"host", LT_TRAIT_HOST},
              {"over", LT_TRAIT_OVER},         {"takes_complex_on_cpu", LT_TRAIT_COMPLEX_CPU}};

/* The classes of autocast, by number. */
static const char *const autocast_classes[] = {NULL,       "LOW",      "LOW_GPU", "HIGH",
                                               "HIGH_CPU", "HIGH_GPU", "WIDEST",  "AS_IS"};

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void set_flag(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

/* Sets the field `type`, without limits: "Tensor|int". */
static void set_type(lua_State *L, const lt_Param *p) {
  luaL_Buffer b;
  if (p->type != LT_PARAM_UNION) {
    set_string(L, "type", lt_param_type_name(p->type));
    return;
  }
  luaL_buffinit(L, &b);
  for (int t = 0, n = 0; t < LT_PARAM_TYPE_COUNT; t++) {
    if (!(p->types >> t & 1)) continue;
    if (n++) luaL_addchar(&b, '|');
    luaL_addstring(&b, lt_param_type_name((lt_ParamType)t));
  }
  luaL_pushresult(&b);
  lua_setfield(L, -2, "type");
}

/* Sets the field `choices`: the strings that the parameter accepts. */
static void set_choices(lua_State *L, const lt_Param *p) {
  const char *s = p->spelling, *end = s + p->spelling_length, *close;
  int n = 0;
  lua_newtable(L);
  while ((s = memchr(s, '\'', (size_t)(end - s))) != NULL) {
    close = memchr(s + 1, '\'', (size_t)(end - s - 1));
    lua_pushlstring(L, s + 1, (size_t)(close - s - 1));
    lua_rawseti(L, -2, ++n);
    s = close + 1;
  }
  lua_setfield(L, -2, "choices");
}

void lt_lua_push_params(lua_State *L, const lt_Signature *g) {
  lua_createtable(L, g->count, 0);
  for (int i = 0; i < g->count; i++) {
    const lt_Param *p = &g->param[i];
    lua_createtable(L, 0, 4);
    set_string(L, "name", p->name);
    set_type(L, p);
    set_flag(L, "optional", p->optional || p->has_default);
    if (p->has_default) set_string(L, "default", p->text);
    if (p->written) set_flag(L, "written", true);
    if (p->shape_only) set_flag(L, "shape_only", true);
    if (p->place != LT_PLACE_DEVICE) set_string(L, "place", places[p->place]);
    if (p->has_choices) set_choices(L, p);
    if (p->has_least) {
      lua_pushnumber(L, p->least);
      lua_setfield(L, -2, "least");
    }
    lua_rawseti(L, -2, i + 1);
  }
}

void lt_lua_push_results(lua_State *L, const lt_Signature *g) {
  lua_createtable(L, g->results, 0);
  for (int i = 0; i < g->results; i++) {
    lua_createtable(L, 0, 2);
    set_string(L, "name", g->result_name[i]);
    set_string(L, "type",
               g->result_is_flag       ? "bool"
               : g->result_is_index[i] ? "Index"
               : g->result_is_list     ? "Tensor[]"
                                       : "Tensor");
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_traits(lua_State *L, unsigned flags) {
  lua_newtable(L);
  for (size_t i = 0; i < sizeof traits / sizeof *traits; i++)
    if (flags & traits[i].flag) set_flag(L, traits[i].name, true);
  const char *class = autocast_classes[(flags & LT_AUTOCAST_CLASS) / LT_AUTOCAST_LOW];
  if (class) set_string(L, "autocast", class);
}

/* Pushes the op's name in each of its namespaces: {special = "erf"}. */
static void push_spaces(lua_State *L, const lt_OpInfo *info) {
  lua_newtable(L);
  for (int s = 0; s < LT_SPACE_COUNT; s++)
    if (info->variants & (unsigned)LT_VARIANT_SPACE << s)
      set_string(L, lt_namespaces[s].name, lt_namespace_op_name(s, info->name));
}

/* Pushes the list of the op's other names. */
static void push_aliases(lua_State *L, lt_OpId op) {
  int n = 0;
  lua_newtable(L);
  for (const lt_OpAlias *a = lt_op_aliases; a->name; a++) {
    if (a->op != op) continue;
    lua_pushstring(L, a->name);
    lua_rawseti(L, -2, ++n);
  }
}

static void push_op(lua_State *L, lt_OpId op) {
  const lt_OpInfo *info = &lt_ops[op];
  const lt_Signature *g = lt_op_signature(op);
  lua_createtable(L, 0, 12);
  set_string(L, "name", info->name);
  set_string(L, "signature", info->signature);
  set_string(L, "doc", info->doc);
  set_string(L, "kind", kinds[info->kind]);
  lua_createtable(L, 0, 3);
  set_flag(L, "function", info->variants & LT_VARIANT_FUNCTION);
  set_flag(L, "method", info->variants & LT_VARIANT_METHOD);
  set_flag(L, "in_place", info->variants & LT_VARIANT_IN_PLACE);
  lua_setfield(L, -2, "variants");
  push_spaces(L, info);
  lua_setfield(L, -2, "namespaces");
  push_aliases(L, op);
  lua_setfield(L, -2, "aliases");
  push_traits(L, info->traits);
  lua_setfield(L, -2, "traits");
  lt_lua_push_params(L, g);
  lua_setfield(L, -2, "params");
  lt_lua_push_results(L, g);
  lua_setfield(L, -2, "results");
  set_flag(L, "inplace", lt_lua_takes_inplace(info));
  set_flag(L, "has_gradient", lt_op_has_gradient(op));
  set_flag(L, "composite", info->kind == LT_KIND_COMPOSITE);
}

static void set_support(lua_State *L, lt_OpId op) {
  int count = lt_device_type_count();
  lua_createtable(L, 0, count);
  for (int t = 0; t < count; t++)
    set_flag(L, lt_device_type_name(t), lt_op_supported(op, t, LT_DTYPE_NONE));
  lua_setfield(L, -2, "support");
}

/* ops() -> list of {name, signature, doc, kind, variants, namespaces, traits, params, results,
 * inplace, has_gradient, composite, aliases, support}; a param is {name, type, optional, default,
 * written, shape_only, place}. inplace: the function in F accepts it after the params */
static int ops(lua_State *L) {
  lua_createtable(L, LT_OP_COUNT, 0);
  for (int op = 0; op < LT_OP_COUNT; op++) {
    push_op(L, (lt_OpId)op);
    set_support(L, (lt_OpId)op);
    lua_rawseti(L, -2, op + 1);
  }
  return 1;
}

/* _op(name) -> the entry of the op that has this name or alias in ops(), without `support`, which
 * would load devices; nil when there is none */
static int op_of(lua_State *L) {
  const char *name = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
  int op = lt_op_find(name);
  for (const lt_OpAlias *a = lt_op_aliases; op < 0 && a->name; a++)
    if (strcmp(a->name, name) == 0) op = a->op;
  if (op < 0) return 0;
  push_op(L, (lt_OpId)op);
  return 1;
}

/* _supported(name, device type, dtype) -> whether the device runs the op on tensors of the dtype;
 * of an unknown name, as of ops that are written in Lua: whether it has the dtype */
static int supported(lua_State *L) {
  int op = lt_op_find(luaL_checkstring(L, 1));
  const char *device = luaL_checkstring(L, 2);
  lt_Dtype dtype = lt_dtype_from_name(luaL_checkstring(L, 3));
  bool found = false;
  for (int t = 0; t < lt_device_type_count() && !found; t++)
    found = strcmp(device, lt_device_type_name(t)) == 0 && lt_device_has_dtype(t, dtype) &&
            (op < 0 || lt_op_supported((lt_OpId)op, t, dtype));
  lua_pushboolean(L, found);
  return 1;
}

/* Registry key of a table: function -> signature, of functions that are not ops. */
static const char signatures = 0;

static void push_signatures(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &signatures) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &signatures);
}

void lt_lua_set_signature(lua_State *L, int i, const char *name, const char *signature,
                          bool method) {
  i = lua_absindex(L, i);
  push_signatures(L);
  lua_getfield(L, i, name);
  lua_pushfstring(L, "%s%s", method ? ":" : "", signature);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void lt_lua_open_describe(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {
      {"ops", ops}, {"_op", op_of}, {"_supported", supported}, {NULL, NULL}};
  (void)methods;
  push_signatures(L);
  lua_setfield(L, functions, "_signatures");
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pushinteger(L, LT_GRID_ELEMENTS);
  lua_setfield(L, -2, "_grid_elements");
  lua_pop(L, 1);
}
