/* translate.cpp: the program that translates this folder's kernels when they are built:
 *
 *   translate <file.metal> <name> <file.cpp>
 */
#include "../translate.h"

#include <stdio.h>

using namespace emulated;

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "usage: translate FILE.metal NAME FILE.cpp\n");
    return 2;
  }
  std::string text;
  char part[1 << 14];
  size_t n;
  FILE *in = fopen(arguments[1], "rb");
  if (!in) {
    perror(arguments[1]);
    return 1;
  }
  while ((n = fread(part, 1, sizeof part, in)) > 0) text.append(part, n);
  fclose(in);
  Translation t = translate(text, arguments[1], arguments[2]);
  for (const Problem &p : t.problems) fprintf(stderr, "%s\n", to_string(p).c_str());
  if (!t.problems.empty()) return 1;
  FILE *out = fopen(arguments[3], "wb");
  bool ok = out && fwrite(t.text.data(), 1, t.text.size(), out) == t.text.size();
  if (!out || fclose(out) != 0 || !ok) {
    perror(arguments[3]);
    return 1;
  }
  return 0;
}
