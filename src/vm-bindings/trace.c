/* trace.c: records the core's trace events for Lua: `_trace`, on which lib/lutra/profiler.lua is
 * built.
 *
 * A recorder copies the events that the core reports into memory of its own (no Lua code may run
 * there) and returns them to Lua later, by number. Each distinct string is stored once, since the
 * same op is called and the same line is run thousands of times. */
#include "bindings.h"
#include "trace.h"

#define RECORDER "lutra.recorder"
#define REGION   "lutra.region"

typedef struct Text {
  uint32_t hash;
  char *text;
} Text;

/* A recorded event, and the function that the user's line called. */
typedef struct Record {
  lt_TraceEvent event; /* its strings belong to the recorder's set */
  const char *call;
  bool direct;   /* `call` is a function in C, such as x:to, not one of the library's in Lua; of a
                    collective: it is one of lt.distributed */
  bool explicit; /* an explicit copy (guard.c) */
} Record;

typedef struct Recorder {
  lt_Tracer tracer;
  const lt_Lua *lua;
  bool on, order;
  int64_t start;
  size_t count, capacity, limit, dropped;
  Record *event;
  Text *text; /* hash set of strings with open addressing, at most half full */
  size_t texts, text_capacity;
} Recorder;

/* ---- strings --------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *s) { /* FNV-1a */
  uint32_t h = 2166136261u;
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
  return h;
}

/* Returns the slot of s, or the empty slot where it belongs. `capacity` is a power of 2. */
static Text *find_slot(Text *set, size_t capacity, uint32_t hash, const char *s) {
  size_t i = hash & (capacity - 1);
  while (set[i].text && (set[i].hash != hash || strcmp(set[i].text, s) != 0))
    i = (i + 1) & (capacity - 1);
  return &set[i];
}

static bool grow_texts(Recorder *r) {
  size_t capacity = r->text_capacity ? 2 * r->text_capacity : 64;
  Text *bigger = calloc(capacity, sizeof *bigger);
  if (!bigger) return false;
  for (size_t i = 0; i < r->text_capacity; i++)
    if (r->text[i].text)
      *find_slot(bigger, capacity, r->text[i].hash, r->text[i].text) = r->text[i];
  free(r->text);
  r->text = bigger;
  r->text_capacity = capacity;
  return true;
}

