// Reads, checks and builds messages of the wire format.
#include "message.h"

#include "../../tensor/io/json.h"
#include "libraries.h"
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char delimiter[] = "<IDS|MSG>";

enum { DIGITS = 2 * LT_HMAC_SIZE, DEEPEST = 200 };

// ---- packets

struct lt_packet *lt_packet_new(int channel) {
  struct lt_packet *p = calloc(1, sizeof *p);
  if (p) p->channel = channel;
  return p;
}

bool lt_packet_add(struct lt_packet *p, const char *data, size_t size) {
  if (p->count == p->room) {
    size_t room = p->room ? 2 * p->room : 8;
    struct lt_part *frames = realloc(p->frames, room * sizeof *frames);
    if (!frames) return false;
    p->frames = frames;
    p->room = room;
  }
  char *copy = malloc(size ? size : 1);
  if (!copy) return false;
  if (size) memcpy(copy, data, size);
  p->frames[p->count++] = (struct lt_part){copy, size};
  return true;
}

void lt_packet_free(struct lt_packet *p) {
  if (!p) return;
  for (size_t i = 0; i < p->count; i++) free(p->frames[i].data);
  free(p->frames);
  free(p);
}

const struct lt_part *lt_packet_frame(const struct lt_packet *p, enum lt_frame frame) {
  return &p->frames[p->ids + frame];
}

// ---- signatures

// Writes the hexadecimal signature of four parts. Returns false on failure.
static bool sign(struct lt_key key, const struct lt_part parts[4], char digits[DIGITS]) {
  static const char hex[] = "0123456789abcdef";
  struct lt_text all = {0};
  for (int i = 0; i < 4; i++) lt_text_add(&all, parts[i].data, parts[i].size);
  unsigned char code[LT_HMAC_SIZE];
  bool ok = !all.failed && lt_hmac(key.data, key.size, all.data ? all.data : "", all.size, code);
  lt_text_free(&all);
  for (size_t i = 0; ok && i < LT_HMAC_SIZE; i++) {
    digits[2 * i] = hex[code[i] >> 4];
    digits[2 * i + 1] = hex[code[i] & 15];
  }
  return ok;
}

// Compares without an early end, so that the time tells nothing about the signature.
static bool is_same(const char *a, const char *b, size_t size) {
  unsigned char differs = 0;
  for (size_t i = 0; i < size; i++) differs |= (unsigned char)(a[i] ^ b[i]);
  return differs == 0;
}

const char *lt_packet_read(struct lt_packet *p, struct lt_key key) {
  size_t at = 0;
  while (at < p->count && !(p->frames[at].size == sizeof delimiter - 1 &&
                            memcmp(p->frames[at].data, delimiter, sizeof delimiter - 1) == 0))
    at++;
  if (at == p->count) return "a message without the delimiter <IDS|MSG>";
  if (p->count - at < LT_BUFFERS) return "a message without all its parts";
  p->ids = at;
  if (!key.size) return NULL;
  char digits[DIGITS];
  const struct lt_part *signature = lt_packet_frame(p, LT_SIGNATURE);
  if (!sign(key, lt_packet_frame(p, LT_HEADER), digits)) return "a message that cannot be checked";
  bool valid = signature->size == DIGITS && is_same(signature->data, digits, DIGITS);
  return valid ? NULL : "a message with an invalid signature";
}

bool lt_packet_build(struct lt_packet *p, struct lt_key key, struct lt_part header,
                     struct lt_part parent, struct lt_part metadata, struct lt_part content) {
  static char empty[] = "{}";
  struct lt_part parts[4] = {header, parent, metadata, content};
  for (int i = 0; i < 4; i++)
    if (!parts[i].data || !parts[i].size) parts[i] = (struct lt_part){empty, 2};
  char digits[DIGITS];
  if (key.size && !sign(key, parts, digits)) return false;
  p->ids = p->count;
  bool ok = lt_packet_add(p, delimiter, sizeof delimiter - 1) &&
            lt_packet_add(p, digits, key.size ? DIGITS : 0);
  for (int i = 0; ok && i < 4; i++) ok = lt_packet_add(p, parts[i].data, parts[i].size);
  return ok;
}

// ---- members of objects

// Skips a number or a word. What it is does not matter: a part that is used is read by a parser.
static bool skip_word(lt_Json *j) {
  const char *from = j->at;
  while (j->at < j->end && *j->at && strchr("+-.0123456789eEtrufalsn", *j->at)) j->at++;
  return j->at > from;
}

// Skips a value of any kind.
static bool skip(lt_Json *j, int depth) {
  if (depth > DEEPEST) return false;
  bool object = lt_json_try(j, '{');
  if (!object && !lt_json_try(j, '[')) {
    if (lt_json_done(j)) return false;
    if (*j->at != '"') return skip_word(j);
    char *text = lt_json_string(j);
    free(text);
    return text != NULL;
  }
  char end = object ? '}' : ']';
  if (lt_json_try(j, end)) return true;
  do {
    if (object && (!skip(j, DEEPEST) || !lt_json_take(j, ':'))) return false; // the name
    if (!skip(j, depth + 1)) return false;
  } while (lt_json_try(j, ','));
  return lt_json_take(j, end);
}

// Goes to the value of member `name`; returns false if there is none.
static bool find(lt_Json *j, const char *name) {
  if (!lt_json_try(j, '{')) return false;
  do {
    char *key = lt_json_string(j);
    bool same = key && strcmp(key, name) == 0;
    free(key);
    if (!key || !lt_json_take(j, ':')) return false;
    if (same) return !lt_json_done(j); // skips blanks
    if (!skip(j, 0)) return false;
  } while (lt_json_try(j, ','));
  return false;
}

static lt_Json reader(struct lt_part object) {
  return (lt_Json){.at = object.data, .start = object.data, .end = object.data + object.size};
}

char *lt_json_text(struct lt_part object, const char *name) {
  lt_Json j = reader(object);
  return find(&j, name) && *j.at == '"' ? lt_json_string(&j) : NULL;
}

bool lt_json_member(struct lt_part object, const char *name, char *out, size_t room) {
  char *text = lt_json_text(object, name);
  bool fits = text && strlen(text) < room;
  if (fits) strcpy(out, text);
  free(text);
  return fits;
}

bool lt_json_flag(struct lt_part object, const char *name, bool *flag) {
  lt_Json j = reader(object);
  if (!find(&j, name)) return false;
  size_t left = (size_t)(j.end - j.at);
  *flag = left >= 4 && memcmp(j.at, "true", 4) == 0;
  return *flag || (left >= 5 && memcmp(j.at, "false", 5) == 0);
}
