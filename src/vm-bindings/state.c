/* state.c: tracks which coroutine of which Lua state calls the core, and switches modes with it.
 *
 * The core has one set of modes for each OS thread (gradients on or off, inference mode, default
 * dtype and device) and one host to call back. Several Lua states may share an OS thread, and a
 * coroutine may be abandoned inside lt.no_grad. So every mode has an owner: a Lua state
 * (lt_Lua.program), or a coroutine inside a scope of its own (an lt_Modes in a list). When the
 * calling coroutine changes, the core's modes are stored with their owners and those of the new
 * coroutine are loaded. A coroutine has each mode from itself, else from the nearest coroutine that
 * waits for it and has the mode, else from the program.
 *
 * A coroutine may stand in for another one and use its modes: the coroutines in which the program
 * lutra runs a script and the cells of its prompt do. The registry has them in a table under the
 * key lt_lua_stand_ins: stand-in -> represented coroutine.
 *
 * Invariants: the core calls back only a Lua state that is running (lt_lua_is_running), and S->L is
 * alive. A coroutine in S->modes may have been collected since the last sweep, which looks it up in
 * a table with weak keys; no finalizer reports it, because Lua skips finalizers when it has no
 * stack or memory. A Lua state is used and closed on one OS thread. */
#include "bindings.h"

#include <stdlib.h>

const char lt_lua_stand_ins = 0;

/* ---- running coroutine ----------------------------------------------------------------------- */

bool lt_lua_is_active(lua_State *L) {
  lua_Debug ar;
  return lua_status(L) == LUA_OK && lua_getstack(L, 0, &ar);
}

bool lt_lua_is_running(const lt_Lua *S) {
  return S->L && lt_thread()->host == S && lt_lua_is_active(S->L);
}

/* ---- the core's modes ------------------------------------------------------------------------ */

/* Stores the core's modes with their owners, if S is its host. */
static void store_modes(lt_Lua *S) {
  const lt_Thread *th = lt_thread();
  if (th->host != S) return;
  S->in_use[LT_MODE_GRAD]->grad_off = th->grad_off;
  S->in_use[LT_MODE_INFERENCE]->inference_on = th->inference_on;
  S->in_use[LT_MODE_DEVICE]->device = th->default_device;
  S->in_use[LT_MODE_AUTOCAST]->autocast = th->autocast;
  S->dtype = th->default_dtype;
  S->fallback = th->fallback;
}

/* Sets the core's modes from their owners, if S is its host. */
static void load_modes(const lt_Lua *S) {
  lt_Thread *th = lt_thread();
  if (th->host != S) return;
  th->grad_off = S->in_use[LT_MODE_GRAD]->grad_off;
  th->inference_on = S->in_use[LT_MODE_INFERENCE]->inference_on;
  th->default_device = S->in_use[LT_MODE_DEVICE]->device;
  th->autocast = S->in_use[LT_MODE_AUTOCAST]->autocast;
  th->default_dtype = S->dtype;
  th->fallback = S->fallback;
}

/* Makes S the core's host; the modes of the host before are stored. The caller loads those of S. */
static void attach(lt_Lua *S) {
  lt_Thread *th = lt_thread();
  if (th->host) {
    store_modes(th->host);
  } else {
    th->own_grad_off = th->grad_off;
    th->own_inference_on = th->inference_on;
  }
  th->host = S;
  th->has_defaults = true;
  lt_memory_on_pressure(lt_lua_under_pressure, S);
  lt_memory_on_where(lt_lua_where, S);
}

/* The modes of the embedding program were saved when the first Lua state was attached. */
void lt_lua_end_state(lt_Lua *S) {
  lt_Thread *th = lt_thread();
  S->closed = true;
  S->L = NULL;
  for (int mode = 0; mode < LT_MODE_COUNT; mode++) S->in_use[mode] = &S->program;
  for (lt_Modes *m = S->modes, *next; m; m = next) {
    next = m->next;
    free(m);
  }
  S->modes = NULL;
  if (th->host != S) return;
  th->host = NULL;
  th->host_coroutine = NULL;
  th->has_defaults = false;
  th->grad_off = th->own_grad_off;
  th->inference_on = th->own_inference_on;
  th->autocast = (lt_Autocast){0};
  lt_autocast_clear_cache();
  free(lt_autograd_pack_by(NULL, NULL)); /* hooks.c: an EntryRef of this state */
  lt_memory_on_pressure(NULL, NULL);
  lt_memory_on_where(NULL, NULL);
}

