/* communication.c: implements `_communication`: collectives and messages between processes, for
 * lib/lutra/distributed, which checks arguments.
 *
 *   find_library(type)   the name of the library of a device type; nil and why there is none
 *   job()                rank and size of the job; starts the library
 *   is_started(), finalize()
 *   reductions()         the set of the names of the reductions
 *   unique_id(type)      the id of a new communicator (a string), or nil: none is needed
 *   create{device, rank, size, members, number, timeout, check, id}    a communicator
 *   c:submit(now, calls) a work; each call is a table with kind, input, output, count, peer, tag,
 *                        reduction, shape (a tensor), label, check_only, refusal,
 *                        timeout, input_counts, output_counts
 *   c:destroy()
 *   work:wait([timeout]), work:is_done(), work:source()
 *
 * Invariant: a work keeps aliases of its tensors, and the registry keeps the work, until the work
 * is done: what the program frees meanwhile stays in memory. */
#include "accelerator.h"
#include "bindings.h"
#include "device.h"

#define COMMUNICATOR "lutra.communicator"
#define WORK         "lutra.work"

typedef struct Work {
  const lt_DeviceCommunication *part; /* of its backend */
  bool plain;                         /* it exchanges no data, and traces do not show it */
  lt_Work *work;                      /* NULL: it was not submitted, or was released */
} Work;

/* Registry key of the set of works that are not done. */
static const char pending = 0;

static const char *kind_name(int i) { return lt_comm_kind_name((lt_CommKind)i); }
static const char *reduction_name(int i) { return lt_comm_reduction_name((lt_CommReduction)i); }

/* Returns the backend of the device type at i; raises an error when it cannot communicate. */
static const lt_Backend *check_backend(lua_State *L, int i) {
  lt_Device device;
  const char *name = luaL_checkstring(L, i);
  if (!lt_device_parse(name, &device)) lt_lua_fail(L, "distributed");
  const lt_Backend *b = lt_device_backend(device.type);
  if (!b) lt_lua_fail(L, "distributed");
  if (!b->communication.submit)
    luaL_error(L, "distributed: the device %s cannot communicate with other processes", name);
  return b;
}

static int find_library(lua_State *L) {
  lt_Device device;
  char why[400] = "";
  const lt_Backend *b = NULL;
  if (lt_device_parse(luaL_checkstring(L, 1), &device)) b = lt_device_backend(device.type);
  const char *name = b ? check_backend(L, 1)->communication.find_library(why, sizeof why) : NULL;
  lua_pushstring(L, name);
  if (name) return 1;
  lua_pushstring(L, b ? why : lt_error());
  return 2;
}

/* Returns the backend whose library knows the job: the CPU's. */
static const lt_DeviceCommunication *job_part(void) {
  return &lt_device_backend(LT_DEVICE_cpu)->communication;
}

static int job(lua_State *L) {
  int rank = 0, size = 1;
  if (!job_part()->job(&rank, &size)) lt_lua_fail(L, "init_process_group");
  lua_pushinteger(L, rank);
  lua_pushinteger(L, size);
  return 2;
}

static int is_started(lua_State *L) {
  lua_pushboolean(L, job_part()->is_started());
  return 1;
}

static int finalize(lua_State *L) {
  if (!job_part()->finalize()) lt_lua_fail(L, "destroy_process_group");
  return 0;
}

/* reductions() -> the set of the names of the reductions */
static int reductions(lua_State *L) {
  lua_createtable(L, 0, LT_COMM_REDUCTION_COUNT);
  for (int i = 0; i < LT_COMM_REDUCTION_COUNT; i++) {
    lua_pushboolean(L, true);
    lua_setfield(L, -2, reduction_name(i));
  }
  return 1;
}

static int unique_id(lua_State *L) {
  const lt_Backend *b = check_backend(L, 1);
  char id[LT_COMM_ID_BYTES] = {0};
  if (!b->communication.unique_id) return 0;
  if (!b->communication.unique_id(id)) lt_lua_fail(L, "init_process_group");
  lua_pushlstring(L, id, sizeof id);
  return 1;
}

