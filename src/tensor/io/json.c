/* json.c: a strict parser of a subset of JSON (RFC 8259). It never reads beyond the end of the
 * string. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stores the first error; returns false. */
static bool fail(lt_Json *j, const char *why) {
  if (!j->wrong) j->wrong = why;
  return false;
}

/* Returns the length of the character at s (1 to 4), or 0 when it is not valid. */
static size_t utf8_length(const uint8_t *s, size_t n) {
  if (s[0] < 0x80) return 1;
  size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4 || n < length) return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
  bool beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
  return overlong || beyond ? 0 : length;
}

bool lt_utf8_valid(const char *s, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t length = utf8_length((const uint8_t *)s + i, n - i);
    if (!length) return false;
    i += length;
  }
  return true;
}

const char *lt_json_show(const char *name) {
  static _Thread_local char ring[4][80];
  static _Thread_local int turn;
  char *text = ring[turn = (turn + 1) % 4];
  size_t at = 0, left = strlen(name), n;
  text[at++] = '"';
  for (; left && at < 64; name += n, left -= n) {
    n = utf8_length((const uint8_t *)name, left);
    if (n == 0 || (uint8_t)*name < 0x20 || *name == 0x7f) {
      n = 1;
      text[at++] = '?';
    } else {
      memcpy(text + at, name, n);
      at += n;
    }
  }
  snprintf(text + at, sizeof ring[0] - at, "%s\"", left ? "..." : "");
  return text;
}

/* Skips white space. */
static void blanks(lt_Json *j) {
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
    j->at++;
}

bool lt_json_try(lt_Json *j, char c) {
  blanks(j);
  if (j->wrong || j->at == j->end || *j->at != c) return false;
  j->at++;
  return true;
}

bool lt_json_take(lt_Json *j, char c) {
  if (lt_json_try(j, c)) return true;
  switch (c) {
  case '{':
    return fail(j, "expected an object");
  case '}':
    return fail(j, "expected a comma or the end of an object");
  case '[':
    return fail(j, "expected a list");
  case ']':
    return fail(j, "expected a comma or the end of a list");
  case ':':
    return fail(j, "expected a colon");
  default:
    return fail(j, "expected a comma");
  }
}

bool lt_json_done(lt_Json *j) {
  blanks(j);
  return !j->wrong && j->at == j->end;
}

/* Reads four hexadecimal digits. */
static bool hex4(lt_Json *j, uint32_t *code) {
  *code = 0;
  if (j->end - j->at < 4) return fail(j, "invalid escape in a string");
  for (int i = 0; i < 4; i++) {
    char c = *j->at++;
    int digit = c >= '0' && c <= '9'                 ? c - '0'
                : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                     : -1;
    if (digit < 0) return fail(j, "invalid escape in a string");
    *code = *code * 16 + (uint32_t)digit;
  }
  return true;
}

/* Reads the digits after \u and writes the character as UTF-8; a surrogate needs its pair. */
static bool unicode(lt_Json *j, char **out) {
  uint32_t c, low;
  if (!hex4(j, &c)) return false;
  if (c >= 0xd800 && c < 0xdc00) {
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
      return fail(j, "unpaired surrogate in a string");
    j->at += 2;
    if (!hex4(j, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return fail(j, "unpaired surrogate in a string");
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  } else if (c >= 0xdc00 && c < 0xe000) {
    return fail(j, "unpaired surrogate in a string");
  }
  if (c == 0) return fail(j, "NUL in a string");
  char *o = *out;
  if (c < 0x80) {
    *o++ = (char)c;
  } else if (c < 0x800) {
    *o++ = (char)(0xc0 | c >> 6);
    *o++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *o++ = (char)(0xe0 | c >> 12);
    *o++ = (char)(0x80 | (c >> 6 & 63));
    *o++ = (char)(0x80 | (c & 63));
  } else {
    *o++ = (char)(0xf0 | c >> 18);
    *o++ = (char)(0x80 | (c >> 12 & 63));
    *o++ = (char)(0x80 | (c >> 6 & 63));
    *o++ = (char)(0x80 | (c & 63));
  }
  *out = o;
  return true;
}

/* Reads what follows a backslash in a string, and writes the character. */
static bool escape(lt_Json *j, char **out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (j->at == j->end) return fail(j, "unfinished string");
  char c = *j->at++;
  if (c == 'u') return unicode(j, out);
  const char *p = c ? strchr(from, c) : NULL;
  if (!p) return fail(j, "invalid escape in a string");
  *(*out)++ = to[p - from];
  return true;
}

char *lt_json_string(lt_Json *j) {
  blanks(j);
  if (j->wrong || j->at == j->end || *j->at != '"') {
    fail(j, "expected a string");
    return NULL;
  }
  const char *close = ++j->at;
  while (close < j->end && *close != '"') close += *close == '\\' && close + 1 < j->end ? 2 : 1;
  if (close >= j->end) {
    fail(j, "unfinished string");
    return NULL;
  }
  char *text = malloc((size_t)(close - j->at) + 1), *out = text; /* escapes only shrink */
  if (!text) {
    fail(j, "out of memory");
    return NULL;
  }
  bool good = true;
  while (good && j->at < close) {
    char c = *j->at++;
    if (c == '\\')
      good = escape(j, &out);
    else if ((uint8_t)c < 0x20)
      good = fail(j, "control character in a string");
    else
      *out++ = c;
  }
  if (!good) {
    free(text);
    return NULL;
  }
  j->at++;
  *out = 0;
  return text;
}

bool lt_json_number(lt_Json *j, uint64_t *n) {
  blanks(j);
  const char *first = j->at;
  *n = 0;
  if (j->wrong) return false;
  while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
    if (__builtin_mul_overflow(*n, 10u, n) ||
        __builtin_add_overflow(*n, (uint64_t)(*j->at++ - '0'), n))
      return fail(j, "number does not fit 64 bits");
  if (j->at == first) return fail(j, "expected an integer of at least 0");
  if (*first == '0' && j->at - first > 1) return fail(j, "number starts with 0");
  if (j->at < j->end && strchr(".eE+-", *j->at) && *j->at)
    return fail(j, "expected an integer of at least 0");
  return true;
}

size_t lt_json_quote(char *out, const char *s) {
  size_t n = 0;
  char piece[8];
#define PUT(text, length)                                                                          \
  do {                                                                                             \
    if (out) memcpy(out + n, text, length);                                                        \
    n += length;                                                                                   \
  } while (0)
  PUT("\"", 1);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') {
      PUT("\\", 1);
      PUT(s, 1);
    } else if ((uint8_t)*s < 0x20) {
      snprintf(piece, sizeof piece, "\\u%04x", (unsigned)*s);
      PUT(piece, 6);
    } else {
      PUT(s, 1);
    }
  }
  PUT("\"", 1);
#undef PUT
  return n;
}
