/* hooks.c: Lua functions that the autograd engine calls: hooks, and functions with custom
 * gradients.
 *
 * They are called during a backward pass, above C frames that a Lua error must not jump over. So
 * each call is protected; its error object waits in the state (pending_ref), and the binding that
 * started the pass raises the same object when the engine has cleaned up.
 *
 * A hook may refer to its own tensor: tensor -> hook -> function -> tensor. So that the collector
 * can see this cycle, C holds only a number. The number identifies an entry, a table with the
 * function, which three other tables refer to:
 *
 *   entries  weak values: number -> entry; where a call finds it
 *   owned    weak keys: box -> {number -> entry}; keeps the entry alive while the box is
 *   held     number -> entry, or false; keeps the entry alive while something invisible to the
 *            collector may call it: a graph that leads to the tensor (lt_tensor_add_owned_hook)
 *
 * A function with a custom gradient belongs to the boxes of its results in the same way: each of
 * them has a hook without a function, whose entry refers to the entry of the function.
 *
 * Invariant: callbacks that the core makes when graphs change (set_held, forget, release_saved)
 * allocate nothing and run no Lua code: they set fields that already exist, on the stack of a
 * coroutine that runs no code. */
#include "autograd/autograd.h"
#include "bindings.h"

/* ---- entries --------------------------------------------------------------------------------- */

/* A reference to an entry, owned by the core: the context of its callbacks. */
typedef struct {
  lt_Lua *S;
  lua_Integer number;
} EntryRef;

enum { PACK = 1, UNPACK }; /* fields of a pair of functions for saved tensors */

enum {
  FUNCTION = 1,
  LIST,
  NODE_ENTRY
}; /* fields of an entry: the function, its list in `owned`, and the entry of a node */

/* Pushes the entry and returns true; pushes nil and returns false when it was collected. */
static bool push_entry(lua_State *L, const lt_Lua *S, lua_Integer number) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->entries_ref);
  bool is = lua_rawgeti(L, -1, number) == LUA_TTABLE;
  lua_remove(L, -2);
  return is;
}

/* Sets field `number` of the table with the registry reference `ref` to the value at i. */
static void set_number(lua_State *L, int ref, lua_Integer number, int i) {
  i = lua_absindex(L, i);
  lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
  lua_pushvalue(L, i);
  lua_rawseti(L, -2, number);
  lua_pop(L, 1);
}

/* Pushes the list of entries that belong to the box at i; creates it if needed. */
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

