// The module "lutra.repl.channels": the kernel's channels for lib/lutra/repl/kernel/.
#define _GNU_SOURCE // fopencookie
#include "channels.h"
#include "kernel.h"

#include "../repl.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char request_type[] = "lutra.repl.request";

static const char *const channel_names[] = {
    [LT_SHELL] = "shell",  [LT_CONTROL] = "control", [LT_STDIN] = "stdin", [LT_IOPUB] = "iopub",
    [LT_HEARTBEAT] = NULL, // not a channel of messages
};

// Raises an error about the start of the kernel, without a position in the source.
static int fail(lua_State *L, const char *why) {
  lua_pushfstring(L, "--kernel: %s", why);
  return lua_error(L);
}

// Reads a field that must be a string; its bytes stay on the stack of L.
static const char *string_field(lua_State *L, const char *name, size_t *size) {
  if (lua_getfield(L, 1, name) != LUA_TSTRING)
    fail(L, lua_pushfstring(L, "expected a string as '%s' of the connection file, got %s", name,
                            luaL_typename(L, -1)));
  return lua_tolstring(L, -1, size);
}

static int port_field(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  int is_integer;
  lua_Integer port = lua_tointegerx(L, -1, &is_integer);
  if (!is_integer || port < 1 || port > 65535)
    fail(L, lua_pushfstring(L, "expected a port number as '%s' of the connection file, got %s",
                            name, luaL_tolstring(L, -1, NULL)));
  return (int)port;
}

// open(connection, kernel_info): binds and starts the channels. `connection` is the content of a
// connection file, kernel_info the JSON of kernel_info_reply. Raises an error on failure.
static int channels_open(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const char *info = luaL_checkstring(L, 2);
  luaL_checkstack(L, 10, NULL);
  struct lt_connection c = {.transport = string_field(L, "transport", NULL),
                            .ip = string_field(L, "ip", NULL)};
  c.key.data = string_field(L, "key", &c.key.size);
  c.ports[LT_SHELL] = port_field(L, "shell_port");
  c.ports[LT_CONTROL] = port_field(L, "control_port");
  c.ports[LT_STDIN] = port_field(L, "stdin_port");
  c.ports[LT_IOPUB] = port_field(L, "iopub_port");
  c.ports[LT_HEARTBEAT] = port_field(L, "hb_port");
  const char *wrong = lt_channels_open(&c, info);
  return wrong ? fail(L, wrong) : 0;
}

static struct lt_packet *check_request(lua_State *L, int index) {
  struct lt_packet **p = luaL_checkudata(L, index, request_type);
  luaL_argcheck(L, *p, index, "the request was released");
  return *p;
}

static int request_gc(lua_State *L) {
  struct lt_packet **p = luaL_checkudata(L, 1, request_type);
  lt_packet_free(*p);
  *p = NULL;
  return 0;
}

// receive(seconds | nil, control_only) -> request | nil: the next message of a front end; nil when
// there is none in time or the kernel ends.
static int channels_receive(lua_State *L) {
  lua_Number limit = luaL_optnumber(L, 1, -1);
  struct lt_packet **p = lua_newuserdatauv(L, sizeof(struct lt_packet *), 0);
  *p = NULL;
  luaL_setmetatable(L, request_type);
  *p = lt_channels_receive(limit, lua_toboolean(L, 2));
  if (!*p) lua_pushnil(L);
  return 1;
}

// parts(request) -> channel, sequence, header, metadata, content, list of buffers: the JSON as it
// arrived
static int channels_parts(lua_State *L) {
  const struct lt_packet *p = check_request(L, 1);
  lua_pushstring(L, channel_names[p->channel]);
  lua_pushinteger(L, (lua_Integer)p->sequence);
  static const enum lt_frame frames[] = {LT_HEADER, LT_METADATA, LT_CONTENT};
  for (int i = 0; i < 3; i++) {
    const struct lt_part *part = lt_packet_frame(p, frames[i]);
    lua_pushlstring(L, part->data, part->size);
  }
  lua_newtable(L);
  for (size_t i = p->ids + LT_BUFFERS; i < p->count; i++) {
    lua_pushlstring(L, p->frames[i].data, p->frames[i].size);
    lua_rawseti(L, -2, (lua_Integer)(i - p->ids - LT_BUFFERS + 1));
  }
  return 6;
}

static struct lt_part optional_part(lua_State *L, int index) {
  struct lt_part part = {0};
  const char *data = luaL_optlstring(L, index, NULL, &part.size);
  part.data = (char *)data; // only read
  return part;
}

