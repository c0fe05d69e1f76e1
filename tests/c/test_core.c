/* test_core.c: dtypes, numbers, shapes, storages, views, the layouts of loops; and that a failed
 * call changes nothing. */
#include "opids.h"
#include "check.h"
#include "core.h"
#include "half.h"

#include <float.h>

static lt_Tensor *zeros(lt_Dtype dtype, int ndim, const int64_t *shape) {
  return lt_op1(LT_OP_zeros, (lt_Arg[]){LT_INTS(shape, ndim), lt_arg_dtype(dtype)}, 2);
}
#define SHAPE(...)                                                                                 \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* torch.promote_types of PyTorch 1.13, in the order of dtypes.def. */
static void dtypes_promote_as_in_pytorch(void) {
#define b LT_bool
#define u LT_uint8
#define c LT_int8
#define s LT_int16
#define i LT_int32
#define l LT_int64
#define h LT_float16
#define w LT_bfloat16
#define f LT_float32
#define d LT_float64
#define z LT_complex64
#define Z LT_complex128
  static const lt_Dtype expected[LT_DTYPE_COUNT][LT_DTYPE_COUNT] = {
      {b, u, c, s, i, l, h, w, f, d, z, Z}, {u, u, s, s, i, l, h, w, f, d, z, Z},
      {c, s, c, s, i, l, h, w, f, d, z, Z}, {s, s, s, s, i, l, h, w, f, d, z, Z},
      {i, i, i, i, i, l, h, w, f, d, z, Z}, {l, l, l, l, l, l, h, w, f, d, z, Z},
      {h, h, h, h, h, h, h, f, f, d, z, Z}, {w, w, w, w, w, w, f, w, f, d, z, Z},
      {f, f, f, f, f, f, f, f, f, d, z, Z}, {d, d, d, d, d, d, d, d, d, d, Z, Z},
      {z, z, z, z, z, z, z, z, z, Z, z, Z}, {Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z}};
#undef b
#undef u
#undef c
#undef s
#undef i
#undef l
#undef h
#undef w
#undef f
#undef d
#undef z
#undef Z
  for (int x = 0; x < LT_DTYPE_COUNT; x++)
    for (int y = 0; y < LT_DTYPE_COUNT; y++)
      CHECK_INT(lt_dtype_promote((lt_Dtype)x, (lt_Dtype)y), expected[x][y]);
}

static void dtypes_have_names(void) {
  for (int d = 0; d < LT_DTYPE_COUNT; d++)
    CHECK_INT(lt_dtype_from_name(lt_dtype_name((lt_Dtype)d)), d);
  CHECK_INT(lt_dtype_from_name("float8"), LT_DTYPE_NONE);
  CHECK_CONTAINS(lt_error(), "expected a dtype (bool, uint8");
  CHECK(!lt_dtype_set_default(LT_int64));
  CHECK_CONTAINS(lt_error(),
                 "set_default_dtype: expected a float dtype for argument 'dtype', got \"int64\"");
}

/* Only the category of numbers matters; the same is true of 0-d tensors beside others. */
static void numbers_take_part_in_promotion(void) {
  lt_Tensor *bytes = zeros(LT_int8, SHAPE(2)), *half = zeros(LT_float16, SHAPE(2)),
            *one = zeros(LT_float64, 0, NULL);
  const lt_Arg pairs[][2] = {{LT_ARG(bytes), lt_arg_scalar(lt_scalar_int(300))},
                             {LT_ARG(bytes), lt_arg_scalar(lt_scalar_float(0.5))},
                             {LT_ARG(half), lt_arg_scalar(lt_scalar_float(0.5))},
                             {LT_ARG(half), LT_ARG(one)},
                             {LT_ARG(bytes), LT_ARG(one)},
                             {LT_ARG(one), lt_arg_scalar(lt_scalar_int(1))},
                             {LT_ARG(bytes), LT_ARG(half)}};
  const lt_Dtype expected[] = {LT_int8,    LT_float32, LT_float16, LT_float16,
                               LT_float64, LT_float64, LT_float16};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    CHECK_INT(lt_result_type(pairs[i], 2), expected[i]);
  lt_release(bytes);
  lt_release(half);
  lt_release(one);
}