/* Removes an entry from all tables. */
static void forget_entry(lt_Lua *S, lua_Integer number) {
  lua_State *L = S->scratch;
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

/* Frees an EntryRef and its entry; called by the core, or where the core did not take it over. */
static void forget(void *context) {
  EntryRef *h = context;
  forget_entry(h->S, h->number);
  free(h);
}

/* Records whether the core may call the entry. An entry that was collected stays so: its box was
 * unreachable while nothing else could call it. */
static void set_held(void *context, bool held) {
  const EntryRef *h = context;
  lua_State *L = h->S->scratch;
  lua_settop(L, 0);
  if (!held || !push_entry(L, h->S, h->number)) lua_pushboolean(L, 0);
  set_number(L, h->S->held_ref, h->number, -1);
  lua_settop(L, 0);
}

/* Creates an entry for the function at `function`, owned by the box at `box`, or held (box 0), and
 * returns a reference to it, which `forget` frees. The entry keeps that of `node` (may be NULL)
 * alive. May raise an error. */
static EntryRef *new_entry(lua_State *L, int function, int box, const EntryRef *node) {
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
  if (node && push_entry(L, S, node->number)) lua_rawseti(L, entry, NODE_ENTRY);
  lua_Integer number = ++S->last_entry;
  set_number(L, S->entries_ref, number, entry);
  if (box) {
    lua_pushvalue(L, entry);
    lua_rawseti(L, list, number);
  }
  lua_pushboolean(L, 0); /* reserves the field in `held` in every case */
  set_number(L, S->held_ref, number, box ? -1 : entry);
  EntryRef *h = malloc(sizeof *h);
  if (!h) {
    forget_entry(S, number);
    lt_lua_error(L, "out of memory");
  }
  *h = (EntryRef){S, number};
  lua_settop(L, top);
  return h;
}

/* ---- calls from the engine ------------------------------------------------------------------- */

typedef enum { JOB_HOOK, JOB_READY, JOB_LIST, JOB_PACK, JOB_UNPACK } JobKind;

/* One call of a Lua function, made by run_job in protected mode. */
typedef struct {
  lua_Integer number; /* number of the entry */
  int nin, nout;
  lt_Tensor *const *in;
  lt_Tensor **out;  /* results: one reference or NULL each */
  JobKind kind;     /* JOB_LIST: a function with gradients, called with a list, returns one */
  EntryRef *packed; /* result of JOB_PACK */
} Job;

/* Pushes a gradient in a new box, false for none. */
static void push_gradient(lua_State *L, lt_Tensor *t) {
  if (!t) {
    lua_pushboolean(L, 0);
    return;
  }
  lt_lua_box(L)->tensor = lt_retain(t);
}

/* Returns a new reference to the tensor at i, NULL for nil or false; raises an error for other
 * values. `number`: of the gradient in a list, 0 for the result of a hook. */
static lt_Tensor *take_gradient(lua_State *L, int i, int number) {
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (!t && lua_toboolean(L, i) && number && lt_lua_to_box(L, i))
    lt_lua_error(L,
                 "backward: expected a tensor or nil for gradient %d, got a tensor that was freed "
                 "(x:free())",
                 number);
  if (!t && lua_toboolean(L, i) && number)
    lt_lua_error(L, "backward: expected a tensor or nil for gradient %d, got %s", number,
                 lt_lua_describe(L, i));
  if (!t && lua_toboolean(L, i))
    lt_lua_error(L, "register_hook: expected the hook to return a tensor or nil, got %s",
                 lt_lua_describe(L, i));
  return lt_retain(t);
}

/* Calls node:backward with the list of gradients and takes the list that it returns. The node's
 * table is on top of the stack. */
static void run_list(lua_State *L, Job *job) {
  lua_getfield(L, -1, "backward");
  lua_pushvalue(L, -2);
  lua_createtable(L, job->nin, 0);
  for (int i = 0; i < job->nin; i++) {
    push_gradient(L, job->in[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 2, 1);
  if (job->nout && !lua_istable(L, -1))
    lt_lua_error(L, "backward: expected a list of gradients, got %s", lt_lua_describe(L, -1));
  for (int i = 0; i < job->nout; i++) {
    lua_rawgeti(L, -1, i + 1);
    job->out[i] = take_gradient(L, -1, i + 1);
    lua_pop(L, 1);
  }
}

/* Calls the pack function, at PACK of the pair on top of the stack, with the tensor. The result is
 * an entry with a table of the value and the unpack function. */
static void run_pack(lua_State *L, Job *job) {
  lua_createtable(L, 2, 0);
  lua_rawgeti(L, -2, PACK);
  lt_lua_box(L)->tensor = lt_retain(job->in[0]);
  lua_call(L, 1, 1);
  lua_rawseti(L, -2, PACK);
  lua_rawgeti(L, -2, UNPACK);
  lua_rawseti(L, -2, UNPACK);
  job->packed = new_entry(L, lua_gettop(L), 0, NULL);
}

/* Calls the unpack function with the packed value. */
static void run_unpack(lua_State *L, Job *job) {
  lua_rawgeti(L, -1, UNPACK);
  lua_rawgeti(L, -2, PACK);
  lua_call(L, 1, 1);
  lt_Tensor *t = lt_lua_to_tensor(L, -1);
  if (!t)
    lt_lua_error(L,
                 "saved_tensors_hooks: expected the function 'unpack_hook' to return a tensor, "
                 "got %s",
                 lt_lua_describe(L, -1));
  job->out[0] = lt_retain(t);
}

/* Calls the function on top of the stack with the gradient, which no hook changes anymore. The
 * function must not keep it: its box is emptied, so that the gradient becomes the grad without a
 * copy. */
static void run_ready(lua_State *L, const Job *job) {
  push_gradient(L, job->in[0]);
  lua_pushvalue(L, -1);
  lua_insert(L, -3);
  lua_call(L, 1, 0);
  lt_Box *box = lt_lua_to_box(L, -1);
  lt_release(box->tensor);
  box->tensor = NULL;
}

/* Runs S->job, which only `run_protected` sets; does nothing when a program calls it directly. */
static int run_job(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  Job *job = S->job;
  S->job = NULL;
  if (!job || !push_entry(L, S, job->number)) return 0;
  lua_rawgeti(L, -1, FUNCTION);
  if (job->kind == JOB_READY) {
    run_ready(L, job);
    return 0;
  }
  if (job->kind != JOB_HOOK) {
    (job->kind == JOB_LIST ? run_list : job->kind == JOB_PACK ? run_pack : run_unpack)(L, job);
    return 0;
  }
  push_gradient(L, job->in[0]);
  lua_call(L, 1, 1);
  job->out[0] = take_gradient(L, -1, 0);
  return 0;
}

/* Runs the job. Returns false when Lua failed, with the error object in pending_ref; the job's
 * results are released then. */
static bool run_protected(lt_Lua *S, Job *job) {
  lua_State *L = S->L;
  if (!lt_lua_is_running(S))
    return lt_error_set("backward: cannot call a Lua function: its Lua state is not running");
  if (!lua_checkstack(L, 8))
    return lt_error_set("backward: cannot call a Lua function: Lua's stack is full");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->runner_ref);
  S->job = job;
  int paused = lt_thread()->autocast_paused; /* a function may use autocast in a backward pass */
  lt_thread()->autocast_paused = 0;
  int status = lua_pcall(L, 0, 0, 0);
  lt_thread()->autocast_paused = paused;
  S->job = NULL;
  lt_lua_enter(L, S); /* a coroutine may have run in between */
  if (status == LUA_OK) return true;
  for (int i = 0; i < job->nout; i++) {
    lt_release(job->out[i]);
    job->out[i] = NULL;
  }
  if (S->pending_ref != LUA_NOREF) luaL_unref(L, LUA_REGISTRYINDEX, S->pending_ref);
  S->pending_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_error_set("backward: cannot continue: a Lua function failed");
  return false;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static bool run_hook(void *context, lt_Tensor *gradient, lt_Tensor **replacement) {
  EntryRef *h = context;
  *replacement = NULL;
  Job job = {.number = h->number, .nin = 1, .nout = 1, .in = &gradient, .out = replacement};
  return run_protected(h->S, &job);
}

static bool run_ready_hook(void *context, lt_Tensor *gradient, lt_Tensor **replacement) {
  EntryRef *h = context;
  *replacement = NULL;
  Job job = {.number = h->number, .nin = 1, .in = &gradient, .kind = JOB_READY};
  return run_protected(h->S, &job);
}

/* handle:remove(): removes the hook; later calls do nothing */
static int handle_remove(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "tensor");
  lua_getfield(L, 1, "id");
  lt_Tensor *t = lt_lua_to_tensor(L, -2);
  if (t && lua_isinteger(L, -1)) lt_tensor_remove_hook(t, (int)lua_tointeger(L, -1));
  lua_pushnil(L);
  lua_setfield(L, 1, "tensor"); /* a second call does nothing */
  return 0;
}

/* Adds the function at stack index 2 to the hooks of the tensor at 1, and pushes the handle. */
static int add_hook(lua_State *L, lt_HookFn run) {
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
  EntryRef *h = new_entry(L, 2, 1, NULL); /* no error may be raised before it has an owner */
  int id = lt_tensor_add_owned_hook(t, run, h, forget, set_held);
  if (!id) {
    forget(h);
    lt_lua_fail(L, "register_hook");
  }
  if (run == run_ready_hook) lt_tensor_run_hook_last(t, id);
  lua_pushinteger(L, id);
  lua_setfield(L, -2, "id");
  return 1;
}

/* x:register_hook(function(grad) ... end) -> handle; handle:remove() */
static int register_hook(lua_State *L) { return add_hook(L, run_hook); }

/* _ready_hook(x, f) -> handle. f(grad) is called after all hooks of x, with the gradient that is
 * accumulated. It must neither keep nor change it, and its result is not used. */
static int ready_hook(lua_State *L) {
  lua_settop(L, 2);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  return add_hook(L, run_ready_hook);
}

/* ---- functions with custom gradients --------------------------------------------------------- */

static bool run_custom(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                       lt_Tensor **input_grads) {
  EntryRef *h = context;
  Job job = {.number = h->number,
             .nin = noutputs,
             .nout = ninputs,
             .in = grads,
             .out = input_grads,
             .kind = JOB_LIST};
  for (int i = 0; i < ninputs; i++) input_grads[i] = NULL;
  return run_protected(h->S, &job);
}

/* Drops the saved values of a node whose graph was freed by a backward pass. */
static void release_saved(void *context) {
  EntryRef *h = context;
  lua_State *L = h->S->scratch;
  lua_settop(L, 0);
  if (push_entry(L, h->S, h->number) && lua_rawgeti(L, 1, FUNCTION) == LUA_TTABLE &&
      lua_rawgeti(L, 2, 1) != LUA_TNIL) {
    lua_pushboolean(L, 0);
    lua_rawseti(L, 2, 1);
  }
  lua_settop(L, 0);
}

/* attach_entry(node, list): makes the boxes of a node's results, in the list, own the node's
 * entry. Until all of them have a hook the entry is held. Does nothing unless attach_to_results
 * calls it. */
static int attach_entry(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  const EntryRef *h = S->attaching;
  S->attaching = NULL;
  if (!h) return 0;
  int n = (int)lua_rawlen(L, 2);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    lt_Box *box = lt_lua_to_box(L, -1);
    if (box && box->tensor && !lt_tensor_is_leaf(box->tensor)) {
      EntryRef *own = new_entry(L, 1, lua_gettop(L), h);
      box->owner = true;
      if (!lt_tensor_add_owned_hook(box->tensor, NULL, own, forget, set_held)) {
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

/* Calls attach_entry. If it fails, removes the results from the graph, which frees h, and raises
 * the error. */
static void attach_to_results(lua_State *L, EntryRef *h, int node, int list, int n,
                              lt_Tensor **results) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, h->S->attach_ref);
  lua_pushvalue(L, node);
  lua_pushvalue(L, list);
  h->S->attaching = h;
  int status = lua_pcall(L, 2, 0, 0);
  h->S->attaching = NULL;
  if (status == LUA_OK) return;
  lt_autograd_custom_undo(h, n, results);
  lua_error(L);
}

/* Stores the boxes of the results in the list: the box in which the user returned a result, or the
 * new box where the engine replaced the tensor. */
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

static bool any_requires_grad(int n, lt_Tensor *const *inputs) {
  bool any = false;
  for (int i = 0; lt_grad_enabled() && !lt_inference_enabled() && i < n; i++)
    any = any || (inputs[i] && lt_tensor_requires_grad(inputs[i]));
  return any;
}

/* Returns for each of n outputs whether the list at i marks it as an input changed in place. Pushes
 * the array. */
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

/* Replaces the list at i by a copy, which only this function can change. */
static void copy_list(lua_State *L, const char *function, const char *argument, int i) {
  int n = lt_lua_length(L, function, argument, i);
  lua_createtable(L, n, 0);
  for (int k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    lua_rawseti(L, -2, k);
  }
  lua_replace(L, i);
}

/* _custom(name, node, inputs, outputs, changed?) -> list of outputs connected to the graph.
 * node:backward(grads) returns a list of gradients, one for each input; node[1], the saved values,
 * becomes false when the graph is freed. inputs: tensors, false for none. */
static int custom(lua_State *L) {
  int nin, nout;
  const char *name = lt_lua_text(L, 1, "Function", "name");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 5);
  if (lua_istable(L, 4)) copy_list(L, name, "results", 4);
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
  lt_CustomFunction f = {name, run_custom, forget, release_saved, new_entry(L, 2, 0, NULL)};
  lt_lua_enter(L, lt_lua_state(L));
  /* otherwise the core frees f in this call */
  bool requires_grad = any_requires_grad(nin, inputs), connected = false;
  bool ok = lt_autograd_custom_changed(&f, nin, inputs, nout, outputs, changed);
  for (int i = 0; i < nout; i++) { /* the engine may have replaced an output and its reference */
    lua_rawgeti(L, list, i + 1);
    lt_lua_to_box(L, -1)->tensor = outputs[i];
    connected =
        connected || (requires_grad && outputs[i] && lt_dtype_has_gradient(outputs[i]->dtype));
    lua_pop(L, 1);
  }
  if (!ok) {
    forget(f.context);
    lt_lua_fail(L, name);
  }
  set_results(L, 4, list, nout, before);
  if (connected) attach_to_results(L, f.context, 2, list, nout, outputs);
  lua_settop(L, list);
  return 1;
}

/* _versions(name, outputs, ...) -> list of the versions of the other arguments, tensors or nil that
 * a function with a custom gradient saves, and the indices among the outputs of those that are. */
static int versions(lua_State *L) {
  int nout, n = lua_gettop(L) - 2;
  const char *name = lt_lua_text(L, 1, "Function", "name");
  luaL_checkstack(L, 8, NULL);
  lt_Tensor **outputs = lt_lua_tensor_list(L, name, "results", 2, true, &nout);
  lua_createtable(L, n < 0 ? 0 : n, 0);
  lua_newtable(L);
  for (int i = 1; i <= n; i++) {
    const lt_Tensor *t = lt_lua_to_tensor(L, i + 2);
    if (!t && !lua_isnil(L, i + 2))
      lt_lua_error(L,
                   "%s: expected tensors for ctx:save_for_backward, got %s\n"
                   "hint: keep other values in fields: ctx.scale = scale",
                   name, lt_lua_describe(L, i + 2));
    if (!t) continue;
    lua_pushinteger(L, lt_tensor_version(t));
    lua_rawseti(L, -3, i);
    for (int k = 0; k < nout; k++) {
      if (outputs[k] != t) continue;
      lua_pushinteger(L, k + 1);
      lua_rawseti(L, -2, i);
    }
  }
  return 2;
}

/* ---- saved tensors --------------------------------------------------------------------------- */

static void *run_pack_hook(void *context, lt_Tensor *t) {
  EntryRef *h = context;
  Job job = {.number = h->number, .nin = 1, .in = &t, .kind = JOB_PACK};
  bool grad_on = lt_grad_set_enabled(false);
  bool ok = run_protected(h->S, &job);
  lt_grad_set_enabled(grad_on);
  return ok ? job.packed : NULL;
}

static lt_Tensor *run_unpack_hook(void *packed) {
  EntryRef *h = packed;
  lt_Tensor *t = NULL;
  Job job = {.number = h->number, .nout = 1, .out = &t, .kind = JOB_UNPACK};
  if (!run_protected(h->S, &job)) return NULL;
  return t;
}

/* _saved_hooks({pack, unpack} | nil) -> the pair that was set before, or nil. The functions store
 * the tensors that autograd saves from now on. */
static int saved_hooks(lua_State *L) {
  static const lt_PackFns fns = {run_pack_hook, run_unpack_hook, forget};
  lua_settop(L, 1);
  lt_lua_enter(L, lt_lua_state(L));
  EntryRef *own = lua_istable(L, 1) ? new_entry(L, 1, 0, NULL) : NULL;
  EntryRef *old = lt_autograd_pack_by(own ? &fns : NULL, own);
  if (old && push_entry(L, old->S, old->number))
    lua_rawgeti(L, -1, FUNCTION);
  else
    lua_pushnil(L);
  if (old) forget(old);
  return 1;
}

/* _set_anomaly(on | nil, check_nan) -> the former values. nil: only reads them */
static int set_anomaly(lua_State *L) {
  bool check_nan, on;
  lt_lua_enter(L, lt_lua_state(L));
  on = lt_autograd_anomaly(&check_nan);
  if (!lua_isnoneornil(L, 1)) lt_autograd_set_anomaly(lua_toboolean(L, 1), lua_toboolean(L, 2));
  lua_pushboolean(L, on);
  lua_pushboolean(L, check_nan);
  return 2;
}

/* ---- the module ------------------------------------------------------------------------------ */

/* Creates a table with weak keys ("k") or values ("v") and returns its registry reference. */
static int new_weak(lua_State *L, const char *mode) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

void lt_lua_open_hooks(lua_State *L, int functions, int methods) {
  static const luaL_Reg runner = {"run_job", run_job}, attacher = {"attach_entry", attach_entry};
  static const luaL_Reg module[] = {{"_custom", custom},           {"_versions", versions},
                                    {"_ready_hook", ready_hook},   {"_saved_hooks", saved_hooks},
                                    {"_set_anomaly", set_anomaly}, {NULL, NULL}};
  static const lt_Function own[] = {
      {"register_hook", register_hook, "(Tensor self, function hook) -> nil", true, false},
      {NULL, NULL, NULL, false, false}};
  lt_Lua *S = lt_lua_state(L);
  S->scratch = lua_newthread(L);
  S->scratch_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  S->entries_ref = new_weak(L, "v");
  S->owned_ref = new_weak(L, "k");
  lua_newtable(L);
  S->held_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_lua_function(L, &runner);
  S->runner_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lt_lua_function(L, &attacher);
  S->attach_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pushvalue(L, methods);
  lt_lua_set_read(L, own);
  lua_pop(L, 2);
}