/* ---- fields of tables ------------------------------------------------------------------------ */

static lua_Integer integer_field(lua_State *L, int table, const char *name, lua_Integer other) {
  lua_getfield(L, table, name);
  lua_Integer value = lua_isnil(L, -1) ? other : luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return value;
}

static bool boolean_field(lua_State *L, int table, const char *name) {
  lua_getfield(L, table, name);
  bool value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

/* Returns a string that stays valid as long as the table holds it; NULL without one. */
static const char *text_field(lua_State *L, int table, const char *name) {
  lua_getfield(L, table, name);
  const char *text = lua_tostring(L, -1);
  lua_pop(L, 1);
  return text;
}

/* Returns the number of a name in a list of names, or raises an error. */
static int name_field(lua_State *L, int table, const char *field, const char *(*name_of)(int),
                      int count) {
  const char *text = text_field(L, table, field);
  for (int i = 0; text && i < count; i++)
    if (strcmp(name_of(i), text) == 0) return i;
  return luaL_error(L, "distributed: unknown %s %s", field, text ? text : "nil");
}

/* Pushes a buffer with the integers of a list field and returns it; pushes nil and returns NULL
 * without one. */
static int64_t *push_counts(lua_State *L, int table, const char *name, int n) {
  if (lua_getfield(L, table, name) == LUA_TNIL) return NULL;
  luaL_checktype(L, -1, LUA_TTABLE);
  int64_t *counts = lua_newuserdatauv(L, (size_t)n * sizeof *counts, 0);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, -2, i + 1);
    counts[i] = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  lua_remove(L, -2);
  return counts;
}

/* ---- communicators --------------------------------------------------------------------------- */

/* Copies the id of a new communicator. */
static void read_id(lua_State *L, lt_CommPlan *plan) {
  size_t n = 0;
  lua_getfield(L, 1, "id");
  const char *id = lua_tolstring(L, -1, &n);
  luaL_argcheck(L, !id || n == sizeof plan->id, 1, "an id of unique_id");
  if (id) memcpy(plan->id, id, sizeof plan->id);
  lua_pop(L, 1);
}

static int create(lua_State *L) {
  lt_Device device;
  if (!lt_device_parse(luaL_checkstring(L, (lua_getfield(L, 1, "device"), -1)), &device))
    lt_lua_fail(L, "init_process_group");
  const lt_Backend *b = check_backend(L, -1);
  lt_CommPlan plan = {.rank = (int)integer_field(L, 1, "rank", 0),
                      .size = (int)integer_field(L, 1, "size", 1),
                      .number = (int)integer_field(L, 1, "number", 0),
                      .check = boolean_field(L, 1, "check")};
  lua_getfield(L, 1, "timeout");
  plan.timeout = luaL_checknumber(L, -1);
  luaL_argcheck(L, plan.size > 0 && plan.rank >= 0 && plan.rank < plan.size, 1, "a rank of them");
  luaL_argcheck(L, plan.timeout > 0 && plan.timeout < 1e9, 1, "a number of seconds");
  read_id(L, &plan);
  if (lua_getfield(L, 1, "members") == LUA_TTABLE) {
    int *members = lua_newuserdatauv(L, (size_t)plan.size * sizeof *members, 0);
    for (int i = 0; i < plan.size; i++) {
      lua_rawgeti(L, -2, i + 1);
      members[i] = (int)luaL_checkinteger(L, -1);
      lua_pop(L, 1);
    }
    plan.members = members;
  }
  lt_Communicator **c = lua_newuserdatauv(L, sizeof *c, 0);
  *c = NULL;
  luaL_setmetatable(L, COMMUNICATOR);
  *c = lt_comm_create(b, device.index, &plan);
  if (!*c) lt_lua_fail(L, "init_process_group");
  return 1;
}

