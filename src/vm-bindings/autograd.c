/* autograd.c: backward, grad, hooks and functions written in Lua.
 *
 * Lua functions are called by the engine in the middle of a backward pass, under C frames that a
 * Lua error must not jump over. So every such call is protected; its error object waits in the
 * state, and the binding that started the pass raises that very object when the engine has
 * cleaned up. */
#include "autograd/autograd.h"
#include "bindings.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/* A list of tensors at i, or one tensor, or nil (NULL, and *n is 0; so is index 0, a value that was
 * not given). With `gaps`, false stands for none. */
static lt_Tensor **read_list(lua_State *L, const char *name, const char *argument, int i, bool gaps,
                             int *n) {
  *n = 0;
  if (i == 0 || lua_isnoneornil(L, i)) return NULL;
  if (lt_lua_to_box(L, i)) {
    lt_Tensor **out = lua_newuserdatauv(L, sizeof *out, 0);
    *n = 1;
    out[0] = lt_lua_check(L, i, name, argument);
    return out;
  }
  if (lua_type(L, i) != LUA_TTABLE)
    lt_lua_error(L, "%s: argument \"%s\" is %s, it wants a tensor or a list of tensors", name,
                 argument, lt_lua_describe(L, i));
  return lt_lua_tensors(L, name, argument, i, gaps, n);
}

/* Gradients given for n tensors: as many, or none (NULL). */
static lt_Tensor **read_grads(lua_State *L, const char *name, const char *argument, int i, int n) {
  int given;
  lt_Tensor **grads = read_list(L, name, argument, i, true, &given);
  if (grads && given != n)
    lt_lua_error(L, "%s: argument \"%s\" has %d gradients for %d tensors", name, argument, given,
                 n);
  return grads;
}

static bool flag(const lt_LuaArgs *a, int p, bool otherwise) {
  return a->arg[p].kind == LT_ARG_BOOL ? a->arg[p].b : otherwise;
}

/* ---- backward and grad ----------------------------------------------------------------------- */

static const lt_Signature method_signature = {
    .count = 5,
    .param = {LT_LUA_PARAM("self", TENSOR), LT_LUA_OPTION("gradient", TENSOR),
              LT_LUA_OPTION("retain_graph", BOOL), LT_LUA_FLAG("create_graph"),
              LT_LUA_VALUE_OPTION("inputs")}};
static const lt_Signature backward_signature = {
    .count = 5,
    .param = {LT_LUA_VALUE("tensors"), LT_LUA_VALUE_OPTION("grad_tensors"),
              LT_LUA_OPTION("retain_graph", BOOL), LT_LUA_FLAG("create_graph"),
              LT_LUA_VALUE_OPTION("inputs")}};
static const lt_Signature grad_signature = {
    .count = 6,
    .param = {LT_LUA_VALUE("outputs"), LT_LUA_VALUE("inputs"), LT_LUA_VALUE_OPTION("grad_outputs"),
              LT_LUA_OPTION("retain_graph", BOOL), LT_LUA_FLAG("create_graph"),
              LT_LUA_FLAG("allow_unused")}};

/* x:backward{gradient, retain_graph, create_graph, inputs} */
static int backward(lua_State *L) {
  lt_LuaArgs a;
  int n;
  lt_Lua *S = lt_lua_state(L);
  lt_lua_arguments(L, &a, "backward", &method_signature, true);
  lt_Tensor **inputs = read_list(L, "backward", "inputs", a.slot[4], false, &n);
  lt_Tensor *grad = a.arg[1].kind == LT_ARG_TENSOR ? a.arg[1].tensor : NULL;
  bool create = flag(&a, 3, false);
  lt_lua_enter(L, S);
  if (!lt_backward(1, &a.arg[0].tensor, &grad, flag(&a, 2, create), create, n, inputs))
    lt_lua_fail(L, "backward");
  lt_lua_charge(L, S);
  return 0;
}