/* ---- owners of modes ------------------------------------------------------------------------- */

/* limit of coroutines in a chain, as large as Lua's limit of nested C calls */
enum { LONGEST_CHAIN = 200 };

/* Returns the coroutine that L stands in for, through all stand-ins; L itself if it is none. */
static lua_State *principal(lua_State *L) {
  lua_State *found = L;
  int top = lua_gettop(L);
  if (!lua_checkstack(L, 2)) return L;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lt_lua_stand_ins) == LUA_TTABLE) {
    lua_pushthread(L);
    for (int depth = 0; depth < LONGEST_CHAIN && lua_rawget(L, top + 1) == LUA_TTHREAD; depth++)
      found = lua_tothread(L, -1);
  }
  lua_settop(L, top);
  return found;
}

/* Sets S->L and keeps it alive. With a full stack S->L is NULL, so callbacks are refused. */
static void anchor(lua_State *L, lt_Lua *S) {
  S->L = NULL;
  S->mode_owner = principal(L);
  if (!lua_checkstack(L, 1)) return;
  lua_pushthread(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, S->running_ref);
  S->L = L;
}

/* Returns the modes owned by coroutine L, NULL if it owns none. */
static lt_Modes *own_modes(const lt_Lua *S, const lua_State *L) {
  for (lt_Modes *m = S->modes; m; m = m->next)
    if (m->owner == L) return m;
  return NULL;
}

/* Returns the coroutine that P has resumed, NULL if it is not found. It is a local value of the
 * function that P waits in (an argument of coroutine.resume) or its upvalue (coroutine.wrap). */
static lua_State *resumed_by(lua_State *P) {
  lua_Debug ar;
  lua_State *found = NULL;
  if (!lua_checkstack(P, 3) || !lua_getstack(P, 0, &ar)) return NULL;
  int top = lua_gettop(P);
  for (int i = 1; !found && lua_getlocal(P, &ar, i); i++) {
    lua_State *L = lua_tothread(P, -1);
    if (L && L != P && lt_lua_is_active(L)) found = L;
    lua_settop(P, top);
  }
  lua_getinfo(P, "f", &ar);
  for (int i = 1; !found && lua_getupvalue(P, top + 1, i); i++) {
    lua_State *L = lua_tothread(P, -1);
    if (L && L != P && lt_lua_is_active(L)) found = L;
    lua_settop(P, top + 1);
  }
  lua_settop(P, top);
  return found;
}

/* Returns whether m sets the mode and its owner is another coroutine than L that is active, and so
 * waits for L. */
static bool waits(const lt_Modes *m, lt_Mode mode, const lua_State *L) {
  return m->own[mode] && m->owner != L && lt_lua_is_active(m->owner);
}

/* Returns the modes of the nearest coroutine that waits for L and sets this mode. A single
 * candidate is returned at once. Among several, the chain of resumes is followed from the main
 * coroutine; where the chain cannot be followed, the newest owner wins. */
static lt_Modes *nearest(const lt_Lua *S, const lua_State *L, lt_Mode mode) {
  lt_Modes *found = NULL;
  int count = 0;
  for (lt_Modes *m = S->modes; m; m = m->next)
    if (waits(m, mode, L) && count++ == 0) found = m;
  if (count < 2) return found;
  lua_State *P = S->main;
  for (int depth = 0; P && P != L && depth < LONGEST_CHAIN; depth++, P = resumed_by(P)) {
    lt_Modes *m = own_modes(S, P);
    if (m && waits(m, mode, L)) found = m;
  }
  return found;
}

/* Finds the owner of each mode of S->mode_owner. Returns whether the result holds until another
 * coroutine calls, so that lt_lua_enter may skip the search. */
static bool find_modes(lt_Lua *S) {
  for (int mode = 0; mode < LT_MODE_COUNT; mode++) S->in_use[mode] = &S->program;
  if (!S->modes) return true;
  const lua_State *who = S->mode_owner;
  lt_Modes *own = own_modes(S, who);
  if (who == S->main) return true;
  for (int mode = 0; mode < LT_MODE_COUNT; mode++) {
    lt_Modes *m = own && own->own[mode] ? own : nearest(S, who, mode);
    if (m) S->in_use[mode] = m;
  }
  return own && own == S->modes && !own->next;
}

