/* captures.c: graphs of accelerators for Lua. The public functions are in lib/lutra/cuda.lua and
 * lib/lutra/internal/cuda_graph.lua; this file has what only C can do. */
#include "accelerator.h"

#define GRAPH "lutra.graph"

typedef struct GraphBox {
  lt_Graph *graph; /* NULL: freed */
} GraphBox;

static lt_Graph *graph_at(lua_State *L) {
  GraphBox *box = luaL_checkudata(L, 1, GRAPH);
  if (!box->graph) lt_lua_error(L, "graph: expected a graph that was captured, got one without");
  return box->graph;
}

/* Returns the backend of the device at index 1; raises an error where it has no graphs. */
static const lt_Backend *backend_of(lua_State *L, const char *function, lt_Device *d) {
  *d = lt_lua_full_device(L, 1);
  const lt_Backend *b = lt_device_backend(d->type);
  if (!b->graphs.begin)
    lt_lua_error(L, "%s: cannot capture a graph on \"%s\": the device has no graphs", function,
                 lt_device_name(*d));
  return b;
}

/* new_pool(device) -> the number of a new private pool */
static int new_pool(lua_State *L) {
  lt_Device d;
  const lt_Backend *b = backend_of(L, "graph_pool_handle", &d);
  lua_pushinteger(L, b->graphs.pool_new(b));
  return 1;
}

/* graph_begin(device, pool | nil) -> a graph: captures on the device's current stream */
static int graph_begin(lua_State *L) {
  lt_Device d;
  const lt_Backend *b = backend_of(L, "graph", &d);
  uint32_t pool = (uint32_t)luaL_optinteger(L, 2, 0);
  lt_lua_enter(L, lt_lua_state(L));
  GraphBox *box = lua_newuserdatauv(L, sizeof *box, 0);
  box->graph = NULL;
  luaL_setmetatable(L, GRAPH);
  lt_Stream *s = b->streams.current(b, d.index);
  box->graph = s ? b->graphs.begin(b, s, pool) : NULL;
  if (!box->graph) lt_lua_fail(L, "graph");
  return 1;
}

/* graph_end(graph): ends the capture. After an error the graph must be freed. */
static int graph_end(lua_State *L) {
  lt_Graph *g = graph_at(L);
  lt_lua_enter(L, lt_lua_state(L));
  if (!g->backend->graphs.end(g)) lt_lua_fail(L, "graph");
  return 0;
}

/* graph_replay(graph): on the current stream of its device */
static int graph_replay(lua_State *L) {
  lt_Graph *g = graph_at(L);
  const lt_Backend *b = g->backend;
  lt_lua_enter(L, lt_lua_state(L));
  lt_Stream *s = b->streams.current(b, g->index);
  if (!s || !b->graphs.replay(g, s)) lt_lua_fail(L, "replay");
  return 0;
}

/* graph_pool(graph) -> the number of its private pool */
static int graph_pool(lua_State *L) {
  lt_Graph *g = graph_at(L);
  lua_pushinteger(L, g->backend->graphs.pool(g));
  return 1;
}

/* graph_free(graph): also ends its capture. Later calls do nothing. */
static int graph_free(lua_State *L) {
  GraphBox *box = luaL_checkudata(L, 1, GRAPH);
  lt_Graph *g = box->graph;
  box->graph = NULL;
  if (g) g->backend->graphs.destroy(g);
  return 0;
}

/* is_capturing(device) -> whether work on its current stream is captured */
static int is_capturing(lua_State *L) {
  lt_Device d = lt_lua_full_device(L, 1);
  const lt_Backend *b = lt_device_backend(d.type);
  lt_Stream *s = b->graphs.is_capturing ? b->streams.current(b, d.index) : NULL;
  lua_pushboolean(L, s && b->graphs.is_capturing(s));
  return 1;
}

/* capturing() -> whether this thread captures a graph, on any stream */
static int capturing(lua_State *L) {
  lua_pushboolean(L, lt_is_capturing());
  return 1;
}

void lt_lua_open_captures(lua_State *L) {
  static const luaL_Reg meta[] = {{"__gc", graph_free}, {"__close", graph_free}, {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"new_pool", new_pool},         {"graph_begin", graph_begin}, {"graph_end", graph_end},
      {"graph_replay", graph_replay}, {"graph_pool", graph_pool},   {"graph_free", graph_free},
      {"is_capturing", is_capturing}, {"capturing", capturing},     {NULL, NULL}};
  luaL_newmetatable(L, GRAPH);
  lt_lua_setfuncs(L, meta);
  lua_pop(L, 1);
  lt_lua_setfuncs(L, functions);
}
