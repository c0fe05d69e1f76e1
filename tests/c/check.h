/* check.h: a C test in one header.
 *
 * A test file defines functions `static void name(void)` that state what must hold with the CHECK
 * macros, and a main that runs each by RUN(name) and returns check_end(). One RUN is one test: it
 * passes when all its checks hold; each check that does not is told with its place and values, and
 * the rest of the test goes on. The last line a test program prints is `N passed, N failed, N
 * skipped`; its exit status is not 0 when one failed or none ran.
 *
 *   static void adds(void) {
 *     CHECK_INT(2 + 2, 4);
 *     CHECK_NEAR(0.1 + 0.2, 0.3, 1e-15);
 *   }
 *   int main(void) {
 *     RUN(adds);
 *     return check_end();
 *   }
 */
#ifndef LT_TESTS_CHECK_H
#define LT_TESTS_CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int check_passed, check_failed, check_skipped; /* tests, over the whole program */
static int check_bad;                 /* checks that did not hold in the test that runs now */
static const char *check_skip_reason; /* set by SKIP in the test that runs now */

/* One line about a check that did not hold. */
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

/* Strings are equal; NULL equals only NULL. */
__attribute__((unused)) static bool check_same(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* |a - b| <= tolerance, or both are NaN, or both are the same infinity. */
__attribute__((unused)) static bool check_close(double a, double b, double tolerance) {
  return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance;
}

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

/* The closing line, and main's result. */
__attribute__((unused)) static int check_end(void) {
  printf("%d passed, %d failed, %d skipped\n", check_passed, check_failed, check_skipped);
  return check_failed > 0 || check_passed + check_skipped == 0;
}

#define RUN(test) check_run(#test, test)

/* Leaves the test, which counts as skipped, with the reason. */
#define SKIP(reason)                                                                               \
  do {                                                                                             \
    check_skip_reason = (reason);                                                                  \
    return;                                                                                        \
  } while (0)

#define CHECK(what)                                                                                \
  do {                                                                                             \
    if (!(what)) check_report(__FILE__, __LINE__, "%s does not hold", #what);                      \
  } while (0)

/* Whole numbers, sizes and enums. */
#define CHECK_INT(got, want)                                                                       \
  do {                                                                                             \
    int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                                        \
    if (got_ != want_)                                                                             \
      check_report(__FILE__, __LINE__, "%s is %lld, wanted %lld", #got, (long long)got_,           \
                   (long long)want_);                                                              \
  } while (0)

/* Floating point, within a tolerance (absolute). NaN equals NaN. */
#define CHECK_NEAR(got, want, tolerance)                                                           \
  do {                                                                                             \
    double got_ = (got), want_ = (want);                                                           \
    if (!check_close(got_, want_, tolerance))                                                      \
      check_report(__FILE__, __LINE__, "%s is %.17g, wanted %.17g", #got, got_, want_);            \
  } while (0)

#define CHECK_STR(got, want)                                                                       \
  do {                                                                                             \
    const char *got_ = (got), *want_ = (want);                                                     \
    if (!check_same(got_, want_))                                                                  \
      check_report(__FILE__, __LINE__, "%s is \"%s\", wanted \"%s\"", #got,                        \
                   got_ ? got_ : "(NULL)", want_ ? want_ : "(NULL)");                              \
  } while (0)

/* A message that must contain a piece of text. */
#define CHECK_CONTAINS(got, piece)                                                                 \
  do {                                                                                             \
    const char *got_ = (got), *piece_ = (piece);                                                   \
    if (!got_ || !strstr(got_, piece_))                                                            \
      check_report(__FILE__, __LINE__, "%s is \"%s\", which does not contain \"%s\"", #got,        \
                   got_ ? got_ : "(NULL)", piece_);                                                \
  } while (0)

/* Goes on only when it holds: for what the rest of the test stands on. */
#define REQUIRE(what)                                                                              \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      check_report(__FILE__, __LINE__, "%s does not hold, the rest of the test is left out",       \
                   #what);                                                                         \
      return;                                                                                      \
    }                                                                                              \
  } while (0)

#endif
