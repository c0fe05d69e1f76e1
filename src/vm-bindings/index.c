/* index.c: x[key] and x[key] = value, in every form.
 *
 *   2   -1   {2, 3}   {{1, 5}, {}}   {{1, -1, 2}, "...", newaxis}   "2:5, :, -1"
 *   a mask   an index tensor
 *
 * A key is parsed into items, one for each dimension that it indexes. Then the items are applied:
 * integers select and ranges slice, both as views; the remaining index tensors go to one gather or
 * scatter. Parsing raises Lua errors; applying runs in a scope of the core and fails as the core
 * does, so that nothing leaks. */
#include "bindings.h"
#include "opids.h"
#include "recorder.h"

#include <ctype.h>
#include <errno.h>

typedef enum { ITEM_POSITION, ITEM_RANGE, ITEM_NEWAXIS, ITEM_ELLIPSIS, ITEM_TENSOR } ItemKind;

typedef struct {
  ItemKind kind;
  int64_t first, last, step; /* counted from 1; an integer is in `first` */
  lt_Tensor *tensor;
} Item;

enum { MAX_ITEMS = 2 * LT_MAX_DIMS };

typedef struct {
  int count;
  Item item[MAX_ITEMS];
} Key;

/* The result of applying integers and ranges: a view, and index tensors with their dims. */
typedef struct {
  lt_Tensor *view;
  int count;
  lt_Tensor *index[LT_MAX_DIMS];
  int64_t dim[LT_MAX_DIMS];
  lt_Tensor *mask; /* the key's only index tensor, if it is a mask over all of `view` */
} Plan;

/* ---- parsing --------------------------------------------------------------------------------- */

/* Appends an item, by default the whole dimension, and returns it. */
static Item *add_item(lua_State *L, Key *key, ItemKind kind) {
  if (key->count == MAX_ITEMS)
    lt_lua_error(L, "index: expected at most %d entries, got more", MAX_ITEMS);
  Item *item = &key->item[key->count++];
  *item = (Item){.kind = kind, .first = 1, .last = -1, .step = 1};
  return item;
}

static int64_t read_whole(lua_State *L, int i, const char *what) {
  int64_t n;
  if (!lt_lua_whole(L, i, &n))
    lt_lua_error(L, "index: expected an integer for %s, got %s", what, lt_lua_describe(L, i));
  return n;
}

static void check_position(lua_State *L, int64_t n) {
  if (n == 0)
    lt_lua_error(
        L, "index: expected a 1-based index, got 0\nhint: indices count from 1 (-1 is the last)");
}

static void check_range(lua_State *L, const Item *item) {
  if (item->first == 0)
    lt_lua_error(L, "index: expected a 1-based index as the start of a range, got 0\nhint: indices "
                    "count from 1");
  if (item->step < 1)
    lt_lua_error(
        L, "index: expected a step of at least 1, got %lld\nhint: x:flip(1) reverses the order",
        (long long)item->step);
}

/* Warns, once for each line of a program, about a range whose step skips all but its first element:
 * {1, 3, 5} may be meant as a list of indices. Ends counted from the last element are not
 * examined, nor are ranges of the library, which depend on its arguments. */
