/* translate.h: translates the Metal Shading Language to C++17, for the headers of include/. */
#ifndef LT_EMULATED_METAL_TRANSLATE_H
#define LT_EMULATED_METAL_TRANSLATE_H

#include "tokens.h"

namespace emulated {

struct Translation {
  std::string text; /* valid where there are no problems */
  std::vector<Problem> problems;
};

/* Translates a preprocessed text, in which a directive is a line marker or is ignored. Lines keep
 * their numbers, by #line. `name` is the file's name in messages. With `builtin`, the name of one
 * of the library's own files, the text registers its kernels by emulated::register_file when it is
 * loaded; without (NULL), it exports them as `lt_emulated_file`. */
Translation translate(const std::string &text, const std::string &name, const char *builtin);

} // namespace emulated

#endif
