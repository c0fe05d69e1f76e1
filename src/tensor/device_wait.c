/* device_wait.c: blocks the host until a device is done, in a way that Ctrl-C can interrupt.
 *
 * A vendor's own blocking call cannot be interrupted. So the device is polled: at first without
 * pauses, as vendors' calls do, then with pauses that grow with the elapsed time. A wait takes at
 * most about 3 % longer than the work, plus 1 ms.
 *
 * Invariant: nothing here changes a device or a tensor. After an interrupted wait the device
 * continues, except that custom kernels, which may never end, are stopped where the device supports
 * it (user_stop). */
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

/* Pauses between two polls: yields at first, then sleeps for 1/32 of the time waited so far. */
static void rest(int64_t waited) {
  if (waited < BUSY) {
    sched_yield();
    return;
  }
  int64_t pause = waited / 32;
  pause = pause < SHORTEST ? SHORTEST : pause > LONGEST ? LONGEST : pause;
  nanosleep(&(struct timespec){.tv_nsec = pause}, NULL); /* a signal ends it */
}

/* Polls is_done until it is true. Fails on Ctrl-C. */
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

/* A device, as the argument of device_is_done. */
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
