/* test_index.c: reading and writing by indices and masks against slow references; indices out of
 * range change nothing, and the message names the wrong one; cat, triangles, flip and roll. */
#include "tensors.h"

static int64_t flat(const lt_Tensor *t, const int64_t *index_) {
  int64_t at = 0;
  for (int d = 0; d < t->ndim; d++) at = at * t->shape[d] + index_[d];
  return at;
}
static void unflat(const lt_Tensor *t, int64_t at, int64_t *index_) {
  for (int d = t->ndim - 1; d >= 0; d--) {
    index_[d] = at % t->shape[d];
    at /= t->shape[d];
  }
}
static bool same(lt_Scalar a, lt_Scalar b) {
  return a.kind >= LT_FLOATING ? a.f == b.f && a.im == b.im : a.i == b.i;
}

static void index_select_reads_by_index(void) {
  for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1))
    for (int dim = 0; dim < 3; dim++)
      for (int layout = 0; layout < 3; layout++) {
        lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(4, 5, 6), 1), layout), *y[LT_MAX_OUT];
        lt_Tensor *index = random_indices(x->shape[dim], SHAPE(7), 2);
        if (!RUN_OP(y, index_select, false, LT_ARG(x), LT_ARG(dim),
                    LT_ARG(laid_out(index, layout))))
          return;
        CHECK_INT(y[0]->shape[dim], 7);
        for (int64_t i = 0; i < y[0]->numel; i++) {
          int64_t p[LT_MAX_DIMS];
          unflat(y[0], i, p);
          p[dim] = (int64_t)number(index, p[dim]) - 1;
          CHECK(same(element(y[0], i), element(x, flat(x, p))));
        }
      }
  lt_Tensor *y[LT_MAX_OUT], *x = noise(LT_float32, 0, NULL, 1);
  REQUIRE(RUN_OP(y, index_select, false, LT_ARG(x), LT_ARG(0), LT_ARG(V(int64, 1))));
  CHECK_INT(y[0]->ndim, 0);
}

/* Checks y = x:gather(dim, index). */
static void check_gathered(lt_Tensor *y, lt_Tensor *x, int dim, lt_Tensor *index) {
  for (int64_t i = 0; i < y->numel; i++) {
    int64_t p[LT_MAX_DIMS];
    unflat(y, i, p);
    p[dim] = (int64_t)number(index, i) - 1;
    CHECK(same(element(y, i), element(x, flat(x, p))));
  }
}

static void gather_has_an_index_for_each_element(void) {
  for (int dim = 0; dim < 3; dim++)
    for (int layout = 0; layout < 3; layout++) {
      lt_Tensor *x = laid_out(noise(LT_int16, SHAPE(4, 5, 6), 3), layout), *y[LT_MAX_OUT];
      lt_Tensor *index = random_indices(x->shape[dim], SHAPE(3, 5, 2), 4);
      if (!RUN_OP(y, gather, false, LT_ARG(x), LT_ARG(dim), LT_ARG(laid_out(index, 2 - layout))))
        return;
      check_gathered(y[0], x, dim, index);
    }
}

/* Writes in the order of the index, so that of equal indices the last wins. */
static void scatter_has_an_index_for_each_element(void) {
  for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1))
    for (int dim = 0; dim < 3; dim++)
      for (int add = 0; add < (d < REAL_DTYPES ? 2 : 1); add++) {
        lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(4, 5, 6), 5), dim), *y[LT_MAX_OUT];
        lt_Tensor *index = random_indices(x->shape[dim], SHAPE(3, 4, 6), 6);
        lt_Tensor *src = laid_out(noise((lt_Dtype)d, SHAPE(3, 5, 6), 7), 2 - dim);
        if (!run_op(__FILE__, __LINE__, add ? LT_OP_scatter_add : LT_OP__scatter, false,
                    (lt_Arg[]){LT_ARG(x), LT_ARG(dim), LT_ARG(index), LT_ARG(src)}, 4, y))
          return;
        double expected[120];
        for (int64_t i = 0; i < 120; i++) expected[i] = number(x, i);
        for (int64_t i = 0; i < index->numel; i++) {
          int64_t p[LT_MAX_DIMS], q[LT_MAX_DIMS];
          unflat(index, i, p);
          memcpy(q, p, sizeof q);
          q[dim] = (int64_t)number(index, i) - 1;
          double v = number(src, flat(src, p)), *to = &expected[flat(x, q)];
          *to = add ? *to + v : v;
        }
        if (d == LT_bool)
          for (int i = 0; i < 120; i++) expected[i] = expected[i] != 0;
        for (int64_t i = 0; i < 120; i++)
          CHECK_NEAR(number(y[0], i), expected[i], tolerance_of((lt_Dtype)d) * 8);
      }
  lt_Tensor *z = noise(LT_float32, SHAPE(2, 2), 1), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _scatter, true, LT_ARG(z), LT_ARG(1),
                 LT_ARG(from_list(LT_int64, (double[]){2, 1}, SHAPE(2, 1))), LT_ARG(7)));
  CHECK_NEAR(number(z, 1), 7, 0);
  CHECK_NEAR(number(z, 2), 7, 0);
  /* a 0-d index selects one element of a vector */
  lt_Tensor *place = lt_scope_own(lt_scalar_tensor(lt_scalar_int(2), LT_int64)),
            *three = lt_scope_own(lt_scalar_tensor(lt_scalar_float(3), LT_float32));
  REQUIRE(RUN_OP(y, scatter_add, false, LT_ARG(V(float32, 3, 2, 1)), LT_ARG(0), LT_ARG(place),
                 LT_ARG(three)));
  CHECK_TENSOR(y[0], 0, L(3), 3, 5, 1);
  REQUIRE(RUN_OP(y, _scatter, false, LT_ARG(V(float32, 3, 2, 1)), LT_ARG(0), LT_ARG(place),
                 LT_ARG(three)));
  CHECK_TENSOR(y[0], 0, L(3), 3, 3, 1);
}

