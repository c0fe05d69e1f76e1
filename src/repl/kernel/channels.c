// The channels and their thread.
//
// Invariants: `shared` is accessed with its mutex only, captured output and what it belongs to with
// `output_mutex`, sockets by the thread. What was written to the pipes before a message is sent
// precedes it in `outgoing`: who sends a message collects that output first, with the mutex held
// until the message is in the queue.
#define _GNU_SOURCE // timegm
#include "channels.h"

#include "libraries.h"
#include "captured.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// What a packet in `outgoing` asks the thread to do, beside channels to send on.
enum { DRAIN = LT_CHANNELS, CLOSE };

struct queue {
  struct lt_packet *first, **last;
};

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed; // of shell, control, reply, drained, ended
  struct queue shell, control, outgoing;
  char *reply;  // what the user entered, or NULL
  bool replied; // there is an answer, perhaps an invalid one
  bool drained; // the thread has received all that had arrived
  bool ended;   // a front end asked for the end
  unsigned long sequence;
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static pthread_mutex_t output_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_open;
static struct {
  double at, date; // of the start: seconds of the monotonic clock, and since 1970
} started;
static void *context, *sockets[LT_CHANNELS];
static int wake[2]; // a byte for the thread: there are packets in `outgoing`
static pthread_t thread, main_thread;
static struct lt_text key, info, session;
static pid_t parent_process;        // the one that started the kernel; 0: not watched
static struct lt_packet *current;   // of the main thread: the request that is executed
static struct lt_packet *executing; // identities and header of the request that output belongs to
static bool silent;
static bool asks; // of the main thread: the sender of `current` answers requests for input

// Returns the time of the monotonic clock.
static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// ---- queues

static void put(struct queue *q, struct lt_packet *p) {
  p->next = NULL;
  if (!q->first) q->last = &q->first;
  *q->last = p;
  q->last = &p->next;
}

static struct lt_packet *take(struct queue *q) {
  struct lt_packet *p = q->first;
  if (p) q->first = p->next;
  if (p) p->next = NULL;
  return p;
}

// Queues a packet for the thread. Takes it; NULL, when there was no memory, does nothing.
static void enqueue(struct lt_packet *p) {
  if (!p) return;
  pthread_mutex_lock(&shared.mutex);
  put(&shared.outgoing, p);
  pthread_mutex_unlock(&shared.mutex);
}

// Makes the thread do what the packet says. Takes it; NULL does nothing.
static void post(struct lt_packet *p) {
  if (!p) return;
  enqueue(p);
  while (write(wake[1], "", 1) < 0 && errno == EINTR) continue;
}

// Sets a flag of `shared` to true.
static void set_flag(bool *flag) {
  pthread_mutex_lock(&shared.mutex);
  *flag = true;
  pthread_cond_broadcast(&shared.changed);
  pthread_mutex_unlock(&shared.mutex);
}

// ---- building messages

static struct lt_key signing_key(void) { return (struct lt_key){key.data, key.size}; }

// Writes a header with a new identifier.
static void add_header(struct lt_text *t, const char *type) {
  static _Atomic unsigned long number;
  struct timespec at;
  struct tm utc;
  char text[256];
  clock_gettime(CLOCK_REALTIME, &at);
  gmtime_r(&at.tv_sec, &utc);
  int n = snprintf(text, sizeof text,
                   "{\"msg_id\":\"%.*s-%lu\",\"session\":\"%.*s\",\"username\":\"kernel\","
                   "\"date\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ\",\"version\":\"5.3\","
                   "\"msg_type\":\"",
                   (int)session.size, session.data, ++number, (int)session.size, session.data,
                   utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                   utc.tm_sec, at.tv_nsec / 1000);
  lt_text_add(t, text, (size_t)n);
  lt_text_add_string(t, type);
  lt_text_add_string(t, "\"}");
}

