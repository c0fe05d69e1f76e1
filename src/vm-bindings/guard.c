/* guard.c: implements `_trace.guard`, which logs or refuses copies between devices, and collectives
 * and messages between ranks.
 *
 * The core calls a guard before each copy and each collective of its thread. A guard has a level
 * for some of the four directions, and distinguishes explicit from implicit copies. A copy is
 * explicit if the op that the user's line called (x:to, x:item) says so in its row, or is in the
 * table below; so are the gradient of such a copy, and the copies of nn.parallel, whose purpose
 * they are. All other copies are implicit, such as those of printing or of indexing by a tensor,
 * also where a module of the user's makes them inside nn.DataParallel. Collectives and messages are
 * explicit: the program, or a class whose purpose they are, calls them by name. A copy between
 * devices that they make on the way is not.
 *
 * Invariants: a copy that a guard refuses has not begun. A closed guard is not called, nor is one
 * whose coroutine has yielded or ended with an error, since the code that runs then is not its
 * own. */
#include "bindings.h"
#include "trace.h"

#define GUARD "lutra.guard"

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 4, BETWEEN_RANKS = 8, ANY = 15 };

/* Functions that copy explicitly, and in which directions, in addition to the ops with the trait
 * TRANSFER. */
static const struct {
  const char *name;
  int directions;
} explicit_calls[] = {
    {"cpu", ANY},
    {"cuda", ANY},
    {"mps", ANY},
    {"to_device", ANY},
    {"load_state_dict", ANY},
    {"item", DEVICE_TO_HOST},
    {"totable", DEVICE_TO_HOST},
    {"tolist", DEVICE_TO_HOST},
    {"save_npy", DEVICE_TO_HOST},
    {"save_safetensors", DEVICE_TO_HOST},
    {"tensor", HOST_TO_DEVICE},
    {"as_tensor", HOST_TO_DEVICE},
    {"new_tensor", HOST_TO_DEVICE},
    {"for iterator", HOST_TO_DEVICE}, /* DataLoader{device = ...} */
};

static int direction_of(const lt_TraceEvent *e) {
  if (e->kind == LT_TRACE_COLLECTIVE) return BETWEEN_RANKS;
  if (e->from.type == LT_DEVICE_cpu) return HOST_TO_DEVICE;
  return e->device.type == LT_DEVICE_cpu ? DEVICE_TO_HOST : DEVICE_TO_DEVICE;
}

static bool is_explicit(const char *call, int direction) {
  int op = lt_op_find(call);
  if (op >= 0 && lt_ops[op].traits & LT_TRAIT_TRANSFER) return true;
  for (size_t i = 0; i < sizeof explicit_calls / sizeof *explicit_calls; i++)
    if (strcmp(explicit_calls[i].name, call) == 0) return explicit_calls[i].directions & direction;
  return false;
}

bool lt_lua_is_explicit(const lt_Lua *S, const lt_TraceEvent *copy, const char *call) {
  return copy->kind == LT_TRACE_COLLECTIVE || copy->backward_copy ||
         lt_lua_called_from(S, "/nn/parallel/") || is_explicit(call, direction_of(copy));
}

/* lt.distributed makes its calls by tail calls, of which Lua keeps no names, and by the method
 * `submit` of core._communication. */
void lt_lua_called_collective(const lt_Lua *S, const lt_TraceEvent *e, char *text, size_t size) {
  lt_lua_called(S, text, size);
  if (!*text || strcmp(text, "submit") == 0) snprintf(text, size, "%s", e->name);
}

/* JAX's levels: the action for an implicit copy, and for an explicit one. */
typedef enum Action { ALLOW, LOG, REFUSE } Action;
static const struct Level {
  const char *name;
  Action implicit, explicit;
} levels[] = {
    {"allow", ALLOW, ALLOW},
    {"log", LOG, ALLOW},
    {"disallow", REFUSE, ALLOW},
    {"log_explicit", LOG, LOG},
    {"disallow_explicit", REFUSE, REFUSE},
};

typedef struct Guard {
  lt_Tracer tracer;
  const lt_Lua *lua;
  lua_State *owner; /* coroutine of the guard, kept alive by a user value */
  const struct Level *level;
  int directions;
  bool on;
} Guard;

/* Returns the suggestion that a message about a refused copy ends with. */
static const char *advice(int direction, bool explicit) {
  if (direction == BETWEEN_RANKS) return "call it outside the guard, on all ranks of the group";
  if (explicit && direction == DEVICE_TO_HOST)
    return "add up on the device and read once, outside the guard";
  if (explicit) return "copy once, before the guard, and keep the result";
  if (direction == DEVICE_TO_HOST) return "write the copy explicitly: x:cpu() or x:item()";
  if (direction == HOST_TO_DEVICE)
    return "create the tensor on the device, {device = x.device}, or write the copy explicitly, "
           "x:to(...)";
  return "write the copy explicitly: x:to(device)";
}

/* Registry key of a table with weak values: address of a guard -> its coroutine. */
static const char owners = 0;

/* Returns whether the guard's coroutine is still running. If Lua could not finalize a guard,
 * because its stack or memory was short, the core still calls it after its coroutine, or its Lua
 * state, ended. */