static void warn_step(lua_State *L, const Item *item) {
  char where[256] = "";
  lt_Lua *S = lt_lua_state(L);
  if (item->first < 1 || item->last <= item->first || item->step <= item->last - item->first)
    return;
  lt_lua_enter(L, S);
  if (lt_lua_called_from(S, "/")) return;
  lt_lua_where(S, where, sizeof where);
  if (!where[0]) return;
  luaL_checkstack(L, 6, "index");
  luaL_getsubtable(L, LUA_REGISTRYINDEX, "lutra.step_warnings");
  if (lua_getfield(L, -1, where) == LUA_TNIL) {
    lua_pushboolean(L, true);
    lua_setfield(L, -3, where);
    lua_warning(L,
                lua_pushfstring(L,
                                "%s: the range {%I, %I, %I} is its first element: the step skips "
                                "the others; x[lt.tensor{%I, %I, %I}] indexes by a list",
                                where, (LUAI_UACINT)item->first, (LUAI_UACINT)item->last,
                                (LUAI_UACINT)item->step, (LUAI_UACINT)item->first,
                                (LUAI_UACINT)item->last, (LUAI_UACINT)item->step),
                0);
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
}

/* Adds a range: {}, {k}, {first, last} or {first, last, step}. */
static void read_range(lua_State *L, Key *key, int t) {
  Item *item = add_item(L, key, ITEM_RANGE);
  lua_Unsigned n = lua_rawlen(L, t);
  int64_t *const part[3] = {&item->first, &item->last, &item->step};
  if (n > 3)
    lt_lua_error(L,
                 "index: expected a range {first, last, step}, got a list of %d entries\nhint: "
                 "x[lt.tensor{...}] indexes by a list",
                 (int)n);
  if (n == 0) {
    lua_pushnil(L);
    if (lua_next(L, t))
      lt_lua_error(L, "index: expected a range {first, last, step}, got the field %s",
                   lt_lua_describe(L, -2));
  }
  for (int i = 0; i < (int)n; i++) {
    lua_rawgeti(L, t, i + 1);
    *part[i] = read_whole(L, -1, "a bound of a range");
    lua_pop(L, 1);
  }
  if (n == 1) item->last = item->first;
  check_range(L, item);
  warn_step(L, item);
}

/* Adds an index tensor or a mask. uint8 is refused because PyTorch treats it as a mask, NumPy as
 * indices. */
static void read_tensor(lua_State *L, Key *key, lt_Tensor *t) {
  if (t->dtype == LT_uint8)
    lt_lua_error(L, "index: expected a tensor of dtype \"bool\" (a mask) or \"int64\" (indices), "
                    "got \"uint8\"\nhint: index:to(\"bool\") or index:to(\"int64\")");
  if (lt_dtype_is_float(t->dtype) || lt_dtype_is_complex(t->dtype))
    lt_lua_error(
        L, "index: expected a tensor of dtype \"bool\" (a mask) or \"int64\" (indices), got \"%s\"",
        lt_dtype_name(t->dtype));
  if (t->dtype == LT_bool && t->ndim == 0)
    lt_lua_error(L, "index: expected a mask of at least 1 dim, got 0 dims");
  add_item(L, key, ITEM_TENSOR)->tensor = t;
}

static const char *skip_space(const char *s) {
  while (isspace((unsigned char)*s)) s++;
  return s;
}

static void fail_text(lua_State *L, const char *text) {
  lt_lua_error(L,
               "index: expected entries such as 2, -1, 2:5, ::2, :, ..., newaxis, separated by "
               "commas, got \"%s\"",
               text);
}

/* Moves s behind the word and returns true if s starts with it. */
static bool read_word(const char **s, const char *word) {
  size_t n = strlen(word);
  if (strncmp(*s, word, n) != 0) return false;
  *s = skip_space(*s + n);
  return true;
}

/* Parses an integer at s and moves s behind it; returns false when there is none. */
static bool read_number(lua_State *L, const char **s, int64_t *out) {
  char *end;
  const char *digits = **s == '-' ? *s + 1 : *s;
  if (!isdigit((unsigned char)*digits)) return false;
  errno = 0;
  *out = strtoll(*s, &end, 10);
  if (errno == ERANGE)
    lt_lua_error(L, "index: expected numbers of at most 64 bits for argument 'index', got %.*s",
                 (int)(end - *s), *s);
  *s = skip_space(end);
  return true;
}

static void read_text_entry(lua_State *L, Key *key, const char **s, const char *text) {
  if (read_word(s, "...")) {
    add_item(L, key, ITEM_ELLIPSIS);
    return;
  }
  if (read_word(s, "newaxis")) {
    add_item(L, key, ITEM_NEWAXIS);
    return;
  }
  Item *item = add_item(L, key, ITEM_POSITION);
  bool number = read_number(L, s, &item->first);
  if (!read_word(s, ":")) {
    if (!number) fail_text(L, text);
    check_position(L, item->first);
    return;
  }
  item->kind = ITEM_RANGE;
  read_number(L, s, &item->last);
  if (read_word(s, ":")) read_number(L, s, &item->step);
  check_range(L, item);
}

static void read_text(lua_State *L, Key *key, const char *text) {
  const char *s = skip_space(text);
  for (;;) {
    read_text_entry(L, key, &s, text);
    if (*s == 0) return;
    if (*s != ',') fail_text(L, text);
    s = skip_space(s + 1);
  }
}

bool lt_lua_is_index_text(const char *s) {
  s = skip_space(s);
  if (isdigit((unsigned char)*s) || *s == '-' || *s == ':' || strncmp(s, "...", 3) == 0)
    return true;
  return strncmp(s, "newaxis", 7) == 0 && !isalnum((unsigned char)s[7]);
}

/* Adds the entry at i, of any form. */
static void read_entry(lua_State *L, Key *key, int i) {
  switch (lua_type(L, i)) {
  case LUA_TNUMBER: {
    int64_t n = read_whole(L, i, "an index");
    check_position(L, n);
    add_item(L, key, ITEM_POSITION)->first = n;
    return;
  }
  case LUA_TTABLE:
    read_range(L, key, i);
    return;
  case LUA_TSTRING:
    read_text(L, key, lt_lua_text(L, i, "index", "index"));
    return;
  default:
    break;
  }
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (!t)
    lt_lua_error(L,
                 "index: expected an integer, a range {first, last}, a tensor or a string such as "
                 "\"2:5, :\", got %s%s",
                 lt_lua_describe(L, i),
                 lua_isboolean(L, i) ? "\nhint: x == 0 is one boolean in Lua; x:eq(0), x:lt(0)... "
                                       "compare each element"
                                     : "");
  read_tensor(L, key, t);
}

/* Parses the key at index 2. A table is a list of entries, never a single range. */
static void read_key(lua_State *L, Key *key) {
  key->count = 0;
  if (lua_type(L, 2) != LUA_TTABLE) {
    read_entry(L, key, 2);
    return;
  }
  int n = lt_lua_length(L, "index", NULL, 2), seen = 0;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) seen++;
  if (seen != n)
    lt_lua_error(L, "index: expected a list of indices, got a table with %s",
                 seen > n ? "a named or missing entry" : "nil");
  luaL_checkstack(L, MAX_ITEMS + 8, "too many entries");
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    read_entry(L, key, lua_gettop(L)); /* keeps tensors alive on the stack: the table may change */
  }
}