/* Removes m from the list and frees it; the program's modes replace those of m in the core. */
static void forget_modes(lt_Lua *S, lt_Modes *m) {
  lt_Modes **place = &S->modes;
  while (*place && *place != m) place = &(*place)->next;
  if (!*place) return;
  store_modes(S);
  *place = m->next;
  for (int mode = 0; mode < LT_MODE_COUNT; mode++)
    if (S->in_use[mode] == m) S->in_use[mode] = &S->program;
  free(m);
  load_modes(S);
  if (lt_thread()->host == S)
    lt_thread()->host_coroutine = NULL; /* the next call searches the owners again */
}

/* Frees the modes of coroutines that were collected. Allocates nothing and cannot fail. */
static void sweep(lt_Lua *S) {
  if (!S->modes) return;
  lua_State *L = S->scratch;
  int top = lua_gettop(L);
  for (lt_Modes *m = S->modes; m; m = m->next) m->seen = false;
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->modes_ref);
  for (lua_pushnil(L); lua_next(L, top + 1); lua_settop(L, top + 2))
    ((lt_Modes *)lua_touserdata(L, top + 3))->seen = true;
  lua_settop(L, top);
  for (lt_Modes *m = S->modes, *next; m; m = next) {
    next = m->next;
    if (!m->seen) forget_modes(S, m);
  }
}

/* Finds the modes of S->mode_owner and loads them into the core; remembers L as the last caller if
 * that is safe. */
static void use_modes(lua_State *L, lt_Lua *S) {
  lt_Thread *th = lt_thread();
  sweep(S);
  bool stays = find_modes(S);
  load_modes(S);
  if (th->host == S) th->host_coroutine = stays && S->L == L ? L : NULL;
}

void lt_lua_switch(lua_State *L, lt_Lua *S) {
  lt_Thread *th = lt_thread();
  /* a finalizer of an object older than the module: new tensors would not be finalized */
  if (S->closed) luaL_error(L, "lutra: cannot call a function: the Lua state is being closed");
  if (th->host == S)
    store_modes(S);
  else
    attach(S);
  if (S->L != L) anchor(L, S);
  use_modes(L, S);
}

/* ---- modes of a coroutine -------------------------------------------------------------------- */

/* Returns the modes that S->mode_owner owns: the program's for the main coroutine. `make`: creates
 * them if there are none, which may raise an error; otherwise returns NULL then. */
static lt_Modes *modes_of(lua_State *L, lt_Lua *S, bool make) {
  lua_State *who = S->mode_owner;
  if (who == S->main) return &S->program;
  lt_Modes *m = own_modes(S, who);
  if (m || !make) return m;
  luaL_checkstack(L, 6, NULL);
  luaL_checkstack(who, 1, NULL);
  m = malloc(sizeof *m);
  if (!m) lt_lua_error(L, "out of memory: no room for the modes of a coroutine");
  *m = (lt_Modes){.owner = who, .next = S->modes};
  S->modes = m; /* the next sweep frees it if the table cannot be extended */
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->modes_ref);
  lua_pushthread(who);
  if (who != L) lua_xmove(who, L, 1);
  lua_pushlightuserdata(L, m);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  return m;
}

/* Removes the modes of a coroutine: it inherits all modes again. */
static void drop_modes(lua_State *L, lt_Lua *S, lt_Modes *m) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->modes_ref);
  lua_pushthread(m->owner);
  if (m->owner != L) lua_xmove(m->owner, L, 1);
  lua_pushnil(L);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  forget_modes(S, m);
}

/* Returns the settings of autocast as one integer, a value of _scope_autocast. */
static lua_Integer packed_autocast(const lt_Autocast *a) {
  lua_Integer packed = a->on | (a->no_cache ? 1 << 8 : 0);
  for (int type = 0; type < LT_DEVICE_KNOWN; type++)
    packed |= (lua_Integer)a->dtype[type] << (16 + 8 * type);
  return packed;
}

static lt_Autocast unpacked_autocast(lua_Integer packed) {
  lt_Autocast a = {.on = packed & 0xff, .no_cache = packed >> 8 & 1};
  for (int type = 0; type < LT_DEVICE_KNOWN; type++)
    a.dtype[type] = packed >> (16 + 8 * type) & 0xff;
  return a;
}

/* Pushes the value that m sets for the mode; nil if it sets none. */
static void push_mode(lua_State *L, const lt_Modes *m, lt_Mode mode) {
  if (!m || !m->own[mode])
    lua_pushnil(L);
  else if (mode == LT_MODE_DEVICE)
    lua_pushstring(L, lt_device_name(m->device));
  else if (mode == LT_MODE_AUTOCAST)
    lua_pushinteger(L, packed_autocast(&m->autocast));
  else
    lua_pushboolean(L, mode == LT_MODE_GRAD ? !m->grad_off : m->inference_on);
}

