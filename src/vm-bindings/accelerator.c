/* accelerator.c: streams, events and pinned memory of accelerators for Lua. The public functions
 * are in lib/lutra/accelerator.lua; this file has what only C can do, on devices with complete
 * names ("cuda:0").
 *
 * A stream's userdata owns the stream, or refers to a default stream, which lives as long as its
 * backend. There is one userdata for each stream, found in a weak table. While its stream is
 * current the userdata is anchored, so the collector does not end a stream that receives work. An
 * event's userdata has no event before it is recorded, since the stream determines the device. */
#include "accelerator.h"
#include "trace.h"

/* ---- devices --------------------------------------------------------------------------------- */

bool lt_lua_is_accelerator(int type) { return type != LT_DEVICE_cpu && type != LT_DEVICE_meta; }

int lt_lua_accelerator(void) {
  for (int t = 0; t < lt_device_type_count(); t++)
    if (lt_lua_is_accelerator(t) && lt_device_count(t, NULL, 0) > 0) return t;
  return -1;
}

bool lt_lua_device(lua_State *L, int i, int type, lt_Device *out) {
  char full[64];
  int64_t number;
  lt_Tensor *t = lt_lua_to_tensor(L, i);
  if (t) {
    *out = lt_tensor_device(t);
    return true;
  }
  if (lua_type(L, i) == LUA_TSTRING && !lt_lua_is_text(L, i))
    return lt_error_set("expected a string without NUL bytes for argument 'device', got %s",
                        lt_lua_describe(L, i));
  if (lua_type(L, i) == LUA_TSTRING) return lt_device_parse(lua_tostring(L, i), out);
  if (!lt_lua_whole(L, i, &number))
    return lt_error_set("expected a device such as \"cuda:0\", an integer or a tensor for argument "
                        "'device', got %s",
                        lt_lua_describe(L, i));
  if (type < 0) type = lt_lua_accelerator();
  if (number < 0)
    return lt_error_set("expected a device index of at least 0 for argument 'device', got %lld",
                        (long long)number);
  snprintf(full, sizeof full, "%s:%lld", lt_device_type_name(type < 0 ? LT_DEVICE_cuda : type),
           (long long)number);
  return lt_device_parse(full, out);
}

int lt_lua_device_type(lua_State *L, int i) {
  const char *name = lt_lua_text(L, i, "device", "kind");
  for (int t = 0; t < lt_device_type_count(); t++)
    if (strcmp(lt_device_type_name(t), name) == 0) return t;
  return lt_lua_error(L, "device: expected a device type for argument 'kind', got \"%s\"", name);
}

lt_Device lt_lua_full_device(lua_State *L, int i) {
  lt_Device d;
  if (!lt_device_parse(lt_lua_text(L, i, "device", "device"), &d)) lt_lua_fail(L, NULL);
  return d;
}

static const lt_Backend *backend_at(lua_State *L, int i) {
  const lt_Backend *b = lt_device_backend(lt_lua_device_type(L, i));
  if (!b) lt_lua_fail(L, NULL);
  return b;
}

/* kind() -> the type of the first accelerator with a device, or nil */
static int kind(lua_State *L) {
  int type = lt_lua_accelerator();
  if (type < 0)
    lua_pushnil(L);
  else
    lua_pushstring(L, lt_device_type_name(type));
  return 1;
}

