/* graph.c: the graph behind a tensor as Lua data, for those who draw it; and what it is a view of.
 *
 * Nodes are numbered in the order in which they are found, breadth first, so the first ones are
 * the nearest to the tensor; a table maps a node's address to its number. There is no recursion:
 * a graph may be as deep as memory allows. What is drawn holds none of the graph's memory but its
 * leaves. While it is read, an alias of the tensor holds the graph: a finalizer may free the
 * tensor, or run a backward that lets the saved values go. */
#include "autograd/autograd.h"
#include "bindings.h"

/* Stack: the list of nodes, node address -> number. */
enum { TENSOR = 1, LIMIT, NODES, NUMBERS };

/* Nodes found so far, by number - 1; grows as userdata, so that a Lua error loses nothing. */
typedef struct Found {
  lt_Node **node;
  size_t count, room;
  int slot; /* of the stack, where the userdata is */
} Found;

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

static void set_shape(lua_State *L, int ndim, const int64_t *shape) {
  lt_lua_push_shape(L, ndim, shape);
  lua_setfield(L, -2, "shape");
}

static void make_room(lua_State *L, Found *f) {
  if (f->count < f->room) return;
  size_t room = f->room ? 2 * f->room : 256;
  lt_Node **more = lua_newuserdatauv(L, room * sizeof *more, 0);
  if (f->count) memcpy(more, f->node, f->count * sizeof *more);
  lua_replace(L, f->slot);
  f->node = more;
  f->room = room;
}

/* The number of a node, a new one when it was not seen before. */
static lua_Integer number_of(lua_State *L, Found *f, lt_Node *n) {
  lua_Integer number = (lua_Integer)f->count + 1;
  if (lua_rawgetp(L, NUMBERS, n) == LUA_TNUMBER) {
    number = lua_tointeger(L, -1);
  } else {
    make_room(L, f);
    f->node[f->count++] = n;
    lua_pushinteger(L, number);
    lua_rawsetp(L, NUMBERS, n);
  }
  lua_pop(L, 1);
  return number;
}

/* {what, shape, dtype, bytes} of each value that the node keeps. */
static void push_saved(lua_State *L, const lt_Node *n) {
  lua_newtable(L);
  for (int i = 0, k = 0; i < n->nsaved; i++) {
    if (!n->saved[i].tensor) continue;
    const lt_Tensor t = *n->saved[i].tensor;
    lua_createtable(L, 0, 4);
    set_string(L, "what", n->saved[i].what < 0 ? "result" : "input");
    set_string(L, "dtype", lt_dtype_name(t.dtype));
    set_shape(L, t.ndim, t.shape);
    set_integer(L, "bytes", t.numel * (int64_t)lt_dtype_size(t.dtype));
    lua_rawseti(L, -2, ++k);
  }
}

static lt_Tensor *itself(lt_Tensor *t) { return t; }

/* {shape, dtype, node = number or leaf = tensor} of each input that a gradient goes to. */
static void push_inputs(lua_State *L, Found *f, const lt_Node *n) {
  lua_newtable(L);
  for (int i = 0, k = 0; i < n->ninputs; i++) {
    const lt_Input *in = &n->input[i];
    if (!lt_edge_leads(&in->edge)) continue;
    lua_createtable(L, 0, 4);
    if (in->shape) set_shape(L, in->ndim, in->shape);
    set_string(L, "dtype", lt_dtype_name(in->dtype));
    if (in->edge.node) {
      set_integer(L, "node", number_of(L, f, in->edge.node));
    } else {
      lt_lua_push_same(L, itself, in->edge.leaf);
      lua_setfield(L, -2, "leaf");
    }
    lua_rawseti(L, -2, ++k);
  }
}

static void push_node(lua_State *L, Found *f, lt_Node *n) {
  const lt_Node *keeper = n->kind == LT_NODE_SLICES ? ((lt_Slices *)n->extra)->inner : n;
  lua_createtable(L, 0, 5);
  set_string(L, "name", lt_node_name(n));
  set_integer(L, "sequence", (int64_t)n->sequence);
  lua_pushboolean(L, n->freed);
  lua_setfield(L, -2, "freed");
  push_saved(L, keeper);
  lua_setfield(L, -2, "saved");
  push_inputs(L, f, n);
  lua_setfield(L, -2, "inputs");
}

/* Only gives numbers to what the node leads to, to count the graph. */
static void follow(lua_State *L, Found *f, const lt_Node *n) {
  for (int i = 0; i < n->ninputs; i++)
    if (n->input[i].edge.node) (void)number_of(L, f, n->input[i].edge.node);
}

/* _graph(x, limit) -> a list of at most `limit` nodes, the one that made x first, and how many
 * there are; of a leaf: an empty list, 0. A node is {name, sequence (larger than those of the nodes
 * it leads to), freed, saved, inputs}. */
static int graph(lua_State *L) {
  Found f = {.slot = NUMBERS + 1};
  lua_settop(L, LIMIT);
  lua_Integer limit = luaL_checkinteger(L, LIMIT);
  lua_newtable(L); /* NODES */
  lua_newtable(L); /* NUMBERS */
  lua_pushnil(L);  /* f.slot */
  lt_Box *box = lt_lua_box(L);
  lt_Tensor *t = lt_lua_check(L, TENSOR, "graph", "x");
  lt_Node *first = NULL;
  if (!lt_tensor_is_leaf(t)) {
    box->tensor = lt_alias_on(t, &t->meta->edge);
    if (!box->tensor) lt_lua_fail(L, "graph");
    first = box->tensor->meta->edge.node;
  }
  if (first) (void)number_of(L, &f, first);
  for (size_t i = 0; i < f.count; i++) {
    if ((lua_Integer)i >= limit) {
      follow(L, &f, f.node[i]);
      continue;
    }
    push_node(L, &f, f.node[i]);
    lua_rawseti(L, NODES, (lua_Integer)i + 1);
  }
  lua_settop(L, NODES);
  lua_pushinteger(L, (lua_Integer)f.count);
  return 2;
}

static lt_Tensor *base_of(lt_Tensor *t) { return lt_view_base(t); }

/* _base(x) -> the tensor that x is, in the end, a view of, or nil. Only views that a gradient can
 * reach know it: of a float dtype, not made in inference mode. */
static int base(lua_State *L) {
  lt_lua_push_same(L, base_of, lt_lua_check(L, 1, "_base", "x"));
  return 1;
}

void lt_lua_open_graph(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"_graph", graph}, {"_base", base}, {NULL, NULL}};
  (void)methods;
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