/* autograd.backward(tensors, grad_tensors, retain_graph, create_graph, inputs) */
static int backward_many(lua_State *L) {
  lt_LuaArgs a;
  int n, ninputs;
  lt_Lua *S = lt_lua_state(L);
  lt_lua_arguments(L, &a, "backward", &backward_signature, false);
  lt_Tensor **tensors = read_list(L, "backward", "tensors", a.slot[0], false, &n);
  lt_Tensor **grads = read_grads(L, "backward", "grad_tensors", a.slot[1], n);
  lt_Tensor **inputs = read_list(L, "backward", "inputs", a.slot[4], false, &ninputs);
  bool create = flag(&a, 3, false);
  lt_lua_enter(L, S);
  if (!lt_backward(n, tensors, grads, flag(&a, 2, create), create, ninputs, inputs))
    lt_lua_fail(L, "backward");
  lt_lua_charge(L, S);
  return 0;
}

/* autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused): a
 * tensor for a tensor, a list (with nil where an input was not used) for a list. */
static int grad(lua_State *L) {
  lt_LuaArgs a;
  int n, ninputs;
  lt_Lua *S = lt_lua_state(L);
  lt_lua_arguments(L, &a, "grad", &grad_signature, false);
  lt_Tensor **outputs = read_list(L, "grad", "outputs", a.slot[0], false, &n);
  lt_Tensor **inputs = read_list(L, "grad", "inputs", a.slot[1], false, &ninputs);
  lt_Tensor **grads = read_grads(L, "grad", "grad_outputs", a.slot[2], n);
  luaL_checkstack(L, 4, "too many arguments");
  bool create = flag(&a, 4, false), one = lt_lua_to_box(L, a.slot[1]) != NULL;
  lt_Tensor **out = lua_newuserdatauv(L, (size_t)ninputs * sizeof *out + 1, 0);
  lua_createtable(L, ninputs, 0);
  int list = lua_gettop(L), first = list + 1;
  luaL_checkstack(L, ninputs + 4, "too many inputs");
  for (int i = 0; i < ninputs; i++) lt_lua_box(L);
  lt_lua_enter(L, S);
  if (!lt_grad(n, outputs, grads, flag(&a, 3, create), create, flag(&a, 5, false), ninputs, inputs,
               out))
    lt_lua_fail(L, "grad");
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

/* ---- calls from the engine ------------------------------------------------------------------- */

/* A Lua value that C holds. */
typedef struct {
  lt_Lua *S;
  int ref;
} Held;

static Held *hold(lua_State *L, int i) {
  Held *h = malloc(sizeof *h);
  if (!h) lt_lua_error(L, "out of memory");
  h->S = lt_lua_state(L);
  lua_pushvalue(L, i);
  h->ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return h;
}

static void forget(void *context) {
  Held *h = context;
  luaL_unref(h->S->main, LUA_REGISTRYINDEX, h->ref);
  free(h);
}

/* A call of a held function with gradients, run protected by `run_job`. */
typedef struct {
  int ref;
  int nin, nout;
  lt_Tensor *const *in;
  lt_Tensor **out; /* each gets one reference or NULL */
  bool list;       /* a custom function: lists come and go; else a hook: one tensor */
} Job;

static void push_gradient(lua_State *L, lt_Tensor *t) {
  if (!t) {
    lua_pushboolean(L, 0);
    return;
  }
  lt_lua_box(L)->tensor = lt_retain(t);
}

static lt_Tensor *take_gradient(lua_State *L, int i, int number) {
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (!t && lua_toboolean(L, i) && number && lt_lua_to_box(L, i))
    lt_lua_error(L, "backward: gradient %d was freed (x:free())", number);
  if (!t && lua_toboolean(L, i) && number)
    lt_lua_error(L, "backward: gradient %d is %s, it wants a tensor or nil", number,
                 lt_lua_describe(L, i));
  if (!t && lua_toboolean(L, i))
    lt_lua_error(L, "register_hook: the hook gave %s, it wants a tensor or nil",
                 lt_lua_describe(L, i));
  return lt_retain(t);
}

/* Only `protect` has a job to give. */
static int run_job(lua_State *L) {
  Job *job = lt_lua_state(L)->job;
  lt_lua_state(L)->job = NULL;
  if (!job) return 0;
  lua_rawgeti(L, LUA_REGISTRYINDEX, job->ref);
  if (!job->list) {
    push_gradient(L, job->in[0]);
    lua_call(L, 1, 1);
    job->out[0] = take_gradient(L, -1, 0);
    return 0;
  }
  lua_getfield(L, -1, "backward");
  lua_createtable(L, job->nin, 0);
  for (int i = 0; i < job->nin; i++) {
    push_gradient(L, job->in[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 1, 1);
  for (int i = 0; i < job->nout; i++) {
    lua_rawgeti(L, -1, i + 1);
    job->out[i] = take_gradient(L, -1, i + 1);
    lua_pop(L, 1);
  }
  return 0;
}

/* Runs the job; false when Lua failed, with the error object in the state. */
static bool protect(lt_Lua *S, Job *job) {
  lua_State *L = S->L;
  if (!lua_checkstack(L, 8)) return lt_error_set("backward: out of Lua's stack");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->runner_ref);
  S->job = job;
  int status = lua_pcall(L, 0, 0, 0);
  S->job = NULL;
  lt_lua_enter(L, S); /* a coroutine may have run in between */
  if (status == LUA_OK) return true;
  for (int i = 0; i < job->nout; i++) {
    lt_release(job->out[i]);
    job->out[i] = NULL;
  }
  if (S->pending_ref != LUA_NOREF) luaL_unref(L, LUA_REGISTRYINDEX, S->pending_ref);
  S->pending_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_error_set("backward: a Lua function failed");
  return false;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static bool run_hook(void *context, lt_Tensor *gradient, lt_Tensor **replacement) {
  Held *h = context;
  *replacement = NULL;
  Job job = {.ref = h->ref, .nin = 1, .nout = 1, .in = &gradient, .out = replacement};
  return protect(h->S, &job);
}

static int handle_remove(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_getfield(L, 1, "tensor");
  lua_getfield(L, 1, "id");
  lt_Tensor *t = lt_lua_to_tensor(L, -2);
  if (t && lua_isinteger(L, -1)) lt_tensor_remove_hook(t, (int)lua_tointeger(L, -1));
  lua_pushnil(L);
  lua_setfield(L, 1, "tensor"); /* a second time does nothing */
  return 0;
}

/* x:register_hook(function(grad) ... end) -> handle; handle:remove() */
static int register_hook(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "register_hook", "self");
  if (lua_type(L, 2) != LUA_TFUNCTION && luaL_getmetafield(L, 2, "__call") == LUA_TNIL)
    lt_lua_error(L, "register_hook: argument \"hook\" is %s, it wants a function",
                 lt_lua_describe(L, 2));
  Held *h = hold(L, 2);
  int id = lt_tensor_add_hook(t, run_hook, h, forget);
  if (!id) {
    forget(h);
    lt_lua_fail(L, "register_hook");
  }
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "tensor");
  lua_pushinteger(L, id);
  lua_setfield(L, -2, "id");
  static const luaL_Reg remove = {"remove", handle_remove};
  lt_lua_function(L, &remove);
  lua_setfield(L, -2, "remove");
  return 1;
}

/* ---- functions of the user's own ------------------------------------------------------------- */

static bool run_custom(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                       lt_Tensor **input_grads) {
  Held *h = context;
  Job job = {.ref = h->ref,
             .nin = noutputs,
             .nout = ninputs,
             .in = grads,
             .out = input_grads,
             .list = true};
  for (int i = 0; i < ninputs; i++) input_grads[i] = NULL;
  return protect(h->S, &job);
}

/* The graph was used up: what was saved for it goes. Assigning to an entry that is there makes
 * no memory. */
static void release_saved(void *context) {
  Held *h = context;
  lua_State *L = h->S->main;
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->ref);
  lua_pushboolean(L, 0);
  lua_rawseti(L, -2, 1);
  lua_pop(L, 1);
}