/* ---- float16 and bfloat16 -------------------------------------------------------------------- */

/* Returns the value of binary16's fields, by definition (IEEE 754-2008, 3.4). */
static double half_value(unsigned bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
  return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static void every_half_is_its_value(void) {
  for (unsigned bits = 0; bits < 65536; bits++) {
    lt_half h = {(uint16_t)bits};
    float f = lt_half_to_float(h);
    double expected = half_value(bits);
    if (isnan(expected)) {
      CHECK(isnan(f) && isnan(lt_half_to_float(lt_half_from_float(f))));
      continue;
    }
    CHECK((double)f == expected);
    CHECK(lt_half_from_float(f).bits == bits); /* and back, with the sign of zero */
    CHECK(lt_half_from_double(expected).bits == bits);
    CHECK(lt_bfloat16_to_float(lt_bfloat16_from_float(lt_bits_float(bits << 16))) ==
              lt_bits_float(bits << 16) ||
          isnan(lt_bits_float(bits << 16)));
  }
}

/* Between two neighbours: the nearer one, in the middle the even one. */
static void halves_round_to_nearest_even(void) {
  for (unsigned bits = 0; bits < 0x7bff; bits++) {
    double low = half_value(bits), high = half_value(bits + 1), middle = (low + high) / 2;
    CHECK(lt_half_from_float((float)middle).bits == (bits & 1 ? bits + 1 : bits));
    CHECK(lt_half_from_float(nextafterf((float)middle, 0)).bits == bits);
    CHECK(lt_half_from_float(nextafterf((float)middle, INFINITY)).bits == bits + 1);
    CHECK(lt_half_from_double(nextafter(middle, INFINITY)).bits ==
          bits + 1); /* no double rounding */
  }
  CHECK_INT(lt_half_from_float(65519.996f).bits, 0x7bff);
  CHECK_INT(lt_half_from_float(65520.0f).bits, 0x7c00);
  CHECK_INT(lt_half_from_float(-FLT_MAX).bits, 0xfc00);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void numbers_that_do_not_fit_are_refused(void) {
  char element[16];
  CHECK(lt_scalar_store(lt_scalar_float(2.9), LT_int8, element) && *(int8_t *)element == 2);
  CHECK(lt_scalar_store(lt_scalar_float(-2.9), LT_int64, element) && *(int64_t *)element == -2);
  CHECK(lt_scalar_store(lt_scalar_int(255), LT_uint8, element) && *(uint8_t *)element == 255);
  CHECK(!lt_scalar_store(lt_scalar_int(256), LT_uint8, element));
  CHECK_CONTAINS(lt_error(), "cannot convert the number 256 to \"uint8\": it does not fit");
  CHECK(!lt_scalar_store(lt_scalar_int(-1), LT_uint8, element));
  CHECK(!lt_scalar_store(lt_scalar_int(128), LT_int8, element));
  CHECK(!lt_scalar_store(lt_scalar_float(NAN), LT_int32, element));
  CHECK_CONTAINS(lt_error(), "cannot convert the number nan to \"int32\": it does not fit");
  CHECK(!lt_scalar_store(lt_scalar_float(INFINITY), LT_int64, element));
  CHECK(!lt_scalar_store(lt_scalar_float(9223372036854775808.0), LT_int64, element));
  CHECK(lt_scalar_store(lt_scalar_float(NAN), LT_bool, element) && *(uint8_t *)element == 1);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void shapes_are_counted_without_overflow(void) {
  int64_t n;
  CHECK(lt_shape_numel("f", SHAPE(3, 0, 1000000), &n) && n == 0);
  CHECK(lt_shape_numel("f", 0, NULL, &n) && n == 1);
  CHECK(!lt_shape_numel("f", SHAPE(1LL << 31, 1LL << 31, 4), &n));
  CHECK_CONTAINS(lt_error(), "f: cannot create a tensor of shape {2147483648, 2147483648, 4}: its "
                             "number of elements overflows");
  CHECK(lt_shape_numel("f", SHAPE(1LL << 40, 0, 1LL << 40), &n) && n == 0);
  CHECK(!lt_shape_numel("f", SHAPE(2, -1), &n));
  CHECK_CONTAINS(lt_error(),
                 "f: expected sizes of at least 0, got -1 at dim 2 of the shape {2, -1}");
  CHECK(!lt_empty(LT_float32, lt_cpu(), SHAPE(1LL << 50)));
  CHECK(lt_error_is_memory());
  CHECK_CONTAINS(lt_error(), "out of memory on \"cpu\"");
  int64_t many[LT_MAX_DIMS + 1] = {0};
  CHECK(!lt_empty(LT_float32, lt_cpu(), LT_MAX_DIMS + 1, many));
}

static void shapes_broadcast(void) {
  int ndim = 2;
  int64_t shape[LT_MAX_DIMS] = {3, 1};
  CHECK(lt_shape_broadcast(&ndim, shape, SHAPE(5, 1, 4)));
  CHECK_STR(lt_shape_text(ndim, shape), "{5, 3, 4}");
  CHECK(!lt_shape_broadcast(&ndim, shape, SHAPE(2, 4)));
  CHECK_STR(lt_shape_text(ndim, shape), "{5, 3, 4}");
  ndim = 1;
  shape[0] = 1;
  CHECK(lt_shape_broadcast(&ndim, shape, SHAPE(0)) && shape[0] == 0);
}

/* ---- storages -------------------------------------------------------------------------------- */

static void memory_is_counted(void) {
  int64_t before = lt_memory_live();
  lt_Tensor *x = lt_empty(LT_float64, lt_cpu(), SHAPE(1000));
  CHECK_INT(lt_memory_live() - before, 8000);
  lt_Tensor *view =
      lt_op1(LT_OP_view, (lt_Arg[]){LT_ARG(x), LT_INTS(((int64_t[]){10, 100}), 2)}, 2);
  lt_Tensor *meta = lt_empty(LT_float64, lt_meta(), SHAPE(1LL << 50));
  CHECK(meta && !lt_tensor_data(meta));
  CHECK_INT(lt_memory_live() - before, 8000);
  lt_release(x);
  CHECK_INT(lt_memory_live() - before, 8000); /* the view holds it */
  CHECK(lt_tensor_free(view) && view->numel == 0);
  CHECK_INT(lt_memory_live() - before, 0);
  lt_release(view);
  lt_release(meta);
}

static void large_memory_is_aligned(void) {
  lt_Tensor *x = lt_empty(LT_uint8, lt_cpu(), SHAPE(100000));
  CHECK((uintptr_t)lt_tensor_data(x) % 64 == 0);
  lt_release(x);
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* Returns a loop over operands of the given strides (in elements of 4 bytes). */
static lt_Loop loop(int ndim, const int64_t *shape, int operands, int64_t strides[][3]) {
  lt_Loop l = {.inputs = operands - 1, .ndim = ndim};
  for (int i = 0; i < ndim; i++) l.shape[i] = shape[i];
  for (int k = 0; k < operands; k++) {
    l.operand[k].dtype = LT_float32;
    for (int i = 0; i < ndim; i++) l.operand[k].strides[i] = 4 * strides[k][i];
  }
  lt_loop_collapse(&l);
  return l;
}

static void layouts_collapse(void) {
  lt_Loop l = loop(3, (int64_t[]){2, 3, 4}, 2, (int64_t[][3]){{12, 4, 1}, {12, 4, 1}});
  CHECK(l.layout == LT_LAYOUT_CONTIGUOUS && l.ndim == 1 && l.shape[0] == 24);
  l = loop(3, (int64_t[]){2, 3, 4}, 2, (int64_t[][3]){{1, 2, 6}, {1, 2, 6}}); /* both transposed */
  CHECK(l.layout == LT_LAYOUT_CONTIGUOUS && l.shape[0] == 24);
  l = loop(3, (int64_t[]){2, 3, 4}, 3, (int64_t[][3]){{12, 4, 1}, {12, 4, 1}, {0, 0, 0}});
  CHECK(l.layout == LT_LAYOUT_SCALAR && l.ndim == 1 && l.shape[0] == 24);
  l = loop(2, (int64_t[]){3, 4}, 3,
           (int64_t[][3]){{4, 1}, {4, 1}, {0, 1}}); /* one row, broadcast */
  CHECK(l.layout == LT_LAYOUT_INNER && l.ndim == 2 && l.shape[1] == 4);
  l = loop(2, (int64_t[]){3, 4}, 2, (int64_t[][3]){{4, 1}, {1, 3}});
  CHECK(l.layout == LT_LAYOUT_GENERAL && l.ndim == 2);
  l = loop(2, (int64_t[]){3, 1}, 2,
           (int64_t[][3]){{1, 7}, {1, 9}}); /* the stride of a dimension of size 1 is ignored */
  CHECK(l.layout == LT_LAYOUT_CONTIGUOUS && l.ndim == 1 && l.shape[0] == 3);
  l = loop(2, (int64_t[]){1, 1}, 2, (int64_t[][3]){{1, 1}, {0, 0}});
  CHECK(l.layout == LT_LAYOUT_CONTIGUOUS && l.shape[0] == 1);
  l = loop(2, (int64_t[]){3, 0}, 2, (int64_t[][3]){{1, 1}, {1, 1}});
  CHECK(l.layout == LT_LAYOUT_EMPTY);
}

static lt_Tensor *strided(lt_Tensor *x, const int64_t *size, const int64_t *stride,
                          int64_t offset) {
  return lt_tensor_on(x->storage, x->dtype, offset, 2, size, stride);
}

static void overlap_is_detected(void) {
  lt_Tensor *x = zeros(LT_float32, SHAPE(20));
  lt_Tensor *a = strided(x, (int64_t[]){4, 5}, (int64_t[]){5, 1}, 0);
  lt_Tensor *expanded = strided(x, (int64_t[]){4, 5}, (int64_t[]){0, 1}, 0);
  lt_Tensor *windows = strided(x, (int64_t[]){4, 5}, (int64_t[]){1, 1}, 0);
  lt_Tensor *columns = strided(x, (int64_t[]){4, 2}, (int64_t[]){5, 2}, 0);
  lt_Tensor *late = strided(x, (int64_t[]){1, 5}, (int64_t[]){5, 1}, 15);
  lt_Tensor *early = strided(x, (int64_t[]){3, 5}, (int64_t[]){5, 1}, 0);
  CHECK(!lt_tensor_overlaps_itself(a) && !lt_tensor_overlaps_itself(columns));
  CHECK(lt_tensor_overlaps_itself(expanded) && lt_tensor_overlaps_itself(windows));
  CHECK(!lt_tensor_overlaps(a, a)); /* the same elements in the same order */
  CHECK(lt_tensor_overlaps(a, columns) && lt_tensor_overlaps(late, a));
  CHECK(!lt_tensor_overlaps(early, late));
  lt_Tensor *all[] = {x, a, expanded, windows, columns, late, early};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) lt_release(all[i]);
}

/* Marks the bytes of t, whose storage has at most 256. */
static void mark_bytes(const lt_Tensor *t, bool *bytes) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype);
  for (int64_t i = 0; i < t->shape[0]; i++)
    for (int64_t j = 0; j < t->shape[1]; j++)
      for (int64_t k = 0; k < size; k++)
        bytes[(t->offset + i * t->strides[0] + j * t->strides[1]) * size + k] = true;
}

/* Compares random pairs of strided tensors on one storage with their bytes: no overlap is missed,
 * and the overlap of blocks of one matrix is exact. */
static void overlap_agrees_with_the_bytes(void) {
  static const lt_Dtype dtypes[] = {LT_uint8, LT_float32, LT_float64, LT_bfloat16};
  lt_Tensor *x = zeros(LT_uint8, SHAPE(256));
  unsigned seed = 1;
#define RANDOM(n) ((int64_t)((seed = seed * 1664525u + 1013904223u) >> 8) % (n))
  for (int round = 0; round < 20000; round++) {
    lt_Tensor *t[2];
    bool bytes[2][256] = {{false}}, overlap = false, blocks = round % 2 == 0, same = true;
    int64_t width = 1 + RANDOM(6), shift = RANDOM(3);
    lt_Dtype dtype = dtypes[RANDOM(4)];
    for (int i = 0; i < 2; i++) {
      if (!blocks) dtype = dtypes[RANDOM(4)];
      int64_t first = RANDOM(width), size[2] = {1 + RANDOM(3), 1 + RANDOM(3)};
      int64_t stride[2] = {RANDOM(8), RANDOM(8)}, offset = RANDOM(3);
      if (blocks) {
        size[1] = 1 + RANDOM(width - first);
        stride[0] = width, stride[1] = 1, offset = shift + RANDOM(2) * width + first;
      }
      t[i] = lt_tensor_on(x->storage, dtype, offset, 2, size, stride);
      mark_bytes(t[i], bytes[i]);
    }
    for (int k = 0; k < 256; k++) overlap = overlap || (bytes[0][k] && bytes[1][k]);
    same = t[0]->dtype == t[1]->dtype && t[0]->offset == t[1]->offset;
    for (int d = 0; d < 2; d++)
      same = same && t[0]->shape[d] == t[1]->shape[d] &&
             (t[0]->shape[d] == 1 || t[0]->strides[d] == t[1]->strides[d]);
    bool seen = lt_tensor_overlaps(t[0], t[1]);
    CHECK(same ? !seen : blocks ? seen == overlap : seen || !overlap);
    CHECK(seen == lt_tensor_overlaps(t[1], t[0]));
    lt_release(t[0]);
    lt_release(t[1]);
  }
#undef RANDOM
  lt_release(x);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void null_passes_through(void) {
  lt_error_set("the first reason");
  lt_Tensor *nothing = NULL;
  size_t mark = lt_scope_open();
  CHECK(!lt_do(exp, LT_ARG(lt_do(add, LT_ARG(nothing), LT_ARG(1)))));
  CHECK_STR(lt_error(), "the first reason");
  lt_scope_close(mark, NULL);
}

static void bad_arguments_are_named(void) {
  lt_Tensor *x = zeros(LT_float32, SHAPE(2, 3)), *y = zeros(LT_float32, SHAPE(4)),
            *n = zeros(LT_int64, SHAPE(3));
  CHECK(!lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(x)}, 1));
  CHECK_STR(lt_error(), "add: expected a value for argument 'other', got no value");
  CHECK(!lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(3)}, 1));
  CHECK_STR(lt_error(), "exp: expected Tensor for argument 'self', got an int");
  CHECK(!lt_op1(LT_OP_exp, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2));
  CHECK_STR(lt_error(), "exp: expected at most 1 arguments, got 2");
  CHECK(!lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(x), LT_ARG(y)}, 2));
  CHECK_CONTAINS(lt_error(), "mul: cannot broadcast the shapes {2, 3} and {4} together");
  CHECK(!lt_op1(LT_OP_bitwise_and, (lt_Arg[]){LT_ARG(x), LT_ARG(x)}, 2));
  CHECK_STR(lt_error(), "bitwise_and: expected an integer dtype or \"bool\", got \"float32\"");
  CHECK(!lt_op1(LT_OP_silu, (lt_Arg[]){LT_ARG(n)}, 1));
  CHECK_CONTAINS(lt_error(), "silu: expected a float dtype, got \"int64\"");
  CHECK(!lt_op1(LT_OP_masked_fill, (lt_Arg[]){LT_ARG(n), LT_ARG(n), LT_ARG(1)}, 3));
  CHECK_CONTAINS(lt_error(),
                 "masked_fill: expected dtype \"bool\" for argument 'mask', got \"int64\"");
  CHECK(!lt_op1(LT_OP_swapaxes, (lt_Arg[]){LT_ARG(x), LT_ARG(0), LT_ARG(2)},
                3)); /* by the name that the user wrote */
  CHECK_STR(lt_error(),
            "swapaxes: cannot use dim 3: it is out of range, the tensor has 2 dimensions");
  lt_release(x);
  lt_release(y);
  lt_release(n);
}