static lt_Communicator *check_communicator(lua_State *L) {
  lt_Communicator **c = luaL_checkudata(L, 1, COMMUNICATOR);
  if (!*c) luaL_error(L, "distributed: the process group was destroyed");
  return *c;
}

static int destroy(lua_State *L) {
  lt_Communicator **c = luaL_checkudata(L, 1, COMMUNICATOR);
  lt_Communicator *communicator = *c;
  *c = NULL;
  if (communicator) communicator->backend->communication.destroy(communicator);
  return 0;
}

/* ---- works ----------------------------------------------------------------------------------- */

/* Forgets the aliases of the work at i, if it is done, and removes it from the registry, whose
 * table is at `table`. A work that must be kept stays there. */
static void forget_if_done(lua_State *L, int i, int table) {
  Work *w = lua_touserdata(L, i);
  if (w->work && (!w->part->is_done(w->work) || w->work->keep)) return;
  lua_pushnil(L);
  lua_setiuservalue(L, i, 1);
  lua_pushvalue(L, i);
  lua_pushnil(L);
  lua_rawset(L, table);
}

/* Forgets all works that are done. */
static void sweep(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pending);
  int table = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, table);) {
    lua_pop(L, 1);
    forget_if_done(L, table + 1, table);
  }
  lua_pop(L, 1);
}

/* Reads the tensor of a field: checks that it is contiguous and on the communicator's device, and
 * appends an alias of it to the table at `aliases`. Returns the alias, NULL without a tensor. */
static lt_Tensor *read_tensor(lua_State *L, int call, const char *name, int aliases,
                              const lt_Communicator *c, lt_CommCall *to) {
  if (lua_getfield(L, call, name) == LUA_TNIL) {
    lua_pop(L, 1);
    return NULL;
  }
  const char *kind = lt_comm_kind_name(to->kind);
  lt_Tensor *t = lt_lua_push_alias(L, -1, kind, name);
  lua_rawseti(L, aliases, (lua_Integer)lua_rawlen(L, aliases) + 1);
  lua_pop(L, 1);
  lt_Device d = lt_tensor_device(t);
  if (lt_device_backend(d.type) != c->backend || d.index != c->index)
    luaL_error(L, "%s: the tensor is not on the device of the communicator", kind);
  if (!lt_tensor_is_contiguous(t)) luaL_error(L, "%s: expected a contiguous tensor", kind);
  to->dtype = t->dtype;
  to->stream = lt_stream_of(t);
  return t;
}

/* Returns whether a call has an input (or an output) on this rank. */
static bool has_tensor(const lt_CommCall *call, const lt_Communicator *c, bool input) {
  switch (call->kind) {
  case LT_COMM_barrier:
    return false;
  case LT_COMM_broadcast:
  case LT_COMM_all_reduce:
  case LT_COMM_reduce:
  case LT_COMM_recv:
    return !input;
  case LT_COMM_send:
    return input;
  case LT_COMM_scatter:
    return !input || call->peer == c->rank;
  case LT_COMM_gather:
    return input || call->peer == c->rank;
  default:
    return true;
  }
}

/* Returns the elements that a tensor of a call has: `count`, or a piece of it for each rank; -1
 * when a count is out of range. */
static int64_t numel_of(const lt_CommCall *call, const lt_Communicator *c, bool input) {
  const int64_t *counts = input ? call->input_counts : call->output_counts;
  bool pieces = call->kind == LT_COMM_all_to_all;
  if (input)
    pieces = pieces || call->kind == LT_COMM_scatter || call->kind == LT_COMM_reduce_scatter;
  else
    pieces = pieces || call->kind == LT_COMM_all_gather || call->kind == LT_COMM_gather;
  int64_t sum = 0;
  for (int i = 0; counts && i < c->size; i++) {
    if (counts[i] < 0 || counts[i] > INT_MAX) return -1;
    sum += counts[i];
  }
  if (counts) return sum;
  return call->count < 0 || call->count > INT64_MAX / c->size
             ? -1
             : call->count * (pieces ? c->size : 1);
}

