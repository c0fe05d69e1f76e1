/* fftw.c: FFTW 3, loaded at its first use: libfftw3f for float, libfftw3 for double.
 *
 * A plan transforms one line, from aligned memory to other aligned memory; other lines are copied.
 * So a line has the same result wherever it is, for any number of threads. Plans are estimated, not
 * measured, because measured ones differ from run to run. */
#include "fftw.h"
#include "dynamic_library.h"
#include "kernel_support.h"

#include <pthread.h>

enum { FORWARD = -1, BACKWARD = 1, ESTIMATE = 1 << 6, DESTROY_INPUT = 1 << 0 };
enum { ALIGNMENT = 64 }; /* bytes; at least the library's */
enum { LANES = 8 };      /* lines that are gathered at once */

/* Functions: name without "fftw_" or "fftwf_", result, parameters. Numbers are passed as void *. */
#define FUNCTIONS(F)                                                                               \
  F(plan_dft_1d, void *, (int n, void *in, void *out, int sign, unsigned flags))                   \
  F(plan_dft_r2c_1d, void *, (int n, void *in, void *out, unsigned flags))                         \
  F(plan_dft_c2r_1d, void *, (int n, void *in, void *out, unsigned flags))                         \
  F(execute_dft, void, (const void *plan, void *in, void *out))                                    \
  F(execute_dft_r2c, void, (const void *plan, void *in, void *out))                                \
  F(execute_dft_c2r, void, (const void *plan, void *in, void *out))                                \
  F(destroy_plan, void, (void *plan))                                                              \
  F(alignment_of, int, (void *numbers))

#define FIELD(name, result, parameters) result(*name) parameters;
typedef struct Library {
  FUNCTIONS(FIELD)
  bool found;
} Library;
#undef FIELD

static Library libraries[2]; /* for float, for double */
static bool everywhere;      /* used for all sizes */
static char title[64];       /* "FFTW 3.3.10" */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- loading --------------------------------------------------------------------------------- */