/* The index of slices is expanded; slices are shorter and longer than vectors. */
static void scatters_of_slices_have_one_index_each(void) {
  static const char *const names[] = {"sum", "prod", "amax", "amin"};
  const int64_t count = 6;
  lt_Tensor *line = V(int64, 3, 1, 3, 3, 2, 1), *y[LT_MAX_OUT];
  for (int d = next_dtype(LT_int32); d < REAL_DTYPES; d = next_dtype(d + 1))
    for (int kind = 0; kind < 16; kind++) {
      const int dim = kind / 4 % 2, how = kind % 4, inner = kind >= 8 ? 41 : how ? 9 : 3;
      const int64_t sizes[3] = {dim ? 2 : 3, dim ? 3 : 2, inner},
                    wide[3] = {dim ? 2 : count, dim ? count : 2, inner};
      lt_Tensor *x = laid_out(noise((lt_Dtype)d, 3, sizes, 5), kind % 3),
                *src = laid_out(noise((lt_Dtype)d, 3, wide, 7), 2 - kind % 3),
                *index = lt_scope_own(lt_geometry(line, 0, 3, wide, (int64_t[]){!dim, dim, 0}));
      if (!(how == 0
                ? RUN_OP(y, scatter_add, false, LT_ARG(x), LT_ARG(dim), LT_ARG(index), LT_ARG(src))
                : RUN_OP(y, _scatter_reduce, false, LT_ARG(x), LT_ARG(dim), LT_ARG(index),
                         LT_ARG(src), lt_arg_string(names[how]))))
        return;
      double expected[246];
      for (int64_t i = 0; i < x->numel; i++) expected[i] = number(x, i);
      for (int64_t i = 0; i < src->numel; i++) {
        int64_t p[LT_MAX_DIMS];
        unflat(src, i, p);
        p[dim] = (int64_t)number(line, p[dim]) - 1;
        double v = number(src, i), *to = &expected[flat(x, p)];
        *to = how == 0 ? *to + v : how == 1 ? *to * v : how == 2 ? fmax(*to, v) : fmin(*to, v);
      }
      for (int64_t i = 0; i < x->numel; i++)
        CHECK_NEAR(number(y[0], i), expected[i], tolerance_of((lt_Dtype)d) * 8);
    }
  /* NaN is both the largest and the smallest; a wrong index is reported where it is */
  for (int how = 2; how < 4; how++) {
    lt_Tensor *zeros = lt_scope_own(lt_empty(LT_float32, lt_cpu(), SHAPE(3, 40))),
              *src = noise(LT_float32, SHAPE(6, 40), 1),
              *index =
                  lt_scope_own(lt_geometry(line, 0, 2, ((int64_t[]){6, 40}), ((int64_t[]){1, 0})));
    for (int i = 0; i < 120; i++) ((float *)lt_tensor_data(zeros))[i] = i == 7 ? NAN : 0;
    ((float *)lt_tensor_data(src))[3 * 40 + 1] = NAN;
    if (!RUN_OP(y, _scatter_reduce, false, LT_ARG(zeros), LT_ARG(0), LT_ARG(index), LT_ARG(src),
                lt_arg_string(names[how])))
      return;
    for (int i = 0; i < 120; i++) CHECK(isnan(number(y[0], i)) == (i == 7 || i == 81));
  }
  lt_Tensor *bad =
      lt_scope_own(lt_geometry(V(int64, 1, 4), 0, 2, ((int64_t[]){2, 2}), ((int64_t[]){1, 0})));
  CHECK_FAILS("expected an index from 1 to 3 for argument 'index', got 4 at index {2, 1}",
              scatter_add, false, LT_ARG(noise(LT_float32, SHAPE(3, 2), 1)), LT_ARG(0), LT_ARG(bad),
              LT_ARG(noise(LT_float32, SHAPE(2, 2), 1)));
}

/* ---- index_add, index_copy, index_fill ------------------------------------------------------- */

/* Along the first dim, rows are long enough for loops over vectors. */
static void rows_are_added_copied_and_filled(void) {
  for (int d = next_dtype(LT_uint8); d < LT_DTYPE_COUNT; d = next_dtype(d + 1))
    for (int dim = 0; dim < 3; dim++)
      for (int way = d < REAL_DTYPES ? 0 : 1; way < 3; way++) {
        lt_Tensor *x = noise((lt_Dtype)d, SHAPE(4, 5, 7), 5), *y[LT_MAX_OUT];
        lt_Tensor *index = V(int64, 3, 1, 3);
        int64_t shape[3] = {4, 5, 7};
        shape[dim] = 3;
        lt_Tensor *src = laid_out(noise((lt_Dtype)d, 3, shape, 8), dim);
        bool ok = way == 0   ? RUN_OP(y, index_add, false, LT_ARG(laid_out(x, dim)), LT_ARG(dim),
                                      LT_ARG(index), LT_ARG(src), LT_ARG(2))
                  : way == 1 ? RUN_OP(y, index_copy, false, LT_ARG(laid_out(x, dim)), LT_ARG(dim),
                                      LT_ARG(index), LT_ARG(src))
                             : RUN_OP(y, index_fill, false, LT_ARG(laid_out(x, dim)), LT_ARG(dim),
                                      LT_ARG(index), LT_ARG(5));
        if (!ok) return;
        double expected[140];
        for (int64_t i = 0; i < 140; i++) expected[i] = number(x, i);
        for (int64_t i = 0; i < src->numel; i++) {
          int64_t p[LT_MAX_DIMS];
          unflat(src, i, p);
          p[dim] = (int64_t)number(index, p[dim]) - 1;
          double v = number(src, i), *to = &expected[flat(x, p)];
          *to = way == 0 ? *to + 2 * v : way == 1 ? v : 5;
        }
        for (int64_t i = 0; i < 140; i++)
          CHECK_NEAR(number(y[0], i), expected[i], tolerance_of((lt_Dtype)d) * 8);
      }
}

/* ---- several indices ------------------------------------------------------------------------- */

/* Expected shapes and values are NumPy's: x[[0,2]], x[:, [1,3]], x[[0,1],:,[1,2]],
 * x[[[0],[1]],[1,2]]. */
