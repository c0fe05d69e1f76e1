/* args.c: reads the arguments of a call by the op's signature, in three spellings.
 *
 *   x:sum(1, true)              by position
 *   x:sum(1, {keepdim = true})  a trailing table of names
 *   x:sum{1, keepdim = true}    one table: positions in the array part, names in the hash part
 *
 * First every parameter is assigned a slot: the stack index of its value. Then the slots are read
 * by type. Values taken out of tables are left on the stack, which keeps what they refer to alive
 * during the call. Users count dims and indices from 1, C counts from 0: args.c is the only place
 * that converts them. */
#include "bindings.h"

/* Free slots of Lua's stack for the results and messages of a call, in addition to its
 * arguments. */
enum { STACK_RESERVE = 12 };

enum { MAX_USER_VALUES = 64 }; /* lists of up to this many tensors are kept in user values */

static const char *const expected_types[LT_PARAM_TYPE_COUNT] = {
    [LT_PARAM_TENSOR] = "a tensor",
    [LT_PARAM_TENSORS] = "a list of tensors",
    [LT_PARAM_OPERAND] = "a tensor or a number",
    [LT_PARAM_INDEX] = "an index tensor",
    [LT_PARAM_SCALAR] = "a number",
    [LT_PARAM_INT] = "an integer",
    [LT_PARAM_FLOAT] = "a number",
    [LT_PARAM_BOOL] = "a boolean",
    [LT_PARAM_STRING] = "a string",
    [LT_PARAM_DTYPE] = "a dtype such as \"float32\"",
    [LT_PARAM_DEVICE] = "a device such as \"cpu\"",
    [LT_PARAM_GENERATOR] = "a Generator",
    [LT_PARAM_SIZES] = "sizes (integers)",
    [LT_PARAM_INTS] = "integers",
    [LT_PARAM_DIM] = "a dim (an integer)",
    [LT_PARAM_DIMS] = "dims (integers)",
    [LT_PARAM_POSITION] = "an index (an integer)",
    [LT_PARAM_ANY] = "a value",
    [LT_PARAM_DATA] = "a value",
    [LT_PARAM_LIST] = "a list",
    [LT_PARAM_TABLE] = "a table",
    [LT_PARAM_FLOATS] = "a list of numbers",
    [LT_PARAM_FUNCTION] = "a function",
    [LT_PARAM_INT_LISTS] = "a list of lists of integers",
    [LT_PARAM_DIM_LISTS] = "a list of lists of dims",
    [LT_PARAM_FLOAT_LISTS] = "a list of lists of numbers",
    [LT_PARAM_TENSOR_LISTS] = "a list of lists of tensors",
};

#define BIT_OF(type) (UINT32_C(1) << (type))
#define BIT(type)    BIT_OF(LT_PARAM_##type)
enum {
  NUMBER_LISTS = BIT(SIZES) | BIT(INTS) | BIT(DIMS),
  LISTS_OF_LISTS = BIT(INT_LISTS) | BIT(DIM_LISTS) | BIT(FLOAT_LISTS) | BIT(TENSOR_LISTS),
  LISTS = NUMBER_LISTS | BIT(TENSORS) | BIT(FLOATS) | BIT(LIST) | BIT(DATA) | LISTS_OF_LISTS,
  /* types of lists whose elements may be tables: */
  WHOLE_LISTS = BIT(LIST) | BIT(DATA) | LISTS_OF_LISTS,
  NUMBERS =
      NUMBER_LISTS | BIT(OPERAND) | BIT(SCALAR) | BIT(INT) | BIT(FLOAT) | BIT(DIM) | BIT(POSITION)
};

/* Returns the tensor at i, or NULL, as lt_lua_to_tensor does. */
static inline lt_Tensor *tensor_at(lua_State *L, const lt_LuaArgs *a, int i) {
  lt_Box *box = lt_lua_box_at(L, a->state, i);
  return box && !lt_lua_is_freed(box) ? box->tensor : NULL;
}

static bool is(const lt_Param *p, uint32_t types) { return (p->types & types) != 0; }

/* Returns whether the numbers of list p may be given one after the other: only if no later
 * parameter accepts a number. */
static bool may_spread(const lt_Signature *g, int p) {
  for (int i = p + 1; i < g->count; i++)
    if (is(&g->param[i], NUMBERS)) return false;
  return true;
}

static void fail_too_many(lua_State *L, const lt_LuaArgs *a, int count) {
  if (a->signature->count == 0)
    lt_lua_error(L, "%s: expected no arguments, got %d", a->name, count);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int i = 0; i < a->signature->count; i++) {
    if (i) luaL_addstring(&b, ", ");
    luaL_addstring(&b, a->signature->param[i].name);
  }
  luaL_pushresult(&b);
  lt_lua_error(L, "%s: expected at most %d argument%s (%s), got %d", a->name, a->signature->count,
               a->signature->count == 1 ? "" : "s", lua_tostring(L, -1), count);
}

const char *lt_lua_push_expected(lua_State *L, const lt_Param *p) {
  char choices[160];
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int t = 0, n = 0; t < LT_PARAM_TYPE_COUNT; t++) {
    if (!(p->types >> t & 1)) continue;
    if (n++) luaL_addstring(&b, " or ");
    if (t == LT_PARAM_STRING && p->has_choices)
      luaL_addstring(&b, lt_param_choices(p, choices, sizeof choices));
    else if (t == LT_PARAM_DTYPE && p->dtypes)
      luaL_addlstring(&b, p->spelling, (size_t)p->spelling_length);
    else
      luaL_addstring(&b, expected_types[t]);
  }
  if (p->has_least) {
    snprintf(choices, sizeof choices, " of at least %g", p->least);
    luaL_addstring(&b, choices);
  }
  luaL_pushresult(&b);
  return lua_tostring(L, -1);
}

