// Growing strings, and JSON strings of bytes that may not be UTF-8.
#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tensor/io/json.h"

// Makes room for `size` more bytes; returns false and sets `failed` when there is no memory.
static bool make_room(struct lt_text *t, size_t size) {
  if (t->failed) return false;
  if (size <= t->room - t->size) return true;
  size_t room = t->room ? t->room : 256;
  while (room - t->size < size) {
    if (room > SIZE_MAX / 2) {
      t->failed = true;
      return false;
    }
    room *= 2;
  }
  char *data = realloc(t->data, room);
  t->failed = !data;
  if (data) {
    t->data = data;
    t->room = room;
  }
  return data != NULL;
}

void lt_text_add(struct lt_text *t, const char *data, size_t size) {
  if (size == 0 || !make_room(t, size)) return;
  memcpy(t->data + t->size, data, size);
  t->size += size;
}

void lt_text_add_string(struct lt_text *t, const char *s) { lt_text_add(t, s, strlen(s)); }

// Returns how many bytes the first byte of a UTF-8 character announces, 0 for another byte.
static size_t announced(unsigned char c) {
  if (c < 0x80) return 1;
  return c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}

size_t lt_text_unfinished(const char *data, size_t size) {
  for (size_t back = 1; back <= 3 && back <= size; back++) {
    unsigned char c = (unsigned char)data[size - back];
    if (c < 0x80 || c >= 0xc0) return announced(c) > back ? back : 0;
  }
  return 0;
}

// Appends one ASCII character as part of a JSON string.
static void add_ascii(struct lt_text *t, char c) {
  char code[8];
  if (c == '"' || c == '\\') {
    code[0] = '\\';
    code[1] = c;
    lt_text_add(t, code, 2);
  } else if (c == '\n') {
    lt_text_add(t, "\\n", 2);
  } else if ((unsigned char)c < 0x20 || c == 0x7f) {
    int n = snprintf(code, sizeof code, "\\u%04x", (unsigned char)c);
    lt_text_add(t, code, (size_t)n);
  } else {
    lt_text_add(t, &c, 1);
  }
}

static bool is_plain(char c) {
  return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7f && c != '"' && c != '\\';
}

void lt_text_add_json(struct lt_text *t, const char *data, size_t size) {
  lt_text_add(t, "\"", 1);
  for (size_t i = 0; i < size;) {
    size_t plain = i;
    while (plain < size && is_plain(data[plain])) plain++;
    lt_text_add(t, data + i, plain - i);
    if ((i = plain) == size) break;
    size_t n = announced((unsigned char)data[i]);
    if (n == 1) {
      add_ascii(t, data[i]);
    } else if (n && n <= size - i && lt_utf8_valid(data + i, n)) {
      lt_text_add(t, data + i, n);
    } else {
      lt_text_add(t, "\xEF\xBF\xBD", 3);
      n = 1;
    }
    i += n;
  }
  lt_text_add(t, "\"", 1);
}

void lt_text_free(struct lt_text *t) {
  free(t->data);
  *t = (struct lt_text){0};
}
