/* fft_lines.h: transforms blocks of lines of numbers of type T, with the suffix F: reads them into
 * the plan's layout, runs the plan, and writes the result. */
#define NAME(f) LT_FFT_LINES_PASTE(f, F)
#ifndef LT_FFT_LINES_PASTE
#define LT_FFT_LINES_PASTE_(a, b) a##_##b
#define LT_FFT_LINES_PASTE(a, b)  LT_FFT_LINES_PASTE_(a, b)
#endif

/* Completes the first n / 2 + 1 rows of a Hermitian sequence, whose row 0 is real. */
static void NAME(complete)(int64_t n, int64_t lanes, T *re, T *im) {
  for (int64_t b = 0; b < lanes; b++) im[b] = 0;
  for (int64_t k = 1; k <= (n - 1) / 2; k++)
    for (int64_t b = 0; b < lanes; b++) {
      re[(n - k) * lanes + b] = re[k * lanes + b];
      im[(n - k) * lanes + b] = -im[k * lanes + b];
    }
}

/* Reads a block of lines; `step` is the distance of a line's numbers, `lane` that of the lines.
 * `outside` is memory for a block of a real plan. */
static void NAME(read_block)(const Transform *t, const T *x, int64_t step, int64_t lane,
                             int64_t lanes, T *block, T *outside) {
  const lt_FftLoops *loops = lt_fft_loops();
  int64_t size = t->of.n * lanes, h = t->of.n / 2;
  T *re = block, *im = block + size;
  if (t->of.kind == LT_FFT_R2C && t->halved) { /* even numbers are real parts, odd ones imaginary */
    if (step == 1) {
      loops->NAME(gather_pairs)(x, 2, lane, h, lanes, block, block + h * lanes);
      return;
    }
    loops->NAME(gather)(x, 2 * step, lane, h, lanes, block);
    loops->NAME(gather)(x + step, 2 * step, lane, h, lanes, block + h * lanes);
  } else if (t->of.kind == LT_FFT_R2C) {
    if (t->of.inverse) re = block + size, im = block;
    loops->NAME(gather)(x, step, lane, t->of.n, lanes, re);
    memset(im, 0, sizeof(T) * (size_t)size);
  } else if (t->of.kind == LT_FFT_C2R && t->halved) {
    T *own = outside + (h + 1) * lanes;
    loops->NAME(gather_pairs)(x, 2 * step, 2 * lane, h + 1, lanes, outside, own);
    loops->NAME(tangle)(h, lanes, outside, own, lt_fft_real_factors(t->plan), block + h * lanes,
                        block); /* backward: parts are exchanged */
  } else {
    if (t->of.inverse) re = block + size, im = block;
    if (lanes == 1) /* threads share it where they share the transform */
      LT_IN_TEAM(pairs_team(t, t->of.from_n), t->of.from_n,
                 loops->NAME(gather_pairs)(x + 2 * step * first, 2 * step, 2 * lane, last - first,
                                           1, re + first, im + first));
    else
      loops->NAME(gather_pairs)(x, 2 * step, 2 * lane, t->of.from_n, lanes, re, im);
    if (t->of.kind == LT_FFT_C2R) NAME(complete)(t->of.n, lanes, re, im);
  }
}

/* Writes the result z of a block. */
static void NAME(write_block)(const Transform *t, T *z, T *y, int64_t step, int64_t lane,
                              int64_t lanes, T *outside) {
  const lt_FftLoops *loops = lt_fft_loops();
  int64_t size = t->of.n * lanes, h = t->of.n / 2;
  T scale = (T)t->of.scale, *re = z, *im = z + size;
  if (t->of.kind == LT_FFT_C2R && t->halved && step == 1) {
    loops->NAME(scatter_pairs)(z + h * lanes, z, scale, h, lanes, y, 2, lane);
    return;
  }
  if (t->of.kind == LT_FFT_C2R && t->halved) {
    loops->NAME(scatter)(z + h * lanes, scale, h, lanes, y, 2 * step, lane);
    loops->NAME(scatter)(z, scale, h, lanes, y + step, 2 * step, lane);
    return;
  }
  if (t->of.kind == LT_FFT_C2R) {
    loops->NAME(scatter)(im, scale, t->of.n, lanes, y, step, lane);
    return;
  }
  if (t->halved) {
    re = outside, im = outside + (h + 1) * lanes;
    loops->NAME(untangle)(h, lanes, z, z + h * lanes, lt_fft_real_factors(t->plan), re, im);
    for (int64_t i = 0; t->of.inverse && i < (h + 1) * lanes; i++) im[i] = -im[i];
  } else if (t->of.inverse) {
    re = z + size, im = z;
  }
  int64_t results = lt_fft_results(&t->of);
  if (lanes == 1)
    LT_IN_TEAM(pairs_team(t, results), results,
               loops->NAME(scatter_pairs)(re + first, im + first, scale, last - first, 1,
                                          y + 2 * step * first, 2 * step, 2 * lane));
  else
    loops->NAME(scatter_pairs)(re, im, scale, results, lanes, y, 2 * step, 2 * lane);
  for (int64_t b = 0; t->of.full && b < lanes; b++, y += 2 * lane)
    loops->NAME(reverse_conjugates)(t->of.n - results, y + 2, y + 2 * results);
}

/* Runs blocks first .. last - 1. With per_outer > 0 a block has adjacent lines of one outer index,
 * of which each has per_outer blocks; otherwise lines of different outer indices. */
static void NAME(run_blocks)(Transform *t, int64_t per_outer, int64_t first, int64_t last) {
  int64_t most = t->lanes, in = t->of.kind == LT_FFT_R2C ? 1 : 2,
          out = t->of.kind == LT_FFT_C2R ? 1 : 2;
  size_t inside = lt_fft_scratch(t->plan, most);
  size_t beside = t->halved ? 2 * (size_t)(t->of.n / 2 + 1) * (size_t)most : 0;
  T *block = lt_fft_memory(sizeof(T) * (inside + beside)), *outside = block + inside;
  if (!block) atomic_store(&t->failed, true);
  for (int64_t i = first; block && i < last && !lt_stopped(); i++) {
    int64_t outer = per_outer ? i / per_outer : i * most;
    int64_t inner = per_outer ? i % per_outer * most : 0;
    int64_t left = per_outer ? t->of.columns - inner : t->of.outer - outer;
    int64_t lanes = left < most ? left : most;
    int64_t from_lane = per_outer ? 1 : t->of.from_n, to_lane = per_outer ? 1 : t->of.to_n;
    const T *x = (const T *)t->of.x + in * (lt_fft_start(&t->of, outer, t->of.from_n) + inner);
    T *y = (T *)t->of.y + out * (lt_fft_start(&t->of, outer, t->of.to_n) + inner);
    if (t->of.kind == LT_FFT_C2C && t->of.inner == 1 && lt_fft_splits(t->plan)) {
      lt_FftPairs pairs = {x, y, t->of.scale, t->of.inverse};
      if (!NAME(lt_fft_run_pairs)(t->plan, &pairs, block)) atomic_store(&t->failed, true);
      continue;
    }
    NAME(read_block)(t, x, t->of.inner, from_lane, lanes, block, outside);
    T *z = NAME(lt_fft_run)(t->plan, lanes, block);
    if (z)
      NAME(write_block)(t, z, y, t->of.inner, to_lane, lanes, outside);
    else
      atomic_store(&t->failed, true);
  }
  free(block);
}
#undef NAME
