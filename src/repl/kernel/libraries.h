// The libraries of the kernel, loaded by dlopen when a kernel starts: ZeroMQ carries its messages,
// and OpenSSL (on macOS the system) computes their signatures. The build needs neither.
//
// The members of lt_zmq are named after the library's functions, so its manual applies.
#ifndef LT_REPL_KERNEL_LIBRARIES_H
#define LT_REPL_KERNEL_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

// zmq.h's types and constants, which are part of its stable ABI.
typedef struct lt_zmq_message {
  _Alignas(void *) unsigned char opaque[64];
} lt_zmq_message;

typedef struct lt_zmq_item {
  void *socket;
  int fd;
  short events, revents;
} lt_zmq_item;

enum {
  LT_ZMQ_REP = 4,
  LT_ZMQ_ROUTER = 6,
  LT_ZMQ_XPUB = 9,
  LT_ZMQ_DONTWAIT = 1,
  LT_ZMQ_SNDMORE = 2,
  LT_ZMQ_POLLIN = 1,
  LT_ZMQ_LINGER = 17,
  LT_ZMQ_SNDHWM = 23,
  LT_ZMQ_RCVHWM = 24,
  LT_ZMQ_XPUB_VERBOSE = 40,
  LT_ZMQ_ROUTER_HANDOVER = 56
};

#define LT_ZMQ_FUNCTIONS(FUNCTION)                                                                 \
  FUNCTION(void *, zmq_ctx_new, (void))                                                            \
  FUNCTION(int, zmq_ctx_term, (void *context))                                                     \
  FUNCTION(void *, zmq_socket, (void *context, int type))                                          \
  FUNCTION(int, zmq_close, (void *socket))                                                         \
  FUNCTION(int, zmq_setsockopt, (void *socket, int option, const void *value, size_t size))        \
  FUNCTION(int, zmq_bind, (void *socket, const char *endpoint))                                    \
  FUNCTION(int, zmq_send, (void *socket, const void *data, size_t size, int flags))                \
  FUNCTION(int, zmq_poll, (lt_zmq_item *, int count, long milliseconds))                           \
  FUNCTION(int, zmq_msg_init, (lt_zmq_message *))                                                  \
  FUNCTION(int, zmq_msg_recv, (lt_zmq_message *, void *socket, int flags))                         \
  FUNCTION(void *, zmq_msg_data, (lt_zmq_message *))                                               \
  FUNCTION(size_t, zmq_msg_size, (const lt_zmq_message *))                                         \
  FUNCTION(int, zmq_msg_more, (const lt_zmq_message *))                                            \
  FUNCTION(int, zmq_msg_close, (lt_zmq_message *))                                                 \
  FUNCTION(int, zmq_errno, (void))                                                                 \
  FUNCTION(const char *, zmq_strerror, (int))

struct lt_zmq {
#define LT_ZMQ_MEMBER(type, name, parameters) type(*name) parameters;
  LT_ZMQ_FUNCTIONS(LT_ZMQ_MEMBER)
#undef LT_ZMQ_MEMBER
};

extern struct lt_zmq lt_zmq;

// Loads ZeroMQ. Returns NULL, or the reason why it cannot be used.
const char *lt_zmq_load(void);

enum { LT_HMAC_SIZE = 32 };

// Loads the library of signatures. Returns NULL, or the reason why it cannot be used.
const char *lt_hmac_load(void);

// Writes the HMAC-SHA256 (RFC 2104) of `data` to `out`. Returns false on failure.
bool lt_hmac(const char *key, size_t key_size, const char *data, size_t size,
             unsigned char out[LT_HMAC_SIZE]);

#endif
