/* fft_run.h: runs a plan (fft_plan.c) on blocks of numbers of type T, with the suffix F. */
#define NAME(f) LT_FFT_PASTE(f, F)
#ifndef LT_FFT_PASTE
#define LT_FFT_PASTE_(a, b) a##_##b
#define LT_FFT_PASTE(a, b)  LT_FFT_PASTE_(a, b)
#endif

static T *NAME(run_passes)(const lt_FftPlan *p, int64_t lanes, T *x) {
  int64_t size = p->n * lanes, m = p->n, run = lanes;
  T *y = x + 2 * size;
  for (int s = 0; s < p->passes; s++) {
    int r = p->radix[s];
    m /= r;
    lt_fft_loops()->NAME(pass)(r, m, run, x, x + size, y, y + size, p->w[s]);
    run *= r;
    T *done = y;
    y = x;
    x = done;
  }
  return x;
}

/* X[k] = c[k] sum over j of (x[j] c[j]) conj(c[k - j]), with c[k] = exp(-i pi k^2 / n). */
static T *NAME(run_chirp)(const lt_FftPlan *p, int64_t lanes, T *x) {
  int64_t size = p->n * lanes, m = p->first->n, inner = m * lanes;
  T *y = x + 2 * size, *z;
  const lt_FftLoops *loops = lt_fft_loops();
  loops->NAME(multiply)(p->n, lanes, x, x + size, p->w[0], y, y + inner);
  memset(y + size, 0, sizeof(T) * (size_t)(inner - size));
  memset(y + inner + size, 0, sizeof(T) * (size_t)(inner - size));
  z = NAME(lt_fft_run)(p->first, lanes, y);
  if (!z) return NULL;
  /* A backward transform exchanges real and imaginary parts. */
  if (z == y) {
    loops->NAME(multiply)(m, lanes, z, z + inner, p->w[1], z, z + inner);
    for (int64_t i = 0; i < inner; i++) {
      T re = y[i];
      y[i] = y[inner + i];
      y[inner + i] = re;
    }
  } else {
    loops->NAME(multiply)(m, lanes, z, z + inner, p->w[1], y + inner, y);
  }
  z = NAME(lt_fft_run)(p->first, lanes, y);
  if (z) loops->NAME(multiply)(p->n, lanes, z + inner, z, p->w[0], x, x + size);
  return z ? x : NULL;
}

/* Returns the lines of a block of a split transform's step: at least a cache line of each row, as
 * the rows are far apart. */
static int64_t NAME(split_lanes)(const lt_FftPlan *p) {
  int64_t lanes = lt_fft_lanes(p), least = 64 / (int64_t)sizeof(T);
  return lanes < least ? least : lanes;
}

/* One of the two steps of a split transform: lines first .. last - 1 of `count`. */
typedef struct NAME(Step) {
  const lt_FftPlan *whole, *plan;
  bool second;
  int64_t count; /* lines */
  T *x, *y;
  atomic_bool failed;
} NAME(Step);

/* Step 1: line j2 has the numbers j1 n2 + j2; its result k1, times a factor, goes to k1 n2 + j2, in
 * the place of what was read, which is in the cache.
 * Step 2: line k1 has the numbers k1 n2 + j2; its result k2 goes to k1 + n1 k2. */
static void NAME(run_step)(NAME(Step) * s, int64_t first, int64_t last) {
  const lt_FftLoops *loops = lt_fft_loops();
  int64_t n = s->plan->n, most = NAME(split_lanes)(s->plan), size = s->whole->n;
  int64_t step = s->second ? 1 : s->count, lane = s->second ? n : 1;
  T *block = lt_fft_memory(sizeof(T) * lt_fft_scratch(s->plan, most));
  if (!block) atomic_store(&s->failed, true);
  for (int64_t i = first * most, end = last * most < s->count ? last * most : s->count;
       block && i < end && !lt_stopped(); i += most) {
    int64_t lanes = end - i < most ? end - i : most;
    const T *x = s->x + i * lane;
    loops->NAME(gather)(x, step, lane, n, lanes, block);
    loops->NAME(gather)(x + size, step, lane, n, lanes, block + n * lanes);
    T *z = NAME(run_passes)(s->plan, lanes, block);
    if (!s->second)
      loops->NAME(twist)(n, lanes, i, s->whole->bits, s->whole->high, s->whole->low, z,
                         z + n * lanes);
    loops->NAME(scatter)(z, 1, n, lanes, s->y + i, s->count, 1);
    loops->NAME(scatter)(z + n * lanes, 1, n, lanes, s->y + size + i, s->count, 1);
  }
  free(block);
}

static T *NAME(run_split)(const lt_FftPlan *p, T *x) {
  T *y = x + 2 * p->n;
  for (int second = 0; second < 2; second++) {
    NAME(Step)
    s = {p,      second ? p->second : p->first,
         second, second ? p->first->n : p->second->n,
         x,      second ? y : x,
         false};
    int64_t lanes = NAME(split_lanes)(s.plan), blocks = (s.count + lanes - 1) / lanes;
    LT_IN_TEAM(lt_team(8 * p->n, blocks), blocks, NAME(run_step)(&s, first, last));
    if (atomic_load(&s.failed)) return lt_fail_memory(), NULL;
  }
  return y;
}

T *NAME(lt_fft_run)(const lt_FftPlan *p, int64_t lanes, T *scratch) {
  switch (p->form) {
  case PASSES:
    return NAME(run_passes)(p, lanes, scratch);
  case CHIRP:
    return NAME(run_chirp)(p, lanes, scratch);
  case SPLIT:
    return NAME(run_split)(p, scratch);
  default:
    return NAME(lt_fft_run)(p->first, lanes, scratch);
  }
}
#undef NAME