static void fail_type(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  const lt_Param *param = &a->signature->param[p];
  lt_lua_refuse_freed(L, i, a->name, param->name);
  bool one = param->type == LT_PARAM_TENSORS && lt_lua_to_tensor(L, i);
  lt_lua_error(L, "%s: expected %s for argument '%s', got %s%s", a->name,
               lt_lua_push_expected(L, param), param->name, lt_lua_describe(L, i),
               one ? "\nhint: {x, y} is a list of tensors" : "");
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void fill_slot(lt_LuaArgs *a, int p, int i, int span) {
  a->slot[p] = i;
  a->span[p] = span;
  if (p >= a->given) a->given = p + 1;
}

/* Returns whether the elements of list p are given one after the other, from the value at i on. A
 * list of any values takes all that follow; where one tensor is accepted, too, it is no list. */
static bool is_spread(lua_State *L, const lt_Param *p, int i, int last) {
  if (!p->spreads) return false;
  if (is(p, BIT(LIST))) return true;
  return lt_lua_to_box(L, i) &&
         (!is(p, BIT(TENSOR)) || (i < last && lt_lua_to_box(L, i + 1) != NULL));
}

/* Pushes a list of the tensors (or `all` values) at i and after it, up to `last`; returns their
 * number. */
static int collect_list(lua_State *L, bool all, int i, int last) {
  int n = 0;
  luaL_checkstack(L, STACK_RESERVE, "too many arguments");
  lua_newtable(L);
  while (i + n <= last && (all || lt_lua_to_box(L, i + n))) {
    lua_pushvalue(L, i + n);
    lua_rawseti(L, -2, ++n);
  }
  return n;
}

/* Assigns the stack values first..last to the parameters from p on. Lists that were collected stay
 * on the stack. */
static void assign_positional(lua_State *L, lt_LuaArgs *a, int p, int first, int last) {
  const lt_Signature *g = a->signature;
  for (int i = first; i <= last; p++) {
    int type = lua_type(L, i), span = 1;
    while (p + 1 < g->count && type == LUA_TTABLE && g->param[p].optional &&
           g->param[p].type == LT_PARAM_INT && is(&g->param[p + 1], NUMBER_LISTS))
      p++; /* randint(6, {100}): the sizes, not `high` */
    if (p >= g->count) fail_too_many(L, a, p + last - i + 1);
    if (is_spread(L, &g->param[p], i, last)) {
      i += collect_list(L, is(&g->param[p], BIT(LIST)), i, last);
      fill_slot(a, p, lua_gettop(L), 1);
      continue;
    }
    if (type == LUA_TNUMBER && is(&g->param[p], NUMBER_LISTS) && may_spread(g, p))
      while (i + span <= last && lua_type(L, i + span) == LUA_TNUMBER) span++;
    if (type != LUA_TNIL) fill_slot(a, p, i, span);
    i += span;
  }
}

static int find_param(const lt_Signature *g, const char *name) {
  for (int i = 0; i < g->count; i++)
    if (strcmp(g->param[i].name, name) == 0) return i;
  if (strcmp(name, "input") != 0 || !g->takes_tensor) return -1;
  int self = find_param(g, "self"); /* PyTorch's name of it, or of another first tensor */
  return self < 0 ? 0 : self;
}

/* Raises the error for an unknown name; suggests the nearest parameter and lists all. */
static void fail_unknown(lua_State *L, const lt_LuaArgs *a, const char *name, bool method) {
  const lt_Signature *g = a->signature;
  lt_Nearest n = {.word = name};
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int i = method; i < g->count; i++) {
    lt_lua_nearest(&n, g->param[i].name);
    if (i > method) luaL_addstring(&b, ", ");
    luaL_addstring(&b, g->param[i].name);
  }
  luaL_pushresult(&b);
  if (g->count == method)
    lt_lua_error(L, "%s: expected no named arguments, got '%s'", a->name, name);
  lt_lua_error(L, "%s: expected an argument name (%s), got '%s'%s%s%s", a->name,
               lua_tostring(L, -1), name, n.best[0] ? "\nhint: did you mean '" : "", n.best,
               n.best[0] ? "'?" : "");
}

/* Assigns the named arguments of the table at t; leaves their values on the stack. */
static void assign_named(lua_State *L, lt_LuaArgs *a, int t, bool method) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, t);
  lua_pushnil(L);
  while (lua_next(L, t)) {
    if (lua_type(L, -2) != LUA_TSTRING) {
      if (!lua_isinteger(L, -2))
        lt_lua_error(L, "%s: expected strings as names of arguments, got %s", a->name,
                     lt_lua_describe(L, -2));
      lua_Integer i = lua_tointeger(L, -2);
      if (i < 1 || i > n)
        lt_lua_error(
            L,
            "%s: expected a table of arguments without gaps, got an entry at index %lld behind one",
            a->name, (long long)i);
      lua_pop(L, 1);
      continue;
    }
    int p = lt_lua_is_text(L, -2) ? find_param(a->signature, lua_tostring(L, -2)) : -1;
    if (p < 0 && a->signature->of_op && strcmp(lua_tostring(L, -2), "out") == 0) {
      luaL_checkstack(L, STACK_RESERVE, "too many arguments");
      lua_insert(L, -2);
      a->out = lua_gettop(L) - 1;
      continue;
    }
    if (p < method) fail_unknown(L, a, lt_lua_quote(L, -2), method);
    if (a->slot[p])
      lt_lua_error(
          L, "%s: expected one value for argument '%s', got two: one by position, one by name",
          a->name, a->signature->param[p].name);
    luaL_checkstack(L, STACK_RESERVE, "too many arguments");
    lua_insert(L, -2); /* the value stays under the key */
    fill_slot(a, p, lua_gettop(L) - 1, 1);
  }
}