static void a_failed_call_changes_nothing(void) {
  lt_Results r;
  lt_Tensor *n = zeros(LT_int64, SHAPE(3)), *m = zeros(LT_float32, SHAPE(2, 3)),
            *row = zeros(LT_float32, SHAPE(3));
  lt_Tensor *expanded =
      lt_op1(LT_OP_expand, (lt_Arg[]){LT_ARG(row), LT_INTS(((int64_t[]){2, 3}), 2)}, 2);
  unsigned version = lt_tensor_version(n);
  CHECK(!lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(n), LT_ARG(0.5)}, 2, &r));
  CHECK_STR(lt_error(),
            "add_: cannot store the result in self: the result is \"float32\", self is \"int64\"");
  CHECK(!lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(row), LT_ARG(m)}, 2, &r));
  CHECK_STR(lt_error(),
            "add_: cannot store the result in self: the result has the shape {2, 3}, self has {3}");
  CHECK(!lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(expanded), LT_ARG(1)}, 2, &r));
  CHECK_CONTAINS(lt_error(), "add_: cannot change self in place: its elements share memory");
  CHECK(!lt_call(LT_OP_fill, true, (lt_Arg[]){LT_ARG(n), LT_ARG((double)NAN)}, 2, &r));
  CHECK_STR(lt_error(), "fill_: cannot convert the number nan to \"int64\": it does not fit");
  CHECK_INT(lt_tensor_version(n), version);
  for (int i = 0; i < 3; i++) CHECK_INT(((int64_t *)lt_tensor_data(n))[i], 0);
  CHECK(lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(n), LT_ARG(2)}, 2, &r));
  CHECK(r.few[0] == n && lt_tensor_version(n) == version + 1);
  lt_results_release(&r);
  CHECK_INT(((int64_t *)lt_tensor_data(n))[2], 2);
  lt_Tensor *all[] = {n, m, row, expanded};
  for (int i = 0; i < 4; i++) lt_release(all[i]);
}

