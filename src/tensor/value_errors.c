/* value_errors.c: error messages about values that a kernel refuses, such as an index out of range.
 * Devices find such values in different ways and at different times; by these functions they report
 * the same message. */
#include "core.h"

/* Formats the index of an element, " at position {2, 1}", or "" for a 0-d tensor. */
static void place_text(char *text, size_t size, int ndim, const int64_t *shape, int64_t at) {
  int64_t position[LT_MAX_DIMS];
  size_t used = (size_t)snprintf(text, size, "%s", ndim > 0 ? " at position {" : "");
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
    return lt_fail("%s is %lld%s, but the dimension it counts in is empty", name, (long long)value,
                   place);
  if (value == 0)
    return lt_fail("%s is 0%s; positions count from 1: the valid range is 1..%lld", name, place,
                   (long long)n);
  return lt_fail("%s is %lld%s; the valid range is 1..%lld%s", name, (long long)value, place,
                 (long long)n,
                 negative    ? ", or negative from the end"
                 : value < 0 ? " (negative positions are for x[index])"
                             : "");
}

bool lt_bad_divisor(const char *name, int ndim, const int64_t *shape, int64_t at, int64_t value,
                    lt_Dtype compute) {
  char place[400], wrapped[60] = "";
  place_text(place, sizeof place, ndim, shape, at);
  if (value) snprintf(wrapped, sizeof wrapped, ", which is 0 in %s", lt_dtype_name(compute));
  return lt_fail("cannot divide integers by zero: argument '%s' is %lld%s%s\n"
                 "hint: floats can be divided by zero: x:to(\"float32\")",
                 name, (long long)value, place, wrapped);
}

bool lt_bad_target(int64_t at, int64_t value, int64_t classes, int64_t ignore) {
  if (value == 0)
    return lt_fail(
        "target is 0 at position {%lld}; classes count from 1: the valid range is 1..%lld",
        (long long)at + 1, (long long)classes);
  return lt_fail(
      "target is %lld at position {%lld}; the valid range is 1..%lld (or ignore_index, %lld)",
      (long long)value, (long long)at + 1, (long long)classes, (long long)ignore);
}

bool lt_bad_probability(double value, int64_t at, int ndim, const int64_t *shape) {
  return lt_fail("the probability %s (element %lld of %s) is not in 0..1", lt_number_text(value),
                 (long long)at + 1, lt_shape_text(ndim, shape));
}

bool lt_bad_weight(double value, int64_t at, int64_t row) {
  return lt_fail("weight %lld of row %lld is %s, wants a finite number that is not negative",
                 (long long)at + 1, (long long)row + 1, lt_number_text(value));
}

bool lt_bad_weights(int64_t row, int64_t positive, int64_t least) {
  if (positive < 0)
    return lt_fail("the weights of row %lld add up to infinity", (long long)row + 1);
  if (positive == 0) return lt_fail("the weights of row %lld add up to 0", (long long)row + 1);
  return lt_fail("cannot draw %lld without replacement: only %lld weights of row %lld are not 0",
                 (long long)least, (long long)positive, (long long)row + 1);
}
