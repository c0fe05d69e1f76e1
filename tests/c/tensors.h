/* tensors.h: CPU tensors for tests of kernels: made from lists, filled with noise, in unusual
 * layouts, and read element by element through their strides. All belong to the open scope (every
 * test runs in one, by RUN_SCOPED). */
#ifndef LT_TESTS_TENSORS_H
#define LT_TESTS_TENSORS_H

#include "check.h"
#include "core.h"
#include "opids.h"
#include "scoped.h"
#include "device_under_test.h"

#define SHAPE(...)                                                                                 \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define L(...)                                                                                     \
  LT_INTS(((int64_t[]){__VA_ARGS__}), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define TL(...)                                                                                    \
  LT_TENSORS(((lt_Tensor *[]){__VA_ARGS__}),                                                       \
             (int)(sizeof((lt_Tensor *[]){__VA_ARGS__}) / sizeof(lt_Tensor *)))
#define D(dtype) lt_arg_dtype(LT_##dtype)
#define S(text)  LT_ARG((const char *)(text))
/* Dtypes below this one are real. */
enum { REAL_DTYPES = LT_float64 + 1 };
/* Returns a tensor of one dimension from a list of doubles. */
#define V(dtype, ...)                                                                              \
  from_list(LT_##dtype, (double[]){__VA_ARGS__}, 1,                                                \
            (int64_t[]){(int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))})

/* Returns a tensor of a shape from a list of doubles; it belongs to the scope. */
__attribute__((unused)) static lt_Tensor *from_list(lt_Dtype dtype, const double *values, int ndim,
                                                    const int64_t *shape) {
  lt_Tensor *t = lt_scope_own(lt_empty(dtype, lt_cpu(), ndim, shape));
  for (int64_t i = 0; t && i < t->numel; i++) {
    bool whole = lt_dtype_category(dtype) < LT_FLOATING;
    lt_Scalar s = whole ? lt_scalar_int((int64_t)values[i]) : lt_scalar_float(values[i]);
    lt_scalar_store(s, dtype, (char *)lt_tensor_data(t) + (size_t)i * lt_dtype_size(dtype));
  }
  return t;
}

/* Returns element `at` in row-major order of the shape, counted from 0. */
__attribute__((unused)) static lt_Scalar element(const lt_Tensor *t, int64_t at) {
  int64_t place = 0;
  for (int d = t->ndim - 1; d >= 0; d--) {
    place += at % t->shape[d] * t->strides[d];
    at /= t->shape[d];
  }
  return lt_scalar_load(t->dtype,
                        (const char *)lt_tensor_data(t) + place * (int64_t)lt_dtype_size(t->dtype));
}
__attribute__((unused)) static double number(const lt_Tensor *t, int64_t at) {
  return lt_scalar_to_double(element(t, at));
}

/* Returns a tensor of pseudorandom numbers, the same for the same seed: from -1 to 1 in floats (and
 * the real parts of complex numbers), -9 to 9 in integers, 0 to 9 in uint8. */
__attribute__((unused)) static lt_Tensor *noise(lt_Dtype dtype, int ndim, const int64_t *shape,
                                                unsigned seed) {
  lt_Tensor *t = lt_scope_own(lt_empty(dtype, lt_cpu(), ndim, shape));
  uint64_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; t && i < t->numel; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double u = (double)(state >> 40) / 16777216.0 * 2 - 1;
    lt_Scalar s = lt_scalar_float(u);
    if (dtype == LT_bool)
      s = lt_scalar_bool(u > 0);
    else if (dtype == LT_uint8)
      s = lt_scalar_int((int64_t)((u + 1) * 5));
    else if (lt_dtype_is_complex(dtype))
      s = lt_scalar_complex(u, (double)(state >> 20 & 0xffff) / 65536);
    else if (!lt_dtype_is_float(dtype))
      s = lt_scalar_int((int64_t)(u * 10));
    lt_scalar_store(s, dtype, (char *)lt_tensor_data(t) + (size_t)i * lt_dtype_size(dtype));
  }
  return t;
}

/* Returns a tensor of pseudorandom indices from 1 to n. */
__attribute__((unused)) static lt_Tensor *random_indices(int64_t n, int ndim, const int64_t *shape,
                                                         unsigned seed) {
  lt_Tensor *t = lt_scope_own(lt_empty(LT_int64, lt_cpu(), ndim, shape));
  uint64_t state = seed * 2654435761u + 777;
  int64_t *x = t ? lt_tensor_data(t) : NULL;
  for (int64_t i = 0; t && i < t->numel; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x[i] = (int64_t)((state >> 33) % (uint64_t)n) + 1;
  }
  return t;
}