static void several_indices_follow_numpy(void) {
  lt_Tensor *y[LT_MAX_OUT], *x = lt_scope_own(lt_empty(LT_int32, lt_cpu(), SHAPE(3, 4, 5)));
  for (int32_t i = 0; i < 60; i++) ((int32_t *)lt_tensor_data(x))[i] = i;
  for (int layout = 0; layout < 3; layout++) {
    lt_Tensor *t = laid_out(x, layout);
    REQUIRE(RUN_OP(y, _index, false, LT_ARG(t), TL(V(int64, -1)), L(0)));
    CHECK_INT(y[0]->ndim, 3);
    for (int i = 0; i < 20; i++) CHECK_INT(number(y[0], i), 40 + i);
    REQUIRE(RUN_OP(y, _index, false, LT_ARG(t), TL(V(int64, 2, -1)), L(1)));
    CHECK_INT(y[0]->shape[1], 2);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 2; j++)
        for (int k = 0; k < 5; k++)
          CHECK_INT(number(y[0], (i * 2 + j) * 5 + k), i * 20 + (j ? 3 : 1) * 5 + k);
    REQUIRE(RUN_OP(y, _index, false, LT_ARG(t), TL(V(int64, 1, 2), V(int32, 2, 3)), L(0, 2)));
    CHECK_TENSOR(y[0], 0, L(2, 4), 1, 6, 11, 16, 22, 27, 32,
                 37); /* not adjacent: the indices' dims come first */
    lt_Tensor *column = from_list(LT_int64, (double[]){1, 2}, SHAPE(2, 1));
    REQUIRE(RUN_OP(y, _index, false, LT_ARG(t), TL(column, V(int64, 2, 3)), L(0, 1)));
    CHECK_INT(y[0]->numel, 20);
    CHECK_INT(number(y[0], 0), 5);
    CHECK_INT(number(y[0], 7), 12);
    CHECK_INT(number(y[0], 19), 34);
    REQUIRE(RUN_OP(y, _index, false, LT_ARG(t), TL(V(int64, 1, 3), V(int64, 4, 4), V(int64, 5, 1)),
                   L(0, 1, 2)));
    CHECK_TENSOR(y[0], 0, L(2), 19, 55);
  }
}

static void index_put_writes_elements(void) {
  for (int d = next_dtype(LT_int8); d < LT_DTYPE_COUNT; d = next_dtype(d + 3))
    for (int add = 0; add < (d < REAL_DTYPES ? 2 : 1); add++) {
      lt_Tensor *x = noise((lt_Dtype)d, SHAPE(3, 4, 5), 2), *y[LT_MAX_OUT];
      lt_Tensor *first = V(int64, 1, 3, 1), *last = V(int64, 2, -1, 2);
      lt_Tensor *values = noise((lt_Dtype)d, SHAPE(4), 3); /* broadcast to {3, 4} */
      double expected[60];
      for (int i = 0; i < 60; i++) expected[i] = number(x, i);
      for (int b = 0; b < 3; b++)
        for (int j = 0; j < 4; j++) {
          int64_t r = (int64_t)number(first, b) - 1, k = b == 1 ? 4 : 1;
          double *to = &expected[(r * 4 + j) * 5 + k];
          *to = add ? *to + number(values, j) : number(values, j);
        }
      if (!RUN_OP(y, _index_put, true, LT_ARG(x), TL(first, last), L(0, 2), LT_ARG(values),
                  LT_ARG((bool)(add != 0))))
        return;
      for (int i = 0; i < 60; i++)
        CHECK_NEAR(number(x, i), expected[i], 4 * tolerance_of((lt_Dtype)d));
    }
  lt_Tensor *x = noise(LT_float32, SHAPE(3, 2), 2), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _index_put, true, LT_ARG(laid_out(x, 1)), TL(V(int64, 2)), L(0),
                 LT_ARG(V(float32, 9)), LT_ARG((bool)false)));
  CHECK_NEAR(number(y[0], 2), 9, 0);
  CHECK_NEAR(number(y[0], 3), 9, 0);
}

/* ---- masks ----------------------------------------------------------------------------------- */

static void masks_select_and_scatter(void) {
  for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1))
    for (int layout = 0; layout < 3; layout++) {
      lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(5, 7), 1), layout), *y[LT_MAX_OUT];
      lt_Tensor *mask = laid_out(noise(LT_bool, SHAPE(5, 7), 2), 2 - layout);
      if (!RUN_OP(y, masked_select, false, LT_ARG(x), LT_ARG(mask))) return;
      int64_t n = 0;
      for (int i = 0; i < 35; i++)
        if (element(mask, i).i) {
          CHECK(n < y[0]->numel && same(element(y[0], n), element(x, i)));
          n++;
        }
      CHECK_INT(y[0]->numel, n);
      lt_Tensor *source = noise((lt_Dtype)d, SHAPE(40), 3);
      if (!RUN_OP(y, masked_scatter, false, LT_ARG(x), LT_ARG(mask), LT_ARG(source))) return;
      for (int i = 0, k = 0; i < 35; i++)
        CHECK(same(element(y[0], i), element(mask, i).i ? element(source, k++) : element(x, i)));
      if (!RUN_OP(y, nonzero, false, LT_ARG(x))) return;
      CHECK_INT(y[0]->shape[1], 2);
      n = 0;
      for (int i = 0; i < 35; i++) {
        if (number(x, i) == 0) continue;
        CHECK_INT(number(y[0], 2 * n), i / 7 + 1);
        CHECK_INT(number(y[0], 2 * n + 1), i % 7 + 1);
        n++;
      }
      CHECK_INT(y[0]->shape[0], n);
    }
  lt_Tensor *x = V(float32, 1, 2, 3), *row = V(bool, 1, 0, 1), *y[LT_MAX_OUT];
  lt_Tensor *wide = from_list(LT_float32, (double[]){1, 2, 3, 4, 5, 6}, SHAPE(2, 3));
  REQUIRE(RUN_OP(y, masked_select, false, LT_ARG(wide), LT_ARG(row)));
  CHECK_TENSOR(y[0], 0, L(4), 1, 3, 4, 6);
  CHECK_FAILS("expected at least 2 elements for argument 'source', one for each true element of "
              "the mask, got 1",
              masked_scatter, true, LT_ARG(x), LT_ARG(row), LT_ARG(V(float32, 9)));
  CHECK_TENSOR(x, 0, L(3), 1, 2, 3);
  REQUIRE(RUN_OP(y, nonzero, false, LT_ARG(V(int64, 0, 0))));
  CHECK_INT(y[0]->shape[0], 0);
}