/* kinds() -> list of the types of accelerators, in the order in which `kind` prefers them */
static int kinds(lua_State *L) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (int t = 0; t < lt_device_type_count(); t++) {
    if (!lt_lua_is_accelerator(t)) continue;
    lua_pushstring(L, lt_device_type_name(t));
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* names(kind) -> list of the full names of the type's devices, and the reason when there is none */
static int names(lua_State *L) {
  char why[256];
  int type = lt_lua_device_type(L, 1), n = lt_device_count(type, why, sizeof why);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushstring(L, lt_device_name((lt_Device){(uint8_t)type, (uint8_t)i}));
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushstring(L, why);
  return 2;
}

/* has_dtype(device, dtype) -> whether tensors of this dtype can be created there */
static int has_dtype(lua_State *L) {
  lt_Dtype dtype = lt_dtype_from_name(lt_lua_text(L, 2, "has_dtype", "dtype"));
  if (dtype == LT_DTYPE_NONE) lt_lua_fail(L, "has_dtype");
  lua_pushboolean(L, lt_device_has_dtype(lt_lua_full_device(L, 1).type, dtype));
  return 1;
}

/* device(kind | nil, device | nil, function) -> the full name. kind nil: any accelerator; device
 * nil: the current one. Raises an error in the name of `function`. */
static int device(lua_State *L) {
  lt_Device d;
  const char *name = luaL_checkstring(L, 3);
  int expected = lua_isnil(L, 1) ? -1 : lt_lua_device_type(L, 1);
  int type = expected < 0 ? lt_lua_accelerator() : expected;
  bool ok = lua_isnil(L, 2)
                ? lt_device_parse(lt_device_type_name(type < 0 ? LT_DEVICE_cuda : type), &d)
                : lt_lua_device(L, 2, expected, &d);
  if (!ok) lt_lua_error(L, "%s: %s", name, lt_error());
  if (expected >= 0 ? d.type != expected : !lt_lua_is_accelerator(d.type))
    lt_lua_error(L, "%s: expected %s%s%s for argument 'device', got \"%s\"", name,
                 expected >= 0 ? "a device of type \"" : "an accelerator",
                 expected >= 0 ? lt_device_type_name(expected) : "", expected >= 0 ? "\"" : "",
                 lt_device_name(d));
  lua_pushstring(L, lt_device_name(d));
  return 1;
}

/* index(device) -> its index; accepts only a full name */
static int device_index(lua_State *L) {
  lua_pushinteger(L, lt_lua_full_device(L, 1).index);
  return 1;
}

static void set_index(lua_State *L, lt_Device d) {
  const lt_Backend *b = lt_device_backend(d.type);
  if (!b->index_set_current) {
    if (d.index)
      lt_lua_error(
          L, "set_device: cannot change the current device of \"%s\": it is always the first one",
          b->name);
  } else if (!b->index_set_current(b, d.index)) {
    lt_lua_fail(L, "set_device");
  }
}

/* set_index(device): makes it the current device of its type, which the type's name alone refers
 * to */
static int set_current_index(lua_State *L) {
  set_index(L, lt_lua_full_device(L, 1));
  return 0;
}

/* is_ready(kind) -> whether a device of this type has been used */
static int is_ready(lua_State *L) {
  int type = lt_lua_device_type(L, 1), n = lt_device_count(type, NULL, 0);
  const lt_Backend *b = n ? lt_device_backend(type) : NULL;
  bool ready = b && !b->memory.is_ready; /* no state to set up */
  for (int i = 0; b && i < n && !ready; i++) ready = b->memory.is_ready(b, i);
  lua_pushboolean(L, ready);
  return 1;
}

/* is_built(kind) -> whether this build supports it, with or without a device */
static int is_built(lua_State *L) {
  lua_pushboolean(L, lt_device_is_built(lt_lua_device_type(L, 1)));
  return 1;
}

/* can_access_peer(device, peer) -> boolean */
static int can_access_peer(lua_State *L) {
  lt_Device a = lt_lua_full_device(L, 1), b = lt_lua_full_device(L, 2);
  const lt_Backend *backend = lt_device_backend(a.type);
  lua_pushboolean(L, a.type == b.type && backend->memory.can_access_peer &&
                         backend->memory.can_access_peer(backend, a.index, b.index));
  return 1;
}

/* option(kind, name [, value]) -> the former value; nil when there is no such option or no
 * backend */
static int option(lua_State *L) {
  const lt_Backend *b = lt_device_backend(lt_lua_device_type(L, 1));
  int value = lua_isnoneornil(L, 3) ? -1 : lua_toboolean(L, 3);
  int was = b && b->option ? b->option(lt_lua_text(L, 2, "option", "name"), value) : -1;
  if (was < 0)
    lua_pushnil(L);
  else
    lua_pushboolean(L, was);
  return 1;
}

/* fact(device, what) -> a string, or nil when it is not known */
static int fact(lua_State *L) {
  lt_Device d = lt_lua_full_device(L, 1);
  const lt_Backend *b = lt_device_backend(d.type);
  lua_pushstring(L, b->fact ? b->fact(d.index, lt_lua_text(L, 2, "fact", "what")) : NULL);
  return 1;
}

/* openmp() -> whether the CPU's loops were built with OpenMP */
static int openmp(lua_State *L) {
#ifdef _OPENMP
  lua_pushboolean(L, true);
#else
  lua_pushboolean(L, false);
#endif
  return 1;
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct StreamBox {
  lt_Stream *stream; /* NULL: closed */
  bool owned;
} StreamBox;

/* Returns the userdata at i if it has this metatable, else NULL. */
static void *object_at(lua_State *L, int i, const void *meta) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  bool is = lua_topointer(L, -1) == meta;
  lua_pop(L, 1);
  return is ? lua_touserdata(L, i) : NULL;
}

static StreamBox *stream_at(lua_State *L, int i, const char *function, const char *argument) {
  StreamBox *box = object_at(L, i, lt_lua_state(L)->stream_meta);
  if (!box)
    lt_lua_error(L, "%s: expected a Stream for argument '%s', got %s", function, argument,
                 lt_lua_describe(L, i));
  if (!box->stream)
    lt_lua_error(L, "%s: expected an open Stream for argument '%s', got a closed one", function,
                 argument);
  return box;
}

static lt_Device device_of(const lt_Backend *b, int index) {
  int type = 0;
  while (lt_device_backend(type) != b) type++;
  return (lt_Device){(uint8_t)type, (uint8_t)index};
}

static const char *stream_device(const lt_Stream *s) {
  return lt_device_name(device_of(s->backend, s->index));
}

/* Pushes an empty userdata for a stream or an event. */
static void *push_object(lua_State *L, size_t size, int meta_ref) {
  void *box = lua_newuserdatauv(L, size, 0);
  memset(box, 0, size);
  lua_rawgeti(L, LUA_REGISTRYINDEX, meta_ref);
  lua_setmetatable(L, -2);
  return box;
}

/* Pushes the userdata of a stream; a new one does not own the stream. */
static void push_stream(lua_State *L, lt_Stream *s) {
  lt_Lua *S = lt_lua_state(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->streams_ref);
  if (lua_rawgetp(L, -1, s) == LUA_TUSERDATA && ((StreamBox *)lua_touserdata(L, -1))->stream == s) {
    lua_remove(L, -2);
    return;
  }
  lua_pop(L, 1);
  StreamBox *box = push_object(L, sizeof *box, S->stream_meta_ref);
  box->stream = s;
  lua_pushvalue(L, -1);
  lua_rawsetp(L, -3, s);
  lua_remove(L, -2);
}

static const lt_Backend *streams_of(lua_State *L, lt_Device d, const char *function) {
  const lt_Backend *b = lt_device_backend(d.type);
  if (!b->streams.create)
    lt_lua_error(L, "%s: cannot create a stream on \"%s\": the device has only its default stream",
                 function, lt_device_name(d));
  return b;
}

/* has_streams(device) -> whether streams can be created there */
static int has_streams(lua_State *L) {
  lua_pushboolean(L, lt_device_backend(lt_lua_full_device(L, 1).type)->streams.create != NULL);
  return 1;
}

/* stream(device, priority) -> a new stream */
static int stream_new(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  lt_Device d = lt_lua_full_device(L, 1);
  const lt_Backend *b = streams_of(L, d, "Stream");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->streams_ref);
  StreamBox *box = push_object(L, sizeof *box, S->stream_meta_ref);
  box->stream = b->streams.create(b, d.index, (int)luaL_checkinteger(L, 2));
  if (!box->stream) lt_lua_fail(L, "Stream");
  box->owned = true;
  lua_pushvalue(L, -1);
  lua_rawsetp(L, -3, box->stream);
  return 1;
}