/* Returns the same values in another layout: 0 unchanged, 1 with the memory order of dims reversed,
 * 2 with a gap after each element of the last dim. */
__attribute__((unused)) static lt_Tensor *laid_out(lt_Tensor *t, int layout) {
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  if (layout == 0 || t->ndim == 0) return t;
  memcpy(shape, t->shape, sizeof shape);
  lt_Tensor *room = NULL, *view = NULL;
  if (layout == 1) {
    int64_t step = 1;
    for (int d = 0; d < t->ndim; d++) {
      strides[d] = step;
      step *= t->shape[d];
    }
    room = lt_empty(t->dtype, lt_cpu(), 1, (int64_t[]){t->numel});
  } else {
    for (int d = 0; d < t->ndim; d++) strides[d] = t->strides[d] * 2;
    room = lt_empty(t->dtype, lt_cpu(), 1, (int64_t[]){2 * t->numel});
  }
  if (room) view = lt_scope_own(lt_tensor_on(room->storage, t->dtype, 0, t->ndim, shape, strides));
  lt_release(room);
  for (int64_t i = 0; view && i < t->numel; i++) {
    int64_t at = i, place = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
      place += at % shape[d] * strides[d];
      at /= shape[d];
    }
    size_t size = lt_dtype_size(t->dtype);
    memcpy((char *)lt_tensor_data(view) + (size_t)place * size,
           (char *)lt_tensor_data(t) + (size_t)i * size, size);
  }
  return view;
}

/* Returns the largest allowed difference of two accurate results in a dtype. */
__attribute__((unused)) static double tolerance_of(lt_Dtype d) {
  return d == LT_float64    ? 1e-12
         : d == LT_float32  ? 2e-6
         : d == LT_float16  ? 2e-3
         : d == LT_bfloat16 ? 1.6e-2
                            : 0;
}

/* Calls an op; its results belong to the scope. Returns false, with a report, when the op fails. */
#define RUN_OP(out, op, in_place, ...)                                                             \
  run_op(__FILE__, __LINE__, LT_OP_##op, in_place, LT_ARGS_(__VA_ARGS__), out)
__attribute__((unused)) static bool run_op(const char *file, int line, lt_OpId op, bool in_place,
                                           const lt_Arg *args, int nargs, lt_Tensor **out) {
  lt_Results r;
  if (!call_on_device(op, in_place, args, nargs, &r)) {
    check_report(file, line, "%s failed: %s", lt_ops[op].name, lt_error());
    return false;
  }
  lt_Tensor **items = lt_results_items(&r);
  for (int i = 0; i < r.count; i++) {
    lt_Tensor *t = lt_scope_own(items[i]);
    if (i < LT_MAX_OUT) out[i] = t;
  }
  free(r.many);
  return true;
}

/* Checks that the op fails with a message that contains `piece`. */
#define CHECK_FAILS(piece, op, in_place, ...)                                                      \
  do {                                                                                             \
    lt_Results r_;                                                                                 \
    const lt_Arg args_[] = {__VA_ARGS__};                                                          \
    if (call_on_device(LT_OP_##op, in_place, args_, (int)(sizeof args_ / sizeof *args_), &r_)) {   \
      check_report(__FILE__, __LINE__, "%s did not fail", #op);                                    \
      lt_results_release(&r_);                                                                     \
    } else {                                                                                       \
      CHECK_CONTAINS(lt_error(), piece);                                                           \
    }                                                                                              \
  } while (0)

/* Checks that t has the shape and the values of a list. */
#define CHECK_TENSOR(t, tolerance, shape_, ...)                                                    \
  check_tensor(__FILE__, __LINE__, #t, t, tolerance, shape_, (double[]){__VA_ARGS__})
__attribute__((unused)) static void check_tensor(const char *file, int line, const char *what,
                                                 lt_Tensor *t, double tolerance, lt_Arg shape,
                                                 const double *values) {
  if (!t) {
    check_report(file, line, "%s is NULL: %s", what, lt_error());
    return;
  }
  if (!lt_shape_equal(t->ndim, t->shape, shape.count, shape.ints)) {
    check_report(file, line, "%s has the shape %s, expected %s", what,
                 lt_shape_text(t->ndim, t->shape), lt_shape_text(shape.count, shape.ints));
    return;
  }
  for (int64_t i = 0; i < t->numel; i++)
    if (!check_close(number(t, i), values[i], tolerance)) {
      check_report(file, line, "%s: element %lld is %.17g, expected %.17g", what, (long long)i + 1,
                   number(t, i), values[i]);
      return;
    }
}

#endif
