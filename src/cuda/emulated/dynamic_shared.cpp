/* dynamic_shared.cpp: replaces `extern __shared__ [alignment] T name[];` in a source, except in
 * comments and strings. To g++ the declaration is a thread_local array without a size, which is
 * defined nowhere. */
#include "dynamic_shared.h"

#include <ctype.h>
#include <vector>

namespace emulated {
namespace {

bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Returns the end of the comment, string or character literal that begins at i; i where there is
 * none. */
size_t skip(const std::string &s, size_t i) {
  if (s.compare(i, 2, "//") == 0) {
    size_t end = s.find('\n', i);
    return end == std::string::npos ? s.size() : end;
  }
  if (s.compare(i, 2, "/*") == 0) {
    size_t end = s.find("*/", i + 2);
    return end == std::string::npos ? s.size() : end + 2;
  }
  if (s[i] != '"' && s[i] != '\'') return i;
  size_t end = i + 1;
  while (end < s.size() && s[end] != s[i] && s[end] != '\n') end += s[end] == '\\' ? 2 : 1;
  return end < s.size() ? end + 1 : s.size();
}

bool word_at(const std::string &s, size_t i, const char *word) {
  size_t n = std::char_traits<char>::length(word);
  return s.compare(i, n, word) == 0 && (i == 0 || !is_word(s[i - 1])) &&
         (i + n >= s.size() || !is_word(s[i + n]));
}

size_t blanks(const std::string &s, size_t i) {
  while (i < s.size() && isspace((unsigned char)s[i])) i++;
  return i;
}

struct Declaration {
  size_t end; /* after the semicolon */
  std::string type, name;
};

/* Splits "__align__(16) T name" into `T` and `name`, the last word. Returns false without both. */
bool split(std::string words, Declaration *d) {
  for (const char *word : {"__align__", "alignas", "__attribute__"}) {
    size_t at = words.find(word), open = at == std::string::npos ? at : words.find('(', at);
    if (open == std::string::npos) continue;
    int depth = 0;
    size_t end = open;
    do depth += words[end] == '(' ? 1 : words[end] == ')' ? -1 : 0;
    while (++end < words.size() && depth);
    words.erase(at, end - at);
  }
  size_t last = words.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return false;
  size_t first = last;
  while (first > 0 && is_word(words[first - 1])) first--;
  d->name = words.substr(first, last + 1 - first);
  size_t from = blanks(words, 0);
  if (from >= first) return false;
  d->type = words.substr(from, first - from);
  return true;
}

/* Parses the declaration at i; false where there is none. */
bool declaration_at(const std::string &s, size_t i, Declaration *d) {
  if (!word_at(s, i, "extern")) return false;
  i = blanks(s, i + 6);
  if (!word_at(s, i, "__shared__")) return false;
  i += 10;
  size_t end = s.find(';', i), open = s.find('[', i);
  if (end == std::string::npos || open == std::string::npos || open > end) return false;
  size_t close = blanks(s, open + 1);
  if (close >= s.size() || s[close] != ']' || blanks(s, close + 1) != end) return false;
  d->end = end + 1;
  return split(s.substr(i, open - i), d);
}

} // namespace

std::string replace_dynamic_shared(const std::string &text) {
  std::string out;
  std::vector<bool> braces; /* the open braces: true for the body of a function */
  int functions = 0;
  char before = 0; /* the last character that is not a blank */
  for (size_t i = 0; i < text.size();) {
    Declaration d;
    size_t next = skip(text, i);
    if (next == i && declaration_at(text, i, &d)) {
      out += functions
                 ? d.type + " *const " + d.name + " = (" + d.type + " *)lt_emulated_here()->shared;"
                 : "static const lt_EmulatedShared<" + d.type + "> " + d.name + ";";
      for (; i < d.end; i++)
        if (text[i] == '\n') out += '\n';
      before = ';';
      continue;
    }
    if (next == i) {
      char c = text[next++];
      if (c == '{') {
        braces.push_back(before == ')');
        functions += before == ')';
      } else if (c == '}' && !braces.empty()) {
        functions -= braces.back();
        braces.pop_back();
      }
      if (!isspace((unsigned char)c)) before = c;
    }
    out.append(text, i, next - i);
    i = next;
  }
  return out;
}

} // namespace emulated