/* Keeps the tensors of x[key] = value in use during the assignment, which may be several ops. */
typedef struct {
  lt_Use use;
  lt_Arg operand[2 + MAX_ITEMS];
} Operands;

/* Starts the use of all operands. Returns false with the reason when one of them was freed; the
 * caller ends the use in either case. */
static bool enter_use(Operands *o, lt_Tensor *t, const Key *key, lt_Tensor *value) {
  static const char *const names[] = {"self", "value", "index"};
  bool ok = true;
  int n = 2;
  o->operand[0] = LT_ARG(t);
  o->operand[1] = LT_ARG(value);
  for (int i = 0; i < key->count; i++)
    if (key->item[i].kind == ITEM_TENSOR) o->operand[n++] = LT_ARG(key->item[i].tensor);
  for (int i = 0; ok && i < n; i++)
    ok = lt_tensor_usable(o->operand[i].tensor, "index", names[i < 2 ? i : 2]);
  lt_use_enter(lt_thread(), &o->use, o->operand, n);
  return ok;
}

/* Raises the core's reason under the name "index": the ops used here name themselves ("fill_:
 * ..."), but the user wrote an index. */
static void fail_index(lua_State *L) {
  const char *reason = lt_error(), *colon = strstr(reason, ": ");
  lt_Lua *S = lt_lua_state(L);
  bool op = colon && (size_t)(colon - reason) == strcspn(reason, ": ");
  if (op && S->pending_ref == LUA_NOREF && !atomic_load(&lt_interrupt_flag))
    lt_lua_error(L, "index%s", colon);
  lt_lua_fail(L, "index");
}

