/* fuzz_kernel.c: a libFuzzer target: what a front end sends to the kernel. Frames of any bytes
 * are a message or one reason, never a crash or a leak; with a key, only a message with its
 * signature is accepted; a built message can be read; output of any bytes becomes a JSON string.
 * The input is cut into frames: a byte for the length (255: the rest), then as many bytes. Built
 * and run by tests/fuzz/run.
 */
#include "json.h"
#include "repl/kernel/libraries.h"
#include "repl/kernel/message.h"
#include "repl/kernel/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct lt_key key = {"secret", 6}, none = {NULL, 0};

/* Reads members of all parts that the kernel reads. */
static void read_members(const struct lt_packet *p) {
  char type[64];
  bool flag;
  for (int frame = LT_HEADER; frame <= LT_CONTENT; frame++) {
    const struct lt_part *part = lt_packet_frame(p, (enum lt_frame)frame);
    if (lt_json_member(*part, "msg_type", type, sizeof type) && strlen(type) >= sizeof type)
      abort();
    (void)lt_json_flag(*part, "restart", &flag);
    free(lt_json_text(*part, "value"));
  }
}

/* Signs the parts of a message, and checks that the result can be read, and no longer when a byte
 * of it is changed. */
static void rebuild(const struct lt_packet *p) {
  struct lt_packet *built = lt_packet_new(0);
  const struct lt_part *parts = lt_packet_frame(p, LT_HEADER);
  if (!built || !lt_packet_add(built, "identity", 8)) abort();
  if (!lt_packet_build(built, key, parts[0], parts[1], parts[2], parts[3])) abort();
  if (lt_packet_read(built, key) || built->ids != 1) abort();
  built->frames[built->ids + LT_SIGNATURE].data[5] ^= 1;
  if (!lt_packet_read(built, key)) abort();
  lt_packet_free(built);
}

/* Checks that any bytes become one JSON string of valid UTF-8. */
static void quote(const uint8_t *data, size_t size) {
  struct lt_text t = {0};
  lt_text_add_json(&t, (const char *)data, size);
  if (t.failed || !lt_utf8_valid(t.data, t.size)) abort();
  if (lt_text_unfinished((const char *)data, size) > 3) abort();
  if (!memchr(data, 0, size)) { /* lt_json_string does not accept NUL */
    lt_Json j = {.at = t.data, .start = t.data, .end = t.data + t.size};
    char *text = lt_json_string(&j);
    if (!text || !lt_json_done(&j)) abort();
    if (lt_utf8_valid((const char *)data, size) && memcmp(text, data, size) != 0) abort();
    free(text);
  }
  lt_text_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (lt_hmac_load()) abort();
  if (size) quote(data, size);
  struct lt_packet *p = lt_packet_new(0);
  for (size_t at = 0; p && at < size;) {
    size_t length = data[at++];
    if (length == 255 || length > size - at) length = size - at;
    if (!lt_packet_add(p, (const char *)data + at, length)) abort();
    at += length;
  }
  if (!p) abort();
  bool is_signed = !lt_packet_read(p, key);
  if (!lt_packet_read(p, none)) {
    read_members(p);
    rebuild(p);
  } else if (is_signed) {
    abort();
  }
  lt_packet_free(p);
  return 0;
}
