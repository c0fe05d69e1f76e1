/* check.h: a small framework for C tests, in one header.
 *
 * A test file defines functions `static void name(void)` that check conditions with the CHECK
 * macros, and a main that runs each by RUN(name) and returns check_end(). One RUN is one test: it
 * passes when all its checks hold. Each check that fails is reported with its line and values, and
 * the test continues. The last line that a test program prints is `N passed, N failed, N skipped`;
 * its exit status is not 0 when a test failed or none ran.
 *
 *     static void adds(void) {
 *       CHECK_INT(2 + 2, 4);
 *       CHECK_NEAR(0.1 + 0.2, 0.3, 1e-15);
 *     }
 *     int main(void) {
 *       RUN(adds);
 *       return check_end();
 *     }
 */
#ifndef LT_TESTS_CHECK_H
#define LT_TESTS_CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int check_passed, check_failed, check_skipped; /* numbers of tests in the program */
static int check_bad;                 /* number of failed checks in the running test */
static const char *check_skip_reason; /* set by SKIP in the running test */

/* Prints one line about a failed check and counts it. */
__attribute__((format(printf, 3, 4), unused)) static void check_report(const char *file, int line,
                                                                       const char *format, ...) {
  check_bad++;
  printf("%s:%d: ", file, line);
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  printf("\n");
}

/* Returns true when the strings are equal; NULL equals only NULL. */
__attribute__((unused)) static bool check_same(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns true when |a - b| <= tolerance, or both are NaN, or both are the same infinity. */
__attribute__((unused)) static bool check_close(double a, double b, double tolerance) {
  return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance;
}

/* Runs a test and counts its result. Use RUN. */
__attribute__((unused)) static void check_run(const char *name, void (*test)(void)) {
  check_bad = 0;
  check_skip_reason = NULL;
  test();
  if (check_bad) {
    check_failed++;
    printf("FAILED %s\n", name);
  } else if (check_skip_reason) {
    check_skipped++;
    printf("skipped %s: %s\n", name, check_skip_reason);
  } else {
    check_passed++;
  }
  fflush(stdout);
}

/* Prints the last line and returns main's result. */
__attribute__((unused)) static int check_end(void) {
  printf("%d passed, %d failed, %d skipped\n", check_passed, check_failed, check_skipped);
  return check_failed > 0 || check_passed + check_skipped == 0;
}

#define RUN(test) check_run(#test, test)

/* Ends the running test, which counts as skipped, with a reason. */
#define SKIP(reason)                                                                               \
  do {                                                                                             \
    check_skip_reason = (reason);                                                                  \
    return;                                                                                        \
  } while (0)

#define CHECK(what)                                                                                \
  do {                                                                                             \
    if (!(what)) check_report(__FILE__, __LINE__, "%s does not hold", #what);                      \
  } while (0)

/* Compares integers, sizes or enums. */
#define CHECK_INT(actual, expected)                                                                \
  do {                                                                                             \
    int64_t actual_ = (int64_t)(actual), expected_ = (int64_t)(expected);                          \
    if (actual_ != expected_)                                                                      \
      check_report(__FILE__, __LINE__, "%s is %lld, expected %lld", #actual, (long long)actual_,   \
                   (long long)expected_);                                                          \
  } while (0)

/* Compares floating-point numbers with an absolute tolerance. NaN equals NaN. */
#define CHECK_NEAR(actual, expected, tolerance)                                                    \
  do {                                                                                             \
    double actual_ = (actual), expected_ = (expected);                                             \
    if (!check_close(actual_, expected_, tolerance))                                               \
      check_report(__FILE__, __LINE__, "%s is %.17g, expected %.17g", #actual, actual_,            \
                   expected_);                                                                     \
  } while (0)

#define CHECK_STR(actual, expected)                                                                \
  do {                                                                                             \
    const char *actual_ = (actual), *expected_ = (expected);                                       \
    if (!check_same(actual_, expected_))                                                           \
      check_report(__FILE__, __LINE__, "%s is \"%s\", expected \"%s\"", #actual,                   \
                   actual_ ? actual_ : "(NULL)", expected_ ? expected_ : "(NULL)");                \
  } while (0)

/* Checks that a message contains a piece of text. */
#define CHECK_CONTAINS(actual, piece)                                                              \
  do {                                                                                             \
    const char *actual_ = (actual), *piece_ = (piece);                                             \
    if (!actual_ || !strstr(actual_, piece_))                                                      \
      check_report(__FILE__, __LINE__, "%s is \"%s\", which does not contain \"%s\"", #actual,     \
                   actual_ ? actual_ : "(NULL)", piece_);                                          \
  } while (0)

/* Ends the test when the condition is false: for conditions that the rest of the test depends
 * on. */
#define REQUIRE(what)                                                                              \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      check_report(__FILE__, __LINE__, "%s does not hold, the rest of the test is left out",       \
                   #what);                                                                         \
      return;                                                                                      \
    }                                                                                              \
  } while (0)

#endif