static int stream_current(lua_State *L) {
  lt_Device d = lt_lua_full_device(L, 1);
  const lt_Backend *b = streams_of(L, d, "current_stream");
  lt_Stream *s = b->streams.current(b, d.index);
  if (!s) lt_lua_fail(L, "current_stream");
  push_stream(L, s);
  return 1;
}

static int stream_default(lua_State *L) {
  lt_Device d = lt_lua_full_device(L, 1);
  const lt_Backend *b = streams_of(L, d, "default_stream");
  lt_Stream *s = b->streams.get_default(b, d.index);
  if (!s) lt_lua_fail(L, "default_stream");
  push_stream(L, s);
  return 1;
}

/* Makes stream s, whose userdata is at i, current on its device, and anchors the userdata. */
static void make_current(lua_State *L, int i, lt_Stream *s) {
  i = lua_absindex(L, i);
  if (!s->backend->streams.set_current(s->backend, s->index, s)) lt_lua_fail(L, "set_stream");
  lua_rawgeti(L, LUA_REGISTRYINDEX, lt_lua_state(L)->current_ref);
  lua_pushvalue(L, i);
  lua_setfield(L, -2, stream_device(s));
  lua_pop(L, 1);
}

/* set_stream(stream [, function]) -> the stream that was current on its device, and the device of
 * this type that was current. Makes both the stream and its device current. */
