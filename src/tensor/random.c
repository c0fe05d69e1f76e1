/* random.c: random generators. A generator is a key (its seed) and a position in the sequence of
 * Philox's counter. A kernel reserves a part of the sequence, and the number of an element depends
 * only on the key and on its index in that part. So the same seed gives the same numbers on every
 * device and with every number of threads. */
#include "random_range.h"
#include "core.h"
#include "worker.h"

#include <math.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

struct lt_Generator {
  pthread_mutex_t lock;
  uint64_t seed;
  uint64_t position; /* blocks of four 32-bit numbers used */
};

uint64_t lt_random_seed(void) {
  uint64_t seed = 0;
  FILE *f = fopen("/dev/urandom", "rb");
  if (f) {
    if (fread(&seed, sizeof seed, 1, f) != 1) seed = 0;
    fclose(f);
  }
  if (!seed) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec + (uint64_t)getpid();
  }
  return seed & 0x1fffffffffffffu; /* an integer that a double represents exactly */
}

lt_Generator *lt_generator_new(uint64_t seed) {
  lt_Generator *g = malloc(sizeof *g);
  if (!g) return lt_error_memory("Generator: out of memory");
  pthread_mutex_init(&g->lock, NULL);
  g->seed = seed;
  g->position = 0;
  return g;
}

void lt_generator_free(lt_Generator *g) {
  if (!g) return;
  pthread_mutex_destroy(&g->lock);
  free(g);
}

/* The default generator, seeded by the system on first use. */
static lt_Generator default_generator = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t default_once = PTHREAD_ONCE_INIT;
static void seed_default(void) { default_generator.seed = lt_random_seed(); }

lt_Generator *lt_generator_default(void) {
  lt_Generator *of_worker = lt_worker_generator();
  if (of_worker) return of_worker;
  pthread_once(&default_once, seed_default);
  return &default_generator;
}

void lt_generator_seed(lt_Generator *g, uint64_t seed) {
  const uint64_t state[2] = {seed, 0};
  lt_generator_set_state(g, state);
}

void lt_generator_get_state(const lt_Generator *g, uint64_t state[2]) {
  lt_Generator *own = (lt_Generator *)g;
  pthread_mutex_lock(&own->lock);
  state[0] = g->seed;
  state[1] = g->position;
  pthread_mutex_unlock(&own->lock);
}

void lt_generator_set_state(lt_Generator *g, const uint64_t state[2]) {
  pthread_mutex_lock(&g->lock);
  g->seed = state[0];
  g->position = state[1];
  pthread_mutex_unlock(&g->lock);
}

void lt_generator_reserve(lt_Generator *g, uint64_t n, uint64_t *seed, uint64_t *position) {
  if (!g) g = lt_generator_default();
  pthread_mutex_lock(&g->lock);
  *seed = g->seed;
  *position = g->position;
  g->position += (n + 3) / 4;
  pthread_mutex_unlock(&g->lock);
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

double lt_random_top(double from, double to, lt_Dtype d) {
  char element[16] = {0};
  lt_Scalar s = lt_scalar_float(to);
  if (!(to > from) || !lt_scalar_store(s, d, element)) return to;
  double v = lt_scalar_to_double(lt_scalar_load(d, element));
  if (d == LT_float64) return nextafter(to, -INFINITY);
  if (d == LT_float32) return v < to ? v : nextafterf((float)v, -INFINITY);
  if (v < to) return v;
  uint16_t bits;
  memcpy(&bits, element, sizeof bits);
  bits = v > 0 ? (uint16_t)(bits - 1) : v < 0 ? (uint16_t)(bits + 1) : (uint16_t)0x8001;
  memcpy(element, &bits, sizeof bits);
  return lt_scalar_to_double(lt_scalar_load(d, element));
}

uint32_t lt_random_bits(lt_Dtype d) {
  return d == LT_float16 ? 0xffe00000u : d == LT_bfloat16 ? 0xff000000u : 0xffffff00u;
}

int64_t lt_random_whole(lt_Dtype d) {
  switch (d) {
  case LT_bool:
    return 1;
  case LT_uint8:
    return UINT8_MAX;
  case LT_int8:
    return INT8_MAX;
  case LT_int16:
    return INT16_MAX;
  case LT_int32:
    return INT32_MAX;
  case LT_float16:
    return 1 << 11;
  case LT_bfloat16:
    return 1 << 8;
  case LT_float32:
    return 1 << 24;
  case LT_float64:
    return (int64_t)1 << 53;
  default:
    return INT64_MAX;
  }
}
