/* errors.c: converts failures of the core to Lua errors, positioned at the user's line, and
 * describes Lua values for messages. */
#include "bindings.h"
#include "worker.h"

#include <ctype.h>
#include <stdarg.h>

const char lt_lua_methods_key = 0;

/* Returns whether this function belongs to the library: it is in C, or in a file under
 * lib/lutra. */
static bool is_library(const lt_Lua *S, const lua_Debug *ar) {
  if (ar->what[0] == 'C') return true;
  size_t n = strlen(S->root);
  if (n == 0 || strncmp(ar->source, S->root, n) != 0) return false;
  return ar->source[n] == '/' || strcmp(ar->source + n, ".lua") == 0;
}

/* Finds the nearest Lua function outside the library; returns its level, 0 when there is none. */
static int find_user(lua_State *L, const lt_Lua *S, lua_Debug *ar) {
  for (int level = 1; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline > 0 && !is_library(S, ar)) return level;
  }
  return 0;
}

/* Pushes "file:line: " of that function; without one, of the nearest function. */
static void push_where(lua_State *L) {
  lua_Debug ar;
  if (find_user(L, lt_lua_state(L), &ar))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    luaL_where(L, 1);
}

/* Pushes the path of the module in which the error is raised, "net.head: ", or "". */
static void push_path(lua_State *L, lt_Lua *S) {
  int path = S->path_ref, top = lua_gettop(L);
  bool found = false;
  if (path != LUA_NOREF) {
    S->path_ref = LUA_NOREF; /* the function may itself fail */
    lua_rawgeti(L, LUA_REGISTRYINDEX, path);
    found = lua_pcall(L, 0, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING;
    S->path_ref = path;
  }
  if (found) return;
  lua_settop(L, top);
  lua_pushliteral(L, "");
}

void lt_lua_where(void *state, char *text, size_t size) {
  lua_Debug ar;
  const lt_Lua *S = state;
  if (lt_lua_is_running(S) && find_user(S->L, S, &ar))
    snprintf(text, size, "%s:%d", ar.short_src, ar.currentline);
}

/* Returns the name of the tensor method that this function is, NULL if none. Lua knows no name for
 * a function called from C. */
static const char *method_name(lua_State *L, lua_Debug *ar) {
  const char *name = NULL;
  if (!lua_checkstack(L, 6)) return NULL;
  int top = lua_gettop(L);
  lua_getinfo(L, "f", ar);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lt_lua_methods_key) == LUA_TTABLE)
    for (lua_pushnil(L); !name && lua_next(L, -2); lua_pop(L, 1))
      if (lua_rawequal(L, -1, top + 1) && lua_type(L, -2) == LUA_TSTRING)
        name = lua_tostring(L, -2);
  lua_settop(L, top); /* the table keeps the name alive */
  return name;
}

static bool is_pcall(const char *name) {
  return strcmp(name, "pcall") == 0 || strcmp(name, "xpcall") == 0;
}

/* After a tail call or a pcall Lua knows no name, so the name of the innermost function is used.
 * That also holds for a method passed as a value to a library function, which calls its
 * parameter. */
bool lt_lua_called(const lt_Lua *S, char *text, size_t size) {
  lua_Debug ar;
  lua_State *L = S->L;
  text[0] = 0;
  int level = lt_lua_is_running(S) ? find_user(L, S, &ar) - 1 : -1;
  if (level < 0 || !lua_getstack(L, level, &ar)) return false;
  lua_getinfo(L, "n", &ar);
  const char *name = ar.name;
  if (level > 0) {
    lua_getstack(L, 0, &ar);
    lua_getinfo(L, "n", &ar);
    const char *method = ar.name && strcmp(ar.namewhat, "local") == 0 ? method_name(L, &ar) : NULL;
    if (method)
      name = method;
    else if (!name || is_pcall(name))
      name = ar.name ? ar.name : method_name(L, &ar);
  }
  if (name) snprintf(text, size, "%s", name);
  return level == 0;
}

bool lt_lua_called_from(const lt_Lua *S, const char *folder) {
  lua_Debug ar;
  size_t n = strlen(S->root);
  if (n == 0 || !lt_lua_is_running(S) || !lua_getstack(S->L, 1, &ar)) return false;
  lua_getinfo(S->L, "S", &ar);
  return strncmp(ar.source, S->root, n) == 0 && strncmp(ar.source + n, folder, strlen(folder)) == 0;
}