/* Writes to memory that the same op reads have the result of reading everything first. */
static void overlapping_writes_read_first(void) {
  lt_Results r;
  lt_Tensor *x = lt_op1(LT_OP_arange, (lt_Arg[]){LT_ARG(5)}, 1); /* 1 2 3 4 5 */
  lt_Tensor *first = lt_tensor_on(x->storage, x->dtype, 0, 1, (int64_t[]){4}, (int64_t[]){1});
  lt_Tensor *last = lt_tensor_on(x->storage, x->dtype, 1, 1, (int64_t[]){4}, (int64_t[]){1});
  CHECK(lt_call(LT_OP_add, true, (lt_Arg[]){LT_ARG(last), LT_ARG(first)}, 2, &r));
  lt_results_release(&r);
  const int64_t expected[] = {1, 3, 5, 7, 9};
  for (int i = 0; i < 5; i++) CHECK_INT(((int64_t *)lt_tensor_data(x))[i], expected[i]);
  CHECK(lt_copy_into(last, first, false));
  const int64_t moved[] = {1, 1, 3, 5, 7};
  for (int i = 0; i < 5; i++) CHECK_INT(((int64_t *)lt_tensor_data(x))[i], moved[i]);
  lt_release(x);
  lt_release(first);
  lt_release(last);
}