/* ---- applying -------------------------------------------------------------------------------- */

/* Returns how many dimensions of the tensor an item indexes. */
static int item_dims(const Item *item) {
  if (item->kind == ITEM_NEWAXIS || item->kind == ITEM_ELLIPSIS) return 0;
  return item->kind == ITEM_TENSOR && item->tensor->dtype == LT_bool ? item->tensor->ndim : 1;
}

/* Selects index i of dim; `user_dim` is the dim's number in messages, since earlier items removed
 * dims. */
static lt_Tensor *apply_position(lt_Tensor *t, int dim, int user_dim, int64_t i) {
  int64_t n = t->shape[dim];
  if (i > n || i < -n)
    return lt_error_set(
        "index: cannot index dim %d with %lld: the index is out of range, the size is %lld",
        user_dim, (long long)i, (long long)n);
  return lt_do(select, LT_ARG(t), LT_ARG(dim), LT_ARG(i > 0 ? i - 1 : i));
}

/* Slices dim. Ends beyond the tensor are clipped, as in Python. */
static lt_Tensor *apply_range(lt_Tensor *t, int dim, const Item *item) {
  int64_t n = t->shape[dim], first = item->first, last = item->last;
  if (first < 0) first += n + 1;
  if (last < 0) last += n + 1;
  if (first < 1) first = 1;
  if (last > n) last = n;
  int64_t count = last < first ? 0 : (last - first) / item->step + 1;
  if (count == n && item->step == 1) return t;
  return lt_do(_slice, LT_ARG(t), LT_ARG(dim), LT_ARG(count ? first - 1 : 0), LT_ARG(count),
               LT_ARG(item->step));
}

static lt_Tensor *to_device_of(lt_Tensor *t, lt_Tensor *like) {
  lt_Device device = lt_tensor_device(like);
  return lt_device_equal(lt_tensor_device(t), device) ? t : lt_do(to, LT_ARG(t), LT_ARG(device));
}

/* Returns an index tensor on the device of the tensor that it indexes. Only a tensor on the CPU is
 * copied there implicitly; for any other returns NULL with the reason. */
static lt_Tensor *index_on(lt_Tensor *index, lt_Tensor *like) {
  lt_Device from = lt_shown_device(index), to = lt_shown_device(like);
  if (lt_device_equal(from, to)) return index;
  if (from.type == LT_DEVICE_cpu) return to_device_of(index, like);
  lt_error_set("index: expected %s on \"%s\", where the tensor is%s, got one on \"%s\"\nhint: "
               "index:to(\"%s\")",
               index->dtype == LT_bool ? "a mask" : "an index tensor", lt_device_name(to),
               to.type == LT_DEVICE_cpu ? "" : ", or on \"cpu\"", lt_device_name(from),
               lt_device_name(to));
  return NULL;
}

/* Checks the shape of a mask over the dims from `dim` on. */
static bool plan_mask(Plan *p, int dim, int user_dim, lt_Tensor *mask) {
  for (int i = 0; i < mask->ndim; i++) {
    if (mask->shape[i] == p->view->shape[dim + i]) continue;
    lt_error_set("index: cannot apply a mask of shape %s to a tensor of shape %s: dim %d has size "
                 "%lld, the mask's %lld",
                 lt_shape_text(mask->ndim, mask->shape),
                 lt_shape_text(p->view->ndim, p->view->shape), user_dim + i,
                 (long long)p->view->shape[dim + i], (long long)mask->shape[i]);
    return false;
  }
  p->mask = mask;
  return true;
}

/* Converts a mask to the indices of its true elements: one index tensor for each of its dims. */
static bool expand_mask(Plan *p, int dim, lt_Tensor *mask) {
  lt_Tensor *found = lt_do(nonzero, LT_ARG(mask));
  if (!found) return false;
  for (int i = 0; i < mask->ndim; i++) {
    p->index[p->count] = lt_do(select, LT_ARG(found), LT_ARG(1), LT_ARG(i));
    p->dim[p->count] = dim + i;
    if (!p->index[p->count++]) return false;
  }
  return true;
}