// Returns the packet of a message, NULL when out of memory. `request` may be NULL.
static struct lt_packet *build(enum lt_channel channel, const struct lt_packet *request,
                               const char *type, struct lt_part content, struct lt_part metadata) {
  struct lt_packet *p = lt_packet_new(channel);
  struct lt_text header = {0};
  struct lt_part parent = {0};
  if (request) parent = *lt_packet_frame(request, LT_HEADER);
  add_header(&header, type);
  bool ok = p && !header.failed;
  if (channel == LT_IOPUB) // the topic
    ok = ok && lt_packet_add(p, type, strlen(type));
  else
    for (size_t i = 0; ok && i < request->ids; i++)
      ok = lt_packet_add(p, request->frames[i].data, request->frames[i].size);
  ok = ok && lt_packet_build(p, signing_key(), (struct lt_part){header.data, header.size}, parent,
                             metadata, content);
  lt_text_free(&header);
  if (ok) return p;
  lt_packet_free(p);
  return NULL;
}

// Queues the output that was written so far; with `all`, also an unfinished character at its end.
// `output_mutex` must be locked.
static void collect_output(bool all) {
  for (int i = 0; i < LT_OUTPUTS; i++) {
    bool more;
    do {
      more = lt_captured_read(i);
      struct lt_text content = {0};
      if (lt_captured_take(i, all, &content) && !silent && !content.failed)
        enqueue(build(LT_IOPUB, executing, "stream", (struct lt_part){content.data, content.size},
                      (struct lt_part){0}));
      lt_text_free(&content);
    } while (more);
  }
}

static struct lt_part part_of(const char *s) { return (struct lt_part){(char *)s, strlen(s)}; }

// ---- the thread: sending

// Sends all frames and frees the packet. A front end that has gone is not an error.
static void transmit(struct lt_packet *p) {
  if (!p) return;
  for (size_t i = 0; i < p->count; i++) {
    int more = i + 1 < p->count ? LT_ZMQ_SNDMORE : 0;
    int sent;
    do sent = lt_zmq.zmq_send(sockets[p->channel], p->frames[i].data, p->frames[i].size, more);
    while (sent < 0 && lt_zmq.zmq_errno() == EINTR);
    if (sent < 0) break;
  }
  lt_packet_free(p);
}

static void publish(const struct lt_packet *request, const char *type, const char *content) {
  transmit(build(LT_IOPUB, request, type, part_of(content), (struct lt_part){0}));
}

