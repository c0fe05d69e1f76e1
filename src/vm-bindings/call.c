/* call.c: ops as Lua functions, methods and operators, all generated from the op table.
 *
 * One C function serves every op; the op and its variant are an upvalue. Operators have a shorter
 * path, since `a + b` is the most frequent call: two operands, no parsing of arguments.
 *
 * A call charges the collector before it reads its arguments: the memory of a result that was
 * dropped serves for the next one, and finalizers run while no argument is in use. */
#include "bindings.h"
#include "opids.h"

/* ---- results --------------------------------------------------------------------------------- */

#define RESULTS "lutra.results"

/* Results whose number is not known in advance are owned by a userdata until they are in boxes. */
typedef struct Guard {
  lt_Results results;
  bool taken; /* a call uses it, or has failed */
} Guard;

static int results_gc(lua_State *L) {
  Guard *guard = luaL_checkudata(L, 1, RESULTS);
  lt_results_release(&guard->results);
  guard->results = (lt_Results){0};
  return 0;
}

static Guard *new_guard(lua_State *L) {
  Guard *guard = lua_newuserdatauv(L, sizeof *guard, 0);
  *guard = (Guard){0};
  luaL_setmetatable(L, RESULTS);
  return guard;
}

/* Pushes a guard that no call uses: that of the call before, or a new one. */
static Guard *push_guard(lua_State *L, const lt_Lua *S) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->results_ref);
  Guard *guard = lua_touserdata(L, -1);
  if (guard->taken) {
    lua_pop(L, 1);
    guard = new_guard(L);
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, S->results_ref);
  }
  guard->taken = true;
  return guard;
}

static int push_list(lua_State *L, lt_Results *r) {
  lua_createtable(L, r->count, 0);
  for (int i = 0; i < r->count; i++) {
    lt_Box *box = lt_lua_box(L);
    box->tensor = r->many[i];
    r->many[i] = NULL;
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int push_each(lua_State *L, lt_Results *r) {
  luaL_checkstack(L, r->count + 2, NULL);
  for (int i = 0; i < r->count; i++) {
    lt_Box *box = lt_lua_box(L);
    box->tensor = r->few[i];
    r->few[i] = NULL;
  }
  return r->count;
}

/* Returns the stack index of the argument that is the tensor t, 0 if none is: contiguous, to and
 * in-place ops return self. */
static int same_argument(const lt_LuaArgs *a, const lt_Tensor *t) {
  for (int p = 0; p < a->given; p++)
    if (a->slot[p] && a->arg[p].kind == LT_ARG_TENSOR && a->arg[p].tensor == t) return a->slot[p];
  return 0;
}

/* Runs an op whose result is a boolean and pushes it. */
static int push_flag(lua_State *L, lt_OpId op, const lt_LuaArgs *a) {
  lt_Results r;
  if (!lt_call(op, false, a->arg, a->given, &r)) lt_lua_fail(L, a->name);
  lua_pushboolean(L, r.flag);
  lt_results_release(&r);
  return 1;
}

/* Runs an op with any number of results, or a list of them; pushes them and returns how many. */
static int push_any(lua_State *L, lt_OpId op, bool in_place, const lt_LuaArgs *a) {
  Guard *guard = push_guard(L, a->state);
  lt_Results *r = &guard->results;
  if (!lt_call(op, in_place, a->arg, a->given, r)) {
    guard->taken = false;
    lt_lua_fail(L, a->name);
  }
  int n = r->is_list ? push_list(L, r) : push_each(L, r);
  lt_results_release(r);
  guard->taken = false;
  return n;
}

/* Runs a composite with one tensor as result, often self, which needs no box: zero_, to. */
static int push_composite(lua_State *L, lt_OpId op, const lt_LuaArgs *a) {
  Guard *guard = push_guard(L, a->state);
  lt_Results *r = &guard->results;
  if (!lt_call(op, false, a->arg, a->given, r)) {
    guard->taken = false;
    lt_lua_fail(L, a->name);
  }
  int same = same_argument(a, r->few[0]);
  if (same) {
    lt_results_release(r);
    lua_pushvalue(L, same);
  } else {
    lt_Box *box = lt_lua_new_box(L, a->state);
    box->tensor = r->few[0];
    r->count = 0;
  }
  guard->taken = false;
  return 1;
}

/* Runs an op with one tensor as result and pushes it. The box exists before the op runs. */
static int push_one(lua_State *L, lt_OpId op, bool in_place, const lt_LuaArgs *a) {
  lt_Results r;
  if (in_place) {
    if (!lt_call(op, true, a->arg, a->given, &r)) lt_lua_fail(L, a->name);
    lt_results_release(&r);
    lua_pushvalue(L, a->slot[0]);
    return 1;
  }
  lt_Box *box = lt_lua_new_box(L, a->state);
  if (!lt_call(op, false, a->arg, a->given, &r)) lt_lua_fail(L, a->name);
  int same = same_argument(a, r.few[0]);
  if (same) {
    lt_results_release(&r);
    lua_pushvalue(L, same);
  } else {
    box->tensor = r.few[0];
  }
  return 1;
}

/* Reads `out`, a tensor or a list of them; returns their number. */
static int read_out(lua_State *L, const lt_LuaArgs *a, lt_Tensor **out) {
  if (!lua_istable(L, a->out)) {
    out[0] = lt_lua_check(L, a->out, a->name, "out");
    return 1;
  }
  int n = (int)lua_rawlen(L, a->out);
  if (n > LT_MAX_OUT) n = LT_MAX_OUT;
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, a->out, i + 1);
    out[i] = lt_lua_check(L, -1, a->name, "out");
  }
  return n;
}

