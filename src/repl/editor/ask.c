// Every query is one protected call of `ask`, which contains all that may fail: no Lua error ever
// jumps through the library. Answers are copied to memory that is not Lua's.
#include "ask.h"
#include "paint.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

static lua_State *state; // NULL: no queries are possible
static int table;        // stack index of the table in `state`
static char color_texts[LT_PAINTS][24];
static const char *colors[LT_PAINTS];
static bool colored;

struct question {
  const char *name, *text;
  size_t size, point;
  int results;
  // reads the results, at index 1 and up; may raise an error
  void (*read)(lua_State *L, void *answer);
  void *answer;
};

// Calls one function of the table. Stack: table, question.
static int ask(lua_State *L) {
  const struct question *q = lua_touserdata(L, 2);
  lua_getfield(L, 1, q->name);
  lua_pushlstring(L, q->text, q->size);
  lua_pushinteger(L, (lua_Integer)q->point);
  lua_call(L, 2, q->results);
  lua_rotate(L, 1, q->results);
  q->read(L, q->answer);
  return 0;
}

// Calls f(table, data) in protected mode; returns whether it succeeded.
static bool call(lua_CFunction f, void *data) {
  if (!state || !lua_checkstack(state, 4)) return false;
  int top = lua_gettop(state);
  lua_pushcfunction(state, f);
  lua_pushvalue(state, table);
  lua_pushlightuserdata(state, data);
  bool ok = lua_pcall(state, 2, 0, 0) == LUA_OK;
  lua_settop(state, top);
  return ok;
}

static char *copy(lua_State *L, int index) {
  const char *text = lua_tostring(L, index);
  return text ? strdup(text) : NULL;
}

// ---- colours

static int read_colors(lua_State *L) {
  static const char *const names[LT_PAINTS] = {
      [LT_PAINT_MATCH] = "match", [LT_PAINT_FOUND] = "found", [LT_PAINT_COMMAND] = "command"};
  bool *found = lua_touserdata(L, 2);
  *found = lua_getfield(L, 1, "colors") == LUA_TTABLE;
  for (int i = 1; *found && i < LT_PAINTS; i++) {
    lua_getfield(L, -1, names[i] ? names[i] : lt_token_names[i - LT_PAINT_TOKEN]);
    const char *text = lua_tostring(L, -1);
    color_texts[i][0] = '\0';
    if (text) strncat(color_texts[i], text, sizeof color_texts[i] - 1);
    colors[i] = color_texts[i];
    lua_pop(L, 1);
  }
  return 0;
}

void lt_ask_begin(lua_State *L, int index) {
  state = L;
  table = index;
  if (!call(read_colors, &colored)) colored = false;
}

void lt_ask_end(void) { state = NULL; }

const char *const *lt_ask_colors(void) { return colored ? colors : NULL; }

// ---- questions

static void read_flag(lua_State *L, void *answer) { *(bool *)answer = lua_toboolean(L, 1); }

bool lt_ask_unfinished(const char *text, size_t size) {
  bool answer = false;
  struct question q = {"unfinished", text, size, size, 1, read_flag, &answer};
  return call(ask, &q) && answer;
}

static void read_text(lua_State *L, void *answer) { *(char **)answer = copy(L, 1); }

char *lt_ask_text(const char *name, const char *text, size_t size, size_t point) {
  char *answer = NULL;
  struct question q = {name, text, size, point, 1, read_text, &answer};
  (void)call(ask, &q);
  return answer;
}

static void read_completion(lua_State *L, void *answer) {
  struct lt_completion *a = answer;
  a->from = (size_t)luaL_checkinteger(L, 1) - 1;
  a->to = (size_t)luaL_checkinteger(L, 2);
  a->text = copy(L, 3);
  a->list = copy(L, 4);
}

bool lt_ask_complete(const char *text, size_t size, size_t point, struct lt_completion *answer) {
  *answer = (struct lt_completion){0, 0, NULL, NULL};
  struct question q = {"complete", text, size, point, 4, read_completion, answer};
  if (call(ask, &q) && answer->text && answer->from <= answer->to && answer->to <= size)
    return true;
  free(answer->text);
  free(answer->list);
  return false;
}
