/* hooks.c: Lua functions that the engine calls: hooks, and functions with a gradient of their own.
 *
 * They are called in the middle of a backward pass, under C frames that a Lua error must not jump
 * over. So every such call is protected; its error object waits in the state, and the binding that
 * started the pass raises that very object when the engine has cleaned up.
 *
 * A hook may hold its own tensor: tensor -> hook -> function -> tensor. So that the collector sees
 * this cycle, what C holds is only a number. It stands for an entry, a table with the function,
 * which three other tables know:
 *
 *   entries  weak values: number -> entry; where a call finds it
 *   owned    weak keys: box -> {number -> entry}; while the box is there, so is the entry
 *   held     number -> entry, or false; while something that the collector cannot see may call it:
 *            a graph that leads to the tensor (lt_tensor_add_owned_hook says when)
 *
 * A function with a gradient of its own belongs to the boxes of its results in the same way: each
 * has a hook without a function, whose entry holds that of the function.
 *
 * The invariant: what C calls when graphs change (tell_held, forget, release_saved) allocates
 * nothing and runs no code of Lua's: it sets fields that are there already, on the stack of a
 * coroutine that runs nothing. */
#include "autograd/autograd.h"
#include "bindings.h"

/* ---- entries --------------------------------------------------------------------------------- */

/* What C holds of an entry. */
typedef struct {
  lt_Lua *S;
  lua_Integer number;
} Held;

enum {
  FUNCTION = 1,
  LIST,
  BEHIND
}; /* of an entry: its list in `owned`, and an entry that it holds */

/* Pushes the entry; nil, and false, when it was collected. */
static bool push_entry(lua_State *L, const lt_Lua *S, lua_Integer number) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->entries_ref);
  bool is = lua_rawgeti(L, -1, number) == LUA_TTABLE;
  lua_remove(L, -2);
  return is;
}

/* Sets field `number` of a table in the registry to the value at i. */
static void set_number(lua_State *L, int ref, lua_Integer number, int i) {
  i = lua_absindex(L, i);
  lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
  lua_pushvalue(L, i);
  lua_rawseti(L, -2, number);
  lua_pop(L, 1);
}

/* Pushes the list of entries that belong to the box at i. */
static void push_owned(lua_State *L, const lt_Lua *S, int i) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->owned_ref);
  lua_pushvalue(L, i);
  if (lua_rawget(L, -2) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, i);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_remove(L, -2);
}

static void forget_entry(lt_Lua *S, lua_Integer number) {
  lua_State *L = S->desk;
  lua_settop(L, 0);
  if (push_entry(L, S, number)) {
    lua_pushboolean(L, 0);
    lua_rawseti(L, 1, FUNCTION);
    if (lua_rawgeti(L, 1, LIST) == LUA_TTABLE) {
      lua_pushnil(L);
      lua_rawseti(L, 2, number);
    }
  }
  lua_pushnil(L);
  set_number(L, S->entries_ref, number, -1);
  set_number(L, S->held_ref, number, -1);
  lua_settop(L, 0);
}

static void forget(void *context) {
  Held *h = context;
  forget_entry(h->S, h->number);
  free(h);
}

/* Where the entry is gone there is nothing to hold: its box was unreachable when nothing else could
 * call it. */
static void tell_held(void *context, bool held) {
  const Held *h = context;
  lua_State *L = h->S->desk;
  lua_settop(L, 0);
  if (!held || !push_entry(L, h->S, h->number)) lua_pushboolean(L, 0);
  set_number(L, h->S->held_ref, h->number, -1);
  lua_settop(L, 0);
}

/* An entry for the function at `function`. It belongs to the box at `box`, or is held (box 0).
 * `behind` is an entry that it holds too, or NULL. May raise. */
static Held *hold(lua_State *L, int function, int box, const Held *behind) {
  lt_Lua *S = lt_lua_state(L);
  luaL_checkstack(L, 8, NULL);
  int top = lua_gettop(L), entry = top + 1, list = top + 2;
  lua_createtable(L, 3, 0);
  if (box)
    push_owned(L, S, box);
  else
    lua_pushboolean(L, 0);
  lua_pushvalue(L, function);
  lua_rawseti(L, entry, FUNCTION);
  lua_pushvalue(L, list);
  lua_rawseti(L, entry, LIST);
  if (behind && push_entry(L, S, behind->number)) lua_rawseti(L, entry, BEHIND);
  lua_Integer number = ++S->last_entry;
  set_number(L, S->entries_ref, number, entry);
  if (box) {
    lua_pushvalue(L, entry);
    lua_rawseti(L, list, number);
  }
  lua_pushboolean(L, 0); /* in any case makes the place in `held` */
  set_number(L, S->held_ref, number, box ? -1 : entry);
  Held *h = malloc(sizeof *h);
  if (!h) {
    forget_entry(S, number);
    lt_lua_error(L, "out of memory");
  }
  *h = (Held){S, number};
  lua_settop(L, top);
  return h;
}

