/* value_errors.c: error messages about values that a kernel refuses, such as an index out of range.
 * Devices find such values in different ways and at different times; by these functions they report
 * the same message. */
#include "core.h"
#include "matrix_errors.h"

/* Formats the index of an element, " at index {2, 1}", or "" for a 0-d tensor. */
static void place_text(char *text, size_t size, int ndim, const int64_t *shape, int64_t at) {
  int64_t position[LT_MAX_DIMS];
  size_t used = (size_t)snprintf(text, size, "%s", ndim > 0 ? " at index {" : "");
  for (int d = ndim - 1; d >= 0; d--) {
    position[d] = at % shape[d] + 1;
    at /= shape[d];
  }
  for (int d = 0; d < ndim && used < size - 24; d++)
    used +=
        (size_t)snprintf(text + used, size - used, d ? ", %lld" : "%lld", (long long)position[d]);
  if (ndim > 0) snprintf(text + used, size - used, "}");
}

bool lt_bad_index(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                  int64_t n, bool negative) {
  char place[400];
  place_text(place, sizeof place, ndim, shape, at);
  if (n == 0)
    return lt_fail("cannot index an empty dimension: '%s' is %lld%s", name, (long long)value,
                   place);
  if (value == 0)
    return lt_fail(
        "expected an index from 1 to %lld for argument '%s', got 0%s\nhint: indices count from 1",
        (long long)n, name, place);
  return lt_fail("expected an index from 1 to %lld%s for argument '%s', got %lld%s%s", (long long)n,
                 negative ? ", or negative from the end," : "", name, (long long)value, place,
                 !negative && value < 0 ? "\nhint: only x[index] accepts negative indices" : "");
}

bool lt_bad_divisor(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                    lt_Dtype compute) {
  char place[400], wrapped[60] = "";
  place_text(place, sizeof place, ndim, shape, at);
  if (value) snprintf(wrapped, sizeof wrapped, ", which is 0 in \"%s\"", lt_dtype_name(compute));
  return lt_fail("cannot divide integers by zero: argument '%s' is %lld%s%s\nhint: "
                 "x:to(\"float32\"), floats can be divided by zero",
                 name, (long long)value, place, wrapped);
}

bool lt_bad_target(int ndim, const int64_t *shape, int64_t at, int64_t value, int64_t classes,
                   int64_t ignore) {
  char place[400];
  place_text(place, sizeof place, ndim, shape, at);
  if (value == 0)
    return lt_fail("expected a class from 1 to %lld for argument 'target', got 0%s\nhint: classes "
                   "count from 1",
                   (long long)classes, place);
  return lt_fail("expected a class from 1 to %lld (or ignore_index, %lld) for argument 'target', "
                 "got %lld%s",
                 (long long)classes, (long long)ignore, (long long)value, place);
}

bool lt_bad_probability(double value, int64_t at, int ndim, const int64_t *shape) {
  return lt_fail("expected probabilities from 0 to 1, got %s (element %lld of %s)",
                 lt_number_text(value), (long long)at + 1, lt_shape_text(ndim, shape));
}

bool lt_bad_weight(double value, int64_t at, int64_t row) {
  return lt_fail("expected finite weights of at least 0, got %s (weight %lld of row %lld)",
                 lt_number_text(value), (long long)at + 1, (long long)row + 1);
}

bool lt_bad_weights(int64_t row, int64_t positive, int64_t least) {
  if (positive < 0)
    return lt_fail("expected weights of a finite sum, got row %lld with an infinite sum",
                   (long long)row + 1);
  if (positive == 0)
    return lt_fail("expected weights of a positive sum, got row %lld with the sum 0",
                   (long long)row + 1);
  return lt_fail("cannot draw %lld without replacement: only %lld weights of row %lld are not 0",
                 (long long)least, (long long)positive, (long long)row + 1);
}

/* Writes "", or " of batch element 3" for a batch. */
static void element_text(char *text, size_t size, const lt_Tensor *a, int64_t at) {
  text[0] = 0;
  if (a->ndim > 2) snprintf(text, size, " of batch element %lld", (long long)at + 1);
}

bool lt_bad_matrix(const char *text, const lt_Tensor *a, int64_t at, int value) {
  char element[48];
  element_text(element, sizeof element, a, at);
  const char *place = strstr(text, "%s"), *number = strstr(text, "%d");
  return lt_fail("%.*s%s%.*s%d%s", (int)(place - text), text, element, (int)(number - place - 2),
                 place + 2, value, number + 2);
}

bool lt_bad_convergence(const char *values, const lt_Tensor *a, int64_t at) {
  char element[48];
  element_text(element, sizeof element, a, at);
  return lt_fail("cannot compute the %s of the matrix%s: the iteration did not converge, because "
                 "the matrix contains NaN or infinity or is ill-conditioned",
                 values, element);
}