static int stream_set(lua_State *L) {
  lt_Stream *s = stream_at(L, 1, luaL_optstring(L, 2, "set_stream"), "stream")->stream;
  const lt_Backend *b = s->backend;
  lt_Stream *before = b->streams.current(b, s->index);
  if (!before) lt_lua_fail(L, "set_stream");
  push_stream(L, before);
  lt_Device d = device_of(b, s->index);
  lua_pushstring(L, lt_device_name((lt_Device){
                        d.type, (uint8_t)(b->index_current ? b->index_current(b) : 0)}));
  set_index(L, d);
  make_current(L, 1, s);
  return 2;
}

/* restore_stream(stream, device): undoes set_stream, whose results are the arguments. If the stream
 * was closed in the meantime, the default stream stays current. */
static int stream_restore(lua_State *L) {
  StreamBox *box = object_at(L, 1, lt_lua_state(L)->stream_meta);
  if (box && box->stream) make_current(L, 1, box->stream);
  set_index(L, lt_lua_full_device(L, 2));
  return 0;
}

/* Ends the userdata of a stream, by the collector or `<close>`. Work queued on the stream still
 * runs. */
static void stream_end(StreamBox *box) {
  lt_Stream *s = box->stream;
  box->stream = NULL;
  if (s && box->owned) s->backend->streams.destroy(s);
}

static int stream_gc(lua_State *L) {
  StreamBox *box = object_at(L, 1, lt_lua_state(L)->stream_meta);
  if (box) stream_end(box);
  return 0;
}

/* Closes an owned stream; if it is current, the default stream becomes current. Later calls do
 * nothing. */
static int stream_close(lua_State *L) {
  StreamBox *box = object_at(L, 1, lt_lua_state(L)->stream_meta);
  if (!box || !box->stream || !box->owned) return 0;
  const lt_Backend *b = box->stream->backend;
  int index = box->stream->index;
  if (b->streams.current(b, index) == box->stream) {
    push_stream(L, b->streams.get_default(b, index));
    make_current(L, -1, b->streams.get_default(b, index));
  }
  stream_end(box);
  return 0;
}

static int stream_query(lua_State *L) {
  lt_Stream *s = stream_at(L, 1, "query", "self")->stream;
  lua_pushboolean(L, s->backend->streams.query(s));
  return 1;
}

/* Raises an error after a blocking wait that failed or during which Ctrl-C was pressed. */
static void after_wait(lua_State *L, bool ok) {
  if (!ok || atomic_load(&lt_interrupt_flag)) lt_lua_fail(L, "synchronize");
}

static int stream_synchronize(lua_State *L) {
  lt_Stream *s = stream_at(L, 1, "synchronize", "self")->stream;
  lt_lua_enter(L, lt_lua_state(L));
  after_wait(L, lt_stream_synchronize(s));
  return 0;
}

/* s:wait_stream(other): work queued on s from now on starts after the work queued on `other` so
 * far */
static int stream_wait_stream(lua_State *L) {
  lt_Stream *s = stream_at(L, 1, "wait_stream", "self")->stream;
  lt_Stream *other = stream_at(L, 2, "wait_stream", "stream")->stream;
  const lt_Backend *b = other->backend;
  if (b != s->backend)
    lt_lua_error(L,
                 "wait_stream: expected a Stream of the same device type for argument 'stream', "
                 "got one of \"%s\": self is on \"%s\"",
                 stream_device(other), stream_device(s));
  if (s == other) return 0;
  lt_Event *e = b->streams.event_create(b, other->index, false);
  bool ok = e && b->streams.event_record(e, other) && b->streams.wait_event(s, e);
  if (e) b->streams.event_destroy(e);
  if (!ok) lt_lua_fail(L, "wait_stream");
  return 0;
}

static int stream_eq(lua_State *L) {
  const void *meta = lt_lua_state(L)->stream_meta;
  StreamBox *a = object_at(L, 1, meta), *b = object_at(L, 2, meta);
  lua_pushboolean(L, a && b && a->stream && a->stream == b->stream);
  return 1;
}

static bool is_default(const lt_Stream *s) {
  return s->backend->streams.get_default(s->backend, s->index) == s;
}

static int stream_tostring(lua_State *L) {
  StreamBox *box = object_at(L, 1, lt_lua_state(L)->stream_meta);
  lt_Stream *s = box ? box->stream : NULL;
  if (!s)
    lua_pushliteral(L, "Stream(closed)");
  else if (is_default(s))
    lua_pushfstring(L, "Stream(%s, default)", stream_device(s));
  else
    lua_pushfstring(L, "Stream(%s, priority %d)", stream_device(s),
                    s->backend->streams.priority ? s->backend->streams.priority(s) : 0);
  return 1;
}

