/* plan.c: compiled functions: the plans that are made of records of Lua functions, and the call
 * that runs a plan, for lib/lutra/compile.
 *
 *   r:plan(results, grad, compile)    ends the recording; the plan, or nil and the reason
 *   _plan_entry(plan, settings)       a plan with the kind of arguments that it is for
 *   _compiled(entries, miss)          the function that runs the entry which fits its arguments
 *
 * An entry fits when grad mode, default dtype and the arguments are as they were when it was made
 * (tensors: geometry, dtype, device, requires_grad, loose bools; other values: the same value), and
 * when each of its guards, a field or an upvalue, still has the value that it had. It is a userdata
 * whose user value is its settings:
 *
 *   arguments   the arguments, and their number in the field n
 *   captured    container, key, container, key, ... of each captured tensor, in the plan's order
 *   constants   captured tensors that have no place, by number
 *   guards      container, key, value, container, key, value, ...
 *   build       function that gets the results of the plan and returns those of the program; or nil
 *   plain       the function that is called where the entry has no plan */
#include "plan.h"
#include "bindings.h"

#define PLAN  "lutra.plan"
#define ENTRY "lutra.plan_entry"

/* ---- plans of records ------------------------------------------------------------------------ */

/* Calls the host's function that makes kernels. */
typedef struct Compiler {
  lua_State *L;
  int function; /* its stack index; after an error that of the error */
  bool failed;
  lt_Device device;
} Compiler;

static lt_UserKernel *compile_kernel(void *context, const lt_ProgramLoop *loop, int rank) {
  Compiler *c = context;
  lua_State *L = c->L;
  if (c->failed) return NULL;
  lua_pushvalue(L, c->function);
  lt_lua_push_program(L, loop->program);
  lua_pushinteger(L, rank);
  c->failed = lua_pcall(L, 2, 1, 0) != LUA_OK;
  if (c->failed) {
    lua_replace(L, c->function);
    return NULL;
  }
  lt_UserKernel *kernel = lt_lua_user_kernel(L, -1, c->device);
  lua_pop(L, 1);
  return kernel;
}

/* r:plan(results, grad, compile or nil, graphs) -> the plan; nil and the reason. compile(program,
 * rank) returns a kernel or nil. */
static int recorder_plan(lua_State *L) {
  lua_settop(L, 5);
  lt_Recorder *r = lt_lua_recorder(L);
  bool grad = lua_toboolean(L, 3), graphs = lua_toboolean(L, 5);
  Compiler c = {.L = L, .function = 4, .device = r->device};
  lt_PlanCompiler compiler = {compile_kernel, &c};
  int n;
  lt_Tensor **out = lt_lua_tensors(L, "compile", "results", 2, false, &n);
  lt_Plan **p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = NULL;
  luaL_setmetatable(L, PLAN);
  lt_lua_enter(L, lt_lua_state(L));
  luaL_checkstack(L, 20, "compile");
  int at = lua_gettop(L);
  *p = lt_plan_new(r, n, out, grad, lua_isnil(L, 4) ? NULL : &compiler, graphs);
  lua_settop(L, at);
  if (c.failed) {
    lua_pushvalue(L, c.function);
    return lua_error(L);
  }
  if (*p) return 1;
  if (lt_stopped()) lt_lua_fail(L, "compile"); /* else Ctrl-C would be the reason for ever */
  lua_pushnil(L);
  lua_pushstring(L, lt_error());
  return 2;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static lt_Plan *plan_at(lua_State *L, int i) {
  lt_Plan **p = luaL_checkudata(L, i, PLAN);
  if (!*p) luaL_error(L, "compile: cannot use the plan: it was finalized");
  return *p;
}

static int plan_gc(lua_State *L) {
  lt_Plan **p = luaL_checkudata(L, 1, PLAN);
  lt_plan_release(*p);
  *p = NULL;
  return 0;
}

static lt_Tensor *itself(lt_Tensor *t) { return t; }

/* p:captured() -> the identities of the captured tensors; a list with the tensor of each that the
 * program has created, false for others */
static int plan_captured(lua_State *L) {
  lt_Plan *p = plan_at(L, 1);
  lua_createtable(L, lt_plan_captured_count(p), 0);
  lua_createtable(L, lt_plan_captured_count(p), 0);
  for (int i = 0; i < lt_plan_captured_count(p); i++) {
    lua_pushlightuserdata(L, lt_plan_captured(p, i));
    lua_rawseti(L, -3, i + 1);
    if (lt_plan_captured_made(p, i))
      lt_lua_push_same(L, itself, lt_plan_captured(p, i));
    else
      lua_pushboolean(L, false);
    lua_rawseti(L, -2, i + 1);
  }
  return 2;
}

/* _tensor_id(x) -> a value that is the same for the same tensor; nil when x is no tensor */
static int tensor_id(lua_State *L) {
  lt_Tensor *t = lt_lua_to_tensor(L, 1);
  if (!t) return 0;
  lua_pushlightuserdata(L, t);
  return 1;
}

static void set_count(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, key);
}