/* Adds an index tensor to the plan. `alone`: it is the whole key. */
static bool plan_tensor(Plan *p, int dim, int user_dim, lt_Tensor *index, bool alone) {
  index = index_on(index, p->view);
  if (!index) return false;
  if (index->dtype == LT_bool) {
    if (!plan_mask(p, dim, user_dim, index)) return false;
    if (alone && index->ndim == p->view->ndim) return true;
    p->mask = NULL;
    return expand_mask(p, dim, index);
  }
  p->index[p->count] = index;
  p->dim[p->count++] = dim;
  return true;
}

/* Applies the integers and ranges of a key to t and collects its index tensors. Returns false with
 * the reason when the key does not fit t. */
static bool make_plan(Plan *p, lt_Tensor *t, const Key *key) {
  int dims = 0, ellipses = 0, dim = 0, user_dim = 1;
  p->view = t; /* by member: clearing the lists takes longer */
  p->count = 0;
  p->mask = NULL;
  for (int i = 0; i < key->count; i++) {
    dims += item_dims(&key->item[i]);
    ellipses += key->item[i].kind == ITEM_ELLIPSIS;
  }
  if (ellipses > 1) return lt_error_set("index: expected at most one \"...\", got more");
  if (dims > t->ndim)
    return lt_error_set("index: expected at most %d ind%s for a tensor of shape %s, got %d",
                        t->ndim, t->ndim == 1 ? "ex" : "ices", lt_shape_text(t->ndim, t->shape),
                        dims);
  for (int i = 0; i < key->count && p->view; i++) {
    const Item *item = &key->item[i];
    switch (item->kind) {
    case ITEM_ELLIPSIS:
      dim += t->ndim - dims;
      user_dim += t->ndim - dims;
      continue;
    case ITEM_NEWAXIS:
      p->view = lt_do(unsqueeze, LT_ARG(p->view), LT_ARG(dim++));
      continue;
    case ITEM_POSITION:
      p->view = apply_position(p->view, dim, user_dim, item->first);
      break;
    case ITEM_RANGE:
      p->view = apply_range(p->view, dim++, item);
      break;
    case ITEM_TENSOR:
      if (!plan_tensor(p, dim, user_dim, item->tensor, key->count == 1)) return false;
      dim += item_dims(item);
      break;
    }
    user_dim += item_dims(item);
  }
  return p->view != NULL;
}

/* Returns t[key], a view where possible; NULL with the reason. */
static lt_Tensor *get(lt_Tensor *t, const Key *key) {
  Plan p;
  if (!make_plan(&p, t, key)) return NULL;
  if (p.mask) return lt_do(masked_select, LT_ARG(p.view), LT_ARG(p.mask));
  if (p.count)
    return lt_do(_index, LT_ARG(p.view), LT_TENSORS(p.index, p.count), LT_INTS(p.dim, p.count));
  return p.view == t ? lt_do(_alias, LT_ARG(t)) : p.view;
}

/* Returns whether the caller is the iterator of ipairs. It reads one past the end, which ends the
 * loop. */
static bool called_by_ipairs(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar)) return false;
  lua_getinfo(L, "f", &ar);
  lua_rawgeti(L, LUA_REGISTRYINDEX, lt_lua_state(L)->ipairs_ref);
  bool is = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return is;
}

/* Pushes t[i], the most frequent form, without parsing a key. */
static int get_position(lua_State *L, lt_Tensor *t, int64_t i) {
  check_position(L, i);
  if (t->ndim == 0) lt_lua_error(L, "index: cannot index a tensor of 0 dims\nhint: x:item()");
  int64_t n = t->shape[0];
  if (i == n + 1 && called_by_ipairs(L)) {
    lua_pushnil(L);
    return 1;
  }
  if (i > n || i < -n)
    lt_lua_error(L,
                 "index: cannot index dim 1 with %lld: the index is out of range, the size is %lld",
                 (long long)i, (long long)n);
  lt_lua_op1(L, "index", LT_OP_select, (lt_Arg[]){LT_ARG(t), LT_ARG(0), LT_ARG(i > 0 ? i - 1 : i)},
             3);
  return 1;
}

