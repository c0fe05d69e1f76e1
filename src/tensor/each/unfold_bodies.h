/* unfold_bodies.h: the bodies of unfold (im2col) and fold (col2im). A tensor of planes becomes, and
 * is made from, planes of window[0] x window[1] x window[2] rows with an element for each
 * window. */

LT_EACH_BODY(_im2col) {
  int64_t rest = i, at[3], place = 0;
  for (int d = 2; d >= 0; d--) {
    at[d] = rest % p->out[d] * p->stride[d] - p->padding[d];
    rest /= p->out[d];
  }
  for (int d = 2; d >= 0; d--) {
    at[d] += rest % p->window[d] * p->dilation[d];
    rest /= p->window[d];
  }
  place = rest;
  bool inside = true;
  for (int d = 0; d < 3; d++) {
    inside = inside && at[d] >= 0 && at[d] < p->in[d];
    place = place * p->in[d] + at[d];
  }
  T v = 0;
  if (inside) v = GET(0, place);
  PUT(0, i, v);
}

LT_EACH_BODY(_col2im) {
  int64_t rest = i, at[3];
  for (int d = 2; d >= 0; d--) {
    at[d] = rest % p->in[d] + p->padding[d];
    rest /= p->in[d];
  }
  T sum = 0;
  for (int64_t c = 0; c < p->window[0]; c++)
    for (int64_t b = 0; b < p->window[1]; b++)
      for (int64_t a = 0; a < p->window[2]; a++) {
        int64_t z = at[0] - c * p->dilation[0], y = at[1] - b * p->dilation[1],
                x = at[2] - a * p->dilation[2];
        if (z < 0 || y < 0 || x < 0 || z % p->stride[0] != 0 || y % p->stride[1] != 0 ||
            x % p->stride[2] != 0)
          continue;
        z /= p->stride[0];
        y /= p->stride[1];
        x /= p->stride[2];
        if (z >= p->out[0] || y >= p->out[1] || x >= p->out[2]) continue;
        int64_t row = ((rest * p->window[0] + c) * p->window[1] + b) * p->window[2] + a;
        sum += GET(0, ((row * p->out[0] + z) * p->out[1] + y) * p->out[2] + x);
      }
  PUT(0, i, sum);
}