// Does what the packets of the main thread say; returns false when the thread must end.
static bool serve_main(void) {
  char bytes[256];
  while (read(wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes) continue;
  while (true) {
    pthread_mutex_lock(&shared.mutex);
    struct lt_packet *p = take(&shared.outgoing);
    pthread_mutex_unlock(&shared.mutex);
    if (!p) return true;
    int what = p->channel;
    if (what < LT_CHANNELS) {
      transmit(p);
      continue;
    }
    lt_packet_free(p); // DRAIN: the loop does it
    return what != CLOSE;
  }
}

// ---- the thread: receiving

// Receives a message; NULL when there is none, or no memory for it.
static struct lt_packet *receive(int channel) {
  struct lt_packet *p = lt_packet_new(channel);
  bool ok = p != NULL, more = true;
  for (size_t frames = 0; more; frames++) {
    lt_zmq_message m;
    lt_zmq.zmq_msg_init(&m);
    int flags = frames == 0 ? LT_ZMQ_DONTWAIT : 0;
    int got;
    do got = lt_zmq.zmq_msg_recv(&m, sockets[channel], flags);
    while (got < 0 && lt_zmq.zmq_errno() == EINTR);
    if (got >= 0) ok = ok && lt_packet_add(p, lt_zmq.zmq_msg_data(&m), lt_zmq.zmq_msg_size(&m));
    more = got >= 0 && lt_zmq.zmq_msg_more(&m);
    ok = ok && got >= 0;
    lt_zmq.zmq_msg_close(&m);
  }
  if (ok) return p;
  lt_packet_free(p);
  return NULL;
}

static void press_interrupt(void) {
  // The group of the kernel is its children. Without one of its own it is in the group of the
  // program that started it.
  if (getpgrp() == getpid())
    kill(0, SIGINT);
  else
    pthread_kill(main_thread, SIGINT);
}

// Makes lt_channels_receive return NULL, and stops the code that runs. The process ends within
// seconds, also if the code does not stop.
static void end(void) { set_flag(&shared.ended); }

static void answer_shutdown(const struct lt_packet *p) {
  bool restart = false;
  (void)lt_json_flag(*lt_packet_frame(p, LT_CONTENT), "restart", &restart);
  const char *content =
      restart ? "{\"status\":\"ok\",\"restart\":true}" : "{\"status\":\"ok\",\"restart\":false}";
  transmit(build(LT_CONTROL, p, "shutdown_reply", part_of(content), (struct lt_part){0}));
  publish(p, "shutdown_reply", content);
  end();
}

// Returns whether a message was sent before the kernel started: ZeroMQ delivers what a manager sent
// to a kernel that had died before, to the kernel that was started in its place. Only the first
// seconds count, so that wrong clocks have no effect later.
static bool is_for_predecessor(const struct lt_packet *p) {
  char date[64], zone[8] = "";
  struct tm t = {0};
  double second = 0;
  if (seconds() > started.at + 5 ||
      !lt_json_member(*lt_packet_frame(p, LT_HEADER), "date", date, sizeof date) ||
      sscanf(date, "%d-%d-%dT%d:%d:%lf%7s", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
             &t.tm_min, &second, zone) != 7 ||
      (strcmp(zone, "Z") != 0 && strcmp(zone, "+00:00") != 0))
    return false;
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  return (double)timegm(&t) + second < started.date;
}

// Handles the requests that must not wait for Lua; returns false for another one.
static bool handle_control(const struct lt_packet *p) {
  char type[64];
  if (!lt_json_member(*lt_packet_frame(p, LT_HEADER), "msg_type", type, sizeof type)) return true;
  bool asks_info = strcmp(type, "kernel_info_request") == 0,
       interrupts = strcmp(type, "interrupt_request") == 0,
       ends = strcmp(type, "shutdown_request") == 0;
  if (!asks_info && !interrupts && !ends) return false;
  if (ends && is_for_predecessor(p)) return true;
  publish(p, "status", "{\"execution_state\":\"busy\"}");
  if (asks_info)
    transmit(build(LT_CONTROL, p, "kernel_info_reply", (struct lt_part){info.data, info.size},
                   (struct lt_part){0}));
  if (interrupts) {
    press_interrupt();
    transmit(build(LT_CONTROL, p, "interrupt_reply", part_of("{\"status\":\"ok\"}"),
                   (struct lt_part){0}));
  }
  if (ends) answer_shutdown(p);
  publish(p, "status", "{\"execution_state\":\"idle\"}");
  return true;
}

// Queues a request for the main thread. Takes it.
static void deliver(struct queue *q, struct lt_packet *p) {
  pthread_mutex_lock(&shared.mutex);
  p->sequence = ++shared.sequence;
  put(q, p);
  pthread_cond_broadcast(&shared.changed);
  pthread_mutex_unlock(&shared.mutex);
}

// Passes an answer on to lt_channels_input.
static void deliver_input(const struct lt_packet *p) {
  char *text = lt_json_text(*lt_packet_frame(p, LT_CONTENT), "value");
  pthread_mutex_lock(&shared.mutex);
  free(shared.reply);
  shared.reply = text;
  shared.replied = true;
  pthread_cond_broadcast(&shared.changed);
  pthread_mutex_unlock(&shared.mutex);
}

// Reports a message that is ignored, as output of the cell.
static void complain(const char *what) {
  struct lt_text t = {0};
  lt_text_add_string(&t, "{\"name\":\"stderr\",\"text\":\"lutra: the kernel ignored ");
  lt_text_add_string(&t, what);
  lt_text_add_string(&t, "\\n\"}");
  pthread_mutex_lock(&output_mutex);
  if (!t.failed)
    enqueue(build(LT_IOPUB, executing, "stream", (struct lt_part){t.data, t.size},
                  (struct lt_part){0}));
  pthread_mutex_unlock(&output_mutex);
  lt_text_free(&t);
}

// Receives all messages of a channel that have arrived.
static void serve(int channel) {
  struct lt_packet *p;
  while ((p = receive(channel)) != NULL) {
    const char *wrong = lt_packet_read(p, signing_key());
    if (wrong) complain(wrong);
    if (!wrong && channel == LT_SHELL) {
      deliver(&shared.shell, p);
      continue;
    }
    if (!wrong && channel == LT_CONTROL && !handle_control(p)) {
      deliver(&shared.control, p);
      continue;
    }
    if (!wrong && channel == LT_STDIN) deliver_input(p);
    lt_packet_free(p);
  }
}

static void serve_heartbeat(void) {
  struct lt_packet *p;
  while ((p = receive(LT_HEARTBEAT)) != NULL) transmit(p);
}

// Greets new subscribers: so they know that nothing is lost from now on.
static void serve_subscribers(void) {
  struct lt_packet *p;
  while ((p = receive(LT_IOPUB)) != NULL) {
    const struct lt_part *f = p->frames;
    if (f->size && f->data[0] == 1) {
      struct lt_text content = {0};
      lt_text_add_string(&content, "{\"subscription\":");
      lt_text_add_json(&content, f->data + 1, f->size - 1);
      lt_text_add_string(&content, "}");
      struct lt_packet *welcome =
          build(LT_IOPUB, NULL, "iopub_welcome", (struct lt_part){content.data, content.size},
                (struct lt_part){0});
      if (welcome && f->size > 1) { // the topic that was subscribed to
        struct lt_part *topic = &welcome->frames[0];
        free(topic->data);
        *topic = (struct lt_part){malloc(f->size - 1), f->size - 1};
        if (topic->data) memcpy(topic->data, f->data + 1, topic->size);
        if (!topic->data) topic->size = 0;
      }
      transmit(welcome);
      lt_text_free(&content);
    }
    lt_packet_free(p);
  }
}

// ---- the thread: its loop

enum { WAKE = LT_CHANNELS, OUTPUT, ITEMS = OUTPUT + LT_OUTPUTS };

// Receives what front ends have sent: until nothing has come for some milliseconds.
static void drain(lt_zmq_item *items) {
  double until = seconds() + 0.1;
  while (lt_zmq.zmq_poll(&items[LT_SHELL], 1, 5) > 0 && seconds() < until) serve(LT_SHELL);
  set_flag(&shared.drained);
}

// Presses Ctrl-C until the code stops; then, after 3 seconds, ends the process.
static void hurry(double ended_at, int *presses) {
  double passed = seconds() - ended_at;
  if (passed > 3) _exit(0);
  if (passed < 0.4 * *presses) return;
  (*presses)++;
  press_interrupt();
}

// Watches the process that started the kernel, which ends with it.
static void watch_parent(void) {
  if (parent_process && getppid() != parent_process) end();
}

static bool is_draining(void) {
  pthread_mutex_lock(&shared.mutex);
  bool draining = !shared.drained;
  pthread_mutex_unlock(&shared.mutex);
  return draining;
}

static void serve_ready(const lt_zmq_item *items) {
  if (items[LT_HEARTBEAT].revents) serve_heartbeat();
  if (items[LT_IOPUB].revents) serve_subscribers();
  if (items[LT_CONTROL].revents) serve(LT_CONTROL);
  if (items[LT_STDIN].revents) serve(LT_STDIN);
  if (items[LT_SHELL].revents) serve(LT_SHELL);
  pthread_mutex_lock(&output_mutex);
  bool full = false;
  for (int i = 0; i < LT_OUTPUTS; i++)
    if (items[OUTPUT + i].revents) full = lt_captured_read(i) || full;
  if (full || lt_captured_due() == 0) collect_output(false);
  pthread_mutex_unlock(&output_mutex);
}

static void *serve_all(void *unused) {
  (void)unused;
  lt_zmq_item items[ITEMS];
  for (int i = 0; i < LT_CHANNELS; i++)
    items[i] = (lt_zmq_item){.socket = sockets[i], .events = LT_ZMQ_POLLIN};
  items[WAKE] = (lt_zmq_item){.fd = wake[0], .events = LT_ZMQ_POLLIN};
  for (int i = 0; i < LT_OUTPUTS; i++)
    items[OUTPUT + i] = (lt_zmq_item){.fd = lt_captured_descriptor(i), .events = LT_ZMQ_POLLIN};
  double ended_at = 0;
  int presses = 0;
  while (true) {
    pthread_mutex_lock(&output_mutex);
    long wait = lt_captured_due();
    pthread_mutex_unlock(&output_mutex);
    long most = ended_at != 0 ? 50 : parent_process ? 1000 : -1;
    if (most >= 0 && (wait < 0 || wait > most)) wait = most;
    if (lt_zmq.zmq_poll(items, ITEMS, wait) < 0 && lt_zmq.zmq_errno() != EINTR) return NULL;
    serve_ready(items);
    if (!serve_main()) return NULL;
    if (is_draining()) drain(items);
    watch_parent();
    if (ended_at == 0 && lt_channels_ended()) ended_at = seconds();
    if (ended_at != 0) hurry(ended_at, &presses);
  }
}

// ---- the main thread

static const char *failed(const char *what, const char *why) {
  static char text[512];
  (void)snprintf(text, sizeof text, "cannot %.200s: %.200s", what, why);
  return text;
}

static const char *zmq_failed(const char *what) {
  return failed(what, lt_zmq.zmq_strerror(lt_zmq.zmq_errno()));
}

static void *open_socket(int type) {
  static const int unlimited = 0, linger = 1000, yes = 1;
  void *s = lt_zmq.zmq_socket(context, type);
  if (!s) return NULL;
  lt_zmq.zmq_setsockopt(s, LT_ZMQ_LINGER, &linger, sizeof linger);
  lt_zmq.zmq_setsockopt(s, LT_ZMQ_SNDHWM, &unlimited, sizeof unlimited);
  lt_zmq.zmq_setsockopt(s, LT_ZMQ_RCVHWM, &unlimited, sizeof unlimited);
  if (type == LT_ZMQ_ROUTER) lt_zmq.zmq_setsockopt(s, LT_ZMQ_ROUTER_HANDOVER, &yes, sizeof yes);
  if (type == LT_ZMQ_XPUB) lt_zmq.zmq_setsockopt(s, LT_ZMQ_XPUB_VERBOSE, &yes, sizeof yes);
  return s;
}

static const char *bind_sockets(const struct lt_connection *c) {
  static const int types[LT_CHANNELS] = {[LT_SHELL] = LT_ZMQ_ROUTER,
                                         [LT_CONTROL] = LT_ZMQ_ROUTER,
                                         [LT_STDIN] = LT_ZMQ_ROUTER,
                                         [LT_IOPUB] = LT_ZMQ_XPUB,
                                         [LT_HEARTBEAT] = LT_ZMQ_REP};
  context = lt_zmq.zmq_ctx_new();
  if (!context) return zmq_failed("start ZeroMQ");
  for (int i = 0; i < LT_CHANNELS; i++) {
    char endpoint[512];
    int n = snprintf(endpoint, sizeof endpoint, "%s://%s%c%d", c->transport, c->ip,
                     strcmp(c->transport, "ipc") == 0 ? '-' : ':', c->ports[i]);
    if (n >= (int)sizeof endpoint) return failed("listen", "the address is too long");
    sockets[i] = open_socket(types[i]);
    if (!sockets[i]) return zmq_failed("open a socket");
    if (lt_zmq.zmq_bind(sockets[i], endpoint) != 0) {
      char what[256];
      (void)snprintf(what, sizeof what, "listen at %.200s", endpoint);
      return zmq_failed(what);
    }
  }
  return NULL;
}

// Writes 128 random bits in hexadecimal digits.
static bool make_session(void) {
  unsigned char bits[16];
  char digits[33];
  FILE *f = fopen("/dev/urandom", "rb");
  bool ok = f && fread(bits, sizeof bits, 1, f) == 1;
  if (f) fclose(f);
  for (size_t i = 0; ok && i < sizeof bits; i++) snprintf(digits + 2 * i, 3, "%02x", bits[i]);
  if (ok) lt_text_add(&session, digits, 32);
  return ok && !session.failed;
}

static pid_t process_of(const char *variable) {
  const char *text = getenv(variable);
  pid_t process = text ? (pid_t)atol(text) : 0;
  return process > 1 && process == getppid() ? process : 0;
}

// Starts the thread with all signals blocked: they are the main thread's.
static bool start(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool ok = pthread_create(&thread, NULL, serve_all, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return ok;
}

// Makes standard input empty, for C code and child processes: the protocol has another way.
static void close_stdin(void) {
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null > 0) {
    dup2(null, 0);
    close(null);
  }
}

const char *lt_channels_open(const struct lt_connection *c, const char *kernel_info) {
  const char *wrong = lt_zmq_load();
  if (wrong) return failed("load libzmq", wrong);
  wrong = c->key.size ? lt_hmac_load() : NULL;
  if (wrong) return failed("load libcrypto", wrong);
  lt_text_add(&key, c->key.data, c->key.size);
  lt_text_add_string(&info, kernel_info);
  if (key.failed || info.failed || !make_session()) return failed("start", "not enough memory");
  main_thread = pthread_self();
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  started.date = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
  started.at = seconds();
  parent_process = process_of("JPY_PARENT_PID");
  shared.drained = true;
  wrong = bind_sockets(c);
  if (wrong) return wrong;
  if (pipe(wake) != 0) return failed("open a pipe", strerror(errno));
  for (int i = 0; i < 2; i++) fcntl(wake[i], F_SETFD, FD_CLOEXEC);
  fcntl(wake[0], F_SETFL, O_NONBLOCK);
  close_stdin();
  if (!lt_captured_open()) return failed("capture the output", strerror(errno));
  if (!start()) return failed("start a thread", strerror(errno));
  is_open = true;
  atexit(lt_channels_close); // os.exit in a cell: what it has printed is sent
  return NULL;
}

// Waits for a change of `shared`, whose mutex is locked, until a time of the monotonic clock;
// negative: without a limit. Returns false when the time has passed.
static bool wait_until(double time) {
  if (time < 0) return pthread_cond_wait(&shared.changed, &shared.mutex) == 0;
  double left = time - seconds();
  if (left <= 0) return false;
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  double sum = (double)at.tv_nsec / 1e9 + left;
  at.tv_sec += (time_t)sum;
  at.tv_nsec = (long)((sum - (double)(time_t)sum) * 1e9);
  return pthread_cond_timedwait(&shared.changed, &shared.mutex, &at) == 0;
}

struct lt_packet *lt_channels_receive(double limit, bool control) {
  double until = limit < 0 ? -1 : seconds() + limit;
  pthread_mutex_lock(&shared.mutex);
  struct lt_packet *p = NULL;
  do {
    p = take(&shared.control);
    if (!p && !control && !shared.ended) p = take(&shared.shell);
  } while (!p && !shared.ended && wait_until(until));
  pthread_mutex_unlock(&shared.mutex);
  return p;
}

bool lt_channels_ended(void) {
  pthread_mutex_lock(&shared.mutex);
  bool ended = shared.ended;
  pthread_mutex_unlock(&shared.mutex);
  return ended;
}

void lt_channels_end(void) { end(); }

// Posts a packet behind what was written to stdout and stderr so far.
static void post_after_output(struct lt_packet *p) {
  fflush(stdout);
  pthread_mutex_lock(&output_mutex);
  collect_output(p && p->channel == CLOSE);
  post(p);
  pthread_mutex_unlock(&output_mutex);
}

void lt_channels_send(enum lt_channel channel, const struct lt_packet *request, const char *type,
                      struct lt_part content, struct lt_part metadata,
                      const struct lt_part *buffers, size_t count) {
  struct lt_packet *p = build(channel, request, type, content, metadata);
  bool ok = p != NULL;
  for (size_t i = 0; ok && i < count; i++) ok = lt_packet_add(p, buffers[i].data, buffers[i].size);
  if (ok) post_after_output(p);
  if (!ok) lt_packet_free(p);
}

// Copies the identities and the header of a request, which is what answers need.
static struct lt_packet *copy_origin(const struct lt_packet *request) {
  struct lt_packet *p = lt_packet_new(0);
  bool ok = p != NULL;
  size_t count = request->ids + LT_HEADER + 1;
  for (size_t i = 0; ok && i < count; i++)
    ok = lt_packet_add(p, request->frames[i].data, request->frames[i].size);
  if (ok) {
    p->ids = request->ids;
    return p;
  }
  lt_packet_free(p);
  return NULL;
}

void lt_channels_execute(const struct lt_packet *request, bool is_silent, bool allow_input) {
  fflush(stdout);
  lt_packet_free(current);
  current = copy_origin(request);
  asks = allow_input;
  struct lt_packet *origin = copy_origin(request);
  pthread_mutex_lock(&output_mutex);
  collect_output(true);
  lt_packet_free(executing);
  executing = origin;
  silent = is_silent;
  pthread_mutex_unlock(&output_mutex);
}

enum lt_input lt_channels_input(const char *prompt, bool password, bool (*interrupted)(void),
                                char **line) {
  *line = NULL;
  if (!current || !asks) return LT_INPUT_END;
  struct lt_text content = {0};
  lt_text_add_string(&content, "{\"prompt\":");
  lt_text_add_json(&content, prompt, strlen(prompt));
  lt_text_add_string(&content, password ? ",\"password\":true}" : ",\"password\":false}");
  pthread_mutex_lock(&shared.mutex);
  free(shared.reply);
  shared.reply = NULL;
  shared.replied = false;
  pthread_mutex_unlock(&shared.mutex);
  post_after_output(build(LT_STDIN, current, "input_request",
                          (struct lt_part){content.data, content.size}, (struct lt_part){0}));
  lt_text_free(&content);
  pthread_mutex_lock(&shared.mutex);
  bool stopped = false;
  while (!shared.replied && !shared.ended && !(stopped = interrupted()))
    (void)wait_until(seconds() + 0.05);
  if (shared.replied) *line = shared.reply;
  if (shared.replied) shared.reply = NULL;
  pthread_mutex_unlock(&shared.mutex);
  return *line ? LT_INPUT_LINE : stopped ? LT_INPUT_INTERRUPT : LT_INPUT_END;
}

unsigned long lt_channels_last(void) {
  struct lt_packet *p = lt_packet_new(DRAIN);
  pthread_mutex_lock(&shared.mutex);
  shared.drained = !p; // without memory, what has arrived so far
  pthread_mutex_unlock(&shared.mutex);
  post(p);
  pthread_mutex_lock(&shared.mutex);
  while (!shared.drained && !shared.ended) (void)wait_until(seconds() + 0.2);
  unsigned long last = shared.sequence;
  pthread_mutex_unlock(&shared.mutex);
  return last;
}

static void free_queue(struct queue *q) {
  struct lt_packet *p;
  while ((p = take(q)) != NULL) lt_packet_free(p);
}

void lt_channels_close(void) {
  if (!is_open) return;
  is_open = false;
  post_after_output(lt_packet_new(CLOSE));
  pthread_join(thread, NULL);
  lt_captured_close();
  for (int i = 0; i < LT_CHANNELS; i++) lt_zmq.zmq_close(sockets[i]);
  lt_zmq.zmq_ctx_term(context);
  close(wake[0]);
  close(wake[1]);
  lt_packet_free(current);
  lt_packet_free(executing);
  free(shared.reply);
  free_queue(&shared.shell);
  free_queue(&shared.control);
  free_queue(&shared.outgoing);
  lt_text_free(&key);
  lt_text_free(&info);
  lt_text_free(&session);
}