/* Returns a field or a method; the table of methods is the upvalue LT_UP_OWN. */
static int stream_index(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(LT_UP_OWN)) != LUA_TNIL) return 1;
  const char *key = lt_lua_is_text(L, 2) ? lua_tostring(L, 2) : "";
  bool native = strcmp(key, "cuda_stream") == 0 || strcmp(key, "stream_id") == 0;
  if (strcmp(key, "device") && strcmp(key, "priority") && !native) return 0;
  lt_Stream *s = stream_at(L, 1, key, "self")->stream;
  if (native)
    lua_pushinteger(
        L, s->backend->streams.native ? (lua_Integer)(intptr_t)s->backend->streams.native(s) : 0);
  else if (key[0] == 'd')
    lua_pushstring(L, stream_device(s));
  else
    lua_pushinteger(L, s->backend->streams.priority ? s->backend->streams.priority(s) : 0);
  return 1;
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef struct EventBox {
  const lt_Backend *backend;
  lt_Event *event; /* NULL: never recorded, or closed */
  bool timing, closed;
} EventBox;

static EventBox *event_at(lua_State *L, int i, const char *function, const char *argument) {
  EventBox *box = object_at(L, i, lt_lua_state(L)->event_meta);
  if (!box)
    lt_lua_error(L, "%s: expected an Event for argument '%s', got %s", function, argument,
                 lt_lua_describe(L, i));
  if (box->closed)
    lt_lua_error(L, "%s: expected an open Event for argument '%s', got a closed one", function,
                 argument);
  return box;
}

static EventBox *push_event(lua_State *L, const lt_Backend *b, bool timing) {
  EventBox *box = push_object(L, sizeof *box, lt_lua_state(L)->event_meta_ref);
  box->backend = b;
  box->timing = timing;
  return box;
}

/* event(kind, timing) -> a new event, not recorded */
static int event_new(lua_State *L) {
  const lt_Backend *b = backend_at(L, 1);
  if (!b->streams.event_create)
    lt_lua_error(L, "Event: cannot create an event: device type \"%s\" has no events", b->name);
  push_event(L, b, lua_toboolean(L, 2));
  return 1;
}

/* Returns the stream at i, by default the current stream of the backend. */
static lt_Stream *stream_or_current(lua_State *L, int i, const lt_Backend *b,
                                    const char *function) {
  if (!lua_isnoneornil(L, i)) {
    lt_Stream *s = stream_at(L, i, function, "stream")->stream;
    if (s->backend != b)
      lt_lua_error(
          L, "%s: expected a Stream of device type \"%s\" for argument 'stream', got one of \"%s\"",
          function, b->name, stream_device(s));
    return s;
  }
  lt_Stream *s = b->streams.current(b, b->index_current ? b->index_current(b) : 0);
  if (!s) lt_lua_fail(L, function);
  return s;
}

static void record(lua_State *L, EventBox *box, lt_Stream *s, const char *function) {
  const lt_Backend *b = box->backend;
  if (box->event && box->event->index != s->index)
    lt_lua_error(
        L, "%s: expected a Stream of \"%s\", where the event was first recorded, got one of \"%s\"",
        function, lt_device_name(device_of(b, box->event->index)), stream_device(s));
  if (!box->event) box->event = b->streams.event_create(b, s->index, box->timing);
  if (!box->event || !b->streams.event_record(box->event, s)) lt_lua_fail(L, function);
}

/* e:record([stream]) */
static int event_record(lua_State *L) {
  EventBox *box = event_at(L, 1, "record", "self");
  record(L, box, stream_or_current(L, 2, box->backend, "record"), "record");
  lua_settop(L, 1);
  return 1;
}

/* s:record_event([event]) -> the event */
static int stream_record_event(lua_State *L) {
  lt_Stream *s = stream_at(L, 1, "record_event", "self")->stream;
  if (lua_isnoneornil(L, 2)) {
    lua_settop(L, 1);
    push_event(L, s->backend, false);
  }
  EventBox *box = event_at(L, 2, "record_event", "event");
  if (box->backend != s->backend)
    lt_lua_error(L,
                 "record_event: expected an Event of the stream's device, \"%s\", for argument "
                 "'event', got one of type \"%s\"",
                 stream_device(s), box->backend->name);
  record(L, box, s, "record_event");
  lua_settop(L, 2);
  return 1;
}

