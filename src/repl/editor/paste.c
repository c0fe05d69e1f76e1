// A paste ends with a marker of six bytes. If the last k bytes read may be the start of the marker,
// 6 - k more bytes can be read without consuming input behind it: so reading is fast and no input
// must be pushed back.
#define _XOPEN_SOURCE 700
#include "paste.h"
#include "ask.h"
#include "input.h"
#include "library.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char marker[] = "\033[201~";
enum { MARKER = sizeof marker - 1 };

struct pasted {
  char *bytes;
  size_t size, capacity;
};

// Returns how many bytes of the marker the text ends with.
static size_t marker_prefix(const struct pasted *p) {
  size_t n = p->size < MARKER ? p->size : MARKER;
  while (n > 0 && memcmp(p->bytes + p->size - n, marker, n) != 0) n--;
  return n;
}

static bool grow(struct pasted *p) {
  if (p->size + MARKER < p->capacity) return true;
  size_t capacity = p->capacity * 2 + 4096;
  char *grown = realloc(p->bytes, capacity);
  if (!grown) return false;
  p->bytes = grown;
  p->capacity = capacity;
  return true;
}

// Reads up to the marker. Text that arrived before Ctrl-C or the end of input is kept.
static void read_paste(struct pasted *p) {
  while (grow(p)) {
    size_t k = marker_prefix(p);
    if (k == MARKER) {
      p->size -= MARKER;
      break;
    }
    ssize_t n = lt_input_wait() ? read(STDIN_FILENO, p->bytes + p->size, MARKER - k) : 0;
    if (n <= 0) break;
    p->size += (size_t)n;
  }
  if (p->bytes) p->bytes[p->size] = '\0';
}

int lt_paste(int count, int key) {
  (void)count, (void)key;
  struct pasted p = {NULL, 0, 0};
  read_paste(&p);
  if (!p.bytes) return 0;
  char *clean = lt_ask_text("clean", p.bytes, p.size, p.size);
  if (clean) lt_rl.rl_insert_text(clean);
  free(clean);
  free(p.bytes);
  return 0;
}