static void items_are_read(void) {
  lt_Scalar s;
  lt_Tensor *x = lt_scalar_tensor(lt_scalar_float(2.5), LT_float16), *y = zeros(LT_bool, SHAPE(2));
  CHECK(lt_tensor_item(x, &s) && s.kind == LT_FLOATING && s.f == 2.5);
  CHECK(!lt_tensor_item(y, &s));
  CHECK_STR(lt_error(),
            "item: expected a tensor of one element for argument 'self', got shape {2}");
  lt_Tensor *m = lt_empty(LT_float32, lt_meta(), 0, NULL);
  CHECK(!lt_tensor_item(m, &s));
  CHECK_STR(lt_error(), "item: cannot read a tensor on \"meta\": it has no data");
  lt_release(x);
  lt_release(y);
  lt_release(m);
}

/* ---- the error slot -------------------------------------------------------------------------- */

typedef enum Failure { SHAPES, DEVICES, MEMORY, DTYPE, POSITION, INTERRUPT, FAILURES } Failure;

/* Makes a call fail in this way, and checks that the error slot has exactly this reason. */
static void fail_by(Failure failure) {
  lt_Tensor *two = zeros(LT_float32, SHAPE(2)), *three = zeros(LT_float32, SHAPE(3));
  lt_Tensor *away = lt_empty(LT_float32, (lt_Device){LT_DEVICE_meta, 0}, SHAPE(2));
  const lt_Tensor *pair[2];
  const lt_Storage *memory[2];
  lt_Tensor *result = NULL;
  static const char *const text[FAILURES] = {
      "add: cannot broadcast the shapes {2} and {3} together",
      "add: cannot use tensors on different",
      "zeros: out of memory on \"cpu\"",
      "bitwise_not: expected an integer dtype or \"bool\", got \"float32\"",
      "select: cannot index dim 1 of {2} with 7",
      "zeros: interrupted"};
  atomic_store(&lt_interrupt_flag, failure == INTERRUPT);
  switch (failure) {
  case SHAPES:
    result = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(two), LT_ARG(three)}, 2);
    break;
  case DEVICES:
    result = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(two), LT_ARG(away)}, 2);
    break;
  case MEMORY:
    result = zeros(LT_float32, SHAPE((int64_t)1 << 50));
    break;
  case DTYPE:
    result = lt_op1(LT_OP_bitwise_not, (lt_Arg[]){LT_ARG(two)}, 1);
    break;
  case POSITION:
    result = lt_op1(LT_OP_select, (lt_Arg[]){LT_ARG(two), LT_ARG(0), LT_ARG(6)}, 3);
    break;
  default:
    result = zeros(LT_float32, SHAPE(2));
  }
  atomic_store(&lt_interrupt_flag, false);
  CHECK(!result);
  CHECK_CONTAINS(lt_error(), text[failure]);
  CHECK(lt_error_is_memory() == (failure == MEMORY));
  CHECK(lt_error_tensors(pair, memory) == (failure == DEVICES));
  lt_error_name(
      (lt_TensorLabel[2]){{.name = "x"}, {.name = "y"}}); /* does not change other reasons */
  CHECK_CONTAINS(lt_error(), text[failure]);
  lt_Tensor *all[] = {two, three, away, result};
  for (int i = 0; i < 4; i++) lt_release(all[i]);
}

