/* device_wait.c: waiting for a device in such a way that Ctrl-C ends the wait.
 *
 * A vendor's own wait cannot be broken off. So the device is asked whether it is done: without a
 * pause at first, as vendors' waits do, then with pauses that grow with the time that has gone by.
 * A wait so takes at most some 3 % longer, and 1 ms.
 *
 * Invariant: nothing here changes a device or a tensor. After a wait that was given up all goes on
 * as if nobody had waited; but users' own kernels, which may have no end, are stopped where the
 * device can do that (kernel_stop).
 */
#define _GNU_SOURCE
#include "core.h"

#include <sched.h>
#include <time.h>

enum { BUSY = 1000000, SHORTEST = 20000, LONGEST = 1000000 }; /* nanoseconds */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void rest(int64_t waited) {
  if (waited < BUSY) {
    sched_yield();
    return;
  }
  int64_t pause = waited / 32;
  pause = pause < SHORTEST ? SHORTEST : pause > LONGEST ? LONGEST : pause;
  nanosleep(&(struct timespec){.tv_nsec = pause}, NULL); /* a signal ends it */
}

static bool wait_until(bool (*is_done)(void *), void *what, const lt_Backend *b, int index) {
  if (is_done(what)) return true;
  for (int64_t start = now();; rest(now() - start)) {
    if (!lt_check_interrupt()) {
      if (b->kernels.user_stop) b->kernels.user_stop(index);
      return false;
    }
    if (is_done(what)) return true;
  }
}

static bool stream_is_done(void *stream) {
  return ((lt_Stream *)stream)->backend->streams.query(stream);
}

bool lt_wait_stream(lt_Stream *stream) {
  return !stream || !stream->backend->streams.query ||
         wait_until(stream_is_done, stream, stream->backend, stream->index);
}

static bool event_is_done(void *event) {
  return ((lt_Event *)event)->backend->streams.event_query(event);
}

bool lt_wait_event(lt_Event *event) {
  return !event->backend->streams.event_query ||
         wait_until(event_is_done, event, event->backend, event->index);
}

typedef struct Whole {
  const lt_Backend *backend;
  int index;
} Whole;

static bool device_is_done(void *device) {
  const Whole *d = device;
  return d->backend->streams.device_query(d->backend, d->index);
}

bool lt_wait_device(const lt_Backend *b, int index) {
  Whole device = {b, index};
  return !b->streams.device_query || wait_until(device_is_done, &device, b, index);
}
