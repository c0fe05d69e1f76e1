/* tokens.h: splits a preprocessed source in the Metal Shading Language into tokens. Used by the
 * translator and by the checks of tests/metal. */
#ifndef LT_EMULATED_METAL_TOKENS_H
#define LT_EMULATED_METAL_TOKENS_H

#include <string>
#include <vector>

namespace emulated {

enum class TokenKind { WORD, NUMBER, STRING, PUNCTUATION, END };

/* A token. Its place is that in the source, which the preprocessor's line markers give. */
struct Token {
  TokenKind kind;
  std::string text;
  int file; /* an index of Tokens::files */
  int line, column;
  bool space;      /* a blank or the start of a line is before it */
  std::string out; /* what the translation has in its place; at first `text` */

  bool is(const char *other) const { return text == other; }
  bool is_word() const { return kind == TokenKind::WORD; }
};

/* A message about a place, in the form of a compiler's. */
struct Problem {
  std::string file;
  int line, column;
  std::string text;
};
/* Returns "file:line:column: error: text". */
std::string to_string(const Problem &problem);

/* The tokens of a source, closed by one of the kind END. Directives are not among them: markers of
 * lines are applied, #include and #pragma are ignored. */
struct Tokens {
  std::vector<std::string> files;
  std::vector<Token> list;
  std::vector<Problem> problems;

  const Token &operator[](size_t i) const { return list[i < list.size() ? i : list.size() - 1]; }
  Token &operator[](size_t i) { return list[i < list.size() ? i : list.size() - 1]; }
  size_t size() const { return list.size() - 1; }
  /* Records an error at token i. */
  void fail(size_t i, const std::string &text);
  /* Returns the index of the bracket that closes the one at i: ( [ { or, where it begins template
   * arguments, <. Returns size() where there is none. */
  size_t close(size_t i) const;
};

/* Splits a source. `name` is the file's name in messages. */
Tokens tokenize(const std::string &text, const std::string &name);

} // namespace emulated

#endif
