// Loads the libraries of the kernel. Invariant: the members of lt_zmq are set after lt_zmq_load has
// returned NULL.
#include "libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct lt_zmq lt_zmq;

static char reason[512];

// Opens the first of these libraries; NULL with the reason of the first one when there is none.
static void *open_first(const char *const *names, const char *hint) {
  for (size_t i = 0; names[i]; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    if (i == 0) (void)snprintf(reason, sizeof reason, "%.300s\nhint: %s", dlerror(), hint);
  }
  return NULL;
}

const char *lt_zmq_load(void) {
  static const char *const names[] = {"libzmq.so.5",
                                      "libzmq.so",
                                      "libzmq.5.dylib",
                                      "/opt/homebrew/opt/zeromq/lib/libzmq.5.dylib",
                                      "/usr/local/opt/zeromq/lib/libzmq.5.dylib",
                                      NULL};
  static const struct {
    const char *name;
    size_t offset;
  } functions[] = {
#define ROW(type, name, parameters) {#name, offsetof(struct lt_zmq, name)},
      LT_ZMQ_FUNCTIONS(ROW)
#undef ROW
  };
  void *library = open_first(names, "apt install libzmq5 (macOS: brew install zeromq)");
  if (!library) return reason;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(library, functions[i].name);
    if (!found) {
      (void)snprintf(reason, sizeof reason, "libzmq has no function %s", functions[i].name);
      return reason;
    }
    memcpy((char *)&lt_zmq + functions[i].offset, &found, sizeof found); // ISO C has no cast for it
  }
  return NULL;
}

// ---- signatures

#ifdef __APPLE__
// CommonCrypto, a part of the system's C library.
enum { SHA256 = 2 };
void CCHmac(unsigned algorithm, const void *key, size_t key_size, const void *data, size_t size,
            void *out);

const char *lt_hmac_load(void) { return NULL; }

bool lt_hmac(const char *key, size_t key_size, const char *data, size_t size,
             unsigned char out[LT_HMAC_SIZE]) {
  CCHmac(SHA256, key, key_size, data, size, out);
  return true;
}
#else
static const void *(*sha256)(void); // EVP_sha256
static unsigned char *(*hmac)(const void *hash, const void *key, int key_size,
                              const unsigned char *data, size_t size, unsigned char *out,
                              unsigned *out_size); // HMAC

const char *lt_hmac_load(void) {
  static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so", NULL};
  void *library = open_first(names, "apt install libssl3");
  if (!library) return reason;
  void *f = dlsym(library, "EVP_sha256"), *g = dlsym(library, "HMAC");
  if (!f || !g) return "libcrypto has no function HMAC";
  memcpy(&sha256, &f, sizeof f);
  memcpy(&hmac, &g, sizeof g);
  // The first use registers OpenSSL's end with atexit: it must precede that of the channels, which
  // then end before OpenSSL.
  unsigned char code[LT_HMAC_SIZE];
  return lt_hmac("", 0, "", 0, code) ? NULL : "libcrypto computes no HMAC-SHA256";
}

bool lt_hmac(const char *key, size_t key_size, const char *data, size_t size,
             unsigned char out[LT_HMAC_SIZE]) {
  unsigned written = 0;
  return hmac && key_size <= INT_MAX &&
         hmac(sha256(), key, (int)key_size, (const unsigned char *)data, size, out, &written) &&
         written == LT_HMAC_SIZE;
}
#endif
