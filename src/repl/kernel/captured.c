// Captures stdout and stderr. Output is collected for INTERVAL milliseconds, so that many small
// writes become few messages.
//
// Invariant: `waiting` of a stream is what was read and not sent; `since` is when its first byte
// was read.
#define _XOPEN_SOURCE 700
#include "captured.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { INTERVAL = 20, MOST = 1 << 18 }; // milliseconds; bytes of one message

static struct stream {
  const char *name;
  int original, reader; // the descriptor before, the pipe
  struct lt_text waiting;
  double since;
} streams[LT_OUTPUTS] = {{.name = "stdout"}, {.name = "stderr"}};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// Replaces descriptor `fd` by a pipe.
static bool capture(struct stream *s, int fd) {
  int ends[2];
  s->original = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (pipe(ends) != 0) return false;
  s->reader = ends[0];
  bool ok = fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
            dup2(ends[1], fd) == fd;
  if (ends[1] != fd) close(ends[1]);
  return ok;
}

bool lt_captured_open(void) {
  fflush(stdout);
  fflush(stderr);
  for (int i = 0; i < LT_OUTPUTS; i++)
    if (!capture(&streams[i], i + 1)) return false;
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ); // as at a terminal
  return true;
}

void lt_captured_close(void) {
  fflush(stdout);
  for (int i = 0; i < LT_OUTPUTS; i++) {
    struct stream *s = &streams[i];
    if (s->original >= 0) dup2(s->original, i + 1);
    if (s->original >= 0) close(s->original);
    close(s->reader);
    lt_text_free(&s->waiting);
  }
}

int lt_captured_descriptor(int i) { return streams[i].reader; }

bool lt_captured_read(int i) {
  struct stream *s = &streams[i];
  char part[1 << 16];
  ssize_t n;
  while (s->waiting.size < MOST && (n = read(s->reader, part, sizeof part)) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (!s->waiting.size) s->since = now();
    lt_text_add(&s->waiting, part, (size_t)n);
    s->waiting.failed = false; // without memory this part is lost
  }
  return s->waiting.size >= MOST;
}

long lt_captured_due(void) {
  long due = -1;
  for (int i = 0; i < LT_OUTPUTS; i++) {
    if (!streams[i].waiting.size) continue;
    double left = streams[i].since + INTERVAL - now();
    long wait = left > 0 ? (long)left + 1 : 0;
    if (due < 0 || wait < due) due = wait;
  }
  return due;
}

bool lt_captured_take(int i, bool all, struct lt_text *out) {
  struct stream *s = &streams[i];
  size_t kept = all ? 0 : lt_text_unfinished(s->waiting.data, s->waiting.size);
  size_t size = s->waiting.size - kept;
  if (!size) {
    s->since = now(); // the rest of the character may come
    return false;
  }
  lt_text_add_string(out, "{\"name\":\"");
  lt_text_add_string(out, s->name);
  lt_text_add_string(out, "\",\"text\":");
  lt_text_add_json(out, s->waiting.data, size);
  lt_text_add_string(out, "}");
  for (size_t k = 0; k < kept; k++) s->waiting.data[k] = s->waiting.data[size + k];
  s->waiting.size = kept;
  s->since = now();
  return true;
}

void lt_captured_discard(void) {
  for (int i = 0; i < LT_OUTPUTS; i++) streams[i].waiting.size = 0;
}