/* Assigns the arguments of a call with one table. Where the first parameter is a list, the array
 * part is that list; otherwise its entries are positional arguments. */
static void assign_table(lua_State *L, lt_LuaArgs *a, int p, int t, bool method) {
  const lt_Signature *g = a->signature;
  int n = lt_lua_length(L, a->name, NULL, t);
  bool any = p < g->count && is(&g->param[p], WHOLE_LISTS);
  bool list = p < g->count && is(&g->param[p], LISTS);
  if (list && !any && n > 0) { /* {{2, 3}, 7}: a table as first entry is the list itself */
    lua_rawgeti(L, t, 1);
    list = lua_type(L, -1) != LUA_TTABLE;
    lua_pop(L, 1);
  }
  if (list) {
    bool empty = false;
    if (n == 0) {
      lua_pushnil(L);
      empty = lua_next(L, t) == 0;
      if (!empty) lua_pop(L, 2);
    }
    if (any && n == 0) { /* the list may be among the names */
      lua_pushstring(L, g->param[p].name);
      any = lua_rawget(L, t) == LUA_TNIL && is(&g->param[p], BIT(DATA));
      lua_pop(L, 1);
    }
    if (n > 0 || ((any || empty) && !g->param[p].has_default)) fill_slot(a, p, t, 1);
  } else if (n > 0) {
    if (n > 4 * LT_MAX_DIMS) fail_too_many(L, a, n + method);
    luaL_checkstack(L, n + LUA_MINSTACK, "too many arguments");
    int first = lua_gettop(L) + 1;
    for (int i = 1; i <= n; i++) lua_rawgeti(L, t, i);
    assign_positional(L, a, p, first, first + n - 1);
  }
  assign_named(L, a, t, method);
}

static bool has_names(lua_State *L, int t) {
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING) {
      lua_pop(L, 2);
      return true;
    }
  }
  return false;
}

/* Assigns the empty table at t to the first parameter that is missing, if that is a list: it names
 * no arguments. */
static void assign_empty_list(lua_State *L, lt_LuaArgs *a, int t) {
  const lt_Signature *g = a->signature;
  int p = 0;
  while (p < g->count && a->slot[p]) p++;
  if (p < g->count && is(&g->param[p], LISTS) && !g->param[p].has_default && !has_names(L, t))
    fill_slot(a, p, t, 1);
}

/* Assigns all arguments of the call. Only a plain table can hold names: one with a metatable is a
 * value, as a shape is. */
static void assign_all(lua_State *L, lt_LuaArgs *a, bool method) {
  int top = lua_gettop(L), first = method ? 2 : 1, p = method;
  if (method) fill_slot(a, 0, 1, 1);
  if (top < first) return;
  int type = lua_type(L, top);
  while (top > first && type == LUA_TNIL) type = lua_type(L, --top);
  if (type != LUA_TTABLE || !lt_lua_is_plain(L, top)) {
    assign_positional(L, a, p, first, top);
  } else if (top == first) {
    assign_table(L, a, p, top, method);
  } else if (lua_rawlen(L, top) == 0) {
    assign_positional(L, a, p, first, top - 1);
    assign_named(L, a, top, method);
    assign_empty_list(L, a, top);
  } else {
    assign_positional(L, a, p, first, top);
    if (has_names(L, top)) assign_named(L, a, top, method); /* sum(x, {1, keepdim = true}) */
  }
}

/* ---- values ---------------------------------------------------------------------------------- */

bool lt_lua_whole(lua_State *L, int i, int64_t *out) {
  int ok;
  if (lua_type(L, i) != LUA_TNUMBER) return false;
  *out = lua_tointegerx(L, i, &ok);
  return ok;
}

bool lt_lua_scalar(lua_State *L, int i, lt_Scalar *out) {
  switch (lua_type(L, i)) {
  case LUA_TNUMBER:
    *out = lua_isinteger(L, i) ? lt_scalar_int(lua_tointeger(L, i))
                               : lt_scalar_float(lua_tonumber(L, i));
    return true;
  case LUA_TBOOLEAN:
    *out = lt_scalar_bool(lua_toboolean(L, i));
    return true;
  case LUA_TUSERDATA: {
    lt_Tensor *t = lt_lua_to_tensor(L, i);
    if (!t && lt_lua_is_complex(L, i, out)) return true;
    lt_lua_enter(L, lt_lua_state(L));
    if (!t || t->numel != 1 || lt_tensor_is_meta(t)) return false;
    if (!lt_tensor_item(t, out)) lt_lua_fail(L, NULL);
    return true;
  }
  default:
    return false;
  }
}

/* Converts a dim or index from counting from 1 to counting from 0; negative values count from the
 * end in both. Raises an error for 0. */