/* Returns the recorder's copy of s; NULL for NULL, and when out of memory. */
static const char *keep(Recorder *r, const char *s) {
  if (!s || (2 * r->texts >= r->text_capacity && !grow_texts(r))) return NULL;
  uint32_t hash = hash_of(s);
  Text *slot = find_slot(r->text, r->text_capacity, hash, s);
  if (!slot->text && (slot->text = strdup(s))) {
    slot->hash = hash;
    r->texts++;
  }
  return slot->text;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Makes room for one event; false at the limit or when out of memory. */
static bool reserve_event(Recorder *r) {
  if (r->count < r->capacity) return true;
  if (r->capacity >= r->limit) return false;
  size_t capacity = r->capacity ? 2 * r->capacity : 256;
  if (capacity > r->limit) capacity = r->limit;
  Record *bigger = realloc(r->event, capacity * sizeof *bigger);
  if (!bigger) return false;
  r->event = bigger;
  r->capacity = capacity;
  return true;
}

/* Records an event; the core calls it. Counts those that find no room. */
static void record_event(void *context, const lt_TraceEvent *event) {
  Recorder *r = context;
  if (lt_thread()->host != r->lua) return; /* an event of another Lua state on this thread */
  bool ordering = event->kind == LT_TRACE_MARK || event->kind == LT_TRACE_AFTER;
  if (ordering && !r->order) return;
  if (!reserve_event(r)) {
    r->dropped++;
    return;
  }
  Record *k = &r->event[r->count++];
  k->event = *event;
  k->event.name = keep(r, event->name);
  k->event.where = keep(r, event->where);
  k->call = NULL;
  k->direct = k->explicit = false;
  bool has_call = event->kind == LT_TRACE_COPY || event->kind == LT_TRACE_WAIT ||
                  event->kind == LT_TRACE_COLLECTIVE;
  if (r->tracer.where && has_call) {
    char call[48];
    if (event->kind == LT_TRACE_COLLECTIVE) {
      lt_lua_called_collective(r->lua, event, call, sizeof call);
      k->direct = !lt_lua_called_through(r->lua, "/distributed");
    } else {
      k->direct = lt_lua_called(r->lua, call, sizeof call);
    }
    k->call = keep(r, call);
    k->explicit = event->kind != LT_TRACE_WAIT && lt_lua_is_explicit(r->lua, event, call);
  }
}

static void stop(Recorder *r) {
  if (r->on) lt_trace_remove(&r->tracer);
  r->on = false;
}

/* Returns the recorder at index 1. A userdata holds a pointer to separate memory: if Lua skips its
 * finalizer (no stack or memory), that memory leaks, but the core never points to freed memory. */
static Recorder *recorder_at(lua_State *L) {
  Recorder **r = luaL_checkudata(L, 1, RECORDER);
  if (!*r) luaL_error(L, "record: cannot use the recorder: it was finalized");
  return *r;
}

static bool flag(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  bool on = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return on;
}

/* record{wait = bool, where = bool, digest = bool, order = bool, limit = n} -> a recorder, active
 * from now on. With `order` it records the order of streams: an event of kind "mark" when an event
 * was recorded on a stream, "after" when a stream waits for it; both, and waits, have the field
 * mark, which identifies the event. A copy between devices has the field source_stream, which it
 * waits for and blocks. */
static int record(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_getfield(L, 1, "limit");
  lua_Integer limit = luaL_optinteger(L, -1, 1000000);
  luaL_argcheck(L, limit > 0, 1, "expected a positive limit");
  bool wait = flag(L, "wait"), where = flag(L, "where");
  Recorder **handle = lua_newuserdatauv(L, sizeof *handle, 0), *r;
  *handle = NULL;
  luaL_setmetatable(L, RECORDER);
  r = *handle = calloc(1, sizeof *r);
  if (!r) return luaL_error(L, "record: out of memory");
  r->limit = (size_t)limit;
  r->order = flag(L, "order");
  r->lua = lt_lua_state(L);
  r->tracer = (lt_Tracer){.on_event = record_event,
                          .context = r,
                          .wait = wait,
                          .where = where,
                          .digest = flag(L, "digest")};
  lt_lua_enter(L, lt_lua_state(L));
  r->start = lt_trace_now();
  lt_trace_add(&r->tracer);
  r->on = true;
  return 1;
}

/* r:stop(): stops recording. Later calls do nothing. */
static int recorder_stop(lua_State *L) {
  Recorder **r = luaL_checkudata(L, 1, RECORDER);
  if (*r) stop(*r);
  return 0;
}

static void clear(Recorder *r) {
  stop(r);
  for (size_t i = 0; i < r->text_capacity; i++) free(r->text[i].text);
  free(r->text);
  free(r->event);
  r->text = NULL;
  r->event = NULL;
  r->texts = r->text_capacity = r->count = r->capacity = r->limit = 0;
}

/* r:release(): stops recording and frees all events */
static int recorder_release(lua_State *L) {
  Recorder **r = luaL_checkudata(L, 1, RECORDER);
  if (*r) clear(*r); /* a finalizer may call this after the recorder was finalized */
  return 0;
}

static int recorder_gc(lua_State *L) {
  Recorder **r = luaL_checkudata(L, 1, RECORDER);
  if (*r) clear(*r);
  free(*r);
  *r = NULL;
  return 0;
}

/* r:count() -> the number of events, and of those dropped for lack of room */
static int recorder_count(lua_State *L) {
  const Recorder *r = recorder_at(L);
  lua_pushinteger(L, (lua_Integer)r->count);
  lua_pushinteger(L, (lua_Integer)r->dropped);
  return 2;
}

/* ---- one event as a table -------------------------------------------------------------------- */

static void set_text(lua_State *L, const char *key, const char *value) {
  if (value && *value)
    lua_pushstring(L, value);
  else
    lua_pushnil(L);
  lua_setfield(L, 2, key);
}

static void set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, 2, key);
}