static void every_failure_has_its_own_reason(void) {
  for (int first = 0; first < FAILURES; first++)
    for (int second = 0; second < FAILURES; second++) {
      fail_by((Failure)first);
      fail_by((Failure)second);
    }
}

static void a_saved_error_is_restored(void) {
  for (int failure = 0; failure < FAILURES; failure++)
    for (int other = 0; other < FAILURES; other++) {
      lt_ErrorSlot kept;
      char text[sizeof kept.text];
      const lt_Tensor *pair[2];
      const lt_Storage *memory[2];
      fail_by((Failure)failure);
      strcpy(text, lt_error());
      lt_error_keep(&kept);
      fail_by((Failure)other);
      lt_error_restore(&kept);
      CHECK_STR(lt_error(), text);
      CHECK(lt_error_is_memory() == (failure == MEMORY));
      CHECK(lt_error_tensors(pair, memory) == (failure == DEVICES));
    }
}

static void an_error_may_quote_the_one_before(void) {
  lt_error_set("the file is empty");
  lt_error_set("load: %s: %s", "a.npy", lt_error());
  CHECK_STR(lt_error(), "load: a.npy: the file is empty");
}

int main(void) {
  RUN(dtypes_promote_as_in_pytorch);
  RUN(dtypes_have_names);
  RUN(numbers_take_part_in_promotion);
  RUN(every_half_is_its_value);
  RUN(halves_round_to_nearest_even);
  RUN(numbers_that_do_not_fit_are_refused);
  RUN(shapes_are_counted_without_overflow);
  RUN(shapes_broadcast);
  RUN(memory_is_counted);
  RUN(large_memory_is_aligned);
  RUN(layouts_collapse);
  RUN(overlap_is_detected);
  RUN(overlap_agrees_with_the_bytes);
  RUN(null_passes_through);
  RUN(bad_arguments_are_named);
  RUN(a_failed_call_changes_nothing);
  RUN(overlapping_writes_read_first);
  RUN(items_are_read);
  RUN(every_failure_has_its_own_reason);
  RUN(a_saved_error_is_restored);
  RUN(an_error_may_quote_the_one_before);
  return check_end();
}
