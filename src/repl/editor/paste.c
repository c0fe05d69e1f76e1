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

static const char mark[] = "\033[201~";
enum { MARK = sizeof mark - 1 };

struct pasted {
  char *bytes;
  size_t size, room;
};

// Returns how many bytes of the marker the text ends with.
static size_t begun(const struct pasted *p) {
  size_t n = p->size < MARK ? p->size : MARK;
  while (n > 0 && memcmp(p->bytes + p->size - n, mark, n) != 0) n--;
  return n;
}

static bool make_room(struct pasted *p) {
  if (p->size + MARK < p->room) return true;
  size_t room = p->room * 2 + 4096;
  char *grown = realloc(p->bytes, room);
  if (!grown) return false;
  p->bytes = grown;
  p->room = room;
  return true;
}

// Reads up to the marker. Text that arrived before Ctrl-C or the end of input is kept.
static void read_paste(struct pasted *p) {
  while (make_room(p)) {
    size_t k = begun(p);
    if (k == MARK) {
      p->size -= MARK;
      break;
    }
    ssize_t n = lt_input_wait() ? read(STDIN_FILENO, p->bytes + p->size, MARK - k) : 0;
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