/* Runs an op that writes its results into `out`; pushes them and returns how many. */
static int push_into(lua_State *L, lt_OpId op, bool in_place, const lt_LuaArgs *a) {
  lt_Results r;
  lt_Tensor *out[LT_MAX_OUT];
  if (in_place) lt_lua_error(L, "%s: expected no argument 'out': self is written", a->name);
  int n = read_out(L, a, out), top = lua_gettop(L);
  if (!lt_call_out(op, a->arg, a->given, out, n, &r)) lt_lua_fail(L, a->name);
  lt_results_release(&r);
  if (lua_istable(L, a->out))
    lua_settop(L, top); /* read_out pushed them */
  else
    lua_pushvalue(L, a->out);
  return n;
}

int lt_lua_call(lua_State *L, lt_OpId op, bool in_place, const lt_LuaArgs *a) {
  const lt_Signature *g = a->signature;
  lt_lua_enter(L, a->state);
  if (a->out) return push_into(L, op, in_place, a);
  if (g->result_is_flag && !in_place) return push_flag(L, op, a);
  bool one = g->results == 1 && !g->result_is_list && !g->result_is_flag;
  if (!one) return push_any(L, op, in_place, a);
  bool composite = lt_ops[op].kind == LT_KIND_COMPOSITE && !in_place;
  return composite ? push_composite(L, op, a) : push_one(L, op, in_place, a);
}

lt_Tensor *lt_lua_op1(lua_State *L, const char *name, lt_OpId op, const lt_Arg *args, int n) {
  lt_Lua *S = lt_lua_state(L);
  lt_lua_enter(L, S);
  lt_Box *box = lt_lua_new_box(L, S);
  box->tensor = lt_op1(op, args, n);
  if (!box->tensor) lt_lua_fail(L, name);
  lt_lua_charge(L, S);
  return box->tensor;
}

/* ---- functions and methods ------------------------------------------------------------------- */

enum { LT_CODE_METHOD = 1, LT_CODE_IN_PLACE = 2 };

/* An op as a function or method: a userdata, so that a call reads one upvalue. It does not begin
 * with the state, as a box of its size would. */
typedef struct OpFunction {
  lt_OpId op;
  bool method, in_place;
  lt_Lua *state;
  char name[]; /* as the user writes it */
} OpFunction;

/* Calls an op as a function or method. The upvalue is the OpFunction. */
static int call_op(lua_State *L) {
  const OpFunction *f = lua_touserdata(L, lua_upvalueindex(LT_UP_OWN));
  lt_LuaArgs a;
  lt_lua_charge(L, f->state);
  lt_lua_arguments(L, f->state, &a, f->name, lt_op_signature(f->op), f->method);
  return lt_lua_call(L, f->op, f->in_place, &a);
}

