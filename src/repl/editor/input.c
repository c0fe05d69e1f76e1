// input.c: availability of input on stdin.
#define _XOPEN_SOURCE 700
#include "input.h"

#include <poll.h>
#include <stddef.h>
#include <unistd.h>

static bool (*wait_for_input)(void);

bool lt_input_pending(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, 0) > 0;
}

bool lt_input_wait(void) { return wait_for_input && wait_for_input(); }

void lt_input_set_wait(bool (*wait)(void)) { wait_for_input = wait; }
