/* autograd.c: backward, grad, and the autograd flags of a tensor. */
#include "autograd/autograd.h"
#include "bindings.h"

/* ---- lists ----------------------------------------------------------------------------------- */

lt_Tensor **lt_lua_tensor_list(lua_State *L, const char *name, const char *argument, int i,
                               bool gaps, int *n) {
  *n = 0;
  if (i == 0 || lua_isnoneornil(L, i)) return NULL;
  if (lt_lua_to_box(L, i)) {
    lt_Tensor **out = lua_newuserdatauv(L, sizeof *out, 0);
    *n = 1;
    out[0] = lt_lua_check(L, i, name, argument);
    return out;
  }
  if (lua_type(L, i) != LUA_TTABLE)
    lt_lua_error(L, "%s: expected a tensor or a list of tensors for argument '%s', got %s", name,
                 argument, lt_lua_describe(L, i));
  return lt_lua_tensors(L, name, argument, i, gaps, n);
}

/* Returns the gradients given for n tensors, NULL if none are given; raises an error for another
 * number of them. */
static lt_Tensor **read_grads(lua_State *L, const char *name, const char *argument, int i, int n) {
  int given;
  lt_Tensor **grads = lt_lua_tensor_list(L, name, argument, i, true, &given);
  if (grads && given != n)
    lt_lua_error(L, "%s: expected %d gradient%s for argument '%s', one for each tensor, got %d",
                 name, n, n == 1 ? "" : "s", argument, given);
  return grads;
}

/* Returns boolean argument p, or `otherwise` if it was not given. */
static bool flag(const lt_LuaArgs *a, int p, bool otherwise) {
  return a->arg[p].kind == LT_ARG_BOOL ? a->arg[p].b : otherwise;
}

/* ---- backward and grad ----------------------------------------------------------------------- */

#define LT_SIG_KEEP "bool? retain_graph = nil, bool create_graph = false"
static const char method_signature[] =
    "(Tensor self, Tensor? gradient = nil, " LT_SIG_KEEP ", any? inputs = nil) -> nil";
static const char backward_signature[] =
    "(data tensors, any? grad_tensors = nil, " LT_SIG_KEEP ", any? inputs = nil) -> nil";
static const char grad_signature[] =
    "(data outputs, any inputs, any? grad_outputs = nil, " LT_SIG_KEEP
    ", bool allow_unused = false) -> nil";

/* Calls the functions that were queued in a pass, which is over, in their order. */
static void call_queued(lua_State *L, const lt_Lua *S, lua_Integer pass) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->queued_ref);
  if (lua_rawgeti(L, -1, pass) == LUA_TTABLE) {
    lua_pushnil(L);
    lua_rawseti(L, -3, pass);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) lua_call(L, 0, 0);
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
}

/* The arguments of lt_backward. */
typedef struct BackwardCall {
  int n, ninputs;
  lt_Tensor *const *tensors, *const *grads, *const *inputs;
  bool retain, create;
} BackwardCall;

/* Runs a backward pass with a number of its own, then the functions that were queued in it, or
 * drops them when the pass fails. */
static void run_backward(lua_State *L, const BackwardCall *c) {
  lt_Lua *S = lt_lua_state(L);
  luaL_checkstack(L, 8, NULL);
  lt_lua_enter(L, S);
  lua_Integer outer = S->pass, pass = S->pass = ++S->passes;
  bool ok = lt_backward(c->n, c->tensors, c->grads, c->retain, c->create, c->ninputs, c->inputs);
  S->pass = outer;
  if (!ok) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->queued_ref);
    if (lua_rawgeti(L, -1, pass) != LUA_TNIL) {
      lua_pushnil(L);
      lua_rawseti(L, -3, pass);
    }
    lt_lua_fail(L, "backward");
  }
  call_queued(L, S, pass);
  lt_lua_charge(L, S);
}

/* _backward_pass() -> the number of the running backward pass, from 1 on, or nil: none runs, or the
 * innermost pass is one of autograd.grad, which accumulates no grads */
