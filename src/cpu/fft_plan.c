/* fft_plan.c: plans of Fourier transforms (fft.h) and their cache.
 *
 * A plan has one of four forms:
 *   PASSES   n has prime factors up to LT_FFT_RADIX only (small n: up to 32): one pass for each
 *            factor. A single line of floats, n a multiple of 256, is a matrix of LT_FFT_COLUMNS
 *            columns: it takes the transforms of the columns, a product with factors, and the
 *            transforms of the rows. Its loops are vectorized, and it uses less of the caches than
 *            several lines
 *   CHIRP    any other n: a convolution with exp(i pi k^2 / n) of a size that has passes
 *            (Bluestein 1970)
 *   SPLIT    n = n1 n2 is large: n2 transforms of size n1, a product with factors, and n1
 *            transforms of size n2, each in parallel and within the caches (Bailey 1990)
 *   REAL     n is even: the plan for n / 2 and the factors that separate even and odd numbers
 *
 * Invariant: a plan does not change after it was created. */
#include "fft.h"
#include "kernel_support.h"
#include "moves.h"

#include <math.h>
#include <pthread.h>

enum { LARGE = 1 << 14 };        /* sizes from here on are split */
enum { LARGEST_LINE = 1 << 18 }; /* except those of single lines up to this */
enum { BLOCK = 1 << 15 }; /* numbers of a block: real and imaginary parts, before and after */
enum { MIN_LANES = 8, MAX_LANES = 16 }; /* lines of a block, where there are so many */
enum { MAX_FACTORS = 64 };              /* of a 64-bit integer */

typedef enum Form { PASSES, CHIRP, SPLIT, REAL } Form;

struct lt_FftPlan {
  Form form;
  bool wide; /* double */
  int64_t n;
  atomic_int references;
  size_t bytes; /* of the plan and its parts */
  int passes, radix[MAX_FACTORS];
  lt_FftPlan *first, *second; /* CHIRP, REAL: the inner plan; SPLIT: those of n1 and n2; PASSES:
                                 that of the columns of a single line */
  void *w[MAX_FACTORS];       /* PASSES: the factors of each pass; CHIRP: chirp and kernel */
  float *line;                /* the factors of single lines, all real parts first; NULL: none */
  int bits;                   /* SPLIT: exp(-2 pi i j / n) is high[j >> bits] low[j & mask] */
  double *high, *low;
  double *turns; /* SPLIT: exp(-2 pi i k b / n) for lines b of a block: see twist in fft.h */
};

/* ---- factors --------------------------------------------------------------------------------- */

/* Sets *re and *im to exp(-2 pi i k / n), 0 <= k < n, to the last bit or two: the angle is reduced
 * to an eighth of the circle before it is rounded. */
static void root_of_one(int64_t k, int64_t n, double *re, double *im) {
  int64_t eight = 8 * k, octant = eight / n, rest = eight - octant * n; /* angle: (8k/n) pi/4 */
  if (octant & 1) rest = n - rest;
  double angle = 0.78539816339744830962 * ((double)rest / (double)n);
  double c = cos(angle), s = sin(angle);
  static const signed char swap[] = {0, 1, 1, 0, 0, 1, 1, 0};
  static const signed char sign_c[] = {1, 1, -1, -1, -1, -1, 1, 1};
  static const signed char sign_s[] = {1, 1, 1, 1, -1, -1, -1, -1};
  *re = sign_c[octant] * (swap[octant] ? s : c);
  *im = -sign_s[octant] * (swap[octant] ? c : s);
}

/* Stores factor i of an array of floats or doubles. */
static void store(void *w, bool wide, int64_t i, double re, double im) {
  if (wide) {
    ((double *)w)[2 * i] = re;
    ((double *)w)[2 * i + 1] = im;
  } else {
    ((float *)w)[2 * i] = (float)re;
    ((float *)w)[2 * i + 1] = (float)im;
  }
}