/* Sets a field to a lightuserdata that identifies an object; nil for NULL. */
static void set_address(lua_State *L, const char *key, const void *p) {
  if (p)
    lua_pushlightuserdata(L, (void *)p);
  else
    lua_pushnil(L);
  lua_setfield(L, 2, key);
}

static void set_flag(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, 2, key);
}

static void set_name(lua_State *L, const lt_TraceEvent *e) {
  const char *name = e->name ? e->name : "";
  if (e->kind == LT_TRACE_OP && name[0] == '_') name++; /* internal ops are parts of public ones */
  lua_pushfstring(L, "%s%s", name, e->in_place ? "_" : "");
  lua_setfield(L, 2, "name");
}

/* Sets the field comm of the table at index 2: what the event tells about a call of a communicator,
 * or nil. `start` is the time of the recorder's start. */
static void set_comm(lua_State *L, const lt_TraceComm *comm, int64_t start) {
  if (!comm->size) {
    set_text(L, "comm", NULL);
    return;
  }
  lua_createtable(L, 0, 13);
  lua_insert(L, 2);
  set_integer(L, "size", comm->size);
  set_integer(L, "rank", comm->rank);
  set_integer(L, "group", comm->group);
  if (comm->sequence) set_integer(L, "sequence", comm->sequence);
  if (comm->peer >= 0) set_integer(L, "peer", comm->peer);
  set_integer(L, "tag", comm->tag);
  set_text(L, "reduction", comm->reduction);
  set_integer(L, "sent", comm->sent);
  set_integer(L, "received", comm->received);
  set_integer(L, "link_bytes", comm->link_bytes);
  if (comm->arrived) set_integer(L, "arrived", comm->arrived - start);
  if (comm->finished) set_integer(L, "finished", comm->finished - start);
  set_flag(L, "now", comm->now);
  set_address(L, "work", comm->work);
  lua_pushvalue(L, 2);
  lua_remove(L, 2);
  lua_setfield(L, 2, "comm");
}

/* Sets the fields that follow from the traits of the event's op; a user's kernel has none. */
static void set_traits(lua_State *L, const lt_TraceEvent *e) {
  bool has_row = (e->kind == LT_TRACE_OP || e->kind == LT_TRACE_ALLOC) && e->op != LT_NO_OP;
  unsigned traits = has_row ? lt_ops[e->op].traits : 0;
  set_flag(L, "copies", traits & LT_TRAIT_COPY);
  set_flag(L, "transfers", traits & LT_TRAIT_TRANSFER);
  set_flag(L, "computes", e->kernel && !(traits & (LT_TRAIT_COPY | LT_TRAIT_BUILTIN)));
}

/* Returns whether the stream is the device's default one. Only compares addresses: the stream may
 * have been destroyed. */
static bool is_default_of(lt_Device d, const lt_Stream *stream) {
  const lt_Backend *b = lt_device_loaded(d.type);
  return b && b->streams.get_default && b->streams.get_default(b, d.index) == stream;
}

static bool is_default(const lt_TraceEvent *e) {
  return e->stream && (is_default_of(e->device, e->stream) ||
                       (e->kind == LT_TRACE_COPY && is_default_of(e->from, e->stream)));
}

static size_t text_size(const char *text) { return text ? strlen(text) + 1 : 0; }

static const char *move_text(char **to, const char *text) {
  if (!text) return NULL;
  char *copy = strcpy(*to, text);
  *to += strlen(copy) + 1;
  return copy;
}

/* Pushes a userdata with a copy of event i of the recorder at index 1 and of its strings, and
 * returns it. A finalizer that runs while Lua builds a table may add events, or release the
 * recorder. */