/* ---- embedding ------------------------------------------------------------------------------- */

static void embedding_reads_rows_and_sums_their_gradients(void) {
  for (int d = next_dtype(LT_float16); d < REAL_DTYPES; d = next_dtype(d + 1)) {
    lt_Tensor *w = noise((lt_Dtype)d, SHAPE(10, 33), 1),
              *index = random_indices(10, SHAPE(4, 6), 2), *y[LT_MAX_OUT];
    if (!RUN_OP(y, embedding, false, LT_ARG(laid_out(w, d % 3)), LT_ARG(index))) return;
    CHECK_INT(y[0]->ndim, 3);
    for (int64_t i = 0; i < y[0]->numel; i++)
      CHECK(number(y[0], i) == number(w, ((int64_t)number(index, i / 33) - 1) * 33 + i % 33));
    lt_Tensor *g = laid_out(noise((lt_Dtype)d, SHAPE(4, 6, 33), 3), d % 3);
    double expected[330] = {0};
    for (int64_t i = 0; i < g->numel; i++)
      if (number(index, i / 33) != 4)
        expected[((int64_t)number(index, i / 33) - 1) * 33 + i % 33] += number(g, i);
    if (!RUN_OP(y, _embedding_backward, false, LT_ARG(g), LT_ARG(index), LT_ARG(10), LT_ARG(4)))
      return;
    for (int i = 0; i < 330; i++)
      CHECK_NEAR(number(y[0], i), expected[i], 4 * tolerance_of((lt_Dtype)d));
  }
}

/* Rows of any length, in runs of one bag and in any order, with empty bags. */
static void sums_of_rows_by_bag(void) {
  static const int64_t lengths[] = {0, 1, 5, 33, 64, 130};
  for (int d = next_dtype(LT_int32); d < REAL_DTYPES; d = next_dtype(d + 1))
    for (int kind = 0; kind < 24; kind++) {
      const int64_t n = lengths[kind / 4], count = kind % 2 ? 3000 : 40, bags = 12;
      const bool in_runs = kind & 2, weighted = kind % 3;
      lt_Tensor *w = noise((lt_Dtype)d, SHAPE(10, n), 1), *index = random_indices(10, 1, &count, 2),
                *bag = random_indices(bags - 1, 1, &count, 3), *y[LT_MAX_OUT];
      lt_Tensor *factors = noise((lt_Dtype)d, 1, &count, 4);
      for (int64_t i = 0; in_runs && i < count; i++)
        ((int64_t *)lt_tensor_data(bag))[i] = 1 + i * (bags - 1) / count;
      if (!RUN_OP(y, _embedding_sum, false, LT_ARG(laid_out(w, kind % 3)), LT_ARG(index),
                  LT_ARG(bag), LT_ARG(bags), weighted ? LT_ARG(factors) : LT_NIL))
        return;
      CHECK_INT(y[0]->shape[0], bags);
      CHECK_INT(y[0]->shape[1], n);
      double *expected = calloc((size_t)(bags * n + 1), sizeof *expected), size = 1;
      for (int64_t i = 0; i < count * n; i++) {
        int64_t k = i / n;
        double e = number(w, ((int64_t)number(index, k) - 1) * n + i % n) *
                   (weighted ? number(factors, k) : 1);
        expected[((int64_t)number(bag, k) - 1) * n + i % n] += e;
        size = fmax(size, fabs(e));
      }
      for (int64_t i = 0; i < bags * n; i++)
        CHECK_NEAR(number(y[0], i), expected[i], (double)count * size * tolerance_of((lt_Dtype)d));
      free(expected);
    }
}

/* ---- errors: the wrong index, its position, the valid range; nothing is written -------------- */

static void bad_indices_are_reported_and_change_nothing(void) {
  lt_Tensor *x = from_list(LT_float32, (double[]){1, 2, 3, 4, 5, 6}, SHAPE(3, 2));
  CHECK_FAILS(
      "index_select: expected an index from 1 to 3 for argument 'index', got 4 at index {2}",
      index_select, false, LT_ARG(x), LT_ARG(0), LT_ARG(V(int64, 1, 4)));
  CHECK_FAILS("expected an index from 1 to 3 for argument 'index', got 0 at index {1}",
              index_select, false, LT_ARG(x), LT_ARG(0), LT_ARG(V(int64, 0)));
  CHECK_CONTAINS(lt_error(), "\nhint: indices count from 1");
  CHECK_FAILS("expected an index from 1 to 3 for argument 'index', got -1 at index {1}",
              index_select, false, LT_ARG(x), LT_ARG(0), LT_ARG(V(int64, -1)));
  lt_Tensor *wrong = from_list(LT_int64, (double[]){1, 2, 1, 3}, SHAPE(2, 2));
  CHECK_FAILS("gather: expected an index from 1 to 2 for argument 'index', got 3 at index {2, 2}",
              gather, false, LT_ARG(x), LT_ARG(1), LT_ARG(wrong));
  CHECK_FAILS("scatter_: expected an index from 1 to 2 for argument 'index', got 3 at index {2, 2}",
              _scatter, true, LT_ARG(x), LT_ARG(1), LT_ARG(wrong), LT_ARG(9));
  CHECK_FAILS("for argument 'index', got 3", scatter_add, true, LT_ARG(x), LT_ARG(1), LT_ARG(wrong),
              LT_ARG(noise(LT_float32, SHAPE(2, 2), 1)));
  CHECK_FAILS("for argument 'index', got 9", index_fill, true, LT_ARG(x), LT_ARG(0),
              LT_ARG(V(int64, 1, 9)), LT_ARG(7));
  CHECK_FAILS("for argument 'index', got 9", index_copy, true, LT_ARG(x), LT_ARG(0),
              LT_ARG(V(int64, 1, 9)), LT_ARG(noise(LT_float32, SHAPE(2, 2), 1)));
  CHECK_FAILS("for argument 'index', got 9", index_add, true, LT_ARG(x), LT_ARG(0),
              LT_ARG(V(int64, 1, 9)), LT_ARG(noise(LT_float32, SHAPE(2, 2), 1)));
  CHECK_FAILS("expected an index from 1 to 3, or negative from the end, for argument 'index', got "
              "-4 at index {2}",
              _index, false, LT_ARG(x), TL(V(int64, 1, -4)), L(0));
  CHECK_FAILS("for argument 'index', got 0", _index_put, true, LT_ARG(x), TL(V(int64, 1, 0)), L(0),
              LT_ARG(V(float32, 9)), LT_ARG((bool)false));
  CHECK_FAILS("embedding: expected an index from 1 to 3 for argument 'input', got 7 at index {2}",
              embedding, false, LT_ARG(x), LT_ARG(V(int64, 1, 7)));
  CHECK_FAILS("cannot index an empty dimension", index_select, false,
              LT_ARG(noise(LT_float32, SHAPE(0, 2), 1)), LT_ARG(0), LT_ARG(V(int64, 1)));
  CHECK_TENSOR(x, 0, L(3, 2), 1, 2, 3, 4, 5, 6);
}