static void wait_event(lua_State *L, lt_Stream *s, EventBox *box, const char *function) {
  if (box->backend != s->backend)
    lt_lua_error(L, "%s: expected an Event of the stream's device, \"%s\", got one of type \"%s\"",
                 function, stream_device(s), box->backend->name);
  if (box->event && !s->backend->streams.wait_event(s, box->event)) lt_lua_fail(L, function);
}

/* s:wait_event(event): work queued on s from now on starts after the event */
static int stream_wait_event(lua_State *L) {
  lt_Stream *s = stream_at(L, 1, "wait_event", "self")->stream;
  wait_event(L, s, event_at(L, 2, "wait_event", "event"), "wait_event");
  return 0;
}

/* e:wait([stream]): the same as stream:wait_event(e), by default for the current stream */
static int event_wait(lua_State *L) {
  EventBox *box = event_at(L, 1, "wait", "self");
  wait_event(L, stream_or_current(L, 2, box->backend, "wait"), box, "wait");
  return 0;
}

/* e:query() -> whether all work before it has finished; true for an event that was never
 * recorded */
static int event_query(lua_State *L) {
  EventBox *box = event_at(L, 1, "query", "self");
  lua_pushboolean(L, !box->event || box->backend->streams.event_query(box->event));
  return 1;
}

static int event_synchronize(lua_State *L) {
  EventBox *box = event_at(L, 1, "synchronize", "self");
  lt_lua_enter(L, lt_lua_state(L));
  after_wait(L, !box->event || lt_event_synchronize(box->event));
  return 0;
}

/* Returns an event with timing that has happened; raises an error otherwise. */
static lt_Event *timed_event(lua_State *L, int i, const char *argument) {
  EventBox *box = event_at(L, i, "elapsed_time", argument);
  if (!box->timing)
    lt_lua_error(L,
                 "elapsed_time: cannot read the time of '%s': the event was created without "
                 "timing\nhint: lt.Event{enable_timing = true}",
                 argument);
  if (!box->event)
    lt_lua_error(L, "elapsed_time: cannot read the time of '%s': the event was never recorded",
                 argument);
  if (!box->backend->streams.event_query(box->event))
    lt_lua_error(L,
                 "elapsed_time: cannot read the time of '%s': the event has not completed\nhint: "
                 "%s:synchronize()",
                 argument, argument);
  return box->event;
}

/* start:elapsed_time(end_event) -> milliseconds */
static int event_elapsed_time(lua_State *L) {
  double milliseconds;
  lt_Event *from = timed_event(L, 1, "self"), *to = timed_event(L, 2, "end_event");
  if (from->backend != to->backend || from->index != to->index)
    lt_lua_error(L,
                 "elapsed_time: cannot measure between two devices: self is an event of \"%s\", "
                 "end_event of \"%s\"",
                 lt_device_name(device_of(from->backend, from->index)),
                 lt_device_name(device_of(to->backend, to->index)));
  if (!from->backend->streams.event_elapsed(from, to, &milliseconds))
    lt_lua_fail(L, "elapsed_time");
  lua_pushnumber(L, milliseconds);
  return 1;
}

static int event_end(lua_State *L) {
  EventBox *box = object_at(L, 1, lt_lua_state(L)->event_meta);
  if (!box) return 0;
  lt_Event *e = box->event;
  box->event = NULL;
  box->closed = true;
  if (e) box->backend->streams.event_destroy(e);
  return 0;
}

static int event_tostring(lua_State *L) {
  EventBox *box = object_at(L, 1, lt_lua_state(L)->event_meta);
  if (!box || box->closed)
    lua_pushliteral(L, "Event(closed)");
  else if (!box->event)
    lua_pushfstring(L, "Event(%s, not recorded)", box->backend->name);
  else
    lua_pushfstring(L, "Event(%s)", lt_device_name(device_of(box->backend, box->event->index)));
  return 1;
}

static int event_index(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(LT_UP_OWN)) != LUA_TNIL) return 1;
  const char *key = lt_lua_is_text(L, 2) ? lua_tostring(L, 2) : "";
  if (strcmp(key, "device") != 0) return 0;
  EventBox *box = event_at(L, 1, "device", "self");
  if (!box->event) return 0;
  lua_pushstring(L, lt_device_name(device_of(box->backend, box->event->index)));
  return 1;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Returns a copy of t in pinned memory, NULL with the reason. It is traced as an op. */