static void copy_mode(lt_Modes *to, const lt_Modes *from, lt_Mode mode) {
  to->own[mode] = from->own[mode];
  if (mode == LT_MODE_GRAD) to->grad_off = from->grad_off;
  if (mode == LT_MODE_INFERENCE) to->inference_on = from->inference_on;
  if (mode == LT_MODE_DEVICE) to->device = from->device;
  if (mode == LT_MODE_AUTOCAST) to->autocast = from->autocast;
}

static bool has_any(const lt_Modes *m) {
  for (int mode = 0; mode < LT_MODE_COUNT; mode++)
    if (m->own[mode]) return true;
  return false;
}

/* Sets the mode of the running coroutine as in `from`, where "not set" means that it inherits the
 * mode again; the program's modes are always set. Pushes the former value, nil for "not set", and
 * returns 1. */
static int change(lua_State *L, lt_Mode mode, const lt_Modes *from) {
  lt_Lua *S = lt_lua_state(L);
  lt_Modes *m = modes_of(L, S, from->own[mode]);
  store_modes(S);
  push_mode(L, m, mode);
  if (!m || (m == &S->program && !from->own[mode])) return 1;
  copy_mode(m, from, mode);
  use_modes(L, S);
  if (!has_any(m)) drop_modes(L, S, m);
  return 1;
}

/* _scope_grad(on | nil) -> the former value, which the end of the scope sets again. nil: inherit */
static int scope_grad(lua_State *L) {
  lt_Modes from = {.own = {[LT_MODE_GRAD] = !lua_isnoneornil(L, 1)}};
  from.grad_off = !lua_toboolean(L, 1);
  return change(L, LT_MODE_GRAD, &from);
}

/* _scope_inference(on | nil) -> the former value */
static int scope_inference(lua_State *L) {
  lt_Modes from = {.own = {[LT_MODE_INFERENCE] = !lua_isnoneornil(L, 1)}};
  from.inference_on = lua_toboolean(L, 1);
  return change(L, LT_MODE_INFERENCE, &from);
}

/* _scope_device(device | nil) -> the former device of new tensors */
static int scope_device(lua_State *L) {
  lt_Modes from = {.own = {[LT_MODE_DEVICE] = !lua_isnoneornil(L, 1)}};
  if (from.own[LT_MODE_DEVICE] && !lt_lua_device(L, 1, -1, &from.device))
    lt_lua_error(L, "with_device: %s", lt_error());
  return change(L, LT_MODE_DEVICE, &from);
}

/* _scope_autocast(settings | nil) -> the former value. Where autocast is off afterwards, the cached
 * casts of weights are freed. */
static int scope_autocast(lua_State *L) {
  lt_Modes from = {.own = {[LT_MODE_AUTOCAST] = !lua_isnoneornil(L, 1)}};
  if (from.own[LT_MODE_AUTOCAST]) {
    from.autocast = unpacked_autocast(luaL_checkinteger(L, 1));
    for (int type = 0; type < LT_DEVICE_KNOWN; type++)
      if (from.autocast.dtype[type] > LT_DTYPE_COUNT) from.autocast.dtype[type] = 0;
  }
  change(L, LT_MODE_AUTOCAST, &from);
  if (!lt_thread()->autocast.on) lt_autocast_clear_cache();
  return 1;
}

/* Reads the device type at index i: 'cpu', 'cuda' or 'mps', with a number or without. */
static uint8_t autocast_type(lua_State *L, int i) {
  const char *name = lt_lua_text(L, i, "autocast", "device_type");
  size_t n = strcspn(name, ":");
  for (uint8_t type = 0; type < LT_DEVICE_KNOWN; type++) {
    const char *known = lt_device_type_name(type);
    if (lt_autocast_has(type) && strlen(known) == n && memcmp(known, name, n) == 0) return type;
  }
  lt_lua_error(L,
               "autocast: expected \"cpu\", \"cuda\" or \"mps\" for argument 'device_type', got %s",
               lt_lua_describe(L, i));
}

/* _autocast_of(device_type) -> enabled, dtype, cache_enabled */
static int autocast_of(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  uint8_t type = autocast_type(L, 1);
  const lt_Autocast *a = &lt_thread()->autocast;
  lua_pushboolean(L, a->on >> type & 1);
  lua_pushstring(L, lt_dtype_name(lt_autocast_dtype(a, type)));
  lua_pushboolean(L, !a->no_cache);
  return 3;
}