static void empty_indices(void) {
  lt_Tensor *x = noise(LT_float32, SHAPE(3, 2), 1),
            *none = lt_scope_own(lt_empty(LT_int64, lt_cpu(), SHAPE(0))), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, index_select, false, LT_ARG(x), LT_ARG(0), LT_ARG(none)));
  CHECK_INT(y[0]->shape[0], 0);
  REQUIRE(RUN_OP(y, index_add, false, LT_ARG(x), LT_ARG(0), LT_ARG(none),
                 LT_ARG(noise(LT_float32, SHAPE(0, 2), 1))));
  REQUIRE(RUN_OP(y, _index, false, LT_ARG(x), TL(none), L(0)));
  CHECK_INT(y[0]->numel, 0);
  REQUIRE(RUN_OP(y, _scatter, false, LT_ARG(x), LT_ARG(0),
                 LT_ARG(lt_scope_own(lt_empty(LT_int64, lt_cpu(), SHAPE(0, 2)))), LT_ARG(1)));
  REQUIRE(RUN_OP(y, gather, false, LT_ARG(x), LT_ARG(0),
                 LT_ARG(lt_scope_own(lt_empty(LT_int64, lt_cpu(), SHAPE(0, 2))))));
  REQUIRE(RUN_OP(y, embedding, false, LT_ARG(x), LT_ARG(none)));
  CHECK_INT(y[0]->shape[1], 2);
}

/* ---- rearranging ----------------------------------------------------------------------------- */

static void cat_joins_any_layouts_and_dtypes(void) {
  for (int dim = 0; dim < 3; dim++)
    for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1)) {
      int64_t shape[3] = {3, 4, 5}, other[3] = {3, 4, 5};
      other[dim] = 2;
      lt_Tensor *a = noise((lt_Dtype)d, 3, shape, 1),
                *b = laid_out(noise((lt_Dtype)d, 3, other, 2), 1 + dim % 2);
      lt_Tensor *none = lt_scope_own(lt_empty((lt_Dtype)d, lt_cpu(), SHAPE(0))), *y[LT_MAX_OUT];
      if (!RUN_OP(y, cat, false, TL(a, none, b, a), LT_ARG(dim))) return;
      CHECK_INT(y[0]->shape[dim], 2 * shape[dim] + 2);
      for (int64_t i = 0; i < y[0]->numel; i++) {
        int64_t p[LT_MAX_DIMS], n = shape[dim];
        unflat(y[0], i, p);
        lt_Tensor *from = p[dim] >= n && p[dim] < n + 2 ? b : a;
        p[dim] = p[dim] < n ? p[dim] : p[dim] < n + 2 ? p[dim] - n : p[dim] - n - 2;
        CHECK(same(element(y[0], i), element(from, flat(from, p))));
      }
    }
  lt_Tensor *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, cat, false, TL(V(int64, 1, 2), V(float32, 0.5)), LT_ARG(0)));
  CHECK_INT(y[0]->dtype, LT_float32);
  CHECK_TENSOR(y[0], 0, L(3), 1, 2, 0.5);
}

static void triangles_keep_their_part(void) {
  for (int64_t diagonal = -6; diagonal <= 7; diagonal++)
    for (int layout = 0; layout < 3; layout++) {
      lt_Tensor *x = noise(LT_float32, SHAPE(2, 4, 5), 1), *up[LT_MAX_OUT], *low[LT_MAX_OUT];
      if (!RUN_OP(up, triu, false, LT_ARG(laid_out(x, layout)), LT_ARG(diagonal))) return;
      if (!RUN_OP(low, tril, false, LT_ARG(laid_out(x, layout)), LT_ARG(diagonal))) return;
      for (int64_t i = 0; i < 40; i++) {
        int64_t row = i / 5 % 4, column = i % 5;
        CHECK_NEAR(number(up[0], i), column - row >= diagonal ? number(x, i) : 0, 0);
        CHECK_NEAR(number(low[0], i), column - row <= diagonal ? number(x, i) : 0, 0);
      }
      lt_Tensor *up_x = laid_out(noise(LT_float32, SHAPE(2, 4, 5), 1), layout),
                *low_x = laid_out(noise(LT_float32, SHAPE(2, 4, 5), 1), layout), *y[LT_MAX_OUT];
      if (!RUN_OP(y, triu, true, LT_ARG(up_x), LT_ARG(diagonal))) return;
      if (!RUN_OP(y, tril, true, LT_ARG(low_x), LT_ARG(diagonal))) return;
      for (int64_t i = 0; i < 40; i++) {
        CHECK_NEAR(number(up_x, i), number(up[0], i), 0);
        CHECK_NEAR(number(low_x, i), number(low[0], i), 0);
      }
    }
  lt_Tensor *y[LT_MAX_OUT], *x = noise(LT_bool, SHAPE(2, 2), 1);
  REQUIRE(RUN_OP(y, triu, false, LT_ARG(x), LT_ARG(INT64_MAX)));
  CHECK_TENSOR(y[0], 0, L(2, 2), 0, 0, 0, 0);
  REQUIRE(RUN_OP(y, tril, false, LT_ARG(x), LT_ARG(INT64_MIN)));
  CHECK_TENSOR(y[0], 0, L(2, 2), 0, 0, 0, 0);
}