/* _custom(name, node, inputs, outputs) -> list of outputs joined to the graph.
 * node.backward(grads) gives a list of gradients by input; node[1] (what was saved) becomes
 * false when the graph is used up. inputs: tensors, false for none. */
static int custom(lua_State *L) {
  int nin, nout;
  const char *name = lt_lua_text(L, 1, "Function", "name");
  luaL_checktype(L, 2, LUA_TTABLE);
  lt_Tensor **inputs = read_list(L, name, "inputs", 3, true, &nin);
  lt_Tensor **outputs = read_list(L, name, "results", 4, true, &nout);
  lua_createtable(L, nout, 0);
  int list = lua_gettop(L);
  for (int i = 0; i < nout; i++) {
    lt_lua_box(L)->tensor = lt_retain(outputs[i]);
    lua_rawseti(L, list, i + 1);
  }
  lt_lua_enter(L, lt_lua_state(L));
  lt_CustomFunction f = {name, run_custom, forget, release_saved, hold(L, 2)};
  bool ok = lt_autograd_custom(&f, nin, inputs, nout, outputs);
  for (int i = 0; i < nout;
       i++) { /* an output may have been exchanged; its reference went with it */
    lua_rawgeti(L, list, i + 1);
    lt_lua_to_box(L, -1)->tensor = outputs[i];
    lua_pop(L, 1);
  }
  if (!ok) {
    forget(f.context);
    lt_lua_fail(L, name);
  }
  lua_settop(L, list);
  return 1;
}