bool lt_lua_called_through(const lt_Lua *S, const char *folder) {
  lua_Debug ar;
  lua_State *L = S->L;
  size_t root = strlen(S->root), n = strlen(folder);
  int user = root > 0 && lt_lua_is_running(S) ? find_user(L, S, &ar) : 0;
  for (int level = 1; level < user && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "S", &ar);
    bool is_file = ar.what[0] != 'C' && strncmp(ar.source, S->root, root) == 0;
    if (is_file && strncmp(ar.source + root, folder, n) != 0) return true;
  }
  return false;
}

int lt_lua_error(lua_State *L, const char *format, ...) {
  char text[2400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  luaL_checkstack(L, 4, text);
  push_where(L);
  if (strcmp(text, "interrupted") == 0)
    lua_pushliteral(L, "");
  else
    push_path(L, lt_lua_state(L));
  lua_pushstring(L, text);
  lua_concat(L, 3);
  lua_error(L);
  abort(); /* not reached */
}

static const char *text_field(lua_State *L, int i, const char *key) {
  lua_getfield(L, i, key);
  const char *text = lua_tostring(L, -1);
  lua_pop(L, 1); /* the table keeps it alive */
  return text;
}

static lt_TensorLabel known_at(lua_State *L, int i) {
  return (lt_TensorLabel){text_field(L, i, "name"), text_field(L, i, "note"),
                          text_field(L, i, "device"), text_field(L, i, "move")};
}

/* Pushes the reason of the failure. If it is about two tensors, the function registered by _explain
 * adds their names, where they were created, and further lines. */
static void push_reason(lua_State *L, const lt_Lua *S) {
  const lt_Tensor *tensor[2];
  const lt_Storage *memory[2];
  int top = lua_gettop(L);
  if (!lt_error_tensors(tensor, memory) || S->explain_ref == LUA_NOREF) {
    lua_pushstring(L, lt_error());
    return;
  }
  lt_ErrorSlot kept; /* the call below may set another error */
  lt_error_keep(&kept);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->explain_ref);
  for (int i = 0; i < 2; i++) {
    lua_pushlightuserdata(L, (void *)tensor[i]);
    lua_pushlightuserdata(L, (void *)memory[i]);
  }
  bool ok = lua_pcall(L, 4, 3, 0) == LUA_OK;
  lt_error_restore(&kept);
  if (ok) lt_error_name((lt_TensorLabel[2]){known_at(L, top + 1), known_at(L, top + 2)});
  const char *more = ok ? lua_tostring(L, top + 3) : NULL;
  lua_pushfstring(L, "%s%s", lt_error(), more ? more : "");
}

int lt_lua_fail(lua_State *L, const char *name) {
  lt_Lua *S = lt_lua_state(L);
  if (S->pending_ref != LUA_NOREF) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->pending_ref);
    luaL_unref(L, LUA_REGISTRYINDEX, S->pending_ref);
    S->pending_ref = LUA_NOREF;
    lua_error(L);
  }
  if (lt_interrupt_take()) lt_lua_error(L, "interrupted");
  push_reason(L, S);
  const char *reason = lua_tostring(L, -1);
  const char *line = strchr(reason, '\n'), *colon = strstr(reason, ": ");
  if (name && (!colon || (line && line < colon))) lt_lua_error(L, "%s: %s", name, reason);
  lt_lua_error(L, "%s", reason);
}

const char *lt_lua_quote(lua_State *L, int i) {
  size_t n;
  const char *s = lua_tolstring(L, i, &n);
  luaL_Buffer b;
  luaL_buffinitsize(L, &b, n + 1);
  for (size_t k = 0; k < n; k++)
    if (s[k])
      luaL_addchar(&b, s[k]);
    else
      luaL_addstring(&b, "\\0");
  luaL_pushresult(&b);
  return lua_tostring(L, -1);
}

bool lt_lua_is_text(lua_State *L, int i) {
  size_t n;
  return lua_type(L, i) == LUA_TSTRING && strlen(lua_tolstring(L, i, &n)) == n;
}

const char *lt_lua_text(lua_State *L, int i, const char *function, const char *argument) {
  if (lt_lua_is_text(L, i)) return lua_tostring(L, i);
  lt_lua_error(L, "%s: expected a string%s for argument '%s', got %s", function,
               lua_type(L, i) == LUA_TSTRING ? " without NUL bytes" : "", argument,
               lt_lua_describe(L, i));
}