static void flip_and_roll(void) {
  for (int layout = 0; layout < 3; layout++)
    for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 2))
      for (unsigned mask = 1; mask < 8; mask++) {
        lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(3, 4, 5), 1), layout), *y[LT_MAX_OUT],
                  *r[LT_MAX_OUT];
        int64_t dims[3], shifts[3], n = 0;
        for (int k = 0; k < 3; k++)
          if (mask >> k & 1) {
            shifts[n] = 7 * k - 5;
            dims[n++] = k;
          }
        if (!RUN_OP(y, flip, false, LT_ARG(x), LT_INTS(dims, (int)n))) return;
        if (!RUN_OP(r, roll, false, LT_ARG(x), LT_INTS(shifts, (int)n), LT_INTS(dims, (int)n)))
          return;
        for (int64_t i = 0; i < 60; i++) {
          int64_t p[LT_MAX_DIMS], q[LT_MAX_DIMS];
          unflat(x, i, p);
          memcpy(q, p, sizeof q);
          for (int k = 0; k < 3; k++)
            if (mask >> k & 1) {
              p[k] = x->shape[k] - 1 - p[k];
              q[k] = (q[k] + 7 * k - 5 + 70 * x->shape[k]) % x->shape[k];
            }
          CHECK(same(element(y[0], flat(x, p)), element(x, i)));
          CHECK(same(element(r[0], flat(x, q)), element(x, i)));
        }
      }
  lt_Tensor *y[LT_MAX_OUT], *x = from_list(LT_int8, (double[]){1, 2, 3, 4, 5, 6}, SHAPE(2, 3));
  REQUIRE(RUN_OP(y, roll, false, LT_ARG(x), L(2)));
  CHECK_TENSOR(y[0], 0, L(2, 3), 5, 6, 1, 2, 3, 4);
}

/* ---- factories ------------------------------------------------------------------------------- */

static void factories_count(void) {
  lt_Tensor *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _arange, false, LT_ARG(1), LT_ARG(10), LT_ARG(3)));
  CHECK_INT(y[0]->dtype, LT_int64);
  CHECK_TENSOR(y[0], 0, L(4), 1, 4, 7, 10);
  REQUIRE(RUN_OP(y, _arange, false, LT_ARG(1), LT_ARG(-1), LT_ARG(-0.5)));
  CHECK_TENSOR(y[0], 0, L(5), 1, 0.5, 0, -0.5, -1);
  REQUIRE(
      RUN_OP(y, _arange, false, LT_ARG(0), LT_ARG(1), LT_ARG(0.1), lt_arg_dtype(widest_float())));
  CHECK_NEAR(number(y[0], 10), 1, has_dtype(LT_float64) ? 1e-15 : 0);
  REQUIRE(RUN_OP(y, _arange, false, LT_ARG(250), LT_ARG(255), LT_ARG(1), D(uint8)));
  CHECK_TENSOR(y[0], 0, L(6), 250, 251, 252, 253, 254, 255);
  REQUIRE(RUN_OP(y, linspace, false, LT_ARG(0), LT_ARG(1), LT_ARG(5), D(float16)));
  CHECK_TENSOR(y[0], 0, L(5), 0, 0.25, 0.5, 0.75, 1);
  REQUIRE(RUN_OP(y, linspace, false, LT_ARG(0.1), LT_ARG(0.7), LT_ARG(1000)));
  CHECK_NEAR(number(y[0], 0), (double)0.1f, 0);
  CHECK_NEAR(number(y[0], 999), (double)0.7f, 0);
  REQUIRE(RUN_OP(y, linspace, false, LT_ARG(3), LT_ARG(9), LT_ARG(1)));
  CHECK_TENSOR(y[0], 0, L(1), 3);
  REQUIRE(RUN_OP(y, eye, false, LT_ARG(2), LT_ARG(3), D(bfloat16)));
  CHECK_TENSOR(y[0], 0, L(2, 3), 1, 0, 0, 0, 1, 0);
  REQUIRE(RUN_OP(y, eye, false, LT_ARG(0)));
  CHECK_INT(y[0]->numel, 0);
}

/* ---- sizes that several threads share -------------------------------------------------------- */

/* Writes into `expected`, the elements of x, what a scatter with this index does; without src, of
 * the number 1. */
static void scatter_slowly(double *expected, const lt_Tensor *x, int dim, const lt_Tensor *index,
                           const lt_Tensor *src, int how) {
  for (int64_t i = 0; i < x->numel; i++) expected[i] = number(x, i);
  for (int64_t i = 0; i < index->numel; i++) {
    int64_t p[LT_MAX_DIMS], q[LT_MAX_DIMS];
    unflat(index, i, p);
    memcpy(q, p, sizeof q);
    q[dim] = (int64_t)number(index, i) - 1;
    double v = src ? number(src, flat(src, p)) : 1, *to = &expected[flat(x, q)];
    *to = how == 0 ? v : how == 1 ? *to + v : how == 2 ? fmax(*to, v) : fmin(*to, v);
  }
}

static void threads_share_scatters(void) {
  static double expected[30 * 40 * 50];
  static const int64_t shapes[][3] = {{30, 40, 50}, {30, 40, 50}, {1, 40, 700}};
  for (int d = 0; d < 2; d++)
    for (int dim = 0; dim < 3; dim++)
      for (int how = 0; how < 4; how++) {
        lt_Dtype dtype = next_dtype(d ? LT_int32 : LT_float32);
        lt_Tensor *x = noise(dtype, SHAPE(30, 40, 50), 5), *y[LT_MAX_OUT];
        const int64_t *s = shapes[dim]; /* the index is longer than x along the last dim */
        lt_Tensor *index = random_indices(x->shape[dim], 3, s, 6), *src = noise(dtype, 3, s, 7);
        lt_Arg arg[] = {LT_ARG(x), LT_ARG(dim), LT_ARG(index), LT_ARG(src),
                        S(how == 2 ? "amax" : "amin")};
        lt_OpId op = how == 0   ? LT_OP__scatter
                     : how == 1 ? LT_OP_scatter_add
                                : LT_OP__scatter_reduce;
        if (!run_op(__FILE__, __LINE__, op, false, arg, how < 2 ? 4 : 5, y)) return;
        scatter_slowly(expected, x, dim, index, src, how);
        for (int64_t i = 0; i < x->numel; i++) CHECK_NEAR(number(y[0], i), expected[i], 1e-4);
      }
}