/* Returns memory for `count` factors, and adds its size to the plan's. */
static void *factors(lt_FftPlan *p, int64_t count, bool wide) {
  size_t bytes = (size_t)count * 2 * (wide ? sizeof(double) : sizeof(float));
  p->bytes += bytes;
  return malloc(bytes);
}

/* Sets radix[] to the factors of n in the order of the passes, and returns their number; 0 if n has
 * a prime factor above LT_FFT_RADIX: for small sizes, which a convolution transforms faster, above
 * SMALL_RADIX. */
static int factorize(int64_t n, int *radix) {
  enum { SMALL = 1024, SMALL_RADIX = 32 };
  int count = 0, most = n < SMALL ? SMALL_RADIX : LT_FFT_RADIX;
  for (; n % 8 == 0 && n != 16; n /= 8) radix[count++] = 8;
  for (; n % 4 == 0; n /= 4) radix[count++] = 4;
  for (int r = 2; r <= most; r++)
    for (; n % r == 0; n /= r) radix[count++] = r;
  return n == 1 ? count : 0;
}

/* Returns the smallest size of at least n of the form 2^a or 3 * 2^a. */
static int64_t smooth_size(int64_t n) {
  int64_t two = 1;
  while (two < n) two *= 2;
  return two >= 4 && two / 4 * 3 >= n ? two / 4 * 3 : two;
}

/* ---- the forms ------------------------------------------------------------------------------- */

/* Returns factors for the loops of single lines, aligned to cache lines: exp(-2 pi i j k / n) for
 * `rows` numbers j and `columns` numbers k from those on. */
static float *line_factors(lt_FftPlan *p, int64_t j, int64_t rows, int64_t k, int64_t columns) {
  int64_t count = rows * columns;
  size_t bytes = (size_t)count * 2 * sizeof(float);
  float *w = lt_fft_memory(bytes);
  double re, im;
  p->bytes += bytes;
  for (int64_t i = 0; w && i < count; i++) {
    root_of_one((j + i / columns) * (k + i % columns), p->n, &re, &im);
    w[i] = (float)re;
    w[count + i] = (float)im;
  }
  return w;
}

/* Adds what single lines need. */
static bool make_line(lt_FftPlan *p) {
  int64_t m = p->n / LT_FFT_COLUMNS;
  p->first = lt_fft_plan(m, false, false);
  if (p->first && p->first->form != PASSES) return true; /* blocks transform its lines, too */
  p->line = line_factors(p, 0, m, 0, LT_FFT_COLUMNS);
  return p->first && p->line;
}

static bool make_passes(lt_FftPlan *p) {
  int64_t m = p->n;
  for (int s = 0; s < p->passes; s++) {
    int r = p->radix[s];
    int64_t whole = m;
    m /= r;
    p->w[s] = factors(p, (r - 1) * m + r, p->wide);
    if (!p->w[s]) return false;
    int64_t at = 0;
    double re, im;
    for (int64_t g = 0; g < m; g++)
      for (int k = 1; k < r; k++) {
        root_of_one(g * k, whole, &re, &im);
        store(p->w[s], p->wide, at++, re, im);
      }
    for (int k = 0; k < r; k++) { /* cos and sin of 2 pi k / r */
      root_of_one(k, r, &re, &im);
      store(p->w[s], p->wide, at++, re, -im);
    }
  }
  return !lt_fft_is_line_size(p->n, p->wide) || make_line(p);
}

/* Computes exp(-i pi k^2 / n). `square` is k^2 modulo 2 n; it becomes that of k + 1. */
static void chirp(int64_t k, int64_t n, int64_t *square, double *re, double *im) {
  root_of_one(*square, 2 * n, re, im);
  *square = (*square + 2 * k + 1) % (2 * n);
}