/* ---- calls from the engine ------------------------------------------------------------------- */

/* A call of a held function with gradients, run protected by `run_job`. */
typedef struct {
  lua_Integer number; /* of its entry */
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

static void run_list(lua_State *L, Job *job) {
  lua_getfield(L, -1, "backward");
  lua_createtable(L, job->nin, 0);
  for (int i = 0; i < job->nin; i++) {
    push_gradient(L, job->in[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 1, 1);
  if (job->nout && !lua_istable(L, -1))
    lt_lua_error(L, "backward: the gradients are %s, it wants a list", lt_lua_describe(L, -1));
  for (int i = 0; i < job->nout; i++) {
    lua_rawgeti(L, -1, i + 1);
    job->out[i] = take_gradient(L, -1, i + 1);
    lua_pop(L, 1);
  }
}

/* Only `protect` has a job to give. */
static int run_job(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  Job *job = S->job;
  S->job = NULL;
  if (!job || !push_entry(L, S, job->number)) return 0;
  lua_rawgeti(L, -1, FUNCTION);
  if (job->list) {
    run_list(L, job);
    return 0;
  }
  push_gradient(L, job->in[0]);
  lua_call(L, 1, 1);
  job->out[0] = take_gradient(L, -1, 0);
  return 0;
}

/* Runs the job; false when Lua failed, with the error object in the state. */
static bool protect(lt_Lua *S, Job *job) {
  lua_State *L = S->L;
  if (!lt_lua_is_running(S)) return lt_error_set("backward: its Lua state does not run");
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
  Job job = {.number = h->number, .nin = 1, .nout = 1, .in = &gradient, .out = replacement};
  return protect(h->S, &job);
}

static int handle_remove(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
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
  static const luaL_Reg remove = {"remove", handle_remove};
  lt_Tensor *t = lt_lua_check(L, 1, "register_hook", "self");
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "tensor");
  lt_lua_function(L, &remove);
  lua_setfield(L, -2, "remove");
  lua_pushinteger(L, 0);
  lua_setfield(L, -2, "id");
  lt_lua_to_box(L, 1)->owner = true;
  lt_lua_remember(L, 1);
  Held *h = hold(L, 2, 1, NULL); /* from here on nothing raises an error before it has an owner */
  int id = lt_tensor_add_owned_hook(t, run_hook, h, forget, tell_held);
  if (!id) {
    forget(h);
    lt_lua_fail(L, "register_hook");
  }
  lua_pushinteger(L, id);
  lua_setfield(L, -2, "id");
  return 1;
}

/* ---- functions of the user's own ------------------------------------------------------------- */

static bool run_custom(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                       lt_Tensor **input_grads) {
  Held *h = context;
  Job job = {.number = h->number,
             .nin = noutputs,
             .nout = ninputs,
             .in = grads,
             .out = input_grads,
             .list = true};
  for (int i = 0; i < ninputs; i++) input_grads[i] = NULL;
  return protect(h->S, &job);
}

/* The graph was used up: what was saved for it goes. */
static void release_saved(void *context) {
  Held *h = context;
  lua_State *L = h->S->desk;
  lua_settop(L, 0);
  if (push_entry(L, h->S, h->number) && lua_rawgeti(L, 1, FUNCTION) == LUA_TTABLE &&
      lua_rawgeti(L, 2, 1) != LUA_TNIL) {
    lua_pushboolean(L, 0);
    lua_rawseti(L, 2, 1);
  }
  lua_settop(L, 0);
}

/* give(node, list): makes the node's entry belong to its results, whose boxes are in the list.
 * Until all of them have a hook it is held. Only `give_to_results` has an entry to give. */
static int give(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  const Held *h = S->given;
  S->given = NULL;
  if (!h) return 0;
  int n = (int)lua_rawlen(L, 2);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    lt_Box *box = lt_lua_to_box(L, -1);
    if (box && box->tensor && !lt_tensor_is_leaf(box->tensor)) {
      Held *own = hold(L, 1, lua_gettop(L), h);
      box->owner = true;
      if (!lt_tensor_add_owned_hook(box->tensor, NULL, own, forget, tell_held)) {
        forget(own);
        lt_lua_fail(L, NULL);
      }
    }
    lua_pop(L, 1);
  }
  lua_pushboolean(L, 0);
  set_number(L, h->S->held_ref, h->number, -1);
  return 0;
}

/* Calls `give`; where it fails, the results leave the graph again, which forgets h. */
static void give_to_results(lua_State *L, Held *h, int node, int list, int n, lt_Tensor **results) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->S->giver_ref);
  lua_pushvalue(L, node);
  lua_pushvalue(L, list);
  h->S->given = h;
  int status = lua_pcall(L, 2, 0, 0);
  h->S->given = NULL;
  if (status == LUA_OK) return;
  lt_autograd_custom_undo(h, n, results);
  lua_error(L);
}