static bool read_functions(void *handle, bool wide) {
  Library *library = &libraries[wide];
  bool ok = true;
#define FIND(name, result, parameters)                                                             \
  ok = ok && lt_library_find(handle, wide ? "fftw_" #name : "fftwf_" #name, &library->name);
  FUNCTIONS(FIND)
#undef FIND
  const char *version; /* "fftw-3.3.10-sse2-avx" */
  if (ok && lt_library_find(handle, wide ? "fftw_version" : "fftwf_version", &version) &&
      strncmp(version, "fftw-", 5) == 0)
    snprintf(title, sizeof title, "FFTW %.*s", (int)strcspn(version + 5, "-"), version + 5);
  return library->found = ok;
}

static bool read_float(void *handle) { return read_functions(handle, false); }
static bool read_double(void *handle) { return read_functions(handle, true); }

static void load(void) {
  static const char *const of_float[] = {"libfftw3f.so.3", NULL};
  static const char *const of_double[] = {"libfftw3.so.3", NULL};
  const char *use = getenv("LUTRA_FFTW");
  everywhere = use && strcmp(use, "1") == 0;
  lt_library_load("LUTRA_FFTW", of_float, read_float);
  lt_library_load("LUTRA_FFTW", of_double, read_double);
}

const char *lt_fftw_name(void) {
  pthread_once(&once, load);
  return title[0] ? title : NULL;
}

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct Plan {
  lt_FftKind kind;
  bool wide, inverse;
  int64_t n;
  void *plan; /* the library's */
  int users;
} Plan;

enum { CACHED = 64 };              /* plans */
enum { CACHED_NUMBERS = 1 << 22 }; /* the sum of their sizes */
/* The lock is held by calls of the library's planner, too, which is not thread safe. */
static struct {
  pthread_mutex_t lock;
  int count;
  int64_t numbers;
  Plan *plan[CACHED]; /* the one used last comes first */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the number of bytes of a line's input and result. */
static size_t in_bytes(const lt_FftLines *l) {
  size_t real = l->wide ? sizeof(double) : sizeof(float);
  return (size_t)l->from_n * (l->kind == LT_FFT_R2C ? 1 : 2) * real;
}
static size_t out_bytes(const lt_FftLines *l) {
  size_t real = l->wide ? sizeof(double) : sizeof(float);
  return (size_t)lt_fft_results(l) * (l->kind == LT_FFT_C2R ? 1 : 2) * real;
}

static size_t rounded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Returns true when there is memory for what the library allocates: it ends the process when it
 * gets none. */
static bool has_room(const lt_FftLines *l) {
  void *room = malloc(8 * (in_bytes(l) + out_bytes(l)) + ((size_t)4 << 20));
  free(room);
  return room != NULL;
}

/* Makes the library's plan; NULL when it fails. */
static void *make_plan(const lt_FftLines *l) {
  const Library *library = &libraries[l->wide];
  int n = (int)l->n;
  char *in = aligned_alloc(ALIGNMENT, rounded(in_bytes(l)) + rounded(out_bytes(l)));
  if (!in || !has_room(l)) return free(in), NULL;
  void *out = in + rounded(in_bytes(l)), *plan;
  if (l->kind == LT_FFT_C2C)
    plan = library->plan_dft_1d(n, in, out, l->inverse ? BACKWARD : FORWARD, ESTIMATE);
  else if (l->kind == LT_FFT_R2C)
    plan = library->plan_dft_r2c_1d(n, in, out, ESTIMATE);
  else
    plan = library->plan_dft_c2r_1d(n, in, out, ESTIMATE | DESTROY_INPUT);
  free(in);
  return plan;
}

static bool matches(const Plan *p, const lt_FftLines *l) {
  return p->kind == l->kind && p->wide == l->wide && p->inverse == l->inverse && p->n == l->n;
}

/* Removes the plan without users that was not used for the longest time. Returns false when all
 * have users. */
static bool drop_plan(void) {
  int i = cache.count - 1;
  while (i >= 0 && cache.plan[i]->users) i--;
  if (i < 0) return false;
  Plan *p = cache.plan[i];
  for (cache.count--; i < cache.count; i++) cache.plan[i] = cache.plan[i + 1];
  cache.numbers -= p->n;
  libraries[p->wide].destroy_plan(p->plan);
  free(p);
  return true;
}

/* Makes a plan at the end of the cache. Returns its index there, or -1. */
static int add_plan(const lt_FftLines *l) {
  while (cache.count == CACHED || (cache.count && cache.numbers + l->n > CACHED_NUMBERS))
    if (!drop_plan()) return -1;
  Plan *p = malloc(sizeof *p);
  if (!p) return -1;
  *p = (Plan){l->kind, l->wide, l->inverse, l->n, make_plan(l), 0};
  if (!p->plan) return free(p), -1;
  cache.plan[cache.count] = p;
  cache.numbers += l->n;
  return cache.count++;
}

/* Returns the plan of a line, or NULL. The caller releases it. */
static Plan *acquire(const lt_FftLines *l) {
  pthread_mutex_lock(&cache.lock);
  int i = 0;
  while (i < cache.count && !matches(cache.plan[i], l)) i++;
  if (i == cache.count) i = add_plan(l);
  Plan *plan = i >= 0 ? cache.plan[i] : NULL;
  for (; i > 0; i--) cache.plan[i] = cache.plan[i - 1];
  if (plan) {
    cache.plan[0] = plan;
    plan->users++;
  }
  pthread_mutex_unlock(&cache.lock);
  return plan;
}

static void release(Plan *plan) {
  pthread_mutex_lock(&cache.lock);
  plan->users--;
  pthread_mutex_unlock(&cache.lock);
}

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct Run {
  const lt_FftLines *of;
  const Library *fftw;
  const void *plan;
  size_t in, out;  /* bytes of a number of the input and of the result */
  int64_t lanes;   /* lines of a block */
  int64_t columns; /* blocks of one outer index */
  atomic_bool failed;
} Run;

/* Copies numbers of `size` bytes: to[i * to_step + b * to_lane] = from[i * from_step + b *
 * from_lane] for i < n, b < lanes. Steps are in bytes. */
static void copy_lines(int64_t n, int64_t lanes, size_t size, char *to, size_t to_step,
                       size_t to_lane, const char *from, size_t from_step, size_t from_lane) {
#define COPY(bytes)                                                                                \
  for (int64_t i = 0; i < n; i++)                                                                  \
    for (int64_t b = 0; b < lanes; b++)                                                            \
      memcpy(to + (size_t)i * to_step + (size_t)b * to_lane,                                       \
             from + (size_t)i * from_step + (size_t)b * from_lane, bytes);
  if (size == 4)
    COPY(4)
  else if (size == 8)
    COPY(8)
  else
    COPY(16)
#undef COPY
}

/* Multiplies the numbers of a line's result by the scale, and conjugates the transform of real
 * numbers if it is inverse. */
static void scale_line(const lt_FftLines *l, void *line) {
  int64_t n = lt_fft_results(l) * (l->kind == LT_FFT_C2R ? 1 : 2);
  for (int64_t i = 1; l->kind == LT_FFT_R2C && l->inverse && i < n; i += 2)
    if (l->wide)
      ((double *)line)[i] = -((double *)line)[i];
    else
      ((float *)line)[i] = -((float *)line)[i];
  if (l->scale == 1) return;
  if (l->wide) {
    for (int64_t i = 0; i < n; i++) ((double *)line)[i] *= l->scale;
  } else {
    float scale = (float)l->scale;
    for (int64_t i = 0; i < n; i++) ((float *)line)[i] *= scale;
  }
}

/* Adds the values after n / 2 to a line of real numbers. */
static void complete_line(const lt_FftLines *l, void *line) {
  int64_t results = lt_fft_results(l);
  if (l->wide)
    lt_fft_loops()->reverse_conjugates_f64(l->n - results, (double *)line + 2,
                                           (double *)line + 2 * results);
  else
    lt_fft_loops()->reverse_conjugates_f32(l->n - results, (float *)line + 2,
                                           (float *)line + 2 * results);
}

/* Sets imaginary parts to 0 that a transform to real numbers ignores. */
static void clear_imaginary(const lt_FftLines *l, void *line) {
  int64_t last = l->n % 2 == 0 ? l->n + 1 : 1; /* of number n / 2 */
  if (l->wide)
    ((double *)line)[1] = ((double *)line)[last] = 0;
  else
    ((float *)line)[1] = ((float *)line)[last] = 0;
}

/* Transforms one line between aligned memory; C2R overwrites its input. */
static void run_line(const Run *r, void *in, void *out) {
  switch (r->of->kind) {
  case LT_FFT_C2C:
    r->fftw->execute_dft(r->plan, in, out);
    break;
  case LT_FFT_R2C:
    r->fftw->execute_dft_r2c(r->plan, in, out);
    break;
  default:
    clear_imaginary(r->of, in);
    r->fftw->execute_dft_c2r(r->plan, in, out);
  }
  scale_line(r->of, out);
}

/* Transforms a block of lines through `scratch`, or one dense line without it where its memory is
 * aligned. */
static void run_block(const Run *r, int64_t block, char *scratch) {
  const lt_FftLines *l = r->of;
  int64_t outer = block / r->columns, inner = block % r->columns * r->lanes;
  int64_t lanes = l->columns - inner < r->lanes ? l->columns - inner : r->lanes;
  size_t in_line = rounded(in_bytes(l)), out_line = rounded(out_bytes(l));
  size_t in_step = r->in * (size_t)l->inner, out_step = r->out * (size_t)l->inner;
  char *x = (char *)l->x + r->in * (size_t)(lt_fft_start(l, outer, l->from_n) + inner);
  char *y = (char *)l->y + r->out * (size_t)(lt_fft_start(l, outer, l->to_n) + inner);
  char *in = scratch, *out = scratch + in_line * (size_t)r->lanes;
  bool direct_in = l->inner == 1 && x != y && l->kind != LT_FFT_C2R && !r->fftw->alignment_of(x);
  bool direct_out = l->inner == 1 && !r->fftw->alignment_of(y);
  if (direct_in)
    in = x;
  else if (l->inner == 1)
    memcpy(in, x, in_bytes(l));
  else
    copy_lines(l->from_n, lanes, r->in, in, r->in, in_line, x, in_step, r->in);
  if (direct_out) out = y;
  for (int64_t b = 0; b < lanes; b++)
    run_line(r, in + (size_t)b * in_line, out + (size_t)b * out_line);
  if (l->inner > 1)
    copy_lines(l->to_n, lanes, r->out, y, out_step, r->out, out, r->out, out_line);
  else if (!direct_out)
    memcpy(y, out, out_bytes(l));
  if (l->full) complete_line(l, y);
}

/* Runs blocks first .. last - 1. */
static void run_blocks(Run *r, int64_t first, int64_t last) {
  size_t bytes = rounded(in_bytes(r->of)) + rounded(out_bytes(r->of));
  char *scratch = aligned_alloc(ALIGNMENT, bytes * (size_t)r->lanes);
  if (!scratch) atomic_store(&r->failed, true);
  for (int64_t i = first; scratch && i < last && !lt_stopped(); i++) run_block(r, i, scratch);
  free(scratch);
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Returns true when all prime factors of n have codelets in FFTW. */
static bool is_smooth(int64_t n) {
  for (int64_t p = 2; p <= 13; p++)
    while (n % p == 0) n /= p;
  return n == 1;
}

/* Returns true where FFTW is faster than fft.c, by bench/fft.py with 2 threads and AVX-512: its
 * quotients are 0.4 to 1.1 for sizes with transforms of single lines, 1.2 to 7 from 4096 numbers
 * on, 1.1 to 3 for smaller smooth sizes of complex numbers, 0.9 to 2.3 for those of real numbers,
 * and on both sides of 1 otherwise. The number of lines and of threads must not matter, since
 * results would depend on them in their last bits. */
static bool is_faster(const lt_FftLines *l) {
  bool halved = l->kind != LT_FFT_C2C && l->n % 2 == 0;
  if (lt_fft_is_line_size(halved ? l->n / 2 : l->n, l->wide)) return false;
  if (l->n >= 4096) return l->n <= 1 << 20; /* larger ones were not measured */
  if (l->kind == LT_FFT_C2R || !is_smooth(l->n)) return false;
  return l->n >= (l->kind == LT_FFT_C2C ? 64 : 128);
}

bool lt_fftw_run(const lt_FftLines *l, bool *done) {
  *done = false;
  pthread_once(&once, load);
  const Library *library = &libraries[l->wide];
  if (!library->found || l->n > INT32_MAX || (!everywhere && !is_faster(l))) return true;
  Plan *plan = acquire(l);
  if (!plan) return true;
  size_t real = l->wide ? sizeof(double) : sizeof(float);
  int64_t lanes = l->columns < LANES ? l->columns : LANES;
  Run r = {.of = l,
           .fftw = library,
           .plan = plan->plan,
           .in = real * (l->kind == LT_FFT_R2C ? 1 : 2),
           .out = real * (l->kind == LT_FFT_C2R ? 1 : 2),
           .lanes = lanes,
           .columns = (l->columns + lanes - 1) / lanes};
  atomic_init(&r.failed, false);
  int64_t groups = l->outer * l->rows, blocks = groups * r.columns;
  LT_IN_TEAM(lt_team(8 * groups * l->columns * l->n, blocks), blocks, run_blocks(&r, first, last));
  release(plan);
  *done = true;
  return !atomic_load(&r.failed) || lt_fail_memory();
}