/* Returns the signature in an upvalue, which is its source text until the first call. */
static const lt_Signature *signature_at(lua_State *L, int upvalue) {
  if (lua_type(L, upvalue) == LUA_TSTRING) {
    lua_pushlightuserdata(L, (void *)lt_lua_signature(L, lua_tostring(L, upvalue)));
    lua_replace(L, upvalue);
  }
  return lua_touserdata(L, upvalue);
}

/* Calls an op of F that takes `inplace`. The third upvalue is the op's signature with `inplace` as
 * last parameter. */
static int call_maybe_in_place(lua_State *L) {
  lt_OpId op = (lt_OpId)lua_tointeger(L, lua_upvalueindex(LT_UP_OWN));
  lt_LuaArgs a;
  lt_Lua *S = lt_lua_state(L);
  lt_lua_charge(L, S);
  lt_lua_arguments(L, S, &a, lua_tostring(L, lua_upvalueindex(LT_UP_OWN + 1)),
                   signature_at(L, lua_upvalueindex(LT_UP_OWN + 2)), false);
  int last = a.signature->count - 1;
  bool in_place = a.arg[last].kind == LT_ARG_BOOL && a.arg[last].b;
  if (a.given > last) a.given = last;
  a.signature = lt_op_signature(op);
  return lt_lua_call(L, op, in_place, &a);
}

/* Adds a function that takes `inplace` to the table. The registry keeps the text of its signature
 * at one address, as lt_lua_signature requires. */
static void set_maybe_in_place(lua_State *L, int table, int op, const char *name) {
  const char *text = lt_ops[op].signature, *results = strstr(text, " -> ");
  size_t n = (results ? (size_t)(results - text) : strlen(text)) - 1; /* without ')' */
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_pushinteger(L, op);
  lua_pushstring(L, name);
  lua_pushlstring(L, text, n);
  lua_pushfstring(L, "%s, bool inplace = false)%s", lua_tostring(L, -1), results ? results : "");
  lua_remove(L, -2);
  const char *own = lua_tostring(L, -1);
  lua_pushvalue(L, -1);
  luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushcclosure(L, call_maybe_in_place, 5);
  lua_setfield(L, table, name);
  lt_lua_set_signature(L, table, name, own, false);
}

/* Adds an op to the table under a name; `variant` is LT_CODE_ flags. */
static void set_op(lua_State *L, int table, int op, unsigned variant, const char *name) {
  size_t n = strlen(name) + 1;
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  OpFunction *f = lua_newuserdatauv(L, sizeof *f + n, 0);
  f->state = lt_lua_state(L);
  f->op = (lt_OpId)op;
  f->method = (variant & LT_CODE_METHOD) != 0;
  f->in_place = (variant & LT_CODE_IN_PLACE) != 0;
  memcpy(f->name, name, n);
  lua_pushcclosure(L, call_op, 3);
  lua_setfield(L, table, name);
}

/* Pushes the table of a namespace's functions; the list of namespaces is on top of the stack. */
static void push_space(lua_State *L, int space) {
  lua_rawgeti(L, -1, space + 1);
  lua_getfield(L, -1, "ops");
  lua_remove(L, -2);
}

/* Adds the op under the name `own` to each namespace in `variants`; where the name is the same, as
 * the same function object that `functions` has. */
static void set_in_spaces(lua_State *L, int functions, int op, const char *own, unsigned variants) {
  char full[64];
  for (int s = 0; s < LT_SPACE_COUNT; s++) {
    if (!(variants & (unsigned)LT_VARIANT_SPACE << s)) continue;
    const char *name = lt_namespace_op_name(s, own);
    push_space(L, s);
    if (s == LT_SPACE_NN && lt_lua_takes_inplace(&lt_ops[op])) {
      set_maybe_in_place(L, lua_gettop(L), op, name);
    } else if (name == own && variants & LT_VARIANT_FUNCTION) {
      lua_getfield(L, functions, name);
      lua_setfield(L, -2, name);
    } else if (name == own) {
      set_op(L, lua_gettop(L), op, 0, name);
    } else { /* qualified, so that messages do not name another op */
      snprintf(full, sizeof full, "%s.%s", lt_namespaces[s].name, name);
      set_op(L, lua_gettop(L), op, 0, full);
      lua_getfield(L, -1, full);
      lua_setfield(L, -2, name);
      lua_pushnil(L);
      lua_setfield(L, -2, full);
    }
    lua_pop(L, 1);
  }
}

