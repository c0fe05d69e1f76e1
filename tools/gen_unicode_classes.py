#!/usr/bin/env python3
"""Writes lib/lutra/tokenizers/unicode_ranges.lua: the characters of Unicode's classes L (letters) and N (numbers), and
those that are white space, as lists of ranges.

    python3 tools/gen_unicode_classes.py"""

import os
import sys
import unicodedata

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "lutra", "tokenizers", "unicode_ranges.lua")


def ranges(test):
    """Returns the ranges as differences: gap before the range, its length."""
    out, at, c = [], 0, 0
    while c < 0x110000:
        if test(c):
            first = c
            while c < 0x110000 and test(c):
                c += 1
            out += [first - at, c - first]
            at = c
        else:
            c += 1
    return out


def text(numbers):
    lines, line = [], ""
    for n in numbers:
        word = "%x" % n
        if len(line) + len(word) > 89:
            lines.append('  .. "%s "' % line)
            line = word
        else:
            line = line + " " + word if line else word
    lines.append('  .. "%s"' % line)
    lines[0] = "  " + lines[0][5:]
    return "\n".join(lines)


def category(letter):
    return lambda c: unicodedata.category(chr(c)).startswith(letter)


def is_space(c):
    return c in (0x85, 0x2028, 0x2029) or 9 <= c <= 13 or unicodedata.category(chr(c)) == "Zs"


def main():
    with open(PATH, "w", encoding="ascii", newline="\n") as file:
        file.write("""--- The characters of Unicode %s that are letters (L), numbers (N) and white space, as
-- ranges: the gap before a range and its length, hexadecimal. Made by
-- tools/gen_unicode_classes.py. Do not edit.

return {
letter =
%s,
number =
%s,
space =
%s,
}
""" % (unicodedata.unidata_version, text(ranges(category("L"))), text(ranges(category("N"))), text(ranges(is_space))))


if __name__ == "__main__":
    sys.exit(main())