static int64_t from_one(lua_State *L, const lt_LuaArgs *a, int p, int64_t value) {
  const lt_Param *param = &a->signature->param[p];
  if (value == 0 && param->type == LT_PARAM_POSITION)
    lt_lua_error(L,
                 "%s: expected a 1-based index for argument '%s', got 0\nhint: indices count from "
                 "1 (-1 is the last)",
                 a->name, param->name);
  if (value == 0)
    lt_lua_error(L,
                 "%s: expected a 1-based dim for argument '%s', got 0\nhint: dims count from 1 (-1 "
                 "is the last)",
                 a->name, param->name);
  return value > 0 ? value - 1 : value;
}

static int64_t read_int(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  int64_t value;
  if (!lt_lua_whole(L, i, &value)) fail_type(L, a, p, i);
  return value;
}

/* Returns room for n integers: in `a` while that has any, else in a userdata that is pushed. */
static int64_t *allocate_ints(lua_State *L, lt_LuaArgs *a, int n) {
  int capacity = (int)(sizeof a->ints / sizeof *a->ints);
  if (n > capacity - a->ints_used) return lua_newuserdatauv(L, (size_t)n * sizeof(int64_t), 0);
  a->ints_used += n;
  return a->ints + a->ints_used - n;
}

/* Stores LT_GAP if the entry of a list on top of the stack is false, or missing, where the
 * parameter allows it. Returns whether it did. */
static bool is_gap(lua_State *L, const lt_Param *p, int64_t *out) {
  bool gap = p->has_gaps && lua_type(L, -1) != LUA_TNUMBER && !lua_toboolean(L, -1);
  if (gap) *out = LT_GAP;
  return gap;
}

const int64_t *lt_lua_ints(lua_State *L, lt_LuaArgs *a, int p, int i, int *n) {
  bool counted = a->signature->param[p].type == LT_PARAM_DIMS;
  if (lua_type(L, i) == LUA_TTABLE) {
    *n = lt_lua_length(L, a->name, a->signature->param[p].name, i);
    int64_t *out = allocate_ints(L, a, *n);
    for (int k = 0; k < *n; k++) {
      lua_rawgeti(L, i, k + 1);
      if (!is_gap(L, &a->signature->param[p], &out[k]) && !lt_lua_whole(L, -1, &out[k]))
        lt_lua_error(L, "%s: expected an integer for argument '%s[%d]', got %s", a->name,
                     a->signature->param[p].name, k + 1, lt_lua_describe(L, -1));
      if (counted) out[k] = from_one(L, a, p, out[k]);
      lua_pop(L, 1);
    }
    return out;
  }
  *n = a->span[p];
  int64_t *out = allocate_ints(L, a, *n);
  for (int k = 0; k < *n; k++) {
    out[k] = read_int(L, a, p, i + k);
    if (counted) out[k] = from_one(L, a, p, out[k]);
  }
  return out;
}

int lt_lua_length(lua_State *L, const char *function, const char *argument, int i) {
  enum { MAX_LENGTH = 1 << 26 };
  lua_Unsigned n = lua_rawlen(L, i);
  if (n > MAX_LENGTH)
    lt_lua_error(L, "%s: expected a list of at most %d entries%s%s%s, got one of %lld", function,
                 MAX_LENGTH, argument ? " for argument '" : "", argument ? argument : "",
                 argument ? "'" : "", (long long)n);
  return (int)n;
}

/* Small lists are kept in user values of the array, which needs no table; longer ones in a table
 * that is its user value. The user's list may change, so it keeps nothing alive. */
lt_Tensor **lt_lua_tensors(lua_State *L, const char *function, const char *argument, int i,
                           bool gaps, int *n) {
  if (lua_type(L, i) != LUA_TTABLE)
    lt_lua_error(L, "%s: expected a list of tensors for argument '%s', got %s", function, argument,
                 lt_lua_describe(L, i));
  *n = lt_lua_length(L, function, argument, i);
  luaL_checkstack(L, STACK_RESERVE, "too many arguments");
  bool few = *n <= MAX_USER_VALUES;
  lt_Tensor **out = lua_newuserdatauv(L, (size_t)*n * sizeof *out + 1, few ? *n : 1);
  int own = lua_gettop(L);
  if (!few) {
    lua_createtable(L, *n, 0);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, own, 1);
  }
  for (int k = 0; k < *n; k++) {
    lua_rawgeti(L, i, k + 1);
    out[k] = lt_lua_to_tensor(L, -1);
    if (!out[k] && !(gaps && !lua_toboolean(L, -1))) {
      if (lt_lua_to_box(L, -1))
        lt_lua_error(
            L,
            "%s: expected a tensor for argument '%s[%d]', got a tensor that was freed (x:free())",
            function, argument, k + 1);
      lt_lua_error(L, "%s: expected a tensor for argument '%s[%d]', got %s", function, argument,
                   k + 1, lt_lua_describe(L, -1));
    }
    if (few)
      lua_setiuservalue(L, own, k + 1);
    else
      lua_rawseti(L, own + 1, k + 1);
  }
  lua_settop(L, own);
  return out;
}

/* Reads a short list of tensors into `a`; the stack keeps them. Returns NULL, with nothing pushed,
 * when the list is longer or something else is in it. */
static lt_Tensor **read_few(lua_State *L, lt_LuaArgs *a, int i, int n) {
  if (n > (int)(sizeof a->few / sizeof *a->few) - a->few_used) return NULL;
  luaL_checkstack(L, n + STACK_RESERVE, "too many arguments");
  lt_Tensor **out = a->few + a->few_used;
  int top = lua_gettop(L);
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, i, k + 1);
    out[k] = tensor_at(L, a, -1);
    if (out[k]) continue;
    lua_settop(L, top);
    return NULL;
  }
  a->few_used += n;
  return out;
}