static lt_Tensor *pinned_copy(const lt_Tensor *t, int type) {
  int64_t strides[LT_MAX_DIMS];
  lt_TraceSpan span;
  bool traced = lt_trace_begin_op(&span, "pin_memory");
  lt_shape_strides(t->ndim, t->shape, strides);
  lt_Storage *s = lt_storage_new_pinned(type, (size_t)t->numel * lt_dtype_size(t->dtype));
  lt_Tensor *copy = s ? lt_tensor_on(s, t->dtype, 0, t->ndim, t->shape, strides) : NULL;
  bool ok = copy && lt_copy_into(copy, t, false);
  if (traced) {
    lt_TraceEvent *e = &span.event;
    e->op = LT_NO_OP; /* not an op of the table */
    e->name = "pin_memory";
    e->kernel = true;
    e->storage = t->storage;
    e->target = s;
    e->bytes = s ? (int64_t)s->nbytes : 0;
    e->dtype = t->dtype;
    e->ndim = t->ndim;
    memcpy(e->shape, t->shape, sizeof *e->shape * (size_t)t->ndim);
    lt_trace_end(&span, ok);
  }
  lt_storage_release(s);
  if (ok) return copy;
  lt_release(copy);
  return NULL;
}

/* x:pin_memory([device type]) -> a copy in page-locked memory, from which devices copy
 * asynchronously; x itself if it is there already */
static int method_pin_memory(lua_State *L) {
  lt_Device d;
  lt_Tensor *t = lt_lua_check(L, 1, "pin_memory", "self");
  if (lt_tensor_device(t).type != LT_DEVICE_cpu)
    lt_lua_error(L,
                 "pin_memory: expected a tensor on \"cpu\" for argument 'self', got one on \"%s\"",
                 lt_device_name(lt_tensor_device(t)));
  bool ok =
      lua_isnoneornil(L, 2)
          ? lt_device_parse(lt_device_type_name(lt_lua_accelerator() < 0 ? LT_DEVICE_cuda
                                                                         : lt_lua_accelerator()),
                            &d)
          : lt_lua_device(L, 2, -1, &d);
  if (!ok) lt_lua_error(L, "pin_memory: %s", lt_error());
  if (!lt_lua_is_accelerator(d.type))
    lt_lua_error(L, "pin_memory: expected an accelerator for argument 'device', got \"%s\"",
                 lt_device_name(d));
  if (t->storage->pinned) {
    lua_settop(L, 1);
    return 1;
  }
  lt_lua_enter(L, lt_lua_state(L));
  lt_Box *box = lt_lua_box(L);
  lt_Use use;
  lt_use_enter(lt_thread(), &use, (lt_Arg[]){LT_ARG(t)}, 1);
  box->tensor = lt_tensor_usable(t, "pin_memory", "self") ? pinned_copy(t, d.type) : NULL;
  lt_use_leave(lt_thread(), &use);
  if (!box->tensor) lt_lua_fail(L, "pin_memory");
  lt_lua_charge(L, lt_lua_state(L));
  return 1;
}

/* x:is_pinned() -> boolean */
static int method_is_pinned(lua_State *L) {
  lua_pushboolean(L, lt_lua_check(L, 1, "is_pinned", "self")->storage->pinned);
  return 1;
}

/* x:record_stream(stream): x's memory is not reused before the work queued on the stream so far is
 * done. Ops call this themselves; it is for other work. */
static int method_record_stream(lua_State *L) {
  lt_Tensor *t = lt_lua_check(L, 1, "record_stream", "self");
  lt_Stream *s = stream_at(L, 2, "record_stream", "stream")->stream;
  lt_Device d = lt_tensor_device(t);
  if (lt_backend_of(t) != s->backend || d.index != s->index)
    lt_lua_error(L, "record_stream: expected a Stream of \"%s\", where self is, got one of \"%s\"",
                 lt_device_name(d), stream_device(s));
  if (t->storage->data && s->backend->memory.record_stream &&
      !s->backend->memory.record_stream(t->storage, s))
    lt_lua_fail(L, "record_stream");
  return 0;
}

/* ---- the module ------------------------------------------------------------------------------ */

/* Creates the metatable of a class: the metamethods, __index over the methods, and in __names all
 * names that __index knows, for completion. Returns its address, by which objects are recognized,
 * and stores its registry reference. */
