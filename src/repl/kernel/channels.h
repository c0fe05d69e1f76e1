// The kernel's five channels to its front ends, and the thread that serves them.
//
// One thread, which never runs Lua, owns the sockets: so the kernel answers heartbeats, interrupts
// and requests for a shutdown while code runs. Messages for Lua wait in a queue; messages from Lua
// are sent in the order of the calls. What the process writes to stdout and stderr is sent as well,
// before any message of a later call (captured.h).
//
// All functions but the thread's own are called on the main thread.
#ifndef LT_REPL_KERNEL_CHANNELS_H
#define LT_REPL_KERNEL_CHANNELS_H

#include "message.h"

enum lt_channel { LT_SHELL, LT_CONTROL, LT_STDIN, LT_IOPUB, LT_HEARTBEAT, LT_CHANNELS };

// Where the kernel listens: the contents of a connection file.
struct lt_connection {
  const char *transport, *ip; // "tcp" and an address, or "ipc" and a path
  int ports[LT_CHANNELS];
  struct lt_key key;
};

// Binds the sockets, captures stdout and stderr, and starts the thread. `info` is the content of
// kernel_info_reply. Returns NULL, or the reason why it failed. Copies its arguments.
const char *lt_channels_open(const struct lt_connection *, const char *info);

// Returns the next message from a front end, of the control channel first; with `control`, only of
// this one. Waits for at most `seconds` (negative: without a limit). Returns NULL when there is
// none, or when the kernel must end: see lt_channels_ended. The caller frees the packet.
struct lt_packet *lt_channels_receive(double seconds, bool control);

// Returns whether a front end has asked for the end of the kernel.
bool lt_channels_ended(void);

// Ends the kernel as a request for a shutdown does.
void lt_channels_end(void);

// Sends a message of `type`: to the sender of `request` on that channel, or to all on LT_IOPUB. Its
// parent is the header of `request`, which may be NULL there. `buffers` are binary parts.
void lt_channels_send(enum lt_channel, const struct lt_packet *request, const char *type,
                      struct lt_part content, struct lt_part metadata,
                      const struct lt_part *buffers, size_t count);

// Declares that from now on output belongs to `request`; with `silent`, output is discarded. With
// `allow_input`, the input of lt_channels_input is requested from its sender.
void lt_channels_execute(const struct lt_packet *request, bool silent, bool allow_input);

enum lt_input { LT_INPUT_LINE, LT_INPUT_END, LT_INPUT_INTERRUPT };

// Asks the user for a line, through the front end that sent the current request; without one that
// allows it, input has ended. `interrupted` says whether to stop waiting. The caller frees *line.
enum lt_input lt_channels_input(const char *prompt, bool password, bool (*interrupted)(void),
                                char **line);

// Waits until every request that front ends have sent before is in the queue; returns the sequence
// number of the last one.
unsigned long lt_channels_last(void);

// Sends what is waiting, ends the thread, and restores stdout and stderr. Does nothing when the
// channels are not open. Called at the end of the process as well.
void lt_channels_close(void);

#endif