/* Returns the *n tensors of the list at i. */
static lt_Tensor **read_tensors(lua_State *L, lt_LuaArgs *a, int p, int i, int *n) {
  if (lua_type(L, i) != LUA_TTABLE) fail_type(L, a, p, i);
  *n = lt_lua_length(L, a->name, a->signature->param[p].name, i);
  lt_Tensor **few = read_few(L, a, i, *n);
  return few ? few : lt_lua_tensors(L, a->name, a->signature->param[p].name, i, false, n);
}

static const char *string_at(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  return lt_lua_text(L, i, a->name, a->signature->param[p].name);
}

static lt_Arg read_dtype(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  if (lua_type(L, i) != LUA_TSTRING) fail_type(L, a, p, i);
  lt_Dtype dtype = lt_dtype_from_name(string_at(L, a, p, i));
  if (dtype == LT_DTYPE_NONE) lt_lua_error(L, "%s: %s", a->name, lt_error());
  uint32_t allowed = a->signature->param[p].dtypes;
  if (allowed && !(allowed >> dtype & 1)) fail_type(L, a, p, i);
  return lt_arg_dtype(dtype);
}

static lt_Arg read_device(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  lt_Device device;
  int type = lua_type(L, i);
  if (type != LUA_TSTRING && type != LUA_TNUMBER && !lt_lua_to_tensor(L, i)) fail_type(L, a, p, i);
  if (type == LUA_TSTRING) string_at(L, a, p, i);
  if (!lt_lua_device(L, i, -1, &device)) lt_lua_error(L, "%s: %s", a->name, lt_error());
  return lt_arg_device(device);
}

static lt_Arg read_generator(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  lt_Generator **g = lt_lua_to_generator(L, i);
  if (g && *g) return lt_arg_generator(*g);
  fail_type(L, a, p, i);
  return LT_NIL;
}

static bool is_callable(lua_State *L, int i) {
  if (lua_type(L, i) == LUA_TFUNCTION) return true;
  if (luaL_getmetafield(L, i, "__call") == LUA_TNIL) return false;
  lua_pop(L, 1);
  return true;
}

static int push_length(lua_State *L) {
  lua_len(L, 1);
  return 1;
}

/* Returns whether the value at i can be read as a list: a table whose length is an integer. An
 * error raised by __len is ignored here, since it is raised again where the length is read. */
static bool is_list(lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TTABLE || lt_lua_is_plain(L, i)) return lua_type(L, i) == LUA_TTABLE;
  luaL_checkstack(L, STACK_RESERVE, "too many arguments");
  lua_pushcfunction(L, push_length);
  lua_pushvalue(L, i);
  bool fits = lua_pcall(L, 1, 1, 0) != LUA_OK || lua_isinteger(L, -1);
  lua_pop(L, 1);
  return fits;
}

/* Returns whether the value at i has this type, judged without reading elements or converting
 * it. */
static bool looks_like(lua_State *L, int i, lt_ParamType type) {
  int64_t whole;
  int is_a = lua_type(L, i);
  switch (type) {
  case LT_PARAM_TENSOR:
  case LT_PARAM_INDEX:
    return lt_lua_to_tensor(L, i) != NULL;
  case LT_PARAM_OPERAND:
    return is_a == LUA_TNUMBER || is_a == LUA_TBOOLEAN || lt_lua_to_tensor(L, i);
  case LT_PARAM_SCALAR:
    return is_a == LUA_TNUMBER || is_a == LUA_TBOOLEAN;
  case LT_PARAM_FLOAT:
    return is_a == LUA_TNUMBER;
  case LT_PARAM_INT:
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    return lt_lua_whole(L, i, &whole);
  case LT_PARAM_BOOL:
    return is_a == LUA_TBOOLEAN;
  case LT_PARAM_STRING:
  case LT_PARAM_DTYPE:
    return is_a == LUA_TSTRING;
  case LT_PARAM_DEVICE:
    return is_a == LUA_TSTRING || is_a == LUA_TNUMBER || lt_lua_to_tensor(L, i);
  case LT_PARAM_GENERATOR:
    return lt_lua_to_generator(L, i) != NULL;
  case LT_PARAM_SIZES:
  case LT_PARAM_INTS:
  case LT_PARAM_DIMS:
    return is_a == LUA_TTABLE || lt_lua_whole(L, i, &whole);
  case LT_PARAM_LIST:
    return is_list(L, i);
  case LT_PARAM_FUNCTION:
    return is_callable(L, i);
  case LT_PARAM_ANY:
  case LT_PARAM_DATA:
    return true;
  default: /* LT_PARAM_TABLE and lists of other types */
    return is_a == LUA_TTABLE;
  }
}

static void check_floats(lua_State *L, const lt_LuaArgs *a, int p, int i) {
  const lt_Param *param = &a->signature->param[p];
  int n = lt_lua_length(L, a->name, param->name, i);
  for (int k = 1; k <= n; k++) {
    bool fits = lua_rawgeti(L, i, k) == LUA_TNUMBER &&
                !(param->has_least && !(lua_tonumber(L, -1) >= param->least));
    lua_pop(L, 1);
    if (!fits) fail_type(L, a, p, i);
  }
}