/* Rows of few elements: the index is as large as x, or smaller along any dim; src is as large as
 * the index, or as x. */
static void threads_share_short_rows(void) {
  static double expected[300 * 20 * 6];
  static const int64_t shapes[][3] = {{300, 20, 6}, {300, 20, 1}, {299, 20, 6}, {300, 19, 6},
                                      {300, 20, 5}, {1, 20, 6},   {300, 1, 6},  {3, 1, 2}};
  static const lt_Dtype dtypes[] = {LT_bool, LT_int16, LT_float32, LT_float64, LT_complex128};
  for (int t = 0; t < 5; t++)
    for (int n = 0; n < 8 * 3 * 3; n++) {
      int dim = n / 8 % 3, layout = n / 24;
      lt_Dtype d = dtypes[t];
      if ((int)next_dtype(d) != (int)d) continue;
      lt_Tensor *x = laid_out(noise(d, SHAPE(300, 20, 6), 3), layout), *y[LT_MAX_OUT];
      lt_Tensor *index = random_indices(x->shape[dim], 3, shapes[n % 8], 4);
      lt_Tensor *src = noise(d, 3, layout ? shapes[n % 8] : x->shape, 8);
      if (!RUN_OP(y, gather, false, LT_ARG(x), LT_ARG(dim), LT_ARG(index))) return;
      check_gathered(y[0], x, dim, index);
      for (int how = 0; how < (d == LT_int16 || d == LT_float32 ? 4 : 1); how++) {
        lt_Arg arg[] = {LT_ARG(x), LT_ARG(dim), LT_ARG(index), LT_ARG(src),
                        S(how == 2 ? "amax" : "amin")};
        lt_OpId op = how == 0   ? LT_OP__scatter
                     : how == 1 ? LT_OP_scatter_add
                                : LT_OP__scatter_reduce;
        if (!run_op(__FILE__, __LINE__, op, false, arg, how < 2 ? 4 : 5, y)) return;
        scatter_slowly(expected, x, dim, index, src, how);
        for (int64_t i = 0; i < x->numel; i++)
          CHECK_NEAR(number(y[0], i), expected[i], d == LT_float32 ? 1e-4 : 0);
      }
      if (!RUN_OP(y, _scatter, false, LT_ARG(x), LT_ARG(dim), LT_ARG(index), LT_ARG(1))) return;
      scatter_slowly(expected, x, dim, index, NULL, 0);
      for (int64_t i = 0; i < x->numel; i++) CHECK(number(y[0], i) == expected[i]);
    }
}

static void threads_share_reads(void) {
  for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1))
    for (int dim = 0; dim < 3; dim++) {
      lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(30, 40, 50), 3), dim), *y[LT_MAX_OUT];
      lt_Tensor *index = random_indices(x->shape[dim], SHAPE(29, 40, 50), 4);
      if (!RUN_OP(y, gather, false, LT_ARG(x), LT_ARG(dim), LT_ARG(index))) return;
      check_gathered(y[0], x, dim, index);
      lt_Tensor *long_at = random_indices(x->shape[dim], SHAPE(30, 40, 80), 4);
      if (dim == 2 && RUN_OP(y, gather, false, LT_ARG(x), LT_ARG(dim), LT_ARG(long_at)))
        for (int64_t i = 0; i < y[0]->numel; i++)
          CHECK(same(element(y[0], i), element(x, i / 80 * 50 + (int64_t)number(long_at, i) - 1)));
      lt_Tensor *line = noise((lt_Dtype)d, SHAPE(700), 3),
                *at = random_indices(700, SHAPE(60000), 9);
      if (!RUN_OP(y, _index, false, LT_ARG(line), TL(at), L(0))) return;
      for (int64_t i = 0; i < 60000; i++)
        CHECK(same(element(y[0], i), element(line, (int64_t)number(at, i) - 1)));
    }
}

static void threads_share_sums_of_rows(void) {
  static const int64_t shapes[][3] = {{1, 300, 100}, {64, 50, 7}, {1, 20000, 1}};
  for (int s = 0; s < 3; s++) {
    const int64_t *shape = shapes[s], k = 2 * shape[1];
    lt_Tensor *x = noise(LT_float32, 3, shape, 1), *index = random_indices(shape[1], SHAPE(k), 2);
    lt_Tensor *from = noise(LT_float32, SHAPE(shape[0], k, shape[2]), 3), *y[LT_MAX_OUT];
    double *expected = calloc((size_t)x->numel, sizeof *expected);
    REQUIRE(expected);
    for (int64_t i = 0; i < x->numel; i++) expected[i] = number(x, i);
    for (int64_t i = 0; i < from->numel; i++) {
      int64_t p[LT_MAX_DIMS];
      unflat(from, i, p);
      p[1] = (int64_t)number(index, p[1]) - 1;
      expected[flat(x, p)] += 2 * number(from, i);
    }
    if (RUN_OP(y, index_add, false, LT_ARG(x), LT_ARG(1), LT_ARG(index), LT_ARG(from), LT_ARG(2)))
      for (int64_t i = 0; i < x->numel; i++) CHECK_NEAR(number(y[0], i), expected[i], 1e-5);
    free(expected);
  }
}

/* Of equal indices the last wins. */
static void threads_share_puts(void) {
  for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1))
    for (int64_t columns = 1; columns < 8; columns += 3) {
      static int64_t last[700];
      lt_Tensor *x = noise((lt_Dtype)d, SHAPE(700, columns), 3), *y[LT_MAX_OUT];
      lt_Tensor *at = random_indices(600, SHAPE(20000), 9),
                *values = noise((lt_Dtype)d, SHAPE(20000, columns), 4);
      if (!RUN_OP(y, _index_put, false, LT_ARG(x), TL(at), L(0), LT_ARG(values), LT_ARG(false)))
        return;
      memset(last, -1, sizeof last);
      for (int64_t i = 0; i < 20000; i++) last[(int64_t)number(at, i) - 1] = i;
      for (int64_t i = 0; i < x->numel; i++) {
        int64_t from = last[i / columns];
        CHECK(same(element(y[0], i),
                   from < 0 ? element(x, i) : element(values, from * columns + i % columns)));
      }
    }
}