/* Checks one tensor of a call, which may be NULL, and returns its address. */
static void *check_tensor(lua_State *L, lt_CommCall *call, const lt_Communicator *c, lt_Tensor *t,
                          bool input) {
  if (!has_tensor(call, c, input)) return NULL;
  int64_t n = numel_of(call, c, input);
  if (!t || n < 0 || t->numel != n || t->dtype != call->dtype)
    luaL_error(L, "%s: the tensors do not fit the call", lt_comm_kind_name(call->kind));
  if (!input) lt_tensor_touch(t);
  return c->backend->host_memory ? lt_tensor_data(t) : lt_tensor_place(t);
}

/* Raises an error for a call that no rank can make: the checks of lib/lutra/distributed have let it
 * pass, or were not made. */
static void check_call(lua_State *L, const lt_CommCall *call, const lt_Communicator *c, int count) {
  bool message = lt_comm_is_message(call->kind), number = lt_dtype_has_gradient(call->dtype);
  bool defined = call->reduction == LT_COMM_sum ||
                 (call->reduction == LT_COMM_avg ? number : !lt_dtype_is_complex(call->dtype));
  int least = call->kind == LT_COMM_recv ? LT_COMM_ANY_SOURCE : 0;
  if (call->peer < least || call->peer >= c->size || call->tag < 0 || call->tag > 32767 ||
      (lt_comm_reduces(call->kind) && !defined) || (count > 1 && !message) ||
      !call->input_counts != !call->output_counts ||
      (call->input_counts && call->kind != LT_COMM_all_to_all) ||
      (message && (call->check_only || call->refusal)))
    luaL_error(L, "%s: the call is not possible", lt_comm_kind_name(call->kind));
}

/* Fills in the geometry that messages show. */
static void read_shape(lua_State *L, int call, lt_CommCall *to) {
  if (lua_getfield(L, call, "shape") != LUA_TNIL) {
    lt_Tensor *t = lt_lua_check(L, -1, lt_comm_kind_name(to->kind), "shape");
    to->dtype = t->dtype;
    to->ndim = t->ndim;
    if (t->ndim > 0) memcpy(to->shape, t->shape, (size_t)t->ndim * sizeof *to->shape);
  }
  lua_pop(L, 1);
}

/* Reads one call from the table at `call`; leaves on the stack what it refers to. */
static void read_call(lua_State *L, int call, int aliases, const lt_Communicator *c,
                      lt_CommCall *to) {
  *to = (lt_CommCall){.dtype = LT_uint8};
  to->kind = (lt_CommKind)name_field(L, call, "kind", kind_name, LT_COMM_KIND_COUNT);
  to->reduction = (lt_CommReduction)(lua_getfield(L, call, "reduction") == LUA_TNIL
                                         ? 0
                                         : name_field(L, call, "reduction", reduction_name,
                                                      LT_COMM_REDUCTION_COUNT));
  lua_pop(L, 1);
  to->peer = (int)integer_field(L, call, "peer", 0);
  to->tag = (int)integer_field(L, call, "tag", 0);
  to->count = integer_field(L, call, "count", 0);
  lua_getfield(L, call, "timeout");
  to->timeout = luaL_optnumber(L, -1, 0);
  lua_pop(L, 1);
  to->label = text_field(L, call, "label");
  to->refusal = text_field(L, call, "refusal");
  to->check_only = boolean_field(L, call, "check_only");
  read_shape(L, call, to);
  if (to->refusal) return;
  luaL_checkstack(L, 8, NULL);
  to->input_counts = push_counts(L, call, "input_counts", c->size);
  to->output_counts = push_counts(L, call, "output_counts", c->size);
  if (to->check_only) return;
  lt_Tensor *input = read_tensor(L, call, "input", aliases, c, to);
  lt_Tensor *output = read_tensor(L, call, "output", aliases, c, to);
  to->input = check_tensor(L, to, c, input, true);
  to->output = check_tensor(L, to, c, output, false);
}