static const Record *push_copy(lua_State *L, lua_Integer i) {
  const Recorder *r = recorder_at(L);
  luaL_argcheck(L, i >= 1 && (size_t)i <= r->count, 2, "expected the number of an event");
  const Record *k = &r->event[i - 1];
  size_t size =
      sizeof *k + text_size(k->event.name) + text_size(k->event.where) + text_size(k->call);
  Record *copy = lua_newuserdatauv(L, size, 0);
  r = recorder_at(L);
  luaL_argcheck(L, (size_t)i <= r->count, 2, "the recorder was closed meanwhile");
  char *texts = (char *)(copy + 1);
  *copy = r->event[i - 1];
  copy->event.name = move_text(&texts, copy->event.name);
  copy->event.where = move_text(&texts, copy->event.where);
  copy->call = move_text(&texts, copy->call);
  return copy;
}

/* r:event(i, t): fills the table t with event i and returns it. Fields: kind ("op", "region",
 * "copy", "wait", "alloc", "free", "collective", and see record: "mark", "after"), name, device,
 * from, stream, source_stream, mark (identities, or nil), default_stream (is it the device's
 * default one?), bytes, in_place, kernel, copies, transfers (traits of the op, or of the op that
 * allocates), computes (a kernel that does more than copy), failed, blocking, pinned,
 * backward_copy (the gradient of a copy), dtype, shape (string), first, last (nanoseconds from the
 * start of the recorder), own (nanoseconds not spent in nested events), depth, where; storage,
 * target (identities of memory), offset, digest; for copies, waits and collectives: call (the
 * function that the user's line called), direct (whether that is a function in C; of a collective,
 * one of lt.distributed), explicit (whether the program asked for the copy); for collectives and
 * the waits for them comm, a table of lt_TraceComm's members, whose times (arrived, finished) are
 * nanoseconds from the start of the recorder */
static int recorder_event(lua_State *L) {
  static const char *const kinds[LT_TRACE_KINDS] = {
      [LT_TRACE_OP] = "op",     [LT_TRACE_REGION] = "region", [LT_TRACE_COPY] = "copy",
      [LT_TRACE_WAIT] = "wait", [LT_TRACE_ALLOC] = "alloc",   [LT_TRACE_FREE] = "free",
      [LT_TRACE_MARK] = "mark", [LT_TRACE_AFTER] = "after",   [LT_TRACE_COLLECTIVE] = "collective"};
  lua_Integer i = luaL_checkinteger(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  const Record *k = push_copy(L, i);
  const lt_TraceEvent *e = &k->event;
  int64_t start = recorder_at(L)->start;
  lua_remove(L, 2);
  int64_t own = e->end - e->begin - e->inside;
  set_text(L, "kind", kinds[e->kind]);
  set_name(L, e);
  set_text(L, "device", lt_device_name(e->device));
  set_text(L, "from", e->kind == LT_TRACE_COPY ? lt_device_name(e->from) : NULL);
  set_integer(L, "bytes", e->bytes);
  set_flag(L, "in_place", e->in_place);
  set_flag(L, "kernel", e->kernel);
  set_traits(L, e);
  set_flag(L, "failed", e->failed);
  set_flag(L, "blocking", e->blocking);
  set_flag(L, "pinned", e->pinned);
  set_flag(L, "backward_copy", e->backward_copy);
  set_text(L, "dtype", e->ndim >= 0 ? lt_dtype_name(e->dtype) : NULL);
  set_text(L, "shape", e->ndim >= 0 ? lt_shape_text(e->ndim, e->shape) : NULL);
  set_integer(L, "first", e->begin - start);
  set_integer(L, "last", e->end - start);
  set_integer(L, "own", own > 0 ? own : 0);
  set_integer(L, "depth", e->depth);
  set_text(L, "where", e->where);
  set_text(L, "call", k->call);
  set_flag(L, "explicit", k->explicit);
  set_flag(L, "direct", k->direct);
  set_address(L, "storage", e->storage);
  set_address(L, "target", e->target);
  set_address(L, "source_stream", e->source_stream);
  set_address(L, "mark", e->mark);
  set_integer(L, "offset", e->offset);
  set_integer(L, "digest", (int64_t)e->digest);
  set_address(L, "stream", e->stream);
  set_flag(L, "default_stream", is_default(e));
  set_comm(L, &e->comm, start);
  lua_settop(L, 2);
  return 1;
}

/* ---- regions --------------------------------------------------------------------------------- */

typedef struct Region {
  lt_TraceSpan span;
  bool open;
} Region;

/* region(name) -> an object that ends the region when it is closed (`<close>`, or :close()); nil
 * when no tracer is active */
static int region(lua_State *L) {
  lt_lua_text(L, 1, "record_function", "name");
  if (!lt_tracing()) return 0;
  Region **handle = lua_newuserdatauv(L, sizeof *handle, 1), *g;
  *handle = NULL;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, REGION);
  g = *handle = calloc(1, sizeof *g);
  if (!g) return luaL_error(L, "record_function: out of memory");
  lt_lua_enter(L, lt_lua_state(L));
  g->open = lt_trace_begin(&g->span, LT_TRACE_REGION);
  return 1;
}

