/* tokens.cpp: see tokens.h. */
#include "tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

namespace emulated {
namespace {

bool is_letter(char c) { return isalpha((unsigned char)c) || c == '_'; }
bool is_digit(char c) { return isdigit((unsigned char)c); }

/* Punctuation of more than one character, the longer ones first. `>>` is two tokens, because it may
 * close template arguments twice; the translation keeps them together. */
const char *const LONG[] = {"<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<",
                            "<=",  ">=",  "==",  "!=",  "&&", "||", "+=", "-=", "*=",
                            "/=",  "%=",  "&=",  "|=",  "^=", "##", ".*"};

struct Reader {
  const std::string &s;
  Tokens *out;
  size_t i = 0, start = 0; /* start: of the line */
  int file = 0, line = 1;
  bool space = true;

  char at(size_t k) const { return k < s.size() ? s[k] : '\0'; }
  int column() const { return (int)(i - start) + 1; }

  void new_line() {
    line++;
    start = i + 1;
    space = true;
  }

  void add(TokenKind kind, size_t end) {
    std::string text = s.substr(i, end - i);
    out->list.push_back({kind, text, file, line, column(), space, text});
    space = false;
    i = end;
  }

  /* Reads a directive: a line marker `# 12 "name"` or `#line 12 "name"` sets the place. */
  void directive() {
    size_t end = i;
    while (end < s.size() && s[end] != '\n') end += s[end] == '\\' && at(end + 1) == '\n' ? 2 : 1;
    std::string text = s.substr(i + 1, end - i - 1);
    size_t word = text.find_first_not_of(" \t");
    if (word != std::string::npos && text.compare(word, 4, "line") == 0) word += 4;
    word = word == std::string::npos ? word : text.find_first_not_of(" \t", word);
    if (word != std::string::npos && is_digit(text[word])) {
      line = atoi(text.c_str() + word) - 1;
      size_t open = text.find('"', word), close = text.find('"', open + 1);
      if (open != std::string::npos && close != std::string::npos)
        file = number_of(text.substr(open + 1, close - open - 1));
    } else {
      for (char c : text) line += c == '\n';
    }
    i = end;
  }

  int number_of(const std::string &name) {
    for (size_t k = 0; k < out->files.size(); k++)
      if (out->files[k] == name) return (int)k;
    out->files.push_back(name);
    return (int)out->files.size() - 1;
  }

  void comment() {
    bool block = s[i + 1] == '*';
    size_t end = block ? s.find("*/", i + 2) : s.find('\n', i);
    end = end == std::string::npos ? s.size() : end + (block ? 2 : 0);
    for (; i < end; i++)
      if (s[i] == '\n') new_line();
    space = true;
  }

  void string() {
    size_t end = i + 1;
    while (end < s.size() && s[end] != s[i] && s[end] != '\n') end += s[end] == '\\' ? 2 : 1;
    if (at(end) != s[i]) {
      add(TokenKind::STRING, end < s.size() ? end : s.size());
      out->fail(out->list.size() - 1, "missing terminating character");
    } else {
      add(TokenKind::STRING, end + 1);
    }
  }

  void number() {
    size_t end = i + 1;
    while (is_letter(at(end)) || is_digit(at(end)) || at(end) == '.' ||
           ((at(end) == '+' || at(end) == '-') && strchr("eEpP", s[end - 1]) &&
            !(strchr("eE", s[end - 1]) && strchr("xX", at(i + 1)) && at(i + 1))))
      end++;
    add(TokenKind::NUMBER, end);
  }

  void punctuation() {
    for (const char *p : LONG)
      if (s.compare(i, strlen(p), p) == 0) return add(TokenKind::PUNCTUATION, i + strlen(p));
    add(TokenKind::PUNCTUATION, i + 1);
  }

  void read() {
    while (i < s.size()) {
      char c = s[i];
      if (c == '\n') {
        new_line();
        i++;
      } else if (isspace((unsigned char)c) || (c == '\\' && at(i + 1) == '\n')) {
        space = true;
        i++;
      } else if (c == '#' && s.find_first_not_of(" \t", start) == i) {
        directive();
      } else if (c == '/' && (at(i + 1) == '/' || at(i + 1) == '*')) {
        comment();
      } else if (c == '"' || c == '\'') {
        string();
      } else if (is_digit(c) || (c == '.' && is_digit(at(i + 1)))) {
        number();
      } else if (is_letter(c)) {
        size_t end = i + 1;
        while (is_letter(at(end)) || is_digit(at(end))) end++;
        add(TokenKind::WORD, end);
      } else {
        punctuation();
      }
    }
    out->list.push_back({TokenKind::END, "", file, line, column(), true, ""});
  }
};

} // namespace

std::string to_string(const Problem &p) {
  return p.file + ":" + std::to_string(p.line) + ":" + std::to_string(p.column) +
         ": error: " + p.text;
}

void Tokens::fail(size_t i, const std::string &text) {
  const Token &t = (*this)[i];
  problems.push_back({files[(size_t)t.file], t.line, t.column, text});
}

size_t Tokens::close(size_t i) const {
  const bool angle = list[i].is("<");
  int depth = 0, angles = 0;
  for (size_t k = i; k < size(); k++) {
    const std::string &t = list[k].text;
    if (list[k].kind != TokenKind::PUNCTUATION) continue;
    if (t == "(" || t == "[" || t == "{") depth++;
    if (t == ")" || t == "]" || t == "}") {
      if (--depth < 0) return size();
      if (!angle && depth == 0) return k;
    }
    if (angle && depth == 0) {
      if (t == ";") return size();
      if (t == "<") angles++;
      if (t == ">" && --angles == 0) return k;
    }
  }
  return size();
}

Tokens tokenize(const std::string &text, const std::string &name) {
  Tokens tokens;
  tokens.files.push_back(name);
  Reader{text, &tokens}.read();
  return tokens;
}

} // namespace emulated