static bool is_in_use(const Guard *g) {
  if (lt_thread()->host != g->lua || !lt_lua_is_running(g->lua)) return false;
  lua_State *L = g->lua->scratch;
  int top = lua_gettop(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &owners);
  bool there = lua_rawgetp(L, -1, g) == LUA_TTHREAD;
  lua_settop(L, top);
  return there && lt_lua_is_active(g->owner);
}

/* Writes what an event transfers, with one of two verbs: "copies 4 bytes from "cuda:0" to
 * "cpu"". */
static void describe(char *text, size_t size, const lt_TraceEvent *e, int direction,
                     const char *copies, const char *exchanges) {
  const char *plural = e->bytes == 1 ? "" : "s";
  char from[32];
  snprintf(from, sizeof from, "%s", lt_device_name(e->from));
  if (direction == BETWEEN_RANKS)
    snprintf(text, size, "%s %lld byte%s on \"%s\" between %d rank%s", exchanges,
             (long long)e->bytes, plural, from, e->comm.size, e->comm.size == 1 ? "" : "s");
  else
    snprintf(text, size, "%s %lld byte%s from \"%s\" to \"%s\"", copies, (long long)e->bytes,
             plural, from, lt_device_name(e->device));
}

/* Answers the core's question whether this copy may be made; sets the error where it may not. */
static lt_TraceAnswer may_copy(void *context, const lt_TraceEvent *e) {
  const Guard *g = context;
  int direction = direction_of(e);
  if (!(g->directions & direction) || !is_in_use(g)) return LT_TRACE_NO_OPINION;
  char call[48], what[160];
  if (direction == BETWEEN_RANKS)
    lt_lua_called_collective(g->lua, e, call, sizeof call);
  else
    lt_lua_called(g->lua, call, sizeof call);
  bool explicit = lt_lua_is_explicit(g->lua, e, call);
  Action action = explicit ? g->level->explicit : g->level->implicit;
  if (action == ALLOW) return LT_TRACE_MAY;
  const char *name = *call ? call : lt_user_op();
  if (action == LOG) {
    char where[64] = "";
    lt_lua_where((void *)g->lua, where, sizeof where);
    fflush(stdout);
    describe(what, sizeof what, e, direction, "copies", "exchanges");
    fprintf(stderr, "%s%s%s %s%s\n", where, *where ? ": " : "", name, what,
            explicit ? "" : " implicitly");
    return LT_TRACE_MAY;
  }
  describe(what, sizeof what, e, direction, "copy", "exchange");
  lt_error_set("%s: cannot %s%s: placement.guard(\"%s\") forbids it\n"
               "hint: %s, or allow it: placement.guard(\"allow\", fn)",
               name, what, explicit ? "" : " implicitly", g->level->name,
               advice(direction, explicit));
  return LT_TRACE_MAY_NOT;
}

static int guard_close(lua_State *L) {
  Guard **handle = luaL_checkudata(L, 1, GUARD), *g = *handle;
  if (g && g->on) lt_trace_remove(&g->tracer);
  free(g);
  *handle = NULL;
  return 0;
}

/* guard(level, direction) -> a guard, active until it is closed; nil when there is no such level or
 * direction. direction nil: all four */
static int guard(lua_State *L) {
  static const char *const names[] = {"host_to_device", "device_to_host", "device_to_device",
                                      "between_ranks"};
  const char *name = lt_lua_text(L, 1, "guard", "level");
  const char *direction = lua_isnoneornil(L, 2) ? NULL : lt_lua_text(L, 2, "guard", "direction");
  const struct Level *level = NULL;
  int directions = direction ? 0 : ANY;
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
    if (strcmp(levels[i].name, name) == 0) level = &levels[i];
  for (int i = 0; i < 4; i++)
    if (direction && strcmp(names[i], direction) == 0) directions = 1 << i;
  if (!level || !directions) return 0;
  Guard **handle = lua_newuserdatauv(L, sizeof *handle, 1), *g;
  *handle = NULL;
  lua_pushthread(L);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, GUARD);
  g = *handle = malloc(sizeof *g);
  if (!g) return luaL_error(L, "guard: out of memory");
  *g = (Guard){.lua = lt_lua_state(L), .owner = L, .level = level, .directions = directions};
  g->tracer = (lt_Tracer){.may_copy = may_copy, .context = g};
  lua_rawgetp(L, LUA_REGISTRYINDEX, &owners);
  lua_pushthread(L);
  lua_rawsetp(L, -2, g);
  lua_pop(L, 1);
  lt_lua_enter(L, lt_lua_state(L));
  lt_trace_add(&g->tracer);
  g->on = true;
  return 1;
}

void lt_lua_add_guard(lua_State *L) {
  static const luaL_Reg members[] = {
      {"close", guard_close}, {"__close", guard_close}, {"__gc", guard_close}, {NULL, NULL}};
  static const luaL_Reg module[] = {{"guard", guard}, {NULL, NULL}};
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &owners);
  luaL_newmetatable(L, GUARD);
  lt_lua_setfuncs(L, members);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lt_lua_setfuncs(L, module);
}