/* close(self, error): ends the region; it failed if there is an error */
static int region_close(lua_State *L) {
  Region *g = *(Region **)luaL_checkudata(L, 1, REGION);
  if (!g || !g->open) return 0;
  lua_getiuservalue(L, 1, 1);
  g->span.event.name = lua_tostring(L, -1);
  g->open = false;
  lt_trace_end(&g->span, lua_isnoneornil(L, 2));
  return 0;
}

static int region_gc(lua_State *L) {
  Region **handle = luaL_checkudata(L, 1, REGION), *g = *handle;
  if (g && g->open) lt_trace_cancel(&g->span);
  free(g);
  *handle = NULL;
  return 0;
}

/* ---- clock, devices, links ------------------------------------------------------------------- */

/* now() -> nanoseconds of the clock that events use */
static int now(lua_State *L) {
  lua_pushinteger(L, lt_trace_now());
  return 1;
}

/* devices() -> list of the accelerator devices that the program has used */
static int devices(lua_State *L) {
  int n = 0;
  lua_newtable(L);
  for (int type = 0; type < lt_device_type_count(); type++) {
    const lt_Backend *b = lt_device_loaded(type);
    int count = b && !b->host_memory && b->has_data ? lt_device_count(type, NULL, 0) : 0;
    for (int i = 0; i < count; i++) {
      lt_Device d = {(uint8_t)type, (uint8_t)i};
      if (!lt_device_in_use(d)) continue;
      lua_pushstring(L, lt_device_name(d));
      lua_rawseti(L, -2, ++n);
    }
  }
  return 1;
}

/* links() -> {pcie4 = {host =, peer =, latency =, launch =}}, see links.def */
static int links(lua_State *L) {
  static const struct {
    const char *name;
    lua_Number value[4];
  } rows[] = {
#define LT_LINK(name, host, peer, latency, launch) {#name, {host, peer, latency, launch}},
#include "links.def"
#undef LT_LINK
  };
  static const char *const fields[] = {"host", "peer", "latency", "launch"};
  lua_newtable(L);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    lua_newtable(L);
    for (int f = 0; f < 4; f++) {
      lua_pushnumber(L, rows[i].value[f]);
      lua_setfield(L, -2, fields[f]);
    }
    lua_setfield(L, -2, rows[i].name);
  }
  return 1;
}

void lt_lua_open_trace(lua_State *L, int functions, int methods) {
  static const luaL_Reg recorder[] = {{"stop", recorder_stop},
                                      {"count", recorder_count},
                                      {"event", recorder_event},
                                      {"release", recorder_release},
                                      {"__close", recorder_stop},
                                      {"__gc", recorder_gc},
                                      {NULL, NULL}};
  static const luaL_Reg regions[] = {
      {"close", region_close}, {"__close", region_close}, {"__gc", region_gc}, {NULL, NULL}};
  static const luaL_Reg module[] = {{"record", record},   {"region", region}, {"now", now},
                                    {"devices", devices}, {"links", links},   {NULL, NULL}};
  lua_pushvalue(L, methods);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &lt_lua_methods_key);
  lt_lua_open_class(L, RECORDER, recorder, NULL);
  lt_lua_open_class(L, REGION, regions, NULL);
  lua_newtable(L);
  lt_lua_setfuncs(L, module);
  lt_lua_add_guard(L);
  lua_setfield(L, functions, "_trace");
}
