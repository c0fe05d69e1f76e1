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
    lt_fft_loops()->NAME(pass)(r, m, m * run, run, run, x, x + size, y, y + size, p->w[s]);
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

/* One of the two steps of a split transform: lines first .. last - 1 of `count`. The input of the
 * first step and the result of the second one may be pairs. Between the steps there is a matrix in
 * x, its real parts before its imaginary ones, whose rows are `pitch` numbers apart. */
typedef struct NAME(Step) {
  const lt_FftPlan *whole, *plan;
  bool second;
  int64_t count, pitch;
  T *x, *y;
  const lt_FftPairs *pairs; /* NULL: none */
  atomic_bool failed;
} NAME(Step);

/* Reads `lanes` lines from line i on. */
static void NAME(read_lines)(const NAME(Step) * s, int64_t i, int64_t lanes, T *block) {
  const lt_FftLoops *loops = lt_fft_loops();
  const lt_Mover *mover = lt_mover((int64_t)sizeof(T));
  int64_t n = s->plan->n, plane = s->whole->first->n * s->pitch;
  T *re = block, *im = block + n * lanes;
  if (s->second) {
    const char *x = (const char *)(s->x + i * s->pitch);
    int64_t lane = s->pitch * (int64_t)sizeof(T), row = lanes * (int64_t)sizeof(T);
    mover->tile(n, lanes, (char *)re, row, x, lane);
    mover->tile(n, lanes, (char *)im, row, x + plane * (int64_t)sizeof(T), lane);
  } else if (s->pairs) {
    bool exchanged = s->pairs->exchanged;
    loops->NAME(gather_pairs)((const T *)s->pairs->x + 2 * i, 2 * s->count, 2, n, lanes,
                              exchanged ? im : re, exchanged ? re : im);
  } else {
    loops->NAME(gather)(s->x + i, s->pitch, 1, n, lanes, re);
    loops->NAME(gather)(s->x + plane + i, s->pitch, 1, n, lanes, im);
  }
}

/* Writes their results z. */
static void NAME(write_lines)(const NAME(Step) * s, int64_t i, int64_t lanes, const T *re) {
  const lt_FftLoops *loops = lt_fft_loops();
  int64_t n = s->plan->n, plane = s->second ? s->whole->n : n * s->pitch;
  int64_t step = s->second ? s->count : s->pitch;
  const T *im = re + n * lanes;
  if (s->second && s->pairs) {
    bool exchanged = s->pairs->exchanged;
    loops->NAME(scatter_pairs)(exchanged ? im : re, exchanged ? re : im, (T)s->pairs->scale, n,
                               lanes, (T *)s->pairs->y + 2 * i, 2 * step, 2);
    return;
  }
  T *y = (s->second ? s->y : s->x) + i;
  loops->NAME(scatter)(re, 1, n, lanes, y, step, 1);
  loops->NAME(scatter)(im, 1, n, lanes, y + plane, step, 1);
}

/* Step 1: line j2 has the numbers j1 n2 + j2; its result k1, times a factor, goes to row k1 and
 * column j2 of the matrix.
 * Step 2: line k1 is row k1; its result k2 goes to k1 + n1 k2. */
static void NAME(run_step)(NAME(Step) * s, int64_t first, int64_t last) {
  int64_t n = s->plan->n, most = split_lanes(s->plan);
  T *block = lt_fft_memory(sizeof(T) * lt_fft_scratch(s->plan, most));
  if (!block) atomic_store(&s->failed, true);
  for (int64_t i = first * most, end = last * most < s->count ? last * most : s->count;
       block && i < end && !lt_stopped(); i += most) {
    int64_t lanes = end - i < most ? end - i : most;
    NAME(read_lines)(s, i, lanes, block);
    T *z = NAME(lt_fft_run)(s->plan, lanes, block);
    if (!z) atomic_store(&s->failed, true);
    if (z && !s->second)
      lt_fft_loops()->NAME(twist)(n, lanes, i, s->whole->bits, s->whole->high, s->whole->low, most,
                                  s->whole->turns, z, z + n * lanes);
    if (z) NAME(write_lines)(s, i, lanes, z);
  }
  free(block);
}

/* Transforms x to x + 2 n, or pairs. Rows of pairs have a few more numbers between the steps:
 * otherwise columns whose size is a power of 2 share a few places of a cache. */
static T *NAME(run_split)(const lt_FftPlan *p, const lt_FftPairs *pairs, T *x) {
  T *y = x + 2 * p->n;
  for (int second = 0; second < 2; second++) {
    NAME(Step)
    s = {.whole = p,
         .plan = second ? p->second : p->first,
         .second = second,
         .count = second ? p->first->n : p->second->n,
         .pitch = p->second->n + (pairs ? 64 / (int64_t)sizeof(T) : 0),
         .x = x,
         .y = y,
         .pairs = pairs};
    int64_t lanes = split_lanes(s.plan), blocks = (s.count + lanes - 1) / lanes;
    LT_IN_TEAM(lt_team(8 * p->n, blocks), blocks, NAME(run_step)(&s, first, last));
    if (atomic_load(&s.failed)) return lt_fail_memory(), NULL;
  }
  return y;
}

bool NAME(lt_fft_run_pairs)(const lt_FftPlan *p, const lt_FftPairs *pairs, T *scratch) {
  return NAME(run_split)(p, pairs, scratch) != NULL;
}

T *NAME(lt_fft_run)(const lt_FftPlan *p, int64_t lanes, T *scratch) {
  switch (p->form) {
  case PASSES:
    return NAME(run_passes)(p, lanes, scratch);
  case CHIRP:
    return NAME(run_chirp)(p, lanes, scratch);
  case SPLIT:
    return NAME(run_split)(p, NULL, scratch);
  default:
    return NAME(lt_fft_run)(p->first, lanes, scratch);
  }
}
#undef NAME