static int backward_pass(lua_State *L) {
  const lt_Lua *S = lt_lua_state(L);
  if (S->pass)
    lua_pushinteger(L, S->pass);
  else
    lua_pushnil(L);
  return 1;
}

/* _after_backward(f): calls f() after the running backward pass, when all grads are set. If the
 * pass fails, f is not called. */
static int after_backward(lua_State *L) {
  const lt_Lua *S = lt_lua_state(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  if (!S->pass) lt_lua_error(L, "_after_backward: cannot queue a function: no backward runs");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->queued_ref);
  if (lua_rawgeti(L, 2, S->pass) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawseti(L, 2, S->pass);
  }
  lua_pushvalue(L, 1);
  lua_rawseti(L, 3, (lua_Integer)lua_rawlen(L, 3) + 1);
  return 0;
}

/* x:backward{gradient, retain_graph, create_graph, inputs} */
static int backward(lua_State *L) {
  lt_LuaArgs a;
  int n;
  lt_lua_arguments(L, lt_lua_state(L), &a, "backward", lt_lua_signature(L, method_signature), true);
  lt_Tensor **inputs = lt_lua_tensor_list(L, "backward", "inputs", a.slot[4], false, &n);
  lt_Tensor *grad = a.arg[1].kind == LT_ARG_TENSOR ? a.arg[1].tensor : NULL;
  bool create = flag(&a, 3, false);
  run_backward(L, &(BackwardCall){.n = 1,
                                  .tensors = &a.arg[0].tensor,
                                  .grads = &grad,
                                  .retain = flag(&a, 2, create),
                                  .create = create,
                                  .ninputs = n,
                                  .inputs = inputs});
  return 0;
}

/* autograd.backward(tensors, grad_tensors, retain_graph, create_graph, inputs) */
static int backward_many(lua_State *L) {
  lt_LuaArgs a;
  int n, ninputs;
  lt_lua_arguments(L, lt_lua_state(L), &a, "backward", lt_lua_signature(L, backward_signature),
                   false);
  lt_Tensor **tensors = lt_lua_tensor_list(L, "backward", "tensors", a.slot[0], false, &n);
  lt_Tensor **grads = read_grads(L, "backward", "grad_tensors", a.slot[1], n);
  lt_Tensor **inputs = lt_lua_tensor_list(L, "backward", "inputs", a.slot[4], false, &ninputs);
  bool create = flag(&a, 3, false);
  run_backward(L, &(BackwardCall){.n = n,
                                  .tensors = tensors,
                                  .grads = grads,
                                  .retain = flag(&a, 2, create),
                                  .create = create,
                                  .ninputs = ninputs,
                                  .inputs = inputs});
  return 0;
}

/* autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused) -> a
 * tensor for a single input, a list for a list, with nil for an unused input. The boxes of the
 * results are on the stack before the gradients are computed. */
static int grad(lua_State *L) {
  lt_LuaArgs a;
  int n, ninputs;
  lt_Lua *S = lt_lua_state(L);
  lt_lua_arguments(L, lt_lua_state(L), &a, "grad", lt_lua_signature(L, grad_signature), false);
  lt_Tensor **outputs = lt_lua_tensor_list(L, "grad", "outputs", a.slot[0], false, &n);
  lt_Tensor **inputs = lt_lua_tensor_list(L, "grad", "inputs", a.slot[1], false, &ninputs);
  lt_Tensor **grads = read_grads(L, "grad", "grad_outputs", a.slot[2], n);
  luaL_checkstack(L, 4, "too many arguments");
  bool create = flag(&a, 4, false), one = lt_lua_to_box(L, a.slot[1]) != NULL;
  lt_Tensor **out = lua_newuserdatauv(L, (size_t)ninputs * sizeof *out + 1, 0);
  lua_createtable(L, ninputs, 0);
  int list = lua_gettop(L), first = list + 1;
  luaL_checkstack(L, ninputs + 4, "too many inputs");
  for (int i = 0; i < ninputs; i++) lt_lua_box(L);
  lt_lua_enter(L, S);
  lua_Integer outer = S->pass;
  S->pass = 0;
  bool ok = lt_grad(n, outputs, grads, flag(&a, 3, create), create, flag(&a, 5, false), ninputs,
                    inputs, out);
  S->pass = outer;
  if (!ok) lt_lua_fail(L, "grad");
  for (int i = 0; i < ninputs; i++) ((lt_Box *)lua_touserdata(L, first + i))->tensor = out[i];
  for (int i = ninputs - 1; i >= 0; i--) {
    if (!out[i]) {
      lua_pop(L, 1);
      lua_pushnil(L);
    }
    if (one) return 1;
    lua_rawseti(L, list, i + 1);
  }
  lt_lua_charge(L, S);
  return 1;
}