int lt_lua_index_get(lua_State *L, lt_Tensor *t) {
  int64_t i;
  Key key;
  if (lt_lua_whole(L, 2, &i)) return get_position(L, t, i);
  read_key(L, &key);
  lt_Lua *S = lt_lua_state(L);
  lt_lua_enter(L, S);
  lt_Box *box = lt_lua_new_box(L, S);
  Operands o;
  size_t mark = lt_scope_open();
  box->tensor = lt_scope_close(mark, enter_use(&o, t, &key, NULL) ? get(t, &key) : NULL);
  lt_use_leave(lt_thread(), &o.use);
  if (!box->tensor) fail_index(L);
  lt_lua_charge(L, S);
  return 1;
}

/* ---- assignment ------------------------------------------------------------------------------ */

/* Removes leading dims of size 1 that the value has in excess, as PyTorch does. */
static lt_Tensor *fit(lt_Tensor *value, int ndim) {
  while (value && value->ndim > ndim && value->shape[0] == 1)
    value = lt_do(select, LT_ARG(value), LT_ARG(0), LT_ARG(0));
  return value;
}

/* Scatters the value, or the scalar s if value is NULL, to the indexed elements. */
static bool put(Plan *p, lt_Tensor *value, lt_Scalar s) {
  if (!value) value = lt_scope_own(lt_scalar_tensor(s, p->view->dtype));
  if (value && value->ndim > 0) value = to_device_of(value, p->view);
  if (value && value->dtype != p->view->dtype)
    value = lt_do(to, LT_ARG(value), LT_NIL, lt_arg_dtype(p->view->dtype));
  if (p->mask && !expand_mask(p, 0, p->mask)) return false;
  return value && lt_do_in_place(_index_put, LT_ARG(p->view), LT_TENSORS(p->index, p->count),
                                 LT_INTS(p->dim, p->count), LT_ARG(value));
}

/* Assigns the value, or the scalar s if value is NULL, to t[key]. Returns false with the reason. */
static bool set(lt_Tensor *t, const Key *key, lt_Tensor *value, lt_Scalar s) {
  Plan p;
  if (!make_plan(&p, t, key)) return false;
  if (!value && p.mask)
    return lt_do_in_place(masked_fill, LT_ARG(p.view), LT_ARG(p.mask), LT_ARG(s)) != NULL;
  if (p.mask || p.count) return put(&p, value, s);
  if (!value) return lt_do_in_place(fill, LT_ARG(p.view), LT_ARG(s)) != NULL;
  value = fit(value, p.view->ndim);
  return value && lt_do(copy_, LT_ARG(p.view), LT_ARG(value)) != NULL;
}

int lt_lua_index_set(lua_State *L, lt_Tensor *t) {
  Key key;
  lt_Scalar s = {0};
  lt_Tensor *value = lt_lua_to_tensor(L, 3);
  read_key(L, &key);
  if (lua_type(L, 3) == LUA_TTABLE) {
    value = lt_lua_from_value(L, "index", 3, t->dtype, lt_tensor_is_meta(t) ? lt_meta() : lt_cpu());
  } else if (!value && !lt_lua_scalar(L, 3, &s)) {
    lt_lua_error(L, "index: expected a number, a tensor or a table of numbers as the value, got %s",
                 lt_lua_describe(L, 3));
  }
  lt_lua_enter(L, lt_lua_state(L));
  Operands o;
  size_t mark = lt_scope_open();
  bool ok = enter_use(&o, t, &key, value) && set(t, &key, value, s);
  lt_scope_close(mark, NULL);
  lt_use_leave(lt_thread(), &o.use);
  if (!ok) fail_index(L);
  lt_lua_charge(L, lt_lua_state(L));
  return 0;
}