/* Returns whether the value on top of the stack is a valid element of a list of lists. */
static bool fits_in_lists(lua_State *L, const lt_Param *param, lt_ParamType type) {
  int64_t whole;
  if (type == LT_PARAM_TENSOR_LISTS) return lt_lua_to_tensor(L, -1) != NULL;
  if (lua_type(L, -1) != LUA_TNUMBER) return false;
  if (param->has_least && !(lua_tonumber(L, -1) >= param->least)) return false;
  if (type == LT_PARAM_FLOAT_LISTS) return true;
  return lt_lua_whole(L, -1, &whole) && !(type == LT_PARAM_DIM_LISTS && whole == 0);
}

/* Raises the error that list[k][e], on top of the stack, has the wrong type. */
static void fail_in_lists(lua_State *L, const lt_LuaArgs *a, int p, lt_ParamType type, int k,
                          int e) {
  static const char *const elements[LT_PARAM_TYPE_COUNT] = {[LT_PARAM_INT_LISTS] = "an integer",
                                                            [LT_PARAM_DIM_LISTS] = "a 1-based dim",
                                                            [LT_PARAM_FLOAT_LISTS] = "a number",
                                                            [LT_PARAM_TENSOR_LISTS] = "a tensor"};
  const lt_Param *param = &a->signature->param[p];
  char least[48] = "";
  if (param->has_least) snprintf(least, sizeof least, " of at least %g", param->least);
  lt_lua_error(L, "%s: expected %s%s for argument '%s[%d][%d]', got %s", a->name, elements[type],
               least, param->name, k, e, lt_lua_describe(L, -1));
}

