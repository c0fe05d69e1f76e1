/* infer_says.h: the result of an op on meta as one line of text, so that a test is one line, too.
 *
 *     SAYS("float32 {3, 6}", mm, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 4, 6)));
 *     SAYS("mm: cannot multiply ...", mm, LT_ARG(M(float32, 3, 4)), LT_ARG(M(float32, 5, 6)));
 *
 * Several results are joined by "; ". A failed call gives its error message.
 */
#ifndef LT_TESTS_INFER_SAYS_H
#define LT_TESTS_INFER_SAYS_H

#include "opids.h"
#include "check.h"
#include "core.h"
#include "scoped.h"

/* Returns a meta tensor of these sizes, which belongs to the open scope. M0 has no dimensions. */
#define M(dtype, ...)                                                                              \
  lt_scope_own(lt_empty(LT_##dtype, lt_meta(),                                                     \
                        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                 \
                        (int64_t[]){__VA_ARGS__}))
#define M0(dtype) lt_scope_own(lt_empty(LT_##dtype, lt_meta(), 0, NULL))
/* Arguments: a list of ints, a list of tensors, a dtype, the meta device, a string. */
#define L(...)                                                                                     \
  LT_INTS(((int64_t[]){__VA_ARGS__}), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define TL(...)                                                                                    \
  LT_TENSORS(((lt_Tensor *[]){__VA_ARGS__}),                                                       \
             (int)(sizeof((lt_Tensor *[]){__VA_ARGS__}) / sizeof(lt_Tensor *)))
#define D(dtype) lt_arg_dtype(LT_##dtype)
#define META     LT_ARG(lt_meta())
#define S(text)  LT_ARG((const char *)(text))

/* Calls the op and returns its results, or the error, as text. Valid until the next call. */
__attribute__((unused)) static const char *says(lt_OpId op, bool in_place, const lt_Arg *args,
                                                int nargs) {
  static char text[2048];
  lt_Results r;
  size_t at = 0;
  text[0] = 0;
  for (int i = 0; i < nargs; i++)
    if (args[i].kind == LT_ARG_TENSOR && !args[i].tensor) return "an argument is NULL";
  if (!lt_call(op, in_place, args, nargs, &r)) return lt_error();
  if (r.is_flag) {
    lt_results_release(&r);
    return r.flag ? "true" : "false";
  }
  if (r.is_list) at += (size_t)snprintf(text, sizeof text, "list of %d: ", r.count);
  for (int i = 0; i < r.count && at < sizeof text; i++) {
    const lt_Tensor *t = lt_results_items(&r)[i];
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s", i ? "; " : "",
                           lt_dtype_name(t->dtype), lt_shape_text(t->ndim, t->shape));
    if (!lt_tensor_is_meta(t))
      at += (size_t)snprintf(text + at, sizeof text - at, " on %s",
                             lt_device_name(lt_tensor_device(t)));
  }
  lt_results_release(&r);
  return text;
}

/* Checks the text of a call. Use SAYS. */
__attribute__((unused)) static void check_says(const char *file, int line, lt_OpId op,
                                               const char *actual, const char *expected) {
  if (!check_same(actual, expected))
    check_report(file, line, "%s says \"%s\", expected \"%s\"", lt_ops[op].name, actual, expected);
}

/* Checks a part of the text of a call. Use MENTIONS. */
__attribute__((unused)) static void check_mentions(const char *file, int line, lt_OpId op,
                                                   const char *actual, const char *piece) {
  if (!strstr(actual, piece))
    check_report(file, line, "%s says \"%s\", which does not mention \"%s\"", lt_ops[op].name,
                 actual, piece);
}

#define SAYS_(check, expected, op, in_place, ...)                                                  \
  check(__FILE__, __LINE__, LT_OP_##op, says(LT_OP_##op, in_place, LT_ARGS_(__VA_ARGS__)), expected)
#define SAYS(expected, op, ...)          SAYS_(check_says, expected, op, false, __VA_ARGS__)
#define SAYS_IN_PLACE(expected, op, ...) SAYS_(check_says, expected, op, true, __VA_ARGS__)
/* The same for a part of the text. */
#define MENTIONS(piece, op, ...)          SAYS_(check_mentions, piece, op, false, __VA_ARGS__)
#define MENTIONS_IN_PLACE(piece, op, ...) SAYS_(check_mentions, piece, op, true, __VA_ARGS__)

#endif
