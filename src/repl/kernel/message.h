// The wire format of Jupyter's messages (jupyter-client.readthedocs.io, "Messaging in Jupyter"):
//
//     identities..., "<IDS|MSG>", signature, header, parent header, metadata, content, buffers...
//
// Nothing here needs Lua, ZeroMQ or a thread.
#ifndef LT_REPL_KERNEL_MESSAGE_H
#define LT_REPL_KERNEL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

// The key of signatures; without bytes messages are neither signed nor checked.
struct lt_key {
  const char *data;
  size_t size;
};

struct lt_part {
  char *data;
  size_t size;
};

// A message as its frames, which it owns.
struct lt_packet {
  struct lt_packet *next; // in a queue
  int channel;            // see channels.h
  unsigned long sequence; // its number in the order of arrival
  size_t count, room;
  struct lt_part *frames;
  size_t ids; // number of identities; the frame behind them is the delimiter
};

// The frames behind the delimiter.
enum lt_frame { LT_SIGNATURE = 1, LT_HEADER, LT_PARENT, LT_METADATA, LT_CONTENT, LT_BUFFERS };

// Returns a new packet without frames, NULL when out of memory.
struct lt_packet *lt_packet_new(int channel);
// Appends a copy of a frame. Returns false when out of memory, then or before.
bool lt_packet_add(struct lt_packet *, const char *data, size_t size);
void lt_packet_free(struct lt_packet *);

// Returns a frame behind the delimiter. The packet must have been read or built by this file.
const struct lt_part *lt_packet_frame(const struct lt_packet *, enum lt_frame);

// Finds the parts of a packet that was received, and checks its signature. Returns NULL, or what is
// wrong with it.
const char *lt_packet_read(struct lt_packet *, struct lt_key);

// Appends the frames of a message behind its identities, with the signature. Parts without data are
// empty objects. Returns false when out of memory.
bool lt_packet_build(struct lt_packet *, struct lt_key, struct lt_part header,
                     struct lt_part parent, struct lt_part metadata, struct lt_part content);

// Reads member `name` of a JSON object, whose value must be a string (at most `room` - 1 bytes,
// written with a NUL) or, with `flag`, a boolean. Returns false if the object is invalid or has no
// such member.
bool lt_json_member(struct lt_part object, const char *name, char *out, size_t room);
bool lt_json_flag(struct lt_part object, const char *name, bool *flag);
// Reads a string member of any length; the caller frees it. Returns NULL if there is none.
char *lt_json_text(struct lt_part object, const char *name);

#endif