// send(channel, request | nil, type, content, metadata | nil, buffers | nil): sends a message: to
// the sender of the request on "shell", "control" or "stdin", to all front ends on "iopub". Content
// and metadata are JSON.
static int channels_send(lua_State *L) {
  static const char *const names[] = {"shell", "control", "stdin", "iopub", NULL};
  int channel = luaL_checkoption(L, 1, NULL, names);
  const struct lt_packet *request = lua_isnil(L, 2) ? NULL : check_request(L, 2);
  luaL_argcheck(L, request || channel == LT_IOPUB, 2, "expected a request to answer");
  const char *type = luaL_checkstring(L, 3);
  struct lt_part content = optional_part(L, 4), metadata = optional_part(L, 5);
  lua_settop(L, 6);
  size_t count = lua_istable(L, 6) ? (size_t)lua_rawlen(L, 6) : 0;
  luaL_argcheck(L, count < 1000, 6, "too many buffers");
  luaL_checkstack(L, (int)count + 2, NULL);
  struct lt_part *buffers = lua_newuserdatauv(L, (count + 1) * sizeof *buffers, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, 6, (lua_Integer)i + 1);
    buffers[i].data = (char *)luaL_checklstring(L, -1, &buffers[i].size);
  }
  lt_channels_send((enum lt_channel)channel, request, type, content, metadata, buffers, count);
  return 0;
}

// execute(request, silent, allow_input): output belongs to this request from now on.
static int channels_execute(lua_State *L) {
  lt_channels_execute(check_request(L, 1), lua_toboolean(L, 2), lua_toboolean(L, 3));
  return 0;
}

static bool is_interrupted(void) { return lt_repl_interrupts() > 0; }

// input(prompt, password) -> line | nil, "eof" | nil, "interrupt": asks the user.
static int channels_input(lua_State *L) {
  char *line;
  enum lt_input got =
      lt_channels_input(luaL_checkstring(L, 1), lua_toboolean(L, 2), is_interrupted, &line);
  if (got == LT_INPUT_LINE) {
    lua_pushstring(L, line);
    free(line);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, got == LT_INPUT_END ? "eof" : "interrupt");
  return 2;
}

// last() -> the sequence number of the last request that has arrived
static int channels_last(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)lt_channels_last());
  return 1;
}

// finish(): ends the kernel as a request for a shutdown does.
static int channels_finish(lua_State *L) {
  (void)L;
  lt_channels_end();
  return 0;
}

static int channels_ended(lua_State *L) {
  lua_pushboolean(L, lt_channels_ended());
  return 1;
}

static int channels_close(lua_State *L) {
  (void)L;
  lt_channels_close();
  return 0;
}

// ---- standard input

static struct {
  char *text; // what the user entered, not yet read
  size_t size, at;
} entered;

// Reads for a FILE: what was entered, or asks for another line. -1 with errno after Ctrl-C.
static ssize_t read_entered(void *unused, char *out, size_t room) {
  (void)unused;
  if (entered.at == entered.size) {
    free(entered.text);
    entered.text = NULL;
    entered.at = entered.size = 0;
    char *line;
    enum lt_input got = lt_channels_input("", false, is_interrupted, &line);
    if (got == LT_INPUT_END) return 0;
    errno = EINTR;
    if (got == LT_INPUT_INTERRUPT) return -1;
    entered.text = line;
    entered.size = strlen(line);
    line[entered.size++] = '\n'; // in place of the NUL
  }
  size_t n = entered.size - entered.at;
  if (n > room) n = room;
  memcpy(out, entered.text + entered.at, n);
  entered.at += n;
  return (ssize_t)n;
}

#ifndef __APPLE__
static FILE *open_entered(void) {
  return fopencookie(NULL, "r", (cookie_io_functions_t){.read = read_entered});
}
#else
static int read_some(void *unused, char *out, int room) {
  return (int)read_entered(unused, out, (size_t)room);
}
static FILE *open_entered(void) { return funopen(NULL, read_some, NULL, NULL, NULL); }
#endif

static int keep_open(lua_State *L) { // as lua does for its standard files
  luaL_Stream *s = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  s->closef = keep_open;
  lua_pushnil(L);
  lua_pushliteral(L, "cannot close standard file");
  return 2;
}

// stdin() -> a file whose lines the user enters in the front end
static int channels_stdin(lua_State *L) {
  luaL_Stream *s = lua_newuserdatauv(L, sizeof *s, 0);
  s->closef = NULL;
  luaL_setmetatable(L, LUA_FILEHANDLE);
  s->f = open_entered();
  if (!s->f) return luaL_error(L, "cannot open the standard input: %s", strerror(errno));
  setvbuf(s->f, NULL, _IONBF, 0); // no line is lost when a read is interrupted
  s->closef = keep_open;
  return 1;
}

int luaopen_lutra_repl_channels(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"open", channels_open},   {"receive", channels_receive}, {"parts", channels_parts},
      {"send", channels_send},   {"execute", channels_execute}, {"input", channels_input},
      {"last", channels_last},   {"finish", channels_finish},   {"ended", channels_ended},
      {"close", channels_close}, {"stdin", channels_stdin},     {NULL, NULL},
  };
  luaL_newmetatable(L, request_type);
  lua_pushcfunction(L, request_gc);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  luaL_newlib(L, functions);
  return 1;
}
