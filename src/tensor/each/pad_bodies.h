/* pad_bodies.h: the body of padding with elements of the tensor itself. */

LT_EACH_BODY(_pad) {
  int64_t x = lt_pad_place(p, 2, i % p->out[2]), rest = i / p->out[2],
          y = lt_pad_place(p, 1, rest % p->out[1]), z;
  rest /= p->out[1];
  z = lt_pad_place(p, 0, rest % p->out[0]);
  rest /= p->out[0];
  PUT(0, i, GET(0, ((rest * p->in[0] + z) * p->in[1] + y) * p->in[2] + x));
}
