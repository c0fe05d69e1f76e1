/* composite_image.c: elements moved between channels and pixels, and constants around the last dims
 * of a tensor. */
#include "infer.h"

/* ---- channels and pixels --------------------------------------------------------------------- */

/* Returns the product of the sizes before the last three. */
static int64_t count_images(const lt_Tensor *x) {
  int64_t count = 1;
  for (int d = 0; d < x->ndim - 3; d++) count *= x->shape[d];
  return count;
}

/* Sets the result: the pieces of x in this order, with the last dims {c, h, w}. */
static bool set_pieces(lt_Call *c, lt_Tensor *x, const int64_t *pieces, const int64_t *order,
                       const int64_t *last) {
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, x->shape, sizeof shape);
  memcpy(shape + x->ndim - 3, last, 3 * sizeof *last);
  lt_Tensor *y = lt_do(permute, LT_ARG(lt_do_reshape(x, 6, pieces)), LT_INTS(order, 6));
  return lt_result_set(c, lt_do_reshape(y, x->ndim, shape));
}

static bool check_factor(const lt_Call *c) {
  int64_t r = c->arg[1].i;
  if (r >= 1 && r <= INT32_MAX) return true; /* its square is within int64 */
  return lt_fail(r < 1 ? "expected a number above 0 for argument '%s', got %lld"
                       : "expected a number up to 2147483647 for argument '%s', got %lld",
                 lt_arg_name(c, 1), (long long)r);
}

/* pixel_shuffle (self, upscale_factor) */
bool lt_composite_pixel_shuffle(lt_Call *c) {
  static const int64_t order[] = {0, 1, 4, 2, 5, 3};
  lt_Tensor *x = lt_in(c, 0);
  int64_t r = c->arg[1].i;
  if (!check_factor(c)) return false;
  if (x->ndim < 3 || x->shape[x->ndim - 3] % (r * r) != 0)
    return lt_fail("expected {..., channels, H, W} with a multiple of %lld channels for argument "
                   "'self', got %s",
                   (long long)(r * r), lt_text(x));
  const int64_t *last = x->shape + x->ndim - 3;
  int64_t n = last[0] / (r * r);
  return set_pieces(c, x, (int64_t[]){count_images(x), n, r, r, last[1], last[2]}, order,
                    (int64_t[]){n, last[1] * r, last[2] * r});
}

/* pixel_unshuffle (self, downscale_factor) */
bool lt_composite_pixel_unshuffle(lt_Call *c) {
  static const int64_t order[] = {0, 1, 3, 5, 2, 4};
  lt_Tensor *x = lt_in(c, 0);
  int64_t r = c->arg[1].i, channels;
  if (!check_factor(c)) return false;
  if (x->ndim < 3 || x->shape[x->ndim - 2] % r != 0 || x->shape[x->ndim - 1] % r != 0)
    return lt_fail("expected {..., C, H, W} with multiples of %lld pixels for argument 'self', got "
                   "%s",
                   (long long)r, lt_text(x));
  const int64_t *last = x->shape + x->ndim - 3;
  int64_t h = last[1] / r, w = last[2] / r;
  if (!lt_shape_numel(NULL, 2, (int64_t[]){last[0], r * r}, &channels)) return false;
  return set_pieces(c, x, (int64_t[]){count_images(x), last[0], h, r, w, r}, order,
                    (int64_t[]){channels, h, w});
}

/* channel_shuffle (self, groups) */
bool lt_composite_channel_shuffle(lt_Call *c) {
  lt_Tensor *x = lt_in(c, 0);
  int64_t groups = c->arg[1].i, shape[4] = {0, groups, 0, 1};
  if (x->ndim < 3)
    return lt_fail("expected at least 3 dimensions for argument 'self', got shape %s", lt_text(x));
  if (groups < 1 || x->shape[1] % groups != 0)
    return lt_fail("expected a divisor of the %lld channels for argument 'groups', got %lld",
                   (long long)x->shape[1], (long long)groups);
  shape[0] = x->shape[0];
  shape[2] = x->shape[1] / groups;
  for (int d = 2; d < x->ndim; d++) shape[3] *= x->shape[d];
  lt_Tensor *y = lt_do(transpose, LT_ARG(lt_do_reshape(x, 4, shape)), LT_ARG(1), LT_ARG(2));
  return lt_result_set(c, lt_do_reshape(y, x->ndim, x->shape));
}

/* ---- constants around a tensor --------------------------------------------------------------- */

/* The padding of a tensor: what its dims lose, and then get, at both ends. */
typedef struct Pad {
  int64_t cut[LT_MAX_DIMS][2], add[LT_MAX_DIMS][2];
} Pad;