static const void *open_class(lua_State *L, const char *name, const luaL_Reg *meta,
                              const lt_Function *methods, const char *const *fields,
                              lua_CFunction index, int *ref) {
  lua_newtable(L);
  lt_lua_setfuncs(L, meta);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__name");
  lua_pushvalue(L, lua_upvalueindex(LT_UP_STATE));
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lua_newtable(L);
  lt_lua_set_read(L, methods);
  lua_pushcclosure(L, index, 3);
  lua_setfield(L, -2, "__index");
  lua_newtable(L);
  lt_lua_set_read(L, methods);
  for (; *fields; fields++) {
    lua_pushboolean(L, true);
    lua_setfield(L, -2, *fields);
  }
  lua_setfield(L, -2, "__names");
  const void *pointer = lua_topointer(L, -1);
  *ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return pointer;
}

static void open_classes(lua_State *L, lt_Lua *S) {
  static const luaL_Reg stream_meta[] = {{"__gc", stream_gc},
                                         {"__close", stream_close},
                                         {"__eq", stream_eq},
                                         {"__tostring", stream_tostring},
                                         {NULL, NULL}};
  static const char alone[] = "(any self) -> nil",
                    with_stream[] = "(any self, any? stream = nil) -> nil";
  static const lt_Function stream_methods[] = {
      {"wait_event", stream_wait_event, "(any self, any event) -> nil", true, false},
      {"wait_stream", stream_wait_stream, "(any self, any stream) -> nil", true, false},
      {"record_event", stream_record_event, "(any self, any? event = nil) -> nil", true, false},
      {"query", stream_query, alone, true, false},
      {"synchronize", stream_synchronize, alone, true, false},
      {"close", stream_close, alone, true, false},
      {NULL, NULL, NULL, false, false}};
  static const char *const stream_fields[] = {"device", "priority", "cuda_stream", "stream_id",
                                              NULL};
  static const luaL_Reg event_meta[] = {
      {"__gc", event_end}, {"__close", event_end}, {"__tostring", event_tostring}, {NULL, NULL}};
  static const lt_Function event_methods[] = {
      {"record", event_record, with_stream, true, false},
      {"wait", event_wait, with_stream, true, false},
      {"query", event_query, alone, true, false},
      {"synchronize", event_synchronize, alone, true, false},
      {"elapsed_time", event_elapsed_time, "(any self, any end_event) -> nil", true, false},
      {"close", event_end, alone, true, false},
      {NULL, NULL, NULL, false, false}};
  static const char *const event_fields[] = {"device", NULL};
  S->stream_meta = open_class(L, "Stream", stream_meta, stream_methods, stream_fields, stream_index,
                              &S->stream_meta_ref);
  S->event_meta = open_class(L, "Event", event_meta, event_methods, event_fields, event_index,
                             &S->event_meta_ref);
  lua_newtable(L); /* weak table: lightuserdata lt_Stream* -> its userdata */
  lua_newtable(L);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  S->streams_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_newtable(L); /* device -> userdata of its current stream */
  S->current_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

void lt_lua_open_accelerator(lua_State *L, int functions, int methods) {
  static const luaL_Reg module[] = {{"kind", kind},
                                    {"kinds", kinds},
                                    {"names", names},
                                    {"has_dtype", has_dtype},
                                    {"device", device},
                                    {"index", device_index},
                                    {"set_index", set_current_index},
                                    {"is_ready", is_ready},
                                    {"is_built", is_built},
                                    {"can_access_peer", can_access_peer},
                                    {"option", option},
                                    {"fact", fact},
                                    {"openmp", openmp},
                                    {"has_streams", has_streams},
                                    {"stream", stream_new},
                                    {"current_stream", stream_current},
                                    {"default_stream", stream_default},
                                    {"set_stream", stream_set},
                                    {"restore_stream", stream_restore},
                                    {"event", event_new},
                                    {NULL, NULL}};
  static const lt_Function own[] = {
      {"pin_memory", method_pin_memory, "(Tensor self, device? device = nil)", true, false},
      {"is_pinned", method_is_pinned, "(Tensor self) -> nil", true, false},
      {"record_stream", method_record_stream, "(Tensor self, any stream) -> nil", true, false},
      {NULL, NULL, NULL, false, false}};
  open_classes(L, lt_lua_state(L));
  lua_newtable(L);
  lt_lua_setfuncs(L, module);
  lt_lua_set_memory(L);
  lt_lua_open_captures(L);
  lt_lua_open_signposts(L);
  lua_setfield(L, functions, "_accelerator");
  lua_pushvalue(L, methods);
  lt_lua_set_read(L, own);
  lua_pop(L, 1);
}