static void threads_share_masks(void) {
  static const int64_t shapes[][2] = {{1, 60000}, {3, 20000}, {20000, 3}};
  for (int s = 0; s < 3; s++)
    for (int d = next_dtype(0); d < LT_DTYPE_COUNT; d = next_dtype(d + 1)) {
      int skip = s == 0; /* of one dim */
      lt_Tensor *x = noise((lt_Dtype)d, 2 - skip, shapes[s] + skip, 1), *y[LT_MAX_OUT];
      lt_Tensor *mask = noise(LT_bool, 2 - skip, shapes[s] + skip, 2), *where[LT_MAX_OUT];
      lt_Tensor *source = noise((lt_Dtype)d, SHAPE(60000), 3), *all[LT_MAX_OUT];
      if (!RUN_OP(y, masked_select, false, LT_ARG(x), LT_ARG(mask)) ||
          !RUN_OP(where, nonzero, false, LT_ARG(mask)) ||
          !RUN_OP(all, masked_scatter, false, LT_ARG(x), LT_ARG(mask), LT_ARG(source)))
        return;
      int64_t n = 0;
      for (int64_t i = 0; i < 60000; i++) {
        bool taken = element(mask, i).i;
        CHECK(same(element(all[0], i), element(taken ? source : x, taken ? n : i)));
        if (!taken) continue;
        REQUIRE(n < y[0]->numel && n < where[0]->shape[0]);
        CHECK(same(element(y[0], n), element(x, i)));
        if (!skip) CHECK_INT(number(where[0], 2 * n), i / shapes[s][1] + 1);
        CHECK_INT(number(where[0], (2 - skip) * n + 1 - skip), i % shapes[s][1] + 1);
        n++;
      }
      CHECK_INT(y[0]->numel, n);
      CHECK_INT(where[0]->shape[0], n);
    }
}

/* The first bad index is named, wherever it is. In place, nothing is written. */
static void threads_share_checks(void) {
  lt_Tensor *x = noise(LT_float32, SHAPE(300, 200), 5),
            *index = random_indices(200, SHAPE(300, 200), 6);
  lt_Tensor *src = noise(LT_float32, SHAPE(300, 200), 7);
  ((int64_t *)lt_tensor_data(index))[150 * 200 + 19] = 201;
  ((int64_t *)lt_tensor_data(index))[299 * 200 + 199] = INT64_MIN;
  const char *message = "got 201 at index {151, 20}";
  CHECK_FAILS(message, scatter_add, false, LT_ARG(x), LT_ARG(1), LT_ARG(index), LT_ARG(src));
  CHECK_FAILS(message, scatter_add, true, LT_ARG(x), LT_ARG(1), LT_ARG(index), LT_ARG(src));
  CHECK_FAILS(message, gather, false, LT_ARG(x), LT_ARG(1), LT_ARG(index));
  lt_Tensor *again = noise(LT_float32, SHAPE(300, 200), 5);
  for (int64_t i = 0; i < x->numel; i++) CHECK(number(x, i) == number(again, i));
  ((int64_t *)lt_tensor_data(index))[150 * 200 + 19] = 200;
  CHECK_FAILS("at index {300, 200}", gather, false, LT_ARG(x), LT_ARG(1), LT_ARG(index));
  lt_Tensor *rows = noise(LT_float32, SHAPE(10000, 3), 5),
            *few = random_indices(3, SHAPE(10000, 3), 6);
  for (int wrong = 0; wrong < 2; wrong++) { /* in rows of few elements */
    ((int64_t *)lt_tensor_data(few))[9998 * 3 + 1] = wrong ? 4 : 0;
    message = wrong ? "got 4 at index {9999, 2}" : "got 0 at index {9999, 2}";
    CHECK_FAILS(message, gather, false, LT_ARG(rows), LT_ARG(1), LT_ARG(few));
    CHECK_FAILS(message, scatter_add, false, LT_ARG(rows), LT_ARG(1), LT_ARG(few), LT_ARG(rows));
    CHECK_FAILS(message, _scatter, true, LT_ARG(rows), LT_ARG(1), LT_ARG(few), LT_ARG(7));
  }
  lt_Tensor *as_before = noise(LT_float32, SHAPE(10000, 3), 5);
  for (int64_t i = 0; i < rows->numel; i++) CHECK(number(rows, i) == number(as_before, i));
}

static void threads_share(void) {
  int threads = lt_num_threads();
  for (int n = 1; n <= 3; n += 2) {
    lt_set_num_threads(n);
    IN_SCOPE(threads_share_scatters());
    IN_SCOPE(threads_share_short_rows());
    IN_SCOPE(threads_share_reads());
    IN_SCOPE(threads_share_sums_of_rows());
    IN_SCOPE(threads_share_puts());
    IN_SCOPE(threads_share_masks());
    IN_SCOPE(threads_share_checks());
  }
  lt_set_num_threads(threads);
}

int main(void) {
  RUN_SCOPED(index_select_reads_by_index);
  RUN_SCOPED(gather_has_an_index_for_each_element);
  RUN_SCOPED(scatter_has_an_index_for_each_element);
  RUN_SCOPED(scatters_of_slices_have_one_index_each);
  RUN_SCOPED(rows_are_added_copied_and_filled);
  RUN_SCOPED(several_indices_follow_numpy);
  RUN_SCOPED(index_put_writes_elements);
  RUN_SCOPED(masks_select_and_scatter);
  RUN_SCOPED(embedding_reads_rows_and_sums_their_gradients);
  RUN_SCOPED(sums_of_rows_by_bag);
  RUN_SCOPED(bad_indices_are_reported_and_change_nothing);
  RUN_SCOPED(empty_indices);
  RUN_SCOPED(cat_joins_any_layouts_and_dtypes);
  RUN_SCOPED(triangles_keep_their_part);
  RUN_SCOPED(flip_and_roll);
  RUN_SCOPED(factories_count);
  RUN_SCOPED(threads_share);
  return check_end();
}