/* ---- flags ----------------------------------------------------------------------------------- */

static int requires_grad_(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "requires_grad_", "self");
  if (!lt_tensor_set_requires_grad(t, lua_toboolean(L, 2))) lt_lua_fail(L, "requires_grad_");
  lua_settop(L, 1);
  return 1;
}

static int retain_grad(lua_State *L) {
  if (!lt_tensor_retain_grad(lt_lua_check(L, 1, "retain_grad", "self")))
    lt_lua_fail(L, "retain_grad");
  return 0;
}

/* x:detach_(): removes x from the graph that produced it */
static int detach_(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "detach_", "self");
  if (lt_view_base(t))
    lt_lua_error(L, "detach_: cannot detach a view in place: it belongs to the graph of its "
                    "base\nhint: x:detach()");
  if (t->meta) lt_meta_set_edge(t->meta, (lt_Edge){0});
  if (!lt_tensor_set_requires_grad(t, false)) lt_lua_fail(L, "detach_");
  lua_settop(L, 1);
  return 1;
}

static int version(lua_State *L) {
  lua_pushinteger(L, lt_tensor_version(lt_lua_check(L, 1, "_version", "self")));
  return 1;
}

/* _gradients(list) -> list of the tensors' gradients, false for none, and the device of all
 * tensors, nil if they have several. One call for loops over many parameters. */
static int gradients(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  int n = lt_lua_length(L, "_gradients", "list", 1);
  lt_Device device = lt_cpu();
  bool alike = true;
  lua_createtable(L, n, 0);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    lt_Tensor *t = lt_lua_check(L, -1, "_gradients", "list");
    lt_Device here = lt_tensor_device(t);
    alike = alike && (i == 1 || lt_device_equal(here, device));
    device = here;
    lt_lua_push_same(L, lt_tensor_grad, t);
    if (lua_isnil(L, -1)) {
      lua_pushboolean(L, false);
      lua_replace(L, -2);
    }
    lua_rawseti(L, 2, i);
    lua_pop(L, 1);
  }
  if (alike)
    lua_pushstring(L, lt_device_name(device));
  else
    lua_pushnil(L);
  return 2;
}

void lt_lua_open_autograd(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {
      {"_backward", backward_many},        {"_grad", grad},
      {"_gradients", gradients},           {"_backward_pass", backward_pass},
      {"_after_backward", after_backward}, {NULL, NULL}};
  static const luaL_Reg own[] = {{"backward", backward}, {"_version", version}, {NULL, NULL}};
  static const lt_Function flags[] = {
      {"requires_grad_", requires_grad_, "(Tensor self, bool requires_grad = true)", true, false},
      {"retain_grad", retain_grad, "(Tensor self) -> nil", true, false},
      {"detach_", detach_, "(Tensor self)", true, false},
      {NULL, NULL, NULL, false, false}};
  lua_newtable(L);
  lt_lua_state(L)->queued_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_signature(L, -1, "_backward", backward_signature, false);
  lt_lua_set_signature(L, -1, "_grad", grad_signature, false);
  lua_pushvalue(L, methods);
  lt_lua_setfuncs(L, own);
  lt_lua_set_read(L, flags);
  lt_lua_set_signature(L, -1, "backward", method_signature, true);
  lua_pop(L, 2);
}