/* Splits the numbers for a dim of n elements, of which negative ones remove elements. */
static void split(int64_t n, int64_t left, int64_t right, int64_t *cut, int64_t *add) {
  cut[0] = left < 0 ? -left : 0;
  cut[1] = right < 0 ? -right : 0;
  add[0] = left > 0 ? left : 0;
  add[1] = right > 0 ? right : 0;
  if (cut[0] + cut[1] <= n) return;
  /* one side removes more than there is, from what the other one adds */
  bool before = add[0] > 0;
  cut[0] = before ? 0 : n;
  cut[1] = n - cut[0];
  add[!before] = n + left + right;
  add[before] = 0;
}

/* Reads pad, argument 1: pairs of numbers from the last dim on. */
static bool read_pad(const lt_Call *c, Pad *p) {
  const lt_Tensor *x = lt_in(c, 0);
  const lt_Arg *a = &c->arg[1];
  *p = (Pad){0};
  if (a->count % 2 != 0 || a->count > 2 * x->ndim)
    return lt_fail("expected two numbers for each dim to pad, at most %d, for argument '%s', got "
                   "%d number%s",
                   2 * x->ndim, lt_arg_name(c, 1), a->count, a->count == 1 ? "" : "s");
  for (int i = 0; i < a->count; i += 2) {
    int d = x->ndim - 1 - i / 2;
    int64_t n = x->shape[d], left = a->ints[i], right = a->ints[i + 1], most = INT64_MAX / 4;
    bool large = left > most || right > most;
    if (large || left < -most || right < -most || n + left + right < 0)
      return lt_fail("cannot pad dim %d, of %lld elements, by %lld and %lld: the result %s", d + 1,
                     (long long)n, (long long)left, (long long)right,
                     large ? "is too large" : "has a negative size");
    split(n, left, right, p->cut[d], p->add[d]);
  }
  return true;
}

/* Returns whether the borders of x are few of the cache lines of a large result. */
static bool has_thin_borders(const lt_Call *c, const lt_Tensor *x) {
  return x->numel >= 1 << 17 && c->device.type == LT_DEVICE_cpu && x->shape[x->ndim - 1] >= 256;
}

/* Fills `count` indices of dim d of t from `first` on; returns whether that succeeds. */
static bool fill(lt_Tensor *t, int d, int64_t first, int64_t count, lt_Arg value) {
  return count == 0 || lt_do_in_place(fill, LT_ARG(lt_do_slice(t, d, first, count)), value);
}

/* constant_pad_nd (self, pad, value) */
bool lt_composite_constant_pad_nd(lt_Call *c) {
  Pad p;
  if (!read_pad(c, &p)) return false;
  lt_Tensor *x = lt_in(c, 0), *source = x;
  int64_t shape[LT_MAX_DIMS];
  bool pads = false;
  for (int d = 0; d < x->ndim; d++) {
    int64_t n = x->shape[d] - p.cut[d][0] - p.cut[d][1];
    if (n < x->shape[d]) source = source ? lt_do_slice(source, d, p.cut[d][0], n) : NULL;
    shape[d] = n + p.add[d][0] + p.add[d][1];
    pads = pads || shape[d] > n;
  }
  if (!pads || !source) return lt_result_set(c, lt_do(clone, LT_ARG(source)));
  lt_Arg options[] = {lt_arg_dtype(x->dtype), LT_ARG(c->device)};
  bool borders = has_thin_borders(c, source);
  lt_Tensor *out = borders
                       ? lt_do(empty, LT_INTS(shape, x->ndim), options[0], options[1])
                       : lt_do(full, LT_INTS(shape, x->ndim), c->arg[2], options[0], options[1]);
  lt_Tensor *place = out;
  for (int d = 0; d < x->ndim && place; d++) { /* outer dims first: their borders are dense */
    int64_t n = source->shape[d], first = p.add[d][0];
    if (borders &&
        !(fill(place, d, 0, first, c->arg[2]) && fill(place, d, first + n, p.add[d][1], c->arg[2])))
      return false;
    if (n < shape[d] && n > 0) place = lt_do_slice(place, d, first, n);
  }
  if (!place) return false;
  if (source->numel > 0 && !lt_do_in_place(_copy, LT_ARG(place), LT_ARG(source))) return false;
  if (source->numel == 0 && lt_tensor_requires_grad(x)) /* the result depends on x */
    out = lt_do(add, LT_ARG(out), LT_ARG(lt_do(sum, LT_ARG(source))));
  return lt_result_set(c, out);
}