/* _autocast_with(device_type, enabled | nil, dtype | nil, cache_enabled | nil) -> the present
 * settings with these changes, for _scope_autocast */
static int autocast_with(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  uint8_t type = autocast_type(L, 1);
  lt_Autocast a = lt_thread()->autocast;
  if (!lua_isnoneornil(L, 2))
    a.on = (uint8_t)(lua_toboolean(L, 2) ? a.on | 1 << type : a.on & ~(1 << type));
  if (!lua_isnoneornil(L, 3)) {
    const char *name = lt_lua_text(L, 3, "autocast", "dtype");
    lt_Dtype dtype = lt_dtype_from_name(name);
    if (dtype != LT_float16 && dtype != LT_bfloat16)
      lt_lua_error(L, "autocast: expected \"bfloat16\" or \"float16\" for argument 'dtype', got %s",
                   lt_lua_describe(L, 3));
    a.dtype[type] = (uint8_t)(dtype + 1);
  }
  if (!lua_isnoneornil(L, 4)) a.no_cache = !lua_toboolean(L, 4);
  lua_pushinteger(L, packed_autocast(&a));
  return 1;
}

/* _autocast_any() -> whether autocast is on for any device type */
static int autocast_any(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  lua_pushboolean(L, lt_thread()->autocast.on && !lt_thread()->autocast_paused);
  return 1;
}

/* _clear_autocast_cache(): frees the cached casts of weights */
static int clear_autocast_cache(lua_State *L) {
  (void)L;
  lt_autocast_clear_cache();
  return 0;
}

static int is_grad_enabled(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  if (lua_gettop(L) > 0) lt_lua_read(L);
  lua_pushboolean(L, lt_grad_enabled());
  return 1;
}

/* set_grad_enabled(on) -> the former value */
static int set_grad_enabled(lua_State *L) {
  lt_Modes from = {.own = {[LT_MODE_GRAD] = true}};
  from.grad_off = !lua_toboolean(L, 1);
  lua_pushboolean(L, lt_grad_enabled());
  change(L, LT_MODE_GRAD, &from);
  lua_pop(L, 1);
  return 1;
}

static int is_inference(lua_State *L) {
  lt_lua_enter(L, lt_lua_state(L));
  if (lua_gettop(L) > 0) lt_lua_read(L);
  lua_pushboolean(L, lt_inference_enabled());
  return 1;
}

/* ---- opening --------------------------------------------------------------------------------- */

void lt_lua_begin_state(lua_State *L, lt_Lua *S) {
  const lt_Thread *th = lt_thread();
  bool first = th->host == NULL;
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  S->main = lua_tothread(L, -1);
  S->running_ref = luaL_ref(L, LUA_REGISTRYINDEX); /* any value but nil reserves the reference */
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  S->modes_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  /* The first Lua state on this thread starts with the modes that the embedding program has set. */
  S->program = (lt_Modes){.own = {true, true, true, true},
                          .grad_off = first && th->grad_off,
                          .inference_on = first && th->inference_on,
                          .device = first ? lt_device_default() : lt_cpu()};
  S->dtype = first ? lt_dtype_default() : LT_float32;
  S->fallback = first ? lt_fallback_mode() : LT_FALLBACK_BY_ENVIRONMENT;
  for (int mode = 0; mode < LT_MODE_COUNT; mode++) S->in_use[mode] = &S->program;
}

void lt_lua_open_state(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"_scope_grad", scope_grad},
                                    {"_scope_inference", scope_inference},
                                    {"_scope_device", scope_device},
                                    {"_scope_autocast", scope_autocast},
                                    {"_autocast_of", autocast_of},
                                    {"_autocast_with", autocast_with},
                                    {"_autocast_any", autocast_any},
                                    {"_clear_autocast_cache", clear_autocast_cache},
                                    {NULL, NULL}};
  static const lt_Function modes[] = {
      {"is_grad_enabled", is_grad_enabled, "() -> nil", false, true},
      {"set_grad_enabled", set_grad_enabled, "(bool mode) -> nil", false, false},
      {"is_inference_mode_enabled", is_inference, "() -> nil", false, true},
      {NULL, NULL, NULL, false, false}};
  (void)methods;
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_read(L, modes);
  lua_pop(L, 1);
}