/* Puts the results into the list: the box that a result came in, or, of one that was exchanged, the
 * new one that holds it already. */
static void set_results(lua_State *L, int given, int list, int n, lt_Tensor *const *before) {
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    lt_Box *box = lt_lua_to_box(L, -1);
    if (box->tensor && box->tensor == before[i]) {
      lt_release(box->tensor);
      box->tensor = NULL;
      if (lt_lua_to_box(L, given))
        lua_pushvalue(L, given);
      else
        lua_rawgeti(L, given, i + 1);
      lua_rawseti(L, list, i + 1);
    }
    lua_pop(L, 1);
  }
}

static bool any_wants_grad(int n, lt_Tensor *const *inputs) {
  bool any = false;
  for (int i = 0; lt_grad_enabled() && !lt_inference_enabled() && i < n; i++)
    any = any || (inputs[i] && lt_tensor_requires_grad(inputs[i]));
  return any;
}

/* For each of n outputs, whether the list at i says that it is an input that was changed in
 * place. */
static bool *read_changed(lua_State *L, int i, int n) {
  bool *changed = lua_newuserdatauv(L, (size_t)n + 1, 0);
  for (int k = 0; k < n; k++) {
    if (lua_istable(L, i))
      lua_rawgeti(L, i, k + 1);
    else
      lua_pushnil(L);
    changed[k] = lua_toboolean(L, -1);
    lua_pop(L, 1);
  }
  return changed;
}

/* Puts a copy of the list in its place at i: nobody else changes that. */
static void own_list(lua_State *L, const char *function, const char *argument, int i) {
  int n = lt_lua_length(L, function, argument, i);
  lua_createtable(L, n, 0);
  for (int k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    lua_rawseti(L, -2, k);
  }
  lua_replace(L, i);
}

/* _custom(name, node, inputs, outputs, changed?) -> list of outputs joined to the graph.
 * node.backward(grads) gives a list of gradients by input; node[1] (what was saved) becomes
 * false when the graph is used up. inputs: tensors, false for none. */
static int custom(lua_State *L) {
  int nin, nout;
  const char *name = lt_lua_text(L, 1, "Function", "name");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 5);
  if (lua_istable(L, 4)) own_list(L, name, "results", 4);
  lt_Tensor **inputs = lt_lua_tensor_list(L, name, "inputs", 3, true, &nin);
  lt_Tensor **outputs = lt_lua_tensor_list(L, name, "results", 4, true, &nout);
  const bool *changed = read_changed(L, 5, nout);
  lt_Tensor **before = lua_newuserdatauv(L, (size_t)nout * sizeof *before + 1, 0);
  lua_createtable(L, nout, 0);
  int list = lua_gettop(L);
  for (int i = 0; i < nout; i++) {
    before[i] = outputs[i];
    lt_lua_box(L)->tensor = lt_retain(outputs[i]);
    lua_rawseti(L, list, i + 1);
  }
  lt_CustomFunction f = {name, run_custom, forget, release_saved, hold(L, 2, 0, NULL)};
  lt_lua_enter(L, lt_lua_state(L));
  bool wanted = any_wants_grad(nin, inputs), joined = false; /* else the core forgets f at once */
  bool ok = lt_autograd_custom_changed(&f, nin, inputs, nout, outputs, changed);
  for (int i = 0; i < nout;
       i++) { /* an output may have been exchanged; its reference went with it */
    lua_rawgeti(L, list, i + 1);
    lt_lua_to_box(L, -1)->tensor = outputs[i];
    joined = joined || (wanted && outputs[i] && lt_dtype_is_float(outputs[i]->dtype));
    lua_pop(L, 1);
  }
  if (!ok) {
    forget(f.context);
    lt_lua_fail(L, name);
  }
  set_results(L, 4, list, nout, before);
  if (joined) give_to_results(L, f.context, 2, list, nout, outputs);
  lua_settop(L, list);
  return 1;
}

/* ---- the module ------------------------------------------------------------------------------ */

static int new_weak(lua_State *L, const char *mode) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

void lt_lua_open_hooks(lua_State *L, int functions, int methods) {
  static const luaL_Reg runner = {"run_job", run_job}, giver = {"give", give};
  static const luaL_Reg module[] = {{"_custom", custom}, {NULL, NULL}};
  static const lt_Function own[] = {
      {"register_hook", register_hook, "(Tensor self, function hook) -> nil", true, false},
      {NULL, NULL, NULL, false, false}};
  lt_Lua *S = lt_lua_state(L);
  S->desk = lua_newthread(L);
  S->desk_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  S->entries_ref = new_weak(L, "v");
  S->owned_ref = new_weak(L, "k");
  lua_newtable(L);
  S->held_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_lua_function(L, &runner);
  S->runner_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_lua_function(L, &giver);
  S->giver_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pushvalue(L, methods);
  lt_lua_set_read(L, own);
  lua_pop(L, 2);
}
