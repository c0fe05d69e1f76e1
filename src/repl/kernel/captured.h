// Captures what the process writes to stdout and stderr, also from C code and child processes.
// Called by the thread of the channels, except for lt_captured_open and lt_captured_close.
#ifndef LT_REPL_KERNEL_CAPTURED_H
#define LT_REPL_KERNEL_CAPTURED_H

#include <stdbool.h>

#include "text.h"

enum { LT_OUTPUTS = 2 }; // stdout and stderr

// Replaces file descriptors 1 and 2 by pipes. Returns false with errno on failure.
bool lt_captured_open(void);

// Restores the descriptors. Call it when nothing reads the pipes any more.
void lt_captured_close(void);

// Returns the descriptor to be polled for output i.
int lt_captured_descriptor(int i);

// Reads what has been written to output i. Returns whether more than a message's worth is waiting.
bool lt_captured_read(int i);

// Returns the milliseconds until waiting output is to be sent, -1 when there is none.
long lt_captured_due(void);

// Returns whether output i is waiting; then adds the content of its `stream` message to `out`, and
// removes it. With `all`, also an unfinished UTF-8 character at its end.
bool lt_captured_take(int i, bool all, struct lt_text *out);

// Discards what is waiting.
void lt_captured_discard(void);

#endif