/* p:counts() -> {calls, steps, groups, fused, memory, saved, graphs, graph_reason or nil,
 * gradients} */
static int plan_counts(lua_State *L) {
  lt_PlanCounts c;
  lt_plan_counts(plan_at(L, 1), &c);
  lua_createtable(L, 0, 9);
  set_count(L, "calls", c.calls);
  set_count(L, "steps", c.steps);
  set_count(L, "groups", c.groups);
  set_count(L, "fused", c.fused);
  set_count(L, "memory", c.memory);
  set_count(L, "saved", c.saved);
  set_count(L, "graphs", c.graphs);
  if (c.no_graph[0]) {
    lua_pushstring(L, c.no_graph);
    lua_setfield(L, -2, "graph_reason");
  }
  lua_pushboolean(L, c.gradients);
  lua_setfield(L, -2, "gradients");
  return 1;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The user values of an entry. */
enum { ARGUMENTS = 1, CAPTURED, CONSTANTS, GUARDS, BUILD, PLAIN, USER_VALUES = PLAIN };

/* What an argument must be. */
typedef struct Argument {
  bool tensor, requires_grad, loose_bools;
  int same; /* an earlier argument that is the same tensor, or -1 */
  int input;
  lt_Dtype dtype;
  lt_Device device;
  int ndim;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
} Argument;

typedef struct Entry {
  lt_Plan *plan; /* NULL: the function is called */
  bool grad, inference;
  lt_Dtype dtype; /* the default dtype */
  int results;
  int nguards, ncaptured, ninputs;
  int nargs;
  Argument argument[];
} Entry;

static int entry_gc(lua_State *L) {
  Entry *e = luaL_checkudata(L, 1, ENTRY);
  lt_plan_release(e->plan);
  e->plan = NULL;
  return 0;
}

/* Moves a field of the settings, which are at index 2, to a user value of the entry on top. */
static void take_setting(lua_State *L, const char *name, int user) {
  lua_getfield(L, 2, name);
  lua_setiuservalue(L, -2, user);
}

static int length_of(lua_State *L, int entry, int user) {
  int n = lua_getiuservalue(L, entry, user) == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
  lua_pop(L, 1);
  return n;
}

/* Fills in argument i of the entry from the value on top of the stack; those before it are in the
 * table at `list`. */
static void read_argument(lua_State *L, Entry *e, int i, int list) {
  Argument *a = &e->argument[i];
  lt_Tensor *t = lt_lua_to_tensor(L, -1);
  *a = (Argument){.same = -1, .input = -1};
  if (!t) return;
  a->tensor = true;
  a->requires_grad = lt_tensor_requires_grad(t);
  a->loose_bools = lt_bools_are_loose(t);
  a->dtype = t->dtype;
  a->device = lt_tensor_device(t);
  a->ndim = t->ndim;
  memcpy(a->shape, t->shape, sizeof a->shape);
  memcpy(a->strides, t->strides, sizeof a->strides);
  for (int k = 0; k < i && a->same < 0; k++) {
    lua_rawgeti(L, list, k + 1);
    if (lt_lua_to_tensor(L, -1) == t) a->same = k;
    lua_pop(L, 1);
  }
  if (a->same < 0) a->input = e->ninputs++;
}

/* _plan_entry(plan or nil, settings) -> entry */
static int entry_new(lua_State *L) {
  lt_Plan *plan = lua_isnil(L, 1) ? NULL : plan_at(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_getfield(L, 2, "arguments"); /* 3 */
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_getfield(L, 3, "n");
  int n = (int)luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  Entry *e = lua_newuserdatauv(L, sizeof *e + sizeof *e->argument * (size_t)n, USER_VALUES);
  *e = (Entry){.nargs = n,
               .grad = lt_grad_enabled(),
               .inference = lt_inference_enabled(),
               .dtype = lt_dtype_default()};
  luaL_setmetatable(L, ENTRY);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 3, i + 1);
    read_argument(L, e, i, 3);
    lua_pop(L, 1);
  }
  for (int i = 0; i < n; i++) { /* the entry does not keep tensors alive */
    if (!e->argument[i].tensor) continue;
    lua_pushboolean(L, false);
    lua_rawseti(L, 3, i + 1);
  }
  take_setting(L, "arguments", ARGUMENTS);
  take_setting(L, "captured", CAPTURED);
  take_setting(L, "constants", CONSTANTS);
  take_setting(L, "guards", GUARDS);
  take_setting(L, "build", BUILD);
  take_setting(L, "plain", PLAIN);
  e->nguards = length_of(L, 4, GUARDS) / 3;
  e->plan = lt_plan_retain(plan);
  e->ncaptured = plan ? lt_plan_captured_count(plan) : 0;
  e->results = plan ? lt_plan_results(plan) : 0;
  return 1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns whether a tensor is what the argument must be. */
static bool fits_tensor(const Argument *a, lt_Tensor *t) {
  return t && a->dtype == t->dtype && lt_device_equal(a->device, lt_tensor_device(t)) &&
         lt_shape_equal(a->ndim, a->shape, t->ndim, t->shape) &&
         lt_shape_equal(a->ndim, a->strides, t->ndim, t->strides) &&
         a->requires_grad == lt_tensor_requires_grad(t) && a->loose_bools == lt_bools_are_loose(t);
}

/* Returns whether two values are the same; numbers: of the same type, with the same bits, as -0.0
 * and 0.0 have other results. */
static bool is_same(lua_State *L, int i, int j) {
  if (lua_type(L, i) != LUA_TNUMBER || lua_type(L, j) != LUA_TNUMBER) return lua_rawequal(L, i, j);
  bool integer = lua_isinteger(L, i);
  if (integer != lua_isinteger(L, j)) return false;
  if (integer) return lua_tointeger(L, i) == lua_tointeger(L, j);
  lua_Number x = lua_tonumber(L, i), y = lua_tonumber(L, j);
  return memcmp(&x, &y, sizeof x) == 0;
}

/* Returns whether the arguments, at 2, 3, ..., n + 1, fit the entry at `entry`. */
static bool fits(lua_State *L, const Entry *e, int entry, int n) {
  if (n != e->nargs || e->grad != lt_grad_enabled() || e->inference != lt_inference_enabled() ||
      e->dtype != lt_dtype_default())
    return false;
  for (int i = 0; i < n; i++) {
    const Argument *a = &e->argument[i];
    lt_Tensor *t = lt_lua_to_tensor(L, i + 2);
    if (a->tensor) {
      if (!fits_tensor(a, t)) return false;
      if (a->same >= 0 && lt_lua_to_tensor(L, a->same + 2) != t) return false;
      continue;
    }
    if (t) return false;
    lua_getiuservalue(L, entry, ARGUMENTS);
    lua_rawgeti(L, -1, i + 1);
    bool same = is_same(L, -1, i + 2);
    lua_pop(L, 2);
    if (!same) return false;
  }
  return true;
}

/* Pushes the value of a place: a container and a key, which are on top of the stack and popped. An
 * upvalue is a function and its number. */
static void push_place(lua_State *L) {
  if (lua_type(L, -2) == LUA_TFUNCTION) {
    int k = (int)lua_tointeger(L, -1);
    if (!lua_getupvalue(L, -2, k)) lua_pushnil(L);
    lua_replace(L, -3);
    lua_pop(L, 1);
  } else if (lua_type(L, -2) == LUA_TTABLE) {
    lua_rawget(L, -2);
    lua_remove(L, -2);
  } else {
    lua_pop(L, 2);
    lua_pushnil(L);
  }
}

/* Returns whether every guard of the entry has its value. */
static bool guards_hold(lua_State *L, const Entry *e, int entry) {
  bool hold = true;
  if (!e->nguards) return true;
  lua_getiuservalue(L, entry, GUARDS);
  int list = lua_gettop(L);
  for (int i = 0; hold && i < e->nguards; i++) {
    lua_rawgeti(L, list, 3 * i + 1);
    lua_rawgeti(L, list, 3 * i + 2);
    push_place(L);
    lua_rawgeti(L, list, 3 * i + 3);
    hold = is_same(L, -1, -2);
    lua_pop(L, 2);
  }
  lua_settop(L, list - 1);
  return hold;
}

/* Pushes the captured tensors and stores them in `captured`. Returns false when one is no tensor
 * any more. */
static bool push_captured(lua_State *L, const Entry *e, int entry, lt_Tensor **captured) {
  lua_getiuservalue(L, entry, CAPTURED);
  lua_getiuservalue(L, entry, CONSTANTS);
  int list = lua_gettop(L) - 1;
  luaL_checkstack(L, e->ncaptured + 4, "compile");
  for (int i = 0; i < e->ncaptured; i++) {
    lua_rawgeti(L, list, 2 * i + 1);
    if (lua_toboolean(L, -1)) {
      lua_rawgeti(L, list, 2 * i + 2);
      push_place(L);
    } else {
      lua_pop(L, 1);
      lua_rawgeti(L, list + 1, i + 1);
    }
    captured[i] = lt_lua_to_tensor(L, -1);
    if (!captured[i]) return false;
  }
  return true;
}

/* Pushes result i, which is the value of an argument or a captured tensor itself, or the box. */
static void push_result(lua_State *L, const lt_Tensor *t, int first, int last, int box) {
  for (int i = first; i < last; i++)
    if (lt_lua_to_tensor(L, i) == t) {
      lua_pushvalue(L, i);
      return;
    }
  lua_pushvalue(L, box);
}

/* Runs the plan of an entry; the n arguments are at 2. Pushes the results and returns their number;
 * -1 when the entry is outdated. */
static int run_entry(lua_State *L, const Entry *e, int entry, int n) {
  enum { FEW = 32 };
  lt_Tensor *few[FEW], **all = few;
  int count = e->ninputs + e->ncaptured + e->results, first = lua_gettop(L) + 1;
  if (count > FEW) all = lua_newuserdatauv(L, sizeof *all * (size_t)count, 0);
  lt_Tensor **inputs = all, **captured = all + e->ninputs, **out = captured + e->ncaptured;
  for (int i = 0; i < n; i++)
    if (e->argument[i].input >= 0) inputs[e->argument[i].input] = lt_lua_to_tensor(L, i + 2);
  if (e->ncaptured && !push_captured(L, e, entry, captured)) return -1;
  int boxes = lua_gettop(L) + 1;
  luaL_checkstack(L, 2 * e->results + 4, "compile");
  for (int i = 0; i < e->results; i++) (void)lt_lua_box(L);
  lt_Use use;
  lt_Arg args = lt_arg_tensors(all, e->ninputs + e->ncaptured);
  lt_lua_enter(L, lt_lua_state(L));
  lt_use_enter(lt_thread(), &use, &args, 1);
  lt_PlanResult result = lt_plan_run(e->plan, inputs, captured, out);
  lt_use_leave(lt_thread(), &use);
  if (result == LT_PLAN_FAILED) lt_lua_fail(L, "compile");
  if (result == LT_PLAN_OUTDATED) return -1;
  for (int i = 0; i < e->results; i++) ((lt_Box *)lua_touserdata(L, boxes + i))->tensor = out[i];
  lua_getiuservalue(L, entry, BUILD);
  int build = !lua_isnil(L, -1);
  if (!build) lua_pop(L, 1);
  for (int i = 0; i < e->results; i++) {
    const lt_Tensor *t = ((lt_Box *)lua_touserdata(L, boxes + i))->tensor;
    int before = lua_gettop(L);
    push_result(L, t, 2, n + 2, boxes + i);
    if (lua_rawequal(L, before + 1, boxes + i)) {
      lua_settop(L, before);
      push_result(L, t, first, boxes + i, boxes + i);
    }
  }
  if (!build) return e->results;
  int at = lua_gettop(L) - e->results - 1;
  lua_call(L, e->results, LUA_MULTRET);
  return lua_gettop(L) - at;
}

/* Calls the function at the top of the stack with the arguments at 2, ..., n + 1. */
static int call_plain(lua_State *L, int n) {
  int at = lua_gettop(L) - 1;
  luaL_checkstack(L, n + 1, "compile");
  for (int i = 0; i < n; i++) lua_pushvalue(L, i + 2);
  lua_call(L, n, LUA_MULTRET);
  return lua_gettop(L) - at;
}

/* The function that _compiled returns; its upvalues are the list of entries and `miss`, which is
 * called as self, arguments when no entry fits. The first argument is the compiled object. */
static int compiled_call(lua_State *L) {
  int n = lua_gettop(L) - 1, list = n + 2;
  lt_Lua *S = lt_lua_state(L);
  lt_lua_charge(L, S);
  lt_lua_enter(L, S);
  luaL_checkstack(L, 16, "compile");
  lua_pushvalue(L, lua_upvalueindex(LT_UP_OWN));
  const lt_Thread *th = lt_thread();
  bool usable = !th->recorder && !th->capturing && !th->autocast.on && n >= 0;
  int entries = usable ? (int)lua_rawlen(L, list) : 0;
  for (int i = 1; i <= entries; i++) {
    lua_rawgeti(L, list, i);
    const Entry *e = lua_touserdata(L, -1);
    if (fits(L, e, list + 1, n) && guards_hold(L, e, list + 1)) {
      if (!e->plan) {
        lua_getiuservalue(L, list + 1, PLAIN);
        return call_plain(L, n);
      }
      int results = run_entry(L, e, list + 1, n);
      if (results >= 0) return results;
    }
    lua_settop(L, list);
  }
  lua_pushvalue(L, lua_upvalueindex(LT_UP_OWN + 1));
  lua_insert(L, 1);
  lua_settop(L, n + 2);
  lua_call(L, n + 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* _compiled(entries, miss) -> function(self, ...) */
static int compiled_new(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, compiled_call, 4);
  return 1;
}

/* _runs_plain() -> whether compiled functions call their functions: a program is being recorded, or
 * a graph captured, whose replays would share the memory of a plan with other calls */
static int runs_plain(lua_State *L) {
  lua_pushboolean(L, lt_recording_program() != NULL || lt_thread()->capturing != NULL);
  return 1;
}

/* _is_recorded(x) -> whether x is a tensor of a record, which has no data */
static int is_recorded(lua_State *L) {
  const lt_Tensor *t = lt_lua_to_tensor(L, 1);
  lua_pushboolean(L, t && lt_device_equal(lt_tensor_device(t), lt_recording()));
  return 1;
}

void lt_lua_open_plan(lua_State *L, int functions, int methods) {
  static const luaL_Reg recorder[] = {{"plan", recorder_plan}, {NULL, NULL}};
  static const luaL_Reg plan[] = {
      {"captured", plan_captured}, {"counts", plan_counts}, {NULL, NULL}};
  static const luaL_Reg entry[] = {{NULL, NULL}};
  static const luaL_Reg module[] = {{"_plan_entry", entry_new},  {"_compiled", compiled_new},
                                    {"_runs_plain", runs_plain}, {"_is_recorded", is_recorded},
                                    {"_tensor_id", tensor_id},   {NULL, NULL}};
  (void)methods;
  lt_lua_add_to_recorder(L, recorder);
  lt_lua_open_class(L, PLAN, plan, plan_gc);
  lt_lua_open_class(L, ENTRY, entry, entry_gc);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