/* Pushes the list `_namespaces` of {name, flag, doc, ops}; ops is an empty table of functions. */
static void push_namespaces(lua_State *L) {
  lua_createtable(L, LT_SPACE_COUNT, 0);
  for (int s = 0; s < LT_SPACE_COUNT; s++) {
    lua_createtable(L, 0, 4);
    lua_pushstring(L, lt_namespaces[s].name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, lt_namespaces[s].flag);
    lua_setfield(L, -2, "flag");
    lua_pushstring(L, lt_namespaces[s].doc);
    lua_setfield(L, -2, "doc");
    lua_newtable(L);
    lua_setfield(L, -2, "ops");
    lua_rawseti(L, -2, s + 1);
  }
}

/* Adds the public functions and methods of an op under a name; the list of namespaces is on top of
 * the stack. */
static void set_variants(lua_State *L, int functions, int methods, int op, const char *name,
                         unsigned variants) {
  char in_place[64];
  snprintf(in_place, sizeof in_place, "%s_", name);
  if (variants & LT_VARIANT_FUNCTION) set_op(L, functions, op, 0, name);
  if (variants & LT_VARIANT_METHOD) set_op(L, methods, op, LT_CODE_METHOD, name);
  if (variants & LT_VARIANT_IN_PLACE)
    set_op(L, methods, op, LT_CODE_METHOD | LT_CODE_IN_PLACE, in_place);
  set_in_spaces(L, functions, op, name, variants);
}

void lt_lua_open_ops(lua_State *L, int functions, int methods, int internal) {
  push_namespaces(L);
  for (int op = 0; op < LT_OP_COUNT; op++) {
    const lt_OpInfo *info = &lt_ops[op];
    char in_place[64];
    snprintf(in_place, sizeof in_place, "%s_", info->name);
    set_variants(L, functions, methods, op, info->name, info->variants);
    set_op(L, internal, op, 0, info->name);
    if (info->variants & LT_VARIANT_IN_PLACE || info->kind == LT_KIND_UPDATE)
      set_op(L, internal, op, LT_CODE_IN_PLACE, in_place);
  }
  for (const lt_OpAlias *a = lt_op_aliases; a->name; a++)
    set_variants(L, functions, methods, a->op, a->name, a->variants);
  lua_setfield(L, functions, "_namespaces");
}

/* ---- operators ------------------------------------------------------------------------------- */

static _Noreturn void refuse_operand(lua_State *L, lt_OpId op, int i) {
  const char *argument = lt_op_signature(op)->param[i - 1].name;
  lt_lua_refuse_freed(L, i, lt_ops[op].name, argument);
  lt_lua_error(L, "%s: expected a tensor or a number for argument '%s', got %s", lt_ops[op].name,
               argument, lt_lua_describe(L, i));
}

/* Reads the operand at i, a tensor or a number; raises an error otherwise. Tensors are tested
 * first, as the most frequent case. */
static void take_operand(lua_State *L, const lt_Lua *S, lt_OpId op, int i, lt_Arg *arg) {
  lt_Box *box = lt_lua_box_at(L, S, i);
  if (box && !lt_lua_is_freed(box)) {
    arg->kind = LT_ARG_TENSOR;
    arg->tensor = box->tensor;
    return;
  }
  lt_Scalar s;
  switch (lua_type(L, i)) {
  case LUA_TNUMBER:
    s = lua_isinteger(L, i) ? lt_scalar_int(lua_tointeger(L, i))
                            : lt_scalar_float(lua_tonumber(L, i));
    break;
  case LUA_TBOOLEAN:
    s = lt_scalar_bool(lua_toboolean(L, i));
    break;
  default:
    if (!lua_isuserdata(L, i) || !lt_lua_is_complex(L, i, &s)) refuse_operand(L, op, i);
  }
  *arg = lt_arg_scalar(s);
}

