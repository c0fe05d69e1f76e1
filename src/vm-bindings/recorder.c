/* recorder.c: recorders of calls, for lib/lutra/elementwise and lib/lutra/compile. program.c and
 * plan.c add what is made of a record.
 *
 *   r = _recorder([device])       starts to record; with a device a whole program, which may read
 *                                 tensors with data (lt_recorder_begin_for)
 *   r:input(dtype, shape)         an input, a tensor of the recording device
 *   r:stand_in(x)                 the tensor that the program gets in place of its argument x
 *   r:mark()                      how many calls there are so far
 *   r:reason()                    why the record does not describe the program, or nil
 *   r:stop()                      ends the recording */
#include "recorder.h"
#include "bindings.h"

#define RECORDER "lutra.call_recorder"

static int recorder_new(lua_State *L) {
  lt_Device device;
  bool captures = !lua_isnoneornil(L, 1);
  if (captures && !lt_device_parse(luaL_checkstring(L, 1), &device)) lt_lua_fail(L, "recorder");
  lt_Recorder **r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = NULL;
  luaL_setmetatable(L, RECORDER);
  *r = captures ? lt_recorder_begin_for(device) : lt_recorder_begin();
  if (!*r) lt_lua_fail(L, "recorder");
  return 1;
}

lt_Recorder *lt_lua_recorder(lua_State *L) {
  lt_Recorder **r = luaL_checkudata(L, 1, RECORDER);
  if (!*r) luaL_error(L, "recorder: cannot use it: it was finalized");
  return *r;
}

static int recorder_input(lua_State *L) {
  lt_Recorder *r = lt_lua_recorder(L);
  int64_t shape[LT_MAX_DIMS];
  lt_Dtype dtype = lt_dtype_from_name(luaL_checkstring(L, 2));
  if (dtype == LT_DTYPE_NONE) lt_lua_fail(L, "recorder");
  luaL_checktype(L, 3, LUA_TTABLE);
  int ndim = lt_lua_length(L, "recorder", "shape", 3);
  if (ndim > LT_MAX_DIMS)
    return luaL_error(L, "recorder: expected at most %d dimensions", LT_MAX_DIMS);
  for (int i = 0; i < ndim; i++) {
    lua_rawgeti(L, 3, i + 1);
    shape[i] = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  lt_lua_enter(L, lt_lua_state(L));
  lt_Box *box = lt_lua_box(L);
  box->tensor = lt_recorder_input(r, dtype, ndim, shape);
  if (!box->tensor) lt_lua_fail(L, "recorder");
  return 1;
}

static int recorder_stand_in(lua_State *L) {
  lt_Recorder *r = lt_lua_recorder(L);
  lt_Box *box = lt_lua_box(L);
  lt_Tensor *t = lt_lua_check(L, 2, "compile", "argument");
  lt_Tensor *stand_in = lt_recorder_stand_in(r, t, true);
  if (!stand_in) lt_lua_fail(L, "compile");
  box->tensor = lt_retain(stand_in);
  return 1;
}

static int recorder_mark(lua_State *L) {
  lua_pushinteger(L, lt_lua_recorder(L)->ncalls);
  return 1;
}

static int recorder_reason(lua_State *L) {
  const lt_Recorder *r = lt_lua_recorder(L);
  if (!r->reason[0]) return 0;
  lua_pushstring(L, r->reason);
  return 1;
}

static int recorder_stop(lua_State *L) {
  lt_Recorder **r = luaL_checkudata(L, 1, RECORDER);
  if (*r) lt_recorder_end(*r); /* a finalizer may call this after the recorder was finalized */
  return 0;
}

static int recorder_gc(lua_State *L) {
  lt_Recorder **r = luaL_checkudata(L, 1, RECORDER);
  lt_recorder_free(*r);
  *r = NULL;
  return 0;
}

void lt_lua_add_to_recorder(lua_State *L, const luaL_Reg *methods) {
  luaL_getmetatable(L, RECORDER);
  lt_lua_setfuncs(L, methods);
  lua_pop(L, 1);
}

void lt_lua_open_recorder(lua_State *L, int functions, int methods) {
  static const luaL_Reg recorder[] = {{"input", recorder_input},
                                      {"mark", recorder_mark},
                                      {"stand_in", recorder_stand_in},
                                      {"reason", recorder_reason},
                                      {"stop", recorder_stop},
                                      {"__close", recorder_stop},
                                      {NULL, NULL}};
  static const luaL_Reg module[] = {{"_recorder", recorder_new}, {NULL, NULL}};
  (void)methods;
  lt_lua_open_class(L, RECORDER, recorder, recorder_gc);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