/* Computes the transform, of size m, of the chirp's conjugate, divided by m. */
static bool make_kernel(lt_FftPlan *p, int64_t m, void *w) {
  lt_FftPlan *inner = lt_fft_plan(m, true, false);
  double *x = inner ? calloc(lt_fft_scratch(inner, 1), sizeof *x) : NULL, *y = NULL;
  if (x) {
    for (int64_t k = 0, square = 0; k < p->n; k++) {
      double re, im;
      chirp(k, p->n, &square, &re, &im);
      x[k] = x[(m - k) % m] = re;
      x[m + k] = x[m + (m - k) % m] = -im;
    }
    y = lt_fft_run_f64(inner, 1, x);
    for (int64_t k = 0; y && k < m; k++)
      store(w, p->wide, k, y[k] / (double)m, y[m + k] / (double)m);
  }
  free(x);
  lt_fft_release(inner);
  return y != NULL;
}

static bool make_chirp(lt_FftPlan *p) {
  int64_t m = smooth_size(2 * p->n - 1);
  p->first = lt_fft_plan(m, p->wide, false);
  p->w[0] = factors(p, p->n, p->wide);
  p->w[1] = factors(p, m, p->wide);
  if (!p->first || !p->w[0] || !p->w[1]) return false;
  for (int64_t k = 0, square = 0; k < p->n; k++) {
    double re, im;
    chirp(k, p->n, &square, &re, &im);
    store(p->w[0], p->wide, k, re, im);
  }
  return make_kernel(p, m, p->w[1]);
}

/* Returns the lines of a block of a split transform's step: at least a cache line of each row, as
 * the rows are far apart. */
static int64_t split_lanes(const lt_FftPlan *p) {
  int64_t lanes = lt_fft_lanes(p), least = 64 / (p->wide ? 8 : 4);
  return lt_fft_is_parallel(p) || lanes >= least ? lanes : least;
}

static bool make_turns(lt_FftPlan *p) {
  int64_t rows = p->first->n, width = split_lanes(p->first);
  p->turns = factors(p, rows * width, true);
  for (int64_t k = 0; p->turns && k < rows; k++)
    for (int64_t b = 0; b < width; b++) {
      double *re = p->turns + 2 * k * width + b;
      root_of_one(k * b % p->n, p->n, re, re + width);
    }
  return p->turns != NULL;
}

static bool make_split(lt_FftPlan *p) {
  int64_t n1 = 1;
  for (int s = 0; s < p->passes; s++) /* the factors are small, so n1 gets close to the root */
    if (n1 * p->radix[s] * n1 <= p->n) n1 *= p->radix[s];
  p->first = lt_fft_plan(n1, p->wide, false);
  p->second = lt_fft_plan(p->n / n1, p->wide, false);
  while ((int64_t)1 << (2 * p->bits) < p->n) p->bits++;
  int64_t low = (int64_t)1 << p->bits, high = (p->n >> p->bits) + 1;
  p->low = factors(p, low, true);
  p->high = factors(p, high, true);
  if (!p->first || !p->second || !p->low || !p->high) return false;
  for (int64_t j = 0; j < low; j++) root_of_one(j % p->n, p->n, &p->low[2 * j], &p->low[2 * j + 1]);
  for (int64_t j = 0; j < high; j++)
    root_of_one((j << p->bits) % p->n, p->n, &p->high[2 * j], &p->high[2 * j + 1]);
  return make_turns(p);
}

static bool make_real(lt_FftPlan *p) {
  int64_t h = p->n / 2;
  p->first = lt_fft_plan(h, p->wide, false);
  p->w[0] = factors(p, h + 1, p->wide);
  if (!p->first || !p->w[0]) return false;
  for (int64_t k = 0; k <= h; k++) {
    double re, im;
    root_of_one(k, p->n, &re, &im);
    store(p->w[0], p->wide, k, re, im);
  }
  if (!lt_fft_has_line(p)) return true;
  p->line = line_factors(p, 1, 1, 1, h / 2);
  return p->line != NULL;
}