/* Runs an op on its n operands at 1..n and pushes the result. */
static int operate(lua_State *L, lt_OpId op, int n) {
  lt_Results r;
  lt_Arg args[2];
  lt_Lua *S = lt_lua_state(L);
  lt_lua_charge(L, S);
  for (int i = 0; i < n; i++) take_operand(L, S, op, i + 1, &args[i]);
  lt_Box *box = lt_lua_new_box(L, S);
  lt_lua_enter(L, S);
  if (!lt_call(op, false, args, n, &r)) lt_lua_fail(L, lt_ops[op].name);
  box->tensor = r.few[0];
  return 1;
}

/* A list of macro calls: */
/* clang-format off */
#define OPERATORS(_)                                                                               \
  _(add, add, 2) _(sub, sub, 2) _(mul, mul, 2) _(div, div, 2) _(idiv, floor_divide, 2)             \
  _(mod, remainder, 2) _(pow, pow, 2) _(unm, neg, 1) _(band, bitwise_and, 2) _(bor, bitwise_or, 2) \
  _(bxor, bitwise_xor, 2) _(bnot, bitwise_not, 1) _(shl, bitwise_left_shift, 2)                    \
  _(shr, bitwise_right_shift, 2)
/* clang-format on */
#define ONE(event, op, n)                                                                          \
  static int operator_##event(lua_State *L) { return operate(L, LT_OP_##op, n); }
OPERATORS(ONE)
#undef ONE

/* Implements `<` and `<=`. Lua converts their result to one boolean, so they accept only tensors
 * with one element. Lua evaluates `a > b` as `b < a`: mirrored is the op of that sign. */
static int compare(lua_State *L, lt_OpId op, const char *sign, lt_OpId mirrored,
                   const char *mirrored_sign) {
  lt_Lua *S = lt_lua_state(L);
  lt_Arg args[2];
  for (int i = 0; i < 2; i++) {
    take_operand(L, S, op, i + 1, &args[i]);
    if (args[i].kind == LT_ARG_TENSOR && args[i].tensor->numel != 1)
      lt_lua_error(L,
                   "%s: cannot compare with %s: it gives one boolean in Lua, a tensor of shape %s "
                   "has %lld elements\nhint: write a:%s(b) for a %s b, a:%s(b) for a %s b; they "
                   "compare element by element",
                   lt_ops[op].name, sign,
                   lt_shape_text(args[i].tensor->ndim, args[i].tensor->shape),
                   (long long)args[i].tensor->numel, lt_ops[op].name, sign, lt_ops[mirrored].name,
                   mirrored_sign);
  }
  lt_Scalar s;
  lt_Tensor *t = lt_lua_op1(L, lt_ops[op].name, op, args, 2);
  if (!lt_tensor_item(t, &s)) lt_lua_fail(L, lt_ops[op].name);
  lua_pushboolean(L, s.i != 0);
  return 1;
}

static int operator_lt(lua_State *L) { return compare(L, LT_OP_lt, "<", LT_OP_gt, ">"); }
static int operator_le(lua_State *L) { return compare(L, LT_OP_le, "<=", LT_OP_ge, ">="); }

void lt_lua_open_operators(lua_State *L, int meta) {
  static const luaL_Reg operators[] = {
#define ONE(event, op, n) {"__" #event, operator_##event},
      OPERATORS(ONE)
#undef ONE
          {"__lt", operator_lt},
      {"__le", operator_le},
      {NULL, NULL}};
  static const luaL_Reg results[] = {{"__gc", results_gc}, {NULL, NULL}};
  lua_pushvalue(L, meta);
  lt_lua_set_fast(L, operators);
  luaL_newmetatable(L, RESULTS);
  lt_lua_setfuncs(L, results);
  new_guard(L);
  lt_lua_state(L)->results_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pop(L, 2);
}
