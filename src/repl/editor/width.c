// Decodes UTF-8 (RFC 3629); widths are those of the C library's wcwidth.
#define _XOPEN_SOURCE 700
#include "width.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

void lt_width_locale(void) {
  const char *name = setlocale(LC_CTYPE, "");
  if (!name || strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968") == 0)
    (void)setlocale(LC_CTYPE, "C.UTF-8");
}

// Decodes one character and returns its size; 0 for an invalid byte.
static size_t decode(const unsigned char *text, size_t size, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char c = text[0];
  size_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
  if (n == 0 || n > size) return 0;
  *code = n == 1 ? c : c & (0x7Fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((text[i] & 0xC0) != 0x80) return 0;
    *code = *code << 6 | (text[i] & 0x3F);
  }
  if (*code < least[n] || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) return 0;
  return n;
}

size_t lt_width_next(const char *text, size_t size, int *width) {
  uint32_t code;
  *width = 1;
  if (text[0] >= 0x20 && text[0] < 0x7F) return 1;
  size_t n = decode((const unsigned char *)text, size, &code);
  *width = n == 0 || code < 0x20 || code == 0x7F ? -1 : wcwidth((wchar_t)code);
  return n ? n : 1;
}