static int submit(lua_State *L) {
  lt_Communicator *c = check_communicator(L);
  bool now = lua_toboolean(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  int n = (int)lua_rawlen(L, 3);
  luaL_argcheck(L, n > 0, 3, "at least one call");
  sweep(L);
  lua_createtable(L, 2, 0); /* aliases: 4 */
  lt_CommCall *calls = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *calls, 0);
  Work *w = lua_newuserdatauv(L, sizeof *w, 2); /* 6 */
  *w = (Work){.part = &c->backend->communication};
  luaL_setmetatable(L, WORK);
  lua_pushvalue(L, 4);
  lua_setiuservalue(L, 6, 1);
  lua_pushvalue(L, 1); /* keeps the communicator */
  lua_setiuservalue(L, 6, 2);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pending);
  lua_pushvalue(L, 6);
  lua_pushboolean(L, true);
  lua_rawset(L, 7);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 3, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    read_call(L, lua_gettop(L), 4, c, &calls[i]);
    check_call(L, &calls[i], c, n);
  }
  w->plain = calls[0].check_only || calls[0].refusal;
  w->work = w->plain ? w->part->submit(c, calls, n, now) : lt_comm_submit(c, calls, n, now);
  if (!w->work) lt_lua_fail(L, "distributed");
  lua_pushvalue(L, 6);
  return 1;
}

static Work *check_work(lua_State *L) {
  Work *w = luaL_checkudata(L, 1, WORK);
  if (!w->work) luaL_error(L, "distributed: the work was not submitted");
  return w;
}

static int work_wait(lua_State *L) {
  Work *w = check_work(L);
  double timeout = luaL_optnumber(L, 2, 0);
  lua_getiuservalue(L, 1, 2);
  const lt_Communicator *const *c = lua_touserdata(L, -1);
  bool plain = w->plain || !*c; /* without the group there is nothing to trace */
  bool ok = plain ? w->part->wait(w->work, timeout) : lt_comm_wait(w->work, timeout);
  lua_settop(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pending);
  forget_if_done(L, 1, 2);
  if (!ok) lt_lua_fail(L, "distributed");
  return 0;
}

static int work_is_done(lua_State *L) {
  Work *w = check_work(L);
  lua_pushboolean(L, w->part->is_done(w->work));
  return 1;
}

static int work_source(lua_State *L) {
  lua_pushinteger(L, check_work(L)->work->source);
  return 1;
}

/* A work that is not done when the Lua state is closed is given up, with its memory. */
static int work_gc(lua_State *L) {
  Work *w = luaL_checkudata(L, 1, WORK);
  if (w->work && !w->work->keep && w->part->is_done(w->work)) w->part->release(w->work);
  w->work = NULL;
  return 0;
}

void lt_lua_open_communication(lua_State *L, int functions, int methods) {
  static const luaL_Reg communicator[] = {{"submit", submit}, {"destroy", destroy}, {NULL, NULL}};
  static const luaL_Reg work[] = {
      {"wait", work_wait}, {"is_done", work_is_done}, {"source", work_source}, {NULL, NULL}};
  static const luaL_Reg own[] = {{"find_library", find_library},
                                 {"job", job},
                                 {"is_started", is_started},
                                 {"finalize", finalize},
                                 {"unique_id", unique_id},
                                 {"reductions", reductions},
                                 {"create", create},
                                 {NULL, NULL}};
  (void)methods;
  lt_lua_open_class(L, COMMUNICATOR, communicator, NULL);
  lt_lua_open_class(L, WORK, work, work_gc);
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pending);
  lua_newtable(L);
  lt_lua_setfuncs(L, own);
  lua_setfield(L, functions, "_communication");
}