/* Raises an error unless the value at i is a list of lists of this type. */
static void check_lists(lua_State *L, const lt_LuaArgs *a, int p, int i, lt_ParamType type) {
  const lt_Param *param = &a->signature->param[p];
  int n = lt_lua_length(L, a->name, param->name, i);
  luaL_checkstack(L, STACK_RESERVE, "too many arguments");
  for (int k = 1; k <= n; k++) {
    if (lua_rawgeti(L, i, k) != LUA_TTABLE)
      lt_lua_error(L, "%s: expected a list for argument '%s[%d]', got %s", a->name, param->name, k,
                   lt_lua_describe(L, -1));
    int list = lua_gettop(L), m = lt_lua_length(L, a->name, param->name, list);
    for (int e = 1; e <= m; e++) {
      lua_rawgeti(L, list, e);
      if (!fits_in_lists(L, param, type)) fail_in_lists(L, a, p, type, k, e);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
}

/* Checks the type of a value that only functions written in Lua accept. They find it in its slot,
 * so no lt_Arg is returned. */
static lt_Arg read_lua_value(lua_State *L, const lt_LuaArgs *a, int p, lt_ParamType type) {
  int i = a->slot[p];
  if (!looks_like(L, i, type)) fail_type(L, a, p, i);
  if (type == LT_PARAM_FLOATS) check_floats(L, a, p, i);
  if (BIT_OF(type) & LISTS_OF_LISTS) check_lists(L, a, p, i, type);
  return LT_NIL;
}

/* Returns whether the value at i is a table whose first element is a table. */
static bool is_nested(lua_State *L, int i) {
  if (lua_type(L, i) != LUA_TTABLE) return false;
  bool nested = lua_rawgeti(L, i, 1) == LUA_TTABLE;
  lua_pop(L, 1);
  return nested;
}

/* Returns the first type of the union that the value fits; a nested table is tried as a list of
 * lists first. Raises an error if none fits. */
static lt_ParamType type_in_union(lua_State *L, const lt_LuaArgs *a, int p) {
  uint32_t nested = a->signature->param[p].types & LISTS_OF_LISTS;
  for (int t = 0; nested && t < LT_PARAM_TYPE_COUNT && is_nested(L, a->slot[p]); t++)
    if (nested >> t & 1) return (lt_ParamType)t;
  for (int t = 0; t < LT_PARAM_TYPE_COUNT; t++)
    if (a->signature->param[p].types >> t & 1 && looks_like(L, a->slot[p], (lt_ParamType)t))
      return (lt_ParamType)t;
  fail_type(L, a, p, a->slot[p]);
  return LT_PARAM_UNION;
}

/* Raises an error if a number of v is below the parameter's limit. */
static void check_least(lua_State *L, const lt_LuaArgs *a, int p, const lt_Arg *v) {
  double least = a->signature->param[p].least;
  bool fits = true;
  if (v->kind == LT_ARG_INT) fits = (double)v->i >= least;
  if (v->kind == LT_ARG_FLOAT) fits = v->f >= least;
  for (int k = 0; v->kind == LT_ARG_INTS && k < v->count; k++)
    fits = fits && (double)v->ints[k] >= least;
  if (!fits) fail_type(L, a, p, a->slot[p]);
}

/* Stores the value of parameter p, read as this type, in a->arg[p]; raises an error if it does not
 * fit. The most frequent types are stored member by member: a copy of a whole lt_Arg that has just
 * been written in parts stalls. */
static void read_as(lua_State *L, lt_LuaArgs *a, int p, lt_ParamType type) {
  int i = a->slot[p], n;
  lt_Scalar s;
  const lt_Param *param = &a->signature->param[p];
  lt_Arg *out = &a->arg[p];
  switch (type) {
  case LT_PARAM_TENSOR:
  case LT_PARAM_INDEX:
  case LT_PARAM_OPERAND:
    out->kind = LT_ARG_TENSOR;
    out->count = 0;
    out->tensor = tensor_at(L, a, i);
    if (out->tensor) return;
    if (type != LT_PARAM_OPERAND || !lt_lua_scalar(L, i, &s)) break;
    *out = lt_arg_scalar(s);
    return;
  case LT_PARAM_SCALAR:
    if (!lt_lua_scalar(L, i, &s)) break;
    *out = lt_arg_scalar(s);
    return;
  case LT_PARAM_INT:
    out->kind = LT_ARG_INT;
    out->count = 0;
    out->i = read_int(L, a, p, i);
    return;
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    out->kind = LT_ARG_INT;
    out->count = 0;
    out->i = from_one(L, a, p, read_int(L, a, p, i));
    return;
  case LT_PARAM_FLOAT:
    if (lua_type(L, i) != LUA_TNUMBER) break;
    *out = lt_arg_float(lua_tonumber(L, i));
    return;
  case LT_PARAM_BOOL:
    if (lua_type(L, i) != LUA_TBOOLEAN) break;
    *out = lt_arg_bool(lua_toboolean(L, i));
    return;
  case LT_PARAM_STRING:
    if (lua_type(L, i) != LUA_TSTRING) break;
    if (!(a->signature->of_host && !param->has_choices) &&
        !lt_param_allows(param, string_at(L, a, p, i)))
      break;
    *out = lt_arg_string(lua_tostring(L, i));
    return;
  case LT_PARAM_DTYPE:
    *out = read_dtype(L, a, p, i);
    return;
  case LT_PARAM_DEVICE:
    *out = a->signature->of_host ? read_lua_value(L, a, p, type) : read_device(L, a, p, i);
    return;
  case LT_PARAM_GENERATOR:
    *out = read_generator(L, a, p, i);
    return;
  case LT_PARAM_TENSORS:
    out->tensors = read_tensors(L, a, p, i, &n);
    out->kind = LT_ARG_TENSORS;
    out->count = n;
    return;
  case LT_PARAM_SIZES:
  case LT_PARAM_INTS:
  case LT_PARAM_DIMS:
    out->ints = lt_lua_ints(L, a, p, i, &n);
    out->kind = LT_ARG_INTS;
    out->count = n;
    return;
  case LT_PARAM_UNION:
    read_as(L, a, p, type_in_union(L, a, p));
    return;
  default:
    *out = read_lua_value(L, a, p, type);
    return;
  }
  fail_type(L, a, p, i);
}

static void read_value(lua_State *L, lt_LuaArgs *a, int p) {
  const lt_Param *param = &a->signature->param[p];
  read_as(L, a, p, param->type);
  if (param->has_least) check_least(L, a, p, &a->arg[p]);
}

static void fail_missing(lua_State *L, const lt_LuaArgs *a, int p, bool method) {
  const lt_Param *param = &a->signature->param[p];
  if (p == 0 && method)
    lt_lua_error(
        L, "%s: expected a tensor for argument 'self', got no value\nhint: call it as x:%s(...)",
        a->name, a->name);
  lt_lua_error(L, "%s: expected %s for argument '%s', got no value", a->name,
               lt_lua_push_expected(L, param), param->name);
}

/* ---- the fast path --------------------------------------------------------------------------- */

/* Stores a dim or index, counted from 1 where `counted`, in *out. Returns false when the value at i
 * is no integer, or 0 where that is an error. */
static bool take_int(lua_State *L, int i, bool counted, int64_t *out) {
  if (!lt_lua_whole(L, i, out) || (counted && *out == 0)) return false;
  if (counted && *out > 0) --*out;
  return true;
}

/* Stores the integers at i and after it as the list of parameter p; returns their number, 0 when
 * there are none, or too many for `a`. */
static int take_ints(lua_State *L, lt_LuaArgs *a, int p, int i, int top) {
  int n = 0, room = (int)(sizeof a->ints / sizeof *a->ints) - a->ints_used;
  int64_t *ints = a->ints + a->ints_used;
  bool counted = a->signature->param[p].type == LT_PARAM_DIMS;
  while (i + n <= top && lua_type(L, i + n) == LUA_TNUMBER) {
    if (n == room || !take_int(L, i + n, counted, &ints[n])) return 0;
    n++;
  }
  if (n > 1 && !may_spread(a->signature, p)) return 0;
  a->ints_used += n;
  a->arg[p].kind = LT_ARG_INTS;
  a->arg[p].count = n;
  a->arg[p].ints = ints;
  return n;
}

/* Stores the value at i as parameter p, read as this type, and returns how many values it takes, or
 * 0 when it is not of the type, or the type is not a frequent one. */
static int take_as(lua_State *L, lt_LuaArgs *a, int p, lt_ParamType type, int i, int top) {
  lt_Arg *out = &a->arg[p];
  out->count = 0;
  switch (type) {
  case LT_PARAM_TENSOR:
  case LT_PARAM_INDEX:
  case LT_PARAM_OPERAND:
    out->kind = LT_ARG_TENSOR;
    out->tensor = tensor_at(L, a, i);
    if (out->tensor) return 1;
    if (type != LT_PARAM_OPERAND) return 0;
    /* fallthrough */
  case LT_PARAM_SCALAR:
    if (lua_type(L, i) != LUA_TNUMBER) return 0;
    *out = lt_arg_scalar(lua_isinteger(L, i) ? lt_scalar_int(lua_tointeger(L, i))
                                             : lt_scalar_float(lua_tonumber(L, i)));
    return 1;
  case LT_PARAM_INT:
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    out->kind = LT_ARG_INT;
    return take_int(L, i, type != LT_PARAM_INT, &out->i);
  case LT_PARAM_FLOAT:
    if (lua_type(L, i) != LUA_TNUMBER) return 0;
    *out = lt_arg_float(lua_tonumber(L, i));
    return 1;
  case LT_PARAM_BOOL:
    if (lua_type(L, i) != LUA_TBOOLEAN) return 0;
    *out = lt_arg_bool(lua_toboolean(L, i));
    return 1;
  case LT_PARAM_SIZES:
  case LT_PARAM_INTS:
  case LT_PARAM_DIMS:
    return take_ints(L, a, p, i, top);
  default:
    return 0;
  }
}

/* Stores the table at i as the list of parameter p. Returns false when it is no short list of
 * integers, or of tensors, that the parameter accepts. */
static bool take_list(lua_State *L, lt_LuaArgs *a, int p, int i) {
  lt_ParamType type = a->signature->param[p].type;
  lt_Arg *out = &a->arg[p];
  lua_Unsigned n = lua_rawlen(L, i);
  int64_t *ints = a->ints + a->ints_used;
  if (n > sizeof a->ints / sizeof *a->ints - (size_t)a->ints_used) return false;
  out->count = (int)n;
  if (type == LT_PARAM_TENSORS) {
    out->kind = LT_ARG_TENSORS;
    return (out->tensors = read_few(L, a, i, (int)n)) != NULL;
  }
  if (type != LT_PARAM_SIZES && type != LT_PARAM_INTS && type != LT_PARAM_DIMS) return false;
  for (int k = 0; k < (int)n; k++) {
    lua_rawgeti(L, i, k + 1);
    bool fits = is_gap(L, &a->signature->param[p], &ints[k]) ||
                take_int(L, -1, type == LT_PARAM_DIMS, &ints[k]);
    lua_pop(L, 1);
    if (!fits) return false;
  }
  a->ints_used += (int)n;
  out->kind = LT_ARG_INTS;
  out->ints = ints;
  return true;
}

/* Returns whether the table at i, the last argument, holds no names of arguments. */
static bool is_only_list(lua_State *L, int i) {
  return lua_rawlen(L, i) > 0 && lt_lua_is_plain(L, i) && !has_names(L, i);
}

/* Stores the value at i, of the type `is_a`, as parameter p and returns how many values it takes,
 * or 0 when it is not of the parameter's type, or the type is not a frequent one. */
static int take_value(lua_State *L, lt_LuaArgs *a, int p, int i, int top, int is_a) {
  const lt_Param *param = &a->signature->param[p];
  if (param->has_least) return 0;
  if (is_a == LUA_TTABLE) return take_list(L, a, p, i) && (i < top || is_only_list(L, i));
  if (param->spreads) return 0;
  if (param->type != LT_PARAM_UNION) return take_as(L, a, p, param->type, i, top);
  if (is(param, LISTS)) return 0;
  for (uint32_t rest = param->types; rest; rest &= rest - 1) {
    lt_ParamType type = (lt_ParamType)__builtin_ctz(rest);
    if (looks_like(L, i, type)) return take_as(L, a, p, type, i, top);
  }
  return 0;
}

/* Stores that parameter p is not given; returns false when it must be. */
static bool take_none(lt_LuaArgs *a, int p) {
  a->slot[p] = 0;
  a->arg[p] = LT_NIL;
  return a->signature->param[p].has_default || a->signature->param[p].optional;
}

/* Reads the most frequent form of a call: values by position, no table of arguments. Returns
 * false, without an error, for every other form, and for a wrong call. */
static bool read_plain(lua_State *L, lt_LuaArgs *a, bool method) {
  const lt_Signature *g = a->signature;
  int p = 0, i = 1, top = lua_gettop(L), first = method ? 2 : 1;
  while (top > first && lua_type(L, top) == LUA_TNIL) top--;
  a->given = 0;
  for (; i <= top && p < g->count; p++) {
    int is_a = lua_type(L, i);
    if (is_a == LUA_TNIL) {
      if (!take_none(a, p)) return false;
      i++;
      continue;
    }
    int n = take_value(L, a, p, i, top, is_a);
    if (n == 0) return false;
    a->slot[p] = i;
    a->span[p] = n;
    a->given = p + 1;
    i += n;
  }
  if (i <= top) return false;
  for (; p < g->count; p++)
    if (!take_none(a, p)) return false;
  return !method || (a->given && a->arg[0].kind == LT_ARG_TENSOR);
}

void lt_lua_arguments(lua_State *L, lt_Lua *S, lt_LuaArgs *a, const char *name,
                      const lt_Signature *signature, bool method) {
  a->state = S;
  a->name = name;
  a->signature = signature;
  a->out = 0;
  a->ints_used = a->few_used = 0;
  int top = lua_gettop(L);
  if (read_plain(L, a, method)) return;
  lua_settop(L, top);
  a->given = a->ints_used = a->few_used = 0;
  memset(a->slot, 0, sizeof a->slot[0] * (size_t)signature->count);
  bool object = method && signature->param[0].type == LT_PARAM_ANY; /* self is not a tensor */
  if (method && !object && !tensor_at(L, a, 1)) lt_lua_check(L, 1, name, "self");
  assign_all(L, a, method);
  for (int p = 0; p < signature->count; p++) {
    if (a->slot[p]) {
      read_value(L, a, p);
    } else {
      if (!signature->param[p].has_default && !signature->param[p].optional)
        fail_missing(L, a, p, method);
      a->arg[p] = LT_NIL;
    }
  }
}
