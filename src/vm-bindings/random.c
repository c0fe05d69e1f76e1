/* random.c: random number generators as Lua objects. A generator's state is an int64 tensor {seed,
 * position}, which can be saved like any other tensor. */
#include "bindings.h"

lt_Generator **lt_lua_to_generator(lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  bool is = lua_topointer(L, -1) == lt_lua_state(L)->generator_meta;
  lua_pop(L, 1);
  return is ? lua_touserdata(L, i) : NULL;
}

static lt_Generator *generator_at(lua_State *L, int i, const char *name) {
  lt_Generator **g = lt_lua_to_generator(L, i);
  if (g && *g) return *g;
  if (g)
    lt_lua_error(L, "%s: expected a Generator for argument 'self', got one that was finalized",
                 name);
  lt_lua_error(L, "%s: expected a Generator for argument 'self', got %s", name,
               lt_lua_describe(L, i));
}

static int push_state(lua_State *L, const lt_Generator *g) {
  uint64_t state[2];
  int64_t two = 2;
  lt_generator_get_state(g, state);
  lt_Box *box = lt_lua_box(L);
  lt_lua_enter(L, lt_lua_state(L));
  box->tensor = lt_empty(LT_int64, lt_cpu(), 1, &two);
  if (!box->tensor) lt_lua_fail(L, "get_state");
  memcpy(lt_tensor_data(box->tensor), state, sizeof state);
  return 1;
}

/* Sets a generator's state from the tensor at i; raises an error if that is not one from
 * get_state. */
static void set_state(lua_State *L, lt_Generator *g, int i, const char *name) {
  uint64_t state[2];
  lt_Tensor *t = lt_lua_check(L, i, name, "state");
  if (t->dtype != LT_int64 || t->numel != 2 || lt_tensor_device(t).type != LT_DEVICE_cpu ||
      !lt_tensor_is_contiguous(t))
    lt_lua_error(L, "%s: expected a state that get_state returned for argument 'state', got %s",
                 name, lt_lua_describe(L, i));
  memcpy(state, lt_tensor_data(t), sizeof state);
  lt_generator_set_state(g, state);
}

/* ---- the default generator ------------------------------------------------------------------- */

static int manual_seed(lua_State *L) {
  lt_generator_seed(lt_generator_default(), (uint64_t)lua_tointeger(L, 1));
  return 0;
}

static int push_new_seed(lua_State *L, lt_Generator *g) {
  uint64_t seed = lt_random_seed() >> 1; /* not negative as a Lua integer */
  lt_generator_seed(g, seed);
  lua_pushinteger(L, (lua_Integer)seed);
  return 1;
}

static int seed(lua_State *L) { return push_new_seed(L, lt_generator_default()); }

static int push_seed(lua_State *L, const lt_Generator *g) {
  uint64_t state[2];
  lt_generator_get_state(g, state);
  lua_pushinteger(L, (lua_Integer)state[0]);
  return 1;
}

static int initial_seed(lua_State *L) { return push_seed(L, lt_generator_default()); }
static int get_rng_state(lua_State *L) { return push_state(L, lt_generator_default()); }

static int set_rng_state(lua_State *L) {
  set_state(L, lt_generator_default(), 1, "set_rng_state");
  return 0;
}

/* ---- generators ------------------------------------------------------------------------------ */

static const char generator_signature[] = "(int? seed = nil, device? device = nil) -> nil";

/* The device, PyTorch's only argument, is checked; a generator serves tensors on all devices. */
static int generator_new(lua_State *L) {
  lt_LuaArgs a;
  if (lua_type(L, 1) == LUA_TSTRING) { /* Generator("cuda") */
    lua_pushnil(L);
    lua_insert(L, 1);
  }
  lt_lua_arguments(L, lt_lua_state(L), &a, "Generator", lt_lua_signature(L, generator_signature),
                   false);
  uint64_t first = a.arg[0].kind == LT_ARG_INT ? (uint64_t)a.arg[0].i : lt_random_seed() >> 1;
  lt_Generator **g = lua_newuserdatauv(L, sizeof *g, 0);
  *g = NULL;
  lua_pushvalue(L, lua_upvalueindex(LT_UP_OWN));
  lua_setmetatable(L, -2);
  *g = lt_generator_new(first);
  if (!*g) lt_lua_fail(L, "Generator");
  return 1;
}

static int generator_gc(lua_State *L) {
  lt_Generator **g = lt_lua_to_generator(L, 1);
  if (g && *g) lt_generator_free(*g);
  if (g) *g = NULL;
  return 0;
}

static int generator_tostring(lua_State *L) {
  lt_Generator **held = lt_lua_to_generator(L, 1), *g;
  if (held && !*held) {
    lua_pushliteral(L, "Generator(finalized)");
    return 1;
  }
  g = generator_at(L, 1, "tostring");
  push_seed(L, g);
  lua_pushfstring(L, "Generator(seed %I)", lua_tointeger(L, -1));
  return 1;
}

static int generator_manual_seed(lua_State *L) {
  lt_generator_seed(generator_at(L, 1, "manual_seed"), (uint64_t)lua_tointeger(L, 2));
  lua_settop(L, 1);
  return 1;
}

static int generator_seed(lua_State *L) { return push_new_seed(L, generator_at(L, 1, "seed")); }
static int generator_initial_seed(lua_State *L) {
  return push_seed(L, generator_at(L, 1, "initial_seed"));
}
static int generator_get_state(lua_State *L) {
  return push_state(L, generator_at(L, 1, "get_state"));
}

static int generator_set_state(lua_State *L) {
  set_state(L, generator_at(L, 1, "set_state"), 2, "set_state");
  lua_settop(L, 1);
  return 1;
}

void lt_lua_open_random(lua_State *L, int functions, int methods) {
  static const lt_Function module[] = {
      {"manual_seed", manual_seed, "(int seed) -> nil", false, false},
      {"seed", seed, "() -> nil", false, false},
      {"initial_seed", initial_seed, "() -> nil", false, false},
      {"get_rng_state", get_rng_state, "()", false, false},
      {"set_rng_state", set_rng_state, "(Tensor state) -> nil", false, false},
      {NULL, NULL, NULL, false, false}};
  static const lt_Function own[] = {
      {"manual_seed", generator_manual_seed, "(any self, int seed) -> nil", true, false},
      {"seed", generator_seed, "(any self) -> nil", true, false},
      {"initial_seed", generator_initial_seed, "(any self) -> nil", true, false},
      {"get_state", generator_get_state, "(any self)", true, false},
      {"set_state", generator_set_state, "(any self, Tensor state) -> nil", true, false},
      {NULL, NULL, NULL, false, false}};
  static const luaL_Reg meta[] = {
      {"__gc", generator_gc}, {"__tostring", generator_tostring}, {NULL, NULL}};
  (void)methods;
  lua_newtable(L);
  lt_lua_setfuncs(L, meta);
  lua_pushliteral(L, "Generator");
  lua_setfield(L, -2, "__name");
  lua_newtable(L);
  lt_lua_set_read(L, own);
  lua_setfield(L, -2, "__index");
  lt_lua_state(L)->generator_meta = lua_topointer(L, -1);
  int m = lua_gettop(L);
  lua_pushvalue(L, functions);
  lt_lua_set_read(L, module);
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_pushvalue(L, m);
  lua_pushcclosure(L, generator_new, 3);
  lua_setfield(L, -2, "Generator");
  lt_lua_set_signature(L, -1, "Generator", generator_signature, false);
  lua_pop(L, 2);
}