const char *lt_lua_describe(lua_State *L, int i) {
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (t) return lua_pushfstring(L, "a tensor of shape %s", lt_shape_text(t->ndim, t->shape));
  if (lt_lua_to_box(L, i)) return lua_pushliteral(L, "a tensor that was freed (x:free())");
  switch (lua_type(L, i)) {
  case LUA_TSTRING: {
    const char *s = lt_lua_quote(L, i);
    return strlen(s) <= 40 ? lua_pushfstring(L, "the string \"%s\"", s)
                           : lua_pushliteral(L, "a long string");
  }
  case LUA_TNUMBER:
    if (lua_tonumber(L, i) != lua_tonumber(L, i)) return lua_pushliteral(L, "nan");
    return luaL_tolstring(L, i, NULL);
  case LUA_TBOOLEAN:
    return luaL_tolstring(L, i, NULL);
  case LUA_TNIL:
  case LUA_TNONE:
    return lua_pushliteral(L, "nil");
  default:
    break;
  }
  if (luaL_getmetafield(L, i, "__name") == LUA_TSTRING) {
    lua_pushfstring(L, "a %s", lua_tostring(L, -1));
    lua_remove(L, -2);
    return lua_tostring(L, -1);
  }
  return lua_pushfstring(L, "a %s", luaL_typename(L, i));
}

/* Returns the edit distance between a and b: letters to insert, remove, replace or swap (Damerau
 * 1964). 99 for words of more than 39 letters. */
static int distance(const char *a, const char *b) {
  int n = (int)strlen(a), m = (int)strlen(b), d[3][41];
  if (n > 39 || m > 39) return 99;
  for (int j = 0; j <= m; j++) d[0][j] = j;
  for (int i = 1; i <= n; i++) {
    int *now = d[i % 3], *before = d[(i + 2) % 3], *earlier = d[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= m; j++) {
      int best = before[j - 1] + (a[i - 1] != b[j - 1]);
      if (before[j] + 1 < best) best = before[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && earlier[j - 2] + 1 < best) best = earlier[j - 2] + 1;
      now[j] = best;
    }
  }
  return d[n % 3][m];
}

/* Returns whether the words differ only in case and underscores. */
static bool same_letters(const char *a, const char *b) {
  do {
    while (*a == '_') a++;
    while (*b == '_') b++;
    if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
  } while (*a++ && *b++);
  return true;
}

/* A third of the letters may differ, in words of up to three letters none: a closer match there is
 * another word, as next is for net. Among names at the same distance the first in alphabetical
 * order wins, whatever the order of the calls. */
void lt_lua_nearest(lt_Nearest *n, const char *candidate) {
  int letters = (int)strlen(n->word), limit = letters < 4 ? 0 : letters / 3;
  int d = same_letters(n->word, candidate) ? 0 : distance(n->word, candidate);
  if (d > limit || strlen(candidate) >= sizeof n->best) return;
  if (n->best[0] && (d > n->distance || (d == n->distance && strcmp(candidate, n->best) >= 0)))
    return;
  n->distance = d;
  memcpy(n->best, candidate, strlen(candidate) + 1);
}

/* _nearest(word, list) -> the word of the list that is nearest by spelling, or nil */
static int nearest(lua_State *L) {
  lt_Nearest n = {.word = luaL_checkstring(L, 1)};
  luaL_checktype(L, 2, LUA_TTABLE);
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
    lt_lua_nearest(&n, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  lua_pushstring(L, n.best[0] ? n.best : NULL);
  return 1;
}

/* _in_name_of(op, i, ndim, f, ...) -> the results of f(...), whose errors are reported in the name
 * of an internal op; those about index values name its argument i, a tensor of ndim dimensions */
static int in_name_of(lua_State *L) {
  int id = lt_op_find(luaL_checkstring(L, 1)), i = (int)luaL_checkinteger(L, 2) - 1;
  luaL_argcheck(L, id >= 0, 1, "expected the name of an op");
  luaL_argcheck(L, i >= 0 && i < lt_op_signature(id)->count, 2, "expected a parameter of the op");
  luaL_checkany(L, 4);
  lt_UserIndex index = {lt_op_signature(id)->param[i].name, (int)luaL_checkinteger(L, 3)};
  lt_UserOp op_before = lt_user_op_set((lt_UserOp){lt_ops[id].name, false});
  lt_UserIndex index_before = lt_user_index_set(index);
  int status = lua_pcall(L, lua_gettop(L) - 4, LUA_MULTRET, 0);
  lt_user_index_set(index_before);
  lt_user_op_set(op_before);
  return status == LUA_OK ? lua_gettop(L) - 3 : lua_error(L);
}

void lt_lua_open_errors(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {
      {"_nearest", nearest}, {"_in_name_of", in_name_of}, {NULL, NULL}};
  (void)methods;
  lua_pushvalue(L, functions);
  lt_lua_setfuncs(L, module);
  lua_pop(L, 1);
}