static lt_FftPlan *new_plan(int64_t n, bool wide, bool real) {
  lt_FftPlan *p = calloc(1, sizeof *p);
  if (!p) return lt_fail_memory(), NULL;
  p->n = n;
  p->wide = wide;
  p->bytes = sizeof *p;
  atomic_init(&p->references, 1);
  p->passes = factorize(n, p->radix);
  bool smooth = n == 1 || p->passes > 0;
  p->form = real                                          ? REAL
            : !smooth                                     ? CHIRP
            : n >= LARGE && !lt_fft_is_line_size(n, wide) ? SPLIT
                                                          : PASSES;
  static bool (*const make[])(lt_FftPlan *) = {
      [PASSES] = make_passes, [CHIRP] = make_chirp, [SPLIT] = make_split, [REAL] = make_real};
  if (make[p->form](p)) return p;
  lt_fft_release(p);
  return lt_fail_memory(), NULL;
}

/* ---- the cache: the plans used last, as long as they are not too large ----------------------- */

enum { CACHED = 48 };                                /* plans */
static const size_t cached_bytes = (size_t)64 << 20; /* factors of all of them */

static struct {
  pthread_mutex_t lock;
  lt_FftPlan *plan[CACHED]; /* the one used last comes first */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool matches(const lt_FftPlan *p, int64_t n, bool wide, bool real) {
  return p->n == n && p->wide == wide && (p->form == REAL) == real;
}

/* Puts a plan in front of the cache, and returns how many of the others remain in it. */
static int insert(lt_FftPlan *p, int from) {
  for (int i = from; i > 0; i--) cache.plan[i] = cache.plan[i - 1];
  cache.plan[0] = p;
  size_t bytes = 0;
  int kept = 0;
  for (; kept < CACHED && cache.plan[kept]; kept++) {
    bytes += cache.plan[kept]->bytes;
    if (kept > 0 && bytes > cached_bytes) break;
  }
  return kept;
}

lt_FftPlan *lt_fft_plan(int64_t n, bool wide, bool real) {
  lt_FftPlan *p = NULL, *dropped[CACHED + 1];
  int drops = 0;
  pthread_mutex_lock(&cache.lock);
  for (int i = 0; !p && i < CACHED && cache.plan[i]; i++)
    if (matches(cache.plan[i], n, wide, real)) {
      p = cache.plan[i];
      insert(p, i);
      atomic_fetch_add(&p->references, 1);
    }
  pthread_mutex_unlock(&cache.lock);
  if (p || !(p = new_plan(n, wide, real))) return p;
  atomic_fetch_add(&p->references, 1);
  pthread_mutex_lock(&cache.lock);
  if (cache.plan[CACHED - 1]) dropped[drops++] = cache.plan[CACHED - 1];
  for (int i = insert(p, CACHED - 1); i < CACHED; i++)
    if (cache.plan[i]) {
      dropped[drops++] = cache.plan[i];
      cache.plan[i] = NULL;
    }
  pthread_mutex_unlock(&cache.lock);
  for (int i = 0; i < drops; i++) lt_fft_release(dropped[i]);
  return p;
}

void lt_fft_release(lt_FftPlan *p) {
  if (!p || atomic_fetch_sub(&p->references, 1) > 1) return;
  lt_fft_release(p->first);
  lt_fft_release(p->second);
  for (int i = 0; i < MAX_FACTORS; i++) free(p->w[i]);
  free(p->high);
  free(p->low);
  free(p->turns);
  free(p->line);
  free(p);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

bool lt_fft_is_parallel(const lt_FftPlan *p) {
  return p->form == SPLIT || (p->form != PASSES && lt_fft_is_parallel(p->first));
}

int64_t lt_fft_lanes(const lt_FftPlan *p) {
  if (lt_fft_is_parallel(p)) return 1;
  if (p->form != PASSES) return lt_fft_lanes(p->first);
  int64_t lanes = BLOCK / (4 * p->n);
  return lanes < MIN_LANES ? MIN_LANES : lanes > MAX_LANES ? MAX_LANES : lanes;
}

size_t lt_fft_scratch(const lt_FftPlan *p, int64_t lanes) {
  size_t block = 2 * (size_t)p->n * (size_t)lanes;
  if (p->form == CHIRP) return block + lt_fft_scratch(p->first, lanes);
  if (p->form == REAL) return lt_fft_scratch(p->first, lanes);
  return 2 * block;
}

const void *lt_fft_real_factors(const lt_FftPlan *p) { return p->w[0]; }

bool lt_fft_is_line_size(int64_t n, bool wide) {
  return !wide && n % 256 == 0 && n <= LARGEST_LINE && lt_fft_loops()->line.rows;
}

bool lt_fft_has_line(const lt_FftPlan *p) {
  return p->form == PASSES ? p->line != NULL : p->form == REAL && lt_fft_has_line(p->first);
}

const float *lt_fft_line_factors(const lt_FftPlan *p) { return p->line; }

bool lt_fft_splits(const lt_FftPlan *p) { return p->form == SPLIT; }

#define T float
#define F f32
#include "fft_run.h"
#undef T
#undef F

#define T double
#define F f64
#include "fft_run.h"

/* A pass of a single line of n numbers z, or of its pairs x. */
typedef struct Pass {
  int radix;
  int64_t n, m, run;
  const float *x, *z, *w;
  float *y;
} Pass;

enum { UNIT = 16 }; /* columns that a thread computes at least */

/* Returns the pieces of a pass that threads can compute: its groups, or columns of the last one. */
static int64_t pieces_of(const Pass *p) {
  bool has_roots = p->radix > 5 && p->radix != 8; /* behind the factors of all groups */
  return p->m == 1 ? p->run / UNIT : has_roots ? 1 : p->m;
}

static void run_pieces(const Pass *p, int64_t pieces, int64_t first, int64_t last) {
  const lt_FftLoops *loops = lt_fft_loops();
  int64_t far = p->m * p->run, from = p->m == 1 ? UNIT * first : p->run * first;
  int64_t to = p->m == 1 ? from : p->radix * from,
          width = p->m == 1 ? UNIT * (last - first) : p->run;
  int64_t groups = p->m == 1 ? 1 : pieces == 1 ? p->m : last - first;
  const float *w = p->m == 1 ? p->w : p->w + 2 * (p->radix - 1) * first;
  float *yr = p->y + to, *yi = yr + p->n;
  if (p->x)
    loops->line.first_pass(p->radix, groups, far, p->x + 2 * from, yr, yi, w);
  else
    loops->pass_f32(p->radix, groups, far, p->run, width, p->z + from, p->z + p->n + from, yr, yi,
                    w);
}

float *lt_fft_run_line(const lt_FftPlan *p, int team, const float *x, float *scratch) {
  if (p->form == REAL) return lt_fft_run_line(p->first, team, x, scratch);
  const lt_FftPlan *columns = p->first;
  float *other = scratch + 2 * p->n, *z = scratch;
  int64_t m = columns->n, run = LT_FFT_COLUMNS, squares = columns->n / UNIT;
  for (int s = 0; s < columns->passes; s++) {
    m /= columns->radix[s];
    Pass pass = {columns->radix[s],      p->n, m, run, s == 0 ? x : NULL, z,
                 (float *)columns->w[s], other};
    int64_t pieces = pieces_of(&pass);
    LT_IN_TEAM(team < pieces ? team : (int)pieces, pieces, run_pieces(&pass, pieces, first, last));
    run *= columns->radix[s];
    float *done = other;
    other = z;
    z = done;
  }
  LT_IN_TEAM(team < squares ? team : (int)squares, squares,
             lt_fft_loops()->line.rows(columns->n, UNIT * first, UNIT * last, z, p->line, other));
  return other;
}