/* ---- flags ----------------------------------------------------------------------------------- */

static int requires_grad_(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "requires_grad_", "self");
  bool on = true;
  if (lua_isboolean(L, 2))
    on = lua_toboolean(L, 2);
  else if (!lua_isnoneornil(L, 2))
    lt_lua_error(L, "requires_grad_: argument \"requires_grad\" is %s, it wants true or false",
                 lt_lua_describe(L, 2));
  if (!lt_tensor_set_requires_grad(t, on)) lt_lua_fail(L, "requires_grad_");
  lua_settop(L, 1);
  return 1;
}

static int retain_grad(lua_State *L) {
  if (!lt_tensor_retain_grad(lt_lua_check(L, 1, "retain_grad", "self")))
    lt_lua_fail(L, "retain_grad");
  return 0;
}

/* x:detach_(): x leaves the graph that made it. */
static int detach_(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "detach_", "self");
  if (lt_view_base(t))
    lt_lua_error(
        L, "detach_: the tensor is a view, which belongs to its base's graph. Use x:detach()");
  if (t->meta) lt_meta_set_edge(t->meta, (lt_Edge){0});
  if (!lt_tensor_set_requires_grad(t, false)) lt_lua_fail(L, "detach_");
  lua_settop(L, 1);
  return 1;
}

static int version(lua_State *L) {
  lua_pushinteger(L, lt_tensor_version(lt_lua_check(L, 1, "_version", "self")));
  return 1;
}

void lt_lua_open_autograd(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {
      {"_backward", backward_many}, {"_grad", grad}, {"_custom", custom}, {NULL, NULL}};
  static const luaL_Reg own[] = {{"backward", backward},
                                 {"register_hook", register_hook},
                                 {"requires_grad_", requires_grad_},
                                 {"retain_grad", retain_grad},
                                 {"detach_", detach_},
                                 {"_version", version},
                                 {NULL, NULL}};
  static const luaL_Reg runner = {"run_job", run_job};
  lt_lua_function(L, &runner);
  lt_lua_state(L)->runner_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lt_lua_set_signature(L, -1, "_backward", &backward_signature, false);
  lt_lua_set_signature(L, -1, "_grad", &grad_signature, false);
  lua_pushvalue(L, methods);
  lt_lua_setfuncs(L, own);
  lt_lua_set_signature(L, -1, "backward", &method_signature, true);
  lua_pop(L, 2);
}
