/* graph.c: the autograd graph of a tensor as Lua tables, for drawing, and the base of a view.
 *
 * Nodes are numbered in breadth-first order, so the first ones are the nearest to the tensor; a
 * table maps a node's address to its number. There is no recursion: the depth of a graph is limited
 * by memory only. The tables keep none of the graph's memory alive except leaf tensors. While the
 * graph is read, an alias of the tensor keeps it alive: a finalizer may free the tensor, or run a
 * backward pass that releases saved tensors. */
#include "autograd/autograd.h"
#include "bindings.h"

/* Stack indices; NUMBERS maps the address of a node to its number. */
enum { TENSOR = 1, LIMIT, NODES, NUMBERS };

/* Nodes found so far, by number - 1. The array is a userdata, so that a Lua error does not leak
 * it. */
typedef struct Found {
  lt_Node **node;
  size_t count, capacity;
  int slot; /* stack index of the userdata */
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

static void grow(lua_State *L, Found *f) {
  if (f->count < f->capacity) return;
  size_t capacity = f->capacity ? 2 * f->capacity : 256;
  lt_Node **more = lua_newuserdatauv(L, capacity * sizeof *more, 0);
  if (f->count) memcpy(more, f->node, f->count * sizeof *more);
  lua_replace(L, f->slot);
  f->node = more;
  f->capacity = capacity;
}

/* Returns the number of a node; assigns the next one to a new node. */
static lua_Integer number_of(lua_State *L, Found *f, lt_Node *n) {
  lua_Integer number = (lua_Integer)f->count + 1;
  if (lua_rawgetp(L, NUMBERS, n) == LUA_TNUMBER) {
    number = lua_tointeger(L, -1);
  } else {
    grow(L, f);
    f->node[f->count++] = n;
    lua_pushinteger(L, number);
    lua_rawsetp(L, NUMBERS, n);
  }
  lua_pop(L, 1);
  return number;
}

/* Pushes a list of {what, shape, dtype, bytes}, one for each tensor that the node saves. */
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

/* Pushes a list of {shape, dtype, node = number or leaf = tensor}, one for each input that receives
 * a gradient. */
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

/* Pushes the description of a node. An op that changed a view in place has its saved tensors in an
 * inner node. */
static void push_node(lua_State *L, Found *f, lt_Node *n) {
  const lt_Node *owner = n->kind == LT_NODE_SLICES ? ((lt_Slices *)n->extra)->inner : n;
  lua_createtable(L, 0, 5);
  set_string(L, "name", lt_node_name(n));
  set_integer(L, "sequence", (int64_t)n->sequence);
  lua_pushboolean(L, n->freed);
  lua_setfield(L, -2, "freed");
  push_saved(L, owner);
  lua_setfield(L, -2, "saved");
  push_inputs(L, f, n);
  lua_setfield(L, -2, "inputs");
}

/* Numbers the nodes that this node leads to without describing them, to count the whole graph. */
static void follow(lua_State *L, Found *f, const lt_Node *n) {
  for (int i = 0; i < n->ninputs; i++)
    if (n->input[i].edge.node) (void)number_of(L, f, n->input[i].edge.node);
}

/* _graph(x, limit) -> a list of at most `limit` nodes, starting with the one that produced x, and
 * the number of all nodes; for a leaf an empty list and 0. A node is {name, sequence (larger than
 * those of the nodes it leads to), freed, saved, inputs}. */
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

/* _base(x) -> the tensor whose view x is, directly or through other views, or nil. Only views that
 * a gradient can reach record it: of a float dtype, not created in inference mode. */
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
